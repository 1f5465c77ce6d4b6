"""Subscriptions and push where rules decide: both belong to an account, and are judged when they are used."""
import json
import re
import secrets

import pytest

from kit import Kit
from manager import Manager
from push_key import CONTACT, PushKey
from push_service import Browser, PushService
from test_rules_paths import ACCOUNTS, HIDDEN, IDS, SHARED, WORLDS, account, document, plain, session, shared, worlds  # noqa: F401

STACK = {'workers': 2, 'namespaces': {'z': 'closed', **{ns: 'rules' for ns in WORLDS}}, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def key():
    kit = Kit()
    with PushKey() as key:
        STACK['settings'] = {**key.settings, 'push_ttl_s': 600, 'modules': kit.build('rights.c')}
        yield key


@pytest.fixture(scope='module')
def service(worlds, key):
    service = PushService(CONTACT)
    for ns in WORLDS:
        key.enable(worlds, service, ns)
    yield service
    service.close()


@pytest.fixture
def full(worlds, service):
    for ns in WORLDS:
        worlds.psql(ns, 'truncate taskqueue, task_history, subscription, subscription_definition, subscription_matched')
    return worlds


def subs(stack, caller, name, ns='full', headers=None, **param):
    return stack.request('POST', f'/{ns}/op/subs', json={'session': name, 'param': param}, headers=session(caller) if headers is None else headers)


class Sleeper:
    """A session of an account whose browser is closed."""

    def __init__(self, stack, service, caller, *definitions, ns='full', headers=None):
        self.stack, self.ns, self.name, self.browser = stack, ns, secrets.token_urlsafe(24), Browser(service)
        answer = subs(stack, caller, self.name, ns=ns, headers=headers, defs=list(definitions), push=self.browser.subscription)
        assert answer.status_code == 200 and sorted(answer.json()['out']['defs']) == sorted(definitions), answer.text

    def woken(self):
        """What it was told since it was asked last: the definitions with their versions."""
        before = len(self.browser.messages)
        found = self.stack.psql(self.ns, "select taskid from taskqueue where opname = 'push' and resource = %s", (self.name,))
        for (taskid,) in found:
            assert Manager(self.stack, self.ns).run(taskid)['result'] == 'done'
        assert not self.browser.wrong and self.stack.psql(self.ns, 'select count(*) from subscription_matched where session = %s', (self.name,)) == [(0,)]
        return [tuple(pair) for message in self.browser.messages[before:] for pair in message['changed']]


def write(stack, *documents, ns='full'):
    """By the administrator; the version."""
    return stack.put(ns, *documents, admin=True)


def line(name, ident, key='1', value=1):
    return {'c': name, 'id': ident, 'items': [{'c': 'Line', 'k': key, 'j': value}]}


# --- the subscription ---

def test_a_subscription_is_its_accounts(full):
    name = 'a-session-of-ann-here'
    declared = subs(full, 'ann', name, defs=['Own', 'Own/b'], context='mine')
    assert declared.status_code == 200, declared.text
    for caller in ('bob', 'nobody'):
        assert subs(full, caller, name).json()['code'] == 'NSUBSCRIPTION'
        assert subs(full, caller, name, drop=['Own']).json()['code'] == 'NSUBSCRIPTION'
        for change in ({'defs': ['Desk']}, {'add': ['Desk']}):
            answer = subs(full, caller, name, **change)
            assert (answer.json()['code'], answer.json()['args'][0]) == ('AARG', 'session') and 'mine' not in answer.text
        assert subs(full, caller, name, delete=True).json() == {}
        body = {'session': name, 'param': {'docs': [line('Open', 'b', caller)]}}
        assert full.request('POST', '/full/op/put', json=body, headers=session(caller)).json()['subs'] is None
    assert subs(full, 'ann', name).json()['out']['defs'] == ['Own', 'Own/b']
    by_key = full.op('full', 'subs', session=name, admin=True)['out']
    assert by_key['context'] == 'mine'
    body = {'session': name, 'param': {'docs': [line('Own', 'b', 'by-ann', secrets.token_hex(4))]}}
    found = full.request('POST', '/full/op/put', json=body, headers=session('ann')).json()
    assert found['subs'] == [['Own', found['out']['v']], ['Own/b', found['out']['v']]]
    assert subs(full, 'ann', name, delete=True).json() == {} and subs(full, 'ann', name).json()['code'] == 'NSUBSCRIPTION'
    assert subs(full, 'bob', name, defs=['Own']).status_code == 200, 'it has ended'


def test_what_an_administrator_declared_is_nobodys(full):
    name = 'a-session-of-the-admin'
    full.op('full', 'subs', {'defs': ['Shut']}, session=name, admin=True)
    assert subs(full, 'nobody', name).json()['code'] == 'NSUBSCRIPTION'
    assert subs(full, 'nobody', name, defs=['Open']).json()['code'] == 'AARG'


def test_collections_are_declared(full):
    """Whatever the caller may read in them; one that is not there is refused."""
    name = 'a-session-of-ann-here'
    assert subs(full, 'ann', name, defs=['Own/all@red', 'Shut/all@red']).json()['out']['defs'] == ['Own/all@red', 'Shut/all@red']
    assert subs(full, 'ann', name, add=['Own/absent@red']).json()['code'] == 'NCOLLECTION'


def whenever(answer, ns):
    """Without what follows from the clock: the minute decides about the end and the trial."""
    status, headers, text = plain(answer, ns)
    headers.pop('content-length', None)
    return status, headers, re.sub(r'"until":\d+|,"trial":true', '', text)


@pytest.mark.parametrize('caller', ['ann', 'nobody'])
def test_both_worlds_declare_alike(full, caller):
    for name, ident in HIDDEN:
        requests = [{'defs': [name, f'{name}/{ident}']}, {}, {'add': ['Open/b']}, {'defs': [f'{name}/secret@red']}, {'drop': [name]}, {'delete': True}, {}]
        answers = {ns: [whenever(subs(full, caller, 'a-session-of-' + ident + name, ns=ns, **request), ns) for request in requests] for ns in WORLDS}
        assert answers['full'] == answers['bare']


def test_an_answer_has_no_match_that_the_caller_may_not_know(full):
    """An operation of a module is trusted: it changes what its caller may not read."""
    name = 'a-session-of-ann-here'
    subs(full, 'ann', name, defs=['Shut', 'Shut/hidden-a', 'Own', 'Own/b', 'Own/hidden-a', 'Look', 'Look/d', 'Part', 'Part/q',
                                  *(f'{c}/all@red' for c in ('Shut', 'Own', 'Look', 'Part')), 'Part/secret@red'])
    def touch(*documents):
        body = {'session': name, 'param': {'documents': [dict(zip(('c', 'id', 'i'), one)) for one in documents]}}
        answer = full.request('POST', '/full/op/Touch', json=body, headers=session('ann'))
        assert answer.status_code == 200, answer.text
        return [one[0] for one in answer.json()['subs']]
    assert touch(['Shut', 'hidden-a', 'Line'], ['Own', 'hidden-a', 'Line']) == []
    assert touch(['Shut', 'hidden-a', 'Line'], ['Own', 'b', 'Line']) == ['Own', 'Own/all@red', 'Own/b']
    assert touch(['Look', 'd', 'Line']) == ['Look/d'], 'it may be read, not listed'
    assert touch(['Part', 'q', 'Secret']) == [] and touch(['Part', 'q', 'Line']) == ['Part', 'Part/all@red', 'Part/q']


# --- push ---

@pytest.mark.parametrize('name', ['Shut', 'Other', 'Desk', *SHARED])
def test_what_may_not_be_read_wakes_nobody(full, service, name):
    for caller in ('ann', 'nobody'):
        sleeper = Sleeper(full, service, caller, name, f'{name}/hidden-a')
        write(full, line(name, 'hidden-a', caller))
        assert sleeper.woken() == []
        write(full, {'c': name, 'id': f'gone-{caller}', 'items': []})
        write(full, {'c': name, 'id': f'gone-{caller}', 'delete': True})
        assert sleeper.woken() == []


def test_what_may_be_read_wakes_its_readers(full, service):
    ann, bob = (Sleeper(full, service, caller, 'Own', 'Own/b', 'Own/hidden-a') for caller in ('ann', 'bob'))
    nobody = Sleeper(full, service, 'nobody', 'Own', 'Open', 'Look', 'Look/d')
    version = write(full, line('Own', 'b', 'new', secrets.token_hex(4)))
    assert ann.woken() == [('Own', version), ('Own/b', version)] and bob.woken() == nobody.woken() == []
    version = write(full, line('Own', 'hidden-a', 'new', secrets.token_hex(4)))
    assert bob.woken() == [('Own', version), ('Own/hidden-a', version)] and ann.woken() == nobody.woken() == []
    version = write(full, line('Open', 'b', 'new', secrets.token_hex(4)), line('Look', 'd', 'new', secrets.token_hex(4)))
    assert nobody.woken() == [('Look/d', version), ('Open', version)], 'what may not be listed is not of its class'


def test_a_change_by_psql_wakes_its_readers_while_copies_are_older(full, service):
    """The match is judged by the document as psql has left it, not by a copy from before."""
    ann, bob = (Sleeper(full, service, caller, 'Own', 'Own/b', 'Own/hidden-a', 'Own/all@red') for caller in ('ann', 'bob'))
    for _ in range(6):
        full.get('full', ('Own', 'b'), ('Own', 'hidden-a'), admin=True)  # each worker has a copy
    with full.relay_stopped():
        version, = full.psql('full', "select put_item('Own', 'b', 'Line', 'new', %s)", (json.dumps(secrets.token_hex(4)),))[0]
        assert ann.woken() == [('Own', version), ('Own/all@red', version), ('Own/b', version)] and bob.woken() == []


def test_a_collection_wakes_those_who_see_what_has_changed_in_it(full, service):
    """A member that is hidden, or whose property is hidden, wakes nobody; one that leaves wakes those who saw it there."""
    ann, bob = (Sleeper(full, service, caller, 'Own/all@red', 'Part/secret@red', 'Shut/all@red') for caller in ('ann', 'bob'))
    version = write(full, line('Own', 'b', 'new', secrets.token_hex(4)), line('Shut', 'hidden-a', 'new', secrets.token_hex(4)),
                    line('Part', 'p', 'new', secrets.token_hex(4)))
    assert ann.woken() == [('Own/all@red', version)] and bob.woken() == []
    version = write(full, line('Own', 'hidden-a', 'new', secrets.token_hex(4)))
    assert ann.woken() == [] and bob.woken() == [('Own/all@red', version)]
    write(full, shared('Own', 'moved', ACCOUNTS['ann']))
    assert len(ann.woken()) == 1 and bob.woken() == []
    one = shared('Own', 'moved', ACCOUNTS['ann'])
    one['items'][0]['j']['team'] = 'blue'
    version = write(full, one)
    assert ann.woken() == [('Own/all@red', version)] and bob.woken() == []
    write(full, {'c': 'Own', 'id': 'moved', 'delete': True})
    assert ann.woken() == bob.woken() == []


def test_a_change_of_what_is_hidden_wakes_nobody(full, service):
    sleeper = Sleeper(full, service, 'ann', 'Part', 'Part/p')
    write(full, {'c': 'Part', 'id': 'p', 'items': [{'c': 'Secret', 'j': {'team': 'red', 'text': secrets.token_hex(4)}}]})
    assert sleeper.woken() == []
    write(full, {'c': 'Part', 'id': 'p', 'items': [{'c': 'Secret', 'j': {'team': 'red', 'text': secrets.token_hex(4)}}]})
    version = write(full, line('Part', 'p', 'seen', secrets.token_hex(4)))
    assert sleeper.woken() == [('Part', version), ('Part/p', version)], 'neither the first nor the hidden version'


def test_the_first_document_among_many_is_found(full, service):
    """The last ones are read first, 512 members at once."""
    ann, nobody = (Sleeper(full, service, caller, 'Own/all@red') for caller in ('ann', 'nobody'))
    names = [f'y{place:03}' for place in range(640)]
    for start in range(0, 640, 32):
        written = write(full, *(shared('Own', name, ACCOUNTS['bob' if start or name != names[0] else 'ann']) for name in names[start:start + 32]))
        version = version if start else written
    assert ann.woken() == [('Own/all@red', version)] and nobody.woken() == []
    for start in range(0, 640, 32):
        gone = write(full, *({'c': 'Own', 'id': name, 'delete': True} for name in names[start:start + 32]))
        version = version if start else gone
    assert ann.woken() == [('Own/all@red', version)] and nobody.woken() == [], 'the only one that she saw'


@pytest.mark.parametrize('count', [5, 60, 600])
def test_one_document_among_many_is_found(full, service, count):
    """Few are noted with the match; of more, the class and the collection are read."""
    definitions = ['Own', 'Own/all@blue', 'Own/all@red']
    ann, nobody = (Sleeper(full, service, caller, *definitions) for caller in ('ann', 'nobody'))
    names = [f'z{place:03}' for place in range(count)]
    write(full, *(shared('Own', name, ACCOUNTS['bob']) for name in names[:-1][:5]))
    for start in range(5, count - 9, 32):
        write(full, *(shared('Own', name, ACCOUNTS['bob']) for name in names[start:min(start + 32, count - 9)]))
    version = write(full, *(shared('Own', name, ACCOUNTS['bob']) for name in names[max(5, count - 9):-1]), shared('Own', names[-1], ACCOUNTS['ann']))
    assert ann.woken() == [('Own', version), ('Own/all@red', version)] and nobody.woken() == []
    for start in range(0, count, 32):
        version = write(full, *({'c': 'Own', 'id': name, 'delete': True} for name in names[start:start + 32]))
    assert ann.woken() == [('Own', version), ('Own/all@red', version)] and nobody.woken() == []


def test_sight_is_judged_when_the_message_is_sent(full, service):
    """Lost, and gained, between the change and the message: by the owner, by a team, by a role."""
    ann, bob = (Sleeper(full, service, caller, 'Own/b', 'Duty/b', 'Desk/hidden-a', 'Duty/all@red') for caller in ('ann', 'bob'))
    def own(caller):
        return {'c': 'Own', 'id': 'b', 'items': [{'c': 'Main', 'j': {'team': 'red', 'owner': ACCOUNTS[caller]}}]}
    crew = {'c': 'Crew', 'id': f'of-{ACCOUNTS["ann"]}'}
    member = {'c': 'Member', 'k': ACCOUNTS['ann']}
    try:
        write(full, line('Own', 'b', 'x', secrets.token_hex(4)), line('Duty', 'b', 'x', secrets.token_hex(4)), line('Desk', 'hidden-a', 'x', secrets.token_hex(4)))
        version = write(full, own('bob'))
        write(full, {**crew, 'items': [{**member, 'del': True}]})
        full.put('full', account('ann', ['editor']), admin=True)
        assert [name for name, _ in ann.woken()] == ['Desk/hidden-a', 'Duty/all@red', 'Duty/b', 'Own/b'] and bob.woken() == [('Own/b', version)]
    finally:
        write(full, own('ann'), {**crew, 'items': [{**member, 'j': {'role': 'reader'}}]}, account('ann'))


# --- departures ---

def held(name, ident, by, team='red', before=None):
    """Of the class `name`: this account alone has a relation to it, and `before` none any more."""
    one = shared(name, ident, ACCOUNTS[by])
    one['items'][0]['j']['team'] = team
    if before:
        one['items'].append({'c': 'Member', 'k': ACCOUNTS[before], 'del': True})
    return one


def each(name, ident, *teams):
    return [name, *(f'{name}/all@{team}' for team in teams), f'{name}/{ident}']


@pytest.mark.parametrize('name', SHARED)
def test_what_is_lost_wakes_those_who_saw_it(full, service, name):
    """The class, the document, and the collections in which it was before; never the one into which it has come with the loss, or since."""
    definitions = each(name, 'given', 'blue', 'red')
    ann, bob, nobody = (Sleeper(full, service, caller, *definitions) for caller in ('ann', 'bob', 'nobody'))
    def told(version, *teams):
        return [(definition, version) for definition in each(name, 'given', *teams)]
    version = write(full, held(name, 'given', 'ann'))
    assert ann.woken() == told(version, 'red') and bob.woken() == nobody.woken() == []
    version = write(full, held(name, 'given', 'bob', before='ann'))
    assert ann.woken() == told(version, 'red') and bob.woken() == told(version, 'red') and nobody.woken() == []
    for changed in (line(name, 'given', 'new', secrets.token_hex(4)), held(name, 'given', 'bob', 'blue'), held(name, 'given', 'bob', 'red')):
        write(full, changed)
        assert ann.woken() == nobody.woken() == [] and bob.woken()
    version = write(full, held(name, 'given', 'ann', 'blue', before='bob'))
    assert ann.woken() == told(version, 'blue') and bob.woken() == told(version, 'red') and nobody.woken() == [], 'it has moved with the loss'
    lost = write(full, held(name, 'given', 'bob', 'blue', before='ann'))
    write(full, held(name, 'given', 'bob', 'red'))
    write(full, {'c': name, 'id': 'given', 'delete': True})
    assert ann.woken() == told(lost, 'blue') and nobody.woken() == [], 'what became of it later is not told'
    assert [definition for definition, _ in bob.woken()] == each(name, 'given', 'blue', 'red')


@pytest.mark.parametrize('name', SHARED)
def test_a_deletion_wakes_those_who_saw_the_document(full, service, name):
    ann, bob = (Sleeper(full, service, caller, *each(name, 'gone', 'red')) for caller in ('ann', 'bob'))
    for owner, knows, other in (('ann', ann, bob), ('bob', bob, ann)):
        write(full, held(name, 'gone', owner))
        assert knows.woken() and not other.woken()
        version = write(full, {'c': name, 'id': 'gone', 'delete': True})
        assert knows.woken() == [(definition, version) for definition in each(name, 'gone', 'red')] and other.woken() == []


def test_a_deletion_of_what_everybody_sees_wakes_all(full, service):
    nobody = Sleeper(full, service, 'nobody', *each('Open', 'gone', 'red'), *each('Look', 'gone', 'red'))
    write(full, document('Open', 'gone'), document('Look', 'gone'))
    nobody.woken()
    version = write(full, {'c': 'Open', 'id': 'gone', 'delete': True}, {'c': 'Look', 'id': 'gone', 'delete': True})
    assert nobody.woken() == [('Look/gone', version), *((definition, version) for definition in each('Open', 'gone', 'red'))]


def test_a_loss_by_psql_wakes(full, service):
    ann = Sleeper(full, service, 'ann', *each('Own', 'given', 'red'))
    write(full, held('Own', 'given', 'ann'))
    ann.woken()
    version, = full.psql('full', "select put_item('Own', 'given', 'Main', '', %s)", (json.dumps({'team': 'red', 'owner': ACCOUNTS['bob']}),))[0]
    assert ann.woken() == [(definition, version) for definition in each('Own', 'given', 'red')]
    write(full, {'c': 'Own', 'id': 'given', 'delete': True})
    assert ann.woken() == []


def test_many_losses_wake_once(full, service):
    """More than are noted one by one, among many of others'."""
    names = [f'x{place:03}' for place in range(96)]
    def give(owner):
        versions = [write(full, *(held('Own', name, 'bob' if place % 3 else owner) for place, name in enumerate(names) if place // 32 == part)) for part in range(3)]
        return versions
    give('ann')
    ann, nobody = (Sleeper(full, service, caller, 'Own', 'Own/all@blue', 'Own/all@red') for caller in ('ann', 'nobody'))
    versions = give('bob')
    assert ann.woken() == [('Own', versions[-1]), ('Own/all@red', versions[-1])] and nobody.woken() == []
    for part in range(3):
        write(full, *({'c': 'Own', 'id': name, 'delete': True} for name in names[part * 32:part * 32 + 32]))
    assert ann.woken() == []


def test_roles_that_change_wake_the_account(full, service):
    """For all it subscribes to, whether a document has changed or not; a login changes no role."""
    ann, bob = (Sleeper(full, service, caller, 'Desk/hidden-a', 'Open') for caller in ('ann', 'bob'))
    try:
        for roles in (['editor'], []):
            version = full.put('full', account('ann', roles), admin=True)
            assert ann.woken() == [('Desk/hidden-a', version), ('Open', version)] and bob.woken() == []
        full.put('full', {'c': 'Account', 'id': ACCOUNTS['ann'], 'items': [{'c': 'Sess', 'k': 'f' * 64, 'j': {'created': 200101000000000, 'expires': 991231000000000}}]}, admin=True)
        assert ann.woken() == []
    finally:
        full.put('full', {**account('ann'), 'items': [*account('ann')['items'], {'c': 'Sess', 'k': 'f' * 64, 'del': True}]}, admin=True)


def test_a_team_that_is_left_or_joined_wakes_the_account(full, service):
    ann, bob = (Sleeper(full, service, caller, 'Duty', 'Duty/all@red', 'Duty/b', 'Open', 'Own/b') for caller in ('ann', 'bob'))
    crew, member = {'c': 'Crew', 'id': f'of-{ACCOUNTS["ann"]}'}, {'c': 'Member', 'k': ACCOUNTS['ann']}
    try:
        for change in ({'del': True}, {'j': {'role': 'reader'}}):
            version = write(full, {**crew, 'items': [{**member, **change}]})
            assert ann.woken() == [('Duty', version), ('Duty/all@red', version), ('Duty/b', version)] and bob.woken() == []
    finally:
        write(full, {**crew, 'items': [{**member, 'j': {'role': 'reader'}}]})


def test_what_others_lose_wakes_nobody(full, service):
    """Owners, members, teams, collections and documents of which the account knows nothing."""
    sleepers = [Sleeper(full, service, caller, *(definition for name in SHARED for definition in each(name, 'theirs', 'blue', 'red'))) for caller in ('ann', 'nobody')]
    for name in SHARED:
        write(full, held(name, 'theirs', 'bob'))
        other = held(name, 'theirs', 'bob', 'blue')
        other['items'][0]['j'].update(owner=IDS['eve'], crew='of-nobody')
        other['items'] += [{'c': 'Member', 'k': IDS['eve'], 'j': {'role': 'reader'}}, {'c': 'Member', 'k': ACCOUNTS['bob'], 'del': True}]
        other['items'] = [item for item in other['items'] if not (item['c'] == 'Member' and item['k'] == ACCOUNTS['bob'] and 'j' in item)]
        write(full, other)
        write(full, {'c': name, 'id': 'theirs', 'delete': True})
    write(full, {'c': 'Crew', 'id': f'of-{ACCOUNTS["bob"]}', 'items': [{'c': 'Member', 'k': IDS['eve'], 'j': {'role': 'reader'}}]})
    write(full, {'c': 'Crew', 'id': f'of-{ACCOUNTS["bob"]}', 'items': [{'c': 'Member', 'k': IDS['eve'], 'del': True}]})
    assert [sleeper.woken() for sleeper in sleepers] == [[], []]


@pytest.mark.parametrize('change', [{'delete': True}, {'items': [{'c': 'Self', 'j': {'name': 'bob', 'disabled': True}}]},
                                    {'items': [{'c': 'Sess', 'k': 'THE SESSION', 'del': True}]}])
def test_an_account_that_has_ended_is_not_woken(full, service, change):
    """Neither when only the session has ended in which the subscription was declared."""
    (digest,) = [item['k'] for item in account('bob')['items'] if item['c'] == 'Sess']
    sleeper = Sleeper(full, service, 'bob', 'Open', 'Open/b')
    change = json.loads(json.dumps(change).replace('THE SESSION', digest))
    try:
        write(full, {'c': 'Account', 'id': ACCOUNTS['bob'], **change})
        write(full, line('Open', 'b', 'ended', secrets.token_hex(4)))
        assert sleeper.woken() == []
    finally:
        write(full, {'c': 'Account', 'id': ACCOUNTS['bob'], 'delete': True, 'items': account('bob')['items']})
    version = write(full, line('Open', 'b', 'ended', secrets.token_hex(4)))
    assert sleeper.woken() == [('Open', version), ('Open/b', version)]


def test_a_session_named_by_another_is_woken(full, service):
    """Whoever names the session of ann in a request does not keep the message from her."""
    ann = Sleeper(full, service, 'ann', 'Open')
    body = {'session': ann.name, 'param': {'docs': [line('Open', 'b', 'bob', secrets.token_hex(4))]}}
    answer = full.request('POST', '/full/op/put', json=body, headers=session('bob')).json()
    assert answer['subs'] is None and ann.woken() == [('Open', answer['out']['v'])]
    answer = full.request('POST', '/full/op/put', json=body, headers=session('ann')).json()
    assert ann.woken() == []


def test_access_that_changes_decides(full, service):
    """Rules judge what was declared before them, collections too, and closing the namespace ends it."""
    def access(word):
        full.op('z', 'ns', {'set': {'ns': 'bare', 'access': word}}, admin=True)
    early = Sleeper(full, service, 'nobody', 'Open', 'Shut', 'Shut/x', ns='bare', headers={})
    full.psql('bare', "insert into subscription_definition (key, session, def) values ('mOpen/all@red', %s, 'Open/all@red')", (early.name,))
    full.psql('bare', 'update subscription set by_rules = false')
    try:
        version = write(full, line('Open', 'b', 'x', secrets.token_hex(4)), document('Open', 'new'), document('Shut', 'x'), ns='bare')
        assert full.psql('bare', "select count(*) from subscription_matched where key like 'm%'") == [(1,)]
        assert early.woken() == [('Open', version), ('Open/all@red', version)]
        write(full, *({'c': name, 'id': ident, 'delete': True} for name, ident in (('Shut', 'x'), ('Open', 'new'))), ns='bare')
        access('closed')
        write(full, line('Open', 'b', 'x', secrets.token_hex(4)), ns='bare')
        assert early.woken() == []
    finally:
        access('rules')

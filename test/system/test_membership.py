"""Invitations to become a member of one document: who may send them, what they are worth, when they end, and that nobody gets more by one than its sender may give."""
import contextlib
import itertools
import json
import ssl
import threading

import pytest

import bad_network  # the package for Python is in its path
import stampd
from door_client import Client
from manager import Manager
from schema import Schemas
from stack import Problem, comparable, refused

pytestmark = pytest.mark.plain

ATTEMPTS = 5
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'team': 'closed', 'bare': 'closed', 'lab': 'open'}, 'settings': {'limit_client_attempts': 100_000, 'argon2_share': 100, 'limit_invitations': 4}}
RULES = {
    'Team': {'members': 'Member', 'read': ['members'], 'list': ['members'], 'create': ['members:chief'], 'update': ['members:chief'], 'delete': ['members:chief']},
    'Plan': {'team': {'class': 'Team', 'id': 'Info.team', 'members': 'Member'}, 'read': ['team'], 'create': ['team'], 'update': ['team'], 'delete': ['team']},
    'Club': {'owner': 'Info.owner', 'members': 'Guest', 'read': ['owner', 'members'], 'create': ['owner'], 'delete': ['owner'],
             'update': [{'to': 'owner', 'if': {'ne': [{'before': 'Info.shut'}, True]}}, 'members'], 'items': {'Guest': {'see': ['owner'], 'write': ['owner', 'role:steward']}}},
    'Diary': {'owner': 'Info.owner', 'read': ['owner'], 'create': ['owner'], 'update': ['owner'], 'delete': ['owner']}}
PASSWORD = 'correct horse battery staple'
NUMBERS = itertools.count(1)
WRONG = 'The invitation is wrong, used or expired.'


@pytest.fixture(scope='module', autouse=True)
def team(stack):
    for ns in ('team', 'bare'):
        stack.op('z', 'ns', {'set': {'ns': ns, 'access': 'rules', 'accounts': {'registration': 'open', 'anonymous': True}, **({'rules': RULES} if ns == 'team' else {})}}, admin=True)
    return stack


def ask(stack, operation, param=None, token=None, ns='team'):
    headers = {'Authorization': f'Bearer {token}'} if token else {}
    answer = stack.http.post(f'{stack.url}/{ns}/op/{operation}', json={'param': param or {}}, headers=headers, timeout=60)
    if answer.status_code >= 400:
        raise Problem(answer)
    return answer.json()['out']


def accounts(stack, param):
    return stack.op('team', 'accounts', param, admin=True)['out']


class Person:
    def __init__(self, stack, name=True, **members):
        self.stack, self.name = stack, f'Person{next(NUMBERS)}'
        self.password = {'name': self.name, 'password': PASSWORD} if name else {}
        made = ask(stack, 'register', self.password)
        self.id, self.token = made['account'], made['token']
        if members:
            self.set(**members)

    def set(self, **members):
        return accounts(self.stack, {'set': {'account': self.id, **members}})

    def does(self, what, wish):
        return ask(self.stack, 'membership', {what: wish}, self.token)

    def invites(self, name, **more):
        return self.does('invite', {**named(name), **more})

    def joins(self, invitation):
        return self.does('join', invitation['invitation'])

    def puts(self, *docs):
        return ask(self.stack, 'put', {'docs': docs}, self.token)

    def member(self, name, item='Member'):
        """The content of its item."""
        found, = self.stack.op('team', 'get', {'docs': [named(name)]}, admin=True)['out']['docs']
        return next((one['j'] for one in found['items'] if one['c'] == item and one.get('k') == self.id), None)

    def reads(self, name):
        found, = ask(self.stack, 'get', {'docs': [named(name)]}, self.token)['docs']
        return found['v'] > 0


def named(name):
    c, id = name.split('/', 1)
    return {'c': c, 'id': id}


def founds(person, item='Member', content=None):
    """A team whose chief the person is, or a club that it owns."""
    name = f'{"Team" if item == "Member" else "Club"}/{next(NUMBERS)} red'
    first = {'c': 'Member', 'k': person.id, 'j': {'role': 'chief'}} if item == 'Member' else {'c': 'Info', 'j': {'owner': person.id, 'shut': False, **(content or {})}}
    person.puts({**named(name), 'items': [first]})
    return name


def wrong(function, *args):
    """The refusal is the same, whatever the reason."""
    problem = refused('SCLOSED', function, *args)
    assert problem.body['detail'] == WRONG, problem


@pytest.fixture
def ann(team):
    return Person(team)


@pytest.fixture
def bob(team):
    return Person(team)


def test_who_has_an_invitation_becomes_a_member(team, ann, bob):
    name = founds(ann)
    assert not bob.reads(name)
    sent = ann.invites(name, content={'role': 'reader'}, label='The red team', name_as='name')
    assert set(sent) == {'invitation', 'key', 'expires', 'uses'} and len(sent['invitation']) == 43 and sent['uses'] == 1
    looked = ask(team, 'membership', {'look': sent['invitation']})
    assert looked == {**named(name), 'label': 'The red team', 'expires': sent['expires']}, 'also without a session'
    assert bob.joins(sent) == {**named(name), 'joined': True}
    assert bob.reads(name) and bob.member(name) == {'role': 'reader', 'name': bob.name}
    wrong(Person(team).joins, sent)
    wrong(ask, team, 'membership', {'look': sent['invitation']})
    refused('SRULE', bob.invites, name)


def test_who_registers_by_it_joins_with_the_new_session(team, ann):
    name = founds(ann)
    sent = ann.invites(name, name_as='name')
    refused('SCLOSED', ask, team, 'membership', {'join': sent['invitation']}, status=401)
    guest = Person(team, name=False)
    assert guest.joins(sent)['joined'] and guest.reads(name) and guest.member(name) == {}, 'an anonymous account has no name'
    refused('SKEY', ask, team, 'register', {'name': f'New{next(NUMBERS)}', 'password': PASSWORD, 'invitation': ann.invites(name)['invitation']})


def test_the_number_of_uses_is_exact(team, ann):
    """However many follow the link at the same time."""
    name = founds(ann)
    sent = ann.invites(name, uses=3)
    guests, joined = [Person(team, name=False) for _ in range(8)], []

    def follow(guest):
        with contextlib.suppress(Problem):
            joined.append(guest.joins(sent)['joined'])

    threads = [threading.Thread(target=follow, args=(guest,)) for guest in guests]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert joined == [True] * 3 and sum(guest.reads(name) for guest in guests) == 3


def test_a_member_uses_nothing_up_and_keeps_its_role(team, ann, bob):
    name = founds(ann)
    sent = ann.invites(name, content={'role': 'reader'})
    assert ann.joins(sent) == {**named(name), 'joined': False} and ann.member(name) == {'role': 'chief'}
    assert bob.joins(sent)['joined']


def test_it_is_worth_what_its_sender_may_give_at_that_moment(team, ann, bob):
    name = founds(ann)
    carl = Person(team)
    carl.joins(ann.invites(name, content={'role': 'chief'}))
    sent = [carl.invites(name) for _ in range(3)]
    ann.puts({**named(name), 'items': [{'c': 'Member', 'k': carl.id, 'j': {'role': 'reader'}}]})
    wrong(bob.joins, sent[0])
    assert not bob.reads(name)
    ann.puts({**named(name), 'items': [{'c': 'Member', 'k': carl.id, 'j': {'role': 'chief'}}]})
    carl.set(disabled=True)
    wrong(bob.joins, sent[0])
    carl.set(disabled=False)
    assert bob.joins(sent[0])['joined'], 'the right has come back'
    accounts(team, {'delete': carl.id})
    wrong(Person(team).joins, sent[1])
    ann.puts({**named(name), 'delete': True})
    wrong(Person(team).joins, sent[1])


def test_roles_of_the_sender_are_those_of_now(team, ann, bob):
    """A rule that is not about members: a steward lets guests in."""
    name, steward = founds(ann, 'Guest'), Person(team, roles=['steward'])
    refused('NDOCUMENT', steward.invites, name)
    steward.joins(ann.invites(name))
    sent = steward.invites(name, uses=2)
    assert bob.joins(sent)['joined']
    steward.set(roles=[])
    wrong(Person(team).joins, sent)
    refused('SRULE', steward.invites, name)


def test_conditions_of_rules_hold(team, ann, bob):
    name = founds(ann, 'Guest')
    sent = ann.invites(name)
    ann.puts({**named(name), 'items': [{'c': 'Info', 'j': {'owner': ann.id, 'shut': True}}]})
    wrong(bob.joins, sent)
    refused('SRULE', ann.invites, name)
    assert bob.member(name, 'Guest') is None


def test_who_may_invite(team, ann, bob):
    """Whoever may write the item; to others a document that they may not read is one that is not there."""
    name, other = founds(ann), founds(bob)
    for stranger, document in ((bob, name), (ann, other), (ann, 'Team/not-there')):
        for what in ('invite', 'list', 'revoke'):
            refused('NDOCUMENT', stranger.does, what, named(document))
    for document in ('Diary/x', 'Note/x', 'Plan/x', f'Account/{ann.id}', 'Ticket/x', 'Login/x'):
        problem = refused('SCLOSED', ann.invites, document)
        assert problem.body['detail'] == 'The rules name no members of documents of this class.'
    for what in ('invite', 'list', 'revoke'):
        refused('SCLOSED', ask, team, 'membership', {what: named(name)}, status=401)
    refused('SCLOSED', ask, team, 'membership', {'invite': named(name)}, ns='lab')
    own = ask(team, 'register', {}, ns='bare')['token']
    refused('SCLOSED', ask, team, 'membership', {'invite': named(name)}, own, ns='bare')
    refused('SKEY', ask, team, 'membership', {'invite': named(name)}, ann.token, ns='bare')
    assert set(team.op('team', 'membership', {'invite': named(name)}, admin=True)['out']) == {'invitation', 'key', 'expires', 'uses'}


def test_the_administrator_invites_with_all_rights(team, ann, bob):
    name = founds(ann, 'Guest', {'shut': True})
    sent = team.op('team', 'membership', {'invite': {**named(name), 'content': {'by': 'us'}}}, admin=True)['out']
    refused('SCLOSED', lambda: team.op('team', 'membership', {'join': sent['invitation']}, admin=True))
    assert bob.joins(sent)['joined'] and bob.member(name, 'Guest') == {'by': 'us'}


def test_a_service_key_invites_and_joins(team, ann):
    key = accounts(team, {'key': {'label': 'a script'}})
    name = founds(ann)
    assert ask(team, 'membership', {'join': ann.invites(name, content={'role': 'chief'})['invitation']}, key['key'])['joined']
    sent = ask(team, 'membership', {'invite': {**named(name), 'uses': 2}}, key['key'])
    assert Person(team).joins(sent)['joined']
    accounts(team, {'revoke': {'account': key['account']}})
    wrong(Person(team).joins, sent)


def test_invitations_are_listed_and_revoked(team, ann, bob):
    name = founds(ann)
    bob.joins(ann.invites(name, content={'role': 'chief'}))
    assert ann.does('list', named(name)) == {'invitations': []}
    first, second = ann.invites(name, label='one', content={'role': 'reader'}), bob.invites(name, uses=5)
    listed = {one['key']: one for one in bob.does('list', named(name))['invitations']}
    assert listed == {first['key']: {'key': first['key'], 'by': ann.id, 'label': 'one', 'content': {'role': 'reader'}, 'expires': first['expires'], 'uses': 1},
                      second['key']: {'key': second['key'], 'by': bob.id, 'content': {}, 'expires': second['expires'], 'uses': 5}}
    assert Person(team).joins(second)['joined']
    assert {one['uses'] for one in ann.does('list', named(name))['invitations']} == {1, 4}
    assert ann.does('revoke', {**named(name), 'key': second['key']}) == {'ended': 1}
    wrong(Person(team).joins, second)
    assert ann.does('revoke', {**named(name), 'key': second['key']}) == {'ended': 0}
    assert ann.does('revoke', named(name)) == {'ended': 1} and ann.does('list', named(name)) == {'invitations': []}
    wrong(Person(team).joins, first)


def test_a_document_has_a_number_of_them(team, ann):
    name = founds(ann)
    for _ in range(4):
        last = ann.invites(name)
    refused('ALIMIT', ann.invites, name)
    assert Person(team).joins(last)['joined'] and ann.invites(name)['uses'] == 1


def test_they_end(team, ann):
    """The task after the end deletes what is stored of it."""
    name = founds(ann)
    sent, other = ann.invites(name, days=1), ann.invites(name, days=366)
    assert sent['expires'] < other['expires']
    key = next(id for id, in team.psql('team', "select id from doc where class = 'Ticket'") if id.startswith(sent['key']))
    tickets = "select count(*) from doc where class = 'Ticket' and ctime > 0"
    (before,), = team.psql('team', tickets)
    (taskid,), = team.psql('team', "select taskid from taskqueue where opname = 'ticketend' and param::json ->> 'ticket' = %s", (key,))
    manager = Manager(team, 'team')
    manager.hurry()
    assert manager.run(taskid)['result'] == 'done'
    assert team.psql('team', tickets) == [(before - 1,)]
    assert [one['key'] for one in ann.does('list', named(name))['invitations']] == [other['key']]
    wrong(Person(team).joins, sent)


def test_the_database_has_no_invitation(team, ann):
    sent = ann.invites(founds(ann), label='A label')
    stored = json.dumps([str(row) for row in team.psql('team', "select id, '' from doc union all select id, value::text from items union all select opname, param::text from taskqueue")])
    assert sent['key'] in stored and sent['invitation'] not in stored
    assert all(sent['invitation'] not in team.log(one) for one in ('stampd', 'nginx'))


def test_what_is_no_request_is_refused(team, ann):
    name = founds(ann)
    for param in ({}, {'join': 'x', 'look': 'x'}, {'join': 1}, {'join': {}}, {'join': None}, {'look': ['x']}, {'invite': 'x'}, {'invite': {}}, {'invite': {'c': 'Team'}}, {'invite': {**named(name), 'id': ''}},
                  {'invite': {**named(name), 'days': 0}}, {'invite': {**named(name), 'days': 367}}, {'invite': {**named(name), 'uses': 0}}, {'invite': {**named(name), 'uses': 1_000_001}},
                  {'invite': {**named(name), 'content': []}}, {'invite': {**named(name), 'content': 'x'}}, {'invite': {**named(name), 'content': {'x': 'y' * 4096}}},
                  {'invite': {**named(name), 'label': 'x' * 201}}, {'invite': {**named(name), 'label': 'a\nb'}}, {'invite': {**named(name), 'name_as': ''}},
                  {'invite': {**named(name), 'name_as': 'role', 'content': {'role': 'reader'}}}, {'invite': {**named(name), 'role': 'chief'}}, {'invite': {**named(name), 'item': 'Info'}},
                  {'revoke': {**named(name), 'key': 'x'}}, {'revoke': named(name) | {'key': '%' * 17}}, {'list': {'c': 'Team'}}, {'lists': {}}, {'accept': 'x'}):
        refused('AARG', ask, team, 'membership', param, ann.token)
    for text in ('', 'x', 'x' * 43, 'é' * 43, '%00', "'", '../', 'x' * 10_000):
        wrong(ann.does, 'join', text)
        wrong(ask, team, 'membership', {'look': text})
    assert ann.does('list', named(name)) == {'invitations': []}


def test_contents_are_stored_as_they_were_sent(team, ann):
    name = founds(ann)
    for content in ({}, {'role': 'a "quote" }'}, {'deep': {'a': [{'b': [1, {'c': None}]}]}}, {'n': 1.50}):
        guest = Person(team)
        guest.joins(ann.invites(name, content=content, name_as='na"me é'))
        assert guest.member(name) == {**content, 'na"me é': guest.name}


def test_refusals_tell_nothing_of_the_invitation(team, ann):
    """The answer is the same to the byte for one that was never made, one that is used up, and one whose sender may invite no more."""
    name = founds(ann)
    used, revoked = ann.invites(name), ann.invites(name)
    Person(team).joins(used)
    ann.does('revoke', named(name))
    guest, seen = Person(team), set()
    for text in (used['invitation'], revoked['invitation'], 'never-made'):
        answer = team.http.post(f'{team.url}/team/op/membership', json={'param': {'join': text}}, headers={'Authorization': f'Bearer {guest.token}'}, timeout=60)
        seen.add((answer.status_code, answer.content, tuple(sorted(comparable(answer.headers)))))
    assert len(seen) == 1


def test_it_is_no_way_into_what_a_rule_protects(team, ann, bob):
    """Its content is an item of one class, and its document the one that was named: nothing else changes."""
    name = founds(ann)
    sent = ann.invites(name, content={'role': 'reader', 'k': ann.id, 'c': 'Info'})
    bob.joins(sent)
    refused('SRULE', bob.puts, {**named(name), 'items': [{'c': 'Member', 'k': bob.id, 'j': {'role': 'chief'}}]})
    found, = team.op('team', 'get', {'docs': [named(name)]}, admin=True)['out']['docs']
    assert [(one['c'], one['k']) for one in found['items']] == sorted(('Member', one.id) for one in (ann, bob))
    plan = f'Plan/{next(NUMBERS)}'
    ann.puts({**named(plan), 'items': [{'c': 'Info', 'j': {'team': name.split('/', 1)[1]}}]})
    assert bob.reads(plan), 'what the team shares'
    refused('AARG', ask, team, 'task', {'op': 'membership', 'param': {'join': sent['invitation']}}, ann.token)


def test_who_joins_finds_the_document_among_those_that_are_shared(team, ann, bob, tmp_path):
    """The keys of the members are a collection: what an invitation and an expulsion change is all that it needs."""
    Schemas(team, tmp_path).apply('team', {'Team': {'items': {'Member': {}}, 'collections': {'of': {'keys': 'Member', 'mutable': True}}}})

    def shared(person, account=None, **more):
        return ask(team, 'collection', {'c': 'Team', 'collection': 'of', 'value': account or person.id, 'want': 'ids', **more}, person.token)
    name = founds(ann)
    id, token = name.split('/', 1)[1], shared(bob)['token']
    bob.joins(ann.invites(name))
    found = shared(bob, token=token)
    assert [one for one, _ in found['ids']] == [id] and id in [one for one, _ in shared(ann)['ids']]
    assert shared(Person(team), bob.id)['ids'] == [], 'a stranger sees nothing of it'
    ann.puts({**named(name), 'items': [{'c': 'Member', 'k': bob.id, 'del': True}]})
    assert [one for one, _ in shared(bob, token=found['token'])['left']] == [id]


def test_a_namespace_that_is_read_only_and_repetitions(team, ann, bob):
    name = founds(ann)
    sent = ann.invites(name)
    team.op('z', 'ns', {'set': {'ns': 'team', 'state': 1}}, admin=True)
    try:
        refused('OREADONLY', bob.joins, sent)
        assert len(ann.does('list', named(name))['invitations']) == 1 and ask(team, 'membership', {'look': sent['invitation']})['id']
    finally:
        team.op('z', 'ns', {'set': {'ns': 'team', 'state': 0}}, admin=True)
    assert bob.joins(sent)['joined'] and not bob.reads('Team/x')


@pytest.fixture
def clients(team):
    with contextlib.ExitStack() as all_:
        yield lambda number: all_.enter_context(Client(team, f'127.0.0.{number}'))


def test_attempts_are_limited_like_logins(team, clients, ann, bob):
    """For an address, whoever guesses there, and for an account, wherever it is."""
    sent = ann.invites(founds(ann))
    busy = ('XBUSY', ['limit_client_attempts', str(ATTEMPTS)])

    def verdict(reply):
        return (reply.code, reply.args) if reply.code else reply.status

    team.set(limit_client_attempts=ATTEMPTS)
    try:
        answers = [verdict(clients(12).op('team', 'membership', {'look': f'guess-{number}'})) for number in range(ATTEMPTS + 3)]
        assert answers[0][0] == 'SCLOSED' and busy in answers[ATTEMPTS:], answers
        assert verdict(clients(12).op('team', 'membership', {'join': sent['invitation']}, key=bob.token)) == busy
        assert verdict(clients(12).op('team', 'login', {'name': bob.name, 'password': PASSWORD})) == busy
        answers = [verdict(clients(20 + number).op('team', 'membership', {'join': 'guess'}, key=bob.token)) for number in range(ATTEMPTS + 3)]
        assert busy in answers[ATTEMPTS - 1:], 'the account at many addresses'
    finally:
        team.set(limit_client_attempts=100_000)


def test_the_package_for_python_invites_and_joins(team, ann, bob):
    name = founds(ann)
    context = ssl.create_default_context(cafile=str(team.path / 'etc/certificate.pem'))
    with stampd.Client(f'{team.url}/team', ann.token, context=context) as chief, stampd.Client(f'{team.url}/team', bob.token, context=context) as guest:
        invitation = chief.invite(*name.split('/', 1), {'role': 'reader'}, days=1, label='For Bob')
        assert guest.join(invitation) == {**named(name), 'joined': True} and bob.member(name) == {'role': 'reader'}
        with pytest.raises(stampd.Fault) as fault:
            guest.invite(*name.split('/', 1))
        assert fault.value.code == 'SRULE'

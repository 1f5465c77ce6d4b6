"""Tasks that clients request where rules decide: they run with the rights that their account has then."""
import contextlib
import itertools
import json
import re

import pytest

from manager import PARKED, Manager
from test_rules_paths import ACCOUNTS, CALLERS, HIDDEN, WORLDS, account, kit, named, plain, session, shared, worlds, writing  # noqa: F401

STACK = {'workers': 2, 'namespaces': {'z': 'closed', **{ns: 'rules' for ns in WORLDS}}, 'settings': {'limit_anonymous_body_bytes': 65536}}


@pytest.fixture
def managers(worlds):
    for ns in WORLDS:
        worlds.psql(ns, 'truncate taskqueue, task_history')
    return {ns: Manager(worlds, ns) for ns in WORLDS}


@pytest.fixture
def manager(managers):
    return managers['full']


def request(stack, caller, param, ns='full', headers=None, **more):
    """The answer to the request for a task `put`."""
    body = {'param': {'op': 'put', 'param': param, **more}}
    return stack.request('POST', f'/{ns}/op/task', json=body, headers={**(session(caller) if isinstance(caller, str) else caller), **(headers or {})})


def requested(*words, **more):
    answer = request(*words, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()['out']['id']


def line(name, ident, key='1', **more):
    return {'docs': [{'c': name, 'id': ident, 'items': [{'c': 'Line', 'k': key, 'j': 1}], **more}]}


def row(stack, taskid, columns, ns='full'):
    found = stack.psql(ns, f'select {columns} from taskqueue where taskid = %s', (taskid,))
    return found[0] if found else None


PUTS = {f'{name}/{ident}: {what}': one[3]['param'] for name, ident in HIDDEN if ident == 'hidden-a' for what, one in itertools.chain(named(name, ident), writing(name, ident))
        if one[0] == 'put' and set(one[3]) == {'param'} and not one[4]}


@pytest.mark.parametrize('caller', CALLERS)
@pytest.mark.parametrize('what', PUTS)
def test_both_worlds_run_alike(worlds, managers, caller, what):
    """What is refused now is not requested; what is, ends as if what is hidden did not exist, and the row of the task says no more."""
    ends = []
    for ns in WORLDS:
        answer = request(worlds, caller, PUTS[what], ns=ns)
        if answer.status_code != 200:
            ends.append(plain(answer, ns))
            continue
        outcome = managers[ns].post(answer.json()['out']['id']).json()['tasks'][0]
        left = worlds.psql(ns, 'select exc, report, retry from taskqueue')
        past = worlds.psql(ns, 'select exc, report from task_history')
        ends.append(re.sub(r'\b\d{15}\b', 'stamp', json.dumps([{**outcome, 'id': 0}, left, past])))
    assert ends[0] == ends[1]


def test_the_account_is_stored_and_judged_when_the_task_runs(worlds, manager):
    tasks = {caller: requested(worlds, caller, line('Own', 'b', 'of-task')) for caller in ('ann', 'bob', 'nobody')}
    assert row(worlds, tasks['ann'], 'account, credential, of_client') == (ACCOUNTS['ann'], 'session', True)
    assert row(worlds, tasks['nobody'], 'account, credential, of_client') == (None, None, True)
    for caller in ('bob', 'nobody'):
        outcome = manager.run(tasks[caller], 500)
        assert outcome['result'] == 'failed' and outcome['code'] == 'SRULE'
    assert manager.run(tasks['ann'])['result'] == 'done'
    shown = worlds.op('full', 'tasks', {'show': tasks['bob']}, admin=True)['out']
    assert ACCOUNTS['bob'] in json.dumps(shown) and 'of-task' in json.dumps(worlds.get('full', ('Own', 'b'), admin=True))


def test_rights_are_those_of_the_moment(worlds, manager):
    """Ownership is lost, then given back, between the request and the run."""
    worlds.put('full', shared('Own', 'moved', ACCOUNTS['ann']), admin=True)
    def give(caller):
        worlds.put('full', {'c': 'Own', 'id': 'moved', 'items': [{'c': 'Main', 'j': {'team': 'red', 'owner': ACCOUNTS[caller]}}]}, admin=True)
    first = requested(worlds, 'ann', line('Own', 'moved', 'one'))
    give('bob')
    assert manager.run(first, 500)['code'] == 'SRULE'
    second = requested(worlds, 'ann', line('Own', 'moved', 'two'))
    give('ann')
    assert manager.run(second)['result'] == 'done'
    worlds.put('full', {'c': 'Own', 'id': 'moved', 'delete': True}, admin=True)


def test_roles_are_those_of_the_moment(worlds, manager):
    try:
        refused_now = requested(worlds, 'bob', line('Desk', 'hidden-a', 'late'))
        worlds.put('full', account('bob', ['editor']), admin=True)
        assert manager.run(refused_now)['result'] == 'done'
        allowed_now = requested(worlds, 'bob', line('Desk', 'hidden-a', 'later'))
        worlds.put('full', account('bob'), admin=True)
        assert manager.run(allowed_now, 500)['code'] == 'SRULE'
    finally:
        worlds.put('full', account('bob'), admin=True)


@contextlib.contextmanager
def without(stack, change):
    """The account of bob, changed so."""
    stack.put('full', {'c': 'Account', 'id': ACCOUNTS['bob'], **change}, admin=True)
    try:
        yield
    finally:
        stack.put('full', {'c': 'Account', 'id': ACCOUNTS['bob'], 'delete': True, 'items': account('bob')['items']}, admin=True)


@pytest.mark.parametrize('change', [{'delete': True}, {'items': [{'c': 'Self', 'j': {'name': 'bob', 'disabled': True}}]},
                                    {'items': [{'c': 'Self', 'j': 'no object'}]}])
def test_a_lost_account_ends_its_tasks(worlds, manager, change):
    """At once, for good, with a clear fault; what others have requested runs."""
    tasks = {caller: requested(worlds, caller, line('Open', 'b', f'by-{caller}')) for caller in ('bob', 'ann', 'nobody')}
    with without(worlds, change):
        outcome = manager.run(tasks['bob'], 500)
        assert outcome['result'] == 'failed' and outcome['code'] == 'SACCOUNT'
        assert row(worlds, tasks['bob'], 'startat, exc, retry') == (PARKED, 'SACCOUNT', 1)
        assert manager.run(tasks['ann'])['result'] == manager.run(tasks['nobody'])['result'] == 'done'
        worlds.psql('full', 'select task_run(%s)', (tasks['bob'],))
        assert manager.run(tasks['bob'], 500)['code'] == 'SACCOUNT'
    assert 'by-bob' not in json.dumps(worlds.get('full', ('Open', 'b'), admin=True))


def test_a_session_that_ends_does_not_end_the_task_but_a_revoked_service_key_does(worlds, manager):
    of_session = requested(worlds, 'bob', line('Open', 'b', 'after-logout'))
    made = worlds.op('full', 'accounts', {'key': {'label': 'nightly'}}, admin=True)['out']
    of_key = requested(worlds, {'Authorization': f"Bearer {made['key']}"}, line('Open', 'b', 'after-revocation'))
    assert row(worlds, of_key, 'account, credential') == (made['account'], 'key')
    worlds.op('full', 'accounts', {'revoke': {'account': made['account']}}, admin=True)
    assert manager.run(of_key, 500)['code'] == 'SACCOUNT'
    sessions = [item for item in account('bob')['items'] if item['c'] == 'Sess']
    with without(worlds, {'items': [{'c': 'Sess', 'k': sessions[0]['k'], 'del': True}]}):
        assert manager.run(of_session)['result'] == 'done'


def test_callers_do_not_share_a_commit_or_a_name(worlds, manager):
    """Several in one request; the same resource and domain, from the same address."""
    tasks = {}
    for caller, name in itertools.product(('ann', 'bob', 'nobody'), ('one', 'two')):
        tasks[caller, name] = requested(worlds, caller, line('Own', 'b', f'{caller}-{name}'))
    outcomes = manager.run_many(list(tasks.values()))
    assert {key for key, taskid in tasks.items() if outcomes[taskid]['result'] == 'done'} == {('ann', 'one'), ('ann', 'two')}
    worlds.psql('full', 'truncate taskqueue')
    same = {caller: requested(worlds, caller, line('Own', 'b', f'{caller}-same'), resource='r', domain='d') for caller in ('ann', 'bob', 'nobody')}
    assert len(set(same.values())) == 3
    names = {row(worlds, taskid, 'resource, domain') for taskid in same.values()}
    assert len(names) == 3 and all(resource[0] == domain[0] == '~' for resource, domain in names)
    again = requested(worlds, 'ann', line('Own', 'b', 'ann-again'), resource='r', domain='d')
    assert again == same['ann'] and 'ann-again' in row(worlds, again, 'param')[0]


def test_what_the_database_and_the_administrator_request_has_all_rights(worlds, manager):
    worlds.psql('full', "select task_create('put', %s)", (json.dumps(line('Shut', 'hidden-a', 'by-psql')),))
    (taskid,) = manager.due()
    assert manager.run(taskid)['result'] == 'done'
    taskid = worlds.op('full', 'task', {'op': 'put', 'param': line('Shut', 'hidden-a', 'by-key')}, admin=True)['out']['id']
    assert row(worlds, taskid, 'account, of_client') == (None, False)
    assert manager.run(taskid)['result'] == 'done'
    items = {item.get('k') for item in worlds.get('full', ('Shut', 'hidden-a'), admin=True)['items']}
    assert {'by-psql', 'by-key'} <= items
    taskid = requested(worlds, 'ann', line('Open', 'b', 'x'), resource='mine')
    worlds.psql('full', "select task_create('put', %s, resource => %s)", (json.dumps(line('Shut', 'hidden-a', 'taken')), row(worlds, taskid, 'resource')[0]))
    assert row(worlds, taskid, 'account, credential, of_client') == (None, None, False), 'param and account change together'


def test_access_that_ends_closes_what_was_requested(worlds, manager):
    """Without rules a task of a client has the level of a client: it is not the administrator's."""
    taskid = requested(worlds, 'ann', line('Open', 'b', 'closed'))
    try:
        worlds.op('z', 'ns', {'set': {'ns': 'full', 'access': 'closed'}}, admin=True)
        assert manager.run(taskid, 500)['code'] == 'SCLOSED'
        assert row(worlds, taskid, 'startat') == (PARKED,)
    finally:
        worlds.op('z', 'ns', {'set': {'ns': 'full', 'access': 'rules'}}, admin=True)


def test_without_accounts_none_is_served(worlds, manager):
    tasks = {caller: requested(worlds, caller, line('Open', 'b', f'no-accounts-{caller}')) for caller in ('ann', 'nobody')}
    conf = next(item['j'] for item in worlds.get('z', ('Namespace', 'full'), admin=True)['items'] if item['c'] == 'Conf')
    def set_conf(value):
        worlds.put('z', {'c': 'Namespace', 'id': 'full', 'items': [{'c': 'Conf', 'j': value}]}, admin=True)
    try:
        set_conf({name: value for name, value in conf.items() if name != 'accounts'})
        assert manager.run(tasks['ann'], 500)['code'] == 'SACCOUNT'
        assert manager.run(tasks['nobody'])['result'] == 'done'
    finally:
        set_conf(conf)


def test_an_answer_under_a_key_is_its_accounts(worlds, manager):
    key = {'Idempotency-Key': 'a-task'}
    first = request(worlds, 'ann', line('Open', 'b', 'once'), headers=key)
    again = request(worlds, 'ann', line('Open', 'b', 'once'), headers=key)
    other = request(worlds, 'bob', line('Open', 'b', 'once'), headers=key)
    assert again.headers['Idempotency-Replayed'] == 'true' and 'Idempotency-Replayed' not in other.headers
    assert worlds.psql('full', 'select count(*) from taskqueue') == [(2,)] and first.json() == again.json()
    assert [one for (one,) in worlds.psql('full', 'select account from taskqueue order by number')] == [ACCOUNTS['ann'], ACCOUNTS['bob']]

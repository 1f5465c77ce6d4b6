"""Administrators: accounts of the namespace z with a role; what they may read of the server: warnings, schemas, periodic tasks."""
import json
import subprocess

import pytest

from manager import Manager
from stack import PATIENCE_S, Problem, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'shut': 'closed'}}
PASSWORD = 'correct horse battery'


def ask(stack, ns, operation, param=None, bearer=None, **more):
    headers = {'Authorization': f'Bearer {bearer}'} if bearer else {}
    return stack.http.post(f'{stack.url}/{ns}/op/{operation}', json={'param': param or {}, **more}, headers=headers, timeout=PATIENCE_S)


def code(answer):
    return answer.json().get('code', 'done')


@pytest.fixture(scope='module')
def people(stack):
    assert code(ask(stack, 'z', 'login', {'name': 'ann', 'password': PASSWORD})) == 'SCLOSED', 'z has no accounts'
    stack.op('z', 'ns', {'set': {'ns': 'z', 'accounts': {'session_days': 1, 'registration': 'open', 'anonymous': True}}}, admin=True)
    return {name: stack.op('z', 'accounts', {'create': {'name': name, 'password': PASSWORD, 'roles': roles}}, admin=True)['out']['account']
            for name, roles in (('ann', ['other', 'administrator']), ('bob', ['administrators', 'reader']), ('eve', []))}


def token(stack, name):
    return ask(stack, 'z', 'login', {'name': name, 'password': PASSWORD}).json()['out']['token']


def test_an_account_with_the_role_takes_the_place_of_the_key(stack, people):
    ann = 'z_' + token(stack, 'ann')
    assert [one['ns'] for one in ask(stack, 'z', 'ns', {'list': {}}, ann).json()['out']['namespaces']][:2] == ['lab', 'shut']
    assert code(ask(stack, 'shut', 'put', {'docs': [{'c': 'Note', 'id': 'a', 'items': [{'c': 'Main', 'j': 1}]}]}, ann)) == 'done'
    assert stack.http.get(f'{stack.url}/shut/doc/Note/a', headers={'Authorization': f'Bearer {ann}'}, timeout=PATIENCE_S).status_code == 200
    assert code(ask(stack, 'shut', 'get', {'docs': [{'c': 'Note', 'id': 'a'}]}, admin=ann)) == 'done'


def test_nobody_else_does(stack, people):
    ann, bob, eve = (token(stack, name) for name in ('ann', 'bob', 'eve'))
    for bearer in ('z_' + bob, 'z_' + eve, 'z_' + ann[:-1], 'z_' + ann[:-1] + ('A' if ann[-1] != 'A' else 'B'), 'z_', 'z_st_', 'zz_' + ann, 'z_z_' + ann):
        for ns in ('z', 'lab', 'shut'):
            assert code(ask(stack, ns, 'get', {'docs': []}, bearer)) == 'SKEY', (bearer[:5], ns)
            assert code(ask(stack, ns, 'get', {'docs': []}, admin=bearer)) == 'SKEY'
    assert code(ask(stack, 'lab', 'get', {'docs': []}, ann)) == 'SKEY', 'a session of z alone is none of another namespace'
    for operation in ('get', 'list', 'ns', 'warnings', 'schema', 'accounts', 'account', 'sessions', 'register', 'sync', 'task'):
        assert code(ask(stack, 'z', operation, {}, ann)) == 'SCLOSED', operation
        assert code(ask(stack, 'z', operation, {})) == 'SCLOSED', operation
    assert code(ask(stack, 'z', 'logout', {}, ann, syncs=[{'c': 'Namespace', 'id': 'lab'}])) == 'SCLOSED'


def test_what_is_withdrawn_ends_at_the_next_request(stack, people):
    first, second = token(stack, 'ann'), token(stack, 'ann')
    try_ = lambda one: code(ask(stack, 'lab', 'volumes', {}, 'z_' + one))  # noqa: E731
    assert (try_(first), try_(second)) == ('done', 'done')
    assert code(ask(stack, 'z', 'logout', {}, first)) == 'done'
    assert (try_(first), try_(second)) == ('SKEY', 'done')
    stack.op('z', 'accounts', {'set': {'account': people['ann'], 'roles': ['other']}}, admin=True)
    assert try_(second) == 'SKEY'
    stack.op('z', 'accounts', {'set': {'account': people['ann'], 'roles': ['administrator']}}, admin=True)
    assert try_(second) == 'done'
    stack.op('z', 'accounts', {'set': {'account': people['ann'], 'disabled': True}}, admin=True)
    assert try_(second) == 'SKEY'
    stack.op('z', 'accounts', {'set': {'account': people['ann'], 'disabled': False}}, admin=True)


def test_a_service_key_of_an_administrator(stack, people):
    key = stack.op('z', 'accounts', {'key': {'label': 'nightly', 'roles': ['administrator']}}, admin=True)['out']['key']
    assert code(ask(stack, 'lab', 'volumes', {}, 'z_' + key)) == 'done'
    other = stack.op('z', 'accounts', {'key': {'label': 'other', 'roles': []}}, admin=True)['out']['key']
    assert code(ask(stack, 'lab', 'volumes', {}, 'z_' + other)) == 'SKEY'


def test_the_last_warnings_of_all_processes(stack):
    read = lambda limit=256: stack.op('z', 'warnings', {'limit': limit}, admin=True)['out']['warnings']  # noqa: E731

    def tells(pid):
        try:
            return any(f'pid={pid}' in one['text'] for one in read())
        except Problem as problem:  # it had come to the worker that was killed
            assert problem.code == 'XUNKNOWN', problem
            return False
    killed = []
    for _ in range(2):
        killed.append(stack.kill_worker())
        wait_until(lambda: tells(killed[-1]), what='the line of the log')
    lines = [one for one in read() if any(f'pid={pid}' in one['text'] for pid in killed)]
    assert [one['at'] for one in lines] == sorted((one['at'] for one in lines), reverse=True) and len(lines) == 2
    assert all(one['level'] == 'error' for one in lines)
    wait_until(lambda: all(one['text'] in stack.log() for one in lines), what='the same lines in the log')
    wait_until(lambda: read(1) == read()[:1], what='two answers without a new line between them')
    assert stack.key not in json.dumps(read())
    for param, ns in (({'limit': 0}, 'z'), ({'limit': 257}, 'z'), ({'last': 1}, 'z'), ({}, 'lab')):
        assert code(ask(stack, ns, 'warnings', param, stack.key)) == 'AARG'
    assert code(ask(stack, 'z', 'warnings')) == 'SCLOSED'


def test_the_last_hour_is_kept_in_samples(stack):
    read = lambda after=0: stack.op('z', 'metrics', {'after': after}, admin=True)['out']  # noqa: E731
    wait_until(lambda: read()['samples'], what='the first sample')
    out = read()
    named = lambda row: dict(zip(out['names'], row, strict=True))  # noqa: E731
    first = named(out['samples'][0])
    assert (out['every_s'], first['number'], out['generation']) == (20, 1, stack.metrics()['stampd_generation'])
    for _ in range(3):
        stack.op('z', 'ns', {'list': {}}, admin=True)
    now = named(read()['now'])
    assert now['number'] == 0 and now['at'] >= first['at'] and now['ms'] >= first['ms']
    assert now['requests'] >= first['requests'] + 3
    assert sum(value for name, value in now.items() if name.startswith('le_')) > 0
    wait_until(lambda: named(read()['now'])['workers'] == STACK['workers'] + 1, what='all workers, and the process of the thumbnails')
    assert all(row[0] > 1 for row in read(1)['samples'])
    far = 2 ** 53  # has seen those of a server that has ended: all of this one
    assert read(far)['samples'][0][0] == 1
    for param, ns in (({'after': -1}, 'z'), ({'after': far + 1}, 'z'), ({'after': 'all'}, 'z'), ({'before': 1}, 'z'), ({'after': 0}, 'lab')):
        assert code(ask(stack, ns, 'metrics', param, stack.key)) == 'AARG'
    assert code(ask(stack, 'z', 'metrics', {'after': 0})) == 'SCLOSED'


def test_schemas_are_declared_and_shown(stack):
    of_z = lambda param, status=200: ask(stack, 'z', 'schema', param, stack.key).json()  # noqa: E731
    schema = {'classes': {'Shop': {'items': {'Main': {'singleton': True, 'fields': {'town': 'string'}}}}}}
    assert of_z({'get': 'lab'})['out'] == {'v': 0}
    assert of_z({'check': schema})['out'] == {'classes': 1}
    for member, wrong in (('check', {'check': {'classes': {'Shop': {'zombieDays': -1}}}}), ('set/schema', {'set': {'ns': 'lab', 'schema': {'classes': {'Shop': {'zombieDays': -1}}}}})):
        assert (of_z(wrong)['code'], of_z(wrong)['at']) == ('AARG', f'/param/{member}/classes/Shop/zombieDays')
    first = of_z({'set': {'ns': 'lab', 'if': 0, 'schema': schema}})['out']['v']
    assert of_z({'set': {'ns': 'lab', 'if': 0, 'schema': schema}})['code'] == 'AVERSION'
    assert of_z({'get': 'lab'})['out'] == {'v': first, 'schema': schema}
    assert json.loads(stack.admin('schema', 'show', 'lab', '--declared').text) == schema
    applied = lambda: ask(stack, 'lab', 'schema', {}, stack.key).json()['out']  # noqa: E731
    assert applied()['schema'] == {'classes': {}}
    stack.admin('schema', 'apply', 'lab')
    assert {**applied(), 'number': 0} == {'number': 0, 'schema': schema, 'building': [], 'filling': []}
    assert of_z({'set': {'ns': 'lab', 'if': first, 'schema': None}})['out']['v'] > first
    assert 'schema' not in of_z({'get': 'lab'})['out']
    for param, why in (({'get': 'none'}, 'NNAMESPACE'), ({'set': {'ns': 'none', 'schema': schema}}, 'NNAMESPACE'), ({'get': 'lab', 'check': schema}, 'AARG'), ({'set': 1}, 'AARG'),
                       ({'set': {'ns': 'lab'}}, 'AARG'), ({'check': []}, 'AARG')):
        assert of_z(param)['code'] == why, param
    assert code(ask(stack, 'lab', 'schema', {'get': 'lab'}, stack.key)) == 'AARG'
    assert code(ask(stack, 'lab', 'schema')) == code(ask(stack, 'z', 'schema', {'get': 'lab'})) == 'SCLOSED'


def run_of_lab(stack):
    """What the server says of it, once it has heard of what the command has written into the database."""
    def heard():
        out = stack.op('z', 'schema', {'run': 'lab'}, admin=True)['out']
        return out if stack.psql('z', "select version from doc where class = 'SchemaRun' and id = 'lab' and ctime <> 0") == [(out['v'],)] else None
    return wait_until(heard, what='the run as it is stored')


def test_a_declaration_is_planned_and_applied_by_who_watches(stack):
    """Over HTTP it is only asked for: what works is stampctl schema watch, with the rights that the server lacks."""
    of_z = lambda param, **more: ask(stack, 'z', 'schema', param, stack.key, **more).json()  # noqa: E731
    watch = lambda *words, **more: stack.admin('schema', 'watch', '--once', *words, **more)  # noqa: E731
    applied_now = lambda: ask(stack, 'lab', 'schema', {}, stack.key).json()['out']['schema']  # noqa: E731
    before = applied_now()
    schema = {'classes': {'Town': {'items': {'Main': {'singleton': True, 'fields': {'name': 'string'}}}}}}
    stack.put('lab', {'c': 'Town', 'id': 'ulm', 'items': [{'c': 'Main', 'j': {'name': 'Ulm'}}]})
    assert of_z({'run': 'lab'})['out'] == {'v': 0}
    watch()
    declared = of_z({'set': {'ns': 'lab', 'schema': schema}})['out']['v']
    for param, why in (({'apply': {'ns': 'lab', 'if': declared - 1}}, 'AVERSION'), ({'apply': {'ns': 'none'}}, 'NNAMESPACE'), ({'run': 'none'}, 'NNAMESPACE'), ({'apply': 'lab'}, 'AARG'),
                       ({'plan': {}}, 'AARG'), ({'plan': {'ns': 'lab', 'to': 1}}, 'AARG'), ({'plan': {'ns': 'lab'}, 'apply': {'ns': 'lab'}}, 'AARG')):
        assert of_z(param)['code'] == why, param
    for bearer in (None, 'x' * 43):
        assert code(ask(stack, 'z', 'schema', {'apply': {'ns': 'lab'}}, bearer))[0] == 'S'
    assert code(ask(stack, 'lab', 'schema', {'apply': {'ns': 'lab'}}, stack.key)) == 'AARG'
    assert of_z({'run': 'lab'})['out'] == {'v': 0}, 'what is refused asks for nothing'

    asked = of_z({'plan': {'ns': 'lab', 'if': declared}})['out']['v']
    assert of_z({'run': 'lab'})['out'] == {'v': asked, 'run': {'do': 'plan', 'of': declared, 'state': 'asked'}}
    assert of_z({'plan': {'ns': 'lab', 'if': declared}})['out']['v'] == asked, 'the same is asked for once'
    watch()
    planned = run_of_lab(stack)
    assert planned['run'] == {'do': 'plan', 'of': declared, 'state': 'done'} and planned['v'] > asked
    assert planned['printed']['text'] == stack.admin('schema', 'plan', 'lab').text and 'x_Town_Main' in planned['printed']['text']
    assert applied_now() == before != schema, 'a plan applies nothing'

    asked = of_z({'apply': {'ns': 'lab', 'if': declared}})['out']['v']
    assert of_z({'run': 'lab'})['out'] == {'v': asked, 'run': {'do': 'apply', 'of': declared, 'state': 'asked'}}
    watch()
    applied = run_of_lab(stack)
    assert applied['run']['state'] == 'done' and applied['printed']['text'].endswith('lab: the declaration is applied\n')
    assert applied_now() == schema
    assert stack.op('lab', 'find', {'c': 'Town', 'i': 'Main', 'where': [{'f': 'name', 't': 'eq', 'v1': 'Ulm'}]})['out'] == {'ids': ['ulm']}
    watch()
    assert run_of_lab(stack) == applied, 'what is done is not done again'

    of_z({'apply': {'ns': 'lab', 'if': declared}})
    of_z({'set': {'ns': 'lab', 'if': declared, 'schema': None}})
    watch()
    failed = run_of_lab(stack)
    assert failed['run']['state'] == 'failed' and 'another version' in failed['printed']['text']
    assert applied_now() == schema, 'another declaration than that of the request is not applied'

    stack.psql('z', "select put_item('SchemaRun', 'lab', 'Conf', '', %s)", (json.dumps({'do': 'apply', 'of': 0, 'state': 'running'}),))
    lock = "select pg_advisory_{}(hashtextextended('stampd schema watch', 0))"
    stack.psql('z', lock.format('lock'))  # as another that is at work
    assert 'another stampctl schema watch' in watch(status=1).error
    stack.psql('z', lock.format('unlock'))
    watch()
    assert run_of_lab(stack)['run'] == {'do': 'apply', 'of': 0, 'state': 'done'}, 'what was interrupted is run again'
    assert applied_now() == {'classes': {}}

    for id_, wrong in (('--help', {'do': 'apply', 'of': 0, 'state': 'asked'}), ('lab', {'do': 'drop', 'of': 0, 'state': 'asked'}), ('lab', {'do': 'apply', 'of': '0 --batch', 'state': 'asked'})):
        stack.psql('z', "select put_item('SchemaRun', %s, 'Conf', '', %s)", (id_, json.dumps(wrong)))
        watch()
        (conf,), = stack.psql('z', "select content::json ->> 'state' from item where class = 'SchemaRun' and id = %s and iclass = 'Conf'", (id_,))
        assert conf == 'failed', wrong


def test_of_what_is_printed_some_is_kept(stack):
    """Of a plan the beginning, of an apply the end, in whole lines."""
    ask_for = lambda deed: stack.op('z', 'schema', {deed: {'ns': 'lab'}}, admin=True)  # noqa: E731
    printed = lambda: run_of_lab(stack)['printed']['text']  # noqa: E731
    item = f'I{"i" * 15}'
    classes = {f'C{number:03}{"c" * 12}': {'items': {item: {'singleton': True, 'fields': {'f' * 25: 'int'}}}} for number in range(120)}
    stack.op('z', 'schema', {'set': {'ns': 'lab', 'schema': {'classes': classes}}}, admin=True)
    ask_for('plan')
    whole = stack.admin('schema', 'watch', '--once').out.removeprefix('lab: schema plan\n')
    assert len(whole) > 3 << 14 and whole.startswith(printed()) and 15 << 10 < len(printed()) <= 16 << 10 and printed().endswith('\n')
    ask_for('apply')
    whole = stack.admin('schema', 'watch', '--once').out
    assert len(whole) > 17 << 10 and whole.endswith('\n' + printed()) and 15 << 10 < len(printed()) <= 16 << 10


def test_who_watches_goes_on_when_the_database_is_back(stack):
    watch = subprocess.Popen(stack.admin_words('schema', 'watch'), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        state = lambda: stack.op('z', 'schema', {'run': 'lab'}, admin=True)['out']['run']  # noqa: E731
        wait_until(lambda: stack.psql('z', "select 1 from pg_locks where locktype = 'advisory' and granted and pid in (select pid from pg_stat_activity where datname = current_database())"), what='the one who watches')
        stack.restart_postgres()
        wait_until(lambda: stack.request('POST', '/z/op/schema', json={'param': {'plan': {'ns': 'lab'}}}, admin=True).status_code == 200, what='the server')
        wait_until(lambda: state()['state'] == 'done', what='the plan')
    finally:
        watch.terminate()
        watch.wait()


def test_a_declaration_that_the_rules_contradict_is_warned_of(stack):
    stack.op('z', 'ns', {'set': {'ns': 'shut', 'rules': {'Note': {'owner': 'Info.owner', 'read': ['owner']}}}}, admin=True)
    declared = stack.op('z', 'schema', {'set': {'ns': 'shut', 'schema': {'classes': {'Note': {'items': {'Info': {}}}}}}}, admin=True)['out']
    assert 'Note.owner' in declared['warnings'][0]


def test_periodic_tasks_are_listed(stack):
    stack.admin('cron', 'add', 'lab', 'Nightly', 'D0315', 'put', '--param', '{"docs":[]}')
    rules = lambda: stack.op('lab', 'tasks', {'rules': True}, admin=True)['out']['rules']  # noqa: E731
    assert rules() == [{'name': 'Nightly', 'op': 'put', 'period': 'D0315', 'state': 'unplanned'}]
    Manager(stack, 'lab').scan()
    (rule,) = rules()
    assert rule['state'] == 'planned' and rule['startat'] % 10**9 // 10**5 == 315 and stack.op('lab', 'tasks', {'show': rule['id']}, admin=True)['out']['task']
    stack.op('lab', 'tasks', {'hold': rule['id']}, admin=True)
    assert rules()[0]['state'] == 'parked'
    stack.admin('cron', 'drop', 'lab', 'Nightly')
    assert rules() == []


def test_queue_managers_take_the_key_of_the_administrator(stack):
    stack.step('queue', 'start')
    try:
        send = lambda key, op='list': stack.http.post(f'{stack.url}/qm/op', json={'op': op}, headers={'Authorization': f'Bearer {key}'}, timeout=PATIENCE_S).json()  # noqa: E731
        for key in (stack.key, stack.queue_key):
            assert send(key)['out']['suspended'] is False
            assert send(key, 'suspend')['out']['suspended'] is True
            assert send(key, 'restart')['out']['suspended'] is False
        for key in (stack.key[:-1], stack.key + 'x', 'none'):
            assert send(key)['code'] == 'SKEY'
    finally:
        stack.step('queue', 'stop')

"""States of namespaces: every path, in every state of the namespace and of z, for a stranger and for the administrator.  What is expected
is said once, by `refusal`; a path that forgets the states fails."""
import itertools
import json
import re
import shutil
import subprocess

import pytest

from kit import Kit
from listener import Listener
from manager import Manager
from schema import Schemas
from stack import BUILD, Problem, Stack, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'demo': 'open', 'lab': 'open'}, 'settings': {'keep_interval_s': 1, 'limit_anonymous_body_bytes': 65536}}
ON, READONLY, OFF, GONE = range(4)
STATES = [ON, READONLY, OFF, GONE]
SESSION = 'a-session-of-somebody'
SCHEMA = {'Note': {'open': True, 'items': {'Main': {'singleton': True, 'fields': {'team': 'string'}}},
                   'collections': {'all': {'key': ['Main.team'], 'mutable': True}}}}
NAME = {'c': 'Note', 'id': 'one'}
OF_ALL, OF_TEAM = {'c': 'Note', 'collection': 'all', 'value': 'red', 'want': 'docs'}, {'items': [{'c': 'Main', 'j': {'team': 'red'}}]}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = str(kit.build('guarded.c'))
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def demo(stack, tmp_path_factory):
    notes = {'class': 'Note', 'result': [['id', 'string']], 'sql': 'select id from documents'}
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('demo', SCHEMA, searches={'notes': notes})
    stack.put('demo', {**NAME, **OF_TEAM})
    stack.op('demo', 'subs', {'defs': ['Note']}, session=SESSION)
    return stack


def set_states(stack, own=ON, z=ON, ns='demo', words=('of its own', 'of all')):
    """Both configurations in one commit; the worker that does it is not the only one that must obey."""
    present = [document['items'][0]['j'] for document in stack.get('z', ('Namespace', ns), ('Namespace', 'z'), admin=True)]
    stack.put('z', *({'c': 'Namespace', 'id': code, 'items': [{'c': 'Conf', 'j': {**conf, 'state': state, 'message': message}}]}
                     for conf, code, state, message in zip(present, (ns, 'z'), (own, z), words)), admin=True)


@pytest.fixture(autouse=True)
def back_on(demo):
    yield
    set_states(demo)


# --- the rule ---

def refusal(own, z, changes, is_administrator):
    """The whole rule: the code of the fault; None: it is served."""
    state = max(own, z)
    if state == GONE:
        return 'OGONE'
    if state == OFF and not is_administrator:
        return 'OOFF'
    return 'OREADONLY' if state == READONLY and changes else None


STATUS = {'OGONE': 410, 'OOFF': 503, 'OREADONLY': 503, 'SCLOSED': 401}

# name: (method, path, body, headers, does it change something, is it the administrator's alone; of a task, its operation is)
PATHS = {
    'get': ('POST', 'op/get', {'param': {'docs': [NAME]}}, {}, False, False),
    'get by GET': ('GET', 'op/get?param=' + json.dumps({'docs': [NAME]}), None, {}, False, False),
    'get, tolerance': ('POST', 'op/get', {'param': {'docs': [{**NAME, 'age': 60}]}}, {}, False, False),
    'get with syncs': ('POST', 'op/get', {'param': {'docs': []}, 'syncs': [NAME]}, {}, False, False),
    'get with session': ('POST', 'op/get', {'param': {'docs': [NAME]}, 'session': SESSION}, {}, False, False),
    'sync': ('POST', 'op/sync', {'syncs': [NAME]}, {}, False, False),
    'list': ('POST', 'op/list', {'param': {}}, {}, False, False),
    'find': ('POST', 'op/find', {'param': {'c': 'Note', 'i': 'Main', 'want': 'ids', 'id': {'t': 'eq', 'v1': 'one'}}}, {}, False, False),
    'search': ('POST', 'op/search', {'param': {'name': 'notes'}}, {}, False, False),
    'collection': ('POST', 'op/collection', {'param': OF_ALL}, {}, False, False),
    'collection, streamed': ('POST', 'op/collection', {'param': {**OF_ALL, 'stream': True}}, {}, False, False),
    'put': ('POST', 'op/put', {'param': {'docs': [{**NAME, **OF_TEAM}]}}, {}, True, False),
    'put of nothing': ('POST', 'op/put', {'param': {'docs': [NAME]}}, {}, True, False),
    'put, large': ('POST', 'op/put', {'param': {'docs': [{**NAME, 'items': [{'c': 'Big', 's': 'x' * 200000}]}]}}, {}, True, False),
    'put under a key': ('POST', 'op/put', {'param': {'docs': [{**NAME, **OF_TEAM}]}}, {'Idempotency-Key': 'a-key'}, True, False),
    'a replay': ('POST', 'op/put', {'param': {'docs': [{**NAME, **OF_TEAM}]}}, {'Idempotency-Key': 'before'}, True, False),
    'GET': ('GET', 'doc/Note/one', None, {}, False, False),
    'HEAD': ('HEAD', 'doc/Note/one', None, {}, False, False),
    'GET, 304': ('GET', 'doc/Note/one', None, {'If-None-Match': '*'}, False, False),
    'PUT': ('PUT', 'doc/Note/two', OF_TEAM, {}, True, False),
    'PATCH': ('PATCH', 'doc/Note/one', OF_TEAM, {}, True, False),
    'DELETE': ('DELETE', 'doc/Note/two', None, {}, True, False),
    'subs, read': ('POST', 'op/subs', {'session': SESSION}, {}, False, False),
    'subs, changed': ('POST', 'op/subs', {'param': {'defs': ['Note', 'Note/one']}, 'session': SESSION}, {}, True, False),
    'subs, dropped': ('POST', 'op/subs', {'param': {'delete': True}, 'session': 'a-session-that-is-no-more'}, {}, True, False),
    'public': ('POST', 'op/Hello', {}, {}, True, False),
    'public, safe': ('POST', 'op/HelloSafely', {}, {}, False, False),
    'public, granting': ('POST', 'op/Look', {'param': {'class': 'Note', 'id': 'one', 'who': 'ann'}, 'syncs': [NAME]}, {}, False, False),
    'of the administrator': ('POST', 'op/Rule', {}, {}, True, True),
    'search of a module': ('POST', 'op/Rows', {'param': {'id': 'one'}}, {}, True, True),
    'a task': ('POST', 'op/task', {'param': {'op': 'Rows', 'param': {'id': 'one'}, 'start': 991231235959998}}, {}, True, True),
    'tasks, list': ('POST', 'op/tasks', {'param': {'list': {}}}, {}, False, True),
    'tasks, history': ('POST', 'op/tasks', {'param': {'history': {}}}, {}, False, True),
    'tasks, backlog': ('POST', 'op/tasks', {'param': {'backlog': True}}, {}, False, True),
    'tasks, hold': ('POST', 'op/tasks', {'param': {'hold': '0000000000000'}}, {}, True, True),
    'tasks, run': ('POST', 'op/tasks', {'param': {'run': '0000000000000'}}, {}, True, True),
}


def ask(stack, ns, path, is_administrator):
    method, where, body, headers, _, _ = PATHS[path]
    if 'Idempotency-Key' in headers:  # of each caller
        headers = {'Idempotency-Key': f'{headers["Idempotency-Key"]}-{is_administrator}'}
    if is_administrator:
        headers = {**headers, 'Authorization': f'Bearer {stack.key}'}
    return stack.http.request(method, f'{stack.url}/{ns}/{where}', json=body, headers=headers, timeout=30)


def code_of(answer):
    """Of a fault; None: it was served, though there may be no such document any more."""
    if answer.status_code < 400 or 'NDOCUMENT' in answer.text:
        return None
    if not answer.text:  # of HEAD
        return next(code for code, status in STATUS.items() if status == answer.status_code)
    return answer.json()['code']


def everything(stack):
    """All that is stored, but for the order of rows."""
    return [stack.psql('demo', f'select * from {table} order by 1, 2') for table in ('doc', 'item', 'taskqueue', 'subscription', 'idempotency')]


@pytest.mark.parametrize('own, z', itertools.product(STATES, STATES))
def test_every_path_obeys(demo, own, z):
    for is_administrator in (False, True):
        assert code_of(ask(demo, 'demo', 'a replay', is_administrator)) is None
    before = everything(demo)
    set_states(demo, own, z)
    for path, is_administrator in itertools.product(PATHS, (False, True)):
        changes, is_reserved = PATHS[path][4:]
        wanted = refusal(own, z, changes, is_administrator)
        if is_reserved and not is_administrator and wanted in (None, 'OREADONLY' if path != 'a task' else None):
            wanted = 'SCLOSED'
        for _ in range(2 if wanted else 1):  # by another worker, perhaps
            answer = ask(demo, 'demo', path, is_administrator)
            assert code_of(answer) == wanted, (path, is_administrator, answer.text)
            if wanted:
                assert answer.status_code == STATUS[wanted], (path, answer.text)
        if wanted in ('OREADONLY', 'OOFF'):
            assert answer.headers['Retry-After'] == '5', path
        if wanted in ('OREADONLY', 'OOFF', 'OGONE') and answer.text and path != 'put, large':
            assert answer.json()['detail'] == ('of its own' if own >= z else 'of all'), path
    if max(own, z) in (READONLY, GONE):
        assert everything(demo) == before
    assert code_of(ask(demo, 'lab', 'put of nothing', False)) == refusal(ON, z, True, False), 'the other namespace'


@pytest.mark.parametrize('own, z', itertools.product(STATES, STATES))
def test_tasks_live_events_and_ping_obey(demo, own, z):
    manager = Manager(demo)
    task = demo.op('demo', 'task', {'op': 'Rows', 'param': {'id': 'one'}, 'start': 261121103000123}, admin=True)['out']['id']
    old = {is_administrator: Listener(demo, 'Note', ns='demo', admin=is_administrator) for is_administrator in (False, True)}
    for listener in old.values():
        listener.opened()
    set_states(demo, own, z)
    words, highest = ('of its own' if own >= z else 'of all'), max(own, z)
    # Live events: a new connection is judged behind the change, and with it all that are open.
    for is_administrator, listener in old.items():
        wanted = refusal(own, z, False, is_administrator)
        try:
            again, code = Listener(demo, 'Note', ns='demo', admin=is_administrator), None
            again.close()
        except Problem as problem:
            code = problem.code
            assert problem.body['detail'] == words
        assert code == wanted
        if wanted:
            wait_until(lambda one=listener: not one.is_open, what='the end of the stream')
            assert listener.events[-1] == ('closed', {'code': wanted, 'detail': words}) and listener.retry >= 2000
        else:
            said = {'state': highest, 'message': words}
            wait_until(lambda one=listener: one.events[-1] == ('state', said), what='the state')
            assert listener.is_open and {name for name, _ in listener.events} == {'ready', 'state'}
            listener.close()
    # Tasks: they wait, and nothing is noted of them.
    wanted = refusal(own, z, True, False)
    row = demo.psql('demo', 'select * from taskqueue where taskid = %s', (task,))
    for answer in (manager.post(task), manager.post(param={'run': [task]}), manager.post(param={'scan': {}}), manager.post(param={'reported': []})):
        assert code_of(answer) == wanted, answer.text
    if wanted:
        assert demo.psql('demo', 'select * from taskqueue where taskid = %s', (task,)) == row
        assert demo.psql('demo', 'select count(*) from task_history where taskid = %s', (task,)) == [(0,)]
    # Ping is answered in every state.
    for key in ({}, {'Authorization': f'Bearer {demo.key}'}):
        answer = demo.http.get(f'{demo.url}/demo/ping', headers=key, timeout=30).json()
        assert answer['state'] == highest and answer['message'] == words
        assert answer['off'] == (words if highest >= OFF else 0) and answer['db'] == ('?' if highest == GONE else 'ok')
    # psql is not affected, nor is z, where the administrator changes it back.
    demo.psql('demo', "select put_item('Note', 'by-psql', 'Main', '', '{}')")
    assert demo.get('z', ('Namespace', 'demo'), admin=True)['v']
    assert code_of(demo.request('POST', '/z/op/get', json={})) == 'SCLOSED'
    set_states(demo)
    if wanted:
        assert manager.run(task)['result'] == 'done'


@pytest.mark.parametrize('state', [READONLY, OFF, GONE])
def test_a_manager_waits_and_counts_no_failure(demo, state):
    """The real one: tasks of a namespace that is stopped wait, and are found when it is on."""
    task = demo.op('demo', 'task', {'op': 'Rows', 'param': {'id': 'one'}}, admin=True)['out']['id']
    set_states(demo, state)
    log = len(demo.log('queue'))
    demo.step('queue', 'start')
    try:
        wait_until(lambda: f'namespace=demo runs no tasks code={["", "OREADONLY", "OOFF", "OGONE"][state]}' in demo.log('queue')[log:],
                   what='the refusal')
        assert demo.psql('demo', 'select retry, starttime from taskqueue where taskid = %s', (task,)) == [(0, None)]
        set_states(demo)
        wait_until(lambda: not demo.psql('demo', 'select 1 from taskqueue where taskid = %s', (task,)), what='the task')
        assert 'failed' not in demo.log('queue')[log:] and 'warning' not in demo.log('queue')[log:]
    finally:
        demo.step('queue', 'stop', 'now')


def write_past_checks(stack, code, **members):
    conf = stack.get('z', ('Namespace', code), admin=True)['items'][0]['j']
    stack.write_configuration(code, 'Conf', json.dumps({**conf, **members}, separators=(',', ':'), ensure_ascii=False))


@pytest.mark.parametrize('state', ['readonly', 2, None, 7, -1, 1.5, True, [], {}])
def test_a_malformed_state_is_closed_to_all_but_the_administrator(demo, state):
    """Of a namespace and of z; each worker says so once."""
    for code in ('demo', 'z'):
        set_states(demo)
        write_past_checks(demo, code, state=state)
        for path in PATHS:
            assert code_of(ask(demo, 'demo', path, False)) == 'OOFF', path
            assert code_of(ask(demo, 'demo', path, True)) is None, path
    set_states(demo)
    if state != 2:
        lines = re.findall(r'stampd\[(\d+)\] warning: document Namespace/demo: its item Conf is malformed member=state', demo.log())
        assert lines, 'the log'


def test_malformed_configuration_of_z(demo):
    """A text that is no object: closed, until it is repaired with psql or the operation put."""
    conf = demo.get('z', ('Namespace', 'z'), admin=True)['items'][0]['j']
    try:
        demo.write_configuration('z', 'Conf', '[1]')
        assert code_of(ask(demo, 'demo', 'get', False)) == 'OOFF' and code_of(ask(demo, 'demo', 'put', True)) is None
        demo.put('z', {'c': 'Namespace', 'id': 'z', 'delete': True}, admin=True)
        assert code_of(ask(demo, 'demo', 'put', False)) is None, 'without a document it is on'
    finally:
        demo.put('z', {'c': 'Namespace', 'id': 'z', 'items': [{'c': 'Conf', 'j': conf}]}, admin=True)


@pytest.mark.parametrize('own, z', [(READONLY, ON), (ON, READONLY), (OFF, ON), (ON, GONE)])
def test_the_keeper_changes_nothing(demo, own, z):
    def wait_for_rounds(count):
        """As many from their beginning to their end: one may be in progress."""
        begun = rounds()
        wait_until(lambda: rounds() > begun + count, what=f'{count} rounds')

    def rounds():
        return int(re.search(r'stampd_purge_rounds_total (\d+)', demo.probe('/metrics').text)[1])
    set_states(demo, own, z)
    wait_for_rounds(1)
    demo.psql('demo', "insert into subscription (session, version, until) values ('session-that-has-ended', 1, 1)")
    wait_for_rounds(2)
    assert demo.psql('demo', "select 1 from subscription where session = 'session-that-has-ended'")
    set_states(demo)
    wait_until(lambda: not demo.psql('demo', "select 1 from subscription where session = 'session-that-has-ended'"), what='its end')


def test_clients_get_label_theme_and_options(demo):
    """With every ping, also of strangers and in every state; what is malformed or too long is left out."""
    conf = demo.get('z', ('Namespace', 'demo'), admin=True)['items'][0]['j']

    def told(state=ON, **more):
        demo.write_configuration('demo', 'Conf', json.dumps({**conf, 'state': state, **more}, separators=(',', ':'), ensure_ascii=False))
        answer = demo.ping('demo').json()
        assert answer['state'] == state
        return {name: value for name, value in answer.items() if name in more}
    whole = {'label': 'Chess “club”', 'theme': 'dark', 'options': {'a': [1, {'b': None}], 'é': '"'}}
    for state in STATES:
        assert told(state, **whole) == whole
    longest = {'label': 'é' * 100, 'theme': 't' * 64, 'options': {'o': 'x' * (4096 - 8)}}
    assert len(json.dumps(longest['options'], separators=(',', ':'))) == 4096
    assert set(told(**longest)) >= {'label', 'theme'}
    for wrong in ({'label': 'é' * 101}, {'theme': 't' * 65}, {'options': {'o': 'x' * 4096}}, {'options': []}, {'theme': 1}, {'label': None}):
        assert told(**wrong) == {}
    assert told(label='', theme='', options={}) in ({'options': {}}, {})


def stampctl(stack, *words, status=0):
    done = subprocess.run([BUILD / 'src/stampctl', *words, '--config', stack.path / 'etc/stampd.conf', '--admin-conninfo',
                           stack.conninfo_of_server()], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_stampctl_sets_states(demo):
    def listed(code='demo'):
        return next(row for row in map(json.loads, stampctl(demo, 'ns', 'list', '--json').splitlines()) if row['code'] == code)

    def is_refused(code):
        return wait_until(lambda: code_of(ask(demo, 'demo', 'put', False)) == code, what=str(code)) or True
    stampctl(demo, 'ns', 'state', 'demo', 'readonly', 'moving house')
    assert is_refused('OREADONLY') and (listed()['state'], listed()['message']) == ('readonly', 'moving house')
    assert 'readonly: moving house' in subprocess.run([BUILD / 'src/stampctl', 'ping', demo.url, 'demo', '--ca', demo.http.verify],
                                                      capture_output=True, text=True).stdout
    stampctl(demo, 'ns', 'off', 'demo', 'back at ten')
    assert is_refused('OOFF') and (listed()['state'], listed()['message']) == ('off', 'back at ten')
    assert ' off       back at ten' in stampctl(demo, 'ns', 'list')
    stampctl(demo, 'ns', 'state', 'demo', 'gone')
    assert is_refused('OGONE') and (listed()['state'], listed()['message']) == ('gone', None)
    stampctl(demo, 'ns', 'on', 'demo')
    assert is_refused(None) and listed()['state'] == 'on'
    stampctl(demo, 'ns', 'state', 'z', 'off', 'everything is')
    assert is_refused('OOFF') and listed()['state'] == 'on' and listed('z')['state'] == 'off'
    stampctl(demo, 'ns', 'on', 'z')
    assert is_refused(None)
    for words in (('demo', 'shut'), ('demo', 'readonly', ''), ('demo', 'readonly', 'x' * 1001)):
        assert 'expected' in stampctl(demo, 'ns', 'state', *words, status=2)


def test_another_host_obeys_at_its_next_request():
    """hosts = many: whichever host changes the state, of the namespace or of z."""
    settings = {'hosts': 'many'}
    with Stack('many', workers=2, settings=settings, namespaces=STACK['namespaces']) as one, \
            Stack('twin', workers=2, beside=one, settings=settings) as other:
        put = PATHS['put'][2]
        for host in (one, other):
            for _ in range(4):  # by each worker
                assert code_of(host.request('POST', '/demo/op/put', json=put)) is None
        for here, there in ((one, other), (other, one)):
            for own, z, code in ((READONLY, ON, 'OREADONLY'), (ON, OFF, 'OOFF'), (GONE, ON, 'OGONE')):
                set_states(here, own, z)
                for _ in range(4):
                    assert code_of(there.request('POST', '/demo/op/put', json=put)) == code
                set_states(here)
                assert code_of(there.request('POST', '/demo/op/put', json=put)) is None


def questions(stack):
    return stack.psql('z', 'select case when is_called then last_value else 0 end from question_number')[0][0]


def test_the_command_ends_when_the_servers_obey(demo):
    """A worker that is not told serves what was before; as soon as the command has ended, none does."""
    put, number = PATHS['put'][2], questions(demo)
    assert code_of(demo.request('POST', '/demo/op/put', json=put)) is None
    with demo.relay_stopped():
        program = subprocess.Popen(demo.admin_words('ns', 'state', 'demo', 'off'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: questions(demo) > number, what='the question')
        assert demo.psql('z', 'select count(*) from servers_missing((select last_value from question_number))') == [(1,)]
        assert code_of(demo.request('POST', '/demo/op/put', json=put)) is None and program.poll() is None
    assert program.wait(timeout=240) == 0, program.communicate()
    for state, code in (('gone', 'OGONE'), ('readonly', 'OREADONLY'), ('on', None), ('off', 'OOFF'), ('on', None)):
        stampctl(demo, 'ns', 'state', 'demo', state)
        for _ in range(4):
            assert code_of(demo.request('POST', '/demo/op/put', json=put)) == code


@pytest.mark.plain
def test_a_dead_server_holds_up_nobody_for_long(demo):
    """Its row stays behind; a server that is connected and does not answer is another matter."""
    demo.psql('z', "insert into server values ('elsewhere, process 1', 1, now(), 0)")
    done = demo.admin('ns', 'state', 'demo', 'off')
    assert 'elsewhere, process 1 is not connected' in done.error
    assert [name for name, in demo.psql('z', 'select name from server')] == [name for name, in demo.psql('demo', 'select name from server')]
    assert len(demo.psql('z', 'select name from server')) == 1


@pytest.mark.plain
def test_a_server_that_stops_is_not_waited_for():
    with Stack('leaves', workers=1, namespaces={'z': 'closed', 'demo': 'open'}) as stack:
        wait_until(lambda: stack.psql('z', 'select 1 from server'), what='the row of the server')
        stack.step('stampd', 'stop', 'now')
        assert stack.psql('z', 'select name from server') == [] and stack.psql('demo', 'select name from server') == []
        stack.admin('ns', 'state', 'demo', 'off')

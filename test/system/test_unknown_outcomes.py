"""What a client is answered when PostgreSQL's session is lost at a statement that changes something outside of a commit of documents: each
statement of src/store/changes_table.h, cut before the server gets it, and after it has committed it."""
import json
import re
import secrets
import shutil
import ssl

import pytest

from bad_network import Client
from cutter import AFTER, BEFORE, Cutter
from kit import Kit
from manager import PARKED, Manager
from queue_worker import KEY, call, declare, queue
from stack import PATIENCE_S, SOURCE, Problem, wait_until
from test_workers import running

pytestmark = pytest.mark.plain

SESSION = secrets.token_hex(16)
STACK = {'workers': 1, 'settings': {'restart_young_ms': 0, 'task_history_param_bytes': 100, 'limit_definitions': 2}}
TABLE = re.findall(r'^CHANGE\((\w+), (\w+)\)$', (SOURCE / 'src/store/changes_table.h').read_text(), re.MULTILINE)
STATEMENTS = {}  # by word: name, text
for path in SOURCE.glob('src/store/statements_*_table.h'):
    for word, name, literals in re.findall(r'^STATEMENT\(\s*(\w+),\s*"(\w+)",\s*\d+,((?:\s*"(?:[^"\\]|\\.)*")+)\)', path.read_text(), re.MULTILINE):
        STATEMENTS[word] = name, ''.join(json.loads(literal) for literal in re.findall(r'"(?:[^"\\]|\\.)*"', literals))


def of_kind(*kinds):
    return [word for word, kind in TABLE if kind in kinds]


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = kit.build('record.c')
    STACK['settings']['records_mb'] = 4
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def cutter(stack):
    declare(stack, [queue(16, 'resize', request='anybody')])
    with Cutter(stack) as cutter:
        stack.restart_stampd()  # its sessions go through the cutter from here on
        yield cutter


@pytest.fixture
def manager(stack, cutter):
    stack.psql('lab', 'truncate taskqueue, task_history, task_paused, task_limit, subscription cascade')
    return Manager(stack, 'lab')


def tasks(stack, **wish):
    return stack.op('lab', 'tasks', wish, admin=True)['out']


def ask(stack, op='put', param=None):
    return stack.op('lab', 'task', {'op': op, 'param': param or {'docs': []}, 'delay': 3600}, admin=True)['out']['id']


def start_of(stack, taskid):
    found = stack.psql('lab', 'select startat from taskqueue where taskid = %s', (taskid,))
    return found[0][0] if found else None


def taken(stack):
    taskid = stack.op('lab', 'task', {'op': 'resize', 'param': {}}, admin=True)['out']['id']
    (task,) = call(stack, 'take', qn=16)['tasks']
    assert task['id'] == taskid
    return {name: task[name] for name in ('id', 'starttime', 'retry')}


# For each statement: prepares, and returns the request that changes something, and whether that is done now.

def move(stack, manager):
    taskid, start = ask(stack), 990101000000000
    return lambda: tasks(stack, move={'id': taskid, 'startat': start}), lambda: start_of(stack, taskid) == start


def hold(stack, manager):
    taskid = ask(stack)
    return lambda: tasks(stack, hold=taskid), lambda: start_of(stack, taskid) == PARKED


def drop(stack, manager):
    taskid = ask(stack)
    return lambda: tasks(stack, drop=taskid), lambda: start_of(stack, taskid) is None


def hold_all(stack, manager):
    taskid = ask(stack)
    return lambda: tasks(stack, hold={'op': 'put'}), lambda: start_of(stack, taskid) == PARKED


def redrive(stack, manager):
    manager.scan()  # the database has the limits of the arguments that the history keeps
    taskid = ask(stack)
    tasks(stack, drop=taskid)
    return lambda: tasks(stack, redrive={'op': 'put'}), lambda: start_of(stack, taskid) is not None


def pause(stack, manager):
    return lambda: tasks(stack, pause={'qn': 3}), lambda: stack.psql('lab', 'select 1 from task_paused where qn = 3') != []


def limit(stack, manager):
    return (lambda: tasks(stack, limit={'op': 'put', 'running': 3}),
            lambda: stack.psql('lab', "select 1 from task_limit where opname = 'put'") != [])


def cancel(stack, manager):
    taskid = ask(stack)
    return lambda: stack.op('lab', 'owntask', {'cancel': taskid}, admin=True), lambda: start_of(stack, taskid) is None


def keep(stack, manager):
    claim = taken(stack)
    return (lambda: call(stack, 'keep', **claim, progress='half'),
            lambda: stack.psql('lab', 'select progress from taskqueue where taskid = %s', (claim['id'],)) == [('half',)])


def take(stack, manager, most=1):
    taskid = stack.op('lab', 'task', {'op': 'resize', 'param': {}}, admin=True)['out']['id']
    return (lambda: call(stack, 'take', qn=16, n=most),
            lambda: stack.psql('lab', 'select starttime is not null from taskqueue where taskid = %s', (taskid,)) == [(True,)])


def reported(stack, manager):
    taskid = ask(stack)
    stack.psql('lab', 'update taskqueue set retry = 1 where taskid = %s', (taskid,))

    def report():
        answer = manager.post(param={'reported': [{'id': taskid, 'retry': 1}]})
        if answer.status_code != 200:
            raise Problem(answer)
    return report, lambda: stack.psql('lab', 'select coalesce(reported, 0) from taskqueue where taskid = %s', (taskid,)) == [(1,)]


def subs(stack, param, **more):
    return stack.op('lab', 'subs', param, session=SESSION, **more)


def subscribed(stack):
    return stack.psql('lab', 'select vouched from subscription where session = %s and until > 0', (SESSION,))


def subscribe(stack, manager):
    return lambda: subs(stack, {'defs': ['Note']}), lambda: subscribed(stack) != []


def vouch(stack, manager):
    return lambda: subs(stack, {'defs': ['Note']}, admin=True), lambda: subscribed(stack) == [(True,)]


def unsubscribe(stack, manager):
    subs(stack, {'defs': ['Note']})
    return lambda: subs(stack, {'delete': True}), lambda: subscribed(stack) == []


ONCE = {'TASK_MOVE': move, 'TASK_HOLD': hold, 'TASK_DROP': drop, 'TASK_DO': hold_all, 'TASK_REDRIVE': redrive, 'TASK_PAUSE': pause,
        'TASK_LIMIT': limit, 'TASK_CANCEL': cancel}
AGAIN = {'TASK_KEEP': keep, 'TASK_REPORTED': reported, 'SUBSCRIPTIONS_PUT': subscribe, 'SUBSCRIPTIONS_VOUCH': vouch,
         'SUBSCRIPTIONS_DROP': unsubscribe}


def unknown(act):
    """It ends as unknown, without a phase."""
    with pytest.raises(Problem) as problem:
        act()
    body = problem.value.body
    assert (body['code'], body['status'], 'phase' in body) == ('XUNKNOWN', 500, False), body


def test_each_change_has_a_test():
    assert set(of_kind('ONCE')) == {*ONCE, 'TASK_BACK'} and set(of_kind('AGAIN')) == set(AGAIN)
    assert {word for word, _ in TABLE} <= set(STATEMENTS) and len(dict(TABLE)) == len(TABLE)


@pytest.mark.parametrize('when', [BEFORE, AFTER])
@pytest.mark.parametrize('word', ONCE)
def test_what_is_made_once_is_unknown(stack, manager, cutter, word, when):
    act, is_done = ONCE[word](stack, manager)
    assert not is_done()
    cutter.arm(STATEMENTS[word][0], when)
    unknown(act)
    assert cutter.cuts == 1, 'it is not repeated'
    assert is_done() == (when == AFTER)
    cutter.arm(None, None)
    if not is_done():
        act()
        assert is_done(), 'the next session does it'


@pytest.mark.parametrize('when, times, ended', [(BEFORE, 1, True), (BEFORE, 2, False), (AFTER, 1, True), (AFTER, 2, True)])
def test_an_attempt_of_the_server_is_ended_by_one_of_two_tries(stack, manager, cutter, when, times, ended):
    """If neither has, it will be found lost."""
    taskid = stack.op('lab', 'task', {'op': 'ChangeAndFail', 'param': {'there': True}}, admin=True)['out']['id']
    start = len(stack.log())
    cutter.arm('task_back', when, times=times)
    assert failure(manager.post(taskid))['code'] == 'AFAILED'
    assert cutter.cuts == times
    assert ('cannot be put back code=XUNKNOWN' in stack.log()[start:]) == ((when, times) != (BEFORE, 1)), 'else it is not known which of the two did it'
    assert stack.psql('lab', 'select starttime is null, retry from taskqueue where taskid = %s', (taskid,)) == [(True, 1) if ended else (False, 0)]


@pytest.mark.parametrize('when', [BEFORE, AFTER])
@pytest.mark.parametrize('name, more, statement', [('done', {}, 'task_end_taken'), ('fail', {'code': 'BROKEN'}, 'task_back_taken')])
def test_an_end_of_an_external_worker_can_be_sent_again(stack, manager, cutter, name, more, statement, when):
    claim = taken(stack)
    ends = 'select count(*) from task_history'
    cutter.arm(statement, when)
    unknown(lambda: call(stack, name, **claim, **more))
    assert cutter.cuts == 1 and stack.psql('lab', ends) == [(int(when == AFTER),)]
    cutter.arm(None, None)
    assert call(stack, name, **claim, **more)['result'] in ('done', 'failed')
    assert stack.psql('lab', ends) == [(1,)]


@pytest.mark.parametrize('when', [BEFORE, AFTER])
@pytest.mark.parametrize('word', of_kind('AGAIN'))
def test_what_may_be_made_twice_is_made_again(stack, manager, cutter, word, when):
    act, is_done = AGAIN[word](stack, manager)
    assert not is_done()
    cutter.arm(STATEMENTS[word][0], when)
    act()
    assert is_done() and cutter.cuts == 1


@pytest.mark.parametrize('when', [BEFORE, AFTER])
@pytest.mark.parametrize('word', of_kind('AGAIN'))
def test_what_fails_again_is_unknown(stack, manager, cutter, word, when):
    act, is_done = AGAIN[word](stack, manager)
    cutter.arm(STATEMENTS[word][0], when, times=2)
    unknown(act)
    assert cutter.cuts == 2 and is_done() == (when == AFTER)


@pytest.mark.parametrize('when', [BEFORE, AFTER])
@pytest.mark.parametrize('name, most', [('task_take_one', 1), ('task_take', 2)])
def test_a_claim_may_have_been_given(stack, manager, cutter, name, most, when):
    stack.restart_stampd()  # a worker that has found nothing takes one as it takes several
    act, is_done = take(stack, manager, most)
    cutter.arm(name, when)
    unknown(act)
    assert is_done() == (when == AFTER) and cutter.cuts == 1


def test_a_task_of_others_that_may_wait_again_is_none_of_a_take(stack, manager, cutter):
    """Whether the lost one was put back is not what the request is for: what waits now is given, the rest to the next request."""
    for when, times, has_one in ((BEFORE, 1, True), (AFTER, 1, True), (BEFORE, 2, False), (AFTER, 2, True)):
        lost = taken(stack)
        stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1')
        cutter.arm('task_back', when, times=times)
        found = call(stack, 'take', qn=16)['tasks']
        assert cutter.cuts == times and [(task['id'], task['retry']) for task in found] == ([(lost['id'], 1)] if has_one else [])
        cutter.arm(None, None)
        (task,) = found or call(stack, 'take', qn=16)['tasks']
        assert task['retry'] == 1 and stack.psql('lab', 'select exc from task_history') == [('LOST',)]
        stack.psql('lab', 'truncate taskqueue, task_history')


@pytest.fixture
def nothing_beside(stack):
    """Commits that end attempts claim nothing: what is due is left to what follows them."""
    name = 'stampd.task_take_beside(int, text, int, bigint, bigint, text, bigint, text)'
    ((before,),) = stack.psql('lab', 'select pg_get_functiondef(%s::regprocedure)', (name,))
    head = before[:before.index('AS $function$')].replace('LANGUAGE plpgsql', 'LANGUAGE sql')
    stack.psql('lab', f'{head} as $$ select * from stampd.taskqueue where false $$')
    yield
    stack.psql('lab', before)


@pytest.mark.parametrize('name, more', [('done', {}), ('done', {'docs': []}), ('fail', {'code': 'BROKEN', 'delay': 600})])
@pytest.mark.parametrize('when', [BEFORE, AFTER])
def test_a_claim_after_an_end_that_may_have_been_made_is_given(stack, manager, cutter, nothing_beside, name, more, when):
    claim = taken(stack)
    taskid = stack.op('lab', 'task', {'op': 'resize', 'param': {}}, admin=True)['out']['id']
    cutter.arm('task_take', when)
    out = call(stack, name, **claim, **more, take={'qn': 16, 'wait': 10})
    assert cutter.cuts == 1 and out['result'] in ('done', 'failed')
    assert [task['id'] for task in out['tasks']] == ([taskid] if when == AFTER else []) and (out['pause'] > 0) == (when == BEFORE)
    assert stack.psql('lab', 'select starttime is not null from taskqueue where taskid = %s', (taskid,)) == [(when == AFTER,)]


@pytest.mark.parametrize('when', [BEFORE, AFTER])
@pytest.mark.parametrize('words, statement', [(('worker.sh', 'echo', '1'), 'task_end_taken'), (('worker.py',), 'task_end_one'),
                                              (('worker.sh', 'false'), 'task_back_taken')])
def test_the_example_workers_send_an_end_again(stack, manager, cutter, tmp_path, words, statement, when):
    """So no claim has to end by itself: not that of the task, nor that of the next one."""
    cutter.arm(statement, when)
    for name in ('one', 'two'):
        stack.op('lab', 'task', {'op': 'resize', 'param': {'id': name, 'text': 'hello'}}, admin=True)
    with running(stack, tmp_path, *words, key=KEY):
        wait_until(lambda: stack.psql('lab', 'select count(*) from task_history') == [(2,)], what='both ends')
    assert cutter.cuts == 1
    assert stack.psql('lab', 'select distinct exc, retry from task_history') == [('FAILED' if 'false' in words else None, 0)]


@pytest.mark.parametrize('when', [BEFORE, AFTER])
def test_a_commit_of_unknown_outcome_has_no_phase(stack, manager, cutter, when):
    stack.put('lab', {'c': 'Note', 'id': 'cut', 'items': [{'c': 'Text', 'j': 'a'}]})
    cutter.arm('core_one', when)
    unknown(lambda: stack.put('lab', {'c': 'Note', 'id': 'cut', 'items': [{'c': 'Text', 'j': when}]}))
    items = stack.get('lab', ('Note', 'cut'))['items']
    assert [item['j'] for item in items if item['c'] == 'Text'] == [when if when == AFTER else 'a']


@pytest.mark.parametrize('when', [BEFORE, AFTER])
def test_the_client_in_python_changes_a_document_once(stack, manager, cutter, when):
    stack.clear('lab', 'Note')
    with Client(f'{stack.url}/lab', context=ssl.create_default_context(cafile=stack.http.verify)) as client:
        for number in range(3):
            cutter.arm('idempotency', when)
            client.update([('Note', 'sum')], lambda read: [
                {'c': 'Note', 'id': 'sum', 'items': [{'c': 'Text', 'j': sum(item['j'] for item in read[0]['items']) + 1}]}], patience_s=PATIENCE_S)
            assert cutter.cuts == 1
        assert client.get(('Note', 'sum'))[0]['items'][0]['j'] == 3


def test_what_only_counts_is_repeated(stack, manager, cutter):
    ask(stack)
    for name, wish, found in (('task_do', {'hold': {'op': 'put', 'dry': True}}, 1), ('task_redrive', {'redrive': {'op': 'put', 'dry': True}}, 0),
                              ('task_list', {'list': {}}, None)):
        cutter.arm(name, AFTER)
        out = tasks(stack, **wish)
        assert cutter.cuts == 1 and out.get('found') == found


def test_what_is_refused_has_its_phase(stack, manager, cutter):
    """Nothing was changed, and that is known."""
    claim = taken(stack)
    stack.psql('lab', 'update taskqueue set retry = 7 where taskid = %s', (claim['id'],))
    for act, code in ((lambda: call(stack, 'fail', **claim), 'ACLAIM'), (lambda: call(stack, 'keep', **claim), 'ACLAIM'),
                      (lambda: subs(stack, {'drop': ['Note']}), 'NSUBSCRIPTION'),
                      (lambda: subs(stack, {'add': ['Note/3']}), 'ALIMIT')):
        if code == 'ALIMIT':
            subs(stack, {'defs': ['Note/1', 'Note/2']})
        with pytest.raises(Problem) as problem:
            act()
        assert (problem.value.body['code'], problem.value.body['phase']) == (code, 1)


# --- records ---

def failure(answer):
    assert answer.status_code != 200
    return answer.json()


def test_what_a_module_has_changed_in_memory_is_not_denied(stack, manager):
    """The changes stay, though nothing of the rest of the request is done."""
    def run(**param):
        return failure(stack.request('POST', '/lab/op/ChangeAndFail', json={'param': param}))
    body = run()
    assert (body['code'], 'phase' in body) == ('AFAILED', False), body
    body = run(there=True)
    assert (body['code'], body['phase']) == ('AFAILED', 1), 'that has changed nothing'
    body = run()
    assert 'phase' not in body, 'of each request'


def test_what_a_task_has_changed_in_memory_is_not_denied(stack, manager):
    def run(**param):
        taskid = stack.op('lab', 'task', {'op': 'ChangeAndFail', 'param': param}, admin=True)['out']['id']
        return failure(manager.post(taskid))
    body = run()
    assert (body['code'], 'phase' in body) == ('AFAILED', False), body
    body = run(there=True)
    assert (body['code'], body['phase']) == ('AFAILED', 1), 'its claim is none of its changes'


# --- the table is complete ---

WRITES = re.compile(r'\b(insert into|delete from|update \w+ |truncate|nextval\(|for (no key )?update|for share|pg_advisory_xact_lock)', re.IGNORECASE)


def changes(text, functions):
    """Does it change or lock rows, by its words or by a function that does?"""
    return bool(WRITES.search(text) or functions & set(re.findall(r'\b(\w+)\(', text)))


def writers(stack):
    """The functions that change or lock rows; PostgreSQL refuses that to those that are not volatile."""
    bodies = dict(stack.psql('lab', "select proname, prosrc from pg_proc where pronamespace = 'stampd'::regnamespace and provolatile = 'v'"))
    found, before = set(), None
    while found != before:
        before = set(found)
        found = {name for name, body in bodies.items() if changes(body, before)}
    return found


def test_the_table_names_all_statements_that_change_rows(stack, manager):
    functions = writers(stack)
    assert {'task_redrive', 'subscription_put', 'blob_claim'} <= functions and 'stamp_now' not in functions
    assert {word for word, (_, text) in STATEMENTS.items() if changes(text, functions)} == {word for word, _ in TABLE}

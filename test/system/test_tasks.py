"""Tasks: asked for by modules and clients, run on the request of a queue manager, ended by their own commit."""
import json
import shutil
import socket
import threading
import time

import pytest

from kit import Kit
from manager import PARKED, Manager
from stack import PATIENCE_S, refused, wait_until

STACK = {'workers': 4, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    module = kit.build('tasks.c')
    STACK['settings'] = {'modules': module, 'task_queues': 'Quiet=7 Fail=2', 'task_retries_of': 'Tell=1d Mail=', 'memory_mb': 256}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def manager(stack):
    stack.psql('demo', 'truncate taskqueue, task_history')
    stack.clear('demo', 'Counter', 'Told')
    return Manager(stack)


@pytest.fixture
def signs(kit, tmp_path):
    """Files through which operations of the module and tests tell each other that they are there."""
    folder = kit.path / tmp_path.name
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def ask(stack, op, param=None, admin=None, **more):
    return stack.op('demo', 'task', {'op': op, 'param': param or {}, **more}, admin=admin)['out']['id']


def plan(stack, *tasks, **more):
    stack.op('demo', 'Plan', {'tasks': list(tasks), **more})


def counted(stack, name):
    document = stack.get('demo', ('Counter', name))
    return document['items'][0]['j']['n'] if document['v'] else 0


def row(stack, taskid, columns):
    found = stack.psql('demo', f'select {columns} from taskqueue where taskid = %s', (taskid,))
    return found[0] if found else None


def rows(stack, columns, order='number'):
    return stack.psql('demo', f'select {columns} from taskqueue order by {order}')


def history(stack, columns='taskid, retry, exc'):
    return stack.psql('demo', f'select {columns} from task_history order by number')


# --- asking ---

def test_the_manager_is_told_of_what_may_start(stack, manager):
    """By an operation of a client, and by one that asks for several."""
    path = stack.path / 'run/stampd/wake-ups.sock'
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wakeups:
        wakeups.bind(str(path))
        path.chmod(0o666)
        wakeups.settimeout(PATIENCE_S)
        task = ask(stack, 'Count', {'id': 'x'})
        told = json.loads(wakeups.recv(65536))
        assert (told['ns'], told['id'], told['op']) == ('demo', task, 'Count')
        plan(stack, {'op': 'Count', 'param': {'id': 'x'}}, {'op': 'Count', 'delay': 10 ** 6}, {'op': 'Gate'})
        assert [json.loads(wakeups.recv(65536))['op'] for _ in range(2)] == ['Count', 'Gate']
    path.unlink()


def test_attempts_are_remembered_as_long_as_the_setting_says(stack, manager):
    for name in 'young', 'old':
        assert manager.run(ask(stack, 'Count', {'id': name}))['result'] == 'done'
    younger, older = (number for number, in stack.psql('demo', 'select number from task_history order by number'))
    for number, age in ((younger, '29 days'), (older, '31 days')):
        stack.psql('demo', 'update task_history set stoptime = stamp_of(now() - interval %s) where number = %s', (age, number))

    def is_purged():
        manager.scan()
        return stack.psql('demo', 'select 1 from task_history where number = %s', (older,)) == []

    wait_until(is_purged, what='the older one purged')
    assert stack.psql('demo', 'select number from task_history') == [(younger,)]


def test_a_task_exists_when_its_operation_is_committed_and_only_then(stack, manager):
    plan(stack, {'op': 'Count', 'param': {'id': 'x'}, 'info': 'words'})
    assert rows(stack, 'opname, param, info, retry, starttime, qn, priority, batch, resource, domain, exc') == [
        ('Count', '{"id": "x"}', 'words', 0, None, 0, 20, 1, None, None, None)]
    refused('APLAN', plan, stack, {'op': 'Count', 'param': {'id': 'x'}}, fail=True)
    assert len(rows(stack, '1')) == 1


def test_an_operation_that_only_asks_commits_too(stack, manager):
    before = stack.get('demo', ('Counter', 'x'))
    plan(stack, {'op': 'Count', 'param': {'id': 'x'}}, {'op': 'Count'})
    assert rows(stack, 'opname, param') == [('Count', '{"id": "x"}'), ('Count', '{}')]
    assert stack.get('demo', ('Counter', 'x')) == before


def test_a_client_asks_by_delay_or_start(stack, manager):
    now = stack.ping().json()['t']
    at_once, later = ask(stack, 'Count'), ask(stack, 'Count', delay=3600)
    then = ask(stack, 'Count', start=300101000000000, priority=255, info='i', domain='d')
    assert now <= row(stack, at_once, 'startat')[0] <= stack.ping().json()['t']
    assert stack.psql('demo', 'select startat >= stamp_of(now() + interval %s) and startat < stamp_of(now() + interval %s)'
                      ' from taskqueue where taskid = %s', ('59 minutes', '61 minutes', later)) == [(True,)]
    assert row(stack, then, 'startat, priority, info, domain') == (300101000000000, 255, 'i', 'd')


@pytest.mark.parametrize('wrong, argument', [
    ({}, 'op'), ({'op': 3}, 'op'), ({'op': 'Count', 'param': []}, 'param'), ({'op': 'Count', 'delay': -1}, 'delay'),
    ({'op': 'Count', 'start': 1}, 'start'), ({'op': 'Count', 'start': 261332000000000}, 'start'),
    ({'op': 'Count', 'start': 300101000000000, 'delay': 1}, 'delay'), ({'op': 'Count', 'start': PARKED}, 'start'),
    ({'op': 'Count', 'priority': 256}, 'priority'), ({'op': 'Count', 'info': ''}, 'info'), ({'op': 'Count', 'domain': 1}, 'domain'),
])
def test_what_no_task_can_be_is_refused(stack, manager, wrong, argument):
    assert refused('AARG', stack.op, 'demo', 'task', wrong).body['args'][0] == argument
    assert rows(stack, '1') == []


def test_an_unknown_operation_is_refused_at_the_door(stack, manager):
    refused('NOPERATION', stack.op, 'demo', 'task', {'op': 'Nothing'})
    refused('BMODULE', plan, stack, {'op': 'Nothing'})


@pytest.mark.parametrize('wrong', [{'delay': -1}, {'start': 5}, {'start': 300101000000000, 'delay': 1}, {'priority': 256},
                                   {'priority': -2}, {'param': [1]}])
def test_a_module_that_asks_for_what_cannot_be_is_told_so(stack, manager, wrong):
    refused('BMODULE', plan, stack, {'op': 'Count', **wrong})
    assert rows(stack, '1') == []


def test_limits(stack, manager):
    assert refused('ALIMIT', plan, stack, *[{'op': 'Count'}] * 101).body['args'] == ['limit_tasks', '100', '101']
    large = {'id': 'x' * 65536}
    assert refused('ALIMIT', ask, stack, 'Count', large).body['args'][:2] == ['limit_task_param_bytes', '65536']
    assert refused('ALIMIT', plan, stack, {'op': 'Count', 'param': large}).body['args'][:2] == ['limit_task_param_bytes', '65536']
    assert refused('ALIMIT', plan, stack, {'op': 'Count', 'info': 'x' * 256}).body['args'] == ['limit_name_bytes', '255', '256']
    assert rows(stack, '1') == []
    plan(stack, *[{'op': 'Count'}] * 100)
    assert len(rows(stack, '1')) == 100


def test_who_may_ask(stack, manager):
    """demo is open for reading only: who may not run an operation may not have it run either."""
    ask(stack, 'Count', {'id': 'x'})
    refused('SCLOSED', ask, stack, 'Secret')
    refused('SCLOSED', ask, stack, 'Quiet')
    refused('SCLOSED', ask, stack, 'put', {'docs': [{'c': 'Doc', 'id': 'x'}]})
    for op in ('Secret', 'Quiet', 'put'):
        ask(stack, op, {'docs': [{'c': 'Doc', 'id': 'x'}]} if op == 'put' else None, admin=True)
    refused('BREADONLY', stack.op, 'demo', 'Look', {'tasks': [{'op': 'Count'}]})
    refused('BMODULE', stack.op, 'demo', 'Checkpoint')


def test_queues_come_from_the_settings_else_from_the_operation(stack, manager):
    for op in ('Count', 'Slow', 'Quiet', 'Fail'):
        ask(stack, op, admin=True)
    assert rows(stack, 'opname, qn') == [('Count', 0), ('Slow', 3), ('Quiet', 7), ('Fail', 2)]


def test_one_operation_asks_twice_for_a_resource(stack, manager):
    plan(stack, {'op': 'Count', 'resource': 'r', 'param': {'id': '1'}, 'start': 300101000000000, 'priority': 3},
         {'op': 'Count', 'resource': 'r', 'param': {'id': '2'}, 'start': 290101000000000, 'priority': 9},
         {'op': 'Fail', 'resource': 'r'}, {'op': 'Count', 'priority': -1})
    assert rows(stack, 'opname, resource, param, startat, priority', 'priority')[:2] == [
        ('Count', None, '{}', rows(stack, 'startat', 'priority')[0][0], 0), ('Count', 'r', '{"id": "2"}', 300101000000000, 3)]
    assert len(rows(stack, '1')) == 3


def test_a_second_request_for_a_resource_is_told_the_task_that_waits(stack, manager):
    first = stack.op('demo', 'task', {'op': 'Count', 'resource': 'r', 'start': 300101000000000})['out']
    second = stack.op('demo', 'task', {'op': 'Count', 'resource': 'r', 'param': {'id': 'x'}, 'priority': 1})['out']
    assert second == first
    assert rows(stack, 'param, startat, priority') == [('{"id": "x"}', 300101000000000, 1)]


def test_a_request_that_is_repeated_under_its_key_asks_once(stack, manager):
    more = {'json': {'param': {'op': 'Count'}}, 'headers': {'Idempotency-Key': 'once'}}
    first, second = (stack.request('POST', '/demo/op/task', **more).json() for _ in range(2))
    assert first == second
    assert rows(stack, 'taskid') == [(first['out']['id'],)]


# --- running ---

def test_a_task_runs_once(stack, manager):
    task = ask(stack, 'Count', {'id': 'x'}, info='words')
    assert manager.due() == [task]
    assert manager.run(task) == {'id': task, 'result': 'done'}
    assert manager.run(task) == {'id': task, 'result': 'gone'}
    assert counted(stack, 'x') == 1
    assert history(stack, 'taskid, opname, info, retry, step, exc, stoptime >= starttime') == [
        (task, 'Count', 'words', 0, 1, None, True)]


def test_tasks_that_cannot_be_run_are_answered_with_200(stack, manager):
    later = ask(stack, 'Count', {'id': 'x'}, delay=60)
    start = row(stack, later, 'startat')[0]
    assert manager.run(later) == {'id': later, 'result': 'waiting', 'startat': start}
    assert manager.run('nosuchtask')['result'] == 'gone'
    assert manager.run('No-Name-Of-One')['result'] == 'gone'
    running = ask(stack, 'Count', {'id': 'x'})
    stack.psql('demo', "update taskqueue set starttime = 1, holder = 'x' where taskid = %s", (running,))
    assert manager.run(running) == {'id': running, 'result': 'running'}
    assert counted(stack, 'x') == 0


def test_a_manager_whose_clock_is_a_little_ahead_is_in_time(stack, manager):
    task = ask(stack, 'Count', {'id': 'x'})
    stack.psql('demo', "update taskqueue set startat = stamp_of(now() + interval '900 milliseconds')")
    assert manager.run(task)['result'] == 'done'


def test_only_who_has_the_key_may_run(stack, manager):
    task = ask(stack, 'Count', {'id': 'x'})
    for key in ('', 'wrong', stack.key):
        answer = manager.post(task, key=key)
        assert (answer.status_code, answer.json()['code']) == (403, 'SKEY')
    answer = stack.request('POST', f'/demo/od/{task}', query={'key': stack.queue_key})
    assert (answer.status_code, answer.json()['code']) == (400, 'AARG'), 'keys do not belong into addresses'
    assert stack.request('GET', f'/demo/od/{task}').status_code == 405
    assert stack.request('POST', f'/nosuch/od/{task}', json={'key': stack.queue_key}).status_code == 404
    assert counted(stack, 'x') == 0
    form = stack.request('POST', f'/demo/od/{task}', form={'key': stack.queue_key})
    assert form.json()['tasks'][0]['result'] == 'done'


@pytest.mark.parametrize('param', [None, {}, {'run': []}, {'run': 'x'}, {'run': ['!']}, {'run': ['abcdefgh'] * 2}, {'run': [1]},
                                   {'run': ['a' * 8 + str(n) for n in range(1001)]}, {'scan': 1}, {'scan': {'limit': 0}},
                                   {'scan': {'before': 'now'}}])
def test_what_no_manager_asks_is_refused(manager, param):
    answer = manager.post(param=param)
    assert (answer.status_code, answer.json()['code']) == (400, 'AARG')


def test_a_closed_namespace_runs_nothing(stack, manager):
    task = ask(stack, 'Count', {'id': 'x'})
    stack.psql('z', "select put_item('Namespace', 'demo', 'Conf', '', '{\"database\":\"stampd_demo\",\"access\":\"read\",\"state\":2,\"message\":\"soon\"}')")
    try:
        # Stamps are shared: when one worker has heard of it, all have.
        wait_until(lambda: manager.post(param={'scan': {}}).status_code == 503, what='the namespace closed')
        assert manager.post(task).status_code == 503
    finally:
        stack.psql('z', "select put_item('Namespace', 'demo', 'Conf', '', '{\"database\":\"stampd_demo\",\"access\":\"read\"}')")
    wait_until(lambda: manager.post(param={'scan': {}}).status_code == 200, what='the namespace open')
    assert counted(stack, 'x') == 0 and manager.due() == [task], 'no attempt was made, the first answer was not its end'


def test_a_task_is_told_of_itself_and_nobody_gets_its_result(stack, manager):
    task = ask(stack, 'Tell', {'id': 'x'}, info='words')
    answer = manager.post(task)
    assert answer.json() == {'tasks': [{'id': task, 'result': 'done'}]}
    told = stack.get('demo', ('Told', 'x'))['items'][0]['j']
    start = history(stack, 'starttime')[0][0]
    assert told.pop('left_ms') > 1700000
    assert told == {'is_task': True, 'id': task, 'info': 'words', 'start': start, 'retry': 0, 'step': 0, 'account': None,
                    'admin': False}
    assert 'afterwork was run' not in stack.log()
    assert stack.op('demo', 'Tell', {'id': 'x'}, admin=True)['out'] == {'nobody': 1}
    assert 'afterwork was run' in stack.log()
    told = stack.get('demo', ('Told', 'x'))['items'][0]['j']
    assert (told['is_task'], told['id'], told['start']) == (False, None, 0)


def test_built_in_operations_are_tasks_too(stack, manager):
    task = ask(stack, 'put', {'docs': [{'c': 'Counter', 'id': 'x', 'items': [{'c': 'N', 'j': {'n': 7, 'deep': [[[[1]]]]}}]}]}, admin=True)
    assert manager.run(task)['result'] == 'done'
    assert counted(stack, 'x') == 7


def test_tasks_make_tasks(stack, manager):
    ask(stack, 'Chain', {'id': 'x', 'left': 9})
    manager.work()
    assert counted(stack, 'x') == 10
    assert len(history(stack)) == 10


# --- metrics of operations ---

def test_ends_are_counted_by_operation(stack, manager):
    def counts(op):
        found = stack.metrics()
        return [found.get(f'stampd_task_operation_{name}_total{{op="{op}"}}', 0) for name in ('done', 'failed', 'seconds')]
    before = counts('Bulk')
    failed, *done = [ask(stack, 'Bulk', {'id': name, 'fail': name == 'a', 'pause_ms': 20}) for name in 'abc']
    manager.run_many([failed, *done])
    now = counts('Bulk')
    assert [now[i] - before[i] for i in (0, 1)] == [2, 1] and now[2] - before[2] >= 0.06
    gone = ask(stack, 'Count', {'id': 'x'})
    stack.psql('demo', "update taskqueue set opname = 'Gone' where taskid = %s", (gone,))
    manager.post(gone)
    assert not [name for name in stack.metrics() if '"Gone"' in name], 'only operations that there are have a line'


# --- checkpoints ---

def test_a_task_goes_on_while_it_leaves_a_checkpoint(stack, manager):
    task = ask(stack, 'Cycles', {'id': 'x', 'cycles': 7})
    assert manager.run(task)['result'] == 'done'
    assert counted(stack, 'x') == 7
    assert history(stack, 'taskid, retry, step, exc') == [(task, 0, 7, None)]


def test_the_progress_of_a_task_is_shown_while_it_runs(stack, manager, signs):
    """As of its last checkpoint, cut between two characters."""
    gate, outcomes = signs / 'gate', []
    task = ask(stack, 'Cycles', {'id': 'x', 'cycles': 2, 'gate': str(gate), 'progress': 'a' + 'é' * 300})
    assert row(stack, task, 'progress') == (None,)
    thread = threading.Thread(target=lambda: outcomes.append(manager.run(task)))
    thread.start()
    try:
        wait_until(lambda: row(stack, task, 'step') == (1,), what='the checkpoint')
        shown = 'a' + 'é' * 249
        assert stack.op('demo', 'tasks', {'show': task}, admin=True)['out']['task']['progress'] == shown
        assert stack.op('demo', 'owntask', {'show': task}, admin=True)['out']['progress'] == shown
    finally:
        gate.touch()
        thread.join(PATIENCE_S)
    assert outcomes[0]['result'] == 'done'


def test_a_task_stops_between_two_cycles_when_its_namespace_is_stopped(stack, manager, signs):
    """It keeps what its cycles have done, is not counted as failed, and goes on when the namespace is on."""
    def set_state(state):
        conf = stack.get('z', ('Namespace', 'demo'), admin=True)['items'][0]['j']
        stack.put('z', {'c': 'Namespace', 'id': 'demo', 'items': [{'c': 'Conf', 'j': {**conf, 'state': state}}]}, admin=True)
    gate, outcomes = signs / 'gate', []
    task = ask(stack, 'Cycles', {'id': 'x', 'cycles': 5, 'gate': str(gate), 'gated': 3})
    runner = threading.Thread(target=lambda: outcomes.append(manager.run(task)))
    runner.start()
    try:
        wait_until(lambda: counted(stack, 'x') == 2, what='the first cycles')
        set_state(1)
        gate.touch()
        runner.join()
        assert counted(stack, 'x') == 3
        assert outcomes[0]['result'] == 'more' and row(stack, task, 'retry, starttime') == (0, None)
    finally:
        gate.touch()
        set_state(0)
    while manager.run(task)['result'] == 'more':
        pass
    assert counted(stack, 'x') == 5


@pytest.mark.parametrize('how', ['fail', 'die'])
def test_after_a_failure_it_goes_on_from_its_last_checkpoint(stack, manager, how):
    task = ask(stack, 'Cycles', {'id': 'x', 'cycles': 5, how: 3})
    manager.post(task)
    assert counted(stack, 'x') == 3
    wait_until(lambda: manager.scan() and row(stack, task, 'retry, step, checkpoint') == (1, 3, '{"done":3}'))
    manager.hurry()
    wait_until(lambda: manager.run(task)['result'] == 'done')
    assert counted(stack, 'x') == 5


def test_a_task_whose_time_is_up_between_two_cycles_is_no_failure(stack, manager):
    """Slow has 4 seconds; one cycle alone is far from that."""
    task = ask(stack, 'Slow', {'id': 'x', 'cycles': 14, 'pause_ms': 400})
    results = []
    while not results or results[-1] == 'more':
        outcome = manager.run(task)
        results.append(outcome['result'])
    assert results[-1] == 'done' and len(results) > 1
    assert counted(stack, 'x') == 14
    assert [(retry, exc) for retry, exc in history(stack, 'retry, exc')] == [(0, 'MORE')] * (len(results) - 1) + [(0, None)]


def test_one_cycle_that_takes_too_long_is_a_failure(stack, manager):
    task = ask(stack, 'Slow', {'id': 'x', 'cycles': 1, 'pause_ms': 4500})
    outcome = manager.run(task, status=500)
    assert (outcome['result'], outcome['code'], outcome['retry']) == ('failed', 'XTIME', 1)
    assert counted(stack, 'x') == 0


# --- failures ---

def minutes_until(stack, taskid):
    return stack.psql('demo', 'select round(extract(epoch from to_timestamp(startat::text, \'YYMMDDHH24MISSMS\') - now() at time zone'
                      ' \'UTC\') / 60)::int from taskqueue where taskid = %s', (taskid,))[0][0]


def test_a_task_that_fails_for_ever_is_tried_later_and_later_then_parked(stack, manager):
    task = ask(stack, 'Fail', {'id': 'x'})
    for retry, minutes in enumerate([1, 10, 60, 180]):
        outcome = manager.run(task, status=500)
        assert (outcome['result'], outcome['code'], outcome['retry']) == ('failed', 'AFAIL', retry + 1)
        assert minutes_until(stack, task) == minutes
        assert row(stack, task, 'startat, retry, starttime, exc, report') == (
            outcome['startat'], retry + 1, None, 'AFAIL', 'The application refused the request. As told. (one, two)')
        assert manager.run(task)['result'] == 'waiting'
        manager.hurry()
    assert manager.run(task, status=500)['startat'] == PARKED
    assert row(stack, task, 'startat, retry, exc') == (PARKED, 5, 'AFAIL')
    assert manager.run(task) == {'id': task, 'result': 'waiting', 'startat': PARKED}
    assert manager.due() == []
    assert [exc for exc, in history(stack, 'exc')] == ['AFAIL'] * 5
    assert counted(stack, 'x') == 0


def test_the_answer_is_kept_if_it_is_not_too_large(stack, manager):
    sizes = [2, 2048, 2049, 9, None]
    tasks = [ask(stack, 'Bulk', {'id': 'x', **({'answer': size} if size else {})}) for size in sizes]
    assert {outcome['result'] for outcome in manager.run_many(tasks).values()} == {'done'}
    tasks.append(ask(stack, 'Bulk', {'id': 'x', 'answer': 3, 'steps': True}))
    assert manager.run(tasks[-1])['result'] == 'done'
    left = dict(stack.psql('demo', 'select taskid, length(result) from task_history where exc is null'))
    assert [left[task] for task in tasks] == [2, 2048, None, 9, None, 3]
    shown = stack.op('demo', 'owntask', {'show': tasks[3]}, admin=True)['out']
    assert (shown['state'], shown['result']) == ('done', 'a' * 7)


def test_operations_have_their_own_delays(stack, manager):
    task = ask(stack, 'Patient', {'id': 'x'})
    for minutes in 120, 240, 480:
        assert manager.run(task, status=500)['result'] == 'failed' and minutes_until(stack, task) == minutes, 'as the module declares'
        manager.hurry()
    assert manager.run(task, status=500)['startat'] == PARKED
    task = ask(stack, 'Tell', {'id': ''})
    manager.run(task, status=500)
    assert minutes_until(stack, task) == 1440, 'as the setting says'


def test_the_problem_of_an_attempt_is_told_as_that_of_an_operation(stack, manager):
    task = ask(stack, 'Fail', {'id': 'x', 'code': 'NTHING'})
    problem = manager.post(task).json()
    assert (problem['status'], problem['code'], problem['args'], problem['phase']) == (500, 'NTHING', ['one', 'two'], 1)


def test_a_failure_that_passes(stack, manager):
    task = ask(stack, 'Fail', {'id': 'x', 'times': 2})
    for _ in range(2):
        assert manager.run(task, status=500)['result'] == 'failed'
        manager.hurry()
    assert manager.run(task)['result'] == 'done'
    assert counted(stack, 'x') == 1
    assert history(stack, 'retry, exc') == [(0, 'AFAIL'), (1, 'AFAIL'), (2, None)]


def test_operations_and_exceptions_that_are_never_tried_again(stack, manager):
    for task in ask(stack, 'Once', {'id': 'x'}), ask(stack, 'Fail', {'id': 'x', 'final': True}):
        assert manager.run(task, status=500)['startat'] == PARKED
        assert row(stack, task, 'startat, retry, exc') == (PARKED, 1, 'AFAIL')


def test_an_operation_that_is_gone_from_the_code_is_parked_with_its_reason(stack, manager):
    stack.psql('demo', "select task_create('Gone')")
    task = manager.due()[0]
    assert manager.run(task, status=500)['code'] == 'NOPERATION'
    assert row(stack, task, 'startat, exc, report') == (PARKED, 'NOPERATION', 'The operation does not exist. (Gone)')


def test_a_param_that_cannot_be_read_is_a_failure(stack, manager):
    task = ask(stack, 'Count', {'id': 'x'})
    stack.psql('demo', "update taskqueue set param = '{'")
    assert manager.run(task, status=500)['code'] == 'AJSON'


def test_contention_is_met_as_by_any_operation(stack, manager, signs):
    """Another commit to the same document falls into the attempt: it is run again, in the same request."""
    gate, here = signs / 'gate', signs / 'here'
    task = ask(stack, 'Gate', {'id': 'x', 'gate': str(gate), 'here': str(here)})
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(manager.run(task)))
    thread.start()
    wait_until(here.is_symlink)
    stack.op('demo', 'Count', {'id': 'x'})
    gate.touch()
    thread.join(PATIENCE_S)
    assert outcomes[0]['result'] == 'done'
    assert counted(stack, 'x') == 2
    assert len(history(stack)) == 1


@pytest.mark.plain
def test_the_limit_of_a_task_is_its_own(stack, manager, signs):
    """It may take longer than an operation, and the ten seconds after which a worker is killed that does not end one."""
    gate, here = signs / 'gate', signs / 'here'
    task = ask(stack, 'Gate', {'id': 'x', 'gate': str(gate), 'here': str(here)})  # an operation, which has its time
    stack.set(limit_operation_s=1)
    try:
        outcomes = []
        thread = threading.Thread(target=lambda: outcomes.append(manager.run(task)))
        thread.start()
        wait_until(here.is_symlink)
        thread.join(13)
        gate.touch()
        thread.join(PATIENCE_S)
    finally:
        stack.set(limit_operation_s=60)
    assert outcomes and outcomes[0]['result'] == 'done' and counted(stack, 'x') == 1


# --- several at once ---

def test_one_task_is_run_by_one_of_many_managers(stack, manager, signs):
    gate, here = signs / 'gate', signs / 'here'
    task = ask(stack, 'Gate', {'id': 'x', 'gate': str(gate), 'here': str(here)})
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(manager.run(task)['result'])) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(outcomes) == 2)
    gate.touch()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(outcomes) == ['done', 'running', 'running']
    assert counted(stack, 'x') == 1


def test_a_late_attempt_changes_nothing(stack, manager, signs):
    """Declared lost while it runs, done by another attempt, then it ends."""
    gate, here = signs / 'gate', signs / 'here'
    task = ask(stack, 'Gate', {'id': 'x', 'gate': str(gate), 'here': str(here)})
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(manager.run(task)))
    thread.start()
    wait_until(here.is_symlink)
    assert manager.scan()['lost'] == [], 'it lives'
    (claim,) = row(stack, task, 'starttime')
    stack.psql('demo', "select task_put_back(%s, %s, 0, stamp_now(), true, 'LOST', '', stamp_now())", (task, claim))
    stack.psql('demo', "update taskqueue set opname = 'Count'")
    assert manager.run(task)['result'] == 'done'
    gate.touch()
    thread.join(PATIENCE_S)
    assert outcomes[0]['result'] == 'late'
    assert counted(stack, 'x') == 1
    assert history(stack, 'retry, exc') == [(0, 'LOST'), (1, None)]


def test_a_task_that_is_dropped_while_it_runs_does_not_commit(stack, manager, signs):
    gate, here = signs / 'gate', signs / 'here'
    task = ask(stack, 'Gate', {'id': 'x', 'gate': str(gate), 'here': str(here)})
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(manager.run(task)))
    thread.start()
    wait_until(here.is_symlink)
    stack.psql('demo', 'select task_drop(%s)', (task,))
    gate.touch()
    thread.join(PATIENCE_S)
    assert outcomes[0]['result'] == 'late'
    assert counted(stack, 'x') == 0


def test_a_new_request_for_a_resource_whose_task_runs_is_a_task_of_its_own(stack, manager, signs):
    gate, here = signs / 'gate', signs / 'here'
    plan(stack, {'op': 'Gate', 'param': {'id': 'x', 'gate': str(gate), 'here': str(here)}, 'resource': 'r'})
    (task,) = manager.due()
    thread = threading.Thread(target=manager.run, args=(task,))
    thread.start()
    wait_until(here.is_symlink)
    for _ in range(2):
        plan(stack, {'op': 'Gate', 'param': {'id': 'y', 'gate': str(gate)}, 'resource': 'r'})
    (second,) = manager.due()
    gate.touch()
    thread.join(PATIENCE_S)
    assert manager.run(second)['result'] == 'done'
    assert (counted(stack, 'x'), counted(stack, 'y')) == (1, 1)


def test_tasks_of_a_domain_run_one_at_a_time_in_their_order(stack, manager, signs):
    gate, here = signs / 'gate', signs / 'here'
    plan(stack, {'op': 'Gate', 'param': {'id': 'x', 'gate': str(gate), 'here': str(here)}, 'domain': 'd', 'priority': 5},
         {'op': 'Count', 'param': {'id': 'second'}, 'domain': 'd'}, {'op': 'Fail', 'param': {'id': 'y'}, 'domain': 'd'},
         {'op': 'Count', 'param': {'id': 'third'}, 'domain': 'd'}, {'op': 'Count', 'param': {'id': 'z'}, 'domain': 'other'})
    first, second, failing, third, other = (taskid for taskid, in rows(stack, 'taskid'))
    assert sorted(manager.due()) == sorted([first, other])
    assert manager.run(second)['result'] == 'turn'
    answers = []
    thread = threading.Thread(target=lambda: answers.append(manager.run(first)))
    thread.start()
    wait_until(here.is_symlink)
    assert manager.run(second)['result'] == 'turn'
    assert manager.due() == [other]
    gate.touch()
    thread.join(PATIENCE_S)
    assert answers[0]['next']['id'] == second and answers[0]['next']['domain'] == 'd'
    assert manager.run(third)['result'] == 'turn'
    assert manager.run(second)['next']['id'] == failing
    assert manager.run(failing, status=500)['next']['id'] == third, 'a failure does not hold the others back'
    again = manager.run(third)['next']
    assert (again['id'], again['startat']) == (failing, row(stack, failing, 'startat')[0]), 'nothing may start now: the first that may later'
    stack.psql('demo', 'select task_drop(%s)', (failing,))
    assert 'next' not in manager.run(ask(stack, 'Count', {'id': 'a'}, domain='d'))


def test_a_domain_is_told_of_by_what_may_start_now_else_by_what_may_first(stack, manager):
    """A manager asks for what starts soon: one that goes first then does not hide one that may start before."""
    soon = ask(stack, 'Count', {'id': 'x'}, domain='d', priority=1, delay=50)
    sooner = ask(stack, 'Count', {'id': 'x'}, domain='d', priority=9, delay=40)
    assert manager.due() == [] and manager.due(before=991231235959998) == [sooner]
    at_once = ask(stack, 'Count', {'id': 'x'}, domain='d')
    assert manager.due(before=991231235959998) == [at_once]
    assert manager.run(at_once)['next']['id'] == sooner
    stack.psql('demo', 'select task_move(taskid, stamp_now()) from taskqueue')
    assert manager.due() == [soon]


# --- batches ---

def bulk(stack, *wishes):
    plan(stack, *[{'op': 'Bulk', 'param': {'id': f'bulk{n % 3}', **wish}} for n, wish in enumerate(wishes)])
    return [taskid for taskid, in rows(stack, 'taskid')]


def bulk_count(stack):
    return sum(counted(stack, f'bulk{n}') for n in range(3))


def commits(stack):
    return len(set(stack.psql('demo', 'select xmin::text from task_history')))


def test_tasks_of_an_operation_share_a_commit(stack, manager):
    tasks = bulk(stack, *[{}] * 10)
    assert [due['batch'] for due in manager.scan()['due']] == [10] * 10
    assert {outcome['result'] for outcome in manager.run_many(tasks).values()} == {'done'}
    assert bulk_count(stack) == 10
    assert commits(stack) == 1
    assert len({version for version, in stack.psql('demo', "select version from doc where class = 'Counter' and ctime <> 0")}) == 1


def test_who_share_a_commit_end_in_the_order_of_their_names(stack, manager):
    """It is the order of locks, whatever that of the request."""
    tasks = sorted(bulk(stack, *[{}] * 10), reverse=True)
    assert {outcome['result'] for outcome in manager.run_many(tasks).values()} == {'done'}
    assert [task for task, in history(stack, 'taskid')] == tasks[::-1]


def test_more_than_a_batch_is_several_commits(stack, manager):
    tasks = bulk(stack, *[{}] * 25)
    assert {outcome['result'] for outcome in manager.run_many(tasks).values()} == {'done'}
    assert (bulk_count(stack), commits(stack)) == (25, 3)


def test_who_fails_is_taken_out_of_the_commit_and_runs_alone(stack, manager):
    tasks = bulk(stack, {}, {'fail': True}, {}, {'fail': True}, {'steps': True}, {}, {'id': ''})
    outcomes = manager.run_many(tasks)
    assert [outcomes[task]['result'] for task in tasks] == ['done', 'failed', 'done', 'failed', 'done', 'done', 'failed']
    assert [outcomes[task].get('code') for task in tasks] == [None, 'ABULK', None, 'ABULK', None, None, 'AARG']
    assert bulk_count(stack) == 3 + 2, 'the one with steps counts twice'
    assert [row(stack, task, 'retry') for task in tasks] == [None, (1,), None, (1,), None, None, (1,)]


def test_what_is_no_longer_the_attempts_leaves_the_batch(stack, manager, signs):
    plan(stack, *[{'op': 'Bulk', 'param': {'id': f'bulk{n}'}} for n in range(3)])
    tasks = [taskid for taskid, in rows(stack, 'taskid')]
    stack.psql('demo', "update taskqueue set starttime = 1, holder = 'x' where taskid = %s", (tasks[1],))
    outcomes = manager.run_many(tasks)
    assert [outcomes[task]['result'] for task in tasks] == ['done', 'running', 'done']
    assert bulk_count(stack) == 2


def test_the_limit_of_an_operation_holds_whether_its_tasks_share_a_commit_or_not(stack, manager):
    """Brief has 4 seconds: alone, together, and each with four more seconds once it has left the others."""
    slow = {'id': 'slow', 'pause_ms': 4500}
    task = ask(stack, 'Brief', slow)
    outcome = manager.run(task, status=500)
    assert (outcome['result'], outcome['code'], outcome['retry']) == ('failed', 'XTIME', 1)
    tasks = [ask(stack, 'Brief', param) for param in ({'id': 'x'}, slow, {'id': 'x'})]
    outcomes = manager.run_together(tasks)
    assert [(outcome['result'], outcome.get('code')) for outcome in outcomes] == [('done', None), ('failed', 'XTIME'), ('done', None)]
    assert (counted(stack, 'x'), counted(stack, 'slow')) == (2, 0)


def test_who_takes_all_the_time_of_a_shared_request_has_failed(stack, manager):
    """Else the same tasks would come together, and go back, for ever."""
    limit = stack.settings.get('limit_task_s', 1800)
    stack.set(limit_task_s=4)
    try:
        tasks = bulk(stack, {}, {'pause_ms': 4500}, {})
        outcomes = manager.run_together(tasks)
        assert [(outcome['result'], outcome.get('code')) for outcome in outcomes] == [('more', None), ('failed', 'XTIME'), ('more', None)]
        assert rows(stack, 'retry') == [(0,), (1,), (0,)]
        assert set(manager.due()) == {tasks[0], tasks[2]}
        assert {outcome['result'] for outcome in manager.run_many([tasks[0], tasks[2]]).values()} == {'done'}
    finally:
        stack.set(limit_task_s=limit)
    assert bulk_count(stack) == 2


def test_several_of_different_operations_run_one_after_the_other(stack, manager):
    tasks = [ask(stack, 'Count', {'id': 'x'}), ask(stack, 'Fail', {'id': 'y'}), ask(stack, 'Count', {'id': 'x'}),
             ask(stack, 'Bulk', {'id': 'x'}), ask(stack, 'Count', {'id': 'x'}, delay=60), ask(stack, 'Count', {'id': 'x'}, domain='d')]
    outcomes = manager.run_many([*tasks, 'nosuchtask'])
    assert [outcomes[task]['result'] for task in [*tasks, 'nosuchtask']] == ['done', 'failed', 'done', 'done', 'waiting', 'turn', 'gone']
    assert counted(stack, 'x') == 3


def test_who_comes_behind_slow_ones_goes_back_and_loses_nothing(stack, manager, signs):
    """Tasks with commits of their own in one request: when it has lasted for a second, the others are not begun."""
    gate, here = signs / 'gate', signs / 'here'
    tasks = [ask(stack, 'Gate', {'id': 'slow', 'gate': str(gate), 'here': str(here)}), ask(stack, 'Count', {'id': 'x'}),
             ask(stack, 'Fail', {'id': 'y'}), ask(stack, 'Count', {'id': 'x'})]
    places = rows(stack, 'startat')[1:]
    answers = []
    thread = threading.Thread(target=lambda: answers.append(manager.run_together(tasks)))
    thread.start()
    wait_until(here.is_symlink)
    begun = time.monotonic()
    assert len(manager.scan()['running']) == 4, 'all are claimed'
    wait_until(lambda: time.monotonic() > begun + 1.2)
    gate.touch()
    thread.join(PATIENCE_S)
    assert [outcome['result'] for outcome in answers[0]] == ['done', 'more', 'more', 'more']
    assert rows(stack, 'starttime, retry, step, exc') == [(None, 0, 0, None)] * 3
    assert rows(stack, 'startat') == places, 'their places are kept'
    assert history(stack, 'exc') == [(None,), ('MORE',), ('MORE',), ('MORE',)]
    left = manager.run_many(tasks)
    assert [left[task]['result'] for task in tasks] == ['gone', 'done', 'failed', 'done']
    assert (counted(stack, 'slow'), counted(stack, 'x')) == (1, 2)


def test_a_failure_among_several_is_told_in_words(stack, manager):
    tasks = [ask(stack, 'Count', {'id': 'x'}), ask(stack, 'Fail', {'id': 'y'})]
    outcomes = manager.run_many(tasks)
    done, failed = (outcomes[task] for task in tasks)
    assert 'message' not in done and failed['code'] == 'AFAIL' and failed['detail'] == 'As told.' and failed['message']


def test_cycles_that_take_much_memory_go_on_in_another_request(stack, manager):
    """Memory is given back at the end of a request: an eighth of what a worker may have, and a task is put back."""
    task = ask(stack, 'Cycles', {'id': 'x', 'cycles': 10, 'bytes': 8 << 20})
    results = [manager.run(task)['result']]
    assert results == ['more'], 'of 80 MiB 32 fit into one request'
    assert 4 <= row(stack, task, 'step')[0] < 10
    while results[-1] == 'more':
        results.append(manager.run(task)['result'])
    assert results[-1] == 'done' and 2 < len(results) <= 10
    assert counted(stack, 'x') == 10, 'each cycle once'


# --- scans ---

def test_a_scan_tells_what_is_due_in_its_order(stack, manager):
    late = ask(stack, 'Count', delay=30)
    slow, soon, first = ask(stack, 'Slow'), ask(stack, 'Count'), ask(stack, 'Count', priority=1)
    found = manager.scan()
    assert [due['id'] for due in found['due']] == [first, soon, slow]
    assert found['due'][2] == {'id': slow, 'op': 'Slow', 'qn': 3, 'priority': 20, 'startat': row(stack, slow, 'startat')[0],
                               'retry': 0, 'batch': 1}
    assert manager.due(before=991231235959998) == [first, soon, late, slow]
    assert manager.due(limit=1) == [first, slow]


def test_scans_forget_old_history(stack, manager):
    stack.psql('demo', "insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime)"
               " select 'old', 'Op', '', 0, 0, 1, 1, 1, stamp_of(now() - interval '31 days') from generate_series(1, 1500)")
    manager.run(ask(stack, 'Count', {'id': 'x'}))
    assert manager.scan()['purged'] == 1500
    assert len(history(stack)) == 1


def test_what_a_limit_refuses_inside_a_task_is_counted(stack, manager):
    before = stack.refusals('limit_documents')
    many = {'docs': [{'c': 'Told', 'id': f'd{number}', 'items': [{'c': 'Line', 'j': 1}]} for number in range(33)]}
    one, two, three = (stack.psql('demo', "select task_create('put', %s)", (json.dumps(many),))[0][0] for _ in range(3))
    assert manager.run(one, status=500)['code'] == 'ALIMIT'
    assert stack.refusals('limit_documents') == before + 1
    manager.run_many([two, three])
    assert stack.refusals('limit_documents') == before + 3
    assert stack.psql('demo', 'select exc from taskqueue') == [('ALIMIT',)] * 3


def test_tasks_write_no_items_of_attachments(stack, manager):
    param = {'docs': [{'c': 'Told', 'id': 'attached', 'items': [{'c': 'P', 'k': 'a', 'j': 1}]}]}
    taskid = stack.psql('demo', "select task_create('put', %s)", (json.dumps(param),))[0][0]
    assert manager.run(taskid, status=500)['code'] == 'AARG'
    assert 'reserved for attachments' in stack.psql('demo', 'select report from taskqueue')[0][0]
    assert stack.get('demo', ('Told', 'attached'))['v'] == 0

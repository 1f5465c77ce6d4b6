"""The trace context of a request: its tasks keep it, wherever they run."""
import shutil

import pytest

from kit import Kit
from manager import Manager
from queue_worker import QUEUES, ask, call, claim, declare, history, row, take

TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
STATE = 'shop=t61rcWkgMzE,tenant@sys=a b'
STACK = {'workers': 2, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': kit.build('tasks.c')}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module', autouse=True)
def declared(kit, stack):
    declare(stack, QUEUES)


@pytest.fixture
def manager(stack):
    stack.psql('lab', 'truncate taskqueue, task_history')
    stack.psql('demo', 'truncate taskqueue, task_history')
    return Manager(stack, 'lab')


def traced(stack, op, param=None, trace=TRACE, state=None, ns='lab', **more):
    headers = {'traceparent': trace, **({'tracestate': state} if state is not None else {})}
    answer = stack.request('POST', f'/{ns}/op/task', json={'param': {'op': op, 'param': param or {}, **more}}, headers=headers, admin=True)
    return answer.json()['out']['id']


def test_a_task_has_the_trace_of_the_request_that_created_it(stack, manager):
    manager.scan() # what the history keeps
    taskid = traced(stack, 'resize', resource='r')
    for wrong in (TRACE[:-1], TRACE.upper(), TRACE + '-'):
        traced(stack, 'shout', trace=wrong)
    tasks = take(stack, 4)
    assert {task['op']: task.get('trace') for task in tasks} == {'resize': TRACE, 'shout': None} and len(tasks) == 4
    assert stack.op('lab', 'tasks', {'show': taskid}, admin=True)['out']['task']['trace'] == TRACE
    resize = next(task for task in tasks if task['op'] == 'resize')
    call(stack, 'fail', **claim(resize), delay=0)
    (again,) = take(stack)
    call(stack, 'done', **claim(again))
    assert again['trace'] == TRACE and history(stack, 'trace') == [(TRACE,), (TRACE,)]
    assert [found['trace'] for found in stack.op('lab', 'tasks', {'history': {'id': taskid}}, admin=True)['out']['attempts']] == [TRACE] * 2
    assert stack.psql('lab', 'select done from task_redrive(false, %s)', (taskid,)) == [(1,)] and row(stack, taskid, 'trace') == (TRACE,)


def test_the_log_of_a_run_has_the_trace_and_that_of_the_next_has_not(stack, manager):
    failing = {'docs': [{'c': 'Note', 'id': 'a', 'if': 1, 'items': []}]}
    tasks = [traced(stack, 'put', failing), ask(stack, 'put', failing)]
    manager.run_many(tasks)
    lines = [next(line for line in stack.log().splitlines() if f'task failed id={task}' in line) for task in tasks]
    assert f' trace={TRACE}' in lines[0] and 'trace=' not in lines[1]


def test_a_task_has_the_tracestate_too(stack, manager):
    manager.scan() # what the history keeps
    taskid = traced(stack, 'resize', state=STATE)
    assert row(stack, taskid, 'trace') == (f'{TRACE} {STATE}',)
    (task,) = take(stack)
    assert (task['trace'], task['tracestate']) == (TRACE, STATE)
    call(stack, 'fail', **claim(task), delay=0)
    (again,) = take(stack)
    call(stack, 'done', **claim(again))
    assert again['tracestate'] == STATE and history(stack, 'trace') == [(f'{TRACE} {STATE}',)] * 2
    stack.psql('lab', 'select task_redrive(false, %s)', (taskid,))
    assert take(stack)[0]['tracestate'] == STATE


def test_a_tracestate_that_is_malformed_or_alone_is_dropped(stack, manager):
    for trace, state in ((TRACE, 'a=1,a=2'), (TRACE, 'A=1'), (TRACE, 'a'), (TRACE, 'a=' + 'v' * 257), (TRACE, ','.join(f'k{n:02}=0123456789' for n in range(38))), (TRACE, '')):
        assert row(stack, traced(stack, 'resize', trace=trace, state=state), 'trace') == (trace,)
    assert row(stack, traced(stack, 'resize', trace='00-1', state=STATE), 'trace') == (None,)


def test_tasks_of_modules_have_the_trace_of_their_request(stack, manager):
    """Those that a request creates, and those that a task creates."""
    answer = stack.request('POST', '/demo/op/Plan', json={'param': {'tasks': [{'op': 'Chain', 'param': {'id': 'c', 'left': 1}}]}},
                           headers={'traceparent': TRACE, 'tracestate': STATE})
    assert answer.status_code == 200, answer.text
    ((first, trace),) = stack.psql('demo', 'select taskid, trace from taskqueue')
    assert trace == f'{TRACE} {STATE}' and Manager(stack).run(first)['result'] == 'done'
    assert stack.psql('demo', 'select trace from taskqueue') == [(f'{TRACE} {STATE}',)]


def test_the_log_of_a_run_that_succeeds_has_the_trace(stack, manager, kit):
    """What the operation logs while it runs; a line of the next run has none of it."""
    for name in ('here', 'gate'):
        (kit.path / name).touch()
    param = {'id': 'g', 'here': str(kit.path / 'here'), 'gate': str(kit.path / 'gate')}
    tasks = [traced(stack, 'Gate', param, state=STATE, ns='demo'), traced(stack, 'Gate', param, ns='demo'), stack.op('demo', 'task', {'op': 'Gate', 'param': param})['out']['id']]
    for task in tasks:
        assert Manager(stack).run(task)['result'] == 'done'
    lines = [line for line in stack.log().splitlines() if 'here again' in line]
    assert len(lines) == 3 and lines[0].endswith(f' trace={TRACE} tracestate={STATE}') and lines[1].endswith(f' trace={TRACE}') and 'trace=' not in lines[2]

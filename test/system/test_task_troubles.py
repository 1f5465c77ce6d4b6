"""What goes wrong with tasks, with the real stamp-queue: wake-ups come twice, managers lose answers, clocks step, operations are
gone from the code and come back.  Each task is done once, or parked with its reason."""
import json
import shutil
import socket
import sys

import pytest

from kit import Kit
from manager import PARKED, Manager
from stack import PATIENCE_S, BUILD, SOURCE, wait_until

sys.path.append(str(SOURCE / 'test/history'))
from saboteur import FAKETIME, Clock  # noqa: E402

STEP_S = 300
STACK = {'workers': 3, 'settings': {}}
# The server runs under libfaketime, which no sanitizer likes.
pytestmark = [pytest.mark.plain, pytest.mark.skipif(not FAKETIME, reason='libfaketime is not installed')]


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': kit.build('tasks.c'), 'task_wakeup_s': 1, 'queue_namespaces': 'lab'}
    STACK['build'] = (clock := Clock(kit.path / 'clock', BUILD)).path
    kit.clock = clock
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def clock(kit):
    yield kit.clock
    kit.clock.set(0.0)


def set_for_all(stack, clock, offset):
    """Processes that run see a step one after the other; those that start see it at once."""
    clock.set(offset)
    stack.restart_stampd()


@pytest.fixture
def manager(stack):
    """A manager beside stamp-queue, which runs."""
    stack.psql('lab', 'truncate taskqueue, task_history')
    stack.psql('lab', "select delete_document(class, id) from doc where class = 'Counter'")
    stack.step('queue', 'start')
    yield Manager(stack, 'lab')
    stack.step('queue', 'stop', 'now')


@pytest.fixture
def gate(kit):
    path = kit.path / 'gate'
    path.unlink(missing_ok=True)
    yield path
    path.touch()


def ask(stack, op, param=None, **more):
    return stack.op('lab', 'task', {'op': op, 'param': param or {'id': 'x'}, **more})['out']['id']


def administer(stack, **param):
    return stack.op('lab', 'tasks', param, admin=True)['out']


def counted(stack):
    document = stack.get('lab', ('Counter', 'x'))
    return document['items'][0]['j']['n'] if document['v'] else 0


def wait_for_end(stack, *tasks):
    wait_until(lambda: stack.psql('lab', 'select count(*) from taskqueue where taskid = any (%s)', (list(tasks),)) == [(0,)],
               PATIENCE_S, 'the end of the tasks')


def ends(stack):
    return [exc for exc, in stack.psql('lab', 'select exc from task_history order by number')]


def wait_until_it_runs(stack, task):
    wait_until(lambda: stack.psql('lab', 'select 1 from taskqueue where taskid = %s and starttime is not null', (task,)), PATIENCE_S, 'the task to run')


def test_hints_that_come_again_and_again_start_a_task_once(stack, manager):
    tasks = [ask(stack, 'Count') for _ in range(5)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
        for task in tasks * 10:
            wakeup = {'ns': 'lab', 'id': task, 'op': 'Count', 'qn': 0, 'priority': 20, 'startat': 200101000000000, 'retry': 0, 'batch': 1}
            speaker.sendto(json.dumps(wakeup).encode(), str(stack.path / 'run/stampd/wake-ups.sock'))
            manager.post(task)  # and somebody else asks for it too
    wait_for_end(stack, *tasks)
    assert counted(stack) == 5 and ends(stack) == [None] * 5


def test_a_manager_that_loses_its_answer_does_it_no_second_time(stack, manager, gate):
    task = ask(stack, 'Gate', {'id': 'x', 'gate': str(gate)})
    wait_until_it_runs(stack, task)
    stack.step('queue', 'stop', 'kill')
    stack.step('queue', 'start')
    gate.touch()
    wait_for_end(stack, task)
    assert manager.run(task)['result'] == 'gone'
    assert counted(stack) == 1 and ends(stack) == [None]


def test_a_clock_that_steps_while_a_task_runs_does_it_no_harm(stack, manager, clock, gate):
    task = ask(stack, 'Gate', {'id': 'x', 'gate': str(gate)})
    wait_until_it_runs(stack, task)
    for offset in (-STEP_S, STEP_S):
        before = stack.ping().json()['t']
        clock.set(offset)
        wait_until(lambda: abs(stack.ping().json()['t'] - before) > 100000, PATIENCE_S, 'the step')  # more than a minute
        found = manager.scan()
        assert [row['id'] for row in found['running']] == [task] and not found['lost']
    gate.touch()
    wait_for_end(stack, task)
    assert counted(stack) == 1 and ends(stack) == [None]


def test_a_clock_that_is_late_delays_what_others_have_asked_for(stack, manager, clock):
    set_for_all(stack, clock, -STEP_S)
    own = ask(stack, 'Count')
    wait_for_end(stack, own)
    other = stack.psql('lab', "select task_create('Count', '{\"id\":\"x\"}')")[0][0]  # by the clock of the database
    assert manager.run(other)['result'] == 'waiting'
    clock.set(0.0)
    wait_for_end(stack, other)
    assert counted(stack) == 2 and ends(stack) == [None] * 2


def test_what_was_asked_for_by_a_clock_ahead_waits_or_is_run_by_an_administrator(stack, manager, clock):
    set_for_all(stack, clock, STEP_S)
    task = ask(stack, 'Count', delay=STEP_S)
    set_for_all(stack, clock, 0.0)
    assert manager.run(task)['result'] == 'waiting'
    assert administer(stack, run=task)['result'] == 'moved'
    wait_for_end(stack, task)
    assert counted(stack) == 1 and ends(stack) == [None]


def test_an_operation_that_is_gone_and_comes_back(stack, manager):
    task = ask(stack, 'Count', delay=3600)
    module = stack.settings['modules']
    try:
        stack.set(modules='')
        administer(stack, run=task)
        wait_until(lambda: administer(stack, show=task)['task']['state'] == 'parked', PATIENCE_S, 'the park')
    finally:
        stack.set(modules=module)
    told = administer(stack, list={'op': 'Count'})['tasks'][0]
    assert (told['startat'], told['exc'], told['report']) == (PARKED, 'NOPERATION', 'The operation does not exist. (Count)')
    administer(stack, run=task)
    wait_for_end(stack, task)
    assert counted(stack) == 1 and ends(stack) == ['NOPERATION', None]


def test_a_task_that_fails_for_ever_is_parked_shown_and_dropped(stack, manager):
    task = ask(stack, 'Fail')
    for attempt in range(5):
        wait_until(lambda: stack.psql('lab', 'select 1 from taskqueue where retry > %s and starttime is null', (attempt,)), PATIENCE_S, 'a failure')
        manager.hurry()
    told = administer(stack, show=task)
    assert (told['task']['state'], told['task']['retry'], told['task']['exc']) == ('parked', 5, 'AFAIL')
    assert [one['exc'] for one in told['attempts']] == ['AFAIL'] * 5 and counted(stack) == 0
    assert administer(stack, drop=task)['result'] == 'dropped'
    assert 'task' not in administer(stack, show=task)

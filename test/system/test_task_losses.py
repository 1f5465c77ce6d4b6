"""Lost attempts: why, what is done then, and what is left alone.  test_task_death.py has that nothing is done twice."""
import shutil
import threading
import time

import pytest
import requests

from kit import Kit
from manager import PARKED, Manager
from stack import PATIENCE_S, wait_until

pytestmark = pytest.mark.plain

DRAIN_S, KILL_S = 1, 5
STACK = {'workers': 2, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': kit.build('tasks.c'), 'restart_young_ms': 0, 'connect_timeout_s': 20, 'task_wakeup_s': 3600,
                         'drain_s': DRAIN_S}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def manager(stack):
    stack.psql('lab', 'truncate taskqueue, task_history')
    stack.clear('lab', 'Counter')
    return Manager(stack, 'lab')


def ask(stack, op, param=None, **more):
    return stack.op('lab', 'task', {'op': op, 'param': {'id': 'x', **(param or {})}, **more})['out']['id']


def counted(stack, name='x'):
    document = stack.get('lab', ('Counter', name))
    return document['items'][0]['j']['n'] if document['v'] else 0


def post(manager, taskid='', **more):
    try:
        return manager.post(taskid, timeout=PATIENCE_S, **more)
    except requests.ConnectionError:
        return None


def lost(manager, *tasks):
    """What scans say of them when they are lost."""
    found = {}

    def scan():
        answer = manager.post(param={'scan': {}})
        if answer.status_code == 200:
            found.update({row['id']: row for row in answer.json()['lost']})
        return all(task in found for task in tasks)

    wait_until(scan, PATIENCE_S, 'the loss')
    return [found[task] for task in tasks]


def rows(stack, columns='opname, retry, exc, startat'):
    return stack.psql('lab', f'select {columns} from taskqueue order by number')


def history(stack, columns='retry, exc'):
    return stack.psql('lab', f'select {columns} from task_history order by number')


@pytest.mark.parametrize('op, why, words', [('Die', 'killed', 'killed from outside'), ('Crash', 'crash', 'Signal 6'),
                                            ('Hang', 'time', 'time limit')])
def test_a_loss_says_why(stack, manager, op, why, words):
    task = ask(stack, op, {'times': 1})
    post(manager, task)
    (row,) = lost(manager, task)
    assert (row['op'], row['retry'], row['why']) == (op, 1, why) and words in row['report']
    ((report,),) = history(stack, 'report')
    assert report == row['report'] and rows(stack, 'exc, report') == [('LOST', report)]
    assert f'operation={op} why={why}' in stack.log()


def test_who_exceeds_the_time_is_not_started_at_once(stack, manager):
    start = stack.ping().json()['t']
    hangs, dies = ask(stack, 'Hang', {'times': 1}), ask(stack, 'Die', {'times': 1})
    post(manager, hangs)
    post(manager, dies)
    first, second = lost(manager, hangs, dies)
    assert first['startat'] >= start + 100000, 'a minute, as after a failure'
    assert second['startat'] <= stack.ping().json()['t']


def test_an_operation_that_is_never_retried_is_parked_by_its_first_loss(stack, manager):
    task = ask(stack, 'OnceDie', {'times': 1})
    post(manager, task)
    (row,) = lost(manager, task)
    assert row['startat'] == PARKED and rows(stack) == [('OnceDie', 1, 'LOST', PARKED)]
    assert manager.due() == [] and counted(stack) == 0


@pytest.mark.parametrize('op, more', [('Once', {}), ('Fail', {'final': True})])
def test_nor_is_it_when_its_failure_could_not_be_recorded(stack, manager, op, more):
    task = ask(stack, op, {'times': 1, **more})
    stack.psql('lab', 'revoke insert on task_history from stampd')
    try:
        assert manager.post(task).status_code == 500
    finally:
        stack.psql('lab', 'grant insert on task_history to stampd')
    (row,) = lost(manager, task)
    assert (row['startat'], row['why']) == (PARKED, 'unrecorded') and rows(stack) == [(op, 1, 'LOST', PARKED)]


def test_nor_when_the_server_dies(stack, manager):
    stack.psql('lab', "insert into taskqueue (taskid, opname, param, startat, starttime, holder, created)"
               " values ('formerlife', 'OnceDie', '{}', 1, stamp_now(), '00000000-1-0', 1)")
    (row,) = lost(manager, 'formerlife')
    assert (row['startat'], row['why']) == (PARKED, 'foreign')


def test_what_was_not_begun_when_its_request_died_is_no_failure(stack, manager):
    first, killer, rest = ask(stack, 'Count'), ask(stack, 'Die', {'times': 1}), [ask(stack, 'Once', {'times': 0, 'id': 'y'}) for _ in range(3)]
    post(manager, param={'run': [first, killer, *rest]})
    lost(manager, killer)
    assert rows(stack, 'opname, retry, exc') == [('Die', 1, 'LOST')] + [('Once', 0, None)] * 3
    assert sorted(history(stack, "opname, coalesce(exc, '')")) == [('Count', ''), ('Die', 'LOST')] + [('Once', 'MORE')] * 3
    outcomes = wait_until(lambda: manager.post(param={'run': [killer, *rest]}), PATIENCE_S).json()['tasks']
    assert [outcome['result'] for outcome in outcomes] == ['done'] * 4
    assert (counted(stack), counted(stack, 'y')) == (2, 3)


def test_a_loss_keeps_its_place_in_its_domain(stack, manager):
    first = ask(stack, 'Die', {'times': 1}, domain='one')
    others = [ask(stack, 'Count', domain='one') for _ in range(2)]
    post(manager, first)
    lost(manager, first)
    assert manager.due() == [first]
    order = []
    while manager.due():
        order += manager.due()
        assert wait_until(lambda: post(manager, order[-1]), PATIENCE_S).status_code == 200
    assert order == [first, *others]


def test_an_interrupted_task_keeps_its_place_in_its_domain(stack, manager):
    first = ask(stack, 'Slow', {'cycles': 12, 'pause_ms': 400}, domain='one')  # it has 4 seconds
    other = ask(stack, 'Count', domain='one')
    start = stack.psql('lab', 'select startat from taskqueue where taskid = %s', (first,))[0][0]
    assert manager.run(first)['result'] == 'more'
    assert rows(stack, 'taskid, startat')[0] == (first, start) and manager.due() == [first]
    while manager.run(first)['result'] == 'more':
        pass
    assert manager.due() == [other]


def begin(stack, manager, kit, name):
    """A task that waits for its gate, in a thread; its name, the gate, the thread and its answer when that has come."""
    folder = kit.path / name
    folder.mkdir()
    folder.chmod(0o777)
    gate, here, answers = folder / 'gate', folder / 'here', []
    task = ask(stack, 'Gate', {'gate': str(gate), 'here': str(here)})
    thread = threading.Thread(target=lambda: answers.append(post(manager, task)))
    thread.start()
    wait_until(here.is_symlink, PATIENCE_S, 'the task')
    return task, gate, thread, answers


def test_a_worker_that_is_replaced_ends_its_task_first(stack, manager, kit):
    task, gate, thread, answers = begin(stack, manager, kit, 'reload')
    before = set(stack.worker_pids())
    try:
        stack.reload()
        wait_until(lambda: len(before & set(stack.worker_pids())) <= 1, PATIENCE_S, 'all others to be replaced')
        time.sleep(DRAIN_S + KILL_S + 1)  # it would have been killed
        assert stack.ping().status_code == 200
    finally:
        gate.touch()
        thread.join(PATIENCE_S)
    assert answers[0].status_code == 200 and answers[0].json()['tasks'][0]['result'] == 'done'
    assert counted(stack) == 1 and history(stack) == [(0, None)]
    assert 'killed worker that did not stop' not in stack.log()
    wait_until(lambda: not before & set(stack.worker_pids()), PATIENCE_S, 'its worker to leave')


def test_a_server_that_is_stopped_leaves_a_task_the_time_to_drain(stack, manager, kit):
    task, gate, thread, _ = begin(stack, manager, kit, 'stop')
    stack.step('stampd', 'stop')
    gate.touch()
    thread.join(PATIENCE_S)
    stack.step('stampd', 'start')
    (row,) = lost(manager, task)
    assert row['why'] == 'restart'
    assert wait_until(lambda: post(manager, task), PATIENCE_S).status_code == 200 and counted(stack) == 1

"""Exactly once: workers, servers, backends and PostgreSQL die at every step of a task while managers go on, double what they
ask and lose their answers.  Then every task has done what it does once, or is parked with its reason."""
import os
import random
import shutil
import signal
import struct
import threading
import time

import psycopg2
import pytest
import requests

from kit import Kit
from manager import PARKED, Manager
from stack import PATIENCE_S, Problem, is_alive, wait_until
from standby import commits_without_answer, end_a_commit_that_waits
from test_crash_points import COMMIT, TASKS, UNKNOWN

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'settings': {}}
POINTS = [point for point in COMMIT if ':' not in point and point != 'turn-taken'] + TASKS


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': kit.build('tasks.c'), 'restart_young_ms': 0, 'connect_timeout_s': 20, 'task_wakeup_s': 1}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


class Ledger:
    """Asks for tasks that count, and knows what must have been counted when all is over."""

    def __init__(self, stack):
        self.stack = stack
        self.manager = Manager(stack, 'lab')
        self.expected = {}
        stack.psql('lab', 'truncate taskqueue, task_history')
        stack.clear('lab', 'Counter')

    def plan(self, *tasks):
        """Each is an operation, a counter, how often it counts there, and more of its param."""
        wishes = []
        for op, name, times, *more in tasks:
            self.expected[name] = self.expected.get(name, 0) + times
            wishes.append({'op': op, 'param': {'id': name, **(more[0] if more else {})}, **(more[1] if len(more) > 1 else {})})
        more = {'json': {'param': {'tasks': wishes}}, 'headers': {'Idempotency-Key': os.urandom(8).hex()}}

        def ask():
            answer = self.stack.request('POST', '/lab/op/Plan', **more)
            assert answer.status_code in (200, 400, 502, 503, 504), answer.text
            return answer.status_code == 200

        wait_until(ask, PATIENCE_S, 'the tasks asked for')

    def plan_all_kinds(self, number):
        """`number` of each kind."""
        for n in range(number):
            self.plan(('Count', f'own{n}', 1), ('Count', 'shared', 1), ('Bulk', f'bulk{n % 2}', 1),
                      ('Cycles', f'cycles{n % 3}', 3, {'cycles': 3}), ('Chain', f'chain{n % 2}', 3, {'left': 2}),
                      ('Fail', f'fail{n % 2}', 1, {'times': 1}), ('Count', 'domain', 1, {}, {'domain': f'd{n % 2}'}))

    def work(self, **more):
        """Until all is done; what would wait for minutes is made to start at once."""
        self.manager.work(meanwhile=self.hurry, seconds=PATIENCE_S, **more)

    def hurry(self):
        """Does nothing while the database is away."""
        try:
            self.manager.hurry()
            self.stack.psql('lab', "select task_run(taskid) from taskqueue where startat = %s", (PARKED,))
        except psycopg2.Error:
            pass

    def get(self, documents):
        """A worker whose database was away just now does not try at once."""
        def look():
            try:
                return self.stack.op('lab', 'get', {'docs': documents})['out']['docs']
            except Problem as problem:
                if problem.code != 'XAWAY':
                    raise
                return None
        return wait_until(look, PATIENCE_S, 'the database')

    def check(self):
        ids = list(self.expected)
        param = [(('Counter', name)) for name in ids]
        counted = {}
        for start in range(0, len(param), 30):
            for document in self.get([{'c': c, 'id': i} for c, i in param[start:start + 30]]):
                counted[document['id']] = document['items'][0]['j']['n'] if document['v'] else 0
        assert counted == self.expected
        assert self.stack.psql('lab', 'select count(*) from taskqueue') == [(0,)]
        twice = self.stack.psql('lab', 'select taskid from task_history where exc is null group by taskid having count(*) > 1')
        assert twice == [], 'ended twice'
        unended = self.stack.psql('lab', 'select taskid from task_history group by taskid having count(*) filter (where exc is null) = 0')
        assert unended == [], 'never ended'


@pytest.fixture
def ledger(stack):
    return Ledger(stack)


def deaths(stack, point):
    return stack.log().count(f'died at {point.partition(":")[0]},')


def kill_server(stack):
    master = stack.pid()
    os.kill(master, signal.SIGKILL)
    wait_until(lambda: not is_alive(master), PATIENCE_S, 'its end')  # else the step finds that it runs
    stack.step('stampd', 'start')


def wait_for_scan(ledger, look):
    """Scans until `look` likes the answer."""
    def scan():
        answer = ledger.manager.post(param={'scan': {}})
        return answer.status_code == 200 and look(answer.json())

    return wait_until(scan, PATIENCE_S, 'the scan')


# --- losses ---

def die(ledger, times=1, name='x'):
    """A task that ends its worker in its first attempts; its name."""
    ledger.plan(('Die', name, 1, {'times': times}))
    (task,) = ledger.manager.due()
    return task


def lose(ledger, task):
    """One attempt that dies; what the scan says of it."""
    try:
        answer = ledger.manager.post(task)
        assert answer.status_code in (502, 503, 504)
    except requests.ConnectionError:
        pass
    return wait_for_scan(ledger, lambda found: [lost for lost in found['lost'] if lost['id'] == task])[0]


def test_a_death_is_noticed_by_the_next_scan_and_the_task_starts_again_at_once(stack, ledger):
    task = die(ledger)
    lost = lose(ledger, task)
    assert lost['startat'] <= stack.ping().json()['t']
    row = stack.psql('lab', 'select retry, exc, report, starttime, holder from taskqueue')[0]
    assert (row[0], row[1], row[3], row[4]) == (1, 'LOST', None, None) and 'Its worker was killed from outside' in row[2]
    wait_until(lambda: ledger.manager.post(task).status_code == 200, PATIENCE_S)
    ledger.check()
    assert [exc for exc, in stack.psql('lab', 'select exc from task_history order by number')] == ['LOST', None]


def test_a_task_that_kills_its_worker_again_and_again_waits_longer_then_is_parked(stack, ledger):
    task = die(ledger, times=9)
    now = stack.ping().json()['t']
    starts = []
    for _ in range(5):
        starts.append(lose(ledger, task)['startat'])
        ledger.manager.hurry()
    assert starts[1] > now and starts[1:] == sorted(starts[1:]) and starts[-1] == PARKED
    assert stack.psql('lab', 'select retry, exc, startat from taskqueue') == [(5, 'LOST', PARKED)]


def test_what_a_former_life_of_the_server_held_is_lost_at_once(stack, ledger, kit):
    gate = kit.path / 'former'
    ledger.plan(('Gate', 'x', 1, {'gate': str(gate)}))
    (task,) = ledger.manager.due()
    threading.Thread(target=quietly, args=(lambda: ledger.manager.post(task),), daemon=True).start()
    wait_until(lambda: stack.psql('lab', 'select starttime is not null from taskqueue') == [(True,)], PATIENCE_S, 'its begin')
    kill_server(stack)
    gate.touch()
    wait_for_scan(ledger, lambda found: [lost['id'] for lost in found['lost']] == [task])
    ledger.work()
    ledger.check()


@pytest.mark.parametrize('holder', ['00000000-1-0', 'somebody', '{own}-999-0', '{own}-{generation}-99999', '{own}-{generation}-447'])
def test_a_holder_that_cannot_be_is_none(stack, ledger, holder):
    """One host: whoever is not of this segment is gone."""
    ledger.plan(('Count', 'x', 1))
    (task,) = ledger.manager.due()
    own = ledger.manager.post(task) and stack.psql('lab', 'select count(*) from task_history')
    assert own == [(1,)]
    segment = (stack.path / 'run/stampd/segment').read_bytes()[:128]
    stack.psql('lab', "insert into taskqueue (taskid, opname, param, startat, starttime, holder, created)"
               " values ('strangerstask', 'Count', '{\"id\":\"x\"}', 1, stamp_now(), %s, 1)", (name_holder(holder, segment),))
    wait_for_scan(ledger, lambda found: [lost['id'] for lost in found['lost']] == ['strangerstask'])
    stack.psql('lab', 'truncate taskqueue')


def name_holder(holder, segment):
    """The names of this installation, out of the head of the segment."""
    installation, generation = struct.unpack_from('=I', segment, 16)[0], struct.unpack_from('=Q', segment, 24)[0]
    return holder.format(own=f'{installation:08x}', generation=generation)


def test_with_many_hosts_a_stranger_has_his_time(stack, ledger):
    stack.set(hosts='many', task_lost_s=3600)
    try:
        stack.psql('lab', "insert into taskqueue (taskid, opname, param, startat, starttime, holder, created)"
                   " select name, 'Count', '{}', 1, stamp_of(now() - age), '00000000-1-0', 1 from (values ('younger7',"
                   " interval '59 minutes'), ('older777', interval '61 minutes'), ('ahead777', interval '-1 hour')) v(name, age)")
        found = wait_for_scan(ledger, lambda found: found)
        assert [lost['id'] for lost in found['lost']] == ['older777']
        assert sorted(running['id'] for running in found['running']) == ['ahead777', 'younger7']
    finally:
        stack.set(hosts='one')


def test_an_attempt_that_cannot_be_put_back_is_found_lost(stack, ledger):
    """The database refuses the end of the attempt; the worker lives, but works at it no more."""
    ledger.plan(('Fail', 'x', 1, {'times': 1}))
    (task,) = ledger.manager.due()
    stack.psql('lab', 'revoke insert on task_history from stampd')
    try:
        answer = ledger.manager.post(task)
        assert answer.status_code == 500
        assert 'startat' not in answer.json()['tasks'][0]
        assert stack.psql('lab', 'select starttime is not null from taskqueue') == [(True,)]
    finally:
        stack.psql('lab', 'grant insert on task_history to stampd')
    wait_for_scan(ledger, lambda found: [lost['id'] for lost in found['lost']] == [task])
    ledger.work()
    ledger.check()


# --- death at every step ---

def test_workers_die_at_every_step_of_a_task(stack, ledger):
    before = {point: deaths(stack, point) for point in POINTS}
    stack.set(debug_die_at='\n    '.join(f'{point}:3' if point != 'task-lost' else point for point in POINTS))
    try:
        ledger.plan_all_kinds(3)
        rounds = iter(range(30))

        def all_have_died():
            missing = [point for point in POINTS if deaths(stack, point) == before[point]]
            if missing and ledger.manager.is_empty():
                assert next(rounds, None) is not None, missing
                ledger.plan_all_kinds(1)
            return not missing and ledger.manager.is_empty()

        ledger.work(until=lambda: quietly(all_have_died))
    finally:
        stack.set(debug_die_at='')
    ledger.work()
    ledger.check()


def quietly(look):
    """Nobody answers while a worker is replaced."""
    try:
        return look()
    except (psycopg2.Error, requests.RequestException):
        return False


# --- harm while tasks run ---

def harm_now_and_then(ledger, harm, times, pause_s=0.05):
    """Something to be done meanwhile: `harm`, `times` times, and not too often."""
    state = {'left': times, 'next': time.monotonic()}

    def meanwhile():
        ledger.hurry()
        if state['left'] and time.monotonic() >= state['next']:
            harm()
            state['left'] -= 1
            state['next'] = time.monotonic() + pause_s

    return meanwhile, lambda: not state['left'] and ledger.manager.is_empty()


def run_under(ledger, harm, times, pause_s=0.05):
    ledger.plan_all_kinds(8)
    meanwhile, until = harm_now_and_then(ledger, harm, times, pause_s)
    ledger.manager.work(until=lambda: quietly(until), meanwhile=meanwhile, seconds=PATIENCE_S)
    ledger.work()
    ledger.check()


def test_workers_are_killed(stack, ledger):
    def kill():
        workers = stack.worker_pids()
        if workers:
            stack.kill_worker(random.choice(workers))

    run_under(ledger, kill, 8)


def test_backends_are_ended(stack, ledger):
    """Commits of unknown outcome among them: whether they have happened is looked up."""
    run_under(ledger, lambda: stack.psql(None, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd'"
                                         " and datname = 'stampd_lab' and backend_type = 'client backend'"), 20)


def test_the_server_is_restarted(stack, ledger):
    run_under(ledger, stack.restart_stampd, 2, pause_s=0.5)


def test_the_server_is_killed(stack, ledger):
    run_under(ledger, lambda: kill_server(stack), 2, pause_s=0.5)


def test_postgresql_dies(stack, ledger):
    run_under(ledger, lambda: stack.restart_postgres('kill'), 2, pause_s=0.5)


def test_the_manager_is_killed(stack, ledger):
    """stamp-queue itself, in the midst of its requests: what it has begun goes on, what it forgot its successor's scan finds."""
    def kill():
        ledger.plan_all_kinds(2)
        stack.step('queue', 'stop', 'kill')
        stack.step('queue', 'start')

    stack.step('queue', 'start')
    try:
        meanwhile, until = harm_now_and_then(ledger, kill, 4)
        wait_until(lambda: meanwhile() or quietly(until), PATIENCE_S, 'an empty queue')
    finally:
        stack.step('queue', 'stop', 'now')
    ledger.check()


def attempted(answer):
    """A worker whose database was away just now does not try at once."""
    return None if answer.status_code == 503 else answer


def lose_the_session(stack, ledger):
    """A task whose commit waits for a row when its session ends; the answer to its request, None when there is none."""
    ledger.plan(('Count', 'held', 1))
    (task,) = ledger.manager.due()
    answers = []

    def run():
        try:
            answers.append(wait_until(lambda: attempted(ledger.manager.post(task, timeout=PATIENCE_S)), PATIENCE_S))
        except requests.RequestException:
            answers.append(None)

    with psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd') as holder, holder.cursor() as cursor:
        cursor.execute("select from doc where class = 'Counter' and id = 'held' for update")
        thread = threading.Thread(target=run)
        thread.start()
        waiting = wait_until(lambda: stack.psql(None, "select pid from pg_stat_activity where datname = 'stampd_lab'"
                                                " and usename = 'stampd' and wait_event_type = 'Lock'"), PATIENCE_S)
        stack.psql(None, 'select pg_terminate_backend(%s)', waiting[0])
    thread.join(PATIENCE_S)
    return answers[0]


def test_an_unknown_outcome_is_settled_in_the_request(stack, ledger):
    ledger.plan(('Count', 'held', 1))
    ledger.work()
    answer = lose_the_session(stack, ledger)
    assert answer.json()['tasks'][0]['result'] == 'done'
    ledger.check()
    assert stack.psql('lab', 'select exc from task_history') == [(None,), (None,)]


@pytest.mark.parametrize('point', UNKNOWN)
def test_a_worker_dies_while_it_settles_an_unknown_outcome(stack, ledger, point):
    ledger.plan(('Count', 'held', 1))
    ledger.work()
    before = deaths(stack, point)
    stack.set(debug_die_at=point)
    try:
        lose_the_session(stack, ledger)
        wait_until(lambda: deaths(stack, point) > before, PATIENCE_S)
    finally:
        stack.set(debug_die_at='')
    ledger.work()
    ledger.check()


@pytest.mark.parametrize('op, times, more', [('Count', 1, {}), ('Cycles', 3, {'cycles': 3}), ('Chain', 3, {'left': 2})])
def test_what_was_done_though_nobody_was_told_is_not_done_again(stack, ledger, op, times, more):
    """The end of a task; a checkpoint; an end that asks for a task."""
    ledger.plan((op, 'held', times, more))
    (task,) = ledger.manager.due()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(wait_until(
        lambda: attempted(ledger.manager.post(task, timeout=PATIENCE_S)), PATIENCE_S)))
    with commits_without_answer(stack):
        thread.start()
        end_a_commit_that_waits(stack)
    thread.join(PATIENCE_S)
    assert answers[0].json()['tasks'][0]['result'] == 'done'
    ledger.work()
    ledger.check()
    assert 'commit outcome unknown' in stack.log()
    assert {exc for exc, in stack.psql('lab', 'select exc from task_history')} == {None}

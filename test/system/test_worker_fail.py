"""`fail` with `take`, in the commit that puts a task back; and `fail` that is sent again."""
import contextlib
import json
import threading

import psycopg2
import pytest
import requests

import queue_worker
from manager import PARKED, Manager
from queue_worker import KEY, OTHER_KEY, QUEUES, ask, call, claim, claimed, names, note, overdue, row, take
from stack import PATIENCE_S, Problem, refused, wait_until

STACK = {'workers': 3, 'settings': {'hosts': 'many'}}
LIMITS_LOCK = "hashtextextended('stampd task limits', 0)"


@pytest.fixture(scope='module', autouse=True)
def declared(stack):
    queue_worker.declare(stack, QUEUES)


@pytest.fixture
def manager(stack):
    queue_worker.empty(stack)
    return Manager(stack, 'lab')


def fail(stack, task, take=None, **more):
    return call(stack, 'fail', **claim(task), take={'qn': 16, **(take or {})}, **more)


def history(stack, columns='taskid, retry, exc'):
    return stack.psql('lab', f'select {columns} from task_history order by number')


# --- the next task in the same commit ---

def test_the_failure_and_the_next_claim_are_one_commit(stack, manager):
    first, second = ask(stack), ask(stack, param={'n': 1})
    (task,) = take(stack)
    out = fail(stack, task, {'worker': 'one', 'claim': 600}, code='NOFONT', report='No such font.', delay=600)
    (following,) = out['tasks']
    assert (out['result'], out['retry'], out['startat']) == ('failed', 1, row(stack, first, 'startat')[0])
    assert (following['id'], following['param'], set(following)) == (second, {'n': 1}, set(task)), 'it is given as by take'
    assert row(stack, first, 'starttime, exc, report, retry') == (None, 'NOFONT', 'No such font.', 1)
    assert row(stack, second, 'holder, starttime, expires, follows') == (
        'external one', following['starttime'], following['until'], f'{first} {task["starttime"]} 0')
    assert history(stack) == [(first, 0, 'NOFONT')]
    assert fail(stack, following, final=True)['tasks'] == [] and row(stack, second, 'startat') == (PARKED,)


def test_what_is_put_back_may_be_taken_at_once(stack, manager):
    """As by a `take` that follows, and under a claim of its own, even if clocks stand still."""
    taskid = ask(stack)
    (task,) = take(stack)
    out = fail(stack, task, release=True)
    (again,) = out['tasks']
    assert (out['result'], again['id'], again['retry']) == ('released', taskid, 0) and again['starttime'] > task['starttime']
    stack.psql('lab', 'update taskqueue set starttime = 491231000000000')  # of a server whose clock is ahead
    (late,) = fail(stack, {**again, 'starttime': 491231000000000}, release=True)['tasks']
    assert late['starttime'] == 491231000000001
    out = fail(stack, late, delay=0)
    assert names(out['tasks']) == [taskid] and out['tasks'][0]['retry'] == out['retry'] == 1
    assert fail(stack, out['tasks'][0], delay=600)['tasks'] == []


def test_a_domain_a_priority_and_a_number(stack, manager):
    first, second = ask(stack, domain='d'), ask(stack, domain='d')
    low, high = ask(stack, priority=30), ask(stack, priority=25)
    (task,) = take(stack)
    assert task['id'] == first
    following = fail(stack, task, {'n': 2}, final=True)['tasks']
    assert names(following) == [second, high], 'the attempt that has ended leaves its domain free'
    strict = ask(stack, domain='e', order='strict')
    ask(stack, domain='e', order='strict')
    (task,) = [one for one in take(stack, n=5) if one['id'] == strict]
    assert fail(stack, task, {'domain': task['domain']}, delay=600)['tasks'] == [], 'a strict domain waits for what has failed'
    assert low in claimed(stack)


def test_pauses_and_limits(stack, manager):
    ask(stack)
    (task,) = take(stack)
    other, shout = ask(stack), ask(stack, 'shout')
    stack.op('lab', 'tasks', {'pause': {'op': 'resize'}}, admin=True)
    (following,) = fail(stack, task, {'n': 5}, delay=600)['tasks']
    assert following['id'] == shout
    stack.op('lab', 'tasks', {'resume': {'op': 'resize'}}, admin=True)
    stack.op('lab', 'tasks', {'limit': {'op': 'resize', 'running': 1}}, admin=True)
    (limited,) = fail(stack, following, {'n': 5}, final=True)['tasks']
    assert limited['id'] == other
    last = ask(stack)
    assert fail(stack, limited, {'n': 5}, delay=600)['tasks'][0]['id'] == last, 'its own end has made room'
    assert claimed(stack) == {last}


def test_a_resource_for_which_another_waits(stack, manager):
    ask(stack, resource='r')
    (task,) = take(stack)
    newer, other = ask(stack, resource='r', param={'n': 2}), ask(stack)
    out = fail(stack, task, {'n': 5}, delay=600)
    assert names(out['tasks']) == [newer, other] and row(stack, task['id'], '1') is None, 'the newer one starts when it was requested for'
    assert fail(stack, task, {'n': 5}, delay=600) == {name: value for name, value in out.items() if name != 'startat'}, 'it is gone'


# --- sent again ---

@pytest.mark.parametrize('how', [{'delay': 600}, {'final': True}, {'release': True, 'take': {'qn': 16, 'n': 1}}])
def test_a_request_that_is_repeated_changes_nothing_more(stack, manager, how):
    for _ in range(5):
        ask(stack)
    (task,) = take(stack)
    param = {**claim(task), 'take': {'qn': 16, 'n': 2}, **how}
    out = call(stack, 'fail', **param)
    rows = stack.psql('lab', 'select * from taskqueue order by number')
    for _ in range(2):
        assert call(stack, 'fail', **param)['tasks'] == out['tasks'] and stack.psql('lab', 'select * from taskqueue order by number') == rows
    assert len(history(stack)) == 1 and len(claimed(stack)) == len(out['tasks'])
    if 'release' not in how:
        assert call(stack, 'fail', **param) == out
        assert call(stack, 'fail', **claim(task)) == {name: out[name] for name in ('result', 'retry', 'startat')}
        refused('ACLAIM', call, stack, 'done', **claim(task), docs=note('late'))
        refused('ACLAIM', call, stack, 'done', **claim(task))
        refused('ACLAIM', call, stack, 'keep', **claim(task))
        assert stack.get('lab', ('Note', 'a'))['v'] == 0


def test_what_was_claimed_is_repeated_as_long_as_it_lasts(stack, manager):
    for _ in range(4):
        ask(stack)
    (task,) = take(stack)
    one, other = fail(stack, task, {'n': 2}, delay=600)['tasks']
    until = call(stack, 'keep', **claim(other), claim=900)['until']
    assert fail(stack, one, delay=600)['tasks'], 'another end has another claim'
    assert fail(stack, task, {'n': 2})['tasks'] == [{**other, 'until': until}]
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where taskid = %s', (other['id'],))
    assert fail(stack, task, {'n': 2})['tasks'] == []


def test_what_had_nothing_to_take_takes_nothing_later(stack, manager):
    ask(stack)
    (task,) = take(stack)
    out = fail(stack, task, final=True)
    ask(stack)
    assert out['tasks'] == [] and fail(stack, task, final=True) == out and claimed(stack) == set()


def test_only_an_attempt_that_has_failed_is_answered_again(stack, manager):
    ask(stack)
    (task,) = take(stack)
    overdue(stack)
    refused('ACLAIM', fail, stack, task)
    (again,) = take(stack)
    assert again['retry'] == 1 and history(stack, 'exc') == [('LOST',)]
    refused('ACLAIM', fail, stack, task)
    assert call(stack, 'done', **claim(again))['result'] == 'done'
    refused('ACLAIM', fail, stack, again)
    ask(stack)
    (dropped,) = take(stack)
    stack.op('lab', 'tasks', {'drop': dropped['id']}, admin=True)
    refused('ACLAIM', fail, stack, dropped)
    refused('ACLAIM', fail, stack, {**again, 'id': again['id'][::-1]})
    assert claimed(stack) == set()


def test_one_request_that_arrives_many_times(stack, manager):
    for _ in range(6):
        ask(stack)
    (task,) = take(stack)
    answers = []
    holder = psycopg2.connect(stack.conninfo('lab'))
    try:
        holder.cursor().execute('select from stampd.taskqueue where taskid = %s for update', (task['id'],))
        threads = [threading.Thread(target=lambda: answers.append(fail(stack, task, {'n': 2}, delay=600))) for _ in range(6)]
        for thread in threads:
            thread.start()
        wait_until(lambda: stack.psql('lab', 'select count(*) >= 2 from pg_locks where not granted') == [(True,)], what='two at their commits')
    finally:
        holder.close()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(answers) == 6 and {json.dumps(answer, sort_keys=True) for answer in answers} == {json.dumps(answers[0], sort_keys=True)}
    assert len(history(stack)) == 1 and claimed(stack) == set(names(answers[0]['tasks'])) and len(claimed(stack)) == 2


# --- rights and refusals ---

def test_whose_queue_it_is_not_ends_nothing(stack, manager):
    ask(stack)
    (task,) = take(stack)
    stack.op('lab', 'task', {'op': 'secret'}, admin=True)
    refused('SCLOSED', fail, stack, task, {'qn': 17})
    for wrong in ({'qn': 3}, {'n': 0}, {'n': 101}, {'wait': -1}, {'claim': 0}, {'worker': 'a b'}, {'more': 1}):
        refused('AARG', fail, stack, task, wrong)
    refused('AARG', call, stack, 'fail', **claim(task), take=16)
    refused('AARG', fail, stack, task, final=True, release=True)
    refused('SCLOSED', call, stack, 'fail', key=OTHER_KEY, **claim(task), take={'qn': 17})
    assert claimed(stack) == {task['id']} and history(stack) == []
    assert call(stack, 'fail', key=stack.key, **claim(task), take={'qn': 17})['tasks'][0]['op'] == 'secret', 'the administrator serves both'
    refused('SCLOSED', fail, stack, task, {'qn': 17})
    refused('SCLOSED', call, stack, 'fail', key=OTHER_KEY, **claim(task))


def test_no_cache_keeps_it(stack, manager):
    ask(stack)
    (task,) = take(stack)
    answer = stack.request('POST', '/lab/op/fail', json={'param': {**claim(task), 'take': {'qn': 16}}}, headers={'Authorization': f'Bearer {KEY}'})
    assert answer.status_code == 200 and answer.headers['Cache-Control'] == 'no-store'


def test_a_failure_of_the_take_hides_no_end(stack, manager):
    ask(stack), ask(stack)
    (task,) = take(stack)
    function = 'task_take(int, text, int, bigint, bigint, text, bigint, text)'
    stack.psql('lab', f'alter function {function} rename to task_take_of_before')
    try:
        out = fail(stack, task, {'wait': 60}, delay=600)
    finally:
        stack.psql('lab', f"alter function {function.replace('task_take', 'task_take_of_before', 1)} rename to task_take")
    assert (out['result'], out['tasks']) == ('failed', []) and history(stack) == [(task['id'], 0, 'FAILED')] and claimed(stack) == set()


def test_a_lock_of_the_limits_that_another_holds(stack, manager):
    """The end goes on without a claim; a take is refused as others are whose lock another holds."""
    stack.op('lab', 'tasks', {'limit': {'op': 'resize', 'running': 5}}, admin=True)
    ask(stack), ask(stack)
    (task,) = take(stack)
    stack.set(lock_timeout_ms=50)
    try:
        with contextlib.closing(psycopg2.connect(stack.conninfo('lab'))) as holder:
            holder.cursor().execute(f'select pg_advisory_xact_lock({LIMITS_LOCK})')
            assert refused('CONTENTION', take, stack).body['phase'] == 1
            out = fail(stack, task, {'wait': 1}, delay=600)
            assert (out['result'], out['tasks']) == ('failed', []) and out['pause'] > 0 and claimed(stack) == set()
    finally:
        stack.set(lock_timeout_ms=5000)
    assert len(take(stack)) == 1


# --- deaths ---

def test_a_process_that_is_killed_in_the_commit(stack, manager):
    stack.op('lab', 'tasks', {'limit': {'op': 'resize', 'running': 5}}, admin=True)
    for _ in range(3):
        ask(stack)
    (task,) = take(stack)
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    holder = psycopg2.connect(stack.conninfo('lab'))
    try:
        holder.cursor().execute(f'select pg_advisory_xact_lock({LIMITS_LOCK})')
        thread = threading.Thread(target=lambda: stack.request('POST', '/lab/op/fail', json={'param': {**claim(task), 'delay': 600, 'take': {'qn': 16}}},
                                                               headers={'Authorization': f'Bearer {KEY}'}))
        thread.start()
        wait_until(lambda: stack.psql('lab', waiting) == [(1,)], what='the claim')
        for pid in stack.worker_pids():
            stack.kill_worker(pid)
    finally:
        holder.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    wait_until(lambda: stack.psql('lab', waiting) == [(0,)], what='the end of the session')
    assert stack.psql('lab', 'select (select count(*) from task_history) = (select count(*) from taskqueue where follows is not null)') == [(True,)], 'both or neither'
    out = fail(stack, task, delay=600)
    assert fail(stack, task, delay=600) == out and history(stack) == [(task['id'], 0, 'FAILED')]
    assert claimed(stack) == set(names(out['tasks'])) and len(out['tasks']) == 1


@pytest.mark.plain
@pytest.mark.parametrize('point', ['commit-answered', 'task-taken'])
def test_an_answer_that_is_lost_behind_the_commit(stack, manager, point):
    ask(stack), ask(stack)
    (task,) = take(stack)
    stack.set(debug_die_at=point)
    try:
        with pytest.raises((Problem, requests.RequestException)) as problem:
            fail(stack, task, delay=600)
        assert not isinstance(problem.value, Problem) or 'phase' not in problem.value.body, 'it may have been done'
    finally:
        stack.set(debug_die_at='')
    (before,) = claimed(stack)
    assert before != task['id'] and names(fail(stack, task, delay=600)['tasks']) == [before] and history(stack) == [(task['id'], 0, 'FAILED')]

"""`take` of one task, which a statement of its own claims where nothing but the place of a task decides.

A worker process that has found nothing so does not try for its next takes of the queue: each test begins with new processes."""
import psycopg2
import pytest

import queue_worker
from manager import Manager
from queue_worker import ask, call, claim
from stack import Problem, wait_until

QUEUES = [queue_worker.queue(16, 'resize', 'shout', request='anybody'), queue_worker.queue(17, 'blur', request='anybody')]
STACK = {'workers': 1}


@pytest.fixture(scope='module', autouse=True)
def declared(stack):
    queue_worker.declare(stack, QUEUES)


@pytest.fixture
def manager(stack):
    stack.psql('lab', 'truncate taskqueue, task_history, task_limit, task_debt, task_paused')
    stack.restart_stampd()
    return Manager(stack, 'lab')


def take(stack, qn=16, **more):
    return call(stack, 'take', qn=qn, **more)['tasks']


def taken(stack, qn=16):
    return [task['id'] for task in take(stack, qn)]


def test_one_after_the_other_by_priority_start_and_creation(stack, manager):
    late = ask(stack, delay=86400)
    second, third, first, fourth = ask(stack), ask(stack), ask(stack, priority=10), ask(stack, priority=30)
    stack.psql('lab', 'update taskqueue set startat = 250101000000000 where taskid = any (%s)', ([second, third],))
    assert [taken(stack) for _ in range(5)] == [[first], [second], [third], [fourth], []]
    assert stack.psql('lab', 'select taskid from taskqueue where starttime is null') == [(late,)]


def test_behind_what_is_more_urgent_and_starts_later(stack, manager):
    ask(stack, priority=5, delay=86400)
    task = ask(stack)
    assert taken(stack) == [task] and taken(stack) == []


def test_the_row_and_the_answer(stack, manager):
    task = ask(stack, param={'n': 1}, info='words', priority=7)
    stack.psql('lab', "update taskqueue set exc = 'LOST', report = 'words', progress = 'half', follows = 'other 1 0', retry = 3")
    (found,) = take(stack, worker='one', claim=600)
    assert (found['id'], found['op'], found['param'], found['info'], found['priority'], found['retry'], found['qn']) == (
        task, 'resize', {'n': 1}, 'words', 7, 3, 16)
    assert stack.psql('lab', 'select holder, starttime, expires, exc, report, progress, follows from taskqueue') == [
        ('external one', found['starttime'], found['until'], None, None, None, None)]
    assert call(stack, 'done', **claim(found)) == {'result': 'done'} and manager.is_empty()


def test_each_queue_has_its_own(stack, manager):
    other, one = ask(stack, 'blur'), ask(stack)
    assert taken(stack) == [one] and taken(stack) == [] and taken(stack, qn=17) == [other]


def test_one_that_is_locked_is_left_to_others(stack, manager):
    locked, free = ask(stack), ask(stack)
    holder = psycopg2.connect(stack.conninfo('lab'))
    try:
        holder.cursor().execute('select from stampd.taskqueue where taskid = %s for update', (locked,))
        assert taken(stack) == [free]
        pid = holder.info.backend_pid
    finally:
        holder.close()
    wait_until(lambda: not stack.psql('lab', 'select 1 from pg_stat_activity where pid = %s', (pid,)), what='the end of the lock')
    assert taken(stack) == [locked]


@pytest.mark.parametrize('pause', [{'op': 'resize'}, {'qn': 16}])
def test_a_pause_holds(stack, manager, pause):
    first, second, other = ask(stack), ask(stack), ask(stack, 'shout')
    assert taken(stack) == [first]
    stack.op('lab', 'tasks', {'pause': pause}, admin=True)
    assert taken(stack) == ([] if 'qn' in pause else [other]) and taken(stack) == []
    stack.op('lab', 'tasks', {'resume': pause}, admin=True)
    assert taken(stack) == [second]


@pytest.mark.parametrize('of', [{'op': 'resize'}, {'qn': 16}])
def test_a_limit_holds_for_claims_of_the_same_session(stack, manager, of):
    """What a claim without limits has set ends with its transaction."""
    ask(stack), ask(stack), ask(stack)
    (task,) = take(stack)
    assert stack.op('lab', 'tasks', {'limit': {**of, 'running': 2}}, admin=True)
    assert len(take(stack, n=5)) == 1 and taken(stack) == []
    call(stack, 'done', **claim(task))
    assert len(taken(stack)) == 1


def test_a_limit_is_kept_by_each_update(stack, manager):
    """Whatever statement claims: the trigger counts."""
    first, second = ask(stack), ask(stack)
    assert taken(stack) == [first]
    stack.op('lab', 'tasks', {'limit': {'qn': 16, 'running': 1}}, admin=True)
    stack.psql('lab', 'update taskqueue set starttime = stamp_now() where taskid = %s', (second,))
    assert stack.psql('lab', 'select starttime from taskqueue where taskid = %s', (second,)) == [(None,)]
    stack.psql('lab', 'update taskqueue set starttime = null, expires = null, holder = null where taskid = %s', (first,))
    assert taken(stack) == [first] and taken(stack) == []


def test_domains_have_their_turn(stack, manager):
    plain, urgent, second = ask(stack, priority=20), ask(stack, domain='d', priority=10), ask(stack, domain='d', priority=15)
    assert [taken(stack), taken(stack), taken(stack)] == [[urgent], [plain], []], 'one at a time of the domain'
    assert stack.psql('lab', 'select taskid from taskqueue where starttime is null') == [(second,)]


def test_claims_that_have_ended_come_back_while_others_are_given(stack, manager):
    lost = ask(stack)
    (task,) = take(stack)
    others = [ask(stack), ask(stack)]
    assert task['id'] == lost
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where taskid = %s', (lost,))
    assert taken(stack) == [others[0]]
    assert stack.psql('lab', 'select starttime, retry, exc from taskqueue where taskid = %s', (lost,)) == [(None, 1, 'LOST')]
    with pytest.raises(Problem) as problem:
        call(stack, 'done', **claim(task))
    assert problem.value.body['code'] == 'ACLAIM'


def test_a_worker_that_has_found_nothing_finds_what_comes(stack, manager):
    for _ in range(3):
        assert taken(stack) == []
        task = ask(stack)
        assert taken(stack) == [task]
    first, second = ask(stack), ask(stack)
    for _ in range(20):
        assert taken(stack, qn=17) == []
    assert taken(stack) == [first] and taken(stack) == [second]

"""`done` with `take`: the commit that ends a task of an external worker claims the next ones for it."""
import secrets
import threading

import psycopg2
import pytest
import requests

import queue_worker
from manager import Manager
from queue_worker import KEY, QUEUES, ask, call, claim, claimed, names, note, take
from stack import PATIENCE_S, Problem, refused, wait_until

STACK = {'workers': 3}
LIMITS_LOCK = "hashtextextended('stampd task limits', 0)"


@pytest.fixture(scope='module', autouse=True)
def declared(stack):
    queue_worker.declare(stack, QUEUES)


@pytest.fixture
def manager(stack):
    queue_worker.empty(stack)
    return Manager(stack, 'lab')


def done(stack, task, take=None, **more):
    return call(stack, 'done', **claim(task), take={'qn': 16, **(take or {})}, **more)


def test_the_end_and_the_next_claim_are_one_commit(stack, manager):
    first, second, third = (ask(stack, param={'n': n}) for n in range(3))
    (task,) = take(stack)
    out = done(stack, task, {'worker': 'one', 'claim': 600})
    (following,) = out['tasks']
    assert out['result'] == 'done' and (task['id'], following['id'], following['param'], following['retry']) == (first, second, {'n': 1}, 0)
    assert stack.psql('lab', 'select taskid, holder, starttime, expires from taskqueue where starttime is not null') == [
        (second, 'external one', following['starttime'], following['until'])]
    assert set(following) == set(task), 'it is given as by take'
    (last,) = done(stack, following)['tasks']
    assert last['id'] == third and done(stack, last) == {'result': 'done', 'tasks': []} and manager.is_empty()


def test_with_documents_too(stack, manager):
    ask(stack), ask(stack)
    (task,) = take(stack)
    refused('AVERSION', done, stack, task, docs=note('x', **{'if': 991231000000000}))
    assert claimed(stack) == {task['id']}, 'what ends nothing takes nothing'
    out = done(stack, task, docs=note('small'), result=7)
    (following,) = out['tasks']
    assert out['result'] == 'done' and out['docs'] == [{'c': 'Note', 'id': 'a', 'v': out['v']}] and claimed(stack) == {following['id']}
    assert done(stack, task, docs=note('again')) == {'result': 'done', 'tasks': [following]} and stack.get('lab', ('Note', 'a'))['v'] == out['v']


def test_a_request_that_is_repeated_gets_the_same_claims_and_takes_no_more(stack, manager):
    for _ in range(5):
        ask(stack)
    (task,) = take(stack)
    out = done(stack, task, {'n': 2})
    for _ in range(2):
        assert done(stack, task, {'n': 2}) == out and len(claimed(stack)) == 2
    assert stack.psql('lab', 'select count(*) from task_history') == [(1,)]
    one, other = out['tasks']
    until = call(stack, 'keep', **claim(other), claim=900)['until']
    assert done(stack, one)['tasks'], 'another end has another claim'
    assert done(stack, task) == {'result': 'done', 'tasks': [{**other, 'until': until}]}, 'what still lasts'
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where taskid = %s', (other['id'],))
    assert done(stack, task)['tasks'] == []
    assert len(take(stack, n=5)) + len(take(stack, n=5)) == 2, 'the fifth, then the one whose claim has ended'
    assert done(stack, task)['tasks'] == [], 'its next claim is of another request'


def test_a_key_of_idempotency_repeats_the_claims(stack, manager):
    ask(stack), ask(stack), ask(stack)
    (task,) = take(stack)
    keyed = {'Idempotency-Key': secrets.token_hex(16)}
    out = done(stack, task, docs=note('once'), headers=keyed)
    again = done(stack, task, docs=note('once'), headers=keyed)
    assert again['tasks'] == out['tasks'] and again['v'] == out['v'] and len(claimed(stack)) == 1


def test_what_had_nothing_to_take_takes_nothing_later(stack, manager):
    ask(stack)
    (task,) = take(stack)
    assert done(stack, task)['tasks'] == []
    ask(stack)
    assert done(stack, task) == {'result': 'done', 'tasks': []} and claimed(stack) == set()


def test_a_claim_that_has_ended_takes_nothing(stack, manager):
    ask(stack), ask(stack)
    (task,) = take(stack)
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where expires is not null')
    for docs in ({}, {'docs': note('late')}):
        refused('ACLAIM', done, stack, task, **docs)
    assert claimed(stack) == {task['id']} and stack.get('lab', ('Note', 'a'))['v'] == 0


def test_priority_domain_and_number(stack, manager):
    ask(stack)
    (task,) = take(stack)
    low, high, of_domain = ask(stack, priority=30), ask(stack, priority=25), ask(stack, domain='d')
    first, second = done(stack, task, {'n': 2})['tasks']
    assert names((first, second)) == [of_domain, high]
    last_of_domain = ask(stack, domain='d')
    assert names(done(stack, first, {'domain': first['domain']})['tasks']) == [last_of_domain], 'the end of a task has freed its domain'
    assert low not in claimed(stack)


def test_pauses_and_limits(stack, manager):
    ask(stack)
    (task,) = take(stack)
    other, shout = ask(stack), ask(stack, 'shout')
    stack.op('lab', 'tasks', {'pause': {'op': 'resize'}}, admin=True)
    (following,) = done(stack, task, {'n': 5})['tasks']
    assert following['id'] == shout
    stack.op('lab', 'tasks', {'resume': {'op': 'resize'}}, admin=True)
    stack.op('lab', 'tasks', {'limit': {'op': 'resize', 'running': 1}}, admin=True)
    (limited,) = done(stack, following, {'n': 5})['tasks']
    assert limited['id'] == other
    last = ask(stack)
    assert names(done(stack, limited, {'n': 5})['tasks']) == [last], 'its own end has made room'


def test_a_task_of_a_domain_that_another_has_locked_is_left_to_it(stack, manager):
    """Without a wait: the commit holds locks of its own."""
    ask(stack)
    (task,) = take(stack)
    of_domain, plain = ask(stack, domain='d'), ask(stack)
    other = psycopg2.connect(stack.conninfo('lab'))
    try:
        other.cursor().execute('select from stampd.taskqueue where taskid = %s for update', (of_domain,))
        (following,) = done(stack, task, {'n': 2})['tasks']
        other.rollback()  # the end of a connection alone is not waited for
    finally:
        other.close()
    assert following['id'] == plain and names(done(stack, following)['tasks']) == [of_domain]


def test_no_cache_keeps_claims(stack, manager):
    ask(stack), ask(stack)
    (task,) = take(stack)
    for more in ({'take': {'qn': 16}}, {'take': {'qn': 16}}, {}):
        answer = stack.request('POST', '/lab/op/done', json={'param': {**claim(task), **more}}, headers={'Authorization': f'Bearer {KEY}'})
        assert answer.status_code == 200 and (answer.headers['Cache-Control'] == 'no-store') == ('take' in more)


def test_whose_queue_it_is_not_ends_nothing(stack, manager):
    ask(stack)
    (task,) = take(stack)
    stack.op('lab', 'task', {'op': 'secret'}, admin=True)
    refused('SCLOSED', done, stack, task, {'qn': 17})
    refused('SCLOSED', done, stack, task, {'qn': 18})
    for wrong in ({'qn': 3}, {'qn': None}, {'n': 0}, {'n': 101}, {'wait': -1}, {'wait': 3601}, {'more': 1}, {'claim': 0}, {'worker': 'a b'}):
        refused('AARG', done, stack, task, wrong)
    refused('AARG', call, stack, 'done', **claim(task), take=16)
    assert claimed(stack) == {task['id']} and stack.psql('lab', 'select count(*) from task_history') == [(0,)]
    assert call(stack, 'done', key=stack.key, **claim(task), take={'qn': 17})['tasks'][0]['op'] == 'secret', 'the administrator serves both'
    refused('SCLOSED', done, stack, task, {'qn': 17})


def test_a_failure_of_the_take_hides_no_end(stack, manager):
    ask(stack), ask(stack), ask(stack)
    plain, full = take(stack, n=2)
    function = 'task_take(int, text, int, bigint, bigint, text, bigint, text)'
    stack.psql('lab', f'alter function {function} rename to task_take_of_before')
    try:
        assert done(stack, plain) == {'result': 'done', 'tasks': []}
        out = done(stack, full, docs=note('there'))
        assert out['tasks'] == [] and stack.get('lab', ('Note', 'a'))['v'] == out['v']
    finally:
        stack.psql('lab', f"alter function {function.replace('task_take', 'task_take_of_before', 1)} rename to task_take")
    assert stack.psql('lab', 'select count(*) from task_history where exc is null') == [(2,)] and claimed(stack) == set()


def test_claims_that_have_ended_come_back(stack, manager):
    lost = ask(stack)
    (task,) = take(stack)
    for _ in range(3):
        ask(stack)
    (other,) = take(stack)
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where taskid = %s', (task['id'],))
    assert done(stack, other)['tasks'] and stack.psql('lab', 'select starttime, exc from taskqueue where taskid = %s', (lost,)) == [(None, 'LOST')]


def test_a_periodic_task(stack, manager):
    stack.psql('lab', "select cron_set('Nightly', 'shout', 'D0425')")
    try:
        manager.scan()
        manager.hurry()
        (task,) = take(stack)
        following = ask(stack)
        assert names(done(stack, task)['tasks']) == [following]
        assert names(done(stack, task)['tasks']) == [following], 'its row waits for the next time'
    finally:
        stack.psql('lab', "select cron_drop('Nightly')")


def test_a_worker_that_is_killed_in_the_commit(stack, manager):
    """Whatever has become of the commit, the request that is repeated ends the task once and has its claim."""
    stack.op('lab', 'tasks', {'limit': {'op': 'resize', 'running': 5}}, admin=True)
    for _ in range(3):
        ask(stack)
    (task,) = take(stack)
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    holder = psycopg2.connect(stack.conninfo('lab'))
    try:
        holder.cursor().execute(f'select pg_advisory_xact_lock({LIMITS_LOCK})')
        thread = threading.Thread(target=lambda: stack.request('POST', '/lab/op/done', json={'param': {**claim(task), 'take': {'qn': 16}}},
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
    out = done(stack, task)
    assert out['result'] == 'done' and done(stack, task) == out
    assert stack.psql('lab', 'select taskid, exc from task_history') == [(task['id'], None)]
    assert claimed(stack) == set(names(out['tasks'])) and len(out['tasks']) == 1


@pytest.mark.plain
def test_an_answer_that_is_lost_behind_the_commit(stack, manager):
    ask(stack), ask(stack)
    (task,) = take(stack)
    stack.set(debug_die_at='task-taken')
    try:
        with pytest.raises((Problem, requests.RequestException)):
            done(stack, task)
    finally:
        stack.set(debug_die_at='')
    (before,) = claimed(stack)
    assert before != task['id'] and names(done(stack, task)['tasks']) == [before]

"""External workers: they take tasks of queues from 16 on, under claims that end by themselves, and end them by requests."""
import contextlib
import functools
import json
import os
import signal
import subprocess
import threading

import pytest
import requests

import queue_worker
from door_client import Client
from manager import PARKED, Manager
from queue_worker import KEY, OTHER_KEY, ask, call, claim, history, note, overdue, queue, row, take
from stack import PATIENCE_S, SOURCE, Problem, refused, wait_until

QUEUES = [queue(16, 'resize', 'shout', roles=['render'], request='anybody'), queue(17, 'secret', key=OTHER_KEY, retries='1d,~10')]
STACK = {'workers': 4, 'settings': {'task_retries': '1 10', 'task_waiters': 2}}


@pytest.fixture(scope='module', autouse=True)
def declared(stack):
    queue_worker.declare(stack, QUEUES)
    return functools.partial(queue_worker.declare, stack)


@pytest.fixture
def manager(stack):
    queue_worker.empty(stack)
    return Manager(stack, 'lab')


# --- taking and ending ---

def test_a_task_is_taken_and_done_with_its_changes_in_one_commit(stack, manager):
    taskid = ask(stack, param={'size': 3}, info='a picture')
    (task,) = take(stack, worker='first')
    assert (task['id'], task['op'], task['param'], task['info'], task['qn'], task['retry']) == (taskid, 'resize', {'size': 3}, 'a picture', 16, 0)
    assert row(stack, taskid, 'holder, starttime') == ('external first', task['starttime']) and task['until'] > task['starttime']
    assert take(stack) == []
    out = call(stack, 'done', **claim(task), result={'bytes': 7}, docs=note('small'))
    assert out['result'] == 'done' and out['docs'] == [{'c': 'Note', 'id': 'a', 'v': out['v']}]
    assert stack.get('lab', ('Note', 'a'))['v'] == out['v'] and row(stack, taskid, '1') is None
    assert [(exc, json.loads(result)) for exc, result in history(stack)] == [(None, {'bytes': 7})]
    again = call(stack, 'done', **claim(task), docs=note('again'))
    assert again == {'result': 'done'} and stack.get('lab', ('Note', 'a'))['v'] == out['v'], 'the answer was lost, not the end'


def test_what_a_document_refuses_ends_no_task(stack, manager):
    ask(stack)
    (task,) = take(stack)
    docs = note('small')
    docs[0]['if'] = 991231000000000
    refused('AVERSION', call, stack, 'done', **claim(task), docs=docs)
    assert row(stack, task['id'], 'starttime') == (task['starttime'],) and history(stack) == []
    refused('AARG', call, stack, 'done', **claim(task), docs=[{'c': 'Note'}])
    assert call(stack, 'done', **claim(task)) == {'result': 'done'}


def test_the_next_ones_come_by_priority_and_start(stack, manager):
    later = ask(stack, delay=3600)
    low, high = ask(stack, priority=30), ask(stack, priority=25)
    first = ask(stack)
    answer = call(stack, 'take', qn=16, n=2)
    assert [task['id'] for task in answer['tasks']] == [first, high]
    assert [task['id'] for task in take(stack, n=5)] == [low]
    answer = call(stack, 'take', qn=16)
    assert answer['tasks'] == [] and answer['pause'] > 0 and answer['t'] < answer['next'] < row(stack, later, 'startat')[0], 'a claim ends first'


def test_of_a_domain_one_at_a_time(stack, manager):
    first, second = ask(stack, domain='d'), ask(stack, domain='d')
    other = ask(stack, domain='e')
    tasks = take(stack, n=10)
    assert {task['id'] for task in tasks} == {first, other}
    domain = tasks[0]['domain'] if tasks[0]['id'] == first else tasks[1]['domain']
    assert take(stack, n=10) == []
    call(stack, 'done', **claim(next(task for task in tasks if task['id'] == first)))
    assert [task['id'] for task in take(stack, domain='none')] == []
    assert [task['id'] for task in take(stack, domain=domain)] == [second]


def test_the_next_of_a_domain(stack, manager):
    first, soon, late, plain = ask(stack, domain='d'), ask(stack, domain='d', delay=600), ask(stack, domain='e', delay=900), ask(stack, delay=60)
    d, e = (row(stack, task, 'domain')[0] for task in (first, late))
    (task,) = take(stack, domain=d)
    assert call(stack, 'take', qn=16, domain=d)['next'] == row(stack, first, 'expires')[0], 'a claim ends first'
    assert call(stack, 'take', qn=16, domain=e)['next'] == row(stack, late, 'startat')[0]
    call(stack, 'done', **claim(task))
    assert call(stack, 'take', qn=16, domain=d)['next'] == row(stack, soon, 'startat')[0]
    assert call(stack, 'take', qn=16)['next'] == row(stack, plain, 'startat')[0]
    assert 'next' not in call(stack, 'take', qn=16, domain='none')


def test_a_domain_is_shared_with_tasks_of_the_server(stack, manager):
    """And neither side runs what is the other's."""
    for op, qn in (('put', 0), ('resize', 16), ('put', 0)):
        stack.psql('lab', "select task_create(%s, '{\"docs\":[]}', qn => %s, domain => 'mixed')", (op, qn))
    (own,) = manager.due()
    assert take(stack) == []
    outcome = manager.run(own)
    assert outcome['result'] == 'done' and 'next' not in outcome and manager.due() == []
    (task,) = take(stack)
    assert manager.run(task['id'])['result'] == 'external' and manager.run_together([task['id'], 'gone0000'])[0]['result'] == 'external'
    call(stack, 'done', **claim(task))
    (last,) = manager.due()
    assert manager.run(last)['result'] == 'done' and manager.is_empty()


def test_the_manager_runs_nothing_of_external_workers(stack, manager):
    taskids = [ask(stack), ask(stack, domain='d')] + [ask(stack) for _ in range(3)]
    assert manager.due() == []
    for taskid in taskids:
        assert manager.run(taskid)['result'] == 'external'
    assert {outcome['result'] for outcome in manager.run_together(taskids)} == {'external'}
    assert len(take(stack, n=10)) == 5


# --- claims ---

def test_a_late_worker_changes_nothing(stack, manager):
    """Whether the claim has only ended, or another attempt has begun."""
    taskid = ask(stack)
    (late,) = take(stack)
    overdue(stack)
    for again in range(2):
        for name, more in (('done', {'docs': note('late')}), ('done', {}), ('keep', {}), ('fail', {'delay': 0})):
            problem = refused('ACLAIM', call, stack, name, **claim(late), **more)
            assert again or problem
        if again:
            break
        (task,) = take(stack)
        assert (task['id'], task['retry']) == (taskid, 1), 'taking puts back what was lost'
    assert stack.get('lab', ('Note', 'a'))['v'] == 0
    assert call(stack, 'done', **claim(task), docs=note('in time'))['result'] == 'done'
    assert history(stack, 'retry, exc') == [(0, 'LOST'), (1, None)]
    refused('ACLAIM', call, stack, 'done', **claim(late))


def test_an_end_without_documents_leaves_what_one_with_them_does(stack, manager):
    """It takes another statement, which has not read the task before."""
    columns = 'opname, info, qn, retry, step, exc, result, owner, param, resource is null, domain, key, priority, batch, strict, of_client, credential, trace'
    for domain in (None, 'd'):
        for docs in ({}, {'docs': []}):
            ask(stack, param={'n': 1}, info='one', priority=30, key='k', **({'domain': domain, 'order': 'strict'} if domain else {}))
            (task,) = take(stack)
            assert call(stack, 'done', **claim(task), result={'m': 2}, **docs)['result'] == 'done'
            assert call(stack, 'done', **claim(task), **docs)['result'] == 'done', 'its answer was lost'
    bare, full, of_domain, full_of_domain = history(stack, columns)
    assert bare == full and of_domain == full_of_domain and json.loads(bare[8]) == {'n': 1} and json.loads(bare[6]) == {'m': 2}
    assert of_domain[10].endswith('d') and manager.is_empty()


def test_a_scan_puts_back_what_was_lost(stack, manager):
    ask(stack)
    (task,) = take(stack)
    assert [one['id'] for one in manager.scan()['running']] == [task['id']], 'a claim that has not ended is left alone'
    overdue(stack)
    (lost,) = manager.scan()['lost']
    assert (lost['id'], lost['why'], lost['retry']) == (task['id'], 'claim', 1)
    assert row(stack, task['id'], 'starttime, holder, expires, exc') == (None, None, None, 'LOST')


def test_a_claim_is_extended(stack, manager):
    ask(stack)
    (task,) = take(stack, claim=300)
    out = call(stack, 'keep', **claim(task), claim=600, progress='half')
    assert out['until'] > task['until'] and row(stack, task['id'], 'expires, progress') == (out['until'], 'half')
    shown = stack.op('lab', 'tasks', {'show': task['id']}, admin=True)['out']
    assert 'half' in json.dumps(shown)
    assert stack.psql('lab', "select task_put_back(%s, %s, 0, stamp_now(), true, 'LOST', '', stamp_now())", (task['id'], task['starttime'])) == [(None,)], \
        'a scan that had read the row before'
    assert call(stack, 'done', **claim(task))['result'] == 'done'


def test_failures_wait_and_are_parked(stack, manager):
    taskid = ask(stack)
    (task,) = take(stack)
    out = call(stack, 'fail', **claim(task), delay=0, code='NOFONT', report='No such font.')
    assert (out['result'], out['retry']) == ('failed', 1) and row(stack, taskid, 'exc, report') == ('NOFONT', 'No such font.')
    (task,) = take(stack)
    out = call(stack, 'fail', **claim(task))
    assert out['startat'] > row(stack, taskid, 'stamp_now()')[0] and row(stack, taskid, 'exc, retry') == ('FAILED', 2) and take(stack) == []
    manager.hurry()
    (task,) = take(stack)
    assert call(stack, 'fail', **claim(task), release=True)['result'] == 'released' and row(stack, taskid, 'retry') == (2,)
    (task,) = take(stack)
    assert call(stack, 'fail', **claim(task), final=True)['startat'] == PARKED
    assert history(stack, 'exc') == [('NOFONT',), ('FAILED',), ('MORE',), ('FAILED',)]
    for wrong in ({'code': 'LOST'}, {'code': 'x'}, {'delay': -1}, {'final': True, 'release': True}):
        refused('AARG', lambda param: call(stack, 'fail', **param), {**claim(task), **wrong})


def test_a_queue_has_its_own_delays(stack, manager):
    stack.op('lab', 'task', {'op': 'secret'}, admin=True)
    for parked in False, True:
        (task,) = call(stack, 'take', key=OTHER_KEY, qn=17)['tasks']
        start = call(stack, 'fail', key=OTHER_KEY, **claim(task))['startat']
        assert (start == PARKED) == parked
        assert parked or start > row(stack, task['id'], "stamp_of(now() + interval '23 hours')")[0]
        manager.hurry()


def test_nothing_is_taken_of_what_is_paused(stack, manager):
    resize, shout, domain = ask(stack), ask(stack, 'shout'), ask(stack, domain='d')
    stack.op('lab', 'tasks', {'pause': {'op': 'resize'}}, admin=True)
    (task,) = take(stack, n=5)
    assert task['id'] == shout
    stack.op('lab', 'tasks', {'pause': {'qn': 16}}, admin=True)
    stack.op('lab', 'tasks', {'resume': {'op': 'resize'}}, admin=True)
    assert take(stack, n=5) == [] and call(stack, 'keep', **claim(task))['until'], 'what was taken continues'
    stack.op('lab', 'tasks', {'resume': {'qn': 16}}, admin=True)
    assert {one['id'] for one in take(stack, n=5)} == {resize, domain}


def test_an_administrator_drops_a_task_that_is_worked_at(stack, manager):
    ask(stack)
    (task,) = take(stack)
    assert stack.psql('lab', 'select task_drop(%s)', (task['id'],)) == [(True,)]
    refused('ACLAIM', call, stack, 'done', **claim(task), docs=note('late'))
    assert stack.get('lab', ('Note', 'a'))['v'] == 0


def test_a_periodic_task_comes_again(stack, manager):
    stack.psql('lab', "select cron_set('Nightly', 'shout', 'D0425')")
    try:
        manager.scan()
        assert stack.psql('lab', 'select qn, cron from taskqueue') == [(16, 'Nightly')]
        manager.hurry()
        (task,) = take(stack)
        assert call(stack, 'done', **claim(task), result=1)['result'] == 'done'
        assert row(stack, task['id'], 'starttime, expires, startat > stamp_now()') == (None, None, True) and history(stack) == [(None, '1')]
    finally:
        stack.psql('lab', "select cron_drop('Nightly')")


# --- rights ---

def test_nobody_serves_a_queue_that_is_not_declared_for_him(stack, manager, declared):
    ask(stack)
    taken = take(stack)[0]
    for key in (OTHER_KEY, None, 'wrong'):
        headers = {'Authorization': f'Bearer {key}'} if key else {}
        for name, param in (('take', {'qn': 16}), ('done', claim(taken)), ('keep', claim(taken)), ('fail', claim(taken))):
            answer = stack.request('POST', f'/lab/op/{name}', json={'param': param}, headers=headers)
            assert answer.status_code in (401, 403) and answer.json()['code'] in ('SCLOSED', 'SKEY'), (name, key)
    refused('SCLOSED', call, stack, 'take', qn=18)
    refused('AARG', call, stack, 'take', qn=3)
    assert call(stack, 'take', key=stack.key, qn=16)['tasks'] == [], 'the administrator may'
    declared([QUEUES[1]])
    try:
        refused('SKEY', call, stack, 'done', **claim(taken))
    finally:
        declared(QUEUES)
    assert call(stack, 'done', **claim(taken))['result'] == 'done'


def test_the_key_of_a_queue_gives_no_other_right(stack, manager):
    conf = next(item['j'] for item in stack.get('z', ('Namespace', 'lab'), admin=True)['items'] if item['c'] == 'Conf')
    stack.put('lab', *note('private'))
    ask(stack)
    (task,) = take(stack)
    stack.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Conf', 'j': {**conf, 'access': 'closed'}}]}, admin=True)
    try:
        for name, param in (('get', {'docs': [{'c': 'Note', 'id': 'a'}]}), ('put', {'docs': note('x')}), ('tasks', {'backlog': True})):
            refused('SCLOSED', call, stack, name, **param)
        refused('SCLOSED', call, stack, 'done', **claim(task), docs=note('x'))
        assert call(stack, 'done', **claim(task))['result'] == 'done'
    finally:
        stack.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Conf', 'j': conf}]}, admin=True)


def test_who_may_request_tasks(stack, manager):
    refused('SCLOSED', stack.op, 'lab', 'task', {'op': 'secret'})
    assert stack.op('lab', 'task', {'op': 'secret'}, admin=True)['out']['id']
    refused('NOPERATION', stack.op, 'lab', 'task', {'op': 'none'})
    refused('NOPERATION', stack.op, 'lab', 'resize', {})
    manager.scan()
    stack.psql('lab', "select task_create('secret')")
    assert stack.psql('lab', 'select distinct opname, qn from taskqueue') == [('secret', 17)], 'SQL knows the queue too'


@pytest.mark.parametrize('workers', [[{'qn': 3}], [{}], [{'qn': 16}, {'qn': 16}], [{'qn': 16, 'ops': ['a']}, {'qn': 17, 'ops': ['a']}], {'qn': 16},
                                     [{'qn': 16, 'key': 'clear'}], [{'qn': 16, 'request': 'all'}], [{'qn': 16, 'claim_s': 0}], [{'qn': 16, 'retries': '1y'}], [{'qn': 16, 'other': 1}]])
def test_declarations_that_are_refused(stack, workers):
    refused('AARG', stack.op, 'z', 'ns', {'set': {'ns': 'lab', 'workers': workers}}, admin=True)


# --- who has requested a task ---

def test_a_client_sees_and_cancels_its_own_tasks_only(stack, manager):
    with contextlib.closing(Client(stack, '127.0.0.2')) as own, contextlib.closing(Client(stack, '127.0.0.3')) as other:
        def request(client, op, param):
            return client.op('lab', op, param).json['out']
        first, second = (request(own, 'task', {'op': 'resize'})['id'] for _ in range(2))
        assert request(own, 'owntask', {'show': first})['state'] == 'waiting'
        assert request(other, 'owntask', {'show': first}) == {'id': first, 'state': 'gone'}
        assert request(other, 'owntask', {'cancel': first})['result'] == 'gone' and row(stack, first, '1')
        (task,) = take(stack)
        call(stack, 'keep', **claim(task), progress='half')
        shown = request(own, 'owntask', {'show': task['id']})
        assert (shown['state'], shown['progress']) == ('running', 'half')
        call(stack, 'done', **claim(task), result={'ok': True})
        shown = request(own, 'owntask', {'show': task['id']})
        assert (shown['state'], shown['result']) == ('done', {'ok': True})
        assert request(other, 'owntask', {'show': task['id']})['state'] == 'gone'
        (task,) = take(stack)
        assert {task['id']} <= {first, second} and request(own, 'owntask', {'cancel': task['id']})['result'] == 'cancelled'
        refused('ACLAIM', call, stack, 'done', **claim(task), docs=note('late'))
        assert request(own, 'owntask', {'show': task['id']})['state'] == 'cancelled' and stack.get('lab', ('Note', 'a'))['v'] == 0
    assert stack.op('lab', 'owntask', {'show': task['id']}, admin=True)['out']['state'] == 'cancelled'


# --- waiting ---

def test_a_worker_that_waits_gets_the_task_when_it_comes(stack, manager):
    got = []
    thread = threading.Thread(target=lambda: got.extend(call(stack, 'take', qn=16, wait=60)['tasks']))
    while not got:  # a wait gives way to other requests: then the worker comes again
        thread = threading.Thread(target=lambda: got.extend(call(stack, 'take', qn=16, wait=60)['tasks']))
        thread.start()
        if not stack.psql('lab', 'select 1 from taskqueue'):
            taskid = ask(stack)
        thread.join(PATIENCE_S)
    assert [task['id'] for task in got] == [taskid]


def test_waiting_occupies_no_process_of_the_server(stack, manager):
    """More workers wait than the server has processes, and everybody is served."""
    over, answers = threading.Event(), []

    def wait():
        with contextlib.closing(requests.Session()) as own:
            own.verify, own.trust_env = stack.http.verify, False
            while not over.is_set():
                answer = own.post(f'{stack.url}/lab/op/take', json={'param': {'qn': 16, 'wait': 60}}, timeout=PATIENCE_S, headers={'Authorization': f'Bearer {KEY}'})
                answers.append(answer.status_code)
                over.wait(answer.json().get('out', {}).get('pause', 100) / 1000)
    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(answers) > 8, what='the first answers')
        for number in range(40):
            stack.put('lab', {'c': 'Note', 'id': f'n{number}', 'items': []})
    finally:
        over.set()
        for _ in range(8):
            stack.ping('lab')
        for thread in threads:
            thread.join(PATIENCE_S)
    assert set(answers) == {200}


# --- metrics ---

def counts(stack, queue=16):
    head, labels = 'stampd_external_', f'{{ns="lab",queue="{queue}"}}'
    return {name[len(head):-len(labels)].removesuffix('_total'): value for name, value in stack.metrics().items()
            if name.startswith(head) and name.endswith(labels)}


def test_what_workers_do_is_counted(stack, manager):
    for _ in range(5):
        ask(stack)
    take(stack)
    before = counts(stack)
    done, failed, released = take(stack, n=3)
    (late,) = take(stack)
    call(stack, 'keep', **claim(done))
    for _ in range(2):
        call(stack, 'done', **claim(done))
    call(stack, 'fail', **claim(failed))
    call(stack, 'fail', **claim(released), release=True)
    refused('ACLAIM', call, stack, 'keep', **claim(released))
    assert take(stack)[0]['id'] == released['id']
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where taskid = %s', (late['id'],))
    assert take(stack)[0]['id'] == late['id']
    after = counts(stack)
    assert {name: after[name] - before[name] for name in after} == {
        'taken': 6, 'kept': 1, 'done': 1, 'failed': 1, 'released': 1, 'expired': 1, 'waiting': 0}


def test_who_waits_is_counted(stack, manager):
    over = threading.Event()

    def wait():
        with contextlib.closing(requests.Session()) as own:
            own.verify, own.trust_env = stack.http.verify, False
            while not over.is_set():  # a wait gives way to other requests
                own.post(f'{stack.url}/lab/op/take', json={'param': {'qn': 16, 'wait': 60}}, timeout=PATIENCE_S, headers={'Authorization': f'Bearer {KEY}'})
    thread = threading.Thread(target=wait)
    thread.start()
    try:
        wait_until(lambda: counts(stack).get('waiting') == 1, what='a worker that waits')
    finally:
        over.set()
        ask(stack)
        thread.join(PATIENCE_S)
    wait_until(lambda: counts(stack)['waiting'] == 0, what='the end of the wait')


# --- workers that die ---

def test_no_task_is_lost_or_done_twice_by_workers_that_die(stack, manager):
    """Some stop working beyond their claims, some never end, some send every end twice; the effects happen once each."""
    count, over = 60, threading.Event()
    for number in range(count):
        ask(stack, param={'n': number}, **({'domain': f'd{number % 5}'} if number % 3 == 0 else {}))

    def work(number):
        turn = number
        while not over.is_set():
            with contextlib.suppress(Problem, requests.RequestException):
                for task in take(stack, n=2, claim=1 + number):
                    turn += 1
                    if turn % 5 == 0:
                        continue  # dies
                    if turn % 7 == 0:
                        stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where taskid = %s', (task['id'],))
                    end = {**claim(task), 'docs': [{'c': 'Note', 'id': f'once-{task["param"]["n"]}', 'if': 0, 'items': [{'c': 'By', 'j': number}]}]}
                    for _ in range(2):
                        with contextlib.suppress(Problem):
                            call(stack, 'done', **end)
            over.wait(0.01)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()

    def is_empty():
        manager.hurry()
        stack.psql('lab', 'update taskqueue set retry = 0, startat = stamp_now() where starttime is null and startat = %s', (PARKED,))
        return stack.psql('lab', 'select count(*) from taskqueue') == [(0,)]
    try:
        wait_until(is_empty, seconds=3 * PATIENCE_S, what='an empty queue')
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert stack.psql('lab', "select count(*), count(distinct taskid) from task_history where exc is null") == [(count, count)]
    assert len(stack.op('lab', 'list', {'c': 'Note', 'limit': 1000})['out']['docs']) == count


def test_the_server_dies_when_a_task_was_taken(stack, manager):
    """The worker got no answer: the claim ends, and the task comes again."""
    taskid = ask(stack)
    stack.set(debug_die_at='task-taken')
    try:
        with pytest.raises((Problem, requests.RequestException)):
            take(stack)
    finally:
        stack.set(debug_die_at='')
    if stack.psql('lab', 'select starttime is null from taskqueue') == [(False,)]:  # else the claim died with the process
        overdue(stack)
    (task,) = take(stack)
    assert task['id'] == taskid and call(stack, 'done', **claim(task))['result'] == 'done'


# --- the examples ---

@contextlib.contextmanager
def running(stack, tmp_path, *words, key=KEY):
    path = tmp_path / 'key'
    path.write_text(key + '\n')
    words = [str(SOURCE / 'doc/examples/worker' / words[0]), f'{stack.url}/lab', '16', str(path), *words[1:]]
    environment = {**os.environ, 'PYTHONPATH': str(SOURCE / 'src/python'), 'PYTHONDONTWRITEBYTECODE': '1', 'CERTIFICATE': str(stack.http.verify), 'CURL_OPTIONS': f'--cacert {stack.http.verify}'}
    process = subprocess.Popen(words, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)


@pytest.mark.plain
def test_the_worker_in_python(stack, manager, tmp_path):
    with running(stack, tmp_path, 'worker.py'):
        ask(stack, 'shout', {'id': 'loud', 'text': 'hello'})
        wrong = ask(stack, 'shout', {'id': 'loud'})
        wait_until(lambda: len(history(stack)) == 2, what='both tasks')
    assert stack.get('lab', ('Note', 'loud'))['items'][0]['j'] == 'HELLO'
    assert sorted(history(stack), key=str) == [('FAILED', None), (None, '"HELLO"')] and row(stack, wrong, 'retry') == (1,)


@pytest.mark.plain
def test_the_worker_in_shell(stack, manager, tmp_path):
    with running(stack, tmp_path, 'worker.sh', 'jq', '-c', '.a + 1'):
        ask(stack, param={'a': 41})
        wrong = ask(stack, param={'a': []})
        wait_until(lambda: len(history(stack)) == 2, what='both tasks')
    assert sorted(history(stack), key=str) == [('FAILED', None), (None, '42')] and row(stack, wrong, 'retry') == (1,)


@pytest.mark.plain
def test_the_program_of_the_worker_need_not_read(stack, manager, tmp_path):
    """A param that no pipe holds: jq writes these numbers in full."""
    with running(stack, tmp_path, 'worker.sh', 'echo', '1'):
        ask(stack, param={'a': [1e17] * 9000})
        wait_until(lambda: history(stack), what='the task')
    assert history(stack) == [(None, '1')]

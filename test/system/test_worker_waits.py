"""`done` and `fail` whose `take` waits: the end is committed before, and a wait that goes wrong takes nothing away from it."""
import contextlib
import functools
import threading

import pytest
import requests

import queue_worker
from door_client import Client
from manager import Manager
from queue_worker import KEY, ask, call, claim, claimed, note, queue, row, take
from stack import PATIENCE_S, Problem, wait_until

QUEUES = [queue(16, 'resize', request='anybody')]
STACK = {'workers': 4, 'settings': {'task_wait_s': 60, 'task_waiters': 2}}
WAIT = {'qn': 16, 'wait': 60}
ENDS = [('done', {}), ('done', {'docs': note('small')}), ('fail', {'final': True})]


@pytest.fixture(scope='module', autouse=True)
def declared(stack):
    queue_worker.declare(stack, QUEUES)
    Manager(stack, 'lab').scan()  # the operation is declared in SQL, too
    return functools.partial(queue_worker.declare, stack)


@pytest.fixture(autouse=True)
def empty(stack, declared):
    queue_worker.empty(stack)


class Waiting(threading.Thread):
    """A request that has ended its task, as others see, and may wait since.  It gives way to requests for its process: those are left to SQL."""

    def __init__(self, stack, name, more, syncs=None, task=None):
        super().__init__()
        self.stack, self.name_of_end, self.task, self.out, self.response, self.error = stack, name, task, None, None, None
        if not task:
            ask(stack)
            (self.task,) = take(stack)
        self.body = {'param': {**claim(self.task), **more, 'take': WAIT}, **({'syncs': syncs} if syncs else {})}
        self.start()
        wait_until(lambda: stack.psql('lab', 'select 1 from task_history where taskid = %s', (self.task['id'],)), what='the end')

    def run(self):
        try:
            self.response = self.send()
            self.out = self.response.json().get('out')
        except (requests.RequestException, ValueError) as error:
            self.error = error

    def send(self):
        with contextlib.closing(requests.Session()) as own:
            own.verify, own.trust_env = self.stack.http.verify, False
            return own.post(f'{self.stack.url}/lab/op/{self.name_of_end}', json=self.body, headers={'Authorization': f'Bearer {KEY}'}, timeout=2 * PATIENCE_S)

    def again(self):
        return call(self.stack, self.name_of_end, **self.body['param'])

    def answer(self):
        self.join(2 * PATIENCE_S)
        assert not self.is_alive()
        return self.out


def create(stack):
    return stack.psql('lab', "select task_create('resize')")[0][0]


@pytest.mark.parametrize('name, more', ENDS)
def test_a_task_that_comes_after_the_end_is_given(stack, name, more):
    def tries():
        stack.psql('lab', 'truncate taskqueue, task_history')
        stack.clear('lab', 'Note')
        waiting = Waiting(stack, name, more)
        is_open = waiting.is_alive()
        taskid = create(stack)
        out = waiting.answer()
        return is_open and out['tasks'] and (waiting, taskid, out)  # else the wait has given way
    waiting, taskid, out = wait_until(tries, what='a wait that has not given way')
    (task,) = out['tasks']
    assert task['id'] == taskid and out['pause'] == 0 and out['result'] == {'done': 'done', 'fail': 'failed'}[name]
    assert row(stack, taskid, 'starttime, expires, follows') == (
        task['starttime'], task['until'], f'{waiting.task["id"]} {waiting.task["starttime"]} {waiting.task["retry"]}')
    assert ('docs' in more) == (stack.get('lab', ('Note', 'a'))['v'] != 0)
    assert waiting.again()['tasks'] == [task] and claimed(stack) == {taskid}, 'its answer may have been lost'
    assert call(stack, 'done', **claim(task), take={'qn': 16}) == {'result': 'done', 'tasks': []}


@pytest.mark.parametrize('name, more', ENDS)
def test_a_client_that_has_gone_loses_no_task(stack, name, more):
    ask(stack)
    (task,) = take(stack)
    param = {**claim(task), **more, 'take': WAIT}
    with contextlib.closing(Client(stack)) as client:
        connection = client.connect()
        client.send(connection, 'POST', f'/lab/op/{name}', {'param': param}, Authorization=f'Bearer {KEY}')
        wait_until(lambda: stack.psql('lab', 'select 1 from task_history'), what='the end')
        connection.close()
    taskid = create(stack)
    found = wait_until(lambda: call(stack, name, **param)['tasks'] or take(stack), what='the task')
    assert [one['id'] for one in found] == [taskid] and found[0]['retry'] == 0, 'whoever has it, no claim had to end'
    wait_until(lambda: stack.metrics()['stampd_external_waiting{ns="lab",queue="16"}'] == 0, what='the end of the wait')


def test_a_request_that_is_repeated_does_not_wait(stack):
    ask(stack)
    (task,) = take(stack)
    assert call(stack, 'done', **claim(task), take={'qn': 16}) == {'result': 'done', 'tasks': []}
    ask(stack)
    assert call(stack, 'done', **claim(task), take=WAIT) == {'result': 'done', 'tasks': [], 'pause': 0} and claimed(stack) == set()


def test_when_to_come_again(stack):
    stack.set(task_waiters=0)
    try:
        ask(stack), ask(stack)
        first, second = take(stack, n=2)
        out = call(stack, 'done', **claim(first), take={**WAIT, 'n': 5})
        assert out['tasks'] == [] and 0 < out['pause'] <= 1000 and out['next'] == second['until'], 'as of take'
        out = call(stack, 'fail', **claim(second), delay=600, take=WAIT)
        assert out['tasks'] == [] and 0 < out['pause'] <= 1000 and out['next'] == out['startat']
        stack.psql('lab', 'update taskqueue set startat = stamp_now()')
        (task,) = take(stack)
        ask(stack)
        out = call(stack, 'done', **claim(task), take=WAIT)
        assert len(out['tasks']) == 1 and out['pause'] == 0
    finally:
        stack.set(task_waiters=2)


def test_claims_that_have_ended_come_back(stack):
    """Nothing else is due: the commit takes nothing, and what follows it looks for these too."""
    ask(stack), ask(stack)
    lost, task = take(stack, n=2)
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where taskid = %s', (lost['id'],))
    (following,) = call(stack, 'done', **claim(task), take={'qn': 16, 'wait': 1})['tasks']
    assert (following['id'], following['retry']) == (lost['id'], 1)


def test_tasks_are_given_though_others_cannot_be_put_back(stack):
    """What has been claimed is not lost with it."""
    ask(stack), ask(stack), ask(stack)
    lost, task = take(stack, n=2)
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where taskid = %s', (lost['id'],))
    function = 'task_put_back(text, bigint, int, bigint, boolean, text, text, bigint)'
    stack.psql('lab', f'alter function {function} rename to task_put_back_of_before')
    try:
        (following,) = take(stack)
        later = ask(stack)
        assert [given['id'] for given in call(stack, 'done', **claim(task), take={'qn': 16, 'wait': 1})['tasks']] == [later]
        out = call(stack, 'done', **claim(following), take={'qn': 16, 'wait': 1})
        assert out['result'] == 'done' and out['tasks'] == [] and out['pause'] > 0
    finally:
        stack.psql('lab', f"alter function {function.replace('back', 'back_of_before', 1)} rename to task_put_back")


@pytest.mark.parametrize('name, more', ENDS)
def test_rights_that_are_gone_in_the_wait_hide_no_end(stack, declared, name, more):
    """Nothing is taken, and nothing is synchronised by rights of before; the fault says that the end was committed."""
    stack.put('lab', *note('private', 'p'))

    def tries(syncs):
        declared(QUEUES)
        stack.psql('lab', 'truncate taskqueue, task_history')
        stack.clear('lab', 'Note')
        waiting = Waiting(stack, name, more, syncs)
        declared([{**QUEUES[0], 'key': '0' * 64}])
        create(stack)
        waiting.answer()
        assert waiting.response.status_code != 200 or (waiting.out['result'] in ('done', 'failed') and waiting.out['tasks'] == [])
        return waiting.response
    try:
        for _ in range(2):
            assert tries(None).status_code == 200
        refused = []
        wait_until(lambda: (refused.append(tries([{'c': 'Note', 'id': 'p', 'v': 0}])) or refused[-1].status_code != 200), what='a wait that has not given way')
        assert (refused[-1].status_code, refused[-1].json()['code'], refused[-1].json()['phase']) == (403, 'SKEY', 3)
        assert stack.psql('lab', 'select count(*) from task_history') == [(1,)] and claimed(stack) == set()
    finally:
        declared(QUEUES)


@pytest.mark.parametrize('name, more', ENDS)
def test_a_database_that_goes_away_hides_no_end(stack, name, more):
    waiting = Waiting(stack, name, more)
    stack.psql(None, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd'")
    with contextlib.suppress(Exception):
        create(stack)
    out = waiting.answer()
    assert waiting.response.status_code == 200 and out['result'] in ('done', 'failed'), waiting.response.text
    assert stack.psql('lab', 'select count(*) from task_history where taskid = %s', (waiting.task['id'],)) == [(1,)]
    assert {task['id'] for task in out['tasks']} == claimed(stack)


@pytest.mark.parametrize('name, more', ENDS)
def test_a_server_that_stops_answers_what_waits(stack, name, more):
    waiting = Waiting(stack, name, more)
    stack.restart_stampd()
    out = waiting.answer()
    assert waiting.response.status_code == 200 and out['tasks'] == [] and out['result'] in ('done', 'failed'), waiting.response.text
    again = waiting.again()
    assert again['result'] == out['result'] and again['tasks'] == []


@pytest.mark.parametrize('name, more', ENDS)
def test_a_process_that_dies_in_the_wait(stack, name, more):
    """The answer is not that nothing was done."""
    waiting = Waiting(stack, name, more)
    for pid in stack.worker_pids():
        stack.kill_worker(pid)
    waiting.answer()
    if waiting.response is not None and waiting.response.status_code != 200:
        assert Problem(waiting.response).code in ('XUNKNOWN', 'XCRASH') and 'phase' not in waiting.response.json()
    again = wait_until(lambda: attempt(waiting.again), what='a server')
    assert again['result'] in ('done', 'failed') and again['tasks'] == [] and claimed(stack) == set()
    assert stack.psql('lab', 'select count(*) from task_history') == [(1,)]


def attempt(action):
    with contextlib.suppress(Problem, requests.RequestException):
        return action()
    return None


def test_waiting_occupies_no_process_of_the_server(stack):
    """More ends wait than the server has processes, and everybody is served."""
    for _ in range(6):
        ask(stack)
    waiting = [Waiting(stack, *ENDS[number % 3], task=task) for number, task in enumerate(take(stack, n=6))]
    for number in range(20):
        stack.put('lab', {'c': 'Note', 'id': f'n{number}', 'items': []})
    for _ in waiting:
        create(stack)
    for one in waiting:
        assert one.answer()['result'] in ('done', 'failed')
    assert {task['id'] for one in waiting for task in one.out['tasks']} == claimed(stack)


def test_a_wait_does_not_load_a_slow_database(stack):
    """Whatever may have come: it looks again after a rest."""
    function = 'stampd.task_take(int, text, int, bigint, bigint, text, bigint, text)'
    ((before,),) = stack.psql('lab', 'select pg_get_functiondef(%s::regprocedure)', (function,))
    head = before[:before.index('AS $function$')]
    slow = "begin perform pg_sleep(0.2), nextval('stampd.looks'); end"
    stack.psql('lab', 'create sequence stampd.looks; grant usage on sequence stampd.looks to stampd')
    over = threading.Event()

    def offer():
        while not over.is_set():
            create(stack)
    offering = threading.Thread(target=offer)
    stack.psql('lab', f'{head} as $$ {slow} $$')
    try:
        offering.start()
        assert call(stack, 'take', qn=16, n=2, wait=4)['tasks'] == []  # of one it would ask another statement
        ((looks,),) = stack.psql('lab', 'select last_value from stampd.looks')
        assert 1 <= looks <= 6, 'of 20 that there would be time for'
    finally:
        over.set()
        offering.join(PATIENCE_S)
        stack.psql('lab', before)
        stack.psql('lab', 'drop sequence stampd.looks')


# --- a wait that is left to another request ---

@pytest.mark.parametrize('name, more', ENDS)
def test_a_wait_that_is_left_to_another_request(stack, name, more):
    """`take` with `after` claims as the end would have: to repeat either gives what was claimed, and nothing else."""
    ask(stack)
    (task,) = take(stack)
    apart = {**claim(task), **more, 'take': {**WAIT, 'apart': True}}
    out = call(stack, name, **apart)
    assert out['tasks'] == [] and out['wait'] == 60 and 'pause' not in out and 'next' not in out and out['result'] in ('done', 'failed')
    assert call(stack, 'take', qn=16, after=claim(task))['tasks'] == []
    first = ask(stack)
    (following,) = call(stack, 'take', qn=16, wait=60, after=claim(task))['tasks']
    ask(stack)
    assert following['id'] == first and row(stack, first, 'follows') == (f'{task["id"]} {task["starttime"]} {task["retry"]}',)
    again = call(stack, 'take', qn=16, after=claim(task))
    assert again['tasks'] == [following] and again['pause'] == 0 and claimed(stack) == {first}
    out = call(stack, name, **apart)
    assert out['tasks'] == [following] and out['pause'] == 0 and 'wait' not in out and claimed(stack) == {first}


def test_nothing_is_left_to_another_request_when_something_is_due(stack):
    ask(stack), ask(stack)
    (task,) = take(stack)
    out = call(stack, 'done', **claim(task), take={**WAIT, 'apart': True})
    assert len(out['tasks']) == 1 and out['pause'] == 0 and 'wait' not in out
    assert call(stack, 'done', **claim(out['tasks'][0])) == {'result': 'done'}
    assert call(stack, 'done', **claim(task), take={**WAIT, 'apart': True}) == {'result': 'done', 'tasks': [], 'pause': 0}, 'repeated, it does not wait'
    ask(stack)
    (task,) = take(stack)
    assert call(stack, 'done', **claim(task), take={'qn': 16, 'apart': True}) == {'result': 'done', 'tasks': []}


def test_only_an_attempt_that_a_worker_has_ended_is_followed(stack, declared):
    ask(stack), ask(stack)
    held, lost = take(stack, n=2)
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where taskid = %s', (lost['id'],))
    ask(stack)
    for wrong, code in ((claim(held), 'ACLAIM'), (claim(lost), 'ACLAIM'), ({**claim(held), 'retry': 7}, 'ACLAIM'), ({'id': held['id']}, 'AARG'), ({}, 'AARG'), ([], 'AARG'),
                        ({**claim(held), 'more': 1}, 'AARG')):
        with pytest.raises(Problem) as problem:
            call(stack, 'take', qn=16, after=wrong)
        assert problem.value.code == code, wrong
    assert claimed(stack) == {held['id'], lost['id']}
    assert call(stack, 'done', **claim(held)) == {'result': 'done'}
    declared([queue(17, 'shout', request='anybody')])
    try:
        with pytest.raises(Problem) as problem:
            call(stack, 'take', qn=17, after=claim(held))
        assert problem.value.code == 'SCLOSED', 'the queue of the attempt is not the caller\'s'
    finally:
        declared(QUEUES)
    for name, member in (('done', 'after'), ('take', 'apart')):
        with pytest.raises(Problem) as problem:
            call(stack, name, **({**claim(held), 'take': {'qn': 16, member: claim(held)}} if name == 'done' else {'qn': 16, member: True}))
        assert problem.value.code == 'AARG'

"""`DONE` and `FAIL` of the journal protocol whose `take` waits: the end is committed before, and nothing that happens in the wait takes it back."""
import hashlib
import json
import signal
import socket

import pytest

from journal_world import ALL, Client, DONE_, FAIL, NEXT, PING, STACK as RECORDS, SOME, beside, journal, message, set_conf, text  # noqa: F401 fixtures
from manager import Manager
from stack import PATIENCE_S, wait_until

STACK = {'workers': 4, 'settings': {**RECORDS['settings'], 'task_wait_s': 60, 'task_waiters': 3}}
WAIT = {'qn': 16, 'wait': 60}
NOTE = {'docs': [{'c': 'Note', 'id': 'a', 'items': [{'c': 'Main', 'j': {'title': 'done'}}]}]}
ENDS = [(DONE_, {}), (DONE_, NOTE), (FAIL, {'final': True})]
NOWHERE = 'key-of-nobody'


def declare(stack, key=ALL):
    set_conf(stack, workers=[{'qn': 16, 'ops': ['resize'], 'key': hashlib.sha256(key.encode()).hexdigest(), 'request': 'anybody'}])


@pytest.fixture(scope='module', autouse=True)
def declared(stack):
    declare(stack)
    Manager(stack, 'lab').scan()  # the operation is declared in SQL, too


@pytest.fixture(autouse=True)
def empty(stack, declared):
    stack.psql('lab', 'truncate taskqueue, task_history, task_paused')
    stack.clear('lab', 'Note')


def send(client, function, identifier=1, **param):
    client.socket.sendall(message(function, value=text(json.dumps(param)), identifier=identifier))


def out_of(answer):
    assert answer['error'] == '', answer
    return json.loads(answer['records'][0][2])['out']


def ask(client, function, **param):
    send(client, function, **param)
    return out_of(client.answer())


def create(stack):
    return stack.psql('lab', "select task_create('resize')")[0][0]


def claim(task):
    return {name: task[name] for name in ('id', 'starttime', 'retry')}


def claimed(stack):
    return {taskid for taskid, in stack.psql('lab', 'select taskid from taskqueue where starttime is not null')}


def wait_for_end(stack, taskid):
    wait_until(lambda: stack.psql('lab', 'select 1 from task_history where taskid = %s', (taskid,)), what='the end')


def waiting(stack):
    """How many processes wait.  The one that answers this waits no longer."""
    return stack.metrics().get('stampd_external_waiting{ns="lab",queue="16"}', 0)


def count_ends(stack, param):
    return stack.psql('lab', 'select count(*) from task_history where taskid = %s', (param['id'],))[0][0]


def begin(stack, client, function, more, identifier=1, take=WAIT):
    """An end whose task was the only one: it is committed, as others see, and it may wait since.  The request."""
    create(stack)
    (task,) = ask(client, NEXT, qn=16)['tasks']
    param = {**claim(task), **more, 'take': take}
    send(client, function, identifier, **param)
    wait_for_end(stack, task['id'])
    return param


def begin_waiting(stack, client, function, more, **other):
    """The same, and a process of the server waits for it; it gives way to any request: then it is tried again."""
    def tries():
        param = begin(stack, client, function, more, **other)
        client.socket.setblocking(False)
        try:
            wait_until(lambda: waiting(stack) or has_answer(client), what='a wait')
            if not has_answer(client):
                return param
        finally:
            client.socket.settimeout(PATIENCE_S)
        client.answer()
        return None
    return wait_until(tries, what='a wait that has not given way')


def has_answer(client):
    try:
        return bool(client.socket.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


RESULTS = {DONE_: 'done', FAIL: 'failed'}


@pytest.mark.parametrize('function, more', ENDS)
@pytest.mark.parametrize('way', ['socket', 'tcp'])
def test_a_task_that_comes_after_the_end_is_given(stack, journal, function, more, way):
    def tries():
        client = Client(journal.socket if way == 'socket' else journal)
        param = begin(stack, client, function, more, identifier=5)
        client.socket.sendall(message(PING, identifier=6))
        taskid = create(stack)
        answer = client.answer()
        assert answer['id'] == 5 and client.answer()['id'] == 6, 'what stands behind it waits'
        out = out_of(answer)
        assert out['result'] == RESULTS[function] and ('docs' in out) == ('docs' in more) and 'wait' not in out and 'pause' in out
        empty_now = not out['tasks']
        if empty_now:
            stack.psql('lab', 'truncate taskqueue, task_history')
            stack.clear('lab', 'Note')
        return not empty_now and (param, taskid, out)
    param, taskid, out = wait_until(tries, what='a wait that has not given way')
    (task,) = out['tasks']
    assert task['id'] == taskid and out['pause'] == 0
    assert stack.psql('lab', 'select starttime, expires, follows from taskqueue where starttime is not null') == [(task['starttime'], task['until'], f'{param["id"]} {param["starttime"]} {param["retry"]}')]
    assert ('docs' in more) == (stack.get('lab', ('Note', 'a'))['v'] != 0)
    other = Client(journal.socket)
    create(stack)
    again = ask(other, function, **param)
    assert again['tasks'] == [task] and again['result'] == out['result'] and claimed(stack) == {taskid}, 'its answer may have been lost'
    assert ask(other, DONE_, **claim(task))['result'] == 'done'
    again = ask(other, function, **param)
    assert (again['result'], again['tasks'], again['pause']) == (out['result'], [], 0) and claimed(stack) == set(), 'repeated, it neither waits nor claims'


@pytest.mark.parametrize('function, more', ENDS)
def test_what_is_due_is_claimed_with_the_end(stack, journal, function, more):
    client = Client(journal.socket)
    create(stack), create(stack)
    (task,) = ask(client, NEXT, qn=16)['tasks']
    out = ask(client, function, **claim(task), **more, take=WAIT)
    assert out['result'] == RESULTS[function] and len(out['tasks']) == 1 and out['pause'] == 0


def test_an_end_that_is_refused_does_not_wait(stack, journal):
    client = Client(journal.socket)
    create(stack), create(stack)
    (task,) = ask(client, NEXT, qn=16)['tasks']
    for param, code in (({'retry': 9, 'take': WAIT}, 'ACLAIM'), ({'take': {**WAIT, 'wait': 'x'}}, 'AARG'), ({'take': {**WAIT, 'wait': 3601}}, 'AARG'), ({'take': {**WAIT, 'more': 1}}, 'AARG'),
                        ({'take': {**WAIT, 'qn': 17}}, 'SCLOSED'), ({'take': {'wait': 60}}, 'AARG')):
        for function in DONE_, FAIL:
            send(client, function, **{**claim(task), **param})
            assert client.answer()['error'] == code, param
    assert stack.psql('lab', 'select count(*) from task_history') == [(0,)] and claimed(stack) == {task['id']}


@pytest.mark.parametrize('function, more', ENDS)
@pytest.mark.parametrize('how', ['close', 'shutdown'])
def test_a_client_that_has_gone_loses_no_task(stack, journal, function, more, how):
    """Its wait is given up, and what comes then is free for others."""
    client, other = Client(journal.socket), Client(journal.socket)
    param = begin_waiting(stack, client, function, more)
    if how == 'close':
        client.socket.close()
    else:
        client.socket.shutdown(socket.SHUT_WR)
        assert client.socket.recv(1) == b''
    wait_until(lambda: waiting(stack) == 0, what='the end of the wait')
    taskid = create(stack)
    assert ask(other, function, **param)['tasks'] == [] and claimed(stack) == set()
    (task,) = ask(other, NEXT, qn=16)['tasks']
    assert task['id'] == taskid and task['retry'] == 0


@pytest.mark.parametrize('how', [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_stops_gives_up_its_waits(stack, journal, how):
    process, client = journal.begin_second(journal.stack.config)
    other = Client(journal.socket)
    param = begin_waiting(stack, client, DONE_, {})
    process.send_signal(how)
    with pytest.raises((EOFError, ConnectionResetError)):
        client.answer()
    if how == signal.SIGHUP:
        assert Client(journal.second).error(PING) == ''
        process.terminate()
    assert process.wait(PATIENCE_S) == (-how if how == signal.SIGKILL else 0)
    wait_until(lambda: waiting(stack) == 0, what='the end of the wait')
    taskid = create(stack)
    assert ask(other, DONE_, **param) == {'result': 'done', 'tasks': [], 'pause': 0} and claimed(stack) == set()
    assert [task['id'] for task in ask(other, NEXT, qn=16)['tasks']] == [taskid]


@pytest.mark.parametrize('function, more', ENDS)
def test_a_server_that_stops_hides_no_end(stack, journal, function, more):
    client = Client(journal.socket)
    param = begin_waiting(stack, client, function, more)
    stack.restart_stampd()
    out = out_of(client.answer())
    assert out['result'] == RESULTS[function] and out['tasks'] == [] and ('docs' in out) == ('docs' in more)
    again = wait_until(lambda: answered(client, function, param), what='a server')
    assert again['result'] == out['result'] and again['tasks'] == []


def answered(client, function, param):
    send(client, function, **param)
    answer = client.answer()
    return None if answer['error'] else out_of(answer)


@pytest.mark.parametrize('function, more', ENDS)
def test_a_process_that_dies_in_the_wait_hides_no_end(stack, journal, function, more):
    client = Client(journal.socket)
    param = begin_waiting(stack, client, function, more)
    for pid in stack.worker_pids():
        stack.kill_worker(pid)
    out = out_of(client.answer())
    assert out['result'] == RESULTS[function] and out['tasks'] == [] and 0 <= out['pause'] <= 60000
    assert count_ends(stack, param) == 1 and claimed(stack) == set()
    wait_until(lambda: waiting(stack) == 0, what='the end of the wait')


@pytest.mark.parametrize('function, more', ENDS)
def test_rights_that_are_gone_in_the_wait_hide_no_end(stack, journal, function, more):
    client = Client(journal.socket)
    try:
        param = begin_waiting(stack, client, function, more)
        declare(stack, NOWHERE)
        create(stack)
        out = out_of(client.answer())
        assert out['result'] == RESULTS[function] and out['tasks'] == []
        assert count_ends(stack, param) == 1 and claimed(stack) == set()
    finally:
        declare(stack)


def test_ends_that_find_no_place_are_answered_without_a_wait(stack, journal):
    """Those that wait leave places to the ends of others; an end that would be one too many to wait comes again."""
    clients = [Client(journal.socket) for _ in range(14)]
    for _ in clients:
        create(stack)
    tasks = ask(clients[0], NEXT, qn=16, n=len(clients))['tasks']
    assert len(tasks) == len(clients)
    for client, task in zip(clients, tasks):
        send(client, DONE_, **claim(task), take=WAIT)
    for task in tasks:
        wait_for_end(stack, task['id'])
    for _ in clients:
        create(stack)
    outs = [out_of(client.answer()) for client in clients]
    assert {out['result'] for out in outs} == {'done'}
    given = [task['id'] for out in outs for task in out['tasks']]
    assert len(given) == len(set(given)) and set(given) == claimed(stack), 'each has its own'
    assert all(out['tasks'] or out['pause'] >= 0 for out in outs)


def test_an_end_waits_though_others_do(stack, journal):
    """A connection that waits holds up neither another one nor an end."""
    first, second, third = (Client(journal.socket) for _ in range(3))
    create(stack)
    (task,) = ask(second, NEXT, qn=16)['tasks']
    begin_waiting(stack, first, DONE_, {})
    assert third.error(PING) == ''
    assert ask(second, DONE_, **claim(task)) == {'result': 'done'}
    taskid = create(stack)
    out = out_of(first.answer())
    assert out['result'] == 'done' and claimed(stack) == {task['id'] for task in out['tasks']} <= {taskid}

"""Requests that wait in a kept connection behind one that ends its worker: handed in once more and done, and nothing is done
twice.  One worker, so that all of them do wait behind it."""
import json
import os
import shutil
import signal
import socket
import threading
import time

import pytest
import requests

from fastcgi import STDIN, STDOUT, Connection, record
from kit import Kit
from stack import PATIENCE_S, wait_until
from test_modules import call, expect_lost, items_of

pytestmark = pytest.mark.plain

WAITING = 6
STACK = {'workers': 1, 'settings': {}}
COUNT = {'body': b'{}', 'method': 'POST', 'CONTENT_TYPE': 'application/json', 'STAMPD_NS': 'demo', 'STAMPD_DATABASE': 'stampd_demo'}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': kit.build('trial.c'), 'restart_young_ms': 0}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


class Sender(threading.Thread):
    def __init__(self, stack, *arguments, **more):
        super().__init__(daemon=True)
        self.stack, self.arguments, self.more, self.answer = stack, arguments, more, None
        self.start()

    def run(self):
        with requests.Session() as http:
            http.trust_env = False
            http.verify = self.stack.http.verify
            self.answer = http.request(*self.arguments, timeout=120, **self.more)

    def wait(self):
        self.join(PATIENCE_S)
        assert self.answer is not None, 'no answer'
        return self.answer


@pytest.fixture(scope='module', autouse=True)
def age(kit, stack):
    """The server is old enough to know all that was begun since the tests began."""
    def is_known():
        with Connection(stack.path / 'run/stampd/worker-0.sock') as connection:
            try:
                return connection.ask(STAMPD_TOKEN='0' * 32, STAMPD_ANSWERED='0', STAMPD_AGE='8.000').status == 200
            except (EOFError, ConnectionError):
                return False
    wait_until(is_known, what='the age of the server')


def keep_connections(stack):
    """So many requests at once that nginx keeps a connection for each of those that are to come."""
    worker = call(stack, 'Started').json()['out']['pid']
    os.kill(worker, signal.SIGSTOP)
    try:
        senders = [Sender(stack, 'GET', f'{stack.url}/ping') for _ in range(WAITING + 2)]
        wait_until(lambda: connections_to(stack) >= WAITING + 2, what='their connections')
    finally:
        os.kill(worker, signal.SIGCONT)
    assert {sender.wait().status_code for sender in senders} == {200}
    return worker


def connections_to(stack):
    """Connections to the worker's socket, those that wait in its queue included."""
    path = str(stack.path / 'run/stampd/worker-0.new')  # the name under which it was bound
    with open('/proc/net/unix', encoding='ascii', errors='replace') as file:
        return sum(line.split()[-1] == path for line in file) - 1  # its own


def lines_of(stack, words):
    return stack.log().count(words)


def wait_behind_a_loop(stack, how):
    """Did some of the requests wait in a kept connection?  Those that nginx was slow to pass on came to the next worker."""
    worker = keep_connections(stack)
    loops, again = lines_of(stack, 'trial loops'), lines_of(stack, 'had not been begun')
    for ident in ('counter', 'after'):  # what LoopAfter writes is a change in each round
        stack.put('demo', {'c': 'Trial', 'id': ident, 'delete': True}, admin=True)
    looping = Sender(stack, 'POST', f'{stack.url}/demo/op/{how}', json={})
    wait_until(lambda: lines_of(stack, 'trial loops') > loops, what='the loop')
    waiting = [Sender(stack, 'POST', f'{stack.url}/demo/op/Count', json={}) for _ in range(WAITING)]
    expect_lost(looping.wait(), 'XTIME', 504, is_unchanged=how == 'Loop')
    answers = [sender.wait() for sender in waiting]
    assert [answer.status_code for answer in answers] == [200] * WAITING, [answer.text for answer in answers]
    assert items_of(stack.get('demo', ('Trial', 'counter')))[('Count', None)] == {'n': WAITING}, 'each once'
    assert sorted(answer.json()['out']['work']['n'] for answer in answers) == list(range(1, WAITING + 1))
    assert lines_of(stack, 'trial loops') == loops + 1, 'what ends workers is not handed on to the next one'
    assert call(stack, 'Started').json()['out']['pid'] != worker
    return lines_of(stack, 'had not been begun') > again


@pytest.mark.parametrize('how', ['Loop', 'LoopAfter'])
def test_who_waits_behind_an_endless_loop_is_served(stack, how):
    assert any(wait_behind_a_loop(stack, how) for _ in range(5)), 'some did wait in a kept connection'


def test_what_was_done_is_not_refused_when_it_is_handed_again(stack):
    """It was admitted then; a refusal now would say that nothing was done."""
    conf, = (item['j'] for item in stack.get('z', ('Namespace', 'demo'), admin=True)['items'] if item['c'] == 'Conf')
    stack.put('demo', {'c': 'Trial', 'id': 'after', 'delete': True}, admin=True)  # so that writing it is a change
    loops = lines_of(stack, 'trial loops')
    looping = Sender(stack, 'POST', f'{stack.url}/demo/op/LoopAfter', json={})
    try:
        wait_until(lambda: lines_of(stack, 'trial loops') > loops, what='the loop')
        stack.psql('z', 'select delete_document(%s, %s)', ('Namespace', 'demo'))
        expect_lost(looping.wait(), 'XTIME', 504, is_unchanged=False)
        assert stack.request('POST', '/demo/op/Count', json={}).json()['code'] == 'NNAMESPACE'
    finally:
        stack.psql('z', 'select put_item(%s, %s, %s, %s, %s)', ('Namespace', 'demo', 'Conf', '', json.dumps(conf)))
        wait_until(lambda: stack.request('POST', '/demo/op/Started', json={}).status_code == 200, what='the namespace')


def test_what_was_begun_is_lost_and_not_done_again(stack):
    """The worker is killed when it has done it, before it answers."""
    before = lines_of(stack, 'it is not done again')
    expect_lost(call(stack, 'Crash', {'how': 'trap'}))
    assert lines_of(stack, 'it is not done again') == before + 1
    assert call(stack, 'Started').status_code == 200


def test_what_was_done_and_could_not_be_answered_is_not_done_again(stack):
    """Its client was gone before the answer."""
    stack.put('demo', {'c': 'Trial', 'id': 'counter', 'delete': True}, admin=True)
    worker = call(stack, 'Started').json()['out']['pid']
    request = {**COUNT, 'STAMPD_TOKEN': 'f' * 32}
    path = stack.path / 'run/stampd/worker-0.sock'
    os.kill(worker, signal.SIGSTOP)
    try:
        with Connection(path) as connection:
            connection.send('/demo/op/Count', **request)
    finally:
        os.kill(worker, signal.SIGCONT)
    wait_until(lambda: stack.get('demo', ('Trial', 'counter'))['v'], what='the commit')
    before = lines_of(stack, 'it is not done again')
    with Connection(path) as connection:
        answer = connection.ask('/demo/op/Count', **request, STAMPD_ANSWERED='0', STAMPD_AGE='0.100')
    problem = json.loads(answer.body)
    assert (answer.status, problem['code'], 'phase' in problem) == (502, 'XUNKNOWN', False), problem
    assert lines_of(stack, 'it is not done again') == before + 1
    assert items_of(stack.get('demo', ('Trial', 'counter')))[('Count', None)] == {'n': 1}


def test_clients_that_leave_make_no_other_request_unknown(stack):
    """Each took one of eight entries; what waited behind a crash was refused when these were full."""
    worker = call(stack, 'Started').json()['out']['pid']
    path = stack.path / 'run/stampd/worker-0.sock'
    gone = {**COUNT, 'STAMPD_TOKEN': 'a' * 32}
    os.kill(worker, signal.SIGSTOP)
    try:
        for number in range(40):
            with Connection(path) as connection:
                connection.send('/demo/op/Count', **{**gone, 'STAMPD_TOKEN': f'{number:032}'})
    finally:
        os.kill(worker, signal.SIGCONT)
    with Connection(path) as connection:
        answer = connection.ask('/demo/op/Count', **{**gone, 'STAMPD_TOKEN': 'b' * 32}, STAMPD_ANSWERED='0', STAMPD_AGE='0.100')
    assert answer.status == 200, answer.body


def test_an_answer_that_breaks_off_when_it_is_handed_again_ends_at_once(stack):
    """In place of the worker: the first connection ends without a word, so the request is handed in again; the second one within its
    answer.  The client does not wait for the rest as long as nginx keeps its connection (75 s)."""
    path, size, served = stack.path / 'run/stampd/worker-0.sock', 100_000, []
    stack.step('stampd', 'stop', 'now')
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()

        def serve():
            while len(served) < 2:
                with listener.accept()[0] as connection:
                    asked = b''
                    while not asked.endswith(record(STDIN, b'')):
                        asked += connection.recv(65536)
                    served.append(asked)
                    if len(served) == 2:
                        head = f'Status: 200\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n'
                        connection.sendall(record(STDOUT, head.encode() + b'[' * 1000))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        began = time.monotonic()
        got = b''
        with requests.Session() as http:
            http.trust_env, http.verify = False, stack.http.verify
            try:
                got = http.get(f'{stack.url}/demo/doc/Trial/one', timeout=120).content
            except requests.RequestException:
                pass
        assert time.monotonic() - began < 60 and len(got) < size
        thread.join(PATIENCE_S)
        assert len(served) == 2 and b'STAMPD_ANSWERED' in served[1], 'it was handed in again'
    path.unlink()
    stack.restart_stampd()

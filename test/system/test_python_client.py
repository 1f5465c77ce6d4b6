"""The package stampd for Python (src/python): it replays the vectors, installs from a wheel, and keeps its promises with a real server, a bad network
and servers that are none."""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import zlib

import pytest

import queue_worker
from bad_network import PACKAGE, spoiled
from schema import Schemas
from stack import PATIENCE_S, SOURCE, run_program, wait_until
from stampd import Client, Copy, Done, Event, Failure, Fault, Live, Records, Worker, follow, remedies
from stampd.fault import pause_of
from stampd.live import definition_of, events_of
from stampd.stamp import account_of, key_of, stamp_of, time_of

pytestmark = pytest.mark.plain

QUEUES = [queue_worker.queue(16, 'shout', request='anybody', retries='1d')]
STACK = {'workers': 3, 'settings': {'records_mb': 4}}
PERSON = {'items': {'Main': {'singleton': True, 'fields': {'team': 'string'}}}}


# --- pure ---

def cases(name):
    found = json.loads((SOURCE / f'test/vectors/{name}.json').read_text())['cases']
    return pytest.mark.parametrize('case', found, ids=[case['name'] for case in found])


@cases('sync')
def test_vectors_of_synchronisation(case):
    copy = Copy.of(case['copy'])
    assert copy.apply(case['answer']) == (not case.get('again'))
    assert copy.as_json() == (case['copy'] if case.get('again') else case['holds'])
    assert copy.header() == case['sends']
    assert Copy.of(json.loads(json.dumps(copy.as_json()))).as_json() == copy.as_json()


@cases('collection')
def test_vectors_of_collections(case):
    document = case['document']
    copy = Copy.of(case['copy']) if case['copy'] else Copy(document['c'], document['id'])
    assert copy.compare(document) == case['do']


@cases('tokens')
def test_vectors_of_tokens(case):
    assert account_of(case['token']) == case['account']


def test_stamps_and_keys():
    assert stamp_of(time_of(261121103000123)) == 261121103000123
    assert stamp_of(time_of(10101000000007)) == 10101000000007
    key = key_of(1790000000.123)
    assert re.fullmatch('[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}', key)
    assert int(key.replace('-', '')[:12], 16) == 1790000000123 and key_of(1790000000.123) != key


def test_what_is_done_after_a_fault():
    kinds = {code: Fault(code).kind for code in ('NETWORK', 'AVERSION', 'CONTENTION', 'XBUSY', 'OOFF', 'OGONE', 'OPUSH', 'SKEY', 'EXOTIC', 'XOWN')}
    assert kinds == {'NETWORK': 'again', 'AVERSION': 'final', 'CONTENTION': 'again', 'XBUSY': 'again', 'OOFF': 'again', 'OGONE': 'over', 'OPUSH': 'final',
                     'SKEY': 'sign', 'EXOTIC': 'final', 'XOWN': 'again'}
    assert set(remedies.OF_CODE.values()) | set(remedies.OF_CLASS.values()) == {'final', 'again', 'held', 'setup', 'sign', 'over'}
    undone = [Fault('XUNKNOWN'), Fault('XBUSY', phase=0), Fault('XTIME', phase=3), Fault('NETWORK'), Fault('NETWORK', was_sent=False), Fault('AARG')]
    assert [fault.is_undone for fault in undone] == [False, True, False, False, True, True]
    pauses = [[pause_of(failures, 1, 60, asked) for _ in range(50)] for failures, asked in ((0, 0), (3, 0), (99, 0), (0, 9))]
    assert [min(pause) >= least and max(pause) <= most for pause, least, most in zip(pauses, (0.5, 4, 30, 9), (1, 8, 60, 9.5))] == [True] * 4


def test_events_of_a_stream():
    lines = iter([b': ready\n', b'event: change\r\n', b'data: {"a":\n', b'data: 1}\n', b'id: 7\n', b'\n', b'id: 8\n', b'\n', b'data: cut'])
    stream = type('Stream', (), {'readline': lambda self, most: next(lines, b'')})()
    assert list(events_of(stream, 100)) == [{'event': 'change', 'data': '{"a":1}', 'id': '7'}, {'id': '8'}]
    endless = type('Stream', (), {'readline': lambda self, most: b'data: x\n'})()
    with pytest.raises(ValueError, match='too long'):
        list(events_of(endless, 1000))
    assert definition_of('Note', 'a/b@c%') == 'Note/a%2Fb%40c%25'


def test_it_is_small_and_has_the_version_of_the_server():
    lines = [line for path in PACKAGE.glob('stampd/*.py') for line in path.read_text().splitlines() if line.strip()]
    assert len(lines) <= 800
    version = re.search(r'^AC_INIT\(\[stampd\], \[(.*?)\]', (SOURCE / 'configure.ac').read_text(), re.M)[1]
    assert f'\nversion = "{version}"\n' in (PACKAGE / 'pyproject.toml').read_text()


# --- installed and typed ---

@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """The Python of a virtual environment that has the wheel, made without a network."""
    room = tmp_path_factory.mktemp('installed')
    shutil.copytree(PACKAGE, room / 'source', ignore=shutil.ignore_patterns('__pycache__'))
    offline = {'PIP_NO_INDEX': '1', 'PIP_DISABLE_PIP_VERSION_CHECK': '1', 'PIP_ROOT_USER_ACTION': 'ignore', 'PYTHONPATH': ''}
    run_program('/usr/bin/python3', '-m', 'venv', '--without-pip', room / 'venv')
    run_program('/usr/bin/python3', '-m', 'pip', 'wheel', '-q', '--no-deps', '--no-build-isolation', '-w', room, room / 'source', environment=offline)
    (wheel,) = room.glob('stampd-*-py3-none-any.whl')
    python = room / 'venv/bin/python3'
    run_program('/usr/bin/python3', '-m', 'pip', '--python', python, 'install', '-q', wheel, environment=offline)
    return python


def test_the_example_of_the_page_runs_where_the_wheel_is_installed(installed, stack, tmp_path):
    page = (SOURCE / 'doc/how-to/use-python.md').read_text()
    example = '\n'.join(re.findall(r'```python\n(.*?)```', page, re.S)[:1])
    assert 'https://localhost:8443' in example
    done = run_program(installed, '-c', example.replace('https://localhost:8443', stack.url), cwd=tmp_path,
                       environment={'PYTHONPATH': '', 'SSL_CERT_FILE': str(stack.path / 'etc/certificate.pem')})
    assert done.out == 'Shopping\n', done.text
    where = run_program(installed, '-c', 'import stampd, pathlib; print(pathlib.Path(stampd.__file__).parent)', environment={'PYTHONPATH': ''}).out.strip()
    assert 'site-packages' in where and os.path.exists(f'{where}/py.typed')


@pytest.mark.skipif(not shutil.which('mypy'), reason='needs mypy, of Debian')
def test_types_are_complete(tmp_path):
    program = tmp_path / 'program.py'
    program.write_text('from typing import List\nfrom stampd import Client, Copy, Done, Task, Worker, follow\n\n'
                       'def work(task: Task) -> Done:\n    return Done(task.op, [])\n\n'
                       'client = Client("https://localhost/lab", lambda is_refused: "key")\n'
                       'Worker(client, 16, work).run()\n'
                       'for changed in follow(client, Copy("Note", "a")):\n    first: List[Copy] = changed\n')
    run_program('mypy', '--strict', '--python-version', '3.9', '--cache-dir', tmp_path / 'cache', PACKAGE / 'stampd', program, cwd=PACKAGE, environment={'MYPYPATH': str(PACKAGE)})


# --- a server ---

@pytest.fixture(scope='module')
def world(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Person': PERSON})
    queue_worker.declare(stack, QUEUES)
    return stack


@pytest.fixture
def client_of(world):
    opened = []

    def make(token=None, **more):
        opened.append(Client(f'{world.url}/lab', token, context=ssl.create_default_context(cafile=str(world.path / 'etc/certificate.pem')), **more))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def admin_key(world):
    return world.key_file.read_text().strip()


@pytest.fixture
def id():
    return f'py-{random.SystemRandom().getrandbits(64):x}'


def note(id, **lines):
    return {'c': 'Note', 'id': id, 'items': [{'c': 'Line', 'k': key, **({'j': value} if value is not None else {'del': True})} for key, value in lines.items()]}


def contents(stack, id, c='Note'):
    return {f"{item['c']}.{item['k']}" if 'k' in item else item['c']: item['j'] for item in stack.get('lab', (c, id))['items']}


def run_together(*works):
    """In threads; raises what one of them has raised."""
    failures = []

    def guarded(work):
        try:
            work()
        except BaseException as error:  # raised below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_operations(client_of, id):
    client = client_of()
    out = client.put(note(id, a=1), {'c': 'Person', 'id': id, 'items': [{'c': 'Main', 'j': {'team': id}}]})
    assert [document['v'] for document in out['docs']] == [out['v']] * 2
    first, none = client.get(('Note', id), ('Note', f'{id}-none'))
    assert first['items'][0]['j'] == 1 and none['v'] == 0
    client.put(*[{'c': 'Person', 'id': f'{id}-{number}', 'items': [{'c': 'Main', 'j': {'team': id}}]} for number in range(4)])
    members = [id, *(f'{id}-{number}' for number in range(4))]
    asked = {'f': 'team', 't': 'eq', 'v1': id}
    assert sorted(client.find('Person', 'Main', asked, limit=2)) == members, 'of all pages'
    assert sorted(document['id'] for document in client.find('Person', 'Main', asked, want='docs')) == members
    assert [item['j'] for item in client.find('Person', 'Main', asked, want=['team'], limit=3)] == [{'team': id}] * 5
    assert sorted(document['id'] for document in client.list('Person', prefix=id, limit=2)) == members
    long = 'x' * 3000  # packed on both ways
    client.put(note(id, a=long))
    assert client.get(('Note', id))[0]['items'][0]['j'] == long
    assert client.connections._idle and len(client.connections._idle) == 1, 'one connection is kept'


def test_faults(client_of, id):
    client = client_of()
    version = client.put(note(id, a=1))['v']
    with pytest.raises(Fault) as raised:
        client.put({**note(id, a=2), 'if': 1})
    fault = raised.value
    assert (fault.code, fault.kind, fault.status, fault.phase, fault.at, fault.is_undone) == ('AVERSION', 'final', 409, 1, '/param/docs/0/if', True)
    assert fault.arguments == ['Note', id, str(version)] and 'AVERSION: The document' in str(fault)
    with pytest.raises(Fault, match='SCLOSED') as raised:
        client.operate('tasks', {'list': {}})
    assert raised.value.kind == 'sign'


def test_a_token_that_is_refused_is_renewed_once(client_of, admin_key):
    asked = []

    def token(is_refused):
        asked.append(is_refused)
        return admin_key if is_refused else 'wrong'

    client = client_of(token)
    for _ in range(2):
        assert 'out' in client.operate('tasks', {'list': {}})
    assert asked == [False, True]
    with pytest.raises(Fault, match='SKEY'):
        client_of(lambda is_refused: f'wrong {time.monotonic()}').operate('tasks', {'list': {}})


def test_updates_of_many_threads_are_not_lost(client_of, world, id):
    client = client_of()

    def add():
        for _ in range(6):
            client.update([('Note', id)], lambda read: [note(id, sum=sum(item['j'] for item in read[0]['items']) + 1)], patience_s=PATIENCE_S)

    run_together(*[add] * 4)
    assert contents(world, id) == {'Line.sum': 24}
    assert client.update([('Note', id)], lambda read: None) is None
    with pytest.raises(Fault, match='AVERSION'):
        client.update([('Note', id)], lambda read: [{**note(id, sum=0), 'if': 1}], patience_s=0)


def test_each_change_takes_effect_once_in_a_bad_network(client_of, world, id):
    seed = random.SystemRandom().getrandbits(32)
    steps = 8

    def play(number):
        dice = random.Random(seed + number)
        client = spoiled(client_of(), lambda: dice.choice(['before', 'after', 'cut', 'twice']) if dice.random() < 0.3 else None)
        for _ in range(steps):
            client.update([('Note', id)], lambda read: [note(id, sum=sum(item['j'] for item in read[0]['items']) + 1)], patience_s=PATIENCE_S)

    run_together(*[lambda number=number: play(number) for number in range(3)])
    assert contents(world, id) == {'Line.sum': 3 * steps}, seed


def test_a_lost_answer_is_asked_for_again_under_the_same_key(client_of, world, admin_key, id):
    harms = iter(['after', None])
    client = spoiled(client_of(), lambda: next(harms))
    out = client.put(note(id, a=1))
    (key, body), (key_again, body_again) = client.connections.sent
    assert key and (key, body) == (key_again, body_again) and out['v'] == world.get('lab', ('Note', id))['v']
    harms = iter(['after', None])
    client = spoiled(client_of(), lambda: next(harms))
    with pytest.raises(Fault, match='harm') as raised:
        client.operate('subs', {})
    assert not raised.value.is_undone and len(client.connections.sent) == 1, 'what is not known to be safe is left to the caller'
    harms = iter(['after', None, 'after', None])
    client = spoiled(client_of(admin_key), lambda: next(harms))
    assert Records(client).get(id) is None and len(client.connections.sent) == 2
    with pytest.raises(Fault, match='harm'):
        Records(client).add(id)
    assert Records(client).get(id).value == 1


@pytest.mark.parametrize('hours', [-50, 3])
def test_a_wrong_clock_is_corrected(client_of, world, id, hours, monkeypatch):
    right = time.time
    monkeypatch.setattr(time, 'time', lambda: right() + hours * 3600)
    client = client_of()
    client.put(note(id, a=1))
    assert abs(client.ahead_s + hours * 3600) < 600 and contents(world, id) == {'Line.a': 1}


# --- what is no server ---

@contextlib.contextmanager
def false_server(*answers):
    """Gives each request of each connection the next answer, bytes or a function of the connection; then it closes the connection.  Yields its
    address and the requests."""
    listener = socket.create_server(('127.0.0.1', 0))
    requests, left = [], iter(answers)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, connection.makefile('rb') as stream, contextlib.suppress(OSError, StopIteration):
                    while request := read_request(stream):
                        requests.append(request)
                        answer = next(left)
                        if callable(answer):
                            answer(connection)
                            break
                        connection.sendall(answer)
                        if b'close' in answer:
                            break

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f'http://127.0.0.1:{listener.getsockname()[1]}/lab', requests
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def read_request(stream):
    head = b''.join(iter(stream.readline, b'\r\n')) if stream.peek(1) else b''
    return head and head + stream.read(int(re.search(rb'(?i)content-length: (\d+)', head)[1]))


def answer_of(body, status=b'200 OK', headers=b''):
    return b'HTTP/1.1 ' + status + b'\r\nContent-Length: %d\r\n' % len(body) + headers + b'\r\n' + body


OUT = answer_of(b'{"out":{"docs":[]}}')


@pytest.mark.parametrize('answer, words', [
    (answer_of(b'<html>Sign in to the network</html>'), 'not JSON'), (answer_of(b'{"welcome":1}'), 'not of the operation'),
    (answer_of(b'no', b'502 Bad Gateway'), 'status 502'), (answer_of(b'{"code":1,"args":5}', b'400 Bad'), 'status 400'),
    (b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{"out":', 'cut'), (b'nonsense close\r\n\r\n', 'nonsense'),
    (answer_of(b'x' * 5000), 'more than 4000'), (answer_of(zlib.compress(b'x' * 4000000, wbits=31), headers=b'Content-Encoding: gzip\r\n'), 'more than 4000'),
    (answer_of(zlib.compress(b'x' * 400, wbits=31)[:-9], headers=b'Content-Encoding: gzip\r\n'), 'cut')], ids=lambda value: value if isinstance(value, str) else '')
def test_what_is_no_answer_is_none(answer, words):
    with false_server(answer) as (address, _), Client(address, patience_s=0, answer_bytes=4000) as client:
        with pytest.raises(Fault, match=words) as raised:
            client.get(('Note', 'a'))
        assert raised.value.code == 'NETWORK' and raised.value.kind == 'again' and not raised.value.is_undone


def test_an_answer_that_never_ends_is_given_up():
    over = threading.Event()

    def drip(connection):
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n')
        while not over.wait(0.05):
            connection.sendall(b' ')

    with false_server(drip) as (address, _), Client(address, patience_s=0, timeout_s=0.3) as client:
        with pytest.raises(Fault, match='timed out|too long'):
            client.get(('Note', 'a'))
        over.set()


def test_a_server_that_is_busy_is_asked_again_when_it_says_and_not_for_ever():
    busy = answer_of(b'{"code":"XBUSY","phase":0,"status":429}', b'429 Too Many', b'Retry-After: 1\r\n')
    long = answer_of(b'{"code":"XBUSY","phase":0,"status":429}', b'429 Too Many', b'Retry-After: 60\r\n')
    crash = answer_of(b'{"code":"XCRASH","phase":1}', b'502 Bad')
    begun = time.monotonic()
    with false_server(busy, OUT, long, crash, crash, crash, OUT) as (address, requests), Client(address) as client:
        assert client.get() == [] and time.monotonic() - begun >= 1
        with pytest.raises(Fault, match='XBUSY') as raised:
            client.get()
        assert raised.value.retry_after_s == 60
        with pytest.raises(Fault, match='XCRASH'):
            client.get()
        assert len(requests) == 6


def test_a_kept_connection_that_has_ended_is_replaced():
    with false_server(OUT, lambda connection: None, OUT) as (address, requests), Client(address) as client:
        assert client.get() == []
        assert client.get() == [], 'the second one ends without an answer'
        assert len(requests) == 3
    client.close()
    with pytest.raises(Fault) as raised:
        Client(address, patience_s=0).operate('record', {})
    assert raised.value.code == 'NETWORK' and raised.value.is_undone, 'nobody listens'


def test_a_server_that_is_not_to_be_trusted_is_refused_at_once(world):
    for ask in (lambda client: client.get(), lambda client: next(iter(Live(client, 'Note')))):
        with pytest.raises(ssl.SSLCertVerificationError), Client(f'{world.url}/lab', patience_s=PATIENCE_S) as client:
            ask(client)


@pytest.mark.parametrize('address', ['localhost/lab', 'ftp://localhost/lab', 'https:///lab'])
def test_an_address_is_that_of_a_namespace(address):
    with pytest.raises(ValueError, match='address of a namespace'):
        Client(address)


# --- copies and live events ---

def test_a_copy_equals_the_server_after_random_changes(client_of, world, id):
    seed = random.SystemRandom().getrandbits(32)
    dice = random.Random(seed)
    client = client_of()
    copies = [Copy('Note', f'{id}-{number}') for number in range(3)]
    for step in range(25):
        for copy in dice.sample(copies, 2):
            if dice.random() < 0.15:
                client.put({'c': 'Note', 'id': copy.id, 'delete': True, **({'items': [{'c': 'Line', 'k': 'new', 'j': step}]} if dice.random() < 0.5 else {})})
            else:
                client.put(note(copy.id, **{dice.choice('abcdef'): dice.choice([None, step, {'deep': [step]}]) for _ in range(3)}))
        held = dice.sample(copies, dice.randrange(1, 4))
        client.sync(*held)
        for copy in held:
            assert (copy.contents or {}) == contents(world, copy.id) and copy.v == world.get('lab', ('Note', copy.id))['v'], (seed, step)
    assert client.sync(*copies) == [copy for copy in copies if copy not in held] or not client.sync(*copies)
    assert client.sync(*copies) == []


def test_an_answer_without_room_is_asked_for_again(client_of, id):
    client = client_of()
    client.put(note(id, a=1))
    first, second = Copy('Note', id), Copy('Note', id)
    assert client.sync(first, second) == [first, second] and first.contents == second.contents == {'Line.a': 1}


class Followed:
    """A thread that follows copies; `seen` are their contents."""

    def __init__(self, client, *copies):
        self.copies, self.live = copies, Live(client, *[definition_of(copy.c, copy.id) for copy in copies])
        self.seen, self.failures, self.rounds = {}, [], 0
        self.thread = threading.Thread(target=self.run)
        self.client = client

    def run(self):
        try:
            for _ in follow(self.client, *self.copies, live=self.live):
                self.rounds += 1
                self.seen = {copy.id: copy.contents for copy in self.copies}
        except BaseException as error:
            self.failures.append(error)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.live.close()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive() and not self.failures, self.failures


def test_copies_follow_the_server_through_a_restart(client_of, world, id):
    client = client_of()
    with Followed(client_of(), Copy('Note', id), Copy('Note', f'{id}-b')) as followed:
        wait_until(lambda: followed.seen == {id: None, f'{id}-b': None}, what='the first state')
        client.put(note(id, a=1))
        wait_until(lambda: followed.seen[id] == {'Line.a': 1}, what='a change')
        world.restart_stampd()
        client.put(note(f'{id}-b', b=2))
        client.put({'c': 'Note', 'id': id, 'delete': True})
        wait_until(lambda: followed.seen == {id: None, f'{id}-b': {'Line.b': 2}}, what='what changed meanwhile')
        client.put(note(id, a=3))
        wait_until(lambda: followed.seen[id] == {'Line.a': 3}, what='a change after it')


def test_events_of_classes_and_records(client_of, admin_key, id):
    client = client_of(admin_key)
    with Live(client, 'Note', f'records:{id}') as live:
        events = iter(live)
        assert next(events) == Event(True, [])
        version = client.put(note(id, a=1))['v']
        changed = next(event for event in events if event.changed not in ([], [('Note', 0)])).changed  # 0: the server may have missed something before
        assert changed == [('Note', version)]
        Records(client).set(f'{id}.x', 1)
        assert next(event for event in events if (f'records:{id}', 0) in event.changed)
        number = 1
        while not live.last:  # an id comes behind the events of which it speaks
            number += 1
            client.put(note(id, a=number))
            next(events)
        resumed, middle = live.last, len(live.last) // 2
    with Live(client, 'Note') as live:
        live.last = resumed[:middle] + ('A' if resumed[middle] != 'A' else 'B') + resumed[middle + 1:]  # altered: it starts from the beginning
        assert next(iter(live)).is_all


def test_events_of_searches(client_of, admin_key, id):
    client = client_of(admin_key)
    search = 'find:' + json.dumps({'c': 'Person', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': id}]})
    with Live(client, search) as live:
        events = iter(live)
        assert next(events) == Event(True, [])
        assert next(event for event in events if event == Event(False, [(search, 0)])), 'the page'
        client.put({'c': 'Person', 'id': id, 'items': [{'c': 'Main', 'j': {'team': id}}]})
        assert next(event for event in events if event == Event(False, [(search, 0)])), 'another page'


def test_what_may_not_be_followed_is_raised(client_of):
    for definitions, code in ((['Person/none@1'], 'NCOLLECTION'), (['records:'], 'SCLOSED'), (['no class'], 'AARG')):
        with pytest.raises(Fault) as raised, Live(client_of(), *definitions) as live:
            next(iter(live))
        assert raised.value.code == code


def test_a_silent_stream_is_left_and_sign_in_is_raised(monkeypatch):
    head = b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n'
    ready = head + b'event: ready\ndata: {"resumed":false}\n\nid: 5\n\n'

    def silent(connection):
        connection.sendall(ready)
        connection.recv(1)  # until the client closes

    closed = ready.replace(b'false', b'true') + b'event: closed\ndata: {"code":"SKEY","detail":"It has ended."}\n\n'
    monkeypatch.setattr('stampd.live.PAUSES_S', (0.01, 0.02))
    with false_server(*[silent] * 100) as (address, requests), Client(address) as client, Live(client, 'Note', silence_s=0.3) as live:
        events = iter(live)
        assert next(events).is_all and next(events).is_all and live.last == '5', 'it was left'
        assert b'"defs": ["Note"]' in requests[0] and b'"last": "5"' in requests[-1]
        threading.Timer(0.05, live.close).start()
        assert not [event for event in events if not event.is_all], 'it ends'
    with false_server(lambda connection: connection.sendall(closed)) as (address, requests), Client(address) as client, Live(client, 'Note') as live:
        with pytest.raises(Fault, match='SKEY: It has ended'):
            list(live)
        assert live.last == '5' and len(requests) == 1


# --- records ---

def test_records(client_of, admin_key, id):
    records = Records(client_of(admin_key))
    assert records.get(id) is None
    assert records.set(id, b'\x00\xff').is_done and records.get(id).value == b'\x00\xff'
    assert records.set(id, 1, only='absent').state == 'NOT_FREE' and records.set(f'{id}.none', 1, only='present').state == 'NOT_FOUND'
    known = records.get(id, probe=True)
    assert known.value is None and (known.type, known.size, known.expires_ms) == ('buffer', 2, None)
    assert records.set(id, 'text', if_stamp=known.stamp).is_done and records.set(id, 'late', if_stamp=known.stamp).state == 'OTHER_STAMP'
    assert records.delete(id, if_stamp=known.stamp).state == 'OTHER_STAMP' and records.get(id).value == 'text'
    assert [records.add(f'{id}.sum', 2, ttl_ms=600000).value for _ in range(2)] == [2, 4] and records.get(f'{id}.sum').expires_ms > time.time() * 1000
    assert [(record.key, record.value) for record in records.scan(id, limit=1)] == [(id, 'text'), (f'{id}.sum', 4)]
    assert records.set(id, None, ttl_ms=1).is_done
    wait_until(lambda: records.get(id) is None, what='its end')
    assert records.delete(f'{id}.sum').is_done and [result['state'] for result in records.run({'do': 'get', 'key': id}, {'do': 'not', 'key': id})] == ['NOT_FOUND'] * 2


# --- workers ---

@pytest.fixture
def queue(world):
    queue_worker.empty(world)
    return world


@contextlib.contextmanager
def working(client, work, **more):
    worker = Worker(client, 16, work, wait_s=1, **more)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_a_worker_ends_tasks_with_their_changes(client_of, queue):
    def work(task):
        if task.param.get('wrong'):
            raise Failure('no such picture', code='PICTURE', is_final=True)
        return Done(task.param['text'].upper(), [{'c': 'Note', 'id': task.param['id'], 'items': [{'c': 'Text', 'j': task.op, **task.param.get('more', {})}]}])

    for param in ({'id': 'loud', 'text': 'hello'}, {'wrong': 1}, {'id': 'loud'}, {'id': 'x', 'text': 'a', 'more': {'nonsense': 1}}):
        queue_worker.ask(queue, 'shout', param)
    with working(client_of(queue_worker.KEY), work):
        found = wait_until(lambda: len(rows := queue_worker.history(queue, 'exc, result, report')) == 4 and rows, what='all ends')
    assert found[:3] == [(None, '"HELLO"', None), ('PICTURE', None, 'no such picture'), ('FAILED', None, "KeyError: 'text'")]
    assert found[3][0] == 'FAILED' and 'AARG' in found[3][2], 'documents that are refused are a failure'
    assert queue.get('lab', ('Note', 'loud'))['items'][0]['j'] == 'shout'


def test_a_claim_is_extended_and_its_loss_is_seen(client_of, queue):
    taskid = queue_worker.ask(queue, 'shout')
    seen = []

    def work(task):
        task.progress = 'half ä of it'
        until = task.row['until']
        wait_until(lambda: queue_worker.row(queue, taskid, 'progress')[0] == task.progress, what='the extension')
        assert queue_worker.row(queue, taskid, 'expires')[0] > until
        queue_worker.overdue(queue)
        wait_until(lambda: task.is_lost, what='the loss')
        worker.stop()
        seen.append(task.id)
        return Done('late')

    with working(client_of(queue_worker.KEY), work, claim_s=6) as worker:
        wait_until(lambda: seen, what='the work')
    assert queue_worker.row(queue, taskid, '1') and (None, '"late"') not in queue_worker.history(queue)


def test_a_wrong_key_ends_a_worker(client_of, queue):
    with pytest.raises(Fault, match='SKEY|SCLOSED'):
        Worker(client_of('wrong'), 16, lambda task: Done(), wait_s=0).run()


WORKER = '''
import sys, time
from stampd import Client, Done, Worker
url, key, slow = sys.argv[1:]
def work(task):
    print('begun', flush=True)
    sys.stdin.readline()
    return Done('slow' if slow else 'quick', [{'c': 'Note', 'id': 'sum', 'items': [{'c': 'Text', 'k': task.id, 'j': 1}]}])
worker = Worker(Client(url, key), 16, work, wait_s=1)
worker.stop_at_signals()
worker.run()
print('stopped', flush=True)
'''


@contextlib.contextmanager
def worker_process(stack):
    environment = {**os.environ, 'PYTHONPATH': str(PACKAGE), 'SSL_CERT_FILE': str(stack.path / 'etc/certificate.pem'), 'PYTHONDONTWRITEBYTECODE': '1'}
    process = subprocess.Popen([sys.executable, '-c', WORKER, f'{stack.url}/lab', queue_worker.KEY, 'slow'], env=environment, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def test_a_worker_that_is_killed_leaves_its_task_to_another(client_of, queue):
    taskid = queue_worker.ask(queue, 'shout')
    with worker_process(queue) as process:
        assert process.stdout.readline() == 'begun\n'
    queue_worker.overdue(queue)
    with working(client_of(queue_worker.KEY), lambda task: Done('again', [{'c': 'Note', 'id': 'sum', 'items': [{'c': 'Text', 'k': task.id, 'j': 1}]}])):
        wait_until(lambda: (None, '"again"') in queue_worker.history(queue), what='the end')
    assert contents(queue, 'sum') == {f'Text.{taskid}': 1}


def test_sigterm_lets_a_worker_finish_its_work(queue):
    first, second = queue_worker.ask(queue, 'shout'), queue_worker.ask(queue, 'shout')
    with worker_process(queue) as process:
        assert process.stdout.readline() == 'begun\n'
        process.send_signal(signal.SIGTERM)
        process.stdin.write('\n')
        process.stdin.flush()
        assert process.stdout.readline() == 'stopped\n' and process.wait(PATIENCE_S) == 0
    assert queue_worker.history(queue) == [(None, '"slow"')] and queue_worker.row(queue, second, 'starttime') == (None,) and not queue_worker.row(queue, first, '1')

"""The module of nginx (nginx/module): reads that anybody may send are answered from the shared segment.  Its answers are those of
workers, byte for byte, and none is older than a commit that was acknowledged before."""
import gzip
import json
import os
import random
import re
import signal
import socket
import ssl
import threading
import time
import urllib.parse

import pytest

import test_resources
from stack import BUILD, children, command_line, name_of, wait_until
from test_resources import *  # noqa: F401,F403  each of these tests runs once more, with the module

pytestmark = pytest.mark.skipif(not (BUILD / 'nginx/module/ngx_http_stampd_module.so').exists(), reason='the module of nginx was not built')
STACK = {**test_resources.STACK, 'settings': {**test_resources.STACK['settings'], 'public_answers_mb': 1},
         'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open', 'shut': 'closed'}}


class Wire:
    """A connection to nginx, to see each byte."""

    def __init__(self, stack):
        self.port = stack.port
        self.connect()

    def connect(self):
        plain = socket.create_connection(('127.0.0.1', self.port), timeout=60)
        self.socket = ssl._create_unverified_context().wrap_socket(plain, server_hostname='localhost')
        self.file = self.socket.makefile('rb')
        self.is_over = False

    def ask(self, method, path, headers=()):
        if self.is_over:
            self.connect()
        lines = [f'{method} {path} HTTP/1.1', 'Host: localhost', *headers, '', '']
        self.socket.sendall('\r\n'.join(lines).encode())
        head = b''
        while not head.endswith(b'\r\n\r\n'):
            line = self.file.readline()
            assert line, (head, 'the connection ended')
            head += line
        self.is_over = b'\r\nConnection: close' in head
        length = re.search(rb'(?i)^content-length: (\d+)', head, re.M)
        has_body = method != 'HEAD' and b' 304 ' not in head.splitlines()[0]
        if has_body and b'\r\nTransfer-Encoding: chunked' in head:
            return head + self.read_chunks()
        return head + (self.file.read(int(length[1])) if has_body and length else b'')

    def read_chunks(self):
        """What they hold; where one ends depends on who has sent it."""
        content = b''
        while size := int(self.file.readline(), 16):
            content += self.file.read(size)
            assert self.file.readline() == b'\r\n'
        assert self.file.readline() == b'\r\n'
        return content

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()


def answered(stack):
    """How many answers nginx has given by itself; it reports them each second."""
    return stack.metrics().get('stampd_nginx_answers_total', 0)  # a worker that is killed meanwhile says nothing


def serving(stack):
    """The processes that answer; that which has looked through the cache ends by itself."""
    return [pid for pid in children(stack.pid('nginx')) if 'worker process' in command_line(pid)]


def without_ids(answer):
    head, _, body = answer.partition(b'\r\n\r\n')
    head = re.sub(rb'(?m)^Date: .*$', b'Date', head)
    return re.sub(rb'(?m)^X-Request-Id: [0-9a-f]{32}\r?$', b'X-Request-Id', head), body


def is_by_module(stack, wire, method, path, headers=()):
    """Whether the module answers; the workers are stopped meanwhile, so that nobody else can."""
    workers = [pid for pid in stack.worker_pids() if name_of(pid) != 'stampd-relay']
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        wire.socket.settimeout(0.3)
        return wire.ask(method, path, headers)
    except TimeoutError:
        return None
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)


def by_module(stack, path, method='GET', headers=()):
    """The answer of the module, which has one as soon as a worker has given it."""
    def look():
        with Wire(stack) as wire:
            wire.ask('GET', path)  # a worker puts it into the segment, if it is not there
        with Wire(stack) as wire:
            return is_by_module(stack, wire, method, path, headers)
    return wait_until(look, what='an answer of the module')


HEADERS = [(), ('If-None-Match: *',), ('If-None-Match: {tag}',), ('If-None-Match: W/{tag}',), ('If-None-Match: "1", {tag}',), ('If-None-Match: "1"',),
           ('If-None-Match: {tag}', 'If-None-Match: "1"'), ('If-None-Match: wrong',), ('If-Match: {tag}',), ('If-Match: "1"',), ('Accept: text/html',),
           ('Origin: https://elsewhere.example',), ('X-Request-Id: mine',), ('X-Request-Id: not <mine>',), ('Authorization: Bearer wrong',),
           ('Cookie: a=b',), ('X-Stampd-Build: of-today',), ('X-Stampd-Build: other',), ('Sec-Fetch-Site: cross-site',), ('Idempotency-Key: k',),
           ('Accept-Encoding: gzip',), ('Content-Encoding: gzip',), ('Content-Encoding: br',)]
PATHS = ['{path}', '{path}?age=0', '{path}?age=1', '{path}?', '{path}/', '{path}%41', '/lab/doc/Note/never', '/lab/doc/note/x', '/shut/doc/Note/x', '/demo/doc/Note/x',
         '/nobody/doc/Note/x', '/lab/doc/../doc/Note/x', '//lab/doc/Note/x', '/lab/doc/Note/' + 'x' * 600]


def test_answers_are_those_of_workers(stack):
    path = '/lab/doc/Note/compared'
    written = stack.request('PUT', path, json={'items': [{'c': 'Head', 'j': {'a': 1}}, {'c': 'Line', 'k': 'a', 'j': ['é', 'x' * 1500]}]})
    tag = written.headers['ETag']
    assert by_module(stack, path)
    cases = [(method, place.format(path=path), tuple(line.replace('{tag}', tag) for line in headers))
             for method in ('GET', 'HEAD') for headers in HEADERS for place in PATHS]
    before = answered(stack)
    with Wire(stack) as wire, Wire(stack) as other:
        for method, place, headers in cases:
            first = without_ids(wire.ask(method, place, headers))
            again = without_ids(other.ask(method, place, (*headers, 'Range: bytes=0-1')))  # which a worker answers, and does not heed
            assert first == again, (method, place, headers)


def test_what_the_module_answers(stack):
    path = '/lab/doc/Note/plain'
    tag = stack.request('PUT', path, json={'items': [{'c': 'Head', 'j': 1}]}).headers['ETag']
    before = answered(stack)
    assert b'200 OK' in by_module(stack, path)
    assert b'200 OK' in by_module(stack, path, 'HEAD')
    assert b' 304 ' in by_module(stack, path, headers=[f'If-None-Match: {tag}'])
    assert b'X-Request-Id: mine' in by_module(stack, path, headers=['X-Request-Id: mine'])
    wait_until(lambda: answered(stack) >= before + 4, what='the count of these answers')


def query(class_, id_, ns='lab', text=None):
    """The address of a `get`, as JavaScript writes it."""
    text = text or json.dumps({'docs': [{'c': class_, 'id': id_}]}, separators=(',', ':'))
    return f'/{ns}/op/get?param={urllib.parse.quote(text, safe="!~*()")}'


def unpacked(answer):
    head, body = answer
    return head, gzip.decompress(body) if body and b'\r\nContent-Encoding: gzip' in head else body


def test_answers_of_get_are_those_of_workers(stack):
    """By the operation `get`, sent as GET: each header and each byte, whatever else the request says."""
    tag = stack.request('PUT', '/lab/doc/Note/got', json={'items': [{'c': 'Head', 'j': {'a': 1}}, {'c': 'Line', 'k': 'a', 'j': ['é', 'x' * 1500]}]}).headers['ETag']
    usual = query('Note', 'got')
    assert by_module(stack, usual)
    head, body = without_ids(by_module(stack, usual, headers=['Accept-Encoding: gzip']))
    assert b'\r\nContent-Encoding: gzip' in head and b'"v":' + tag.strip('"').encode() in gzip.decompress(body)
    paths = [usual, usual + '&', usual + '&lang=en', usual + '&age=1', usual + '#x', usual.replace('?', '?x=1&'), usual.replace('/get?', '/get/?'),
             usual.replace('/get?', '/%67et?'), usual.replace('/op/', '/OP/'), '//' + usual[1:], usual.replace('%22', '"'), usual.replace('%7B', '%7b'),
             '/lab/op/get', '/lab/op/get?', '/lab/op/get?param=', '/lab/op/get?param=%7B', query('Note', 'never'), query('note', 'got'),
             query('Note', 'got', ns='shut'), query('Note', 'got', ns='demo'), query('Note', 'got', ns='nobody'), query('Note', 'x' * 600),
             query('Note', 'got', text='{"docs":[{"c":"Note","id":"got","age":1}]}'), query('Note', 'got', text='{"docs":[{"id":"got","c":"Note"}]}'),
             query('Note', 'got', text='{"docs":[{"c":"Note","id":"got"},{"c":"Note","id":"got"}]}'), query('Note', 'got', text='{"docs":[]}')]
    with Wire(stack) as wire, Wire(stack) as other:
        for method in ('GET', 'HEAD'):
            for headers in HEADERS:
                for path in paths if headers in ((), ('Accept-Encoding: gzip',)) else paths[:3]:
                    lines = tuple(line.replace('{tag}', tag) for line in headers)
                    first = unpacked(without_ids(wire.ask(method, path, lines)))
                    again = unpacked(without_ids(other.ask(method, path, (*lines, 'Range: bytes=0-1'))))  # which a worker answers, and does not heed
                    assert first == again, (method, path, lines)


def test_what_the_module_answers_of_get(stack):
    stack.request('PUT', '/lab/doc/Note/usual', json={'items': [{'c': 'Head', 'j': 1}]})
    usual = query('Note', 'usual')
    before = answered(stack)
    assert b'"j":1' in by_module(stack, usual)
    assert b'200 OK' in by_module(stack, usual, 'HEAD')
    assert b'200 OK' in by_module(stack, usual, headers=['If-None-Match: *'])
    wait_until(lambda: answered(stack) >= before + 3, what='the count of these answers')
    tag = stack.request('PUT', '/lab/doc/Note/usual', json={'items': [{'c': 'Head', 'j': 2}]}).headers['ETag'].strip('"')
    with Wire(stack) as wire:
        assert b'"v":%d' % int(tag) in wire.ask('GET', usual)
    unusual = [query('Note', 'usual', text='{"docs":[{"c":"Note","id":"usual" }]}'), usual + '&', query('Note', 'never'),
               query('Note', 'usual', text='{"docs":[{"c":"Note","id":"usual"},{"c":"Note","id":"plain"}]}')]
    for path in unusual:  # nobody fills the segment with one answer under many names
        with Wire(stack) as wire:
            assert b'200 OK' in wire.ask('GET', path), path
        with Wire(stack) as wire:
            assert is_by_module(stack, wire, 'GET', path) is None, path


def test_access_that_was_taken_away_is_gone_at_once(stack):
    path = '/lab/doc/Note/taken'
    stack.request('PUT', path, json={'items': [{'c': 'Head', 'j': 1}]})
    assert by_module(stack, path) and by_module(stack, query('Note', 'taken'))
    for mode in ('closed', 'open'):
        stack.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Conf', 'j': {'database': 'stampd_lab', 'access': mode}}]}, admin=True)
        with Wire(stack) as wire, Wire(stack) as other:
            assert (b' 200 OK' in wire.ask('GET', path)) == (mode == 'open')
            assert (b' 200 OK' in other.ask('GET', query('Note', 'taken'))) == (mode == 'open')


def test_it_goes_on_with_a_new_segment(stack):
    path = '/lab/doc/Note/begun'
    stack.request('PUT', path, json={'items': [{'c': 'Head', 'j': 1}]})
    assert by_module(stack, path)
    stack.restart_stampd()
    tag = stack.request('PUT', path, json={'items': [{'c': 'Head', 'j': 2}]}).headers['ETag']
    assert stack.request('GET', path).headers['ETag'] == tag
    assert tag.encode() in by_module(stack, path)
    assert wait_until(stack.nginx_workers)


@pytest.mark.parametrize('kills', [False, True], ids=['quiet', 'kills'])
def test_no_read_is_stale(stack, kills):
    """Writers count up; each read, through the module or not, has at least what was acknowledged before it began."""
    paths = [f'/lab/doc/Note/count{number}' for number in range(3)]
    newest, wrong, ends, reads = {}, [], threading.Event(), [0]
    for path in paths:
        newest[path] = int(stack.request('PUT', path, json={'items': [{'c': 'N', 'j': 0}]}).json()['v'])
    before = answered(stack)

    def write(path):
        number = 0
        while not ends.is_set():
            number += 1
            answer = stack.request('PUT', path, json={'items': [{'c': 'N', 'j': number}]})
            if answer.status_code == 200:
                newest[path] = max(newest[path], int(answer.json()['v']))
            time.sleep(random.random() / 100)

    def read():
        wire, seen = Wire(stack), {}
        while not ends.is_set():
            path = random.choice(paths)
            least = max(newest[path], seen.get(path, 0))
            answer = wire.ask('GET', random.choice([path, query('Note', path.rpartition('/')[2])]))
            tag = re.search(rb'"v":(\d+)', answer)
            if b' 200 OK' not in answer:
                continue
            seen[path] = int(tag[1])
            reads[0] += 1
            if seen[path] < least or b'"v":%d' % seen[path] not in answer:
                wrong.append((path, least, answer))
                ends.set()

    threads = [threading.Thread(target=write, args=(path,)) for path in paths] + [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8 if kills else 0):
            time.sleep(0.5)
            stack.kill_worker()
        # Some of what has been counted since may be answers of before: the readers count, too.
        wait_until(lambda: ends.is_set() or (answered(stack) > before + 500 and reads[0] > 500), what='500 answers of the module')
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong
    assert reads[0] > 500


def test_nginx_lives_while_the_segment_is_scribbled_over(stack):
    """Whatever the bytes are, nginx answers or asks a worker."""
    path = '/lab/doc/Note/scribbled'
    stack.request('PUT', path, json={'items': [{'c': 'Head', 'j': 1}]})
    assert by_module(stack, path)
    workers = serving(stack)
    segment = stack.path / 'run/stampd/segment'
    size = 64 + 64 + 64 * 65536 + 64 + (1 << 20)
    kept = segment.read_bytes()[:size]
    stack.step('stampd', 'stop', 'now')
    end = time.monotonic() + 5
    with Wire(stack) as wire, open(segment, 'r+b') as file:
        while time.monotonic() < end:
            file.seek(0)
            file.write(kept[:size])
            for _ in range(20):
                file.seek(random.choice([random.randrange(192), random.randrange(size - 64 - (1 << 20), size - 8)]))
                file.write(random.choice([bytes(8), b'\xff' * 8, random.randbytes(8)]))
            at = 64 + 64 + 64 * 65536 + 8  # the master would beat there
            file.seek(at)
            file.write((time.monotonic_ns() // 1000000).to_bytes(8, 'little'))
            file.flush()
            assert wire.ask('GET', path)
    segment.unlink()
    assert serving(stack) == workers
    stack.step('stampd', 'start')

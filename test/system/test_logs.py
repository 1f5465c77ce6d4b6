"""Logs have no ids of documents, no keys of attachments and no credentials from addresses: on every road, done or refused, by stampd and by nginx."""
import contextlib
import os
import re
import signal

import pytest

from hostile.entry import Entry
from stack import wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'read'},
         'settings': {'exempt_clients': '', 'limit_client_connections': 0, 'limit_client_requests': 0}}
SECRET = 'marzipan'
QUESTION = f'admin={SECRET}&key=st_{SECRET}&account={SECRET}&id={SECRET}&session={SECRET}&value={SECRET}'
PATHS = {f'/lab/op/{name}?{QUESTION}' for name in ('get', 'put', 'list', 'find', 'collection', 'login', 'subs', 'task', 'nothing')} | {
    f'/lab/op/get/Note/{SECRET}', f'/lab/op/get/{SECRET}?{QUESTION}', f'/lab/doc/Note/{SECRET}', f'/lab/doc/Note/{SECRET}/', f'/lab/doc/Note/{SECRET}?{QUESTION}',
    f'/lab/doc/Note/{SECRET}/file/{SECRET}.txt', f'/lab/doc/Note/{SECRET}/file/{SECRET}/{SECRET}', f'/lab/doc/Note/{SECRET}/file/sha/{"ab" * 32}?{QUESTION}',
    f'/lab/doc/note/{SECRET}', f'/lab/doc/Note/{SECRET}/items/Line/{SECRET}', f'/lab/upload/{SECRET}', f'/lab/upload?{QUESTION}', f'/lab/od/push/{SECRET}?{QUESTION}',
    f'/lab/od/{SECRET * 12}', f'/lab/live?def=Note/{SECRET}&{QUESTION}', f'/lab/res/a.css?{QUESTION}', f'/lab/openapi.json?{QUESTION}', f'/lab/ping?{QUESTION}',
    f'/demo/op/put?{QUESTION}', f'/qm/op?{QUESTION}', f'/lab/%64oc/Note/{SECRET}', f'//lab/doc/Note/{SECRET}', f'/lab//doc/Note/{SECRET}', f'/LAB/doc/Note/{SECRET}',
    f'/lab/doc/Note/%6Darzipan/file/{SECRET}', f'/.stampd/files/{SECRET}', f'/elsewhere/{SECRET}', f'/ping/../lab/doc/Note/{SECRET}', f'/%zz/{SECRET}', f'/lab/doc/{SECRET}/x'}
ROADS = sorted((method, path) for method in ('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE') for path in PATHS)


def request(method, path, *lines, body=b'{}', size=None):
    head = [f'{method} {path} HTTP/1.1', 'Host: localhost', f'Content-Length: {len(body) if size is None else size}', 'Content-Type: application/json',
            f'Referer: https://localhost{path}', 'Connection: close', *lines]
    return '\r\n'.join(head).encode() + b'\r\n\r\n' + body


class Logs:
    def __init__(self, stack):
        self.stack, self.entry, self.access = stack, Entry(stack), stack.path / 'log/access.log'

    def text(self):
        return self.access.read_text() + self.stack.log('nginx') + self.stack.log()

    def statuses(self):
        return re.findall(r'" (\d{3}) ', self.access.read_text())

    def check(self, least):
        """When the access log has that many more lines."""
        wait_until(lambda: len(self.statuses()) >= least, what='the access log')
        found = [line for line in self.text().splitlines() if SECRET in line or '%6Darzipan' in line]
        assert not found, found[:5]


@pytest.fixture(scope='module')
def logs(stack):
    """nginx with an access log."""
    alter_nginx(stack, (r'(\n    log_format stampd .*\n)', rf'\1    access_log {stack.path}/log/access.log stampd;\n'))
    return Logs(stack)


@pytest.fixture(scope='module')
def impatient(logs):
    """And with little patience."""
    alter_nginx(logs.stack, (r'client_body_timeout 30s', 'client_body_timeout 1s'), (r'fastcgi_read_timeout \d+s', 'fastcgi_read_timeout 1s'),
                (r'proxy_read_timeout \d+s', 'proxy_read_timeout 1s'))
    return logs


def alter_nginx(stack, *changes):
    path = stack.path / 'etc/nginx.conf'
    text = path.read_text()
    for pattern, replacement in changes:
        text, count = re.subn(pattern, replacement, text)
        assert count, pattern
    path.write_text(text)
    stack.step('nginx', 'stop')
    stack.step('nginx', 'start')


def send(logs, method, path, *lines, **more):
    with logs.entry.connect() as client:
        with contextlib.suppress(OSError):
            client.sendall(request(method, path, *lines, **more))
        return logs.entry.receive(client, method == 'HEAD').status


def test_what_is_done_and_what_a_worker_refuses(logs):
    before = len(logs.statuses())
    for method, path in ROADS:
        if not (method == 'GET' and '/live' in path):
            send(logs, method, path)
    logs.check(before + len(ROADS) - 1)
    logs.stack.put('lab', {'c': 'Note', 'id': SECRET, 'items': []})
    for method, body in (('PUT', b'a file'), ('GET', b''), ('DELETE', b'')):
        assert send(logs, method, f'/lab/doc/Note/{SECRET}/file/{SECRET}', body=body) in (200, 201)
    logs.check(before + len(ROADS) + 3)
    lines = logs.access.read_text()
    for place in ('/lab/op/get', '/lab/op/get/*', '/lab/doc/Note/*', '/lab/doc/Note/*/file/*', '/lab/upload/*', '/lab/live', '/lab/res/a.css', '/lab/od/push/*'):
        assert f' {place}" ' in lines, place


@pytest.mark.parametrize('status, path, more', [
    (400, '{path}', {'lines': ['Host: other']}), (413, '{path}', {'size': 99999999999}), (414, '{path}?' + 'x' * 17000, {}), (431, '{path}', {'lines': ['X-Long: ' + 'x' * 17000]})])
def test_what_nginx_refuses(logs, status, path, more):
    before = len(logs.statuses())
    roads = [(method, road) for method, road in ROADS if status != 413 or method in ('POST', 'PUT', 'PATCH')]
    for method, road in roads:
        send(logs, method, path.format(path=road), *more.get('lines', ()), size=more.get('size'))
    logs.check(before + len(roads))
    assert str(status) in logs.statuses()[before:]


def test_a_body_that_is_too_large_is_still_reported(logs):
    assert send(logs, 'POST', f'/lab/op/get?{QUESTION}', size=99999999999) == 413
    wait_until(lambda: 'nginx: client intended to send too large body: 99999999999 bytes client=127.0.0.1' in logs.stack.log(), what='the line')


@pytest.mark.timeout(180)  # nginx waits a minute for a body
def test_408_a_body_that_does_not_come(impatient):
    logs = impatient
    before = len(logs.statuses())
    with contextlib.ExitStack() as all_:
        for method, path in ROADS:
            if method in ('POST', 'PUT', 'PATCH'):
                client = all_.enter_context(logs.entry.connect())
                client.sendall(request(method, path, size=60000))
        wait_until(lambda: '408' in logs.statuses()[before:], what='the end of a request')
        wait_until(lambda: len(logs.statuses()) >= before + sum(method in ('POST', 'PUT', 'PATCH') for method, _ in ROADS), what='the end of all')
    logs.check(before + 1)


@contextlib.contextmanager
def stopped(stack):
    pids = stack.worker_pids()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_499_and_504_when_workers_do_not_answer(impatient):
    """Those that wait in vain, and those that do not wait."""
    logs = impatient
    before = len(logs.statuses())
    with stopped(logs.stack):
        for method, path in [road for road in ROADS if road[0] in ('GET', 'PUT')]:
            with logs.entry.connect() as client:
                client.sendall(request(method, path))
        wait_until(lambda: '499' in logs.statuses()[before:], what='a client that has left')
        for path in sorted(PATHS):
            send(logs, 'GET', path)
        wait_until(lambda: '504' in logs.statuses()[before:], what='an answer that nginx has given')
    logs.check(before + len(PATHS))


def test_502_when_there_is_no_server(logs):
    before = len(logs.statuses())
    logs.stack.step('stampd', 'stop', 'now')
    try:
        for method, path in ROADS:
            send(logs, method, path)
        assert '502' in logs.statuses()[before:] or '503' in logs.statuses()[before:]
        logs.check(before + len(ROADS))
    finally:
        logs.stack.step('stampd', 'start')

"""thin_session.py sends what requests would send, and reads what it would read."""
import gzip
import socket
import threading

import pytest
import requests

from stack import free_port
from thin_session import NotPlain, ThinSession

pytestmark = pytest.mark.plain

ORIGIN = 'https://127.0.0.1:1'
PLAIN = [
    ('GET', '/ping', {}), ('HEAD', '/lab/doc/a/b', {}), ('DELETE', '/lab/doc/a/b', {}), ('POST', '/lab/op/put', {}), ('OPTIONS', "/a(b)!$&'*+,;=:@~?q=1&r", {}),
    ('POST', '/lab/op/put', {'json': {'a': [1, None, 'é']}}), ('GET', '/lab/op/get', {'json': []}), ('POST', '/', {'json': 0, 'headers': {'content-type': 'text/plain'}}),
    ('PUT', '/f', {'data': b'\x00\xff'}), ('PUT', '/f', {'data': 'text'}), ('PUT', '/f', {'data': b''}), ('POST', '/f', {'data': {'a': 'x y', 'b': ['1', '2'], 'c': None}}),
    ('GET', '/l', {'params': {'def': ['A/b', 'ü'], 'n': 1, 'none': None}}), ('GET', '/l?a=1', {'params': {'b': '~ +%'}}), ('GET', '/l', {'params': {}}),
    ('GET', '/l', {'headers': {'Accept': 'text/csv', 'user-agent': 'me', 'X-Empty': ''}}), ('GET', '/l', {'headers': {'Host': 'example.org', 'Range': 'bytes=0-1'}})]
NOT_PLAIN = [
    ('GET', '', {}), ('GET', '/a/../b', {}), ('GET', '/%41', {}), ('GET', '/é', {}), ('GET', '/a#b', {}), ('GET', '/a b', {}), ('GET', '/l', {'params': 'a=b'}),
    ('PUT', '/f', {'data': 'é'}), ('PUT', '/f', {'data': iter([b'a'])}), ('PUT', '/f', {'data': b'x' * 100000}), ('POST', '/f', {'json': {'a': float('nan')}}),
    ('GET', '/l', {'headers': {'X': 'a\r\nb: c'}}), ('GET', '/l', {'headers': {'X': ' a'}}), ('GET', '/l', {'headers': {'X': None}}),
    ('GET', '/l', {'headers': {'Content-Length': '5'}}), ('GET', '/l', {'headers': {'X': '1', 'x': '2'}})]


def message(method, path, more):
    return ThinSession(ORIGIN).message(method, ORIGIN + path, *(more.get(name) for name in ('params', 'data', 'headers', 'json')))


@pytest.mark.parametrize(('method', 'path', 'more'), PLAIN)
def test_a_request_is_sent_as_by_requests(method, path, more):
    wanted = requests.Session().prepare_request(requests.Request(method, ORIGIN + path, **more))
    _, url, sent = message(method, path, more)
    head, _, body = sent.partition(b'\r\n\r\n')
    line, *fields = head.decode().split('\r\n')
    fields = {name.lower(): value for name, value in (field.split(': ', 1) for field in fields)}
    assert line == f'{method} {wanted.path_url} HTTP/1.1' and url == wanted.url
    assert fields == {'host': '127.0.0.1:1', **{name.lower(): value for name, value in wanted.headers.items()}}
    assert body == (wanted.body.encode() if isinstance(wanted.body, str) else wanted.body or b'')


@pytest.mark.parametrize(('method', 'path', 'more'), NOT_PLAIN)
def test_what_is_special_is_left_to_requests(method, path, more):
    with pytest.raises(NotPlain):
        message(method, path, more)
    with pytest.raises(NotPlain):
        ThinSession('https://127.0.0.1:2').message(method, ORIGIN + '/ping', None, None, None, None)


@pytest.fixture
def server():
    """Answers each request with the bytes in `answers`, which it takes from the front, then closes the connection if it is said."""
    listener = socket.create_server(('127.0.0.1', free_port()))
    origin, answers = f'http://127.0.0.1:{listener.getsockname()[1]}', []

    def serve(connection):
        with connection, connection.makefile('rb') as lines:
            while lines.readline():
                while lines.readline().strip():
                    pass
                answer, is_last = answers.pop(0)
                connection.sendall(answer)
                if is_last:
                    return

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    thin, thick = ThinSession(origin), requests.Session()
    thin.verify, thin.trust_env, thick.trust_env = 'unused', False, False

    def ask(answer, method='GET', is_last=False):
        """By both; each outcome is an answer or an exception."""
        outcomes = []
        for session in (thin, thick):
            answers.append((answer, is_last))
            try:
                outcomes.append(session.request(method, f'{origin}/x', timeout=60))
            except requests.RequestException as error:
                outcomes.append(error)
        return outcomes

    yield ask
    thin.close()
    thick.close()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


ZIPPED = gzip.compress(b'{"a":"\xc3\xa9"}')
JSON = b'Content-Type: application/json\r\n'
ANSWERS = [
    (b'HTTP/1.1 200 OK\r\n' + JSON + b'Content-Length: 9\r\n\r\n{"a":"b"}', 'GET', False), (b'HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n', 'GET', False),
    (b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n', 'HEAD', False), (b'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: "1"\r\n\r\n', 'GET', False),
    (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n', 'GET', False),
    (b'HTTP/1.1 200 OK\r\n' + JSON + b'Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n' % len(ZIPPED) + ZIPPED, 'GET', False),
    (b'HTTP/1.1 200 OK\r\nVary: a\r\nVARY:b\r\nContent-Length: 0\r\n\r\n', 'GET', False), (b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx', 'GET', False),
    (b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n\xe9 to the end', 'GET', True), (b'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx', 'GET', True),
    (b'HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/; HttpOnly\r\nSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n', 'GET', False)]


@pytest.mark.parametrize(('answer', 'method', 'is_last'), ANSWERS)
def test_an_answer_is_read_as_by_requests(server, answer, method, is_last):
    for _ in range(2):  # the second by the same connection, where it is kept
        thin, thick = server(answer, method, is_last)
        for name in ('status_code', 'reason', 'headers', 'content', 'text', 'url', 'ok', 'history', 'encoding'):
            if name != 'text' or thick.encoding:
                assert getattr(thin, name) == getattr(thick, name), name
        assert dict(thin.cookies) == dict(thick.cookies)
        assert list(thin.iter_lines()) == list(thick.iter_lines())


def test_a_connection_that_ends_is_the_error_of_requests(server):
    thin, thick = server(b'', is_last=True)
    assert type(thin) is type(thick) is requests.ConnectionError and 'RemoteDisconnected' in str(thin) and 'RemoteDisconnected' in str(thick)
    thin, _ = server(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc', is_last=True)
    assert isinstance(thin, requests.RequestException)
    thin, thick = server(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab', is_last=True)
    assert type(thin) is type(thick) is requests.exceptions.ChunkedEncodingError
    assert server(ANSWERS[0][0])[0].json() == {'a': 'b'}  # goes on by another


def test_nobody_listens():
    origin = f'http://127.0.0.1:{free_port()}'
    with ThinSession(origin) as session, pytest.raises(requests.ConnectionError):
        session.verify = 'unused'
        session.get(f'{origin}/x', timeout=60)

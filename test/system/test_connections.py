"""Connections without the whole header of a request, which no limit of nginx counts: what ends them, and that others are served meanwhile."""
import contextlib
import re
import socket
import ssl
import threading

import pytest

from door_client import Client
from stack import wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}}
PLACES, HALF = 200, b'GET /ping HTTP/1.1\r\nHost: local'


@pytest.fixture(scope='module')
def small(stack):
    """nginx with one process and few places."""
    path = stack.path / 'etc/nginx.conf'
    text = path.read_text()
    for pattern, value in ((r'worker_processes \w+', 'worker_processes 1'), (r'worker_connections \d+', f'worker_connections {PLACES}')):
        text, count = re.subn(pattern, value, text)
        assert count == 1
    path.write_text(text)
    stack.step('nginx', 'stop')
    stack.step('nginx', 'start')
    return stack


def opened(stack, count, with_tls):
    context = ssl.create_default_context(cafile=str(stack.path / 'etc/certificate.pem'))
    for _ in range(count):
        connection = socket.create_connection(('127.0.0.1', stack.port), timeout=60)
        yield context.wrap_socket(connection, server_hostname='localhost') if with_tls else connection


def has_ended(connection):
    """Nothing is ever answered, but for a notice that the connection is closed."""
    connection.settimeout(0)
    try:
        return connection.recv(100) == b''
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


@pytest.mark.parametrize('with_tls', [False, True])
def test_connections_that_send_nothing_make_room_for_others(small, with_tls):
    """They are twice as many as nginx has places: the oldest ones are closed when places are rare."""
    silent = []
    for connection in opened(small, PLACES * 2, with_tls):
        silent.append(connection)
        if len(silent) % 100 == 0:
            with Client(small, '127.0.0.7') as client:
                assert client.ask('GET', '/ping').status == 200
    for connection in silent:
        connection.close()


def test_a_header_is_awaited_for_a_while_only(small):
    """Also of those that send a byte now and then: the time is that of the whole header."""
    begun = list(opened(small, PLACES // 4, True))
    dribbling, is_over = begun[::2], threading.Event()
    for connection in begun:
        with contextlib.suppress(OSError):  # the time of the first may be over
            connection.sendall(HALF)

    def dribble():
        while not is_over.wait(0.2):
            for connection in dribbling:
                try:
                    connection.send(b'x')
                except OSError:
                    continue

    thread = threading.Thread(target=dribble)
    thread.start()
    try:
        with Client(small, '127.0.0.7') as client:
            assert client.ask('GET', '/ping').status == 200
        left = set(begun)

        def all_ended():
            left.difference_update({connection for connection in left if has_ended(connection)})
            return not left

        wait_until(all_ended, what='the end of connections without a header')
    finally:
        is_over.set()
        thread.join()
        for connection in begun:
            connection.close()

"""A client of RESP that knows every byte, and a Redis of Debian beside it."""
import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from journal_world import ALL, Journal
from stack import PATIENCE_S, ROOM


class Refused(str):
    """An error."""


class Redis:
    """`place`: the path of a Unix socket, or a Journal, whose TCP port is used."""

    def __init__(self, place, key=ALL, ns='lab', version=2):
        self.place = place
        if isinstance(place, Journal):
            self.socket = place.connect()
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE_S)
            self.socket.connect(str(place))
        self.data = b''
        if key:
            assert isinstance(self.ask('HELLO', version, 'AUTH', ns, key), (dict, list))

    def close(self):
        self.socket.close()

    def take(self, size):
        while len(self.data) < size:
            more = self.socket.recv(1 << 16)
            if not more:
                raise EOFError
            self.data += more
        found, self.data = self.data[:size], self.data[size:]
        return found

    def line(self):
        while b'\r\n' not in self.data:
            more = self.socket.recv(1 << 16)
            if not more:
                raise EOFError
            self.data += more
        found, _, self.data = self.data.partition(b'\r\n')
        return found

    def reply(self):
        line = self.line()
        mark, text = line[:1], line[1:].decode(errors='surrogateescape')
        if mark == b'+':
            return text
        if mark == b'-':
            return Refused(text)
        if mark == b':':
            return int(text)
        if mark == b'_' or text == '-1':
            return None
        if mark == b'$':
            return self.take(int(text) + 2)[:-2]
        if mark == b'%':
            return {self.reply(): self.reply() for _ in range(int(text))}
        assert mark in (b'*', b'>'), line
        return [self.reply() for _ in range(int(text))]

    def send(self, *words):
        self.socket.sendall(request(*words))

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    def ended(self):
        """The connection has ended, without more replies."""
        with contextlib.suppress(ConnectionResetError):
            return self.socket.recv(1) == b''
        return True


def request(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(word), word) for word in words)


@contextlib.contextmanager
def redis_server():
    """The path of the socket of a Redis that keeps nothing; skips the test without one."""
    program = shutil.which('redis-server')
    if not program:
        pytest.skip('there is no redis-server (Debian: redis-server)')
    folder = Path(tempfile.mkdtemp(prefix='stampd-redis-', dir=ROOM))
    process = subprocess.Popen([program, '--port', '0', '--unixsocket', folder / 'socket', '--dir', folder, '--save', '', '--appendonly', 'no',
                                '--notify-keyspace-events', 'KEA'], stdout=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            Redis(folder / 'socket', key=None).close()
            break
        except OSError:
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.02)
    yield folder / 'socket'
    process.terminate()
    process.wait(PATIENCE_S)
    shutil.rmtree(folder, ignore_errors=True)

"""A stamp-journal beside a stack, and a client of it that knows every byte."""
import contextlib
import hashlib
import os
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from stack import BUILD, PATIENCE_S, ROOM, free_port, wait_until

STACK = {'workers': 2, 'settings': {'records_mb': 4, 'limit_namespace_records_mb': 1, 'limit_content_bytes': 100000}}

NOP, QUIT, SET, GET, DELETE, ADD, NOT, TRUNCATE, LOCK, UNLOCK, RENAME, PING, AUTH, NEXT, KEEP, DONE_, FAIL = *range(11), *range(64, 70)
TIMEOUT, UPDATE, OVERWRITE, WORKED_ON, RANGE, PATTERN, CURSOR, PERSIST, DATA, LISTEN = 8, 16, 32, 64, 1 << 7, 2 << 7, 3 << 7, 1 << 9, 1 << 10, 1 << 11
ONLY_PRESENT, IF_STAMP, STAMP = 1 << 13, 1 << 14, 1 << 15
VOID, BUFFER, STRING, INTEGER, FLOAT, BOOLEAN = range(6)
ALL, SOME = 'key-of-all', 'key-of-some'


def message(function, key=b'', value=None, flags=0, other=None, identifier=1, timestamp=0, timeout=None, count=None, stamp=None):
    """The bytes as the specification has them, with keys of 16 bits and values of 32."""
    key = key.encode() if isinstance(key, str) else key
    flags |= 1 | (6 if value is not None else 0) | (TIMEOUT if timeout is not None else 0) | (IF_STAMP if stamp is not None else 0)
    text = b'FJ' + struct.pack('>HHHHQ', 1, function, identifier, flags, timestamp)
    if timeout is not None:
        text += struct.pack('>Q', timeout)
    if stamp is not None:
        text += struct.pack('>Q', stamp)
    if flags & CURSOR:
        text += struct.pack('>H', count or 0)
    text += struct.pack('>H', len(key)) + key
    if other is not None:
        text += struct.pack('>H', len(other)) + other.encode()
    if value is not None:
        text += struct.pack('>IB', len(value[1]) + 1, value[0]) + value[1]
    return text


class Client:
    """`path`: of the Unix socket, or a Journal, whose TCP port is used."""

    def __init__(self, path, key=ALL, ns='lab', **more):
        if isinstance(path, Journal):
            self.socket = path.connect(**more)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE_S)
            self.socket.connect(str(path))
        self.data = b''
        if key:
            assert self.ask(AUTH, ns, (STRING, key.encode()))['error'] == ''

    def take(self, size):
        while len(self.data) < size:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self.data += more
        found, self.data = self.data[:size], self.data[size:]
        return found

    def number(self, size):
        return int.from_bytes(self.take(size), 'big')

    def text(self):
        return self.take(self.number(2))

    def answer(self):
        assert self.take(4) == b'JR\0\1'
        found = {'id': self.number(2)}
        flags, found['timestamp'] = self.number(2), self.number(8)
        found['timeout'] = self.number(8) if flags & TIMEOUT else None
        count = self.number(2) if flags & CURSOR else bool(flags & DATA)
        found['notice'] = bool(flags & LISTEN)
        found['error'] = self.text().decode()
        found['stamp'] = self.number(8) if flags & STAMP else None
        found['records'] = []
        for _ in range(count):
            key, size = self.text().decode(), self.number(4)
            found['records'].append((key, self.number(1), self.take(size - 1)))
        found['cursor'] = self.text() if flags & 1 << 14 else None
        found['locked'], found['worked'] = bool(flags & 1 << 13), bool(flags & WORKED_ON)
        return found

    def ask(self, *words, **more):
        self.socket.sendall(message(*words, **more))
        return self.answer()

    def error(self, *words, **more):
        return self.ask(*words, **more)['error']

    def value(self, key):
        return [record[2] for record in self.ask(GET, key, flags=DATA)['records']]


class Journal:
    """stamp-journal beside a stampd, with its settings."""

    def __init__(self, stack):
        self.stack = stack
        self.path = Path(tempfile.mkdtemp(prefix='stampd-journal-', dir=ROOM))
        os.chmod(self.path, 0o755)
        run = Path(next(line.partition('=')[2].strip() for line in stack.config.read_text().splitlines() if line.startswith('run_directory')))
        self.socket, self.second, self.keys, self.log = run / 'journal.sock', run / 'second.sock', self.path / 'keys', self.path / 'log'
        self.write_keys(('lab', 'write', ALL), ('demo', 'write', ALL), ('nowhere', 'write', ALL), ('lab', 'read', SOME, 'open.'), ('lab', 'write', SOME, 'mine.'))

        self.port, self.certificate, self.config = free_port(), stack.path / 'etc/certificate.pem', self.path / 'journal.conf'
        self.config.write_text(stack.config.read_text() + f'journal_listen = 127.0.0.1:{self.port}\njournal_client_connections = 18\n'
                               f'journal_certificate_file = {self.certificate}\njournal_certificate_key_file = {stack.path}/etc/certificate.key\n')

    def connect(self, shakes=True, port=None, **more):
        """A socket to the TCP port; without `shakes` no byte of a handshake has been sent."""
        plain = socket.create_connection(('127.0.0.1', port or self.port), PATIENCE_S)
        if not shakes:
            return plain
        context = ssl.create_default_context(cafile=str(self.certificate))
        if more:
            context.set_ciphers('DEFAULT@SECLEVEL=0')  # or it would refuse old versions by itself
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', DeprecationWarning)
            for name, value in more.items():
                setattr(context, name, value)
        return context.wrap_socket(plain, server_hostname='localhost')

    def write_keys(self, *lines):
        self.keys.write_text('# keys\n' + ''.join(f'{ns} {right} {hashlib.sha256(key.encode()).hexdigest()} {" ".join(prefix)}\n' for ns, right, key, *prefix in lines))

    def start(self):
        with open(self.log, 'a') as log:
            process = subprocess.Popen([BUILD / 'src/stamp-journal', '-c', self.config, '-k', self.keys], stderr=log)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and process.poll() is None:
            try:
                Client(self.socket, key=None).socket.close()
                return process
            except OSError:
                time.sleep(0.02)
        raise AssertionError(self.log.read_text())

    def begin_second(self, config=None):
        """Another daemon on the same memory, and a client of it."""
        process = subprocess.Popen([BUILD / 'src/stamp-journal', '-c', config or self.stack.config, '-k', self.keys, '-s', self.second], stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                return process, Client(self.second)
            except OSError:
                time.sleep(0.01)
        raise AssertionError('it does not start')


@contextlib.contextmanager
def beside(stack):
    journal = Journal(stack)
    journal.process = journal.start()
    first = Client(journal.socket)
    wait_until(lambda: first.error(GET, 'a') != 'STATE')  # until the relay of this stampd has read the states
    first.socket.close()
    yield journal
    journal.process.terminate()
    assert journal.process.wait(PATIENCE_S) == 0, journal.log.read_text()
    shutil.rmtree(journal.path, ignore_errors=True)


@pytest.fixture(scope='module')
def journal(stack):
    with beside(stack) as journal:
        yield journal


@pytest.fixture
def client(journal):
    client = Client(journal.socket)
    yield client
    client.socket.close()


def text(value):
    return (STRING, value.encode())


def integer(value):
    return (INTEGER, struct.pack('>q', value))


ON, READONLY, OFF, GONE = range(4)


def set_conf(stack, ns='lab', **members):
    stack.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)


@pytest.fixture
def back_on(journal):
    yield journal.stack
    set_conf(journal.stack, 'z', state=ON, message=None, quotas=None)
    set_conf(journal.stack, state=ON, message=None, quotas=None)

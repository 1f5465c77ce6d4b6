"""A relay in front of PostgreSQL's socket that cuts the session of a worker at a named statement: before the server gets it, or after
the server has committed it and before the worker has the answer."""
import contextlib
import os
import socket
import struct
import threading

from stack import PATIENCE_S

BEFORE, AFTER = 'before', 'after'
LENGTH = struct.Struct('!i')


def messages(connection, has_type=True):
    """(type, whole message) of the protocol, until the end."""
    rest = b''
    while True:
        head = 1 if has_type else 0
        if len(rest) >= head + 4:
            size = head + LENGTH.unpack_from(rest, head)[0]
            if len(rest) >= size:
                yield (rest[:1] if has_type else b''), rest[:size]
                rest, has_type = rest[size:], True
                continue
        try:
            piece = connection.recv(65536)
        except OSError:
            return
        if not piece:
            return
        rest += piece


class Session:
    """One connection; ends with either side."""

    def __init__(self, cutter, client):
        self.cutter, self.client = cutter, client
        self.server = socket.socket(socket.AF_UNIX)
        self.server.connect(cutter.real)
        self.is_cut = False
        for run in (self.forward, self.answer):
            threading.Thread(target=run, daemon=True).start()

    def end(self):
        for side in (self.client, self.server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def forward(self):
        """A statement is named by the message that binds its parameters.  What the worker sends together is forwarded together,
        at the Sync that ends it, so that a cut before it leaves nothing of it with the server."""
        held = b''
        for kind, message in messages(self.client, has_type=False):
            held += message
            if kind == b'B' and self.cutter.strikes(message[5:].split(b'\0', 2)[1].decode()):
                if self.cutter.when == BEFORE:
                    break
                self.is_cut = True
            if kind in (b'', b'S', b'Q', b'X', b'p', b'd', b'c', b'f', b'H'):
                try:
                    self.server.sendall(held)
                except OSError:
                    break
                held = b''
        self.end()

    def answer(self):
        for kind, message in messages(self.server):
            if self.is_cut:
                if kind == b'Z':  # it is committed, or refused, and the server waits for more
                    break
                continue
            try:
                self.client.sendall(message)
            except OSError:
                break
        self.end()
        for side in (self.client, self.server):
            side.close()


class Cutter:
    """Takes the place of the socket of a running Stack, until it is left."""

    def __init__(self, stack):
        self.path = str(stack.database / '.s.PGSQL.5432')
        self.real = f'{self.path}.real'
        self.lock = threading.Lock()
        self.name, self.when, self.left, self.cuts = None, None, 0, 0

    def __enter__(self):
        """At no moment is there no socket."""
        own = f'{self.path}.own'
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(own)
        os.chmod(own, 0o777)
        self.listener.listen(100)
        threading.Thread(target=self.accept, daemon=True).start()
        os.link(self.path, self.real)
        os.rename(own, self.path)
        return self

    def __exit__(self, *_):
        self.arm(None, None)
        os.rename(self.real, self.path)
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.settimeout(None)
            Session(self, client)

    def arm(self, name, when, times=1):
        """The next executions of the statement are cut."""
        with self.lock:
            self.name, self.when, self.left, self.cuts = name, when, times, 0

    def strikes(self, name):
        with self.lock:
            if name != self.name or self.left == 0:
                return False
            self.left -= 1
            self.cuts += 1
            return True

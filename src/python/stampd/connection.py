"""Connections to one server: kept open, for any number of threads, each wait and each size bounded."""
from __future__ import annotations

import http.client
import selectors
import socket
import ssl
import threading
import time
import zlib
from typing import Dict, List, NamedTuple, Optional
from urllib.parse import urlsplit

from .fault import Fault

IDLE_MOST = 8  # connections that are kept without a request
PIECE = 65536  # bytes that are read at once
FAILURES = (OSError, http.client.HTTPException, ValueError)  # of a connection; but
UNTRUSTED = ssl.SSLCertVerificationError  # is raised as it is: no patience helps


class Answer(NamedTuple):
    """Of the server, or of something in its place."""
    status: int
    headers: http.client.HTTPMessage
    body: bytes


def lost(problem: object, was_sent: bool = True) -> Fault:
    """No answer, or none that can be used."""
    return problem if isinstance(problem, Fault) else Fault('NETWORK', f'no answer: {problem or type(problem).__name__}', was_sent=was_sent)


class Connections:
    """`address` is that of a namespace: https://host:port/code."""

    def __init__(self, address: str, context: Optional[ssl.SSLContext], answer_bytes: int) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ('http', 'https') or not parts.hostname:
            raise ValueError(f'{address}: the address of a namespace is expected, as https://host/code')
        self.host, self.port, self.root = parts.hostname, parts.port, parts.path.rstrip('/')
        self.context = (context or ssl.create_default_context()) if parts.scheme == 'https' else None
        self.answer_bytes = answer_bytes
        self._idle: List[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def close(self) -> None:
        """Closes those that are idle; the client may be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def open(self, timeout_s: float) -> http.client.HTTPConnection:
        """A connection of its own, not connected yet; each of its waits is as long at most."""
        if self.context:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=self.context)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)

    def exchange(self, path: str, body: bytes, headers: Dict[str, str], timeout_s: float) -> Answer:
        """Sends a POST and returns its answer, unpacked, within the time.  Fault NETWORK: none came, or it was larger than `answer_bytes`."""
        end = time.monotonic() + timeout_s
        connection = self._take(timeout_s)
        was_sent = False
        try:
            if connection.sock:
                connection.sock.settimeout(timeout_s)
            else:
                connection.connect()
            was_sent = True
            connection.request('POST', self.root + path, body, headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, self._read(connection, response, end))
        except BaseException as problem:
            connection.close()
            if isinstance(problem, FAILURES) and not isinstance(problem, UNTRUSTED):
                raise lost(problem, was_sent) from None
            raise
        self._give_back(connection)
        return answer

    def _read(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, end: float) -> bytes:
        unpack = zlib.decompressobj(31) if response.headers.get('Content-Encoding') == 'gzip' else None
        left, pieces, size = response.length, [], 0  # read1 of Python 3.12 and before does not count what is left
        while left != 0:
            patience_s = end - time.monotonic()
            if patience_s <= 0:
                raise socket.timeout('the answer takes too long')
            if connection.sock:  # none: the answer is the last of its connection
                connection.sock.settimeout(patience_s)
            packed = response.read1(PIECE if left is None else min(PIECE, left))
            if not packed:
                break
            left = None if left is None else left - len(packed)
            pieces.append(unpack.decompress(packed, self.answer_bytes - size + 1) if unpack else packed)
            size += len(pieces[-1])
            if size > self.answer_bytes:
                raise ValueError(f'the answer has more than {self.answer_bytes} bytes')
        if left or unpack and not unpack.eof:
            raise ValueError('the answer is cut')
        response.close()
        return b''.join(pieces)

    def _take(self, timeout_s: float) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self.open(timeout_s)
            if connection.sock is not None and not _is_readable(connection.sock):
                return connection
            connection.close()  # by the server already

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < IDLE_MOST and connection.sock is not None:
                self._idle.append(connection)
                return
        connection.close()


def _is_readable(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))

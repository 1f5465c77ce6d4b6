"""Live events: which documents, classes, collections and records have changed; a stream that comes back after each interruption."""
from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple
from urllib.parse import quote

from .client import Client, fault_of
from .connection import FAILURES, UNTRUSTED, Answer, lost
from .copies import Copy
from .fault import JSON, Fault, pause_of

SILENCE_S = 60.0  # the server writes every 15 seconds (live_keepalive_s)
PAUSES_S = 0.5, 60.0  # the shortest and the longest one between two connections
PROBLEM_BYTES = 65536  # of a refusal


class Event(NamedTuple):
    """Something has changed."""
    is_all: bool  # anything may have changed: read everything
    changed: List[Tuple[str, int]]  # definitions, and the versions of their changes; 0: not known


def definition_of(c: str, id: str) -> str:
    """The definition of one document."""
    return f"{c}/{quote(id, safe='')}"


class Live:
    """The events of some definitions, as doc/reference/live.md describes them: iterate over it.  The first event says that all is to be read; between
    two connections nothing is missed.  A loss of the network, and refusals that end by themselves, are waited for with growing pauses, `silence_s` at
    most in a stream; the iteration raises Fault if the server refuses for good, and ends after `close`, which any thread may call.

        with Live(client, 'Note', 'Person/ann') as live:
            for event in live: …
    """

    def __init__(self, client: Client, *definitions: str, silence_s: float = SILENCE_S) -> None:
        self.client, self.definitions, self.silence_s = client, definitions, silence_s
        self.last = ''  # where to resume
        self._is_closed = threading.Event()
        self._sock: Optional[socket.socket] = None
        self._retry_s = 0.0

    def close(self) -> None:
        self._is_closed.set()
        if self._sock:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._sock, socket.SHUT_RDWR)  # not that of an SSLSocket, which another thread may be reading

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        failures, is_renewed = 0, False
        while not self._is_closed.is_set():
            bearer, begun = self.client.bearer(), time.monotonic()
            try:
                yield from self._connection(bearer)
                fault = lost('the stream has ended')
            except UNTRUSTED:
                raise
            except FAILURES as problem:
                fault = lost(problem)
            except Fault as problem:
                fault = problem
            if self._is_closed.is_set():
                return
            is_renewed = not is_renewed and fault.code == 'SKEY' and self.client.bearer(bearer) != bearer
            if fault.code == 'AARG' and self.last:
                self.last = ''  # it is of before a restore, or of another caller
                continue
            if fault.kind != 'again' and not is_renewed:
                raise fault
            failures = 0 if time.monotonic() - begun > PAUSES_S[1] else failures + 1
            self.pause(failures, fault)

    def pause(self, failures: int, fault: Fault) -> bool:
        """Waits as long as it makes sense after so many failures; true: it was closed meanwhile."""
        return self._is_closed.wait(pause_of(failures, *PAUSES_S, fault.retry_after_s))

    def _connection(self, bearer: Optional[str]) -> Iterator[Event]:
        body = json.dumps({'defs': self.definitions, **({'last': self.last} if self.last else {})}).encode()
        connection = self.client.connections.open(self.silence_s)
        try:
            connection.connect()
            self._sock = connection.sock
            if self._is_closed.is_set():  # it may have seen no socket to end
                return
            headers = {**self.client.headers(bearer), 'Accept': 'text/event-stream', 'Cache-Control': 'no-store'}
            connection.request('POST', f'{self.client.connections.root}/live', body, headers)
            response = connection.getresponse()
            if response.status != 200:
                raise fault_of(Answer(response.status, response.headers, response.read(PROBLEM_BYTES)))
            for event in events_of(response, self.client.connections.answer_bytes):
                yield from self._take(event)
        finally:
            self._sock = None
            connection.close()

    def _take(self, event: Dict[str, str]) -> Iterator[Event]:
        data: JSON = json.loads(event.get('data') or '{}')
        kind = event.get('event')
        if 'retry' in event:
            self._retry_s = int(event['retry']) / 1000
        if kind == 'closed':
            raise Fault(data['code'], data.get('detail', ''), status=401 if data['code'] == 'SKEY' else 0, retry_after_s=self._retry_s)
        if kind == 'reset' or kind == 'ready' and not data['resumed']:
            yield Event(True, [])
        elif kind in ('change', 'find'):
            yield Event(False, [(one, version) for one, version in (data['changed'] if kind == 'change' else [(self.definitions[data['def']], 0)])])
        self.last = event.get('id', self.last)  # now that it was taken


def events_of(stream: Any, most: int) -> Iterator[Dict[str, str]]:
    """The events of a stream of bytes, by the names of their fields; ValueError: one has more than so many bytes."""
    event: Dict[str, str] = {}
    size = 0
    while line := stream.readline(most + 1):
        size += len(line)
        if size > most:
            raise ValueError('an event is too long')
        text = line.decode().rstrip('\r\n')
        if not text:
            yield event
            event, size = {}, 0
        elif not text.startswith(':'):
            name, _, value = text.partition(':')
            event[name] = event.get(name, '') * (name == 'data') + value.removeprefix(' ')


def follow(client: Client, *copies: Copy, live: Optional[Live] = None) -> Iterator[List[Copy]]:
    """Keeps copies up to date: yields at first, and after each change, those that have changed.  It waits for the server as Live does, raises what
    the server refuses for good, and ends when `live` is closed."""
    of_definition = {definition_of(copy.c, copy.id): copy for copy in copies}
    with live or Live(client, *of_definition) as events:
        for event in events:
            named = copies if event.is_all else [of_definition[definition] for definition, _ in event.changed if definition in of_definition]
            changed = _sync_patiently(client, named, events)
            if changed or event.is_all:
                yield changed


def _sync_patiently(client: Client, copies: Sequence[Copy], live: Live) -> List[Copy]:
    failures = 0
    while True:
        try:
            return client.sync(*copies)
        except Fault as fault:
            failures += 1
            if fault.kind != 'again':
                raise
            if live.pause(failures, fault):
                return []

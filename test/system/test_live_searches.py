"""Live events for a thousand listeners that follow searches by collections: what each costs, and that a change reaches those whose results it may change."""
import json
import re
import selectors
import socket
from pathlib import Path

import pytest

from schema import Schemas
from stack import PATIENCE_S, wait_until
from test_live import live_pid

pytestmark = pytest.mark.plain

LISTENERS, ROOMS = 1000, 4
MEMORY_MOST = 64 * 1024  # of the process for live events, for a connection; 10 KB are measured
STACK = {'workers': 2, 'settings': {'limit_client_live': LISTENERS + 10, 'live_keepalive_s': 600, 'limit_client_connections': 0}}
POST = {'items': {'Main': {'singleton': True, 'fields': {'room': 'string', 'at': 'long'}, 'indexes': [['room', '-at']]}},
        'collections': {'byRoom': {'key': ['Main.room'], 'mutable': True}}}


class Crowd:
    """Connections at the own socket of the process for live events, as nginx makes them, all read by one loop."""

    def __init__(self, stack, definitions):
        self.texts, self.selector = [bytearray() for _ in definitions], selectors.DefaultSelector()
        for number, definition in enumerate(definitions):
            body = json.dumps({'defs': [definition]})
            link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            link.settimeout(PATIENCE_S)
            link.connect(str(stack.path / 'run/stampd/live.sock'))
            link.sendall(f'POST /lab/live HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Stampd-Ns: lab\r\nX-Stampd-Database: stampd_lab\r\n'
                         f'X-Stampd-Client: 192.0.2.1\r\nContent-Length: {len(body)}\r\n\r\n{body}'.encode())
            while b'event: ready' not in self.texts[number]:
                got = link.recv(4096)
                assert got, bytes(self.texts[number])
                self.texts[number] += got
            link.setblocking(False)
            self.selector.register(link, selectors.EVENT_READ, number)

    def read(self):
        for key, _ in self.selector.select(0):
            got = key.fileobj.recv(65536)
            assert got, f'listener {key.data} was cut off'
            self.texts[key.data] += got

    def changes(self):
        """(definition, version) of the events of each listener; one may come twice."""
        self.read()
        return [{tuple(one) for data in re.findall(rb'event: change\r?\ndata: (.*?)\r?\n', bytes(text)) for one in json.loads(data)['changed']} for text in self.texts]

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()


def resident(pid):
    return 1024 * int(re.search(r'VmRSS:\s+(\d+)', Path(f'/proc/{pid}/status').read_text()).group(1))


def test_a_thousand_listeners_of_searches(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Post': POST})
    pid, definitions = live_pid(stack), [f'Post/byRoom@r{number % ROOMS}' for number in range(LISTENERS)]
    before = resident(pid)
    crowd = Crowd(stack, definitions)
    try:
        assert resident(pid) - before < LISTENERS * MEMORY_MOST
        assert stack.metrics()['stampd_live_listeners'] == LISTENERS
        versions = {f'Post/byRoom@r{room}': stack.put('lab', {'c': 'Post', 'id': f'p{room}', 'items': [{'c': 'Main', 'j': {'room': f'r{room}', 'at': 1}}]}) for room in range(ROOMS)}
        wait_until(lambda: all(crowd.changes()), PATIENCE_S, 'an event of each listener')
        for definition, changes in zip(definitions, crowd.changes()):
            assert changes == {(definition, versions[definition])}, 'its own room'
        moved = stack.put('lab', {'c': 'Post', 'id': 'p0', 'items': [{'c': 'Main', 'j': {'room': 'r1', 'at': 2}}]})
        last = stack.put('lab', *({'c': 'Post', 'id': f'q{room}', 'items': [{'c': 'Main', 'j': {'room': f'r{room}', 'at': 3}}]} for room in range(ROOMS)))
        wait_until(lambda: all((definition, last) in changes for definition, changes in zip(definitions, crowd.changes())), PATIENCE_S, 'the last event')
        for definition, changes in zip(definitions, crowd.changes()):
            is_moved = definition.endswith(('r0', 'r1'))
            assert ((definition, moved) in changes) <= is_moved, 'what left or entered is an event of these two rooms'
            assert changes - {(definition, moved)} == {(definition, versions[definition]), (definition, last)}
    finally:
        crowd.close()

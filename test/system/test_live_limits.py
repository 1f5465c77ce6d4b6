"""Live events: what one client or one namespace takes is bounded, so that others are let in (issue: 302 connections of one address
had locked all namespaces out)."""
import json
import socket

import pytest

from listener import Listener
from stack import Problem, wait_until
from test_live import put

pytestmark = pytest.mark.plain

CLIENT, NAMESPACE, ALL, MEMORY_MB = 8, 16, 40, 8
STACK = {'workers': 2, 'settings': {
    'live_keepalive_s': 1, 'limit_client_live': CLIENT, 'limit_namespace_live': NAMESPACE, 'live_connections': ALL,
    'live_memory_mb': MEMORY_MB, 'exempt_clients': '', 'limit_client_connections': 0}}


class Client:
    """Connections at the process's own socket, from whatever address nginx would say they come."""

    def __init__(self, stack):
        self.stack, self.open = stack, []

    def ask(self, ns, address, definitions=('A',), key=None):
        """The code of the refusal with its arguments; None: it listens."""
        body = json.dumps({'defs': list(definitions), **({'admin': key} if key else {})})
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(60)
        link.connect(str(self.stack.path / 'run/stampd/live.sock'))
        link.sendall(f'POST /{ns}/live HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Stampd-Ns: {ns}\r\n'
                     f'X-Stampd-Database: stampd_{ns}\r\nX-Stampd-Client: {address}\r\nContent-Length: {len(body)}\r\n\r\n{body}'.encode())
        answer = b''
        while b'\r\n\r\n' not in answer:
            answer += link.recv(4096)
        head, _, rest = answer.partition(b'\r\n\r\n')
        if b' 200 ' in head.split(b'\r\n')[0]:
            self.open.append(link)
            return None
        size = next(int(line.split(b':')[1]) for line in head.split(b'\r\n') if line.lower().startswith(b'content-length'))
        while len(rest) < size:
            rest += link.recv(4096)
        link.close()
        problem = json.loads(rest)
        return problem['status'], problem['code'], *problem['args']

    def close(self):
        for link in self.open:
            link.close()
        self.open.clear()


@pytest.fixture
def client(stack):
    client = Client(stack)
    yield client
    client.close()
    wait_until(lambda: stack.metrics()['stampd_live_listeners'] == 0, what='the end of the connections')


BUSY_CLIENT = (429, 'XBUSY', 'limit_client_live', str(CLIENT))
BUSY_NAMESPACE = (429, 'XBUSY', 'limit_namespace_live', str(NAMESPACE))


def test_one_address_does_not_lock_others_out(stack, client):
    outcomes = [client.ask('lab', '198.51.100.1') for _ in range(100)]
    assert outcomes == [None] * CLIENT + [BUSY_CLIENT] * (100 - CLIENT)
    assert client.ask('demo', '198.51.100.1') == BUSY_CLIENT, 'namespaces make it no more'
    assert client.ask('lab', '198.51.100.2') is None
    listener = Listener(stack, 'Person/a')
    listener.opened()
    listener.wait_for('Person/a', put(stack, 'a', {'n': 1}))
    listener.close()
    assert client.ask('lab', '198.51.100.1', key=stack.key) is None, 'the administrator is let in'
    refusals = [count for name, count in stack.metrics().items() if name.startswith('stampd_live_refused_total')]
    assert refusals[0] >= 100 - CLIENT + 1


def test_addresses_of_version_6_count_by_their_network(stack, client):
    assert [client.ask('lab', f'2001:db8:1:2::{number:x}') for number in range(1, CLIENT + 3)] == [None] * CLIENT + [BUSY_CLIENT] * 2
    assert client.ask('lab', '2001:db8:1:3::1') is None


def test_one_namespace_leaves_room_for_others(stack, client):
    outcomes = [client.ask('lab', f'198.51.100.{number}') for number in range(NAMESPACE + 20)]
    assert outcomes == [None] * NAMESPACE + [BUSY_NAMESPACE] * 20
    assert client.ask('demo', '198.51.100.1') is None
    client.open.pop(0).close()
    wait_until(lambda: client.ask('lab', '198.51.100.99') is None, what='a place that has become free')


def test_definitions_of_one_client_leave_memory_for_others(stack, client):
    """A thousand of them with 250 letters are a megabyte; one address may have an eighth of the memory, a namespace half."""
    large = [f'A/{number:04}' + 'x' * 230 for number in range(400)]
    outcomes = [client.ask('lab', '198.51.100.1', large) for _ in range(CLIENT)]
    taken = outcomes.count(None)
    assert 1 <= taken <= 4 and set(outcomes[taken:]) == {(429, 'XBUSY', 'live_memory_mb', str(MEMORY_MB))}
    crowd = [client.ask('lab', f'198.51.100.{number}', large) for number in range(2, NAMESPACE + 2)]
    assert None in crowd and crowd[-1] == (429, 'XBUSY', 'live_memory_mb', str(MEMORY_MB))
    assert client.ask('demo', '198.51.100.50', large) is None


# check_room refuses the connection.
def test_what_is_for_all_names_its_limit(stack, client):
    outcomes = [client.ask(ns, f'198.51.100.{number}') for ns in ('lab', 'demo') for number in range(NAMESPACE)]
    assert outcomes == [None] * 2 * NAMESPACE
    crowd = [client.ask('lab', f'203.0.113.{number}', key=stack.key) for number in range(ALL)]
    assert crowd.count(None) == ALL - 2 * NAMESPACE and crowd[-1] == (503, 'XCROWDED', 'live_connections', str(ALL))


def test_a_browser_comes_again(stack, client):
    """An EventSource gives up for ever at another status than 200, so it is told by a stream that ends."""
    for _ in range(CLIENT):
        assert client.ask('lab', '127.0.0.1') is None
    with pytest.raises(Problem) as problem:
        Listener(stack, 'A')
    assert (problem.value.status, problem.value.code) == (429, 'XBUSY') and int(problem.value.response.headers['Retry-After']) > 0
    answer = stack.http.get(f'{stack.url}/lab/live?def=A', headers={'Accept': 'text/event-stream'}, timeout=60)
    assert answer.status_code == 200 and 'event: closed\ndata: {"code":"XBUSY"}' in answer.text

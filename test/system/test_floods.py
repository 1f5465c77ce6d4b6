"""Floods from one address, each beside an ordinary client: how much gets through is counted, and the ordinary client is never refused."""
import contextlib
import socket
import threading
from collections import Counter

import pytest

from attacker import ATTACKER, attack, beside
from door_client import Client
from manager import Manager
from push_key import CONTACT, PushKey
from push_service import Browser, PushService

pytestmark = pytest.mark.plain

SUBSCRIPTIONS, TASKS, CONNECTIONS, BODY = 12, 10, 6, 262144
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open', 'shut': 'closed'},
         'settings': {'limit_client_requests': 0, 'limit_client_connections': 0, 'limit_client_subscriptions': SUBSCRIPTIONS, 'limit_client_tasks': TASKS,
                      'limit_client_live': CONNECTIONS, 'limit_anonymous_body_bytes': BODY}}


@pytest.fixture(scope='module', autouse=True)
def key():
    with PushKey() as key:
        STACK['settings'].update(key.settings)
        yield key


def outcome(reply):
    return (reply.status, *((reply.code, *reply.args[:1]) if reply.code else ()))


def note(number, **more):
    return {'docs': [{'c': 'Flood', 'id': str(number), 'items': [{'c': 'Line', 'k': 'a', 'j': more.get('text', number)}]}]}


def test_subscriptions(stack):
    with beside(stack):
        outcomes = Counter(map(outcome, attack(stack, lambda client, number: client.op('lab', 'subs', {'defs': ['Usual']}, session=f'{number:032}'), 100)))
    assert outcomes == {(200,): SUBSCRIPTIONS, (429, 'XBUSY', 'limit_client_subscriptions'): 100 - SUBSCRIPTIONS}
    assert stack.psql('lab', 'select count(*) from subscription') == [(SUBSCRIPTIONS,)]


def test_tasks(stack):
    with beside(stack):
        outcomes = Counter(map(outcome, attack(stack, lambda client, number: client.op('lab', 'task', {'op': 'put', 'param': note(number)}), 100)))
    assert outcomes == {(200,): TASKS, (429, 'XBUSY', 'limit_client_tasks'): 100 - TASKS}
    assert stack.psql('lab', 'select count(*) from taskqueue') == [(TASKS,)]


def test_bodies_for_a_closed_namespace(stack):
    with beside(stack):
        small = Counter(map(outcome, attack(stack, lambda client, number: client.op('shut', 'put', note(number, text='x' * (BODY // 2))), 40)))
        large = Counter(map(outcome, attack(stack, lambda client, number: client.op('shut', 'put', note(number, text='x' * 4 * BODY)), 40)))
    for outcomes in (small, large):
        assert {found[:2] for found in outcomes} == {(401, 'SCLOSED')} and sum(outcomes.values()) == 40
    assert stack.psql('shut', 'select count(*) from doc') == [(0,)]


def test_live_connections(stack):
    answers = []
    with beside(stack), contextlib.ExitStack() as kept, Client(stack, ATTACKER) as client:
        for _ in range(60):
            connection = client.connect()
            kept.callback(connection.close)
            client.send(connection, 'GET', '/lab/live?def=Usual')  # a browser's EventSource gets the refusal as an event
            answers.append(connection.getresponse())
            kept.callback(answers[-1].close)
    assert Counter(answer.status for answer in answers) == {200: CONNECTIONS, 429: 60 - CONNECTIONS}


# --- push services that never answer ---

class Silent:
    """Takes connections, and says nothing on them."""

    def __init__(self):
        self.socket, self.taken = socket.create_server(('127.0.0.1', 0)), []
        self.url = f'http://127.0.0.1:{self.socket.getsockname()[1]}'
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self.socket.accept()[0])

    def close(self):
        self.socket.close()
        for connection in self.taken:
            connection.close()


def test_a_push_service_that_never_answers(stack, key):
    """A stranger's sessions, all at one silent service: a few attempts at it, and the others fail without waiting; messages of an ordinary
    session at another service are sent."""
    stack.psql('lab', 'delete from subscription_definition; delete from subscription; truncate taskqueue, task_history')
    service, silent, manager = PushService(CONTACT), Silent(), Manager(stack, 'lab')
    key.enable(stack, service)
    keys = Browser(service).subscription['keys']

    def subscribe(client, number):
        return client.op('lab', 'subs', {'defs': ['Usual'], 'push': {'endpoint': f'{silent.url}/{number}', 'keys': keys}}, session=f'silent{number:026}')
    try:
        ordinary = Browser(service)
        stack.op('lab', 'subs', {'defs': ['Usual'], 'push': ordinary.subscription}, session='ordinary-session-of-a-browser')
        with beside(stack) as usual:
            assert Counter(map(outcome, attack(stack, subscribe, SUBSCRIPTIONS))) == {(200,): SUBSCRIPTIONS}
            manager.work(threads=2, until=lambda: ordinary.messages and stack.psql(
                'lab', "select count(distinct taskid) from task_history where opname = 'push' and exc is not null")[0][0] >= SUBSCRIPTIONS)
        assert usual.refused == []
        assert not ordinary.wrong and ordinary.messages
        assert 1 <= len(silent.taken) < SUBSCRIPTIONS, 'after two failures a worker lets the service rest'
    finally:
        silent.close()
        service.close()

"""Limits of one client, held by nginx: whose address counts, what is refused, and that others are served meanwhile."""
import contextlib
import time

import pytest

from door_client import Client

pytestmark = pytest.mark.plain  # what nginx limits

STACK = {'workers': 2, 'settings': {'limit_client_connections': 5, 'limit_client_requests': 1, 'limit_client_burst': 20, 'trusted_proxies': '127.0.0.9'}}
MANY = 60


@pytest.fixture
def clients(stack):
    with contextlib.ExitStack() as all_:
        yield lambda number: all_.enter_context(Client(stack, f'127.0.0.{number}'))


def ask_often(client, **headers):
    """How many of MANY requests were answered, and how many more could have been by the time that passed."""
    begin = time.monotonic()
    answers = [client.ask('GET', '/ping', **headers) for _ in range(MANY)]
    for answer in answers:
        assert answer.status == 200 or (answer.status, answer.code, answer.args) == (429, 'XBUSY', ['limit_client_requests', '1'])
        assert ('retry-after' in answer.headers) == (answer.status == 429)
    return sum(answer.status == 200 for answer in answers), time.monotonic() - begin


def assert_rationed(client, **headers):
    passed, seconds = ask_often(client, **headers)
    assert 21 <= passed <= 22 + seconds, (passed, seconds)


def has_spent_all(client, **headers):
    """One request may pass each second, and the machine may be slow: then less is spent than was asked for, and more is asked for."""
    return any(client.ask('GET', '/ping', **headers).status == 429 for _ in range(10 * MANY))


def test_requests_of_one_address_are_rationed_and_others_served(clients):
    assert_rationed(clients(2))
    assert clients(3).ask('GET', '/ping').status == 200
    assert ask_often(clients(1))[0] == MANY, 'the stack exempts 127.0.0.1'


def test_connections_of_one_address_are_limited_and_others_served(stack, clients):
    client = clients(4)
    listening = []

    def listen():
        connection = client.connect()
        listening.append(connection)
        client.send(connection, 'GET', '/lab/live?def=Note')
        return connection.getresponse()

    try:
        assert [listen().status for _ in range(5)] == [200] * 5
        refused = client.ask('GET', '/ping')
        assert (refused.status, refused.code, refused.args) == (429, 'XBUSY', ['limit_client_connections', '5'])
        assert clients(5).ask('GET', '/ping').status == 200
    finally:
        for connection in listening:
            connection.close()


def test_a_trusted_proxy_passes_the_address_of_its_client(clients):
    proxy = clients(9)
    assert_rationed(proxy, X_Forwarded_For='198.51.100.1')
    assert proxy.ask('GET', '/ping', X_Forwarded_For='198.51.100.2').status == 200, 'another client behind it'
    assert has_spent_all(proxy, X_Forwarded_For='198.51.100.2, 198.51.100.1'), 'who stands last is whom the proxy has seen'


def test_an_address_of_version_6_counts_by_its_network(clients):
    proxy = clients(9)
    assert_rationed(proxy, X_Forwarded_For='2001:db8:1:2::1')
    assert has_spent_all(proxy, X_Forwarded_For='2001:db8:1:2:ffff::2')
    assert proxy.ask('GET', '/ping', X_Forwarded_For='2001:db8:1:3::1').status == 200


def test_nobody_else_can_choose_an_address(clients):
    assert_rationed(clients(6), X_Forwarded_For='198.51.100.66')
    assert has_spent_all(clients(6), X_Forwarded_For='198.51.100.67')


def test_the_server_knows_whether_it_is_told_of_clients(stack, clients):
    assert clients(7).ask('GET', '/lab/ping').status == 200
    assert 'STAMPD_CLIENT' not in stack.log()

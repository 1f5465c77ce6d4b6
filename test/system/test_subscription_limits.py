"""Subscriptions of strangers: one address does not fill the tables of a namespace, and a session that never returns is forgotten soon."""
import secrets

import pytest

from clock import Clock, in_one_minute
from push_service import Browser, PushService
from stack import Problem

pytestmark = pytest.mark.plain

CLOCK = Clock()
CLIENT, CLIENT_DEFS, DEFS, TRIAL, DAY = 10, 40, 60, 60, 24 * 60
STACK = {'workers': 2, 'settings': {
    **CLOCK.settings, 'limit_client_subscriptions': CLIENT, 'limit_client_definitions': CLIENT_DEFS,
    'limit_namespace_definitions': DEFS, 'limit_namespace_definitions_mb': 1, 'limit_definitions': 1000,
    'push_services': 'push.example *.push.example', 'subscription_trial_min': TRIAL, 'exempt_clients': '', 'trusted_proxies': '127.0.0.1'}}


@pytest.fixture(autouse=True)
def empty(stack):
    stack.psql('lab', 'truncate subscription, subscription_definition')


def new():
    return secrets.token_urlsafe(24)


def subs(stack, session, param=None, address='198.51.100.1', admin=None):
    """`out`; or the code and the arguments of the refusal."""
    body = {'session': session, **({'param': param} if param is not None else {})}
    answer = stack.request('POST', '/lab/op/subs', json=body, admin=admin, headers={'X-Forwarded-For': address})
    if answer.status_code == 200:
        return answer.json().get('out')
    return (answer.json()['code'], *answer.json()['args'])


def counted(stack):
    (held, defs, bytes_, *real), = stack.psql('lab', 'select c.held, c.defs, c.bytes, (select count(*) from subscription), (select count(*) from subscription_definition),'
                                              ' (select coalesce(sum(octet_length(key) + octet_length(def)), 0) from subscription_definition) from subscription_count c')
    assert [held, defs, bytes_] == real
    return held, defs


def test_one_address_does_not_fill_the_table(stack):
    outcomes = [subs(stack, new(), {'defs': ['Note']}) for _ in range(CLIENT + 20)]
    assert [isinstance(one, dict) for one in outcomes] == [True] * CLIENT + [False] * 20
    assert set(outcomes[CLIENT:]) == {('XBUSY', 'limit_client_subscriptions', str(CLIENT))}
    assert counted(stack) == (CLIENT, CLIENT)
    for address in ('198.51.100.2', '2001:db8:1:2::1'):
        assert subs(stack, new(), {'defs': ['Note']}, address)['defs'] == ['Note']
    assert subs(stack, new(), {'defs': ['Note']}, admin=True)['defs'] == ['Note'], 'administrators are not counted'
    assert all(client is None or abs(client) > 2**32 for client, in stack.psql('lab', 'select client from subscription')), 'no address is kept'


def test_definitions_of_one_address_and_of_all(stack):
    session, other = new(), new()
    assert len(subs(stack, session, {'defs': [f'A/{n}' for n in range(CLIENT_DEFS)]})['defs']) == CLIENT_DEFS
    assert subs(stack, other, {'defs': ['A']}) == ('XBUSY', 'limit_client_definitions', str(CLIENT_DEFS))
    assert subs(stack, session, {'life': 90}, '198.51.100.1')['until'], 'who adds nothing may go on'
    assert subs(stack, session, {'add': ['B']}) == ('XBUSY', 'limit_client_definitions', str(CLIENT_DEFS))
    assert subs(stack, other, {'defs': [f'A/{n}' for n in range(DEFS - CLIENT_DEFS)]}, '198.51.100.2')['defs']
    assert subs(stack, new(), {'defs': ['A']}, '198.51.100.3') == ('ALIMIT', 'limit_namespace_definitions', str(DEFS), str(DEFS + 1))
    assert counted(stack) == (2, DEFS)
    subs(stack, other, {'defs': []}, '198.51.100.2')
    assert subs(stack, new(), {'defs': ['A']}, '198.51.100.3')['defs'] == ['A']
    large = [f'A/{n:02}' + '%20' * 230 for n in range(19)]  # some 920 bytes with its key
    stack.psql('lab', 'update subscription_count set bytes = 1024 * 1024 - 15000')
    assert subs(stack, new(), {'defs': large}, '198.51.100.4')[:2] == ('ALIMIT', 'limit_namespace_definitions_mb')
    stack.psql('lab', 'truncate subscription, subscription_definition')
    assert counted(stack) == (0, 0)


def test_a_session_that_does_not_return_is_forgotten_soon(stack):
    def declare():
        session = new()
        subs(stack, session, {'defs': ['Note'], 'life': 30 * DAY})
        return session, subs(stack, session)

    lost, writer = new(), new()
    found, again = in_one_minute(declare)
    assert again['trial'] is True, 'in the same minute nothing is shown'
    present = CLOCK.real()
    for session in (lost, writer):
        out = subs(stack, session, {'defs': ['Note'], 'life': 30 * DAY})
        assert out['trial'] is True and present + TRIAL <= out['until'] <= present + TRIAL + 2
    CLOCK.set(2)
    out = subs(stack, found)
    assert 'trial' not in out and out['until'] >= present + 30 * DAY
    stack.op('lab', 'put', {'docs': [{'c': 'Note', 'id': 'a', 'items': [{'c': 'T', 'j': 1}]}]}, session=writer)
    assert subs(stack, writer)['until'] >= present + 30 * DAY, 'naming the session in a commit is to return'
    CLOCK.set(TRIAL + 3)
    with pytest.raises(Problem, match='NSUBSCRIPTION'):
        stack.op('lab', 'subs', session=lost)
    assert subs(stack, found)['defs'] == subs(stack, writer)['defs'] == ['Note']
    assert subs(stack, lost, {'defs': ['Note']})['trial'] is True, 'it begins anew'


def test_a_change_in_a_later_minute_is_a_return(stack):
    session = new()
    first = subs(stack, session, {'defs': ['Note'], 'life': 30 * DAY})
    CLOCK.set(2)
    second = subs(stack, session, {'add': ['Other']})
    assert first['trial'] is True and 'trial' not in second and second['until'] >= first['until'] + 29 * DAY


def test_only_services_of_the_list_are_taken(stack):
    service = PushService('mailto:ops@example.net')
    push = Browser(service).subscription
    service.close()
    for host, is_taken in (('push.example', True), ('a.push.example', True), ('push.example:8443', False), ('evilpush.example', False),
                           ('push.example.evil', False), ('fcm.googleapis.com', False), ('127.0.0.1', False)):
        out = subs(stack, new(), {'defs': ['Note'], 'push': {**push, 'endpoint': f'https://{host}/x'}}, '198.51.100.5')
        assert out['push'] is True if is_taken else out[0] == 'AARG', host

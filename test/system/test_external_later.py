"""What is done later for the caller of a provider's token, by tasks and push messages: with the roles of the token, until it ends."""
import time

import pytest

from clock import Clock
from kit import Kit
from manager import PARKED, Manager
from provider import Provider
from push_key import CONTACT, PushKey
from push_service import PushService
from stack import wait_until
from test_accounts import bearer, configure
from test_external_tokens import fetch_keys, id_of
from test_rules_push import Sleeper

pytestmark = pytest.mark.plain

CLOCK = Clock()
PROVIDER = Provider()
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'team': 'closed'}, 'settings': {}}
ISSUER = {'issuer': PROVIDER.url, 'audiences': ['app'], 'roles': {'claim': 'groups', 'map': {'staff': 'editor', 'guests': 'reader'}}}
OTHER = {'issuer': 'https://other.example.org', 'audiences': ['app'], 'roles': ISSUER['roles']}
RULES = {'Note': {'read': ['role:reader', 'role:editor'], 'list': ['role:reader', 'role:editor'], 'create': ['role:editor'], 'update': ['role:editor']}}
HOUR = 60


@pytest.fixture(scope='module', autouse=True)
def key():
    kit = Kit()
    with PushKey() as key:
        STACK['settings'] = {**key.settings, **CLOCK.settings, **PROVIDER.settings, 'push_ttl_s': 600, 'subscription_trial_min': 0,
                             'issuer_keys_most_s': 86400, 'modules': kit.build('later.c')}
        yield key


@pytest.fixture(scope='module')
def team(stack, key):
    configure(stack, 'team', access='rules', accounts={'issuers': [ISSUER]}, rules=RULES)
    stack.service = PushService(CONTACT)
    key.enable(stack, stack.service, 'team')
    wait_until(lambda: fetch_keys(stack) or 'tried' in stack.op('team', 'issuers', {}, admin=True)['out']['issuers'][0], what='the keys')
    yield stack
    stack.service.close()


@pytest.fixture(autouse=True)
def unchanged(team):
    yield
    CLOCK.set(0)
    configure(team, 'team', access='rules', accounts={'issuers': [ISSUER]}, rules=RULES)
    team.psql('team', 'truncate taskqueue, task_history')


def token(subject, *groups, minutes=30):
    return PROVIDER.token(subject, groups=list(groups), exp=int(time.time()) + 60 * minutes)


def note(value):
    return {'docs': [{'c': 'Note', 'id': 'a', 'items': [{'c': 'Main', 'j': value}]}]}


def requested(team, held):
    answer = team.http.post(f'{team.url}/team/op/task', json={'param': {'op': 'put', 'param': note(held[-8:])}}, headers=bearer(held), timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()['out']['id']


def outcome(team, taskid):
    manager = Manager(team, 'team')
    manager.hurry()
    found = manager.post(taskid).json()['tasks'][0]
    return found.get('code', found['result'])


def stored(team, table='taskqueue'):
    return team.psql('team', f'select credential from {table} where credential is not null')[0][0].split()


# --- tasks ---

def test_a_task_has_the_roles_of_its_token(team):
    taskid = requested(team, token('ann', 'staff'))
    assert stored(team)[0] == 'token' and stored(team)[2:] == [PROVIDER.url, 'editor']
    assert team.op('team', 'tasks', {'show': taskid}, admin=True)['out']
    assert outcome(team, taskid) == 'done'
    assert outcome(team, requested(team, token('ann', 'guests'))) == 'SRULE', 'it may read only'
    assert outcome(team, requested(team, token('ann'))) == 'SRULE'


def test_those_of_the_administrator_are_added(team):
    names = {'issuer': PROVIDER.url, 'subject': 'dora'}
    waiting = requested(team, token('dora', 'guests'))
    team.op('team', 'accounts', {'set': {**names, 'roles': ['editor']}}, admin=True)
    assert outcome(team, waiting) == 'done'
    waiting = requested(team, token('dora', 'staff'))
    team.op('team', 'accounts', {'set': {**names, 'roles': [], 'disabled': True}}, admin=True)
    assert outcome(team, waiting) == 'SACCOUNT'


def refusals():
    """What ends the rights of a token, by name, with the change of the configuration."""
    yield 'the token has ended', lambda team: CLOCK.set(HOUR)
    yield 'the issuer was removed', lambda team: configure(team, 'team', accounts={'issuers': [OTHER]})
    yield 'there are no issuers', lambda team: configure(team, 'team', accounts={})
    yield 'there are no accounts', lambda team: team.put('z', without_accounts(team), admin=True)


def without_accounts(team):
    conf = next(item['j'] for item in team.get('z', ('Namespace', 'team'), admin=True)['items'] if item['c'] == 'Conf')
    return {'c': 'Namespace', 'id': 'team', 'items': [{'c': 'Conf', 'j': {name: value for name, value in conf.items() if name != 'accounts'}}]}


@pytest.mark.parametrize('change', [pytest.param(change, id=name) for name, change in refusals()])
def test_a_waiting_task_is_refused(team, change):
    """For good; also that of an account to which the administrator has given roles."""
    team.op('team', 'accounts', {'set': {'issuer': PROVIDER.url, 'subject': 'carl', 'roles': ['editor']}}, admin=True)
    tasks = [requested(team, token(subject, 'staff')) for subject in ('bob', 'carl')]
    change(team)
    assert [outcome(team, taskid) for taskid in tasks] == ['SACCOUNT'] * len(tasks)
    assert team.psql('team', 'select distinct startat, exc from taskqueue') == [(PARKED, 'SACCOUNT')]


@pytest.mark.parametrize('group,kept', [('staff', {'guests': 'reader'}), ('guests', {'staff': 'editor'})])
def test_a_role_that_no_longer_maps_is_gone(team, group, kept):
    """And the token gets no role that it did not have."""
    taskid = requested(team, token('finn', group))
    configure(team, 'team', accounts={'issuers': [{**ISSUER, 'roles': {'claim': 'groups', 'map': kept}}]})
    assert outcome(team, taskid) == 'SRULE'


def test_a_module_learns_no_account_that_is_not_served(team):
    """Its task runs with all rights, as nobody's."""
    def ran():
        assert outcome(team, taskid) == 'done'
        return [item['j'] for item in team.get('team', ('Note', 'later'), admin=True)['items']]
    def request():
        answer = team.http.post(f'{team.url}/team/op/Schedule', json={}, headers=bearer(token('gwen', 'staff')), timeout=60)
        assert answer.status_code == 200, answer.text
        return team.psql('team', 'select taskid from taskqueue')[0][0]
    taskid = request()
    assert ran() == [[id_of(PROVIDER.url, 'gwen'), 'editor']]
    taskid = request()
    CLOCK.set(HOUR)
    assert ran() == [['nobody', 'none']]


# --- push ---

def change(team):
    team.put('team', {'c': 'Note', 'id': 'a', 'items': [{'c': 'Main', 'j': time.time_ns()}]}, admin=True)


def test_a_push_message_is_judged_by_the_roles_of_the_token(team):
    sleeper = Sleeper(team, team.service, None, 'Note/a', ns='team', headers=bearer(token('ann', 'guests')))
    other = Sleeper(team, team.service, None, 'Note/a', ns='team', headers=bearer(token('ann')))
    change(team)
    assert len(sleeper.woken()) == 1 and other.woken() == []
    team.psql('team', 'delete from subscription')


@pytest.mark.parametrize('end', [pytest.param(change, id=name) for name, change in refusals()])
def test_nobody_is_woken_by_what_has_ended(team, end):
    team.op('team', 'accounts', {'set': {'issuer': PROVIDER.url, 'subject': 'carl', 'roles': ['reader']}}, admin=True)
    sleepers = [Sleeper(team, team.service, None, 'Note/a', ns='team', headers=bearer(token(subject, 'guests'))) for subject in ('bob', 'carl')]
    change(team)
    end(team)
    assert [sleeper.woken() for sleeper in sleepers] == [[], []]
    team.psql('team', 'delete from subscription')


def test_a_subscription_follows_the_newest_token(team):
    sleeper = Sleeper(team, team.service, None, 'Note/a', ns='team', headers=bearer(token('hugo', 'guests')))
    CLOCK.set(HOUR)
    body = {'session': sleeper.name, 'param': {'add': ['Note/a']}}
    answer = team.http.post(f'{team.url}/team/op/subs', json=body, headers=bearer(token('hugo', 'guests', minutes=2 * HOUR)), timeout=60)
    assert answer.status_code == 200, answer.text
    change(team)
    assert len(sleeper.woken()) == 1
    team.psql('team', 'delete from subscription')

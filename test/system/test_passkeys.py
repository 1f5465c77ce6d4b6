"""Passkeys of accounts, used through a software authenticator (authenticator.py): making, using, listing and dropping them, and everything
that a hostile browser, page or authenticator may send instead."""
import contextlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from authenticator import ALGORITHMS, BACKED_UP, MAY_BACKUP, PRESENT, VERIFIED, Key, Passkey, base64url, cbor, from_base64url
from clock import Clock
from door_client import Client
from manager import Manager
from stack import Problem, comparable, process_state, refused, wait_until

CLOCK = Clock()
ATTEMPTS = 20
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'club': 'closed', 'plain': 'closed'},
         'settings': {**CLOCK.settings, 'limit_client_attempts': ATTEMPTS, 'argon2_share': 100}}
RP, ORIGIN, OTHER_ORIGIN = 'example.org', 'https://example.org', 'https://app.example.org:8443'
PASSKEYS = {'rp': RP, 'name': 'An example', 'origins': [ORIGIN, OTHER_ORIGIN]}
OPEN = {'registration': 'open', 'anonymous': True}
PASSWORD = 'correct horse battery staple'
NAMES = (f'ann{number}' for number in range(10000))
BOTH = PRESENT | VERIFIED


def configure(stack, ns, **members):
    stack.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)


@pytest.fixture(scope='module')
def team(stack):
    configure(stack, 'team', accounts={**OPEN, 'passkeys': PASSKEYS})
    configure(stack, 'club', accounts={**OPEN, 'passkeys': PASSKEYS})
    configure(stack, 'plain', accounts=OPEN)
    return stack


def send(stack, operation, param, token=None, ns='team'):
    headers = {'Authorization': f'Bearer {token}'} if token else {}
    return stack.http.post(f'{stack.url}/{ns}/op/{operation}', json={'param': param}, headers=headers, timeout=60)


def call(stack, operation, param, token=None, ns='team'):
    answer = send(stack, operation, param, token, ns)
    if answer.status_code != 200:
        raise Problem(answer)
    return answer.json().get('out')


def passkey(stack, token=None, ns='team', **param):
    return call(stack, 'passkey', param, token, ns)


def options(stack, purpose, token=None, ns='team', **param):
    return passkey(stack, token, ns, begin=purpose, **param)['options']


def register(stack, ns='team', **param):
    name = next(NAMES)
    return {'name': name, **call(stack, 'register', {'name': name, 'password': PASSWORD, **param}, ns=ns)}


class Holder:
    """An account with a password and a passkey."""

    def __init__(self, stack, algorithm='ES256', ns='team', counts=True, origin=ORIGIN, flags=BOTH):
        self.stack, self.ns = stack, ns
        made = register(stack, ns)
        self.id, self.token, self.name = made['account'], made['token'], made['name']
        self.key = Passkey(origin, algorithm, counts)
        self.passkey = self.add(self.key, flags=flags)

    def add(self, key, proof=None, **how):
        wanted = options(self.stack, 'create', self.token, self.ns, **(proof or {'password': PASSWORD}))
        return passkey(self.stack, self.token, self.ns, create=key.create(wanted, **how), name='a phone')['passkey']

    def login(self, **how):
        return passkey(self.stack, ns=self.ns, login=self.key.get(options(self.stack, 'login', ns=self.ns), **how))

    def proof(self, key=None):
        return {'passkey': (key or self.key).get(options(self.stack, 'proof', self.token, self.ns))}


def alone(stack, ns='team', **param):
    """An account that has a passkey and no password."""
    key = Passkey(ORIGIN)
    made = call(stack, 'register', {'passkey': key.create(options(stack, 'register', ns=ns, **({'name': param['name']} if 'name' in param else {}))), **param}, ns=ns)
    assert made['account'] == key.handle
    return key, made


# --- what works ---

@pytest.mark.parametrize('algorithm', ALGORITHMS)
@pytest.mark.parametrize('counts', [True, False])
def test_a_passkey_from_create_to_login(team, algorithm, counts):
    holder = Holder(team, algorithm, counts=counts)
    for _ in range(2):
        made = holder.login()
        assert set(made) == {'account', 'token', 'expires'} and made['account'] == holder.id
        assert call(team, 'account', {}, made['token'])['name'] == holder.name
    listed = passkey(team, made['token'], list=True)
    assert listed['password'] is True and [one['passkey'] for one in listed['passkeys']] == [holder.passkey]
    assert listed['passkeys'][0]['name'] == 'a phone' and listed['passkeys'][0]['used'] > listed['passkeys'][0]['created']


def test_the_options_of_a_new_passkey(team):
    holder = Holder(team)
    wanted = options(team, 'create', holder.token, password=PASSWORD)
    assert wanted['rp'] == {'id': RP, 'name': 'An example'} and wanted['user'] == {'id': holder.id, 'name': holder.name, 'displayName': holder.name}
    assert [one['alg'] for one in wanted['pubKeyCredParams']] == [-7, -8, -257] and wanted['attestation'] == 'none'
    assert wanted['authenticatorSelection'] == {'residentKey': 'required', 'requireResidentKey': True, 'userVerification': 'required'}
    assert wanted['excludeCredentials'] == [{'type': 'public-key', 'id': base64url(holder.key.id)}]
    assert len(from_base64url(wanted['challenge'])) >= 32


def test_the_options_of_a_login_disclose_no_account(team):
    Holder(team)
    wanted = options(team, 'login')
    assert {**wanted, 'challenge': None} == {'challenge': None, 'rpId': RP, 'timeout': 300000, 'allowCredentials': [], 'userVerification': 'required'}
    assert wanted['challenge'] != options(team, 'login')['challenge']


def test_an_account_with_a_passkey_alone(team):
    name = next(NAMES)
    key, made = alone(team, name=name, device='a laptop')
    again = passkey(team, login=key.get(options(team, 'login')))
    assert again['account'] == made['account'] and call(team, 'account', {}, again['token'])['name'] == name
    listed = passkey(team, made['token'], list=True)
    assert listed['password'] is False and [one['name'] for one in listed['passkeys']] == ['a laptop']
    refused('AUNIQUE', alone, team, name=name.upper(), status=409)


def masked(answer):
    return answer.status_code, comparable(answer.headers), answer.text


def test_an_account_without_a_password_is_not_seen_by_a_login(team):
    """Neither by the answer nor by the work."""
    names = [next(NAMES) for _ in range(4)]
    for name in names:
        alone(team, name=name)
    with_password, nobody = [register(team)['name'] for _ in range(4)], [next(NAMES) for _ in range(4)]

    def ticks():
        return sum(sum(map(int, process_state(pid)[11:13])) for pid in team.worker_pids())
    answers, cost = [], []
    for group in (names, with_password, nobody):
        before = ticks()
        answers += [masked(send(team, 'login', {'name': name, 'password': 'not the password'})) for name in group * 4]
        cost.append(ticks() - before)
    assert all(answer == answers[0] for answer in answers) and answers[0][0] == 401
    assert min(cost) > 10 and max(cost) < 2 * min(cost), cost


def test_an_anonymous_account_gets_a_passkey_and_a_name(team):
    made = call(team, 'register', {})
    key = Passkey(ORIGIN)
    passkey(team, made['token'], create=key.create(options(team, 'create', made['token'])))
    again = passkey(team, login=key.get(options(team, 'login')))
    assert again['account'] == made['account']
    name = next(NAMES)
    refused('AARG', call, team, 'account', {'set': {'name': name}}, again['token'])  # no proof
    proof = key.get(options(team, 'proof', again['token']))
    assert call(team, 'account', {'set': {'name': name}, 'passkey': proof}, again['token'])['name'] == name
    refused('SKEY', call, team, 'login', {'name': name, 'password': PASSWORD}, status=401)
    proof = key.get(options(team, 'proof', again['token']))
    call(team, 'account', {'set': {'password': PASSWORD}, 'passkey': proof}, again['token'])
    assert call(team, 'login', {'name': name, 'password': PASSWORD})['account'] == made['account']


def test_a_session_begins_as_by_login(team):
    holder = Holder(team)
    answer = send(team, 'passkey', {'login': holder.key.get(options(team, 'login')), 'cookie': True, 'device': 'a phone'})
    assert set(answer.json()['out']) == {'account', 'expires'} and '; Secure; HttpOnly; SameSite=Lax' in answer.headers['Set-Cookie']
    team.http.cookies.clear()
    token = answer.headers['Set-Cookie'].split('=', 1)[1].split(';')[0]
    assert [one.get('device') for one in call(team, 'sessions', {}, token)['sessions'] if one.get('current')] == ['a phone']
    assert answer.headers['Cache-Control'] == 'no-store'
    assert call(team, 'sessions', {'revoke': 'all'}, token)['ended'] == 2
    refused('SKEY', call, team, 'account', {}, token, status=401)
    assert holder.login()['account'] == holder.id  # a passkey outlives the sessions


def test_passkeys_are_dropped_with_a_proof(team):
    holder = Holder(team)
    second = Passkey(ORIGIN, 'EdDSA')
    other = holder.add(second, holder.proof())
    for wrong in ({}, {'password': 'not the password'}):
        refused('AARG' if not wrong else 'SKEY', passkey, team, holder.token, drop=holder.passkey, **wrong)
    refused('AARG', passkey, team, holder.token, drop='0' * 16, password=PASSWORD)
    assert passkey(team, holder.token, drop=holder.passkey, password=PASSWORD) == {'dropped': 1}
    refused('SKEY', holder.login, status=401)
    assert passkey(team, holder.token, drop=other, **holder.proof(second)) == {'dropped': 1}
    refused('SCLOSED', options, team, 'proof', holder.token)
    assert passkey(team, holder.token, list=True) == {'passkeys': [], 'password': True}


def test_the_last_way_to_sign_in_is_not_dropped(team):
    key, made = alone(team)
    listed = passkey(team, made['token'], list=True)['passkeys'][0]['passkey']

    def proof():
        return {'passkey': key.get(options(team, 'proof', made['token']))}
    assert 'last way' in refused('SCLOSED', passkey, team, made['token'], drop=listed, **proof()).body['detail']
    second = Passkey(ORIGIN)
    passkey(team, made['token'], create=second.create(options(team, 'create', made['token'], **proof())))
    assert passkey(team, made['token'], drop=listed, **proof()) == {'dropped': 1}
    assert passkey(team, login=second.get(options(team, 'login')))['account'] == made['account']


def administer(stack, ns='team', **param):
    return stack.op(ns, 'accounts', param, admin=True)['out']


def test_the_administrator_lists_and_removes_passkeys(team):
    holder, other = Holder(team), Holder(team)
    second = Passkey(ORIGIN, 'EdDSA')
    name = holder.add(second, holder.proof())
    listed = passkey(team, holder.token, list=True)['passkeys']
    assert [one['passkey'] for one in listed] == sorted([holder.passkey, name]) and all(one['name'] == 'a phone' for one in listed)
    for found in (administer(team, get=holder.id), administer(team, find=holder.name)):
        assert found['passkeys'] == listed and len(found['sessions']) == 1
    assert administer(team, revoke={'account': holder.id, 'passkey': holder.passkey}) == {'ended': 1}
    refused('SKEY', holder.login, status=401)
    assert passkey(team, login=second.get(options(team, 'login')))['account'] == holder.id
    assert administer(team, revoke={'account': holder.id, 'passkey': holder.passkey}) == {'ended': 0}, 'it is gone'
    assert administer(team, revoke={'account': holder.id, 'passkey': other.passkey}) == {'ended': 0}, 'it is of another account'
    assert [one['passkey'] for one in administer(team, get=holder.id)['passkeys']] == [name]
    assert len(passkey(team, holder.token, list=True)['passkeys']) == 1, 'its sessions stay'
    assert other.login()['account'] == other.id
    assert 'passkeys' not in administer(team, get=register(team)['account'])


def test_the_administrator_removes_all_passkeys(team):
    key, made = alone(team)
    passkey(team, made['token'], create=Passkey(ORIGIN).create(options(team, 'create', made['token'], passkey=key.get(options(team, 'proof', made['token'])))))
    assert administer(team, revoke={'account': made['account'], 'passkey': 'all'}) == {'ended': 2}, 'the last way to sign in, too'
    refused('SKEY', passkey, team, login=key.get(options(team, 'login')), status=401)
    assert call(team, 'account', {}, made['token'])['account'] == made['account']


@pytest.mark.parametrize('wish', [{'passkey': ''}, {'passkey': 'x' * 15}, {'passkey': 'x' * 17}, {'passkey': 7}, {'passkey': 'others'},
                                  {'passkey': 'all', 'session': 'x' * 16}])
def test_malformed_removals(team, wish):
    holder = Holder(team)
    refused('AARG', administer, team, revoke={'account': holder.id, **wish})
    assert len(administer(team, get=holder.id)['passkeys']) == 1


def test_a_login_by_passkey_is_a_use_of_an_anonymous_account(team):
    """Of two accounts, one that signs in later ends later (test_accounts_left.py)."""
    configure(team, 'club', accounts={**OPEN, 'session_days': 1, 'anonymous_days': 2, 'passkeys': PASSKEYS})
    keys = dict(alone(team, 'club') for _ in range(2))
    idle, used = keys
    queue = Manager(team, 'club')

    def is_visited():
        for taskid in queue.due():
            queue.post(taskid)
        return team.psql('club', "select 1 from doc where class = 'Ticket' and id = 'ends' and ctime <> 0")

    wait_until(is_visited, what='the visit of all accounts, which plans their ends')
    CLOCK.set(2 * 1440)
    passkey(team, ns='club', login=used.get(options(team, 'login', ns='club')))

    def ended(minutes):
        CLOCK.set(minutes)
        queue.hurry()
        for taskid in queue.due():
            queue.post(taskid)
        return [team.psql('club', "select 1 from doc where class = 'Account' and id = %s and ctime <> 0", (key.handle,)) == [] for key in keys]

    assert ended(3 * 1440 - 2) == [False, False]
    assert ended(3 * 1440 + 2) == [True, False]
    assert ended(5 * 1440 - 2) == [True, False]
    assert ended(5 * 1440 + 2) == [True, True]


def test_an_account_has_ten_passkeys(team):
    holder = Holder(team)
    for _ in range(9):
        holder.add(Passkey(ORIGIN))
    assert 'at most 10' in refused('SCLOSED', holder.add, Passkey(ORIGIN)).body['detail']
    assert len(passkey(team, holder.token, list=True)['passkeys']) == 10


def test_a_disabled_or_deleted_account_has_no_passkey(team):
    holder, deleted = Holder(team), Holder(team)
    call_admin = team.op('team', 'accounts', {'set': {'account': holder.id, 'disabled': True}}, admin=True)
    assert call_admin['out']['disabled'] is True
    call(team, 'account', {'delete': True, **deleted.proof()}, deleted.token)
    answers = [masked(send(team, 'passkey', {'login': one.key.get(options(team, 'login'))})) for one in (holder, deleted)]
    unknown = Passkey(ORIGIN)
    unknown.rp, unknown.handle = RP, base64url(os.urandom(16))
    answers.append(masked(send(team, 'passkey', {'login': unknown.get(options(team, 'login'))})))
    answers.append(masked(send(team, 'passkey', {'login': unknown.get(options(team, 'login'), handle=Holder(team).id)})))
    assert all(answer == answers[0] for answer in answers) and answers[0][0] == 401


def test_pages_of_the_listed_origins_only(team):
    assert Holder(team, origin=OTHER_ORIGIN).login()
    for origin in ('https://example.org:8443', 'https://www.example.org', 'http://example.org', 'https://example.org.evil.net'):
        refused('SKEY', Holder, team, origin=origin, status=401)


def test_the_namespaces_origins_are_the_standard(team):
    configure(team, 'club', accounts={**OPEN, 'passkeys': {'rp': RP}}, origins=['https://a.example.org', 'https://other.net', '*'])
    try:
        for origin, works in (('https://a.example.org', True), (ORIGIN, True), ('https://b.example.org', False), ('https://other.net', False), ('*', False)):
            if works:
                assert Holder(team, ns='club', origin=origin).login()
            else:
                refused('SKEY', Holder, team, ns='club', origin=origin, status=401)
    finally:
        configure(team, 'club', accounts={**OPEN, 'passkeys': PASSKEYS}, origins=None)


@pytest.mark.parametrize('wrong', [7, [], {}, {'rp': ''}, {'rp': 'Example.org'}, {'rp': 'example.org.'}, {'rp': 'a..b'}, {'rp': '127.0.0.1'}, {'rp': 'https://a.b'}, {'rp': 'a_b.org'},
                                   {'rp': 'x' * 64 + '.org'}, {'rp': RP, 'other': 1}, {'rp': RP, 'name': ''}, {'rp': RP, 'name': 'x' * 101}, {'rp': RP, 'origins': []},
                                   {'rp': RP, 'origins': ['https://example.org.evil.net']}, {'rp': RP, 'origins': ['https://evilexample.org']}, {'rp': RP, 'origins': ['http://example.org']},
                                   {'rp': RP, 'origins': ['*']}, {'rp': RP, 'origins': ['https://example.org/']}, {'rp': RP, 'origins': ['https://example.org:0']},
                                   {'rp': RP, 'origins': ['https://example.org:65536']}, {'rp': RP, 'origins': ['https://example.org@evil.net']}, {'rp': RP, 'origins': [ORIGIN] * 17}])
def test_a_malformed_configuration_is_refused(team, wrong):
    refused('AARG', configure, team, 'team', accounts={**OPEN, 'passkeys': wrong})
    assert team.op('z', 'ns', {'get': 'team'}, admin=True)['out']['accounts']['passkeys'] == PASSKEYS


def test_passkeys_of_localhost(team):
    configure(team, 'club', accounts={**OPEN, 'passkeys': {'rp': 'localhost', 'origins': ['http://localhost:8080']}})
    try:
        assert Holder(team, ns='club', origin='http://localhost:8080').login()
    finally:
        configure(team, 'club', accounts={**OPEN, 'passkeys': PASSKEYS})


def test_a_namespace_without_passkeys(team):
    for param in ({'begin': 'login'}, {'list': True}, {'begin': 'register'}):
        assert 'no passkeys' in refused('SCLOSED', call, team, 'passkey', param, ns='plain').body['detail']
    made = register(team, 'plain')
    key = Passkey(ORIGIN)
    refused('SCLOSED', call, team, 'register', {'name': next(NAMES), 'passkey': key.create(options(team, 'register'))}, ns='plain')
    assert call(team, 'account', {}, made['token'], 'plain')['account'] == made['account']


def test_real_attestations_of_a_key_by_itself(team):
    for algorithm in ALGORITHMS:
        holder = Holder(team)
        key = Passkey(ORIGIN, algorithm)
        holder.add(key, fmt='packed', statement='self')
        assert passkey(team, login=key.get(options(team, 'login')))['account'] == holder.id


def test_extensions_of_the_page(team):
    """`prf` is hmac-secret in what the authenticator signs."""
    holder = Holder(team, 'EdDSA')
    key = Passkey(ORIGIN)
    holder.add(key, data={'extensions': {'credProtect': 2, 'hmac-secret': True}})
    for extensions in ({'hmac-secret': bytes(32)}, {'other': [1, {'a': True}]}, {}):
        assert passkey(team, login=key.get(options(team, 'login'), data={'extensions': extensions}))['account'] == holder.id
        refused('SKEY', passkey, team, login=key.get(options(team, 'login'), data={'extensions': extensions}, key=Key()), status=401)


def test_a_key_on_several_devices(team):
    holder = Holder(team, flags=BOTH | MAY_BACKUP | BACKED_UP, counts=False)
    assert holder.login(flags=BOTH | MAY_BACKUP)['account'] == holder.id
    assert passkey(team, holder.token, list=True)['passkeys'][0]['synced'] is True


@pytest.mark.parametrize('made, later', [(BOTH, BOTH | MAY_BACKUP), (BOTH | MAY_BACKUP, BOTH), (BOTH, BOTH | MAY_BACKUP | BACKED_UP)])
def test_a_key_that_begins_or_ends_to_be_one_of_several_devices(team, made, later):
    """Password managers change the flag with an update, or from device to device: nobody is locked out by it, and it is seen."""
    holder = Holder(team, flags=made)
    log = len(team.log('stampd'))
    for flags in (later, made, later):
        assert holder.login(flags=flags)['account'] == holder.id
        assert passkey(team, holder.token, list=True)['passkeys'][0].get('synced', False) is bool(flags & MAY_BACKUP)
    wait_until(lambda: len(re.findall(f'flag backup eligible of a passkey has changed ns=team account={holder.id}', team.log('stampd')[log:])) >= 3, what='the log')


def test_a_strict_namespace_refuses_a_changed_flag(team):
    holder, other = Holder(team, ns='club'), Holder(team, ns='club', flags=BOTH | MAY_BACKUP)
    configure(team, 'club', accounts={**OPEN, 'passkeys': {**PASSKEYS, 'strict': True}})
    try:
        def problem():
            try:
                holder.login(flags=BOTH | MAY_BACKUP)
            except Problem as refusal:
                return refusal
        wait_until(problem, what='the configuration')
        configured = Holder(team, ns='club')
        said = refused('SKEY', configured.login, flags=BOTH | MAY_BACKUP, status=401)
        assert 'may be backed up has changed' in said.body['detail']
        refused('SKEY', other.login, flags=BOTH, status=401)
        assert configured.login()['account'] == configured.id and other.login(flags=BOTH | MAY_BACKUP)['account'] == other.id
        refused('SKEY', other.login, flags=BOTH | MAY_BACKUP, key=Key(), status=401)
        wait_until(lambda: 'a passkey was refused: its flag backup eligible has changed ns=club' in team.log('stampd'), what='the log')
        refused('AARG', configure, team, 'club', accounts={**OPEN, 'passkeys': {**PASSKEYS, 'strict': 1}})
    finally:
        configure(team, 'club', accounts={**OPEN, 'passkeys': PASSKEYS})


# --- challenges ---

def test_a_login_is_not_replayed(team):
    """Also by an authenticator that does not count; of many at once, one begins a session."""
    for counts in (True, False):
        holder = Holder(team, counts=counts)
        for _ in range(3):
            used = holder.key.get(options(team, 'login'))
            with ThreadPoolExecutor(6) as pool:
                codes = list(pool.map(lambda _, used=used: send(team, 'passkey', {'login': used}).status_code, range(6)))
            assert codes.count(200) == 1 and set(codes) <= {200, 401, 409}, codes
        for _ in range(12):  # more than the account remembers one by one
            holder.login()
        refused('SKEY', passkey, team, login=used, status=401)


def test_old_challenges_may_be_used_in_another_order(team):
    holder = Holder(team, counts=False)
    wanted = [options(team, 'login') for _ in range(6)]
    for one in reversed(wanted):
        assert passkey(team, login=holder.key.get(one))['account'] == holder.id
    for one in wanted:
        refused('SKEY', passkey, team, login=holder.key.get(one), status=401)


def test_a_new_passkey_is_not_replayed(team):
    holder = Holder(team)
    key = Passkey(ORIGIN)
    made = key.create(options(team, 'create', holder.token, password=PASSWORD))
    name = passkey(team, holder.token, create=made)['passkey']
    refused('AUNIQUE', passkey, team, holder.token, create=made)
    passkey(team, holder.token, drop=name, password=PASSWORD)
    assert 'used' in refused('SKEY', passkey, team, holder.token, create=made, status=401).body['detail']


def test_a_registration_is_not_replayed(team):
    key = Passkey(ORIGIN)
    made = key.create(options(team, 'register'))
    first = call(team, 'register', {'passkey': made})
    for name in ({}, {'name': next(NAMES)}):
        refused('SKEY', call, team, 'register', {'passkey': made, **name}, status=401)
    call(team, 'account', {'delete': True, 'passkey': key.get(options(team, 'proof', first['token']))}, first['token'])
    refused('SKEY', call, team, 'register', {'passkey': made}, status=401)


@pytest.mark.parametrize('purpose', ['login', 'proof', 'create', 'register'])
def test_a_challenge_expires(team, purpose):
    holder = Holder(team)
    proof = {'password': PASSWORD} if purpose == 'create' else {}

    def use(minutes):
        wanted = options(team, purpose, None if purpose in ('login', 'register') else holder.token, **proof)
        CLOCK.set(minutes)
        try:
            if purpose in ('create', 'register'):
                made = Passkey(ORIGIN).create(wanted)
                return passkey(team, holder.token, create=made) if purpose == 'create' else call(team, 'register', {'passkey': made})
            if purpose == 'login':
                return passkey(team, login=holder.key.get(wanted))
            return passkey(team, holder.token, begin='create', passkey=holder.key.get(wanted))
        finally:
            CLOCK.set(0)
    use(4)
    assert 'expired' in refused('SKEY', use, 6, status=401).body['detail']


def of_other(team, holder, use):
    """Challenges of another purpose, account and namespace, each well-formed."""
    other = Holder(team)
    club = Holder(team, ns='club')
    given = {'login': options(team, 'login'), 'proof': options(team, 'proof', holder.token), 'add': options(team, 'create', holder.token, password=PASSWORD),
             'register': options(team, 'register'), 'proof of another': options(team, 'proof', other.token),
             'add of another': options(team, 'create', other.token, password=PASSWORD), 'login elsewhere': options(team, 'login', ns='club'),
             'proof elsewhere': options(team, 'proof', club.token, 'club'), 'add elsewhere': options(team, 'create', club.token, 'club', password=PASSWORD),
             'register elsewhere': options(team, 'register', ns='club')}
    del given[use]
    return given


@pytest.mark.parametrize('use', ['login', 'proof', 'add', 'register'])
def test_a_challenge_is_of_one_purpose_account_and_namespace(team, use):
    holder = Holder(team)
    for name, wanted in of_other(team, holder, use).items():
        wanted = {'rp': {'id': RP}, 'user': {'id': holder.id}, **wanted}
        if use in ('add', 'register'):
            made = Passkey(ORIGIN).create(wanted)
            answer = send(team, 'passkey', {'create': made}, holder.token) if use == 'add' else send(team, 'register', {'passkey': made})
        else:
            used = holder.key.get(wanted)
            answer = send(team, 'passkey', {'login': used}) if use == 'login' else send(team, 'passkey', {'begin': 'create', 'passkey': used}, holder.token)
        assert answer.status_code == 401 and 'challenge' in answer.json()['detail'], (name, answer.text)
    assert holder.login()['account'] == holder.id


# --- hostile logins ---

def altered(text, place):
    return text[:place] + bytes([text[place] ^ 1]) + text[place + 1:]


def high_s(signature):
    """The same signature with the other root, which is valid too, in an encoding that is not."""
    r, s = decode_dss_signature(signature)
    r, s = (number.to_bytes(34, 'big') for number in (r, s))
    return b'\x30\x48\x02\x22' + r + b'\x02\x22' + s


def client_data_cases():
    """Client data that differ in one thing: what is refused as of another page or ceremony, or malformed."""
    yield from ((f'origin {origin}', {'origin': origin}) for origin in (
        'https://example.org.', 'https://example.org:443', 'https://EXAMPLE.org', 'http://example.org', 'https://example.org/', 'https://www.example.org', 'https://example.org.evil.net',
        'https://evilexample.org', 'https://example.org\x00', 'null', '', 'android:apk-key-hash:x', 7, ['https://example.org'], None))
    yield from ((f'type {kind}', {'type': kind}) for kind in ('webauthn.other', 'WEBAUTHN.GET', 'payment.get', 'webauthn', '', None, 7))
    yield from ((f'cross origin {value}', {'crossOrigin': value}) for value in (True, 'false', 1, 0, [], {}))
    yield 'top origin', {'topOrigin': 'https://evil.net'}
    yield from ((f'challenge {name}', {'challenge': value}) for name, value in (('none', None), ('empty', ''), ('short', 'AAAA'), ('number', 7), ('random', base64url(os.urandom(64)))))


def login_cases(holder, other, wanted):
    """Ways to sign in that are all refused, with what the page sends: name, credential."""
    key, challenge, stored = holder.key, wanted['challenge'], holder.key.count

    def get(**how):
        return key.get(wanted, **how)
    for name, client in client_data_cases():
        yield name, get(client=client)
    yield 'type of the other ceremony', get(client={'type': 'webauthn.create'})
    for name, text in (('altered', challenge[:-6] + ('A' if challenge[-6] != 'A' else 'B') + challenge[-5:]), ('padded', challenge + '='), ('padded twice', challenge + '=='),
                       ('longer', challenge + 'AAAA'), ('cut', challenge[:-4]), ('huge', challenge * 8), ('with a blank', challenge + ' '), ('the other alphabet', challenge.replace('-', '+').replace('_', '/') + '+')):
        yield f'challenge {name}', get(client={'challenge': text})
    whole = key.client_data('webauthn.get', wanted)
    for name, text in (('no object', b'[]'), ('empty', b' '), ('cut', whole[:-1]), ('more behind', whole + b'x'), ('twice', whole[:-1] + b',"type":"webauthn.get"}'), ('no UTF-8', whole[:-1] + b',"x":"\xff"}'),
                       ('a mark before', b'\xef\xbb\xbf' + whole), ('deep', whole[:-1] + b',"x":' + b'[' * 100 + b']' * 100 + b'}'), ('many members', whole[:-1] + b''.join(b',"%d":0' % n for n in range(100)) + b'}')):
        yield f'client data: {name}', get(client=text)
    for name, flags in (('not present', VERIFIED), ('not verified', PRESENT), ('neither', 0), ('backed up, though it may not be', BOTH | BACKED_UP),
                        ('a credential that is not there', BOTH | 0x40), ('extensions that are not there', BOTH | 0x80)):
        yield name, get(flags=flags)
    for rp in ('evil.net', 'org', 'www.example.org', 'Example.org', ''):
        yield f'relying party {rp}', get(data={'rp': rp or '\x00'})
    for name, count in (('the same', stored), ('back', stored - 1), ('zero', 0)):
        yield f'counter {name}', get(data={'count': count})
    data = key.data(BOTH, count=key.count + 100)
    for size in (0, 1, 32, 36):
        yield f'data of {size} bytes', get(data=data[:size] or b'\x00')
    yield 'bytes behind the data', get(data=data + b'\x00')
    yield 'extensions cut', get(data=key.data(BOTH, extensions={'x': 1})[:-1])
    yield 'bytes behind the extensions', get(data=key.data(BOTH, extensions={'x': 1}, after=b'\x00'))
    yield 'deep extensions', get(data=key.data(BOTH, extensions={'x': [[[[[1]]]]]}))
    yield 'a credential in a signature', get(data={'credential': key.credential()})
    yield 'signed by another key', get(key=Key())
    yield 'signed by another algorithm', get(key=Key('EdDSA'))
    yield 'signed by a key of RSA', get(key=Key('RS256'))
    good = get()
    signature = from_base64url(good['response']['signature'])
    yield 'signature in a longer form', get(signature=high_s(signature))
    for place in (0, 1, 5, len(signature) // 2, len(signature) - 1):
        yield f'signature altered at {place}', get(signature=altered(signature, place))
    for name, text in (('cut', signature[:-1]), ('longer', signature + b'\x00'), ('zeros', bytes(len(signature))), ('of zeros', b'\x30\x06\x02\x01\x00\x02\x01\x00'), ('random', os.urandom(64)), ('long', os.urandom(1024))):
        yield f'signature {name}', get(signature=text)
    for part in ('clientDataJSON', 'authenticatorData'):
        text = from_base64url(good['response'][part])
        for place in (0, 33, 36, len(text) - 1):
            yield f'{part} altered at {place}', {**good, 'response': {**good['response'], part: base64url(altered(text, place))}}
    yield 'account of another', get(handle=other.id)
    yield 'account of nobody', get(handle=base64url(bytes(16)))
    yield 'a short handle', get(handle='AAAA')
    yield 'no handle', {**get(), 'response': {name: value for name, value in good['response'].items() if name != 'userHandle'}}
    yield 'passkey of another', {**get(), 'id': base64url(other.key.id), 'rawId': base64url(other.key.id)}
    yield 'passkey of nobody', {**get(), 'id': base64url(bytes(32)), 'rawId': base64url(bytes(32))}
    theirs = other.key.get(wanted, handle=holder.id)
    yield 'passkey and signature of another', theirs
    yield 'signature of another', {**theirs, 'id': base64url(key.id), 'rawId': base64url(key.id)}


def test_hostile_logins(team):
    """Each is refused as a wrong passkey, never by a fault of the server; and the same challenge serves the right one afterwards."""
    holder, other = Holder(team), Holder(team)
    for _ in range(2):
        holder.login()
    wanted = options(team, 'login')
    tried, seen = 0, set()
    for name, credential in login_cases(holder, other, wanted):
        answer = send(team, 'passkey', {'login': credential})
        assert (answer.status_code, answer.json().get('code')) == (401, 'SKEY'), (name, answer.text)
        seen.add(answer.json()['detail'])
        tried += 1
    assert tried > 90 and len(seen) <= 6, (tried, seen)
    assert passkey(team, login=holder.key.get(wanted))['account'] == holder.id
    assert len(call(team, 'sessions', {}, holder.token)['sessions']) == 4


def malformed_credentials(good):
    response = good['response']
    for name, value in (('id', None), ('id', 7), ('id', ''), ('id', '='), ('id', good['id'] + '=='), ('id', 'AAAAA'), ('id', '+' + good['id'][1:]), ('id', 'A' * 2000), ('rawId', None), ('rawId', 'AAAA'),
                        ('rawId', good['rawId'][:-1] + ('A' if good['rawId'][-1] != 'A' else 'E')), ('type', None), ('type', 'password'), ('type', 7), ('response', None), ('response', []), ('response', {})):
        yield {**good, name: value}
    for part in response:
        if part in ('transports', 'userHandle'):
            continue
        for value in (None, 7, '', '=', 'A', response[part] + '=', response[part] + ' ', 'A' * 8000, [response[part]]):
            yield {**good, 'response': {**response, part: value}}
    yield from (7, [], 'x', True, {})


def test_malformed_credentials(team):
    holder = Holder(team)
    login = list(malformed_credentials(holder.key.get(options(team, 'login'))))
    create = list(malformed_credentials(Passkey(ORIGIN).create(options(team, 'create', holder.token, password=PASSWORD))))
    assert len(login) > 40 and len(create) > 30
    for credential in login:
        answer = send(team, 'passkey', {'login': credential})
        assert answer.status_code == 400 and answer.json()['code'] == 'AARG', (credential, answer.text)
        assert answer.json()['at'].startswith('/param'), answer.text
    for credential in create:
        for answer in (send(team, 'passkey', {'create': credential}, holder.token), send(team, 'register', {'passkey': credential})):
            assert answer.status_code == 400 and answer.json()['code'] == 'AARG', (credential, answer.text)
    for handle in ('A' * 30, 7, '='):
        assert send(team, 'passkey', {'login': holder.key.get(options(team, 'login'), handle=handle)}).json()['code'] == 'AARG'


@pytest.mark.parametrize('param', [None, 7, [], {}, {'begin': 7}, {'begin': 'all'}, {'begin': 'login', 'name': 'x'}, {'begin': 'login', 'other': 1}, {'begin': 'register', 'name': 'a b'}, {'list': 7},
                                   {'drop': 7}, {'begin': 'login', 'login': {}}, {'other': 1}, {'login': None}])
def test_malformed_arguments(team, param):
    holder = register(team)
    assert send(team, 'passkey', param, holder['token']).json()['code'] == 'AARG'


def test_what_needs_an_account_needs_one(team):
    holder = Holder(team)
    service = team.op('team', 'accounts', {'key': {'label': 'a script'}}, admin=True)['out']['key']
    for token in (None, service):
        for param in ({'begin': 'create'}, {'begin': 'proof'}, {'list': True}, {'drop': holder.passkey, 'password': PASSWORD},
                      {'create': Passkey(ORIGIN).create(options(team, 'create', holder.token, password=PASSWORD))}):
            refused('SCLOSED', call, team, 'passkey', param, token)


def test_a_registration_by_passkey_obeys_the_configuration(team):
    configure(team, 'club', accounts={'registration': 'invitation', 'anonymous': False, 'passkeys': PASSKEYS})
    try:
        refused('SCLOSED', options, team, 'register', ns='club')
        name = next(NAMES)
        refused('SCLOSED', alone, team, 'club', name=name)
        ticket = team.op('club', 'accounts', {'invite': {'roles': ['staff']}}, admin=True)['out']['invitation']
        key, made = alone(team, 'club', name=name, invitation=ticket)
        assert call(team, 'account', {}, made['token'], 'club')['roles'] == ['staff']
        configure(team, 'club', accounts={'registration': 'open', 'confirm': 'required', 'passkeys': PASSKEYS})
        assert options(team, 'register', ns='club')['user']['name'] == 'An example'  # the name is that of a ticket
        configure(team, 'club', accounts={'registration': 'closed', 'confirm': 'required', 'passkeys': PASSKEYS})
        refused('SCLOSED', options, team, 'register', ns='club')
        configure(team, 'club', accounts={'registration': 'closed', 'passkeys': PASSKEYS})
        refused('SCLOSED', options, team, 'register', ns='club', name=name)
    finally:
        configure(team, 'club', accounts={**OPEN, 'passkeys': PASSKEYS})


# --- hostile registrations ---

def create_cases(key, wanted):
    """New passkeys that are all refused: name, credential."""
    key.rp = RP

    def create(**how):
        return key.create(wanted, **how)
    for name, client in client_data_cases():
        yield name, create(client=client)
    yield 'type of the other ceremony', create(client={'type': 'webauthn.get'})
    for name, flags in (('not present', VERIFIED), ('not verified', PRESENT), ('neither', 0), ('backed up, though it may not be', BOTH | BACKED_UP), ('extensions that are not there', BOTH | 0x80)):
        yield name, create(flags=flags)
    yield 'no credential', create(data={'credential': None})
    for rp in ('evil.net', 'org', 'www.example.org'):
        yield f'relying party {rp}', create(data={'rp': rp})
    cose = key.key.cose
    off_curve = bytes(31) + b'\x05'
    for name, changed in (('no algorithm', {k: v for k, v in cose.items() if k != 3}), ('another algorithm', {**cose, 3: -8}), ('an unknown algorithm', {**cose, 3: -35}), ('another type', {**cose, 1: 3}),
                          ('another curve', {**cose, -1: 2}), ('a point that is not on the curve', {**cose, -3: off_curve}), ('the point at infinity', {**cose, -2: bytes(32), -3: bytes(32)}),
                          ('a short coordinate', {**cose, -2: cose[-2][:-1]}), ('a long coordinate', {**cose, -2: cose[-2] + b'\x00'}), ('a text for a coordinate', {**cose, -2: 'x' * 32}), ('nothing', {}),
                          ('a key of 1024 bits', {1: 3, 3: -257, -1: os.urandom(128), -2: b'\x01\x00\x01'}), ('a key of 4096 bits', {1: 3, 3: -257, -1: os.urandom(512), -2: b'\x01\x00\x01'})):
        yield f'key: {name}', create(data={'credential': key.credential(cose=cbor(changed))})
    whole = key.data(BOTH, credential=key.credential())
    for size in (1, 36, 37, 52, 54, 60, len(whole) - 1):
        yield f'data of {size} bytes', create(data=whole[:size])
    yield 'bytes behind the data', create(data=whole + b'\x00')
    yield 'an id longer than the data', create(data=whole[:53] + b'\xff\xff' + whole[55:])
    for size in (0, 15, 1024):
        yield f'an id of {size} bytes', create(data={'credential': key.credential(os.urandom(size))})
    yield 'another id than the credential', create(data={'credential': key.credential(os.urandom(32))})
    attestation = cbor({'fmt': 'none', 'attStmt': {}, 'authData': whole})
    for size in (1, 2, 5, len(attestation) // 2, len(attestation) - 1):
        yield f'attestation of {size} bytes', create(attestation=attestation[:size])
    for name, text in (('bytes behind', attestation + b'\x00'), ('an array', cbor([1, 2, 3])), ('no map', cbor(7)), ('four members', cbor({'fmt': 'none', 'attStmt': {}, 'authData': whole, 'x': 1})),
                       ('two members', cbor({'fmt': 'none', 'authData': whole})), ('a member twice', b'\xa3' + attestation[1:10] + attestation[1:10] + cbor('authData') + cbor(whole)),
                       ('an endless map', b'\xbf' + attestation[1:] + b'\xff'), ('a huge map', b'\xbb' + b'\xff' * 8), ('a huge text', b'\xa3\x7b' + b'\xff' * 8), ('a tag', b'\xd8\x18' + attestation),
                       ('deep', b'\xa3\x63fmt\x64none\x67attStmt' + b'\x81' * 1000), ('a long form', b'\xb8\x03' + attestation[1:]), ('a text for the data', cbor({'fmt': 'none', 'attStmt': {}, 'authData': 'x' * 100})),
                       ('a number for the format', cbor({'fmt': 7, 'attStmt': {}, 'authData': whole}))):
        yield f'attestation: {name}', create(attestation=text)
    yield 'a statement in none', create(statement={'alg': -7})
    for fmt in ('packed', 'fido-u2f', 'tpm', 'android-key', 'apple', 'NONE', '', 'x' * 1000):
        yield f'format {fmt[:20]} without a statement', create(fmt=fmt)
    yield 'signed by another key', create(fmt='packed', statement={'alg': -7, 'sig': Key().sign(b'x')})
    yield 'a certificate', create(fmt='packed', statement={'alg': -7, 'sig': b'x', 'x5c': [b'x' * 100]})
    yield 'a signature of another algorithm', create(fmt='packed', statement={'alg': -257, 'sig': b'x' * 256})


def test_hostile_registrations(team):
    holder = Holder(team)
    wanted, key = options(team, 'create', holder.token, password=PASSWORD), Passkey(ORIGIN)
    tried = 0
    for name, credential in create_cases(key, wanted):
        answer = send(team, 'passkey', {'create': credential}, holder.token)
        assert (answer.status_code, answer.json().get('code')) == (401, 'SKEY'), (name, answer.text)
        tried += 1
    assert tried > 80, tried
    assert passkey(team, holder.token, create=key.create(wanted))['passkey'] != holder.passkey
    refused('AUNIQUE', holder.add, key, status=409)
    assert len(passkey(team, holder.token, list=True)['passkeys']) == 2


def test_a_proof_is_of_the_callers_account(team):
    holder, other = Holder(team), Holder(team)
    wanted = options(team, 'proof', holder.token)
    assert wanted['allowCredentials'] == [{'type': 'public-key', 'id': base64url(holder.key.id)}]
    for wrong in (other.key.get(wanted), other.proof()['passkey'], holder.key.get(options(team, 'login'))):
        refused('SKEY', call, team, 'account', {'delete': True, 'passkey': wrong}, holder.token, status=401)
    refused('AARG', call, team, 'account', {'delete': True}, holder.token)
    used = holder.key.get(wanted)
    assert options(team, 'create', holder.token, passkey=used)
    refused('SKEY', call, team, 'account', {'delete': True, 'passkey': used}, holder.token, status=401)  # it served once
    assert call(team, 'account', {'delete': True, **holder.proof()}, holder.token) == {'deleted': True}


def test_a_copied_passkey_is_noticed(team):
    holder = Holder(team)
    for _ in range(3):
        holder.login()
    refused('SKEY', holder.login, data={'count': 2}, status=401)
    assert f'account={holder.id} counter=2 before=3' in team.log('stampd')
    holder.key.count = 10
    assert holder.login()['account'] == holder.id


def test_neither_the_database_nor_a_log_has_what_was_sent(team):
    holder = Holder(team)
    wanted = options(team, 'login')
    passkey(team, login=holder.key.get(wanted))
    rows = json.dumps(team.get('team', ('Account', holder.id), admin=True))
    assert base64url(holder.key.id) in rows and wanted['challenge'] not in rows
    logs = ''.join(team.log(part) for part in ('stampd', 'nginx', 'postgres', 'access'))
    assert wanted['challenge'] not in logs and base64url(holder.key.id) not in logs


@pytest.mark.parametrize('content', [7, [], {}, {'id': 'AAAA'}, 'raw'])
def test_a_malformed_key_is_none(team, content):
    holder = Holder(team)
    item = [one for one in team.get('team', ('Account', holder.id), admin=True)['items'] if one['c'] == 'Key'][0]
    team.put('team', {'c': 'Account', 'id': holder.id, 'items': [{'c': 'Key', 'k': item['k'], **({'s': 'x'} if content == 'raw' else {'j': content})}]}, admin=True)
    refused('SKEY', holder.login, status=401)
    assert len(passkey(team, holder.token, list=True)['passkeys']) == 1
    assert passkey(team, holder.token, drop=item['k'][:16], password=PASSWORD) == {'dropped': 1}


@pytest.fixture(scope='module')
def clients(team):
    with contextlib.ExitStack() as stack:
        yield lambda number: stack.enter_context(Client(team, f'127.0.0.{number}'))


def test_attempts_of_an_address_are_limited(team, clients):
    """The address of other tests has no limit."""
    holder, attacker = Holder(team), clients(2)
    proof, wanted = holder.proof(), options(team, 'login')
    attempts = {'login': ('passkey', {'login': holder.key.get(wanted, flags=PRESENT)}), 'drop': ('passkey', {'drop': holder.passkey, 'password': 'not the password'}),
                'drop by passkey': ('passkey', {'drop': holder.passkey, **proof}), 'register': ('register', {'passkey': Passkey(ORIGIN).create(options(team, 'register'))})}

    def attempt(operation, param):
        return attacker.op('team', operation, param, key=holder.token)
    for _ in range(ATTEMPTS):
        assert attempt(*attempts['login']).code == 'SKEY'
    for answer in [attempt(*one) for one in attempts.values()]:
        assert answer.code == 'XBUSY' and answer.args == ['limit_client_attempts', str(ATTEMPTS)]
    assert attempt('passkey', {'list': True}).status == attempt('passkey', {'begin': 'login'}).status == 200
    assert clients(3).op('team', 'passkey', {'login': holder.key.get(wanted)}).status == 200

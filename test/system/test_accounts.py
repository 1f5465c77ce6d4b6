"""Accounts, seen from outside: credentials of every form, on every way into a namespace; what revokes them; configurations."""
import base64
import contextlib
import hashlib
import itertools
import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from clock import Clock
from door_client import Client
from fastcgi import Connection
from stack import Problem, comparable, process_state, refused, wait_until

CLOCK = Clock()
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'club': 'closed', 'lab': 'open'},
         'settings': {**CLOCK.settings, 'limit_anonymous_body_bytes': 65536, 'limit_client_attempts': 40, 'limit_name_attempts': 5, 'argon2_share': 100}}
LOGGED = ('name-in-the-log', 'password-in-the-log')
OPEN = {'registration': 'open', 'anonymous': True, 'session_days': 30, 'sessions_most': 4}
PASSWORD = 'correct horse battery staple'
ORIGIN = 'https://app.example'
TOMORROW, YESTERDAY = 991231235959998, 200101000000000


def random_text(size):
    return base64.urlsafe_b64encode(os.urandom(size)).decode().rstrip('=')


def configure(stack, ns, **members):
    stack.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)


@pytest.fixture(scope='module')
def team(stack):
    """Two namespaces with accounts, one of them with rules."""
    configure(stack, 'team', access='rules', accounts=OPEN, origins=[ORIGIN, '*'])
    configure(stack, 'club', accounts=OPEN)
    return stack


class Made:
    """An account that the administrator has written, with one session or service key."""

    def __init__(self, stack, ns='team', prefix='st', expires=TOMORROW, **account):
        self.stack, self.ns, self.id, secret = stack, ns, random_text(16), random_text(32)
        self.token = f'{prefix}_{self.id}.{secret}'
        self.session = hashlib.sha256(secret.encode()).hexdigest()
        content = {'created': 1, **({'service': True} if prefix == 'sk' else {'expires': expires})}
        self.set({'c': 'Self', 'j': {'created': 1, **account}}, {'c': 'Sess', 'k': self.session, 'j': content})

    def set(self, *items):
        self.stack.put(self.ns, {'c': 'Account', 'id': self.id, 'items': list(items)}, admin=True)


def forged(token):
    """Another secret of the same form."""
    return f'{token[:26]}{"B" if token[26] == "A" else "A"}{token[27:]}'


def bearer(token):
    return {'Authorization': f'Bearer {token}'}


def cookie(ns, token):
    return {'Cookie': f'a=b; __Host-stampd-{ns}={token}; c=d'}


def ask(stack, ns, headers=None, operation='tasks', method='POST', **body):
    """By default an operation of the administrator."""
    return stack.http.request(method, f'{stack.url}/{ns}/op/{operation}', json=body or {}, headers=headers or {}, timeout=60)


def verdict(answer):
    """known: the operation is closed to this account; nobody: to a caller without one; refused: the credential is."""
    code = answer.json()['code'] if answer.status_code >= 400 else None
    return {('SCLOSED', 403): 'known', ('SCLOSED', 401): 'nobody', ('SKEY', 401): 'refused'}.get((code, answer.status_code), answer.text)


WAYS = {
    'header': lambda ns, token: ({'headers': bearer(token)}),
    'argument': lambda ns, token: ({'key': token}),
    'cookie': lambda ns, token: ({'headers': {**cookie(ns, token), 'Origin': ORIGIN}}),
}


@pytest.mark.parametrize('ns', ['team', 'club'])
@pytest.mark.parametrize('way', WAYS)
def test_a_token_is_taken(team, ns, way):
    for prefix in ('st', 'sk'):
        made = Made(team, ns, prefix)
        for _ in range(3):
            assert verdict(ask(team, ns, **WAYS[way](ns, made.token))) == 'known'
    assert verdict(ask(team, ns)) == 'nobody'


def test_resources_and_large_bodies_know_the_account_too(team):
    made = Made(team, 'club')
    for headers, status in (({}, 401), (bearer(made.token), 403), (bearer(forged(made.token)), 401)):
        for method, body in (('GET', None), ('PUT', {'items': []}), ('DELETE', None)):
            answer = team.http.request(method, f'{team.url}/club/doc/Note/one', json=body, headers=headers, timeout=60)
            assert answer.status_code == status, answer.text
    large = {'docs': [{'c': 'Note', 'id': 'x', 'items': [{'c': 'Main', 's': 'x' * 200000}]}]}
    assert ask(team, 'club', bearer(forged(made.token)), 'put', param=large).json()['code'] == 'SKEY'


def malformed(token):
    """Texts that resemble a token."""
    id_, secret = token[3:25], token[26:]
    yield from ('st_', 'sk_', 'st_.', f'st_{id_}', f'st_{id_}.', f'st_.{secret}', f'st_{secret}.{id_}', f'sk_{id_}.{secret}')
    yield from (token + 'A', token[:-1], token[:-1] + '=', token + '=', token + '\t', f'st_{id_}.{secret[:-1]}', f'st_{id_}:{secret}', f'st_{id_}..{secret[1:]}')
    yield from (token.replace('.', '.' * size) for size in (2, 100, 4000))
    yield from (f'st_{id_}.' + 'A' * size for size in (43, 44, 1000, 8000))
    yield from (f'st_{"A" * 22}.{secret}', f'st_{id_[:-1]}A.{secret}', f'st_{id_[:-1]}%.{secret}', f"st_{id_[:-1]}'.{secret}", f'st_{"../" * 7}a.{secret}')
    yield from (f'st_{id_}.{secret[:place]}{other}{secret[place + 1:]}' for place in (0, 20, 42) for other in 'AB-_ /+%"\\')
    yield from (token.upper(), token.lower(), token.swapcase(), token[::-1].replace('_ts', '')[:3] + token[3:] + 'x', f'st_{hashlib.sha256(secret.encode()).hexdigest()}')


@pytest.mark.parametrize('way', WAYS)
def test_a_malformed_token_is_refused(team, way):
    """Never an anonymous call, never a fault of the server."""
    token = Made(team).token
    tried = [text for text in malformed(token) if text != token and account_of(text)]
    assert len(tried) > 50
    for text in tried:
        if way == 'header' and text.strip() != text or way == 'cookie' and any(sign in text for sign in '\t" ;\\'):
            continue
        assert verdict(ask(team, 'team', **WAYS[way]('team', text))) == 'refused', (way, text[:100])
    for text in ('', 'x', 'null', 'Bearer', token[3:]):
        if way != 'header':
            assert verdict(ask(team, 'team', **WAYS[way]('team', text))) == 'refused', text
    assert verdict(ask(team, 'team', bearer(token[3:]))) != 'known'  # as a wrong key of the administrator


def account_of(text):
    return text.startswith(('st_', 'sk_'))


def test_a_token_is_of_one_namespace_and_one_account(team):
    here, there = Made(team), Made(team, 'club')
    assert verdict(ask(team, 'team', bearer(there.token))) == 'refused'
    assert verdict(ask(team, 'club', bearer(here.token))) == 'refused'
    assert verdict(ask(team, 'team', cookie('club', here.token))) == 'nobody'  # of another namespace
    other = Made(team)
    crossed = f'{here.token[:26]}{other.token[26:]}'
    assert verdict(ask(team, 'team', bearer(crossed))) == 'refused'
    assert verdict(ask(team, 'team', key=here.token, account=here.id)) == 'known'
    assert verdict(ask(team, 'team', key=here.token, account=other.id)) == 'refused'
    assert verdict(ask(team, 'team', bearer(here.token), account=other.id)) == 'refused'
    assert verdict(ask(team, 'team', account=here.id)) == 'refused'  # a claim without proof


def test_a_namespace_without_accounts_takes_no_token(team):
    made = Made(team)
    for ns in ('lab', 'z'):
        assert verdict(ask(team, ns, bearer(made.token), operation='list', param={})) == 'refused'
    assert ask(team, 'lab', operation='list', param={}, key='of the application', account='a').status_code == 200


def test_what_ends_a_session_ends_it_everywhere_at_once(team):
    def expect(made, word):
        for _ in range(6):
            assert verdict(ask(team, 'team', bearer(made.token))) == word
    gone, disabled, expired, deleted = (Made(team) for _ in range(4))
    for made in (gone, disabled, expired, deleted):
        expect(made, 'known')
    gone.set({'c': 'Sess', 'k': gone.session, 'del': True})
    disabled.set({'c': 'Self', 'j': {'created': 1, 'disabled': True}})
    expired.set({'c': 'Sess', 'k': expired.session, 'j': {'created': 1, 'expires': YESTERDAY}})
    team.put('team', {'c': 'Account', 'id': deleted.id, 'delete': True}, admin=True)
    for made in (gone, disabled, expired, deleted):
        expect(made, 'refused')
    disabled.set({'c': 'Self', 'j': {'created': 1, 'disabled': False}})
    expect(disabled, 'known')


@pytest.mark.parametrize('content', [None, 7, [], {}, {'expires': None}, {'expires': '991231235959998'}, {'expires': -1}, {'expires': 1}, {'expires': 999999999999999},
                                     {'service': True}, {'expires': 9e14}])
def test_a_malformed_session_is_refused(team, content):
    made = Made(team)
    made.set({'c': 'Sess', 'k': made.session, 'j': content} if content is not None else {'c': 'Sess', 'k': made.session, 's': 'raw'})
    assert verdict(ask(team, 'team', bearer(made.token))) == 'refused'


@pytest.mark.parametrize('items', [[{'c': 'Self', 'del': True}], [{'c': 'Self', 'j': 7}], [{'c': 'Roles', 'j': {}}], [{'c': 'Roles', 'j': {'roles': 'all'}}],
                                   [{'c': 'Roles', 'j': {'roles': ['a b']}}], [{'c': 'Roles', 'j': {'roles': [7]}}], [{'c': 'Roles', 'j': {'roles': [['a']]}}],
                                   [{'c': 'Roles', 'j': {'roles': [f'r{n}' for n in range(33)]}}]])
def test_a_malformed_account_is_refused(team, items):
    made = Made(team)
    made.set(*items)
    assert verdict(ask(team, 'team', bearer(made.token))) == 'refused'


# --- cookies ---

def test_a_wrong_cookie_is_removed(team):
    answer = ask(team, 'team', cookie('team', 'st_x'))
    assert verdict(answer) == 'refused'
    assert answer.headers['Set-Cookie'] == '__Host-stampd-team=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax'
    assert 'Set-Cookie' not in ask(team, 'team', bearer('st_x')).headers


def test_the_administrator_is_not_troubled_by_a_cookie(team):
    answer = ask(team, 'team', {**cookie('team', 'st_x'), **bearer(team.key)}, operation='list', param={})
    assert answer.status_code == 200


# --- configurations ---

@pytest.mark.parametrize('accounts', [7, None, [], 'open', {'registration': 'all'}, {'registration': True}, {'anonymous': 1}, {'session_days': 0}, {'session_days': 3651},
                                      {'session_days': 1.5}, {'sessions_most': 0}, {'sessions_most': 101}, {'other': 1}, {'registration': ['open']}])
def test_a_malformed_configuration_is_refused(team, accounts):
    refused('AARG', configure, team, 'team', accounts=accounts)
    configured = team.op('z', 'ns', {'get': 'team'}, admin=True)['out']
    assert configured['accounts'] == OPEN and 'malformed' not in configured


def test_accounts_and_a_public_access_exclude_each_other(team):
    for access in ('read', 'open'):
        assert '/param/set/accounts' == refused('AARG', configure, team, 'team', access=access).body['at']
        assert 'rules or closed' in team.admin('ns', 'access', 'team', access, status=1).text
    assert 'rules or closed' in refused('AARG', configure, team, 'lab', accounts=OPEN).body['detail']
    assert 'closed' in team.admin('ns', 'accounts', 'lab', json.dumps(OPEN), status=1).text


def test_stampctl_configures_accounts(team):
    assert json.loads(team.admin('ns', 'accounts', 'team').out) == OPEN
    assert team.admin('ns', 'accounts', 'lab').out == ''
    assert 'expected' in team.admin('ns', 'accounts', 'team', '{"registration":"all"}', status=1).text
    team.admin('ns', 'accounts', 'club', json.dumps({**OPEN, 'session_days': 7}))
    assert json.loads(team.admin('ns', 'accounts', 'club').out)['session_days'] == 7
    configure(team, 'club', accounts=OPEN)


SECRET = 'what-only-the-administrator-may-read'
NAME = {'c': 'Account', 'id': 'secret'}
PATHS = {
    'get': ('POST', 'op/get', {'param': {'docs': [NAME]}}),
    'get, tolerance': ('POST', 'op/get', {'param': {'docs': [{**NAME, 'age': 60}]}}),
    'sync': ('POST', 'op/sync', {'syncs': [NAME]}),
    'beside another': ('POST', 'op/pushkey', {'syncs': [NAME]}),
    'list': ('POST', 'op/list', {'param': {'c': 'Account'}}),
    'find': ('POST', 'op/find', {'param': {'c': 'Account', 'i': 'Self', 'want': 'items', 'id': {'t': 'eq', 'v1': 'secret'}}}),
    'subs': ('POST', 'op/subs', {'param': {'defs': ['Account']}, 'session': 'a-session-of-somebody'}),
    'put': ('POST', 'op/put', {'param': {'docs': [{**NAME, 'if': 5}]}}),
    'copy': ('POST', 'op/copy', {'param': {'docs': [NAME]}}),
    'GET': ('GET', 'doc/Account/secret', None),
    'PATCH': ('PATCH', 'doc/Account/secret', {'items': []}),
    'DELETE': ('DELETE', 'doc/Account/secret', None),
    'live': ('GET', 'live?def=Account', None),
}


@pytest.mark.parametrize('accounts', [OPEN, 7, None, {'registration': 'all'}])
@pytest.mark.parametrize('access', ['read', 'open', 'closed', 'rules'])
def test_no_access_discloses_accounts(team, access, accounts):
    """Also one that was written past the operations that refuse it, and beside a member that cannot be read."""
    conf = team.get('z', ('Namespace', 'club'), admin=True)['items'][0]['j']
    team.put('club', {**NAME, 'items': [{'c': 'Self', 'j': {'created': 1, 'name': SECRET}}]}, admin=True)
    team.write_configuration('club', 'Conf', json.dumps({**conf, 'access': access, 'accounts': accounts}))
    try:
        for path, (method, where, body) in PATHS.items():
            if (access, path) == ('rules', 'live'):
                continue  # a stream, on which nothing of accounts is sent: test_live_rules.py
            answers = []
            for id_ in ('secret', 'nobody', 'secret'):
                body_of = json.loads(json.dumps(body).replace('secret', id_))
                answer = team.http.request(method, f'{team.url}/club/{where.replace("secret", id_)}', json=body_of, timeout=60)
                text = answer.text.replace(id_, 'ID')
                if path == 'subs':  # a new session becomes an old one with time
                    text = re.sub(r'"v":\d+,"until":\d+', '"v":NOW,"until":LATER', text).replace(',"trial":true', '')
                answers.append((answer.status_code, text))
            assert answers[0] == answers[1] == answers[2], path
            assert SECRET not in answers[0][1] and '"v":2' not in answers[0][1], path
            assert access == 'rules' or answers[0][0] in (401, 403), path
        if access in ('read', 'open'):
            assert team.op('z', 'ns', {'get': 'club'}, admin=True)['out']['malformed'] == 'accounts'
    finally:
        team.put('z', {'c': 'Namespace', 'id': 'club', 'items': [{'c': 'Conf', 'j': conf}]}, admin=True)


def test_accounts_are_not_removed_from_a_configuration(team):
    assert 'cannot be removed' in refused('AARG', team.op, 'z', 'ns', {'set': {'ns': 'team', 'accounts': None}}, admin=True).body['detail']


# --- registering, logging in ---

NAMES = (f'ann{number}' for number in range(1000))


def account(stack, name, param=None, ns='team', token=None, headers=None, **more):
    """Runs an operation on accounts; the answer, or Problem."""
    answer = ask(stack, ns, {**(bearer(token) if token else {}), **(headers or {})}, name, param=param or {}, **more)
    if answer.status_code != 200:
        raise Problem(answer)
    return answer.json().get('out')


def register(stack, name=None, ns='team', **param):
    name = name or next(NAMES)
    return name, account(stack, 'register', {'name': name, 'password': PASSWORD, **param}, ns)


def administer(stack, ns='team', **act):
    return stack.op(ns, 'accounts', act, admin=True)['out']


def test_an_account_from_register_to_delete(team):
    name, made = register(team, address='ann@example.org', device='a phone')
    assert set(made) == {'account', 'token', 'expires'} and len(made['account']) == 22
    own = account(team, 'account', token=made['token'])
    assert own == {'account': made['account'], 'name': name, 'address': 'ann@example.org', 'roles': [], 'created': own['created']}
    again = account(team, 'login', {'name': name.upper(), 'password': PASSWORD})
    assert again['account'] == made['account'] and again['token'] != made['token']
    listed = account(team, 'sessions', token=again['token'])['sessions']
    assert len(listed) == 2 and [one.get('device') for one in listed if not one.get('current')] == ['a phone']
    assert account(team, 'logout', token=again['token']) == {'ended': 1}
    refused('SKEY', account, team, 'account', token=again['token'], status=401)
    assert account(team, 'account', {'delete': True, 'password': PASSWORD}, token=made['token']) == {'deleted': True}
    refused('SKEY', account, team, 'account', token=made['token'], status=401)
    refused('SKEY', account, team, 'login', {'name': name, 'password': PASSWORD}, status=401)
    assert register(team, name)[1]['account'] != made['account']


def test_the_database_has_digests_only(team):
    name, made = register(team)
    rows = json.dumps(team.get('team', ('Account', made['account']), admin=True))
    assert '$argon2id$v=19$m=19456,t=2,p=1$' in rows and PASSWORD not in rows and made['token'][26:] not in rows
    assert hashlib.sha256(made['token'][26:].encode()).hexdigest() in rows


def test_names_are_unique_without_regard_to_case(team):
    name, made = register(team, next(NAMES).title())
    for same in (name, name.upper(), name.lower()):
        refused('AUNIQUE', register, team, same, status=409)
    other, _ = register(team)
    token = account(team, 'login', {'name': other, 'password': PASSWORD})['token']
    refused('AUNIQUE', account, team, 'account', {'set': {'name': name.upper()}, 'password': PASSWORD}, token=token)
    assert account(team, 'account', token=token)['name'] == other


def test_a_name_is_free_again_after_a_change(team):
    first, made = register(team)
    second = next(NAMES)
    assert account(team, 'account', {'set': {'name': second}, 'password': PASSWORD}, token=made['token'])['name'] == second
    refused('SKEY', account, team, 'login', {'name': first, 'password': PASSWORD}, status=401)
    assert account(team, 'login', {'name': second, 'password': PASSWORD})['account'] == made['account']
    register(team, first)
    assert account(team, 'account', {'set': {'name': second.upper()}, 'password': PASSWORD}, token=made['token'])['name'] == second.upper()


def test_one_of_many_gets_a_name(team):
    name = next(NAMES)
    with ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(lambda _: ask(team, 'team', {}, 'register', param={'name': name, 'password': PASSWORD}).status_code, range(6)))
    assert codes.count(200) == 1 and set(codes) <= {200, 409, 429}, codes


@pytest.mark.parametrize('param', [{}, {'name': 'x'}, {'password': PASSWORD}, {'name': '', 'password': PASSWORD}, {'name': 'a b', 'password': PASSWORD}, {'name': 'é', 'password': PASSWORD},
                                   {'name': 'x' * 129, 'password': PASSWORD}, {'name': 'x', 'password': '1234567'}, {'name': 'x', 'password': 'x' * 1025}, {'name': 7, 'password': PASSWORD},
                                   {'name': 'x', 'password': 7}, {'name': 'x\n', 'password': PASSWORD}, {'name': 'x', 'password': PASSWORD, 'device': 'x' * 201},
                                   {'name': 'x', 'password': PASSWORD, 'device': '\t'}, {'name': 'x', 'password': PASSWORD, 'cookie': 1}, {'name': 'x', 'password': PASSWORD, 'other': 1},
                                   {'name': 'x', 'password': None}, 7, [], 'x'])
def test_malformed_arguments_are_refused(team, param):
    for operation in ('login', 'register'):
        if param != {} or operation == 'login':  # register without a name: an anonymous account
            assert ask(team, 'team', {}, operation, param=param).json()['code'] == 'AARG' or (operation == 'register' and param in (7, [], 'x')), (operation, param)


@pytest.mark.parametrize('password', ['        ', '12345678', 'x' * 1024, 'пароль-пароль', '"\\/\b"\\/\b', "' or 1=1; --", '\x7f' * 8, '$argon2id$v=19$m=19456,t=2,p=1$AAAA$AAAA'])
def test_every_password_works(team, password):
    name, made = register(team, password=password)
    assert account(team, 'login', {'name': name, 'password': password})['account'] == made['account']
    for wrong in (password + 'x' if len(password) < 1024 else password[:-1], password.swapcase() + '.'):
        if 8 <= len(wrong.encode()) <= 1024:
            refused('SKEY', account, team, 'login', {'name': name, 'password': wrong}, status=401)


def masked(answer):
    return answer.status_code, comparable(answer.headers), answer.text


def test_a_login_does_not_disclose_whether_the_account_exists(team):
    name, made = register(team)
    disabled, other = register(team)
    administer(team, set={'account': other['account'], 'disabled': True})
    answers = [masked(ask(team, 'team', {}, 'login', param={'name': who, 'password': password}))
               for who, password in ((name, 'not the password'), (next(NAMES), PASSWORD), (disabled, PASSWORD), (disabled, 'not the password'))]
    assert all(answer == answers[0] for answer in answers), answers
    assert answers[0][0] == 401


def test_a_login_costs_the_same_whether_the_account_exists(team):
    """In processor time of the workers, which other programs on the machine do not use up."""
    there, not_there = [register(team)[0] for _ in range(6)], [next(NAMES) for _ in range(6)]

    def ticks():
        return sum(sum(map(int, process_state(pid)[11:13])) for pid in team.worker_pids())

    def cost(names):
        before = ticks()
        for name in names * 3:
            refused('SKEY', account, team, 'login', {'name': name, 'password': 'not the password'})
        return ticks() - before
    of_some, of_none = cost(there), cost(not_there)
    assert of_none > 10 and 0.5 < of_some / of_none < 2, (of_some, of_none)


# --- sessions ---

def test_sessions_are_bounded_and_the_oldest_goes(team):
    name, made = register(team)
    tokens = [made['token']] + [account(team, 'login', {'name': name, 'password': PASSWORD})['token'] for _ in range(5)]
    valid = [verdict(ask(team, 'team', bearer(token))) == 'known' for token in tokens]
    assert valid == [False, False, True, True, True, True]
    assert len(account(team, 'sessions', token=tokens[-1])['sessions']) == 4


def test_a_session_expires_and_is_removed_at_login(team):
    name, made = register(team)
    CLOCK.set(30 * 1440 - 2)
    try:
        assert account(team, 'account', token=made['token'])['name'] == name
        CLOCK.set(30 * 1440 + 2)
        refused('SKEY', account, team, 'account', token=made['token'], status=401)
        fresh = account(team, 'login', {'name': name, 'password': PASSWORD})
        items = team.get('team', ('Account', made['account']), admin=True)['items']
        assert len([item for item in items if item['c'] == 'Sess']) == 1
        assert account(team, 'account', token=fresh['token'])['name'] == name
    finally:
        CLOCK.set(0)


def test_sessions_are_revoked(team):
    name, made = register(team)
    tokens = [made['token']] + [account(team, 'login', {'name': name, 'password': PASSWORD})['token'] for _ in range(3)]
    listed = account(team, 'sessions', token=tokens[0])['sessions']
    one = next(session['session'] for session in listed if hashlib.sha256(tokens[1][26:].encode()).hexdigest().startswith(session['session']))
    assert account(team, 'sessions', {'revoke': one}, token=tokens[0]) == {'ended': 1}
    assert [verdict(ask(team, 'team', bearer(token))) for token in tokens] == ['known', 'refused', 'known', 'known']
    assert account(team, 'sessions', {'revoke': one}, token=tokens[0]) == {'ended': 0}
    assert account(team, 'sessions', {'revoke': 'others'}, token=tokens[0]) == {'ended': 2}
    assert [verdict(ask(team, 'team', bearer(token))) for token in tokens] == ['known', 'refused', 'refused', 'refused']
    assert account(team, 'sessions', {'revoke': 'all'}, token=tokens[0]) == {'ended': 1}
    assert verdict(ask(team, 'team', bearer(tokens[0]))) == 'refused'
    other = register(team)[1]
    for wrong in ('', 'x', one + 'x', one[:-1], 7, ['all']):
        refused('AARG', account, team, 'sessions', {'revoke': wrong}, token=other['token'])


def test_a_new_password_ends_all_other_sessions(team):
    name, made = register(team)
    other = account(team, 'login', {'name': name, 'password': PASSWORD})['token']
    for password in (None, 'not the password'):
        refused('AARG' if not password else 'SKEY', account, team, 'account', {'set': {'password': 'another password'}, 'password': password}, token=made['token'])
    account(team, 'account', {'set': {'password': 'another password'}, 'password': PASSWORD}, token=made['token'])
    assert [verdict(ask(team, 'team', bearer(token))) for token in (made['token'], other)] == ['known', 'refused']
    refused('SKEY', account, team, 'login', {'name': name, 'password': PASSWORD}, status=401)
    account(team, 'login', {'name': name, 'password': 'another password'})


# --- anonymous accounts ---

def test_an_anonymous_account_is_converted_and_keeps_its_id(team):
    made = account(team, 'register')
    assert account(team, 'account', token=made['token'])['anonymous'] is True
    name = next(NAMES)
    for wrong in ({'name': name}, {'password': PASSWORD}):
        refused('AARG', account, team, 'account', {'set': wrong}, token=made['token'])
    account(team, 'account', {'set': {'address': 'a@b.c'}}, token=made['token'])
    after = account(team, 'account', {'set': {'name': name, 'password': PASSWORD}}, token=made['token'])
    assert after['account'] == made['account'] and 'anonymous' not in after and after['address'] == 'a@b.c'
    assert account(team, 'login', {'name': name, 'password': PASSWORD})['account'] == made['account']
    assert account(team, 'account', token=made['token'])['name'] == name


# --- registration ---

@pytest.fixture
def club(team):
    yield team
    configure(team, 'club', accounts=OPEN)


def test_an_anonymous_account_is_converted_as_far_as_registration_allows(club):
    for registration in ('closed', 'invitation'):
        configure(club, 'club', accounts={**OPEN, 'registration': registration})
        made, name = account(club, 'register', ns='club'), next(NAMES)
        administer(club, 'club', set={'account': made['account'], 'roles': ['tester']})
        invitation = administer(club, 'club', invite={'roles': ['editor']})['invitation']

        def convert(token=made['token'], name=name, **more):
            return account(club, 'account', {'set': {'name': name, 'password': PASSWORD}, **more}, ns='club', token=token)
        refused('SCLOSED', convert)
        if registration == 'closed':
            refused('SCLOSED', convert, invitation=invitation)
            assert administer(club, 'club', set={'account': made['account'], 'name': name, 'password': PASSWORD})['name'] == name
            continue
        refused('SKEY', convert, invitation='wrong', status=401)
        refused('AARG', account, club, 'account', {'set': {'address': 'a@b.c'}, 'invitation': invitation}, ns='club', token=made['token'])
        assert account(club, 'account', ns='club', token=made['token'])['anonymous']
        assert convert(invitation=invitation)['roles'] == ['editor', 'tester']
        other = account(club, 'register', ns='club')
        refused('SKEY', convert, token=other['token'], name=next(NAMES), invitation=invitation, status=401)  # it is used up
        account(club, 'account', {'set': {'name': next(NAMES)}, 'password': PASSWORD}, ns='club', token=made['token'])  # its second name


def test_registration_by_invitation(club):
    configure(club, 'club', accounts={'registration': 'invitation'})
    assert 'invitation' in refused('SCLOSED', register, club, ns='club', status=401).body['detail']
    refused('SCLOSED', account, club, 'register', ns='club')  # no anonymous ones
    invitation = administer(club, 'club', invite={'roles': ['editor', 'admin', 'editor'], 'days': 2})['invitation']
    for wrong in ('', 'x', invitation[:-1], invitation + 'A', invitation.swapcase()):
        refused('SKEY', register, club, ns='club', invitation=wrong, status=401)
    name, made = register(club, ns='club', invitation=invitation)
    assert account(club, 'account', ns='club', token=made['token'])['roles'] == ['admin', 'editor']
    refused('SKEY', register, club, ns='club', invitation=invitation, status=401)  # it is used up
    late = administer(club, 'club', invite={'days': 1})['invitation']
    CLOCK.set(1440 + 2)
    try:
        refused('SKEY', register, club, ns='club', invitation=late, status=401)
    finally:
        CLOCK.set(0)


def test_a_taken_name_does_not_use_up_an_invitation(club):
    configure(club, 'club', accounts={'registration': 'invitation'})
    name = next(NAMES)
    administer(club, 'club', create={'name': name, 'password': PASSWORD})
    invitation = administer(club, 'club', invite={})['invitation']
    refused('AUNIQUE', register, club, name, 'club', invitation=invitation)
    register(club, ns='club', invitation=invitation)


def test_registration_is_closed(club):
    configure(club, 'club', accounts={})
    invitation = administer(club, 'club', invite={})['invitation']
    refused('SCLOSED', register, club, ns='club', status=401)
    refused('SCLOSED', register, club, ns='club', invitation=invitation, status=401)
    name = next(NAMES)
    made = administer(club, 'club', create={'name': name, 'password': PASSWORD, 'roles': ['editor']})
    assert account(club, 'login', {'name': name, 'password': PASSWORD}, ns='club')['account'] == made['account']


# --- the administrator ---

def test_the_administrator_finds_and_changes_accounts(team):
    name, made = register(team, address='a@b.example')
    found = administer(team, find=name.upper())
    assert found == administer(team, get=made['account']) and found['account'] == made['account'] and len(found['sessions']) == 1
    assert administer(team, set={'account': made['account'], 'roles': ['b', 'a', 'b'], 'address': None})['roles'] == ['a', 'b']
    assert 'address' not in administer(team, get=made['account'])
    assert administer(team, revoke={'account': made['account'], 'session': found['sessions'][0]['session']}) == {'ended': 1}
    refused('SKEY', account, team, 'account', token=made['token'])
    administer(team, set={'account': made['account'], 'password': 'set by the administrator'})
    token = account(team, 'login', {'name': name, 'password': 'set by the administrator'})['token']
    assert administer(team, delete=made['account']) == {'deleted': True}
    refused('SKEY', account, team, 'account', token=token)
    for act in ({'get': made['account']}, {'find': name}, {'set': {'account': made['account']}}, {'revoke': {'account': made['account']}}, {'delete': made['account']}):
        refused('NDOCUMENT', administer, team, **act)


@pytest.mark.parametrize('act', [{}, {'find': 7}, {'get': ''}, {'find': 'a b'}, {'set': 7}, {'set': {}}, {'set': {'account': 'x', 'other': 1}}, {'find': 'a', 'get': 'b'},
                                 {'invite': {'days': 0}}, {'invite': {'roles': 'a'}}, {'invite': {'roles': ['a b']}}, {'key': {'label': 7}}, {'create': {'name': 'x'}},
                                 {'create': {'password': PASSWORD}}, {'revoke': {'account': 'x', 'session': 'y'}}, {'invite': {'roles': ['r'] * 33}}, {'other': 1}])
def test_malformed_acts_of_the_administrator_are_refused(team, act):
    refused('AARG', administer, team, **act)


def test_strangers_are_no_administrators(team):
    made = register(team)[1]
    for headers in ({}, bearer(made['token'])):
        for act in ({'get': made['account']}, {'set': {'account': made['account'], 'roles': ['admin']}}, {'key': {}}, {'invite': {}}):
            assert ask(team, 'team', headers, 'accounts', param=act).json()['code'] == 'SCLOSED'
    refused('AARG', account, team, 'account', {'set': {'roles': ['admin']}, 'password': PASSWORD}, token=made['token'])
    refused('AARG', account, team, 'account', {'set': {'disabled': False}, 'password': PASSWORD}, token=made['token'])


def test_a_service_key_is_an_account_that_nobody_logs_in_to(team):
    made = administer(team, key={'label': 'nightly', 'roles': ['robot']})
    assert made['key'].startswith('sk_')
    CLOCK.set(3650 * 1440)
    try:
        assert verdict(ask(team, 'team', bearer(made['key']))) == 'known'  # it does not expire
    finally:
        CLOCK.set(0)
    for operation, param in (('account', {}), ('account', {'set': {'name': 'robot', 'password': PASSWORD}}), ('account', {'delete': True}), ('sessions', {'revoke': 'all'}), ('logout', {})):
        refused('SCLOSED', account, team, operation, param, token=made['key'], status=403)
    second = administer(team, key={'account': made['account']})
    assert second['account'] == made['account'] and second['key'] != made['key']
    listed = administer(team, get=made['account'])
    assert listed['roles'] == ['robot'] and [one['service'] for one in listed['sessions']] == [True, True]
    assert administer(team, revoke={'account': made['account']}) == {'ended': 2}
    for token in (made['key'], second['key']):
        assert verdict(ask(team, 'team', bearer(token))) == 'refused'
    person = register(team)[1]
    refused('AARG', administer, team, key={'account': person['account']})


@pytest.mark.parametrize('prefix', ['st', 'sk'])
def test_the_two_kinds_of_tokens_are_not_exchanged(team, prefix):
    made = Made(team, 'team', prefix)
    assert verdict(ask(team, 'team', bearer({'st': 'sk', 'sk': 'st'}[prefix] + made.token[2:]))) == 'refused'


def requests_post(stack, token):
    """The caller's roles, by a connection of its own."""
    answer = requests.post(f'{stack.url}/team/op/account', json={}, headers=bearer(token), verify=stack.http.verify, timeout=60)
    return answer.json()['out']['roles']


def test_roles_take_effect_at_the_next_request_of_every_worker(team):
    """Requests side by side are served by all workers."""
    made = register(team)[1]
    for round_ in range(20):
        roles = [f'role{round_}']
        administer(team, set={'account': made['account'], 'roles': roles})
        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(lambda _: requests_post(team, made['token']), range(12))) == [roles] * 12


# --- cookies ---

def test_a_cookie_instead_of_a_token(team):
    name = next(NAMES)
    answer = ask(team, 'team', {}, 'register', param={'name': name, 'password': PASSWORD, 'cookie': True})
    assert 'token' not in answer.json()['out']
    value, *attributes = answer.headers['Set-Cookie'].split('; ')
    assert set(attributes) == {'Path=/', 'Secure', 'HttpOnly', 'SameSite=Lax', f'Max-Age={30 * 86400}'}
    assert value.startswith('__Host-stampd-team=st_')
    own = {'Cookie': value, 'Origin': ORIGIN}
    assert account(team, 'account', headers=own)['name'] == name
    answer = ask(team, 'team', own, 'logout')
    assert answer.headers['Set-Cookie'].startswith('__Host-stampd-team=; ') and 'Max-Age=0' in answer.headers['Set-Cookie']
    refused('SKEY', account, team, 'account', headers=own)
    assert 'Set-Cookie' not in ask(team, 'team', {}, 'login', param={'name': name, 'password': 'wrong password', 'cookie': True}).headers


def test_a_wrong_password_does_not_end_the_session_of_a_browser(team):
    name, made = register(team)
    own = {**cookie('team', made['token']), 'Origin': ORIGIN}
    answer = ask(team, 'team', own, 'account', param={'set': {'address': 'a@b.c'}, 'password': 'not the password'})
    assert verdict(answer) == 'refused' and 'Set-Cookie' not in answer.headers
    assert account(team, 'account', headers=own)['name'] == name


def test_no_cache_stores_a_token(team):
    name = next(NAMES)
    for operation in ('register', 'login'):
        answer = ask(team, 'team', {}, operation, param={'name': name, 'password': PASSWORD})
        assert answer.status_code == 200 and answer.headers['Cache-Control'] == 'no-store'


@pytest.mark.parametrize('origin, allowed', [({'Origin': ORIGIN}, True), ({'Sec-Fetch-Site': 'same-origin'}, True), ({'Origin': 'https://evil.example'}, False),
                                             ({'Sec-Fetch-Site': 'cross-site'}, False), ({'Sec-Fetch-Site': 'same-site'}, False), ({}, False),
                                             ({'Origin': 'null'}, False), ({'Origin': 'https://evil.example', 'Sec-Fetch-Site': 'cross-site'}, False)])
def test_a_cookie_writes_for_pages_of_listed_origins_only(team, origin, allowed):
    """Also where all origins are listed by a star."""
    made = register(team)[1]
    answer = ask(team, 'team', {**cookie('team', made['token']), **origin}, 'sessions', param={'revoke': 'others'})
    assert (answer.status_code == 200) == allowed and (allowed or answer.json()['code'] == 'SORIGIN'), answer.text
    if 'Origin' in origin or not origin:  # no page sends this header by itself
        assert ask(team, 'team', {**bearer(made['token']), **origin}, 'sessions', param={'revoke': 'others'}).status_code == 200


@pytest.mark.parametrize('origin, allowed', [({'Origin': ORIGIN, 'Sec-Fetch-Site': 'cross-site'}, True), ({'Sec-Fetch-Site': 'same-origin'}, True), ({}, True),
                                             ({'Origin': 'SELF'}, True), ({'Origin': 'https://evil.example'}, False), ({'Origin': 'null'}, False),
                                             ({'Sec-Fetch-Site': 'cross-site'}, False), ({'Sec-Fetch-Site': 'same-site'}, False),
                                             ({'Origin': 'null', 'Sec-Fetch-Site': 'cross-site'}, False), ({'Origin': 'https://evil.example', 'Sec-Fetch-Site': 'cross-site'}, False)])
def test_a_page_logs_its_visitor_in_if_its_origin_is_listed_by_name(team, origin, allowed):
    """By fetch, and by a form that is sent as a top-level navigation; a star among the origins lists none by name."""
    name, wish = next(NAMES), {'password': PASSWORD, 'cookie': True}
    origin = {**origin, **({'Origin': team.url} if origin.get('Origin') == 'SELF' else {})}
    navigation = {'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document', 'Sec-Fetch-User': '?1'} if 'Sec-Fetch-Site' in origin else {}
    register(team, name=name)
    for operation, param in (('register', {**wish, 'name': f'{name}2'}), ('register', {'cookie': True}), ('login', {**wish, 'name': name})):
        for how in ({'json': {'param': param}}, {'data': {'param': json.dumps(param)}}):
            answer = team.http.post(f'{team.url}/team/op/{operation}', headers={**origin, **navigation}, timeout=60, **how)
            team.http.cookies.clear()
            if how.get('json') or not allowed:
                assert ('Set-Cookie' in answer.headers) == allowed and (allowed or (answer.status_code, answer.json()['code']) == (403, 'SORIGIN')), (operation, answer.text)
    without = {name: value for name, value in wish.items() if name != 'cookie'}
    answer = ask(team, 'team', origin, 'login', param={**without, 'name': name})
    assert 'Set-Cookie' not in answer.headers and answer.status_code == (200 if 'Origin' in origin or allowed else 403)


def test_pages_of_origins_listed_by_name_may_send_the_cookie(team):
    for ns, origin, allowed in (('team', ORIGIN, 'true'), ('team', 'https://evil.example', None), ('lab', ORIGIN, None)):
        for method in ('POST', 'OPTIONS'):
            headers = ask(team, ns, {'Origin': origin}, 'sessions', method).headers
            assert headers.get('Access-Control-Allow-Credentials') == allowed, (ns, origin)
            assert headers.get('Access-Control-Allow-Origin') == (None if ns == 'lab' else ORIGIN if allowed else '*')


# --- limits ---

@pytest.fixture
def clients(team):
    with contextlib.ExitStack() as all_:
        yield lambda number: all_.enter_context(Client(team, f'127.0.0.{number}'))


def log_in(client, name, password=PASSWORD):
    answer = client.op('team', 'login', {'name': name, 'password': password})
    return answer.code or answer.status, answer.args if answer.code == 'XBUSY' else None


def until(wanted, act):
    """What is answered until this is: the slower the machine, the more attempts come back meanwhile, one in a minute and a half."""
    answers = [act()]
    while answers[-1] != wanted:
        answers.append(act())
    return answers


def test_attempts_at_a_name_are_limited_for_one_address_only(team, clients):
    name, made = register(team)
    attacker, owner = clients(2), clients(3)
    before = team.refusals('limit_name_attempts')
    for _ in range(5):
        assert log_in(attacker, name, 'not the password') == ('SKEY', None)
    for who, password in ((name, PASSWORD), (name.upper(), 'not the password')):
        assert log_in(attacker, who, password) == ('XBUSY', ['limit_name_attempts', '5'])
    assert team.refusals('limit_name_attempts') == before + 2
    assert log_in(attacker, register(team)[0]) == (200, None)  # another name
    assert log_in(owner, name) == (200, None)
    assert account(team, 'account', token=made['token'])['name'] == name


def test_a_right_password_ends_the_count(team, clients):
    name, client = register(team)[0], clients(4)
    for _ in range(4):
        for _ in range(4):
            assert log_in(client, name, 'not the password') == ('SKEY', None)
        assert log_in(client, name) == (200, None)


def test_attempts_of_one_address_are_limited(team, clients):
    attacker, limit = clients(5), ('XBUSY', ['limit_client_attempts', '40'])
    answers = until(limit, lambda: log_in(attacker, next(NAMES)))
    assert answers[:40] == [('SKEY', None)] * 40 and set(map(str, answers)) == {str(('SKEY', None)), str(limit)}
    registered = [attacker.op('team', 'register', {'name': next(NAMES), 'password': PASSWORD}) for _ in range(4)]
    assert 'limit_client_attempts' in [answer.args[0] for answer in registered if answer.status == 429]
    assert log_in(clients(6), register(team)[0]) == (200, None)


def test_names_that_anonymous_accounts_try_count_too(team, clients):
    taken, guest, client = register(team)[0], account(team, 'register'), clients(8)

    def convert():
        answer = client.ask('POST', '/team/op/account', {'param': {'set': {'name': taken, 'password': PASSWORD}}}, Authorization=f'Bearer {guest["token"]}')
        return answer.code, answer.args if answer.code == 'XBUSY' else None
    answers = until(('XBUSY', ['limit_client_attempts', '40']), convert)
    assert answers[:40] == [('AUNIQUE', None)] * 40


def test_attempts_at_the_own_password_count_too(team, clients):
    name, made = register(team)
    client = clients(7)

    def change(password):
        return client.ask('POST', '/team/op/account', {'param': {'set': {'address': 'a@b.c'}, 'password': password}}, Authorization=f'Bearer {made["token"]}').code
    assert [change('not the password') for _ in range(6)] == ['SKEY'] * 5 + ['XBUSY']


# --- secrets ---

def test_no_answer_with_a_secret_is_kept(team):
    name = next(NAMES)
    for operation, param in (('register', {'name': name, 'password': PASSWORD}), ('login', {'name': name, 'password': PASSWORD})):
        answer = ask(team, 'team', {'Idempotency-Key': 'a-key'}, operation, param=param)
        assert answer.json()['code'] == 'AARG' and answer.json()['args'] == ['Idempotency-Key']
    assert team.psql('team', 'select count(*) from idempotency') == [(0,)]
    for operation in ('login', 'register', 'account', 'accounts'):
        refused('AARG', team.op, 'team', 'task', {'op': operation, 'param': {}}, admin=True)


def test_no_secret_is_logged(team):
    name, password = LOGGED
    made = register(team, name, password=password)[1]
    refused('SKEY', account, team, 'login', {'name': name, 'password': password + 'x'})
    ask(team, 'team', bearer(forged(made['token'])))
    logs = ''.join(team.log(part) for part in ('stampd', 'nginx', 'postgres', 'access'))
    assert password not in logs and made['token'][26:] not in logs and name not in logs


def test_a_namespace_without_accounts_has_no_operations_on_them(team):
    for operation, param in (('register', {}), ('login', {'name': 'x', 'password': PASSWORD}), ('logout', {}), ('account', {}), ('sessions', {})):
        assert 'no accounts' in refused('SCLOSED', account, team, operation, param, ns='lab').body['detail']
    assert 'no accounts' in refused('SCLOSED', team.op, 'lab', 'accounts', {'find': 'x'}, admin=True).body['detail']


def test_a_replay_is_of_the_same_account(team):
    """An answer kept for one account is not sent to another."""
    one, other = register(team)[1], register(team)[1]
    for made in (one, other):
        answers = [ask(team, 'team', {**bearer(made['token']), 'Idempotency-Key': 'the-same'}, 'sessions', param={'revoke': 'others'}) for _ in range(2)]
        assert [answer.headers.get('Idempotency-Replayed') for answer in answers] == [None, 'true']


def test_accounts_in_a_namespace_that_is_read_only(club):
    name, made = register(club, ns='club')
    configure(club, 'club', state=1)
    try:
        assert account(club, 'account', ns='club', token=made['token'])['name'] == name
        assert len(account(club, 'sessions', ns='club', token=made['token'])['sessions']) == 1
        refused('OREADONLY', account, club, 'login', {'name': name, 'password': PASSWORD}, ns='club')
        refused('OREADONLY', account, club, 'logout', ns='club', token=made['token'])
    finally:
        configure(club, 'club', state=0)


def test_a_refusal_for_lack_of_a_place_is_no_attempt(team, clients):
    """Whoever obeyed Retry-After was locked out after 20 s of guesses of others.  From here on the server begins again."""
    name = register(team)[0]
    team.set(argon2_share=1)  # one worker of three

    def guess(client):
        answers = []
        while ('XBUSY', ['limit_name_attempts', '5']) not in answers:
            answers.append(log_in(client, name, 'not the password'))
        return answers
    with ThreadPoolExecutor(6) as pool:
        answers = [answer for some in pool.map(guess, [Client(team, '127.0.0.40') for _ in range(6)]) for answer in some]
    assert answers.count(('SKEY', None)) == 5, 'those that were compared, and no others, were attempts'
    assert ('XBUSY', ['argon2_share', '1']) in answers


def test_the_right_password_gets_in_while_others_guess(team, clients):
    """21 of 25 were refused for lack of a place."""
    name, is_over, places = register(team)[0], threading.Event(), [[] for _ in range(6)]
    team.set(argon2_share=1)

    def guess(number):
        with Client(team, f'127.0.0.{50 + number // 2}') as client:
            while not is_over.is_set():
                answer = log_in(client, f'nobody-{number}-{len(places[number])}', 'not the password')
                places[number].append(answer)
                if answer[1] and answer[1][0] == 'limit_client_attempts':
                    return

    def have_all_failed():
        return (all(('SKEY', None) in places[number] + places[number + 1] for number in (0, 2, 4)) and all(len(some) > 2 for some in places)
                and ('XBUSY', ['argon2_share', '1']) in sum(places, []))
    with ThreadPoolExecutor(6) as pool:
        for number in range(6):
            pool.submit(guess, number)
        try:
            wait_until(have_all_failed, what='a failure of each address, the end of what began before it, and scarce places')
            answers = [log_in(clients(60 + number), name) for number in range(10)]
        finally:
            is_over.set()
    assert answers == [(200, None)] * 10


def test_a_site_has_not_as_many_attempts_as_it_has_addresses(team):
    """A /48 has 65,536 networks of a customer."""
    numbers = itertools.count()

    def register():
        with Connection(team.path / 'run/stampd/worker-0.sock') as connection:
            return connection.ask('/team/op/register', body=b'{}', method='POST', CONTENT_TYPE='application/json', STAMPD_NS='team', STAMPD_DATABASE='stampd_team',
                                  STAMPD_CLIENT=f'2001:db8:7:{next(numbers):x}::1').status
    assert until(429, register)[:160] == [200] * 160


def test_digests_are_computed_by_a_share_of_the_workers(team):
    """At the end of the file: the server begins again."""
    names = [register(team)[0] for _ in range(2)]
    team.set(argon2_share=1)  # one worker of three

    def refusals():
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda number: ask(team, 'team', {}, 'login', param={'name': names[number % 2], 'password': PASSWORD}), range(12)))
        assert {answer.status_code for answer in answers} <= {200, 409, 429}
        assert 200 in [answer.status_code for answer in answers]
        return [answer.json()['args'] for answer in answers if answer.status_code == 429]
    assert wait_until(refusals, what='two logins at the same time')[0] == ['argon2_share', '1']
    assert team.refusals('argon2_share') > 0
    assert team.metrics()['stampd_password_digests'] == 0
    for pid in team.worker_pids():  # a place is not lost with its worker
        team.kill_worker(pid)
    assert wait_until(lambda: ask(team, 'team', {}, 'login', param={'name': names[0], 'password': PASSWORD}).status_code == 200, what='a login')

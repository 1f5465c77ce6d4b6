"""Accounts, seen from outside: credentials of every form, on every way into a namespace; what revokes them; configurations."""
import base64
import hashlib
import json
import os

import pytest

from clock import Clock
from stack import Problem, refused

CLOCK = Clock()
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'club': 'closed', 'lab': 'open'},
         'settings': {**CLOCK.settings, 'limit_anonymous_body_bytes': 65536}}
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


def ask(stack, ns, headers=None, operation='get', method='POST', **body):
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
    made = Made(team)
    for headers, status in (({}, 401), (bearer(made.token), 403), (bearer(forged(made.token)), 401)):
        for method, body in (('GET', None), ('PUT', {'items': []}), ('DELETE', None)):
            answer = team.http.request(method, f'{team.url}/team/doc/Note/one', json=body, headers=headers, timeout=60)
            assert answer.status_code == status, answer.text
    large = {'docs': [{'c': 'Note', 'id': 'x', 'items': [{'c': 'Main', 's': 'x' * 200000}]}]}
    assert ask(team, 'team', bearer(forged(made.token)), 'put', param=large).json()['code'] == 'SKEY'


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
    team.put('z', {'c': 'Namespace', 'id': 'club', 'items': [{'c': 'Conf', 'j': {**conf, 'access': access, 'accounts': accounts}}]}, admin=True)
    try:
        for path, (method, where, body) in PATHS.items():
            answers = []
            for id_ in ('secret', 'nobody', 'secret'):
                body_of = json.loads(json.dumps(body).replace('secret', id_))
                answer = team.http.request(method, f'{team.url}/club/{where.replace("secret", id_)}', json=body_of, timeout=60)
                answers.append((answer.status_code, answer.text.replace(id_, 'ID')))
            assert answers[0] == answers[1] == answers[2], path
            assert SECRET not in answers[0][1] and '"v":2' not in answers[0][1], path
            assert access == 'rules' or answers[0][0] in (401, 403), path
        if access in ('read', 'open'):
            assert team.op('z', 'ns', {'get': 'club'}, admin=True)['out']['malformed'] == 'accounts'
    finally:
        team.put('z', {'c': 'Namespace', 'id': 'club', 'items': [{'c': 'Conf', 'j': conf}]}, admin=True)


def test_accounts_are_not_removed_from_a_configuration(team):
    assert 'cannot be removed' in refused('AARG', team.op, 'z', 'ns', {'set': {'ns': 'team', 'accounts': None}}, admin=True).body['detail']

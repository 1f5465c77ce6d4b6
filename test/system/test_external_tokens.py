"""Tokens of OpenID providers: who they are taken from, what they give, what ends them, and that none other is taken."""
import base64
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from clock import Clock
from listener import Listener
from manager import Manager
from provider import Key, Provider, encode, number
from stack import Problem, refused, wait_until
from test_accounts import bearer, configure
from test_attacks import statements_of

CLOCK = Clock()
PROVIDER = Provider()
OTHER = Provider()
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'club': 'closed', 'bare': 'closed'},
         'settings': {**CLOCK.settings, **PROVIDER.settings, 'live_keepalive_s': 1, 'limit_client_connections': 0,
                      'issuer_keys_refresh_s': 600, 'issuer_keys_most_s': 3600}}
ISSUER = {'issuer': PROVIDER.url, 'audiences': ['app', 'api'], 'roles': {'claim': 'groups', 'map': {'staff': 'editor', 'guests': 'reader'}}}
RULES = {'Note': {'owner': 'Main.owner', 'read': ['owner', 'role:reader', 'role:editor'], 'list': ['role:editor'],
                  'create': ['role:editor'], 'update': ['role:editor']}}
PAUSE = 2  # minutes: after which the keys may be fetched again


def id_of(issuer, subject):
    digest = hashlib.sha256(b'\0'.join(text.encode() for text in ('stampd account', issuer, subject))).digest()
    return encode(digest)[:21] + 'x'


def ask(stack, token, ns='team', operation='account', **body):
    return stack.http.post(f'{stack.url}/{ns}/op/{operation}', json=body, headers=bearer(token), timeout=60)


def unsigned(token):
    """The same with another signature."""
    head, body, signature = token.split('.')
    return f'{head}.{body}.{"B" if signature[0] == "A" else "A"}{signature[1:]}'


def statuses(stack, token, ns='team', times=24):
    """What all workers answer: so often that each has served some."""
    return {ask(stack, token, ns).status_code for _ in range(times)}


def fetch_keys(stack, ns='team'):
    """As the queue manager does; how many fetches."""
    manager = Manager(stack, ns)
    manager.scan()  # creates the tasks; what it creates is due afterwards
    due = [row['id'] for row in manager.scan()['due'] if row['op'] == 'issuers']
    for taskid in due:
        assert manager.run(taskid)['result'] == 'done'
    return len(due)


def ask_anew(stack, token):
    """The answer by recent keys: once a minute has passed, an unknown one is looked for before a token is refused for it."""
    answer = ask(stack, token)
    while answer.json().get('code') == 'XBUSY':
        fetch_keys(stack)
        answer = ask(stack, token)
    return answer


def state(stack, ns='team'):
    return stack.op(ns, 'issuers', {}, admin=True)['out']['issuers']


@pytest.fixture(scope='module')
def team(stack):
    configure(stack, 'team', access='rules', accounts={'issuers': [ISSUER]}, rules=RULES)
    configure(stack, 'club', accounts={'issuers': [{**ISSUER, 'audiences': ['club'], 'jwks': f'{PROVIDER.url}/keys'}]})
    configure(stack, 'bare', accounts={})
    answer = ask(stack, PROVIDER.token())
    assert (answer.status_code, answer.json()['code']) == (429, 'XBUSY'), answer.text
    assert 1 <= int(answer.headers['Retry-After']) <= 60
    assert fetch_keys(stack) == 1 and fetch_keys(stack, 'club') == 1 and fetch_keys(stack) == 0
    return stack


@pytest.fixture(autouse=True)
def unchanged(team):
    yield
    CLOCK.set(0)
    PROVIDER.answers.clear()


@pytest.mark.parametrize('key', PROVIDER.keys, ids=lambda key: key.algorithm)
def test_a_token_signs_in(team, key):
    for _ in range(4):
        answer = ask(team, PROVIDER.token(key=key, groups=['staff', 'unknown', 7]))
        assert answer.status_code == 200, answer.text
        assert answer.json()['out'] == {'account': id_of(PROVIDER.url, 'ann'), 'external': True, 'roles': ['editor'], 'created': 0}
    assert ask(team, PROVIDER.token(aud=['x', 'api'], key=key)).status_code == 200
    assert ask(team, PROVIDER.token(key=key), ns='bare').json()['code'] == 'SKEY'
    token = PROVIDER.token('kim', key=key)
    assert statuses(team, token) == {200} and statuses(team, token, 'club') == {401}  # another audience
    assert ask(team, PROVIDER.token(key=key, aud='club'), ns='club').status_code == 200
    answer = team.http.post(f'{team.url}/team/op/account', json={'key': PROVIDER.token(key=key), 'account': id_of(PROVIDER.url, 'ann')}, timeout=60)
    assert answer.status_code == 200, answer.text
    answer = team.http.post(f'{team.url}/team/op/account', json={'key': PROVIDER.token(key=key), 'account': id_of(PROVIDER.url, 'bob')}, timeout=60)
    assert answer.json()['code'] == 'SKEY'


def test_a_cookie_is_no_place_for_a_token(team):
    headers = {'Cookie': f'__Host-stampd-team={PROVIDER.token()}', 'Origin': team.url}
    assert team.http.post(f'{team.url}/team/op/account', json={}, headers=headers, timeout=60).json()['code'] == 'SKEY'


@pytest.mark.parametrize('claim,path,value', [
    ('roles', 'groups', ['guests', 'staff']), ('words', 'scope', 'openid guests staff'),
    ('path', ['realm', 'roles'], {'roles': ['staff', 'guests', 'guests']})], ids=lambda value: value if isinstance(value, str) else '')
def test_claims_give_roles(team, claim, path, value):
    roles = {'claim': path, 'map': {'staff': 'editor', 'guests': 'reader'}}
    configure(team, 'club', accounts={'issuers': [{**ISSUER, 'roles': roles}]})
    member = path if isinstance(path, str) else path[0]
    assert ask(team, PROVIDER.token(**{member: value}), ns='club').json()['out']['roles'] == ['editor', 'reader']
    for other in ('nobody', ['nobody'], {'staff': 'staff'}, 7, None, [['staff']], {'roles': {'staff': True}}):
        assert ask(team, PROVIDER.token(**{member: other}), ns='club').json()['out']['roles'] == []
    configure(team, 'club', accounts={'issuers': [{**ISSUER, 'audiences': ['club'], 'jwks': f'{PROVIDER.url}/keys'}]})


def test_rules_judge_the_account(team):
    me = id_of(PROVIDER.url, 'carl')
    team.put('team', {'c': 'Note', 'id': 'mine', 'items': [{'c': 'Main', 'j': {'owner': me}}]}, {'c': 'Note', 'id': 'other', 'items': [{'c': 'Main', 'j': {'owner': 'x'}}]}, admin=True)
    wanted = {'docs': [{'c': 'Note', 'id': 'mine'}, {'c': 'Note', 'id': 'other'}]}

    def seen(**claims):
        return [bool(document['v']) for document in ask(team, PROVIDER.token('carl', **claims), operation='get', param=wanted).json()['out']['docs']]
    assert seen() == [True, False] and seen(groups=['guests']) == [True, True]
    new = {'docs': [{'c': 'Note', 'id': 'new', 'items': [{'c': 'Main', 'j': {'owner': me}}]}]}
    assert ask(team, PROVIDER.token('carl', groups=['guests']), operation='put', param=new).json()['code'] == 'SRULE'
    assert ask(team, PROVIDER.token('carl', groups=['staff']), operation='put', param=new).status_code == 200


def test_the_administrator_adds_roles_and_disables(team):
    token, me = PROVIDER.token('dora', groups=['staff']), id_of(PROVIDER.url, 'dora')
    names = {'issuer': PROVIDER.url, 'subject': 'dora'}
    assert team.op('team', 'accounts', {'find': names}, admin=True)['out']['account'] == me
    refused('NDOCUMENT', team.op, 'team', 'accounts', {'get': me}, admin=True)
    out = team.op('team', 'accounts', {'set': {**names, 'roles': ['auditor', 'editor']}}, admin=True)['out']
    assert {**out, 'created': 0} == {'account': me, **names, 'external': True, 'roles': ['auditor', 'editor'], 'created': 0, 'sessions': []}
    assert ask(team, token).json()['out']['roles'] == ['auditor', 'editor']
    team.op('team', 'accounts', {'set': {'account': me, 'disabled': True}}, admin=True)
    assert ask(team, token).json()['code'] == 'SKEY'
    team.op('team', 'accounts', {'set': {**names, 'disabled': False, 'roles': []}}, admin=True)
    assert ask(team, token).json()['out']['roles'] == ['editor']
    team.op('team', 'accounts', {'delete': me}, admin=True)
    assert ask(team, token).json()['out']['roles'] == ['editor']
    for wrong in ({'issuer': OTHER.url, 'subject': 'dora'}, {'issuer': PROVIDER.url}, {'issuer': PROVIDER.url, 'subject': 'x' * 256},
                  {**names, 'password': 'correct horse battery'}, {**names, 'name': 'Dora'}):
        refused('AARG', team.op, 'team', 'accounts', {'set': wrong}, admin=True)


def test_an_account_of_a_provider_is_managed_there(team):
    for operation, param in (('account', {'set': {'address': 'a@b.c'}}), ('account', {'delete': True}), ('sessions', {}), ('logout', {})):
        assert ask(team, PROVIDER.token(), operation=operation, param=param).json()['code'] == 'SCLOSED'
    assert ask(team, f'st_{id_of(PROVIDER.url, "ann")}.{"A" * 43}').json()['code'] == 'SKEY'


# --- hostile tokens ------------------------------------------------------------------------------


def hmac_of(secret):
    return lambda text: hmac.new(secret, text, hashlib.sha256).digest()


def headers_of(key):
    yield from ({**key.header(), 'alg': alg} for alg in ('none', 'None', 'NONE', 'nOnE', '', 'HS256', 'HS512', 'RS384', 'PS256', 'ES384', 'rs256', 'es256', 'eddsa', 'RS256 ', 'RS256\u0001', 'EdDSA,RS256', None, 7, ['RS256'], {'RS256': 1}))
    yield from ({**key.header(), 'alg': other.algorithm} for other in PROVIDER.keys if other is not key)
    yield from ({**key.header(), 'kid': kid} for kid in ('', None, 7, ['rsa'], '../../../../dev/null', '/etc/passwd', "rsa' or '1'='1", 'rsa\\u0000', 'x' * 2000, 'RSA', ' rsa', 'unknown'))
    yield from ({**key.header(), 'crit': crit} for crit in ([], ['exp'], 'exp', None))
    yield from ({**key.header(), 'typ': typ} for typ in ('JWE', 'secevent+jwt', '', 7, 'JWT ', 'text/JWT'))


def texts_of_headers(key):
    """Not what json.dumps makes."""
    sound = json.dumps(key.header())
    yield from ('', '{}', '[]', 'null', '7', f'[{sound}]', sound[:-1], sound + '}', sound + ' x', '\ufeff' + sound, sound.replace('"alg"', '"alg":"none","alg"'),
                sound[:-1] + ',"alg":"none"}', sound[:-1] + ',"\\u0061lg":"RS256"}', '{"a":' * 5000 + '1' + '}' * 5000, sound[:-1] + ',"x":' + '[' * 20 + ']' * 20 + '}', sound[:-1] + ',"x":1e}')


def claims_of():
    now = int(time.time())
    yield from ({'exp': value} for value in (None, now - 61, now - 3600, 0, -1, -9223372036854775808, str(now + 600), now - 61.5, True, [now + 600], {'a': now}, 9999999999999))
    yield from ({'nbf': value} for value in (now + 120, now + 10 ** 6, str(now), now + 120.5, True))
    yield from ({'iat': value} for value in (now + 120, 'now', [now]))
    yield from ({'aud': value} for value in (None, '', 'App', 'app ', 'other', [], ['other'], [['app']], {'app': 'app'}, ['app', 7], 7, True, 'app,api', ['app api']))
    yield from ({'iss': value} for value in (None, '', OTHER.url, PROVIDER.url + '/', PROVIDER.url.upper(), ' ' + PROVIDER.url, [PROVIDER.url], PROVIDER.url + '\\u0000', PROVIDER.url + '?', 7))
    yield from ({'sub': value} for value in (None, '', 7, ['ann'], {'ann': 1}, 'x' * 256))


def texts_of_claims():
    sound = json.dumps(PROVIDER.claims())
    yield from (sound.replace('"exp": ', '"exp": 1e'), sound.replace('"exp": ', '"exp": -'), sound[:-1].replace('"exp"', '"x"') + ',"exp":1e400}',
                sound[:-1].replace('"exp"', '"x"') + ',"exp":4e99}', sound[:-1] + ',"sub":"admin"}', sound[:-1] + ',"aud":"app"}', sound[:-1] + ',"s\\u0075b":"admin"}',
                sound + sound, f'[{sound}]', '', '{}', '{"a":' * 3000 + '1' + '}' * 3000, sound[:-1].encode() + b',"x":"\xed\xa0\x80"}', sound[:-1].encode() + b',"x":"\xff"}', sound[:-1] + ',"x":"\\ud800"}', sound[:-1] + ',"x":"\\u0000"}')


def signatures(key):
    """What a sound text is signed with instead."""
    sound = key.sign
    yield 'none', lambda text: b''
    yield 'cut', lambda text: sound(text)[:-1]
    yield 'longer', lambda text: sound(text) + b'\0'
    yield 'before', lambda text: b'\0' + sound(text)
    yield 'zero', lambda text: bytes(len(sound(text)))
    yield 'ones', lambda text: b'\xff' * len(sound(text))
    yield 'flipped', lambda text: bytes([sound(text)[0] ^ 1]) + sound(text)[1:]
    yield 'of another text', lambda text: sound(text + b' ')
    yield 'twice', lambda text: sound(text) * 2
    yield 'huge', lambda text: sound(text) * 20
    if key.algorithm == 'ES256':
        order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551
        yield 'DER', lambda text: key.pair.sign(text, ec.ECDSA(hashes.SHA256()))
        yield 'r 0', lambda text: bytes(32) + sound(text)[32:]
        yield 's 0', lambda text: sound(text)[:32] + bytes(32)
        yield 'r n', lambda text: order.to_bytes(32, 'big') + sound(text)[32:]
        yield 's n', lambda text: sound(text)[:32] + order.to_bytes(32, 'big')
        yield 'swapped', lambda text: sound(text)[32:] + sound(text)[:32]


def hostile():
    rsa, curve, edwards = PROVIDER.keys
    claims = PROVIDER.claims
    for key in PROVIDER.keys:
        yield from (key.token(claims(), header=header) for header in headers_of(key))
        yield from (key.token(claims(), sign=sign) for _, sign in signatures(key))
    yield from (rsa.token(claims(), header=text) for text in texts_of_headers(rsa))
    yield from (curve.token(claims(**wrong)) for wrong in claims_of())
    yield from (edwards.token(text) for text in texts_of_claims())
    public = [rsa.pem, rsa.pem.strip(), json.dumps(rsa.jwk).encode(), base64.urlsafe_b64decode(rsa.jwk['n'] + '=='), b'', b'rsa']
    for alg in ('HS256', 'RS256', 'none'):
        yield from (rsa.token(claims(), header={**rsa.header(), 'alg': alg}, sign=hmac_of(secret)) for secret in public)
    for stranger in (Key('RS256', 'rsa'), Key('ES256', 'curve'), Key('EdDSA', 'edwards')):
        yield stranger.token(claims())
        yield stranger.token(claims(), header=stranger.header(jwk=stranger.jwk, jku=f'{OTHER.url}/keys', x5u=f'{OTHER.url}/keys'))
    yield OTHER.keys[0].token(OTHER.claims())
    sound = rsa.token(claims())
    head, body, signature = sound.split('.')
    yield from (f'{head}.{body}.', f'{head}.{body}', f'{head}..{signature}', f'.{body}.{signature}', f'{sound}.', f'{sound}.{signature}', f'{sound}=', f'{head}=.{body}.{signature}',
                f'{head}.{body}=.{signature}', f'{head} .{body}.{signature}', sound + '%00', sound[:-1], sound[:-1] + ('A' if sound[-1] != 'A' else 'B'), sound + 'A', sound.replace('-', '+').replace('_', '/') + '+',
                f'{body}.{head}.{signature}', f'{signature}.{body}.{head}', 'e.e.e', 'eyJ.eyJ.eyJ', 'e..', f'{head}.{body}.{signature[:5]}', sound.upper(), f'e{"A" * 3000}.{body}.{signature}')
    yield curve.token(claims(aud=['other'] * 900))


def test_hostile_tokens_are_refused(team):
    count, taken = 0, []
    for token in hostile():
        count += 1
        answer = ask_anew(team, token)
        # what has not the form of a token could be the administrator's key
        expected = [('SKEY', 401)] if token.startswith('e') and token.count('.') == 2 else [('SKEY', 401), ('SKEY', 403)]
        if len(token) > 8192:
            expected = [('ALIMIT', 400), ('ALIMIT', 431), ('SKEY', 403)]
        if (answer.json().get('code'), answer.status_code) not in expected:
            taken.append((token, answer.status_code, answer.text))
    assert count >= 150 and not taken, (count, taken[:3])
    assert ask(team, PROVIDER.token()).status_code == 200
    assert OTHER.seen == []


def test_times_may_have_fractions(team):
    """Some providers write them; RFC 7519 allows them (NumericDate)."""
    now = int(time.time())
    for more in ({'exp': now + 600.5}, {'exp': now + 600.336421, 'iat': now - 0.25, 'nbf': now - 0.75}):
        assert ask(team, PROVIDER.token(**more)).status_code == 200
    text = json.dumps(PROVIDER.claims())
    assert ask(team, PROVIDER.keys[2].token(text[:-1].replace('"exp"', '"x"') + ',"exp":4e9}')).status_code == 200


def test_a_token_that_is_too_large_is_refused_by_the_limit(team):
    answer = ask(team, PROVIDER.token(x='y' * 8000))
    assert (answer.status_code, answer.json()['code'], answer.json()['args'][:2]) == (400, 'ALIMIT', ['limit_token_bytes', '8192']), answer.text


def test_tokens_are_not_logged(team):
    token = PROVIDER.token(groups=['staff'])
    assert ask(team, token).status_code == 200
    assert ask(team, unsigned(token)).status_code == 401
    for part_ in token.split('.'):
        assert part_[-40:] not in team.log() + team.log('nginx') + team.log('postgres')


def test_a_token_expires(team):
    """With the longest leeway, five minutes, in which all workers can be asked."""
    assert ask(team, PROVIDER.token(exp=int(time.time()) - 1)).status_code == 200  # the usual leeway, a minute
    configure(team, 'team', accounts={'issuers': [{**ISSUER, 'leeway_s': 300}]})
    now = int(time.time())
    token = PROVIDER.token(exp=now + 120)
    assert statuses(team, token) == {200}
    CLOCK.set(2)
    assert statuses(team, token) == {200}  # the leeway
    CLOCK.set(8)
    assert statuses(team, token) == {401}
    early = PROVIDER.token(nbf=now + 60 * 8 + 600, exp=now + 10000)
    assert ask(team, early).json()['code'] == 'SKEY'
    CLOCK.set(8 + 6)
    assert ask(team, early).status_code == 200
    configure(team, 'team', accounts={'issuers': [ISSUER]})


def test_a_configuration_that_changes_counts_at_once(team):
    token = PROVIDER.token(groups=['staff'])
    assert statuses(team, token) == {200}
    for algorithms, status in (([], None), (['ES256'], 401), (['ES256', 'RS256'], 200)):
        accounts = {'issuers': [{**ISSUER, 'algorithms': algorithms}]}
        if status is None:
            refused('AARG', configure, team, 'team', accounts=accounts)
        else:
            configure(team, 'team', accounts=accounts)
            assert statuses(team, token) == {status}
    configure(team, 'team', accounts={'issuers': []})
    assert ask(team, token).status_code == 401
    configure(team, 'team', accounts={'issuers': [{**ISSUER, 'roles': {'claim': 'groups', 'map': {'staff': 'chief'}}}]})
    assert ask(team, token).json()['out']['roles'] == ['chief']
    configure(team, 'team', accounts={'issuers': [ISSUER]})
    assert ask(team, token).json()['out']['roles'] == ['editor']


def malformed_issuers():
    yield from (7, {}, 'x', [7], [[]], [{}], [ISSUER, ISSUER], [{**ISSUER, 'issuer': f'https://host/{i}'} for i in range(9)])
    changes = {'issuer': ('http://host', 'https://', 'host', 'https://user@host', 'https://host#x', 'https://host?x', 'ftp://host', 7, None, 'https://' + 'x' * 300, 'https://ho st', 'https://host/\u0007'),
               'audiences': ([], 'app', [7], [''], ['a'] * 9, None, {}), 'jwks': ('http://host/x', 'file:///etc/passwd', '', 7, 'https://a b', 'https://user:pass@host/'),
               'algorithms': ([], ['none'], ['HS256'], 'RS256', [7], ['RS256', 'x']), 'leeway_s': (-1, 301, 1.5, '60', True),
               'roles': ({}, [], {'claim': 'a'}, {'map': {'a': 'b'}}, {'claim': 7, 'map': {'a': 'b'}}, {'claim': [], 'map': {'a': 'b'}}, {'claim': ['a'] * 5, 'map': {'a': 'b'}},
                         {'claim': 'a', 'map': {}}, {'claim': 'a', 'map': {'a': 'no role'}}, {'claim': 'a', 'map': {'a': ['b']}}, {'claim': 'a', 'map': {str(i): 'b' for i in range(33)}}, {'claim': 'a', 'map': {'a': 'b'}, 'x': 1}),
               'unknown': (1,)}
    yield from ([{**ISSUER, member: value}] for member, values in changes.items() for value in values)


def test_a_malformed_list_of_issuers_is_refused(team):
    for issuers in malformed_issuers():
        refused('AARG', configure, team, 'bare', accounts={'issuers': issuers})
    configure(team, 'bare', accounts={'issuers': [{**ISSUER, 'jwks': 'https://host:8443/a/b?policy=x', 'leeway_s': 0, 'algorithms': ['EdDSA']}]})
    configure(team, 'bare', accounts={})


# --- keys ----------------------------------------------------------------------------------------


def hurry(minutes):
    CLOCK.set(CLOCK.added + minutes)


# issuer_keys_are_due decides when.
def test_keys_rotate(team):
    old, new = PROVIDER.keys[0], Key('RS256', 'next')
    before = PROVIDER.token()
    assert ask(team, before).status_code == 200
    hurry(PAUSE)
    team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)
    PROVIDER.keys[0] = new
    try:
        after = PROVIDER.token()
        assert ask(team, after).json()['code'] == 'SKEY'  # fetched within the last minute: it is unknown
        hurry(PAUSE)
        seen = len(PROVIDER.seen)
        answers = [ask(team, Key.token(new, PROVIDER.claims(), header=new.header(kid=f'k{i}'))) for i in range(30)] + [ask(team, after)]
        assert {answer.json()['code'] for answer in answers} == {'XBUSY'}  # a flood of unknown keys
        assert [fetch_keys(team) for _ in range(3)] == [1, 0, 0]
        assert len(PROVIDER.seen) - seen == 2  # the configuration and the keys
        assert ask(team, after).status_code == 200
        assert [ask(team, before).status_code for _ in range(4)] == [401] * 4
        assert state(team)[0]['keys'] == ['next', 'curve', 'edwards']
    finally:
        PROVIDER.keys[0] = old
        hurry(PAUSE)
        ask(team, before)
        assert fetch_keys(team) == 1
    assert ask(team, before).status_code == 200


def test_keys_are_fetched_again_when_they_are_old(team):
    hurry(60)
    fetch_keys(team)
    assert fetch_keys(team) == 0
    (before,) = state(team)
    hurry(9)
    wanted = fetch_keys(team)  # what another test has wanted within the last minute of the real clock
    hurry(2 if not wanted else 11)
    assert fetch_keys(team) == 1
    (after,) = state(team)
    assert after['fetched'] > before['fetched'] and after['keys'] == before['keys']


def test_a_provider_that_is_away(team):
    token = PROVIDER.token(exp=int(time.time()) + 100000)
    hurry(60)
    fetch_keys(team)
    assert ask(team, token).status_code == 200
    PROVIDER.answers['/keys'] = 503
    hurry(30)
    assert fetch_keys(team) == 1
    (found,) = state(team)
    assert found['problem'] == 'The request for the keys was answered with status 503.' and len(found['keys']) == 3
    assert ask(team, token).status_code == 200
    hurry(31)
    assert ask(team, token).json()['code'] == 'XBUSY'
    PROVIDER.answers.clear()
    assert fetch_keys(team) == 1
    assert ask(team, token).status_code == 200
    assert 'problem' not in state(team)[0]


def slowly(handler):
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(100):
            handler.wfile.write(b' ')
            time.sleep(0.2)
    except OSError:
        pass


def endlessly(handler):
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b' ' * 65536)
    except OSError:
        pass


def redirect(target):
    return lambda handler: handler.reply('', 302, Location=target)


def sets_of_keys():
    """Answers that are refused as a whole: the keys from before stay."""
    rsa = PROVIDER.keys[0].jwk
    yield from ('', '{}', '[]', 'null', '{"keys":{}}', '{"keys":[]}', '{"keys":[7,null,"x",[]]}', '<html>', PROVIDER.jwks[:-1], PROVIDER.jwks * 2, '{"keys":' + '[' * 5000, '{"keys":[],"keys":[]}',
                PROVIDER.jwks + ' ' * 70000, json.dumps({'keys': [rsa] * 33}))
    alone = [{**rsa, 'kty': 'oct', 'k': 'AAAA'}, {'kty': 'oct', 'kid': 'rsa', 'alg': 'HS256', 'k': encode(b'x' * 32)}, {**rsa, 'use': 'enc'}, {**rsa, 'key_ops': ['encrypt']}, {**rsa, 'alg': 'PS256'}, {**rsa, 'd': 'AQAB'},
             {**rsa, 'e': 'AQ'}, {**rsa, 'e': 'Ag'}, {**rsa, 'e': ''}, {**rsa, 'e': encode(b'\1' * 5)}, {**rsa, 'n': rsa['n'] + '='}, {**rsa, 'n': ''}, {**rsa, 'n': 7}, {**rsa, 'n': '+' + rsa['n'][1:]}, {**rsa, 'kid': 7}, {**rsa, 'kid': 'x' * 256},
             Key('RS256', 'rsa', bits=1024).jwk, {**rsa, 'n': encode(b'\xff' * 1025)}, {**rsa, 'n': number((1 << 2046) + 1)}]
    curve = PROVIDER.keys[1].jwk
    alone += [{**curve, 'crv': 'P-384'}, {**curve, 'crv': 'secp256k1'}, {**curve, 'x': curve['y'], 'y': curve['x']}, {**curve, 'x': number(0, 32), 'y': number(0, 32)}, {**curve, 'x': curve['x'] + 'AAAA'}, {**curve, 'y': None}, {**curve, 'd': 'AA'},
              {'kty': 'OKP', 'crv': 'X25519', 'x': encode(b'x' * 32)}, {'kty': 'OKP', 'crv': 'Ed25519', 'x': encode(b'x' * 31)}, {'kty': 'OKP', 'crv': 'Ed448', 'x': encode(b'x' * 57)}]
    yield from (json.dumps({'keys': [key]}) for key in alone)
    yield from (500, 404, 204, redirect(f'{PROVIDER.url}/keys2'), redirect(f'{OTHER.url}/keys'), redirect('file:///etc/passwd'), endlessly, slowly)


def test_hostile_answers_with_keys(team):
    PROVIDER.answers['/keys2'] = PROVIDER.jwks
    before = state(team)[0]['keys']
    problems = []
    for answer in sets_of_keys():
        PROVIDER.answers['/keys'] = answer
        hurry(PAUSE)
        out = team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)['out']
        problems.append(out.get('problem'))
        assert out['problem'] and out['keys'] == before, (answer, out)
    assert len(problems) >= 45
    assert PROVIDER.seen.count('/keys2') == 0 and OTHER.seen == []
    for word in ('more than 32 keys', 'no key that this server can use', 'not a JWK set', 'too large', 'status 302', 'the time was over'):
        assert any(word in problem for problem in problems), word
    hurry(PAUSE)
    PROVIDER.answers.clear()
    assert 'problem' not in team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)['out']


def test_hostile_configurations(team):
    sound = json.loads(PROVIDER.answer('/.well-known/openid-configuration'))
    wrong = [{**sound, 'issuer': OTHER.url}, {**sound, 'issuer': PROVIDER.url + '/'}, {**sound, 'jwks_uri': PROVIDER.url.replace('https', 'http') + '/keys'}, {**sound, 'jwks_uri': 'file:///etc/passwd'},
             {**sound, 'jwks_uri': 7}, {'issuer': PROVIDER.url}, [], {**sound, 'jwks_uri': 'https://' + 'x' * 600}]
    for answer in [*map(json.dumps, wrong), 'x', '', 404, redirect(f'{OTHER.url}/keys')]:
        PROVIDER.answers['/.well-known/openid-configuration'] = answer
        hurry(PAUSE)
        assert team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)['out']['problem']
    assert OTHER.seen == []
    refused('AARG', team.op, 'team', 'issuers', {'fetch': OTHER.url}, admin=True)
    PROVIDER.answers.clear()
    hurry(PAUSE)
    assert 'problem' not in team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)['out']


def test_keys_with_the_same_name_are_not_used(team):
    twin = Key('RS256', 'rsa')
    PROVIDER.answers['/keys'] = json.dumps({'keys': [twin.jwk, *(key.jwk for key in PROVIDER.keys)]})
    hurry(PAUSE)
    team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)
    for key in (twin, PROVIDER.keys[0]):
        assert ask(team, key.token(PROVIDER.claims())).json()['code'] == 'SKEY'
        assert ask(team, key.token(PROVIDER.claims(), header=key.header(kid=None))).json()['code'] == 'SKEY'
    assert ask(team, PROVIDER.keys[1].token(PROVIDER.claims(), header=PROVIDER.keys[1].header(kid=None))).status_code == 200  # the only one
    PROVIDER.answers.clear()
    hurry(PAUSE)
    team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)


def test_private_addresses_are_refused_by_default(team):
    team.set(issuer_addresses='public')
    try:
        hurry(PAUSE)
        seen = len(PROVIDER.seen)
        out = wait_until(lambda: team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)['out'], what='an answer')
        assert out['problem'] == 'The address of the configuration is not a public one.' and len(PROVIDER.seen) == seen
    finally:
        team.set(issuer_addresses='any')
        hurry(PAUSE)
        assert 'problem' not in team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)['out']


# --- cost, and live events -----------------------------------------------------------------------


def test_a_request_by_token_needs_no_database(team):
    token = PROVIDER.token('eve')
    for _ in range(12):
        assert ask(team, token, operation='get', param={'docs': []}).status_code == 200
    before, _ = statements_of(team, 'team')
    for _ in range(300):
        assert ask(team, token, operation='get', param={'docs': []}).status_code == 200
    after, _ = statements_of(team, 'team')
    assert after - before < 100


def test_live_events_follow_the_token(team):
    me = id_of(PROVIDER.url, 'finn')
    team.put('team', {'c': 'Note', 'id': 'live', 'items': [{'c': 'Main', 'j': {'owner': me}}]}, admin=True)
    with pytest.raises(Problem) as problem:
        Listener(team, 'Note/live', ns='team', headers=bearer(unsigned(PROVIDER.token('finn'))))
    assert problem.value.code == 'SKEY'
    listener = Listener(team, 'Note/live', ns='team', headers=bearer(PROVIDER.token('finn', exp=int(time.time()) + 600)))
    stranger = Listener(team, 'Note/live', ns='team', headers=bearer(PROVIDER.token('gwen')))
    listener.opened(), stranger.opened()
    version = team.put('team', {'c': 'Note', 'id': 'live', 'items': [{'c': 'Main', 'j': {'owner': me, 'n': 1}}]}, admin=True)
    listener.wait_for('Note/live', version)
    assert 'Note/live' not in stranger.told()
    team.op('team', 'accounts', {'set': {'issuer': PROVIDER.url, 'subject': 'gwen', 'roles': ['reader']}}, admin=True)
    wait_until(lambda: [name for name, _ in stranger.events if name == 'reset'], what='a reset')
    version = team.put('team', {'c': 'Note', 'id': 'live', 'items': [{'c': 'Main', 'j': {'owner': me, 'n': 2}}]}, admin=True)
    stranger.wait_for('Note/live', version)
    team.op('team', 'accounts', {'set': {'issuer': PROVIDER.url, 'subject': 'gwen', 'disabled': True}}, admin=True)
    wait_until(lambda: not stranger.is_open, what='the end')
    hurry(12)
    wait_until(lambda: not listener.is_open, what='the end of the token')


def test_live_events_end_when_the_issuer_does(team):
    listener = Listener(team, 'Note/live', ns='team', headers=bearer(PROVIDER.token('hugo')))
    listener.opened()
    configure(team, 'team', accounts={'issuers': [{**ISSUER, 'audiences': ['other']}]})
    wait_until(lambda: not listener.is_open, what='the end')
    configure(team, 'team', accounts={'issuers': [ISSUER]})


def test_live_events_end_when_the_key_does(team):
    hurry(PAUSE)
    listener = Listener(team, 'Note/live', ns='team', headers=bearer(PROVIDER.token('ida', exp=int(time.time()) + 90000)))
    other = Listener(team, 'Note/live', ns='team', headers=bearer(PROVIDER.token('ida', key=PROVIDER.keys[1], exp=int(time.time()) + 90000)))
    listener.opened(), other.opened()
    PROVIDER.answers['/keys'] = json.dumps({'keys': [PROVIDER.keys[1].jwk]})
    team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)
    wait_until(lambda: not listener.is_open, what='the end')
    assert other.is_open
    other.close()
    PROVIDER.answers.clear()
    hurry(PAUSE)
    team.op('team', 'issuers', {'fetch': PROVIDER.url}, admin=True)

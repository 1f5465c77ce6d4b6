"""Hostile passwords, session tokens and cookies, generated: each is refused as a wrong one is, or is a password like any other; never a
fault of the server, never a caller whom it does not prove."""
import json

import pytest

from test_accounts import Made, bearer, configure, random_text

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'team': 'closed'},
         'settings': {'limit_client_attempts': 100000, 'limit_name_attempts': 100000, 'argon2_share': 100}}
OPEN = {'registration': 'open', 'anonymous': True}
NAME = '__Host-stampd-team'


@pytest.fixture(scope='module')
def team(stack):
    configure(stack, 'team', accounts=OPEN)
    return stack


def post(stack, operation, body, headers=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return stack.http.post(f'{stack.url}/team/op/{operation}', data=data, headers={'Content-Type': 'application/json', **(headers or {})}, timeout=60)


# --- passwords ---

WRONG = [*('a' * size for size in range(8)), 'a' * 1025, 'é' * 513, 'a' * 100000, 'aaaaaaa\0', '\0' * 8, 'aaaa\0aaaa', None, True, 1, 12345678, 1e9, [], ['a' * 8], {}, {'a': 'a' * 8}]
RIGHT = ['a' * 8, 'a' * 1024, ' ' * 8, 'é' * 4, '密码密码密码', '\t\r\n\x7f\x1b[0m', '"\\/\b\f\n\r_', "' or 1=1 --", '%00%00%00', '\ufeffaaaaaa', '\u202eaaaaaaaa', '𝒳' * 256, '$argon2id$v=19$m=1,t=1,p=1$aaaa$aaaa']
# Texts that look alike are other passwords: they are compared byte by byte.
ALIKE = [('pass\u00e9word', 'passe\u0301word'), ('\ufb01sh and more', 'fish and more'), ('PASSWORDS', 'passwords'), ('password ', 'password'), ('straße 11', 'strasse 11'),
         ('\u212bngstrom', '\u00c5ngstrom'), ('passwords\u200b', 'passwords')]
BYTES = [b'\xff' * 8, b'\xc0\xaf' * 4, b'\xed\xa0\x80' * 3, b'aaaaaaa\xc3', b'\xf4\x90\x80\x80' * 2, b'\xe2\x82' * 4, b'aaaaaaaa\x00', b'\x80' * 8]
ESCAPES = [b'\\ud800aaaaaaaa', b'\\udc00aaaaaaaa', b'aaaaaaaa\\ud83d', b'\\u0000aaaaaaaa', b'\\xaaaaaaaa', b'\\u12', b'aaaaaaaa\\']


def test_passwords_that_are_none(team):
    for password in WRONG:
        for operation, more in (('register', {'name': random_text(8)}), ('login', {'name': 'nobody'})):
            answer = post(team, operation, {'param': {**more, 'password': password}})
            assert answer.status_code in (400, 401) and answer.json()['code'] in ('AARG', 'AJSON', 'ALIMIT', 'SKEY'), (operation, str(password)[:40], answer.text)


def test_passwords_that_are_no_text(team):
    for octets in (*BYTES, *ESCAPES):
        for operation in ('register', 'login'):
            answer = post(team, operation, b'{"param":{"name":"nobody","password":"' + octets + b'"}}')
            assert answer.status_code in (400, 401) and answer.json()['code'][0] in 'AS', (operation, octets, answer.text)


def test_strange_passwords_are_passwords(team):
    for password in RIGHT:
        name = random_text(8)
        assert post(team, 'register', {'param': {'name': name, 'password': password}}).status_code == 200, password[:40]
        assert post(team, 'login', {'param': {'name': name, 'password': password}}).status_code == 200, password[:40]
        for other in (password[:-1] + ('b' if password[-1] != 'b' else 'c'), 'x' + password[1:]):
            assert post(team, 'login', {'param': {'name': name, 'password': other}}).status_code in (400, 401), password[:40]


def test_passwords_that_look_alike_are_not_the_same(team):
    for one, other in ALIKE:
        name = random_text(8)
        assert post(team, 'register', {'param': {'name': name, 'password': one}}).status_code == 200
        answer = post(team, 'login', {'param': {'name': name, 'password': other}})
        assert (answer.status_code, answer.json()['code']) == (401, 'SKEY'), (one, other)


# --- session tokens ---

def altered(token):
    """Cut at each length, altered at each byte, and whole tokens that are none."""
    yield from (token[:size] for size in range(3, len(token)))
    yield from (token[:place] + ('A' if token[place] != 'A' else 'B') + token[place + 1:] for place in range(3, len(token)))
    yield from (token[:place] + token[place + 1:] for place in range(3, len(token), 4))
    yield from (token[:place] + token[place] + token[place:] for place in range(3, len(token), 4))
    yield from (token[3:].join((prefix, '')) for prefix in ('sk_', 'ST_', 'St_', 'st-', 'st', 's_', 'at_', 'st__', '_st_', 'st_st_'))
    yield from (token.upper(), token.lower(), token.swapcase(), token * 2, token + '.' + token, token + ',' + token, token * 100, 'st_' + 'A' * 4000, 'st_' + '.' * 4000)


def kinds(stack, text, header=True):
    """Refusals of the token in the header and in the argument."""
    answers = [post(stack, 'sessions', {'key': text})] + ([post(stack, 'sessions', {}, bearer(text))] if header else [])
    return {(answer.status_code, answer.json()['code']) for answer in answers}


def test_altered_tokens_are_refused(team):
    token, other = Made(team).token, Made(team).token
    tried = [text for text in altered(token) if text != token]
    assert len(tried) > 180
    for text in tried:
        assert kinds(team, text) <= {(401, 'SKEY'), (403, 'SKEY')}, text[:100]
    for place in range(4, len(token)):  # the id of one account, the secret of another, joined anywhere
        if token[:place] + other[place:] not in (token, other):
            assert kinds(team, token[:place] + other[place:], header=False) == {(401, 'SKEY')}, place
    assert post(team, 'sessions', {}, bearer(token)).status_code == 200


def test_tokens_with_bytes_that_none_has(team):
    token = Made(team).token
    for sign in ('\0', '\n', '\r', '\t', ' ', '"', "'", '\\', '/', '%00', '\u00e9', '\ufeff', '\x7f', '\U0001f511', '+', '=', '&', ';'):
        for text in (token + sign, sign + token, token[:30] + sign + token[31:], token[:30] + sign + token[30:]):
            answer = post(team, 'sessions', {'key': text})
            assert (answer.status_code, answer.json()['code']) == ((400, 'AJSON') if sign == '\0' else (401, 'SKEY')), (sign, answer.text)
    for value in (None, 1, True, [], [token], {}, {'key': token}):
        assert post(team, 'sessions', {'key': value}).status_code in (400, 401, 403), value


# --- cookies ---

def test_cookies(team):
    """Only one cookie of this name, whole and without quotes, is a session; whatever else is sent beside it."""
    token, other = Made(team).token, Made(team).token
    origin = {'Origin': team.url}
    def status(cookies):
        return post(team, 'sessions', {}, {**origin, 'Cookie': cookies}).status_code
    assert status(f'{NAME}={token}') == 200
    for beside in ('a=b', 'a', '=', ';;;', 'a="b;c"', f'x{NAME}={other}', f'{NAME}x={other}', f'{NAME.lower()}={other}', f'__Host-stampd-club={other}', 'a=' + 'b' * 3000,
                   '; '.join(f'c{number}={number}' for number in range(100))):
        for cookies in (f'{beside}; {NAME}={token}', f'{NAME}={token}; {beside}'):
            assert status(cookies) == 200, cookies[:100]
    for cookies in (f'{NAME}={token[:-1]}', f'{NAME}={token}A', f'{NAME}="{token}', f'{NAME}={token}"', f'{NAME}=', f'{NAME}', f'{NAME}={token},{token}', f'{NAME}={other[:26]}{token[26:]}',
                    f'{NAME}=%73{token[1:]}', f'{NAME}={token.upper()}', f'{NAME} = {token[:-1]}', f'a=b;{NAME}={token[:-1]}', f'{NAME}={"A" * 3000}', f'{NAME}=st_{"A" * 3000}'):
        assert status(cookies) in (401, 403), cookies[:100]
    for size in (20000, 60000):
        assert status(f'a={"b" * size}; {NAME}={token}') in (200, 400, 414, 431, 494), size
    assert status(f'{NAME}={token}; {NAME}={other[:-1]}') in (200, 401) and status(f'{NAME}={other[:-1]}; {NAME}={token}') in (200, 401)

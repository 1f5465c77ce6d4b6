"""Subscriptions: names of sessions, definitions, addresses; of each what is nearly right."""
import base64
import json

from hostile import ADMIN, Case, put_text, quoted, refused, request

SUBS = '/lab/op/subs'
SESSION = 'hostile-session-5b1d'
KEY = 'BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU'  # a point of the curve P-256
AUTH = base64.urlsafe_b64encode(bytes(16)).rstrip(b'=').decode()
DEFINITION_BYTES = 2048  # limit_definition_bytes
ADDRESS = {'endpoint': 'https://push.example/telltale-5b1d', 'p256dh': KEY, 'auth': AUTH}

SESSIONS = ('', 'x' * 15, 'x' * 65, 'x' * 15 + ' ', 'x' * 15 + '.', 'x' * 15 + '/', 'x' * 15 + 'é', 'x' * 15 + '\n', '../../../../etc/passwd',
            "x'; delete from subs; --", 'x' * 100_000, '%41' * 8)
DEFINITIONS = ('', ' ', 'hostile', 'Hostile/', '/x', '@', 'Hostile@x', 'Hostile/@x', 'Hostile/%', 'Hostile/%0', 'Hostile/%0g', 'Hostile/%00', 'Hostile/%c3',
               'Hostile/%ed%a0%80', 'H' * 17, 'Host-ile/x', 'Hostile /x', 'Hostile/' + 'i' * 256, 'Hostile/' + '%41' * 256, 'Hostile/9@x', 'Hostile/te am@x',
               'Hostile/' + 't' * 27 + '@x', 'Hostile/team@' + 'x' * 3000, 'Hostile/team' + '@x' * 5, 'Hostile/version@x', 'Hostile/' + '%' * 2000,
               'x' * 1_000_000, 7, None, True, ['Hostile'], {'c': 'Hostile'})
PARAMS = ({'def': []}, {'Defs': []}, {'defs': None}, {'defs': {}}, {'defs': 'Hostile'}, {'defs': [], 'add': []}, {'defs': [], 'drop': []},
          {'add': 7}, {'drop': 'x'}, {'delete': 1}, {'delete': True, 'life': 1}, {'defs': [], 'life': 0}, {'defs': [], 'life': -5},
          {'defs': [], 'life': 1.5}, {'defs': [], 'life': '7'}, {'defs': [], 'life': 2**31}, {'defs': [], 'life': 10**30},
          {'defs': [], 'context': 7}, {'defs': [], 'context': 'x' * 2049}, {'defs': [], 'context': 'é' * 1025}, {'defs': [], 'push': 7},
          {'defs': [], 'push': []}, {'defs': [], 'push': {}}, {'defs': [], 'push': {'endpoint': 'https://x/'}},
          {'defs': [], 'push': {**ADDRESS, 'keys': {}}})
ENDPOINTS = ('', 'https://', 'https:///x', 'http://push.example/', 'HTTPS', 'ftp://push.example/', 'file:///etc/passwd', '//push.example/', 'javascript:alert(1)',
             'https://push.example/ x', 'https://push.example/\n', 'https://push.example/\u0007', 'https://é/', 'https://x/' + 'y' * 3000, 7, None, {})
KEYS = ('', KEY[:-1], KEY + 'A', 'x' + KEY[1:], '+' + KEY[1:], KEY[:40] + '\n' + KEY[41:], KEY + '=====', 7, None, [])
AUTHS = ('', AUTH[:-1], AUTH + 'A', AUTH[:-1] + '/', AUTH + '====', 7, None)


def ask(name, code, param, status=400, session=SESSION, **more):
    body = {'admin': ADMIN.decode(), 'session': session, 'param': param, **more}
    return refused(f'subs: {name}', code, json.dumps(body), status, target=SUBS)


def cases():
    for what in SESSIONS:
        yield ask(f'session {what!r:.24}, {len(what)} long', 'AARG', {'defs': []}, session=what)
        yield refused(f'put: session {what!r:.24}, {len(what)} long', 'AARG', put_text(more=b',"session":%s' % quoted(what).encode()))
    for what in (7, None, [], {}, True):
        yield ask(f'session {what!r}', 'AARG', {'defs': []}, session=what)
    yield refused('subs: no session', 'AARG', json.dumps({'admin': ADMIN.decode(), 'param': {'defs': []}}), target=SUBS)
    for number, what in enumerate(DEFINITIONS):
        for member in ('defs', 'add', 'drop'):
            is_long = isinstance(what, str) and len(what) > DEFINITION_BYTES
            yield ask(f'{member} {number}: {what!r:.24}', 'ALIMIT' if is_long else 'AARG', {member: ['Hostile/x', what]})
    for what in ('Hostile/team@x', 'Hostile/team@x@y', 'Where/in@am-i', 'Namespace/x@y'):
        yield ask(f'{what}, which nobody declared', 'NCOLLECTION', {'defs': [what]}, 404)
    for member in ('defs', 'add', 'drop'):
        yield ask(f'ten thousand {member}', 'ALIMIT', {member: [f'Hostile/{number}' for number in range(10_000)]})
        yield ask(f'a thousand {member} and one, all the same', 'ALIMIT', {member: ['Hostile'] * 1001})
    for number, param in enumerate(PARAMS):
        yield ask(f'{number}: {json.dumps(param)[:40]}', 'AARG', param)
    yield ask('a life of 91 days', 'ALIMIT', {'defs': [], 'life': 91 * 1440})
    for number, what in enumerate(ENDPOINTS):
        yield ask(f'endpoint {number}: {what!r:.30}', 'AARG', {'defs': [], 'push': {**ADDRESS, 'endpoint': what}})
    for number, what in enumerate(KEYS):
        yield ask(f'p256dh {number}: {what!r:.30}', 'AARG', {'defs': [], 'push': {**ADDRESS, 'p256dh': what}})
    for number, what in enumerate(AUTHS):
        yield ask(f'auth {number}: {what!r:.30}', 'AARG', {'defs': [], 'push': {**ADDRESS, 'auth': what}})
    for param in (None, {}, {'drop': ['Hostile']}, {'life': 5}, {'push': None}, {'context': 'telltale-5b1d'}):
        yield ask(f'there is none: {param}', 'NSUBSCRIPTION', param if param is not None else {}, 404)
    yield Case('subs: its end, where there is none', request(target=SUBS, body=json.dumps(
        {'admin': ADMIN.decode(), 'session': SESSION, 'param': {'delete': True}})), 200)

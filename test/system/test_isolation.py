"""Namespaces are isolated: whatever a client has of one namespace (ids, tokens, cursors, keys, digests) is in another, on every address that
takes such a text, worth what an invented text is: the answers are the same, and nothing of the first namespace is in them."""
import hashlib
import json
import re
import string
from types import SimpleNamespace

import pytest

from listener import Listener
from manager import Manager
from post_office import Office
from push_key import CONTACT, PushKey
from push_service import Browser, PushService
from schema import Schemas
from stack import comparable
from test_accounts import Made, bearer, configure, cookie

OPEN, RULED = ('east', 'west'), ('club', 'team')  # texts of the first of each pair are used in the second
STACK = {'workers': 2, 'namespaces': {'z': 'closed', **dict.fromkeys(OPEN, 'open'), **dict.fromkeys(RULED, 'rules')},
         'settings': {}}
SCHEMA = {'Note': {'items': {'Main': {'singleton': True, 'fields': {'team': 'string'}}}, 'collections': {'all': {'key': ['Main.team'], 'mutable': True}}}}
ALL = {right: ['anybody'] for right in ('read', 'list', 'create', 'update', 'delete')}
PASSKEYS = {'rp': 'example.org', 'origins': ['https://example.org']}
CONF = {'registration': 'invitation', 'anonymous': True, 'passkeys': PASSKEYS}
MARK = 'only-in-the-first'
NAME = {'c': 'Note', 'id': 'note'}
SESSION = 'a-session-of-the-first'
SLEEPER = 'a-session-that-is-woken'
ORIGIN = 'https://example.org'


def other(text):
    """An invented text of the same form: another letter or digit in the place of each tenth, and of the last but one."""
    places = set(range(min(5, len(text) - 1), len(text), 10)) | {max(0, len(text) - 2)}
    turned = str.maketrans(string.ascii_letters + string.digits,
                           string.ascii_lowercase[1:] + 'a' + string.ascii_uppercase[1:] + 'A' + string.digits[1:] + '0')
    return ''.join(sign.translate(turned) if place in places else sign for place, sign in enumerate(text))


@pytest.fixture(scope='module', autouse=True)
def services():
    """A mail server, and a push service with the server's key."""
    office = Office()
    with PushKey() as key:
        STACK['settings'] = {**key.settings, 'limit_client_attempts': 100000, 'limit_name_attempts': 100000, 'mail_from': 'a@example.org', 'mail_server': office.url}
        service = PushService(CONTACT)
        yield SimpleNamespace(office=office, key=key, browser=Browser(service))
        service.close()
    office.stop()


@pytest.fixture(scope='module')
def stack_of_both(stack, services, tmp_path_factory):
    stack.services = services
    services.key.enable(stack, services.browser.service, OPEN[0])
    for ns in (*OPEN, *RULED):
        stack.op('z', 'resource', {'put': {'ns': ns, 'files': [{'path': 'note.txt', 's': MARK if ns in (OPEN[0], RULED[0]) else ns}]}}, admin=True)
    for ns in RULED:
        configure(stack, ns, accounts=CONF, rules={'Note': ALL}, origins=[ORIGIN])
    for ns in (*OPEN, *RULED):
        Schemas(stack, tmp_path_factory.mktemp('schemas')).apply(ns, SCHEMA)
    for first, second in (OPEN, RULED):
        stack.put(first, *({'c': 'Note', 'id': id_, 'items': [{'c': 'Main', 'j': {'team': 'red', 'text': MARK}}]} for id_ in ('note', 'other', 'third')), admin=True)
        stack.put(first, {'c': 'Note', 'id': f'{MARK}-id', 'items': [{'c': 'Main', 'j': {'team': MARK}}]}, admin=True)
        stack.put(second, *({'c': 'Note', 'id': id_, 'items': [{'c': 'Main', 'j': {'team': 'red'}}]} for id_ in ('note', 'other', 'third')), admin=True)
    return stack


def last_id(stack, ns):
    listener = Listener(stack, 'Note/note', ns=ns)
    listener.opened()
    listener.wait_for_id()
    listener.close()
    return listener.last


def mail_ticket(stack, ns):
    """The secret of a mail to a person of the namespace."""
    person = Made(stack, ns, address='ann@example.org')
    assert stack.http.post(f'{stack.url}/{ns}/op/confirm', json={}, headers=bearer(person.token), timeout=60).status_code == 200
    (task,) = stack.psql(ns, "select taskid from taskqueue where opname = 'accountmail'")[0]
    assert Manager(stack, ns).run(task)['result'] == 'done'
    return stack.services.office.take().ticket


def texts_of(stack, ns):
    """What a client may have of a namespace, by kind; of a document also its version, its ETag and the name of a view."""
    def op(name, param, **more):
        return stack.op(ns, name, param, **more)['out']
    note = stack.get(ns, ('Note', 'note'))
    by_team = {'c': 'Note', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': 'red'}], 'limit': 1}
    of_all = {'c': 'Note', 'collection': 'all', 'value': 'red', 'limit': 1}
    put = stack.request('POST', f'/{ns}/op/put', json={'param': {'docs': [{**NAME, 'id': 'kept', 'items': []}]}}, headers={'Idempotency-Key': MARK})
    assert put.status_code == 200
    found = {'id': f'{MARK}-id', 'version': str(note['v']), 'etag': f'"{note["v"]}"', 'idempotency': MARK, 'last event': last_id(stack, ns),
             'search cursor': op('find', {**by_team, 'want': 'ids'})['cursor'], 'item cursor': op('find', {**by_team, 'want': 'items'})['cursor'],
             'collection cursor': op('collection', {**of_all, 'want': 'ids'})['cursor'],
             'document cursor': op('collection', {**of_all, 'want': 'docs'})['cursor'],
             'task': op('task', {'op': 'put', 'param': {'docs': [{**NAME, 'items': []}]}, 'start': 991231000000000}, admin=True)['id']}
    found['file digest'] = hashlib.sha256(MARK.encode()).hexdigest()
    attached = stack.http.put(f'{stack.url}/{ns}/doc/Note/other/file/k', data=f'{MARK}, attached'.encode(), timeout=60)
    assert attached.status_code == 201, attached.text
    found['attachment digest'] = attached.json()['sha']
    if ns in OPEN:
        push = stack.services.browser.subscription
        op('subs', {'defs': ['Note/third'], 'push': push}, session=SLEEPER)
        found['push endpoint'], found['push secret'] = push['endpoint'], push['keys']['auth']
        found['list cursor'] = str(op('list', {'c': 'Note', 'limit': 1})['cursor'])
        found['collection token'] = op('collection', {'c': 'Note', 'collection': 'all', 'value': 'red', 'want': 'ids'})['token']
        op('subs', {'defs': ['Note/note']}, session=SESSION)
        found['subscription'] = SESSION
    else:
        person = Made(stack, ns)
        found['list cursor'] = op('list', {'c': 'Note', 'limit': 1})['cursor']
        found['mail ticket'] = mail_ticket(stack, ns)
        found.update({'session': person.token, 'account': person.id, 'session name': person.session[:16], 'service key': Made(stack, ns, 'sk').token,
                      'invitation': stack.op(ns, 'accounts', {'invite': {}}, admin=True)['out']['invitation'],
                      'challenge': op('passkey', {'begin': 'login'})['options']['challenge']})
    return found


@pytest.fixture(scope='module')
def texts(stack_of_both):
    return {ns: texts_of(stack_of_both, ns) for ns in (OPEN[0], RULED[0])}


# --- every address that takes a text of a kind: (method, path, body, headers), `X` in the place of the text ---

ITEMS = [{'c': 'Main', 'j': {'team': 'red'}}]
BY_TEAM = {'c': 'Note', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': 'red'}], 'limit': 1}
OF_ALL = {'c': 'Note', 'collection': 'all', 'value': 'red', 'limit': 1}


def credential(challenge):
    """What a browser would send back, signed by nobody."""
    return {'id': 'AAAA', 'rawId': 'AAAA', 'type': 'public-key', 'response': {
        'clientDataJSON': challenge, 'authenticatorData': 'AAAA', 'signature': 'AAAA', 'userHandle': 'AAAA', 'attestationObject': 'AAAA'}}


OF_BROWSER = Browser(SimpleNamespace(url='https://127.0.0.1', browsers={})).subscription


def wakes(**given):
    """Declares that a browser is woken."""
    keys = {**OF_BROWSER['keys'], **{name: value for name, value in given.items() if name == 'auth'}}
    return op('subs', {'defs': ['Note/note'], 'push': {'endpoint': given.get('endpoint', OF_BROWSER['endpoint']), 'keys': keys}}, session=SLEEPER)


def op(name, param=None, headers=None, **more):
    return 'POST', f'op/{name}', {'param': param or {}, **more}, headers or {}


def uses(operations):
    """kind → requests; those of credentials and keys are made of all operations of the server."""
    everything = {'docs': [NAME], 'c': 'Note', 'list': 'x', 'get': 'x'}
    documents = [('GET', 'doc/Note/note', None, {}), ('PUT', 'doc/Note/note', {'items': ITEMS}, {}), ('PATCH', 'doc/Note/note', {'items': ITEMS}, {}),
                 ('DELETE', 'doc/Note/gone', None, {}), ('GET', 'live?def=Note/note', None, {}), ('GET', 'res/note', None, {}), ('POST', 'od', {}, {}),
                 ('GET', 'ping', None, {}), ('HEAD', 'doc/Note/note', None, {})]
    requests = [*(op(name, everything) for name in operations), *documents]
    credentials = [
        *((method, path, body, {**headers, **bearer('X')}) for method, path, body, headers in requests),
        *((method, path, {**body, 'key': 'X'}, headers) for method, path, body, headers in requests if body is not None),
        *((method, path, body, {**headers, **cookie('team', 'X'), 'Origin': ORIGIN}) for method, path, body, headers in requests),
        *((method, path, body, {**headers, **cookie('club', 'X'), 'Origin': ORIGIN}) for method, path, body, headers in requests)]
    cursor = {'find': ('search cursor', 'item cursor'), 'collection': ('collection cursor', 'document cursor'), 'list': ('list cursor',)}
    places = [op('find', {**BY_TEAM, 'want': want, 'cursor': 'X'}) for want in ('ids', 'items')] + \
             [op('collection', {**OF_ALL, 'want': want, 'cursor': 'X'}) for want in ('ids', 'docs')] + \
             [op('collection', {**OF_ALL, 'want': want, 'token': 'X'}) for want in ('ids', 'docs')] + [op('list', {'c': 'Note', 'limit': 1, 'cursor': 'X'})]
    return {
        'id': [op('get', {'docs': [{'c': 'Note', 'id': 'X'}]}), op('get', {'docs': [{'c': 'Note', 'id': 'X', 'age': 60}]}), op('sync', syncs=[{'c': 'Note', 'id': 'X'}]),
               op('put', {'docs': [{'c': 'Note', 'id': 'X', 'if': 200101000000001, 'items': ITEMS}]}), op('put', {'docs': [{'c': 'Note', 'id': 'X', 'delete': True}]}),
               op('list', {'c': 'Note', 'prefix': 'X'}), op('find', {'c': 'Note', 'i': 'Main', 'id': {'t': 'eq', 'v1': 'X'}, 'want': 'items'}),
               op('collection', {'c': 'Note', 'collection': 'all', 'value': 'X', 'want': 'docs'}), ('GET', 'doc/Note/X', None, {}), ('HEAD', 'doc/Note/X', None, {}),
               ('GET', 'doc/Note/X?age=60', None, {}), ('PATCH', 'doc/Note/X', {'items': ITEMS}, {'If-Match': '*'}), ('DELETE', 'doc/Note/X', None, {}), ('GET', 'res/X', None, {}),
               op('put', {'docs': [{'c': 'Note', 'id': 'X', 'delete': True}]}, syncs=[{'c': 'Note', 'id': 'X'}])],
        'version': [op('put', {'docs': [{**NAME, 'if': 'N', 'items': ITEMS}]}), op('sync', syncs=[{**NAME, 'v': 'N', 'ct': 'N', 'dt': 0}]),
                    op('sync', syncs=[{**NAME, 'v': 'N', 'ct': 'N', 'dt': 0, 'w': 'abc'}])],
        'etag': [(method, 'doc/Note/note', {'items': ITEMS} if method in ('PUT', 'PATCH') else None, {condition: 'X'})
                 for method in ('GET', 'HEAD', 'PUT', 'PATCH', 'DELETE') for condition in ('If-Match', 'If-None-Match')
                 if condition == 'If-Match' or method in ('GET', 'HEAD')] + [('GET', 'res/note', None, {'If-None-Match': 'X'})],
        'idempotency': [op(name, {'docs': [{**NAME, 'id': 'kept', 'items': []}]}, {'Idempotency-Key': 'X'}) for name in operations],
        'last event': [('GET', 'live?def=Note/note', None, {'Last-Event-ID': 'X'}), ('POST', 'live', {'defs': ['Note/note'], 'last': 'X'}, {})],
        **{kind: places for kinds in cursor.values() for kind in kinds}, 'collection token': places,
        'task': [op('tasks', param, admin='KEY') for param in (
                    {'show': 'X'}, {'run': 'X'}, {'hold': 'X'}, {'drop': 'X'}, {'history': {'id': 'X'}}, {'move': {'id': 'X', 'startat': 991231000000000}})] +
                [('POST', 'od/X', {}, {'Authorization': 'Bearer QUEUE'}), ('POST', 'od', {'param': {'run': ['X']}}, {'Authorization': 'Bearer QUEUE'})],
        'subscription': [op(name, {'docs': [NAME], 'c': 'Note'}, session='X') for name in operations] +
                        [('GET', 'live?def=Note/note&session=X', None, {})],
        'session': credentials, 'service key': credentials,
        'account': [op('accounts', {'get': 'X'}, admin='KEY'), op('accounts', {'set': {'account': 'X', 'roles': ['a']}}, admin='KEY'), op('accounts', {'delete': 'X'}, admin='KEY'),
                    op('accounts', {'key': {'account': 'X', 'label': 'a'}}, admin='KEY'), op('accounts', {'revoke': {'account': 'X'}}, admin='KEY'),
                    *(op(name, everything, account='X') for name in operations)],
        'session name': [op('sessions', {'revoke': 'X'}, {'Authorization': 'Bearer OWN'}), op('accounts', {'revoke': {'account': 'OWNID', 'session': 'X'}}, admin='KEY')],
        'invitation': [op('register', {'invitation': 'X'}), op('register', {'name': 'ann', 'password': 'correct horse battery', 'invitation': 'X'})],
        'mail ticket': [op('confirm', {'ticket': 'X'}), op('confirm', {'ticket': 'X', 'password': 'correct horse battery'}),
                        op('reset', {'ticket': 'X', 'password': 'correct horse battery'}), op('register', {'invitation': 'X'})],
        'file digest': [(method, path, None, headers) for method in ('GET', 'HEAD') for path, headers in (
                            ('res/note.txt', {'If-None-Match': '"X"'}), ('res/note.txt', {'If-Match': '"X"'}), ('res/X', {}), ('doc/Note/X', {}))] +
                       [op('get', {'docs': [{'c': 'Note', 'id': 'X'}]})],
        'attachment digest': [(method, f'doc/Note/{id_}/file/sha/X', None, {}) for method in ('GET', 'HEAD') for id_ in ('note', 'other', 'none')] +
                             [('GET', 'doc/Note/other/file/X', None, {}), ('PUT', 'doc/Note/other/file/k', {}, {'If-Match': '"X"'}),
                              ('DELETE', 'doc/Note/other/file/k', None, {'If-Match': '"X"'}),
                              *(op('put', {'docs': [{'c': 'Note', 'id': 'kept', 'items': [{'c': 'P', 'k': 'k', 'sha': 'X', **more}]}]})
                                for more in ({}, {'from': {'c': 'Note', 'id': 'other', 'k': 'k'}})),
                              ('PATCH', 'doc/Note/note', {'items': [{'c': 'P', 'k': 'k', 'sha': 'X'}]}, {})],
        'push endpoint': [wakes(endpoint='X')], 'push secret': [wakes(auth='X')],
        'challenge': [op('passkey', {'login': credential('X')}), op('register', {'name': 'ann', 'passkey': credential('X'), 'invitation': 'AAAA'})],
    }


def filled(value, texts):
    """The request with texts in the places of their marks."""
    if isinstance(value, dict):
        return {name: filled(one, texts) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(filled(one, texts) for one in value)
    if value == 'N':
        return int(texts['X'])
    if isinstance(value, str) and (value in texts or '/X' in value or '=X' in value or '"X"' in value or ' ' in value):
        return re.sub(r'\b(X|KEY|QUEUE|OWN|OWNID)\b', lambda found: texts.get(found[0], found[0]), value)
    return value


def answer_to(stack, ns, request, text, own):
    method, path, body, headers = filled(request, {'X': text, 'KEY': stack.key, 'QUEUE': stack.queue_key, **own})
    answer = stack.http.request(method, f'{stack.url}/{ns}/{path}', json=body, headers=headers, timeout=60, stream=path.startswith('live'))
    body = next(answer.iter_lines(decode_unicode=True), '') if answer.headers.get('Content-Type') == 'text/event-stream' else answer.text
    if answer.headers.get('Content-Type') == 'text/event-stream':
        body = re.sub(r'\d+', 'n', body)
    answer.close()
    return SimpleNamespace(status=answer.status_code, text=body, headers=comparable(answer.headers))


def plain(answer, text):
    """Without what differs between any two answers, and without the text itself, which a refusal may repeat."""
    words = json.dumps([answer.status, answer.headers, answer.text.replace(text, 'X')])
    words = re.sub(r'\b(\d{15}|1[6-9]\d{8})\b', 'stamp', words)
    return re.sub(r'[\w.-]{22,}', 'token', words)


KINDS = {'id', 'version', 'etag', 'idempotency', 'last event', 'search cursor', 'item cursor', 'collection cursor', 'document cursor', 'task', 'list cursor',
         'collection token', 'subscription', 'session', 'account', 'session name', 'service key', 'invitation', 'challenge',
         'mail ticket', 'file digest', 'attachment digest', 'push endpoint', 'push secret'}


@pytest.fixture(scope='module')
def operations(stack):
    return [one['name'] for one in map(json.loads, stack.stampctl('operations', '--json').text.splitlines()) if one['kind'] == 'operation']


def reset(stack, ns):
    stack.psql(ns, 'delete from subscription where session = %s', (SLEEPER,))
    stack.put(ns, {**NAME, 'items': ITEMS}, {**NAME, 'id': 'kept', 'delete': True}, admin=True)


def changes(request):
    method, path, _, headers = request
    return 'Authorization' not in headers and 'Cookie' not in headers and (method in ('PUT', 'PATCH', 'DELETE') or path in ('op/put', 'op/task', 'op/subs'))


@pytest.mark.parametrize('kind', sorted(KINDS))
def test_a_text_of_another_namespace_is_worth_an_invented_one(stack_of_both, texts, operations, kind):
    stack, tried = stack_of_both, 0
    for first, second in (OPEN, RULED):
        if kind not in texts[first]:
            continue
        text, own = texts[first][kind], {}
        if second in RULED:
            mine = Made(stack, second)
            own = {'OWN': mine.token, 'OWNID': mine.id}
        kept = text.rindex('/') + 1 if kind == 'push endpoint' else 0  # the address of a service
        invented = str(int(text) + 1) if kind == 'version' else text[:kept] + other(text[kept:])
        assert invented != text and len(invented) == len(text)
        for request in uses(operations)[kind]:
            answers = []
            for one in (text, invented):
                if changes(request):
                    reset(stack, second)
                answers.append(answer_to(stack, second, request, one, own))
            assert plain(answers[0], text) == plain(answers[1], invented), (second, request, answers[0].text[:300], answers[1].text[:300])
            assert MARK not in answers[0].text.replace(text, '') and 'Idempotency-Replayed' not in answers[0].headers, request
            tried += 1
    assert tried


def test_every_kind_is_worth_something_at_home(stack_of_both, texts):
    """Else an invented text would be compared with an invented one."""
    stack = stack_of_both
    assert {kind for found in texts.values() for kind in found} == KINDS

    def home(kind, request, ns, own=None):
        return answer_to(stack, ns, request, texts[ns][kind], own or {})
    for ns in (OPEN[0], RULED[0]):
        made = uses([])
        finders = made['search cursor']
        for kind, place in (('search cursor', 0), ('item cursor', 1), ('collection cursor', 2), ('document cursor', 3), ('list cursor', 6)):
            assert home(kind, finders[place], ns).status == 200, (ns, kind)
        assert home('id', made['id'][8], ns).status == 200 and home('etag', ('GET', 'doc/Note/note', None, {'If-None-Match': 'X'}), ns).status == 304
        assert home('version', made['version'][1], ns).text.count('"items":[]') == 1
        assert home('last event', made['last event'][0], ns).status == 200
        replayed = home('idempotency', op('put', {'docs': [{**NAME, 'id': 'kept', 'items': []}]}, {'Idempotency-Key': 'X'}), ns)
        assert replayed.headers['Idempotency-Replayed'] == 'true'
        assert '"waiting"' in home('task', made['task'][-1], ns).text and home('task', made['task'][0], ns).status == 200
        assert home('file digest', made['file digest'][0], ns).status == 304
        assert home('attachment digest', ('GET', 'doc/Note/other/file/sha/X', None, {}), ns).status == 200
    assert home('mail ticket', made['mail ticket'][0], RULED[0]).status == 200
    stack.put(OPEN[0], {'c': 'Note', 'id': 'third', 'items': [{'c': 'Main', 'j': {'team': 'red', 'text': 'woken'}}]}, admin=True)
    (task,) = stack.psql(OPEN[0], "select taskid from taskqueue where opname = 'push' and resource = %s", (SLEEPER,))[0]
    assert Manager(stack, OPEN[0]).run(task)['result'] == 'done' and [name for name, _ in stack.services.browser.messages[0]['changed']] == ['Note/third']
    assert home('collection token', finders[4], OPEN[0]).status == 200
    assert '"subs"' in home('subscription', op('put', {'docs': [{**NAME, 'items': [{'c': 'Main', 'j': 1}]}]}, session='X'), OPEN[0]).text
    for kind in ('session', 'service key'):
        assert home(kind, ('GET', 'doc/Note/note', None, bearer('X')), RULED[0]).status == 200
    assert home('account', op('accounts', {'get': 'X'}, admin='KEY'), RULED[0]).status == 200
    assert home('invitation', op('register', {'invitation': 'X'}), RULED[0]).status == 200
    own = {'OWN': texts[RULED[0]]['session']}
    assert json.loads(home('session name', op('sessions', {'revoke': 'X'}, {'Authorization': 'Bearer OWN'}), RULED[0], own).text)['out'] == {'ended': 1}

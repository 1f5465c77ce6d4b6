"""Names of the schema.  Two namespaces have the same rules and the same documents; the schema of `told` declares classes, items, fields,
collections, contents and thumbnails that the rules hide from the caller, that of `blank` has none of these.  Whatever the caller requests,
both answer alike, so what the schema declares cannot be told from what it does not.  The same where a namespace is closed."""
import hashlib
import itertools
import json
import re

import pytest

from listener import Listener
from schema import Schemas
from stack import comparable, wait_until

PAIRS = {'rules': ('told', 'blank'), 'closed': ('dark', 'void')}
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'told': 'rules', 'blank': 'rules', 'dark': 'closed', 'void': 'closed'}}

ALL = {right: ['anybody'] for right in ('read', 'list', 'create', 'update', 'delete')}
RULES = {
    'Shut': {},                                                                              # nobody's
    'Desk': {right: ['role:editor'] for right in ALL},
    'Own': {'owner': 'Main.owner', **{right: ['owner'] for right in ('read', 'list', 'create', 'update', 'delete')}},
    'Part': {**ALL, 'items': {'Secret': {'see': [], 'write': []}, 'P': {'see': [], 'write': []}}},  # all but items
}
HIDDEN = ('Shut', 'Desk', 'Other')  # `Other`: the rules do not name it
FIELDS = {'team': 'string', 'n': 'long', 'tags': 'string[]', 'hash': 'hash', 'words': {'text': ['team']}}
MAIN = {'singleton': True, 'fields': FIELDS, 'indexes': [['team', 'n']], 'content': {'required': ['team']}}
COLLECTIONS = {'all': {'key': ['Main.team']}, 'two': {'key': ['Main.team', 'Main.n']}}
WHOLE = {'items': {'Main': MAIN, 'Secret': MAIN, 'Line': {'fields': FIELDS}, 'Text': {'raw': True}},
         'collections': {**COLLECTIONS, 'secret': {'key': ['Secret.team']}}, 'thumbnails': {'small': {'width': 16, 'height': 16}}}
PART = {'open': True, 'items': {'Main': MAIN, 'Line': {'fields': FIELDS}, 'Text': {'raw': True}}, 'collections': COLLECTIONS}
CLASSES = {
    'told': {**{name: WHOLE for name in HIDDEN}, 'Own': WHOLE, 'Part': {**WHOLE, 'open': True}},
    'blank': {'Part': PART},
    'dark': {name: WHOLE for name in (*HIDDEN, 'Part')}, 'void': {},
}
ITEMS = ('Main', 'Secret', 'Line', 'Text', 'Nix')
ANN = 'ann'.ljust(22, 'A')
CALLERS = ('anybody', 'ann')


@pytest.fixture(scope='module')
def worlds(stack, tmp_path_factory):
    digest = hashlib.sha256(b'ann'.ljust(43, b'A')).hexdigest()
    account = {'c': 'Account', 'id': ANN, 'items': [{'c': 'Self', 'j': {'name': 'ann', 'created': 200101000000000}}, {'c': 'Roles', 'j': {'roles': []}},
                                                    {'c': 'Sess', 'k': digest, 'j': {'created': 200101000000000, 'expires': 991231000000000}}]}
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for ns, classes in CLASSES.items():
        if classes:
            schemas.apply(ns, classes)
        if ns in PAIRS['rules']:
            conf = stack.get('z', ('Namespace', ns), admin=True)['items'][0]['j']
            stack.put('z', {'c': 'Namespace', 'id': ns, 'items': [{'c': 'Conf', 'j': {**conf, 'accounts': {}}}, {'c': 'Rules', 'j': RULES}]}, admin=True)
            stack.put(ns, account, admin=True)
        for name, ident in itertools.product((*HIDDEN, 'Part'), 'ab'):
            stack.put(ns, {'c': name, 'id': ident, 'items': [{'c': 'Main', 'j': {'team': 'red', 'n': 1}}]}, admin=True)
    return stack


def session(caller):
    return {'Authorization': f'Bearer st_{ANN}.{"ann".ljust(43, "A")}'} if caller == 'ann' else {}


# --- requests: (method, path, body, headers) ---

def op(name, param, **more):
    return 'POST', f'op/{name}', {'param': param, **more}, {}


CONDITIONS = [{'f': f, 't': t, 'v1': v1} for f in ('team', 'n', 'tags', 'hash', 'words', 'nix')
              for t, v1 in (('eq', 'red'), ('eq', 1), ('lt', 1), ('sw', 'r'), ('in', ['red']), ('exists', True), ('match', 'red'), ('nix', 1), ('eq', None))]
WISHES = ({}, {'want': 'ids'}, {'want': 'items'}, {'want': 'docs'}, {'want': 'count'}, {'want': ['team']}, {'want': {'sum': 'n', 'max': ['team', 'n']}},
          {'want': {'sum': 'team'}}, {'want': {'by': 'team'}}, {'want': {'avg': 'nix'}}, {'want': 'nix'}, {'want': {'nix': 'n'}}, {'want': []})
ORDERS = ('team', '-n', ['team', 'n'], 'words', 'tags', 'nix', 5)


def searches(name, item):
    of = {'c': name, 'i': item}
    for condition in CONDITIONS:
        yield op('find', {**of, 'where': [condition]})
    for wish in WISHES:
        yield op('find', {**of, **wish})
        yield op('find', {**of, **wish, 'where': [{'f': 'team', 't': 'eq', 'v1': 'red'}], 'limit': 1})
    for order in ORDERS:
        yield op('find', {**of, 'want': 'items', 'order': order})
        yield op('find', {**of, 'want': 'items', 'order': order, 'where': [{'f': 'n', 't': 'gt', 'v1': 1}]})
    for more in ({'where': 5}, {'where': [{'nix': 1}]}, {'cursor': 'nix'}, {'limit': 0}, {'nix': 1}, {'v': {'t': 'gt', 'v1': 1}}, {'id': {'t': 'sw', 'v1': 'a'}}):
        yield op('find', {**of, **more})
    yield 'GET', 'op/find?param=' + json.dumps(of), None, {}
    yield 'HEAD', 'op/find?param=' + json.dumps(of), None, {}
    yield op('task', {'op': 'find', 'param': of})
    for more in ({'delete': True}, {'del': True, 'where': CONDITIONS[0]}, {'merge': {'n': 2}, 'where': [CONDITIONS[0]]}, {'merge': 5}, {'del': True, 'where': 5}):
        yield op('changemany', {**of, **more})
        yield op('task', {'op': 'changemany', 'param': {**of, **more}})


def collections(name, collection):
    of = {'c': name, 'collection': collection}
    for value, more in itertools.product(('red', ['red'], ['red', 1], ['red', 1, 2], {}), ({}, {'want': 'ids'}, {'stream': True}, {'token': 'nix'}, {'cursor': 'nix'})):
        yield op('collection', {**of, 'value': value, **more})
    for text in ('red', 'red@1', 'red@1@2'):
        for words in ({'defs': [f'{name}/{collection}@{text}']}, {'add': [f'{name}/{collection}@{text}']}, {'drop': [f'{name}/{collection}@{text}']}):
            yield op('subs', words, session='sessionofstrangers00000')
    yield op('subs', {'delete': True}, session='sessionofstrangers00000')
    yield 'GET', 'op/collection?param=' + json.dumps({**of, 'value': 'red'}), None, {}


def changes(name, item):
    """Of a document that is there and of one that is not."""
    for ident, set_to in itertools.product(('a', 'new'), ({'j': {}}, {'k': '1', 'j': {}}, {'s': 'text'}, {'k': '1', 's': 'text'}, {'j': {'team': 'red'}}, {'del': True}, {'k': '1', 'del': True})):
        one = {'c': name, 'id': ident, 'items': [{'c': item, **set_to}]}
        yield op('put', {'docs': [one]})
        yield op('put', {'docs': [{**one, 'if': 0}]})
        yield op('put', {'docs': [one, {'c': name, 'id': 'other', 'items': 5}]})
        yield op('put', {'docs': [one]}, syncs=[{'c': name, 'id': ident}])
        if item == 'Main':
            yield 'PUT', f'doc/{name}/{ident}', {'items': one['items']}, {}
            yield 'PATCH', f'doc/{name}/{ident}', {'items': one['items']}, {}
            yield op('task', {'op': 'put', 'param': {'docs': [one]}})


def files(name):
    digest = hashlib.sha256(b'nothing').hexdigest()
    for ident, key in itertools.product(('a', 'new'), ('plain', 'plain~small', 'plain~nix')):
        yield 'PUT', f'doc/{name}/{ident}/file/{key}', b'nothing', {'Content-Type': 'image/png'}
        yield 'GET', f'doc/{name}/{ident}/file/{key}', None, {}
        yield 'DELETE', f'doc/{name}/{ident}/file/{key}', None, {}
        yield op('put', {'docs': [{'c': name, 'id': ident, 'items': [{'c': 'P', 'k': key, 'sha': digest, 'mime': 'image/png'}]}]})
    yield 'POST', 'upload', None, {'Upload-Length': '5', 'Upload-Metadata': 'class ' + name, 'Tus-Resumable': '1.0.0'}


def beside(name):
    for method in ('GET', 'HEAD', 'OPTIONS', 'DELETE', 'POST', 'PUT'):
        for path in (f'doc/{name}', f'doc/{name}/a', f'doc/{name}/new', f'doc/{name}/a/Main', f'res/{name}'):
            yield method, path, {} if method in ('POST', 'PUT') else None, {}
    yield op('list', {'c': name})
    yield op('list', {})
    yield op('get', {'docs': [{'c': name, 'id': 'new'}]}, syncs=[{'c': name, 'id': 'new'}])
    yield op('sync', {}, syncs=[{'c': name, 'id': 'new', 'v': 200101000000001, 'ct': 200101000000000, 'dt': 0}])
    yield op('schema', {})
    yield op('explain', {'c': name, 'id': 'a'})


def requests_of(name, items, names):
    for item in items:
        yield from searches(name, item)
        yield from changes(name, item)
    for collection in names:
        yield from collections(name, collection)


def all_requests():
    for name in HIDDEN:
        yield f'{name}, searches and changes', [request for item in (ITEMS if name in ('Shut', 'Other') else ('Secret', 'Nix')) for request in itertools.chain(searches(name, item), changes(name, item))]
        yield f'{name}, collections', [request for collection in (*WHOLE['collections'], 'nix') for request in collections(name, collection)]
        yield f'{name}, beside', [*files(name), *beside(name)]
    yield 'Part, searches', [request for item in ('Secret', 'Nix') for request in searches('Part', item)]
    yield 'Part, changes', list(changes('Part', 'Secret'))
    yield 'Part, collections', [request for collection in ('secret', 'nix') for request in collections('Part', collection)]
    yield 'Part, files', list(files('Part'))


REQUESTS = dict(all_requests())


def ask(stack, ns, request, caller):
    method, path, body, headers = request
    content = {'data': body} if isinstance(body, bytes) else {'json': body} if body is not None else {}
    return stack.http.request(method, f'{stack.url}/{ns}/{path}', headers={**headers, **session(caller)}, timeout=60, **content)


def plain(answer, ns):
    """Without what differs between any two answers: names of the namespace, stamps, names of tasks, signatures."""
    text = answer.text.replace(f'/{ns}/', '/NS/').replace(f'"title":"{ns}"', '"title":"NS"').replace(f'"url":"/{ns}"', '"url":"/NS"')
    headers = {name.lower(): re.sub(r'\b\d{15}\b|/upload/\S+', 'S', value.replace(f'/{ns}/', '/NS/')) for name, value in comparable(answer.headers, 'etag').items()}
    text = re.sub(r'(?<=")[\w-]{100,}(?=")', lambda found: f'signed, {len(found[0])}', text)
    return answer.status_code, headers, re.sub(r'\b\d{15}\b', 'stamp', re.sub(r'(?<="id":")[a-z2-7]{24}(?=")', 'task', text))


def around(one, other, text=60):
    """Where two texts begin to differ."""
    place = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return [side[max(0, place - text):place + text] for side in (one, other)]


def differences(stack, pair, requests, caller):
    for request in requests:
        one, other = (plain(ask(stack, ns, request, caller), ns) for ns in pair)
        if one != other:
            yield request, one[:2], other[:2], around(one[2], other[2])


@pytest.mark.parametrize('caller', CALLERS)
@pytest.mark.parametrize('group', REQUESTS)
def test_what_is_hidden_is_as_what_is_not_declared(worlds, group, caller):
    assert not list(differences(worlds, PAIRS['rules'], REQUESTS[group], caller))


@pytest.mark.parametrize('group', REQUESTS)
def test_a_closed_namespace_is_as_one_without_a_schema(worlds, group):
    assert not list(differences(worlds, PAIRS['closed'], REQUESTS[group], 'anybody'))


def test_a_stranger_is_told_of_what_others_own_as_little(worlds):
    requests = [request for item in ITEMS for request in searches('Own', item)] + [request for name in (*WHOLE['collections'], 'nix') for request in collections('Own', name)]
    description = [('GET', 'openapi.json', None, {}), op('openapi', {})]
    assert not list(differences(worlds, PAIRS['rules'], requests + description, 'anybody'))


def test_a_token_of_what_is_hidden_stays_valid(worlds):
    """A later synchronisation is no complete one, as where nothing has changed."""
    for ns, (name, collection) in itertools.product(PAIRS['rules'], (('Shut', 'all'), ('Other', 'nix'), ('Part', 'secret'))):
        param = {'c': name, 'collection': collection, 'value': 'red'}
        first = worlds.op(ns, 'collection', param)['out']
        assert (first['complete'], first['docs'], first['left']) == (True, [], []), (ns, name)
        later = worlds.op(ns, 'collection', {**param, 'token': first['token']})['out']
        assert (later['complete'], later['docs'], later['left']) == (False, [], []), (ns, name)


@pytest.mark.parametrize('definition', [f'{name}/{rest}' for name in ('Shut', 'Other', 'Part') for rest in ('secret@red', 'nix@red', 'secret@red@1')])
def test_listeners_to_what_is_hidden_are_admitted(worlds, definition):
    heard = []
    for ns in PAIRS['rules']:
        listener = Listener(worlds, definition, ns=ns)
        try:
            heard.append(wait_until(lambda: listener.events, what='the first event')[0][0])
        finally:
            listener.close()
    assert heard[0] == heard[1]


def test_who_sees_all_of_a_class_learns_what_is_not_declared(worlds):
    """The owner of documents, and the administrator of all."""
    def code(request, **more):
        answer = worlds.http.request(request[0], f'{worlds.url}/told/{request[1]}', json=request[2], timeout=60, **more)
        return answer.status_code, answer.json().get('code')
    for headers in (session('ann'), {'Authorization': f'Bearer {worlds.key}'}):
        assert code(op('find', {'c': 'Own', 'i': 'Nix'}), headers=headers) == (404, 'NFIELD')
        assert code(op('find', {'c': 'Own', 'i': 'Main', 'where': [{'f': 'nix', 't': 'eq', 'v1': 1}]}), headers=headers) == (404, 'NFIELD')
        assert code(op('collection', {'c': 'Own', 'collection': 'nix', 'value': 'red'}), headers=headers) == (404, 'NCOLLECTION')
        assert code(op('subs', {'defs': ['Own/nix@red']}, session='sessionofowners00000000'), headers=headers) == (404, 'NCOLLECTION'), headers
        assert code(op('put', {'docs': [{'c': 'Own', 'id': 'x', 'items': [{'c': 'Nix', 'j': 1}]}]}), headers=headers) == (400, 'AARG')

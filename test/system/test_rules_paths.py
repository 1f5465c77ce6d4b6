"""Rules on every path.  Two namespaces with the same rules: `full` has documents, items and members that a caller may not read, `bare` lacks
exactly these.  Whatever a caller requests, both must answer alike, but for the values of stamps and the text of cursors; and no answer of
`full` has a content, an id, a version or a time of what is hidden.  So what may not be read cannot be told from what does not exist."""
import hashlib
import itertools
import json
import re
import shutil
import threading

import pytest

from kit import Kit
from schema import Schemas
from stack import comparable, refused

pytestmark = pytest.mark.plain

WORLDS = ('full', 'bare')
STACK = {'workers': 2, 'namespaces': {'z': 'closed', **{ns: 'rules' for ns in WORLDS}},
         'settings': {'limit_anonymous_body_bytes': 65536}}

ALL = {right: ['anybody'] for right in ('read', 'list', 'create', 'update', 'delete')}
RULES = {
    'Open': ALL,                                                       # everybody's
    'Shut': {},                                                        # nobody's
    'Look': {'read': ['anybody']},                                     # read by name, never listed
    'Part': {**ALL, 'items': {'Secret': {'see': [], 'write': []}}},    # all but an item
    'Pack': {**ALL, 'items': {'P': {'see': [], 'write': []}}},         # all but its attachments: test_rules_files.py
    'Own': {'owner': 'Main.owner', **{right: ['owner'] for right in ('read', 'list', 'update', 'delete')}},
    'Club': {'members': 'Member', **{right: ['members'] for right in ('read', 'list', 'update', 'delete')}},
    'Duty': {'team': {'class': 'Crew', 'id': 'Main.crew', 'members': 'Member'}, **{right: ['team'] for right in ('read', 'list', 'update', 'delete')}},
    'Desk': {right: ['role:editor'] for right in ALL},
    'Staff': {right: ['role:staff'] for right in ('read', 'list')},
    # With filters of a module (modules/filters.c) of the three levels: some documents, some items, some contents are not shown.
    'Veil': {**ALL, 'create': []}, 'Cut': {**ALL, 'update': []}, 'Pick': {**ALL, 'update': []}, 'Mask': {**ALL, 'update': []},
}
SHARED = ('Own', 'Club', 'Duty')  # of ann some, of bob the others
FIELDS = {'team': 'string', 'words': {'text': ['team']}}
SEARCHED = {'singleton': True, 'fields': FIELDS, 'indexes': [['~team']]}
ITEMS = {'Member': {}, 'Main': SEARCHED, 'Secret': SEARCHED, 'Line': {}}
SCHEMA = {name: {'open': True, 'items': ITEMS, 'collections': {'all': {'key': ['Main.team'], 'mutable': True},
                                                              'secret': {'key': ['Secret.team'], 'mutable': True}}}
          for name in (*RULES, 'Crew', 'Other')}
SEARCHES = {f'of{name}': {'class': name, 'result': [['id', 'string'], ['v', 'long'], ['value', 'json']],
                          'sql': f"select id, v, value from items where class = '{name}' order by id, item, key"} for name in SCHEMA}
MARK = 'SECRET'
SEARCH = 'Seek'  # an operation of the module, which is trusted; its searches are judged
ACCOUNTS = {name: name.ljust(22, 'A') for name in ('ann', 'bob')}
CALLERS = ('anybody', 'ann')
# Callers with other rights: by a role, by a team alone, by a service key with a role; and those that have none any more.
WITH_RIGHTS = {'eve': 'Staff', 'tim': 'Duty', 'bot': 'Staff'}  # and a class of which each may list documents
WITHOUT = ('late', 'gone', 'off')  # its session has expired, has ended, the account is disabled
IDS = {**ACCOUNTS, **{name: name.ljust(22, 'A') for name in (*WITH_RIGHTS, *WITHOUT)}}


def document(name, ident, team='red', **items):
    return {'c': name, 'id': ident, 'items': [{'c': 'Main', 'j': {'team': team}}, *({'c': c, 'j': j} for c, j in items.items())]}


def shared(name, ident, account, **items):
    """Of the class `name`, for this account alone."""
    one = document(name, ident, **items)
    one['items'][0]['j'].update({'owner': account, 'crew': f'of-{account}'})
    one['items'].append({'c': 'Member', 'k': account, 'j': {'role': 'reader'}})
    return one


def secret(name, ident, **items):
    return document(name, ident, **{'Line': None, **items}, Secret={'team': 'red', 'text': MARK})


def veiled(ident):
    one = secret('Veil', ident)
    one['items'][0]['j']['veil'] = True
    return one


# In the order in which they are written; the second: it is hidden, and `bare` lacks it.  Hidden ones lie before, between and after the others.
DOCUMENTS = [(document(name, ident), False) for name in ('Open', 'Look', 'Staff', 'Pack') for ident in ('b', 'd')] + \
            [(shared('Crew', f'of-{account}', account), False) for account in ACCOUNTS.values()] + \
            [({'c': 'Crew', 'id': f'of-{ACCOUNTS["ann"]}', 'items': [{'c': 'Member', 'k': IDS['tim'], 'j': {'role': 'reader'}}]}, False)] + \
            [(document(name, ident), False) for name in ('Veil', 'Cut', 'Pick') for ident in ('b', 'd')] + \
            [(veiled(f'hidden-{ident}'), True) for ident in 'ace'] + \
            [(secret(name, f'hidden-{ident}'), True) for name in ('Shut', 'Other', 'Desk') for ident in 'ace'] + \
            [one for name in SHARED for ident, next_one in ('ab', 'cd', 'ef')
             for one in ((shared(name, f'hidden-{ident}', ACCOUNTS['bob'], Secret={'team': 'red', 'text': MARK}), True),
                         (shared(name, next_one, ACCOUNTS['ann']), False))]
# What a filter does not show of a document that it shows; then the same document in `bare`.
COVERED = {'Cut': ([{'c': 'Secret', 'j': {'team': 'red', 'text': MARK}}], []),
           'Pick': ([{'c': 'Line', 'k': 'hidden', 'j': MARK + ' line'}, {'c': 'Line', 'k': 'a', 'j': 'shown'}], [{'c': 'Line', 'k': 'a', 'j': 'shown'}]),
           'Mask': ([{'c': 'Main', 'j': {'name': 'Ann', 'team': MARK}}], [{'c': 'Main', 'j': {'name': 'Ann'}}])}
SECRET_ITEMS = [{'c': 'Part', 'id': ident, 'items': [{'c': 'Secret', 'j': {'team': 'red', 'text': MARK + ident}}]} for ident in ('p', 'q')]


QUEUES = [{'qn': 16, 'ops': ['resize'], 'roles': ['staff']}]


def session(caller):
    """The headers of a caller that has signed in."""
    kind = 'sk' if caller == 'bot' else 'st'
    return {'Authorization': f'Bearer {kind}_{IDS[caller]}.{caller.ljust(43, "A")}'} if caller in IDS else {}


def account(caller, roles=()):
    digest = hashlib.sha256(caller.ljust(43, 'A').encode()).hexdigest()
    lasts = {'service': True} if caller == 'bot' else {'expires': 200101000000001 if caller == 'late' else 991231000000000}
    is_off = {'disabled': True} if caller == 'off' else {}
    items = [{'c': 'Self', 'j': {'name': caller, 'created': 200101000000000, **is_off}}, {'c': 'Roles', 'j': {'roles': list(roles)}}]
    if caller != 'gone':
        items.append({'c': 'Sess', 'k': digest, 'j': {'created': 200101000000000, **lasts}})
    return {'c': 'Account', 'id': IDS[caller], 'items': items}


@pytest.fixture(scope='module', autouse=True)
def kit(request):
    kit = Kit()
    request.module.STACK['settings']['modules'] = str(kit.build('filters.c'))
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def worlds(stack, tmp_path_factory):
    for ns in WORLDS:
        conf = stack.get('z', ('Namespace', ns), admin=True)['items'][0]['j']
        stack.put('z', {'c': 'Namespace', 'id': ns, 'items': [{'c': 'Conf', 'j': {**conf, 'accounts': {}, 'workers': QUEUES}}, {'c': 'Rules', 'j': RULES}]}, admin=True)
        stack.put(ns, *(account(name, ['staff'] if name in ('eve', 'bot', *WITHOUT) else ()) for name in IDS), admin=True)
        Schemas(stack, tmp_path_factory.mktemp('schemas')).apply(ns, SCHEMA, searches=SEARCHES)
        for one, is_hidden in DOCUMENTS:
            if ns == 'full' or not is_hidden:
                stack.put(ns, one, admin=True)
        for ident in ('p', 'q'):
            stack.put(ns, document('Part', ident), admin=True)
        for name, items in COVERED.items():
            for ident in 'bd':
                stack.put(ns, {'c': name, 'id': ident, 'items': items[ns == 'bare']}, admin=True)
        if ns == 'full':
            stack.put(ns, *SECRET_ITEMS, admin=True)
    return stack


# --- requests: name: (what it goes through, method, path, body, headers) ---

def named(name, ident):
    """Those that name one document."""
    one, it = {'c': name, 'id': ident}, f'doc/{name}/{ident}'
    items = {'items': [{'c': 'Line', 'k': '1', 'j': 1}]}
    old = {**one, 'v': 200101000000001, 'ct': 200101000000000, 'dt': 0}
    yield from {
        'get': ('get', 'POST', 'op/get', {'param': {'docs': [one]}}, {}),
        'get by GET': ('get', 'GET', 'op/get?param=' + json.dumps({'docs': [one]}), None, {}),
        'get by HEAD': ('get', 'HEAD', 'op/get?param=' + json.dumps({'docs': [one]}), None, {}),
        'get, tolerance': ('get', 'POST', 'op/get', {'param': {'docs': [{**one, 'age': 3600}]}}, {}),
        'get of another': ('get', 'POST', 'op/get', {'param': {'docs': [{**one, 'age': 60, 'ns': 'full'}, {**one, 'age': 60, 'ns': 'bare'}]}}, {}),
        'get twice': ('get', 'POST', 'op/get', {'param': {'docs': [one, one]}}, {}),
        'get twice, tolerance': ('get', 'POST', 'op/get', {'param': {'docs': [{**one, 'age': 60}, {**one, 'age': 60}]}}, {}),
        'get and sync': ('get', 'POST', 'op/get', {'param': {'docs': [one]}, 'syncs': [one, old]}, {}),
        'sync': ('sync', 'POST', 'op/sync', {'syncs': [one]}, {}),
        'sync, a copy': ('sync', 'POST', 'op/sync', {'syncs': [old]}, {}),
        'sync, a view': ('sync', 'POST', 'op/sync', {'syncs': [{**old, 'w': 'abc'}]}, {}),
        'list and sync': ('list', 'POST', 'op/list', {'param': {'c': 'Shut'}, 'syncs': [one]}, {}),
        'put, if': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'if': 200101000000001, **items}]}}, {}),
        'put, delete, if': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'if': 200101000000001, 'delete': True}]}}, {}),
        'put, wrong': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'items': [{'c': 'Main'}]}]}}, {}),
        'put, wrong item': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'items': [{'c': 'Main', 'k': '1', 'j': 1}]}]}}, {}),
        'put, a large item': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'items': [{'c': 'Line', 'k': 'x' * 300, 'j': 1}]}]}}, {}),
        'GET': ('GET', 'GET', it, None, {}),
        'GET, age': ('GET', 'GET', it + '?age=3600', None, {}),
        'GET, for people': ('GET', 'GET', it, None, {'Accept': 'text/html'}),
        'HEAD': ('GET', 'HEAD', it, None, {}),
        'GET, if none': ('GET', 'GET', it, None, {'If-None-Match': '*'}),
        'GET, if': ('GET', 'GET', it, None, {'If-Match': '"200101000000001"'}),
        'OPTIONS': (None, 'OPTIONS', it, None, {}),
        'PUT, if': ('PUT', 'PUT', it, items, {'If-Match': '"200101000000001"'}),
        'PATCH, if': ('PATCH', 'PATCH', it, items, {'If-Match': '"200101000000001"'}),
        'DELETE, if': ('DELETE', 'DELETE', it, None, {'If-Match': '"200101000000001"'}),
    }.items()


def writing(name, ident):
    """Those that would change the document, were they allowed."""
    one, it = {'c': name, 'id': ident}, f'doc/{name}/{ident}'
    items = {'items': [{'c': 'Line', 'k': '1', 'j': 1}]}
    yield from {
        'put': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, **items}]}}, {}),
        'put of nothing': ('put', 'POST', 'op/put', {'param': {'docs': [one]}}, {}),
        'put, removal': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'items': [{'c': 'Secret', 'del': True}]}]}}, {}),
        'put, new': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'if': 0, **items}]}}, {}),
        'put, delete': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'delete': True}]}}, {}),
        'put, delete and sync': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'delete': True}]}, 'syncs': [one]}, {}),
        'put, delete, if 0': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'if': 0, 'delete': True}]}}, {}),
        'put, anew': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'delete': True, **items}]}}, {}),
        'put, behind another': ('put', 'POST', 'op/put', {'param': {'docs': [{'c': 'Other', 'id': 'x', **items}, {**one, **items}]}}, {}),
        'put, before another': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'delete': True}, {'c': 'Other', 'id': 'x', **items}]}}, {}),
        'put under a key': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, **items}]}}, {'Idempotency-Key': 'key'}),
        'put, delete, under a key': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'delete': True}]}}, {'Idempotency-Key': f'{name}{ident}'}),
        'the same again': ('put', 'POST', 'op/put', {'param': {'docs': [{**one, 'delete': True}]}}, {'Idempotency-Key': f'{name}{ident}'}),
        'PUT': ('PUT', 'PUT', it, items, {}),
        'PUT, new': ('PUT', 'PUT', it, items, {'If-None-Match': '*'}),
        'PUT of nothing': ('PUT', 'PUT', it, {'items': []}, {}),
        'PUT, if any': ('PUT', 'PUT', it, items, {'If-Match': '*'}),
        'PATCH': ('PATCH', 'PATCH', it, items, {}),
        'DELETE': ('DELETE', 'DELETE', it, None, {}),
    }.items()


def groups(conditions):
    """Groups of conditions, one of which each document of the worlds satisfies."""
    other = [{'f': 'team', 't': 'eq', 'v1': 'blue'}]
    return (('or', [{'or': conditions + other}]), ('not', [{'not': other[0]}]), ('not or', [{'not': {'or': other + [{'f': 'team', 't': 'sw', 'v1': 'g'}]}}]))


def of_others(item, conditions):
    """Conditions on the other item of each document, where there is one: some may not see whether there is."""
    other = [{'i': 'Secret' if item == 'Main' else 'Main', **one} for one in conditions]
    yield from (('of others', other), ('not of others', [{'not': other[0]}]), ('of others or', [{'or': other + conditions}]))
    yield from (('absent of others', [{**other[0], 't': 'exists', 'v1': False}]), ('others of an unknown class', [{'not': {**other[0], 'i': 'Unknown'}}]))


def gathering(name):
    """Those that find documents."""
    of_all = {'c': name, 'collection': 'all', 'value': 'red'}
    by_team = [{'f': 'team', 't': 'eq', 'v1': 'red'}]
    for limit in ({}, {'limit': 1}, {'limit': 2}):
        yield f'list {limit}', ('list', 'POST', 'op/list', {'param': {'c': name, **limit}}, {})
        for item, want in itertools.product(('Main', 'Secret'), ('ids', 'items')):
            yield f'find {want} {item} {limit}', ('find', 'POST', 'op/find', {'param': {'c': name, 'i': item, 'where': by_team, 'want': want, **limit}}, {})
            yield f'count {item} {limit}', ('find', 'POST', 'op/find', {'param': {'c': name, 'i': item, 'where': by_team, 'want': 'count', **limit}}, {})
            yield f'find in order {want} {item} {limit}', ('find', 'POST', 'op/find', {'param': {'c': name, 'i': item, 'order': '-team', 'want': want, **limit}}, {})
            words = {'c': name, 'i': item, 'where': [{'f': 'words', 't': 'match', 'v1': 'red or green'}], 'want': want, **limit}
            yield f'find words {want} {item} {limit}', ('find', 'POST', 'op/find', {'param': words}, {})
            yield f'find words with excerpts {want} {item} {limit}', ('find', 'POST', 'op/find', {'param': {**words, 'marks': 'words'}}, {})
            alike = {**words, 'where': [{'f': 'team', 't': 'like', 'v1': 'redd'}]}
            yield f'find what is alike {want} {item} {limit}', ('find', 'POST', 'op/find', {'param': alike}, {})
            yield f'find what is most alike {want} {item} {limit}', ('find', 'POST', 'op/find', {'param': {**alike, 'order': '~team'}}, {})
            yield f'find by rank {want} {item} {limit}', ('find', 'POST', 'op/find', {'param': {**words, 'order': '-words'}}, {})
        for item, (words, where) in ((item, one) for item in ('Main', 'Secret') for one in (*groups(by_team), *of_others(item, by_team))):
            yield f'find {words} {item} {limit}', ('find', 'POST', 'op/find', {'param': {'c': name, 'i': item, 'where': where, 'want': 'docs', **limit}}, {})
            yield f'count {words} {item} {limit}', ('find', 'POST', 'op/find', {'param': {'c': name, 'i': item, 'where': where, 'want': 'count', **limit}}, {})
        for item, wish in itertools.product(('Main', 'Secret'), ({}, {'min': 'team', 'max': 'team'}, {'by': 'team'})):
            yield f'totals {wish} {item} {limit}', ('find', 'POST', 'op/find', {'param': {'c': name, 'i': item, 'want': wish, **limit}}, {})
        for stamp in ({'v': {'t': 'gt', 'v1': 1}}, {'v': {'t': 'lt', 'v1': 10**17}, 'ct': {'t': 'ge', 'v1': 1}}, {'v': {'t': 'nin', 'v1': [5]}}):
            yield f'find {stamp} {limit}', ('find', 'POST', 'op/find', {'param': {'c': name, 'i': 'Main', 'want': ['team', 'text'], **stamp, **limit}}, {})
        for want, collection in itertools.product(('ids', 'docs'), ('all', 'secret')):
            yield (f'collection {collection} {want} {limit}',
                   ('collection', 'POST', 'op/collection', {'param': {**of_all, 'collection': collection, 'want': want, **limit}}, {}))
    for item, act in itertools.product(('Main', 'Secret'), ({'delete': True}, {'del': True}, {'merge': {'team': 'green'}})):
        yield f'change {item} {act}', ('changemany', 'POST', 'op/changemany', {'param': {'c': name, 'i': item, 'where': by_team, **act}}, {})
    yield 'a named search', ('search', 'POST', 'op/search', {'param': {'name': f'of{name}'}}, {})
    for search in ('Items', 'Documents'):
        yield f'search of a module, {search}', (SEARCH, 'POST', f'op/{SEARCH}', {'param': {'c': name, 'search': search}}, {})
    yield 'list, prefix', ('list', 'POST', 'op/list', {'param': {'c': name, 'prefix': 'hidden'}}, {})
    yield 'list, after', ('list', 'POST', 'op/list', {'param': {'c': name, 'after': 1}}, {})
    yield 'list by GET', ('list', 'GET', 'op/list?param=' + json.dumps({'c': name}), None, {})
    yield 'find by id', ('find', 'POST', 'op/find', {'param': {'c': name, 'i': 'Main', 'id': {'t': 'sw', 'v1': 'hidden'}, 'want': 'items'}}, {})
    yield 'collection, stream', ('collection', 'POST', 'op/collection', {'param': {**of_all, 'stream': True}}, {})
    yield 'collection, stream of ids', ('collection', 'POST', 'op/collection', {'param': {**of_all, 'want': 'ids', 'stream': True}}, {})
    yield 'list of classes', ('list', 'POST', 'op/list', {'param': {}}, {})


def beside():
    """Addresses of a namespace that are neither operations nor documents."""
    yield from {
        'ping': ('ping', 'GET', 'ping', None, {}),
        'a file': ('res', 'GET', 'res/hidden-a', None, {}),
        'a file, HEAD': ('res', 'HEAD', 'res/hidden-a', None, {'If-None-Match': '"1"'}),
        'tasks': ('od', 'POST', 'od', {'op': 'put', 'param': {}}, {}),
        'a task': ('od', 'GET', 'od/1', None, {}),
        'a listener to a collection that is not declared': ('live', 'GET', 'live?def=Open/none@red', None, {}),
        'the description': ('openapi.json', 'GET', 'openapi.json', None, {}),
        'the description, known': ('openapi.json', 'GET', 'openapi.json', None, {'If-None-Match': '*'}),
        'a listener to nothing': ('live', 'GET', 'live', None, {}),
        'a listener with an id': ('live', 'GET', 'live?def=Shut/hidden-a', None, {'Last-Event-ID': 'AAAA'}),
    }.items()


def of_tasks():
    """Operations of external workers, of producers and of those who ask for their own task; the first of them name hidden documents."""
    claim = {'id': 'AAAAAAAAAAAAAAAAAAAA', 'starttime': 200101000000001, 'retry': 0}
    names = [{'c': 'Shut', 'id': 'hidden-a'}, {'c': 'Open', 'id': 'b'}]
    for what, docs in (('a change', [{**names[0], 'items': [{'c': 'Line', 'k': '1', 'j': 1}]}]), ('a version', [{**names[0], 'if': 5, 'delete': True}])):
        yield f'done, {what}', ('done', 'POST', 'op/done', {'param': {**claim, 'docs': docs}, 'syncs': names}, {})
    yield 'keep', ('keep', 'POST', 'op/keep', {'param': {**claim, 'claim': 60}, 'syncs': names}, {})
    yield 'fail', ('fail', 'POST', 'op/fail', {'param': {**claim, 'code': 'XMINE'}, 'syncs': names}, {})
    yield 'take', ('take', 'POST', 'op/take', {'param': {'qn': 17}, 'syncs': names}, {})
    yield 'own task', ('owntask', 'POST', 'op/owntask', {'param': {'id': claim['id']}, 'syncs': names}, {})
    record = {'seq': 1, 'ns': 'full', 'op': 'put', 'param': {'docs': [{**names[0], 'if': 5, 'items': []}]}}
    yield 'spool', ('spool', 'POST', 'op/spool', {'param': {'spool': '0' * 32, 'records': [record]}, 'syncs': names}, {})


HIDDEN = [(name, f'hidden-{ident}') for name in ('Shut', 'Other', 'Desk', 'Veil', *SHARED) for ident in 'ac']
SHOWN = [('Open', 'b'), ('Look', 'd'), ('Part', 'p'), *((name, 'b') for name in ('Veil', *COVERED)), *((name, 'b') for name in SHARED)]
REQUESTS = {
    **{f'{name}/{ident}: {what}': request for name, ident in HIDDEN + SHOWN for what, request in named(name, ident)},
    **{f'{name}/{ident}: {what}': request for name, ident in HIDDEN for what, request in writing(name, ident)},
    **{f'{name}: {what}': request for name in (*RULES, 'Other') for what, request in gathering(name)},
    **{f'Beside: {what}': request for what, request in beside()},
    **{f'Tasks: {what}': request for what, request in of_tasks()},
}


def ask(stack, ns, request, headers=None):
    _, method, path, body, more = request
    return stack.http.request(method, f'{stack.url}/{ns}/{path}', json=body, headers={**more, **(headers or {})}, timeout=60)


# --- comparing ---

def plain(answer, ns):
    """An answer without what differs between any two: stamps become their places, cursors their lengths."""
    text = answer.text.replace(f'/{ns}/', '/NS/').replace(f'"title":"{ns}"', '"title":"NS"').replace(f'"url":"/{ns}"', '"url":"/NS"')
    stamps = {}
    def number(found):
        return f'stamp{stamps.setdefault(found[0], len(stamps))}'
    headers = {name.lower(): re.sub(r'\b\d{15}\b', number, value) for name, value in comparable(answer.headers).items()}
    text = re.sub(r'(?<=")[\w-]{100,}(?=")', lambda found: f'cursor of {len(found[0])}', text)
    return answer.status_code, headers, re.sub(r'\b\d{15}\b', number, text)


def pages(stack, ns, request, caller):
    """The answer, and those that follow by its cursors."""
    answers = [ask(stack, ns, request, session(caller))]
    while answers[-1].status_code == 200 and answers[-1].headers.get('Content-Type') == 'application/json' and request[3]:
        cursor = (answers[-1].json().get('out') or {}).get('cursor')
        if not cursor:
            break
        request = (*request[:3], {**request[3], 'param': {**request[3]['param'], 'cursor': cursor}}, request[4])
        answers.append(ask(stack, ns, request, session(caller)))
        assert len(answers) < 50
    return answers


@pytest.fixture(scope='module')
def hidden(worlds):
    """Texts that no answer of `full` may have: contents, ids, stamps."""
    texts = {MARK}
    for name in ('Shut', 'Other', 'Desk', 'Veil', *SHARED):
        for one in worlds.op('full', 'list', {'c': name, 'prefix': 'hidden'}, admin=True)['out']['docs']:
            texts |= {one['id'], str(one['v']), str(one['ct']), str(one['dt'])}
    return texts


def grouped(names):
    """One case for all requests of a document, or of a class, by one operation."""
    groups = {}
    for what in names:
        groups.setdefault(f'{what.partition(": ")[0]} by {REQUESTS[what][0]}', []).append(what)
    return groups


GROUPS = grouped(REQUESTS)
FEWER = grouped(what for what in REQUESTS if 'hidden-c' not in what and "'limit': 1}" not in what)


def compare(worlds, hidden, caller, what):
    """What is wrong, or None."""
    request = REQUESTS[what]
    full, bare = (pages(worlds, ns, request, caller) for ns in WORLDS)
    if [plain(answer, 'full') for answer in full] != [plain(answer, 'bare') for answer in bare]:
        return what, [answer.text for answer in full], [answer.text for answer in bare]
    sent = json.dumps(request)
    for answer in full:
        text = answer.text + str(answer.headers)
        if any(one in text and one not in sent for one in hidden):
            return what, text
    return None


@pytest.mark.parametrize('group', GROUPS)
@pytest.mark.parametrize('caller', CALLERS)
def test_both_worlds_answer_alike(worlds, hidden, caller, group):
    assert not [wrong for wrong in (compare(worlds, hidden, caller, what) for what in GROUPS[group]) if wrong]


@pytest.mark.parametrize('group', FEWER)
@pytest.mark.parametrize('caller', WITH_RIGHTS)
def test_callers_with_other_rights_are_answered_alike(worlds, hidden, caller, group):
    assert not [wrong for wrong in (compare(worlds, hidden, caller, what) for what in FEWER[group]) if wrong]


@pytest.mark.parametrize('caller', WITHOUT)
def test_callers_without_rights_are_refused_everywhere(worlds, caller):
    """By every request of the matrix that takes a credential, in both worlds."""
    listen = ('live', 'GET', 'live?def=Shut/hidden-a', None, {})
    for what, request in [*REQUESTS.items(), ('a listener', listen)]:
        if 'hidden-c' in what or (request[0] in (None, *(one[0] for _, one in beside())) and request != listen):
            continue
        for ns in WORLDS:
            answer = ask(worlds, ns, request, session(caller))
            is_text = request[1] == 'HEAD' or 'Accept' in request[4]
            assert answer.status_code == 401 and (is_text or answer.json()['code'] == 'SKEY'), (what, answer.status_code, answer.text)


# --- what has changed since a token ---

def changes(name, number):
    """Of hidden documents, and of hidden items of others: created, moved, changed, deleted."""
    if name == 'Part':
        # Both, since a whole collection is in the order of the last changes, those of hidden items too.
        return [{'c': name, 'id': ident, 'items': [{'c': 'Secret', 'j': {'team': ('red', 'blue')[number % 2], 'text': MARK + str(number)}}]} for ident in 'pq']
    more = {'owner': ACCOUNTS['bob'], 'crew': f'of-{ACCOUNTS["bob"]}'}
    return [{'c': name, 'id': 'hidden-a', 'items': [{'c': 'Main', 'j': {'team': ('blue', 'red')[number % 2], **more}}, {'c': 'Line', 'k': str(number), 'j': MARK}]},
            {'c': name, 'id': 'hidden-new', **({'delete': True} if number % 2 else {'items': [{'c': 'Main', 'j': {'team': 'red', **more}},
                                                                                             {'c': 'Member', 'k': ACCOUNTS['bob'], 'j': {}}]})}]


@pytest.mark.parametrize('caller', CALLERS)
@pytest.mark.parametrize('name', ['Part', 'Shut', 'Other', 'Desk', *SHARED])
def test_a_token_is_answered_alike(worlds, caller, name):
    """Nothing that a caller may not read has changed for it, when in `full` all of it has."""
    requests = {(collection, want): {'param': {'c': name, 'collection': collection, 'value': 'red', 'want': want}}
                for collection in ('all', 'secret') for want in ('ids', 'docs') if name == 'Part' or collection == 'all'}
    tokens = {}
    for number in range(4):
        answers = {}
        for ns, (what, body) in itertools.product(WORLDS, requests.items()):
            param = {**body['param'], **({'token': tokens[ns, what]} if (ns, what) in tokens else {})}
            answers[ns, what] = ask(worlds, ns, (None, 'POST', 'op/collection', {'param': param}, {}), session(caller))
            tokens[ns, what] = answers[ns, what].json()['out']['token']
        for what in requests:
            full, bare = (answers[ns, what] for ns in WORLDS)
            assert plain(full, 'full') == plain(bare, 'bare'), (what, number)
            assert full.json()['out']['complete'] == (number == 0), (what, number)
            assert not number or not full.json()['out'][what[1]] and not full.json()['out']['left'], (what, number, full.text)
        worlds.put('full', *changes(name, number), admin=True)


def covered_changes(name, number):
    """Of what a filter hides: a document that is created, changed and deleted; items of others."""
    if name == 'Veil':
        one = veiled('hidden-a')
        one['items'].append({'c': 'Line', 'k': str(number), 'j': MARK})
        return [one, {**veiled('hidden-new'), **({'items': [], 'delete': True} if number % 2 else {})}]
    items = {'Cut': [{'c': 'Secret', 'j': {'team': ('red', 'blue')[number % 2], 'text': MARK + str(number)}}],
             'Pick': [{'c': 'Line', 'k': f'hidden{number}', 'j': MARK + ' more'}, {'c': 'Line', 'k': 'hidden', **({'del': True} if number else {'j': MARK})}]}
    return [{'c': name, 'id': ident, 'items': items[name]} for ident in 'bd']


@pytest.mark.parametrize('caller', CALLERS)
@pytest.mark.parametrize('name', ['Veil', 'Cut', 'Pick'])
def test_a_token_of_a_filtered_class_is_answered_alike(worlds, caller, name):
    """Whatever changes of what a filter hides; what the client keeps of a document stays the newest."""
    requests = {(collection, want): {'c': name, 'collection': collection, 'value': 'red', 'want': want}
                for collection in ('all', 'secret') for want in ('ids', 'docs')}
    tokens, seen = {}, []
    for number in range(4):
        answers = {}
        for ns, (what, body) in itertools.product(WORLDS, requests.items()):
            param = {**body, **({'token': tokens[ns, what]} if (ns, what) in tokens else {})}
            answers[ns, what] = ask(worlds, ns, (None, 'POST', 'op/collection', {'param': param}, {}), session(caller))
            tokens[ns, what] = answers[ns, what].json()['out']['token']
        for what in requests:
            full, bare = (answers[ns, what] for ns in WORLDS)
            assert plain(full, 'full') == plain(bare, 'bare') and full.json()['out']['complete'], (what, number)
        seen.append([answers['full', what].json()['out'][what[1]] for what in requests])
        held = [{member: one[member] for member in ('c', 'id', 'v', 'ct', 'dt', 'w') if member in one}
                for one in worlds.request('POST', '/full/op/sync', json={'syncs': [{'c': name, 'id': ident} for ident in 'bd']},
                                          headers=session(caller)).json()['syncs']]
        worlds.put('full', *covered_changes(name, number), admin=True)
        again = worlds.request('POST', '/full/op/sync', json={'syncs': held}, headers=session(caller)).json()['syncs']
        assert not any(one['items'] or one['dels'] or one.get('clkeys') for one in again), again
        assert [(one['v'], one.get('w')) for one in again] == [(one['v'], one.get('w')) for one in held]
    assert seen == [seen[0]] * len(seen)


# --- nothing is left out: the lists of operations, methods and addresses are those of the server ---

OTHERS = {'pushkey', 'record',  # without documents
          'openapi',  # of the schema and the rules: test_openapi.py
          'Look',  # of the module with filters: modules are trusted
          'task', 'subs',  # judged when they run and are sent: test_rules_tasks.py, test_rules_push.py
          'membership',  # on behalf of another account: test_membership.py
          # of reserved classes alone: test_accounts.py, test_account_mails.py, test_passkeys.py, test_whois.py
          'account', 'confirm', 'login', 'logout', 'maillogin', 'passkey', 'register', 'reset', 'sessions', 'whois'}
# Locations of nginx: what REQUESTS has of them; or why it has none.
ADDRESSES = {
    r'~ ^/[a-z0-9]+/op/': {'get', 'put', 'list'}, r'~ ^/[a-z0-9]+/doc/': {'GET', 'PUT', 'PATCH', 'DELETE'}, r'~ ^/[a-z0-9]+/res/': {'res'},
    r'~ ^/[a-z0-9]+/od(?:/|$)': {'od'}, r'~ ^/[a-z0-9]+/live$': {'live'}, '/': {'ping', 'openapi.json'},
    r'~ ^/(?<stampd_manager>qm[a-z0-9]*)/op$': 'of queue managers: their own key', '= /ping': 'of no namespace',
    '@stampd_live_later': 'inside', '@stampd_home': 'inside', '@stampd_thumbnails': 'inside', '= /.stampd/large': 'inside', '= /.stampd/upload': 'inside', '/.stampd/files/': 'inside', '/.stampd/objects/': 'inside', '= /.stampd/may': 'inside', '= /.stampd/sealed/': 'inside', '@stampd_object_range': 'inside', '@stampd_again': 'inside',
    '= /live': 'a probe', '= /ready': 'a probe', '= /metrics': 'a probe', r'~ ^/metrics/(?<stampd_manager>qm[a-z0-9]*)$': 'a probe',
}


def operations(stack):
    return [json.loads(line) for line in stack.stampctl('operations', '--json').text.splitlines()]


def test_every_operation_is_decided_on(worlds):
    """A new operation is either judged, and has requests here, or closed to callers that rules judge."""
    listed = {one['name']: one for one in operations(worlds)}
    judged = {name for name, one in listed.items() if one['rules']}
    with_requests = {request[0] for request in REQUESTS.values()} - {None, *(request[0] for _, request in beside())}
    assert judged - OTHERS | {SEARCH} == with_requests and set(listed) >= OTHERS
    assert {name for name, one in listed.items() if not one['rules'] and one['right'] == 'public'} <= {*OTHERS, SEARCH}
    for name in set(listed) - judged - OTHERS - {SEARCH}:
        for ns, caller in itertools.product(WORLDS, ('anybody', 'ann', *WITH_RIGHTS)):
            answer = worlds.request('POST', f'/{ns}/op/{name}', json={}, headers=session(caller))
            assert (answer.status_code, answer.json()['code']) == (401 if caller == 'anybody' else 403, 'SCLOSED'), (name, caller, answer.text)


def test_every_method_of_a_document_has_requests(worlds):
    allowed = ask(worlds, 'full', ('OPTIONS', 'OPTIONS', 'doc/Open/b', None, {})).headers['Allow']
    assert {request[1] for request in REQUESTS.values() if request[2].startswith('doc/')} == set(re.findall(r'\w+', allowed))


def test_every_address_has_requests(worlds):
    found = [one for one in re.findall(r'^\s*location (.*?) \{', (worlds.path / 'etc/nginx.conf').read_text(), re.M) if not re.fullmatch(r'= /.stampd/\d+', one)]
    assert set(found) == set(ADDRESSES)
    kinds = {request[0] for request in REQUESTS.values()}
    assert all(covered <= kinds for covered in ADDRESSES.values() if isinstance(covered, set))


def test_callers_with_other_rights_have_them(worlds):
    for caller, name in WITH_RIGHTS.items():
        def found(who, name=name):
            return worlds.request('POST', '/full/op/list', json={'param': {'c': name}}, headers=session(who)).json()['out']['docs']
        assert [one['id'] for one in found(caller)] == (['b', 'd', 'f'] if name == 'Duty' else ['b', 'd']) and not found('anybody')


def test_other_tasks_are_closed(worlds):
    """Those of put and changemany are judged when they run: test_rules_tasks.py, test_find_change.py."""
    for ns, one in itertools.product(WORLDS, operations(worlds)):
        if one['name'] not in {'put', 'changemany', *OTHERS}:
            answer = worlds.request('POST', f'/{ns}/op/task', json={'param': {'op': one['name'], 'param': {'docs': []}}})
            expected = [(401, 'SCLOSED'), *([(400, 'AARG')] if one['name'] in {request[0] for _, request in of_tasks()} else [])]
            assert (answer.status_code, answer.json()['code']) in expected, (one, answer.text)
    assert all(worlds.psql(ns, 'select count(*) from stampd.taskqueue') == [(0,)] for ns in WORLDS)


def test_changes_at_the_end_of_a_task_are_judged(worlds, hidden):
    """What a worker may not read it cannot try out by `done` either: as by put, in both worlds the same.  A refused end leaves the claim."""
    claims = {}
    for ns in WORLDS:
        worlds.op(ns, 'task', {'op': 'resize'}, admin=True)
        answer = worlds.request('POST', f'/{ns}/op/take', json={'param': {'qn': 16}}, headers=session('eve'))
        claims[ns] = {name: answer.json()['out']['tasks'][0][name] for name in ('id', 'starttime', 'retry')}
    tried = [(name, ident, what, request) for name, ident in HIDDEN for what, request in (*named(name, ident), *writing(name, ident))
             if request[0] == 'put' and not request[4] and name not in ('Staff', 'Desk')]
    refusals = 0
    for name, ident, what, request in tried:
        if ask(worlds, 'bare', request, session('eve')).status_code == 200:
            continue  # it changes nothing, and would end the claim
        answers = {ns: ask(worlds, ns, ('done', 'POST', 'op/done', {**request[3], 'param': {**claims[ns], **request[3]['param']}}, {}), session('eve'))
                   for ns in WORLDS}
        plains = [plain(answer, ns) for ns, answer in answers.items()]
        assert plains[0] == plains[1] and answers['full'].status_code != 200, (name, ident, what, [answer.text for answer in answers.values()])
        assert not any(one in answers['full'].text for one in hidden - {ident} if one not in json.dumps(request)), answers['full'].text
        refusals += answers['full'].status_code in (401, 403)
    assert refusals > 20
    for ns in WORLDS:
        ended = worlds.request('POST', f'/{ns}/op/done', json={'param': claims[ns]}, headers=session('eve'))
        assert ended.json()['out'] == {'result': 'done'}, ended.text


def test_what_stands_beside_is_closed(worlds):
    for ns in WORLDS:
        answer = worlds.request('POST', f'/{ns}/od', json={})
        assert answer.status_code in (401, 403), answer.text


def seek(worlds, search, name, ns='full', caller=None, **more):
    answer = worlds.request('POST', f'/{ns}/op/{SEARCH}', json={'param': {'c': name, 'search': search}, **more}, headers=session(caller))
    return [(row['id'], row['item']) for row in answer.json()['out']['rows']]


def test_a_judged_search_of_the_administrator_has_all_its_rows(worlds):
    def rows(search, name):
        return worlds.op('full', SEARCH, {'c': name, 'search': search}, admin=True)['out']['rows']
    assert {row['id'] for row in rows('Documents', 'Shut')} >= {'hidden-a', 'hidden-c', 'hidden-e'}
    assert {row['item'] for row in rows('Items', 'Part')} >= {'Main', 'Secret'}


def test_a_judged_search_names_the_document_of_each_row(worlds):
    for admin in (False, True):
        assert refused('BMODULE', worlds.op, 'full', SEARCH, {'c': 'Open', 'search': 'Unnamed'}, admin=admin)


def test_a_shown_document_is_shown(worlds):
    """The comparison would hold if everything were refused."""
    assert worlds.get('full', ('Open', 'b'))['items'] and worlds.get('full', ('Look', 'd'))['items']
    assert [one['id'] for one in worlds.op('full', 'list', {'c': 'Open'})['out']['docs']] == ['b', 'd']
    assert worlds.op('full', 'find', {'c': 'Open', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': 'red'}], 'want': 'ids'})['out']['ids'] == ['b', 'd']
    assert worlds.op('full', 'find', {'c': 'Open', 'i': 'Main', 'order': '-team', 'want': 'ids'})['out']['ids'] == ['d', 'b']
    assert worlds.op('full', 'find', {'c': 'Open', 'i': 'Main', 'want': 'count'})['out'] == {'count': 2}
    assert worlds.op('full', 'find', {'c': 'Open', 'i': 'Main', 'want': 'count', 'limit': 1})['out'] == {'count': 1, 'more': True}
    assert worlds.op('full', 'find', {'c': 'Open', 'i': 'Main', 'want': {'by': 'team', 'max': 'team'}})['out'] == {'groups': [{'by': {'team': 'red'}, 'count': 2, 'max': {'team': 'red'}}]}
    assert worlds.op('full', 'find', {'c': 'Part', 'i': 'Secret', 'want': {'max': 'team'}})['out'] == {'count': 0, 'max': {'team': None}}
    hidden = worlds.op('full', 'find', {'c': 'Part', 'i': 'Secret', 'want': {'max': 'team'}}, admin=True)['out']
    assert hidden['count'] == 2 and hidden['max']['team'] in ('red', 'blue'), 'it was changed meanwhile'
    assert [one['id'] for one in worlds.op('full', 'collection', {'c': 'Open', 'collection': 'all', 'value': 'red'})['out']['docs']] == ['b', 'd']
    for name in SHARED:
        found = worlds.request('POST', '/full/op/list', json={'param': {'c': name}}, headers=session('ann')).json()
        assert [one['id'] for one in found['out']['docs']] == ['b', 'd', 'f'], found
        found = worlds.request('POST', '/full/op/list', json={'param': {'c': name}}, headers=session('bob')).json()
        assert [one['id'] for one in found['out']['docs']] == ['hidden-a', 'hidden-c', 'hidden-e'], found
        assert worlds.request('GET', f'/full/doc/{name}/b', headers=session('ann')).json()['items']
    assert worlds.op('full', 'list', {'c': 'Look'})['out'] == {'docs': []}, 'it may be read, not listed'
    assert worlds.op('full', 'find', {'c': 'Look', 'i': 'Main', 'id': {'t': 'eq', 'v1': 'b'}, 'want': 'ids'})['out'] == {'ids': []}
    assert not worlds.op('full', 'collection', {'c': 'Look', 'collection': 'all', 'value': 'red'})['out']['docs']
    assert seek(worlds, 'Items', 'Open') == [('b', 'Main'), ('d', 'Main')] and seek(worlds, 'Documents', 'Veil') == [('b', None), ('d', None)]
    assert seek(worlds, 'Items', 'Part') == [('p', 'Main'), ('q', 'Main')] and not seek(worlds, 'Documents', 'Look')
    assert seek(worlds, 'Items', 'Pick') == [('b', 'Main'), ('d', 'Main')] and not seek(worlds, 'Items', 'Mask'), 'what a filter rewrites or selects'
    assert len(seek(worlds, 'Documents', 'Own', caller='ann')) == 3
    part = worlds.get('full', ('Part', 'p'))
    assert [item['c'] for item in part['items']] == ['Main'] and part['w']


def test_a_version_that_is_sought_is_the_one_that_is_seen(worlds):
    """Changes of what is hidden do not show."""
    def found(test, *values):
        param = {'c': 'Part', 'i': 'Main', 'v': {'t': test, 'v1': values[0], **({'v2': values[1]} if values[1:] else {})}}
        return [one['out'].get('ids', one['out'].get('count')) for one in (worlds.op('full', 'find', param), worlds.op('full', 'find', {**param, 'want': 'count'}))]
    worlds.put('full', {'c': 'Part', 'id': 'p', 'items': [{'c': 'Secret', 'j': {'team': 'red', 'text': MARK + ' again'}}]}, admin=True)
    seen, now = (worlds.op('full', 'get', {'docs': [{'c': 'Part', 'id': 'p'}]}, admin=admin)['out']['docs'][0]['v'] for admin in (False, True))
    other = worlds.op('full', 'get', {'docs': [{'c': 'Part', 'id': 'q'}]})['out']['docs'][0]['v']
    assert seen < other < now
    assert found('eq', seen) == found('in', [seen]) == found('le', seen) == found('gele', seen, seen) == found('lt', other) == found('ne', other) == [['p'], 1]
    assert found('gt', seen) == found('ge', other) == found('gtle', seen, other) == found('nin', [seen, now]) == [['q'], 1]
    assert found('eq', now) == found('gt', other) == found('ge', now) == found('gtlt', seen, other) == [[], 0]
    assert found('ne', now) == found('lt', now) == [['p', 'q'], 2]


def test_a_large_collection_is_streamed_whole(worlds):
    """More members than are judged before their lines are sent; every second one is hidden."""
    count = 640
    names = [f's{i:03}' for i in range(count)]
    for start in range(0, count, 32):
        worlds.put('full', *(shared('Own', name, ACCOUNTS['bob' if place % 2 else 'ann'], team='many')
                             for place, name in enumerate(names[start:start + 32])), admin=True)
    for want in ('ids', 'docs'):
        body = {'param': {'c': 'Own', 'collection': 'all', 'value': 'many', 'want': want, 'stream': True}}
        answer = worlds.request('POST', '/full/op/collection', json=body, headers=session('ann'))
        *lines, end = map(json.loads, answer.text.splitlines())
        assert sorted(one['id'] if want == 'docs' else one[0] for one in lines) == names[::2] and end['members'] == count // 2
        assert ACCOUNTS['bob'] not in answer.text
    for start in range(0, count, 32):
        worlds.put('full', *({'c': 'Own', 'id': name, 'delete': True} for name in names[start:start + 32]), admin=True)


def test_a_kept_answer_is_its_accounts_alone(worlds):
    """Whoever claims the account, or guesses the key, gets no answer of another."""
    body, key = {'param': {'docs': [{'c': 'Own', 'id': 'b', 'items': [{'c': 'Line', 'k': 'kept', 'j': 1}]}]}}, {'Idempotency-Key': 'kept'}
    def put(caller, **more):
        return worlds.request('POST', '/full/op/put', json={**body, **more}, headers={**key, **session(caller)})
    first, again = put('ann'), put('ann')
    assert first.status_code == again.status_code == 200 and again.headers['Idempotency-Replayed'] == 'true'
    for answer in (put('bob'), put('nobody'), put('bob', account=ACCOUNTS['ann']), put('nobody', account=ACCOUNTS['ann'])):
        assert answer.status_code != 200 and 'Idempotency-Replayed' not in answer.headers, answer.text
        assert str(first.json()['out']['v']) not in answer.text


LOST = [('get', {'param': {'docs': [{'c': 'Duty', 'id': 'lost'}]}}), ('get', {'param': {'docs': [{'c': 'Duty', 'id': 'lost', 'age': 3600}]}}),
        ('sync', None), ('list', {'param': {'c': 'Duty', 'prefix': 'lost'}}),
        ('find', {'param': {'c': 'Duty', 'i': 'Main', 'id': {'t': 'eq', 'v1': 'lost'}, 'want': 'items'}}),
        ('collection', {'param': {'c': 'Duty', 'collection': 'all', 'value': 'lost', 'want': 'docs'}})]


def test_a_right_that_is_lost_ends_at_once_on_every_path(worlds):
    """Membership of the team is taken away and given back: each acknowledged change holds at the next request, copies and tags included."""
    def post(name, body):
        return worlds.request('POST', f'/full/op/{name}', json=body, headers=session('ann')).json()
    def read(tag):
        return worlds.request('GET', '/full/doc/Duty/lost', headers={**session('ann'), **({'If-None-Match': tag} if tag else {})})
    crew = {'c': 'Crew', 'id': f'of-{ACCOUNTS["ann"]}'}
    lost = shared('Duty', 'lost', ACCOUNTS['ann'], Secret={'team': 'lost', 'text': 'of mine'})
    lost['items'][0]['j']['team'] = 'lost'
    worlds.put('full', lost, admin=True)
    for _ in range(5):
        shown = read(None)
        copy = post('sync', {'syncs': [{'c': 'Duty', 'id': 'lost'}]})['syncs'][0]
        bodies = [(name, body or {'syncs': [{member: copy[member] for member in ('c', 'id', 'v', 'ct', 'dt')}]}) for name, body in LOST]
        assert shown.status_code == 200 and read(shown.headers['ETag']).status_code == 304 and copy['v']
        assert all('lost' in json.dumps(post(*one)) for one in bodies)
        worlds.put('full', {**crew, 'items': [{'c': 'Member', 'k': ACCOUNTS['ann'], 'del': True}]}, admin=True)
        for one in bodies:
            text = json.dumps(post(*one))
            assert 'of mine' not in text and str(copy['v']) not in text, (one, text)  # a token is of random letters, without a blank
        assert post(*bodies[2])['syncs'] == [{'c': 'Duty', 'id': 'lost', 'v': 0, 'ct': 0, 'dt': 0}]
        assert read(None).status_code == read(shown.headers['ETag']).status_code == 404
        worlds.put('full', {**crew, 'items': [{'c': 'Member', 'k': ACCOUNTS['ann'], 'j': {'role': 'reader'}}]}, admin=True)
    worlds.put('full', {'c': 'Duty', 'id': 'lost', 'delete': True}, admin=True)


def test_a_tolerance_shows_nothing_that_is_over(worlds):
    """Copies in the workers are of the time when the caller could read the document."""
    one = shared('Own', 'over', ACCOUNTS['ann'], Secret={'text': 'mine'})
    aged = {'param': {'docs': [{'c': 'Own', 'id': 'over', 'age': 86400}]}}
    requests = [('POST', '/full/op/get', aged), ('GET', '/full/doc/Own/over?age=86400', None)]
    for _ in range(5):
        worlds.put('full', one, admin=True)
        for method, path, body in requests * 6:  # of every worker
            assert 'mine' in worlds.request(method, path, json=body, headers=session('ann')).text
        worlds.put('full', {**one, 'items': [{'c': 'Main', 'j': {'team': 'red', 'owner': ACCOUNTS['bob']}}]}, admin=True)
        for method, path, body in requests * 6:
            text = worlds.request(method, path, json=body, headers=session('ann')).text
            assert 'mine' not in text and 'Line' not in text, text
    worlds.put('full', {**one, 'items': [], 'delete': True}, admin=True)


def test_a_search_misses_nothing_that_is_written_meanwhile(worlds):
    """The item is found in one version and judged in the next: both match, so an answer without it ends before it."""
    one = shared('Own', 'b', ACCOUNTS['ann'])
    ends, puts = threading.Event(), []

    def write():
        while not ends.is_set():
            one['items'][0]['j']['n'] = len(puts)
            puts.append(worlds.put('full', one, admin=True))
    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        answers, request = [], ('find', 'POST', 'op/find', {'param': {'c': 'Own', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': 'red'}], 'want': 'items'}}, {})
        while len(puts) < 20 or (len(puts) < 2000 and len(answers) < 300):
            answers.append([item['id'] for page in pages(worlds, 'full', request, 'ann') for item in page.json()['out']['items']])
    finally:
        ends.set()
        for writer in writers:
            writer.join()
    assert answers == [['b', 'd', 'f']] * len(answers)


def test_a_view_that_changes_replaces_the_copy(worlds):
    """The rules show more, and less again: a copy of the other view is completed, or loses what is hidden."""
    def show(grants):
        rules = {**RULES, 'Part': {**ALL, 'items': {'Secret': {'see': grants, 'write': []}}}}
        worlds.put('z', {'c': 'Namespace', 'id': 'full', 'items': [{'c': 'Rules', 'j': rules}]}, admin=True)
    def sync(copy):
        held = {member: copy[member] for member in ('c', 'id', 'v', 'ct', 'dt', 'w') if member in copy}
        return worlds.op('full', 'sync', syncs=[held])['syncs'][0]
    part = sync({'c': 'Part', 'id': 'p'})
    tag = worlds.request('GET', '/full/doc/Part/p').headers['ETag']
    assert part['w'] and tag == f'"{part["v"]}-{part["w"]}"' and sync(part)['items'] == []
    show(['anybody'])
    whole = sync(part)
    assert 'w' not in whole and {item['c'] for item in whole['items']} == {'Main', 'Secret'} and whole['clkeys'] == [] and whole['v'] > part['v']
    assert worlds.request('GET', '/full/doc/Part/p', headers={'If-None-Match': tag}).status_code == 200
    assert sync(whole)['items'] == []
    show([])
    again = sync(whole)
    assert {**again, 'dels': []} == {**part, 'clkeys': []} and MARK not in json.dumps(again)
    refused('AVERSION', lambda: worlds.put('full', {'c': 'Part', 'id': 'p', 'if': whole['v'], 'items': []}))


def test_what_is_hidden_of_a_document_stays(worlds):
    """PUT replaces what the caller sees; what it does not see it may neither set nor remove, nor learn whether it is there."""
    secrets = [item for item in worlds.get('full', ('Part', 'q'), admin=True)['items'] if item['c'] == 'Secret']
    items = {'items': [{'c': 'Main', 'j': {'team': 'red'}}]}
    assert worlds.request('PUT', '/full/doc/Part/q', json=items).status_code == 200
    for change in ({'del': True}, {'j': secrets[0]['j']}, {'j': 1}):
        for ns in WORLDS:
            answer = worlds.request('PATCH', f'/{ns}/doc/Part/q', json={'items': [{'c': 'Secret', **change}]})
            assert (answer.status_code, answer.json()['code']) == (401, 'SRULE'), answer.text
    assert [item for item in worlds.get('full', ('Part', 'q'), admin=True)['items'] if item['c'] == 'Secret'] == secrets

"""Searches and collections, where nothing is declared: words, types, bounds, texts that only the server gives."""
import json

from hostile import ADMIN, LIMITS, refused

FIND, SEARCH, COLLECTION = '/lab/op/find', '/lab/op/search', '/lab/op/collection'
QUESTION = {'c': 'Hostile', 'collection': 'team', 'value': 'x'}
SEALED = '0' * 32 + '.1 1 1 1 '


def body(param):
    return json.dumps({'admin': ADMIN.decode(), 'param': param})


def change(name, code, param, status=400):
    return refused(f'changemany: {name}', code, body({'c': 'Hostile', 'i': 'Item', **param}), status, target='/lab/op/changemany')


def find(name, code, param, status=400):
    return refused(f'find: {name}', code, body(param), status, target=FIND)


def collection(name, code, param, status=400):
    return refused(f'collection: {name}', code, body(param), status, target=COLLECTION)


def search(name, code, param, status=400):
    return refused(f'search: {name}', code, body(param), status, target=SEARCH)


def cases():
    for what in ('', 'none', "x'; drop table doc; --", 'q"', 'stampd.doc', 'É', 'x' * 1000):
        yield search(f'{what!r:.20}, which nobody declared', 'NSEARCH', {'name': what, 'args': {'a': what}}, 404)
    for what in (7, None, [], {}, True):
        yield search(f'name {what!r}', 'AARG', {'name': what})
    for class_, item in (('Hostile', 'Item'), ('Where', 'In'), ('Hostile', 'X'), ('H' * 16, 'I' * 16)):
        yield find(f'{class_[:8]}.{item[:8]}, which nobody declared', 'NFIELD', {'c': class_, 'i': item}, 404)
        yield find(f'a field of {class_[:8]}.{item[:8]}', 'NFIELD', {'c': class_, 'i': item, 'where': [{'f': 'x', 't': 'eq', 'v1': 1}]}, 404)
    for class_ in ('Hostile', 'Where', 'H' * 16):
        yield collection(f'{class_[:8]}, which nobody declared', 'NCOLLECTION', {**QUESTION, 'c': class_}, 404)
    for what in ('', 'hostile', 'Host ile', 'H' * 17, "H'; drop table doc; --", 'H"', 'É', 7, None, [], {}, True):
        yield find(f'class {what!r:.20}', 'AARG', {'c': what, 'i': 'Item'})
        yield find(f'class of items {what!r:.20}', 'AARG', {'c': 'Hostile', 'i': what})
        yield collection(f'class {what!r:.20}', 'AARG', {**QUESTION, 'c': what})
    for what in (7, [], {}, True):
        yield collection(f'name {what!r}', 'AARG', {**QUESTION, 'collection': what})
        yield collection(f'token {what!r}', 'AARG', {**QUESTION, 'token': what})
        yield collection(f'cursor {what!r}', 'AARG', {**QUESTION, 'cursor': what})
    yield collection('a long name', 'ALIMIT', {**QUESTION, 'collection': 'x' * (LIMITS['limit_name_bytes'] + 1)})
    for what in (None, {}, [], [[]], [None], [{}], ['x'] * 5):
        yield collection(f'value {str(what):.20}', 'AARG', {**QUESTION, 'value': what})
    for what in ('', 'x', SEALED, SEALED[:33], '0' * 32, SEALED * 100, "' or true --"):
        yield collection(f'token {what!r:.12}, {len(what)} long', 'AARG', {**QUESTION, 'token': what})
        yield collection(f'cursor {what!r:.12}, {len(what)} long', 'AARG', {**QUESTION, 'cursor': what})
    for what in (0, -1, 1001, 1.5, '1', 2**63, [], {}):
        yield find(f'limit {what!r}', 'AARG', {'c': 'Hostile', 'i': 'Item', 'limit': what})
        yield collection(f'limit {what!r}', 'AARG', {**QUESTION, 'limit': what})
    for what in ([[]], [[1]], [['x'] * 9], [[['x']]], ['x', []], [['x', None]], [['x']] * 33):
        yield find(f'want {what!r:.20}', 'AARG', {'c': 'Hostile', 'i': 'Item', 'want': what})
    for what in ('', 'all', 'IDS', 7, [], {}):
        if what != {}:  # totals: only how many
            yield find(f'want {what!r}', 'AARG', {'c': 'Hostile', 'i': 'Item', 'want': what})
        yield collection(f'want {what!r}', 'AARG', {**QUESTION, 'want': what})
    for what in (None, 0, 'x', [], [1], {'a': {'a': None}, **{f'm{i}': 1 for i in range(100)}}):
        yield change(f'merge {str(what):.20}', 'AARG', {'merge': what})
    for what in (0, 1, 'true', [], {}):
        yield change(f'delete {what!r}', 'AARG', {'delete': what})
        yield change(f'del {what!r}', 'AARG', {'del': what})
    for what in (0, -1, 1.5, '1', 2**63, []):
        yield change(f'limit {what!r}', 'AARG', {'delete': True, 'limit': what})
    yield change('all at once', 'AARG', {'delete': True, 'del': True, 'merge': {}})

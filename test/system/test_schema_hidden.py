"""Where rules decide, the schema of a class that a caller cannot list is told to it by no operation: each answers as if the class, the item, the
field or the collection were not declared."""
import json
import re
import secrets

import pytest

from schema import Schemas
from stack import comparable

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'closed'}}
CLASS = {'items': {'Main': {'singleton': True, 'fields': {'name': 'string', 'size': 'int'}}, 'Line': {'fields': {'word': 'string'}}},
         'collections': {'team': {'key': ['Main.team'], 'mutable': True}, 'place': {'key': ['Main.town', 'Main.street'], 'mutable': True}},
         'unique': {'mail': {'key': ['Main.mail']}}, 'maxLife': 'Main.until'}
# Open is listed; the others are declared and are not: no rule, no list, for a role, of accounts, to nobody; Unknown and Strange are not declared.
DECLARED = ('Hidden', 'Readable', 'Roled', 'Owned', 'Shut')
UNKNOWN = ('Unknown', 'Strange')
RULES = {'Open': {'read': ['anybody'], 'list': ['anybody']}, 'Readable': {'read': ['anybody']}, 'Roled': {'read': ['role:boss'], 'list': ['role:boss']},
         'Owned': {'owner': 'Main.owner', 'read': ['owner'], 'list': ['owner']}, 'Shut': {'read': [], 'list': []}, 'Strange': {'read': [], 'list': []}}


@pytest.fixture(scope='module')
def lab(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {name: CLASS for name in ('Open', *DECLARED)})
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'access': 'rules', 'rules': RULES, 'accounts': {'registration': 'open', 'anonymous': True}}}, admin=True)
    for name in DECLARED:
        stack.put('lab', {'c': name, 'id': 'a', 'items': [{'c': 'Main', 'j': {'name': 'x', 'team': 'red', 'town': 'b', 'street': 'c', 'mail': f'{name}@example.org'}}]}, admin=True)
    return stack


VALUES = ('red', ['b', 'c'], 7, {})
SEARCHES = [{'i': item, 'want': 'items'} for item in ('Main', 'Line', 'None')] + [
    {'i': item, 'where': [{'f': field, 't': test, 'v1': value}]} for item in ('Main', 'None') for field in ('name', 'size', 'none')
    for test, value in (('eq', 'x'), ('sw', 1), ('no', 1))]
COLLECTIONS = [{'collection': name, 'value': value, **more} for name in ('team', 'place', 'none') for value in VALUES
               for more in ({}, {'stream': True}, {'token': 'x'})]
ITEMS = [[{'c': 'Main', 'j': {'name': 'y'}}], [{'c': 'Line', 'k': 'k', 'j': {}}], [{'c': 'None', 'j': 1}], [{'c': 'Main', 'k': 'k', 'j': 1}], [{'c': 'Main', 's': 'raw'}],
         [{'c': 'Main', 'j': {'mail': 'Hidden@example.org'}}], [{'c': 'Main', 'j': {'name': 7, 'until': 'never'}}], []]
# Each operation that names a class, with the arguments that could be answered otherwise.
MATRIX = [('find', lambda c, more=more: {'c': c, **more}) for more in SEARCHES] + [('collection', lambda c, more=more: {'c': c, **more}) for more in COLLECTIONS] + [
    ('list', lambda c: {'c': c}), ('list', lambda c: {'c': c, 'prefix': 'a'}), ('get', lambda c: {'docs': [{'c': c, 'id': 'none'}]}), ('get', lambda c: {'docs': [{'c': c, 'id': 'a'}]}),
    ('attach', lambda c: {'c': c, 'id': 'a', 'k': 'f', 'text': 'x'})] + [
    ('put', lambda c, items=items, id_=id_: {'docs': [{'c': c, 'id': id_, 'items': items}]}) for items in ITEMS for id_ in ('a', 'none')] + [
    ('subs', lambda c, text=text: {'defs': [f'{c}{text}']}) for text in ('', '/a', '/team@red', '/place@b@c', '/place@b', '/none@red', '/mail@x')]
SEARCHING = ('find', 'collection', 'list', 'subs')
RESOURCES = [(method, f'/lab/doc/%s/a{path}') for method in ('GET', 'HEAD', 'PUT', 'PATCH', 'DELETE') for path in ('', '/file/f', '/items/Main', '/items/None')] + [
    ('GET', f'/lab/live?def=%s{text}') for text in ('/team@red', '/place@b', '/none@red')]


def told(answer, name):
    """All of the answer that a caller sees, with the same name for each class."""
    headers = comparable(answer.headers, 'content-length', 'server-timing', 'etag')
    if answer.headers.get('Content-Type', '').startswith('text/event-stream'):
        return answer.status_code, headers
    text = re.sub(r'"(v|until)":[0-9]+', r'"\1":0', answer.text)  # of a subscription: the time
    return answer.status_code, {key: value.replace(name, 'CLASS') for key, value in headers.items()}, text.replace(name, 'CLASS')


def account(lab):
    return {'Authorization': f"Bearer {lab.op('lab', 'register', {})['out']['token']}"}


@pytest.fixture(scope='module', params=['a stranger', 'an account'])
def headers(lab, request):
    return {} if request.param == 'a stranger' else account(lab)


def differences(headers, ask, names):
    """For which of the classes the answer is another than for one that is not declared."""
    answers = {name: told(ask(name, headers), name) for name in (*UNKNOWN, *names)}
    return {name: (answer, answers['Unknown']) for name, answer in answers.items() if answer != answers['Unknown']}


def names_for(headers, is_search):
    """An account may have one of Owned; and whoever may read a document of Readable sees what is in it."""
    return [name for name in DECLARED if not (headers and name == 'Owned') and (is_search or name != 'Readable')]


def test_every_operation_that_names_a_class(lab, headers):
    found = {}
    for operation, param in MATRIX:
        def ask(name, headers):
            body = {'param': param(name), **({'session': secrets.token_urlsafe(24)} if operation == 'subs' else {})}
            return lab.http.post(f'{lab.url}/lab/op/{operation}', json=body, headers=headers, timeout=60)
        for name, difference in differences(headers, ask, names_for(headers, operation in SEARCHING)).items():
            found[operation, name, json.dumps(param(name))] = difference
    assert not found, (len(found), sorted(found), list(found.items())[:2])


def test_every_path_that_names_a_class(lab, headers):
    found = {}
    for method, path in RESOURCES:
        def ask(name, headers):
            body = {'json': {'items': []}} if method in ('PUT', 'PATCH') and '/file' not in path else {}
            with lab.http.request(method, lab.url + path % name, headers=headers, timeout=60, stream='/live' in path, **body) as answer:
                return answer
        for name, difference in differences(headers, ask, names_for(headers, '/live' in path)).items():
            found[method, name, path] = difference
    assert not found, (len(found), list(found.items())[:5])


def test_no_operation_is_missing(lab):
    """An operation that takes a class of documents is in the matrix, or its class is nobody's: those of the administrator and of applications."""
    described = lab.http.get(f'{lab.url}/lab/openapi.json', headers={'Authorization': f'Bearer {lab.key}'}, timeout=60).json()
    named = {path.rpartition('/')[2] for path in described['paths'] if '/op/' in path}
    assert {operation for operation, _ in MATRIX} <= named | {'attach'}


def test_what_is_listed_is_told(lab, headers):
    """The difference is there for a class that the caller may list, so it would be found."""
    for operation, param, status in (('find', {'c': 'Open', 'i': 'Main'}, 200), ('find', {'c': 'Open', 'i': 'None'}, 404), ('collection', {'c': 'Open', 'collection': 'team', 'value': 'red'}, 200)):
        answer = lab.http.post(f'{lab.url}/lab/op/{operation}', json={'param': param}, headers=headers, timeout=60)
        assert answer.status_code == status, answer.text

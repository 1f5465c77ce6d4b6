"""The description of a namespace (OpenAPI 3.1): its operations, classes and rights, as far as the caller may know them; real answers are what it says."""
import functools
import json
import re
from urllib.parse import unquote

import jsonschema
import pytest

from kit import Kit
from schema import Schemas
from stack import PATIENCE_S, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'shut': 'closed', 'demo': 'read', 'lab': 'open', 'team': 'rules', 'large': 'open'}}
SETTINGS = {'limit_answer_bytes': 4194304, 'limit_document_bytes': 1048576}
CONTENT = {'type': 'object', 'properties': {'team': {'type': 'string'}}, 'required': ['team']}
# References of each kind, and what only looks like one.
TREE = {'$id': 'tree', '$schema': 'https://json-schema.org/draft/2020-12/schema', '$ref': '#/$defs/node',
        '$defs': {'node': {'type': 'object', 'properties': {'next': {'$ref': '#'}, 'name': {'$ref': '#name'}, '$ref': {'type': 'integer'}, 'enum': {'$ref': '#/$defs/node/properties/%24ref'}}},
                  'name': {'$anchor': 'name', 'type': 'string', 'maxLength': 5}, 'kind': {'enum': [{'$ref': '#'}], 'default': {'$ref': '#name'}}},
        'allOf': [{'properties': {'kind': {'$ref': '#/$defs/kind'}}}]}
TREES = [({}, True), ({'next': {'next': {'name': 'five5'}}, '$ref': 1, 'enum': 2}, True), ({'kind': {'$ref': '#'}}, True), ({'next': {'next': {'name': 'sixsix'}}}, False), ({'next': 1}, False),
         ({'enum': 'x'}, False), ({'$ref': 'x'}, False), ({'kind': {'$ref': '#/components'}}, False)]
ITEMS = {'Main': {'singleton': True, 'fields': {'team': 'string', 'words': {'text': ['team']}}, 'indexes': [['~team']], 'content': CONTENT}, 'Line': {}, 'Secret': {'singleton': True}, 'Text': {'raw': True, 'content': {'maxLength': 3}}}
SCHEMA = {name: {'items': ITEMS, 'collections': {'all': {'key': ['Main.team'], 'mutable': True}}} for name in ('Note', 'Mine', 'Hidden')}
TREE_SCHEMA = {'Tree': {'items': {'Main': {'singleton': True, 'content': TREE}, 'All': {'singleton': True, 'content': True}, 'None': {'singleton': True, 'content': False}}}}
UNDESCRIBED = {'copy', 'push', 'metrics', 'openapi'}  # tasks of the server; text; itself
RULES = {'Note': {'read': ['anybody'], 'list': ['anybody'], 'create': ['account'], 'items': {'Secret': {'see': ['role:staff'], 'write': ['role:staff']}}},
         'Mine': {'owner': 'Main.team', 'read': ['owner'], 'list': ['owner'], 'update': ['owner']},
         'Hidden': {'read': ['role:staff']}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    STACK['settings'] = {**SETTINGS, 'modules': Kit().build('rights.c')}


@pytest.fixture(scope='module')
def world(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for ns in ('lab', 'demo', 'shut', 'team'):
        teams = {'class': 'Note', 'params': [['team', 'string']], 'result': [['id', 'string'], ['value', 'json']],
                 'sql': "select id, value from items where class = 'Note' and item = 'Main' and value ->> 'team' = $1"}
        schemas.apply(ns, {**SCHEMA, **(TREE_SCHEMA if ns == 'lab' else {})}, searches={'teams': teams})
    stack.op('z', 'ns', {'set': {'ns': 'team', 'rules': RULES}}, admin=True)
    stack.admin('ns', 'accounts', 'team', '{"registration":"open","whois":"account","mail_login":true}')
    wait_until(lambda: stack.request('POST', '/team/op/login', json={'param': {'name': 'x', 'password': 'correct horse battery'}}).json().get('code') == 'SKEY', what='the accounts')
    stack.ann = stack.op('team', 'register', {'name': 'ann', 'password': 'correct horse battery'})['out']['token']
    return stack


def describe(stack, ns, token=None):
    headers = {'Authorization': f'Bearer {token}'} if token else {}
    answer = stack.http.get(f'{stack.url}/{ns}/openapi.json', headers=headers, timeout=PATIENCE_S)
    assert answer.status_code == 200 and answer.headers['Content-Type'] == 'application/json', answer.text
    return answer.json()


def classes(description):
    return {name for name in description['components']['schemas'] if not name.startswith('stampd.')}


def operations(description):
    return {path.removeprefix('/op/') for path in description['paths'] if path.startswith('/op/')}


def callable_by(stack, ns, headers):
    """What the server lists, as far as it runs it for the caller: it refuses the parameter, not the caller or the place."""
    listed = [json.loads(line) for line in stack.stampctl('operations', '--json').text.splitlines()]
    found = set()
    for name in (one['name'] for one in listed if one['kind'] == 'operation'):
        refusal = stack.http.post(f'{stack.url}/{ns}/op/{name}', json={'param': {'nothing': 1}}, headers=headers, timeout=PATIENCE_S).json()
        code, args = refusal.get('code'), refusal.get('args')
        assert code in ('SCLOSED', 'AARG') or name in ('Who', 'Ration'), refusal
        if code != 'SCLOSED' and (code, args) != ('AARG', ['path']):
            found.add(name)
    return found


@pytest.mark.parametrize('ns', ['z', 'lab', 'demo', 'shut', 'team'])
@pytest.mark.parametrize('caller', ['nobody', 'ann', 'admin'])
def test_it_has_the_operations_that_the_caller_may_call(world, ns, caller):
    if ns == 'z' and caller != 'admin' or caller == 'ann' and ns != 'team':
        pytest.skip('refused at the door')
    token = {'nobody': None, 'ann': world.ann, 'admin': world.key}[caller]
    headers = {'Authorization': f'Bearer {token}'} if token else {}
    described = operations(describe(world, ns, token))
    assert described == callable_by(world, ns, headers) - UNDESCRIBED
    methods = set(describe(world, ns, token)['paths'].get('/doc/{class}/{id}', {}))
    assert methods - {'parameters'} == {*(['get'] if 'get' in described else []), *(['put', 'patch', 'delete'] if 'put' in described else [])}


def test_strangers_of_z_are_refused(world):
    answer = world.http.get(f'{world.url}/z/openapi.json', timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()['code']) == (401, 'SCLOSED')


def test_operations_of_modules_are_among_them(world):
    described = describe(world, 'shut')['paths']['/op/Touch']['post']
    assert described['summary'] == 'An operation of a module.' and described['operationId'] == 'Touch'


def test_it_has_the_classes_that_the_caller_may_know(world):
    items = {'Main', 'Line', 'Secret', 'Text'}
    everything = {*SCHEMA, *(f'{name}.{item}' for name in SCHEMA for item in items)}
    assert classes(describe(world, 'lab')) == {*everything, 'Tree', *(f'Tree.{name}' for name in ('Main', 'All', 'None'))}
    assert classes(describe(world, 'demo')) == classes(describe(world, 'team', world.key)) == everything
    assert classes(describe(world, 'shut')) == set()
    assert classes(describe(world, 'team')) == {'Note', *(f'Note.{item}' for item in items - {'Secret'})}
    description = describe(world, 'team', world.ann)
    assert classes(description) == {'Note', 'Mine', *(f'Note.{item}' for item in items - {'Secret'}), *(f'Mine.{item}' for item in items)}
    schemas = description['components']['schemas']
    assert schemas['Note']['x-stampd-access'] == {'read': 'always', 'list': 'always', 'create': 'always', 'update': 'never', 'delete': 'never'}
    assert schemas['Mine']['x-stampd-access'] == {'read': 'some', 'list': 'some', 'create': 'never', 'update': 'some', 'delete': 'never'}
    assert CONTENT.items() <= schemas['Note.Main'].items() and schemas['Note.Main']['x-stampd-access'] == {'see': 'always', 'write': 'always'}
    assert (schemas['Note.Text']['type'], schemas['Note.Text']['maxLength'], schemas['Note.Text']['x-stampd-singleton']) == ('string', 3, False)


@pytest.mark.parametrize('item, content, is_right', [*(('Main', content, is_right) for content, is_right in TREES), ('All', 1, True), ('None', 1, False)])
def test_references_of_a_content_lead_to_the_same(world, item, content, is_right):
    """The server judges by the schema as it was declared, a client by the copy in the description."""
    answer = world.request('POST', '/lab/op/put', json={'param': {'docs': [{'c': 'Tree', 'id': 'a', 'items': [{'c': item, 'j': content}]}]}})
    assert (answer.status_code == 200) == is_right, answer.text
    description = describe(world, 'lab')
    validator = jsonschema.Draft202012Validator({'$ref': f'#/components/schemas/Tree.{item}'}, resolver=jsonschema.RefResolver('', description))
    assert validator.is_valid(content) == is_right


def validate(description, schema, value):
    jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver('', description)).validate(value)


def validate_answer(description, described, answer):
    """With the body that the description has for its status."""
    found = described['responses'].get(str(answer.status_code), description['components']['responses']['stampd.Fault'])
    kind = answer.headers.get('Content-Type')
    if not kind:
        assert not answer.content and 'content' not in found
        return
    validate(description, found['content'][kind]['schema'], answer.json())
    for name, header in found.get('headers', {}).items():
        validate(description, header['schema'], answer.headers[name])


MAIN, LINE, TEXT = {'c': 'Main', 'j': {'team': 'red'}}, {'c': 'Line', 'k': '1', 'j': 1}, {'c': 'Text', 'k': 'x', 's': 'raw'}
PARAMS = [('put', {'docs': [{'c': 'Note', 'id': 'a', 'items': [MAIN, LINE, TEXT]}]}), ('put', {'docs': [{'c': 'Note', 'id': 'a', 'items': [{'c': 'Line', 'k': '1', 'del': True}]}]}),
          ('put', {'docs': [{'c': 'Note', 'id': 'gone', 'items': [MAIN]}, {'c': 'Note', 'id': 'b', 'if': 0}]}), ('put', {'docs': [{'c': 'Note', 'id': 'gone', 'delete': True}]}),
          ('put', {'docs': [{'c': 'Note', 'id': 'a', 'if': 1}]}), ('get', {'docs': [{'c': 'Note', 'id': 'a'}, {'c': 'Note', 'id': 'none', 'age': 60}]}), ('sync', {}), ('list', {'c': 'Note'}), ('list', {}),
          ('find', {'c': 'Note', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': 'red'}], 'want': 'items'}), ('find', {'c': 'Note', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': 'red'}]}),
          ('find', {'c': 'Note', 'i': 'Main', 'where': [{'f': 'words', 't': 'match', 'v1': 'red -blue'}], 'order': '-words'}),
          ('find', {'c': 'Note', 'i': 'Main', 'where': [{'f': 'team', 't': 'like', 'v1': 'redd', 'v2': 0.4}], 'order': '~team'}),
          ('find', {'c': 'Note', 'i': 'Main', 'order': '-team'}), ('find', {'c': 'Note', 'i': 'Main', 'want': 'count', 'limit': 1}),
          ('find', {'c': 'Note', 'i': 'Main', 'want': 'docs', 'where': [{'not': {'or': [{'f': 'team', 't': 'eq', 'v1': 'blue'}]}}], 'v': {'t': 'gt', 'v1': 1}, 'ct': {'t': 'in', 'v1': [1, 2]}}),
          ('find', {'c': 'Note', 'i': 'Main', 'want': ['team']}), ('find', {'c': 'Note', 'i': 'Main', 'want': {'max': 'team'}}), ('find', {'c': 'Note', 'i': 'Main', 'want': {'by': ['team']}}),
          ('search', {'name': 'teams', 'args': {'team': 'red'}}), ('search', {'name': 'teams'}),
          ('collection', {'c': 'Note', 'collection': 'all', 'value': 'red'}), ('collection', {'c': 'Note', 'collection': 'all', 'value': 'red', 'want': 'ids'}),
          ('task', {'op': 'put', 'param': {'docs': []}, 'delay': 3600}), ('tasks', {'backlog': True}), ('volumes', {}), ('subs', {'defs': ['Note', 'Note/a']}), ('subs', {}), ('explain', {'c': 'Note', 'id': 'a'}),
          ('explain', {'cases': [{'may': 'read', 'document': {'c': 'Note', 'id': 'a'}, 'expected': False}], 'rules': {}})]


def test_answers_are_what_it_says(world):
    description = describe(world, 'lab', world.key)
    for name, param in PARAMS:
        described = description['paths'][f'/op/{name}']['post']
        request = {'param': param, 'syncs': [{'c': 'Note', 'id': 'a', 'v': 1, 'ct': 1, 'dt': 0}, {'c': 'Note', 'id': 'none'}], 'session': 'a-session-of-the-tests'}
        answer = world.request('POST', f'/lab/op/{name}', json=request, headers={'Authorization': f'Bearer {world.key}'})
        assert answer.status_code == (409 if param == {'docs': [{'c': 'Note', 'id': 'a', 'if': 1}]} else 200), answer.text
        validate(description, described['requestBody']['content']['application/json']['schema'], request)
        validate_answer(description, described, answer)


def test_answers_to_external_workers_are_what_it_says(world):
    world.op('z', 'ns', {'set': {'ns': 'lab', 'workers': [{'qn': 16, 'ops': ['resize']}]}}, admin=True)
    description, tasks = describe(world, 'lab', world.key), []
    for _ in range(4):
        world.op('lab', 'task', {'op': 'resize'}, admin=True)
    for name, more in (('take', {'qn': 16, 'n': 1, 'wait': 0, 'worker': 'one'}), ('keep', {'claim': 100}), ('done', {'take': {'qn': 16, 'n': 1, 'claim': 100, 'worker': 'one', 'wait': 1}}),
                       ('fail', {'release': True, 'take': {'qn': 16, 'wait': 1}}), ('take', {'qn': 16}), ('done', {'docs': [{'c': 'Note', 'id': 'w', 'items': [MAIN]}], 'take': {'qn': 16}}), ('done', {'take': {'qn': 16, 'wait': 1, 'apart': True}}),
                       ('take', {'qn': 16, 'after': None})):
        described = description['paths'][f'/op/{name}']['post']
        claim = {member: tasks[0][member] for member in ('id', 'starttime', 'retry')} if tasks else {}
        if 'after' in more:
            more['after'] = ended
        request = {'param': {**(claim if name != 'take' else {}), **more}}
        answer = world.request('POST', f'/lab/op/{name}', json=request, headers={'Authorization': f'Bearer {world.key}'})
        assert answer.status_code == 200, answer.text
        validate(description, described['requestBody']['content']['application/json']['schema'], request)
        validate_answer(description, described, answer)
        tasks, ended = answer.json()['out'].get('tasks', tasks), claim


def test_answers_about_accounts_are_what_it_says(world):
    description = describe(world, 'team', world.ann)
    for name, param in (('register', {'name': 'bob', 'password': 'correct horse battery', 'device': 'a phone'}), ('login', {'name': 'bob', 'password': 'correct horse battery'}),
                        ('login', {'name': 'bob', 'password': 'wrong horse battery'}), ('account', {}), ('sessions', {}), ('account', {'set': {'name': 'rob'}, 'password': 'correct horse battery'}),
                        ('account', {'set': {'name': 'tom'}, 'password': 'correct horse battery', 'invitation': 'X'}), ('whois', {'name': 'rob'}), ('whois', {'address': 'rob@example.org'}),
                        ('membership', {'invite': {'c': 'Note', 'id': 'a', 'content': {}, 'name_as': 'name', 'label': 'x', 'days': 1, 'uses': 2}}), ('membership', {'list': {'c': 'Note', 'id': 'a'}}),
                        ('membership', {'revoke': {'c': 'Note', 'id': 'a', 'key': 'x' * 16}}), ('membership', {'look': 'x'}), ('membership', {'join': 'x'}),
                        ('account', {'set': {'hidden': True}, 'password': 'correct horse battery'}), ('whois', {'name': 'rob'}),
                        ('maillogin', {'ticket': 'X', 'device': 'a phone'}), ('maillogin', {'name': 'rob'}),
                        ('confirm', {'ticket': 'X', 'password': 'correct horse battery', 'invitation': 'X'}), ('logout', {}), ('account', {})):
        described = description['paths'][f'/op/{name}']['post']
        token = {} if name in ('register', 'login') else {'Authorization': f'Bearer {world.bob}'}
        answer = world.request('POST', f'/team/op/{name}', json={'param': param}, headers=token)
        if name in ('register', 'login') and answer.status_code == 200:
            world.bob = answer.json()['out']['token']
        validate(description, described['requestBody']['content']['application/json']['schema'], {'param': param})
        validate_answer(description, described, answer)


def test_documents_as_resources_are_what_it_says(world):
    description = describe(world, 'lab')
    url, described = f'{world.url}/lab/doc/Note/r', description['paths']['/doc/{class}/{id}']
    for method, status, body, headers in (('put', 201, {'items': [MAIN]}, {}), ('put', 200, {'items': [MAIN, LINE]}, {}), ('patch', 200, {'items': [TEXT]}, {}), ('get', 200, None, {}),
                                          ('get', 304, None, {'If-None-Match': '*'}), ('put', 412, {'items': []}, {'If-Match': '"1"'}), ('delete', 200, None, {}), ('get', 404, None, {}), ('delete', 404, None, {})):
        answer = world.http.request(method, url, json=body, headers=headers, timeout=PATIENCE_S)
        assert answer.status_code == status, answer.text
        if body:
            validate(description, described[method]['requestBody']['content']['application/json']['schema'], body)
        validate_answer(description, described[method], answer)


@pytest.mark.parametrize('request_', [{'param': {'docs': [{'c': 'small', 'id': 'a'}]}}, {'param': {'docs': [{'c': 'Note'}]}}, {'param': {'documents': []}}, {'parameter': {}}, {'syncs': [{'id': 'a'}]}])
def test_what_the_server_refuses_is_not_what_it_says(world, request_):
    description = describe(world, 'lab')
    schema = description['paths']['/op/get']['post']['requestBody']['content']['application/json']['schema']
    assert world.request('POST', '/lab/op/get', json=request_).status_code == 400
    with pytest.raises(jsonschema.ValidationError):
        validate(description, schema, request_)


def test_names_in_it_lead_somewhere(world):
    for ns, token in (('lab', None), ('demo', None), ('shut', None), ('team', world.ann), ('z', world.key), ('team', world.key)):
        description = describe(world, ns, token)
        for target in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(description))):
            functools.reduce(lambda at, step: at[int(step) if isinstance(at, list) else unquote(step)], target.split('/'), description)
        for schema in description['components']['schemas'].values():
            jsonschema.Draft202012Validator.check_schema(schema)
        names = [one['operationId'] for path in description['paths'].values() for one in path.values() if 'operationId' in one]
        assert len(names) == len(set(names)) and description['servers'] == [{'url': f'/{ns}'}]


def test_a_description_is_not_larger_than_another_answer(world, tmp_path):
    content = {'description': 'x' * 60000}
    Schemas(world, tmp_path).apply('large', {f'Large{number}': {'items': {'Main': {'content': content}, 'Line': {'content': content}}} for number in range(36)})
    answer = world.http.get(f'{world.url}/large/openapi.json', timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()['code'], answer.json()['args'][0]) == (400, 'ALIMIT', 'limit_answer_bytes')
    Schemas(world, tmp_path).apply('large', {f'Large{number}': {'items': {'Main': {'content': content}, 'Line': {'content': content}}} for number in range(30)})
    wait_until(lambda: world.http.get(f'{world.url}/large/openapi.json', timeout=PATIENCE_S).status_code == 200, what='the smaller schema')


def test_a_namespace_that_is_off_describes_nothing(world):
    world.admin('ns', 'off', 'demo', 'at rest')
    try:
        wait_until(lambda: world.http.get(f'{world.url}/demo/openapi.json', timeout=PATIENCE_S).json().get('code') == 'OOFF', what='the refusal')
    finally:
        world.admin('ns', 'on', 'demo')
    assert world.http.get(f'{world.url}/none/openapi.json', timeout=PATIENCE_S).status_code == 404

"""Contents are checked against the JSON Schema of their class on every way into the database."""
import json
import os
import shutil
import subprocess

import pytest

from kit import Kit
from manager import Manager
from schema import Schemas
from stack import BUILD, SOURCE, Problem

STACK = {'workers': 3, 'settings': {'limit_content_steps': 20000}}
MAIN = {'type': 'object', 'required': ['title'], 'additionalProperties': False,
        'properties': {'title': {'type': 'string', 'minLength': 1, 'maxLength': 20}, 'price': {'type': 'number', 'multipleOf': 0.01, 'minimum': 0},
                       'tags': {'type': 'array', 'items': {'type': 'string', 'pattern': '^[a-z]+$'}, 'uniqueItems': True}}}
CLASSES = {'Note': {'items': {'Main': {'singleton': True, 'content': MAIN}, 'Line': {'content': {'type': 'integer'}}, 'Free': {},
                              'Text': {'singleton': True, 'raw': True, 'content': {'maxLength': 5, 'pattern': '^[A-Z]'}}}},
           'Asso': {'items': {'Sta': {'singleton': True}, 'Adh': {'content': {'properties': {'name': {'maxLength': 20}}}}}}}
GOOD = {'title': 'bread', 'price': 2.5, 'tags': ['food']}
BAD = {'title': 'bread', 'price': 2.505}
PLACE = ['/price', 'multipleOf', '/properties/price/multipleOf']


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = kit.build_example()
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    return Schemas(stack, tmp_path_factory.mktemp('schemas'))


@pytest.fixture
def lab(stack, schemas):
    stack.psql('lab', 'truncate doc, item')
    schemas.apply('lab', {})  # release 1 again
    schemas.apply('lab', CLASSES)
    return stack


def document(id_, content, **more):
    return {'c': 'Note', 'id': id_, 'items': [{'c': 'Main', 'j': content}], **more}


def stored(stack, id_):
    return {(iclass, key): content for iclass, key, content in
            stack.psql('lab', "select iclass, key, content from item where id = %s and content is not null", (id_,))}


# Each returns the fault, None when it was done.

def by_request(stack, method, path, **more):
    answer = stack.request(method, path, **more)
    return None if answer.status_code < 300 else (answer.status_code, answer.json())


def by_put(stack, id_, content):
    return by_request(stack, 'POST', '/lab/op/put', json={'param': {'docs': [document(id_, content)]}})


def by_put_of_several(stack, id_, content):
    docs = [document('other', GOOD), document(id_, content), {'c': 'Else', 'id': 'e', 'items': [{'c': 'Main', 'j': 1}]}]
    return by_request(stack, 'POST', '/lab/op/put', json={'param': {'docs': docs}})


def by_new_incarnation(stack, id_, content):
    by_put(stack, id_, {'title': 'before'})
    fault = by_request(stack, 'POST', '/lab/op/put', json={'param': {'docs': [document(id_, content, delete=True)]}})
    if fault:
        assert json.loads(stored(stack, id_)['Main', '']) == {'title': 'before'}
        stack.put('lab', {'c': 'Note', 'id': id_, 'delete': True})
    return fault


def by_put_with_key(stack, id_, content):
    return by_request(stack, 'POST', '/lab/op/put', json={'param': {'docs': [document(id_, content)]}},
                      headers={'Idempotency-Key': f'key-{id_}-{len(content)}-{content["price"]}'})


def by_form(stack, id_, content):
    return by_request(stack, 'POST', '/lab/op/put', form={'param': json.dumps({'docs': [document(id_, content)]})})


def by_resource(stack, id_, content):
    return by_request(stack, 'PUT', f'/lab/doc/Note/{id_}', json={'items': [{'c': 'Main', 'j': content}]})


def by_change_of_resource(stack, id_, content):
    by_put(stack, id_, {'title': 'before'})
    fault = by_request(stack, 'PATCH', f'/lab/doc/Note/{id_}', json={'items': [{'c': 'Main', 'j': content}]})
    if fault:
        stack.put('lab', {'c': 'Note', 'id': id_, 'delete': True})
    return fault


def by_task(stack, id_, content):
    task = stack.op('lab', 'task', {'op': 'put', 'param': {'docs': [document(id_, content)]}})['out']['id']
    (outcome,) = Manager(stack, 'lab').post(task).json()['tasks']
    assert outcome['result'] == 'done' or outcome['code'] == 'ACONTENT', outcome
    return None if outcome['result'] == 'done' else outcome


def by_load(stack, id_, content):
    line = json.dumps(document(id_, content))
    done = subprocess.run([BUILD / 'src/stampctl', 'load', stack.url, '--ns', 'lab', '--ca', stack.path / 'etc/certificate.pem', '-'],
                          input=line + '\n', capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, 'STAMPD_SQL': str(SOURCE / 'sql')})
    assert done.returncode == 0 or 'ACONTENT' in done.stderr, done.stderr
    return None if done.returncode == 0 else done.stderr


WAYS = [by_put, by_put_of_several, by_new_incarnation, by_put_with_key, by_form, by_resource, by_change_of_resource, by_task, by_load]


@pytest.mark.parametrize('way', WAYS)
def test_every_way_is_checked(lab, way):
    id_ = way.__name__
    fault = way(lab, id_, BAD)
    assert fault
    if isinstance(fault, tuple):
        status, body = fault
        assert (status, body['code'], body['args']) == (422, 'ACONTENT', ['Note', id_, 'Main', '', *PLACE]), body
        assert body['detail'] == 'A multiple of this is expected: 0.01.'
    assert not stored(lab, id_) and not stored(lab, 'other')
    assert way(lab, id_, GOOD) is None
    assert json.loads(stored(lab, id_)['Main', '']) == GOOD


def test_modules_are_checked(lab):
    lab.op('lab', 'FoundAsso', {'asso': 'chess', 'title': 'Chess'}, admin=True)
    with pytest.raises(Problem, match='ACONTENT') as refused:
        lab.op('lab', 'Enrol', {'asso': 'chess', 'member': '7', 'name': 'A' * 21, 'since': 2000})
    assert refused.value.body['args'][:4] == ['Asso', 'chess', 'Adh', '7']
    lab.op('lab', 'Enrol', {'asso': 'chess', 'member': '7', 'name': 'Ann', 'since': 2000})


def test_each_kind_of_item_has_its_rules(lab):
    def put(*items):
        return by_request(lab, 'POST', '/lab/op/put', json={'param': {'docs': [{'c': 'Note', 'id': 'kinds', 'items': list(items)}]}})
    assert put({'c': 'Text', 's': 'Abcde'}, {'c': 'Line', 'k': 'a', 'j': 7.0}, {'c': 'Free', 'k': 'b', 'j': BAD}) is None
    for item, key, rule in (({'c': 'Text', 's': 'Abcdef'}, '', 'maxLength'), ({'c': 'Text', 's': 'abc'}, '', 'pattern'),
                            ({'c': 'Line', 'k': 'z', 'j': 7.5}, 'z', 'type'), ({'c': 'Main', 'j': {}}, '', 'required')):
        status, body = put(item)
        assert (status, body['code']) == (422, 'ACONTENT')
        assert body['args'] == ['Note', 'kinds', item['c'], key, '', rule, '/' + rule]
    assert put({'c': 'Text', 'del': True}, {'c': 'Line', 'k': 'a', 'del': True}) is None


def test_every_worker_obeys_from_the_next_request_on(lab, schemas):
    """Whichever worker answers, also those that have cached the schema before."""
    for number in range(20):
        assert by_put(lab, f'w{number}', GOOD) is None
    for bound, expected in ((3, 422), (20, 200), (4, 422)):
        main = {**MAIN, 'properties': {**MAIN['properties'], 'title': {'maxLength': bound}}}
        schemas.apply('lab', {'Note': {'items': {'Main': {'singleton': True, 'content': main}}}})
        for number in range(20):
            fault = by_put(lab, f'v{bound}{number}', GOOD)
            assert (fault[0] if fault else 200) == expected


def test_nothing_is_refused_under_a_schema_that_has_been_replaced(lab, schemas):
    """Nobody tells the workers: the one that would refuse asks first."""
    for bound, title in ((30, 'x' * 30), (40, 'x' * 40), (50, 'x' * 50)):
        schemas.apply('lab', CLASSES)
        for number in range(12):  # all of them know that one
            assert by_put(lab, f'r{number}', GOOD) is None
        main = {**MAIN, 'properties': {**MAIN['properties'], 'title': {'maxLength': bound}}}
        lab.psql('lab', 'update schema set number = number + 1, content = %s where one',
                 (json.dumps({'classes': {'Note': {'items': {'Main': {'singleton': True, 'content': main}}}}}),))
        for number in range(12):
            assert by_put(lab, f'r{number}', {'title': title}) is None


def test_what_was_written_earlier_stays(lab, schemas):
    assert by_put(lab, 'old', GOOD) is None
    strict = {'Note': {'items': {'Main': {'singleton': True, 'content': {**MAIN, 'required': ['title', 'owner'],
                                                                        'properties': {**MAIN['properties'], 'owner': {'type': 'string'}}}},
                                 'Line': {}}}}
    schemas.apply('lab', strict)
    assert lab.get('lab', ('Note', 'old'))['items'][0]['j'] == GOOD
    assert by_put(lab, 'old', GOOD) is None  # no change
    assert by_request(lab, 'POST', '/lab/op/put', json={'param': {'docs': [{'c': 'Note', 'id': 'old', 'items': [{'c': 'Line', 'k': '1', 'j': 1}]}]}}) is None
    assert by_put(lab, 'old', {'title': 'new'})[1]['args'][4:] == ['', 'required', '/required']


def test_the_newest_form_is_checked(lab, schemas):
    """A client of the release before may go on writing: what its content becomes is checked."""
    schemas.apply('lab', {'Note': {'release': 2, 'items': {'Main': {'singleton': True, 'content': MAIN}},
                                   'mutations': [{'to': 2, 'item': 'Main', 'rename': {'name': 'title'}, 'drop': ['fax']}]}})
    for way in (by_put, by_resource):
        id_ = way.__name__
        assert way(lab, id_, {'name': 'bread', 'fax': 1}) is None
        assert json.loads(stored(lab, id_)['Main', '']) == {'title': 'bread'}
        assert way(lab, id_, {'name': ''})[1]['args'][4:6] == ['/title', 'minLength']


def test_a_hostile_content_ends_its_request_alone(lab, schemas):
    schemas.apply('lab', {'Note': {'items': {'Main': {'singleton': True, 'content': {'properties': {
        'slow': {'pattern': '^(a+)+$'}, 'deep': {'anyOf': [{'$ref': '#/$defs/t'}, {'$ref': '#/$defs/t'}]}}, '$defs': {
            't': {'items': {'anyOf': [{'$ref': '#/$defs/t'}, {'$ref': '#/$defs/t'}]}, 'not': {'const': 1}}}}}}}})
    nested = 1
    for _ in range(25):
        nested = [nested]
    status, body = by_put(lab, 'h', {'deep': nested})
    assert (status, body['code'], body['args'][:2]) == (400, 'ALIMIT', ['limit_content_steps', '20000'])
    status, body = by_put(lab, 'h', {'slow': 'a' * 40 + 'b'})
    assert body['code'] in ('ALIMIT', 'ACONTENT')
    assert by_put(lab, 'h', {'slow': 'aaa'}) is None


def test_a_schema_that_cannot_be_enforced_is_refused(schemas):
    def refusal(content, **more):
        return schemas.set('lab', {'Note': {'items': {'Main': {'content': content, **more}}}}, status=1)
    place = 'classes.Note.items.Main.content'
    assert f'{place}/properties/a/typ: Unknown keyword "typ"; did you mean "type"?' in refusal({'properties': {'a': {'typ': 'string'}}})
    assert f'{place}: A subschema that does not apply to the same value without end' in refusal({'$ref': '#'})
    assert f'{place}/type: Unknown keyword' in refusal({'type': 'string'}, raw=True)
    assert 'The members here are' in schemas.set('lab', {'Note': {'items': {'Main': {'contents': {}}}}}, status=1)


def test_a_copy_has_the_content_of_its_source(schemas):
    source, target = {'copies': {'to': ['Team']}, 'content': MAIN}, {'content': MAIN}

    def declared(source, target, status):
        return schemas.set('lab', {'Firm': {'items': {'Emp': source}}, 'Team': {'items': {'Emp': target}}}, status=status)
    declared(source, target, 0)
    declared(source, {}, 0)
    for wrong in ({'content': True}, {'content': {}}):
        assert 'the same content is expected' in declared(source, wrong, 1)
    assert 'the same content is expected' in declared({'copies': {'to': ['Team']}}, target, 1)


def test_the_declaration_is_shown_as_it_was(lab, schemas):
    shown = json.loads(schemas.run('show', 'lab', '--json'))
    assert shown['classes']['Note']['items']['Main']['content'] == MAIN
    assert shown['classes']['Note']['items']['Text']['content'] == {'maxLength': 5, 'pattern': '^[A-Z]'}
    assert schemas.run('plan', 'lab', '--json') == ''


def test_contents_that_do_not_conform_are_listed(lab, schemas):
    """More than a batch; those of an older release in their newest form."""
    lab.psql('lab', "select put_item('Note', 'n' || to_char(n, 'FM0000'), 'Main', '', case when n % 100 = 7 then '{\"title\":\"\"}' else '{\"title\":\"a\"}' end)"
                    " from generate_series(1, 1300) n")
    lab.psql('lab', "select put_item('Note', 'raw', 'Text', '', 'abc', true), put_item('Note', 'line', 'Line', 'k', '\"x\"'), put_item('Note', 'line', 'Free', 'k', '1')")
    wrong = [json.loads(line) for line in subprocess.run(schemas.command('check', '--content', 'lab', '--json'), capture_output=True, text=True, check=False).stdout.splitlines()]
    assert [one['id'] for one in wrong] == ['line', *(f'n{n:04}' for n in range(7, 1300, 100)), 'raw']
    assert wrong[0] == {'class': 'Note', 'id': 'line', 'item': 'Line', 'key': 'k', 'place': '', 'keyword': 'type', 'rule': '/type',
                        'expected': 'A value of this type is expected: "integer".'}
    done = subprocess.run(schemas.command('check', '--content', 'lab'), capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout.splitlines()[-1] == 'lab: 15 of 1302 contents do not conform'
    assert 'Note/n0107 Main: /title: At least 1 characters are expected, not 0. (/properties/title/minLength)' in done.stdout.splitlines()
    schemas.apply('lab', {'Note': {'release': 2, 'items': {'Main': {'singleton': True, 'content': MAIN}}, 'open': True,
                                   'mutations': [{'to': 2, 'item': 'Main', 'rename': {'name': 'title'}}]}})
    lab.psql('lab', "update item set content = '{\"name\":\"b\"}' where id like 'n%%7'")
    assert 'lab: 0 of 1300 contents do not conform' in schemas.run('check', '--content', 'lab')

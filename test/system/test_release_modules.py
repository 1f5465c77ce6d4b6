"""Releases that a module knows better than rules: a function makes the newest form."""
import json
import shutil

import pytest

from kit import Kit
from schema import Schemas, check_side
from stack import wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': str(kit.build('release.c')), 'keep_interval_s': 1}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


def put(stack, id_, content):
    return stack.put('lab', {'c': 'Rel', 'id': id_, 'items': [{'c': 'Main', 'j': content}, {'c': 'Line', 'k': 'x', 'j': {'old': 1}}]})


def main(stack, id_):
    return {item['c']: item['j'] for item in stack.get('lab', ('Rel', id_))['items']}


def stored(stack):
    return {id_: json.loads(text) for id_, text in stack.psql('lab', "select id, content from item where class = 'Rel' and iclass = 'Main'")}


def found(stack, value):
    return stack.op('lab', 'find', {'c': 'Rel', 'i': 'Main', 'where': [{'f': 'new', 't': 'eq', 'v1': value}]})['out']['ids']


def test_contents_of_before_are_rewritten_by_the_function(stack):
    schemas = Schemas(stack, stack.path)
    for number in range(30):
        put(stack, f'r{number:02}', {'old': number})
    assert stored(stack)['r03'] == {'old': 3}  # nothing is applied yet
    schemas.run('apply', 'lab')
    assert stored(stack) == {f'r{number:02}': {'new': number, 'twice': 2 * number} for number in range(30)}
    wait_until(lambda: main(stack, 'r03') == {'Main': {'new': 3, 'twice': 6}, 'Line': {'old': 1}}, what='a copy of after the change by stampctl')
    assert found(stack, 3) == ['r03']
    assert check_side(stack, 'lab', 'Rel', 'Main', {'new': 'int'}) == 30


def test_what_an_old_client_writes_later(stack):
    put(stack, 'late', {'old': 100})
    assert main(stack, 'late')['Main'] == {'new': 100, 'twice': 200} == stored(stack)['late'] and found(stack, 100) == ['late']
    out = stack.op('lab', 'collection', {'c': 'Rel', 'collection': 'twice', 'value': 200})['out']
    assert [document['id'] for document in out['docs']] == ['late']


def test_what_is_put_by_sql_is_read_in_the_newest_form(stack):
    """A database runs no C: it is stored as it was given, and found when a worker has written it."""
    stack.psql('lab', """select put_item('Rel', 'sql', 'Main', '', '{"old":7}')""")
    wait_until(lambda: main(stack, 'sql')['Main'] == {'new': 7, 'twice': 14})
    assert stored(stack)['sql'] == {'old': 7}
    stack.put('lab', {'c': 'Rel', 'id': 'sql', 'items': [{'c': 'Main', 'j': {'new': 7, 'twice': 14, 'more': 1}}]})
    assert found(stack, 7) == ['r07', 'sql']


def test_a_function_that_makes_no_json_harms_nobody(stack):
    put(stack, 'bad', {'old': 666})
    assert main(stack, 'bad')['Main'] == {'old': 666} == stored(stack)['bad']
    assert 'returned invalid JSON' in stack.log()

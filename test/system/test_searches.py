"""Searches that modules write in SQL, and classes whose schema a module declares."""
import json
import shutil

import pytest

from kit import Kit
from schema import Schemas
from stack import Problem, refused

STACK = {'workers': 2, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': str(kit.build('search.c'))}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def schemas(stack):
    return Schemas(stack, stack.path)


@pytest.fixture(scope='module')
def books(stack, schemas):
    for ns in ('lab', 'demo'):
        schemas.run('apply', ns)
    for number, year in enumerate((1999, 2005, 2005, 'soon')):
        stack.put('lab', {'c': 'Book', 'id': f'b{number}', 'items': [{'c': 'Main', 'j': {'title': f'T{number}', 'year': year}}]})


def search(stack, name, *args, ns='lab', operation='Search'):
    return stack.op(ns, operation, {'name': name, 'args': list(args)})['out']


def test_a_search_gives_its_rows_in_their_order(stack, books):
    assert search(stack, 'Since', '2000') == [{'id': 'b1', 'title': 'T1', 'year': 2005}, {'id': 'b2', 'title': 'T2', 'year': 2005}]
    assert search(stack, 'Since', '3000') == []
    assert search(stack, 'Since', '0', ns='demo') == []
    assert search(stack, 'Since', None) == []


@pytest.mark.parametrize('text', ["'; drop table doc; --", "$1", '\\', '"', '', "') union select content from item --", 'é\U0010ffff'])
def test_arguments_are_values_and_never_sql(stack, books, text):
    assert search(stack, 'Echo', text, None, '41') == [{'a': text, 'literal': '$2', 'is_null': True, 'c': 42}]
    assert search(stack, 'Echo', text, text, '0')[0]['is_null'] is False
    assert refused('AARG', search, stack, 'Since', text + "0'").body['args'] == ['Since']


def test_a_search_can_only_read(stack, books):
    before = stack.psql('lab', 'select * from member order by 1, 2, 3'), stack.psql('lab', 'select * from doc order by 1, 2')
    for name in ('Lock', 'Write', 'Unbind'):
        refused('XDATABASE', search, stack, name)
    stack.put('lab', {'c': 'Shelf', 'id': 's', 'items': [{'c': 'Main', 'j': 1}]})  # the session can write all the same
    after = stack.psql('lab', 'select * from member order by 1, 2, 3'), stack.psql('lab', "select * from doc where class = 'Book' order by 1, 2")
    assert after == (before[0], [row for row in before[1] if row[0] == 'Book'])


def test_rows_bytes_depth_and_time_are_limited(stack, books):
    assert len(search(stack, 'Many', '1000')) == 1000
    assert refused('ALIMIT', search, stack, 'Many', '1001').body['args'][:2] == ['rows of a search', '1000']
    assert len(search(stack, 'Large', '100000')[0]['x']) == 100000
    assert refused('ALIMIT', search, stack, 'Large', str(17 << 20)).body['args'][0] == 'bytes of a search'
    refused('BMODULE', search, stack, 'Deep', '60')
    refused('XTIME', search, stack, 'Sleep', '500', operation='SearchBriefly')
    assert len(search(stack, 'Many', '3')) == 3


def test_what_cannot_be_run_harms_nobody(stack, books):
    refused('XDATABASE', search, stack, 'Wrong', 'x')
    refused('XDATABASE', search, stack, 'Lacking', 'x')
    for name, args in (('Nothing', []), ('Since', []), ('Since', ['1', '2'])):
        refused('BMODULE', search, stack, name, *args)
    with pytest.raises(Problem, match='BMODULE'):
        stack.op('lab', 'SearchLate', {})
    assert search(stack, 'Many', '1') == [{'g': 1}]


def test_the_class_of_a_module_is_the_modules(stack, schemas, books):
    found = stack.op('lab', 'find', {'c': 'Book', 'i': 'Main', 'where': [{'f': 'year', 't': 'gt', 'v1': 2000}]})['out']
    assert found['ids'] == ['b1', 'b2']
    assert [d['id'] for d in stack.op('lab', 'collection', {'c': 'Book', 'collection': 'year', 'value': '1999'})['out']['docs']] == ['b0']
    shelf = {'items': {'Main': {'singleton': True, 'fields': {'room': 'string'}}}}
    schemas.apply('lab', {'Shelf': shelf})  # the module says nothing more of it
    assert json.loads(schemas.run('show', 'lab', '--json'))['classes'].keys() == {'Book', 'Shelf'}
    schemas.set('lab', {'Book': {'items': {}}})
    assert 'a schema of its own' in schemas.run('plan', 'lab', status=1)
    schemas.set('lab', {'Shelf': {'items': {'Main': {}}}})
    assert 'declares the class otherwise' in schemas.run('plan', 'lab', status=1)
    schemas.apply('lab', {'Shelf': shelf})

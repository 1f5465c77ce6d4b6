"""find and changemany in an encrypted namespace: each row of the table in protocol.md, "In encrypted namespaces"."""
import re

import pytest

from manager import Manager
from schema import Schemas
from stack import SOURCE, refused, wait_until
from test_live_find import Follower, found_by
from test_sealed_move import furnish
from vault import create

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed'}}
CLEAR = {'singleton': True, 'clear': True, 'fields': {'at': 'long', 'room': 'string'}, 'indexes': [['room', '-at'], ['~room']]}
HASHED = {'singleton': True, 'fields': {'mail': 'hash', 'tags': 'hash[]'}}
DEEP = {'singleton': True, 'fields': {'mail': {'type': 'hash', 'at': ['reach', 'e-mail']}, 'tags': {'type': 'hash[]', 'at': ['rows', 'tag']}}}
OPEN = {'singleton': True, 'clear': True, 'fields': {'at': {'type': 'long', 'at': ['times', 'at']}, 'sizes': {'type': 'int[]', 'at': ['rows', 'size']}}}
CLASSES = {'Note': {'items': {'Clear': CLEAR, 'Hashed': HASHED, 'Line': {}, 'Deep': DEEP, 'Open': OPEN}}, 'Veil': {'encryptedIds': True, 'items': {'Clear': CLEAR, 'Hashed': HASHED}}}
COUNT = 6


@pytest.fixture(scope='module')
def vault(stack, tmp_path_factory):
    furnish(stack)
    create(stack, ids='Veil')
    stack.schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    stack.schemas.apply('vault', CLASSES)
    return stack


@pytest.fixture(autouse=True)
def documents(vault):
    for name in CLASSES:
        vault.put('vault', *({'c': name, 'id': f'n{i}', 'delete': True, 'items': [
            {'c': 'Clear', 'j': {'at': i, 'room': 'hall' if i % 2 else 'attic', 'text': f'secret {i}'}},
            {'c': 'Hashed', 'j': {'mail': f'm{i}' if i else None, 'tags': ['x', f't{i}']}},
            *([{'c': 'Deep', 'j': {'reach': {'e-mail': f'm{i}'} if i else {}, 'rows': [{'tag': 'x'}, {'tag': [f't{i}']}, {'size': 1}] if i < 5 else []}},
               {'c': 'Open', 'j': {'times': {'at': i, 'note': f'secret {i}'}, 'rows': [{'size': i, 'note': f'secret {i}'}, {'size': 9}]}}] if name == 'Note' else [])]} for i in range(COUNT)))


def find(vault, item, where=(), name='Note', **more):
    return vault.op('vault', 'find', {'c': name, 'i': item, 'where': list(where), **more})['out']


def ids(*words, **more):
    return sorted(find(*words, **more)['ids'])


def named(*numbers):
    return [f'n{i}' for i in numbers]


def is_(field, test, v1, **more):
    return [{'f': field, 't': test, 'v1': v1, **more}]


def found_by_the_hash(vault):
    for name in CLASSES:
        assert ids(vault, 'Hashed', is_('mail', 'eq', 'm3'), name=name) == ids(vault, 'Hashed', is_('tags', 'eq', 't3'), name=name) == named(3)
        assert ids(vault, 'Hashed', is_('mail', 'ne', 'm3'), name=name) == named(1, 2, 4, 5)
        assert ids(vault, 'Hashed', is_('tags', 'ne', 't3'), name=name) == named(0, 1, 2, 4, 5)
        for field, letter in (('mail', 'm'), ('tags', 't')):
            assert ids(vault, 'Hashed', is_(field, 'in', [f'{letter}2', f'{letter}4', 'none']), name=name) == named(2, 4)
        assert ids(vault, 'Hashed', is_('mail', 'nin', ['m2', 'm4']), name=name) == named(1, 3, 5)
        assert ids(vault, 'Hashed', is_('mail', 'exists', True), name=name) == named(1, 2, 3, 4, 5)
        assert ids(vault, 'Hashed', is_('mail', 'exists', False), name=name) == named(0)


def other_tests_of_hashes(vault):
    for test in ('sw', 'lt', 'le', 'ge', 'gt', 'match', 'like'):
        refused('AARG', find, vault, 'Hashed', is_('mail', test, 'm'))
    for test in ('gele', 'gelt', 'gtle', 'gtlt'):
        refused('AARG', find, vault, 'Hashed', is_('mail', test, 'm', v2='n'))
    refused('AARG', find, vault, 'Hashed', order='mail')
    refused('AARG', find, vault, 'Hashed', want={'max': 'mail'})


def what_is_in_clear(vault):
    for name in CLASSES:
        for test, found in (('lt', [0, 1]), ('le', [0, 1, 2]), ('ge', [2, 3, 4, 5]), ('gt', [3, 4, 5]), ('eq', [2]), ('ne', [0, 1, 3, 4, 5])):
            assert ids(vault, 'Clear', is_('at', test, 2), name=name) == named(*found)
        assert ids(vault, 'Clear', is_('room', 'sw', 'ha'), name=name) == named(1, 3, 5)
        assert ids(vault, 'Clear', is_('room', 'like', 'hal'), order='~room', name=name) == named(1, 3, 5)
        assert ids(vault, 'Clear', is_('at', 'gele', 1, v2=2), name=name) == named(1, 2)
        assert find(vault, 'Clear', is_('room', 'eq', 'hall'), order='-at', name=name)['ids'] == named(5, 3, 1)
        assert find(vault, 'Clear', is_('room', 'eq', 'hall'), want='count', name=name) == {'count': 3}
        assert find(vault, 'Clear', want={'by': 'room', 'sum': 'at'}, name=name)['groups'] == [
            {'by': {'room': 'attic'}, 'count': 3, 'sum': {'at': 6}}, {'by': {'room': 'hall'}, 'count': 3, 'sum': {'at': 9}}]


def within_members(vault):
    assert ids(vault, 'Deep', is_('mail', 'eq', 'm3')) == ids(vault, 'Deep', is_('tags', 'eq', 't3')) == named(3)
    assert ids(vault, 'Deep', is_('mail', 'exists', False)) == named(0) and ids(vault, 'Deep', is_('mail', 'nin', ['m2', 'm4'])) == named(1, 3, 5)
    assert ids(vault, 'Deep', is_('tags', 'ne', 'x')) == named(5) and ids(vault, 'Deep', is_('tags', 'in', ['t1', 't2'])) == named(1, 2)
    assert ids(vault, 'Open', is_('at', 'gt', 3)) == named(4, 5) and find(vault, 'Open', order='-at', limit=2)['ids'] == named(5, 4)
    assert ids(vault, 'Open', is_('sizes', 'eq', 2)) == named(2) and ids(vault, 'Open', is_('sizes', 'ge', 9)) == named(*range(COUNT))
    assert find(vault, 'Open', want={'sum': 'at', 'max': 'at'}) == {'count': COUNT, 'sum': {'at': 15}, 'max': {'at': 5}}
    assert not [text for text, in vault.psql('vault', 'select content from item') if '"secret ' in text or '"m3"' in text]
    refused('AARG', find, vault, 'Deep', is_('mail', 'sw', 'm'))


def groups_and_headers(vault):
    for name in CLASSES:
        where = [{'or': [*is_('mail', 'eq', 'm1'), {'and': [*is_('tags', 'eq', 'x'), {'not': {'or': [*is_('mail', 'in', ['m1', 'm2', 'm3', 'm4'])]}}]}]}]
        assert ids(vault, 'Hashed', where, name=name) == named(0, 1, 5)
        assert ids(vault, 'Hashed', is_('tags', 'eq', 'x'), v={'t': 'gt', 'v1': 1}, ct={'t': 'gt', 'v1': 1}, name=name) == named(*range(COUNT))
        assert ids(vault, 'Hashed', is_('tags', 'eq', 'x'), v={'t': 'le', 'v1': 1}, name=name) == []
        in_hall, mail, tag = is_('room', 'eq', 'hall'), is_('mail', 'in', ['m1', 'm2'], i='Hashed'), is_('tags', 'ne', 't3', i='Hashed')
        assert ids(vault, 'Clear', in_hall + mail, name=name) == named(1) and ids(vault, 'Clear', in_hall + tag, name=name) == named(1, 5)
        assert ids(vault, 'Hashed', [{'not': is_('room', 'eq', 'hall', i='Clear')[0]}, *is_('mail', 'ne', 'm2')], name=name) == named(4)


def ids_in_clear(vault):
    assert ids(vault, 'Hashed', id={'t': 'sw', 'v1': 'n'}) == named(*range(COUNT)) and ids(vault, 'Hashed', id={'t': 'ge', 'v1': 'n4'}) == named(4, 5)
    assert ids(vault, 'Hashed', id={'t': 'gelt', 'v1': 'n1', 'v2': 'n3'}) == named(1, 2) and ids(vault, 'Hashed', id={'t': 'in', 'v1': ['n2']}) == named(2)


def encrypted_ids(vault):
    assert ids(vault, 'Hashed', name='Veil', id={'t': 'eq', 'v1': 'n2'}) == ids(vault, 'Hashed', name='Veil', id={'t': 'in', 'v1': ['n2', 'none']}) == named(2)
    assert ids(vault, 'Hashed', name='Veil', id={'t': 'ne', 'v1': 'n2'}) == ids(vault, 'Hashed', name='Veil', id={'t': 'nin', 'v1': ['n2']}) == named(0, 1, 3, 4, 5)


def other_tests_of_encrypted_ids(vault):
    for test in ('sw', 'lt', 'le', 'ge', 'gt'):
        refused('OENCRYPTED', find, vault, 'Hashed', name='Veil', id={'t': test, 'v1': 'n'})
    for test in ('gele', 'gelt', 'gtle', 'gtlt'):
        refused('OENCRYPTED', find, vault, 'Hashed', name='Veil', id={'t': test, 'v1': 'n', 'v2': 'o'})


def what_is_wanted(vault):
    for name in CLASSES:
        rows, cursor = [], {}
        while True:
            page = find(vault, 'Clear', want=['text'], limit=4, name=name, **cursor)
            rows += [(one['id'], one['j']) for one in page['items']]
            if 'cursor' not in page:
                break
            cursor = {'cursor': page['cursor']}
        assert sorted(rows, key=lambda row: row[0]) == [(f'n{i}', {'text': f'secret {i}'}) for i in range(COUNT)]
        stored = [id_ for id_, in vault.psql('vault', 'select id from doc where class = %s and ctime <> 0 order by id', (name,))]
        assert len(stored) == COUNT and (name == 'Veil' or [row[0] for row in rows] == stored)
        assert len(find(vault, 'Hashed', is_('tags', 'eq', 't1'), want='docs', name=name)['docs'][0]['items']) == (2 if name == 'Veil' else 4)
        assert find(vault, 'Hashed', is_('tags', 'eq', 't1'), want='items', name=name)['items'][0]['j'] == {'mail': 'm1', 'tags': ['x', 't1']}


def schemas_that_are_refused(vault):
    for item in ({'singleton': True, 'fields': {'room': 'string'}}, {'singleton': True, 'fields': {'room': 'folded'}}, {'fields': {'mail': 'hash'}}, {'clear': True, 'fields': {'at': 'long'}},
                 {'singleton': True, 'clear': True, 'fields': {'words': {'text': ['room']}}}):
        vault.schemas.set('vault', {**CLASSES, 'Other': {'items': {'Main': item}}})
        vault.schemas.run('apply', 'vault', status=1)
    vault.schemas.apply('vault', CLASSES)


def searches_in_sql(vault):
    search = {'class': 'Veil', 'params': [], 'result': [['id', 'string']], 'sql': 'select id from documents'}
    vault.schemas.set('vault', CLASSES, searches={'all': search})
    assert 'not available in an encrypted namespace' in vault.schemas.run('apply', 'vault', status=1)
    refused('NSEARCH', vault.op, 'vault', 'search', {'name': 'all'}, status=404)
    vault.schemas.apply('vault', CLASSES)


def changes(vault):
    manager = Manager(vault, 'vault')
    for name in CLASSES:
        for act, item, where, left in (({'merge': {'room': 'cellar'}}, 'Clear', is_('room', 'eq', 'hall'), COUNT), ({'del': True}, 'Hashed', is_('mail', 'in', ['m1', 'm2']), COUNT),
                                       ({'delete': True}, 'Hashed', is_('mail', 'eq', 'm3'), COUNT - 1)):
            param = {'c': name, 'i': item, 'where': where, **act}
            shown = vault.op('vault', 'changemany', param)['out']
            task = vault.op('vault', 'task', {'op': 'changemany', 'param': param})['out']['id']
            assert manager.run(task)['result'] == 'done'
            assert vault.op('vault', 'owntask', {'show': task}, admin=True)['out']['result'] == {'changed': shown['count'], 'refused': 0}
            assert find(vault, 'Clear', want='count', name=name) == {'count': left}
        assert ids(vault, 'Clear', is_('room', 'eq', 'cellar'), name=name) == named(1, 5) and ids(vault, 'Hashed', is_('mail', 'exists', True), name=name) == named(4, 5)


TESTS = [found_by_the_hash, other_tests_of_hashes, what_is_in_clear, within_members, groups_and_headers, ids_in_clear, encrypted_ids, other_tests_of_encrypted_ids, what_is_wanted, schemas_that_are_refused,
         searches_in_sql, changes]
PART = (SOURCE / 'doc/reference/protocol.md').read_text().split('#### In encrypted namespaces\n')[1].split('\n### ')[0]
ROWS = [line for line in PART.splitlines() if re.match(r'\| (?!search |---)', line)]


def test_each_row_has_its_test():
    assert len(ROWS) == len(TESTS)


@pytest.mark.parametrize('row, test', zip(ROWS, TESTS), ids=[test.__name__ for test in TESTS])
def test_a_row_of_the_table(vault, row, test):
    test(vault)


def test_followed_searches(vault):
    """Live events find and refuse what `find` does."""
    searches = [{'c': 'Note', 'i': 'Hashed', 'where': is_('mail', 'eq', 'm3'), 'want': 'items'}, {'c': 'Veil', 'i': 'Hashed', 'id': {'t': 'in', 'v1': ['n2', 'n9']}},
                {'c': 'Veil', 'i': 'Clear', 'where': is_('room', 'eq', 'hall'), 'order': '-at', 'want': 'docs', 'limit': 2}, {'c': 'Veil', 'i': 'Hashed', 'id': {'t': 'sw', 'v1': 'n'}}]
    follower = Follower(vault, *searches, ns='vault')
    for change in (lambda: None, lambda: vault.put('vault', *({'c': name, 'id': 'n9', 'items': [{'c': 'Hashed', 'j': {'mail': 'm3'}}, {'c': 'Clear', 'j': {'at': 9, 'room': 'hall'}}]} for name in CLASSES)),
                   lambda: vault.put('vault', *({'c': name, 'id': 'n9', 'delete': True} for name in CLASSES))):
        change()
        for number, search in enumerate(searches[:3]):
            follower.wait_for_page(number, found_by(vault, 'vault', search))
        wait_until(lambda: 3 in follower.pages, what='the refusal')
        assert follower.pages[3]['code'] == 'OENCRYPTED'
    follower.close()

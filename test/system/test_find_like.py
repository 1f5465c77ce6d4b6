"""find by likeness: what is alike against a naive reading of all contents, its order and pages, its index, what is refused."""
import json
import random
import re
import struct

import pytest

from schema import Schemas, folded
from stack import refused, run_program

STACK = {'workers': 2, 'settings': {'limit_find_items': 1000}, 'namespaces': {'z': 'closed', 'lab': 'open', 'bare': 'open'}}
ITEM = {'fields': {'name': 'string', 'label': 'folded', 'room': 'string', 'at': 'long'}, 'indexes': [['~name'], ['room', '-at'], ['~label']]}
CLASSES = {'Note': {'items': {'Main': {**ITEM, 'singleton': True}, 'Line': ITEM}}}
PIECES = ['Ann', 'Anna', 'anne', 'Smith', 'smyth', 'Schmidt', 'Łódź', 'lodz', 'x1', '42', "o'neil", 'a-b', 'Été', 'straße']
FIND = {'c': 'Note', 'i': 'Main'}
LEAST = 0.3


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', CLASSES)
    return schemas


def single(number):
    """As PostgreSQL's `real` has it."""
    return struct.unpack('f', struct.pack('f', number))[0]


def trigrams(text):
    return {padded[place:place + 3] for word in re.findall(r'[^\W_]+', text.lower()) for padded in [f'  {word} '] for place in range(len(padded) - 2)}


def likeness(one, other):
    one, other = trigrams(one), trigrams(other)
    return single(len(one & other) / len(one | other)) if one and other else 0.0


def some_name(chance):
    name = chance.choice([' ', ', ', '_']).join(chance.choices(PIECES, k=chance.randint(0, 3)))
    if name and chance.random() < 0.4:
        place = chance.randrange(len(name))
        name = name[:place] + chance.choice(['', 'e', name[place] * 2]) + name[place + 1:]
    return name


def some_content(chance):
    content = {'name': some_name(chance), 'label': some_name(chance), 'room': chance.choice('rs'), 'at': chance.randrange(5)}
    if chance.random() < 0.1:
        content[chance.choice(['name', 'label'])] = chance.choice([7, None, ['Ann'], {'Ann': 'Ann'}])
    return content


def change(chance):
    document = {'c': 'Note', 'id': f'n{chance.randrange(30):02}', 'items': [{'c': 'Main', 'j': some_content(chance)}]}
    if chance.random() < 0.15:
        return {**document, 'delete': True}
    document['items'] += [{'c': 'Line', 'k': key, 'j': some_content(chance)} for key in chance.sample('kl', chance.randint(0, 2))]
    return document


class Oracle:
    def __init__(self, stack):
        self.rows = [(id, item, key, json.loads(content)) for id, item, key, content in stack.psql(
            'lab', "select id, iclass, key, content from item where class = 'Note' and content is not null")]

    @staticmethod
    def likeness(content, field, text):
        value = content.get(field)
        if not isinstance(value, str):
            return None
        return likeness(folded(value), folded(text)) if field == 'label' else likeness(value, text)

    def is_like(self, content, field, text, least):
        found = self.likeness(content, field, text)
        return found is not None and found >= single(least)

    def find(self, item, test):
        return sorted({id for id, iclass, _, content in self.rows if iclass == item and test(content)}, key=str.encode)

    def ranked(self, item, field, text, test):
        """Ids and keys, the most alike first, then those whose ids and keys are last."""
        rows = [(self.likeness(content, field, text), id.encode(), key.encode()) for id, iclass, key, content in self.rows if iclass == item and test(content)]
        return [(id.decode(), key.decode()) for _, id, key in sorted(rows, reverse=True)]


def one_page(stack, param, ns='lab', **more):
    return stack.op(ns, 'find', param, **more)['out']


def whole(stack, param, **more):
    found, param = [], {'limit': 3, **param}
    while True:
        page = one_page(stack, param, **more)
        rows = page.get('items', page.get('ids', page.get('docs')))
        found += rows
        if 'cursor' not in page:
            return found
        assert len(rows) == param['limit']
        param = {**param, 'cursor': page['cursor']}


def like(text, field='name', least=None, **more):
    return {**more, 'f': field, 't': 'like', 'v1': text, **({} if least is None else {'v2': least})}


@pytest.mark.parametrize('seed', range(3))
def test_what_is_alike_is_what_the_contents_say(stack, schemas, seed):
    chance = random.Random(7300 + seed)
    for _ in range(4):
        for _ in range(10):
            stack.put('lab', change(chance))
        oracle = Oracle(stack)
        for _ in range(20):
            item, admin, field, least = chance.choice(['Main', 'Line']), chance.random() < 0.2, chance.choice(['name', 'label']), chance.choice([None, None, 0.3, 0.45, 0.6, 1])
            text, other = some_name(chance) or 'Ann', some_name(chance) or '42'
            first, second = like(text, field, least), like(other, 'label')
            is_first, is_second = lambda j: oracle.is_like(j, field, text, least or LEAST), lambda j: oracle.is_like(j, 'label', other, LEAST)  # noqa: E731
            red = {'f': 'room', 't': 'eq', 'v1': 'r'}
            lines = {id for id, iclass, _, content in oracle.rows if iclass == 'Line' and is_first(content)}
            for where, test in (([first], is_first), ([{'not': first}], lambda j: not is_first(j)), ([red, first], lambda j: j['room'] == 'r' and is_first(j)),
                                ([first, red, second], lambda j: is_first(j) and j['room'] == 'r' and is_second(j)), ([{'or': [first, second]}], lambda j: is_first(j) or is_second(j))):
                param, wanted = {**FIND, 'i': item, 'where': where, 'limit': chance.choice([2, 100, 100])}, oracle.find(item, test)
                assert whole(stack, param, admin=admin) == wanted, param
                assert one_page(stack, {**FIND, 'i': item, 'where': where, 'want': 'count'}) == {'count': len(wanted)}
                assert sorted({row['id'] for row in whole(stack, {**param, 'want': 'items'})}, key=str.encode) == wanted
                if first in where:
                    ranked = oracle.ranked(item, field, text, test)
                    assert [(row['id'], row.get('k', '')) for row in whole(stack, {**param, 'order': f'~{field}', 'want': 'items'}, admin=admin)] == ranked, param
                    if item == 'Main':
                        assert whole(stack, {**param, 'order': f'~{field}'}) == [id for id, _ in ranked]
                        assert [row['id'] for row in whole(stack, {**param, 'order': f'~{field}', 'want': 'docs'})] == [id for id, _ in ranked]
                        places = {id: content['at'] for id, iclass, _, content in oracle.rows if iclass == item}
                        assert whole(stack, {**param, 'order': '-at'}) == sorted(sorted(wanted, key=str.encode, reverse=True), key=lambda id: -places[id])
            mains = oracle.find('Main', lambda _: True)
            assert one_page(stack, {**FIND, 'where': [{**first, 'i': 'Line'}]})['ids'] == [id for id in mains if id in lines]
            assert one_page(stack, {**FIND, 'where': [{'not': {**first, 'i': 'Line'}}]})['ids'] == [id for id in mains if id not in lines]
            assert one_page(stack, {**FIND, 'where': [first], 'i': item, 'want': {}})['count'] == sum(iclass == item and is_first(content) for _, iclass, _, content in oracle.rows)


def test_a_cursor_is_of_its_order(stack, schemas):
    for number in range(4):
        stack.put('lab', {'c': 'Note', 'id': f'c{number}', 'items': [{'c': 'Main', 'j': {'name': 'cursor'}}]})
    param = {**FIND, 'where': [like('cursor')], 'limit': 1}
    cursors = {order: one_page(stack, {**param, 'order': order})['cursor'] for order in ('~name', '-name', 'name')}
    for order in cursors:
        for other, cursor in cursors.items():
            if other != order:
                assert refused('AARG', one_page, stack, {**param, 'order': order, 'cursor': cursor}).body['at'] == '/param/cursor'


def test_it_is_found_and_changed_by_a_task(stack, schemas):
    stack.put('lab', {'c': 'Note', 'id': 'many', 'items': [{'c': 'Main', 'j': {'name': 'Bartholomew'}}]})
    assert stack.op('lab', 'changemany', {**FIND, 'where': [like('Bartolomew')], 'delete': True})['out'] == {'count': 1, 'ids': ['many'], 'refused': 0}


HOSTILE = ['!', ' ', '%', '_', "'); drop table doc; --", '$1', '\\', '\x7f', 'a' * 128, 'é' * 64, '\u0301', '\U0010ffff', '-', '"', 'ﷺ' * 42, 'a b ' * 32, '<->', '\n', '́a', '😀', '字字', 'ab']


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_is_answered(stack, schemas, text):
    for name in ('name', 'label'):
        for param in ({'where': [like(text, name)]}, {'where': [{'not': like(text, name)}], 'want': 'count'}, {'where': [like(text, name)], 'order': f'~{name}'}):
            assert one_page(stack, {**FIND, **param}) is not None
    if not re.search(r'\w', text) or text == '_':
        assert one_page(stack, {**FIND, 'where': [like(text)]}) == {'ids': []}


REFUSED = [
    ({'where': [like('')]}, '/param/where/0/v1'),
    ({'where': [like('x' * 129)]}, '/param/where/0/v1'),
    ({'where': [like(7)]}, '/param/where/0/v1'),
    ({'where': [like('a', least=0.29)]}, '/param/where/0/v2'),
    ({'where': [like('a', least=1.01)]}, '/param/where/0/v2'),
    ({'where': [like('a', least='0.5')]}, '/param/where/0/v2'),
    ({'where': [like('a', least=1e999)]}, '/param/where/0/v2'),
    ({'where': [like('a', 'at')]}, '/param/where/0/t'),
    ({'id': {'t': 'like', 'v1': 'n'}}, '/param/id/t'),
    ({'v': {'t': 'like', 'v1': 'n'}}, '/param/v/t'),
    ({'order': '~name'}, '/param/order'),
    ({'order': ['~name'], 'where': [like('a')]}, '/param/order/0'),
    ({'order': '~name', 'where': [like('a', 'label')]}, '/param/order'),
    ({'order': '~name', 'where': [{'not': like('a')}]}, '/param/order'),
    ({'order': '~name', 'where': [{'or': [like('a'), like('b')]}]}, '/param/order'),
    ({'order': '~at'}, '/param/order'),
    ({'want': 'items', 'where': [like('a')], 'marks': 'name'}, '/param/marks'),
]


@pytest.mark.parametrize('param, at', REFUSED, ids=range(len(REFUSED)))
def test_what_has_no_meaning_is_refused(stack, schemas, param, at):
    text = json.dumps({'param': {**FIND, **param}}).replace('Infinity', '1e999')
    answer = stack.request('POST', '/lab/op/find', form=text, headers={'Content-Type': 'application/json'})
    assert (answer.json()['code'], answer.json()['at']) == ('AARG', at)


DECLARED = [['~'], ['~none'], ['~at'], ['~tags'], ['~words'], ['~mail'], ['name', '~label'], ['~name', 'at'], ['name']]


@pytest.mark.parametrize('index', DECLARED, ids=range(len(DECLARED)))
def test_a_wrong_declaration_is_refused(stack, schemas, index):
    fields = {**ITEM['fields'], 'tags': 'string[]', 'words': {'text': ['name']}, 'mail': 'hash'}
    assert 'indexes[0]' in schemas.set('lab', {'Note': {'items': {'Main': {'fields': fields, 'indexes': [index]}}}}, status=1)


def test_too_many_are_refused_to_strangers(stack, schemas):
    schemas.apply('lab', {**CLASSES, 'Many': {'items': {'Main': {**ITEM, 'singleton': True}}}})
    stack.psql('lab', "insert into doc select 'Many', 'm' || n, 1, 1, 1, 0, 0 from generate_series(1, 1500) n")
    stack.psql('lab', "insert into item select 'Many', 'm' || n, 'Main', '', 1, 1, json_build_object('name', case when n < 9 then 'seldom' else 'often' end, 'at', n), false from generate_series(1, 1500) n")
    stack.psql('lab', """select "x_Many_Main_write"(array_agg(id), array_agg(key)) from item where class = 'Many'""")
    for param in ({'where': [like('often')]}, {'where': [like('often')], 'order': '~name'}, {'where': [like('often'), {'f': 'at', 't': 'lt', 'v1': 5}], 'order': 'at'}):
        assert refused('ALIMIT', one_page, stack, {**FIND, 'c': 'Many', **param}).body['args'] == ['limit_find_items', '1000']
        assert one_page(stack, {**FIND, 'c': 'Many', **param}, admin=True) is not None
    assert len(one_page(stack, {**FIND, 'c': 'Many', 'where': [like('seldon')], 'order': '~name'})['ids']) == 8
    assert one_page(stack, {**FIND, 'c': 'Many', 'where': [like('often')], 'want': 'count'}) == {'count': 1492}


def needs(problem, item, index):
    return (problem.code, problem.body['args'], problem.body['at']) == ('AINDEX', ['Note', item, index], '/param/where')


def test_its_index_is_declared_built_and_dropped_while_it_serves(stack, schemas):
    """In a namespace of its own, whose database has no extension at first."""
    bare = {'Note': {'items': {name: {key: value for key, value in item.items() if key != 'indexes'} for name, item in CLASSES['Note']['items'].items()}}}
    schemas.apply('bare', bare)
    stack.put('bare', {'c': 'Note', 'id': 'a', 'items': [{'c': 'Main', 'j': {'name': 'Katherine'}}, {'c': 'Line', 'k': '1', 'j': {'label': 'Ångström'}}]})
    param, other = {**FIND, 'where': [like('Catherine')]}, {**FIND, 'where': [like('angstrom', 'label', i='Line')]}
    for admin in (False, True):
        assert needs(refused('AINDEX', one_page, stack, param, 'bare', admin=admin), 'Main', '["~name"]')
        assert needs(refused('AINDEX', one_page, stack, other, 'bare', admin=admin), 'Line', '["~label"]')
    assert not stack.psql('bare', "select 1 from pg_extension where extname = 'pg_trgm'")
    assert 'creating the extension pg_trgm' in schemas.apply('bare', CLASSES)
    assert one_page(stack, param, 'bare') == {'ids': ['a']} == one_page(stack, other, 'bare')
    stack.put('bare', {'c': 'Note', 'id': 'b', 'items': [{'c': 'Main', 'j': {'name': 'catharine'}}]})
    assert one_page(stack, {**param, 'order': '~name'}, 'bare') == {'ids': ['b', 'a']}
    shown = schemas.run('show', 'bare')
    assert 'Note.Main.~name' in shown and 'Note.Line.~label' in shown and '["~name"]' in schemas.run('show', 'bare', '--json').replace(' ', '')
    schemas.apply('bare', bare)
    assert needs(refused('AINDEX', one_page, stack, param, 'bare'), 'Main', '["~name"]')
    assert not [name for name, in stack.psql('bare', "select indexdef from pg_indexes where schemaname = 'stampd'") if 'gin_trgm_ops' in name]
    assert 'creating the extension' not in schemas.apply('bare', CLASSES)
    assert one_page(stack, param, 'bare') == {'ids': ['a', 'b']}


def test_without_the_extension_apply_says_how_to_make_it(stack, schemas):
    """By a role that may not, and where it is in another schema; nothing of the declaration is applied."""
    before = {'Note': {'items': {'Main': {'singleton': True, 'fields': {'name': 'string'}}}}}
    schemas.apply('bare', before)
    stack.psql('bare', 'drop extension if exists pg_trgm')
    number = stack.psql('bare', 'select number from schema')
    schemas.set('bare', CLASSES)
    as_worker = [str(word) for word in (stack.build / 'src/stampctl', 'schema', 'apply', 'bare', '--config', stack.config, '--admin-conninfo', stack.conninfo_of_server('stampd'))]
    assert "psql -d stampd_bare -c 'create extension pg_trgm schema public'" in run_program(*as_worker, status=1).error
    stack.psql('bare', 'create extension pg_trgm schema stampd')
    assert "psql -d stampd_bare -c 'alter extension pg_trgm set schema public'" in schemas.run('apply', 'bare', status=1)
    assert stack.psql('bare', 'select number from schema') == number
    stack.psql('bare', 'alter extension pg_trgm set schema public')
    schemas.run('apply', 'bare')
    assert one_page(stack, {**FIND, 'where': [like('x')]}, 'bare') == {'ids': []}


def test_a_shell_finds_what_is_alike(stack, schemas):
    stack.put('lab', {'c': 'Note', 'id': 'shell', 'items': [{'c': 'Main', 'j': {'name': 'Wilhelmina'}}]})
    words = ('find', stack.url, 'Note', 'Main', '--ns', 'lab', '--ca', stack.path / 'etc/certificate.pem', '--where', json.dumps(like('Vilhelmina', least=0.5)), '--order', '~name')
    assert run_program(*(str(word) for word in (stack.build / 'src/stampctl', *words))).out.splitlines() == ['shell']


def test_settings_of_the_database_do_not_change_what_is_alike(stack, schemas):
    """Sessions have the bound that is promised, whatever its administrator has set."""
    stack.put('lab', {'c': 'Note', 'id': 'bound', 'items': [{'c': 'Main', 'j': {'name': 'Sigismund'}}]})
    stack.psql('lab', 'alter database stampd_lab set pg_trgm.similarity_threshold = 0.9')
    stack.psql('lab', "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd' and datname = 'stampd_lab'")
    assert one_page(stack, {**FIND, 'where': [like('Siegmund')]}) == {'ids': ['bound']}
    stack.psql('lab', 'alter database stampd_lab reset pg_trgm.similarity_threshold')

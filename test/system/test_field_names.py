"""Fields of any name: those of parameters, aliases, indexes and words of SQL; and sessions that met an error on the way."""
import json
import random

import pytest

from schema import Schemas, check_side
from stack import Problem

STACK = {'workers': 1}

SYSTEM = ['ctid', 'xmin', 'xmax', 'cmin', 'cmax', 'tableoid']
TAKEN = ['class', 'id', 'iclass', 'key', 'version', 'vop', 'content', 'raw']
# What the generated functions, their parameters, tables, aliases and indexes are called, and what names of relations are made of.
NASTY = ['ids', 'keys', 'found', 'value', 'list', 'excluded', 'x', 'u', 'v', 'l', 'e', 'd', 't', 'i', 'w', 'pkey', 'x_pkey', 'value_pkey', 'k', 'write', 'wipe',
         'x_write', 'oid', 'item', 'doc', 'stampd', 'json', 'text', 'Ids', 'KEYS', 'x_T_Main', 'x_T_Main_write', 'ctid_', 'new', 'old', 'sqlstate', 'sqlerrm',
         'tg_op', 'length', 'name', 'f' * 26, 'f' * 22 + 'pkey', 'f' * 21 + '_pkey']


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    return Schemas(stack, tmp_path_factory.mktemp('schemas'))


def one_class(fields):
    return {'T': {'items': {'Main': {'singleton': True, 'fields': fields}, 'Adr': {'fields': fields}}}}


def chunks(names, size=32):
    return [names[first:first + size] for first in range(0, len(names), size)]


@pytest.mark.parametrize('name', SYSTEM + TAKEN)
def test_names_of_columns_are_refused_before_anything_is_made(schemas, name):
    for kind in ('string', 'int[]'):
        told = schemas.set('lab', one_class({name: kind}), status=1)
        assert f'T.items.Main.fields.{name}: ' in told and name in told.partition('fields.')[2].partition(': ')[2]


def keywords(stack, kinds):
    return [word for word, in stack.psql('lab', "select word from pg_get_keywords() where catcode = any (%s) and length(word) <= 26", (list(kinds),))
            if word not in TAKEN + SYSTEM]


def play(stack, classes, dice):
    """Writes and removes; side tables, searches and views say what the contents say."""
    fields = classes['T']['items']['Adr']['fields']

    def content():
        return {name: [dice.randrange(3) for _ in range(dice.randrange(3))] if kind == 'int[]' else dice.choice('abc') for name, kind in fields.items()
                if dice.random() < 0.8}
    for _ in range(25):
        items = [{'c': 'Adr', 'k': key, **({'del': True} if dice.random() < 0.4 else {'j': content()})} for key in dice.sample('pqr', 2)]
        items.append({'c': 'Main', **({'del': True} if dice.random() < 0.3 else {'j': content()})})
        stack.put('lab', {'c': 'T', 'id': f'd{dice.randrange(4)}', 'items': items})
    for item in ('Adr', 'Main'):
        check_side(stack, 'lab', 'T', item, fields)
        held = {(id, key): json.loads(text) for id, key, text in stack.psql(
            'lab', "select id, key, content from item where class = 'T' and iclass = %s and content is not null", (item,))}
        for name, kind in fields.items():
            value = 1 if kind == 'int[]' else 'a'
            out = stack.op('lab', 'find', {'c': 'T', 'i': item, 'where': [{'f': name, 't': 'eq', 'v1': value}], 'want': 'items'})['out']
            wanted = [place for place, one in sorted(held.items()) if value == one.get(name) or (kind == 'int[]' and value in list(one.get(name, [])))]
            assert [(one['id'], one.get('k', '')) for one in out['items']] == wanted, name
        columns = ', '.join(f'"{name}"' for name in fields)
        assert len(stack.psql('lab', f'select id, key, {columns} from "item_T_{item}"')) == len(held)


def test_every_name_that_is_accepted_works(stack, schemas):
    seed = random.randrange(1 << 30)
    print(f'seed {seed}')
    dice = random.Random(seed)
    words = keywords(stack, 'R')
    for names in [*chunks(dice.sample(NASTY, len(NASTY)), 24), *chunks(dice.sample(words, 32)), *chunks(dice.sample(keywords(stack, 'UCT'), 16))]:
        is_odd = dice.random() < 0.5
        classes = one_class({name: 'int[]' if (place % 2 == 0) == is_odd else 'string' for place, name in enumerate(names)})
        schemas.apply('lab', classes)
        play(stack, classes, dice)
        other = one_class({name: 'string' if kind == 'int[]' else 'int[]' for name, kind in classes['T']['items']['Adr']['fields'].items()})
        schemas.apply('lab', other)
        play(stack, other, dice)
        assert 'the declaration is applied' in schemas.run('plan', 'lab')
    schemas.apply('lab', {})
    assert stack.psql('lab', "select relname from pg_class where relname ~ '^[xvk]_' or relname ~ '^item_[A-Z]'") == []


def put(stack, number):
    stack.put('lab', {'c': 'T', 'id': 'p', 'items': [{'c': 'Adr', 'k': 'k', 'j': {'n': str(number)}}]})


@pytest.mark.parametrize('broken, repaired', [
    ('alter function "x_T_Adr_write"(text[], text[]) rename to gone', 'alter function gone(text[], text[]) rename to "x_T_Adr_write"'),
    ('alter function "x_T_Adr_wipe"(text[]) rename to gone', 'alter function gone(text[]) rename to "x_T_Adr_wipe"'),
    ('alter table "x_T_Adr" rename to gone', 'alter table gone rename to "x_T_Adr"'),
    ('alter table "x_T_Adr" rename column n to gone', 'alter table "x_T_Adr" rename column gone to n')])
def test_a_session_recovers_from_errors_of_side_tables(stack, schemas, broken, repaired):
    """All in one session: it knows the schema by the same number before and after."""
    schemas.apply('lab', one_class({'n': 'string'}))
    put(stack, 0)
    sessions = "select pid from pg_stat_activity where application_name = 'stampd' and datname = current_database() order by 1"
    before = stack.psql('lab', sessions)
    for round in range(3):
        stack.psql('lab', broken)
        for number in range(3):
            try:
                put(stack, f'{round}.{number}')
            except Problem as problem:
                assert problem.code != 'AARG'
        stack.psql('lab', repaired)
        put(stack, round)
        assert stack.psql('lab', 'select n from "x_T_Adr" where id = \'p\'') == [(str(round),)]
    assert set(before) <= set(stack.psql('lab', sessions))

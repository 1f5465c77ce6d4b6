"""Fields in the order of a language: pages, cursors, ranges and indexes are in the order that PostgreSQL's own collation of ICU has; another language takes the place of
the former one while the server goes on; what PostgreSQL does not have is refused."""
import json
import random

import pytest

from schema import Schemas
from stack import Problem

STACK = {'workers': 2}
WORDS = ['cote', 'Cote', 'côte', 'coté', 'côté', 'Côté', 'zèbre', 'zebra', 'Zürich', 'éclair', 'Eclair', 'eclair', 'Ångström', 'ångström', 'angle', 'Ötzi', 'otto', 'öl', 'zz', 'œuvre', 'oeuvre', 'łódź',
         'lodz', 'loz', 'ñandú', 'nandu', 'nz', 'a-b', 'ab', 'a b', 'é' * 600]
LANGUAGES = ['fr', 'sv', 'es', 'de-AT']


def classes(**fields):
    return {'Word': {'items': {'Main': {'singleton': True, 'fields': {'room': 'string', 'plain': {'type': 'string', 'at': ['word']}, **fields}, 'indexes': [['room', '-own']]}}}}


def of(language, at='word'):
    return {'type': 'string', **({'at': [at]} if at else {}), 'collate': language}


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    chance = random.Random(5)
    schemas.apply('lab', classes(own=of('fr', None), **{f'of{number}': of(language) for number, language in enumerate(LANGUAGES)}))
    for number, word in enumerate(chance.sample(WORDS, len(WORDS))):
        stack.put('lab', {'c': 'Word', 'id': f'w{number:02}', 'items': [{'c': 'Main', 'j': {'word': word, 'own': word, 'room': 'ab'[number % 2]}}]})
    return schemas


def sorted_by(stack, language, where='true', values=(), end=''):
    return [id for id, in stack.psql('lab', f"""select x.id from "x_Word_Main" x where x.plain is not null and {where} order by x.plain collate "{language}-x-icu"{end}, x.id collate "C"{end}""", values)]


def pages(stack, **search):
    """All ids, by pages of three."""
    found, more = [], {}
    while True:
        out = stack.op('lab', 'find', {'c': 'Word', 'i': 'Main', 'limit': 3, **search, **more}, admin=True)['out']
        found += out['ids']
        if 'cursor' not in out:
            return found
        more = {'cursor': out['cursor']}


@pytest.mark.parametrize('number', range(len(LANGUAGES)), ids=LANGUAGES)
def test_pages_are_in_the_order_of_the_language(schemas, number):
    stack, field = schemas.stack, f'of{number}'
    expected = sorted_by(stack, LANGUAGES[number])
    assert pages(stack, order=field) == expected and len(expected) == len(WORDS)
    assert pages(stack, order=f'-{field}') == expected[::-1] == sorted_by(stack, LANGUAGES[number], end=' desc')
    assert pages(stack, order=['room', field]) == sorted(expected, key=lambda id: int(id[1:]) % 2)
    assert pages(stack, order=['room', f'-{field}']) == sorted(expected[::-1], key=lambda id: int(id[1:]) % 2)
    plain = pages(stack, order='plain')
    assert plain != expected and sorted(plain) == sorted(expected)


def test_the_orders_are_those_of_the_languages(schemas):
    def words(field, *some):
        by_id = dict(schemas.stack.psql('lab', 'select id, plain from "x_Word_Main"'))
        return [word for word in (by_id[id] for id in pages(schemas.stack, order=field)) if word in some]
    assert words('of0', 'cote', 'coté', 'côte', 'côté', 'zz', 'Ötzi') == ['cote', 'coté', 'côte', 'côté', 'Ötzi', 'zz']
    assert words('of1', 'zz', 'Ångström', 'Ötzi', 'cote') == ['cote', 'zz', 'Ångström', 'Ötzi']
    assert words('of2', 'nz', 'ñandú', 'otto') == ['nz', 'ñandú', 'otto'] and words('of0', 'nz', 'ñandú', 'otto') == ['ñandú', 'nz', 'otto']


@pytest.mark.parametrize('test, sql', [('lt', '< %s'), ('le', '<= %s'), ('ge', '>= %s'), ('gt', '> %s'), ('gelt', '>= %s and {0} < %s'), ('gtle', '> %s and {0} <= %s')])
def test_ranges_are_of_that_order(schemas, test, sql):
    stack, chance = schemas.stack, random.Random(test)
    for number, language in enumerate(LANGUAGES):
        for _ in range(5):
            values = [chance.choice(WORDS[:-1]) for _ in range(sql.count('%s'))]
            column = f'x.plain collate "{language}-x-icu"'
            where = [{'f': f'of{number}', 't': test, **{f'v{place}': value for place, value in enumerate(values, 1)}}]
            expected = sorted_by(stack, language, f'{column} {sql.format(column)}', values)
            assert pages(stack, where=where, order=f'of{number}') == expected, (language, values)
            assert sorted(pages(stack, where=where)) == sorted(expected)


def test_only_equal_texts_are_equal(schemas):
    for test, value in (('eq', 'cote'), ('in', ['cote', 'Côté', 'none'])):
        expected = sorted(id for id, word in schemas.stack.psql('lab', 'select id, plain from "x_Word_Main"') if word in ([value] if test == 'eq' else value))
        assert pages(schemas.stack, where=[{'f': 'of0', 't': test, 'v1': value}]) == expected


def test_an_index_serves_it(schemas):
    plans = schemas.stack.psql('lab', """set enable_seqscan = off; set enable_bitmapscan = off;
        explain select x.id from "x_Word_Main" x where x.own is not null order by x.own, x.id limit 3""")
    text = '\n'.join(row for row, in plans)
    assert 'v_Word_Main_own' in text and 'Sort' not in text, text
    schemas.stack.psql('lab', 'reset all')
    stranger = schemas.stack.op('lab', 'find', {'c': 'Word', 'i': 'Main', 'where': [{'f': 'room', 't': 'eq', 'v1': 'a'}], 'order': '-own'})['out']['ids']
    assert stranger == [id for id in sorted_by(schemas.stack, 'fr', end=' desc') if int(id[1:]) % 2 == 0]


def test_what_starts_alike_is_refused(schemas):
    with pytest.raises(Problem) as problem:
        pages(schemas.stack, where=[{'f': 'of0', 't': 'sw', 'v1': 'c'}])
    assert problem.value.code == 'AARG' and 'without collate' in problem.value.body['detail']
    assert pages(schemas.stack, where=[{'f': 'plain', 't': 'sw', 'v1': 'c'}])


REFUSED = [({'type': 'int', 'collate': 'fr'}, 'Only a field of type string'), ({'type': 'string[]', 'collate': 'fr'}, 'Only a field of type string'), ({'type': 'folded', 'collate': 'fr'}, 'Only a field of type string'),
           ({'type': 'string', 'collate': 5}, 'The tag of a language'), ({'type': 'string', 'collate': 'f'}, 'The tag of a language'), ({'type': 'string', 'collate': 'fr"; drop'}, 'The tag of a language'),
           ({'type': 'string', 'collate': 'fr-'}, 'The tag of a language'), ({'type': 'string', 'collate': '-fr'}, 'The tag of a language'), ({'type': 'string', 'collate': 'a' * 33}, 'The tag of a language')]


@pytest.mark.parametrize('field, why', REFUSED)
def test_what_is_no_order_of_a_language_is_refused(schemas, field, why):
    assert why in schemas.set('lab', {'Other': {'items': {'Main': {'singleton': True, 'fields': {'own': field}}}}}, status=1)


def test_another_language_takes_its_place(schemas):
    """Last: it changes what the others use."""
    stack = schemas.stack
    fields = {f'of{number}': of(language) for number, language in enumerate(LANGUAGES)}
    schemas.set('lab', classes(own=of('xx', None), **fields))
    assert 'classes.Word.items.Main.fields.own.collate: PostgreSQL has no collation "xx-x-icu"' in schemas.run('apply', 'lab', status=1)
    assert pages(stack, order='own') == sorted_by(stack, 'fr')
    schemas.apply('lab', classes(own=of('sv', None), **fields))
    assert pages(stack, order='own') == sorted_by(stack, 'sv') != sorted_by(stack, 'fr')
    assert json.loads(schemas.run('show', 'lab', '--json'))['classes']['Word']['items']['Main']['fields']['own'] == {'type': 'string', 'collate': 'sv'}
    schemas.apply('lab', classes(own='string', **fields))
    assert pages(stack, order='own') == pages(stack, order='plain')

"""find by words: what matches against a naive reading of all contents, ranks, pages, what is refused, and fields that change."""
import json
import random
import re

import pytest

from schema import Schemas
from stack import Problem

STACK = {'workers': 2, 'settings': {'limit_find_items': 1000}}
WORDS = {'text': ['title', 'body']}
MAIN = {'singleton': True, 'fields': {'words': WORDS, 'stems': {'text': ['body', 'tags', 'title'], 'language': 'english'}, 'room': 'string', 'at': 'long'}}
CLASSES = {'Note': {'items': {'Main': MAIN, 'Line': {'fields': {'words': WORDS, 'room': 'string'}}}}}
VOCABULARY = ['red', 'green', 'blue', 'apple', 'applesauce', 'pear', 'Été', 'łódź', 'x1', '42']
FIND = {'c': 'Note', 'i': 'Main'}


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', CLASSES)
    return schemas


def some_text(chance):
    return ' '.join(chance.choices(VOCABULARY, k=chance.randint(0, 8)))


def some_content(chance):
    content = {'title': some_text(chance), 'body': some_text(chance), 'room': chance.choice('rs'), 'at': chance.randrange(5)}
    if chance.random() < 0.1:
        content['title'] = chance.choice([7, None, {'red': 'red'}, ['red', 'green apple', 8, ['blue']]])
    return content


def change(chance):
    document = {'c': 'Note', 'id': f'n{chance.randrange(30):02}', 'items': [{'c': 'Main', 'j': some_content(chance)}]}
    if chance.random() < 0.15:
        return {**document, 'delete': True}
    document['items'] += [{'c': 'Line', 'k': key, 'j': some_content(chance)} for key in chance.sample('kl', chance.randint(0, 2))]
    return document


def some_query(chance):
    """A text, and alternatives of (is wanted, words in a row, is the last a beginning)."""
    text, alternatives = [], [[]]
    for place in range(chance.randint(1, 4)):
        if place and chance.random() < 0.2:
            text.append('or')
            alternatives.append([])
        is_wanted = not alternatives[-1] or chance.random() < 0.8
        row = chance.choices(VOCABULARY, k=chance.choice([1, 1, 2]))
        text.append(('' if is_wanted else '-') + (row[0] if len(row) == 1 else f'"{" ".join(row)}"'))
        alternatives[-1].append((is_wanted, [word.lower() for word in row], False))
    if len(alternatives) == 1 and chance.random() < 0.3:
        word = chance.choice(VOCABULARY)[:chance.randint(1, 3)]
        text.append(word + '*')
        alternatives[0].append((True, [word.lower()], True))
    return chance.choice([' ', '  ']).join(text), alternatives


class Oracle:
    def __init__(self, stack):
        self.rows = [(id, item, key, json.loads(content)) for id, item, key, content in stack.psql(
            'lab', "select id, iclass, key, content from item where class = 'Note' and content is not null")]

    @staticmethod
    def texts(content):
        """The words of each member."""
        for name in WORDS['text']:
            value = content.get(name)
            parts = value if isinstance(value, list) else [value]
            yield re.findall(r'\w+', ' '.join(one for one in parts if isinstance(one, str)).lower())

    def matches(self, content, alternatives):
        words = [word for text in self.texts(content) for word in text]  # a row of words goes on from one member to the next
        rows = lambda row, begins: any(  # noqa: E731
            words[place:place + len(row)] == row or (begins and words[place].startswith(row[0])) for place in range(len(words)))
        return any(all(rows(row, begins) == is_wanted for is_wanted, row, begins in one) for one in alternatives)

    def find(self, item, test):
        return sorted({id for id, iclass, _, content in self.rows if iclass == item and test(content)}, key=str.encode)


def one_page(stack, param, **more):
    return stack.op('lab', 'find', param, **more)['out']


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


def match(text, name='words'):
    return {'f': name, 't': 'match', 'v1': text}


@pytest.mark.parametrize('seed', range(3))
def test_a_match_is_what_the_contents_say(stack, schemas, seed):
    chance = random.Random(6100 + seed)
    for _ in range(5):
        for _ in range(10):
            stack.put('lab', change(chance))
        oracle = Oracle(stack)
        for _ in range(25):
            item, admin = chance.choice(['Main', 'Line']), chance.random() < 0.2
            (text, ways), (other, others) = some_query(chance), some_query(chance)
            red = {'f': 'room', 't': 'eq', 'v1': 'r'}
            for where, test in (([match(text)], lambda j: oracle.matches(j, ways)), ([{'not': match(text)}], lambda j: not oracle.matches(j, ways)),
                                ([red, match(text)], lambda j: j['room'] == 'r' and oracle.matches(j, ways)),
                                ([match(text), red, match(other)], lambda j: j['room'] == 'r' and oracle.matches(j, ways) and oracle.matches(j, others)),
                                ([{'or': [match(text), match(other)]}], lambda j: oracle.matches(j, ways) or oracle.matches(j, others))):
                param, wanted = {**FIND, 'i': item, 'where': where, 'limit': chance.choice([2, 100, 100])}, oracle.find(item, test)
                assert whole(stack, param, admin=admin) == wanted, (param, ways)
                assert one_page(stack, {**FIND, 'i': item, 'where': where, 'want': 'count'}) == {'count': len(wanted)}
                assert sorted({row['id'] for row in whole(stack, {**param, 'want': 'items'})}, key=str.encode) == wanted
                if item == 'Main' and where[0] is not None and 'not' not in where[0]:
                    places = {id: content['at'] for id, iclass, _, content in oracle.rows if iclass == item}
                    assert whole(stack, {**param, 'order': '-at'}) == sorted(sorted(wanted, key=str.encode, reverse=True), key=lambda id: -places[id])
            assert one_page(stack, {**FIND, 'i': item, 'where': [match(text)], 'want': {}})['count'] == sum(
                iclass == item and oracle.matches(content, ways) for _, iclass, _, content in oracle.rows)


def rank_sql(order):
    return f"""select o.id from (select id, setweight(to_tsvector('simple', content::json ->> 'title'), 'A') || setweight(to_tsvector('simple', content::json ->> 'body'), 'B') as words
      from item where class = 'Rank' and content is not null) o cross join websearch_to_tsquery('simple', %s) q
      where o.words @@ q order by ts_rank_cd(o.words, q) {order}, o.id collate "C" {order}"""


@pytest.mark.parametrize('order', ['desc', 'asc'])
def test_ranks_order_pages(stack, schemas, order):
    chance = random.Random(order)
    schemas.apply('lab', {**CLASSES, 'Rank': {'items': {'Main': MAIN}}})
    for number in range(40):
        stack.put('lab', {'c': 'Rank', 'id': f'r{number:02}', 'items': [{'c': 'Main', 'j': {'title': some_text(chance), 'body': some_text(chance)}}]})
    for text in ('red', 'red green', '"red green" or apple', 'apple -pear'):
        param = {**FIND, 'c': 'Rank', 'where': [match(text)], 'order': '-words' if order == 'desc' else 'words', 'limit': 4}
        wanted = [id for id, in stack.psql('lab', rank_sql(order), (text,))]
        assert whole(stack, param) == wanted and [row['id'] for row in whole(stack, {**param, 'want': 'items'})] == wanted
        assert [doc['id'] for doc in whole(stack, {**param, 'want': 'docs'})] == wanted


def test_stems_of_a_language_and_beginnings(stack, schemas):
    stack.put('lab', {'c': 'Note', 'id': 'stem', 'items': [{'c': 'Main', 'j': {'title': 'Walking', 'body': "It's the cats' pyjamas: well-known", 'tags': ['Outdoors', 9, 'running']}}]})
    for text, finds in (('walk', True), ('cat', True), ('outdoor', True), ('run -walk', False), ('the', False), ('walk*', True), ('the walks', True), ('"cats pyjamas"', True),
                        ('pyj*', True), ('well-known', True), ('wel*', True), ('known*', True), ('outd* ', True), ('cat out*', True), ('dog out*', False), ('*', False), ('', False)):
        found = one_page(stack, {**FIND, 'where': [match(text, 'stems')], 'id': {'t': 'eq', 'v1': 'stem'}})['ids']
        assert found == (['stem'] if finds else []), text
    assert one_page(stack, {**FIND, 'where': [match('walk')], 'id': {'t': 'eq', 'v1': 'stem'}})['ids'] == []  # simple has no stems


HOSTILE = ['-red', '-red -green', 'red or -green', '"', '""', '"red', "'", "''", "red'*", "\\", "\\*", "red\\*", "'*", '!*', '&', 'red & | ! <-> :*', ':*', 'a:*b', 'red:A', '(((', ')*', '-*', '- -*',
           'or', 'or or', 'or*', '"or*', '<2>', '\u0301*', '\U0010ffff*', '\x7f*', '%', '$1', "'); drop table doc; --", 'a ' * 512, 'a or ' * 204, '"' * 1024, '-' * 1024, '(' * 1024, 'a*' * 512,
           'é' * 512, 'http://x.y/z?a=b*', 'a@b.c*', '1e5*', '-1*', '<b>*', '&amp;*']


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_is_answered(stack, schemas, text):
    for name in ('words', 'stems'):
        for param in ({'where': [match(text, name)]}, {'where': [{'not': match(text, name)}], 'want': 'count'}, {'where': [match(text, name)], 'order': name}):
            assert one_page(stack, {**FIND, **param}, admin=True) is not None
    assert text.lstrip()[:1] != '-' or text == '-1*' or '*' in text or one_page(stack, {**FIND, 'where': [match(text)]}) == {'ids': []}


def test_texts_of_any_characters_are_read(stack, schemas):
    chance, pieces = random.Random(12), ['a', 'b*', '-', '"', '(', ')', ' ', '!', '&', '|', ':', '*', '<', '>', "'", '\\', '.', '@', '/', 'or', 'é', '\n']
    texts = [''.join(chance.choices(chance.choices(pieces, k=chance.randint(1, 6)), k=chance.choice([3, 20, 500]))) for _ in range(4000)]
    assert stack.psql('lab', "select count(text_query('english', v)), count(text_query('simple', v)) from unnest(%s) v", (texts,)) == [(4000, 4000)]


def test_what_a_commit_may_hold(stack, schemas):
    """No content is refused for its words, however many, long, or odd; the first 65,536 characters are found."""
    texts = [' '.join(f'w{number}' for number in range(60_000)), 'x' * 500_000, ' '.join(chr(0x20000 + number) for number in range(40_000)), 'a-' * 60_000,
             ' '.join(f'h{number}.de/p{number}' for number in range(20_000)), '\u0301' * 1000, 'a\tb\nc', '<x>&lt;', '\\' * 1000, "'" * 1000]
    for number, text in enumerate(texts):
        stack.put('lab', {'c': 'Note', 'id': f'odd{number}', 'items': [{'c': 'Main', 'j': {'title': [text], 'body': text, 'room': 'odd'}}]})
    assert one_page(stack, {**FIND, 'where': [match('w9000')]})['ids'] == ['odd0'] and one_page(stack, {**FIND, 'where': [match('w50000')]})['ids'] == []
    for number in range(len(texts)):
        stack.put('lab', {'c': 'Note', 'id': f'odd{number}', 'delete': True})
    assert one_page(stack, {**FIND, 'where': [match('w9000')]})['ids'] == []


REFUSED = [
    ({'where': [{'f': 'words', 't': 'eq', 'v1': 'red'}]}, '/param/where/0/t'),
    ({'where': [{'f': 'words', 't': 'sw', 'v1': 'red'}]}, '/param/where/0/t'),
    ({'where': [{'f': 'words', 't': 'exists', 'v1': True}]}, '/param/where/0/t'),
    ({'where': [{'f': 'words', 't': 'in', 'v1': ['red']}]}, '/param/where/0/t'),
    ({'where': [{'f': 'room', 't': 'match', 'v1': 'red'}]}, '/param/where/0/t'),
    ({'id': {'t': 'match', 'v1': 'red'}}, '/param/id/t'),
    ({'v': {'t': 'match', 'v1': 'red'}}, '/param/v/t'),
    ({'where': [match('x' * 1025)]}, '/param/where/0/v1'),
    ({'where': [match(7)]}, '/param/where/0/v1'),
    ({'where': [{**match('a'), 'v2': 'b'}]}, '/param/where/0/v2'),
    ({'order': '-words'}, '/param/order'),
    ({'order': ['-words'], 'where': [match('red')]}, '/param/order/0'),
    ({'order': '-words', 'where': [match('red', 'stems')]}, '/param/order'),
    ({'order': '-words', 'where': [{'not': match('red')}]}, '/param/order'),
    ({'order': '-words', 'where': [{'or': [match('red'), match('blue')]}]}, '/param/order'),
    ({'want': {'min': 'words'}}, '/param/want/min'),
    ({'want': {'by': 'words'}}, '/param/want/by'),
]


@pytest.mark.parametrize('param, at', REFUSED, ids=range(len(REFUSED)))
def test_what_has_no_meaning_is_refused(stack, schemas, param, at):
    with pytest.raises(Problem) as refused:
        one_page(stack, {**FIND, **param})
    assert (refused.value.code, refused.value.body['at']) == ('AARG', at)


DECLARED = [({'text': []}, 'words: '), ({'text': 'title'}, 'words: '), ({}, 'words: '), ({'text': ['a', 'a']}, 'words.text[1]'), ({'text': ['a b']}, 'words.text[0]'),
            ({'text': ['a', 'b', 'c', 'd', 'e']}, 'words: '), ({'text': ['a'], 'language': 'klingon'}, 'words.language'), ({'text': ['a'], 'language': 7}, 'words.language'),
            ({'text': ['a'], 'other': 1}, 'words.other'), ('text', 'words: ')]


@pytest.mark.parametrize('field, place', DECLARED, ids=range(len(DECLARED)))
def test_a_wrong_declaration_is_refused(stack, schemas, field, place):
    assert place in schemas.set('lab', {'Note': {'items': {'Main': {'fields': {'words': field}}}}}, status=1)


def test_too_many_matches_are_refused_to_strangers(stack, schemas):
    schemas.apply('lab', {**CLASSES, 'Many': {'items': {'Main': MAIN}}})
    stack.psql('lab', "insert into doc select 'Many', 'm' || n, 1, 1, 1, 0, 0 from generate_series(1, 1500) n")
    stack.psql('lab', "insert into item select 'Many', 'm' || n, 'Main', '', 1, 1, '{\"title\":\"often ' || case when n < 9 then 'seldom' else '' end || '\"}', false"
               " from generate_series(1, 1500) n")
    stack.psql('lab', """select "x_Many_Main_write"(array_agg(id), array_agg(key)) from item where class = 'Many'""")
    for param in ({'where': [match('often')]}, {'where': [match('often')], 'order': '-words'}, {'where': [match('often'), match('seldom')], 'order': 'at'}):
        with pytest.raises(Problem) as refused:
            one_page(stack, {**FIND, 'c': 'Many', **param})
        assert refused.value.code == 'ALIMIT'
        assert one_page(stack, {**FIND, 'c': 'Many', **param}, admin=True) is not None
    assert len(one_page(stack, {**FIND, 'c': 'Many', 'where': [match('seldom'), match('often')], 'order': '-words'})['ids']) == 8
    assert one_page(stack, {**FIND, 'c': 'Many', 'where': [match('often')], 'want': 'count'}) == {'count': 1500}


def test_other_members_and_languages_are_applied_while_it_serves(stack, schemas):
    stack.put('lab', {'c': 'Note', 'id': 'turn', 'items': [{'c': 'Main', 'j': {'title': 'walking', 'body': 'thoughts'}}]})
    schemas.apply('lab', {'Note': {'items': {'Main': {**MAIN, 'fields': {**MAIN['fields'], 'words': {'text': ['title'], 'language': 'english'}}}, 'Line': CLASSES['Note']['items']['Line']}}})
    mine = {**FIND, 'id': {'t': 'eq', 'v1': 'turn'}}
    assert one_page(stack, {**mine, 'where': [match('walk')]})['ids'] == ['turn'] and one_page(stack, {**mine, 'where': [match('thoughts')]})['ids'] == []
    assert 'text' in schemas.run('show', 'lab') and '"words":{"text":["title"],"language":"english"}' in schemas.run('show', 'lab', '--json')
    schemas.apply('lab', CLASSES)
    assert one_page(stack, {**mine, 'where': [match('thoughts walking')]})['ids'] == ['turn'] and one_page(stack, {**mine, 'where': [match('walk')]})['ids'] == []
    stack.put('lab', {'c': 'Note', 'id': 'turn', 'items': [{'c': 'Main', 'j': {'title': 'walking', 'body': 'songs'}}]})
    assert one_page(stack, {**mine, 'where': [match('thoughts')]})['ids'] == [] and one_page(stack, {**mine, 'where': [match('songs')]})['ids'] == ['turn']

"""find with excerpts: what is marked against the words of the texts, bounds, markup and marks in texts, rules."""
import json
import random
import re

import pytest

from schema import Schemas
from stack import Problem
from test_find_words import VOCABULARY, some_query
from test_rules_paths import ACCOUNTS, account, session

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'team': 'rules'}, 'settings': {}}
WORDS = {'text': ['title', 'body', 'tags']}
MAIN = {'singleton': True, 'fields': {'words': WORDS, 'stems': {'text': ['body'], 'language': 'english'}, 'room': 'string', 'at': 'long'}}
CLASSES = {'Note': {'items': {'Main': MAIN, 'Line': {'fields': {'words': WORDS}}, 'Secret': MAIN}}}
ALL = {right: ['anybody'] for right in ('read', 'list', 'create', 'update', 'delete')}
RULES = {'Note': {'owner': 'Main.owner', **ALL, 'read': ['owner'], 'list': ['owner'], 'items': {'Secret': {'see': [], 'write': []}}}}


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', CLASSES)
    return schemas


@pytest.fixture(autouse=True)
def empty(stack):
    for ns in ('lab', 'team'):
        stack.clear(ns, 'Note')


def note(ident, **content):
    return {'c': 'Note', 'id': ident, 'items': [{'c': 'Main', 'j': content}]}


def find(stack, v1, field='words', ns='lab', headers=None, where=(), **more):
    param = {'c': 'Note', 'i': 'Main', 'where': [{'f': field, 't': 'match', 'v1': v1}, *where], 'want': 'items', 'marks': field, **more}
    answer = stack.request('POST', f'/{ns}/op/find', json={'param': param}, headers=headers)
    if answer.status_code != 200:
        raise Problem(answer)
    return answer.json()['out']


def marks(stack, v1, **more):
    return {one['id']: one['marks'] for one in find(stack, v1, **more)['items']}


def marked(excerpts):
    return [word for excerpt in excerpts for word in excerpt[1::2]]


def plain(excerpts):
    return ' ... '.join(''.join(excerpt) for excerpt in excerpts)


def test_what_is_marked_and_where(stack, schemas):
    stack.put('lab', note('a', title='Baking bread', body='Knead the dough; bake the BREAD slowly.', tags=['bread', 7, 'rye bread']), note('b', title='Soup', body='With bread'))
    assert marks(stack, 'bread') == {
        'a': {'title': [['Baking ', 'bread', '']], 'body': [['Knead the dough; bake the ', 'BREAD', ' slowly']], 'tags': [['', 'bread', '\nrye ', 'bread', '']]},
        'b': {'body': [['With ', 'bread', '']]}}
    assert marks(stack, 'breads', field='stems') == {'a': {'body': [['Knead the dough; bake the ', 'BREAD', ' slowly']]}, 'b': {'body': [['With ', 'bread', '']]}}
    assert marks(stack, 'kne*') == {'a': {'body': [['', 'Knead', ' the dough; bake the BREAD slowly']]}}
    assert marked(marks(stack, '"rye bread"')['a']['tags'])[-2:] == ['rye', 'bread']


@pytest.mark.parametrize('seed', range(3))
def test_marks_against_the_words_of_the_texts(stack, schemas, seed):
    """Every marked word is one that was sought; some of an item that was found are marked; excerpts are parts of the text."""
    chance = random.Random(seed)
    documents = [note(f'n{i:02}', title=' '.join(chance.choices(VOCABULARY, k=6)), body=' '.join(chance.choices(VOCABULARY, k=200))) for i in range(20)]
    stack.put('lab', *documents)
    texts, seen = {one['id']: one['items'][0]['j'] for one in documents}, 0
    for _ in range(30):
        query, alternatives = some_query(chance)
        sought = [(word, is_start) for alternative in alternatives for _, row, is_start in alternative for word in row]
        for ident, found in marks(stack, query).items():
            assert found, (query, ident)
            for member, excerpts in found.items():
                assert 0 < len(excerpts) <= 3
                for excerpt in excerpts:
                    assert len(excerpt) % 2 == 1 and ''.join(excerpt) in texts[ident][member]
                    assert all(any(word.lower() == one or (is_start and word.lower().startswith(one)) for one, is_start in sought) for word in excerpt[1::2]), (query, excerpt)
                    seen += len(excerpt) > 1
    assert seen


def test_markup_and_what_looks_like_marks_are_text(stack, schemas):
    """A tag becomes a blank; nothing else is changed or escaped, since nothing is markup: a client shows strings."""
    text = '<b>bread</b> &amp; "quotes" \\ back [["x","y"]] StartSel=<b> 0123456789abcdef0123456789abcdefb bread \U0001f35e é bread'
    stack.put('lab', note('a', title=text, body='MaxFragments=0, bread'))
    found = marks(stack, 'bread')['a']
    assert marked(found['title']) == ['bread', 'bread', 'bread'] and marked(found['body']) == ['bread']
    assert 'StartSel=' in plain(found['title']) and '0123456789abcdefb' in plain(found['title']) and '\U0001f35e é' in plain(found['title'])
    assert '<' not in json.dumps(found) and '&amp; "quotes" \\ back [["x","y"]]' in plain(found['title'])
    assert not re.search('[0-9a-f]{32}[ben]', plain(found['title']).replace('0123456789abcdef' * 2 + 'b', ''))


def test_excerpts_are_bounded(stack, schemas):
    filler = 'filler ' * 500
    stack.put('lab', note('a', body=f'{filler}bread {filler}bread {filler}bread {filler}bread {filler}'), note('b', body='x' * 20000 + ' bread'),
              note('c', body='é' * 8191 + ' bread'), *(note(f'l{i:02}', body='bread ' + 'w ' * 8100) for i in range(28)))
    found = marks(stack, 'bread', limit=50)
    assert 1 <= len(found['a']['body']) <= 3
    assert all(len(''.join(excerpt).split()) <= 24 for one in found.values() for excerpts in one.values() for excerpt in excerpts)
    assert found['b'] == {} and found['c'] == {}, 'behind the first 16,384 bytes'
    with_marks = [ident for ident in found if found[ident]]
    assert 10 < len(with_marks) < len(found) == 31, 'of 262,144 bytes together'
    assert with_marks == [ident for ident in found if ident not in 'bc'][:len(with_marks)]
    assert len(find(stack, 'bread')['items']) == 20


def test_pages_ranks_and_members(stack, schemas):
    stack.put('lab', *(note(f'n{i}', title='bread ' * (i + 1), room='hall', at=i) for i in range(5)))
    pages, cursor = [], {}
    while True:
        page = find(stack, 'bread', order='-words', limit=2, want=['at'], where=[{'f': 'room', 't': 'eq', 'v1': 'hall'}], **cursor)
        pages += [(one['j']['at'], len(marked(one['marks']['title']))) for one in page['items']]
        if 'cursor' not in page:
            break
        cursor = {'cursor': page['cursor']}
    assert pages == [(i, i + 1) for i in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize('more, at', [
    ({'marks': 7}, '/param/marks'), ({'marks': 'room'}, '/param/marks'), ({'marks': 'stems'}, '/param/marks'), ({'want': 'ids'}, '/param/marks'), ({'want': 'docs'}, '/param/marks'),
    ({'want': 'count'}, '/param/marks'), ({'want': {'max': 'at'}}, '/param/marks'), ({'limit': 51}, '/param/limit'),
    ({'where': [{'or': [{'f': 'words', 't': 'match', 'v1': 'x'}, {'f': 'at', 't': 'eq', 'v1': 1}]}]}, '/param/marks')])
def test_what_has_no_excerpts(stack, schemas, more, at):
    with pytest.raises(Problem) as problem:
        find(stack, 'bread', **more)
    assert (problem.value.code, problem.value.body['at']) == ('AARG', at)


def test_only_what_may_be_read_has_excerpts(stack, tmp_path_factory):
    """Nor does what may not be read take room of the others."""
    conf = stack.get('z', ('Namespace', 'team'), admin=True)['items'][0]['j']
    stack.put('z', {'c': 'Namespace', 'id': 'team', 'items': [{'c': 'Conf', 'j': {**conf, 'accounts': {}}}, {'c': 'Rules', 'j': RULES}]}, admin=True)
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('team', CLASSES)
    stack.put('team', *(account(name) for name in ACCOUNTS), admin=True)
    stack.put('team', *(note(f'b{i:02}', body='bread SECRET ' + 'w ' * 8000, owner=ACCOUNTS['bob']) for i in range(25)), admin=True)
    stack.put('team', note('c', body='my bread', owner=ACCOUNTS['ann']), {'c': 'Note', 'id': 's', 'items': [
        {'c': 'Main', 'j': {'owner': ACCOUNTS['ann']}}, {'c': 'Secret', 'j': {'body': 'bread SECRET'}}]}, admin=True)
    assert marks(stack, 'bread', ns='team', headers=session('ann')) == {'c': {'body': [['my ', 'bread', '']]}}
    assert marks(stack, 'bread', ns='team') == {}
    assert find(stack, 'bread', ns='team', headers=session('ann'), i='Secret')['items'] == []

"""The page that translates queries of other databases: each row is run, and finds what it means."""
import json
import re

import pytest

from schema import Schemas
from stack import SOURCE

STACK = {'workers': 1}
PAGE = (SOURCE / 'doc/how-to/translate-queries.md').read_text()
SCHEMA = json.loads(re.search(r'```json\n(.*?)```', PAGE, re.S).group(1))['classes']
POSTS = [  # room, at, size, title, done, tags
    ('p1', 'hall', 1, 10, 'Hello', True, ['new', 'big']), ('p2', 'hall', 2, 20, 'Help', False, ['old']), ('p3', 'hall', 3, 30, None, True, ['new']),
    ('p4', 'lab', 4, 20, 'Goodbye', True, []), ('p5', 'lab', 5, 40, 'Hell', False, ['big', 'old']), ('p6', 'yard', 6, 25, None, False, ['new', 'old'])]
FOUND = [['p1', 'p2', 'p3'], ['p3', 'p2'], ['p1', 'p2'], ['p6', 'p5', 'p4'], ['p3', 'p2', 'p1', 'p5', 'p4', 'p6'], ['p2', 'p3', 'p4', 'p6'], ['p6', 'p3', 'p5'],
         ['p1', 'p3', 'p5', 'p6'], ['p1', 'p2', 'p3', 'p4', 'p5'], ['p4', 'p5', 'p6'], ['p3', 'p6'], ['p1', 'p3', 'p6'], ['p1', 'p2', 'p3', 'p5', 'p6'], ['p1'],
         ['p1', 'p2', 'p5'], ['p4', 'p3', 'p1'], ['p1', 'p4'], ['p3', 'p2', 'p1', 'p5', 'p4', 'p6'], {'count': 6}, {'count': 3},
         ['p1', 'p4', 'p5'],
         ['p1', 'p3', 'p4', 'p5'],
         ['p3', 'p4', 'p5'],
         ['p6', 'p5', 'p4'],
         ['p4', 'p5', 'p6'],
         ['p5', 'p6'],
         ['p1', 'p2', 'p4'],
         ['p2', 'p4', 'p6'],
         ['p1', 'p2', 'p3'],
         ['p1', 'p2', 'p4', 'p5'],
         ['p1', 'p2', 'p4', 'p5'],
         ['p2', 'p5', 'p6'],
         ['p2', 'p4', 'p5'],
         ['p1', 'p3', 'p6'],
         ['p5', 'p6'],
         ['p1'],
         ['p3', 'p4', 'p5'],
         ['p6', 'p5', 'p4'],
         ['p6', 'p5'],
         ['p1', 'p6', 'p3', 'p5'],
         ['p1', 'p2', 'p3'],
         ['p3', 'p4'],
         ['p1', 'p5'],
         ['p1', 'p2', 'p5'],
         ['p5', 'p4'],
         ['p4'],
         ['p1', 'p2', 'p3', 'p4', 'p5', 'p6'],
         ['p1', 'p2', 'p3', 'p4', 'p5', 'p6'],
         ['p1', 'p2', 'p3'],
         ['p4', 'p5'],
         ['p6', 'p5', 'p4', 'p3', 'p2', 'p1'],
         ['p4', 'p5'],
         {'count': 3, 'more': True},
         {'count': 6, 'sum': {'size': 145}},
         {'count': 3, 'avg': {'size': 20}},
         {'count': 6, 'sum': {'size': 145}, 'min': {'size': 10}, 'max': {'size': 40}},
         {'groups': [{'by': {'room': 'hall'}, 'count': 3, 'sum': {'size': 60}}, {'by': {'room': 'lab'}, 'count': 2, 'sum': {'size': 60}}, {'by': {'room': 'yard'}, 'count': 1, 'sum': {'size': 25}}]},
         {'groups': [{'by': {'room': 'hall'}, 'count': 1}, {'by': {'room': 'lab'}, 'count': 1}, {'by': {'room': 'yard'}, 'count': 1}]},
         {'groups': [{'by': {'size': 20}, 'count': 1}, {'by': {'size': 40}, 'count': 1}]},
         {'groups': [{'by': {'room': 'lab', 'size': 20}, 'count': 1, 'sum': {'at': 4}}, {'by': {'room': 'lab', 'size': 40}, 'count': 1, 'sum': {'at': 5}}, {'by': {'room': 'yard', 'size': 25}, 'count': 1, 'sum': {'at': 6}}]}]
ROWS = re.findall(r'^\| .*? \| `(".*?)`(?:, then .*)? \|$', PAGE.partition('| elsewhere | `param` |')[2].partition('**What there is not**')[0], re.M)


@pytest.fixture(scope='module')
def posts(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', SCHEMA)
    for id, room, at, size, title, done, tags in POSTS:
        content = {'room': room, 'at': at, 'size': size, 'done': done, 'tags': tags, **({'title': title} if title else {})}
        stack.put('lab', {'c': 'Post', 'id': id, 'items': [{'c': 'Main', 'j': content}]})
    return stack


def test_each_row_has_its_result():
    assert len(ROWS) == len(FOUND) == 60


@pytest.mark.parametrize('row, found', zip(ROWS, FOUND), ids=range(len(FOUND)))
def test_a_query_finds_what_it_means(posts, row, found):
    out = posts.op('lab', 'find', {'c': 'Post', 'i': 'Main', **json.loads('{' + row + '}')})['out']
    rows = out.get('ids', out.get('items', out.get('docs')))
    assert (out if rows is None else [row if isinstance(row, str) else row['id'] for row in rows]) == found

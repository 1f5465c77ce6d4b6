"""The page that translates queries of other databases: each row is run, and finds what it means."""
import contextlib
import json
import re

import psycopg2
import pytest

from schema import Schemas
from stack import SOURCE, refused, stampctl

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
         ['p1', 'p2', 'p3'],
         ['p1', 'p5', 'p2'],
         ['p4', 'p5'],
         {'count': 3, 'more': True},
         {'count': 6, 'sum': {'size': 145}},
         {'count': 3, 'avg': {'size': 20}},
         {'count': 6, 'sum': {'size': 145}, 'min': {'size': 10}, 'max': {'size': 40}},
         {'groups': [{'by': {'room': 'hall'}, 'count': 3, 'sum': {'size': 60}}, {'by': {'room': 'lab'}, 'count': 2, 'sum': {'size': 60}}, {'by': {'room': 'yard'}, 'count': 1, 'sum': {'size': 25}}]},
         {'groups': [{'by': {'room': 'hall'}, 'count': 1}, {'by': {'room': 'lab'}, 'count': 1}, {'by': {'room': 'yard'}, 'count': 1}]},
         {'groups': [{'by': {'size': 20}, 'count': 1}, {'by': {'size': 40}, 'count': 1}]},
         {'groups': [{'by': {'room': 'lab', 'size': 20}, 'count': 1, 'sum': {'at': 4}}, {'by': {'room': 'lab', 'size': 40}, 'count': 1, 'sum': {'at': 5}}, {'by': {'room': 'yard', 'size': 25}, 'count': 1, 'sum': {'at': 6}}]},
         ['p1', 'p3', 'p5'],
         ['p1', 'p4']]
ROWS = re.findall(r'^\| .*? \| `(".*?)`(?:, then .*)? \|$', PAGE.partition('| elsewhere | `param` |')[2].partition('**What there is not**')[0], re.M)


@pytest.fixture(scope='module')
def posts(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', SCHEMA)
    for id, room, at, size, title, done, tags in POSTS:
        content = {'room': room, 'at': at, 'size': size, 'done': done, 'tags': tags, **({'title': title} if title else {}), 'place': {'city': 'Paris' if at % 2 else 'Rome'},
                   'notes': [{'by': 'ann' if at in (1, 4) else 'bob'}, {'text': 'x'}]}
        stack.put('lab', {'c': 'Post', 'id': id, 'items': [{'c': 'Main', 'j': content}]})
    return stack


def test_each_row_has_its_result():
    assert len(ROWS) == len(FOUND) == 64


@pytest.mark.parametrize('row, found', zip(ROWS, FOUND), ids=range(len(FOUND)))
def test_a_query_finds_what_it_means(posts, row, found):
    out = posts.op('lab', 'find', {'c': 'Post', 'i': 'Main', **json.loads('{' + row + '}')})['out']
    rows = out.get('ids', out.get('items', out.get('docs')))
    assert (out if rows is None else [row if isinstance(row, str) else row['id'] for row in rows]) == found


def test_a_refused_search_asks_the_database_for_the_number_of_the_schema_alone(posts):
    """It is refused while another session holds all other tables."""
    param = {'c': 'Post', 'i': 'Main', 'where': [{'f': 'title', 't': 'eq', 'v1': 'Help'}], 'order': '-size'}
    refused('AINDEX', posts.op, 'lab', 'find', param)  # the worker has a session
    tables = [table for table, in posts.psql('lab', "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'stampd' and tablename <> 'schema'")]
    with contextlib.closing(psycopg2.connect(posts.conninfo('lab'))) as holder, holder.cursor() as cursor:
        cursor.execute(f"lock table {', '.join(tables)} in access exclusive mode")
        refused('AINDEX', posts.op, 'lab', 'find', param)


def test_stampctl_prints_what_is_found(posts):
    """One result a line, page after page."""
    def find(*words, status=0):
        done = stampctl('find', posts.url, 'Post', 'Main', '--ns', 'lab', '--ca', posts.path / 'etc/certificate.pem', *words, status=status)
        return done.error if status else done.out.splitlines()

    hall = '{"f":"room","t":"eq","v1":"hall"}'
    assert find('--where', hall) == ['p1', 'p2', 'p3'] and find('--where', f'[{hall}]', '--order', '-at', '--limit', 2) == ['p3', 'p2']
    both = [one['v'] for one in posts.op('lab', 'get', {'docs': [{'c': 'Post', 'id': 'p1'}, {'c': 'Post', 'id': 'p6'}]})['out']['docs']]
    assert find('--version', json.dumps({'t': 'gt', 'v1': both[0]}), '--ctime', json.dumps({'t': 'lt', 'v1': both[1]})) == ['p2', 'p3', 'p4', 'p5']
    assert find('--where', f'[{{"not":{{"i":"Main",{hall[1:]}}}]') == ['p4', 'p5', 'p6'] and 'JSON is expected' in find('--ctime', '{', status=2)
    assert find('--order', 'room,-at', '--id', '{"t":"ne","v1":"p5"}', status=1).startswith('stampctl: find: AARG ')
    items = [json.loads(line) for line in find('--order', 'room,-size,at', '--want', '["size"]')]
    assert [(item['id'], item['j']) for item in items][:2] == [('p3', {'size': 30}), ('p2', {'size': 20})]
    assert [json.loads(line)['items'][0]['j']['at'] for line in find('--want', 'docs', '--where', hall)] == [1, 2, 3]
    assert find('--want', 'count') == ['{"count":6}'] and find('--want', '{"sum":"size"}') == ['{"count":6,"sum":{"size":145}}']
    assert find('--where', '{"f":"none","t":"eq","v1":1}', status=1).startswith('stampctl: find: NFIELD ')
    for number in range(0, 1100, 32):
        posts.put('lab', *({'c': 'Post', 'id': f'q{one:04}', 'items': [{'c': 'Main', 'j': {'room': 'many'}}]} for one in range(number, min(number + 32, 1100))))
    many = '{"f":"room","t":"eq","v1":"many"}'
    assert find('--where', many, '--limit', 5000) == [f'q{one:04}' for one in range(1100)] and len(find('--where', many)) == 100

"""The plans of searches as the workers run them, on a namespace with some tens of thousands of documents, or as many as STAMPD_PLAN_DOCUMENTS
says: then a line for each plan is printed, with the rows that it reads and its milliseconds."""
import hashlib
import json
import os
import re

import pytest

from schema import Schemas
from stack import Problem, wait_until

pytestmark = pytest.mark.plain  # plans of the database alone

STACK = {'workers': 1, 'settings': {'limit_find_items': 10000}, 'postgres': {'shared_preload_libraries': 'auto_explain', 'auto_explain.log_min_duration': 0,
                                    'auto_explain.log_analyze': 'on', 'auto_explain.log_timing': 'off', 'auto_explain.log_nested_statements': 'off'}}
COUNT = int(os.environ.get('STAMPD_PLAN_DOCUMENTS', 30_000)) // 600 * 600  # 30,000 and more, as many of each section
SECTIONS, SHARES, RARE = COUNT // 600, COUNT // 30, COUNT // 10  # however many there are, a search finds the same number
FIELDS = {'section': 'string', 'size': 'int', 'name': 'string', 'depends': 'string[]', 'label': 'folded', 'words': {'text': ['section', 'depends']}}
INDEXES = [['section', '-size'], ['section', 'size', '-name'], ['~name']]


@pytest.fixture(scope='module')
def loaded(stack, tmp_path_factory):
    """600 documents of each section, each size twice, dependencies on up to 3 others; ten on libc6."""
    stack.psql('lab', "set auto_explain.log_min_duration = -1")
    stack.psql('lab', f"""
        insert into doc select 'Package', 'p' || to_char(n, 'FM0000000'), 1, 1, 1, 0, 0 from generate_series(0, {COUNT - 1}) n""")
    stack.psql('lab', f"""
        insert into item select 'Package', 'p' || to_char(n, 'FM0000000'), 'Sta', '', 1, 1,
          json_build_object('section', 's' || to_char(n % {SECTIONS}, 'FM0000'), 'size', n / 2, 'name', md5(n::text), 'label', 'Émile ' || to_char(n, 'FM0000000'),
            'depends', array['d' || n % {SHARES}, 'd' || n % {SHARES - 3}, case when n % {RARE} = 0 then 'libc6' end]), false
          from generate_series(0, {COUNT - 1}) n""")
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', {'Package': {'items': {'Sta': {'singleton': True, 'fields': FIELDS, 'indexes': INDEXES}}}}, '--batch', 5000, timeout=7200)
    if 'STAMPD_PLAN_DOCUMENTS' in os.environ:
        stack.psql('lab', 'vacuum analyze')
    return stack


def plan_of(stack, where, **more):
    """What is found, and the plan that found it."""
    before = len(stack.log('postgres'))
    found = stack.op('lab', 'find', {'c': 'Package', 'i': 'Sta', 'where': where, **more})['out']
    wait_until(lambda: not stack.psql(None, "select 1 from pg_stat_activity where usename = 'stampd' and state <> 'idle'"), what='the end of the statement, and its plan')
    plans = re.findall(r'duration: ([0-9.]+) ms  plan:\n((?:\t.*\n)+)', stack.log('postgres')[before:])
    plans = [(time, plan) for time, plan in plans if 'x_Package_Sta' in plan]
    assert plans, stack.log('postgres')[before:]
    time, plan = plans[-1]
    if 'STAMPD_PLAN_DOCUMENTS' in os.environ:
        print(f'\n| `{json.dumps({"where": where, **more} if len(str(more)) < 80 else where)}` | {rows_read(plan):,} | {time} |')
    return found, plan


def rows_read(plan):
    return max(int(rows) * int(loops) for rows, loops in re.findall(r'actual rows=(\d+) loops=(\d+)', plan))


NEARLY = hashlib.md5(b'77').hexdigest().replace('5', '6', 1)
SEARCHES = [
    ('equal text', [{'f': 'section', 't': 'eq', 'v1': 's0007'}], {}, 'v_Package_Sta_section', False, 101),
    ('equal number', [{'f': 'size', 't': 'eq', 'v1': 77}], {}, 'v_Package_Sta_size', False, 2),
    ('prefix', [{'f': 'section', 't': 'sw', 'v1': 's004'}], {}, 'Index Cond: ((section >= ', True, 6600),
    ('folded prefix', [{'f': 'label', 't': 'sw', 'v1': 'EMILE 0001'}], {}, 'v_Package_Sta_label', True, 1300),
    ('words', [{'f': 'words', 't': 'match', 'v1': 'libc6'}], {}, 'Bitmap Index Scan on "v_Package_Sta_words"', True, 12),
    ('words and a beginning', [{'f': 'words', 't': 'match', 'v1': 'd0 lib*'}], {}, 'Bitmap Index Scan on "v_Package_Sta_words"', True, 12),
    ('alike', [{'f': 'name', 't': 'like', 'v1': NEARLY}], {}, 'Bitmap Index Scan on "n_Package_Sta', True, 300),
    ('most alike', [{'f': 'name', 't': 'like', 'v1': NEARLY}], {'order': '~name', 'limit': 20}, 'Bitmap Index Scan on "n_Package_Sta', True, 300),
    ('range', [{'f': 'size', 't': 'gelt', 'v1': 100, 'v2': 120}], {}, 'v_Package_Sta_size', True, 40),
    ('one of some', [{'f': 'section', 't': 'in', 'v1': ['s0007', 's0008']}], {}, 'Index Cond: (section = ANY', True, 1300),
    ('one of some elements', [{'f': 'depends', 't': 'in', 'v1': ['libc6', 'none']}], {}, 'Index Cond: (value = ANY', True, 12),
    ('element', [{'f': 'depends', 't': 'eq', 'v1': 'libc6'}], {}, 'v_Package_Sta_depends', False, 10),
    ('elements from', [{'f': 'depends', 't': 'sw', 'v1': 'lib'}], {}, 'v_Package_Sta_depends', True, 10),
    ('element and column', [{'f': 'depends', 't': 'eq', 'v1': 'd5'}, {'f': 'size', 't': 'lt', 'v1': 4000}], {}, 'v_Package_Sta_depends', False, 70),
    ('column and element', [{'f': 'section', 't': 'eq', 'v1': 's0000'}, {'f': 'depends', 't': 'eq', 'v1': 'libc6'}], {}, '_Package_Sta_depends" on', False, 700),
    ('element first', [{'f': 'depends', 't': 'eq', 'v1': 'libc6'}, {'f': 'section', 't': 'eq', 'v1': 's0000'}], {}, 'v_Package_Sta_depends', False, 10),
    ('either', [{'or': [{'f': 'depends', 't': 'eq', 'v1': 'libc6'}, {'f': 'size', 't': 'eq', 'v1': 77}]}], {}, 'v_Package_Sta_size', True, 12),
    ('not', [{'f': 'size', 't': 'eq', 'v1': 77}, {'not': {'f': 'section', 't': 'eq', 'v1': 's0004'}}], {}, 'v_Package_Sta_size', False, 3),
    ('ids', [], {'id': {'t': 'sw', 'v1': 'p000001'}}, 'k_Package_Sta', False, 10),
    ('items', [{'f': 'section', 't': 'eq', 'v1': 's0007'}], {'want': 'items', 'limit': 20}, 'v_Package_Sta_section', False, 25),
]


@pytest.mark.parametrize('where, more, index, is_sorted, most', [row[1:] for row in SEARCHES], ids=[row[0] for row in SEARCHES])
def test_a_search_reads_what_it_finds_through_the_index(loaded, where, more, index, is_sorted, most):
    found, plan = plan_of(loaded, where, **more)
    assert (found.get('ids') or found.get('items')), found
    assert 'Seq Scan' not in plan and index in plan, plan
    assert ('Sort' in plan.replace('WindowAgg', '')) <= (is_sorted or 'want' in more), plan
    assert rows_read(plan) <= most, plan


def test_a_later_page_costs_what_an_early_one_does(loaded):
    where, cursor = [{'f': 'section', 't': 'eq', 'v1': 's0007'}], {}
    for _ in range(6):
        found, plan = plan_of(loaded, where, **cursor)
        assert rows_read(plan) <= 101 and 'Filter: ' not in plan.replace('One-Time Filter: ', ''), plan
        cursor = {'cursor': found['cursor']} if 'cursor' in found else None
    assert cursor is None


SEVERAL = 'n_Package_Sta'
ORDERED = [
    ('of all', '-size', [], {}, 'v_Package_Sta_size'),
    ('of all, ascending', 'name', [], {}, 'v_Package_Sta_name'),
    ('of a section', '-size', [{'f': 'section', 't': 'eq', 'v1': 's0007'}], {}, SEVERAL),
    ('of a section, ascending', 'size', [{'f': 'section', 't': 'eq', 'v1': 's0007'}], {}, SEVERAL),
    ('of a range', 'size', [{'f': 'size', 't': 'ge', 'v1': 3000}], {}, 'v_Package_Sta_size'),
    ('of a range of a section', '-size', [{'f': 'section', 't': 'eq', 'v1': 's0007'}, {'f': 'size', 't': 'lt', 'v1': COUNT * 2 // 5}], {}, SEVERAL),
    ('of two directions', ['section', 'size', '-name'], [], {}, SEVERAL),
    ('of two directions, reversed', ['-section', '-size', 'name'], [], {}, SEVERAL),
    ('items', '-size', [{'f': 'section', 't': 'eq', 'v1': 's0007'}], {'want': 'items'}, SEVERAL),
    ('either', '-size', [{'or': [{'f': 'section', 't': 'eq', 'v1': 's0007'}, {'f': 'section', 't': 'eq', 'v1': 's0008'}]}], {}, SEVERAL),
]


@pytest.mark.parametrize('order, where, more, index', [row[1:] for row in ORDERED], ids=[row[0] for row in ORDERED])
def test_each_page_in_an_order_reads_what_it_holds_through_an_index(loaded, order, where, more, index):
    cursor, seen = {}, []
    for _ in range(4):
        found, plan = plan_of(loaded, where, order=order, limit=20, **more, **cursor)
        rows = [row['id'] if isinstance(row, dict) else row for row in found.get('ids') or found['items']]
        assert len(rows) == 20 and not set(rows) & set(seen)
        assert 'Seq Scan' not in plan and index in plan, plan
        assert rows_read(plan) <= 64 and 'Rows Removed' not in plan, plan
        seen, cursor = seen + rows, {'cursor': found['cursor']}


def test_an_element_of_a_list_is_sorted(loaded):
    found, plan = plan_of(loaded, [{'f': 'depends', 't': 'eq', 'v1': 'libc6'}], order='-size')
    assert found['ids'] == [f'p{n:07}' for n in range(9 * RARE, -1, -RARE)] and 'v_Package_Sta_depends' in plan and rows_read(plan) <= 10, plan


def condition(name, test, value):
    return {'f': name, 't': test, 'v1': value}


ABSENT = condition('name', 'exists', False)
COSTLY = [  # what looks at more than 10,000 items
    ([condition('size', 'ge', 0)], {}), ([condition('section', 'sw', 's')], {'limit': 1}), ([ABSENT], {}), ([{'not': condition('name', 'exists', True)}], {}),
    ([ABSENT], {'want': 'items'}), ([{'or': [condition('section', 'eq', 's0007'), condition('size', 'ge', 0)]}], {}),
    ([{'or': [condition('section', 'eq', 's0007'), ABSENT]}], {}), ([condition('depends', 'sw', 'd')], {}), ([], {'v': {'t': 'lt', 'v1': 1}}), ([], {'ct': {'t': 'ge', 'v1': 2}}),
    ([condition('name', 'ne', 'x')], {'want': 'count'}), ([condition('size', 'ge', 0), condition('name', 'ge', '0')], {'want': 'count'}), ([condition('depends', 'sw', 'd')], {'want': 'count'}),
]
CHEAP = [  # (…, how many)
    ([condition('name', 'ne', 'x')], {'limit': 20}, 20), ([{'not': condition('section', 'eq', 's0007')}], {'limit': 20}, 20), ([condition('section', 'eq', 's0007'), ABSENT], {}, 0),
    ([condition('section', 'eq', 's0007'), condition('size', 'ge', 0)], {'limit': 1000}, 600), ([condition('size', 'lt', 1000)], {'limit': 1000}, 1000),
    ([], {'v': {'t': 'eq', 'v1': 1}, 'limit': 7}, 7), ([{'or': [condition('size', 'lt', 3), condition('section', 'eq', 's0007')]}], {'limit': 1000}, 606),
    ([condition('size', 'ge', 0)], {'order': 'size', 'limit': 5}, 5), ([condition('size', 'ge', 0)], {'want': 'count'}, min(COUNT, 100_000)), ([], {'want': 'count', 'limit': 100}, 100),
    ([condition('section', 'eq', 's0007'), condition('name', 'ne', 'x')], {'want': 'count'}, 600), ([condition('size', 'lt', 2000)], {'want': 'docs', 'limit': 3}, 3),
]


@pytest.mark.parametrize('where, more', COSTLY, ids=range(len(COSTLY)))
def test_a_search_that_looks_at_too_many_items_is_refused(loaded, where, more):
    param = {'c': 'Package', 'i': 'Sta', 'where': where, **more}
    with pytest.raises(Problem) as refused:
        loaded.op('lab', 'find', param)
    assert (refused.value.code, refused.value.body['args'], refused.value.body['at']) == ('ALIMIT', ['limit_find_items', '10000'], '/param/where')
    loaded.op('lab', 'find', param, admin=True)


@pytest.mark.parametrize('where, more, count', CHEAP, ids=range(len(CHEAP)))
def test_a_search_that_looks_at_few_items_is_answered(loaded, where, more, count):
    found = loaded.op('lab', 'find', {'c': 'Package', 'i': 'Sta', 'where': where, **more})['out']
    assert found.get('count', len(found.get('ids', found.get('docs', ())))) == count


def test_pages_of_a_scan_go_on(loaded):
    """Each page looks at what it needs: all of them at more than one may."""
    param, seen = {'c': 'Package', 'i': 'Sta', 'where': [{'not': condition('section', 'eq', 's0007')}], 'limit': 1000}, 0
    while True:
        page = loaded.op('lab', 'find', param)['out']
        seen += len(page['ids'])
        if 'cursor' not in page:
            break
        param['cursor'] = page['cursor']
    assert seen == COUNT - 600

"""find: every condition against a naive reading of all contents, pages, plans, and what is refused."""
import json
import random
import threading

import pytest

from schema import Schemas, characters, export_content, read
from stack import Problem

STACK = {'workers': 3}

FIELDS = {'name': 'string', 'size': 'int', 'count': 'long', 'ratio': 'double', 'tags': 'string[]', 'years': 'int[]', 'big': 'long[]',
          'parts': 'double[]', 'code': 'hash', 'codes': 'hash[]'}
CLASSES = {'Person': {'items': {'Adr': {'fields': FIELDS}, 'Main': {'singleton': True, 'fields': {'name': 'string', 'tags': 'string[]'}},
                                'Free': {}}}}
# Texts at the borders of what a prefix can be followed by.
TEXTS = ['', 'a', 'ab', 'abc', 'b', 'B', 'é', 'éa', 'e\u0301', '\x7f', '\x80', '\u07ff', '\u0800', '\ud7ff', '\ud7ffx', '\ue000', '\uffff', '\U00010000',
         '\U0010ffff', '\U0010ffff\U0010ffff', 'a\U0010ffff', 'a\U0010ffffb', 'a\ud7ff', 'a\ud7ffz', '"', '\\', '%', '_', "'", '1 or 1=1',
         'x' * 1024, 'x' * 1023 + 'y', 'x' * 1025, 'x' * 1023 + 'é', 'x' * 5000]
NUMBERS = {'int': [0, 1, -1, 2, 2**31 - 1, -2**31, 7], 'long': [0, -1, 2**53 + 1, 2**63 - 1, -2**63, 2**31],
           'double': [0, 0.5, -0.5, 1e300, -1e300, 5e-324, 3, 0.1],
           'hash': [*TEXTS, 0, 1, -1, 0.5, 1e300, True, False, 'true', '1', 'y' * 255, 'y' * 256]}
SETS = ['ne', 'in', 'nin', 'exists']
TESTS = ['eq', 'sw', 'lt', 'le', 'ge', 'gt', 'gele', 'gelt', 'gtle', 'gtlt']


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', CLASSES)
    return schemas


def order(value):
    return value.encode() if isinstance(value, str) else value


def holds(test, value, v1, v2=None):
    value, v1, v2 = order(value), order(v1), None if v2 is None else order(v2)
    if test == 'sw':
        return value.startswith(v1)
    if test == 'eq':
        return value == v1
    if v2 is None:
        return {'lt': value < v1, 'le': value <= v1, 'ge': value >= v1, 'gt': value > v1}[test]
    return (value >= v1 if test[:2] == 'ge' else value > v1) and (value <= v2 if test[2:] == 'le' else value < v2)


def some_value(chance, kind):
    kind = kind.removesuffix('[]')
    return chance.choice(TEXTS) if kind == 'string' else chance.choice(NUMBERS[kind])


def some_content(chance, fields):
    made = {}
    for name, kind in fields.items():
        if chance.random() < 0.8:
            made[name] = [some_value(chance, kind) for _ in range(chance.randint(0, 4))] if kind.endswith('[]') else some_value(chance, kind)
        if chance.random() < 0.05:
            made[name] = chance.choice([None, True, {}, [[]], 1e20, 'text'])
    return made


def some_set(chance, kind):
    """ne, in, nin, exists."""
    test = chance.choice(SETS)
    if test == 'exists':
        return {'t': test, 'v1': chance.random() < 0.7}
    return {'t': test, 'v1': some_value(chance, kind) if test == 'ne' else [some_value(chance, kind) for _ in range(chance.choice([1, 2, 5, 100]))]}


def some_condition(chance, kind):
    if chance.random() < 0.3:
        return some_set(chance, kind)
    test = 'eq' if kind.startswith('hash') else chance.choice([test for test in TESTS if test != 'sw' or kind.startswith('string')])
    if test == 'eq':
        return {'t': test, 'v1': some_value(chance, kind)}
    # Order and prefixes are sought with what stands for itself.
    values = [value for value in (some_value(chance, kind) for _ in range(6)) if len(str(value).encode('utf-8', 'surrogatepass')) <= 1024][:2]
    if len(test) == 2:
        return {'t': test, 'v1': values[0]}
    values.sort(key=order)
    return {'t': test, 'v1': values[0], 'v2': values[1]}


def clean(value):
    """Without lone surrogates, which no JSON of ours has."""
    return json.loads(json.dumps(value).replace('\\ud7ff', '\\ud7ff'))


def one_page(stack, param):
    return stack.op('lab', 'find', param)['out']


def whole(stack, param):
    """All pages; each is as long as was asked for, but the last."""
    found = []
    while True:
        page = one_page(stack, param)
        rows = page.get('items', page.get('ids'))
        found += rows
        if 'cursor' not in page:
            return found
        assert len(rows) == param.get('limit', 100)
        param = {**param, 'cursor': page['cursor']}


class Oracle:
    """All contents, as documents hold them."""

    def __init__(self, stack):
        self.rows = stack.psql('lab', "select class, id, iclass, key, content, version from item where content is not null")

    def find(self, param):
        fields = CLASSES[param['c']]['items'][param['i']]['fields']
        found = []
        for c, id, i, key, text, version in self.rows:
            values = export_content(text, fields) if (c, i) == (param['c'], param['i']) else None
            if values is None or ('id' in param and not self.satisfies_id(param['id'], id)):
                continue
            if all(self.satisfies(condition, values[condition['f']], fields[condition['f']]) for condition in param.get('where', [])):
                found.append((id.encode(), key.encode(), {'id': id, **({'k': key} if key else {}), 'v': version, 'j': json.loads(text)}))
        found.sort(key=lambda row: row[:2])
        return [row for _, _, row in found] if param.get('want') == 'items' else sorted({row['id'] for _, _, row in found}, key=str.encode)

    @staticmethod
    def satisfies_id(condition, id):
        if condition['t'] in SETS:
            return (id in condition['v1']) == (condition['t'] == 'in')
        return holds(condition['t'], id, condition['v1'], condition.get('v2'))

    @staticmethod
    def satisfies(condition, value, kind):
        if condition['t'] == 'exists':
            return (value is not None) == condition['v1']
        values = [] if value is None else value if isinstance(value, list) else [value]
        if condition['t'] in SETS:
            several = [condition['v1']] if condition['t'] == 'ne' else condition['v1']
            several = [characters(read(json.dumps(one))) for one in several] if kind.startswith('hash') else several
            return any(one in several for one in values) if condition['t'] == 'in' else value is not None and not any(one in several for one in values)
        v1 = characters(read(json.dumps(condition['v1']))) if kind.startswith('hash') else condition['v1']
        return any(holds(condition['t'], one, v1, condition.get('v2')) for one in values)


IDS = ['a', 'ab', 'b', 'é', '\ue000', '\U0010ffff', 'p"1', "p'2", '%', 'x1', 'x2', 'x10', 'B', 'z/z', ' ']


def change(chance):
    document = {'c': 'Person', 'id': chance.choice(IDS), 'items': []}
    if chance.random() < 0.15:
        document['delete'] = True
    for key in chance.sample(['k', 'l', 'é', 'K'], chance.randint(0, 3)):
        document['items'].append({'c': 'Adr', 'k': key, 'del': True} if chance.random() < 0.2 and not document.get('delete')
                                 else {'c': 'Adr', 'k': key, 'j': some_content(chance, FIELDS)})
    if chance.random() < 0.6:
        document['items'].append({'c': 'Main', 'j': some_content(chance, CLASSES['Person']['items']['Main']['fields'])})
    return document


def some_search(chance):
    item = chance.choice(['Adr', 'Adr', 'Main'])
    fields = CLASSES['Person']['items'][item]['fields']
    param = {'c': 'Person', 'i': item, 'where': [], 'want': chance.choice(['ids', 'items']), 'limit': chance.choice([1, 2, 3, 5, 100])}
    for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
        name = chance.choice(list(fields))
        param['where'].append({'f': name, **some_condition(chance, fields[name])})
    if chance.random() < 0.3:
        test = chance.choice(TESTS)
        values = sorted((chance.choice(IDS + TEXTS[:12]) for _ in range(2)), key=str.encode)
        param['id'] = {'t': test, 'v1': values[0], **({'v2': values[1]} if len(test) == 4 else {})}
        if chance.random() < 0.3:
            param['id'] = {'t': chance.choice(['in', 'nin']), 'v1': values}
    return param


@pytest.mark.parametrize('seed', range(4))
def test_find_is_what_the_contents_say(stack, schemas, seed):
    chance = random.Random(7000 + seed)
    for _ in range(10):
        for _ in range(8):
            stack.put('lab', change(chance))
        stack.psql('lab', 'select delete_document(%s, %s)', ('Person', chance.choice(IDS)))
        oracle = Oracle(stack)
        for _ in range(20):
            param = some_search(chance)
            assert whole(stack, param) == oracle.find(param), param
            count = len(oracle.find({**param, 'want': 'ids'}))
            many = {name: value for name, value in param.items() if name != 'limit'}
            assert one_page(stack, {**many, 'want': 'count'}) == {'count': count}, param
            assert one_page(stack, {**param, 'want': 'count'}) == ({'count': count} if count <= param['limit'] else {'count': param['limit'], 'more': True}), param


@pytest.mark.parametrize('prefix', [text for text in TEXTS if len(text) < 1024], ids=ascii)
def test_a_prefix_is_exact_for_every_text(stack, schemas, prefix):
    texts = [text for text in TEXTS if len(text) <= 1024]
    if not stack.op('lab', 'list', {'c': 'Person', 'prefix': 'prefix-'})['out']['docs']:
        for place in range(0, len(texts), 8):
            stack.put('lab', *({'c': 'Person', 'id': f'prefix-{number}', 'items': [{'c': 'Adr', 'k': 'k', 'j': {'name': text, 'tags': [text, 'zz']}}]}
                               for number, text in enumerate(texts[place:place + 8], place)))
    wanted = sorted(f'prefix-{number}' for number, text in enumerate(texts) if text.startswith(prefix))
    for field in ('name', 'tags'):
        found = whole(stack, {'c': 'Person', 'i': 'Adr', 'where': [{'f': field, 't': 'sw', 'v1': prefix}], 'id': {'t': 'sw', 'v1': 'prefix-'}})
        if field == 'name' or not 'zz'.startswith(prefix):
            assert found == wanted


# --- refusals ---

FIND = {'c': 'Person', 'i': 'Adr'}


def where(field='name', test='eq', *values):
    return {**FIND, 'where': [{'f': field, 't': test, **{f'v{number}': value for number, value in enumerate(values, 1)}}]}


REFUSED = [
    ({}, 'AARG', ['c']),
    ({'c': 'Person'}, 'AARG', ['i']),
    ({'c': 'person', 'i': 'Adr'}, 'AARG', ['c']),
    ({'c': 'Other', 'i': 'Adr'}, 'NFIELD', ['Other', 'Adr']),
    ({'c': 'Person', 'i': 'Other'}, 'NFIELD', ['Person', 'Other']),
    ({'c': 'Person', 'i': 'Free'}, 'NFIELD', ['Person', 'Free']),
    (where('other', 'eq', 'a'), 'NFIELD', ['Person', 'Adr', 'other']),
    (where('key', 'eq', 'a'), 'NFIELD', ['Person', 'Adr', 'key']),
    (where('name" or true --', 'eq', 'a'), 'NFIELD', ['Person', 'Adr', 'name" or true --']),
    (where(7, 'eq', 'a'), 'AARG', ['where']),
    ({**FIND, 'where': {}}, 'AARG', ['where']),
    ({**FIND, 'where': ['name']}, 'AARG', ['where']),
    ({**FIND, 'where': [{'f': 'name', 't': 'eq', 'v1': 'a'}] * 8}, 'AARG', ['where']),
    (where('name', 'like', 'a'), 'AARG', ['t']),
    (where('name', None, 'a'), 'AARG', ['t']),
    (where('name', 'EQ', 'a'), 'AARG', ['t']),
    (where('size', 'sw', '1'), 'AARG', ['t']),
    (where('years', 'sw', 1), 'AARG', ['t']),
    *((where('code', test, 'a', *['b'] * (len(test) == 4)), 'AARG', ['t']) for test in TESTS if test != 'eq'),
    (where('codes', 'gt', 'a'), 'AARG', ['t']),
    (where('name', 'in'), 'AARG', ['v1']),
    (where('name', 'in', 'a'), 'AARG', ['v1']),
    (where('name', 'in', []), 'AARG', ['v1']),
    (where('name', 'nin', ['a'] * 101), 'AARG', ['v1']),
    (where('name', 'in', ['a', 1]), 'AARG', ['v1']),
    (where('name', 'in', ['a', ['b']]), 'AARG', ['v1']),
    (where('name', 'in', ['a'], ['b']), 'AARG', ['v2']),
    (where('size', 'in', [1, 1.5]), 'AARG', ['v1']),
    (where('size', 'nin', [2**31]), 'AARG', ['v1']),
    (where('name', 'ne', ['a']), 'AARG', ['v1']),
    (where('name', 'ne'), 'AARG', ['v1']),
    (where('name', 'exists'), 'AARG', ['v1']),
    (where('name', 'exists', 1), 'AARG', ['v1']),
    ({**FIND, 'id': {'t': 'exists', 'v1': True}}, 'AARG', ['v1']),
    ({**FIND, 'id': {'t': 'in', 'v1': ['x' * 1025]}}, 'AARG', ['v1']),
    (where('code', 'eq'), 'AARG', ['v1']),
    (where('code', 'eq', None), 'AARG', ['v1']),
    (where('code', 'eq', ['a']), 'AARG', ['v1']),
    (where('code', 'eq', 'a', 'b'), 'AARG', ['v2']),
    (where('name', 'eq'), 'AARG', ['v1']),
    (where('name', 'eq', None), 'AARG', ['v1']),
    (where('name', 'eq', 1), 'AARG', ['v1']),
    (where('name', 'eq', ['a']), 'AARG', ['v1']),
    (where('tags', 'eq', ['a']), 'AARG', ['v1']),
    (where('name', 'sw', 'x' * 1025), 'AARG', ['v1']),
    ({**FIND, 'id': {'t': 'eq', 'v1': 'x' * 1025}}, 'AARG', ['v1']),
    (where('size', 'eq', '1'), 'AARG', ['v1']),
    (where('size', 'eq', 1.5), 'AARG', ['v1']),
    (where('size', 'eq', 2**31), 'AARG', ['v1']),
    (where('count', 'eq', 2**63), 'AARG', ['v1']),
    (where('ratio', 'eq', '0.5'), 'AARG', ['v1']),
    (where('ratio', 'eq', 10**400), 'AARG', ['v1']),
    (where('name', 'eq', 'a', 'b'), 'AARG', ['v2']),
    (where('name', 'gele', 'a'), 'AARG', ['v2']),
    (where('name', 'gele', 'b', 'a'), 'AARG', ['v2']),
    (where('size', 'gtlt', 2, 1), 'AARG', ['v2']),
    (where('ratio', 'gelt', 0.2, 0.1), 'AARG', ['v2']),
    (where('tags', 'gtle', '\U00010000', '\uffff'), 'AARG', ['v2']),
    ({**FIND, 'id': 'a'}, 'AARG', ['id']),
    ({**FIND, 'id': {'t': 'eq', 'v1': 1}}, 'AARG', ['v1']),
    ({**FIND, 'id': {'t': 'gele', 'v1': 'b', 'v2': 'a'}}, 'AARG', ['v2']),
    ({**FIND, 'want': 'all'}, 'AARG', ['want']),
    ({**FIND, 'want': 'count', 'order': 'size'}, 'AARG', ['order']),
    ({**FIND, 'want': 'count', 'cursor': 'a'}, 'AARG', ['cursor']),
    ({**FIND, 'want': 'count', 'limit': 100001}, 'AARG', ['limit']),
    ({**FIND, 'limit': 0}, 'AARG', ['limit']),
    ({**FIND, 'limit': 1001}, 'AARG', ['limit']),
    ({**FIND, 'cursor': 7}, 'AARG', ['cursor']),
    ({**FIND, 'cursor': ''}, 'AARG', ['cursor']),
    ({**FIND, 'cursor': 'a'}, 'AARG', ['cursor']),
    ({**FIND, 'cursor': '0' * 32 + '.1.a'}, 'AARG', ['cursor']),
    ({**FIND, 'cursor': '0' * 32 + '.-1.a'}, 'AARG', ['cursor']),
    ({**FIND, 'cursor': '0' * 32 + '.99999999999999999999.a'}, 'AARG', ['cursor']),
]


@pytest.mark.parametrize('param, code, args', REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_sought_is_refused(stack, schemas, param, code, args):
    with pytest.raises(Problem) as refused:
        one_page(stack, param)
    assert (refused.value.code, refused.value.body['args']) == (code, args)


def test_cursors_are_good_for_their_own_search_only(stack, schemas):
    stack.put('lab', *({'c': 'Person', 'id': f'cursor-{number}', 'items': [{'c': 'Adr', 'k': 'k', 'j': {'name': 'c', 'size': number}}]}
                       for number in range(4)))
    param = {**where('name', 'eq', 'c'), 'limit': 1}
    cursor = one_page(stack, param)['cursor']
    assert one_page(stack, {**param, 'cursor': cursor, 'limit': 2})['ids'] == ['cursor-1', 'cursor-2']
    others = [{**where('name', 'eq', 'd')}, {**where('name', 'ge', 'c')}, {**where('tags', 'eq', 'c')}, {**param, 'want': 'items'},
              {**param, 'id': {'t': 'sw', 'v1': 'cursor'}}, {**param, 'i': 'Main'}, {**param, 'where': param['where'] * 2}]
    changed = [cursor[:place] + chr(ord(cursor[place]) ^ 1) + cursor[place + 1:] for place in range(len(cursor))]
    for wrong in [{**other, 'cursor': cursor} for other in others] + [{**param, 'cursor': other} for other in [*changed, cursor + 'a', cursor[:-1]]]:
        with pytest.raises(Problem) as refused:
            one_page(stack, wrong)
        assert (refused.value.code, refused.value.body['args']) == ('AARG', ['cursor'])


def test_a_page_of_large_items_ends_early(stack, schemas):
    text = 'x' * 900_000
    for number in range(12):
        stack.put('lab', {'c': 'Person', 'id': f'large-{number:02}', 'items': [{'c': 'Adr', 'k': 'k', 'j': {'name': 'large', 'text': text}}]})
    param, ids, pages = {**where('name', 'eq', 'large'), 'want': 'items', 'limit': 100}, [], 0
    while True:
        page = one_page(stack, param)
        ids += [item['id'] for item in page['items']]
        pages += 1
        if 'cursor' not in page:
            break
        param['cursor'] = page['cursor']
    assert ids == [f'large-{number:02}' for number in range(12)] and pages == 2
    for number in range(12):
        stack.put('lab', {'c': 'Person', 'id': f'large-{number:02}', 'delete': True})


def test_what_is_being_built_cannot_be_sought(stack, schemas):
    stack.psql('lab', "update schema set number = number + 1, building = 'Person.Adr.name'")
    try:
        with pytest.raises(Problem) as refused:
            one_page(stack, where('name', 'eq', 'a'))
        assert (refused.value.code, refused.value.status) == ('OBUILDING', 503)
        one_page(stack, where('size', 'eq', 1))
    finally:
        stack.psql('lab', "update schema set number = number + 1, building = ''")
    one_page(stack, where('name', 'eq', 'a'))


def test_searches_go_on_while_schemas_change(stack, schemas):
    """Each search finds all, or is refused because the field is not there or not ready."""
    stack.put('lab', *({'c': 'Person', 'id': f'go-{number}', 'items': [{'c': 'Adr', 'k': 'k', 'j': {'name': 'go', 'size': number}}]} for number in range(9)))
    ends, codes, wrong = threading.Event(), set(), []

    def seek():
        while not ends.is_set():
            try:
                found = one_page(stack, {**where('name', 'eq', 'go')})['ids']
                codes.add('found')
                if len(found) != 9:
                    wrong.append(found)
            except Problem as problem:
                codes.add(problem.code)

    seekers = [threading.Thread(target=seek) for _ in range(2)]
    for seeker in seekers:
        seeker.start()
    for _ in range(2):
        for fields in ({'size': 'int'}, {'name': 'string[]'}, FIELDS):
            schemas.apply('lab', {'Person': {'items': {**CLASSES['Person']['items'], 'Adr': {'fields': fields}}}}, '--batch', 1)
    ends.set()
    for seeker in seekers:
        seeker.join()
    assert [found for found in wrong if found] == [] and 'found' in codes and codes <= {'found', 'NFIELD', 'OBUILDING', 'CONTENTION'}, (wrong, codes)


def test_many_different_searches_are_prepared_and_given_up(stack, schemas):
    chance = random.Random(5)
    oracle = Oracle(stack)
    names = list(FIELDS)
    for _ in range(300):
        fields = chance.sample(names, 2)
        param = {**FIND, 'where': [{'f': name, **some_condition(chance, FIELDS[name])} for name in fields]}
        assert whole(stack, param) == oracle.find(param)

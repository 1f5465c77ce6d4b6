"""find: every condition against a naive reading of all contents, pages, plans, and what is refused."""
import fractions
import json
import math
import random
import threading

import pytest

from schema import Schemas, characters, check_side, declared, export_content, folded, read, stored
from stack import Problem

STACK = {'workers': 3}

FIELDS = {'name': 'string', 'size': 'int', 'count': 'long', 'ratio': 'double', 'tags': 'string[]', 'years': 'int[]', 'big': 'long[]',
          'parts': 'double[]', 'code': 'hash', 'codes': 'hash[]',
          'title': 'folded', 'words': 'folded[]', 'city': 'string', 'floor': 'long', 'mark': 'hash', 'skus': 'string[]', 'deep': 'int[]'}
# Names of any text; those of a list pass lists of objects.
PATHS = {'city': ['address', 'city'], 'floor': ['address', '$$ "a.b\\\'é', 'floor'], 'mark': ['title ' + 'x' * 249], 'skus': ['lines', 'sku'], 'deep': ['lines', '%s', 'deep']}
CLASSES = {'Person': {'items': {'Adr': {'fields': FIELDS}, 'Main': {'singleton': True, 'fields': {'name': 'string', 'tags': 'string[]'}},
                                'Free': {}}}}
# Texts at the borders of what a prefix can be followed by.
TEXTS = ['', 'a', 'ab', 'abc', 'b', 'B', 'é', 'éa', 'e\u0301', '\x7f', '\x80', '\u07ff', '\u0800', '\ud7ff', '\ud7ffx', '\ue000', '\uffff', '\U00010000',
         '\U0010ffff', '\U0010ffff\U0010ffff', 'a\U0010ffff', 'a\U0010ffffb', 'a\ud7ff', 'a\ud7ffz', '"', '\\', '%', '_', "'", '1 or 1=1',
         'x' * 1024, 'x' * 1023 + 'y', 'x' * 1025, 'x' * 1023 + 'é', 'x' * 5000]
# Texts that differ in case, accents and forms; the longest one grows as much as any.
FOLDS = ['É', 'e', 'Straße', 'STRASSE', 'strasbourg', 'Łódź', 'lodz', 'LODE', 'Σίσυφος', 'ΣΊΣΥΦΟΣ', 'σισ', 'İstanbul', 'ıstanbul', 'ﬁn', 'Final', 'ＡＢ', 'AB', '한', '한국', 'Å',
         'Æon', 'æ', 'œ', '½', 'ǅ', 'ß' * 600, 'É' * 512, 'e' * 1024, 'E' * 1025, '\ufdfa' * 31, '\ufdfa' * 32, 'क़', 'ŉ', 'Ⱥ', 'ſ', '\u0301', 'שָׁ']
NUMBERS = {'int': [0, 1, -1, 2, 2**31 - 1, -2**31, 7], 'long': [0, -1, 2**53 + 1, 2**63 - 1, -2**63, 2**31],
           'double': [0, 0.5, -0.5, 1e300, -1e300, 5e-324, 3, 0.1],
           'hash': [*TEXTS, 0, 1, -1, 0.5, 1e300, True, False, 'true', '1', 'y' * 255, 'y' * 256]}
SETS = ['ne', 'in', 'nin', 'exists']
TESTS = ['eq', 'sw', 'lt', 'le', 'ge', 'gt', 'gele', 'gelt', 'gtle', 'gtlt']


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    items = CLASSES['Person']['items']
    schemas.apply('lab', {'Person': {'items': {**items, 'Adr': {'fields': declared(FIELDS, PATHS)}}}})
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
    if kind == 'folded':
        return chance.choice(FOLDS + TEXTS)
    return chance.choice(TEXTS) if kind == 'string' else chance.choice(NUMBERS[kind])


def some_content(chance, fields):
    made = {}
    for name, kind in fields.items():
        if chance.random() < 0.8:
            made[name] = [some_value(chance, kind) for _ in range(chance.randint(0, 4))] if kind.endswith('[]') else some_value(chance, kind)
        if chance.random() < 0.05:
            made[name] = chance.choice([None, True, {}, [[]], 1e20, 'text'])
    return nested(chance, made)


def nested(chance, made):
    """The values of fields with paths at their places, or at some that look alike; values of lists are spread over objects."""
    content = {name: value for name, value in made.items() if name not in PATHS}
    address = {'city': made.get('city'), PATHS['floor'][1]: chance.choice([{'floor': made.get('floor')}, {'floor': made.get('floor'), 'city': 1}, {}, [{'floor': 5}], 7])}
    content['address'] = chance.choice([address, address, address, {'city': {'city': 'a'}}, [address], None, 'a'])
    content['address.city'] = content['city'] = 'a'
    if 'mark' in made:
        content[PATHS['mark'][0]] = made['mark']
    skus, deep = (made[name] if isinstance(made.get(name), list) else [] for name in ('skus', 'deep'))
    rows = [{'sku': one} for one in skus] + [{'%s': chance.choice([{'deep': one}, {'deep': [one]}, [{'deep': one}, {'deep': [one, 3]}, 4]])} for one in deep]
    chance.shuffle(rows)
    content['lines'] = chance.choice([rows, rows, rows, [*rows, 'a', [{'sku': 'a'}], {'sku': ['b', None]}], {'sku': made.get('skus'), '%s': {'deep': made.get('deep')}}, [], None, 'a'])
    return {name: value for name, value in content.items() if chance.random() < 0.9 or name not in ('lines', 'address')}


def some_set(chance, kind):
    """ne, in, nin, exists."""
    test = chance.choice(SETS)
    if test == 'exists':
        return {'t': test, 'v1': chance.random() < 0.7}
    return {'t': test, 'v1': some_value(chance, kind) if test == 'ne' else [some_value(chance, kind) for _ in range(chance.choice([1, 2, 5, 100]))]}


def size_of(value, kind):
    octets = str(value).encode()
    return len(octets) + (10 * sum(octet > 127 for octet in octets) if kind.startswith('folded') else 0)


def some_condition(chance, kind):
    if chance.random() < 0.3:
        return some_set(chance, kind)
    test = 'eq' if kind.startswith('hash') else chance.choice([test for test in TESTS if test != 'sw' or kind.startswith(('string', 'folded'))])
    if test == 'eq':
        return {'t': test, 'v1': some_value(chance, kind)}
    # Order and prefixes are sought with what stands for itself.
    values = [value for value in (some_value(chance, kind) for _ in range(6)) if size_of(value, kind) <= 1024][:2]
    if len(test) == 2:
        return {'t': test, 'v1': values[0]}
    values.sort(key=order)
    return {'t': test, 'v1': values[0], 'v2': values[1]}


def clean(value):
    """Without lone surrogates, which no JSON of ours has."""
    return json.loads(json.dumps(value).replace('\\ud7ff', '\\ud7ff'))


def one_page(stack, param, **more):
    return stack.op('lab', 'find', param, **more)['out']


def whole(stack, param, **more):
    """All pages; each is as long as was asked for, but the last."""
    found = []
    while True:
        page = one_page(stack, param, **more)
        rows = page.get('items', page.get('docs', page.get('ids')))
        found += rows
        if 'cursor' not in page:
            return found
        assert len(rows) == param.get('limit', 100)
        param = {**param, 'cursor': page['cursor']}


def listed(one):
    return one if isinstance(one, list) else [one]


class Near(list):
    """Parts of a sum of doubles."""


def total(kind, values):
    if not values:
        return None
    if kind in ('min', 'max'):
        return {'min': min, 'max': max}[kind](values, key=order)
    if kind == 'sum' and isinstance(values[0], int):
        return sum(values)
    return Near([fractions.Fraction(one) / (1 if kind == 'sum' else len(values)) for one in values])


def is_near(seen, wanted):
    """Sums of doubles depend on the order of the additions."""
    if isinstance(wanted, dict):
        return seen.keys() == wanted.keys() and all(is_near(seen[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list) and not isinstance(wanted, Near):
        return len(seen) == len(wanted) and all(map(is_near, seen, wanted))
    if isinstance(wanted, Near):
        return abs(fractions.Fraction(seen) - sum(wanted)) <= sum(map(abs, wanted)) / 10**12 + fractions.Fraction(5e-324)
    return seen == wanted


def as_field(value, kind):
    """What a value of a condition is compared as."""
    if kind.startswith('hash') and value is not None:
        return characters(read(json.dumps(value)))
    return folded(value) if kind.startswith('folded') and value is not None else value


def picked(value, paths):
    """The members that these names lead to, from object to object."""
    found = {}
    for name, one in value.items() if isinstance(value, dict) else ():
        within = [path[1:] for path in paths if path[0] == name]
        if [] in within:
            found[name] = one
        elif within and (part := picked(one, within)):
            found[name] = part
    return found


class Oracle:
    """All contents, as documents hold them."""

    def __init__(self, stack):
        self.stamps = {(c, id): stamps for c, id, *stamps in stack.psql('lab', 'select class, id, version, ctime from doc')}
        self.rows = stack.psql('lab', "select class, id, iclass, key, content, version from item where content is not null")
        self.others = {}
        for c, id, i, _, text, _ in self.rows:
            fields = CLASSES.get(c, {'items': {}})['items'].get(i, {}).get('fields')
            if fields:
                self.others.setdefault((c, id, i), []).append(export_content(text, fields, PATHS))

    def find(self, param):
        fields = CLASSES[param['c']]['items'][param['i']]['fields']
        found = []
        for c, id, i, key, text, version in self.rows:
            values = export_content(text, fields, PATHS) if (c, i) == (param['c'], param['i']) else None
            if values is None or ('id' in param and not self.satisfies_id(param['id'], id)):
                continue
            if not all(self.satisfies_stamp(param[name], self.stamps[c, id][place]) for place, name in enumerate(('v', 'ct')) if name in param):
                continue
            if all(self.satisfies_group(group, values, fields, (c, id)) for group in param.get('where', [])):
                j = json.loads(text)
                j = picked(j, [[one] if isinstance(one, str) else one for one in param['want']]) if isinstance(param.get('want'), list) else j
                found.append((id.encode(), key.encode(), {'id': id, **({'k': key} if key else {}), 'v': version, 'j': j}))
        found.sort(key=lambda row: row[:2])
        if isinstance(param.get('want'), list):
            return [row for _, _, row in found]
        return [row for _, _, row in found] if param.get('want') == 'items' else sorted({row['id'] for _, _, row in found}, key=str.encode)

    def totals(self, param):
        """Of all items that are found, with exact sums."""
        fields, want, groups = CLASSES[param['c']]['items'][param['i']]['fields'], param['want'], {}
        by = listed(want.get('by', []))
        for row in self.find({**param, 'want': 'items'}):
            values = export_content(json.dumps(row['j']), fields, PATHS)
            groups.setdefault(tuple(stored(values[name]) for name in by), []).append(values)
        if not by:
            groups.setdefault((), [])
        found = []
        for key in sorted(groups, key=lambda key: [(one is not None, order(one) if one is not None else 0) for one in key]):
            one = {'count': len(groups[key]), **({'by': dict(zip(by, key))} if by else {})}
            for kind in ('sum', 'min', 'max', 'avg'):
                for name in listed(want.get(kind, [])):
                    values = [stored(values[name]) for values in groups[key] if values[name] is not None]
                    one.setdefault(kind, {})[name] = total(kind, values)
            found.append(one)
        return {'groups': found} if by else found[0]

    @staticmethod
    def satisfies_id(condition, id):
        if condition['t'] in SETS:
            return (id in condition['v1']) == (condition['t'] == 'in')
        return holds(condition['t'], id, condition['v1'], condition.get('v2'))

    @staticmethod
    def satisfies_stamp(condition, stamp):
        v1 = condition['v1']
        if condition['t'] in ('ne', 'in', 'nin'):
            return (stamp in (v1 if isinstance(v1, list) else [v1])) == (condition['t'] == 'in')
        return holds(condition['t'], stamp, v1, condition.get('v2'))

    def satisfies_group(self, group, values, fields, document):
        if 'or' in group:
            return any(self.satisfies_group(one, values, fields, document) for one in group['or'])
        if 'and' in group:
            return all(self.satisfies_group(one, values, fields, document) for one in group['and'])
        if 'not' in group:
            return not self.satisfies_group(group['not'], values, fields, document)
        if 'i' in group:
            return self.is_of_others(group, document)
        return self.satisfies(group, values[group['f']], fields[group['f']])

    def is_of_others(self, condition, document):
        """Has the document an item of the class that satisfies the condition; of `exists` false: has no item of it the field?"""
        kind, name = CLASSES[document[0]]['items'][condition['i']]['fields'][condition['f']], condition['f']
        denies = condition['t'] == 'exists' and not condition['v1']
        condition = {**condition, 'v1': True} if denies else condition
        return denies != any(self.satisfies(condition, values[name], kind) for values in self.others.get((*document, condition['i']), []))

    @staticmethod
    def satisfies(condition, value, kind):
        if condition['t'] == 'exists':
            return (value is not None) == condition['v1']
        values = [] if value is None else value if isinstance(value, list) else [value]
        if condition['t'] in SETS:
            several = [condition['v1']] if condition['t'] == 'ne' else condition['v1']
            several = [as_field(one, kind) for one in several]
            return any(one in several for one in values) if condition['t'] == 'in' else value is not None and not any(one in several for one in values)
        v1, v2 = (as_field(condition.get(name), kind) for name in ('v1', 'v2'))
        return any(holds(condition['t'], one, v1, v2) for one in values)


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


def some_group(chance, fields, depth=0):
    """A condition, or some of them under or, and, not."""
    kind = chance.random() if depth < 3 else 1
    if kind < 0.25:
        return {'or': [some_group(chance, fields, depth + 1) for _ in range(chance.choice([1, 2, 2, 3]))]}
    if kind < 0.35:
        return {'and': [some_group(chance, fields, depth + 1) for _ in range(chance.choice([1, 2]))]}
    if kind < 0.5:
        return {'not': some_group(chance, fields, depth + 1)}
    other = {'i': chance.choice(['Adr', 'Main'])} if chance.random() < 0.25 else {}
    fields = CLASSES['Person']['items'][other['i']]['fields'] if other else fields
    name = chance.choice(list(fields))
    return {**other, 'f': name, **some_condition(chance, fields[name])}


def count_alternatives(group, negated=False):
    """(of alternatives, of conditions in the longest) at most."""
    if 'not' in group:
        return count_alternatives(group['not'], not negated)
    for name in ('or', 'and'):
        if name in group:
            parts = [count_alternatives(one, negated) for one in group[name]]
            if (name == 'or') != negated:
                return sum(number for number, _ in parts), max(length for _, length in parts)
            return math.prod(number for number, _ in parts), sum(length for _, length in parts)
    return 1, 1


def some_stamp(chance, stamps):
    test, values = chance.choice([*TESTS[2:], 'eq', 'ne', 'in', 'nin']), sorted(chance.choices(stamps, k=2))
    return {'t': test, 'v1': values if test in ('in', 'nin') else values[0], **({'v2': values[1]} if len(test) == 4 else {})}


def some_search(chance, stamps=()):
    item = chance.choice(['Adr', 'Adr', 'Main'])
    fields = CLASSES['Person']['items'][item]['fields']
    param = {'c': 'Person', 'i': item, 'where': [], 'want': chance.choice(['ids', 'items']), 'limit': chance.choice([1, 2, 3, 5, 100])}
    for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
        param['where'].append(some_group(chance, fields))
    if count_alternatives({'and': param['where']})[0] > 8 or count_alternatives({'and': param['where']})[1] > 7:
        return some_search(chance, stamps)
    for name in ('v', 'ct'):
        if stamps and chance.random() < 0.1:
            param[name] = some_stamp(chance, stamps)
    if chance.random() < 0.1:
        param['want'] = chance.sample(['name', 'tags', 'none', 'size', 'title', 'address', ['address'], ['address', 'city'], ['address', 'city', 'city'], PATHS['floor'], PATHS['floor'][:2], ['lines', 'sku'], ['name']],
                                      chance.randint(1, 5))
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
            param = some_search(chance, [stamp for stamps in oracle.stamps.values() for stamp in stamps])
            assert whole(stack, param) == oracle.find(param), param
            if param['want'] == 'ids':
                docs = whole(stack, {**param, 'want': 'docs'})
                assert [doc['id'] for doc in docs] == oracle.find(param)
                assert not docs or docs[:16] == stack.op('lab', 'get', {'docs': [{'c': doc['c'], 'id': doc['id']} for doc in docs[:16]]})['out']['docs']
            count = len(oracle.find({**param, 'want': 'ids'}))
            many = {name: value for name, value in param.items() if name != 'limit'}
            assert one_page(stack, {**many, 'want': 'count'}) == {'count': count}, param
            assert one_page(stack, {**param, 'want': 'count'}) == ({'count': count} if count <= param['limit'] else {'count': param['limit'], 'more': True}), param


def some_totals(chance, fields):
    plain = [name for name, kind in fields.items() if not kind.endswith('[]') and kind != 'hash']
    numbers = [name for name in plain if fields[name] not in ('string', 'folded')]
    want = {kind: chance.sample(names, chance.randint(1, min(4, len(names)))) for kind, names in (('sum', numbers), ('min', plain), ('max', plain), ('avg', numbers))
            if names and chance.random() < 0.5}
    if chance.random() < 0.5:
        want['by'] = chance.sample(plain, min(len(plain), chance.randint(1, 2)))
    return {name: fields[0] if len(fields) == 1 else fields for name, fields in want.items()}


@pytest.mark.parametrize('seed', range(2))
def test_totals_are_what_the_contents_say(stack, schemas, seed):
    chance = random.Random(4700 + seed)
    for _ in range(5):
        for _ in range(12):
            stack.put('lab', change(chance))
        oracle = Oracle(stack)
        for _ in range(30):
            param = {name: value for name, value in some_search(chance).items() if name in ('c', 'i', 'where', 'id')}
            param['want'] = some_totals(chance, CLASSES['Person']['items'][param['i']]['fields'])
            seen, wanted = one_page(stack, param), oracle.totals(param)
            assert is_near(seen, wanted), (param, [(one, other) for one, other in zip(seen.get('groups', [seen]), wanted.get('groups', [wanted])) if not is_near(one, other)])
            if wanted.get('count', 0) > 1:
                assert one_page(stack, {**param, 'limit': 1})['more'] and one_page(stack, {**param, 'limit': 1})['count'] == 1


def test_totals_have_an_end(stack, schemas):
    for start in range(0, 1200, 32):
        stack.put('lab', {'c': 'Person', 'id': f'group-{start}', 'items': [{'c': 'Adr', 'k': str(number), 'j': {'name': 'group', 'count': number, 'ratio': 1e308}}
                                                                           for number in range(start, min(start + 32, 1200))]})
    param = {**where('name', 'eq', 'group'), 'want': {'by': 'count'}}
    found = one_page(stack, param)
    assert found['more'] and [one['by']['count'] for one in found['groups']] == list(range(1000))
    assert one_page(stack, {**param, 'want': {}}) == {'count': 1200} and one_page(stack, {**param, 'want': {}, 'limit': 7}) == {'count': 7, 'more': True}
    assert one_page(stack, {**param, 'want': {'sum': 'count', 'avg': 'count'}}) == {'count': 1200, 'sum': {'count': 719400}, 'avg': {'count': 599.5}}
    with pytest.raises(Problem) as refused:
        one_page(stack, {**param, 'want': {'sum': 'ratio'}})
    assert (refused.value.code, refused.value.body['at']) == ('AARG', '/param/want')
    for start in range(0, 1200, 32):
        stack.put('lab', {'c': 'Person', 'id': f'group-{start}', 'delete': True})


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


A = {'f': 'name', 't': 'eq', 'v1': 'a'}
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
    (where('name', 'almost', 'a'), 'AARG', ['t']),
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
    (where('title', 'sw', 'é' * 47), 'AARG', ['v1']),
    (where('title', 'ge', 'x' * 1025), 'AARG', ['v1']),
    (where('words', 'in', ['x', 7]), 'AARG', ['v1']),
    (where('title', 'eq', 7), 'AARG', ['v1']),
    ({**FIND, 'want': {'sum': 'title'}}, 'AARG', ['sum']),
    (where('tags', 'gtle', '\U00010000', '\uffff'), 'AARG', ['v2']),
    ({**FIND, 'id': 'a'}, 'AARG', ['id']),
    ({**FIND, 'id': {'t': 'eq', 'v1': 1}}, 'AARG', ['v1']),
    ({**FIND, 'id': {'t': 'gele', 'v1': 'b', 'v2': 'a'}}, 'AARG', ['v2']),
    ({**FIND, 'want': 'all'}, 'AARG', ['want']),
    ({**FIND, 'want': []}, 'AARG', ['want']),
    ({**FIND, 'want': {'sums': 'size'}}, 'AARG', ['sums', 'sum']),
    ({**FIND, 'want': {'sum': []}}, 'AARG', ['sum']),
    ({**FIND, 'want': {'sum': 7}}, 'AARG', ['sum']),
    ({**FIND, 'want': {'sum': 'name'}}, 'AARG', ['sum']),
    ({**FIND, 'want': {'avg': ['size', 'years']}}, 'AARG', ['avg']),
    ({**FIND, 'want': {'min': 'code'}}, 'AARG', ['min']),
    ({**FIND, 'want': {'max': ['size', 'size']}}, 'AARG', ['max']),
    ({**FIND, 'want': {'by': ['size', 'size']}}, 'AARG', ['by']),
    ({**FIND, 'want': {'by': ['size', 'count', 'name']}}, 'AARG', ['by']),
    ({**FIND, 'want': {'by': 'tags'}}, 'AARG', ['by']),
    ({**FIND, 'want': {'min': ['size'] * 9}}, 'AARG', ['min']),
    ({**FIND, 'want': {'sum': 'other'}}, 'NFIELD', ['Person', 'Adr', 'other']),
    ({**FIND, 'want': {}, 'order': 'size'}, 'AARG', ['order']),
    ({**FIND, 'want': {}, 'limit': 100001}, 'AARG', ['limit']),
    ({**FIND, 'want': ['name', 7]}, 'AARG', ['want']),
    ({**FIND, 'want': ['name'] * 33}, 'AARG', ['want']),
    ({**FIND, 'v': {'t': 'exists', 'v1': True}}, 'AARG', ['v1']),
    ({**FIND, 'v': {'t': 'sw', 'v1': 1}}, 'AARG', ['t']),
    ({**FIND, 'v': {'t': 'gt', 'v1': '1'}}, 'AARG', ['v1']),
    ({**FIND, 'ct': 7}, 'AARG', ['ct']),
    ({**FIND, 'where': [{'or': []}]}, 'AARG', ['or']),
    ({**FIND, 'where': [{'or': {'f': 'name', 't': 'eq', 'v1': 'a'}}]}, 'AARG', ['or']),
    ({**FIND, 'where': [{'or': [{'and': 7}]}]}, 'AARG', ['and']),
    ({**FIND, 'where': [{'not': [{'f': 'name', 't': 'eq', 'v1': 'a'}]}]}, 'AARG', ['where']),
    ({**FIND, 'where': [{'not': {'not': {}}}]}, 'AARG', ['where']),
    ({**FIND, 'where': [{'xor': [], 'f': 'name'}]}, 'AARG', ['xor', 'or']),
    ({**FIND, 'where': [{'or': [A], 'not': A}]}, 'AARG', ['not']),
    ({**FIND, 'where': [{'not': {'not': {'not': {'not': {'not': A}}}}}]}, 'AARG', ['where']),
    ({**FIND, 'where': [{'or': [A] * 9}]}, 'AARG', ['where']),
    ({**FIND, 'where': [{'or': [A] * 3}, {'or': [A] * 3}]}, 'AARG', ['where']),
    ({**FIND, 'where': [{'not': {'and': [A] * 9}}]}, 'AARG', ['where']),
    ({**FIND, 'where': [{'not': {'or': [A] * 8}}]}, 'AARG', ['where']),
    ({**FIND, 'where': [{'or': [{'f': 'other', 't': 'eq', 'v1': 'a'}]}]}, 'NFIELD', ['Person', 'Adr', 'other']),
    ({**FIND, 'where': [{**A, 'i': 7}]}, 'AARG', ['i']),
    ({**FIND, 'where': [{**A, 'i': 'no name'}]}, 'AARG', ['i']),
    ({**FIND, 'where': [{**A, 'i': 'Free'}]}, 'NFIELD', ['Person', 'Free']),
    ({**FIND, 'where': [{'not': {**A, 'i': 'Unknown'}}]}, 'NFIELD', ['Person', 'Unknown']),
    ({**FIND, 'where': [{'i': 'Main', 'f': 'size', 't': 'eq', 'v1': 1}]}, 'NFIELD', ['Person', 'Main', 'size']),
    ({**FIND, 'where': [{'i': 'Main', 'f': 'name', 't': 'exists', 'v1': 1}]}, 'AARG', ['v1']),
    ({**FIND, 'where': [{'i': 'Main', 'or': [A]}]}, 'AARG', ['i']),
    ({**FIND, 'where': [{**A, 'i': 'Main'}], 'order': 'size', 'want': 'items'}, 'AARG', ['order']),
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
              {**param, 'id': {'t': 'sw', 'v1': 'cursor'}}, {**param, 'i': 'Main'}, {**param, 'where': param['where'] * 2},
              {**param, 'where': [{'not': param['where'][0]}]}, {**param, 'where': [{'or': param['where'] * 2}]}, {**param, 'v': {'t': 'gt', 'v1': 0}}]
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
        for fields in ({'size': 'int'}, {'name': 'string[]'}, declared(FIELDS, PATHS)):
            schemas.apply('lab', {'Person': {'items': {**CLASSES['Person']['items'], 'Adr': {'fields': fields}}}}, '--batch', 1)
    ends.set()
    for seeker in seekers:
        seeker.join()
    assert [found for found in wrong if found] == [] and 'found' in codes and codes <= {'found', 'NFIELD', 'OBUILDING', 'CONTENTION'}, (wrong, codes)


def test_the_largest_search(stack, schemas):
    """All alternatives with all conditions, each with two values."""
    one = [{'f': 'name', 't': 'gele', 'v1': f'a{number}', 'v2': f'b{number}'} for number in range(7)]
    param = {**FIND, 'where': [{'or': [{'and': [{**part, 'v2': part['v2'] + str(number)} for part in one]} for number in range(8)]}], 'limit': 2, 'want': 'items',
             'id': {'t': 'gele', 'v1': 'a', 'v2': 'z'}, 'v': {'t': 'gele', 'v1': 1, 'v2': 2**60}, 'ct': {'t': 'gele', 'v1': 1, 'v2': 2**60}}
    stack.put('lab', *({'c': 'Person', 'id': f'big-{number}', 'items': [{'c': 'Adr', 'k': 'k', 'j': {'name': 'ab', 'size': number}}]} for number in range(5)))
    everything = Oracle(stack).find(param)
    assert len(everything) > 4 and whole(stack, param) == everything
    ordered = whole(stack, {**param, 'order': ['size', '-count', 'ratio', 'name']}, admin=True)
    assert all(row in everything for row in ordered)
    assert one_page(stack, {**{name: value for name, value in param.items() if name != 'limit'}, 'want': 'count'}) == {'count': len({row['id'] for row in everything})}


def test_many_different_searches_are_prepared_and_given_up(stack, schemas):
    chance = random.Random(5)
    oracle = Oracle(stack)
    names = list(FIELDS)
    for _ in range(300):
        fields = chance.sample(names, 2)
        param = {**FIND, 'where': [{'f': name, **some_condition(chance, FIELDS[name])} for name in fields]}
        assert whole(stack, param) == oracle.find(param)

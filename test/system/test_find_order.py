"""find in the order of fields: pages against a naive reading of all contents, while documents change; what no index serves."""
import json
import random
import string

import pytest

from schema import Schemas, declared, export_content, folded
from stack import Problem

STACK = {'workers': 2}

FIELDS = {'room': 'string', 'at': 'long', 'size': 'int', 'ratio': 'double', 'title': 'string', 'code': 'hash', 'label': 'folded', 'tags': 'string[]', 'floor': 'int'}
PATHS = {'floor': ['place', 'floor no.']}
INDEXES = [['room', '-at'], ['room', 'size', '-at'], ['size', '-title'], ['-ratio', 'at', '-title'], ['code', 'title'], ['room', '-label'], ['room', '-floor', 'at']]
CLASSES = {'Note': {'items': {'Main': {'singleton': True, 'fields': declared(FIELDS, PATHS), 'indexes': INDEXES}, 'Line': {'fields': declared(FIELDS, PATHS), 'indexes': INDEXES}}}}
TITLES = ['', 'a', 'ab', 'b', 'B', 'é', '\uffff', '\U00010000', '"', 'x' * 1024, 'x' * 1023 + 'y', 'z' * 3000]
VALUES = {'room': ['r', 's'], 'at': [0, -1, 2**63 - 1, -2**63, 5, 6, 7], 'size': [1, 2, 3], 'ratio': [0, 0.1, -0.1, 1e300, 5e-324, 1 / 3], 'title': TITLES,
          'code': [1, 'x', True], 'floor': [-1, 0, 1], 'label': ['', 'É', 'e', 'Ea', 'Łb', 'l', 'ß' * 600, 'É' * 3000]}
ORDERS = ['at', '-at', ['-at'], ['room', '-at'], ['-room', 'at'], ['size', '-title'], ['-size', 'title'], ['-ratio', 'at', '-title'], ['ratio', '-at', 'title'],
          'title', '-title', 'ratio', '-ratio', 'size', ['size', 'at'], ['title', 'room'], ['at', '-size', 'ratio', '-title'], 'label', ['room', '-label'], ['-room', 'label'], '-floor', ['room', '-floor', 'at']]


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', CLASSES)
    return schemas


def some_content(chance):
    content = {name: chance.choice(values) for name, values in VALUES.items() if name not in PATHS and chance.random() < 0.9}
    content['tags'] = chance.sample(['t', 'u', 'v'], chance.randint(0, 2))
    if chance.random() < 0.9:
        content['place'] = {'floor no.': chance.choice(VALUES['floor'])}
    return content


def change(chance, count=40):
    document = {'c': 'Note', 'id': f'n{chance.randrange(count):02}', 'items': [{'c': 'Main', 'j': some_content(chance)}]}
    if chance.random() < 0.1:
        return {**document, 'delete': True}
    document['items'] += [{'c': 'Line', 'k': key, 'j': some_content(chance)} for key in chance.sample(['k', 'l', 'm'], chance.randint(0, 2))]
    return document


def fields_of(order):
    """(name, descends) of each."""
    return [(name.lstrip('-'), name.startswith('-')) for name in ([order] if isinstance(order, str) else order)]


class Turned:
    """A value that is sorted in reverse."""

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return other.value < self.value

    def __eq__(self, other):
        return other.value == self.value


def plain(value):
    return value.encode() if isinstance(value, str) else value


class Oracle:
    """Contents as documents hold them, and what a search is to find in them."""

    def __init__(self, stack, ns='lab'):
        self.rows = stack.psql(ns, "select id, iclass, key, content, version from item where class = 'Note' and content is not null")
        self.values = {row[3]: export_content(row[3], FIELDS, PATHS) for row in self.rows}  # once, and not for each of the searches

    def place(self, param, row):
        id, _, key, content, _ = row
        values, fixed = self.values[content], {one['f'] for one in param.get('where', ()) if one.get('t') == 'eq'}
        terms = [(plain(values[name]), turned) for name, turned in fields_of(param['order']) if name not in fixed]
        turned = terms[-1][1] if terms else False
        return [Turned(value) if down else value for value, down in [*terms, (id.encode(), turned), (key.encode(), turned)]]

    def find(self, param):
        found = []
        for row in self.rows:
            values = self.values[row[3]]
            if row[1] != param['i'] or any(values[name] is None for name, _ in fields_of(param['order'])):
                continue
            if all(any(self.satisfies(part, values[part['f']]) for part in one.get('or', [one])) for one in param.get('where', ())):
                found.append((self.place(param, row), row))
        found.sort(key=lambda one: one[0])
        if param.get('want') == 'ids':
            return [row[0] for _, row in found]
        return [{'id': id, **({'k': key} if key else {}), 'v': version, 'j': json.loads(content)} for _, (id, _, key, content, version) in found]

    @staticmethod
    def satisfies(condition, value):
        test, fold = condition['t'], folded if FIELDS[condition['f']] == 'folded' else lambda text: text
        v1, v2 = (plain(fold(condition[name])) if name in condition else None for name in ('v1', 'v2'))
        for one in value if isinstance(value, list) else [] if value is None else [plain(value)]:
            one = plain(one)
            if {'eq': lambda: one == v1, 'ge': lambda: one >= v1, 'lt': lambda: one < v1, 'gele': lambda: v1 <= one <= v2}[test]():
                return True
        return False


def one_page(stack, param, **more):
    return stack.op('lab', 'find', param, **more)['out']


def whole(stack, param, **more):
    found = []
    while True:
        page = one_page(stack, param, **more)
        rows = page.get('items', page.get('ids'))
        found += rows
        if 'cursor' not in page:
            return found
        assert len(rows) == param['limit']
        param = {**param, 'cursor': page['cursor']}


def some_search(chance):
    item = chance.choice(['Main', 'Line'])
    param = {'c': 'Note', 'i': item, 'order': chance.choice(ORDERS), 'limit': chance.choice([1, 2, 3, 7, 100]), 'where': [],
             'want': 'items' if item == 'Line' else chance.choice(['ids', 'items'])}
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        name = chance.choice(['room', 'at', 'size', 'title', 'label', 'tags'])
        values = sorted((one for one in chance.choices(VALUES.get(name, ['t', 'u', 'v']), k=2) if len(str(one)) <= (90 if name == 'label' else 1024)), key=plain) or ['a']
        test = chance.choice(['eq', 'eq', 'ge', 'lt', 'gele'])
        param['where'].append({'f': name, 't': test, 'v1': values[0], **({'v2': values[-1]} if test == 'gele' else {})})
    if len(param['where']) > 1 and chance.random() < 0.5:
        param['where'] = [{'or': param['where'] + [eq('room', 'r')] * chance.randint(0, 1)}]
    return param


@pytest.mark.parametrize('seed', range(4))
def test_an_order_is_what_the_contents_say(stack, schemas, seed):
    chance = random.Random(3400 + seed)
    for _ in range(6):
        for _ in range(12):
            stack.put('lab', change(chance))
        oracle = Oracle(stack)
        for _ in range(25):
            param = some_search(chance)
            assert whole(stack, param, admin=True) == oracle.find(param), param


@pytest.mark.parametrize('order', ORDERS, ids=str)
def test_pages_have_each_unchanged_document_once_while_others_change(stack, schemas, order):
    chance = random.Random(str(order))
    for number in range(40):
        stack.put('lab', {'c': 'Note', 'id': f'n{number:02}', 'items': [{'c': 'Main', 'j': {name: chance.choice(values) for name, values in VALUES.items()}}]})
    param, found, changed = {'c': 'Note', 'i': 'Main', 'order': order, 'limit': 3}, [], set()
    before = Oracle(stack).find({**param, 'want': 'ids'})
    while True:
        page = one_page(stack, param, admin=True)
        found += page['ids']
        if 'cursor' not in page:
            break
        param['cursor'] = page['cursor']
        changed.add(found[-1])  # the row that the cursor names moves, or goes
        stack.put('lab', {'c': 'Note', 'id': found[-1], **({'delete': True} if chance.random() < 0.3 else {'items': [{'c': 'Main', 'j': some_content(chance)}]})})
        other = change(chance)
        changed.add(other['id'])
        stack.put('lab', other)
    assert [id for id in found if id not in changed] == [id for id in before if id not in changed]


# --- what is refused ---

FIND = {'c': 'Note', 'i': 'Main'}


def eq(name, value):
    return {'f': name, 't': 'eq', 'v1': value}


REFUSED = [
    ({**FIND, 'order': 'other'}, 'NFIELD', None),
    ({**FIND, 'order': '-'}, 'NFIELD', None),
    ({**FIND, 'order': '--at'}, 'NFIELD', None),
    ({**FIND, 'order': 'at" desc, 1 --'}, 'NFIELD', None),
    ({**FIND, 'order': ''}, 'AARG', '/param/order'),
    ({**FIND, 'order': []}, 'AARG', '/param/order'),
    ({**FIND, 'order': {}}, 'AARG', '/param/order'),
    ({**FIND, 'order': 7}, 'AARG', '/param/order'),
    ({**FIND, 'order': ['at', 7]}, 'AARG', '/param/order/1'),
    ({**FIND, 'order': ['at', ['at']]}, 'AARG', '/param/order/1'),
    ({**FIND, 'order': ['at', '-at']}, 'AARG', '/param/order/1'),
    ({**FIND, 'order': ['at', 'size', 'room', 'title', 'ratio']}, 'AARG', '/param/order'),
    ({**FIND, 'order': 'tags'}, 'AARG', '/param/order'),
    ({**FIND, 'order': 'code'}, 'AARG', '/param/order'),
    ({**FIND, 'i': 'Line', 'order': 'at'}, 'AARG', '/param/order'),
    ({**FIND, 'order': 'at', 'cursor': 'AAAA'}, 'AARG', '/param/cursor'),
    ({**FIND, 'order': 'at', 'where': [{'f': 'size', 't': 'ge', 'v1': 1}]}, 'AARG', '/param/order'),
    ({**FIND, 'order': 'at', 'where': [{'f': 'at', 't': 'ne', 'v1': 1}]}, 'AARG', '/param/order'),
    ({**FIND, 'order': 'at', 'where': [{'f': 'room', 't': 'in', 'v1': ['r', 's']}]}, 'AARG', '/param/order'),
    ({**FIND, 'order': 'at', 'id': {'t': 'sw', 'v1': 'n'}}, 'AARG', '/param/order'),
    ({**FIND, 'order': ['at', 'size'], 'where': [eq('room', 'r'), eq('title', 'a'), eq('ratio', 1)]}, 'AARG', '/param/order'),
]


@pytest.mark.parametrize('param, code, at', REFUSED, ids=range(len(REFUSED)))
def test_what_has_no_order_is_refused(stack, schemas, param, code, at):
    with pytest.raises(Problem) as refused:
        one_page(stack, param)
    assert (refused.value.code, refused.value.body.get('at')) == (code, at)


MISSING = [
    ({'order': ['room', 'at']}, ['room', 'at']),
    ({'order': 'at', 'where': [eq('size', 1)]}, ['size', 'at']),
    ({'order': ['-at', 'size'], 'where': [eq('title', 'a'), eq('room', 'r')]}, ['title', 'room', '-at', 'size']),
    ({'order': ['room', '-title'], 'where': [{'f': 'room', 't': 'sw', 'v1': 'r'}]}, ['room', '-title']),
    ({'order': '-at', 'where': [{'or': [eq('room', 'r'), eq('size', 1)]}]}, ['size', '-at']),
    ({'order': '-at', 'where': [{'or': [eq('tags', 't'), eq('title', 'a')]}]}, ['title', '-at']),
]


@pytest.mark.parametrize('more, index', MISSING, ids=range(len(MISSING)))
def test_what_no_index_serves_is_refused_with_the_index_that_would(stack, schemas, more, index):
    with pytest.raises(Problem) as refused:
        one_page(stack, {**FIND, **more})
    assert (refused.value.code, refused.value.status, refused.value.body['at']) == ('AINDEX', 400, '/param/order')
    assert refused.value.body['args'][:2] == ['Note', 'Main'] and json.loads(refused.value.body['args'][2]) == index
    assert one_page(stack, {**FIND, **more}, admin=True) is not None  # who may
    main = CLASSES['Note']['items']['Main']
    schemas.apply('lab', {'Note': {'items': {**CLASSES['Note']['items'], 'Main': {**main, 'indexes': [*INDEXES, index]}}}})
    try:
        assert one_page(stack, {**FIND, **more}) is not None
    finally:
        schemas.apply('lab', CLASSES)
    with pytest.raises(Problem):
        one_page(stack, {**FIND, **more})


@pytest.mark.parametrize('param', [
    {'order': 'at'}, {'order': '-title'}, {'order': '-at', 'where': [eq('room', 'r')]}, {'order': ['-room', 'at'], 'where': [eq('room', 'r')]},
    {'order': ['room', '-at']}, {'order': ['-room', 'at']}, {'order': 'at', 'where': [{'f': 'at', 't': 'ge', 'v1': 1}]},
    {'order': '-at', 'where': [eq('size', 1), eq('room', 'r')]}, {'order': '-at', 'where': [eq('tags', 't'), eq('size', 1)]},
    {'order': 'title', 'where': [eq('code', 'x')]}, {'order': 'at', 'where': [eq('at', 5), eq('title', 'a')]},
    {'order': '-at', 'where': [{'or': [eq('room', 'r'), eq('room', 's')]}]}, {'order': ['room', '-at'], 'where': [{'or': [eq('room', 'r'), eq('room', 's')]}]}], ids=str)
def test_what_an_index_serves_is_for_everybody(stack, schemas, param):
    assert 'ids' in one_page(stack, {**FIND, **param})


def test_an_index_that_is_being_built_serves_nobody_yet(stack, schemas):
    stack.psql('lab', "update schema set number = number + 1, building = 'Note.Main.room,-at'")
    try:
        with pytest.raises(Problem) as refused:
            one_page(stack, {**FIND, 'order': ['room', '-at']})
        assert (refused.value.code, refused.value.body['args']) == ('OBUILDING', ['["room","-at"]'])
        one_page(stack, {**FIND, 'order': 'at'})
    finally:
        stack.psql('lab', "update schema set number = number + 1, building = ''")
    one_page(stack, {**FIND, 'order': ['room', '-at']})


def test_a_cursor_is_good_for_its_order_only(stack, schemas):
    for number in range(3):
        stack.put('lab', {'c': 'Note', 'id': f'n{number:02}', 'items': [{'c': 'Main', 'j': {'at': number, 'size': number, 'room': 'r', 'title': 'a'}}]})
    cursor = one_page(stack, {**FIND, 'order': 'at', 'limit': 1})['cursor']
    one_page(stack, {**FIND, 'order': ['at'], 'cursor': cursor})
    for order in ('-at', 'size', ['room', '-at']):
        with pytest.raises(Problem) as refused:
            one_page(stack, {**FIND, 'order': order, 'cursor': cursor})
        assert (refused.value.code, refused.value.body['at']) == ('AARG', '/param/cursor')
    with pytest.raises(Problem):
        one_page(stack, {**FIND, 'cursor': cursor})


def test_a_page_of_large_items_ends_early_and_goes_on(stack, schemas):
    for number in range(12):
        stack.put('lab', {'c': 'Note', 'id': f'large-{number:02}', 'items': [{'c': 'Line', 'k': 'k', 'j': {'at': -number, 'text': 'x' * 900_000, 'tags': ['large']}}]})
    param, ids, pages = {'c': 'Note', 'i': 'Line', 'where': [eq('tags', 'large')], 'order': 'at', 'want': 'items'}, [], 0
    while True:
        page = one_page(stack, param)
        ids, pages = ids + [item['id'] for item in page['items']], pages + 1
        if 'cursor' not in page:
            break
        param['cursor'] = page['cursor']
    assert ids == [f'large-{number:02}' for number in reversed(range(12))] and pages == 2


# --- the declaration ---

WRONG = [
    ({}, 'indexes: A list of up to 16 indexes'), ([['at', 'size']] * 17, 'indexes: A list of up to 16'), (['at'], 'indexes[0]: A list of 2 to 4 fields'),
    ([['at']], 'indexes[0]: A list of 2 to 4'), ([['at', 'size', 'room', 'title', 'ratio']], 'indexes[0]: A list of 2 to 4'),
    ([['at', 'other']], 'indexes[0][1]: A field of the item'), ([['at', 'tags']], 'indexes[0][1]: A field'), ([['at', 7]], 'indexes[0][1]: A field'),
    ([['at', '']], 'indexes[0][1]: A field'), ([['at', '-']], 'indexes[0][1]: A field'), ([['at', '-at']], 'indexes[0][1]: Each field is named once'),
    ([['at', 'size'], ['-at', '-size']], 'indexes[1]: Each index is declared once'),
]


@pytest.mark.parametrize('indexes, words', WRONG, ids=range(len(WRONG)))
def test_a_wrong_declaration_of_indexes_is_refused(stack, schemas, indexes, words):
    error = schemas.set('lab', {'Note': {'items': {'Main': {'fields': FIELDS, 'indexes': indexes}}}}, status=1)
    assert 'classes.Note.items.Main.' + words in error


def indexes_of(stack):
    return {name for name, in stack.psql('lab', "select indexname::text from pg_indexes where schemaname = 'stampd' and indexname ~ '^n_'")}


def test_indexes_follow_the_declaration(stack, schemas):
    names, main = indexes_of(stack), CLASSES['Note']['items']['Main']
    assert len(names) == 2 * len(INDEXES)
    assert schemas.run('plan', 'lab').count('create') == 0
    with_main = lambda main: {'Note': {'items': {**CLASSES['Note']['items'], 'Main': main}}}  # noqa: E731
    schemas.apply('lab', with_main({**main, 'indexes': INDEXES[1:]}))
    assert len(indexes_of(stack)) == len(names) - 1
    # One that is interrupted, one whose field has another type, and one whose field goes.
    stack.psql('lab', "update pg_index set indisvalid = false where indexrelid in (select oid from pg_class where relname = %s)", (min(indexes_of(stack)),))
    schemas.apply('lab', with_main({**main, 'fields': {**FIELDS, 'size': 'long'}}))
    assert indexes_of(stack) == names
    assert stack.psql('lab', "select count(*) from pg_index i join pg_class c on c.oid = i.indexrelid where c.relname ~ '^n_' and not i.indisvalid") == [(0,)]
    schemas.apply('lab', with_main({'singleton': True, 'fields': {name: kind for name, kind in FIELDS.items() if name != 'size'},
                                    'indexes': [index for index in INDEXES if 'size' not in index and '-size' not in index]}))
    assert len(indexes_of(stack)) == len(names) - 2
    schemas.apply('lab', CLASSES)
    assert indexes_of(stack) == names and '["room","-at"]' in schemas.run('show', 'lab', '--json')
    assert 'Note.Main.room,-at' in schemas.run('show', 'lab')


def test_what_no_entry_of_an_index_can_hold_is_refused_for_good(stack, schemas):
    fields = {f's{number}': 'string' for number in range(4)}
    schemas.apply('lab', {**CLASSES, 'Wide': {'items': {'Main': {'singleton': True, 'fields': fields, 'indexes': [['s0', 's1', 's2', 's3'], ['s2', 's3']]}}}})
    texts = {name: ''.join(random.Random(name).choices(string.ascii_letters, k=3000)) for name in fields}
    wide = lambda count: {'c': 'Wide', 'id': 'w' * 255, 'items': [{'c': 'Main', 'j': {name: text if place < count else text[:8] for place, (name, text) in enumerate(texts.items())}}]}  # noqa: E731
    try:
        with pytest.raises(Problem) as refused:
            stack.put('lab', wide(4))
        assert (refused.value.code, refused.value.status, refused.value.body['args']) == ('ALIMIT', 400, ['index', '2704'])
        stack.put('lab', wide(2))
        assert whole(stack, {'c': 'Wide', 'i': 'Main', 'order': list(fields), 'limit': 3}) == ['w' * 255]
    finally:
        schemas.apply('lab', CLASSES)

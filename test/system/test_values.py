"""Unique values of every length and kind; what apply says and leaves when they are there twice; collections that are not mutable."""
import json
import random
import threading

import pytest

from schema import Schemas
from stack import Problem, refused

STACK = {'workers': 3, 'namespaces': {'z': 'open', 'lab': 'open', 'den': 'open'}}

THING = {'items': {'Main': {'singleton': True}, 'Note': {}},
         'collections': {'born': {'key': ['Main.born']}, 'tag': {'key': ['Main.tags'], 'list': True}, 'both': {'key': ['Main.born', 'Main.n']},
                         'free': {'key': ['Main.free'], 'mutable': True}},
         'unique': {'name': {'key': ['Main.name']}, 'pair': {'key': ['Main.a', 'Main.b']}, 'world': {'key': ['Main.world'], 'global': True}}}


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for ns in ('lab', 'den'):
        schemas.apply(ns, {'Thing': THING})
    return schemas


@pytest.fixture
def lab(stack, schemas):
    return stack


def put(stack, id_, content, ns='lab', **more):
    return stack.put(ns, {'c': 'Thing', 'id': id_, 'items': [{'c': 'Main', 'j': content}], **more})


def args_of_refusal(code, *put_what):
    return refused(code, put, *put_what).body['args']


# --- unique values ---

LONG = ['x' * 255, 'x' * 256, 'x' * 257, 'x' * 100000, 'é' * 127, 'é' * 128, '\U0001f600' * 64, 'x' * 255 + 'y', ' ' * 300]


@pytest.mark.parametrize('member, more', [('name', {}), ('world', {}), ('a', {'b': 'y' * 300}), ('b', {'a': ''})])
def test_values_of_every_length_are_unique(lab, member, more):
    property = {'a': 'pair', 'b': 'pair'}.get(member, member)
    for place, value in enumerate(LONG):
        put(lab, f'{member}{place}', {member: value, **more})
        assert args_of_refusal('AUNIQUE', lab, f'{member} other', {member: value, **more}) == [property, 'Thing', f'{member} other']
        put(lab, f'{member}{place}', {member: value, 'n': 1, **more})  # its own
    put(lab, f'{member}0', {})
    put(lab, f'{member} other', {member: LONG[0], **more})  # it was given up


def test_what_stands_for_a_long_value_is_no_value_itself(lab):
    put(lab, 'long', {'name': 'z' * 300})
    stored, = lab.psql('lab', "select value from unique_value where id = 'long'")
    assert len(stored[0]) == 256
    for value in (stored[0], stored[0].rstrip(), stored[0][:255]):
        put(lab, 'short', {'name': value})
    put(lab, 'long', {})


def test_long_values_are_unique_in_all_namespaces(lab):
    put(lab, 'here', {'world': 'w' * 500})
    assert args_of_refusal('AUNIQUE', lab, 'there', {'world': 'w' * 500}, 'den')[:2] == ['world', 'Thing']
    put(lab, 'there', {'world': 'w' * 501}, 'den')
    put(lab, 'here', {})
    put(lab, 'there', {'world': 'w' * 500}, 'den')


def test_a_number_counts_as_it_is_written_and_as_its_string(lab):
    put(lab, 'one', {'name': 1})
    refused('AUNIQUE', put, lab, 'two', {'name': '1'})
    put(lab, 'two', {'name': 1.0})  # another text: "1.0"
    put(lab, 'three', {'name': True})
    refused('AUNIQUE', put, lab, 'four', {'name': 'true'})
    for id_, value in (('five', None), ('six', None), ('seven', []), ('eight', []), ('nine', {}), ('ten', {})):
        put(lab, id_, {'name': value})  # no value


def test_random_writers_against_a_naive_model(lab):
    """Never two documents with the same values, and no refusal without a reason."""
    seed = random.randrange(1 << 30)
    print(f'seed {seed}')
    values = ['r', 'r' * 255, 'r' * 256, 'r' * 300, 'é' * 200, 17]
    codes = []

    def write(own):
        for _ in range(60):
            try:
                put(lab, f'r{own.randrange(10)}', {'name': own.choice(values), 'a': own.choice(values), 'b': own.choice(values[:3])})
            except Problem as problem:
                codes.append(problem.code)
    threads = [threading.Thread(target=write, args=(random.Random(seed + number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) <= {'AUNIQUE', 'CONTENTION'}, codes
    contents = [json.loads(text) for text, in lab.psql('lab', "select content from item where class = 'Thing' and iclass = 'Main' and content is not null")]
    for keys in (['name'], ['a', 'b']):
        found = [tuple(str(content[key]) for key in keys) for content in contents if all(isinstance(content.get(key), (str, int)) for key in keys)]
        assert len(found) == len(set(found))


# --- what is there twice when a property is declared ---

def table(stack, ns='lab'):
    return stack.psql(ns, "select class, name, is_ready from unique_property order by 1, 2")


@pytest.mark.parametrize('value', ['badge 7', 'b' * 400, 7])
def test_apply_names_what_is_there_twice_and_leaves_nothing(lab, schemas, value):
    for id_ in ('twice1', 'twice2', 'alone'):
        put(lab, id_, {'badge': value if id_ != 'alone' else 'other', 'group': 'g'})
    before = table(lab)
    declared = {**THING, 'unique': {**THING['unique'], 'badge': {'key': ['Main.badge']}},
                'collections': {**THING['collections'], 'group': {'key': ['Main.group'], 'mutable': True}}}
    schemas.set('lab', {'Thing': declared})
    told = schemas.run('apply', 'lab', status=1)
    assert 'Thing' in told and 'unique property badge' in told and 'twice1' in told and 'twice2' in told
    assert str(value)[:5] in told or '400 bytes, sha256' in told
    assert table(lab) == before
    assert 'badge' not in schemas.run('show', 'lab', '--json')
    assert lab.psql('lab', 'select count(*) from unique_value v where not exists (select from unique_property u where u.number = v.property)') == [(0,)]
    for id_ in ('twice1', 'twice2'):
        put(lab, id_, {'badge': value, 'again': 1, 'group': 'g'})  # nobody is constrained
    found = lab.op('lab', 'collection', {'c': 'Thing', 'collection': 'group', 'value': 'g', 'want': 'ids'})['out']['ids']
    assert {id_ for id_, _ in found} >= {'twice1', 'twice2', 'alone'}  # all else is applied
    assert 'badge' in schemas.run('plan', 'lab')
    put(lab, 'twice2', {'badge': 'no more'})
    schemas.run('apply', 'lab')
    assert ('Thing', 'badge', True) in table(lab)
    assert args_of_refusal('AUNIQUE', lab, 'twice3', {'badge': value}) == ['badge', 'Thing', 'twice3']
    schemas.apply('lab', {'Thing': THING})
    for id_ in ('twice1', 'twice2', 'alone'):
        lab.put('lab', {'c': 'Thing', 'id': id_, 'delete': True})


def test_what_another_namespace_has_is_taken_back_too(lab, schemas):
    other = {**THING, 'unique': {**THING['unique'], 'seal': {'key': ['Main.seal'], 'global': True}}}
    for ns in ('lab', 'den'):
        put(lab, 'sealed', {'seal': 's'}, ns)
    put(lab, 'before sealed', {'seal': 'claimed in vain'}, 'den')
    schemas.apply('lab', {'Thing': other})
    schemas.set('den', {'Thing': other})
    told = schemas.run('apply', 'den', status=1)
    assert 'unique property seal' in told and 'another namespace' in told
    assert 'seal' not in [name for _, name, _ in table(lab, 'den')]
    put(lab, 'free', {'seal': 's'}, 'den')
    refused('AUNIQUE', put, lab, 'bound', {'seal': 's'})
    assert lab.psql('z', "select 1 from global_value where value = 'claimed in vain'")
    put(lab, 'others', {'seal': 'claimed in vain'})  # there is nothing behind it
    for ns in ('lab', 'den'):
        schemas.apply(ns, {'Thing': THING})


# --- collections that are not mutable ---

def test_a_document_does_not_leave_a_collection_that_is_not_mutable(lab):
    put(lab, 'born', {'born': 'paris', 'tags': ['a'], 'n': 1, 'free': 'x'})
    version = put(lab, 'born', {'born': 'paris', 'tags': ['b', 'a'], 'n': 1, 'free': 'y', 'more': 1})  # it may come into others
    for collection, content in (('born', {'born': 'rome', 'tags': ['a', 'b']}), ('born', {'tags': ['a', 'b']}), ('tag', {'born': 'paris', 'tags': ['a'], 'n': 1}),
                                ('both', {'born': 'paris', 'tags': ['a', 'b'], 'n': 2}), ('both', {'born': 'paris', 'tags': ['a', 'b']})):
        args = args_of_refusal('AFIXED', lab, 'born', content)
        assert args[1:] == ['Thing', 'born'] and args[0] in (collection, 'both', 'tag')
    with pytest.raises(Problem, match='AFIXED'):
        lab.put('lab', {'c': 'Thing', 'id': 'born', 'items': [{'c': 'Main', 'del': True}]})
    assert lab.get('lab', ('Thing', 'born'))['v'] == version
    lab.put('lab', {'c': 'Thing', 'id': 'born', 'items': [{'c': 'Note', 'k': 'n', 'j': 1}]})
    put(lab, 'born', {'born': 'rome'}, delete=True)  # another life
    lab.put('lab', {'c': 'Thing', 'id': 'born', 'delete': True})
    put(lab, 'born', {'born': 'oslo'})
    put(lab, 'late', {})
    put(lab, 'late', {'born': 'oslo'})  # who was in none may come into one
    assert {id_ for id_, _ in lab.op('lab', 'collection', {'c': 'Thing', 'collection': 'born', 'value': 'oslo', 'want': 'ids'})['out']['ids']} == {'born', 'late'}


def test_the_declaration_may_change_its_mind_without_being_filled_again(lab, schemas):
    put(lab, 'mind', {'born': 'here'})
    number = lab.psql('lab', "select number from collection where name = 'born'")
    other = {**THING, 'collections': {**THING['collections'], 'born': {'key': ['Main.born'], 'mutable': True}}}
    schemas.apply('lab', {'Thing': other})
    put(lab, 'mind', {'born': 'there'})
    schemas.apply('lab', {'Thing': THING})
    refused('AFIXED', put, lab, 'mind', {'born': 'here'})
    assert lab.psql('lab', "select number from collection where name = 'born'") == number


def test_show_tells_all_that_is_applied_its_state_and_progress(lab, schemas):
    declared = {'Thing': {**THING, 'release': 3, 'zombieDays': 40, 'maxLife': 'Main.until'}}
    schemas.apply('lab', declared)
    lines = [line.split() for line in schemas.run('show', 'lab').splitlines()]
    for line in (['Thing.born', 'collection', 'of', 'Main.born', 'ready'], ['Thing.free', 'collection', 'of', 'Main.free,', 'mutable', 'ready'],
                 ['Thing.tag', 'collection', 'of', 'Main.tags,', 'list', 'ready'], ['Thing.pair', 'unique', 'Main.a,', 'Main.b', 'ready'],
                 ['Thing.world', 'unique', 'Main.world,', 'global', 'ready'], ['Thing.maxLife', 'Main.until', 'ready'], ['Thing.release', '3', 'applied'],
                 ['Thing.zombieDays', '40', 'applied']):
        assert line in lines, (line, lines)
    lab.psql('lab', "update collection set is_ready = false where name = 'born'")
    lab.psql('lab', "insert into schema_fill (class, iclass, after, done) values ('Thing', '', 'm', 5)")
    total, = lab.psql('lab', "select count(*)::text from doc where class = 'Thing' and ctime <> 0")[0]
    assert ['Thing.born', 'collection', 'of', 'Main.born', 'filling', '5', 'of', total, 'documents'] in [line.split() for line in schemas.run('show', 'lab').splitlines()]
    schemas.apply('lab', {'Thing': {**THING, 'release': 3}})


# --- values of a list ---

def test_a_list_gives_a_collection_so_many_values_and_no_more(lab):
    most = 10000
    tags = [f't{number}' for number in range(most)]
    put(lab, 'list', {'tags': tags})
    before = lab.get('lab', ('Thing', 'list'))
    assert args_of_refusal('ALIMIT', lab, 'list', {'tags': tags + ['one more']}) == ['limit_collection_values', str(most), str(most + 1)]
    assert lab.get('lab', ('Thing', 'list')) == before
    with pytest.raises(Problem, match='ALIMIT'):  # all of the commit is refused
        lab.put('lab', {'c': 'Thing', 'id': 'beside', 'items': [{'c': 'Main', 'j': {'tags': ['a']}}]},
                {'c': 'Thing', 'id': 'list2', 'items': [{'c': 'Main', 'j': {'tags': tags + ['one more']}}]})
    assert lab.get('lab', ('Thing', 'beside'))['v'] == 0 and lab.get('lab', ('Thing', 'list2'))['v'] == 0
    put(lab, 'list', {'tags': tags + tags[:5]})  # different ones count
    assert lab.psql('lab', "select count(*) from member where id = 'list' and not has_left") == [(most,)]
    assert lab.refusals('limit_collection_values') == 2

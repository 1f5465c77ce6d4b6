"""Values of every length are found: fields around 1,024 bytes, members of collections around 255, in C as in SQL."""
import hashlib
import json
import random
import urllib.parse

import pytest

from collected import Collected
from listener import Listener
from schema import Schemas, check_side, stored
from stack import Problem

STACK = {'workers': 2}
FIELDS = {'name': 'string', 'tags': 'string[]'}
CLASSES = {'Page': {'open': True, 'items': {'Main': {'singleton': True, 'fields': FIELDS}, 'Link': {'fields': FIELDS}},
                    'collections': {'site': {'key': ['Main.site'], 'mutable': True}, 'tag': {'key': ['Main.tags'], 'list': True, 'mutable': True},
                                    'pair': {'key': ['Main.site', 'Main.name'], 'mutable': True}}}}
FIELD_MOST, MEMBER_MOST = 1024, 255
LETTERS = ['a', 'b', '/', '\x7f', 'é', '\u07ff', '\u0800', '\uffff', '\U00010000', '\U0001f600', '\U0010ffff']


@pytest.fixture(scope='module')
def lab(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', CLASSES)
    return stack


def around(chance, most, spread=6):
    """A text of about so many bytes, of letters of one to four bytes; many begin alike."""
    text = 'a' * chance.choice([0, most // 2, most - 12, most - 5, most - 4, most - 3, most - 2, most - 1, most])
    size = max(len(text), most + chance.randint(-spread, spread) + chance.choice([0, 0, 0, 70, 3000]))
    while len(text.encode()) < size:
        text += chance.choice(LETTERS)
    return text


def put(stack, id_, content, item='Main', **more):
    return stack.put('lab', {'c': 'Page', 'id': id_, 'items': [{'c': item, 'j': content, **more}]})


def find(stack, field, test, v1, v2=None, item='Main'):
    condition = {'f': field, 't': test, 'v1': v1, **({} if v2 is None else {'v2': v2})}
    out = stack.op('lab', 'find', {'c': 'Page', 'i': item, 'where': [condition], 'limit': 1000})['out']
    assert 'cursor' not in out
    return out['ids']


def holds(test, value, v1, v2):
    value, v1, v2 = value.encode(), v1.encode(), v2.encode()
    low = {'g': value >= v1 if test[1:2] == 'e' else value > v1, 'l': True}[test[0]]
    high = {'e': value <= v2, 't': value < v2}[test[3]] if len(test) == 4 else True
    if test in ('lt', 'le'):
        return value < v1 if test == 'lt' else value <= v1
    return low and high


@pytest.mark.parametrize('seed', range(3))
def test_every_test_is_exact_around_the_boundary(lab, seed):
    """Equality with texts of any length; order and prefixes with texts of up to 1,024 bytes, against values of any length."""
    chance = random.Random(900 + seed)
    texts = [around(chance, FIELD_MOST) for _ in range(60)]
    texts += [text[:-1] for text in texts[:20]] + [text + chance.choice(LETTERS) for text in texts[:20]]
    texts += [stored(text) for text in texts if len(text.encode()) > FIELD_MOST][:10]
    rows = {}
    for number, text in enumerate(texts):
        rows[f's{seed}-{number:03}'] = (text, chance.sample(texts, chance.randint(0, 4)))
    for id_, (name, tags) in rows.items():
        put(lab, id_, {'name': name, 'tags': tags})
    ours = f's{seed}-'

    def check(wanted, *question):
        assert [id_ for id_ in find(lab, *question) if id_.startswith(ours)] == sorted(wanted), question

    sought = texts + [around(chance, FIELD_MOST) for _ in range(20)]
    for text in sought:
        check({id_ for id_, (name, _) in rows.items() if name == text}, 'name', 'eq', text)
        check({id_ for id_, (_, tags) in rows.items() if text in tags}, 'tags', 'eq', text)
    short = [text for text in sought if len(text.encode()) <= FIELD_MOST]
    short += [texts[0].encode()[:size].decode(errors='ignore') for size in range(FIELD_MOST - 12, FIELD_MOST + 1)]
    for text in chance.sample(short, 25):
        check({id_ for id_, (name, _) in rows.items() if name.startswith(text)}, 'name', 'sw', text)
        other = chance.choice(short)
        low, high = sorted((text, other), key=str.encode)
        for test in ('lt', 'le', 'ge', 'gt', 'gele', 'gtlt', 'gelt', 'gtle'):
            has_two = len(test) == 4
            check({id_ for id_, (name, _) in rows.items() if holds(test, name, low, high)}, 'name', test, low, *([high] if has_two else []))
    check_side(lab, 'lab', 'Page', 'Main', FIELDS)


@pytest.mark.parametrize('test', ['sw', 'lt', 'le', 'ge', 'gt', 'gele', 'gtlt'])
def test_order_and_prefixes_of_long_texts_are_refused(lab, test):
    values = ['a', 'x' * 1025][-len(test) // 2:]
    with pytest.raises(Problem) as refused:
        find(lab, 'name', test, *values)
    assert (refused.value.code, refused.value.body['args']) == ('AARG', [f'v{len(values)}'])
    assert '1,024 bytes' in refused.value.body['detail']


def test_sql_and_c_have_one_form(lab):
    chance = random.Random(7)
    for _ in range(200):
        text = around(chance, FIELD_MOST)
        assert lab.psql('lab', 'select field_text(%s), export_string(%s::json)', (text, json.dumps(text)))[0] == (stored(text),) * 2


def test_modules_and_psql_find_by_the_function(lab):
    put(lab, 'sql', {'name': 'q' * 5000})
    for value in ('q' * 5000, 'q' * 4999):
        rows = lab.psql('lab', 'select id from "item_Page_Main" where "name" = field_text(%s)', (value,))
        assert rows == ([('sql',)] if len(value) == 5000 else [])
    lab.psql('lab', 'select put_item(%s, %s, %s, %s, %s)', ('Page', 'by psql', 'Link', 'k', json.dumps({'tags': ['w' * 3000]})))
    assert find(lab, 'tags', 'eq', 'w' * 3000, item='Link') == ['by psql']


def test_cursors_go_on_with_long_values(lab):
    value = 'é' * 4000
    ids = [f'long-{number:02}' for number in range(7)]
    for id_ in ids:
        put(lab, id_, {'tags': [value]})
    param, found = {'c': 'Page', 'i': 'Main', 'where': [{'f': 'tags', 't': 'eq', 'v1': value}], 'limit': 2}, []
    while True:
        out = lab.op('lab', 'find', param)['out']
        found += out['ids']
        if 'cursor' not in out:
            break
        param['cursor'] = out['cursor']
    assert found == ids


# --- collections ---

def members(stack, name, value):
    held = Collected(name, value)
    while True:
        held.apply(stack.op('lab', 'collection', {'c': 'Page', 'collection': name, 'value': value, 'want': 'ids', **held.place()})['out'])
        if not held.cursor:
            return held


@pytest.mark.parametrize('seed', range(2))
def test_collections_of_values_of_every_length(lab, seed):
    chance = random.Random(300 + seed)
    values = [around(chance, MEMBER_MOST) for _ in range(40)]
    values += ['v' * MEMBER_MOST, 'v' * (MEMBER_MOST + 1), 'v' * 100000]
    rows = {f'm{seed}-{number:02}': {'site': value, 'tags': chance.sample(values, 3), 'name': chance.choice(values)} for number, value in enumerate(values)}
    for id_, content in rows.items():
        put(lab, id_, content)

    def check(name, value, wanted):
        assert {id_ for id_ in members(lab, name, value).members if id_.startswith(f'm{seed}-')} == wanted, value
    for value in values:
        check('site', value, {id_ for id_, content in rows.items() if content['site'] == value})
        check('tag', value, {id_ for id_, content in rows.items() if value in content['tags']})
    for content in list(rows.values())[:20]:
        pair = [content['site'], content['name']]
        check('pair', pair, {id_ for id_, other in rows.items() if [other['site'], other['name']] == pair})


def test_a_long_value_is_left_and_come_back_to(lab):
    value, other = 'u' * 700, 'u' * 701
    put(lab, 'mover', {'site': value})
    held = members(lab, 'site', value)
    assert set(held.members) == {'mover'} and not members(lab, 'site', other).members
    put(lab, 'mover', {'site': other})
    held.apply(lab.op('lab', 'collection', {'c': 'Page', 'collection': 'site', 'value': value, 'want': 'ids', 'token': held.token})['out'])
    assert not held.members and set(members(lab, 'site', other).members) == {'mover'}


def test_what_stands_for_a_long_value_is_no_value_itself(lab):
    put(lab, 'stands', {'site': 't' * 300})
    form, = lab.psql('lab', "select value from member where id = 'stands' and not has_left")[0]
    assert not {'stands'} & set(members(lab, 'site', form.rstrip()).members) | set(members(lab, 'site', form).members)


def test_a_definition_of_a_long_value_hears(lab):
    value, session = 'ü' * 300, 'session-of-long-values'
    lab.op('lab', 'subs', {'defs': [f'Page/site@{urllib.parse.quote(value)}']}, session=session)
    put(lab, 'heard', {'site': value})
    key, = lab.psql('lab', 'select key from subscription_definition where session = %s', (session,))[0]
    assert lab.psql('lab', "select count(*) from member m join collection c on c.number = m.collection where 'mPage/' || c.name || '@' || m.value = %s",
                    (key,)) == [(1,)]


def definition_of(collection, *values):
    """As a client writes it: a value by its size and digest where its text would be too long."""
    def one(value):
        octets = value.encode()
        return urllib.parse.quote(value, safe='') if len(octets) <= 255 else f'#{len(octets)}:{hashlib.sha256(octets).hexdigest()}'
    return f'Page/{collection}@' + '@'.join(one(value) for value in values)


def test_collections_of_the_longest_values_are_listened_to(lab):
    """Live and by subscription, each value by its digest; two spellings of one definition are one."""
    session = 'session-of-very-long-values'
    values = ['\u00e9' * 5000, 'x' * 256, 'y' * 300000]
    singles = [definition_of('site', value) for value in values]
    pair = definition_of('pair', values[0], 'short @ name')
    tag = definition_of('tag', values[2])
    definitions = [*singles, pair, tag]
    assert max(map(len, definitions)) < 250
    lab.op('lab', 'subs', {'defs': definitions}, session=session)
    assert sorted(lab.op('lab', 'subs', session=session)['out']['defs']) == sorted(definitions)
    literal = f'Page/site@{values[1]}'
    kept = lab.op('lab', 'subs', {'add': [literal]}, session=session)['out']['defs']
    assert literal in kept and singles[1] not in kept and len(kept) == len(definitions), 'one definition, as it was written last'
    listener = Listener(lab, *definitions)
    assert not listener.opened()
    version = put(lab, 'long-heard', {'site': values[0], 'name': 'short @ name', 'tags': [values[2]]})
    for definition in (singles[0], pair, tag):
        listener.wait_for(definition, version)
    version = put(lab, 'long-heard', {'site': values[2], 'name': 'short @ name', 'tags': []})
    for definition in (singles[0], singles[2], pair, tag):
        listener.wait_for(definition, version)
    assert singles[1] not in listener.told()
    answer = lab.op('lab', 'put', {'docs': [{'c': 'Page', 'id': 'long-own', 'items': [{'c': 'Main', 'j': {'site': values[1]}}]}]}, session=session)
    assert literal in json.dumps(answer)
    listener.close()


@pytest.mark.parametrize('value', ['#', '#x', f'#300:{"A" * 64}', f'#300:{"a" * 63}', f'#255:{"a" * 64}', f'#0300:{"a" * 64}', f'#300:{"a" * 65}',
                                   f'#-300:{"a" * 64}', f'#99999999999999999999:{"a" * 64}'])
def test_a_digest_that_no_value_has_is_refused(lab, value):
    """A subscriber that never gets anything could not see why."""
    with pytest.raises(Problem) as problem:
        lab.op('lab', 'subs', {'defs': [f'Page/site@{value}']}, session='session-of-wrong-digests')
    assert problem.value.code == 'AARG'
    with pytest.raises(Problem) as problem:
        Listener(lab, f'Page/site@{value}')
    assert problem.value.code == 'AARG'
    Listener(lab, f'Page/site@{urllib.parse.quote(value)}').close()  # as a value


def test_a_definition_that_is_too_long_is_refused_by_the_limits_name(lab):
    definition = f'Page/site@{"x" * 2100}'
    with pytest.raises(Problem) as problem:
        lab.op('lab', 'subs', {'defs': ['Page', definition]}, session='session-of-long-texts')
    assert (problem.value.code, problem.value.body['args'], problem.value.body['at']) == (
        'ALIMIT', ['limit_definition_bytes', '2048', str(len(definition))], '/param/defs/1')
    with pytest.raises(Problem) as problem:
        Listener(lab, 'Page', definition)
    assert (problem.value.code, problem.value.body['args']) == ('ALIMIT', ['limit_definition_bytes', '2048', str(len(definition))])

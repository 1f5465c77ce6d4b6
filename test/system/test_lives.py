"""Documents that end by themselves: from that minute on they are as if they were deleted, for whoever asks, though nothing was
written; what is remembered of deletions, by class.

The minutes that pass are those of a file which the server adds to its clock."""
import json

import pytest

from clock import Clock
from schema import Schemas
from stack import Problem, wait_until

pytestmark = pytest.mark.plain

CLOCK = Clock()
STACK = {'workers': 3, 'settings': CLOCK.settings}
CARD = {'items': {'Main': {'singleton': True, 'fields': {'team': 'string'}}, 'Note': {'fields': {'n': 'int'}}},
        'collections': {'team': {'key': ['Main.team'], 'mutable': True}}, 'unique': {'mail': {'key': ['Main.mail']}},
        'maxLife': 'Main.until', 'zombieDays': 30}
ROUNDS = 12  # enough to meet all workers


@pytest.fixture(scope='module')
def schemas(stack):
    schemas = Schemas(stack, stack.path)
    schemas.apply('lab', {'Card': CARD})
    with stack.keeper_stopped():  # else what has expired is deleted when a minute of the real clock begins
        yield schemas


def card(name, until, team='red', mail=None, **more):
    main = {'team': team, 'until': until, **more}
    return {'c': 'Card', 'id': name, 'items': [{'c': 'Main', 'j': {**main, 'mail': mail} if mail else main}, {'c': 'Note', 'k': 'k', 'j': {'n': 1}}]}


def collection(stack, team, token=None, **more):
    """All pages of a synchronisation: (complete, {id: version}, {ids that left}, token)."""
    members, left, param = {}, set(), {'c': 'Card', 'collection': 'team', 'value': team, 'want': 'ids', 'token': token, **more}
    complete = None
    while True:
        page = stack.op('lab', 'collection', {name: value for name, value in param.items() if value is not None})['out']
        complete = page['complete'] if complete is None else complete
        members.update(page['ids'])
        left.update(name for name, _ in page['left'])
        if 'token' in page:
            return complete, members, left, page['token']
        param['cursor'] = page['cursor']


def settled(stack, team, token):
    """A token whose next page repeats nothing: pages repeat what was written while another transaction was running."""
    def told_nothing():
        nonlocal token
        complete, members, left, token = collection(stack, team, token)
        return not complete and not members and not left
    wait_until(told_nothing, what='a synchronisation that tells nothing')
    return token


def found(stack, team):
    where = [{'f': 'team', 't': 'eq', 'v1': team}]
    ids = stack.op('lab', 'find', {'c': 'Card', 'i': 'Main', 'where': where})['out']['ids']
    items = stack.op('lab', 'find', {'c': 'Card', 'i': 'Note', 'where': [{'f': 'n', 't': 'eq', 'v1': 1}], 'want': 'items'})['out']['items']
    return ids, [item['id'] for item in items]


def rows(stack, name):
    return stack.psql('lab', "select ctime <> 0 from doc where class = 'Card' and id = %s", (name,))


def purge(stack, *words):
    return stack.admin('ns', 'purge', 'lab', *words).out


def test_a_document_that_ends_is_gone_for_whoever_asks(stack, schemas):
    version = stack.put('lab', card('gone', CLOCK.real() + 10), card('stays', CLOCK.real() + 1000))
    held = {'c': 'Card', 'id': 'gone', 'v': version, 'ct': version, 'dt': version}
    path = '/lab/doc/Card/gone'
    for _ in range(ROUNDS):
        assert stack.get('lab', ('Card', 'gone'))['v'] == version
        assert stack.op('lab', 'get', {'docs': [{'c': 'Card', 'id': 'gone', 'age': 3600}]})['out']['docs'][0]['v'] == version
    assert stack.request('GET', path, headers={'If-None-Match': f'"{version}"'}).status_code == 304
    assert found(stack, 'red') == (['gone', 'stays'], ['gone', 'stays'])
    CLOCK.set(8)
    assert stack.get('lab', ('Card', 'gone'))['v'] == version
    CLOCK.set(12)
    for _ in range(ROUNDS):  # out of no cache, not by a tolerance, and not as what has not changed
        assert stack.get('lab', ('Card', 'gone')) == {'c': 'Card', 'id': 'gone', 'v': 0, 'ct': 0, 'dt': 0, 'items': []}
        assert stack.op('lab', 'get', {'docs': [{'c': 'Card', 'id': 'gone', 'age': 3600}]})['out']['docs'][0]['v'] == 0
        assert stack.request('GET', path, headers={'If-None-Match': f'"{version}"'}).status_code == 404
        assert stack.op('lab', 'sync', {}, syncs=[held])['syncs'][0]['v'] == 0
    both = stack.op('lab', 'get', {'docs': [{'c': 'Card', 'id': 'gone'}, {'c': 'Card', 'id': 'stays'}]})['out']['docs']
    assert [document['v'] for document in both] == [0, version]
    assert found(stack, 'red') == (['stays'], ['stays'])
    assert [d['id'] for d in stack.op('lab', 'list', {'c': 'Card'})['out']['docs']] == ['stays']
    assert rows(stack, 'gone') == [(True,)]


def test_only_an_integer_is_an_end(stack, schemas):
    now = CLOCK.real()
    for number, until in enumerate((str(now - 5), [now - 5], None, True, {'a': 1}, now - 5.5, 10**30)):
        stack.put('lab', card(f'odd{number}', until, team='odd'))
    stack.put('lab', card('odd-past', now - 5, team='odd'), card('odd-zero', 0, team='odd'), card('odd-minus', -2**63, team='odd'))
    stack.put('lab', card('odd-last', 2**63 - 1, team='odd'))
    living = [f'odd{number}' for number in range(7)] + ['odd-last']
    assert found(stack, 'odd')[0] == sorted(living)
    assert set(collection(stack, 'odd')[1]) == set(living)
    for name in living + ['odd-past', 'odd-zero', 'odd-minus']:
        assert (stack.get('lab', ('Card', name))['v'] != 0) == (name in living)


def test_who_writes_to_one_that_has_ended_begins_a_new_life(stack, schemas):
    version = stack.put('lab', card('again', CLOCK.real() + 10, team='green', mail='a@x'))
    CLOCK.set(12)
    with pytest.raises(Problem, match='AVERSION'):
        stack.put('lab', {'c': 'Card', 'id': 'again', 'if': version, 'items': [{'c': 'Note', 'k': 'new', 'j': {}}]})
    with pytest.raises(Problem, match='404'):
        answer = stack.request('PATCH', '/lab/doc/Card/again', json={'items': [{'c': 'Note', 'k': 'new', 'j': {}}]})
        if answer.status_code != 200:
            raise Problem(answer)
    later = stack.put('lab', {'c': 'Card', 'id': 'again', 'if': 0, 'items': [{'c': 'Note', 'k': 'new', 'j': {'n': 2}}]})
    for _ in range(ROUNDS):
        document = stack.get('lab', ('Card', 'again'))
        assert (document['v'], document['ct'], [item.get('k') for item in document['items']]) == (later, later, ['new'])
    assert stack.psql('lab', "select key from item where class = 'Card' and id = 'again'") == [('new',)]
    assert stack.psql('lab', "select id from \"x_Card_Main\" where id = 'again'") == []
    assert stack.psql('lab', "select id from expiry where id = 'again'") == []


def test_the_end_can_be_put_off_while_it_lives(stack, schemas):
    stack.put('lab', card('longer', CLOCK.real() + 10, team='blue'))
    token = collection(stack, 'blue')[3]
    CLOCK.set(5)
    stack.put('lab', card('longer', CLOCK.real() + 100, team='blue'))
    CLOCK.set(20)
    complete, members, left, token = collection(stack, 'blue', token)
    assert (complete, set(members), left) == (False, {'longer'}, set())
    assert stack.get('lab', ('Card', 'longer'))['v'] == members['longer']
    assert collection(stack, 'blue', token)[1:3] == ({}, set())


def test_collections_tell_of_ends_that_nobody_wrote(stack, schemas):
    now = CLOCK.real()
    for number in range(6):
        stack.put('lab', card(f't{number}', now + 10 * (number + 1), team='tell'))
    complete, members, left, token = collection(stack, 'tell')
    assert (complete, len(members), left) == (True, 6, set())
    early = token = settled(stack, 'tell', token)
    CLOCK.set(22)
    complete, members, left, token = collection(stack, 'tell', token)
    assert (complete, members, left) == (False, {}, {'t0', 't1'})
    assert set(collection(stack, 'tell')[1]) == {'t2', 't3', 't4', 't5'}
    CLOCK.set(43)
    complete, members, left, token = collection(stack, 'tell', token, limit=1)
    assert (complete, members, left) == (False, {}, {'t2', 't3'})
    assert collection(stack, 'tell', early)[2] == {'t0', 't1', 't2', 't3'}
    CLOCK.set(22)  # a clock behind tells again, and misses nothing later
    token = collection(stack, 'tell', token)[3]
    CLOCK.set(43)
    assert collection(stack, 'tell', token)[2] == {'t2', 't3'}


def test_many_ends_at_once_are_told_by_the_whole_collection(stack, schemas):
    now = CLOCK.real()
    for start in range(0, 1020, 30):
        stack.put('lab', *(card(f'm{number:04}', now + 10, team='many') for number in range(start, start + 30)))
    stack.put('lab', card('m-stays', now + 1000, team='many'))
    token = collection(stack, 'many', limit=1000)[3]
    CLOCK.set(12)
    complete, members, left, token = collection(stack, 'many', token)
    assert (complete, set(members)) == (True, {'m-stays'})


def test_a_unique_value_is_free_when_its_holder_has_ended(stack, schemas):
    stack.put('lab', card('u1', CLOCK.real() + 10, team='u', mail='u@x'))
    with pytest.raises(Problem, match='AUNIQUE'):
        stack.put('lab', card('u2', CLOCK.real() + 100, team='u', mail='u@x'))
    CLOCK.set(12)
    stack.put('lab', card('u2', CLOCK.real() + 100, team='u', mail='u@x'))
    with pytest.raises(Problem, match='AUNIQUE'):
        stack.put('lab', card('u1', CLOCK.real() + 100, team='u', mail='u@x'))
    stack.put('lab', card('u1', CLOCK.real() + 100, team='u', mail='v@x'))
    assert stack.psql('lab', "select id, value from unique_value where value in ('u@x', 'v@x') order by 1") == [('u1', 'v@x'), ('u2', 'u@x')]


def test_functions_for_administrators_see_it_as_deleted(stack, schemas):
    stack.put('lab', card('sql', CLOCK.real() - 1, team='sql'), card('sql2', CLOCK.real() - 1, team='sql'))
    (version,), = stack.psql('lab', "select stampd.put_item('Card', 'sql', 'Note', 'new', '{}')")
    wait_until(lambda: stack.get('lab', ('Card', 'sql'))['ct'] == version, what='a new life')
    assert stack.psql('lab', "select key from item where class = 'Card' and id = 'sql'") == [('new',)]
    assert stack.psql('lab', "select stampd.delete_document('Card', 'sql2')") == [(None,)]


def test_purging_deletes_what_has_ended_and_forgets_by_class(stack, schemas):
    stack.put('lab', card('p1', CLOCK.real() - 1, team='p'), card('p2', CLOCK.real() + 1000, team='p'))
    first = collection(stack, 'p')[3]
    assert 'documents had ended' in purge(stack)
    assert rows(stack, 'p1') == [(False,)] and rows(stack, 'p2') == [(True,)]
    assert stack.psql('lab', "select count(*) from expiry where until <= present_minute()") == [(0,)]
    assert stack.psql('lab', "select id from \"x_Card_Main\" where id = 'p1'") == []
    assert stack.get('lab', ('Card', 'p1'))['v'] == 0
    complete, members, left, token = collection(stack, 'p', first)
    assert (complete, members, left) == (False, {}, {'p1'})
    # Deletions of 40 days ago: Card remembers 30, others are remembered as the administrator says.
    stack.put('lab', {'c': 'Other', 'id': 'o', 'items': [{'c': 'A', 'j': 1}]})
    stack.put('lab', {'c': 'Other', 'id': 'o', 'delete': True})
    old = "stamp_of(now() - interval '40 days')"
    stack.psql('lab', f"update doc set version = {old} where ctime = 0 and id in ('p1', 'o')")
    stack.psql('lab', f"update member set version = {old} where has_left and id = 'p1'")
    purge(stack)
    assert stack.psql('lab', "select id from doc where ctime = 0 and id in ('p1', 'o')") == [('o',)]
    assert stack.psql('lab', "select count(*) from member where id = 'p1'") == [(0,)]
    assert collection(stack, 'p', token)[:3] == (False, {}, set())
    complete, members, left, token = collection(stack, 'p', first)
    assert (complete, set(members)) == (True, {'p2'})
    purge(stack, '--days', '30')
    assert stack.psql('lab', "select id from doc where id = 'o'") == []


def test_an_end_declared_later_holds_for_what_is_there_and_goes_with_the_declaration(stack, schemas):
    item = {'Main': {'singleton': True, 'fields': {'a': 'int'}}}
    declared = {'Card': CARD, 'Late': {'items': item, 'collections': {'a': {'key': ['Main.a']}}}}

    def late(name, until):
        return {'c': 'Late', 'id': name, 'items': [{'c': 'Main', 'j': {'a': 1, 'until': until}}]}

    def living():
        where = [{'f': 'a', 't': 'eq', 'v1': 1}]
        members = stack.op('lab', 'collection', {'c': 'Late', 'collection': 'a', 'value': 1, 'want': 'ids'})['out']['ids']
        documents = stack.op('lab', 'get', {'docs': [{'c': 'Late', 'id': name} for name in 'xy']})['out']['docs']
        return [stack.op('lab', 'find', {'c': 'Late', 'i': 'Main', 'where': where})['out']['ids'], sorted(name for name, _ in members),
                [document['id'] for document in documents if document['v']]]

    schemas.apply('lab', declared)
    stack.put('lab', late('x', CLOCK.real() - 1), late('y', CLOCK.real() + 1000))
    token = stack.op('lab', 'collection', {'c': 'Late', 'collection': 'a', 'value': 1})['out']['token']
    assert living() == [['x', 'y']] * 3
    declared['Late']['maxLife'] = 'Main.until'
    schemas.apply('lab', declared)
    wait_until(lambda: all(living() == [['y']] * 3 for _ in range(ROUNDS)), what='the end of x')
    answer = stack.op('lab', 'collection', {'c': 'Late', 'collection': 'a', 'value': 1, 'token': token})['out']
    assert [name for name, _ in answer['left']] == ['x']
    assert 'the declaration is applied' in schemas.run('plan', 'lab')
    declared['Late']['unique'] = {'a': {'key': ['Main.a']}}
    schemas.apply('lab', declared)  # x has the value of y no more
    assert stack.psql('lab', "select id from unique_value where id in ('x', 'y')") == [('y',)]
    del declared['Late']['unique']
    del declared['Late']['maxLife']
    schemas.apply('lab', declared)
    wait_until(lambda: all(living() == [['x', 'y']] * 3 for _ in range(ROUNDS)), what='x again')
    param = {'c': 'Late', 'collection': 'a', 'value': 1, 'token': answer['token'], 'want': 'ids'}
    answer = stack.op('lab', 'collection', param)['out']
    assert not answer['complete'] and 'x' in dict(answer['ids'])
    assert stack.psql('lab', "select count(*) from expiry where class = 'Late'") == [(0,)]
    assert json.loads(schemas.run('show', 'lab', '--json'))['classes'].keys() == {'Card', 'Late'}


def test_what_was_deleted_in_the_future_waits_for_its_time(stack, schemas):
    """A clock was ahead: the floor must stay behind the clock."""
    schemas.apply('lab', {})
    stack.put('lab', {'c': 'Ahead', 'id': 'a', 'items': []})
    stack.put('lab', {'c': 'Ahead', 'id': 'a', 'delete': True})
    stack.psql('lab', "update doc set version = stamp_of(now() + interval '1 hour') where class = 'Ahead'")
    stack.psql('lab', 'select purge_zombies(991231235959999)')
    assert stack.psql('lab', "select count(*) from doc where class = 'Ahead'") == [(1,)]
    assert stack.psql('lab', 'select floor < stamp_now() from namespace') == [(True,)]

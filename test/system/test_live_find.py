"""Searches that live events follow: what events make of a page is what `find` returns, for callers with different rights, under random changes of documents, rules and
roles; equal searches are evaluated once; what one listener and one namespace may ask for is bounded."""
import contextlib
import itertools
import json
import random
import time

import psycopg2
import pytest

from listener import Listener
from schema import Schemas
from stack import PATIENCE_S, Problem, wait_until
from test_accounts import Made, bearer, configure, cookie
from test_live import live_pid
from test_live_searches import MEMORY_MOST, Crowd, resident

pytestmark = pytest.mark.plain

ROWS_MOST, SEARCHES_MOST, DIFFERENT_MOST, LISTENERS = 40, 6, 160, 1000
STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'team': 'closed', 'lab': 'open'},
         'settings': {'live_search_rows': ROWS_MOST, 'live_searches': SEARCHES_MOST, 'live_different_searches': DIFFERENT_MOST, 'live_keepalive_s': 600,
                      'limit_client_live': LISTENERS + 200, 'limit_client_connections': 0, 'limit_client_requests': 0, 'exempt_clients': ''}}
MAIN = {'singleton': True, 'fields': {'room': 'string', 'at': 'long', 'owner': 'string'}, 'indexes': [['room', '-at']]}
CLASSES = {'Post': {'items': {'Main': MAIN, 'Line': {'fields': {'n': 'int'}}}, 'collections': {'byRoom': {'key': ['Main.room'], 'mutable': True}}}}
RULES = {'Post': {'owner': 'Main.owner', 'read': ['owner', 'role:editor'], 'list': ['owner', 'role:editor']}, 'Page': {'read': ['anybody'], 'list': ['anybody']}}
PEOPLE = ['ann', 'bob', 'cem']
NEWEST = {'c': 'Post', 'i': 'Main', 'where': [{'f': 'room', 't': 'eq', 'v1': 'hall'}], 'order': ['-at'], 'want': 'items', 'limit': 5}
PUTS = itertools.count(1)


@pytest.fixture(scope='module')
def posts(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for ns in ('lab', 'team'):
        schemas.apply(ns, CLASSES)
    return stack


@pytest.fixture
def lab(posts):
    posts.clear('lab', 'Post')
    return posts


def definition(search, *followed):
    return f'find:{" ".join(followed)}{json.dumps(search)}'


class Follower(Listener):
    """A listener that keeps the page of each search as its events say."""

    def __init__(self, stack, *searches, followed=(), **more):
        self.searches, self.pages, self.stamps, self.found = searches, {}, {}, []
        super().__init__(stack, *(definition(one, *followed) for one in searches), **more)
        self.opened()

    def hear(self, name, data):
        if name == 'find':
            self.found.append(data)
            self.apply(data)
        super().hear(name, data)

    def apply(self, data):
        number = data['def']
        self.stamps[number] = data.get('stamp')
        if 'fault' in data or 'answer' in data:
            self.pages[number] = data.get('answer', data.get('fault'))
            return
        if 'rows' in data:
            self.pages[number] = [tuple(row) for row in data['rows']], data.get('more', False)
            return
        if data.keys() <= {'def', 'stamp'}:  # still so
            self.pages.setdefault(number, 'as before')
            return
        rows, more = self.pages[number] if isinstance(self.pages.get(number), tuple) else ([], False)
        gone = {tuple(one) for one in data.get('left', [])} | {tuple(one[1:3]) for one in data.get('moved', [])}
        assert gone <= {row[:2] for row in rows}
        rows = [row for row in rows if row[:2] not in gone]
        for place, *row in sorted(data.get('entered', []) + data.get('moved', [])):
            rows.insert(place, tuple(row))
        for place, *row in data.get('changed', []):
            assert rows[place][:2] == tuple(row[:2])
            rows[place] = tuple(row)
        self.pages[number] = rows, data.get('more', more)

    def is_at(self, number, page):
        return self.pages.get(number) == page

    def wait_for_page(self, number, page):
        wait_until(lambda: self.is_at(number, page), PATIENCE_S, f'page {number} {page}')


def found_by(stack, ns, search, headers=None, admin=None):
    """What the operation finds, as a follower keeps it."""
    answer = stack.http.post(f'{stack.url}/{ns}/op/find', json={'param': search, **({'admin': stack.key} if admin else {})}, headers=headers, timeout=PATIENCE_S)
    out = answer.json()['out']
    if not out.keys() & {'items', 'ids', 'docs'}:
        return out
    rows = out.get('items', out.get('docs', out.get('ids')))
    return [(row, '', 0) if isinstance(row, str) else (row['id'], row.get('k', ''), row['v']) for row in rows], 'cursor' in out


def put(stack, id_, ns='lab', lines=(), **content):
    items = [{'c': 'Main', 'j': {'put': next(PUTS), **content}}] + [{'c': 'Line', 'k': str(line), 'j': {'n': line}} for line in lines]
    return stack.put(ns, {'c': 'Post', 'id': id_, 'items': items}, admin=True)


def nobody_listens(stack):
    wait_until(lambda: stack.metrics()['stampd_live_listeners'] == 0, what='the end of all connections')


def test_a_page_is_followed(lab):
    for number in range(7):
        put(lab, f'p{number}', room='hall' if number != 3 else 'lab', at=number)
    follower = Follower(lab, NEWEST, {'c': 'Post', 'i': 'Main', 'where': NEWEST['where'], 'want': 'count'})
    follower.wait_for_page(0, found_by(lab, 'lab', NEWEST))
    follower.wait_for_page(1, {'count': 6})
    assert [row[0] for row in follower.pages[0][0]] == ['p6', 'p5', 'p4', 'p2', 'p1'] and follower.pages[0][1]

    def events_of(number):
        return [one for one in follower.found if one['def'] == number]

    v = put(lab, 'p3', room='hall', at=3)
    follower.wait_for_page(0, ([*follower.pages[0][0][:3], ('p3', '', v), follower.pages[0][0][3]], True))
    last = events_of(0)[-1]
    assert last['entered'] == [[3, 'p3', '', v]] and last['left'] == [['p1', '']] and not last.keys() & {'moved', 'changed', 'rows', 'more'}
    follower.wait_for_page(1, {'count': 7})
    v = put(lab, 'p2', room='hall', at=9)
    follower.wait_for_page(0, found_by(lab, 'lab', NEWEST))
    assert events_of(0)[-1]['moved'] == events_of(0)[-1]['changed'] == [[0, 'p2', '', v]]
    v = put(lab, 'p5', room='hall', at=5)
    follower.wait_for_page(0, found_by(lab, 'lab', NEWEST))
    assert events_of(0)[-1]['changed'] == [[2, 'p5', '', v]] and 'moved' not in events_of(0)[-1]
    lab.put('lab', {'c': 'Post', 'id': 'p6', 'delete': True}, admin=True)
    follower.wait_for_page(0, found_by(lab, 'lab', NEWEST))
    assert events_of(0)[-1]['left'] == [['p6', '']]
    assert not any(name == 'change' for name, _ in follower.events), 'what searches follow is no event of its own'
    follower.close()


KINDS = [{'want': 'ids'}, {'want': 'docs'}, {'want': ['at']}, {'want': 'count'}, {'want': {'sum': 'at', 'by': 'room'}}, {'want': 'items', 'order': 'at', 'limit': 3}]


def test_each_kind_of_answer(lab):
    for number in range(5):
        put(lab, f'p{number}', room='hall', at=number)
    searches = [{'c': 'Post', 'i': 'Main', 'where': NEWEST['where'], **kind} for kind in KINDS]
    follower = Follower(lab, *searches)
    for change in range(3):
        put(lab, f'q{change}', room='hall' if change != 1 else 'lab', at=-change)
        put(lab, 'p1', room='hall', at=1, put=f'again {change}')
        for number, search in enumerate(searches):
            follower.wait_for_page(number, found_by(lab, 'lab', search))
    follower.close()


def test_items_with_keys(lab):
    search = {'c': 'Post', 'i': 'Line', 'where': [{'f': 'n', 't': 'ge', 'v1': 2}], 'order': '-n', 'want': 'items'}
    put(lab, 'a', lines=(1, 2, 3))
    follower = Follower(lab, search, admin=True)
    follower.wait_for_page(0, found_by(lab, 'lab', search, admin=True))
    put(lab, 'b', lines=(2, 5))
    follower.wait_for_page(0, found_by(lab, 'lab', search, admin=True))
    assert [row[:2] for row in follower.pages[0][0]] == [('b', '5'), ('a', '3'), ('b', '2'), ('a', '2')]
    follower.close()


def test_a_listener_comes_again(lab):
    put(lab, 'a', room='hall', at=1)
    witness, follower = Follower(lab, NEWEST), Follower(lab, NEWEST)
    follower.wait_for_page(0, found_by(lab, 'lab', NEWEST))
    stamp = follower.stamps[0]
    follower.close()
    again = Follower(lab, NEWEST, have=[stamp])
    again.wait_for_page(0, 'as before')
    assert again.found == [{'def': 0, 'stamp': stamp}]
    again.close()
    v = put(lab, 'b', room='hall', at=2)
    witness.wait_for_page(0, found_by(lab, 'lab', NEWEST))
    again = Follower(lab, NEWEST, have=['other', stamp])
    wait_until(lambda: again.found, what='the difference')
    assert again.found == [{'def': 0, 'stamp': witness.stamps[0], 'entered': [[0, 'b', '', v]]}], 'the server remembers what another one follows'
    again.close()
    witness.close()
    nobody_listens(lab)
    again = Follower(lab, NEWEST, have=[stamp])
    again.wait_for_page(0, found_by(lab, 'lab', NEWEST))
    assert 'rows' in again.found[0], 'nobody has followed it meanwhile'
    again.close()


def test_only_what_is_followed_costs(lab):
    """A search with a collection is evaluated after changes in it alone."""
    nobody_listens(lab)
    put(lab, 'a', room='hall', at=1)
    put(lab, 'z', room='yard', at=1)
    hall, yard = Follower(lab, NEWEST, followed=['Post/byRoom@hall']), Follower(lab, {**NEWEST, 'where': [{'f': 'room', 't': 'eq', 'v1': 'yard'}]}, followed=['Post/byRoom@yard'])
    for follower in (hall, yard):
        wait_until(lambda: 0 in follower.pages, what='the first page')
    requests = lab.metrics()['stampd_requests_total']
    for number in range(20):
        put(lab, 'a', room='hall', at=number + 2)
        hall.wait_for_page(0, ([('a', '', lab.get('lab', ('Post', 'a'))['v'])], False))
    spent = lab.metrics()['stampd_requests_total'] - requests
    assert spent < 20 * 6, 'a change, a look and an evaluation of the one'
    assert len(yard.found) == 1
    hall.close()
    yard.close()



def code_of(stack, *definitions, **more):
    answer = stack.http.post(f'{stack.url}/lab/live', json={'defs': list(definitions), **more}, timeout=PATIENCE_S, stream=True)
    try:
        return (answer.json()['code'], *answer.json().get('args', [])) if answer.status_code != 200 else None
    finally:
        answer.close()


def test_what_is_refused(lab):
    assert code_of(lab, definition({**NEWEST, 'limit': ROWS_MOST + 1})) == ('ALIMIT', 'live_search_rows', str(ROWS_MOST), str(ROWS_MOST + 1))
    many = [definition({**NEWEST, 'limit': 1 + number}) for number in range(SEARCHES_MOST + 1)]
    assert code_of(lab, *many) == ('ALIMIT', 'live_searches', str(SEARCHES_MOST), str(SEARCHES_MOST + 1))
    assert code_of(lab, *many[1:]) is None
    for wrong in ('find:', 'find:{', 'find:[]', 'find:{}', definition({**NEWEST, 'cursor': 'x'}), definition(NEWEST, 'Post'), definition(NEWEST, 'Post/p1'), definition(NEWEST, 'Page/byRoom@a'),
                  definition({**NEWEST, 'c': 'post'}), 'find:' + '{"a":' * 40 + '1' + '}' * 40):
        expected = None if wrong == definition(NEWEST, 'Post') else 'AARG'
        assert (code_of(lab, wrong) or [None])[0] == expected, wrong
    assert code_of(lab, definition(NEWEST, 'Post/none@a'))[0] == 'NCOLLECTION'
    assert code_of(lab, definition(NEWEST), have=['x'] * (SEARCHES_MOST + 1))[0] == 'AARG'


def test_what_find_refuses_is_an_event(lab):
    follower = Follower(lab, {**NEWEST, 'order': 'none'}, {**NEWEST, 'where': [{'f': 'at', 't': 'eq', 'v1': 1}], 'order': 'room'}, {**NEWEST, 'surplus': 1}, NEWEST)
    wait_until(lambda: len(follower.pages) == 4, what='all answers')
    assert [follower.pages[number]['code'] for number in range(3)] == ['NFIELD', 'AINDEX', 'AARG'] and follower.pages[3] == ([], False)
    assert follower.pages[1]['args'] == ['Post', 'Main', '["at","room"]']
    follower.close()


def test_different_searches_are_bounded(lab):
    """One address has an eighth of them."""
    nobody_listens(lab)
    followers, most = [], DIFFERENT_MOST // 8 + 1
    for turn in range(most // SEARCHES_MOST):
        followers.append(Follower(lab, *({**NEWEST, 'where': [{'f': 'room', 't': 'eq', 'v1': f'{turn}.{number}'}]} for number in range(SEARCHES_MOST))))
    rest = most - len(followers) * SEARCHES_MOST
    late = Follower(lab, *({**NEWEST, 'limit': 1 + number} for number in range(rest + 1)), followers[0].searches[0])
    wait_until(lambda: len(late.pages) == rest + 2, what='all pages')
    assert late.pages[rest] == {'code': 'XCROWDED', 'args': ['live_different_searches', str(DIFFERENT_MOST)]}
    assert all(late.pages[number] == ([], False) for number in (*range(rest), rest + 1)), 'one that others follow costs no room'
    for follower in (*followers, late):
        follower.close()
    nobody_listens(lab)
    again = Follower(lab, *late.searches)
    wait_until(lambda: len(again.pages) == rest + 2, what='all pages')
    assert all(page == ([], False) for page in again.pages.values()), 'what nobody follows any more has made room'
    again.close()


def test_one_that_rests_long_keeps_no_other_waiting(lab):
    """An evaluation that took long is followed by a rest ten times as long; what another search finds is sent meanwhile."""
    every = {'c': 'Post', 'i': 'Main', 'want': 'items', 'limit': 7}
    quick = Follower(lab, NEWEST, followed=['Post/byRoom@hall'], admin=True)
    wait_until(lambda: quick.pages == {0: ([], False)}, what='the page of the quick one')
    with contextlib.closing(psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd')) as holder:
        holder.cursor().execute('lock table "x_Post_Main" in access exclusive mode')
        slow = Follower(lab, every, followed=['Post'], admin=True)
        wait_until(lambda: lab.psql(None, "select 1 from pg_stat_activity where usename = 'stampd' and wait_event_type = 'Lock'"), what='the evaluation')
        time.sleep(3)
    wait_until(lambda: slow.pages == {0: ([], False)}, what='the page of the slow one')
    put(lab, 'a', room='other', at=1)  # the slow one waits for its turn from now on
    for turn in range(2):
        put(lab, f'b{turn}', room='hall', at=turn)
        quick.wait_for_page(0, found_by(lab, 'lab', NEWEST))
    assert slow.pages == {0: ([], False)}, 'it rests'
    for follower in (quick, slow):
        follower.close()


def test_what_searches_of_one_client_find_is_bounded(lab):
    """An eighth of live_memory_mb is all that its connections and what their searches find may take; a page that was given up comes when there is room."""
    nobody_listens(lab)
    lab.set(live_memory_mb=1)
    try:
        wide = [{**NEWEST, 'where': [*NEWEST['where'], {'f': 'at', 't': 'ge', 'v1': -number}], 'limit': ROWS_MOST} for number in range(3 * SEARCHES_MOST)]
        followers = [Follower(lab, *wide[first:first + SEARCHES_MOST]) for first in range(0, len(wide), SEARCHES_MOST)]
        pages = [(follower.pages, number) for follower in followers for number in range(SEARCHES_MOST)]
        wait_until(lambda: all(found.get(number) == ([], False) for found, number in pages), what='all pages')
        lab.put('lab', *({'c': 'Post', 'id': f'{number:02}'.ljust(255, 'x'), 'items': [{'c': 'Main', 'j': {'room': 'hall', 'at': number}}]} for number in range(32)), admin=True)
        wait_until(lambda: all(found[number] != ([], False) for found, number in pages), what='an answer to each')
        full = [found[number] for found, number in pages if not isinstance(found[number], tuple)]
        assert 0 < len(full) < len(pages) and all(fault == {'code': 'XCROWDED', 'args': ['live_memory_mb', '1']} for fault in full)
        last = next(follower for follower in followers if any(not isinstance(page, tuple) for page in follower.pages.values()))
        for follower in followers:
            if follower is not last:
                follower.close()
        wait_until(lambda: lab.metrics()['stampd_live_listeners'] == 1, what='the end of the other connections')
        put(lab, 'y', room='hall', at=1)
        for number, search in enumerate(last.searches):
            last.wait_for_page(number, found_by(lab, 'lab', search))
        last.close()
    finally:
        lab.set(live_memory_mb=256)


class World:
    """Posts of owners, accounts with roles, and rules, all of which change at random; what each caller follows."""

    def __init__(self, stack, chance):
        self.stack, self.chance = stack, chance
        configure(stack, 'team', access='rules', accounts={'registration': 'closed'}, rules=RULES)
        stack.clear('team', 'Post')
        self.accounts = {name: Made(stack) for name in PEOPLE}
        self.roles = dict.fromkeys(PEOPLE, False)

    def headers(self, name):
        return bearer(self.accounts[name].token) if name else None

    def change(self):
        chance = self.chance
        kind = chance.random()
        id_ = f'p{chance.randrange(12)}'
        if kind < 0.75:
            put(self.stack, id_, 'team', room=chance.choice(['hall', 'hall', 'lab']), at=chance.randrange(6), owner=self.accounts[chance.choice(PEOPLE)].id)
        elif kind < 0.85:
            self.stack.put('team', {'c': 'Post', 'id': id_, 'delete': True}, admin=True)
        elif kind < 0.95:
            name = chance.choice(PEOPLE)
            self.roles[name] = not self.roles[name]
            self.accounts[name].set({'c': 'Self', 'j': {'created': 1, 'roles': ['editor'] if self.roles[name] else []}})
        else:
            rules = json.loads(json.dumps(RULES))
            if chance.random() < 0.5:
                rules['Post']['read'] = rules['Post']['list'] = ['account']
            configure(self.stack, 'team', access='rules', accounts={'registration': 'closed'}, rules=rules)


SEARCHES = [NEWEST, {'c': 'Post', 'i': 'Main', 'where': [{'f': 'at', 't': 'ge', 'v1': 2}], 'order': '-at', 'want': 'items', 'limit': 4}, {'c': 'Post', 'i': 'Main', 'where': [{'f': 'room', 't': 'eq', 'v1': 'lab'}], 'want': 'ids'},
            {'c': 'Post', 'i': 'Main', 'where': [{'or': [{'f': 'room', 't': 'eq', 'v1': 'lab'}, {'f': 'at', 't': 'lt', 'v1': 2}]}], 'want': 'docs', 'limit': 6}]


@pytest.mark.parametrize('seed', [7, pytest.param(8, marks=pytest.mark.again)])
def test_events_agree_with_find(posts, seed):
    chance = random.Random(seed)
    world = World(posts, chance)
    callers = [None, *PEOPLE, 'ann']
    followers = [Follower(posts, *SEARCHES, ns='team', headers=world.headers(name)) for name in callers]
    for _ in range(25):
        for _ in range(chance.randrange(1, 4)):
            world.change()
        for name, follower in zip(callers, followers):
            for number, search in enumerate(SEARCHES):
                answer = posts.http.post(f'{posts.url}/team/op/find', json={'param': search}, headers=world.headers(name), timeout=PATIENCE_S)
                expected = found_by(posts, 'team', search, world.headers(name)) if answer.status_code == 200 else answer.json()['code']
                wait_until(lambda: (follower.pages[number]['code'] if isinstance(follower.pages.get(number), dict) else follower.pages.get(number)) == expected, PATIENCE_S,
                           f'{name}: search {number}: {expected}, not {follower.pages.get(number)}')
    kinds = {kind for follower in followers for one in follower.found for kind in one}
    assert kinds >= {'rows', 'entered', 'left', 'changed'}, 'all of it has happened'
    for follower in followers:
        assert follower.is_open
        follower.close()


def test_a_session_that_ends_leaves_others_their_events(posts):
    """Two sessions of one account share a search; the one by which a worker was asked ends."""
    world = World(posts, random.Random(1))
    ann = world.accounts['ann']
    other = Made(posts)
    put(posts, 'p', 'team', room='hall', at=1, owner=ann.id)
    first = Follower(posts, NEWEST, ns='team', headers=world.headers('ann'))
    first.wait_for_page(0, found_by(posts, 'team', NEWEST, world.headers('ann')))
    stranger = Follower(posts, NEWEST, ns='team', headers=cookie('team', other.token))
    wait_until(lambda: 0 in stranger.pages, what='the page of a stranger')
    assert stranger.pages[0] == ([], False) and stranger.stamps[0] != first.stamps[0]
    put(posts, 'q', 'team', room='hall', at=2, owner=other.id)
    stranger.wait_for_page(0, found_by(posts, 'team', NEWEST, bearer(other.token)))
    posts.put('team', {'c': 'Account', 'id': ann.id, 'items': [{'c': 'Sess', 'k': ann.session, 'del': True}]}, admin=True)
    wait_until(lambda: not first.is_open, what='the end of the session')
    v = put(posts, 'q', 'team', room='hall', at=3, owner=other.id)
    stranger.wait_for_page(0, ([('q', '', v)], False))
    assert {row[0] for row in first.pages[0][0]} == {'p'} and {one for data in stranger.found for rows in (data.get('rows', []), data.get('entered', [])) for one in map(tuple, rows) if 'p' in one} == set()
    stranger.close()


def test_a_thousand_listeners_of_one_search(lab):
    """They cost one evaluation for a change, and each some kilobytes."""
    nobody_listens(lab)
    put(lab, 'a', room='hall', at=1)
    pid = live_pid(lab)
    before = resident(pid)
    crowd = Crowd(lab, [definition(NEWEST)] * LISTENERS)

    def pages():
        crowd.read()
        return [text.count(b'event: find') for text in crowd.texts]
    try:
        wait_until(lambda: all(pages()), PATIENCE_S, 'the first page of each')
        assert resident(pid) - before < LISTENERS * MEMORY_MOST
        requests, turns = lab.metrics()['stampd_requests_total'], 10
        for turn in range(turns):
            v = put(lab, 'b', room='hall', at=turn)
            wait_until(lambda: pages() and all(f'"b","",{v}]'.encode() in text for text in crowd.texts), PATIENCE_S, 'the event of each')
        assert lab.metrics()['stampd_requests_total'] - requests < turns * 10, 'not one for each listener'
    finally:
        crowd.close()

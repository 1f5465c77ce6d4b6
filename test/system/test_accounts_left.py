"""Accounts that are deleted, with what belongs to them: which documents and memberships end, and that nothing of anybody else does."""
import datetime
import itertools
import json
import random
import threading

import pytest

from clock import Clock
from manager import PARKED, Manager
from schema import Schemas
from stack import Problem, refused, wait_until

pytestmark = pytest.mark.plain

CLOCK = Clock()
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'club': 'closed'},
         'settings': {**CLOCK.settings, 'limit_client_attempts': 10000, 'limit_documents': 8, 'argon2_share': 100}}
PASSWORD = 'correct horse battery staple'
RULES = {
    'Bag': {'owner': 'Info.owner', 'on_owner_deleted': 'delete', 'members': 'Share', 'read': ['owner', 'members'], 'list': ['owner', 'members'],
            'create': ['owner'], 'update': ['owner'], 'delete': ['owner']},
    'Crew': {'members': 'Member', 'read': ['members'], 'create': ['members'], 'update': ['members']},
    'Plan': {'team': {'class': 'Crew', 'id': 'Info.team', 'members': 'Guest'}, 'owner': 'Info.owner', 'on_owner_deleted': 'keep', 'members': 'Share',
             'read': ['owner', 'team'], 'create': ['owner'], 'update': ['owner']},
    'Post': {'owner': 'Info.owner', 'read': ['anybody'], 'list': ['anybody'], 'create': ['owner'], 'update': ['owner']},
}
ACCOUNTS = {'registration': 'open', 'anonymous': True}
NUMBERS = itertools.count(1)
DAY = 1440


@pytest.fixture(scope='module')
def team(stack):
    for ns in ('team', 'club'):
        stack.op('z', 'ns', {'set': {'ns': ns, 'access': 'rules', 'rules': RULES, 'accounts': ACCOUNTS}}, admin=True)
    return stack


@pytest.fixture(autouse=True)
def empty(team):
    settle(team)
    for ns in ('team', 'club'):
        for c, id_ in documents(team, ns):
            team.put(ns, {'c': c, 'id': id_, 'delete': True}, admin=True)


class Person:
    """An account; without a name an anonymous one."""

    def __init__(self, stack, ns='team', name=''):
        self.stack, self.ns = stack, ns
        self.name = name or f'person-{next(NUMBERS)}'
        made = self.ask('register', {} if name is None else {'name': self.name, 'password': PASSWORD})
        self.id, self.token = made['account'], made['token']

    def ask(self, operation, param=None):
        headers = {'Authorization': f'Bearer {self.token}'} if hasattr(self, 'token') else {}
        answer = self.stack.http.post(f'{self.stack.url}/{self.ns}/op/{operation}', json={'param': param or {}}, headers=headers, timeout=60)
        if answer.status_code >= 400:
            raise Problem(answer)
        return answer.json()['out']

    def delete(self):
        return self.ask('account', {'delete': True, 'password': PASSWORD})


def put(stack, c, id_, *items, ns='team'):
    stack.put(ns, {'c': c, 'id': id_, 'items': list(items)}, admin=True)


def owned(c, id_, owner, *items):
    return c, id_, {'c': 'Info', 'j': {'owner': owner}}, *items


def member(person, c='Share', **content):
    return {'c': c, 'k': getattr(person, 'id', person), 'j': content}


def documents(stack, ns='team'):
    """Each living document but those of the server, with the names of its items."""
    rows = stack.psql(ns, "select d.class, d.id, array_agg(i.iclass || ' ' || i.key order by i.iclass, i.key) filter (where i.content is not null) "
                          "from doc d left join item i using (class, id) where d.ctime <> 0 "
                          "and d.class not in ('Account', 'Login', 'Ticket', 'Issuer') group by 1, 2")
    return {(c, id_): items for c, id_, items in rows}


def left(stack, ns='team'):
    return {row[0] for row in stack.psql(ns, "select substr(id, 6) from doc where class = 'Ticket' and id like 'left %' and ctime <> 0")}


def tasks(stack, ns='team'):
    return [row[0] for row in stack.psql(ns, "select taskid from taskqueue where opname = 'accountclean' and startat < %s", (PARKED,))]


BEGUN = {'until': 0, 'rules': -1, 'deleted': 0, 'changed': 0, 'over': False, 'last': '', 'class': '', 'id': ''}  # a walk


def hurry(stack, ns='team'):
    """What waits may start now, and a walk serves all accounts that are deleted now: none has a request that is still under way."""
    Manager(stack, ns).hurry()
    ((now,),) = stack.psql(ns, 'select stamp_now()')
    stack.psql(ns, "update taskqueue set checkpoint = %s where opname = 'accountclean' and starttime is null and checkpoint is null", (json.dumps({**BEGUN, 'until': now}),))


def settle(stack, ns='team', meanwhile=lambda: None, hurried=hurry):
    """Runs the walks until none is left to do."""
    manager = Manager(stack, ns)

    def run():
        hurried(stack, ns)
        for taskid in manager.due():
            manager.post(taskid)
        assert not stack.psql(ns, "select exc from taskqueue where opname = 'accountclean' and startat >= %s", (PARKED,))
        meanwhile()
        return not left(stack, ns) and not tasks(stack, ns)

    wait_until(run, what='the end of all walks')


def test_what_belongs_to_a_deleted_account_ends_with_it(team):
    ann, bob = Person(team), Person(team)
    put(team, *owned('Bag', 'ann', ann.id, member(bob)))
    put(team, *owned('Bag', 'bob', bob.id, member(ann), member(bob)))
    put(team, *owned('Post', 'ann', ann.id))
    put(team, *owned('Plan', 'ann', ann.id, member(ann), member(bob)))
    put(team, 'Crew', 'red', member(ann, 'Member', role='chief'), member(bob, 'Member'), member(ann, 'Guest'), member(bob, 'Guest'), member(ann, 'Other'))
    put(team, 'Crew', 'blue', member(bob, 'Member'))
    before = team.get('team', ('Crew', 'blue'), admin=True)
    assert ann.delete() == {'deleted': True}
    assert left(team) == {ann.id} and len(tasks(team)) == 1
    assert ('Bag', 'ann') in documents(team), 'later, by a task'
    team.set(limit_operation_s=1)  # for so long, and two seconds, the walk waits for what may be under way
    settle(team, hurried=lambda stack, ns: Manager(stack, ns).hurry())
    team.set(limit_operation_s=60)
    assert documents(team) == {
        ('Bag', 'bob'): ['Info ', f'Share {bob.id}'], ('Post', 'ann'): ['Info '], ('Plan', 'ann'): ['Info ', f'Share {bob.id}'],
        ('Crew', 'red'): sorted([f'Guest {bob.id}', f'Member {bob.id}', f'Other {ann.id}']), ('Crew', 'blue'): [f'Member {bob.id}']}
    assert team.get('team', ('Crew', 'blue'), admin=True) == before, 'no document is written without need'


def near(id_):
    """Names that are not this account."""
    return [id_[:-1], id_ + 'x', id_.swapcase(), f' {id_}', f'{id_} ', f'left {id_}', 'o:' + id_, id_[::-1]]


def test_nothing_of_anybody_else_ends(team):
    """Names that are nearly the deleted account, at every place; the same names in another namespace, of other classes and items."""
    ann, bob = Person(team), Person(team)
    kept = {}
    for number, name in enumerate([*near(ann.id), bob.id]):
        put(team, *owned('Bag', f'near{number}', name, member(name)))
        put(team, 'Crew', f'near{number}', member(name, 'Member'), member(name, 'Guest'))
    for number, info in enumerate([{'owner': [ann.id]}, {'owner': {'id': ann.id}}, {'owner': None}, {'owner': 7}, {'Owner': ann.id}, {'a': {'owner': ann.id}}, [ann.id]]):
        put(team, 'Bag', f'odd{number}', {'c': 'Info', 'j': info}, {'c': 'Info2', 'j': {'owner': ann.id}}, {'c': 'Info', 'k': 'a', 'j': {'owner': ann.id}})
    put(team, *owned('Bag', ann.id, bob.id, member(ann, 'Other')))
    put(team, *owned('Free', 'ann', ann.id, member(ann)))
    put(team, *owned('Bag', 'ann', ann.id, member(ann)), ns='club')
    kept, club = documents(team), documents(team, 'club')
    versions = team.psql('team', "select class, id, version from doc where class in ('Bag', 'Crew', 'Free') order by 1, 2")
    put(team, *owned('Bag', 'zz', ann.id))
    ann.delete()
    settle(team)
    assert documents(team) == kept and documents(team, 'club') == club
    assert team.psql('team', "select class, id, version from doc where class in ('Bag', 'Crew', 'Free') and id <> 'zz' order by 1, 2") == versions


def test_one_walk_serves_all(team):
    people, keeper = [Person(team) for _ in range(5)], Person(team)
    for number in range(30):
        put(team, *owned('Bag', f'{number:03}', people[number % 5].id, *(member(person) for person in people)))
        put(team, *owned('Bag', f'k{number:03}', keeper.id, *(member(person) for person in people)))
    for person in people:
        person.delete()
    assert len(tasks(team)) == 1 and left(team) == {person.id for person in people}
    settle(team)
    assert documents(team) == {('Bag', f'k{number:03}'): ['Info '] for number in range(30)}


def test_a_walk_survives_the_death_of_workers(team):
    ann, bob = Person(team), Person(team)
    for number in range(60):
        put(team, *owned('Bag', f'{number:03}', (ann if number % 2 else bob).id, member(ann), member(bob)))
    ann.delete()
    deaths = []

    def kill():
        now = len(documents(team))
        if len(deaths) < 4 and (not deaths or now < 60):
            deaths.append(now)
            team.kill_worker()

    with_queue = Manager(team, 'team')
    with_queue.work(threads=2, until=lambda: len(deaths) == 4 and not left(team), meanwhile=lambda: hurry(team) or kill())
    settle(team)
    assert len(deaths) == 4
    assert documents(team) == {('Bag', f'{number:03}'): ['Info ', f'Share {bob.id}'] for number in range(0, 60, 2)}


def test_a_document_that_is_given_away_meanwhile_is_kept(team):
    """The commit decides by the newest document: whoever was given it keeps it."""
    ann, bob = Person(team), Person(team)
    ids = [f'{number:03}' for number in range(60)]
    for id_ in ids:
        put(team, *owned('Bag', id_, ann.id, {'c': 'Text', 'j': id_}))
    ann.delete()
    given, order, is_over = set(), random.Random(12).sample(ids, len(ids)), threading.Event()

    def give():
        while len(documents(team)) == len(ids) and not is_over.is_set():
            pass  # the walk has not begun
        for id_ in order[:len(order) // 2]:
            try:
                team.put('team', {'c': 'Bag', 'id': id_, 'items': [{'c': 'Info', 'j': {'owner': bob.id}}]}, admin=True)
                given.add(id_)
            except Problem:
                given.add(None)  # its end is not known

    giver = threading.Thread(target=give)
    giver.start()
    settle(team)
    is_over.set()
    giver.join()
    assert None not in given and set(documents(team)) == {('Bag', id_) for id_ in given}


def continue_walk(stack, **checkpoint):
    """The walk that waits has come so far; runs it."""
    checkpoint = {**BEGUN, 'rules': 1, **checkpoint}
    stack.psql('team', "update taskqueue set checkpoint = %s where opname = 'accountclean'", (json.dumps(checkpoint),))
    Manager(stack, 'team').hurry()
    (taskid,) = tasks(stack)
    return Manager(stack, 'team').run(taskid)['result']


def version_of(stack, person):
    return stack.psql('team', "select version from doc where class = 'Ticket' and id = %s", (f'left {person.id}',))[0][0]


def test_a_walk_serves_those_that_were_deleted_before_it(team):
    ann, bob = Person(team), Person(team)
    for person in (ann, bob):
        put(team, *owned('Bag', person.id, person.id, member(ann), member(bob)))
    ann.delete()
    bob.delete()
    assert continue_walk(team, until=version_of(team, ann)) == 'done'
    assert documents(team) == {('Bag', bob.id): ['Info ', f'Share {bob.id}']}
    assert left(team) == {bob.id} and len(tasks(team)) == 1, 'the next walk is planned'
    settle(team)
    assert documents(team) == {}


def test_other_rules_begin_the_walk_again(team):
    """It was over all documents, by rules that are no longer those."""
    ann = Person(team)
    put(team, *owned('Bag', 'ann', ann.id))
    ann.delete()
    assert continue_walk(team, until=version_of(team, ann), over=True, last=f'left {ann.id}') == 'done'
    assert documents(team) == {} and not left(team)


def test_the_bytes_of_a_deleted_account(team):
    """They count for its id until its documents are deleted; those that are kept count on."""
    rules = {**RULES, 'Bag': {**RULES['Bag'], 'members': 'Other'}}
    rules = {name: class_ for name, class_ in rules.items() if name in ('Bag', 'Post')}

    def counted():
        return {account: int(size) for account, size in team.psql('team', 'select account, bytes from account_bytes where bytes <> 0')}

    team.op('z', 'ns', {'set': {'ns': 'team', 'rules': rules, 'quotas': {'account': {'bytes': 100000}}}}, admin=True)
    try:
        ann, bob = Person(team), Person(team)
        for number in range(20):
            put(team, *owned('Bag', f'{number:03}', ann.id, {'c': 'Text', 'j': 'x' * 100}))
        put(team, *owned('Post', 'ann', ann.id))
        put(team, *owned('Bag', 'bob', bob.id))
        sizes = {(c, id_): int(size) for c, id_, size in team.psql('team', "select class, id, v1 from doc where class in ('Bag', 'Post') and ctime <> 0")}
        before = counted()
        assert before == {bob.id: sizes['Bag', 'bob'], ann.id: sum(sizes.values()) - sizes['Bag', 'bob']}
        ann.delete()
        assert counted() == before
        settle(team)
        assert counted() == {bob.id: sizes['Bag', 'bob'], ann.id: sizes['Post', 'ann']}
    finally:
        team.op('z', 'ns', {'set': {'ns': 'team', 'rules': RULES, 'quotas': None}}, admin=True)


def test_copies_end_with_the_items_of_a_deleted_account(team):
    """Of a document that is deleted, and of a membership that is removed."""
    copied = {'copies': {'to': ['Board'], 'separator': '@@'}}
    Schemas(team, None).apply('club', {'Bag': {'items': {'Info': {'singleton': True}, 'Text': {'singleton': True, **copied}, 'Share': copied}}, 'Board': {'open': True, 'items': {}}})
    ann, bob = Person(team, 'club'), Person(team, 'club')
    for person in (ann, bob):
        put(team, *owned('Bag', person.id, person.id, {'c': 'Text', 'j': 'hers'}, member(ann), member(bob)), ns='club')
        put(team, 'Board', person.id, {'c': 'Text', 'k': person.id, 'j': 'hers'}, *(member(f'{one.id}@@{person.id}') for one in (ann, bob)), ns='club')
    ann.delete()
    settle(team, 'club')
    Manager(team, 'club').work()
    assert documents(team, 'club') == {('Bag', bob.id): ['Info ', f'Share {bob.id}', 'Text '], ('Board', ann.id): None,
                                       ('Board', bob.id): [f'Share {bob.id}@@{bob.id}', f'Text {bob.id}']}


@pytest.mark.parametrize('rules', [None, {'Bag': {'owner': 7, 'on_owner_deleted': 'delete'}}])
def test_without_rules_nothing_ends(team, rules):
    """None, or malformed ones that were written past the check: the walk ends, and is not done again."""
    ann = Person(team)
    put(team, *owned('Bag', 'ann', ann.id, member(ann)))
    before = documents(team)
    try:
        team.write_configuration('team', 'Rules', json.dumps(rules) if rules else None)
        ann.delete()
        settle(team)
    finally:
        team.op('z', 'ns', {'set': {'ns': 'team', 'rules': RULES}}, admin=True)
    settle(team)
    assert documents(team) == before and not left(team)


@pytest.mark.parametrize('way', ['account', 'administrator'])
def test_a_deleted_account_is_refused_on_every_way(team, way):
    ann = Person(team)
    put(team, *owned('Bag', 'ann', ann.id))
    assert ann.ask('get', {'docs': [{'c': 'Bag', 'id': 'ann'}]})['docs'][0]['v']
    if way == 'account':
        ann.delete()
    else:
        team.op('team', 'accounts', {'delete': ann.id}, admin=True)
    for operation, param in {'get': {'docs': [{'c': 'Bag', 'id': 'ann'}]}, 'list': {'c': 'Bag'}, 'account': {}, 'sessions': {}, 'logout': {}, 'tasks': {},
                             'put': {'docs': [{'c': 'Bag', 'id': 'new', 'items': [{'c': 'Info', 'j': {'owner': ann.id}}]}]}, 'subs': {}}.items():
        refused('SKEY', ann.ask, operation, param, status=401)
    refused('SKEY', Person.ask, type('Nobody', (), {'stack': team, 'ns': 'team'})(), 'login', {'name': ann.name, 'password': PASSWORD})
    settle(team)
    assert documents(team) == {}


def test_a_converted_account_keeps_what_it_owns(team):
    ann = Person(team, name=None)
    put(team, *owned('Bag', 'ann', ann.id, member(ann)))
    before = documents(team)
    ann.ask('account', {'set': {'name': f'converted-{ann.id}', 'password': PASSWORD}})
    assert documents(team) == before and not left(team)
    assert ann.ask('get', {'docs': [{'c': 'Bag', 'id': 'ann'}]})['docs'][0]['v']
    ann.delete()
    settle(team)
    assert documents(team) == {}


def test_only_the_server_plans_the_walk(team):
    for operation in ('accountclean', 'accountend', 'accountsweep'):
        refused('NOPERATION', team.op, 'team', operation, {}, admin=True)
        refused('NOPERATION', team.op, 'team', 'task', {'op': operation, 'param': {}}, admin=True)
        refused('SCLOSED', team.op, 'team', operation)


# --- anonymous accounts that are not used ---

@pytest.fixture
def bounded(team):
    configure(team, session_days=1, anonymous_days=2)
    sweep(team, 2)
    yield team
    CLOCK.set(0)
    configure(team)
    sweep(team, 0)


def configure(stack, **accounts):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': {**ACCOUNTS, **accounts}}}, admin=True)


def ends(stack):
    """The accounts whose end is planned, with the days until then."""
    rows = stack.psql('team', "select param::json->>'account', startat, stamp_now() from taskqueue where opname = 'accountend' and startat < %s", (PARKED,))
    return {id_: round((at(start) - at(now)) / datetime.timedelta(days=1)) for id_, start, now in rows}


def at(stamp):
    return datetime.datetime.strptime(str(stamp)[:12], '%y%m%d%H%M%S')


def look(stack, days):
    """Has each task look, so many days later."""
    CLOCK.set(round(days * DAY))
    settle(stack)
    assert not stack.psql('team', "select exc from taskqueue where opname = 'accountend' and startat >= %s", (PARKED,))


def exists(stack, id_):
    return stack.psql('team', "select 1 from doc where class = 'Account' and id = %s and ctime <> 0", (id_,)) == [(1,)]


def test_an_anonymous_account_that_is_not_used_ends(bounded):
    ann, bob = Person(bounded, name=None), Person(bounded)
    put(bounded, *owned('Bag', 'ann', ann.id, member(bob)))
    put(bounded, *owned('Bag', 'bob', bob.id, member(ann)))
    assert ends(bounded) == {ann.id: 3}, 'two days after the end of the session'
    ann.ask('account')
    look(bounded, 2.99)
    assert exists(bounded, ann.id) and ends(bounded) == {ann.id: 3}
    look(bounded, 3.01)
    assert not exists(bounded, ann.id) and ends(bounded) == {}
    assert exists(bounded, bob.id) and documents(bounded) == {('Bag', 'bob'): ['Info ']}


def test_an_account_that_was_converted_does_not_end(bounded):
    ann, bob = Person(bounded, name=None), Person(bounded, name=None)
    ann.ask('account', {'set': {'name': f'converted-{ann.id}', 'password': PASSWORD}})
    bob.ask('account', {'set': {'address': 'bob@example.org'}})
    bounded.op('team', 'accounts', {'set': {'account': bob.id, 'confirmed': True}}, admin=True)
    look(bounded, 10)
    assert exists(bounded, ann.id) and exists(bounded, bob.id) and ends(bounded) == {}


def test_a_logout_is_the_last_use(bounded):
    ann = Person(bounded, name=None)
    ann.ask('logout')
    look(bounded, 1.99)
    assert exists(bounded, ann.id) and ends(bounded) == {ann.id: 2}
    look(bounded, 2.01)
    assert not exists(bounded, ann.id)


def test_the_configuration_of_then_decides(bounded):
    ann, bob = Person(bounded, name=None), Person(bounded, name=None)
    configure(bounded, session_days=1, anonymous_days=20)
    look(bounded, 4)
    assert ends(bounded) == {ann.id: 21, bob.id: 21}
    configure(bounded, session_days=1, anonymous_days=0)
    look(bounded, 40)
    assert exists(bounded, ann.id) and exists(bounded, bob.id) and ends(bounded) == {}
    CLOCK.set(0)
    carl = Person(bounded, name=None)
    assert exists(bounded, carl.id) and ends(bounded) == {}


def test_service_keys_do_not_end(bounded):
    """Their accounts have no name: nothing plans their end, and a task that were there would keep them."""
    key = bounded.op('team', 'accounts', {'key': {'label': 'a script'}}, admin=True)['out']['account']
    assert key not in ends(bounded)
    Person(bounded, name=None)
    bounded.psql('team', "update taskqueue set param = jsonb_build_object('account', %s::text)::text where opname = 'accountend'", (key,))
    look(bounded, 10)
    assert exists(bounded, key) and ends(bounded) == {}


def recorded(stack):
    """By which number of days all accounts were visited."""
    rows = stack.psql('team', "select content from item join doc using (class, id) where class = 'Ticket' and id = 'ends' and iclass = 'Days' and ctime <> 0")
    return int(rows[0][0]) if rows else 0


def sweep(stack, days, meanwhile=lambda: None):
    """Has scans and their tasks come to this number."""
    wait_until(lambda: settle(stack) or meanwhile() or recorded(stack) == days, what=f'a visit by {days} days')
    assert not stack.psql('team', "select exc from taskqueue where opname in ('accountend', 'accountsweep') and startat >= %s", (PARKED,))


def test_accounts_that_were_there_before_end_too(team):
    """Those whose last session began while nothing bounded them; with another number of days they have another end."""
    configure(team, session_days=1)
    sweep(team, 0)
    people = [Person(team, name=None) for _ in range(40)]
    named, confirmed = Person(team), Person(team, name=None)
    confirmed.ask('account', {'set': {'address': 'eve@example.org'}})
    team.op('team', 'accounts', {'set': {'account': confirmed.id, 'confirmed': True}}, admin=True)
    key = team.op('team', 'accounts', {'key': {'label': 'a script'}}, admin=True)['out']['account']
    put(team, *owned('Bag', 'ann', people[0].id))
    mine = {person.id for person in people}

    def planned():
        return {id_: days for id_, days in ends(team).items() if id_ in mine}

    assert planned() == {}
    try:
        for days in (2, 9, 5):
            configure(team, session_days=1, anonymous_days=days)
            sweep(team, days)
            assert planned() == dict.fromkeys(mine, days + 1)
            assert not {named.id, confirmed.id, key} & set(ends(team))
        look(team, 6.01)
        assert not any(exists(team, id_) for id_ in mine) and documents(team) == {}
        assert all(exists(team, id_) for id_ in (named.id, confirmed.id, key))
    finally:
        CLOCK.set(0)
        configure(team)
    sweep(team, 0)


def test_a_visit_of_all_accounts_survives_the_death_of_workers(team):
    configure(team, session_days=1)
    sweep(team, 0)
    mine = {Person(team, name=None).id for _ in range(40)}
    deaths = []
    try:
        configure(team, session_days=1, anonymous_days=3)

        def kill():
            if len(deaths) < 3:
                deaths.append(team.kill_worker())

        queue = Manager(team, 'team')
        queue.work(threads=2, until=lambda: len(deaths) == 3 and recorded(team) == 3, meanwhile=kill)
        assert {id_: days for id_, days in ends(team).items() if id_ in mine} == dict.fromkeys(mine, 4)
    finally:
        configure(team)
    sweep(team, 0)


def test_the_ends_of_many_survive_the_death_of_workers(bounded):
    people = [Person(bounded, name=None) for _ in range(24)]
    for person in people:
        put(bounded, *owned('Bag', person.id, person.id))
    people[7].ask('account', {'set': {'name': f'converted-{people[7].id}', 'password': PASSWORD}})
    CLOCK.set(4 * DAY)
    queue, deaths = Manager(bounded, 'team'), []

    def kill():
        queue.hurry()
        if len(deaths) < 3:
            deaths.append(bounded.kill_worker())

    queue.work(threads=2, until=lambda: len(deaths) == 3 and not ends(bounded), meanwhile=kill)
    settle(bounded)
    assert len(deaths) == 3
    assert {person.id for person in people if exists(bounded, person.id)} == {people[7].id} == {id_ for _, id_ in documents(bounded)}


@pytest.mark.parametrize('days', [-1, 3651, 1.5, '7', None, True])
def test_a_malformed_number_of_days_is_refused(team, days):
    refused('AARG', configure, team, anonymous_days=days)

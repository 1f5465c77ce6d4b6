"""Bytes that an account may store: those of the documents that it owns by the rules, counted by each commit, exact whatever comes together
or dies in the middle."""
import contextlib
import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest
import requests

from manager import Manager
from stack import Problem, refused, wait_until
from test_accounts import OPEN, PASSWORD, bearer

pytestmark = pytest.mark.plain

# More workers than a crowd: when all others are at commits for two seconds, the last one begins none.
STACK = {'workers': 10, 'namespaces': {'z': 'closed', 'team': 'closed'},
         'settings': {'limit_client_connections': 0, 'limit_client_requests': 0, 'segment_slots': 1024, 'restart_young_ms': 0, 'keep_interval_s': 1}}
MOST = 1000
CALLERS = ('named', 'anonymous', 'service')
NOTE = {'owner': 'Main.owner', **{right: ['owner'] for right in ('read', 'list', 'create', 'delete')}, 'update': ['account']}
RULES = {'Note': {**NOTE, 'read': ['account']}, 'Free': {right: ['account'] for right in ('read', 'list', 'create', 'update', 'delete')}}
NUMBERS = itertools.count(1)


@pytest.fixture(scope='module')
def server(stack):
    configure(stack, access='rules', accounts=OPEN, rules=RULES)
    return stack


@pytest.fixture
def team(server):
    """Nothing is stored, and each account may have 1,000 bytes."""
    server.clear('team', 'Note', 'Free')
    configure(server, rules=RULES, quotas={'account': {'bytes': MOST}})
    yield server
    assert_exact(server)
    configure(server, rules=RULES, quotas=None)


def configure(stack, **members):
    stack.op('z', 'ns', {'set': {'ns': 'team', **members}}, admin=True)


class Account:
    def __init__(self, stack, kind='named'):
        self.stack = stack
        if kind == 'service':
            made = stack.op('team', 'accounts', {'key': {'label': 'script', 'roles': []}}, admin=True)['out']
            self.id, self.token = made['account'], made['key']
        else:
            made = stack.op('team', 'register', {'name': f'name{next(NUMBERS)}', 'password': PASSWORD} if kind == 'named' else {})['out']
            self.id, self.token = made['account'], made['token']

    def note(self, id_, size, owner=None, class_='Note'):
        """A document of exactly so many bytes."""
        content = {'owner': owner or self.id, 'text': ''}
        content['text'] = 'x' * (size - len(json.dumps(content, separators=(',', ':'))))
        return {'c': class_, 'id': id_, 'items': [{'c': 'Main', 'j': content}]}

    def ask(self, method, path, body):
        text = json.dumps(body, separators=(',', ':')) if body is not None else None
        headers = {'Content-Type': 'application/json', **bearer(self.token)}
        return self.stack.http.request(method, self.stack.url + path, data=text, headers=headers, timeout=60)

    def put(self, *documents):
        answer = self.ask('POST', '/team/op/put', {'param': {'docs': list(documents)}})
        if answer.status_code != 200:
            raise Problem(answer)

    def has(self):
        rows = self.stack.psql('team', 'select bytes from account_bytes where account = %s', (self.id,))
        return int(rows[0][0]) if rows else 0


def owned(stack):
    """By the documents themselves."""
    return {account: int(size) for account, size in stack.psql('team', """
        select i.content::json ->> 'owner', sum(d.v1) from doc d join item i on i.class = d.class and i.id = d.id
          where d.class = 'Note' and d.ctime <> 0 and i.iclass = 'Main' and json_typeof(i.content::json -> 'owner') = 'string' group by 1""")}


def counted(stack):
    return {account: int(size) for account, size in stack.psql('team', 'select account, bytes from account_bytes')}


def assert_exact(stack):
    assert counted(stack) == owned(stack)


def assert_full(action, *arguments, total=None):
    problem = refused('ALIMIT', action, *arguments, status=400)
    assert problem.body['args'] == ['quotas.account.bytes', str(MOST), *([str(total)] if total else [])]


def refusals(stack):
    return stack.metrics().get('stampd_quota_refused_total{ns="team",quota="account.bytes"}', 0)


@pytest.mark.parametrize('kind', CALLERS)
def test_an_account_may_store_so_much(team, kind):
    ann, bob, before = Account(team, kind), Account(team), refusals(team)
    ann.put(ann.note('one', 600))
    assert_full(ann.put, ann.note('two', 401), total=1001)
    assert ann.has() == 600, 'nothing of it was done'
    ann.put(ann.note('two', 400))
    assert ann.has() == MOST
    assert_full(ann.put, ann.note('two', 200), ann.note('three', 201), total=1001)
    ann.put(ann.note('free', 5000, class_='Free'))  # nobody owns it
    bob.put(bob.note('bob', MOST))
    ann.put(ann.note('one', 600), ann.note('two', 300))  # smaller
    ann.put({'c': 'Note', 'id': 'one', 'delete': True})
    assert ann.has() == 300
    ann.put(ann.note('three', 700))
    assert refusals(team) == before + 2


def test_every_way_to_write(team):
    ann = Account(team)
    ann.put(ann.note('one', 600))
    for method in ('PUT', 'PATCH'):
        answer = ann.ask(method, '/team/doc/Note/two' if method == 'PUT' else '/team/doc/Note/one', {'items': ann.note('one', 1001)['items']})
        assert (answer.status_code, answer.json()['code'], answer.json()['args'][0]) == (400, 'ALIMIT', 'quotas.account.bytes')
    assert ann.ask('PUT', '/team/doc/Note/two', {'items': ann.note('two', 400)['items']}).status_code in (200, 201)
    assert ann.ask('DELETE', '/team/doc/Note/one', None).status_code in (200, 204)
    assert ann.has() == 400


def test_a_task_of_a_client_is_limited_too(team):
    ann, manager = Account(team), Manager(team, 'team')
    for size in (1001, 400):
        answer = ann.ask('POST', '/team/op/task', {'param': {'op': 'put', 'param': {'docs': [ann.note('task', size)]}}})
        outcome = manager.post(answer.json()['out']['id']).json()['tasks'][0]
        assert (outcome['result'], outcome.get('code')) == (('failed', 'ALIMIT') if size > MOST else ('done', None)), outcome
    assert ann.has() == 400


def test_the_owner_pays(team):
    """Also for what others add; and whoever becomes the owner pays for all of it."""
    ann, bob = Account(team), Account(team)
    ann.put(ann.note('one', 600))
    bob.put(bob.note('one', 700, owner=ann.id))
    assert (ann.has(), bob.has()) == (700, 0)
    assert_full(bob.put, bob.note('one', 1001, owner=ann.id))  # how much she has is not for him
    ann.put(ann.note('one', 700, owner=bob.id))
    assert (ann.has(), bob.has()) == (0, 700)
    ann.put(ann.note('two', 400))
    assert_full(ann.put, ann.note('two', 400, owner=bob.id))
    bob.put(bob.note('one', 300))
    ann.put(ann.note('two', 400, owner=bob.id))
    assert (ann.has(), bob.has()) == (0, 700)
    ann.put({'c': 'Note', 'id': 'two', 'items': [{'c': 'Other', 'j': 'x' * 98}]})
    assert bob.has() == 800, 'all items of the document'


def test_the_administrator_and_sql_count(team):
    ann = Account(team)
    ann.put(ann.note('one', 100))
    team.put('team', ann.note('two', 5000), admin=True)
    assert_full(ann.put, ann.note('one', 101), total=5000 + 101 + len(team_spaces(team, 'two')))
    ann.put(ann.note('one', 99))
    team.psql('team', "select put_item('Note', 'three', 'Main', '', %s)", (json.dumps({'owner': ann.id}),))
    assert_exact(team)
    team.psql('team', "select delete_document('Note', 'two')")
    assert_exact(team)
    team.op('team', 'put', {'docs': [{'c': 'Note', 'id': 'three', 'delete': True}]}, admin=True)
    assert ann.has() == 99
    team.psql('team', "select put_item('Note', 'one', 'Main', '', %s)", ('{"owner":7}',))
    assert ann.has() == 0, 'no name of an account'


def team_spaces(stack, id_):
    """Python writes blanks into JSON."""
    ((size,),) = stack.psql('team', "select v1 from doc where class = 'Note' and id = %s", (id_,))
    return ' ' * (int(size) - 5000)


def test_what_was_there_before(server):
    ann = Account(server)
    configure(server, rules=RULES, quotas=None)
    server.clear('team', 'Note', 'Free')
    ann.put(*(ann.note(f'n{i}', 100) for i in range(9)))
    wait_until(lambda: server.psql('team', 'select (select count(*) from owner_property) + (select count(*) from owned)'
                                           ' + (select count(*) from account_bytes)') == [(0,)], what='nothing is counted without the quota')
    configure(server, quotas={'account': {'bytes': MOST}})
    ann.put(ann.note('n0', 101))
    wait_until(lambda: ann.has() == 901, what='the documents that were there before')
    assert_full(ann.put, ann.note('n9', 100), total=1001)
    configure(server, rules={**RULES, 'Note': {**RULES['Note'], 'owner': 'Main.by', 'create': ['account']}})
    ann.put({'c': 'Note', 'id': 'n9', 'items': [{'c': 'Main', 'j': {'by': ann.id}}]})
    wait_until(lambda: ann.has() < 100, what='another member names the owner')
    configure(server, rules=RULES)
    ann.put(ann.note('n1', 90))
    wait_until(lambda: ann.has() == 891, what='as before')
    assert_exact(server)
    configure(server, quotas=None)

    def nothing_is_counted():  # from a commit on whose worker knows it
        ann.put(ann.note('n2', 5000))
        return server.psql('team', 'select count(*) from owned') == [(0,)] and counted(server) == {}
    wait_until(nothing_is_counted, what='nothing is counted any more')


def test_a_declaration_while_the_keeper_counts(team):
    """It is not taken for what the keeper has begun with, and has it visit all documents."""
    ann, declared = Account(team), {}
    ann.put(*(ann.note(f'00{i}', 100) for i in range(4)))  # before all that were deleted

    def call(statement, *parameters):
        with contextlib.closing(psycopg2.connect(team.conninfo('team'), options='-c search_path=stampd')) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement, parameters)
                return cursor.fetchone()[0]

    def declare(owners):
        assert call('select owners_declare(%s)', json.dumps(owners))
        declared['number'] = call('select number from schema')

    def count(batch=200):
        return call('select keep_owned(%s, %s)', batch, declared['number'])

    def is_waiting(name):
        return call("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like %s", f'select {name}(%') == 1

    with team.keeper_stopped(), ThreadPoolExecutor(2) as pool:
        declare({})
        wait_until(lambda: count() == 0 and not counted(team), what='nothing is counted')
        declare({'Note': 'Main.owner'})
        wait_until(lambda: count(2) == 2, what='the first two')
        assert ann.has() == 200
        with contextlib.closing(psycopg2.connect(team.conninfo('team'), options='-c search_path=stampd')) as other:
            other.cursor().execute("select from doc where class = 'Note' and id = '003' for no key update")
            counting = pool.submit(count, 2)
            wait_until(lambda: is_waiting('keep_owned'), what='the keeper has begun')
            declaring = pool.submit(declare, {})
            wait_until(lambda: declaring.done() or is_waiting('owners_declare'), what='the declaration')
        assert counting.result() == 2
        declaring.result()
        wait_until(lambda: count() == 0, what='all is visited')
        assert counted(team) == {} and team.psql('team', 'select count(*) from owned') == [(0,)]
    ann.put(ann.note('000', 101))
    wait_until(lambda: counted(team) == owned(team), what='all is counted again')


def test_a_crowd_gets_exactly_what_there_is(team):
    ann = Account(team)
    ann.put(ann.note('first', 100))

    def put(number):
        while True:
            answer = ann.ask('POST', '/team/op/put', {'param': {'docs': [ann.note(f'crowd{number}', 100)]}})
            if answer.json().get('code') != 'CONTENTION':
                return answer.status_code
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(put, range(30)))
    assert sorted(answers) == [200] * 9 + [400] * 21
    assert ann.has() == MOST


def test_exact_after_kills(team):
    people, is_over, written = [Account(team) for _ in range(4)], threading.Event(), itertools.count()
    done = [0]

    def write(place):
        for number in itertools.count():
            if is_over.is_set():
                return
            me, other, name = people[place], people[(place + number) % len(people)], f'k{place}-{number % 5}'
            documents = [me.note(name, 60 + number % 90), me.note(name, 80, owner=other.id), {'c': 'Note', 'id': name, 'delete': True}]
            for document in documents[:2 + number % 2]:
                with contextlib.suppress(requests.RequestException):
                    if me.ask('POST', '/team/op/put', {'param': {'docs': [document]}}).status_code == 200:
                        done[0] = next(written)
    threads = [threading.Thread(target=write, args=(place,)) for place in range(len(people))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(6):
            enough = done[0] + 20
            wait_until(lambda enough=enough: done[0] > enough, what='writes')
            with contextlib.suppress(ProcessLookupError):
                team.kill_worker()
            assert_exact_in_one_snapshot(team)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert counted(team)
    wait_until(lambda: counted(team) == owned(team), what='the last commits')


def assert_exact_in_one_snapshot(stack):
    assert stack.psql('team', """
        select b.account, b.bytes, d.bytes from account_bytes b full join (
          select i.content::json ->> 'owner' as account, sum(d.v1) as bytes from doc d join item i on i.class = d.class and i.id = d.id
            where d.class = 'Note' and d.ctime <> 0 and i.iclass = 'Main' and i.content is not null group by 1) d on d.account = b.account
          where b.bytes is distinct from d.bytes""") == []

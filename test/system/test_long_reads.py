"""Long requests without the administrator's key: the time that they may take, and the workers that may be at them.  Tables are locked so
that what reads or writes them waits for as long as a test wants: nothing depends on how fast the machine is."""
import contextlib
import itertools
import json
import re
import shutil
import threading
import time

import psycopg2
import pytest

from attacker import ATTACKER, attack, beside
from door_client import Client
from kit import Kit
from manager import Manager
from schema import Schemas
from stack import DEFAULT_SHARES, PATIENCE_S, wait_until

pytestmark = pytest.mark.plain

SETTINGS = {'limit_client_requests': 0, 'lock_timeout_ms': 60000, 'limit_read_ms': 1000, 'limit_commit_ms': 1000, **DEFAULT_SHARES}
STACK = {'workers': 4, 'settings': SETTINGS, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open', 'app': 'open'}}
CLASSES = {'Word': {'items': {'Main': {'singleton': True, 'fields': {'name': 'string'}}}, 'collections': {'all': {'key': ['Main.of'], 'mutable': True}}}}
TIMED_OUT, OF_CLIENT, OF_NAMESPACE = ('XTIME', 'limit_read_ms', '1000'), ('XBUSY', 'limit_client_long', '1'), ('XBUSY', 'limit_namespace_long', '2')


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {**SETTINGS, 'modules': str(kit.build('search.c'))}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def words(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for ns in ('lab', 'demo'):
        schemas.apply(ns, CLASSES)
        documents = [{'c': 'Word', 'id': f'w{n}', 'items': [{'c': 'Main', 'j': {'name': f'n{n}', 'of': 'x'}}]} for n in range(3)]
        stack.op(ns, 'put', {'docs': documents}, admin=True)
    return stack


@pytest.fixture
def trusted(words):
    """No client is remembered for what an earlier test made of it."""
    words.restart_stampd()
    return words


@contextlib.contextmanager
def locked(stack, table, ns='lab', mode='access exclusive'):
    """Nobody reads the table, or, in mode `share`, writes it."""
    connection = psycopg2.connect(stack.conninfo(ns), options='-c search_path=stampd')
    try:
        connection.cursor().execute(f'lock table "{table}" in {mode} mode')
        yield
    finally:
        connection.close()


def outcome(reply):
    if reply.status == 200:
        return 'ok'
    if reply.code == 'XBUSY':
        assert reply.status == 429 and int(reply.headers['retry-after']) >= 1
    return (reply.code, *reply.args)


def find(client, ns='lab', **more):
    return outcome(client.op(ns, 'find', {'c': 'Word', 'i': 'Main'}, **more))


FRESH = itertools.count()


def absent(count=200):
    """Documents that nobody has asked for: no worker knows yet that they are absent."""
    return [{'c': 'Absent', 'id': f'a{next(FRESH)}'} for _ in range(count)]


READS = {
    'find': ('x_Word_Main', lambda client: client.op('demo', 'find', {'c': 'Word', 'i': 'Main', 'want': 'items'})),
    'list': ('doc', lambda client: client.op('demo', 'list', {'c': 'Word'})),
    'classes': ('doc', lambda client: client.op('demo', 'list')),
    'page': ('member', lambda client: client.op('demo', 'collection', {'c': 'Word', 'collection': 'all', 'value': 'x'})),
    'sync': ('doc', lambda client: client.op('demo', 'sync', syncs=absent())),
    'beside': ('doc', lambda client: client.op('demo', 'get', {'docs': []}, syncs=absent())),
    'stream': ('member', lambda client: client.op('demo', 'collection', {'c': 'Word', 'collection': 'all', 'value': 'x', 'stream': True})),
}


def done(ask, timed_out=TIMED_OUT):
    """`ask` returns an outcome: on a busy machine a request may take longer than it may."""
    def is_done():
        result = ask()
        assert result in ('ok', timed_out), result
        return result == 'ok'
    wait_until(is_done, what='a request that is done')


@pytest.mark.parametrize('name', READS)
def test_each_has_a_time_limit_of_its_own(trusted, name):
    table, read = READS[name]
    with Client(trusted, ATTACKER) as client:
        done(lambda: outcome(read(client)))
        before = trusted.refusals('limit_read_ms')
        with beside(trusted), locked(trusted, table, 'demo'):
            assert outcome(read(client)) == TIMED_OUT
        assert trusted.refusals('limit_read_ms') == before + 1
        done(lambda: outcome(read(client)))  # the session has its own limit again


def test_searches_of_modules_share_the_time_of_their_request(trusted):
    with Client(trusted, ATTACKER) as client:
        done(lambda: outcome(client.op('app', 'Search', {'name': 'Sleep', 'args': ['0']})))
        assert outcome(client.op('app', 'Search', {'name': 'Sleep', 'args': ['30']})) == TIMED_OUT


def test_the_administrator_has_no_such_limits(trusted):
    answers = []

    def ask():
        with Client(trusted, ATTACKER) as client:
            answers.append(find(client, admin=trusted.key))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    with locked(trusted, 'x_Word_Main'):
        for thread in threads:
            thread.start()
        with Client(trusted, ATTACKER) as client:
            assert find(client) == TIMED_OUT, 'who waits with the key is not counted'
        assert answers == []
    for thread in threads:
        thread.join(PATIENCE_S)
    assert answers == ['ok'] * 3


def test_one_client_has_a_share_of_the_workers(trusted):
    """16 connections of a search without a condition took all workers; the ordinary client had an answer in 0.2 s."""
    before = trusted.refusals('limit_client_long')
    with beside(trusted, least=20), locked(trusted, 'x_Word_Main'):
        results = attack(trusted, lambda client, _: find(client), 60, clients=12)
    assert set(results) == {TIMED_OUT, OF_CLIENT}
    assert results.count(OF_CLIENT) > results.count(TIMED_OUT)
    assert trusted.refusals('limit_client_long') == before + results.count(OF_CLIENT)


def test_documents_that_must_be_loaded_are_a_long_read(trusted):
    """A sync of 1,000 absent documents held a worker for as long as the database took, and sixteen of them held all."""
    with beside(trusted, ns='app', least=20), locked(trusted, 'doc'):
        results = attack(trusted, lambda client, _: outcome(client.op('lab', 'sync', syncs=absent(1000))), 40, clients=8)
    assert set(results) == {TIMED_OUT, OF_CLIENT}
    assert results.count(OF_CLIENT) > results.count(TIMED_OUT)


def test_documents_that_are_loaded_one_by_one_are_a_long_read(trusted):
    """A tolerance lets an operation read 1,000 documents, each with a query of its own."""
    trusted.set(limit_read_ms=10)
    try:
        with Client(trusted, ATTACKER) as client:
            results = [outcome(client.op('demo', 'get', {'docs': [{**one, 'age': 60} for one in absent(1000)]})) for _ in range(3)]
            few = [outcome(client.op('demo', 'get', {'docs': [{**one, 'age': 60} for one in absent(60)]})) for _ in range(3)]
    finally:
        trusted.set(limit_read_ms=1000)
    assert set(few) == {'ok'} and set(results) == {('XTIME', 'limit_read_ms', '10')}, 'a thousand queries take more than 10 ms'


@pytest.fixture
def slow(words):
    """A database in which each document takes 20 ms to load, and whose documents nobody has loaded."""
    documents = [{'c': 'Slow', 'id': f's{n}', 'items': [{'c': 'Line', 'j': n}]} for n in range(200)]
    for first in range(0, len(documents), 32):
        words.op('lab', 'put', {'docs': documents[first:first + 32]}, admin=True)
    words.step('stampd', 'stop', 'now')
    words.psql('lab', "alter table doc enable row level security; create policy slow on doc using (class <> 'Slow' or pg_sleep(0.02) is not null)")
    words.step('stampd', 'start')
    yield words
    words.psql('lab', 'drop policy slow on doc; alter table doc disable row level security')
    words.restart_stampd()


def test_documents_that_are_loaded_together_share_one_limit(slow):
    """Each statement of a round had the whole limit for itself: 256 of them might take 256 times as long."""
    with Client(slow, ATTACKER) as client:
        results = [outcome(client.op('lab', 'sync', syncs=[{'c': 'Slow', 'id': f's{n}'} for n in range(200)])) for _ in range(2)]
        few = outcome(client.op('lab', 'sync', syncs=[{'c': 'Slow', 'id': 's0'}]))
    assert (results, few) == ([TIMED_OUT] * 2, 'ok')


def test_statements_that_are_ended_do_not_fill_the_log(trusted):
    """Each wrote a line: one client wrote as many as it sent requests."""
    trusted.set(limit_read_ms=50)
    try:
        before, size = trusted.refusals('limit_read_ms'), len(trusted.log())
        with Client(trusted, ATTACKER) as client, locked(trusted, 'x_Word_Main'):
            results = [find(client) for _ in range(60)]
        ended = results.count(('XTIME', 'limit_read_ms', '50'))
        counted = trusted.refusals('limit_read_ms') - before
    finally:
        trusted.set(limit_read_ms=1000)  # the workers write their counts when they end
    log = trusted.log()[size:]
    lines = [line for line in log.splitlines() if 'sqlstate=57014' in line and 'repeated' not in line]
    repeated = sum(map(int, re.findall(r'repeated times=(\d+) seconds=60: postgresql error .*sqlstate=57014', log)))
    assert counted == ended >= 20, 'each counts'
    assert 1 <= len(lines) <= STACK['workers'] and len(lines) + repeated >= ended


def test_documents_that_are_cached_are_none(trusted):
    documents = [{'c': 'Kept', 'id': f'k{n}', 'items': [{'c': 'Line', 'j': n}]} for n in range(200)]
    for first in range(0, len(documents), 32):
        trusted.op('lab', 'put', {'docs': documents[first:first + 32]}, admin=True)
    # When it begins to listen, all copies are verified once more.
    wait_until(lambda: 'relay listens database=stampd_lab' in trusted.log().rpartition('ready version=')[2], what='the relay')
    with Client(trusted, ATTACKER) as client:
        # With the key: they are loaded for as long as it takes.
        held = client.op('lab', 'sync', syncs=[{'c': 'Kept', 'id': document['id']} for document in documents], admin=trusted.key).json['syncs']
        held = [{'c': 'Kept', **{name: one[name] for name in ('id', 'v', 'ct', 'dt')}} for one in held]
        assert client.op('lab', 'sync', syncs=held, admin=trusted.key).status == 200
        with locked(trusted, 'doc'):
            for _ in range(8):
                assert client.op('lab', 'sync', syncs=held).status == 200


def test_one_namespace_has_a_share_of_the_workers(trusted):
    results, lock = [], threading.Lock()

    def ask(number):
        with Client(trusted, f'127.0.0.{10 + number}') as client:
            for _ in range(5):
                result = find(client)
                with lock:
                    results.append(result)

    with beside(trusted, ns='app', least=20), locked(trusted, 'x_Word_Main'):
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert set(results) == {TIMED_OUT, OF_NAMESPACE} and len(results) == 60
    assert results.count(OF_NAMESPACE) > results.count(TIMED_OUT)


def test_what_is_quick_is_never_refused(trusted):
    """Who is refused was on trial, for an eighth of limit_read_ms: on a busy machine a search may last so long, or for all of it."""
    def timed(client, _):
        begun = time.monotonic()
        return find(client), time.monotonic() - begun

    def are_all_quick():
        results = attack(trusted, timed, 300, clients=12)
        refused = [took for result, took in results if result != 'ok']
        assert {result for result, _ in results} <= {'ok', OF_CLIENT, TIMED_OUT} and (not refused or max(refused) >= 0.125), results
        if refused:
            trusted.restart_stampd()  # for ten seconds there would be no trial
        return not refused
    wait_until(are_all_quick, what='searches that are all quick')


def test_a_dead_worker_leaves_its_place(trusted):
    def ask():
        with Client(trusted, ATTACKER) as client:
            find(client)

    def reading():
        return trusted.metrics().get('stampd_long_requests')

    trusted.set(limit_read_ms=600000)
    try:
        with locked(trusted, 'x_Word_Main'):
            thread = threading.Thread(target=ask)
            thread.start()
            wait_until(lambda: reading() == 1, what='a worker reads')
            for pid in trusted.worker_pids():
                trusted.kill_worker(pid)
            wait_until(lambda: reading() == 0, what='nobody reads')
            thread.join(PATIENCE_S)
    finally:
        trusted.set(limit_read_ms=1000)
    with locked(trusted, 'x_Word_Main'), Client(trusted, ATTACKER) as client:
        assert find(client) == TIMED_OUT, 'the place is free'



# --- writes ---

SLOW_COMMIT, LARGE = ('XTIME', 'limit_commit_ms', '1000'), 70000


def put(client, body=LARGE, ns='lab', **more):
    """Writes a document of its own; `body` bytes."""
    content = {'c': 'Large', 'id': f'l{next(FRESH)}', 'items': [{'c': 'Line', 'j': 'x' * body}]}
    return outcome(client.op(ns, 'put', {'docs': [content]}, **more))


def test_writes_with_a_large_body_have_a_share_of_the_workers(trusted):
    """Four puts of 4.7 MB held all of four workers for 15 s: readers of another namespace waited for as long."""
    before = trusted.refusals('limit_client_long')
    with beside(trusted, ns='app', least=20), locked(trusted, 'item', mode='share'):
        results = attack(trusted, lambda client, _: put(client), 60, clients=12)
    assert set(results) == {SLOW_COMMIT, OF_CLIENT}
    assert results.count(OF_CLIENT) > results.count(SLOW_COMMIT)
    assert trusted.refusals('limit_client_long') == before + results.count(OF_CLIENT)
    with Client(trusted, ATTACKER) as client:
        done(lambda: put(client), SLOW_COMMIT)  # the place is free, and the session has its own limit again


def test_reads_and_writes_share_the_workers(trusted):
    with beside(trusted, ns='app', least=20), locked(trusted, 'item', mode='share'), locked(trusted, 'x_Word_Main'):
        results = []
        for _ in range(20):  # who gets a place is chance
            results += attack(trusted, lambda client, number: put(client) if number % 2 else find(client), 60, clients=12)
            if {SLOW_COMMIT, TIMED_OUT} <= set(results):
                break
    assert set(results) == {SLOW_COMMIT, TIMED_OUT, OF_CLIENT}
    assert results.count(OF_CLIENT) > results.count(SLOW_COMMIT) + results.count(TIMED_OUT)


@pytest.fixture(scope='module')
def many(words):
    """Documents of many items: the body of their removal is empty, and PostgreSQL removes a row for each item."""
    for number in range(12):
        items = [{'c': 'Line', 'k': str(k), 'j': k} for k in range(3000)]
        words.op('lab', 'put', {'docs': [{'c': 'Many', 'id': f'm{number}', 'items': items}]}, admin=True)
    return itertools.cycle(range(12))


def remove(client, many):
    return outcome(client.ask('DELETE', f'/lab/doc/Many/m{next(many)}'))


def test_a_small_body_that_changes_many_items_is_long(many, trusted):
    with beside(trusted, ns='app', least=20), locked(trusted, 'item', mode='share'):
        results = attack(trusted, lambda client, _: remove(client, many), 36, clients=12)
    assert set(results) == {SLOW_COMMIT, OF_CLIENT}
    assert results.count(OF_CLIENT) > results.count(SLOW_COMMIT)


def test_one_namespace_has_a_share_of_the_workers_for_writes(many, trusted):
    results, lock = [], threading.Lock()

    def ask(number):
        with Client(trusted, f'127.0.0.{10 + number}') as client:
            for _ in range(3):
                result = remove(client, many)
                with lock:
                    results.append(result)

    with beside(trusted, ns='app', least=20), locked(trusted, 'item', mode='share'):
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert set(results) == {SLOW_COMMIT, OF_NAMESPACE} and len(results) == 36
    assert results.count(OF_NAMESPACE) > results.count(SLOW_COMMIT)


def test_a_conflict_that_runs_again_is_long(trusted):
    """Each try may wait for a lock: small requests for one document held all workers."""
    trusted.op('lab', 'put', {'docs': [{'c': 'Row', 'id': 'r', 'items': [{'c': 'Line', 'j': 0}]}]}, admin=True)
    trusted.set(lock_timeout_ms=200)
    connection = psycopg2.connect(trusted.conninfo('lab'), options='-c search_path=stampd')
    try:
        connection.cursor().execute("select from doc where class = 'Row' for update")
        results = attack(trusted, lambda client, number: outcome(client.op('lab', 'put', {'docs': [{'c': 'Row', 'id': 'r', 'items': [{'c': 'Line', 'j': number}]}]})), 12, clients=6)
    finally:
        connection.close()
        trusted.set(lock_timeout_ms=60000)
    assert OF_CLIENT in results and set(results) <= {OF_CLIENT, ('CONTENTION',), 'ok'}


def test_the_administrator_writes_as_long_as_it_takes(many, trusted):
    answers = []

    def write():
        with Client(trusted, ATTACKER) as client:
            answers.append(put(client, body=100, admin=trusted.key))

    threads = [threading.Thread(target=write) for _ in range(3)]
    with locked(trusted, 'item', mode='share'):
        for thread in threads:
            thread.start()
        with Client(trusted, ATTACKER) as client:
            assert remove(client, many) == SLOW_COMMIT, 'who waits with the key is not counted'
        assert answers == []
    for thread in threads:
        thread.join(PATIENCE_S)
    assert answers == ['ok'] * 3


def test_small_writes_are_never_refused(trusted):
    results = attack(trusted, lambda client, _: put(client, body=100), 200, clients=12)
    assert set(results) == {'ok'}


def test_readers_of_other_namespaces_are_served_by_free_workers(many, trusted):
    """A tie sent a reader behind a write of 15 s, where it waited although another worker was free."""
    def write(address):
        with Client(trusted, address) as client:
            put(client)

    trusted.put('demo', {'c': 'Cached', 'id': 'c', 'items': [{'c': 'Line', 'j': 1}]}, admin=True)
    trusted.set(limit_commit_ms=60000, statement_timeout_ms=70000, commit_timeout_ms=70000)
    writers = [threading.Thread(target=write, args=(f'127.0.0.{20 + number}',), daemon=True) for number in range(2)]
    try:
        with locked(trusted, 'item', mode='share'):
            for writer in writers:
                writer.start()
            wait_until(lambda: trusted.metrics()['stampd_long_requests'] == 2, what='the namespace uses its share')
            refused = attack(trusted, lambda client, _: remove(client, many), 20, clients=1)
            with Client(trusted, '127.0.0.30') as client:
                served = [client.get('demo', 'Cached', 'c').status for _ in range(100)]
            assert all(writer.is_alive() for writer in writers), 'they were at it all the time'
            assert set(refused) == {OF_NAMESPACE} and served == [200] * 100
        for writer in writers:
            writer.join(PATIENCE_S)
    finally:
        trusted.set(limit_commit_ms=1000, statement_timeout_ms=30000, commit_timeout_ms=15000)



def test_tasks_of_clients_have_the_share_of_their_client(trusted):
    """Four tasks with a `put` held four workers for as long as the database took."""
    items = [{'c': 'L', 'k': str(number), 'j': 1} for number in range(2010)]
    manager = Manager(trusted, 'lab')
    trusted.psql('lab', 'truncate taskqueue, task_history')
    with Client(trusted, ATTACKER) as client:
        docs = [[{'c': 'Task', 'id': f't{number}', 'items': items}] for number in range(2)]
        bodies = [json.dumps({'param': {'op': 'put', 'param': {'docs': one}}}, separators=(',', ':')).encode() for one in docs]
        asked = [client.ask('POST', '/lab/op/task', body, Content_Type='application/json') for body in bodies]
        assert [reply.status for reply in asked] == [200, 200], asked
        first, second = (reply.json['out']['id'] for reply in asked)
        outcomes = []
        runner = threading.Thread(target=lambda: outcomes.append(manager.run(first)), daemon=True)
        with locked(trusted, 'item', mode='share'):
            runner.start()
            wait_until(lambda: trusted.metrics()['stampd_long_requests'] == 1, what='a task writes')
            assert manager.run(second)['result'] == 'more', 'it waits, and has not failed'
            assert put(client) == OF_CLIENT
        runner.join(PATIENCE_S)
    assert outcomes[0]['result'] == 'done'
    assert trusted.psql('lab', 'select retry, startat > 0 from taskqueue where taskid = %s', (second,)) == [(0, True)]
    manager.hurry()
    assert manager.run(second)['result'] == 'done'

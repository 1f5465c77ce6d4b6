"""What one stranger tries to use up, beside an ordinary client: each attack of `lab`, an open namespace, by clients of one address,
while another client reads, writes and synchronises.  Nothing here depends on times: the ordinary client is never refused, no worker
dies, and what the attack gets is counted."""
import pytest

from attacker import ATTACKER, attack, beside
from door_client import Client
from holder import Copy, items_of
from schema import Schemas
from stack import DEFAULT_SHARES, wait_until

MIB = 1 << 20
SETTINGS = {'limit_client_requests': 0, 'limit_answer_bytes': 4 * MIB, 'limit_document_bytes': MIB, 'limit_items': 6000, 'limit_collection_values': 20000, 'memory_mb': 192, 'cache_mb': 16, 'restart_young_ms': 0, **DEFAULT_SHARES}
# Three: while the commit of one worker lasts two seconds, as on a busy machine, the last one begins none.
STACK = {'workers': 3, 'settings': SETTINGS, 'postgres': {'autovacuum': 'off'}, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open', 'shut': 'closed'}}


def large(stack, class_, count, size=900_000):
    """Documents of one item of so many bytes, in the collection `all`; their ids."""
    ids = [f'{number:03}' for number in range(count)]
    for id_ in ids:
        stack.put('lab', {'c': class_, 'id': id_, 'items': [{'c': 'Text', 'j': id_ * (size // 3)}, {'c': 'Tag', 'j': {'all': 'x'}}]})
    return ids


@pytest.fixture(scope='module')
def documents(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Big': {
        'items': {'Tag': {'singleton': True}, 'Text': {'singleton': True}}, 'collections': {'all': {'key': ['Tag.all'], 'mutable': True}}}})
    return large(stack, 'Big', 40)


# --- answers ---

def size_of(reply):
    return len(reply.body)


def test_one_large_document_named_often(stack, documents):
    """4 KB of names drew 160 MB and killed the worker."""
    names = [{'c': 'Big', 'id': documents[0]}] * 160
    with beside(stack):
        synced = attack(stack, lambda client, _: client.op('lab', 'sync', syncs=names), 40)
        gotten = attack(stack, lambda client, _: client.op('lab', 'get', {'docs': [{**name, 'age': 3600} for name in names]}), 40)
    for reply in synced:
        assert reply.status == 200 and size_of(reply) < MIB
        first, *others = reply.json['syncs']
        assert first['items'] and len(others) == 159 and all(other == {'c': 'Big', 'id': '000', 'later': True} for other in others)
    assert {(reply.status, reply.code, tuple(reply.args)) for reply in gotten} == {(400, 'AARG', ('docs',))}


def test_many_large_documents_come_in_parts(stack, documents):
    """A client that holds many large documents got a 502 for each synchronisation, for ever."""
    def hold(client, _):
        copies, answers = [Copy('Big', id_) for id_ in documents], 0
        wanted = copies
        while wanted:
            reply = client.op('lab', 'sync', syncs=[copy.request() for copy in wanted])
            assert reply.status == 200 and size_of(reply) <= SETTINGS['limit_answer_bytes'] + 40 * 60
            left = [copy for copy, answer in zip(wanted, reply.json['syncs']) if not copy.apply(answer)]
            assert len(left) < len(wanted), 'each answer makes progress'
            wanted, answers = left, answers + 1
        assert all(copy.items['Text', None] == copy.name[1] * 300_000 for copy in copies)
        return answers

    with beside(stack):
        assert attack(stack, hold, 4) == [10] * 4, '4 documents of 900 KB are in each'


def test_pages_of_a_collection_end_where_the_answer_is_full(stack, documents):
    """A page of 60 documents of 7 MB killed the worker."""
    def read(client, _):
        place, pages, ids = {}, 0, []
        while 'token' not in place:
            reply = client.op('lab', 'collection', {'c': 'Big', 'collection': 'all', 'value': 'x', 'limit': 1000, **place})
            assert reply.status == 200 and size_of(reply) <= SETTINGS['limit_answer_bytes']
            out = reply.json['out']
            assert len(out['docs']) > 0
            ids += [document['id'] for document in out['docs']]
            place, pages = {name: out[name] for name in ('cursor', 'token') if name in out}, pages + 1
        return pages, sorted(ids)

    with beside(stack):
        assert attack(stack, read, 8) == [(10, documents)] * 8


def test_what_get_cannot_carry_is_refused(stack, documents):
    def get(client, number):
        return client.op('lab', 'get', {'docs': [{'c': 'Big', 'id': id_, 'age': 3600 * (number % 2)} for id_ in documents[:30]]})

    with beside(stack):
        for reply in attack(stack, get, 20):
            assert (reply.status, reply.code, reply.args[:2]) == (400, 'ALIMIT', ['limit_answer_bytes', str(SETTINGS['limit_answer_bytes'])])
            assert size_of(reply) < 1000
        few = attack(stack, lambda client, _: client.op('lab', 'get', {'docs': [{'c': 'Big', 'id': id_} for id_ in documents[:4]]}), 1)[0]
    assert few.status == 200 and len(few.json['out']['docs']) == 4


def test_get_holds_no_more_than_it_may(stack):
    """Documents of removals are small as JSON and large in memory; by a tolerance they were held until all were read."""
    stack.psql('lab', "insert into doc select 'Grave', 'g' || n, 261121103000000 + n, 261121103000000, 261121103000000, 0, 0 from generate_series(1, 60) n")
    stack.psql('lab', "insert into item select 'Grave', 'g' || n, 'I', k::text, 261121103000000 + n, 0, null, false"
                      ' from generate_series(1, 60) n, generate_series(1, 2000) k')

    def get(client, count):
        return client.op('lab', 'get', {'docs': [{'c': 'Grave', 'id': f'g{number}', 'age': 3600} for number in range(1, count + 1)]})

    with beside(stack):
        assert {(reply.status, reply.code, reply.args[0]) for reply in attack(stack, lambda client, _: get(client, 60), 8)} == {(400, 'ALIMIT', 'limit_answer_bytes')}
        assert [reply.status for reply in attack(stack, lambda client, _: get(client, 10), 2)] == [200, 200]


def test_a_document_larger_than_the_limit_is_answered_alone(stack):
    """Of the time when the limits were others."""
    stack.put('lab', *({'c': class_, 'id': 'h', 'items': [{'c': 'Text', 's': 'x'}]} for class_ in ('Huge', 'Small')))
    stack.psql('lab', "insert into item (class, id, iclass, key, version, vop, content, raw)"
               " select 'Huge', 'h', 'More', n::text, version, version, repeat('y', 1000000), true from doc, generate_series(1, 6) n"
               " where doc.class = 'Huge'")
    stack.restart_stampd()
    with Client(stack, ATTACKER) as client:
        assert len(client.get('lab', 'Huge', 'h').json['items']) == 7
        first, second = client.op('lab', 'sync', syncs=[{'c': 'Huge', 'id': 'h'}, {'c': 'Small', 'id': 'h'}]).json['syncs']
        assert len(first['items']) == 7 and second['later']
        assert len(items_of(client.op('lab', 'get', {'docs': [{'c': 'Huge', 'id': 'h'}]}).json['out']['docs'][0])) == 7
        removed = [{'c': 'More', 'k': str(number), 'del': True} for number in range(1, 7)]
        assert client.op('lab', 'put', {'docs': [{'c': 'Huge', 'id': 'h', 'items': removed}]}).status == 200, 'it can shrink'


# --- what a document holds ---

def test_items_are_limited_and_removals_forgotten(stack):
    """60,000 items, written and removed, weighed nothing and stayed for 8 days."""
    def write(client, first, count, **more):
        items = [{'c': 'I', 'k': str(number), **(more or {'j': 0})} for number in range(first, first + count)]
        return client.op('lab', 'put', {'docs': [{'c': 'Crowd', 'id': 'c', 'items': items}]})

    with beside(stack), Client(stack, ATTACKER) as client:
        assert write(client, 0, 6_000).status == 200
        refused = write(client, 6_000, 1)
        assert (refused.status, refused.code, refused.args) == (400, 'ALIMIT', ['limit_items', '6000', '6001'])
        copy = Copy('Crowd', 'c')
        copy.apply(client.op('lab', 'sync', syncs=[copy.request()]).json['syncs'][0])
        for first in range(0, 4_000, 500):
            assert write(client, first, 500, **{'del': True}).status == 200
            (tombstones,), = stack.psql('lab', "select count(*) from item where class = 'Crowd' and content is null")
            assert tombstones <= 2_000
        copy.apply(client.op('lab', 'sync', syncs=[copy.request()]).json['syncs'][0])
        assert set(copy.items) == {('I', str(number)) for number in range(4_000, 6_000)}, 'who held all knows what is left'


def test_a_document_costs_what_is_made_of_it(stack):
    """40,000 small items weighed 229 KB and made 1.9 MB of JSON; texts of control characters grow by six."""
    most = SETTINGS['limit_document_bytes']

    def write(client, number):
        if number % 2:
            items = [{'c': 'LongNameOfAClass', 'k': f'{key:065}', 'j': 0} for key in range(5_900)]
        else:
            items = [{'c': 'Text', 's': '\x01' * 200_000}]
        reply = client.op('lab', 'put', {'docs': [{'c': 'Cost', 'id': str(number), 'items': items}]})
        return reply.status, reply.code, reply.args[:2], int(reply.args[2]) > most

    with beside(stack):
        assert attack(stack, write, 8) == [(400, 'ALIMIT', ['limit_document_bytes', str(most)], True)] * 8


def test_a_list_of_many_values_costs_what_it_holds(stack, tmp_path_factory):
    """A list of 20,000 values made its document unwritable: each change took longer than a statement may."""
    Schemas(stack, tmp_path_factory.mktemp('lists')).apply('demo', {'Many': {
        'items': {'List': {'singleton': True}}, 'collections': {'tag': {'key': ['List.tags'], 'list': True, 'mutable': True}}}})
    with beside(stack):
        for turn in range(2):
            values = [f'v{number}' for number in range(turn * 100, 20_000)]
            stack.op('demo', 'put', {'docs': [{'c': 'Many', 'id': 'm', 'items': [{'c': 'List', 'j': {'tags': values}}]}]}, admin=True)
            assert stack.psql('demo', 'select count(*) from member where not has_left') == [(len(values),)]


# --- ping ---

def statements_of(stack, ns):
    """Transactions that the database has seen, whoever made them, and sessions of workers in the databases that nobody uses."""
    stack.psql(ns, 'select pg_stat_force_next_flush()')
    (count,), = stack.psql(None, f"select xact_commit + xact_rollback from pg_stat_database where datname = 'stampd_{ns}'")
    (sessions,), = stack.psql(None, "select count(*) from pg_stat_activity where application_name = 'stampd' and datname in ('stampd_shut', 'stampd_demo')")
    return count, sessions


def test_pings_ask_no_database(stack):
    """Each was a round trip, and over 8 namespaces a new session."""
    def ping(client, number):
        return client.ask('GET', f'/{("shut", "demo", "z")[number % 3]}/ping')

    attack(stack, ping, 3)  # of what nobody has used: looked at once
    with stack.keeper_stopped(), beside(stack):  # a round of the keeper has 29 transactions in each database
        before, sessions = statements_of(stack, 'shut')
        replies = attack(stack, ping, 600)
        after, sessions_after = statements_of(stack, 'shut')
    assert {(reply.status, reply.json['db']) for reply in replies} == {(200, 'ok')}
    assert after - before < 20 and sessions_after <= sessions + 2
    with Client(stack, ATTACKER) as client:
        assert client.ask('GET', '/shut/ping', Authorization=f'Bearer {stack.key}').json['db'] == 'ok'
        assert client.ask('GET', '/shut/ping', Authorization='Bearer wrong').code == 'SKEY'


def test_ping_knows_that_the_database_is_gone(stack):
    with Client(stack, ATTACKER) as client:
        def state(**headers):
            return client.ask('GET', '/lab/ping', **headers).json['db']

        wait_until(lambda: state() == 'ok')
        stack.stop_postgres()
        try:
            wait_until(lambda: state() in ('down', '?'))
            assert state(Authorization=f'Bearer {stack.key}') in ('down', '?')
        finally:
            stack.step('postgres', 'start')
        wait_until(lambda: state() == 'ok')

"""Named searches: SQL of the administrator in the schema, which callers run by its name.  What it may read, call and take is tried with
texts that an administrator could write by mistake, or because somebody has told them to."""
import json
import threading

import psycopg2
import pytest

from schema import Schemas
from stack import Problem, refused, stampctl, wait_until

SETTINGS = {'limit_search_rows': 5, 'limit_read_ms': 1000, 'limit_document_bytes': 4096}
STACK = {'workers': 3, 'settings': SETTINGS, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open', 'app': 'rules'}}
POST = {'items': {'Main': {'singleton': True, 'fields': {'room': 'string', 'at': 'long'}}, 'Note': {}}}
CLASSES = {'Post': POST, 'Room': {'items': {'Main': {'singleton': True, 'fields': {'floor': 'int'}}}}}


def search(sql, result, params=(), class_='Post'):
    return {'class': class_, 'params': [list(one) for one in params], 'result': [list(one) for one in result], 'sql': sql}


SEARCHES = {
    'newest': search('select id, at from "item_Post_Main" where room = $1 order by at desc, id', [('id', 'string'), ('at', 'long')], [('room', 'string')]),
    'byFloor': search('select r.floor, count(*) as posts from "item_Post_Main" p join "item_Room_Main" r on r.id = p.room group by r.floor order by 1 -- joined',
                      [('floor', 'int'), ('posts', 'long')]),
    'members': search("select i.id, i.value -> 'title' as title, i.value ->> 'title' as words, i.v > 0 as is_new, sqrt(16) as root from items i"
                      " where i.class = 'Post' and i.item = 'Main' order by i.id",
                      [('id', 'string'), ('title', 'json'), ('words', 'string'), ('is_new', 'boolean'), ('root', 'double')]),
    'echo': search('select $1 as s, $2 as l, $3 as i, $4 as d, $5 as b, $6[2] as ss, $7[1] as ls, $8 as who',
                   [('s', 'string'), ('l', 'long'), ('i', 'int'), ('d', 'double'), ('b', 'boolean'), ('ss', 'string'), ('ls', 'long'), ('who', 'string')],
                   [('s', 'string'), ('l', 'long'), ('i', 'int'), ('d', 'double'), ('b', 'boolean'), ('ss', 'string[]'), ('ls', 'long[]'), ('who', 'account')]),
    'ratio': search('select 1 / $1 as n', [('n', 'long')], [('by', 'long')]),
    'wide': search("select repeat('x', $1) as x from generate_series(1, 5)", [('x', 'string')], [('n', 'int')]),
    'endless': search('with recursive n(n) as (select 1::bigint union all select n + 1 from n) select max(n) as n from n', [('n', 'long')]),
    'classes': search('select class, count(*) as n from documents group by class order by class', [('class', 'string'), ('n', 'long')]),
    'stamps': search('select id, v, ct from documents where class = $1 order by id', [('id', 'string'), ('v', 'long'), ('ct', 'long')], [('c', 'string')]),
}


class Searches(Schemas):
    def declare(self, ns, searches, classes=None, status=0):
        return self.apply(ns, CLASSES if classes is None else classes, searches=searches, status=status)


def post(ident, room, at, **more):
    return {'c': 'Post', 'id': ident, 'items': [{'c': 'Main', 'j': {'room': room, 'at': at, 'title': f'T {ident}', **more}}]}


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Searches(stack, tmp_path_factory.mktemp('schemas'))
    for ns in ('lab', 'demo', 'app'):
        schemas.declare(ns, SEARCHES)
    for ns in ('lab', 'app'):
        stack.put(ns, *(post(f'p{n}', 'hall' if n % 2 else 'yard', n) for n in range(6)), *(
            {'c': 'Room', 'id': room, 'items': [{'c': 'Main', 'j': {'floor': floor}}]} for room, floor in (('hall', 1), ('yard', 0))), admin=True)
    return schemas


def run(stack, name, args=None, ns='lab', **more):
    return stack.op(ns, 'search', {'name': name, **({'args': args} if args is not None else {})}, **more)['out']


# --- what it returns ---

def test_rows_are_objects_in_their_order(stack, schemas):
    assert run(stack, 'newest', {'room': 'hall'}) == {'rows': [{'id': 'p5', 'at': 5}, {'id': 'p3', 'at': 3}, {'id': 'p1', 'at': 1}]}
    assert run(stack, 'newest', {'room': 'none'}) == run(stack, 'newest', {'room': None}) == run(stack, 'newest') == {'rows': []}
    assert run(stack, 'byFloor') == {'rows': [{'floor': 0, 'posts': 3}, {'floor': 1, 'posts': 3}]}
    assert run(stack, 'newest', {'room': 'hall'}, ns='demo') == {'rows': []}, 'another namespace'
    text = stack.request('GET', '/lab/op/search', query={'param': json.dumps({'name': 'newest', 'args': {'room': 'hall'}})}).text
    assert '"rows":[{"id":"p5","at":5}' in text, 'the columns in their order'


def test_columns_have_their_types(stack, schemas):
    assert run(stack, 'members')['rows'][0] == {'id': 'p0', 'title': 'T p0', 'words': 'T p0', 'is_new': True, 'root': 4.0}
    stamps = {row['id']: row for row in run(stack, 'stamps', {'c': 'Post'})['rows']}
    document = stack.get('lab', ('Post', 'p1'))
    assert stamps['p1'] == {'id': 'p1', 'v': document['v'], 'ct': document['ct']}


def test_arguments_are_values_of_their_types(stack, schemas):
    args = {'s': "'; drop table doc; --", 'l': -2**63, 'i': 2**31 - 1, 'd': 1.5, 'b': True, 'ss': ['a', '$2'], 'ls': [7, 8]}
    assert run(stack, 'echo', args)['rows'] == [{**args, 'ss': '$2', 'ls': 7, 'who': None}]
    assert run(stack, 'echo', {})['rows'] == [dict.fromkeys([*args, 'who'])]
    wrong = {'s': [1, True, ['a'], {}], 'l': ['1', 1.5, 2**63, []], 'i': [2**31, 'a'], 'd': ['1', True, float('1e308') * 10 and '1e999'], 'b': [1, 'true'],
             'ss': ['a', [1], [None], [['a']], ['a'] * 101], 'ls': [['1'], [1.5], 1], 'who': ['ann'], 'none': [1]}
    for name, values in wrong.items():
        for value in values:
            problem = refused('AARG', run, stack, 'echo', {name: value})
            assert problem.body['args'][0] == name and problem.body['at'].startswith(f'/param/args/{name}'), (name, value, problem.body)
    assert refused('AARG', run, stack, 'echo', [1]).body['at'] == '/param/args'
    assert refused('AARG', stack.op, 'lab', 'search', {}).body['args'] == ['name']
    assert refused('AARG', stack.op, 'lab', 'search', {'name': 'echo', 'arg': {}}).body['args'] == ['arg', 'args']


def test_what_cannot_be_computed_is_the_fault_of_the_values(stack, schemas):
    assert run(stack, 'ratio', {'by': 1})['rows'] == [{'n': 1}]
    assert refused('AARG', run, stack, 'ratio', {'by': 0}).body['at'] == '/param/args'
    assert run(stack, 'ratio', {'by': 1})['rows'] == [{'n': 1}], 'the session goes on'


def test_the_command_prints_rows(stack, schemas):
    def command(name, *words, status=0):
        return stampctl('search', stack.url, name, '--ns', 'lab', '--ca', stack.path / 'etc/certificate.pem', *words, status=status)

    assert [json.loads(line) for line in command('newest', '--args', '{"room":"hall"}').out.splitlines()] == run(stack, 'newest', {'room': 'hall'})['rows']
    done = command('members')
    assert len(done.out.splitlines()) == 5 and 'more rows' in done.error
    assert 'NSEARCH' in command('absent', '--retry-for', '0', status=1).error
    assert 'JSON is expected' in command('newest', '--args', '{', status=2).error


# --- limits ---

def test_rows_and_bytes_are_limited(stack, schemas):
    assert run(stack, 'members') == {'rows': run(stack, 'members')['rows'], 'more': True}
    assert [row['id'] for row in run(stack, 'members')['rows']] == ['p0', 'p1', 'p2', 'p3', 'p4']
    assert run(stack, 'wide', {'n': 700}) == {'rows': [{'x': 'x' * 700}] * 5}
    assert run(stack, 'wide', {'n': 1500}) == {'rows': [{'x': 'x' * 1500}] * 2, 'more': True}
    assert run(stack, 'wide', {'n': 5000}) == run(stack, 'wide', {'n': 300000}) == {'rows': [], 'more': True}


def test_time_is_limited_and_shared(stack, schemas):
    assert refused('XTIME', run, stack, 'endless').body['args'] == ['limit_read_ms', '1000']
    assert run(stack, 'ratio', {'by': 1})['rows'] == [{'n': 1}]


def test_a_session_has_a_limit_on_disk(stack, schemas):
    (settings,), = stack.psql('lab', "select s.setconfig from pg_db_role_setting s join pg_roles r on r.oid = s.setrole join pg_database d on d.oid = s.setdatabase"
                              " where r.rolname = 'stampd' and d.datname = current_database()")
    assert 'temp_file_limit=1GB' in settings


# --- who ---

def test_the_callers_are_those_who_may_read_the_whole_class(stack, schemas):
    def code(**more):
        try:
            return len(run(stack, 'newest', {'room': 'hall'}, ns='app', **more)['rows'])
        except Problem as problem:
            return problem.code

    def rule(rules):
        stack.op('z', 'ns', {'set': {'ns': 'app', 'rules': rules}}, admin=True)

    every = ['anybody']
    for rules, expected in (
            ({}, 'NSEARCH'), ({'Room': {'read': every, 'list': every}}, 'NSEARCH'), ({'Post': {'read': every}}, 'NSEARCH'), ({'Post': {'list': every}}, 'NSEARCH'),
            ({'Post': {'read': every, 'list': every}}, 3), ({'Post': {'owner': 'Main.owner', 'read': ['owner'], 'list': ['owner']}}, 'NSEARCH'),
            ({'Post': {'read': every, 'list': every, 'items': {'Note': {'see': []}}}}, 'NSEARCH'),
            ({'Post': {'read': every, 'list': every, 'items': {'Note': {'see': every}}}}, 3), ({'Post': {'read': ['account'], 'list': every}}, 'NSEARCH')):
        try:
            rule(rules)
        except Problem as problem:
            raise AssertionError((rules, problem.body)) from None
        wait_until(lambda: code() == expected, 'the rules are obeyed')
        assert code(admin=True) == 3
    hidden, absent = (refused('NSEARCH', run, stack, name, {}, ns='app').body for name in ('newest', 'absent'))
    assert {**hidden, 'args': []} == {**absent, 'args': []} and (hidden['args'], absent['args']) == (['newest'], ['absent']), 'it is as if it were not there'


def test_what_is_not_declared_is_not_there(stack, schemas):
    for admin in (None, True):
        assert refused('NSEARCH', run, stack, 'absent', admin=admin).body['args'] == ['absent']


# --- what may stand in the text ---

HOSTILE = {
    'a table': 'select id from doc', 'the secret': 'select secret::text as id from namespace', 'items themselves': 'select content as id from stampd.item',
    'tasks': 'select opname as id from taskqueue', 'a catalog': 'select rolname::text as id from pg_roles', 'settings': 'select name as id from pg_settings',
    'activity': 'select query as id from pg_stat_activity', 'a subselect': 'select (select secret::text from stampd.namespace) as id',
    'a side table': 'select id from "x_Post_Main"', 'information': "select table_name::text as id from information_schema.tables",
    'a role': "select set_config('role', 'postgres', false) as id", 'a setting': "select set_config('statement_timeout', '0', false) as id",
    'a setting, read': "select current_setting('data_directory') as id", 'sleep': 'select pg_sleep(100)::text as id', 'kill': "select pg_terminate_backend(1)::text as id",
    'a lock': 'select pg_advisory_lock(1)::text as id', 'notify': "select pg_notify('stampd', 'all')::text as id", 'a file': "select pg_read_file('PG_VERSION') as id",
    'a folder': "select pg_ls_dir('.') as id", 'a large object': "select lo_create(0)::text as id", 'import': "select lo_import('/etc/passwd')::text as id",
    'xml': "select query_to_xml('select * from stampd.doc', true, true, '')::text as id", 'a table as xml': "select table_to_xml('stampd.doc', true, true, '')::text as id",
    'search statistics': "select word as id from ts_stat('select content from stampd.item')", 'rewriting': "select ts_rewrite('a'::tsquery, 'select secret from stampd.namespace')::text as id",
    'a sequence': "select nextval('x')::text as id", 'chance': 'select random()::text as id', 'of stampd': "select stampd.stamp_now()::text as id",
    'purging': 'select stampd.purge_zombies(1)::text as id', 'keeping': "select stampd.keep('zombies', 1, 1)::text as id", 'refusing': "select stampd.fail('ST001', '')::text as id",
    'a writer': "select put_item('A', 'b', 'C', '', '1')::text as id", 'an aggregate over a table': 'select count(*)::text as id from stampd.item',
    'insert': "insert into doc (class, id) values ('A', 'b') returning id", 'a writing part': "with gone as (delete from doc returning id) select id from gone",
    'a lock of rows': 'select id from documents for update', 'two statements': "select 'a' as id; drop table stampd.doc", 'out of the brackets': "select 'a' as id) q; select id from (select 'b' as id",
    'out of the body': "select 'a' as id) q; end; drop table stampd.doc; select * from (select 1", 'a comment': "select 'a' as id /* ", 'drop': 'drop table stampd.doc', 'do': "do $$begin end$$",
    'set': 'set role postgres', 'reset': 'reset role', 'copy': "copy stampd.doc to '/tmp/x'", 'prepare': "prepare x as select 1", 'explain': 'explain select 1', 'nothing': ' ', 'no SQL': 'x',
    'an absent column': 'select nothing as id from documents', 'more parameters': 'select $1 as id', 'of the limit': 'select $2::text as id', 'another column': "select 'a' as name",
    'another type': 'select 1 as id', 'more columns': "select 'a' as id, 'b' as b", 'an operator of ours': "select ('a' operator(public.+++) 'b')::text as id",
}


@pytest.mark.parametrize('what', HOSTILE)
def test_what_is_no_search_is_refused_when_it_is_applied(stack, schemas, what):
    before = stack.psql('lab', 'select number, content from schema')
    error = schemas.declare('lab', {**SEARCHES, 'hostile': search(HOSTILE[what], [('id', 'string')])}, status=1)
    assert 'searches.hostile.' in error, error
    assert stack.psql('lab', 'select number, content from schema') == before, 'nothing is applied'
    assert run(stack, 'newest', {'room': 'hall'})['rows'][0] == {'id': 'p5', 'at': 5}, 'the others are as before'
    assert stack.psql('lab', "select count(*) from pg_proc where proname ~ '^q_hostile'") == [(0,)]


@pytest.mark.parametrize('change, where', [
    ({'class': 'post'}, 'searches.one'), ({'class': None}, 'searches.one'), ({'sql': ''}, 'searches.one'), ({'sql': 'x' * 16385}, 'searches.one'), ({'sql': 7}, 'searches.one'),
    ({'result': []}, 'searches.one'), ({'result': [['id']]}, 'searches.one.result[0]'), ({'result': [['id', 'account']]}, 'searches.one.result[0]'),
    ({'result': [['id', 'string[]']]}, 'searches.one.result[0]'), ({'result': [['id', 'string'], ['id', 'long']]}, 'searches.one.result[1]'),
    ({'params': [['a"b', 'string']]}, 'searches.one.params[0]'), ({'params': [['a', 'json']]}, 'searches.one.params[0]'), ({'params': {'a': 'string'}}, 'searches.one.params'),
    ({'params': [['a', 'string']] * 2}, 'searches.one.params[1]'), ({'params': [[f'a{n}', 'int'] for n in range(17)]}, 'searches.one.params'), ({'limit': 5}, 'searches.one.limit')])
def test_a_wrong_declaration_is_refused_when_it_is_set(stack, schemas, change, where):
    declared = {**search('select 1 as id', [('id', 'string')]), **change}
    error = schemas.run('set', 'lab', '-', text=json.dumps({'classes': CLASSES, 'searches': {'one': declared}}), status=1)
    assert f'{where}: ' in error, error
    for name in ('', 'a_run', '1a', 'a"b', 'a' * 33):
        error = schemas.run('set', 'lab', '-', text=json.dumps({'classes': CLASSES, 'searches': {name: search('select 1 as id', [('id', 'int')])}}), status=1)
        assert 'A name of a search' in error, error


def test_errors_of_the_text_say_where(stack, schemas):
    error = schemas.declare('lab', {**SEARCHES, 'typo': search('select id from documants', [('id', 'string')])}, status=1)
    assert 'searches.typo.sql: ' in error and 'relation "documants" does not exist' in error and 'character 16' in error, error
    error = schemas.declare('lab', {**SEARCHES, 'typed': search('select count(*) as n from documents', [('n', 'int')])}, status=1)
    assert 'searches.typed.result[0]: int is integer; the column "n" of the SQL is bigint: cast it' in error, error


# --- the role ---

def test_the_role_may_read_the_views_and_nothing_else(stack, schemas):
    (role,), = stack.psql('lab', "select row_to_json(r) from pg_roles r where rolname = 'stampd_search'")
    assert not any(role[right] for right in ('rolsuper', 'rolcreaterole', 'rolcreatedb', 'rolcanlogin', 'rolreplication', 'rolbypassrls'))
    readable = {name for name, in stack.psql('lab', "select c.relname from pg_class c where c.relnamespace = 'stampd'::regnamespace and c.relkind in ('r', 'v', 'm', 'p')"
                                             " and has_table_privilege('stampd_search', c.oid, 'select')")}
    assert readable == {'documents', 'items', 'item_Post_Main', 'item_Room_Main'}
    assert stack.psql('lab', "select count(*) from pg_class c where c.relnamespace = 'stampd'::regnamespace and c.relkind in ('r', 'v') and"
                      " has_table_privilege('stampd_search', c.oid, 'insert, update, delete, truncate, trigger')") == [(0,)]
    assert stack.psql('lab', "select has_schema_privilege('stampd_search', 'stampd', 'create')") == [(False,)]
    owners = set(stack.psql('lab', "select r.rolname, p.prosecdef from pg_proc p join pg_roles r on r.oid = p.proowner where p.proname ~ '^q_.*_run$'"))
    assert owners == {('stampd_search', True)}
    assert stack.psql('lab', "select count(*) from pg_proc p, aclexplode(p.proacl) a where p.proname ~ '^q_' and a.grantee = 0") == [(0,)], 'public runs none'


def test_within_a_search_the_role_cannot_change(stack, schemas):
    """Behind the check of the text stands the role: here the check is left out."""
    connection = psycopg2.connect(stack.conninfo('lab'))
    with connection, connection.cursor() as cursor:
        for sql, why in (("select set_config('role', 'none', true)", 'security-definer'), ("select set_config('session_authorization', 'postgres', true)", 'security-definer'),
                         ('select count(*)::text from stampd.item', 'permission denied'), ("select put_item('A', 'b', 'C', '', '1')::text", 'denied')):
            cursor.execute('savepoint s')
            cursor.execute(f'create function pg_temp.attempt() returns text language sql stable security definer set search_path = stampd, pg_temp as $x${sql}$x$;'
                           ' alter function pg_temp.attempt() owner to stampd_search')
            with pytest.raises(psycopg2.Error, match=why):
                cursor.execute('select pg_temp.attempt()')
            cursor.execute('rollback to s')
    connection.close()


def test_accounts_and_what_belongs_to_the_server_are_not_in_the_views(stack, schemas):
    stack.put('app', {'c': 'Account', 'id': 'x' * 22, 'items': [{'c': 'Main', 'j': {'name': 'ann'}}]}, admin=True)
    assert {row['class'] for row in run(stack, 'classes', ns='app', admin=True)['rows']} == {'Post', 'Room'}
    assert stack.psql('app', "select count(*) from items where class = 'Account'") == [(0,)]


def test_deleted_and_expired_documents_are_not_in_the_views(stack, schemas):
    stack.put('lab', post('gone', 'cellar', 1), {'c': 'Post', 'id': 'raw', 'items': [{'c': 'Note', 'k': 'a', 'j': 1}, {'c': 'Note', 'k': 'b', 'j': 2}]})
    stack.op('lab', 'put', {'docs': [{'c': 'Post', 'id': 'gone', 'delete': True}, {'c': 'Post', 'id': 'raw', 'items': [{'c': 'Note', 'k': 'a', 'del': True}]}]})
    assert run(stack, 'newest', {'room': 'cellar'}) == {'rows': []}
    assert stack.psql('lab', "select id, key, value::text from items where id in ('gone', 'raw')") == [('raw', 'b', '2')]
    assert stack.psql('lab', "select id from documents where id in ('gone', 'raw')") == [('raw',)]
    stack.op('lab', 'put', {'docs': [{'c': 'Post', 'id': 'raw', 'delete': True}]})


def test_expired_documents_are_in_no_view(stack, schemas):
    """Though the server has not deleted them; from the declaration of maxLife on, until it is taken back."""
    ending = {**CLASSES, 'Room': {**CLASSES['Room'], 'maxLife': 'Main.until'}}
    rooms = search('select v.id from "item_Room_Main" v where v.floor = 7 order by v.id', [('id', 'string')], class_='Room')
    views = [f"select id from {view} where class = 'Room' and id in ('past', 'later', 'never') order by id" for view in ('"item_Room_Main"', 'items', 'documents')]

    def seen(*expected):
        assert [row['id'] for row in run(stack, 'rooms', ns='demo')['rows']] == list(expected)
        for view in views:
            assert [row[0] for row in stack.psql('demo', view)] == list(expected), view
    schemas.declare('demo', {'rooms': rooms})
    with stack.keeper_stopped():
        stack.put('demo', *({'c': 'Room', 'id': name, 'items': [{'c': 'Main', 'j': {'floor': 7, 'until': until}}]} for name, until in
                            (('past', 1), ('later', 99999999), ('never', None))), admin=True)
        seen('later', 'never', 'past')
        schemas.declare('demo', {'rooms': rooms}, classes=ending)
        seen('later', 'never')
        schemas.declare('demo', {'rooms': rooms})
        seen('later', 'never', 'past')
    schemas.declare('demo', SEARCHES)


# --- changes of the schema, restarts, restores ---

def test_the_newest_declaration_is_run(stack, schemas):
    """With its class, its text and its columns, in every worker, while others call it."""
    texts = {n: search(f"select {n}::bigint as n", [('n', 'long')]) for n in range(3)}
    schemas.declare('demo', {'turn': texts[0]})
    seen, is_over = [], threading.Event()

    def call():
        while not is_over.is_set():
            seen.append(stack.op('demo', 'search', {'name': 'turn'})['out']['rows'])

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    try:
        for n in (1, 2):
            schemas.declare('demo', {'turn': texts[n]})
            for _ in range(6):
                assert run(stack, 'turn', ns='demo') == {'rows': [{'n': n}]}
    finally:
        is_over.set()
        for caller in callers:
            caller.join()
    assert all(rows in ([{'n': 0}], [{'n': 1}], [{'n': 2}]) for rows in seen)
    schemas.declare('demo', {'turn': search("select 'a' as s", [('s', 'string')])})
    for _ in range(6):
        assert run(stack, 'turn', ns='demo') == {'rows': [{'s': 'a'}]}
    schemas.declare('demo', {})
    assert refused('NSEARCH', run, stack, 'turn', ns='demo')
    assert stack.psql('demo', "select count(*) from pg_proc where proname ~ '^q_'") == [(0,)]
    schemas.declare('demo', SEARCHES)


def test_fields_come_and_go_below_a_search(stack, schemas):
    more = json.loads(json.dumps(CLASSES))
    more['Post']['items']['Main']['fields']['title'] = 'string'
    titles = search('select title from "item_Post_Main" where id = $1', [('title', 'string')], [('id', 'string')])
    schemas.declare('lab', {**SEARCHES, 'titles': titles}, more)
    assert run(stack, 'titles', {'id': 'p1'}) == {'rows': [{'title': 'T p1'}]}
    error = schemas.declare('lab', {**SEARCHES, 'titles': titles}, status=1)
    assert 'searches.titles.sql' in error and 'title' in error, 'the column would be gone'
    schemas.declare('lab', SEARCHES)
    assert run(stack, 'newest', {'room': 'hall'})['rows'][0] == {'id': 'p5', 'at': 5}


def test_a_restart_changes_nothing(stack, schemas):
    stack.restart_stampd()
    assert run(stack, 'newest', {'room': 'hall'})['rows'][0] == {'id': 'p5', 'at': 5}


def test_a_function_of_another_role_is_not_run_and_apply_repairs_it(stack, schemas):
    """As after a restore without owners, which would run it as the administrator."""
    assert run(stack, 'newest', {'room': 'hall'})['rows']
    stack.psql('lab', 'alter function "q_newest_run"(text, bigint) owner to current_user')
    assert refused('OBUILDING', run, stack, 'newest', {'room': 'hall'}).body['args'] == ['newest']
    assert run(stack, 'ratio', {'by': 1})['rows'] == [{'n': 1}]
    schemas.run('apply', 'lab')
    assert run(stack, 'newest', {'room': 'hall'})['rows'][0] == {'id': 'p5', 'at': 5}
    stack.psql('lab', 'drop function "q_newest_run"')
    assert refused('OBUILDING', run, stack, 'newest', {'room': 'hall'}).body['args'] == ['newest']
    schemas.run('apply', 'lab')
    assert run(stack, 'newest', {'room': 'hall'})['rows'][0] == {'id': 'p5', 'at': 5}


def test_the_plan_of_a_search_uses_the_indexes(stack, schemas):
    """q_newest is put in place of its call."""
    connection = psycopg2.connect(stack.conninfo('lab'))
    with connection.cursor() as cursor:
        cursor.execute('set enable_seqscan = off; set enable_bitmapscan = off; set search_path = stampd; set enable_sort = on')
        cursor.execute("""explain select * from "q_newest"('hall', 5)""")
        plan = '\n'.join(line for line, in cursor.fetchall())
    connection.close()
    assert 'v_Post_Main_room' in plan and 'Function Scan' not in plan, plan


# --- where there are none ---

def test_z_has_no_searches(stack, schemas):
    schemas.run('set', 'z', '-', text=json.dumps({'classes': {}, 'searches': {'one': search('select id from documents', [('id', 'string')])}}))
    assert 'searches: z has none' in schemas.run('apply', 'z', status=1)
    schemas.run('set', 'z', '-', text=json.dumps({'classes': {}}))

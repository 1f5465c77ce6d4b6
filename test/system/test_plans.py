"""Plans: every statement of the server's table, run by the real server over a namespace of 250,000 documents with aged
tombstones and zombies, is answered from indexes and touches few pages, whether PostgreSQL has statistics or not.

PostgreSQL writes the plan of each statement that it runs for a worker into its log (auto_explain); so what is judged are the
generic plans of the prepared statements themselves.
"""
import hashlib
import itertools
import json
import re
import shutil

import pytest

from kit import Kit
from door_client import Client
from manager import Manager
from schema import Schemas
from stack import SOURCE, Problem, wait_until

DOCUMENTS = 250_000
AGED = 100_000  # zombies, and answers kept under an Idempotency-Key
OLD = 200101000000000  # a stamp of 2020
CLASS = 'Big'
TURNS = itertools.count()

STACK = {'workers': 1, 'settings': {'limit_subscriptions': 10000000, 'limit_push_subscriptions': 10000000, 'hosts': 'many'},
         'postgres': {'autovacuum': 'off', 'synchronous_commit': 'off', 'max_wal_size': '8GB', 'shared_buffers': '512MB'}}
pytestmark = [pytest.mark.plain, pytest.mark.timeout(180)]  # 250,000 documents are loaded

# The pages, of memory or disk, that a statement may touch at most when one or two documents of a few items are concerned.
# A look into an index of so many rows is 3 or 4 pages, a changed row a few more for its own index entries.
PAGES = {
    'LOAD': 20, 'LOAD_NEWER': 28, 'ABSENT': 6, 'CORE': 30, 'CORE_ONE': 30, 'BORN': 20, 'WIPE': 15, 'PURGE': 25,
    'VERIFY': 30,  # of six documents

    'SIZES': 280,  # of the 62 documents that follow the first of 70
    'READ_LIMIT': 1, 'READ_UNTIL': 1, 'READ_LEFT': 1, 'SCHEMA': 4, 'SCHEMA_NUMBER': 4, 'SCHEMA_PROGRESS': 8, 'DATA_KEYS': 8, 'OWNERS_DECLARE': 40, 'OWNED_WRITE': 90, 'OWNED_ROOM': 12, 'MEMBERS': 75, 'COLLECTION': 30, 'COLLECTION_ALL': 24, 'COLLECTION_EPOCH': 8, 'GLOBAL_CHANGES': 30, 'GLOBAL_RESERVE': 30, 'GLOBAL_DROP': 20,
    'GLOBAL_STATE': 30, 'LIST': 70, 'CLASSES': 40, 'IDEMPOTENCY_FIND': 10, 'IDEMPOTENCY': 30,
    'IDEMPOTENCY_PURGE': 40,
    # Of two records, and of four that are purged.
    'SPOOL_FIND': 20, 'SPOOL_NOTE': 50, 'SPOOL_PURGE': 120,
    # Of a subscription with three definitions; and a commit of one document in a collection, by which one session is woken.
    'SUBSCRIPTIONS_SHOW': 24, 'SUBSCRIPTIONS_VOUCH': 20, 'SUBSCRIPTIONS_RETURN': 30, 'SUBSCRIPTIONS_PUT': 90, 'SUBSCRIPTIONS_DROP': 40, 'SUBSCRIPTIONS_MATCH': 90,
    # Of four members, and of 16 rows of each of two values with 2,500 members.
    'SUBSCRIPTIONS_MEMBERS': 30, 'SUBSCRIPTIONS_CHANGED': 60, 'SUBSCRIPTIONS_LEFT': 60, 'SIGHT_HAD': 30,
    # Of a document with two items, of which five documents hold one each.
    # Of a page of one document, and of a namespace without tasks of that kind.
    'THUMBNAIL_REASONS': 15, 'THUMBNAIL_REFUSE': 25, 'THUMBNAIL_NOTE': 40, 'THUMBNAIL_PAGE': 1000, 'THUMBNAIL_DUE': 40, 'THUMBNAIL_SWEEP': 5, 'THUMBNAIL_SWEPT': 15,
    'COPY_NOTE': 20, 'COPY_DUE': 30, 'COPY_FIND': 25, 'COPY_LOCK': 36, 'COPY_WRITE': 110, 'COPY_DONE': 15,
    # Those of functions with what PostgreSQL reads once of its catalogues; the table has thousands of pages.
    'TASK_UNIQUE': 60, 'TASK_CANCEL_FOR': 120, 'TASK_MAKE': 60, 'TASK_MAKE_ONE': 40, 'TASK_CLAIM': 40, 'TASK_CLAIM_MANY': 50, 'TASK_STATES': 15, 'TASK_END': 40, 'TASK_END_ONE': 40,
    'TASK_STEP': 15, 'TASK_BACK': 60, 'TASK_BACK_TAKEN': 60,
    'TASK_LIST': 40, 'TASK_SHOW': 15, 'TASK_ATTEMPTS': 30, 'TASK_MOVE': 60, 'TASK_HOLD': 50, 'TASK_DROP': 40,
    'TASK_DO': 120, 'TASK_REDRIVE': 80, 'TASK_PAUSE': 40, 'TASK_PAUSED': 5, 'TASK_LIMIT': 40, 'TASK_LIMITS': 5,
    'TASK_RULES': 20,  # of one rule and its task
    'TASK_BACKLOG': 8000,  # of 10,000 rows that are counted
    'TASK_NEXT': 40, 'TASK_DUE': 400, 'TASK_OLDEST': 20, 'TASK_RUNNING': 120, 'TASK_PURGE': 150,
    'TASK_ADMIT': 40, 'TASK_EXPIRE': 60, 'TASK_REPORTED': 40, 'TASK_UNREPORTED': 60,
    # Of a queue with one task of a domain and one without; one of them is taken, kept, lost, taken again and done.
    'TASK_OWN': 20, 'TASK_CANCEL': 50,
    'TASK_TAKE': 200, 'TASK_TAKE_ONE': 40, 'TASK_TAKE_BESIDE': 200, 'TASK_FOLLOWING': 15, 'TASK_LATE': 15, 'TASK_UPCOMING': 80, 'TASK_END_TAKEN': 60, 'TASK_MAKE_PLAIN': 60, 'TASK_OVERDUE': 15, 'TASK_HELD': 30, 'TASK_KEEP': 30,
    'TASK_OPERATIONS': 8,  # however many operations there are
    'CRON_SCAN': 60, 'CRON_PLAN': 60, 'CRON_END': 80,
    # Of two documents, and of a collection of 2,500 members, all of them changed since.
    # Of a caller with a team, and a document of which it sees one item.  LIVE_DECLARE is said once in a session: some 70 of its
    # pages are of catalogues, and how many depends on how the database was made.
    'SIGHT_DECLARE': 80, 'LIVE_DECLARE': 100, 'LIVE_SIGHT': 10, 'SIGHT_CHANGES': 60, 'SIGHT_SINCE': 40, 'SIGHT_WRITTEN': 30,
    'BLOB_TOUCH': 30, 'BLOB_CLAIM': 40, 'BLOB_FIND': 10, 'BLOB_REFERENCE': 10, 'BLOB_OBJECT': 10,
    'LIVE_LOOK': 50, 'LIVE_NEWS': 40, 'LIVE_ROUND': 4, 'LIVE_RULES': 20, 'LIVE_SECRET': 4, 'LIVE_LOAD': 40, 'LIVE_SCHEMA': 10,
}
# Met only after a commit of unknown outcome; said by the task `push` alone; no plan.
UNMET = {'TASK_FIND', 'SUBSCRIPTIONS_TAKE', 'SUBSCRIPTIONS_SENT', 'SUBSCRIPTIONS_WRITTEN', 'SUBSCRIPTIONS_DROP_PUSH', 'LIVE_LISTEN',
         'VOLUMES'}  # reads every header, for administrators
# Tables of a row or so, whatever the namespace holds.
SMALL = {'namespace', 'data_key', 'encrypted_id', 'migration', 'schema', 'schema_fill', 'collection', 'unique_property', 'cron', 'since_crash', 'task_operation', 'task_early', 'task_paused', 'task_limit', 'task_debt', 'task_unique', 'sight_rules', 'sight_place', 'owner_property', 'thumbnail_sweep'}

EXPLAIN = {'auto_explain.log_min_duration': 0, 'auto_explain.log_analyze': 'on', 'auto_explain.log_timing': 'off', 'auto_explain.log_buffers': 'on',
           'auto_explain.log_format': 'json'}
FILL = f"""
set stampd.worker = on; -- no notifications
insert into doc select '{CLASS}', 'd' || lpad(n::text, 7, '0'), {OLD} + n, {OLD}, {OLD}, 20, 0 from generate_series(1, {DOCUMENTS}) n;
insert into doc select '{CLASS}', 'gone' || lpad(n::text, 7, '0'), {OLD} + n, 0, 0, 0, 0 from generate_series(1, {AGED}) n;
insert into item select '{CLASS}', 'd' || lpad(n::text, 7, '0'), i.iclass, '', {OLD} + n, i.vop, i.content, false
  from generate_series(1, {DOCUMENTS}) n cross join (values ('Gone', 0::bigint, null), ('Sta', {OLD}, '{{"a":1}}')) i(iclass, vop, content);
insert into idempotency select '', 'k' || lpad(n::text, 7, '0'), 'digest', 'application/json', '{{}}', {OLD} + n, {OLD} + n from generate_series(1, {AGED}) n;
insert into spool_series select '', lpad(n::text, 32, '0'), 0, {OLD} from generate_series(1, 100) n;
insert into spool_record select '', lpad((n % 100 + 1)::text, 32, '0'), n, repeat('0', 64), {OLD} + n from generate_series(1, {AGED}) n;
insert into taskqueue (taskid, opname, param, info, startat, created, domain)
  select 'waits' || lpad(n::text, 7, '0'), 'put', '{{}}', 'i' || n, case when n % 2 = 0 then 400101000000000 else {OLD} end, {OLD},
  case when n % 2 = 1 then 'stuck' || n % 4 end from generate_series(1, {AGED}) n;
update taskqueue set starttime = stamp_now(), holder = 'another host' where taskid in ('waits0000001', 'waits0000003');
insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime)
  select 'done' || lpad(n::text, 7, '0'), 'put', '', 0, 0, 1, {OLD}, {OLD}, 400101000000000 from generate_series(1, {AGED}) n;
"""


def text_of(literals):
    """The text of C string literals that stand side by side."""
    return ''.join(json.loads(literal) for literal in re.findall(r'"(?:[^"\\]|\\.)*"', literals))


def statements():
    """SQL of every statement in the tables, and its word."""
    known = {}
    for path, prefix in [*((path, '') for path in SOURCE.glob('src/store/statements_*_table.h')), (SOURCE / 'src/live/live_statement_table.h', 'LIVE_')]:
        table = path.read_text()
        found = re.findall(r'^STATEMENT\(\s*(\w+),\s*"\w+",\s*\d+,((?:\s*"(?:[^"\\]|\\.)*")+)\)', table, re.MULTILINE)
        assert len(found) == len(re.findall(r'^STATEMENT\(', table, re.MULTILINE))
        known.update((text_of(literals), prefix + word) for word, literals in found)
    return known


def nodes(plan):
    yield plan
    for child in plan.get('Plans', ()):
        yield from nodes(child)


TRIED = 'prepare tried as '


def plans(stack, offset):
    """What the log holds from there on: each plan with the word of its statement."""
    known = statements()
    log = stack.log('postgres')[offset:]
    for match in re.finditer(r' duration: [\d.]+ ms  plan:\n((?:\t.*\n)+)', log):
        told = json.loads(match[1])
        text = told['Query Text'].removeprefix(TRIED)
        if text in known:
            yield known[text], told['Plan']


COPIED = {'items': {'Sta': {'singleton': True}, 'Emp': {'copies': {'to': ['Copier']}}}}
COPIER = {'items': {'Emp': {}}}
# Copies of others: of each of some documents in ten; and what is due of documents whose tasks were dropped.
FILL_COPIES = f"""
insert into item select 'Copier', 'c' || lpad(n::text, 7, '0'), 'Emp', 'e' || n % 7 || '.d' || lpad((n / 10)::text, 7, '0'), {OLD}, {OLD},
  '{{}}', false from generate_series(1, {AGED}) n;
insert into doc select 'Copier', 'c' || lpad(n::text, 7, '0'), {OLD}, {OLD}, {OLD}, 20, 0 from generate_series(1, {AGED}) n;
insert into copy_due select 'Copied', 'd' || lpad(n::text, 7, '0'), 'Emp', 'x', {OLD} from generate_series(1, {AGED}) n
"""
BADGE = {'items': {'Main': {'singleton': True}}, 'unique': {'number': {'key': ['Main.number'], 'global': True}}}
CLUB = {'items': {'Main': {'singleton': True}}, 'collections': {'town': {'key': ['Main.town'], 'mutable': True}}, 'maxLife': 'Main.until'}
# Members of a collection, a tenth of them gone; a hundred towns.  A third will end by itself.
FILL_MEMBERS = f"""
insert into member select c.number, 'm' || lpad(n::text, 7, '0'), 'town' || n % 100, {OLD} + n, (n % 1000)::text::xid8, n % 10 = 0,
  case when n % 3 = 0 then 1000000000 + n end from generate_series(1, {DOCUMENTS}) n cross join collection c;
insert into expiry select 'Club', 'm' || lpad(n::text, 7, '0'), 1000000000 + n from generate_series(1, {DOCUMENTS}) n where n % 3 = 0
"""

# Documents of a thousand accounts.
FILL_OWNED = f"""
insert into owned select 'Owned', 'o' || lpad(n::text, 7, '0'), 'account' || n % 1000, 20 from generate_series(1, {DOCUMENTS}) n;
insert into account_bytes select 'account' || n, 20000 from generate_series(1, {AGED}) n
"""

# Files, each of a document and claimed by an account.
FILL_FILES = f"""
insert into blob select sha256(n::text::bytea), 10, {OLD} from generate_series(1, {AGED}) n;
insert into blob_ref select 'Filed', 'f' || lpad(n::text, 7, '0'), 'a', sha256(n::text::bytea), 'a/b' from generate_series(1, {AGED}) n;
insert into blob_claim select sha256(n::text::bytea), 'account' || n, 991231000000000 from generate_series(1, {AGED}) n
"""

# Sessions that want to hear of a document each, and a hundred of them of a town.
FILL_SUBS = f"""
insert into subscription select 'session-' || lpad(n::text, 16, '0'), {OLD}, 1000000000, 'https://push.example/', 'p', 'a' from generate_series(1, {AGED}) n;
insert into subscription_definition select k.key, 'session-' || lpad(n::text, 16, '0'), 'def' from generate_series(1, {AGED}) n
  cross join lateral (values ('d{CLASS}/@s' || lpad(n::text, 7, '0')), ('mClub/town@s' || n / 100), ('dOther/@x')) k(key);
insert into subscription_matched select 'session-' || lpad(n::text, 16, '0'), n % 3, 'dOther/@x', {OLD} from generate_series(1, {AGED}) n
"""
# Claims of other namespaces.
FILL_CLAIMS = f"""
insert into global_value select 'Badge', 'number', 'n' || n, 'stampd_other', n from generate_series(1, {AGED}) n
"""


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = kit.build('tasks.c')
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def filled(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Badge': BADGE, 'Club': CLUB, 'Copied': COPIED, 'Copier': COPIER})
    stack.psql('z', FILL_CLAIMS)
    for statement in ';\n'.join(text.strip().rstrip(';') for text in (FILL_MEMBERS, FILL_OWNED, FILL, FILL_COPIES, FILL_SUBS, FILL_FILES)).split(';\n'):
        stack.psql('lab', statement)
    for name, value in {'session_preload_libraries': "'auto_explain'", **EXPLAIN}.items():
        stack.psql(None, f'alter role stampd set {name} = {value}')
    return stack


def exercise(stack, ids):
    """Makes the server run every statement."""
    one, two, three, fresh = ids
    sta = [{'c': 'Sta', 'j': {'a': 2}}]
    stack.get('lab', (CLASS, one))
    stack.psql('lab', 'select put_item(%s, %s, %s, %s, %s)', (CLASS, one, 'Sta', '', '{"a":"psql"}'))
    wait_until(lambda: stack.get('lab', (CLASS, one))['items'][0]['j'] == {'a': 'psql'})  # a copy is brought up to date
    stack.put('lab', {'c': CLASS, 'id': one, 'items': sta})  # one document, whose aged tombstone is forgotten
    stack.put('lab', {'c': CLASS, 'id': two, 'items': sta}, {'c': CLASS, 'id': three, 'items': sta})
    for _ in range(2):
        done = stack.request('POST', '/lab/op/put', json={'param': {'docs': [{'c': CLASS, 'id': fresh, 'items': sta}]}},
                             headers={'Idempotency-Key': fresh})
        assert done.status_code == 200, done.text
    stack.put('lab', {'c': CLASS, 'id': fresh, 'delete': True})
    stack.put('lab', {'c': CLASS, 'id': fresh, 'items': sta})
    stack.put('lab', {'c': 'Club', 'id': fresh, 'items': [{'c': 'Main', 'j': {'town': 'town7', 'until': 10**9}}]})
    town = {'c': 'Club', 'collection': 'town', 'value': 'town7', 'want': 'ids', 'limit': 10}
    stack.psql('lab', 'delete from since_crash')
    page = stack.op('lab', 'collection', town)['out']
    assert len(page['ids']) == 10
    assert len(stack.op('lab', 'collection', {**town, 'cursor': page['cursor']})['out']['ids']) == 10
    token = stack.op('lab', 'collection', {**town, 'value': 'none'})['out']['token']
    assert stack.op('lab', 'collection', {**town, 'value': 'none', 'token': token})['out']['complete'] is False
    stack.put('lab', {'c': 'Club', 'id': f'lone {fresh}', 'items': [{'c': 'Main', 'j': {'town': fresh}}]})
    lone = stack.request('POST', '/lab/op/collection', json={'param': {'c': 'Club', 'collection': 'town', 'value': fresh, 'stream': True}})
    assert lone.text.count('\n') == 2, lone.text
    assert len(stack.op('lab', 'list', {'c': CLASS, 'prefix': 'd01', 'limit': 10})['out']['docs']) == 10
    assert len(stack.op('lab', 'list', {'c': CLASS, 'cursor': 'd0160000', 'limit': 10})['out']['docs']) == 10
    assert CLASS in str(stack.op('lab', 'list', {})['out'])
    many = [{'c': CLASS, 'id': f'd{int(one[1:]) + 1000 + number:07}'} for number in range(70)]
    assert len(stack.op('lab', 'sync', syncs=many)['syncs']) == 70
    with pytest.raises(Problem):
        stack.op('lab', 'find', {'c': CLASS, 'i': 'Sta'})


def exercise_claims(stack, turn):
    stack.psql('z', "insert into global_value values ('Badge', 'number', %s, 'stampd_demo', 0)", (turn,))
    for number in (turn, f'{turn} too'):
        stack.put('lab', {'c': 'Badge', 'id': 'one', 'items': [{'c': 'Main', 'j': {'number': number}}]})
    assert stack.psql('z', "select value from global_value where database = 'stampd_lab' and value like %s", (f'{turn}%',)) == [(f'{turn} too',)]


def exercise_copies(stack, turn):
    manager = Manager(stack, 'lab')
    content = {'c': 'Emp', 'k': 'e1', 'j': {'turn': turn}}
    stack.put('lab', {'c': 'Copier', 'id': 'fresh', 'items': [{'c': 'Emp', 'k': 'e1.d0007000', 'j': {}}]})
    stack.put('lab', {'c': 'Copied', 'id': 'd0007000', 'items': [{'c': 'Sta', 'j': {'turn': turn}}, content, {**content, 'k': 'e2'}]})
    ((taskid,),) = stack.psql('lab', "select taskid from taskqueue where opname = 'copy'")
    assert manager.run(taskid)['result'] == 'done'
    for id_, key in (('fresh', 'e1.d0007000'), ('c0070002', 'e2.d0007000')):
        assert content['j'] in [item['j'] for item in stack.get('lab', ('Copier', id_))['items'] if item['k'] == key]


def exercise_subs(stack, fresh):
    defs = [CLASS, f'{CLASS}/{fresh}', f'Club/town@{fresh}']
    assert stack.op('lab', 'subs', {'defs': defs}, session=f'session-{fresh}')['out']['defs'] == defs
    stack.psql('lab', f"update subscription set trial_from = trial_from - 1 where session = 'session-{fresh}'")  # it returns a minute later
    assert 'trial' not in stack.op('lab', 'subs', session=f'session-{fresh}')['out']
    assert stack.op('lab', 'subs', session=f'session-{fresh}')['out']['defs'] == defs
    member = {'c': 'Club', 'id': f'subs {fresh}', 'items': [{'c': 'Main', 'j': {'town': fresh}}]}
    assert stack.op('lab', 'put', {'docs': [member]}, session=f'session-{fresh}')['subs'][0][0] == defs[2]
    stack.psql('lab', 'select wake_sessions(true)')
    stack.put('lab', {'c': CLASS, 'id': 's0000007', 'items': [{'c': 'Sta', 'j': {'a': fresh}}]})
    stack.psql('lab', 'select wake_sessions(false)')
    assert stack.psql('lab', "delete from taskqueue where opname = 'push' returning resource") == [('session-0000000000000007',)]
    stack.op('lab', 'subs', {'add': defs[:1]}, session=f'session-{fresh}', admin=True)
    stack.op('lab', 'subs', {'delete': True}, session=f'session-{fresh}')


def try_alone(stack, word, arguments):
    """A statement that only a task or an operation of a module runs, by the plan that fits all parameters."""
    (text,) = [text for text, name in statements().items() if name == word]
    for statement in ("load 'auto_explain'", *(f'set {name} = {value}' for name, value in EXPLAIN.items()), 'set plan_cache_mode = force_generic_plan',
                      TRIED + text, f'execute tried({arguments})' if arguments else 'execute tried', 'deallocate tried', 'set auto_explain.log_min_duration = -1', 'reset plan_cache_mode'):
        stack.psql('lab', statement)


def exercise_matches(stack):
    classes, names, keys = ("array_fill('{}'::text, array[{}])".format(word, '{count}') for word in ('Club', 'town', 'Main.town'))
    four, two = (', '.join(one.format(count=count) for one in (classes, names, keys)) for count in (4, 2))
    try_alone(stack, 'SUBSCRIPTIONS_MEMBERS', f"{four}, '{{town7,town8,town9,none}}', '{{m0000007,m0000008,m0000007,m0200000}}'")
    try_alone(stack, 'SUBSCRIPTIONS_CHANGED', f"{two}, '{{town7,town8}}', '{{18446744073709551615,900}}', '{{zz,m05}}', '{{1,1}}', 16")
    try_alone(stack, 'SUBSCRIPTIONS_LEFT', "'Club', 'town', 'town7', '999', '18446744073709551615', '', 16")
    try_alone(stack, 'SIGHT_HAD', "'Club', '{m0000007,m0200000}', '{1,1}', '{m:a,t:b}'")


def exercise_thumbnails(stack):
    """What only tasks run; a scan asks whether a sweep is due."""
    sha = hashlib.sha256(b'7').hexdigest()
    try_alone(stack, 'THUMBNAIL_REASONS', f"'{{{sha}}}'")
    try_alone(stack, 'THUMBNAIL_REFUSE', f"'{sha}', 'damaged image'")
    try_alone(stack, 'THUMBNAIL_NOTE', f"'{CLASS}', 'd0000007', 'small 64x64', 1")
    try_alone(stack, 'THUMBNAIL_PAGE', "'Filed', 'small 64x64', 'f0050000', 100")
    try_alone(stack, 'THUMBNAIL_SWEEP', None)
    try_alone(stack, 'THUMBNAIL_SWEPT', "0, 0, null, null, 1")


def exercise_owners(stack, fresh):
    """By a quota of accounts the worker itself would declare them; without one it withdraws them."""
    stack.psql('lab', "select owners_declare('{\"Owned\":\"Main.owner\"}')")
    for owner in ('account7', 'account8'):
        stack.put('lab', {'c': 'Owned', 'id': fresh, 'items': [{'c': 'Main', 'j': {'owner': owner}}]}, admin=True)
    assert stack.psql('lab', 'select account from owned where id = %s', (fresh,)) == [('account8',)]
    try_alone(stack, 'OWNED_ROOM', "'Owned', 'o0000007'")
    stack.put('lab', {'c': 'Owned', 'id': fresh, 'delete': True}, admin=True)
    stack.put('lab', {'c': 'Owned', 'id': fresh, 'items': [{'c': 'Main', 'j': {'owner': owner}}]})
    assert stack.psql('lab', 'select owners from schema') == [('{}',)]


SPOOLED = itertools.count(step=2)


def exercise_tasks(stack):
    manager = Manager(stack, 'lab')
    for _ in range(2):
        stack.op('lab', 'task', {'op': 'put', 'param': {'docs': []}, 'resource': 'r'})
        stack.op('lab', 'task', {'op': 'put', 'param': {'docs': []}, 'resource': 'r', 'unique': 60})
    first = next(SPOOLED)
    records = [{'n': AGED + first + n, 'd': '0' * 64, 'task': {'op': 'put', 'param': {'docs': []}, 'info': 'spooled'}} for n in (1, 2)]
    for _ in range(2):
        stack.op('lab', 'spool', {'series': '7'.zfill(32), 'records': records}, admin=True)
    stack.op('lab', 'task', {'tasks': [{'op': 'put', 'param': {'docs': []}, 'info': 'spooled', **more} for more in ({}, {'resource': 'spooled'})]})
    stack.psql('lab', "delete from taskqueue where info = 'spooled'")
    stack.op('lab', 'Plan', {'tasks': [{'op': 'put', 'param': {'docs': []}}, {'op': 'Fail', 'param': {'id': 'x'}},
                                       {'op': 'Cycles', 'param': {'id': 'x', 'cycles': 2}},
                                       {'op': 'put', 'param': {'docs': []}, 'domain': 'd'}]})
    stack.op('lab', 'Plan', {'tasks': [{'op': 'Count', 'param': {'id': 'x'}, 'delay': 86400, 'resource': name} for name in 'ab']})
    stack.op('lab', 'Plan', {'tasks': [], 'cancel': [{'op': 'Count', 'resource': name} for name in 'abc']})
    stack.op('lab', 'Plan', {'tasks': [{'op': 'Bulk', 'param': {'id': f'x{turn}'}} for turn in range(2)]})
    due = manager.due()
    assert len(due) == 7, 'those of the domains that are at work do not come'
    manager.run_many(due[:2])
    together = [row['id'] for row in manager.scan()['due'] if row['op'] == 'Bulk']
    manager.run_many(together)
    assert manager.run(together[0])['result'] == 'gone'
    for task in due[2:]:
        manager.post(task)
    assert len(manager.scan(unreported=5, failures=1)['running']) == 2
    manager.post(param={'reported': [{'id': 'nosuchtask', 'retry': 1}]})
    # A worker that has found nothing tries TASK_TAKE_ONE again after 15 takes.
    stack.psql('lab', "select task_create('External', qn => 16) from generate_series(1, 16)")
    for _ in range(16):
        assert stack.op('lab', 'take', {'qn': 16}, admin=True)['out']['tasks']
    stack.psql('lab', 'delete from taskqueue where qn = 16')
    for domain in (None, 'external'):
        stack.psql('lab', "select task_create('External', qn => 16, domain => %s)", (domain,))
    for _ in range(2):
        (taken,) = stack.op('lab', 'take', {'qn': 16}, admin=True)['out']['tasks']
        claim = {name: taken[name] for name in ('id', 'starttime', 'retry')}
        stack.op('lab', 'keep', claim, admin=True)
        stack.psql('lab', 'update taskqueue set expires = 200101000000000 where expires is not null')
    (taken,) = stack.op('lab', 'take', {'qn': 16}, admin=True)['out']['tasks']
    for _ in range(2):
        stack.op('lab', 'done', {**{name: taken[name] for name in ('id', 'starttime', 'retry')}, 'take': {'qn': 16}}, admin=True)
    for act in ('show', 'cancel'):
        stack.op('lab', 'owntask', {act: taken['id']}, admin=True)
    stack.psql('lab', "select task_create('External', qn => 16, domain => 'external')")
    (taken,) = stack.op('lab', 'take', {'qn': 16}, admin=True)['out']['tasks']
    stack.op('lab', 'fail', {name: taken[name] for name in ('id', 'starttime', 'retry')}, admin=True)
    stack.psql('lab', 'delete from taskqueue where qn = 16')
    assert stack.op('lab', 'take', {'qn': 16}, admin=True)['out']['tasks'] == []
    with Client(stack) as client:
        assert client.op('lab', 'task', {'op': 'Count', 'param': {'id': 'asked'}, 'delay': 86400}).status == 200
    for look in ({'list': {}}, {'list': {'info': 'i7777'}}, {'list': {'retry': 1}}, {'list': {'from': OLD}}, {'history': {}},
                 {'history': {'failures': True}}, {'history': {'info': 'i7777'}}, {'backlog': True}, {'show': 'waits0007777'},
                 {'list': {'state': 'parked', 'limit': 5}}, {'list': {'exc': 'LOST', 'retry': 1}}, {'hold': {'info': 'i7777', 'dry': True}}, {'pause': {'op': 'Paused'}}, {'resume': {'op': 'Paused'}}, {'redrive': {'info': 'i7777', 'dry': True}}, {'limit': {'op': 'Paused', 'running': 1}}, {'limit': {'op': 'Paused'}},
                 {'move': {'id': 'waits0007777', 'startat': 400101000000000}}, {'hold': 'waits0007777'}, {'run': 'waits0007777'}):
        assert stack.op('lab', 'tasks', look, admin=True)['out']
    once = stack.op('lab', 'task', {'op': 'put', 'param': {'docs': []}, 'delay': 1000})['out']['id']
    assert stack.op('lab', 'tasks', {'drop': once}, admin=True)['out']['result'] == 'dropped'
    stack.psql('lab', "select cron_set('Rule', 'put', 'D0000', '{\"docs\":[]}')")
    manager.scan()
    assert stack.op('lab', 'tasks', {'rules': True}, admin=True)['out']['rules'][0]['state'] == 'planned'
    assert stack.op('lab', 'schema', admin=True)['out']['filling'] == []
    (taskid,), = stack.psql('lab', "update taskqueue set startat = stamp_now() where cron = 'Rule' returning taskid")
    assert manager.run(taskid)['result'] == 'done'
    stack.psql('lab', "select cron_drop('Rule')")
    stack.psql('lab', "delete from taskqueue where opname = 'Fail'")


def club(id_, town):
    """Each time with another content, hence a change."""
    return {'c': 'Club', 'id': id_, 'items': [{'c': 'Main', 'j': {'town': town, 'turn': next(TURNS)}}]}


def write_until_told(lines, write):
    """Writes until an event bears what `write` returns; a reset may come instead, since `exercise` begins an incarnation."""
    written = write()
    for line in lines:
        if line == 'event: reset':
            written = write()
        elif line.startswith('data: {"changed"') and written in line:
            return


def exercise_live(stack, id_):
    """A listener receives a change, and resumes."""
    definitions = [f'{CLASS}/{id_}', f'{CLASS}/none', 'Club/town@town8', 'Club/m0000008']
    last = None
    for turn in range(2):
        headers = {'Last-Event-ID': last} if last else {}
        answer = stack.http.post(f'{stack.url}/lab/live', json={'defs': definitions}, headers=headers, stream=True, timeout=60)
        lines = answer.iter_lines(chunk_size=1, decode_unicode=True)
        assert next(line for line in lines if line.startswith('event: ')) == 'event: ready'
        write_until_told(lines, lambda: stack.put('lab', club('m0000008', 'town8')) and 'town8')
        last = next(line for line in lines if line.startswith('id: '))[4:]
        answer.close()


def exercise_live_rules(stack, id_, offset):
    """Where rules decide, documents are loaded before their events are sent.  With many hosts the process for live events
    receives the rules by a notification, so the first listeners may be judged by the former access."""
    (conf,) = stack.get('z', ('Namespace', 'lab'), admin=True)['items']
    ruled = [{'c': 'Conf', 'j': {**conf['j'], 'access': 'rules'}}, {'c': 'Rules', 'j': {'Club': {'owner': 'Main.owner', 'read': ['anybody', 'owner']}}}]
    stack.put('z', {'c': 'Namespace', 'id': 'lab', 'items': ruled}, admin=True)

    def is_judged():
        with stack.http.post(f'{stack.url}/lab/live', json={'defs': [f'Club/{id_}']}, stream=True, timeout=60) as answer:
            if answer.status_code != 200:  # connections that were closed just now still count
                return False
            lines = answer.iter_lines(chunk_size=1, decode_unicode=True)
            assert next(line for line in lines if line.startswith('event: ')) == 'event: ready'
            write_until_told(lines, lambda: str(stack.put('lab', club(id_, 'town9'), admin=True)))
        return 'LIVE_LOAD' in {word for word, _ in plans(stack, offset)}
    wait_until(is_judged, what='an event that was judged')
    stack.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Conf', 'j': conf['j']}, {'c': 'Rules', 'del': True}]}, admin=True)
    stack.psql('lab', 'alter table stampd.item disable trigger sight_insert, disable trigger sight_update, disable trigger sight_delete')
    stack.psql('lab', 'update stampd.sight_rules set mark = 0')


def send_file(stack, id_, content, key=None):
    """Returns its digest."""
    headers = {'Authorization': f'Bearer {key}'} if key else {}
    answer = stack.http.put(f'{stack.url}/lab/doc/Club/{id_}/file/a', data=content, headers={'Content-Type': 'a/b', **headers}, timeout=60)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()['sha']


def exercise_files(stack, number):
    """A file is sent, attached to another document by its digest, and read there after it was removed."""
    stack.put('lab', {'c': 'Club', 'id': f'file{number}', 'items': []})
    sha = send_file(stack, f'file{number}', f'file {number}'.encode())
    stack.put('lab', {'c': 'Club', 'id': f'copy{number}', 'items': [{'c': 'P', 'k': 'b', 'sha': sha}]})
    stack.put('lab', {'c': 'Club', 'id': f'copy{number}', 'items': [{'c': 'P', 'k': 'b', 'del': True}]})
    assert stack.http.get(f'{stack.url}/lab/doc/Club/copy{number}/file/sha/{sha}', timeout=60).status_code == 200
    try_alone(stack, 'BLOB_OBJECT', f"'{sha}'")


def exercise_sight(stack, number):
    """A caller under rules synchronises a collection, of which it has lost and gained members."""
    (conf,) = stack.get('z', ('Namespace', 'lab'), admin=True)['items']
    rules = {'Club': {'owner': 'Main.owner', 'team': {'class': 'Crew', 'id': 'Main.crew', 'members': 'Member'}, 'read': ['owner', 'team'],
                      'list': ['owner', 'team'], 'update': ['owner'], 'items': {'Shut': {'see': []}}}}
    ruled = [{'c': 'Conf', 'j': {**conf['j'], 'access': 'rules', 'accounts': {}}}, {'c': 'Rules', 'j': rules}]
    stack.put('z', {'c': 'Namespace', 'id': 'lab', 'items': ruled}, admin=True)
    owner, secret = 'A' * 22, 'A' * 43
    digest = hashlib.sha256(secret.encode()).hexdigest()
    stack.put('lab', {'c': 'Account', 'id': owner, 'items': [
        {'c': 'Self', 'j': {'name': 'ann', 'created': 200101000000000}}, {'c': 'Sess', 'k': digest, 'j': {'created': 200101000000000, 'expires': 991231000000000}}]}, admin=True)
    def club(id_, **content):
        stack.put('lab', {'c': 'Club', 'id': id_, 'items': [{'c': 'Main', 'j': content}]}, admin=True)
    def ask(**place):
        param = {'c': 'Club', 'collection': 'town', 'value': 'sight', 'want': 'ids', **place}
        return stack.request('POST', '/lab/op/collection', json={'param': param}, headers={'Authorization': f'Bearer st_{owner}.{secret}'}).json()['out']
    stack.put('lab', {'c': 'Crew', 'id': 'crew', 'items': [{'c': 'Member', 'k': owner, 'j': {}}]}, admin=True)
    token = ask()['token']
    token = token if not ask(token=token)['complete'] else ask()['token']
    for id_ in (f's{number}', f't{number}', f'u{number}'):
        club(id_, town='sight', owner=owner)
    send_file(stack, f's{number}', f'file of {number}'.encode(), f'st_{owner}.{secret}')
    token = ask(token=token)['token']
    club(f's{number}', town='sight', owner='another')
    club(f't{number}', town='elsewhere', owner=owner)
    club(f'u{number}', town='sight', owner=owner, crew='crew')
    out = ask(token=token)
    assert not out['complete'] and sorted(one[0] for one in out['left']) == [f's{number}', f't{number}'] and out['ids'], out
    stack.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Conf', 'j': conf['j']}, {'c': 'Rules', 'del': True}]}, admin=True)
    stack.psql('lab', 'alter table stampd.item disable trigger sight_insert, disable trigger sight_update, disable trigger sight_delete')
    stack.psql('lab', 'update stampd.sight_rules set mark = 0')


def judge(stack, offset, not_again):
    seen = {}
    for word, plan in plans(stack, offset):
        pages = plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
        seen[word] = max(pages, seen.get(word, 0))
        for node in nodes(plan):
            if node['Node Type'] == 'Seq Scan':
                assert node['Relation Name'] in SMALL, f'{word} reads all of {node["Relation Name"]}'
    seen.update((word, 0) for word in not_again)  # of a row or so, once a session
    assert set(seen) == set(statements().values()) - UNMET, 'each statement has run'
    assert set(PAGES) == set(seen), 'each statement has a bound'
    assert {word: pages for word, pages in seen.items() if pages > PAGES[word]} == {}


@pytest.mark.parametrize('statistics', ['without statistics', 'with statistics'])
def test_every_statement_goes_by_an_index_and_touches_few_pages(filled, statistics):
    stack = filled
    if statistics == 'with statistics':
        stack.psql('lab', 'vacuum analyze')
        stack.psql('z', 'vacuum analyze')
    stack.restart_stampd()
    number = 150_000 if statistics == 'with statistics' else 170_000
    for turn in range(2):  # the first time functions are compiled, which reads catalogues
        offset = len(stack.log('postgres'))
        exercise(stack, [f'd0{number + 3 * turn + step}' for step in range(3)] + [f'{statistics.replace(" ", "-")}-{turn}'])
        exercise_subs(stack, f'{statistics.replace(" ", "-")}-{turn}')
        exercise_matches(stack)
        exercise_thumbnails(stack)
        exercise_owners(stack, f'{statistics.replace(" ", "-")}-{turn}')
        exercise_tasks(stack)
        exercise_copies(stack, f'{statistics} {turn}')
        exercise_claims(stack, f'{statistics} {turn}')
        exercise_live(stack, f'd0{number + turn}')
        exercise_files(stack, f'{number}{turn}')
        exercise_sight(stack, f'{number}{turn}')
        exercise_live_rules(stack, f'ruled {statistics} {turn}', offset)
    judge(stack, offset, {'SCHEMA', 'LIVE_RULES', 'LIVE_SECRET'})

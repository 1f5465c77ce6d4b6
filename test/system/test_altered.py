"""What stands in the database may be altered by hand, or by a fault of the machine: it is answered with a fault, and kills no worker."""
import contextlib
import json

import psycopg2
import pytest

from again import again
from kit import Kit
from schema import Schemas
from stack import wait_until
from test_accounts import Made, bearer

STACK = {'workers': 2, 'settings': {'hosts': 'many', 'limit_kept_bytes': 4096}}
NUMBERS = [None, -2**63, -1, 0, 1, 5, 991231235959999, 999999999999999, 10**15, 2**63 - 1]
SMALL = [None, -1, 0, 1, 32767]
TEXTS = [None, '', 'x', '{', '[]', 'null', '{"a":[]}', '[[]]', '[["Note"]]', '[["Note",1,null]]', '[["Note","x",-5]]', '"x"', '12', '200 x', '200 -5', '999 5',
         '{"v":}', '{"v":99999999999999999999}', '{"v":"x"}', 'application/json', 'text/plain\r\nX-Evil: 1', 'text/\x01', 'é', 'x' * 300, 'z' * 64, '[' * 5000]
VALUES = {'bigint': NUMBERS, 'integer': [*SMALL, 2**31 - 1], 'smallint': SMALL, 'text': TEXTS, 'boolean': [None, True, False],
          'bytea': [None if text is None else text.encode() for text in TEXTS] + [b'\xff\xfe', b'[' * 200000]}
CLEAN = {'BCONTENT', 'BINTERNAL', 'XDATABASE', 'AKEYREUSED', 'CONTENTION', 'AVERSION', 'ALIMIT', 'AARG', 'NDOCUMENT', 'NSUBSCRIPTION', 'BMODULE', 'NFIELD', 'AUNIQUE', 'NCOLLECTION', 'ODATABASE', 'OBUILDING', 'XBUSY', 'AFIXED'}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = ' '.join(map(str, [kit.build_example(), kit.build('trial.c')]))
    yield kit


def columns(stack, table):
    return stack.psql('lab', "select column_name, data_type from information_schema.columns where table_schema = 'stampd' and table_name = %s"
                      " order by ordinal_position", (table,))


def drop_rules(stack, table):
    """Whatever the table does not let in, so that it may be there."""
    for name, in stack.psql('lab', "select conname from pg_constraint where conrelid = %s::regclass and contype = 'c'", (f'stampd.{table}',)):
        stack.psql('lab', f'alter table {table} drop constraint "{name}"')
    keys = {name for name, in stack.psql('lab', 'select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)'
                                                ' where i.indrelid = %s::regclass and i.indisprimary', (f'stampd.{table}',))}
    for name, _ in columns(stack, table):
        if name not in keys:
            stack.psql('lab', f'alter table {table} alter column "{name}" drop not null')


def judge(answer, what):
    """nginx answers 502 in place of a worker that has died of the request; that none has is looked at once after all requests of an alteration:
    it takes the test as long as a request."""
    assert answer.status_code not in (502, 504) and 'X-Evil' not in answer.headers, (what, answer.status_code, answer.text)
    if answer.status_code >= 400:
        assert answer.json()['code'] in CLEAN, (what, answer.text)


def alterations(stack, table, but=(), few=False):
    for column, kind in columns(stack, table):
        for value in VALUES.get(kind, [])[::3 if few else 1]:
            if column not in but:
                yield column, value


def alter(stack, table, column, value, where):
    """False: the database does not let it in."""
    try:
        stack.psql('lab', f'update {table} set "{column}" = %s where {where}', (value,))
        return True
    except psycopg2.Error:
        return False


def shown(value):
    return value if value is None or not isinstance(value, (str, bytes)) else value[:30]


def test_a_kept_answer_may_be_anything(stack):
    requests = {
        'put': ('POST', '/lab/op/put', {'param': {'docs': [{'c': 'Note', 'id': 'kept', 'items': [{'c': 'T', 'j': 1}]}]}}),
        'resource': ('PUT', '/lab/doc/Note/kept-resource', {'items': [{'c': 'T', 'j': 1}]}),
        'delete': ('DELETE', '/lab/doc/Note/kept-deleted', None),
        'enrol': ('POST', '/lab/op/Enrol', {'param': {'asso': 'chess', 'member': '7', 'name': 'Ann'}}),
    }
    stack.op('lab', 'FoundAsso', {'asso': 'chess', 'title': 'Chess'}, admin=True)
    stack.put('lab', {'c': 'Note', 'id': 'kept-deleted'})
    drop_rules(stack, 'idempotency')
    pids, tried, refused = stack.worker_pids(), 0, set()
    for name, (method, path, body) in requests.items():
        def send(method=method, path=path, body=body, name=name):
            return stack.request(method, path, json=body, headers={'Idempotency-Key': f'key-{name}'})

        first = send()
        assert first.status_code < 300, first.text
        stack.psql('lab', 'create table kept as select * from idempotency where key = %s', (f'key-{name}',))
        before = stack.psql('lab', 'select class, id, version from doc order by class, id')
        for column, value in alterations(stack, 'idempotency', but=('account', 'key')):
            if column == 'at' and value is not None and value < 2**62:
                continue  # too old: forgotten, as it should be
            assert alter(stack, 'idempotency', column, value, f"key = 'key-{name}'")
            answer = send()
            judge(answer, (name, column, shown(value)))
            assert stack.worker_pids() == pids, (name, column, shown(value))
            if answer.status_code >= 400:
                refused.add((name, column, answer.json()['code']))
                if answer.json()['code'] == 'BCONTENT':
                    assert answer.json()['phase'] == 3, answer.text
            assert stack.psql('lab', 'select class, id, version from doc order by class, id') == before
            stack.psql('lab', f"delete from idempotency where key = 'key-{name}'; insert into idempotency select * from kept")
            tried += 1
        again = send()
        assert again.content == first.content and again.headers['Idempotency-Replayed'] == 'true'
        stack.psql('lab', 'drop table kept')
    assert tried > 250
    for name in requests:
        for column, code in (('digest', 'AKEYREUSED'), ('mime', 'BCONTENT'), ('answer', 'BCONTENT'), ('version', 'BCONTENT'), ('versions_after', 'BCONTENT')):
            assert (name, column, code) in refused, (name, column)


def test_a_key_is_in_no_log(stack):
    key = 'a-key-that-nobody-should-see'
    for content in (1, 1, 2):
        stack.request('POST', '/lab/op/put', json={'param': {'docs': [{'c': 'Note', 'id': 'secret', 'items': [{'c': 'T', 'j': content}]}]}},
                      headers={'Idempotency-Key': key})
    assert key not in stack.log() + stack.log('nginx')


LOOKS = [('get', {'docs': [{'c': 'Note', 'id': 'x'}]}), ('list', {'c': 'Note'}), ('list', None), ('tasks', {}), ('subs', {}),
         ('put', {'docs': [{'c': 'Note', 'id': 'x', 'items': [{'c': 'T', 'j': 7}, {'c': 'U', 'k': 'k', 'j': 1}]}]}),
         ('put', {'docs': [{'c': 'Note', 'id': 'x', 'items': [{'c': 'T', 'j': 8}, {'c': 'U', 'k': 'k', 'del': True}]}]}),
         ('put', {'docs': [{'c': 'Note', 'id': 'x', 'delete': True}]})]


@pytest.mark.parametrize('table', ['doc', 'item'])
def test_a_document_may_be_anything(stack, table):
    drop_rules(stack, table)
    pids = stack.worker_pids()
    for place, (column, value) in enumerate(alterations(stack, table, but=('class', 'id', 'iclass', 'key'), few=True)):
        for is_held in (False, True):
            name = {'c': 'Note', 'id': f'{table}-{place}-{is_held}'}
            where = f"class = 'Note' and id = '{name['id']}'"
            stack.put('lab', {**name, 'items': [{'c': 'T', 'j': 1}, {'c': 'U', 'k': 'a', 'j': 2}]})
            stack.put('lab', {**name, 'items': [{'c': 'U', 'k': 'a', 'del': True}]})
            held = stack.get('lab', (name['c'], name['id']))
            if not is_held:  # nobody has loaded it as it will be
                stack.psql('lab', f"delete from item where {where}; delete from doc where {where}; insert into doc (class, id, version, ctime, dtime, v1)"
                                  f" values ('Note', '{name['id']}-new', {held['v']}, {held['ct']}, {held['dt']}, 1);"
                                  f" insert into item (class, id, iclass, key, version, vop, content, raw) values"
                                  f" ('Note', '{name['id']}-new', 'T', '', {held['v']}, {held['v']}, '1', false)")
                name['id'] += '-new'
                where = f"class = 'Note' and id = '{name['id']}'"
            if not alter(stack, table, column, value, where):
                continue
            what = (table, column, shown(value), is_held)
            for operation, param in LOOKS:
                if param and 'docs' in param:
                    param = {'docs': [{**param['docs'][0], **name}]}
                body = {'param': param, 'syncs': [{**name, **{member: held[member] for member in ('v', 'ct', 'dt')}}], 'admin': stack.key, 'session': 'altered-session-1'}
                judge(stack.request('POST', f'/lab/op/{operation}', json={key: value for key, value in body.items() if value is not None}), (what, operation))
            assert stack.worker_pids() == pids, what
            stack.psql('lab', f'delete from item where {where}; delete from doc where {where}')


# --- tasks ---

ASKS = [{}, {'list': {}}, {'show': 'ID'}, {'history': {}}, {'history': {'task': 'ID'}}, {'backlog': {}}, {'list': {'op': 'put'}}]
ACTS = [{'hold': {'id': 'ID'}}, {'move': {'id': 'ID', 'startat': 261121103000123}}, {'run': 'ID'}, {'drop': 'ID'}]


def put_in(wish, id_):
    return json.loads(json.dumps(wish).replace('ID', id_))


def manage(stack, param=None, taskid=''):
    body = {'key': stack.queue_key} if param is None else {'key': stack.queue_key, 'param': param}
    return stack.request('POST', '/lab/od' + (f'/{taskid}' if taskid else ''), json=body)


def judge_manager(answer, what):
    """A task that fails says why in the code of its request: any but that of a worker's death."""
    assert answer.status_code not in (502, 504), (what, answer.text)
    assert answer.json(), what


@pytest.mark.parametrize('table', ['taskqueue', 'task_history'])
def test_a_task_may_be_anything(stack, table):
    stack.psql('lab', 'truncate taskqueue, task_history')
    drop_rules(stack, table)
    pids, tried = stack.worker_pids(), 0
    for column, value in list(alterations(stack, table))[::13]:  # other values for each column
        note = json.dumps({'docs': [{'c': 'Note', 'id': 'by-task', 'items': [{'c': 'T', 'j': tried}]}]})
        made = [stack.psql('lab', "select task_create('put', %s, resource => %s)", (note, f'r{tried}-{number}'))[0][0] for number in range(3)]
        if table == 'task_history':
            judge_manager(manage(stack, taskid=made[0]), 'done')
        if alter(stack, table, column, value, f"taskid = '{made[0]}'"):
            what = (table, column, shown(value))
            tried += 1
            for wish in ASKS:
                judge(stack.request('POST', '/lab/op/tasks', json={'param': put_in(wish, made[0]), 'admin': stack.key}), (what, wish))
            judge_manager(manage(stack, {'scan': {}}), (what, 'scan'))
            judge_manager(manage(stack, {'run': made[:2]}), (what, 'run together'))
            judge_manager(manage(stack, taskid=made[0]), (what, 'run'))
            for wish in ACTS:
                judge(stack.request('POST', '/lab/op/tasks', json={'param': put_in(wish, made[0]), 'admin': stack.key}), (what, wish))
            assert manage(stack, taskid=made[2]).status_code == 200, 'others are run'
            assert stack.worker_pids() == pids, what
        stack.psql('lab', 'truncate taskqueue, task_history')
    assert tried > 10


# --- subscriptions ---

@pytest.mark.parametrize('table', ['subscription', 'subscription_definition'])
def test_a_subscription_may_be_anything(stack, table):
    drop_rules(stack, table)
    session, pids, tried = 'altered-session-2', stack.worker_pids(), 0
    for column, value in list(alterations(stack, table))[::7]:
        stack.psql('lab', 'delete from subscription_definition; delete from subscription')
        stack.op('lab', 'subs', {'defs': ['Note', 'Note/heard'], 'context': 'here'}, session=session)
        if not alter(stack, table, column, value, 'true'):
            continue
        tried += 1
        what = (table, column, shown(value))
        note = {'docs': [{'c': 'Note', 'id': 'heard', 'items': [{'c': 'T', 'j': tried}]}]}
        for operation, param in (('put', note), ('subs', {}), ('subs', {'add': ['Other']}), ('subs', {'drop': ['Note']}), ('get', {'docs': []}),
                                 ('subs', {'defs': ['Note']}), ('subs', {'delete': True})):
            judge(stack.request('POST', f'/lab/op/{operation}', json={'param': param, 'session': session}), (what, operation, param))
        assert stack.worker_pids() == pids, what
    assert tried > 3


# --- schemas ---

def test_the_document_of_a_schema_may_be_anything(stack, tmp_path):
    """It is the declaration, in z; what is applied stands in tables of the namespace."""
    schemas = Schemas(stack, tmp_path)
    pids = stack.worker_pids()
    for content in [None, *TEXTS[1:]]:
        if content is not None and not alter_schema(stack, content):
            continue
        planned = stack.admin('schema', 'plan', 'lab', status=None)
        assert planned.status in (0, 1) and len(planned.text.splitlines()) < 20, (shown(content), planned.text)
        for operation, param in LOOKS[:2] + [('find', {'c': 'Note', 'i': 'T'}), ('collection', {'c': 'Note', 'collection': 'all', 'value': 'x'})]:
            judge(stack.request('POST', f'/lab/op/{operation}', json={'param': param}), ('schema', shown(content), operation))
        assert stack.worker_pids() == pids, shown(content)


def alter_schema(stack, content):
    stack.psql('z', "delete from item where class = 'Schema'; delete from doc where class = 'Schema'")
    stack.psql('z', "select put_item('Schema', 'lab', 'Conf', '', '{\"classes\":{}}')")
    try:
        stack.psql('z', "update item set content = %s where class = 'Schema'", (content,))
        return True
    except psycopg2.Error:
        return False


@pytest.mark.parametrize('table', ['schema', 'collection', 'unique_property'])
def test_an_applied_schema_may_be_anything(stack, table, tmp_path):
    Schemas(stack, tmp_path).apply('lab', {'Altered': {'items': {'Main': {'singleton': True, 'fields': {'f': 'string'}}},
                                                       'collections': {'all': {'key': ['Main.of'], 'mutable': True}}, 'unique': {'one': {'key': ['Main.f']}}}})
    drop_rules(stack, table)
    pids, tried = stack.worker_pids(), 0
    stack.psql('lab', f'drop table if exists kept_rows; create table kept_rows as select * from {table}')
    for column, value in alterations(stack, table, but=('number', 'one'), few=True):
        if not alter(stack, table, column, value, 'true'):
            continue
        stack.psql('lab', 'update schema set number = number + 1')
        tried += 1
        what = (table, column, shown(value))
        document = {'c': 'Altered', 'id': f'a{tried}', 'items': [{'c': 'Main', 'j': {'f': f'v{tried}', 'of': 'x'}}]}
        for operation, param in (('put', {'docs': [document]}), ('get', {'docs': [{'c': 'Altered', 'id': 'a1'}]}), ('find', {'c': 'Altered', 'i': 'Main'}),
                                 ('collection', {'c': 'Altered', 'collection': 'all', 'value': 'x'})):
            judge(stack.request('POST', f'/lab/op/{operation}', json={'param': param}), (what, operation))
        assert stack.worker_pids() == pids, what
        number = stack.psql('lab', 'select number from schema')[0][0]
        stack.psql('lab', f'delete from {table}; insert into {table} overriding system value select * from kept_rows')
        stack.psql('lab', 'update schema set number = %s', (number + 1,))
    stack.psql('lab', 'drop table kept_rows')
    assert tried > 3


# --- all the other tables ---

# What they hold is of many kinds: with each alteration everything is asked for that may read it.  `once`: read when a session opens.
OTHERS = {'member': 'lab', 'unique_value': 'lab', 'expiry': 'lab', 'expiry_property': 'lab', 'copy_due': 'lab', 'cron': 'lab', 'task_operation': 'lab',
          'task_early': 'lab', 'task_paused': 'lab', 'task_limit': 'lab', 'task_debt': 'lab', 'task_unique': 'lab', 'subscription_count': 'lab', 'subscription_matched': 'lab', 'schema_fill': 'lab', 'global_value': 'z', 'x_Club_Main': 'lab',
          'namespace': 'lab', 'migration': 'lab', 'since_crash': 'lab', 'blob': 'lab', 'blob_ref': 'lab', 'blob_claim': 'lab', 'blob_place': 'lab', 'volume': 'lab', 'volume_change': 'lab', 'blob_left': 'lab', 'thumbnail_done': 'lab', 'thumbnail_sweep': 'lab', 'import_progress': 'lab',
          'import_source': 'lab', 'spool_series': 'lab', 'spool_record': 'lab', 'server': 'z', 'lease': 'z', 'heartbeat': 'lab', 'host': 'z', 'host_list': 'z'}
# Where rules decide: what callers have lost, and whose the stored bytes are.
OTHERS.update({table: 'demo' for table in ('sight_rules', 'sight_place', 'sight', 'owner_property', 'owned', 'account_bytes')})
ONCE = {'import_progress', 'namespace', 'migration', 'since_crash', 'schema_fill', 'expiry_property'}
# What nothing but changes and tasks reads; an alteration of a table that is not here is asked for by every request.
UNREAD = {'unique_value', 'global_value', 'copy_due', 'cron', 'task_operation', 'task_early', 'task_paused', 'task_limit', 'task_debt', 'task_unique',
          'blob', 'blob_ref', 'blob_claim', 'blob_place', 'volume', 'volume_change', 'blob_left', 'thumbnail_done', 'thumbnail_sweep', 'import_source',
          'spool_series', 'spool_record', 'lease', 'heartbeat', 'host', 'host_list'}
# Of the tests above; data_key of test_encryption, encrypted_id of test_encrypted_ids.
ABOVE = {'data_key', 'encrypted_id', 'idempotency', 'doc', 'item', 'taskqueue', 'task_history', 'subscription', 'subscription_definition', 'schema', 'collection', 'unique_property'}
NOTE = {'items': {'Main': {'singleton': True}, 'Mem': {}}, 'collections': {'all': {'key': ['Main.of'], 'mutable': True}}}
NOTE_RULES = {'owner': 'Main.owner', 'members': 'Mem', **{right: ['owner', 'members'] for right in ('read', 'list', 'create', 'update', 'delete')}}
CLUB = {'items': {'Main': {'singleton': True, 'fields': {'f': 'string'}}, 'Emp': {'copies': {'to': ['Copier']}}},
        'collections': {'all': {'key': ['Main.of'], 'mutable': True}},
        'unique': {'one': {'key': ['Main.f']}, 'everywhere': {'key': ['Main.g'], 'global': True}}, 'maxLife': 'Main.until'}
SESSION = 'altered-session-3'
WAITING = [f"insert into subscription_matched (session, key, version) values ('{SESSION}', 'Club', 261121103000123) on conflict do nothing",
           "insert into import_progress (identity, is_merge, state) values ('x', true, 0) on conflict do nothing",
           "insert into copy_due values ('Club', 'c1', 'Emp', 'e', 1) on conflict do nothing", 'insert into task_early values (true, 1) on conflict do nothing',
           "insert into task_paused values ('op Other', null, 'Other', 1, 'x') on conflict do nothing",
           "insert into task_limit values ('op Other', null, 'Other', false, 1, 1, 1000, 1) on conflict do nothing", "insert into task_debt values ('op Other', 4e9) on conflict do nothing",
           "insert into task_unique values ('Other', 'r', 'otherothe', 981231000000000, 1) on conflict do nothing",
           "insert into volume values ('Gone', 0, 0, 0) on conflict do nothing", "insert into volume_change values ('Gone', 0, 0, 0)",
           "insert into blob_left (store, object, since) values ('own', 'x', 991231000000000) on conflict do nothing",
           "insert into thumbnail_done values ('Club', 'c1', 'small 64x64', 1) on conflict do nothing",
           "insert into import_source (source, position) values ('x', '{}') on conflict do nothing",
           "insert into spool_series values ('', repeat('0', 32), 0, 1) on conflict do nothing",
           "insert into spool_record values ('', repeat('0', 32), 1, repeat('0', 64), 1) on conflict do nothing",
           'insert into heartbeat (installation, nonce, sent_ms) values (1, 1, 1) on conflict do nothing']
FILE = f"select blob_touch('{'ab' * 32}', 5), blob_claim('{'ab' * 32}', 'ann', 1000)"
ATTACHED = f"""insert into item values ('Club', 'c2', 'P', 'f', 1, 1, '{{"mime":"a/b","size":5,"sha":"{'ab' * 32}"}}', false)"""
BEGUN = "insert into schema_fill (class, iclass, after, done) values ('Club', '', 'c1', 1), ('Copier', '~', 'c', 1)"


def club(number, text):
    content = {'f': f'f{text}{number}', 'g': f'g{text}{number}', 'of': 'x', 'until': 10**9 + number}
    return {'c': 'Club', 'id': f'c{number}', 'items': [{'c': 'Main', 'j': content}, {'c': 'Emp', 'k': 'e', 'j': text}]}


def note(stack, number, text, members=()):
    return {'c': 'Note', 'id': f'n{number}', 'items': [
        {'c': 'Main', 'j': {'owner': stack.ann.id, 'of': 'x', 'text': text}}, *({'c': 'Mem', 'k': member, 'j': {}} for member in members)]}


def make_ruled(stack, folder):
    """Rows in the tables of a namespace with rules and a quota of bytes; ann has a session."""
    stack.op('z', 'ns', {'set': {'ns': 'demo', 'access': 'rules', 'accounts': {}, 'rules': {'Note': NOTE_RULES}, 'quotas': {'account': {'bytes': 10**6}}}},
             admin=True)
    Schemas(stack, folder).apply('demo', {'Note': NOTE})
    stack.ann, stack.token = Made(stack, 'demo', name='ann'), None
    for number in range(3):
        stack.put('demo', note(stack, number, 'first', ['bob']), admin=True)

    def is_followed():
        for name, answer in ask_ruled(stack, 'made'):
            assert answer.status_code == 200, (name, answer.text)
        stack.put('demo', {'c': 'Note', 'id': 'n2', 'items': [{'c': 'Mem', 'k': 'bob', 'del': True}]}, admin=True)
        stack.put('demo', note(stack, 2, 'again', ['bob']), admin=True)
        return all(stack.psql('demo', f'select count(*) from {table}')[0][0] for table, ns in OTHERS.items() if ns == 'demo')
    wait_until(is_followed, what='rows in each table')


def ask_ruled(stack, turn):
    """Each request of ann, with its name."""
    def op(name, param):
        return name, stack.http.post(f'{stack.url}/demo/op/{name}', json={'param': param}, headers=bearer(stack.ann.token), timeout=60)

    members = {'c': 'Note', 'collection': 'all', 'value': 'x'}
    yield op('get', {'docs': [{'c': 'Note', 'id': 'n1'}]})
    yield op('put', {'docs': [note(stack, 1, f't{turn}')]})
    yield op('put', {'docs': [{'c': 'Note', 'id': 'n2', 'delete': True}]})
    yield op('put', {'docs': [note(stack, 2, f't{turn}')]})
    name, answer = op('collection', members)
    yield name, answer
    token = answer.json().get('out', {}).get('token') if answer.status_code == 200 else stack.token
    stack.token = token or stack.token
    yield op('put', {'docs': [note(stack, 1, f't{turn} again')]})
    yield op('collection', {**members, 'token': stack.token} if stack.token else members)
    yield op('collection', {**members, 'stream': True})
    yield op('list', {'c': 'Note'})
    yield op('account', {})


@pytest.fixture(scope='module')
def scene(stack, tmp_path_factory):
    """Rows in every table."""
    Schemas(stack, tmp_path_factory.mktemp('scene')).apply('lab', {'Club': CLUB, 'Copier': {'items': {'Emp': {}}}})
    stack.psql('lab', 'truncate taskqueue, task_history')
    stack.psql('lab', "select cron_set('Altered', 'put', 'D0000', '{\"docs\":[]}')")
    for number in range(3):
        stack.put('lab', club(number, 'first'))
    stack.put('lab', {'c': 'Copier', 'id': 'copy', 'items': [{'c': 'Emp', 'k': 'e.c1', 'j': 0}]})
    stack.put('lab', club(1, 'second'))
    stack.op('lab', 'subs', {'defs': ['Club', 'Club/all@x']}, session=SESSION)
    stack.psql('lab', BEGUN)
    stack.psql('lab', FILE)
    stack.psql('lab', ATTACHED)
    manage(stack, {'scan': {}})
    make_ruled(stack, tmp_path_factory.mktemp('ruled'))
    return stack


def ask(stack, name, param, **more):
    body = more if param is None else {'param': param, **more}
    return name, stack.request('POST', f'/lab/op/{name}', json=body)


def ask_changes(stack, turn):
    """Each request that changes documents, a read of one, and the tasks; with their names."""
    yield ask(stack, 'get', {'docs': [{'c': 'Club', 'id': 'c1'}]}, session=SESSION)
    yield ask(stack, 'put', {'docs': [club(1, f't{turn}')]}, session=SESSION)
    yield ask(stack, 'put', {'docs': [{'c': 'Club', 'id': 'c2', 'delete': True}]})
    yield ask(stack, 'put', {'docs': [club(2, f't{turn}')]})
    yield ask(stack, 'tasks', {'backlog': True}, admin=stack.key)


def ask_reads(stack):
    """All other requests, with their names."""
    yield ask(stack, 'find', {'c': 'Club', 'i': 'Main'})
    yield ask(stack, 'find', {'c': 'Club', 'i': 'Main', 'want': 'items'})
    for want in ('docs', 'ids'):
        yield ask(stack, 'collection', {'c': 'Club', 'collection': 'all', 'value': 'x', 'want': want})
    yield ask(stack, 'collection', {'c': 'Club', 'collection': 'all', 'value': 'x', 'stream': True})
    yield ask(stack, 'list', {'c': 'Club'})
    yield ask(stack, 'sync', None, syncs=[{'c': 'Club', 'id': f'c{number}'} for number in range(3)])
    yield ask(stack, 'subs', {}, session=SESSION)
    yield ask(stack, 'subs', {'add': ['Other'], 'context': 'here'}, session=SESSION)
    yield ask(stack, 'subs', {'drop': ['Other']}, session=SESSION)


def ask_everything(stack, turn):
    yield from ask_changes(stack, turn)
    yield from ask_reads(stack)


def prove_unread(stack, ns, table):
    """The requests that are not asked do not read the table: they are answered while nobody may, after changes as with each alteration."""
    for name, answer in ask_changes(stack, f'{table} unread'):
        assert answer.status_code == 200, (name, answer.text)
    with contextlib.closing(psycopg2.connect(stack.conninfo(ns), options='-c search_path=stampd')) as holder:
        holder.cursor().execute(f'lock table "{table}" in access exclusive mode')
        for name, answer in ask_reads(stack):
            assert answer.status_code == 200, (table, name, answer.text)


def manage_everything(stack):
    scanned = manage(stack, {'scan': {'unreported': 5, 'failures': 1}})
    yield 'scan', scanned
    for task in scanned.json().get('due', [])[:3]:
        yield f'run {task["op"]}', manage(stack, taskid=task['id'])


def rewrite(stack, ns, table, rows):
    """The rows as they were, whatever triggers think of it."""
    stack.psql(ns, f'set session_replication_role = replica; delete from "{table}"; insert into "{table}" overriding system value select * from "{rows}";'
                   ' set session_replication_role = origin')


def some_of(found, is_once, part):
    """A third of the alterations of these columns, with other values for each column; all of them where there are few."""
    stride = 3 if is_once else 2
    all_ = [(column, value) for place, (column, kind) in enumerate(found)
            for value in VALUES.get(kind, NUMBERS[1:6] if kind == 'xid8' else [])[place % stride::stride]]
    return all_[part::3] if len(all_) > 15 else all_ if part == 0 else []


@pytest.mark.parametrize('part', [0, *again(1, 2)])
@pytest.mark.parametrize('table', OTHERS)
def test_whatever_else_stands_there_may_be_anything(scene, table, part):
    stack, ns = scene, OTHERS[table]
    for rows in WAITING:  # those that the requests of other tables have worked off
        stack.psql('lab', rows)
    stack.psql('z', "insert into host (address, endpoint, fingerprint) values ('a', '127.0.0.1:1', repeat('0', 64)) on conflict do nothing")
    for name, in stack.psql(ns, "select conname from pg_constraint where conrelid = %s::regclass and contype in ('c', 'f')", (f'stampd."{table}"',)):
        stack.psql(ns, f'alter table "{table}" drop constraint "{name}"')
    found = stack.psql(ns, "select column_name, data_type from information_schema.columns where table_schema = 'stampd' and table_name = %s", (table,))
    assert stack.psql(ns, f'select count(*) from "{table}"')[0][0], 'it has rows'
    stack.psql(ns, f'drop table if exists kept_rows; create table kept_rows as select * from "{table}"')
    pids, tried, chosen = stack.worker_pids(), 0, some_of(found, table in ONCE, part)
    questions = ask_ruled if ns == 'demo' else ask_everything
    if table in UNREAD:
        prove_unread(stack, ns, table)
        questions = ask_changes
    for column, value in chosen:
        try:
            stack.psql(ns, f'set session_replication_role = replica; update "{table}" set "{column}" = %s; set session_replication_role = origin', (value,))
        except psycopg2.Error:
            stack.psql(ns, 'set session_replication_role = origin')
            continue
        tried += 1
        what = (table, column, shown(value))
        if table in ONCE:
            stack.psql('lab', "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd' and datname = current_database()")
        for name, answer in questions(stack, f'{table}{tried}'):
            assert answer.status_code not in (502, 504), (what, name, answer.text)
            assert answer.status_code < 400 or answer.json()['code'] in CLEAN | {'XAWAY', 'OTWIN', 'AVALUE'}, (what, name, answer.text)
        for name, answer in manage_everything(stack):
            judge_manager(answer, (what, name))
        assert stack.worker_pids() == pids, what
        rewrite(stack, ns, table, 'kept_rows')
    stack.psql(ns, 'drop table kept_rows')
    if table in ONCE:
        stack.psql('lab', "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd' and datname = current_database()")
    assert tried or not chosen
    wait_until(lambda: stack.request('POST', '/lab/op/get', json={'param': {'docs': [{'c': 'Club', 'id': 'c0'}]}}).status_code == 200, what='it works again')


def test_each_table_is_altered(scene):
    """A new table needs its alterations here."""
    tables = {name for ns in ('lab', 'z') for name, in scene.psql(ns, "select relname from pg_class where relnamespace = 'stampd'::regnamespace and relkind in ('r', 'p')")}
    assert {name for name in tables if not name.startswith('x_')} == set(ABOVE) | {name for name in OTHERS if not name.startswith('x_')}
    assert not ABOVE & set(OTHERS) and any(name.startswith('x_') for name in tables)

"""Classes declared in the namespace's configuration: checked, applied while others write, side tables kept right."""
import json
import os
import random
import signal
import subprocess
import threading

import psycopg2
import pytest

from schema import Schemas, check_side, declared
from stack import PATIENCE_S, Problem, children, name_of, wait_until

STACK = {'workers': 3}

FIELDS = {'name': 'string', 'size': 'int', 'count': 'long', 'ratio': 'double', 'tags': 'string[]', 'years': 'int[]'}
PERSON = {'items': {'Adr': {'fields': FIELDS}, 'Note': {'singleton': True, 'raw': True}, 'Main': {'singleton': True}}}


@pytest.fixture
def schemas(stack, home):
    return Schemas(stack, home)


# --- declarations ---

ITEMS = {'A': {'singleton': True, 'fields': {'f': 'string', 'l': 'long[]'}}, 'K': {}}
WRONG = [
    ('{', '', 'JSON is expected'),
    ('[]', '', 'An object with the member classes is expected'),
    ('{}', '', 'The member classes is expected'),
    ('{"classes": {}, "version": 1}', 'version', 'The members here are classes'),
    ({'person': {'items': {}}}, 'classes.person', 'a capital letter'),
    ({'P': {}}, 'classes.P', 'The member items is expected'),
    ({'P': {'items': [], }}, 'classes.P.items', 'An object'),
    ({'P': {'items': {'a': {}}}}, 'classes.P.items.a', 'a capital letter'),
    ({'P': {'items': {'P': {}}}}, 'classes.P.items.P', 'reserved for attachments'),
    ({'P': {'items': {'A': {'fields': {'f': 'text'}}}}}, 'classes.P.items.A.fields.f', 'string, folded, long, int'),
    ({'P': {'items': {'A': {'fields': {'f': 7}}}}}, 'classes.P.items.A.fields.f', 'A type is expected'),
    ({'P': {'items': {'A': {'fields': {'key': 'int'}}}}}, 'classes.P.items.A.fields.key', 'are taken'),
    ({'P': {'items': {'A': {'fields': {'f"; drop': 'int'}}}}}, 'classes.P.items.A.fields.f"; drop', 'letters, digits'),
    ({'P': {'items': {'A': {'fields': {'f' * 27: 'int'}}}}}, 'classes.P.items.A.fields.' + 'f' * 27, 'up to 25 letters'),
    ({'P': {'items': {'A': {'raw': True, 'fields': {'f': 'int'}}}}}, 'classes.P.items.A.fields', 'raw text have no fields'),
    *(({'P': {'items': {'A': {'fields': {'f': field}}}}}, f'classes.P.items.A.fields.f{path}', words) for field, path, words in (
        ({'type': 'string'}, '', 'The member at is expected'), ({'at': ['a']}, '.type', 'A type is expected'), ({'type': 'text', 'at': ['a']}, '.type', 'A type is expected'),
        ({'type': 'int', 'at': []}, '', '1 to 8 names'), ({'type': 'int', 'at': 'a.b'}, '', '1 to 8 names'), ({'type': 'int', 'at': ['a'] * 9}, '', '1 to 8 names'),
        ({'type': 'int', 'at': ['a', '']}, '.at[1]', '1 to 255 bytes'), ({'type': 'int', 'at': ['x' * 256]}, '.at[0]', '1 to 255 bytes'), ({'type': 'int', 'at': [1]}, '.at[0]', 'name of a member'),
        ({'type': 'int', 'at': ['a'], 'language': 'english'}, '.language', 'The members here are type, at and collate'))),
    ({'P': {'items': {'A': {'singleton': True, 'fields': {'f': {'type': 'string', 'at': ['a', 'b']}}}}, 'unique': {'u': {'key': ['A.f']}}}}, 'classes.P.unique.u.key[0]', 'at another place'),
    ({'P': {'items': {'A': {'singleton': True, 'fields': {'f': {'type': 'int', 'at': ['a', 'b']}}}}, 'maxLife': 'A.f'}}, 'classes.P.maxLife', 'at another place'),
    ({'P': {'items': {'A': {'singleton': 1}}}}, 'classes.P.items.A.singleton', 'true or false'),
    ({'P': {'items': {}, 'release': 0}}, 'classes.P.release', 'An integer from 1'),
    ({'P': {'items': {}, 'zombieDays': 3}}, 'classes.P.zombieDays', 'An integer from 8'),
    ({'P': {'items': {}, 'colections': {}}}, 'classes.P.colections', 'The members here are release, open, items'),
    ({'P': {'items': ITEMS, 'collections': {'c': {}}}}, 'classes.P.collections.c', 'The member key is expected'),
    ({'P': {'items': ITEMS, 'collections': {'c': {'key': []}}}}, 'classes.P.collections.c.key', '1 to 4 properties'),
    ({'P': {'items': ITEMS, 'collections': {'c': {'key': ['f']}}}}, 'classes.P.collections.c.key[0]', '"Item.member"'),
    ({'P': {'items': ITEMS, 'collections': {'c': {'key': ['B.f']}}}}, 'classes.P.collections.c.key[0]', 'declared here'),
    ({'P': {'items': ITEMS, 'collections': {'c': {'key': ['K.f']}}}}, 'classes.P.collections.c.key[0]', 'a singleton'),
    ({'P': {'items': ITEMS, 'collections': {'c': {'key': ['A.l']}}}}, 'classes.P.collections.c', 'needs "list"'),
    ({'P': {'items': ITEMS, 'collections': {'c': {'key': ['A.f'], 'list': True}}}}, 'classes.P.collections.c', 'must be a list'),
    ({'P': {'items': ITEMS, 'unique': {'u': {'key': ['A.f'], 'global': 'yes'}}}}, 'classes.P.unique.u.global', 'true or false'),
    ({'P': {'items': ITEMS, 'maxLife': 'A.l'}}, 'classes.P.maxLife', 'one number'),
    ({'P': {'items': ITEMS, 'mutations': [{'item': 'A'}]}}, 'classes.P.mutations[0]', 'The member to is expected'),
    ({'P': {'items': ITEMS, 'mutations': [{'to': 2, 'item': 'A'}]}}, 'classes.P.mutations[0].to', 'An integer from 2'),
    ({'P': {'items': ITEMS, 'release': 2, 'mutations': [{'to': 2, 'item': 'X'}]}}, 'classes.P.mutations[0]', 'declared class'),
    ({'P': {'items': ITEMS, 'release': 2, 'mutations': [{'to': 2, 'item': 'A', 'drop': {}}]}}, 'classes.P.mutations[0].drop', 'A list'),
    ({'P': {'items': ITEMS, 'release': 3, 'mutations': [
        {'to': 2, 'item': 'A', 'rename': {'c': 'd'}}, {'to': 3, 'item': 'A', 'rename': {'b': 'c'}}]}}, 'classes.P.mutations', '"c" does'),
    ({'P': {'items': ITEMS, 'release': 2, 'mutations': [{'to': 2, 'item': 'A', 'rename': {'a': 'b'}, 'default': {'a': 1}}]}},
     'classes.P.mutations', '"a" does'),
]


@pytest.mark.parametrize('text, path, words', WRONG, ids=[path or str(number) for number, (_, path, _) in enumerate(WRONG)])
def test_a_wrong_declaration_is_explained(schemas, text, path, words):
    text = text if isinstance(text, str) else json.dumps({'classes': text})
    told = schemas.run('set', 'lab', '-', text=text, status=1)
    assert (f': {path}: ' if path else '') in told and words in told


def test_a_declaration_is_shown_as_it_was_given_and_as_it_is_applied(stack, schemas):
    declared = {'Thing': {
        'release': 2, 'open': True, 'items': {'A': {'singleton': True, 'fields': {'f': 'string', 'l': 'long[]'}}, 'B': {'raw': True}},
        'collections': {'byF': {'key': ['A.f'], 'mutable': True}, 'byL': {'key': ['A.l'], 'list': True}},
        'unique': {'u': {'key': ['A.f', 'A.g']}}, 'zombieDays': 30, 'maxLife': 'A.until',
        'mutations': [{'to': 2, 'item': 'A', 'rename': {'old': 'f'}, 'default': {'x': {'y': [1, "it's"]}}, 'drop': ['z']}]}}
    schemas.apply('demo', declared)
    assert json.loads(schemas.run('show', 'demo', '--declared'))['classes'] == declared
    assert json.loads(schemas.run('show', 'demo', '--json'))['classes'] == declared
    assert 'Thing.A.l' in schemas.run('show', 'demo')
    assert 'the declaration is applied' in schemas.run('plan', 'demo')


# --- side tables ---

def content(random):
    """A content for Adr: members missing, wrong, at their bounds."""
    odd = [None, True, {}, [], '', 'x' * 1024, 'x' * 1025, 'é' * 512, 'é' * 513, '\U0010ffff', 0, -1, 1.5, 2**31 - 1, 2**31, -2**31,
           -2**31 - 1, 2**63 - 1, 2**63, -2**63, -2**63 - 1, 10**30, 1e308]
    values = {
        'name': lambda: random.choice(['Ada', 'Bob', 'Čeněk', 'a"b\\c\n']), 'size': lambda: random.randint(-5, 5),
        'count': lambda: random.randint(-2**40, 2**40), 'ratio': lambda: random.choice([0.5, 2, -1e-7, 3.25]),
        'tags': lambda: [random.choice(['red', 'green', 'blue', 7]) for _ in range(random.randint(0, 4))],
        'years': lambda: [random.randint(1900, 1905) for _ in range(random.randint(0, 3))], 'other': lambda: random.randint(0, 9)}
    made = {name: random.choice(odd) if random.random() < 0.2 else value() for name, value in values.items() if random.random() < 0.8}
    return made if random.random() < 0.95 else random.choice(odd[1:])


def change(random, ids):
    """A document for `put`."""
    document = {'c': 'Person', 'id': random.choice(ids), 'items': []}
    if random.random() < 0.15:
        document['delete'] = True
        if random.random() < 0.5:
            return document
    for key in random.sample('abcd', random.randint(1, 3)):
        document['items'].append({'c': 'Adr', 'k': key, 'del': True} if random.random() < 0.2 and not document.get('delete')
                                 else {'c': 'Adr', 'k': key, 'j': content(random)})
    if random.random() < 0.3:
        document['items'].append({'c': 'Note', 's': 'raw'})
    return document


def test_side_tables_follow_every_writer(stack, schemas):
    chance = random.Random(61)
    ids = [f'p{number}' for number in range(20)]
    for _ in range(60):
        stack.put('lab', change(chance, ids))
    schemas.apply('lab', {'Person': PERSON})
    assert check_side(stack, 'lab', 'Person', 'Adr', FIELDS) > 20
    for _ in range(150):
        stack.put('lab', *{document['id']: document for document in (change(chance, ids) for _ in range(3))}.values())
        if chance.random() < 0.1:
            check_side(stack, 'lab', 'Person', 'Adr', FIELDS)
    for _ in range(60):
        if chance.random() < 0.2:
            stack.psql('lab', 'select delete_document(%s, %s)', ('Person', chance.choice(ids)))
        else:
            stack.psql('lab', 'select put_item(%s, %s, %s, %s, %s)', (
                'Person', chance.choice(ids), 'Adr', chance.choice('abcd'),
                None if chance.random() < 0.2 else json.dumps(content(chance))))
    assert check_side(stack, 'lab', 'Person', 'Adr', FIELDS)


WITHIN = {'f': ['a', 'b'], 'l': ['rows', 'n'], 'q': ['$$; drop table stampd.doc; --', "'", '\\', '"', '%s', 'é', ' ']}
KINDS = {'f': 'string', 'l': 'long[]', 'q': 'hash'}


def within(path, value):
    return value if not path else {path[0]: within(path[1:], value)}


def test_fields_within_members_follow_their_paths(stack, schemas):
    contents = [{'a': {'b': 'x'}, 'rows': [{'n': 1}, {'n': [2, 3]}, {}, 4], **within(WITHIN['q'], 'y')}, {'a': 'b', 'a.b': 'x', 'rows': {'n': [5]}}, {'a': [{'b': 'x'}], 'rows': [], 'f': 'x'}, {'rows': {'n': 6}}, 7]
    stack.put('lab', *({'c': 'Within', 'id': f'w{number}', 'items': [{'c': 'Main', 'j': content}]} for number, content in enumerate(contents)))
    others = {'f': ['a.b'], 'l': ['rows', 'm'], 'q': ['f']}
    for paths in (WITHIN, others, WITHIN):
        schemas.apply('lab', {'Within': {'items': {'Main': {'singleton': True, 'fields': declared(KINDS, paths)}}}})
        assert check_side(stack, 'lab', 'Within', 'Main', KINDS, paths) == len(contents)
        stack.put('lab', {'c': 'Within', 'id': 'w1', 'items': [{'c': 'Main', 'j': {**contents[1], 'a': {'b': 'z'}, 'a.b': 'z', 'rows': [{'m': 1, 'n': 1}]}}]})
        assert check_side(stack, 'lab', 'Within', 'Main', KINDS, paths) == len(contents)
    plain = {'singleton': True, 'fields': {'f': {'type': 'string', 'at': ['f']}}}
    schemas.apply('lab', {'Within': {'items': {'Main': plain}, 'unique': {'u': {'key': ['Main.f']}}}})  # the member of its own name
    assert check_side(stack, 'lab', 'Within', 'Main', {'f': 'string'}) == len(contents)
    assert '"f":"string"' in stack.psql('lab', 'select content from schema')[0][0]
    schemas.apply('lab', {'Person': PERSON})


def test_numbers_are_exported_as_they_are_written(stack):
    numbers = ['-0', '0.0', '1e3', '1E+2', '1e400', '-1e400', '1e-400', '0e-400', '4.9e-324', '1e-330', '123456789012345678901234567890',
               '0.1234567890123456789012345678', '9223372036854775807', '9223372036854775808', '-2147483648', '1.0']
    for place, number in enumerate(numbers):
        text = '{"size": %s, "count": %s, "ratio": %s, "years": [%s, 7, "x", null]}' % ((number,) * 4)
        answer = stack.http.post(f'{stack.url}/lab/op/put', timeout=PATIENCE_S, headers={'Content-Type': 'application/json'},
                                 data='{"param":{"docs":[{"c":"Person","id":"n%d","items":[{"c":"Adr","k":"a","j":%s}]}]}}' % (place, text))
        assert answer.status_code == 200, answer.text
    assert check_side(stack, 'lab', 'Person', 'Adr', FIELDS)


def test_the_view_shows_items_with_their_fields(stack):
    stack.put('lab', {'c': 'Person', 'id': 'view', 'items': [{'c': 'Adr', 'k': 'x', 'j': {'name': 'Zoë', 'tags': ['t']}}]})
    rows = stack.psql('lab', """select class, iclass, key, content, name, tags, size from "item_Person_Adr" where id = 'view'""")
    assert rows == [('Person', 'Adr', 'x', json.dumps({'name': 'Zoë', 'tags': ['t']}), 'Zoë', ['t'], None)]


def test_only_changed_fields_are_written(stack):
    stack.put('lab', {'c': 'Person', 'id': 'still', 'items': [{'c': 'Adr', 'k': 'x', 'j': {'name': 'N', 'other': 1}}]})
    def place():
        return stack.psql('lab', """select ctid, xmin::text from "x_Person_Adr" where id = 'still'""")
    before = place()
    stack.put('lab', {'c': 'Person', 'id': 'still', 'items': [{'c': 'Adr', 'k': 'x', 'j': {'other': 2, 'name': 'N'}}]})
    assert place() == before
    stack.put('lab', {'c': 'Person', 'id': 'still', 'items': [{'c': 'Adr', 'k': 'x', 'j': {'other': 2, 'name': 'M'}}]})
    assert place() != before


def test_items_that_are_not_declared_are_refused(stack):
    for item in ({'c': 'Other', 'k': 'x', 'j': 1}, {'c': 'Main', 'k': 'x', 'j': 1}, {'c': 'Note', 'j': 1}):
        with pytest.raises(Problem) as refused:
            stack.put('lab', {'c': 'Person', 'id': 'a', 'items': [item]})
        assert refused.value.code == 'AARG'


def test_workers_cannot_change_tables(stack):
    with psycopg2.connect(stack.conninfo('lab', 'stampd')) as connection:
        for sql in ('create table stampd.mine (a int)', 'alter table stampd."x_Person_Adr" add column mine int',
                    'update stampd.schema set number = 1', 'drop index stampd."v_Person_Adr_name"',
                    "select stampd.fill_side('Person', 'Adr', 1)"):
            with connection.cursor() as cursor, pytest.raises(psycopg2.errors.InsufficientPrivilege):
                cursor.execute(sql)
            connection.rollback()


# --- applying while others write ---

class Writers:
    """Puts, from several clients, until the end of the block; failures are counted by code."""

    def __init__(self, stack, ids, count=3):
        self.stack, self.ids = stack, ids
        self.ends = threading.Event()
        self.codes, self.puts = [], 0
        self.threads = [threading.Thread(target=self.write, args=(seed,)) for seed in range(count)]

    def write(self, seed):
        chance = random.Random(seed)
        while not self.ends.is_set():
            try:
                self.stack.put('lab', change(chance, self.ids))
                self.puts += 1
            except Problem as problem:
                self.codes.append(problem.code)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()


STEPS = [
    {'name': 'string'}, FIELDS, {**FIELDS, 'size': 'string', 'other': 'double'}, {'tags': 'int[]', 'name': 'string[]'}, {},
    {'other': 'int', 'tags': 'string[]'}, FIELDS]


def test_writers_lose_nothing_while_schemas_change(stack, schemas):
    ids = [f'w{number}' for number in range(30)]
    with Writers(stack, ids) as writers:
        for fields in STEPS:
            before = writers.puts
            schemas.apply('lab', {'Person': {**PERSON, 'items': {**PERSON['items'], 'Adr': {'fields': fields}}}}, '--batch', 5)
            wait_until(lambda: writers.puts > before + 20, what='more puts')
    assert set(writers.codes) <= {'CONTENTION'}, writers.codes
    assert check_side(stack, 'lab', 'Person', 'Adr', FIELDS)
    tables = {name for name, in stack.psql('lab', "select relname from pg_class where relname ~ '^[xv]_' and relkind in ('r', 'i')")}
    assert tables >= {'x_Person_Adr', 'x_Person_Adr_tags', 'v_Person_Adr_tags'} and 'v_Person_Adr_other' not in tables


def test_an_apply_that_is_killed_goes_on(stack, schemas):
    schemas.apply('lab', {'Person': {'items': {**PERSON['items'], 'Adr': {}}}})
    for number in range(150):
        stack.put('lab', {'c': 'Person', 'id': f'k{number}', 'items': [{'c': 'Adr', 'k': 'a', 'j': {'size': number}}]})
    schemas.set('lab', {'Person': PERSON})
    ids = [f'k{number}' for number in range(150)]
    with Writers(stack, ids, 2):
        while 'ready' not in (told := schemas.run('show', 'lab')) or 'building' in told:
            apply = subprocess.Popen(schemas.command('apply', 'lab', '--batch', 1), stdout=subprocess.PIPE, text=True)
            lines = []
            for line in apply.stdout:
                lines.append(line)
                if len(lines) == 4 and random.random() < 0.7:
                    apply.send_signal(signal.SIGKILL)
                    break
            apply.stdout.close()
            apply.wait()
    assert check_side(stack, 'lab', 'Person', 'Adr', FIELDS)
    assert stack.psql('lab', 'select count(*) from schema_fill') == [(0,)]


def test_an_index_that_was_not_completed_is_made_again(stack, schemas):
    schemas.apply('lab', {'Person': PERSON})
    stack.psql('lab', """update pg_index set indisvalid = false where indexrelid = 'stampd."v_Person_Adr_size"'::regclass""")
    assert 'drop index concurrently' in schemas.run('plan', 'lab')
    schemas.run('apply', 'lab')
    assert stack.psql('lab', """select indisvalid from pg_index where indexrelid = 'stampd."v_Person_Adr_size"'::regclass""") == [(True,)]
    assert 'the declaration is applied' in schemas.run('plan', 'lab')


def test_an_apply_waits_for_the_backend_of_one_that_was_killed(stack, schemas):
    """PostgreSQL ends the statement of a client that is gone; a second apply does not work beside it."""
    def waiting(kind):
        return stack.psql('lab', "select a.pid from pg_locks l join pg_stat_activity a using (pid) where not l.granted and l.locktype = %s and a.usename <> 'stampd'"
                          " and a.datname = current_database()", (kind,))

    schemas.apply('lab', {'Person': PERSON})
    stack.psql('lab', """update pg_index set indisvalid = false where indexrelid = 'stampd."v_Person_Adr_size"'::regclass""")
    older, writer = (psycopg2.connect(stack.conninfo('lab')) for _ in range(2))
    with older.cursor() as cursor:
        cursor.execute('select 1')
    killed = subprocess.Popen(schemas.command('apply', 'lab'), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert 'earlier transactions' in killed.stderr.readline()  # it has seen the transactions for which it waits
    with writer.cursor() as cursor:
        cursor.execute('lock table stampd."x_Person_Adr" in row exclusive mode')
    older.close()
    ((backend,),) = wait_until(lambda: waiting('virtualxid'), what='an index that waits for a writer')
    killed.kill()
    killed.communicate()
    again = subprocess.Popen(schemas.command('apply', 'lab'), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: waiting('advisory'), what='a second apply that waits')
    assert waiting('virtualxid') == [(backend,)] and again.poll() is None
    writer.close()
    assert again.wait(PATIENCE_S) == 0
    assert stack.psql('lab', """select indisvalid from pg_index where indexrelid = 'stampd."v_Person_Adr_size"'::regclass""") == [(True,)]
    assert 'the declaration is applied' in schemas.run('plan', 'lab')


def test_an_apply_waits_for_those_who_began_before(stack, schemas):
    """A writer of the schema before, whose commit comes late, is not overlooked by the filling."""
    schemas.apply('lab', {'Person': {'items': {**PERSON['items'], 'Adr': {}}}})
    late = psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd')
    with late.cursor() as cursor:
        cursor.execute("insert into item (class, id, iclass, key, version, vop, content) values ('Person', 'late', 'Adr', 'a', 1, 1, '{\"size\": 5}')")
    schemas.set('lab', {'Person': PERSON})
    apply = subprocess.Popen(schemas.command('apply', 'lab'), stdout=subprocess.PIPE, text=True)
    for line in apply.stdout:
        if 'waiting' in line:
            break
    with late.cursor() as cursor:
        cursor.execute("insert into doc (class, id, version, ctime, dtime, v1, v2) values ('Person', 'late', 1, 1, 1, 0, 0)")
    late.commit()
    late.close()
    apply.stdout.read()
    assert apply.wait() == 0
    assert stack.psql('lab', """select size from "x_Person_Adr" where id = 'late'""") == [(5,)]


def test_emptied_items_empty_their_side_tables(stack):
    stack.psql('lab', 'truncate doc, item')
    assert check_side(stack, 'lab', 'Person', 'Adr', FIELDS) == 0


@pytest.mark.parametrize('ids', [('a',), ('b', 'c')])
def test_who_has_not_heard_of_a_schema_writes_nothing_by_the_former_one(stack, schemas, ids):
    """A commit of one document, and of several; they would be in no collection."""
    name = f'Deaf{len(ids)}'
    base = {'items': {'Main': {'singleton': True}}}
    schemas.apply('lab', {name: base})

    def put(team):
        stack.put('lab', *({'c': name, 'id': id_, 'items': [{'c': 'Main', 'j': {'team': team}}]} for id_ in ids))

    put('red')
    for _ in range(4 * STACK['workers']):  # in the caches of all
        stack.get('lab', *((name, id_) for id_ in ids))
    children_that_listen = [pid for pid in children(stack.pid()) if name_of(pid) in ('stampd-relay', 'stampd-live')]
    assert children_that_listen
    for pid in children_that_listen:
        os.kill(pid, signal.SIGSTOP)
    try:
        schemas.apply('lab', {name: {**base, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}})
        put('blue')
    finally:
        for pid in children_that_listen:
            os.kill(pid, signal.SIGCONT)
    found = stack.op('lab', 'collection', {'c': name, 'collection': 'team', 'value': 'blue'})['out']['docs']
    assert sorted(document['id'] for document in found) == list(ids)

"""stampctl import: a namespace moved away and back, exactly; merged; resumed after a kill; never half."""
import json
import random
import subprocess

import pytest

import archives
from halting import halted
from stack import Problem, run_program, wait_until

SPARE = [f'empty{number}' for number in range(12)]
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'demo': 'open', 'lab': 'open', 'many': 'open', **dict.fromkeys(SPARE, 'open')}}
SCHEMA = {'classes': {
    'Person': {'items': {'Main': {'singleton': True, 'fields': {'age': 'int', 'name': 'string'}}}, 'unique': {'name': {'key': ['Main.name']}},
               'collections': {'team': {'key': ['Main.team'], 'mutable': True}}},
    'Card': {'items': {'Main': {'singleton': True}}, 'maxLife': 'Main.until'}}}
FAR = 40000000  # minutes since 1970


def doc(class_, id_, *items, **more):
    return {'c': class_, 'id': id_, 'items': [{'c': 'Line', 'k': key, 'j': value} for key, value in items], **more}


def person(id_, **content):
    return {'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': content}]}


@pytest.fixture(scope='module')
def odd(stack, tmp_path_factory):
    """The namespace demo, with every kind of row, a schema, and a resource; its archive."""
    folder = tmp_path_factory.mktemp('odd')
    (folder / 'schema').write_text(json.dumps(SCHEMA))
    (folder / 'page.css').write_text('a { color: red }')
    stack.admin('schema', 'set', 'demo', folder / 'schema')
    stack.admin('schema', 'apply', 'demo')
    stack.admin('resource', 'put', 'demo', folder / 'page.css')
    stack.admin('ns', 'origins', 'demo', 'https://a.example')
    stack.put('demo', *(person(f'p{n}', age=n, name=f'name {n}', team='red' if n % 2 else 'blue') for n in range(20)))
    stack.put('demo', doc('Note', 'plain', ('a', 1), ('b', {'deep': [1, 2.50, 'é\n"\\']})), doc('Note', 'empty'), doc('Other', 'é /\\"\n'),
              {'c': 'Note', 'id': 'raw', 'items': [{'c': 'Text', 's': 'a\nb"\\\x01'}, {'c': 'Line', 'k': 'é"', 'j': 'x'}]},
              {'c': 'Card', 'id': 'one', 'items': [{'c': 'Main', 'j': {'until': FAR}}]},
              doc('Note', 'gone', ('a', 1)), doc('Note', 'back', ('a', 1)), doc('Z', 'z' * 255, ('k' * 255, None)))
    stack.put('demo', {'c': 'Note', 'id': 'plain', 'items': [{'c': 'Line', 'k': 'a', 'del': True}]})
    stack.put('demo', {'c': 'Note', 'id': 'gone', 'delete': True}, {'c': 'Note', 'id': 'back', 'delete': True})
    stack.put('demo', doc('Note', 'back', ('a', 2)))
    stack.psql('demo', "select put_item('Note', 'sql', 'Line', '', %s), put_item('Note', 'sql', 'Line', 'twice', %s)", ('{"a":\r\n [1,\n2]}', '{"a":1, "a" :2}'))
    stack.psql('demo', 'update namespace set floor = 260101000000000')
    stack.admin('ns', 'state', 'demo', 'readonly')
    stack.admin('export', 'demo', folder / 'demo')
    return folder / 'demo'


@pytest.fixture(scope='module')
def many(stack, tmp_path_factory):
    """An archive of several members."""
    stack.psql('many', "with d as (insert into doc select 'Note', 'n' || n, stamp_of(now()), stamp_of(now()), stamp_of(now()), 1001, 0 from generate_series(1, 15000) n returning id)"
               " insert into item select 'Note', id, 'Line', 'a', stamp_of(now()), stamp_of(now()), to_json(repeat(md5(id), 31))::text, false from d")
    stack.psql('many', 'update doc d set v1 = (select sum(octet_length(key) + octet_length(content)) from item i where i.class = d.class and i.id = d.id)')
    path = tmp_path_factory.mktemp('many') / 'many'
    stack.admin('export', 'many', path)
    assert sum(name.startswith('documents/') for name in archives.members(path)) >= 4
    return path


@pytest.fixture
def empty(spares):
    """The code of a namespace without documents, of this test only."""
    return next(spares)


def state(stack, code):
    return conf(stack, code).get('state', 0)


def conf(stack, code):
    return json.loads(stack.psql('z', "select content from item where class = 'Namespace' and id = %s and iclass = 'Conf'", (code,))[0][0])


def test_a_namespace_comes_back_exactly_under_another_name(stack, odd, empty, tmp_path):
    done = stack.admin('import', empty, odd)
    assert stack.psql(empty, 'select floor from namespace') == stack.psql('demo', 'select floor from namespace')
    assert 'verified: ' in done.text and 'imported' in done.text and 'was open' not in done.text and state(stack, empty) == 0
    assert archives.rows(stack, empty) == archives.rows(stack, 'demo')
    for table in ('x_Person_Main', 'expiry'):
        assert set(stack.psql(empty, f'select * from "{table}"')) == set(stack.psql('demo', f'select * from "{table}"')) != set()
    members = "select c.name, m.id, m.value, m.version, m.has_left from member m join collection c on c.number = m.collection where not m.has_left"
    assert set(stack.psql(empty, members)) == set(stack.psql('demo', members)) != set()
    assert stack.psql(empty, 'select count(*) from unique_value') == [(20,)]
    mine, theirs = conf(stack, empty), conf(stack, 'demo')
    assert mine.pop('database') == f'stampd_{empty}' and theirs.pop('database') == 'stampd_demo'
    assert mine.pop('state', 0) == 0 and theirs.pop('state') == 1 and mine == theirs and mine['origins'] == ['https://a.example']
    assert stack.request('GET', f'/{empty}/res/page.css').text == 'a { color: red }'
    assert stack.get(empty, ('Note', 'plain')) == stack.get('demo', ('Note', 'plain'))
    copy = stack.get('demo', ('Note', 'plain'))
    answer = stack.op(empty, 'sync', syncs=[{name: copy[name] for name in ('c', 'id', 'v', 'ct', 'dt')}])['syncs'][0]
    assert answer['v'] == copy['v'] and not answer.get('items'), 'a client that has come from there keeps its copies'
    assert stack.put(empty, doc('Note', 'plain', ('c', 3))) > copy['v']
    stack.admin('export', empty, tmp_path / 'again')
    assert stack.psql(empty, 'select count(*) from import_progress') == [(0,)]


def test_it_is_refused_where_documents_are(stack, odd, many, empty):
    assert 'has documents' in stack.admin('import', 'many', odd, status=1).error
    assert 'no such namespace' in stack.admin('import', 'nowhere', odd, status=1).error
    assert 'z has the configurations' in stack.admin('import', 'z', odd, status=2).error
    assert 'must be a file' in stack.admin('import', empty, '-', status=2).error
    for data in (odd.read_bytes()[:-100], odd.read_bytes()[:500], b'', b'PK'):
        wrong = odd.with_name('wrong')
        wrong.write_bytes(data)
        assert stack.admin('import', empty, wrong, status=1).error
    assert archives.rows(stack, empty) == (set(), set()) and state(stack, empty) == 0
    assert stack.psql(empty, 'select count(*) from import_progress') == [(0,)]
    del many


def sessions(stack, code):
    """Of stampctl, that hold the lock of an import."""
    return stack.psql(code, "select l.pid from pg_locks l where l.locktype = 'advisory' and l.database = (select oid from pg_database where datname = current_database())"
                      " and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('stampd import', 0)")


def begin_and_kill(stack, code, archive, number):
    """Kills stampctl when it has stored so many members of the archive."""
    with halted(stack, code, 'import_progress', f'new.members > {number}') as halt:
        with subprocess.Popen(stack.admin_words('import', code, archive), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            halt.wait()
            program.kill()
        assert stack.psql(code, 'select members from import_progress') == [(number,)]
        halt.release()
        wait_until(lambda: not sessions(stack, code), what='the end of the killed session')


def test_a_killed_import_goes_on_where_it_was(stack, many, empty):
    for number in range(1, 4):
        begin_and_kill(stack, empty, many, number)
        assert state(stack, empty) == 2, 'nobody sees half of it'
        with pytest.raises(Problem, match='OOFF'):
            stack.get(empty, ('Note', 'n1'))
    done = stack.admin('import', empty, many)
    assert 'verified: 15000' in done.text and state(stack, empty) == 0
    assert archives.rows(stack, empty) == archives.rows(stack, 'many')


def test_an_interrupted_import_can_be_abandoned(stack, many, odd, empty):
    begin_and_kill(stack, empty, many, 1)
    assert 'another archive' in stack.admin('import', empty, odd, status=1).error
    assert 'is empty' in stack.admin('import', '--abandon', empty).text
    assert archives.rows(stack, empty) == (set(), set()) and state(stack, empty) == 0
    assert 'no import was interrupted' in stack.admin('import', '--abandon', empty, status=1).error
    assert 'verified' in stack.admin('import', empty, many).text


def test_an_archive_that_changes_after_it_was_verified(stack, many, empty, tmp_path):
    """Between the two passes: the command of --transform, which runs in the second, alters it."""
    files = archives.members(many)
    path = tmp_path / 'moving'
    path.write_bytes(many.read_bytes())
    last = [name for name in files if name.startswith('documents/')][-1]
    archives.write(tmp_path / 'other', {**files, last: files[last].replace(b'"k":"a"', b'"k":"b"', 1)})
    done = stack.admin('import', empty, path, '--transform', f'cat; cat {tmp_path}/other > {path}', status=None)
    assert done.status == 1 or archives.rows(stack, empty)[1] == archives.rows(stack, 'many')[1]
    assert state(stack, empty) == (2 if done.status else 0)


def test_an_encrypted_archive_is_imported(stack, many, empty, tmp_path):
    """The same rows as from the archive in clear; with another key, without one, and of an archive whose chunks changed places, nothing."""
    for name in ('key', 'other'):
        run_program(stack.build / 'src/stampctl', 'key', 'new', '--archive', tmp_path / name)
    path, wrong = tmp_path / 'sealed', tmp_path / 'wrong'
    stack.admin('export', 'many', path, '--key-file', tmp_path / 'key', '--level', '1')
    whole = path.read_bytes()
    head, size = 80, 65536 + 16
    assert len(whole) > head + 3 * size
    first, second, rest = whole[head:head + size], whole[head + size:head + 2 * size], whole[head + 2 * size:]
    for data in (first + first + rest, second + first + rest, first + rest, rest, first + second + rest[:size], first + second):
        wrong.write_bytes(whole[:head] + data)
        assert 'damaged' in stack.admin('import', empty, wrong, '--key-file', tmp_path / 'key', status=1).error
    assert 'not the right one' in stack.admin('import', empty, path, '--key-file', tmp_path / 'other', status=1).error
    assert 'name its key' in stack.admin('import', empty, path, status=1).error
    assert archives.rows(stack, empty) == (set(), set()) and stack.psql(empty, 'select count(*) from import_progress') == [(0,)]
    assert 'verified: 15000' in stack.admin('import', empty, path, '--key-file', tmp_path / 'key').text
    assert archives.rows(stack, empty) == archives.rows(stack, 'many')
    del many


def test_lines_are_transformed(stack, odd, empty, tmp_path):
    script = tmp_path / 'script.py'
    script.write_text('import json, sys\nfor line in sys.stdin:\n    one = json.loads(line)\n    if one["c"] == "Note":\n'
                      '        one["c"] = "Memo"\n        print(json.dumps(one))\n')
    done = stack.admin('import', empty, odd, '--no-configuration', '--transform', f'/usr/bin/python3 {script}')
    kept = {row for row in stack.psql('demo', "select 'Memo', id, version, ctime, dtime from doc where class = 'Note'")}
    assert set(stack.psql(empty, 'select class, id, version, ctime, dtime from doc')) == kept and 'verified' in done.text
    assert 'origins' not in conf(stack, empty)
    for command in ('false', 'echo no', 'sed s/class/x/ | head -c 100', "sed 's/\"v\":/\"w\":/'", "sed 's/$/,/'"):
        assert stack.admin('import', 'lab', odd, '--transform', command, status=1).error, command
        assert archives.rows(stack, 'lab') == (set(), set())
        stack.admin('import', '--abandon', 'lab')
    assert state(stack, 'lab') == 0


def test_a_wrong_command_is_corrected_while_nothing_is_stored(stack, odd, many, empty):
    """Also with another archive; the namespace gets the state back that it had before the first of them."""
    for words in ((odd, '--no-configuration', '--transform', 'catt'), (odd, '--no-configuration', '--transform', 'cat; false'), (many, '--transform', 'false')):
        assert 'ended with status' in stack.admin('import', empty, *words, status=1).error
        assert stack.psql(empty, 'select members from import_progress') == [(0,)] and state(stack, empty) == 2 and archives.rows(stack, empty) == (set(), set())
    assert 'was interrupted: complete it' in stack.admin('import', empty, many, '--merge', status=1).error
    done = stack.admin('import', empty, many, '--transform', 'cat')
    assert 'takes its place' in done.text and 'going on' not in done.text
    assert archives.rows(stack, empty) == archives.rows(stack, 'many') and state(stack, empty) == 0
    assert stack.psql(empty, 'select count(*) from import_progress') == [(0,)]


def test_what_is_stored_is_not_mixed_with_another_command(stack, odd, many, empty, tmp_path):
    """The first piece is stored, the second fails."""
    mark = tmp_path / 'mark'
    command = f'test -e {mark} && exit 3; touch {mark}; cat'
    assert 'status 3' in stack.admin('import', empty, many, '--transform', command, status=1).error
    for words in ((many, '--transform', 'cat'), (many,), (odd, '--transform', command), (many, '--merge', '--transform', command)):
        assert 'was interrupted: complete it' in stack.admin('import', empty, *words, status=1).error
    assert stack.psql(empty, 'select members from import_progress') == [(1,)] and state(stack, empty) == 2
    assert 'is empty' in stack.admin('import', '--abandon', empty).text and state(stack, empty) == 0


def test_a_merge_that_stored_nothing_gives_way_to_another(stack, odd, empty):
    stack.admin('import', empty, odd, '--merge', '--transform', 'false', status=1)
    assert stack.psql(empty, 'select members, is_merge from import_progress') == [(0, True)] and state(stack, empty) == 0
    assert 'was interrupted: complete it' in stack.admin('import', empty, odd, status=1).error
    assert 'takes its place' in stack.admin('import', empty, odd, '--merge').text
    assert archives.rows(stack, empty)[0] and stack.psql(empty, 'select count(*) from import_progress') == [(0,)]


def test_what_is_there_at_the_end_is_compared(stack, odd):
    """A document that was written meanwhile, by SQL."""
    done = stack.admin('import', 'lab', odd, '--no-configuration', '--transform',
                       f'grep -v twice; psql -q "{stack.conninfo("lab")}" -c "select stampd.put_item(\'Mine\', \'own\', \'Line\', \'\', \'1\')" >/dev/null', status=1)
    assert 'not those of the archive' in done.error and state(stack, 'lab') == 2
    stack.admin('import', '--abandon', 'lab')
    assert archives.rows(stack, 'lab') == (set(), set()) and state(stack, 'lab') == 0


def test_documents_are_merged_into_a_namespace_in_use(stack, odd, empty, tmp_path):
    stack.put(empty, doc('Note', 'plain', ('a', 'mine'), ('x', 1)), doc('Note', 'gone', ('a', 'mine')), doc('Mine', 'own', ('a', 1)))
    before = {id_: stack.get(empty, (class_, id_)) for class_, id_ in (('Note', 'plain'), ('Note', 'gone'), ('Mine', 'own'))}
    done = stack.admin('import', empty, odd, '--merge')
    assert 'documents changed' in done.text and state(stack, empty) == 0

    def items(document):
        return sorted((item['c'], item.get('k', ''), json.dumps(item.get('j', item.get('s')))) for item in document['items'])
    for class_, id_ in (('Note', 'plain'), ('Note', 'empty'), ('Other', 'é /\\"\n'), ('Note', 'raw'), ('Note', 'back'), ('Note', 'sql'), ('Person', 'p3')):
        theirs = stack.get('demo', (class_, id_))
        # Workers are notified of changes by SQL.
        mine = wait_until(lambda: [one for one in [stack.get(empty, (class_, id_))] if items(one) == items(theirs)], what='the change')[0]  # pylint: disable=cell-var-from-loop
        assert mine['v'] > theirs['v']
    assert stack.get(empty, ('Note', 'gone')) == before['gone'] and stack.get(empty, ('Mine', 'own')) == before['own'], 'not in the archive, or deleted there'
    copy = before['plain']
    answer = stack.op(empty, 'sync', syncs=[{name: copy[name] for name in ('c', 'id', 'v', 'ct', 'dt')}])['syncs'][0]
    assert {item['k'] for item in answer['items']} == {'b'} and {item['k'] for item in answer['dels']} >= {'a', 'x'}
    assert ' 0 documents changed' in stack.admin('import', empty, odd, '--merge').text
    v1 = 'select class, id, v1, (select coalesce(sum(octet_length(key) + octet_length(content)), 0) from item i where i.class = d.class and i.id = d.id) from doc d where ctime <> 0'
    assert all(row[2] == row[3] for row in stack.psql(empty, v1))
    # what has changed since: deletions too
    first = tmp_path / 'first'
    stack.admin('export', empty, first)
    stack.put(empty, {'c': 'Mine', 'id': 'own', 'delete': True}, doc('Mine', 'new', ('a', 1)))
    stack.admin('export', empty, tmp_path / 'second', '--since', first)
    stack.admin('import', 'lab', first)
    assert '--merge' in stack.admin('import', 'lab', tmp_path / 'second', status=1).error
    assert '2 documents changed' in stack.admin('import', 'lab', tmp_path / 'second', '--merge').text
    wait_until(lambda: stack.get('lab', ('Mine', 'own'))['ct'] == 0 and items(stack.get('lab', ('Mine', 'new'))), what='the changes')
    stack.psql('lab', 'truncate doc, item')


def test_words(stack):
    assert 'Bring the documents' in run_program(stack.build / 'src/stampctl', 'import', '--help').out
    for words in (('import', 'lab'), ('import', '--abandon', 'lab', 'x'), ('import', '--abandon', 'lab', '--merge')):
        assert stack.admin(*words, status=2).error

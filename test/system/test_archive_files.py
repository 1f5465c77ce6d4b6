"""Files of attachments in archives: each once, with the documents that have them, out of a namespace and into another; never half."""
import json
import os
import random
import subprocess

import pytest

import archives
from stack import give, wait_until
from test_attachment_http import fetch, files, sha, store
from test_attachments import assert_exact
from test_export import peak_kb

SPARE = [f'empty{number}' for number in range(9)]
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'many': 'open', 'large': 'open', **dict.fromkeys(SPARE, 'open')},
         'settings': {'limit_blob_bytes': 256 << 20, 'limit_upload_bytes': 256 << 20, 'limit_client_connections': 0, 'limit_client_requests': 0}}
ONE, TWO, GONE = b'one' * 1000, random.Random(13).randbytes(300000), b'gone'
MANY = 60


def note(id_, *items):
    return {'c': 'Note', 'id': id_, 'items': [{'c': 'Main', 'j': id_}, *items]}


def archived(path):
    """{digest: bytes} of the files in an archive."""
    found = {name.partition('/')[2]: data for name, data in archives.members(path).items() if name.startswith('files/')}
    assert all(sha(data) == name for name, data in found.items()) and list(found) == sorted(found)
    return found


def left_out(path):
    return {line.decode() for name, data in archives.members(path).items() if name.startswith('left-out/') for line in data.split()}


def folder(stack, ns, digest):
    return stack.path / 'files' / f'stampd_{ns}' / digest[:2]


def nothing_is_there(stack, ns):
    assert archives.rows(stack, ns) == (set(), set()) and files(stack, ns) == set()
    assert stack.psql(ns, 'select (select count(*) from blob) + (select count(*) from blob_ref) + (select count(*) from import_progress)') == [(0,)]


@pytest.fixture(scope='module')
def lab(stack):
    """Two files that three attachments have, one that no attachment has any more."""
    stack.put('lab', note('a'), note('b'), note('c'), note('d'), {'c': 'Other', 'id': 'o', 'items': []})
    store(stack, 'Note/a/file/one', ONE, 'text/plain')
    store(stack, 'Note/a/file/two', TWO, 'image/png')
    store(stack, 'Note/b/file/again', ONE, 'text/html')
    store(stack, 'Note/c/file/gone', GONE)
    store(stack, 'Note/d/file/gone', GONE)
    stack.put('lab', note('c', {'c': 'P', 'k': 'gone', 'del': True}), {'c': 'Note', 'id': 'd', 'delete': True})


@pytest.fixture(scope='module')
def many(stack):
    """A file for each of many documents."""
    for number in range(MANY):
        stack.put('many', note(f'n{number}'))
        store(stack, f'Note/n{number}/file/f', bytes([number]) * 5000, ns='many')


@pytest.fixture
def empty(stack, spares):
    ns = next(spares)
    yield ns
    assert_exact(stack, ns)


@pytest.fixture
def export(stack, tmp_path):
    def run(*words, ns='lab', name='archive', **more):
        stack.older_transactions_end()
        done = stack.admin('export', ns, tmp_path / name, *words, **more)
        return tmp_path / name if done.status == 0 else done
    return run


def test_each_file_is_in_the_archive_once(stack, lab, export):
    path = export()
    assert archived(path) == {sha(ONE): ONE, sha(TWO): TWO} and not left_out(path)
    names = list(archives.members(path))
    assert max(names.index(name) for name in names if name.startswith('files/')) < min(names.index(name) for name in names if name.startswith('documents/'))
    found = json.loads(archives.members(path)['digests.json'])
    assert (found['files']['count'], found['files']['bytes']) == (2, len(ONE) + len(TWO)) and ', 2 files' in archives.verify(stack, path).out
    assert archived(export('--class', 'Other')) == {} and archived(export('--id', 'b')) == {sha(ONE): ONE}
    path = export('--no-files')
    assert archived(path) == {} and left_out(path) == {sha(ONE), sha(TWO)} and archives.verify(stack, path)
    del lab


def test_a_namespace_comes_back_with_its_files(stack, lab, export, empty):
    path = export()
    assert 'files: 2 of 2 stored' in stack.admin('import', empty, path).text
    assert archives.rows(stack, empty) == archives.rows(stack, 'lab') and files(stack, empty) == {sha(ONE), sha(TWO)}
    assert stack.psql(empty, "select v2 from doc where id = 'a'") == [(len(ONE) + len(TWO),)]
    for name, content, type_ in (('a/file/one', ONE, 'text/plain'), ('a/file/two', TWO, 'image/png'), ('b/file/again', ONE, 'text/html')):
        answer = fetch(stack, f'Note/{name}', ns=empty)
        assert answer.content == content and answer.headers['Content-Type'].startswith(type_)
    owner = (stack.path / 'files').stat().st_uid
    root = stack.path / 'files' / f'stampd_{empty}'
    assert all(one.stat().st_uid == owner for one in [root, *root.glob('**/*')]), 'the server can write there and remove them'
    store(stack, 'Note/b/file/more', b'more', ns=empty)
    stack.put(empty, {'c': 'Note', 'id': 'a', 'delete': True})
    assert stack.psql(empty, "select count(*) from blob_ref where id = 'a' and ended is not null") == [(2,)]
    del lab


def test_files_that_are_there_are_not_written_again(stack, lab, export, empty):
    """The store has one of two, and one that is only registered; a file with the name of another one's digest is not there."""
    stack.put(empty, note('x'))
    store(stack, 'Note/x/file/f', ONE, ns=empty)
    stack.psql(empty, 'truncate doc, item, blob_ref')
    stack.psql(empty, 'select blob_touch(%s, %s)', (sha(TWO), len(TWO)))
    before = (folder(stack, empty, sha(ONE)) / sha(ONE)).stat()
    assert 'files: 1 of 2 stored' in stack.admin('import', empty, export()).text
    after = (folder(stack, empty, sha(ONE)) / sha(ONE)).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns) and archives.rows(stack, empty) == archives.rows(stack, 'lab')
    del lab


def test_an_increment_leaves_out_what_the_archive_before_it_has(stack, lab, export, empty, spares):
    """A document that has changed, with a file of the base; one with a new file; and the next increment."""
    first, new, other = export(name='first'), b'new' * 500, next(spares)
    stack.put('lab', note('a', {'c': 'Main', 'k': 'x', 'j': 1}))
    stack.put('lab', note('e'))
    store(stack, 'Note/e/file/new', new)
    second = export('--since', first, name='second')
    assert archived(second) == {sha(new): new} and left_out(second) == {sha(ONE), sha(TWO)}
    stack.put('lab', note('a', {'c': 'P', 'k': 'one', 'del': True}, {'c': 'P', 'k': 'three', 'from': {'c': 'Note', 'id': 'e', 'k': 'new'}}))
    third = export('--since', second, name='third')
    assert archived(third) == {} and left_out(third) == {sha(new), sha(TWO)}
    for path in (second, third):
        refused = stack.admin('import', other, path, '--merge', status=1).error
        assert 'is not in the archive' in refused and 'import the archive before it first' in refused
        nothing_is_there(stack, other)
    stack.admin('import', empty, first)
    stack.admin('import', empty, second, '--merge')
    stack.admin('import', empty, third, '--merge')

    def attachments(ns):
        return set(stack.psql(ns, "select i.id, i.key, i.content, d.v2 from item i join doc d on d.class = i.class and d.id = i.id where iclass = 'P' and content is not null"))
    assert attachments(empty) == attachments('lab') and len(attachments('lab')) == 4
    wait_until(lambda: fetch(stack, 'Note/a/file/three', ns=empty).content == new, what='the merged attachment')
    assert '0 documents changed' in stack.admin('import', empty, third, '--merge').text
    assert 'documents changed' in stack.admin('import', other, export(name='whole'), '--merge').text
    assert attachments(other) == attachments('lab')
    assert_exact(stack, other)
    del lab


def test_altered_files_are_refused(stack, lab, export, empty, tmp_path):
    path, wrong = export(), tmp_path / 'wrong'
    members = archives.members(path)
    one, two = f'files/{sha(ONE)}', f'files/{sha(TWO)}'

    def without(*names, **more):
        return {name: data for name, data in {**members, **more}.items() if name not in names}
    backwards = without(one, two)
    places = list(members)
    place = min(places.index(one), places.index(two))
    items = list(backwards.items())
    swapped = dict([*items[:place], *sorted(((one, members[one]), (two, members[two])), reverse=True), *items[place:]])
    behind = dict([*list(without(one).items())[:-1], (one, members[one]), ('digests.json', members['digests.json'])])
    for altered in ({**members, one: ONE[:-1] + b'x'}, {**members, one: TWO, two: ONE}, {**members, two: TWO[:-1]}, {**members, two: b''}, without(one), swapped, behind,
                    {name.replace(sha(ONE), sha(b'other')): data for name, data in members.items()}, {one: ONE, **members}):
        archives.write(wrong, altered)
        assert archives.verify(stack, wrong, status=1).error
        assert stack.admin('import', empty, wrong, status=1).error
        archives.rewrite(wrong, altered)  # with digests of members that fit
        assert stack.admin('import', empty, wrong, status=1).error
        nothing_is_there(stack, empty)
    del lab


def test_a_damaged_store_makes_no_archive(stack, many, export, empty):
    path = folder(stack, 'many', sha(b'\0' * 5000)) / sha(b'\0' * 5000)
    for content, problem in ((b'\1' + b'\0' * 4999, 'is damaged'), (b'\0' * 4999, 'is damaged'), (b'\0' * 5001, 'is damaged'), (None, 'is missing')):
        path.unlink()
        if content:
            path.write_bytes(content)
            give(path)
        done = export(ns='many', status=1)
        assert problem in done.error and path.name in done.error
        assert archives.verify(stack, export('--no-files', ns='many', name='bare'))
    path.write_bytes(b'\0' * 5000)
    give(path)
    assert len(archived(export(ns='many'))) == MANY
    nothing_is_there(stack, empty)


def begin_and_kill(stack, words, look):
    """Runs stampctl until `look` is true, then kills it."""
    with subprocess.Popen(stack.admin_words(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        wait_until(lambda: look() or program.poll() is not None, what='progress of the import')
        program.kill()


def test_a_killed_import_goes_on(stack, many, export, empty):
    """Files are stored first: wherever it was killed, each that is there is whole, and the next run stores the others."""
    path = export(ns='many')
    for number in (1, 10, 30):
        begin_and_kill(stack, ('import', empty, path), lambda: len(files(stack, empty)) >= number)  # pylint: disable=cell-var-from-loop
        for name in files(stack, empty):
            assert sha((folder(stack, empty, name) / name).read_bytes()) == name
            assert stack.psql(empty, "select size from blob where digest = decode(%s, 'hex')", (name,)) == [(5000,)]
        wait_until(lambda: not stack.psql(empty, "select 1 from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"
                                          " and (classid::bigint << 32 | objid::bigint) = hashtextextended('stampd import', 0)"), what='the end of the killed session')
    if stack.psql(empty, 'select count(*) from import_progress') == [(1,)]:
        stack.admin('import', empty, path)
    assert archives.rows(stack, empty) == archives.rows(stack, 'many') and len(files(stack, empty)) == MANY
    del many


def test_an_abandoned_import_leaves_no_references(stack, many, export, empty):
    write = f'cat; psql -q "{stack.conninfo(empty)}" -c "select stampd.put_item(\'Mine\', \'own\', \'Line\', \'\', \'1\')" >/dev/null'
    done = stack.admin('import', empty, export(ns='many'), '--transform', write, status=1)
    assert 'not those of the archive' in done.error and len(files(stack, empty)) == MANY
    assert stack.psql(empty, 'select count(*) from blob_ref') == [(MANY,)]
    stack.admin('import', '--abandon', empty)
    assert archives.rows(stack, empty) == (set(), set()) and stack.psql(empty, 'select count(*) from blob_ref') == [(0,)]
    assert f'files: 0 of {MANY} stored' in stack.admin('import', empty, export(ns='many')).text
    del many


@pytest.mark.plain
def test_memory_does_not_grow_with_a_file(stack, lab, export, tmp_path):
    small = peak_kb(stack.admin_words('export', 'many', tmp_path / 'small'))
    stack.put('large', note('l'))
    store(stack, 'Note/l/file/large', os.urandom(1 << 20) * 150, ns='large')
    path = tmp_path / 'large'
    assert peak_kb(stack.admin_words('export', 'large', path)) < small + 40 * 1024
    stack.admin('ns', 'drop', 'large', '--yes')
    stack.admin('ns', 'create', 'large')
    assert peak_kb(stack.admin_words('import', 'large', path)) < small + 60 * 1024
    assert files(stack, 'large') == {json.loads(stack.psql('large', "select content from item where iclass = 'P'")[0][0])['sha']}
    del lab, export

"""stampctl export, verify: what an archive holds, that it is of one instant, and that no alteration stays unnoticed."""
import json
import os
import random
import resource
import signal
import subprocess
import threading

import psycopg2
import pytest

import archives
from stack import run_program, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'demo': 'open', 'lab': 'open', 'many': 'open'}}
SUM = 1000


def doc(class_, id_, *items, **more):
    return {'c': class_, 'id': id_, 'items': [{'c': 'Line', 'k': key, 'j': value} for key, value in items], **more}


@pytest.fixture(scope='module')
def odd(stack):
    """The namespace demo, with every kind of row."""
    stack.put('demo', doc('Note', 'plain', ('a', 1), ('b', {'deep': [1, 2.50, 'é\n"\\']})), doc('Note', 'empty'), doc('Other', 'é /\\"\n'),
              {'c': 'Note', 'id': 'raw', 'items': [{'c': 'Text', 's': 'a\nb"\\\x01'}, {'c': 'Line', 'k': 'é"', 'j': 'x'}]},
              doc('Note', 'gone', ('a', 1)), doc('Note', 'back', ('a', 1)), doc('Z', 'z' * 255, ('k' * 255, None)))
    stack.put('demo', {'c': 'Note', 'id': 'plain', 'items': [{'c': 'Line', 'k': 'a', 'del': True}]})
    stack.put('demo', {'c': 'Note', 'id': 'gone', 'delete': True}, {'c': 'Note', 'id': 'back', 'delete': True})
    stack.put('demo', doc('Note', 'back', ('a', 2)))
    # by SQL: contents with line breaks, with a member twice
    stack.psql('demo', "select put_item('Note', 'sql', 'Line', '', %s), put_item('Note', 'sql', 'Line', 'twice', %s)", ('{"a":\r\n [1,\n2]}', '{"a":1, "a" :2}'))
    return archives.rows(stack, 'demo')


@pytest.fixture
def export(stack, tmp_path):
    def run(*words, ns='demo', name='archive', **more):
        path = tmp_path / name
        done = stack.admin('export', ns, path, *words, **more)
        return path if done.status == 0 else done
    return run


def test_it_holds_every_row_exactly(stack, odd, export):
    path = export()
    headers, items = set(), set()
    for line in archives.documents(path).values():
        assert line.get('del', False) == ('ct' not in line)
        headers.add((line['c'], line['id'], line['v'], line.get('ct', 0), line.get('dt', 0)))
    assert headers == {row[:5] for row in odd[0]}
    text = b''.join(data for name, data in archives.members(path).items() if name.startswith('documents/')).decode()
    for class_, id_, iclass, key, version, vop, content, raw in odd[1]:
        line = archives.documents(path)[class_, id_]
        item, = (item for item in line['items'] if (item['c'], item.get('k', '')) == (iclass, key))
        assert item['v'] == version and item.get('op', 0 if item.get('del') else version) == vop and ('s' in item) == raw
        if raw or content is None or '\n' in content:
            assert item.get('s', item.get('t')) == content and item.get('del', False) == (content is None)
        else:
            assert '"j":' + content in text
        items.add((class_, id_, iclass, key))
    assert len(items) == len(odd[1]) == sum(len(line.get('items', [])) for line in archives.documents(path).values())
    manifest = json.loads(archives.members(path)['manifest.json'])
    assert manifest['namespace'] == 'demo' and manifest['version'] == 1 and list(archives.members(path))[0] == 'manifest.json'
    digests = json.loads(list(archives.members(path).values())[-1])
    assert (digests['documents'], digests['deleted'], digests['items']) == (sum(row[3] != 0 for row in odd[0]), 1, len(odd[1]))
    assert 'whole: demo' in archives.verify(stack, path).out
    assert path.stat().st_mode & 0o777 == 0o600 and not path.with_name('archive.part').exists()


def test_configuration_schema_rules_and_resources_are_in_it(stack, odd, export, tmp_path):
    (tmp_path / 'schema').write_text('{"classes":{"Plain":{"items":{"Line":{"fields":{"a":"int"}}}}}}')
    (tmp_path / 'page.css').write_text('a { color: red }')
    stack.admin('schema', 'set', 'demo', tmp_path / 'schema')
    stack.admin('resource', 'put', 'demo', tmp_path / 'page.css')
    path = export()
    found = {}
    for name, data in archives.members(path).items():
        if name.startswith('configuration/'):
            found.update({(line['c'], line['id']): line for line in map(json.loads, data.splitlines())})
    assert {('Namespace', 'demo'), ('Schema', 'demo'), ('Resources', 'demo')} <= set(found) and any(c == 'Resource' for c, _ in found)
    assert all(id_ == 'demo' or id_.startswith('demo/') for _, id_ in found)
    assert not any(name.startswith('configuration/') for name in archives.members(export('--class', 'Note')))


def test_some_documents_only(odd, export):
    every = archives.documents(export())
    notes = archives.documents(export('--class', 'Note'))
    assert notes == {name: line for name, line in every.items() if name[0] == 'Note'} and notes
    some = archives.documents(export('--class', 'Note', '--class', 'Z', '--id', 'plain', '--id', 'z' * 255, '--id', "'; drop table"))
    assert list(some) == [('Note', 'plain'), ('Z', 'z' * 255)]
    assert archives.documents(export('--class', 'None')) == {}
    assert 'expected a capital' in export('--class', 'none', status=2).error


def test_what_has_changed_since_another_archive(stack, export, tmp_path):
    stack.put('lab', *(doc('Note', f'{n}', ('a', n)) for n in range(30)))
    stack.older_transactions_end()
    # A transaction that began before the first archive, and ends after it, has an older version: it must be in the second.
    late = psycopg2.connect(stack.conninfo('lab'))
    try:
        late.cursor().execute("select stampd.put_item('Note', '7', 'Line', 'a', '\"late\"'), stampd.put_item('Note', 'late', 'Line', 'a', '1')")
        first = export(ns='lab', name='first')
        assert ('Note', 'late') not in archives.documents(first)
        late.commit()
    finally:
        late.close()
    stack.put('lab', doc('Note', '3', ('a', 'new')), {'c': 'Note', 'id': '4', 'delete': True}, doc('Note', 'later', ('a', 1)))
    stack.older_transactions_end()
    second = archives.documents(export('--since', first, ns='lab', name='second'))
    assert {id_ for _, id_ in second} >= {'7', 'late', '3', '4', 'later'} and len(second) < 20 and second['Note', '4']['del']
    whole = {**archives.documents(first), **second}
    assert whole == archives.documents(export(ns='lab', name='third'))
    assert archives.documents(export('--since', tmp_path / 'third', ns='lab', name='fourth')) == {}
    version = max(line['v'] for line in whole.values())
    assert archives.documents(export('--since', version, ns='lab', name='fifth')) == {}
    assert list(archives.documents(export('--since', version - 1, ns='lab', name='sixth')))
    assert 'another database' in export('--since', export(name='other'), ns='lab', name='seventh', status=1).error
    some = export('--class', 'Note', ns='lab', name='eighth')
    assert 'some documents only' in export('--since', some, ns='lab', name='ninth', status=1).error
    stack.psql('lab', 'select purge_zombies(stamp_now())')
    assert 'are purged' in export('--since', first, ns='lab', name='tenth', status=1).error


@pytest.fixture(scope='module')
def many(stack):
    """30,000 documents."""
    stack.psql('many', "with d as (insert into doc select 'Note', 'n' || n, stamp_now(), stamp_now(), stamp_now(), 2, 0 from generate_series(1, 30000) n returning id)"
               " insert into item select 'Note', id, 'Line', 'a', stamp_now(), stamp_now(), '1', false from d")


def test_it_is_of_one_instant(stack, many, export):
    """Two documents, and a sum that stays, while many others are read between them."""
    stack.put('many', doc('Account', 'first', ('a', SUM)), doc('Zero', 'last', ('a', 0)))
    is_over, moved = threading.Event(), []

    def move():
        while not is_over.is_set():
            amount = random.randrange(SUM)
            stack.put('many', doc('Account', 'first', ('a', amount)), doc('Zero', 'last', ('a', SUM - amount)))
            moved.append(amount)
    thread = threading.Thread(target=move)
    thread.start()
    try:
        for _ in range(4):
            before = len(moved)
            found = archives.documents(export(ns='many'))
            first, last = (found[name]['items'][0]['j'] for name in (('Account', 'first'), ('Zero', 'last')))
            assert first + last == SUM and found['Account', 'first']['v'] == found['Zero', 'last']['v'] and len(found) == 30002
            wait_until(lambda: len(moved) > before, what='a transfer beside the export')  # pylint: disable=cell-var-from-loop
    finally:
        is_over.set()
        thread.join()
    del many


def peak_kb(words):
    """Of a program and its memory, at most."""
    pid = os.spawnvp(os.P_NOWAIT, words[0], words)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    return usage.ru_maxrss


@pytest.mark.plain
def test_memory_does_not_grow_with_the_namespace(stack, odd, many, export, tmp_path):
    small = peak_kb(stack.admin_words('export', 'demo', tmp_path / 'small'))
    large = peak_kb(stack.admin_words('export', 'many', tmp_path / 'large'))
    stack.psql('demo', "select put_item('Large', 'one', 'Text', '', repeat('x', 3000000), true)")
    assert large < small + 40 * 1024
    del odd, many, export


def test_every_alteration_is_noticed(stack, odd, export, tmp_path):
    path = export()
    whole, files = path.read_bytes(), archives.members(path)
    random.seed(13)
    altered = tmp_path / 'altered'

    def is_refused(data):
        altered.write_bytes(data)
        return archives.verify(stack, altered, status=None).status == 1
    sizes = {0, 1, len(whole) // 2, len(whole) - 1, *(random.randrange(len(whole)) for _ in range(10))}
    assert all(is_refused(whole[:size]) for size in sizes), 'a truncated one'
    for place in [*range(0, 40), *(random.randrange(len(whole)) for _ in range(40))]:
        data = bytearray(whole)
        data[place] ^= 1 << random.randrange(8)
        # A bit may mean nothing (what fills a block, a date): then all members are what they were.
        assert is_refused(bytes(data)) or archives.members(altered) == files, place
    names = list(files)
    last = names[-1]
    for name in names[:-1]:
        archives.write(altered, {**files, name: files[name].replace(b'1', b'2', 1)})
        assert archives.verify(stack, altered, status=1).error, name
        archives.write(altered, {other: data for other, data in files.items() if other != name})
        assert archives.verify(stack, altered, status=1).error, name
    for changed in ({**files, 'more': b''}, {name: files[name] for name in [names[0], last, *names[1:-1]]}, {name: files[name] for name in reversed(names)},
                    {'../x': b'1', **files}, {}):
        archives.write(altered, changed)
        assert archives.verify(stack, altered, status=1).error, list(changed)
    archives.write(altered, files)
    assert 'whole' in archives.verify(stack, altered).out


def test_a_full_disk_and_a_kill_leave_no_archive(stack, odd, many, export, tmp_path):
    path = tmp_path / 'killed'
    for _ in range(3):
        with subprocess.Popen(stack.admin_words('export', 'many', path), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            wait_until(lambda: path.with_name('killed.part').exists() or program.poll() is not None, what='the file')  # pylint: disable=cell-var-from-loop
            program.send_signal(signal.SIGKILL)
        assert not path.exists() or archives.verify(stack, path)
        path.unlink(missing_ok=True)
    limit = 20000
    done = subprocess.run(stack.admin_words('export', 'many', tmp_path / 'full'), capture_output=True, text=True, check=False,
                          preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
    assert done.returncode == 1 and 'too large' in done.stderr.lower()
    assert not (tmp_path / 'full').exists() and not (tmp_path / 'full.part').exists()
    full = subprocess.run(stack.admin_words('export', 'demo', '/dev/full'), capture_output=True, text=True, check=False)
    assert full.returncode == 1 and 'No space left' in full.stderr
    assert 'there is no such namespace' in stack.admin('export', 'nowhere', tmp_path / 'x', status=1).error
    assert 'No such file' in stack.admin('export', 'demo', tmp_path / 'none/x', status=1).error
    assert 'not an archive' in archives.verify(stack, __file__, status=1).error or archives.verify(stack, __file__, status=1).error
    del odd, many, export


def test_it_can_be_piped(stack, odd, tmp_path):
    done = subprocess.run(stack.admin_words('export', 'demo', '-'), capture_output=True, check=True)
    (tmp_path / 'piped').write_bytes(done.stdout)
    assert b'documents' in done.stderr and 'whole' in archives.verify(stack, tmp_path / 'piped').out
    assert run_program(stack.build / 'src/stampctl', 'export', '--help').out.lower().startswith('usage')
    del odd


def test_an_encrypted_archive(stack, odd, export, tmp_path):
    """Only its key opens it; nothing of it is readable; whatever is altered or cut off is noticed, before anything is imported."""
    key, other, weak = (tmp_path / name for name in ('key', 'other', 'weak'))
    for path in (key, other):
        run_program(stack.build / 'src/stampctl', 'key', 'new', '--archive', path)
    weak.write_text('short')
    weak.chmod(0o600)
    path = export('--key-file', key)
    assert ', encrypted: demo' in archives.verify(stack, path, '--key-file', key).out
    whole = path.read_bytes()
    assert whole.startswith(b'stampd sealed') and b'manifest' not in whole and whole != export('--key-file', key).read_bytes()
    export('--key-file', key)
    assert 'not the right one' in archives.verify(stack, path, '--key-file', other, status=1).error
    assert 'name its key' in archives.verify(stack, path, status=1).error
    assert 'not encrypted' in archives.verify(stack, export(name='clear'), '--key-file', key, status=1).error
    assert 'at least 32' in archives.verify(stack, path, '--key-file', weak, status=1).error
    key.chmod(0o604)
    assert 'any user may read' in archives.verify(stack, path, '--key-file', key, status=1).error
    key.chmod(0o600)
    assert export('--since', path, '--key-file', key, name='more').exists()

    altered = tmp_path / 'altered'
    random.seed(13)
    whole = path.read_bytes()
    for data in [whole[:size] for size in (0, 15, 60, len(whole) // 2, len(whole) - 1)] + [whole + b'x'] + [
            whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1:] for place in [0, 15, 20, 70, len(whole) - 1, *(random.randrange(len(whole)) for _ in range(20))]]:
        altered.write_bytes(data)
        assert archives.verify(stack, altered, '--key-file', key, status=1).error
        assert stack.admin('import', 'lab', altered, '--key-file', key, status=1).error
    assert stack.psql('lab', 'select count(*) from import_progress') == [(0,)]
    del odd

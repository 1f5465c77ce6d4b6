"""Files of an encrypted namespace in an object store: the store gets what is on the disk, clients see no difference, and what the store alters,
loses or delays is never served, and stops nothing else."""
import contextlib
import hashlib
import threading
import time

import pytest

from door_client import Client
from object_places import age_files
from object_service import Service
from stack import PATIENCE_S, children, give, name_of, wait_until
from test_attachment_files import LONG_AGO
from test_sealed_files import CHUNK, PLANTED, call, everything, files, key_of, store, text, url
from vault import create, new_site_key

STACK = {'workers': 2, 'namespaces': {'z': 'closed'}, 'settings': {'keep_interval_s': 1, 'limit_client_connections': 0, 'restart_young_ms': 0}}
pytestmark = pytest.mark.plain
BODIES = {f'f{size}': text(size) for size in (0, 1, CHUNK, 3 * CHUNK + 5, (1 << 20) + 3)}
TICK_S = 0.05  # the times of files are those of the kernel's last tick


@pytest.fixture(scope='module')
def vault(stack):
    folder, service = stack.path / 'attached', Service()
    folder.mkdir()
    give(folder)
    stores = stack.path / 'etc/stores'
    stores.write_text(service.section('own'))
    stores.chmod(0o600)
    give(stores)
    stack.set(blob_directory=folder, site_key_file=new_site_key(stack), object_stores_file=stores, object_stores_interval_s=1)
    create(stack, 'vault')
    stack.put('vault', {'c': 'Note', 'id': 'n'})
    for key, body in BODIES.items():
        store(stack, key, body)
    stack.folder, stack.service = folder, service
    yield stack
    service.stop()


def places(stack):
    return {place for place, in stack.psql('vault', 'select store from blob')}


def age(stack):
    """What has been leaving for three seconds, and since before a round of the reader began, may go."""
    now = time.time()
    before = min(now - 3, (getattr(stack, 'reading_since', None) or now) - TICK_S)
    age_files(files(stack), before)
    stack.psql('vault', f'update blob_left set since = {LONG_AGO} where since < stamp_of(to_timestamp(%s))', (before,))


def move(stack, name, is_whole=True):
    stack.admin('files', 'place', 'vault', name)
    wanted = {None} if name == 'directory' else {name}
    wait_until(lambda: places(stack) == wanted, PATIENCE_S, f'files in {name}')

    def is_alone():
        age(stack)
        return not stack.service.objects if name == 'directory' else not files(stack)
    if is_whole:
        wait_until(is_alone, PATIENCE_S, f'files in {name} only')


def check(stack):
    for key, body in BODIES.items():
        answer = call(stack, 'GET', url(key))
        assert answer.status_code == 200 and answer.content == body, key
        assert answer.headers['ETag'] == f'"{hashlib.sha256(body).hexdigest()}"' and answer.headers['Content-Length'] == str(len(body))


def processes(stack):
    """Those that read from the store."""
    decrypter, = (pid for pid in children(stack.pid()) if name_of(pid) == 'stampd-decrypt')
    return children(decrypter)


@contextlib.contextmanager
def reading(vault):
    """Somebody reads all files meanwhile, again and again, and finds them right."""
    wrong, ending = [], threading.Event()

    def read():
        while not ending.is_set():
            vault.reading_since = time.time()
            try:
                check(vault)
            except AssertionError as found:
                wrong.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        ending.set()
        reader.join()
        vault.reading_since = None
    assert not wrong


def test_files_move_there_and_are_read_while_they_move(vault):
    with reading(vault):
        move(vault, 'own')
    assert len(vault.service.objects) == len(BODIES) and PLANTED not in b''.join(vault.service.objects.values())
    check(vault)
    assert 'damaged' not in vault.admin('files', 'verify', 'vault').out
    vault.admin('verify', '--ns', 'vault')


@pytest.mark.parametrize('range_', ['bytes=0-0', f'bytes={CHUNK - 1}-{CHUNK}', f'bytes={2 * CHUNK}-', 'bytes=-7', f'bytes=5-{10 * CHUNK}'])
def test_ranges(vault, range_):
    body = BODIES[f'f{3 * CHUNK + 5}']
    answer = call(vault, 'GET', url(f'f{len(body)}'), Range=range_)
    first, last = range_.removeprefix('bytes=').split('-')
    wanted = body[int(first):int(last) + 1 if last else None] if first else body[-int(last):]
    assert answer.status_code == 206 and answer.content == wanted
    assert answer.headers['Content-Range'].endswith(f'/{len(body)}')
    head = call(vault, 'HEAD', url(f'f{len(body)}'))
    assert head.status_code == 200 and head.headers['Content-Length'] == str(len(body))
    assert call(vault, 'GET', url(f'f{len(body)}'), Range=f'bytes={len(body)}-').status_code == 416


def test_what_the_store_alters_or_loses_is_not_served(vault):
    objects, key = vault.service.objects, f'f{3 * CHUNK + 5}'
    body = BODIES[key]
    (name, content), = ((name, content) for name, content in objects.items() if len(content) == max(
        len(each) for each in objects.values() if len(each) < 1 << 20))
    for altered in (content[:100] + bytes([content[100] ^ 1]) + content[101:], content[:-1] + bytes([content[-1] ^ 1]), content[:-1], None):
        if altered is None:
            del objects[name]
        else:
            objects[name] = altered
        answer = vault.http.get(vault.url + url(key), stream=True, timeout=PATIENCE_S)
        got = b''
        try:
            for piece in answer.iter_content(10000):
                got += piece
        except Exception:
            pass
        assert answer.status_code >= 500 and PLANTED not in got or len(got) < len(body) and body.startswith(got)
        if altered:
            assert 'damaged' in vault.admin('files', 'verify', 'vault', status=None).out or len(altered) != len(content)
    objects[name] = content
    check(vault)


def test_a_store_that_is_slow_stops_nothing_else(vault):
    """And a client that leaves ends the process of its download."""
    body, free = b'of the directory', threading.Event()
    create(vault, 'near')
    vault.put('near', {'c': 'Note', 'id': 'n'})
    store(vault, 'f', body, 'near')
    vault.service.always = lambda handler: not free.wait(PATIENCE_S)
    waiting = []
    threads = [threading.Thread(target=lambda: waiting.append(vault.http.get(vault.url + url('f1'), timeout=PATIENCE_S))) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        wait_until(lambda: len(processes(vault)) == 3, what='three downloads')
        assert call(vault, 'GET', url('f', 'near')).content == body
        assert call(vault, 'HEAD', url('f1')).status_code == 200
    finally:
        free.set()
        for thread in threads:
            thread.join()
        vault.service.always = None
    assert [answer.content for answer in waiting] == [BODIES['f1']] * 3
    wait_until(lambda: not processes(vault), what='the end of their processes')


def test_a_client_has_its_share_of_the_processes(vault):
    free, answers = threading.Event(), []
    vault.service.always = lambda handler: not free.wait(PATIENCE_S)

    def fetch(address):
        with Client(vault, address) as client:
            answers.append((address, client.ask('GET', url('f1'))))

    threads = [threading.Thread(target=fetch, args=('127.0.0.2',)) for _ in range(18)] + [threading.Thread(target=fetch, args=('127.0.0.3',))]
    try:
        for thread in threads[:18]:
            thread.start()
        wait_until(lambda: len(answers) == 2, what='the refusal of two')
        assert [reply.status for _, reply in answers] == [503, 503] and len(processes(vault)) == 16
        with Client(vault) as client:
            assert client.ask('HEAD', url('f1')).status == 200
        threads[18].start()
        wait_until(lambda: len(processes(vault)) == 17, what='the download of another client')
    finally:
        free.set()
        for thread in threads:
            if thread.ident:
                thread.join()
        vault.service.always = None
    assert [reply.body for _, reply in answers[2:]] == [BODIES['f1']] * 17
    wait_until(lambda: not processes(vault), what='the end of their processes')


def test_a_client_that_takes_nothing_holds_no_process(vault):
    body = text(24 << 20)
    store(vault, 'large', body)
    wait_until(lambda: None not in places(vault), PATIENCE_S, 'the large file in the store')
    wait_until(lambda: age(vault) or not files(vault), PATIENCE_S, 'the directory has lost it')
    with vault.http.get(vault.url + url('large'), stream=True, timeout=PATIENCE_S) as answer:
        pieces = answer.iter_content(1 << 16)
        got = [next(pieces)]
        assert processes(vault)
        wait_until(lambda: not processes(vault), what='the end of its process')
        got += pieces  # and it goes on where it was
    assert b''.join(got) == body
    vault.put('vault', {'c': 'Note', 'id': 'n', 'items': [{'c': 'P', 'k': 'large', 'del': True}]})
    vault.psql('vault', f'update blob_ref set ended = {LONG_AGO} where ended is not null')  # and nothing refers to it any more
    vault.psql('vault', f'update blob set touched = {LONG_AGO}; delete from blob_claim')
    vault.psql('vault', 'delete from blob_ref where ended is not null')


def keys_of_rows(stack):
    """The data keys of the objects; None: of a file that the directory has."""
    return {key for key, in stack.psql('vault', "select ('x' || encode(substring(head from 9 for 8), 'hex'))::bit(64)::bigint from blob")}


def copies(stack):
    return {name: content for name, content in list(stack.service.objects.items()) if '-' not in name.rpartition('/')[2]}


def test_copies_are_as_the_files_are_stored(vault):
    """And each command is right about them, whatever the store has done to them."""
    assert 'missing' in vault.admin('files', 'verify', 'vault', 'own', status=1).out
    out = vault.admin('files', 'copy', 'vault', 'own').out
    made = copies(vault)
    assert out.startswith(f'vault: {len(BODIES)} files copied') and len(made) == len(BODIES)
    stored = {content for name, content in list(vault.service.objects.items()) if name not in made}
    assert set(made.values()) <= stored and PLANTED not in b''.join(made.values())
    assert not {hashlib.sha256(body).hexdigest() for body in BODIES.values()} & {name.rpartition('/')[2] for name in made}
    assert f'0 files copied, 0 bytes; {len(BODIES)} already there' in vault.admin('files', 'copy', 'vault', 'own').out
    assert f'{len(BODIES)} files read' in vault.admin('files', 'verify', 'vault', 'own').out
    name, content = max(made.items(), key=lambda item: len(item[1]))
    other = max((each for each in made.values() if each != content), key=len)
    for wrong in (content[:200] + bytes([content[200] ^ 1]) + content[201:], content[:-1] + bytes([content[-1] ^ 1]), content[:-1],
                  other + bytes(len(content) - len(other)), bytes(len(content))):
        vault.service.objects[name] = wrong
        assert '1 are missing or damaged' in vault.admin('files', 'verify', 'vault', 'own', status=1).out
    assert '1 files copied' in vault.admin('files', 'copy', 'vault', 'own').out  # its header was another one
    assert vault.service.objects[name] == content


def test_copies_come_back_only_if_they_are_right(vault):
    move(vault, 'directory', is_whole=False)
    wait_until(lambda: len(files(vault)) >= len(BODIES), PATIENCE_S, 'files in the directory')
    made, lost = copies(vault), {path: (path.read_bytes(), path.stat().st_mode, path.stat().st_uid) for path in files(vault)}
    name, content = max(made.items(), key=lambda item: len(item[1]))
    for path in lost:
        path.unlink()
    vault.service.objects[name] = content[:-1] + bytes([content[-1] ^ 1])
    assert '1 are missing or damaged' in vault.admin('files', 'fetch', 'vault', 'own', status=1).out
    assert len(files(vault)) == len(BODIES) - 1
    vault.service.objects[name] = content
    assert vault.admin('files', 'fetch', 'vault', 'own').out.startswith('vault: 1 files fetched')
    for path in files(vault):
        assert lost[path] == (path.read_bytes(), path.stat().st_mode, path.stat().st_uid)
    check(vault)
    for each in made:
        del vault.service.objects[each]
    move(vault, 'own')


def test_objects_are_encrypted_again_while_they_are_read(vault):
    """The former object stays for whoever reads it; a run that was killed goes on."""
    before = dict(vault.service.objects)
    vault.admin('ns', 'keys', 'vault', '--new')
    vault.set(debug_die_at='blob-replaced')
    died = vault.admin('ns', 'keys', 'vault', '--reseal', status=None)
    assert died.status != 0
    vault.set(debug_die_at='')
    check(vault)
    with reading(vault):
        vault.admin('ns', 'keys', 'vault', '--reseal')
        wait_until(lambda: places(vault) == {'own'} and keys_of_rows(vault) == {2}, PATIENCE_S, 'objects under the newest key')
        wait_until(lambda: age(vault) or not files(vault), PATIENCE_S, 'files in the store only')
    assert before.items() <= vault.service.objects.items()  # a download that has begun goes on
    vault.psql('vault', f'update blob_left set since = {LONG_AGO}')
    wait_until(lambda: not before.keys() & vault.service.objects.keys(), PATIENCE_S, 'the end of the former objects')
    check(vault)
    assert 'files encrypted again: 0,' in vault.admin('ns', 'keys', 'vault', '--reseal').out
    assert 'damaged' not in vault.admin('files', 'verify', 'vault').out
    assert PLANTED not in everything(vault.folder) + b''.join(vault.service.objects.values())


def test_a_damaged_object_stays_and_a_copy_follows_the_key(vault):
    vault.admin('files', 'copy', 'vault', 'own')
    former = copies(vault)
    vault.admin('ns', 'keys', 'vault', '--new')
    names = [name for name in list(vault.service.objects) if name not in former]
    name = max(names, key=lambda each: len(vault.service.objects[each]))
    content = vault.service.objects[name]
    vault.service.objects[name] = content[:-1] + bytes([content[-1] ^ 1])
    failed = vault.admin('ns', 'keys', 'vault', '--reseal', status=1)
    assert f'{name.rpartition("/")[2].partition("-")[0]}: the file was altered' in failed.error
    wait_until(lambda: keys_of_rows(vault) == {2, 3} and places(vault) == {'own'}, PATIENCE_S, 'the others under the newest key')
    vault.service.objects[name] = content
    assert 'files encrypted again: 1,' in vault.admin('ns', 'keys', 'vault', '--reseal').out
    check(vault)
    wait_until(lambda: keys_of_rows(vault) == {3}, PATIENCE_S, 'all under the newest key')
    assert f'{len(BODIES)} files copied' in vault.admin('files', 'copy', 'vault', 'own').out
    assert not set(former.values()) & set(copies(vault).values())
    for each in former:
        del vault.service.objects[each]


def test_files_move_back_under_another_key(vault):
    vault.psql('vault', f'update blob_left set since = {LONG_AGO}')
    count, = vault.psql('vault', 'select count(*) from blob')[0]
    move(vault, 'directory')
    vault.admin('ns', 'keys', 'vault', '--new')
    check(vault)
    assert {key_of(path) for path in files(vault)} == {3}
    assert f'files encrypted again: {count},' in vault.admin('ns', 'keys', 'vault', '--reseal').out
    assert {key_of(path) for path in files(vault)} == {4}
    check(vault)
    move(vault, 'own', is_whole=False)
    wait_until(lambda: all(path.stat().st_mode & 0o1000 for path in files(vault)), PATIENCE_S, 'files leave the directory')
    check(vault)
    vault.service.always = lambda handler: handler.refuse(404, 'NoSuchKey')
    check(vault)  # whoever was sent to an object that has gone finds the file in the directory
    vault.service.always = None
    vault.admin('ns', 'keys', 'vault', '--reseal')
    assert PLANTED not in everything(vault.folder) + b''.join(vault.service.objects.values())

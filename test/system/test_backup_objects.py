"""`stampctl backup` of files that object stores have: copied once and checked, at any time that can be restored; what is missing, altered or
away is named, and no backup looks whole that is not."""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading

import pytest

from backup_places import PIECE, STACK, Kept, all_places, backup, folder, lose, places, reads, writes  # noqa: F401
from stack import BUILD, PATIENCE_S, free_port, wait_until
from test_attachment_http import sha, store
from test_backup import USER, beside_cluster, now, take_settings, text_of
from vault import create

pytestmark = [pytest.mark.plain, pytest.mark.skipif(not shutil.which('pgbackrest'), reason='there is no pgBackRest')]


def test_each_object_is_copied_once(places, backup):
    contents = [b'', b'small', os.urandom(PIECE + 1)]
    places.send(*contents)
    assert '; 3 files of' in backup.run().out
    assert backup.copies() == {sha(content): content for content in contents} and not backup.copies('files')
    assert {path.stat().st_mode & 0o777 for path in (backup.path / 'objects').rglob('*')} == {0o700, 0o600}
    places.send(b'late')
    asked = len(places.own.requests)
    assert ' 1 files of' in backup.files().out and backup.copies()[sha(b'late')] == b'late'
    assert [command for command, _ in places.own.requests[asked:]] == ['HEAD', 'GET']
    asked = len(places.own.requests)
    assert '; 0 files of' in backup.run().out and len(places.own.requests) == asked
    assert 'FAIL' not in backup.check().out
    for content in contents:  # under other names, the same bytes
        places.bring(content)
    places.move()
    assert ' 0 files of' in backup.files().out and len(places.own.requests) == asked


def test_a_copy_of_the_directory_is_not_fetched(places, folder):
    places.add(b'moving')
    folder.files()
    assert folder.copies('files') == {sha(b'moving'): b'moving'} and not folder.copies()
    places.move()
    asked = len(places.own.requests)
    assert ' 0 files of' in folder.files().out and len(places.own.requests) == asked
    assert folder.copies() == {sha(b'moving'): b'moving'} and not folder.copies('files')


def test_settings_that_name_no_store_any_more_leave_nothing_out(places, folder):
    """As those of another file, given by mistake: a store has files that the backup lacks."""
    places.send(b'first')
    folder.files()
    places.send(b'second')
    config = places.stack.config
    lines = config.read_text()
    config.write_text(''.join(line for line in lines.splitlines(True) if not line.startswith('object_stores_file')))
    try:
        said = folder.files(status=1)
        assert 'the files of object stores were not copied; --without-objects' in said.error and set(folder.copies()) == {sha(b'first')}
        assert 'without those of object stores' in folder.files('--without-objects').out
    finally:
        config.write_text(lines)
    assert ' 1 files of' in folder.files().out


def test_without_a_setting_files_of_stores_fail_the_backup(places, backup):
    """Nor was any copied before: only the table of files knows of them."""
    places.send(b'in a store')
    config = places.stack.config
    lines = config.read_text()
    config.write_text(''.join(line for line in lines.splitlines(True) if not line.startswith('object_stores_file')))
    try:
        for words in (backup.files, backup.run):
            said = words(status=1)
            assert 'lab: the object store own has files, and the setting object_stores_file is empty' in said.error
            assert '--without-objects' in said.error and not backup.bases() and not backup.copies('files')
        backup.files('--without-objects')
        places.remove(b'in a store')
        backup.files()
    finally:
        config.write_text(lines)


def test_files_of_two_stores_in_turn_are_read_over_one_connection_each(places, folder):
    """As while all move from one to the other."""
    contents = [f'in turn {number}'.encode() for number in range(8)]
    places.send(*contents)
    section, connections = places.path.read_text(), []
    places.path.write_text(section + section.replace('[own]', '[other]'))
    places.stack.psql('lab', "update blob set store = case when place % 2 = 0 then 'own' else 'other' end"
                      ' from (select digest, row_number() over (order by digest) from blob) ordered (digest, place) where ordered.digest = blob.digest')
    places.own.verify_request = lambda request, address: connections.append(address) or True
    try:
        assert ' 8 files of' in folder.files().out and set(folder.copies()) == set(map(sha, contents))
        assert len(connections) == 2
        assert '; 8 were there' in folder.give_back().out and len(connections) == 4
    finally:
        del places.own.verify_request
        places.name_store()
        places.stack.psql('lab', "update blob set store = 'own'")


def test_copies_that_no_base_backup_needs_are_removed(places, folder):
    places.send(b'gone', b'kept')
    folder.run()
    places.remove(b'gone')
    torn = folder.copy(b'gone').with_name(f'{sha(b"torn")}.new')  # as an interrupted run leaves it
    torn.write_bytes(b'to')
    folder.run()
    assert set(folder.copies()) == {sha(b'gone'), sha(b'kept'), torn.name}
    os.utime(folder.copy(b'gone'), (1, 1))
    os.utime(torn, (1, 1))
    folder.keep(1)
    folder.run()
    assert folder.copies() == {sha(b'kept'): b'kept'}


def test_files_are_left_out_on_request_and_that_is_named(places, backup):
    places.send(b'left out')
    asked = len(places.own.requests)
    assert 'without those of object stores' in backup.run('--without-objects').out
    assert not backup.copies() and len(places.own.requests) == asked
    assert 'without' in backup.list().splitlines()[1]
    found = backup.check().out
    assert 'FAIL' not in found and '--without-objects' in found
    assert 'without those of object stores' in backup.files('--without-objects').out and not backup.copies()
    target = beside_cluster(places.stack, 'restored')
    said = backup.restore(target).out
    assert 'without the files of object stores' in said and 'backup return' not in said
    shutil.rmtree(target)
    backup.run()
    found = backup.check().out
    assert 'FAIL' not in found and '--without-objects' not in found


# --- back ---

@pytest.mark.parametrize('make, words', [
    (lambda places: setattr(places.own, 'always', lambda handler: handler.connection.shutdown(socket.SHUT_RDWR) or True), 'no answer'),
    (lambda places: setattr(places.own, 'always', lambda handler: handler.refuse(403, 'AccessDenied')), 'status 403'),
    (lambda places: setattr(places.own, 'always', lambda handler: handler.command == 'GET' and handler.refuse(500, 'InternalError')), 'InternalError'),
    (lambda places: setattr(places.own, 'always', lambda handler: handler.command == 'GET' and handler.answer(206 if handler.headers['Range'] else 200, b'12')), 'another size'),
    (lambda places: places.name_store('other'), 'no store [own]'),
], ids=['away', 'refuses', 'fails', 'cuts', 'unnamed'])
def test_a_store_that_cannot_be_read_fails_the_backup(places, backup, make, words):
    """Nothing stands under the digest."""
    places.send(b'first')
    backup.files()
    places.send(b'not reached')
    try:
        make(places)
        said = backup.files(status=1)
    finally:
        places.own.always = None
        places.name_store()
    assert words in said.error and 'the files of object stores were not copied; --without-objects' in said.error
    assert backup.copies() == {sha(b'first'): b'first'}
    assert ' 1 files of' in backup.files().out and backup.copies() == {sha(content): content for content in (b'first', b'not reached')}


def test_no_base_backup_is_taken_while_a_store_is_away(places, folder):
    places.send(b'first')
    folder.run()
    before = folder.bases()
    places.send(b'second')
    places.name_store(port=free_port())
    try:
        said = folder.run(status=1)
        assert 'does not let us connect' in said.error and 'no base backup was taken; the former ones stay' in said.error
        assert folder.bases() == before
        folder.run('--without-objects')
    finally:
        places.name_store()
    assert len(folder.bases()) == 2


@pytest.mark.parametrize('content', [None, b'012345678', b'012345678X'], ids=['lost', 'cut off', 'altered'])
def test_an_object_that_the_store_has_lost_or_altered_is_named(places, folder, content):
    """All others are copied, and the command fails."""
    places.send(b'0123456789', b'right')
    name = places.name(b'0123456789')
    if content is None:
        del places.own.objects[name]
    else:
        places.own.objects[name] = content
    said = folder.files(status=1)
    assert f'lab: {sha(b"0123456789")}: ' in said.error and '1 files of attachments are missing or altered' in said.error
    assert folder.copies() == {sha(b'right'): b'right'}
    places.own.objects[name] = b'0123456789'
    assert ' 1 files of' in folder.files().out


def test_a_base_backup_that_lacks_files_is_marked(places, backup):
    places.send(b'0123456789')
    lost = lose(places, b'0123456789')
    assert '1 files of attachments are missing or altered' in backup.run(status=1).error and len(backup.bases()) == 1
    assert '1 missing' in backup.list()
    assert '1 files had no copy' in backup.check('--quick', status=1).out
    assert f'lab: {sha(b"0123456789")}: it has no copy' not in backup.check(status=1).out, 'a young one may be on its way'
    places.age()
    assert f'FAIL  files: lab: {sha(b"0123456789")}: it has no copy' in backup.check(status=1).out
    assert '1 files of attachments had no copy' in backup.restore(beside_cluster(places.stack, 'restored')).out
    shutil.rmtree(beside_cluster(places.stack, 'restored'))
    places.own.objects.update(lost)
    assert '; 1 files of' in backup.run().out
    assert 'FAIL' not in backup.check().out


def test_copies_that_are_altered_or_absent_are_found(places, backup):
    places.send(b'one', b'two', b'three')
    backup.run()
    places.age()
    assert 'FAIL' not in backup.check().out
    backup.copy(b'one').write_bytes(b'One')
    backup.copy(b'two').unlink()
    found = backup.check(status=1).out
    assert f'FAIL  files: stampd_lab: {backup.copy(b"one")}: altered' in found and f'FAIL  files: lab: {sha(b"two")}: it has no copy' in found
    assert found.count('FAIL') == 4 and sha(b'three') not in found
    backup.copy(b'one').unlink()
    assert ' 2 files of' in backup.files().out
    assert 'FAIL' not in backup.check().out
    (backup.path / 'objects.json').unlink()
    assert 'those of object stores were never copied' in backup.check(status=1).out


def test_a_copy_of_the_directory_that_is_altered_is_found(places, backup):
    places.add(b'local')
    backup.run()
    assert 'FAIL' not in backup.check().out
    backup.copy(b'local', 'files').write_bytes(b'Local')
    assert f'{backup.copy(b"local", "files")}: altered' in backup.check(status=1).out
    assert 'FAIL' not in backup.check('--quick').out, 'which reads none'


def hold(service, number):
    """The store keeps the request `number` waiting.  Events: it waits; it may go on."""
    waits, free, left = threading.Event(), threading.Event(), [number]

    def wait(handler):
        if handler.command in ('GET', 'PUT'):
            left[0] -= 1
            if left[0] == 0:
                waits.set()
                free.wait(PATIENCE_S)
        return False

    service.always = wait
    return waits, free


def test_an_object_that_is_removed_while_it_is_read_fails_no_backup(places, folder):
    content = os.urandom(3 * PIECE)
    places.send(content, b'stays')
    waits, free = hold(places.own, 3 if sha(content) < sha(b'stays') else 4)
    process = subprocess.Popen(places.stack.admin_words('backup', 'files', folder.path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert waits.wait(PATIENCE_S)
        places.remove(content)
    finally:
        free.set()
        said = process.communicate()
        places.own.always = None
    assert process.returncode == 0 and ' 1 files of' in said[0], said
    assert folder.copies() == {sha(b'stays'): b'stays'}


@pytest.mark.skipif(os.geteuid() != 0, reason='the folder belongs to another user than that of the command')
def test_links_of_the_owner_of_the_folder_are_not_followed(places, folder):
    """As a user that may do less than root could leave them, so that root writes elsewhere."""
    places.send(b'planted')
    victim, elsewhere = folder.path / 'victim', folder.path / 'elsewhere'
    draft, shelf = folder.copy(b'planted').with_name(f'{sha(b"planted")}.new'), folder.copy(b'planted').parent
    victim.write_bytes(b'as it was')
    elsewhere.mkdir()
    shelf.mkdir(parents=True)
    for plant in (os.link, os.symlink, lambda _, path: os.mkfifo(path)):
        plant(victim, draft)
        assert ' 1 files of' in folder.files().out and victim.read_bytes() == b'as it was' and victim.stat().st_uid == 0
        folder.copy(b'planted').unlink()
    shelf.rmdir()
    shelf.symlink_to(elsewhere)
    os.lchown(shelf, pwd.getpwnam(USER).pw_uid, -1)
    assert 'Too many levels of symbolic links' in folder.files(status=1).error and not list(elsewhere.iterdir())
    os.lchown(shelf, 0, -1)
    assert ' 1 files of' in folder.files().out, 'root has placed it on another disk'


def test_a_killed_backup_leaves_none_that_looks_whole(places, folder):
    content = os.urandom(3 * PIECE)
    places.send(content)
    waits, free = hold(places.own, 3)  # two pieces of three are there
    process = subprocess.Popen(places.stack.admin_words('backup', 'run', folder.path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert waits.wait(PATIENCE_S)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finally:
        free.set()
        places.own.always = None
    assert not folder.bases() and list(folder.copies()) == [f'{sha(content)}.new']
    assert '; 1 files of' in folder.run().out
    assert len(folder.bases()) == 1 and folder.copies() == {sha(content): content}


@pytest.mark.skipif(os.geteuid() != 0, reason='mounts a small disk')
def test_a_full_disk_leaves_no_half_copy(places):
    try:
        folder = Kept(places.stack, 'small', mount='24m', has_database=False)
    except subprocess.CalledProcessError:
        pytest.skip('mounts are not allowed here')
    content = os.urandom(3 << 20)
    try:
        places.send(content)
        with open(folder.path / 'ballast', 'wb', buffering=0) as ballast, pytest.raises(OSError):
            while True:
                ballast.write(bytes(1 << 16))
        said = folder.files(status=1)
        assert 'No space left' in said.error and 'the files of object stores were not copied' in said.error and not folder.copies()
        (folder.path / 'ballast').unlink()
        folder.files()
        assert folder.copies() == {sha(content): content}
    finally:
        folder.drop()


def peak_kb(pid):
    line, = (line for line in open(f'/proc/{pid}/status') if line.startswith('VmHWM:'))
    return int(line.split()[1])


def peak_of(places, words, number):
    """Of a command, while the store keeps its last request waiting."""
    waits, free = hold(places.own, number)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert waits.wait(PATIENCE_S)
        peak = peak_kb(process.pid)
    finally:
        free.set()
        places.own.always = None
        said = process.communicate()
    assert process.returncode == 0, said
    return peak


@pytest.mark.skipif(b'__asan_init' in (BUILD / 'src/stampctl').read_bytes(), reason='the sanitizer keeps what is freed')
def test_memory_is_the_same_for_large_files(places, folder):
    peaks = []
    for pieces in (4, 9):
        content = os.urandom(pieces * PIECE)
        places.send(content)
        saving = peak_of(places, places.stack.admin_words('backup', 'files', folder.path), pieces)
        lost = lose(places, content)
        returning = peak_of(places, places.stack.admin_words('backup', 'return', folder.path), pieces)
        assert lost.items() <= places.own.objects.items()
        peaks.append((saving, returning))
    small, large = peaks
    assert all(two < one + 16384 for one, two in zip(small, large)), peaks


# --- encrypted namespaces ---

def headers_of(vault):
    return dict(vault.psql('vault', "select object, encode(head, 'hex') from blob where store is not null"))


def test_files_of_an_encrypted_namespace_are_copied_under_each_key(places, backup):
    """An object that was encrypted again has another header, which the table has: a restore to a time before needs the former one."""
    vault, contents = places.stack, {'f': b'sealed' * 20000, 'g': b'another'}
    create(vault, 'vault')
    vault.admin('files', 'place', 'vault', 'own')
    vault.put('vault', {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]})
    for key, content in contents.items():
        store(vault, f'Note/n/file/{key}', content, ns='vault')
    places.move('vault')
    first, objects = headers_of(vault), dict(places.own.objects)
    backup.run()
    assert sorted(backup.copies(ns='vault').values()) == sorted(objects.values()) and len(objects) == 2
    vault.admin('ns', 'keys', 'vault', '--new')
    vault.admin('ns', 'keys', 'vault', '--reseal')
    places.move('vault')
    second = headers_of(vault)
    assert not set(first.values()) & set(second.values()) and len(second) == 2
    objects.update(places.own.objects)
    backup.files()
    assert sorted(backup.copies(ns='vault').values()) == sorted(objects.values())
    asked = len(reads(places.own))
    assert ' 0 files of' in backup.files().out and len(reads(places.own)) == asked
    assert 'FAIL' not in backup.check().out
    for table in (second, first):  # that of now, and of a time before
        places.own.objects.clear()
        for name, header in table.items():
            vault.psql('vault', "update blob set object = %s, head = decode(%s, 'hex') where encode(digest, 'hex') = %s",
                       (name, header, name.split('/')[-1].split('-')[0]))
        assert ' 2 files of' in backup.give_back().out
        assert places.own.objects == {name: objects[name] for name in table}
    assert '2 files read' in vault.admin('files', 'verify', 'vault').out
    copy = next((backup.path / 'objects/stampd_vault').glob('*/*'))
    content = bytearray(copy.read_bytes())
    content[-1] ^= 1
    copy.write_bytes(content)
    assert f'{copy}: altered' in backup.check(status=1).out
    vault.admin('ns', 'drop', 'vault', '--yes')
    assert 'FAIL' not in backup.check().out, 'a dropped namespace has no keys'


# --- a whole restore ---

def test_files_are_as_they_were_at_the_time(places):
    """Those that were removed since are returned, those that are there stay."""
    stack = places.stack
    backup = Kept(stack, 'whole')
    places.send(b'removed', b'stays')
    backup.run()
    backup.settle()
    places.send(b'late')
    backup.files()
    target = now(stack)
    wanted, names = dict(places.contents), dict(places.own.objects)
    places.remove(b'removed', b'late')
    places.send(b'after')
    backup.catch_up()

    stack.step('stampd', 'stop', 'now')
    stack.stop_postgres('kill')
    pgdata = stack.path / 'pg'
    pgdata.rename(stack.path / 'pg.former')
    assert f'backup return {backup.path}' in backup.restore(pgdata, '--target-time', text_of(target)).out
    take_settings(stack, pgdata)
    stack.step('postgres', 'start')
    wait_until(lambda: stack.psql(None, 'select not pg_is_in_recovery()') == [(True,)], what='the end of the recovery')
    asked = len(writes(places.own))
    said = backup.give_back().out
    assert ' 2 files of' in said and '; 1 were there' in said and len(writes(places.own)) == asked + 2
    assert names.items() <= places.own.objects.items()
    stack.admin('ns', 'restored', '--all')
    stack.step('stampd', 'start')
    places.contents = wanted
    places.check()
    assert '3 files read' in stack.admin('files', 'verify', 'lab').out
    shutil.rmtree((stack.path / 'pg.former').resolve())  # pg may be a link
    backup.drop()

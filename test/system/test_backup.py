"""Base backups and the archived log, and the cluster that is made of them, as it was at any time."""
import fcntl
import getpass
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from collected import Collected
from holder import Copy, items_of
from listener import Listener
from schema import Schemas
from stack import Problem, StackError, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'open', 'lab': 'open'}, 'settings': {}}
USER = 'postgres' if os.geteuid() == 0 else getpass.getuser()
NUMBERS = itertools.count()


def doc(id_, value):
    return {'c': 'Note', 'id': id_, 'items': [{'c': 'Line', 'k': 'a', 'j': value}]}


def version_of(stack, id_):
    return stack.get('lab', ('Note', id_))['v']


def synchronise(stack, copy):
    answer, = stack.op('lab', 'sync', syncs=[copy.request()])['syncs']
    copy.apply(answer)
    return copy


TEAMS = {'Person': {'items': {'Main': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}}


def join(stack, id_, team):
    stack.put('lab', {'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': {'team': team}}]})


def collect(stack, holder):
    """All pages of what the client asks for by its token."""
    while True:
        asked = {'c': 'Person', 'collection': holder.collection, 'value': holder.value, 'want': 'docs', **holder.place()}
        holder.apply(stack.op('lab', 'collection', asked)['out'])
        if not holder.cursor:
            return holder


def now(stack):
    """The server's time, after all that was answered before."""
    (found,), = stack.psql(None, 'select clock_timestamp()')
    return found


def text_of(when):
    return when.astimezone(timezone.utc).isoformat()


def beside_cluster(stack, name):
    """A path for what has as many files as a cluster."""
    return Path(stack.data or stack.path) / name


class Backup:
    """A folder, and the process that receives the log into it."""

    def __init__(self, stack, name, mount=None):
        self.stack, self.path, self.slot, self.receiver = stack, beside_cluster(stack, name), f'slot_{name}', None
        self.is_mounted = mount is not None
        if mount:
            self.path.mkdir()
            subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={mount}', 'tmpfs', self.path], check=True)
        self.said = stack.admin('backup', 'init', self.path, '--user', USER, '--slot', self.slot)

    def run(self, *words, **more):
        return self.stack.admin('backup', 'run', self.path, '--no-sync', *words, **more)

    def check(self, *words, **more):
        return self.stack.admin('backup', 'check', self.path, *words, **more)

    def restore(self, to, *words, folder=None, **more):
        return self.stack.stampctl('restore', folder or self.path, '--to', to, '--owner', USER, '--no-sync', *words, **more)

    def bases(self):
        return [json.loads(line)['name'] for line in self.stack.stampctl('backup', 'list', self.path, '--json').out.splitlines()]

    def segments(self):
        return sorted(path.name for path in (self.path / 'log').iterdir() if len(path.name) == 24)

    def receive(self):
        words = [self.stack.build / 'src/stampctl', 'backup', 'receive', self.path, '--retry', 1, '--config', self.stack.config]
        self.log = open(self.stack.path / 'log' / f'{self.slot}.log', 'ab')
        self.receiver = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait_until(lambda: self.rows('active'), what='the receiver')
        return self

    def rows(self, condition):
        return self.stack.psql(None, f'select 1 from pg_replication_slots where slot_name = %s and {condition}', (self.slot,))

    def catch_up(self):
        """All that was committed is in the archive.  pg_receivewal reports the end of a segment with what follows it, or seconds
        later, so that something must follow."""
        self.stack.psql(None, "select pg_logical_emit_message(true, 'stampd', 'something follows')")
        (end,), = self.stack.psql(None, 'select pg_current_wal_flush_lsn()::text')
        wait_until(lambda: self.stack.psql(None, 'select 1 from pg_stat_replication r join pg_replication_slots s on s.active_pid = r.pid'
                                           ' where s.slot_name = %s and r.flush_lsn >= %s::pg_lsn', (self.slot, end)), what='the archive')

    def stop(self):
        if self.receiver:
            self.receiver.kill()  # pg_receivewal ends with it
            self.receiver.wait()
            self.log.close()
            self.receiver = None

    def drop(self):
        self.stop()
        wait_until(lambda: self.rows('not active'), what='the end of the receiver')
        self.stack.psql(None, 'select pg_drop_replication_slot(%s)', (self.slot,))
        if self.is_mounted:
            subprocess.run(['umount', self.path], check=True)
        shutil.rmtree(self.path)


@pytest.fixture(scope='module', autouse=True)
def store(stack):
    """The files of attachments."""
    return stack.path / 'files'


@pytest.fixture
def backup(stack):
    backup = Backup(stack, 'backup').receive()
    yield backup
    backup.drop()


def put_file(store, content):
    digest = hashlib.sha256(content).hexdigest()
    shelf = store / 'stampd_lab' / digest[:2]
    shelf.mkdir(parents=True, exist_ok=True)
    (shelf / digest).write_bytes(content)
    return shelf / digest


def written(pgdata):
    """What the restore has added to the settings, as the stack takes it."""
    lines = (pgdata / 'postgresql.auto.conf').read_text().split('# By stampctl restore')[-1].splitlines()
    return dict(line.split(' = ', 1) for line in lines[1:] if ' = ' in line and not line.startswith('#'))


def fill_segments(stack, count):
    for _ in range(count):
        stack.put('lab', doc(f'filler {next(NUMBERS)}', 1))
        stack.psql(None, 'select pg_switch_wal()')


# --- to a time, and back ---

def test_all_before_the_time_is_there_and_nothing_after(stack, store):
    """Clients that hold newer copies, collections and ids of live events afterwards hold what the server has."""
    backup = Backup(stack, 'first').receive()
    Schemas(stack, None).apply('lab', TEAMS)
    join(stack, 'stays', 'red')
    assert 'systemctl enable' in backup.said.out and f'backup run {backup.path}' in backup.said.out
    stack.put('lab', doc('early', 1), doc('changed', 1), doc('gone', 1))
    kept = put_file(store, b'kept')
    backup.run()
    join(stack, 'before', 'red')
    stack.put('lab', doc('changed', 2), doc('late', 2))
    fill_segments(stack, 2)
    stack.put('lab', *(doc(f'last {number}', number) for number in range(20)))
    target = now(stack)
    latest = stack.put('lab', doc('changed', 3), doc('never', 3))
    stack.put('lab', {'c': 'Note', 'id': 'gone', 'delete': True})
    copies = [synchronise(stack, Copy('Note', id_)) for id_ in ('early', 'changed', 'gone', 'late', 'never')]
    join(stack, 'before', 'blue')
    join(stack, 'after', 'red')
    team = collect(stack, Collected('team', 'red'))
    assert set(team.members) == {'stays', 'after'} and not collect(stack, team).was_complete
    listener = Listener(stack, 'Note/never')
    last = listener.wait_for_id()
    listener.close()
    backup.catch_up()
    assert 'FAIL' not in backup.check().out

    stack.step('stampd', 'stop', 'now')
    stack.stop_postgres('kill')
    backup.stop()
    pgdata = stack.path / 'pg'
    assert 'not empty' in backup.restore(pgdata, '--target-time', text_of(target), status=1).error
    pgdata.rename(stack.path / 'pg.former')
    kept.unlink()
    said = backup.restore(pgdata, '--target-time', text_of(target)).out
    assert 'ns restored --all' in said and kept.read_bytes() == b'kept'
    assert (pgdata / 'recovery.signal').exists() and pgdata.stat().st_mode & 0o777 == 0o700
    stack.postgres.update(written(pgdata))
    stack.step('postgres', 'start')
    wait_until(lambda: stack.psql(None, 'select not pg_is_in_recovery()') == [(True,)], what='the end of the recovery')

    with pytest.raises((Problem, StackError)):  # clients have newer versions than it: nothing is served before `ns restored`
        stack.step('stampd', 'start')
        version_of(stack, 'early')
    assert 'was restored from a backup' in stack.log()
    stack.step('stampd', 'stop', 'now')
    assert 'was restored from a backup' in stack.stampctl('check-config', status=1).out
    stack.admin('ns', 'restored', '--all')
    stack.step('stampd', 'start')
    assert 'was restored' not in stack.stampctl('check-config', status=None).out

    wanted = {'early': 1, 'changed': 2, 'gone': 1, 'late': 2, 'never': None, **{f'last {number}': number for number in range(20)}}
    for id_, value in wanted.items():
        found = stack.get('lab', ('Note', id_))
        assert items_of(found) == ({('Line', 'a'): value} if value is not None else {}), id_
        assert value is None or found['v'] > latest
    for copy in copies:
        synchronise(stack, copy)
        assert copy.items == items_of(stack.get('lab', copy.name))
    assert collect(stack, team).was_complete and set(team.members) == {'stays', 'before'}, 'its token is of no use once'
    for id_ in team.members:
        assert team.copies[id_].items == items_of(stack.get('lab', ('Person', id_)))
    listener = Listener(stack, 'Note/never', last=last)
    assert listener.opened() is False, 'it must look at everything'
    version = stack.put('lab', doc('never', 4))
    assert version > latest
    listener.wait_for('Note/never', version)
    listener.close()
    stack.admin('ns', 'create', 'new')  # made after the restore: it needs no step
    assert stack.psql('new', "select restored = current_setting('stampd.restored') from namespace") == [(True,)]
    shutil.rmtree((stack.path / 'pg.former').resolve())  # pg may be a link
    shutil.rmtree(backup.path)


def test_a_former_folder_is_not_continued(stack, backup):
    """After a restore the cluster has another timeline; nor is another cluster taken for it."""
    settings = json.loads((backup.path / 'backup.json').read_text())
    (backup.path / 'backup.json').write_text(json.dumps({**settings, 'timeline': settings['timeline'] + 1}))
    assert 'begin another folder' in backup.run(status=1).error
    assert 'begin another folder' in backup.check(status=1).out
    assert 'begin another folder' in stack.admin('backup', 'init', backup.path, status=1).error
    (backup.path / 'backup.json').write_text(json.dumps({**settings, 'system': '1'}))
    assert 'begin another folder' in stack.stampctl('backup', 'receive', backup.path, status=1).error


def test_to_the_end_of_the_log_and_to_wrong_times(stack, backup, tmp_path):
    stack.put('lab', doc('one', 1))
    backup.run('--quiet')
    begun = now(stack)
    stack.put('lab', doc('one', 2))
    backup.catch_up()
    target = beside_cluster(stack, 'restored')
    base, = backup.bases()
    during = datetime.strptime(base, '%Y%m%dT%H%M%S%z')  # it began in this second, and ended later
    for words, message in ((('--target-time', text_of(begun - timedelta(days=1))), 'no base backup was finished before'),
                           (('--target-time', text_of(during)), 'no base backup was finished before'),
                           (('--base', base, '--target-time', text_of(during)), f'no base backup {base} that was finished before'),
                           (('--target-time', text_of(begun + timedelta(days=1))), 'the newest commit in the log is of'),
                           (('--base', 'none'), 'there is no base backup none')):
        assert message in backup.restore(target, *words, status=1).error
        assert not target.exists() and not beside_cluster(stack, 'restored.restoring').exists()
    for words in (('--target-time', '2026-11-23 03:15:00'), ('--target-time', 'yesterday')):
        assert 'with its zone' in backup.restore(target, *words, status=2).error
    assert 'absolute path' in backup.restore('restored', status=2).error
    beside_cluster(stack, 'restored.restoring').mkdir()
    assert 'interrupted restore' in backup.restore(target, status=1).error
    beside_cluster(stack, 'restored.restoring').rmdir()
    backup.restore(target)
    assert 'recovery_target_time' not in written(target) and (target / 'PG_VERSION').exists()
    shutil.rmtree(target)


# --- what may be wrong with the log ---

def test_a_missing_and_an_altered_segment_are_found(stack, backup):
    backup.run()
    fill_segments(stack, 4)
    stack.put('lab', doc('filler', 'x'))
    backup.catch_up()
    backup.check()
    segments, target = backup.segments(), beside_cluster(stack, 'restored')
    assert len(segments) >= 4
    victim = backup.path / 'log' / segments[-2]
    content = victim.read_bytes()

    victim.unlink()
    found = backup.check(status=1).out
    assert f'segment {victim.name} is missing' in found
    assert f'segment {victim.name} of the log is missing' in backup.restore(target, status=1).error

    victim.write_bytes(content[:len(content) // 2])
    assert f'segment {victim.name} is missing or damaged' in backup.check(status=1).out

    at = content.index(b'filler')
    victim.write_bytes(content[:at] + b'FILLER' + content[at + 6:])
    found = backup.check(status=1).out
    assert 'FAIL  log: the checksums of its records' in found
    assert 'altered' in backup.restore(target, status=1).error
    assert 'FAIL' not in backup.check('--quick').out, 'which reads nothing'
    victim.write_bytes(content)
    assert 'FAIL' not in backup.check().out
    assert not target.exists() and not beside_cluster(stack, 'restored.restoring').exists()


def test_an_altered_base_backup_is_found(stack, backup):
    backup.run()
    path = backup.path / 'base' / backup.bases()[0] / 'PG_VERSION'
    path.write_text('16\n')
    assert 'FAIL  base backup' in backup.check(status=1).out
    backup.restore(beside_cluster(stack, 'restored'), status=1)
    assert not beside_cluster(stack, 'restored').exists()


def test_a_receiver_that_is_away_is_found(stack, backup):
    backup.run()
    backup.stop()
    wait_until(lambda: backup.rows('not active'), what='the end of the receiver')
    assert 'nothing receives the log' in backup.check('--quick', status=1).out
    metrics = stack.path / 'backup.prom'
    backup.check('--quick', '--metrics', metrics, status=1)
    assert 'stampd_backup_ok 0\n' in metrics.read_text()
    stack.put('lab', doc('meanwhile', 1))
    fill_segments(stack, 2)
    backup.receive()
    backup.catch_up()
    assert backup.check('--quick', '--quiet', '--metrics', metrics).text == ''
    assert 'stampd_backup_ok 1\n' in metrics.read_text() and 'stampd_backup_bases 1\n' in metrics.read_text()
    stack.psql(None, 'select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = %s', (backup.slot,))
    wait_until(lambda: backup.rows('active'), what='the receiver, which connects again')


@pytest.mark.skipif(os.geteuid() != 0, reason='mounts a small disk')
def test_a_full_disk_delays_the_archive_and_spoils_nothing(stack):
    try:
        backup = Backup(stack, 'small', mount='200m')
    except subprocess.CalledProcessError:
        pytest.skip('mounts are not allowed here')
    try:
        backup.run()
        backup.receive()
        before = backup.bases()
        ballast = backup.path / 'ballast'
        with open(ballast, 'wb', buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(b'\0' * 65536)
        log = stack.path / 'log' / f'{backup.slot}.log'
        fill_segments(stack, 2)
        wait_until(lambda: 'No space left' in log.read_text(), what='a full archive')
        assert stack.put('lab', doc('while full', 1)), 'the server goes on'
        assert 'FAIL' in backup.check('--quick', '--log-mb', 1, status=1).out
        said = backup.run(status=1)
        assert 'No space left' in said.error and 'the former ones stay' in said.error
        assert backup.bases() == before and len(list((backup.path / 'base').iterdir())) == 2 * len(before)
        ballast.unlink()
        shutil.rmtree(backup.path / 'base' / before[0])  # room for the log that waits
        backup.catch_up()
        wait_until(lambda: 'OK    slot' in backup.check('--quick', status=None).out, what='the archive')
    finally:
        backup.drop()


# --- what is kept ---

def test_two_base_backups_in_one_second(stack, backup):
    """Their names have seconds."""
    for _ in range(2):
        backup.run()
    first, second = backup.bases()
    assert first < second


def test_old_base_backups_and_what_only_they_need_are_removed(stack, backup, store):
    old, new = put_file(store, b'old'), put_file(store, b'new')
    copy = {path: backup.path / 'files' / path.relative_to(store) for path in (old, new)}
    backup.run()
    first, = backup.bases()
    (backup.path / 'base/20200101T000000Z').mkdir()  # as an interrupted run leaves it
    assert copy[old].read_bytes() == b'old'
    added = put_file(store, b'added')
    stack.admin('backup', 'files', backup.path)
    assert (backup.path / 'files' / added.relative_to(store)).read_bytes() == b'added'
    old.unlink()
    fill_segments(stack, 2)
    backup.catch_up()
    wait_until(lambda: first.replace('Z', '') < datetime.now(timezone.utc).strftime('%Y%m%dT%H%M%S'), what='another second')
    backup.run('--keep', 2)
    assert backup.bases()[0] == first and len(backup.bases()) == 2 and copy[old].exists()
    assert not (backup.path / 'base/20200101T000000Z').exists()
    os.utime(copy[old], (time.time() - 86400,) * 2)
    fill_segments(stack, 1)
    before = backup.segments()
    backup.run('--keep', 1)
    assert first not in backup.bases() and len(backup.bases()) == 1
    assert not copy[old].exists() and copy[new].read_bytes() == b'new'
    assert before[0] not in backup.segments()
    assert 'FAIL' not in backup.check().out


def test_what_init_refuses(stack, backup, tmp_path):
    again = stack.admin('backup', 'init', backup.path)
    assert 'ready' in again.out, 'a second run completes the first'
    other = stack.path / 'other'
    assert 'exists already' in stack.admin('backup', 'init', other, '--user', USER, '--slot', backup.slot, status=1).error
    assert 'not run as root' in stack.admin('backup', 'init', other, '--user', 'root', status=1).error
    assert 'no system user' in stack.admin('backup', 'init', other, '--user', 'nobody-of-that-name', status=1).error
    assert 'absolute path' in stack.admin('backup', 'init', 'other', status=2).error
    assert "expected 1 to 63 of a-z" in stack.admin('backup', 'init', other, '--role', "x' host='y", status=2).error
    assert 'may not replicate' in stack.admin('backup', 'init', other, '--user', USER, '--role', 'stampd', '--slot', 'other', status=1).error
    (tmp_path / 'file').touch()
    assert 'not empty' in stack.admin('backup', 'init', tmp_path, '--user', USER, '--slot', 'another', status=1).error
    assert 'no backup is kept there' in stack.stampctl('backup', 'list', tmp_path, status=1).error
    rights = "select rolsuper, rolcreatedb, rolcreaterole, rolreplication, has_table_privilege(rolname, 'stampd.doc', 'select')" \
             " from pg_roles where rolname = 'stampd_backup'"
    assert stack.psql('lab', rights) == [(False, False, False, True, False)]
    assert backup.path.stat().st_mode & 0o777 == 0o700
    with open(backup.path / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert 'another stampctl is at work' in backup.run(status=1).error

"""Backups by pgBackRest, and the cluster that is made of them and of the archived log, as it was at any time."""
import fcntl
import getpass
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import time
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from collected import Collected
from holder import Copy, items_of
from listener import Listener
from schema import Schemas
from stack import BUILD, Problem, StackError, wait_until

pytestmark = [pytest.mark.plain, pytest.mark.skipif(not shutil.which('pgbackrest'), reason='there is no pgBackRest')]

STACK = {'workers': 2, 'namespaces': {'z': 'open', 'lab': 'open'}, 'settings': {}, 'postgres': {'archive_mode': 'on'}}
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


def give(path):
    """To the user of PostgreSQL; returns it."""
    if os.geteuid() == 0:
        shutil.chown(path, USER)
    return path


def beside_cluster(stack, name):
    """A path for what has as many files as a cluster."""
    return Path(stack.data or stack.path) / name


class Backup:
    """A folder of a backup, and a stanza of pgBackRest whose repository is in it."""

    def __init__(self, stack, name, mount=None, has_database=True):
        self.stack, self.path, self.has_database = stack, beside_cluster(stack, name), has_database
        self.config, self.is_mounted = beside_cluster(stack, f'{name}.conf'), mount is not None
        self.path.mkdir(mode=0o700)
        if mount:
            subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={mount},mode=700', 'tmpfs', self.path], check=True)
        give(self.path)
        self.locks = beside_cluster(stack, f'{name}.locks')
        self.locks.mkdir(exist_ok=True)
        self.keep(7)
        self.environment = {**os.environ, 'PGBACKREST_CONFIG': str(self.config)}
        if not has_database:
            return
        self.program('stanza-create')
        self.command = f'pgbackrest --config={self.config} --stanza=main archive-push %p'
        self.archive(self.command)

    def keep(self, count):
        """So many backups."""
        self.config.write_text(f"""[global]
repo1-path={self.path}/database
repo1-bundle=y
repo1-retention-full={count}
start-fast=y
archive-timeout=60
log-level-file=off
lock-path={give(self.locks)}
[main]
pg1-path={self.stack.psql(None, 'show data_directory')[0][0]}
pg1-socket-path={self.stack.database}
pg1-user=postgres
""")

    def archive(self, command):
        self.stack.postgres['archive_command'] = "'" + command + "'"
        self.stack.psql(None, f"alter system set archive_command = '{command}'")
        self.stack.psql(None, 'select pg_reload_conf()')
        wait_until(lambda: self.stack.psql(None, 'show archive_command') == [(command,)], what='the new settings')

    def program(self, *words):
        words = ['pgbackrest', f'--config={self.config}', '--stanza=main', *words]
        if os.geteuid() == 0:
            words = ['setpriv', '--reuid', USER, '--regid', USER, '--init-groups', *words]
        subprocess.run(words, check=True, cwd='/')

    def run(self, *words, **more):
        return self.stack.admin('backup', 'run', self.path, *words, environment=self.environment, **more)

    def check(self, *words, **more):
        return self.stack.admin('backup', 'check', self.path, *words, environment=self.environment, **more)

    def restore(self, to, *words, **more):
        return self.stack.stampctl('restore', self.path, '--to', to, *words, environment=self.environment, **more)

    def list(self, *words):
        return self.stack.stampctl('backup', 'list', self.path, *words, environment=self.environment).out

    def bases(self):
        return [json.loads(line)['name'] for line in self.list('--json').splitlines()]

    def settle(self):
        """pgBackRest restores to the seconds after the one in which a backup ended."""
        ended = max(json.loads(line)['finished'] for line in self.list('--json').splitlines())
        wait_until(lambda: self.stack.psql(None, "select to_char(now() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SSZ')")[0][0] > ended, what='another second')

    def segments(self):
        """Those that pgBackRest has."""
        return sorted((self.path / 'database/archive/main').glob('*/*/*-*'))

    def catch_up(self):
        """All that was committed is in the archive."""
        self.stack.psql(None, "select pg_logical_emit_message(true, 'stampd', 'something follows')")
        (name,), = self.stack.psql(None, 'select pg_walfile_name(pg_switch_wal())')
        wait_until(lambda: self.stack.psql(None, 'select 1 from pg_stat_archiver where last_archived_wal >= %s', (name,)), what='the archive')

    def drop(self):
        if self.has_database:
            self.archive('true')
            wait_until(lambda: not list((self.stack.path / 'pg/pg_wal/archive_status').glob('*.ready')), what='the end of the archive')
        if self.is_mounted:
            subprocess.run(['umount', self.path], check=True)
        shutil.rmtree(self.path)


@pytest.fixture(scope='module', autouse=True)
def store(stack):
    """The files of attachments."""
    return stack.path / 'files'


@pytest.fixture
def backup(stack):
    backup = Backup(stack, 'backup')
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
    lines = (pgdata / 'postgresql.auto.conf').read_text().split('# Recovery settings generated by pgBackRest')[-1].splitlines()
    return dict(line.split(' = ', 1) for line in lines[1:] if ' = ' in line and not line.startswith('#'))


def take_settings(stack, pgdata):
    """What the restore has added, in place of what an earlier one had: the stack writes them at each start."""
    for name in [name for name in stack.postgres if name.startswith(('recovery_target', 'restore_command'))]:
        del stack.postgres[name]
    stack.postgres.update(written(pgdata))


def fill_segments(stack, count):
    for _ in range(count):
        stack.put('lab', doc(f'filler {next(NUMBERS)}', 1))
        stack.psql(None, 'select pg_switch_wal()')


# --- to a time, and back ---

def test_all_before_the_time_is_there_and_nothing_after(stack, store):
    """Clients that hold newer copies, collections and ids of live events afterwards hold what the server has."""
    backup = Backup(stack, 'first')
    Schemas(stack, None).apply('lab', TEAMS)
    join(stack, 'stays', 'red')
    stack.put('lab', doc('early', 1), doc('changed', 1), doc('gone', 1))
    kept = put_file(store, b'kept')
    backup.run()
    backup.settle()
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
    pgdata = stack.path / 'pg'
    assert 'not empty' in backup.restore(pgdata, '--target-time', text_of(target), status=1).error
    pgdata.rename(stack.path / 'pg.former')
    kept.unlink()
    said = backup.restore(pgdata, '--target-time', text_of(target)).out
    assert 'ns restored --all' in said and kept.read_bytes() == b'kept'
    assert (pgdata / 'recovery.signal').exists() and pgdata.stat().st_mode & 0o777 == 0o700
    take_settings(stack, pgdata)
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
    backup.run()  # the same archive goes on, on another timeline
    assert len(backup.bases()) == 2 and 'FAIL' not in backup.check().out
    backup.drop()


def test_to_the_end_of_the_log_and_to_wrong_times(stack, backup):
    stack.put('lab', doc('one', 1))
    begun = now(stack)
    assert backup.run('--quiet').text == ''
    stack.put('lab', doc('one', 2))
    backup.catch_up()
    target = beside_cluster(stack, 'restored')
    for words, message in ((('--target-time', text_of(begun - timedelta(days=1))), 'unable to find backup set with stop time less than'),
                           (('--target-time', text_of(begun)), 'unable to find backup set with stop time less than'),
                           (('--base', 'none'), 'backup set none is not valid')):
        assert message in backup.restore(target, *words, status=1).error
        assert not (target / 'global/pg_control').exists()
    for time in ('2026-11-23 03:15:00', 'yesterday', '2026-11-23T03:15:00+', '2026-11-23T03:15:00Z0', '2026-11-23T03:15:00.5+012'):
        assert 'with its zone' in backup.restore(target, '--target-time', time, status=2).error
    assert 'absolute path' in backup.restore('restored', status=2).error
    shutil.rmtree(target, ignore_errors=True)
    backup.restore(target, '--base', *backup.bases())
    assert 'recovery_target_time' not in written(target) and (target / 'global/pg_control').exists()
    assert 'archive-get' in written(target)['restore_command'] and ' cp ' not in written(target)['restore_command']
    shutil.rmtree(target)


def test_what_the_archive_lacks_comes_from_the_folder_log(stack, backup):
    """Which the unit stampd-backup@ writes: each commit is there at once, and not only when a segment of the log is full."""
    backup.run()
    log, words = backup.path / 'log', ['--slot=stampd_backup', '--no-password', f'--dbname=host={stack.database} user=postgres']
    unit = (BUILD / 'doc/stampd-backup@.service').read_text()
    for line in re.findall(r'^ExecStart(?:Pre)?=-?\S*/(?:install|find|pg_receivewal) (.*)$', unit, re.M):
        assert '%f/log' in line or '--slot=stampd_backup' in line
    log.mkdir(mode=0o700)
    give(log)
    run = ['setpriv', '--reuid', USER, '--regid', USER, '--init-groups'] if os.geteuid() == 0 else []
    subprocess.run([*run, 'pg_receivewal', '--create-slot', '--if-not-exists', *words], check=True, cwd='/')
    receiver = subprocess.Popen([*run, 'pg_receivewal', f'--directory={log}', '--synchronous', *words], cwd='/')
    try:
        assert 'FAIL' not in backup.check('--quick').out  # which ends a segment of the log: what follows is in no archive
        stack.put('lab', doc('last', 7))
        (end,), = stack.psql(None, 'select pg_current_wal_flush_lsn()::text')
        wait_until(lambda: stack.psql(None, 'select 1 from pg_stat_replication where application_name = %s and flush_lsn >= %s::pg_lsn',
                                      ('pg_receivewal', end)), what='the last commit in the folder')
        stack.step('stampd', 'stop', 'now')
        stack.stop_postgres('kill')
    finally:
        receiver.kill()
        receiver.wait()
    assert list(log.glob('*.partial'))
    pgdata = stack.path / 'pg'
    shutil.rmtree(pgdata.resolve())  # with the log that is not archived
    if pgdata.is_symlink():
        pgdata.unlink()
    backup.restore(pgdata)
    take_settings(stack, pgdata)
    stack.step('postgres', 'start')
    wait_until(lambda: stack.psql(None, 'select not pg_is_in_recovery()') == [(True,)], what='the end of the recovery')
    stack.admin('ns', 'restored', '--all')
    stack.step('stampd', 'start')
    assert items_of(stack.get('lab', ('Note', 'last'))) == {('Line', 'a'): 7}
    (log / ('0' * 24)).touch()  # long since archived
    backup.run()
    assert not (log / ('0' * 24)).exists()


# --- what may be wrong with the log ---

def test_a_missing_and_an_altered_segment_are_found(stack, backup):
    backup.run()
    fill_segments(stack, 4)
    backup.catch_up()
    assert 'FAIL' not in backup.check().out
    segments = backup.segments()
    assert len(segments) >= 4
    victim = segments[-2]
    content = victim.read_bytes()

    victim.unlink()
    assert f'FAIL  log: segments are missing after {segments[-3].name[:24]}' in backup.check('--quick', status=1).out
    first = segments[[path.name[:24] for path in segments].index(json.loads(backup.list('--json'))['first_segment'])]
    victim.write_bytes(content[:len(content) // 2])
    give(victim)
    assert 'FAIL  the checksums of base backups and log' in backup.check(status=1).out
    assert 'FAIL' not in backup.check('--quick').out, 'which reads nothing'
    victim.write_bytes(content)
    assert 'FAIL' not in backup.check().out
    content = first.read_bytes()
    first.unlink()
    assert f'FAIL  log: segments are missing from {first.name[:24]}' in backup.check('--quick', status=1).out
    first.write_bytes(content)


def test_an_altered_base_backup_is_found(stack, backup):
    backup.run()
    path = max((backup.path / 'database/backup/main' / backup.bases()[0]).rglob('*'), key=lambda path: path.stat().st_size)
    path.write_bytes(b'altered' + path.read_bytes()[7:])
    assert 'FAIL  the checksums of base backups and log' in backup.check(status=1).out


def test_an_archive_that_is_away_is_found(stack, backup):
    backup.run()
    metrics = stack.path / 'backup.prom'
    backup.archive('false')
    assert 'FAIL  PostgreSQL archives its log' in backup.check('--quick', '--metrics', metrics, status=1).out
    assert 'stampd_backup_ok 0\n' in metrics.read_text()
    backup.archive(backup.command)
    backup.catch_up()
    assert backup.check('--quick', '--quiet', '--metrics', metrics).text == ''
    assert 'stampd_backup_ok 1\n' in metrics.read_text() and 'stampd_backup_bases 1\n' in metrics.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason='mounts a small disk')
def test_a_full_disk_delays_the_archive_and_spoils_nothing(stack):
    try:
        backup = Backup(stack, 'small', mount='200m')
    except subprocess.CalledProcessError:
        pytest.skip('mounts are not allowed here')
    try:
        backup.run()
        before = backup.bases()
        ballast = backup.path / 'ballast'
        with open(ballast, 'wb', buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(b'\0' * 65536)
        fill_segments(stack, 2)
        wait_until(lambda: 'No space left' in stack.log('postgres'), what='a full archive')
        assert stack.put('lab', doc('while full', 1)), 'the server goes on'
        impatient = {**backup.environment, 'PGBACKREST_ARCHIVE_TIMEOUT': '5'}
        assert 'the former ones stay' in stack.admin('backup', 'run', backup.path, environment=impatient, status=1).error
        assert backup.bases() == before
        ballast.unlink()
        backup.catch_up()
        assert 'FAIL' not in backup.check('--quick').out
    finally:
        backup.drop()


# --- what is kept ---

def test_old_base_backups_and_what_only_they_need_are_removed(stack, backup, store):
    old, new = put_file(store, b'old'), put_file(store, b'new')
    copy = {path: backup.path / 'files' / path.relative_to(store) for path in (old, new)}
    backup.run()
    first, = backup.bases()
    assert copy[old].read_bytes() == b'old'
    added = put_file(store, b'added')
    stack.admin('backup', 'files', backup.path)
    assert (backup.path / 'files' / added.relative_to(store)).read_bytes() == b'added'
    old.unlink()
    fill_segments(stack, 2)
    backup.catch_up()
    backup.run('--type', 'incr')
    assert backup.bases()[0] == first and len(backup.bases()) == 2 and copy[old].exists()
    os.utime(copy[old], (time.time() - 86400,) * 2)
    fill_segments(stack, 1)
    before = backup.segments()
    backup.keep(1)
    backup.run()
    assert first not in backup.bases() and len(backup.bases()) == 1
    assert not copy[old].exists() and copy[new].read_bytes() == b'new'
    assert before[0] not in backup.segments()
    assert 'FAIL' not in backup.check().out


def test_what_is_refused(stack, backup, tmp_path):
    assert 'expected the folder of a backup' in stack.admin('backup', 'files', '/', status=1).error
    open_to_all = stack.path / 'other'
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    give(open_to_all)
    assert 'closed to all others' in stack.admin('backup', 'files', open_to_all, status=1).error
    assert 'No such file' in stack.stampctl('backup', 'list', tmp_path / 'none', status=1).error
    said = backup.stack.admin('backup', 'run', backup.path, '--stanza', 'other', environment=backup.environment, status=1).error
    assert 'no base backup was taken' in said
    assert 'stanza other: missing stanza path' in stack.stampctl('backup', 'list', backup.path, '--stanza', 'other', environment=backup.environment, status=1).error
    assert 'cannot be run' in stack.stampctl('backup', 'list', backup.path, environment={**backup.environment, 'PATH': '/nonexistent'}, status=1).error
    with open(backup.path / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert 'another stampctl is at work' in backup.run(status=1).error

"""Backup and restore by the lines of the page, on the layout of Debian: settings in /etc/postgresql, data elsewhere, the stock
pg_hba.conf, pg_ctlcluster; and pg_receivewal as its unit runs it, with the rights that systemd leaves it."""
import os
import pwd
import re
import shutil
import subprocess
from datetime import timezone
from pathlib import Path

import psycopg2
import pytest

from stack import BUILD, SOURCE, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which('pgbackrest'), reason='PostgreSQL is a system user of its own, and there is pgBackRest')

PAGE = (SOURCE / 'doc/how-to/back-up-and-restore.md').read_text()
SETUP, RECEIVE, RESTORE = re.findall(r'^```sh\n(.*?)^```$', PAGE, re.M | re.S)
CRON = re.findall(r'^\S+ \S+ \S+ \S+ \S+ +root +((?:flock -n \S+ )?stampctl .*)$', PAGE, re.M)
USER = 'postgres'
UNIT = (BUILD / 'doc/stampd-backup@.service').read_text()


def directive(name):
    value, = re.findall(rf'^{name}=(.*)$', UNIT, re.M)
    return value


class Debian:
    """A cluster as `pg_createcluster 15 main` makes it, in a folder; a cluster main of the host is another one."""

    def __init__(self, path):
        self.path, self.name = path, f'{path.name.replace("-", "_")}'
        self.data, self.run, self.backup, self.programs = path / 'var/15/main', path / 'run', path / 'the-backup', path / 'programs'
        self.config = path / 'stampd.conf'
        self.environment = {**os.environ, 'PG_CLUSTER_CONF_ROOT': str(path / 'etc'), 'STAMPD_SQL': str(SOURCE / 'sql'),
                            'PATH': f'{self.programs}:{os.environ["PATH"]}', 'PGHOST': str(self.run), 'LC_ALL': 'C.UTF-8'}
        self.receiver = None
        (path / 'blobs').mkdir()
        (path / 'locks').mkdir()
        shutil.chown(path / 'locks', USER)
        self.config.write_text(f'database = host={self.run} user=stampd\nblob_directory = {path}/blobs\n')
        self.program('stampctl', f'export PGBACKREST_CONFIG={path}/pgbackrest.conf\nexec {BUILD}/src/stampctl "$@" --config {self.config}')
        if not shutil.which('systemd-escape'):  # the smallest Debian has no systemd
            self.program('systemd-escape', r'''printf 'stampd-backup@%s.service\n' "$(echo "$3" | sed 's,^/,,; s,-,\\x2d,g; s,/,-,g')"''')
        self.program('apt', '[ "$*" = "install pgbackrest" ]')
        self.program('systemctl', f'echo "$*" >>{path}/systemctl.log\ncase "$*" in\n'
                                  f'    restart*postgresql*) exec {self.control("restart")} ;;\n    stop*postgresql*) exec {self.control("stop")} ;;\n'
                                  f'    start*postgresql*) exec {self.control("start")} ;;\nesac')

    def program(self, name, lines):
        self.programs.mkdir(exist_ok=True)
        (self.programs / name).write_text(f'#!/bin/sh\n{lines}\n')
        (self.programs / name).chmod(0o755)

    def control(self, verb):
        return f'pg_ctlcluster --skip-systemctl-redirect 15 {self.name} {verb}'

    def shell(self, lines):
        """The lines of the page, with the folders of this cluster."""
        for theirs, ours in (('/srv/backup', self.backup), ('/var/lib/postgresql/15/main', self.data), (' 15 main', f' 15 {self.name}'),
                             ('/etc/pgbackrest.conf', self.path / 'pgbackrest.conf'), ('pgbackrest --stanza', f'pgbackrest --config={self.path}/pgbackrest.conf --stanza'),
                             ('start-fast=y\n', f'start-fast=y\nlog-level-file=off\nlock-path={self.path}/locks\n'), ('[main]\n', f'[main]\npg1-socket-path={self.run}\n')):
            lines = lines.replace(theirs, str(ours))
        done = subprocess.run(['bash', '-eu', '-c', lines], env=self.environment, cwd=self.path, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (lines, done.stdout, done.stderr, self.log())
        return done.stdout + done.stderr

    def log(self):
        path = self.path / 'postgresql.log'
        return path.read_text(errors='replace')[-3000:] if path.exists() else ''

    def create(self):
        self.shell(f'pg_createcluster 15 main --datadir {self.data} --socketdir {self.run} --port 5432 --start-conf manual'
                   f' --logfile {self.path}/postgresql.log --pgoption listen_addresses= --pgoption fsync=off')

    def psql(self, sql, database='stampd_lab', parameters=None):
        connection = psycopg2.connect(f'host={self.run} user=root dbname={database}')  # by peer, as pg_hba.conf of Debian has it
        connection.autocommit = True
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql, parameters)
                return cursor.fetchall() if cursor.description else None
        finally:
            connection.close()

    def put(self, id_, value):
        self.psql("select stampd.put_item('Note', %s, 'Line', 'a', %s)", parameters=(id_, value))

    def notes(self):
        return dict(self.psql("select id, content from stampd.item where class = 'Note' and content is not null"))

    def receive(self, folder):
        """ExecStartPre and ExecStart of the unit, as the user and with the mask that it has there."""
        assert directive('NoNewPrivileges') == 'yes' and directive('User') == USER
        *before, line = re.findall(r'^ExecStart(?:Pre)?=(.*)$', UNIT, re.M)
        words = ['setpriv', '--reuid', USER, '--regid', USER, '--init-groups', '--no-new-privs']
        more = {'umask': int(directive('UMask'), 8), 'stdin': subprocess.DEVNULL, 'env': self.environment, 'cwd': '/'}
        for first in before:
            subprocess.run([*words, *first.replace('%f', folder).split()], check=True, **more)
        self.receiver = subprocess.Popen([*words, *line.replace('%f', folder).split()], **more)
        wait_until(lambda: self.psql('select 1 from pg_replication_slots where active') or self.receiver.poll(), what='the receiver')
        assert self.receiver.poll() is None, 'it has ended'

    def catch_up(self):
        self.psql("select pg_logical_emit_message(true, 'stampd', 'something follows')")
        (end,), = self.psql('select pg_current_wal_flush_lsn()::text')
        wait_until(lambda: self.psql('select 1 from pg_stat_replication r join pg_replication_slots s on s.active_pid = r.pid'
                                     ' where r.flush_lsn >= %s::pg_lsn', parameters=(end,)), what='the archive')

    def stop_receiver(self):
        """As systemd ends it: by SIGTERM."""
        if self.receiver:
            self.receiver.terminate()
            self.receiver.wait()
            self.receiver = None

    def remove(self):
        self.stop_receiver()
        subprocess.run(f'{self.control("stop")} -m immediate'.split(), env=self.environment, capture_output=True, timeout=120)


@pytest.fixture(scope='module')
def debian():
    path = Path(f'/var/tmp/stampd-debian-{os.getpid()}')
    path.mkdir(mode=0o711)
    debian = Debian(path)
    try:
        debian.create()
        debian.shell(debian.control('start'))
        debian.shell('runuser -u postgres -- createuser --superuser root')
        for code in ('z', 'lab'):
            debian.shell(f'stampctl ns create {code}')
        yield debian
    finally:
        debian.remove()
        shutil.rmtree(path)


def test_set_up_by_the_page(debian):
    debian.put('early', '1')
    assert 'base backup' in debian.shell(SETUP)
    debian.shell(RECEIVE)
    enabled, = re.findall(r'^enable --now stampd-backup@(.*)\.service$', (debian.path / 'systemctl.log').read_text(), re.M)
    folder = '/' + re.sub(r'\\x(..)', lambda found: chr(int(found[1], 16)), enabled.replace('-', '/'))  # %f
    assert folder == str(debian.backup)
    debian.receive(folder)
    debian.put('late', '1')
    debian.catch_up()
    assert len(CRON) == 4
    for line in CRON:
        assert debian.shell(line) == '', 'cron mails what is printed'
    assert debian.backup.stat().st_mode & 0o777 == 0o700 and {path.owner() for path in debian.backup.rglob('*')} == {USER}
    assert not [path for path in (debian.backup / 'log').iterdir() if path.stat().st_mode & 0o077], 'closed to all others'


def test_restore_by_the_page(debian):
    (target,), = debian.psql('select clock_timestamp()')
    debian.put('never', '1')
    debian.put('late', '2')
    debian.catch_up()
    debian.stop_receiver()
    settings = {path: path.read_bytes() for path in (debian.path / 'etc').rglob('*') if path.is_file() and path.name != 'log'}
    assert '2026-11-23T03:15:00Z' in RESTORE
    debian.shell(RESTORE.replace('2026-11-23T03:15:00Z', target.astimezone(timezone.utc).isoformat()))
    assert debian.notes() == {'early': '1', 'late': '1'}
    assert settings == {path: path.read_bytes() for path in settings}, 'a restore changes nothing in /etc/postgresql'
    assert debian.data.stat().st_uid == pwd.getpwnam('postgres').pw_uid
    assert debian.psql('show config_file') == [(f'{debian.path}/etc/15/{debian.name}/postgresql.conf',)]
    assert debian.psql("select restored <> '' and restored = current_setting('stampd.restored') from stampd.namespace") == [(True,)]
    assert debian.name in debian.shell('pg_lsclusters --no-header') and ' online ' in debian.shell('pg_lsclusters --no-header')
    debian.put('afterwards', '1')


def test_restore_on_a_new_host(debian):
    """Which has neither settings nor data: pg_createcluster makes both, and the restore takes the place of the data."""
    debian.shell(debian.control('stop'))
    for path in (debian.path / 'etc', debian.path / 'var'):
        shutil.rmtree(path)
    assert 'pg_createcluster 15 main' in PAGE
    debian.create()
    shutil.rmtree(debian.data)
    said = debian.shell(f'stampctl restore {debian.backup} --to {debian.data}')
    assert 'the end of the log' in said
    debian.shell(RESTORE[RESTORE.index('systemctl start postgresql'):])
    assert debian.notes() == {'early': '1', 'late': '1', 'afterwards': '1'}, 'the timeline of the first restore'

"""A standby of a stack's PostgreSQL: it is cut off, and takes over under the name of the primary.  Plain PostgreSQL, no Patroni."""
import itertools
import os
import shutil
import subprocess
import threading

import psycopg2

from stack import PATIENCE_S, wait_until
from standby import waiting

POSTGRES_USER = os.environ.get('POSTGRES_USER', 'postgres')
SOCKET = '.s.PGSQL.5432'
numbers = itertools.count(1)


def programs():
    """The folder of PostgreSQL's own programs."""
    return subprocess.run(['pg_config', '--bindir'], capture_output=True, text=True, check=True).stdout.strip()


class Replica:
    """Follows the server that answers under the stack's name, from its start; `with` ends it."""

    def __init__(self, stack):
        self.stack, self.name = stack, f'replica{next(numbers)}'
        self.data, self.sockets = stack.path / self.name, stack.path / f'run/{self.name}'

    def __enter__(self):
        for folder in (self.data, self.sockets):
            folder.mkdir(mode=0o700)
            if os.geteuid() == 0:
                shutil.chown(folder, POSTGRES_USER)
        self.sockets.chmod(0o755)
        self.program('pg_basebackup', '-D', self.data, '-h', self.stack.database, '-U', 'postgres', '--checkpoint=fast', '-R')
        with (self.data / 'postgresql.auto.conf').open('a') as file:
            file.write(f"unix_socket_directories = '{self.sockets}'\ncluster_name = '{self.name}'\n")
        self.start()
        return self

    def __exit__(self, *_):
        self.program('pg_ctl', '-D', self.data, '-m', 'immediate', '-w', 'stop', check=False)

    def program(self, name, *words, check=True):
        prefix = ['runuser', '-u', POSTGRES_USER, '--'] if os.geteuid() == 0 else []
        done = subprocess.run([*prefix, f'{programs()}/{name}', *map(str, words)], cwd='/', stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        assert not check or done.returncode == 0, (name, done.stdout, done.stderr)

    def start(self):
        self.program('pg_ctl', '-D', self.data, '-l', self.data / 'server.log', '-t', PATIENCE_S, '-w', 'start')

    def psql(self, ns, sql, parameters=None):
        """Of this server, whichever answers under the stack's name."""
        session = psycopg2.connect(f'host={self.sockets} user=postgres dbname={"stampd_" + ns if ns else "postgres"}', options='-c search_path=stampd')
        session.autocommit = True
        with session.cursor() as cursor:
            cursor.execute(sql, parameters)
            rows = cursor.fetchall() if cursor.description else None
        session.close()
        return rows

    def is_waited_for(self):
        """From now on every commit of the primary waits for this server."""
        self.stack.psql(None, f"alter system set synchronous_standby_names = '{self.name}'")
        self.stack.psql(None, 'select pg_reload_conf()')
        wait_until(lambda: self.stack.psql(None, "select 1 from pg_stat_replication where sync_state = 'sync'"), what='a synchronous standby')

    def catch_up(self):
        """Waits until it has all that the primary has written."""
        end = self.stack.psql(None, 'select pg_current_wal_insert_lsn()')[0][0]
        self.stack.psql(None, "select pg_logical_emit_message(true, 'catch up', '')")
        wait_until(lambda: self.psql(None, 'select pg_last_wal_replay_lsn() >= %s', (end,))[0][0], what='the replica')

    def cut_off(self):
        """It receives nothing any more: commits that wait for it wait from now on."""
        self.follow('')
        wait_until(lambda: not self.stack.psql(None, 'select 1 from pg_stat_replication where application_name = %s', (self.name,)), what='the cut')

    def follow(self, conninfo):
        self.psql(None, f"alter system set primary_conninfo = '{conninfo}'")
        self.psql(None, 'select pg_reload_conf()')

    def come_back(self):
        self.follow(f'host={self.stack.database} user=postgres')

    def take_over(self, stops=True):
        """It is the primary, under the name of the former one: that is killed, or goes on without a name."""
        former = self.stack.path / 'run/postgres' / SOCKET
        if stops:
            self.stack.stop_postgres('kill')
        for connection in self.stack.connections.values():
            connection.close()
        self.stack.connections.clear()
        self.psql(None, "alter system reset synchronous_standby_names")
        self.program('pg_ctl', '-D', self.data, '-t', PATIENCE_S, '-w', 'promote')
        if not stops:
            former.rename(former.with_name('former'))
        former.symlink_to(self.sockets / SOCKET)


def until_commits_wait(stack):
    """Returns when a commit that waits for nobody but the standby hangs: those of others do, too.  It is ended."""
    def probe():
        session = psycopg2.connect(stack.conninfo())
        try:
            with session.cursor() as cursor:
                cursor.execute("select pg_logical_emit_message(true, 'probe', '')")
            session.commit()
        except psycopg2.Error:
            pass
        session.close()
    thread = threading.Thread(target=probe)
    thread.start()
    wait_until(lambda: waiting(stack, 'postgres'), what='a commit that waits')
    for pid in waiting(stack, 'postgres'):
        stack.psql(None, 'select pg_cancel_backend(%s)', (pid,))
    thread.join()

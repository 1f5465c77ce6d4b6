"""PostgreSQL under Patroni with etcd, each node on a host of its own (network.py), with synchronous replication; and stampd on this host."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import psycopg2

from network import HOST, Unavailable
from replica import POSTGRES_USER, programs
from stack import Stack, is_alive

PORT, ETCD_PORT, API_PORT = 5432, 2379, 8008
# Short, so that there can be many failovers: seconds of the leader's lease, of its loop.
TTL_S, LOOP_S = 6, 1
SETTLED_S = 300
STUCK_S = 30
LOOK_S = 1  # so long an answer is waited for
PARAMETERS = {'fsync': 'off', 'shared_buffers': '32MB', 'max_connections': 100, 'min_wal_size': '80MB', 'wal_keep_size': '256MB',
              'log_line_prefix': '%m [%p] %q%u@%d ', 'wal_receiver_timeout': '4s', 'wal_sender_timeout': '4s', 'jit': 'off',
              'checkpoint_timeout': '1min', 'tcp_keepalives_idle': 3, 'tcp_keepalives_interval': 2, 'tcp_keepalives_count': 2}


def check_programs():
    """Raises Unavailable, with the package that is missing."""
    for program, package in (('etcd', 'etcd-server'), ('patroni', 'patroni'), ('setpriv', 'util-linux')):
        if not shutil.which(program):
            raise Unavailable(f'the program {program} is missing (Debian: apt-get install {package})')


class Process:
    """A program on a host of the network; what it prints goes to `log`."""

    def __init__(self, network, host, log, *words, environment=None):
        self.words, self.log, self.environment = [*network.words(host, POSTGRES_USER), *map(str, words)], log, environment or {}
        self.child = None

    def start(self):
        if not self.runs():
            with open(self.log, 'a') as log:
                self.child = subprocess.Popen(self.words, cwd='/', stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                              env={**os.environ, **self.environment}, start_new_session=True)

    def runs(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, what):
        if self.runs():
            self.child.send_signal(what)

    def kill(self):
        if self.runs():
            self.child.kill()
            self.child.wait()


class Node:
    """A PostgreSQL with its Patroni."""

    def __init__(self, cluster, number):
        self.cluster, self.name = cluster, f'node{number}'
        self.host = cluster.network.add(self.name)
        self.address = cluster.network.address(self.host)
        self.folder = cluster.room / self.name
        self.folder.mkdir(mode=0o700)
        shutil.chown(self.folder, POSTGRES_USER)
        self.patroni = Process(cluster.network, self.host, cluster.room / f'log/{self.name}.log', 'patroni', self.configure())

    def configure(self):
        cluster = self.cluster
        dcs = {'ttl': cluster.ttl_s, 'loop_wait': LOOP_S, 'retry_timeout': (cluster.ttl_s - LOOP_S) // 2, 'maximum_lag_on_failover': 1 << 20, 'synchronous_mode': True,
               'postgresql': {'use_pg_rewind': True, 'use_slots': True, 'parameters': PARAMETERS}}
        access = [f'host {what} all {cluster.network.address(0)}/24 trust' for what in ('all', 'replication')]
        settings = {
            'scope': 'stampd', 'name': self.name,
            'restapi': {'listen': f'{self.address}:{API_PORT}', 'connect_address': f'{self.address}:{API_PORT}'},
            'etcd': {'hosts': f'{cluster.etcd_address}:{ETCD_PORT}'},
            'bootstrap': {'dcs': dcs, 'initdb': [{'encoding': 'UTF8'}, {'locale': 'C.UTF-8'}, {'username': 'postgres'}]},
            'postgresql': {
                'listen': f'{self.address}:{PORT}', 'connect_address': f'{self.address}:{PORT}', 'data_dir': str(self.folder / 'data'),
                'bin_dir': programs(), 'pgpass': str(self.folder / 'pgpass'), 'pg_hba': ['local all all trust', *access],
                'authentication': {'superuser': {'username': 'postgres'}, 'replication': {'username': 'postgres'}, 'rewind': {'username': 'postgres'}},
                'parameters': {'unix_socket_directories': str(self.folder)}, 'basebackup': [{'checkpoint': 'fast'}],
                'remove_data_directory_on_rewind_failure': True, 'remove_data_directory_on_diverged_timelines': True},
            'watchdog': {'mode': 'off'}}
        path = self.cluster.room / f'{self.name}.yml'
        path.write_text(json.dumps(settings))  # which is YAML too
        return path

    # --- processes ---

    def pids(self):
        return self.cluster.network.pids(self.host)

    def server(self):
        """The process of PostgreSQL that begins the others; 0: none runs."""
        with contextlib.suppress(FileNotFoundError, IndexError, ValueError):
            pid = int((self.folder / 'data/postmaster.pid').read_text().split()[0])
            return pid if pid in self.pids() and is_alive(pid) else 0
        return 0

    def servers(self):
        """All processes of PostgreSQL."""
        server = self.server()
        return [pid for pid in self.pids() if pid == server or f'PPid:\t{server}\n' in read_status(pid)] if server else []

    def kill(self):
        """As when the machine dies, but for what is in its files."""
        while pids := self.pids():
            for pid in pids:
                send(pid, signal.SIGKILL)
            self.patroni.kill()

    # --- state ---

    def answers(self, path):
        """Does Patroni say so?  `leader`: it holds the lease; `sync`: it is the standby that commits wait for."""
        try:
            with urllib.request.urlopen(f'http://{self.address}:{API_PORT}/{path}', timeout=LOOK_S) as answer:
                return answer.status == 200
        except OSError:
            return False

    def psql(self, statement, database='postgres'):
        """Rows; None: it does not answer."""
        try:
            session = psycopg2.connect(f'host={self.address} port={PORT} user=postgres dbname={database} connect_timeout=2 tcp_user_timeout=3000',
                                       options='-c statement_timeout=3s -c search_path=stampd')
        except psycopg2.Error:
            return None
        try:
            session.autocommit = True
            with session.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall()
        except psycopg2.Error:
            return None
        finally:
            session.close()


def read_status(pid):
    try:
        return Path(f'/proc/{pid}/status').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ''


def send(pid, what):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)


class Cluster:
    """`with` ends it.  `ttl_s`: of the lease of the leader.  `database` and `key_file`: as of a Stack that others are beside."""

    def __init__(self, network, nodes, ttl_s=TTL_S):
        self.network, self.ttl_s, self.front = network, ttl_s, None
        self.room = Path(tempfile.mkdtemp(prefix='stampd-cluster-', dir=os.environ.get('STAMPD_TEST_CLUSTER', '/var/tmp')))
        self.room.chmod(0o755)
        (self.room / 'log').mkdir()
        (self.room / 'etcd').mkdir(mode=0o700)
        shutil.chown(self.room / 'etcd', POSTGRES_USER)
        self.key_file = self.room / 'admin.key'
        self.etcd_host = network.add('etcd')
        self.etcd_address = network.address(self.etcd_host)
        self.etcd = Process(network, self.etcd_host, self.room / 'log/etcd.log', 'etcd', '--name', 'one', '--data-dir', self.room / 'etcd',
                            '--unsafe-no-fsync', '--enable-v2', '--listen-client-urls', f'http://{self.etcd_address}:{ETCD_PORT}', '--advertise-client-urls',
                            f'http://{self.etcd_address}:{ETCD_PORT}', '--listen-peer-urls', f'http://{self.etcd_address}:2380',
                            '--initial-advertise-peer-urls', f'http://{self.etcd_address}:2380', '--initial-cluster',
                            f'one=http://{self.etcd_address}:2380', '--logger', 'zap', '--log-level', 'warn')
        self.nodes = [Node(self, number) for number in range(1, nodes + 1)]

    @property
    def database(self):
        """What stands behind host= in a connection string: all nodes, or what is in front of them (haproxy.py)."""
        if self.front:
            return self.front.database
        return ','.join(node.address for node in self.nodes) + f' port={PORT} target_session_attrs=primary connect_timeout=3 tcp_user_timeout=10000'

    def __enter__(self):
        try:
            self.start()
            self.settle()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def start(self):
        """Whatever does not run."""
        self.etcd.start()
        for node in self.nodes:
            node.patroni.start()

    def end(self):
        for host in (*(node.host for node in self.nodes), self.etcd_host):
            self.network.end_all(self.network.hosts[host])
        for process in (self.etcd, *(node.patroni for node in self.nodes)):
            process.kill()

    def remove(self):
        shutil.rmtree(self.room, ignore_errors=True)

    def hosts(self):
        return [HOST, self.etcd_host, *(node.host for node in self.nodes)]

    # --- state ---

    def leader(self):
        """The node that has the lease; None: no such answers."""
        return next((node for node in self.nodes if node.answers('leader')), None)

    def others(self, node):
        return [other for other in self.nodes if other is not node]

    def is_settled(self):
        """There is one primary, which all others follow, and which waits for one of them."""
        leader = self.leader()
        primaries = [node for node in self.nodes if node.psql('select pg_is_in_recovery()') == [(False,)]]
        if not leader or primaries != [leader] or not all(other.psql('select pg_is_in_recovery()') == [(True,)] for other in self.others(leader)):
            return False
        followers = leader.psql("select sync_state from pg_stat_replication where state = 'streaming'")
        return followers is not None and len(followers) == len(self.nodes) - 1 and ('sync',) in followers and any(
            node.answers('sync') for node in self.others(leader))

    def is_safe(self):
        """There is a primary, and one who may take over from it."""
        leader = self.leader()
        return leader is not None and any(node.answers('sync') for node in self.others(leader)) and leader.psql(
            "select 1 from pg_stat_replication where state = 'streaming' and sync_state = 'sync'") == [(1,)]

    def settle(self, seconds=SETTLED_S):
        """Helps, as an administrator would, where that does not come true by itself."""
        end = time.monotonic() + seconds
        while not self.settles(STUCK_S):
            assert time.monotonic() < end, f'no primary with its standbys in {seconds} s'
            self.help()

    def help(self):
        """Standbys that do not follow get a new copy: pg_rewind does not survive to be killed.  Without a leader all of Patroni begins again."""
        leader = self.leader()
        following = leader and leader.psql("select host(client_addr) from pg_stat_replication where state = 'streaming'")
        for node in self.others(leader) if following is not None else self.nodes:
            if following is None:
                node.patroni.kill()
            elif (node.address,) not in following:
                node.kill()
                shutil.rmtree(node.folder / 'data', ignore_errors=True)
        self.start()

    def settles(self, seconds, look=None):
        """False: not within this time, and the next may be done to it as it is."""
        end, look = time.monotonic() + seconds, look or self.is_settled
        while time.monotonic() < end:
            if look():
                return True
            time.sleep(0.2)
        return False

    def switch(self, leader, candidate):
        """A planned switchover; False: Patroni refuses it."""
        body = json.dumps({'leader': leader.name, 'candidate': candidate.name}).encode()
        request = urllib.request.Request(f'http://{leader.address}:{API_PORT}/switchover', body, {'Content-Type': 'application/json'})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status == 200
        except OSError:
            return False


class ClusterStack(Stack):
    """stampd and nginx whose database is the cluster."""

    def __init__(self, name, cluster, **more):
        super().__init__(name, beside=cluster, **more)

    def start(self):
        self.step('instance', str(self.key_file), *(f'{code}={access}' for code, access in self.namespaces.items()))
        return self

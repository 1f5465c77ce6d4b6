"""A private PostgreSQL, nginx and stampd for one file of system tests.

Everything that starts or ends a process is in scripts/lib/stack.sh, which the demonstration uses too; this is its
Python face, with the requests and the looks behind the scenes that tests need.
"""
import contextlib
import fcntl
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg2
import requests
from requests.adapters import HTTPAdapter

from cluster import CLUSTER_ROOM, ROOM, cluster_folder
from thin_session import ThinSession

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get('STAMPD_BUILD', SOURCE / 'var/build')).resolve()
# The build whose stampctl prepares stacks, some ten commands for each: without the sanitizers these take half the time.
TOOLS = Path(os.environ.get('STAMPD_TOOLS', BUILD)).resolve()
NAMESPACES = {'z': 'closed', 'demo': 'read', 'lab': 'open'}

# As whom programs run that root starts: as root they refuse to.
SERVER_USER = {'user': 'daemon'} if os.geteuid() == 0 else {}


def give(path):
    """Makes the folder one that the programs may write in; returns it."""
    if SERVER_USER:
        shutil.chown(path, SERVER_USER['user'])
    return path


# Long, since the machine may be busy: what never comes true fails, all else goes on at once.  In scripts/check the limit of a test, which knows
# how busy the machine is, ends it before.
PATIENCE_S = 240
USUAL_LOAD = 4  # so many processes for each processor want to run at once in scripts/check, on a machine with nothing else to do

# The shares of long requests as they are by themselves.  A Stack has none: the machine may be slow, and a short request a long one there.
DEFAULT_SHARES = {'limit_client_long': 0, 'limit_namespace_long': 0}
NO_SHARES = dict.fromkeys(DEFAULT_SHARES, 128)

SANITIZER = re.compile(r'(Address|Leak|UndefinedBehavior)Sanitizer|runtime error:|Assertion .* failed')


class Ended:
    """A program that has ended: its status and what it printed."""

    def __init__(self, done):
        self.status, self.out, self.error = done.returncode, done.stdout, done.stderr

    @property
    def text(self):
        return self.out + self.error


def run_program(*words, status=0, text=None, timeout=PATIENCE_S, environment=None, **more):
    """Runs it with `text` on its standard input.  It must end with `status`; None: with any."""
    done = subprocess.run([str(word) for word in words], input=text, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, 'STAMPD_SQL': str(SOURCE / 'sql'), **(environment or {})}, **more)
    assert status in (None, done.returncode), (words, done.returncode, done.stdout[-2000:], done.stderr)
    return Ended(done)


def stampctl(*words, **more):
    return run_program(BUILD / 'src/stampctl', *words, **more)


def remove_folder(path):
    """Of stacks, or demonstrations, with what they have in memory (scripts/lib/stack.sh)."""
    for run in [found for pattern in ('', 'state/', '*/state/') for found in path.glob(f'{pattern}run/stampd')]:
        shutil.rmtree(run.resolve(), ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)


class StackError(Exception):
    """A step of the shell functions failed; the words are its own."""


class Problem(Exception):
    """An answer application/problem+json."""

    def __init__(self, response):
        self.response = response
        self.status = response.status_code
        self.body = response.json()
        self.code = self.body.get('code')
        super().__init__(f'{self.status} {json.dumps(self.body)}')


def refused(code, action, *arguments, status=None, **more):
    """The Problem with this code (and status) by which the action is refused."""
    try:
        done = action(*arguments, **more)
    except Problem as problem:
        assert problem.code == code and status in (None, problem.status), problem
        return problem
    raise AssertionError(f'not refused: {done}')


def ports():
    """Loopback ports below those that the kernel gives to clients, none twice; what runs side by side has its own, by its
    place, one of 16 (STAMPD_TEST_PLACE)."""
    beside = int(os.environ.get('STAMPD_TEST_PLACE', 0)) % 16
    first = random.randrange(750)
    return itertools.cycle(20000 + beside * 750 + (first + number) % 750 for number in range(750))


PORTS = ports()


def free_port():
    for port in PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(('127.0.0.1', port))
                return port
            except OSError:
                continue
    raise AssertionError('there is always a next port')


def comparable(headers, *without):
    """Without what differs between any two answers; nginx closes a connection with its thousandth."""
    left_out = {'date', 'x-request-id', 'connection', *map(str.lower, without)}
    return {name: value for name, value in headers.items() if name.lower() not in left_out}


def wait_until(look, seconds=PATIENCE_S, what='it'):
    """Calls `look` until it returns something true, which is returned; what takes long is looked at less often, as looking costs time, too."""
    begun = time.monotonic()
    while True:
        found = look()
        if found:
            return found
        waited = time.monotonic() - begun
        assert waited < seconds, f'{what} did not come true in {seconds} s'
        time.sleep(min(0.1, 0.02 + waited / 20))


def strain():
    """How many times as long as usual things may take now."""
    return max(1, os.getloadavg()[0] / USUAL_LOAD / os.cpu_count())


def process_state(pid):
    """What the kernel has of it from its state on (proc(5), stat); none: there is no such process."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid):
    return process_state(pid)[:1] not in ([], ['Z'])


def children(pid):
    try:
        found = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    except (FileNotFoundError, ProcessLookupError):  # the kernel has no such file, perhaps
        found = [entry.name for entry in Path('/proc').iterdir() if entry.name.isdigit()]
    states = {int(child): process_state(child) for child in found}
    return sorted(child for child, state in states.items() if state and state[0] != 'Z' and int(state[1]) == pid)


def name_of(pid):
    try:
        return Path(f'/proc/{pid}/comm').read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ''


def command_line(pid):
    try:
        return Path(f'/proc/{pid}/cmdline').read_text().replace('\0', ' ').strip()
    except (FileNotFoundError, ProcessLookupError):
        return ''


def seed():
    """What all stacks of a run copy (stack_seed in scripts/lib/stack.sh): making it takes longer than all else of their start."""
    room = os.environ.get(CLUSTER_ROOM)
    if not room:
        return ''
    with open(Path(room) / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (Path(room) / 'seeded').exists():
            subprocess.run([SOURCE / 'scripts/stack', 'seed'], env={**os.environ, 'STACK': room, 'STACK_BUILD': str(TOOLS)},
                           stdin=subprocess.DEVNULL, check=True, timeout=300)
    return room


class Reloads:
    """Sends a request once more when its connection was closed because nginx has reloaded meanwhile: an nginx worker that
    leaves ends its current requests, but closes idle connections at the moment at which a client may write to them.  A GET or
    HEAD that met the end of a kept connection, before any byte of an answer, is sent again in any case, once, as by any client."""

    def __init__(self, stack):
        self.stack, self.known = stack, None

    def send(self, method, send, drop, may_repeat=True):
        if self.known is None:
            self.known = self.stack.nginx_workers()
        is_again = False
        while True:
            try:
                return send()
            except requests.ConnectionError as error:
                now = self.stack.nginx_workers()
                may_be_late = not is_again and method in ('GET', 'HEAD') and 'RemoteDisconnected' in str(error)
                if now == self.known and not may_be_late or not may_repeat:
                    raise
                is_again = True
                self.known = now
                drop()


class AcrossReloads(HTTPAdapter):
    def __init__(self, reloads):
        super().__init__()
        self.reloads = reloads

    def send(self, request, **more):
        return self.reloads.send(request.method, lambda: super(AcrossReloads, self).send(request, **more), self.poolmanager.clear,
                                 isinstance(request.body, (bytes, str, type(None))))


class StackSession(ThinSession):
    """That of a stack."""

    def __init__(self, stack):
        super().__init__(stack.url, stack.probe_url)
        self.trust_env = False
        self.verify = str(stack.path / 'etc/certificate.pem')
        self.reloads = Reloads(stack)
        self.mount(stack.url, AcrossReloads(self.reloads))

    def deliver(self, method, *more):
        return self.reloads.send(method, lambda: super(StackSession, self).deliver(method, *more), self.drop_idle)


class Stack:
    """`settings` are lines of stampd.conf, `postgres` of postgresql.conf; `beside` is another Stack whose PostgreSQL is
    used, for a second instance of stampd; `build` is another folder whose src/stampd and src/stampctl are run, `tools` one whose
    src/stampctl prepares it."""

    in_turn = True  # a test that sends some requests meets each worker

    def __init__(self, name='stack', workers=4, settings=None, postgres=None, namespaces=None, beside=None, build=BUILD, tools=None):
        self.path = Path(tempfile.mkdtemp(prefix=f'stampd-{name}-'[:32], dir=ROOM))
        self.path.chmod(0o711)
        self.workers = workers
        self.settings = {'limit_read_ms': 60000, **NO_SHARES, **(settings or {})}
        self.postgres = {'fsync': 'off', 'shared_buffers': '64MB', **(postgres or {})}
        self.namespaces = NAMESPACES if namespaces is None else namespaces
        self.beside = beside
        self.data = cluster_folder(self.path.name)
        self.build = build
        self.tools = tools or (TOOLS if build == BUILD else build)
        self.port, self.probe_port, self.local_port = free_port(), free_port(), 0  # 0: not without TLS
        self.url = f'https://127.0.0.1:{self.port}'
        self.probe_url = f'http://127.0.0.1:{self.probe_port}'
        self.key_file = beside.key_file if beside else self.path / 'admin.key'
        self.http = StackSession(self)
        self.connections = {}

    # --- life ---

    def start(self):
        try:
            if self.beside:
                self.step('instance', str(self.key_file))
            else:
                self.step('start', str(self.key_file), *(f'{code}={access}' for code, access in self.namespaces.items()))
        except StackError:
            self.stop()
            raise
        return self

    def stop(self):
        self.close()
        self.step('stop')

    def remove(self):
        """Ends it; what a sanitizer or an assertion has reported of its processes is a failure, and its logs are kept."""
        self.close()
        self.step('stop', 'immediate')
        reports = self.reports()
        if reports:
            self.keep()
        else:
            remove_folder(self.path)
            if self.data:
                shutil.rmtree(self.data, ignore_errors=True)
        assert not reports, (str(self.path), reports)

    def reports(self):
        return [line for part in ('stampd', 'queue') for line in self.log(part).splitlines() if SANITIZER.search(line)]

    def keep(self):
        """What somebody will look at; not the databases, which are large: those only with STAMPD_KEEP=all."""
        print(f'kept: {self.path}')
        if os.environ.get('STAMPD_KEEP') != 'all':
            for path in (self.path / 'pg', self.path / 'pg.new', *([self.data] if self.data else [])):
                shutil.rmtree(path, ignore_errors=True)

    def close(self):
        self.http.close()
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    def step(self, *words):
        environment = dict(
            os.environ, STACK=str(self.path), STACK_BUILD=str(self.build), STACK_TOOLS=str(self.tools), STACK_PORT=str(self.port),
            STACK_PROBE_PORT=str(self.probe_port), STACK_LOCAL_PORT=str(self.local_port), STACK_IN_TURN='yes' if self.in_turn else 'no', STACK_WORKERS=str(self.workers), STACK_SEED=seed() if words[0] in ('start', 'instance') else '', STACK_DATA=str(self.data),
            STACK_SETTINGS='\n'.join(f'{name} = {value}' for name, value in self.settings.items()),
            STACK_POSTGRES='\n'.join(f'{name} = {value}' for name, value in self.postgres.items()))
        if self.beside:
            environment['STACK_DATABASE'] = str(self.database)
        done = subprocess.run([SOURCE / 'scripts/stack', *words], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        if done.returncode != 0:
            raise StackError(f'{" ".join(words)}: {done.stderr.strip() or done.stdout.strip() or done.returncode}')
        return done.stdout.strip()

    def set(self, **settings):
        """Changes settings of stampd, and restarts it."""
        self.settings.update(settings)
        self.step('stampd', 'stop', 'now')
        self.step('instance', str(self.key_file))

    # --- processes ---

    def pid(self, part='stampd'):
        """By the note of the scripts: its number, when it has begun, in which boot."""
        try:
            pid, start, *_ = (self.path / f'run/{part}.pid').read_text().split()
        except (FileNotFoundError, ValueError):
            pid, start = 0, ''
        state = process_state(pid)
        if not state or state[0] == 'Z' or state[19] != start:
            raise StackError(f'{part} does not run')
        return int(pid)

    def worker_pids(self):
        """The processes that listen for requests, by number of worker; and the relay.  The others look like a worker until
        they have taken their names."""
        end = time.monotonic() + 60  # one of the others may die again and again
        while True:
            names = {pid: name_of(pid) for pid in children(self.pid())}
            others = ({'stampd-live'} if self.settings.get('live') != 'off' else set()) | {'stampd-keeper'} | ({'stampd-decrypt'} if self.settings.get('site_key_file') else set())
            if (BUILD / 'src/stamp-thumbnail').exists() and self.settings.get('thumbnail_program') != 'none':
                others |= {'stampd-thumbs'}
            if others <= set(names.values()) or time.monotonic() > end:
                return [pid for pid, name in names.items() if name not in others | {'stampd-mover', 'stampd-decrypt', 'stampd-thumbs'}]
            time.sleep(0.02)

    def keeper(self):
        """The process that deletes what has expired, and what need not be remembered any longer."""
        return wait_until(lambda: [pid for pid in children(self.pid()) if name_of(pid) == 'stampd-keeper'], what='the keeper')[0]

    @contextlib.contextmanager
    def keeper_stopped(self):
        """Nothing is deleted meanwhile, whichever minute begins; yields what lets the keeper go on earlier.  It is stopped between two
        transactions: others would wait for the locks of one that does not end."""
        keeper = self.keeper()

        def stopped():
            os.kill(keeper, signal.SIGSTOP)
            if not self.psql(None, "select 1 from pg_stat_activity where usename = 'stampd' and state <> 'idle'"):
                return True
            os.kill(keeper, signal.SIGCONT)
            return False
        wait_until(stopped, what='a moment without a transaction')
        try:
            yield lambda: os.kill(keeper, signal.SIGCONT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(keeper, signal.SIGCONT)

    @contextlib.contextmanager
    def relay_stopped(self):
        """Meanwhile no worker learns of a change that another program makes."""
        relay = wait_until(lambda: [pid for pid in children(self.pid()) if name_of(pid) == 'stampd-relay'], what='the relay')[0]
        os.kill(relay, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(relay, signal.SIGCONT)

    def nginx_workers(self):
        """The processes of nginx that accept connections; none when nginx is away."""
        try:
            return [pid for pid in children(self.pid('nginx')) if 'shutting down' not in command_line(pid)]
        except StackError:
            return []

    @contextlib.contextmanager
    def nginx_renewed(self):
        """The block has nginx read its configuration; its processes with the former one take no connection any more when this ends."""
        before = set(self.nginx_workers())
        yield
        wait_until(lambda: self.nginx_workers() and not before & set(self.nginx_workers()), what='nginx with its new configuration')

    def reload_nginx(self):
        with self.nginx_renewed():
            os.kill(self.pid('nginx'), signal.SIGHUP)

    def kill_worker(self, pid=None, how=signal.SIGKILL):
        """The process `pid`, which may have ended by itself already, or one of the workers: another one, should it end meanwhile."""
        while pid is None:
            drawn = random.choice(wait_until(self.worker_pids, what='a worker'))
            try:
                os.kill(drawn, how)
            except ProcessLookupError:
                continue
            return drawn
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)
        return pid

    def reload(self):
        os.kill(self.pid(), signal.SIGHUP)

    def restart_stampd(self):
        self.step('stampd', 'stop', 'now')
        self.step('stampd', 'start')

    def end_sessions(self):
        """Restarts stampd.  PostgreSQL has counted what the former sessions have read when this returns: it does so when they end, which is
        after their workers have."""
        sessions = set(self.backends())
        self.restart_stampd()
        wait_until(lambda: not sessions & set(self.backends()), what='the ends of the sessions')

    def stop_postgres(self, how='fast'):
        """fast, immediate or kill"""
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()
        self.step('postgres', 'stop', how)

    def restart_postgres(self, how='fast'):
        self.stop_postgres(how)
        self.step('postgres', 'start')

    def log(self, part='stampd'):
        path = self.path / 'log' / {'postgres': 'postgresql.log'}.get(part, f'{part}.log')
        return path.read_text(errors='replace') if path.exists() else ''

    # --- requests ---

    @property
    def key(self):
        return self.key_file.read_text().strip()

    @property
    def queue_key(self):
        return (self.path / 'etc/queue.key').read_text().strip()

    def request(self, method, path, json=None, form=None, query=None, admin=None, **more):
        """One request; `admin` True bears the administrator's key, a text bears that.  Returns the answer."""
        if admin is not None and admin is not False:
            bearer = {'admin': self.key if admin is True else admin}
            if json is not None:
                json = {**json, **bearer}
            elif form is not None:
                form = {**form, **bearer}
            else:
                query = {**(query or {}), **bearer}
        more.setdefault('timeout', PATIENCE_S)
        return self.http.request(method, self.url + path, json=json, data=form, params=query, **more)

    def op(self, ns, name, param=None, syncs=None, admin=None, **more):
        """Runs an operation with a JSON body; returns the JSON answer or raises Problem."""
        body = {'param': param, 'syncs': syncs, **more}
        body = {name: value for name, value in body.items() if value is not None}
        response = self.request('POST', f'/{ns}/op/{name}', json=body, admin=admin)
        if response.status_code != 200:
            raise Problem(response)
        return response.json()

    def get(self, ns, *documents, **more):
        """The documents, each given as (class, id) or (class, id, age)."""
        wanted = [dict(zip(('c', 'id', 'age'), document)) for document in documents]
        found = self.op(ns, 'get', {'docs': wanted}, **more)['out']['docs']
        return found[0] if len(documents) == 1 else found

    def put(self, ns, *documents, **more):
        """Writes documents as the operation takes them; returns the version."""
        return self.op(ns, 'put', {'docs': list(documents)}, **more)['out']['v']

    def clear(self, ns, *classes):
        """Deletes all documents of these classes, by the server: what psql deletes reaches the copies of workers a moment later.
        Waits for a database that has just come back."""
        def delete():
            try:
                for c, id_ in self.psql(ns, 'select class, id from doc where class = any(%s) and ctime <> 0', (list(classes),)):
                    self.put(ns, {'c': c, 'id': id_, 'delete': True}, admin=True)
            except Problem as problem:
                if problem.code not in ('XAWAY', 'XUNKNOWN'):
                    raise
                return False
            return True
        wait_until(delete, what='the deletion of documents')

    def ping(self, ns=None):
        return self.request('GET', f'/{ns}/ping' if ns else '/ping')

    def probe(self, path):
        return self.http.get(self.probe_url + path, timeout=PATIENCE_S)

    def metrics(self):
        """{name with its labels: value} of /metrics; empty when no worker answers."""
        answer = self.probe('/metrics')
        lines = answer.text.splitlines() if answer.status_code == 200 else []
        return {name: float(value) for name, _, value in (line.rpartition(' ') for line in lines if line and line[0] != '#')}

    def refusals(self, limit):
        """How often this limit has refused."""
        return self.metrics()[f'stampd_refused_total{{limit="{limit}"}}']

    # --- stampctl ---

    @property
    def config(self):
        return self.path / 'etc/stampd.conf'

    def stampctl(self, *words, prefix=(), **more):
        """A command that reads the settings; `prefix` runs it as another user."""
        return run_program(*prefix, self.build / 'src/stampctl', *words, '--config', self.config, **more)

    def admin_words(self, *words):
        return [str(word) for word in (self.build / 'src/stampctl', *words, '--config', self.config, '--admin-conninfo', self.conninfo_of_server())]

    def admin(self, *words, **more):
        """A command that works on the databases."""
        return run_program(*self.admin_words(*words), **more)

    def copy_words(self, command, *words, ns='lab'):
        """The words of `load` and `dump`, which are clients."""
        return [str(word) for word in (self.build / 'src/stampctl', command, self.url, '--ns', ns, '--ca', self.path / 'etc/certificate.pem', *words)]

    # --- behind the scenes ---

    @property
    def database(self):
        return self.beside.database if self.beside else self.path / 'run/postgres'

    def conninfo_of_server(self, user='postgres'):
        return f'host={self.database} user={user}'

    def conninfo(self, ns=None, user='postgres'):
        return f'{self.conninfo_of_server(user)} dbname={"stampd_" + ns if ns else "postgres"}'

    def psql(self, ns, sql, parameters=None):
        """Rows of a statement run by the administrator; None when it has none, and when they have no columns: psycopg2 knows no difference."""
        connection = self.connections.get(ns)
        if connection is None or connection.closed:
            connection = self.connections[ns] = psycopg2.connect(self.conninfo(ns), options='-c search_path=stampd -c statement_timeout=300s')
            connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else None

    def write_configuration(self, code, item_class, content):
        """An item of a namespace's configuration, written by SQL past every check; all workers have it when this returns."""
        self.psql('z', 'select put_item(%s, %s, %s, %s, %s)', ('Namespace', code, item_class, '', content))
        for item in ({'c': 'Past', 'j': 1}, {'c': 'Past', 'del': True}):  # a commit reaches all caches before it is answered
            self.put('z', {'c': 'Namespace', 'id': code, 'items': [item]}, admin=True)

    def older_transactions_end(self):
        """Waits for the transactions that are under way in the cluster: changes behind the oldest one are reported twice, by a token, and
        exported twice."""
        (begun,), = self.psql(None, 'select pg_snapshot_xmax(pg_current_snapshot())::text')
        wait_until(lambda: self.psql(None, 'select 1 where pg_snapshot_xmin(pg_current_snapshot()) >= %s::xid8', (begun,)), what='the end of older transactions')

    def backends(self, ns=None):
        """Process ids of the workers' PostgreSQL backends."""
        rows = self.psql(None, "select pid from pg_stat_activity where usename = 'stampd' and backend_type = 'client backend'"
                         " and (%s::text is null or datname = %s)", (ns, f'stampd_{ns}'))
        return sorted(pid for pid, in rows)

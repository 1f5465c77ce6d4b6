"""The server's processes, without nginx and without any database: start, death, reload, recycling, the end."""
import os
import pwd
import grp
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from fastcgi import STDIN, Connection, record
from stack import BUILD, PATIENCE_S, ROOM, SERVER_USER, SOURCE, children, give, is_alive, wait_until

pytestmark = pytest.mark.plain

PROGRAM = BUILD / 'src/stampd'


class Server:
    """One stampd in a folder of its own; `settings` replace those below."""

    def __init__(self, **settings):
        self.path = Path(tempfile.mkdtemp(prefix='stampd-processes-', dir=ROOM))
        self.path.chmod(0o755)
        self.settings = {'run_directory': self.path / 'run', 'workers': 2, 'drain_s': 20, 'log_level': 'debug',
                         'database': f'host={self.path}', 'connect_timeout_s': 1,
                         **SERVER_USER, **settings}
        (self.path / 'run').mkdir()
        give(self.path / 'run')
        self.process = None

    @property
    def config(self):
        return self.path / 'stampd.conf'

    def write(self, **settings):
        self.settings.update(settings)
        self.config.write_text(''.join(f'{name} = {value}\n' for name, value in self.settings.items()))

    def command(self, *words):
        return [str(PROGRAM), '--config', str(self.config), *map(str, words)]

    def start(self, *words):
        self.write()
        self.process = subprocess.Popen(self.command(*words), stderr=open(self.path / 'log', 'ab'))
        wait_until(lambda: self.logged('ready ') or self.process.poll() is not None, what='the start')
        assert self.process.poll() is None, self.log()
        return self

    def log(self):
        return (self.path / 'log').read_text(errors='replace')

    def logged(self, pattern):
        return re.findall(pattern, self.log())

    def tell(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGQUIT, seconds=PATIENCE_S):
        self.tell(number)
        return self.process.wait(seconds)

    def remove(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.path)

    def socket(self, number=0):
        return self.path / f'run/worker-{number}.sock'

    def connect(self, number=0):
        return Connection(self.socket(number))

    def workers(self):
        """Pids of the workers alive, but not of the thumbnail process, by the log, newest last."""
        alive = children(self.process.pid)
        return [int(pid) for pid in self.logged(r'started worker pid=(\d+) position=[01] ') if int(pid) in alive]

    def both_workers(self):
        """The server is ready when one is started."""
        return wait_until(lambda: len(found := self.workers()) == 2 and found, what='both workers')

    def worker(self, number=0):
        return int(wait_until(lambda: self.logged(rf'started worker pid=(\d+) position={number} '), what='a worker')[-1])


@pytest.fixture
def make():
    servers = []

    def start(*words, is_started=True, **settings):
        servers.append(Server(**settings))
        return servers[-1].start(*words) if is_started else servers[-1]
    yield start
    for server in servers:
        server.remove()


class Load:
    """Clients that ask without a pause, and give each connection up after a while, as nginx does."""

    def __init__(self, server, clients=6, keep_s=0.3):
        self.server, self.keep_s = server, keep_s
        self.answers, self.failures, self.over = 0, [], threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def wait(self, count=100):
        """Until so many more answers have come."""
        wanted = self.answers + count
        wait_until(lambda: self.failures or self.answers >= wanted, what='answers')

    def run(self, number):
        while not self.over.is_set():
            try:
                with self.server.connect(number % int(self.server.settings['workers'])) as connection:
                    end = time.monotonic() + self.keep_s
                    while time.monotonic() < end:
                        assert connection.ask().status == 200
                        with self.lock:
                            self.answers += 1
                        time.sleep(0.001)
            except Exception as error:  # noqa: BLE001 whatever it is, a request was lost
                self.failures.append(repr(error))
                time.sleep(0.01)


def run(*words):
    return subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S)


# --- options and start ---

def test_options(tmp_path):
    good, bad = tmp_path / 'good', tmp_path / 'bad'
    good.write_text('workers = 3\n')
    bad.write_text('workers = 0\n')
    assert run('--version').stdout.startswith('stampd ')
    assert '--config' in run('--help').stdout
    assert '#workers = 8' in run('--settings').stdout
    assert run('-t', '-c', good).returncode == 0
    wrong = run('-t', '-c', bad)
    assert wrong.returncode == 1 and 'bad:1: workers = 0' in wrong.stderr and wrong.stderr.count('\n') == 1
    assert run('-c', tmp_path / 'nothing').returncode == 1
    assert run('--nonsense').returncode == 2
    assert run('word').returncode == 2


@pytest.mark.parametrize('settings, words', [
    ({'run_directory': '/nonexistent/run'}, 'nonexistent'),
    ({'socket_group': 'no-such-group'}, 'no such group'),
])
def test_what_keeps_it_from_starting_is_told_in_one_line(tmp_path, settings, words):
    config = tmp_path / 'stampd.conf'
    config.write_text(''.join(f'{name} = {value}\n' for name, value in {'run_directory': give(tmp_path), **SERVER_USER, **settings}.items()))
    done = run('-c', config)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if 'error:' in line]
    assert len(errors) == 1 and words in errors[0], done.stderr


def test_ping_needs_no_database(make):
    server = make()
    with server.connect() as connection:
        answer = connection.ask()
        assert answer.status == 200 and re.fullmatch(rb'\{"t":\d{15},"b":"[^"]*"\}', answer.body)
        assert answer.headers['X-Request-Id'] == '0a1b2c'
        assert connection.ask('/live').status == 404
        assert connection.ask('/live', STAMPD_ENDPOINT='probe').status == 200
        assert connection.ask('/ready', STAMPD_ENDPOINT='probe').status == 503
        metrics = connection.ask('/metrics', STAMPD_ENDPOINT='probe').body.decode()
        assert 'stampd_requests_total 5\n' in metrics and f'stampd_workers {2 + (BUILD / "src/stamp-thumbnail").exists()}\n' in metrics
        head = connection.ask(method='HEAD')
        assert head.body == b'' and int(head.headers['Content-Length']) == len(answer.body)
        assert connection.ask(method='DELETE').headers['Allow'] == 'GET, HEAD, POST, OPTIONS'
        assert b'XAWAY' in connection.ask('/n/op/get?param={"docs":[]}', STAMPD_NS='n', STAMPD_DATABASE='nowhere').body


def test_a_second_start_does_no_harm(make):
    server = make()
    server.end()
    (server.path / 'log').unlink()
    file = server.path / 'run/pid'
    server.start('--pidfile', file)
    wait_until(lambda: file.exists() and file.read_text() == f'{server.process.pid}\n', what='the pid file')
    second = run('-c', server.config, '--pidfile', file)
    assert second.returncode == 1 and 'a living process listens there' in second.stderr
    assert file.read_text() == f'{server.process.pid}\n'
    with server.connect() as connection:
        assert connection.ask().status == 200
    server.end()
    assert not file.exists() and not server.socket().exists()


@pytest.mark.parametrize('kind', ['fifo', 'link', 'folder'])
def test_a_pid_file_is_nothing_but_a_file(make, kind):
    server = make()
    server.end()
    place, victim = server.path / 'pid', server.path / 'victim'
    victim.write_text('dear')
    {'fifo': lambda: os.mkfifo(place), 'link': lambda: place.symlink_to(victim), 'folder': place.mkdir}[kind]()
    before = place.lstat()
    done = run('-c', server.config, '--pidfile', place)
    assert done.returncode == 1 and str(place) in done.stderr
    assert (place.lstat().st_ino, place.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert victim.read_text() == 'dear'


def test_a_pid_file_of_another_is_left_alone(make):
    server = make()
    server.end()
    (server.path / 'log').unlink()
    file = server.path / 'pid'
    server.start('--pidfile', file)
    wait_until(lambda: file.exists() and file.read_text(), what='the pid file')
    file.unlink()
    file.write_text('another')
    server.end()
    assert file.read_text() == 'another'


@pytest.mark.skipif(os.geteuid() != 0, reason='only root becomes another user')
def test_root_is_given_up(make):
    group = grp.getgrall()[-1]
    server = make(user='daemon', socket_group=group.gr_name)
    user = pwd.getpwnam('daemon')
    for pid in [server.process.pid, *children(server.process.pid)]:
        status = Path(f'/proc/{pid}/status').read_text()
        assert re.search(rf'^Uid:(\t{user.pw_uid}){{4}}$', status, re.M)
        assert re.search(rf'^Gid:(\t{user.pw_gid}){{4}}$', status, re.M)
        assert set(re.search(r'^Groups:(.*)$', status, re.M)[1].split()) == {str(user.pw_gid), str(group.gr_gid)}
        assert re.search(r'^CapEff:\t0+$', status, re.M)
    seen = server.socket().stat()
    assert (seen.st_uid, seen.st_gid, stat.S_IMODE(seen.st_mode)) == (user.pw_uid, group.gr_gid, 0o660)
    server.end()
    assert not server.socket().exists()


@pytest.mark.skipif(os.geteuid() != 0, reason='only root could run as root')
@pytest.mark.parametrize('user, words', [('', 'the setting user must name another user'), ('root', 'does not run as root')])
def test_root_without_a_user_is_refused(make, user, words):
    server = make(is_started=False, user=user)
    server.write()
    for program in (PROGRAM, BUILD / 'src/stamp-queue'):
        key = server.path / 'queue.key'
        key.write_text('a' * 64)
        key.chmod(0o600)
        server.write(queue_key_file=key)
        done = subprocess.run([program, '--config', server.config], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 1 and words in done.stderr, done
        assert 'cannot start' in done.stderr
    assert not server.socket().exists()


def limit_of_core_dumps(pid):
    return re.search(r'^Max core file size +(\S+) +(\S+)', Path(f'/proc/{pid}/limits').read_text(), re.M).groups()


def test_nobody_leaves_a_core_dump(make):
    server = make()
    for pid in [server.process.pid, *children(server.process.pid)]:
        assert limit_of_core_dumps(pid) == ('0', '0')
    assert Path(f'/proc/{server.process.pid}/environ').stat().st_uid == 0  # not dumpable: its files are root's
    other = make(debug_core='on')
    assert limit_of_core_dumps(other.process.pid) == limit_of_core_dumps(os.getpid())


def test_the_journal_gets_priorities(make, monkeypatch):
    server = make(is_started=False)
    (server.path / 'log').touch()
    seen = (server.path / 'log').stat()
    monkeypatch.setenv('JOURNAL_STREAM', f'{seen.st_dev}:{seen.st_ino}')
    server.start()
    server.write(workers=3)
    os.kill(server.process.pid, signal.SIGHUP)
    wait_until(lambda: server.logged('settings reloaded'), what='the reload')
    words = {'<3>': 'error', '<4>': 'warning', '<6>': 'info', '<7>': 'debug'}
    for line in server.log().splitlines():
        assert line[:3] in words and f' {words[line[:3]]}: ' in line, line
    assert {line[:3] for line in server.log().splitlines()} >= {'<4>', '<6>', '<7>'}
    # who has inherited the name only, and writes elsewhere, is not read by the journal
    monkeypatch.setenv('JOURNAL_STREAM', f'{seen.st_dev}:{server.path.stat().st_ino}')  # of a folder, so of no log
    assert not make().logged(r'(?m)^<')


# --- death ---

def test_a_killed_worker_is_replaced_and_nobody_waiting_is_lost(make):
    server = make()
    first = server.worker()
    os.kill(first, signal.SIGSTOP)
    with server.connect() as waiting:
        waiting.send()
        os.kill(first, signal.SIGKILL)
        assert waiting.receive().status == 200
    wait_until(lambda: server.worker() != first, what='a successor in the log')  # which may answer before the master has logged its start
    assert server.logged(rf'worker killed by signal 9 .*pid={first} ')


def test_who_dies_young_is_started_later_each_time(make):
    server = make(restart_young_ms=3600000)
    for delay in (100, 200, 400, 800):
        dying = server.worker()
        os.kill(dying, signal.SIGKILL)
        wait_until(lambda: server.worker() != dying, what='a successor')
        assert server.logged(r'restart of worker delayed position=0 delay_ms=(\d+)')[-1] == str(delay)
    with server.connect(1) as other:
        assert other.ask().status == 200


def test_nobody_is_young_where_the_settings_say_so(make):
    server = make(restart_young_ms=0)
    for _ in range(4):
        dying = server.worker()
        os.kill(dying, signal.SIGKILL)
        wait_until(lambda: server.worker() != dying, what='a successor')
    assert not server.logged('restart of worker delayed')


def test_the_killed_master_takes_its_workers_along(make):
    server = make()
    workers = children(server.process.pid)
    assert server.socket().exists()
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not any(map(is_alive, workers)), what='the end of the workers')
    assert server.socket().exists()  # nobody was left to remove it
    (server.path / 'log').write_text('')
    server.start()
    with server.connect() as connection:
        assert connection.ask().status == 200


def test_a_request_that_takes_too_long_is_ended(make):
    server = make(limit_operation_s=1)
    victim = server.worker()
    with server.connect() as connection:
        connection.socket.sendall(connection.head('/n/op/get', length=1000, STAMPD_NS='n', STAMPD_DATABASE='d'))
        with pytest.raises((ConnectionError, TimeoutError)):
            for _ in range(240):  # a byte now and then, so that no single read takes long
                connection.socket.sendall(record(STDIN, b'x'))
                time.sleep(0.5)
    assert server.logged(rf'killed worker whose request took too long pid={victim} '), server.log()
    with server.connect() as connection:
        assert connection.ask().status == 200


# --- what nginx hands in once more ---

def test_what_a_dead_worker_had_begun_is_not_begun_again(make):
    server = make(workers=2, restart_young_ms=0)
    tokens = [f'{number:032x}' for number in range(3)]
    with server.connect(1) as connection:
        assert connection.ask(STAMPD_TOKEN=tokens[0]).status == 200
    dying = server.worker()
    with server.connect() as connection:
        assert connection.ask(STAMPD_TOKEN=tokens[0]).status == 200
        wait_until(lambda: 'stampd_workers_busy 1\n' in metrics(server), what='its rest')  # busy is only who tells
        connection.socket.sendall(connection.head('/n/op/get', length=1000, STAMPD_NS='n', STAMPD_DATABASE='d', STAMPD_TOKEN=tokens[1]))
        wait_until(lambda: 'stampd_workers_busy 2\n' in metrics(server), what='its work')
        os.kill(dying, signal.SIGKILL)
        wait_until(lambda: server.worker() != dying, what='a successor')

    def is_done(token, number=1, answered='0', age='0.000'):
        with server.connect(number) as connection:
            try:
                return connection.ask(STAMPD_TOKEN=token, STAMPD_ANSWERED=answered, STAMPD_AGE=age).status == 200
            except (EOFError, ConnectionError):
                return False

    # The server has to be a second old, for the sake of nginx's clock.
    wait_until(lambda: is_done(tokens[2]), what='a request that nobody had begun')
    for number in (0, 1):
        assert not is_done(tokens[1], number), 'it was begun'
        assert not is_done(tokens[2], number, age='86400.000'), 'it came before the server'
        assert not is_done(tokens[2], number, answered='17'), 'something had been answered'
        assert not is_done('', number)
        # Who has answered it forgets it a moment later.
        wait_until(lambda: is_done(tokens[2], number), what='a request that nobody is at')
    assert server.logged('had not been begun: it is done now') and server.logged('may have been begun: it is not done again')


def metrics(server):
    with server.connect(1) as connection:
        return connection.ask('/metrics', STAMPD_ENDPOINT='probe').body.decode()


# --- connections ---

def test_silent_connections_hold_nobody_up(make):
    server = make(workers=1)
    silent = [server.connect() for _ in range(500)]
    with server.connect() as connection:
        assert connection.ask().status == 200
    for connection in silent[::50]:
        assert connection.ask().status == 200
    for connection in silent:
        connection.close()


# --- reload and recycling ---

def test_a_reload_loses_no_request(make):
    server = make()
    before = set(server.both_workers())
    with Load(server) as load:
        for times in range(4):
            load.wait()
            server.tell(signal.SIGHUP)
            wait_until(lambda: len(server.logged('settings reloaded')) > times, what='the reload')
        load.wait()
    assert load.failures == []
    wait_until(lambda: len(server.workers()) == 2 and not before & set(server.workers()), what='the end of the former workers')


def test_a_reload_takes_what_can_be_taken(make):
    server = make(build='one')
    first = server.both_workers()
    server.write(build='two', workers=7, run_directory='/elsewhere', segment_slots=2048, shared_cache_mb=1)
    server.tell(signal.SIGHUP)
    wait_until(lambda: server.logged('settings reloaded'), what='the reload')
    wait_until(lambda: len(server.workers()) == 2 and not set(first) & set(server.workers()), what='new workers')
    for kept in ('workers', 'run_directory', 'segment_slots', 'shared_cache_mb'):
        assert server.logged(rf'warning: {kept} = .*: takes effect at the next start')
    with server.connect() as connection:
        assert connection.ask().headers['X-Stampd-Build'] == 'two'

    second = server.workers()
    server.write(build='three', lock_timeout_ms='soon')
    server.tell(signal.SIGHUP)
    wait_until(lambda: server.logged('not reloaded.*lock_timeout_ms = soon'), what='the refusal')
    assert server.workers() == second
    with server.connect() as connection:
        assert connection.ask().headers['X-Stampd-Build'] == 'two'


def test_workers_are_recycled_and_no_request_is_lost(make):
    server = make(recycle_requests=200)
    before = set(server.workers())
    with Load(server) as load:
        wait_until(lambda: load.failures or len(server.logged('recycling worker')) >= 2 and not before & set(server.workers()), what='successors of all')
        load.wait()
    assert load.failures == []
    assert not server.logged(' error: ')


# --- the end ---

def test_draining_serves_kept_connections_until_they_are_let_go(make):
    server = make()
    with server.connect() as kept:
        assert kept.ask().status == 200
        waiting = server.connect()
        waiting.send()
        server.tell(signal.SIGTERM)
        assert waiting.receive().status == 200
        waiting.close()
        wait_until(lambda: not server.socket().exists(), what='the end of listening')
        for _ in range(5):
            assert kept.ask().status == 200
        assert server.process.poll() is None
    assert server.process.wait(PATIENCE_S) == 0
    assert server.logged('info: stopped')
    assert not server.logged(' error: ')


def test_draining_has_its_time(make):
    server = make(drain_s=1)
    with server.connect() as kept:
        assert kept.ask().status == 200
        assert server.end(signal.SIGTERM) == 0
        assert kept.is_closed()
    assert server.logged('worker exits with open connections=1')
    assert not server.logged('killed ')


@pytest.mark.parametrize('signals', [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM), (signal.SIGQUIT,)])
def test_a_second_signal_ends_at_once(make, signals):
    server = make(drain_s=3600)
    with server.connect() as kept:
        assert kept.ask().status == 200
        for number, words in zip(signals, ('stopping,', 'stopping at once')):
            server.tell(number)
            if len(signals) > 1:  # two of a kind that come together are one
                wait_until(lambda: server.logged(f'info: {words}'), what=words)
        assert server.process.wait(PATIENCE_S) == 0
        assert kept.is_closed()
    assert not server.logged('killed ')


# --- one server after the other, at the same sockets ---

class Successors:
    """A server that was started by a link, which may lead to another program by now."""

    def __init__(self, make):
        self.server = make(is_started=False, drain_s=10)
        self.link = self.server.path / 'stampd-link'
        self.link.symlink_to(PROGRAM)
        self.server.write()
        self.first = subprocess.Popen([self.link, '--config', self.server.config, '--pidfile', self.server.path / 'run/pid'],
                                      stderr=open(self.server.path / 'log', 'ab'))
        self.server.process = self.first
        wait_until(self.pid, what='the pid file')

    def pid(self):
        file = self.server.path / 'run/pid'
        return int(file.read_text() or 0) if file.exists() else 0

    def succeed(self):
        before = self.pid()
        os.kill(before, signal.SIGUSR2)
        return before

    def end(self):
        pid = self.pid()
        os.kill(pid, signal.SIGQUIT)
        wait_until(lambda: not is_alive(pid), what='the end of the last')


@pytest.fixture
def successors(make):
    all_of_them = Successors(make)
    yield all_of_them
    pid = all_of_them.pid()
    if pid and is_alive(pid):
        os.kill(pid, signal.SIGKILL)


def test_a_successor_takes_over_and_no_request_fails(successors, tmp_path):
    """Another program by the same link, another module: what a reload cannot bring."""
    server = successors.server
    copy = give(tmp_path) / 'stampd-of-tomorrow'
    shutil.copy(PROGRAM, copy)
    subprocess.run(['cc', '-std=c11', '-D_GNU_SOURCE', '-fPIC', '-shared', f'-I{SOURCE}/src', '-o', tmp_path / 'asso.so',
                    SOURCE / 'doc/examples/asso/asso.c'], check=True)
    pids = [successors.pid()]
    with Load(server) as load:
        successors.link.unlink()
        successors.link.symlink_to(copy)
        server.write(modules=tmp_path / 'asso.so')
        for _ in range(2):
            before = successors.succeed()
            wait_until(lambda: successors.pid() != before, what='the successor')
            wait_until(lambda: not is_alive(before), what='the end of the former')
            pids.append(successors.pid())
            answers = load.answers
            wait_until(lambda: load.answers > answers + 50, what='answers')
    assert not load.failures and load.answers > 200
    assert len(set(pids)) == 3 and successors.first.wait(PATIENCE_S) == 0
    assert os.geteuid() != 0 or os.readlink(f'/proc/{pids[-1]}/exe') == str(copy)  # shown to root alone
    assert server.logged(r'module name=asso')
    successors.end()
    assert not server.socket().exists() and not (server.path / 'run/pid').exists()


@pytest.mark.parametrize('change, words', [('program', ''), ('modules', 'nothere.so'), ('workers', 'nginx uses them')])
def test_a_successor_that_cannot_start_leaves_all_as_it_was(successors, tmp_path, change, words):
    server = successors.server
    if change == 'program':
        successors.link.unlink()
        successors.link.symlink_to('/bin/false')
    elif change == 'modules':
        server.write(modules='nothere.so')
    else:
        server.write(workers=1)
    before = successors.pid()
    with Load(server) as load:
        successors.succeed()
        wait_until(lambda: server.logged('the successor did not start, continuing to serve'), what='the end of the successor')
        answers = load.answers
        wait_until(lambda: load.answers > answers + 50, what='answers')
    assert not load.failures and successors.pid() == before and is_alive(before)
    assert words in server.log()
    successors.end()


PLACE_DESCRIPTORS = """
import os, sys
high = [os.dup2(int(fd), 100 + i) for i, fd in enumerate(filter(None, sys.argv[1].split(',')))]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i)
os.closerange(3 + len(high), 300)
os.environ['LISTEN_PID'] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class Systemd:
    """What systemd does of it: hears what it is told, and keeps descriptors for the next start."""

    def __init__(self, path):
        self.path = path / 'notify'
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.path.chmod(0o777)
        self.socket.settimeout(PATIENCE_S)
        self.stored = {}

    def hear(self, wanted):
        while True:
            data, descriptors, _, _ = socket.recv_fds(self.socket, 4096, 1)
            words = dict(line.split('=', 1) for line in data.decode().splitlines())
            if descriptors:
                (descriptor,) = descriptors
                os.set_inheritable(descriptor, True)
                if words['FDNAME'] in self.stored:
                    os.close(self.stored[words['FDNAME']])
                self.stored[words['FDNAME']] = descriptor
            if wanted in words:
                return words[wanted]

    def start(self, server):
        """As systemd does it: descriptors from 3 on, with names, for this process alone."""
        names = list(self.stored)
        environment = {**os.environ, 'NOTIFY_SOCKET': str(self.path), 'LISTEN_FDS': str(len(names)), 'LISTEN_FDNAMES': ':'.join(names)}
        server.process = subprocess.Popen([sys.executable, '-c', PLACE_DESCRIPTORS, ','.join(str(self.stored[name]) for name in names),
                                           *server.command()], pass_fds=list(self.stored.values()), env=environment,
                                          stderr=open(server.path / 'log', 'ab'))
        assert self.hear('READY') == '1'

    def close(self):
        for descriptor in self.stored.values():
            os.close(descriptor)
        self.socket.close()


def test_a_restart_by_systemd_refuses_nobody(make):
    server = make(is_started=False, drain_s=5)
    server.write()
    systemd = Systemd(server.path)
    try:
        systemd.start(server)
        assert set(systemd.stored) == {'worker-0', 'worker-1', 'thumbnails', 'live', 'files', 'begun'}
        with Load(server) as load:
            for _ in range(2):
                assert server.end(signal.SIGTERM) == 0
                systemd.start(server)
                answers = load.answers
                wait_until(lambda: load.answers > answers + 50, what='answers')
        assert not load.failures and load.answers > 100
        server.end()
    finally:
        systemd.close()


def test_a_segment_of_another_layout_is_left_to_a_restart(make):
    """As when the next release has another one: the two cannot serve side by side, so the successor says it, and a restart by systemd has clients
    wait in the sockets, and refuses nobody."""
    server = make(is_started=False, drain_s=5)
    server.write()
    systemd = Systemd(server.path)
    try:
        systemd.start(server)
        with Load(server) as load:
            load.wait()
            with open(server.path / 'run/segment', 'r+b') as segment:
                segment.seek(8)
                (layout,) = struct.unpack('I', segment.read(4))
                segment.seek(8)
                segment.write(struct.pack('I', layout + 1))
            server.tell(signal.SIGUSR2)
            wait_until(lambda: server.logged('the successor did not start, continuing to serve'), what='the end of the successor')
            assert server.logged(rf'in use by another release \(layout {layout + 1}, here {layout}\)')
            load.wait()
            assert server.end(signal.SIGTERM) == 0
            systemd.start(server)
            load.wait()
        assert not load.failures
        server.end()
    finally:
        systemd.close()

"""Hosts that hold records together, each with its stamp-journal in a network namespace; what is done to them; and clients of all of them."""
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from network import HOST, Unavailable, ip
from records_judge import Deed
from resp_world import Redis, Refused
from saboteur import FAKETIME
from stack import BUILD, ROOM, wait_until

COPIES, TTL_S = 2, 20
KEYS, CLIENTS = 24, 6
PORT = 7412
NARROW_MB, WIDE_MB = 1, 8
LEVELLED = 0.3
AGAIN_S = 20  # so long after a cut a host may still wait for an answer of z, as TCP sends again ever later


class Door(threading.Thread):
    """PostgreSQL's Unix socket at a port of this host, so that hosts can be cut off from it."""

    def __init__(self, address, path):
        super().__init__(daemon=True)
        self.path, self.listener = path, socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        while True:
            try:
                line, _ = self.listener.accept()
            except OSError:
                return
            other = socket.socket(socket.AF_UNIX)
            other.connect(str(self.path))
            for one, two in ((line, other), (other, line)):
                threading.Thread(target=self.pass_on, args=(one, two), daemon=True).start()

    @staticmethod
    def pass_on(one, two):
        try:
            while data := one.recv(65536):
                two.sendall(data)
        except OSError:
            pass
        for end in (one, two):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Member:
    """A host: `number` in the network.  `apart_until`: it may not know, until then, what the others have decided."""

    def __init__(self, hosts, name, site, megabytes):
        self.hosts, self.name, self.site, self.number = hosts, name, site, hosts.network.add(name)
        self.address, self.process, self.apart_until, self.is_stopped = f'{site}.{name}', None, 0, False
        self.path = hosts.room / name
        self.path.mkdir()
        self.socket, self.key, self.clock, self.log = hosts.run / f'{name}.sock', self.path / 'key', self.path / 'clock', self.path / 'log'
        subprocess.run(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', self.key], check=True, capture_output=True)
        for path in (self.path, self.key):
            path.chmod(0o755)  # it is another user who reads them
        lines = [line for line in hosts.stack.config.read_text().splitlines() if line.partition('=')[0].strip() not in ('database', 'limit_namespace_records_mb')]
        lines += [f'database = host={hosts.network.address(HOST)} port={hosts.door.port} user=stampd sslmode=disable', 'limit_namespace_records_mb = 0', f'cluster_address = {self.address}',
                  f'cluster_listen = {self.endpoint}', f'cluster_key_file = {self.key}', f'cluster_mb = {megabytes}']
        (self.path / 'conf').write_text('\n'.join([*lines, '']))
        self.clock.write_text('+0\n')
        public = subprocess.run(['openssl', 'pkey', '-in', self.key, '-pubout', '-outform', 'DER'], check=True, capture_output=True).stdout
        self.fingerprint = hashlib.sha256(public).hexdigest()

    @property
    def endpoint(self):
        return f'{self.hosts.network.address(self.number)}:{PORT}'

    @property
    def is_alive(self):
        return self.process is not None

    def add(self):
        """False: z has it already."""
        return self.hosts.stack.admin('host', 'add', self.address, self.endpoint, self.fingerprint, status=None).status == 0

    def start(self):
        environment = {**os.environ, **({'LD_PRELOAD': FAKETIME, 'FAKETIME_TIMESTAMP_FILE': str(self.clock), 'FAKETIME_CACHE_DURATION': '1',
                                         'FAKETIME_DONT_FAKE_MONOTONIC': '1', 'DONT_FAKE_MONOTONIC': '1'} if FAKETIME else {})}
        with open(self.log, 'a') as log:
            self.process = subprocess.Popen(['ip', 'netns', 'exec', self.hosts.network.hosts[self.number], BUILD / 'src/stamp-journal', '-c', self.path / 'conf', '-k', self.hosts.keys, '-s', self.socket],
                                            stderr=log, env=environment)
        self.is_stopped = False

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self, is_stopped):
        """The whole host stands still: stamp-journal and what reports to z."""
        self.signal(signal.SIGSTOP if is_stopped else signal.SIGCONT)
        self.is_stopped = is_stopped

    def signal(self, what):
        for pid in self.hosts.network.pids(self.number):
            try:
                os.kill(pid, what)
            except ProcessLookupError:
                pass


class Hosts:
    def __init__(self, stack, network, names, seed, say):
        self.stack, self.network, self.say, self.random = stack, network, say, random.Random(seed)
        self.room = Path(tempfile.mkdtemp(prefix='stampd-hosts-', dir=ROOM))
        self.room.chmod(0o755)
        self.keys = self.room / 'keys'
        self.keys.write_text(f'lab write {hashlib.sha256(b"key-of-all").hexdigest()}\n')
        self.run = Path(next(line.partition('=')[2].strip() for line in stack.config.read_text().splitlines() if line.startswith('run_directory')))
        self.door = Door(network.address(HOST), next(Path(stack.database).glob('.s.PGSQL.*[0-9]')))
        self.door.start()
        stack.admin('host', 'terms', '--copies', str(COPIES), '--ttl', str(TTL_S))
        stack.op('z', 'ns', {'set': {'ns': 'lab', 'spread': True}}, admin=True)
        self.members = [Member(self, name, 'south' if place > len(names) // 2 else 'north', NARROW_MB if place == 0 else WIDE_MB) for place, name in enumerate(names)]
        for member in self.members:
            member.add()
            member.start()
        self.harms, self.gone = {}, set()

    def close(self):
        for member in self.members:
            if member.is_alive:
                member.stop(False)
                member.end()
        self.door.listener.close()

    def remove(self):
        shutil.rmtree(self.room, ignore_errors=True)

    def knows(self, seconds):
        def look():
            rows = self.stack.psql('z', 'select is_exhaustive from host where number is not null')
            return rows and all(row[0] for row in rows)
        return wait_until(look, seconds=seconds, what='hosts that know')

    # --- harm: each returns for how long, and what mends it ---

    def kill(self, member):
        member.end()
        return self.random.uniform(0.1, 14), member.start

    def stand_still(self, member):
        member.stop(True)
        return self.random.uniform(0.5, 13), lambda: member.stop(False)

    def cut_from_z(self, member):
        self.network.cut(member.number, HOST)
        return self.random.uniform(1, 14), self.mend

    def cut_from_one(self, member):
        self.network.cut(member.number, self.random.choice([other.number for other in self.members if other is not member]))
        return self.random.uniform(1, 14), self.mend

    def cut_from_all(self, member):
        self.network.cut_off(member.number, [HOST, *(other.number for other in self.members)])
        return self.random.uniform(1, 14), self.mend

    def part(self, member):
        """Two sides; z is on one of them, or on both."""
        sides = self.random.sample(self.members, self.random.randint(1, len(self.members) - 1))
        has_z = self.random.random() < 0.5
        for one in sides:
            self.network.cut_off(one.number, [other.number for other in self.members if other not in sides] + ([HOST] if has_z else []))
        return self.random.uniform(1, 14), self.mend

    def delay(self, member):
        """All that it says comes late: by the network where the kernel can do that, else since the host works for a moment at a time."""
        space, late_ms = self.network.hosts[member.number], self.random.choice([20, 100, 400])
        try:
            ip('netns', 'exec', space, 'tc', 'qdisc', 'replace', 'dev', 'eth0', 'root', 'netem', 'delay', f'{late_ms}ms', '10ms')
            return self.random.uniform(1, 10), lambda: ip('netns', 'exec', space, 'tc', 'qdisc', 'del', 'dev', 'eth0', 'root')
        except Unavailable:
            over = threading.Event()
            thread = threading.Thread(target=self.halt, args=(member, late_ms / 1000, over))
            thread.start()
            return self.random.uniform(1, 10), lambda: (over.set(), thread.join())

    @staticmethod
    def halt(member, seconds, over):
        while not over.is_set():
            member.signal(signal.SIGSTOP)
            time.sleep(seconds)
            member.signal(signal.SIGCONT)
            time.sleep(0.02)

    def step_clock(self, member):
        member.clock.write_text(f'{self.random.randint(-3600, 3600):+d}\n')
        return 0.1, lambda: None

    def leave(self, member):
        self.stack.admin('host', 'remove', member.address, status=None)
        return self.random.uniform(2, 10), lambda: self.gone.add(member)

    def take_back(self):
        """Those that have left; one that is leaving still is refused."""
        for member in [member for member in self.gone if member.add()]:
            self.gone.discard(member)

    def mend(self):
        self.network.mend()

    def do_harm(self):
        """One kind after the other, often several at once; what is mended mends all cuts."""
        kinds = [self.kill, self.kill, self.stand_still, self.cut_from_z, self.cut_from_one, self.cut_from_all, self.part, self.leave, self.delay]
        kinds += [self.step_clock] if FAKETIME else []
        kind, member = self.random.choice(kinds), self.random.choice([member for member in self.members if member.is_alive and not member.is_stopped])
        seconds, mend = kind(member)
        self.harms[kind.__name__] = self.harms.get(kind.__name__, 0) + 1
        # Cuts are mended together; nobody but the host itself knows when it has heard of z again.
        touched = self.members if kind in (self.part, self.cut_from_z, self.cut_from_all) else [member]
        for one in touched:
            one.apart_until = max(one.apart_until, time.monotonic() + seconds + AGAIN_S)
        return time.monotonic() + seconds, mend, member


class Client(threading.Thread):
    """Asks hosts at random, and notes what it was answered."""

    def __init__(self, hosts, number, seed):
        super().__init__(daemon=True)
        self.hosts, self.number, self.random, self.deeds, self.lines, self.is_over, self.values = hosts, number, random.Random(f'{seed} {number}'), [], {}, False, 0

    def line(self, member):
        if member.name not in self.lines:
            line = self.lines[member.name] = Redis(member.socket)
            line.socket.settimeout(12)
        return self.lines[member.name]

    def run(self):
        while not self.is_over:
            member = self.random.choice(self.hosts.members)
            if not member.is_alive or member.is_stopped:
                time.sleep(0.01)
                continue
            try:
                self.do(member)
            except (OSError, EOFError, AssertionError):
                line = self.lines.pop(member.name, None)
                if line:
                    line.close()
                time.sleep(0.05)

    def do(self, member):
        kind, key = self.random.choice(['read', 'read', 'read', 'insert', 'insert', 'change', 'touch', 'remove']), f'key{self.random.randrange(KEYS)}'
        line, ttl = self.line(member), self.random.uniform(5, TTL_S - 1)
        place = key  # of a key with a level each site has its own
        if self.random.random() < LEVELLED:
            key, place = f'@1:{key}', f'{member.site} {key}'
        value = None
        if kind in ('insert', 'change'):
            self.values += 1
            value = f'{self.number}-{self.values}' + '.' * self.random.choice([0, 10, 1000, 60000])
        words = {'read': ('GET', key), 'insert': ('SET', key, value, 'NX', 'GET', 'PX', str(int(ttl * 1000))), 'change': ('SET', key, value, 'XX', 'PX', str(int(ttl * 1000))),
                 'touch': ('PEXPIRE', key, str(int(ttl * 1000))), 'remove': ('DEL', key)}[kind]
        deed = Deed(kind, place, value and value.rstrip('.'), ttl, time.monotonic(), None, 'unknown', member.name)
        is_apart = time.monotonic() < member.apart_until
        try:
            answer = line.ask(*words)
        finally:
            deed.end = time.monotonic()
            deed.is_apart = is_apart or time.monotonic() < member.apart_until
            self.deeds.append(deed)
        deed.result = self.result(deed, answer)

    @staticmethod
    def result(deed, answer):
        if isinstance(answer, Refused):
            word = answer.split()[0]
            return {'UNKNOWN': 'unknown', 'OOM': 'full'}.get(word, 'nothing' if word in ('NO_PARTICIPANTS', 'STATE') else 'unknown')
        if deed.kind == 'read' or (deed.kind == 'insert' and isinstance(answer, bytes)):
            if answer is None:
                return 'absent'
            deed.value = answer.decode().rstrip('.')
            return 'found'
        if deed.kind == 'insert':
            return 'done'  # with GET, no answer means that it was free
        return 'done' if answer in ('OK', 1) else 'absent'

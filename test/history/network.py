"""Hosts on one machine: network namespaces on a switch that has a namespace of its own, so that no rule of a firewall of this host holds there.
Each host has an address of its own; this host is one of them.  Two of them can be cut off from each other: packets go, and nobody gets them."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess

NETWORKS = 200
NOWHERE = '02:00:00:00:00:00'  # no interface has this hardware address
HOST = 1        # number of this host; others from 10 on


class Unavailable(Exception):
    """Why there can be no network namespaces here."""


def ip(*words):
    done = subprocess.run(['ip', *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Unavailable(f'ip {" ".join(map(str, words))}: {done.stderr.strip()}')
    return done.stdout


class Network:
    """198.18.N.0/24, of the addresses that are kept for tests of networks (RFC 2544); N is the first that nobody has."""

    def __init__(self):
        if os.geteuid() != 0:
            raise Unavailable('only root may make network namespaces')
        if not shutil.which('ip'):
            raise Unavailable('the program ip is missing (Debian: apt-get install iproute2)')
        self.lock, self.number = self.take_number()
        self.hosts, self.cuts = {}, set()

    @staticmethod
    def take_number():
        """The lock is the name of a socket without a file: as the addresses, it is known in all of this host, also in other roots (chroot)."""
        for number in range(NETWORKS):
            lock = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):
                lock.bind(f'\0stampd-network-{number}')
                return lock, number
            lock.close()
        raise Unavailable('too many networks')

    def __enter__(self):
        self.sweep()
        try:
            ip('netns', 'add', self.space('switch'))
            ip('-n', self.space('switch'), 'link', 'add', 'bridge', 'type', 'bridge')
            ip('-n', self.space('switch'), 'link', 'set', 'bridge', 'up')
            self.plug(HOST, self.device)
            ip('addr', 'add', f'{self.address(HOST)}/24', 'dev', self.device)
            ip('link', 'set', self.device, 'up')
        except Unavailable:
            self.sweep()
            raise
        return self

    def __exit__(self, *_):
        self.sweep()
        self.lock.close()

    def sweep(self):
        """Ends what runs in the namespaces of this number, also what a run that was killed has left, and removes them."""
        listed = [line.split()[0] for line in ip('netns', 'list').splitlines() if line]
        for space in (space for space in listed if space.startswith(f'{self.space("")}')):
            self.end_all(space)
            ip('netns', 'del', space)
        with contextlib.suppress(Unavailable):  # a namespace ends a moment later than its name, and its cables with it
            ip('link', 'del', self.device)

    @staticmethod
    def end_all(space):
        while pids := pids_in(space):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    # --- names ---

    @property
    def device(self):
        return f'stampd{self.number}'

    def space(self, name):
        return f'stampd{self.number}-{name}'

    def address(self, host):
        return f'198.18.{self.number}.{host}'

    # --- hosts ---

    def plug(self, host, device, space=None):
        """A cable from the switch; its other end is the device."""
        port, where = f'port{host}', ('netns', space) if space else ('netns', os.getpid())
        ip('-n', self.space('switch'), 'link', 'add', port, 'type', 'veth', 'peer', 'name', device, *where)
        ip('-n', self.space('switch'), 'link', 'set', port, 'master', 'bridge', 'up')

    def add(self, name):
        """A host; its number."""
        host, space = 10 + len(self.hosts), self.space(name)
        ip('netns', 'add', space)
        self.plug(host, 'eth0', space)
        for words in (('link', 'set', 'lo', 'up'), ('addr', 'add', f'{self.address(host)}/24', 'dev', 'eth0'), ('link', 'set', 'eth0', 'up')):
            ip('-n', space, *words)
        self.hosts[host] = space
        return host

    def pids(self, host):
        """All that runs there."""
        return pids_in(self.hosts[host])

    def words(self, host, user):
        """What a command begins with, to be run there as this user; the process is the command itself."""
        return ['ip', 'netns', 'exec', self.hosts[host], 'setpriv', f'--reuid={user}', f'--regid={user}', '--init-groups']

    # --- cuts ---

    def side(self, host, *words):
        """Of the neighbours of a host."""
        if host == HOST:
            ip('neigh', *words, 'dev', self.device)
        else:
            ip('-n', self.hosts[host], 'neigh', *words, 'dev', 'eth0')

    def cut(self, one, other):
        """No packet of either arrives at the other, and neither gets an error."""
        if frozenset((one, other)) not in self.cuts:
            self.cuts.add(frozenset((one, other)))
            for host, peer in ((one, other), (other, one)):
                self.side(host, 'replace', self.address(peer), 'lladdr', NOWHERE, 'nud', 'permanent')

    def cut_off(self, host, others):
        for other in others:
            if other != host:
                self.cut(host, other)

    def mend(self):
        for one, other in [tuple(cut) for cut in self.cuts]:
            for host, peer in ((one, other), (other, one)):
                self.side(host, 'del', self.address(peer))
        self.cuts.clear()


def pids_in(space):
    return [int(pid) for pid in ip('netns', 'pids', space).split()]


def check_available():
    """Raises Unavailable where there can be no network; says why."""
    try:
        with Network() as network:
            words = [*network.words(network.add('trial'), 'daemon'), 'true']
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise Unavailable(str(error)) from None
    if done.returncode != 0:
        raise Unavailable(f'no command can be run in a network namespace: {done.stderr.strip()}')

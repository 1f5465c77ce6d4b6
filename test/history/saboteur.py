"""Does harm to the processes of one or more stacks, at random, and mends what does not mend itself."""
import os
import random
import signal
import threading
import time
from pathlib import Path

from stack import children, is_alive, wait_until

FAKETIME = next(map(str, Path('/usr/lib').glob('*/faketime/libfaketime.so.1')), None)
CLOCK_LEAST_S = -600  # the clock goes back to here, then to the true time
HEALED_S = 120
PAUSES_S = (0.05, 0.3, 0.6, 1.0)  # between two harms


def pid_of(stack, part):
    """0 when it does not run."""
    try:
        pid = int((stack.path / f'run/{part}.pid').read_text().split()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return 0
    return pid if is_alive(pid) else 0


def signal_to(pid, what):
    try:
        if pid:
            os.kill(pid, what)
    except ProcessLookupError:
        pass


class Clock:
    """A stampd whose clock can be set while it runs: a folder like that of a build, where src/stampd runs the real one
    under libfaketime."""

    def __init__(self, folder, build):
        self.path, self.file, self.low, self.offset = Path(folder), Path(folder) / 'clock', Path(folder) / 'low', 0.0
        (self.path / 'src').mkdir(parents=True)
        for parent in (self.path, self.path / 'src'):
            parent.chmod(0o755)
        self.set(0.0)
        for program in ('stampctl', 'stamp-queue'):
            (self.path / 'src' / program).symlink_to(build / 'src' / program)
        self.point_to(build / 'src/stampd')

    def point_to(self, program):
        script = self.path / 'src/stampd'
        script.write_text(f'#!/bin/sh\nLD_PRELOAD={FAKETIME} FAKETIME_TIMESTAMP_FILE={self.file} FAKETIME_CACHE_DURATION=1 '
                          f'FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1 exec {program} "$@"\n')
        script.chmod(0o755)

    def set(self, offset):
        """It may be at the former offset for a while."""
        self.write(self.low, min(offset, self.offset))
        self.offset = offset
        self.write(self.file, offset)

    @staticmethod
    def write(file, offset):
        fresh = file.with_suffix('.new')
        fresh.write_text(f'{offset:+.3f}\n')
        fresh.chmod(0o644)
        fresh.rename(file)

    def lowest(self):
        """Seconds, from 0 down, by which it may lag; any process may call it."""
        return float(self.low.read_text())


class Saboteur:
    def __init__(self, stacks, clocks, seed, only=None, pauses=PAUSES_S, namespaces=('lab',), is_pair=False):
        """`stacks[0]` has the PostgreSQL; `only`: names of harms; `is_pair`: hosts = pair."""
        self.stacks, self.clocks, self.namespaces, self.is_pair = stacks, clocks, namespaces, is_pair
        self.dice, self.pauses = random.Random(f'{seed}/saboteur'), pauses
        self.done = {}       # name of a harm -> how often
        self.stopped = []    # (when it goes on, pid)
        self.stopping = threading.Lock()
        # In a thread of its own: a harm that waits for a lock may wait for a process that stands still.
        threading.Thread(target=self.keep_resuming, daemon=True).start()
        self.harms = (HARMS + PAIR_HARMS if is_pair else HARMS) if only is None else [(name, dict(HARMS).get(name, 10)) for name in only]

    # --- a round ---

    def run(self, seconds, goes_on=lambda: True):
        end = time.monotonic() + seconds
        next_harm = time.monotonic() + self.pause()
        while time.monotonic() < end and goes_on():
            if self.harms and time.monotonic() >= next_harm:
                self.harm()
                next_harm = time.monotonic() + self.pause()
            if self.is_pair:
                self.start_missing()  # who has lost the lease has ended
            time.sleep(0.02)

    def is_done(self):
        """Nothing is left of what was to be done."""
        return False

    def pause(self):
        return self.dice.choice(self.pauses)

    def harm(self):
        names, weights = zip(*self.harms)
        name = self.dice.choices(names, weights)[0]
        getattr(self, name.replace(' ', '_'))()
        self.done[name] = self.done.get(name, 0) + 1

    def stop(self, pid, seconds):
        """The process stands still for a while."""
        if pid:
            with self.stopping:
                signal_to(pid, signal.SIGSTOP)
                self.stopped.append((time.monotonic() + seconds, pid))

    def resume(self, now=float('inf')):
        with self.stopping:
            for when, pid in self.stopped:
                if when <= now:
                    signal_to(pid, signal.SIGCONT)
            self.stopped = [(when, pid) for when, pid in self.stopped if when > now]

    def keep_resuming(self):
        while True:
            self.resume(time.monotonic())
            time.sleep(0.02)

    def heal(self):
        """Everything runs and answers."""
        self.resume()
        self.start_missing()
        if self.is_pair:
            wait_until(lambda: self.start_missing() or any(map(self.answers, self.stacks)), HEALED_S, 'a host that serves')
            return
        for stack in self.stacks:
            wait_until(lambda: self.answers(stack), HEALED_S, 'recovery')

    def start_missing(self):
        for stack in self.stacks:
            for part in ('stampd', 'nginx'):
                if not pid_of(stack, part):
                    stack.step(part, 'start')

    @staticmethod
    def answers(stack):
        try:
            return stack.ping('lab').json().get('db') == 'ok'
        except Exception:
            return False

    # --- harms ---

    def any_stack(self):
        return self.dice.choice(self.stacks)

    def one_of(self, pids):
        return self.dice.choice(pids) if pids else 0

    def kill_a_worker(self):
        signal_to(self.one_of(children(pid_of(self.any_stack(), 'stampd') or -1)), signal.SIGKILL)

    def kill_several_workers(self):
        pids = children(pid_of(self.any_stack(), 'stampd') or -1)
        for pid in self.dice.sample(pids, len(pids) // 2):
            signal_to(pid, signal.SIGKILL)

    def kill_a_master(self):
        """Its workers follow; another is started once they are gone."""
        stack = self.any_stack()
        master = pid_of(stack, 'stampd')
        workers = children(master) if master else []
        self.resume()
        signal_to(master, signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, [master, *workers])), 30, 'end of the workers')
        stack.step('stampd', 'start')

    def stop_a_host(self):
        """All of its stampd stands still, for longer than it may answer from memory, or not."""
        stack, seconds = self.any_stack(), self.dice.choice((0.5, 2.0, 4.0))
        master = pid_of(stack, 'stampd')
        for pid in [master, *children(master)] if master else []:
            self.stop(pid, seconds)

    def kill_the_manager(self):
        """Of the queues, where there is one; another takes its place."""
        manager = pid_of(self.stacks[0], 'queue')
        if manager:
            signal_to(manager, signal.SIGKILL)
            wait_until(lambda: not is_alive(manager), 30, 'end of the manager')
            self.stacks[0].step('queue', 'start')

    def restart_stampd(self):
        self.resume()
        self.any_stack().restart_stampd()

    def reload_stampd(self):
        signal_to(pid_of(self.any_stack(), 'stampd'), signal.SIGHUP)

    def reload_nginx(self):
        signal_to(pid_of(self.any_stack(), 'nginx'), signal.SIGHUP)

    def kill_nginx(self):
        """A process of nginx that serves clients; its master starts another."""
        signal_to(self.one_of(children(pid_of(self.any_stack(), 'nginx') or -1)), signal.SIGKILL)

    def kill_all_of_nginx(self):
        stack = self.any_stack()
        self.resume()
        master = pid_of(stack, 'nginx')
        for pid in [master, *(children(master) if master else [])]:
            signal_to(pid, signal.SIGKILL)
        stack.step('nginx', 'start')

    def terminate_backends(self):
        self.ask("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd' and random() < 0.5")

    def purge_zombies(self):
        self.ask('select purge_zombies(stamp_now())', self.dice.choice(self.namespaces))

    def purge_members(self):
        self.ask('select purge_members(stamp_now())', self.dice.choice(self.namespaces))

    def ask(self, statement, ns=None):
        try:
            self.stacks[0].psql(ns, statement)
        except Exception:  # the server is just starting
            self.stacks[0].connections.clear()

    def restart_postgres(self):
        self.resume()
        self.stacks[0].restart_postgres('fast')

    def crash_postgres(self):
        self.resume()
        self.stacks[0].restart_postgres(self.dice.choice(('immediate', 'kill')))

    def kill_a_backend(self):
        """PostgreSQL ends all others too, and recovers."""
        signal_to(self.backend(), signal.SIGKILL)

    def backends(self):
        server, found = pid_of(self.stacks[0], 'postgres'), []
        for pid in children(server) if server else []:
            try:
                if b' stampd ' in Path(f'/proc/{pid}/cmdline').read_bytes():
                    found.append(pid)
            except OSError:
                continue
        return found

    def backend(self):
        return self.one_of(self.backends())

    def freeze_backends(self, share=1.0):
        """For a while: what is sent to them lies unread, what they have done is not reported."""
        seconds = self.dice.choice((0.1, 0.3, 1.0))
        pids = self.backends()
        for pid in self.dice.sample(pids, int(len(pids) * share + 0.5)):
            self.stop(pid, seconds)
        time.sleep(0.02)

    def freeze_some_backends(self):
        self.freeze_backends(0.5)

    def orphan_commits(self):
        """Workers die while their backends have yet to read a commit, or to answer one; other backends go on."""
        self.freeze_backends(0.5)
        self.kill_several_workers()

    def sever_commits(self):
        self.freeze_backends()
        self.terminate_backends()

    def stop_a_process(self):
        stack = self.any_stack()
        part = self.dice.choice(('worker', 'worker', 'worker', 'worker', 'backend', 'backend', 'master', 'nginx'))
        pid = {'worker': lambda: self.one_of(children(pid_of(stack, 'stampd') or -1)), 'backend': self.backend,
               'master': lambda: pid_of(stack, 'stampd'), 'nginx': lambda: self.one_of(children(pid_of(stack, 'nginx') or -1))}[part]()
        self.stop(pid, self.dice.choice((0.02, 0.1, 0.3, 1.0, 2.5)))

    def stop_some_workers(self):
        """Each for a moment, wherever it is just then."""
        for stack in self.stacks:
            pids = children(pid_of(stack, 'stampd') or -1)
            for pid in self.dice.sample(pids, (len(pids) + 1) // 2):
                self.stop(pid, self.dice.choice((0.02, 0.1, 0.3)))

    def step_the_clock(self):
        clock = self.dice.choice(self.clocks)
        offset = clock.offset - self.dice.choice((0.5, 3, 20, 90))
        clock.set(offset if offset > CLOCK_LEAST_S else 0.0)


HARMS = [('kill a worker', 20), ('kill several workers', 4), ('kill a master', 2), ('kill the manager', 3), ('restart stampd', 1), ('reload stampd', 3),
         ('reload nginx', 3), ('kill nginx', 2), ('kill all of nginx', 1), ('terminate backends', 8), ('purge zombies', 8), ('purge members', 3), ('restart postgres', 1), ('crash postgres', 1),
         ('kill a backend', 1), ('orphan commits', 6), ('sever commits', 6), ('stop a process', 20), ('stop some workers', 6),
         ('step the clock', 10)]
PAIR_HARMS = [('stop a host', 8), ('restart stampd', 4), ('kill a master', 4)]

"""A campaign: clients in processes of their own, rounds of work, and the history of each round.

Between two rounds all clients rest, everything is mended, and each document is read once: that is the end of one
history and the beginning of the next.  The clients, what they hold, the documents and the servers stay.
"""
import json
import multiprocessing
import os
import queue
import re
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

from client import CLASS, Client
from external import External
from extras import CLASSES
from followers import SENT_S, Listener, Sleepers
from members import team_of
from schema import Schemas
from state import compact
from teams import SCHEMA, TEAMS

HERE = Path(__file__).resolve().parent
BARRIER_S = 180
ID = re.compile('{"id":"(.*?)"')  # a line begins with it
CARRIED_ROUNDS = 2  # an operation of unknown outcome may still happen in so many rounds after its own


class Campaign:
    """`stacks` serve the namespace `ns`.  Histories are written into `folder`.  Documents and operations have names that
    begin with `prefix`, which no other campaign on the same database has.  `has_teams`: the schemas of declare() are applied.
    `service`: a push service; with it there are listeners and sessions that are woken.  `is_apart`: hosts = many.  `has_extras`:
    with what extras.py does.  `has_external`: with external workers, which declare_workers() has declared."""

    def __init__(self, stacks, folder, seed, processes=4, threads=4, documents=10, has_module=True, prefix='h',
                 drain_s=120, has_teams=False, ns='lab', clocks=(), service=None, is_apart=False, sent_s=SENT_S, has_extras=True, has_external=False):
        self.ns, self.clocks, self.service, self.is_apart = ns, clocks, service, is_apart
        self.label = prefix if ns == 'lab' else f'{prefix}{ns}'
        self.has_extras = has_extras and has_teams and has_module
        self.has_external, self.external = has_external, None
        self.seed, self.folder, self.has_module = f'{seed}/{ns}', Path(folder) / ns, has_module
        self.folder.mkdir()
        self.servers = [(stack.url, str(stack.path / 'etc/certificate.pem')) for stack in stacks]
        self.stack, self.queue_keys = stacks[0], [stack.queue_key for stack in stacks]
        self.drain_s, self.sent_s, self.has_teams = drain_s, sent_s, has_teams
        self.prefix, self.documents = prefix, [f'{prefix}{number}' for number in range(documents)]
        self.lasting = self.documents[-max(1, documents // 3):]  # their lives are never ended
        self.processes, self.threads = processes, threads
        context = multiprocessing.get_context('fork')
        self.pause, self.ending = context.Event(), context.Event()
        self.round = context.Value('i', 0)
        self.noted, self.written = context.Value('q', 0), context.Value('q', 0)  # operations; writes acknowledged
        self.beginning, self.resting = (context.Barrier(processes * threads + 1) for _ in range(2))
        self.reports = context.Queue()
        self.context, self.workers = context, []
        self.initial = {document: [0, ''] for document in self.documents}
        self.held = {}  # by whom unique values are held
        self.listeners, self.sleepers = [], None
        self.carried = []  # (round, line) of unknown outcome

    def tallies(self):
        """Where the tasks of this round count."""
        return [f'{self.prefix}t{self.round.value}.{number}' for number in range(10)]

    def endings(self):
        """Where the tasks of external workers are noted when they end in this round."""
        return [f'{self.prefix}e{self.round.value}.{number}' for number in range(4)]

    def place(self, id_):
        """The name of a document among those of all namespaces."""
        return f'{self.ns}/{id_}'

    def lowest_clock(self):
        return min((clock.lowest() for clock in self.clocks), default=0.0)

    # --- in a process of clients ---

    def live(self, process):
        clients = [threading.Thread(target=self.live_in_thread, args=(f'{process}-{number}',), daemon=True)
                   for number in range(self.threads)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def live_in_thread(self, number):
        client = Client(self, number)
        while True:
            self.beginning.wait()
            if self.ending.is_set():
                return
            with open(self.folder / f'{self.round.value}.{number}', 'w', encoding='utf-8') as file:
                try:
                    client.run_round(file)
                except Exception:
                    client.note(client.next_name(), 'client', time.monotonic_ns(), 'wrong', words=traceback.format_exc())
            self.reports.put(client.troubles)
            client.troubles = {}
            self.resting.wait()

    # --- in the process that leads ---

    def __enter__(self):
        self.leader = Client(self, 'leader')
        for process in range(self.processes):
            worker = self.context.Process(target=self.live, args=(process,), daemon=True)
            worker.start()
            self.workers.append(worker)
        if self.has_external:
            self.external = External(self, self.processes)
        if self.service:
            self.listeners = [Listener(self, Client(self, f'live{number}'), number) for number in range(3)]
            self.sleepers = Sleepers(self, self.leader, self.service)
            self.sleepers.declare()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.pause.set()
        for listener in self.listeners:
            listener.close()
        if self.external:
            self.external.close()
        try:
            self.beginning.wait(10)
        except threading.BrokenBarrierError:
            pass
        for worker in self.workers:
            worker.join(10)
            if worker.is_alive():
                worker.kill()

    def begin_round(self):
        self.round.value += 1
        self.since = time.monotonic_ns()
        self.pause.clear()
        if self.external:
            self.external.begin()
        self.beginning.wait(BARRIER_S)

    def end_round(self):
        """The path of the round's history, and what clients met beside answers."""
        self.pause.set()
        self.resting.wait(BARRIER_S)
        if self.external:
            self.external.rest()
        path = self.folder / f'{self.round.value}.jsonl'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(compact({'initial': self.initial, 'since': self.since, 'held': self.held, 'seed': self.seed, 'round': self.round.value}) + '\n')
            file.writelines(line for _, line in self.carried)
            unknown = [line for line in self.gather(file)]
            self.leader.file = file
            if self.has_module:
                self.leader.tasks.tell_all()
            if self.has_extras:
                self.follow_up()
            if self.has_teams:
                self.leader.teams.synchronise_all()
            self.initial = self.leader.read_all() or self.initial
            self.look_behind()
            if self.listeners:
                self.await_listeners()
        self.carry(unknown)
        troubles = {}
        for _ in range(self.processes * self.threads):
            try:
                for code, count in self.reports.get(timeout=10).items():
                    troubles[code] = troubles.get(code, 0) + count
            except queue.Empty:
                break
        return path, troubles

    def look_behind(self):
        """At the end of a round, when all is at rest: who does more has more to note."""

    def follow_up(self):
        """What became of copies, sleepers and unique values."""
        extras = self.leader.extras
        extras.read_copies()
        extras.follow_all()
        if self.sleepers:
            self.sleepers.note()
        while (held := extras.read_reservations()) is None:
            time.sleep(0.05)
        self.held = held

    def await_listeners(self):
        """Until each holds what there is."""
        start, end = time.monotonic_ns(), time.monotonic() + self.sent_s
        for listener in self.listeners:
            while words := listener.differs(*self.truth()):
                if time.monotonic() > end:
                    self.leader.note(self.leader.next_name(), 'live', start, 'ok', missed=words)
                    break
                time.sleep(0.5)
                self.initial = self.leader.read_all() or self.initial  # what was not decided yet may happen still
            for words in listener.wrong:
                self.leader.note(self.leader.next_name(), 'live', start, 'ok', missed=words)
            listener.wrong.clear()

    def truth(self):
        """Versions of the documents; members of the collections."""
        return ({document: version for document, (version, _) in self.initial.items()},
                {team: {document for document, (_, state) in self.initial.items() if team_of(state) == team} for team in TEAMS})

    def gather(self, file):
        """Moves the lines of all clients into the file; gives those of unknown outcome that would write.  Of several lines of one
        operation the last counts; a line without its end is not written."""
        for path in sorted(self.folder.glob(f'{self.round.value}.*-*')):
            with open(path, encoding='utf-8') as lines:
                last = {ID.match(line)[1]: line for line in lines if line.endswith('\n')}
            for line in last.values():
                file.write(line)
                if '"result":"unknown"' in line:
                    yield line
            path.unlink()

    def carry(self, unknown):
        """What may still happen.  What is seen in the documents has happened, before the next round."""
        now = self.round.value
        self.carried = [(since, line) for since, line in self.carried + [(now, line) for line in unknown]
                        if since > now - CARRIED_ROUNDS]
        states = ' '.join(state for _, state in self.initial.values())
        self.carried = [(since, line) for since, line in self.carried if f'"{json.loads(line)["id"]}"' not in states]


def check(*paths):
    """(violations?, what the checker says), by the program that everybody can run again."""
    done = subprocess.run([sys.executable, HERE / 'check', *paths], capture_output=True, text=True, check=False)
    return done.returncode != 0, done.stdout + done.stderr


def count(path):
    """How many operations of each kind, and how many acknowledged writes, a history has."""
    kinds, writes = Counter(), 0
    with open(path, encoding='utf-8') as file:
        next(file)
        for line in file:
            kinds[re.search('"kind":"(.*?)"', line)[1]] += 1
            writes += '"result":"ok"' in line and ('"writes":' in line or '"reservations":' in line)
    return kinds, writes


def build_module(folder, source):
    """The module of the campaign, where the server's user can read it."""
    path = Path(folder) / 'history.so'
    subprocess.run(['cc', '-std=c11', '-D_GNU_SOURCE', '-fPIC', '-shared', '-O1', '-Wall', '-Wextra', '-Werror',
                    f'-I{source}/src', '-o', path, HERE / 'module.c'], check=True)
    os.chmod(path, 0o755)
    return path


def declare(stack, folder, namespaces=('lab',)):
    """The schema of the campaign's classes."""
    for ns in namespaces:
        Schemas(stack, folder).apply(ns, {CLASS: SCHEMA, **CLASSES})


__all__ = ['CLASS', 'Campaign', 'build_module', 'check', 'count', 'declare']

"""Clients that read and write a few hot documents while others do harm, and the promises that must hold all the same.

Every acknowledged write is known with its version and the times between which it happened, so a stale read, a lost
update, a read of two instants and a version that goes back are found exactly.
"""
import threading
import time

import requests

from stack import wait_until

ACCOUNTS = [('Account', 'left'), ('Account', 'right')]
TOTAL = 1000
# Answers that a client may get while processes and servers die; what matters is what the acknowledged ones say.
TROUBLE = {'XAWAY', 'XUNKNOWN', 'XDATABASE', 'XTIME', 'CONTENTION', 'ODATABASE'}


class Violation(AssertionError):
    pass


class History:
    """Threads over one or more stacks (instances) that serve the same namespace."""

    def __init__(self, *stacks, ns='lab', counters=3):
        self.stacks, self.ns = stacks, ns
        self.counters = [('Counter', f'c{number}') for number in range(counters)]
        self.lock = threading.Lock()
        self.highest = {}     # document -> highest version that anybody was told of
        self.increments = {}  # document -> number of acknowledged increments
        self.doubtful = {}    # document -> number of increments of unknown outcome
        self.reads = self.writes = 0
        self.troubles = {}
        self.violations = []
        self.ending = threading.Event()
        self.threads = []

    # --- requests ---

    def call(self, http, stack, operation, param):
        """The answer's `out`, or None when there was trouble; raises for what may never happen."""
        try:
            answer = http.post(f'{stack.url}/{self.ns}/op/{operation}', json={'param': param}, timeout=60,
                               verify=stack.http.verify)
        except requests.exceptions.RequestException as error:
            return self.trouble(type(error).__name__)
        if answer.status_code in (502, 503, 504):
            return self.trouble(str(answer.status_code))
        body = answer.json()
        if answer.status_code == 200:
            return body['out']
        if body['code'] == 'AVERSION':
            return False
        if body['code'] not in TROUBLE:
            raise Violation(f'{operation}: unexpected {body}')
        return self.trouble(body['code'])

    def trouble(self, word):
        with self.lock:
            self.troubles[word] = self.troubles.get(word, 0) + 1
        time.sleep(0.02)

    def floors(self, names):
        with self.lock:
            return {name: self.highest.get(name, 0) for name in names}

    def told(self, name, version):
        with self.lock:
            self.highest[name] = max(version, self.highest.get(name, 0))

    def read(self, http, stack, names):
        """Documents by name; none may be older than anything told before the read began."""
        floors = self.floors(names)
        out = self.call(http, stack, 'get', {'docs': [{'c': c, 'id': i} for c, i in names]})
        if not out:
            return None
        found = {(document['c'], document['id']): document for document in out['docs']}
        for name in names:
            if found[name]['v'] < floors[name]:
                raise Violation(f'stale read of {name}: {found[name]["v"]} after {floors[name]} was known')
            self.told(name, found[name]['v'])
        with self.lock:
            self.reads += 1
        return found

    # --- what the clients do ---

    def prepare(self):
        documents = [{'c': c, 'id': i, 'items': [{'c': 'N', 'j': 0}]} for c, i in self.counters]
        documents += [{'c': c, 'id': i, 'items': [{'c': 'N', 'j': TOTAL // 2}]} for c, i in ACCOUNTS]
        self.stacks[0].put(self.ns, *documents)
        for document in self.stacks[0].get(self.ns, *self.counters, *ACCOUNTS):
            self.told((document['c'], document['id']), document['v'])

    def count(self, http, stack, turn):
        name = self.counters[turn % len(self.counters)]
        found = self.read(http, stack, [name])
        if not found:
            return
        document = found[name]
        out = self.call(http, stack, 'put', {'docs': [
            {'c': name[0], 'id': name[1], 'if': document['v'], 'items': [{'c': 'N', 'j': document['items'][0]['j'] + 1}]}]})
        if out is False:
            return
        with self.lock:
            if out is None:
                self.doubtful[name] = self.doubtful.get(name, 0) + 1
            else:
                self.increments[name] = self.increments.get(name, 0) + 1
                self.writes += 1
        if out:
            if out['v'] <= document['v']:
                raise Violation(f'{name} was written at {out["v"]}, not above {document["v"]}')
            self.told(name, out['v'])

    def transfer(self, http, stack, turn):
        found = self.read(http, stack, ACCOUNTS)
        if not found:
            return
        left, right = (found[name] for name in ACCOUNTS)
        amounts = left['items'][0]['j'], right['items'][0]['j']
        if sum(amounts) != TOTAL:
            raise Violation(f'two instants in one read: {amounts} at {left["v"]} and {right["v"]}')
        step = 1 if turn % 2 else -1
        out = self.call(http, stack, 'put', {'docs': [
            {'c': document['c'], 'id': document['id'], 'if': document['v'], 'items': [{'c': 'N', 'j': amount}]}
            for document, amount in ((left, amounts[0] - step), (right, amounts[1] + step))]})
        if out:
            with self.lock:
                self.writes += 1
            for name in ACCOUNTS:
                self.told(name, out['v'])

    def look(self, http, stack, turn):
        found = self.read(http, stack, ACCOUNTS + self.counters)
        if found and sum(found[name]['items'][0]['j'] for name in ACCOUNTS) != TOTAL:
            raise Violation(f'two instants in one read: {found}')

    def live(self, number, deed):
        stack = self.stacks[number % len(self.stacks)]
        http = requests.Session()
        http.trust_env = False
        turn = number
        try:
            while not self.ending.is_set():
                deed(http, stack, turn)
                turn += 1
        except Exception as error:  # kept for the test: a thread has nobody to raise to
            self.violations.append(error)
            self.ending.set()

    # --- life ---

    def __enter__(self):
        self.prepare()
        deeds = [self.count, self.count, self.count, self.transfer, self.transfer, self.look, self.look, self.look]
        for number, deed in enumerate(deeds):
            thread = threading.Thread(target=self.live, args=(number, deed), daemon=True)
            thread.start()
            self.threads.append(thread)
        return self

    def __exit__(self, kind, *_):
        if kind is None:  # however slow the machine: clients have worked
            wait_until(lambda: self.violations or (self.reads > 20 and self.writes > 5), what='some reads and writes')
        self.ending.set()
        for thread in self.threads:
            thread.join(90)
        if kind is None:
            self.check()

    def run(self, seconds, harm=None, every=0.25):
        """Lets the clients work, doing `harm` again and again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.ending.is_set():
            if harm:
                harm()
            time.sleep(every)

    def check(self):
        """After all: nothing acknowledged was lost or done twice, on every instance alike."""
        if self.violations:
            raise self.violations[0]
        assert not any(thread.is_alive() for thread in self.threads), 'a client hangs'
        for stack in self.stacks:
            found = wait_until(lambda: self.read(stack.http, stack, self.counters + ACCOUNTS), what='a last read')
            for name in self.counters:
                value = found[name]['items'][0]['j']
                sure, unsure = self.increments.get(name, 0), self.doubtful.get(name, 0)
                assert sure <= value <= sure + unsure, f'{name} is {value}, acknowledged {sure}, in doubt {unsure}'
            amounts = [found[name]['items'][0]['j'] for name in ACCOUNTS]
            assert sum(amounts) == TOTAL, amounts

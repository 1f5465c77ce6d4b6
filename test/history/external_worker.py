#!/usr/bin/python3
"""external_worker: the external workers of a campaign, each in a process of its own, and the parent that replaces them.

The argument is a plan in JSON; `begin N` on standard input lets them work in round N, `rest` ends them, which `rested` on
standard output acknowledges.  A worker takes tasks over HTTPS and ends them with changes of documents.  At steps that it draws it kills itself,
stops itself (SIGSTOP) until the parent has it go on, which is mostly behind the end of its claim, closes the connection before the answer, is late, or
sends an end again.  Before each request it writes the line of the history as if the outcome were never known, and behind
it the line with the outcome: so what a killed worker had sent is in the history.
"""
import json
import os
import random
import select
import signal
import sys
import time
import traceback
from datetime import datetime, timedelta, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / 'system')]

from answers import Answer, judge  # noqa: E402
from state import compact  # noqa: E402
from wire import Lost, Wire  # noqa: E402

CLASS, TALLY, ITEM = 'Hot', 'Tally', 'Ended'
PAUSE_S = 0.05
LATE_S = 0.3              # behind the end of a claim
STOPPED_S = (0.1, 1.5, 2.5)
BEATS_S = 0.02
TAKES_AT_ONCE = (1, 1, 1, 2, 4)
LEFT_OPEN = {'take': 0.04, 'keep': 0.05, 'fail': 0.05, 'done': 0.1}  # share of requests whose answer is not waited for
# What becomes of a claim, and how often.
FATES = (('end', 50), ('keep and end', 12), ('end again', 10), ('fail', 8), ('release', 5), ('late', 4), ('stop', 5), ('die', 3), ('leave', 3))


class Worker:
    """One external worker.  A claim is a task as `take` gave it, with `until` None when it may have been extended or not."""

    def __init__(self, plan, name, file, left_open=LEFT_OPEN):
        self.plan, self.name, self.file, self.left_open = plan, name, file, left_open
        self.dice, self.sequence = random.Random(f'{plan["seed"]}/{name}'), 0
        self.wires = [Wire(url, certificate) for url, certificate in plan['servers']]
        self.following = []  # tasks that an end has taken
        self.given = set()   # and the names of all their claims: a request that is repeated gets them again

    # --- the history ---

    def write(self, line):
        self.file.write(compact(line) + '\n')
        self.file.flush()

    def request(self, kind, param, **noted):
        """The answer, and the line of the request, which `finish` completes."""
        self.sequence += 1
        line = {'id': f'{self.name}.{self.sequence}', 'kind': kind, 'start': time.monotonic_ns(), 'result': 'unknown', **noted}
        self.write(line)
        return self.send(kind, param(line['id']) if callable(param) else param), line

    def finish(self, line, answer, **more):
        line.update({'end': time.monotonic_ns(), 'result': answer.result, **more})
        line['late'] = line.get('late', False) and not self.has_stepped()
        if answer.result == 'wrong':
            line['words'] = answer.words
        self.write(line)

    def send(self, name, param):
        wire = self.dice.choice(self.wires)
        try:
            wire.send('POST', f'/{self.plan["ns"]}/op/{name}', compact({'param': param}),
                      {'Content-Type': 'application/json', 'Authorization': f'Bearer {self.plan["key"]}'})
            if self.dice.random() < self.left_open.get(name, 0):
                self.harm()
                wire.close()
                return Answer('unknown', code='DROPPED')
            answer = judge(*wire.receive())
        except Lost as lost:
            answer = Answer('unknown' if lost.was_sent else 'no', code='LOST' if lost.was_sent else 'CLOSED')
        if answer.code == 'ACLAIM':
            answer.result = 'no'
        if answer.result == 'ok' and answer.body is None:
            answer.result = 'unknown'  # it was done; what it returned is lost
        if answer.result in ('unknown', 'no') and answer.code not in ('ACLAIM', 'CONTENTION', 'DROPPED'):
            time.sleep(PAUSE_S)
        return answer

    def harm(self):
        """Dies or stands still where it is, or does neither."""
        what = self.dice.choice((signal.SIGKILL, signal.SIGSTOP, None, None, None))
        if what:
            os.kill(os.getpid(), what)

    # --- the four operations ---

    def take(self, most=None, wait=1):
        answer, line = self.request('take', {'qn': self.plan['qn'], 'n': most or self.dice.choice(TAKES_AT_ONCE), 'wait': wait, 'claim': 1, 'worker': self.name[-60:]})
        tasks = answer.body['out']['tasks'] if answer.result == 'ok' else []
        self.finish(line, answer, claims=[[task['param']['key'], name_of(task)] for task in tasks])
        return tasks

    def keep(self, task):
        answer, line = self.request('keep', {**claim_of(task), 'claim': 1, 'progress': 'on the way'}, claim=[task['param']['key'], name_of(task)],
                                    late=self.is_late(task))
        self.finish(line, answer)
        if answer.result == 'ok':
            task['until'] = answer.body['out']['until']
        elif answer.result == 'unknown':
            task['until'] = None
        return answer.result

    def next_tasks(self):
        """The member of an end that takes the next tasks, often, and waits for some, now and then."""
        if self.dice.random() < 0.5:
            return {}
        return {'take': {'qn': self.plan['qn'], 'n': self.dice.choice(TAKES_AT_ONCE), 'claim': 1, 'worker': self.name[-60:], 'wait': self.dice.choice((0, 0, 1))}}

    def fail(self, task, is_release=False):
        """Until it is known what became of it, and now and then once more.  A request that is repeated gets the answer of the first: it shows
        that the attempt has failed, and not that the claim was in force."""
        param = {**claim_of(task), **({'release': True} if is_release else {'delay': 0, 'report': 'As drawn.'}), **self.next_tasks()}
        result, is_again = 'unknown', False
        while result == 'unknown' or self.dice.random() < 0.1:
            answer, line = self.request('fail', param, claim=[task['param']['key'], name_of(task)], late=self.is_late(task), released=is_release)
            result, claims = answer.result, self.follow(answer.body['out'].get('tasks', [])) if answer.result == 'ok' else []
            if result == 'ok' and is_again:
                answer.result = 'no'
            self.finish(line, answer, claims=claims, **({'repeats': True} if result == 'ok' and is_again else {}))
            is_again = True

    def done(self, task):
        """Each request has an item of its own, so whatever was done twice is there twice.  Often it takes the next tasks."""
        take = self.next_tasks()
        param, document = task['param'], self.dice.choice(self.plan['documents'])

        def build(name):
            return {**claim_of(task), **take, 'result': {'by': name}, 'docs': [
                {'c': TALLY, 'id': param['tally'], 'items': [{'c': ITEM, 'k': name, 'j': param['key']}]},
                {'c': CLASS, 'id': document, 'items': [{'c': 'Last', 'j': name}, {'c': 'Line', 'k': name, 'j': name}]}]}
        own = compact(f'{self.name}.{self.sequence + 1}')
        answer, line = self.request('done', build, claim=[param['key'], name_of(task)], late=self.is_late(task),
                                    writes={document: [['set', 'Last', own], ['set', f'Line.{json.loads(own)}', own]]})
        version = answer.body['out'].get('v') if answer.result == 'ok' else None
        claims = self.follow(answer.body['out'].get('tasks', [])) if answer.result == 'ok' else []
        if answer.result == 'ok' and not version:
            answer.result = 'no'  # an earlier request had ended it: this one changed nothing
            return self.finish(line, answer, repeats=True, claims=claims) or 'ok'
        self.finish(line, answer, claims=claims, **({'version': version} if version else {}))
        return answer.result

    def follow(self, tasks):
        """The claims that are new to this worker."""
        new = [task for task in tasks if name_of(task) not in self.given]
        self.given.update(map(name_of, new))
        self.following += new
        return [[task['param']['key'], name_of(task)] for task in new]

    def has_stepped(self):
        """A clock of the servers has been set, once at least: what they say of times is not certain from then on."""
        return any(float(Path(low).read_text()) for low in self.plan['clocks'])

    def is_late(self, task):
        """Has the claim ended for certain?  If no clock is set before the answer, too."""
        return task['until'] is not None and is_over(task['until']) and not self.has_stepped()

    # --- life ---

    def live(self):
        while True:
            tasks, self.following = self.following or self.take(), []
            self.dice.shuffle(tasks)
            for task in tasks:
                fates, weights = zip(*FATES, strict=True)
                getattr(self, self.dice.choices(fates, weights)[0].replace(' ', '_'))(task)

    def end(self, task):
        """Until it is known what became of it."""
        while self.done(task) == 'unknown' or self.dice.random() < 0.05:
            pass

    def keep_and_end(self, task):
        time.sleep(self.dice.choice((0, 0.2, 0.6)))
        self.keep(task)
        self.end(task)

    def end_again(self, task):
        self.end(task)
        self.done(task)

    def release(self, task):
        self.fail(task, is_release=True)

    def late(self, task):
        time.sleep(1 + 2 * LATE_S)
        self.dice.choice((self.done, self.done, self.keep))(task)

    def stop(self, task):
        os.kill(os.getpid(), signal.SIGSTOP)
        self.end_again(task)

    def die(self, _):
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self, _):
        """Its claim ends by itself."""


def claim_of(task):
    return {member: task[member] for member in ('id', 'starttime', 'retry')}


def name_of(task):
    return f'{task["id"]}:{task["starttime"]}:{task["retry"]}'


def is_over(until, late_s=LATE_S):
    """The stamp `until` has passed, by the clock of this machine."""
    seconds, ms = divmod(until, 1000)
    end = datetime.strptime(f'{seconds:012d}', '%y%m%d%H%M%S').replace(tzinfo=timezone.utc) + timedelta(milliseconds=ms)
    return datetime.now(timezone.utc) > end + timedelta(seconds=late_s)


class Parent:
    """Keeps `plan["workers"]` workers alive while a round lasts, and has those go on that stand still."""

    def __init__(self, plan):
        self.plan, self.dice = plan, random.Random(f'{plan["seed"]}/parent')
        self.round, self.number = None, 0
        self.slots = {}    # pid -> slot
        self.stopped = {}  # pid -> when it goes on

    def run(self):
        while True:
            if select.select([sys.stdin], [], [], BEATS_S)[0]:
                words = sys.stdin.readline().split()
                self.end_all()
                if not words:
                    return
                self.round = int(words[1]) if words[0] == 'begin' else None
                print('begun' if self.round else 'rested', flush=True)
            self.look_after()

    def look_after(self):
        while self.slots:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if not pid:
                break
            if os.WIFSTOPPED(status):
                self.stopped[pid] = time.monotonic() + self.dice.choice(STOPPED_S)
            else:
                self.slots.pop(pid)
        for pid in [pid for pid, when in self.stopped.items() if when <= time.monotonic()]:
            self.stopped.pop(pid)
            if pid in self.slots:
                os.kill(pid, signal.SIGCONT)
        for slot in set(range(self.plan['workers'])) - set(self.slots.values()) if self.round else ():
            self.begin(slot)

    def begin(self, slot):
        self.number += 1
        name = f'w{slot}x{self.number}'
        pid = os.fork()
        if not pid:
            os._exit(self.work(name))
        self.slots[pid] = slot

    def work(self, name):
        """In the child."""
        with open(Path(self.plan['folder']) / f'{self.round}.{self.plan["label"]}-{name}', 'w', encoding='utf-8') as file:
            worker = Worker(self.plan, f'{self.plan["label"]}-{name}.{self.round}', file)
            try:
                worker.live()
            except Exception:
                worker.write({'id': f'{worker.name}.fell', 'kind': 'worker', 'start': time.monotonic_ns(), 'end': time.monotonic_ns(), 'result': 'wrong',
                              'words': traceback.format_exc()})
                time.sleep(1)
        return 1

    def end_all(self):
        """Killed wherever they are: claims that they hold end by themselves."""
        for pid in self.slots:
            os.kill(pid, signal.SIGKILL)
        for pid in self.slots:
            os.waitpid(pid, 0)
        self.slots.clear()
        self.stopped.clear()


if __name__ == '__main__':
    Parent(json.loads(sys.argv[1])).run()

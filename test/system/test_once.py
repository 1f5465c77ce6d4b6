"""Requests sent again: under an Idempotency-Key done once, whatever dies; dhop checked."""
import itertools
import os
import random
import shutil
import signal
import threading
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest
import requests

from stack import PATIENCE_S, SOURCE, Problem, children, wait_until
from standby import waiting

pytestmark = pytest.mark.plain

STACK = {'workers': 4}
numbers = itertools.count(1)


@pytest.fixture
def name():
    """(class, id) of a document that no other test has."""
    return 'Once', f'o{next(numbers)}'


def new_key():
    return str(uuid.uuid4())


def doc(name, content, **more):
    return {'c': name[0], 'id': name[1], 'items': [{'c': 'N', 'j': content}], **more}


def send(stack, key, *documents, http=None, operation='put', **arguments):
    """The answer, whatever it is."""
    return (http or stack.http).post(
        f'{stack.url}/lab/op/{operation}', json={'param': {'docs': list(documents)}, **arguments}, timeout=PATIENCE_S,
        headers={'Idempotency-Key': key} if key is not None else {}, verify=stack.http.verify)


def version_of(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()['out']['v']


def is_replayed(answer):
    return answer.headers.get('Idempotency-Replayed') == 'true'


def code_of(answer):
    assert answer.status_code != 200, answer.text
    return answer.json()['code']


def kept(stack, key):
    return stack.psql('lab', 'select version, answer from idempotency where key = %s', (key,))


class Sender(threading.Thread):
    """A request under way: its answer, or what requests raised."""

    def __init__(self, stack, key, *documents):
        super().__init__(daemon=True)
        self.arguments, self.answer, self.error = (stack, key, *documents), None, None
        self.start()

    def run(self):
        try:
            with requests.Session() as http:
                http.trust_env = False
                self.answer = send(*self.arguments, http=http)
        except requests.exceptions.RequestException as error:
            self.error = error

    def wait(self):
        self.join(PATIENCE_S)
        assert not self.is_alive()
        if self.error:
            raise self.error
        return self.answer


# --- the same request again ---

def test_a_request_sent_again_gets_its_answer(stack, name):
    key = new_key()
    first = send(stack, key, doc(name, 1))
    assert not is_replayed(first)
    other = stack.put('lab', doc(name, 2))
    again = send(stack, key, doc(name, 1))
    assert is_replayed(again) and again.content == first.content
    found = stack.get('lab', name)
    assert (found['v'], found['items'][0]['j']) == (other, 2)
    assert kept(stack, key)[0][0] == version_of(first) < other


def test_synchronisations_are_computed_anew(stack, name):
    key = new_key()
    version = version_of(send(stack, key, doc(name, 1)))
    stack.put('lab', doc(name, 2))
    again = send(stack, key, doc(name, 1), syncs=[{'c': name[0], 'id': name[1]}]).json()
    assert again['out']['v'] == version
    assert again['syncs'][0]['items'][0]['j'] == 2


def test_what_changes_nothing_is_kept_too(stack, name):
    version = stack.put('lab', doc(name, 1))
    key = new_key()
    assert version_of(send(stack, key, doc(name, 1))) == version
    assert kept(stack, key)[0][0] == 0
    stack.put('lab', doc(name, 2))
    again = send(stack, key, doc(name, 1))
    assert is_replayed(again) and version_of(again) == version


def test_another_request_is_refused(stack, name):
    key = new_key()
    send(stack, key, doc(name, 1))
    refused = send(stack, key, doc(name, 2))
    assert code_of(refused) == 'AKEYREUSED' and refused.json()['args'] == [key] and not is_replayed(refused)
    assert stack.get('lab', name)['items'][0]['j'] == 1
    assert not is_replayed(send(stack, key, doc(name, 2), account='another'))


def test_who_only_reads_keeps_nothing(stack, name):
    key = new_key()
    for _ in range(2):
        answer = send(stack, key, {'c': name[0], 'id': name[1]}, operation='get')
        assert answer.status_code == 200 and not is_replayed(answer)
    assert kept(stack, key) == []


@pytest.mark.parametrize('key', ['a b', 'k' * 256, 'caf\u00e9'.encode()], ids=['blank', 'long', 'not ASCII'])
def test_a_key_is_visible_ascii(stack, name, key):
    refused = send(stack, key, doc(name, 1))
    assert code_of(refused) == 'AARG' and refused.json()['args'] == ['Idempotency-Key']
    assert stack.get('lab', name)['v'] == 0


def test_after_a_fault_the_key_is_free(stack, name):
    key, order = new_key(), doc(name, 1, **{'if': 0})
    version = stack.put('lab', doc(name, 0))
    assert code_of(send(stack, key, order)) == 'AVERSION'
    stack.put('lab', {'c': name[0], 'id': name[1], 'delete': True})
    assert version_of(send(stack, key, order)) > version
    assert is_replayed(send(stack, key, order))


def test_many_at_once_do_it_once(stack):
    for turn in range(20):
        name, key = ('Once', f'many{turn}'), new_key()
        senders = [Sender(stack, key, doc(name, turn, **{'if': 0})) for _ in range(8)]
        answers = [sender.wait() for sender in senders]
        assert {version_of(answer) for answer in answers} == {stack.get('lab', name)['v']}
        assert len({answer.content for answer in answers}) == 1
        assert sum(not is_replayed(answer) for answer in answers) == 1


# --- age ---

def in_time(ask):
    """The answer, asked for again while the time of the operation, two seconds here, is over before it is done, as it may be on a busy machine."""
    return wait_until(lambda: [answer for answer in [ask()] if answer.ok or code_of(answer) != 'XTIME'], what='an answer in time')[0]


def test_answers_are_kept_for_a_time(stack, name):
    stack.set(idempotency_s=1, limit_operation_s=2, dhop_future_ms=0)  # rows stay a little longer than they are of use
    try:
        key = new_key()
        first = version_of(in_time(lambda: send(stack, key, doc(name, 1))))
        in_time(lambda: send(stack, None, doc(name, 2)))
        again = wait_until(lambda: [answer for answer in [in_time(lambda: send(stack, key, doc(name, 1)))] if not is_replayed(answer)])[0]
        assert version_of(again) > first
        old = new_key()
        in_time(lambda: send(stack, old, doc(name, 3)))
        wait_until(lambda: send(stack, new_key(), doc(name, 4)).ok and kept(stack, old) == [], what='the purge')
    finally:
        stack.set(idempotency_s=86400, limit_operation_s=60, dhop_future_ms=5000)


# --- keys that carry their time ---

def key_of(seconds=0):
    """A UUIDv7 made so many seconds from now."""
    ms = int((time.time() + seconds) * 1000)
    return str(uuid.UUID(int=ms << 80 | 7 << 76 | random.getrandbits(12) << 64 | 2 << 62 | random.getrandbits(62)))


def stamp_of(seconds=0):
    now = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return int(now.strftime('%y%m%d%H%M%S')) * 1000 + now.microsecond // 1000


def by_resource(stack, key, name, content, **_):
    return stack.request('PATCH', f'/lab/doc/{name[0]}/{name[1]}', json={'items': [{'c': 'N', 'j': content}]}, headers={'Idempotency-Key': key})


def by_put(stack, key, name, content, **more):
    return send(stack, key, doc(name, content), **more)


@pytest.fixture
def short(stack):
    """Answers are remembered for two seconds."""
    stack.set(idempotency_s=2, limit_operation_s=2, dhop_future_ms=500, keep_interval_s=1)
    yield stack
    stack.set(idempotency_s=86400, limit_operation_s=60, dhop_future_ms=5000, keep_interval_s=600)


@pytest.mark.parametrize('how', [by_put, by_resource, 'dhop'])
def test_a_key_that_was_forgotten_overwrites_nothing(short, name, how):
    stack = short
    in_time(lambda: send(stack, None, doc(name, 0)))

    def ask():
        if how == 'dhop':  # a key without time, and its time beside it
            return by_put(stack, key, name, 'mine', dhop=stamp)
        return how(stack, key, name, 'mine')

    for _ in range(100):  # a key that comes late is old already
        key, stamp = new_key() if how == 'dhop' else key_of(), stamp_of()
        answer = in_time(ask)
        if answer.ok:
            break
        assert code_of(answer) == 'AKEYOLD', answer.text
    assert answer.status_code == 200
    theirs = version_of(in_time(lambda: send(stack, None, doc(name, 'theirs'))))
    answers = []

    def is_forgotten():
        answers.append(in_time(ask))
        return not answers[-1].ok and kept(stack, key) == []

    wait_until(is_forgotten, what='forgetting the key')  # also when the row has gone
    for answer in answers:  # given again, or refused: never done again
        assert is_replayed(answer) or (answer.status_code, code_of(answer)) == (422, 'AKEYOLD'), answer.text
    assert answers[-1].json()['phase'] == 0
    assert stack.get('lab', name)['v'] == theirs
    at, least, now = map(int, answers[-1].json()['args'])
    assert at < least < now < stamp_at(60)


def test_a_key_without_time_is_done_again_when_it_was_forgotten(short, name):
    key, stack = new_key(), short
    version = version_of(in_time(lambda: send(stack, key, doc(name, 'mine'))))
    in_time(lambda: send(stack, None, doc(name, 'theirs')))
    again = wait_until(lambda: [answer for answer in [in_time(lambda: send(stack, key, doc(name, 'mine')))] if not is_replayed(answer)])[0]
    assert version_of(again) > version


@pytest.mark.parametrize('seconds, code, status', [(-3 * 86400, 'AKEYOLD', 422), (-86390 - 60, 'AKEYOLD', 422), (-86300, None, 200), (0, None, 200),
                                                   (3600, 'AKEYAHEAD', 400), (10 * 365 * 86400, 'AKEYAHEAD', 400)])
def test_the_time_of_a_key_is_judged(stack, name, seconds, code, status):
    for key in (key_of(seconds), key_of(seconds).upper()):
        answer = send(stack, key, doc(name, 1))
        assert answer.status_code == status
        if code:
            assert code_of(answer) == code and answer.json()['phase'] == 0
            assert stamp_at(-60) < int(answer.json()['args'][-1]) < stamp_at(60)  # by which a client sets its clock
            assert stack.get('lab', name)['v'] == 0 and kept(stack, key) == []
    assert send(stack, key, {'c': name[0], 'id': name[1]}, operation='get').ok  # who only reads pays no heed


# --- outcomes unknown ---

@pytest.fixture
def slow(stack):
    """The first commit of a document of class Slow hangs in a deferred trigger, before it is a commit."""
    stack.psql('lab', '''
        create sequence slow_commits;
        create function slow() returns trigger language plpgsql security definer set search_path = stampd as $$
        begin
          if nextval('slow_commits') = 1 then perform pg_sleep(60); end if;
          return null;
        end $$;
        create constraint trigger slow after insert or update on doc deferrable initially deferred
          for each row when (new.class = 'Slow') execute function slow()''')
    yield lambda: stack.psql('lab', "select setval('slow_commits', 1, false)")
    stack.psql('lab', 'drop trigger slow on doc; drop function slow; drop sequence slow_commits')


def end_waiting(stack, event):
    pid, = wait_until(lambda: stack.psql(None, "select pid from pg_stat_activity where usename = 'stampd' and wait_event = %s",
                                         (event,)), what=event)[0]
    assert stack.psql(None, 'select pg_terminate_backend(%s)', (pid,)) == [(True,)]


def test_a_lost_commit_that_did_not_happen(stack, slow):
    name = ('Slow', 'a')
    sender = Sender(stack, None, doc(name, 1))
    end_waiting(stack, 'PgSleep')
    assert code_of(sender.wait()) == 'XUNKNOWN'
    assert stack.get('lab', name)['v'] == 0
    slow()
    key = new_key()
    sender = Sender(stack, key, doc(name, 2))
    end_waiting(stack, 'PgSleep')
    answer = sender.wait()
    assert version_of(answer) == stack.get('lab', name)['v'] and not is_replayed(answer)
    assert is_replayed(send(stack, key, doc(name, 2)))


@pytest.fixture
def commits_without_answer(stack):
    """Commits are done, but wait for a standby that is not there; yields what ends their wait."""
    def release():
        stack.psql('lab', 'alter system reset synchronous_standby_names')
        stack.psql('lab', 'select pg_reload_conf()')

    stack.psql('lab', 'set synchronous_commit = local')
    stack.psql('lab', "alter system set synchronous_standby_names = 'nobody'")
    stack.psql('lab', 'select pg_reload_conf()')
    yield release
    release()
    number = itertools.count()
    wait_until(lambda: send(stack, None, doc(('Once', 'unstuck'), next(number))).ok, what='the old rule')


def send_until_stuck(stack, key_of):
    """A request whose commit hangs: the first ones may still be answered, for the server takes the rule over by and by; those of
    a worker that has no session are refused."""
    for turn in itertools.count():
        name, key = ('Stuck', f's{next(numbers)}'), key_of()
        sender = Sender(stack, key, doc(name, 1))
        while sender.is_alive():
            if waiting(stack):
                return name, key, sender
        assert turn < 1000 and sender.wait().status_code in (200, 503)


def send_until_known(stack, name, key):
    return wait_until(lambda: (lambda answer: answer if answer.ok else None)(send(stack, key, doc(name, 1))), what='an answer')


def test_a_lost_commit_that_did_happen(stack, commits_without_answer):
    name, key, sender = send_until_stuck(stack, new_key)
    end_waiting(stack, 'SyncRep')
    assert code_of(sender.wait()) == 'XUNKNOWN'
    assert code_of(send(stack, key, doc(name, 1))) in ('XAWAY', 'XUNKNOWN')  # visible, and on no standby
    commits_without_answer()
    again = send_until_known(stack, name, key)
    assert is_replayed(again) and [version_of(again)] == [row[0] for row in kept(stack, key)]
    assert stack.get('lab', name)['v'] == version_of(again)


def test_a_lost_commit_that_did_happen_is_answered_once_it_is_safe(stack, commits_without_answer):
    name, key, sender = send_until_stuck(stack, new_key)
    commits_without_answer()  # its wait ends, or is ended: an instant later, all is safe
    stack.psql('lab', "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd' and wait_event = 'SyncRep'")
    answer = sender.wait()
    if not answer.ok:  # the worker had not got its session in time
        assert code_of(answer) == 'XUNKNOWN'
        answer = send_until_known(stack, name, key)
    assert [version_of(answer)] == [row[0] for row in kept(stack, key)] == [stack.get('lab', name)['v']]


def test_a_worker_dies_after_its_commit(stack, commits_without_answer):
    name, key, sender = send_until_stuck(stack, new_key)
    for pid in children(stack.pid()):
        stack.kill_worker(pid)
    try:
        assert sender.wait().status_code in (502, 504)
    except requests.exceptions.RequestException:
        pass
    commits_without_answer()
    again = send_until_known(stack, name, key)
    assert is_replayed(again)
    assert version_of(again) == stack.get('lab', name)['v'] == kept(stack, key)[0][0]


class Counting:
    """Clients that count documents up, each step sent under its key until it is known whether it was done: so the counters
    say exactly what the clients know."""

    def __init__(self, stack, clients=6, counters=3):
        self.stack, self.counters = stack, [('Counter', f'k{number}') for number in range(counters)]
        self.done = dict.fromkeys(self.counters, 0)
        self.replays = 0
        self.errors, self.troubles = [], {}
        self.lock, self.ending = threading.Lock(), threading.Event()
        with requests.Session() as http:
            http.trust_env = False
            _, is_done = self.persist(http, None, *(doc(name, 0) for name in self.counters))
        assert is_done
        self.threads = [threading.Thread(target=self.live, args=(number,), daemon=True) for number in range(clients)]

    def persist(self, http, key, *documents, **more):
        """Sends until there is an answer that settles it."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                answer = send(self.stack, key, *documents, http=http, **more)
                code = None if answer.status_code == 200 else answer.json()['code']
            except (requests.exceptions.RequestException, ValueError) as error:
                code = type(error).__name__
            if code in (None, 'AVERSION'):
                return answer, code is None
            assert code not in ('AKEYREUSED', 'AARG', 'BINTERNAL'), code
            with self.lock:
                self.troubles[code] = self.troubles.get(code, 0) + 1
            time.sleep(0.02)
        raise AssertionError(f'no answer in {PATIENCE_S} s')

    def step(self, http, name):
        answer, _ = self.persist(http, None, {'c': name[0], 'id': name[1]}, operation='get')
        found = answer.json()['out']['docs'][0]
        answer, is_done = self.persist(http, new_key(), doc(name, found['items'][0]['j'] + 1, **{'if': found['v']}))
        with self.lock:
            self.done[name] += is_done
            self.replays += is_replayed(answer)

    def live(self, number):
        try:
            with requests.Session() as http:
                http.trust_env = False
                while not self.ending.is_set():
                    self.step(http, self.counters[number % len(self.counters)])
                    number += 1
        except Exception as error:  # kept for the test: a thread has nobody to raise to
            self.errors.append(error)

    def progress(self):
        with self.lock:
            return sum(self.done.values())

    def run(self, harm, times):
        """Does harm, and goes on when clients have: whatever the harm, they do not stand still.  Right after the last harm a
        worker may still rest before it connects again, so the end is read as persistently as all else."""
        for thread in self.threads:
            thread.start()
        for _ in range(times):
            before = self.progress()
            harm()
            time.sleep(0.1 * random.random())  # into the midst of what they do
            wait_until(lambda: self.errors or self.progress() > before, what='progress')
        self.ending.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
        if self.errors:
            raise self.errors[0]
        with requests.Session() as http:
            http.trust_env = False
            answer, _ = self.persist(http, None, *({'c': name[0], 'id': name[1]} for name in self.counters), operation='get')
        found = answer.json()['out']['docs']
        assert {(one['c'], one['id']): one['items'][0]['j'] for one in found} == self.done, self.troubles


def kill_a_worker(stack):
    pids = children(stack.pid())
    if not pids:  # all of them are dead at this instant; pid 0 would be the tests themselves
        return
    try:
        os.kill(random.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        pass


@pytest.fixture
def harmed(stack):
    """Afterwards no worker rests before it connects again."""
    yield stack
    stack.restart_stampd()


def test_effects_happen_once_while_workers_are_killed(harmed):
    Counting(harmed).run(lambda: kill_a_worker(harmed), 20)


def test_effects_happen_once_while_backends_are_terminated(harmed):
    Counting(harmed).run(lambda: harmed.psql(
        None, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd' and random() < 0.5"), 60)


# --- the stamp of the session ---

def stamp_at(seconds):
    return int(time.strftime('%y%m%d%H%M%S000', time.gmtime(time.time() + seconds)))


def test_dhop_is_neither_in_the_future_nor_too_old(stack, name):
    assert stack.put('lab', doc(name, 1), dhop=stamp_at(-10))
    assert stack.put('lab', doc(name, 2), dhop=str(stamp_at(-3600)))
    assert stack.put('lab', doc(name, 2), dhop=stamp_at(-60 * 86400))  # of an outbox that has waited
    for wrong in (stamp_at(3600), stamp_at(-91 * 86400)):
        with pytest.raises(Problem) as refused:
            stack.put('lab', doc(name, 3), dhop=wrong)
        assert refused.value.code == 'ADHOP'
        given, least, most, now = map(int, refused.value.body['args'])
        assert given == wrong
        assert not least <= given <= most
        assert least < stamp_at(-60) < now < stamp_at(60) and now < most
    with pytest.raises(Problem) as refused:
        stack.put('lab', doc(name, 3), dhop='yesterday')
    assert (refused.value.code, refused.value.body['args']) == ('AARG', ['dhop'])
    assert stack.get('lab', name)['items'][0]['j'] == 2


# --- the migration ---

def test_a_namespace_of_before_is_migrated(stack, tmp_path):
    *first, last = sorted((SOURCE / 'sql').glob('0*.sql'))
    for file in first:
        shutil.copy(file, tmp_path)
    pid_file = tmp_path / 'nginx.pid'
    pid_file.write_text(f'{stack.pid("nginx")}\n')
    stack.admin('ns', 'create', 'former', '--access', 'open', '--nginx-pid', pid_file, environment={'STAMPD_SQL': str(tmp_path)})
    try:
        # A document of before, as it stands in its tables: functions of later files are not there yet.
        stack.psql('former', "insert into doc (class, id, version, ctime, dtime, v1, v2) select 'Once', 'a', now, now, now, 1, 0 from stamp_now() now;"
                             " insert into item (class, id, iclass, key, version, vop, content, raw)"
                             " select 'Once', 'a', 'N', '', version, version, '1', false from doc where class = 'Once'")
        get = {'param': {'docs': [{'c': 'Once', 'id': 'a'}]}}
        wait_until(lambda: stack.request('POST', '/former/op/get', json=get).json().get('code') == 'ODATABASE')
        applied = stack.admin('ns', 'migrate', '--all').out
        assert f'applied {last.name}' in applied and applied.count('applied') == 1
        wait_until(lambda: stack.request('POST', '/former/op/get', json=get).ok)
        assert stack.get('former', ('Once', 'a'))['items'][0]['j'] == 1
        answers = [stack.request('POST', '/former/op/put', json={'param': {'docs': [doc(('Once', 'a'), 2)]}},
                                 headers={'Idempotency-Key': 'k'}) for _ in range(2)]
        assert [is_replayed(answer) for answer in answers] == [False, True]
    finally:
        stack.connections.pop('former').close()
        stack.admin('ns', 'drop', 'former', '--yes', '--nginx-pid', pid_file)

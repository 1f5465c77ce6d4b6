"""A standby takes over: under synchronous replication nothing that was answered is lost, and nothing is shown that may be."""
import contextlib
import itertools
import json
import socket
import struct
import threading
import time
import uuid

import psycopg2
import pytest
import requests

from fastcgi import Connection
from replica import SOCKET, Replica
from stack import Stack, wait_until
from standby import waiting
from test_once import Sender, doc, is_replayed, send

pytestmark = pytest.mark.plain

SHORT = {'statement_timeout_ms': 1000, 'lock_timeout_ms': 1000}  # a commit that hangs is given up soon
WORKERS = 3
NAME, OTHER = ('Failover', 'a'), ('Failover', 'b')
numbers = itertools.count()


def all_have_sessions(stack):
    """Each worker has one: what waits for the replica from now on is a commit, and not the proof of a session."""
    def some():
        threads = [Sender(stack, None, doc(('Session', f's{next(numbers)}'), 0)) for _ in range(2 * WORKERS)]
        if not all([thread.wait().ok for thread in threads]):  # its short time was over
            return False
        found = stack.psql(None, "select count(*) from pg_stat_activity where application_name = 'stampd' and datname = 'stampd_lab'")
        return found == [(WORKERS,)]
    wait_until(some, what='sessions of all workers')


@contextlib.contextmanager
def followed(waits, **settings):
    """A stack, and a replica of its database, which commits wait for or not."""
    with Stack('failover', workers=WORKERS, settings={'connect_timeout_s': 2, 'restart_young_ms': 0, **settings}, namespaces={'z': 'closed', 'lab': 'open'}) as stack, Replica(stack) as replica:
        if waits:
            replica.is_waited_for()

        def put():
            wait_until(lambda: send(stack, None, doc(NAME, 0)).ok, what='a commit')
        put()
        wait_until(lambda: 'relay listens database=stampd_lab' in stack.log(), what='the relay')
        put()  # what was known before it is not trusted, and asked for again
        all_have_sessions(stack)
        replica.catch_up()
        yield stack, replica


def synchronous(**settings):
    return followed(True, **settings)


def asynchronous(**settings):
    return followed(False, **settings)


def content(stack, name=NAME):
    """None: there is no answer but a fault."""
    answer = send(stack, None, {'c': name[0], 'id': name[1]}, operation='get')
    return answer.json()['out']['docs'][0]['items'][0]['j'] if answer.ok else None


def stored(replica, name=NAME):
    return replica.psql('lab', 'select content from item where class = %s and id = %s', name)[0][0]


def read_until(stack, expected):
    wait_until(lambda: content(stack) == expected, what=f'{expected} to be read, and not {content(stack)}')


def hanging(stack, key=None, name=NAME):
    """A request whose commit waits for the replica; one whose time was over before is sent again."""
    senders = []

    def found():
        pids = waiting(stack)
        if not pids and not (senders and senders[-1].is_alive()):
            senders.append(Sender(stack, key, doc(name, 1)))
        return pids
    pid = wait_until(found, what='a commit that waits')[0]
    return senders[-1], pid


def is_refused(answer):
    """Not done, or not known to be done."""
    return answer.status_code in (500, 503) and answer.json()['code'] in ('XUNKNOWN', 'XAWAY', 'XTIME')


def test_a_commit_that_no_standby_has_is_not_answered():
    key = str(uuid.uuid4())
    with synchronous(**SHORT) as (stack, replica):
        replica.cut_off()
        sender, pid = hanging(stack, key)
        assert is_refused(sender.wait())
        for _ in range(3):
            assert is_refused(send(stack, key, doc(NAME, 1)))
            assert content(stack) in (0, None)
        assert pid in waiting(stack), 'its session was ended'
        replica.take_over()
        read_until(stack, 0)
        answer = wait_until(lambda: (lambda answer: answer.ok and answer)(send(stack, key, doc(NAME, 1))), what='an answer')
        assert not is_replayed(answer)
        assert stored(replica) == '1'
        read_until(stack, 1)


def test_a_commit_whose_wait_was_cancelled_is_not_acknowledged():
    with synchronous() as (stack, replica):
        replica.cut_off()
        sender, pid = hanging(stack)
        stack.psql(None, 'select pg_cancel_backend(%s)', (pid,))
        assert is_refused(sender.wait())


@pytest.mark.parametrize('end', ['pg_cancel_backend', 'pg_terminate_backend'])
def test_a_stored_answer_is_given_when_a_standby_has_it(end):
    key = str(uuid.uuid4())
    with synchronous() as (stack, replica):
        replica.cut_off()
        sender, pid = hanging(stack, key, OTHER)
        twins = [Sender(stack, key, doc(OTHER, 1)) for _ in range(WORKERS)]  # one waits for the first one's lock, in a session that was there before
        wait_until(lambda: stack.psql(None, "select 1 from pg_stat_activity where usename = 'stampd' and wait_event_type = 'Lock'"), what='a twin')
        stack.psql(None, f'select {end}(%s)', (pid,))
        assert all(is_refused(one.wait()) for one in (sender, *twins))
        for _ in range(3):
            assert is_refused(send(stack, key, doc(OTHER, 1)))
        replica.come_back()
        answer = wait_until(lambda: (lambda answer: answer.ok and answer)(send(stack, key, doc(OTHER, 1))), what='an answer')
        assert is_replayed(answer)
        assert stored(replica, OTHER) == '1'


def test_what_a_restarted_primary_shows_is_not_served_before_a_standby_has_it():
    with synchronous() as (stack, replica):
        replica.cut_off()
        sender, _ = hanging(stack)
        stack.postgres['synchronous_standby_names'] = f"'{replica.name}'"  # which the restart would drop
        stack.restart_postgres('kill')
        assert stack.psql('lab', 'select content from item where class = %s', (NAME[0],)) == [('1',)]
        sender.join()
        for _ in range(2 * WORKERS):
            assert content(stack) in (0, None)
        replica.take_over()
        read_until(stack, 0)


def test_a_worker_that_dies_leaves_its_commit_waiting():
    key = str(uuid.uuid4())
    with synchronous() as (stack, replica):
        replica.cut_off()
        sender, pid = hanging(stack, key)
        for worker in stack.worker_pids():
            stack.kill_worker(worker)
        sender.join()
        assert is_refused(send(stack, key, doc(NAME, 1)))
        assert pid in waiting(stack), 'its session was ended'
        replica.come_back()
        answer = wait_until(lambda: (lambda answer: answer.ok and answer)(send(stack, key, doc(NAME, 1))), what='an answer')
        assert is_replayed(answer) and stored(replica) == '1'


def test_a_spool_that_arrives_again_is_stored_when_a_standby_has_it():
    records = {'series': '0' * 32, 'records': [{'n': 1, 'd': 'a' * 64, 'task': {'op': 'put', 'param': {'docs': []}}}]}
    with synchronous() as (stack, replica):
        def forward():
            return stack.request('POST', '/lab/op/spool', json={'param': records}, admin=True)

        replica.cut_off()
        answers = []
        thread = threading.Thread(target=lambda: answers.append(forward()))
        thread.start()
        pid = wait_until(lambda: waiting(stack), what='a commit that waits')[0]
        stack.psql(None, 'select pg_cancel_backend(%s)', (pid,))
        thread.join()
        assert is_refused(answers[0]), answers[0].text
        for _ in range(3):
            answer = forward()
            assert is_refused(answer), answer.text
        replica.come_back()
        answer = wait_until(lambda: (lambda answer: answer.ok and answer)(forward()), what='an answer')
        assert answer.json()['out'] == {'refused': [], 'stored': 0, 'known': 1}


# --- a database that has lost commits ---

def lost(stack):
    """What the metrics say, by namespace; None: no worker has answered."""
    return {code: stack.metrics().get(f'stampd_history_lost{{database="stampd_{code}"}}') for code in ('z', 'lab')}


def read_by(stack, number, name=NAME):
    """What the worker answers, by its own socket: nginx prefers some of the workers."""
    with Connection(stack.path / f'run/stampd/worker-{number}.sock') as worker:
        return worker.ask('/lab/doc/{}/{}'.format(*name), STAMPD_NS='lab', STAMPD_DATABASE='stampd_lab')


def ask_the_database(stack):
    """By each worker: for a document that none has."""
    return [read_by(stack, number, ('Failover', f'none{next(numbers)}')) for number in range(WORKERS)]


def read_by_all(stack, expected):
    for number in range(WORKERS):
        answer = read_by(stack, number)
        assert answer.status == 200 and json.loads(answer.body)['items'][0]['j'] == expected, answer.body


def lose_a_commit(stack, replica):
    """It was acknowledged, and read by all; then another server is the primary, which does not have it."""
    replica.cut_off()
    stack.put('lab', doc(NAME, 'LOST'))
    read_by_all(stack, 'LOST')


def is_refused_for_good(stack):
    answer = send(stack, None, {'c': NAME[0], 'id': NAME[1]}, operation='get')
    return not answer.ok and answer.json()['code'] == 'ODATABASE'


def restored(stack):
    stack.admin('ns', 'restored', 'lab')
    wait_until(lambda: content(stack) is not None, what='the namespace')


@pytest.mark.parametrize('again', [False, True], ids=['running', 'restarted'])
def test_a_namespace_that_has_lost_commits_is_refused_until_restored(again):
    with asynchronous() as (stack, replica):
        lose_a_commit(stack, replica)
        if again:  # what it knows is in a file
            wait_until((stack.path / 'run/stampd/lineage').exists, what='the file')
            stack.step('stampd', 'stop', 'now')
        replica.take_over()
        if again:
            stack.step('stampd', 'start')
        wait_until(lambda: is_refused_for_good(stack), what='the refusal')
        for _ in range(2 * WORKERS):
            assert is_refused_for_good(stack) and not send(stack, None, doc(NAME, 'new')).ok
        assert lost(stack) == {'z': 0, 'lab': 1}
        assert 'database=stampd_lab has lost commits that were acknowledged' in stack.log()
        restored(stack)
        read_by_all(stack, 0)
        assert lost(stack) == {'z': 0, 'lab': 0}
        stack.put('lab', doc(NAME, 'new'))
        read_by_all(stack, 'new')
        stack.restart_stampd()
        read_by_all(stack, 'new')


@pytest.mark.parametrize('point', ['session-met', 'lineage-written'])
def test_a_death_hides_no_loss(point):
    with asynchronous(debug_die_at=point) as (stack, replica):
        lose_a_commit(stack, replica)
        replica.take_over()
        wait_until(lambda: f'died at {point},' in stack.log(), what='a death')
        wait_until(lambda: is_refused_for_good(stack), what='the refusal')
        restored(stack)
        read_by_all(stack, 0)


def test_a_failover_without_a_loss_is_none_of_the_administrators_business():
    with asynchronous() as (stack, replica):
        stack.put('lab', doc(NAME, 'kept'))
        read_by_all(stack, 'kept')
        replica.catch_up()
        replica.take_over()
        wait_until(lambda: 'timeline 2 has begun' in stack.log(), what='the new primary')
        read_until(stack, 'kept')
        read_by_all(stack, 'kept')
        assert lost(stack) == {'z': 0, 'lab': 0} and 'has lost commits' not in stack.log()
        version = stack.put('lab', doc(NAME, 'next'))
        assert stored(replica) == '"next"' and stack.get('lab', NAME)['v'] == version


def test_no_copy_mixes_two_histories():
    """Those of before are dropped, and not completed by what is newer, though no commit is known to be lost."""
    with asynchronous() as (stack, replica):
        lose_a_commit(stack, replica)
        (stack.path / 'run/stampd/lineage').unlink(missing_ok=True)
        replica.take_over()
        wait_until(lambda: is_refused_for_good(stack), what='the refusal')
        replica.psql('lab', "select put_item(%s, %s, 'M', '', '2')", NAME)  # a version above that of the lost one
        restored(stack)
        for _ in range(4 * WORKERS):
            items = stack.get('lab', NAME)['items']
            assert {item['c']: item['j'] for item in items} == {'N': 0, 'M': 2}


def test_sessions_of_a_former_primary_are_used_no_more():
    with asynchronous() as (stack, replica):
        replica.catch_up()
        replica.take_over(stops=False)
        assert stack.put('lab', doc(NAME, 'former'))  # nobody has met the new one
        stack.kill_worker()
        wait_until(lambda: ask_the_database(stack) and 'timeline 2 has begun' in stack.log(), what='the new primary')
        wait_until(lambda: is_refused_for_good(stack), what='the refusal')
        restored(stack)
        for number in range(4 * WORKERS):
            stack.put('lab', doc(NAME, number))
            assert stored(replica) == str(number) and content(stack) == number
        replica.psql('lab', "select put_item(%s, %s, 'N', '', '\"psql\"')", NAME)  # the relay, too, has left the former one
        read_until(stack, 'psql')
        read_by_all(stack, 'psql')


def test_notify_all_drops_copies():
    with Stack('failover', workers=WORKERS, namespaces={'z': 'closed', 'lab': 'open'}) as stack:
        stack.put('lab', doc(NAME, 'before'))
        wait_until(lambda: 'relay listens database=stampd_lab' in stack.log(), what='the relay')
        read_by_all(stack, 'before')
        stack.psql('lab', """set session_replication_role = replica; update item set content = '"after"' where class = 'Failover';
                   update doc set version = version + 1 where class = 'Failover'; set session_replication_role = origin""")
        stack.psql('lab', "notify stampd, 'all'")
        read_until(stack, 'after')
        read_by_all(stack, 'after')


# --- the share of workers that stays free ---

def soon(stack, operation, document):
    """The answer of a worker that is free, in a tuple; None: the request waits behind a commit that hangs."""
    try:
        return stack.request('POST', f'/lab/op/{operation}', json={'param': {'docs': [document]}}, timeout=3),
    except requests.exceptions.ReadTimeout:
        return None


def test_cached_documents_are_served_while_commits_hang():
    with synchronous(commit_timeout_ms=120000) as (stack, replica):
        read_by_all(stack, 0)
        replica.cut_off()
        senders = [Sender(stack, None, doc(('Crowd', f'c{number}'), 1)) for number in range(WORKERS)]
        wait_until(lambda: len(waiting(stack)) == WORKERS, what='a commit of each worker')
        read, = wait_until(lambda: soon(stack, 'get', {'c': NAME[0], 'id': NAME[1]}), what='a cached document')
        assert read.ok and read.json()['out']['docs'][0]['items'][0]['j'] == 0, read.text
        for _ in range(5):
            written, = wait_until(lambda: soon(stack, 'put', doc(NAME, 2)), what='a refusal')
            assert is_refused(written), written.text
        replica.come_back()
        assert [sender.wait().ok for sender in senders].count(True) == WORKERS - 1


def test_a_commit_that_waits_a_moment_hinders_no_other():
    """A wait counts after two seconds."""
    with Stack('failover', workers=2, namespaces={'z': 'closed', 'lab': 'open'}) as stack, psycopg2.connect(stack.conninfo('lab')) as session:
        stack.put('lab', doc(NAME, 0), doc(OTHER, 0))
        for _ in range(8):  # each worker has a session
            threads = [Sender(stack, None, doc(('Session', f's{next(numbers)}'), 0)) for _ in range(4)]
            assert all(thread.wait().ok for thread in threads)
        session.cursor().execute('select from stampd.doc where class = %s and id = %s for update', NAME)
        begun, refused = time.monotonic(), []
        sender = Sender(stack, None, doc(NAME, 1))
        while time.monotonic() < begun + 1.5:
            answer = send(stack, None, doc(OTHER, next(numbers)))
            if not answer.ok and time.monotonic() < begun + 2:
                refused.append(answer.text)
        session.rollback()
        assert sender.wait().ok and not refused, refused


# --- poolers ---

class Pooler(threading.Thread):
    """Between stampd and PostgreSQL, under the name of that; ignores the settings of sessions, as PgBouncer with
    ignore_startup_parameters = options does."""

    def __init__(self, stack):
        super().__init__(daemon=True)
        name = stack.path / 'run/postgres' / SOCKET
        self.server = name.with_name('server')
        name.rename(self.server)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(name))
        name.chmod(0o777)
        self.listener.listen(64)
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self.server))
                threading.Thread(target=self.begin, args=(client, server), daemon=True).start()
                threading.Thread(target=self.carry, args=(server, client), daemon=True).start()

    def begin(self, client, server):
        """The first message is the one that has the settings."""
        message = client.recv(65536)
        size, = struct.unpack('!i', message[:4])
        words = message[8:size].split(b'\0')
        pairs = [pair for pair in zip(words[::2], words[1::2]) if pair[0] and pair[0] != b'options']
        start = b''.join(name + b'\0' + value + b'\0' for name, value in pairs) + b'\0'
        server.sendall(struct.pack('!i', len(start) + 8) + message[4:8] + start + message[size:])
        self.carry(client, server)

    @staticmethod
    def carry(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


def test_a_pooler_that_drops_our_settings_is_refused():
    with Stack('failover', workers=1, namespaces={'z': 'closed', 'lab': 'open'}) as stack:
        stack.put('lab', doc(NAME, 0))
        stack.step('stampd', 'stop', 'now')
        pooler = Pooler(stack)
        stack.step('stampd', 'start')
        wait_until(lambda: send(stack, None, doc(NAME, 1)).json()['code'] == 'XDATABASE', what='the refusal')
        reason = 'a pooler between this program and PostgreSQL drops the settings of sessions'
        assert reason in stack.log()
        assert reason in stack.admin('ns', 'list', status=None).text
        pooler.listener.close()

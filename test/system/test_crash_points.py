"""Death at each named step of commit, repair and start (src/base/crash_table.h): a process kills itself there, and then the
segment is repaired, no slot stays in doubt, nobody ever sees an old version, acknowledged writes stay, others are whole or
absent."""
import itertools
import json
import os
import re
import signal
import struct
import threading

import psycopg2
import pytest
import requests

from fastcgi import Connection
from stack import PATIENCE_S, SOURCE, Stack, StackError, children, is_alive, wait_until

pytestmark = pytest.mark.plain

SLOTS = 1024
SHELF_MB = 1
# A worker that dies is replaced at once, however young it was.
STACK = {'workers': 3, 'settings': {'segment_slots': SLOTS, 'shared_cache_mb': SHELF_MB, 'restart_young_ms': 0}}
POINTS = re.findall(r'^POINT\(\w+, "([a-z-]+)",', (SOURCE / 'src/base/crash_table.h').read_text(), re.MULTILINE)

COMMIT = ['turn-taken', 'commit-connected', 'commit-begun', 'commit-mark', 'commit-mark:2', 'commit-marked', 'commit-queued', 'pipeline-sent',
          'commit-answered', 'publish', 'publish:2', 'commit-published', 'shared-cache-locked', 'shared-cache-written', 'commit-kept', 'unmark',
          'unmark:2', 'commit-unmarked', 'commit-ended', 'reply-composed', 'reply-sent']
SESSION = ['session-connected', 'session-locked', 'session-clean', 'session-proven', 'session-opened']
RECOVERY = ['recovery-begun', 'recovery-locked', 'recovery-moved', 'recovery-unmarked', 'recovery-swept', 'recovery-ended']
UNKNOWN = ['unknown-begun', 'unknown-connected', 'unknown-settled']
START = ['segment-numbered', 'segment-made', 'instance-numbered', 'instance-entry', 'master-forked']
MASTER = ['master-reaped', 'master-dirty', 'master-recovery-gone']
CLAIM = ['master-claimed', 'master-released']
ALONE = ['commit-refused', 'session-ended-others', 'relay-listens', 'relay-received']
LINEAGE = ['session-met', 'lineage-written']  # tried in test_failover.py
CLAIMS = ['reservations-collected', 'reservations-taken', 'reservations-committed']  # tried in test_global_values.py
TAKEN = ['task-taken']  # tried in test_workers.py
TASKS = ['task-shown', 'task-claimed', 'task-failed', 'task-put-back', 'task-lost']  # tried in test_task_death.py
MAILS = ['mail-sent']  # tried in test_account_mails.py
BLOBS = ['blob-written', 'blob-sealed', 'blob-registered', 'blob-renamed', 'blob-published']  # tried in test_attachment_http.py
RESEALING = ['blob-former', 'blob-replaced']  # tried in test_sealed_files.py
PARTS = ['part-created', 'part-durable', 'part-advanced', 'part-attached']  # tried in test_uploads.py
MOVER = ['mover-begun', 'mover-written', 'mover-noted', 'mover-leaving', 'mover-dropped', 'mover-brought', 'mover-released', 'mover-removed']  # tried in test_object_places.py
CLEANER = ['cleaner-taken', 'cleaner-removed', 'cleaner-forgotten', 'cleaner-marked', 'cleaner-noted']  # tried in test_attachment_files.py
RECORDS = ['records-noted', 'records-done',  # tried in test/unit/test_records_death.c
           'records-written', 'records-synced',  # tried in test/unit/test_records_disk.c
           'records-part-written',  # tried in test/unit/test_records_parts.c
           'records-key-written', 'records-rekeyed', 'records-rekey-over', 'records-key-replaced']  # tried in test/unit/test_records_rekey.c
DISK = ['disk-log-written', 'disk-log-synced', 'disk-log-filled', 'disk-table-emptied', 'disk-table-filled']  # tried in test/unit/test_disk_table_damage.c

PAIR = [('Crash', 'left'), ('Crash', 'right')]
UNSURE = (502, 503, 504)


def test_every_point_is_in_a_test():
    tried = {point.partition(':')[0] for group in (COMMIT, SESSION, RECOVERY, UNKNOWN, START, MASTER, CLAIM, ALONE, LINEAGE, CLAIMS, TASKS, TAKEN, MAILS, BLOBS, RESEALING, PARTS, CLEANER, MOVER, RECORDS, DISK) for point in group}
    assert tried == set(POINTS)


def test_entries_are_read_where_the_server_has_them(stack):
    segment = Segment(stack.path / 'run/stampd/segment')

    def found():
        pids = {segment.entry(index)[2] for index in range(2 * STACK['workers'] + 8)}
        return len(pids & set(stack.worker_pids())) == STACK['workers']
    wait_until(found, PATIENCE_S, 'an entry of each worker')


class Segment:
    """The shared memory, as board.c lays it out: a head; slots and public answers, each behind a head; namespaces and cells, then processes."""

    HEAD, SLOT, SPACE, CELL, SPACES, ENTRY, ENTRIES = 64, 64, 128, 24, 256, 64, 448
    SLOTS_AT = 2 * HEAD
    SPACES_AT = SLOTS_AT + SLOTS * SLOT + HEAD  # without any public answer
    DIRTY = 2

    def __init__(self, path):
        self.path = path

    def entry(self, index):
        """state, instance, pid, database (0: none)"""
        with self.path.open('rb') as file:
            file.seek(self.SPACES_AT + (self.SPACE + self.CELL) * self.SPACES + index * self.ENTRY)
            return struct.unpack('=IIII', file.read(16))

    def entries_in_doubt(self):
        entries = {index: self.entry(index) for index in range(self.ENTRIES)}
        return [index for index, (state, _, _, database) in entries.items() if state == self.DIRTY or database]

    def marked_slots(self):
        data = self.path.read_bytes()[self.SLOTS_AT:]
        return [slot for slot in range(SLOTS) if any(data[slot * self.SLOT + 8:(slot + 1) * self.SLOT])]

    def is_at_rest(self):
        return not self.entries_in_doubt() and not self.marked_slots()


class Witness:
    """Writes a number into two documents at once, while others read both all the time and never may see less than anybody
    was told, nor two numbers."""

    def __init__(self, stack, readers=2):
        self.stack = stack
        self.segment = Segment(stack.path / 'run/stampd/segment')
        self.number = 0
        self.sure = 0        # highest number that is known to be written
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.reads = 0
        self.violations = []
        self.threads = [threading.Thread(target=self.watch, daemon=True) for _ in range(readers)]

    def __enter__(self):
        self.write_surely()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join(90)
        if kind is None:
            assert not self.violations, self.violations
            assert self.reads > 5

    def told(self, number):
        with self.lock:
            self.sure = max(self.sure, number)

    def read(self, http):
        """The number in both, or None when nobody answers."""
        floor = self.sure
        param = {'docs': [{'c': c, 'id': i} for c, i in PAIR]}
        try:
            response = http.post(f'{self.stack.url}/lab/op/get', json={'param': param}, timeout=60,
                                 verify=self.stack.http.verify)
        except requests.exceptions.RequestException:
            return None
        if response.status_code != 200:
            return None
        numbers = [document['items'][0]['j'] for document in response.json()['out']['docs']]
        assert numbers[0] == numbers[1], f'half of a commit: {numbers}'
        assert numbers[0] >= floor, f'{numbers[0]} is read after {floor} was known'
        self.told(numbers[0])
        return numbers[0]

    def watch(self):
        http = requests.Session()
        http.trust_env = False
        try:
            while not self.ending.is_set():
                if self.read(http) is None:
                    self.ending.wait(0.01)
                with self.lock:
                    self.reads += 1
        except Exception as error:  # for the test: a thread has nobody to raise to
            self.violations.append(error)

    def write(self, http=None):
        """Writes the next number; the answer, or None when the connection broke."""
        self.number += 1
        documents = [{'c': c, 'id': i, 'items': [{'c': 'N', 'j': self.number}]} for c, i in PAIR]
        http = http or self.stack.http
        try:
            response = http.post(f'{self.stack.url}/lab/op/put', json={'param': {'docs': documents}}, timeout=60,
                                 verify=self.stack.http.verify)
        except requests.exceptions.RequestException:
            return None
        if response.status_code == 200:
            self.told(self.number)
        return response

    def write_surely(self):
        wait_until(lambda: (answer := self.write()) is not None and answer.status_code == 200, PATIENCE_S, 'a write')

    def deaths(self, point):
        return self.stack.log().count(f'died at {point.partition(":")[0]},')

    def wait_for_death(self, point, deaths, deed=lambda: None):
        """Does `deed` again and again, until a process has died at the point once more than `deaths` times."""
        def has_died():
            if self.deaths(point) == deaths:
                deed()
            return self.deaths(point) > deaths

        wait_until(has_died, PATIENCE_S, point)

    def settle(self):
        """All is repaired, what is read is a number that was written, and the next write is possible."""
        wait_until(self.segment.is_at_rest, PATIENCE_S, 'an end of doubt')
        seen = wait_until(lambda: self.read(self.stack.http), PATIENCE_S, 'a read')
        assert self.sure <= seen <= self.number
        assert not self.violations, self.violations
        self.write_surely()


def arm(stack, *points):
    stack.set(debug_die_at='\n    '.join(points))


@pytest.fixture(scope='module')
def witness(stack):
    with Witness(stack) as witness:
        yield witness
        arm(stack)


def test_a_worker_dies_in_each_step_of_a_commit(stack, witness):
    armed = {}
    for point in COMMIT:  # one list has a step once; its second slot is for the second list
        armed.setdefault(':' in point, []).append(point)
    for points in armed.values():
        before = {point: witness.deaths(point) for point in points}
        arm(stack, *points)
        for point in points:
            witness.wait_for_death(point, before[point], witness.write)
            witness.settle()


def test_a_worker_dies_when_its_commit_is_refused(stack, witness):
    before = witness.deaths('commit-refused')
    arm(stack, 'commit-refused')
    others = [requests.Session() for _ in range(4)]
    names = itertools.count()
    for http in others:
        http.trust_env = False

    def contend():
        name = f'contended{next(names)}'  # one that nobody has written: writers do not come in turn yet
        threads = [threading.Thread(target=put, args=(http, name)) for http in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def put(http, name):
        try:
            http.post(f'{stack.url}/lab/op/put', timeout=60, verify=stack.http.verify,
                      json={'param': {'docs': [{'c': 'Crash', 'id': name, 'items': [{'c': 'N', 'j': os.urandom(4).hex()}]}]}})
        except requests.exceptions.RequestException:
            pass

    witness.wait_for_death('commit-refused', before, contend)
    witness.settle()


def test_a_process_dies_while_it_opens_a_session(stack, witness):
    before = {point: witness.deaths(point) for point in SESSION}
    arm(stack, *SESSION)
    for point in SESSION:
        witness.wait_for_death(point, before[point], witness.write)
        witness.settle()


def test_an_heir_dies_in_each_step_of_its_repair(stack, witness):
    before = {point: witness.deaths(point) for point in RECOVERY}
    arm(stack, 'commit-marked', *RECOVERY)
    witness.write()  # its worker dies, then recovery process after recovery process
    for point in RECOVERY:
        witness.wait_for_death(point, before[point])
    witness.settle()


class Holder:
    """Holds the row of a document, so that a commit waits in its backend."""

    def __init__(self, stack):
        self.stack = stack
        self.connection = psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd')
        with self.connection.cursor() as cursor:
            cursor.execute("select 1 from doc where class = 'Crash' and id = 'left' for update")

    def waiting(self):
        """Backends of workers that wait for the row."""
        return [pid for pid, in self.stack.psql(None, "select pid from pg_stat_activity where usename = 'stampd'"
                                                " and wait_event_type = 'Lock'")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def write_beside(witness):
    http = requests.Session()
    http.trust_env = False
    thread = threading.Thread(target=witness.write, args=(http,), daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize('point', UNKNOWN)
def test_a_worker_dies_while_it_settles_an_unknown_outcome(stack, witness, point):
    before = witness.deaths(point)
    arm(stack, point)
    witness.write_surely()
    with Holder(stack) as holder:
        writing = write_beside(witness)
        for backend in wait_until(holder.waiting, PATIENCE_S, 'a commit that waits'):
            stack.psql(None, 'select pg_terminate_backend(%s)', (backend,))
        witness.wait_for_death(point, before)
    writing.join(PATIENCE_S)
    witness.settle()


def test_a_commit_outlives_its_worker_and_is_waited_for(stack, witness):
    """The backend waits for a row when its worker dies: the recovery process must end it before the marks go, and may die doing so."""
    point = 'session-ended-others'
    before = witness.deaths(point)
    arm(stack, point)
    witness.write_surely()
    with Holder(stack) as holder:
        writing = write_beside(witness)
        wait_until(holder.waiting, PATIENCE_S, 'a commit that waits')
        index = wait_until(witness.segment.entries_in_doubt, PATIENCE_S, 'an entry that says so')[0]
        assert 1 <= len(witness.segment.marked_slots()) <= len(PAIR) + 1, "of both, and of their class"
        pid = witness.segment.entry(index)[2]
        assert pid in children(stack.pid())
        os.kill(pid, signal.SIGKILL)
        witness.wait_for_death(point, before)
        # The next recovery process ends the backend, though the row is still held.
        wait_until(witness.segment.is_at_rest, PATIENCE_S, 'an end of doubt')
    writing.join(PATIENCE_S)
    witness.settle()


def test_the_herald_dies_between_hearing_and_telling(stack, witness):
    before = {point: witness.deaths(point) for point in ('relay-received', 'relay-listens')}
    stack.put('lab', {'c': 'Crash', 'id': 'psql', 'items': [{'c': 'N', 'j': 0}]})
    arm(stack, 'relay-received', 'relay-listens:2')  # at start it listens to the first namespace
    for number in range(1, 4):
        stack.psql('lab', "select put_item('Crash', 'psql', 'N', '', %s)", (str(number),))
        wait_until(lambda: (answer := stack.request('POST', '/lab/op/get', json={'param': {'docs': [
            {'c': 'Crash', 'id': 'psql'}]}})).status_code == 200
            and answer.json()['out']['docs'][0]['items'][0]['j'] == number, PATIENCE_S, 'what psql has written')
    numbers = itertools.count(4)
    for point, deaths in before.items():  # what was written before anybody listened is told by listening, not heard
        witness.wait_for_death(point, deaths, lambda: stack.psql(
            'lab', "select put_item('Crash', 'psql', 'N', '', %s)", (str(next(numbers)),)))
    witness.settle()


def die_and_begin_again(stack, witness, point, *more, deed=lambda: None):
    """The master dies at the point, then stampd is started again without one."""
    before = witness.deaths(point)
    try:
        arm(stack, point, *more)
    except StackError:  # it died while it started
        assert point in START
    witness.wait_for_death(point, before, deed)
    arm(stack)
    witness.settle()


@pytest.mark.parametrize('point', START)
def test_the_master_dies_while_it_starts(stack, witness, point):
    die_and_begin_again(stack, witness, point)


@pytest.mark.parametrize('point', MASTER)
def test_the_master_dies_while_a_worker_is_repaired(stack, witness, point):
    die_and_begin_again(stack, witness, point, 'commit-answered', deed=witness.write)


@pytest.mark.parametrize('point', CLAIM)
def test_the_master_dies_while_it_claims_what_another_instance_left(stack, witness, point):
    segment = {'segment': stack.path / 'run/stampd/segment', 'segment_slots': SLOTS, 'shared_cache_mb': SHELF_MB}
    before = witness.deaths(point)
    arm(stack, point)
    with Stack('twin', workers=1, beside=stack, settings=segment) as twin:
        twin.put('lab', {'c': 'Crash', 'id': 'twin', 'items': [{'c': 'N', 'j': point}]})
        master = twin.pid()
        gone = [master, *children(master)]
        os.kill(master, signal.SIGKILL)
        witness.wait_for_death(point, before)
        wait_until(lambda: not any(map(is_alive, gone)), PATIENCE_S, 'the end of the twin')
    arm(stack)
    witness.settle()
    assert stack.get('lab', ('Crash', 'twin'))['items'][0]['j'] == point


def ask_worker(stack, worker, name, param):
    """The answer of an operation to a request that nginx would have sent to this worker."""
    with Connection(stack.path / f'run/stampd/worker-{worker}.sock') as connection:
        connection.send(f'/lab/op/{name}', json.dumps({'param': param}).encode(), method='POST', CONTENT_TYPE='application/json',
                        STAMPD_NS='lab', STAMPD_DATABASE='stampd_lab')
        return json.loads(connection.receive().body)['out']


def test_a_reader_that_was_idle_all_along_sees_what_a_repair_brings(stack, witness):
    """The first worker dies with a commit that nobody knows of, then recovery process after recovery process, each with one more of two slots; the
    copies of the last worker were proven before and are looked at when all is over."""
    pair = [('Crash', 'idle-left'), ('Crash', 'idle-right')]
    wanted = {'docs': [{'c': c, 'id': i} for c, i in pair]}

    def change(number):
        return {'docs': [{'c': c, 'id': i, 'items': [{'c': 'N', 'j': number}]} for c, i in pair]}

    def read(worker):
        return [document['items'][0]['j'] for document in ask_worker(stack, worker, 'get', wanted)['docs']]

    witness.settle()
    before = {point: witness.deaths(point) for point in RECOVERY}
    stack.op('lab', 'put', change(1))
    witness.ending.set()  # readers would keep every worker fresh
    for thread in witness.threads:
        thread.join(PATIENCE_S)
    arm(stack, 'commit-answered', *RECOVERY)
    last = STACK['workers'] - 1
    assert read(last) == [1, 1]
    # When the relay begins to listen, all stamps move: what is proven before would be looked at anyhow.
    begun = stack.log().rindex('debug_die_at =')
    wait_until(lambda: {f'stampd_{ns}' for ns in ('z', 'lab')} <= set(re.findall(r'relay listens database=(\w+)', stack.log()[begun:])),
               PATIENCE_S, 'the relay')
    for _ in range(3):
        assert read(last) == [1, 1]
    with pytest.raises((EOFError, ConnectionError)):
        ask_worker(stack, 0, 'put', change(2))
    for point in RECOVERY:
        witness.wait_for_death(point, before[point])
    wait_until(witness.segment.is_at_rest, PATIENCE_S, 'an end of doubt')
    assert read(last) == [2, 2]

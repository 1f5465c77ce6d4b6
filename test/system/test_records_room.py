"""Records on disk that take ten times the memory: by every way of reading, after a restart, and while processes are killed."""
import random
import shutil

import pytest

from journal_world import CURSOR, DATA, DELETE, GET, LISTEN, OVERWRITE, PERSIST, RANGE, SET, Client, Journal, text
from kit import Kit
from stack import PATIENCE_S, wait_until
from test_records import one, run, state
from test_records_disk import Writer, kill_all, serves, start

pytestmark = pytest.mark.plain

MEMORY_MB, MANY, SIZE, OTHERS = 2, 2600, 8000, 60
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'open'}, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': str(kit.build('record.c')), 'restart_young_ms': 0, 'records_mb': MEMORY_MB, 'records_disk_mb': 256,
                         'limit_namespace_records_mb': 0, 'limit_client_requests': 0, 'limit_client_connections': 0}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


class Daemon(Journal):
    """A stamp-journal that runs."""

    def begin(self):
        self.process = self.start()
        serves(self)

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope='module')
def journal(stack):
    journal = Daemon(stack)
    journal.write_keys(('lab', 'write', 'key-of-all'))
    journal.begin()
    yield journal
    journal.end()
    shutil.rmtree(journal.path, ignore_errors=True)


def content(key, version=0, size=SIZE):
    word = f'{key}/{version}/'
    return (word * (size // len(word) + 1))[:size]


def away(stack):
    return stack.metrics()['stampd_records_away']


def fill(stack, journal):
    """Half by HTTP, half by the journal; and records that are in memory alone."""
    for first in range(0, MANY, 20):
        if first % 40:
            link = Client(journal.socket)
            for number in range(first, first + 20):
                assert link.error(SET, f'key{number:05}', text(content(f'key{number:05}')), PERSIST) == ''
        else:
            commands = [{'do': 'set', 'key': f'key{number:05}', 'value': content(f'key{number:05}'), 'persist': True} for number in range(first, first + 20)]
            assert [result['state'] for result in run(stack, *commands)] == ['OK'] * 20
    for number in range(OTHERS):
        assert state(stack, 'set', f'other{number}', value=content(f'other{number}', size=500)) == 'OK'


def check_all(stack, journal, has_others):
    """By a `get` of one, of many, from the journal, and from a module."""
    seen, after = {}, {}
    while after is not None:
        page = run(stack, {'do': 'get', 'prefix': 'key', 'limit': 20, **after})[0]
        seen.update((record['key'], record['value']) for record in page['records'])
        after = {'after': page['after']} if 'after' in page else None
    assert seen == {f'key{number:05}': content(f'key{number:05}') for number in range(MANY)}
    link = Client(journal.socket)
    for number in range(0, MANY, 7):
        key = f'key{number:05}'
        assert link.value(key) == [content(key).encode()], key
        if number % 3 == 0:
            assert one(stack, 'get', key)['value'] == content(key)
        if number % 5 == 0:
            assert stack.op('lab', 'Record', {'do': 'get', 'key': key})['out']['text'] == content(key)
    for number in range(OTHERS):
        found = one(stack, 'get', f'other{number}')
        assert found['value'] == content(f'other{number}', size=500) if has_others else found['state'] == 'NOT_FOUND'


def test_ten_times_the_memory(stack, journal):
    assert MANY * SIZE > 9.9 * MEMORY_MB * 2**20
    fill(stack, journal)
    assert away(stack) > MANY * 0.8 and stack.metrics()['stampd_records_away_bytes'] > 0.8 * MANY * SIZE
    check_all(stack, journal, True)


def test_every_command_reaches_what_is_on_disk_alone(stack, journal):
    """The content of the first record is given up again before each command."""
    key, link = 'key00000', Client(journal.socket)

    def push():
        assert state(stack, 'set', key, value=content(key, 1), overwrite=True, persist=True, ttl_ms=3600000) == 'OK'
        for number in range(1, 801):
            assert link.value(f'key{number:05}') == [content(f'key{number:05}').encode()]

    push()
    assert state(stack, 'truncate', key, size=100) == 'OK' and one(stack, 'get', key)['value'] == content(key, 1)[:100]
    push()
    assert state(stack, 'rename', key, to='renamed') == 'OK' and one(stack, 'get', 'renamed')['value'] == content(key, 1)
    assert state(stack, 'delete', 'renamed', immediate=True) == 'OK'
    push()
    assert state(stack, 'lock', key, owner='me', lock_ms=60000) == 'OK' and state(stack, 'unlock', key, owner='me') == 'OK'
    push()
    assert state(stack, 'link', key, to='second') == 'OK' and one(stack, 'get', 'second')['value'] == content(key, 1)
    push()
    assert state(stack, 'unlink', 'second') == 'OK' and one(stack, 'get', key)['value'] == content(key, 1)
    push()
    assert one(stack, 'get', key, work_ms=1)['value'] == content(key, 1)
    push()
    assert one(stack, 'get', key, probe=True)['size'] == SIZE
    found = link.ask(GET, key, flags=DATA | LISTEN)
    assert found['records'][0][2] == content(key, 1).encode()
    assert state(stack, 'set', key, value=content(key), overwrite=True, persist=True) == 'OK'
    assert link.answer()['notice']


def test_large_values_over_the_journal(stack, journal):
    """Each takes more than an eighth of the memory, so it is read each time; two and a half fill a page."""
    link = Client(journal.socket)
    values = {f'large{number}': content(f'large{number}', size=400_000).encode() for number in range(5)}
    for key, value in values.items():
        assert link.error(SET, key, text(value.decode()), PERSIST) == ''
    for _ in range(2):
        assert {key: link.value(key) for key in values} == {key: [value] for key, value in values.items()}
        found, pages, answer = {}, 1, link.ask(GET, 'large0', other='large9', flags=RANGE | DATA)
        while answer['cursor']:
            found.update((key, value) for key, _, value in answer['records'])
            pages, answer = pages + 1, link.ask(GET, answer['cursor'], flags=CURSOR | DATA)
        found.update((key, value) for key, _, value in answer['records'])
        assert found == values and pages <= 3
    for key in values:
        assert link.error(DELETE, key, flags=OVERWRITE) == ''


def test_a_restart_with_more_on_disk_than_memory(stack, journal):
    kill_all(stack, journal.process)
    start(stack)
    journal.begin()
    check_all(stack, journal, False)
    for number in range(OTHERS):
        assert state(stack, 'set', f'other{number}', value=content(f'other{number}', size=500)) == 'OK'


class Filler(Writer):
    """Sets its keys to large values that show their number."""

    def change(self, key, value):
        if self.number % 2:
            return Client(self.journal.socket).error(SET, key, text(content(key, value)), PERSIST | OVERWRITE) == ''
        return state(self.stack, 'set', key, value=content(key, value), overwrite=True, persist=True) == 'OK'


def version_of(key, value):
    number = int(value.split('/')[1])
    assert value == content(key, number)
    return number


def test_processes_are_killed_meanwhile(stack, journal):
    """Workers and the journal, one by one: the memory stays, with what is not on disk."""
    writers = [Filler(stack, journal, number) for number in range(4)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(12):
            counts = [sum(writer.acknowledged.values()) for writer in writers]
            wait_until(lambda: all(sum(writer.acknowledged.values()) > count for writer, count in zip(writers, counts)), what='changes')
            stack.kill_worker()
            if random.randrange(3) == 0:
                journal.end()
                journal.begin()
            for number in random.sample(range(MANY), 20):
                wait_until(lambda: stack.ping('lab').status_code == 200, what='stampd')
                value = Client(journal.socket).value(f'key{number:05}')
                assert value == [content(f'key{number:05}').encode()]
    finally:
        for writer in writers:
            writer.is_over = True
        for writer in writers:
            writer.join(PATIENCE_S)
    wait_until(lambda: stack.ping('lab').status_code == 200, what='stampd')
    check_all(stack, journal, True)
    for again in (False, True):
        if again:
            kill_all(stack, journal.process)
            start(stack)
            journal.begin()
        for writer in writers:
            assert not writer.is_alive()
            for key, least in writer.acknowledged.items():
                assert least <= version_of(key, one(stack, 'get', key)['value']) <= writer.begun[key], key

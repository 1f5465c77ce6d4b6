"""Records that are kept on disk: all of stampd and stamp-journal is killed, and started again."""
import os
import random
import select
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from journal_world import DATA, GET, OVERWRITE, PERSIST, SET, Client, Journal, integer, message, text
from kit import Kit
from stack import PATIENCE_S, children, is_alive, wait_until
from test_records import one, run, state

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'open'}, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': str(kit.build('record.c')), 'restart_young_ms': 0, 'records_mb': 4, 'limit_client_requests': 0,
                         'limit_client_connections': 0}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def journal(stack):
    journal = Journal(stack)
    yield journal
    shutil.rmtree(journal.path, ignore_errors=True)


def serves(journal, ns='lab', key='key-of-all'):
    """It knows the states of the namespaces."""
    wait_until(lambda: Client(journal.socket, key, ns).error(GET, 'absent') == 'NOT_FOUND', what='stamp-journal')


def process_group(stack):
    """stampd and all its children."""
    pid = stack.pid()
    return [pid, *children(pid)]


def kill_all(stack, journal_process=None):
    """Nobody has the memory any more: it is lost."""
    os.kill(stack.pid(), signal.SIGSTOP)  # it would start others, and wait for those that end: their numbers stay theirs
    pids = process_group(stack)
    for pid in pids[1:] + pids[:1]:
        os.kill(pid, signal.SIGKILL)
    if journal_process:
        pids += children(journal_process.pid)
        journal_process.kill()
        journal_process.wait()
    wait_until(lambda: not any(map(is_alive, pids)), what='the end of stampd')


def start(stack):
    stack.step('stampd', 'start')
    wait_until(lambda: stack.ping('lab').status_code == 200, what='stampd')


def test_what_is_persisted_is_there_after_a_restart(stack):
    assert state(stack, 'set', 'kept', value={'buffer': 'AAEC'}, persist=True) == 'OK'
    assert state(stack, 'set', 'memory', value=1) == 'OK'
    assert state(stack, 'add', 'sum', by=5, create=True, persist=True) == 'OK'
    assert one(stack, 'add', 'sum', by=2)['value'] == 7
    assert state(stack, 'set', 'deleted', value=1, persist=True) == 'OK' and state(stack, 'delete', 'deleted') == 'OK'
    assert state(stack, 'set', 'released', value=1, persist=True) == 'OK' and state(stack, 'set', 'released', value=2, overwrite=True) == 'OK'
    assert state(stack, 'lock', 'mutex', owner='me', lock_ms=600000, create=True, persist=True) == 'OK'
    assert state(stack, 'set', 'of demo', ns='demo', value='x' * 1000, persist=True) == 'OK'
    assert run(stack, {'do': 'get', 'prefix': 'kep'})[0]['records'][0]['persist'] is True
    for end in (kill_all, lambda stack: stack.step('stampd', 'stop', 'now')):
        end(stack)
        start(stack)
        assert one(stack, 'get', 'kept')['value'] == {'buffer': 'AAEC'}
        assert (one(stack, 'get', 'sum')['value'], one(stack, 'get', 'sum')['persist']) == (7, True)
        assert [state(stack, 'get', key) for key in ('memory', 'deleted', 'released')] == ['NOT_FOUND'] * 3
        assert state(stack, 'lock', 'mutex', owner='you', lock_ms=1000) == 'LOCKED'
        assert one(stack, 'get', 'of demo', ns='demo')['size'] == 1000
        assert 'persist' not in one(stack, 'get', 'kept', ns='demo')


def test_modules_persist_too(stack):
    def call(do, key, **more):
        return stack.op('lab', 'Record', {'do': do, 'key': key, **more})['out']
    assert call('set', 'of module', text='hey', persist=True)['state'] == 'OK'
    assert call('add', 'count', integer=3, persist=True)['state'] == 'OK' and call('add', 'count', integer=4)['integer'] == 7
    kill_all(stack)
    start(stack)
    assert call('get', 'of module')['text'] == 'hey' and call('get', 'count')['integer'] == 7


def test_the_journal_persists_and_brings_back(stack, journal):
    process = journal.start()
    try:
        serves(journal)
        assert Client(journal.socket).ask(SET, 'by journal', text('one'), PERSIST)['error'] == ''
        kill_all(stack, process)
        process = journal.start()  # before stampd: it brings them back
        start(stack)
        serves(journal)
        assert one(stack, 'get', 'by journal')['value'] == 'one'
        key = journal.path / 'key'
        key.write_text('key-of-all\n')
        key.chmod(0o600)
        stack.stampctl('journal', 'set', 'by journal', 'two', '--overwrite', '--persist', '--socket', journal.socket, '--ns', 'lab', '--key-file', key)
    finally:
        process.kill()
        process.wait()
    kill_all(stack)
    start(stack)
    assert one(stack, 'get', 'by journal')['value'] == 'two'


@pytest.mark.skipif(os.geteuid() != 0, reason='looks into processes that let nobody but root do so')
def test_the_journal_serves_while_its_child_stands_still(stack, journal):
    """The process that waits for the disk is stopped: what waits for it is not answered, everything else is."""
    journal.write_keys(('lab', 'write', 'key-of-all'))
    process = journal.start()
    try:
        serves(journal)
        first, second, third = (Client(journal.socket) for _ in range(3))
        assert first.error(SET, 'kept', text('one'), PERSIST | OVERWRITE) == ''
        child, = children(process.pid)
        assert Path(f'/proc/{child}/comm').read_text() == 'journal-saver\n'
        links = [os.readlink(f'/proc/{child}/fd/{name}') for name in os.listdir(f'/proc/{child}/fd') if int(name) > 2]
        assert len([link for link in links if link.startswith('socket:')]) == 1, links  # to its parent: no connection stays open there
        os.kill(child, signal.SIGSTOP)
        first.socket.sendall(message(SET, 'kept', text('two'), flags=PERSIST | OVERWRITE) + message(GET, 'kept', flags=DATA, identifier=2))
        assert second.error(SET, 'in memory', text('x'), flags=OVERWRITE) == '' and second.value('in memory') == [b'x']
        wait_until(lambda: second.value('kept') == [b'two'], what='the change in memory')
        third.socket.sendall(message(SET, 'of third', text('three'), flags=PERSIST | OVERWRITE))
        wait_until(lambda: second.value('of third') == [b'three'], what='the change in memory')
        assert not select.select([first.socket, third.socket], [], [], 0)[0]
        os.kill(child, signal.SIGCONT)
        assert [first.answer()['error'], third.answer()['error']] == ['', ''] and first.answer()['id'] == 2
        process.terminate()
        assert process.wait(PATIENCE_S) == 0 and not is_alive(child)
    finally:
        process.kill()
        process.wait()


def test_a_namespace_that_is_dropped_has_no_records(stack):
    create = ('ns', 'create', 'short', '--access', 'open', '--nginx-pid', stack.path / 'nginx.pid')
    (stack.path / 'nginx.pid').write_text(f'{stack.pid("nginx")}\n')
    stack.admin(*create)
    wait_until(lambda: stack.ping('short').status_code == 200, what='the namespace')
    assert state(stack, 'set', 'kept', ns='short', value='of-the-former-7f3b', persist=True) == 'OK'
    assert state(stack, 'set', 'in memory', ns='short', value=1) == 'OK'
    assert state(stack, 'set', 'other', value=1, overwrite=True, persist=True) == 'OK'
    assert stack.metrics().get('stampd_records{ns="short"}') == 2
    stack.admin('ns', 'drop', 'short', '--yes')
    wait_until(lambda: 'stampd_records{ns="short"}' not in stack.metrics(), what='the removal')
    stack.admin(*create)
    wait_until(lambda: stack.ping('short').status_code == 200, what='the namespace')
    for again in (False, True):
        if again:
            kill_all(stack)
            start(stack)
        assert [state(stack, 'get', key, ns='short') for key in ('kept', 'in memory')] == ['NOT_FOUND'] * 2
        assert state(stack, 'get', 'other') == 'OK'


class Writer(threading.Thread):
    """Sets its own keys to numbers that grow, by HTTP or by the journal; knows what was acknowledged, and what was begun."""

    def __init__(self, stack, journal, number, ns='lab', key='key-of-all'):
        super().__init__(daemon=True)
        self.stack, self.journal, self.number, self.ns, self.journal_key = stack, journal, number, ns, key
        self.acknowledged, self.begun, self.is_over = {}, {}, False

    def change(self, key, value):
        if self.number % 2:
            return Client(self.journal.socket, self.journal_key, self.ns).ask(SET, key, integer(value), PERSIST | OVERWRITE)['error'] == ''
        return state(self.stack, 'set', key, ns=self.ns, value=value, overwrite=True, persist=True) == 'OK'

    def run(self):
        while not self.is_over:
            key = f'{self.number}.{random.randrange(4)}'
            value = self.begun[key] = self.begun.get(key, 0) + 1
            try:
                if self.change(key, value):
                    self.acknowledged[key] = value
            except Exception:  # a server that is killed: unknown
                time.sleep(0.01)


def check_acknowledged(stack, journal, process, **of_writers):
    """Six writers while all is killed, again and again; `process`: of the journal."""
    writers = [Writer(stack, journal, number, **of_writers) for number in range(6)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(6):
            counts = [sum(writer.acknowledged.values()) for writer in writers]
            wait_until(lambda: all(sum(writer.acknowledged.values()) > count + 2 for writer, count in zip(writers, counts)),
                       what='acknowledged changes')
            kill_all(stack, process)
            start(stack)
            process = journal.start()
    finally:
        for writer in writers:
            writer.is_over = True
        for writer in writers:
            writer.join(PATIENCE_S)
        process.kill()
        process.wait()
    kill_all(stack)
    start(stack)
    for writer in writers:
        assert not writer.is_alive()
        for key, least in writer.acknowledged.items():
            assert least <= one(stack, 'get', key, ns=writer.ns)['value'] <= writer.begun[key], key


def test_what_was_acknowledged_is_never_lost(stack, journal):
    journal.write_keys(('lab', 'write', 'key-of-all'))
    process = journal.start()
    serves(journal)
    check_acknowledged(stack, journal, process)


@pytest.mark.parametrize('name, size', [('data.mdb', 8192), ('log', 64)])
def test_damage_is_refused_at_the_start(stack, name, size):
    assert state(stack, 'set', 'kept', value=1, overwrite=True, persist=True) == 'OK'
    stack.step('stampd', 'stop', 'now')
    path = stack.path / 'records' / name
    sound = path.read_bytes()
    with open(path, 'r+b') as file:
        for place in range(0, size, 64):
            file.seek(place)
            file.write(b'damage')
    with pytest.raises(Exception, match='stampd'):
        stack.step('stampd', 'start')
    assert f'cannot start: {path.parent}: ' in stack.log()
    with open(path, 'r+b') as file:
        file.write(sound)
    start(stack)
    assert one(stack, 'get', 'kept')['value'] == 1


def test_damage_in_the_log_costs_one_change(stack):
    """The log of stampd says so; what was changed before and after it is there."""
    for key in ('before', 'damaged', 'after'):
        assert state(stack, 'set', key, value=f'{key}-7f3c', persist=True) == 'OK'
    kill_all(stack)
    path = stack.path / 'records/log'
    text = path.read_bytes()
    place = text.rindex(b'damaged-7f3c')
    with open(path, 'r+b') as file:
        file.seek(place)
        file.write(b'D')
    start(stack)
    assert f'{path.parent}: the log is damaged: changes that are lost: 1' in stack.log()
    assert [state(stack, 'get', key) for key in ('before', 'damaged', 'after')] == ['OK', 'NOT_FOUND', 'OK']


def test_without_a_folder_it_is_said(stack):
    stack.set(records_directory='')
    assert state(stack, 'set', 'nowhere', value=1, persist=True) == 'NO_DISK'
    assert state(stack, 'get', 'nowhere') == 'NOT_FOUND'

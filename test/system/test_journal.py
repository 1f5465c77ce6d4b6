"""stamp-journal: the journal protocol on a Unix socket, byte for byte, with keys, pipelining, hostile bytes and kills."""
import concurrent.futures
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from journal_world import (ADD, ALL, AUTH, BOOLEAN, BUFFER, CURSOR, Client, DATA, DELETE, GET, GONE, LISTEN, LOCK, NOT, OFF, ON, OVERWRITE, PATTERN,
                           PERSIST, PING, RANGE, READONLY, RENAME, SET, SOME, STACK, STRING, TRUNCATE, UNLOCK, UPDATE, VOID, WORKED_ON, back_on, client,
                           integer, journal, message, set_conf, text, ONLY_PRESENT, STAMP)
from stack import BUILD, PATIENCE_S, wait_until


def test_the_bytes_are_those_of_the_page(journal, client):
    client.socket.sendall(bytes.fromhex('464a0001000200070022' + '0000000000000000' + '01' + '6b' + '03' + '02' + '6869'))  # SET k "hi", sizes of 8 bits
    assert client.take(8) == b'JR\0\1\0\7\0\7'
    client.take(8)
    assert client.take(2) == b'\0\0'
    client.socket.sendall(bytes.fromhex('464a0001000300080400' + '0000000000000000' + '01' + '6b'))  # GET k
    assert client.take(8) == b'JR\0\1\0\10\4\7'
    client.take(8)
    assert client.take(2 + 2 + 1 + 4 + 1 + 2) == b'\0\0' + b'\0\1k' + b'\0\0\0\3' + b'\2hi'


def test_the_commands(client):
    assert client.error(SET, 'a', text('one')) == ''
    assert client.error(SET, 'a', text('two')) == 'NOT_FREE'
    assert client.error(SET, 'a', text('two'), OVERWRITE) == '' and client.value('a') == [b'two']
    assert client.ask(GET, 'a')['records'] == [('a', STRING, b'')]
    assert client.error(ADD, 'n', integer(5)) == 'NOT_FOUND'
    assert client.ask(ADD, 'n', integer(5), OVERWRITE)['records'] == [('n', *integer(5))]
    assert client.ask(ADD, 'n', integer(-7))['records'] == [('n', *integer(-2))]
    assert client.error(SET, 'b', (BOOLEAN, b'\1')) == '' and client.ask(NOT, 'b')['records'] == [('b', BOOLEAN, b'\0')]
    assert client.error(TRUNCATE, 'a', integer(1)) == '' and client.value('a') == [b't']
    assert client.error(RENAME, 'a', other='c') == '' and client.value('c') == [b't'] and client.error(GET, 'a') == 'NOT_FOUND'
    assert client.error(DELETE, 'c') == '' and client.error(DELETE, 'c') == 'NOT_FOUND'
    assert client.error(PING) == ''
    now = int(time.time() * 1e6)
    assert client.error(SET, 't', text('new'), timestamp=now) == ''
    assert client.error(SET, 't', text('old'), OVERWRITE, timestamp=now - 1) == 'OLDER'
    assert client.error(SET, 't', text('far'), OVERWRITE, timestamp=now + 10**9) == 'TIMESTAMP'


def test_an_end_and_a_mark(client):
    assert client.error(SET, 'short', text('x'), timeout=60000) == ''
    assert 0 < client.ask(GET, 'short')['timeout'] <= 60000
    assert client.error(SET, 'short', text('x'), OVERWRITE, timeout=1) == ''
    wait_until(lambda: client.error(GET, 'short') == 'NOT_FOUND', what='the end')
    assert client.error(SET, 'job', text('x')) == ''
    assert client.ask(GET, 'job', flags=DATA | WORKED_ON, timeout=60000)['worked']
    assert client.error(GET, 'job', flags=DATA | WORKED_ON) == 'WORKED_ON'


def test_a_lock_is_its_connections(journal, client):
    other = Client(journal.socket)
    assert client.error(LOCK, 'door', flags=OVERWRITE, timeout=60000) == ''
    assert other.error(LOCK, 'door', flags=OVERWRITE, timeout=60000) == 'LOCKED'
    assert other.error(SET, 'door', text('x'), OVERWRITE) == 'LOCKED'
    assert other.ask(GET, 'door')['locked']
    assert client.error(UNLOCK, 'door') == '' and other.error(GET, 'door') == 'NOT_FOUND'


# --- listeners ---

def listen(client, key, identifier=1):
    """The record's value, or None; from now on changes are reported."""
    client.socket.sendall(message(GET, key, flags=DATA | LISTEN, identifier=identifier))
    answer = client.answer()
    assert answer['id'] == identifier and not answer['notice'] and answer['error'] in ('', 'NOT_FOUND')
    return answer['records'][0][2] if answer['records'] else None


def notice(client):
    answer = client.answer()
    assert answer['notice'] and answer['records'][0][1:] == (VOID, b'')
    return answer['id'], answer['records'][0][0]


def is_quiet(client):
    """A tick later, no message has come."""
    time.sleep(0.03)
    client.socket.sendall(message(PING, identifier=999))
    return client.answer()['id'] == 999


def test_a_listener_learns_of_every_change_once(journal, client):
    listener = Client(journal.socket)
    changes = [(SET, dict(value=text('one'))), (SET, dict(value=text('two'), flags=OVERWRITE)), (TRUNCATE, dict(value=integer(1))), (DELETE, {}),
               (SET, dict(value=text('three'))), (DELETE, dict(flags=OVERWRITE)), (ADD, dict(value=integer(1), flags=OVERWRITE)), (ADD, dict(value=integer(2))),
               (RENAME, dict(other='listened/b')), (LOCK, dict(timeout=60000, flags=OVERWRITE)), (UNLOCK, {}), (SET, dict(value=(BOOLEAN, b'\0'))), (NOT, {})]
    for number, (function, more) in enumerate(changes):
        listen(listener, 'listened/a', number)
        assert is_quiet(listener)
        assert client.error(function, 'listened/a', **more) == '', function
        assert notice(listener) == (number, b'listened/a'.decode())
        assert client.error(SET, 'listened/c', text('x'), OVERWRITE) == '' and is_quiet(listener)
    assert listen(listener, 'listened/a') == b'\1' and listen(listener, 'listened/d') is None
    assert client.error(LOCK, 'listened/a', timeout=1) == client.error(GET, 'listened/a', timeout=50) == '' and is_quiet(listener)
    assert client.error(RENAME, 'listened/b', other='listened/d') == '' and notice(listener)[1] == 'listened/d'
    listener.socket.sendall(message(SET, 'listened/e', text('own'), LISTEN))  # its own change is none
    assert listener.answer()['error'] == '' and is_quiet(listener)
    journal.stack.op('lab', 'record', {'commands': [{'do': 'set', 'key': 'listened/e', 'value': 1, 'overwrite': True}]}, admin=True)
    assert notice(listener) == (1, 'listened/e')
    assert client.error(SET, 'listened/f', text('ends'), timeout=300) == ''
    if listen(listener, 'listened/f') is not None:  # None: it took longer to come here
        assert notice(listener)[1] == 'listened/f'
    assert listen(listener, 'listened/f') is None


def test_listeners_are_bounded_and_closed_namespaces_silent(journal, back_on, client):
    listener = Client(journal.socket)
    for number in range(256):
        assert listen(listener, f'listened/{number}') is None
    assert listener.error(GET, 'listened/one too many', flags=LISTEN) == 'LISTENS' and listen(listener, 'listened/7') is None
    set_conf(back_on, state=OFF)
    back_on.op('lab', 'record', {'commands': [{'do': 'set', 'key': 'listened/7', 'value': 1}]}, admin=True)
    assert is_quiet(listener)
    set_conf(back_on, state=ON)
    assert notice(listener)[1] == 'listened/7' and is_quiet(listener)
    assert listener.error(GET, 'listened/one too many', flags=LISTEN) == 'NOT_FOUND'


def test_a_cache_that_listens_is_right_in_the_end(journal):
    """Writers are killed at any instruction: what the cache has is read again after each message, and after none it is right."""
    listener, reader, keys, cache, stale = Client(journal.socket), Client(journal.socket), [f'cached/{number}' for number in range(5)], {}, []

    def read_again(key):
        listener.socket.sendall(message(GET, key, flags=DATA | LISTEN, identifier=500))
        while (answer := listener.answer())['notice']:
            stale.append(answer['records'][0][0])
        cache[key] = [record[2] for record in answer['records']]

    def settle():
        while stale:
            read_again(stale.pop())
        time.sleep(0.03)
        for _ in range(2):  # a daemon that was busy answers the first one before it looks for changes, the second one after that
            listener.socket.sendall(message(PING, identifier=999))
            while (answer := listener.answer())['notice']:
                stale.append(answer['records'][0][0])
        return not stale

    for key in keys:
        read_again(key)
    for _ in range(3):
        process, victim = journal.begin_second()
        victim.socket.sendall(b''.join(message(ADD, keys[number % 5], integer(1), OVERWRITE) for number in range(3000)))
        for number in range(100):
            victim.answer()
            if number % 20 == 0:
                settle()
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
        victim.socket.close()
        wait_until(settle)
        assert cache == {key: reader.value(key) for key in keys} and all(cache.values())


def test_many(client):
    client.socket.sendall(b''.join(message(SET, f'many/{number:03}', text(str(number)), OVERWRITE, identifier=number) for number in range(300)))
    assert [client.answer()['id'] for _ in range(300)] == list(range(300))
    for first, wanted in ((dict(key='many/100', other='many/249', flags=RANGE | DATA), range(100, 250)), (dict(key='^many/..5$', flags=PATTERN | DATA), range(5, 300, 10))):
        page, found = client.ask(GET, count=40, **first), []
        while True:
            found += [int(record[2]) for record in page['records']]
            if page['cursor'] is None:
                break
            page = client.ask(GET, page['cursor'], flags=CURSOR | DATA, count=40)
        assert found == list(wanted)
    for wrong in ('', b'\7\0\0\0\0', b'\1\0', b'\1\0\0\0\0x'):
        assert client.error(GET, wrong, flags=CURSOR) == 'QUERY'
    assert client.error(GET, '(', flags=PATTERN) == 'QUERY'


def test_rights(journal):
    stranger = Client(journal.socket, key=None)
    assert stranger.error(GET, 'a') == 'AUTH'
    assert stranger.error(AUTH, 'lab', text('wrong')) == 'KEY'
    with pytest.raises((EOFError, ConnectionError)):
        stranger.error(PING)
    with pytest.raises(AssertionError):
        Client(journal.socket, SOME, 'demo')
    some, everything = Client(journal.socket, SOME), Client(journal.socket)
    assert everything.error(SET, 'open.1', text('x'), OVERWRITE) == ''
    assert some.value('open.1') == [b'x']
    for function, more in ((SET, dict(value=text('y'), flags=OVERWRITE)), (DELETE, {}), (GET, dict(timeout=50)), (LOCK, dict(timeout=50)), (RENAME, dict(other='mine.x'))):
        assert some.error(function, 'open.1', **more) == 'RIGHT'
    assert some.error(SET, 'mine.1', text('x'), OVERWRITE) == '' and some.error(RENAME, 'mine.1', other='open.2') == 'RIGHT'
    assert some.error(GET, 'a') == 'RIGHT' and some.error(GET, 'a', flags=RANGE, other='z') == 'RIGHT'
    assert Client(journal.socket, ALL, 'demo').error(GET, 'open.1') == 'NOT_FOUND'


def test_only_what_is_there_and_has_the_stamp(journal, client):
    assert client.error(SET, 'swap', text('x'), ONLY_PRESENT) == 'NOT_FOUND'
    first = client.ask(SET, 'swap', text('one'), STAMP)
    assert first['error'] == '' and first['stamp'] == client.ask(GET, 'swap', flags=STAMP)['stamp'] != 0
    assert client.ask(GET, 'swap')['stamp'] is None  # unless it is requested
    second = client.ask(SET, 'swap', text('two'), ONLY_PRESENT | STAMP)
    assert second['error'] == '' and second['stamp'] != first['stamp']
    refused = client.ask(SET, 'swap', text('three'), DATA | STAMP, stamp=first['stamp'])
    assert (refused['error'], refused['records'], refused['stamp']) == ('OTHER_STAMP', [('swap', STRING, b'two')], second['stamp'])
    refused = client.ask(SET, 'swap', text('three'), DATA | STAMP)
    assert (refused['error'], refused['records'], refused['stamp']) == ('NOT_FREE', [('swap', STRING, b'two')], second['stamp'])
    assert client.ask(SET, 'swap', text('three'))['records'] == []  # nor the record
    for function, more in ((DELETE, {}), (ADD, dict(value=integer(1))), (TRUNCATE, dict(value=integer(1))), (RENAME, dict(other='other')), (NOT, {})):
        assert client.error(function, 'swap', stamp=first['stamp'], **more) == 'OTHER_STAMP'
    assert client.error(SET, 'swap', text('three'), stamp=second['stamp']) == ''
    assert client.error(DELETE, 'swap', stamp=second['stamp']) == 'OTHER_STAMP' and client.value('swap') == [b'three']
    assert client.error(DELETE, 'swap', stamp=client.ask(GET, 'swap', flags=STAMP)['stamp']) == ''
    assert client.error(SET, 'swap', text('four'), stamp=second['stamp']) == 'NOT_FOUND'
    for function, more in ((GET, dict(stamp=1)), (LOCK, dict(stamp=1, timeout=5)), (SET, dict(value=text('x'), stamp=0)), (DELETE, dict(flags=ONLY_PRESENT)),
                           (GET, dict(flags=STAMP | RANGE, other='z'))):
        assert client.error(function, 'swap', **more) == 'UNSUPPORTED'
    end = client.ask(SET, 'swap', text('x'), timeout=30000) and client.ask(GET, 'swap', timeout=60000, flags=UPDATE)
    assert 30000 < end['timeout'] <= 60000 and end['records'][0][2] == b''  # without data, too


@pytest.mark.plain
def test_what_is_not_offered_is_refused(client):
    assert client.error(DELETE, 'p', flags=PERSIST) == 'UNSUPPORTED' and client.error(ADD, 'p', integer(1), LISTEN) == 'UNSUPPORTED'
    assert client.error(GET, 'p', flags=LISTEN | RANGE, other='q') == 'UNSUPPORTED'
    assert client.error(99, 'p') == 'FUNCTION' and client.error(SET, 'p') == 'VALUE' and client.error(SET, 'p', (9, b'')) == 'VALUE'
    assert client.error(SET, 'p', (STRING, b'\xff')) == 'VALUE' and client.error(SET, '', text('x')) == 'KEY_FORM' and client.error(LOCK, 'p') == 'TIMEOUT'
    assert client.error(GET, 'p') == 'NOT_FOUND'


@pytest.mark.plain
@pytest.mark.parametrize('wrong', [b'GET / HTTP/1.1\r\n\r\n', b'F', b'FJ\0\2', message(PING, flags=1 << 15), b'FJ\0\1' + b'\xff' * 40, message(SET, 'k', text(''))[:-5] + b'\xff' * 4])
def test_malformed_bytes_end_the_connection_and_nothing_else(journal, client, wrong):
    other = Client(journal.socket)
    other.socket.sendall(message(PING, identifier=9) + wrong)
    assert other.answer()['id'] == 9
    other.socket.shutdown(socket.SHUT_WR)
    with pytest.raises((EOFError, ConnectionError)):
        other.take(1)
    assert client.error(PING) == ''


def test_whoever_does_not_read_is_not_read(journal, client):
    assert client.error(SET, 'large', (BUFFER, bytes(100000)), OVERWRITE) == ''
    slow = Client(journal.socket)
    slow.socket.settimeout(1)
    with pytest.raises(TimeoutError):
        slow.socket.sendall(message(GET, 'large', flags=DATA) * 100000)
    assert client.error(PING) == ''
    resident = int(Path(f'/proc/{journal.process.pid}/statm').read_text().split()[1]) * os.sysconf('SC_PAGESIZE')
    assert resident < 200 << 20


def test_many_clients_and_a_kill(journal):
    """Two daemons on one memory: one is killed again and again; nothing that was acknowledged is lost."""
    keeper = Client(journal.socket)
    assert keeper.error(SET, 'sum', integer(0), OVERWRITE) == ''
    acknowledged = sent = 0
    for _ in range(5):
        process, victim = journal.begin_second()
        victim.socket.sendall(message(ADD, 'sum', integer(1)) * 3000)
        sent += 3000
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: (time.sleep(0.005), process.send_signal(signal.SIGKILL)))
            try:
                for _ in range(3000):
                    assert victim.answer()['error'] == ''
                    acknowledged += 1
            except (EOFError, ConnectionError):
                pass
        process.wait(PATIENCE_S)
    assert acknowledged <= struct.unpack('>q', keeper.value('sum')[0])[0] <= sent


# --- the state of the namespace ---

READS, WRITES = [(GET, 'kept', {'flags': DATA}), (GET, 'k', {'flags': RANGE, 'other': 'l'})], [
    (SET, 'new', {'value': text('x'), 'flags': OVERWRITE}), (DELETE, 'kept', {}), (ADD, 'sum', {'value': integer(1), 'flags': OVERWRITE}),
    (GET, 'kept', {'timeout': 50}), (GET, 'kept', {'timeout': 50, 'flags': UPDATE}), (LOCK, 'kept', {'timeout': 50}), (UNLOCK, 'kept', {}),
    (RENAME, 'kept', {'other': 'moved'}), (NOT, 'kept', {}), (TRUNCATE, 'kept', {'value': integer(0)})]


@pytest.mark.parametrize('own, z, code, message', [
    (ON, ON, '', ''), (READONLY, ON, 'OREADONLY', 'of its own'), (OFF, ON, 'OOFF', 'of its own'), (GONE, ON, 'OGONE', 'of its own'),
    (ON, READONLY, 'OREADONLY', 'of all'), (READONLY, OFF, 'OOFF', 'of all'), (ON, GONE, 'OGONE', 'of all')])
def test_the_state_of_a_namespace_is_obeyed_at_the_next_request(back_on, client, own, z, code, message):
    """By a connection that was there before, and as the operation does: same codes, same texts."""
    for key in ('new', 'moved'):
        client.error(DELETE, key)
    assert client.error(SET, 'kept', text('x'), OVERWRITE) == ''
    set_conf(back_on, 'z', state=z, message='of all')
    set_conf(back_on, state=own, message='of its own')
    for commands, is_refused in ((READS, code in ('OOFF', 'OGONE')), (WRITES, bool(code))):
        for function, key, more in commands:
            error = client.error(function, key, **more)
            assert (error == f'{code} {message}') if is_refused else error.split(' ')[0] not in ('OREADONLY', 'OOFF', 'OGONE', 'STATE'), (function, error)
    if code:
        asked = back_on.request('POST', '/lab/op/record', json={'param': {'commands': [{'do': 'set', 'key': 'new', 'value': 1}]}})
        assert asked.json()['code'] in (code, 'SCLOSED' if code == 'OREADONLY' else code)
        set_conf(back_on, 'z', state=ON)
        set_conf(back_on, state=ON)
        assert client.value('kept') == [b'x'] and client.error(GET, 'new') == client.error(GET, 'moved') == 'NOT_FOUND'


@pytest.mark.plain
def test_a_change_by_stampctl_is_obeyed_when_it_has_ended(back_on, client):
    for word, error in (('off', 'OOFF'), ('on', 'NOT_FOUND')):
        back_on.admin('ns', 'state', 'lab', word)
        assert client.error(GET, 'nothing') == error


@pytest.mark.plain
def test_a_namespace_that_is_not_there(journal):
    assert Client(journal.socket, ALL, 'nowhere').error(GET, 'a') == 'NNAMESPACE'


def test_the_quotas_of_the_namespace(journal, back_on, client):
    set_conf(back_on, quotas={'namespace': {'requests': '1000/d, burst 5', 'writes': '100/d, burst 2'}})
    assert [client.error(SET, 'q', text('x'), OVERWRITE).split(' ')[0] for _ in range(3)] == ['', '', 'XBUSY']
    errors = [client.error(GET, 'q') for _ in range(4)]
    assert errors[:3] == ['', '', ''] and errors[3].startswith('XBUSY ') and 0 < int(errors[3].split()[1]) <= 86400
    other = Client(journal.socket)
    assert other.error(GET, 'q').startswith('XBUSY ') and other.error(PING) == ''
    assert Client(journal.socket, ALL, 'demo').error(GET, 'q') == 'NOT_FOUND'


@pytest.mark.plain
def test_what_cannot_be_confirmed_is_refused(journal, client):
    """Nobody reads the states: after record_state_s nothing is served, and as soon as they are read again everything is."""
    config = journal.path / 'impatient.conf'
    config.write_text(journal.stack.config.read_text() + 'record_state_s = 2\n')
    process, impatient = journal.begin_second(config)
    assert client.error(SET, 'kept', text('x'), OVERWRITE) == ''
    with journal.stack.relay_stopped():
        wait_until(lambda: impatient.error(GET, 'kept') == 'STATE')
        assert impatient.error(SET, 'kept', text('y'), OVERWRITE) == 'STATE' and impatient.error(PING) == ''
        assert client.value('kept') == [b'x']  # as young as it wants
    wait_until(lambda: impatient.error(GET, 'kept') == '')
    process.terminate()
    assert process.wait(PATIENCE_S) == 0
    with journal.stack.relay_stopped():
        set_conf(journal.stack, label='changed')
        assert client.error(GET, 'kept') == 'STATE'  # not what was read before, however young
    wait_until(lambda: client.error(GET, 'kept') == '')


def test_the_terms_of_a_line(journal):
    journal.write_keys(('lab', 'write', ALL), ('lab', 'write', SOME, 'terms.', 'ttl_ms=30000', 'ttl_most_ms=60000', 'records=3', 'bytes=2000'), ('lab', 'write', SOME, 'end.', 'ttl_most_ms=60000'), ('lab', 'write', SOME))
    journal.process.send_signal(signal.SIGHUP)

    def has_terms():
        try:
            return Client(journal.socket, SOME).error(GET, 'terms.0', timeout=60001) == 'TIMEOUT'
        except (AssertionError, EOFError, ConnectionError):
            return False
    wait_until(has_terms)
    some, everything = Client(journal.socket, SOME), Client(journal.socket)
    assert some.error(SET, 'terms.1', text('x')) == '' and 0 < some.ask(GET, 'terms.1')['timeout'] <= 30000
    assert some.error(SET, 'terms.2', text('x'), timeout=60000) == '' and some.error(SET, 'terms.3', text('x'), timeout=60001) == 'TIMEOUT'
    assert some.error(LOCK, 'terms.1', timeout=60001) == some.error(GET, 'terms.1', timeout=60001) == some.error(GET, 'terms.1', timeout=60001, flags=UPDATE) == 'TIMEOUT'
    assert some.error(SET, 'terms.3', text('x' * 1900)) == 'OUT_OF_SHARE' and some.error(SET, 'terms.3', text('x')) == ''
    assert some.error(SET, 'terms.4', text('x')) == some.error(RENAME, 'terms.3', other='terms.4') == 'OUT_OF_SHARE'  # the deletion is remembered
    assert some.error(SET, 'free', text('x' * 1900)) == '' and some.ask(GET, 'free')['timeout'] is None
    assert everything.error(SET, 'terms.4', text('x')) == '' and everything.ask(GET, 'terms.4')['timeout'] is None
    page = some.ask(GET, 'terms.', other='terms.~', flags=RANGE | DATA, timeout=60000)  # a page of marks ends before what has no room
    assert [key for key, _, _ in page['records']] == ['terms.1', 'terms.2', 'terms.3'] and page['cursor']
    assert some.error(GET, page['cursor'], flags=CURSOR | DATA, timeout=60000) == 'OUT_OF_SHARE'
    for words in ((SET, 'end.set', text('x')), (ADD, 'end.add', integer(1), OVERWRITE), (RENAME, 'free', None, 0, 'end.moved')):  # without a share, too
        assert some.error(*words) == '' and 0 < some.ask(GET, words[4] if len(words) > 4 else words[1])['timeout'] <= 60000, words
    for wrong in (('a', 'b'), ('a', 'ttl_ms=0'), ('a', 'ttl_ms=5', 'ttl_most_ms=4'), ('a', 'bytes=1000000000000000'), ('a', 'records=x')):
        journal.write_keys(('lab', 'write', ALL, *wrong))
        ended = subprocess.run([BUILD / 'src/stamp-journal', '-c', journal.config, '-k', journal.keys, '-s', journal.second], capture_output=True, text=True, timeout=PATIENCE_S)
        assert ended.returncode and 'expected' in ended.stderr, (wrong, ended)


def test_keys_are_read_again(journal):
    before = Client(journal.socket)
    journal.write_keys(('lab', 'write', 'another'))
    journal.process.send_signal(signal.SIGHUP)
    with pytest.raises((EOFError, ConnectionError)):
        while True:
            before.take(1)
    with pytest.raises((AssertionError, EOFError, ConnectionError)):
        Client(journal.socket)
    assert Client(journal.socket, 'another').error(PING) == Client(journal, 'another').error(PING) == ''

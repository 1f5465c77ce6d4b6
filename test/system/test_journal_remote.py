"""stamp-journal for other hosts: TLS and its limits; tasks, which the server gives; stampctl journal."""
import hashlib
import json
import os
import re
import socket
import ssl
import subprocess
import time

import pytest

from journal_world import (ALL, BUFFER, Client, DATA, DONE_, FAIL, GET, KEEP, NEXT, OVERWRITE, PERSIST, PING, QUIT, SET, SOME, STACK, back_on,
                           client, journal, message, set_conf, text)
from stack import BUILD, PATIENCE_S, free_port, stampctl, wait_until


# --- TCP ---

def test_the_commands_in_tls(journal):
    """Pipelined, with values larger than a record of TLS, beside a connection that does not go on with its handshake."""
    silent = journal.connect(shakes=False)
    silent.sendall(b'\x16\x03\x01')
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        remote, local = Client(journal, minimum_version=version, maximum_version=version), Client(journal.socket)
        assert remote.socket.version() == version.name.replace('_', '.')
        large = os.urandom(99999)
        assert remote.error(SET, 'tls', (BUFFER, large), OVERWRITE) == '' and local.value('tls') == [large]
        remote.socket.sendall(message(GET, 'tls', flags=DATA) * 60 + message(GET, 'tls', flags=DATA, identifier=77) + message(QUIT))
        answers = [remote.answer() for _ in range(61)]
        assert all(answer['records'] == [('tls', BUFFER, large)] for answer in answers) and answers[-1]['id'] == 77
        with pytest.raises(EOFError):
            remote.take(1)
    silent.close()
    with pytest.raises(AssertionError):
        Client(journal, 'wrong')


def test_only_tls_is_spoken_and_none_before_1_2(journal, client):
    plain = journal.connect(shakes=False)
    plain.settimeout(5)  # before strangers are closed anyway
    plain.sendall(message(PING))
    received = b''
    try:
        while more := plain.recv(100):
            received += more
    except ConnectionError:
        pass
    assert b'JR' not in received
    with pytest.raises(ssl.SSLError, match='TLSV1_ALERT'):
        journal.connect(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
    with pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(journal.connect(shakes=False), server_hostname='localhost')
    stranger = Client(journal, key=None)
    assert stranger.error(GET, 'a') == 'AUTH' and client.error(PING) == ''


def is_closed(connection):
    """Without a byte of an answer, and before every stranger is."""
    connection.settimeout(5)
    try:
        return connection.recv(1) == b''
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_connections_of_one_client_are_limited(journal, client):
    """The strangers, then all; a place is free again as soon as one has gone."""
    strangers = [journal.connect(shakes=False) for _ in range(17)]
    assert is_closed(strangers[16])
    strangers.pop()
    strangers.pop().close()
    wait_until(lambda: _is_let_in(journal))
    for stranger in strangers:
        stranger.close()
    known = []
    wait_until(lambda: _adds_client(journal, known) and len(known) == 18)
    assert not _adds_client(journal, known) and client.error(PING) == ''
    for one in known:
        one.socket.close()
    wait_until(lambda: _is_let_in(journal))


def _is_let_in(journal):
    return _adds_client(journal, [])


def _adds_client(journal, known):
    try:
        known.append(Client(journal))
    except (EOFError, ConnectionError, ssl.SSLError):
        return False
    return True


def test_an_idle_connection_ends_and_a_busy_one_does_not(journal):
    """`stampctl journal listen` keeps its own, which is older, busy."""
    config, port = journal.path / 'impatient.conf', free_port()
    config.write_text(journal.config.read_text().replace(f'journal_listen = 127.0.0.1:{journal.port}', f'journal_listen = 127.0.0.1:{port}') + 'journal_idle_s = 5\n')
    process, local = journal.begin_second(config)
    follower = subprocess.Popen([BUILD / 'src/stampctl', 'journal', 'listen', 'idle', '--count', '2', '--json', '--timeout', '1', '--connect', f'localhost:{port}',
                                 '--ca', journal.certificate, '--ns', 'lab', '--key-file', _key_of(journal, ALL)], stdout=subprocess.PIPE, text=True)
    assert follower.stdout.readline() == 'null\n'
    idle, busy = Client(journal, port=port), Client(journal, port=port)
    idle.socket.settimeout(0)
    end = time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < end
        assert busy.error(PING) == ''
        try:
            assert idle.socket.recv(1) == b''
            break
        except (BlockingIOError, ssl.SSLWantReadError):
            time.sleep(0.02)
    assert busy.error(PING) == '' and local.error(SET, 'idle', text('new'), OVERWRITE) == ''
    assert json.loads(follower.stdout.readline())['value'] == 'new' and follower.wait(PATIENCE_S) == 0
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.plain
@pytest.mark.parametrize('lines, problem', [
    ('journal_listen = localhost:1', 'an address in numbers'), ('journal_listen = ::1:1', 'an address in numbers'), ('journal_listen = 127.0.0.1', 'an address in numbers'),
    ('journal_certificate_file =', 'needs journal_certificate_file'), ('journal_certificate_key_file = /dev/null', '/dev/null: '),
    ('journal_certificate_file = /nonexistent', '/nonexistent: No such file or directory'), ('journal_certificate_key_file = /nonexistent', '/nonexistent: No such file or directory')])
def test_wrong_settings_of_tcp(journal, lines, problem):
    config = journal.path / 'wrong.conf'
    name = lines.partition(' =')[0]
    config.write_text(''.join(line for line in journal.config.read_text().splitlines(True) if not line.startswith(name + ' ')) + lines + '\n')
    done = subprocess.run([BUILD / 'src/stamp-journal', '-c', config, '-k', journal.keys, '-s', journal.second], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and problem in done.stderr


@pytest.mark.plain
def test_a_limit_of_open_files_that_is_too_low(journal):
    done = subprocess.run(['prlimit', '--nofile=1100', BUILD / 'src/stamp-journal', '-c', journal.stack.config, '-k', journal.keys, '-s', journal.second],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and 'open files' in done.stderr


# --- tasks ---

def _send(client, function, identifier=1, **param):
    client.socket.sendall(message(function, value=text(json.dumps(param)), identifier=identifier))


def _out(answer):
    assert answer['error'] == '', answer
    return json.loads(answer['records'][0][2])['out']


def test_tasks_are_taken_and_ended_by_the_key_of_the_connection(back_on, journal, client):
    stack = journal.stack
    set_conf(stack, workers=[{'qn': 16, 'ops': ['resize'], 'key': hashlib.sha256(ALL.encode()).hexdigest(), 'request': 'anybody'}])
    _send(client, NEXT, qn=16)
    client.socket.sendall(message(PING, identifier=2))
    assert _out(client.answer())['tasks'] == [] and client.answer()['id'] == 2
    trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    requested = stack.request('POST', '/lab/op/task', json={'param': {'op': 'resize', 'param': {'number': 0}}}, headers={'traceparent': trace, 'tracestate': 'shop=1'})
    first, second = requested.json()['out']['id'], stack.op('lab', 'task', {'op': 'resize', 'param': {'number': 1}})['out']['id']
    remote = Client(journal)
    _send(remote, NEXT, identifier=7, qn=16, worker='remote')
    answer = remote.answer()
    (task,) = _out(answer)['tasks']
    assert answer['id'] == 7 and task['id'] == first and task['param'] == {'number': 0} and (task['trace'], task['tracestate']) == (trace, 'shop=1')
    claim = {name: task[name] for name in ('id', 'starttime', 'retry')}
    _send(client, KEEP, **claim, claim=100)
    assert _out(client.answer())['until'] > task['until']
    _send(client, DONE_, **claim, result={'size': 3})
    assert _out(client.answer())['result'] == 'done'
    _send(client, NEXT, qn=16)
    (task,) = _out(client.answer())['tasks']
    assert task['id'] == second and 'trace' not in task
    third = stack.op('lab', 'task', {'op': 'resize', 'param': {'number': 2}})['out']['id']
    for one in client, remote:
        _send(one, FAIL, **{name: task[name] for name in ('id', 'starttime', 'retry')}, delay=600, take={'qn': 16})
        out = _out(one.answer())
        assert out['result'] == 'failed' and [following['id'] for following in out['tasks']] == [third], 'sent again, it gets the same'
    _send(client, DONE_, **{name: out['tasks'][0][name] for name in ('id', 'starttime', 'retry')})
    assert _out(client.answer()) == {'result': 'done'}
    _send(client, DONE_, **{**claim, 'retry': 9})
    assert client.answer()['error'] == 'ACLAIM'
    for _ in range(2):
        stack.op('lab', 'task', {'op': 'resize'})
    _send(client, NEXT, qn=16)
    (task,) = _out(client.answer())['tasks']
    for one in client, Client(journal.socket):
        _send(one, DONE_, **{name: task[name] for name in ('id', 'starttime', 'retry')}, take={'qn': 16})
        out = _out(one.answer())
        (following,) = out['tasks']
        assert out['result'] == 'done' and following['id'] != task['id'], 'sent again, it gets the same'
    some = Client(journal.socket, SOME)
    _send(some, NEXT, qn=16)
    assert some.answer()['error'] == 'SKEY'
    for wrong in (text('[]'), text('{},"ns":"z"'), text(''), (BUFFER, b'{}'), None):
        assert client.error(NEXT, value=wrong) == 'VALUE'
    assert client.error(NEXT, value=text('{}'), flags=PERSIST) == 'UNSUPPORTED'
    set_conf(stack, workers=None)


def test_a_server_that_does_not_answer(journal):
    """Requests wait for it, and nothing else does; those of one key are limited, and a connection that ends is forgotten."""
    with socket.create_server(('127.0.0.1', 0)) as silent:
        config = journal.path / 'silent.conf'
        config.write_text(re.sub('(?m)^queue_url = .*', f'queue_url = https://127.0.0.1:{silent.getsockname()[1]}', journal.stack.config.read_text()))
        process, other = journal.begin_second(config)
        waiting = [Client(journal.second) for _ in range(16)]
        for number, client in enumerate(waiting):
            _send(client, NEXT if number < 12 else DONE_, qn=16)
        for client in waiting:
            client.socket.sendall(message(PING))
        wait_until(lambda: other.error(DONE_, value=text('{}')) == 'XBUSY 1000')
        assert other.error(PING) == ''
        waiting.pop().socket.close()
        waiting[0].socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            waiting[0].socket.recv(1)
        waiting[0].socket.settimeout(PATIENCE_S)
    assert waiting[0].answer()['error'] == 'SERVER' and waiting[0].answer()['error'] == ''
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


# --- stampctl ---

def test_stampctl_journal(journal):
    key = journal.path / 'key'
    key.write_text(ALL + '\n')
    key.chmod(0o600)
    plain = ('--config', journal.config, '--ns', 'lab', '--key-file', key)
    remote = ('--connect', f'localhost:{journal.port}', '--ca', journal.certificate, *plain[2:])

    def lines(*words, way=plain, **more):
        return stampctl('journal', *words, '--json', *way, **more).out.splitlines()

    def refusal(*words, way=plain, status=1):
        return stampctl('journal', *words, *way, status=status).error.strip().partition('stampctl: ')[2]

    for way in plain, remote:
        assert stampctl('journal', 'ping', *way).out.startswith('OK  ')
        assert lines('set', 'ctl/n', '40', '--type', 'integer', '--overwrite', way=way)
        assert json.loads(*lines('get', 'ctl/n', way=way))['value'] == 40
        large = 'x' * 90000
        lines('set', 'ctl/large', large, '--ttl', '60000', '--touch', '--overwrite', way=way)
        found = json.loads(*lines('get', 'ctl/large', way=way))
        assert found['value'] == large and 0 < found['timeout_ms'] <= 60000
    assert refusal('set', 'ctl/n', 'x') == 'journal set: "NOT_FREE"' and refusal('get', 'ctl/none') == 'journal get: "NOT_FOUND"'
    for type_, value, shown in (('float', '1.5', 1.5), ('boolean', 'true', True), ('buffer', 'a', '61'), ('void', '', None), ('string', 'ä"', 'ä"')):
        lines('set', 'ctl/' + type_, value, '--type', type_)
        assert json.loads(*lines('get', 'ctl/' + type_))['value'] == shown
    lines('set', 'ctl/small', 'xxx')
    assert stampctl('journal', 'get', 'ctl/small', *plain).out == '"ctl/small"  string  "xxx"\n'
    assert [json.loads(line)['key'] for line in lines('list', '--pattern', '^ctl/[bf]', way=remote)] == ['ctl/boolean', 'ctl/buffer', 'ctl/float']
    assert len(lines('list', 'ctl/', 'ctl/z', '--limit', '3', '--probe')) == 3
    follower = subprocess.Popen([BUILD / 'src/stampctl', 'journal', 'listen', 'ctl/small', '--count', '2', '--json', *map(str, remote)], stdout=subprocess.PIPE, text=True)
    assert json.loads(follower.stdout.readline())['value'] == 'xxx'
    lines('set', 'ctl/small', 'new', '--overwrite')
    assert json.loads(follower.stdout.readline())['value'] == 'new' and follower.wait(PATIENCE_S) == 0
    lines('delete', 'ctl/small')
    assert refusal('get', 'ctl/small', '--work', '5') == 'journal get: "NOT_FOUND"'
    assert refusal('set', 'ctl/n', 'x', '--type', 'integer', status=2) == 'journal set: "x" is no value of type integer'
    assert 'no such key' in refusal('ping', way=('--config', journal.config, '--ns', 'demo', '--key-file', _key_of(journal, 'wrong')))
    assert 'certificate' in refusal('ping', way=remote[:2]) and '--ns and --key-file' in refusal('get', 'a', way=remote[:4], status=2)
    assert stampctl('journal', 'ping', *remote[:2], '--insecure').out.startswith('OK  ')
    assert 'No such file' in refusal('ping', way=('--socket', journal.path / 'none'))


def _key_of(journal, text):
    path = journal.path / 'other.key'
    path.write_text(text)
    path.chmod(0o600)
    return path

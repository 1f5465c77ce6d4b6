"""Records on several hosts: three stamp-journals as hosts, beside one PostgreSQL, whose z lets them in."""
import contextlib
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import journal_world
from journal_world import (ALL, Client, DATA, DELETE, GET, LISTEN, LOCK, OVERWRITE, PERSIST, RANGE, RENAME, SET, STAMP, beside, integer, set_conf,
                           text)
from kit import Kit
from resp_world import Redis, Refused
from stack import BUILD, ROOM, free_port, refused, run_program, wait_until

pytestmark = pytest.mark.plain
STACK = {**journal_world.STACK, 'settings': {**journal_world.STACK['settings'], 'restart_young_ms': 0}}
TTL_S, LONG_S = 120, 300  # after so long all is known again, however slow the machine, and however many hosts were taken for dead


class Host:
    """A stamp-journal with an address of its own.  All of a test have one memory of local records, of which they use the states of namespaces."""

    def __init__(self, hosts, address, port=None, megabytes=4, **settings):
        self.hosts, self.address, self.port, self.process = hosts, address, port or free_port(), None
        self.path = Path(tempfile.mkdtemp(prefix='stampd-host-', dir=ROOM))
        os.chmod(self.path, 0o755)
        self.key, self.log, self.config = self.path / 'host.key', self.path / 'log', self.path / 'conf'
        run = Path(next(line.partition('=')[2].strip() for line in hosts.stack.config.read_text().splitlines() if line.startswith('run_directory')))
        self.socket = run / f'{address}.sock'
        subprocess.run(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', self.key], check=True, capture_output=True)
        os.chmod(self.key, 0o644)
        self.fingerprint = hashlib.sha256(subprocess.run(['openssl', 'pkey', '-in', self.key, '-pubout', '-outform', 'DER'], check=True, capture_output=True).stdout).hexdigest()
        kept = [line for line in hosts.stack.config.read_text().splitlines() if line.partition('=')[0].strip() not in settings]
        self.config.write_text('\n'.join([*kept, *(f'{name} = {value}' for name, value in settings.items()), '']) + f'cluster_address = {address}\ncluster_listen = 127.0.0.1:{self.port}\n'
                               f'cluster_key_file = {self.key}\ncluster_mb = {megabytes}\n')

    def add(self):
        self.hosts.stack.admin('host', 'add', self.address, f'127.0.0.1:{self.port}', self.fingerprint)

    def start(self):
        with open(self.log, 'a') as log:
            self.process = subprocess.Popen([BUILD / 'src/stamp-journal', '-c', self.config, '-k', self.hosts.keys, '-s', self.socket], stderr=log)
        wait_until(self.is_up, what='a host that listens')
        return self

    def is_up(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            Redis(self.socket, key=None).close()
            return True
        except OSError:
            return False

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()
        self.process = None

    @contextlib.contextmanager
    def serves_workers(self):
        """The workers ask this host, in place of the stamp-journal beside the stack, which is none of these hosts."""
        place = self.socket.with_name('journal.sock.hosts')
        self.socket.with_name(self.socket.name + '.hosts').replace(place)
        try:
            yield
        finally:
            place.unlink()

    def redis(self, ns='lab'):
        client = Redis(self.socket, ns=ns)
        self.hosts.opened.append(client)
        return client

    def close(self):
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.end()
        shutil.rmtree(self.path, ignore_errors=True)


class Hosts:
    def __init__(self, journal):
        self.stack, self.keys, self.all, self.opened = journal.stack, journal.keys, [], []

    def begin(self, *addresses, **more):
        found = [Host(self, address, **more) for address in addresses]
        self.all += found
        for host in found:
            host.add()
        return [host.start() for host in found]

    def listed(self):
        return {found['address']: found for found in map(json.loads, self.stack.admin('host', 'list', '--json').out.splitlines())}

    def knows(self, *hosts):
        """All of these know which keys are absent, and have been told so of each other."""
        return wait_until(lambda: (listed := self.listed()) and all(listed.get(host.address, {}).get('exhaustive') for host in hosts) and listed, seconds=LONG_S, what='hosts that know')

    def close(self):
        for client in self.opened:
            client.close()
        for host in self.all:
            host.close()
        self.stack.psql('z', 'delete from host; delete from host_list; insert into host_list default values')


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = str(kit.build('record.c'))
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def journal(stack):
    with beside(stack) as journal:
        set_conf(stack, spread=True)
        yield journal
        set_conf(stack, spread=None)


@pytest.fixture
def hosts(journal):
    hosts = Hosts(journal)
    with contextlib.closing(hosts):
        hosts.stack.admin('host', 'terms', '--copies', '1', '--ttl', str(TTL_S))
        yield hosts


def until_known(client, *words):
    """The answer of a host that can know: while the list changes, it may not."""
    def look():
        answer = client.ask(*words)
        answers = answer if isinstance(answer, list) else [answer]
        is_unknown = any(isinstance(one, Refused) and one.split()[0] in ('UNKNOWN', 'BUSY', 'NO_PARTICIPANTS') for one in answers)
        return None if is_unknown else [answer]
    return wait_until(look, seconds=LONG_S, what=f'an answer to {words}')[0]


def is_refused(answer, word):
    return isinstance(answer, Refused) and answer.startswith(word)


KEYS = [f'key{number}' for number in range(40)]


def test_what_is_set_on_one_is_read_on_all(hosts):
    a, b, c = hosts.begin('north.r1.a', 'north.r2.b', 'south.r1.c')
    hosts.knows(a, b, c)
    clients = [host.redis() for host in (a, b, c)]
    for number, key in enumerate(KEYS):
        assert until_known(clients[number % 3], 'SET', key, f'value {number}', 'EX', '110') == 'OK'
    for client in clients:
        assert [until_known(client, 'GET', key) for key in KEYS] == [f'value {number}'.encode() for number in range(len(KEYS))]
        assert until_known(client, 'MGET', KEYS[0], 'absent', KEYS[1]) == [b'value 0', None, b'value 1']
        assert until_known(client, 'GET', 'absent') is None
        assert 0 < until_known(client, 'TTL', KEYS[0]) <= 110
    assert until_known(clients[1], 'SET', KEYS[0], 'other', 'NX') is None
    assert until_known(clients[1], 'SET', 'new', 'x', 'NX') == 'OK'
    assert until_known(clients[2], 'SET', KEYS[0], 'other', 'XX', 'GET') == b'value 0'
    assert [until_known(client, 'INCRBY', 'sum', '5') for client in clients] == [5, 10, 15]
    assert until_known(clients[0], 'EXISTS', KEYS[0], 'absent', 'sum') == 2
    assert until_known(clients[0], 'EXPIRE', 'sum', '100') == 1
    assert 0 < until_known(clients[1], 'TTL', 'sum') <= 100
    assert until_known(clients[1], 'DEL', 'sum', 'absent') == 1
    assert until_known(clients[2], 'GET', 'sum') is None
    wait_until(lambda: sum(found['records'] for found in hosts.listed().values()) >= 2 * len(KEYS), what='records that are reported')
    assert {found['state'] for found in hosts.listed().values()} == {'member'}


def test_the_binary_protocol_is_answered_too(hosts):
    a, b = hosts.begin('a', 'b')
    hosts.knows(a, b)
    one, other = Client(a.socket), Client(b.socket)

    def ask(client, *words, **more):
        return wait_until(lambda: (answer := client.ask(*words, **more))['error'] not in ('UNKNOWN', 'BUSY') and answer)
    assert ask(one, SET, 'k', text('first'))['error'] == ''
    found = ask(other, GET, 'k', flags=DATA | STAMP)
    assert found['records'] == [('k', *text('first'))] and 0 < found['timeout'] <= TTL_S * 1000
    assert ask(one, SET, 'k', text('second'))['error'] == 'NOT_FREE'
    assert ask(one, SET, 'k', text('second'), flags=STAMP, stamp=found['stamp'])['error'] == ''
    assert ask(other, SET, 'k', text('third'), stamp=found['stamp'])['error'] == 'OTHER_STAMP'
    assert ask(other, SET, 'k', integer(3), flags=OVERWRITE, timeout=5000)['error'] == ''
    assert ask(one, SET, 'k', text('late'), flags=OVERWRITE, timeout=(TTL_S + 60) * 1000)['error'] == 'OUT_OF_RANGE'
    assert ask(other, DELETE, 'k')['error'] == '' and ask(one, GET, 'k', flags=DATA)['error'] == 'NOT_FOUND'
    for words, more in [((LOCK, 'k'), {'timeout': 1000}), ((RENAME, 'k'), {'other': 'l'}), ((SET, 'k', text('x')), {'flags': PERSIST}),
                        ((GET, 'k'), {'flags': LISTEN | DATA}), ((GET, 'k'), {'flags': RANGE | DATA, 'other': 'z'})]:
        assert one.error(*words, **more) == 'UNSUPPORTED', words


def test_what_no_host_can_do_is_refused(hosts):
    client = hosts.begin('a')[0].redis()
    for words in [['SCAN', '0'], ['SUBSCRIBE', '__keyspace@0__:k'], ['RENAME', 'k', 'l'], ['PERSIST', 'k']]:
        answer = until_known(client, *words)
        assert is_refused(answer, 'UNSUPPORTED'), (words, answer)


def test_listeners_of_before_are_not_left_without_news(hosts):
    stack = hosts.stack
    host, = hosts.begin('a')
    set_conf(stack, spread=None)
    try:
        binary, resp, poll = Client(host.socket), host.redis(), select.poll()
        wait_until(lambda: not isinstance(resp.ask('SCAN', '0'), Refused), what='records of one host')
        assert resp.ask('SET', 'k', 'local') == 'OK'
        assert binary.error(GET, 'k', flags=LISTEN | DATA) == ''
        assert resp.ask('PSUBSCRIBE', '*')[2] == 1
    finally:
        set_conf(stack, spread=True)
    notice = binary.answer()
    assert notice['notice'] and notice['records'][0][0] == 'k'
    assert wait_until(lambda: binary.error(GET, 'k', flags=LISTEN | DATA) == 'UNSUPPORTED')
    poll.register(resp.socket, select.POLLRDHUP)
    wait_until(lambda: poll.poll(0), what='a connection that ends')


def test_a_record_that_has_ended_already(hosts):
    host, = hosts.begin('a')
    hosts.knows(host)
    client = host.redis()
    assert until_known(client, 'SET', 'k', 'v') == 'OK'
    assert until_known(client, 'SET', 'k', 'w', 'NX', 'PXAT', '1') is None and until_known(client, 'GET', 'k') == b'v'
    assert until_known(client, 'SET', 'absent', 'w', 'XX', 'PXAT', '1') is None
    assert until_known(client, 'SET', 'absent', 'w', 'NX', 'PXAT', '1') == 'OK' and until_known(client, 'GET', 'absent') is None
    assert until_known(client, 'SET', 'k', 'w', 'PXAT', '1') == 'OK' and until_known(client, 'GET', 'k') is None
    assert until_known(client, 'SET', 'absent', 'w', 'PXAT', '1') == 'OK'
    for number in range(50):  # an end that passes while the hosts are asked
        assert until_known(client, 'SET', 'short', 'w', 'PX', '1') == 'OK'


def test_a_key_that_is_too_short_is_no_crash(hosts):
    host = Host(hosts, 'a')
    hosts.all.append(host)
    for words in (['genrsa', '-traditional', '-out', host.key, '1024'], None):
        if words:
            subprocess.run(['openssl', *words], check=True, capture_output=True)
            os.chmod(host.key, 0o644)
        else:
            host.key.unlink()
        done = subprocess.run([BUILD / 'src/stamp-journal', '-c', host.config, '-k', hosts.keys, '-s', host.socket], capture_output=True, text=True)
        assert done.returncode == 1 and f'cannot start: {host.key}: ' in done.stderr, done


def test_strangers_who_wait_keep_no_host_away(hosts):
    a, = hosts.begin('a')
    stranger = Host(hosts, 'c')
    hosts.all.append(stranger)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.ExitStack() as lines:
        for _ in range(200):
            lines.enter_context(socket.create_connection(('127.0.0.1', a.port)))
        with socket.create_connection(('127.0.0.1', a.port)) as plain, context.wrap_socket(plain) as line:
            assert line.version() == 'TLSv1.3'
    assert 'that has shown no key' in a.log.read_text()


def record(stack, *commands, admin=True):
    return stack.op('lab', 'record', {'commands': list(commands)}, admin=admin)['out']['results']


def until_told(stack, *commands, **more):
    """As until_known."""
    def look():
        results = record(stack, *commands, **more)
        return not any(one['state'] in ('UNKNOWN', 'BUSY', 'NO_PARTICIPANTS') for one in results) and results
    return wait_until(look, seconds=LONG_S, what=f'an answer to {commands}')


def test_the_operation_asks_the_hosts(hosts):
    stack = hosts.stack
    a, b, c = hosts.begin('north.r1.a', 'north.r2.b', 'south.r1.c')
    hosts.knows(a, b, c)
    with b.serves_workers():
        assert until_told(stack, {'do': 'set', 'key': 'k', 'value': {'buffer': 'AAE'}, 'ttl_ms': 60000})[0]['state'] == 'OK'
        found, = until_told(stack, {'do': 'get', 'key': 'k'})
        assert found['value'] == {'buffer': 'AAE'} and found['key'] == 'k' and found['expires_ms'] > 0 and found['type'] == 'buffer', found
        refused, = until_told(stack, {'do': 'set', 'key': 'k', 'value': 1})
        assert refused['state'] == 'NOT_FREE' and refused['value'] == {'buffer': 'AAE'}, refused
        assert until_told(stack, {'do': 'set', 'key': 'k', 'value': 'b', 'if': found['stamp']})[0]['state'] == 'OK'
        assert until_told(stack, {'do': 'set', 'key': 'k', 'value': 'c', 'if': found['stamp']})[0]['state'] == 'OTHER_STAMP'
        assert until_told(stack, {'do': 'set', 'key': 'none', 'value': 'c', 'only': 'present'})[0]['state'] == 'NOT_FOUND'
        assert [until_told(stack, {'do': 'add', 'key': 'sum', 'by': 2, 'create': True})[0]['value'] for _ in range(3)] == [2, 4, 6]
        assert until_known(a.redis(), 'GET', 'k') == b'b' and until_known(c.redis(), 'GET', 'sum') == b'6'
        assert until_told(stack, {'do': 'delete', 'key': 'k'}, {'do': 'get', 'key': 'k'})[1]['state'] == 'NOT_FOUND'
        for command in ({'do': 'lock', 'key': 'k', 'owner': 'o', 'lock_ms': 1000}, {'do': 'rename', 'key': 'k', 'to': 'l'}, {'do': 'get'}, {'do': 'listen'},
                        {'do': 'set', 'key': 'k', 'value': 1, 'touch_s': 5}):
            assert record(stack, command)[0]['state'] == 'UNSUPPORTED', command
        assert record(stack, {'do': 'set', 'key': 'k', 'value': 1, 'ttl_ms': (TTL_S + 60) * 1000})[0]['state'] == 'OUT_OF_RANGE'


def test_modules_ask_the_hosts(hosts):
    stack = hosts.stack
    a, = hosts.begin('a')
    hosts.knows(a)
    client = a.redis()

    def run(do, key, **more):
        return wait_until(lambda: (out := stack.op('lab', 'Record', {'do': do, 'key': key, **more})['out'])['state'] not in ('UNKNOWN', 'BUSY', 'NO_PARTICIPANTS') and out)
    with a.serves_workers():
        assert run('set', 'k', text='from a module')['state'] == 'OK' and until_known(client, 'GET', 'k') == b'from a module'
        assert until_known(client, 'SET', 'k', 'from outside') == 'OK' and run('get', 'k')['text'] == 'from outside'
        assert [run('add', 'sum', integer=2)['integer'] for _ in range(2)] == [2, 4]
        first = run('put', 'swap', integer=1)
        assert run('put', 'swap', integer=2, stamp=first['stamp'])['state'] == 'OK'
        late = run('put', 'swap', integer=3, stamp=first['stamp'])
        assert (late['state'], late['integer']) == ('OTHER_STAMP', 2)
        assert run('lock', 'k', owner='o', lock_ms=1000)['state'] == 'UNSUPPORTED'
        refused('ORECORDS', stack.op, 'lab', 'ListRecords', {})


def test_rules_hold_for_hosts_too(hosts):
    stack = hosts.stack
    a, = hosts.begin('a')
    hosts.knows(a)
    set_conf(stack, records=[{'prefix': 'open.', 'read': 'anyone', 'write': 'anyone', 'records': 2}])
    try:
        with a.serves_workers():
            for command in ({'do': 'get', 'key': 'k'}, {'do': 'set', 'key': 'k', 'value': 1}):
                answer = stack.request('POST', '/lab/op/record', json={'param': {'commands': [command]}})
                assert answer.status_code == 401 and answer.json()['code'] == 'SCLOSED', answer.text
            states = [until_told(stack, {'do': 'set', 'key': f'open.{number}', 'value': 'x'}, admin=None)[0]['state'] for number in range(4)]
            assert states == ['OK', 'OK', 'OUT_OF_SHARE', 'OUT_OF_SHARE']
            assert until_told(stack, {'do': 'get', 'key': 'open.3'}, admin=None)[0]['state'] == 'NOT_FOUND', 'what was refused is free'
            assert until_told(stack, {'do': 'set', 'key': 'open.3', 'value': 'x'})[0]['state'] == 'OK', 'the administrator has no share'
    finally:
        set_conf(stack, records=None)


def test_a_key_with_a_level_is_of_its_group(hosts):
    stack = hosts.stack
    a, b, c = hosts.begin('north.r1.a', 'north.r2.b', 'south.r1.c')
    hosts.knows(a, b, c)
    here, near, far = (host.redis() for host in (a, b, c))
    assert until_known(here, 'SET', '@2:k', 'north') == 'OK'
    assert until_known(far, 'GET', '@2:k') is None and until_known(far, 'SET', '@2:k', 'south', 'NX') == 'OK'
    assert until_known(near, 'GET', '@2:k') == b'north' and until_known(far, 'GET', '@2:k') == b'south'
    assert until_known(here, 'SET', '@1:k', 'rack') == 'OK' and until_known(near, 'GET', '@1:k') is None
    assert until_known(here, 'GET', 'k') is None and until_known(here, 'GET', '@3:k') is None
    for key in ('@0:k', '@4:k'):
        assert is_refused(here.ask('SET', key, 'x'), 'OUT_OF_RANGE'), key
    with c.serves_workers():
        assert until_told(stack, {'do': 'get', 'key': '@2:k'})[0]['value'] == 'south'

    c.end()  # alone in its group: what it had is at nobody else
    ended = time.monotonic()
    wait_until(lambda: hosts.listed()['south.r1.c']['state'] == 'away', what='a host that is removed')
    hosts.knows(a, b)
    c.start()
    hosts.knows(a, b, c)
    again = c.redis()
    assert until_known(again, 'GET', 'absent') is None, 'of keys of all hosts'
    if time.monotonic() > ended + TTL_S / 2:
        return  # the machine is so slow that the time to live may have passed
    assert is_refused(again.ask('GET', '@2:k'), 'UNKNOWN') and is_refused(again.ask('SET', '@2:k', 'x', 'NX'), 'UNKNOWN'), 'it may be alive behind a partition'
    assert until_known(near, 'GET', '@2:k') == b'north' and until_known(near, 'GET', '@2:absent') is None


def test_a_request_waits_for_silent_hosts_no_longer_than_it_may(hosts):
    stack = hosts.stack
    a, b = hosts.begin('a', 'b')
    hosts.knows(a, b)
    with a.serves_workers():
        assert until_told(stack, {'do': 'set', 'key': 'k', 'value': 1})[0]['state'] == 'OK'
        a.process.send_signal(signal.SIGSTOP)
        results = record(stack, {'do': 'set', 'key': 'k', 'value': 2, 'overwrite': True}, {'do': 'get', 'key': 'k'}, {'do': 'set', 'key': 'l', 'value': 2})
        assert [one['state'] for one in results] == ['UNKNOWN', 'BUSY', 'BUSY'], results
        a.process.send_signal(signal.SIGCONT)
        assert until_told(stack, {'do': 'get', 'key': 'k'})[0]['value'] in (1, 2)


def test_a_namespace_leaves_memory_to_others(hosts):
    stack, value = hosts.stack, 'x' * 40000
    a, = hosts.begin('a')
    hosts.knows(a)
    set_conf(stack, 'demo', spread=True)
    try:
        client, other = a.redis(), a.redis('demo')
        answers = [until_known(client, 'SET', f'large{number}', value, 'NX') for number in range(40)]
        stored = [number for number, answer in enumerate(answers) if answer == 'OK']
        assert 20 <= len(stored) <= 26, 'a megabyte of three'
        assert all(answer == 'OK' or is_refused(answer, 'OOM') for answer in answers)
        assert until_known(client, 'GET', 'large39') is None, 'what was refused is free, and that is known'
        wait_until(lambda: until_known(other, 'SET', 'k', value) == 'OK', what='a namespace that has learned that it is spread')
        assert until_known(client, 'DEL', f'large{stored[0]}') == 1
        assert until_known(client, 'SET', f'large{stored[0]}', value) == 'OK'
    finally:
        set_conf(stack, 'demo', spread=None)


def test_hosts_with_different_limits_of_contents(hosts):
    a, = hosts.begin('a', limit_content_bytes=100000)
    hosts.knows(a)
    large = a.redis()
    assert until_known(large, 'SET', 'large', 'x' * 90000) == 'OK'
    b, = hosts.begin('b', limit_content_bytes=50000)
    hosts.knows(a, b)
    for host in (a, b):
        client = host.redis()
        assert len(until_known(client, 'GET', 'large')) == 90000, 'what was stored before stays'
        assert until_known(client, 'SET', 'k', 'y' * 49000) == 'OK'
    wait_until(lambda: is_refused(large.ask('SET', 'k', 'x' * 60000), 'OUT_OF_RANGE'), what='a host that knows the least limit')
    assert until_known(b.redis(), 'GET', 'k') == b'y' * 49000
    wait_until(lambda: 'different limit_content_bytes: that of b holds' in a.log.read_text(), what='a warning')
    assert 'a connection between hosts is closed' not in a.log.read_text() + b.log.read_text()


def test_hosts_are_shown(hosts):
    stack = hosts.stack
    a, b = hosts.begin('a', 'b', limit_content_bytes=90000)
    hosts.knows(a, b)
    away = Host(hosts, 'c')
    hosts.all.append(away)
    away.add()
    client = a.redis()
    for key in KEYS:
        assert until_known(client, 'SET', key, key) == 'OK'
    assert until_known(client, 'GET', 'absent') is None
    wait_until(lambda: sum(found['records'] for found in hosts.listed().values()) == 2 * len(KEYS), what='records that are reported')
    listed = hosts.listed()
    assert sum(found['not_found_keys'] for found in listed.values()) >= 1 and listed['a']['missing_copies'] == 0
    assert listed['a']['sent'] > 0 and listed['a']['unsure_ms'] == 0 and listed['a']['content_bytes'] == 90000

    metrics = wait_until(lambda: (found := stack.metrics()) and found.get('stampd_host_records{host="a"}', 0) + found.get('stampd_host_records{host="b"}', 0) == 2 * len(KEYS) and found)
    assert metrics['stampd_host_state{host="a"}'] == 1 and metrics['stampd_host_state{host="c"}'] == 0
    assert metrics['stampd_host_exhaustive{host="b"}'] == 1 and metrics['stampd_host_messages_sent_total{host="a"}'] > 0
    shown = {one['address']: one for one in stack.op('z', 'metrics', {'after': 0}, admin=True)['out']['hosts']}
    assert shown['c']['state'] == 'away' and shown['a']['exhaustive'] and shown['a']['memory'] > shown['a']['bytes'] > 0

    top = [json.loads(line) for line in run_program(BUILD / 'src/stampctl', 'top', '--once', '--json', '--config', a.config).out.splitlines()]
    assert {one['address']: one['state'] for one in top if one['kind'] == 'host'} == {'a': 'member', 'b': 'member', 'c': 'away'}

    words = stack.admin('doctor', status=None).out
    assert 'hosts: away: c: start stamp-journal there' in words and 'hosts: all know which keys are absent' in words, words
    assert 'hosts: each record has its copies' in words and 'hosts: they report to z' in words


def test_a_death_loses_nothing_and_is_noticed(hosts):
    a, b, c = hosts.begin('a', 'b', 'c')
    hosts.knows(a, b, c)
    client, other = a.redis(), b.redis()
    for key in KEYS:
        assert until_known(client, 'SET', key, key) == 'OK'
    c.end()
    assert [until_known(other, 'GET', key) for key in KEYS] == [key.encode() for key in KEYS]
    wait_until(lambda: hosts.listed()['c']['state'] == 'away', what='a host that is removed')
    hosts.knows(a, b)
    assert until_known(client, 'GET', 'absent') is None
    assert [until_known(client, 'GET', key) for key in KEYS] == [key.encode() for key in KEYS]
    c.start()  # with an empty memory: it says nothing false meanwhile
    again = c.redis()
    for key in KEYS:
        assert until_known(again, 'GET', key) == key.encode()
    hosts.knows(a, b, c)
    assert until_known(again, 'GET', 'absent') is None


def test_a_host_that_stood_still_says_nothing_old(hosts):
    a, b, c = hosts.begin('a', 'b', 'c')
    hosts.knows(a, b, c)
    client, stopped = a.redis(), c.redis()
    for key in KEYS:
        assert until_known(client, 'SET', key, 'old') == 'OK'
    c.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: hosts.listed()['c']['state'] == 'away', what='a host that is removed')
    for key in KEYS:
        assert until_known(client, 'SET', key, 'new') == 'OK'
    c.process.send_signal(signal.SIGCONT)
    for key in KEYS:
        assert until_known(stopped, 'GET', key) == b'new'
    hosts.knows(a, b, c)


def test_a_host_that_leaves_passes_on_what_it_has(hosts):
    a, b = hosts.begin('a', 'b')
    hosts.knows(a, b)
    client = a.redis()
    for key in KEYS:
        assert until_known(client, 'SET', key, key) == 'OK'
    c, = hosts.begin('c')
    hosts.knows(a, b, c)
    for host in (a, b):
        hosts.stack.admin('host', 'remove', host.address)
        wait_until(lambda host=host: host.address not in hosts.listed(), what='a host that has left')
    last = c.redis()
    assert [until_known(last, 'GET', key) for key in KEYS] == [key.encode() for key in KEYS]
    wait_until(lambda: is_refused(client.ask('GET', KEYS[0]), 'NO_PARTICIPANTS'), what='a host that has learned that it is out')


def test_a_full_host_passes_on(hosts):
    a, = hosts.begin('a', megabytes=1, limit_namespace_records_mb=0)
    b, = hosts.begin('b', megabytes=4, limit_namespace_records_mb=0)
    hosts.knows(a, b)
    client, value = b.redis(), 'x' * 40000
    for number in range(60):  # together more than the first one has
        assert until_known(client, 'SET', f'large{number}', value) == 'OK'
    assert {until_known(client, 'GET', f'large{number}') for number in range(60)} == {value.encode()}

    names = (f'more{number}' for number in range(10000))
    wait_until(lambda: is_refused(client.ask('SET', next(names), value, 'NX'), 'OOM'), what='a full memory')
    assert {until_known(client, 'GET', f'large{number}') for number in range(60)} == {value.encode()}, 'no living record is dropped'


def test_a_stranger_is_refused(hosts):
    a, b = hosts.begin('a', 'b')
    hosts.knows(a, b)
    stranger = Host(hosts, 'c')
    hosts.all.append(stranger)
    stranger.start()
    wait_until(lambda: 'takes no part' in stranger.log.read_text(), what='a host that z does not let in')
    answer = stranger.redis().ask('GET', 'k')
    assert is_refused(answer, 'NO_PARTICIPANTS')
    certificate = stranger.path / 'certificate'
    subprocess.run(['openssl', 'req', '-x509', '-new', '-key', stranger.key, '-subj', '/CN=x', '-out', certificate], check=True, capture_output=True)
    for shows in (True, False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if shows:
            context.load_cert_chain(certificate, stranger.key)
        with contextlib.suppress(ssl.SSLError, ConnectionError), socket.create_connection(('127.0.0.1', a.port)) as plain:
            with context.wrap_socket(plain) as line:
                line.sendall(bytes(200))
                assert line.recv(1) == b''
    wait_until(lambda: f'fingerprint={stranger.fingerprint}' in a.log.read_text(), what='a refusal with the fingerprint')
    client = a.redis()
    assert until_known(client, 'SET', 'k', 'v') == 'OK' and until_known(b.redis(), 'GET', 'k') == b'v'


def test_commands_of_the_administrator(hosts):
    host = Host(hosts, 'site.a')
    hosts.all.append(host)
    host.add()
    for words, what in [(['add', 'site.a', '127.0.0.1:1', 'a' * 64], 'there is a host'), (['add', 'b', '127.0.0.1:1', 'b' * 64], 'number of levels'),
                        (['add', 'site.b', '127.0.0.1:1', 'no'], 'host_fingerprint_check'), (['add', 'site.b', 'db.example:7412', 'b' * 64], 'in numbers'), (['remove', 'site.b'], 'no such host')]:
        assert what in hosts.stack.admin('host', *words, status=1).error, words
    host.start()
    hosts.knows(host)
    assert 'take part' in hosts.stack.admin('host', 'terms', '--copies', '2', status=1).error
    host.end()
    hosts.stack.admin('host', 'remove', 'site.a', '--lost')
    assert hosts.listed() == {}
    assert hosts.stack.admin('host', 'terms', '--copies', '2').out == f'copies 2, ttl {TTL_S} s\n'


def test_a_host_that_takes_no_part_says_so(hosts):
    assert record(hosts.stack, {'do': 'get', 'key': 'k'}, {'do': 'set', 'key': 'k', 'value': 1}) == [{'state': 'NO_PARTICIPANTS'}] * 2

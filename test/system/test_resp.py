"""RESP of stamp-journal: the commands, the rights and terms of keys, hostile bytes, and Redis of Debian compared reply by reply."""
import contextlib
import random
import select
import signal
import struct
import subprocess
import sys
import time

import pytest

from journal_world import (ALL, BOOLEAN, Client, DATA, GET, LOCK, OFF, ON, READONLY, SET, SOME, STACK, UNLOCK, back_on, integer, journal, set_conf, text)
from resp_world import Redis, Refused, redis_server, request
from stack import PATIENCE_S, wait_until


@pytest.fixture
def client(journal):
    client = Redis(journal.socket)
    for key in scan(client):
        client.ask('DEL', key)
    yield client
    client.close()


@pytest.fixture(scope='module')
def peer():
    with redis_server() as path:
        yield path


def scan(client, *options):
    cursor, keys = '0', []
    while True:
        cursor, page = client.ask('SCAN', cursor, *options)
        cursor, keys = cursor.decode(), keys + page
        if cursor == '0':
            return keys


# --- beside Redis ---

KEYS = ['a', 'b', 'c{1}', 'd:1', 'ü']
VALUES = ['', 'text', '0', '7', '-12', '007', '1.5', ' 3', '3.0e2', '9223372036854775807', '0x10', 'inf', 'nan', 'é', b'\xff\x00\r\n']
NUMBERS = ['1', '-1', '0', '5', '10', '-3', '9223372036854775807', '-9223372036854775808', '9223372036854775808', '01', 'x', '', '1.5']


def drawn(draw):
    """One command."""
    key, value, number = draw.choice(KEYS), draw.choice(VALUES), draw.choice(NUMBERS)
    far = str(draw.choice([1000, 5000, 90000]))

    def end():
        kind = draw.choice(['EX', 'PX', 'EXAT', 'PXAT', 'KEEPTTL'])
        amount = {'EX': far, 'PX': far + '000', 'EXAT': str(int(time.time()) + int(far)), 'PXAT': str((int(time.time()) + int(far)) * 1000), 'KEEPTTL': None}[kind]
        amount = draw.choice(['0', '-1', 'x']) if amount and draw.random() < 0.1 else amount
        return [kind] + [amount] * bool(amount)

    def options():
        return draw.choice([[], ['NX'], ['XX'], ['GET'], ['xx', 'get'], ['NX', 'GET'], ['NX', 'XX'], ['what']]) + (end() if draw.random() < 0.5 else []) + (end() if draw.random() < 0.05 else [])

    def conditions():
        return draw.sample(['NX', 'XX', 'GT', 'LT', 'no'], draw.choice([0, 0, 0, 1, 1, 2]))
    return draw.choice([
        lambda: ['SET', key, value, *options()], lambda: ['SET', key, value, *options()], lambda: ['GET', key], lambda: ['GETSET', key, value],
        lambda: ['MGET', *draw.choices(KEYS, k=3)], lambda: ['MSET', key, value, draw.choice(KEYS), draw.choice(VALUES), *draw.choice([[], [], ['b']])],
        lambda: [draw.choice(['DEL', 'EXISTS', 'UNLINK']), *draw.choices(KEYS, k=2)], lambda: [draw.choice(['INCR', 'DECR', 'incr']), key],
        lambda: [draw.choice(['INCRBY', 'DECRBY']), key, number], lambda: ['INCRBYFLOAT', key, draw.choice(['1', '0.1', '-2.5', '1e3', '3.0e-5', 'x', '', ' 1', 'nan', 'inf'])],
        lambda: [draw.choice(['EXPIRE', 'Expire']), key, draw.choice([far, far, '0', '-5', 'x']), *conditions()], lambda: ['PEXPIRE', key, far + '000', *conditions()],
        lambda: ['EXPIREAT', key, draw.choice([str(int(time.time()) + int(far)), '1', '0', '-1']), *conditions()],
        lambda: ['PEXPIREAT', key, str((int(time.time()) + int(far)) * 1000), *conditions()], lambda: [draw.choice(['TTL', 'PTTL']), key], lambda: ['PERSIST', key],
        lambda: ['TYPE', key], lambda: ['RENAME', key, draw.choice(KEYS)], lambda: ['SETNX', key, value], lambda: ['SETEX', key, draw.choice([far, '0', 'x']), value],
        lambda: ['PSETEX', key, far + '000', value], lambda: draw.choice([['PING'], ['PING', 'x'], ['ECHO', 'x'], ['SELECT', '0'], ['SELECT', 'x1'][:1]]),
        lambda: [draw.choice(['GET', 'SET', 'INCRBY', 'EXPIRE', 'TTL', 'RENAME', 'MSET', 'DEL', 'ECHO', 'SCAN'])], lambda: ['LPUSH', key, value], lambda: ['FLUSHALL']
        if draw.random() < 0 else ['WHATEVER', 'one', 'two']])()


def same(own, other, command):
    """The same reply, but for the milliseconds between two servers."""
    if command[0].upper() in ('TTL', 'PTTL') and isinstance(own, int) and own > 0:
        return abs(own - other) < (100 if command[0] == 'TTL' else 100000)
    if command[0] == 'LPUSH':
        return isinstance(own, Refused) and own.startswith("ERR unknown command 'LPUSH', with args beginning with: ")
    return own == other and isinstance(own, Refused) == isinstance(other, Refused)


@pytest.mark.parametrize('seed', range(8))
def test_the_replies_are_those_of_redis(client, peer, seed):
    draw, other = random.Random(seed), Redis(peer, key=None)
    other.ask('FLUSHALL')
    history = []
    for _ in range(600):
        command = drawn(draw)
        history.append(command)
        if command[0] == 'LPUSH':
            assert same(client.ask(*command), None, command)
            continue
        own, expected = client.ask(*command), other.ask(*command)
        assert same(own, expected, command), (own, expected, history[-12:])
        if draw.random() < 0.05:
            assert sorted(scan(client)) == sorted(scan(other)), history[-12:]
    other.close()


@pytest.mark.parametrize('pattern', ['*', 'a*', '*1', 'k?', 'k[1-3]', 'k[^1-3]', r'k\*', 'k[', 'k[a-', '[a-c]?', '', 'k**2', r'a\\b', '*[*', 'k[]1]', r'k[\]]', 'K*', 'k[3-1]'])
def test_patterns_are_those_of_redis(client, peer, pattern):
    other = Redis(peer, key=None)
    other.ask('FLUSHALL')
    for key in ['a', 'k1', 'k2', 'k3', 'k4', 'k*', 'k[', 'k]', r'a\b', 'bb', 'ab', 'k', 'k12', 'é', 'k^', 'k-']:
        assert client.ask('SET', key, 'x') == other.ask('SET', key, 'x') == 'OK'
    for options in ([], ['COUNT', 2], ['TYPE', 'string'], ['TYPE', 'list']):
        assert sorted(scan(client, 'MATCH', pattern, *options)) == sorted(scan(other, 'MATCH', pattern, *options))
    other.close()


def test_lines_are_those_of_redis(client, peer):
    other = Redis(peer, key=None)
    for line in (b'PING\r\n', b'set a "b c"\r\n', b'get a\n', b"set a 'it\\'s'\r\n", b'get a\r\n', b'set "a\\x41" "\\n\\t\\q"\r\n', b'get aA\r\n', b'\r\n\r\necho   x  \r\n', b'*0\r\nPING\r\n'):
        client.socket.sendall(line)
        other.socket.sendall(line)
        assert client.reply() == other.reply(), line
    for line in (b'get "a\r\n', b'get "a"b\r\n', b'*x\r\n', b'*1\r\n$x\r\n', b'*1\r\n+PING\r\n', b'*99999999\r\n', b'*1\r\n$-5\r\n'):
        own, reply = Redis(client.place), []
        own.socket.sendall(line)
        assert own.reply().startswith('ERR Protocol error: ') and own.ended(), line
    other.close()


# --- who may do what ---

def test_who_is_there(journal):
    stranger = Redis(journal.socket, key=None)
    for command in (['PING'], ['GET', 'a'], ['SUBSCRIBE', '__keyspace@0__:a'], ['SELECT', '0'], ['CLIENT', 'ID'], ['WHATEVER'], ['COMMAND'], ['INFO'], ['SCAN', '0']):
        assert stranger.ask(*command) == 'NOAUTH Authentication required.'
    assert stranger.ask('CLIENT', 'SETINFO', 'LIB-NAME', 'x') == 'OK' and stranger.ask('HELLO', '3').startswith('NOAUTH HELLO')
    assert stranger.ask('HELLO', '4').startswith('NOPROTO') and stranger.ask('AUTH', 'lab', ALL) == 'OK' and stranger.ask('GET', 'no') is None
    hello = stranger.ask('HELLO', '3', 'SETNAME', 'one')
    assert hello[b'proto'] == 3 and hello[b'mode'] == b'standalone' and stranger.ask('CLIENT', 'GETNAME') == b'one'
    assert b'name=one' in stranger.ask('CLIENT', 'INFO') and b'lib-name=x' in stranger.ask('CLIENT', 'INFO') and b'user=lab' in stranger.ask('CLIENT', 'INFO')
    assert stranger.ask('CLIENT', 'LIST').startswith('ERR unknown subcommand') and stranger.ask('QUIT') == 'OK' and stranger.ended()
    for words in (['lab', 'wrong'], ['wrong'], ['noone', ALL]):
        other = Redis(journal.socket, key=None)
        other.socket.sendall(request('AUTH', *words) + request('PING'))
        assert other.reply().startswith('WRONGPASS') and other.ended()
    alone = Redis(journal.socket, key=None)
    assert alone.ask('AUTH', ALL) == 'OK' and alone.ask('PING') == 'PONG'


def test_namespaces(journal, client):
    assert client.ask('SET', 'here', 'x') == client.ask('SELECT', 'demo') == client.ask('SELECT', 'lab') == 'OK'
    assert client.ask('SELECT', 'z').startswith('NOPERM') and client.ask('SELECT', '1') == 'ERR DB index is out of range' and client.ask('GET', 'here') == b'x'
    config = journal.path / 'numbers.conf'
    config.write_text(journal.stack.config.read_text() + 'journal_databases = demo, lab\n')
    process, second = journal.begin_second(config)
    other = Redis(journal.second, key=None)
    assert other.ask('AUTH', ALL) == 'OK' and b'user=demo' in other.ask('CLIENT', 'INFO') and other.ask('SELECT', '2') == 'ERR DB index is out of range'
    assert other.ask('SELECT', '1') == 'OK' and other.ask('GET', 'here') == b'x' and b'db=1' in other.ask('CLIENT', 'INFO')
    process.terminate()
    process.wait(PATIENCE_S)


WRITES = [['SET', 'K', 'v'], ['GETSET', 'K', 'v'], ['MSET', 'K', 'v'], ['DEL', 'K'], ['UNLINK', 'K'], ['INCR', 'K'], ['DECR', 'K'], ['INCRBY', 'K', '2'], ['DECRBY', 'K', '2'],
          ['INCRBYFLOAT', 'K', '1'], ['EXPIRE', 'K', '1000'], ['PEXPIRE', 'K', '1000'], ['EXPIREAT', 'K', '9999999999'], ['PEXPIREAT', 'K', '1'], ['PERSIST', 'K'],
          ['RENAME', 'K', 'K'], ['SETNX', 'K', 'v'], ['SETEX', 'K', '100', 'v'], ['PSETEX', 'K', '100000', 'v']]
READS = [['GET', 'K'], ['MGET', 'K'], ['EXISTS', 'K'], ['TTL', 'K'], ['PTTL', 'K'], ['TYPE', 'K']]


def of(commands, key):
    return [[key if word == 'K' else word for word in command] for command in commands]


def test_rights(journal, client):
    assert set(client.ask('COMMAND', 'LIST')) == {command[0].lower().encode() for command in WRITES + READS} | set(
        b'auth client command echo hello info ping psubscribe punsubscribe quit scan select subscribe unsubscribe'.split())
    some = Redis(journal.socket, key=SOME)
    for command in of(WRITES, 'open.a') + of(WRITES + READS, 'secret') + [['SCAN', '0'], ['MGET', 'open.a', 'secret'], ['MSET', 'mine.a', '1', 'secret', '1'], ['DEL', 'mine.a', 'secret'],
                                                                        ['RENAME', 'mine.a', 'open.a'], ['RENAME', 'open.a', 'mine.a']]:
        assert some.ask(*command).startswith('NOPERM'), command
    for command in of(READS, 'open.a') + of(WRITES + READS, 'mine.a'):
        assert not isinstance(some.ask(*command), Refused) or command[0] in ('RENAME', 'INCR', 'DECR', 'INCRBY', 'DECRBY'), command
    for key in (b'', b'\xff', b'a\0b', b'x' * 1025):
        for command in of(WRITES + READS, key):
            assert client.ask(*command).startswith('KEY_FORM'), command


def test_states_quotas_and_locks(journal, back_on, client):
    assert client.ask('SET', 'K', '1') == 'OK'
    set_conf(back_on, state=READONLY, message='Until noon.')
    for command in WRITES:
        assert client.ask(*command) == 'OREADONLY Until noon.', command
    assert not any(isinstance(client.ask(*command), Refused) for command in READS)
    set_conf(back_on, state=OFF, message='Gone.')
    for command in WRITES + READS + [['SCAN', '0'], ['SUBSCRIBE', '__keyspace@0__:K']]:
        assert client.ask(*command) == 'OOFF Gone.', command
    set_conf(back_on, state=ON, message=None)
    binary = Client(journal.socket)
    assert binary.error(LOCK, 'K', timeout=600000) == ''
    for command in WRITES:
        if command[0] not in ('SETNX',):
            assert client.ask(*command).startswith('LOCKED'), command
    assert client.ask('GET', 'K') == b'1'
    assert binary.error(UNLOCK, 'K') == ''
    set_conf(back_on, quotas={'namespace': {'requests': '1000/d, burst 5', 'writes': '100/d, burst 2'}})
    assert [client.ask('MSET', *['K', '1'] * 50) for _ in range(2)] == ['OK', 'OK'] and client.ask('INCR', 'K').startswith('XBUSY ')  # a command is one request
    assert [isinstance(client.ask('MGET', 'K', 'a'), Refused) for _ in range(4)] == [False, False, False, True]


def test_terms(journal):
    journal.write_keys(('lab', 'write', ALL), ('demo', 'write', ALL), ('nowhere', 'write', ALL), ('lab', 'read', SOME, 'open.'), ('lab', 'write', SOME, 'mine.'),
                       ('lab', 'write', 'short', 's.', 'ttl_ms=1000000 ttl_most_ms=5000000 records=3'), ('lab', 'write', 'kept', 'k.', 'persist=1'))
    journal.process.send_signal(signal.SIGHUP)

    def enters():
        other = Redis(journal.socket, key=None)
        return other.ask('AUTH', 'lab', 'short') == 'OK' and other
    wait_until(lambda: enters())
    short = enters()
    assert short.ask('SET', 's.a', '1') == 'OK' and 0 < short.ask('PTTL', 's.a') <= 1000000
    for command in (['SET', 's.a', '1', 'EX', '6000'], ['SETEX', 's.a', '6000', 'x'], ['EXPIRE', 's.a', '6000'], ['PEXPIREAT', 's.a', str(int(time.time() + 9000) * 1000)], ['PERSIST', 's.a'],
                    ['SET', 's.a', '1', 'GET', 'PX', '6000000']):
        assert short.ask(*command).startswith('TIMEOUT'), command
    assert short.ask('EXPIRE', 's.a', '4000') == 1 and short.ask('SET', 's.a', '2', 'KEEPTTL') == 'OK' and short.ask('PTTL', 's.a') > 1000000
    assert short.ask('INCR', 's.a') == 3 and short.ask('PTTL', 's.a') > 1000000 and short.ask('INCR', 's.b') == 1 and 0 < short.ask('PTTL', 's.b') <= 1000000
    assert short.ask('MSET', 's.c', '1', 's.d', '1').startswith('OUT_OF_SHARE') and short.ask('MGET', 's.c', 's.d') == [b'1', None]
    kept = Redis(journal.socket, key='kept')
    other = Redis(journal.socket)

    def on_disk(key):
        return journal.stack.op('lab', 'record', {'commands': [{'do': 'get', 'key': key}]}, admin=True)['out']['results'][0].get('persist', False)
    assert kept.ask('SET', 'k.a', '1') == kept.ask('MSET', 'k.b', '1') == 'OK' and kept.ask('INCR', 'k.c') == 1 and other.ask('SET', 'k.d', '1') == 'OK'
    assert other.ask('SET', 'k.a', '2') == 'OK' and other.ask('INCR', 'k.a') == 3 and [on_disk(f'k.{key}') for key in 'abcd'] == [True, True, True, False]


# --- what differs ---

def test_types_of_the_store(journal, client):
    binary = Client(journal.socket)
    for key, value in (('i', integer(-5)), ('f', (4, struct.pack('>d', 0.1))), ('b', (BOOLEAN, b'\1')), ('v', (0, b'')), ('s', text('10'))):
        assert binary.error(SET, key, value) == ''
    assert client.ask('MGET', *'ifbvs') == [b'-5', b'0.1', b'1', b'', b'10']
    assert client.ask('INCR', 'i') == -4 and client.ask('INCR', 's') == 11 and client.ask('INCRBYFLOAT', 'f', '0.2') == b'0.3'
    assert [binary.ask(GET, key, flags=DATA)['records'][0][1:] for key in 'is'] == [integer(-4), integer(11)]
    assert all(client.ask('INCR', key) == 'ERR value is not an integer or out of range' for key in 'bvf')
    assert client.ask('SET', 'i', b'\xff') == 'OK' and client.ask('GET', 'i') == b'\xff' and client.ask('SET', 'big', 'x' * 100000) == 'OK'
    assert journal.stack.op('lab', 'record', {'commands': [{'do': 'get', 'key': 's'}]}, admin=True)['out']['results'][0]['value'] == 11
    assert client.ask('SET', 'huge', 'x' * 100001).startswith('ERR Protocol error') and client.ended()


def test_what_differs(journal, client):
    binary = Client(journal.socket)
    assert client.ask('SET', 'a', '1') == 'OK' and client.ask('EXPIRE', 'a', '999999999999') == "ERR invalid expire time in 'expire' command"
    assert client.ask('DEL', 'a') == 1 and binary.error(SET, 'a', text('older'), timestamp=int(time.time() * 1e6) - 10**9) == 'OLDER'
    journal.stack.op('lab', 'record', {'commands': [{'do': 'set', 'key': 'one', 'keys': ['other'], 'value': 'x'}]}, admin=True)
    assert client.ask('DEL', 'one') == 1 and client.ask('GET', 'other') is None
    replies = [client.ask('SET', f'large{number}', 'x' * 90000) for number in range(20)]
    assert replies[0] == 'OK' and replies[-1].startswith('OOM ') and client.ask('GET', 'large0') == b'x' * 90000
    assert client.ask('DEL', 'large0') == 1 and client.ask('SET', 'large0', 'x' * 80000) == 'OK'


def test_many_keys_in_parts(client):
    keys = [f'k{i}' for i in range(1000)]
    assert client.ask('MSET', *[word for key in keys for word in (key, 'x' * 200)]) == 'OK'
    assert client.ask('MGET', *keys) == [b'x' * 200] * 1000 and client.ask('EXISTS', *keys) == 1000
    assert client.ask('MGET', *keys, 'one more') == 'ERR a command has at most 1000 keys'
    assert sorted(scan(client, 'COUNT', 7)) == sorted(key.encode() for key in keys) and client.ask('DEL', *keys) == 1000
    assert client.ask('SET', 'large', 'x' * 90000) == 'OK'  # more than what is kept for a client that does not read
    assert client.ask('MGET', *['large'] * 1000) == [b'x' * 90000] * 1000


def test_cursors(journal, client):
    for i in range(100):
        client.ask('SET', f'k{i:02}', 'x')
    cursor, page = client.ask('SCAN', '0', 'COUNT', '10')
    other = Redis(journal.socket)  # of the same key: clients have several connections
    assert len(page) == 10 and other.ask('SCAN', cursor, 'COUNT', '5') == [other_cursor := other.ask('SCAN', cursor, 'COUNT', '5')[0], [b'k%02d' % i for i in range(10, 15)]]
    for key in page + [b'k14']:
        client.ask('DEL', key)  # also the key of the cursor
    assert client.ask('SCAN', other_cursor, 'COUNT', '3')[1] == [b'k15', b'k16', b'k17']
    for wrong in ('x', '-1', '77777777', '1', '01'):
        assert client.ask('SCAN', wrong) == 'ERR invalid cursor'
    cursors = [client.ask('SCAN', '0')[0] for _ in range(40)]
    assert len(set(cursors)) == 40 and client.ask('SCAN', cursors[0]) == 'ERR invalid cursor' and len(client.ask('SCAN', cursors[-1])[1]) == 10
    assert all(int(cursor) < 2**53 for cursor in cursors)


def test_several_connections_count_together(journal, client):
    clients = [Redis(journal.socket) for _ in range(4)]
    for each in clients:
        each.socket.sendall((request('INCR', 'n') + request('INCRBYFLOAT', 'f', '0.5') + request('SET', 'lock', 'x', 'NX')) * 500)
    process, second = journal.begin_second()
    other = Redis(journal.second)
    for _ in range(500):
        other.ask('INCRBYFLOAT', 'f', '0.5')
    replies = [[each.reply() for _ in range(1500)] for each in clients]
    assert sorted(n for each in replies for n in each[::3]) == list(range(1, 2001)) and client.ask('GET', 'f') == b'1250'
    assert [n for each in replies for n in each[2::3]].count('OK') == 1
    process.terminate()
    process.wait(PATIENCE_S)


# --- messages ---

def test_notifications(journal, client):
    listener, old = Redis(journal.socket, version=3), Redis(journal.socket)
    assert listener.ask('SUBSCRIBE', '__keyspace@0__:a', '__keyevent@lab__:del') == [b'subscribe', b'__keyspace@0__:a', 1]
    assert old.ask('PSUBSCRIBE', '__key*@0__:*') == [b'psubscribe', b'__key*@0__:*', 1]
    assert listener.reply()[2] == 2
    assert old.ask('GET', 'a').startswith("ERR Can't execute 'get'") and old.ask('PING') == [b'pong', b'']
    assert old.ask('SUBSCRIBE', 'news').startswith('ERR only the channels')
    assert client.ask('SET', 'a', '1') == 'OK'
    assert old.reply() == [b'pmessage', b'__key*@0__:*', b'__keyspace@0__:a', b'set'] and old.reply() == [b'pmessage', b'__key*@0__:*', b'__keyevent@0__:set', b'a']
    assert listener.reply() == [b'message', b'__keyspace@0__:a', b'set'] and listener.ask('GET', 'a') == b'1'
    assert client.ask('DEL', 'a') == 1
    assert [listener.reply(), listener.reply()] == [[b'message', b'__keyspace@0__:a', b'del'], [b'message', b'__keyevent@lab__:del', b'a']]
    assert old.reply()[3] == b'del' and old.reply()[2] == b'__keyevent@0__:del'
    assert client.ask('SET', 'b', '1', 'PX', '1') == 'OK'
    wait_until(lambda: client.ask('GET', 'b') is None)
    while old.reply()[2:] != [b'__keyevent@0__:del', b'b']:
        pass
    old.send('PUNSUBSCRIBE')
    while (reply := old.reply())[0] == b'pmessage':
        pass
    assert reply == [b'punsubscribe', b'__key*@0__:*', 0] and old.ask('UNSUBSCRIBE') == [b'unsubscribe', None, 0] and old.ask('PING') == 'PONG'
    some = Redis(journal.socket, key=SOME)
    assert some.ask('PSUBSCRIBE', '*')[2] == 1
    assert client.ask('MSET', 'secret', '1', 'open.a', '1') == 'OK' and some.reply()[2:] == [b'__keyspace@0__:open.a', b'set']


def test_a_listener_that_is_overtaken_ends(journal, client):
    listener = Redis(journal.socket)
    assert listener.ask('PSUBSCRIBE', '*')[2] == 1
    writer = Redis(journal.socket)

    def write():
        writer.socket.sendall(request('SET', 'x' * 900, '1') * 400)
        assert all(writer.reply() == 'OK' for _ in range(400))
    poll = select.poll()
    poll.register(listener.socket, select.POLLRDHUP)  # not what it does not read

    def has_ended():
        write()
        return any(event & (select.POLLHUP | select.POLLRDHUP) for _, event in poll.poll(0))
    wait_until(has_ended)


# --- hostile bytes ---

@pytest.mark.parametrize('wrong', [b'*3000000000\r\n', b'*2049\r\n', b'*1\r\n$-1\r\n', b'*1\r\n$999999999999\r\n', b'*1\r\n*1\r\n*1\r\n', b'*1\r\n$3\r\nGETxx', b'*' + b'1' * 40, b'$3\r\nGET\r\n' * 3000,
                                   b'*2\r\n$3\r\nGET\r\n:1\r\n', b'x' * 20000, b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', b'POST / HTTP/1.1\r\n', b'"\r\n'])
def test_what_is_no_request_ends_the_connection_and_nothing_else(journal, client, wrong):
    other, stranger = Redis(journal.socket), Redis(journal.socket, key=None)
    for each in (other, stranger):
        with contextlib.suppress(EOFError, ConnectionError):
            each.socket.sendall(wrong + b'\r\nQUIT\r\n')
            while True:
                assert isinstance(reply := each.reply(), Refused) or reply == 'OK'
    assert client.ask('PING') == 'PONG'


def test_half_requests_and_long_pipelines(journal, client):
    commands = request('SET', 'a', 'é x') + request('GET', 'a') + b'GET "a"\r\n' + request('MGET', 'a', 'no')
    for cut in range(1, len(commands)):
        client.socket.sendall(commands[:cut])
        client.socket.sendall(commands[cut:])
        assert [client.reply() for _ in range(4)] == ['OK', 'é x'.encode(), 'é x'.encode(), ['é x'.encode(), None]]
    client.socket.sendall(request('INCR', 'n') * 10000)
    assert [client.reply() for _ in range(10000)] == list(range(1, 10001))
    client.socket.sendall(commands[:20])
    other = Redis(journal.socket)
    assert other.ask('GET', 'a') == 'é x'.encode()


def test_over_tls(journal, client):
    remote = Redis(journal)
    assert remote.ask('SET', 'a', 'x' * 50000) == 'OK' and remote.ask('GET', 'a') == client.ask('GET', 'a') == b'x' * 50000


def test_the_log_has_no_keys_and_no_values(journal, client):
    assert client.ask('SET', 'a-key-of-mine', 'a-value-of-mine') == 'OK' and client.ask('NOTHING', 'a-key-of-mine').startswith('ERR unknown command')
    assert 'of-mine' not in journal.log.read_text() and ALL not in journal.log.read_text()


# --- programs ---

def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE_S, **more)


def test_redis_cli(journal, client):
    def cli(*words, **more):
        done = run('redis-cli', '-s', journal.socket, '--user', 'lab', '--pass', ALL, '--no-auth-warning', *words, **more)
        assert done.returncode == 0, done
        return done.stdout
    assert cli('SET', 'a', '1') == 'OK\n' and cli('GET', 'a') == '1\n' and cli('-3', 'GET', 'a') == '1\n' and cli('--scan') == 'a\n'
    assert cli(input='set b 2\nmget a b\n') == 'OK\n1\n2\n' and cli('FLUSHALL').startswith("ERR unknown command 'FLUSHALL'")
    assert cli('--pipe', input=request('SET', 'c', '3').decode()).splitlines()[-1] == 'errors: 0, replies: 1'


def test_redis_benchmark(journal, client):
    done = run('redis-benchmark', '-s', journal.socket, '--user', 'lab', '-a', ALL, '-q', '-n', '2000', '-c', '20', '-P', '4', '-t', 'ping,set,get,incr,mset')
    assert done.returncode == 0 and done.stdout.count('requests per second') == 6, done


PYTHON = '''
import sys, redis
client = redis.Redis(unix_socket_path=sys.argv[1], username='lab', password=sys.argv[2], decode_responses=True, client_name='py')
assert client.ping() and client.set('a', 1) and client.get('a') == '1' and client.incr('a', 5) == 6 and client.decr('a') == 5
assert client.set('a', 'x', nx=True) is None and client.set('a', 'y', xx=True, get=True) == '5' and client.getset('a', 'z') == 'y'
assert client.mset({'b': 1, 'c': 2}) and client.mget('a', 'b', 'no') == ['z', '1', None] and client.expire('b', 1000) and 990 < client.ttl('b') <= 1000
assert client.persist('b') and client.ttl('b') == -1 and client.ttl('no') == -2 and client.rename('b', 'd') and client.type('d') == 'string'
assert sorted(client.scan_iter('*', count=1)) == ['a', 'c', 'd'] and client.exists('a', 'no') == 1 and client.incrbyfloat('f', 0.5) == 0.5
assert client.client_getname() == 'py' and client.client_id() and client.info()['loading'] == 0 and client.command_count() > 20
with client.pipeline(transaction=False) as pipeline:
    assert pipeline.set('p', 1).incr('p').get('p').execute() == [True, 2, '2']
listener = client.pubsub()
listener.psubscribe('__keyspace@0__:*')
assert listener.get_message(timeout=60)['type'] == 'psubscribe' and client.delete('p') == 1
message = listener.get_message(timeout=60)
assert (message['channel'], message['data']) == ('__keyspace@0__:p', 'del')
try:
    client.flushall()
    assert False
except redis.ResponseError as error:
    assert 'unknown command' in str(error)
'''


def test_python3_redis(journal, client):
    if run(sys.executable, '-c', 'import redis').returncode:
        pytest.skip('there is no python3-redis')
    done = run(sys.executable, '-c', PYTHON, journal.socket, ALL)
    assert done.returncode == 0, done.stderr

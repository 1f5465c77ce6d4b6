"""Spools: requests that stamp-forward brings are stored once, whatever dies, is lost, copied or repeated."""
import contextlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading

import pytest
import requests

from stack import BUILD, PATIENCE_S, refused, wait_until

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'team': 'rules'}, 'settings': {'limit_spool_records': 50}}
SERIES = 'ab' * 16


LIBRARY = BUILD / 'libstampd-spool.so.0'
PRODUCER = """
import ctypes, json, sys

class Request(ctypes.Structure):
    _fields_ = [('ns', ctypes.c_char_p), ('operation', ctypes.c_char_p), ('param', ctypes.c_char_p), ('param_size', ctypes.c_size_t),
                ('resource', ctypes.c_char_p), ('domain', ctypes.c_char_p), ('info', ctypes.c_char_p), ('start', ctypes.c_int64),
                ('priority', ctypes.c_int), ('is_strict', ctypes.c_int), ('traceparent', ctypes.c_char_p), ('tracestate', ctypes.c_char_p)]

library, spool = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
assert library.stampd_spool_open(sys.argv[2].encode(), 1, ctypes.byref(spool)) == 0
for number in json.loads(sys.argv[3]):
    param = json.dumps({'docs': [{'c': 'Spooled', 'id': str(number), 'items': [{'c': 'N', 'j': number}]}]}).encode()
    more = {name: value.encode() if isinstance(value, str) else value for name, value in json.loads(sys.argv[4]).items()}
    request = Request(param=param, param_size=len(param), info=f'n{number}'.encode(), priority=20, **more)
    assert library.stampd_spool_put(spool, ctypes.byref(request), None) == 0
library.stampd_spool_close(spool)
"""


def producer_environment():
    """A library with the address sanitizer needs its runtime before all others."""
    if b'__asan_init' not in LIBRARY.resolve().read_bytes():
        return None
    runtime = subprocess.run(['gcc', '-print-file-name=libasan.so'], capture_output=True, text=True, check=True).stdout.strip()
    return {**os.environ, 'LD_PRELOAD': runtime, 'ASAN_OPTIONS': 'detect_leaks=0'}


def put_many(folder, numbers, ns='lab', op='put', **more):
    """By the shared library, as a program does it."""
    words = {'ns': ns, 'operation': op, **more}
    done = subprocess.run(['/usr/bin/python3', '-c', PRODUCER, LIBRARY, folder, json.dumps(list(numbers)), json.dumps(words)],
                          env=producer_environment(), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def run_spool(folder, *words, status=0):
    done = subprocess.run([BUILD / 'src/stamp-spool', *words, '-s', folder], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == status, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()] if status == 0 else done.stderr


def state(folder):
    return run_spool(folder, 'list', '-n', '0')[0]


@pytest.fixture
def spool(stack, tmp_path):
    stack.psql('lab', 'truncate taskqueue, task_history, spool_series, spool_record')
    folder = tmp_path / 'spool'
    run_spool(folder, 'create')
    return folder


def settings(stack, folder, url=None, key=None, **more):
    key_file = folder.parent / f'{folder.name}.key'
    key_file.write_text((key or stack.key) + '\n')
    path = folder.parent / f'{folder.name}.conf'
    values = {'url': url or stack.url, 'key_file': key_file, 'ca_file': stack.path / 'etc/certificate.pem', 'spool': folder, 'batch_records': 20,
              'backoff_s': 1, **more}
    path.write_text('# a forwarder\n' + ''.join(f'{name} = {value}\n' for name, value in values.items()))
    return path


def begin(stack, folder, *words, die_at=None, **more):
    environment = {**os.environ, **({'STAMPD_SPOOL_DIE_AT': str(die_at)} if die_at else {})}
    return subprocess.Popen([BUILD / 'src/stamp-forward', '-c', settings(stack, folder, **more), *words], env=environment, stderr=subprocess.PIPE, text=True)


def forward(stack, folder, status=0, **more):
    process = begin(stack, folder, '--until-empty', **more)
    _, log = process.communicate(timeout=PATIENCE_S)
    assert status is None or process.returncode == status, log
    return process.returncode


def stored(stack, ns='lab'):
    """The numbers of the tasks, in the order in which they were made."""
    return [int(info[1:]) for info, in stack.psql(ns, 'select info from taskqueue order by number')]


def test_requests_become_tasks_in_their_order(stack, spool):
    put_many(spool, range(70), domain='d')
    assert run_spool(spool, 'list')[1]['domain'] == 'd'
    forward(stack, spool)
    assert stored(stack) == list(range(70))
    assert state(spool)['waiting'] == 0
    assert stack.psql('lab', 'select distinct opname, domain, priority from taskqueue') == [('put', 'd', 20)]
    assert stack.psql('lab', 'select count(*) from spool_record') == [(70,)]


def test_requests_bring_their_trace(stack, spool):
    """Each its own; what is malformed is dropped, and refuses nothing."""
    trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    put_many(spool, [1], traceparent=trace, tracestate='shop=1')
    put_many(spool, [2], traceparent=trace)
    put_many(spool, [3])
    put_many(spool, [4], traceparent='00-wrong', tracestate='shop=1')
    run_spool(spool, 'put', 'lab', 'put', '{"docs":[]}', '--info', 'n5', '--traceparent', trace, '--tracestate', 'a=1,a=2')
    listed = run_spool(spool, 'list')[1:]
    assert [record.get('tracestate') for record in listed] == ['shop=1', None, None, 'shop=1', 'a=1,a=2'] and listed[1]['traceparent'] == trace
    forward(stack, spool)
    assert stack.psql('lab', 'select info, trace from taskqueue order by number') == [
        ('n1', f'{trace} shop=1'), ('n2', trace), ('n3', None), ('n4', None), ('n5', trace)]


@contextlib.contextmanager
def stopped_with(path):
    """A process that has locked the file, and is stopped."""
    code = 'import fcntl, os, signal, sys; file = open(sys.argv[1], "r+"); fcntl.flock(file, fcntl.LOCK_EX); os.kill(os.getpid(), signal.SIGSTOP)'
    process = subprocess.Popen(['/usr/bin/python3', '-c', code, path])
    try:
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.wait(PATIENCE_S)


@pytest.mark.parametrize('name,words,status', [('lock', 'holds a lock of the spool; nothing was done', 1), ('synced', 'not known whether', 3)])
def test_a_writer_does_not_wait_for_a_process_that_is_stopped(spool, monkeypatch, name, words, status):
    run_spool(spool, 'put', 'lab', 'put', '{}')
    with stopped_with(spool / name):
        monkeypatch.setenv('STAMPD_SPOOL_LOCK_MS', '100')
        assert words in run_spool(spool, 'put', 'lab', 'put', '{}', status=status)
        monkeypatch.delenv('STAMPD_SPOOL_LOCK_MS')
        assert state(spool)['waiting'] == (2 if status == 3 else 1)
    assert run_spool(spool, 'put', 'lab', 'put', '{}') == [3 if status == 3 else 2]


def test_a_forwarder_goes_on_when_a_process_runs_again(stack, spool, monkeypatch):
    """It acknowledges nothing meanwhile, and keeps no dead letter."""
    put_many(spool, range(5))
    run_spool(spool, 'put', 'lab', 'put', '{not JSON}')
    monkeypatch.setenv('STAMPD_SPOOL_LOCK_MS', '100')
    with stopped_with(spool / 'position'):
        process = begin(stack, spool, '--until-empty')
        awaited = {'cannot note what the server has stored', 'cannot keep a dead letter'}
        while awaited:
            line = process.stderr.readline()
            assert line, awaited
            awaited -= {words for words in awaited if words in line and 'holds a lock' in line}
        assert process.poll() is None and state(spool)['waiting'] == 6
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert stored(stack) == list(range(5)) and state(spool)['waiting'] == 0 and state(spool)['dead'] == 1


def test_a_forwarder_waits_for_a_spool_that_cannot_be_repaired_yet(stack, spool, monkeypatch):
    put_many(spool, [1])
    (spool / 'board').unlink()
    monkeypatch.setenv('STAMPD_SPOOL_LOCK_MS', '100')
    with stopped_with(spool / 'lock'):
        process = begin(stack, spool, '--until-empty')
        assert 'waits for spool' in process.stderr.readline()
        ended = begin(stack, spool, '--until-empty')
        assert 'waits for spool' in ended.stderr.readline()
        ended.terminate()
        assert ended.wait(PATIENCE_S) == 0
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and stored(stack) == [1]


def put_lines(folder, lines, *words, status=0, **environment):
    """The numbers that are printed, and the error."""
    done = subprocess.run([BUILD / 'src/stamp-spool', 'put', '--lines', '-s', folder, 'lab', 'put', *words], input=lines.encode(), capture_output=True,
                          timeout=PATIENCE_S, env={**os.environ, **environment})
    assert done.returncode == status, done.stderr
    return [int(line) for line in done.stdout.splitlines()], done.stderr.decode()


def lines_of(numbers):
    return ''.join(json.dumps({'docs': [{'c': 'Spooled', 'id': str(number)}]}) + '\n' for number in numbers)


def number_of(record):
    return int(record['param']['docs'][0]['id'])


def put_params(folder):
    """The numbers in the params of the records, in their order."""
    records = run_spool(folder, 'list', '-n', '0')[0]['waiting']
    return [number_of(run_spool(folder, 'show', str(number + 1))[0]) for number in range(records)]


def test_lines_are_put_in_their_order(stack, spool):
    count = 2345
    assert put_lines(spool, lines_of(range(count)), '--domain', 'd', '--info', 'n7') == ([*range(1, count + 1)], '')
    listed = run_spool(spool, 'list', '-n', '3000')
    assert [record['number'] for record in listed[1:]] == [*range(1, count + 1)]
    assert {(record['domain'], record['info']) for record in listed[1:]} == {('d', 'n7')}
    assert [number_of(run_spool(spool, 'show', str(number))[0]) for number in (1, 1000, 1001, 2345)] == [0, 999, 1000, 2344]
    forward(stack, spool)
    assert stack.psql('lab', 'select count(*), count(distinct param) from taskqueue') == [(count, count)]


def test_lines_of_all_shapes(stack, spool):
    """Without an end of the last line, with spaces around it, as long as they may be; none at all."""
    assert put_lines(spool, '') == ([], '')
    first, second, third = lines_of([1, 2, 3]).splitlines()
    longest = second[:-1] + ' ' * (2**20 - len(second)) + '}'
    assert put_lines(spool, f'{first}\r\n{longest}\n  {third}  ') == ([1, 2, 3], '')
    assert put_params(spool) == [1, 2, 3]
    assert put_lines(spool, lines_of([4] * 3), '--written') == ([4, 5, 6], '')
    assert put_lines(spool, '', '{}', status=2)[0] == []


@pytest.mark.parametrize('wrong,words', [('nonsense', 'line 4: PARAM is not a JSON object'), ('', 'line 4: PARAM is not'),
                                         (f'{{"x":"{"x" * 2**20}"}}', 'line 4: PARAM is longer')], ids=['nonsense', 'empty', 'long'])
def test_a_wrong_line_ends_it(stack, spool, wrong, words):
    """What is printed is what is stored."""
    numbers, error = put_lines(spool, f'{lines_of(range(3))}{wrong}\n{lines_of(range(4, 9))}', status=1)
    assert numbers == [1, 2, 3] and words in error
    assert put_params(spool) == [0, 1, 2]


def test_lines_that_may_be_stored_are_named(stack, spool):
    """And no others: a wrong line and those behind it are not stored, whatever the disk does."""
    assert put_lines(spool, lines_of([0])) == ([1], '')
    with stopped_with(spool / 'synced'):
        numbers, error = put_lines(spool, f'{lines_of([1, 2])}nonsense\n{lines_of(range(4, 9))}', status=3, STAMPD_SPOOL_LOCK_MS='100')
    assert numbers == [] and 'lines 1 to 2 may be stored, or not' in error
    assert put_params(spool) == [0, 1, 2]


def test_lines_into_a_spool_that_becomes_full(stack, spool):
    small = spool.parent / 'small'
    run_spool(small, 'create', '--segment-bytes', '4096', '--limit-bytes', '16384')
    numbers, error = put_lines(small, lines_of(range(3000)), status=1)
    assert numbers == [*range(1, len(numbers) + 1)] and 50 < len(numbers) < 1000
    assert f'line {len(numbers) + 1}: the spool is full' in error
    assert put_params(small) == [*range(len(numbers))]


def test_each_line_is_put_as_soon_as_it_is_there(stack, spool):
    process = subprocess.Popen([BUILD / 'src/stamp-spool', 'put', '--lines', '-s', spool, 'lab', 'put'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for number in range(1, 4):
        line = lines_of([number]).encode()
        for part in (line[:9], line[9:]):
            process.stdin.write(part)
            process.stdin.flush()
        assert process.stdout.readline() == f'{number}\n'.encode()
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    process.stdout.close()
    assert put_params(spool) == [1, 2, 3]


def test_a_death_while_lines_are_put(stack, spool):
    """What was printed is there, and of the rest the first ones are."""
    step, last = 0, 0
    while True:
        step += 1
        done = subprocess.run([BUILD / 'src/stamp-spool', 'put', '--lines', '-s', spool, 'lab', 'put'], input=lines_of(range(3)).encode(),
                              capture_output=True, timeout=PATIENCE_S, env={**os.environ, 'STAMPD_SPOOL_DIE_AT': str(step)})
        printed = [int(line) for line in done.stdout.split()]
        found = put_params(spool)[last:]
        assert found in ([], [0, 1, 2]) and printed in ([], [last + 1, last + 2, last + 3])
        assert found or not printed
        last += len(found)
        if done.returncode == 0:
            break
        assert done.returncode == -9
    assert step > 8 and printed


def test_a_spool_of_an_earlier_version_is_refused(stack, spool):
    identity = spool / 'spool'
    identity.write_text(identity.read_text().replace('stampd spool 2', 'stampd spool 1'))
    assert 'earlier version' in run_spool(spool, 'put', 'lab', 'put', '{}', status=1)
    process = begin(stack, spool, '--until-empty')
    assert 'earlier version' in process.communicate(timeout=PATIENCE_S)[1] and process.returncode == 1


@pytest.mark.parametrize('wrong,words', [({'url': 'data.example.org'}, 'https://host'), ({'url': 'https://'}, 'https://host'), ({'url': 'https://h?a'}, 'https://host'),
                                         ({'key_file': '/nonexistent'}, 'cannot read key_file /nonexistent: No such file'),
                                         ({'key_file': '/dev/null'}, 'cannot read key_file /dev/null: its first line is empty'),
                                         ({'ca_file': '/nonexistent'}, 'cannot read ca_file /nonexistent'), ({'spool': '/nonexistent'}, 'cannot open spool /nonexistent')])
def test_settings_are_checked(stack, spool, wrong, words):
    process = begin(stack, spool, '--test', **wrong)
    assert words in process.communicate(timeout=PATIENCE_S)[1] and process.returncode == 1


def test_right_settings_are_right(stack, spool):
    """A test sends nothing, and works while another forwarder has the spool.  Slashes at the end of the address are no part of it."""
    put_many(spool, [1])
    process = begin(stack, spool, '--test', url=stack.url + '//')
    assert process.communicate(timeout=PATIENCE_S)[1] == '' and process.returncode == 0 and state(spool)['waiting'] == 1
    forward(stack, spool, url=stack.url + '//')
    assert stored(stack) == [1]


def test_a_forwarder_is_woken(stack, spool):
    process = begin(stack, spool)
    put_many(spool, [1])
    wait_until(lambda: stored(stack) == [1])
    put_many(spool, [2])
    wait_until(lambda: stored(stack) == [1, 2])
    wait_until(lambda: state(spool)['waiting'] == 0)
    assert state(spool)['forwarder']
    other = begin(stack, spool, '--until-empty')
    assert 'another forwarder holds it' in other.communicate(timeout=PATIENCE_S)[1] and other.returncode == 1
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


def test_copies_double_nothing_and_lose_nothing(stack, spool):
    put_many(spool, range(30))
    copy = spool.parent / 'copy'
    shutil.copytree(spool, copy)
    together = [begin(stack, folder, '--until-empty') for folder in (spool, copy)]
    assert [(process.communicate(timeout=PATIENCE_S), process.returncode)[1] for process in together] == [0, 0]
    assert sorted(stored(stack)) == list(range(30))
    restored = spool.parent / 'restored'
    shutil.copytree(copy, restored)
    put_many(spool, [101, 102])
    put_many(copy, [201, 202])
    shutil.rmtree(copy / 'dead')
    for folder in (spool, copy, restored):
        forward(stack, folder)
    assert sorted(stored(stack)) == [*range(30), 101, 102, 201, 202]


def test_a_death_of_the_forwarder_at_each_step(stack, spool):
    step, number = 1, 0
    while True:
        put_many(spool, range(number, number + 3))
        put_many(spool, [number + 3], op='Nonsense')
        number += 4
        status = forward(stack, spool, status=None, die_at=step)
        forward(stack, spool)
        assert sorted(stored(stack)) == [n for n in range(number) if n % 4 != 3]
        assert state(spool)['dead'] == step
        step += 1
        if status == 0:
            break
        assert status == -9
    assert step > 15, step


class Loser(http.server.BaseHTTPRequestHandler):
    """Passes requests on, and loses every other answer, after the server has committed."""
    protocol_version = 'HTTP/1.1'
    lost, target, verify = 0, None, None

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        answer = requests.post(self.target + self.path, data=body, verify=self.verify, timeout=PATIENCE_S,
                               headers={'Content-Type': 'application/json', 'Authorization': self.headers['Authorization']})
        type(self).lost += 1
        if type(self).lost % 2:
            self.close_connection = True
            return
        self.send_response(answer.status_code)
        self.send_header('Content-Length', str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *words):
        pass


def test_a_server_that_acknowledges_and_loses(stack, spool):
    Loser.target, Loser.verify = stack.url, str(stack.path / 'etc/certificate.pem')
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Loser)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    put_many(spool, range(60))
    process = begin(stack, spool, '--until-empty', url=f'http://127.0.0.1:{server.server_port}')
    _, log = process.communicate(timeout=PATIENCE_S)
    server.shutdown()
    assert process.returncode == 0 and stored(stack) == list(range(60)) and Loser.lost >= 6, log
    assert 'waits namespace=lab' in log and 'is served again namespace=lab' in log.split('waits namespace=lab')[-1]


def test_what_is_refused_is_kept_with_the_reason(stack, spool):
    put_many(spool, [1])
    put_many(spool, [2], op='Nonsense')
    put_many(spool, [3])
    run_spool(spool, 'put', 'lab', 'put', '{"docs": nonsense}')
    run_spool(spool, 'put', 'LAB/../z', 'put', '{}')
    forward(stack, spool)
    assert stored(stack) == [1, 3]
    dead = run_spool(spool, 'list', '--dead')[1:]
    assert [record['number'] for record in dead] == [2, 4, 5]
    assert dead[0]['reason'].startswith('NOPERATION') and 'JSON' in dead[1]['reason'] and 'namespace' in dead[2]['reason']
    run_spool(spool, 'drop', '--dead', '5')
    assert run_spool(spool, 'retry', '2') == [6]
    forward(stack, spool)
    assert [record['number'] for record in run_spool(spool, 'list', '--dead')[1:]] == [4, 6]


def test_what_may_pass_waits(stack, spool):
    put_many(spool, [1], ns='nowhere')
    put_many(spool, [2])
    process = begin(stack, spool)
    wait_until(lambda: stored(stack) == [2])
    wait_until(lambda: state(spool)['waiting'] == 1)
    assert state(spool)['dead'] == 0
    process.terminate()
    process.wait(PATIENCE_S)
    run_spool(spool, 'drop', '1')
    forward(stack, spool)


@pytest.mark.parametrize('part', [{'batch_records': 2}, {'window_records': 3}], ids=['batch', 'window'])
def test_what_is_read_in_parts_is_forwarded_whole(stack, spool, part):
    """None of the records that are read first can be sent: not one of a batch, or of a window."""
    for _ in range(5):
        run_spool(spool, 'put', 'lab', 'put', '{"docs": nonsense}')
    put_many(spool, range(20))
    forward(stack, spool, **part)
    assert stored(stack) == list(range(20))
    assert state(spool)['waiting'] == 0 and state(spool)['dead'] == 5


def record(number, digest='0', **task):
    return {'n': number, 'd': digest * 64, 'task': {'op': 'put', 'param': {'docs': []}, **task}}


def spool_of(stack, *records, **more):
    return stack.op('lab', 'spool', {'series': SERIES, 'records': list(records)}, **{'admin': True, **more})['out']


def test_the_operation_knows_what_it_has_stored(stack, spool):
    assert spool_of(stack, record(5), record(6)) == {'refused': [], 'stored': 2, 'known': 0}
    assert spool_of(stack, record(5), record(7)) == {'refused': [], 'stored': 1, 'known': 1}
    assert spool_of(stack, record(7, op='Nonsense')) == {'refused': [], 'stored': 0, 'known': 1}, 'one that is stored is not refused any more'
    (one,) = spool_of(stack, record(6, '1'))['refused']
    assert one['n'] == 6 and one['code'] == 'DIVERGED'
    assert stack.psql('lab', 'select spool_purge(stamp_now() + 1000000)') == [(3,)]
    answer = spool_of(stack, record(4), record(8))
    assert [(one['n'], one['code']) for one in answer['refused']] == [(4, 'FORGOTTEN')] and answer['stored'] == 1
    assert stack.psql('lab', 'select count(*) from taskqueue') == [(4,)]
    refused('ALIMIT', lambda: spool_of(stack, *(record(n) for n in range(100, 151))))
    for number in (200, 2**63 - 2, 2**63 - 1):
        refused('AARG', lambda: spool_of(stack, record(number), record(number)))
    refused('AARG', lambda: stack.op('lab', 'spool', {'series': 'x', 'records': []}, admin=True))


def test_tasks_made_together_are_as_those_made_alone(stack, spool):
    more = {'info': 'i', 'priority': 7, 'domain': 'd', 'order': 'strict', 'key': 'k', 'start': 400101000000000}
    spool_of(stack, record(1, **more))
    spool_of(stack, record(2, **more), record(3))
    spool_of(stack, record(4, **more), record(5, resource='r'))
    rows = stack.psql('lab', """select opname, param, info, retry, startat, qn, priority, batch, domain, strict, requester, account, credential, of_client, key, trace
        from taskqueue where info = 'i' order by number""")
    assert len(rows) == 3 and len(set(rows)) == 1
    assert rows[0][2] == 'i' and rows[0][4:7] == (400101000000000, 0, 7) and rows[0][8:10] == ('d', True)


def test_only_those_who_may_forward_do(stack, spool):
    refused('SCLOSED', lambda: spool_of(stack, record(1), admin=None))
    assert stack.psql('lab', 'select count(*) from spool_record') == [(0,)]
    stack.admin('ns', 'accounts', 'team', json.dumps({'registration': 'closed'}))
    stack.op('z', 'ns', {'set': {'ns': 'team', 'rules': {'Spooled': {'create': ['account'], 'read': ['account']}}}}, admin=True)
    made = stack.op('team', 'accounts', {'key': {'label': 'producer'}}, admin=True)['out']
    put_many(spool, range(40), ns='team', domain='d')
    forward(stack, spool, key=made['key'])
    assert stored(stack, 'team') == list(range(40))
    assert stack.psql('team', 'select distinct account, credential, of_client from taskqueue') == [(made['account'], 'key', True)]
    assert stack.psql('team', 'select distinct account from spool_record') == [(made['account'],)]
    assert stack.psql('team', 'select distinct left(domain, 1) from taskqueue') == [('~',)]

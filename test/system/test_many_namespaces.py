"""More namespaces than a worker has database sessions: each stays on few workers, and all are served."""
import contextlib
import itertools
import json
import os
import re
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg2
import pytest

from fastcgi import Connection
from stack import name_of, wait_until

pytestmark = pytest.mark.plain

WORKERS, CONNECTIONS, COUNT = 4, 4, 12
CODES = [f'n{number:02}' for number in range(COUNT)]
STACK = {'workers': WORKERS, 'settings': {'connections': CONNECTIONS}, 'postgres': {'max_connections': 100, 'log_connections': 'on'},
         'namespaces': {'z': 'closed', **{code: 'open' for code in CODES}}}
WRITERS, ROUNDS, READERS = 6, 40, 100
LISTENS = '00010000'
RECENT_S = 10  # a session that was used since then is not closed for another one
NUMBERS = itertools.count()


def sessions_opened(stack):
    """By namespace, as PostgreSQL logs them, but for those that keep files in order; its statistics come later."""
    return Counter(re.findall(r'connection authorized: .*database=stampd_(n\d\d)(?! application_name=stampd keeper)', stack.log('postgres')))


def homes(stack):
    """The first worker of the home of each namespace, as nginx is configured."""
    found = {}
    for line in (stack.path / 'etc/namespaces.map.homes').read_text().splitlines():
        words = line.strip().rstrip(';').split(' ')
        if words[0] in CODES:
            first, width = words[1].split('/')
            assert width == '1'
            found[words[0]] = int(first)
    return found


def write(stack, code, number):
    return stack.put(code, {'c': 'Note', 'id': str(number % 5), 'items': [{'c': 'Text', 'j': number}]})


@pytest.fixture(scope='module')
def used(stack):
    for number, code in enumerate(CODES):
        write(stack, code, number)
    assert set(sessions_opened(stack)) == set(CODES)
    return stack


def test_homes_are_spread_over_the_workers(used):
    firsts = list(homes(used).values())
    assert len(firsts) == COUNT
    assert all(firsts.count(worker) == COUNT // WORKERS for worker in range(WORKERS))


def test_writing_to_all_at_once_opens_few_sessions(used):
    before = sessions_opened(used)
    versions = {code: [] for code in CODES}

    def writer(seed):
        for number in range(ROUNDS):
            code = CODES[(seed * 5 + number * 7) % COUNT]
            versions[code].append(write(used, code, seed * ROUNDS + number))

    with ThreadPoolExecutor(WRITERS) as pool:
        for done in [pool.submit(writer, seed) for seed in range(WRITERS)]:
            done.result()
    wait_until(lambda: len(used.backends()) <= WORKERS * CONNECTIONS + COUNT + 1, what='sessions within their limit')
    after = sessions_opened(used)
    opened = sum(after[code] - before[code] for code in CODES)
    assert sum(map(len, versions.values())) == WRITERS * ROUNDS
    # Each of 240 commits needs a session; without homes more than half of them opened one.
    assert opened <= WORKERS * CONNECTIONS + COUNT


def ask(connection, ns, operation, body, **more):
    """Of one worker, at its own socket."""
    connection.send(f'/{ns}/op/{operation}', json.dumps(body).encode(), method='POST', CONTENT_TYPE='application/json', STAMPD_NS=ns,
                    STAMPD_DATABASE=f'stampd_{ns}', **more)
    return connection.receive()


def crowd(stack, workers, codes):
    """These workers have as many sessions as they may have, all of them used just now."""
    for number in workers:
        with Connection(stack.path / f'run/stampd/worker-{number}.sock') as worker:
            for code in codes[:CONNECTIONS + 1]:
                assert ask(worker, code, 'put', {'param': {'docs': [{'c': 'Note', 'id': 'crowd', 'items': [{'c': 'Text', 'j': next(NUMBERS)}]}]}}).status == 200


def test_a_busy_home_gets_what_needs_a_session_of_its_own(used):
    """Two commits wait in the home for a row that is held; a third comes to another worker, which has no room for a
    session of that namespace and declines; it is done by the home, once."""
    code = CODES[0]
    home = homes(used)[code]
    beside = [other for other in CODES if homes(used)[other] != home]

    def is_declined():
        """On a busy machine the sessions of the other workers may be as old as those that are closed for another one."""
        begun, content = time.monotonic(), next(NUMBERS)
        crowd(used, [number for number in range(WORKERS) if number != home], beside)
        held = psycopg2.connect(used.conninfo(code), options='-c search_path=stampd')
        with held.cursor() as cursor:
            cursor.execute("select 1 from doc where class = 'Note' and id = '0' for update")
        before = sessions_opened(used)[code]
        with ThreadPoolExecutor(4) as pool:
            blocked = [pool.submit(used.request, 'POST', f'/{code}/op/put', json={'param': {'docs': [
                {'c': 'Note', 'id': '0', 'items': [{'c': 'Line', 'k': str(number), 'j': content}]}]}}) for number in range(3)]
            other = pool.submit(write, used, code, 1)
            wait_until(lambda: used.psql(None, "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                                         " and datname = %s", (f'stampd_{code}',))[0][0] >= 1, what='a commit that waits')
            held.rollback()
            assert [done.result().status_code for done in blocked] == [200] * 3
            assert other.result() > 0
        held.close()
        lines = [item for item in used.get(code, ('Note', '0'))['items'] if item['c'] == 'Line']
        assert sorted((item['k'], item['j']) for item in lines) == [(str(number), content) for number in range(3)]
        opened = sessions_opened(used)[code] - before
        assert not opened or time.monotonic() - begun > RECENT_S
        return not opened
    wait_until(is_declined, what='requests while the sessions of others are in use')


def test_what_has_changed_a_record_is_not_declined(used):
    """The record is changed before the request needs a session, which its worker has no room for: another worker would change it again."""
    code = CODES[2]
    home = homes(used)[code]
    kept = [other for other in CODES if other != code][:CONNECTIONS + 1]
    write(used, code, 1)

    def add():
        return {'admin': used.key, 'param': {'commands': [{'do': 'add', 'key': 'count', 'by': 1}]}}

    declined = {'plain': 0, 'after a change': 0}
    with Connection(used.path / f'run/stampd/worker-{(home + 1) % WORKERS}.sock') as worker:
        assert ask(worker, code, 'record', {'admin': used.key, 'param': {'commands': [{'do': 'set', 'key': 'count', 'value': 0, 'overwrite': True}]}}).status == 200
        for number in range(8):
            for other in kept:  # all the sessions that it may have are in use
                assert ask(worker, other, 'put', {'param': {'docs': [
                    {'c': 'Note', 'id': 'kept', 'items': [{'c': 'Text', 'j': number}]}]}}).status == 200
            plain = ask(worker, code, 'list', {'param': {'c': 'Note'}}, STAMPD_HOME=f'{home}/1')
            declined['plain'] += 'X-Accel-Redirect' in plain.headers
            answer = ask(worker, code, 'record', {**add(), 'syncs': [{'c': 'Note', 'id': f'new{number}'}]}, STAMPD_HOME=f'{home}/1')
            declined['after a change'] += 'X-Accel-Redirect' in answer.headers
        found = ask(worker, code, 'record', {'admin': used.key, 'param': {'commands': [{'do': 'get', 'key': 'count'}]}})
    assert json.loads(found.body)['out']['results'][0]['value'] == 8
    assert declined['plain'] and not declined['after a change']


def test_what_a_worker_has_cached_needs_no_session(used):
    """Reads are served by any worker, while the commits of their namespace wait at its home."""
    code = CODES[1]
    stop, failures, reads = threading.Event(), [], []

    def reader():
        while not stop.is_set():
            answer = used.request('POST', f'/{code}/op/get', json={'param': {'docs': [{'c': 'Note', 'id': '1'}]}})
            (reads if answer.status_code == 200 else failures).append(answer.status_code)

    write(used, code, 1)
    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(reader) for _ in range(WRITERS)]
        for number in range(20):
            write(used, CODES[number % COUNT], number)
        stop.set()
        for done in running:
            done.result()
    assert not failures and reads


def worker_connections(stack):
    """How many connections nginx has to the workers, accepted or waiting, by the flags and paths of all sockets."""
    sockets = [line.split()[3:] for line in Path('/proc/net/unix').read_text().splitlines()[1:]]
    return sum(words[-1].startswith(f'{stack.path}/run/stampd/worker-') and words[0] != LISTENS for words in sockets)


@contextlib.contextmanager
def workers_stopped(stack):
    pids = [pid for pid in stack.worker_pids() if name_of(pid) != 'stampd-relay']
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize('path', ['/ping', f'/{CODES[3]}/op/get?param=%7B%22docs%22%3A%5B%5D%7D'])
def test_a_connection_that_a_request_has_needed_is_kept(used, path):
    """Otherwise many clients at once have nginx open one for nearly each request.  It closes those that are idle for ten seconds, which may
    pass here on a busy machine: then the requests are sent again."""
    def are_kept():
        with ThreadPoolExecutor(READERS) as pool:
            with workers_stopped(used):
                asked = [pool.submit(used.request, 'GET', path) for _ in range(READERS)]
                wait_until(lambda: worker_connections(used) >= READERS, what='a connection for each request')
            assert all(done.result().status_code == 200 for done in asked)
        return worker_connections(used) >= READERS

    wait_until(are_kept, what='kept connections')


def test_callers_are_known_in_all_namespaces(used):
    """At the end of the file: the namespaces are closed.  The account is read before the request is: a worker that has no room for a session
    declines that too, and no answer is of another namespace."""
    tokens = {}
    for code in CODES:
        used.op('z', 'ns', {'set': {'ns': code, 'access': 'closed', 'accounts': {'registration': 'open'}}}, admin=True)
        out = used.op(code, 'register', {'name': f'ann-{code}', 'password': 'correct horse'})['out']
        tokens[code] = out['token']

    def call(number):
        code = CODES[number * 7 % COUNT]
        if number % 9 == 0:  # the copies of all workers are old now
            made = used.op(code, 'accounts', {'find': f'ann-{code}'}, admin=True)['out']['account']
            used.op(code, 'accounts', {'set': {'account': made, 'roles': [f'r{number}']}}, admin=True)
        param = {'revoke': 'others'} if number % 3 == 0 else {}
        headers = {'Authorization': f'Bearer {tokens[code]}'}
        answer = used.request('POST', f'/{code}/op/{"sessions" if param else "account"}', json={'param': param}, headers=headers)
        wrong = used.request('POST', f'/{CODES[number % COUNT - 1]}/op/account', json={}, headers=headers)
        is_own = CODES[number % COUNT - 1] == code
        return answer.status_code == 200 and (param or answer.json()['out']['name'] == f'ann-{code}') and wrong.status_code == (200 if is_own else 401)

    with ThreadPoolExecutor(WRITERS) as pool:
        assert all(pool.map(call, range(WRITERS * ROUNDS)))

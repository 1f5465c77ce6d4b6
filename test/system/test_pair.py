"""hosts = pair: one host serves, the other takes over when it ends, is killed or stands still; nothing acknowledged is lost, nothing stale
is read, whichever host a client asks."""
import os
import signal
import socket
import threading

import pytest

from listener import Listener
from manager import Manager
from stack import BUILD, Problem, Stack, children, is_alive, refused, run_program, wait_until

# What the server does in memory other tests try with the sanitizers.
pytestmark = pytest.mark.plain

SETTINGS = {'hosts': 'pair', 'lease_s': 2, 'queue_namespaces': 'lab'}
STACK = {'workers': 2, 'settings': SETTINGS}
NAME = ('Pair', 'a')


@pytest.fixture(scope='module')
def hosts(stack):
    """The host that serves comes first; tests leave both running."""
    with Stack('pair', workers=2, beside=stack, settings=SETTINGS) as other:
        yield stack, other


def serves(host):
    try:
        host.get('lab', NAME)
    except Problem as problem:
        assert problem.code in ('OTWIN', 'XAWAY', 'XBUSY', 'XTIME', 'OSTOPPING'), problem
        return False
    except OSError:  # its server is away
        return False
    return True


def serving(hosts):
    """(the one that serves, the one that waits)."""
    found = wait_until(lambda: [host for host in hosts if serves(host)], what='a host that serves')
    assert len(found) == 1, 'both serve'
    return found[0], next(host for host in hosts if host is not found[0])


def put(host, n):
    return host.put('lab', {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'N', 'j': n}]})


def value(host):
    return host.get('lab', NAME)['items'][0]['j']


def processes(host):
    master = host.pid()
    return [master, *children(master)]


def kill(host):
    for pid in processes(host):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has followed its master
            pass


def start_again(host):
    host.step('stampd', 'start')
    wait_until(lambda: is_alive(host.pid()), what='its master')


def test_the_other_one_refuses_everything(hosts):
    active, spare = serving(hosts)
    put(active, 1)
    for action in (lambda: spare.get('lab', NAME), lambda: put(spare, 2), lambda: spare.op('lab', 'find', {'c': NAME[0]}),
                   lambda: Listener(spare, 'Pair/a')):
        with pytest.raises(Problem) as problem:
            action()
        assert (problem.value.code, problem.value.status) == ('OTWIN', 503)
    assert spare.request('GET', '/lab/doc/Pair/a').status_code == 503 and active.request('GET', '/lab/doc/Pair/a').status_code == 200
    assert value(active) == 1


def test_the_doctor_says_who_serves(hosts):
    active, spare = serving(hosts)
    for host in hosts:
        ended = run_program(BUILD / 'src/stampctl', 'doctor', '--config', host.config, '--admin-conninfo', host.conninfo_of_server(), '--nginx',
                            host.path / 'etc/nginx.conf', status=None)
        assert f'pair: {socket.gethostname()} serves since 2' in ended.out, ended.text()
        assert host.metrics()['stampd_lease_held'] == (host is active)


def test_an_orderly_end_hands_over(hosts):
    active, spare = serving(hosts)
    put(active, 3)
    before = spare.log().count('the lease is taken')
    active.step('stampd', 'stop')
    wait_until(lambda: spare.log().count('the lease is taken') > before, what='the take')
    assert 'the lease is released' in active.log()
    assert value(spare) == 3
    put(spare, 4)
    start_again(active)
    refused('OTWIN', value, active)
    assert value(spare) == 4


def test_a_host_hands_over_on_request(hosts):
    active, spare = serving(hosts)
    put(active, 31)
    former = processes(active)
    done = spare.admin('cell', 'switch')
    assert f'{socket.gethostname()} serves, in place of {socket.gethostname()}' in done.out
    wait_until(lambda: serves(spare), what='the other host')
    assert value(spare) == 31 and 'the lease is to be handed over' in active.log() and 'the lease is lost' not in active.log().rpartition('to be handed over')[2]
    wait_until(lambda: not any(is_alive(pid) for pid in former), what='the end of its processes')
    start_again(active)
    refused('OTWIN', value, active)
    put(spare, 32)


def test_a_host_that_is_killed_is_succeeded(hosts):
    active, spare = serving(hosts)
    put(active, 5)
    kill(active)
    wait_until(lambda: serves(spare), what='the take')
    assert value(spare) == 5
    put(spare, 6)
    start_again(active)
    refused('OTWIN', value, active)


def test_tasks_of_the_former_host_are_lost_at_once(hosts):
    """Its sessions have ended: nobody waits task_lost_s for a host that has lost its lease."""
    active, _ = serving(hosts)
    active.psql('lab', "insert into taskqueue (taskid, opname, param, startat, starttime, holder, created)"
                       " values ('formertask123', 'Count', '{}', 1, stamp_now(), '00000000-1-0', 1)")
    try:
        assert [lost['id'] for lost in Manager(active, 'lab').scan()['lost']] == ['formertask123']
    finally:
        active.psql('lab', "delete from taskqueue where taskid = 'formertask123'")


def test_a_host_that_stood_still_serves_nothing_old(hosts):
    """It has the document in its memory, and requests wait for it while the other host takes over and changes the document."""
    active, spare = serving(hosts)
    put(active, 7)
    for _ in range(20):
        assert value(active) == 7
    stopped, answers = processes(active), []

    def ask():
        try:
            answers.append(value(active))
        except Problem as problem:
            answers.append(problem.code)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: serves(spare), what='the take')
        put(spare, 8)
        asking = [threading.Thread(target=ask) for _ in range(8)]
        for thread in asking:
            thread.start()
    finally:
        for pid in reversed(stopped):
            os.kill(pid, signal.SIGCONT)
    for thread in asking:
        thread.join()
    assert 7 not in answers and len(answers) == 8, answers
    wait_until(lambda: 'the lease is lost' in active.log(), what='the end of the former one')
    wait_until(lambda: not any(is_alive(pid) for pid in stopped), what='the end of its processes')
    start_again(active)
    refused('OTWIN', value, active)
    assert value(spare) == 8


def test_without_the_database_memory_answers_for_a_time(hosts):
    """Nobody can take over meanwhile; the same host serves afterwards."""
    active, spare = serving(hosts)
    put(active, 9)
    assert value(active) == 9
    takes = spare.log().count('the lease is taken')
    hosts[0].stop_postgres()
    try:
        wait_until(lambda: not serves(active), what='the end of its limit')
        assert not serves(spare)
    finally:
        hosts[0].step('postgres', 'start')
    wait_until(lambda: serves(active) or serves(spare), what='the database')
    active, spare = serving(hosts)
    assert value(active) == 9
    assert spare.log().count('the lease is taken') >= takes


@pytest.mark.timeout(180)  # four takes, three of them after a wait
def test_counters_over_many_takes(hosts):
    """A writer counts on whichever host answers, and settles what is unknown with its key; readers ask both all the time."""
    is_over, wrong, acknowledged = threading.Event(), [], [0]
    put(serving(hosts)[0], {'n': 0})

    def write():
        n = 0
        while not is_over.is_set():
            n += 1
            key, is_known = f'pair-{os.getpid()}-{n}', False
            while not is_known and not is_over.is_set():
                for host in hosts:
                    docs = [{'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'N', 'j': {'n': n}}]}]
                    try:
                        answer = host.request('POST', '/lab/op/put', json={'param': {'docs': docs}}, headers={'Idempotency-Key': key})
                    except OSError:
                        continue
                    if answer.status_code == 200:
                        acknowledged[0], is_known = n, True
                        break
                    if answer.status_code < 500:
                        wrong.append(answer.text)
                        return

    def read(host):
        while not is_over.is_set():
            least = acknowledged[0]
            try:
                seen = value(host)['n']
            except (Problem, OSError):
                continue
            if seen < least:
                wrong.append((host.path.name, seen, least))

    threads = [threading.Thread(target=write), *(threading.Thread(target=read, args=(host,)) for host in hosts)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(4):
            active, spare = serving(hosts)
            count = acknowledged[0]
            wait_until(lambda: acknowledged[0] > count + 20, what='changes')
            if turn % 2:
                active.step('stampd', 'stop')
            else:
                kill(active)
            wait_until(lambda: serves(spare), what='the take')
            count = acknowledged[0]
            wait_until(lambda: acknowledged[0] > count + 20, what='changes afterwards')
            start_again(active)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:10]
    assert value(serving(hosts)[0])['n'] >= acknowledged[0]

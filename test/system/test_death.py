"""Death and trouble: processes killed at any time, servers that go, reloads; the promises hold."""
import contextlib
import os
import random
import re
import signal
import threading
import time

import psycopg2
import pytest

from history import History
from stack import PATIENCE_S, Problem, Stack, StackError, children, is_alive, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 4, 'settings': {'limit_client_requests': 0}}  # clients that wait for nothing send more in a second
HARMS = 12


def answers(stack, ns='lab'):
    try:
        return stack.ping(ns).json().get('db') == 'ok'
    except Exception:
        return False


def kill(pid, how=signal.SIGKILL):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def kill_one_of(pids):
    if pids:  # without any, pid 0 would be the tests themselves
        kill(random.choice(pids))


def test_workers_are_killed(stack):
    with History(stack) as history:
        history.run(HARMS, lambda: kill_one_of(children(stack.pid())))
        wait_until(lambda: answers(stack), what='recovery')
        history.run()


def test_workers_are_stopped_for_a_while(stack):
    def pause():
        worker = random.choice(children(stack.pid()))
        kill(worker, signal.SIGSTOP)
        time.sleep(0.3)
        kill(worker, signal.SIGCONT)

    with History(stack) as history:
        history.run(HARMS, pause)


def test_backends_are_terminated(stack):
    def terminate():
        stack.psql(None, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd'"
                   " and random() < 0.5")

    with History(stack) as history:
        history.run(HARMS, terminate)
        wait_until(lambda: answers(stack), what='recovery')
        history.run()


@pytest.mark.parametrize('how', ['fast', 'immediate'])
def test_postgres_is_restarted(stack, how):
    with History(stack) as history:
        history.run()
        stack.restart_postgres(how)
        wait_until(lambda: answers(stack), what='recovery')
        history.run()
        stack.restart_postgres(how)
        wait_until(lambda: answers(stack), what='recovery')
        history.run()


def test_the_master_is_killed_and_started_again(stack):
    with History(stack) as history:
        for _ in range(3):
            history.run()
            master = stack.pid()
            workers = children(master)
            kill(master)
            wait_until(lambda: not any(map(is_alive, workers)), what='end of the workers')
            stack.restart_stampd()
            wait_until(lambda: answers(stack), what='recovery')
        history.run()


def test_a_reload_fails_no_request(stack):
    with History(stack, threads=3) as history:  # when three of four workers are at commits for two seconds, the last one begins none
        history.run(4, stack.reload, operations=300)
    assert set(history.troubles) <= {'CONTENTION', 'DROPPED'}, history.troubles


def test_postgres_away_is_a_clear_answer(stack):
    stack.put('lab', {'c': 'Away', 'id': 'a', 'items': [{'c': 'N', 'j': 1}]})
    stack.stop_postgres()
    try:
        assert stack.ping().status_code == 200
        with pytest.raises(Problem) as problem:
            stack.put('lab', {'c': 'Away', 'id': 'a', 'items': [{'c': 'N', 'j': 2}]})
        assert problem.value.code in ('XAWAY', 'XUNKNOWN')
        assert 'postgres' not in problem.value.response.text.lower()  # neither paths nor library words
    finally:
        stack.step('postgres', 'start')
    wait_until(lambda: answers(stack), what='recovery')
    stack.put('lab', {'c': 'Away', 'id': 'a', 'items': [{'c': 'N', 'j': 3}]})
    assert stack.get('lab', ('Away', 'a'))['items'][0]['j'] == 3


def test_stampd_starts_without_postgres(stack):
    stack.step('stampd', 'stop')
    stack.stop_postgres()
    stack.step('stampd', 'start')
    try:
        assert stack.ping().status_code == 200
        assert stack.ping('lab').json()['db'] == '?'
    finally:
        stack.step('postgres', 'start')
    wait_until(lambda: answers(stack), what='recovery')
    stack.put('lab', {'c': 'Away', 'id': 'b'})


def test_the_clock_steps_back(stack):
    """A version far ahead of the clock, as after a clock set back: what follows is above it, births too."""
    first = stack.put('lab', {'c': 'Clock', 'id': 'a', 'items': [{'c': 'N', 'j': 1}]})
    ahead = first + 10 ** 10  # the year's next digits: far in the future
    stack.psql('lab', "update doc set version = %s where class = 'Clock' and id = 'a'", (ahead,))
    wait_until(lambda: stack.get('lab', ('Clock', 'a'))['v'] == ahead, what='the relay')
    second = stack.put('lab', {'c': 'Clock', 'id': 'a', 'items': [{'c': 'N', 'j': 2}]})
    assert second > ahead
    stack.put('lab', {'c': 'Clock', 'id': 'a', 'delete': True})
    third = stack.put('lab', {'c': 'Clock', 'id': 'a', 'items': [{'c': 'N', 'j': 3}]})
    born = stack.get('lab', ('Clock', 'a'))
    assert born['ct'] == born['v'] == third > second


def test_what_psql_changes_is_seen(stack):
    stack.put('lab', {'c': 'Psql', 'id': 'a', 'items': [{'c': 'N', 'j': 1}]})
    assert stack.get('lab', ('Psql', 'a'))['items'][0]['j'] == 1
    stack.psql('lab', "select put_item('Psql', 'a', 'N', '', '2')")
    wait_until(lambda: stack.get('lab', ('Psql', 'a'))['items'][0]['j'] == 2, what='the relay')
    relay = [pid for pid in children(stack.pid()) if b'relay' in open(f'/proc/{pid}/cmdline', 'rb').read()]
    for pid in relay:
        kill(pid)
    stack.psql('lab', "select put_item('Psql', 'a', 'N', '', '3')")
    wait_until(lambda: stack.get('lab', ('Psql', 'a'))['items'][0]['j'] == 3, what='the next relay')


def test_a_worker_that_cannot_settle_an_outcome_ends(stack):
    """Its marks stay until a recovery process has seen what became of the commit: whatever it knows may be wrong."""
    name = ('Unsettled', 'a')
    document = {'c': 'Unsettled', 'id': 'a', 'items': [{'c': 'N', 'j': 1}]}
    stack.put('lab', document)
    words = 'outcome of a commit still unknown, the worker exits'
    before, answered = stack.log().count(words), []

    def write():
        try:
            stack.put('lab', {**document, 'items': [{'c': 'N', 'j': 2}]})
        except (Problem, ValueError) as problem:
            answered.append(problem)

    holder = psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd')
    holder.cursor().execute("select from doc where class = 'Unsettled' for update")
    writing = threading.Thread(target=write)
    writing.start()
    wait_until(lambda: stack.psql(None, "select 1 from pg_stat_activity where usename = 'stampd' and wait_event_type = 'Lock'"),
               what='the commit')
    stack.stop_postgres('kill')
    holder.close()
    try:
        wait_until(lambda: stack.log().count(words) > before, what='an outcome that stays unknown')
        line = [line for line in stack.log().splitlines() if words in line][-1]
        pid = int(re.search(r'\[(\d+)\]', line)[1])
        wait_until(lambda: not is_alive(pid), what='its end')
    finally:
        stack.step('postgres', 'start')
    writing.join(PATIENCE_S)
    assert answered
    wait_until(lambda: answers(stack), what='recovery')
    assert stack.get('lab', name)['items'][0]['j'] in (1, 2)


def test_two_instances_share_a_segment(stack):
    segment = stack.path / 'run/stampd/segment'
    with Stack('twin', workers=2, beside=stack, settings={'segment': segment}) as twin:
        with History(stack, twin) as history:
            history.run()
            for _ in range(3):
                master = twin.pid()
                kill(master)  # its workers follow; the other instance repairs what they left
                history.run()
                twin.restart_stampd()
                wait_until(lambda: answers(twin), what='recovery')
            history.run()


def test_another_installation_on_the_database_is_refused(stack):
    assert answers(stack)
    stack.put('lab', {'c': 'Twin', 'id': 'a'})
    with Stack('stranger', workers=1, beside=stack) as stranger:
        with pytest.raises(Problem) as problem:
            stranger.get('lab', ('Twin', 'a'))
        assert problem.value.code == 'OTWIN'
        assert 'installation' in stranger.log()
    stack.put('lab', {'c': 'Twin', 'id': 'a', 'items': [{'c': 'N', 'j': 1}]})


def test_a_segment_of_another_layout_is_refused(stack):
    segment = stack.path / 'run/stampd/segment'
    stranger = Stack('layout', workers=1, beside=stack, settings={'segment': segment, 'segment_slots': 1024})
    try:
        with pytest.raises(StackError, match='segment'):
            stranger.start()
    finally:
        stranger.remove()


def test_a_missing_database_harms_only_its_namespace(stack):
    def rename():
        """Unless a process has opened a session there again meanwhile."""
        stack.psql(None, "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'stampd_demo'")
        with contextlib.suppress(psycopg2.errors.ObjectInUse):
            stack.psql(None, 'alter database stampd_demo rename to stampd_elsewhere')
            return True
        return False

    wait_until(rename, what='a moment without a session')
    try:
        with pytest.raises(Problem) as problem:
            stack.get('demo', ('Any', 'thing'))
        assert problem.value.code == 'ODATABASE'
        stack.put('lab', {'c': 'Other', 'id': 'a'})
    finally:
        stack.psql(None, 'alter database stampd_elsewhere rename to stampd_demo')
    wait_until(lambda: answers(stack, 'demo'), what='recovery')

"""A host that does not reach PostgreSQL, which answers nothing, as behind a link that drops packets: it refuses at once what it cannot
prove, serves from memory what may be so old, and no worker hangs."""
import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from stack import Stack, wait_until

pytestmark = pytest.mark.plain

WORKERS = 3
NAME = ('Note', 'a')
AGE_S = 600
CONNECT_S, STATEMENT_S = 5, 30  # the latter is the default


def processes_of_postgres(stack):
    """The server first, then its children."""
    folder = Path(stack.data or stack.path)
    pid = int(next(folder.rglob('postmaster.pid')).read_text().split()[0])
    children = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    return [pid, *map(int, children)]


@contextlib.contextmanager
def isolated(stack):
    """Connections are accepted, and nothing is answered, on old ones neither."""
    stopped = processes_of_postgres(stack)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(stopped):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def ask(stack, operation='get', timeout=120, **param):
    begun = time.monotonic()
    answer = stack.http.post(f'{stack.url}/lab/op/{operation}', json={'param': param}, timeout=timeout)
    return answer, time.monotonic() - begun


def get(stack, **more):
    return ask(stack, docs=[{'c': NAME[0], 'id': NAME[1], **more}])


def first_answer(stack):
    """The text of the document.  Each worker opens its own session again, so that one may still be refused behind another's commit."""
    answers = []
    wait_until(lambda: answers.append(get(stack)[0]) or answers[-1].ok, what='a worker with a session')
    assert all(is_refused(answer) for answer in answers[:-1])
    return answers[-1].json()['out']['docs'][0]['items'][0]['j']


@contextlib.contextmanager
def cut_off(hosts, **more):
    """A stack with a copy of the document, whose PostgreSQL falls silent."""
    settings = {'hosts': hosts, 'connect_timeout_s': CONNECT_S, 'restart_young_ms': 0, **more}
    with Stack('isolated', workers=WORKERS, settings=settings, namespaces={'z': 'closed', 'lab': 'open'}) as stack:
        stack.put('lab', {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'Text', 'j': 'kept'}]})
        wait_until(lambda: 'relay listens database=stampd_lab' in stack.log(), what='the relay')
        for _ in range(4 * WORKERS):
            assert get(stack)[0].status_code == 200
        with isolated(stack):
            yield stack
        new = {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'Text', 'j': 'new'}]}
        wait_until(lambda: ask(stack, 'put', docs=[new])[0].ok, what='a commit, when PostgreSQL answers again')
        for _ in range(4 * WORKERS):
            assert first_answer(stack) == 'new', 'a worker that was cut off has no old copy'


def is_refused(answer):
    """XTIME: a session that was open when PostgreSQL fell silent was given up."""
    return answer.status_code == 503 and answer.json()['code'] in ('XAWAY', 'XTIME')


def until_silent(stack):
    wait_until(lambda: 'postgresql is silent' in stack.log(), what='the silence')


@pytest.mark.parametrize('hosts', ['many', 'one'])
def test_nothing_hangs_and_what_needs_the_database_is_refused_at_once(hosts):
    with cut_off(hosts) as stack:
        first = []
        threads = [threading.Thread(target=lambda: first.append(ask(stack, 'list', c='Note'))) for _ in range(WORKERS)]
        for thread in threads:
            thread.start()
        until_silent(stack)
        for thread in threads:
            thread.join()
        for answer, took in first:  # 429: the share of what is long is taken by another of them
            assert answer.status_code in (429, 503) and took < STATEMENT_S, 'before the time of a statement is over'
        assert any(answer.status_code == 503 for answer, _ in first)
        begun = time.monotonic()
        for _ in range(4 * WORKERS):
            answer, _ = ask(stack, 'list', c='Note')
            assert is_refused(answer) and answer.headers['Retry-After']
        assert time.monotonic() - begun < CONNECT_S, 'not one of them has tried'
        answer, _ = get(stack)
        assert answer.status_code == (200 if hosts == 'one' else 503), 'memory can prove it, or not'


def test_what_may_be_old_is_served_within_its_age():
    with cut_off('many', configuration_age_s=AGE_S) as stack:
        until_silent(stack)
        begun = time.monotonic()
        for _ in range(4 * WORKERS):
            answer, _ = get(stack, age=AGE_S)
            assert answer.status_code == 200 and answer.json()['out']['docs'][0]['items'][0]['j'] == 'kept'
            assert is_refused(get(stack)[0])
        assert time.monotonic() - begun < CONNECT_S
        both = [{'c': NAME[0], 'id': NAME[1], 'age': AGE_S}, {'c': NAME[0], 'id': NAME[1]}]
        assert is_refused(ask(stack, docs=both)[0]), 'one of them must be the newest'
        assert is_refused(ask(stack, docs=[{'c': 'Note', 'id': 'never read', 'age': AGE_S}])[0])
        wait_until(lambda: is_refused(get(stack, age=1)[0]), what='the end of an age')


def test_an_old_configuration_decides_nothing():
    with cut_off('many', configuration_age_s=1) as stack:
        until_silent(stack)
        wait_until(lambda: is_refused(get(stack, age=AGE_S)[0]), what='the end of its age')

"""slow_ms: a request that took so long is a line of the log, with where the time went."""
import contextlib
import re
import threading
import time

import psycopg2
import pytest

from stack import PATIENCE_S, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'slow_ms': 300, 'lock_timeout_ms': 60000}}
LINE = re.compile(r'slow namespace=lab operation=document ms=(?P<ms>\d+) before=(?P<before>\d+) work=(?P<work>\d+) validation=(?P<validation>\d+) afterwork=(?P<afterwork>\d+) '
                  r'sync=(?P<sync>\d+) database=(?P<database>\d+) longest=(?P<longest>\d+) statement=(?P<statement>\S+) code=(?P<code>\S+) request=held')
HELD_S = 0.6  # how long a lock is held once the request waits for it


def put(stack, id, request):
    return stack.http.put(f'{stack.url}/lab/doc/Note/{id}', json={'items': [{'c': 'Main', 'j': 1}]}, headers={'X-Request-Id': request}, timeout=PATIENCE_S)


def test_a_request_that_waits_for_a_lock(stack):
    stack.put('lab', {'c': 'Note', 'id': 'held', 'items': []})
    answers = []
    with contextlib.closing(psycopg2.connect(stack.conninfo('lab'))) as holder:
        holder.cursor().execute("select 1 from stampd.doc where id = 'held' for update")
        thread = threading.Thread(target=lambda: answers.append(put(stack, 'held', 'held')))
        thread.start()
        wait_until(lambda: stack.psql('lab', "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()") != [(0,)], what='the wait')
        time.sleep(HELD_S)
        holder.rollback()
        thread.join()
    assert answers[0].status_code in (200, 201)
    wait_until(lambda: LINE.search(stack.log()), what='the line')
    found = LINE.search(stack.log())
    times = {name: int(value) for name, value in found.groupdict().items() if value.isdigit()}
    phases = sum(times[name] for name in ('before', 'work', 'validation', 'afterwork', 'sync'))
    assert times['ms'] - 6 <= phases <= times['ms'] and HELD_S * 1000 <= times['longest'] <= times['database'] <= times['ms']
    assert times['validation'] >= HELD_S * 1000 and found['code'] == 'done' and found['statement'] != '-'
    assert 'Server-Timing' not in answers[0].headers


def test_a_line_names_no_document(stack):
    assert not [line for line in stack.log().splitlines() if 'slow ' in line and 'Note' in line]


def test_by_itself_nothing_is_measured(stack):
    stack.set(slow_ms=0)
    before = len(stack.log())
    assert put(stack, 'quick', 'quick').status_code in (200, 201)
    assert 'slow ' not in stack.log()[before:]

"""Sessions of workers that nobody uses are closed, and opened again on use; the relay's, which listen, stay."""
import pytest

from stack import wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'side': 'open'}, 'settings': {'connection_idle_s': 1}}


def sessions(stack, name):
    return stack.psql(None, "select datname from pg_stat_activity where usename = 'stampd' and application_name = %s order by datname", (name,))


def test_sessions_end_when_nobody_uses_them(stack):
    for ns in ('lab', 'side'):
        stack.put(ns, {'c': 'Note', 'id': 'a', 'items': []})
    relays = wait_until(lambda: len(sessions(stack, 'stampd relay')) == 3 and sessions(stack, 'stampd relay'), what='the relay')
    wait_until(lambda: not sessions(stack, 'stampd'), what='the end of the sessions')
    assert sessions(stack, 'stampd relay') == relays


def test_what_was_read_before_is_still_fresh(stack):
    """Copies in memory outlive the session that has loaded them, and changes made meanwhile are seen."""
    stack.put('lab', {'c': 'Note', 'id': 'b', 'items': [{'c': 'Main', 'j': 1}]})
    wait_until(lambda: not sessions(stack, 'stampd'), what='the end of the sessions')
    assert stack.request('GET', '/lab/doc/Note/b').json()['items'][0]['j'] == 1
    for number in range(2, 5):
        stack.put('lab', {'c': 'Note', 'id': 'b', 'items': [{'c': 'Main', 'j': number}]})
        wait_until(lambda: not sessions(stack, 'stampd'), what='the end of the sessions')
        for _ in range(4):
            assert stack.request('GET', '/lab/doc/Note/b').json()['items'][0]['j'] == number

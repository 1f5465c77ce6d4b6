"""Reads with an age from a standby (setting replica): never older than the age, never at tolerance 0."""
import itertools

import pytest

from replica import Replica
from stack import Stack, wait_until

# What the server does in memory other tests try with the sanitizers.
pytestmark = pytest.mark.plain

STACK = {'workers': 2}
IDS = map('d{}'.format, itertools.count())


@pytest.fixture(scope='module')
def standby(stack):
    with Replica(stack) as replica:
        stack.set(replica=f'host={replica.sockets} user=stampd')
        yield replica


def write(stack, n):
    """By SQL, so that no worker has a copy; the name of the document."""
    id_ = next(IDS)
    stack.psql('lab', "select put_item('Note', %s, 'N', '', %s)", (id_, str(n)))
    return id_


def replayed(stack, standby):
    (position,), = stack.psql(None, 'select pg_current_wal_insert_lsn()')
    wait_until(lambda: standby.psql(None, 'select pg_last_wal_replay_lsn() >= %s::pg_lsn', (position,))[0][0], what='that the standby has all')


def read(stack, id_, age):
    """The number; None: there is no such document."""
    doc, = stack.op('lab', 'get', {'docs': [{'c': 'Note', 'id': id_, 'age': age}]})['out']['docs']
    return doc['items'][0]['j'] if doc['v'] else None


def count(stack):
    return int(stack.metrics()['stampd_replica_reads_total'])


def is_used(stack, standby, age=60):
    """A document that no worker has is read from the standby."""
    id_ = write(stack, 1)
    replayed(stack, standby)
    before = count(stack)
    assert read(stack, id_, age) == 1
    return count(stack) > before


def paused(standby):
    standby.psql(None, 'select pg_wal_replay_pause()')
    wait_until(lambda: standby.psql(None, 'select pg_get_wal_replay_pause_state()') == [('paused',)], what='the pause')


def test_a_standby_answers_what_may_be_old(stack, standby):
    wait_until(lambda: is_used(stack, standby), what='a read from the standby')
    before = count(stack)
    for n in range(10):
        id_ = write(stack, n)
        assert read(stack, id_, 0) == n  # at once, whatever the standby has
    assert count(stack) == before
    assert stack.psql('lab', 'select count(*) from heartbeat') == [(1,)]


def test_a_standby_that_is_behind_answers_only_what_may_be_so_old(stack, standby):
    wait_until(lambda: is_used(stack, standby), what='a read from the standby')
    paused(standby)
    try:
        id_ = write(stack, 5)
        assert read(stack, id_, 3600) is None  # it was not there an hour ago
        wait_until(lambda: read(stack, id_, 3) == 5, what='that the bound is passed')
        before = count(stack)
        other = write(stack, 6)
        assert read(stack, other, 3) == 6 and count(stack) == before  # by the primary
        another = write(stack, 7)
        assert read(stack, another, 3600) is None and count(stack) > before
        assert read(stack, another, 0) == 7
    finally:
        standby.psql(None, 'select pg_wal_replay_resume()')
    wait_until(lambda: is_used(stack, standby, 5), what='a read from the standby')


def test_without_the_standby_the_primary_answers(stack, standby):
    wait_until(lambda: is_used(stack, standby), what='a read from the standby')
    standby.program('pg_ctl', '-D', standby.data, '-m', 'immediate', '-w', 'stop')
    try:
        before = count(stack)
        for n in range(5):
            assert read(stack, write(stack, n), 60) == n
        assert count(stack) == before
    finally:
        standby.start()


def test_no_heartbeat_without_a_standby(stack, standby):
    with Stack('alone', workers=1) as alone:
        assert read(alone, write(alone, 3), 60) == 3
        assert alone.psql('lab', 'select count(*) from heartbeat') == [(0,)] and count(alone) == 0

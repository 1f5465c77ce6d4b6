"""Commits that are done and durable, and whose answer does not come: PostgreSQL waits for a standby that is not there."""
import threading
from contextlib import contextmanager

import psycopg2

from stack import wait_until


def waiting(stack, user='stampd'):
    """The backends that wait for the standby, without the proofs of new sessions (src/store/proof.h)."""
    return [pid for pid, in stack.psql(None, "select pid from pg_stat_activity where wait_event = 'SyncRep' and usename = %s"
                                       " and query not like '%%pg_logical_emit_message(true, ''stampd''%%'", (user,))]


def probe(stack):
    """A commit of the administrator, which waits until it is cancelled when the standby is waited for."""
    with psycopg2.connect(stack.conninfo()) as session, session.cursor() as cursor:
        cursor.execute("select pg_logical_emit_message(true, 'probe', '')")  # what writes no log waits for nobody
    session.close()


@contextmanager
def commits_without_answer(stack):
    """From the first statement within on no commit is answered; at the end all are."""
    stack.psql(None, "alter system set synchronous_standby_names = 'nobody'")
    stack.psql(None, 'select pg_reload_conf()')
    try:
        while True:  # the rule is taken over by and by
            thread = threading.Thread(target=probe, args=(stack,))
            thread.start()
            if wait_until(lambda: waiting(stack, 'postgres') or not thread.is_alive(), what='a commit') is not True:
                break
            thread.join()
        for pid in waiting(stack, 'postgres'):
            stack.psql(None, 'select pg_cancel_backend(%s)', (pid,))
        thread.join()
        yield
    finally:
        stack.psql(None, 'alter system reset synchronous_standby_names')
        stack.psql(None, 'select pg_reload_conf()')


def end_a_commit_that_waits(stack):
    """Its session is gone, its transaction is done."""
    pid = wait_until(lambda: waiting(stack), what='a commit that waits')[0]
    assert stack.psql(None, 'select pg_terminate_backend(%s)', (pid,)) == [(True,)]

"""A transaction of another program that stands still at a row until the test has seen it there."""
import contextlib

from stack import wait_until

LOCK = 4711


class Halt:
    def __init__(self, stack, ns):
        self.stack, self.ns = stack, ns

    def wait(self):
        """Until somebody stands there."""
        wait_until(self.is_reached, what='a transaction at the row')

    def is_reached(self):
        return self.stack.psql(self.ns, "select 1 from pg_locks where locktype = 'advisory' and objid = %s and not granted"
                                        ' and database = (select oid from pg_database where datname = current_database())', (LOCK,))

    def release(self):
        self.stack.psql(self.ns, 'select pg_advisory_unlock(%s) where exists (select from pg_locks where locktype = %s and objid = %s and granted and pid = pg_backend_pid())',
                        (LOCK, 'advisory', LOCK))


@contextlib.contextmanager
def halted(stack, ns, table, condition):
    """A transaction that updates a row of the table so that `condition`, SQL with the row `new`, is true, waits before it does."""
    stack.psql(ns, 'select pg_advisory_lock(%s)', (LOCK,))
    stack.psql(ns, f"""
        create function stampd.halt() returns trigger language plpgsql set lock_timeout = 0 as $$ begin perform pg_advisory_xact_lock({LOCK}); return new; end $$;
        create trigger halt before update on stampd.{table} for each row when ({condition}) execute function stampd.halt()""")
    halt = Halt(stack, ns)
    try:
        yield halt
    finally:
        halt.release()
        stack.psql(ns, f'drop trigger halt on stampd.{table}; drop function stampd.halt()')

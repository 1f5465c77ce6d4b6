"""The clock by which documents and sessions expire, moved by tests: a file with the minutes that the server adds (debug_clock), and,
for databases that follow, PostgreSQL's own.  A test file whose variable CLOCK is one has no minutes added when a test begins."""
import atexit
import os
import struct
import tempfile
import time
from pathlib import Path

from stack import ROOM

FUNCTIONS = ('present_minute', 'minute_left_ms')
LOOK_MS = 200  # how long a minute seems to last to what waits for the next


def in_one_minute(act):
    """What it returns when no minute has begun meanwhile: else it is done again."""
    while True:
        minute, result = Clock.real(), act()
        if Clock.real() == minute:
            return result


class Clock:
    def __init__(self):
        file, path = tempfile.mkstemp(prefix='stampd-clock-', dir=ROOM)
        os.write(file, struct.pack('=q', 0))
        os.fchmod(file, 0o644)
        os.close(file)
        self.path, self.added, self.followers = Path(path), 0, {}
        atexit.register(self.path.unlink, missing_ok=True)

    @property
    def settings(self):
        return {'debug_clock': str(self.path)}

    def set(self, minutes):
        """The server's first: what it sends after the database has deleted a document, it judges by the same minute."""
        self.added = minutes
        with self.path.open('r+b') as file:
            os.pwrite(file.fileno(), struct.pack('=q', minutes), 0)
        for ns, (stack, _) in self.followers.items():
            self.define(stack, ns)

    @staticmethod
    def real():
        """Minutes since 1970, none added."""
        return int(time.time()) // 60

    def present(self):
        return self.real() + self.added

    def follow(self, stack, ns):
        """The database too has the minutes added, and sees at once that one has begun, instead of at the next real one."""
        found = [stack.psql(ns, 'select pg_get_functiondef(%s::regproc)', (f'stampd.{name}',))[0][0] for name in FUNCTIONS]
        self.followers[ns] = stack, found
        self.define(stack, ns)

    def define(self, stack, ns):
        stack.psql(ns, f"""
            create or replace function stampd.present_minute() returns bigint language sql volatile as $$
              select floor(extract(epoch from clock_timestamp()) / 60)::bigint + {self.added} $$;
            create or replace function stampd.minute_left_ms() returns bigint language sql volatile as $$
              select {LOOK_MS} - (extract(epoch from clock_timestamp()) * 1000)::bigint % {LOOK_MS} $$""")

    def let_them_look(self):
        """Long enough for what follows to look several times, had it anything to do."""
        time.sleep(5 * LOOK_MS / 1000)

    def release(self, ns):
        """Its own functions again: real minutes."""
        stack, found = self.followers.pop(ns)
        for definition in found:
            stack.psql(ns, definition)

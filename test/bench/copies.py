"""The figure of deferred copies, beside a bare UPDATE of the same rows."""
import sys
import tempfile
import time

import stack
from figures import Row, started
from generators import BenchError, Meter, Run, rounds
from servers import VERSION, ask, to_json

sys.path.insert(0, str(stack.SOURCE / 'test/system'))
from manager import Manager  # noqa: E402
from schema import Schemas  # noqa: E402

COPIES = 1000
ANCHOR = 'one UPDATE of the same rows'
CLASSES = {'Firm': {'items': {'Sta': {'singleton': True, 'copies': {'to': ['Team']}}}}, 'Team': {'items': {'Main': {'singleton': True}, 'Sta': {}}}}
FILL = f"""
    insert into doc (class, id, version, ctime, dtime, v1, v2)
      select 'Team', n, {VERSION}, {VERSION}, {VERSION}, 401, 0 from generate_series(1, {COPIES}) n;
    insert into item (class, id, iclass, key, version, vop, content)
      select 'Team', n, i.iclass, i.key, {VERSION}, {VERSION}, '"' || repeat('x', 198) || '"'
      from generate_series(1, {COPIES}) n cross join (values ('Main', ''), ('Sta', 'f')) i(iclass, key)"""
# What a commit writes, and nothing else: in one statement, without locks before it, guards or notes.
UPDATE = """
    with written as (update item set version = %(version)s, vop = %(version)s, content = %(content)s
      where class = 'Team' and iclass = 'Sta' and key = 'f' returning id)
    update doc d set version = %(version)s from written w where d.class = 'Team' and d.id = w.id"""


def content(number):
    return 'x' * 178 + f'{number:020}'


def repeat(server, seconds, once):
    """Does it again and again; what `once` returns is the time of it that counts."""
    meter, spent, count, end = Meter(server, 'postgres'), 0.0, 0, time.monotonic() + seconds
    while count == 0 or time.monotonic() < end:
        spent += once()
        count += COPIES
    return Run(count / spent, cost=meter.costs(count)['cost'])


class Follow:
    """A change of the source, and the task that brings it to all copies."""

    def __init__(self, server):
        self.server, self.number = server, 0
        self.manager = Manager(server, 'lab')

    def change(self):
        self.number += 1
        item = {'c': 'Sta', 'j': content(self.number)}
        ask(self.server, '/lab/op/put', to_json({'param': {'docs': [{'c': 'Firm', 'id': 'f', 'items': [item]}]}}))
        ((taskid,),) = self.server.psql('lab', 'select taskid from taskqueue')
        return taskid

    def once(self):
        taskid = self.change()
        since = time.monotonic()
        answer = self.manager.post(taskid)
        spent = time.monotonic() - since
        if answer.status_code != 200 or answer.json()['tasks'][0]['result'] != 'done':
            raise BenchError(f'copy: {answer.status_code} {answer.text}')
        return spent

    def run(self, seconds):
        run = repeat(self.server, seconds, self.once)
        newest = self.server.psql('lab', "select count(*) from item where class = 'Team' and iclass = 'Sta' and content = %s",
                                  (f'"{content(self.number)}"',))
        if newest != [(COPIES,)]:
            raise BenchError(f'of {COPIES} copies {newest[0][0]} are the newest')
        return run


class Bare:
    """The same rows of another database, written by SQL."""

    def __init__(self, server):
        self.server, self.number = server, 0

    def once(self):
        self.number += 1
        since = time.monotonic()
        self.server.psql('anchor', UPDATE, {'version': VERSION + self.number, 'content': f'"{content(self.number)}"'})
        return time.monotonic() - since

    def run(self, seconds):
        return repeat(self.server, seconds, self.once)


def copies(options):
    with started(namespaces={'lab': 'open', 'anchor': 'closed'}) as (server,), tempfile.TemporaryDirectory() as folder:
        Schemas(server, folder).apply('lab', CLASSES)
        for ns in ('lab', 'anchor'):
            server.fill(ns, FILL)
        follow, bare = Follow(server), Bare(server)
        sides = {'stampd': lambda: follow.run(options.seconds), ANCHOR: lambda: bare.run(options.seconds)}
        yield Row(f'copies of an item in {COPIES:,} documents, by one task', rounds(options.pairs, sides, options.calm), {ANCHOR: 0.25})

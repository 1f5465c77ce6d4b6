"""What the server forgets by itself: everything that is too old, in every namespace, and nothing else."""
import os
import re
import signal

import psycopg2
import pytest

from schema import Schemas
from stack import NAMESPACES, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'settings': {'keep_interval_s': 1}, 'namespaces': {**NAMESPACES, 'idle': 'open'}}

CLASS = {'Short': {'items': {'Main': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}},
                   'unique': {'name': {'key': ['Main.name']}}, 'maxLife': 'Main.until', 'zombieDays': 30},
         'Long': {'items': {'Main': {'singleton': True}}, 'zombieDays': 3650}}


@pytest.fixture(scope='module')
def lab(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for ns in ('lab', 'demo'):
        schemas.apply(ns, CLASS)
    stack.schemas = schemas
    return stack


def age(days):
    return f"stamp_of(now() - interval '{days} days')"


def fill(stack, ns, count):
    """Of each kind some that are too old, and one that is not."""
    run = stack.psql
    run(ns, f"insert into doc (class, id, version, ctime, dtime, v1, v2) select 'Short', 'z' || n, {age(31)}, 0, 0, 0, 0 from generate_series(1, {count}) n")
    run(ns, f"insert into doc (class, id, version, ctime, dtime, v1, v2) values ('Short', 'zk', {age(29)}, 0, 0, 0, 0), ('Long', 'zk', {age(100)}, 0, 0, 0, 0),"
            f" ('Other', 'zo', {age(61)}, 0, 0, 0, 0), ('Other', 'zk', {age(59)}, 0, 0, 0, 0)")
    run(ns, f"""do $$ begin for n in 1..{count} loop
        perform stampd.put_item('Short', 'e' || n, 'Main', '', '{{"team":"t","until":1,"name":"' || n || '"}}'); end loop;
        perform stampd.put_item('Short', 'live', 'Main', '', '{{"team":"t","until":99999999,"name":"live"}}');
        perform stampd.put_item('Short', 'left', 'Main', '', '{{"team":"t"}}');
        perform stampd.put_item('Short', 'left', 'Main', '', '{{"team":"u"}}');
        perform stampd.put_item('Short', 'left2', 'Main', '', '{{"team":"t"}}');
        perform stampd.put_item('Short', 'left2', 'Main', '', '{{"team":"u"}}'); end $$""")
    run(ns, f"update member set version = {age(31)} where has_left and id = 'left'")
    run(ns, "insert into subscription (session, version, until) values ('session-that-ended', 1, 1), ('session-that-lives', 1, 99999999)")
    run(ns, f"insert into idempotency (account, key, digest, mime, answer, version, at) select 'a', 'k' || n, 'd', 'm', '', 0, {age(2)} from generate_series(1, {count}) n")
    run(ns, "insert into idempotency (account, key, digest, mime, answer, version, at) values ('a', 'fresh', 'd', 'm', '', 0, stamp_now())")
    run(ns, f"insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime) values ('t', 'o', '', 0, 0, 0, 1, 1, {age(31)}),"
            " ('t', 'o', '', 0, 0, 0, 1, 1, stamp_now())")
    run(ns, f"insert into unique_value (property, value, id) select 999999, n::text, n::text from generate_series(1, {count}) n")


def left_over(stack, ns):
    return {name: {row[0] for row in stack.psql(ns, sql)} for name, sql in {
        'zombies': "select class || id from doc where ctime = 0 and id !~ '^e'", 'ended': "select id from doc where class = 'Short' and ctime <> 0",
        'departures': "select id from member where has_left and id !~ '^e'", 'subscriptions': 'select session from subscription',
        'answers': "select key from idempotency where account = 'a'", 'attempts': "select number::text from task_history where taskid = 't' and stoptime < stamp_of(now() - interval '1 day')",
        'values': 'select id from unique_value where property = 999999', 'end': 'select id from expiry'}.items()}


WANTED = {'zombies': {'Shortzk', 'Longzk', 'Otherzk'}, 'ended': {'live', 'left', 'left2'}, 'departures': {'left2'}, 'subscriptions': {'session-that-lives'},
          'answers': {'fresh'}, 'attempts': set(), 'values': set(), 'end': {'live'}}


def logged(stack):
    """What the keeper has deleted from lab by its log: {kind: rows}."""
    sums = {'ended': sum(map(int, re.findall(r'deleted expired documents database=stampd_lab documents=(\d+)', stack.log())))}
    for line in re.findall(r'purged database=stampd_lab (.*)', stack.log()):
        for name, count in re.findall(r'(\w+)=(\d+)', line):
            sums[name] = sums.get(name, 0) + int(count)
    return sums


def rounds(stack):
    return stack.metrics()['stampd_purge_rounds_total']


# keep_kind deletes each kind in batches.
def test_what_is_too_old_goes_and_nothing_else(lab):
    for ns, count in (('lab', 450), ('demo', 3)):
        fill(lab, ns, count)
    for ns in ('lab', 'demo'):
        wait_until(lambda ns=ns: left_over(lab, ns) == WANTED, what=f'all that is too old in {ns}: {left_over(lab, ns)}')
    assert lab.psql('lab', "select floor >= 1 from namespace") == [(True,)]

    def purged():
        return {name.split('"')[1]: count for name, count in lab.metrics().items() if name.startswith('stampd_purged_total{')}
    wait_until(lambda: purged()['zombies'] >= 451 + 4 and purged()['ended'] >= 453, what='the count of what has been deleted')
    assert set(purged()) >= {'departures', 'subscriptions', 'attempts'}
    # A round is counted, and what it has deleted is logged, at its end.
    wait_until(lambda: rounds(lab) > 0, what='the end of a round')
    wanted = {'ended': 450, 'zombies': 451, 'answers': 450, 'values': 450}
    wait_until(lambda: {name: logged(lab).get(name, 0) for name in wanted} == wanted, what=f'the log: {logged(lab)}')


def test_a_namespace_that_is_closed_for_maintenance_is_left_alone(lab):
    lab.psql('z', """select put_item('Namespace', 'demo', 'Conf', '', (content::jsonb || '{"state":2}')::text) from item
                     where class = 'Namespace' and id = 'demo' and iclass = 'Conf'""")
    since = rounds(lab)
    wait_until(lambda: rounds(lab) >= since + 2, what='a round that has begun since')  # one under way may have listed it as open
    lab.psql('demo', "insert into subscription (session, version, until) values ('session-of-the-closed', 1, 1)")
    lab.psql('lab', "insert into subscription (session, version, until) values ('session-of-the-open-1', 1, 1)")
    wait_until(lambda: not lab.psql('lab', "select 1 from subscription where session = 'session-of-the-open-1'"), what='a round')
    lab.psql('lab', "insert into subscription (session, version, until) values ('session-of-the-open-2', 1, 1)")
    wait_until(lambda: not lab.psql('lab', "select 1 from subscription where session = 'session-of-the-open-2'"), what='another round')
    assert lab.psql('demo', "select 1 from subscription where session = 'session-of-the-closed'")
    lab.psql('z', """select put_item('Namespace', 'demo', 'Conf', '', (content::jsonb - 'state')::text) from item
                     where class = 'Namespace' and id = 'demo' and iclass = 'Conf'""")
    wait_until(lambda: not lab.psql('demo', "select 1 from subscription where session = 'session-of-the-closed'"), what='the open one')


def test_volumes_are_those_of_what_is_in_use_and_on(lab):
    """What nothing has used yet stays out of the table of namespaces, to whose databases the relay connects; what is off has no volumes."""
    def volume():
        return lab.metrics().get('stampd_stored_bytes{ns="idle"}')

    def set_state(state):
        lab.psql('z', f"""select put_item('Namespace', 'idle', 'Conf', '', (content::jsonb || '{{"state":{state}}}')::text) from item
                          where class = 'Namespace' and id = 'idle' and iclass = 'Conf'""")
    known, since = lab.metrics()['stampd_namespaces'], rounds(lab)
    lab.psql('idle', "insert into subscription (session, version, until) values ('session-that-idles', 1, 1)")
    wait_until(lambda: not lab.psql('idle', 'select 1 from subscription') and rounds(lab) >= since + 2, what='rounds')
    assert lab.metrics()['stampd_namespaces'] == known and volume() is None
    lab.op('idle', 'volumes', admin=True)
    wait_until(lambda: volume() == 0, what='its volume')
    set_state(2)
    wait_until(lambda: volume() is None, what='a round without it')
    set_state(0)
    wait_until(lambda: volume() == 0, what='a round with it')


def test_a_keeper_that_dies_is_replaced_and_a_bad_namespace_stops_nothing(lab):
    lab.psql('z', """select put_item('Namespace', 'aaa', 'Conf', '', '{"database":"stampd_gone","access":"open"}'),
                     put_item('Namespace', 'aab', 'Conf', '', '[]')""")
    keeper = lab.keeper()
    os.kill(keeper, signal.SIGKILL)
    lab.psql('lab', "insert into subscription (session, version, until) values ('session-after-a-death', 1, 1)")
    wait_until(lambda: not lab.psql('lab', "select 1 from subscription where session = 'session-after-a-death'"), what='the next keeper')
    assert lab.keeper() != keeper
    lab.psql('z', "select delete_document('Namespace', 'aaa'), delete_document('Namespace', 'aab')")


def test_it_waits_for_nobody(lab):
    """Another purge is under way: the lock is not waited for."""
    with Lock(lab):
        lab.psql('lab', "insert into subscription (session, version, until) values ('session-under-a-lock', 1, 1)")
        lab.psql('demo', "insert into subscription (session, version, until) values ('session-of-others', 1, 1)")
        wait_until(lambda: not lab.psql('demo', "select 1 from subscription where session = 'session-of-others'"), what='the other namespace')
        assert lab.psql('lab', "select 1 from subscription where session = 'session-under-a-lock'")
    wait_until(lambda: not lab.psql('lab', "select 1 from subscription where session = 'session-under-a-lock'"), what='behind the lock')


class Lock:
    def __init__(self, stack):
        self.connection = psycopg2.connect(stack.conninfo('lab'))

    def __enter__(self):
        self.connection.cursor().execute("select pg_advisory_xact_lock(hashtextextended('stampd keeper', 0))")

    def __exit__(self, *_):
        self.connection.rollback()
        self.connection.close()

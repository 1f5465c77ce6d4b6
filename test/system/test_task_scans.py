"""Where scans begin (doc/explanation/why-tasks-happen-once.md): they read what is done once, on many hosts too, and miss nothing."""
import psycopg2
import pytest

from manager import Manager

pytestmark = pytest.mark.plain

STACK = {'workers': 1, 'settings': {'hosts': 'many'}, 'postgres': {'autovacuum': 'off'}}  # what it counts it writes, and holds back the bound meanwhile
DEAD, SCANS = 20000, 12


@pytest.fixture(autouse=True)
def empty(stack):
    stack.psql('lab', 'truncate taskqueue, task_history')


def create(connection, age, **more):
    names = ''.join(f', {name} => %({name})s' for name in more)
    cursor = connection.cursor()
    cursor.execute(f"select stampd.task_create('put', startat => stampd.stamp_of(now() - %(age)s::interval){names})", {'age': age, **more})
    return cursor.fetchone()[0]


def entries_read(stack):
    """Of the indexes by which scans find what is due."""
    stack.end_sessions()
    ((count,),) = stack.psql('lab', "select sum(idx_tup_read)::bigint from pg_stat_user_indexes"
                                    " where indexrelname in ('taskqueue_due', 'taskqueue_start', 'taskqueue_domain_due')")
    return count


@pytest.fixture
def dead(stack):
    """Tasks that are done, whose rows an open snapshot keeps."""
    stack.psql('lab', "insert into taskqueue (taskid, opname, param, startat, created) select 'dead' || n, 'put', '{}', stamp_of(now() - interval '1 hour'), 1"
                      " from generate_series(1, %s) n", (DEAD,))
    reader = psycopg2.connect(stack.conninfo('lab'))
    reader.set_session(isolation_level='REPEATABLE READ')
    reader.cursor().execute('select count(*) from stampd.taskqueue')
    stack.psql('lab', 'delete from taskqueue')
    yield
    reader.close()


def test_what_is_done_is_not_read_by_each_scan(stack, dead):
    manager = Manager(stack, 'lab')
    before = entries_read(stack)
    for _ in range(SCANS):
        assert manager.due() == []
    read = entries_read(stack) - before
    assert DEAD <= read < 8 * DEAD, 'the first scans read it, and no other'


@pytest.fixture
def bounded(stack):
    """A manager whose scans begin late."""
    manager = Manager(stack, 'lab')
    for _ in range(4):
        manager.scan()
    return manager


def test_a_task_that_is_committed_late_is_found(stack, bounded):
    connection = psycopg2.connect(stack.conninfo('lab'))
    try:
        late = create(connection, '1 hour')
        for _ in range(4):
            assert bounded.due() == [], 'it is not there yet'
        connection.commit()
        assert bounded.due() == [late]
        assert bounded.due() == [late]
    finally:
        connection.close()


@pytest.mark.parametrize('change', [
    "update taskqueue set startat = stamp_of(now() - interval '1 day')", 'select task_run(taskid) from taskqueue',
    "select task_move(taskid, stamp_of(now() - interval '1 day')) from taskqueue"])
def test_a_task_whose_start_becomes_earlier_is_found(stack, bounded, change):
    task = stack.psql('lab', "select task_create('put', startat => stamp_of(now() + interval '1 day'))")[0][0]
    for _ in range(4):
        assert bounded.due() == []
    stack.psql('lab', change)
    assert bounded.due() == [task]


def test_an_attempt_that_began_long_ago_waits_again_with_its_start(stack, bounded):
    connection = psycopg2.connect(stack.conninfo('lab'))
    try:
        task = create(connection, '1 hour')
        connection.commit()
    finally:
        connection.close()
    claim = stack.psql('lab', "update taskqueue set starttime = stamp_now(), holder = 'another host' returning starttime, startat")
    for _ in range(4):
        assert bounded.due() == []
    ((claimed, start),) = claim
    stack.psql('lab', "select task_put_back(%s, %s, 0, %s, false, 'MORE', 'interrupted', %s)", (task, claimed, start, claimed))
    assert bounded.due() == [task]


@pytest.mark.parametrize('broken', ['delete from task_early', 'update task_early set mark = -1', 'update task_early set mark = 0'])
def test_a_mark_that_is_altered_loses_nothing(stack, bounded, broken):
    connection = psycopg2.connect(stack.conninfo('lab'))
    try:
        create(connection, '1 hour')
        connection.commit()
        stack.psql('lab', broken)
        assert len(bounded.due()) == 1
        for _ in range(4):
            bounded.scan()
        stack.psql('lab', broken)
        create(connection, '2 hours')
        connection.commit()
        assert len(bounded.due()) == 2
    finally:
        connection.close()


def test_a_task_with_a_present_start_leaves_no_mark(stack, bounded):
    """Commits that create tasks share no row."""
    before = stack.psql('lab', 'select mark from task_early')
    stack.op('lab', 'task', {'op': 'put', 'param': {'docs': []}}, admin=True)
    stack.psql('lab', "select task_create('put', '{\"docs\":[]}')")
    for task in bounded.due():
        bounded.run(task)
    assert stack.psql('lab', 'select mark from task_early') == before

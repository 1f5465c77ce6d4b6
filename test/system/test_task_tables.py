"""The tables of tasks and their SQL functions, without any server: what is due, merges, what comes back."""
import threading

import psycopg2
import pytest

from stack import PATIENCE_S, Stack

pytestmark = pytest.mark.plain  # functions of the database alone

PARKED = 991231235959999
EARLY, LATE = 200101000000000, 400101000000000


@pytest.fixture(scope='module')
def stack():
    with Stack('tasktables', workers=1, postgres={'autovacuum': 'off'}) as running:  # after it a session reads what it knows of tables again, and counts the pages
        yield running


@pytest.fixture(autouse=True)
def empty(stack):
    stack.psql('lab', 'truncate taskqueue, task_history')


def create(stack, opname='Op', **more):
    names = ''.join(f', {name} => %({name})s' for name in more)
    return stack.psql('lab', f'select task_create(%(opname)s{names})', {'opname': opname, **more})[0][0]


def row(stack, taskid, columns):
    found = stack.psql('lab', f'select {columns} from taskqueue where taskid = %s', (taskid,))
    return found[0] if found else None


def claim(stack, taskid, starttime=EARLY):
    stack.psql('lab', "update taskqueue set starttime = %s, holder = 'x' where taskid = %s", (starttime, taskid))


def put_back(stack, taskid, again=LATE, attempt=0, is_failure=True, starttime=EARLY):
    return stack.psql('lab', "select task_put_back(%s, %s, %s, %s, %s, 'XBAD', 'words', %s)",
                      (taskid, starttime, attempt, again, is_failure, starttime + 5))[0][0]


def due(stack, most=1000, before=None):
    return [taskid for taskid, in stack.psql('lab', 'select taskid from tasks_due(%s, %s)', (most, before))]


# --- what is due ---

def test_due_tasks_come_by_queue_priority_and_start(stack):
    last = create(stack, qn=3, priority=0)
    later = create(stack, priority=20, startat=EARLY + 2)
    sooner = create(stack, priority=20, startat=EARLY + 1)
    urgent = create(stack, priority=3)
    create(stack, startat=LATE)
    held = create(stack)
    stack.psql('lab', 'select task_hold(%s)', (held,))
    running = create(stack)
    claim(stack, running)
    assert due(stack) == [urgent, sooner, later, last]
    assert due(stack, most=1) == [urgent, last]
    assert due(stack, before=EARLY + 1) == [sooner]


def test_of_equal_starts_the_first_created_comes_first(stack):
    made = [create(stack, startat=EARLY) for _ in range(5)]
    assert due(stack) == made


def test_of_a_domain_the_one_whose_turn_it_is_comes(stack):
    create(stack, domain='site', startat=EARLY)
    second = create(stack, domain='site', priority=3, startat=EARLY + 9)
    create(stack, domain='site', priority=1, startat=LATE)
    other = create(stack, domain='other')
    assert sorted(due(stack)) == sorted([second, other])
    claim(stack, second)
    assert due(stack) == [other]


@pytest.mark.parametrize('stuck', [10, 3000])
def test_domains_are_found_behind_others_however_many_tasks_wait_there(stack, stuck):
    """More than are looked at in one go take another road."""
    stack.psql('lab', "insert into taskqueue (taskid, opname, param, startat, created, domain)"
               " select 'stuck' || lpad(i::text, 8, '0'), 'Op', '{}', %s, 0, 'd' || i %% 2 from generate_series(1, %s) i", (EARLY, stuck))
    alone = create(stack, domain='z')
    claim(stack, 'stuck00000001')
    assert sorted(due(stack)) == sorted(['stuck00000002', alone])
    assert len(due(stack, most=1)) == 1


def test_of_a_domain_in_which_nothing_may_start_now_what_may_start_first_comes(stack):
    now, later, last = (stack.psql('lab', "select stamp_of(date_trunc('second', now()) + make_interval(secs => %s))", (seconds,))[0][0] for seconds in (0, 300, 600))
    strict = create(stack, domain='d', priority=30, startat=later, strict=True)
    behind = create(stack, domain='d', priority=1, startat=EARLY, strict=True)
    loose = create(stack, domain='d', priority=9, startat=later + 1)
    urgent = create(stack, domain='d', priority=5, startat=last)
    assert due(stack) == [] and due(stack, before=later - 1) == []
    assert due(stack, before=LATE) == [strict]
    assert stack.psql('lab', 'select taskid from tasks_due(1000, %s, 0, %s)', (LATE, last)) == [(urgent,)], 'whose turn it is then'
    stack.psql('lab', 'select task_hold(%s)', (strict,))
    assert due(stack, before=LATE) == [loose], 'and those behind one that is parked wait'
    stack.psql('lab', "select task_pause(opname => 'Op')")
    assert due(stack, before=LATE) == []
    stack.psql('lab', "select task_resume(opname => 'Op')")
    claim(stack, loose)
    assert due(stack, before=LATE) == []
    stack.psql('lab', 'select task_drop(%s)', (strict,))
    put_back(stack, loose, again=last, is_failure=False)
    assert due(stack, before=LATE) == [behind]
    assert stack.psql('lab', "select task_later('d', %s, %s), task_later('d', %s, %s)", (now, LATE, last, LATE)) == [(urgent, None)]


# --- rules ---

def test_a_resource_has_one_waiting_task_with_the_later_start_the_smaller_priority_and_the_newest_param(stack):
    first = create(stack, resource='r', startat=LATE, priority=20, param='{"n":1}', info='one')
    assert create(stack, resource='r', startat=EARLY, priority=5, param='{"n":2}', info='two') == first
    assert create(stack, resource='r', startat=LATE + 1, priority=9, param='{"n":3}', info='three') == first
    assert row(stack, first, 'startat, priority, param, info') == (LATE + 1, 5, '{"n":3}', 'three')
    assert create(stack, 'Other', resource='r') != first
    assert create(stack, resource='s') != first


def test_a_task_that_runs_is_not_touched_by_a_new_one_for_its_resource(stack):
    first = create(stack, resource='r', startat=EARLY, param='{"n":1}')
    claim(stack, first)
    second = create(stack, resource='r', param='{"n":2}')
    assert second != first
    assert row(stack, first, 'param, startat') == ('{"n":1}', EARLY)


def test_a_failed_attempt_gives_way_to_the_task_that_waits_for_its_resource(stack):
    first = create(stack, resource='r', startat=EARLY, priority=1)
    claim(stack, first)
    second = create(stack, resource='r', startat=EARLY, priority=20, param='{"n":2}')
    assert put_back(stack, first, again=LATE) == EARLY, 'it was requested for now: the delay is that of the failed attempt'
    assert row(stack, first, '1') is None
    assert row(stack, second, 'startat, priority, retry, param') == (EARLY, 1, 1, '{"n":2}'), 'and its tries go on'


def test_one_that_is_given_up_does_not_park_the_one_that_waits_for_its_resource(stack):
    first = create(stack, resource='r', startat=EARLY)
    claim(stack, first)
    second = create(stack, resource='r', startat=EARLY)
    assert put_back(stack, first, again=PARKED) == EARLY
    assert row(stack, second, 'startat') == (EARLY,)


def test_a_new_request_does_not_wait_for_the_delay_of_a_failure(stack):
    first = create(stack, resource='r', startat=EARLY)
    stack.psql('lab', 'update taskqueue set latest = %s', (EARLY + 1,))
    claim(stack, first)
    assert put_back(stack, first, again=LATE) == LATE
    assert create(stack, resource='r', startat=EARLY + 7, param='{"n":2}') == first
    assert row(stack, first, 'startat, retry, exc, report, param, latest') == (EARLY + 7, 1, None, None, '{"n":2}', None)
    assert create(stack, resource='r', startat=EARLY + 9) == first
    assert create(stack, resource='r', startat=EARLY + 8) == first
    assert row(stack, first, 'startat') == (EARLY + 9,), 'among requests the later start counts, as ever'


def test_a_new_request_revives_what_was_parked_after_failures_and_leaves_what_is_held(stack):
    first = create(stack, resource='r', startat=EARLY)
    claim(stack, first)
    assert put_back(stack, first, again=PARKED) == PARKED
    assert create(stack, resource='r', startat=EARLY + 7) == first
    assert row(stack, first, 'startat, retry, exc') == (EARLY + 7, 0, None)
    assert stack.psql('lab', 'select task_hold(%s)', (first,)) == [(True,)]
    assert create(stack, resource='r', startat=EARLY + 9, param='{"n":9}') == first
    assert row(stack, first, 'startat, exc, param') == (PARKED, 'HELD', '{"n":9}')


def test_putting_back_waits_for_a_request_for_the_resource_that_is_being_committed(stack):
    first = create(stack, resource='r', startat=EARLY)
    claim(stack, first)
    with psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd') as other:
        with other.cursor() as cursor:
            cursor.execute("select task_create('Op', resource => 'r', startat => %s)", (EARLY,))
            second = cursor.fetchone()[0]
            answers = []
            thread = threading.Thread(target=lambda: answers.append(put_back(stack, first)))
            thread.start()
            other.commit()
            thread.join(PATIENCE_S)
    assert answers == [EARLY]
    assert (row(stack, first, '1'), row(stack, second, 'startat, retry')) == (None, (EARLY, 1))


def test_two_of_a_domain_cannot_run(stack):
    first, second = create(stack, domain='d'), create(stack, domain='d')
    claim(stack, first)
    with pytest.raises(psycopg2.errors.UniqueViolation):
        claim(stack, second)


# --- ends ---

def test_putting_back_counts_a_failure_and_remembers_the_attempt(stack):
    task = create(stack, startat=EARLY, info='words to find')
    claim(stack, task)
    assert put_back(stack, task) == LATE
    assert row(stack, task, 'startat, starttime, holder, retry, exc, report') == (LATE, None, None, 1, 'XBAD', 'words')
    assert stack.psql('lab', 'select taskid, opname, info, retry, startat, starttime, stoptime, exc, report, holder from task_history') == [
        (task, 'Op', 'words to find', 0, EARLY, EARLY, EARLY + 5, 'XBAD', 'words', 'x')]


def test_an_attempt_that_is_over_puts_nothing_back(stack):
    task = create(stack, startat=EARLY)
    assert put_back(stack, task) is None, 'it waits'
    claim(stack, task)
    assert put_back(stack, task, starttime=EARLY + 1) is None, 'another claim'
    assert put_back(stack, task, attempt=1) is None, 'another attempt'
    assert put_back(stack, 'nosuchtask') is None
    assert stack.psql('lab', 'select count(*) from task_history') == [(0,)]
    assert row(stack, task, 'starttime, retry') == (EARLY, 0)


def test_a_task_that_is_only_interrupted_counts_no_failure(stack):
    task = create(stack, startat=EARLY)
    claim(stack, task)
    assert put_back(stack, task, is_failure=False) == LATE
    assert row(stack, task, 'retry, exc, report') == (0, None, None)


# --- administrators ---

def test_holding_moving_and_running(stack):
    task = create(stack, startat=LATE)
    assert stack.psql('lab', 'select task_hold(%s)', (task,)) == [(True,)]
    assert row(stack, task, 'startat, exc') == (PARKED, 'HELD')
    assert stack.psql('lab', 'select task_move(%s, %s)', (task, LATE + 3)) == [(LATE + 3,)]
    assert row(stack, task, 'startat, exc, report') == (LATE + 3, None, None)
    assert stack.psql('lab', 'select task_run(%s) <= stamp_now()', (task,)) == [(True,)]
    claim(stack, task)
    assert stack.psql('lab', 'select task_hold(%s), task_run(%s)', (task, task)) == [(False, None)]
    assert stack.psql('lab', 'select task_drop(%s), task_drop(%s)', (task, 'nosuchtask')) == [(True, False)]
    assert stack.psql('lab', 'select exc from task_history') == [('DROPPED',)]


def test_nobody_parks_by_moving(stack):
    task = create(stack)
    for start in (PARKED, 0, PARKED + 1):
        with pytest.raises(psycopg2.Error):
            stack.psql('lab', 'select task_move(%s, %s)', (task, start))


def test_a_task_has_an_operation_and_an_object(stack):
    for arguments in ({'opname': 'no name'}, {'param': '[]'}, {'param': '{'}, {'priority': 256}, {'qn': 32}):
        with pytest.raises(psycopg2.Error):
            create(stack, **arguments)


@pytest.mark.parametrize('start', [999999999999999, 261399999999999, 270229000000000, 5, -1, 0, PARKED, 260101240000000])
def test_no_task_starts_at_what_is_no_stamp(stack, start):
    with pytest.raises(psycopg2.Error):
        create(stack, startat=start)
    task = create(stack)
    with pytest.raises(psycopg2.Error):
        stack.psql('lab', 'select task_move(%s, %s)', (task, start))


@pytest.mark.parametrize('arguments', [
    {'param': '{"a":"' + 'x' * 65530 + '"}'}, {'info': 'x' * 273}, {'resource': 'x' * 273}, {'domain': 'x' * 256}, {'param': '{"a":"\\u0000"}'},
    {'param': '{"a":' * 33 + '1' + '}' * 33}, {'strict': True}])
def test_what_the_server_would_refuse_is_refused_in_sql(stack, arguments):
    with pytest.raises(psycopg2.Error):
        create(stack, **arguments)
    assert create(stack, param='{"a":["}\\"]{",{"b":[[]]}]}', info='x' * 255, domain='d', strict=True)


def test_queue_and_batch_are_those_that_the_server_declares(stack):
    stack.psql('lab', "select task_operations('{Op,Other}', '{3,1}', '{50,1}', 100)")
    assert row(stack, create(stack), 'qn, batch') == (3, 50)
    assert row(stack, create(stack, qn=5, batch=7), 'qn, batch') == (5, 7)
    assert row(stack, create(stack, domain='d'), 'qn, batch') == (3, 1)
    assert row(stack, create(stack, opname='Unknown'), 'qn, batch') == (0, 1)
    with pytest.raises(psycopg2.Error):
        create(stack, param='{"a":"' + 'x' * 100 + '"}')
    stack.psql('lab', "select task_operations('{Other}', '{1}', '{1}', 100)")
    assert row(stack, create(stack), 'qn, batch') == (0, 1)
    stack.psql('lab', 'truncate task_operation')


def test_strict_order_is_that_of_creation_whatever_becomes_of_the_first(stack):
    first = create(stack, startat=EARLY + 9, priority=200, domain='d', strict=True)
    second = create(stack, startat=EARLY, priority=0, domain='d', strict=True)
    third = create(stack, startat=EARLY + 1, domain='d', strict=True)

    def turn():
        return stack.psql('lab', "select task_next('d', stamp_now())")[0][0]
    assert turn() == first
    claim(stack, first)
    put_back(stack, first)  # failed: it waits for its next try
    assert turn() is None and due(stack) == []
    stack.psql('lab', 'select task_hold(%s)', (first,))
    assert turn() is None, 'parked'
    loose = create(stack, startat=EARLY + 5, domain='d')
    assert turn() == loose, 'those without strict order pass'
    stack.psql('lab', 'select task_drop(%s)', (loose,))
    stack.psql('lab', 'select task_move(%s, %s)', (first, EARLY))
    assert turn() == first
    stack.psql('lab', 'select task_drop(%s)', (first,))
    assert turn() == second
    stack.psql('lab', 'select task_drop(%s)', (second,))
    assert turn() == third and due(stack) == [third]


def test_domains_of_strict_order_are_found_behind_others_that_wait(stack):
    stack.psql('lab', "select task_create('Op', startat => %s, domain => 'a', strict => true) from generate_series(1, 1500)", (EARLY,))
    behind = create(stack, startat=EARLY + 1, domain='b', strict=True)
    assert due(stack)[1:] == [behind]


def test_what_is_done_is_not_read_again(stack):
    """A transaction that is open keeps the dead rows: a scan does not go through them."""
    stack.psql('lab', "select task_create('Op', startat => stamp_of(now() - interval '1 hour')) from generate_series(1, 20000)")
    reader = psycopg2.connect(stack.conninfo('lab'))
    reader.set_session(isolation_level='REPEATABLE READ')
    reader.cursor().execute('select count(*) from stampd.taskqueue')
    try:
        stack.psql('lab', 'delete from taskqueue')
        create(stack)

        def pages(since):
            ((plan,),) = stack.psql('lab', f'explain (analyze, buffers, format json) select * from tasks_due(1000, null, {since})')
            return plan[0]['Plan']['Shared Hit Blocks'] + plan[0]['Plan']['Shared Read Blocks'], plan[0]['Plan']['Actual Rows']
        since = stack.psql('lab', "select stamp_of(now() - interval '1 minute')")[0][0]
        pages(0)
        (whole, found), (part, also) = pages(0), pages(since)
        assert found == also == 1
        assert whole > 100 and part < whole / 5, (whole, part)
    finally:
        reader.close()


def test_what_operations_declare_is_compared_by_one_look(stack):
    """At each scan: pages do not grow with the number of operations."""
    def pages(count):
        arguments = ([f'Op{number}' for number in range(count)], [number % 4 for number in range(count)], [1] * count, 65536)
        declare = 'select task_operations(%s::text[], %s::int[], %s::int[], %s)'
        stack.psql('lab', declare, arguments)
        ((plan,),) = stack.psql('lab', 'explain (analyze, buffers, format json) ' + declare, arguments)
        return plan[0]['Plan']['Shared Hit Blocks'] + plan[0]['Plan']['Shared Read Blocks']
    few, many = pages(3), pages(60)
    assert many <= min(few + 4, 8), (few, many)


def test_the_backlog_counts_by_queue(stack):
    create(stack, startat=EARLY)
    create(stack, startat=EARLY + 1, domain='d')
    create(stack, startat=LATE)
    create(stack, qn=2, startat=LATE)
    running, failed, held = create(stack), create(stack, startat=LATE), create(stack)
    for task in (running, failed):
        claim(stack, task)
    put_back(stack, failed)
    stack.psql('lab', 'select task_hold(%s)', (held,))
    assert stack.psql('lab', 'select qn, due, later, running, parked, failing, oldest from task_backlog()') == [
        (0, 2, 2, 1, 1, 1, EARLY), (2, 0, 1, 0, 0, 0, None)]
    assert stack.psql('lab', 'select due from task_backlog(1)')[0] == (2,)


def test_history_is_purged_from_its_oldest_end_in_batches(stack):
    stack.psql('lab', "insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime)"
               " select 'task' || i, 'Op', '', 0, 0, 1, i, i, i from generate_series(1, 10) i")
    assert stack.psql('lab', 'select task_purge_history(7, 4)') == [(4,)]
    assert stack.psql('lab', 'select task_purge_history(7, 4)') == [(2,)]
    assert stack.psql('lab', 'select task_purge_history(7, 4)') == [(0,)]
    assert stack.psql('lab', 'select min(stoptime) from task_history') == [(7,)]

"""Periodic tasks: declared by modules and by administrators, planned by scans, planned again by the commit of each turn."""
import concurrent.futures
import datetime
import re
import shutil
import subprocess
import threading
from zoneinfo import ZoneInfo

import psycopg2
import pytest

from kit import Kit
from manager import PARKED, Manager
from stack import BUILD, PATIENCE_S, SOURCE, Stack, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 4, 'settings': {}, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'open'}}
UTC = datetime.timezone.utc


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    kit.tasks = kit.build('tasks.c')
    kit.module = {period: kit.build('periodic.c', f'periodic{period}', f'-DPERIOD="{period}"') for period in ('Y11100425', 'D0425')}
    STACK['settings'] = {'modules': f'{kit.tasks} {kit.module["Y11100425"]}', 'task_retries': '0 0', 'task_queues': 'Count=3',
                         'restart_young_ms': 0, 'hosts': 'many'}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def manager(stack):
    for ns in ('lab', 'demo'):
        stack.psql(ns, 'truncate cron, taskqueue, task_history')
        stack.clear(ns, 'Counter')
    return Manager(stack, 'lab')


def stampctl(stack, *words, status=0):
    run = stack.stampctl if words[1] == 'next' else stack.admin
    return run(*words, status=status).text


def far_minute(stack):
    """An hourly period whose minute is not near."""
    return f"H{(stack.psql('lab', 'select stamp_now() / 100000 % 100')[0][0] + 30) % 60:02}"


def far_hour(stack):
    """A daily period whose time is not near, in UTC and in Kathmandu."""
    return f"D{(stack.psql('lab', 'select stamp_now() / 10000000 % 100')[0][0] + 12) % 24:02}00"


def add(stack, name='Rule', period=None, op='Count', param='{"id":"one"}', ns='lab'):
    period = period or far_minute(stack)
    stampctl(stack, 'cron', 'add', ns, name, period, op, '--param', param, '--info', f'rule {name}')
    return period


def task(stack, name='Rule', columns='taskid, startat', ns='lab'):
    """The one task of a rule."""
    rows = stack.psql(ns, f'select {columns} from taskqueue where cron = %s', (name,))
    assert len(rows) <= 1
    return rows[0] if rows else None


def only(stack, column, name='Rule', ns='lab'):
    return task(stack, name, column, ns)[0]


def due_now(stack, name='Rule', ns='lab'):
    """Its time has come: the start is put back, not the clock of the host."""
    stack.psql(ns, 'update taskqueue set startat = stamp_now() where cron = %s', (name,))


def counted(stack, name='one', ns='lab'):
    document = stack.get(ns, ('Counter', name))
    return document['items'][0]['j']['n'] if document['v'] else 0


def history(stack, ns='lab'):
    return [tuple(row) for row in stack.psql(ns, 'select opname, retry, exc from task_history order by number')]


def now(stack):
    return stack.psql('lab', 'select stamp_now()')[0][0]


def moment(stamp):
    return datetime.datetime.strptime(f'20{stamp // 1000:012}', '%Y%m%d%H%M%S').replace(tzinfo=UTC)


# --- turns ---

def test_the_commit_of_a_turn_makes_it_wait_for_the_next(stack, manager):
    period = add(stack)
    manager.scan()
    for turn in range(1, 4):
        taskid, start = task(stack)
        assert start > now(stack) and start // 100000 % 100 == int(period[1:]) and start % 100000 == 0
        assert manager.run(taskid) == {'id': taskid, 'result': 'waiting', 'startat': start}
        due_now(stack)
        assert manager.due() == [taskid]
        assert manager.run(taskid)['result'] == 'done'
        assert counted(stack) == turn and task(stack) == (taskid, start)  # no scan was needed
        assert manager.run(taskid)['result'] == 'waiting'
    assert history(stack) == [('Count', 0, None)] * 3
    assert task(stack, columns='opname, param, info, qn, retry, step, exc, starttime') == (
        'Count', '{"id":"one"}', 'rule Rule', 3, 0, 0, None, None)


def test_each_turn_counts_its_cycles_and_begins_anew(stack, manager):
    add(stack, op='Cycles', param='{"id":"one","cycles":3}')
    manager.scan()
    for turn in (1, 2):
        due_now(stack)
        assert manager.run(only(stack, 'taskid'))['result'] == 'done'
        assert counted(stack) == 3 * turn and task(stack, columns='step, checkpoint') == (0, None)
    assert stack.psql('lab', 'select step from task_history') == [(3,), (3,)]


def test_a_turn_that_fails_is_tried_again_and_the_rule_goes_on(stack, manager):
    period = add(stack, op='Fail', param='{"id":"one"}')
    manager.scan()
    _, start = task(stack)
    for turn in (1, 2):
        due_now(stack)
        taskid = only(stack, 'taskid')
        for retry in (1, 2, 3):
            outcome = manager.run(taskid, status=500)
            assert (outcome['result'], outcome['retry']) == ('failed', retry)
            assert manager.due() == ([taskid] if retry < 3 else [])
        assert task(stack, columns='startat, retry, exc') == (start, 0, 'AFAIL')  # the last scan has seen it parked
        assert len(history(stack)) == 3 * turn
    stampctl(stack, 'cron', 'add', 'lab', 'Rule', period, 'Count', '--param', '{"id":"one"}')
    manager.scan()
    due_now(stack)
    assert manager.run(only(stack, 'taskid'))['result'] == 'done' and counted(stack) == 1
    assert task(stack, columns='startat, exc') == (start, None)


def test_what_has_succeeded_at_last_has_not_failed(stack, manager):
    """Failures of a turn do not count in the next one."""
    add(stack, op='Fail', param='{"id":"one","times":1}')
    manager.scan()
    due_now(stack)
    taskid = only(stack, 'taskid')
    assert manager.run(taskid, status=500)['retry'] == 1
    due_now(stack)
    assert manager.run(taskid)['result'] == 'done'
    assert task(stack, columns='retry, exc') == (0, None)


def test_a_rule_of_five_fields_waits_for_their_next_time(stack, manager):
    add(stack, period='*/10 8-18 * jan-dec Mon-Fri')
    manager.scan()
    _, start = task(stack)
    assert start % 100000 == 0 and start // 100000 % 10 == 0 and 8 <= start // 10000000 % 100 <= 18
    due_now(stack)
    assert manager.run(only(stack, 'taskid'))['result'] == 'done' and task(stack)[1] >= start
    wrong = stack.admin('cron', 'add', 'lab', 'Wrong', '61 * * * *', 'Count', status=2)
    assert 'crontab' in wrong.error
    with pytest.raises(psycopg2.Error, match='period'):
        stack.psql('lab', "select cron_set('Wrong', 'Count', '* * * *')")


def test_a_plan_waits_for_the_table_before_it_takes_a_rule(stack, manager):
    """Else an administrator who holds the table, and then the rule, and a plan would wait for each other."""
    period = add(stack)
    plan = "select cron_plan('Rule', %s, 'Count', stamp_now(), 3, 'UTC')"
    with psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd') as holder, holder.cursor() as cursor:
        cursor.execute('lock table cron in share row exclusive mode')
        planning = threading.Thread(target=stack_plan, args=(stack, plan, period))
        planning.start()
        wait_until(lambda: stack.psql(None, 'select pid from pg_stat_activity where %s = any (pg_blocking_pids(pid))',
                                      (holder.info.backend_pid,)), what='the plan')
        cursor.execute("select 1 from cron where name = 'Rule' for update nowait")
    holder.close()
    planning.join(PATIENCE_S)
    assert task(stack) is not None


def stack_plan(stack, sql, *parameters):
    with psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd') as own, own.cursor() as cursor:
        cursor.execute(sql, parameters)
    own.close()


def test_an_operation_that_is_not_there_holds_nothing_up(stack, manager):
    add(stack, op='Nobody')
    manager.scan()
    due_now(stack)
    assert manager.run(only(stack, 'taskid'), status=500)['code'] == 'NOPERATION'
    assert only(stack, 'startat') == PARKED
    manager.scan()
    assert now(stack) < only(stack, 'startat') < PARKED


def test_what_was_missed_runs_once(stack, manager):
    period = add(stack)
    manager.scan()
    _, start = task(stack)
    stack.psql('lab', "update taskqueue set startat = 260101000000000")  # since then nobody was there
    assert manager.run(only(stack, 'taskid'))['result'] == 'done'
    assert task(stack)[1] == start and counted(stack) == 1
    # A rule that was never planned, because nobody scanned: as if it had been.
    add(stack, 'Late', period=period, param='{"id":"late"}')
    stack.psql('lab', "update cron set since = 260101000000000 where name = 'Late'")
    manager.scan()
    assert only(stack, 'startat', 'Late') < 260101020000000
    assert manager.run(only(stack, 'taskid', 'Late'))['result'] == 'done'
    assert only(stack, 'startat', 'Late') == start and counted(stack, 'late') == 1


def test_a_worker_that_dies_in_a_turn(stack, manager):
    add(stack, op='Die', param='{"id":"one","times":1}')
    manager.scan()
    due_now(stack)
    taskid, _ = task(stack)
    assert manager.post(taskid).status_code >= 500
    wait_until(lambda: [row['id'] for row in manager.scan()['due']] == [taskid], what='the lost attempt')
    assert manager.run(taskid)['result'] == 'done'
    assert counted(stack) == 1 and history(stack) == [('Die', 0, 'LOST'), ('Die', 1, None)]
    assert only(stack, 'startat') > now(stack)


# --- many who look ---

def test_many_scans_plan_one_task(stack, manager):
    add(stack)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: manager.scan(), range(32)))
    assert stack.psql('lab', "select count(*) from taskqueue where info = 'rule Rule'") == [(1,)]


def test_two_instances_and_many_managers_run_each_turn_once(stack, manager, kit):
    names = [f'Rule{number}' for number in range(4)]
    for name in names:
        add(stack, name, param=f'{{"id":"{name}"}}')
    manager.scan()
    turns, ended = 0, False

    def hurry():
        nonlocal turns, ended
        turns += 1
        for name in names:
            due_now(stack, name)
        ended = turns > 40 and stack.psql('lab', 'select count(distinct info) from task_history where exc is null') == [(4,)]
        return False
    with Stack('beside', workers=2, beside=stack, settings=STACK['settings']) as second:
        managers = [manager, Manager(second, 'lab')]
        threads = [threading.Thread(target=one.work, kwargs={'until': lambda: ended}) for one in managers[1:]]
        for thread in threads:
            thread.start()
        manager.work(until=lambda: ended, meanwhile=hurry)
        for thread in threads:
            thread.join()
    done = dict(stack.psql('lab', 'select info, count(*) from task_history where exc is null group by info'))
    assert done == {f'rule {name}': counted(stack, name) for name in names} and min(done.values()) > 0
    assert stack.psql('lab', 'select count(*), count(distinct cron) from taskqueue where cron like %s', ('Rule%',)) == [(4, 4)]


# --- rules that change ---

def test_a_rule_that_changes_is_followed(stack, manager):
    add(stack, period=far_hour(stack))
    manager.scan()
    _, start = task(stack)
    minute = f'{(int(far_minute(stack)[1:]) + 1) % 60:02}'
    assert 'next' in stampctl(stack, 'cron', 'add', 'lab', 'Rule', f'H{minute}', 'Count', '--param', '{"id":"two"}')
    assert task(stack)[1] == start
    manager.scan()
    taskid, start = task(stack)
    assert start // 100000 % 100 == int(minute) and task(stack, columns='param, info') == ('{"id":"two"}', '')
    due_now(stack)
    stampctl(stack, 'cron', 'add', 'lab', 'Rule', f'H{minute}', 'Count', '--param', '{"id":"three"}')
    assert manager.due() == [taskid]  # due is due
    assert manager.run(taskid)['result'] == 'done' and counted(stack, 'three') == 1 and task(stack) == (taskid, start)
    assert 'it is so already' in stampctl(stack, 'cron', 'add', 'lab', 'Rule', f'H{minute}', 'Count', '--param', '{"id":"three"}')
    stack.psql('lab', 'select task_hold(%s)', (taskid,))
    stampctl(stack, 'cron', 'add', 'lab', 'Rule', 'D0000', 'Count')
    manager.scan()
    manager.scan()
    assert task(stack, columns='startat, exc, param') == (PARKED, 'HELD', '{}')  # who holds it lets it go


def test_a_rule_that_goes_takes_its_task_along(stack, manager):
    add(stack)
    manager.scan()
    stampctl(stack, 'cron', 'drop', 'lab', 'Rule')
    manager.scan()
    assert task(stack) is None and stack.psql('lab', 'select count(*) from cron where module is null') == [(0,)]
    assert 'there is no such periodic task' in stampctl(stack, 'cron', 'drop', 'lab', 'Rule', status=1)


@pytest.mark.parametrize('change', ['drop', 'add', 'drop and add'])
def test_a_rule_that_changes_while_its_task_runs(stack, manager, tmp_path, kit, change):
    signs = kit.path / tmp_path.name
    signs.mkdir()
    signs.chmod(0o777)
    gate = {'op': 'Gate', 'param': f'{{"id":"one","here":"{signs}/here","gate":"{signs}/gate"}}'}
    gate['period'] = add(stack, **gate)
    manager.scan()
    taskid, start = task(stack)
    due_now(stack)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(manager.run, taskid)
        wait_until((signs / 'here').is_symlink, what='the work')
        if 'drop' in change:
            stampctl(stack, 'cron', 'drop', 'lab', 'Rule')
        if change == 'add':
            add(stack, period='D0000', param='{"id":"two"}')
        elif change == 'drop and add':
            add(stack, **gate)
        (signs / 'gate').touch()
        assert outcome.result()['result'] == 'done'
    assert counted(stack) == 1
    manager.scan()
    if change == 'drop':
        assert task(stack) is None
    elif change == 'add':  # and in the queue of what is to run
        assert task(stack, columns='param, startat %% 1000000000, qn') == ('{"id":"two"}', 0, 3)
    else:
        assert task(stack) == (taskid, start)
        stack.psql('lab', 'select task_drop(%s)', (taskid,))  # it still knows its task
        manager.scan()
        assert moment(only(stack, 'startat')) - moment(start) == datetime.timedelta(hours=1)


def test_what_is_due_does_not_wait_for_rules_that_somebody_has_locked(stack, manager):
    add(stack)
    manager.scan()
    due_now(stack)
    taskid, _ = task(stack)
    add(stack, 'Other')
    with psycopg2.connect(stack.conninfo('lab')) as holder:
        holder.cursor().execute('lock table stampd.cron in share row exclusive mode')
        assert manager.due() == [taskid] and task(stack, 'Other') is None
    holder.close()
    manager.scan()
    assert task(stack, 'Other')


def test_a_dropped_task_is_that_turn_left_out(stack, manager):
    add(stack)
    manager.scan()
    taskid, start = task(stack)
    stack.psql('lab', 'select task_drop(%s)', (taskid,))
    manager.scan()
    assert moment(task(stack)[1]) - moment(start) == datetime.timedelta(hours=1)


# --- modules ---

def test_a_module_declares_and_an_administrator_decides(stack, manager):
    manager.scan()
    assert stack.psql('lab', "select period, module, dropped from cron where name = 'Again'") == [('Y11100425', 'periodic', False)]
    assert only(stack, 'startat', 'Again') % 10**11 == 1110042500000 % 10**11
    due_now(stack, 'Again')
    assert manager.run(only(stack, 'taskid', 'Again'))['result'] == 'done' and counted(stack, 'again') == 1
    assert '(module periodic)' in stampctl(stack, 'cron', 'list', 'lab')
    stampctl(stack, 'cron', 'drop', 'lab', 'Again')
    manager.scan()
    assert task(stack, 'Again') is None and 'dropped' in stampctl(stack, 'cron', 'list', 'lab')
    stampctl(stack, 'cron', 'restore', 'lab', 'Again')
    manager.scan()
    assert task(stack, 'Again')
    add(stack, 'Again', 'D0000', 'Again', '{}')
    manager.scan()
    assert stack.psql('lab', "select period, module from cron where name = 'Again'") == [('D0000', None)]
    stampctl(stack, 'cron', 'drop', 'lab', 'Again')
    manager.scan()
    assert stack.psql('lab', "select period, module from cron where name = 'Again'") == [('Y11100425', 'periodic')]
    assert stack.request('POST', '/z/od', json={'key': stack.queue_key, 'param': {'scan': {}}}).status_code == 200
    assert stack.psql('z', 'select count(*) from cron') == [(0,)]


def test_what_modules_declare_anew_and_time_zones_are_followed(stack, manager, kit):
    demo, period = Manager(stack, 'demo'), far_hour(stack)
    add(stack, period=period)
    add(stack, 'Held', period=period, ns='demo')
    for one in (manager, demo):
        one.scan()
    stack.psql('demo', 'update taskqueue set retry = 1, startat = stamp_now() + 100000000')
    waits = only(stack, 'startat', 'Held', 'demo')
    try:
        stack.set(modules=f'{kit.tasks} {kit.module["D0425"]}', zone='Asia/Kathmandu')
        for one in (manager, demo):
            one.scan()
        here = ZoneInfo('Asia/Kathmandu')
        assert f"{moment(only(stack, 'startat', 'Again')).astimezone(here):%H%M}" == '0425'
        assert f"{moment(only(stack, 'startat')).astimezone(here):%H%M}" == period[1:]
        assert task(stack, 'Held', 'startat, retry', 'demo') == (waits, 1)  # it is tried again as was said
        assert f'{period[1:3]}:00:00 +0545' in stampctl(stack, 'cron', 'list', 'lab')
        due_now(stack)
        assert manager.run(only(stack, 'taskid'))['result'] == 'done'
        assert f"{moment(only(stack, 'startat')).astimezone(here):%H%M}" == period[1:]
        stack.set(modules=kit.tasks)
        manager.scan()
        assert task(stack, 'Again') is None and stack.psql('lab', 'select name from cron') == [('Rule',)]
    finally:
        stack.set(modules=STACK['settings']['modules'], zone='UTC')


def test_modules_compute_times_of_their_own(stack):
    def after(period, stamp):
        return stack.op('lab', 'Next', {'period': period, 'after': stamp})['out']['next']
    assert after('D0425', 261121042459999) == 261121042500000
    assert after('D0425', 261121042500000) == 261122042500000
    assert after('M310000', 260401000000000) == 260430000000000
    assert after('Y02290000', 260401000000000) == 0 and after('', 260401000000000) == 0


def test_a_wrong_zone_is_refused(stack):
    conf = stack.path / 'etc/stampd.conf'
    text = conf.read_text()
    try:
        conf.write_text(text.replace('zone = UTC', '') + '\nzone = Mars/Base\n')
        before = len(stack.log())
        stack.reload()
        wait_until(lambda: 'zone = Mars/Base: there is no such time zone' in stack.log()[before:], what='the word')
        assert 'there is no such time zone' in stampctl(stack, 'cron', 'list', 'lab', status=1)
    finally:
        conf.write_text(text)


# --- stampctl ---

def test_stampctl_explains(stack, manager):
    for words, problem in {
        ('lab', 'Rule', 'D2530', 'Count'): 'expected Ymmddhhmm',
        ('lab', 'Rule', 'Y02290000', 'Count'): 'with a day and a time that exist',
        ('lab', '7up', 'D0000', 'Count'): 'no name of a periodic task',
        ('lab', 'Rule', 'D0000', 'a b'): 'no name of an operation',
        ('lab', 'Rule', 'D0000', 'Count', '--param', '[1]'): 'expected a JSON object',
        ('lab', 'Rule', 'D0000', 'Count', '--param', '{"a"'): '--param {"a":',
        ('lab', 'Rule', 'D0000', 'Count', '--info', 'x' * 256): 'at most 255 bytes',
        ('lab', 'Rule', 'D0000'): 'CODE NAME PERIOD OPERATION',
    }.items():
        assert problem in stampctl(stack, 'cron', 'add', *words, status=2), words
    assert 'there is no such namespace' in stampctl(stack, 'cron', 'add', 'nowhere', 'Rule', 'D0000', 'Count', status=1)
    assert 'dropped' in stampctl(stack, 'cron', 'restore', 'lab', 'Rule', status=1)
    assert stack.psql('lab', 'select count(*) from cron') == [(0,)]
    stack.psql('lab', "select cron_set('Rule' || n, 'Count', 'D0000') from generate_series(1, 1000) n")
    assert 'at most 1000 periodic tasks' in stampctl(stack, 'cron', 'add', 'lab', 'Rule', 'D0000', 'Count', status=1)


def test_the_database_takes_no_wrong_period(stack, manager):
    for period in ('D9999', 'Y02290000', 'Y11310000', 'M000000', 'W80000', 'H60', 'H5', 'X0000', 'D0000\n', ''):
        with pytest.raises(psycopg2.Error, match='cron_period_check'):
            stack.psql('lab', "select cron_set('Wrong', 'Count', %s)", (period,))
    for period in ('Y02282359', 'Y12310000', 'Y09301200', 'M310000', 'M010000', 'W70000', 'D2359', 'H00'):
        assert stack.psql('lab', "select cron_set('Right', 'Count', %s)", (period,)) != [('same',)]


def test_the_next_times_of_a_period_are_told(stack):
    lines = stampctl(stack, 'cron', 'next', 'D0230', '--zone', 'Europe/Paris', '--count', '400').splitlines()
    assert len(lines) == 400 and {line.split()[1] for line in lines} == {'02:30:00', '03:00:00'}
    assert {line.split()[2] for line in lines} == {'+0100', '+0200'}
    assert len(stampctl(stack, 'cron', 'next', 'M310000').splitlines()) == 5
    assert 'no such time zone' in stampctl(stack, 'cron', 'next', 'D0230', '--zone', 'Mars/Base', status=2)


# --- who starts them ---

def test_stamp_queue_runs_them(stack, manager):
    add(stack, param='{"id":"queued"}')
    stack.step('queue', 'start')
    try:
        wait_until(lambda: task(stack), what='the plan')
        taskid, start = task(stack)
        for turn in (1, 2):
            due_now(stack)
            answer = stack.request('POST', '/qm/op', form={'key': stack.queue_key, 'op': 'scan', 'param': '{"ns":"lab"}'})
            assert answer.status_code == 200, answer.text
            wait_until(lambda: counted(stack, 'queued') == turn and task(stack), what='the turn')
            assert task(stack) == (taskid, start)
    finally:
        stack.step('queue', 'stop', 'now')


def run_due_tasks(stack, *words, key=None):
    return subprocess.run([SOURCE / 'scripts/run-due-tasks', '--key-file', key or stack.path / 'etc/queue.key', '--url', stack.url, '--ca',
                           stack.path / 'etc/certificate.pem', *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def test_cron_and_curl_run_them(stack, manager):
    add(stack)
    add(stack, 'Broken', op='Fail', param='{"id":"broken"}')
    stack.psql('lab', "update cron set since = 260101000000000")
    for number in range(12):
        stack.psql('demo', "select task_create('Count', '{\"id\":\"plain\"}', domain => %s)", (str(number % 2),))
    done = run_due_tasks(stack, '--parallel', '3', 'lab', 'demo')
    assert done.returncode == 3 and done.stderr.count('failed: AFAIL') == 3 and counted(stack) == 1, done.stderr
    assert counted(stack, 'plain', 'demo') == 12 and only(stack, 'startat') > now(stack)
    done = run_due_tasks(stack, 'lab', 'demo')
    assert (done.returncode, done.stderr) == (0, '') and counted(stack) == 1


def test_the_line_for_cron_works_after_the_installation(stack, manager, tmp_path):
    """As cron runs it; only folders, address and port are those of the test, and the authority that vouches for the certificate."""
    page, installing = (SOURCE / 'doc/how-to' / name for name in ('administer-tasks.md', 'operating.md'))
    (line,) = re.findall(r'^\* \* \* \* \*  stampd  (.*)$', page.read_text(), re.M)
    assert '../configure --sysconfdir=/etc && make' in installing.read_text(), 'it goes to /usr/local'
    subprocess.run(['make', '-C', BUILD, '-s', 'install-dist_pkgdataSCRIPTS', f'DESTDIR={tmp_path}', 'prefix=/usr/local'], check=True,
                   stdout=subprocess.PIPE, timeout=PATIENCE_S)
    for there, here in (('/usr/local/', f'{tmp_path}/usr/local/'), ('/etc/stampd/queue.key', stack.path / 'etc/queue.key'),
                        ('https://www.example.org', stack.url), ('/run/stampd/', f'{tmp_path}/')):
        assert there in line and there.rstrip('/') in installing.read_text() + '/usr/local'
        line = line.replace(there, str(here))
    add(stack)
    stack.psql('lab', "update cron set since = 260101000000000")
    done = subprocess.run(['/bin/sh', '-c', line], env={'PATH': '/usr/bin:/bin', 'CURL_CA_BUNDLE': stack.path / 'etc/certificate.pem'},
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '') and counted(stack) == 1


def test_a_slow_task_and_a_bad_namespace_hold_up_nobody(stack, manager, kit):
    folder = kit.path / 'slow'
    folder.mkdir()
    folder.chmod(0o777)
    gate, here = folder / 'gate', folder / 'here'
    stack.psql('lab', "select task_create('Gate', %s, qn => 5)", (f'{{"id":"slow","gate":"{gate}","here":"{here}"}}',))
    done = []
    thread = threading.Thread(target=lambda: done.append(run_due_tasks(stack, '--seconds', '3', 'nowhere', 'lab', 'demo')))
    thread.start()
    try:
        wait_until(here.is_symlink, what='the slow task')
        stack.psql('lab', "select task_create('Count', %s) from generate_series(1, 12)", ('{"id":"beside"}',))
        wait_until(lambda: counted(stack, 'beside') == 12, what='the others of its namespace')
        assert not done and stack.psql('lab', "select count(*) from taskqueue where opname = 'Gate'") == [(1,)]
    finally:
        gate.touch()
        thread.join(PATIENCE_S)
    assert done[0].returncode == 1 and 'NNAMESPACE' in done[0].stderr
    assert counted(stack, 'slow') == 1


def test_cron_and_curl_say_what_is_wrong(stack, tmp_path):
    key = tmp_path / 'key'
    key.write_text('wrong\n')
    done = run_due_tasks(stack, 'lab', key=key)
    assert done.returncode == 1 and 'SKEY' in done.stderr
    done = run_due_tasks(stack, 'nowhere')
    assert done.returncode == 1 and 'NNAMESPACE' in done.stderr
    for words in ([], ['--seconds', 'x', 'lab'], ['--concurrency', '1 x', 'lab'], ['--what', 'lab'], ['--url']):
        assert run_due_tasks(stack, *words).returncode == 2

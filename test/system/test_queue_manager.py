"""The queue manager alone: the server it calls is played by the test, which can lose answers, double wake-ups and be away as
it likes.  test_task_death.py has the real one."""
import json
import signal
import subprocess
import threading

import pytest

from played_server import PARKED, Manager, Server, stamp
from stack import BUILD, PATIENCE_S, wait_until



def wait(look, what):
    return wait_until(look, PATIENCE_S, what)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def start(tmp_path, server):
    managers = []

    def start(name='qm', **settings):
        managers.append(Manager(tmp_path, server.url, name, **settings))
        return managers[-1].start()
    yield start
    for manager in managers:
        manager.stop(signal.SIGQUIT)
        assert 'runtime error' not in manager.log and 'AddressSanitizer' not in manager.log, manager.log


def test_what_waits_is_found_and_run_in_order(server, start):
    for number in range(40):
        server.add(number, priority=(number * 7) % 5)
    order = [task['id'] for task in server.due('lab', stamp())]
    start(queue_concurrency='1')
    wait(lambda: not server.tasks, 'the end of all tasks')
    assert server.runs == order


def test_a_hint_starts_a_task_and_two_start_it_once(server, start):
    manager = start()
    wait(lambda: server.scans, 'the first scan')
    task = server.add(1)
    manager.wakeup(task)
    manager.wakeup(task)
    wait(lambda: not server.tasks, 'the task')
    assert server.runs == [task['id']]
    assert manager.ask('inq', {'ns': 'lab', **server.add(2)}).status == 200
    wait(lambda: not server.tasks, 'the second task')
    server.add(3)
    manager.wakeup(None)  # look for yourself
    wait(lambda: not server.tasks, 'the third task')


def test_what_is_no_hint_does_no_harm(server, start):
    manager = start()
    wait(lambda: server.scans, 'the first scan')
    for wakeup in ({'id': '../../x'}, {'id': 'x' * 65}, {'id': 7}, {'id': ''}, {'id': 'abcdefgh', 'qn': -5, 'priority': 10**18}):
        manager.wakeup(wakeup)
    manager.wakeup({'id': 'abcdefgh'}, ns='nowhere')
    manager.wakeup(server.add(1))
    wait(lambda: not server.tasks and not manager.out('list')['tasks'], 'the task')


def test_a_task_starts_when_its_time_comes_not_at_the_next_scan(server, start):
    """The manager has found it before, however slow the machine is."""
    delay_s, found = 1, ''
    while found != 'early':
        delay_s *= 2
        server.scans.clear()
        server.add(1, delay_s=delay_s)
        manager = start()
        found = wait(lambda: manager.out('list')['later'] and 'early' if server.tasks else 'late', 'the task to be known')
        if found == 'late':
            manager.stop()
    wait(lambda: not server.tasks, 'the task')
    assert len(server.scans) == 1


def test_one_that_was_put_back_waits_for_its_new_time(server, start):
    task = server.add(1, delay_s=3600)
    manager = start()
    wait(lambda: server.scans, 'the first scan')
    manager.wakeup({**task, 'startat': stamp()})  # an old one
    wait(lambda: 'start namespace=lab' in manager.log, 'the start')
    wait(lambda: manager.out('list')['later'] == 1, 'the task to wait again')
    assert server.runs == []


def test_who_was_busy_is_asked_again(server, start):
    answers = iter(['busy', 'busy', 'done'])
    server.works['Busy'] = lambda task: {'result': next(answers)}
    task = server.add(1, op='Busy')
    manager = start()
    wait(lambda: not server.tasks, 'the task')
    assert server.runs == [task['id']] * 3
    assert len(server.scans) == 1 and 'failed' not in manager.log


def test_hints_come_from_the_same_user_or_group(start):
    path = start().socket
    wait(path.exists, 'the socket')
    assert path.stat().st_mode & 0o777 == 0o660


def test_failures_are_tried_again_when_the_server_says(server, start):
    def fail_twice(task):
        return {'result': 'failed', 'code': 'XBROKEN', 'startat': stamp(0.2)} if task['retry'] < 2 else {'result': 'done'}
    server.works['Fail'] = fail_twice
    server.works['Dead'] = lambda task: {'result': 'failed', 'code': 'ADEAD', 'startat': PARKED}
    server.add(1, op='Fail')
    server.add(2, op='Dead')
    manager = start()
    wait(lambda: len(server.tasks) == 1 and manager.log.count('failed namespace=lab') >= 3, 'the end of Fail, and all failures')
    assert server.runs.count('task000001') == 3 and server.runs.count('task000002') == 1
    assert manager.log.count('failed namespace=lab') == 3


def test_queues_run_as_many_at_once_as_they_may(server, start):
    gate = threading.Event()

    def hang(task):
        gate.wait(PATIENCE_S)
        return {'result': 'done'}
    server.works['Hang'] = hang
    for number in range(30):
        server.add(number, op='Hang', qn=number % 3)
    manager = start(queue_concurrency='3 2 1')
    wait(lambda: len(server.running) == 6, 'six running')
    counts = manager.out('list')
    assert (counts['running'], counts['due']) == (6, 24)
    gate.set()
    wait(lambda: not server.tasks, 'the end of all')
    assert server.most_running == 6


def test_tasks_of_a_domain_follow_each_other(server, start):
    for number in range(20):
        server.add(number, domain='one')
    start(queue_concurrency='8')
    wait(lambda: not server.tasks, 'the end of all')
    assert server.runs == [f'task{number:06}' for number in range(20)]
    assert server.most_running == 1 and len(server.scans) == 1


def hold(server, task, change=lambda member: member):
    """The server runs the task when the second event is set, after the first has told that the request is there."""
    run, is_there, may_run = server.run, threading.Event(), threading.Event()

    def run_later(ns, id):
        if id != task['id']:
            return run(ns, id)
        is_there.set()
        may_run.wait(PATIENCE_S)
        return change(run(ns, id))
    server.run = run_later
    return is_there, may_run


def test_a_task_that_a_scan_finds_while_a_later_one_of_its_domain_asks_for_its_turn_is_run(server, start):
    """The order in which a domain stood still until the next scan: the news of the last task, a scan, the answer `turn`."""
    manager = start()
    wait(lambda: server.scans, 'the first scan')
    for number in range(5):
        server.add(number, domain='one')
    last = server.add(5, domain='one')
    is_there, may_run = hold(server, last)
    manager.wakeup(last)
    assert is_there.wait(PATIENCE_S)
    manager.wakeup(None)
    wait(lambda: len(server.scans) == 2 and manager.out('list')['due'] == 0, 'the scan')
    may_run.set()
    wait(lambda: not server.tasks, 'the end of all')
    assert server.runs == [f'task{number:06}' for number in range(6)] and server.most_running == 1


@pytest.mark.parametrize('member', [{'result': 'done'}, {'result': 'late'}, {'result': 'gone'}, {'result': 'running'}])
def test_a_task_that_was_passed_over_is_looked_for_when_the_answer_names_none(server, start, member):
    """The commit of the first has looked for the next before the second one was committed."""
    first = server.add(1, domain='one')
    is_there, may_run = hold(server, first, lambda answer: {'id': answer['id'], **member})
    manager = start()
    assert is_there.wait(PATIENCE_S)
    second = server.add(2, domain='one')
    manager.wakeup(second)
    wait(lambda: manager.out('list')['due'] == 0, 'the news of the second')
    may_run.set()
    wait(lambda: not server.tasks, 'the end of both')
    assert server.runs == [first['id'], second['id']]


def test_a_scan_that_leaves_a_domain_out_since_its_task_runs_is_made_again_after_its_end(server, start):
    """Others of the domain were made, and the manager was told to look, after the commit of the first had looked for the next."""
    gate, run = threading.Event(), server.run
    server.works['Hang'] = lambda task: gate.wait(PATIENCE_S) and {'result': 'done'}
    first = server.add(1, op='Hang', domain='one')
    server.run = lambda ns, id: {name: value for name, value in run(ns, id).items() if name != 'next' or id != first['id']}
    manager = start()
    wait(lambda: server.running, 'the first')
    second = server.add(2, domain='one')
    manager.wakeup(None)
    wait(lambda: len(server.scans) == 2, 'the scan')
    gate.set()
    wait(lambda: not server.tasks, 'the end of both')
    assert server.runs == [first['id'], second['id']]


@pytest.mark.parametrize('result', ['turn', 'gone', 'running', 'late', 'waiting', 'external', 'paused', 'limited'])
def test_after_an_answer_that_is_no_attempt_the_domain_is_looked_for(server, start, result):
    """Nothing else has told the manager of the task that goes first."""
    manager = start()
    wait(lambda: server.scans, 'the first scan')
    first, second = server.add(1, domain='one'), server.add(2, domain='one')
    run, asked = server.run, []

    def run_second_later(ns, id):
        asked.append(id)
        return {'id': id, 'result': result, 'startat': stamp(3600)} if asked == [second['id']] else run(ns, id)
    server.run = run_second_later
    manager.wakeup(second)
    wait(lambda: first['id'] in server.runs, 'the first')


def test_a_domain_whose_answers_name_the_next_needs_no_scan(server, start):
    manager = start()
    wait(lambda: server.scans, 'the first scan')
    manager.out('suspend')  # else one may be done before its wake-up comes, and is asked for once more
    for number in range(20):
        manager.wakeup(server.add(number, domain='one'))
    wait(lambda: manager.out('list')['due'] + manager.out('list')['later'] == 20, 'the wake-ups')
    manager.out('restart')
    wait(lambda: not server.tasks, 'the end of all')
    assert len(server.scans) == 1


def test_a_batch_is_one_request(server, start):
    for number in range(95):
        server.add(number, op='Count', batch=20)
    server.add(200, op='Other', batch=20)
    start(queue_concurrency='1')
    wait(lambda: not server.tasks, 'the end of all')
    assert sorted(server.batches) == [1, 15, 20, 20, 20, 20]


def test_quick_tasks_go_together_while_many_wait(server, start):
    """How quick they are shows by and by: more come until it does."""
    manager = start(queue_concurrency='2')
    wait(lambda: server.scans, 'the first scan')

    def add_more():
        for _ in range(50):
            server.add(len(server.runs) + len(server.tasks))
        manager.wakeup(None)
        wait(lambda: not server.tasks, 'the end of all')
        return any(count > 1 for count in server.batches)
    wait(add_more, 'tasks in one request')
    assert len(server.runs) == len(set(server.runs)), 'each once'
    assert max(server.batches) <= 25, 'the other place has its share'


def test_slow_and_failing_tasks_go_alone(server, start):
    server.works['Fail'] = lambda task: {'result': 'failed', 'code': 'XBROKEN', 'startat': stamp()} if task['retry'] < 3 else {'result': 'done'}
    for number in range(30):
        server.add(number, op='Fail', retry=1)
    start(queue_concurrency='1')
    wait(lambda: not server.tasks, 'the end of all')
    assert server.batches == [] and len(server.runs) == 90


@pytest.mark.parametrize('batch', [1, 20])
def test_who_has_failed_goes_alone_from_then_on(server, start, batch):
    server.works['Fail'] = lambda task: {'result': 'failed', 'code': 'XBROKEN', 'startat': stamp()} if task['retry'] < 2 else {'result': 'done'}
    for number in range(30):
        server.add(number, op='Fail', batch=batch)
    start(queue_concurrency='1')
    wait(lambda: not server.tasks, 'the end of all')
    together = [retries for retries in server.retries if len(retries) > 1]
    assert together or batch == 1, 'how quick they are is a guess'
    assert {retry for retries in together for retry in retries} <= {0}
    assert len(server.runs) == 90


def test_what_is_refused_does_not_count_as_quick(server, start):
    manager = start(queue_concurrency='1')
    wait(lambda: server.scans, 'the first scan')
    manager.out('suspend')
    for number in range(30):
        manager.wakeup(server.add(number, op='Ghost'))
    wait(lambda: manager.out('list')['due'] + manager.out('list')['later'] == 30, 'the wake-ups')
    server.tasks.clear()
    manager.out('restart')
    wait(lambda: not manager.out('list')['due'] + manager.out('list')['running'], 'the end of all')
    assert server.batches == [], 'each was gone when it was asked for, alone'


def test_more_than_a_scan_can_tell_comes_by_the_next(server, start):
    for number in range(12000):
        server.add(number, batch=500)
    start()
    wait(lambda: not server.tasks, 'the end of all')
    assert len(server.scans) >= 3 and len(server.runs) == 12000


def test_a_lost_answer_is_the_end_of_the_attempt(server, start):
    def cut(task):
        if task['retry'] == 0:
            task['retry'] = 1
            raise ConnectionAbortedError
        return {'result': 'done'}
    server.works['Cut'] = cut
    server.add(1, op='Cut')
    start()
    wait(lambda: not server.tasks, 'the second attempt')
    assert server.runs == ['task000001'] * 2


def test_a_server_that_is_away_is_awaited(server, start):
    server.trouble = 503
    server.add(1)
    manager = start()
    wait(lambda: manager.log.count('scan failed') >= 3, 'some failures')
    assert manager.out('list')['namespaces'][0]['failures'] >= 3
    server.trouble = None
    wait(lambda: not server.tasks, 'the task')
    assert 'answers again' in manager.log


def test_a_wrong_key_is_told_in_the_log(server, start, tmp_path):
    server.trouble = 403
    manager = start()
    wait(lambda: 'status=403' in manager.log, 'a line of the log')


def test_suspended_nothing_new_starts(server, start):
    manager = start()
    wait(lambda: server.scans, 'the first scan')
    assert manager.out('suspend') == {'suspended': True, 'running': 0}
    manager.wakeup(server.add(1))
    assert manager.out('scan') == {'scans': 1}
    wait(lambda: manager.out('list')['due'] + manager.out('list')['later'] == 1 and len(server.scans) == 2, 'the scan')
    assert server.runs == [] and manager.out('list')['suspended'] is True
    assert manager.out('restart')['suspended'] is False
    wait(lambda: not server.tasks, 'the task')


def metrics(manager):
    answer = manager.ask('list', STAMPD_ENDPOINT='probe', method='GET', body=b'')
    assert answer.status == 200
    return dict(line.rsplit(' ', 1) for line in answer.body.decode().splitlines() if not line.startswith('#'))


def test_metrics_tell_what_the_manager_is_at(server, start):
    manager, gate = start(queue_concurrency='2 1'), threading.Event()
    wait(lambda: server.scans, 'the first scan')
    found = metrics(manager)
    assert {name: found[f'stampd_queue_{name}{{qm="qm"}}'] for name in ('suspended', 'tasks_due', 'tasks_running', 'requests_failed_total', 'failures_unreported')} == {
        'suspended': '0', 'tasks_due': '0', 'tasks_running': '0', 'requests_failed_total': '0', 'failures_unreported': '0'}
    assert [found[f'stampd_queue_slots{{qm="qm",queue="{queue}"}}'] for queue in (0, 1)] == ['2', '1']
    server.works['Hang'] = lambda task: gate.wait(PATIENCE_S) and {'result': 'done'}
    manager.out('suspend')
    for number in (1, 2, 3):
        manager.wakeup(server.add(number, op='Hang'))
    wait(lambda: metrics(manager)['stampd_queue_tasks_due{qm="qm"}'] == '3', 'three that wait')
    assert metrics(manager)['stampd_queue_suspended{qm="qm"}'] == '1' and metrics(manager)['stampd_queue_namespace_tasks{qm="qm",ns="lab"}'] == '3'
    manager.out('restart')
    wait(lambda: metrics(manager)['stampd_queue_slots_used{qm="qm",queue="0"}'] == '2', 'two that run')
    gate.set()
    wait(lambda: metrics(manager)['stampd_queue_slots_used{qm="qm",queue="0"}'] == '0' and not server.tasks, 'the end')
    assert all(line.split()[-1] in ('gauge', 'counter') for line in manager.ask(
        'list', STAMPD_ENDPOINT='probe', method='GET', body=b'').body.decode().splitlines() if line.startswith('# TYPE'))


def test_what_only_a_scan_finds_long_after_its_start_is_counted(server, start):
    manager, gate = start(queue_concurrency='2'), threading.Event()
    server.works['Hang'] = lambda task: gate.wait(PATIENCE_S) and {'result': 'done'}
    wait(lambda: server.scans, 'the first scan')

    def overlooked():
        before = len(server.scans)
        manager.wakeup(None)
        wait(lambda: len(server.scans) > before, 'a scan')
        wait(lambda: server.tasks.keys() == server.running, 'the start of all')
        return int(metrics(manager)['stampd_queue_tasks_overlooked_total{qm="qm"}'])
    assert overlooked() == 0
    server.add(1, delay_s=-3600, op='Hang', domain='one')
    assert overlooked() == 1
    server.add(2, op='Hang')
    assert overlooked() == 1, 'it has just become due'
    server.add(3, delay_s=-3600, op='Hang')
    manager.wakeup(None)
    wait(lambda: manager.out('list')['due'] == 1, 'the third to wait')
    assert int(metrics(manager)['stampd_queue_tasks_overlooked_total{qm="qm"}']) == 1, 'there was no place for it'
    gate.set()
    wait(lambda: not server.tasks, 'the end of all')
    assert 'overlooked namespace=lab task=task000001' in manager.log


def test_the_door_wants_the_key_in_a_post(server, start):
    manager = start()
    assert manager.ask('list', key='another').status == 403
    assert manager.ask('list', key='').status == 403
    assert json.loads(manager.ask('list', key='another').body)['code'] == 'SKEY'
    assert json.loads(manager.ask('erase').body)['code'] == 'NOPERATION'
    assert json.loads(manager.ask('scan', {'ns': 'nowhere'}).body)['code'] == 'NNAMESPACE'
    assert manager.ask('list', method='GET', body=b'').status == 405
    assert json.loads(manager.ask('inq', {'ns': 'lab', 'id': '?'}).body)['code'] == 'AARG'
    assert json.loads(manager.ask('list', body=b'{').body)['code'] == 'AJSON'
    form = {'CONTENT_TYPE': 'application/x-www-form-urlencoded'}
    for ask, args, at in ((lambda: manager.ask('scan', {'namespace': 'lab'}), ['namespace'], '/param/namespace'), (lambda: manager.ask('scan', {'sn': 'lab'}), ['sn'], '/param/sn'),
                          (lambda: manager.ask('list', body=b'{"op":"list","kye":"x"}'), ['kye', 'key'], '/kye'),
                          (lambda: manager.ask('list', body=b'op=list&parm=x', **form), ['parm', 'param'], '/parm')):
        answer = ask()
        problem = json.loads(answer.body)
        assert (answer.status, problem['code'], problem['args'], problem['at']) == (400, 'AARG', args, at), answer.body


def test_sigterm_awaits_what_runs_and_starts_nothing(server, start):
    gate = threading.Event()

    def hang(task):
        gate.wait(PATIENCE_S)
        return {'result': 'done'}
    server.works['Hang'] = hang
    for number in range(6):
        server.add(number, op='Hang')
    manager = start(queue_concurrency='2')
    wait(lambda: len(server.running) == 2, 'two running')
    manager.process.send_signal(signal.SIGTERM)
    wait(lambda: 'draining' in manager.log, 'the word of it')
    assert manager.process.poll() is None
    gate.set()
    assert manager.process.wait(PATIENCE_S) == 0
    assert len(server.runs) == 2 and len(server.tasks) == 4
    assert not manager.socket_path.exists() and not manager.socket.exists()


def test_a_second_signal_does_not_wait(server, start):
    gate = threading.Event()
    server.works['Hang'] = lambda task: gate.wait(PATIENCE_S) and {'result': 'done'}
    server.add(1, op='Hang')
    manager = start()
    wait(lambda: server.running, 'the task to run')
    manager.process.send_signal(signal.SIGTERM)
    wait(lambda: 'draining' in manager.log, 'the word of it')
    manager.process.send_signal(signal.SIGTERM)
    assert manager.process.wait(PATIENCE_S) == 0
    gate.set()


def test_one_that_was_killed_is_replaced(server, start):
    manager = start()
    wait(lambda: server.scans, 'the first scan')
    manager.stop(signal.SIGKILL)
    assert manager.socket_path.exists() and manager.socket.exists()
    server.add(1)
    start()  # at the same places
    wait(lambda: not server.tasks, 'the task')


def test_two_of_the_same_code_do_not_run_two_of_other_codes_do(server, start, tmp_path):
    first = start()
    twin = Manager(tmp_path, server.url)
    with twin.log_path.open('ab') as log:
        done = subprocess.run([BUILD / 'src/stamp-queue', '--config', twin.path], stderr=log, timeout=PATIENCE_S)
    assert done.returncode == 1 and 'living process' in twin.log
    second = start('qmb', queue_socket=first.socket)  # no wake-ups for this one
    wait(lambda: len(server.scans) == 2, 'both scans')
    for number in range(200):
        server.add(number)
    first.wakeup(None)
    second.out('scan')
    wait(lambda: not server.tasks, 'the end of all')
    assert sorted(server.runs) == [f'task{number:06}' for number in range(200)]


def test_namespaces_of_the_settings_only(server, start):
    server.add(1, ns='other')
    server.add(2, ns='demo')
    server.add(3)
    start(queue_namespaces='lab demo')
    wait(lambda: len(server.tasks) == 1, 'two tasks')
    assert set(server.scans) == {'lab', 'demo'} and list(server.tasks) == [('other', 'task000001')]


@pytest.mark.parametrize('setting', ['queue_key_file = /nonexistent', 'queue_code = x', 'queue_concurrency = 0 1', 'queue_url = ftp://x',
                                     'mail_tls = maybe', 'mail_server = http://x', 'mail_to = a@example.org'])
def test_settings_that_make_no_sense_end_the_start(server, tmp_path, setting):
    name, value = setting.split(' = ')
    manager = Manager(tmp_path, server.url, **{name: value} if name != 'queue_code' else {})
    if name == 'queue_code':
        manager.path.write_text(manager.path.read_text().replace('queue_code = qm', 'queue_code = x'))
    with pytest.raises(AssertionError, match=name):
        manager.start()


def test_a_key_that_everybody_may_read_is_refused(server, tmp_path):
    manager = Manager(tmp_path, server.url)
    (tmp_path / 'key').chmod(0o644)
    with pytest.raises(AssertionError, match='any user may read'):
        manager.start()

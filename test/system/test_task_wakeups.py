"""Wake-ups: with a manager that scans once an hour, whatever is to start at once does, however many, whoever asked for it."""
import os
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
import pytest

from kit import Kit
from stack import PATIENCE_S, wait_until

pytestmark = pytest.mark.plain

MANY = 90
STACK = {'workers': 3, 'settings': {}}


class Remote(ThreadingHTTPServer):
    """A manager of another host."""
    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Ears)
        self.heard, self.troubles = [], 1
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_port}/qm9'


class Ears(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.server.heard.append((self.path, self.rfile.read(int(self.headers['Content-Length'])).decode()))
        self.server.troubles -= 1
        self.send_response(503 if self.server.troubles >= 0 else 200)
        self.send_header('Content-Length', '0')
        self.end_headers()


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    kit.remote = Remote()
    STACK['settings'] = {'modules': kit.build('tasks.c'), 'task_wakeup_s': 3600, 'queue_namespaces': 'lab', 'task_retries': '1 1',
                         'queue_remotes': kit.remote.url}
    yield kit
    kit.remote.shutdown()
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def manager(stack):
    stack.psql('lab', 'truncate taskqueue, task_history')
    stack.psql('lab', "select delete_document(class, id) from doc where class = 'Counter'")
    stack.step('queue', 'start')
    wait_until(lambda: 'namespace=lab' in stack.log('queue'), PATIENCE_S, 'the first scan')
    assert stack.op('lab', 'task', {'op': 'Count', 'param': {'id': 'first'}})
    wait_until(lambda: is_empty(stack), PATIENCE_S, 'the first task')
    yield
    stack.step('queue', 'stop', 'now')


def is_empty(stack):
    return stack.psql('lab', 'select count(*) from taskqueue') == [(0,)]


def counted(stack, name='x'):
    document = stack.get('lab', ('Counter', name))
    return document['items'][0]['j']['n'] if document['v'] else 0


def test_one_commit_that_asks_for_many_tasks(stack, manager):
    for times in range(1, 4):
        stack.op('lab', 'Plan', {'tasks': [{'op': 'Bulk', 'param': {'id': 'x'}} for _ in range(MANY)]})
        wait_until(lambda: is_empty(stack), PATIENCE_S, 'all tasks')
        assert counted(stack) == times * MANY


def test_many_commits_at_once(stack, manager):
    """Faster than the manager reads: what its socket does not take is sent again."""
    def ask():
        for _ in range(40):
            stack.op('lab', 'Plan', {'tasks': [{'op': 'Bulk', 'param': {'id': 'y'}}] * 3})

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: is_empty(stack), PATIENCE_S, 'all tasks')
    assert counted(stack, 'y') == 6 * 40 * 3
    assert 'stampd_task_wakeups_lost_total{ns="lab"}' in stack.metrics()


def test_what_psql_makes_moves_and_runs_starts_at_once(stack, manager):
    param = '{"id":"z"}'
    stack.psql('lab', "select task_create('Count', %s)", (param,))
    wait_until(lambda: is_empty(stack), PATIENCE_S, 'the task')
    for function in ('task_run(%s)', 'task_move(%s, stamp_of(now() - interval \'1 day\'))'):
        ((task,),) = stack.psql('lab', "select task_create('Count', %s, startat => stamp_of(now() + interval '2 days'))", (param,))
        assert stack.psql('lab', f'select {function}', (task,))
        wait_until(lambda: is_empty(stack), PATIENCE_S, 'the task')
    assert counted(stack, 'z') == 3


@pytest.mark.parametrize('start', ['stamp_now()', '200101000000000', "stamp_of(now() - interval '3 hours')"])
def test_a_start_that_psql_writes_into_the_row_is_seen_at_once(stack, manager, start):
    """Without the functions: `update … set startat`; the scan that begins where the last one ended would not see the past."""
    ((task,),) = stack.psql('lab', "select task_create('Count', '{\"id\":\"raw\"}', startat => stamp_of(now() + interval '2 days'))")
    stack.psql('lab', f'update taskqueue set startat = {start} where taskid = %s', (task,))
    wait_until(lambda: is_empty(stack), PATIENCE_S, 'the end of the task')


def test_updates_of_the_server_wake_nobody(stack):
    """The trigger is for those who write rows by hand: neither the workers nor a later start notify."""
    ((task,),) = stack.psql('lab', "select task_create('Unknown', startat => stamp_of(now() + interval '2 days'))")
    worker, listener = psycopg2.connect(stack.conninfo('lab', user='stampd')), psycopg2.connect(stack.conninfo('lab'))
    try:
        worker.autocommit = listener.autocommit = True
        listener.cursor().execute('listen stampd_task')
        for value in ('on', 'off'):  # as the sessions of workers do, off where others are to be notified of documents
            worker.cursor().execute(f'set stampd.worker = {value}')
            worker.cursor().execute('update stampd.taskqueue set startat = startat - 1 where taskid = %s', (task,))
        stack.psql('lab', 'update taskqueue set startat = startat + 2, info = info where taskid = %s', (task,))
        stack.psql('lab', "update taskqueue set info = 'x' where taskid = %s", (task,))
        stack.psql('lab', "notify stampd_task, 'mark'")
        stack.psql('lab', 'update taskqueue set startat = 200101000000000 where taskid = %s', (task,))
        wait_until(lambda: listener.poll() or len(listener.notifies) > 1, PATIENCE_S, 'the notifications, which are in order')
        assert [one.payload for one in listener.notifies] == ['mark', '']
    finally:
        worker.close()
        listener.close()
        stack.psql('lab', 'delete from taskqueue')


def test_a_task_dropped_by_psql_lets_those_behind_it_start(stack, manager):
    first, second = [stack.psql('lab', "select task_create('Count', '{\"id\":\"s\"}', domain => 'd', strict => true,"
                                " startat => stamp_of(now() + %s::interval))", (later,))[0][0] for later in ('2 days', '0')]
    assert second
    assert counted(stack, 's') == 0
    stack.psql('lab', 'select task_drop(%s)', (first,))
    wait_until(lambda: is_empty(stack), PATIENCE_S, 'the second')
    assert counted(stack, 's') == 1


def test_a_rule_made_by_psql_is_planned_at_once(stack, manager):
    stack.psql('lab', "select cron_set('Soon', 'Count', 'D0425', '{\"id\":\"r\"}')")
    try:
        wait_until(lambda: stack.psql('lab', "select 1 from taskqueue where cron = 'Soon'"), PATIENCE_S, 'its task')
    finally:
        stack.psql('lab', "select cron_drop('Soon')")


def test_managers_of_other_hosts_are_woken(stack, manager, kit):
    key = stack.path / 'etc/queue.key'
    os.chown(key, os.stat(stack.path / 'run/stampd').st_uid, -1)  # the server is to know it too
    stack.restart_stampd()
    kit.remote.heard.clear()
    kit.remote.troubles = 1  # and once more after a failure
    stack.op('lab', 'task', {'op': 'Count', 'param': {'id': 'x'}})
    wait_until(lambda: len(kit.remote.heard) >= 2, PATIENCE_S, 'two wake-ups')
    path, body = kit.remote.heard[0]
    assert path == '/qm9/op' and '"op":"inq"' in body and '"ns":"lab"' in body and stack.queue_key in body
    assert stack.queue_key not in stack.log()


def test_metrics_of_the_manager_are_told_to_this_host_only(stack, manager):
    answer = stack.probe('/metrics/qm')
    assert answer.status_code == 200 and 'stampd_queue_namespace_failures{qm="qm",ns="lab"} 0' in answer.text
    assert stack.probe('/metrics/qm7').status_code == 503
    assert stack.request('GET', '/metrics/qm').json()['code'] == 'NPATH'


def test_the_socket_needs_no_setting(stack, manager):
    configuration = stack.path / 'etc/stampd.conf'
    assert 'queue_socket' in configuration.read_text()
    stack.set(queue_socket='')
    stack.step('queue', 'stop', 'now')
    stack.step('queue', 'start')
    wait_until((stack.path / 'run/stampd/qm.wake').exists, PATIENCE_S, 'the socket')
    stack.op('lab', 'task', {'op': 'Count', 'param': {'id': 'x'}})
    wait_until(lambda: is_empty(stack), PATIENCE_S, 'the task')

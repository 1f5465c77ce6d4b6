"""stampctl top: what runs now, read from the shared memory: requests and what they wait for, queues, sums."""
import json
import threading

import psycopg2
import pytest

from manager import Manager
from stack import BUILD, run_program, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2}


def look(stack, *words):
    """{kind: [lines]}"""
    lines = {'sums': [], 'request': [], 'queue': []}
    for line in run_program(BUILD / 'src/stampctl', 'top', '--json', '--once', '--config', stack.config, *words).out.splitlines():
        line = json.loads(line)
        lines[line.pop('kind')].append(line)
    return lines


def requests(stack, what):
    return [line for line in look(stack)['request'] if line['what'] == what]


@pytest.fixture
def holder(stack):
    """A session that has locked the document T held."""
    stack.op('lab', 'put', {'docs': [{'c': 'T', 'id': 'held', 'items': [{'c': 'N', 'j': 1}]}]})
    connection = psycopg2.connect(stack.conninfo('lab'))
    connection.cursor().execute("select from stampd.doc where class = 'T' and id = 'held' for update")
    yield connection
    connection.close()


def test_a_request_that_waits_for_the_database_is_shown(stack, holder):
    put = threading.Thread(target=stack.op, args=('lab', 'put', {'docs': [{'c': 'T', 'id': 'held', 'items': [{'c': 'N', 'j': 2}]}]}))
    put.start()
    (found,) = wait_until(lambda: requests(stack, 'put'))
    assert (found['ns'], found['pid'] in stack.worker_pids()) == ('lab', True)
    assert found['waits_for'] in ('commit', 'database') and found['milliseconds'] >= 0, found
    text = run_program(BUILD / 'src/stampctl', 'top', '--config', stack.config).out  # once, since this is no terminal
    assert [line.split()[:3] for line in text.splitlines() if ' put ' in line] == [[str(found['pid']), 'lab', 'put']], text
    holder.rollback()
    put.join()
    wait_until(lambda: not requests(stack, 'put'))


def test_a_task_is_shown_by_its_operation(stack, holder):
    task = stack.op('lab', 'task', {'op': 'put', 'param': {'docs': [{'c': 'T', 'id': 'held', 'items': [{'c': 'N', 'j': 3}]}]}})['out']['id']
    run = threading.Thread(target=Manager(stack, 'lab').run, args=(task,))
    run.start()
    (found,) = wait_until(lambda: requests(stack, 'put'))
    assert found['ns'] == 'lab'
    holder.rollback()
    run.join()
    wait_until(lambda: not requests(stack, 'put'))


def test_queues_and_sums(stack):
    before = look(stack)['sums'][0]
    stack.op('lab', 'task', {'op': 'put', 'delay': 3600, 'param': {'docs': [{'c': 'T', 'id': 'later', 'items': []}]}})
    Manager(stack, 'lab').scan()
    wait_until(lambda: [line for line in look(stack)['queue'] if (line['ns'], line['queue'], line['later']) == ('lab', 0, 1)])
    now = look(stack)['sums'][0]
    assert now['requests'] > before['requests'] and now['commits'] > before['commits'] and now['workers'] >= 2
    assert now['requests_per_second'] >= 0


def test_other_settings_and_no_server(stack, tmp_path):
    def refused(config):
        return run_program(BUILD / 'src/stampctl', 'top', '--once', '--config', config, status=1).error
    text = stack.config.read_text()
    config = tmp_path / 'stampd.conf'
    config.write_text(text + '\npublic_answers_mb = 3\n')
    assert 'its size is not that of the settings' in refused(config)
    config.write_text(text + f'\nsegment = {tmp_path}/none\n')
    assert 'No such file' in refused(config)
    (tmp_path / 'none').write_bytes(bytes(8192))
    assert 'the file holds something else' in refused(config)

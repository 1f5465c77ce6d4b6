"""scripts/look.sql: administrators see what waits, what is slow and what fills the disk."""
import re
import subprocess
import threading

import psycopg2
import pytest

from stack import PATIENCE_S, SOURCE, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 1}


def look(stack, *words):
    done = subprocess.run(['psql', '-X', '-v', 'ON_ERROR_STOP=1', '-d', stack.conninfo('lab'), '-f', SOURCE / 'scripts/look.sql', *words],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, ''), done.stderr
    return dict(re.findall(r'^--- (.*)\n((?:(?!--- ).*\n)*)', done.stdout, re.M))


def test_it_shows_what_waits_what_is_slow_and_what_fills_the_disk(stack):
    stack.put('lab', {'c': 'Note', 'id': 'large', 'items': [{'c': 'Text', 'j': 'x' * 3000}]})
    for number in range(3):
        stack.psql('lab', "select task_create('put', domain => 'invoices')")
    stack.psql('lab', "update taskqueue set starttime = stamp_now(), holder = 'host-7' where taskid = (select min(taskid) from taskqueue)")
    stack.psql('lab', "insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime)"
                      " values ('done', 'Report', '', 0, 0, 0, 261128120000000, 261128120000000, 261128120130500)")
    stack.psql('lab', "select task_pause(opname => 'Report', reason => 'the printer is away')")
    holder, waiter = (psycopg2.connect(stack.conninfo('lab')) for _ in range(2))
    holder.cursor().execute('lock stampd.task_paused in access exclusive mode')
    holder.rollback()
    holder.cursor().execute("select from stampd.namespace for update")
    thread = threading.Thread(target=lambda: waiter.cursor().execute("select from stampd.namespace for update"))
    thread.start()
    try:
        wait_until(lambda: stack.psql('lab', "select count(*) from pg_locks where not granted") != [(0,)], what='a session that waits')
        found = look(stack)
    finally:
        holder.rollback()
        thread.join(PATIENCE_S)
        for connection in (holder, waiter):
            connection.close()
    assert len(found) == 12, found.keys()

    def rows(title):
        ((text, ),) = ([body] for name, body in found.items() if title in name)
        return [[field.strip() for field in line.split('|')] for line in text.splitlines() if '|' in line][1:]
    assert rows('tasks by queue')[0][:4] == ['0', '2', '0', '1']
    assert rows('domains')[0][:2] == ['invoices', '2'] and 'host-7' in rows('domains')[0]
    assert rows('paused')[0][0] == 'op Report' and 'the printer is away' in rows('paused')[0]
    assert 'for update' in rows('sessions for others')[0][-1]
    assert rows('open transactions')
    assert rows('slow: operations')[0][0] == 'Report' and rows('slow: operations')[0][-1] == '00:01:30.5'
    assert {'doc', 'item'} <= {row[0] for row in rows('tables')}
    assert 'Note' in [row[0] for row in rows('classes')]


def test_it_changes_nothing(stack):
    before = stack.psql('lab', 'select pg_current_xact_id_if_assigned(), count(*) from taskqueue')
    look(stack)
    assert stack.psql('lab', 'select pg_current_xact_id_if_assigned(), count(*) from taskqueue') == before
    assert 'default_transaction_read_only = on' in (SOURCE / 'scripts/look.sql').read_text()

"""Past tasks run again: by name and by filter, with the arguments that the history has kept, never in clear where that is encrypted."""
import shutil

import pytest

from door_client import Client
from kit import Kit
from manager import Manager
from stack import refused

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': kit.build('tasks.c'), 'task_history_param_bytes': 100}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def manager(stack):
    stack.psql('lab', 'truncate taskqueue, task_history')
    manager = Manager(stack, 'lab')
    manager.scan()
    return manager


def ask(stack, op='put', text='a', **more):
    return stack.op('lab', 'task', {'op': op, 'param': {'docs': [{'c': 'Note', 'id': 'n', 'items': [{'c': 'Text', 'j': text}]}]}, **more}, admin=True)['out']['id']


def redrive(stack, wish):
    return stack.op('lab', 'tasks', {'redrive': wish}, admin=True)['out']


def text(stack):
    return next(item['j'] for item in stack.get('lab', ('Note', 'n'))['items'] if item['c'] == 'Text')


def test_a_task_that_was_done_runs_again(stack, manager):
    first = ask(stack, text='one', info='mail/1', resource='r', priority=7, key='k')
    before = stack.psql('lab', 'select taskid, param, info, resource, priority, key, qn, batch from taskqueue')
    assert manager.run(first)['result'] == 'done'
    manager.run(ask(stack, text='two'))
    assert redrive(stack, first) == {'found': 1, 'done': 1} and redrive(stack, first) == {'found': 1, 'done': 0}, 'it waits'
    assert stack.psql('lab', 'select taskid, param, info, resource, priority, key, qn, batch from taskqueue') == before
    assert manager.run(first)['result'] == 'done' and text(stack) == 'one'
    assert stack.psql('lab', 'select count(*) from task_history where taskid = %s', (first,)) == [(2,)]
    assert redrive(stack, 'a' * 24) == {'found': 0, 'done': 0}


def test_by_filter_in_steps(stack, manager):
    done, dropped = [ask(stack, info=f'mail/{n}') for n in range(5)], [ask(stack, info='other') for _ in range(2)]
    manager.run_many(done)
    for taskid in dropped:
        stack.psql('lab', 'select task_drop(%s)', (taskid,))
    assert redrive(stack, {'op': 'put', 'dry': True}) == {'found': 7, 'done': 0}
    assert redrive(stack, {'exc': 'DONE', 'info': 'mail', 'dry': True})['found'] == 5
    assert redrive(stack, {'exc': 'DROPPED'}) == {'found': 2, 'done': 2}
    page = redrive(stack, {'info': 'mail/', 'limit': 3})
    assert (page['found'], page['done']) == (3, 3)
    assert redrive(stack, {'info': 'mail/', 'limit': 3, 'cursor': page['cursor']}) == {'found': 2, 'done': 2}
    assert sorted(row[0] for row in stack.psql('lab', 'select taskid from taskqueue')) == sorted(done + dropped)
    assert refused('AARG', redrive, stack, {}).body['args'] == ['redrive']


def test_pages_end_though_tasks_end_again_between_them(stack, manager):
    manager.run_many([ask(stack) for _ in range(3)])
    page, pages = redrive(stack, {'op': 'put', 'limit': 1}), 1
    while 'cursor' in page:
        manager.run_many([row[0] for row in stack.psql('lab', 'select taskid from taskqueue')])
        page, pages = redrive(stack, {'op': 'put', 'limit': 1, 'cursor': page['cursor']}), pages + 1
        assert pages < 6
    assert stack.psql('lab', 'select count(*) from task_history') == [(6,)]
    assert refused('AARG', redrive, stack, {'op': 'put', 'cursor': '7'}).body['args'][0] == 'cursor'
    with pytest.raises(Exception, match='the `until` of the first'):
        stack.psql('lab', "select task_redrive(false, opname => 'put', after => 1)")


def test_a_call_reads_a_bounded_number_of_rows(stack, manager):
    stack.psql('lab', """insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, exc, param, priority)
        select 'of' || n || repeat('0', 8), 'Gone', 'many/' || n, 0, 0, 0, 1, 1, 1, case n % 2 when 1 then 'DROPPED' end, '{}', 20 from generate_series(1, 20002) n""")
    dropped = ask(stack, info='many/x')
    stack.psql('lab', 'select task_drop(%s)', (dropped,))
    for wish, calls in (({'op': 'put'}, 3), ({'info': 'many', 'op': 'put'}, 3), ({'exc': 'DROPPED', 'op': 'put'}, 2), ({'info': 'many/x'}, 1)):
        found, cursor = [], {}
        for _ in range(calls):
            page = redrive(stack, {**wish, **cursor, 'dry': True})
            found.append(page['found'])
            cursor = {'cursor': page['cursor']} if 'cursor' in page else None
            if cursor is None:
                break
        assert (found, cursor) == ([0] * (calls - 1) + [1], None)


def test_they_are_created_in_the_order_of_their_resources(stack, manager):
    """As the commits of others create tasks: neither waits for the other."""
    names = [ask(stack, resource=resource) for resource in ('c', 'a', 'b')]
    manager.run_many(names)
    redrive(stack, {'op': 'put'})
    assert stack.psql('lab', 'select resource from taskqueue order by number') == [('a',), ('b',), ('c',)]


def test_the_rights_of_whoever_requested_it(stack, manager):
    with Client(stack) as client:
        taskid = client.op('lab', 'task', {'op': 'Count', 'param': {'id': 'x'}, 'domain': 'd'}).json['out']['id']
    columns = 'requester, account, credential, of_client, domain'
    before = stack.psql('lab', f'select {columns} from taskqueue')
    assert manager.run(taskid)['result'] == 'done'
    redrive(stack, taskid)
    assert stack.psql('lab', f'select {columns} from taskqueue') == before and before[0][3]


def test_what_is_too_large_or_waits_for_its_resource_is_left_out(stack, manager):
    large = ask(stack, text='x' * 100)
    small = ask(stack, resource='r')
    assert [manager.run(taskid)['result'] for taskid in (large, small)] == ['done'] * 2
    assert stack.psql('lab', 'select param is null from task_history order by number') == [(True,), (False,)]
    other = ask(stack, resource='r')
    assert redrive(stack, {'op': 'put'}) == {'found': 2, 'done': 0}
    assert stack.psql('lab', 'select taskid from taskqueue') == [(other,)]
    attempts = stack.op('lab', 'tasks', {'history': {}}, admin=True)['out']['attempts']
    assert [attempt.get('param', {}).get('docs', [{}])[0].get('id') for attempt in attempts] == ['n', None]


def test_what_was_dropped_is_kept_whole(stack, manager):
    large = ask(stack, text='x' * 1000)
    before = stack.psql('lab', 'select param from taskqueue')
    stack.psql('lab', 'select task_drop(%s)', (large,))
    assert redrive(stack, {'op': 'put'}) == {'found': 1, 'done': 1}
    assert stack.psql('lab', 'select param from taskqueue') == before
    assert manager.run(large)['result'] == 'done' and text(stack) == 'x' * 1000


def test_what_was_cancelled_is_kept_as_what_was_done(stack, manager):
    """Who requests and cancels again and again, as anybody may, would fill the history with arguments."""
    for size, found in ((1000, 0), (10, 1)):
        stack.op('lab', 'owntask', {'cancel': ask(stack, text='x' * size)}, admin=True)
        assert stack.psql('lab', "select count(param) from task_history where exc = 'CANCELLED'") == [(found,)]
    assert redrive(stack, {'exc': 'CANCELLED'}) == {'found': 2, 'done': 1}


def test_tasks_of_rules_are_left_out(stack, manager):
    """Also the last of a rule that is dropped, whose end deletes it."""
    stack.psql('lab', "select cron_set('Rule', 'put', 'D0000', '{\"docs\":[]}')")
    manager.scan()
    ((taskid,),) = stack.psql('lab', "update taskqueue set startat = stamp_now() where cron = 'Rule' returning taskid")
    stack.psql('lab', "delete from cron where name = 'Rule'")
    assert manager.run(taskid)['result'] == 'done' and stack.psql('lab', 'select count(*) from taskqueue') == [(0,)]
    assert stack.psql('lab', 'select param, priority from task_history') == [(None, None)]
    assert redrive(stack, taskid) == {'found': 0, 'done': 0}


def test_by_command(stack, manager):
    taskid = ask(stack)
    manager.run(taskid)
    assert stack.admin('task', 'redrive', 'lab', '--op', 'put', '--dry-run').out == '1 tasks: found, nothing was done\n'
    assert stack.admin('task', 'redrive', 'lab', '--op', 'put').out == '1 tasks of 1: run again\n'
    assert 'it waits' in stack.admin('task', 'redrive', 'lab', taskid, status=1).error
    manager.run(taskid)
    assert stack.admin('task', 'redrive', 'lab', taskid).out == f'{taskid}: runs again\n'
    stack.admin('task', 'redrive', 'lab', status=2)


def test_the_arguments_of_the_server_s_own_tasks_are_not_kept(stack, manager):
    """Those of mails have secrets."""
    kept = dict(stack.psql('lab', "select opname, kept_bytes from task_operation where opname in ('put', 'accountmail', 'push', 'ticketend')"))
    assert kept == {'put': 100, 'accountmail': 0, 'push': 0, 'ticketend': 0}

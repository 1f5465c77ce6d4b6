"""Limits of queues, operations and keys: how many tasks run at once, and how many begin in a time; whoever claims obeys."""
import shutil
import threading

import pytest

from door_client import Client
from kit import Kit
from manager import Manager
from queue_worker import KEY, QUEUES, declare
from stack import PATIENCE_S, refused

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': kit.build('tasks.c')}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def manager(stack):
    stack.psql('lab', 'truncate taskqueue, task_history, task_limit, task_debt')
    return Manager(stack, 'lab')


def ask(stack, n=1, op='Count', **more):
    tasks = [{'op': op, 'param': {'id': 'x'}, **more}] * n
    return [task['id'] for task in stack.op('lab', 'task', {'tasks': tasks}, admin=True)['out']['tasks']]


def limit(stack, **wish):
    return stack.op('lab', 'tasks', {'limit': wish}, admin=True)['out']['result']


def claim(stack, *ids):
    """As a worker claims them, in one statement: those that it gets."""
    return {row[0] for row in stack.psql('lab', "update taskqueue t set starttime = stamp_now(), holder = 'test', expires = 981231000000000 where taskid = any (%s) and starttime is null returning taskid", (list(ids),))}


def end(stack, *ids):
    stack.psql('lab', 'delete from taskqueue where taskid = any (%s)', (list(ids),))


@pytest.mark.parametrize('of', [{'qn': 0}, {'op': 'Count'}])
def test_so_many_run_at_once(stack, manager, of):
    ids = ask(stack, 5)
    assert limit(stack, **of, running=2) == 'limited'
    assert len(manager.due()) == 2, 'a scan returns what may begin'
    running = claim(stack, *ids)
    assert len(running) == 2, 'of one statement too'
    assert manager.due() == [] and claim(stack, *ids) == set()
    other = next(taskid for taskid in ids if taskid not in running)
    assert manager.run(other)['result'] == 'limited'
    end(stack, running.pop())
    assert len(manager.due()) == 1 and manager.run(other)['result'] == 'done'
    assert limit(stack, **of) == 'unlimited' and limit(stack, **of) == 'same'
    assert len(manager.due()) == 2


def test_other_operations_and_queues_are_not_limited(stack, manager):
    ask(stack, 3)
    quiet = ask(stack, 1, 'put', param={'docs': []})
    limit(stack, op='Count', running=1)
    assert len(manager.due()) == 2 and quiet[0] in manager.due()
    claim(stack, *manager.due())
    assert manager.due() == []


def test_each_key_has_its_limit(stack, manager):
    ids = {key: ask(stack, 3, key=key) for key in ('ann', 'bob')}
    free = ask(stack, 2)
    assert limit(stack, op='Count', key=True, running=1) == 'limited'
    assert len(manager.due()) == 4
    assert len(claim(stack, *ids['ann'], *ids['bob'], *free)) == 4
    assert manager.due() == []
    end(stack, *ids['ann'])
    assert claim(stack, *ids['bob']) == set()
    task = stack.op('lab', 'tasks', {'show': ids['bob'][0]}, admin=True)['out']['task']
    assert task['key'] == 'bob'


def test_keys_of_clients_are_their_own(stack, manager):
    with Client(stack) as client:
        assert client.op('lab', 'task', {'op': 'Count', 'param': {'id': 'x'}, 'key': 'ann'}).status == 200
    ((key,),) = stack.psql('lab', 'select key from taskqueue')
    assert key.startswith('~') and key.endswith('/ann')


def test_so_many_begin_in_a_time(stack, manager):
    ids = ask(stack, 6)
    limit(stack, op='Count', rate='2/h, burst 3')
    rows = manager.scan()['due']
    assert len(rows) == 3
    assert [manager.run(row['id'])['result'] for row in rows] == ['done'] * 3
    left = [taskid for taskid in ids if taskid not in [row['id'] for row in rows]]
    outcome = manager.run(left[0])
    assert outcome['result'] == 'waiting' and outcome['startat'] > manager.scan()['t'] + 2000000, 'in half an hour'
    assert manager.due() == []
    ((later, last),) = stack.psql('lab', "select stamp_of(now() + interval '31 min'), stamp_of(now() + interval '3 h')")
    assert len(manager.due(before=later)) == 1
    starts = [row['startat'] for row in manager.scan(before=last)['due']]
    assert len(starts) == 3 and starts == sorted(starts) and len(set(starts)) == 3
    stack.psql('lab', 'update task_debt set paid = paid - 3600')
    assert len(manager.due()) == 2


def test_what_is_behind_many_that_must_wait_is_listed(stack, manager):
    ask(stack, 30)
    last, = ask(stack, 1, 'put', param={'docs': []})
    limit(stack, op='Count', running=1)
    assert manager.due(limit=10)[-1] == last and len(manager.due(limit=10)) == 2
    limit(stack, op='Count', rate='1/h')
    assert manager.due(limit=10)[-1] == last and len(manager.due(limit=10)) == 2


def test_whom_one_limit_refuses_takes_no_place_of_another(stack, manager):
    many, (other,) = ask(stack, 20, key='a'), ask(stack, 1, key='b')
    limit(stack, op='Count', running=4)
    limit(stack, op='Count', key=True, running=1)
    assert len(manager.due()) == 2 and other in manager.due()
    assert other in manager.due(limit=10), 'when more wait than are listed, too'
    limit(stack, op='Count', key=True, rate='1/h, burst 1')
    assert other in manager.due() and len(manager.due()) == 2
    assert len(claim(stack, *many, other)) == 2


def test_what_waits_behind_a_place_that_is_left_is_listed(stack, manager):
    """Neither the limit of the operation nor that of the key that lets go on is full."""
    ask(stack, 20, key='a')
    others = ask(stack, 10, key='b')
    limit(stack, op='Count', running=4)
    limit(stack, op='Count', key=True, running=2)
    due = manager.due(limit=10)
    assert len(due) == 4 and len(set(due) & set(others)) == 2


def test_what_is_behind_several_full_keys_is_listed(stack, manager):
    limit(stack, op='Count', key=True, running=1)
    ids = [ask(stack, 12, key=key) for key in 'abc']
    assert [len(set(manager.due(limit=10)) & set(of)) for of in ids] == [1, 1, 1]


def test_tasks_of_later_take_no_place_of_today(stack, manager):
    ask(stack, 3, 'Count', delay=30, priority=10)
    now, = ask(stack, 1)
    limit(stack, op='Count', running=1)
    ((later,),) = stack.psql('lab', "select stamp_of(now() + interval '76 s')")
    assert now in manager.due(before=later)


def test_a_changed_rate_forgets_what_was_owed_beyond_it(stack, manager):
    ids = ask(stack, 8, key='a')
    for of in ({'op': 'Count'}, {'op': 'Count', 'key': True}):
        limit(stack, **of, rate='4/d, burst 4')
    assert len(claim(stack, *ids)) == 4 and manager.due() == []
    limit(stack, op='Count', rate='60/min, burst 60')
    assert manager.due() == [], 'the keys owe'
    assert limit(stack, op='Count', key=True, rate='60/min, burst 60') == 'limited'
    assert stack.psql('lab', 'select count(*) from task_debt where paid > extract(epoch from now()) + 61') == [(0,)]


def test_debts_that_are_paid_are_deleted(stack, manager):
    stack.psql('lab', "insert into task_debt values ('op Gone', 1), ('op There', 4e9)")
    manager.scan()
    assert stack.psql('lab', 'select bucket from task_debt') == [('op There',)]


def test_claims_that_come_together_are_counted(stack, manager):
    ids = ask(stack, 8)
    limit(stack, op='Count', running=3)
    with stack_connections(stack, 2) as (one, two):
        one.execute("update taskqueue set starttime = stamp_now() where taskid = any (%s)", (ids[:2],))
        got = []
        thread = threading.Thread(target=lambda: (two.execute("update taskqueue set starttime = stamp_now() where taskid = any (%s) returning 1", (ids[2:],)), got.extend(two.fetchall())))
        thread.start()
        thread.join(0.2)
        one.connection.commit()
        thread.join(PATIENCE_S)
        assert len(got) == 1


class stack_connections:
    def __init__(self, stack, count):
        import psycopg2
        self.connections = [psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd') for _ in range(count)]

    def __enter__(self):
        return [connection.cursor() for connection in self.connections]

    def __exit__(self, *_):
        for connection in self.connections:
            connection.close()


def test_external_workers_obey(stack, manager):
    declare(stack, QUEUES)
    ask(stack, 4, 'resize')
    limit(stack, qn=16, running=3)
    def take():
        return stack.request('POST', '/lab/op/take', json={'param': {'qn': 16, 'n': 9}}, headers={'Authorization': f'Bearer {KEY}'}).json()['out']['tasks']
    taken = take()
    assert len(taken) == 3 and take() == []
    end(stack, taken[0]['id'])
    assert len(take()) == 1


def test_external_workers_find_what_is_behind_a_full_key(stack, manager):
    declare(stack, QUEUES)
    ask(stack, 30, 'resize', key='a')
    others = ask(stack, 2, 'resize', key='b') + ask(stack, 1, 'resize', key='c', priority=30)
    limit(stack, op='resize', key=True, running=1)
    taken = stack.request('POST', '/lab/op/take', json={'param': {'qn': 16, 'n': 9}}, headers={'Authorization': f'Bearer {KEY}'}).json()['out']['tasks']
    assert len(taken) == 3 and {task['id'] for task in taken[1:]} == {others[0], others[2]}


def test_the_task_after_one_that_waits_for_a_limit_of_its_domain(stack, manager):
    first, = ask(stack, 1, domain='d')
    other, = ask(stack, 1, 'put', param={'docs': []}, domain='d')
    blocker, = ask(stack, 1)
    limit(stack, op='Count', running=1)
    assert claim(stack, blocker)
    assert manager.due() == [other] and manager.run(first)['result'] in ('limited', 'turn')
    assert manager.run(other)['result'] == 'done'


@pytest.mark.parametrize('wish, args', [({}, 'limit'), ({'qn': 1, 'op': 'put'}, 'limit'), ({'qn': 1, 'key': True, 'running': 1}, 'limit'), ({'op': 'a b', 'running': 1}, 'op'),
                                        ({'qn': 1, 'running': 0}, 'running'), ({'qn': 1, 'rate': '3'}, 'rate'), ({'qn': 1, 'rate': '2000000/s'}, 'rate')])
def test_malformed_limits(stack, manager, wish, args):
    assert refused('AARG', limit, stack, **wish).body['args'][0] == args


def test_limits_by_command_and_in_sql(stack, manager):
    for arguments, said in ((('--op', 'Count', '--key', '--running', '2', '--rate', '60/min'), 'operation Count, each key: limited'),
                            (('--queue', '3', '--running', '1'), 'queue 3: limited'), (('--queue', '3'), 'queue 3: not limited'), (('--queue', '3'), 'queue 3: already not limited')):
        assert stack.admin('task', 'limit', 'lab', *arguments).out.strip() == said
    limits = stack.op('lab', 'tasks', {'backlog': True}, admin=True)['out']['limits']
    assert limits == [{'op': 'Count', 'key': True, 'running': 2, 'rate': '60/min, burst 60'}]
    assert 'limit: {"op":"Count"' in stack.admin('task', 'backlog', 'lab').out
    assert stack.psql('lab', "select task_limit_set(opname => 'Mail', most => 3)") == [(True,)]

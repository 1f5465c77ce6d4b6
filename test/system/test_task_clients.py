"""Tasks that strangers ask for: how many, how late, how urgent, and apart from those of others."""
import contextlib
import datetime
import shutil
import threading

import psycopg2
import pytest

from door_client import Client
from kit import Kit
from manager import PARKED, Manager
from stack import PATIENCE_S, wait_until

STACK = {'workers': 8, 'settings': {}}  # more than a crowd: when all others are at commits for two seconds, the last one begins none
MOST, MOST_OF_ALL = 20, 30


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'lock_timeout_ms': 60000, 'statement_timeout_ms': 60000, 'modules': kit.build('tasks.c'), 'limit_client_tasks': MOST, 'limit_tasks_waiting': MOST_OF_ALL,
                         'limit_task_delay_days': 30, 'task_postpone_s': 3600, 'task_parked_days': 10}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def manager(stack):
    stack.psql('lab', 'truncate taskqueue, task_history')
    return Manager(stack, 'lab')


@pytest.fixture
def clients(stack, manager):
    made = []

    def client(number):
        made.append(Client(stack, f'127.0.0.{number}'))
        return made[-1]
    yield client
    for one in made:
        one.close()


def ask(client, op='Count', param=None, **more):
    return client.op('lab', 'task', {'op': op, 'param': param or {'id': 'x'}, **more})


def asked(client, **more):
    reply = ask(client, **more)
    assert reply.status == 200, reply
    return reply.json['out']


def rows(stack, columns):
    return stack.psql('lab', f'select {columns} from taskqueue order by number')


def test_a_client_and_all_of_them_may_ask_for_so_many(stack, clients, manager):
    greedy, other, third = clients(2), clients(3), clients(4)
    for _ in range(MOST):
        asked(greedy)
    reply = ask(greedy)
    assert (reply.status, reply.code, reply.args) == (429, 'XBUSY', ['limit_client_tasks', str(MOST)])
    for _ in range(MOST_OF_ALL - MOST):
        asked(other)
    assert (ask(third).code, ask(third).args) == ('XBUSY', ['limit_tasks_waiting', str(MOST_OF_ALL)])
    assert stack.op('lab', 'task', {'op': 'Count', 'param': {'id': 'x'}}, admin=True)['out'], 'an administrator is not limited'
    stack.op('lab', 'Plan', {'tasks': [{'op': 'Count', 'param': {'id': 'x'}}] * 50})
    assert len(rows(stack, '1')) == MOST_OF_ALL + 51
    manager.work()
    assert asked(greedy) and asked(third)


def test_the_limits_hold_for_those_who_come_together(stack, clients, manager):
    """One more for each worker got in: several counted before any of them had committed."""
    crowd, outcomes = [clients(2 + number) for number in range(6)], []

    def flood(client):
        outcomes.extend(ask(client).status for _ in range(10))
    threads = [threading.Thread(target=flood, args=(client,)) for client in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (outcomes.count(200), outcomes.count(429)) == (MOST_OF_ALL, 60 - MOST_OF_ALL)
    assert len(rows(stack, '1')) == MOST_OF_ALL


def test_who_counts_waits_for_those_who_have_counted(stack, clients, manager):
    waits = "select 1 from pg_locks where locktype = 'advisory' and not granted and objsubid = 1"
    with contextlib.closing(psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd')) as another, another.cursor() as cursor:
        cursor.execute("select task_admit(1, %s, %s, '', '{0,0,0}', 1)", (MOST, MOST_OF_ALL))
        cursor.execute("insert into taskqueue (taskid, opname, param, startat, created, requester) select n, 'Count', '{}', 261121000000000,"
                       ' 261121000000000, 1 from generate_series(1, %s) n', (MOST_OF_ALL,))
        answers = []
        thread = threading.Thread(target=lambda: answers.append(ask(clients(2))))
        thread.start()
        wait_until(lambda: stack.psql('lab', waits), what='the request waits')
        another.commit()
        thread.join(PATIENCE_S)
    assert (answers[0].status, answers[0].code, answers[0].args) == (429, 'XBUSY', ['limit_tasks_waiting', str(MOST_OF_ALL)])


@pytest.mark.parametrize('more, code, args', [
    ({'priority': 19}, 'AARG', ['priority']), ({'delay': 31 * 86400}, 'ALIMIT', ['limit_task_delay_days', '30', '31']),
    ({'start': 981231000000000}, 'ALIMIT', ['limit_task_delay_days', '30', '31']), ({'order': 'strict'}, 'AARG', ['domain']),
    ({'order': 'loose', 'domain': 'd'}, 'AARG', ['order']),
    ({'op': 'put', 'param': {'docs': 'x'}}, 'AARG', ['docs']), ({'op': 'put', 'param': {'docs': [{'c': 'Doc'}]}}, 'AARG', ['id'])])
def test_what_strangers_may_not_wish(stack, clients, manager, more, code, args):
    reply = ask(clients(2), **more)
    assert reply.code == code and reply.args[:len(args)] == args, reply
    assert rows(stack, '1') == []


@pytest.mark.parametrize('item, code, at', [
    ({'c': 'P', 'k': 'a', 'j': {}}, 'AARG', '/c'), ({'c': 'note', 'j': 1}, 'AARG', '/c'),
    ({'c': 'Note', 'J': 1}, 'AARG', '/J'), ({'c': 'Note'}, 'AARG', ''), ({'c': 'Note', 'k': 'x' * 300, 'j': 1}, 'ALIMIT', '/k')])
def test_items_that_no_document_may_have_are_refused_with_the_request(stack, clients, manager, item, code, at):
    put = {'docs': [{'c': 'Doc', 'id': 'a'}, {'c': 'Doc', 'id': 'x', 'items': [{'c': 'Fine', 'j': 1}, item]}]}
    now = stack.request('POST', '/lab/op/put', json={'param': put}).json()
    then = stack.request('POST', '/lab/op/task', json={'param': {'op': 'put', 'param': put}}).json()
    assert (now['code'], now['at']) == (code, f'/param/docs/1/items/1{at}')
    assert (then['code'], then['at'], then['args']) == (code, f'/param/param/docs/1/items/1{at}', now['args'])
    twice = {'op': 'task', 'param': {'op': 'put', 'param': put}}
    nested = stack.request('POST', '/lab/op/task', json={'param': twice}, admin=True).json()
    assert (nested['code'], nested['at']) == (code, f'/param/param/param/docs/1/items/1{at}')
    assert rows(stack, '1') == []


def test_strangers_do_not_touch_each_others_resources_and_domains(stack, clients, manager):
    param = {'id': 'own'}
    stack.op('lab', 'task', {'op': 'Count', 'param': param, 'resource': 'r', 'delay': 60, 'info': 'admins'}, admin=True)
    stack.op('lab', 'Plan', {'tasks': [{'op': 'Count', 'param': param, 'resource': 'm', 'domain': 'd', 'delay': 60}]})
    before = rows(stack, '*')
    names = set()
    for number in (2, 3):
        for resource in ('r', 'm'):
            out = asked(clients(number), param={'id': 'theirs'}, resource=resource, domain='d', delay=86400)
            assert asked(clients(number), param={'id': 'again'}, resource=resource, domain='d', delay=86400)['id'] == out['id']
            names.add(out['id'])
    assert len(names) == 4 and rows(stack, '*')[:2] == before
    assert len(set(rows(stack, 'domain'))) == 4  # none, d, and one of each


def test_a_resource_asked_for_again_and_again_starts_in_the_end(stack, clients, manager):
    client = clients(2)
    first = asked(client, resource='r', delay=60)
    for delay in (600, 86400, 20 * 86400):
        last = asked(client, resource='r', delay=delay)
    assert last['id'] == first['id'] and first['startat'] < last['startat'] == rows(stack, 'latest')[0][0]


def apart_s(one, other):
    one, other = (datetime.datetime.strptime(f'{stamp}000', '%y%m%d%H%M%S%f') for stamp in (one, other))
    return (other - one).total_seconds()


def test_a_request_may_bound_how_far_later_ones_move_its_start(stack, clients, manager):
    def request(**more):
        return stack.op('lab', 'task', {'op': 'Count', 'param': {'id': 'x'}, 'resource': 'w', **more}, admin=True)['out']
    first = request(delay=60, within=90)
    last = [request(delay=delay) for delay in (70, 3600, 86400)][-1]
    assert last['id'] == first['id'] and first['startat'] < last['startat'] == rows(stack, 'latest')[0][0]
    assert apart_s(first['startat'], last['startat']) < 30.01, 'times of stamps are cut to milliseconds'
    manager.hurry()
    assert rows(stack, 'startat')[0][0] < first['startat'] and request(delay=3600)['startat'] == last['startat']
    theirs = asked(clients(2), resource='w', delay=60, within=86400)
    for delay in (600, 86400):
        moved = asked(clients(2), resource='w', delay=delay)['startat']
    assert apart_s(theirs['startat'], moved) <= 3600, 'task_postpone_s holds, too'
    assert ask(clients(2), within=5).args == ['resource'] and ask(clients(2), resource='w', within=0).args == ['within']


def test_the_requester_waits_for_the_end(stack, clients, manager):
    client, other = clients(2), clients(3)
    task, answers = asked(client, info='mine')['id'], []
    assert other.op('lab', 'owntask', {'show': task, 'wait': 20}).json['out'] == {'id': task, 'state': 'gone', 'pause': 0}, 'of another one, it does not exist'

    def wait():
        while not answers or answers[-1]['state'] == 'waiting':
            answers.append(client.op('lab', 'owntask', {'show': task, 'wait': 20}).json['out'])
    thread = threading.Thread(target=wait)
    thread.start()
    assert manager.run(task)['result'] == 'done'
    thread.join(PATIENCE_S)
    assert (answers[-1]['state'], answers[-1]['pause'], answers[-1]['op']) == ('done', 0, 'Count')
    assert client.op('lab', 'owntask', {'show': task}).json['out'].keys() == answers[-1].keys() - {'pause'}
    assert client.op('lab', 'owntask', {'cancel': task, 'wait': 1}).args == ['wait']
    assert client.op('lab', 'owntask', {'show': task, 'wait': -1}).args == ['wait']


def test_the_wait_for_the_end_ends_when_only_an_administrator_can_go_on(stack, clients, manager):
    client, answers = clients(2), []
    task = asked(client)['id']

    def wait():
        while not answers or answers[-1].get('out', {}).get('state') == 'waiting':
            answers.append(client.op('lab', 'owntask', {'show': task, 'wait': 20}).json)
    thread = threading.Thread(target=wait)
    thread.start()
    stack.psql('lab', 'select task_hold(%s)', (task,))
    thread.join(PATIENCE_S)
    assert (answers[-1]['out']['state'], answers[-1]['out']['pause']) == ('held', 0)


def test_parked_tasks_expire_and_held_ones_do_not(stack, clients, manager):
    fail = {'op': 'Once', 'param': {'id': 'x', 'times': 9}}
    gone, held, young = asked(clients(2), **fail), asked(clients(2)), asked(clients(2), **fail)
    for task in (gone, young):
        assert manager.post(task['id']).status_code == 500
    stack.psql('lab', 'select task_hold(%s)', (held['id'],))
    stack.psql('lab', "update taskqueue set parked = stamp_of(now() - interval '11 days') where taskid = any (%s)", ([gone['id'], held['id']],))
    manager.scan()
    assert rows(stack, 'taskid, startat') == [(held['id'], PARKED), (young['id'], PARKED)]
    assert stack.psql('lab', "select taskid, exc from task_history where exc = 'EXPIRED'") == [(gone['id'], 'EXPIRED')]
    assert stack.metrics()['stampd_tasks_expired_total{ns="lab"}'] == 1


def test_what_nobody_was_told_of_is_listed_until_somebody_is(stack, manager):
    parked, waits = [stack.op('lab', 'task', {'op': op, 'param': {'id': 'x', 'times': 9}})['out']['id'] for op in ('Once', 'Fail')]
    for task in (parked, waits):
        assert manager.post(task).status_code == 500

    def listed(failures):
        return sorted((row['id'], row['retry'], row['code']) for row in manager.scan(unreported=9, failures=failures)['unreported'])
    assert listed(2) == [(parked, 1, 'AFAIL')]
    assert listed(1) == sorted([(parked, 1, 'AFAIL'), (waits, 1, 'AFAIL')])
    assert manager.post(param={'reported': [{'id': parked, 'retry': 1}, {'id': waits, 'retry': 0}]}).status_code == 200
    assert listed(1) == [(waits, 1, 'AFAIL')], 'of the other failure nobody was told'
    stack.psql('lab', 'select task_run(%s)', (parked,))
    assert manager.post(parked).status_code == 500
    assert listed(9) == [(parked, 1, 'AFAIL')], 'parked once more'
    assert 'unreported' not in manager.scan()

"""Several tasks of one request, and changes of documents, in one commit: all or nothing, under the limits of tasks that come alone."""
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from door_client import Client
from kit import Kit
from manager import Manager
from schema import Schemas

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'shown': 'read'}, 'settings': {}}
SCHEMA = {'Asso': {'open': True, 'items': {'Sta': {'singleton': True, 'copies': {'to': ['Team']}}}}, 'Team': {'open': True, 'items': {}}}
MOST = 5


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': kit.build('tasks.c'), 'limit_client_tasks': MOST, 'limit_tasks': 20, 'limit_client_requests': 0, 'limit_client_connections': 0}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def manager(stack):
    stack.psql('lab', 'truncate taskqueue, task_history, task_unique')
    stack.clear('lab', 'Note', 'Asso')
    return Manager(stack, 'lab')


@pytest.fixture
def client(stack, manager):
    client = Client(stack, '127.0.0.2')
    yield client
    client.close()
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'quotas': None}}, admin=True)


def count(number):
    return {'op': 'Count', 'param': {'id': f'c{number}'}, 'delay': 86400}


def note(id_, **more):
    return {'c': 'Note', 'id': id_, 'items': [{'c': 'Text', 'j': id_}], **more}


def asked(client, **param):
    reply = client.op('lab', 'task', param)
    assert reply.status == 200, reply
    return reply.json['out']


def rows(stack, columns='taskid, opname'):
    return stack.psql('lab', f'select {columns} from taskqueue order by number')


def test_a_task_and_documents_are_one_commit(stack, client):
    out = asked(client, **count(1), docs=[note('a'), note('b')])
    assert sorted(out) == ['docs', 'id', 'startat', 'v'] and [(doc['id'], doc['v']) for doc in out['docs']] == [('a', out['v']), ('b', out['v'])]
    assert rows(stack) == [(out['id'], 'Count')]
    assert stack.get('lab', ('Note', 'a'))['v'] == out['v']
    moved = client.op('lab', 'task', {**count(2), 'docs': [{**note('a'), 'if': 0}]})
    assert moved.code == 'AVERSION' and moved.json['at'] == '/param/docs/0/if'
    wrong = client.op('lab', 'task', {'op': 'Nowhere', 'docs': [note('new')]})
    assert wrong.status == 404 and client.get('lab', 'Note', 'new').status == 404
    assert len(rows(stack)) == 1


def test_several_tasks_are_created_or_none(stack, client):
    out = asked(client, tasks=[count(1), {**count(2), 'resource': 'r'}, {**count(3), 'resource': 'r'}], docs=[note('d')])
    ids = [task['id'] for task in out['tasks']]
    assert ids[1] == ids[2] != ids[0] and sorted(row[0] for row in rows(stack)) == sorted(set(ids))
    assert asked(client, tasks=[{**count(4), 'resource': 'r'}])['tasks'][0]['id'] == ids[1], 'of the task that waits'
    reply = client.op('lab', 'task', {'tasks': [count(5), {'op': 'put', 'param': {'docs': 'x'}}], 'docs': [note('e')]})
    assert (reply.code, reply.json['at']) == ('AARG', '/param/tasks/1/param/docs')
    assert len(rows(stack)) == 2 and client.get('lab', 'Note', 'e').status == 404


@pytest.mark.parametrize('param, code, at', [
    ({'tasks': []}, 'AARG', '/param/tasks'), ({'tasks': 1}, 'AARG', '/param/tasks'), ({'tasks': [1]}, 'AARG', '/param/tasks/0'),
    ({'tasks': [{'op': 'Count', 'docs': []}]}, 'AARG', '/param/tasks/0/docs'), ({'tasks': [count(1)], 'op': 'Count'}, 'AARG', '/param/op'),
    ({'tasks': [count(1)] * 21}, 'ALIMIT', '/param/tasks'), ({**count(1), 'docs': 1}, 'AARG', '/param/docs'),
    ({'tasks': [{'op': 'take'}]}, 'AARG', '/param/tasks/0/op'), ({'tasks': [{**count(1), 'priority': 3}]}, 'AARG', '/param/tasks/0/priority')])
def test_malformed_batches(stack, client, param, code, at):
    reply = client.op('lab', 'task', param)
    assert (reply.code, reply.json.get('at')) == (code, at), reply
    assert rows(stack) == []


def test_a_batch_counts_as_so_many_tasks(stack, client):
    reply = client.op('lab', 'task', {'tasks': [count(n) for n in range(MOST + 1)], 'docs': [note('f')]})
    assert (reply.status, reply.code, reply.args) == (429, 'XBUSY', ['limit_client_tasks', str(MOST)])
    assert rows(stack) == [] and client.get('lab', 'Note', 'f').status == 404
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'quotas': {'address': {'tasks': '3/h, burst 3'}}}}, admin=True)
    reply = client.op('lab', 'task', {'tasks': [count(n) for n in range(4)]})
    assert (reply.code, reply.args) == ('XBUSY', ['quotas.address.tasks', '3/h, burst 3'])
    assert rows(stack) == []


def test_tasks_of_the_server_beside_them_do_not_count(stack, client, tmp_path):
    Schemas(stack, tmp_path).apply('lab', SCHEMA)
    asso = {'c': 'Asso', 'id': 'chess', 'items': [{'c': 'Sta', 'j': {'name': 'Chess'}}]}
    asked(client, tasks=[count(n) for n in range(MOST)], docs=[asso])
    assert sorted(rows(stack, 'opname, requester is not null')) == [('Count', True)] * MOST + [('copy', False)]


def test_documents_need_the_right_to_write(stack, client):
    reply = client.op('shown', 'task', {'tasks': [{'op': 'list', 'param': {}}], 'docs': [note('g')]})
    assert reply.code == 'SCLOSED' and stack.psql('shown', 'select 1 from taskqueue') == []
    assert client.op('shown', 'task', {'op': 'put', 'param': {'docs': []}}).code == 'SCLOSED'


def test_an_answer_is_repeated_without_what_only_the_commit_knew(stack, client):
    param = {'tasks': [count(1), {**count(2), 'resource': 'r'}], 'docs': [note('h')]}
    first, again = [client.ask('POST', '/lab/op/task', {'param': param}, Idempotency_Key='b' * 24).json['out'] for _ in range(2)]
    assert again == {**first, 'tasks': [first['tasks'][0], {}]} and len(rows(stack)) == 2


def test_a_task_may_create_such_tasks(stack, manager):
    inner = {'tasks': [count(1), count(2)], 'docs': [note('i')]}
    outer = stack.op('lab', 'task', {'op': 'task', 'param': inner}, admin=True)['out']['id']
    manager.run(outer)
    assert [row[1] for row in rows(stack)] == ['Count'] * 2 and stack.get('lab', ('Note', 'i'))['v']
    reply = stack.request('POST', '/lab/op/task', json={'param': {'op': 'task', 'param': {'tasks': [{'op': 'Nowhere'}]}}}, admin=True)
    assert reply.status_code == 404


def test_files_of_a_form_belong_to_put_alone(stack, manager):
    item = {'c': 'P', 'k': 'a', 'file': 'one'}
    param = '{"op":"Count","param":{"id":"x"},"docs":[{"c":"Note","id":"j","items":[{"c":"P","k":"a","file":"one"}]}]}'
    answer = stack.http.post(f'{stack.url}/lab/op/task', data={'param': param}, files={'one': ('a.txt', b'text', 'text/plain')}, timeout=30)
    assert answer.status_code == 400 and answer.json()['code'] == 'AARG', item
    assert rows(stack) == []


def test_a_unique_task_is_created_once_while_it_waits_or_runs(stack, manager):
    def ask(unique=0, **more):
        return stack.op('lab', 'task', {'op': 'Count', 'param': {'id': 'u', 'n': 1}, 'resource': 'r', 'unique': unique, **more}, admin=True)['out']
    first = ask(delay=60)
    assert ask() == first and ask(info='later') == first, 'it stays as it was requested'
    assert rows(stack, "info, startat - %d" % first['startat']) == [('', 0)]
    stack.psql('lab', 'update taskqueue set starttime = stamp_now()')
    assert ask()['id'] == first['id'], 'it runs'
    assert len(rows(stack)) == 1
    stack.psql('lab', 'delete from taskqueue')
    second = ask(3600)
    assert second['id'] != first['id']
    stack.psql('lab', 'delete from taskqueue')
    assert ask() == second and rows(stack) == [], 'its hour is not over'
    stack.psql('lab', 'update task_unique set until = stamp_now() - 1')
    assert ask()['id'] not in (first['id'], second['id']) and len(rows(stack)) == 1
    both = stack.op('lab', 'task', {'tasks': [{'op': 'Count', 'resource': name, 'unique': 0} for name in 'rs']}, admin=True)['out']['tasks']
    assert both[0]['id'] == rows(stack)[0][0] and both[1]['id'] == rows(stack)[1][0] and len(rows(stack)) == 2


def test_requests_for_a_unique_task_that_come_together(stack, manager):
    def ask(_):
        return stack.op('lab', 'task', {'op': 'Count', 'resource': 'r', 'unique': 60}, admin=True)['out']['id']
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(12)))) == 1 == len(rows(stack))
    stack.psql('lab', "update task_unique set until = 1; insert into task_unique select 'Count', n, n, 1, 981231000000000 from generate_series(1, 3) n")
    manager.scan()
    assert stack.psql('lab', 'select count(*) from task_unique') == [(3,)]


def test_unique_needs_a_resource(stack, client):
    assert client.op('lab', 'task', {'op': 'Count', 'unique': 1}).args == ['resource']
    assert client.op('lab', 'task', {'op': 'Count', 'unique': -1, 'resource': 'r'}).args == ['unique']

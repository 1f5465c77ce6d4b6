"""Texts of tasks and kept answers of an encrypted namespace belong to their rows: moved, altered or made empty, they are a fault that
concerns this row only."""
import hashlib
import secrets
import shutil
import threading

import pytest

from kit import Kit
from manager import Manager
from stack import PATIENCE_S, wait_until
from vault import create, new_site_key

STACK = {'workers': 3, 'settings': {}, 'namespaces': {'z': 'closed', 'lab': 'open'}}
ALTERED = '\'~1.\' || repeat(\'A\', 80)'

# What an administrator of the database can do to each column of a row of the task `A` or of the answer `A`.  `B` is another row.
TASK = {
    'taskid': ["update taskqueue set taskid = reverse(taskid) where taskid = %(A)s"],
    'opname': ["update taskqueue set opname = 'Cycles' where taskid = %(A)s"],
    'resource': ["update taskqueue set resource = 'r' where taskid = %(A)s"],
    'param': ["update taskqueue set param = (select param from taskqueue where taskid = %(B)s) where taskid = %(A)s",
              f'update taskqueue set param = {ALTERED} where taskid = %(A)s',
              "update taskqueue set param = '' where taskid = %(A)s",
              "update taskqueue set param = '{\"id\":\"evil\"}' where taskid = %(A)s",
              "update taskqueue set param = '{}' where taskid = %(A)s"],
    'checkpoint': ["update taskqueue set checkpoint = (select checkpoint from taskqueue where taskid = %(B)s) where taskid = %(A)s",
                   f'update taskqueue set checkpoint = {ALTERED} where taskid = %(A)s',
                   "update taskqueue set checkpoint = '' where taskid = %(A)s",
                   "update taskqueue set checkpoint = '{\"done\":4}' where taskid = %(A)s",
                   'update taskqueue set checkpoint = null where taskid = %(A)s'],
}
ANSWER = {
    'account': ["update idempotency set account = 'other' where key = 'A'"],
    'key': ["update idempotency set key = 'C' where key = 'A'"],
    'mime': ["update idempotency set mime = 'text/html' where key = 'A'"],
    'digest': ["update idempotency set digest = (select digest from idempotency where key = 'B') where key = 'A'"],
    'answer': ["update idempotency set answer = (select answer from idempotency where key = 'B') where key = 'A'",
               f"update idempotency set answer = convert_to({ALTERED}, 'UTF8') where key = 'A'",
               "update idempotency set answer = '' where key = 'A'",
               "update idempotency set answer = '{}' where key = 'A'"],
}
# In clear and not bound (doc/explanation/encryption.md, "What stays in clear").
CLEAR = {
    'taskqueue': {'number', 'info', 'retry', 'startat', 'starttime', 'holder', 'qn', 'priority', 'batch', 'domain', 'key', 'step', 'exc', 'report',
                  'created', 'cron', 'plan', 'strict', 'requester', 'account', 'credential', 'of_client', 'latest', 'parked', 'reported', 'expires', 'follows',
                  'progress', 'trace'},
    'idempotency': {'version', 'at', 'versions_after'},
}


def new_vault(stack):
    stack.set(site_key_file=new_site_key(stack))
    create(stack)
    # An administrator of the database can remove what refuses texts in clear.
    for table in ('taskqueue', 'idempotency'):
        stack.psql('vault', f'alter table {table} drop constraint encrypted_namespace')


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    periodic = kit.build('periodic.c', 'periodic', '-DPERIOD="Y11100425"')
    STACK['settings'] = {'modules': f'{kit.build("tasks.c")} {periodic}', 'task_retries': '0 0'}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def vault(stack):
    new_vault(stack)
    return stack


@pytest.fixture
def manager(vault):
    vault.psql('vault', 'truncate taskqueue, task_history, idempotency, cron')
    vault.clear('vault', 'Counter')
    return Manager(vault, 'vault')


def ask(stack, op, param, **more):
    return stack.op('vault', 'task', {'op': op, 'param': param, **more})['out']['id']


def counted(stack, name):
    document = stack.get('vault', ('Counter', name))
    return document['items'][0]['j']['n'] if document['v'] else 0


def cases(changes):
    return [(column, change) for column in changes for change in changes[column]]


def columns(stack, table):
    return {name for name, in stack.psql('vault', 'select column_name from information_schema.columns where table_schema = %s and table_name = %s',
                                         ('stampd', table))}


@pytest.mark.parametrize('table, changes', [('taskqueue', TASK), ('idempotency', ANSWER)])
def test_each_column_is_bound_or_said_to_be_in_clear(vault, table, changes):
    assert columns(vault, table) == set(changes) | CLEAR[table] and not set(changes) & CLEAR[table]


def begun(stack, manager, op, name, **more):
    """The task; of Cycles with a checkpoint, waiting to go on."""
    task = ask(stack, op, {'id': name, **more})
    if op == 'Cycles':
        assert manager.run(task, 500)['code'] == 'ACYCLE'
        manager.hurry()
        assert stack.psql('vault', 'select step, checkpoint like %s from taskqueue where taskid = %s', ('~1.%', task)) == [(2, True)]
    return task


@pytest.mark.parametrize('column, change', cases(TASK))
def test_a_task_that_was_altered_fails_and_the_others_run(vault, manager, column, change):
    op, more = ('Cycles', {'cycles': 5, 'fail': 2}) if column == 'checkpoint' else ('Count', {})
    names = {name: begun(vault, manager, op, name, **more) for name in 'AB'}
    before = counted(vault, 'A')
    vault.psql('vault', change, names)
    tasks = [names['A'][::-1] if column == 'taskid' else names['A'], names['B']]
    outcomes = manager.run_many(tasks)
    altered, other = (outcomes[task] for task in tasks)
    assert (altered['result'], altered['code']) == ('failed', 'BCONTENT')
    assert other['result'] == 'done' and counted(vault, 'B') == (5 if op == 'Cycles' else 1)
    assert counted(vault, 'A') == before and counted(vault, 'evil') == 0
    assert vault.psql('vault', 'select exc, starttime, report from taskqueue') == [('BCONTENT', None, None)]


def test_a_task_that_takes_the_place_of_another_runs_with_its_argument(vault, manager):
    first, second = (ask(vault, 'Count', {'id': name}, resource='r') for name in ('first', 'second'))
    assert first == second or vault.psql('vault', 'select count(*) from taskqueue') == [(1,)]
    (id_,), = vault.psql('vault', 'select taskid from taskqueue')
    assert manager.run(id_)['result'] == 'done'
    assert (counted(vault, 'first'), counted(vault, 'second')) == (0, 1)


def send(stack, key, value, account='me'):
    return stack.request('POST', '/vault/op/put', headers={'Idempotency-Key': key}, json={'account': account, 'param': {'docs': [
        {'c': 'Note', 'id': 'n', 'items': [{'c': 'Line', 'k': 'k', 'j': value}]}]}})


@pytest.mark.parametrize('column, change', cases(ANSWER))
def test_a_kept_answer_that_was_altered_is_a_fault(vault, manager, column, change):
    for key in 'AB':
        assert send(vault, key, key).status_code == 200
    assert send(vault, 'A', 'A').headers['Idempotency-Replayed'] == 'true'
    vault.psql('vault', change)
    answer = send(vault, 'C' if column == 'key' else 'A', 'A', 'other' if column == 'account' else 'me')
    assert answer.status_code == 500 and answer.json()['code'] == 'BCONTENT', answer.text
    assert send(vault, 'B', 'B').headers['Idempotency-Replayed'] == 'true'


def test_a_periodic_task_runs_and_has_no_argument_in_clear(vault, manager):
    assert 'has no argument' in vault.admin('cron', 'add', 'vault', 'Secret', 'D0425', 'Count', '--param', '{"id":"secret"}', status=1).error
    for rule, turns in (('Again', 2), ('Rule', 4)):  # of a module, and of the administrator
        if rule == 'Rule':
            vault.admin('cron', 'add', 'vault', 'Rule', 'D0425', 'Again')
        wait_until(lambda: manager.scan() and vault.psql('vault', 'select param from taskqueue where cron = %s', (rule,)) == [('{}',)], what=rule)
        (task,), = vault.psql('vault', 'select taskid from taskqueue where cron = %s', (rule,))
        for turn in (turns - 1, turns):
            manager.hurry()
            assert manager.run(task)['result'] == 'done' and counted(vault, 'again') == turn
    with pytest.raises(Exception, match='encrypted_namespace'):
        vault.psql('vault', "update cron set param = '{\"id\":\"secret\"}'")


# --- what a run says of itself ---

PLANTED = 'marzipan-4711'


def rows_in_clear(stack):
    return ''.join(row for table in ('taskqueue', 'task_history') for row, in stack.psql('vault', f'select t::text from {table} t'))


def test_the_progress_of_a_task_is_not_stored(vault, manager, kit):
    """It is the application's text, which may be of contents; a checkpoint is encrypted."""
    gate = kit.path / 'gate-of-progress'
    task = ask(vault, 'Cycles', {'id': 'p', 'cycles': 2, 'progress': PLANTED, 'gate': str(gate)})
    thread = threading.Thread(target=manager.run, args=(task,))
    thread.start()
    try:
        wait_until(lambda: vault.psql('vault', 'select step, starttime is not null from taskqueue') == [(1, True)], what='the second commit')
        assert vault.psql('vault', 'select progress, checkpoint like %s from taskqueue', ('~1.%',)) == [(None, True)]
        assert PLANTED not in rows_in_clear(vault)
    finally:
        gate.touch()
        thread.join(PATIENCE_S)
    assert counted(vault, 'p') == 2 and PLANTED not in rows_in_clear(vault)


def test_what_an_external_worker_says_is_not_stored_in_clear(vault, manager):
    key = secrets.token_hex(16)
    queue = {'qn': 16, 'ops': ['resize'], 'key': hashlib.sha256(key.encode()).hexdigest(), 'request': 'anybody'}
    vault.op('z', 'ns', {'set': {'ns': 'vault', 'workers': [queue]}}, admin=True)
    manager.scan()

    def call(name, **param):
        answer = vault.request('POST', f'/vault/op/{name}', json={'param': param}, headers={'Authorization': f'Bearer {key}'})
        assert answer.status_code == 200, answer.text
        return answer.json()['out']

    ask(vault, 'resize', {'text': PLANTED})
    for way, param in (('fail', {'report': PLANTED, 'delay': 0}), ('done', {'result': PLANTED})):
        (task,) = call('take', qn=16)['tasks']
        assert task['param'] == {'text': PLANTED}
        claim = {name: task[name] for name in ('id', 'starttime', 'retry')}
        call('keep', **claim, progress=PLANTED)
        assert vault.psql('vault', "select progress, param like %s from taskqueue where opname = 'resize'", ('~1.%',)) == [(None, True)]
        call(way, **claim, **param)
    assert vault.psql('vault', "select report, result like %s from task_history where opname = 'resize' order by number", ('~1.%',)) == [(None, None), (None, True)]
    assert PLANTED not in rows_in_clear(vault)

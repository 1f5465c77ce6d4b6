"""Tasks that a module cancels, or requests as unique ones, in the commit of an operation."""
import shutil
import threading

import psycopg2
import pytest

from kit import Kit
from manager import PARKED, Manager
from stack import PATIENCE_S, refused, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 4, 'settings': {}}
LATER = 86400


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    older = kit.build('later.c', 'older', '-DABI=1014')
    STACK['settings'] = {'modules': f'{kit.build("tasks.c")} {older}', 'task_history_s': 7200}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture
def manager(stack):
    stack.psql('lab', 'truncate taskqueue, task_history, task_unique')
    stack.clear('lab', 'Counter', 'Told', 'Note')
    return Manager(stack, 'lab')


@pytest.fixture
def signs(kit, tmp_path):
    """Files through which operations of the module and tests tell each other that they are there; in the end nothing waits for them."""
    folder = kit.path / tmp_path.name
    folder.mkdir()
    folder.chmod(0o777)
    yield folder
    (folder / 'gate').touch()


def plan(stack, *tasks, **more):
    return stack.op('lab', 'Plan', {'tasks': list(tasks), **more})


def count(name, op='Count', **more):
    return {'op': op, 'param': {'id': 'x'}, 'resource': name, 'delay': LATER, **more}


def named(resource, op='Count'):
    return {'op': op, 'resource': resource}


def rows(stack, columns='opname, resource'):
    return stack.psql('lab', f'select {columns} from taskqueue order by number')


def history(stack, columns='opname, resource, exc'):
    return stack.psql('lab', f'select {columns} from task_history order by number')


def counted(stack, name):
    document = stack.get('lab', ('Counter', name))
    return document['items'][0]['j']['n'] if document['v'] else 0


def run(manager, taskid):
    """Begins an attempt in a thread of its own: the thread, and the list that gets its outcome."""
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(manager.run(taskid)), daemon=True)
    thread.start()
    return thread, outcomes


class Running:
    """An attempt at a Gate, for the resource `r`, that has begun."""

    def __init__(self, stack, manager, signs, **more):
        self.gate, here = signs / 'gate', signs / 'here'
        plan(stack, {'op': 'Gate', 'param': {'id': 'ran', 'gate': str(self.gate), 'here': str(here)}, 'resource': 'r', **more})
        (self.id,) = manager.due()
        self.thread, self.outcomes = run(manager, self.id)
        wait_until(here.is_symlink)

    def end(self):
        self.gate.touch()
        self.thread.join(PATIENCE_S)
        return self.outcomes[0]


# --- cancelling ---

def test_the_commit_cancels_what_waits_for_the_resource(stack, manager):
    plan(stack, count('r'), count('s'), count('r', 'Bulk'), count('t'), {'op': 'Count', 'param': {'id': 'x'}, 'delay': LATER})
    (first, *_) = rows(stack, 'taskid')
    stack.psql('lab', 'update taskqueue set startat = %s where resource = %s', (PARKED, 't'))
    plan(stack, cancel=[named('r'), named('r'), named('t'), named('none')], id='by')
    assert rows(stack) == [('Count', 's'), ('Bulk', 'r'), ('Count', None)]
    assert history(stack) == [('Count', 'r', 'CANCELLED'), ('Count', 't', 'CANCELLED')], 'in the order of the resources'
    assert counted(stack, 'by') == 1
    assert stack.op('lab', 'owntask', {'show': first[0]}, admin=True)['out']['state'] == 'cancelled'
    assert manager.run(first[0])['result'] == 'gone'


def test_an_operation_that_fails_cancels_nothing(stack, manager):
    plan(stack, count('r'))
    refused('APLAN', plan, stack, cancel=[named('r')], fail=True)
    assert rows(stack) == [('Count', 'r')] and history(stack) == []


def test_an_operation_that_only_cancels_commits(stack, manager):
    plan(stack, count('r'))
    plan(stack, cancel=[named('r')])
    assert rows(stack) == [] and history(stack) == [('Count', 'r', 'CANCELLED')]
    plan(stack, cancel=[named('r')])
    assert len(history(stack)) == 1, 'there is none'


def test_a_request_that_is_repeated_under_its_key_cancels_once(stack, manager):
    more = {'json': {'param': {'tasks': [], 'cancel': [named('r')]}}, 'headers': {'Idempotency-Key': 'cancels-once'}}
    for _ in range(2):
        plan(stack, count('r'))
        assert stack.request('POST', '/lab/op/Plan', **more).status_code == 200
    assert rows(stack) == [('Count', 'r')] and len(history(stack)) == 1


@pytest.mark.parametrize('order', ['cancel', 'withdraw'])
def test_cancel_and_schedule_replace_a_task_whichever_comes_first(stack, manager, order):
    plan(stack, count('r', info='old'))
    ((old,),) = rows(stack, 'taskid')
    plan(stack, count('r', delay=60, info='new'), **{order: [named('r')]})
    (new,) = rows(stack, "taskid, info, startat < stamp_of(now() + interval '1 hour')")
    assert new[0] != old and new[1:] == ('new', True), 'without the cancellation it would keep the later start'
    assert history(stack, 'taskid, exc') == [(old, 'CANCELLED')]


def test_what_runs_does_not_commit(stack, manager, signs):
    running = Running(stack, manager, signs)
    plan(stack, count('r', 'Gate'), count('r'))
    plan(stack, cancel=[named('r', 'Gate')], id='by')
    assert rows(stack) == [('Count', 'r')]
    assert running.end()['result'] == 'late'
    assert (counted(stack, 'ran'), counted(stack, 'by')) == (0, 1)
    assert sorted(history(stack, 'exc, taskid = %r' % running.id)) == [('CANCELLED', False), ('CANCELLED', True)]


def test_the_next_of_the_domain_may_begin(stack, manager, signs):
    running = Running(stack, manager, signs, domain='d')
    plan(stack, count('next', domain='d', delay=0))
    assert manager.due() == []
    plan(stack, cancel=[named('r', 'Gate')])
    (following,) = manager.due()
    assert manager.run(following)['result'] == 'done'
    assert running.end()['result'] == 'late'


def test_a_task_that_is_claimed_while_the_commit_waits_is_cancelled(stack, manager):
    """The first statement of the commit finds it waiting, the second one running."""
    plan(stack, count('r'), id='by')
    gate = psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd')
    try:
        with gate.cursor() as cursor:
            cursor.execute("select 1 from doc where id = 'by' for update")
            assert cursor.rowcount == 1
            thread = threading.Thread(target=plan, args=(stack,), kwargs={'cancel': [named('r')], 'id': 'by'}, daemon=True)
            thread.start()
            wait_until(lambda: stack.psql('lab', "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"))
            stack.psql('lab', "update taskqueue set starttime = stamp_now(), holder = 'test'")
        gate.commit()
        thread.join(PATIENCE_S)
    finally:
        gate.close()
    assert rows(stack) == [] and history(stack) == [('Count', 'r', 'CANCELLED')] and counted(stack, 'by') == 2


def test_a_running_task_is_locked_before_the_documents(stack, manager, signs):
    """As its own commit does, which would meet the cancelling one otherwise: each would wait for the other."""
    running = Running(stack, manager, signs)
    plan(stack, id='by')
    gate = psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd')
    try:
        with gate.cursor() as cursor:
            cursor.execute("select 1 from doc where id = 'by' for update")
            assert cursor.rowcount == 1
            thread = threading.Thread(target=plan, args=(stack,), kwargs={'cancel': [named('r', 'Gate')], 'id': 'by'}, daemon=True)
            thread.start()
            wait_until(lambda: stack.psql('lab', "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"))
            assert stack.psql('lab', 'select 1 from taskqueue for update skip locked') == [], 'it holds the row of the task'
        gate.commit()
        thread.join(PATIENCE_S)
    finally:
        gate.close()
    assert running.end()['result'] == 'late' and counted(stack, 'by') == 2


def test_a_task_does_not_cancel_itself_but_the_one_behind_it(stack, manager):
    own = {'tasks': [], 'cancel': [named('r', 'Plan')], 'id': 'by'}
    taskid = stack.op('lab', 'task', {'op': 'Plan', 'param': own, 'resource': 'r'}, admin=True)['out']['id']
    assert manager.run(taskid)['result'] == 'done'
    assert history(stack, 'taskid, exc') == [(taskid, None)] and counted(stack, 'by') == 1
    steps = stack.op('lab', 'task', {'op': 'Plan', 'param': {**own, 'steps': True}, 'resource': 'r'}, admin=True)['out']['id']
    assert manager.run(steps)['result'] == 'done'
    assert history(stack, 'taskid, exc, step')[1:] == [(steps, None, 2)] and counted(stack, 'by') == 3, 'nor when it goes on after the commit'
    own['tasks'] = [{'op': 'Plan', 'param': {'tasks': []}, 'resource': 'r', 'delay': LATER}]
    taskid = stack.op('lab', 'task', {'op': 'Plan', 'param': own, 'resource': 'r'}, admin=True)['out']['id']
    assert manager.run(taskid)['result'] == 'done'
    assert rows(stack) == [('Plan', 'r')], 'it has created its successor'


@pytest.mark.parametrize('wrong', [{'resource': 'r'}, {'op': 'Nothing', 'resource': 'r'}, {'op': 'thumbnail', 'resource': 'r'}, {'op': 'Count'},
                                   {'op': 'Count', 'odd': True}, {'op': 'Count', 'resource': '~1/r'}])
def test_a_module_that_cancels_what_cannot_be_is_told_so(stack, manager, wrong):
    plan(stack, count('r'))
    refused('BMODULE', plan, stack, cancel=[wrong])
    assert rows(stack) == [('Count', 'r')]


def test_only_work_that_may_write_cancels(stack, manager):
    plan(stack, count('r'))
    refused('BREADONLY', stack.op, 'lab', 'Look', {'tasks': [], 'cancel': [named('r')]})
    refused('BMODULE', stack.op, 'lab', 'Tell', {'id': 'x', 'cancel': [named('r')]})
    assert rows(stack) == [('Count', 'r')]


def test_limits(stack, manager):
    assert refused('ALIMIT', plan, stack, cancel=[named('r')] * 101).body['args'] == ['limit_tasks', '100', '101']
    assert refused('ALIMIT', plan, stack, cancel=[named('r' * 256)]).body['args'] == ['limit_name_bytes', '255', '256']
    plan(stack, *[count(f'r{n}') for n in range(100)])
    plan(stack, *[count(f'r{n}') for n in range(100)], cancel=[named(f'r{n}') for n in range(100)])
    assert (len(rows(stack)), len(history(stack))) == (100, 100)


# --- unique ones ---

def test_a_unique_task_is_created_once_while_it_waits_or_runs(stack, manager, signs):
    running = Running(stack, manager, signs, unique='0s')
    plan(stack, count('r', 'Gate', unique='0'))
    assert rows(stack, 'taskid') == [(running.id,)], 'it runs'
    assert running.end()['result'] == 'done' and counted(stack, 'ran') == 1
    plan(stack, count('r', 'Gate', unique='0s'), count('s', unique='0s'), id='by')
    plan(stack, count('r', 'Gate', unique='0s', info='later'), count('s'), id='by')
    assert rows(stack, 'opname, resource, info') == [('Gate', 'r', ''), ('Count', 's', '')], 'it waits, and stays as it was requested'
    assert counted(stack, 'by') == 2, 'the operations have committed'


def test_a_unique_task_is_created_once_in_its_period(stack, manager):
    plan(stack, count('r', delay=0, unique='2h'))
    (taskid,) = manager.due()
    assert manager.run(taskid)['result'] == 'done'
    plan(stack, count('r', unique='0s'))
    assert rows(stack) == [], 'its period lasts'
    assert stack.psql('lab', "select until > stamp_of(now() + interval '119 minutes') and until <= stamp_of(now() + interval '2 hours') from task_unique") == [(True,)]
    stack.psql('lab', 'update task_unique set until = stamp_now() - 1')
    plan(stack, count('r', unique='1m'))
    assert rows(stack) == [('Count', 'r')]


def test_the_period_of_a_unique_task_goes_on_when_it_is_cancelled(stack, manager):
    plan(stack, count('r', unique='1h'))
    plan(stack, count('r', unique='1h'), cancel=[named('r')])
    assert rows(stack) == []
    plan(stack, count('s', unique='0s'))
    plan(stack, count('s', unique='0s', info='new'), count('r'), cancel=[named('s')])
    assert sorted(rows(stack, 'resource, info')) == [('r', ''), ('s', 'new')], 'one without a period is replaced'


@pytest.mark.parametrize('wrong', [{'resource': None}, {'unique': 'x'}, {'unique': ''}, {'unique': '-1s'}, {'unique': '366d'}, {'unique': '1h 2h'}])
def test_a_module_that_asks_for_what_cannot_be_unique_is_told_so(stack, manager, wrong):
    task = {name: value for name, value in count('r', **{'unique': '1h', **wrong}).items() if value is not None}
    refused('BMODULE', plan, stack, task)
    assert refused('ALIMIT', plan, stack, count('r', unique='7201s')).body['args'] == ['task_history_s', '7200', '7201']
    assert rows(stack) == []


def test_a_module_that_was_built_for_the_version_before_schedules_as_before(stack, manager):
    for _ in range(2):
        stack.op('lab', 'Schedule')
    assert rows(stack) == [('Later', None)] * 2
    for taskid in manager.due():
        assert manager.run(taskid)['result'] == 'done'

"""Administrators and tasks: the operation `tasks`, `stampctl task` and the SQL functions say and do the same."""
import json
import re

import pytest

from manager import PARKED, Manager
from stack import Problem, wait_until

STACK = {'workers': 2}
EARLY, LATE = 200101000000000, 400101000000000


@pytest.fixture(autouse=True)
def empty(stack):
    stack.psql('lab', 'truncate taskqueue, task_history')


def create(stack, opname='put', **more):
    names = ''.join(f', {name} => %({name})s' for name in more)
    return stack.psql('lab', f'select task_create(%(opname)s{names})', {'opname': opname, **more})[0][0]


def claim(stack, taskid):
    stack.psql('lab', "update taskqueue set starttime = %s, holder = 'x' where taskid = %s", (EARLY, taskid))


def fail(stack, taskid, code='XBAD', again=LATE):
    """One attempt that fails."""
    claim(stack, taskid)
    attempt, = stack.psql('lab', 'select retry from taskqueue where taskid = %s', (taskid,))[0]
    stack.psql('lab', "select task_put_back(%s, %s, %s, %s, true, %s, 'It is ill.', %s)",
               (taskid, EARLY, attempt, again, code, EARLY + 5 + attempt))


def stampctl(stack, *words, **more):
    return stack.admin('task', *words, **more)


def ask(stack, **param):
    return stack.op('lab', 'tasks', param, admin=True)['out']


# --- one look, three ways ---

def list_by_operation(stack, **filters):
    return [task['id'] for task in ask(stack, list=filters)['tasks']]


def option(name):
    return '--' + name.replace('begun', 'begun-')


def list_by_command(stack, **filters):
    options = [word for name, value in filters.items() for word in (option(name), value)]
    return [json.loads(line)['id'] for line in stampctl(stack, 'list', 'lab', '--json', *options).out.splitlines()]


def list_by_sql(stack, **filters):
    names = {'op': 'opname', 'from': 'since', 'to': 'until', 'begunfrom': 'begun_since', 'begunto': 'begun_until', 'limit': 'most'}
    words = ', '.join(f'{names.get(name, name)} => %({name})s' for name in filters)
    return [taskid for taskid, in stack.psql('lab', f'select taskid from task_list({words})', filters)]


@pytest.mark.parametrize('look', [list_by_operation, list_by_command, list_by_sql])
def test_tasks_are_found_by_filters_in_the_order_of_their_starts(stack, look):
    held, mail, later = create(stack, info='mail/a'), create(stack, 'Mail', info='mail/b', startat=EARLY), create(stack, startat=LATE)
    bad, running = create(stack, 'Bad', info='bad'), create(stack, 'Mail', info='mail/%', startat=EARLY + 1)
    stack.psql('lab', 'select task_hold(%s)', (held,))
    fail(stack, bad)
    fail(stack, bad, again=LATE + 1)
    claim(stack, running)
    assert look(stack) == [mail, running, later, bad, held]
    assert look(stack, op='Mail') == [mail, running]
    assert look(stack, info='mail/') == [mail, running, held]
    assert look(stack, info='mail/', op='put') == [held]
    assert look(stack, info='mail/%') == [running], 'it is no pattern'
    assert look(stack, retry=1) == look(stack, retry=2) == [bad]
    assert look(stack, retry=3) == []
    assert look(stack, **{'from': EARLY + 1, 'to': LATE}) == [running, later]
    assert look(stack, limit=2) == [mail, running]
    begun = create(stack, 'Mail', info='begun', startat=EARLY)
    stack.psql('lab', "update taskqueue set starttime = %s, holder = 'y' where taskid = %s", (EARLY + 5, begun))
    assert look(stack, begunfrom=EARLY) == [begun, running], 'only what runs, in the order of the starts'
    assert look(stack, begunfrom=EARLY + 1) == look(stack, begunto=EARLY + 5, begunfrom=EARLY + 5) == [begun]
    assert look(stack, begunto=EARLY) == look(stack, begunto=EARLY + 4, op='Mail') == look(stack, begunto=EARLY, info='mail/') == [running]
    assert look(stack, begunfrom=EARLY, limit=1) == [begun] and look(stack, begunto=EARLY, op='put') == []
    stack.psql('lab', 'delete from taskqueue where taskid = %s', (begun,))
    in_domain = create(stack, 'Dom', domain='d', startat=LATE + 2)
    assert look(stack, domain='d') == [in_domain] and look(stack, exc='XBAD') == [bad] and look(stack, exc='XBAD', domain='d') == []
    if look is not list_by_sql:
        assert look(stack, state='held') == [held] and look(stack, state='running') == [running] and look(stack, state='parked') == []
        assert look(stack, state='waiting') == [mail, later, bad, in_domain]


def test_tasks_of_all_namespaces(stack):
    stack.psql('demo', 'truncate taskqueue')
    here, there = create(stack, startat=LATE), stack.psql('demo', "select task_create('put', startat => %s)", (LATE,))[0][0]
    found = [json.loads(line) for line in stampctl(stack, 'list', '--all', '--state', 'waiting', '--json').out.splitlines()]
    assert {(one['ns'], one['task']['id']) for one in found} == {('lab', here), ('demo', there)}
    assert stampctl(stack, 'list', '--all').out.count(here) == 1


def everywhere(stack, **filters):
    return stack.op('z', 'tasks', {'everywhere': filters}, admin=True)['out']


def test_tasks_of_all_namespaces_in_one_answer(stack):
    stack.psql('demo', 'truncate taskqueue')
    due, later = create(stack, startat=EARLY), create(stack, startat=LATE)
    there = stack.psql('demo', "select task_create('put', startat => %s)", (EARLY,))[0][0]
    bad = create(stack, 'Bad')
    fail(stack, bad)

    def found(**filters):
        return [(one['ns'], one['task']['id']) for one in everywhere(stack, **filters)['tasks']]

    assert found() == [('demo', there), ('lab', due), ('lab', later), ('lab', bad)]
    assert found(state='waiting', to=EARLY) == [('demo', there), ('lab', due)] and found(retry=1) == [('lab', bad)]
    first = everywhere(stack, limit=1)
    assert [one['task']['id'] for one in first['tasks']] == [there, due] and first['more'] == ['lab'] and first['faults'] == []
    assert 'cursor' not in first and [one['ns'] for one in everywhere(stack, cursor='demo', limit=1)['tasks']] == ['lab']
    stack.admin('ns', 'state', 'demo', 'gone')
    left = everywhere(stack)
    stack.admin('ns', 'state', 'demo', 'on')
    assert left['faults'] == [{'ns': 'demo', 'code': 'OGONE'}] and [one['ns'] for one in left['tasks']] == ['lab'] * 3
    for ns, param, key in (('lab', {}, True), ('z', {'limit': 101}, True), ('z', {'cursor': '9'}, True), ('z', {}, False)):
        with pytest.raises(Problem):
            stack.op(ns, 'tasks', {'everywhere': param}, admin=key)


def attempts_by_operation(stack, **filters):
    return [(one['id'], one.get('exc')) for one in ask(stack, history=filters)['attempts']]


def attempts_by_command(stack, **filters):
    options = [word for name, value in filters.items() for word in ((option(name),) if value is True else (option(name), value))]
    found = map(json.loads, stampctl(stack, 'history', 'lab', '--json', *options).out.splitlines())
    return [(one['id'], one.get('exc')) for one in found]


def attempts_by_sql(stack, **filters):
    names = {'id': 'taskid', 'op': 'opname', 'from': 'since', 'to': 'until', 'begunfrom': 'begun_since', 'begunto': 'begun_until', 'limit': 'most'}
    words = ', '.join(f'{names.get(name, name)} => %({name})s' for name in filters)
    return stack.psql('lab', f'select taskid, exc from task_attempts({words})', filters)


@pytest.mark.parametrize('look', [attempts_by_operation, attempts_by_command, attempts_by_sql])
def test_history_is_searched_from_its_newest_end(stack, look):
    done = create(stack, param='{"docs":[]}', info='mail/a')
    assert Manager(stack, 'lab').run(done)['result'] == 'done'
    bad, dropped = create(stack, 'Bad', info='bad'), create(stack, info='mail/b')
    fail(stack, bad)
    fail(stack, bad, 'LOST')
    stack.psql('lab', 'select task_drop(%s)', (dropped,))
    assert look(stack) == [(dropped, 'DROPPED'), (bad, 'LOST'), (bad, 'XBAD'), (done, None)]
    assert look(stack, id=bad) == look(stack, op='Bad') == look(stack, info='ba') == look(stack, failures=True) == [
        (bad, 'LOST'), (bad, 'XBAD')]
    assert look(stack, info='mail/', op='put') == [(dropped, 'DROPPED'), (done, None)]
    assert look(stack, to=EARLY + 5) == [(bad, 'XBAD')]
    assert look(stack, id=bad, failures=True, limit=1) == [(bad, 'LOST')]
    assert look(stack, id=bad, info='mail') == []
    assert look(stack, begunto=EARLY) == look(stack, begunto=EARLY, failures=True) == look(stack, begunto=EARLY, id=bad) == look(
        stack, begunto=EARLY, info='ba') == [(bad, 'LOST'), (bad, 'XBAD')]
    assert look(stack, exc='XBAD') == look(stack, exc='XBAD', id=bad) == look(stack, exc='XBAD', info='ba') == look(
        stack, exc='XBAD', failures=True) == [(bad, 'XBAD')]
    assert look(stack, exc='DONE') == look(stack, exc='DONE', id=done) == look(stack, exc='DONE', info='mail/') == [(done, None)]
    assert look(stack, exc='DROPPED') == [(dropped, 'DROPPED')] and look(stack, exc='DROPPED', failures=True) == look(stack, exc='XTIME') == []
    holder = stack.psql('lab', 'select holder from task_history where taskid = %s', (done,))[0][0]
    assert look(stack, holder=holder, exc='DONE') == look(stack, holder=holder[:-1], op='put') == [(done, None)]
    assert look(stack, holder='external ') == look(stack, holder='external ', id=done) == []
    assert look(stack, begunfrom=EARLY + 1, id=done) == [(done, None)] and look(stack, begunto=EARLY, id=done) == []


def test_pages_follow_each_other(stack):
    tasks = [create(stack, startat=EARLY + n // 3) for n in range(10)]
    for task in tasks[:2]:
        claim(stack, task)
    for pages in (ask(stack, list={'limit': 3}), ask(stack, list={'limit': 3, 'from': EARLY})):
        found = [task['id'] for task in pages['tasks']]
        while 'cursor' in pages:
            pages = ask(stack, list={'limit': 3, 'cursor': pages['cursor']})
            found += [task['id'] for task in pages['tasks']]
        assert found == tasks
    for task in tasks:
        stack.psql('lab', 'select task_drop(%s)', (task,))
    page = ask(stack, history={'limit': 7})
    rest = ask(stack, history={'limit': 7, 'cursor': page['cursor']})
    assert [one['id'] for one in page['attempts'] + rest['attempts']] == tasks[::-1] and 'cursor' not in rest


def test_a_task_is_shown_with_all_it_has_and_the_attempts_at_it(stack):
    task = create(stack, 'Bad', param='{"a": [1, {"b": null}]}', info='words "of it"', resource='r', domain='d', qn=3, priority=7)
    fail(stack, task)
    shown = ask(stack, show=task)
    created, = stack.psql('lab', 'select created from taskqueue')[0]
    assert shown['task'] == {'id': task, 'op': 'Bad', 'state': 'waiting', 'qn': 3, 'priority': 7, 'startat': LATE, 'retry': 1, 'batch': 1,
                             'info': 'words "of it"', 'resource': 'r', 'domain': 'd', 'step': 0, 'exc': 'XBAD', 'report': 'It is ill.',
                             'created': created, 'param': {'a': [1, {'b': None}]}}
    assert [(one['exc'], one['report'], one['stoptime']) for one in shown['attempts']] == [('XBAD', 'It is ill.', EARLY + 5)]
    told = [json.loads(line) for line in stampctl(stack, 'show', 'lab', task, '--json').out.splitlines()]
    assert told == [shown['task'], *shown['attempts']]
    stack.psql('lab', "update taskqueue set param = E'{\\n \"a\":\\r\\n\"b\\\\n\"}'")
    assert json.loads(stampctl(stack, 'show', 'lab', task, '--json').out.splitlines()[0])['param'] == {'a': 'b\n'}, 'one a line, whatever was sent'
    stack.psql('lab', 'update taskqueue set param = %s', ('{"a": [1, {"b": null}]}',))
    told = stampctl(stack, 'show', 'lab', task).out
    assert 'report: It is ill.\n' in told and 'param: {"a": [1, {"b": null}]}\n' in told
    stack.psql('lab', 'update taskqueue set info = %s', ('of it\x1b]0;\nstate: held',))
    told = stampctl(stack, 'show', 'lab', task).out
    assert 'info: of it ]0; state: held\n' in told and '\x1b' not in told
    stack.psql('lab', 'update taskqueue set param = %s', ('{"a',))
    assert ask(stack, show=task)['task']['param'] == '{"a', 'what is no JSON is told as text'
    stack.psql('lab', 'select task_drop(%s)', (task,))
    shown = ask(stack, show=task)
    assert 'task' not in shown and [one['exc'] for one in shown['attempts']] == ['DROPPED', 'XBAD']
    assert 'DROPPED' in stampctl(stack, 'show', 'lab', task).out
    assert 'no such task' in stampctl(stack, 'show', 'lab', 'nosuchtask', status=1).error


def test_the_backlog_is_told(stack):
    create(stack, startat=EARLY)
    create(stack, startat=LATE, qn=2)
    assert ask(stack, backlog=True)['queues'] == [
        {'qn': 0, 'due': 1, 'later': 0, 'running': 0, 'parked': 0, 'failing': 0, 'oldest': EARLY},
        {'qn': 2, 'due': 0, 'later': 1, 'running': 0, 'parked': 0, 'failing': 0}]
    lines = stampctl(stack, 'backlog', 'lab').out.splitlines()
    assert lines[1].split() == ['0', '1', '0', '0', '0', '0', str(EARLY)] and len(lines) == 3
    assert [json.loads(line) for line in stampctl(stack, 'backlog', 'lab', '--json').out.splitlines()] == ask(stack, backlog=True)['queues']


def test_tables_for_people(stack):
    task = create(stack, info='an\x1b[31mevil\ninfo')
    head, line = stampctl(stack, 'list', 'lab').out.splitlines()
    assert head.split() == ['ID', 'STATE', 'QN', 'RETRY', 'START', 'OPERATION', 'EXC', 'INFO']
    assert line.split()[:4] == [task, 'waiting', '0', '0'] and line.endswith('an [31mevil info')
    done = stampctl(stack, 'list', 'lab', '--limit', 1)
    assert 'there may be more' in done.error
    stampctl(stack, 'drop', 'lab', task)
    assert stampctl(stack, 'history', 'lab').out.splitlines()[1].split()[1:6] == [task, 'put', '0', '0', 'DROPPED']


# --- deeds ---

def row(stack, taskid):
    found = stack.psql('lab', 'select startat, retry, exc from taskqueue where taskid = %s', (taskid,))
    return found[0] if found else None


def do_by_operation(stack, deed, task, start=None):
    return ask(stack, **{deed: {'id': task, 'startat': start} if start else task})['result']


RESULTS = {'starts now': 'moved', 'it runs': 'running', 'there is no such task': 'gone'}


def do_by_command(stack, deed, task, start=None):
    done = stampctl(stack, deed, 'lab', task, *([start] if start else []), status=None)
    words = (done.error if done.status else done.out).strip().rpartition(': ')[2]
    result = RESULTS.get(words, words)
    assert done.status == (result in ('running', 'gone'))
    return result


@pytest.mark.parametrize('do', [do_by_operation, do_by_command])
def test_tasks_are_held_moved_run_and_dropped(stack, do):
    task = create(stack, startat=LATE)
    assert do(stack, 'hold', task) == 'held' and row(stack, task)[::2] == (PARKED, 'HELD')
    assert do(stack, 'move', task, LATE + 1) == 'moved' and row(stack, task) == (LATE + 1, 0, None)
    fail(stack, task, again=PARKED)
    assert do(stack, 'run', task) == 'moved'
    start, retry, exc = row(stack, task)
    assert start <= stack.ping().json()['t'] and (retry, exc) == (0, None), 'it begins anew'
    claim(stack, task)
    for deed in ('hold', 'run'):
        assert do(stack, deed, task) == 'running'
    assert do(stack, 'move', task, LATE) == 'running'
    assert do(stack, 'drop', task) == 'dropped' and row(stack, task) is None
    for deed in ('hold', 'run', 'drop'):
        assert do(stack, deed, task) == 'gone'


def do_all_by_operation(stack, deed, dry=False, **filters):
    out = ask(stack, **{deed: {**filters, 'dry': dry}})
    assert not out['more'] and out['done'] == (0 if dry else out['found'])
    return out['found']


def do_all_by_command(stack, deed, dry=False, **filters):
    options = [word for name, value in filters.items() for word in (f'--{name}', value)] + ['--dry-run'] * dry
    return int(stampctl(stack, deed, 'lab', *options).out.split()[0])


@pytest.mark.parametrize('do_all', [do_all_by_operation, do_all_by_command])
def test_what_a_filter_finds_is_held_run_and_dropped(stack, do_all):
    mail, bad, other = [create(stack, 'Mail', startat=LATE) for _ in range(3)], create(stack, 'Mail', domain='d'), create(stack, startat=LATE)
    fail(stack, bad, again=PARKED)
    assert do_all(stack, 'hold', dry=True, op='Mail') == 4 and {row(stack, one)[2] for one in mail} == {None}, 'it has only counted'
    assert do_all(stack, 'hold', op='Mail', state='waiting') == 3 and {row(stack, one)[2] for one in mail} == {'HELD'}
    assert row(stack, bad)[2] == 'XBAD' and row(stack, other)[0] == LATE
    assert do_all(stack, 'hold', op='Mail', state='held') == 0, 'they are held'
    assert do_all(stack, 'run', exc='XBAD', domain='d') == 1 and row(stack, bad)[1:] == (0, None)
    assert do_all(stack, 'run', op='Mail') == 3 and all(row(stack, one)[0] < LATE for one in mail)
    assert do_all(stack, 'run', op='Mail') == 0, 'they are due'
    claim(stack, mail[0])
    assert do_all(stack, 'hold', state='running') == 0 and do_all(stack, 'drop', op='Mail') == 4
    assert [one for one, in stack.psql('lab', 'select taskid from taskqueue')] == [other]
    assert stack.psql('lab', "select count(*) from task_history where exc = 'DROPPED'") == [(4,)]


def test_many_are_done_in_steps(stack):
    stack.psql('lab', "select count(task_create('Mail', startat => 400101000000000)) from generate_series(1, 1203)")
    assert ask(stack, hold={'op': 'Mail', 'limit': 200}) == {'found': 200, 'done': 200, 'more': True}
    assert stampctl(stack, 'hold', 'lab', '--op', 'Mail', '--limit', 3).out == '3 tasks: held\n'
    assert stampctl(stack, 'drop', 'lab', '--op', 'Mail', '--dry-run').out == '1000 tasks or more: found, nothing was done\n'
    assert stampctl(stack, 'drop', 'lab', '--op', 'Mail').out == '1203 tasks: dropped\n'


def test_what_is_paused_is_not_begun(stack):
    manager = Manager(stack, 'lab')
    put, other, strict, free = create(stack, param='{"docs":[]}'), create(stack, 'Other'), create(stack, domain='d', strict=True), create(
        stack, 'Other', domain='d', priority=30)
    assert stampctl(stack, 'pause', 'lab', '--op', 'put', '--reason', 'for a while').out == 'operation put: paused\n'
    assert ask(stack, pause={'op': 'put'}) == {'result': 'same'}
    assert set(manager.due()) == {other, free}, 'and a task of the domain without strict order is not held up'
    assert manager.run(put) == {'id': put, 'result': 'paused'} and manager.run_together([put])[0]['result'] == 'paused'
    assert manager.run(strict)['result'] == 'paused'
    assert ask(stack, pause={'qn': 0}) == {'result': 'paused'} and manager.due() == []
    (operation, queue) = ask(stack, backlog=True)['paused']
    assert (operation['op'], operation['reason'], queue['qn']) == ('put', 'for a while', 0)
    assert [line.split(',')[0] for line in stampctl(stack, 'backlog', 'lab').out.splitlines()[2:]] == ['paused: operation put', 'paused: queue 0']
    assert ask(stack, resume={'op': 'put'}) == {'result': 'resumed'} and manager.run(put)['result'] == 'paused'
    assert stampctl(stack, 'resume', 'lab', '--queue', 0).out == 'queue 0: runs\n'
    assert set(manager.due()) == {put, other, strict} and manager.run(put)['result'] == 'done'


def test_the_command_takes_several(stack):
    tasks = [create(stack, startat=LATE) for _ in range(3)]
    done = stampctl(stack, 'hold', 'lab', tasks[0], 'nosuchtask', *tasks[1:], status=1)
    assert done.out.count(': held\n') == 3 and 'nosuchtask: there is no such task' in done.error


def test_only_administrators(stack):
    task = create(stack)
    for more in ({}, {'admin': 'wrong'}, {'key': stack.queue_key}):
        with pytest.raises(Problem) as caught:
            stack.op('lab', 'tasks', {'drop': task}, **more)
        assert caught.value.code in ('SCLOSED', 'SKEY')
    assert row(stack, task)


@pytest.mark.parametrize('param', [
    {}, {'list': 1}, {'list': {'limit': 1001}}, {'list': {'retry': -1}}, {'list': {'from': 'x'}}, {'list': {'cursor': '1'}},
    {'list': {'cursor': 'a.b'}}, {'list': {'op': 7}}, {'history': []}, {'history': {'id': '!'}}, {'history': {'cursor': '-1'}},
    {'history': {'failures': 1}}, {'show': 7}, {'run': {}}, {'hold': '!'}, {'move': 'abcdefgh'}, {'move': {'id': 'abcdefgh'}},
    {'move': {'id': 'abcdefgh', 'startat': PARKED}}, {'move': {'id': 'abcdefgh', 'startat': 261350000000000}},
    {'drop': 'abcdefgh', 'hold': 'abcdefgh'}, {'pause': {}}, {'pause': {'qn': 32}}, {'pause': {'qn': 1, 'op': 'put'}}, {'resume': {'op': '!'}},
    {'resume': {'qn': 1, 'reason': 'x'}}, {'drop': {}}, {'run': {'dry': True}}, {'hold': {'state': 'gone'}}, {'list': {'state': 1}}, {'list': {'dry': True}}])
def test_what_is_no_question_is_refused(stack, param):
    with pytest.raises(Problem) as caught:
        ask(stack, **param)
    assert caught.value.code == 'AARG'


@pytest.mark.parametrize('words', ['list', 'list lab --retry -1', 'list lab --limit 0', 'list lab --from x', 'show lab', 'move lab abcdefgh',
                                   'move lab abcdefgh 1', 'run lab', 'drop lab --dry-run', 'drop lab abcdefgh --op put', 'hold lab --state gone', 'list lab --all', 'pause lab', 'nothing'])
def test_wrong_usage_is_one_line_and_2(stack, words):
    done = stampctl(stack, *words.split(), status=2)
    assert not done.out and done.error.startswith('stampctl: ') and done.error.count('\n') == 1


def test_another_namespace_has_none_of_it(stack):
    task = create(stack)
    assert stack.op('demo', 'tasks', {'drop': task}, admin=True)['out']['result'] == 'gone'
    assert 'no such namespace' in stampctl(stack, 'list', 'nowhere', status=1).error
    assert row(stack, task)


def test_many_tasks_of_the_far_future_hide_nothing_that_is_due(stack):
    stack.psql('lab', "select task_create('put', startat => %s, priority => 0) from generate_series(1, 30)", (LATE,))
    create(stack, startat=EARLY, priority=200)
    assert stack.psql('lab', 'select qn, due, later, oldest from task_backlog(10)') == [(0, 1, 10, EARLY)]


# --- metrics ---

def metrics(stack, ns='lab'):
    """Numbers by queue and state; how old the oldest task that is due is, by queue."""
    found = stack.metrics()
    counts, ages = {}, {}
    for name, value in found.items():
        if place := re.fullmatch(rf'stampd_tasks{{ns="{ns}",queue="(\d+)",state="(\w+)"}}', name):
            counts[int(place[1]), place[2]] = value
        elif place := re.fullmatch(rf'stampd_tasks_due_oldest_seconds{{ns="{ns}",queue="(\d+)"}}', name):
            ages[int(place[1])] = value
    return {name: count for name, count in counts.items() if count}, ages


def total(stack, name):
    return stack.metrics()[f'stampd_tasks_{name}_total']


def test_the_oldest_is_no_more_when_it_has_begun_although_nobody_scans(stack):
    """Done without a scan behind it; one that is made meanwhile is not taken for one of those."""
    first, second = create(stack, startat=EARLY, qn=5), create(stack, startat=EARLY, qn=5)
    manager = Manager(stack, 'lab')
    wait_until(lambda: manager.scan() and metrics(stack)[0].get((5, 'due')) == 2, what='a look')
    assert metrics(stack)[1][5] > 3600
    manager.run(first, 500)  # it has begun, and failed
    assert metrics(stack)[0][5, 'due'] == 1 and metrics(stack)[1][5] > 3600
    manager.run(create(stack, qn=5), 500)
    assert metrics(stack)[0][5, 'due'] == 1
    manager.run(second, 500)
    assert (5, 'due') not in metrics(stack)[0] and metrics(stack)[1][5] == 0


def test_metrics_tell_the_backlog_of_each_namespace_and_queue(stack):
    create(stack, startat=EARLY)
    create(stack, startat=LATE, qn=2)
    bad, running = create(stack, 'Bad', qn=3), create(stack, qn=4)
    fail(stack, bad, again=PARKED)
    stack.psql('lab', 'update taskqueue set parked = stamp_now() where parked is not null')  # else it would have expired
    claim(stack, running)
    # With hosts = one a claim of nobody is lost: the scan puts it back, and then it is due.
    expected = {(0, 'due'): 1, (2, 'later'): 1, (3, 'parked'): 1, (3, 'failing'): 1, (4, 'due'): 1, (4, 'failing'): 1}
    manager, lost = Manager(stack, 'lab'), total(stack, 'lost')
    found, ages = wait_until(lambda: manager.scan() and metrics(stack)[0] == expected and metrics(stack), what='a look')
    assert ages[0] > 3600 * 24 * 365 and ages[2] == 0 and total(stack, 'lost') == lost + 1
    assert metrics(stack, 'demo') == ({}, {}) and 'stampd_tasks_look_age_seconds{ns="lab"}' in stack.metrics()


def test_metrics_count_what_is_done_and_what_fails(stack):
    good, bad = create(stack, param='{"docs":[]}'), create(stack, 'Bad')
    done, failed = total(stack, 'done'), total(stack, 'failed')
    manager = Manager(stack, 'lab')
    manager.run(good)
    manager.run(bad, status=500)
    manager.run(good)  # is gone
    assert (total(stack, 'done'), total(stack, 'failed')) == (done + 1, failed + 1)


def test_what_is_no_longer_there_is_told_as_none(stack):
    manager = Manager(stack, 'lab')
    create(stack, qn=5)
    wait_until(lambda: manager.scan() and metrics(stack)[0] == {(5, 'due'): 1}, what='the task')
    stack.psql('lab', 'truncate taskqueue')
    wait_until(lambda: manager.scan() and metrics(stack)[0] == {}, what='its end')
    assert stack.metrics()['stampd_tasks{ns="lab",queue="5",state="due"}'] == 0

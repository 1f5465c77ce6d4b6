"""changemany: what a search finds is changed or removed, by a task: dry runs, against a naive reading, in small commits, under rules and limits, through deaths."""
import contextlib
import json
import random
import threading

import psycopg2
import pytest
import requests

from manager import Manager
from schema import Schemas
from stack import PATIENCE_S, Problem, refused, stampctl, wait_until
from test_rules_paths import ACCOUNTS, account, session
from test_task_death import kill_server

pytestmark = pytest.mark.plain

MOST = 150  # of the task of a client
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'team': 'rules'}, 'settings': {'limit_change_items': MOST, 'limit_documents': 16, 'lock_timeout_ms': 60000, 'statement_timeout_ms': 60000}}
FIELDS = {'room': 'string', 'at': 'long', 'done': 'hash', 'city': {'type': 'string', 'at': ['address', 'city']}}
MAIN = {'singleton': True, 'fields': FIELDS}
CLASSES = {'Note': {'open': True, 'items': {'Main': MAIN, 'Line': {'fields': FIELDS}}}}
ALL = {right: ['anybody'] for right in ('read', 'list', 'create', 'update', 'delete')}
RULES = {'Note': {'owner': 'Main.owner', 'read': ['anybody'], 'list': ['anybody'], 'create': ['anybody'], 'update': ['owner'], 'delete': ['owner']},
         'Own': {'owner': 'Main.owner', **{right: ['owner'] for right in ALL}},
         'Part': {**ALL, 'items': {'Secret': {'see': [], 'write': []}}},
         'Half': {**ALL, 'items': {'Line': {'see': ['anybody'], 'write': []}}}}
IN_HALL = [{'f': 'room', 't': 'eq', 'v1': 'hall'}]


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', CLASSES)
    return schemas


@pytest.fixture(scope='module')
def team(stack, tmp_path_factory):
    conf = stack.get('z', ('Namespace', 'team'), admin=True)['items'][0]['j']
    stack.put('z', {'c': 'Namespace', 'id': 'team', 'items': [{'c': 'Conf', 'j': {**conf, 'accounts': {}}}, {'c': 'Rules', 'j': RULES}]}, admin=True)
    items = {'Main': MAIN, 'Secret': MAIN, 'Line': {'fields': FIELDS}}
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('team', {name: {'open': True, 'items': items} for name in RULES})
    stack.put('team', *(account(name) for name in ACCOUNTS), admin=True)
    return stack


@pytest.fixture(autouse=True)
def empty(stack):
    for ns in ('lab', 'team'):
        stack.psql(ns, 'truncate taskqueue, task_history')
        stack.clear(ns, *RULES)


def note(ident, room='hall', name='Note', lines=(), **content):
    items = [{'c': 'Main', 'j': {'room': room, **content}}, *({'c': 'Line', 'k': key, 'j': one} for key, one in lines)]
    return {'c': name, 'id': ident, 'items': items}


def fill(stack, documents, ns='lab'):
    for start in range(0, len(documents), 16):
        stack.put(ns, *documents[start:start + 16], admin=True)


def dry(stack, param, ns='lab', headers=None):
    answer = stack.request('POST', f'/{ns}/op/changemany', json={'param': {'c': 'Note', 'i': 'Main', **param}}, headers=headers)
    if answer.status_code != 200:
        raise Problem(answer)
    return answer.json()['out']


def request(stack, param, ns='lab', headers=None, admin=None):
    answer = stack.request('POST', f'/{ns}/op/task', json={'param': {'op': 'changemany', 'param': {'c': 'Note', 'i': 'Main', **param}}}, headers=headers, admin=admin)
    if answer.status_code != 200:
        raise Problem(answer)
    return answer.json()['out']['id']


def result_of(stack, task, ns='lab'):
    ((exc, result),) = stack.psql(ns, 'select exc, result from task_history where taskid = %s order by number desc limit 1', (task,))
    assert exc is None
    return json.loads(result)


def run(stack, param, ns='lab', **more):
    """What the task returns in the end."""
    task, manager = request(stack, param, ns=ns, **more), Manager(stack, ns)
    while manager.run(task)['result'] == 'more':
        manager.hurry()
    return result_of(stack, task, ns)


def contents(stack, ns='lab', name='Note'):
    rows = stack.psql(ns, 'select id, iclass, key, content from item where class = %s and content is not null', (name,))
    return {(id, iclass, key): json.loads(content) for id, iclass, key, content in rows}


@contextlib.contextmanager
def held(stack, ident):
    """Another session has locked the row of the document."""
    with contextlib.closing(psycopg2.connect(stack.conninfo('lab'))) as holder, holder.cursor() as cursor:
        cursor.execute("select version from stampd.doc where class = 'Note' and id = %s for update", (ident,))
        yield holder


# --- what it does ---

def merged(content, patch):
    """RFC 7396, as it is written there."""
    if not isinstance(patch, dict):
        return patch
    made = dict(content) if isinstance(content, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made


def test_a_member_of_an_object_is_searched_and_changed(stack, schemas):
    stack.put('lab', *(note(f'n{i}', address={'city': 'Paris' if i < 2 else 'Rome', 'zip': i}) for i in range(4)))
    param = {'c': 'Note', 'i': 'Main', 'where': [{'f': 'city', 't': 'eq', 'v1': 'Paris'}], 'merge': {'address': {'city': 'Rome'}}}
    assert stack.op('lab', 'changemany', param)['out'] == {'count': 2, 'ids': ['n0', 'n1'], 'refused': 0}
    task = stack.op('lab', 'task', {'op': 'changemany', 'param': param})['out']['id']
    assert Manager(stack, 'lab').run(task)['result'] == 'done'
    found = stack.op('lab', 'find', {'c': 'Note', 'i': 'Main', 'where': [{'f': 'city', 't': 'eq', 'v1': 'Rome'}], 'want': ['address']})['out']['items']
    assert [one['j'] for one in found] == [{'address': {'city': 'Rome', 'zip': i}} for i in range(4)]


def test_a_dry_run_says_how_many_and_which_and_changes_nothing(stack, schemas):
    fill(stack, [note(f'n{i:03}', at=i) for i in range(40)])
    before = contents(stack)
    out = dry(stack, {'where': IN_HALL, 'delete': True})
    assert out == {'count': 40, 'ids': [f'n{i:03}' for i in range(16)], 'refused': 0}
    assert contents(stack) == before and stack.psql('lab', 'select count(*) from taskqueue') == [(0,)]
    assert dry(stack, {'where': [{'f': 'at', 't': 'lt', 'v1': 3}], 'merge': {'done': True}}) == {'count': 3, 'ids': ['n000', 'n001', 'n002'], 'refused': 0}
    assert dry(stack, {'where': [{'f': 'room', 't': 'eq', 'v1': 'none'}], 'del': True}) == {'count': 0, 'ids': [], 'refused': 0}


@pytest.mark.parametrize('seed', range(3))
def test_changes_against_a_naive_reading(stack, schemas, seed):
    chance = random.Random(seed)
    for item in ('Main', 'Line'):
        documents = [note(f'n{i:03}', chance.choice(['hall', 'attic']), at=i, o={'a': 1, 'b': [1]},
                          lines=[(f'k{n}', {'room': chance.choice(['hall', 'attic']), 'at': n}) for n in range(chance.randint(0, 4))]) for i in range(60)]
        stack.clear('lab', 'Note')
        fill(stack, documents)
        before, patch = contents(stack), {'room': chance.choice(['hall', 'cellar', None]), 'o': {'a': None, 'c': {'d': None, 'e': 1}}, 'n': 1}
        found = [place for place, content in before.items() if place[1] == item and content.get('room') == 'hall']
        act = chance.choice(['merge', 'del', 'delete'])
        out = run(stack, {'i': item, 'where': IN_HALL, act: patch if act == 'merge' else True}, admin=True)
        gone = {place[0] for place in found} if act == 'delete' else set()
        expected = {place: merged(content, patch) if act == 'merge' and place in found else content for place, content in before.items()
                    if place[0] not in gone and not (act == 'del' and place in found)}
        assert contents(stack) == expected
        assert out == {'changed': len(gone) if act == 'delete' else len(found), 'refused': 0}
        again = run(stack, {'i': item, 'where': IN_HALL, act: patch if act == 'merge' else True}, admin=True)
        assert again == {'changed': 0, 'refused': 0}, 'it is done once'


def test_what_is_merged_keeps_what_it_does_not_name(stack, schemas):
    text = '{"b" : 1e2,  "room":"hall","big":12345678901234567890123, "o":{"x" : [1, {"y":2}],"z":"é"}}'
    stack.psql('lab', 'select put_item(%s, %s, %s, %s, %s)', ('Note', 'n', 'Main', '', text))
    assert run(stack, {'where': IN_HALL, 'merge': {'o': {'z': 'e'}, 'room': 'attic'}}, admin=True) == {'changed': 1, 'refused': 0}
    assert stack.psql('lab', "select content from item where id = 'n'") == [('{"b":1e2,"room":"attic","big":12345678901234567890123,"o":{"x":[1, {"y":2}],"z":"e"}}',)]


def test_it_is_done_in_small_commits_with_progress(stack, schemas):
    """A document that another session has locked holds up its commit; those before it are done, and seen."""
    fill(stack, [note(f'n{i:03}', at=i) for i in range(100)])
    task, outcomes = request(stack, {'where': IN_HALL, 'merge': {'done': True}}, admin=True), []
    with held(stack, 'n070') as holder:
        thread = threading.Thread(target=lambda: outcomes.append(Manager(stack, 'lab').run(task)))
        thread.start()
        wait_until(lambda: stack.psql('lab', 'select step from taskqueue') == [(4,)], PATIENCE_S, 'four commits')
        assert stack.psql('lab', 'select progress from taskqueue') == [('64 changed, 0 refused',)]
        assert sum('done' in content for content in contents(stack).values()) == 64
        holder.rollback()
    thread.join(PATIENCE_S)
    assert outcomes[0]['result'] == 'done' and result_of(stack, task) == {'changed': 100, 'refused': 0}


def test_a_death_in_the_middle_loses_nothing_and_counts_nothing_twice(stack, schemas):
    fill(stack, [note(f'n{i:03}', at=i) for i in range(100)])
    task = request(stack, {'where': IN_HALL, 'merge': {'done': True}}, admin=True)
    manager = Manager(stack, 'lab')

    def begin():
        try:
            manager.post(task)
        except requests.ConnectionError:
            pass
    with held(stack, 'n040') as holder:
        thread = threading.Thread(target=begin)
        thread.start()
        wait_until(lambda: stack.psql('lab', 'select step from taskqueue') == [(2,)], PATIENCE_S, 'two commits')
        kill_server(stack)
        thread.join(PATIENCE_S)
        holder.rollback()
    manager.work(meanwhile=manager.hurry)
    assert result_of(stack, task) == {'changed': 100, 'refused': 0}
    assert all(content['done'] for content in contents(stack).values())


def test_an_item_that_changes_meanwhile_is_judged_as_it_is_then(stack, schemas):
    """The walk has found it, and waits at another one; when it comes there, one has left the search, and another one is still in it."""
    fill(stack, [note(f'n{i:03}', at=i) for i in range(60)])
    task, outcomes = request(stack, {'where': IN_HALL, 'del': True}, admin=True), []
    with held(stack, 'n020') as holder:
        thread = threading.Thread(target=lambda: outcomes.append(Manager(stack, 'lab').run(task)))
        thread.start()
        wait_until(lambda: stack.psql('lab', 'select step from taskqueue') == [(1,)], PATIENCE_S, 'a commit')
        stack.put('lab', note('n050', 'attic', at=1), note('n055', at=2), admin=True)
        holder.rollback()
    thread.join(PATIENCE_S)
    assert outcomes[0]['result'] == 'done' and result_of(stack, task) == {'changed': 59, 'refused': 0}
    assert contents(stack) == {('n050', 'Main', ''): {'room': 'attic', 'at': 1}}


@pytest.mark.parametrize('more', [{'where': [*IN_HALL, {'i': 'Line', 'f': 'at', 't': 'eq', 'v1': 1}]}, {'where': [*IN_HALL, {'not': {'i': 'Line', 'f': 'at', 't': 'ne', 'v1': 1}}]}, {}])
def test_other_items_that_change_meanwhile_are_judged_as_they_are_then(stack, schemas, more):
    """The item that was found stays as it is, another one of its document, or its version alone, does not."""
    fill(stack, [note(f'n{i:03}', at=i, lines=[('k', {'at': 1})]) for i in range(60)])
    newest, = stack.psql('lab', "select max(version) from doc where class = 'Note'")[0]
    param = {'where': IN_HALL, 'v': {'t': 'le', 'v1': newest}} if not more else more
    task, outcomes = request(stack, {**param, 'delete': True}, admin=True), []
    with held(stack, 'n020') as holder:
        thread = threading.Thread(target=lambda: outcomes.append(Manager(stack, 'lab').run(task)))
        thread.start()
        wait_until(lambda: stack.psql('lab', 'select step from taskqueue') == [(1,)], PATIENCE_S, 'a commit')
        stack.put('lab', {'c': 'Note', 'id': 'n050', 'items': [{'c': 'Line', 'k': 'k', 'j': {'at': 2}}]}, admin=True)
        holder.rollback()
    thread.join(PATIENCE_S)
    assert outcomes[0]['result'] == 'done' and result_of(stack, task) == {'changed': 59, 'refused': 0}
    assert contents(stack) == {('n050', 'Main', ''): {'room': 'hall', 'at': 50}, ('n050', 'Line', 'k'): {'at': 2}}


def test_it_is_cancelled_like_any_task(stack, schemas):
    fill(stack, [note('n')])
    task = request(stack, {'where': IN_HALL, 'delete': True})
    assert stack.op('lab', 'owntask', {'cancel': task}, admin=True)['out']['result'] == 'cancelled'
    assert contents(stack) and stack.psql('lab', 'select count(*) from taskqueue') == [(0,)]


def test_stampctl_shows_then_changes(stack, schemas):
    def change(*words, status=0):
        done = stampctl('change', stack.url, 'Note', 'Main', '--ns', 'lab', '--ca', stack.path / 'etc/certificate.pem', *words, status=status)
        return done.error if status else done.out.splitlines()

    fill(stack, [note(f'n{i}', at=i) for i in range(5)])
    where = ('--where', '{"f":"at","t":"lt","v1":3}')
    assert change(*where, '--delete') == ['{"count":3,"ids":["n0","n1","n2"],"refused":0}']
    (task,) = change(*where, '--merge', '{"done":true}', '--run')
    assert Manager(stack, 'lab').run(task)['result'] == 'done' and result_of(stack, task) == {'changed': 3, 'refused': 0}
    printed = []
    thread = threading.Thread(target=lambda: printed.extend(change('--id', '{"t":"eq","v1":"n0"}', '--del', '--limit', 5, '--run', '--wait', '--key-file', stack.key_file)))
    thread.start()
    (task,) = wait_until(lambda: stack.psql('lab', 'select taskid from taskqueue'), PATIENCE_S, 'the task')[0]
    Manager(stack, 'lab').run(task)
    thread.join(PATIENCE_S)
    assert printed == [task, '{"changed":1,"refused":0}']
    assert 'exactly one of' in change('--run', status=2) and '--merge: JSON' in change('--merge', 'x', status=2)
    assert change('--where', '{"f":"none","t":"eq","v1":1}', '--del', status=1).startswith('stampctl: change: NFIELD ')


# --- bounds and refusals ---

def test_a_stranger_changes_so_many_by_one_task(stack, schemas):
    fill(stack, [note(f'n{i:03}', at=i) for i in range(MOST + 20)])
    param = {'where': IN_HALL, 'merge': {'room': 'attic'}}
    assert run(stack, {**param, 'limit': 7}) == {'changed': 7, 'refused': 0, 'more': True}
    assert run(stack, {**param, 'limit': 10**9}) == {'changed': MOST, 'refused': 0, 'more': True}
    assert run(stack, param) == {'changed': 13, 'refused': 0}
    assert {content['room'] for content in contents(stack).values()} == {'attic'}


def test_each_commit_of_a_client_is_a_write(stack, schemas):
    """One request made hundreds of commits, and a quota of writes counted one."""
    fill(stack, [note(f'n{i:03}', at=i) for i in range(40)])  # in three commits
    manager, document = Manager(stack, 'lab'), {'c': 'Note', 'id': 'other', 'items': [{'c': 'Main', 'j': {'room': 'none'}}]}
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'quotas': {'namespace': {'writes': '2/d'}}}}, admin=True)
    try:
        task = request(stack, {'where': IN_HALL, 'merge': {'room': 'attic'}})
        assert manager.run(task)['result'] == 'more'
        assert [content['room'] for content in contents(stack).values()].count('attic') == 32
        ((retry, is_late),) = stack.psql('lab', 'select retry, startat > stampd.stamp_now() from taskqueue where taskid = %s', (task,))
        assert (retry, is_late) == (0, True)  # not failed, and it waits for a write
        assert refused('XBUSY', stack.put, 'lab', document).body['args'] == ['quotas.namespace.writes', '2/d']
    finally:
        stack.op('z', 'ns', {'set': {'ns': 'lab', 'quotas': None}}, admin=True)
    manager.hurry()
    assert manager.run(task)['result'] == 'done' and result_of(stack, task) == {'changed': 40, 'refused': 0}


def test_the_administrator_changes_any_number(stack, schemas):
    fill(stack, [note(f'n{i:03}', at=i) for i in range(MOST + 20)])
    assert run(stack, {'where': IN_HALL, 'delete': True}, admin=True) == {'changed': MOST + 20, 'refused': 0}
    assert not contents(stack)


@pytest.mark.parametrize('param, at', [
    ({}, '/param/merge'), ({'delete': True, 'del': True}, '/param/merge'), ({'delete': False}, '/param/merge'), ({'merge': 7}, '/param/merge'),
    ({'merge': [1]}, '/param/merge'), ({'merge': None}, '/param/merge'), ({'merge': {f'm{i}': i for i in range(101)}}, '/param/merge'),
    ({'delete': 1}, '/param/delete'), ({'delete': True, 'limit': 0}, '/param/limit'), ({'delete': True, 'order': 'at'}, '/param/order')])
def test_what_is_refused_at_once(stack, schemas, param, at):
    with pytest.raises(Problem) as problem:
        dry(stack, param)
    assert (problem.value.code, problem.value.body['at']) == ('AARG', at)
    with pytest.raises(Problem) as problem:
        request(stack, param)
    assert (problem.value.code, problem.value.body['at']) == ('AARG', at.replace('/param', '/param/param'))


def test_fields_that_are_not_there_are_refused(stack, schemas):
    assert refused('NFIELD', dry, stack, {'where': [{'f': 'none', 't': 'eq', 'v1': 1}], 'delete': True})
    task = request(stack, {'where': [{'f': 'none', 't': 'eq', 'v1': 1}], 'delete': True})
    outcome = Manager(stack, 'lab').post(task).json()['tasks'][0]
    assert (outcome['result'], outcome['code']) == ('failed', 'NFIELD')


# --- rules ---

def test_what_the_rules_refuse_is_left_and_counted(team):
    owners = {f'n{i:02}': ACCOUNTS['ann' if i % 3 else 'bob'] for i in range(40)}
    fill(team, [note(ident, owner=owner) for ident, owner in owners.items()], 'team')
    mine = [ident for ident, owner in owners.items() if owner == ACCOUNTS['ann']]
    shown = dry(team, {'where': IN_HALL, 'merge': {'done': True}}, 'team', session('ann'))
    assert shown == {'count': 40, 'ids': [ident for ident in list(owners)[:16] if ident in mine], 'refused': 6}
    assert run(team, {'where': IN_HALL, 'merge': {'done': True}}, 'team', headers=session('ann')) == {'changed': len(mine), 'refused': 40 - len(mine)}
    assert {place[0] for place, content in contents(team, 'team').items() if 'done' in content} == set(mine)
    assert run(team, {'where': IN_HALL, 'delete': True}, 'team', headers=session('bob')) == {'changed': 40 - len(mine), 'refused': len(mine)}
    assert {place[0] for place in contents(team, 'team')} == set(mine)
    assert run(team, {'where': IN_HALL, 'delete': True}, 'team') == {'changed': 0, 'refused': len(mine)}, 'nobody has signed in'


def test_what_may_not_be_read_is_neither_found_nor_counted(team):
    fill(team, [note(f'n{i:02}', name='Own', owner=ACCOUNTS['ann' if i % 2 else 'bob']) for i in range(20)], 'team')
    param = {'c': 'Own', 'where': IN_HALL, 'delete': True}
    assert dry(team, param, 'team', session('ann')) == {'count': 10, 'ids': [f'n{i:02}' for i in range(1, 16, 2)], 'refused': 0}
    assert run(team, param, 'team', headers=session('ann')) == {'changed': 10, 'refused': 0}
    assert {content['owner'] for content in contents(team, 'team', 'Own').values()} == {ACCOUNTS['bob']}
    fill(team, [{'c': 'Part', 'id': 'p', 'items': [{'c': 'Main', 'j': {}}, {'c': 'Secret', 'j': {'room': 'hall'}}]}], 'team')
    for act in ({'del': True}, {'delete': True}, {'merge': {'x': 1}}):
        assert run(team, {'c': 'Part', 'i': 'Secret', 'where': IN_HALL, **act}, 'team', headers=session('ann')) == {'changed': 0, 'refused': 0}


def test_items_that_may_be_read_but_not_written(team):
    fill(team, [note('h', name='Half', lines=[('k', {'room': 'hall'}), ('l', {'room': 'hall'})])], 'team')
    for act in ({'del': True}, {'merge': {'x': 1}}):
        assert run(team, {'c': 'Half', 'i': 'Line', 'where': IN_HALL, **act}, 'team', headers=session('ann')) == {'changed': 0, 'refused': 2}
    assert len(contents(team, 'team', 'Half')) == 3


def test_rights_are_those_of_the_moment(team):
    """The owner changes between the request and the run, and in the middle of it."""
    fill(team, [note(f'n{i:02}', owner=ACCOUNTS['ann']) for i in range(20)], 'team')
    task = request(team, {'where': IN_HALL, 'delete': True}, 'team', headers=session('ann'))
    fill(team, [note(f'n{i:02}', owner=ACCOUNTS['bob']) for i in range(5)], 'team')
    assert Manager(team, 'team').run(task)['result'] == 'done'
    assert result_of(team, task, 'team') == {'changed': 15, 'refused': 5}


def test_a_content_that_the_schema_refuses_ends_the_task_with_its_place(stack, schemas):
    strict = {'Strict': {'items': {'Main': {**MAIN, 'content': {'type': 'object', 'properties': {'n': {'type': 'integer'}}}}}}}
    schemas.apply('lab', {**CLASSES, **strict})
    stack.put('lab', note('s', name='Strict'), admin=True)
    task = request(stack, {'c': 'Strict', 'where': IN_HALL, 'merge': {'n': 'x'}})
    outcome = Manager(stack, 'lab').post(task).json()['tasks'][0]
    assert (outcome['result'], outcome['code']) == ('failed', 'ACONTENT')
    assert all(word in stack.psql('lab', 'select report from taskqueue')[0][0] for word in ('Strict', 'Main', '/n'))
    assert contents(stack, name='Strict')['s', 'Main', ''] == {'room': 'hall'}
    stack.clear('lab', 'Strict')

"""Deferred copies: documents follow what becomes of the items that they hold copies of; by the example module, and by a schema."""
import json
import shutil
import threading

import psycopg2
import pytest
import requests

from holder import Copy, items_of
from kit import Kit
from listener import Listener
from manager import Manager
from schema import Schemas, check_side
from stack import Problem, is_alive, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 4, 'settings': {}}
GROUPS = 1000
BATCH = 1000  # copies of one commit
TEAM = {'items': {'Main': {'singleton': True}, 'Emp': {'fields': {'name': 'string'}}, 'Sta': {}, 'Raw': {'raw': True}},
        'collections': {'town': {'key': ['Main.town'], 'mutable': True}}}
FIRM = {'items': {'Sta': {'singleton': True, 'copies': {'to': ['Team']}}, 'Emp': {'copies': {'to': ['Team', 'Board'], 'separator': '@@'}},
                  'Raw': {'raw': True, 'copies': {'to': ['Team']}}, 'Own': {}}}
CLASSES = {'Firm': FIRM, 'Team': TEAM, 'Board': {'open': True, 'items': {}}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = kit.build_example()
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


def start_over(stack):
    """The association is deleted by the server first: what psql does reaches copies in caches a moment later, and an operation that finds the
    former one refuses to found it."""
    stack.put('lab', {'c': 'Asso', 'id': 'chess', 'delete': True})
    stack.psql('lab', 'truncate doc, item')
    stack.psql('lab', 'truncate taskqueue, task_history')


@pytest.fixture
def manager(stack):
    start_over(stack)
    return Manager(stack, 'lab')


@pytest.fixture
def session(stack):
    """Another session, for locks; its transaction ends with the test."""
    session = psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd')
    yield session
    session.close()


def group(number):
    return f'g{number:04}'


def make_groups(stack, count):
    """An association with a member, of which all groups have copies."""
    stack.op('lab', 'FoundAsso', {'asso': 'chess', 'title': 'Chess'}, admin=True)
    stack.op('lab', 'Enrol', {'asso': 'chess', 'member': '7', 'name': 'Ann', 'since': 2000})
    items = [{'c': 'Nom', 'j': {'title': 'A group'}}, {'c': 'Sta', 'k': 'chess', 'j': {'title': 'Chess', 'active': True}},
             {'c': 'Adh', 'k': '7.chess', 'j': {'name': 'Ann', 'since': 2000}}, {'c': 'Sta', 'k': 'chesss', 'j': {'title': 'Other'}},
             {'c': 'Adh', 'k': '7.chess.de', 'j': {}}, {'c': 'Adh', 'k': '77.chess', 'j': {}}]
    for begin in range(0, count, 32):
        stack.put('lab', *({'c': 'GT', 'id': group(number), 'items': items} for number in range(begin, min(begin + 32, count))))
    stack.psql('lab', 'delete from copy_due')
    stack.psql('lab', 'delete from taskqueue')


def change(stack, title):
    return stack.op('lab', 'ChangeAsso', {'asso': 'chess', 'title': title}, admin=True)['out']['v']


def enrol(stack, name, member='7'):
    return stack.op('lab', 'Enrol', {'asso': 'chess', 'member': member, 'name': name, 'since': 2000})['out']['v']


def tasks(stack):
    return stack.psql('lab', 'select opname, param, resource from taskqueue order by resource')


def the_task(stack):
    ((taskid,),) = stack.psql('lab', 'select taskid from taskqueue where starttime is null')
    return taskid


def notes(stack):
    return stack.psql('lab', 'select class, id, iclass, key from copy_due order by 1, 2, 3, 4')


def states(stack, iclass, key, class_='GT'):
    """The different states that copies are in, and how many are."""
    return stack.psql('lab', 'select i.content, i.vop, count(*) from item i where class = %s and iclass = %s and key = %s group by 1, 2 order by 3 desc',
                      (class_, iclass, key))


def check(stack):
    """No item is newer than its document; the volumes are what they are said to be."""
    assert stack.psql('lab', 'select class, id from doc d join lateral (select max(version) as version, coalesce(sum(octet_length(key) +'
                      ' octet_length(content)), 0) as volume from item i where i.class = d.class and i.id = d.id) i on true'
                      ' where d.ctime <> 0 and (i.version > d.version or i.volume <> d.v1)') == []


def blocked(stack, pid):
    """The backends that wait for that one."""
    return [waits for waits, in stack.psql('lab', 'select pid from pg_stat_activity where %s = any (pg_blocking_pids(pid))', (pid,))]


def hold(session, sql, *parameters):
    with session.cursor() as cursor:
        cursor.execute(sql, parameters)
    return session.info.backend_pid


class Running(threading.Thread):
    """A request to run a task, whose worker may die."""

    def __init__(self, stack, taskid):
        super().__init__()
        self.stack, self.taskid, self.key = stack, taskid, stack.queue_key
        self.status, self.outcome = None, None
        self.start()

    def run(self):
        with requests.Session() as own:
            own.trust_env, own.verify = False, self.stack.http.verify
            answer = own.post(f'{self.stack.url}/lab/od/{self.taskid}', json={'key': self.key}, timeout=120)
            self.status = answer.status_code
            self.outcome = answer.json()['tasks'][0]['result'] if self.status == 200 else None


# --- the associations and their groups ---

def test_a_thousand_groups_follow_one_association(stack, manager):
    make_groups(stack, GROUPS)
    holder = Copy('GT', group(7))

    def sync():
        (answer,) = stack.op('lab', 'sync', {}, syncs=[holder.request()])['syncs']
        holder.apply(answer)
        return answer

    sync()
    for _ in range(4 * STACK['workers']):  # in the caches of all
        before = stack.get('lab', ('GT', group(7)))
    versions = dict(stack.psql('lab', "select id, version from doc where class = 'GT'"))
    first, version = change(stack, 'Chess and go'), change(stack, 'Go')
    assert tasks(stack) == [('copy', '{"c":"Asso","id":"chess"}', 'Asso.chess')], 'one waits, for the newest state'
    assert notes(stack) == [('Asso', 'chess', 'Sta', '')]
    assert stack.get('lab', ('GT', group(7))) == before
    assert manager.run(the_task(stack))['result'] == 'done'
    for _ in range(4 * STACK['workers']):
        after = stack.get('lab', ('GT', group(7)))
        assert items_of(after)['Sta', 'chess'] == {'title': 'Go', 'active': True}
        assert after['v'] > version > first
    assert states(stack, 'Sta', 'chess') == [('{"title":"Go","active":true}', version, GROUPS)]
    assert states(stack, 'Sta', 'chesss')[0][0] == '{"title": "Other"}'
    now = dict(stack.psql('lab', "select id, version from doc where class = 'GT'"))
    assert all(now[id_] > max(versions[id_], version) for id_ in versions)
    assert notes(stack) == [] and tasks(stack) == []
    answer = sync()
    assert [(item['c'], item['k'], item['v']) for item in answer['items']] == [('Sta', 'chess', after['v'])]
    assert holder.items == items_of(after) and holder.version == after['v']
    assert stack.psql('lab', 'select step from task_history') == [(1,)]
    check(stack)


def test_what_a_source_loses_its_copies_lose(stack, manager):
    make_groups(stack, 3)
    enrol(stack, 'Bob', member='8')
    stack.op('lab', 'JoinGroup', {'group': group(0), 'asso': 'chess', 'member': '8'})
    stack.op('lab', 'Resign', {'asso': 'chess', 'member': '7'})
    holder = Copy('GT', group(1))
    holder.apply(stack.op('lab', 'sync', {}, syncs=[holder.request()])['syncs'][0])
    manager.work()
    (answer,) = stack.op('lab', 'sync', {}, syncs=[holder.request()])['syncs']
    assert [(item['c'], item['k']) for item in answer['dels']] == [('Adh', '7.chess')] and answer['items'] == []
    assert states(stack, 'Adh', '7.chess') == [(None, 0, 3)]
    assert states(stack, 'Adh', '7.chess.de')[0][2] == states(stack, 'Adh', '77.chess')[0][2] == 3, 'of no source, but not its own'
    check(stack)
    enrol(stack, 'Ann again')  # who was removed is not put back: a copy follows, it does not come
    manager.work()
    assert states(stack, 'Adh', '7.chess') == [(None, 0, 3)]
    stack.put('lab', {'c': 'Asso', 'id': 'chess', 'delete': True})
    assert notes(stack) == [('Asso', 'chess', 'Adh', '7'), ('Asso', 'chess', 'Adh', '8'), ('Asso', 'chess', 'Sta', '')]
    manager.work()
    assert states(stack, 'Sta', 'chess') == [(None, 0, 3)] and states(stack, 'Adh', '8.chess') == [(None, 0, 1)]
    assert notes(stack) == []
    check(stack)


def test_what_went_with_a_life_goes_although_the_document_is_born_again(stack, manager):
    make_groups(stack, 2)
    stack.put('lab', {'c': 'Asso', 'id': 'chess', 'delete': True, 'items': [{'c': 'Sta', 'j': {'title': 'New'}}]})
    assert notes(stack) == [('Asso', 'chess', 'Adh', '7'), ('Asso', 'chess', 'Sta', '')]
    manager.work()
    assert states(stack, 'Sta', 'chess')[0][0::2] == ('{"title": "New"}', 2)
    assert states(stack, 'Adh', '7.chess') == [(None, 0, 2)]


def test_a_copy_that_is_made_meanwhile_is_never_made_older(stack, manager):
    make_groups(stack, 2)
    go = change(stack, 'Go')
    stack.op('lab', 'JoinGroup', {'group': 'late', 'title': 'Late', 'asso': 'chess', 'member': '7'})
    before = stack.get('lab', ('GT', 'late'))
    assert stack.psql('lab', "select distinct i.vop from item i where class = 'GT' and id = 'late' and iclass = 'Sta'") == [(go,)], 'its stamp'
    manager.work()
    assert stack.get('lab', ('GT', 'late')) == before
    version = change(stack, 'Bridge')
    manager.work()
    assert states(stack, 'Sta', 'chess') == [('{"title":"Bridge","active":true}', version, 3)]


def test_targets_that_go_and_come_and_a_worker_that_dies_in_the_midst(stack, manager, session):
    make_groups(stack, BATCH + 300)
    version = change(stack, 'Go')
    holder = hold(session, "select from doc where class = 'GT' and id = %s for update", group(BATCH + 100))
    running = Running(stack, the_task(stack))
    wait_until(lambda: blocked(stack, holder), what='the second commit')
    assert states(stack, 'Sta', 'chess')[0] == ('{"title":"Go","active":true}', version, BATCH), 'the first has been made'
    stack.put('lab', {'c': 'GT', 'id': group(BATCH + 200), 'delete': True})
    stack.op('lab', 'JoinGroup', {'group': 'a', 'title': 'New', 'asso': 'chess', 'member': '7'})
    workers = stack.worker_pids()
    for pid in workers:
        stack.kill_worker(pid)
    wait_until(lambda: not any(map(is_alive, workers)), what='their end')
    running.join()
    assert running.status != 200
    wait_until(lambda: not blocked(stack, holder), what='the end of its session')
    session.rollback()
    wait_until(lambda: stack.ping('lab').status_code == 200, what='recovery')
    manager.work()
    content = '{"title":"Go","active":true}'
    assert [state for state in states(stack, 'Sta', 'chess') if state[0] != content] == []
    assert sum(count for _, vop, count in states(stack, 'Sta', 'chess') if vop >= version) == BATCH + 300
    assert stack.psql('lab', 'select exc, step from task_history order by number') == [('LOST', 1), (None, 2)]
    assert notes(stack) == []
    check(stack)


def test_a_deleted_target_is_left_alone_by_a_commit_that_had_found_it(stack, manager, session):
    make_groups(stack, 4)
    change(stack, 'Go')
    holder = hold(session, "select from doc where class = 'GT' and id = %s for update", group(1))
    running = Running(stack, the_task(stack))
    wait_until(lambda: blocked(stack, holder), what='the commit')
    stack.put('lab', {'c': 'GT', 'id': group(2), 'delete': True})
    gone = stack.psql('lab', "select version, v1 from doc where class = 'GT' and id = %s", (group(2),))
    session.rollback()
    running.join()
    assert running.outcome == 'done'
    assert states(stack, 'Sta', 'chess')[0][2] == 3
    assert stack.psql('lab', "select version, v1 from doc where class = 'GT' and id = %s", (group(2),)) == gone
    check(stack)


def overtake(stack, session, turn):
    """A task that has read a state, and found its targets, waits while another one copies a newer state; does it?"""
    make_groups(stack, BATCH + 10)
    old = change(stack, f'Old {turn}')
    taskid = the_task(stack)
    with psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd') as gate:
        first = hold(gate, "select from doc where class = 'GT' and id = %s for update", group(0))
        running = Running(stack, taskid)
        wait_until(lambda: blocked(stack, first), what='the first commit')
        (own,) = blocked(stack, first)
        # It holds the row of its task; behind it, and so before its second commit, comes the test.
        barrier = threading.Thread(target=hold, args=(session, 'select from taskqueue where taskid = %s for update', taskid))
        barrier.start()
        wait_until(lambda: session.info.backend_pid in blocked(stack, own), what='the barrier')
        gate.rollback()
        barrier.join()
    wait_until(lambda: blocked(stack, session.info.backend_pid) or not running.is_alive(), what='the second commit')
    is_late = running.is_alive()
    new = change(stack, f'New {turn}')
    if is_late:
        assert Manager(stack, 'lab').run(the_task(stack))['result'] == 'done'
        assert states(stack, 'Sta', 'chess') == [(f'{{"title":"New {turn}","active":true}}', new, BATCH + 10)] and old < new
        before = stack.psql('lab', "select id, version from doc where class = 'GT' order by id")
    session.rollback()
    running.join()
    if not is_late:
        return False
    assert running.outcome == 'done'
    assert stack.psql('lab', "select id, version from doc where class = 'GT' order by id") == before
    assert notes(stack) == []
    return True


def test_an_older_state_that_comes_later_never_overwrites(stack, session):
    for turn in range(10):
        start_over(stack)
        if overtake(stack, session, turn):
            break
    else:
        pytest.fail('the older state never came later')
    check(stack)


def test_a_change_that_comes_while_a_task_copies_is_copied_too(stack, manager, session):
    """The task ends with the state that it has read; the note that was renewed meanwhile stays."""
    make_groups(stack, 5)
    change(stack, 'Old')
    holder = hold(session, "select from doc where class = 'GT' and id = %s for update", group(1))
    running = Running(stack, the_task(stack))
    wait_until(lambda: blocked(stack, holder), what='the commit')
    newest = change(stack, 'New')
    session.rollback()
    running.join()
    assert notes(stack) == [('Asso', 'chess', 'Sta', '')]
    manager.work()
    assert states(stack, 'Sta', 'chess') == [('{"title":"New","active":true}', newest, 5)]
    assert notes(stack) == []
    check(stack)


def test_who_listens_is_told_of_copies(stack, manager):
    make_groups(stack, 40)
    listener = Listener(stack, f'GT/{group(3)}')
    listener.opened()
    change(stack, 'Go')
    assert manager.run(the_task(stack))['result'] == 'done'
    listener.wait_for(f'GT/{group(3)}', stack.get('lab', ('GT', group(3)))['v'])
    listener.close()


def test_changes_that_race_end_with_the_newest_state_everywhere(stack, manager):
    make_groups(stack, 40)
    over = threading.Event()

    def write(number):
        with requests.Session() as own:
            own.trust_env, own.verify = False, stack.http.verify
            for turn in range(15):
                for name, param in (('Enrol', {'asso': 'chess', 'member': '7', 'name': f'{number}.{turn}', 'since': 2000}),
                                    ('JoinGroup', {'group': group(number), 'asso': 'chess', 'member': '7'})):
                    own.post(f'{stack.url}/lab/op/{name}', json={'param': param}, timeout=60)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    ending = threading.Thread(target=lambda: [writer.join() for writer in writers] and over.set())
    ending.start()
    manager.work(threads=2, until=lambda: over.is_set() and manager.is_empty())
    ending.join()
    newest = items_of(stack.get('lab', ('Asso', 'chess')))['Adh', '7']
    for number in range(40):
        assert items_of(stack.get('lab', ('GT', group(number))))['Adh', '7.chess'] == newest
    assert notes(stack) == []
    check(stack)


# --- declared by a schema ---

@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    return Schemas(stack, tmp_path_factory.mktemp('schemas'))


def put(stack, class_, id_, *items, **more):
    return stack.put('lab', {'c': class_, 'id': id_, 'items': list(items), **more})


def test_a_schema_declares_copies_and_targets_keep_fields_and_collections(stack, manager, schemas):
    put(stack, 'Firm', 'f', {'c': 'Emp', 'k': '1', 'j': {'name': 'Ann'}}, {'c': 'Sta', 'j': {'a': 1}}, {'c': 'Raw', 'k': 'r', 's': 'text'},
        {'c': 'Own', 'k': '1', 'j': 1})
    for id_ in ('a', 'b'):
        put(stack, 'Team', id_, {'c': 'Main', 'j': {'town': 'Ulm'}}, {'c': 'Emp', 'k': '1@@f', 'j': {}}, {'c': 'Sta', 'k': 'f', 'j': {}},
            {'c': 'Raw', 'k': 'r.f', 's': ''})
    put(stack, 'Board', 'x', {'c': 'Emp', 'k': '1@@f', 'j': {}}, {'c': 'Own', 'k': '1@@f', 'j': {}}, {'c': 'Emp', 'k': '1.f', 'j': {}})
    assert tasks(stack) == []
    schemas.apply('lab', CLASSES)
    assert json_of(schemas, 'lab') == CLASSES
    town = {'c': 'Team', 'collection': 'town', 'value': 'Ulm', 'want': 'ids'}
    stack.older_transactions_end()
    token = stack.op('lab', 'collection', town)['out']['token']
    assert stack.op('lab', 'collection', {**town, 'token': token})['out']['ids'] == []

    assert stack.psql('lab', "select copy_again('Firm', 'f')") == [(4,)], 'those that were there before'
    manager.work()
    team = items_of(stack.get('lab', ('Team', 'a')))
    assert team == {('Main', None): {'town': 'Ulm'}, ('Emp', '1@@f'): {}, ('Sta', 'f'): {}, ('Raw', 'r.f'): ('s', '')}, 'made later'
    put(stack, 'Firm', 'f', {'c': 'Emp', 'k': '1', 'j': {'name': 'Bob'}}, {'c': 'Sta', 'j': {'a': 2}}, {'c': 'Raw', 'k': 'r', 's': 'new'},
        {'c': 'Own', 'k': '1', 'j': 2})
    assert notes(stack) == [('Firm', 'f', 'Emp', '1'), ('Firm', 'f', 'Raw', 'r'), ('Firm', 'f', 'Sta', '')]
    manager.work()
    for id_ in ('a', 'b'):
        assert items_of(stack.get('lab', ('Team', id_))) == {('Main', None): {'town': 'Ulm'}, ('Emp', '1@@f'): {'name': 'Bob'},
                                                            ('Sta', 'f'): {'a': 2}, ('Raw', 'r.f'): ('s', 'new')}
    board = items_of(stack.get('lab', ('Board', 'x')))
    assert board == {('Emp', '1@@f'): {'name': 'Bob'}, ('Own', '1@@f'): {}, ('Emp', '1.f'): {}}
    assert check_side(stack, 'lab', 'Team', 'Emp', {'name': 'string'}) == 2
    found = stack.op('lab', 'find', {'c': 'Team', 'i': 'Emp', 'where': [{'f': 'name', 't': 'eq', 'v1': 'Bob'}]})['out']
    assert found['ids'] == ['a', 'b']
    told = stack.op('lab', 'collection', {**town, 'token': token})['out']['ids']
    assert sorted(told) == [[id_, stack.get('lab', ('Team', id_))['v']] for id_ in ('a', 'b')]
    check(stack)
    put(stack, 'Firm', 'f', {'c': 'Emp', 'k': '1', 'del': True})
    manager.work()
    assert check_side(stack, 'lab', 'Team', 'Emp', {'name': 'string'}) == 0
    check(stack)


def test_many_items_of_a_document_in_many_others(stack, manager, schemas):
    """More than one cycle of sources, and several copies in one document."""
    schemas.apply('lab', CLASSES)
    emps = range(50)
    put(stack, 'Firm', 'f', *({'c': 'Emp', 'k': str(number), 'j': {'name': 'old'}} for number in emps))
    for team in range(20):
        put(stack, 'Team', f't{team}', *({'c': 'Emp', 'k': f'{number}@@f', 'j': {}} for number in emps))
    put(stack, 'Firm', 'f', *({'c': 'Emp', 'k': str(number), 'j': {'name': f'n{number}'}} for number in emps))
    assert len(notes(stack)) == 50
    manager.work()
    assert stack.psql('lab', "select count(*) from item where class = 'Team' and iclass = 'Emp'"
                      " and 'n' || split_part(key, '@@', 1) = content::json ->> 'name'") == [(1000,)]
    assert check_side(stack, 'lab', 'Team', 'Emp', {'name': 'string'}) == 1000
    assert notes(stack) == []
    check(stack)


def test_what_is_declared_no_more_is_not_copied(stack, manager, schemas):
    schemas.apply('lab', CLASSES)
    put(stack, 'Firm', 'f', {'c': 'Emp', 'k': '1', 'j': {'name': 'old'}})
    put(stack, 'Team', 't', {'c': 'Emp', 'k': '1@@f', 'j': {}})
    put(stack, 'Firm', 'f', {'c': 'Emp', 'k': '1', 'j': {'name': 'new'}})
    schemas.apply('lab', {**CLASSES, 'Firm': {'items': {name: {} for name in ('Emp', 'Own')}}})
    manager.work()
    assert notes(stack) == []
    assert items_of(stack.get('lab', ('Team', 't'))) == {('Emp', '1@@f'): {}}


def json_of(schemas, ns):
    return json.loads(schemas.run('show', ns, '--json'))['classes']


# --- who may ---

def test_the_operation_is_the_administrators(stack, manager):
    make_groups(stack, 2)
    change(stack, 'Go')
    with pytest.raises(Problem, match='SCLOSED'):
        stack.op('lab', 'copy', {'c': 'Asso', 'id': 'chess'})
    with pytest.raises(Problem, match='AARG'):
        stack.op('lab', 'copy', {'c': 'Asso'}, admin=True)
    assert stack.op('lab', 'copy', {'c': 'Asso', 'id': 'chess'}, admin=True)['out'] == {'copies': 2, 'more': False}
    assert stack.op('lab', 'copy', {'c': 'Asso', 'id': 'chess'}, admin=True)['out'] == {'copies': 0, 'more': False}
    assert states(stack, 'Sta', 'chess')[0][0::2] == ('{"title":"Go","active":true}', 2)

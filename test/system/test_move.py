"""stampctl ns move: to another site while it is served; nothing is lost, done twice, or read older than it was."""
import json
import random
import subprocess

import psycopg2
import pytest
import requests

import archives
from history import History
from stack import Stack, refused, run_program, wait_until
from test_attachment_http import fetch, store

pytestmark = pytest.mark.plain

SPARE = [f'own{number}' for number in range(7)]  # of one test each
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', **dict.fromkeys(SPARE, 'open')}}
SCHEMA = {'classes': {'Person': {
    'items': {'Main': {'singleton': True, 'fields': {'age': 'int'}}}, 'unique': {'name': {'key': ['Main.name']}},
    'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}}}
LOCK = "select pg_advisory_lock(hashtextextended('stampctl', 0))"
CONTROLS = 'select name, period from cron union all select what, reason from task_paused union all select what, most::text from task_limit order by 1'


@pytest.fixture(scope='module')
def there():
    with Stack('there', **STACK) as site:
        yield site


@pytest.fixture
def own(spares):
    return next(spares)


def words(stack, there, folder, ns, *more):
    return stack.admin_words('ns', 'move', ns, '--to', there.config, '--to-admin-conninfo', there.conninfo_of_server(),
                             '--folder', folder / 'move', *more)


def move(stack, there, folder, ns, *more, **how):
    return run_program(*words(stack, there, folder, ns, *more), **how)


def person(id_, **content):
    return {'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': content}]}


def line(id_, key, value):
    return {'c': 'Note', 'id': id_, 'items': [{'c': 'Line', 'k': key, 'j': value}]}


def declare(stack, ns, folder):
    (folder / 'schema').write_text(json.dumps(SCHEMA))
    stack.admin('schema', 'set', ns, folder / 'schema')
    stack.admin('schema', 'apply', ns)


def record(there, ns):
    return there.psql(ns, 'select identity from import_progress')


def derived(stack, ns):
    """What follows from the documents."""
    return (sorted(stack.psql(ns, 'select u.name, v.value, v.id from unique_value v join unique_property u on u.number = v.property')),
            sorted(stack.psql(ns, 'select c.name, m.id, m.value from member m join collection c on c.number = m.collection where not m.has_left')),
            sorted(stack.psql(ns, 'select id, age from "x_Person_Main"')))


def stop_before_the_switch(stack, there, folder, ns):
    with psycopg2.connect(stack.conninfo()) as session, session.cursor() as cursor:
        cursor.execute(LOCK)
        with subprocess.Popen(words(stack, there, folder, ns), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as program:
            wait_until(lambda: record(there, ns) and record(there, ns)[0][0].startswith('follows '), what='a whole copy')
            wait_until(lambda: stack.psql(None, "select 1 from pg_locks where locktype = 'advisory' and not granted"), what='the switch')
            program.kill()
    session.close()


def test_a_namespace_moves_while_it_is_served(stack, there, tmp_path):
    there.admin('ns', 'state', 'lab', 'off')
    with History(stack, there) as history:
        history.run()
        done = move(stack, there, tmp_path, 'lab', timeout=300)
        since = history.campaign.noted.value
        wait_until(lambda: history.campaign.noted.value > since + 50, what='requests after the move')
    assert 'moved' in done.text
    gone = refused('OGONE', stack.put, 'lab', line('late', 'a', 1))
    assert gone.body['detail'] == 'The namespace has moved to another server.'
    assert history.troubles.get('OGONE') and not (tmp_path / 'move').exists() and not record(there, 'lab')
    assert there.put('lab', line('late', 'a', 1))
    again = move(stack, there, tmp_path, 'lab', status=1)
    assert 'lab is gone here: it has moved already' in again.error


def test_what_a_move_carries_over(stack, there, own, tmp_path):
    declare(stack, own, tmp_path)
    stack.put(own, *(person(f'p{n}', age=n, name=f'name {n}', team='red' if n % 2 else 'blue') for n in range(9)))
    stack.put(own, line('kept', 'a', 1), line('gone', 'a', 1))
    stack.put(own, {'c': 'Note', 'id': 'gone', 'delete': True}, {'c': 'Note', 'id': 'kept', 'items': [{'c': 'Line', 'k': 'a', 'del': True}]})
    stack.admin('ns', 'state', own, 'off')  # the task waits
    task = stack.psql(own, "select task_create('put', %s, info => 'mine')", (json.dumps({'docs': [line('later', 'a', 1)]}),))[0][0]
    stack.psql(own, "select cron_set('nightly', 'put', 'D0330', %s)", (json.dumps({'docs': []}),))
    stack.psql(own, "select task_pause(qn => 9), task_limit_set(opname => 'Mail', most => 3)")
    stack.admin('ns', 'state', own, 'on', 'Still here.')
    kept = {'json': {'param': {'docs': [line('once', 'a', 1)]}}, 'headers': {'Idempotency-Key': 'key-of-the-move'}}
    first = requests.post(f'{stack.url}/{own}/op/put', verify=stack.http.verify, **kept)
    assert first.status_code == 200
    stack.op(own, 'subs', {'add': ['Note']}, session='s' * 20)
    cursor = stack.op(own, 'list', {'c': 'Person', 'limit': 3})['out']['cursor']
    attempts = 'select taskid, opname, info, retry, startat, starttime, stoptime, exc, report from task_history order by number'
    stack.psql(own, "insert into task_history (taskid, opname, info, qn, retry, step, startat, starttime, stoptime, exc) select 'early' || n, 'put', 'x', 0, 1, 0, n, n, n, 'LOST' from generate_series(1, 3) n")
    before = archives.rows(stack, own), derived(stack, own), stack.psql(own, CONTROLS), stack.psql(own, attempts)
    assert len(before[3]) >= 3
    move(stack, there, tmp_path, own)
    assert (archives.rows(there, own), derived(there, own), there.psql(own, CONTROLS), there.psql(own, attempts)) == before
    again = requests.post(f'{there.url}/{own}/op/put', verify=there.http.verify, **kept)
    assert again.headers.get('Idempotency-Replayed') == 'true' and again.json()['out'] == first.json()['out']
    assert there.op(own, 'subs', {}, session='s' * 20)['out']
    assert [one['id'] for one in there.op(own, 'list', {'c': 'Person', 'limit': 3, 'cursor': cursor})['out']['docs']] == ['p3', 'p4', 'p5']


def test_changes_between_two_runs_arrive(stack, there, own, tmp_path):
    """A run is stopped before the switch; unique values change hands, documents end and are born again."""
    declare(stack, own, tmp_path)
    stack.put(own, *(person(f'p{n}', age=n, name=f'name {n}', team='red') for n in range(6)), line('ends', 'a', 1), line('back', 'a', 1))
    stop_before_the_switch(stack, there, tmp_path, own)
    stack.put(own, person('p0', name='free'), person('p5', age=55, name='name 5', team='blue'))
    stack.put(own, person('p1', age=7, name='name 0', team='blue'))
    stack.put(own, person('p0', age=8, name='name 1'), {'c': 'Person', 'id': 'p2', 'delete': True})
    stack.put(own, person('a0', age=9, name='name 2', team='red'))
    stack.put(own, {'c': 'Note', 'id': 'ends', 'delete': True}, {'c': 'Note', 'id': 'back', 'delete': True})
    stack.put(own, line('back', 'b', 2), line('new', 'a', 3))
    stack.put(own, {'c': 'Note', 'id': 'new', 'items': [{'c': 'Line', 'k': 'a', 'del': True}]})
    before = archives.rows(stack, own), derived(stack, own)
    move(stack, there, tmp_path, own)
    assert (archives.rows(there, own), derived(there, own)) == before
    assert there.get(own, ('Person', 'p1'))['items'][0]['j']['name'] == 'name 0'
    assert refused('AUNIQUE', there.put, own, person('other', name='name 1'))


def test_files_of_attachments_move(stack, there, own, tmp_path):
    """Those of the first copy, and those that come before the switch."""
    stack.put(own, *(line(f'n{n}', 'a', 1) for n in range(3)))
    store(stack, 'Note/n0/file/f', b'first', ns=own)
    store(stack, 'Note/n1/file/f', b'both', ns=own)
    stop_before_the_switch(stack, there, tmp_path, own)
    store(stack, 'Note/n2/file/f', b'later', ns=own)
    store(stack, 'Note/n0/file/g', b'both', ns=own)
    before = archives.rows(stack, own)
    move(stack, there, tmp_path, own)
    assert archives.rows(there, own) == before
    for path, content in (('n0/file/f', b'first'), ('n1/file/f', b'both'), ('n2/file/f', b'later'), ('n0/file/g', b'both')):
        assert fetch(there, f'Note/{path}', ns=own).content == content
    assert run_program(*there.admin_words('verify', '--ns', own))


def test_a_move_that_is_killed_at_any_time_goes_on(stack, there, own, tmp_path):
    stack.put(own, *(line(f'n{n}', 'a', 'x' * 2000) for n in range(32)))
    acknowledged, tries = {}, 0
    while True:
        tries += 1
        with subprocess.Popen(words(stack, there, tmp_path, own), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            try:
                told = program.communicate(timeout=random.uniform(0, 0.25 * tries))[1]
                if program.returncode == 0 or 'moved already' in told:
                    break
                assert 'under way' in told  # the sessions of the one that was killed
            except subprocess.TimeoutExpired:
                program.kill()
        answer = stack.request('POST', f'/{own}/op/put', json={'param': {'docs': [line(f'n{tries}', 'b', tries)]}})
        if answer.status_code == 200:
            acknowledged[f'n{tries}'] = tries
        else:
            assert answer.json()['code'] in ('OREADONLY', 'OGONE', 'XAWAY', 'XUNKNOWN'), answer.text
    assert archives.rows(there, own) == archives.rows(stack, own)
    for id_, number in acknowledged.items():
        assert {'c': 'Line', 'k': 'b', 'j': number} in [{name: item[name] for name in 'ckj'} for item in there.get(own, ('Note', id_))['items']]
    assert there.put(own, line('open', 'a', 1))


def test_a_move_is_abandoned(stack, there, own, tmp_path):
    stack.put(own, line('one', 'a', 1))
    version = stack.put(own, line('two', 'a', 1))
    there.psql(own, 'alter table cron add constraint nobody check (false)')  # the switch fails, in its midst
    stack.psql(own, "select cron_set('nightly', 'put', 'D0330')")
    failed = move(stack, there, tmp_path, own, status=1)
    assert f'{own} is not open' in failed.error
    refused('OREADONLY', stack.put, own, line('one', 'a', 2))
    with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
        with psycopg2.connect(stack.conninfo(own, 'stampd')) as session, session.cursor() as cursor:
            cursor.execute("update stampd.doc set version = version")
    run_program(*stack.admin_words('ns', 'move', own, '--folder', tmp_path / 'move', '--abandon'))
    wait_until(lambda: stack.request('POST', f'/{own}/op/put', json={'param': {'docs': [line('one', 'a', 2)]}}).status_code == 200, what='it is open again')
    assert stack.get(own, ('Note', 'two'))['v'] == version
    refused('OOFF', there.get, own, ('Note', 'one'))


@pytest.mark.plain
def test_what_is_refused(stack, there, tmp_path):
    for more, told in ((('z', '--to', there.config), 'is not moved'), (('lab',), '--to FILE'), (('lab', '--abandon', '--to', there.config), '--folder only')):
        assert told in run_program(*stack.admin_words('ns', 'move', *more), status=2).error
    same = run_program(*stack.admin_words('ns', 'move', 'own6', '--to', stack.config, '--to-admin-conninfo', stack.conninfo_of_server(),
                                          '--folder', tmp_path / 'move'), status=1)
    assert 'the site where the namespace is' in same.error
    missing = move(stack, there, tmp_path, 'nowhere', status=1)
    assert 'there is no such namespace' in missing.error

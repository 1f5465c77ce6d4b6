"""stampctl ns move --cell: to another PostgreSQL cluster of the same site while it is served; nothing is lost, done twice, or read older than it was."""
import json
import random
import subprocess

import psycopg2
import pytest
import requests

import archives
from cell import Cluster, create
from history import History
from listener import Listener
from stack import refused, run_program, wait_until
from test_attachment_http import fetch, store
from test_move import LOCK, declare, derived, line, person

pytestmark = pytest.mark.plain

SPARE = [f'own{number}' for number in range(7)]  # of one test each
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', **dict.fromkeys(SPARE, 'open')}}
LATER = ('OREADONLY', 'XAWAY', 'XUNKNOWN', 'XDATABASE', 'XBUSY')  # meanwhile a request may be refused so, and sent again


@pytest.fixture(scope='module')
def west(stack):
    with Cluster('west') as cluster:
        stack.set(**{'database.west': cluster.cell})
        yield cluster


@pytest.fixture
def own(spares):
    return next(spares)


def words(stack, folder, ns, *more, cell='west'):
    return stack.admin_words('ns', 'move', ns, '--cell', cell, '--folder', folder / 'move', *more)


def move(stack, folder, ns, *more, cell='west', **how):
    return run_program(*words(stack, folder, ns, *more, cell=cell), **how)


def home(stack, ns):
    return stack.psql('z', "select content::json ->> 'database' from item where class = 'Namespace' and id = %s and iclass = 'Conf'", (ns,))[0][0]


def is_open(stack, ns):
    """To writers, through whichever map nginx has."""
    answer = stack.request('POST', f'/{ns}/op/put', json={'param': {'docs': [line('open', 'a', 1)]}})
    assert answer.status_code == 200 or answer.json()['code'] in LATER, answer.text
    return answer.status_code == 200


def record(west, ns):
    try:
        return west.psql(ns, 'select identity from import_progress')
    except (psycopg2.OperationalError, psycopg2.errors.UndefinedTable, psycopg2.errors.InvalidSchemaName):  # not yet
        west.close()
        return []


def stop_before_the_switch(stack, west, folder, ns):
    with psycopg2.connect(stack.conninfo()) as session, session.cursor() as cursor:
        cursor.execute(LOCK)
        with subprocess.Popen(words(stack, folder, ns), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as program:
            wait_until(lambda: record(west, ns) and record(west, ns)[0][0].startswith('follows '), what='a whole copy')
            wait_until(lambda: stack.psql(None, "select 1 from pg_locks where locktype = 'advisory' and not granted"), what='the switch')
            program.kill()
    session.close()


def test_a_namespace_moves_while_it_is_served(stack, west, tmp_path):
    """There, and back again."""
    with History(stack) as history:
        history.run()
        done = move(stack, tmp_path, 'lab', '--drop', timeout=300)
        assert 'moved; nothing could be changed for' in done.text and 'dropped the database stampd_lab' in done.text
        history.run()
        assert home(stack, 'lab') == 'stampd_lab@west' and not stack.psql(None, "select 1 from pg_database where datname = 'stampd_lab'")
        move(stack, tmp_path, 'lab', '--drop', cell='-', timeout=300)
        history.run()
    assert home(stack, 'lab') == 'stampd_lab' and not west.psql(None, "select 1 from pg_database where datname = 'stampd_lab'")
    assert not {'OGONE', 'NNAMESPACE'} & set(history.troubles), history.troubles
    assert stack.put('lab', line('late', 'a', 1)) and not (tmp_path / 'move').exists()
    again = move(stack, tmp_path, 'lab', cell='-', status=1)
    assert 'lab is in this cell already, database stampd_lab' in again.error


def test_what_a_move_carries_over(stack, west, own, tmp_path):
    declare(stack, own, tmp_path)
    stack.put(own, *(person(f'p{n}', age=n, name=f'name {n}', team='red' if n % 2 else 'blue') for n in range(9)))
    stack.put(own, line('kept', 'a', 1), line('gone', 'a', 1))
    stack.put(own, {'c': 'Note', 'id': 'gone', 'delete': True})
    store(stack, 'Note/kept/file/f', b'first', ns=own)
    stack.psql(own, "select task_create('put', %s, startat => 991231000000000)", (json.dumps({'docs': [line('later', 'a', 1)]}),))
    stack.psql(own, "select cron_set('nightly', 'put', 'D0330', %s)", (json.dumps({'docs': []}),))
    kept = {'json': {'param': {'docs': [line('once', 'a', 1)]}}, 'headers': {'Idempotency-Key': 'key-of-the-move'}}
    first = requests.post(f'{stack.url}/{own}/op/put', verify=stack.http.verify, **kept)
    assert first.status_code == 200
    stack.op(own, 'subs', {'add': ['Note']}, session='s' * 20)
    stack.psql(own, "insert into spool_series values ('ann', repeat('a', 32), 3, 4)")
    stack.psql(own, "insert into spool_record values ('ann', repeat('a', 32), 5, repeat('b', 64), 6)")
    spools = 'select s, r from spool_series s join spool_record r using (account, series)'
    cursor = stack.op(own, 'list', {'c': 'Person', 'limit': 3})['out']['cursor']
    tasks = 'select taskid, opname, param from taskqueue order by taskid'
    before = archives.rows(stack, own), derived(stack, own), stack.psql(own, tasks), stack.psql(own, spools)
    listener = Listener(stack, 'Note', ns=own)
    listener.opened()
    done = move(stack, tmp_path, own)
    assert f'the former database stampd_{own} stays' in done.text
    wait_until(lambda: not listener.is_open, what='the end of the listener')
    assert [data['code'] for name, data in listener.events if name == 'closed'] in ([], ['XAWAY'])  # it comes again
    assert (archives.rows(west, own), derived(west, own), west.psql(own, tasks), west.psql(own, spools)) == before
    wait_until(lambda: is_open(stack, own), what='that it is open')
    assert fetch(stack, 'Note/kept/file/f', ns=own).content == b'first'
    again = requests.post(f'{stack.url}/{own}/op/put', verify=stack.http.verify, **kept)
    assert again.headers.get('Idempotency-Replayed') == 'true' and again.json()['out'] == first.json()['out']
    assert stack.op(own, 'subs', {}, session='s' * 20)['out']
    assert [one['id'] for one in stack.op(own, 'list', {'c': 'Person', 'limit': 3, 'cursor': cursor})['out']['docs']] == ['p3', 'p4', 'p5']
    assert refused('AUNIQUE', stack.put, own, person('other', name='name 1'))
    with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
        with psycopg2.connect(stack.conninfo(own, 'stampd')) as session, session.cursor() as cursor:
            cursor.execute('update stampd.doc set version = version')
    again = move(stack, tmp_path, own, cell='-', status=1)
    assert f'{own} has documents' in again.error  # the former database is there
    assert home(stack, own) == f'stampd_{own}@west' and is_open(stack, own)


def test_changes_between_two_runs_arrive(stack, west, own, tmp_path):
    declare(stack, own, tmp_path)
    stack.put(own, *(person(f'p{n}', age=n, name=f'name {n}', team='red') for n in range(6)), line('ends', 'a', 1))
    stop_before_the_switch(stack, west, tmp_path, own)
    assert home(stack, own) == f'stampd_{own}'
    stack.put(own, person('p0', name='free'), person('p5', age=55, name='name 5', team='blue'))
    stack.put(own, person('p1', age=7, name='name 0', team='blue'), {'c': 'Note', 'id': 'ends', 'delete': True})
    before = archives.rows(stack, own), derived(stack, own)
    move(stack, tmp_path, own)
    assert (archives.rows(west, own), derived(west, own)) == before


def test_a_move_that_is_killed_at_any_time_goes_on(stack, west, own, tmp_path):
    """The command, or the PostgreSQL that the namespace moves to."""
    stack.put(own, *(line(f'n{n}', 'a', 'x' * 2000) for n in range(32)))
    acknowledged, tries = {}, 0
    while True:
        tries += 1
        with subprocess.Popen(words(stack, tmp_path, own), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            try:
                told = program.communicate(timeout=random.uniform(0, 0.25 * tries))[1]
                if program.returncode == 0 or 'in this cell already' in told:
                    break
                assert 'under way' in told, told  # the sessions of the one that was killed
            except subprocess.TimeoutExpired:
                if tries % 3:
                    program.kill()
                else:
                    west.stop_postgres('immediate')
                    assert program.communicate()[1] is not None
                    west.step('postgres', 'start')
        answer = stack.request('POST', f'/{own}/op/put', json={'param': {'docs': [line(f'n{tries}', 'b', tries)]}})
        if answer.status_code == 200:
            acknowledged[f'n{tries}'] = tries
        else:
            assert answer.json()['code'] in LATER, answer.text
    wait_until(lambda: is_open(stack, own), what='that it is open')
    assert home(stack, own) == f'stampd_{own}@west'
    for id_, number in acknowledged.items():
        assert {'c': 'Line', 'k': 'b', 'j': number} in [{name: item[name] for name in 'ckj'} for item in stack.get(own, ('Note', id_))['items']]


def test_a_move_that_was_killed_when_it_dropped_the_former_database_goes_on(stack, west, own, tmp_path):
    """The present database is not dropped, whatever the folder of another move names."""
    version = stack.put(own, line('one', 'a', 1))
    move(stack, tmp_path, own)
    (tmp_path / 'move').mkdir()
    left = tmp_path / 'move' / 'former'
    left.write_text(f'stampd_{own}@west')
    assert f'stampd_{own}@west is the present database' in move(stack, tmp_path, own, '--drop', status=1).error
    left.write_text('stampd_lab')
    assert 'stampd_lab is the database of namespace lab' in move(stack, tmp_path, own, '--drop', status=1).error
    left.write_text(f'stampd_{own}')
    assert f'dropped the database stampd_{own}' in move(stack, tmp_path, own, '--drop').text
    assert not (tmp_path / 'move').exists() and not stack.psql(None, 'select 1 from pg_database where datname = %s', (f'stampd_{own}',))
    wait_until(lambda: is_open(stack, own), what='that it is open')
    assert stack.get(own, ('Note', 'one'))['v'] == version


def test_a_move_is_abandoned(stack, west, own, tmp_path):
    version = stack.put(own, line('two', 'a', 1))
    stop_before_the_switch(stack, west, tmp_path, own)
    west.psql(own, 'alter table cron add constraint nobody check (false)')  # the switch fails, in its midst
    stack.psql(own, "select cron_set('nightly', 'put', 'D0330')")
    failed = move(stack, tmp_path, own, status=1)
    assert f'{own} is not open' in failed.error
    refused('OREADONLY', stack.put, own, line('one', 'a', 2))
    run_program(*stack.admin_words('ns', 'move', own, '--folder', tmp_path / 'move', '--abandon'))
    wait_until(lambda: is_open(stack, own), what='it is open again')
    assert stack.get(own, ('Note', 'two'))['v'] == version and home(stack, own) == f'stampd_{own}'


def test_what_is_refused(stack, west, tmp_path):
    for more, told in ((('z', '--cell', 'west'), 'is not moved'), (('lab',), '--to FILE'), (('lab', '--to', 'x', '--cell', 'west'), 'one of them'),
                       (('lab', '--to', 'x', '--drop'), '--cell only')):
        assert told in run_program(*stack.admin_words('ns', 'move', *more), status=2).error
    assert 'there is no setting database.east' in move(stack, tmp_path, 'lab', cell='east', status=1).error
    assert 'is in this cell already' in move(stack, tmp_path, 'lab', cell='-', status=1).error
    assert 'there is no such namespace' in move(stack, tmp_path, 'nowhere', status=1).error
    create(stack, 'taken', '--cell', 'west', '--database', 'stampd_own6')
    assert 'stampd_own6@west is the database of namespace taken' in move(stack, tmp_path, 'own6', status=1).error

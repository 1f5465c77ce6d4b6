"""What moves all documents at once: a restore from a backup, made known; TRUNCATE, heard."""
import os
import re
import subprocess
import threading

import psycopg2
import pytest

from dumps import back_up, fill, restore
from holder import Copy, items_of
from stack import BUILD, SOURCE, Problem, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'open', 'demo': 'open', 'lab': 'open'}}
AHEAD = 10 ** 10  # stamps of next year


def doc(id_, *items):
    return {'c': 'Note', 'id': id_, 'items': [{'c': 'Line', 'k': key, 'j': value} for key, value in items]}


def removal(id_, key):
    return {'c': 'Note', 'id': id_, 'items': [{'c': 'Line', 'k': key, 'del': True}]}


def version_of(stack, id_):
    return stack.get('lab', ('Note', id_))['v']


def copy_of(stack, id_):
    copy = Copy('Note', id_)
    synchronise(stack, copy)
    return copy


def synchronise(stack, copy):
    answer, = stack.op('lab', 'sync', syncs=[copy.request()])['syncs']
    copy.apply(answer)


class Others:
    """A client of another namespace, who writes and reads all the time."""

    def __init__(self, stack):
        self.stack, self.is_over, self.rounds, self.problems = stack, False, 0, []
        self.thread = threading.Thread(target=self.work)

    def work(self):
        while not self.is_over:
            try:
                version = self.stack.put('demo', doc('other', ('a', self.rounds)))
                assert self.stack.get('demo', ('Note', 'other'))['v'] == version
            except Exception as problem:
                self.problems.append(repr(problem))
            self.rounds += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        before = self.rounds
        wait_until(lambda: self.rounds >= before + 5 or self.problems, what='the other client')
        self.is_over = True
        self.thread.join()


# --- a restore ---

def test_one_namespace_is_restored_and_the_others_are_served(stack, tmp_path):
    """As doc/how-to/operating.md has it, "Backup and restore"."""
    stack.put('lab', doc('one kept', ('a', 1)), doc('one gone', ('a', 1)))
    backup = tmp_path / 'one.dump'
    back_up(stack, backup)
    stack.put('lab', {'c': 'Note', 'id': 'one gone', 'delete': True})
    latest = stack.put('lab', doc('one kept', ('a', 2)), doc('one late', ('a', 2)))
    copies = [copy_of(stack, id_) for id_ in ('one kept', 'one gone', 'one late')]
    pids = set(stack.worker_pids())
    with Others(stack) as others:
        stack.admin('ns', 'off', 'lab', 'The data are being restored.')
        with pytest.raises(Problem, match='OOFF'):
            version_of(stack, 'one kept')
        if 'lab' in stack.connections:
            stack.connections.pop('lab').close()
        fill(stack, backup, '--force')
        stack.admin('ns', 'create', 'lab')
        stack.admin('ns', 'restored', 'lab')
        with pytest.raises(Problem, match='OOFF'):
            version_of(stack, 'one kept')
        stack.admin('ns', 'on', 'lab')
    assert others.problems == [] and set(stack.worker_pids()) == pids
    assert version_of(stack, 'one kept') > latest and version_of(stack, 'one late') == 0
    for copy in copies:
        synchronise(stack, copy)
        assert copy.items == items_of(stack.get('lab', copy.name))
    assert items_of(stack.get('lab', ('Note', 'one kept'))) == {('Line', 'a'): 1} == items_of(stack.get('lab', ('Note', 'one gone')))
    assert stack.put('lab', doc('one late', ('a', 3))) > latest


PAGE = (SOURCE / 'doc/how-to/operating.md').read_text()
BACKUP, ONE, ALL = re.findall(r'^```sh\n(.*?)^```$', PAGE[PAGE.index('## Backup and restore'):PAGE.index('## Upgrade')], re.M | re.S)[:3]


def type_lines(stack, lines, folder):
    """As the administrator, in a shell that stops at the first error."""
    programs = folder / 'programs'
    programs.mkdir(exist_ok=True)
    (programs / 'stampctl').write_text(f'#!/bin/sh\nexec {BUILD}/src/stampctl --config {stack.path}/etc/stampd.conf "$@"\n')
    (programs / 'stampctl').chmod(0o755)
    done = subprocess.run(['bash', '-eu', '-c', lines.replace('z demo', 'z demo lab')], cwd=folder, capture_output=True, text=True, timeout=300, env={
        **os.environ, 'PATH': f'{programs}:/usr/lib/postgresql/15/bin:{os.environ["PATH"]}', 'STAMPD_SQL': str(SOURCE / 'sql'),
        'PGHOST': str(stack.database), 'PGUSER': 'postgres'})
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_namespaces_are_restored_onto_a_new_cluster(stack, tmp_path):
    """By the commands of the page.  Holders, tasks, subscriptions and the configurations of the namespaces are as at the backup."""
    assert 'createuser stampd' in ALL and 'pg_dump' in BACKUP and 'z demo' in ALL and 'z demo' in BACKUP and 'dropdb' in ONE
    stack.put('lab', doc('cluster kept', ('a', 1)), doc('cluster gone', ('a', 1)))
    stack.put('demo', doc('cluster', ('a', 1)))
    stack.admin('ns', 'origins', 'lab', 'https://a.example')
    later = {'op': 'put', 'start': 400101000000000, 'info': 'later', 'param': {'docs': [doc('by task', ('a', 1))]}}
    stack.op('lab', 'task', later, admin=True)
    type_lines(stack, BACKUP, tmp_path)
    latest = stack.put('lab', doc('cluster kept', ('a', 2)), doc('cluster late', ('a', 2)))
    stack.put('lab', {'c': 'Note', 'id': 'cluster gone', 'delete': True})
    copies = [copy_of(stack, id_) for id_ in ('cluster kept', 'cluster gone', 'cluster late')]

    stack.step('stampd', 'stop', 'now')
    stack.stop_postgres()
    (stack.path / 'pg').rename(stack.path / 'pg.former')
    stack.step('postgres', 'create')
    stack.step('postgres', 'start')
    type_lines(stack, ALL, tmp_path)
    stack.step('stampd', 'start')

    listed = [line.split()[:2] for line in stack.admin('ns', 'list').text.splitlines()[1:]]
    assert listed == [['demo', 'stampd_demo'], ['lab', 'stampd_lab'], ['z', 'stampd_z']]
    assert stack.admin('ns', 'origins', 'lab').text.split() == ['https://a.example']
    assert 'later' in stack.admin('task', 'list', 'lab').text
    assert items_of(stack.get('demo', ('Note', 'cluster'))) == {('Line', 'a'): 1}
    assert version_of(stack, 'cluster kept') > latest and version_of(stack, 'cluster late') == 0
    for copy in copies:
        synchronise(stack, copy)
        assert copy.items == items_of(stack.get('lab', copy.name))
    assert stack.put('lab', doc('cluster late', ('a', 3))) > latest
    rights = "select has_table_privilege('stampd', 'stampd.doc', 'select'), has_table_privilege('stampd', 'stampd.doc', 'truncate')," \
             " (select rolsuper or rolcreatedb or rolcreaterole from pg_roles where rolname = 'stampd')"
    assert stack.psql('lab', rights) == [(True, False, False)]
    connection = psycopg2.connect(stack.conninfo('lab', user='stampd'))
    try:
        with connection.cursor() as cursor, pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute('select stampd.after_restore()')
    finally:
        connection.close()
    assert 'FAIL' not in stack.stampctl('check-config').out


def test_no_holder_takes_a_copy_for_good_after_a_restore(stack, tmp_path):
    stack.put('lab', doc('changed', ('a', 1), ('b', 1), ('x', 1)), doc('same', ('a', 1), ('x', 1)), doc('deleted', ('a', 1)),
              doc('back', ('a', 1)))
    stack.put('lab', removal('same', 'x'), removal('changed', 'x'))
    stack.put('lab', {'c': 'Note', 'id': 'back', 'delete': True})
    assert stack.psql('lab', 'select count(*) from item where content is null') == [(2,)]
    early = copy_of(stack, 'same')
    backup = tmp_path / 'lab.dump'
    back_up(stack, backup)

    stack.put('lab', doc('changed', ('a', 2), ('c', 2)), doc('late', ('a', 2)), doc('back', ('a', 2)))
    stack.put('lab', removal('changed', 'b'))
    latest = stack.put('lab', {'c': 'Note', 'id': 'deleted', 'delete': True})
    names = ('changed', 'same', 'deleted', 'late', 'back')
    copies = [early, *(copy_of(stack, id_) for id_ in names)]

    restore(stack, backup)
    said = stack.admin('ns', 'restored', 'lab').text
    stack.step('stampd', 'start')
    present = int(said.split()[-2])
    assert said.startswith('lab: all documents are of version ') and present > latest

    wanted = {'changed': {('Line', 'a'): 1, ('Line', 'b'): 1}, 'same': {('Line', 'a'): 1}, 'deleted': {('Line', 'a'): 1},
              'late': None, 'back': None}
    for copy in copies:
        synchronise(stack, copy)
        found = stack.get('lab', copy.name)
        if wanted[copy.name[1]] is None:
            assert copy.version == found['v'] == 0
        else:
            assert copy.items == items_of(found) == wanted[copy.name[1]]
            assert found['v'] == found['ct'] == found['dt'] == copy.version == present
    for id_ in ('late', 'back', 'never'):
        assert stack.put('lab', doc(id_, ('a', 3))) > present
    assert stack.psql('lab', 'select count(*) from item where content is null') == [(0,)]


def test_all_namespaces_at_once(stack):
    lines = stack.admin('ns', 'restored', '--all').text.splitlines()
    assert [line.split(':')[0] for line in lines] == ['z', 'demo', 'lab']
    assert stack.put('lab', doc('all', ('a', 1)))
    assert 'there is no such namespace' in stack.admin('ns', 'restored', 'none', status=1).text
    assert 'expected a CODE or --all' in stack.admin('ns', 'restored', status=2).text


def test_a_running_server_forgets_what_it_has_proven(stack):
    stack.put('lab', doc('running', ('a', 1)))
    stack.psql('lab', "update doc set version = version + %s where id = 'running'", (AHEAD,))
    ahead = wait_until(lambda: (lambda found: found['v'] if found['v'] > found['ct'] + AHEAD // 2 else None)(
        stack.get('lab', ('Note', 'running'))), what='a version ahead of the clock')
    (present,), = stack.psql('lab', 'select after_restore()')
    assert present > ahead, 'no version goes back'
    wait_until(lambda: version_of(stack, 'running') == present, what='the new life')
    assert stack.put('lab', doc('running', ('a', 2))) > present
    assert items_of(stack.get('lab', ('Note', 'running'))) == {('Line', 'a'): 2}


def test_a_namespace_without_documents_may_be_restored(stack):
    stack.psql('demo', 'truncate doc, item')
    (first,), = stack.psql('demo', 'select after_restore()')
    (second,), = stack.psql('demo', 'select after_restore()')
    assert stack.psql('demo', 'select floor from namespace') == [(second,)] and second > first


def test_a_restore_is_told_in_read_committed_only(stack):
    with psycopg2.connect(stack.conninfo('lab')) as connection:
        connection.set_session(isolation_level='REPEATABLE READ')
        with connection.cursor() as cursor, pytest.raises(psycopg2.Error, match='READ COMMITTED'):
            cursor.execute('select stampd.after_restore()')
    connection.close()


# --- truncate ---

def test_truncate_is_heard_by_all_workers(stack):
    stack.put('lab', doc('gone', ('a', 1)), doc('ahead', ('a', 1)))
    stack.psql('lab', "update doc set version = version + %s where id = 'ahead'", (AHEAD,))
    ahead = wait_until(lambda: (lambda found: found['v'] if found['v'] > found['ct'] else None)(
        stack.get('lab', ('Note', 'ahead'))), what='a version ahead of the clock')
    copy = copy_of(stack, 'gone')
    for _ in range(20):  # all workers have it in their caches
        assert version_of(stack, 'gone')
    stack.psql('lab', 'truncate doc, item')
    wait_until(lambda: version_of(stack, 'gone') == 0, what='the end of the document')
    for _ in range(20):
        assert version_of(stack, 'gone') == 0
    synchronise(stack, copy)
    assert copy.version == 0
    assert stack.put('lab', doc('gone', ('b', 2))) > ahead, 'the floor is above what was there'
    assert items_of(stack.get('lab', ('Note', 'gone'))) == {('Line', 'b'): 2}


@pytest.mark.parametrize('statement', ['select stampd.after_restore()', 'truncate stampd.doc, stampd.item'])
def test_workers_may_do_neither(stack, statement):
    connection = psycopg2.connect(stack.conninfo('lab', user='stampd'))
    try:
        with connection.cursor() as cursor, pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute(statement)
    finally:
        connection.close()


def test_a_restore_is_above_what_was_forgotten(stack):
    """Whoever holds a document that was purged before the backup must not take its next life for the same."""
    stack.put('demo', {'c': 'Gone', 'id': 'a', 'items': []}, admin=True)
    (floor,), = stack.psql('demo', "update namespace set floor = stamp_of(now() + interval '1 hour') where one returning floor")
    assert stack.psql('demo', 'select after_restore()')[0][0] > floor

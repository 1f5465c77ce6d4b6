"""Namespaces in several PostgreSQL clusters: the settings have a line database.NAME for each cell besides that of z."""
import pytest

from cell import Cluster, create
from listener import Listener
from manager import Manager
from stack import Stack, refused, run_program, wait_until
from test_attachment_http import fetch, store

# What the server does in memory other tests try with the sanitizers.
pytestmark = pytest.mark.plain

STACK = {'workers': 3}
NAME = ('Note', 'a')


@pytest.fixture(scope='module')
def west(stack):
    with Cluster('west') as cluster:
        stack.set(**{'database.west': cluster.cell})
        create(stack, 'far', '--cell', 'west', '--access', 'open')
        yield cluster


def note(n, id_=NAME[1]):
    return {'c': NAME[0], 'id': id_, 'items': [{'c': 'N', 'j': n}]}


def value(stack, ns, id_=NAME[1]):
    return stack.get(ns, (NAME[0], id_))['items'][0]['j']


def test_a_namespace_is_served_from_its_cell(stack, west):
    stack.put('far', note(1))
    stack.put('lab', note(2))
    assert (value(stack, 'far'), value(stack, 'lab')) == (1, 2)
    assert west.psql('far', "select content from item where id = 'a'") == [('1',)]
    assert stack.psql(None, "select 1 from pg_database where datname like '%%far%%'") == []
    assert stack.psql('z', "select content::json ->> 'database' from item where class = 'Namespace' and id = 'far'") == [('stampd_far@west',)]
    listener = Listener(stack, 'Note/a', ns='far')
    listener.opened()
    listener.wait_for('Note/a', stack.put('far', note(3)))
    listener.close()
    assert value(stack, 'far') == 3


def test_changes_by_others_in_the_cell_are_seen(stack, west):
    stack.put('far', note(1, 'other'))
    assert value(stack, 'far', 'other') == 1
    west.psql('far', "select put_item('Note', 'other', 'N', '', '2')")
    wait_until(lambda: value(stack, 'far', 'other') == 2, what='the change of another program')


def test_files_and_tasks(stack, west):
    stack.put('far', note(1, 'file'))
    store(stack, 'Note/file/file/picture', b'far away', 'image/png', ns='far')
    assert fetch(stack, 'Note/file/file/picture', ns='far').content == b'far away'
    assert (stack.path / 'files/stampd_far@west').is_dir()
    west.psql('far', "select task_create('put', %s)", ('{"docs": [{"c": "Note", "id": "task", "items": [{"c": "N", "j": 5}]}]}',))
    manager = Manager(stack, 'far')
    (task,) = manager.due()
    assert manager.run(task)['result'] == 'done'
    assert value(stack, 'far', 'task') == 5


def test_commands_find_the_cell(stack, west, tmp_path):
    rows = [line.split() for line in stack.admin('cell', 'list').out.splitlines()]
    assert [row[:2] for row in rows[1:]] == [['-', '3'], ['west', '1']] and str(west.database) in rows[2][2]
    status = [line.split()[:3] for line in stack.admin('cell', 'status').out.splitlines()]
    assert status[1:] == [['-', 'up', '3'], ['west', 'up', '1']]
    listed = {line.split()[0]: line.split() for line in stack.admin('ns', 'list').out.splitlines()}
    assert listed['far'][1] == 'stampd_far@west' and float(listed['far'][2]) > 1
    stack.admin('verify', '--ns', 'far')
    stack.admin('ns', 'migrate', '--all')
    stack.admin('ns', 'create', 'far')  # again: nothing to do
    archive = tmp_path / 'far.tar.zst'
    stack.admin('export', 'far', archive)
    create(stack, 'copy', '--cell', 'west', '--database', 'other')
    stack.admin('import', 'copy', archive)
    assert value(stack, 'copy') == value(stack, 'far') and west.psql(None, "select 1 from pg_database where datname = 'other'")
    stack.admin('ns', 'drop', 'copy', '--yes')
    assert not west.psql(None, "select 1 from pg_database where datname = 'other'")


def test_a_value_is_unique_in_all_cells(stack, west, tmp_path):
    schema = tmp_path / 'schema'
    schema.write_text('{"classes": {"Badge": {"items": {"Main": {"singleton": true}}, "unique": {"number": {"key": ["Main.number"], "global": true}}}}}')
    for ns in ('far', 'lab'):
        stack.put(ns, {'c': 'Badge', 'id': 'first', 'items': [{'c': 'Main', 'j': {'number': f'of {ns}'}}]})
        stack.admin('schema', 'set', ns, schema)
        stack.admin('schema', 'apply', ns)
    for ns, other in (('far', 'lab'), ('lab', 'far')):
        badge = {'c': 'Badge', 'id': 'second', 'items': [{'c': 'Main', 'j': {'number': f'new of {ns}'}}]}
        stack.put(ns, badge)
        for taken in (badge, {'c': 'Badge', 'id': 'third', 'items': [{'c': 'Main', 'j': {'number': f'of {ns}'}}]}):
            refused('AUNIQUE', stack.put, other, taken)
    assert sorted(stack.psql('z', "select database from global_value where class = 'Badge'")) == [('stampd_far@west',)] * 2 + [('stampd_lab',)] * 2


def doctor(stack):
    return run_program(*stack.admin_words('doctor', '--nginx', stack.path / 'etc/nginx.conf'), status=None).out


def test_a_cell_that_is_away_takes_nothing_from_the_others(stack, west):
    stack.put('far', note(1, 'stays'))
    west.stop_postgres('immediate')
    try:
        for n in range(5):
            refused('XAWAY', stack.put, 'far', note(2, 'stays'))
            stack.put('lab', note(n))
            assert value(stack, 'lab') == n
        status = run_program(*stack.admin_words('cell', 'status'), status=1)
        assert [line.split()[:2] for line in status.out.splitlines()[1:]] == [['-', 'up'], ['west', 'away']]
        assert 'cell west: no primary answers' in doctor(stack)
        listed = run_program(*stack.admin_words('ns', 'list'), status=1)
        assert 'missing' in next(line for line in listed.out.splitlines() if line.startswith('far '))
    finally:
        west.step('postgres', 'start')

    def is_back():
        answer = stack.request('GET', '/far/doc/Note/stays')
        assert answer.status_code in (200, 503), answer.text
        return answer.status_code == 200
    wait_until(is_back, what='the cell')
    stack.put('far', note(3, 'stays'))
    assert 'cell west: its primary answers' in doctor(stack)
    assert value(stack, 'far', 'stays') == 3


def test_a_pair_of_hosts_serves_all_cells(stack, west):
    """The lease in z decides for the databases of all cells."""
    stack.set(hosts='pair', lease_s=2)
    try:
        with Stack('beside', workers=2, beside=stack, settings={'hosts': 'pair', 'lease_s': 2, 'database.west': west.cell}) as spare:
            def asked(host):
                answer = host.request('GET', '/far/doc/Note/a')
                assert answer.status_code in (200, 503), answer.text
                return answer.status_code == 200
            wait_until(lambda: asked(stack), what='the lease')
            assert not asked(spare)
            stack.put('far', note(11))
            stack.step('stampd', 'stop')
            wait_until(lambda: asked(spare), what='the take')
            assert value(spare, 'far') == 11
            spare.put('far', note(12))
            stack.step('stampd', 'start')
            refused('OTWIN', stack.put, 'far', note(13))
            assert value(spare, 'far') == 12
    finally:
        stack.set(hosts='one')
    wait_until(lambda: stack.request('GET', '/far/doc/Note/a').status_code == 200, what='its own sessions')
    assert value(stack, 'far') == 12


def test_what_is_refused(stack, west):
    def failure(*words, status=1):
        return run_program(*stack.admin_words(*words), status=status).error
    assert 'there is no setting database.east' in failure('ns', 'create', 'lost', '--cell', 'east')
    assert 'z is in the cell of the setting database' in failure('ns', 'create', 'z', '--cell', 'west', status=2)
    assert 'lab exists already, with database stampd_lab' in failure('ns', 'create', 'lab', '--cell', 'west')
    assert 'there is no setting database.east' in failure('cell', 'status', 'east', status=2)
    assert 'at most 63' in failure('ns', 'create', 'long', '--cell', 'west', '--database', 'd' * 60)


def test_a_cell_whose_setting_is_gone(stack, west):
    """Its namespaces are away, not gone: their commits may be under way."""
    cell = stack.settings.pop('database.west')
    stack.set()
    try:
        refused('XAWAY', stack.put, 'far', note(1))
        stack.put('lab', note(1))
        assert 'database=stampd_far@west: the settings have no line database.west' in stack.log()
    finally:
        stack.set(**{'database.west': cell})
    stack.put('far', note(2))
    assert value(stack, 'far') == 2

"""stampctl doctor: each fault that it knows is made, and its line says what to do; it includes check-config and backup check."""
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from stack import BUILD, ROOM, run_program, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2}


@pytest.fixture(scope='module', autouse=True)
def build():
    """Programs of its own: a test replaces one, and what other tests run beside it is started from those of the build."""
    folder = Path(tempfile.mkdtemp(prefix='stampd-build-', dir=ROOM))
    folder.chmod(0o755)
    (folder / 'src').mkdir()
    for name in ('stampd', 'stampctl', 'stamp-thumbnail'):
        if (BUILD / 'src' / name).exists():
            shutil.copy2(BUILD / 'src' / name, folder / 'src')
    STACK['build'] = folder
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def doctor(stack):
    """{text: result} of its lines, and its exit status."""
    def call(*words, program=None, config=None):
        ended = run_program(program or stack.build / 'src/stampctl', 'doctor', '--json', '--config', config or stack.config,
            '--admin-conninfo', stack.conninfo_of_server(), '--nginx', stack.path / 'etc/nginx.conf', *words, status=None)
        return {line['text']: line['result'] for line in map(json.loads, ended.out.splitlines())}, ended.status
    return call


def found(lines, words):
    """The result of the only line that begins so."""
    results = [result for text, result in lines.items() if text.startswith(words)]
    assert len(results) == 1, (words, lines)
    return results[0]


def line(lines, words):
    return next(text for text in lines if text.startswith(words))


def test_a_stack_that_is_well(stack, doctor):
    lines, status = doctor()
    assert (found(lines, 'stampd runs'), found(lines, 'PostgreSQL 1'), found(lines, 'PostgreSQL can be reached')) == ('OK', 'OK', 'OK')
    assert found(lines, 'the clocks of this host and of PostgreSQL agree') == 'OK'
    assert found(lines, 'namespace lab: database') == 'OK', 'what check-config finds'
    assert found(lines, 'nginx: client_max_body_size') == 'OK'
    assert found(lines, 'no backup is checked') == 'WARN'
    fails = {text for text, result in lines.items() if result == 'FAIL'}
    assert fails <= {text for text in fails if 'fsync' in text or 'queue_key_file' in text}, 'the tests run without fsync, and as one user'
    assert status == (1 if fails else 0)


@pytest.mark.parametrize('setting, value, words', [
    ('fsync', 'off', 'PostgreSQL: fsync is off: '), ('full_page_writes', 'off', 'PostgreSQL: full_page_writes is off: '),
    ('autovacuum', 'off', 'PostgreSQL: autovacuum is off: tables grow'),
    ('synchronous_commit', 'off', 'PostgreSQL: synchronous_commit is off: a crash loses'),
    ('synchronous_standby_names', 'nobody', 'PostgreSQL: no standby of synchronous_standby_names')])
def test_settings_of_postgresql(stack, doctor, setting, value, words):
    def shows():
        stack.psql(None, 'select pg_reload_conf()')
        return stack.psql(None, f"select current_setting('{setting}') = '{value}'") == [(True,)]
    before = stack.psql(None, 'select setting from pg_settings where name = %s', (setting,))[0][0]
    stack.psql(None, f"alter system set {setting} = '{value}'")
    try:
        wait_until(shows, what=setting)
        wait_until(lambda: any(text.startswith(words) for text in doctor()[0]), what=words)
        lines, status = doctor()
        assert (found(lines, words), status) == ('FAIL', 1)
    finally:
        stack.psql(None, f"alter system set {setting} = '{before}'")
        stack.psql(None, 'select pg_reload_conf()')
        wait_until(lambda: stack.psql(None, 'select setting from pg_settings where name = %s', (setting,)) == [(before,)], what='the reset')


def test_a_slot_that_nobody_uses(stack, doctor):
    stack.psql(None, "select pg_create_physical_replication_slot('left', true)")
    try:
        assert found(doctor()[0], 'PostgreSQL: slot left is not in use') == 'WARN'
    finally:
        stack.psql(None, "select pg_drop_replication_slot('left')")


def test_tasks_that_stand(stack, doctor):
    stack.psql('lab', "insert into taskqueue (taskid, opname, param, qn, startat, created)"
        " select 'old', 'put', '{}', 7, stamp_of(now() - interval '2 minutes'), 1")
    try:
        lines, status = doctor()
        assert (found(lines, 'namespace lab: queue 7: 1 tasks are due, since '), status) == ('FAIL', 1)
        assert 'stamp-queue' in line(lines, 'namespace lab: queue 7')
        stack.psql('lab', "insert into task_paused (what, qn, since, reason) values ('queue 7', 7, stamp_now(), '')")
        assert found(doctor()[0], 'namespace lab: queue 7 is paused') == 'WARN'
        stack.psql('lab', "update taskqueue set startat = 991231235959999 where taskid = 'old'")
        assert found(doctor()[0], 'namespace lab: queue 7: 1 tasks are parked') == 'WARN'
    finally:
        stack.psql('lab', "delete from task_paused; delete from taskqueue where taskid = 'old'")


def test_a_disk_that_fills(stack, doctor):
    lines, _ = doctor('--free', 100)
    assert found(lines, 'disk of logs') == 'WARN' and 'remove files' in line(lines, 'disk of logs')
    assert found(doctor('--free', 0)[0], 'disk of logs') == 'OK'


def test_secrets_that_others_may_read(stack, doctor):
    mode = stack.config.stat().st_mode
    stack.config.chmod(0o644)
    try:
        lines, _ = doctor()
        assert found(lines, f'{stack.config}: others may read') == 'WARN'
        stack.config.chmod(0o600)
        assert found(doctor()[0], f'{stack.config}: mode 600') == 'OK'
    finally:
        stack.config.chmod(mode)


def test_settings_of_no_server(stack, doctor, tmp_path):
    """A server that does not run, a run_directory on a disk, a namespace whose database is away."""
    folder = tmp_path / 'run'
    folder.mkdir()
    config = tmp_path / 'stampd.conf'
    text = stack.config.read_text()
    config.write_text(text.replace(f'run_directory = {stack.path}/run/stampd', f'run_directory = {folder}'))
    lines, status = doctor('--map', stack.path / 'etc/namespaces.map', config=config)
    assert (found(lines, 'stampd does not run: systemctl start stampd'), status) == ('FAIL', 1)
    config.write_text(text.replace(str(stack.database), '/nowhere'))
    ended = run_program(stack.build / 'src/stampctl', 'doctor', '--config', config, '--admin-conninfo', 'host=/nowhere', status=1)
    assert 'FAIL  PostgreSQL cannot be reached as administrator: ' in ended.out


def test_a_program_that_was_replaced(stack, doctor):
    """The running one has been removed from its disk, as an upgrade does it."""
    program = stack.build / 'src/stampd'
    copy = program.with_name('stampd.copy')
    shutil.copy2(program, copy)
    os.replace(copy, program)
    expected = 'another release is installed than the one that runs' if os.geteuid() == 0 else 'only root sees whether the installed release runs'
    assert found(doctor()[0], f'stampd: {expected}') == 'WARN'


def test_backups(doctor, tmp_path):
    lines, status = doctor('--backup', tmp_path / 'none')
    assert status == 1 and not any(text.startswith('no backup is checked') for text in lines)

"""A spool that fills its disk: what the server has is removed although there is no room, and so there is some again, for records and for dead
letters."""
import os
import subprocess

import pytest

from stack import BUILD, PATIENCE_S, wait_until
from test_spool import begin, forward, put_many, run_spool, state, stored
from test_task_full_disk import Disk

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'limit_spool_records': 50}}
FIRST, MANY, MOST = 250, 280, 200
REASONS = ['param is not JSON', 'this cannot be the name of a namespace', 'NOPERATION: The operation does not exist. (unknown)']


@pytest.fixture
def disk(stack, tmp_path):
    """The folder of a spool that is a file system of its own."""
    disk = Disk(tmp_path / 'spool', os.geteuid())
    if not disk.is_mounted:
        pytest.skip(f'a file system of its own is needed, which takes root or sudo: {disk.words}')
    os.chmod(disk.path, 0o700)
    stack.psql('lab', 'truncate taskqueue')
    yield disk
    disk.remove()


def put(folder):
    words = [BUILD / 'src/stamp-spool', 'put', 'lab', 'put', '{"docs":[]}', '-s', folder, '--info', f'n{MANY}']
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)


def put_until_refused(folder):
    """The segment that grows may have room yet."""
    for _ in range(MOST):
        done = put(folder)
        if done.returncode:
            return done.stderr
    return ''


def test_a_full_spool_drains(stack, disk):
    folder = disk.path
    run_spool(folder, 'create', '--segment-bytes', '16384')
    put_many(folder, range(FIRST))
    run_spool(folder, 'put', 'lab', 'put', '{not JSON}')
    run_spool(folder, 'put', 'No namespace', 'put')
    run_spool(folder, 'put', 'lab', 'unknown')
    put_many(folder, range(FIRST, MANY))
    disk.fill()
    assert 'No space left on device' in put_until_refused(folder)
    waiting = state(folder)['waiting']
    forward(stack, folder)
    assert state(folder)['waiting'] == 0
    assert stored(stack)[:MANY] == list(range(MANY)) and len(stored(stack)) == waiting - len(REASONS)
    assert [letter['reason'] for letter in run_spool(folder, 'list', '--dead')[1:]] == REASONS
    assert put(folder).returncode == 0


@pytest.mark.parametrize('first', [('lab', 'put', '{not JSON}'), ('lab', 'unknown', '{}')], ids=['malformed', 'refused'])
def test_what_has_no_room_for_dead_letters_holds_back_nothing_else(stack, disk, first):
    """More records than a batch has wait for such room, at the front, and get it when the segments behind them are removed."""
    folder, bad, good = disk.path, 3, list(range(1000, 1000 + MANY))
    run_spool(folder, 'create', '--segment-bytes', '16384')
    for _ in range(bad):
        run_spool(folder, 'put', *first)
    put_many(folder, good)
    disk.fill()
    assert 'No space left on device' in put_until_refused(folder)
    waiting = state(folder)['waiting']
    forwarder = begin(stack, folder, batch_records=2)
    try:
        wait_until(lambda: state(folder)['waiting'] == 0)
        assert stored(stack)[:len(good)] == good
    finally:
        forwarder.terminate()
        log = forwarder.communicate(timeout=PATIENCE_S)[1]
    assert 'cannot keep a dead letter' in log
    assert state(folder)['dead'] == bad and len(stored(stack)) == waiting - bad

"""The folder of what the stacks of a run share: in memory where there is plenty, and none is left there by a run that was killed."""
import fcntl
import os
import shutil
from pathlib import Path

import pytest

import cluster as kit

pytestmark = pytest.mark.plain


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """In place of /dev/shm; on the disk, with what the test says is free."""
    monkeypatch.setattr(kit, 'MEMORY', tmp_path)
    monkeypatch.setattr(kit, 'ROOM_LOCKS', [])
    monkeypatch.delenv('STAMPD_KEEP', raising=False)
    monkeypatch.setattr(kit, 'free_memory', lambda: monkeypatch.free)
    monkeypatch.free = kit.MEMORY_NEEDED
    yield monkeypatch
    for lock in kit.ROOM_LOCKS:
        lock.close()


def test_clusters_are_in_memory_while_there_is_enough(memory, tmp_path):
    room = kit.make_cluster_room()
    assert Path(room).parent == tmp_path and os.stat(room).st_mode & 0o777 == 0o711
    memory.setenv(kit.CLUSTER_ROOM, room)
    assert kit.cluster_folder('one') == Path(room) / 'one'
    memory.free = kit.MEMORY_NEEDED_BY_ONE - 1  # another run has taken it meanwhile
    assert kit.cluster_folder('two') == ''
    room = kit.make_cluster_room()
    assert Path(room).parent == Path(kit.ROOM)
    memory.setenv(kit.CLUSTER_ROOM, room)
    assert kit.cluster_folder('three') == Path(room) / 'three'
    shutil.rmtree(room)


def test_only_what_killed_runs_have_left_is_removed(memory, tmp_path):
    used, left = (Path(kit.make_cluster_room()) for _ in range(2))
    begun = tmp_path / 'stampd-cluster-begun'  # whose owner has not locked it yet
    begun.mkdir()
    (left / 'pg').mkdir()
    assert used.is_dir() and left.is_dir()
    kit.ROOM_LOCKS.pop().close()  # as its end does
    kit.sweep_cluster_rooms()
    assert set(tmp_path.glob('stampd-cluster-*')) == {used, begun}
    with open(used / 'owner') as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_there_may_be_no_memory_of_that_kind(monkeypatch, tmp_path):
    monkeypatch.setattr(kit, 'MEMORY', tmp_path / 'none')
    assert kit.free_memory() == 0
    monkeypatch.setattr(kit, 'MEMORY', tmp_path)
    assert 0 <= kit.free_memory() <= shutil.disk_usage(tmp_path).total

"""Where the clusters of the PostgreSQLs of one run are: a room that its stacks share, with one to copy."""
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path

# Where tests put their folders: PostgreSQL's user must be able to enter.
ROOM = '/var/tmp'
# In the environment: the folder of what the stacks of one run share, and of the files of their clusters.
CLUSTER_ROOM = 'STAMPD_TEST_CLUSTER'
MEMORY = Path('/dev/shm')
# So much must be free there for the clusters of a run, which need about a quarter of it, and for each single one: another run, or what is
# tested, may have taken it meanwhile.
MEMORY_NEEDED, MEMORY_NEEDED_BY_ONE = 8 << 30, 2 << 30


def make_cluster_room():
    """In memory, where there is plenty: most of a stack's start goes into making some thousands of small files, and on a disk these take
    several times as long while those of former stacks have just been removed.  With STAMPD_KEEP=all nothing is lost with the memory."""
    sweep_cluster_rooms()
    is_roomy = os.environ.get('STAMPD_KEEP') != 'all' and free_memory() >= MEMORY_NEEDED
    path = Path(tempfile.mkdtemp(prefix='stampd-cluster-', dir=MEMORY if is_roomy else ROOM))
    path.chmod(0o711)
    lock = open(path / 'owner.new', 'w')
    fcntl.flock(lock, fcntl.LOCK_EX)
    (path / 'owner.new').rename(path / 'owner')
    ROOM_LOCKS.append(lock)  # until this process ends, however it does
    return str(path)


ROOM_LOCKS = []


def sweep_cluster_rooms():
    """Removes what runs that were killed have left in memory.  A PostgreSQL that still runs there ends within a minute: it looks for its files."""
    for path in MEMORY.glob('stampd-cluster-*') if MEMORY.is_dir() else []:
        with contextlib.suppress(OSError), open(path / 'owner') as lock:
            if path.stat().st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)


def free_memory():
    """For files in memory: in their file system, on the machine, and in the group of processes that a container is; 0 where there are none."""
    def numbers(path, pattern):
        try:
            return [int(number) for number in re.findall(pattern, Path(path).read_text(), re.M)]
        except OSError:
            return []
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return 0
    free = [shutil.disk_usage(MEMORY).free, *(1024 * number for number in numbers('/proc/meminfo', r'^MemAvailable: *(\d+)'))]
    for limit, used, names in (('memory.max', 'memory.stat', 'anon|shmem'),
                               ('memory/memory.limit_in_bytes', 'memory/memory.stat', 'total_rss|total_shmem')):
        taken = sum(numbers(f'/sys/fs/cgroup/{used}', rf'^(?:{names}) (\d+)$'))
        free += [number - taken for number in numbers(f'/sys/fs/cgroup/{limit}', r'^(\d+)$')]
    return max(0, min(free))


def cluster_folder(name):
    """Of the files of the cluster of a stack; '': in the folder of the stack."""
    room = os.environ.get(CLUSTER_ROOM)
    is_full = room and MEMORY in Path(room).parents and free_memory() < MEMORY_NEEDED_BY_ONE
    return Path(room) / name if room and not is_full else ''


@contextlib.contextmanager
def shared_room():
    """A room that all started meanwhile inherit; none of its own where there is one already."""
    if CLUSTER_ROOM in os.environ:
        yield
        return
    os.environ[CLUSTER_ROOM] = path = make_cluster_room()
    try:
        yield
    finally:
        shutil.rmtree(path, ignore_errors=True)
        del os.environ[CLUSTER_ROOM]

"""No process needs more memory for a large file than for a small one, on its way through the server to an object store, from there to a client,
and back to the directory; encrypted or not."""
import hashlib
import random
import threading

import pytest

from object_service import Service
from stack import BUILD, PATIENCE_S, children, give, name_of, wait_until
from test_attachment_http import checked, send
from vault import create, new_site_key

pytestmark = [pytest.mark.plain, pytest.mark.skipif(b'__asan_init' in (BUILD / 'src/stampd').read_bytes(), reason='the sanitizer keeps what is freed')]

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'},
         'settings': {'limit_blob_bytes': 128 << 20, 'limit_upload_bytes': 128 << 20, 'object_stores_interval_s': 1, 'keep_interval_s': 3600, 'limit_client_connections': 0}}
MIB = 1 << 20
SMALL, LARGE, MORE_KB = 17, 81, 24 * 1024  # three parts and eleven parts of the store; of 64 MiB more a process may need less than half


class Body:
    """Bytes that are made on the way."""

    def __init__(self, mib):
        self.size, self.piece = mib * MIB, random.Random(mib).randbytes(MIB)

    def __iter__(self):
        return (self.piece for _ in range(self.size // MIB))

    def digest(self):
        whole = hashlib.sha256()
        for piece in self:
            whole.update(piece)
        return whole.hexdigest()


class Watch:
    """The most memory that a process of each name has had, among those of the server and of nginx."""

    def __init__(self, stack):
        self.stack, self.peaks, self.is_over = stack, {}, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def look(self):
        pids = [self.stack.pid(), self.stack.pid('nginx')]
        for pid in pids:
            try:
                lines = open(f'/proc/{pid}/status').read().splitlines()
                pids += children(pid)
                peak, = (int(line.split()[1]) for line in lines if line.startswith('VmHWM:'))
                name = name_of(pid)
            except (OSError, ValueError):
                continue  # it has ended
            self.peaks[name] = max(peak, self.peaks.get(name, 0))

    def run(self):
        while not self.is_over.wait(0.02):
            self.look()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        self.look()


@pytest.fixture(scope='module')
def stored(stack):
    service, path = Service(), stack.path / 'etc/stores'
    path.write_text(service.section('own'))
    path.chmod(0o600)
    give(path)
    stack.set(object_stores_file=path, site_key_file=new_site_key(stack))
    stack.reload_nginx()
    create(stack, 'vault')
    yield stack
    service.stop()


def is_at(stack, ns, place):
    return {found for found, in stack.psql(ns, 'select store from blob')} == {place}


def pass_through(stack, ns, mib):
    """There and back.  What each process needed at most."""
    body, key, path = Body(mib), f'Note/n/file/f{mib}', stack.path / f'files/stampd_{ns}'
    with Watch(stack) as watch:
        answer = checked(send(stack, 'PUT', key, iter(body), 'application/octet-stream', ns=ns), 201).json()
        assert (answer['sha'], answer['size']) == (body.digest(), body.size)
        stack.admin('files', 'place', ns, 'own')
        wait_until(lambda: is_at(stack, ns, 'own'), PATIENCE_S, 'it is in the store')
        for file in path.glob('*/*'):
            file.unlink(missing_ok=True)
        got, count = hashlib.sha256(), 0
        with stack.http.get(f'{stack.url}/{ns}/doc/{key}', stream=True, timeout=PATIENCE_S) as download:
            for piece in download.iter_content(MIB):
                got.update(piece)
                count += len(piece)
        assert (got.hexdigest(), count) == (answer['sha'], body.size)
        stack.admin('files', 'place', ns, 'directory')
        wait_until(lambda: is_at(stack, ns, None), PATIENCE_S, 'it is in the directory')
    return watch.peaks


@pytest.mark.parametrize('ns', ['lab', 'vault'])
def test_memory_stays_flat(stored, ns):
    stored.put(ns, {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]})
    small, large = pass_through(stored, ns, SMALL), pass_through(stored, ns, LARGE)
    names = {'stampd', 'stampd-mover', 'nginx'} | ({'stampd-decrypt'} if ns == 'vault' else set())
    assert names <= set(small) & set(large), (small, large)
    for name in set(small) & set(large):
        assert large[name] < small[name] + MORE_KB, (name, small, large)

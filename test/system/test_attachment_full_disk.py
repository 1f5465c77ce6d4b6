"""A disk that is full while files of attachments are uploaded, continued, imported, or brought back from an object store: a refusal in words, nothing
that is half there, and all of it when there is room again."""
import os

import pytest

from object_service import Service
from stack import PATIENCE_S, give, refused, wait_until
from test_attachment_http import checked, fetch, send, sha, store
from test_attachments import assert_exact
from test_task_full_disk import Disk
from test_uploads import create, offset, patch

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'empty': 'open'},
         'settings': {'limit_blob_bytes': 64 << 20, 'keep_interval_s': 3600, 'object_stores_interval_s': 1, 'limit_client_connections': 0}}
LARGE = os.urandom(3 << 20)


@pytest.fixture(scope='module')
def full_disk(stack):
    """A file system of 16 MiB that has the files."""
    disk, service, stores = Disk(stack.path / 'disk', os.geteuid()), Service(), stack.path / 'etc/stores'
    if not disk.is_mounted:
        pytest.skip(f'a file system of its own is needed, which takes root or sudo: {disk.words}')
    folder = disk.path / 'attached'
    folder.mkdir()
    give(folder)
    stores.write_text(service.section('own'))
    stores.chmod(0o600)
    give(stores)
    stack.set(blob_directory=folder, object_stores_file=stores)
    stack.reload_nginx()
    disk.folder, disk.service = folder, service
    yield disk
    stack.step('stampd', 'stop', 'now')
    stack.step('nginx', 'stop', 'now')
    service.stop()
    disk.remove()


@pytest.fixture
def disk(stack, full_disk):
    """With a document whose file was there before."""
    stack.put('lab', {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]})
    store(stack, 'Note/n/file/before', b'before')
    yield full_disk
    full_disk.clear()
    full_disk.service.always = None
    stack.put('lab', {'c': 'Note', 'id': 'n', 'delete': True})


def names(disk, ns='lab'):
    """All files, also unfinished ones."""
    return {path.name for path in (disk.folder / f'stampd_{ns}').rglob('*') if path.is_file()}


def is_full(stack, action, *arguments, **more):
    problem = refused('XFULL', action, stack, *arguments, status=507, **more)
    assert 'Retry-After' not in problem.response.headers or int(problem.response.headers['Retry-After']) > 0


def test_an_upload_is_refused_and_leaves_nothing(stack, disk):
    before = names(disk)
    disk.fill()
    is_full(stack, store, 'Note/n/file/large', LARGE)
    form = {'files': {'param': (None, '{"docs":[{"c":"Note","id":"n","items":[{"c":"P","k":"form","file":"f"}]}]}'), 'f': ('f', LARGE[:1 << 20], 'text/plain')}}
    answer = stack.http.post(f'{stack.url}/lab/op/put', timeout=PATIENCE_S, **form)
    assert answer.status_code == 507 and answer.json()['code'] == 'XFULL'
    assert names(disk) == before and fetch(stack, 'Note/n/file/before').content == b'before'
    assert [item['k'] for item in stack.get('lab', ('Note', 'n'))['items'] if item['c'] == 'P'] == ['before']
    disk.clear()
    store(stack, 'Note/n/file/large', LARGE)
    assert stack.http.post(f'{stack.url}/lab/op/put', timeout=PATIENCE_S, **form).status_code == 200
    assert fetch(stack, 'Note/n/file/large').content == LARGE and fetch(stack, 'Note/n/file/form').content == LARGE[:1 << 20]
    assert_exact(stack, 'lab')


def test_an_upload_in_parts_goes_on_where_it_was(stack, disk):
    path = create(stack, 'Note/n', len(LARGE), 'parts').headers['Location']
    checked(patch(stack, path, 0, LARGE[:1000]), 204)
    disk.fill()
    answer = patch(stack, path, 1000, LARGE[1000:])
    assert answer.status_code == 507 and answer.json()['code'] == 'XFULL'
    at = offset(stack, path)
    assert 1000 <= at < len(LARGE) and send(stack, 'GET', 'Note/n/file/parts').status_code == 404
    disk.clear()
    checked(patch(stack, path, at, LARGE[at:]), 204)
    assert fetch(stack, 'Note/n/file/parts').content == LARGE


def test_an_import_goes_on(stack, disk, tmp_path):
    store(stack, 'Note/n/file/large', LARGE)
    stack.admin('export', 'lab', tmp_path / 'archive')
    disk.fill()
    assert 'No space left' in stack.admin('import', 'empty', tmp_path / 'archive', status=1).error
    assert not [name for name in names(disk, 'empty') if name == sha(LARGE)]
    disk.clear()
    stack.admin('import', 'empty', tmp_path / 'archive')
    assert fetch(stack, 'Note/n/file/large', ns='empty').content == LARGE and fetch(stack, 'Note/n/file/before', ns='empty').content == b'before'
    stack.admin('verify', '--ns', 'empty')


def test_a_file_stays_in_its_store_until_there_is_room(stack, disk):
    store(stack, 'Note/n/file/large', LARGE)

    def place():
        return stack.psql('lab', "select store from blob where digest = decode(%s, 'hex')", (sha(LARGE),))[0][0]

    stack.admin('files', 'place', 'lab', 'own')
    wait_until(lambda: place() == 'own', PATIENCE_S, 'it is in the store')
    (disk.folder / 'stampd_lab' / sha(LARGE)[:2] / sha(LARGE)).unlink()
    disk.fill()
    reads = len(disk.service.requests)
    stack.admin('files', 'place', 'lab', 'directory')
    wait_until(lambda: len(disk.service.requests) > reads and 'space' in stack.log().lower(), PATIENCE_S, 'an attempt')
    assert place() == 'own' and sha(LARGE) not in names(disk) and fetch(stack, 'Note/n/file/large').content == LARGE
    disk.clear()
    wait_until(lambda: place() is None, PATIENCE_S, 'it is in the directory')
    assert fetch(stack, 'Note/n/file/large').content == LARGE

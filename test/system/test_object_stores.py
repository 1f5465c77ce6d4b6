"""`stampctl files`: copies of attachments in an object store, with a server from the npm registry, and with one that checks signatures, is
slow or away, and lies."""
import hashlib
import shutil
import socket
import threading

import pytest

from object_service import S3rver, Service
from stack import free_port, give
from test_attachment_http import files, store
from web import FETCHES

pytestmark = [pytest.mark.plain, FETCHES]

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'limit_blob_bytes': 64 << 20}}
PIECE = 8 << 20
CONTENTS = [b'', b'small', bytes(range(256)) * 40000, b'p' * PIECE, b'q' * (2 * PIECE), b'r' * (PIECE + 1)]
FOLDER = 'stampd_lab'


def sha(content):
    return hashlib.sha256(content).hexdigest()


NAMES = {f'{FOLDER}/{sha(content)}': content for content in CONTENTS}


@pytest.fixture(scope='module')
def lab(stack):
    """Files of each kind: empty, small, of one part exactly, of several."""
    stack.put('lab', {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]})
    for number, content in enumerate(CONTENTS):
        store(stack, f'Note/n/file/f{number}', content)
    return stack


@pytest.fixture
def own(lab):
    service = Service()
    name_stores(lab, service.section())
    yield service
    service.stop()
    assert not service.refused


def name_stores(stack, *sections):
    path = stack.path / 'etc/stores'
    if stack.settings.get('object_stores_file') != path:
        path.write_text('')
        path.chmod(0o600)
        give(path)
        stack.set(object_stores_file=path)
    path.write_text('\n'.join(sections))
    path.chmod(0o600)
    return path


def root(stack):
    return stack.path / 'files' / FOLDER


def path_of(stack, content):
    return root(stack) / sha(content)[:2] / sha(content)


def lose(stack):
    """All files, as when the disk is new."""
    for shelf in root(stack).iterdir():
        shutil.rmtree(shelf)


@pytest.fixture
def kept(lab, tmp_path):
    """The files come back after the test."""
    shutil.copytree(root(lab), tmp_path / 'kept')
    yield
    shutil.rmtree(root(lab))
    shutil.copytree(tmp_path / 'kept', root(lab))
    for folder in [root(lab), *root(lab).rglob('*')]:
        shutil.chown(folder, root(lab).parent.stat().st_uid, root(lab).parent.stat().st_gid)


# --- there and back ---

def test_files_pass_to_a_server_of_the_registry_and_back(lab, kept):
    server = S3rver(lab.path)
    try:
        name_stores(lab, server.section())
        assert 'can be written' in lab.stampctl('files', 'check', 'near').out
        assert lab.admin('files', 'copy', 'lab', 'near').out.startswith(f'lab: {len(CONTENTS)} files copied, {sum(map(len, CONTENTS))} bytes')
        assert lab.admin('files', 'copy', 'lab', 'near').out == f'lab: 0 files copied, 0 bytes; {len(CONTENTS)} already there\n'
        assert f'{len(CONTENTS)} files read' in lab.admin('files', 'verify', 'lab', 'near').out
        lose(lab)
        assert f'{len(CONTENTS)} files fetched' in lab.admin('files', 'fetch', 'lab', 'near').out
        assert files(lab) == set(map(sha, CONTENTS))
        assert f'{len(CONTENTS)} files read' in lab.admin('files', 'verify', 'lab').out
    finally:
        server.stop()
    for number, content in enumerate(CONTENTS):
        answer = lab.http.get(f'{lab.url}/lab/doc/Note/n/file/f{number}')
        assert answer.status_code == 200 and answer.content == content


def test_fetched_files_are_like_uploaded_ones(lab, own, kept):
    before = {path: (path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in root(lab).rglob('*')}
    lab.admin('files', 'copy', 'lab', 'own')
    lose(lab)
    lab.admin('files', 'fetch', 'lab', 'own')
    assert {path: (path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in root(lab).rglob('*')} == before


@pytest.mark.parametrize('more', [{}, {'prefix': 'site-1/files/'}, {'path_style': 'off', 'host': 'localhost'}, {'region': 'eu-central-1'}])
def test_requests_are_signed_and_objects_named_by_digest(lab, own, more):
    name_stores(lab, own.section(**more))
    lab.admin('files', 'copy', 'lab', 'own')
    assert own.objects == {more.get('prefix', '') + name: content for name, content in NAMES.items()} and not own.uploads
    assert f'{len(CONTENTS)} files read' in lab.admin('files', 'verify', 'lab', 'own').out
    lab.stampctl('files', 'check', 'own')
    assert len(own.objects) == len(NAMES)


def test_an_interrupted_copy_goes_on(lab, own):
    state = {'left': 9}

    def end(handler):
        state['left'] -= 1
        return state['left'] < 0 and handler.refuse(403, 'AccessDenied')

    own.always = end
    said = lab.admin('files', 'copy', 'lab', 'own', status=1)
    assert 'AccessDenied' in said.error and 'run the command again' in said.out and len(own.objects) < len(CONTENTS)
    own.always = None
    there = len(own.objects)
    assert f'; {there} already there' in lab.admin('files', 'copy', 'lab', 'own').out
    assert own.objects == NAMES


def test_an_object_that_is_cut_off_is_written_again(lab, own):
    lab.admin('files', 'copy', 'lab', 'own')
    own.objects[f'{FOLDER}/{sha(b"small")}'] = b'smal'
    assert lab.admin('files', 'verify', 'lab', 'own', status=1).error.count('missing or truncated') == 1
    assert 'lab: 1 files copied' in lab.admin('files', 'copy', 'lab', 'own').out
    assert own.objects == NAMES


# --- damage and lies ---

def test_a_damaged_file_is_found_and_not_copied(lab, own, kept):
    path = path_of(lab, b'small')
    path.chmod(0o600)
    path.write_bytes(b'smalL')
    said = lab.admin('files', 'copy', 'lab', 'own', status=1)
    assert f'{sha(b"small")}: the bytes do not match the digest' in said.error and '1 are missing or damaged' in said.out
    assert own.objects == {name: content for name, content in NAMES.items() if content != b'small'}
    assert sha(b'small') in lab.admin('files', 'verify', 'lab', status=1).error
    path.unlink()
    assert f'{sha(b"small")}: missing or truncated' in lab.admin('files', 'verify', 'lab', status=1).error


@pytest.mark.parametrize('content', [b'small', CONTENTS[4]], ids=['small', 'large'])
def test_what_a_store_returns_is_checked(lab, own, kept, content):
    lab.admin('files', 'copy', 'lab', 'own')
    name = f'{FOLDER}/{sha(content)}'
    own.objects[name] = content[:-1] + b'!'
    assert f'{sha(content)}: the bytes do not match the digest' in lab.admin('files', 'verify', 'lab', 'own', status=1).error
    lose(lab)
    said = lab.admin('files', 'fetch', 'lab', 'own', status=1)
    assert f'{sha(content)}: the bytes do not match the digest' in said.error
    assert files(lab) == set(map(sha, CONTENTS)) - {sha(content)}
    assert not list((root(lab) / 'new').glob('*'))


@pytest.mark.parametrize('lie', [
    lambda handler: handler.command == 'GET' and handler.answer(200, b'x' * 200),             # more than there is
    lambda handler: handler.command == 'GET' and handler.answer(200, b'x' * 128),             # something else
    lambda handler: handler.command == 'PUT' and handler.answer(200),                         # forgotten
    lambda handler: handler.command == 'DELETE' and handler.answer(204),                      # still there
], ids=['longer', 'other', 'forgotten', 'still there'])
def test_check_finds_a_store_that_lies(lab, own, lie):
    own.always = lie
    said = lab.stampctl('files', 'check', 'own', status=1)
    assert said.error.startswith('stampctl: own: it ') and not said.out


def test_an_upload_that_was_not_completed_is_given_up(lab, own):
    """A failure that follows the status 200."""
    own.always = lambda handler: handler.command == 'POST' and 'uploadId' in handler.path and handler.answer(
        200, b'<?xml version="1.0"?>\n<Error><Code>InternalError</Code></Error>')
    assert 'InternalError' in lab.admin('files', 'copy', 'lab', 'own', status=1).error
    assert not own.uploads and all(len(content) <= PIECE for content in own.objects.values())


def cut_off(handler):
    """Half an answer."""
    if handler.command != 'GET':
        return False
    handler.answer(200, b'half', length=1000)
    handler.close_connection = True
    return True


@pytest.mark.parametrize('lie, words', [
    (cut_off, 'no answer: '),
    (lambda handler: handler.command == 'GET' and handler.answer(200, b'y' * (PIECE + 1)), 'its answer is too large'),
    (lambda handler: handler.headers['Range'] and handler.answer(200, b'z' * PIECE), 'it ignores ranges'),
    (lambda handler: handler.command == 'GET' and handler.answer(206 if handler.headers['Range'] else 200, b'12'), 'another size than the file'),
    (lambda handler: handler.command == 'GET' and handler.refuse(403, 'AccessDenied'), 'status 403, AccessDenied'),
    (lambda handler: handler.command == 'HEAD' and handler.answer(200, length=3), 'missing or truncated'),
], ids=['half', 'longer', 'whole', 'shorter', '403', 'length'])
def test_no_wrong_file_appears(lab, own, kept, lie, words):
    lab.admin('files', 'copy', 'lab', 'own')
    lose(lab)
    own.always = lie
    assert words in lab.admin('files', 'fetch', 'lab', 'own', status=1).error
    for path in root(lab).rglob('*'):
        assert path.is_dir() or sha(path.read_bytes()) == path.name
    assert words in lab.admin('files', 'verify', 'lab', 'own', status=1).error


# --- slow, away, unwilling ---

@pytest.mark.parametrize('trouble', [
    lambda handler: handler.refuse(503, 'SlowDown'),
    lambda handler: handler.refuse(429, 'TooManyRequests', Retry_After='1'),
    lambda handler: handler.connection.shutdown(socket.SHUT_RDWR) or True,
], ids=['503', '429', 'cut'])
def test_a_request_that_fails_for_the_moment_is_repeated(lab, own, trouble):
    own.troubles = [trouble, trouble]
    lab.stampctl('files', 'check', 'own')
    assert len(own.requests) == 7


def test_a_store_that_is_away_or_unwilling_is_named(lab, own):
    name_stores(lab, f'[gone]\nendpoint = http://127.0.0.1:{free_port()}\nbucket = b\nkey_id = k\nsecret_key = hidden-word\n')
    said = lab.stampctl('files', 'check', 'gone', status=1)
    assert said.error == 'stampctl: gone: it cannot be written: no answer: it does not let us connect\n'
    own.always = lambda handler: handler.refuse(503, 'SlowDown')
    name_stores(lab, own.section())
    assert 'status 503, SlowDown' in lab.stampctl('files', 'check', 'own', status=1).error
    assert 'status 503' in lab.admin('files', 'copy', 'lab', 'own', status=1).error


def test_a_store_that_hangs_is_left(lab, own):
    over = threading.Event()
    own.always = lambda handler: over.wait() or True
    try:
        said = lab.admin('files', 'verify', 'lab', 'own', '--timeout', '1', status=1)
    finally:
        over.set()
    assert 'no answer: the time was over' in said.error


def test_a_wrong_key_is_refused_and_not_shown(lab, own):
    name_stores(lab, own.section(secret='another-secret'))
    said = lab.stampctl('files', 'check', 'own', status=1)
    assert 'SignatureDoesNotMatch' in said.error and 'another-secret' not in said.text
    assert own.refused
    own.refused.clear()


# --- the file of stores ---

@pytest.mark.parametrize('section, problem', [
    ('[own]\nendpoint = ftp://a\nbucket = b\nkey_id = k\nsecret_key = s', 'endpoint'),
    ('[own]\nendpoint = http://a/b\nbucket = b\nkey_id = k\nsecret_key = s', 'endpoint'),
    ('[own]\nendpoint = http://a\nbucket = b/c\nkey_id = k\nsecret_key = s', 'bucket'),
    ('[own]\nendpoint = http://a\nbucket = b\nprefix = /p\nkey_id = k\nsecret_key = s', 'prefix'),
    ('[own]\nendpoint = http://a\nbucket = b\nkey_id = k\nsecret_key = s\npath_style = perhaps', 'path_style'),
    ('[own]\nendpoint = http://a\nbucket = b\nkey_id = k\nsecret_key = s\npassword = hidden-word', 'password'),
    ('[own]\nendpoint = http://a\nbucket = b\nkey_id = k', 'secret_key'),
    ('[other]\nendpoint = http://a', 'no store [own]'),
    ('endpoint', ':1:'),
    ('endpoint = http://a', 'expected a section'),
])
def test_a_wrong_section_is_refused(lab, section, problem):
    name_stores(lab, section)
    said = lab.stampctl('files', 'check', 'own', status=1)
    assert problem in said.error and said.error.count('\n') == 1 and 'hidden-word' not in said.error


def test_the_file_of_stores_is_closed_to_others(lab, own):
    name_stores(lab, own.section()).chmod(0o604)
    assert 'any user may read or write it' in lab.stampctl('files', 'check', 'own', status=1).error and not own.requests
    (lab.path / 'etc/stores').unlink()
    assert 'No such file' in lab.stampctl('files', 'check', 'own', status=1).error
    lab.set(object_stores_file='')
    assert 'object_stores_file is empty' in lab.stampctl('files', 'check', 'own', status=1).error


def test_a_namespace_that_is_not_there(lab, own):
    assert lab.admin('files', 'copy', 'nope', 'own', status=1).error
    assert not own.requests

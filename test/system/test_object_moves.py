"""Files that are moved to an object store that is away, refuses or lies; the end of files and of a namespace that has some there."""
import socket
import subprocess

import pytest

from object_places import STACK, all_places, metric, moved, places
from stack import PATIENCE_S, wait_until
from test_attachment_files import LONG_AGO
from test_attachment_http import checked, fetch, send, sha, store

pytestmark = pytest.mark.plain


# --- stores that are away, or lie, when files are moved ---

@pytest.mark.parametrize('trouble', [
    lambda handler: handler.command == 'PUT' and handler.answer(200, ETag='"1"'),                           # it forgets
    lambda handler: handler.command == 'GET' and handler.answer(200, b'another!!!'),                        # it alters
    lambda handler: handler.command == 'HEAD' and handler.answer(200, length=3),                            # it cuts off
    lambda handler: handler.command in ('PUT', 'POST') and handler.refuse(403, 'AccessDenied'),
], ids=['forgets', 'alters', 'cuts', 'refuses'])
def test_a_file_stays_until_its_copy_was_read_back(places, trouble):
    places.add('f', b'0123456789')
    places.own.always = trouble
    failures = metric(places.stack, 'object_store_failures')
    places.place('own')
    wait_until(lambda: metric(places.stack, 'object_store_failures') > failures + 1, PATIENCE_S, 'two attempts')
    places.age()
    assert places.is_in(None) and places.local(b'0123456789')
    places.check()
    places.own.always = None
    places.settle('own')
    places.check()


def test_uploads_go_on_while_a_store_is_away(moved):
    moved.own.always = lambda handler: handler.connection.shutdown(socket.SHUT_RDWR) or True
    failures = metric(moved.stack, 'object_store_failures')
    moved.add('g', b'meanwhile')
    assert fetch(moved.stack, 'Note/n/file/g').content == b'meanwhile'
    wait_until(lambda: metric(moved.stack, 'object_store_failures') > failures, PATIENCE_S, 'an attempt')
    assert fetch(moved.stack, 'Note/n/file/g').content == b'meanwhile'
    moved.own.always = None
    wait_until(lambda: moved.is_settled('own'), PATIENCE_S, 'it is sent')
    moved.check()


def test_a_damaged_object_does_not_come_back(moved):
    (_, name, _), = moved.row(b'0123456789')
    right, moved.own.objects[name] = moved.own.objects[name], b'012345678X'
    failures = metric(moved.stack, 'object_store_failures')
    moved.place('directory')
    wait_until(lambda: metric(moved.stack, 'object_store_failures') > failures, PATIENCE_S, 'an attempt')
    assert moved.is_in('own') and not moved.local(b'0123456789')
    assert sha(b'0123456789') in moved.stack.admin('files', 'verify', 'lab', status=1).error
    moved.own.objects[name] = right


def test_a_damaged_file_is_not_sent(places):
    places.add('f', b'0123456789')
    path = places.local(b'0123456789')
    path.chmod(0o640)
    path.write_bytes(b'012345678X')
    failures = metric(places.stack, 'object_store_failures')
    places.place('own')
    wait_until(lambda: metric(places.stack, 'object_store_failures') > failures, PATIENCE_S, 'an attempt')
    assert places.is_in(None) and path.exists()
    path.write_bytes(b'0123456789')
    wait_until(lambda: places.is_settled('own'), PATIENCE_S, 'it is sent')


# --- the cleaner, uploads of the same bytes, the end of a namespace ---

def test_the_object_of_a_file_that_nothing_refers_to_is_removed(moved):
    moved.add('stays', b'stays')
    wait_until(lambda: moved.is_settled('own'), PATIENCE_S, 'it is sent')
    checked(send(moved.stack, 'DELETE', 'Note/n/file/f'), 200)
    moved.stack.psql('lab', f'delete from blob_claim; delete from blob_ref where ended is not null; update blob set touched = {LONG_AGO}')
    content = moved.contents.pop('f')
    wait_until(lambda: moved.age() or not moved.row(content), PATIENCE_S, 'the row is gone')
    wait_until(lambda: moved.age() or len(moved.own.objects) == 1, PATIENCE_S, 'the object is gone')
    moved.check()


def test_an_upload_of_bytes_that_are_away_is_one_file(moved):
    moved.add('again', b'0123456789')
    moved.check()
    wait_until(lambda: moved.is_settled('own'), PATIENCE_S, 'the directory loses it again')
    moved.check()
    assert sum(sha(b'0123456789') in name for name in moved.own.objects) == 1


def test_an_archive_has_files_that_are_away(moved):
    archive = moved.stack.path / 'away.archive'
    moved.stack.admin('export', 'lab', archive, '--level', '1')
    assert moved.stack.admin('verify', archive, '--ns', 'lab').out
    packed = subprocess.run(['zstd', '-dc', archive], capture_output=True, check=True).stdout
    assert b'0123456789' in packed


def test_objects_end_with_their_namespace(places):
    stack = places.stack
    stack.admin('ns', 'create', 'short', '--access', 'open')
    stack.step('nginx', 'refresh')
    stack.reload_nginx()
    wait_until(lambda: stack.http.get(f'{stack.url}/short/ping').status_code == 200, PATIENCE_S, 'the namespace')
    stack.put('short', {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]})
    store(stack, 'Note/n/file/f', b'of short', ns='short')
    stack.admin('files', 'place', 'short', 'own')
    wait_until(lambda: any(name.startswith('stampd_short/') for name in list(places.own.objects)), PATIENCE_S, 'it is sent')
    wait_until(lambda: stack.psql('short', 'select 1 from blob where store is not null'), PATIENCE_S, 'it is noted')
    stack.admin('ns', 'drop', 'short', '--yes')
    assert not any(name.startswith('stampd_short/') for name in places.own.objects)


def test_wrong_places_are_refused(places):
    stack = places.stack
    assert 'no store [nowhere]' in stack.admin('files', 'place', 'lab', 'nowhere', status=1).error
    assert stack.admin('files', 'place', 'nope', 'own', status=1).error
    assert 'belong in: directory' in stack.admin('files', 'place', 'lab').out

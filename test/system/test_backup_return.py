"""`stampctl backup return`: after a restore, files are returned to the store and the directory that their tables name; what cannot be returned
is named, and nothing that is wrong is written."""
import os
import shutil
import socket

import pytest

from backup_places import PIECE, STACK, all_places, backup, folder, lose, places, writes  # noqa: F401
from object_service import Service
from test_attachment_http import send, sha

pytestmark = [pytest.mark.plain, pytest.mark.skipif(not shutil.which('pgbackrest'), reason='there is no pgBackRest')]


def test_lost_objects_are_returned_under_their_names(places, folder):
    contents = [b'', b'small', os.urandom(2 * PIECE + 1), b'stays']
    places.send(*contents)
    folder.files()
    lost = lose(places, *contents[:-1])
    before = dict(places.own.objects)
    assert send(places.stack, 'GET', f'Note/n/file/sha/{sha(b"small")}').status_code == 503
    said = folder.give_back().out
    assert ' 3 files of' in said and '; 1 were there' in said
    assert places.own.objects == {**before, **lost} and not places.own.uploads
    places.check()
    asked = len(writes(places.own))
    assert ' 0 files of' in folder.give_back().out and len(writes(places.own)) == asked


def test_a_new_bucket_is_filled(places, folder):
    """The section of the store names another one, as after the loss of the first, or on a host where a restore is tried."""
    places.send(*(f'filled {number}'.encode() for number in range(3)))
    folder.files()
    new, old = Service(), places.own
    try:
        places.own = new
        places.name_store()
        before = dict(old.objects)
        assert ' 3 files of' in folder.give_back().out
        assert new.objects == before == old.objects and not new.refused
    finally:
        places.own = old
        places.name_store()
        new.stop()


def test_files_of_the_directory_are_returned_too(places, folder):
    """At the time of the restore they were there, when they were copied a store had them."""
    places.send(b'comes back')
    folder.files()
    places.bring(b'comes back')
    path = places.local(b'comes back')
    before = path.stat()
    path.unlink()
    assert ' 1 files of' in folder.give_back().out
    after = path.stat()
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid) and after.st_mode & 0o777 == 0o440
    places.check()


def test_what_cannot_be_returned_is_named(places, folder):
    places.send(b'whole', b'altered', b'absent')
    folder.files()
    lose(places, b'whole', b'altered', b'absent')
    folder.copy(b'altered').write_bytes(b'Altered')
    folder.copy(b'absent').unlink()
    said = folder.give_back(status=1)
    for content in (b'altered', b'absent'):
        assert f'{sha(content)}: missing in the object store own, and the backup has no sound copy' in said.error
    assert ' 1 files of' in said.out and '2 are missing' in said.out
    assert list(places.own.objects.values()) == [b'whole'], 'nothing that is wrong was written'
    folder.copy(b'altered').write_bytes(b'altered')
    folder.copy(b'absent').write_bytes(b'absent')
    folder.give_back()
    places.check()


def test_files_with_other_bytes_are_replaced_on_request(places, folder):
    """Sizes alone do not show them."""
    places.send(b'in the store')
    places.add(b'in the folder', b'sound')
    folder.files()
    name, path = places.name(b'in the store'), places.local(b'in the folder')
    places.own.objects[name] = b'In the store'
    path.chmod(0o600)
    path.write_bytes(b'In the folder')
    assert '; 3 were there' in folder.give_back().out and places.own.objects[name] == b'In the store'
    said = folder.give_back('--verify').out
    assert ' 2 files of' in said and '; 1 were there' in said
    assert places.own.objects[name] == b'in the store' and path.read_bytes() == b'in the folder'
    places.check()
    places.own.objects[name] = b'In the store'
    folder.copy(b'in the store').write_bytes(b'in The store')
    said = folder.give_back('--verify', status=1)
    assert f'{sha(b"in the store")}: altered in the object store own, and the backup has no sound copy' in said.error
    assert places.own.objects[name] == b'In the store', 'nothing that is wrong was written'
    folder.copy(b'in the store').write_bytes(b'in the store')
    assert ' 1 files of' in folder.give_back('--verify').out


@pytest.mark.parametrize('trouble, words', [
    (lambda handler: handler.connection.shutdown(socket.SHUT_RDWR) or True, 'no answer'),
    (lambda handler: handler.command == 'PUT' and handler.refuse(403, 'AccessDenied'), 'AccessDenied'),
    (lambda handler: handler.command == 'PUT' and handler.answer(200, ETag='"1"'), 'does not have what was written'),
], ids=['away', 'refuses', 'forgets'])
def test_a_store_that_takes_nothing_back_is_named(places, backup, trouble, words):
    places.send(b'lost')
    backup.files()
    lose(places, b'lost')
    places.own.always = trouble
    said = backup.give_back(status=1)
    assert words in said.error and 'not finished: run the command again' in said.out
    places.own.always = None
    backup.give_back()
    places.check()


# --- what goes wrong with the copies ---

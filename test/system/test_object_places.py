"""Files of a running namespace in an object store: moved there and back while they are read, whatever the store does, wherever the mover is
killed."""
import base64
import hashlib
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from object_service import S3rver, Service
from stack import PATIENCE_S, give, refused, wait_until
from test_attachment_files import LONG_AGO
from test_attachment_http import checked, digest, fetch, send, sha, store

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'shut': 'closed'},
         'settings': {'limit_blob_bytes': 64 << 20, 'keep_interval_s': 1, 'restart_young_ms': 0, 'limit_client_connections': 0}}
PIECE = 8 << 20
POINTS = ['mover-begun', 'mover-written', 'mover-noted', 'mover-leaving', 'mover-dropped', 'mover-brought', 'mover-removed', 'mover-released']


class Places:
    """Two stores that a test can trouble, and the files of a document."""

    def __init__(self, stack):
        self.stack, self.own, self.other = stack, Service(), Service()
        self.path = stack.path / 'etc/stores'
        self.name_stores()
        stack.put('lab', {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]})
        stack.set(object_stores_file=self.path, object_stores_interval_s=1)
        self.reload_nginx()
        self.contents = {}

    def reload_nginx(self):
        before = set(self.stack.nginx_workers())
        os.kill(self.stack.pid('nginx'), signal.SIGHUP)
        wait_until(lambda: self.stack.nginx_workers() and not before & set(self.stack.nginx_workers()), PATIENCE_S, 'nginx has read its files again')

    def name_stores(self, *more):
        self.path.write_text('\n'.join((self.own.section('own'), self.other.section('other'), *more)))
        self.path.chmod(0o600)
        give(self.path)

    def add(self, key, content):
        store(self.stack, f'Note/n/file/{key}', content, 'image/png')
        self.contents[key] = content

    def place(self, name):
        return self.stack.admin('files', 'place', 'lab', name).out

    def row(self, content):
        return self.stack.psql('lab', "select store, object, removing from blob where digest = decode(%s, 'hex')", (sha(content),))

    def local(self, content):
        path = self.stack.path / 'files/stampd_lab' / sha(content)[:2] / sha(content)
        return path if path.exists() else None

    def is_in(self, name, *contents):
        return all(self.row(content)[0][0] == name for content in contents or self.contents.values())

    def age(self):
        """What is leaving since three seconds may go; who has found it before has read it."""
        for content in self.contents.values():
            path = self.local(content)
            if path and path.stat().st_mode & 0o1000 and path.stat().st_mtime < time.time() - 3:
                os.utime(path, (time.time() - 100, time.time() - 100))
        self.stack.psql('lab', f"update blob_left set since = {LONG_AGO} where since < stamp_of(now() - interval '3 seconds')")

    def is_settled(self, name):
        """All files are there, and nowhere else."""
        self.age()
        contents = {digest for digest, in self.stack.psql('lab', "select encode(digest, 'hex') from blob")}  # those of former tests, too
        objects = {who: {key.split('/')[-1].split('-')[0] for key in service.objects} for who, service in (('own', self.own), ('other', self.other))}
        return (self.is_in(name or None) and not self.stack.psql('lab', 'select 1 from blob_left')
                and all(objects[who] == (contents if who == name else set()) for who in objects)
                and all(bool(self.local(content)) == (not name) for content in self.contents.values()))

    def settle(self, name):
        self.place(name or 'directory')
        wait_until(lambda: self.is_settled(name), PATIENCE_S, f'files in {name or "the directory"}')

    def check(self):
        for key, content in self.contents.items():
            answer = fetch(self.stack, f'Note/n/file/{key}')
            assert answer.status_code == 200 and answer.content == content and answer.headers['Repr-Digest'] == digest(content)

    def forget(self):
        """All files of the namespace, for the next test."""
        self.own.always = self.other.always = None
        self.own.troubles.clear()
        if self.stack.settings.get('debug_die_at'):
            self.stack.set(debug_die_at='')
        self.settle('')
        for key in self.contents:
            checked(send(self.stack, 'DELETE', f'Note/n/file/{key}'), 200)
        self.contents.clear()


@pytest.fixture(scope='module')
def all_places(stack):
    places = Places(stack)
    yield places
    places.own.stop()
    places.other.stop()


@pytest.fixture
def places(all_places):
    yield all_places
    all_places.forget()
    assert not all_places.own.refused and not all_places.other.refused


def metric(stack, name):
    return stack.metrics()[f'stampd_{name}_total']


# --- there, and back ---

@pytest.mark.plain
def test_files_move_there_and_back_while_they_are_read(places):
    for number, content in enumerate([b'', b'small', os.urandom(PIECE + 1)]):
        places.add(f'f{number}', content)
    wrong, ending, reads = [], threading.Event(), [0]

    def read():
        while not ending.is_set():
            for key, content in places.contents.items():
                answer = send(places.stack, 'GET', f'Note/n/file/{key}')
                reads[0] += 1
                if answer.status_code != 200 or answer.content != content:
                    wrong.append((answer.status_code, key, answer.content[:200]))
                time.sleep(0.02)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for name in ('own', 'other', '', 'own'):
            places.settle(name)
    finally:
        ending.set()
        reader.join()
    assert not wrong and reads[0] > 20
    assert 'belong in: own' in places.place('own') and f'own: {len(places.contents)} files' in places.place('own')
    assert places.stack.admin('verify', '--ns', 'lab').out
    assert f'{len(places.contents)} files read' in places.stack.admin('files', 'verify', 'lab').out


@pytest.mark.plain
def test_files_of_a_server_of_the_registry_are_served(places):
    server = S3rver(places.stack.path)
    try:
        places.name_stores(server.section('near'))
        places.stack.set()
        places.reload_nginx()
        places.add('f', b'abc' * 1000)
        places.place('near')
        wait_until(lambda: places.is_in('near'), PATIENCE_S, 'near')
        wait_until(lambda: places.age() or not places.local(b'abc' * 1000), PATIENCE_S, 'the directory loses it')
        places.check()
        answer = fetch(places.stack, 'Note/n/file/f', Range='bytes=3-7')
        assert answer.status_code == 206 and answer.content == b'abcab'
        places.place('directory')
        wait_until(lambda: places.is_in(None), PATIENCE_S, 'back')
        wait_until(lambda: places.age() or not places.stack.psql('lab', 'select 1 from blob_left'), PATIENCE_S, 'the object is removed')
    finally:
        places.name_stores()
        server.stop()


# --- downloads ---

@pytest.fixture
def moved(places):
    places.add('f', b'0123456789')
    places.settle('own')
    return places


@pytest.mark.plain
def test_an_answer_is_the_same_from_both_places(places):
    places.add('f', b'0123456789')
    requests = [{}, {'Range': 'bytes=2-4'}, {'Range': 'bytes=-3'}, {'Range': 'bytes=7-'}, {'If_None_Match': f'"{sha(b"0123456789")}"'},
                {'Range': 'bytes=2-4', 'If_Range': f'"{sha(b"0123456789")}"'}, {'Range': 'bytes=2-4', 'If_Range': f'"{sha(b"other")}"'},
                {'Range': 'bytes=20-'}, {'If_Match': '"1"'}, {'If_Match': f'"{sha(b"0123456789")}"'}, {'If_Match': '*'}]

    def answers():
        return [(method, headers, answer.status_code, answer.content if answer.status_code < 300 else b'',
                 {name: value for name, value in answer.headers.items()
                  if name not in ('Accept-Ranges', 'X-Request-Id', 'Date', 'Server-Timing', 'Connection', 'Content-Length' if answer.status_code > 299 else '',
                                  'Content-Type' if answer.status_code == 416 else '', 'Transfer-Encoding')})
                for method in ('GET', 'HEAD') for headers in requests if method == 'GET' or 'Range' not in headers for answer in [send(places.stack, method, 'Note/n/file/f', **headers)]]

    before = answers()
    places.settle('own')
    for one, two in zip(before, answers()):
        if one[2] == 416:
            assert two[2] == 416 and two[4]['Content-Range'] == 'bytes */10'
        else:
            assert one == two
        assert 'If_Match' not in one[1] or one[2] == (200 if one[1]['If_Match'] == '*' else 412)


@pytest.mark.plain
def test_what_a_store_says_beside_the_bytes_is_not_passed_on(moved):
    moved.own.always = lambda handler: handler.command == 'GET' and handler.answer(
        200, b'0123456789', Set_Cookie='a=b', Content_Type='text/html', ETag='"wrong"', Content_Disposition='inline', Cache_Control='public',
        Content_Security_Policy='none', Access_Control_Allow_Origin='*', X_Amz_Request_Id='1', Content_Encoding='gzip', Location='https://a')
    answer = fetch(moved.stack, 'Note/n/file/f')
    assert answer.content == b'0123456789' and answer.headers['Content-Type'] == 'image/png' and answer.headers['ETag'] == f'"{sha(answer.content)}"'
    assert answer.headers['Content-Security-Policy'] == "sandbox; default-src 'none'" and answer.headers['Cache-Control'].endswith('no-cache')
    assert not {'Set-Cookie', 'Location', 'X-Amz-Request-Id', 'Access-Control-Allow-Origin', 'Content-Encoding'} & set(answer.headers)
    assert not any(name.startswith('X-Stampd-Object') for name in answer.headers)


@pytest.mark.plain
def test_nobody_reaches_a_store_past_the_worker(moved):
    moved.stack.put('shut', {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]}, admin=True)
    asked = len([request for request in moved.own.requests if request[0] == 'GET'])
    (_, name, _), = moved.row(b'0123456789')
    for path in (f'/.stampd/objects/own/files/{name}', f'/lab/../.stampd/objects/own/files/{name}'):
        assert moved.stack.http.get(moved.stack.url + path).status_code in (400, 404, 503)  # 503: nginx's own page of an unusable store
    assert send(moved.stack, 'GET', f'Note/n/file/sha/{sha(b"0123456789")}', ns='shut').status_code in (401, 403)
    assert send(moved.stack, 'GET', f'Note/n/file/sha/{sha(b"0123456789")}', ns='shut', admin=True).status_code == 404
    assert len([request for request in moved.own.requests if request[0] == 'GET']) == asked
    for part in ('nginx-access', 'nginx', 'stampd'):
        for path in moved.stack.path.rglob('*.log'):
            assert b'Signature=' not in path.read_bytes(), path


@pytest.mark.plain
@pytest.mark.parametrize('trouble', [
    lambda handler: handler.refuse(403, 'AccessDenied'), lambda handler: handler.refuse(404, 'NoSuchKey'), lambda handler: handler.refuse(500, 'InternalError'),
    lambda handler: handler.answer(307, Location='https://example.com/'), lambda handler: handler.refuse(503, 'SlowDown')])
def test_a_store_that_refuses_a_download_is_a_fault_of_the_server(moved, trouble):
    moved.own.always = trouble
    answer = send(moved.stack, 'GET', 'Note/n/file/f')
    assert answer.status_code == 503 and answer.json()['code'] == 'XSTORE' and 'Retry-After' in answer.headers and 'Location' not in answer.headers


@pytest.mark.plain
def test_no_worker_waits_for_a_store_that_hangs(moved):
    """More downloads wait than there are workers: all else is answered."""
    over = threading.Event()
    moved.own.always = lambda handler: over.wait(PATIENCE_S) and False
    answers = []
    readers = [threading.Thread(target=lambda: answers.append(send(moved.stack, 'GET', 'Note/n/file/f'))) for _ in range(6)]
    for reader in readers:
        reader.start()
    try:
        wait_until(lambda: sum(request[0] == 'GET' and '-' in request[1] for request in moved.own.requests[-10:]) >= 6, PATIENCE_S, 'they wait')
        moved.add('g', b'another')
        assert fetch(moved.stack, 'Note/n/file/g').content == b'another'
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert [answer.content for answer in answers] == [b'0123456789'] * 6


# --- stores that are away, or lie, when files are moved ---

@pytest.mark.plain
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


@pytest.mark.plain
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


@pytest.mark.plain
def test_a_damaged_object_does_not_come_back(moved):
    (_, name, _), = moved.row(b'0123456789')
    right, moved.own.objects[name] = moved.own.objects[name], b'012345678X'
    failures = metric(moved.stack, 'object_store_failures')
    moved.place('directory')
    wait_until(lambda: metric(moved.stack, 'object_store_failures') > failures, PATIENCE_S, 'an attempt')
    assert moved.is_in('own') and not moved.local(b'0123456789')
    assert sha(b'0123456789') in moved.stack.admin('files', 'verify', 'lab', status=1).error
    moved.own.objects[name] = right


@pytest.mark.plain
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

@pytest.mark.plain
def test_the_object_of_a_file_that_nothing_refers_to_is_removed(moved):
    moved.add('stays', b'stays')
    wait_until(lambda: moved.is_settled('own'), PATIENCE_S, 'it is sent')
    checked(send(moved.stack, 'DELETE', 'Note/n/file/f'), 200)
    moved.stack.psql('lab', f'delete from blob_claim; delete from blob_ref where ended is not null; update blob set touched = {LONG_AGO}')
    content = moved.contents.pop('f')
    wait_until(lambda: moved.age() or not moved.row(content), PATIENCE_S, 'the row is gone')
    wait_until(lambda: moved.age() or len(moved.own.objects) == 1, PATIENCE_S, 'the object is gone')
    moved.check()


@pytest.mark.plain
def test_an_upload_of_bytes_that_are_away_is_one_file(moved):
    moved.add('again', b'0123456789')
    moved.check()
    wait_until(lambda: moved.is_settled('own'), PATIENCE_S, 'the directory loses it again')
    moved.check()
    assert sum(sha(b'0123456789') in name for name in moved.own.objects) == 1


@pytest.mark.plain
def test_an_archive_has_files_that_are_away(moved):
    archive = moved.stack.path / 'away.archive'
    moved.stack.admin('export', 'lab', archive, '--level', '1')
    assert moved.stack.admin('verify', archive, '--ns', 'lab').out
    packed = subprocess.run(['zstd', '-dc', archive], capture_output=True, check=True).stdout
    assert b'0123456789' in packed


@pytest.mark.plain
def test_objects_end_with_their_namespace(places):
    stack = places.stack
    stack.admin('ns', 'create', 'short', '--access', 'open')
    stack.step('nginx', 'refresh')
    places.reload_nginx()
    wait_until(lambda: stack.http.get(f'{stack.url}/short/ping').status_code == 200, PATIENCE_S, 'the namespace')
    stack.put('short', {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]})
    store(stack, 'Note/n/file/f', b'of short', ns='short')
    stack.admin('files', 'place', 'short', 'own')
    wait_until(lambda: any(name.startswith('stampd_short/') for name in places.own.objects), PATIENCE_S, 'it is sent')
    wait_until(lambda: stack.psql('short', 'select 1 from blob where store is not null'), PATIENCE_S, 'it is noted')
    stack.admin('ns', 'drop', 'short', '--yes')
    assert not any(name.startswith('stampd_short/') for name in places.own.objects)


def test_wrong_places_are_refused(places):
    stack = places.stack
    assert 'no store [nowhere]' in stack.admin('files', 'place', 'lab', 'nowhere', status=1).error
    assert stack.admin('files', 'place', 'nope', 'own', status=1).error
    assert 'belong in: directory' in stack.admin('files', 'place', 'lab').out


# --- death ---

@pytest.mark.plain
@pytest.mark.parametrize('point', POINTS)
def test_wherever_the_mover_is_killed_no_file_is_lost(places, point):
    stack = places.stack
    deaths = stack.log().count(f'died at {point},')
    for number in range(3):
        places.add(f'f{number}', f'{point} {number}'.encode())
    if point in ('mover-brought', 'mover-released', 'mover-removed'):
        places.settle('own')
    stack.set(debug_die_at=point)
    if point == 'mover-released':
        checked(send(stack, 'DELETE', 'Note/n/file/f0'), 200)
        stack.psql('lab', f'delete from blob_claim; delete from blob_ref where ended is not null; update blob set touched = {LONG_AGO}')
        places.contents.pop('f0')
    else:
        places.place('directory' if point in ('mover-brought', 'mover-removed') else 'own')
    wait_until(lambda: places.age() or stack.log().count(f'died at {point},') > deaths, PATIENCE_S, point)
    places.check()
    places.place('other' if point == 'mover-released' else 'directory')
    wait_until(lambda: places.age() or places.is_in('other' if point == 'mover-released' else None), PATIENCE_S, 'they are moved')
    places.check()
    places.settle('own')
    places.check()

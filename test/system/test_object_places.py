"""Files of a running namespace in an object store: moved there and back while they are read, and sent from there."""
import os
import threading
import time

import pytest

from object_places import PIECE, STACK, all_places, moved, places
from object_service import S3rver
from stack import PATIENCE_S, wait_until
from test_attachment_http import fetch, send, sha
from web import FETCHES

pytestmark = [pytest.mark.plain, FETCHES]


# --- there, and back ---

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
            wait_until(lambda seen=reads[0]: reads[0] > seen + len(places.contents), what='that all are read there')
    finally:
        ending.set()
        reader.join()
    assert not wrong
    assert 'belong in: own' in places.place('own') and f'own: {len(places.contents)} files' in places.place('own')
    assert places.stack.admin('verify', '--ns', 'lab').out
    assert f'{len(places.contents)} files read' in places.stack.admin('files', 'verify', 'lab').out


def test_files_of_a_server_of_the_registry_are_served(places):
    server = S3rver(places.stack.path)
    try:
        places.name_stores(server.section('near'))
        places.stack.set()
        places.stack.reload_nginx()
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

def test_an_answer_is_the_same_from_both_places(places):
    places.add('f', b'0123456789')
    requests = [{}, {'Range': 'bytes=2-4'}, {'Range': 'bytes=-3'}, {'Range': 'bytes=7-'}, {'If_None_Match': f'"{sha(b"0123456789")}"'},
                {'Range': 'bytes=2-4', 'If_Range': f'"{sha(b"0123456789")}"'}, {'Range': 'bytes=2-4', 'If_Range': f'"{sha(b"other")}"'},
                {'Range': 'bytes=20-'}, {'If_Match': '"1"'}, {'If_Match': f'"{sha(b"0123456789")}"'}, {'If_Match': '*'}]

    def answers():
        return [(method, headers, answer.status_code, answer.content if answer.status_code < 300 else b'',
                 {name: value for name, value in answer.headers.items()
                  if name not in ('Accept-Ranges', 'X-Request-Id', 'Date', 'Server-Timing', 'Connection', 'Content-Length' if answer.status_code > 299 else '',
                                  'Transfer-Encoding')})
                for method in ('GET', 'HEAD') for headers in requests if method == 'GET' or 'Range' not in headers for answer in [send(places.stack, method, 'Note/n/file/f', **headers)]]

    before = answers()
    places.settle('own')
    for one, two in zip(before, answers()):
        if one[2] == 416:
            assert two[2] == 416 and all({**answer[4], 'Content-Range': 'bytes */10', 'Content-Type': 'application/problem+json'} == answer[4] for answer in (one, two))
        else:
            assert one == two
        assert 'If_Match' not in one[1] or one[2] == (200 if one[1]['If_Match'] == '*' else 412)


def test_what_a_store_says_beside_the_bytes_is_not_passed_on(moved):
    moved.own.always = lambda handler: handler.command == 'GET' and handler.answer(
        200, b'0123456789', Set_Cookie='a=b', Content_Type='text/html', ETag='"wrong"', Content_Disposition='inline', Cache_Control='public',
        Content_Security_Policy='none', Access_Control_Allow_Origin='*', X_Amz_Request_Id='1', Content_Encoding='gzip', Location='https://a')
    answer = fetch(moved.stack, 'Note/n/file/f')
    assert answer.content == b'0123456789' and answer.headers['Content-Type'] == 'image/png' and answer.headers['ETag'] == f'"{sha(answer.content)}"'
    assert answer.headers['Content-Security-Policy'] == "sandbox; default-src 'none'" and answer.headers['Cache-Control'].endswith('no-cache')
    assert not {'Set-Cookie', 'Location', 'X-Amz-Request-Id', 'Access-Control-Allow-Origin', 'Content-Encoding'} & set(answer.headers)
    assert not any(name.startswith('X-Stampd-Object') for name in answer.headers)


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


@pytest.mark.parametrize('trouble', [
    lambda handler: handler.refuse(403, 'AccessDenied'), lambda handler: handler.refuse(404, 'NoSuchKey'), lambda handler: handler.refuse(500, 'InternalError'),
    lambda handler: handler.answer(307, Location='https://example.com/'), lambda handler: handler.refuse(503, 'SlowDown')])
def test_a_store_that_refuses_a_download_is_a_fault_of_the_server(moved, trouble):
    moved.own.always = trouble
    answer = send(moved.stack, 'GET', 'Note/n/file/f')
    assert answer.status_code == 503 and answer.json()['code'] == 'XSTORE' and 'Retry-After' in answer.headers and 'Location' not in answer.headers


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

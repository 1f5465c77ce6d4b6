"""Attachments over HTTP: stored as a file under its digest, sent by nginx, judged before a byte is read and in the commit; conditions, digests,
names, types, quotas, shares, broken uploads, death at each step."""
import base64
import hashlib
import os
import re
import shutil
import ssl
import socket
import threading

import pytest

from stack import PATIENCE_S, Problem, Stack, refused, wait_until

STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'shut': 'closed', 'demo': 'read', 'lab': 'open'},
         'settings': {'limit_blob_bytes': 64 << 20, 'restart_young_ms': 0, 'segment_slots': 1024}}
PNG = b'\x89PNG\r\n\x1a\n' + bytes(range(256)) * 8
TEXT = 'héllo\n'.encode()


def sha(content):
    return hashlib.sha256(content).hexdigest()


def digest(content):
    return f'sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:'


def send(stack, method, path, content=None, type=None, ns='lab', admin=False, **headers):
    """`path` follows doc/; the answer."""
    all_headers = {name.replace('_', '-'): value for name, value in headers.items()}
    if type:
        all_headers['Content-Type'] = type
    if admin:
        all_headers['Authorization'] = f'Bearer {stack.key}'
    return stack.http.request(method, f'{stack.url}/{ns}/doc/{path}', data=content, headers=all_headers, timeout=PATIENCE_S)


def checked(answer, *statuses):
    if answer.status_code not in statuses:
        raise Problem(answer)
    return answer


def store(stack, path, content, type='application/octet-stream', **more):
    return checked(send(stack, 'PUT', path, content, type, **more), 200, 201).json()


def fetch(stack, path, **more):
    return checked(send(stack, 'GET', path, **more), 200, 206, 304)


@pytest.fixture
def doc(stack):
    """A document of its own: the path of its attachments."""
    doc.number = getattr(doc, 'number', 0) + 1
    stack.put('lab', {'c': 'Note', 'id': f'n{doc.number}', 'items': [{'c': 'Main', 'j': {}}]})
    return f'Note/n{doc.number}/file'


def files(stack, ns='lab'):
    root = stack.path / 'files' / f'stampd_{ns}'
    return {path.name for path in root.glob('??/*')} if root.exists() else set()


def unfinished(stack, ns='lab'):
    return list((stack.path / f'files/stampd_{ns}/new').glob('*'))


# --- stored and sent ---

def test_what_is_stored_is_sent(stack, doc):
    first = send(stack, 'PUT', f'{doc}/photo.png', PNG, 'image/png')
    assert first.status_code == 201 and first.headers['Location'] == f'/lab/doc/{doc}/photo.png'
    assert first.json() == {'v': first.json()['v'], 'sha': sha(PNG), 'size': len(PNG)} and first.headers['ETag'] == f'"{sha(PNG)}"'
    item = [item for item in stack.get('lab', ('Note', doc.split('/')[1]))['items'] if item['c'] == 'P']
    assert item == [{'c': 'P', 'k': 'photo.png', 'v': first.json()['v'], 'j': {'mime': 'image/png', 'size': len(PNG), 'sha': sha(PNG)}}]
    for path in ('photo.png', f'sha/{sha(PNG)}'):
        answer = fetch(stack, f'{doc}/{path}')
        assert answer.content == PNG and answer.headers['Content-Type'] == 'image/png' and answer.headers['ETag'] == f'"{sha(PNG)}"'
        assert answer.headers['Repr-Digest'] == answer.headers['Content-Digest'] == digest(PNG)
        assert answer.headers['X-Content-Type-Options'] == 'nosniff' and 'sandbox' in answer.headers['Content-Security-Policy']
        assert answer.headers['Content-Disposition'] == 'inline; filename="photo.png"' and 'Last-Modified' not in answer.headers
        head = send(stack, 'HEAD', f'{doc}/{path}')
        assert head.headers['Content-Length'] == str(len(PNG)) and not head.content and head.headers['ETag'] == answer.headers['ETag']
    assert sha(PNG) in files(stack) and not unfinished(stack)


def test_parts_of_a_file_and_copies_that_clients_have(stack, doc):
    content = os.urandom(300000)
    store(stack, f'{doc}/blob', content)
    tag = f'"{sha(content)}"'
    part = fetch(stack, f'{doc}/blob', Range='bytes=1000-1999')
    assert part.status_code == 206 and part.content == content[1000:2000] and part.headers['Content-Range'] == f'bytes 1000-1999/{len(content)}'
    assert 'Content-Digest' not in part.headers and part.headers['Repr-Digest'] == digest(content)
    assert fetch(stack, f'{doc}/blob', Range='bytes=-5', If_Range=tag).content == content[-5:]
    assert fetch(stack, f'{doc}/blob', Range='bytes=-5', If_Range='"other"').content == content
    held = fetch(stack, f'{doc}/blob', If_None_Match=tag)
    assert held.status_code == 304 and not held.content and held.headers['ETag'] == tag
    assert fetch(stack, f'{doc}/blob', If_None_Match='"1"').status_code == 200
    assert fetch(stack, f'{doc}/blob', If_Modified_Since='Fri, 01 Jan 2100 00:00:00 GMT').status_code == 200


def test_an_empty_file_is_a_file(stack, doc):
    assert store(stack, f'{doc}/empty', b'')['size'] == 0
    assert fetch(stack, f'{doc}/empty').content == b''


def test_a_replaced_file_is_another(stack, doc):
    store(stack, f'{doc}/a', b'one', 'text/plain')
    again = send(stack, 'PUT', f'{doc}/a', b'two', 'text/plain')
    assert again.status_code == 200 and fetch(stack, f'{doc}/a').content == b'two'
    version = again.json()['v']
    assert store(stack, f'{doc}/a', b'two', 'text/plain')['v'] == version  # nothing has changed
    gone = checked(send(stack, 'DELETE', f'{doc}/a'), 200).json()
    assert gone['v'] > version
    refused('NATTACHMENT', fetch, stack, f'{doc}/a', status=404)
    refused('NATTACHMENT', lambda: checked(send(stack, 'DELETE', f'{doc}/a'), 200), status=404)


def test_documents_and_addresses_that_are_not_there(stack, doc):
    refused('NDOCUMENT', store, stack, 'Note/absent/file/a', b'x', status=404)
    refused('NDOCUMENT', fetch, stack, 'Note/absent/file/a', status=404)
    refused('NATTACHMENT', fetch, stack, f'{doc}/sha/{sha(b"never")}', status=404)
    refused('AMETHOD', store, stack, f'{doc}/sha/{sha(b"x")}', b'x', status=405)
    refused('AMETHOD', lambda: checked(send(stack, 'PATCH', f'{doc}/a', b'x'), 200), status=405)
    assert send(stack, 'OPTIONS', f'{doc}/a').headers['Allow'] == 'GET, HEAD, PUT, DELETE, OPTIONS'
    for path in (f'{doc}', f'{doc}/a/b', f'{doc}/sha', f'{doc}/sha/a/b'):
        assert send(stack, 'GET', path).status_code in (404,), path


# --- conditions and digests ---

def test_conditions_are_on_the_digest_or_the_version(stack, doc):
    store(stack, f'{doc}/a', b'one', If_None_Match='*')
    refused('AVERSION', store, stack, f'{doc}/a', b'two', If_None_Match='*', status=412)
    refused('AVERSION', store, stack, f'{doc}/b', b'two', If_Match='*', status=412)
    refused('AVERSION', store, stack, f'{doc}/a', b'two', If_Match=f'"{sha(b"other")}"', status=412)
    version = store(stack, f'{doc}/a', b'two', If_Match=f'"{sha(b"one")}"')['v']
    refused('AVERSION', store, stack, f'{doc}/a', b'three', If_Match=f'"{version - 1}"', status=412)
    store(stack, f'{doc}/a', b'three', If_Match=f'"{version}"')
    refused('AVERSION', lambda: checked(send(stack, 'DELETE', f'{doc}/a', If_Match=f'"{sha(b"two")}"'), 200), status=412)
    checked(send(stack, 'DELETE', f'{doc}/a', If_Match=f'"{sha(b"three")}"'), 200)


def test_a_wrong_digest_leaves_nothing(stack, doc):
    before = files(stack)
    for header in ('Content_Digest', 'Repr_Digest'):
        problem = refused('ADIGEST', store, stack, f'{doc}/a', b'right', **{header: digest(b'wrong')}, status=400)
        assert problem.body['args'] == [sha(b'right')]
    refused('AARG', store, stack, f'{doc}/a', b'x', Content_Digest='sha-256=:short:')
    refused('AARG', store, stack, f'{doc}/a', b'x', Content_Digest=digest(b'x'), Repr_Digest=digest(b'y'))
    refused('NATTACHMENT', fetch, stack, f'{doc}/a')
    assert files(stack) == before and not unfinished(stack)
    store(stack, f'{doc}/a', b'right', Content_Digest=f'sha-512=:AAAA:, {digest(b"right")}', Repr_Digest=digest(b'right'))


def test_the_same_request_is_done_once(stack, doc):
    key = {'Idempotency_Key': f'once-{doc}'}
    refused('AARG', store, stack, f'{doc}/a', b'x', **key)  # the request is known by its digest, before its bytes
    first = send(stack, 'PUT', f'{doc}/a', b'one', Content_Digest=digest(b'one'), If_None_Match='*', **key)
    again = send(stack, 'PUT', f'{doc}/a', b'one', Content_Digest=digest(b'one'), If_None_Match='*', **key)
    assert first.status_code == again.status_code == 201 and first.json() == again.json() and again.headers['Idempotency-Replayed'] == 'true'
    refused('AKEYREUSED', store, stack, f'{doc}/a', b'two', Content_Digest=digest(b'two'), **key)


# --- names and types ---

@pytest.mark.parametrize('key, name', [('a b.txt', 'attachment; filename="a b.txt"'), ('..', None), ('../../etc/passwd', 'attachment; filename="_._.._etc_passwd"'),
                                       ('a"b\\c', 'attachment; filename="a_b_c"'), ('é.png', 'attachment; filename="_.png"; filename*=UTF-8\'\'%C3%A9.png'),
                                       ('100%.txt', 'attachment; filename="100_.txt"; filename*=UTF-8\'\'100%25.txt'),
                                       ('a\r\nX-Evil: 1', 'attachment; filename="a__X-Evil_ 1"'), ('exe\u202etxt.scr', 'attachment; filename="exe_txt.scr"'),
                                       ('.htaccess', 'attachment; filename="_htaccess"')])
def test_no_name_misleads(stack, doc, key, name):
    from urllib.parse import quote
    path = f'{doc}/{quote(key, safe="")}'
    if not name:
        raw = raw_request(stack, f'GET /lab/doc/{doc}/%2e%2e HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'.encode())
        assert b' 404 ' in raw.split(b'\r\n')[0] or b' 400 ' in raw.split(b'\r\n')[0]
        return
    store(stack, path, key.encode(), 'application/x-thing')
    answer = fetch(stack, path)
    assert answer.content == key.encode() and answer.headers['Content-Disposition'] == name and 'X-Evil' not in answer.headers
    assert files(stack) == {name for name in files(stack) if re.fullmatch('[0-9a-f]{64}', name)}


@pytest.mark.parametrize('type, shown', [('image/png', True), ('audio/ogg', True), ('text/plain; charset=utf-8', True), ('text/html', False), ('image/svg+xml', False),
                                         ('application/xhtml+xml', False), ('text/javascript', False), ('application/pdf', False), ('image/png.gc', False),
                                         ('IMAGE/PNG', True), ('text/plainer', False)])
def test_no_type_is_run(stack, doc, type, shown):
    store(stack, f'{doc}/a', b'<script>', type)
    answer = fetch(stack, f'{doc}/a')
    assert answer.headers['Content-Type'] == type and answer.headers['Content-Disposition'].startswith('inline' if shown else 'attachment')
    assert answer.headers['X-Content-Type-Options'] == 'nosniff' and 'sandbox' in answer.headers['Content-Security-Policy']


def test_a_malformed_type_is_refused(stack, doc):
    refused('ATYPE', store, stack, f'{doc}/a', b'x', 'nothing', status=415)
    refused('ATYPE', store, stack, f'{doc}/a', b'x', 'a/' + 'b' * 300, status=415)


# --- who may ---

def test_access_is_that_of_the_document(stack, doc):
    stack.put('demo', {'c': 'Note', 'id': 'a'}, admin=True)
    refused('SCLOSED', store, stack, 'Note/a/file/x', b'x', ns='demo', status=401)
    store(stack, 'Note/a/file/x', b'public', 'text/plain', ns='demo', admin=True)
    answer = fetch(stack, 'Note/a/file/x', ns='demo')
    assert answer.content == b'public' and answer.headers['Cache-Control'] == 'public, no-cache'
    assert 'immutable' in fetch(stack, f'Note/a/file/sha/{sha(b"public")}', ns='demo').headers['Cache-Control']
    assert fetch(stack, 'Note/a/file/x', ns='demo', admin=True).headers['Cache-Control'] == 'private, no-cache'
    stack.put('shut', {'c': 'Note', 'id': 'a'}, admin=True)
    store(stack, 'Note/a/file/x', b'hidden', ns='shut', admin=True)
    refused('SCLOSED', fetch, stack, 'Note/a/file/x', ns='shut', status=401)
    refused('SCLOSED', fetch, stack, f'Note/a/file/sha/{sha(b"hidden")}', ns='shut', status=401)
    assert fetch(stack, 'Note/a/file/x', ns='shut', admin=True).headers['Cache-Control'] == 'private, no-cache'
    # what one namespace has, another has not
    refused('NATTACHMENT', fetch, stack, f'{doc}/sha/{sha(b"hidden")}')


def test_files_cannot_be_had_from_nginx_directly(stack, doc):
    store(stack, f'{doc}/a', b'inside')
    for path in (f'/.stampd/files/stampd_lab/{sha(b"inside")[:2]}/{sha(b"inside")}', '/.stampd/upload', f'/lab/../.stampd/files/stampd_lab/{sha(b"inside")[:2]}/{sha(b"inside")}'):
        assert b' 404 ' in raw_request(stack, f'GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'.encode()).split(b'\r\n')[0]


def test_files_are_for_the_server_and_nginx_alone(stack, doc):
    store(stack, f'{doc}/a', b'modes')
    path = stack.path / f'files/stampd_lab/{sha(b"modes")[:2]}/{sha(b"modes")}'
    assert path.stat().st_mode & 0o7777 == 0o440
    for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
        assert folder.stat().st_mode & 0o007 == 0


def test_pages_of_other_origins_read_files_in_ranges(stack, doc):
    """What a viewer of documents, or a player, needs: it may ask, and it sees what it got."""
    page = 'https://app.example'
    store(stack, f'{doc}/a', b'0123456789', 'text/plain')
    assert 'Vary' not in fetch(stack, f'{doc}/a').headers
    stack.admin('ns', 'origins', 'lab', page)
    try:
        wait_until(lambda: fetch(stack, f'{doc}/a', Origin=page).headers.get('Access-Control-Allow-Origin') == page, what='the origin')
        allowed = send(stack, 'OPTIONS', f'{doc}/a', Origin=page, Access_Control_Request_Method='GET').headers['Access-Control-Allow-Headers'].split(', ')
        assert {'Range', 'If-Range'} <= set(allowed)
        part = fetch(stack, f'{doc}/a', Origin=page, Range='bytes=2-4', If_Range=f'"{sha(b"0123456789")}"')
        beyond = send(stack, 'GET', f'{doc}/a', Origin=page, Range='bytes=10-')
        assert (part.status_code, part.content, part.headers['Content-Range']) == (206, b'234', 'bytes 2-4/10')
        assert beyond.status_code == 416 and beyond.headers['Content-Range'] == 'bytes */10'
        assert beyond.headers['Content-Type'] == 'application/problem+json' and (beyond.json()['code'], beyond.json()['status']) == ('AARG', 416)
        assert 'no-store' in beyond.headers['Cache-Control'] and ',' not in beyond.headers['X-Request-Id']
        for answer in (part, beyond):
            assert answer.headers['Access-Control-Allow-Origin'] == page and 'Origin' in answer.headers['Vary']
            assert {'Accept-Ranges', 'Content-Range'} <= set(answer.headers['Access-Control-Expose-Headers'].split(', '))
        # What a cache has from an image in a page may be used for another page.
        assert 'Origin' in fetch(stack, f'{doc}/a').headers['Vary'] and 'Access-Control-Allow-Origin' not in fetch(stack, f'{doc}/a').headers
    finally:
        stack.admin('ns', 'origins', 'lab', '--none')


# --- sizes ---

def memory_kb(pid):
    return int(re.search(r'VmHWM:\s+(\d+)', open(f'/proc/{pid}/status').read()).group(1))


class Chunks:
    """A body that is made on the way."""

    def __init__(self, size):
        self.size, self.piece = size, os.urandom(1 << 20)

    def __iter__(self):
        for _ in range(self.size >> 20):
            yield self.piece

    def digest(self):
        whole = hashlib.sha256()
        for piece in self:
            whole.update(piece)
        return whole.hexdigest()


def test_a_large_file_passes_and_memory_stays_flat(stack, doc):
    store(stack, f'{doc}/warm', b'x' * 2000000)
    before = {pid: memory_kb(pid) for pid in stack.worker_pids()}
    chunks = Chunks(60 << 20)
    answer = store(stack, f'{doc}/large', iter(chunks))
    assert answer == {'v': answer['v'], 'sha': chunks.digest(), 'size': 60 << 20}
    after = {pid: memory_kb(pid) for pid in stack.worker_pids()}
    assert set(before) == set(after) and all(after[pid] - before[pid] < 8192 for pid in before), (before, after)
    got = hashlib.sha256()
    with stack.http.get(f'{stack.url}/lab/doc/{doc}/large', stream=True, timeout=PATIENCE_S) as download:
        for piece in download.iter_content(1 << 20):
            got.update(piece)
    assert got.hexdigest() == chunks.digest()


def test_a_file_above_the_limit_is_refused_before_it_is_sent(stack, doc):
    size = (64 << 20) + 1
    head = f'PUT /lab/doc/{doc}/a HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n'.encode()
    answer = raw_request(stack, head)
    assert b' 413 ' in answer.split(b'\r\n')[0] and b'"ALIMIT"' in answer, answer
    assert f'"args":["limit_blob_bytes","{64 << 20}","{size}"]'.encode() in answer, answer
    head = f'PUT /demo/doc/Note/a/file/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n'.encode()
    assert b' 401 ' in raw_request(stack, head).split(b'\r\n')[0]


def raw_request(stack, request, finish=True):
    context = ssl.create_default_context(cafile=str(stack.path / 'etc/certificate.pem'))
    context.check_hostname = False
    with socket.create_connection(('127.0.0.1', stack.port), timeout=PATIENCE_S) as plain, context.wrap_socket(plain) as link:
        link.sendall(request)
        if not finish:
            return b''
        answer = b''
        while piece := link.recv(65536):
            answer += piece
        return answer


def test_an_upload_that_breaks_off_leaves_nothing(stack, doc):
    before = files(stack)
    for size in (1000, 3000000):
        head = f'PUT /lab/doc/{doc}/a HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n'.encode()
        raw_request(stack, head + b'x' * (size // 2), finish=False)
    store(stack, f'{doc}/b', b'after')
    refused('NATTACHMENT', fetch, stack, f'{doc}/a')
    assert files(stack) - before == {sha(b'after')} and not unfinished(stack)


def test_two_at_once_store_one_file(stack, doc):
    content, answers = os.urandom(3 << 20), []

    def upload(number):
        with stack_session(stack) as http:
            answers.append(http.put(f'{stack.url}/lab/doc/{doc}/k{number}', data=content, timeout=PATIENCE_S).status_code)
    threads = [threading.Thread(target=upload, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {201, 429} and 201 in answers
    assert sha(content) in files(stack) and not unfinished(stack)


def stack_session(stack):
    import requests
    session = requests.Session()
    session.trust_env, session.verify = False, stack.http.verify
    return session


def test_what_was_replaced_is_kept_for_a_time(stack, doc):
    store(stack, f'{doc}/a', b'old text', 'text/plain')
    store(stack, f'{doc}/a', b'new text', 'text/plain')
    assert fetch(stack, f'{doc}/sha/{sha(b"old text")}').content == b'old text' and fetch(stack, f'{doc}/a').content == b'new text'
    other = f'{doc.split("/")[0]}/other-{doc.split("/")[1]}'
    stack.put('lab', {'c': 'Note', 'id': other.split('/')[1], 'items': []})
    refused('NATTACHMENT', fetch, stack, f'{other}/file/sha/{sha(b"old text")}', status=404)  # of this document only


def test_states_stop_uploads_and_downloads(stack, doc):
    store(stack, f'{doc}/a', b'state')
    def set_state(state):
        stack.op('z', 'ns', {'set': {'ns': 'lab', 'state': state}}, admin=True)
    try:
        set_state(1)
        refused('OREADONLY', store, stack, f'{doc}/b', b'x', status=503)
        assert fetch(stack, f'{doc}/a').content == b'state'
        set_state(2)
        refused('OOFF', fetch, stack, f'{doc}/a', status=503)
    finally:
        set_state(None)


# --- shares, full disks, deaths ---

def test_only_a_share_of_the_workers_receives_files(stack, doc):
    """As many others as allowed are in an upload: seen by the workers in the shared segment, here by a limit of one and a slow disk."""
    content = os.urandom(24 << 20)
    done = []

    def upload(number):
        with stack_session(stack) as http:
            done.append(http.put(f'{stack.url}/lab/doc/{doc}/k{number}', data=content, timeout=PATIENCE_S))
    threads = [threading.Thread(target=upload, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in done} <= {201, 429}
    for answer in done:
        if answer.status_code == 429:
            assert answer.json()['code'] == 'XBUSY' and answer.json()['args'] == ['limit_uploads', '2'] and answer.headers['Retry-After']
    wait_until(lambda: stack.metrics()['stampd_uploads_open'] == 0, what='the end of all uploads')


POINTS = ['blob-written', 'blob-sealed', 'blob-registered', 'blob-renamed', 'blob-published', 'commit-queued', 'commit-answered', 'reply-composed']


def test_death_at_each_step_leaves_no_attachment_without_its_file(stack, doc):
    """The client sends again what was not answered; then all is as if nothing had died."""
    stack.set(debug_die_at='\n    '.join(POINTS))
    try:
        for number in range(len(POINTS)):
            def is_stored(key=f'k{number}', content=f'death {number}'.encode()):
                answer = send(stack, 'PUT', f'{doc}/{key}', content)
                assert answer.status_code in (200, 201, 502, 503, 504), answer.text
                return answer.status_code < 300
            wait_until(is_stored, what='the file')
    finally:
        stack.set(debug_die_at='')
    found = {item['k']: item['j']['sha'] for item in stack.get('lab', ('Note', doc.split('/')[1]))['items'] if item['c'] == 'P'}
    assert found == {f'k{number}': sha(f'death {number}'.encode()) for number in range(len(POINTS))}
    for number in range(len(POINTS)):
        assert fetch(stack, f'{doc}/k{number}').content == f'death {number}'.encode()
    log = stack.log()
    assert all(f'died at {point}' in log for point in POINTS)


def test_a_store_that_cannot_be_written_is_refused_clearly(stack, doc):
    folder = stack.path / 'files/stampd_lab'
    store(stack, f'{doc}/a', b'before')
    moved = folder.with_name('aside')
    folder.rename(moved)
    folder.write_text('no folder')
    try:
        refused('XSTORE', store, stack, f'{doc}/b', b'x', status=503)
        refused('XSTORE', fetch, stack, f'{doc}/a', status=503)
    finally:
        folder.unlink()
        moved.rename(folder)
    assert fetch(stack, f'{doc}/a').content == b'before'


def test_a_file_that_is_missing_is_an_error_that_is_logged(stack, doc):
    store(stack, f'{doc}/a', b'missing')
    path = stack.path / f'files/stampd_lab/{sha(b"missing")[:2]}/{sha(b"missing")}'
    path.rename(path.with_name('aside'))
    try:
        refused('BCONTENT', fetch, stack, f'{doc}/a', status=500)
        assert f'sha256={sha(b"missing")}' in stack.log()
    finally:
        path.with_name('aside').rename(path)

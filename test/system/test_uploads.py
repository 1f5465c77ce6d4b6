"""Resumable uploads by the tus protocol: parts, offsets that survive deaths, one writer at a time, limits of number and bytes, expiry, and rights
that are judged when an upload is created, continued and attached, also by a body that takes longer than an operation."""
import array
import base64
import email.utils
import fcntl
import hashlib
import json
import os
import signal
import struct
import termios
import time

import pytest

from door_client import Client, Reply
from fastcgi import RECORD_BYTES, STDIN, Connection, record
from stack import PATIENCE_S, Problem, process_state, refused, wait_until
from test_accounts import OPEN, PASSWORD
from test_attachments import RULES

STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open', 'few': 'open', 'team': 'closed'},
         'settings': {'limit_blob_bytes': 64 << 20, 'restart_young_ms': 0, 'keep_interval_s': 1, 'limit_client_connections': 0, 'limit_client_requests': 0,
                      'exempt_clients': ''}}
TYPE = 'application/offset+octet-stream'
POINTS = ['part-created', 'part-durable', 'part-advanced', 'blob-written', 'blob-sealed', 'blob-registered', 'blob-renamed', 'blob-published', 'commit-queued',
          'commit-answered', 'part-attached', 'reply-composed']


def digest(content):
    return f'sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:'


def metadata(**values):
    return ','.join(f'{name} {base64.b64encode(value.encode()).decode()}' for name, value in values.items())


def send(stack, method, path, content=None, as_=None, version='1.0.0', ns='lab', **headers):
    named = {name.replace('_', '-'): str(value) for name, value in headers.items()}
    if version:
        named['Tus-Resumable'] = version
    if as_:
        named['Authorization'] = f'Bearer {as_}'
    url = path if path.startswith('/') else f'/{ns}/{path}'
    return stack.http.request(method, stack.url + url, data=content, headers=named, timeout=PATIENCE_S)


def checked(answer, status):
    if answer.status_code != status:
        raise Problem(answer)
    assert answer.headers['Tus-Resumable'] == '1.0.0'
    return answer


def create(stack, doc, length, key='a', content=None, filetype='text/plain', **more):
    if content is not None:
        more['Content_Type'] = TYPE
    return checked(send(stack, 'POST', 'upload', content, Upload_Length=length,
                        Upload_Metadata=metadata(**{'class': doc.split('/')[0], 'id': doc.split('/')[1], 'key': key, 'filetype': filetype}), **more), 201)


def patch(stack, path, offset, content, **more):
    return send(stack, 'PATCH', path, content, Upload_Offset=offset, Content_Type=TYPE, **more)


def offset(stack, path, **more):
    answer = checked(send(stack, 'HEAD', path, **more), 200)
    assert answer.headers['Cache-Control'] == 'no-store'
    return int(answer.headers['Upload-Offset'])


def fetch(stack, doc, key='a', ns='lab', as_=None):
    return send(stack, 'GET', f'doc/{doc}/file/{key}', ns=ns, as_=as_)


def records(stack, ns='lab'):
    return sorted(path.name for path in (stack.path / f'files/stampd_{ns}/part').glob('*'))


def new_document(stack, ns='lab', **more):
    new_document.number = getattr(new_document, 'number', 0) + 1
    stack.put(ns, {'c': 'Note', 'id': f'u{new_document.number}', 'items': [{'c': 'Main', 'j': {}}]}, **more)
    return f'Note/u{new_document.number}'


@pytest.fixture
def doc(stack):
    return new_document(stack)


# --- the protocol ---

def test_parts_become_an_attachment(stack, doc):
    content = os.urandom(3 << 20)
    made = create(stack, doc, len(content), 'big', filetype='image/png', Repr_Digest=digest(content))
    path = made.headers['Location']
    assert made.headers['Upload-Offset'] == '0' and made.headers['Upload-Expires'].endswith('GMT') and path.startswith('/lab/upload/')
    at = 0
    for size in (1, 600000, 1 << 20):
        answer = checked(patch(stack, path, at, content[at:at + size]), 204)
        at += size
        assert answer.headers['Upload-Offset'] == str(at) and not answer.content and offset(stack, path) == at
    assert fetch(stack, doc, 'big').status_code == 404
    last = checked(patch(stack, path, at, content[at:]), 204)
    assert last.headers['Upload-Offset'] == str(len(content)) and 'Upload-Expires' not in last.headers
    got = fetch(stack, doc, 'big')
    assert got.content == content and got.headers['Content-Type'] == 'image/png'
    head = checked(send(stack, 'HEAD', path), 200)  # a client that has lost the answer finds it complete
    assert head.headers['Upload-Offset'] == head.headers['Upload-Length'] == str(len(content)) and 'class' in head.headers['Upload-Metadata']
    assert checked(patch(stack, path, len(content), b''), 204).headers['Upload-Offset'] == str(len(content))
    assert records(stack) == [path.rpartition('/')[2]]  # without bytes
    checked(send(stack, 'DELETE', path), 204)
    assert fetch(stack, doc, 'big').status_code == 200 and not records(stack)


def test_a_creation_may_bring_bytes(stack, doc):
    path = create(stack, doc, 6, content=b'abc').headers['Location']
    assert offset(stack, path) == 3
    checked(patch(stack, path, 3, b'def'), 204)
    assert fetch(stack, doc).content == b'abcdef'
    whole = create(stack, doc, 5, 'b', content=b'whole')
    assert whole.headers['Upload-Offset'] == '5' and fetch(stack, doc, 'b').content == b'whole'
    assert create(stack, doc, 0, 'c').headers['Upload-Offset'] == '0' and fetch(stack, doc, 'c').content == b''


@pytest.mark.parametrize('key', ['../../etc/passwd', '..', '/etc/passwd', '..\\..\\x', 'a\x00/../b'])
def test_a_key_is_never_a_path(stack, doc, key):
    """It is a name in the database: the file has its digest."""
    content = f'content of {key}'.encode()
    answer = send(stack, 'POST', 'upload', content, Upload_Length=len(content), Content_Type=TYPE,
                  Upload_Metadata=metadata(**{'class': 'Note', 'id': doc.split('/')[1], 'key': key, 'filetype': 'text/plain'}))
    kept = [item['k'] for item in stack.get('lab', ('Note', doc.split('/')[1]))['items'] if item['c'] == 'P']
    assert (answer.status_code, kept) == ((201, [key]) if '\x00' not in key else (400, []))
    assert not (stack.path / 'etc/passwd').exists() and not (stack.path / 'x').exists()
    found = {name for folder, _, names in os.walk(stack.path / 'files') for name in names if not folder.endswith('/part')}
    assert all(len(name) == 64 for name in found)


def test_what_the_server_can_do(stack):
    answer = send(stack, 'OPTIONS', 'upload', version=None)
    assert answer.status_code == 204 and answer.headers['Tus-Version'] == '1.0.0' and answer.headers['Tus-Max-Size'] == str(64 << 20)
    assert answer.headers['Tus-Extension'] == 'creation,creation-with-upload,expiration,termination' and answer.headers['Allow'] == 'POST, OPTIONS'
    assert send(stack, 'OPTIONS', 'upload/x').headers['Allow'] == 'HEAD, PATCH, DELETE, OPTIONS'


def test_wrong_requests(stack, doc):
    meta = metadata(**{'class': 'Note', 'id': doc.split('/')[1], 'filename': 'a'})
    path = create(stack, doc, 10).headers['Location']
    for version in (None, '0.2.2'):
        answer = send(stack, 'PATCH', path, b'x', version=version, Upload_Offset=0, Content_Type=TYPE)
        assert answer.status_code == 412 and answer.headers['Tus-Version'] == '1.0.0'
    assert send(stack, 'POST', 'upload', Upload_Metadata=meta).json()['args'] == ['Upload-Length']
    for length in ('-1', 'x', '', '9' * 30):
        assert send(stack, 'POST', 'upload', Upload_Metadata=meta, Upload_Length=length).status_code == 400
    assert send(stack, 'POST', 'upload', Upload_Metadata=meta, Upload_Length=(64 << 20) + 1).status_code == 413
    for wrong in ('', 'class', 'class !!!!', meta + ',' + meta, metadata(id='a', key='b'), metadata(**{'class': 'Note', 'id': 'a\0b', 'key': 'k'}),
                  metadata(**{'class': 'Note', 'id': 'a', 'key': 'k', 'filetype': 'none'}), meta + ',x ' + 'A' * 5000):
        assert send(stack, 'POST', 'upload', Upload_Metadata=wrong, Upload_Length=5).json()['args'] == ['Upload-Metadata'], wrong
    assert send(stack, 'POST', 'upload', b'x', Upload_Metadata=meta, Upload_Length=5, Content_Type='text/plain').status_code == 415
    assert send(stack, 'PATCH', path, b'x', Upload_Offset=0, Content_Type='text/plain').status_code == 415
    assert send(stack, 'PATCH', path, b'x', Content_Type=TYPE).status_code == 400
    assert send(stack, 'PUT', path, b'x').status_code == 405 and send(stack, 'GET', 'upload').status_code == 405
    problem = refused('AOFFSET', lambda: checked(patch(stack, path, 3, b'x'), 204), status=409)
    assert problem.body['args'] == ['0']
    assert patch(stack, path, 0, b'x' * 11).status_code == 413 and offset(stack, path) == 0
    for absent in ('0' * 32, 'x', '..%2f..', '0' * 33):
        for method in ('HEAD', 'DELETE', 'PATCH'):
            assert send(stack, method, f'upload/{absent}', Upload_Offset=0, Content_Type=TYPE).status_code == 404
    checked(send(stack, 'DELETE', path), 204)
    refused('NUPLOAD', lambda: checked(patch(stack, path, 0, b'x'), 204), status=404)
    refused('NDOCUMENT', create, stack, 'Note/absent', 5, status=404)
    refused('SCLOSED', lambda: create(stack, doc, 5, ns='demo'), status=401)


def test_other_bytes_than_promised_are_worth_nothing(stack, doc):
    path = create(stack, doc, 4, Repr_Digest=digest(b'good')).headers['Location']
    refused('ADIGEST', lambda: checked(patch(stack, path, 0, b'evil'), 204), status=400)
    assert send(stack, 'HEAD', path).status_code == 404 and fetch(stack, doc).status_code == 404


def test_one_request_at_a_time_continues_an_upload(stack, doc):
    path = create(stack, doc, 4).headers['Location']
    with open(stack.path / 'files/stampd_lab/part' / path.rpartition('/')[2]) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused('XLOCKED', lambda: checked(patch(stack, path, 0, b'ab'), 204), status=423)
        assert send(stack, 'DELETE', path).status_code == 423 and offset(stack, path) == 0
    checked(patch(stack, path, 0, b'abcd'), 204)
    assert fetch(stack, doc).content == b'abcd'


# --- deaths ---

def test_offsets_are_exact_wherever_a_worker_dies(stack, doc):
    """A client that goes on from the offset that HEAD names ends with its file, whichever step was the last of a worker."""
    content = os.urandom(900)
    stack.set(debug_die_at='\n    '.join(POINTS))
    try:
        path, at = None, 0
        for _ in range(200):
            if not path:
                answer = send(stack, 'POST', 'upload', Upload_Length=len(content), Upload_Metadata=metadata(**{'class': 'Note', 'id': doc.split('/')[1], 'key': 'a'}))
                path = answer.headers.get('Location')
                continue
            head = send(stack, 'HEAD', path)
            if head.status_code != 200:
                assert head.status_code in (502, 503, 504)
                continue
            at = int(head.headers['Upload-Offset'])
            assert at in (0, 300, 600, 900)
            if at == 900:
                break
            answer = patch(stack, path, at, content[at:at + 300])
            assert answer.status_code in (204, 502, 503, 504), answer.text
    finally:
        stack.set(debug_die_at='')
    assert at == 900 and fetch(stack, doc).content == content
    log = stack.log()
    assert all(f'died at {point}' in log for point in POINTS)
    stack.stampctl('check-config')


def test_bytes_behind_the_offset_are_cut_off(stack, doc):
    path = create(stack, doc, 6, content=b'abc').headers['Location']
    data = stack.path / 'files/stampd_lab/part' / (path.rpartition('/')[2] + '.data')
    with open(data, 'ab') as file:
        file.write(b'XXXXXXXX')  # written, and not made durable
    assert offset(stack, path) == 3
    checked(patch(stack, path, 3, b'def'), 204)
    assert fetch(stack, doc).content == b'abcdef'


# --- limits ---

def test_incomplete_uploads_are_limited(stack):
    doc = new_document(stack, 'few')
    stack.set(limit_client_partial_uploads=3, limit_client_partial_bytes=5000, limit_partial_uploads=4, limit_partial_bytes=100000)
    try:
        made = [create(stack, doc, 100, f'k{number}', ns='few').headers['Location'] for number in range(3)]
        assert refused('XBUSY', create, stack, doc, 1, 'more', ns='few', status=423).body['args'] == ['limit_client_partial_uploads', '3']
        checked(patch(stack, made[0], 0, b'x' * 100), 204)  # complete: it does not count
        assert refused('XBUSY', create, stack, doc, 4801, 'more', ns='few', status=423).body['args'] == ['limit_client_partial_bytes', '5000']
        create(stack, doc, 4800, 'more', ns='few')
        create(stack, doc, 100, 'administrator', ns='few', as_=stack.key)
        assert refused('XBUSY', create, stack, doc, 1, 'more', ns='few', as_=stack.key, status=423).body['args'] == ['limit_partial_uploads', '4']
        checked(send(stack, 'DELETE', made[1]), 204)
        assert refused('XBUSY', create, stack, doc, 100000, 'more', ns='few', as_=stack.key, status=423).body['args'] == ['limit_partial_bytes', '100000']
    finally:
        stack.set(limit_client_partial_uploads=20, limit_client_partial_bytes=17179869184, limit_partial_uploads=1000, limit_partial_bytes=68719476736)


def test_what_has_not_arrived_takes_no_room_of_others(stack):
    """An upload reserves what has arrived and 16 MiB more: uploads of nothing kept others out for as long as they were announced."""
    doc, mib = new_document(stack, 'few'), 1 << 20
    stack.set(limit_partial_bytes=50 * mib)
    try:
        made = [create(stack, doc, 40 * mib, f'k{number}', ns='few', as_=stack.key).headers['Location'] for number in range(3)]
        assert refused('XBUSY', create, stack, doc, 40 * mib, 'more', ns='few', as_=stack.key, status=423).body['args'] == ['limit_partial_bytes', str(50 * mib)]
        checked(patch(stack, made[0], 0, b'x' * 1000), 204)
        part = b'x' * (16 * mib)
        answer = checked(patch(stack, made[0], 1000, part), 423)  # 16 MiB and 1,000 bytes have more behind them
        assert answer.json()['args'] == ['limit_partial_bytes', str(50 * mib)] and offset(stack, made[0]) == 1000
        checked(send(stack, 'DELETE', made[1]), 204)
        checked(patch(stack, made[0], 1000, part), 204)
        assert refused('XBUSY', create, stack, doc, 3 * mib, 'more', ns='few', as_=stack.key, status=423)
        for path in made[::2]:
            checked(send(stack, 'DELETE', path), 204)
    finally:
        stack.set(limit_partial_bytes=68719476736)


def test_an_address_takes_no_more_than_it_leaves(stack):
    """Addresses with as much as each may have kept all others out."""
    doc, mib = new_document(stack, 'few'), 1 << 20
    stack.set(limit_partial_bytes=100 * mib)
    made = []
    try:
        made = [create(stack, doc, 40 * mib, f'share{number}', ns='few').headers['Location'] for number in range(3)]
        answer = refused('XBUSY', create, stack, doc, 40 * mib, 'more', ns='few', status=423)  # 64 MiB, and 36 for all others
        assert answer.body['args'] == ['limit_partial_bytes', str(100 * mib)]
        with Client(stack, '127.0.0.9') as client:
            named = metadata(**dict(zip(('class', 'id'), doc.split('/'))), key='other')
            other = client.ask('POST', '/few/upload', b'', Tus_Resumable='1.0.0', Upload_Length=str(40 * mib), Upload_Metadata=named)
            assert other.status == 201
            made.append(other.headers['location'])
    finally:
        for path in made:
            checked(send(stack, 'DELETE', path), 204)
        stack.set(limit_partial_bytes=68719476736)


def test_what_has_no_room_is_refused_before_its_body(stack):
    """A part waited on the disk of nginx until it was whole, and was refused then."""
    doc, mib = new_document(stack, 'few'), 1 << 20
    stack.set(limit_partial_bytes=40 * mib)
    made = []
    try:
        made = [create(stack, doc, 40 * mib, f'early{number}', ns='few', as_=stack.key).headers['Location'] for number in range(2)]
        with Client(stack, '127.0.0.9') as client:
            def begin(path, size):
                """The answer to the head of a part, and to its first bytes."""
                connection = client.connect()
                connection.putrequest('PATCH', path)
                for name, value in (('Tus-Resumable', '1.0.0'), ('Upload-Offset', '0'), ('Content-Type', TYPE), ('Content-Length', str(size))):
                    connection.putheader(name, value)
                connection.endheaders(b'x' * 100000)
                return connection
            connection = begin(made[0], 20 * mib)
            refusal = Reply(connection.getresponse())
            assert (refusal.status, refusal.code, refusal.args) == (423, 'XBUSY', ['limit_partial_bytes', str(40 * mib)])
            connection.close()
            connection = begin(made[0], mib)  # within what it has reserved already
            connection.send(b'x' * (mib - 100000))
            assert connection.getresponse().status == 204
            connection.close()
        assert offset(stack, made[0]) == mib
    finally:
        for path in made:
            checked(send(stack, 'DELETE', path), 204)
        stack.set(limit_partial_bytes=68719476736)


def test_an_upload_that_begins_with_bytes_is_refused_before_them(stack):
    """By each limit, with the limit's name: the client has sent the head alone, and waits."""
    doc, mib = new_document(stack, 'few'), 1 << 20
    usual = {'limit_client_partial_uploads': 20, 'limit_client_partial_bytes': 17179869184, 'limit_partial_uploads': 1000, 'limit_partial_bytes': 68719476736}
    made = [create(stack, doc, 30 * mib, f'begun{number}', ns='few', as_=stack.key).headers['Location'] for number in range(2)]
    try:
        with Client(stack, '127.0.0.9') as client:
            def begin(key, length, **headers):
                connection = client.connect()
                connection.putrequest('POST', '/few/upload')
                named = metadata(**dict(zip(('class', 'id'), doc.split('/'))), key=key)
                for name, value in {'Tus-Resumable': '1.0.0', 'Content-Type': TYPE, 'Upload-Length': length, 'Upload-Metadata': named, **headers}.items():
                    connection.putheader(name, str(value))
                connection.endheaders()
                return connection

            def refused_by(limit, most, length=30 * mib, **headers):
                stack.set(**{**usual, limit: most})
                connection = begin('late', length, **(headers or {'Content-Length': 20 * mib}))
                refusal = Reply(connection.getresponse())
                connection.close()
                assert (refusal.status, refusal.code, refusal.args) == (423, 'XBUSY', [limit, str(most)])
            refused_by('limit_partial_bytes', 40 * mib)
            refused_by('limit_partial_bytes', 40 * mib, **{'Transfer-Encoding': 'chunked'})
            refused_by('limit_partial_uploads', 2)
            refused_by('limit_client_partial_bytes', 29 * mib)
            stack.set(**usual)
            connection = begin('own', 30 * mib, **{'Content-Length': 4})
            connection.send(b'abcd')
            answer = connection.getresponse()
            answer.read()
            made.append(answer.headers['Location'])
            assert (answer.status, answer.headers['Upload-Offset']) == (201, '4')
            connection.close()
            refused_by('limit_client_partial_uploads', 1)
            refused_by('limit_client_partial_bytes', 50 * mib)
    finally:
        for path in made:
            checked(send(stack, 'DELETE', path), 204)
        stack.set(**usual)


def test_an_account_does_not_multiply_the_share_of_its_address(stack, team):
    """Five anonymous accounts of one address reserved all that a namespace had, in 85 requests."""
    stack.set(limit_client_partial_uploads=3)
    try:
        answers = []
        for number in range(5):
            made = stack.op('team', 'register', {})['out']
            stack.put('team', {'c': 'Note', 'id': f'share{number}', 'items': [{'c': 'Main', 'j': {'owner': made['account']}}]}, admin=True)
            answers.append(send(stack, 'POST', 'upload', ns='team', as_=made['token'], Upload_Length=10,
                                Upload_Metadata=metadata(**{'class': 'Note', 'id': f'share{number}', 'key': 'k'})))
        assert [answer.status_code for answer in answers] == [201] * 3 + [423] * 2
        assert answers[3].json()['args'] == ['limit_client_partial_uploads', '3']
    finally:
        stack.set(limit_client_partial_uploads=20)


def test_an_upload_without_a_byte_ends_soon(stack, doc):
    empty, begun_one = create(stack, doc, 6).headers['Location'], create(stack, doc, 6, content=b'abc').headers['Location']
    until = email.utils.parsedate_to_datetime(checked(send(stack, 'HEAD', empty), 200).headers['Upload-Expires']).timestamp()
    assert until - time.time() <= 900
    folder, earlier = stack.path / 'files/stampd_lab/part', time.time() - 1000
    for path in (empty, begun_one):
        os.utime(folder / path.rpartition('/')[2], (earlier, earlier))
    wait_until(lambda: send(stack, 'HEAD', empty).status_code == 404, what='the end of the upload')
    assert offset(stack, begun_one) == 3
    checked(send(stack, 'DELETE', begun_one), 204)


def test_uploads_expire(stack, doc):
    old, young = (create(stack, doc, 6, content=b'abc').headers['Location'] for _ in range(2))
    folder = stack.path / 'files/stampd_lab/part'
    name = old.rpartition('/')[2]
    long_ago = time.time() - 2 * 86400
    os.utime(folder / name, (long_ago, long_ago))
    wait_until(lambda: send(stack, 'HEAD', old).status_code == 404, what='the end of the upload')
    wait_until(lambda: not (folder / f'{name}.data').exists(), what='the end of its bytes')
    assert offset(stack, young) == 3
    checked(send(stack, 'DELETE', young), 204)


def test_a_part_now_and_then_keeps_no_upload_without_an_end(stack, doc):
    """Seven times `blob_unused_hours` after its creation it ends, however recently a part came."""
    path = create(stack, doc, 6, content=b'abc').headers['Location']
    record = stack.path / 'files/stampd_lab/part' / path.rpartition('/')[2]
    hours = 24 * 7

    def age(seconds):
        content = bytearray(record.read_bytes())
        content[24:32] = struct.pack('=q', int(time.time()) - seconds)  # behind the magic number, the size and the offset
        record.write_bytes(content)
    age(hours * 3600 - 7200)
    until = email.utils.parsedate_to_datetime(checked(send(stack, 'HEAD', path), 200).headers['Upload-Expires']).timestamp()
    assert 3600 < until - time.time() <= 7200
    checked(patch(stack, path, 3, b'd'), 204)
    age(hours * 3600 + 1)
    wait_until(lambda: send(stack, 'HEAD', path).status_code == 404, what='the end of the upload')


# --- rights ---

@pytest.fixture(scope='module')
def team(stack):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'access': 'rules', 'accounts': OPEN, 'rules': RULES}}, admin=True)
    return [stack.op('team', 'register', {'name': name, 'password': PASSWORD})['out'] for name in ('ann', 'bob')]


def test_rights_are_judged_at_each_step(stack, team):
    (ann, bob), (ann_id, bob_id) = ([made[name] for made in team] for name in ('token', 'account'))
    stack.put('team', {'c': 'Note', 'id': 'of-ann', 'items': [{'c': 'Main', 'j': {'owner': ann_id}}]}, admin=True)
    for key, status in ((bob, (403, 404)), (None, (401, 404))):
        with pytest.raises(Problem) as problem:
            create(stack, 'Note/of-ann', 6, ns='team', as_=key)
        assert problem.value.status in status
    path = create(stack, 'Note/of-ann', 6, ns='team', as_=ann, content=b'abc').headers['Location']
    for method in ('HEAD', 'DELETE', 'PATCH'):
        for key, status in ((bob, 404), (None, 401)):
            assert send(stack, method, path, b'def' if method == 'PATCH' else None, as_=key, Upload_Offset=3, Content_Type=TYPE).status_code in (status, 404)
    stack.put('team', {'c': 'Note', 'id': 'of-ann', 'items': [{'c': 'Main', 'j': {'owner': bob_id}}]}, admin=True)
    for part in (b'd', b'def'):  # she has lost the document: neither a part nor the last one is taken
        assert patch(stack, path, 3, part, as_=ann).status_code in (403, 404)
    assert offset(stack, path, as_=ann) == 3
    assert stack.get('team', ('Note', 'of-ann'), admin=True)['items'][0]['c'] == 'Main'
    stack.put('team', {'c': 'Note', 'id': 'of-ann', 'items': [{'c': 'Main', 'j': {'owner': ann_id}}]}, admin=True)
    checked(patch(stack, path, 3, b'def', as_=ann), 204)
    assert fetch(stack, 'Note/of-ann', ns='team', as_=ann).content == b'abcdef'
    assert send(stack, 'HEAD', path, as_=bob).status_code == 404


def test_the_account_that_has_sent_a_file_attaches_it_by_its_digest(stack, team):
    """By any way of sending; nobody else, though it knows the digest."""
    (ann, bob), (ann_id, bob_id) = ([made[name] for made in team] for name in ('token', 'account'))
    for id_, owner in (('sent', ann_id), ('again', ann_id), ('his', bob_id)):
        stack.put('team', {'c': 'Note', 'id': id_, 'items': [{'c': 'Main', 'j': {'owner': owner}}]}, admin=True)

    def attach(id_, content, key):
        item = {'c': 'P', 'k': 'f', 'sha': hashlib.sha256(content).hexdigest()}
        return send(stack, 'POST', 'op/put', json.dumps({'param': {'docs': [{'c': 'Note', 'id': id_, 'items': [item]}]}}), ns='team', as_=key, version='',
                    Content_Type='application/json')
    for content, way in ((b'by tus', 'upload'), (b'by PUT', 'doc')):
        assert attach('again', content, ann).status_code == 404
        if way == 'upload':
            path = create(stack, 'Note/sent', len(content), ns='team', as_=ann).headers['Location']
            checked(patch(stack, path, 0, content, as_=ann), 204)
        else:
            assert send(stack, 'PUT', 'doc/Note/sent/file/a', content, ns='team', as_=ann, version='', Content_Type='text/plain').status_code == 200
        assert attach('his', content, bob).status_code == 404
        assert attach('again', content, ann).status_code == 200
        assert fetch(stack, 'Note/again', key='f', ns='team', as_=ann).content == content
    stack.psql('team', 'update blob_claim set until = 1')
    stack.put('team', {'c': 'Note', 'id': 'third', 'items': [{'c': 'Main', 'j': {'owner': ann_id}}]}, admin=True)
    assert attach('third', b'by tus', ann).status_code == 404


def administer(stack, ns, operation, **param):
    """By another worker than the one that receives the bytes."""
    with Connection(stack.path / 'run/stampd/worker-1.sock', timeout=PATIENCE_S) as worker:
        answer = worker.ask(f'/{ns}/op/{operation}', method='POST', body=json.dumps({'admin': stack.key, 'param': param}).encode(), CONTENT_TYPE='application/json',
                            STAMPD_NS=ns, STAMPD_DATABASE=f'stampd_{ns}')
    assert answer.status == 200, answer.body


ENDS = {
    'its account': ('SKEY', lambda stack, person: administer(stack, 'team', 'accounts', delete=person['account'])),
    'its session': ('SKEY', lambda stack, person: administer(stack, 'team', 'accounts', revoke={'account': person['account']})),
    'its right': ('SRULE', lambda stack, person: administer(stack, 'z', 'ns', set={'ns': 'team', 'rules': {**RULES, 'Note': {**RULES['Note'], 'update': []}}})),
    'writing': ('OREADONLY', lambda stack, person: administer(stack, 'z', 'ns', set={'ns': 'team', 'state': 1})),
    'nothing': (None, lambda stack, person: None),
}


@pytest.mark.parametrize('way', ['PUT', 'PATCH'])
@pytest.mark.parametrize('what', ENDS)
def test_what_ends_while_the_bytes_arrive_is_refused(stack, team, what, way):
    """A body of many GB takes longer than an operation may, and than the walk that removes what a deleted account leaves waits."""
    code, end = ENDS[what]
    name = f'{way}-{what}'.replace(' ', '-')
    person = stack.op('team', 'register', {'name': name, 'password': PASSWORD})['out']
    stack.put('team', {'c': 'Note', 'id': name, 'items': [{'c': 'Main', 'j': {'owner': person['account']}}]}, admin=True)
    content = os.urandom(4 << 20)
    pieces = [record(STDIN, content[start:start + RECORD_BYTES]) for start in range(0, len(content), RECORD_BYTES)]
    uri, more = f'/team/doc/Note/{name}/file/a', {}
    if way == 'PATCH':
        uri = create(stack, f'Note/{name}', len(content), ns='team', as_=person['token']).headers['Location']
        more = {'CONTENT_TYPE': TYPE, 'HTTP_TUS_RESUMABLE': '1.0.0', 'HTTP_UPLOAD_OFFSET': '0'}
    before = unfinished(stack)
    try:
        with Connection(stack.path / 'run/stampd/worker-0.sock', timeout=PATIENCE_S) as worker:
            worker.socket.sendall(worker.head(uri, way, len(content), STAMPD_NS='team', STAMPD_DATABASE='stampd_team', HTTP_AUTHORIZATION=f'Bearer {person["token"]}', **more)
                                  + b''.join(pieces[:64]))
            wait_until(lambda: has_begun(stack, uri, way, before), what='the first bytes in the store')
            end(stack, person)
            worker.socket.sendall(b''.join(pieces[64:]) + record(STDIN, b''))
            answer = worker.receive()
    finally:
        stack.op('z', 'ns', {'set': {'ns': 'team', 'rules': RULES, 'state': None}}, admin=True)
    attached = [item['k'] for item in stack.get('team', ('Note', name), admin=True)['items'] if item['c'] == 'P']
    if code:
        assert json.loads(answer.body)['code'] == code and attached == []
    else:
        assert answer.status in (200, 201, 204) and attached == ['a']


def unfinished(stack):
    return set((stack.path / 'files/stampd_team/new').glob('*'))


def has_begun(stack, uri, way, before):
    """Has the store bytes of this request's body?"""
    folder = stack.path / 'files/stampd_team'
    paths = unfinished(stack) - before if way == 'PUT' else [folder / 'part' / (uri.rpartition('/')[2] + '.data')]
    return any(path.stat().st_size for path in paths)


# --- pauses of a worker ---

def is_all_read(connection):
    left = array.array('i', [0])
    fcntl.ioctl(connection.socket, termios.TIOCOUTQ, left)
    return not left[0]


@pytest.mark.parametrize('way', ['PUT', 'PATCH', 'POST'])
def test_a_worker_that_is_stopped_in_the_middle_of_a_body_does_not_lie(stack, way):
    """The system interrupts a read that has a timeout when the process goes on: the body was called malformed, and a client does not
    send such a request again.  Of what was read nothing is done."""
    doc, content = new_document(stack), b'x' * 200000
    class_, id_ = doc.split('/')
    uri, more = f'/lab/doc/{doc}/file/a', {}
    if way == 'PATCH':
        uri = create(stack, doc, len(content)).headers['Location']
        more = {'CONTENT_TYPE': TYPE, 'HTTP_TUS_RESUMABLE': '1.0.0', 'HTTP_UPLOAD_OFFSET': '0'}
    if way == 'POST':
        uri, more = '/lab/op/put', {'CONTENT_TYPE': 'application/json'}
        content = json.dumps({'param': {'docs': [{'c': class_, 'id': id_, 'items': [{'c': 'Main', 'j': {'new': 1}}]}]}}).encode().ljust(len(content))
    worker = stack.worker_pids()[0]
    with Connection(stack.path / 'run/stampd/worker-0.sock', timeout=PATIENCE_S) as connection:
        connection.socket.sendall(connection.head(uri, way, len(content), STAMPD_NS='lab', STAMPD_DATABASE='stampd_lab', **more) + record(STDIN, content[:20000]))
        wait_until(lambda: is_all_read(connection) and process_state(worker)[:1] == ['S'], what='a worker that waits for the rest')
        os.kill(worker, signal.SIGSTOP)
        wait_until(lambda: process_state(worker)[:1] == ['T'], what='a worker that is stopped')
        os.kill(worker, signal.SIGCONT)
        wait_until(lambda: process_state(worker)[:1] != ['T'], what='a worker that goes on')
        rest = b''.join(record(STDIN, content[start:start + RECORD_BYTES]) for start in range(20000, len(content), RECORD_BYTES)) + record(STDIN, b'')
        try:
            connection.socket.sendall(rest)
        except BrokenPipeError:  # it has answered already
            pass
        answer = connection.receive()
    found = stack.get('lab', (class_, id_))['items']
    if answer.status == 503:
        problem = json.loads(answer.body)
        assert (problem['code'], problem['phase'] in (0, 1), problem['args']) == ('XTIME', True, [])
        assert [(item['c'], item.get('j')) for item in found] == [('Main', {})]
        assert way != 'PATCH' or offset(stack, uri) == 0
    else:  # a system that lets the read go on
        assert answer.status in (200, 201, 204) and (way != 'POST' or found[0]['j'] == {'new': 1})

"""The matrix of test_rules_paths.py for attachments: their addresses, forms of several parts, uploads in parts, and copies by digest or from another
document.  In `full` what a caller may not read has a file, in `bare` it is not there; both answer alike, and nothing is stored in either."""
import base64
import hashlib
import json

import pytest

import test_rules_paths
from stack import PATIENCE_S, refused
from test_rules_paths import IDS, MARK, SHARED, WORLDS, document, kit, plain, session, shared, worlds  # noqa: F401

STACK = test_rules_paths.STACK
FILE = f'{MARK}: the bytes of a file'.encode()
SHA = hashlib.sha256(FILE).hexdigest()
REPR = f'sha-256=:{base64.b64encode(hashlib.sha256(FILE).digest()).decode()}:'
TUS = {'Tus-Resumable': '1.0.0'}
CALLERS = ('anybody', 'ann', 'tim')  # tim is in a team of ann alone
HIDDEN = [(name, 'hidden-a') for name in ('Shut', 'Other', 'Desk', 'Veil', *SHARED)]
COVERED = [('Pack', 'b')]  # of which the attachments are hidden
OWN = ('Own', 'b')  # of ann


def metadata(name, ident, key='f'):
    values = {'class': name, 'id': ident, 'key': key, 'filetype': 'text/plain'}
    return {**TUS, 'Upload-Metadata': ','.join(f'{word} {base64.b64encode(value.encode()).decode()}' for word, value in values.items())}


def form(field, value):
    """The body and headers of a form with the file `picked`."""
    lines = [('Content-Disposition: form-data; name="%s"' % field, json.dumps(value).encode()),
             ('Content-Disposition: form-data; name="picked"; filename="x"\r\nContent-Type: text/plain', FILE)]
    body = b''.join(b'--edge\r\n' + head.encode() + b'\r\n\r\n' + content + b'\r\n' for head, content in lines) + b'--edge--\r\n'
    return body, {'Content-Type': 'multipart/form-data; boundary=edge'}


def reading(name, ident):
    for key in ('f', 'none', f'sha/{SHA}', 'sha/' + '0' * 64):
        it = f'doc/{name}/{ident}/file/{key}'
        yield from ((method, it, None, headers) for method in ('GET', 'HEAD')
                    for headers in ({}, {'Range': 'bytes=0-3'}, {'If-None-Match': f'"{SHA}"'}, {'If-Match': f'"{SHA}"'}, {'If-Modified-Since': 'Mon, 01 Jan 2035 00:00:00 GMT'}))


def writing(name, ident):
    it, text = f'doc/{name}/{ident}/file/f', {'Content-Type': 'text/plain'}
    for content in (FILE, b'other'):
        for headers in ({}, {'Repr-Digest': REPR}, {'If-Match': f'"{SHA}"'}, {'If-Match': '*'}, {'If-None-Match': '*'}, {'Idempotency-Key': f'{name}-{ident}', 'Repr-Digest': REPR}):
            yield 'PUT', it, content, {**text, **headers}
        yield 'POST', 'upload', None, {**metadata(name, ident), 'Upload-Length': str(len(content))}
        yield 'POST', 'upload', content, {**metadata(name, ident), 'Upload-Length': str(len(content)), 'Content-Type': 'application/offset+octet-stream'}
        yield 'POST', 'upload', content[:3], {**metadata(name, ident), 'Upload-Length': str(len(content)), 'Content-Type': 'application/offset+octet-stream', 'Repr-Digest': REPR}
    yield from (('DELETE', it, None, headers) for headers in ({}, {'If-Match': f'"{SHA}"'}, {'If-Match': '*'}))
    attach = [{'c': 'P', 'k': 'f', 'file': 'picked'}]
    for change in ({'items': attach}, {'items': attach, 'if': 0}, {'items': attach, 'if': 200101000000001}):
        yield 'POST', 'op/put', *form('param', {'docs': [{'c': name, 'id': ident, **change}]})
    for method in ('PUT', 'PATCH'):
        yield method, f'doc/{name}/{ident}', *form('items', attach)
    items = [{'sha': SHA}, {'from': {'c': name, 'id': ident, 'k': 'f'}}, {'j': {'mime': 'text/plain', 'size': len(FILE), 'sha': SHA}}, {'del': True}]
    yield from (('POST', 'op/put', json.dumps({'param': {'docs': [{'c': name, 'id': ident, 'items': [{'c': 'P', 'k': 'f', **item}]}]}}), {'Content-Type': 'application/json'})
                for item in items)


def copying(name, ident):
    """Into a document of the caller's own."""
    for item in ({'from': {'c': name, 'id': ident, 'k': 'f'}}, {'from': {'c': name, 'id': ident, 'k': 'f'}, 'sha': SHA}, {'from': {'c': name, 'id': ident, 'k': 'none'}}, {'sha': SHA},
                 {'j': {'mime': 'text/plain', 'size': len(FILE), 'sha': SHA}}):
        yield ('POST', 'op/put', json.dumps({'param': {'docs': [{'c': OWN[0], 'id': OWN[1], 'items': [{'c': 'P', 'k': 'copy', **item}]}]}}), {'Content-Type': 'application/json'})


def send(stack, ns, request, caller):
    method, path, body, headers = request
    return stack.http.request(method, f'{stack.url}/{ns}/{path}', data=body, headers={**headers, **session(caller)}, timeout=PATIENCE_S)


@pytest.fixture(scope='module')
def filed(worlds):
    """Everything that is hidden has a file, and so has a document that ann sees, in both worlds."""
    def attach(ns, name, ident):
        answer = worlds.http.put(f'{worlds.url}/{ns}/doc/{name}/{ident}/file/f', data=FILE, timeout=PATIENCE_S,
                                 headers={'Content-Type': 'text/plain', 'Authorization': f'Bearer {worlds.key}'})
        assert answer.status_code in (200, 201), answer.text
    for name, ident in (*HIDDEN, *COVERED):
        attach('full', name, ident)
    return worlds


def stored(stack, ns):
    """Rows that a request could have left: files, claims, items P, documents."""
    return [stack.psql(ns, f'select count(*) from stampd.{what}') for what in ("blob", "blob_claim", "item where iclass = 'P'", 'doc')]


@pytest.mark.parametrize('name, ident', HIDDEN + COVERED)
@pytest.mark.parametrize('caller', CALLERS)
def test_files_of_what_is_hidden_are_not_there(filed, caller, name, ident):
    before = {ns: stored(filed, ns) for ns in WORLDS}
    wrong = []
    for request in (*reading(name, ident), *writing(name, ident), *copying(name, ident)):
        full, bare = (send(filed, ns, request, caller) for ns in WORLDS)
        if plain(full, 'full') != plain(bare, 'bare') or full.status_code < 300 or any(one in full.text and one not in str(request) for one in (MARK, SHA)):
            wrong.append((request[:2], request[3], full.status_code, full.text, bare.status_code, bare.text))
    assert not wrong and {ns: stored(filed, ns) for ns in WORLDS} == before


@pytest.mark.parametrize('name', ['Own', 'Club', 'Duty'])
def test_a_file_is_lost_with_its_document(filed, name):
    """At the next request by each of its addresses, conditions and ranges included; then it can neither be copied nor continued."""
    crew = {'c': 'Crew', 'id': f'of-{IDS["ann"]}'}
    filed.put('full', shared(name, 'filed', IDS['ann']), admin=True)
    assert send(filed, 'full', ('PUT', f'doc/{name}/filed/file/f', FILE, {'Content-Type': 'text/plain'}), 'ann').status_code == 201
    upload = send(filed, 'full', ('POST', 'upload', None, {**metadata(name, 'filed', 'part'), 'Upload-Length': '6'}), 'ann')
    assert upload.status_code == 201, upload.text
    path = upload.headers['Location'].removeprefix('/full/')
    requests = [('GET', f'doc/{name}/filed/file/{key}', None, headers) for key in ('f', f'sha/{SHA}') for headers in ({}, {'If-None-Match': f'"{SHA}"'}, {'Range': 'bytes=0-3'})]
    assert [send(filed, 'full', one, 'ann').status_code for one in requests] == [200, 304, 206] * 2
    filed.put('full', {**shared(name, 'filed', IDS['bob']), 'items': [*shared(name, 'filed', IDS['bob'])['items'], {'c': 'Member', 'k': IDS['ann'], 'del': True}]}, admin=True)
    assert [send(filed, 'full', one, 'ann').status_code for one in requests] == [404] * 6
    part = {**TUS, 'Upload-Offset': '0', 'Content-Type': 'application/offset+octet-stream'}
    for content in (b'abc', b'abcdef'):
        assert send(filed, 'full', ('PATCH', path, content, part), 'ann').status_code in (403, 404)
    copied = next(copying(name, 'filed'))
    assert send(filed, 'full', copied, 'ann').json()['code'] == 'NATTACHMENT'
    filed.put('full', {'c': name, 'id': 'filed', 'delete': True}, admin=True)
    assert filed.get('full', (crew['c'], crew['id']), admin=True)['v']


def test_what_may_be_read_is_sent(filed):
    """The comparison would hold if everything were refused."""
    for name, ident in (OWN, ('Open', 'b')):
        for ns in WORLDS:
            put = ('PUT', f'doc/{name}/{ident}/file/mine', b'mine', {'Content-Type': 'text/plain'})
            assert send(filed, ns, put, 'ann').status_code == 201
            assert send(filed, ns, ('GET', put[1], None, {}), 'ann').content == b'mine'
            assert send(filed, ns, ('POST', 'op/put', *form('param', {'docs': [{'c': name, 'id': ident, 'items': [{'c': 'P', 'k': 'formed', 'file': 'picked'}]}]})), 'ann').status_code == 200
            assert send(filed, ns, ('DELETE', put[1], None, {}), 'ann').status_code == 200
    assert refused('NATTACHMENT', lambda: filed.put('bare', {**document(*OWN), 'items': [{'c': 'P', 'k': 'x', 'sha': '0' * 64}]}, admin=True))

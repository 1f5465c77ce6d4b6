"""The key in the header, methods that never write, pages of other origins, and bodies that are judged before they are accepted."""
import json
import socket
import ssl

import pytest
import requests

from fastcgi import Connection
from stack import PATIENCE_S, Problem, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'shut': 'closed', 'demo': 'read', 'lab': 'open', 'rest': 'open'},
         'settings': {'limit_anonymous_body_bytes': 262144}}
SECRET = 'the-word-that-nobody-else-may-know'
LARGE = 2_000_000


@pytest.fixture(scope='module')
def entry(stack):
    for ns in STACK['namespaces']:
        stack.put(ns, {'c': 'Secret', 'id': 'one', 'items': [{'c': 'Main', 'j': SECRET}]}, admin=True)
    return stack


def bearer(key, scheme='Bearer'):
    return {'Authorization': f'{scheme} {key}'}


def doc(id_, **more):
    return {'param': {'docs': [{'c': 'Doc', 'id': id_, **more}]}}


def exists(stack, ns, id_, class_='Doc'):
    return stack.get(ns, (class_, id_), admin=True)['v'] != 0


# --- the key in the header ---

def test_the_key_in_the_header(entry):
    for ns in STACK['namespaces']:
        answer = entry.request('POST', f'/{ns}/op/get', json={'param': {'docs': [{'c': 'Secret', 'id': 'one'}]}}, headers=bearer(entry.key))
        assert SECRET in answer.text
        answer = entry.request('GET', f'/{ns}/doc/Secret/one', headers=bearer(entry.key, 'bearer'))
        assert SECRET in answer.text and answer.headers['ETag']
        again = entry.request('GET', f'/{ns}/doc/Secret/one', headers={**bearer(entry.key), 'If-None-Match': answer.headers['ETag']})
        assert again.status_code == 304
        assert entry.request('PUT', f'/{ns}/doc/Doc/put', json={'items': []}, headers=bearer(entry.key)).status_code in (200, 201, 204)
    with entry.http.get(f'{entry.url}/shut/live', params={'def': 'Secret'}, headers=bearer(entry.key), stream=True, timeout=PATIENCE_S) as answer:
        assert answer.status_code == 200 and answer.headers['Content-Type'].startswith('text/event-stream')


@pytest.mark.parametrize('key', ['wrong', '', ' ', 'x' * 4000])
def test_a_wrong_key_in_the_header(entry, key):
    """It is refused where none is needed too, and beside the right one in the body."""
    for ns in STACK['namespaces']:
        for method, path, body in (('POST', 'op/get', {}), ('GET', 'op/list', None), ('GET', 'doc/Secret/one', None), ('GET', 'live?def=Secret', None),
                                   ('POST', 'op/get', {'admin': entry.key}), ('POST', 'od', {'param': {'scan': {}}})):
            answer = entry.request(method, f'/{ns}/{path}', json=body, headers=bearer(key))
            assert answer.json()['code'] == 'SKEY', (ns, path, answer.text)
            assert answer.json()['args'] == ['Authorization'] or not path.startswith('op'), answer.text
    answer = entry.request('POST', '/shut/op/get', json={'admin': 'wrong'}, headers=bearer(entry.key))
    assert answer.json()['code'] == 'SKEY' and answer.json()['args'] == ['admin']
    assert entry.request('GET', '/demo/doc/Secret/one', headers={'Authorization': 'Basic eDp5'}).status_code == 200, 'another scheme is not ours'


def test_no_key_is_in_a_log(entry):
    entry.request('POST', '/shut/op/nothing', json={}, headers=bearer('a-key-that-is-wrong-and-long'))
    for part in ('stampd', 'nginx', 'postgres'):
        assert entry.key not in entry.log(part) and 'a-key-that-is-wrong' not in entry.log(part)


# --- methods ---

def test_get_and_head_never_write(entry):
    for method in ('GET', 'HEAD'):
        for ns, key in (('lab', {}), ('lab', bearer(entry.key)), ('shut', bearer(entry.key))):
            for operation, param in (('put', doc(method)['param']), ('subs', {'defs': ['Doc']}), ('task', {'op': 'put', 'param': doc(method)['param']}),
                                     ('tasks', {'list': {}})):
                if operation == 'tasks' and not key:
                    continue
                answer = entry.request(method, f'/{ns}/op/{operation}', query={'param': json.dumps(param), 'session': 'session-of-the-test'}, headers=key)
                assert answer.status_code == 405 and answer.headers['Allow'] == 'POST, OPTIONS', (ns, operation, answer.text)
        assert not exists(entry, 'lab', method) and not exists(entry, 'shut', method)
    assert entry.psql('lab', 'select count(*) from subscription')[0][0] == 0
    answer = entry.request('GET', '/lab/op/put', query={'param': '{"docs":[]}'})
    assert answer.json()['code'] == 'AMETHOD' and answer.json()['args'] == ['GET']
    for operation, param in (('get', {'docs': [{'c': 'Secret', 'id': 'one'}]}), ('list', {'c': 'Secret'}), ('sync', {})):
        answer = entry.request('GET', f'/demo/op/{operation}', query={'param': json.dumps(param)})
        assert answer.status_code == 200
        assert entry.request('HEAD', f'/demo/op/{operation}', query={'param': json.dumps(param)}).status_code == 200


# --- pages of other origins ---

FORM = {'param': '{"docs":[{"c":"Doc","id":"page"}]}'}


@pytest.mark.parametrize('headers, is_foreign', [
    ({}, False),
    ({'Origin': 'https://evil.example'}, True),
    ({'Origin': 'null'}, True),
    ({'Origin': 'https://evil.example', 'Sec-Fetch-Site': 'cross-site'}, True),
    ({'Origin': 'https://app.example', 'Sec-Fetch-Site': 'cross-site'}, False),
    ({'Origin': 'https://app.example'}, False),
    ({'Origin': 'https://app.example.evil.example'}, True),
    ({'Sec-Fetch-Site': 'cross-site'}, True),
    ({'Sec-Fetch-Site': 'same-site'}, True),
    ({'Sec-Fetch-Site': 'same-origin'}, False),
    ({'Sec-Fetch-Site': 'none'}, False),
    ({'Origin': 'SELF'}, False),
    ({'Origin': 'SELF', 'Sec-Fetch-Site': 'same-origin'}, False),
])
def test_pages_of_other_origins_do_not_write(entry, headers, is_foreign):
    """A form needs no preflight, so the server looks at what the browser tells of the page."""
    conf = {'database': 'stampd_lab', 'access': 'open', 'origins': ['https://app.example']}
    entry.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Conf', 'j': conf}]}, admin=True)
    wait_until(lambda: entry.request('GET', '/lab/op/list', headers={'Origin': 'https://app.example'}).headers.get('Access-Control-Allow-Origin'),
               what='the origin')
    headers = {name: value.replace('SELF', entry.url) for name, value in headers.items()}
    answers = [entry.request('POST', '/lab/op/put', form=FORM, headers=headers), entry.request('POST', '/lab/op/put', json=doc('page'), headers=headers),
               entry.request('PUT', '/lab/doc/Doc/page', json={'items': []}, headers=headers),
               entry.request('POST', '/lab/op/put', json=doc('page'), headers={**headers, **bearer(entry.key)})]
    for answer in answers:
        assert (answer.status_code, answer.json().get('code')) == (403, 'SORIGIN') if is_foreign else answer.status_code < 300, answer.text
    assert entry.request('POST', '/lab/op/get', json={'param': {'docs': []}}, headers=headers).status_code == 200, 'reading is for CORS to judge'


# --- bodies ---

def fields_of(head):
    return dict(line.split(': ', 1) for line in head.decode().lower().split('\r\n')[1:])


def is_whole(answer):
    head, end, body = answer.partition(b'\r\n\r\n')
    return end and len(body) >= int(fields_of(head)['content-length'])


def refused_without_body(stack, path, headers, size=LARGE):
    """The answer to a request whose body is announced and never sent: nginx decides by its head alone."""
    context = ssl.create_default_context(cafile=str(stack.path / 'etc/certificate.pem'))
    with socket.create_connection(('127.0.0.1', stack.port), timeout=PATIENCE_S) as plain, context.wrap_socket(plain, server_hostname='127.0.0.1') as entry:
        lines = [f'POST {path} HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', f'Content-Length: {size}', 'Connection: close',
                 *(f'{name}: {value}' for name, value in headers.items())]
        entry.sendall('\r\n'.join([*lines, '', '']).encode())
        answer = b''
        while not is_whole(answer):  # nginx then waits for some seconds for the body, and closes
            more = entry.recv(65536)
            assert more, answer
            answer += more
    head, _, body = answer.partition(b'\r\n\r\n')
    return int(head.split()[1]), json.loads(body), fields_of(head)


@pytest.mark.parametrize('path, headers, status, code', [
    ('/shut/op/put', {}, 401, 'SCLOSED'), ('/demo/op/put', {}, 401, 'SCLOSED'), ('/z/op/put', {}, 401, 'SCLOSED'),
    ('/shut/op/pushkey', {}, 413, 'ALIMIT'), ('/shut/op/nothing', {}, 401, 'SCLOSED'), ('/demo/op/get', {}, 413, 'ALIMIT'),
    ('/lab/op/get', {}, 413, 'ALIMIT'), ('/lab/op/put', {'Authorization': 'Bearer wrong'}, 403, 'SKEY'),
    ('/shut/op/put', {'Authorization': 'Bearer wrong'}, 403, 'SKEY'), ('/shut/doc/Doc/x', {}, 405, 'AMETHOD'),
    ('/nowhere/op/put', {}, 404, 'NNAMESPACE'), ('/demo/od', {}, 413, 'ALIMIT'),
])
def test_a_large_body_is_refused_before_it_is_sent(entry, path, headers, status, code):
    answer = refused_without_body(entry, path, headers)
    assert answer[0] == answer[1]['status'] == status and answer[1]['code'] == code, answer
    assert answer[2].get('www-authenticate') == ('bearer realm="stampd"' if status == 401 else None)


@pytest.mark.parametrize('path, headers', [
    ('/shut/op/put', {}), ('/demo/op/put', {}), ('/z/op/put', {}), ('/shut/op/nothing', {}), ('/shut/op/put', {'Authorization': 'Bearer wrong'}),
    ('/lab/op/put', {'Authorization': 'Bearer wrong'}), ('/nowhere/op/put', {}), ('/rest/op/put', {}), ('/shut/doc/Doc/x', {}),
])
def test_a_large_body_is_refused_as_a_small_one_is(entry, path, headers):
    if path.startswith('/rest'):
        entry.put('z', {'c': 'Namespace', 'id': 'rest', 'items': [{'c': 'Conf', 'j': {'access': 'open', 'database': 'stampd_rest', 'state': 2}}]}, admin=True)
    small = entry.http.post(f'{entry.url}{path}', json=doc('x'), headers=headers, timeout=PATIENCE_S)
    status, problem, fields = refused_without_body(entry, path, headers)
    assert (status, problem['code']) == (small.status_code, small.json()['code'])
    assert fields.get('www-authenticate') == (small.headers.get('WWW-Authenticate') or '').lower() or status != 401
    assert ('retry-after' in fields) == ('Retry-After' in small.headers)


def test_large_bodies_of_those_who_may_write(entry):
    content = 'x' * 900_000
    items = [{'c': 'Line', 'k': str(i), 'j': content} for i in range(2)]
    big = doc('big', items=items)
    assert entry.request('POST', '/lab/op/put', json=big).status_code == 200
    assert entry.request('PUT', '/lab/doc/Doc/put-big', json={'items': items}).status_code in (200, 201, 204)
    for ns in ('shut', 'demo', 'z'):
        assert entry.request('POST', f'/{ns}/op/put', json=big, headers=bearer(entry.key)).status_code == 200
        assert entry.request('POST', f'/{ns}/op/put', json=big, admin=True).json()['code'] == 'SCLOSED', 'the key stands in a body that is too large'
        chunks = json.dumps(big).encode()
        sent = entry.http.post(f'{entry.url}/{ns}/op/put', data=iter([chunks[:100], chunks[100:]]), timeout=PATIENCE_S,
                              headers={'Content-Type': 'application/json', **bearer(entry.key)})
        assert sent.status_code == 200, sent.text
    small = entry.http.post(f'{entry.url}/demo/op/get', data=iter([b'{"param":', b'{"docs":[]}}']), headers={'Content-Type': 'application/json'}, timeout=PATIENCE_S)
    assert small.status_code == 200, 'a small body of unknown length needs no key'


def test_between_the_limits(entry):
    """Up to limit_anonymous_body_bytes the key may stand in the body."""
    padded = doc('padded', items=[{'c': 'Line', 'k': '1', 'j': 'x' * 200_000}])
    assert entry.request('POST', '/shut/op/put', json=padded, admin=True).status_code == 200
    assert entry.request('POST', '/shut/op/put', json=padded).json()['code'] == 'SCLOSED'
    held = [{'c': 'Doc', 'id': f'{i:0100}', 'v': 261121103000123, 'ct': 261121103000123, 'dt': 261121103000123} for i in range(1000)]
    assert len(entry.op('demo', 'sync', syncs=held)['syncs']) == 1000


def test_a_worker_judges_before_it_reads(entry):
    """At its own socket, where nginx does not stand before it."""
    for ns, operation, status in (('shut', 'put', 401), ('demo', 'put', 401), ('z', 'put', 401), ('lab', 'get', 413), ('lab', 'put', 200)):
        with Connection(entry.path / 'run/stampd/worker-0.sock') as worker:
            body = json.dumps(doc('direct', items=[{'c': 'Line', 'k': '1', 'j': 'x' * 500_000}])).encode()
            answer = worker.ask(f'/{ns}/op/{operation}', method='POST', body=body, CONTENT_TYPE='application/json', STAMPD_NS=ns, STAMPD_DATABASE=f'stampd_{ns}')
            assert answer.status == status, answer.body
            if status == 413:
                assert json.loads(answer.body)['args'][:2] == ['limit_anonymous_body_bytes', '262144']
    with pytest.raises(Problem):
        entry.op('shut', 'get')


WRONG = ['/lab/doc/Note/a/file', '/lab/doc/Note', '/lab/doc/Note/a/b', '/lab/doc/Note/a/file/k/x', '/lab/doc/Note/a/file/sha/x', '/lab/doc/note/a/file/k',
         '/lab/doc/Note/%zz/file/k', '/lab/doc/Note/%ff/file/k', '/lab/doc/Note/../file/k', '/lab/doc/Note//file/k', '/lab/doc/Note/' + 'a' * 300 + '/file/k',
         '/lab/doc/Note/a/file/' + 'a' * 300, '/lab/upload/x/y', '/lab/upload/x', '/lab/upload/', '/lab/upload/' + '0' * 32, '/lab/op/', '/lab/op/nothing',
         '/lab/op/%zz', '/lab/op/put/a/%ff', '/lab/doc/', '/none/doc/Note/a/file/k', '/none/op/put', '/lab/doc/Note/a?age=1', '/lab/doc/Note/a/file/k?x=1',
         '/lab/doc/Note/a/file/k?admin=x', '/lab/op/put?admin=x', '/lab/op/put?lang=%ff']


@pytest.mark.parametrize('method', ['POST', 'PUT', 'PATCH', 'DELETE'])
@pytest.mark.parametrize('path', WRONG)
def test_a_wrong_address_is_refused_alike_with_a_large_body(entry, path, method):
    """nginx asks a worker before it accepts a large body; the refusal is that of a small one."""
    def send(size):
        url = f'{entry.url}{path}'
        prepared = requests.Request(method, 'https://x/', data=b'x' * size, headers={'Content-Type': 'application/octet-stream', 'Tus-Resumable': '1.0.0'}).prepare()
        prepared.url = url  # as it is
        answer = entry.http.send(prepared, timeout=PATIENCE_S, verify=False)
        return answer.status_code, answer.json()['code']
    small = send(10)
    large = send(LARGE)
    assert large == small or large == (413, 'ALIMIT'), (small, large)
    assert large[0] < 500, large

"""HTTP as clients speak it: forms with files, compressed bodies, names of requests, origins, timings, refusals of nginx."""
import gzip
import json
import os
import re
import socket
import ssl
import subprocess

import pytest

from holder import items_of
from stack import PATIENCE_S, SOURCE, wait_until

STACK = {'workers': 2, 'settings': {'server_timing': 'on'}}


def put_of(id_, value):
    return {'docs': [{'c': 'Form', 'id': id_, 'items': [{'c': 'Head', 'j': value}]}]}


def problem_of(answer, status, code):
    assert answer.headers['Content-Type'] == 'application/problem+json', answer.text
    problem = answer.json()
    assert (answer.status_code, problem['status'], problem['code']) == (status, status, code)
    assert problem['type'] == 'about:blank' and problem['title'] and problem['message'].startswith(problem['title'])
    assert isinstance(problem['major'], int) and isinstance(problem['phase'], int) and isinstance(problem['args'], list)
    return problem


def raw(stack, request):
    """Head and JSON body of what is answered to these bytes."""
    context = ssl.create_default_context(cafile=stack.http.verify)
    context.check_hostname = False
    with socket.create_connection(('127.0.0.1', stack.port), timeout=PATIENCE_S) as line, context.wrap_socket(line) as entry:
        entry.sendall(request)
        answer = b''
        while not answer.endswith(b'}'):
            more = entry.recv(65536)
            assert more, answer
            answer += more
    head, _, body = answer.decode().partition('\r\n\r\n')
    return head, json.loads(body)


# --- multipart forms ---

def test_a_multipart_form_bears_arguments(stack):
    answer = stack.request('POST', '/lab/op/put', files={'param': (None, json.dumps(put_of('a', 'é+%20'))),
                                                         'photo': ('a.png', b'\0\xff\r\n--', 'image/png')})
    assert answer.status_code == 200, answer.text
    assert items_of(stack.get('lab', ('Form', 'a'))) == {('Head', None): 'é+%20'}
    answer = stack.request('PUT', '/lab/doc/Form/a', files={'items': (None, '[{"c":"Head","j":2}]')})
    assert answer.status_code == 200, answer.text
    assert items_of(stack.get('lab', ('Form', 'a'))) == {('Head', None): 2}


def test_curl_sends_forms(stack, tmp_path):
    (tmp_path / 'param.json').write_text(json.dumps(put_of('curl', 3)))
    (tmp_path / 'file "x\\y".bin').write_bytes(b'\r\n--' * 10000)
    done = subprocess.run(['curl', '-sk', f'{stack.url}/lab/op/put', '-F', 'param=<param.json', '-F', 'lang=fr',
                           '-F', 'file=@"file \\"x\\\\y\\".bin"'], cwd=tmp_path, capture_output=True, timeout=PATIENCE_S)
    assert 'v' in json.loads(done.stdout)['out'], done.stdout


def test_the_first_of_repeated_arguments_wins(stack):
    files = [('param', (None, json.dumps(put_of('b', 1)))), ('param', (None, json.dumps(put_of('b', 2))))]
    assert stack.request('POST', '/lab/op/put', files=files).status_code == 200
    assert items_of(stack.get('lab', ('Form', 'b'))) == {('Head', None): 1}
    answer = stack.request('POST', '/lab/op/put', query={'param': json.dumps(put_of('b', 3))}, files=files)
    assert answer.status_code == 200
    assert items_of(stack.get('lab', ('Form', 'b'))) == {('Head', None): 3}


def test_wrong_forms_are_refused_and_store_nothing(stack):
    part = b'--b\r\nContent-Disposition: form-data; name="param"\r\n\r\n' + json.dumps(put_of('none', 1)).encode() + b'\r\n'
    for type_, body, status, code in (
            ('multipart/form-data; boundary=b', part, 400, 'ABODY'),
            ('multipart/form-data; boundary=b', part + b'--b', 400, 'ABODY'),
            ('multipart/form-data; boundary=b', part + b'--b--epilogue', 400, 'AARG'),
            ('multipart/form-data; boundary=b', b'preamble\r\n' + part + b'--b--', 400, 'AARG'),
            ('multipart/form-data; boundary=b', part.replace(b'"param"', b'"param"; name="x"') + b'--b--', 400, 'AARG'),
            ('multipart/form-data; boundary=b', part * 1000 + part + b'--b--', 400, 'ALIMIT'),
            ('multipart/form-data', part + b'--b--', 415, 'ATYPE'),
            ('multipart/mixed; boundary=b', part + b'--b--', 415, 'ATYPE')):
        answer = stack.request('POST', '/lab/op/put', form=body, headers={'Content-Type': type_})
        problem = problem_of(answer, status, code)
        if code == 'ALIMIT':
            assert problem['args'] == ['limit_parts', '1000', '1001']
    assert stack.get('lab', ('Form', 'none'))['v'] == 0
    assert stack.request('POST', '/lab/op/put', form=part * 1000 + b'--b--',
                         headers={'Content-Type': 'multipart/form-data; boundary=b'}).status_code == 200


# --- methods ---

def test_head_of_an_operation_is_its_get_without_the_body(stack):
    query = {'param': json.dumps({'docs': [{'c': 'Form', 'id': 'head'}]})}
    whole, head = (stack.request(method, '/lab/op/get', query=query) for method in ('GET', 'HEAD'))
    assert (head.status_code, head.content) == (200, b'')
    assert head.headers['Content-Length'] == str(len(whole.content))
    head = stack.request('HEAD', '/lab/op/none', headers={'Accept': 'text/html'})
    assert (head.status_code, head.content) == (404, b'')


def test_options_are_for_addresses_that_are(stack):
    for path, methods in (('/ping', 'GET, HEAD, POST, OPTIONS'), ('/lab/op/get', 'GET, HEAD, POST, OPTIONS'),
                          ('/lab/res/a.css', 'GET, HEAD, OPTIONS'),
                          ('/lab/doc/Form/a', 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS')):
        answer = stack.request('OPTIONS', path)
        assert (answer.status_code, answer.headers['Allow'], answer.content) == (204, methods, b'')
    problem_of(stack.request('OPTIONS', '/lab/nothing'), 404, 'NPATH')
    problem_of(stack.request('PUT', '/lab/op/put'), 405, 'AMETHOD')


def test_people_are_told_in_text(stack):
    for path in ('/lab/op/none', '/lab/doc/Form/nobody'):
        answer = stack.request('GET', path, headers={'Accept': 'text/html,*/*'})
        assert answer.status_code == 404 and answer.headers['Content-Type'] == 'text/plain; charset=utf-8'
        assert answer.text.startswith('N')


# --- the name of a request ---

@pytest.mark.parametrize('sent, is_taken', [('abc-1.2_Z', True), ('x' * 64, True), ('x' * 65, False), ('a b', False), ('é', False),
                                            ('', False), ('a"b', False)])
def test_a_request_may_bring_its_name(stack, sent, is_taken):
    for path in ('/ping', '/lab/op/none', '/nothing/at/all'):
        answer = stack.request('GET', path, headers={'X-Request-Id': sent.encode()})
        given = answer.headers['X-Request-Id']
        assert (given == sent) == is_taken
        assert is_taken or re.fullmatch('[0-9a-f]{32}', given)


def test_names_of_requests_show_nothing_of_others(stack):
    """nginx's counters of connections and requests, by which everybody's rate would be seen, are in no answer."""
    names = [stack.request('GET', path).headers['X-Request-Id'] for path in ('/ping', '/lab/op/none', '/nothing/at/all') for _ in range(20)]
    assert len(set(names)) == len(names)
    for place in range(32):  # each digit is as random as any other: 60 names have most of the sixteen
        assert len({name[place] for name in names}) > 8


# --- pages of other origins ---

ALLOWED = {'Access-Control-Allow-Origin', 'Access-Control-Expose-Headers', 'Access-Control-Allow-Methods'}


def set_origins(stack, ns, *words):
    return stack.admin('ns', 'origins', ns, *words).out


def origin_of(stack, path, origin, method='GET', **more):
    answer = stack.request(method, path, headers={'Origin': origin, **more})
    return answer.headers.get('Access-Control-Allow-Origin'), answer


def test_without_origins_nothing_is_said(stack):
    for path in ('/ping', '/lab/ping', '/lab/op/get', '/lab/doc/Form/a'):
        for method in ('GET', 'OPTIONS'):
            origin, answer = origin_of(stack, path, 'https://app.example', method)
            assert origin is None and not ALLOWED & set(answer.headers) and 'Origin' not in answer.headers.get('Vary', '')


def test_origins_are_of_a_namespace(stack):
    set_origins(stack, 'demo', 'https://app.example', 'http://localhost:3000')
    try:
        assert set_origins(stack, 'demo') == 'https://app.example\nhttp://localhost:3000\n'
        wait_until(lambda: origin_of(stack, '/demo/ping', 'https://app.example')[0], what='the origin')
        origin, answer = origin_of(stack, '/demo/doc/Form/none', 'http://localhost:3000')
        assert origin == 'http://localhost:3000' and 'Origin' in answer.headers['Vary'], 'faults are readable too'
        assert {'ETag', 'X-Request-Id', 'Idempotency-Replayed', 'Server-Timing'} <= set(
            answer.headers['Access-Control-Expose-Headers'].split(', '))
        assert 'Access-Control-Allow-Credentials' not in answer.headers
        for stranger in ('https://other.example', 'https://app.example.', 'null', 'https://app.example:443', '*'):
            origin, answer = origin_of(stack, '/demo/ping', stranger)
            assert origin is None and answer.status_code == 200 and 'Origin' in answer.headers['Vary']
        assert origin_of(stack, '/lab/ping', 'https://app.example')[0] is None
        assert origin_of(stack, '/demo/op/none?param=%7B', 'https://app.example')[0] == 'https://app.example'
        assert 'Access-Control-Allow-Origin' not in stack.request('GET', '/demo/ping').headers
    finally:
        set_origins(stack, 'demo', '--none')
    wait_until(lambda: origin_of(stack, '/demo/ping', 'https://app.example')[0] is None, what='no origin')
    assert set_origins(stack, 'demo') == ''


def test_a_preflight_needs_no_right(stack):
    set_origins(stack, 'z', 'https://app.example', '*')
    try:
        wait_until(lambda: origin_of(stack, '/z/ping', 'https://any.example')[0], what='the origin')
        origin, answer = origin_of(stack, '/z/doc/Form/a', 'https://app.example', 'OPTIONS',
                                   **{'Access-Control-Request-Method': 'PUT', 'Access-Control-Request-Headers': 'if-match'})
        assert (origin, answer.status_code, answer.content) == ('https://app.example', 204, b'')
        assert 'PUT' in answer.headers['Access-Control-Allow-Methods']
        assert 'If-Match' in answer.headers['Access-Control-Allow-Headers']
        assert answer.headers['Access-Control-Max-Age'] == '600'
        assert origin_of(stack, '/z/op/get', 'null', 'OPTIONS')[0] == '*'
    finally:
        set_origins(stack, 'z', '--none')


def test_the_page_lists_the_headers_that_are_sent(stack):
    """protocol.md, "Pages of other origins"."""
    text = (SOURCE / 'doc/reference/protocol.md').read_text().partition('## Pages of other origins')[2].partition('\n## ')[0]
    rows = {row.split(' | ')[0].strip('| '): re.findall('`([^`]+)`', row) for row in text.splitlines() if row.startswith('| of ')}
    set_origins(stack, 'demo', 'https://app.example')
    try:
        wait_until(lambda: origin_of(stack, '/demo/ping', 'https://app.example')[0], what='the origin')
        exposed = origin_of(stack, '/demo/ping', 'https://app.example')[1].headers['Access-Control-Expose-Headers'].split(', ')
        allowed = origin_of(stack, '/demo/ping', 'https://app.example', 'OPTIONS')[1].headers['Access-Control-Allow-Headers'].split(', ')
    finally:
        set_origins(stack, 'demo', '--none')
    assert rows == {'of answers': exposed, 'of requests': allowed} and sorted(exposed) == exposed and sorted(allowed) == allowed


# --- timings ---

def test_what_phases_took_is_told(stack):
    answer = stack.request('POST', '/lab/op/put', json={'param': put_of('t', 1), 'syncs': [{'c': 'Form', 'id': 't'}]})
    told = dict(part.split(';dur=') for part in answer.headers['Server-Timing'].split(', '))
    assert list(told) == ['before', 'work', 'validation', 'afterwork', 'sync', 'total']
    times = {name: float(value) for name, value in told.items()}
    assert times['validation'] > 0 and abs(sum(times.values()) - 2 * times['total']) < 0.01
    assert 'Server-Timing' in stack.request('GET', '/lab/op/none').headers


def test_timing_is_off_unless_it_is_asked_for(stack):
    stack.set(server_timing='off')
    assert 'Server-Timing' not in stack.request('GET', '/lab/op/none').headers


# --- what nginx refuses ---

def test_nginx_speaks_as_the_server_does(stack):
    problem_of(stack.request('GET', '/nothing'), 404, 'NPATH')
    problem_of(stack.request('GET', '/ping?' + 'x' * 17000), 414, 'ALIMIT')
    problem_of(stack.request('GET', '/ping', headers={'X-Long': 'x' * 17000}), 431, 'ALIMIT')
    head, problem = raw(stack, b'POST /lab/op/put HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\nx')
    assert head.startswith('HTTP/1.1 413 ') and problem['code'] == 'ALIMIT'


def test_a_server_that_is_down_is_told(stack):
    stack.step('stampd', 'stop')
    try:
        answer = stack.request('GET', '/ping', headers={'X-Request-Id': 'mine'})
        assert answer.headers['X-Request-Id'] == 'mine'
        problem_of(answer, 503, 'OSTOPPING')
        assert answer.headers['Retry-After'] == '5' and answer.json()['phase'] == 0
    finally:
        stack.step('stampd', 'start')


def test_what_is_no_http_is_refused(stack):
    head, problem = raw(stack, b'NO HTTP AT ALL\r\n\r\n')
    assert 'application/problem+json' in head and problem['code'] == 'AARG'


# --- compressed bodies ---

def packed(value):
    return gzip.compress(value if isinstance(value, bytes) else json.dumps(value).encode())


def send_packed(stack, method, path, value, key=False, **headers):
    return stack.http.request(method, f'{stack.url}{path}', data=packed(value), headers={
        'Content-Type': 'application/json', 'Content-Encoding': 'gzip', **({'Authorization': f'Bearer {stack.key}'} if key else {}), **headers})


def test_gzipped_bodies_are_as_plain_ones(stack):
    text = 'words ' * 5000
    put = send_packed(stack, 'POST', '/lab/op/put', {'param': {'docs': [{'c': 'Note', 'id': 'packed', 'items': [{'c': 'Text', 'j': text}]}]}}, **{'Content-Encoding': 'GZIP'})
    assert put.status_code == 200, put.text
    assert stack.op('lab', 'get', {'docs': [{'c': 'Note', 'id': 'packed'}]})['out']['docs'][0]['items'][0]['j'] == text
    for method in ('PUT', 'PATCH'):
        answer = send_packed(stack, method, '/lab/doc/Note/resource', {'items': [{'c': 'Text', 'j': method}]})
        assert answer.ok, answer.text
        assert stack.http.get(f'{stack.url}/lab/doc/Note/resource').json()['items'][0]['j'] == method
    form = stack.http.post(f'{stack.url}/lab/op/get', data=gzip.compress(b'param=%7B%22docs%22%3A%5B%5D%7D'),
                           headers={'Content-Type': 'application/x-www-form-urlencoded', 'Content-Encoding': 'x-gzip'})
    assert form.json()['out'] == {'docs': []}
    with stack.http.post(f'{stack.url}/lab/live', data=packed({'defs': ['Note']}), stream=True, timeout=PATIENCE_S, headers={
            'Content-Type': 'application/json', 'Content-Encoding': 'gzip', 'Accept': 'text/event-stream'}) as live:
        assert live.status_code == 200 and live.headers['Content-Type'] == 'text/event-stream'


def test_a_gzipped_body_is_bounded_by_its_text(stack):
    def refusal(text, path='/lab/op/put', **more):
        answer = send_packed(stack, 'POST', path, text, **more)
        problem = answer.json()
        return answer.status_code, problem['code'], problem['args'][0]

    noise = os.urandom(300000).hex().encode()  # half as large when it is packed
    assert refusal(b'"' + noise + b'"', path='/demo/op/get') == (413, 'ALIMIT', 'limit_anonymous_body_bytes')
    assert refusal(b'"' + noise + b'"', path='/demo/op/get', key=True) == (400, 'AARG', 'body'), 'with a key it is read'
    assert refusal(b'"' + noise * 30 + b'"', key=True) == (413, 'ALIMIT', 'limit_body_bytes')
    assert refusal(b'"' + b'a' * 300000 + b'"') == (400, 'ALIMIT', 'limit_body_ratio')
    assert refusal(b'"' + b'a' * 1000000 + b'"', path='/lab/live') == (400, 'ALIMIT', 'limit_body_ratio')
    for body in (b'{"param":{}}', packed({'param': {}})[:-1], packed({'param': {}}) + b'x'):
        for path in ('/lab/op/get', '/lab/live'):
            answer = stack.http.post(f'{stack.url}{path}', data=body, headers={'Content-Type': 'application/json', 'Content-Encoding': 'gzip'})
            assert (answer.status_code, answer.json()['code'], answer.json()['args']) == (400, 'ABODY', ['body'])
    assert stack.http.get(f'{stack.url}/ping').ok

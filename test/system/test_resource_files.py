"""Files of namespaces, served at /{ns}/res/<path>: put, removed and listed by the operation `resource` of z; kept by nginx; in every state and
under every access; hostile paths; the build number that moves with them."""
import base64
import hashlib
import itertools
import json
import os

import pytest

from stack import PATIENCE_S, Problem, refused

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'shut': 'closed', 'demo': 'open', 'lab': 'read'},
         'settings': {'resource_cache_s': 0, 'limit_resources': 40, 'limit_resource_bytes': 2 << 20, 'limit_resources_mb': 4}}
PNG = b'\x89PNG\r\n\x1a\n' + bytes(range(256)) * 8
NAMESPACES = ('shut', 'demo', 'lab', 'z')


def file_of(path, content=b'x', **more):
    return {'path': path, 'b64': base64.b64encode(content).decode(), **more}


def put(stack, ns, *files, remove=(), **more):
    wish = {'ns': ns, 'files': list(files), **more}
    if remove:
        wish['remove'] = list(remove)
    answer = stack.http.post(f'{stack.url}/z/op/resource', json={'param': {'put': wish}}, headers={'Authorization': f'Bearer {stack.key}'}, timeout=PATIENCE_S)
    if answer.status_code != 200:
        raise Problem(answer)
    return answer.json()['out']['v']


def refused_at(code, first, action):
    """Refused with this code, about this argument."""
    problem = refused(code, action)
    assert problem.body['args'][0] == first, problem


def listed(stack, ns):
    return {one['path']: one for one in stack.op('z', 'resource', {'list': ns}, admin=True)['out']['files']}


def fetch(stack, ns, path, method='GET', **headers):
    return stack.http.request(method, f'{stack.url}/{ns}/res/{path}', headers={name.replace('_', '-'): value for name, value in headers.items()},
                              timeout=PATIENCE_S)


def build_of(stack, ns):
    return stack.ping(ns).json()['build']


def set_member(stack, ns, **members):
    return stack.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)


@pytest.fixture(autouse=True)
def emptied(stack):
    yield
    for ns in NAMESPACES:
        stack.op('z', 'ns', {'set': {'ns': ns, 'state': None, 'message': None}}, admin=True)
        names = list(listed(stack, ns))
        for i in range(0, len(names), 30):
            put(stack, ns, remove=names[i:i + 30])


# --- content, headers, conditions ---

def test_a_file_is_served_as_it_was_put(stack):
    put(stack, 'demo', file_of('img/logo.png', PNG), {'path': 'custom.css', 's': 'b{color:é}'}, file_of('empty.txt', b''))
    answer = fetch(stack, 'demo', 'img/logo.png')
    digest = hashlib.sha256(PNG).hexdigest()
    assert (answer.status_code, answer.content, answer.headers['Content-Type']) == (200, PNG, 'image/png')
    assert answer.headers['ETag'] == f'"{digest}"' and answer.headers['Cache-Control'] == 'public, no-cache'
    assert answer.headers['X-Content-Type-Options'] == 'nosniff' and 'Content-Security-Policy' not in answer.headers
    assert answer.headers['Access-Control-Allow-Origin'] == '*' and 'X-Accel-Expires' not in answer.headers and answer.headers['X-Request-Id']
    assert 'Set-Cookie' not in answer.headers
    css = fetch(stack, 'demo', 'custom.css')
    assert css.content.decode() == 'b{color:é}' and css.headers['Content-Type'] == 'text/css; charset=utf-8'
    assert fetch(stack, 'demo', 'empty.txt').content == b''
    head = fetch(stack, 'demo', 'img/logo.png', 'HEAD')
    assert head.status_code == 200 and head.content == b'' and int(head.headers['Content-Length']) == len(PNG)
    assert head.headers['ETag'] == answer.headers['ETag']
    for tag in (f'"{digest}"', f'W/"{digest}"', f'"a", "{digest}"'):
        again = fetch(stack, 'demo', 'img/logo.png', If_None_Match=tag)
        assert (again.status_code, again.content) == (304, b''), tag
    assert fetch(stack, 'demo', 'img/logo.png', If_None_Match='"other"').status_code == 200


@pytest.mark.parametrize('size', [1, 524287, 524288, 524289, 1048576, 2 << 20])
def test_files_of_every_size_are_exact(stack, size):
    content = os.urandom(size)
    put(stack, 'demo', file_of('a.pdf', content))
    for _ in range(4):
        assert fetch(stack, 'demo', 'a.pdf').content == content
    put(stack, 'demo', file_of('a.pdf', content[:size // 2]))  # fewer pieces than before
    assert fetch(stack, 'demo', 'a.pdf').content == content[:size // 2]


def test_a_namespace_has_the_files_of_z_unless_it_has_its_own(stack):
    put(stack, 'z', file_of('logo.png', b'of z'))
    assert [fetch(stack, ns, 'logo.png').content for ns in NAMESPACES] == [b'of z'] * 4
    put(stack, 'demo', file_of('logo.png', b'own'))
    assert [fetch(stack, ns, 'logo.png').content for ns in NAMESPACES] == [b'of z', b'own', b'of z', b'of z']
    put(stack, 'demo', remove=['logo.png'])
    assert fetch(stack, 'demo', 'logo.png').content == b'of z'
    put(stack, 'z', remove=['logo.png'])
    assert {fetch(stack, ns, 'logo.png').status_code for ns in NAMESPACES} == {404}


def test_files_are_public_and_nothing_else_of_z_is(stack):
    put(stack, 'shut', file_of('a.png', PNG))
    assert fetch(stack, 'shut', 'a.png').status_code == 200
    assert fetch(stack, 'shut', 'a.png', Authorization='Bearer wrong').status_code == 200
    for class_, id_ in (('Resources', 'shut'), ('Resource', 'shut/a.png'), ('Resource', 'shut%2Fa.png')):
        assert stack.request('GET', f'/z/doc/{class_}/{id_}').status_code in (401, 404)
    refused('SCLOSED', lambda: stack.get('z', ('Resources', 'shut')))
    for ns, code in (('z', 'SCLOSED'), ('demo', 'SCLOSED')):
        refused(code, lambda: stack.op(ns, 'resource', {'list': 'shut'}))
        refused(code, lambda: stack.op(ns, 'resource', {'put': {'ns': 'shut', 'files': []}}))
    refused_at('AARG', 'path', lambda: stack.op('demo', 'resource', {'list': 'shut'}, admin=True))
    refused('SKEY', lambda: stack.op('z', 'resource', {'list': 'shut'}, admin='wrong-wrong-wrong-wrong'))


def test_several_files_are_one_commit(stack):
    put(stack, 'demo', *(file_of(f'{i}.txt', b'one') for i in range(10)))
    version = put(stack, 'demo', *(file_of(f'{i}.txt', b'two') for i in range(9)), remove=['9.txt'])
    files = listed(stack, 'demo')
    assert sorted(files) == [f'{i}.txt' for i in range(9)] and {one['v'] for one in files.values()} == {version}
    assert files['0.txt'] == {'path': '0.txt', 'v': version, 'type': 'text/plain; charset=utf-8', 'size': 3, 'sha256': hashlib.sha256(b'two').hexdigest()}
    assert fetch(stack, 'demo', '9.txt').status_code == 404
    refused('AARG', lambda: put(stack, 'demo', file_of('a.txt'), file_of('../b.txt')))
    refused('AVERSION', lambda: put(stack, 'demo', file_of('a.txt'), **{'if': version - 1}))
    assert 'a.txt' not in listed(stack, 'demo'), 'all or nothing'
    assert put(stack, 'demo', file_of('0.txt', b'two'), **{'if': version}) == version, 'the same again changes nothing'


def test_a_form_bears_files(stack):
    param = {'put': {'ns': 'demo', 'files': [{'path': 'img/a.png', 'file': 'first'}]}}
    answer = stack.http.post(f'{stack.url}/z/op/resource', data={'param': json.dumps(param)}, files={'first': ('any', PNG, 'image/gif')},
                             headers={'Authorization': f'Bearer {stack.key}'}, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    assert (fetch(stack, 'demo', 'img/a.png').content, fetch(stack, 'demo', 'img/a.png').headers['Content-Type']) == (PNG, 'image/png')
    refused_at('AARG', 'file', lambda: stack.op('z', 'resource', param, admin=True))


# --- types ---

def test_types_are_declared_or_known(stack):
    for path in ('a.html', 'a.svg', 'a.xml', 'a.xhtml', 'a', 'a.', '.css', 'a.exe', 'a.png.b', 'a.htm', 'dir.css/a'):
        refused_at('AARG', 'type', lambda: put(stack, 'demo', file_of(path)))
    for type_ in ('', 'png', 'image/', '/png', 'Image/PNG', 'image/png;', 'image/png; a', 'image/png\r\nX-A: b', 'image/png\nb', 'image/pn g',
                  'multipart/x-mixed-replace; boundary=a', 'a/' + 'b' * 100, 'image/png; a="b"', 'é/e', 'a/b/c'):
        refused_at('AARG', 'type', lambda: put(stack, 'demo', file_of('a.png', type=type_)))
    for policy in ('a\r\nb', 'é', 'a' * 1001, '\0'):
        with pytest.raises(Exception):
            put(stack, 'demo', file_of('a.html', type='text/html', policy=policy))
    assert not listed(stack, 'demo')


@pytest.mark.parametrize('type_', ['text/html', 'text/html; charset=utf-8', 'image/svg+xml', 'application/xhtml+xml', 'application/xml', 'text/xml', 'text/xsl',
                                   'application/rss+xml'])
def test_pages_are_in_a_sandbox(stack, type_):
    put(stack, 'demo', file_of('page', b'<p>', type=type_), file_of('free', b'<p>', type=type_, policy=''),
        file_of('own', b'<p>', type=type_, policy="default-src 'self'"))
    policies = [fetch(stack, 'demo', path).headers.get('Content-Security-Policy') for path in ('page', 'free', 'own')]
    assert policies == ['sandbox', None, "default-src 'self'"]
    assert all(fetch(stack, 'demo', path).headers['Content-Type'] == type_ for path in ('page', 'free', 'own'))


# --- hostile paths ---

REFUSED_PATHS = ['', '/', '/a.css', 'a.css/', 'a//b.css', '.', '..', '../a.css', 'a/../b.css', './a.css', 'a/./b.css', 'a/..', 'a\\b.css', 'a%2Fb.css',
                 'a?b.css', 'a#b.css', 'a\nb.css', 'a\x7f.css', '\x01.css', 'x' * 197 + '.css', '/'.join(['d'] * 16) + '/a.css', 'é' * 99 + '.css']


@pytest.mark.parametrize('path', REFUSED_PATHS)
def test_paths_that_cannot_be_put(stack, path):
    refused_at('AARG', 'path', lambda: put(stack, 'demo', file_of(path, type='text/css')))
    refused_at('AARG', 'remove', lambda: put(stack, 'demo', remove=[path]))


def test_paths_that_can(stack):
    paths = ['a.css', '.well-known/x.txt', 'é/ß.css', 'a b.css', 'a+b.css', '...', '..a.css', '/'.join(['d'] * 15) + '/a.css', 'x' * 196 + '.css', "it's;&=.css"]
    put(stack, 'demo', *(file_of(path, path.encode(), type='text/css') for path in paths))
    for path in paths:
        answer = stack.http.get(f'{stack.url}/demo/res/' + '/'.join(map(quoted, path.split('/'))), timeout=PATIENCE_S)
        assert (answer.status_code, answer.content) == (200, path.encode()), path


def quoted(part):
    return ''.join(f'%{byte:02X}' for byte in part.encode())


def raw(stack, target):
    """The status of a GET of exactly this target, which clients would normalise."""
    import http.client
    import ssl
    context = ssl.create_default_context(cafile=stack.http.verify)
    context.check_hostname = False
    line = http.client.HTTPSConnection('127.0.0.1', stack.port, context=context, timeout=PATIENCE_S)
    try:
        line.putrequest('GET', target, skip_accept_encoding=True)
        line.endheaders()
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


@pytest.mark.parametrize('target', [
    '/demo/res/../res/d/a.css', '/demo/res/d%2Fa.css', '/demo/res/d%2fa.css', '/demo/res/%2e%2e/res/d/a.css', '/demo/res/d/../d/a.css', '/demo/res/d/./a.css',
    '/demo/res//d/a.css', '/demo/res/d//a.css', '/demo/res/d/a.css/', '/demo/res/d%5Ca.css', '/demo/res/d/a.css%00', '/demo/res/d/a.css%00.png', '/demo/res/d/a%252ecss',
    '/demo/res/d/a.css%0d%0aX-A:b', '/demo/res/%c0%ae%c0%ae/a.css', '/demo/res/d/a%2', '/demo/res/d/a%zz.css', '/demo/res/%ff', '/demo/res/', '/demo/res', '/demo/res/d',
    '/demo//res/d/a.css', '/demo/RES/d/a.css', '/demo/%72es/d/a.css', '/demo/res/' + 'x/' * 70 + 'a', '/demo/res/' + 'a' * 5000, '/demo/res/..%2f..%2fz/d/a.css',
    '/demo/res/d/a.css;x', '/demo/res/D/A.CSS', '/shut/res/d/a.css', '/nothere/res/d/a.css', '/demo/res/..%252f', '/demo/res/d/%2e/a.css', '/demo/res/demo/d/a.css'])
def test_hostile_targets_find_nothing(stack, target):
    put(stack, 'demo', file_of('d/a.css', b'found'))
    status, body = raw(stack, target)
    assert status in (400, 404) and b'found' not in body, body
    assert raw(stack, '/demo/res/d/a.css') == (200, b'found')


def test_only_what_reads_is_allowed(stack):
    put(stack, 'demo', file_of('a.css', b'found'))
    for method in ('POST', 'PUT', 'DELETE', 'PATCH'):
        answer = stack.http.request(method, f'{stack.url}/demo/res/a.css', data=b'x' * 1000, timeout=PATIENCE_S)
        assert (answer.status_code, answer.json()['code'], answer.headers['Allow']) == (405, 'AMETHOD', 'GET, HEAD, OPTIONS'), method
    answer = stack.http.options(f'{stack.url}/demo/res/a.css', timeout=PATIENCE_S)
    assert answer.status_code == 204 and answer.headers['Allow'] == 'GET, HEAD, OPTIONS'
    assert fetch(stack, 'demo', 'a.css').content == b'found'


# --- limits ---

def test_limits_are_named(stack):
    refused_at('ALIMIT', 'limit_resource_bytes', lambda: put(stack, 'demo', file_of('a.png', b'x' * ((2 << 20) + 1))))
    refused_at('ALIMIT', 'limit_documents', lambda: put(stack, 'demo', *(file_of(f'{i}.txt') for i in range(31))))
    put(stack, 'demo', *(file_of(f'{i}.txt') for i in range(30)))
    put(stack, 'demo', *(file_of(f'{i}.txt') for i in range(30, 40)))
    refused_at('ALIMIT', 'limit_resources', lambda: put(stack, 'demo', file_of('40.txt')))
    put(stack, 'demo', file_of('40.txt'), remove=['0.txt'])
    put(stack, 'lab', file_of('a.png', b'x' * (2 << 20)))
    put(stack, 'lab', file_of('b.png', b'x' * (2 << 20)))
    refused_at('ALIMIT', 'limit_resources_mb', lambda: put(stack, 'lab', file_of('c.png', b'x')))
    refused_at('NNAMESPACE', 'nothere', lambda: put(stack, 'nothere', file_of('a.png')))
    refused_at('AARG', 'files', lambda: put(stack, 'demo', file_of('a.png'), file_of('a.png')))


# --- states ---

@pytest.mark.parametrize('own, of_z', itertools.product(range(4), range(4)))
def test_files_in_every_state(stack, own, of_z):
    put(stack, 'demo', file_of('a.png', PNG))
    put(stack, 'z', file_of('z.png', b'of z'))
    set_member(stack, 'demo', state=own, message='words')
    set_member(stack, 'z', state=of_z)
    for path, content in (('a.png', PNG), ('z.png', b'of z')):
        for key in ({}, {'Authorization': f'Bearer {stack.key}'}):
            answer = fetch(stack, 'demo', path, **key)
            if max(own, of_z) == 3:
                assert (answer.status_code, answer.json()['code'], answer.headers['Cache-Control']) == (410, 'OGONE', 'no-store')
            else:
                assert (answer.status_code, answer.content) == (200, content)
    assert fetch(stack, 'z', 'z.png').content == b'of z', 'z is served always'


# --- the build ---

def test_the_build_moves_with_what_pages_are_made_with(stack):
    def moved(act):
        before = build_of(stack, 'demo'), build_of(stack, 'lab')
        act()
        after = build_of(stack, 'demo'), build_of(stack, 'lab')
        assert after[0] >= before[0] and after[1] >= before[1]
        return tuple(a > b for a, b in zip(after, before))
    assert moved(lambda: set_member(stack, 'demo', theme='dark')) == (True, False)
    assert moved(lambda: set_member(stack, 'demo', theme='dark')) == (False, False)
    assert moved(lambda: set_member(stack, 'demo', label='Demo', options={'a': 1})) == (True, False)
    assert moved(lambda: set_member(stack, 'demo', options=None)) == (True, False)
    assert moved(lambda: set_member(stack, 'demo', state=1, message='words', access='read', origins=['https://a.example'])) == (False, False)
    set_member(stack, 'demo', state=0, access='open', origins=None)
    assert moved(lambda: put(stack, 'demo', file_of('a.png', b'one'))) == (True, False)
    assert moved(lambda: put(stack, 'demo', file_of('a.png', b'two'))) == (True, False)
    assert moved(lambda: put(stack, 'demo', file_of('a.png', b'two'))) == (False, False)
    assert moved(lambda: put(stack, 'demo', remove=['a.png'])) == (True, False)
    assert moved(lambda: put(stack, 'demo', remove=['a.png'])) == (False, False)
    assert moved(lambda: put(stack, 'z', file_of('z.png'))) == (True, True)
    assert moved(lambda: set_member(stack, 'demo', theme=None, label=None)) == (True, False)


def test_a_client_of_an_older_build_is_refused(stack):
    put(stack, 'demo', file_of('a.png', b'first'))
    build = build_of(stack, 'demo')

    def get(header):
        return stack.http.post(f'{stack.url}/demo/op/get', json={'param': {'docs': []}}, headers={'X-Stampd-Build': header}, timeout=PATIENCE_S)
    for accepted in (f'+{build}', f'any+{build}', f'+{build + 1}', 'any', 'any+1x', '+', ''):
        assert get(accepted).status_code == 200, accepted
    put(stack, 'demo', file_of('a.png', b'second'))
    for _ in range(6):  # by several workers
        for header in (f'+{build}', f'any+{build}', '+0', '+1'):
            answer = get(header)
            problem = answer.json()
            assert (answer.status_code, problem['code'], problem['args']) == (400, 'DBUILD', [header, f'+{build_of(stack, "demo")}'])
    assert get(f'+{build_of(stack, "demo")}').status_code == 200
    answer = stack.http.get(f'{stack.url}/demo/doc/Note/x', headers={'X-Stampd-Build': f'+{build}'}, timeout=PATIENCE_S)
    assert answer.json()['code'] == 'DBUILD', 'documents as resources too'


def test_an_address_with_the_present_build_never_changes(stack):
    put(stack, 'demo', file_of('a.png', b'first'))
    build = build_of(stack, 'demo')
    answer = fetch(stack, 'demo', f'a.png?b={build}')
    assert answer.headers['Cache-Control'] == 'public, max-age=31536000, immutable' and answer.content == b'first'
    for query in (f'b={build - 1}', f'b={build + 1}', 'b=', 'b=x', f'b=-{build}', f'b=+{build}', f'b={build}&x=1', f'x={build}', 'b=' + '9' * 30, 'x'):
        answer = fetch(stack, 'demo', f'a.png?{query}')
        assert (answer.status_code, answer.content, answer.headers['Cache-Control']) == (200, b'first', 'public, no-cache'), query


# --- isolation of what is stored ---

def test_ids_do_not_collide(stack):
    """Files of one namespace never become those of another, whatever their paths are."""
    put(stack, 'demo', file_of('shut/a.png', b'of demo'))
    assert fetch(stack, 'shut', 'a.png').status_code == 404 and fetch(stack, 'shut', 'shut/a.png').status_code == 404
    stack.put('demo', {'c': 'Resource', 'id': 'demo/b.png', 'items': [{'c': 'Meta', 'j': {}}]})
    stack.put('demo', {'c': 'Resources', 'id': 'demo', 'items': [{'c': 'File', 'k': 'b.png', 'j': {}}]})
    assert fetch(stack, 'demo', 'b.png').status_code == 404

"""stampctl resource put, rm, list, get: a folder becomes the files of a namespace in one commit; what the server serves is what was stored."""
import json
import os

import pytest

from stack import PATIENCE_S, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'demo': 'open', 'lab': 'closed'},
         'settings': {'resource_cache_s': 0, 'limit_resources': 100, 'limit_resource_bytes': 2 << 20, 'limit_resources_mb': 4}}


@pytest.fixture
def folder(tmp_path):
    for name, content in {'index.html': b'<p>', 'css/a.css': b'a{}', 'css/b.css': b'', 'img/deep/logo.png': bytes(range(256)) * 3000, '.git/config': b'secret',
                          '.well-known/security.txt': b'mail', '.hidden.css': b'secret', "it's é.txt": b'name'}.items():
        (tmp_path / 'site' / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'site' / name).write_bytes(content)
    return tmp_path / 'site'


@pytest.fixture(autouse=True)
def emptied(stack):
    yield
    for ns in ('demo', 'lab', 'z'):
        names = [one['path'] for one in listed(stack, ns)]
        if names:
            stack.admin('resource', 'rm', ns, *names)


def listed(stack, ns):
    return [json.loads(line) for line in stack.admin('resource', 'list', ns, '--json').out.splitlines()]


def fetch(stack, ns, path):
    return stack.http.get(f'{stack.url}/{ns}/res/{path}', timeout=PATIENCE_S)


def served(stack, ns, path, content):
    """Workers are told by a notification of the database."""
    wait_until(lambda: fetch(stack, ns, path).content == content, what=path)


def put(stack, *words, status=0):
    return stack.admin('resource', 'put', *words, status=status)


def test_a_folder_is_served(stack, folder):
    before = stack.ping('demo').json()['build']
    assert put(stack, 'demo', folder, '--type', 'html=text/html').out == 'demo: 6 files changed\n'
    for path in folder.rglob('*'):
        name = str(path.relative_to(folder))
        if path.is_file() and not (name.startswith('.') and not name.startswith('.well-known')):
            served(stack, 'demo', name, path.read_bytes())
    assert [one['path'] for one in listed(stack, 'demo')] == ['.well-known/security.txt', 'css/a.css', 'css/b.css', 'img/deep/logo.png', 'index.html', "it's é.txt"]
    assert fetch(stack, 'demo', '.git/config').status_code == 404 and fetch(stack, 'demo', '.hidden.css').status_code == 404
    assert fetch(stack, 'demo', 'index.html').headers['Content-Security-Policy'] == 'sandbox'
    wait_until(lambda: stack.ping('demo').json()['build'] > before, what='the build')
    build = stack.ping('demo').json()['build']
    assert put(stack, 'demo', folder, '--type', 'html=text/html').out == 'demo: 0 files changed\n'
    assert stack.ping('demo').json()['build'] == build, 'nothing has changed'
    versions = {one['v'] for one in stack.op('z', 'resource', {'list': 'demo'}, admin=True)['out']['files']}
    (folder / 'css/a.css').write_bytes(b'b{}')
    assert put(stack, 'demo', folder, '--type', 'html=text/html', '--json').out == '{"ns":"demo","changed":1}\n'
    served(stack, 'demo', 'css/a.css', b'b{}')
    after = {one['path']: one['v'] for one in stack.op('z', 'resource', {'list': 'demo'}, admin=True)['out']['files']}
    assert [path for path, version in after.items() if version not in versions] == ['css/a.css']


def test_what_the_server_stores_stampctl_reads_and_the_reverse(stack, folder, tmp_path):
    put(stack, 'demo', folder / 'img/deep/logo.png', '--under', 'img')
    content = (folder / 'img/deep/logo.png').read_bytes()
    served(stack, 'demo', 'img/logo.png', content)
    stack.admin('resource', 'get', 'demo', 'img/logo.png', '--output', tmp_path / 'got')
    assert (tmp_path / 'got').read_bytes() == content
    stack.op('z', 'resource', {'put': {'ns': 'demo', 'files': [{'path': 'a.css', 's': 'x{}'}], 'remove': ['img/logo.png']}}, admin=True)
    assert stack.admin('resource', 'get', 'demo', 'a.css').out == 'x{}'
    assert stack.admin('resource', 'list', 'demo').out.split() == ['3', 'text/css;', 'charset=utf-8', 'a.css']
    stack.admin('resource', 'get', 'demo', 'img/logo.png', status=1)
    put(stack, 'demo', folder / 'css')
    assert [one['path'] for one in listed(stack, 'demo')] == ['a.css', 'b.css']
    served(stack, 'demo', 'a.css', b'a{}')


def test_only_what_is_in_the_folder_stays(stack, folder):
    put(stack, 'demo', folder, '--type', 'html=text/html')
    assert put(stack, 'demo', folder / 'css', '--under', 'css', '--only').out == 'demo: 0 files changed\n'
    os.unlink(folder / 'css/b.css')
    assert put(stack, 'demo', folder / 'css', '--under', 'css', '--only').out == 'demo: 1 files changed\n'
    assert 'css/b.css' not in [one['path'] for one in listed(stack, 'demo')]
    put(stack, 'demo', folder / 'css', '--only')
    assert [one['path'] for one in listed(stack, 'demo')] == ['a.css']
    wait_until(lambda: fetch(stack, 'demo', 'index.html').status_code == 404, what='the removal')


def test_policies_and_types(stack, folder):
    put(stack, 'demo', folder, '--type', 'html=text/html', '--policy', "default-src 'self'")
    served(stack, 'demo', 'index.html', b'<p>')
    assert fetch(stack, 'demo', 'index.html').headers['Content-Security-Policy'] == "default-src 'self'"
    assert 'Content-Security-Policy' not in fetch(stack, 'demo', 'css/a.css').headers


def test_nothing_is_stored_unless_all_is(stack, folder):
    assert 'index.html' in put(stack, 'demo', folder, status=1).error
    (folder / 'large.png').write_bytes(b'x' * ((2 << 20) + 1))
    assert 'limit_resource_bytes' in put(stack, 'demo', folder, '--type', 'html=text/html', status=1).error
    os.unlink(folder / 'large.png')
    for number in range(3):
        (folder / f'{number}.png').write_bytes(b'x' * (3 << 19))
    assert 'limit_resources_mb' in put(stack, 'demo', folder, '--type', 'html=text/html', status=1).error
    for number in range(100):
        (folder / f'{number}.png').write_bytes(b'x')
    assert 'limit_resources' in put(stack, 'demo', folder, '--type', 'html=text/html', status=1).error
    os.symlink('/etc/passwd', folder / 'css/passwd.txt')
    assert 'passwd.txt' in put(stack, 'demo', folder / 'css', status=1).error
    assert listed(stack, 'demo') == []


@pytest.mark.parametrize('words', [('put', 'demo', '/tmp', '--under', '../x'), ('put', 'demo', '/tmp', '--type', 'html'), ('put', 'demo', '/tmp', '--type', 'html=Text/HTML'),
                                   ('put', 'demo', '/tmp', '--policy', 'é'), ('rm', 'demo', '../a'), ('rm', 'demo', 'a', 'a'), ('get', 'demo', 'a//b'), ('rm', 'demo')])
def test_wrong_words(stack, words):
    assert stack.admin('resource', *words, status=2).error.count('\n') == 1


def test_there_must_be_such_a_namespace(stack, folder):
    assert 'nothere' in put(stack, 'nothere', folder, status=1).error
    stack.admin('resource', 'list', 'nothere', status=1)
    put(stack, 'z', folder / 'css/a.css')
    served(stack, 'lab', 'a.css', b'a{}')


def test_the_files_of_a_dropped_namespace_are_gone(stack, folder):
    stack.admin('ns', 'create', 'gone')
    put(stack, 'gone', folder / 'css')
    assert len(listed(stack, 'gone')) == 2
    stack.admin('ns', 'drop', 'gone', '--yes')
    assert stack.psql('z', "select class, id from doc where ctime <> 0 and id ~ '^gone'") == []
    stack.admin('ns', 'create', 'gone')
    assert listed(stack, 'gone') == []
    stack.admin('ns', 'drop', 'gone', '--yes')


def test_check_config_knows_the_copies(stack, tmp_path):
    nginx = (stack.path / 'etc/nginx.conf').read_text()
    assert 'nginx: copies of files' in stack.stampctl('check-config', '--nginx', stack.path / 'etc/nginx.conf').out
    for wrong, right in (('max_size=64m', 'max_size=65m'), ('fastcgi_cache_path', '#fastcgi_cache_path')):
        (tmp_path / 'nginx.conf').write_text(nginx.replace(wrong, right))
        found = stack.stampctl('check-config', '--nginx', tmp_path / 'nginx.conf', status=1).out
        assert [line for line in found.splitlines() if line.startswith('FAIL')][0].split(':')[0] == 'FAIL  nginx', found

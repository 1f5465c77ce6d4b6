"""nginx keeps copies of the files of namespaces: a crowd does not reach the workers, a change is seen in time, nobody gets another's copy."""
import hashlib
import http.client
import ssl

import pytest

from stack import PATIENCE_S, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'demo': 'open', 'lab': 'closed'}, 'settings': {'resource_cache_s': 3600}}
MANY = 400


def put(stack, ns, path, text, **more):
    return stack.op('z', 'resource', {'put': {'ns': ns, 'files': [{'path': path, 's': text, **more}]}}, admin=True)


def fetch(stack, ns, path, method='GET', **headers):
    return stack.http.request(method, f'{stack.url}/{ns}/res/{path}', headers=headers, timeout=PATIENCE_S)


def fetch_as_written(stack, target):
    """Without the rewriting of clients."""
    context = ssl.create_default_context(cafile=stack.http.verify)
    context.check_hostname = False
    line = http.client.HTTPSConnection('127.0.0.1', stack.port, context=context, timeout=PATIENCE_S)
    try:
        line.request('GET', target)
        return line.getresponse().read().decode()
    finally:
        line.close()


def reached(stack, act):
    """How many requests have come to the workers; the probe is one."""
    before = stack.metrics()['stampd_requests_total']
    act()
    return stack.metrics()['stampd_requests_total'] - before - 1


@pytest.fixture
def briefly(stack):
    stack.set(resource_cache_s=1)
    stack.restart_stampd()
    yield stack
    stack.set(resource_cache_s=3600)
    stack.restart_stampd()


def test_a_crowd_does_not_reach_the_workers(stack):
    put(stack, 'demo', 'crowd.css', 'a{}')
    tag = f'"{hashlib.sha256(b"a{}").hexdigest()}"'

    def crowd():
        for number in range(MANY):
            assert fetch(stack, 'demo', f'crowd.css?x={number}').text == 'a{}'
            assert fetch(stack, 'demo', 'crowd.css', **{'If-None-Match': tag}).status_code == 304
            assert fetch(stack, 'demo', 'crowd.css', 'HEAD').headers['ETag'] == tag
    assert reached(stack, crowd) <= 10, 'one for each method, and what else goes on'


def test_requests_have_names_of_their_own(stack):
    put(stack, 'demo', 'named.css', 'a{}')
    names = {fetch(stack, 'demo', 'named.css').headers['X-Request-Id'] for _ in range(20)}
    assert len(names) == 20
    assert fetch(stack, 'demo', 'named.css', **{'X-Request-Id': 'mine'}).headers['X-Request-Id'] == 'mine'


def test_copies_belong_to_one_namespace_method_and_build(stack):
    put(stack, 'demo', 'same.css', 'of demo')
    put(stack, 'lab', 'same.css', 'of lab')
    for _ in range(3):
        assert (fetch(stack, 'demo', 'same.css').text, fetch(stack, 'lab', 'same.css').text) == ('of demo', 'of lab')
        assert fetch(stack, 'demo', 'same.css', 'HEAD').text == ''
        answer = fetch(stack, 'demo', 'same.css', Origin='https://a.example', Cookie='a=b', Authorization='Bearer wrong')
        assert (answer.text, answer.headers['Access-Control-Allow-Origin'], 'Vary' in answer.headers and 'Origin' in answer.headers['Vary']) == ('of demo', '*', False)
    first = stack.ping('demo').json()['build']
    for _ in range(3):
        assert 'immutable' in fetch(stack, 'demo', f'same.css?b={first}').headers['Cache-Control']
    put(stack, 'demo', 'same.css', 'newer')
    second = stack.ping('demo').json()['build']
    assert second > first
    for _ in range(3):
        answer = fetch(stack, 'demo', f'same.css?b={second}')
        assert (answer.text, 'immutable' in answer.headers['Cache-Control']) == ('newer', True), 'an address of the new build is seen at once'
        answer = fetch(stack, 'demo', f'same.css?b={first}')
        assert answer.text == 'of demo', 'what was there under the old build'
        answer = fetch(stack, 'demo', f'same.css?b={second + 1}')
        assert (answer.text, answer.headers['Cache-Control']) == ('newer', 'public, no-cache'), 'a build that is not there yet is not kept'


def test_faults_and_strange_spellings_are_not_kept(stack):
    assert fetch(stack, 'demo', 'later.css').status_code == 404
    put(stack, 'demo', 'later.css', 'there')
    assert fetch(stack, 'demo', 'later.css').text == 'there'
    assert fetch_as_written(stack, '/demo/res/l%61ter.css') == 'there'
    put(stack, 'demo', 'later.css', 'changed')
    assert fetch(stack, 'demo', 'later.css').text == 'there', 'the copy'
    assert fetch_as_written(stack, '/demo/res/l%61ter.css') == 'changed', 'of such a path there is none'


def test_large_files_and_compressed_ones(stack):
    for name, text in (('large.css', 'a{b:c}\n' * 300000), ('small.css', 'a{b:c}\n' * 1000)):
        put_large = stack.http.post(f'{stack.url}/z/op/resource', json={'param': {'put': {'ns': 'demo', 'files': [{'path': name, 's': text}]}}},
                                    headers={'Authorization': f'Bearer {stack.key}'}, timeout=PATIENCE_S)
        assert put_large.status_code == 200, put_large.text
        for coding in ('identity', 'gzip', 'identity', 'gzip'):
            answer = fetch(stack, 'demo', name, **{'Accept-Encoding': coding})
            assert answer.text == text and answer.headers.get('Content-Encoding', 'identity') == coding
            again = fetch(stack, 'demo', name, **{'Accept-Encoding': coding, 'If-None-Match': answer.headers['ETag']})
            assert again.status_code == 304


def test_a_change_is_seen_in_time(briefly):
    put(briefly, 'demo', 'seen.css', 'first')
    assert fetch(briefly, 'demo', 'seen.css').text == 'first'
    put(briefly, 'demo', 'seen.css', 'second')
    wait_until(lambda: fetch(briefly, 'demo', 'seen.css').text == 'second', what='the change')
    # Revalidated again and again, it stays what it is.
    wait_until(lambda: reached(briefly, lambda: fetch(briefly, 'demo', 'seen.css')) >= 1, what='a revalidation')
    assert fetch(briefly, 'demo', 'seen.css').text == 'second'
    briefly.op('z', 'ns', {'set': {'ns': 'demo', 'state': 3}}, admin=True)
    try:
        wait_until(lambda: fetch(briefly, 'demo', 'seen.css').status_code == 410, what='the state')
        assert fetch(briefly, 'demo', 'seen.css').json()['code'] == 'OGONE', 'no copy is used any more'
    finally:
        briefly.op('z', 'ns', {'set': {'ns': 'demo', 'state': None}}, admin=True)
    wait_until(lambda: fetch(briefly, 'demo', 'seen.css').text == 'second', what='the file again')
    briefly.op('z', 'resource', {'put': {'ns': 'demo', 'remove': ['seen.css']}}, admin=True)
    wait_until(lambda: fetch(briefly, 'demo', 'seen.css').status_code == 404, what='the removal')


def test_the_folder_of_copies_is_nginx_s(stack):
    put(stack, 'demo', 'stored.css', 'a{}')
    fetch(stack, 'demo', 'stored.css')
    configuration = next(stack.path.rglob('nginx.conf'), None) or next(path for path in stack.path.rglob('*.conf') if 'fastcgi_cache_path' in path.read_text())
    assert 'fastcgi_cache_revalidate on' in configuration.read_text() and 'max_size=64m' in configuration.read_text()

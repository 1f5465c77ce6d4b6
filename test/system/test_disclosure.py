"""What answers to strangers disclose of the server: no version, no build, no data; and what they do disclose, which doc/explanation/security.md lists."""
import re
import stat
import subprocess

import pytest

from stack import BUILD, PATIENCE_S, wait_until

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'shut': 'closed', 'demo': 'read', 'lab': 'open'}}
VERSION = subprocess.check_output([BUILD / 'src/stampd', '--version'], text=True).split()[1]
NGINX = re.search(r'nginx/(\S+)', subprocess.run(['/usr/sbin/nginx', '-v'], capture_output=True, text=True).stderr)[1]


def answers(stack):
    """Of every kind of address, good and bad, from workers, from the process for live events, from nginx."""
    for ns in ('shut', 'demo', 'lab', 'z', 'nowhere'):
        yield stack.request('GET', f'/{ns}/ping')
        for path in ('op/get', 'op/nothing', 'op/put', 'od', 'od/0000000000000', 'live'):
            yield stack.request('POST', f'/{ns}/{path}', json={})
        yield stack.request('GET', f'/{ns}/doc/Note/one')
        yield stack.request('OPTIONS', f'/{ns}/op/get')
        yield stack.request('GET', f'/{ns}/op/get', headers={'Accept': 'text/html', 'X-Stampd-Build': 'x'})
    for path in ('/', '/ping', '/nothing', '/qm/op', '/qmx/op', '/metrics', '/ready', '/.stampd/502', '/%00'):
        yield stack.request('GET', path)
        yield stack.request('POST', path, json={})
    with stack.http.get(f'{stack.url}/lab/live', params={'def': 'Note'}, stream=True, timeout=PATIENCE_S) as listening:
        yield listening


def test_no_answer_names_the_program_or_its_build(stack):
    count = 0
    for answer in answers(stack):
        count += 1
        text = str(answer.headers) + ('' if answer.headers.get('Content-Type', '').startswith('text/event-stream') else answer.text)
        assert VERSION not in text and NGINX not in text, (answer.request.url, text)
        assert 'X-Stampd-Build' not in answer.headers and answer.headers['Server'] == 'nginx' and 'X-Powered-By' not in answer.headers
    assert count > 60
    assert stack.ping().json()['b'] == ''


def test_what_a_ping_discloses(stack):
    """That the namespace exists, its state, its build, the message of an administrator who has closed it, and whether its database answers."""
    for ns in ('shut', 'demo', 'lab'):
        assert set(stack.ping(ns).json()) == {'t', 'b', 'off', 'state', 'build', 'db'}
    assert stack.request('GET', '/nowhere/ping').json()['code'] == 'NNAMESPACE'


def test_a_manager_that_is_not_there(stack):
    """It is no outage: nothing is at that address.  The one that is there refuses everybody without its key."""
    for name in ('qm', 'qmx'):
        answer = stack.request('POST', f'/{name}/op', json={})
        assert (answer.status_code, answer.json()['code']) == (404, 'NPATH'), answer.text
    assert 'qmx.sock' not in stack.log('nginx'), 'a line for each would fill the disk'
    stack.step('queue', 'start')
    try:
        wait_until(lambda: stack.request('POST', '/qm/op', json={}).status_code != 404, what='the manager')
        for body in ({}, {'key': 'wrong'}, {'key': 'wrong', 'param': {'list': {}}}):
            manager, entry = stack.request('POST', '/qm/op', json=body), stack.request('POST', '/lab/od', json=body)
            assert manager.json()['code'] == entry.json()['code'] == 'SKEY', (manager.text, entry.text)
            assert manager.status_code == entry.status_code, (manager.text, entry.text)
        assert stack.request('POST', '/qmx/op', json={}).json()['code'] == 'NPATH'
    finally:
        stack.step('queue', 'stop')


@pytest.mark.parametrize('path', ['/metrics', '/ready', '/live', '/stub_status'])
def test_the_probes_are_not_at_the_public_address(stack, path):
    assert stack.request('GET', path).status_code == 404


def test_other_users_of_the_host_open_nothing(stack):
    """Neither the sockets, nor the segment, nor a key: their modes leave others nothing."""
    run = stack.path / 'run/stampd'
    files = [*run.glob('*.sock'), run / 'segment', *run.glob('instance*'), stack.path / 'etc/queue.key', stack.path / 'etc/certificate.key']
    assert len(files) >= 6 and {'segment', 'worker-0.sock', 'live.sock'} <= {file.name for file in files}
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) & 0o007 == 0, (file, oct(file.stat().st_mode))

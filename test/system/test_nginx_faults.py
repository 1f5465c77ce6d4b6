"""What nginx says by itself at the public address, each code provoked: in the form of the server's own faults.  And header lines
that come twice, or try to be two."""
import json
import os
import re
import signal
import subprocess

import pytest

from hostile.entry import Entry
from stack import children, is_alive, name_of, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'settings': {'build': 'seven', 'exempt_clients': ''}}
# What administrators may add: places of their own that are closed, wrong, rationed, or wait for a moment only.
ADDED = '''
        location = /closed {
            return 503;
        }
        location = /broken {
            return 500;
        }
        location = /rationed {
            limit_req zone=stampd_requests burst=1 nodelay;
            fastcgi_pass stampd;
        }
        location = /lab/upload/rationed {
            limit_req zone=stampd_requests burst=1 nodelay;
            fastcgi_pass $stampd_workers;
        }
        location = /impatient {
            fastcgi_read_timeout 1s;
            fastcgi_pass stampd;
        }
        location / {'''


@pytest.fixture(scope='module')
def entry(stack):
    """nginx with a rate of requests at one address only, and with ADDED."""
    path = stack.path / 'etc/nginx.conf'
    text = path.read_text()
    for pattern, replacement in ((r'rate=200r/s', 'rate=1r/m'), (r'limit_req zone=stampd_requests burst=400 nodelay;', ''),
                                 (r'\n        location / \{', ADDED)):
        text, count = re.subn(pattern, replacement, text, count=1)
        assert count == 1, pattern
    path.write_text(text)
    stack.step('nginx', 'stop')
    stack.step('nginx', 'start')
    return Entry(stack)


def ask(entry, *lines, method='GET', path='/ping', body=b''):
    head = [f'{method} {path} HTTP/1.1'.encode(), b'Host: localhost', *(line if isinstance(line, bytes) else line.encode() for line in lines)]
    return entry.ask(b'\r\n'.join(head) + b'\r\n\r\n' + body)


def judge(answer, status, code, args=()):
    problem = answer.problem()
    assert problem, (answer, answer.headers)
    assert (answer.status, problem['status'], problem['code']) == (status, status, code)
    is_unknown = code == 'XUNKNOWN'
    assert set(problem) - {'detail'} == {'type', 'title', 'status', 'code', 'major', 'message', 'args'} | (set() if is_unknown else {'phase'})
    assert problem['type'] == 'about:blank' and problem.get('phase') == (None if is_unknown else 0) and problem['args'] == [*args]
    assert problem['message'] == ' '.join(filter(None, (problem['title'], problem.get('detail'))))
    assert re.fullmatch('[0-9a-f]{32}|mine', answer.headers['x-request-id'])
    assert answer.headers['cache-control'] == 'no-store' and answer.headers['x-content-type-options'] == 'nosniff'
    assert ('retry-after' in answer.headers) == (status in (423, 429, 503))
    assert b'nginx' not in answer.body and b'<' not in answer.body
    return problem


# --- nginx's own refusals ---

def ask_beyond(entry):
    """A range behind the end of a file."""
    path, key = '/lab/doc/Note/ranged', ('Content-Length: 12', 'Content-Type: application/json')
    assert ask(entry, *key, method='PUT', path=path, body=b'{"items":[]}').status in (200, 201)
    assert ask(entry, 'Content-Length: 5', 'Content-Type: text/plain', method='PUT', path=f'{path}/file/f', body=b'short').status in (200, 201)
    return ask(entry, 'Range: bytes=5-', path=f'{path}/file/f')


REFUSALS = {
    400: ('AARG', lambda entry: ask(entry, 'Host: other')),
    401: ('SCLOSED', lambda entry: ask(entry, 'Content-Length: 9999999', method='POST', path='/demo/op/put')),
    403: ('SKEY', lambda entry: ask(entry, 'Content-Length: 9999999', 'Authorization: Bearer wrong', method='POST', path='/lab/op/put'), 'Authorization'),
    404: ('NPATH', lambda entry: ask(entry, path='/nothing/here')),
    405: ('AMETHOD', lambda entry: ask(entry, method='TRACE')),
    413: ('ALIMIT', lambda entry: ask(entry, 'Content-Length: 999999999', method='POST', path='/lab/op/put')),
    414: ('ALIMIT', lambda entry: ask(entry, path='/ping?' + 'x' * 17000)),
    415: ('ATYPE', lambda entry: ask(entry, 'Content-Encoding: br', 'Content-Length: 2', method='POST', path='/lab/op/put', body=b'{}'), 'body'),
    416: ('AARG', lambda entry: ask_beyond(entry), 'Range'),
    431: ('ALIMIT', lambda entry: ask(entry, 'X-Long: ' + 'x' * 17000)),
    500: ('XINTERNAL', lambda entry: ask(entry, path='/broken')),
    503: ('OSTOPPING', lambda entry: ask(entry, path='/closed')),
}


@pytest.mark.parametrize('status', REFUSALS)
def test_nginx_speaks_as_the_server_does(entry, status):
    code, provoke, *args = REFUSALS[status]
    judge(provoke(entry), status, code, args)


@pytest.mark.parametrize('method, path', [('POST', '/lab/op/put'), ('PUT', '/lab/doc/Note/e'), ('PATCH', '/lab/doc/Note/e'), ('PUT', '/lab/doc/Note/e/file/f'),
                                          ('POST', '/lab/upload'), ('PATCH', '/lab/upload/x'), ('POST', '/lab/live'), ('POST', '/lab/od'), ('POST', '/qm/op')])
def test_bodies_are_gzipped_where_they_are_json_and_encoded_nowhere_else(entry, method, path):
    is_json = path not in ('/lab/doc/Note/e/file/f', '/lab/upload', '/lab/upload/x', '/qm/op')
    for encoding in ('br', 'identity, gzip', 'gzip, gzip', 'aws-chunked', *(() if is_json else ('gzip', 'GZIP'))):
        answer = ask(entry, f'Content-Encoding: {encoding}', 'Content-Length: 4', method=method, path=path, body=b'\x1f\x8b\x08\x00')
        judge(answer, 415, 'ATYPE', ['body'])
        assert answer.headers['accept-encoding'] == ('gzip, identity' if is_json else 'identity')
    if is_json:
        answer = ask(entry, 'Content-Encoding: gzip', 'Content-Length: 4', 'Content-Type: application/json', method=method, path=path, body=b'\x1f\x8b\x08\x00')
        assert answer.status != 415 and (b'ABODY' in answer.body or path == '/lab/od'), answer.body
    assert ask(entry, 'Content-Encoding: Identity', 'Content-Length: 2', 'Content-Type: application/json', method=method, path=path, body=b'{}').status not in (0, 415) \
        or path.startswith('/lab/upload')


@pytest.mark.parametrize('path, methods', [
    ('/ping', 'GET, HEAD'), ('/lab/op/put?x=1', 'GET, HEAD, POST, OPTIONS'), ('/lab/doc/Note/x', 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS'),
    ('/lab/res/a.css', 'GET, HEAD, OPTIONS'), ('/lab/od', 'POST, OPTIONS'), ('/lab/od/1', 'POST, OPTIONS'), ('/lab/live', 'GET, POST, OPTIONS')])
def test_405_names_the_methods_of_its_path(entry, path, methods):
    answer = ask(entry, method='TRACE', path=path)
    judge(answer, 405, 'AMETHOD')
    assert answer.headers['allow'] == methods


@pytest.mark.parametrize('method, path', [('DELETE', '/lab/op/put'), ('POST', '/lab/doc/Note/x'), ('PUT', '/lab/live'), ('PUT', '/lab/od')])
def test_405_names_what_the_server_would(entry, method, path):
    """A large body is refused by nginx after a judgement of the server, a small one by the server."""
    large, small = [ask(entry, f'Content-Length: {size}', 'Authorization: Bearer wrong', method=method, path=path, body=b'{}'[:size]) for size in (9999999, 2)]
    assert small.status == 405 and small.headers['allow']
    assert large.status != 405 or large.headers['allow'] == small.headers['allow']


@pytest.mark.parametrize('status', [status for status in REFUSALS if status != 405])
def test_no_other_refusal_names_methods(entry, status):
    assert 'allow' not in REFUSALS[status][1](entry).headers


def test_429_when_an_address_asks_too_much(entry):
    answers = [ask(entry, path='/rationed') for _ in range(4)]
    assert [answer.status for answer in answers] == [404, 404, 429, 429]
    judge(answers[-1], 429, 'XBUSY', ('limit_client_requests', '200'))


def test_an_upload_in_parts_waits_instead(entry):
    """A client of tus gives up after 429."""
    lines = ['Tus-Resumable: 1.0.0']
    statuses = [ask(entry, *lines, method='DELETE', path='/lab/upload/rationed').status for _ in range(4)]
    assert statuses[-1] == 423 and set(statuses) <= {404, 423}
    judge(ask(entry, *lines, method='DELETE', path='/lab/upload/rationed'), 423, 'XBUSY', ('limit_client_requests', '200'))


def counts(stack):
    return {name.split('"')[1]: count for name, count in stack.metrics().items() if name.startswith('stampd_nginx_refused_total')}


def test_what_nginx_refuses_is_counted(stack, entry):
    """Each status, and nothing that a worker has answered; a new relay goes on."""
    stack.step('nginx', 'stop')  # its processes note what they have refused after they have answered: now all have
    stack.step('nginx', 'start')
    former = counts(stack)['400']
    assert REFUSALS[400][1](entry).status == 400
    wait_until(lambda: counts(stack)['400'] > former)  # with it, all that was refused before
    before = counts(stack)
    assert [ask(entry, path='/lab/op/nothing').status for _ in range(3)] == [404] * 3
    for status in (404, 413, 414, 503):
        assert REFUSALS[status][1](entry).status == status
        before[str(status)] += 1
    wait_until(lambda: all(count >= before[status] for status, count in counts(stack).items()), what='the counts')
    assert counts(stack) == before
    relay = next(pid for pid in children(stack.pid()) if name_of(pid) == 'stampd-relay')
    os.kill(relay, signal.SIGKILL)
    wait_until(lambda: not is_alive(relay))
    wait_until(lambda: REFUSALS[503][1](entry).status == 503 and counts(stack)['503'] > before['503'])


def test_a_flood_of_refusals_is_not_waited_for(stack, entry):
    """Nobody takes the counts: nginx answers, its log of errors does not grow, and what the socket held is counted later."""
    before, log = counts(stack)['503'], len(stack.log('nginx'))
    with stack.relay_stopped():
        assert {REFUSALS[503][1](entry).status for _ in range(600)} == {503}
        assert stack.log('nginx')[log:].count('\n') <= len(stack.nginx_workers())  # each of which may have learnt that a relay has ended
    wait_until(lambda: counts(stack)['503'] > before)


def test_503_when_nobody_listens(stack, entry):
    """Nothing was reached, so nothing was done."""
    stack.step('stampd', 'stop', 'now')
    try:
        problem = judge(ask(entry, 'X-Request-Id: mine'), 503, 'OSTOPPING')
        assert problem['detail']
    finally:
        stack.step('stampd', 'start')


def test_504_when_nobody_answers_in_time(stack, entry):
    workers = stack.worker_pids()
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        judge(ask(entry, path='/impatient'), 504, 'XUNKNOWN')
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: ask(entry, path='/impatient').status == 404, what='an answer')


def test_over_http_2_it_is_the_same(stack, entry):
    def curl(*words):
        done = subprocess.run(['curl', '-sk', '--http2', '-o', '-', '-w', '\n%{http_code} %{http_version}', *words], capture_output=True,
                              text=True, timeout=60, check=True)
        body, _, last = done.stdout.rpartition('\n')
        return json.loads(body), last

    for status, words in ((404, [f'{stack.url}/nothing']), (413, ['-H', 'Content-Length: 999999999', '-d', 'x', f'{stack.url}/lab/op/put']),
                          (503, [f'{stack.url}/closed'])):
        problem, last = curl(*words)
        assert last == f'{status} 2' and (problem['status'], problem['code']) == (status, REFUSALS[status][0])


def test_every_refusal_of_the_configuration_is_provoked(stack):
    """A new line of error_page wants a new case here; 408 never reaches a client of this entry."""
    text = (stack.path / 'etc/nginx.conf').read_text()
    assert {int(status) for status in re.findall(r'/\.stampd/(\d+);', text)} == {*REFUSALS, 408, 429, 502, 504}
    pages = len(re.findall(r'location = /\.stampd/\d+ \{', text))  # others, as large and sealed, refuse nothing by themselves
    assert pages == 2 * len({*REFUSALS, 408, 429, 502, 504}), 'both entries have them all'


def test_an_answer_never_ends_with_its_connection(stack):
    """With fastcgi_keep_conn off, nginx takes what a dead worker had sent for the whole answer."""
    text = (stack.path / 'etc/nginx.conf').read_text()
    assert re.findall(r'fastcgi_keep_conn (\w+);', text) == ['on']


# --- lines that come twice ---

def note(stack, id_, value):
    return stack.put('lab', {'c': 'Note', 'id': id_, 'items': [{'c': 'Head', 'j': value}]})


def change(entry, id_, *lines):
    body = b'{"items":[{"c":"Head","j":"changed"}]}'
    return ask(entry, *lines, 'Content-Type: application/json', f'Content-Length: {len(body)}', method='PUT', path=f'/lab/doc/Note/{id_}', body=body)


def test_repeated_conditions_are_all_heeded_or_refused(stack, entry):
    """A list in two lines is one list (RFC 9110).  Whether nginx joins the lines or refuses them: no condition is left out."""
    version = note(stack, 'twice', 'first')
    for lines in (('If-None-Match: "1"', 'If-None-Match: *'), ('If-None-Match: "1"', f'If-None-Match: "{version}"'),
                  ('If-Match: "1"', 'If-Match: "2"')):
        answer = change(entry, 'twice', *lines)
        assert (answer.status, answer.problem()['code']) in ((400, 'AARG'), (412, 'AVERSION')), lines
        assert stack.get('lab', ('Note', 'twice'))['v'] == version
    answer = ask(entry, 'If-None-Match: "1"', f'If-None-Match: "{version}"', path='/lab/doc/Note/twice')
    assert answer.status in (304, 400)
    answer = change(entry, 'twice', 'If-Match: "1"', f'If-Match: "{version}"')
    assert answer.status in (200, 400)
    assert change(entry, 'twice', f'If-Match: "1", "{stack.get("lab", ("Note", "twice"))["v"]}"').status == 200


def test_one_of_two_keys_counts_or_none(stack, entry):
    """Never a third one that both make."""
    lines = ('Idempotency-Key: one', 'Idempotency-Key: two')
    answers = [change(entry, 'keys', *lines) for _ in range(2)]
    if answers[0].status == 201:
        assert answers[1].headers['idempotency-replayed'] == 'true'
        assert stack.psql('lab', "select key from idempotency where key <> 'one'") == []
    else:
        assert answers[0].problem()['args'] == ['Idempotency-Key'] and stack.get('lab', ('Note', 'keys'))['v'] == 0


def test_the_build_of_a_client(stack, entry):
    for path in ('/lab/op/sync', '/lab/doc/Note/none'):
        problem = ask(entry, 'X-Stampd-Build: six', path=path).problem()
        assert (problem['code'], problem['args']) == ('DBUILD', ['six', 'seven'])
        for lines in ((), ('X-Stampd-Build: seven',), ('X-Stampd-Build:',)):
            answer = ask(entry, *lines, path=path)
            assert answer.headers['x-stampd-build'] == 'seven'
            assert answer.status == 200 or answer.problem()['code'] == 'NDOCUMENT'
    assert ask(entry, 'X-Stampd-Build: six').status == 200, 'a ping tells the build to whoever asks'


# --- lines that try to be two ---

@pytest.mark.parametrize('line', [b'X-Request-Id: a\r\n Set-Cookie: b=c', b'X-Request-Id: a\r\n\tSet-Cookie: b=c', b'X-Request-Id: a\rSet-Cookie: b=c',
                                  b'X-Request-Id: a\x0bSet-Cookie: b', b'X-Request-Id: a%0d%0aSet-Cookie: b', b'X-Request-Id: a\xc4\x8a\xc4\x8dSet-Cookie: b',
                                  b'X-Request-Id: a\xe5\x98\x8aSet-Cookie: b', b'X-Request-Id: a\x85b', b'X-Request-Id: a"b;c', b'X-Request-Id: $pid',
                                  b'X-Request-Id: a\nSet-Cookie: b=c', b'X_Request_Id: mine'])
@pytest.mark.parametrize('path', ['/ping', '/nothing', '/lab/op/none'])
def test_the_name_of_a_request_splits_no_header(entry, line, path):
    answer = ask(entry, line, path=path)
    assert answer.status in (200, 400, 404)
    assert 'set-cookie' not in answer.headers
    given = answer.headers['x-request-id']
    assert re.fullmatch('[0-9a-f]{32}', given) or given == 'a' and b'\n' in line  # a line end is one: then it was two lines


def test_of_two_names_one_counts(entry):
    given = ask(entry, 'X-Request-Id: one', 'X-Request-Id: two').headers['x-request-id']
    assert given == 'one' or re.fullmatch('[0-9a-f]{32}', given)

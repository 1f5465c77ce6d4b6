"""What nginx refuses by itself can be read by the pages that may read the server's own answers: by the same origins, with cookies
or without, whatever the reason of the refusal."""
import itertools
import re

import pytest

from hostile.entry import Entry
from stack import wait_until

pytestmark = pytest.mark.plain

ORIGINS = {'lab': ['https://app.example', 'https://xn--bcher-kva.example:8443'], 'wide': ['*', 'https://app.example'], 'team': ['https://app.example', '*'], 'none': []}
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'wide': 'open', 'team': 'rules', 'none': 'open'}, 'settings': {'exempt_clients': ''}}
ASKING = (None, 'https://app.example', 'https://xn--bcher-kva.example:8443', 'https://other.example', 'https://app.example.evil.example', 'null', '~^lab .')
HEADERS = ('access-control-allow-origin', 'access-control-allow-credentials', 'vary')


@pytest.fixture(scope='module')
def entry(stack):
    """nginx with a rate of requests for one address of the namespaces only."""
    stack.admin('ns', 'accounts', 'team', '{"registration":"closed"}')
    for ns, origins in ORIGINS.items():
        stack.admin('ns', 'origins', ns, *(origins or ['--none']))
    path = stack.path / 'etc/nginx.conf'
    text, count = re.subn(r'\n        location / \{', '''
        location ~ ^/[a-z]+/doc/Rationed$ {
            limit_req zone=stampd_few;
            fastcgi_pass $stampd_workers;
        }
        location / {''', path.read_text(), count=1)
    text, more = re.subn(r'\n    limit_req_status', '\n    limit_req_zone $server_name zone=stampd_few:1m rate=1r/m;\n    limit_req_status', text, count=1)
    assert count == more == 1
    path.write_text(text)
    stack.step('nginx', 'stop')
    stack.step('nginx', 'start')
    return Entry(stack)


def ask(entry, origin, path, *lines, method='GET', body=b''):
    head = [f'{method} {path} HTTP/1.1', 'Host: localhost', *([f'Origin: {origin}'] if origin else []), *lines]
    return entry.ask('\r\n'.join(head).encode() + b'\r\n\r\n' + body)


REFUSALS = {
    400: lambda entry, ns, origin: ask(entry, origin, f'/{ns}/op/get', 'Host: other'),
    403: lambda entry, ns, origin: ask(entry, origin, f'/{ns}/op/put', 'Content-Length: 9999999', 'Authorization: Bearer wrong', method='POST'),
    405: lambda entry, ns, origin: ask(entry, origin, f'/{ns}/op/get', method='TRACE'),
    413: lambda entry, ns, origin: ask(entry, origin, f'/{ns}/op/put', 'Content-Length: 999999999', method='POST'),
    415: lambda entry, ns, origin: ask(entry, origin, f'/{ns}/op/put', 'Content-Encoding: br', 'Content-Length: 2', method='POST', body=b'{}'),
    429: lambda entry, ns, origin: ask(entry, origin, f'/{ns}/doc/Rationed'),
}


def shown(answer):
    """The headers for pages; an answer that is gzipped where it is accepted has another word in Vary."""
    found = {name: answer.headers.get(name) for name in HEADERS}
    found['vary'] = 'Origin' if 'origin' in (found['vary'] or '').lower() else None
    return found


@pytest.mark.parametrize('status', REFUSALS)
def test_a_refusal_of_nginx_is_for_the_same_pages(entry, status):
    ask(entry, None, '/lab/doc/Rationed')  # what the rate allows
    for ns, origin in itertools.product(ORIGINS, ASKING):
        own, refused = ask(entry, origin, f'/{ns}/op/nothing'), REFUSALS[status](entry, ns, origin)
        assert refused.status == status and refused.problem(), (ns, origin, refused)
        expected = shown(own)
        if not origin:
            expected['vary'] = shown(refused)['vary']  # nginx may say so always
        assert shown(refused) == expected, (ns, origin)
        exposed = refused.headers.get('access-control-expose-headers', '')
        assert ('Retry-After' in exposed and 'X-Request-Id' in exposed) == (expected['access-control-allow-origin'] is not None), (ns, origin)


def test_no_cookies_for_any_origin(entry):
    """Of a namespace with accounts: the pages that it lists may send them, those that `*` allows may not."""
    listed, other = (shown(REFUSALS[413](entry, 'team', origin)) for origin in ('https://app.example', 'https://other.example'))
    assert (listed['access-control-allow-origin'], listed['access-control-allow-credentials']) == ('https://app.example', 'true')
    assert (other['access-control-allow-origin'], other['access-control-allow-credentials']) == ('*', None)


def test_a_refusal_where_no_process_is(stack, entry):
    """The page learns that it may come again."""
    stack.step('stampd', 'stop', 'now')
    try:
        answer = wait_until(lambda: (lambda one: one if one.status == 503 else None)(ask(entry, 'https://app.example', '/lab/op/get')), what='a refusal')
        assert answer.headers['access-control-allow-origin'] == 'https://app.example' and 'retry-after' in answer.headers
        live = ask(entry, 'https://app.example', '/lab/live?def=Note', 'Accept: text/event-stream')
        assert (live.status, live.headers['access-control-allow-origin']) == (200, 'https://app.example')
    finally:
        stack.step('instance', str(stack.key_file))


def test_an_origin_that_is_taken_away_is_refused(stack, entry):
    """nginx has it as soon as the command has ended and nginx has read its files."""
    with stack.nginx_renewed():
        stack.admin('ns', 'origins', 'lab', '--none', '--nginx-pid', stack.path / 'run/nginx/nginx.pid')
    answer = REFUSALS[413](entry, 'lab', 'https://app.example')
    assert not any(shown(answer).values())

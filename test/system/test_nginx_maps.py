"""The module of nginx returns the usual values of nginx's maps by itself: whatever is asked, they are those of the maps."""
import re
import socket
import ssl

import pytest

from stack import BUILD, PATIENCE_S, wait_until

pytestmark = [pytest.mark.plain, pytest.mark.skipif(not (BUILD / 'nginx/module/ngx_http_stampd_module.so').exists(), reason='the module of nginx was not built')]
STACK = {'workers': 2, 'settings': {'public_answers_mb': 1, 'exempt_clients': ''}, 'namespaces': {'z': 'closed', 'lab': 'open'}}

NAMES = ['ns', 'place', 'large', 'body', 'is_encoded', 'given_id', 'host', 'buffering', 'counts', 'counted', 'workers', 'is_large']
LONG = 'a' * 16
PATHS = ['/lab/op/get', '/lab/op/get?param=%7B%7D', '/lab/op/', '/lab/op', '/lab/op/get/', '/lab/op/get%20', f'/lab/op/{"x" * 64}', f'/lab/op/{"x" * 65}',
         '/lab/od/get', '/lab/doc/Note/a', '/lab/doc/Note/a?b=/c', '/lab/doc/Note/', '/lab/doc/Note', '/lab/doc/Note?x', '/lab/doc/note/a', '/lab/doc/No_te/a',
         f'/lab/doc/N{"o" * 15}/a', f'/lab/doc/N{"o" * 16}/a', '/lab/doc/Note/a/b', '/lab/doc/Note/a/file/b', '/lab/doc/Note/%2F', '/lab/doc//a', f'/{LONG}/op/get', f'/{LONG}a/op/get',
         '/9lab/op/get', '/Lab/op/get', '/la-b/op/get', '//lab/op/get', '/lab//op/get', '/lab/../lab/op/get', '/a/op/b', '/a/op/', '/a/b', '/', '/?', '/lab', '/lab/', '/lab/ping',
         '/lab/res/a/b', '/lab/live', '/lab/upload', '/lab/upload/x', '/lab/openapi.json', '/qm/op', '/ping', '/lab/op/get#x', '*', 'https://localhost/lab/op/get', '/lab/op/g\x7ft']
JSON = 'Content-Type: application/json'
LENGTHS = [0, 1, 9999, 10000, 65535, 65536, 99999, 100000]
HEADERS = [(), ('Content-Encoding: gzip',), ('content-ENCODING: identity',), ('Content-Encoding: br',), ('Content-Encoding:',), ('X-Request-Id: mine',), ('X-REQUEST-ID: <not mine>',),
           ('X-Request-Id:',), ('Origin: https://elsewhere.example',), ('Origin:',), ('Authorization: Bearer wrong',), ('Accept: text/event-stream',),
           ('Transfer-Encoding: chunked', JSON), *((f'Content-Length: {length}', JSON) for length in LENGTHS), ('Content-Length: 0002', JSON), ('Content-Length: x',)]
METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'get', 'FETCH']


def requests():
    """Heads; each is answered, or ends the connection."""
    found = [(method, path, ()) for method in METHODS for path in PATHS]
    found += [(method, path, headers) for method in METHODS for path in ('/lab/op/get', '/lab/doc/Note/a', '/lab/doc/Note/a/file/b', '/lab/upload') for headers in HEADERS]
    return found


def has_version_6():
    """Whether this host has the loopback address of version 6."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(('::1', 0))
        return True
    except OSError:
        return False


def send(stack, number, method, path, headers, host='127.0.0.1'):
    lines = [f'{method} {path} HTTP/1.1', 'Host: localhost', f'User-Agent: {number}', 'Connection: close', *headers, '', '']
    body = b'2\r\n{}\r\n0\r\n\r\n' if 'Transfer-Encoding: chunked' in headers else b''
    length = next((re.fullmatch(r'Content-Length: (\d+)', line) for line in headers if line.startswith('Content-Length')), None)
    if length:
        body = b' ' * int(length[1])
    plain = socket.create_connection((host, stack.port), timeout=PATIENCE_S)
    with ssl._create_unverified_context().wrap_socket(plain, server_hostname='localhost') as wire:
        try:
            wire.sendall('\r\n'.join(lines).encode() + body)
            while wire.recv(65536):
                pass
        except OSError:  # nginx has answered, and does not read the rest
            pass


def noted(stack, number):
    """What nginx has written of each request: by its number, its values.  One that it has not understood has no number there."""
    lines = (stack.path / f'log/maps{number}.log').read_text().splitlines()
    return {line.partition(' ')[0] if line[0] != '-' else f'unread {place}': line.partition(' ')[2] for place, line in enumerate(lines)}


def configure(stack, number, *changes):
    path = stack.path / 'etc/nginx.conf'
    text = path.read_text()
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text)
        assert count, pattern
    path.write_text(text)
    stack.reload_nginx()


def test_the_values_are_those_of_the_maps(stack):
    values = ' '.join(f'{name}=$stampd_{name}' for name in NAMES)
    log = rf"""    log_format maps '$http_user_agent {values} token=$stampd_token';\n    access_log {stack.path}/log/maps0.log maps;\n"""
    hosts = ['127.0.0.1', '::1'] if has_version_6() else ['127.0.0.1']
    second = [(r'(\n *listen )127\.0\.0\.1(:\d+ ssl [^;]*;)', r'\g<0>\1[::1]\2')] if len(hosts) > 1 else []
    configure(stack, 0, (r'(\n    map \$status \$stampd_counts )', '\n' + log.replace('\\n', '\n') + r'\1'), *second)
    found = []
    for turn in range(2):
        asked = list(enumerate(requests()))
        for number, request in asked:
            send(stack, number, *request, host=hosts[number % len(hosts)])
        wait_until(lambda: len(noted(stack, turn)) >= len(asked), what='a line of each request')
        found.append(noted(stack, turn))
        if not turn:  # now by the maps themselves
            configure(stack, 1, (r'\$stampd_maps_1', '$stampd_maps_0'), (r'maps0\.log', 'maps1.log'))
    token = re.compile(r' token=\d+-\d+-\d+-\d+\.\d{3}$')
    assert len(found[0]) == len(found[1]) == len(asked)
    for number, request in asked:
        if str(number) in found[0]:
            ours, maps = (values[str(number)] for values in found)
            assert token.search(ours) and token.search(maps), (request, ours, maps)
            assert token.sub('', ours) == token.sub('', maps), (request, ours, maps)
    unread = [sorted(token.sub('', line) for number, line in values.items() if number.startswith('unread')) for values in found]
    assert unread[0] == unread[1]


def test_a_module_of_another_release_goes_on(stack):
    """The number of the maps is another one, as after a change of one of them: nginx starts, and answers by them."""
    configure(stack, 2, (r'\$stampd_maps_\d', '$stampd_maps_99'))
    stack.request('PUT', '/lab/doc/Note/x', json={'items': [{'c': 'Head', 'j': 1}]})
    assert stack.request('GET', '/lab/doc/Note/x').json()['items']

"""Below HTTP: broken requests, headers, chunks, slow and leaving clients, headers that imitate parameters."""
import socket
import struct
import time

from hostile import ADMIN, TIMEOUT_S, Case, put_text, request

READ = '{"param":{"docs":[{"c":"Where","id":"am-i"}]}}'
HOSTILE = put_text()


def raw(name, text, status, code=None):
    return Case(name, text if isinstance(text, bytes) else text.encode('latin-1'), status, code)


def heads():
    line = b'POST /lab/op/put HTTP/1.1\r\nHost: localhost\r\n'
    tail = b'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' % (len(HOSTILE), HOSTILE)
    yield raw('bytes of nothing', b'\0' * 100, 400)
    yield raw('random bytes', bytes((i * 131 + 17) % 251 for i in range(500)), 400)
    yield raw('a TLS hello inside of TLS', bytes.fromhex('1603010200010001fc0303') + bytes(100), 400)
    yield raw('SSH', b'SSH-2.0-OpenSSH_9.2\r\n\r\n', 400)
    yield raw('SMTP', b'HELO localhost\r\n\r\n', 400)
    yield raw('FastCGI', b'\1\1\0\1\0\x08\0\0\0\1\0\0\0\0\0\0' + b'\r\n\r\n', 400)
    yield raw('HTTP/2 without asking for it', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', (400, 405))
    yield raw('no version', b'GET /lab/op/put\r\n\r\n', (0, 400))
    yield raw('version 0.9', b'GET /ping HTTP/0.9\r\n\r\n', (400, 0))
    yield raw('version 2.0', b'GET /ping HTTP/2.0\r\nHost: x\r\n\r\n', 400, 'AARG')
    yield raw('version 9', b'GET /ping HTTP/9.9\r\nHost: x\r\n\r\n', 400, 'AARG')
    yield raw('version 1.x', b'GET /ping HTTP/1.x\r\nHost: x\r\n\r\n', 400)
    yield raw('version of many digits', b'GET /ping HTTP/1.' + b'1' * 50 + b'\r\nHost: x\r\n\r\n', 400)
    yield raw('protocol of another name', b'GET /ping HTTQ/1.1\r\nHost: x\r\n\r\n', 400)
    yield raw('blanks in the address', b'GET /lab/op/put x HTTP/1.1\r\nHost: x\r\n\r\n', 400)
    yield raw('a tab in the request line', b'GET\t/ping\tHTTP/1.1\r\nHost: x\r\n\r\n', 400)
    yield raw('no host', b'GET /ping HTTP/1.1\r\n\r\n', 400)
    yield raw('two hosts', b'GET /ping HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400)
    yield raw('a host with a slash', b'GET /ping HTTP/1.1\r\nHost: a/b\r\n\r\n', 400)
    yield raw('a host with dots', b'GET /ping HTTP/1.1\r\nHost: a..b\r\n\r\n', 400)
    yield raw('a host with NUL', b'GET /ping HTTP/1.1\r\nHost: a\0b\r\n\r\n', 400)
    yield raw('NUL in a header', line + b'X: a\0b\r\n' + tail, 400)
    yield raw('NUL in the address', b'GET /lab/op/\0put HTTP/1.1\r\nHost: x\r\n\r\n', 400)
    yield raw('control character in the address', b'GET /lab/op/\x01put HTTP/1.1\r\nHost: x\r\n\r\n', 400)
    yield raw('a header of 17 KB', line + b'X: ' + b'x' * 17000 + b'\r\n' + tail, (400, 431), 'ALIMIT')
    yield raw('headers of 70 KB', line + b''.join(b'X-%d: %s\r\n' % (i, b'x' * 7000) for i in range(10)) + tail, (400, 431), 'ALIMIT')
    yield raw('twenty thousand headers', line + b'X: y\r\n' * 20000 + tail, (400, 431), 'ALIMIT')
    yield raw('a header name of 17 KB', line + b'x' * 17000 + b': y\r\n' + tail, (400, 431), 'ALIMIT')
    yield raw('a blank at the start of a request', b' GET /ping HTTP/1.1\r\nHost: x\r\n\r\n', 400)


def lengths():
    head = b'POST /lab/op/put HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
    size = len(HOSTILE)
    for what, text in {'negative': b'-1', 'of letters': b'x', 'hexadecimal': b'0x10', 'a fraction': b'%d.5' % size, 'with a sign': b'+%d' % size, 'of 30 digits': b'9' * 30,
                       'a list': b'%d, %d' % (size, size), 'empty': b'', 'with a blank inside': b'1 2'}.items():
        yield raw(f'length {what}', head + b'Content-Length: %s\r\n\r\n%s' % (text, HOSTILE), (400, 413))
    yield raw('length twice', head + b'Content-Length: %d\r\nContent-Length: 2\r\n\r\n%s' % (size, HOSTILE), 400)
    yield raw('length twice, the same', head + b'Content-Length: %d\r\nContent-Length: %d\r\n\r\n%s' % (size, size, HOSTILE), 400)
    yield raw('length and chunks', head + b'Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n' % size, 400)
    yield raw('chunks and length', head + b'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n', 400)
    yield raw('a length too short', head + b'Content-Length: %d\r\n\r\n%s' % (size - 1, HOSTILE), 400, 'AJSON')
    yield raw('length 0 before a body', head + b'Content-Length: 0\r\n\r\n' + HOSTILE, 400)
    yield raw('a body without a length', head + b'\r\n' + HOSTILE, 400)


def chunked(*chunks, headers=b'', target=b'/lab/op/put'):
    return (b'POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n%s\r\n' % (target, headers)) + b''.join(chunks)


def chunk(text):
    return b'%x\r\n%s\r\n' % (len(text), text)


def chunks():
    end, kept = b'0\r\n\r\n', put_text(class_=b'"Kept"', id_=b'"chunks"').replace(ADMIN, b'')
    yield raw('chunks of a byte', chunked(*(chunk(kept[i:i + 1]) for i in range(len(kept))), end), 200)
    yield raw('chunk with an extension', chunked(b'%x;a="b"\r\n%s\r\n' % (len(kept), kept), end), 200)
    yield raw('chunks with a trailer', chunked(chunk(kept), b'0\r\nX: y\r\n\r\n'), (200, 400))
    yield raw('chunks of too much', chunked(*[chunk(b' ' * 65536)] * 260, end), 413, 'ALIMIT')
    for what, text in {'of letters': b'zz\r\n', 'negative': b'-5\r\n', 'of 20 digits': b'f' * 20 + b'\r\n', 'with a sign': b'+5\r\n', 'hexadecimal as in C': b'0x5\r\n', 'empty': b'\r\n'}.items():
        yield raw(f'size of a chunk {what}', chunked(text, HOSTILE, b'\r\n', end), 400)
    yield raw('a chunk longer than told', chunked(b'5\r\n' + HOSTILE + b'\r\n', end), 400)
    for what, text in {'gzip, chunked': b'gzip, chunked', 'identity': b'identity', 'chunked twice': b'chunked, chunked', 'of another name': b'xchunked', 'with a comma': b'chunked,'}.items():
        yield raw(f'transfer encoding {what}', b'POST /lab/op/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: %s\r\n\r\n%s' % (text, chunk(HOSTILE) + end), 400, 'AARG')
    yield raw('transfer encoding twice', chunked(chunk(HOSTILE), end, headers=b'Transfer-Encoding: chunked\r\n'), 400)
    for what, text in {'behind a blank': b'Transfer-Encoding : chunked', 'behind a tab': b'Transfer-Encoding\t: chunked', 'after a line end alone': b'X: y\nTransfer-Encoding: chunked',
                       'behind a vertical tab': b'Transfer-Encoding: \x0bchunked', 'folded': b'Transfer-Encoding:\r\n chunked', 'with a parameter': b'Transfer-Encoding: chunked;a=b'}.items():
        yield raw(f'transfer encoding {what}, and a length', b'POST /lab/op/put HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5\r\n%s\r\n\r\n0\r\n\r\n%s' % (text, HOSTILE), 400)
    yield raw('chunks in HTTP/1.0', chunked(chunk(HOSTILE), end).replace(b'HTTP/1.1', b'HTTP/1.0'), (400, 411))


def imitations():
    """Headers and arguments that bear the names of what nginx tells the workers: lab is read, whatever headers say; arguments are refused."""
    def in_lab(body):
        return b'in lab' in body and b'in z' not in body
    for name in ('STAMPD_NS', 'STAMPD-NS', 'Stampd-Ns', 'STAMPD_DATABASE', 'STAMPD-DATABASE', 'HTTP_STAMPD_NS', 'HTTP_STAMPD_DATABASE', 'STAMPD_ENDPOINT', 'Stampd-Entry', 'REQUEST_METHOD', 'Request-Method',
                 'REQUEST_URI', 'Request-Uri', 'QUERY_STRING', 'Query-String', 'CONTENT_LENGTH', 'HTTP_CONTENT_LENGTH', 'CONTENT_TYPE', 'Script-Name', 'Script-Filename', 'PATH_INFO', 'Proxy', 'X-Original-URL',
                 'X-Rewrite-URL', 'X-Forwarded-Prefix', 'X-Forwarded-For', 'X-Accel-Redirect', 'X-Request-Id', 'STAMPD_REQUEST_ID', 'FCGI_ROLE', 'PHP_VALUE', 'Http-Accept', 'X-Stampd-Ns', 'X-Stampd-Database'):
        for value in ('z', 'stampd_z', 'probe', '/z/op/get'):
            if value == 'z' or name.upper().replace('-', '_').endswith({'stampd_z': 'DATABASE', 'probe': 'DOOR', '/z/op/get': 'URI'}[value]):
                yield Case(f'header {name}: {value}', request(target='/lab/op/get', body=READ, headers=[f'{name}: {value}']), 200, back=in_lab)
    for entry in ('STAMPD_ENDPOINT', 'Stampd-Entry', 'HTTP_STAMPD_ENDPOINT', 'X-Stampd-Entry'):
        for path in ('/live', '/ready', '/metrics'):
            yield Case(f'{path} with {entry}', request(method='GET', target=path, headers=[f'{entry}: probe']), 404, 'NPATH')
    for query in ('ns=z', 'STAMPD_NS=z', 'stampd_ns=z', 'database=stampd_z', 'STAMPD_DATABASE=stampd_z', 'lab=z', 'ns=lab&ns=z', '/z/op/get', 'x=/../../z/op/get'):
        yield Case(f'query {query}', request(target='/lab/op/get?' + query, body=READ), 400, 'AARG')
    for query in ('account=z', 'lang=/../../z/op/get'):
        yield Case(f'query {query}', request(target='/lab/op/get?' + query, body=READ), 200, back=in_lab)
    for member in ('ns', 'database', 'space', 'STAMPD_NS', 'STAMPD_DATABASE', 'build', 'operation', 'route', '__proto__'):
        yield Case(f'argument {member}', request(target='/lab/op/get', body=READ[:-1] + f',"{member}":"stampd_z"}}'), 400, 'AARG')
    yield Case('host z', b'POST /lab/op/get HTTP/1.1\r\nHost: z\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' % (len(READ), READ.encode()), 200, back=in_lab)
    yield Case('two build headers', request(body=HOSTILE, headers=['X-Stampd-Build: 0', 'X-Stampd-Build: 1']), 400, 'DBUILD')
    yield Case('a line end in the address', b'GET /lab/op/get%0d%0aX:y HTTP/1.1\r\nHost: x\r\n\r\n', 404, 'NOPERATION')
    yield Case('the answer is not split', request(method='GET', target='/lab/op/%0d%0aSet-Cookie:%20a=b'), 404, 'NOPERATION', back=lambda body: b'\r' not in body)


# --- clients that leave, and slow ones ---

def leaving(what, text=b'', tls=True, harsh=False):
    def run(entry):
        client = entry.connect() if tls else entry.plain()
        try:
            if text:
                client.sendall(text)
            if harsh:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        finally:
            client.close()
        return None
    return Case(f'leaves {what}' + (', harshly' if harsh else ''), run, 0)


def leavers():
    whole = request(body=HOSTILE.replace(b'"Hostile"', b'"Kept"'))
    head = whole[:whole.index(b'\r\n\r\n') + 4]
    read = request(target='/lab/op/get', body=READ)
    for harsh in (False, True):
        yield leaving('at once', tls=False, harsh=harsh)
        yield leaving('after plain HTTP', b'GET /ping HTTP/1.1\r\nHost: x\r\n\r\n', tls=False, harsh=harsh)
        yield leaving('in the middle of the handshake', bytes.fromhex('160301020001'), tls=False, harsh=harsh)
        yield leaving('after garbage in place of a handshake', b'\0' * 1000, tls=False, harsh=harsh)
        yield leaving('after the handshake', harsh=harsh)
        yield leaving('in the request line', b'POST /lab/op', harsh=harsh)
        yield leaving('in the head', head[:-10], harsh=harsh)
        yield leaving('after the head', request(body=HOSTILE)[:len(request(body=HOSTILE)) - len(HOSTILE)], harsh=harsh)
        yield leaving('in the body', request(body=HOSTILE)[:-1], harsh=harsh)
        yield leaving('in a chunk', chunked(b'ff\r\nxx'), harsh=harsh)
        yield leaving('before the answer', read, harsh=harsh)
        yield leaving('before many answers', read * 50, harsh=harsh)
    yield leaving('before the answer of a large body', request(target='/lab/op/get', body=READ + ' ' * 5000000), harsh=True)


def slow(what, first, piece, status, code=None, every_s=0.1, lasting_s=TIMEOUT_S + 3):
    """Sends `first`, then pieces, until an answer comes or the time is over; meanwhile it is one of those that hang on the entry.  One that stood
    still between two pieces, as it may on a busy machine, comes again."""
    def run(entry):
        for _ in range(5):
            answer, stood_s = once(entry)
            if stood_s < TIMEOUT_S:
                break
        return answer

    def once(entry):
        client = entry.connect()
        client.sendall(first)
        client.settimeout(every_s)
        begun = time.monotonic()
        looks, answer = [begun], b''
        entry.hanging.add(client)
        while looks[-1] < begun + lasting_s:
            looks.append(time.monotonic())
            try:
                if piece:
                    client.sendall(piece)
                more = client.recv(65536)
                answer += more
                if not more:
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        entry.hanging.discard(client)
        client.close()
        return entry.parse(answer), max(later - look for look, later in zip(looks, looks[1:]))
    return Case(f'slow: {what}', run, status, code)


def slow_ones():
    """A head must come whole in its time; a body may be slow, but not stop."""
    head = b'POST /lab/op/put HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % (len(HOSTILE) + 500)
    yield slow('nothing comes', b'', b'', (0, 408))
    yield slow('a request line that stops', b'POST /lab', b'', (0, 408))
    yield slow('a head that never ends', b'GET /ping HTTP/1.1\r\n', b'X: y\r\n', (0, 408))
    yield slow('a head of single bytes', b'GET /ping HTTP/1.1\r\nX: ', b'y', (0, 408))
    yield slow('a body that stops', head, b'', (0, 408), None)
    yield slow('half a body', head + HOSTILE[:50], b'', (0, 408), None)
    yield slow('a chunk that stops', chunked(b'ff\r\nxx'), b'', (0, 408), None)
    kept = put_text(class_=b'"Kept"', id_=b'"slow"').replace(ADMIN, b'')
    yield slow('a body that comes byte by byte', request(body=kept + b' ' * 40)[:-40], b' ', 200, every_s=TIMEOUT_S / 20, lasting_s=60)


def cases():
    for part in (heads, lengths, chunks, imitations, leavers):
        yield from part()

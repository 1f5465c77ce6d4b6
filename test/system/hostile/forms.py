"""multipart/form-data: cut, lying, ambiguous, with too many parts, and with whatever a file may hold."""
from hostile import ADMIN, BODY_BYTES, LIMITS, TELLTALE, Case, as_bytes, request

PARAM = b'{"docs":[{"c":"Hostile","id":"x","items":[{"c":"Item","j":"%s"}]}]}' % TELLTALE
BOUNDARY = b'----edge'


def field(name, content, *lines):
    head = [b'Content-Disposition: form-data; name="%s"' % as_bytes(name), *map(as_bytes, lines)]
    return b'\r\n'.join([*head, b'', as_bytes(content)])


def file(name, content, file_name=b'x.bin', *lines):
    head = [b'Content-Disposition: form-data; name="%s"; filename="%s"' % (as_bytes(name), as_bytes(file_name)), *map(as_bytes, lines)]
    return b'\r\n'.join([*head, b'', as_bytes(content)])


def joined(*parts, boundary=BOUNDARY, end=b'--\r\n'):
    line = b'--' + as_bytes(boundary)
    return line + b'\r\n' + (b'\r\n' + line + b'\r\n').join(parts) + b'\r\n' + line + end


def send(body, boundary=BOUNDARY, target='/lab/op/put', type=None, **more):
    return request(target=target, body=body, type=type or b'multipart/form-data; boundary=' + as_bytes(boundary), **more)


PUT = joined(field('admin', ADMIN), field('param', PARAM))


def refused(name, code, body, status=None, **more):
    return Case(name, send(body, **more), status or (415 if code == 'ATYPE' else 400), code)


def taken(name, body, **more):
    """Accepted by `sync`, which reads no file and no param."""
    return Case(name, send(body, target='/lab/op/sync', **more), 200)


def cut():
    head, body = PUT.index(b'\r\n\r\n'), len(PUT)
    for size in (len(BOUNDARY) + 2, len(BOUNDARY) + 3, len(BOUNDARY) + 4, 30, head, head + 2, head + 4, head + 20, body - 60, body - len(BOUNDARY) - 8, body - 6, body - 5, body - 4, body - 3):
        yield refused(f'multipart cut at byte {size} of {body}', ('ABODY', 'AARG') if size < 20 else 'ABODY', PUT[:size])
    yield refused('multipart cut in its first boundary', 'AARG', PUT[:5])
    yield Case('multipart without its last line end', send(PUT[:-2].replace(PARAM, b'{"docs":[]}')), 200)
    yield refused('multipart of a single boundary', 'ABODY', b'--' + BOUNDARY + b'\r\n')
    yield Case('multipart without a part', send(b'--' + BOUNDARY + b'--\r\n'), 400, 'AARG')
    yield Case('multipart of no bytes', send(b''), 400, 'AARG')
    yield Case('multipart shorter than told', send(PUT, length=len(PUT) - 10), 400, 'ABODY')
    yield refused('multipart whose last boundary is another', 'ABODY', PUT.replace(BOUNDARY + b'--', BOUNDARY[:-1] + b'X--'))
    yield refused('multipart of 16 MiB without an end', 'ABODY', lambda: b'--' + BOUNDARY + b'\r\n' + field('param', b'x' * (BODY_BYTES - 1000)))
    yield refused('multipart of 16 MiB of hyphens', 'AARG', lambda: b'-' * BODY_BYTES)
    yield refused('multipart of 16 MiB of almost boundaries', 'AJSON', lambda: joined(field('param', (b'\r\n--' + BOUNDARY[:-1]) * ((BODY_BYTES - 1000) // (len(BOUNDARY) + 3)))))


def boundaries():
    for what, type_ in {
            'no boundary': 'multipart/form-data', 'an empty boundary': 'multipart/form-data; boundary=', 'an empty boundary in quotes': 'multipart/form-data; boundary=""',
            'a boundary of 71 characters': 'multipart/form-data; boundary=' + 'x' * 71, 'two boundaries': 'multipart/form-data; boundary=----edge; boundary=other',
            'a boundary without an end': 'multipart/form-data; boundary="----edge', 'a boundary with an accent': 'multipart/form-data; boundary=é', 'a boundary with a semicolon': 'multipart/form-data; boundary=;',
            'a boundary that ends with a blank': 'multipart/form-data; boundary="----edge "', 'a boundary with a control': 'multipart/form-data; boundary="a\tb"',
            'another kind of multipart': 'multipart/mixed; boundary=----edge', 'no kind of multipart': 'multipart; boundary=----edge', 'multipart/related': 'multipart/related; boundary=----edge',
            'a boundary with brackets': 'multipart/form-data; boundary=[x]', 'a parameter without a value': 'multipart/form-data; boundary', 'a longer word': 'multipart/form-datax; boundary=----edge'}.items():
        yield refused(f'multipart with {what}', 'ATYPE', PUT, type=as_bytes(type_))
    for boundary in ('x', 'x' * 70, "'()+_,-./:=?", '0', '--', '-' * 69):
        yield taken(f'boundary {boundary!r}', joined(field('lang', 'fr'), boundary=boundary), type=f'multipart/form-data; boundary="{boundary}"')
    yield taken('boundary in capitals of its name', joined(field('lang', 'fr')), type='Multipart/Form-Data; BOUNDARY=----edge; charset=utf-8')
    yield refused('boundary that differs in its case', 'AARG', PUT, boundary=b'----EDGE')


def ambiguous():
    part = field('param', PARAM)
    for what, body in {
            'a preamble': b'before\r\n' + PUT, 'an empty preamble': b'\r\n' + PUT, 'an epilogue': PUT + b'after', 'a second form behind it': PUT + PUT,
            'lines that end with LF alone': PUT.replace(b'\r\n', b'\n'), 'lines that end with CR alone': PUT.replace(b'\r\n', b'\r'),
            'no name': joined(b'Content-Disposition: form-data\r\n\r\n' + PARAM), 'no disposition': joined(b'Content-Type: text/plain\r\n\r\n' + PARAM), 'no head': joined(b'\r\n' + PARAM),
            'two dispositions': joined(b'Content-Disposition: form-data; name="lang"\r\n' + part), 'another disposition': joined(part.replace(b'form-data', b'attachment')),
            'two names': joined(part.replace(b'name="param"', b'name="lang"; name="param"')), 'a name in RFC 5987': joined(part.replace(b'name="param"', b"name*=utf-8''param")),
            'a file name in RFC 5987': joined(part.replace(b'name="param"', b"name=\"param\"; filename*=utf-8''x")), 'a folded field': joined(part.replace(b'; name', b';\r\n name')),
            'a field without a colon': joined(b'Content-Disposition form-data\r\n' + part), 'a field with a blank before its colon': joined(part.replace(b'Disposition:', b'Disposition :')),
            'a field of no name': joined(b': x\r\n' + part), 'NUL in a field': joined(b'X: a\0b\r\n' + part), 'NUL in a name': joined(part.replace(b'"param"', b'"par\0am"')),
            'an open quote': joined(part.replace(b'"param"', b'"param')), 'no quotes and a blank': joined(part.replace(b'"param"', b'par am')), 'no semicolon': joined(part.replace(b'; name', b' name')),
            'a boundary at the start of a content': joined(field('lang', b'--' + BOUNDARY + b'\r\nContent-Disposition: form-data; name="param"\r\n\r\n' + PARAM)),
            'something behind a boundary': PUT.replace(BOUNDARY + b'\r\n', BOUNDARY + b'x\r\n'), 'a boundary within a boundary': PUT.replace(BOUNDARY + b'\r\n', BOUNDARY + BOUNDARY + b'\r\n'),
            'an empty type': joined(field('param', PARAM, 'Content-Type:')), 'two types': joined(field('param', PARAM, 'Content-Type: a/b', 'Content-Type: c/d')),
            'a type with NUL': joined(field('param', PARAM, b'Content-Type: a/\0b')), 'a type with an accent': joined(field('param', PARAM, 'Content-Type: é/x')),
            'a type of 256 bytes': joined(field('param', PARAM, 'Content-Type: ' + 'x' * 256))}.items():
        yield refused(f'multipart with {what}', 'AARG', body)
    for encoding in ('base64', 'quoted-printable', 'gzip', 'x', ''):
        yield refused(f'part in the encoding {encoding!r}', 'ATYPE', joined(field('param', PARAM, f'Content-Transfer-Encoding: {encoding}')))
    yield refused('no UTF-8 in the name of a part', 'AUTF8', joined(field(b'par\xffam', PARAM)))
    yield refused('no UTF-8 in the name of a file', 'AUTF8', joined(file('x', b'', b'\xe9.txt')))
    yield refused('no UTF-8 in an argument', 'AUTF8', joined(field('lang', b'\xff')))
    yield refused('NUL in an argument', 'AARG', joined(field('lang', b'a\0b')))
    yield refused('param is no JSON', 'AJSON', joined(field('param', b'{"docs":')))
    yield refused('param is an array', 'AARG', joined(field('param', b'[]')))
    yield refused('param too deep', 'ALIMIT', joined(field('param', b'{"a":' * 500)))
    yield refused('param as a file', 'AARG', joined(file('param', PARAM)))
    yield refused('admin key as a file', 'AARG', joined(file('admin', ADMIN), field('param', b'{}')))
    yield refused('wrong admin key', 'SKEY', joined(field('admin', 'wrong'), field('param', PARAM)))
    yield refused('admin key with a line end', 'SKEY', joined(field('admin', ADMIN + b'\r\n'), field('param', PARAM)))
    yield refused('two params, the first is wrong', 'AARG', joined(field('param', b'[]'), field('param', PARAM)))
    yield refused('the query string before the form', 'AARG', PUT, target='/lab/op/put?param=[]')


def many():
    most = LIMITS['limit_parts']
    for count in (most - 1, most):
        yield taken(f'form of {count} parts', joined(*[field('lang', '1')] * count))
        yield taken(f'form of {count} files', joined(*[file('x', b'\0\xff' * 10)] * count))
    yield refused(f'form of {most + 1} parts', 'ALIMIT', joined(*[field('lang', '1')] * most, field('param', PARAM)))
    yield refused(f'form of {most + 1} files', 'ALIMIT', joined(*[file('x', '1')] * (most + 1)))
    yield refused('form of a thousand parts', 'ALIMIT', joined(*[field('lang', '1')] * 1000))
    yield refused('form of 200,000 parts', 'ALIMIT', joined(*[b'Content-Disposition: form-data; name=lang\r\n\r\n'] * 200000))
    yield taken('head of a part of 8 KB', joined(field('lang', '1', 'X: ' + 'x' * 8100)))
    yield refused('head of a part of 9 KB', 'ALIMIT', joined(field('param', PARAM, 'X: ' + 'x' * 9000)))
    yield refused('head of a part of a thousand fields', 'ALIMIT', joined(field('param', PARAM, *['X: yyyyyyyy'] * 1000)))
    yield refused('head of a part of a MiB', 'ALIMIT', joined(field('x' * (1 << 20), '1')))
    yield refused('head of a part that never ends', 'ALIMIT', b'--' + BOUNDARY + b'\r\nContent-Disposition: ' + b'x' * 1000000)
    yield Case('form over the limit of a body', send(lambda: joined(file('x', b'x' * BODY_BYTES))), 413, 'ALIMIT')


def files():
    """Files are for operations of applications: others take no notice, whatever they are."""
    contents = {'nothing': b'', 'NULs': bytes(1000), 'every byte': bytes(range(256)), 'line ends': b'\r\n\r\n\n\r', 'hyphens': b'--', 'almost the boundary': b'\r\n--' + BOUNDARY[:-1], 'the boundary without its hyphens': BOUNDARY,
                'a form': joined(field('x', '1'), boundary='other'), 'a bomb': bytes.fromhex('1f8b08') + bytes(1000), '256 KiB': bytes(1 << 18)}
    for what, content in contents.items():
        yield taken(f'file of {what}', joined(file('x', content)))
    for name in ('', '../../etc/passwd', '/etc/passwd', 'C:\\\\x', 'a.php', '.htaccess', 'x' * 4000, 'é', '\u202egnp.exe', '<script>', "'; drop table doc;--", 'con', '%00', '\\"', '$(id)', 'a;b', 'a/b'):
        yield taken(f'file named {name[:30]!r}', joined(file('x', b'1', name)))
    for type_ in ('text/html', 'application/x-php', 'x', '../..', 'image/svg+xml; charset=x', '%s%n'):
        yield taken(f'file of the type {type_!r}', joined(file('x', b'1', 'x', f'Content-Type: {type_}')))


def cases():
    for part in (cut, boundaries, ambiguous, many, files):
        yield from part()

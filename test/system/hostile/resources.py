"""Documents as resources: addresses, methods, conditions, bodies."""
import json
from urllib.parse import quote

from hostile import ADMIN, BODY_BYTES, FORM, LIMITS, TELLTALE, Case, as_bytes, quoted, request
from hostile.addresses import METACHARACTERS
from hostile.json_texts import MALFORMED, NO_UTF8

AT = '/lab/doc/Hostile/x'
STATUS = {'ATYPE': 415, 'AMETHOD': 405, 'AVERSION': 412, 'NDOCUMENT': 404, 'NPATH': 404, 'NNAMESPACE': 404, 'SCLOSED': 401, 'SKEY': 403}


def items(content=b'1', more=b''):
    return b'{"items":[{"c":"Mark","j":"%s"},{"c":"Item","j":%s}],"admin":"%s"%s}' % (TELLTALE, as_bytes(content), ADMIN, as_bytes(more))


def refused(name, code, body=None, method='PUT', target=AT, status=None, **more):
    body = items() if body is None and method in ('PUT', 'PATCH') else body or b''
    return Case(f'{method}: {name}', request(method=method, target=target, body=body, **more), status or STATUS.get(code, 400), code)


def at(id_):
    return '/lab/doc/Kept/' + quote(id_, safe='')


def addresses():
    for path, code in (('/lab/doc', 'NPATH'), ('/lab/doc/', 'NPATH'), ('/lab/doc/Hostile', 'NPATH'), ('/lab/doc/Hostile/', 'NPATH'), ('/lab/doc//x', 'NPATH'), ('/lab/doc/Hostile/x/', 'NPATH'),
                       ('/lab/doc/Hostile/x/y', 'NPATH'), ('/lab/doc/Hostile/.', 'NPATH'), ('/lab/doc/Hostile/..', 'NPATH'), ('/lab/doc/Hostile/%2e', 'NPATH'), ('/lab/doc/Hostile/%2E%2e', 'NPATH'),
                       ('/lab/doc/../op/put', 'NPATH'), ('/lab/DOC/Hostile/x', 'NPATH'), ('/doc/Hostile/x', 'NPATH'), ('/lab/doc%2fHostile/x', 'NPATH'), ('/lab/doc/hostile/x', 'AARG'), ('/lab/doc/Host%20/x', 'AARG'),
                       ('/lab/doc/Host-ile/x', 'AARG'), ('/lab/doc/' + 'X' * 17 + '/x', 'AARG'), ('/lab/doc/%C3%89t%C3%A9/x', 'AARG'), ("/lab/doc/H'/x", 'AARG'), ('/lab/doc/Hostile/%ff', 'AUTF8'), ('/lab/doc/Hostile/%c0%af', 'AUTF8'),
                       ('/lab/doc/Hostile/' + 'x' * (LIMITS['limit_name_bytes'] + 1), 'ALIMIT'), ('/nowhere/doc/Hostile/x', 'NNAMESPACE'), ('/lab/doc/Hostile/%', ('AARG', None)), ('/lab/doc/Hostile/%00', ('AARG', None))):
        for method in ('GET', 'PUT', 'DELETE'):
            yield refused(path[:50], code, method=method, target=path, status=STATUS.get(code, 400) if isinstance(code, str) else (400, 404))
    for text in METACHARACTERS:
        if len(('r:' + text).encode()) > LIMITS['limit_name_bytes']:
            continue
        yield Case(f'PUT of {text!r}', request(method='PUT', target=at('r:' + text), body=items(quoted(text)), headers=['If-None-Match: *']), 201)
        yield Case(f'GET of {text!r}', request(method='GET', target=at('r:' + text)), 200,
                   back=lambda body, text=text: json.loads(body)['id'] == 'r:' + text and b'"j":' + as_bytes(quoted(text)) + b'}' in body)
    for header in ('X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'):
        yield Case(f'{header} does not delete', request(method='GET', target=AT, headers=[f'{header}: DELETE']), 404, 'NDOCUMENT')
    yield Case('_method does not delete', request(method='GET', target=AT + '?_method=DELETE'), 400, 'AARG')


def methods():
    for method in ('POST', 'COPY', 'MOVE', 'LOCK', 'PROPFIND', 'TRACE', 'BREW', 'LINK'):
        yield refused('a method that resources have not', 'AMETHOD', method=method, body=items())
    for method in ('GET', 'HEAD', 'DELETE', 'PATCH'):
        yield Case(f'{method} of what is not there', request(method=method, target=AT, body=items() if method == 'PATCH' else b''), 404, None if method == 'HEAD' else 'NDOCUMENT')
    for ns in ('demo', 'z'):
        for method in ('PUT', 'PATCH', 'DELETE'):
            yield refused(f'of {ns} without a key', 'SCLOSED', items().replace(ADMIN, b''), method=method, target=f'/{ns}/doc/Hostile/x')
            yield refused(f'of {ns} with a wrong key', 'SKEY', items().replace(ADMIN, b'wrong'), method=method, target=f'/{ns}/doc/Hostile/x')
    for method in ('GET', 'HEAD'):
        yield Case(f'{method} of z without a key', request(method=method, target='/z/doc/Namespace/lab'), 401, None if method == 'HEAD' else 'SCLOSED')


def conditions():
    for field in ('If-Match', 'If-None-Match'):
        for what, text in {'a word': 'x', 'no quote at the end': '"1', 'no quote at the start': '1"', 'a number without quotes': '261121103000123', 'a star in a list': '*, "1"', 'two stars': '* *', 'a weak star': 'W/*',
                           'a small w': 'w/"1"', 'a blank behind W/': 'W/ "1"', 'a comma between blanks': '"1" "2"', 'a control': '"\t"', 'no UTF-8': b'"\xff', 'a semicolon': '"1";"2"', 'quotes within': '"a"b"'}.items():
            yield refused(f'{field} of {what}', 'AARG', headers=[as_bytes(field + ': ') + as_bytes(text)])
    for what, text in {'another version': '"1"', 'many versions': ', '.join(f'"{i}"' for i in range(2000)), 'a weak tag': 'W/"261121103000123"', 'a tag that is none of ours': '"x"', 'a star': '*', 'a number beyond': '"' + '9' * 400 + '"',
                       'an empty tag': '""', 'a negative number': '"-1"', 'zero': '"0"', 'SQL': '"1;drop"'}.items():
        yield refused(f'If-Match of {what}', 'AVERSION', headers=[f'If-Match: {text}'])
    yield Case('If-Match twice', request(method='PUT', target=AT, body=items(), headers=['If-Match: "1"', 'If-Match: "2"']), (400, 412), None)
    yield refused('If-Match of 17 KB', 'ALIMIT', headers=['If-Match: ' + '"1",' * 4300 + '"1"'], status=(400, 431))
    for age in ('-1', 'x', '1.5', '1e3', ' 1', '9' * 30, '', '0x1', '3155760001'):
        yield refused(f'age {age!r}', 'AARG', method='GET', target=AT + '?age=' + quote(age))


def bodies():
    for what in list(MALFORMED)[::5]:
        yield refused(f'content: {what}', 'AJSON', items(MALFORMED[what]))
    for what, text in list(NO_UTF8.items())[::4]:
        yield refused(f'no UTF-8: {what}', 'AUTF8', items(b'"' + text + b'"'), method='PUT')
    for what, (text, code) in {
            'items is an object': (b'{"items":{}}', 'AARG'), 'items is null': (b'{"items":null}', 'AARG'), 'items is a text': (b'{"items":"[]"}', 'AARG'), 'no items': (b'{}', 'AARG'), 'an array': (b'[]', 'AARG'),
            'items twice': (b'{"items":[],"items":[]}', 'AJSON'), 'param in place of items': (b'{"param":{"items":[]}}', 'AARG'), 'an item without a class': (b'{"items":[{"j":1}]}', 'AARG'), 'an item of a number': (b'{"items":[1]}', 'AARG'),
            'both j and s': (b'{"items":[{"c":"A","j":1,"s":""}]}', 'AARG'), 'an empty key': (b'{"items":[{"c":"A","k":"","j":1}]}', 'AARG'), 'one level too deep': (b'{"items":[{"c":"A","j":%s}]}' % (b'[' * 8 + b']' * 8), 'ALIMIT'),
            'a content too large': (b'{"items":[{"c":"A","s":"%s"}]}' % (b'x' * (LIMITS['limit_content_bytes'] + 1)), 'ALIMIT'), 'a document too large': (b'{"items":[%s]}' % b','.join(b'{"c":"A","k":"%d","s":"%s"}' % (i, b'x' * 4000) for i in range(5)), 'ALIMIT'),
            'cut': (b'{"items":[{"c":"A","j":1}', 'AJSON'), 'a string of 16 MiB': (lambda: items(b'"' + b'x' * (BODY_BYTES - 1000) + b'"'), 'ALIMIT'), 'millions of items': (lambda: b'{"items":[%s]}' % b','.join([b'0'] * 4000000), 'ALIMIT')}.items():
        yield refused(what, code, text)
    yield refused('del in a PUT', 'AARG', b'{"items":[{"c":"A","del":true}]}')
    yield Case('PUT without a body', request(method='PUT', target=AT), 400, 'AARG')
    yield refused('a body of a blank', 'AJSON', b' ')
    yield refused('text', 'ATYPE', items(), type='text/plain')
    yield refused('a form without items', 'AARG', b'a=b', type=FORM)
    yield refused('a form whose items are no array', 'AARG', b'items={}', type=FORM)
    yield refused('a merge patch', 'ATYPE', b'{"items":[]}', method='PATCH', type='application/merge-patch+json')
    yield refused('a JSON patch', 'ATYPE', b'[]', method='PATCH', type='application/json-patch+json')
    yield Case('PUT of 16 MiB and one', request(method='PUT', target=AT, body=lambda: items() + b' ' * BODY_BYTES), 413, 'ALIMIT')
    for size in (LIMITS['limit_content_bytes'] - 1, LIMITS['limit_content_bytes']):
        yield Case(f'PUT of a content of {size} bytes', request(method='PUT', target=at(f'size-{size}'), body=b'{"items":[{"c":"A","s":"%s"}]}' % (b'x' * size)), 201)


def cases():
    for part in (addresses, methods, conditions, bodies):
        yield from part()

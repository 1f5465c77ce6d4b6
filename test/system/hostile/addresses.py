"""Addresses, methods, types of bodies, query strings and forms, names that mean something elsewhere, rights."""
import json
from urllib.parse import quote

from hostile import ADMIN, FORM, JSON, Case, kept, put_text, quoted, refused, request

PARAM = '{"docs":[{"c":"Hostile","id":"x","items":[{"c":"Item","j":1}]}]}'
ENCODED = quote(PARAM)
READ = quote('{"docs":[{"c":"Note","id":"x"}]}')

# What stands in an id, a key or a text, and would mean something to SQL, to a shell, to C, to HTML, to a log.
METACHARACTERS = [
    "'", "''", '"', "';--", "'; drop table doc; --", "' or '1'='1", "x'); delete from item; --", '$1', '$$', '$body$', '%', '_', '%s%n%x', '\\', "\\'", "E'\\x27'",
    '{}', '{1,2}', '[1:2]', '(1)', 'null', 'NULL', 'true', '0', '-1', '1e400', 'NaN', ';', '; rm -rf /', '&& reboot', '| cat /etc/passwd', '`id`', '$(id)', '${IFS}',
    '<script>', '&lt;', '&amp;', '../../etc/passwd', '..', '.', '/', '//', 'a/b', '/etc/passwd', 'C:\\x', 'file:///etc/passwd', '*', '?', '[a-z]', '~', '#', '%00', '%2e',
    '\r\nSet-Cookie: a=b', '\n', '\t', ' ', '  x  ', '\x01', '\x1b[31m', '\x7f', '\u0085', '\u00a0', '\u200b', '\u202e', '\ufeff', '\ufffd', '\uffff', '\U0001f600',
    'é', 'e\u0301', 'ı', 'ß', 'ﬁ', 'Ａ', 'а', '\U000e0041', '=cmd|x', '@import', '<?xml', '<!--', ']]>', 'a' * 40, 'copy doc to program', '/*', '*/', '--', '\\.', '\\N', '\\copy']


def metacharacters():
    for text in METACHARACTERS:
        yield kept(f'id {text!r}', quoted(text), id_=text)
        yield kept(f'key {text!r}', quoted(text), key=quoted(text))
    for text in METACHARACTERS[::3]:
        if not text.isalpha():
            yield refused(f'class {text!r}', 'AARG', put_text(class_=quoted(text)))
        yield refused(f'admin {text!r}', 'SKEY', json.dumps({'admin': text, 'param': json.loads(PARAM)}))
        yield Case(f'account, key and lang {text!r}', request(body=json.dumps({'account': text, 'key': text, 'lang': text}), target='/lab/op/sync'), 200)
        yield Case(f'operation {text!r}', request(target='/lab/op/' + quote(text, safe='')), 404 if text not in ('.', '..') else (404, 400), ('NOPERATION', 'NPATH'))
        yield Case(f'namespace {text!r}', request(target='/' + quote(text, safe='') + '/op/put', body=put_text()), (404, 400), ('NPATH', 'AARG'))


def look_alikes():
    """Names that look the same are different ones."""
    for text in ('Kept\u200b', 'kept', 'Кept', 'Kept ', 'K\u0065\u0301pt'):
        yield refused(f'class {text!r}', 'AARG', put_text(class_=quoted(text)))
    for i, text in enumerate(['paypal', 'pаypal', 'paypal\u200b', 'paypal ', 'PAYPAL', 'ｐaypal', 'paypa\u0131', 'p\u0430yp\u0430l']):
        yield kept(f'alike: {text!r}', b'%d' % i, id_=text)


# Addresses, sent as they stand here; each with the status and the code.
PATHS = [
    ('/', 404, 'NPATH'), ('//', 404, 'NPATH'), ('///lab/op/put', 404, 'NPATH'), ('//lab/op/put', 404, 'NPATH'), ('/lab//op/put', 404, 'NPATH'),
    ('/lab/op//put', 404, 'NPATH'), ('/lab/op/put/', 404, 'NPATH'), ('/lab/op/', 404, 'NPATH'), ('/lab/op', 404, 'NPATH'), ('/lab', 404, 'NPATH'),
    ('/lab/', 404, 'NPATH'), ('/lab/put', 404, 'NPATH'), ('/op/put', 404, 'NPATH'), ('/lab/OP/put', 404, 'NPATH'), ('/LAB/op/put', 404, 'NPATH'),
    ('/lab/op/PUT', 404, 'NOPERATION'), ('/lab/op/put%20', 404, 'NOPERATION'), ('/lab/op/put%00', (400, 404), None), ('/lab/op/put%0a', 404, 'NOPERATION'),
    ('/lab/op/put;x=1', 404, 'NOPERATION'), ('/lab/op/put.json', 404, 'NOPERATION'), ('/lab/op/put&x', 404, 'NOPERATION'), ('/lab/op/put=', 404, 'NOPERATION'),
    ('/lab/op/pu%74', 200, None), ('/lab/op/%70%75%74', 200, None), ('/lab/op/p%75t?lang', 200, None), ('/lab/op/put?x', 400, 'AARG'), ('/lab/op/put?', 200, None), ('/lab/op/put/a/b', 200, None),
    ('/lab/op%2fput', 404, 'NPATH'), ('/lab%2fop/put', 404, 'NPATH'), ('/lab/op/..%2fput', 404, 'NOPERATION'), ('/l%61b/op/put', 404, 'NPATH'),
    ('/lab/%6fp/put', 404, 'NPATH'), ('/lab/op/%2e', 404, 'NPATH'), ('/lab/op/%2e%2e/put', 404, 'NPATH'), ('/lab/op/put/..', 404, 'NPATH'),
    ('/lab/op/put/.', 404, 'NPATH'), ('/lab/./op/put', 404, 'NPATH'), ('/lab/../lab/op/put', 404, 'NPATH'), ('/../lab/op/put', (400, 404), None),
    ('/../../../../etc/passwd', (400, 404), None), ('/%2e%2e/%2e%2e/etc/passwd', (400, 404), None), ('/lab/op/put/../../../z/op/put', 404, 'NPATH'),
    ('/z/../lab/op/put', 404, None), ('/lab/op/put/%2e%2e/%2e%2e/%2e%2e/z/op/get', 404, 'NPATH'), ('/lab/op/../../demo/op/put', 404, 'NPATH'),
    ('/lab\\op\\put', (400, 404), None), ('/lab/op\\put', 404, None), ('/lab/op/%', (400, 404), None), ('/lab/op/%z', (400, 404), None), ('/lab/op/%4', (400, 404), None),
    ('/lab/op/put/%', (400, 404), None), ('/lab/op/put/%2', (400, 404), None), ('/lab/op/put/%GG', (400, 404), None), ('/lab/op/put/%u0041', (400, 404), None),
    ('/lab/op/put/%00', (400, 404), None), ('/lab/op/%00put', (400, 404), None), ('/lab%00/op/put', (400, 404), None),
    ('/lab/op/%ff', 400, 'AUTF8'), ('/lab/op/%c0%af', 400, 'AUTF8'), ('/lab/op/put/%ed%a0%80', 400, 'AUTF8'), ('/lab/op/%c0%ae%c0%ae/put', 400, 'AUTF8'),
    ('/lab/op/%25%37%30ut', 404, 'NOPERATION'), ('/lab/op/%2570ut', 404, 'NOPERATION'), ('/lab/op/put#x', (400, 404), None), ('/lab#/op/put', (400, 404), None),
    ('/lab/op/put' + '/x' * 61, 200, None), ('/lab/op/put' + '/x' * 62, 404, 'NPATH'), ('/lab/op/put' + '/x' * 5000, 404, 'NPATH'),
    ('/lab/op/' + 'x' * 10000, 404, 'NOPERATION'), ('/lab/op/put?lang=' + 'x' * 15000, 200, None), ('/lab/op/put?' + 'x' * 15000, 400, 'AARG'), ('/lab/op/put?' + 'x' * 17000, 414, 'ALIMIT'), ('/' + 'x' * 70000, 414, 'ALIMIT'),
    ('/nowhere/op/put', 404, 'NNAMESPACE'), ('/' + 'n' * 16 + '/op/put', 404, 'NNAMESPACE'), ('/' + 'n' * 17 + '/op/put', 404, 'NPATH'), ('/1ab/op/put', 404, 'NPATH'),
    ('/lab1/op/put', 404, 'NNAMESPACE'), ('/lab-/op/put', 404, 'NPATH'), ('/lab./op/put', 404, 'NPATH'), ('/l_b/op/put', 404, 'NPATH'), ('/lab/lab/op/put', 404, 'NPATH'),
    ('/lab/demo/op/put', 404, 'NPATH'), ('/ping/op/put', 404, None), ('/live/op/put', 404, None), ('/ready/op/put', 404, None), ('/metrics/op/put', 404, None),
    ('/console/op/put', 404, None), ('/qm/op/put', 404, None), ('/default/op/put', 404, 'NNAMESPACE'), ('/hostnames/op/put', 404, 'NNAMESPACE'),
    ('/live', 404, 'NPATH'), ('/ready', 404, 'NPATH'), ('/metrics', 404, 'NPATH'), ('/stampd', 404, 'NPATH'), ('/nginx_status', 404, 'NPATH'), ('/.git/config', 404, 'NPATH'),
    ('/.env', 404, 'NPATH'), ('/favicon.ico', 404, 'NPATH'), ('/robots.txt', 404, 'NPATH'), ('/.stampd/404', 404, 'NPATH'), ('/.stampd/200', 404, 'NPATH'),
    ('/index.php', 404, 'NPATH'), ('/lab/op/put.php', 404, 'NOPERATION'), ('/lab/ping/x', 404, 'NPATH'), ('/lab/pingx', 404, 'NPATH'), ('/ping/', 404, None), ('/pin%67', 200, None),
    ('/lab/res/a.css', 405, 'AMETHOD'), ('/lab/res/../op/put', (400, 404), None), ('/lab/res/%2e%2e/x', 404, 'NPATH'), ('/lab/res/a%2fb', 405, 'AMETHOD'), ('/lab/res', 404, 'NPATH'),
    ('/lab/res/a%00', 400, 'AARG'), ('/lab/res/' + 'x' * 5000, 405, 'AMETHOD'), ('/lab/resx/a', 404, 'NPATH'), ('/lab/od/1', 400, 'AARG'), ('/lab/other', 404, 'NPATH'), ('/lab/op/nothing', 404, 'NOPERATION'), ('/lab/op/Put', 404, 'NOPERATION'), ('/lab/op/p\u0443t', (400, 404), None),
    ('/lab/op/' + quote('рut'), 404, 'NOPERATION'), ('/lab/op/put\u200b', (400, 404), None), ('lab/op/put', 400, None), ('?param={}', 400, None), ('*', 400, None),
    ('https://localhost/lab/op/put', 200, None), ('https://elsewhere.example/lab/op/put', (200, 400), None), ('http://localhost/z/op/put', 400, 'SCLOSED'),
    ('https://localhost', 404, 'NPATH'), ('ftp://localhost/lab/op/put', (200, 400), None), ('https:///lab/op/put', 400, None), ('localhost:443', 400, None),
]

METHODS = [('PUT', 405), ('DELETE', 405), ('PATCH', 405), ('TRACE', 405), ('CONNECT', (400, 405)), ('PROPFIND', 405), ('COPY', 405), ('MKCOL', 405),
           ('BREW', (400, 405)), ('X' * 3000, (400, 405, 414)), ('post', (400, 405)), ('Post', (400, 405)), ('P0ST', (400, 405)), ('POST\t', 400), ('', 400), ('\0POST', 400), ('POS\xe9T', 400),
           ('GET,POST', (400, 405)), ('G-ET', (400, 405)), ('PRI', (400, 405))]


def paths():
    body = put_text(b'1', class_=b'"Kept"', id_=b'"path"')
    for path, status, code in PATHS:
        may_be_taken = status == 200 or isinstance(status, tuple) and 200 in status
        text = body if may_be_taken else put_text()
        if '/z/' in path:
            text = text.replace(ADMIN, b'')
        yield Case(f'address of {len(path)}: {path[:60]!r}', request(target=path, body=text), status, code)


def methods():
    for method, status in METHODS:
        yield Case(f'method {method[:20]!r}', request(method=method.encode('latin-1'), body=put_text()), status, None)
        if isinstance(status, int) and status == 405:
            yield Case(f'method {method} without a body', request(method=method), 405, 'AMETHOD')
            yield Case(f'method {method} of /ping', request(method=method, target='/ping'), 405, 'AMETHOD')
    yield Case('OPTIONS with a body', request(method='OPTIONS', body=put_text()), (200, 204))
    for header in ('X-HTTP-Method-Override', 'X-Method-Override', 'X-HTTP-Method'):
        yield Case(f'{header}: PUT', request(method='GET', target='/lab/op/sync', headers=[f'{header}: PUT']), 200)
    yield Case('HEAD of an unknown operation', request(method='HEAD', target='/lab/op/nothing'), 404, None)


TYPES_REFUSED = ['text/plain', 'text/json', 'application/xml', 'application/jsonx', 'application/json+x', 'application/ld+json', 'application/octet-stream', 'json', 'application',
                 'application/', '/json', 'application/json;charset=latin1', 'application/json; charset=utf-16', 'application/json; charset', 'application/json; =utf-8',
                 'application/json, text/plain', 'application/json\ttext', 'application json', "application/json'", 'image/png', 'text/html', 'application/x-www-form-urlencodedx',
                 'application/json; charset="utf-8', 'application/json; charset=utf8', 'application/json\u00a0', '{}', 'x' * 5000, '%s%n', 'application/json; charset=utf-7']
TYPES_TAKEN = ['application/json', 'Application/JSON', 'application/json;charset=utf-8', 'application/json; charset=UTF-8', 'application/json ; charset="utf-8"', 'application/json;',
               'application/json; x=y; charset=utf-8']


def types():
    for type_ in TYPES_REFUSED:
        yield Case(f'type {type_[:60]!r}', request(body=put_text(), type=type_), (415, 400) if not type_.isascii() else 415, 'ATYPE')
    yield Case('no type', request(body=put_text(), type=None), 415, 'ATYPE')
    yield Case('an empty type', request(body=put_text(), type='\t'), 415, 'ATYPE')
    for i, type_ in enumerate(TYPES_TAKEN):
        yield Case(f'type {type_!r}', request(body=put_text(class_=b'"Kept"', id_=b'"type-%d"' % i), type=type_), 200)
    yield Case('a form that says to be JSON', request(body='param=' + ENCODED, type=JSON), 400, 'AJSON')
    yield Case('JSON that says to be a form', request(body=put_text(), type=FORM), 415, 'ATYPE')
    yield Case('a form without a key at a manager\'s entry', request(body='param=%7B%7D', type=FORM, target='/lab/od/1'), 403, 'SKEY')
    for encoding in ('gzip', 'deflate', 'br', 'identity', 'x'):
        refusal = {'identity': (400, ('AUTF8', 'AJSON')), 'gzip': (400, 'ABODY')}.get(encoding, (415, 'ATYPE'))
        yield Case(f'content encoding {encoding}', request(body=b'\x1f\x8b\x08\0' + put_text(), headers=[f'Content-Encoding: {encoding}']), *refusal)


def queries():
    """Query strings and forms: the same text, on both roads; the operation is put."""
    wrong = {
        'cut escape': ('param=%', 'AARG'), 'half an escape': ('param=%7', 'AARG'), 'no digits': ('param=%zz', 'AARG'), 'NUL': ('param=%00', 'AARG'), 'NUL in a name': ('par%00am=1', 'AARG'),
        'wrong escape in a name': ('par%m=1', 'AARG'), 'wrong escape in the admin key': ('admin=%', 'AARG'), 'no UTF-8': ('param=%ff', 'AUTF8'), 'no UTF-8 in lang': ('lang=%ff', 'AUTF8'),
        'overlong': ('account=%c0%af', 'AUTF8'), 'surrogate': ('key=%ed%a0%80', 'AUTF8'), 'empty param': ('param=', 'AJSON'), 'no value': ('param', 'AJSON'),
        'an array': ('param=[]', 'AARG'), 'null': ('param=null', 'AARG'), 'a text': ('param=%22x%22', 'AARG'), 'syncs an object': ('syncs={}', 'AARG'), 'syncs empty': ('syncs=', 'AJSON'),
        'escaped twice': ('param=' + quote(ENCODED), 'AJSON'), 'spelt otherwise': ('Param=' + ENCODED, 'AARG'), 'with a blank': ('param+=' + ENCODED, 'AARG'),
        'with brackets': ('param%5B%5D=' + ENCODED, 'AARG'), 'with a semicolon': ('x=1;param=' + ENCODED, 'AARG'), 'the first wins, which is wrong': ('param=[]&param=' + ENCODED, 'AARG'),
        'the first admin wins, which is wrong': ('admin=x&admin=' + '@' * 64, 'SKEY'), 'wrong key': ('admin=wrong', 'SKEY'), 'dhop': ('dhop=1', 'AARG'), 'deep': ('param=' + '%5B' * 500, 'ALIMIT'),
        'member twice': ('param=' + quote('{"docs":[],"docs":[]}'), 'AJSON'), 'quote escaped': ('param=%7B%22docs%22:[%7B%22c%22:%22H%22,%22id%22:%22%22%7D]%7D', 'AARG'),
        'plus is a blank': ('param=%7B%22docs%22+%3A+[]+%2B%7D', 'AJSON')}
    for what, (text, code) in wrong.items():
        if '@' not in text:
            yield Case(f'query: {what}', request(method='GET', target=f'/lab/op/{"get" if what == "quote escaped" else "list" if what == "dhop" else "put"}?' + text), 400, code)
        yield Case(f'form: {what}', request(body=text, type=FORM), 400, code)
    yield Case('the query string wins over the body', request(target='/lab/op/put?param=[]', body=put_text()), 400, 'AARG')
    yield Case('form of raw bytes', request(body=b'param=\xff\xfe', type=FORM), 400, 'AUTF8')
    yield Case('form with a raw NUL', request(body=b'param={}\0', type=FORM), 400, 'AARG')
    yield Case('query with raw UTF-8', request(method='GET', target='/lab/op/sync?lang=é'), (200, 400), None)
    yield Case('query with a question mark', request(method='GET', target='/lab/op/get?lang=?&param=' + READ), 200)
    yield Case('some ampersands', request(method='GET', target='/lab/op/get?&&&' + 'param=' + READ), 200)
    yield Case('many ampersands', request(method='GET', target='/lab/op/get?' + '&' * 3000 + 'param=' + READ), 400, 'ALIMIT')


def rights():
    without_key = put_text().replace(ADMIN, b'')
    for ns in ('demo', 'z'):
        yield Case(f'put into {ns} without a key', request(target=f'/{ns}/op/put', body=without_key), 400, 'SCLOSED')
        yield Case(f'put into {ns} by GET', request(method='GET', target=f'/{ns}/op/put?param={ENCODED}'), 400, 'SCLOSED')
        for key in ('x', '0' * 64, 'admin', '\u0000'[:0] + ' ', 'é' * 32, 'x' * 100000):
            yield Case(f'put into {ns} with the key {key[:20]!r}', request(target=f'/{ns}/op/put', body=without_key.replace(b'"admin":""', b'"admin":' + quoted(key).encode())), 400, 'SKEY')
        yield Case(f'put into {ns} with a blank behind the key', request(target=f'/{ns}/op/put', body=put_text().replace(ADMIN, ADMIN + b' ')), 400, 'SKEY')
    for operation in ('get', 'list', 'sync', 'put'):
        yield Case(f'{operation} of z', request(target=f'/z/op/{operation}', body='{"param":{"c":"Namespace","docs":[{"c":"Namespace","id":"lab"}]},"syncs":[{"c":"Namespace","id":"lab"}]}'), 400, 'SCLOSED')
    yield Case('another build', request(body=put_text(), headers=['X-Stampd-Build: 0']), 400, 'DBUILD')
    yield Case('another build, long', request(body=put_text(), headers=['X-Stampd-Build: ' + 'x' * 9000]), 400, 'DBUILD')
    yield Case('another build of strange bytes', request(body=put_text(), headers=[b'X-Stampd-Build: \xff\x01<script>']), 400, None)
    yield Case('a browser asks for what is not there', request(method='GET', target='/lab/op/%3Cscript%3E', headers=['Accept: text/html']), 404, None)


def cases():
    for part in (metacharacters, look_alikes, paths, methods, types, queries, rights):
        yield from part()

"""Every limit: at it, below it and above it by one; and every argument of the operations, of the wrong kind."""
import json

from hostile import BODY_BYTES, FORM, LIMITS, Case, kept, put_text, quoted, refused, request

NAME, CONTENT = LIMITS['limit_name_bytes'], LIMITS['limit_content_bytes']


def string(size):
    """The text of a JSON string, so long."""
    return b'"' + b'x' * (size - 2) + b'"'


def answered(name, body, target, look=None, **more):
    return Case(name, request(body=body, target=target, **more), 200, back=look)


def call(name, operation, param, code=None, **more):
    body = json.dumps({'param': param, **more})
    return refused(name, code, body, target=f'/lab/op/{operation}') if code else answered(name, body, f'/lab/op/{operation}')


def names():
    for size in (NAME - 1, NAME):
        yield kept(f'id of {size} bytes', b'1', id_='i' * size)
        yield kept(f'id of {size} bytes in characters of two', b'1', id_='é' * (size // 2) + 'x' * (size % 2))
        yield kept(f'key of {size} bytes', b'1', key=quoted('k' * size))
    for member, make in {'id': lambda text: put_text(id_=text), 'key': lambda text: put_text(key=text)}.items():
        yield refused(f'{member} of {NAME + 1} bytes', 'ALIMIT', make(string(NAME + 3)))
        yield refused(f'{member} of {NAME + 1} bytes in {NAME - 1} characters', 'ALIMIT', make(quoted('x' * (NAME - 3) + 'éé')))
        yield refused(f'{member} of {NAME + 1} bytes in escapes', 'ALIMIT', make(b'"' + b'\\u0061' * (NAME + 1) + b'"'))
        yield refused(f'{member} empty', 'AARG', make(b'""'))
        for kind, text in {'number': b'1', 'array': b'[]', 'object': b'{}', 'boolean': b'true'}.items():
            yield refused(f'{member} is a {kind}', 'AARG', make(text))
    yield refused('id null', 'AARG', put_text(id_=b'null'))
    yield kept('key null: a singleton', b'1', key=b'null')
    for member, make in {'class of a document': lambda text: put_text(class_=text), 'class of an item': lambda text: put_text(item=text)}.items():
        for what, text in {
                'empty': '', 'of 17 letters': 'X' * 17, 'with a small letter first': 'hostile', 'with a digit first': '1A', 'with a dot': 'A.b',
                'with a dash': 'A-b', 'with an underscore': 'A_b', 'with a slash': 'A/b', 'with a blank': 'A b', 'with a blank behind': 'Hostile ',
                'with a line end behind': 'Hostile\n', 'with an accent': 'Hôte', 'in Cyrillic': 'Ноstile', 'in Greek capitals': 'Αlpha', 'in full width': 'Ａ',
                'with a quote': "A'b", 'of SQL': "A'; drop table doc;--", 'with a zero-width joiner': 'Host\u200dile', 'with a star': '*'}.items():
            yield refused(f'{member} {what}', 'AARG', make(quoted(text)))
        for kind, text in {'number': b'1', 'null': b'null', 'array': b'["Hostile"]', 'object': b'{}'}.items():
            yield refused(f'{member} is a {kind}', 'AARG', make(text))
    yield kept('class of an item of 16 letters', b'1', item=quoted('X' * 16))


def contents():
    for size in (CONTENT - 1, CONTENT):
        yield kept(f'content of {size} bytes', string(size))
        yield kept(f'raw content of {size} bytes', string(size + 2), kind=b's')
    yield refused(f'content of {CONTENT + 1} bytes', 'ALIMIT', put_text(string(CONTENT + 1)))
    yield refused(f'raw content of {CONTENT + 1} bytes', 'ALIMIT', put_text(string(CONTENT + 3), kind=b's'))
    yield refused(f'content of {CONTENT + 1} bytes, mostly blanks', 'ALIMIT', put_text(b'[' + b' ' * (CONTENT - 1) + b']'))
    whole = LIMITS['limit_document_bytes']
    for size, code in ((whole, None), (whole + 1, 'ALIMIT')):
        cost = len('{"c":"Item","k":"0","v":,"s":""},') + 15 + 88  # of an item without its content
        sizes = [3800] * 4 + [size - 4 * 3800 - 5 * cost]
        items = [{'c': 'Item', 'k': f'{i}', 's': 'x' * part} for i, part in enumerate(sizes)]
        yield call(f'document of {size} bytes', 'put', {'docs': [{'c': 'Hostile' if code else 'Kept', 'id': f'whole-{size}', 'items': items}]}, code)
    yield refused('both j and s', 'AARG', put_text(b'1,"s":"x"'))
    yield refused('j and del', 'AARG', put_text(b'1,"del":true'))
    yield refused('neither j nor s nor del', 'AARG', put_text(b'1', kind=b'x'))
    for kind, text in {'number': b'1', 'array': b'[]', 'object': b'{}', 'boolean': b'true'}.items():
        yield refused(f's is a {kind}', 'AARG', put_text(text, kind=b's'))
    for kind, text in {'number': b'1', 'text': b'"true"', 'array': b'[]'}.items():
        yield refused(f'del is a {kind}', 'AARG', put_text(text, kind=b'del'))
        yield refused(f'delete is a {kind}', 'AARG', put_text(doc=b'"delete":%s,' % text))
    yield refused('del false alone', 'AARG', put_text(b'false', kind=b'del'))


def documents():
    most, syncs = LIMITS['limit_documents'], LIMITS['limit_syncs']
    for count, code in ((most - 1, None), (most, None), (most + 1, 'ALIMIT')):
        yield call(f'put of {count} documents', 'put', {'docs': [{'c': 'Hostile' if code else 'Kept', 'id': f'many-{i}', 'items': []} for i in range(count)]}, code)
        yield call(f'get of {count} documents', 'get', {'docs': [{'c': 'Note', 'id': f'{i}'} for i in range(count)]}, code)
    for count, code in ((syncs - 1, None), (syncs, None), (syncs + 1, 'ALIMIT')):
        yield call(f'get of {count} documents that may be old', 'get', {'docs': [{'c': 'Note', 'id': f'{i}', 'age': 1} for i in range(count)]}, code)
        elements = [{'c': 'Note', 'id': f'{i}'} for i in range(count)]
        yield call(f'sync of {count} documents', 'sync', {}, code, syncs=elements)
        yield call(f'put with sync of {count} documents', 'put', {'docs': [{'c': 'Hostile' if code else 'Kept', 'id': 's', 'items': []}]}, code, syncs=elements)
    yield refused('the same document twice, the second refused', 'AARG', json.dumps({'param': {'docs': [
        {'c': 'Hostile', 'id': 'x', 'items': [{'c': 'Item', 'j': 1}]}, {'c': 'Hostile', 'id': 'x', 'items': [{'c': 'item', 'j': 1}]}]}}))
    yield refused('the last of several is at another version', 'AVERSION', json.dumps({'param': {'docs': [
        {'c': 'Hostile', 'id': 'x', 'items': [{'c': 'Item', 'j': 1}]}, {'c': 'Hostile', 'id': 'y', 'if': 7, 'items': []}]}}))
    yield refused('the last of several has a wrong item', 'ALIMIT', json.dumps({'param': {'docs': [
        {'c': 'Hostile', 'id': 'x', 'items': [{'c': 'Item', 'j': 1}]}, {'c': 'Hostile', 'id': 'y', 'items': [{'c': 'Item', 's': 'x' * 9999}]}]}}))


def kinds():
    for kind, value in {'number': 1, 'text': '[]', 'object': {}, 'null': None, 'boolean': True}.items():
        for operation in ('get', 'put'):
            yield call(f'docs of {operation} is a {kind}', operation, {'docs': value}, 'AARG')
        if value is not None:
            yield refused(f'items is a {kind}', 'AARG', json.dumps({'param': {'docs': [{'c': 'Hostile', 'id': 'x', 'items': value}]}}))
        yield refused(f'syncs is a {kind}', 'AARG', json.dumps({'syncs': value}), target='/lab/op/sync')
    for kind, value in {'number': 1, 'text': 'Note', 'array': [], 'null': None}.items():
        for operation in ('get', 'put'):
            yield call(f'a document of {operation} is a {kind}', operation, {'docs': [value]}, 'AARG')
        yield refused(f'an element of syncs is a {kind}', 'AARG', json.dumps({'syncs': [value]}), target='/lab/op/sync')
        yield refused(f'an item is a {kind}', 'AARG', json.dumps({'param': {'docs': [{'c': 'Hostile', 'id': 'x', 'items': [value]}]}}))
    numbers = {'negative': '-1', 'a fraction': '1.5', 'an exponent': '1e3', 'a point': '1.0', 'a text': '"1"', 'true': 'true', 'an array': '[1]',
               'beyond 64 bits': '9223372036854775808', 'of 16 digits': '1000000000000000', 'of 400 digits': '9' * 400}
    for what, text in numbers.items():
        yield refused(f'if is {what}', 'AARG', put_text(doc=b'"if":%s,' % text.encode()))
        yield refused(f'after is {what}', 'AARG', '{"param":{"c":"Note","after":%s}}' % text, target='/lab/op/list')
        if what != 'of 16 digits':
            yield refused(f'age is {what}', 'AARG', '{"param":{"docs":[{"c":"Note","id":"x","age":%s}]}}' % text, target='/lab/op/get')
        for member in ('v', 'ct', 'dt'):
            yield refused(f'{member} of syncs is {what}', 'AARG', '{"syncs":[{"c":"Note","id":"x","%s":%s}]}' % (member, text), target='/lab/op/sync')


def lists():
    for limit, code in ((1, None), (999, None), (1000, None), (1001, 'AARG'), (0, 'AARG'), (-1, 'AARG'), (1.5, 'AARG'), ('9', 'AARG')):
        yield call(f'list of {limit!r}', 'list', {'c': 'Note', 'limit': limit}, code)
        yield call(f'list of {limit!r} classes', 'list', {'limit': limit}, code)
    for member in ('prefix', 'cursor'):
        yield call(f'{member} of {NAME} bytes', 'list', {'c': 'Note', member: 'x' * NAME})
        yield call(f'{member} of {NAME + 1} bytes', 'list', {'c': 'Note', member: 'x' * (NAME + 1)}, 'ALIMIT')
        for kind, value in {'number': 1, 'array': [], 'object': {}, 'boolean': False}.items():
            yield call(f'{member} is a {kind}', 'list', {'c': 'Note', member: value}, 'AARG')
    for text in ('%', '_', "'", '\\', '\U0010ffff', '\U0010ffff' * 10, '\ud7ff', '\x7f', "x' or '1'='1", ' ', '*', '.*', '$1', '\x01'):
        yield Case(f'prefix {text!r}', request(body=json.dumps({'param': {'c': 'Note', 'prefix': text}}), target='/lab/op/list'), 200,
                   back=lambda body: json.loads(body)['out']['docs'] == [])
    for text in ('note', '', 'A.b', "N'", 'N' * 17, '*', None, 1):
        yield call(f'list of the class {text!r}', 'list', {'c': text}, 'AARG')
    for text in ('note', 'A.b', "N'", 'N' * 17, 1):
        yield call(f'list of classes above {text!r}', 'list', {'cursor': text}, 'AARG')


def stamps():
    for text in ('1', '261121103000', 'x' * 15, '26112110300012x', '2611211030001234', '-61121103000123', ' 61121103000123', '261321103000123',
                 '260230103000123', '261121243000123', '', '２６１１２１１０３０００１２３'):
        yield refused(f'dhop {text!r}', 'AARG', json.dumps({'dhop': text}), target='/lab/op/sync')
    for text in ('991231235959999', '010101000000000'):
        yield refused(f'dhop {text}', 'ADHOP', '{"dhop":%s}' % int(text), target='/lab/op/sync') if text[0] != '0' else \
            refused(f'dhop {text}', 'ADHOP', json.dumps({'dhop': text}), target='/lab/op/sync')
    for kind, value in {'array': [], 'object': {}, 'boolean': True, 'null': None}.items():
        yield refused(f'dhop is a {kind}', 'AARG', json.dumps({'dhop': value}), target='/lab/op/sync')


def keys_of_requests():
    """Idempotency-Key."""
    for size in (1, 255):
        yield Case(
            f'Idempotency-Key of {size} bytes', request(body=put_text(class_=b'"Kept"', id_=b'"once-%d"' % size), headers=['Idempotency-Key: ' + 'k' * size]), 200)
    yield refused('Idempotency-Key of 256 bytes', 'AARG', put_text(), headers=['Idempotency-Key: ' + 'k' * 256])
    for what, text in {'a blank': 'a b', 'a tab': 'a\tb', 'an accent': 'é', 'Latin-1': b'\xe9', 'no UTF-8': b'\xff\xfe', 'delete': 'a\x7f'}.items():
        yield refused(f'Idempotency-Key with {what}', 'AARG', put_text(), headers=[b'Idempotency-Key: ' + (text if isinstance(text, bytes) else text.encode())])
    yield refused('Idempotency-Key of another request', 'AKEYREUSED', put_text(), headers=['Idempotency-Key: k'])
    yield refused('account too long for an Idempotency-Key', 'ALIMIT', put_text(more=b',"account":%s' % string(NAME + 3)), headers=['Idempotency-Key: other'])


def bodies():
    body = put_text(b'1', class_=b'"Kept"', id_=b'"body"')
    for size in (BODY_BYTES - 1, BODY_BYTES):
        yield Case(f'body of {size} bytes', request(body=lambda size=size: body + b' ' * (size - len(body))), 200, back=('body', None, 'j', b'1'))
    hostile = put_text()
    yield refused(f'body of {BODY_BYTES + 1} bytes', 'ALIMIT', lambda: hostile + b' ' * (BODY_BYTES + 1 - len(hostile)), status=413)
    yield Case('body announced as a terabyte', request(body=hostile, length=1 << 40), 413, 'ALIMIT')
    yield Case('body of no bytes', request(), 400, 'AARG')
    yield Case('form of 16 MiB', request(body=lambda: b'param=' + b'%7B' * (BODY_BYTES // 3 - 10), type=FORM), 400, 'AJSON')
    most = LIMITS['limit_parts']
    for what, pair in (('pairs', b'lang=b'), ('names', b'lang'), ('nothings', b'')):
        yield Case(f'form of {most} {what}', request(body=b'&'.join([pair] * most), type=FORM, target='/lab/op/sync'), 200)
        yield refused(f'form of {most + 1} {what}', 'ALIMIT', b'&'.join([pair] * (most + 1)) + b'&', type=FORM)
        yield refused(f'form of a million {what}', 'ALIMIT', lambda pair=pair: b'&'.join([pair] * 1000000), type=FORM)
    yield refused('query string and form over the limit together', 'ALIMIT', b'&'.join([b'lang=b'] * (most - 1)), type=FORM, target='/lab/op/put?lang=b&lang=b')
    yield refused('form of 16 million separators', 'ALIMIT', lambda: b'&' * (BODY_BYTES - 1), type=FORM)


def cases():
    for part in (names, contents, documents, kinds, lists, stamps, keys_of_requests, bodies):
        yield from part()

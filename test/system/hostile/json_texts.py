"""JSON that is none, and JSON that must come back byte for byte."""
from hostile import ADMIN, BODY_BYTES, TELLTALE, Case, kept, put_text, quoted, refused, request

WHOLE = b'{"admin":"' + ADMIN + b'","param":{"docs":[{"c":"Hostile","id":"x","items":[{"c":"Item","j":[1.5,"\\u00e9",true]}]}]}}'

# Contents of an item that are no JSON values.
MALFORMED = {
    'nothing': b'', 'comma at the end of an array': b'[1,]', 'comma at the end of an object': b'{"a":1,}',
    'comma at the start of an array': b'[,1]', 'comma at the start of an object': b'{,"a":1}', 'two commas': b'[1,,2]',
    'no comma': b'[1 2]', 'no comma between members': b'{"a":1 "b":2}', 'no colon': b'{"a" 1}', 'two colons': b'{"a"::1}',
    'no value': b'{"a":}', 'no name': b'{:1}', 'name without quotes': b'{a:1}', 'name in single quotes': b"{'a':1}",
    'number as name': b'{1:1}', 'null as name': b'{null:1}', 'array as name': b'{[]:1}', 'colon in an array': b'["a":1]',
    'object without colon': b'{"a"}', 'bracket of another kind': b'[1}', 'brace of another kind': b'{"a":1]', 'bracket twice': b'[1]]',
    'string in single quotes': b"'x'", 'string in back quotes': b'`x`', 'two strings': b'"a" "b"', 'two numbers': b'1 2',
    'NaN': b'NaN', 'nan': b'nan', 'Infinity': b'Infinity', 'minus Infinity': b'-Infinity', 'inf': b'inf', 'undefined': b'undefined',
    'plus sign': b'+1', 'two signs': b'--1', 'sign alone': b'-', 'sign apart': b'- 1', 'no digit before the point': b'.5',
    'no digit behind the point': b'1.', 'no digit behind the sign': b'-.5', 'two points': b'1.2.3', 'leading zero': b'01',
    'leading zeros': b'000', 'negative leading zero': b'-01', 'hexadecimal': b'0x10', 'octal': b'0o17', 'binary': b'0b1',
    'no exponent': b'1e', 'no exponent behind the sign': b'1e+', 'point in an exponent': b'1e1.5', 'underscore': b'1_000',
    'group separator': b'1,000', 'big integer of JavaScript': b'1n', 'full-width digit': '１'.encode(), 'Arabic digit': '٣'.encode(),
    'True': b'True', 'TRUE': b'TRUE', 'tru': b'tru', 'truer': b'truer', 'NULL': b'NULL', 'nul': b'nul', 'None': b'None',
    'control character in a string': b'"a\x01b"', 'line end in a string': b'"a\nb"', 'tab in a string': b'"a\tb"',
    'NUL in a string': b'"a\0b"', 'NUL behind a value': b'1\0', 'NUL before a value': b'\x001', 'escape of NUL': b'"\\u0000"',
    'escape of NUL in a name': b'{"\\u0000":1}', 'unknown escape': b'"\\x41"', 'escaped single quote': b'"\\\'"',
    'escaped digit': b'"\\0"', 'escape at the end': b'"\\"', 'short Unicode escape': b'"\\u12"', 'Unicode escape of no digits': b'"\\u12G4"',
    'Unicode escape in braces': b'"\\u{61}"', 'upper-case Unicode escape': b'"\\U0061"', 'Unicode escape with a sign': b'"\\u+041"',
    'high surrogate alone': b'"\\ud83d"', 'low surrogate alone': b'"\\ude00"', 'surrogates swapped': b'"\\ude00\\ud83d"',
    'two high surrogates': b'"\\ud83d\\ud83d\\ude00"', 'high surrogate before a letter': b'"\\ud83dx"',
    'high surrogate before another escape': b'"\\ud83d\\u0041"', 'high surrogate in a name': b'{"\\ud83d":1}',
    'comment of a line': b'1 // one\n', 'comment': b'/* one */ 1', 'comment of a shell': b'1 # one\n', 'comment of SQL': b'1 -- one\n',
    'form feed': b'\x0c1', 'vertical tab': b'\x0b1', 'no-break space': '\u00a01'.encode(), 'line separator': '\u20281'.encode(),
    'zero-width space': '\u200b1'.encode(), 'byte order mark': b'\xef\xbb\xbf1', 'full-width quotes': '＂x＂'.encode(),
    'member twice': b'{"a":1,"a":2}', 'member twice, once escaped': b'{"a":1,"\\u0061":1}', 'empty name twice': b'{"":1,"":1}',
    'member twice deep inside': b'[[{"a":{"b":1,"b":1}}]]', 'member twice, far apart':
        b'{"a":1,' + b','.join(b'"m%d":0' % i for i in range(200)) + b',"a":1}',
    'equals sign': b'{"a"=1}', 'semicolon': b'{"a":1;"b":2}', 'parentheses': b'(1)', 'HTML': b'<b>1</b>', 'a template': b'${1}',
    'a date': b'2026-11-21', 'a call': b'alert(1)', 'spread': b'[...[1]]', 'regular expression': b'/a/',
}

# Bytes that are no UTF-8.
NO_UTF8 = {
    'overlong slash of two bytes': b'\xc0\xaf', 'overlong NUL': b'\xc0\x80', 'overlong letter': b'\xc1\x81',
    'overlong slash of three bytes': b'\xe0\x80\xaf', 'overlong of three bytes': b'\xe0\x9f\xbf',
    'overlong slash of four bytes': b'\xf0\x80\x80\xaf', 'overlong of four bytes': b'\xf0\x8f\xbf\xbf',
    'high surrogate': b'\xed\xa0\x80', 'low surrogate': b'\xed\xbf\xbf', 'surrogate pair (CESU-8)': b'\xed\xa0\xbd\xed\xb8\x80',
    'above the last character': b'\xf4\x90\x80\x80', 'lead of five bytes': b'\xf8\x88\x80\x80\x80', 'lead of six bytes': b'\xfc\x84\x80\x80\x80\x80',
    'byte FE': b'\xfe', 'byte FF': b'\xff', 'continuation alone': b'\x80', 'two continuations': b'\xbf\xbf',
    'two bytes cut': b'\xc3', 'three bytes cut': b'\xe2\x82', 'four bytes cut': b'\xf0\x9f\x98', 'lead before a letter': b'\xc3A',
    'Latin-1': b'caf\xe9', 'Windows-1252 quotes': b'\x93x\x94', 'Shift JIS': b'\x82\xa0', 'overlong quote': b'\xc0\xa2',
}

# Contents that are JSON values, and stay as they are.
STRANGE = {
    'exponent beyond all numbers': b'1e400', 'exponent below all numbers': b'1e-400', 'negative exponent beyond': b'-1E+999999999999',
    '400 digits': b'1234567890' * 40, '400 digits behind the point': b'0.' + b'0123456789' * 40, 'negative zero': b'-0',
    'negative zero with a point': b'-0.0', 'zeros behind the point': b'0.1000', 'zero with an exponent': b'0e0', 'capital exponent': b'1E+00',
    'above 53 bits': b'9007199254740993', 'above 64 bits': b'18446744073709551616', 'least of 64 bits': b'-9223372036854775808',
    'false': b'false', 'true': b'true', 'empty string': b'""', 'empty array': b'[]', 'empty object': b'{}', 'empty name': b'{"":0}',
    'every escape': b'"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\uFFFF"', 'escaped letters': b'"\\u0061\\u0041"',
    'surrogate pair': b'"\\ud83d\\ude00"', 'surrogate pair in capitals': b'"\\uD83D\\uDE00"', 'last character': '"\U0010ffff"'.encode(),
    'no character': '"\uffff\ufdd0"'.encode(), 'byte order mark inside': '"\ufeff"'.encode(), 'delete': b'"\x7f"',
    'C1 control': '"\u0085\u009f"'.encode(), 'line separators': '"\u2028\u2029"'.encode(), 'right to left': '"\u202egnp.exe"'.encode(),
    'combining marks': ('"a' + '\u0301' * 500 + '"').encode(), 'composed and decomposed': '["\u00e9","e\u0301"]'.encode(),
    'blanks of every kind': b'{ "a"\t:\r\n[ 1 , 2\n] }', 'names alike': '{"a":1,"\u0430":1,"A":1,"a ":1}'.encode(),
    'prototype': b'{"__proto__":{"x":1},"constructor":null,"toString":1}', 'names of SQL': b'{"select":"*","from":"doc; drop table doc; --"}',
    'as deep as may be': b'[[[[]]]]', 'members of an item': b'{"c":"X","k":"y","v":1,"j":2,"del":true}', 'HTML': b'"</script><script>alert(1)</script>"',
    'brackets in a string': b'"[[[[[[[[[[[[[[{{{{{{"', 'a comment in a string': b'"// no comment /* */"', 'entities': b'"&lt;&#0;"',
    'format of printf': b'"%s%n%x%1$s%*d"', 'a JSON text in a string': b'"{\\"a\\":1}"', 'many names': b'{' + b','.join(b'"%d":0' % i for i in range(300)) + b'}',
}


def nested(depth, opening=b'[', closing=b']', middle=b''):
    return opening * depth + middle + closing * depth


def whole_bodies():
    """Texts of the whole body."""
    for cut in (1, 2, 10, 40, 80, 100, 120, len(WHOLE) - 20, len(WHOLE) - 6, len(WHOLE) - 2, len(WHOLE) - 1):
        yield refused(f'cut at byte {cut}', 'AJSON', WHOLE[:cut])
    for what, behind in {'letter': b'x', 'brace': b'}', 'second text': WHOLE, 'comma': b',', 'quote': b'"', 'half a string': b'"x', 'NUL': b'\0',
                         'comment': b'// x', 'number': b'1', 'byte order mark': b'\xef\xbb\xbf', 'end of a file': b'\x1a'}.items():
        yield refused(f'{what} behind the text', 'AJSON', WHOLE + behind)
    for what, before in {'byte order mark': b'\xef\xbb\xbf', 'guard of JavaScript': b")]}',\n", 'letter': b'x', 'NUL': b'\0', 'brace': b'{',
                         'comma': b',', 'form feed': b'\f', 'record separator': b'\x1e', 'name': b'param='}.items():
        yield refused(f'{what} before the text', 'AJSON', before + WHOLE)
    yield refused('only blanks', 'AJSON', b' \r\n\t ')
    yield refused('only a byte order mark', 'AJSON', b'\xef\xbb\xbf')
    yield refused('only NULs', 'AJSON', bytes(1000))
    yield refused('a stream of texts', 'AJSON', b'\n'.join([WHOLE] * 3))
    for kind in ('utf-16-le', 'utf-16-be', 'utf-32-le', 'utf-32-be'):
        yield refused(f'text in {kind}', 'AJSON', WHOLE.decode().encode(kind))
    yield refused('text in UTF-16 with its mark', 'AUTF8', WHOLE.decode().encode('utf-16'))
    yield refused('gzip', 'AUTF8', bytes.fromhex('1f8b0800000000000003ab56ca2c53b252500a2f') + WHOLE)
    for what, text in {'null': b'null', 'number': b'1', 'string': b'"param"', 'array': b'[{"param":{}}]', 'true': b'true'}.items():
        yield refused(f'body is a {what}', 'AARG', text)
    yield refused('param twice', 'AJSON', b'{"param":{},"param":{}}')
    yield refused('param twice, once escaped', 'AJSON', b'{"param":{},"p\\u0061ram":{}}')
    yield refused('docs twice', 'AJSON', b'{"param":{"docs":[],"docs":[]}}')
    yield refused('j twice', 'AJSON', put_text(b'1,"j":2'))
    yield refused('an unknown member twice', 'AJSON', put_text(more=b',"x":1,"x":1'))
    for name, text in {'param': b'[]', 'param as text': b'"{}"', 'param null': b'null'}.items():
        yield refused(f'{name} is no object', 'AARG', b'{"param":%s}' % text)
    for name in ('account', 'key', 'admin', 'lang'):
        for kind, text in {'number': b'1', 'null': b'null', 'array': b'[]', 'object': b'{}'}.items():
            yield refused(f'{name} is a {kind}', 'AARG', b'{"%s":%s}' % (name.encode(), text), target='/lab/op/sync')


def depths():
    yield refused('one level too deep', 'ALIMIT', put_text(nested(5)))
    yield refused('objects one level too deep', 'ALIMIT', put_text(nested(5, b'{"a":', b'}', b'1')))
    yield refused('a hundred thousand arrays', 'ALIMIT', lambda: put_text(nested(100000)))
    yield refused('a hundred thousand arrays, open', 'ALIMIT', lambda: put_text(b'[' * 100000))
    yield refused('millions of objects, open', 'ALIMIT', lambda: b'{"a":' * 3000000)
    yield refused('millions of arrays, open', 'ALIMIT', lambda: b'[' * (BODY_BYTES - 1))
    yield refused('deep in a member that nobody reads', 'ALIMIT', put_text(more=b',"x":' + nested(200)))
    yield refused('deep in syncs', 'ALIMIT', b'{"syncs":' + nested(200) + b'}', target='/lab/op/sync')
    yield refused('closed only', 'AJSON', b']' * 100000)


def large():
    yield refused('a string of 16 MiB', 'ALIMIT', lambda: put_text(b'"' + b'x' * (BODY_BYTES - 400) + b'"'))
    yield refused('16 MiB of escapes', 'ALIMIT', lambda: put_text(b'"' + b'\\u00e9' * (BODY_BYTES // 6 - 100) + b'"'))
    yield refused('16 MiB of quotes', 'AJSON', lambda: b'"' * BODY_BYTES)
    yield refused('16 MiB of backslashes', 'ALIMIT', lambda: put_text(b'"' + b'\\' * (BODY_BYTES - 400) + b'"'))
    yield refused('a name of 16 MiB', 'AARG', lambda: b'{"' + b'x' * (BODY_BYTES - 100) + b'":1}')
    yield refused('an id of a MiB', 'ALIMIT', lambda: put_text(id_=b'"' + b'x' * (1 << 20) + b'"'))
    yield refused('a key of a MiB', 'ALIMIT', lambda: put_text(key=b'"' + b'x' * (1 << 20) + b'"'))
    yield refused('a class of a MiB', 'AARG', lambda: put_text(class_=b'"' + b'X' * (1 << 20) + b'"'))
    yield refused('a number of a MiB', 'ALIMIT', lambda: put_text(b'1' * (1 << 20)))
    yield refused('16 MiB of blanks', 'AJSON', lambda: b' ' * BODY_BYTES)
    yield refused('a million documents', 'ALIMIT', lambda: b'{"param":{"docs":[' + b','.join([b'{}'] * 900000) + b']}}')
    yield refused('millions of values', 'ALIMIT', lambda: b'{"param":{"x":[' + b','.join([b'0'] * 4000000) + b']}}')
    yield refused('a million members', 'ALIMIT', lambda: b'{"param":{' + b','.join(b'"%x":0' % i for i in range(1200000)) + b'}}')
    yield refused('a million members, the last twice', 'AJSON', lambda: b'{' + b','.join(b'"%x":0' % i for i in range(900000)) + b',"0":0}')
    yield refused('a million items', 'AARG', lambda: put_text(doc=b'"items":[' + b','.join([b'{}'] * 900000) + b'],').replace(b'"items":[{"c":"Mark"', b'"x":[{"c":"Mark"'))
    yield refused('millions of brackets in a content', 'ALIMIT', lambda: put_text(b'[' + b'[],' * 5000000 + b'[]]'))
    yield refused('a number of 16 MiB in syncs', 'AARG', lambda: b'{"syncs":[{"c":"Note","id":"x","v":' + b'1' * (BODY_BYTES - 100) + b'}]}', target='/lab/op/put')
    yield refused('the same without a key, where nothing may be written', 'ALIMIT', lambda: b'{"syncs":[{"c":"Note","id":"x","v":' + b'1' * (BODY_BYTES - 100) + b'}]}', status=413, target='/lab/op/sync')


def cases():
    for what, text in MALFORMED.items():
        yield refused(f'content: {what}', 'AJSON', put_text(text))
    for what, text in NO_UTF8.items():
        yield refused(f'no UTF-8 in a content: {what}', 'AUTF8', put_text(b'"' + text + b'"'))
    for what in ('overlong slash of two bytes', 'high surrogate', 'byte FF', 'Latin-1'):
        text = b'"' + NO_UTF8[what] + b'"'
        yield refused(f'no UTF-8 in an id: {what}', 'AUTF8', put_text(id_=text))
        yield refused(f'no UTF-8 in a key: {what}', 'AUTF8', put_text(key=text))
        yield refused(f'no UTF-8 in a name: {what}', 'AUTF8', put_text(more=b',%s:1' % text))
        yield refused(f'no UTF-8 in raw text: {what}', 'AUTF8', put_text(text, kind=b's'))
        yield refused(f'no UTF-8 outside of strings: {what}', 'AUTF8', put_text() + NO_UTF8[what])
    yield from whole_bodies()
    yield from depths()
    yield from large()
    for what, text in STRANGE.items():
        yield kept(f'kept: {what}', text)
    for what, text in {'controls': ''.join(map(chr, range(1, 32))), 'line ends': 'a\r\nb\rc\n', 'nothing': '', 'JSON': '{"a":[1,', 'telling': TELLTALE.decode(),
                       'every kind of character': '"\\/\u007f\u0080\u2028\ufeff\U0001f600\U0010ffff'}.items():
        yield kept(f'kept raw: {what}', quoted(text), kind=b's')
    yield Case('NUL in raw text', request(body=put_text(b'"a\\u0000b"', kind=b's')), 400, 'AJSON')

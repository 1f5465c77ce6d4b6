"""The examples of the reference: each request, sent as it stands there, is answered byte for byte as it
stands behind it.  White space between the members is for people; a stamp in the text stands for one stamp of the answers,
the same wherever it comes again, and a later one for a later one.  A request takes the stamps that were given before."""
import os
import re
import subprocess

import pytest

from schema import Schemas
from stack import BUILD, SOURCE, Stack

PAGES = ['doc/reference/protocol.md']
DEMONSTRATION = 'https://localhost:8443'
BLOCK = re.compile(r'^```(\w*)\n(.*?)^```$', re.M | re.S)
STAMP = re.compile(r'(?<!\d)\d{15}(?!\d)')
STAMP_OR_ANY = re.compile(r'(?<!\d)\d{15}(?!\d)|…')  # … stands for any value
STRING_OR_BLANKS = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
# What the page says of the namespace lab.
SCHEMA = {'Note': {'open': True, 'items': {'Line': {'fields': {'text': 'string'}}}},
          'Person': {'items': {'Main': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}}
OWN_TASKS = {'copy', 'push'}  # operations that the server runs for itself
PRESENT = '"t":'  # of pings: it never comes again


class Example:
    def __init__(self, page, line, request, told):
        self.where, self.request, self.told = f'{page}:{line}', request, told


def examples(page):
    """The requests of a page, each with the answer that follows it, or None."""
    text = (SOURCE / page).read_text()
    blocks = [(text.count('\n', 0, match.start()) + 1, *match.groups()) for match in BLOCK.finditer(text)]
    for (line, kind, request), (_, next_kind, answer) in zip(blocks, blocks[1:] + [(0, '', '')]):
        if kind == 'sh' and request.startswith('curl '):
            yield Example(page, line, request, answer if next_kind == 'json' else None)


def compact(text):
    return STRING_OR_BLANKS.sub(lambda match: match[1] or '', text)


def learn(told, given, stamps):
    """Compares an answer with what is told of it; `stamps` grows by those told here first.  Returns what is wrong."""
    told, at, end = compact(told), 0, 0
    for match in STAMP_OR_ANY.finditer(told):
        literal, name = told[at:match.start()], match[0]
        if not given.startswith(literal, end):
            break
        if name == '…':
            at, end = match.end(), re.compile(r'[^",}\]]*').match(given, end + len(literal)).end()
            continue
        found = STAMP.match(given, end + len(literal))
        if not found:
            return f'a stamp is told for {given[end + len(literal):][:40]!r}'
        at, end = match.end(), found.end()
        if not literal.endswith(PRESENT) and stamps.setdefault(name, found[0]) != found[0]:
            return f'{name} stood for {stamps[name]}, {found[0]} is given'
    rest = told[at:]
    if given[end:] != rest:
        same = len(os.path.commonprefix([rest, given[end:]]))
        return f'{rest[same:][:60]!r} is told, {given[end + same:][:60]!r} is given behind {given[:end + same][-60:]!r}'
    return None


def test_what_is_told_is_compared():
    stamps = {}
    assert learn('{"a": 1,\n "b c": "x  y"}', '{"a":1,"b c":"x  y"}', stamps) is None
    assert learn('{"v":100000000000001}', '{"v":261121103112456}', stamps) is None
    assert learn('["100000000000001",100000000000002]', '["261121103112456",261121103112457]', stamps) is None
    assert stamps == {'100000000000001': '261121103112456', '100000000000002': '261121103112457'}
    assert learn('[100000000000002]', '[261121103112456]', stamps)
    assert learn('[100000000000003]', '[26112110311245]', stamps)
    assert learn('{"token":"…","n":…}', '{"token":"a-b","n":17}', stamps) is None
    assert learn('{"token":"…"}', '{"token":"a-b","n":17}', stamps)
    assert learn('[1.0]', '[1]', stamps) and learn('[1]', '[1,2]', stamps) and learn('{"a":1,"b":2}', '{"b":2,"a":1}', stamps)


def test_every_operation_has_a_request_and_an_answer():
    listed = subprocess.check_output([BUILD / 'src/stampctl', 'operations', '-c', '/dev/null'], text=True).splitlines()
    operations = {line.split()[0] for line in listed if line.split()[1] == 'operation'} - OWN_TASKS
    shown = {name for example in examples(PAGES[0]) if example.told for name in re.findall(r'/op/([a-z]+)', example.request)}
    assert operations <= shown, operations - shown


@pytest.mark.parametrize('page', PAGES)
def test_examples(page, tmp_path):
    found = list(examples(page))
    stamps = {}
    assert len(found) >= 3
    with Stack('protocol', workers=2, settings={'build': 'web-7'}) as stack:
        Schemas(stack, None).apply('lab', SCHEMA)
        for example in found:
            request = STAMP.sub(lambda match: stamps.get(match[0], match[0]), example.request).replace(DEMONSTRATION, '$URL')
            done = subprocess.run(['bash', '-ec', request], env={**os.environ, 'URL': stack.url, 'KEY': stack.key}, capture_output=True,
                                  cwd=tmp_path,
                                  stdin=subprocess.DEVNULL, text=True, timeout=30)
            assert done.returncode == 0, f'{example.where}: {done.stderr}\n{request}'
            wrong = learn(example.told, done.stdout.replace('\n', ''), stamps) if example.told else None
            assert not wrong, f'{example.where}: {wrong}\n{request}\n{done.stdout}'
    order = sorted(stamps, key=stamps.get)
    assert order == sorted(stamps), f'{page}: the stamps told are in another order than those given'
    assert len(set(stamps.values())) == len(stamps), f'{page}: two stamps are told for one'

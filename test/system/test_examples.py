"""The examples of README.md and doc/protocol.md: each request, sent as it stands there, is answered in the form that
stands behind it.  A stamp in the text stands for one stamp of the answers, the same wherever it comes again."""
import json
import os
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
STACK = {'workers': 2}
DEMONSTRATION = 'https://localhost:8443'
BLOCK = re.compile(r'^```(sh|json)\n(.*?)^```$', re.M | re.S)
STAMP = re.compile(r'\b\d{15}\b')


def examples(name):
    """Pairs of a request and the answer that follows it."""
    blocks = BLOCK.findall((SOURCE / name).read_text())
    return [(text, blocks[i + 1][1]) for i, (kind, text) in enumerate(blocks[:-1])
            if kind == 'sh' and text.startswith('curl') and blocks[i + 1][0] == 'json']


def agree(told, given, stamps, path='answer'):
    """Every member told is given, and no other; stamps may differ, but always in the same way."""
    assert type(told) is type(given), f'{path}: {told!r} is told, {given!r} is given'
    if isinstance(told, dict):
        assert list(told) == list(given), f'{path}: members {list(told)} are told, {list(given)} are given'
        for name in told:
            if name == 't':
                assert STAMP.fullmatch(str(given[name])), f'{path}.t: {given[name]!r} is no stamp'
            else:
                agree(told[name], given[name], stamps, f'{path}.{name}')
    elif isinstance(told, list):
        assert len(told) == len(given), f'{path}: {len(told)} elements are told, {len(given)} are given'
        for i, (a, b) in enumerate(zip(told, given)):
            agree(a, b, stamps, f'{path}[{i}]')
    elif STAMP.fullmatch(str(told)):
        assert str(given) == stamps.setdefault(str(told), str(given)), f'{path}: another stamp than before'
    else:
        assert told == given, f'{path}: {told!r} is told, {given!r} is given'


@pytest.mark.parametrize('name', ['README.md', 'doc/protocol.md'])
def test_examples(stack, name):
    found = examples(name)
    assert len(found) >= 3
    stack.put('lab', *({'c': c, 'id': i, 'delete': True} for c, i in (('Note', 'first'), ('List', 'mine'))))
    stamps = {}
    for request, told in found:
        request = STAMP.sub(lambda match: stamps.get(match[0], match[0]), request).replace(DEMONSTRATION, '$URL')
        done = subprocess.run(['bash', '-c', request], env={**os.environ, 'URL': stack.url}, check=True,
                              capture_output=True, timeout=30)
        try:
            agree(json.loads(told), json.loads(done.stdout), stamps)
        except (AssertionError, json.JSONDecodeError) as problem:
            pytest.fail(f'{name}: {problem}\n{request}\n{done.stdout.decode()}', pytrace=False)

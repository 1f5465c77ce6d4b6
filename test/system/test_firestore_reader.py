"""The reader of exports of Firestore by itself: what is cut from bytes that lie about their sizes, and files with a damaged byte."""
import importlib.util
import itertools
import json
import subprocess
import sys

import pytest

from firestore_export import entity, log, write
from stack import SOURCE

PROGRAM = SOURCE / 'src/control/foreign/import_firestore.py'
OUTPUT = 'all_namespaces/all_kinds/output-0'
pytestmark = pytest.mark.plain


@pytest.fixture(scope='module')
def firestore():
    spec = importlib.util.spec_from_file_location('import_firestore', PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def events(firestore, message):
    """f: a field, e: the end, w: wrong."""
    found = ''
    try:
        for _ in firestore.fields(message):
            found += 'f'
        return found + 'e'
    except firestore.Wrong:
        return found + 'w'


@pytest.mark.parametrize('message,expected', [
    (b'', 'e'), (b'\x08\x01\x1112345678\x1a\x02xy\x251234', 'ffffe'), (b'\x08', 'w'), (b'\x08\x80', 'w'), (b'\x08' + b'\xff' * 9 + b'\x01', 'fe'), (b'\x08' + b'\xff' * 9 + b'\x02', 'w'),
    (b'\x08' + b'\xff' * 10 + b'\x01', 'w'), (b'\x111234567', 'w'), (b'\x25123', 'w'), (b'\x1a\x03xy', 'w'), (b'\x1a' + b'\xff' * 9 + b'\x01xy', 'w'), (b'\x02\x01x', 'w'), (b'\x0e', 'w'), (b'\x0c', 'w'),
    (b'\x80\x80\x80\x80\x10\x01', 'w'), (b'\x0b', 'w'), (b'\x0b\x14', 'w'), (b'\x0b\x13\x0c\x14', 'w'), (b'\x0b' * 8 + b'\x0c' * 8, 'fe'), (b'\x0b' * 9 + b'\x0c' * 9, 'w')])
def test_fields_are_cut_within_their_message(firestore, message, expected):
    assert events(firestore, message) == expected


def test_groups_end_in_their_order(firestore):
    (group, inside), (number, value) = firestore.fields(b'\x0b\x13\x08\x0c\x14\x1a\x01\x0c\x0c\x08\x07')
    assert group == (1, firestore.GROUP) and len(inside) == 7 and number == (1, firestore.VARINT) and value == 7


def test_a_fragment_has_the_checksum_of_leveldb(firestore):
    """A full record "abc", as LevelDB writes it."""
    block = b'\xf2\x70\xe8\x9d\x03\x00\x01abc'
    assert firestore.fragment(block, 0) == (firestore.FULL, b'abc')
    for size in range(1, len(block)):
        with pytest.raises(firestore.Wrong, match='truncated'):
            firestore.fragment(block[:size], 0)
    for bit in range(8 * len(block)):
        flipped = bytearray(block)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(firestore.Wrong):
            firestore.fragment(bytes(flipped), 0)


ENTITY = entity('a/b', {'x': [1, {'y': 1.5}, 'z'], 'm': {'n': None, 'o': b'\x00'}, 'p': True})


GIVEN = {'own': None, 'name': 'import-firestore', 'class': 'Row', 'limit_depth': 8, 'limit_content_bytes': 1000, 'limit_name_bytes': 255}


def described(firestore, capfdbinary, entity, not_finite='refuse'):
    """The line of an entity."""
    firestore.print_entity(entity, firestore.Writer(8, 1000, not_finite), firestore.Mapping(GIVEN), 255, 'here', {'line': 1})
    sys.stdout.flush()
    return json.loads(capfdbinary.readouterr().out)


def test_an_entity_with_any_byte_altered_is_described(firestore, capfdbinary):
    """Each byte by each of these values: a document or a reason, as JSON."""
    kinds = set()
    for place, change in itertools.product(range(len(ENTITY)), (1, 2, 4, 8, 16, 32, 64, 128, 255)):
        altered = bytearray(ENTITY)
        altered[place] ^= change
        one = described(firestore, capfdbinary, bytes(altered))
        kinds |= one.keys() & {'items', 'wrong'}
        assert ('items' in one) + ('wrong' in one) == 1
        assert 'items' not in one or isinstance(one['items'][0][2], dict)
    assert kinds == {'items', 'wrong'}
    for size in range(len(ENTITY)):
        described(firestore, capfdbinary, ENTITY[:size], 'text')


def read(folder):
    done = subprocess.run([sys.executable, '-I', PROGRAM, folder], input=json.dumps(GIVEN).encode(), capture_output=True, check=True)
    assert done.stderr == b''
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_lines_of_an_export(tmp_path):
    first, one, last = read(write(tmp_path, {OUTPUT: [ENTITY]}))
    assert first == {'size': len(log([ENTITY]))} and len(last['digest']) == 64 and last['notes'] == []
    assert one == {'line': 1, 'offset': first['size'], 'class': 'Row', 'id': 'b', 'items': [['Main', '', {'m': {'n': None, 'o': 'AA=='}, 'p': True, 'x': [1, {'y': 1.5}, 'z']}]]}
    (tmp_path / OUTPUT).write_bytes(log([ENTITY])[:-1])
    assert read(tmp_path)[1:] == [{'line': 1, 'failed': f'{OUTPUT}, byte 0: the file ends inside a record: it is truncated'}]
    assert read(tmp_path / 'none') == [{'refused': f'{tmp_path}/none: No such file or directory'}]

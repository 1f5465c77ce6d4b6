"""stampctl import-firestore: entities of an export as documents; damaged files; wrong entities; resumed after an interruption."""
import base64
import datetime
import json
import math
import re
import shutil

import pytest

import archives
from firestore_export import BLOCK, Point, Raw, Reference, entity, fragment, group, group_metadata, key, log, number, one, overall_metadata, properties, text, write

SPARE = [f'empty{spare}' for spare in range(9)]
STACK = {'workers': 1, 'settings': {'limit_depth': 8, 'limit_content_bytes': 65536, 'limit_document_bytes': 131072},
         'namespaces': {'z': 'closed', 'lab': 'open', **dict.fromkeys(SPARE, 'open')}}
NOTHING = (set(), set())
OUTPUT = 'all_namespaces/all_kinds/output-0'


@pytest.fixture
def empty(spares):
    return next(spares)


@pytest.fixture
def export(tmp_path):
    """The arguments for an export of these files, or records of one file, and a mapping."""
    def made(files, **mapping):
        shutil.rmtree(tmp_path / 'export', ignore_errors=True)
        folder = write(tmp_path / 'export', files if isinstance(files, dict) else {OUTPUT: files})
        (tmp_path / 'mapping').write_text(json.dumps(mapping))
        return [folder, *(['--mapping', tmp_path / 'mapping'] if mapping else ['--class', 'Row'])]
    return made


def stored(stack, ns):
    """{class/id: content of Main}"""
    return {f'{class_}/{id_}': json.loads(content) for class_, id_, content in stack.psql(ns, "select class, id, content from item where iclass = 'Main' and key = ''")}


DEEP = {'a': 1}  # with the document around it, limit_depth
for _ in range(6):
    DEEP = {'a': DEEP}


def test_every_type_of_value(stack, empty, export):
    moment = datetime.datetime(2024, 2, 29, 12, 34, 56)
    fields = {'null': None, 'yes': True, 'no': False, 'least': -2**63, 'most': 2**63 - 1, 'third': 1 / 3, 'tenth': 0.1, 'big': 1.7976931348623157e308,
              'tiny': 5e-324, 'text': 'é"\\\n\t☃😀', 'empty': '', 'long': 'x' * 2000, 'bytes': b'\x00\xff\xfe', 'blob': bytes(range(256)) * 4,
              'time': moment, 'parts': moment + datetime.timedelta(microseconds=7), 'old': datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
              'first': datetime.datetime(1, 1, 1), 'last': datetime.datetime(9999, 12, 31, 23, 59, 59), 'point': Point((48.8566, -2.5)),
              'ref': Reference('users/ann/orders/7'), 'map': {'a': {'b': [1, {'c': None}], 'at': moment}, '': 'no name'}, 'none': {}, 'no list': [], 'deep': DEEP,
              'list': [1, 'two', None, 3.5, True, moment, Point((1.0, 2.0)), Reference('a/b'), b'\x01'], 'single': [1], 'maps': [{'a': 1}, {}, {'b': [2]}], 'mixed': ['a', {'b': 'c'}]}
    words = export([entity('things/one', fields)])
    assert '1 documents: 1 documents written, 0 unchanged; 0 wrong' in stack.admin('import-firestore', empty, *words).text
    content = stack.psql(empty, 'select content from item')[0][0]
    found = json.loads(content)
    assert found == {**fields, 'bytes': 'AP/+', 'blob': found['blob'], 'time': '2024-02-29T12:34:56Z', 'parts': '2024-02-29T12:34:56.000007Z',
                     'old': '1969-12-31T23:59:59.999999Z', 'first': '0001-01-01T00:00:00Z', 'last': '9999-12-31T23:59:59Z',
                     'point': {'latitude': 48.8566, 'longitude': -2.5}, 'map': {'a': {'b': [1, {'c': None}], 'at': '2024-02-29T12:34:56Z'}, '': 'no name'},
                     'list': [1, 'two', None, 3.5, True, '2024-02-29T12:34:56Z', {'latitude': 1, 'longitude': 2}, 'a/b', 'AQ==']}
    assert base64.b64decode(found['blob']) == fields['blob'] and list(found) == sorted(found) and '0.1,' in content
    assert '0 documents written, 1 unchanged' in stack.admin('import-firestore', empty, *words).text
    assert stack.get(empty, ('Row', 'one'))['items'][0]['j']['ref'] == 'users/ann/orders/7'


def test_numbers_that_json_does_not_have(stack, empty, export):
    records = [entity('a/b', {'x': [math.nan, math.inf, -math.inf, 1.5], 'y': {'z': math.nan}, 'p': Point((math.nan, 1.0))})]
    assert 'see not_finite' in stack.admin('import-firestore', empty, *export(records, **{'class': 'Row', 'not_finite': 'refuse'}), status=1).error
    stack.admin('import-firestore', empty, *export(records, **{'class': 'Row', 'not_finite': 'null'}))
    assert stored(stack, empty) == {'Row/b': {'x': [None, None, None, 1.5], 'y': {'z': None}, 'p': {'latitude': None, 'longitude': 1}}}
    stack.admin('import-firestore', empty, *export(records, **{'class': 'Row', 'not_finite': 'text'}))
    assert stored(stack, empty) == {'Row/b': {'x': ['NaN', 'Infinity', '-Infinity', 1.5], 'y': {'z': 'NaN'}, 'p': {'latitude': 'NaN', 'longitude': 1}}}


def test_collections_and_subcollections(stack, empty, export):
    entities = [entity('users/ann', {'a': 1}), entity('users/ann/orders/7', {'a': 2}), entity('logs/x', {'a': 3}), entity(['users', 42], {'a': 4}), entity('other/y', {'a': 5})]
    files = {'all_namespaces/kind_users/output-0': entities[:2], 'all_namespaces/kind_users/output-1': log(entities[2:3], is_padded=True), 'all_namespaces/kind_users/output-2': b'',
             'all_namespaces/all_kinds/output-0': entities[3:], 'all_namespaces/all_kinds/x.export_metadata': b'ignored', 'all_namespaces/all_kinds/output-01': b'ignored', 'other/x.overall_export_metadata': b'ignored'}
    classes = {'users': 'User', 'users/orders': 'Order', 'logs': None}
    words = export(files, classes=classes, **{'class': 'Other'}, item='Main')
    assert '4 documents: 4 documents written' in stack.admin('import-firestore', empty, *words).text
    assert stored(stack, empty) == {'User/ann': {'a': 1}, 'Order/ann/7': {'a': 2}, 'User/__id42__': {'a': 4}, 'Other/y': {'a': 5}}
    done = stack.admin('import-firestore', empty, *export(files, classes={'logs': None}, **{'class': 'Other'}), status=1)
    assert 'the mapping has no class for the subcollection "users/orders"' in done.error and 'nothing was stored' in done.error
    assert done.error.count('the mapping has no class') == 1 and '(documents: 1)' in done.error
    assert 'the class Other is that of the collection "users": name one for "other"' in stack.admin('import-firestore', empty, *export({'a/output-0': [entity('users/ann', {}), entity('other/ann', {})]}, **{'class': 'Other'}), status=1).error
    assert 'no class for the collection "other"' in stack.admin('import-firestore', empty, *export(files, classes=classes), status=1).error


def test_all_collections_without_a_class_are_named_at_once(stack, empty, export):
    """Each once, however many documents it has; wrong documents of other collections beside them; of very many the first hundred."""
    entities = [entity(f'first/{each}', {}) for each in range(30)] + [entity(f'c{each}/d/sub/{each}', {}) for each in range(3)] + [entity('second/a', {}), entity('second/a/sub/b', {}), entity('known/a', {'x': math.nan}), entity('known/b', {})]
    words = export(entities, classes={'known': 'Known'})
    for more in ([], ['--dry-run'], ['--skip-wrong']):
        lines = stack.admin('import-firestore', empty, *words, *more, status=1).error.splitlines()
        named = [re.search(r'no class for the (.*)$', line)[1] for line in lines if 'no class' in line]
        assert named == ['collection "first" (documents: 30)', *(f'subcollection "c{each}/sub" (documents: 1)' for each in range(3)), 'collection "second" (documents: 1)',
                         'subcollection "second/sub" (documents: 1)']
        assert [line for line in lines if 'byte' in line and 'a of known: field "x"' in line] and not any('more' in line for line in lines)
    assert stored(stack, empty) == {'Known/b': {}}
    lines = stack.admin('import-firestore', empty, *export([entity('first/a', {}), *(entity(f'n{each}/d', {}) for each in range(130)), entity('n129/e', {})], **{'class': 'Other'}), status=1).error.splitlines()
    named = [re.search('name one for "n(.*)" in "classes" of a mapping', line)[1] for line in lines if 'name one for' in line]
    assert named == [str(each) for each in range(100)] and any('31 documents of further collections without a class' in line for line in lines)
    assert any('1 documents are right, 131 wrong; nothing was stored' in line for line in lines)


PLAIN = properties({'a': 1})
WRONG = [
    (b'', 'expected an entity'), (b'\x00', 'expected an entity'), (b'\xff' * 20, 'expected an entity'), (text(14, 'x'), 'expected an entity'), (text(13, b''), 'expected a key'),
    (text(13, text(14, b'')) + PLAIN, 'expected a key'), (text(13, text(14, group(1, text(2, 'a')))), 'expected a key'), (text(13, text(14, group(1, text(2, 'a'), text(4, 'b'), number(3, 1)))), 'expected a key'),
    (text(13, text(14, group(1, text(2, 'a'), text(4, 'b/c')))), 'expected a key'), (text(13, text(14, group(1, text(2, 'a'), text(4, b'\xff')))), 'expected a key'),
    (text(13, text(14, group(1, text(2, 'a'), text(4, 'b\0')))), 'expected a key'), (text(13, key('a/b') + text(20, 'space')), 'namespace of Datastore'), (text(13, text(14, group(2, text(2, 'a'), text(4, 'b')))), 'expected a key'),
    (entity('a/' + 'i' * 256, {}), 'expected as the id'), (entity('a/b', {'x': math.nan}), 'field "x": a number that JSON does not have'), (entity('a/b', {'x': [1, math.inf]}), 'field "x": element 1: a number'),
    (entity('a/b', {'x': {'y': Point((1.0, -math.inf))}}), 'field "x": field "y": a number that'), (entity('a/b', {'a': {'b': DEEP}}), 'nested deeper than limit_depth'), (entity('a/b', {'b': {'a': {'a': {'a': {'a': {'a': {'a': [Point((1.0, 1.0))]}}}}}}}), 'nested deeper than limit_depth'),
    (entity('a/b', {'x': Raw((0, text(3, b'\xe9')))}), 'not UTF-8'), (entity('a/b', {'x': 'a\0b'}), 'has a NUL'), (entity('a/b', {'n\0': 1}), 'has a NUL'),
    (entity('a/b', {'x': Raw((0, number(6, 1)))}), 'unknown type, 6'), (entity('a/b', {'x': Raw((0, group(8, text(9, 'me'))))}), 'unknown type, 8'), (entity('a/b', {'x': Raw((0, text(1, 'x')))}), 'unknown type, 1'),
    (entity('a/b', {'x': Raw((8, text(3, 'me@example.org')))}), 'unknown meaning, 8'), (entity('a/b', {'x': Raw((7, text(3, 'now')))}), 'unknown meaning, 7'), (entity('a/b', {'x': Raw((0, number(1, 1) + number(2, 1)))}), 'more than one value'),
    (entity('a/b', {'x': Raw((7, number(1, 2**63 - 1)))}), 'years 1 to 9999'), (entity('a/b', {'x': Raw((7, number(1, -2**63)))}), 'years 1 to 9999'), (entity('a/b', {'x': Raw((9, group(5, b'')))}), 'expected a point'),
    (entity('a/b', {'x': Raw((0, group(12, text(13, 'p'))))}), 'expected a reference'), (entity('a/b', {'x': Raw((19, text(3, b'\xff')))}), 'field "x": expected an entity'), (entity('a/b', {'x': Raw((24, number(1, 1)))}), 'unknown meaning, 24'),
    (entity('a/b', PLAIN + PLAIN), 'there twice'), (entity('a/b', one('x', 0, number(1, 1), True) + one('x', 15, text(3, 'y'), True)), 'whose order is not known'), (entity('a/b', text(14, text(3, 'x'))), 'a name and a value'),
    (entity('a/b', text(14, text(5, b''))), 'a name and a value'), (entity('a/b', text(14, number(1, 14) + text(2, 'ZLIB') + text(3, 'x') + text(5, b''))), 'URI of a meaning'), (entity('a/b', {'x': 'y' * 66000}), 'limit_content_bytes'),
    (entity('a/b', {'x': ['y' * 600] * 200}), 'limit_content_bytes'), (entity('a/b', b'\x72\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01'), 'expected an entity'), (entity('a/b', b'\x72\xff\xff\xff\xff\x0f'), 'expected an entity'), (entity('a/b', b'\x73' * 20), 'expected an entity'),
    (entity('a/b', b'\x73' * 200000), 'expected an entity'), (entity('a/b', b'\x76'), 'expected an entity'), (entity('a/b', b'\x74'), 'expected an entity'), (entity('a/b', b'\xf2' + b'\xff' * 11), 'expected an entity')]


def test_wrong_entities_have_their_place(stack, empty, export, tmp_path):
    records = [entity('a/first', {})]
    starts = []
    for record, _ in WRONG:
        starts.append(len(log(records)))
        records.append(record)
    words = export([*records, entity('a/last', {'x': 1})])
    for at in range(0, len(WRONG), 20):  # as many are shown at a time
        folder = write(tmp_path / f'part{at}', {OUTPUT: [record for record, _ in WRONG[at:at + 20]]})
        shown = [line for line in stack.admin('import-firestore', empty, folder, '--class', 'Row', '--dry-run', status=1).error.splitlines() if OUTPUT in line]
        assert len(shown) == len(WRONG[at:at + 20])
        for line, (_, what) in zip(shown, WRONG[at:at + 20]):
            assert what in line
    done = stack.admin('import-firestore', empty, *words, status=1)
    lines = re.findall(rf'export:(\d+): {OUTPUT}, byte (\d+): ', done.error)
    assert [int(line) for line, _ in lines] == list(range(2, 22)) and all(0 <= int(byte) - start < 7 for (_, byte), start in zip(lines, starts))
    assert f'2 documents are right, {len(WRONG)} wrong; nothing was stored' in done.error and archives.rows(stack, empty) == NOTHING
    done = stack.admin('import-firestore', empty, *words, '--skip-wrong', status=1)
    assert f'2 documents: 2 documents written, 0 unchanged; {len(WRONG)} wrong documents left out' in done.text
    assert stored(stack, empty) == {'Row/first': {}, 'Row/last': {'x': 1}}


def refused(stack, folder, *what):
    done = stack.admin('import-firestore', 'lab', folder, '--class', 'Row', '--skip-wrong', status=1)
    assert any(each in done.error for each in what), done.error
    return done.error


def test_damaged_files_are_refused(stack, tmp_path):
    """Cut at and around blocks and fragments; each is refused as a whole."""
    records = [entity(f'a/{each}', {'x': 'y' * (11000 + each * 7)}) for each in range(9)]
    whole = log(records)
    ends = [len(log(records[:count])) for count in range(len(records) + 1)]
    assert len(whole) > 2 * BLOCK
    folder = tmp_path / 'export'
    cuts = {BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 6, BLOCK + 7, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 3, 1, 6, 7, 8, len(whole) - 1, len(whole) - 7, ends[1] + 3}
    for cut in sorted(cuts):
        assert cut not in ends
        assert OUTPUT in refused(stack, write(folder, {OUTPUT: whole[:cut]}), 'truncated')
    for place, what in ((0, 'wrong checksum'), (3, 'wrong checksum'), (6, 'wrong checksum'), (100, 'wrong checksum'), (5, 'beyond its block'), (BLOCK + 6, 'a record'), (BLOCK + 20, 'wrong checksum'), (len(whole) - 1, 'wrong checksum')):
        flipped = bytearray(whole)
        flipped[place] ^= 128 if place == 5 else 1
        expected = ['wrong checksum', what, 'zeros up to the end'] if place in (6, BLOCK + 6) else [what]
        error = refused(stack, write(folder, {OUTPUT: bytes(flipped)}), *expected)
        assert re.search(rf'{OUTPUT}, byte \d+: ', error)
    assert archives.rows(stack, 'lab') == NOTHING


def test_fragments_in_a_wrong_order(stack, tmp_path):
    one_record = entity('a/b', {})
    padded = log([one_record], is_padded=True)
    for content, what in ((fragment(3, one_record), 'without its beginning'), (fragment(4, one_record), 'without its beginning'), (fragment(2, b'x') + fragment(1, one_record), 'inside another'), (fragment(2, b'x') * 2, 'inside another'),
                          (fragment(2, b'x'), 'truncated'), (fragment(5, one_record), 'unknown type'), (fragment(255, b''), 'unknown type'), (fragment(0, b'x'), 'expected zeros'), (bytes(BLOCK), 'a block of zeros'), (padded + bytes(BLOCK), 'a block of zeros'),
                          (padded[:-1], 'truncated'), (padded[:-1] + b'\1', 'expected zeros'), (b'{"a": 1}', 'unknown type'), (b'\0\0\0\0\xff\xff\1', 'beyond its block'),
                          (fragment(2, bytes(BLOCK - 7)) + fragment(3, bytes(BLOCK - 7)) * 512, 'more than 16 MB')):
        assert OUTPUT in refused(stack, write(tmp_path / 'export', {OUTPUT: content}), what)
    assert archives.rows(stack, 'lab') == NOTHING


def test_records_at_every_place_of_a_block(stack, empty, tmp_path):
    """The first record leaves 0 to 20 bytes of a block to the second."""
    files = {}
    for left in range(21):
        record = entity(f'a/{left:02}', {'x': 'y' * 32000})
        size = BLOCK - 7 - left - len(record)
        records = [entity(f'a/{left:02}', {'x': 'y' * (32000 + size)}), entity(f'a/next{left:02}', {'z': left})]
        assert len(records[0]) == BLOCK - 7 - left
        files[f'all_namespaces/all_kinds/output-{left}'] = records
    done = stack.admin('import-firestore', empty, write(tmp_path / 'export', files), '--class', 'Row')
    assert '42 documents: 42 documents written' in done.text
    assert {name: content for name, content in stored(stack, empty).items() if 'next' in name} == {f'Row/next{left:02}': {'z': left} for left in range(21)}


def test_wrong_folders_and_mappings(stack, export, tmp_path):
    record = entity('a/b', {})
    refused(stack, write(tmp_path / 'two', {'k/output-0': [record], 'b.overall_export_metadata': b''}), 'expected the folder of an export')
    (tmp_path / 'bare').mkdir()
    (tmp_path / 'bare/output-0').write_bytes(log([record]))
    for folder in ('bare', 'none', 'bare/output-0'):
        refused(stack, tmp_path / folder, 'expected the folder of an export', 'No such file', 'Not a directory')
    for mapping, what in (({'class': 'row'}, 'expected as the class'), ({'class': 1}, 'expected texts'), ({'clases': {}}, 'did you mean'), ({'classes': []}, 'expected an object'), ({'not_finite': 'Null'}, 'expected as "not_finite"'), ({'not_finite': None}, 'expected as "not_finite"'), ({'classes': {'a': 1}}, 'expected as each'),
                          ({'classes': {'a': 'X', 'b': 'X'}}, 'another class for each'), ({'classes': {'a': 'X'}, 'class': 'X'}, 'expected as the class one'), ({'class': 'Row', 'item': 'P'}, 'a class of items')):
        assert what in stack.admin('import-firestore', 'lab', *export([record], **mapping), status=1).error
    assert stack.admin('import-firestore', 'z', *export([record]), status=2).error and stack.admin('import-firestore', 'lab', '-', '--class', 'Row', status=2).error
    assert archives.rows(stack, 'lab') == NOTHING


OVERALL, GROUP = 'export.overall_export_metadata', 'all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata'


def test_metadata_names_the_files(stack, empty, tmp_path):
    """Files are read in its order, also those of an emulator on Windows; an export of nothing is one, and one in a folder below is another."""
    records = [entity(f'a/{name}', {'x': name}) for name in 'abc']
    files = {'k/output-0': records[:1], 'k/output-7': records[1:2], 'k/output-8': [entity('a/other', {})], OUTPUT: records[2:],
             'k/k.export_metadata': group_metadata(['output-7', 'output-0']), OVERALL: overall_metadata({r'k\k.export_metadata': (2, 1), GROUP.replace('/', '\\'): (1, 1)})}
    folder = write(tmp_path / 'export', files)
    assert '3 documents: 3 documents written' in stack.admin('import-firestore', empty, folder, '--class', 'Row').text
    assert stored(stack, empty) == {f'Row/{name}': {'x': name} for name in 'abc'}
    write(folder / 'again', {OUTPUT: records})
    assert '3 documents: 0 documents written, 3 unchanged' in stack.admin('import-firestore', empty, folder, '--class', 'Row').text
    assert '0 documents: 0 documents written' in stack.admin('import-firestore', empty, write(tmp_path / 'nothing', {}), '--class', 'Row').text


def test_an_export_is_whole(stack, tmp_path):
    """A file that is not there, or was cut between two documents, which nothing in it shows."""
    records = [entity(f'a/{name}', {}) for name in 'abc']
    folder = write(tmp_path / 'export', {'k/output-0': records, 'k/output-1': records})
    whole = (folder / 'k/output-1').read_bytes()
    for content in (log(records[:2]), b'', log([*records, records[0]])):
        (folder / 'k/output-1').write_bytes(content)
        refused(stack, folder, 'and the metadata counts 6')
    (folder / 'k/output-1').unlink()
    refused(stack, folder, 'k/k.export_metadata: it names the file output-1: No such file')
    (folder / 'k/output-1').mkdir()
    refused(stack, folder, 'it names the file output-1: it is no regular file')
    (folder / 'k/output-1').rmdir()
    (folder / 'k/output-1').write_bytes(whole)
    (folder / 'k/k.export_metadata').unlink()
    refused(stack, folder, 'k/k.export_metadata: No such file')
    assert archives.rows(stack, 'lab') == NOTHING


def test_metadata_is_distrusted(stack, tmp_path):
    outside = write(tmp_path / 'outside', {OUTPUT: [entity('a/b', {})]})
    for path in ('', '.', '..', '/', '/k', 'k/', 'k//k', '../outside/' + GROUP, f'{outside}/{GROUP}', 'k/../../outside/' + GROUP, '..\\outside\\' + GROUP, 'k\0', 'k' * 256):
        refused(stack, write(tmp_path / 'export', {OUTPUT: [], OVERALL: overall_metadata({path: (1, 1)})}), 'expected the metadata of an export')
    for name in ('', '.', '..', '../output-0', f'{outside}/{OUTPUT}', 'a\0', 'n' * 256):
        refused(stack, write(tmp_path / 'export', {OUTPUT: [], GROUP: group_metadata([name])}), 'expected the metadata of a group')
    for overall, what in ((b'', 'expected the metadata of an export'), (log([b'3']), 'expected the metadata of an export'), (log([b'3', b'\xff']), 'expected the metadata of an export'), (log([b'4', b'']), 'unknown version'),
                          (b'x', 'truncated'), (log([b'3', b''])[:-1], 'truncated'), (b'\1' + log([b'3', b''])[1:], 'wrong checksum'), (log([b'3', text(1, number(3, 1))]), 'expected the metadata of an export'),
                          (log([b'3', b'', b'']), 'a third record'), (log([b'3', b'', text(1, text(2, GROUP))]), 'a third record'), (log([b'3', b'', b'x'])[:-1], 'truncated'),
                          (overall_metadata({GROUP: (-1, 1)}), 'expected the metadata of an export'), (log([b'3', (text(1, text(2, GROUP) + number(3, 2**63 - 1))) * 2]), 'more documents than can be counted')):
        refused(stack, write(tmp_path / 'export', {OUTPUT: [], OVERALL: overall}), what)
    for content in (b'\xff', text(2, b'\xff')):
        refused(stack, write(tmp_path / 'export', {OUTPUT: [], GROUP: content}), 'expected the metadata of a group')
    (tmp_path / 'export' / GROUP).unlink()
    (tmp_path / 'export' / GROUP).mkdir()
    refused(stack, tmp_path / 'export', 'expected the metadata of a group')
    assert archives.rows(stack, 'lab') == NOTHING


def test_an_interrupted_import_goes_on(stack, empty, export, tmp_path):
    """A row that PostgreSQL refuses ends it after a transaction; the same command continues, another export is refused."""
    stack.psql(empty, "alter table item add constraint refuses check (id <> 's')")
    words = export([entity(f'a/r{each:04}', {'a': str(each)}) for each in range(600)] + [entity('a/s', {'a': '1'})])
    assert 'refuses' in stack.admin('import-firestore', empty, *words, status=1).error
    assert len(stored(stack, empty)) == 500
    other = write(tmp_path / 'other', {OUTPUT: [entity('a/b', {'a': 'x'})]})
    assert 'was interrupted' in stack.admin('import-firestore', empty, other, '--class', 'Row', status=1).error
    stack.psql(empty, 'alter table item drop constraint refuses')
    done = stack.admin('import-firestore', empty, *words)
    assert 'going on' in done.text and '601 documents: 601 documents written' in done.text
    assert stack.psql(empty, 'select count(*) from import_progress') == [(0,)] and len(stored(stack, empty)) == 601

"""stampctl import-couchdb: the documents of _all_docs with attachments; wrong rows; truncated files; resumed after a refusal."""
import base64
import hashlib
import json
import re

import pytest

import archives

pytestmark = pytest.mark.plain

SPARE = [f'empty{number}' for number in range(21)]
STACK = {'workers': 2, 'settings': {'limit_depth': 8, 'limit_content_bytes': 4096, 'limit_blob_bytes': 1 << 20},
         'namespaces': {'z': 'closed', 'lab': 'open', **dict.fromkeys(SPARE, 'open')}}
NOTHING = (set(), set())


@pytest.fixture
def empty(spares):
    return next(spares)


def attachment(content, mime='text/plain', **more):
    """As CouchDB writes it; of types that it compresses the digest is that of the compressed form."""
    digest = 'A' * 22 + '==' if mime.startswith('text/') else base64.b64encode(hashlib.md5(content).digest()).decode()
    return {'content_type': mime, 'revpos': 1, 'digest': f'md5-{digest}', 'data': base64.b64encode(content).decode(), **more}


def row(id_, **members):
    return {'id': id_, 'key': id_, 'value': {'rev': '1-a'}, 'doc': {'_id': id_, '_rev': '1-a', **members}}


def answer(rows, lines=True):
    """As CouchDB sends it, a row a line; other servers send one line."""
    texts = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False, separators=(',', ':')) for one in rows]
    if lines:
        return f'{{"total_rows":{len(rows)},"offset":0,"rows":[\n' + ',\n'.join(texts) + '\n]}\n'
    return f'{{"total_rows":{len(rows)},"offset":0,"rows":[{",".join(texts)}]}}'


def couch(tmp_path, text, **mapping):
    """The arguments for a file of this text, and a mapping."""
    path, words = tmp_path / 'all.json', []
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if mapping:
        (tmp_path / 'mapping').write_text(json.dumps(mapping))
        words = ['--mapping', tmp_path / 'mapping']
    return [path, *(words or ['--class', 'Row'])]


def stored(stack, ns):
    """{class/id: {item/key: content}}"""
    found = {}
    for class_, id_, iclass, key, content in stack.psql(ns, 'select class, id, iclass, key, content from item where content is not null'):
        found.setdefault(f'{class_}/{id_}', {})[f'{iclass}/{key}' if key else iclass] = content
    return found


@pytest.mark.parametrize('lines', [True, False])
def test_documents_and_attachments(stack, empty, tmp_path, lines):
    files = {'one.txt': b'one', 'zero': b'', 'bytes': bytes(range(256)) * 300}
    rows = [row('_design/views', views={}), row('a', name='é "]},{[ \\', n='x', _conflicts=['2-b'], tags=[1.50, {'x': None}]),
            '{"id":"n","key":"n","value":{"rev":"1-a"},"doc":{"_id":"n", "_rev":"1-a", "big":12345678901234567890.10 }}', row('bare'),
            row('files', _attachments={name: attachment(data, f'application/{name}') for name, data in files.items()}, after=1),
            {'id': 'gone', 'key': 'gone', 'value': {'rev': '2-b', 'deleted': True}, 'doc': None}]
    words = couch(tmp_path, answer(rows, lines))
    done = stack.admin('import-couchdb', empty, *words)
    assert '4 documents: 4 documents written, 0 unchanged; 0 wrong' in done.text
    found = stored(stack, empty)
    assert set(found) == {'Row/a', 'Row/n', 'Row/bare', 'Row/files'}
    assert json.loads(found['Row/a']['Main']) == {'name': 'é "]},{[ \\', 'n': 'x', 'tags': [1.5, {'x': None}]}
    assert found['Row/n'] == {'Main': '{"big":12345678901234567890.10}'} and found['Row/bare'] == {'Main': '{}'} and found['Row/files']['Main'] == '{"after":1}'
    for name, data in files.items():
        got = stack.http.get(f'{stack.url}/{empty}/doc/Row/files/file/{name}')
        assert got.content == data and got.headers['content-type'] == f'application/{name}'
    assert stack.psql(empty, "select v2 from doc where id = 'files'") == [(sum(map(len, files.values())),)]
    stack.admin('verify', '--ns', empty)
    assert '0 documents written, 4 unchanged' in stack.admin('import-couchdb', empty, *words).text
    words = couch(tmp_path, answer([row('files', _attachments={'zero': attachment(b'new')}, after=1)], lines))
    assert '1 documents written' in stack.admin('import-couchdb', empty, *words).text
    assert set(stored(stack, empty)['Row/files']) == {'Main', 'P/zero'} and stack.psql(empty, "select v2 from doc where id = 'files'") == [(3,)]
    stack.admin('verify', '--ns', empty)


REAL = r'''{"total_rows":3,"offset":0,"rows":[{"id":"_design/v","key":"_design/v","value":{"rev":"1-f29e2afedf72456c6127ecbc3041c9d9"},"doc":{"views":{},"_id":"_design/v","_rev":"1-f29e2afedf72456c6127ecbc3041c9d9"}},''' \
    r'''{"id":"a","key":"a","value":{"rev":"1-25aa3b5701b53ca86a3ae0bda46a2bb8"},"doc":{"n":1.5,"type":"person","_attachments":{"x.txt":{"content_type":"text/plain","digest":"md5-XUFAKrxLKna5cZ2REBfFkg==","revpos":1,"data":"aGVsbG8="}},"_id":"a","_rev":"1-25aa3b5701b53ca86a3ae0bda46a2bb8"}},''' \
    r'''{"id":"b\"]","key":"b\"]","value":{"rev":"1-cda2962041aeeb6419ff8c10fd03dd4c"},"doc":{"t":"]}","_id":"b\"]","_rev":"1-cda2962041aeeb6419ff8c10fd03dd4c"}}]}'''


def test_the_answer_of_a_real_server(stack, empty, tmp_path):
    """Of express-pouchdb 4.2.0 with PouchDB 7."""
    stack.admin('import-couchdb', empty, *couch(tmp_path, REAL))
    found = stored(stack, empty)
    assert found['Row/a']['Main'] == '{"n":1.5,"type":"person"}' and found['Row/b"]'] == {'Main': '{"t":"]}"}'} and set(found) == {'Row/a', 'Row/b"]'}
    assert stack.http.get(f'{stack.url}/{empty}/doc/Row/a/file/x.txt').content == b'hello'


def test_classes_of_a_mapping(stack, empty, tmp_path):
    rows = [row('1', type='person', n=1), row('2', type='a/b', n=2), row('3', n=3), row('4', type='other', n=4)]
    mapping = {'type': 'type', 'classes': {'person': 'Person', 'a/b': 'Pair'}, 'item': 'Body/all'}
    done = stack.admin('import-couchdb', empty, *couch(tmp_path, answer(rows), **mapping), '--dry-run', status=1)
    assert 'all.json:3: the mapping has no class for ""' in done.error and 'all.json:4: the mapping has no class for "other"' in done.error
    stack.admin('import-couchdb', empty, *couch(tmp_path, answer(rows), **mapping), '--class', 'Rest')
    assert {name: list(items) for name, items in stored(stack, empty).items()} == {
        name: ['Body/all'] for name in ('Person/1', 'Pair/2', 'Rest/3', 'Rest/4')}


DOCUMENTS = [{'_id': '_design/v', 'views': {}}, {'_id': 'own', '_rev': '1-a', 'id': 'other', 'doc': {'x': 1}, 'key': 'k'},
             {'_id': 'files', '_rev': '1-a', '_attachments': {'f': attachment(bytes(range(256)), 'image/png')}, 'n': 1, '_revisions': {'start': 1, 'ids': ['a']}},
             {'_id': 'gone', '_rev': '2-b', '_deleted': True}, {'_id': 'lists', 'rows': [{'id': 'x'}], 'docs': [{'_id': 'y'}]}, {'seq': 1, 'db_info': {'rows': []}, '_id': 'late'}]


def lines_of(values):
    return '\n'.join(json.dumps(one, ensure_ascii=False) for one in values) + '\n'


@pytest.mark.parametrize('text', [
    '{"new_edits":false,"docs":[\n' + ',\n'.join(map(json.dumps, DOCUMENTS)) + '\n]}\n', lines_of(DOCUMENTS), json.dumps(DOCUMENTS, indent=2),
    lines_of([{'id': one['_id'], 'key': one['_id'], 'value': {'rev': '1-a'}, 'doc': one} for one in DOCUMENTS]),
    lines_of([{'name': '@cloudant/couchbackup', 'version': '2.11.0', 'mode': 'full'}, DOCUMENTS[:2], [], DOCUMENTS[2:]]),
    lines_of([{'version': '1.2.6', 'db_type': 'leveldb', 'start_time': '2026-01-01', 'db_info': {'doc_count': 5, 'docs': []}}, {'docs': DOCUMENTS[:3]}, {'seq': 3}, {'docs': DOCUMENTS[3:]}, {'seq': 6}])],
    ids=['couchdb-dump', 'lines', 'array', 'rows', 'couchbackup', 'pouchdb-dump'])
def test_dumps(stack, empty, tmp_path, text):
    done = stack.admin('import-couchdb', empty, *couch(tmp_path, text))
    assert '4 documents: 4 documents written, 0 unchanged; 0 wrong' in done.text
    assert {name: json.loads(items['Main']) for name, items in stored(stack, empty).items()} == {
        'Row/own': {'id': 'other', 'doc': {'x': 1}, 'key': 'k'}, 'Row/files': {'n': 1}, 'Row/lists': {'rows': [{'id': 'x'}], 'docs': [{'_id': 'y'}]}, 'Row/late': {'seq': 1, 'db_info': {'rows': []}}}
    assert stack.http.get(f'{stack.url}/{empty}/doc/Row/files/file/f').content == bytes(range(256))
    assert '0 documents written, 4 unchanged' in stack.admin('import-couchdb', empty, *couch(tmp_path, text)).text


def test_dumps_that_are_wrong(stack, empty, tmp_path):
    for text, what in (('[{"_id":"a"}\n[{"_id":"b"}]\n', 'expected a row or a document'), ('{"docs":[{"_id":"a"}]', 'expected nothing but }'), ('{"docs":[{"_id":"a"}', 'truncated'),
                       ('{"_id":"a"}\n{"_id":"b"', 'truncated'), ('{"_id":"a"}\n1\n', 'expected an answer'), ('[[{"_id":"a"}]]', 'expected a row or a document'), ('[]\n[]\n', 'expected an answer'),
                       ('{"_id":"a"}\n{"n":1}\n', 'all.json:2: expected a row'), ('{"_id":"a"}\n{"rows":[{"id":"b","doc":{"_id":"b"}}]}\n', 'all.json:2: expected a row'),
                       ('{"_id":1}\n', 'expected a row'), ('{"seq":1,"n":2}\n', 'all.json:1: expected a row'), ('{"db_info":{}}\n', 'expected a row'), ('{"_id":"a","deep":' + '[' * 8 + ']' * 8 + '}', 'nest')):
        assert what in stack.admin('import-couchdb', empty, *couch(tmp_path, text), status=1).error, text
    assert archives.rows(stack, empty) == NOTHING
    done = stack.admin('import-couchdb', empty, *couch(tmp_path, lines_of([{'_id': 'a', 'n': number % 2 and number} for number in range(1200)] + [{'_id': 'b'}])))
    assert '1201 documents: 2 documents written, 0 unchanged; 1199 replaced by later ones' in done.text and '1199 documents have the id of a later one' in done.error
    assert stored(stack, empty)['Row/a'] == {'Main': '{"n":1199}'}


def test_attachments_that_are_stubs(stack, empty, tmp_path):
    """Kept out with a report, or on request stored without attachments: those that are here stay."""
    def dump(*stubs, n):
        return answer([row('a', n=n, _attachments={'f': {'content_type': 'image/png', 'digest': 'md5-x', 'length': 3, 'stub': True} if 'a' in stubs else attachment(b'old')}), row('b', n=n)])
    stack.admin('import-couchdb', empty, *couch(tmp_path, dump(n=1)))
    done = stack.admin('import-couchdb', empty, *couch(tmp_path, dump('a', n=2)), status=1)
    assert 'all.json:1: attachments without their bytes: save it with attachments=true, or import it --without-attachments' in done.error
    assert stored(stack, empty)['Row/b'] == {'Main': '{"n":1}'}
    done = stack.admin('import-couchdb', empty, *couch(tmp_path, dump('a', n=2)), '--skip-wrong', status=1)
    assert 'all.json:1: attachments without' in done.error and '1 wrong documents left out' in done.text and stored(stack, empty)['Row/b'] == {'Main': '{"n":2}'}
    for stubs, n in ((('a',), 3), ((), 4)):
        done = stack.admin('import-couchdb', empty, *couch(tmp_path, dump(*stubs, n=n)), '--without-attachments')
        assert '2 documents written' in done.text and '1 attachments are left out' in done.error and stored(stack, empty)['Row/a']['Main'] == f'{{"n":{n}}}'
        assert stack.http.get(f'{stack.url}/{empty}/doc/Row/a/file/f').content == b'old'
    stack.admin('verify', '--ns', empty)


WRONG = [({'id': 'x', 'key': 'x', 'value': {'rev': '1-a'}}, 'include_docs=true'), ({'key': 'x', 'error': 'not_found'}, 'expected a row'), ('{"id":1}', 'expected a row'),
         ('{"id":"x",}', 'at byte'), (row('i' * 256), 'expected as the id'), (row(''), 'expected as the id'), (row('x', deep=[[[[[[[[1]]]]]]]]), 'nest'),
         (row('x', long='y' * 4100), 'limit_content_bytes'), (row('x', _attachments={'a': {'stub': True, 'length': 3}}), 'attachments=true'),
         (row('x', _attachments={'a': attachment(b'', data='YQ=')}), 'base64'), (row('x', _attachments={'a': attachment(b'', data='Y!==')}), 'base64'),
         (row('x', _attachments={'a': attachment(b'altered', 'image/png', digest='md5-' + 'A' * 22 + '==')}), 'its digest'), (row('x', _attachments={'a' * 256: attachment(b'')}), 'limit_name_bytes'), (row('x', _attachments={'': attachment(b'')}), 'limit_name_bytes'),
         (row('x', _attachments={'a': attachment(b'x' * (1 << 20 | 1))}), 'limit_blob_bytes'), ('{"id":"x","id":"y"}', 'at byte'), ('{"id":"x","doc":{"_id":"x","a":"\\u0000"}}', 'at byte')]


def test_wrong_documents_have_their_numbers(stack, empty, tmp_path):
    words = couch(tmp_path, answer([row('good', n=1, _attachments={'f': attachment(b'kept')}), *(one for one, _ in WRONG), row('last')]))
    done = stack.admin('import-couchdb', empty, *words, status=1)
    lines = [line for line in done.error.splitlines() if re.search(r'all.json:\d', line)]
    assert len(lines) == len(WRONG)
    for (_, what), number, line in zip(WRONG, range(2, 100), lines):
        assert f'all.json:{number}: ' in line and what in line, line
    assert f'2 documents are right, {len(WRONG)} wrong; nothing was stored' in done.error and archives.rows(stack, empty) == NOTHING
    assert stack.psql(empty, 'select count(*) from blob') == [(0,)]
    done = stack.admin('import-couchdb', empty, *words, '--skip-wrong', status=1)
    assert '2 documents: 2 documents written' in done.text and set(stored(stack, empty)) == {'Row/good', 'Row/last'}


def test_a_truncated_file_stores_nothing(stack, tmp_path):
    whole = answer([row('a', _attachments={'f': attachment(b'x' * 50)}), row('b', t='"}')]).encode()
    end = len(whole) - 1
    for size in sorted({0, 1, 20, 30, 38, 39, 40, 60, 150, end - 20, end - 3, end - 2, end - 1}):
        done = stack.admin('import-couchdb', 'lab', *couch(tmp_path, whole[:size]), status=1)
        assert 'truncated' in done.error or 'expected' in done.error
    for text in (whole + b'x', whole + whole, whole.replace(b'},\n{', b'}\n{'), whole.replace(b'[\n', b'[1,'), b'[]', b'{"rows":{}}', b'{"error":"unauthorized"}'):
        assert 'expected' in stack.admin('import-couchdb', 'lab', *couch(tmp_path, text), status=1).error
    assert archives.rows(stack, 'lab') == NOTHING
    for path in (tmp_path / 'none', tmp_path):
        assert stack.admin('import-couchdb', 'lab', path, '--class', 'Row', status=1).error


@pytest.mark.parametrize('mapping, what', [
    ({'class': 'row'}, 'expected as the class'), ({'class': 1}, 'expected texts'), ({'clas': 'Row'}, 'did you mean'), ({'item': 'P', 'class': 'Row'}, 'class of items'),
    ({'item': 'no', 'class': 'Row'}, 'class of items'), ({'type': 't'}, 'both'), ({'classes': {}}, 'both'), ({'type': 't', 'classes': []}, 'expected an object'),
    ({'type': 't', 'classes': {'a': 'small'}}, 'a capital'), ({'item': 'Main'}, 'expected as the class')])
def test_wrong_mappings(stack, tmp_path, mapping, what):
    assert what in stack.admin('import-couchdb', 'lab', *couch(tmp_path, answer([row('a')]), **mapping), status=1).error
    assert archives.rows(stack, 'lab') == NOTHING


def test_z_is_refused(stack, tmp_path):
    assert stack.admin('import-couchdb', 'z', *couch(tmp_path, answer([row('a')])), status=2).error


def test_an_import_that_was_refused_goes_on(stack, empty, tmp_path):
    (tmp_path / 'schema').write_text(json.dumps({'classes': {'Row': {'items': {'Main': {'singleton': True, 'fields': {'a': 'string'}}}, 'unique': {'a': {'key': ['Main.a']}}}}}))
    stack.admin('schema', 'set', empty, tmp_path / 'schema')
    stack.admin('schema', 'apply', empty)
    rows = [row(f'r{number:04}', a=str(number), _attachments={'f': attachment(str(number % 7).encode())}) for number in range(600)] + [row('s', a='1')]
    words = couch(tmp_path, answer(rows))
    assert 'Row/s: ' in stack.admin('import-couchdb', empty, *words, status=1).error and len(stored(stack, empty)) == 500
    stack.psql(empty, "select delete_document('Row', 'r0001')")
    done = stack.admin('import-couchdb', empty, *words)
    assert 'going on' in done.text and '601 documents: 601 documents written' in done.text
    assert stack.psql(empty, 'select count(*) from import_progress') == [(0,)] and len(stored(stack, empty)) == 600
    assert stack.http.get(f'{stack.url}/{empty}/doc/Row/r0599/file/f').content == str(599 % 7).encode()
    stack.admin('verify', '--ns', empty)

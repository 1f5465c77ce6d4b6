"""stampctl import-csv: rows of a CSV file as documents; wrong rows; resumed after a kill; the how-to page, typed."""
import json
import os
import re
import subprocess

import pytest

import archives
from halting import halted
from stack import SOURCE, run_program, wait_until

SPARE = [f'empty{number}' for number in range(17)]
STACK = {'workers': 2, 'settings': {'limit_depth': 8, 'limit_content_bytes': 4096, 'limit_items': 100, 'limit_document_bytes': 65536}, 'namespaces': {'z': 'closed', 'lab': 'open', **dict.fromkeys(SPARE, 'open')}}
PAGE = SOURCE / 'doc/how-to/move-your-data-in.md'
NOTHING = (set(), set())


@pytest.fixture
def empty(spares):
    return next(spares)


def csv(tmp_path, text, **mapping):
    """The arguments for a file of this text, and a mapping."""
    path, words = tmp_path / 'rows.csv', []
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if mapping:
        (tmp_path / 'mapping').write_text(json.dumps({'class': 'Row', **mapping}))
        words = ['--mapping', tmp_path / 'mapping']
    return [path, *(words or ['--class', 'Row'])]


def stored(stack, ns):
    """{id: {item/key: content}} of the class Row."""
    found = {}
    for id_, iclass, key, content in stack.psql(ns, "select id, iclass, key, content from item where class = 'Row' and content is not null"):
        found.setdefault(id_, {})[f'{iclass}/{key}' if key else iclass] = content
    return found


def test_quotes_line_breaks_and_defaults(stack, empty, tmp_path):
    words = csv(tmp_path, b'\xef\xbb\xbfid,"a ""b""",note\r\n1,,"x\r\ny, ""z"""\r\n\r\n2,\xc3\xa9,"\n"\n3,",",')
    done = stack.admin('import-csv', empty, *words)
    assert '3 rows: 3 documents written, 0 unchanged; 0 wrong' in done.text
    assert {id_: json.loads(items['Main']) for id_, items in stored(stack, empty).items()} == {
        '1': {'a "b"': '', 'note': 'x\r\ny, "z"'}, '2': {'a "b"': 'é', 'note': '\n'}, '3': {'a "b"': ',', 'note': ''}}
    assert stack.get(empty, ('Row', '2'))['items'][0]['j']['note'] == '\n'
    assert '0 documents written, 3 unchanged' in stack.admin('import-csv', empty, *words).text
    before = stack.get(empty, ('Row', '1'))
    words = csv(tmp_path, 'id,a\n1,new\n')
    assert '1 documents written' in stack.admin('import-csv', empty, *words).text
    after = wait_until(lambda: [one for one in [stack.get(empty, ('Row', '1'))] if one['v'] > before['v']], what='the change')[0]
    assert after['items'][0]['j'] == {'a': 'new'} and after['ct'] == before['ct']
    v1 = 'select v1, (select sum(octet_length(key) + octet_length(content)) from item i where i.class = d.class and i.id = d.id) from doc d'
    assert all(row[0] == row[1] for row in stack.psql(empty, v1))


def test_types_and_items_of_a_mapping(stack, empty, tmp_path):
    words = csv(tmp_path, 'n;key;b;j;s;left\n1.50e3;one;1;"{""a"": [1,\n2]}";NULL;x\n;two;false;;;\nNULL;three;NULL;" 3 ";"";\n', id='key', separator=';', null='NULL',
                item='Line/a', columns={'n': {'type': 'number'}, 'b': {'type': 'boolean', 'item': 'Flags', 'field': 'is'}, 's': {},
                                        'j': {'type': 'json', 'item': 'Flags'}})
    stack.admin('import-csv', empty, *words)
    assert stored(stack, empty) == {'one': {'Line/a': '{"n":1.50e3,"s":null}', 'Flags': '{"is":true,"j":{"a": [1,\n2]}}'},
                                    'two': {'Line/a': '{"n":null,"s":""}', 'Flags': '{"is":false,"j":null}'},
                                    'three': {'Line/a': '{"n":null,"s":""}', 'Flags': '{"is":null,"j": 3 }'}}


FOUND = [('sku;name', ';'), ('sku\tname', '\t'), ('sku,name', ','), ('sku;"name"', ';'), ('"sku";name', ';'), ('sep=;\nsku;name', ';'), ('sep=,\nsku,name', ','),
         ('SEP=|\r\nsku|name', '|'), ('\ufeffsep=\t\nsku\tname', '\t'), ('sep=:\n\nsku:name', ':')]
NOT_SURE = [('sku|name', {}, 'one column with vertical bars: name the "separator"'), ('sku;name\tx', {}, 'semicolons and tabs'), ('sku;name', {'separator': ','}, 'one column with semicolons'),
            ('sku,name', {'separator': ';'}, 'one column with commas'), ('sep=;\nsku,name', {}, 'one column with commas'), ('sep=;\nsku;name', {'separator': ','}, 'sep= names another separator'),
            ('sep=x\nskuxname', {}, 'expected behind sep='), ('sep=\nsku;name', {}, 'expected behind sep='), ('sep=;;\nsku;name', {}, 'expected behind sep='),
            ('"sep=;"\nsku;name', {}, 'expected behind sep=')]


def test_the_separator_of_the_file_is_found(stack, empty, tmp_path):
    for number, (header, separator) in enumerate(FOUND):
        done = stack.admin('import-csv', empty, *csv(tmp_path, f'{header}\na{separator}{number}\n"b"{separator}"x,;|y"\n'))
        assert '2 rows: ' in done.text, header
        assert {id_: json.loads(items['Main']) for id_, items in stored(stack, empty).items()} == {'a': {'name': f'{number}'}, 'b': {'name': 'x,;|y'}}, header


def test_a_separator_that_is_not_sure_is_refused(stack, empty, tmp_path):
    for header, mapping, what in NOT_SURE:
        done = stack.admin('import-csv', empty, *csv(tmp_path, header + '\na;1\nb,2\n', **mapping), status=1)
        assert what in done.error, header
    assert 'expected a header' in stack.admin('import-csv', empty, *csv(tmp_path, 'sep=;\n'), status=1).error
    assert archives.rows(stack, empty) == NOTHING


def test_a_separator_that_a_mapping_names(stack, empty, tmp_path):
    words = csv(tmp_path, 'sku|a;b\nx|1\n', separator='|')
    assert '1 documents written' in stack.admin('import-csv', empty, *words).text and stored(stack, empty) == {'x': {'Main': '{"a;b":"1"}'}}
    words = csv(tmp_path, 'sep=;\nsku;b\nx;1\n', separator=';')
    assert '1 documents written' in stack.admin('import-csv', empty, *words).text and stored(stack, empty) == {'x': {'Main': '{"b":"1"}'}}


def test_lines_that_end_with_cr(stack, empty, tmp_path):
    """Of old spreadsheets.  Line breaks in quotes stay what they are; the numbers of lines count them."""
    words = csv(tmp_path, b'id,note\r1,"x\ry\nz"\r\r2,b\r"3",')
    assert '3 rows: 3 documents written' in stack.admin('import-csv', empty, *words).text
    assert {id_: json.loads(items['Main'])['note'] for id_, items in stored(stack, empty).items()} == {'1': 'x\ry\nz', '2': 'b', '3': ''}
    assert 'rows.csv:3: expected 2 fields' in stack.admin('import-csv', empty, *csv(tmp_path, b'id;note\r1;a\r2\r'), status=1).error
    assert '1 rows: 1 documents' in stack.admin('import-csv', empty, *csv(tmp_path, b'"i\rd"\r4\r')).text
    before = archives.rows(stack, empty)
    for text, line in ((b'id,note\n5,a\r6,b\n', 2), (b'id,note\r5,a\n6,b\r', 2), (b'id,note\r\n5,a\r6,b\r\n', 2), (b'id,note\r5,a\r\n6,b\r\n', 3)):
        done = stack.admin('import-csv', empty, *csv(tmp_path, text), status=1)
        assert f'rows.csv:{line}: a line break outside of quotes' in done.error and archives.rows(stack, empty) == before


def test_a_file_without_rows_says_so(stack, empty, tmp_path):
    for text in ('id,n', 'id,n\n', 'sep=;\r\nid;n\r\n\r\n', 'id\r'):
        done = stack.admin('import-csv', empty, *csv(tmp_path, text))
        assert '0 rows: 0 documents written' in done.text and 'the file ends after its header, on line ' in done.error
    assert 'no rows: a quoted field makes all lines one header' in stack.admin('import-csv', empty, *csv(tmp_path, '"id,n\n1,2\n3,4"\n'), status=1).error


ROWS = [('1,2,3', 'expected 2 fields, as in the header, not 3'), ('x', 'expected 2 fields'), (',1', 'expected as the id'), ('i' * 256 + ',1', 'expected as the id'),
        ('x,01', 'expected a number, not "01"'), ('x,"1"2', 'expected a separator'), ('x,a"b"', 'a quote inside'), ('x,\x00', 'NUL'), ('x,1 ', 'expected a number'),
        ('x,"1"""', 'expected a number'), ('x,"[1]"', 'expected a number'), ('x,true', 'expected a number'), ('x,\udcff', 'UTF-8'), ('x,5" disk', 'a quote inside'), ('5" disk,1', 'a quote inside'), ('x,"never closed', 'not closed')]


def test_wrong_rows_have_the_numbers_of_their_lines(stack, empty, tmp_path):
    text = 'id,n\n"a\nb",1\n' + '\n'.join(row for row, _ in ROWS) + '\nfar,2'
    words = csv(tmp_path, text.encode(errors='surrogateescape'), columns={'n': {'type': 'number'}})
    done = stack.admin('import-csv', empty, *words, status=1)
    lines = [line for line in done.error.splitlines() if re.search(r'rows.csv:\d', line)]
    assert len(lines) == len(ROWS)
    for (_, what), number, line in zip(ROWS, range(4, 100), lines):
        assert f'rows.csv:{number}: ' in line and what in line
    assert f'1 rows are right, {len(ROWS)} wrong; nothing was stored' in done.error and archives.rows(stack, empty) == NOTHING
    done = stack.admin('import-csv', empty, *words, '--dry-run', status=1)
    assert f'1 rows are right, {len(ROWS)} wrong; nothing was stored' in done.text and archives.rows(stack, empty) == NOTHING
    done = stack.admin('import-csv', empty, *words, '--skip-wrong', status=1)
    assert f'1 rows: 1 documents written, 0 unchanged; {len(ROWS)} wrong rows left out' in done.text and list(stored(stack, empty)) == ['a\nb']
    words = csv(tmp_path, 'id,n\n' + 'x,y\n' * 30, columns={'n': {'type': 'number'}})
    assert 'and 10 more' in stack.admin('import-csv', empty, *words, status=1).error


def test_a_stray_quote_spoils_one_row(stack, empty, tmp_path):
    words = csv(tmp_path, 'id,n\n1,5" disk\n2,b\n3,6" disk\n4,d\n"5"x,"e\n6,f\n')
    done = stack.admin('import-csv', empty, *words, '--skip-wrong', status=1)
    assert re.findall(r'rows.csv:(\d+): (?:a quote inside|expected a separator)', done.error) == ['2', '4', '6'] and set(stored(stack, empty)) == {'2', '4', '6'}


def test_a_wrong_row_says_where_it_ends(stack, empty, tmp_path):
    """A quote at the beginning of a field opens it: what stands behind it, up to the next one, is of this row."""
    words = csv(tmp_path, 'id,n\n1,"abc\n2,def\n3,"ghi"\n4,x\n')
    done = stack.admin('import-csv', empty, *words, '--skip-wrong', status=1)
    assert 'rows.csv:2: expected a separator after the quote that ends a field (the row goes on to line 4)' in done.error
    assert '1 wrong' in done.text and set(stored(stack, empty)) == {'4'}


DEEP = '[' * 8 + ']' * 8
WIDE = ','.join(f'c{number}' for number in range(101))


@pytest.mark.parametrize('header, row, columns, what', [
    ('a', 'x' * 4100, {'a': {}}, 'limit_content_bytes'),
    ('a,b', f'{"x" * 3000},{"y" * 3000}', {'a': {}, 'b': {}}, 'limit_content_bytes'),
    ('a', DEEP, {'a': {'type': 'json'}}, 'expected a JSON text'),
    (WIDE, ',' * 100, {f'c{number}': {'item': f'Cell/{number}'} for number in range(101)}, 'limit_items'),
    (WIDE, ','.join(['z' * 1000] * 101), {f'c{number}': {'item': f'Cell/{number % 50}'} for number in range(101)}, 'limit_document_bytes')])
def test_what_the_server_would_refuse_is_found_first(stack, empty, tmp_path, header, row, columns, what):
    few = ','.join(['1'] * len(columns))
    words = csv(tmp_path, f'id,{header}\n' + ''.join(f'{number},{few}\n' for number in range(600 if len(columns) < 3 else 0)) + f'last,{row}\n', columns=columns)
    done = stack.admin('import-csv', empty, *words, status=1)
    assert what in done.error and '1 wrong; nothing was stored' in done.error and archives.rows(stack, empty) == NOTHING


def test_long_lines_are_refused(stack, tmp_path):
    most = 16 << 20
    words = csv(tmp_path, b'id,a\n1,2\n3,' + b'x' * most + b'\n')
    assert 'rows.csv:3: a line of more than 16 MB' in stack.admin('import-csv', 'lab', *words, status=1).error
    words = csv(tmp_path, b'id,a\n1,2\n3,"' + (b'x' * 1023 + b'\n') * (most >> 10))
    assert 'rows.csv:3: a quoted field is not closed within 16 MB' in stack.admin('import-csv', 'lab', *words, status=1).error
    words = csv(tmp_path, b'id,a\n1,2\n' + b',' * (1 << 20) + b'\n')
    assert 'rows.csv:3: more than 4096 fields' in stack.admin('import-csv', 'lab', *words, status=1).error
    assert archives.rows(stack, 'lab') == NOTHING


@pytest.mark.parametrize('mapping, what', [
    ({'class': 'row'}, 'expected as the class'), ({'class': 1}, 'expected texts'), ({'colums': {}}, 'did you mean'), ({'separator': '"'}, 'separator'),
    ({'id': 'none'}, 'not in the header'), ({'separator': ''}, 'separator'), ({'columns': []}, 'expected an object'), ({'columns': {'none': {}}}, 'not in the header'),
    ({'columns': {'a': 1}}, 'expected an object'), ({'columns': {'a': {'typ': 'number'}}}, 'did you mean'), ({'columns': {'a': {'type': 'int'}}}, 'string, number'),
    ({'columns': {'a': {'item': 'P'}}}, 'a class of items'), ({'columns': {'a': {'item': 'no'}}}, 'a class of items'), ({'columns': {'a': {'field': 1}}}, 'expected texts'),
    ({'columns': {'a': {}, 'b': {'field': 'a'}}}, 'another column')])
def test_wrong_mappings(stack, tmp_path, mapping, what):
    assert what in stack.admin('import-csv', 'lab', *csv(tmp_path, 'id,a,b\n1,2,3\n', **mapping), status=1).error


def test_wrong_files_and_words(stack, tmp_path):
    for text in (b'', b'\n\n', b'a,a\n1,2\n', b'"a\n', b'\xff\n', ('a,' * 4097).encode()):
        assert stack.admin('import-csv', 'lab', *csv(tmp_path, text), status=1).error
    assert 'capital' in stack.admin('import-csv', 'lab', tmp_path / 'rows.csv', status=1).error
    (tmp_path / 'mapping').write_text('[')
    for mapping in (tmp_path / 'mapping', tmp_path / 'none', tmp_path):
        assert stack.admin('import-csv', 'lab', tmp_path / 'rows.csv', '--mapping', mapping, status=1).error
    words = csv(tmp_path, 'id,a\n1,2\n')
    assert 'no such namespace' in stack.admin('import-csv', 'nowhere', *words, status=1).error
    assert stack.admin('import-csv', 'z', *words, status=2).error and stack.admin('import-csv', 'lab', '-', status=2).error
    assert archives.rows(stack, 'lab') == NOTHING


def test_the_last_row_of_an_id_is_stored(stack, tmp_path):
    """Documents are counted, not rows, also where the rows of one are far apart; rows that another one replaces are never stored."""
    words = csv(tmp_path, 'id,a\n' + ''.join(f'one,{number}\nother{number},x\n' for number in range(700)))
    done = stack.admin('import-csv', 'lab', *words, '--dry-run')
    assert '1400 rows are right' in done.text and '699 rows have the id of a later one' in done.error
    done = stack.admin('import-csv', 'lab', *words)
    assert '1400 rows: 701 documents written, 0 unchanged; 699 replaced by later ones; 0 wrong' in done.text
    assert stored(stack, 'lab')['one'] == {'Main': '{"a":"699"}'} and len(stored(stack, 'lab')) == 701
    assert '0 documents written, 701 unchanged; 699 replaced' in stack.admin('import-csv', 'lab', *words).text
    done = stack.admin('import-csv', 'lab', *csv(tmp_path, 'country,city\nfr,Paris\nit,Roma\nfr,Lyon\nit,Bari\n'))
    assert '4 rows: 2 documents written, 0 unchanged; 2 replaced by later ones' in done.text and stored(stack, 'lab')['fr'] == {'Main': '{"city":"Lyon"}'}


def test_attachments_stay(stack, tmp_path):
    stack.admin('import-csv', 'lab', *csv(tmp_path, 'id,a\nkeeps,1\n'))
    assert stack.http.put(f'{stack.url}/lab/doc/Row/keeps/file/one', data=b'12345').status_code == 201
    words = csv(tmp_path, 'id,a\nkeeps,2\n')
    for told in ('1 documents written', '0 documents written, 1 unchanged'):
        assert told in stack.admin('import-csv', 'lab', *words).text
    assert stack.psql('lab', "select v2 from doc where id = 'keeps'") == [(5,)] and stored(stack, 'lab')['keeps']['Main'] == '{"a":"2"}'
    assert stack.http.get(f'{stack.url}/lab/doc/Row/keeps/file/one').content == b'12345'


def test_a_refused_row_names_its_document(stack, empty, tmp_path):
    """And the import goes on there, once that is mended, or is abandoned."""
    (tmp_path / 'schema').write_text(json.dumps({'classes': {'Row': {'items': {'Main': {'singleton': True, 'fields': {'a': 'string'}}}, 'unique': {'a': {'key': ['Main.a']}}}}}))
    stack.admin('schema', 'set', empty, tmp_path / 'schema')
    stack.admin('schema', 'apply', empty)
    words = csv(tmp_path, 'id,a\n' + ''.join(f'r{number:04},{number}\n' for number in range(600)) + 's,1\n')
    assert 'Row/s: ' in stack.admin('import-csv', empty, *words, status=1).error
    assert len(stored(stack, empty)) == 500
    (tmp_path / 'other').write_text('id,a\n1,2\n')
    refused = stack.admin('import-csv', empty, tmp_path / 'other', '--class', 'Row', status=1).error
    assert 'was interrupted' in refused and f'what it has stored stays, with import --abandon {empty}' in refused
    stack.psql(empty, "select delete_document('Row', 'r0001')")
    done = stack.admin('import-csv', empty, *words)
    assert 'going on' in done.text and '601 rows: 601 documents written' in done.text
    assert stack.psql(empty, 'select count(*) from import_progress') == [(0,)]


def test_a_killed_import_goes_on(stack, tmp_path):
    stack.psql('lab', 'delete from item; delete from doc')
    count = 6000
    words = csv(tmp_path, 'id,a\n' + ''.join(f'{number},"{number}\n"\n' for number in range(count)))

    with halted(stack, 'lab', 'import_progress', 'new.members > 1000') as halt:
        with subprocess.Popen(stack.admin_words('import-csv', 'lab', *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            halt.wait()
            program.kill()
    wait_until(lambda: not stack.psql('lab', "select pid from pg_locks where locktype = 'advisory' and (classid::bigint << 32 | objid::bigint) = hashtextextended('stampd import', 0)"
                                      ' and database = (select oid from pg_database where datname = current_database())'), what='the end of the killed session')
    ((reached, ), ) = stack.psql('lab', 'select members from import_progress')
    assert 0 < reached <= 1000
    assert stack.psql('lab', "select count(*) from doc where class = 'Row'") == [(reached,)], 'documents and record are of one transaction'
    assert f'{count} rows: ' in stack.admin('import-csv', 'lab', *words).text
    assert {int(id_): json.loads(items['Main']) for id_, items in stored(stack, 'lab').items()} == {number: {'a': f'{number}\n'} for number in range(count)}
    assert stack.psql('lab', 'select count(*) from import_progress') == [(0,)]


def test_the_page_typed(stack, tmp_path):
    """Each file of the page is made, each command run as it stands there, and prints what stands behind it."""
    (tmp_path / 'stampctl').write_text(f'#!/bin/sh\nexec {stack.build}/src/stampctl "$@" --config {stack.config} --admin-conninfo "{stack.conninfo_of_server()}"\n')
    (tmp_path / 'stampctl').chmod(0o755)
    commands = 0
    told = ''
    for kind, name, text in re.findall(r'^```(\w+) ?(\S*)\n(.*?)^```$', PAGE.read_text(), re.M | re.S):
        if name:
            (tmp_path / f'{name}.{kind}').write_text(text)
        elif kind == 'console':
            told = run_program('bash', '-e', '-c', text, cwd=tmp_path, environment={'PATH': f'{tmp_path}:{os.environ["PATH"]}'}).text
            commands += 1
        else:
            assert told == text
    assert commands == 3

    def found():
        return {item['c']: item['j'] for item in stack.get('lab', ('Person', 'ann@example.org'))['items']}
    wait_until(lambda: len(found()) == 2, what='the change')
    assert found() == {'Contact': {'email': 'ann@example.org'}, 'Main': {'fullName': 'Ann', 'age': 34}}

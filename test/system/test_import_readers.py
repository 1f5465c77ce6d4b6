"""The programs that read files of other systems for stampctl, by themselves: records of CSV, forms in which a CouchDB is saved, strict JSON."""
import csv
import io
import json
import random
import sys

import pytest

from stack import SOURCE

sys.path.insert(0, str(SOURCE / 'src/control/foreign'))
import import_couchdb  # noqa: E402
import import_csv  # noqa: E402
import neutral  # noqa: E402

CLOSED, STRAY = 'a quoted field is not closed', 'a quote inside a field that does not begin with one'
BREAK = 'a line break outside of quotes: expected the same line ends in the whole file'
BEHIND = 'expected a separator after the quote that ends a field'
LINES = [('', None, False, False), ('', None, True, True), ('a,b', None, True, True), ('"', CLOSED, False, True), ('""', None, False, False), ('"""', CLOSED, False, True),
         ('""""', None, False, False), ('a,"b', CLOSED, False, True), ('a,"b"', None, False, False), ('a,"b","c', CLOSED, False, True), ('a,"b,c","d', CLOSED, False, True),
         ('5" disk', STRAY, False, False), ('5" disk,"x', STRAY, False, False), ('5,6" disk,"x', STRAY, False, False), ('"a"b,"c', BEHIND, False, False), ('end"', None, True, False),
         ('end""', None, True, True), ('end","more', None, True, True), ('end"x,"more', None, True, False), ('"', None, True, False), ('","', None, True, True),
         ('"\r","\r\n"', None, False, False), ('a\r1', BREAK, False, False), ('a,b\r', BREAK, False, False), ('\n1,2', BREAK, False, False)]
HEADERS = [('sku,name', None, ','), ('sku;name', None, ';'), ('sku\tname', None, '\t'), ('sku', None, ','), ('full name', None, ','), ('', None, ','), ('price;in EUR,name', None, ','),
           ('"name, first";id', None, ';'), ('"a;b"', None, ','), ('"a"";b"\tc', None, '\t'), ('sku|name', None, 'vertical bars'), ('a;b\tc', None, 'semicolons and tabs'),
           ('a;b|c', None, 'semicolons and vertical bars'), ('sku|name', '|', '|'), ('a;b|c,d', '|', '|'), ('a b', ' ', ' '), ('sku', ';', ';'), ('sku:name', ';', ';'),
           ('sku;name', ',', 'semicolons'), ('sku,name', ';', 'commas'), ('"a|b";c', '|', 'semicolons'), ('sku\tname', ' ', 'tabs')]


def records(separator=','):
    return import_csv.Records(None, separator)


@pytest.mark.parametrize('line, problem, was_open, is_open', LINES)
def test_a_record_goes_on_only_while_a_quoted_field_is_open(line, problem, was_open, is_open):
    assert records().is_open(line.encode(), was_open) == is_open
    if was_open:
        return
    try:
        records().fields(line.encode())
        assert not problem
    except neutral.Wrong as why:
        assert str(why) == problem


@pytest.mark.parametrize('line, named, found', HEADERS)
def test_a_header_decides_which_separator_a_file_has(line, named, found):
    if len(found) == 1:
        assert import_csv.separator_of(line.encode(), named) == found
        return
    with pytest.raises(neutral.Wrong, match=found):
        import_csv.separator_of(line.encode(), named)


def test_fields_that_were_written_are_read():
    draw = random.Random(7)
    for _ in range(2000):
        separator = draw.choice(import_csv.SEPARATORS)
        fields = [''.join(draw.choice('ab ,;|\t:"\r\né') for _ in range(draw.randrange(6))) for _ in range(draw.randrange(1, 6))]
        text = io.StringIO()
        has_breaks = any('\r' in field or '\n' in field for field in fields)  # the writer leaves a lone CR without quotes
        csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL if has_breaks else draw.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)), lineterminator='').writerow(fields)
        assert records(separator).fields(text.getvalue().encode()) == fields


def test_no_record_is_too_much():
    draw = random.Random(8)
    for _ in range(5000):
        text = bytes(draw.choice(b'a,"\r\n\x00\xc3\xa9') for _ in range(draw.randrange(20)))
        records().is_open(text, draw.random() < 0.5)
        try:
            assert all(isinstance(field, str) for field in records().fields(text))
        except neutral.Wrong:
            pass
    with pytest.raises(neutral.Wrong, match='more than 4096'):
        records().fields(b',' * (1 << 20))


# --- CouchDB ---

A, B = '{"_id":"a","rows":[{"_id":1}]}', '{"docs":"]}","_id":"b"}'
FORMS = [(f'{{"total_rows":2,"rows":[\n{A},\n{B}\n]}}\n', 2), ('{"rows":[]}', 0), (f'{{"docs":[{A},{B}]}}', 2), (f'{{"docs":[{A}]}}\n{{"seq":1}}\n{{"docs":[{B},{A}]}}\n{{"seq":3}}\n', 5),
         ('{"docs":[]}', 0), (f'[{A},{B}]\n[]\n[{A}]\n', 3), (f'{A}\n{B}\r\n\n{A}', 3), (f' \n{A}{B}', 2), (f'[{A}]{{"docs":[{A}]}}{B}', 3), ('{ "rows" : [ ]}', 0), ('{"docs":{},"rows":[{}]}', 1),
         ('{"n":"\\",\\"rows\\":["}', 1), ('{"db_info":{"docs":[1]},"docs":[{}]}', 1), ('{"id":"a","rows":[1]}', 1), ('', None), ('[]', None), (f'{{"rows":[{A}]}}{{"rows":[{B}]}}', None),
         (f'{{"rows":[{A}]}} x', None), (f'[{A},{B}', None), (f'[{A} {B}]', None), (f'[{A},]', None), (f'[[{A}]]', None), (f'{A},{B}', None), (f'{A}\n1\n', None), (f'{A}]', None), ('"a"', None)]


def count_rows(path, text, monkeypatch, size):
    """None: the file is refused."""
    monkeypatch.setattr(import_couchdb, 'READ', size)
    path.write_bytes(text)
    try:
        rows = list(import_couchdb.Reader(path).rows())
    except import_couchdb.Failed as why:
        assert str(why)
        return None
    assert all(map(import_couchdb.is_whole, rows))
    return len(rows)


@pytest.mark.parametrize('text, count', FORMS)
def test_each_form_has_its_documents(tmp_path, monkeypatch, text, count):
    for size in (1, 7, 1 << 18):
        assert count_rows(tmp_path / 'file', text.encode(), monkeypatch, size) == count


@pytest.mark.parametrize('text', [f'{{"total_rows":2,"offset":0,"rows":[\n{A},\n{B}\n]}}', f'{{"new_edits":false,"docs":[{A},{B}]}}', f'[{A},{B}]', B])
def test_a_file_that_is_cut_is_refused(tmp_path, monkeypatch, text):
    for size in range(len(text)):
        assert count_rows(tmp_path / 'file', text[:size].encode(), monkeypatch, 1 << 18) is None


# --- JSON, as the server takes it ---

@pytest.mark.parametrize('text', ['', '01', '1.', '+1', 'NaN', '-Infinity', '{"a":1,"a":2}', '[{"a":1,"\\u0061":2}]', '"\\u0000"', '"\\ud800"', '{"\\udc00":1}', '[1,]', "'a'", '"a\nb"', '1 2', '[[[[]]]]', 'tru', '\ufeff1', '１'])
def test_what_is_no_json(text):
    with pytest.raises(ValueError):
        neutral.read_json(text, 3)


@pytest.mark.parametrize('text', ['1e400', ' {"a" : [1.50, -0, null, true]} ', '"\\ud83d\\ude00"', '"]]]]"', '12345678901234567890.10'])
def test_what_is_json(text):
    neutral.read_json(text, 3)
    assert json.dumps(json.loads(text))

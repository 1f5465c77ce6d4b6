"""import_csv: reads a CSV file (RFC 4180) for `stampctl import-csv` (import-csv.md), a document for each row.

Lines end with LF or CR LF, or all with CR; empty lines are skipped, as is a byte order mark.  Memory holds one record.
"""
import hashlib
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out
from neutral import NUMBER, SHOWN, WRONG_CLASS, Refused, Wrong, check_members, check_texts, is_class, item_of, print_document, print_line, quoted, read_json, read_mapping, run  # noqa: E402

RECORD_MOST, FIELDS_MOST = 16 << 20, 4096
SEPARATORS = ',;|\t: '
LONG = 'a line of more than 16 MB'


class Failed(Exception):
    """The file cannot be read on: why."""


# --- lines and records ---

def line_end(path):
    """CR, if the first line of the file ends with one that no LF follows."""
    with open(path, 'rb') as file:
        head = file.read(RECORD_MOST)
    last, is_quoted = 0, False
    for byte in re.findall(rb'[\r\n"]|[^\r\n"]+', head):
        if not is_quoted and (last == b'\r' or byte == b'\n'):
            return b'\n' if byte == b'\n' else b'\r'
        is_quoted ^= byte == b'"'
        last = byte
    return b'\r' if last == b'\r' and not is_quoted else b'\n'


class Lines:
    """The lines of a file, without their ends."""

    def __init__(self, path):
        try:
            self.end, self.file = line_end(path), open(path, 'rb')
            self.size = os.fstat(self.file.fileno()).st_size
        except OSError as why:
            raise Refused(f'{path}: {why.strerror}') from None
        if not self.size:
            raise Refused(f'{path}: expected a file that is not empty')
        self.digest, self.number, self.offset, self.rest, self.blocks = hashlib.sha256(), 0, 0, [], b''

    def take(self):
        """The next line; None: there is none."""
        if self.end == b'\n':
            line = self.file.readline(RECORD_MOST + 2)
        else:
            while self.end not in self.blocks and len(self.blocks) <= RECORD_MOST + 1:
                block = self.file.read(1 << 16)
                if not block:
                    break
                self.blocks += block
            at = self.blocks.find(self.end)
            line, self.blocks = (self.blocks, b'') if at < 0 else (self.blocks[:at + 1], self.blocks[at + 1:])
        if not line:
            return None
        if len(line) > RECORD_MOST + 1:
            self.number += 1
            raise Failed(LONG)
        self.offset += len(line)
        self.number += 1
        line = line[:-1] if line.endswith(self.end) else line
        self.digest.update(line + b'\n')
        return line[3:] if self.number == 1 and line.startswith(b'\xef\xbb\xbf') else line


class Records:
    """The fields of one record after the other."""

    def __init__(self, lines, separator):
        self.lines, self.separator, self.line = lines, separator, 0

    def next_text(self):
        """The next line that is not empty; None: there is none."""
        while True:
            try:
                line = self.lines.take()
            finally:
                self.line = self.lines.number
            if line not in (b'', b'\r'):
                return line

    def is_open(self, line, is_open):
        """Does a quoted field go on behind the end of this line?  A record that is wrong ends with the line that shows it."""
        at, end, separator = 0, len(line), self.separator.encode()
        if b'"' not in line:
            return is_open
        while 0 <= at < end:
            if not is_open and line[at:at + 1] != b'"':
                found = line.find(separator, at)
                at = found + 1 if found >= 0 and line.find(b'"', at, found) < 0 else -1
                continue
            at += not is_open
            is_open = True
            at = line.find(b'"', at)
            if at < 0:
                break
            if line[at + 1:at + 2] == b'"':
                at += 2
                continue
            is_open = False
            at = at + 2 if line[at + 1:at + 2] == separator else -1
        return is_open

    def join(self, text):
        """With the lines that belong to a record whose first line has an open field."""
        parts, size = [text], len(text)
        while True:
            try:
                line = self.lines.take()
            except Failed:
                self.lines.number -= 1
                raise
            if line is None:
                return self.lines.end.join(parts)
            parts.append(line)
            size += len(line) + 1
            if not self.is_open(line, True):
                return self.lines.end.join(parts)
            if size > RECORD_MOST:
                raise Failed('a quoted field is not closed within 16 MB')

    def fields(self, text):
        """Of a whole record.  Raises Wrong."""
        try:
            text.decode()
        except UnicodeDecodeError:
            raise Wrong('not valid UTF-8') from None
        if b'\0' in text:
            raise Wrong('a NUL character')
        found, at, separator = [], 0, self.separator.encode()
        while True:
            if len(found) == FIELDS_MOST:
                raise Wrong('more than 4096 fields')
            if text[at:at + 1] == b'"':
                end = at + 1
                while True:
                    end = text.find(b'"', end)
                    if end < 0:
                        raise Wrong('a quoted field is not closed')
                    if text[end + 1:end + 2] != b'"':
                        break
                    end += 2
                field = text[at + 1:end].replace(b'""', b'"')
                at = end + 1
                if text[at:at + 1] not in (b'', separator):
                    raise Wrong('expected a separator after the quote that ends a field')
            else:
                end = text.find(separator, at)
                field = text[at:] if end < 0 else text[at:end]
                at += len(field)
                if b'\r' in field or b'\n' in field:
                    raise Wrong('a line break outside of quotes: expected the same line ends in the whole file')
                if b'"' in field:
                    raise Wrong('a quote inside a field that does not begin with one')
            found.append(field.decode())
            if at >= len(text):
                return found
            at += 1  # a field follows, even if it is empty

    def finish(self, text):
        """The record that begins with this line."""
        if self.is_open(text, False):
            text = self.join(text)
        return self.fields(text[:-1] if text.endswith(b'\r') else text)

    def header(self):
        """The names of the columns; decides which separator the file has.  A line sep=X before them, as spreadsheets write it, names one."""
        text = self.next_text()
        if text is not None and re.match(rb'"?sep=', text, re.I):
            named = re.fullmatch(rb'sep=([,;|\t: ])\r?', text, re.I)
            if not named:
                raise Wrong('expected behind sep= one of comma, semicolon, tab, colon, blank or |, and nothing else')
            if self.separator not in (None, named[1].decode()):
                raise Wrong('sep= names another separator than the mapping')
            self.separator = named[1].decode()
            text = self.next_text()
        if text is None:
            raise Wrong('expected a header, the names of the columns')
        self.separator = separator_of(text, self.separator)
        return self.finish(text)


def separator_of(line, named):
    """Of the first line, outside of quotes."""
    outside = re.sub(rb'"[^"]*("|$)', b'', line).decode(errors='replace')
    if (named or ',') in outside:
        return named or ','
    names = {',': 'commas', ';': 'semicolons', '\t': 'tabs', '|': 'vertical bars'}
    found = [one for one in names if one in outside]
    if not found:
        return named or ','
    if not named and len(found) == 1 and found[0] != '|':
        return found[0]
    raise Wrong(f'the header is one column with {" and ".join(names[one] for one in found[:2])}: name the "separator" in the mapping')


# --- the mapping: which columns become the id, items and fields of a document, and their types ---

TYPES = ('string', 'number', 'boolean', 'json')


class Mapping:
    """{"class","id","item","separator","null","columns":{name:{"item","field","type"}}}; all members but the class may be absent."""

    def __init__(self, given):
        found = self.found = read_mapping(given, ('class', 'id', 'item', 'separator', 'null', 'columns'))
        self.given, self.depth, self.null = given, given['limit_depth'] - 1, found.get('null')
        check_texts(found, ('class', 'id', 'item', 'separator', 'null'))
        if not isinstance(found.get('columns', {}), dict):
            raise Refused('expected an object as "columns"')
        self.separator = found.get('separator')
        if 'separator' in found and (len(self.separator) != 1 or self.separator not in SEPARATORS):
            raise Refused('expected as "separator" one of comma, semicolon, tab, colon, blank or |')
        self.class_ = given.get('class', found.get('class'))
        self.id = given['own'] if given['own'] is not None else found.get('id')
        if not is_class(self.class_):
            raise Refused(WRONG_CLASS)

    def bind(self, header):
        """Finds the columns in the header."""
        for place, name in enumerate(header):
            if header.index(name) != place:
                raise Wrong(of_column(name, 'it stands twice in the header'))
        if self.id is not None and self.id not in header:
            raise Wrong(of_column(self.id, 'it is not in the header'))
        self.width, self.id_place = len(header), header.index(self.id) if self.id is not None else 0
        self.items = {}
        listed = self.found.get('columns')
        for name in listed if listed is not None else [name for place, name in enumerate(header) if place != self.id_place]:
            try:
                self.add_column(header, name, listed[name] if listed is not None else {})
            except Refused as why:
                raise Wrong(of_column(name, str(why))) from None

    def add_column(self, header, name, listed):
        if name not in header:
            raise Refused('it is not in the header')
        if not isinstance(listed, dict):
            raise Refused('expected an object {"item","field","type"}')
        check_members(listed, ('item', 'field', 'type'))
        check_texts(listed, ('item', 'field', 'type'))
        type_, field = listed.get('type', 'string'), listed.get('field', name)
        if type_ not in TYPES:
            raise Refused('expected as "type" string, number, boolean or json')
        columns = self.items.setdefault(item_of(listed.get('item', self.found.get('item', 'Main')), self.given), [])
        if any(field == other for other, *_ in columns):
            raise Refused('another column becomes this field of the item')
        columns.append((field, quoted(field), header.index(name), type_, name))

    def value(self, text, type_):
        if text == self.null or (not text and type_ != 'string'):
            return 'null'
        if type_ == 'string':
            return quoted(text)
        if type_ == 'number' and NUMBER.fullmatch(text):
            return text
        if type_ == 'boolean' and text in ('1', '0', 'true', 'false'):
            return 'true' if text in ('1', 'true') else 'false'
        if type_ == 'json':
            try:
                read_json(text, self.depth)
                return text
            except ValueError:
                pass
        expected = {'number': 'a number', 'boolean': 'true, false, 1 or 0', 'json': 'a JSON text'}[type_]
        shown = text.encode()[:SHOWN].decode(errors='ignore')
        raise Wrong(f'expected {expected}, not "{shown}"')

    def document(self, record):
        """The items of a record: class, key and content."""
        if len(record) != self.width:
            raise Wrong(f'expected {self.width} fields, as in the header, not {len(record)}')
        for (class_, key), columns in self.items.items():
            parts = []
            for _, field, place, type_, name in columns:
                try:
                    parts.append(f'{field}:{self.value(record[place], type_)}')
                except Wrong as why:
                    raise Wrong(of_column(name, str(why))) from None
            yield class_, key, '{' + ','.join(parts) + '}'


def of_column(name, problem):
    return f'column "{name[:SHOWN]}": {problem}'


# --- the lines ---

def main(path, given):
    try:
        mapping = Mapping(given)
    except Refused as why:
        raise Refused(f'{given["name"]}: {why}') from None
    lines = Lines(path)
    records = Records(lines, mapping.separator)
    try:
        mapping.bind(records.header())
    except (Wrong, Failed) as why:
        raise Refused(f'{path}:{records.line}: {why}') from None
    print_line(size=lines.size)
    header_line, is_joined, has_rows = lines.number, lines.number > records.line, False
    while True:
        try:
            text = records.next_text()
            if text is None:
                break
            has_rows = True
            try:
                record = records.finish(text)
                id_ = record[mapping.id_place] if len(record) == mapping.width else ''
                items = list(mapping.document(record))
            except Wrong as why:
                print_line(line=records.line, last_line=lines.number, offset=lines.offset, wrong=quoted(str(why)))
                continue
            print_document(mapping.class_, id_, items, line=records.line, last_line=lines.number, offset=lines.offset)
        except (Failed, OSError) as why:
            print_line(line=records.line, offset=lines.offset, failed=quoted(getattr(why, 'strerror', None) or str(why)))
            return
    if not has_rows and is_joined:
        print_line(line=header_line, offset=lines.offset, failed='"no rows: a quoted field makes all lines one header"')
        return
    notes = [] if has_rows else [f'the file ends after its header, on line {header_line}: it has no rows']
    print_line(digest=quoted(lines.digest.hexdigest()), notes=f'[{",".join(map(quoted, notes))}]')


if __name__ == '__main__':
    run(main)

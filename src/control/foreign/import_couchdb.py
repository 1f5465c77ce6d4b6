"""import_couchdb: reads a database of CouchDB for `stampctl import-couchdb` (import-couchdb.md), from a file or from its server.

A file is an answer to _all_docs, {"total_rows":n,"offset":n,"rows":[row,…]}; or values one after the other, each {"docs":[document,…]},
[document,…], a document or a row.  On one line or on many; memory holds one.

From a server come all documents by pages of _all_docs, then what has changed meanwhile by pages of _changes, deletions included.  The sequence of
the database is read before its first document, so no change is missed between the two.  A page of _all_docs begins with the last document of the
one before, which may have been deleted: it is left out when it is there.  {"position":text,"documents":N} says how far the lines before it go.
"""
import base64
import hashlib
import http.client
import json
import os
import random
import re
import ssl
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out
from neutral import SHOWN, WRONG_CLASS, Refused, Wrong, check_depth, check_texts, is_class, item_of, past_blanks, print_document, print_line, quoted, read_mapping, read_value, run  # noqa: E402

READ, ROW_MOST, HEAD_MOST = 256 << 10, 256 << 20, 4096
TRUNCATED = 'the file ends inside a list or an object: it is truncated'
NO_DOCUMENTS = 'expected an answer of CouchDB to _all_docs, {"total_rows":…,"rows":[…]}, or documents: {"docs":[…]}, arrays of them, or one after the other'
STUB = 'attachments without their bytes: save it with attachments=true, or import it --without-attachments'
TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|"|[\[{\]}]', re.S)
BLANKS = re.compile(rb'[ \t\r\n]*')
MEMBER = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"[ \t\r\n]*:[ \t\r\n]*', re.S)
SCALAR = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^,\]} \t\r\n\[{"]+', re.S)


class Failed(Exception):
    """Nothing more can be read: why."""


# --- texts by their brackets only, so that one wrong document does not make a page unreadable ---

def end_of(text, at):
    """Where the object or array ends that begins there; 0: it does not."""
    depth = 0
    for found in TOKENS.finditer(text, at):
        one = found[0]
        if one == b'"':
            return 0
        depth += (one in (b'{', b'[')) - (one in (b'}', b']'))
        if depth == 0:
            return found.end()
    return 0


def value_end(text, at):
    if text[at:at + 1] in (b'{', b'['):
        return end_of(text, at)
    found = SCALAR.match(text, at)
    return found.end() if found else 0


def members_of(text):
    """Name and value of each member of an object, as they are written, as far as it can be read."""
    at = BLANKS.match(text).end()
    if text[at:at + 1] != b'{':
        return
    while True:
        found = MEMBER.match(text, BLANKS.match(text, at + 1).end())
        end = value_end(text, found.end()) if found else 0
        if not end:
            return
        yield found[1].decode(errors='replace'), text[found.end():end]
        at = BLANKS.match(text, end).end()
        if text[at:at + 1] != b',':
            return


def member(text, name):
    return next((value for found, value in members_of(text) if found == name), None)


def is_whole(text):
    at = BLANKS.match(text).end()
    end = end_of(text, at) if text[at:at + 1] == b'{' else 0
    return end > 0 and BLANKS.match(text, end).end() == len(text)


def elements_of(array):
    """The objects in it, as they are written."""
    at = 1
    while True:
        at = BLANKS.match(array, at).end()
        if array[at:at + 1] == b',':
            at = BLANKS.match(array, at + 1).end()
        end = end_of(array, at) if array[at:at + 1] == b'{' else 0
        if not end:
            return
        yield array[at:end]
        at = end


def wrap(id_, document, is_change):
    """A document as a row."""
    return b'{"id":' + id_ + (b',"changes":[]' if is_change else b'') + b',"doc":' + document + b'}'


# --- the mapping ---

class Mapping:
    """{"class","item","type","classes"}; names of members that begin with _ are CouchDB's own."""

    def __init__(self, given):
        found = read_mapping(given, ('class', 'item', 'type', 'classes'))
        self.given, self.type, self.classes, self.left_out = given, found.get('type'), found.get('classes'), 0
        self.leaves_attachments = bool(given['own'].get('leaves_attachments'))
        check_texts(found, ('class', 'item', 'type'))
        self.item = item_of(found.get('item', 'Main'), given)
        if ('type' in found) != ('classes' in found):
            raise Refused('expected both "type" and "classes", or none of them')
        if self.classes is not None and not isinstance(self.classes, dict):
            raise Refused('expected an object as "classes"')
        if not all(map(is_class, (self.classes or {}).values())):
            raise Refused('expected as each of the "classes" a capital, then up to 15 letters and digits')
        self.class_ = given.get('class', found.get('class'))
        if not is_class(self.class_) if self.class_ is not None else self.classes is None:
            raise Refused(WRONG_CLASS)

    def all_classes(self):
        return {*([self.class_] if self.class_ else []), *(self.classes or {}).values()}

    def class_of(self, type_):
        if self.classes and type_ in self.classes:
            return self.classes[type_]
        if self.class_:
            return self.class_
        shown = (type_ or '').encode()[:SHOWN].decode(errors='ignore')
        raise Wrong(f'the mapping has no class for "{shown}"')


def read_members(text, at, deep):
    """{name: (value, text)} of the object that begins there, and where it ends; a member of the name `deep` that is an object has its own
    members as its value.  Raises ValueError, with the place."""
    found = {}
    at = past_blanks(text, at + 1)
    while text[at:at + 1] != '}':
        if found:
            if text[at:at + 1] != ',':
                raise json.JSONDecodeError('expected , or }', text, at)
            at = past_blanks(text, at + 1)
        if text[at:at + 1] != '"':
            raise json.JSONDecodeError('expected the name of a member', text, at)
        start = at
        try:
            name, at = read_value(text, at)
            at = past_blanks(text, at)
            if text[at:at + 1] != ':':
                raise json.JSONDecodeError('expected :', text, at)
            start = at = past_blanks(text, at + 1)
            value, at = read_members(text, at, None) if name == deep and text[at:at + 1] == '{' else read_value(text, at)
        except json.JSONDecodeError:
            raise
        except ValueError as why:
            raise json.JSONDecodeError(str(why), text, start) from None
        if name in found:
            raise json.JSONDecodeError('a member that is there twice', text, start)
        found[name] = value, text[start:at]
        at = past_blanks(text, at)
    return found, at + 1


def read_row(row, depth):
    try:
        text = row.decode()
        check_depth(text, depth)
        found, end = read_members(text, past_blanks(text, 0), 'doc')
        if past_blanks(text, end) < len(text):
            raise json.JSONDecodeError('text behind the row', text, end)
        return found
    except UnicodeDecodeError as why:
        raise Wrong(f'not valid UTF-8, at byte {why.start + 1} of the row') from None
    except json.JSONDecodeError as why:
        raise Wrong(f'{why.msg}, at byte {len(why.doc[:why.pos].encode()) + 1} of the row') from None
    except ValueError as why:
        raise Wrong(str(why)) from None


def is_compressed(file, mime):
    """CouchDB compresses files of some types, and digests what it has stored: "encoding" says so, if the caller has asked for it; else the
    types are those of its default."""
    return 'encoding' in file or mime.startswith(('text/', 'application/javascript', 'application/json', 'application/xml'))


def file_of(name, file, name_most):
    """Key, media type and base64."""
    data, mime = file.get('data') if isinstance(file, dict) else None, file.get('content_type') if isinstance(file, dict) else None
    mime = mime if isinstance(mime, str) else ''
    if not isinstance(data, str):
        raise Wrong(STUB)
    if not 0 < len(name.encode()) <= name_most:
        raise Wrong('an attachment with a name over limit_name_bytes')
    digest = file.get('digest')
    try:
        content = base64.b64decode(data, validate=True)
        if isinstance(digest, str) and digest.startswith('md5-') and not is_compressed(file, mime):
            if base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode() != digest[4:]:
                raise Wrong('an attachment whose bytes are not those of its digest')
    except ValueError:
        raise Wrong('an attachment that is not in base64') from None
    return f'[{quoted(name)},{quoted(mime)},"{data}"]'


def print_row(mapping, row, where):
    """Prints the document of a row, or that it is left out.  Raises Wrong."""
    given = mapping.given
    found = read_row(row, given['limit_depth'] + 1)
    id_, (document, _), is_change = found.get('id', (None, ''))[0], found.get('doc', (None, '')), 'changes' in found
    is_number = found.get('id', ('', '"'))[1][:1] != '"'
    if not isinstance(id_, str) or is_number:
        raise Wrong('expected a row {"id","key","value","doc"}')
    value, is_deleted = found.get('value', ({}, ''))[0], found.get('deleted', (False, ''))[0] is True
    if id_.startswith('_design/') or (isinstance(value, dict) and value.get('deleted') is True):
        print_line(**where, left_out='true')
    elif is_change and is_deleted:
        print_document('', id_, [], **where, deletes=json.dumps(sorted(mapping.all_classes())))
    elif not is_change and isinstance(document, dict) and document.get('_deleted', (False, ''))[0] is True:
        print_line(**where, left_out='true')
    elif not isinstance(document, dict):
        raise Wrong('a row without its document: ask CouchDB for include_docs=true')
    else:
        type_ = document.get(mapping.type, (None, ''))
        class_ = mapping.class_of(type_[0] if type_[1][:1] == '"' else None)
        content = ','.join(f'{quoted(name)}:{text}' for name, (_, text) in document.items() if not name.startswith('_'))
        files = document.get('_attachments', (None, ''))[0]
        files = files if isinstance(files, dict) else {}
        more = {}
        if mapping.leaves_attachments:
            mapping.left_out += len(files)
        elif files:
            more['files'] = f'[{",".join(file_of(name, file, given["limit_name_bytes"]) for name, file in files.items())}]'
        if is_change:
            more['deletes'] = json.dumps(sorted(mapping.all_classes() - {class_}))
        print_document(class_, id_, [(*mapping.item, f'{{{content}}}')], **where, **more)


# --- a file ---

class Reader:
    """The rows or documents of a file; each byte is looked at once, but for what is not whole yet."""

    def __init__(self, path):
        try:
            self.file = open(path, 'rb')
            self.size = os.fstat(self.file.fileno()).st_size
            self.buffer = self.file.read(READ)
        except OSError as why:
            raise Refused(f'{path}: {why.strerror}') from None
        self.digest, self.offset, self.start, self.is_ended = hashlib.sha256(self.buffer), len(self.buffer), 0, not self.buffer
        self.place, self.is_answer, self.has_row, self.has_values = None, False, False, False

    def more(self):
        """As much again as is not whole yet."""
        if self.is_ended:
            return False
        try:
            got = self.file.read(max(READ, len(self.buffer) - self.start))
        except OSError as why:
            raise Failed(why.strerror) from None
        self.buffer, self.start, self.is_ended = self.buffer[self.start:] + got, 0, not got
        self.digest.update(got)
        self.offset += len(got)
        return bool(got)

    def peek(self):
        """The next byte that is no blank, which stays; b'': none."""
        while True:
            self.start = BLANKS.match(self.buffer, self.start).end()
            if self.start < len(self.buffer) or not self.more():
                return self.buffer[self.start:self.start + 1]

    def take(self, expected):
        if self.peek() != expected:
            return False
        self.start += 1
        return True

    def enters_list(self):
        """Enters the list of the object that begins here.  False: it has none, so it is a document or a row."""
        while len(self.buffer) - self.start < HEAD_MOST and self.more():
            pass
        head = self.buffer[self.start:self.start + HEAD_MOST]
        at = 1
        while True:
            found = MEMBER.match(head, BLANKS.match(head, at).end())
            if not found or found[1] in (b'_id', b'id'):
                return False
            if found[1] in (b'rows', b'docs') and head[found.end():found.end() + 1] == b'[':
                break
            at = value_end(head, found.end())
            at = BLANKS.match(head, at).end() if at else 0
            if not at or head[at:at + 1] != b',':
                return False
            at += 1
        is_rows = found[1] == b'rows'
        if is_rows and self.has_values:
            return False
        self.start += found.end() + 1
        self.place, self.is_answer, self.has_row, self.has_values = 'object', is_rows, False, True
        return True

    def take_row(self):
        while True:
            end = end_of(self.buffer, self.start)
            if end:
                row, self.start = self.buffer[self.start:end], end
                self.has_row = self.has_values = True
                return row
            if len(self.buffer) - self.start > ROW_MOST:
                raise Failed('a row of more than 256 MB')
            if not self.more():
                raise Failed(TRUNCATED)

    def leaves_list(self):
        """Behind the bracket of a list: does reading go on?"""
        is_closed = self.place == 'array' or self.take(b'}')
        self.place = None
        if is_closed and not self.is_answer:
            return True
        if is_closed and not self.peek():
            return False
        raise Failed('expected nothing but } behind the list of rows or documents')

    def rows(self):
        while True:
            if self.place is None and self.take(b'['):
                self.place, self.has_row = 'array', False
            if self.place is None and (self.peek() != b'{' or not self.enters_list()):
                if self.peek() == b'{':
                    yield self.take_row()
                    continue
                if self.has_values and not self.peek():
                    return
                raise Failed(NO_DOCUMENTS)
            if not self.take(b']'):
                if (not self.has_row or self.take(b',')) and self.peek() == b'{':
                    yield self.take_row()
                    continue
                raise Failed('expected a row or a document, an object, or the end of their list' if self.peek() else TRUNCATED)
            if not self.leaves_list():
                return


def is_remark(text):
    """Lines that pouchdb-dump and couchbackup write beside documents: {"version":…,"db_info":…}, {"seq":…}, {"name":"@cloudant/couchbackup",…}."""
    found = dict(members_of(text))
    return 'id' not in found and ((b',' not in text and 'seq' in found) or ('db_info' in found and 'version' in found) or found.get('name') == b'"@cloudant/couchbackup"')


def read_file(path, mapping):
    reader = Reader(path)
    print_line(size=reader.size)
    number = 0
    try:
        for row in reader.rows():
            number += 1
            where = {'line': number, 'offset': reader.offset}
            id_ = None if reader.is_answer else member(row, '_id')
            if id_:
                row = wrap(id_, row, False)
            elif not reader.is_answer and is_remark(row):
                print_line(**where, left_out='true')
                continue
            try:
                print_row(mapping, row, where)
            except Wrong as why:
                print_line(**where, wrong=quoted(str(why)))
    except Failed as why:
        print_line(line=number + 1, offset=reader.offset, failed=quoted(str(why)))
        return
    notes = [f'{mapping.left_out} attachments are left out'] if mapping.left_out else []
    print_line(digest=quoted(reader.digest.hexdigest()), notes=f'[{",".join(map(quoted, notes))}]')


# --- a server ---

PAGE_MOST, PAGE_LEAST, ANSWER_MOST, BATCH, CONNECT_S, PAUSE_MOST_S = 200, 2, 256 << 20, 1 << 20, 600, 60


class TooLarge(Exception):
    """An answer of more than 256 MB."""


class Server:
    """One connection, one request at a time; requests are repeated while it is away, fails, or sends half of an answer."""

    def __init__(self, url, own):
        self.url, self.patience, self.connection = url, own['patience'], None
        self.parts = urllib.parse.urlsplit(url)
        self.headers = {'Accept': 'application/json'}
        if own['login'] is not None:
            self.headers['Authorization'] = 'Basic ' + base64.b64encode(own['login'].encode(errors='surrogateescape')).decode()
        try:
            self.context = ssl.create_default_context(cafile=own['ca']) if self.parts.scheme == 'https' else None
        except OSError as why:
            raise Refused(f'{own["ca"]}: {why}') from None

    def ask(self, query):
        if not self.connection:
            kind, more = (http.client.HTTPSConnection, {'context': self.context}) if self.context else (http.client.HTTPConnection, {})
            self.connection = kind(self.parts.hostname, self.parts.port, timeout=CONNECT_S, **more)
        self.connection.request('GET', self.parts.path + query, headers=self.headers)
        answer = self.connection.getresponse()
        body = answer.read(ANSWER_MOST + 1)
        if len(body) > ANSWER_MOST:
            raise TooLarge
        if answer.length:
            raise http.client.IncompleteRead(body)
        return answer, body

    def get(self, query):
        """An object in JSON that is whole, as far as its brackets.  Raises TooLarge, Failed."""
        end, pause = None, 0.2
        while True:
            asked, answer = 0, None
            try:
                answer, body = self.ask(query)
                asked = int(answer.headers.get('Retry-After') or 0) if (answer.headers.get('Retry-After') or '0').isdigit() else 0
                if answer.status in (408, 429) or answer.status >= 500:
                    trouble = 'the server is busy or has failed'
                elif answer.status != 200:
                    raise Failed(self.refusal(answer, body))
                elif is_whole(body):
                    return body
                else:
                    trouble = 'the answer is no whole object in JSON'
            except (OSError, http.client.HTTPException) as why:
                trouble = str(why) or 'no answer'
            except TooLarge:
                self.close()
                raise
            if not answer:
                self.close()
            now = time.monotonic()
            end = now + self.patience if end is None else end
            if now > end or not self.patience:
                raise Failed(f'{self.url}: {trouble}; run the command again, it goes on')
            time.sleep(max(min(asked, PAUSE_MOST_S), pause * (0.5 + random.random() / 2)))
            pause = min(2 * pause, 10)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def refusal(self, answer, body):
        """{"error":…,"reason":…}, as CouchDB explains it."""
        try:
            reason = json.loads(body).get('reason')
        except (ValueError, AttributeError):
            reason = None
        return f'{self.url}: the server refuses it with status {answer.status}' + (f': {reason[:200]}' if isinstance(reason, str) else '')


class Follower:
    """How far a database has been brought in: `made`, its creation as it states it; `since`, the sequence that _changes goes on from;
    `after`, whether _all_docs is still being read, and up to which id.  All values are as CouchDB writes them."""

    def __init__(self, url, mapping, own):
        self.server, self.single, self.mapping, self.own = Server(url, own), None, mapping, own
        self.url, self.page_size, self.count, self.size = url, PAGE_MOST, own['documents'], 0

    def start(self):
        """Where it begins: before any document is read."""
        head = dict(members_of(self.server.get('')))
        since, made = head.get('update_seq'), head.get('instance_start_time')
        if not since:
            raise Failed(f'{self.url}: the answer is not that of a database of CouchDB')
        self.made, self.since, self.after, self.is_copying = made, since, None, True
        if self.own['position'] is not None:
            kept = dict(members_of(self.own['position'].encode()))
            if kept.get('made') != made:
                raise Failed(f'{self.url}: the database is another one than before: bring it in anew with --anew')
            self.since, self.after, self.is_copying = kept.get('since'), kept.get('after'), 'copies' in kept
        total = head.get('doc_count', b'')
        print_line(size=total.decode() if total.isdigit() else 0)

    def print_position(self):
        kept = {'made': self.made, 'since': self.since, 'copies': b'true' if self.is_copying else None, 'after': self.after if self.is_copying else None}
        text = '{' + ','.join(f'"{name}":{value.decode()}' for name, value in kept.items() if value is not None) + '}'
        print_line(position=quoted(text), documents=self.count)
        sys.stdout.flush()
        self.size = 0

    def query(self):
        mark = self.after if self.is_copying else self.since
        words = f'/{"_all_docs" if self.is_copying else "_changes"}?include_docs=true&attachments=true&att_encoding_info=true&limit={self.page_size}'
        if not mark:
            return words
        if not self.is_copying and mark.startswith(b'"'):  # its letters need no escapes
            mark = mark[1:-1]
        return words + ('&startkey=' if self.is_copying else '&since=') + urllib.parse.quote(mark, safe='-._~')

    def fetch(self):
        """Pages become smaller when documents are large, and larger again."""
        while True:
            try:
                return self.server.get(self.query())
            except TooLarge:
                pass
            if self.page_size == PAGE_LEAST:
                raise Failed(f'{self.url}: two documents with their attachments are more than 256 MB: leave them out, and attach their files by the server')
            self.page_size = max(self.page_size // 4, PAGE_LEAST)

    def whole(self, id_):
        """GET of a document whose attachments came as stubs.  It is the current revision: the one of the row, or a later one, whose change
        follows; the one of the row may have been compacted."""
        self.single = self.single or Server(self.url, self.own)
        try:
            document = self.single.get(f'/{urllib.parse.quote(json.loads(id_), safe="-._~")}?attachments=true&att_encoding_info=true')
        except TooLarge:
            raise Wrong('with its attachments it is more than 256 MB: attach its files by the server') from None
        except Failed as why:
            raise Failed(f'{why}\n{self.name(id_)}: its attachments could not be fetched; run the command again, it goes on') from None
        return wrap(id_, document, not self.is_copying)

    def name(self, id_):
        return f'{self.url}: the document {(id_ or b"")[:100].decode(errors="ignore")}'

    def print_one(self, row, id_):
        where = {'line': 0}
        try:
            print_row(self.mapping, row, where)
        except Wrong as why:
            if str(why) != STUB:
                raise
            try:
                row = self.whole(id_)
                print_row(self.mapping, row, where)
            except Wrong as why:
                raise Wrong('the server sends its attachments without their bytes' if str(why) == STUB else str(why)) from None
        self.size += len(row)

    def take_page(self):
        """Is there nothing behind it at this moment?  A server may send fewer rows than were asked for."""
        page, asked, count, before = dict(members_of(self.fetch())), self.page_size, 0, (self.after, self.since)
        rows = page.get('rows' if self.is_copying else 'results', b'')
        if not rows.startswith(b'['):
            raise Failed(f'{self.url}: expected an answer of CouchDB to _all_docs and _changes')
        known = self.after if self.is_copying else None
        for row in elements_of(rows):
            id_ = member(row, 'id')
            if not id_ or id_ != known:
                self.take_row(row, id_)
            count += 1
            mark = id_ if self.is_copying else member(row, 'seq')
            if not mark:
                raise Failed(f'{self.url}: expected rows with "id" and "seq"')
            if self.is_copying:
                self.after = mark
            else:
                self.since = mark
            if self.size >= BATCH:
                self.print_position()
        self.print_position()
        has_moved = (self.after, self.since) != before
        if self.is_copying:
            is_last = count == 0 or (count == 1 and not has_moved)
        else:
            is_last = count == 0 or (page['pending'] == b'0' if 'pending' in page else count < asked)
        if not is_last and not has_moved:
            raise Failed(f'{self.url}: the server sends the same page again')
        self.page_size = min(2 * self.page_size, PAGE_MOST)
        return is_last

    def take_row(self, row, id_):
        try:
            self.print_one(row, id_)
            self.count += 1
        except Wrong as why:
            self.print_position()  # what is before it is stored in any case
            print_line(wrong=quoted(f'{self.name(id_)}: {why}'))
        except Failed:
            self.print_position()
            raise

    def run(self):
        while self.is_copying and not self.take_page():
            pass
        if self.own['is_dry_run']:
            return
        self.is_copying, self.after = False, None
        self.print_position()
        while not self.take_page():
            pass


def follow(url, mapping, own):
    follower = Follower(url, mapping, own)
    try:
        follower.start()
    except (Failed, TooLarge) as why:
        raise Refused(str(why)) from None
    try:
        follower.run()
        print_line(digest=f'"{"0" * 64}"')
    except Failed as why:
        print_line(failed=quoted(str(why)))


def main(path, given):
    try:
        mapping = Mapping(given)
    except Refused as why:
        raise Refused(f'{given["name"]}: {why}') from None
    if path.startswith(('http://', 'https://')):
        follow(path, mapping, given['own'])
    else:
        read_file(path, mapping)


if __name__ == '__main__':
    run(main)

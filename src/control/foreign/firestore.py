"""firestore: reads an export of Firestore for `stampctl import-firestore`, and writes a line of JSON for each document.

    python3 -I firestore.py FOLDER DEPTH BYTES NOT_FINITE

FOLDER has a file *.overall_export_metadata, which leads to the metadata of groups of kinds in folders of it, and these name the
files output-0, output-1… beside them.  Only what the metadata names is read: another export may lie in a folder below.
DEPTH and BYTES are limit_depth and limit_content_bytes.  NOT_FINITE says what becomes of NaN and infinities, which JSON does not
have: the document is wrong (refuse), or they become null, or the texts "NaN", "Infinity" and "-Infinity" (text).

The first line is {"size":bytes of all files}, or {"refused":why}.  Then come the documents, in the order of the files:
{"place":file and byte,"offset":bytes read so far}, with "collection", "id", "is_nested" and the "content" of the document, or why it
has none in "wrong_key" or "wrong".  The last line is {"digest":of all files}, or {"failed":why no more can be read}.
"""
import base64
import datetime
import hashlib
import json
import math
import os
import signal
import stat
import struct
import sys

# --- protocol buffers: every size is compared with what is left before it is used ---

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
GROUPS_MOST, NUMBER_MOST = 8, (1 << 29) - 1


class Wrong(Exception):
    """These bytes are no message, or what it says is not taken."""


def take_varint(message, at):
    if at < len(message) and message[at] < 128:  # nearly all
        return message[at], at + 1
    value = 0
    for place, byte in enumerate(message[at:at + 10]):
        if place == 9 and byte & 127 > 1:
            break
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise Wrong


def take_head(message, at):
    head, at = take_varint(message, at)
    if not 0 < head >> 3 <= NUMBER_MOST:
        raise Wrong
    return head >> 3, head & 7, at


def take_content(message, kind, at):
    """What follows the head of a field that is no group."""
    if kind == VARINT:
        return take_varint(message, at)
    if kind == BYTES:
        size, at = take_varint(message, at)
    elif kind in (FIXED64, FIXED32):
        size = 8 if kind == FIXED64 else 4
    else:
        raise Wrong
    if size > len(message) - at:
        raise Wrong
    text = message[at:at + size]
    return text if kind == BYTES else int.from_bytes(text, 'little'), at + size


def take_group(message, number, start):
    """Up to the end of the group that has begun with this number; groups in it end in their order."""
    groups, at = [number], start
    while groups:
        end = at
        number, kind, at = take_head(message, at)
        if kind == GROUP_END:
            if groups.pop() != number:
                raise Wrong
        elif kind == GROUP:
            if len(groups) == GROUPS_MOST:
                raise Wrong
            groups.append(number)
        else:
            _, at = take_content(message, kind, at)
    return message[start:end], at


def fields(message):
    """(number, kind) and value of each field; of a group its bytes.  Raises Wrong where the message is none."""
    at = 0
    while at < len(message):
        number, kind, at = take_head(message, at)
        value, at = take_group(message, number, at) if kind == GROUP else take_content(message, kind, at)
        yield (number, kind), value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


# --- files: the log format of LevelDB, blocks with fragments of records ---

BLOCK, HEAD, RECORD_MOST = 32768, 7, 16 << 20
FULL, FIRST, MIDDLE, LAST = range(1, 5)
TRUNCATED = 'the file ends inside a record: it is truncated'


def make_table():
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        yield value


CRC32C = tuple(make_table())


def has_checksum(head, text):
    crc = 0xffffffff
    for byte in text:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 255]
    crc ^= 0xffffffff
    return (crc >> 15 | crc << 17 & 0xffffffff) + 0xa282ead8 & 0xffffffff == int.from_bytes(head, 'little')


class Damaged(Exception):
    """Why a file cannot be read on; `at` is where its record begins."""

    def __init__(self, at, why):
        super().__init__(why)
        self.at = at


def fragment(block, at):
    """Type and bytes of the fragment at this place of a block; type 0: padding up to its end.  Raises Wrong."""
    left = len(block) - at
    if left < HEAD <= BLOCK - at:
        raise Wrong(TRUNCATED)
    if left < HEAD or not block[at + 6]:
        if any(block[at:]):
            raise Wrong('expected zeros up to the end of the block: the file is damaged')
        if not at:
            raise Wrong('a block of zeros: the file is damaged')
        if len(block) < BLOCK:
            raise Wrong('the file ends inside a block: it is truncated')
        return 0, b''
    size = int.from_bytes(block[at + 4:at + 6], 'little')
    if block[at + 6] > LAST:
        raise Wrong('a record of an unknown type: this is no file of an export, or it is damaged')
    if size > BLOCK - at - HEAD:
        raise Wrong('a record that goes beyond its block: the file is damaged')
    if size > left - HEAD:
        raise Wrong(TRUNCATED)
    if not has_checksum(block[at:at + 4], block[at + 6:at + HEAD + size]):
        raise Wrong('a wrong checksum: the file is damaged')
    return block[at + 6], block[at + HEAD:at + HEAD + size]


def records(file, digest):
    """Each record, where it begins and where it ends.  Raises Damaged, OSError."""
    block, start, at, begin, record = b'', 0, 0, 0, None
    while True:
        if at == len(block):
            start += len(block)
            block, at = file.read(BLOCK), 0
            digest.update(block)
        if not block:
            if record is not None:
                raise Damaged(begin, TRUNCATED)
            return
        place = start + at
        try:
            kind, text = fragment(block, at)
        except Wrong as why:
            raise Damaged(place, str(why)) from None
        if record is None:
            begin = place
        if not kind:
            at = len(block)
            continue
        at += HEAD + len(text)
        if (kind in (FULL, FIRST)) != (record is None):
            raise Damaged(place, 'a record without its beginning: the file is damaged' if record is None else 'a record begins inside another one: the file is damaged')
        record = (record or b'') + text
        if len(record) > RECORD_MOST:
            raise Damaged(place, 'a record of more than 16 MB')
        if kind in (FULL, LAST):
            yield record, begin, start + at
            record = None


# --- the folder: names come from outside, and never lead out of it ---

FILES_MOST, GROUPS_OF_KINDS_MOST, METADATA_MOST = 100000, 100000, 16 << 20
WRONG_OVERALL = 'expected the metadata of an export of Firestore'
WRONG_GROUP = 'expected the metadata of a group of kinds, with the names of its files'


class Refused(Exception):
    """The folder is no export, or no whole one."""


def is_name(name):
    return 0 < len(name) <= 255 and b'\0' not in name and b'/' not in name and name not in (b'.', b'..')


def read_group(message):
    path, documents = None, 0
    for field, value in fields(message):
        if field == (2, BYTES):
            path = value.replace(b'\\', b'/')  # emulators on Windows write \ between folders
            if not all(is_name(part) for part in path.split(b'/')):
                path = None
        elif field == (3, VARINT):
            documents = signed(value)
    if path is None or documents < 0:
        raise Wrong
    return os.fsdecode(path), documents


def read_groups(record):
    """Path of the metadata and number of documents of each group of kinds."""
    groups = []
    try:
        for field, value in fields(record):
            if field == (1, BYTES):
                if len(groups) == GROUPS_OF_KINDS_MOST:
                    raise Refused('more than 100000 groups of kinds')
                groups.append(read_group(value))
    except Wrong:
        raise Refused(WRONG_OVERALL) from None
    return groups


def read_overall(path):
    """The version of the format, then a record with the groups; files of groups that are not read would be missed by nothing."""
    try:
        with open(path, 'rb', buffering=0) as file:
            log = (record for record, _, _ in records(file, hashlib.sha256()))
            version = next(log, None)
            if version not in (None, b'3'):
                raise Refused('an unknown version of the format of exports')
            groups = next(log, None)
            if version is None or groups is None:
                raise Refused(WRONG_OVERALL)
            groups = read_groups(groups)
            if next(log, None) is not None:
                raise Refused('a third record, behind the version and the groups of kinds: its documents would be missing')
            return groups
    except OSError as why:
        raise Refused(why.strerror) from None
    except Damaged as why:
        raise Refused(str(why)) from None


def names_of_group(path):
    """The names of the files of a group."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > METADATA_MOST:
            raise Refused(WRONG_GROUP)
        with open(path, 'rb') as file:
            text = file.read()
    except OSError as why:
        raise Refused(why.strerror) from None
    try:
        for group, kinds in fields(text):
            for field, name in fields(kinds) if group == (2, BYTES) else ():
                if field == (2, BYTES):
                    if not is_name(name):
                        raise Wrong
                    yield os.fsdecode(name)
    except Wrong:
        raise Refused(WRONG_GROUP) from None


def find_overall(folder):
    try:
        names = [name for name in os.listdir(folder) if name[0] != '.' and name.endswith('.overall_export_metadata')]
    except OSError as why:
        raise Refused(f'{folder}: {why.strerror}') from None
    if len(names) != 1:
        raise Refused(f'{folder}: expected the folder of an export, with one file *.overall_export_metadata')
    return f'{folder}/{names[0]}'


def measure(folder, name, base):
    try:
        status = os.stat(f'{folder}/{name}')
    except OSError as why:
        raise Refused(f'it names the file {base}: {why.strerror}') from None
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f'it names the file {base}: it is no regular file')
    return status.st_size


def read_folder(folder):
    """Name and size of each file, in the order of the metadata, and the number of documents in all."""
    files, total = [], 0
    path = overall = find_overall(folder)
    try:
        for group, documents in read_overall(overall):
            path = f'{folder}/{group}'
            for base in names_of_group(path):
                if len(files) == FILES_MOST:
                    raise Refused('more than 100000 files')
                name = group[:group.rfind('/') + 1] + base
                files.append((name, measure(folder, name, base)))
            total, path = total + documents, overall
            if total >= 1 << 63:
                raise Refused('more documents than can be counted')
    except Refused as why:
        raise Refused(f'{path}: {why}') from None
    return files, total


# --- keys: those of entities and of references have the same path with other numbers ---

LEVELS_MOST, KEY, PATH, NAMESPACE = 100, 13, 14, 20


def is_text(text):
    try:
        return '\0' not in text.decode()
    except UnicodeDecodeError:
        return False


def read_element(group, type_number, id_number, name_number):
    """Type and id; a number stands as Firestore shows it: __id7__."""
    type_ = name = b''
    number = None
    for field, value in fields(group):
        if field == (type_number, BYTES):
            type_ = value
        elif field == (name_number, BYTES):
            name = value
        elif field == (id_number, VARINT):
            number = signed(value)
    if (number is None) == (not name) or any(b'/' in text or not text or not is_text(text) for text in (type_, name or b'-')):
        raise Wrong
    return type_.decode(), name.decode() if number is None else f'__id{number}__'


def read_key(reference):
    """Collection, id, and whether it is one of a subcollection.  Raises Wrong with the reason."""
    path, is_elsewhere = None, False
    try:
        for field, value in fields(reference):
            if field == (PATH, BYTES):
                path = value
            elif field[0] == NAMESPACE and field[1] in (BYTES, GROUP) and value:
                is_elsewhere = True
        elements = []
        for field, value in () if is_elsewhere else fields(path or b''):
            if field != (1, GROUP) or len(elements) == LEVELS_MOST:
                raise Wrong
            elements.append(read_element(value, 2, 3, 4))
        if elements:
            return '/'.join(type_ for type_, _ in elements), '/'.join(id_ for _, id_ in elements), len(elements) > 1
    except Wrong:
        pass
    raise Wrong('a document in a namespace of Datastore' if is_elsewhere else 'expected a key with the path of a document')


def read_reference(group):
    elements = []
    try:
        for field, value in fields(group):
            if field[0] == NAMESPACE and field[1] in (BYTES, GROUP) and value:
                elements = None
                break
            if field == (PATH, GROUP):
                if len(elements) == LEVELS_MOST:
                    raise Wrong
                elements.append('/'.join(read_element(value, 15, 16, 17)))
    except Wrong:
        elements = []
    if elements:
        return '/'.join(elements)
    raise Wrong('a reference to a namespace of Datastore' if elements is None else 'expected a reference with the path of a document')


# --- values: a map is an entity inside a property, a list is several properties of one name ---

PROPERTY, RAW_PROPERTY, PROPERTIES_MOST = 14, 15, 1000000
TIME, POINT, BLOB, TEXT, BYTE_STRING, MAP, EMPTY_LIST = 7, 9, 14, 15, 16, 19, 24
MEANINGS = {0: (0,), 1: (0, TIME), 2: (0,), 3: (0, BLOB, TEXT, BYTE_STRING, MAP), 4: (0,), 5: (0, POINT), 12: (0,)}
KINDS = ((1, VARINT), (2, VARINT), (3, BYTES), (4, FIXED64), (5, GROUP), (12, GROUP))
WRONG_ENTITY = 'expected an entity of Datastore, as exports of Firestore have'
EPOCH = datetime.datetime(1970, 1, 1)
quoted = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps makes an encoder for each text


def time_text(time):
    """Of microseconds since 1970."""
    try:
        moment = EPOCH + datetime.timedelta(seconds=time // 1000000)
    except OverflowError:
        raise Wrong('a time that is not of the years 1 to 9999') from None
    part = f'.{time % 1000000:06}' if time % 1000000 else ''
    return f'"{moment.isoformat()}{part}Z"'


class Property:
    """Meaning, name, whether it is one of several, value."""

    def __init__(self, message, is_raw):
        self.meaning, self.name, self.is_multiple, self.value, self.is_raw = 0, None, False, None, is_raw
        try:
            for field, value in fields(message):
                if field == (1, VARINT):
                    self.meaning = value
                elif field[0] == 2 and field[1] in (BYTES, GROUP) and value:
                    raise Wrong('a property in an unknown form: it has the URI of a meaning')
                elif field == (3, BYTES):
                    self.name = value
                elif field == (4, VARINT):
                    self.is_multiple = value != 0
                elif field == (5, BYTES):
                    self.value = value
            if self.name is None or self.value is None:
                raise Wrong
        except Wrong as why:
            raise Wrong(str(why) or 'expected a property with a name and a value') from None
        if not is_text(self.name):
            raise Wrong('the name of a field that is not UTF-8, or has a NUL')


class Writer:
    """The fields of an entity as JSON, ordered by their names, within the limits.  Each raises Wrong with what is wrong and where."""

    def __init__(self, depth_most, bytes_most, not_finite):
        self.depth_most, self.bytes_most, self.not_finite = depth_most, bytes_most, not_finite
        self.parts, self.size = [], 0

    def write(self, entity):
        self.parts, self.size = [], 0
        self.add_entity(entity, 1)
        return ''.join(self.parts)

    def add(self, text):
        self.parts.append(text)
        self.size += len(text) if text.isascii() else len(text.encode())

    def check_size(self):
        if self.size > self.bytes_most:
            raise Wrong('an item of more than limit_content_bytes')

    def check_depth(self, depth):
        if depth > self.depth_most:
            raise Wrong('nested deeper than limit_depth')

    def add_double(self, bits):
        number = struct.unpack('<d', bits.to_bytes(8, 'little'))[0]
        if math.isfinite(number):
            self.add(next(text for text in ('%.15g' % number, '%.16g' % number, '%.17g' % number) if float(text) == number))
        elif self.not_finite == 'refuse':
            raise Wrong('a number that JSON does not have: NaN or infinity (see not_finite of a mapping)')
        elif self.not_finite == 'null':
            self.add('null')
        else:
            self.add('"NaN"' if math.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"')

    def add_point(self, group, depth):
        self.check_depth(depth)
        sides = {}
        try:
            for field, value in fields(group):
                if field in ((6, FIXED64), (7, FIXED64)):
                    sides[field[0]] = value
        except Wrong:
            sides = {}
        if len(sides) != 2:
            raise Wrong('expected a point with both its numbers')
        self.add('{"latitude":')
        self.add_double(sides[6])
        self.add(',"longitude":')
        self.add_double(sides[7])
        self.add('}')

    def add_text(self, text, meaning, depth):
        if meaning == MAP:
            self.add_entity(text, depth)
        elif meaning in (BLOB, BYTE_STRING):
            self.add(f'"{base64.b64encode(text).decode()}"')
        elif is_text(text):
            self.add(quoted(text.decode()))
        else:
            raise Wrong('a text that is not UTF-8, or has a NUL')

    def add_value(self, one, depth):
        number, value = 0, None
        try:
            for field, found in fields(one.value):
                if field not in KINDS:
                    raise Wrong(f'a value of an unknown type, {field[0]}')
                if number:
                    raise Wrong('more than one value')
                number, value = field[0], found
        except Wrong as why:
            raise Wrong(str(why) or 'expected a value') from None
        if one.meaning not in MEANINGS[number]:
            raise Wrong(f'a value of type {number} with an unknown meaning, {one.meaning}')
        if number == 0:
            self.add('null')
        elif number == 1:
            self.add(time_text(signed(value)) if one.meaning == TIME else str(signed(value)))
        elif number == 2:
            self.add('true' if value else 'false')
        elif number == 3:
            self.add_text(value, one.meaning, depth)
        elif number == 4:
            self.add_double(value)
        elif number == 5:
            self.add_point(value, depth)
        else:
            self.add(quoted(read_reference(value)))

    def add_list(self, values, depth):
        """`depth`: of what it holds."""
        self.check_depth(depth - 1)
        self.add('[')
        for number, one in enumerate(values):
            if not one.is_multiple:
                raise Wrong('a field that is there twice')
            if one.is_raw != values[0].is_raw:
                raise Wrong('a list with values in two places, whose order is not known')
            if number:
                self.add(',')
            try:
                self.add_value(one, depth)
            except Wrong as why:
                raise Wrong(f'element {number}: {why}') from None
            self.check_size()
        self.add(']')

    def add_field(self, values, depth):
        first = values[0]
        is_empty = len(values) == 1 and first.meaning == EMPTY_LIST and not first.value
        if len(values) == 1 and not first.is_multiple and not is_empty:
            self.add_value(first, depth + 1)
        else:
            self.add_list([] if is_empty else values, depth + 2)
        self.check_size()

    def add_entity(self, entity, depth):
        self.check_depth(depth)
        try:
            found = [(value, number == RAW_PROPERTY) for (number, kind), value in fields(entity) if number in (PROPERTY, RAW_PROPERTY) and kind == BYTES]
        except Wrong:
            raise Wrong(WRONG_ENTITY) from None
        if len(found) > PROPERTIES_MOST:
            raise Wrong('more than 1000000 properties')
        names = {}
        for one in [Property(message, is_raw) for message, is_raw in found]:
            names.setdefault(one.name, []).append(one)
        self.add('{')
        for number, name in enumerate(sorted(names)):
            self.add((',' if number else '') + quoted(name.decode()) + ':')
            try:
                self.add_field(names[name], depth)
            except Wrong as why:
                raise Wrong(f'field "{name[:60].decode(errors="ignore")}": {why}') from None
        self.add('}')


# --- the lines ---

def key_of(entity):
    try:
        found = [value for field, value in fields(entity) if field == (KEY, BYTES)]
    except Wrong:
        found = []
    if not found:
        raise Wrong(WRONG_ENTITY)
    return read_key(found[-1])


def describe(entity, writer):
    """The members of the line of a document, as text."""
    try:
        collection, id_, is_nested = key_of(entity)
    except Wrong as why:
        return f',"wrong_key":{quoted(str(why))}}}'
    head = f',"collection":{quoted(collection)},"id":{quoted(id_)},"is_nested":{str(is_nested).lower()}'
    try:
        return f'{head},"content":{writer.write(entity)}}}'
    except Wrong as why:
        return f'{head},"wrong":{quoted(str(why))}}}'


def print_line(line):
    sys.stdout.buffer.write(line.encode(errors='replace') + b'\n')


def print_documents(folder, files, total, writer):
    digest, before, count = hashlib.sha256(), 0, 0
    for name, size in files:
        digest.update(f'{name} {size}\n'.encode(errors='surrogateescape'))  # bytes cannot pass from one file to the next
        try:
            with open(f'{folder}/{name}', 'rb', buffering=0) as file:
                for record, begin, end in records(file, digest):
                    print_line(f'{{"place":{quoted(f"{name}, byte {begin}")},"offset":{before + end}{describe(record, writer)}')
                    count += 1
        except OSError as why:
            return f'{{"failed":{quoted(f"{name}: {why.strerror}")}}}'
        except Damaged as why:
            return f'{{"failed":{quoted(f"{name}, byte {why.at}: {why}")}}}'
        before += size
    if count != total:  # a file may have been cut between two records, where nothing in it shows that
        return f'{{"failed":"the files have {count} documents, and the metadata counts {total}: a file was cut, or is of another export"}}'
    return f'{{"digest":"{digest.hexdigest()}"}}'


def main(folder, depth, size, not_finite):
    for name in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(name, signal.SIG_DFL)
    sys.setrecursionlimit(1000 + 20 * int(depth))
    try:
        files, total = read_folder(folder)
    except Refused as why:
        print_line(f'{{"refused":{quoted(str(why))}}}')
        return
    print_line(f'{{"size":{sum(size for _, size in files)}}}')
    print_line(print_documents(folder, files, total, Writer(int(depth), int(size), not_finite)))


if __name__ == '__main__':
    main(*sys.argv[1:])

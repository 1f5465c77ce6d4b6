"""import_firestore: reads an export of Firestore for `stampctl import-firestore` (import-firestore.md), a document for each entity.

FOLDER has a file *.overall_export_metadata, which leads to the metadata of groups of kinds in folders of it, and these name the
files output-0, output-1… beside them.  Only what the metadata names is read: another export may lie in a folder below.
"""
import base64
import datetime
import hashlib
import math
import os
import stat
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out
from neutral import SHOWN, WRONG_CLASS, Refused, Wrong, check_texts, is_class, item_of, print_document, print_line, quoted, read_mapping, run  # noqa: E402

# --- protocol buffers: every size is compared with what is left before it is used ---

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
GROUPS_MOST, NUMBER_MOST = 8, (1 << 29) - 1


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


# --- the mapping: a class gets the documents of one collection, so that no two have the same id ---

COLLECTIONS_SHOWN = 100


def short(text):
    return text.encode()[:SHOWN].decode(errors='ignore')


class Mapping:
    """{"class","item","classes":{collection:class or null},"not_finite"}; all members may be absent."""

    def __init__(self, given):
        found = read_mapping(given, ('class', 'item', 'classes', 'not_finite'))
        self.classes, self.first, self.without, self.others = found.get('classes'), None, {}, 0
        check_texts(found, ('class', 'item'))
        self.item = item_of(found.get('item', 'Main'), given)
        self.not_finite = found.get('not_finite', 'refuse')
        if self.not_finite not in ('refuse', 'null', 'text'):
            raise Refused('expected as "not_finite" "refuse", "null" or "text"')
        self.check_classes('classes' in found)
        self.class_ = given.get('class', found.get('class'))
        if not is_class(self.class_) if self.class_ is not None else self.classes is None:
            raise Refused(WRONG_CLASS)
        if self.class_ is not None and self.class_ in (self.classes or {}).values():
            raise Refused('expected as the class one that "classes" does not have: two documents could have the same id')

    def check_classes(self, has_some):
        if has_some and not isinstance(self.classes, dict):
            raise Refused('expected an object as "classes"')
        stored = [class_ for class_ in (self.classes or {}).values() if class_ is not None]
        if not all(map(is_class, stored)):
            raise Refused('expected as each of the "classes" null, or a capital, then up to 15 letters and digits')
        if len(set(stored)) < len(stored):
            raise Refused('expected another class for each collection: two documents could have the same id')

    def class_of(self, collection, is_nested):
        """None: its documents are left out.  Raises Wrong without a reason; the notes have it."""
        if self.classes is not None and collection in self.classes:
            return self.classes[collection]
        if not is_nested and self.class_ is not None:
            self.first = collection if self.first is None else self.first
            if self.first == collection:
                return self.class_
        if collection in self.without or len(self.without) < COLLECTIONS_SHOWN:
            self.without.setdefault(collection, [self.explain(collection, is_nested), 0])[1] += 1
        else:
            self.others += 1
        raise Wrong

    def explain(self, collection, is_nested):
        if is_nested or self.class_ is None:
            return f'the mapping has no class for the {"subcollection" if is_nested else "collection"} "{short(collection)}"'
        return f'the class {self.class_} is that of the collection "{short(self.first)}": name one for "{short(collection)}" in "classes" of a mapping'

    def notes(self):
        found = [f'{why} (documents: {count})' for why, count in self.without.values()]
        return found + [f'{self.others} documents of further collections without a class'] * bool(self.others)


# --- the lines ---

def key_of(entity):
    try:
        found = [value for field, value in fields(entity) if field == (KEY, BYTES)]
    except Wrong:
        found = []
    if not found:
        raise Wrong(WRONG_ENTITY)
    return read_key(found[-1])


def print_entity(entity, writer, mapping, name_most, place, where):
    try:
        collection, id_, is_nested = key_of(entity)
    except Wrong as why:
        print_line(**where, wrong=quoted(f'{place}: {why}'))
        return
    try:
        class_ = mapping.class_of(collection, is_nested)
    except Wrong:
        print_line(**where, wrong='null')
        return
    if class_ is None:
        print_line(**where, left_out='true')
        return
    try:
        if len(id_.encode()) > name_most:
            raise Wrong(f'expected as the id a text of 1 to {name_most} bytes')
        print_document(class_, id_, [(*mapping.item, writer.write(entity))], **where)
    except Wrong as why:
        print_line(**where, wrong=quoted(f'{place}: {short(id_)} of {short(collection)}: {why}'))


def print_documents(folder, files, total, writer, mapping, name_most):
    digest, before, count = hashlib.sha256(), 0, 0
    for name, size in files:
        digest.update(f'{name} {size}\n'.encode(errors='surrogateescape'))  # bytes cannot pass from one file to the next
        try:
            with open(f'{folder}/{name}', 'rb', buffering=0) as file:
                for record, begin, end in records(file, digest):
                    count += 1
                    print_entity(record, writer, mapping, name_most, f'{name}, byte {begin}', {'line': count, 'offset': before + end})
        except OSError as why:
            print_line(line=count + 1, failed=quoted(f'{name}: {why.strerror}'))
            return
        except Damaged as why:
            print_line(line=count + 1, failed=quoted(f'{name}, byte {why.at}: {why}'))
            return
        before += size
    if count != total:  # a file may have been cut between two records, where nothing in it shows that
        print_line(line=count + 1, failed=f'"the files have {count} documents, and the metadata counts {total}: a file was cut, or is of another export"')
        return
    print_line(digest=quoted(digest.hexdigest()), notes=f'[{",".join(map(quoted, mapping.notes()))}]')


def main(folder, given):
    try:
        mapping = Mapping(given)
    except Refused as why:
        raise Refused(f'{given["name"]}: {why}') from None
    files, total = read_folder(folder)
    print_line(size=sum(size for _, size in files))
    writer = Writer(given['limit_depth'], given['limit_content_bytes'], mapping.not_finite)
    print_documents(folder, files, total, writer, mapping, given['limit_name_bytes'])


if __name__ == '__main__':
    run(main)

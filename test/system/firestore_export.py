"""Writes exports of Firestore: entities of Datastore as protocol buffers, in files of the log format of LevelDB."""
import datetime
import re
import struct

BLOCK = 32768
TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


# --- protocol buffers ---

def varint(number):
    number &= (1 << 64) - 1
    text = b''
    while number > 127:
        text, number = text + bytes([number & 127 | 128]), number >> 7
    return text + bytes([number])


def number(field, value):
    return varint(field << 3) + varint(value)


def double(field, value):
    return varint(field << 3 | 1) + struct.pack('<d', value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def group(field, *parts):
    return varint(field << 3 | 3) + b''.join(parts) + varint(field << 3 | 4)


# --- entities ---

class Point(tuple):
    """Latitude and longitude."""


class Reference(str):
    """users/ann"""


class Raw(tuple):
    """The meaning of a property, and the bytes of its value."""


def element(type_, id_, numbers):
    of_id = number(numbers[1], id_) if isinstance(id_, int) else text(numbers[2], id_)
    return text(numbers[0], type_) + of_id


def pairs(path):
    """users/ann/orders/7 or the same as a list, in which an id may be a number."""
    parts = path.split('/') if isinstance(path, str) else path
    return zip(parts[::2], parts[1::2])


def key(path):
    elements = b''.join(group(1, element(type_, id_, (2, 3, 4))) for type_, id_ in pairs(path))
    return text(13, 'a-project') + text(14, elements) + text(23, '')


def value_of(value):
    """(meaning, bytes) of a value that is no list."""
    if isinstance(value, Raw):
        return value
    if value is None:
        return 0, b''
    if isinstance(value, bool):
        return 0, number(2, value)
    if isinstance(value, int):
        return 0, number(1, value)
    if isinstance(value, float):
        return 0, double(4, value)
    if isinstance(value, Reference):
        return 0, group(12, text(13, 'a-project'), *(group(14, element(type_, id_, (15, 16, 17))) for type_, id_ in pairs(value)))
    if isinstance(value, str):
        return 15 if len(value) > 500 else 0, text(3, value)
    if isinstance(value, bytes):
        return 14 if len(value) > 500 else 16, text(3, value)
    if isinstance(value, datetime.datetime):
        return 7, number(1, (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
    if isinstance(value, Point):
        return 9, group(5, double(6, value[0]), double(7, value[1]))
    return 19, text(3, text(13, text(13, '') + text(14, '')) + properties(value))


def one(name, meaning, value, multiple):
    where = 14 if meaning in (0, 7, 9, 16) else 15
    return text(where, (number(1, meaning) if meaning else b'') + text(3, name) + number(4, multiple) + text(5, value))


def properties(fields):
    found = b''
    for name, value in fields.items():
        if value == [] and isinstance(value, list):
            found += one(name, 24, b'', False)
        elif isinstance(value, list):
            values = [value_of(each) for each in value]
            if any(meaning in (14, 15, 19) for meaning, _ in values):  # all of a list are in one place
                found += b''.join(text(15, number(1, meaning) + text(3, name) + number(4, True) + text(5, each)) for meaning, each in values)
            else:
                found += b''.join(one(name, *each, True) for each in values)
        else:
            found += one(name, *value_of(value), False)
    return found


def entity(path, fields):
    """`fields`: an object, or the bytes of its properties."""
    first = next(pairs(path))
    return text(13, key(path)) + text(16, group(1, element(*first, (2, 3, 4)))) + (fields if isinstance(fields, bytes) else properties(fields))


# --- files ---

def fragment(type_, data):
    crc = crc32c(bytes([type_]) + data)
    return struct.pack('<IHB', ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff, len(data), type_) + data


def log(records, is_padded=False):
    """A file of these records, as LevelDB writes it."""
    file = bytearray()
    for record in records:
        is_first = True
        while True:
            left = BLOCK - len(file) % BLOCK
            if left < 7:
                file += bytes(left)
                continue
            part, record = record[:left - 7], record[left - 7:]
            file += fragment({(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[is_first, not record], part)
            is_first = False
            if not record:
                break
    if is_padded:
        file += bytes(-len(file) % BLOCK)
    return bytes(file)


# --- metadata ---

def count(content):
    """The records that begin in a file, which may be damaged."""
    found, at = 0, 0
    while at + 7 <= len(content):
        if BLOCK - at % BLOCK < 7 or not content[at + 6]:
            at += BLOCK - at % BLOCK
            continue
        found += content[at + 6] in (1, 2)
        at += 7 + int.from_bytes(content[at + 4:at + 6], 'little')
    return found


def group_metadata(names):
    """As the service writes it: of the export, the names of the files, and for which kinds."""
    return text(1, text(1, 'export_entities') + number(2, 1) + number(3, 2)) + text(2, text(1, '__all__') + b''.join(text(2, name) for name in names)) + text(3, text(1, text(1, '__all__')))


def overall_metadata(groups, version='3'):
    """Of {path of metadata: (documents, bytes)}."""
    return log([version.encode(), b''.join(text(1, text(1, number(1, 2) + number(3, 3)) + text(2, path) + number(3, documents) + number(4, size)) for path, (documents, size) in groups.items())])


def write(folder, files, separator='/'):
    """An export of files {name: bytes or records} below `folder`, with its metadata unless the files have it."""
    contents = {name: content if isinstance(content, bytes) else log(content) for name, content in files.items()}
    groups, names = {}, {}
    for name, content in contents.items():
        where, slash, base = name.rpartition('/')
        if re.fullmatch('output-(0|[1-9][0-9]*)', base):
            path = f'{where}{slash}{where.replace("/", "_")}.export_metadata'
            documents, size = groups.get(path, (0, 0))
            groups[path] = documents + count(content), size + len(content)
            names.setdefault(path, []).append(base)
    metadata = {path: group_metadata(found) for path, found in names.items()}
    metadata['export.overall_export_metadata'] = overall_metadata({path.replace('/', separator): group for path, group in groups.items()})
    for name, content in {**metadata, **contents}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder

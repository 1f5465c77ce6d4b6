"""What a namespace's schema promises, said again in Python: which values of contents are exported."""
import hashlib
import json
import math
import re
import unicodedata


STRING_MOST, HASH_MOST, LIST_MOST = 1024, 255, 1000  # of a string, or what a hash is made of, that stands for itself
BOUNDS = {'int': 2**31, 'long': 2**63}
COLUMNS = {'string': 'text', 'long': 'bigint', 'int': 'integer', 'double': 'double precision', 'hash': 'text', 'folded': 'text'}


class Number(str):
    """A number of JSON as it is written."""


def read(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


def characters(value):
    """What a hash is made of; None: there is none."""
    if not isinstance(value, (str, bool)):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    octets = text.encode()
    return text if len(octets) <= HASH_MOST else f'{len(octets)} bytes, sha256 {hashlib.sha256(octets).hexdigest()}'.ljust(HASH_MOST + 1)


MARKS = '[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]'
LETTERS = {'ß': 'ss', 'æ': 'ae', 'œ': 'oe', 'þ': 'th', 'ł': 'l', 'ø': 'o', 'đ': 'd', 'ð': 'd', 'ħ': 'h', 'ŧ': 't', 'ı': 'i', 'ς': 'σ', '\U0010ffff': ''}


def folded(text):
    """Without differences of case, accents and compatible forms."""
    small = unicodedata.normalize('NFKC', re.sub(MARKS, '', unicodedata.normalize('NFKD', text)).lower())
    return small.translate(str.maketrans(LETTERS))


def export_one(value, kind):
    """The value of a field; None: there is none."""
    if kind == 'hash':
        return characters(value)
    if kind in ('string', 'folded'):
        text = value if isinstance(value, str) and not isinstance(value, Number) else None
        return folded(text) if text and kind == 'folded' else text
    if not isinstance(value, Number):
        return None
    if kind == 'double':
        number = float(value)
        is_too_small = number == 0 and re.search('[1-9]', re.split('[eE]', value)[0])
        return None if math.isinf(number) or is_too_small else number
    if not re.fullmatch('-?[0-9]+', value):
        return None
    number = int(value)
    return number if -BOUNDS[kind] <= number < BOUNDS[kind] else None


def stored(value):
    """What a column has for it: of a long string its first characters, a mark and its SHA-256."""
    if isinstance(value, list):
        return [stored(one) for one in value]
    octets = value.encode() if isinstance(value, str) else b''
    if len(octets) <= STRING_MOST:
        return value
    return octets[:STRING_MOST].decode(errors='ignore') + '\U0010ffff' + hashlib.sha256(octets).hexdigest()


def export(value, kind):
    if not kind.endswith('[]'):
        return export_one(value, kind)
    if not isinstance(value, list) or len(value) > LIST_MOST:
        return None
    return [element for element in (export_one(one, kind[:-2]) for one in value) if element is not None]


def member(value, name):
    """[the member], if there is one."""
    return [value[name]] if isinstance(value, dict) and name in value else []


def follow(content, path, is_list):
    """What the names of a path lead to; of a list all of it, where a list on the way stands for its elements."""
    values, passed = [content], False
    for name in path:
        passed = passed or (is_list and any(isinstance(value, list) for value in values))
        values = [one for value in values for part in (value if is_list and isinstance(value, list) else [value]) for one in member(part, name)]
    if not is_list:
        return values[0] if values else None
    if not passed and not any(isinstance(value, list) for value in values):
        return None
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


def export_content(text, fields, paths=()):
    """{field: value} of a content; `paths`: of the fields that are elsewhere than under their names."""
    content = read(text)
    members = content if isinstance(content, dict) else {}
    return {name: export(follow(members, paths[name], kind.endswith('[]')) if name in paths else members.get(name), kind) for name, kind in fields.items()}


def declared(fields, paths):
    """The fields as a schema declares them."""
    return {name: {'type': kind, 'at': paths[name]} if name in paths else kind for name, kind in fields.items()}


def check_side(stack, ns, document_class, item_class, fields, paths=()):
    """The side table is what the contents say; returns how many rows it has."""
    table = f'x_{document_class}_{item_class}'
    columns = ', '.join(f'"{name}"' for name in fields)
    wanted = {(id, key): {name: stored(value) for name, value in export_content(content, fields, paths).items()} for id, key, content in stack.psql(
        ns, 'select id, key, content from item where class = %s and iclass = %s and content is not null and not raw',
        (document_class, item_class))}
    found = {(row[0], row[1]): dict(zip(fields, row[2:])) for row in stack.psql(ns, f'select id, key, {columns} from "{table}"')}
    assert found == wanted
    for name, kind in fields.items():
        if not kind.endswith('[]'):
            continue
        elements = set(stack.psql(ns, f'select id, key, value from "{table}_{name}"'))
        assert elements == {(*place, value) for place, row in wanted.items() for value in row[name] or []}
    return len(found)


class Schemas:
    """stampctl schema, on the databases of a stack."""

    def __init__(self, stack, home):
        self.stack, self.home = stack, home

    def command(self, *words):
        return self.stack.admin_words('schema', *words)

    def run(self, *words, status=0, text=None, **more):
        done = self.stack.admin('schema', *words, status=status, text=text, **more)
        return done.out if status == 0 else done.error

    def set(self, ns, classes, status=0, searches=None):
        return self.run('set', ns, '-', text=json.dumps({'classes': classes, **({'searches': searches} if searches else {})}), status=status)

    def apply(self, ns, classes, *words, searches=None, **more):
        self.set(ns, classes, searches=searches)
        return self.run('apply', ns, *words, **more)

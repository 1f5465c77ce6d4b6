"""neutral: what the programs share that read files of other systems for stampctl: mappings, and the lines that they print.

foreign_reader.h describes the lines and what the programs get on their standard input.
"""
import difflib
import json
import re
import signal
import sys

CLASS = re.compile('[A-Z][A-Za-z0-9]{0,15}')
NUMBER = re.compile(r'-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
SURROGATE = re.compile('[\ud800-\udfff]')
WRONG_CLASS = 'expected as the class of documents a capital, then up to 15 letters and digits'
SHOWN = 60
quoted = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps makes an encoder for each text


class Refused(Exception):
    """Nothing can be imported: why."""


class Wrong(Exception):
    """This document is not right: why; without a reason: the notes have it."""


def check_text(text):
    if '\0' in text or SURROGATE.search(text):
        raise ValueError('a NUL character or half a pair of surrogates')
    return text


def object_of(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError('a member that is there twice')
    return found


def refuse_constant(name):
    raise ValueError(f'{name} is no value of JSON')


class Number(str):
    """A number as it is written."""


STRICT = json.JSONDecoder(object_pairs_hook=object_of, parse_constant=refuse_constant, parse_int=Number, parse_float=Number)
BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{\]}]', re.S)


BLANK, BLANKS = (' ', '\t', '\r', '\n'), re.compile('[ \t\r\n]*')


def depth_of(text):
    depth = deepest = 0
    for found in BRACKETS.finditer(text):
        one = found[0]
        if one in '[{':
            depth += 1
            deepest = max(deepest, depth)
        elif one in ']}':
            depth -= 1
    return deepest


def texts_of(value):
    """All texts of a value, those of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)


def check_depth(text, depth):
    if text.count('{') + text.count('[') > depth and depth_of(text) > depth:
        raise ValueError(f'nested deeper than {depth}')


def read_value(text, at):
    """The value that begins there, and where it ends."""
    try:
        value, end = STRICT.scan_once(text, at)
    except StopIteration:
        raise ValueError('expected a value') from None
    for one in texts_of(value) if text.find('\\u', at, end) >= 0 else ():
        check_text(one)
    return value, end


def past_blanks(text, at):
    return BLANKS.match(text, at).end() if text[at:at + 1] in BLANK else at


def read_json(text, depth):
    """A JSON text as the server takes it.  Raises ValueError."""
    check_depth(text, depth)
    value, end = read_value(text, past_blanks(text, 0))
    if past_blanks(text, end) < len(text):
        raise ValueError('text behind the value')
    return value


# --- mappings ---

def check_members(found, known):
    for name in found:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            raise Refused(f'Unknown member "{name[:SHOWN]}"' + (f'; did you mean "{near[0]}"?' if near else f'; known are {", ".join(known[:-1])} and {known[-1]}.'))


def read_mapping(given, known):
    """The members of the mapping that the command names, or none."""
    if given.get('mapping') is None:
        return {}
    try:
        mapping = read_json(given['mapping'], 4)
    except ValueError as why:
        raise Refused(f'expected JSON: {why}') from None
    if not isinstance(mapping, dict):
        raise Refused('expected an object')
    check_members(mapping, known)
    return mapping


def check_texts(found, names):
    if any(name in found and type(found[name]) is not str for name in names):
        listed = ', '.join(f'"{name}"' for name in names[:-1])
        raise Refused(f'expected texts as {listed} and "{names[-1]}"')


def is_class(name):
    return isinstance(name, str) and CLASS.fullmatch(name) is not None


def item_of(text, given):
    """Class and key of "Class" of a singleton, or "Class/key", of an item that clients may write."""
    class_, _, key = text.partition('/')
    if not is_class(class_) or class_ == 'P' or len(key.encode()) > given['limit_name_bytes']:
        raise Refused('expected as "item" a class of items, or class/key')
    return class_, key


# --- lines ---

def print_line(**members):
    """Values are JSON texts."""
    line = ','.join(f'"{name}":{value}' for name, value in members.items())
    sys.stdout.buffer.write(b'{' + line.encode(errors='replace') + b'}\n')


def print_document(class_, id_, items, **members):
    """`items`: class, key and content, a JSON text, of each; one with line breaks is printed as a string."""
    listed = ','.join(f'[{quoted(item)},{quoted(key)},{content}]' if '\n' not in content else f'[{quoted(item)},{quoted(key)},null,{quoted(content)}]'
                      for item, key, content in items)
    print_line(**{'class': quoted(class_), 'id': quoted(id_), 'items': f'[{listed}]', **members})


def run(main):
    """Calls main(path, given): what the command gives is in `given`."""
    for name in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(name, signal.SIG_DFL)
    given = json.loads(sys.stdin.buffer.read())
    sys.setrecursionlimit(1000 + 20 * given['limit_depth'])
    try:
        main(sys.argv[1], given)
    except Refused as why:
        print_line(refused=quoted(str(why)))
    sys.stdout.flush()

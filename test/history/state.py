"""What a document is, written as one text: its birth and its items with their versions.  Clients write what they saw in
this form, the checker computes what they should have seen; the texts must be equal.

    ctime;Class.key@version=json;…      in the order of the names; a document that does not exist is ''

`Last` is a singleton with the name of the operation that wrote last, so each version of a document tells who made it.
`Line.<operation>` is a line of its own for an operation, `List` a list that the module appends to, `Count` how often.
"""
import json

LIST_LONGEST = 16


def compact(value):
    return json.dumps(value, separators=(',', ':'))


def pack(ctime, items):
    """`items`: name -> (version, content as JSON text)."""
    return ';'.join([str(ctime), *(f'{name}@{version}={content}' for name, (version, content) in sorted(items.items()))])


def unpack(text):
    """The birth and the items of such a text."""
    ctime, *rest = text.split(';')
    items = {}
    for one in rest:
        name, _, content = one.partition('=')
        name, _, version = name.rpartition('@')
        items[name] = (int(version), content)
    return int(ctime), items


def name_of(item):
    return item['c'] if item.get('k') is None else f'{item["c"]}.{item["k"]}'


def state_of(document):
    """The text for a document as `get` gives it."""
    if not document['v']:
        return ''
    return pack(document['ct'], {name_of(item): (item['v'], compact(item['j'])) for item in document['items']})


def change(state, actions, version, operation):
    """The text after an operation's actions on one document:
    ['set', name, content]  ['del', name]  ['push']  ['only', [name…]]  ['end']  ['renew']"""
    is_there = state != ''
    ctime, items = unpack(state) if is_there else (version, {})
    for action, *rest in actions:
        if action == 'end':
            is_there, ctime, items = False, version, {}
            continue
        if action == 'renew':
            ctime, items = version, {}
        elif action == 'set':
            name, content = rest
            if items.get(name, (0, None))[1] != content:
                items[name] = (version, content)
        elif action == 'del':
            items.pop(rest[0], None)
        elif action == 'only':
            items = {name: item for name, item in items.items() if name in rest[0]}
        elif action == 'push':
            push(items, version, operation)
        is_there = True
    return pack(ctime, items) if is_there else ''


def push(items, version, operation):
    own = compact(operation)
    items['Last'] = items[f'Line.{operation}'] = (version, own)
    chain = json.loads(items['List'][1]) if 'List' in items else []
    items['List'] = (version, compact([*chain, operation][-LIST_LONGEST:]))
    items['Count'] = (version, str(int(items['Count'][1]) + 1 if 'Count' in items else 1))


def operations_in(state):
    """(operation, version) of each item that names the operation that wrote it, and the operations of the list."""
    named, listed = [], []
    for name, (version, content) in unpack(state)[1].items():
        if name == 'Last' or name.startswith('Line.'):
            named.append((json.loads(content), version))
        elif name == 'List':
            listed = json.loads(content)
    return named, listed

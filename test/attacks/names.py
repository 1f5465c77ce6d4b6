#!/usr/bin/env python3
"""A stranger guesses the names of classes, items, fields and collections: those that the schema of `team` declares, and no rule shows.  Refused:
the answer is that for a name which is not declared."""
import json
import re

from kit import hold, Impossible, REFUSED, run


def invented(name):
    """As long as the name, so that the answers have as many bytes."""
    return name[0] + ''.join('q' if letter != 'q' else 'z' for letter in name[1:])


def declared(target):
    """Of each class that no rule names: its first item, field and collection."""
    classes = (target.administer('team', 'schema', {}).get('schema') or {}).get('classes', {})
    rules = target.administer('z', 'ns', {'get': 'team'}).get('rules') or {}
    for name, class_ in classes.items():
        items = [(item, next(iter(content.get('fields', {})), '')) for item, content in class_.get('items', {}).items()]
        names = [name, *next((one for one in items if one[1]), ('', '')), next(iter(class_.get('collections', {})), '')]
        if name not in rules and all(names):
            yield names


def questions(names):
    """(operation, param)"""
    class_, item, field, collection = names
    condition = {'f': field, 't': 'eq', 'v1': 'red'}
    yield 'find', {'c': class_, 'i': item}
    yield 'find', {'c': class_, 'i': item, 'where': [condition]}
    yield 'find', {'c': class_, 'i': item, 'want': 'items', 'order': field}
    yield 'find', {'c': class_, 'i': item, 'want': {'max': [field]}}
    yield 'collection', {'c': class_, 'collection': collection, 'value': 'red'}
    yield 'changemany', {'c': class_, 'i': item, 'where': [condition], 'merge': {field: 'blue'}}
    yield 'put', {'docs': [{'c': class_, 'id': 'guess', 'items': [{'c': item, 'j': {field: 5}}]}]}
    yield 'list', {'c': class_}


def answers(target, client, names):
    for operation, param in questions(names):
        answer = client.op('team', operation, param)
        text = json.dumps([answer.status, answer.code, answer.args, None if answer.code else answer.out])
        for place, name in enumerate(names):
            text = text.replace(name, f'<{place}>')
        yield re.sub(r'(?<=")[\w-]{100,}(?=")', lambda found: f'signed, {len(found[0])}', text)  # two tokens never are the same


def attack(target):
    asked, hidden = 0, list(declared(target))
    if not hidden:
        raise Impossible('a class of team is needed that has a field and a collection, and that no rule names')
    with target.client() as client:
        for names in hidden:
            right = list(answers(target, client, names))
            for places in ({0}, {1}, {2}, {3}, {0, 1, 2, 3}):
                wrong = list(answers(target, client, [invented(name) if place in places else name for place, name in enumerate(names)]))
                asked += len(wrong)
                for one, other in zip(right, wrong):
                    hold(one == other, f'{names} is told: {one}, and for an invented name {other}')
    return REFUSED, {'classes': len(hidden), 'guesses': asked, 'names found': 0}


run(attack)

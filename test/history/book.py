"""Histories written by hand, for the tests of the checker."""
import json

from decide import decide
from state import change, compact


def line(name):
    """What an operation does to a document, and so what the next reads."""
    return [['set', 'Last', compact(name)], ['set', f'Line.{name}', compact(name)]]


PUSH, END = [['push']], [['end']]


def state(*writes):
    """(version, name) or (version, name, actions) in their order."""
    text = ''
    for version, name, *actions in writes:
        text = change(text, actions[0] if actions else line(name), version, name)
    return text


class Book:
    """Writes a history; times are whole numbers."""

    def __init__(self, **initial):
        self.lines = [{'initial': initial}]

    def add(self, name, start, end, reads=(), writes=None, version=None, result='ok', **more):
        self.lines.append({'id': name, 'kind': more.pop('kind', 'put'), 'start': start, 'end': end, 'result': result,
                           'reads': list(reads), 'writes': {document: line(name) if actions is True else actions
                                                            for document, actions in (writes or {}).items()},
                           'version': version, **more})
        return self

    def text(self):
        return '\n'.join(map(json.dumps, self.lines))

    def check(self):
        checker, is_decided = decide(self.text().splitlines())
        assert is_decided
        return checker

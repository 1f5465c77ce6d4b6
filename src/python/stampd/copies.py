"""Copies of documents, and what answers make of them: pure; test/vectors has the cases."""
from __future__ import annotations

from typing import Any, Dict, Optional

from .fault import JSON

HEADER = ('c', 'id', 'v', 'ct', 'dt', 'w')


def name_of(item: JSON) -> str:
    """The name of an item in its document: Class, or Class.key."""
    return f"{item['c']}.{item['k']}" if 'k' in item else str(item['c'])


def content_of(item: JSON) -> Any:
    """A JSON value, or a raw text; None: the item has none."""
    return item.get('j', item.get('s'))


class Copy:
    """A copy of a document.  Client.sync brings it up to date, `follow` does so after each change.  It belongs to one thread at a time.

    c, id       class and id of the document
    v, ct, dt   its stamps; v is 0 if there is no such document
    w           the name of what the caller sees of it, where access rules hide a part; else None
    items       the items as the server gives them, by their names
    """

    def __init__(self, c: str, id: str) -> None:
        self.c, self.id = c, id
        self._reset()

    def _reset(self) -> None:
        self.v = self.ct = self.dt = 0
        self.w: Any = None
        self.items: Dict[str, JSON] = {}

    @property
    def contents(self) -> Optional[Dict[str, Any]]:
        """The contents by the names of the items; None: there is no such document."""
        return {name: content_of(item) for name, item in self.items.items()} if self.v else None

    def header(self) -> JSON:
        """The element of `syncs` for it."""
        header = {member: getattr(self, member) for member in (HEADER if self.v else HEADER[:2])}
        return {member: value for member, value in header.items() if value is not None}

    def apply(self, answer: JSON) -> bool:
        """Takes over the element of `syncs` that answers its header.  False: the answer had no room for it, send the same header again."""
        if answer.get('later'):
            return False
        if answer.get('closed') or answer['v'] == 0:
            self._reset()
            return True
        changed = {name_of(item): item for item in answer['items']}
        if answer['ct'] != self.ct:  # another incarnation, or the first copy: the answer is complete
            kept: Dict[str, JSON] = {}
        elif 'clkeys' in answer:
            kept = {name: self.items[name] for name in answer['clkeys'] if name in self.items}
        else:
            kept = dict(self.items)
        for tombstone in answer['dels']:
            kept.pop(name_of(tombstone), None)
        self._take_header(answer)
        self.items = {**kept, **changed}
        return True

    def take(self, document: JSON) -> None:
        """Becomes equal to a whole document, as `get` and `collection` return it."""
        self._take_header(document)
        self.items = {name_of(item): item for item in document['items']}

    def _take_header(self, header: JSON) -> None:
        self.v, self.ct, self.dt, self.w = header['v'], header['ct'], header['dt'], header.get('w')

    def compare(self, document: JSON) -> str:
        """What to do with a document in the answer of a collection: 'take' it, 'keep' the copy, or 'ask' for it by Client.sync."""
        if document['v'] > self.v:
            return 'take'
        is_same = all(document.get(member) == getattr(self, member) for member in ('v', 'ct', 'w'))
        return 'keep' if is_same else 'ask'

    def as_json(self) -> JSON:
        """For storing: header and items together, or a part would pass for the whole."""
        return {'c': self.c, 'id': self.id, 'v': self.v, 'ct': self.ct, 'dt': self.dt, **({} if self.w is None else {'w': self.w}), 'items': self.items}

    @classmethod
    def of(cls, stored: JSON) -> Copy:
        """From what as_json returned."""
        copy = cls(stored['c'], stored['id'])
        copy._take_header(stored)
        copy.items = dict(stored.get('items', {}))
        return copy

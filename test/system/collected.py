"""A client's copy of a collection and of its documents: the rules of the holder's side (doc/reference/collections.md), and no more."""
from holder import Copy, content_of


class Collected:
    """The members of one collection.  `copies` {id: Copy} are shared by all that one client holds."""

    def __init__(self, collection, value, copies=None):
        self.collection, self.value = collection, value
        self.copies = {} if copies is None else copies
        self.members = {}  # id: the version that was told last
        self.token = self.cursor = self.was_complete = None

    def place(self):
        """What the next question bears."""
        return {'cursor': self.cursor} if self.cursor else {'token': self.token} if self.token else {}

    def apply(self, out):
        """Answers are applied in their order, and no version is compared: who is a member is what was told last."""
        if out['first']:
            self.was_complete = out['complete']
            if out['complete']:
                self.members.clear()
                self.token = None
        for document in out.get('docs', ()):
            self.members[document['id']] = document['v']
            self.take(document)
        for id_, version in out.get('ids', ()):
            self.members[id_] = version
        for id_, _ in out['left']:
            self.members.pop(id_, None)
        self.cursor = out.get('cursor')
        if not self.cursor:
            self.token = out['token']

    def take(self, document):
        """Contents are another matter: of each document the newest that came, from wherever."""
        copy = self.copies.setdefault(document['id'], Copy(document['c'], document['id']))
        if document['v'] <= copy.version:
            return
        copy.forget()
        copy.version, copy.ctime, copy.dtime = document['v'], document['ct'], document['dt']
        for item in document['items']:
            copy.items[item['c'], item.get('k')] = content_of(item)
            copy.versions[item['c'], item.get('k')] = item['v']

    def older(self, class_):
        """Copies of members that are not as new as was told: what `syncs` is for."""
        return [self.copies.setdefault(id_, Copy(class_, id_)) for id_, version in self.members.items()
                if id_ not in self.copies or self.copies[id_].version < version]

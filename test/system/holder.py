"""A client's copy of documents, brought up to date by synchronisations: the rules of the holder's side, and no more."""


class Copy:
    """One document as held.  `items` is {(class, key): content}; a raw item's content is ('s', text).  `versions` has the
    versions of the same items."""

    def __init__(self, class_, id_):
        self.name = (class_, id_)
        self.forget()

    def forget(self):
        self.version = self.ctime = self.dtime = 0
        self.items, self.versions = {}, {}

    def request(self):
        return {'c': self.name[0], 'id': self.name[1], 'v': self.version, 'ct': self.ctime, 'dt': self.dtime}

    def apply(self, answer):
        """False: the answer was full, the copy is to be sent again."""
        assert (answer['c'], answer['id']) == self.name
        if answer.get('later'):
            assert set(answer) == {'c', 'id', 'later'}
            return False
        if answer['v'] == 0:
            self.forget()
            return True
        if answer['ct'] != self.ctime:
            self.forget()
        if 'clkeys' in answer:
            living = set(answer['clkeys']) | {clkey(item) for item in answer['items']}
            self.items = {name: content for name, content in self.items.items() if joined(*name) in living}
        for item in answer['items']:
            self.items[item['c'], item.get('k')] = content_of(item)
            self.versions[item['c'], item.get('k')] = item['v']
        for item in answer['dels']:
            self.items.pop((item['c'], item.get('k')), None)
        self.version, self.ctime, self.dtime = answer['v'], answer['ct'], answer['dt']
        return True


def joined(class_, key):
    return class_ if key is None else f'{class_}.{key}'


def clkey(item):
    return joined(item['c'], item.get('k'))


def content_of(item):
    return ('s', item['s']) if 's' in item else item['j']


def items_of(document):
    """The items of a document as `get` gives it, in the form of Copy.items."""
    return {(item['c'], item.get('k')): content_of(item) for item in document['items']}

#!/usr/bin/python3
"""stampd_client.py: a client of stampd that works without a network, on the package stampd: copies of documents and collections that are
kept in SQLite and brought up to date, and an outbox whose changes take effect once.

    client = Outbox('https://localhost:8443/lab', 'notes.db')
    client.read(('Note', 'first'))
    client.write({'c': 'Note', 'id': 'first', 'items': [{'c': 'Title', 'j': 'Shopping'}]})
    client.flush()

The page doc/how-to/write-a-client.md explains each part.  An outbox belongs to one thread.
"""
import json
import sqlite3
import time

from stampd import Client, Copy, Fault, content_of, name_of
from stampd.stamp import key_of, stamp_of, time_of

PAGE = 500       # documents of one answer of a collection
DHOPS_MOST = 2   # refused stamps of one change: by this clock, by the server's
OF_CLOCKS = {'ADHOP', 'AKEYAHEAD', 'AKEYOLD'}  # their last argument is the server's time


class Outbox:
    """`path` is the SQLite file of what must survive; `conflict(c, id, name, base, mine, theirs)` returns the content to write when
    others have changed an item meanwhile (None removes it); `refused(change, fault)` is called when a change is given up; `more` is for
    stampd.Client, which repeats nothing by itself here."""

    def __init__(self, url, path=':memory:', conflict=None, refused=None, **more):
        self.client = Client(url, patience_s=0, **more)
        self.conflict = conflict or (lambda c, id, name, base, mine, theirs: mine)
        self.refused = refused or (lambda change, fault: None)
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute('pragma synchronous = full')
        self.db.execute('create table if not exists kept (kind text, name text, value text not null, primary key (kind, name))')
        self.fresh_key, self.undated = None, {}

    def close(self):
        self.db.close()
        self.client.close()

    # what is kept

    def kept(self, kind, name):
        row = self.db.execute('select value from kept where kind = ? and name = ?', (kind, name)).fetchone()
        return row and json.loads(row[0])

    def store(self, *rows):
        """All of the (kind, name, value), or none; value None removes."""
        self.db.execute('begin immediate')
        for kind, name, value in rows:
            self.db.execute('delete from kept where kind = ? and name = ?', (kind, name))
            if value is not None:
                self.db.execute('insert into kept values (?, ?, ?)', (kind, name, json.dumps(value)))
        self.db.execute('commit')

    def copy(self, c, id):
        kept = self.kept('copy', f'{c}/{id}')
        return Copy.of(kept) if kept else Copy(c, id)

    def waiting(self):
        """The changes that wait, in their order."""
        rows = self.db.execute("select name, value from kept where kind = 'change' order by name").fetchall()
        return [{**json.loads(value), 'name': name} for name, value in rows]

    def show(self, c, id):
        """The contents of the document by the names of its items, with the changes that wait; None: it does not exist."""
        shown = self.copy(c, id).contents
        for change in self.waiting():
            for document in change['docs']:
                if (document['c'], document['id']) == (c, id):
                    shown = edited(shown, document)
        return shown

    # reading

    def read(self, *names):
        """Brings the copies of these (class, id) up to date."""
        held = [self.copy(*name) for name in dict.fromkeys(names)]
        self.client.sync(*held)
        self.store(*map(row_of, held))

    def collection(self, c, collection, value):
        """Brings the members and their copies up to date; returns the ids."""
        name, is_anew = json.dumps([c, collection, value]), False
        while True:
            kept = self.kept('collection', name) or {'members': []}
            where = {} if is_anew else {place: kept[place] for place in ('cursor', 'token') if kept.get(place)}
            if 'cursor' in where:
                where.pop('token', None)
            param = {'c': c, 'collection': collection, 'value': value, 'limit': PAGE, **where}
            try:
                out = self.client.operate('collection', param)['out']
            except Fault as fault:
                if fault.code != 'AARG' or not where:
                    raise
                is_anew = True  # the token is of another caller, or of a collection that was declared again
                continue
            is_anew = False
            self.take_page(name, c, kept, out)
            if 'token' in out:
                return self.kept('collection', name)['members']

    def take_page(self, name, c, kept, out):
        """Stores the page, its documents and the place of the next one together."""
        rows, doubtful = [], []
        members = dict.fromkeys([] if out['complete'] and out['first'] else kept.get('incoming', []) if out['complete'] else kept['members'])
        for document in out['docs']:
            members[document['id']] = None
            copy = self.copy(c, document['id'])
            what = copy.compare(document)
            if what == 'take':
                copy.take(document)
                rows.append(row_of(copy))
            elif what == 'ask':
                doubtful.append((c, document['id']))
        for id, _ in out['left']:
            members.pop(id, None)
        after = {place: out[place] for place in ('cursor', 'token') if place in out}
        after.setdefault('token', kept.get('token'))
        if out['complete'] and 'token' not in out:  # until the last page the former members stand
            after.update(members=kept['members'], incoming=list(members))
        else:
            after['members'] = list(members)
        self.read(*doubtful)
        self.store(*rows, ('collection', name, after))

    # changing

    def write(self, *docs):
        """Stores a change: documents as `put` takes them, without `if`.  `flush` sends it."""
        base = [[(self.show(one['c'], one['id']) or {}).get(name_of(item)) for item in one.get('items', ())] for one in docs]
        waiting = self.waiting()
        self.store(('change', f"{int(waiting[-1]['name']) + 1 if waiting else 1:012}", {'docs': docs, 'base': base, 'at': time.time()}))

    def flush(self):
        """Sends what waits, in its order.  A transient Fault ends it: call it again later."""
        while changes := self.waiting():
            try:
                self.send(changes[0] if 'key' in changes[0] else self.prepare(changes[0]))
            except Fault as fault:
                self.recover(self.waiting()[0], fault)

    def prepare(self, change):
        """The change with its key and its bytes, stored before they are sent: from now on they stay the same."""
        self.read(*[name for name in names_of(change) if not self.copy(*name).v])
        docs = []
        for document, base in zip(change['docs'], change['base']):
            copy = self.copy(document['c'], document['id'])
            items = [self.merged(copy, item, was) for item, was in zip(document.get('items', ()), base)]
            docs.append({**document, 'items': items, 'if': copy.v})
        return self.keep({**change, 'param': {'docs': docs}, 'key': self.new_key()})

    def merged(self, copy, item, was):
        """The item to write: others may have changed it since `was` was seen."""
        theirs, mine = content_of(copy.items.get(name_of(item), {})), content_of(item)
        if theirs == was:
            return item
        content = self.conflict(copy.c, copy.id, name_of(item), was, mine, theirs)
        name = {member: item[member] for member in ('c', 'k') if member in item}
        return {**name, **({'del': True} if content is None else {'s' if 's' in item else 'j': content})}

    def new_key(self):
        self.fresh_key = key_of(self.client.now())
        return self.fresh_key

    def keep(self, change):
        self.store(('change', change['name'], {member: change[member] for member in change if member != 'name'}))
        return change

    def send(self, change):
        held = [self.copy(*name) for name in names_of(change)]
        is_dated = self.undated.get(change['name'], 0) < DHOPS_MOST
        dhop = {'dhop': stamp_of(change['at'] + self.client.ahead_s)} if is_dated else {}
        is_fresh, self.fresh_key = self.fresh_key == change['key'], None
        try:
            answer = self.client.operate('put', change['param'], syncs=[copy.header() for copy in held], key=change['key'], more=dhop)
        except Fault as fault:
            if is_fresh and fault.code in OF_CLOCKS:
                self.fresh_key = change['key']
            raise
        is_whole = all([copy.apply(sync) for copy, sync in zip(held, answer['syncs'])])
        if not is_whole:
            self.read(*names_of(change))
        self.settle(change, *(map(row_of, held) if is_whole else ()))

    def settle(self, change, *rows):
        self.undated.pop(change['name'], None)
        self.store(*rows, ('change', change['name'], None))

    def recover(self, change, fault):
        """After a refusal: does what lets the outbox go on, or raises it."""
        if fault.code in OF_CLOCKS:
            self.client.ahead_s = time_of(fault.arguments[-1]) - time.time()
        refusals = self.undated.get(change['name'], 0)
        if fault.code == 'ADHOP' and refusals < DHOPS_MOST:
            self.undated[change['name']] = refusals + 1
        elif fault.code == 'AKEYAHEAD' or fault.code == 'AKEYOLD' and change['key'] == self.fresh_key:
            self.keep({**change, 'key': self.new_key()})  # nothing was done under the former one
        elif fault.code == 'AKEYOLD':  # it may have been done
            self.read(*names_of(change))
            if all(self.is_done(document) for document in change['param']['docs']):
                self.settle(change)
            else:
                self.keep({**change, 'key': self.new_key()})  # with the same `if`: nothing is overwritten
        elif fault.code == 'AVERSION':
            self.read(*names_of(change))
            self.keep({member: change[member] for member in ('name', 'docs', 'base', 'at')})
        elif fault.kind in ('again', 'over') or fault.status == 401:
            raise fault
        else:
            self.settle(change)
            self.refused(change, fault)

    def is_done(self, document):
        shown = self.copy(document['c'], document['id']).contents
        return shown == edited(shown, document)


def row_of(copy):
    return 'copy', f'{copy.c}/{copy.id}', copy.as_json()


def names_of(change):
    return [(document['c'], document['id']) for document in change['docs']]


def edited(shown, document):
    """The contents after this document of a `put`."""
    if document.get('delete'):
        shown = {} if document.get('items') else None
    else:
        shown = dict(shown or {})
    for item in document.get('items', ()):
        shown.pop(name_of(item), None)
        if content_of(item) is not None:
            shown[name_of(item)] = content_of(item)
    return shown

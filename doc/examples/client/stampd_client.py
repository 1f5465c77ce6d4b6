#!/usr/bin/python3
"""stampd_client.py: a client of stampd in one file, without dependencies: copies of documents and collections that are kept in
SQLite and brought up to date, and an outbox whose changes take effect once.

    client = Client('https://localhost:8443/lab', 'notes.db')
    client.read(('Note', 'first'))
    client.write({'c': 'Note', 'id': 'first', 'items': [{'c': 'Title', 'j': 'Shopping'}]})
    client.flush()

The page doc/how-to/write-a-client.md explains each part.  A client belongs to one thread.
"""
import http.client
import json
import random
import sqlite3
import ssl
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone

DOCUMENTS_MOST, PAGE = 200, 500  # of one request
DHOPS_MOST = 2                   # refused stamps of one change: by this clock, by the server's
OF_CLOCKS = {'ADHOP', 'AKEYAHEAD', 'AKEYOLD'}  # their last argument is the server's time


# --- copies: pure functions; test/vectors has their cases ---

def name_of(item):
    return item['c'] if 'k' not in item else f"{item['c']}.{item['k']}"


def content_of(item):
    return item.get('j', item.get('s'))


def contents_of(copy):
    return {name: content_of(item) for name, item in copy['items'].items()} if copy['v'] else None


def absent(c, id):
    return {'c': c, 'id': id, 'v': 0, 'ct': 0, 'dt': 0, 'items': {}}


def header_of(copy):
    """The element of `syncs` for this copy."""
    members = ('c', 'id', 'v', 'ct', 'dt', 'w') if copy['v'] else ('c', 'id')
    return {member: copy[member] for member in members if member in copy}


def copy_with(header, items):
    return {**{member: header[member] for member in ('c', 'id', 'v', 'ct', 'dt', 'w') if member in header}, 'items': items}


def whole_copy(document):
    return copy_with(document, {name_of(item): item for item in document['items']})


def apply_sync(copy, answer):
    """The copy after an element of `syncs`; None: the answer had no room for it, send the same again."""
    if answer.get('later'):
        return None
    if answer.get('closed') or answer['v'] == 0:
        return absent(copy['c'], copy['id'])
    changed = {name_of(item): item for item in answer['items']}
    if answer['ct'] != copy['ct']:
        return copy_with(answer, changed)
    kept = copy['items']
    if 'clkeys' in answer:
        kept = {name: kept[name] for name in answer['clkeys'] if name in kept}
    items = {**kept, **changed}
    for tombstone in answer['dels']:
        if name_of(tombstone) not in changed:
            items.pop(name_of(tombstone), None)
    return copy_with(answer, items)


def compare(copy, document):
    """What to do with a document of a collection: 'take' it, 'keep' the copy, or 'ask' by `syncs`."""
    if not copy or document['v'] > copy['v']:
        return 'take'
    is_same = all(document.get(member) == copy.get(member) for member in ('v', 'ct', 'w'))
    return 'keep' if is_same else 'ask'


# --- stamps, keys, refusals ---

def stamp_of(seconds):
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return int(moment.strftime('%y%m%d%H%M%S') + f'{moment.microsecond // 1000:03}')


def time_of(stamp):
    text = f'{int(stamp):015}'
    return datetime.strptime(f'20{text}000', '%Y%m%d%H%M%S%f').replace(tzinfo=timezone.utc).timestamp()


def key_of(seconds):
    """A UUID of version 7 (RFC 9562): it carries its time."""
    return str(uuid.UUID(int=int(seconds * 1000) << 80 | 7 << 76 | random.SystemRandom().getrandbits(12) << 64
                         | 2 << 62 | random.SystemRandom().getrandbits(62)))


class Fault(Exception):
    """A refusal of the server, or (NETWORK) no answer."""

    def __init__(self, code, message='', status=0, args=(), retry_after=0.0):
        super().__init__(message or code)
        self.code, self.status, self.arguments, self.retry_after = code, status, list(args), retry_after

    @property
    def is_transient(self):
        """Not because of the request itself: send the same again later."""
        return self.code == 'NETWORK' or self.status == 401 or self.code[0] in 'CXOB' and self.code not in ('OENCRYPTED', 'OPUSH')


def fault_of(error):
    try:
        problem = json.loads(error.read())
        after = error.headers.get('Retry-After') or '0'
        return Fault(problem['code'], problem.get('message', ''), error.code, problem.get('args', ()), float(after))
    except (OSError, ValueError, KeyError, TypeError):
        return Fault('NETWORK', f'status {error.code}')


# --- the client ---

class Client:
    """`path` is the SQLite file of what must survive; `conflict(c, id, name, base, mine, theirs)` returns the content to write when
    others have changed an item meanwhile (None removes it); `refused(change, fault)` is called when a change is given up."""

    def __init__(self, url, path=':memory:', token=None, context=None, conflict=None, refused=None, open_url=None):
        self.url, self.token, self.ahead = url.rstrip('/'), token, 0.0
        self.conflict = conflict or (lambda c, id, name, base, mine, theirs: mine)
        self.refused = refused or (lambda change, fault: None)
        self.context = context or ssl.create_default_context()
        self.open_url = open_url or (lambda request, timeout: urllib.request.urlopen(request, timeout=timeout, context=self.context))
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute('pragma synchronous = full')
        self.db.execute('create table if not exists kept (kind text, name text, value text not null, primary key (kind, name))')
        self.fresh_key, self.undated = None, {}

    def close(self):
        self.db.close()

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
        return self.kept('copy', f'{c}/{id}') or absent(c, id)

    def waiting(self):
        """The changes that wait, in their order."""
        rows = self.db.execute("select name, value from kept where kind = 'change' order by name").fetchall()
        return [{**json.loads(value), 'name': name} for name, value in rows]

    def show(self, c, id):
        """The contents of the document by the names of its items, with the changes that wait; None: it does not exist."""
        shown = contents_of(self.copy(c, id))
        for change in self.waiting():
            for document in change['docs']:
                if (document['c'], document['id']) == (c, id):
                    shown = edited(shown, document)
        return shown

    # requests

    def request(self, path, body, headers=None, timeout=90):
        headers = {'Content-Type': 'application/json', **(headers or {})}
        if self.token:
            headers['Authorization'] = f'Bearer {self.token}'
        try:
            return self.open_url(urllib.request.Request(self.url + path, body.encode(), headers), timeout)
        except urllib.error.HTTPError as error:
            raise fault_of(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise Fault('NETWORK', str(error)) from None

    def operate(self, operation, body, key=None):
        try:
            with self.request(f'/op/{operation}', body, {'Idempotency-Key': key} if key else {}) as answer:
                return json.loads(answer.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Fault('NETWORK', str(error)) from None

    def now(self):
        return time.time() + self.ahead

    # reading

    def read(self, *names):
        """Brings the copies of these (class, id) up to date."""
        held = [self.copy(*name) for name in dict.fromkeys(names)]
        while held:
            sent, held = held[:DOCUMENTS_MOST], held[DOCUMENTS_MOST:]
            rows, later = self.take(sent, self.operate('sync', json.dumps({'syncs': [header_of(copy) for copy in sent]})))
            self.store(*rows)
            held = later + held

    def take(self, held, answer):
        """The rows that the answer's `syncs` make of these copies, and the copies that are to be sent again."""
        if len(answer.get('syncs', ())) != len(held):
            raise Fault('NETWORK', 'the answer lacks synchronisations')
        copies = [apply_sync(copy, sync) for copy, sync in zip(held, answer['syncs'])]
        return ([('copy', f"{copy['c']}/{copy['id']}", copy) for copy in copies if copy],
                [copy for copy, now in zip(held, copies) if not now])

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
                out = self.operate('collection', json.dumps({'param': param}))['out']
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
            what = compare(self.kept('copy', f"{c}/{document['id']}"), document)
            if what == 'take':
                rows.append(('copy', f"{c}/{document['id']}", whole_copy(document)))
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
        self.read(*[name for name in names_of(change) if not self.copy(*name)['v']])
        docs = []
        for document, base in zip(change['docs'], change['base']):
            copy = self.copy(document['c'], document['id'])
            items = [self.merged(copy, item, was) for item, was in zip(document.get('items', ()), base)]
            docs.append({**document, 'items': items, 'if': copy['v']})
        return self.keep({**change, 'param': json.dumps({'docs': docs}), 'key': self.new_key()})

    def merged(self, copy, item, was):
        """The item to write: others may have changed it since `was` was seen."""
        theirs, mine = content_of(copy['items'].get(name_of(item), {})), content_of(item)
        if theirs == was:
            return item
        content = self.conflict(copy['c'], copy['id'], name_of(item), was, mine, theirs)
        name = {member: item[member] for member in ('c', 'k') if member in item}
        return {**name, **({'del': True} if content is None else {'s' if 's' in item else 'j': content})}

    def new_key(self):
        self.fresh_key = key_of(self.now())
        return self.fresh_key

    def keep(self, change):
        self.store(('change', change['name'], {member: change[member] for member in change if member != 'name'}))
        return change

    def send(self, change):
        held = [self.copy(*name) for name in names_of(change)]
        is_dated = self.undated.get(change['name'], 0) < DHOPS_MOST
        dhop = f',"dhop":{stamp_of(change["at"] + self.ahead)}' if is_dated else ''
        syncs = json.dumps([header_of(copy) for copy in held])
        is_fresh, self.fresh_key = self.fresh_key == change['key'], None
        try:
            answer = self.operate('put', f'{{"param":{change["param"]}{dhop},"syncs":{syncs}}}', change['key'])
        except Fault as fault:
            if is_fresh and fault.code in OF_CLOCKS:
                self.fresh_key = change['key']
            raise
        rows, later = self.take(held, answer)
        self.read(*[(copy['c'], copy['id']) for copy in later])
        self.settle(change, *([] if later else rows))

    def settle(self, change, *rows):
        self.undated.pop(change['name'], None)
        self.store(*rows, ('change', change['name'], None))

    def recover(self, change, fault):
        """After a refusal: does what lets the outbox go on, or raises it."""
        if fault.code in OF_CLOCKS:
            self.ahead = time_of(fault.arguments[-1]) - time.time()
        refusals = self.undated.get(change['name'], 0)
        if fault.code == 'ADHOP' and refusals < DHOPS_MOST:
            self.undated[change['name']] = refusals + 1
        elif fault.code == 'AKEYAHEAD' or fault.code == 'AKEYOLD' and change['key'] == self.fresh_key:
            self.keep({**change, 'key': self.new_key()})  # nothing was done under the former one
        elif fault.code == 'AKEYOLD':  # it may have been done
            self.read(*names_of(change))
            if all(self.is_done(document) for document in json.loads(change['param'])['docs']):
                self.settle(change)
            else:
                self.keep({**change, 'key': self.new_key()})  # with the same `if`: nothing is overwritten
        elif fault.code == 'AVERSION':
            self.read(*names_of(change))
            self.keep({member: change[member] for member in ('name', 'docs', 'base', 'at')})
        elif fault.is_transient:
            raise fault
        else:
            self.settle(change)
            self.refused(change, fault)

    def is_done(self, document):
        shown = contents_of(self.copy(document['c'], document['id']))
        return shown == edited(shown, document)


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

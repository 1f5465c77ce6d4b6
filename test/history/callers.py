"""Callers of a rights campaign: each reads and writes with sessions of any account, on every path, also with sessions that have ended."""
import time

from decisions import RULES
from hands import NS, REFUSED, Hand

AGES_S = (1, 10, 3600)
READ_MOST = 4


def split(document):
    class_, _, id_ = document.partition('/')
    return {'c': class_, 'id': id_}


def shown(one):
    """What a document of an answer shows; None: it does not exist for the caller."""
    if not one['v']:
        return None
    items = {(item['c'], item.get('k')): item['j'] for item in one['items']}
    return {'v': one['v'], 'main': items.get(('Main', None)), 'secret': items.get(('Secret', None)),
            'members': {key: content['role'] for (class_, key), content in items.items() if class_ == 'Member'}}


class Held:
    """A copy that is kept by synchronisations."""

    def __init__(self, document):
        self.name, self.stamps, self.items = split(document), {'v': 0, 'ct': 0, 'dt': 0}, {}

    def request(self):
        return {**self.name, **self.stamps}

    def apply(self, answer):
        """What it shows from now on."""
        if not answer['v'] or answer['ct'] != self.stamps['ct']:
            self.items = {}
        if 'clkeys' in answer:
            living = set(answer['clkeys'])
            self.items = {name: content for name, content in self.items.items() if name in living}
        self.items.update((name_of(item), item) for item in answer.get('items', ()))
        for gone in answer.get('dels', ()):
            self.items.pop(name_of(gone), None)
        self.stamps = {member: answer[member] for member in ('v', 'ct', 'dt', 'w') if member in answer}
        return shown({'v': answer['v'], 'items': self.items.values()})


def name_of(item):
    return item['c'] if item.get('k') is None else f'{item["c"]}.{item["k"]}'


class Caller(Hand):
    def __init__(self, campaign, number):
        super().__init__(campaign, number)
        self.held = {}  # (account, document) -> Held
        self.tags = {}  # (account, document) -> (ETag, what was shown)
        self.deeds = [(self.get, 20), (self.get_resource, 12), (self.sync, 16), (self.list, 6), (self.find, 6), (self.collection, 6),
                      (self.stream, 2), (self.put, 10), (self.patch, 4)]

    def work(self):
        names, weights = zip(*self.deeds, strict=True)
        while not self.campaign.pause.is_set():
            self.choose_session()
            self.dice.choices(names, weights)[0]()

    def choose_session(self, account=None):
        """Mostly a session that is valid; one that has ended; nobody's."""
        fate = 1 if account else self.dice.random()
        account = account or self.dice.choice(self.campaign.accounts)
        pool = list((account.ended if 0.05 < fate < 0.15 else account.sessions).items())
        self.account, self.session, self.token = None, None, None
        if pool and fate > 0.05:
            self.account, (self.session, self.token) = account.id, self.dice.choice(pool)

    def look_at(self, fact):
        """Reads what the fact decides, with a session of whom it is about."""
        kind, _, about = fact.partition(':')
        accounts = {account.id: account for account in self.campaign.accounts}
        self.choose_session(accounts.get(about.rpartition(':')[2]))
        if kind == 'session':
            self.use_session(about)
        of_crew = kind == 'member' and about.startswith('Crew/') and self.dice.random() < 0.7
        documents = [one for one in self.campaign.documents if one.startswith('Duty/')] if of_crew else [about.partition(':')[0]]
        document = self.dice.choice(documents if documents[0] in self.campaign.documents else self.campaign.documents)
        way = self.dice.choice((self.get, self.get, self.sync, self.get_resource, self.list, self.find, self.collection))
        way(document if way == self.get_resource else [document] if way in (self.get, self.sync) else document.partition('/')[0])

    def use_session(self, number):
        for account in self.campaign.accounts:
            token = account.sessions.get(number) or account.ended.get(number)
            if token:
                self.account, self.session, self.token = account.id, number, token

    def read_all(self, account):
        """Every way, once."""
        self.choose_session(account)
        documents = self.campaign.documents
        for way in (self.get, lambda them: self.get(them, age=3600), self.sync, *(lambda them, one=one: self.get_resource(one) for one in documents)):
            while not way(documents):
                pass
        for way in (self.list, self.find, self.collection, self.stream):
            for class_ in RULES[0]:
                while not way(class_):
                    pass

    # --- requests ---

    def ask(self, name, body):
        """The token in the header, or as an argument."""
        if self.token and self.dice.random() < 0.3:
            return self.send('POST', f'/{NS}/op/{name}', {**body, 'account': self.account, 'key': self.token})
        return self.send('POST', f'/{NS}/op/{name}', body, self.bearer())

    def bearer(self):
        return {'Authorization': f'Bearer {self.token}'} if self.token else {}

    def take(self, kind, start, answer, right, seen, **more):
        """Notes what was seen, `seen()` if it was answered; False: it was not.  A refusal of the credential shows nothing."""
        end, who = time.monotonic_ns(), {'account': self.account, 'session': self.session, 'right': right, **more}
        if answer.code == 'SKEY':
            self.note(kind, start, end=end, refused='SKEY', **who)
            return True
        if answer.result == 'wrong' and answer.code not in REFUSED:
            self.note_wrong(kind, start, answer)
            return True
        if answer.code not in REFUSED and (answer.result != 'ok' or (answer.body is None and answer.status != 304)):
            return False
        self.note(kind, start, end=end, **who, **seen())
        return True

    def choose(self):
        return self.dice.sample(self.campaign.documents, self.dice.randint(1, READ_MOST))

    # --- reads by name ---

    def get(self, documents=None, age=None):
        documents, start = documents or self.choose(), time.monotonic_ns()
        age = age or (self.dice.choice(AGES_S) if self.dice.random() < 0.4 else 0)
        answer = self.ask('get', {'param': {'docs': [{**split(one), **({'age': age} if age else {})} for one in documents]}})
        return self.take('get', start, answer, 'read', lambda: {'age': age, 'seen': dict(zip(documents, map(shown, answer.body['out']['docs']), strict=True))})

    def get_resource(self, document=None):
        document, start = document or self.dice.choice(self.campaign.documents), time.monotonic_ns()
        where = self.account, document
        tag, before = self.tags.get(where, (None, None))
        headers = {'If-None-Match': tag} if tag and self.dice.random() < 0.6 else {}
        query = f'?age={self.dice.choice(AGES_S)}' if self.dice.random() < 0.3 else ''
        answer = self.send('GET', f'/{NS}/doc/{document}{query}', None, {**self.bearer(), **headers})
        if answer.body and answer.result == 'ok':
            one = answer.body
            self.tags[where] = f'"{one["v"]}-{one["w"]}"' if 'w' in one else f'"{one["v"]}"', shown(one)
        return self.take('GET', start, answer, 'read', lambda: {'seen': {
            document: None if answer.code == 'NDOCUMENT' else before if answer.status == 304 else shown(answer.body)}})

    def sync(self, documents=None):
        """A copy may have been made with another session of the account."""
        documents, start = documents or self.choose(), time.monotonic_ns()
        copies = [self.held.setdefault((self.account, one), Held(one)) for one in documents]
        answer = self.ask('sync', {'syncs': [copy.request() for copy in copies]})
        return self.take('sync', start, answer, 'read', lambda: {'seen': {
            document: copy.apply(one) for document, copy, one in zip(documents, copies, answer.body['syncs'], strict=True) if not one.get('later')}})

    # --- what finds documents ---

    def gather(self, kind, name, class_, param, read):
        class_, start = class_ or self.dice.choice(list(RULES[0])), time.monotonic_ns()
        answer = self.ask(name, {'param': {'c': class_, **param}})

        def seen():
            found = {f'{class_}/{id_}': what for id_, what in read(answer.body)}
            missing = [] if 'cursor' in answer.body.get('out', {}) else [one for one in self.campaign.documents if one.startswith(f'{class_}/')]
            return {'seen': {**dict.fromkeys(missing), **found}}
        return self.take(kind, start, answer, 'list', seen)

    def list(self, class_=None):
        return self.gather('list', 'list', class_, {'limit': 1000}, lambda body: [(one['id'], {'v': one['v']}) for one in body['out']['docs']])

    def find(self, class_=None):
        want, where = self.dice.choice(('ids', 'items')), [{'f': 'all', 't': 'eq', 'v1': 'red'}]
        return self.gather('find', 'find', class_, {'i': 'Main', 'where': where, 'want': want, 'limit': 1000}, lambda body: [
            (id_, {'n': 1}) for id_ in body['out']['ids']] if want == 'ids' else [(one['id'], {'main': one['j']}) for one in body['out']['items']])

    def collection(self, class_=None):
        want = self.dice.choice(('ids', 'docs'))
        return self.gather('collection', 'collection', class_, {'collection': 'all', 'value': 'red', 'want': want, 'limit': 1000}, lambda body: [
            (one[0], {'v': one[1]}) for one in body['out']['ids']] if want == 'ids' else [(one['id'], shown(one)) for one in body['out']['docs']])

    def stream(self, class_=None):
        want = self.dice.choice(('ids', 'docs'))
        return self.gather('stream', 'collection', class_, {'collection': 'all', 'value': 'red', 'want': want, 'stream': True}, lambda body: [
            (one[0], {'v': one[1]}) if want == 'ids' else (one['id'], shown(one)) for one in body['ids']])

    # --- writes ---

    def write(self, method):
        document, start = self.dice.choice(self.campaign.documents), time.monotonic_ns()
        items = [{'c': 'Line', 'k': self.number, 'j': self.next_name()}]
        if method == 'put':
            answer = self.ask('put', {'param': {'docs': [{**split(document), 'items': items}]}})
        else:
            answer = self.send('PATCH', f'/{NS}/doc/{document}', {'items': items}, self.bearer())
        body = (answer.body or {}) if answer.result == 'ok' else {}
        version = body.get('out', body).get('v')
        return self.take('write', start, answer, 'update', lambda: {'document': document, 'allowed': answer.result == 'ok', 'version': version})

    def put(self):
        return self.write('put')

    def patch(self):
        return self.write('PATCH')

"""Clients of a campaign: searches, reads with a tolerance, documents that end, unique values, copies, and sessions that subscribe."""
import json
import secrets
import time

from state import state_of
from teams import CLASS, TEAMS

AGES_S = (1, 3, 10)
LATE_S = 15            # hosts = many: a notification may come so much later than a commit
UNIQUE, FOLLOWER, MORTAL = 'Uniq', 'Foll', 'Mort'
NUMBER = 6             # of the documents that reserve values, of those that follow, and of the values
SHARES = 4             # documents of the campaign whose item a follower may have
REQUESTED_MOST = 8         # of documents that end
KEPT_MOST = 60
# The classes beside that of the hot documents.
CLASSES = {
    UNIQUE: {'items': {'Main': {'singleton': True}}, 'unique': {'name': {'key': ['Main.name'], 'global': True}}},
    FOLLOWER: {'items': {'Src': {}}},
    MORTAL: {'items': {'Main': {'singleton': True, 'fields': {'kind': 'string'}}}, 'maxLife': 'Main.until'},
}


class Extras:
    """What a client does beside reading and writing hot documents."""

    def __init__(self, client):
        self.client, self.campaign, self.dice = client, client.campaign, client.dice
        self.session, self.definitions = secrets.token_urlsafe(24), []
        self.mortals = []  # [id, minute of its end]

    def deeds(self):
        return [(self.find, 4), (self.get_aged, 5), (self.reserve, 5), (self.read_reservations, 2), (self.follow, 3), (self.bear, 3),
                (self.read_mortals, 7)]

    def ask(self, kind, start, name, param):
        """`out` of an operation that only reads; None: there is nothing to be read."""
        client = self.client
        answer = client.operate(name, {'param': param})
        if answer.result == 'wrong':
            return client.note(client.next_name(), kind, start, 'wrong', words=answer.words)
        return None if client.trouble(answer) else answer.body['out']

    # --- searches ---

    def find(self):
        """Items bear their own version, not their document's: so each found document lies in one of the versions with this item."""
        client, start, team = self.client, time.monotonic_ns(), self.dice.choice(TEAMS)
        out = self.ask('find', start, 'find', {'c': CLASS, 'i': 'Team', 'where': [{'f': 'team', 't': 'eq', 'v1': team}], 'want': 'items',
                                               'id': {'t': 'sw', 'v1': self.campaign.prefix}, 'limit': 1000})
        if out is None:
            return
        found = {item['id']: item['v'] for item in out['items']}
        outside = [document for document in self.campaign.documents if document not in found]
        client.note(client.next_name(), 'find', start, 'ok', team=team, outside=self.dice.sample(outside, min(len(outside), 2)),
                    inside=self.dice.sample(sorted(found.items()), min(len(found), 2)))

    # --- tolerance ---

    def get_aged(self):
        client, start, documents, age = self.client, time.monotonic_ns(), self.client.choose(), self.dice.choice(AGES_S)
        fresh = [document for document in documents if self.dice.random() < 0.3]
        out = self.ask('get', start, 'get', {'docs': [{'c': CLASS, 'id': document, **({} if document in fresh else {'age': age})}
                                                     for document in documents]})
        if out is None:
            return
        seen = [[one['id'], one['v'], state_of(one)] for one in out['docs']]
        client.note(client.next_name(), 'get', start, 'ok', [one for one in seen if one[0] in fresh],
                    aged=[one for one in seen if one[0] not in fresh], age=age + (LATE_S if self.campaign.is_apart else 0))

    # --- unique values ---

    def reservers(self):
        return [f'{self.campaign.prefix}u{number}' for number in range(NUMBER)]

    def reserve(self):
        """Under a key, so that its fate is known; a value, or none."""
        client, name = self.client, self.client.next_name()
        count = self.dice.choice((1, 1, 1, 2))
        values = [f'{self.campaign.prefix}v{number}' for number in range(NUMBER)]
        reservations = list(zip(self.dice.sample(self.reservers(), count), self.dice.sample(values, count), strict=True))
        reservations = [[id_, value if self.dice.random() < 0.7 else None] for id_, value in reservations]
        docs = [{'c': UNIQUE, 'id': id_, **({'items': [{'c': 'Main', 'j': {'name': value, 'by': name}}]} if value else {'delete': True})}
                for id_, value in reservations]
        client.write(name, 'reserve', lambda headers, more: client.operate('put', {'param': {'docs': docs}}, headers, **more), [], {},
                     is_keyed=True, reservations=[[self.campaign.place(id_), value] for id_, value in reservations])

    def taken(self, args, reservations):
        """Who was refused its value, where that is known: of a value that another namespace holds, the answer names only the property."""
        who = [document for document, value in reservations if value]
        return {'taken': self.campaign.place(args[2])} if len(args) > 2 else {'taken': who[0]} if len(who) == 1 else {}

    def read_reservations(self):
        """All of them at one instant; what was read, or None."""
        client, start = self.client, time.monotonic_ns()
        out = self.ask('reservations', start, 'get', {'docs': [{'c': UNIQUE, 'id': id_} for id_ in self.reservers()]})
        if out is None:
            return None
        held = {self.campaign.place(one['id']): [one['v'], one['items'][0]['j']['name'] if one['items'] else None] for one in out['docs']}
        client.note(client.next_name(), 'reservations', start, 'ok', held=held)
        return held

    # --- copies ---

    def follower(self, number):
        """Its name, and the documents whose item it has a copy of."""
        documents = self.campaign.documents
        return f'{self.campaign.prefix}f{number}', [documents[(number + step) % len(documents)] for step in range(min(SHARES, len(documents)))]

    def follow(self, number=None):
        """A document gets copies of the items that its sources have at this instant."""
        client = self.client
        follower, sources = self.follower(self.dice.randrange(NUMBER) if number is None else number)
        answer = client.operate('Follow', {'param': {'follower': follower, 'sources': sources}})
        if answer.result == 'wrong':
            client.note(client.next_name(), 'follow', time.monotonic_ns(), 'wrong', words=answer.words)
            return True
        return not client.trouble(answer)

    def read_copies(self):
        """At the end of a round, when no task is left."""
        client = self.client
        while True:
            start = time.monotonic_ns()
            names = [self.follower(number)[0] for number in range(NUMBER)]
            answer = client.operate('get', {'param': {'docs': [{'c': FOLLOWER, 'id': name} for name in names]}})
            if answer.result == 'wrong':
                return client.note(client.next_name(), 'copies', start, 'wrong', words=answer.words)
            if not client.trouble(answer):
                break
        copies = {one['id']: {item['k']: json.dumps(item['j'], separators=(',', ':')) for item in one['items']} for one in answer.body['out']['docs']}
        return client.note(client.next_name(), 'copies', start, 'ok', copies=copies, copied=self.campaign.round.value > 1,
                           sources={follower: sources for follower, sources in map(self.follower, range(NUMBER))})

    def follow_all(self):
        for number in range(NUMBER):
            while not self.follow(number):
                pass

    # --- documents that end ---

    def bear(self):
        """A document that ends within a minute or two, by the clock on the wall."""
        client, name = self.client, self.client.next_name()
        until = int(time.time() // 60) + self.dice.choice((1, 1, 2))
        docs = [{'c': MORTAL, 'id': name, 'items': [{'c': 'Main', 'j': {'until': until, 'kind': self.campaign.prefix}}]}]
        client.write(name, 'bear', lambda headers, more: client.operate('put', {'param': {'docs': docs}}, headers, **more), [], {},
                     mortal=[name, until])
        self.mortals = [*self.mortals, [name, until]][-KEPT_MOST:]

    def read_mortals(self):
        """By name, in a list, or by a search.  Servers judge by their clocks, which may lag by what is noted."""
        client, start, way = self.client, time.monotonic_ns(), self.dice.choice(('get', 'get', 'list', 'find'))
        if not self.mortals:
            return
        begin, low = time.time(), self.campaign.lowest_clock()
        requested = self.dice.sample(self.mortals, min(len(self.mortals), REQUESTED_MOST))
        age = 3 if way == 'get' and self.dice.random() < 0.2 else 0
        if way == 'get':
            docs = [{'c': MORTAL, 'id': id_, **({'age': age} if age else {})} for id_, _ in requested]
            out = self.ask('mortals', start, 'get', {'docs': docs})
        else:
            prefix = {'t': 'sw', 'v1': client.own_names()}
            out = self.ask('mortals', start, way, {'c': MORTAL, 'prefix': prefix['v1'], 'limit': 1000} if way == 'list' else {
                'c': MORTAL, 'i': 'Main', 'where': [{'f': 'kind', 't': 'eq', 'v1': self.campaign.prefix}], 'id': prefix, 'limit': 1000})
        if out is None or 'cursor' in out:
            return
        found = set(out['ids']) if 'ids' in out else {one['id'] for one in out['docs'] if one['v']}
        client.note(client.next_name(), 'mortals', start, 'ok', requested=requested, alive=[id_ for id_, _ in requested if id_ in found],
                    age=age, wall=[begin, time.time()], low=min(low, self.campaign.lowest_clock()))

    # --- subscriptions ---

    def subscribe(self):
        """The session of this client, once."""
        documents = self.dice.sample(self.campaign.documents, (len(self.campaign.documents) + 1) // 2)
        definitions = [CLASS, *(f'{CLASS}/{document}' for document in documents), *(f'{CLASS}/team@{team}' for team in TEAMS)]
        answer = self.client.operate('subs', {'session': self.session, 'param': {'defs': definitions, 'life': 1440}})
        if not self.client.trouble(answer):
            self.definitions = definitions

    def naming(self):
        """What a request bears that names the session."""
        if not self.definitions:
            self.subscribe()
        return {'session': self.session} if self.definitions and self.dice.random() < 0.5 else {}

    def matched(self, answer, is_named, is_keyed):
        """The own definitions that the answer names, for the history."""
        if not is_named or answer is None or not answer.body:
            return {}
        sent = answer.body.get('subs', 'absent')
        if sent == 'absent':
            return {} if is_keyed else {'lost': 'the answer has no subscription'}
        if sent is None:
            return {'lost': 'its subscription is gone'}
        return {'matched': sent, 'definitions': self.definitions, 'is_named': True}

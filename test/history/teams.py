"""Holders of collections in a campaign: each synchronises by the tokens of its own last answers, however old they are."""
import json
import time

NS, CLASS = 'lab', 'Hot'
TEAMS = ('red', 'blue')
HOLDERS = 3       # of each client for each collection
OUTSIDE_MOST = 3  # documents looked for where they are not: the checker has to find a place in time for each
# The class of the hot documents, when their collections are looked at.
SCHEMA = {'items': {'Last': {'singleton': True}, 'List': {'singleton': True}, 'Count': {'singleton': True},
                    'Team': {'singleton': True}, 'Line': {}},
          'collections': {'team': {'key': ['Team.team'], 'mutable': True}}}


class Holder:
    """What one holds: documents with their versions, those that have left, and a token."""

    def __init__(self, team):
        self.team = team
        self.forget()

    def forget(self):
        self.members, self.gone, self.token = {}, {}, None

    def apply(self, out):
        if out['complete']:
            self.forget()
        for document, version in out['ids']:
            if version >= max(self.members.get(document, 0), self.gone.get(document, 0)):
                self.members[document] = version
                self.gone.pop(document, None)
        for document, version in out['left']:
            if version >= self.members.get(document, 0):
                self.members.pop(document, None)
                self.gone[document] = version
        self.token = out['token']


def read_stream(text):
    """What is held of a whole collection; None: the answer broke off."""
    lines = text.decode().split('\n')
    last = json.loads(lines[-2]) if len(lines) > 1 and lines[-1] == '' and lines[-2][:1] == '{' else {}
    if 'token' not in last or last['members'] != len(lines) - 2:
        return None
    return {'complete': True, 'ids': [json.loads(line) for line in lines[:-2]], 'left': [], 'token': last['token']}


class Teams:
    """What a client does with collections."""

    def __init__(self, client):
        self.client, self.dice = client, client.dice
        self.holders = [Holder(team) for team in TEAMS for _ in range(HOLDERS)]

    def choose(self):
        """The content of an item that makes its document a member."""
        return {'team': self.dice.choice(TEAMS)}

    def synchronise(self, holder=None):
        """True when it was answered.  All that a collection holds fits into a page, so a page is of one instant."""
        client, start = self.client, time.monotonic_ns()
        holder = holder or self.dice.choice(self.holders)
        is_stream = self.dice.random() < 0.1
        more = {'stream': True} if is_stream else {'limit': 1000, **({'token': holder.token} if holder.token else {})}
        answer = client.operate('collection', {'param': {'c': CLASS, 'collection': 'team', 'value': holder.team, 'want': 'ids', **more}})
        if answer.result == 'wrong':
            client.note(client.next_name(), 'collection', start, 'wrong', words=answer.words)
            return True
        if client.trouble(answer):
            return False
        holder.apply(answer.body if is_stream else answer.body['out'])
        documents = client.campaign.documents
        outside = [document for document in documents if document not in holder.members]
        client.note(client.next_name(), 'collection', start, 'ok',
                    [[document, holder.members[document], None] for document in documents if document in holder.members],
                    team=holder.team, outside=self.dice.sample(outside, min(len(outside), OUTSIDE_MOST)))
        return True

    def synchronise_all(self):
        """At the end of a round."""
        for holder in self.holders:
            while not self.synchronise(holder):
                pass

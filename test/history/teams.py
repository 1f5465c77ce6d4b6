"""Holders of collections in a campaign: each synchronises by the tokens of its own last answers, however old they are."""
import json
import time

from collected import Collected

CLASS = 'Hot'
TEAMS = ('red', 'blue')
TEAM_COPIES = 3       # of each client for each collection
OUTSIDE_MOST = 3  # documents looked for where they are not: the checker has to find a place in time for each
# The class of the hot documents, when their collections are looked at.
SCHEMA = {'items': {'Last': {'singleton': True}, 'List': {'singleton': True}, 'Count': {'singleton': True},
                    'Team': {'singleton': True, 'fields': {'team': 'string'}}, 'Line': {},
                    'Src': {'singleton': True, 'copies': {'to': ['Foll']}}},
          'collections': {'team': {'key': ['Team.team'], 'mutable': True}}}


class TeamCopy(Collected):
    """One copy: members with the versions that came last, and a token."""

    def __init__(self, team):
        super().__init__('team', team)

    @property
    def team(self):
        return self.value


def read_stream(text):
    """What is held of a whole collection, with a token unless rules decide; None: the answer broke off."""
    lines = text.decode().split('\n')
    last = json.loads(lines[-2]) if len(lines) > 1 and lines[-1] == '' and lines[-2][:1] == '{' else {}
    if last.get('members') != len(lines) - 2:
        return None
    return {'complete': True, 'first': True, 'ids': [json.loads(line) for line in lines[:-2]], 'left': [], **last}


class Teams:
    """What a client does with collections."""

    def __init__(self, client):
        self.client, self.dice = client, client.dice
        self.team_copies = [TeamCopy(team) for team in TEAMS for _ in range(TEAM_COPIES)]

    def choose(self):
        """The content of an item that makes its document a member."""
        return {'team': self.dice.choice(TEAMS)}

    def ask(self, copy, want):
        """All that a collection holds fits into a page, so a page of ids is of one instant."""
        is_stream = want == 'ids' and self.dice.random() < 0.1
        more = {'stream': True} if is_stream else {'limit': 1000, **copy.place()}
        answer = self.client.operate('collection', {'param': {'c': CLASS, 'collection': 'team', 'value': copy.team, 'want': want, **more}})
        if answer.result != 'wrong' and not self.client.trouble(answer):
            copy.apply(answer.body if is_stream else answer.body['out'])
            return answer, True
        return answer, False

    def synchronise(self, copy=None):
        """True when it was answered.  Documents come as they are at the moment, which may be newer than their page; behind them the ids
        are requested, by the token of that answer: what is held then is of the instant of the ids."""
        client = self.client
        copy = copy or self.dice.choice(self.team_copies)
        answer, is_answered, start = None, True, time.monotonic_ns()
        if self.dice.random() < 0.5:
            answer, is_answered = self.ask(copy, 'docs')
        if is_answered:
            start = time.monotonic_ns()
            answer, is_answered = self.ask(copy, 'ids')
        if answer.result == 'wrong':
            client.note(client.next_name(), 'collection', start, 'wrong', words=answer.words)
            return True
        if not is_answered:
            return False
        documents = client.campaign.documents
        outside = [document for document in documents if document not in copy.members]
        client.note(client.next_name(), 'collection', start, 'ok',
                    [[document, copy.members[document], None] for document in documents if document in copy.members],
                    team=copy.team, outside=self.dice.sample(outside, min(len(outside), OUTSIDE_MOST)))
        return True

    def synchronise_all(self):
        """At the end of a round."""
        for copy in self.team_copies:
            while not self.synchronise(copy):
                pass

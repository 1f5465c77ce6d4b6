"""Listeners of a rights campaign: each holds the versions of the documents that its account may read, by nothing but live events and the
reads that these lead to, and nothing of the others: a departure that is not sent leaves one behind."""
import http.client
import ssl
import threading
import time
from urllib.parse import quote, urlsplit

from callers import split
from extras import LATE_S
from hands import NS, Hand
from live_reader import LiveReader

SILENCE_S = 20


class RightsListener(LiveReader, Hand):
    def __init__(self, campaign, number):
        super().__init__(campaign, f'live{number}')
        self.place = number
        self.account = self.last = None
        self.held, self.is_ending, self.begun, self.since = {}, False, 0, 0
        self.counts = {'events': 0, 'connections': 0, 'resumed': 0, 'looks at all': 0, 'ended': 0}
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.thread.start()

    def listen(self, url, certificate):
        """With any session of the account that is at its place now."""
        account = self.campaign.accounts[self.place]
        sessions = list(account.sessions.items())
        if not sessions:
            return
        if account is not self.account:
            self.account, self.held, self.last = account, {}, None
        (self.session, self.token), host = self.dice.choice(sessions), urlsplit(url)
        self.begun = time.monotonic_ns()
        if not self.last:
            self.since = self.begun
        connection = http.client.HTTPSConnection(host.hostname, host.port, timeout=SILENCE_S, context=ssl.create_default_context(cafile=certificate))
        try:
            headers = {**self.bearer(), **({'Last-Event-ID': self.last} if self.last else {})}
            connection.request('GET', f'/{NS}/live?' + '&'.join(f'def={quote(one, safe="")}' for one in self.campaign.documents), headers=headers)
            answer = connection.getresponse()
            if answer.status == 200:
                self.counts['connections'] += 1
                self.read(answer)
            elif answer.status == 400:
                self.note('live', self.begun, 'wrong', words=f'{answer.status} {answer.read()[:200]!r}')
        finally:
            connection.close()

    def bearer(self):
        return {'Authorization': f'Bearer {self.token}'}

    def goes_on(self):
        return super().goes_on() and self.campaign.accounts[self.place] is self.account

    def hear(self, name, data):
        """False: the connection is of no use any more."""
        self.counts['events'] += 1
        if name == 'change':
            late = LATE_S * 10 ** 9 if self.campaign.is_apart else 0
            self.note('live', self.begun, since=self.since - late, account=self.account.id, session=self.session, events=data['changed'])
            is_another_team = not all(version for _, version in data['changed'])
            return self.look() if is_another_team else self.look([document for document, _ in data['changed']])
        self.counts['resumed'] += name == 'ready' and data['resumed']
        self.counts['ended'] += name == 'closed'
        if name == 'reset' or (name == 'ready' and not data['resumed']):
            self.counts['looks at all'] += 1
            if not self.look():
                return False
            self.since = self.begun
        return name != 'closed'

    def look(self, documents=None):
        """Reads these, or everything; what is not there for its account is held as 0."""
        documents = documents or self.campaign.documents
        answer = self.operate(NS, 'get', {'docs': [split(one) for one in documents]}, self.bearer())
        if answer.result != 'ok' or not answer.body:
            return False
        self.held.update((document, one['v']) for document, one in zip(documents, answer.body['out']['docs'], strict=True))
        return True

    def differs(self):
        """What it does not have of what its account may read, or has of what the account may not, when nothing changes any more; None: nothing."""
        account = self.campaign.accounts[self.place]
        documents = self.campaign.documents
        answer = self.operate(NS, 'get', {'docs': [split(one) for one in documents]}, {'Authorization': f'Bearer {next(iter(account.sessions.values()))}'})
        if answer.result != 'ok' or not answer.body or account is not self.account:
            return f'{account.id} was not answered, or does not listen'
        for document, one in zip(documents, answer.body['out']['docs'], strict=True):
            if self.held.get(document, 0) != one['v']:
                return f'{document} is at {one["v"]}, held is {self.held.get(document)} by {account.id}'
        return None

    def close(self):
        self.is_ending = True

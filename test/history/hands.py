"""What a thread of a rights campaign (rights.py) sends requests with, and where it notes what became of them."""
import random
import time

from answers import Answer, judge
from client import PAUSE_S
from state import compact
from wire import ADDRESS, Lost, Wire

NS = 'club'
REFUSED = ('SKEY', 'SRULE', 'NDOCUMENT')  # what shows that a caller has no right


class Hand:
    """What a thread sends requests with."""

    def __init__(self, campaign, number):
        self.campaign, self.number, self.sequence = campaign, number, 0
        self.dice = random.Random(f'{campaign.seed}/{number}')
        self.wires = [Wire(url, certificate, ADDRESS) for url, certificate in campaign.servers]
        self.lines, self.troubles = [], {}

    def send(self, method, path, body=None, headers=None):
        wire = self.dice.choice(self.wires)
        try:
            wire.send(method, path, None if body is None else compact(body), {'Content-Type': 'application/json', **(headers or {})})
            answer = judge(*wire.receive())
        except Lost as lost:
            answer = Answer('unknown' if lost.was_sent else 'no', code='LOST' if lost.was_sent else 'CLOSED')
        if answer.code in REFUSED:
            return answer
        if answer.result in ('no', 'unknown') or (answer.result == 'ok' and answer.body is None and answer.status != 304):
            self.troubles[answer.trouble] = self.troubles.get(answer.trouble, 0) + 1
            time.sleep(0 if answer.code == 'CONTENTION' else PAUSE_S)
        return answer

    def operate(self, ns, name, param, headers=None, **more):
        return self.send('POST', f'/{ns}/op/{name}', {'param': param, **more}, headers)

    def next_name(self):
        self.sequence += 1
        return f'{NS}-{self.number}.{self.campaign.round}.{self.sequence}'

    def note(self, kind, start, result='ok', end=None, **more):
        self.lines.append(compact({'id': self.next_name(), 'kind': kind, 'start': start, 'end': end or time.monotonic_ns(), 'result': result,
                                   **more}))

    def note_wrong(self, kind, start, answer):
        self.note(kind, start, 'wrong', words=answer.words)

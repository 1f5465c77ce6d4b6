"""Tasks in a campaign: clients ask for some that count, and play queue managers that double requests and lose answers."""
import json
import time

from external import finish_some, read_ended
from wire import Lost

SCAN_LIMIT = 30
TOGETHER_MOST = 8
PAUSE_S = 0.05
LONG_AGO = 200101000000000
# Why no attempt was made, while others do harm.
NOT_NOW = {'OSTOPPING', 'OTWIN', 'XAWAY', 'XDATABASE', 'ODATABASE', 'XTIME', 'CONTENTION', 'XUNKNOWN'}


class Tasks:
    """What a client does with tasks."""

    def __init__(self, client):
        self.client, self.campaign, self.dice = client, client.campaign, client.dice

    # --- asking ---

    def ask(self):
        client, dice = self.client, self.dice
        name, orders, counts = client.next_name(), [], []
        for number in range(dice.choice((1, 1, 2, 3))):
            tally, key, times = dice.choice(self.campaign.tallies()), f'{name}.{number}', dice.choice((1, 1, 1, 2))
            param = {'tally': tally, 'key': key, 'times': times, 'rest_ms': dice.choice((0, 0, 5)), 'fail': int(dice.random() < 0.1)}
            order = {'op': dice.choice(('Tally', 'TallyTogether')), 'param': param}
            if dice.random() < 0.2:
                order['domain'] = dice.choice('de')
            if dice.random() < 0.4:
                order = {'op': 'Tally', 'param': {'child': order, 'rest_ms': dice.choice((0, 5, 20))}}
            orders.append(order)
            counts.append([tally, key, times])
        client.synced = []
        param = {'tasks': orders, 'fail': dice.random() < 0.05}
        client.write(name, 'Ask', lambda headers, more: client.operate('Ask', {'param': param}, headers, **more), [], {}, tasks=counts)

    # --- managing ---

    def post(self, number, path, param=None, loses_answer=False):
        """The answer of server `number`; Lost when there is none that tells of tasks."""
        client, wire = self.client, self.client.wires[number]
        body = {'key': self.campaign.queue_keys[number], **({'param': param} if param else {})}
        start = time.monotonic_ns()
        wire.send('POST', f'/{self.campaign.ns}/od{path}', json.dumps(body), {'Content-Type': 'application/json'})
        if loses_answer:
            wire.close()
            raise Lost(True)
        status, headers, text = wire.receive()
        if status in (502, 504) or ('X-Request-Id' not in headers and status == 503):
            raise Lost(True)
        answer = json.loads(text)
        if status == 200 or (status == 500 and 'tasks' in answer):
            return answer
        if answer.get('code') not in NOT_NOW:
            client.note(client.next_name(), 'manager', start, 'wrong', words=f'{status} {answer}')
        raise Lost(True)

    def scan(self, number):
        return self.post(number, '', {'scan': {'limit': SCAN_LIMIT}})['due']

    def manage(self):
        """One look at what is due, and an attempt at some of it."""
        dice, servers = self.dice, range(len(self.client.wires))
        try:
            due = self.scan(dice.choice(servers))
            if not due:
                return
            one = dice.choice(due)
            alike = [row['id'] for row in due if row['op'] == one['op'] and row['batch'] > 1 and 'domain' not in row]
            if len(alike) > 1 and dice.random() < 0.7:
                self.post(dice.choice(servers), '', {'run': alike[:TOGETHER_MOST]}, dice.random() < 0.1)
                return
            if dice.random() < 0.3:
                try:
                    self.post(dice.choice(servers), f'/{one["id"]}', loses_answer=True)
                except Lost:
                    pass
            self.post(dice.choice(servers), f'/{one["id"]}', loses_answer=dice.random() < 0.1)
        except Lost:
            time.sleep(PAUSE_S)

    # --- the end of a round ---

    def left(self):
        """How many tasks there are still; those that wait may start now, and claims of external workers end, whatever the clocks of servers say."""
        try:
            psql = self.campaign.stack.psql
            psql(self.campaign.ns, 'update taskqueue set expires = %s where expires > %s', (LONG_AGO, LONG_AGO))
            psql(self.campaign.ns, 'select task_move(taskid, %s) from taskqueue where starttime is null and startat <> %s', (LONG_AGO, LONG_AGO))
            return psql(self.campaign.ns, 'select count(*) from taskqueue')[0][0]
        except Exception:  # its connection was ended
            self.campaign.stack.connections.clear()
            return -1

    def names_of_left(self):
        """Which operations they are, for who looks for the cause."""
        rows = self.campaign.stack.psql(self.campaign.ns, "select opname || ' ' || coalesce(exc, '') || ' ' || coalesce(report, ''), count(*)"
                                        " from taskqueue group by 1")
        return ', '.join(f'{count} {words}' for words, count in rows)

    def drain(self):
        """Runs what is left, as long as there is less and less of it; how many tasks could not be brought to their end."""
        end, least = time.monotonic() + self.campaign.drain_s, float('inf')
        number, external = 0, self.campaign.external
        finisher = external and external.finisher()
        while (left := self.left()) and time.monotonic() < end:
            if 0 < left < least:
                end, least = time.monotonic() + self.campaign.drain_s, left
            number = (number + 1) % len(self.client.wires)
            try:
                for row in self.scan(number):
                    self.post(number, f'/{row["id"]}')
                if finisher:
                    finish_some(finisher)
            except Lost:
                time.sleep(PAUSE_S)
        return left

    def tell_all(self):
        """The line of what was counted."""
        client, left, start = self.client, self.drain(), time.monotonic_ns()
        words = self.names_of_left() if left > 0 else ''
        names = self.campaign.tallies()
        while True:
            answer = client.operate('get', {'param': {'docs': [{'c': 'Tally', 'id': name} for name in names]}})
            if answer.result == 'wrong':
                return client.note(client.next_name(), 'tallies', start, 'wrong', words=answer.words)
            ended = None if client.trouble(answer) else read_ended(self.campaign) if self.campaign.external else {}
            if ended is not None:
                tallies = {one['id']: {item['k']: item['j'] for item in one.get('items', ())} for one in answer.body['out']['docs']}
                return client.note(client.next_name(), 'tallies', start, 'ok', tallies=tallies, left=left, words=words, ended=ended)

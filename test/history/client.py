"""Clients of a campaign: each thread sends random operations over a few hot documents and records the answers.

A line of a history (checker.py reads it) is an operation: when it was sent and answered (CLOCK_MONOTONIC, one for all
processes), whether it was done, for certain not done, or nobody knows, what it saw, what it would write.
"""
import json
import random
import time

from answers import Answer, judge
from external import request_task
from extras import Extras
from holder import Copy
from state import compact, name_of, pack, state_of
from tasks import Tasks
from teams import Teams
from wire import ADDRESS, Lost, Wire

CLASS = 'Hot'
RETRIES_MOST_S = 45   # how long an operation under an Idempotency-Key is sent again
PAUSE_S = 0.05        # after an answer that says that something is away
REFUSED = {'AVERSION', 'NDOCUMENT'}
LINES_KEPT = 12       # beyond them a writer removes some
LONG_MS = 120         # a request that has worked for 100 ms is a long one
LONG_BODY = 70000     # so is one with a body of more than 64 KiB


class Client:
    """One thread: requests, copies, and the states of documents that it has seen."""

    def __init__(self, campaign, number):
        self.campaign, self.number = campaign, number
        self.dice = random.Random(f'{campaign.seed}/{number}')
        self.wires = [Wire(url, certificate, None if number == 'leader' else ADDRESS) for url, certificate in campaign.servers]
        self.tasks, self.teams, self.extras = Tasks(self), Teams(self), Extras(self)
        self.copies = {document: Copy(CLASS, document) for document in campaign.documents}
        self.known = {}  # document -> (version, state) as it was seen last
        self.sequence = 0
        self.file = None
        self.troubles = {}

    # --- requests ---

    def wire(self):
        return self.dice.choice(self.wires)

    def request(self, wire, method, path, body=None, headers=None, loses_answer=False):
        try:
            text = None if body is None else json.dumps(body)
            if text and self.dice.random() < 0.02:
                text = text.ljust(LONG_BODY)
            wire.send(method, path, text,
                      {'Content-Type': 'application/json', **(headers or {})})
            if loses_answer:
                wire.close()
                return Answer('unknown', code='DROPPED')
            return judge(*wire.receive())
        except Lost as lost:
            return Answer('unknown' if lost.was_sent else 'no', code='LOST' if lost.was_sent else 'CLOSED')

    def operate(self, name, body, headers=None, **more):
        return self.request(self.wire(), 'POST', f'/{self.campaign.ns}/op/{name}', body, headers, **more)

    def trouble(self, answer):
        """True when there is nothing to be read from it."""
        if answer.code and answer.code not in REFUSED:
            self.troubles[answer.trouble] = self.troubles.get(answer.trouble, 0) + 1
            if answer.code not in ('CONTENTION', 'DROPPED'):
                time.sleep(PAUSE_S)
        return answer.result != 'ok' or (answer.body is None and answer.status != 304)

    # --- the history ---

    def own_names(self):
        """What the names of its operations begin with."""
        return f'{self.campaign.label}-{self.number}.'

    def next_name(self):
        self.sequence += 1
        return f'{self.own_names()}{self.campaign.round.value}.{self.sequence}'

    def note(self, name, kind, start, result, reads=(), writes=None, end=None, **more):
        line = {'id': name, 'kind': kind, 'start': start, 'end': end or time.monotonic_ns(), 'result': result, 'reads': list(reads)}
        if writes:
            line['writes'] = writes
        line.update((key, value) for key, value in more.items() if value)
        self.file.write(compact(line) + '\n')
        with self.campaign.noted:
            self.campaign.noted.value += 1
            self.campaign.written.value += result == 'ok' and bool(writes)

    def learn(self, document, version, state):
        self.known[document] = (version, state)
        return [document, version, state]

    def note_documents(self, kind, start, answer, documents):
        """A read that was answered with whole documents."""
        if answer.result == 'wrong':
            return self.note(self.next_name(), kind, start, 'wrong', words=answer.words)
        if not self.trouble(answer):
            self.note(self.next_name(), kind, start, 'ok', [self.learn(one['id'], one['v'], state_of(one)) for one in documents()])
        return None

    def choose(self, least=1, most=8):
        """A few documents; small sets more often."""
        count = min(most, len(self.campaign.documents), max(least, self.dice.choice((1, 1, 1, 2, 2, 3, 4, 6, 8))))
        return self.dice.sample(self.campaign.documents, count)

    def is_lasting(self, document):
        return document in self.campaign.lasting

    def with_lasting(self, documents):
        """What ends lives writes nothing else, or into one that lasts too: so the checker can know whether it was done."""
        if len(documents) < 2 or any(map(self.is_lasting, documents)):
            return documents
        return [*documents, self.dice.choice(self.campaign.lasting)]

    # --- reads ---

    def get(self, documents=None):
        start, documents = time.monotonic_ns(), documents or self.choose()
        answer = self.operate('get', {'param': {'docs': [{'c': CLASS, 'id': document} for document in documents]}})
        self.note_documents('get', start, answer, lambda: answer.body['out']['docs'])

    def look(self):
        start, documents = time.monotonic_ns(), self.choose(2)
        answer = self.operate('Look', {'param': {'reads': [{'c': CLASS, 'id': document} for document in documents],
                                                 'rest_ms': self.dice.choice((0, 0, 2, 10))}})
        self.note_documents('Look', start, answer, lambda: answer.body['out']['docs'])

    def list(self):
        start = time.monotonic_ns()
        answer = self.operate('list', {'param': {'c': CLASS, 'prefix': self.campaign.prefix, 'limit': 1000}})
        if answer.result == 'wrong':
            return self.note(self.next_name(), 'list', start, 'wrong', words=answer.words)
        if not self.trouble(answer) and 'cursor' not in answer.body['out']:
            living = {one['id']: one['v'] for one in answer.body['out']['docs']}
            self.note(self.next_name(), 'list', start, 'ok', [[document, living.get(document, 0), None]
                                                             for document in self.campaign.documents])
        return None

    def get_resource(self):
        start, (document,) = time.monotonic_ns(), self.choose(1, 1)
        version = self.known.get(document, (0,))[0]
        headers = {'If-None-Match': f'"{version}"'} if version and self.dice.random() < 0.7 else {}
        answer = self.request(self.wire(), 'GET', f'/{self.campaign.ns}/doc/{CLASS}/{document}', None, headers)
        if answer.status == 304:
            self.note(self.next_name(), 'GET', start, 'ok', [[document, version, None]])
        elif answer.code == 'NDOCUMENT':
            self.note(self.next_name(), 'GET', start, 'ok', [self.learn(document, 0, '')])
        else:
            self.note_documents('GET', start, answer, lambda: [answer.body])

    # --- synchronisation ---

    def sync_requests(self, documents):
        return [self.copies[document].request() for document in documents]

    def take_syncs(self, start, documents, answer, parent=None):
        for document, one in zip(documents, answer.body['syncs']):
            copy = self.copies[document]
            if not copy.apply(one):
                continue  # the answer was full: the copy is what it was
            items = {name_of({'c': class_, 'k': key}): (copy.versions[class_, key], compact(content))
                     for (class_, key), content in copy.items.items()}
            state = pack(copy.ctime, items) if copy.version else ''
            self.note(self.next_name(), 'sync', start, 'ok', [self.learn(document, copy.version, state)], parent=parent)

    def sync(self):
        start, documents = time.monotonic_ns(), self.choose()
        answer = self.operate('sync', {'syncs': self.sync_requests(documents)})
        if answer.result == 'wrong':
            self.note(self.next_name(), 'sync', start, 'wrong', words=answer.words)
        elif not self.trouble(answer):
            self.take_syncs(start, documents, answer)

    # --- writes ---

    def lines(self, name, document, actions):
        """The items of a put that adds a line of its own, and what this does."""
        own = compact(name)
        actions += [['set', 'Last', own], ['set', f'Line.{name}', own]]
        items = [{'c': 'Last', 'j': name}, {'c': 'Line', 'k': name, 'j': name}]
        if self.campaign.has_teams and self.dice.random() < 0.4:
            team = self.teams.choose()
            actions.append(['set', 'Team', compact(team)])
            items.append({'c': 'Team', 'j': team})
        if self.campaign.has_extras and self.dice.random() < 0.4:
            is_there = self.dice.random() < 0.8
            actions.append(['set', 'Src', compact({'n': name})] if is_there else ['del', 'Src'])
            items.append({'c': 'Src', 'j': {'n': name}} if is_there else {'c': 'Src', 'del': True})
        state = self.known.get(document, (0, ''))[1] or ''
        old = [one.partition('@')[0] for one in state.split(';') if one.startswith('Line.')]
        if len(old) > LINES_KEPT:
            for gone in self.dice.sample(old, len(old) - LINES_KEPT // 2):
                actions.append(['del', gone])
                items.append({'c': 'Line', 'k': gone[5:], 'del': True})
        return items

    def put(self):
        """Blind, or under conditions on what was read last; documents may be named for their condition only."""
        name, documents = self.next_name(), self.choose(1, 4)
        is_conditional, ends = self.dice.random() < 0.5, self.dice.random() < 0.15
        if ends:
            documents = self.with_lasting(documents)
        if (is_conditional or ends) and self.dice.random() < 0.7:
            self.get(documents)
        param, reads, writes = [], [], {}
        for document in documents:
            order = {'c': CLASS, 'id': document}
            version = self.known.get(document, (0,))[0]
            if (is_conditional or ends) and document in self.known:
                order['if'] = version
                reads.append([document, version, None])
                if ends and version and not self.is_lasting(document):
                    order['delete'] = True
                    writes[document] = [['end']]
                elif version and len(documents) > 1 and not (ends and self.is_lasting(document)) and self.dice.random() < 0.4:
                    pass  # named for its condition
                else:
                    writes[document] = []
            else:
                writes[document] = []
                if self.dice.random() < 0.1 and not self.is_lasting(document):
                    order['delete'] = True
                    writes[document].append(['renew'])
            if writes.get(document) in ([], [['renew']]):
                order['items'] = self.lines(name, document, writes[document])
            param.append(order)
        naming = self.naming()
        self.write(name, 'put', lambda headers, more: self.operate('put', {'param': {'docs': param}, **naming, **self.with_syncs(more)}, headers,
                                                                   **more), reads, writes, naming)

    def naming(self):
        return self.extras.naming() if self.campaign.has_extras else {}

    def with_syncs(self, more):
        self.synced = self.choose() if not more and self.dice.random() < 0.3 else []
        return {'syncs': self.sync_requests(self.synced)} if self.synced else {}

    def transact(self):
        name, chosen = self.next_name(), self.choose(1, 8)
        read = [document for document in chosen if self.dice.random() < 0.8]
        written = self.dice.sample(chosen, min(len(chosen), self.dice.choice((0, 1, 1, 2, 3))))
        ways = ('push',) * 8 + ('renew',)
        if self.dice.random() < 0.3:
            written, ways = self.with_lasting(written), ways + ('end',) * 4
        orders, reads, writes = [], [], {}
        for document in written:
            order, how = {'c': CLASS, 'id': document}, 'push' if self.is_lasting(document) else self.dice.choice(ways)
            version = self.known.get(document, (0,))[0]
            if how == 'end' and not version:
                how = 'push'
            if how == 'end' or (document in self.known and self.dice.random() < 0.1):
                order['if'] = version
                reads.append([document, version, None])
            order['how'] = how
            writes[document] = {'push': [['push']], 'renew': [['renew'], ['push']], 'end': [['end']]}[how]
            orders.append(order)
        param = {'reads': [{'c': CLASS, 'id': document} for document in read], 'writes': orders, 'operation': name,
                 'rest_ms': self.dice.choices((0, 2, 10, LONG_MS), (58, 20, 20, 2))[0]}
        naming = self.naming() if orders else {}
        self.write(name, 'Transact', lambda headers, more: self.operate(
            'Transact', {'param': param, **naming, **self.with_syncs(more)}, headers, **more), reads, writes, naming)

    def change_resource(self):
        name, (document,) = self.next_name(), self.choose(1, 1)
        version, actions = self.known.get(document, (0,))[0], []
        method = self.dice.choice(('PUT', 'PATCH', 'PATCH', 'DELETE'))
        headers, body, reads = {}, None, []
        if method == 'DELETE' and self.is_lasting(document):
            method = 'PATCH'
        if version and (method == 'DELETE' or self.dice.random() < 0.5):
            headers, reads = {'If-Match': f'"{version}"'}, [[document, version, None]]
        elif method == 'PUT':
            headers, reads = {'If-None-Match': '*'}, [[document, 0, None]]
        elif not version:
            return
        if method == 'DELETE':
            actions.append(['end'])
        elif method == 'PATCH':
            body = {'items': self.lines(name, document, actions)}
        else:
            own = compact(name)
            actions = [['only', []], ['set', 'Last', own], ['set', f'Line.{name}', own]]
            body = {'items': [{'c': 'Last', 'j': name}, {'c': 'Line', 'k': name, 'j': name}]}
        self.synced = []
        self.write(name, method, lambda more_headers, more: self.request(
            self.wire(), method, f'/{self.campaign.ns}/doc/{CLASS}/{document}', body, {**headers, **more_headers}, **more), reads, {document: actions})

    def write(self, name, kind, send, reads, writes, naming=None, is_keyed=False, **noted):
        """Sends it once; or, under an Idempotency-Key, until its fate is known, and sometimes once more."""
        headers = {'Idempotency-Key': name} if is_keyed or self.dice.random() < 0.5 else {}
        start, results, good = time.monotonic_ns(), set(), None
        self.synced = []
        deadline, versions = time.monotonic() + RETRIES_MOST_S, []
        while True:
            sent = time.monotonic_ns()
            answer = send(headers, {'loses_answer': True} if headers and self.dice.random() < 0.1 else {})
            self.trouble(answer)
            results.add(answer.result)
            if answer.result == 'ok':
                good = answer if answer.body else good
                versions.append(version_of(answer))
            elif answer.code in REFUSED:
                self.note_refusal(kind, sent, answer)
            if not headers or not self.sends_again(results, answer, deadline):
                break
        result = next(result for result in ('wrong', 'ok', 'unknown', 'no') if result in results)
        more = {'answers': [version for version in versions if version], 'code': answer.code, **noted}
        if result == 'wrong':
            more['words'] = answer.words
        if result == 'ok' and (writes or 'reservations' in noted):
            more['version'] = next((version for version in versions if version), None)
        if writes:
            more.update(self.extras.matched(good, naming, headers))
        if answer.code == 'AUNIQUE' and result == 'no':
            more.update(self.extras.taken(answer.body['args'], noted['reservations']))
        if result == 'no':
            reads = []
        elif good:
            seen = good.body.get('out', {}).get('docs', ()) if writes or kind == 'Transact' else ()
            reads = [*reads, *(self.learn(one['id'], one['v'], state_of(one)) for one in seen if 'items' in one)]
            if kind == 'put':
                more['stands'] = [[one['id'], one['v']] for one in seen]
        self.note(name, kind, start, result, reads, writes, **more)
        if answer is good and self.synced:
            self.take_syncs(sent, self.synced, answer, name)

    def sends_again(self, results, answer, deadline):
        if answer.result == 'wrong' or answer.code in (*REFUSED, 'AREFUSED', 'AUNIQUE') or time.monotonic() > deadline:
            return False
        return self.dice.random() < 0.1 if answer.result == 'ok' else 'unknown' in results

    def note_refusal(self, kind, sent, answer):
        """AVERSION tells the version of a document, NDOCUMENT its absence."""
        _, document, *version = answer.body['args']
        self.note(self.next_name(), f'{kind} refused', sent, 'ok', [[document, int(version[0]) if version else 0, None]])

    # --- life ---

    def run_round(self, file):
        """Works until the campaign pauses; `file` takes the lines."""
        deeds = [(self.get, 20), (self.look, 8), (self.list, 3), (self.get_resource, 5), (self.sync, 12), (self.put, 22),
                 (self.transact, 24), (self.change_resource, 6), (self.tasks.ask, 4), (self.tasks.manage, 6)]
        if not self.campaign.has_module:
            deeds = [deed for deed in deeds if deed[0] not in (self.look, self.transact, self.tasks.ask, self.tasks.manage)]
        if self.campaign.has_teams:
            deeds.append((self.teams.synchronise, 5))
        if self.campaign.has_extras:
            deeds += self.extras.deeds()
        if self.campaign.has_external:
            deeds.append((lambda: request_task(self), 5))
        work, weights = zip(*deeds)
        self.file = file
        while not self.campaign.pause.is_set():
            self.dice.choices(work, weights)[0]()

    def read_all(self):
        """Every document in one read, sent again until it is answered."""
        while True:
            start = time.monotonic_ns()
            answer = self.operate('get', {'param': {'docs': [{'c': CLASS, 'id': document} for document in self.campaign.documents]}})
            if answer.result == 'wrong':
                return self.note(self.next_name(), 'get', start, 'wrong', words=answer.words)
            if not self.trouble(answer):
                documents = {one['id']: (one['v'], state_of(one)) for one in answer.body['out']['docs']}
                self.note(self.next_name(), 'get', start, 'ok', [[name, *what] for name, what in documents.items()])
                return documents


def version_of(answer):
    body = answer.body or {}
    return body.get('out', body).get('v')

"""A rights campaign: callers read and write documents of a namespace with access rules, while others change what decides: roles,
sessions, owners, members, teams, the rules themselves.  judge_rights.py judges its histories; decisions.py has the rules and the facts.

Each fact is changed by one thread, which goes on when the change is acknowledged: so at any time its value is known, but for the time
of a change.  A change whose answer was lost is sent again under its Idempotency-Key; where there can be none (accounts), the account
is given up, and another takes its place.
"""
import hashlib
import threading
import time
import traceback
from types import SimpleNamespace

from callers import Caller
from decisions import RULES
from followers import SENT_S
from hands import NS, Hand
from rights_live import RightsListener
from schema import Schemas
from state import compact

ROLES = ('boss', 'editor')
DOCUMENTS = [f'{name}/{number}' for name in ('Own', 'Club', 'Duty', 'Desk') for number in range(3)]
CREWS = ['Crew/0', 'Crew/1']
PLACES = 4              # of accounts: two of people with names, two with service keys
SESSIONS_MOST, LIVES_MOST = 3, 60  # of an account: at a time, ever
RULERS, CALLERS, LISTENERS = 2, 3, 2
WITNESSED = 0.7         # share of changes after which somebody reads at once what they decide
PASSWORD = 'correct horse battery'
ITEMS = {'Main': {'singleton': True, 'fields': {'all': 'string'}}, 'Member': {}, 'Secret': {'singleton': True}, 'Line': {}}
SCHEMA = {name: {'items': ITEMS, 'collections': {'all': {'key': ['Main.all'], 'mutable': True}}} for name in RULES[0]}
ALL = 'red'             # the value of that collection
SETTINGS = {'limit_client_attempts': 1000000, 'limit_name_attempts': 1000000, 'argon2_share': 100}


class Account:
    """`sessions`: number -> token; `ended`: some that have ended."""

    def __init__(self, id_, name=None):
        self.id, self.name, self.sessions, self.ended, self.made = id_, name, {}, {}, 0

    @property
    def is_person(self):
        return self.name is not None


class Ruler(Hand):
    """Changes what decides: the accounts of its places, its documents; the first also the rules."""

    def __init__(self, campaign, number):
        super().__init__(campaign, f'ruler{number}')
        self.places, self.count = range(number, PLACES, RULERS), 0
        self.witness = Caller(campaign, f'witness{number}')
        self.documents, self.crews = DOCUMENTS[number::RULERS], CREWS[number::RULERS]
        self.deeds = [(self.set_roles, 4), (self.disable, 2), (self.begin, 3), (self.end, 3), (self.set_main, 6), (self.set_member, 6),
                      (self.set_team, 6), (self.set_secret, 3)] + ([(self.set_rules, 2)] if number == 0 else [])

    def administer(self, ns, name, param, headers=None):
        return self.operate(ns, name, param, headers, admin=self.campaign.key)

    def change(self, fact, value, start, end, **more):
        """`end` None: nobody knows whether it happened."""
        self.lines.append(compact({'id': self.next_name(), 'kind': 'change', 'start': start, 'end': end, 'result': 'ok', 'fact': fact, 'value': value,
                                   **more}))
        self.campaign.facts[fact] = value
        if end and None not in self.campaign.accounts and self.dice.random() < WITNESSED:
            self.witness.look_at(fact)

    def insist(self, ns, name, param):
        """Sends it under a key until it is done: (answer, when it began, when it ended)."""
        start, headers = time.monotonic_ns(), {'Idempotency-Key': f'{self.campaign.seed}-{self.next_name()}'}
        while True:
            answer = self.administer(ns, name, param, headers)
            if answer.result == 'ok' and answer.body:
                return answer, start, time.monotonic_ns()
            if answer.result == 'wrong':
                raise RuntimeError(answer.words)

    def put(self, document, fact, value, *items):
        class_, _, id_ = document.partition('/')
        answer, start, end = self.insist(NS, 'put', {'docs': [{'c': class_, 'id': id_, 'items': list(items)}]})
        self.change(fact, value, start, end, document=document, version=answer.body['out']['v'])
        return answer.body['out']['v']

    # --- accounts ---

    def account(self):
        return self.campaign.accounts[self.dice.choice(self.places)]

    def attempt(self, account, param, *changes):
        """Without a key: if nobody knows the outcome, the account is given up."""
        while True:
            start = time.monotonic_ns()
            answer = self.administer(NS, 'accounts', param)
            if answer.result == 'wrong':
                raise RuntimeError(answer.words)
            if answer.result != 'no':
                break
        for fact, value in changes:
            self.change(fact, value, start, time.monotonic_ns() if answer.body and answer.result == 'ok' else None)
        if answer.result != 'ok' or not answer.body:
            self.give_up(account)

    def give_up(self, account):
        place = self.campaign.accounts.index(account)
        self.campaign.given_up.append(account.id)
        self.campaign.accounts[place] = self.make(place)

    def make(self, place):
        """A new account."""
        while True:
            start, name = time.monotonic_ns(), f'{NS}{place}-{self.campaign.seed}-{self.next_name()}'.replace('/', '-')
            param = {'create': {'name': name, 'password': PASSWORD}} if place % 4 < 2 else {'key': {'label': name}}
            answer = self.administer(NS, 'accounts', param)
            if answer.result == 'wrong':
                raise RuntimeError(answer.words)
            if answer.result == 'ok' and answer.body:
                break
        out = answer.body['out']
        account = Account(out['account'], name if 'create' in param else None)
        for fact, value in (('roles', []), ('off', False)):
            self.change(f'{fact}:{account.id}', value, start, time.monotonic_ns())
        self.campaign.everybody.append(account.id)
        if not account.is_person:
            self.keep_session(account, out['key'], start)
        return account

    def keep_session(self, account, token, start):
        number = self.next_name()
        self.change(f'session:{number}', True, start, time.monotonic_ns())
        account.made += 1
        account.sessions[number] = token

    def set_roles(self):
        account = self.account()
        roles = [role for role in ROLES if self.dice.random() < 0.5]
        if self.dice.random() < 0.3:
            return self.attempt(account, {'set': {'account': account.id, 'roles': roles}}, (f'roles:{account.id}', roles))
        return self.put(f'Account/{account.id}', f'roles:{account.id}', roles, {'c': 'Roles', 'j': {'roles': roles}})

    def disable(self):
        """For a short time."""
        account, places = self.account(), self.campaign.accounts
        for is_off in (True, False):
            if account in places:
                self.attempt(account, {'set': {'account': account.id, 'disabled': is_off}}, (f'off:{account.id}', is_off))
                time.sleep(self.dice.choice((0.0, 0.05, 0.2)))

    def begin(self):
        account = self.account()
        if account.made >= LIVES_MOST:
            return self.give_up(account)
        if len(account.sessions) >= SESSIONS_MOST:
            return self.end()
        return self.begin_of(account)

    def begin_of(self, account):
        """A session, or a key."""
        start = time.monotonic_ns()
        if account.is_person:
            answer = self.operate(NS, 'login', {'name': account.name, 'password': PASSWORD, 'device': 'history'})
        else:
            answer = self.administer(NS, 'accounts', {'key': {'account': account.id, 'label': 'history'}})
        if answer.result == 'wrong':
            raise RuntimeError(answer.words)
        if answer.result == 'ok' and answer.body:
            self.keep_session(account, answer.body['out']['token' if account.is_person else 'key'], start)

    def end(self):
        """What has ended once has ended: late arrivals of it do no harm.  All at once only from the list of the administrator."""
        account = self.account()
        if len(account.sessions) < 2 and not account.is_person:
            return  # an account without a key gets no other
        number = self.dice.choice(list(account.sessions) or [None])
        if number is None:
            return
        token, start, way = account.sessions[number], time.monotonic_ns(), self.dice.choice(('logout', 'revoke', 'all'))
        if way == 'all' and account.is_person:
            return self.end_all(account)
        is_own = way == 'logout' and account.is_person
        while True:
            if is_own:
                answer = self.operate(NS, 'logout', {}, {'Authorization': f'Bearer {token}'})
            else:
                answer = self.administer(NS, 'accounts', {'revoke': {'account': account.id, 'session': session_of(token)}})
            if (answer.result == 'ok' and answer.body) or (is_own and answer.code == 'SKEY'):
                break
            if answer.result == 'wrong':
                raise RuntimeError(answer.words)
        self.forget(account, number)
        self.change(f'session:{number}', False, start, time.monotonic_ns())

    def end_all(self, account):
        numbers = list(account.sessions)
        for number in numbers:
            self.forget(account, number)
        self.attempt(account, {'revoke': {'account': account.id}}, *((f'session:{number}', False) for number in numbers))

    @staticmethod
    def forget(account, number):
        """Callers try it for a while yet."""
        account.ended = dict([*account.ended.items(), (number, account.sessions.pop(number))][-4:])

    # --- documents ---

    def somebody(self):
        return self.dice.choice(self.campaign.accounts).id

    def next_number(self):
        """Each content differs from all before, so each commit makes a version."""
        self.count += 1
        return f'{self.number}.{self.campaign.round}.{self.count}'

    def next_main(self, document):
        class_ = document.partition('/')[0]
        return {'all': ALL, 'n': self.next_number(), **({'owner': self.somebody()} if class_ == 'Own' else {}),
                **({'crew': self.dice.choice(CREWS).partition('/')[2]} if class_ == 'Duty' else {})}

    def set_main(self, document=None):
        document = document or self.dice.choice(self.documents)
        main = self.next_main(document)
        return self.put(document, f'main:{document}', main, {'c': 'Main', 'j': main})

    def set_member_of(self, document, roles):
        account, role = self.somebody(), self.dice.choice(roles)
        fact = f'member:{document}:{account}'
        if role is None and self.campaign.facts.get(fact) is None:
            role = roles[0]
        item = {'c': 'Member', 'k': account, **({'del': True} if role is None else {'j': {'role': role, 'n': self.next_number()}})}
        return self.put(document, fact, role, item)

    def set_member(self):
        return self.set_member_of(self.dice.choice([one for one in self.documents if one.startswith('Club/')]), ('writer', 'reader', None, None))

    def set_team(self):
        return self.set_member_of(self.dice.choice(self.crews), ('chief', 'hand', None, None))

    def set_secret(self, document=None):
        document = document or self.dice.choice(self.documents)
        content = {'secret': self.next_number()}
        return self.put(document, f'secret:{document}', content, {'c': 'Secret', 'j': content})

    def set_rules(self):
        number = self.dice.randrange(len(RULES))
        _, start, end = self.insist('z', 'ns', {'set': {'ns': NS, 'rules': RULES[number]}})
        self.change('rules', number, start, end)

    def work(self):
        names, weights = zip(*self.deeds, strict=True)
        while not self.campaign.pause.is_set():
            self.dice.choices(names, weights)[0]()
            time.sleep(self.dice.choice((0.0, 0.01, 0.05)))


def session_of(token):
    """Its name in lists of sessions."""
    return hashlib.sha256(token.rpartition('.')[2].encode()).hexdigest()[:16]


class RightsCampaign:
    """To `run` like a Campaign (campaign.py): what it does goes on in threads of the leading process."""

    def __init__(self, stacks, folder, seed, sent_s=SENT_S, is_apart=False):
        self.seed, self.folder, self.sent_s, self.is_apart = f'{seed}-{NS}', folder / NS, sent_s, is_apart
        self.folder.mkdir()
        self.stack, self.key = stacks[0], stacks[0].key
        self.servers = [(one.url, str(one.path / 'etc/certificate.pem')) for one in stacks]
        self.pause, self.round = threading.Event(), 0
        self.facts, self.documents = {'rules': 0}, [*DOCUMENTS, *CREWS]
        self.accounts, self.everybody, self.given_up, self.listeners = [None] * PLACES, [], [], []
        self.sleepers = SimpleNamespace(browsers=[])

    def __enter__(self):
        self.stack.op('z', 'ns', {'set': {'ns': NS, 'accounts': {'registration': 'closed', 'sessions_most': 100}, 'rules': RULES[0]}}, admin=True)
        Schemas(self.stack, self.folder).apply(NS, SCHEMA)
        self.rulers = [Ruler(self, number) for number in range(RULERS)]
        for ruler in self.rulers:
            for place in ruler.places:
                self.accounts[place] = ruler.make(place)
        for ruler in self.rulers:
            for document in ruler.documents:
                ruler.set_main(document)
                ruler.set_secret(document)
            for crew in ruler.crews:
                ruler.set_main(crew)
                ruler.set_member_of(crew, ('chief',))
            ruler.lines.clear()
            ruler.witness.lines.clear()
        self.callers = [Caller(self, f'caller{number}') for number in range(CALLERS)]
        self.listeners = [RightsListener(self, number) for number in range(LISTENERS)]
        return self

    def __exit__(self, *_):
        self.pause.set()
        for listener in self.listeners:
            listener.close()

    def hands(self):
        return [*self.rulers, *(ruler.witness for ruler in self.rulers), *self.callers, *self.listeners]

    def live(self, hand):
        try:
            hand.work()
        except Exception:
            hand.note('client', time.monotonic_ns(), 'wrong', words=traceback.format_exc())

    def begin_round(self):
        self.round += 1
        self.since, self.initial, self.lost = time.monotonic_ns(), dict(self.facts), list(self.given_up)
        self.pause.clear()
        self.threads = [threading.Thread(target=self.live, args=(hand,), daemon=True) for hand in [*self.rulers, *self.callers]]
        for thread in self.threads:
            thread.start()

    def end_round(self):
        self.pause.set()
        for thread in self.threads:
            thread.join(180)
        try:
            self.rest()
        except Exception:
            self.rulers[0].note('client', time.monotonic_ns(), 'wrong', words=traceback.format_exc())
        path, troubles = self.folder / f'{self.round}.jsonl', {}
        with open(path, 'w', encoding='utf-8') as file:
            file.write(compact({'facts': self.initial, 'since': self.since, 'accounts': self.everybody, 'lost': self.lost, 'round': self.round}) + '\n')
            for hand in self.hands():
                lines, hand.lines = hand.lines, []
                file.writelines(line + '\n' for line in lines)
                for code, number in hand.troubles.items():
                    troubles[code] = troubles.get(code, 0) + number
                hand.troubles = {}
        return path, troubles

    def rest(self):
        """Nothing changes any more: each way to read is judged for each account, and listeners have what they may read."""
        for ruler in self.rulers:
            for place in ruler.places:
                while not self.accounts[place].sessions:
                    ruler.begin_of(self.accounts[place])
            for document in ruler.documents:
                ruler.set_main(document)
        for account in self.accounts:
            self.callers[0].read_all(account)
        end = time.monotonic() + self.sent_s
        for listener in self.listeners:
            start = time.monotonic_ns()
            while words := listener.differs():
                if time.monotonic() > end:
                    self.rulers[0].note('missed', start, words=words)
                    break
                time.sleep(0.2)

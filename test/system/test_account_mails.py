"""Mails about accounts, to a real mail server: confirmation of addresses, new passwords, registration by mail; what a stranger learns."""
import contextlib
import itertools

import pytest

from authenticator import Passkey
from clock import Clock
from door_client import Client
from manager import PARKED, Manager
from post_office import Office, certificate
from stack import Problem, comparable, give, refused

pytestmark = pytest.mark.plain

CLOCK = Clock()
LIMITS = {'limit_client_attempts': 1000, 'limit_client_mails': 12, 'limit_address_mails': 4, 'limit_namespace_mails': 100000, 'mail_timeout_s': 30}
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'club': 'closed', 'lab': 'open'}, 'settings': {}}
OPEN = {'registration': 'open', 'anonymous': True}
REQUIRED = {**OPEN, 'confirm': 'required'}
PASSWORD, OTHER = 'correct horse battery staple', 'another battery'
NUMBERS = itertools.count(1)


@pytest.fixture(scope='module', autouse=True)
def office():
    office = Office()
    STACK['settings'] = {**CLOCK.settings, **LIMITS, 'mail_from': 'accounts@example.org', 'mail_server': office.url}
    yield office
    office.stop()


def configure(stack, ns, **members):
    stack.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)


@pytest.fixture(scope='module')
def namespaces(stack, office):
    configure(stack, 'team', accounts=OPEN, label='Our Team')
    configure(stack, 'club', accounts=REQUIRED)
    return stack


@pytest.fixture
def team(namespaces, office):
    for ns in ('team', 'club'):
        namespaces.psql(ns, 'truncate taskqueue, task_history')
    office.mails.clear()
    office.answer, office.receiver, office.hang, office.close = '250 OK', None, False, False
    yield namespaces


def ask(stack, operation, param=None, token=None, ns='team', admin=False):
    """The answer's out; Problem."""
    headers = {'Authorization': f'Bearer {token}'} if token else {}
    answer = stack.http.post(f'{stack.url}/{ns}/op/{operation}', json={'param': param or {}}, headers=headers, timeout=60) if not admin else None
    if admin:
        return stack.op(ns, operation, param, admin=True)['out']
    if answer.status_code >= 400:
        raise Problem(answer)
    return answer.json()['out']


def due(stack, ns='team', operation='accountmail'):
    return [row[0] for row in stack.psql(ns, "select taskid from taskqueue where opname = %s and startat < %s order by taskid", (operation, PARKED))]


def deliver(stack, ns='team', result='done'):
    """Runs the tasks that send mails."""
    outcomes = [Manager(stack, ns).run(taskid) for taskid in due(stack, ns)]
    assert [outcome['result'] for outcome in outcomes] == [result] * len(outcomes), outcomes
    return outcomes


def tickets(stack, ns='team'):
    return stack.psql(ns, "select count(*) from doc where class = 'Ticket' and ctime > 0")[0][0]


class Person:
    """An account with an address."""

    def __init__(self, stack, office, is_confirmed=True, ns='team', **more):
        self.stack, self.office, number = stack, office, next(NUMBERS)
        self.name, self.address = more.get('name', f'person{number}'), more.get('address', f'person{number}@example.org')
        made = ask(stack, 'register', {'name': self.name, 'password': PASSWORD, 'address': self.address})
        self.id, self.token = made['account'], made['token']
        if is_confirmed:
            ask(stack, 'confirm', {'ticket': self.ask_to_confirm()})

    def ask_to_confirm(self):
        assert ask(self.stack, 'confirm', token=self.token) == {'sent': True}
        deliver(self.stack)
        return self.office.take().ticket

    def account(self):
        return ask(self.stack, 'account', token=self.token)

    def ask_for_reset(self, **by):
        assert ask(self.stack, 'reset', by or {'name': self.name}) == {'sent': True}
        deliver(self.stack)
        return self.office.take().ticket

    def set(self, **members):
        return ask(self.stack, 'account', {'set': members, 'password': PASSWORD}, self.token)


# --- addresses ---

def test_an_address_is_confirmed_by_a_mail(team, office):
    ann = Person(team, office, is_confirmed=False)
    assert 'confirmed' not in ann.account()
    assert ask(team, 'confirm', token=ann.token) == {'sent': True}
    assert not office.mails and len(due(team)) == 1
    deliver(team)
    mail = office.take()
    assert (mail.sender, mail.receivers) == ('accounts@example.org', [ann.address])
    assert mail.subject == 'Confirm your address for Our Team' and ann.name in mail.text and mail.message['To'] == ann.address
    assert mail.message['From'] == 'Our Team <accounts@example.org>' and mail.message['Auto-Submitted'] == 'auto-generated'
    assert ask(team, 'confirm', {'ticket': mail.ticket}) == {'confirmed': ann.address}
    assert ann.account()['confirmed'] is True
    refused('SKEY', ask, team, 'confirm', {'ticket': mail.ticket}, status=401)
    refused('AARG', ask, team, 'confirm', token=ann.token)
    refused('SCLOSED', ask, team, 'confirm')
    assert tickets(team) == 0


def test_another_address_is_not_confirmed(team, office):
    ann = Person(team, office, is_confirmed=False)
    ticket = ann.ask_to_confirm()
    ann.set(address='new@example.org')
    refused('SKEY', ask, team, 'confirm', {'ticket': ticket})
    assert not due(team), 'no mail to an address that was not confirmed'
    bob = Person(team, office)
    assert 'confirmed' not in bob.set(address='bob-new@example.org')
    deliver(team)
    mail = office.take()
    assert mail.receivers == [bob.address] and bob.name in mail.text and 'was changed' in mail.subject
    assert bob.set(address=bob.address).get('confirmed') is None


def test_the_administrator_vouches_for_an_address(team, office):
    ann = Person(team, office, is_confirmed=False)
    assert ask(team, 'accounts', {'set': {'account': ann.id, 'confirmed': True}}, admin=True)['confirmed'] is True
    assert ann.ask_for_reset(address=ann.address.upper())
    refused('AARG', ask, team, 'account', {'set': {'confirmed': True}, 'password': PASSWORD}, ann.token)


# --- passwords ---

@pytest.mark.parametrize('by', ['name', 'address'])
def test_a_new_password_by_mail(team, office, by):
    ann = Person(team, office)
    other = ask(team, 'login', {'name': ann.name, 'password': PASSWORD})['token']
    ticket = ann.ask_for_reset(**{by: getattr(ann, by).upper()})
    refused('AARG', ask, team, 'reset', {'ticket': ticket, 'password': 'short'})
    made = ask(team, 'reset', {'ticket': ticket, 'password': OTHER})
    assert made['account'] == ann.id and ask(team, 'account', token=made['token'])['name'] == ann.name
    for token in (ann.token, other):
        refused('SKEY', ask, team, 'account', token=token)
    refused('SKEY', ask, team, 'login', {'name': ann.name, 'password': PASSWORD})
    assert ask(team, 'login', {'name': ann.name, 'password': OTHER})['account'] == ann.id
    refused('SKEY', ask, team, 'reset', {'ticket': ticket, 'password': PASSWORD})


def test_a_ticket_ends_with_what_it_was_made_for(team, office):
    for end in ('password', 'address', 'disabled', 'deleted'):
        ann = Person(team, office)
        ticket = ann.ask_for_reset()
        if end == 'password':
            second = ann.ask_for_reset()
            ask(team, 'reset', {'ticket': second, 'password': OTHER})
        elif end == 'address':
            ann.set(address='elsewhere@example.org')
        elif end == 'disabled':
            ask(team, 'accounts', {'set': {'account': ann.id, 'disabled': True}}, admin=True)
        else:
            ask(team, 'account', {'delete': True, 'password': PASSWORD}, ann.token)
        refused('SKEY', ask, team, 'reset', {'ticket': ticket, 'password': PASSWORD})
        team.psql('team', 'truncate taskqueue')


def test_a_ticket_is_of_one_kind_and_one_namespace(team, office):
    ann, bob = Person(team, office), Person(team, office, is_confirmed=False)
    reset, confirm = ann.ask_for_reset(), bob.ask_to_confirm()
    refused('SKEY', ask, team, 'confirm', {'ticket': reset})
    refused('SKEY', ask, team, 'reset', {'ticket': confirm, 'password': PASSWORD})
    refused('SKEY', ask, team, 'reset', {'ticket': reset, 'password': PASSWORD}, ns='club')
    invitation = ask(team, 'accounts', {'invite': {}}, admin=True)['invitation']
    refused('SKEY', ask, team, 'reset', {'ticket': invitation, 'password': PASSWORD})
    refused('SKEY', ask, team, 'register', {'name': 'carla', 'password': PASSWORD, 'invitation': reset})
    for wrong in ('', 'x', reset[:-1], reset + 'A', 'A' * 43, 'ä' * 30, 'A' * 5000):
        refused('SKEY', ask, team, 'reset', {'ticket': wrong, 'password': PASSWORD})


# --- what a stranger learns ---

NOBODIES = ('nobody', 'unconfirmed', 'disabled', 'anonymous address')


def test_nobody_learns_whether_there_is_an_account(team, office):
    """The answer, and what the request does, are the same: it looks at no account."""
    ann, bob, carl = Person(team, office), Person(team, office, is_confirmed=False), Person(team, office)
    ask(team, 'accounts', {'set': {'account': carl.id, 'disabled': True}}, admin=True)
    wishes = [{'name': ann.name}, {'address': ann.address}, {'name': bob.name}, {'address': bob.address}, {'name': carl.name},
              {'name': 'no-such-name'}, {'address': 'no-such@example.org'}]
    seen, before = set(), tickets(team)
    for wish in wishes:
        team.psql('team', 'truncate taskqueue')
        answer = team.http.post(f'{team.url}/team/op/reset', json={'param': wish}, timeout=60)
        rows = team.psql('team', "select opname, qn, priority, retry, step, checkpoint, info, domain, length(resource), kind from (select *, (param::jsonb ->> 'kind') kind from taskqueue) t")
        seen.add((answer.status_code, answer.content, tuple(sorted(comparable(answer.headers))), tuple(rows)))
        assert tickets(team) == before
        deliver(team)
        assert len(office.mails) == (wish in wishes[:2]), wish
        before += len(office.mails)
        office.mails.clear()
        assert tickets(team) == before
    assert len(seen) == 1, seen


def test_equal_requests_are_one_task(team, office):
    ann = Person(team, office)
    for _ in range(3):
        ask(team, 'reset', {'name': ann.name})
    assert len(due(team)) == 1
    deliver(team)
    office.take()


def register(stack, address, **more):
    return ask(stack, 'register', {'address': address, **more}, ns='club')


def test_registration_by_mail_discloses_no_account(team, office):
    answers = set()
    for number in range(2):
        answer = team.http.post(f'{team.url}/club/op/register', json={'param': {'address': 'Ann@example.org'}}, timeout=60)
        answers.add((answer.status_code, answer.content, tuple(sorted(answer.headers))))
        rows = team.psql('club', 'select opname, qn, length(param), length(resource) from taskqueue')
        answers.add(tuple(rows))
        deliver(team, 'club')
        mail = office.take()
        if number == 0:
            made = ask(team, 'register', {'ticket': mail.ticket, 'password': PASSWORD}, ns='club')
        else:
            assert 'has an account there already' in ' '.join(mail.text.split()) and mail.receivers == ['Ann@example.org']
        team.psql('club', 'truncate taskqueue')
    assert len(answers) == 2
    ann = ask(team, 'account', token=made['token'], ns='club')
    assert (ann['name'], ann['address'], ann['confirmed']) == ('Ann@example.org', 'Ann@example.org', True)
    assert ask(team, 'login', {'name': 'ann@example.org', 'password': PASSWORD}, ns='club')['account'] == made['account']


def test_a_ticket_registers_with_a_passkey(team, office):
    """Also after a passkey that is refused, which does not use up the ticket."""
    configure(team, 'club', accounts={**REQUIRED, 'passkeys': {'rp': 'example.org'}})
    try:
        register(team, 'key@example.org')
        deliver(team, 'club')
        ticket, key = office.take().ticket, Passkey('https://example.org')
        wanted = ask(team, 'passkey', {'begin': 'register'}, ns='club')['options']
        refused('SKEY', ask, team, 'register', {'ticket': ticket, 'passkey': key.create(wanted, flags=0)}, ns='club')
        made = ask(team, 'register', {'ticket': ticket, 'passkey': key.create(wanted)}, ns='club')
        refused('SKEY', ask, team, 'register', {'ticket': ticket, 'passkey': Passkey(key.origin).create(ask(team, 'passkey', {'begin': 'register'}, ns='club')['options'])}, ns='club')
        used = key.get(ask(team, 'passkey', {'begin': 'login'}, ns='club')['options'])
        session = ask(team, 'passkey', {'login': used}, ns='club')
        own = ask(team, 'account', token=session['token'], ns='club')
        assert (own['account'], own['name'], own['confirmed']) == (made['account'], 'key@example.org', True)
        refused('SKEY', ask, team, 'login', {'name': 'key@example.org', 'password': PASSWORD}, ns='club', status=401)
    finally:
        configure(team, 'club', accounts=REQUIRED)


def test_where_confirmation_is_required_no_road_tells_of_a_name(team, office):
    for number in range(2):
        register(team, 'twice@example.org')
        deliver(team, 'club')
    first, second = [mail.ticket for mail in office.mails]
    ask(team, 'register', {'ticket': first, 'password': PASSWORD}, ns='club')
    refused('AUNIQUE', ask, team, 'register', {'ticket': second, 'password': PASSWORD}, ns='club')  # to the owner of the address
    for wrong in ({'name': 'x', 'password': PASSWORD}, {'address': 'a@b.c', 'password': PASSWORD}, {'ticket': first, 'address': 'a@b.c', 'password': PASSWORD},
                  {'ticket': first}, {'address': 'x' * 120 + '@example.org'}):
        refused('AARG', ask, team, 'register', wrong, ns='club')
    refused('SKEY', ask, team, 'register', {'ticket': first, 'password': PASSWORD}, ns='club')
    guest = ask(team, 'register', {}, ns='club')['token']
    refused('AARG', ask, team, 'account', {'set': {'name': 'twice@example.org', 'password': PASSWORD}}, guest, ns='club')
    office.mails.clear()
    ask(team, 'account', {'set': {'address': 'guest@example.org'}}, guest, ns='club')
    ask(team, 'confirm', token=guest, ns='club')
    deliver(team, 'club')
    ticket = office.take().ticket
    refused('AARG', ask, team, 'confirm', {'ticket': ticket}, ns='club')
    ask(team, 'confirm', {'ticket': ticket, 'password': PASSWORD}, guest, ns='club')
    assert ask(team, 'account', token=guest, ns='club')['name'] == 'guest@example.org', 'it has kept its id and its session'
    assert ask(team, 'login', {'name': 'guest@example.org', 'password': PASSWORD}, ns='club')


def test_an_anonymous_account_gets_its_name_by_a_ticket_as_far_as_registration_allows(team, office):
    configure(team, 'club', accounts={**REQUIRED, 'registration': 'invitation'})
    try:
        made = ask(team, 'register', {}, ns='club')
        guest = made['token']
        ask(team, 'account', {'set': {'address': 'visitor@example.org'}}, guest, ns='club')
        ask(team, 'confirm', token=guest, ns='club')
        deliver(team, 'club')
        wish = {'ticket': office.take().ticket, 'password': PASSWORD}
        refused('SCLOSED', ask, team, 'confirm', wish, ns='club')
        refused('SKEY', ask, team, 'confirm', {**wish, 'invitation': 'wrong'}, ns='club')
        invitation = ask(team, 'accounts', {'invite': {'roles': ['editor']}}, ns='club', admin=True)['invitation']
        ask(team, 'confirm', {**wish, 'invitation': invitation}, ns='club')
        refused('SKEY', ask, team, 'account', token=guest, ns='club')  # whoever made it may have named an address of somebody else
        mine = ask(team, 'login', {'name': 'visitor@example.org', 'password': PASSWORD}, ns='club')
        assert mine['account'] == made['account'] and ask(team, 'account', token=mine['token'], ns='club')['roles'] == ['editor']
    finally:
        configure(team, 'club', accounts=REQUIRED)


def test_another_name_is_given_by_a_session(team, office):
    """Else whoever follows the link in a mail would take for its own an account whose password somebody else knows."""
    register(team, 'former@example.org')
    deliver(team, 'club')
    made = ask(team, 'register', {'ticket': office.take().ticket, 'password': PASSWORD}, ns='club')
    ask(team, 'account', {'set': {'address': 'victim@example.org'}, 'password': PASSWORD}, made['token'], ns='club')
    deliver(team, 'club')
    office.mails.clear()
    ask(team, 'confirm', token=made['token'], ns='club')
    deliver(team, 'club')
    ticket = office.take().ticket
    refused('SKEY', ask, team, 'confirm', {'ticket': ticket}, ns='club')
    stranger = ask(team, 'register', {}, ns='club')['token']
    refused('SKEY', ask, team, 'confirm', {'ticket': ticket}, stranger, ns='club')
    refused('SKEY', ask, team, 'login', {'name': 'victim@example.org', 'password': PASSWORD}, ns='club')
    assert ask(team, 'confirm', {'ticket': ticket}, made['token'], ns='club') == {'confirmed': 'victim@example.org'}
    assert ask(team, 'account', token=made['token'], ns='club')['name'] == 'victim@example.org'


def test_an_invitation_is_used_by_the_ticket(team, office):
    configure(team, 'club', accounts={**REQUIRED, 'registration': 'invitation'})
    try:
        invitation = ask(team, 'accounts', {'invite': {'roles': ['staff']}}, ns='club', admin=True)['invitation']
        refused('SCLOSED', register, team, 'invited@example.org')
        refused('SKEY', register, team, 'invited@example.org', invitation='A' * 43)
        register(team, 'invited@example.org', invitation=invitation)
        assert invitation not in str(team.psql('club', 'select param from taskqueue'))
        deliver(team, 'club')
        ticket = office.take().ticket
        refused('SCLOSED', ask, team, 'register', {'ticket': ticket, 'password': PASSWORD}, ns='club')
        made = ask(team, 'register', {'ticket': ticket, 'password': PASSWORD, 'invitation': invitation}, ns='club')
        assert ask(team, 'account', token=made['token'], ns='club')['roles'] == ['staff']
        refused('SKEY', register, team, 'second@example.org', invitation=invitation)
    finally:
        configure(team, 'club', accounts=REQUIRED)


# --- texts ---

def test_a_namespace_has_texts_of_its_own(team, office):
    ann = Person(team, office)
    configure(team, 'team', label='Équipe "A" <x@y>', accounts={**OPEN, 'mail': {
        'from': 'team@example.org', 'reset': {'subject': 'Passwort für {name} – {site} ' + 'ü' * 40, 'text': 'Ä {link}\n.\n..\nFrom me = {name}' + ' lang' * 300 + ' {site} {link',
                                              'link': 'https://app.example/reset'},
        'changed': {'text': '{link}'}}})
    try:
        ask(team, 'reset', {'name': ann.name})
        deliver(team)
        mail = office.take()
        assert mail.sender == 'team@example.org' and mail.message['From'].addresses[0].addr_spec == 'team@example.org'
        assert mail.message['From'].addresses[0].display_name == 'Équipe "A" <x@y>'
        assert mail.subject == f'Passwort für {ann.name} – Équipe "A" <x@y> ' + 'ü' * 40
        link = f'https://app.example/reset#ticket={mail.ticket}'
        assert mail.text.splitlines() == [f'Ä {link}', '.', '..', f'From me = {ann.name}' + ' lang' * 300 + ' Équipe "A" <x@y> {link']
        assert all(len(line) <= 78 for line in mail.raw.splitlines()) and mail.raw.isascii()
        configure(team, 'team', accounts={**OPEN, 'mail': {'reset': {'link': 'https://app.example/?t={token}&x'}}})
        ask(team, 'reset', {'name': ann.name})
        deliver(team)
        mail = office.take()
        assert f'https://app.example/?t={mail.ticket}&x' in mail.text
    finally:
        configure(team, 'team', label='Our Team', accounts=OPEN)


def test_nothing_is_added_to_a_mail(team, office):
    """By a name, a label, a template or an address."""
    for address in ('a@b.c\r\nBcc: x@y.z', 'a b@c.d', '<a@b.c>', 'a@b.c>', '"x"@b.c', 'a@[127.0.0.1]', 'a@b..c', '.a@b.c', 'a@b.c NOTIFY=NEVER', 'a@b,c@d', 'a@', '@b', 'ä@b.c',
                    'a' * 65 + '@b.c', 'a@' + 'b' * 64 + '.c', 'a@-b.c', 'a@b_c', 'a(x)@b.c', 'a@b.c\x7f'):
        refused('AARG', ask, team, 'reset', {'address': address})
        refused('AARG', register, team, address)
    for wrong in ({'from': 'x'}, {'from': 'a@b.c\r\nBcc: x@y.z'}, {'reset': 1}, {'reset': {'subject': ''}}, {'reset': {'link': 'https://x y'}}, {'reset': {'link': 'https://x\r\n'}},
                  {'reset': {'html': 'x'}}, {'other': {}}, {'reset': {'text': 'x' * 8193}}, 'x', []):
        refused('AARG', configure, team, 'team', accounts={**OPEN, 'mail': wrong})
    name = 'http://evil.example/{link}{site}'
    bob = Person(team, office, is_confirmed=False, name=name)
    try:
        configure(team, 'team', accounts={**OPEN, 'mail': {'confirm': {'subject': '{name}\r\nBcc: x@example.org\r\n\r\nbody'}}})
        ask(team, 'confirm', token=bob.token)
        deliver(team)
    finally:
        configure(team, 'team', accounts=OPEN)
    mail = office.take()
    assert mail.receivers == [bob.address] and mail.message['Bcc'] is None and mail.text.startswith('Hello http')
    assert 'evil.example' not in mail.text and 'evil.example' not in mail.subject and mail.text.count('Our Team') == 1
    assert ask(team, 'confirm', {'ticket': mail.ticket})


# --- the mail server ---

def plan(team, office):
    ann = Person(team, office)
    ask(team, 'reset', {'name': ann.name})
    (taskid,) = due(team)
    return ann, taskid


def row(team, taskid):
    return team.psql('team', 'select exc, report, startat from taskqueue where taskid = %s', (taskid,))[0]


@pytest.mark.parametrize('trouble, words', [({'answer': '451 later'}, 'the mail was not taken'), ({'receiver': '450 busy'}, 'the mail was not taken'),
                                            ({'close': True}, 'the mail was not taken'), ({'hang': True}, 'the time was over')])
def test_a_mail_that_is_not_taken_is_sent_again(team, office, trouble, words):
    ann, taskid = plan(team, office)
    for name, value in trouble.items():
        setattr(office, name, value)
    before = tickets(team)
    if 'hang' in trouble:
        team.set(mail_timeout_s=1)
    outcome = Manager(team, 'team').run(taskid, status=500)
    if 'hang' in trouble:
        team.set(mail_timeout_s=LIMITS['mail_timeout_s'])
    assert outcome['result'] == 'failed' and outcome['code'] == 'XMAIL' and outcome['startat'] < PARKED
    assert row(team, taskid)[1].endswith(f'No mail was accepted by the mail server: {words}.') and tickets(team) == before and not office.mails
    office.answer, office.receiver, office.hang, office.close = '250 OK', None, False, False
    Manager(team, 'team').hurry()
    deliver(team)
    assert ask(team, 'reset', {'ticket': office.take().ticket, 'password': OTHER})


@pytest.mark.parametrize('trouble', [{'answer': '554 no'}, {'receiver': '550 unknown'}])
def test_a_mail_that_is_refused_is_given_up(team, office, trouble):
    _, taskid = plan(team, office)
    for name, value in trouble.items():
        setattr(office, name, value)
    outcome = Manager(team, 'team').run(taskid, status=500)
    assert outcome['code'] == 'XMAIL' and outcome['startat'] == PARKED
    assert row(team, taskid)[1].endswith(f'The mail server answers {list(trouble.values())[0][:3]}.')


def test_a_conflict_sends_no_second_mail(team, office):
    """The account changes between the mail and the commit of its ticket."""
    ann, taskid = plan(team, office)
    office.meanwhile = lambda: ask(team, 'accounts', {'set': {'account': ann.id, 'roles': ['late']}}, admin=True)
    deliver(team)
    assert office.meanwhile is None
    made = ask(team, 'reset', {'ticket': office.take().ticket, 'password': OTHER})
    assert ask(team, 'account', token=made['token'])['roles'] == ['late']


def test_a_worker_dies_after_the_mail(team, office):
    """The link of a mail whose ticket was not written does not work; another mail comes."""
    ann, taskid = plan(team, office)
    before = tickets(team)
    team.set(debug_die_at='mail-sent')
    try:
        Manager(team, 'team').post(taskid)
        lost = office.take().ticket
        assert tickets(team) == before
    finally:
        team.set(debug_die_at='')
    refused('SKEY', ask, team, 'reset', {'ticket': lost, 'password': OTHER})
    Manager(team, 'team').scan()
    Manager(team, 'team').hurry()
    deliver(team)
    refused('SKEY', ask, team, 'reset', {'ticket': lost, 'password': OTHER})
    assert ask(team, 'reset', {'ticket': office.take().ticket, 'password': OTHER})['account'] == ann.id


# --- secrets, ends, rights ---

def test_no_secret_is_kept(team, office):
    ann = Person(team, office)
    ticket = ann.ask_for_reset()
    for table in ('taskqueue', 'task_history', 'doc', 'item', 'idempotency'):
        assert ticket not in str(team.psql('team', f'select * from {table}'))
    ask(team, 'reset', {'ticket': ticket, 'password': OTHER})
    logs = ''.join(team.log(part) for part in ('stampd', 'nginx', 'postgres', 'access'))
    assert ticket not in logs and OTHER not in logs


def test_tickets_end(team, office):
    ann, bob = Person(team, office), Person(team, office, is_confirmed=False)
    reset, confirm = ann.ask_for_reset(), bob.ask_to_confirm()
    CLOCK.set(58)
    refused('AARG', ask, team, 'reset', {'ticket': reset, 'password': 'short'})
    CLOCK.set(62)
    refused('SKEY', ask, team, 'reset', {'ticket': reset, 'password': OTHER})
    CLOCK.set(48 * 60 + 2)
    refused('SKEY', ask, team, 'confirm', {'ticket': confirm})


def test_tickets_of_a_deleted_account_are_useless(team, office):
    """Of its reset and its confirmation; whoever registers with its name and address later gets nothing by them."""
    ann, bob = Person(team, office), Person(team, office, is_confirmed=False)
    reset, confirm = ann.ask_for_reset(), bob.ask_to_confirm()
    for person in (ann, bob):
        ask(team, 'accounts', {'delete': person.id}, admin=True)

    def use():
        refused('SKEY', ask, team, 'reset', {'ticket': reset, 'password': OTHER}, status=401)
        refused('SKEY', ask, team, 'confirm', {'ticket': confirm}, status=401)

    use()
    heirs = [Person(team, office, is_confirmed=False, name=person.name, address=person.address) for person in (ann, bob)]
    use()
    assert not any(heir.account().get('confirmed') for heir in heirs)
    refused('SKEY', ask, team, 'login', {'name': ann.name, 'password': OTHER}, status=401)


def test_ended_tickets_are_deleted(team, office):
    ann = Person(team, office)
    team.psql('team', 'truncate taskqueue')
    before = tickets(team)
    ann.ask_for_reset()
    ask(team, 'accounts', {'invite': {'days': 1}}, admin=True)
    assert tickets(team) == before + 2
    ends = due(team, operation='ticketend')
    assert len(ends) == 2 and not Manager(team, 'team').due()
    Manager(team, 'team').hurry()
    Manager(team, 'team').run_many(ends)
    assert tickets(team) == before


def test_only_the_server_plans_mails(team):
    for operation in ('accountmail', 'ticketend'):
        refused('NOPERATION', team.op, 'team', operation, {'kind': 'reset', 'name': 'x'}, admin=True)
        refused('NOPERATION', team.op, 'team', 'task', {'op': operation, 'param': {'kind': 'reset', 'name': 'x'}}, admin=True)
        refused('SCLOSED', team.op, 'team', operation)
        refused('SCLOSED', team.op, 'team', 'task', {'op': operation})


# --- limits ---

@pytest.fixture
def clients(team):
    with contextlib.ExitStack() as all_:
        yield lambda number: all_.enter_context(Client(team, f'127.0.0.{number}'))


def verdict(reply):
    return (reply.code, reply.args) if reply.code else reply.status


def test_mails_for_one_address_are_limited_and_nobody_is_locked_out(team, office, clients):
    ann = Person(team, office)
    ask(team, 'reset', {'name': ann.name})
    attacker, owner = clients(2), clients(3)
    assert [verdict(attacker.op('team', 'reset', {'name': ann.name})) for _ in range(3)] == [200] * 3
    for client in (attacker, owner):
        assert verdict(client.op('team', 'reset', {'name': ann.name.upper()})) == ('XBUSY', ['limit_address_mails', '4'])
    assert verdict(owner.op('team', 'reset', {'name': 'nobody-at-all'})) == 200
    assert verdict(owner.op('team', 'login', {'name': ann.name, 'password': PASSWORD})) == 200
    deliver(team)
    tickets_ = [mail.ticket for mail in office.mails if mail.receivers == [ann.address]]
    assert verdict(owner.op('team', 'reset', {'ticket': tickets_[0], 'password': OTHER})) == 200, 'the mails that used up the limit work'


def test_mails_of_one_client_are_limited(team, clients):
    attacker, other = clients(4), clients(5)
    answers = [verdict(attacker.op('team', 'reset', {'name': f'somebody{number}'})) for number in range(14)]
    assert answers[:12] == [200] * 12 and ('XBUSY', ['limit_client_mails', '12']) in answers
    assert verdict(other.op('team', 'reset', {'name': 'somebody1'})) == 200
    assert team.refusals('limit_client_mails') >= 1


def test_mails_of_a_namespace_are_limited_whoever_requests_them(team, clients):
    """Each client for itself is far below its own limit, and each mail is for another name."""
    team.set(limit_namespace_mails=5)
    try:
        answers = [verdict(clients(20 + number).op('team', 'reset', {'name': f'stranger{number}'})) for number in range(16)]
        counted = [answer for answer in answers if answer == 200]
        assert answers[:5] == [200] * 5 and len(counted) < 10, answers
        assert all(answer in (200, ('XBUSY', ['limit_namespace_mails', '5'])) for answer in answers)
        assert len(due(team)) == len(counted), 'what is refused is not sent'
        assert verdict(clients(40).op('club', 'reset', {'name': 'stranger0'})) == 200, 'another namespace'
        assert team.refusals('limit_namespace_mails') >= 1
    finally:
        team.set(limit_namespace_mails=100000)


# --- settings ---

def test_encrypted_with_a_password_or_not_at_all(team, office, home):
    home.parent.chmod(0o755)
    home.chmod(0o755)
    safe = Office(tls_context=certificate(home), auth_required=True, require_starttls=True)
    ann, taskid = plan(team, office)
    password = home / 'password'
    password.write_text('secret\n')
    password.chmod(0o644)
    give(password)
    words = {'mail_tls': 'on', 'mail_ca_file': home / 'mail.pem', 'mail_user': 'stampd', 'mail_password_file': password}

    def fails():
        Manager(team, 'team').hurry()
        assert Manager(team, 'team').run(taskid, status=500)['code'] == 'XMAIL' and not office.mails
        return row(team, taskid)[1]
    try:
        team.set(**words)
        assert fails().endswith('mail_password_file is unusable.')
        password.chmod(0o600)
        assert fails().endswith('the encrypted connection was not made.'), 'this server knows no STARTTLS'
        team.set(mail_server=safe.url)
        Manager(team, 'team').hurry()
        deliver(team)
        assert safe.logins[0] == (b'stampd', b'secret') and safe.mails[0].is_encrypted
        assert ask(team, 'reset', {'ticket': safe.take().ticket, 'password': OTHER})['account'] == ann.id
        ask(team, 'reset', {'name': ann.name})
        (taskid,) = due(team)
        password.write_text('wrong\n')
        assert fails().endswith('it refuses our user or password.') and row(team, taskid)[2] < PARKED
        password.write_text('secret\n')
        team.set(mail_ca_file='')
        assert fails().endswith('the encrypted connection was not made.')
    finally:
        safe.stop()
        team.set(mail_server=office.url, mail_tls='off', mail_ca_file='', mail_user='', mail_password_file='')


def test_without_a_sender_there_are_no_mails(team, office):
    ann = Person(team, office)
    team.set(mail_from='')
    try:
        for operation, param, token in (('reset', {'name': ann.name}, None), ('confirm', {}, Person(team, office, is_confirmed=False).token)):
            refused('OMAIL', ask, team, operation, param, token)
        ann.set(address='other@example.org')
        assert not due(team)
    finally:
        team.set(mail_from='accounts@example.org')

"""maillogin: a session by the link of a mail, from a real mail server: once, for a quarter of an hour, and what a stranger learns and uses up."""
import contextlib
import itertools

import pytest

from clock import Clock
from door_client import Client
from manager import PARKED, Manager
from post_office import Office
from stack import Problem, comparable, refused

pytestmark = pytest.mark.plain

CLOCK = Clock()
LIMITS = {'limit_client_attempts': 1000, 'limit_client_mails': 12, 'limit_address_mails': 4, 'limit_namespace_mails': 100000, 'mail_timeout_s': 30}
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'club': 'closed'}, 'settings': {}}
OPEN = {'registration': 'open', 'mail_login': True}
LINK = 'https://app.example/in'
PASSWORD, OTHER = 'correct horse battery staple', 'another battery'
NUMBERS = itertools.count(1)


@pytest.fixture(scope='module', autouse=True)
def office():
    office = Office()
    STACK['settings'] = {**CLOCK.settings, **LIMITS, 'mail_from': 'accounts@example.org', 'mail_server': office.url, 'get_writes': 'on'}
    yield office
    office.stop()


def configure(stack, ns='team', **accounts):
    stack.op('z', 'ns', {'set': {'ns': ns, 'label': 'Our Team', 'accounts': {**OPEN, 'mail': {'login': {'link': LINK}}, **accounts}}}, admin=True)


@pytest.fixture
def team(stack, office):
    configure(stack)
    configure(stack, 'club')
    stack.psql('team', 'truncate taskqueue, task_history')
    office.mails.clear()
    return stack


def ask(stack, operation, param=None, token=None, ns='team'):
    headers = {'Authorization': f'Bearer {token}'} if token else {}
    answer = stack.http.post(f'{stack.url}/{ns}/op/{operation}', json={'param': param or {}}, headers=headers, timeout=60)
    if answer.status_code >= 400:
        raise Problem(answer)
    return answer.json()['out']


def due(stack):
    return [row[0] for row in stack.psql('team', "select taskid from taskqueue where opname = 'accountmail' and startat < %s order by taskid", (PARKED,))]


def deliver(stack):
    outcomes = [Manager(stack, 'team').run(taskid) for taskid in due(stack)]
    assert [outcome['result'] for outcome in outcomes] == ['done'] * len(outcomes), outcomes


class Person:
    """An account with a confirmed address."""

    def __init__(self, stack, office, **members):
        self.stack, self.office, self.name = stack, office, f'person{next(NUMBERS)}'
        self.address = f'{self.name}@example.org'
        made = stack.op('team', 'accounts', {'create': {'name': self.name, 'password': PASSWORD, 'address': self.address, 'confirmed': True, **members}}, admin=True)['out']
        self.id = made['account']

    def set(self, **members):
        return self.stack.op('team', 'accounts', {'set': {'account': self.id, **members}}, admin=True)

    def ticket(self, operation='maillogin', **by):
        assert ask(self.stack, operation, by or {'name': self.name}) == {'sent': True}
        deliver(self.stack)
        return self.office.take().ticket

    def sign_in(self, ticket, **more):
        return ask(self.stack, 'maillogin', {'ticket': ticket, **more})


@pytest.mark.parametrize('by', ['name', 'address'])
def test_a_mail_signs_in_once(team, office, by):
    ann = Person(team, office)
    assert ask(team, 'maillogin', {by: getattr(ann, by).upper()}) == {'sent': True}
    deliver(team)
    mail = office.take()
    assert mail.receivers == [ann.address] and mail.subject == 'Sign in to Our Team' and f'{LINK}#ticket={mail.ticket}' in mail.text.replace('=\n', '')
    made = ann.sign_in(mail.ticket, device='a phone')
    assert made['account'] == ann.id and ask(team, 'account', token=made['token'])['name'] == ann.name
    assert ask(team, 'sessions', token=made['token'])['sessions'][0]['device'] == 'a phone'
    refused('SKEY', ann.sign_in, mail.ticket, status=401)
    assert ask(team, 'login', {'name': ann.name, 'password': PASSWORD})['account'] == ann.id, 'the password is as it was'
    assert ask(team, 'account', token=made['token'])['account'] == ann.id, 'other sessions stay'


def test_an_account_without_a_password_signs_in(team, office):
    """As one that has only passkeys."""
    ann = Person(team, office)
    team.put('team', {'c': 'Account', 'id': ann.id, 'items': [{'c': 'Secret', 'del': True}]}, admin=True)
    first, second = ann.ticket(), ann.ticket()
    assert ann.sign_in(second)['account'] == ann.id
    refused('SKEY', ann.sign_in, first)


def test_a_program_that_opens_its_link_uses_up_nothing(team, office):
    """The link of a mail is a page; and GET signs in nobody, also where get_writes accepts it for other operations."""
    ann = Person(team, office)
    ticket = ann.ticket()
    for method in ('GET', 'HEAD'):
        answer = team.http.request(method, f'{team.url}/team/op/maillogin', params={'param': f'{{"ticket":"{ticket}"}}'}, timeout=60)
        assert answer.status_code == 405, answer.text
    assert ann.sign_in(ticket)['account'] == ann.id


def test_a_ticket_ends_with_what_it_was_made_for(team, office):
    for end in ('another was used', 'password', 'address', 'unconfirmed', 'disabled', 'deleted', 'off'):
        ann = Person(team, office)
        ticket = ann.ticket()
        if end == 'another was used':
            assert ann.sign_in(ann.ticket())['account'] == ann.id
        elif end == 'password':
            ask(team, 'reset', {'ticket': ann.ticket('reset'), 'password': OTHER})
        elif end == 'address':
            ann.set(address='elsewhere@example.org', confirmed=True)
        elif end == 'unconfirmed':
            ann.set(confirmed=False)
        elif end == 'disabled':
            ann.set(disabled=True)
        elif end == 'deleted':
            team.op('team', 'accounts', {'delete': ann.id}, admin=True)
        else:
            configure(team, mail_login=False)
        refused('SCLOSED' if end == 'off' else 'SKEY', ann.sign_in, ticket)
        team.psql('team', 'truncate taskqueue')
        office.mails.clear()
    configure(team)
    assert ann.sign_in(ticket), 'it was not used up'


def test_a_request_ends_no_ticket(team, office):
    """Else a stranger could keep somebody out."""
    ann = Person(team, office)
    first = ann.ticket()
    ann.ticket()
    assert ann.sign_in(first)['account'] == ann.id


def test_a_ticket_is_of_one_kind_and_one_namespace(team, office):
    ann = Person(team, office)
    ticket, reset = ann.ticket(), ann.ticket('reset')
    refused('SKEY', ask, team, 'reset', {'ticket': ticket, 'password': OTHER})
    refused('SKEY', ask, team, 'confirm', {'ticket': ticket})
    refused('SKEY', ask, team, 'maillogin', {'ticket': ticket}, ns='club')
    for wrong in (reset, '', 'x', ticket[:-1], ticket + 'A', 'A' * 43, 'A' * 5000):
        refused('SKEY', ann.sign_in, wrong)
    for wrong in ({'ticket': ticket, 'name': ann.name}, {'name': ann.name, 'address': ann.address}, {}, {'address': 'x'}, {'name': 'a b'}, {'name': ann.name, 'device': 'x'},
                  {'ticket': 1}, {'ticket': ticket, 'device': 'x' * 201}, {'ticket': ticket, 'password': PASSWORD}):
        refused('AARG', ask, team, 'maillogin', wrong)
    foreign = team.http.post(f'{team.url}/team/op/maillogin', json={'param': {'ticket': ticket, 'cookie': True}}, headers={'Origin': 'https://evil.example'}, timeout=60)
    assert foreign.json()['code'] == 'SORIGIN', 'a page of others signs its visitor in to no account of its choice'
    assert ann.sign_in(ticket)['account'] == ann.id


def test_a_ticket_ends_after_a_quarter_of_an_hour(team, office):
    ann = Person(team, office)
    ticket = ann.ticket()
    CLOCK.set(14)
    refused('AARG', ann.sign_in, ticket, device=1)
    CLOCK.set(16)
    refused('SKEY', ann.sign_in, ticket)


def test_nobody_signs_in_by_mail_where_it_is_off(team, office):
    ann = Person(team, office)
    ticket = ann.ticket()
    for members in ({'mail_login': False}, {'mail_login': None}):
        accounts = {name: value for name, value in {**OPEN, **members}.items() if value is not None}
        team.op('z', 'ns', {'set': {'ns': 'team', 'accounts': accounts}}, admin=True)
        for param in ({'name': ann.name}, {'address': ann.address}, {'name': 'nobody-at-all'}, {'ticket': ticket}, {}):
            refused('SCLOSED', ask, team, 'maillogin', param)
    refused('SCLOSED', ask, team, 'maillogin', {'name': 'x'}, ns='z')
    refused('AARG', configure, team, mail_login='yes')
    assert not due(team)


def test_a_mail_is_not_sent_when_it_was_switched_off_meanwhile(team, office):
    ann = Person(team, office)
    ask(team, 'maillogin', {'name': ann.name})
    configure(team, mail_login=False)
    deliver(team)
    assert not office.mails


def test_nobody_learns_whether_there_is_an_account(team, office):
    """The answer, and what the request does, are the same; only the task looks for the account."""
    ann, bob, carl = Person(team, office), Person(team, office), Person(team, office)
    bob.set(confirmed=False)
    carl.set(disabled=True)
    wishes = [{'name': ann.name}, {'address': ann.address}, {'name': bob.name}, {'address': bob.address}, {'name': carl.name}, {'name': 'no-such-name'}, {'address': 'no-such@example.org'}]
    seen = set()
    for wish in wishes:
        team.psql('team', 'truncate taskqueue')
        answer = team.http.post(f'{team.url}/team/op/maillogin', json={'param': wish}, timeout=60)
        rows = team.psql('team', 'select opname, qn, priority, retry, step, checkpoint, info, domain, length(resource) from taskqueue')
        seen.add((answer.status_code, answer.content, tuple(sorted(comparable(answer.headers))), tuple(rows)))
        deliver(team)
        assert len(office.mails) == (wish in wishes[:2]), wish
        office.mails.clear()
    assert len(seen) == 1, seen


def test_no_secret_is_kept(team, office):
    ann = Person(team, office)
    ticket = ann.ticket()
    token = ann.sign_in(ticket)['token']
    for table in ('taskqueue', 'task_history', 'doc', 'item', 'idempotency'):
        text = str(team.psql('team', f'select * from {table}'))
        assert ticket not in text and token not in text
    assert ticket not in ''.join(team.log(part) for part in ('stampd', 'nginx', 'postgres', 'access'))


@pytest.fixture
def clients(team):
    with contextlib.ExitStack() as all_:
        yield lambda number: all_.enter_context(Client(team, f'127.0.0.{number}'))


def verdict(reply):
    return (reply.code, reply.args) if reply.code else reply.status


def test_mails_are_limited_and_nobody_is_locked_out(team, office, clients):
    """For one name or address, and of one client; neither passwords nor new passwords are limited by it."""
    ann = Person(team, office)
    attacker, owner = clients(2), clients(3)
    assert [verdict(attacker.op('team', 'maillogin', {'name': ann.name})) for _ in range(4)] == [200] * 4
    for client in (attacker, owner):
        assert verdict(client.op('team', 'maillogin', {'name': ann.name.upper()})) == ('XBUSY', ['limit_address_mails', '4'])
    assert verdict(owner.op('team', 'reset', {'name': ann.name})) == 200
    assert verdict(owner.op('team', 'login', {'name': ann.name, 'password': PASSWORD})) == 200
    answers = [verdict(attacker.op('team', 'maillogin', {'name': f'somebody{number}'})) for number in range(14)]
    assert ('XBUSY', ['limit_client_mails', '12']) in answers
    team.psql('team', "delete from taskqueue where param::jsonb ->> 'kind' <> 'login' or param::jsonb ->> 'name' <> %s", (ann.name,))
    deliver(team)
    assert verdict(owner.op('team', 'maillogin', {'ticket': office.take().ticket})) == 200, 'the mail that used up the limit works'


def test_guesses_of_tickets_are_limited(team, clients):
    team.set(limit_client_attempts=5)
    try:
        answers = [verdict(clients(6).op('team', 'maillogin', {'ticket': 'A' * 43})) for _ in range(7)]
        assert ('XBUSY', ['limit_client_attempts', '5']) in answers
    finally:
        team.set(limit_client_attempts=1000)


def test_without_a_sender_there_are_no_mails(team, office):
    team.set(mail_from='')
    try:
        refused('OMAIL', ask, team, 'maillogin', {'name': 'x'})
    finally:
        team.set(mail_from='accounts@example.org')

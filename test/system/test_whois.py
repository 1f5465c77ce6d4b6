"""whois: the id of an account by its name or address: the callers that may ask, the accounts that are found, and that nobody reads the list of people by guesses."""
import contextlib
import itertools
import json
import ssl

import pytest

import bad_network  # the package for Python is in its path
import stampd
from door_client import Client
from stack import Problem, comparable, refused

pytestmark = pytest.mark.plain

ATTEMPTS = 5
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'team': 'closed', 'club': 'closed', 'bare': 'closed', 'lab': 'open'},
         'settings': {'limit_client_attempts': 1000, 'argon2_share': 100}}
OPEN = {'registration': 'open', 'anonymous': True}
PASSWORD = 'correct horse battery staple'
NUMBERS = itertools.count(1)
CALLERS = {'account': {'whois': 'account'}, 'role': {'whois': 'role:staff'}, 'address': {'whois': 'account', 'whois_by': 'address'}}


def configure(stack, ns='team', **accounts):
    stack.op('z', 'ns', {'set': {'ns': ns, 'access': 'rules', 'accounts': {**OPEN, **accounts}}}, admin=True)


@pytest.fixture(scope='module')
def namespaces(stack):
    configure(stack, 'club')
    return stack


@pytest.fixture(autouse=True)
def team(namespaces):
    configure(namespaces, **CALLERS['account'])
    return namespaces


def ask(stack, operation, param=None, token=None, ns='team'):
    headers = {'Authorization': f'Bearer {token}'} if token else {}
    answer = stack.http.post(f'{stack.url}/{ns}/op/{operation}', json={'param': param or {}}, headers=headers, timeout=60)
    if answer.status_code >= 400:
        raise Problem(answer)
    return answer.json()['out']


def accounts(stack, param):
    return stack.op('team', 'accounts', param, admin=True)['out']


class Person:
    def __init__(self, stack, **members):
        self.name = f'Person{next(NUMBERS)}'
        self.address = f'{self.name}@example.org'
        made = accounts(stack, {'create': {'name': self.name, 'password': PASSWORD, 'address': self.address, **members}})
        self.stack, self.id = stack, made['account']
        self.token = ask(stack, 'login', {'name': self.name, 'password': PASSWORD})['token']

    def whois(self, **whom):
        return ask(self.stack, 'whois', whom, self.token)

    def set(self, **members):
        return accounts(self.stack, {'set': {'account': self.id, **members}})


def test_an_account_is_found_by_its_name(team):
    ann, bob = Person(team), Person(team)
    assert ann.whois(name=bob.name) == ann.whois(name=bob.name.upper()) == {'account': bob.id}
    assert ann.whois(name=ann.name) == {'account': ann.id}
    bob.set(name=f'{bob.name}-new', password=PASSWORD)
    assert ann.whois(name=bob.name) == {'account': None} and ann.whois(name=f'{bob.name}-NEW') == {'account': bob.id}
    accounts(team, {'delete': bob.id})
    assert ann.whois(name=f'{bob.name}-new') == {'account': None}


def test_an_account_is_found_by_its_confirmed_address_where_that_is_set(team):
    ann, bob, carl = Person(team), Person(team, confirmed=True), Person(team)
    refused('SCLOSED', ann.whois, address=bob.address, status=403)
    configure(team, **CALLERS['address'])
    assert ann.whois(address=bob.address) == ann.whois(address=bob.address.swapcase()) == {'account': bob.id}
    assert ann.whois(address=carl.address) == {'account': None}, 'not confirmed'
    assert ann.whois(name=bob.name) == {'account': bob.id}
    bob.set(address='elsewhere@example.org')
    assert ann.whois(address=bob.address) == ann.whois(address='elsewhere@example.org') == {'account': None}


def test_who_is_not_to_be_found_is_nobody(team):
    """The answers are the same to the byte, whether an account is disabled, hidden or not there."""
    configure(team, **CALLERS['address'])
    ann, disabled, hidden = Person(team), Person(team, confirmed=True), Person(team, confirmed=True)
    assert [ann.whois(name=one.name)['account'] for one in (disabled, hidden)] == [disabled.id, hidden.id]
    disabled.set(disabled=True)
    own = ask(team, 'account', {'set': {'hidden': True}, 'password': PASSWORD}, hidden.token)
    assert own['hidden'] is True and accounts(team, {'get': hidden.id})['hidden'] is True
    whom = [{'name': disabled.name}, {'name': hidden.name}, {'name': 'no-such-name'}, {'address': disabled.address}, {'address': hidden.address}, {'address': 'no-such@example.org'}]
    seen = set()
    for param in whom:
        answer = team.http.post(f'{team.url}/team/op/whois', json={'param': param}, headers={'Authorization': f'Bearer {ann.token}'}, timeout=60)
        seen.add((answer.status_code, answer.content, tuple(sorted(comparable(answer.headers)))))
    assert len(seen) == 1 and json.loads(seen.pop()[1])['out'] == {'account': None}
    assert ask(team, 'login', {'name': hidden.name, 'password': PASSWORD})['account'] == hidden.id
    hidden.set(hidden=False)
    disabled.set(disabled=False)
    assert [ann.whois(address=one.address)['account'] for one in (disabled, hidden)] == [disabled.id, hidden.id]


def test_nobody_asks_where_it_is_off(team):
    """Whatever is asked, the refusal is the same."""
    ann, bob = Person(team), Person(team)
    answers = set()
    for members in ({}, {'whois': 'nobody'}, {'whois': 'nobody', 'whois_by': 'address'}):
        configure(team, **members)
        for param in ({'name': bob.name}, {'name': 'nobody-at-all'}, {'address': bob.address}, {}, {'name': 1}, {'names': []}):
            with pytest.raises(Problem) as problem:
                ask(team, 'whois', param, ann.token)
            answers.add((problem.value.code, problem.value.status))
    assert answers == {('SCLOSED', 403)}
    refused('SCLOSED', ask, team, 'whois', {'name': 'x'}, ns='bare')
    refused('SCLOSED', ask, team, 'whois', {'name': 'x'}, ns='lab')


def test_who_may_ask(team):
    ann, staff = Person(team), Person(team, roles=['staff', 'other'])
    key = accounts(team, {'key': {'label': 'a script'}})['key']
    staff_key = accounts(team, {'key': {'label': 'a script', 'roles': ['staff']}})['key']
    refused('SCLOSED', ask, team, 'whois', {'name': ann.name}, status=401)
    assert ask(team, 'whois', {'name': ann.name}, key) == {'account': ann.id}
    configure(team, **CALLERS['role'])
    for token, is_admitted in ((ann.token, False), (key, False), (staff.token, True), (staff_key, True)):
        if is_admitted:
            assert ask(team, 'whois', {'name': ann.name}, token) == {'account': ann.id}
        else:
            refused('SCLOSED', ask, team, 'whois', {'name': ann.name}, token, status=403)
    staff.set(roles=[])
    refused('SCLOSED', staff.whois, name=ann.name)
    configure(team)
    assert team.op('team', 'whois', {'name': ann.name}, admin=True)['out'] == {'account': ann.id}, 'the administrator'
    refused('SKEY', ask, team, 'whois', {'name': ann.name}, ann.token + 'x')


def test_an_anonymous_account_asks_nothing(team):
    """Everybody can make as many as he likes."""
    ann = Person(team)
    guest = ask(team, 'register', {})
    refused('SCLOSED', ask, team, 'whois', {'name': ann.name}, guest['token'], status=403)
    accounts(team, {'set': {'account': guest['account'], 'roles': ['staff']}})
    refused('SCLOSED', ask, team, 'whois', {'name': ann.name}, guest['token'], status=403)
    configure(team, **CALLERS['role'])
    assert ask(team, 'whois', {'name': ann.name}, guest['token']) == {'account': ann.id}, 'whom the administrator has given the role'


def test_what_is_no_question_is_refused(team):
    configure(team, **CALLERS['address'])
    ann = Person(team)
    for param in ({}, {'name': 'x', 'address': 'a@b.c'}, {'name': ''}, {'name': 'a b'}, {'name': 'x' * 129}, {'name': 1}, {'name': None}, {'address': 'x'}, {'address': ''},
                  {'address': 'a@b.c\r\n'}, {'name': 'x', 'list': True}, {'name': 'adress key'}, {'name': ['x']}):
        refused('AARG', ann.whois, **param)
    for name in ('address', 'x/../y', '%', "'", 'x' * 128):
        assert ann.whois(name=name) == {'account': None}


def test_another_namespace_knows_nothing_of_it(team):
    ann = Person(team)
    configure(team, 'club', **CALLERS['account'])
    refused('SKEY', ask, team, 'whois', {'name': ann.name}, ann.token, ns='club')
    made = ask(team, 'register', {'name': 'clubber', 'password': PASSWORD}, ns='club')
    assert ask(team, 'whois', {'name': ann.name}, made['token'], ns='club') == {'account': None}


def test_it_writes_and_keeps_nothing(team):
    ann = Person(team)

    def stored():
        return team.psql('team', 'select class, id, version from doc order by 1, 2'), team.psql('team', 'select count(*) from idempotency')

    before = stored()
    ann.whois(name=ann.name)
    ann.whois(name='no-such-name')
    team.op('z', 'ns', {'set': {'ns': 'team', 'state': 1}}, admin=True)
    try:
        assert ann.whois(name=ann.name) == {'account': ann.id}, 'also while nothing is changed'
    finally:
        team.op('z', 'ns', {'set': {'ns': 'team', 'state': 0}}, admin=True)
    answer = team.http.post(f'{team.url}/team/op/whois', json={'param': {'name': ann.name}}, headers={'Authorization': f'Bearer {ann.token}', 'Idempotency-Key': 'a-key'}, timeout=60)
    assert answer.json()['out'] == {'account': ann.id}
    assert stored() == before
    refused('AARG', ask, team, 'task', {'op': 'whois', 'param': {'name': ann.name}}, ann.token)


@pytest.fixture
def clients(team):
    with contextlib.ExitStack() as all_:
        yield lambda number: all_.enter_context(Client(team, f'127.0.0.{number}'))


def verdict(reply):
    return (reply.code, reply.args) if reply.code else reply.status


def questions(client, token, count):
    return [verdict(client.op('team', 'whois', {'name': f'guess-{number}'}, key=token)) for number in range(count)]


def test_questions_are_limited_like_logins(team, clients):
    """For an address, whoever asks there, and for an account, wherever it asks; a right answer is none the less a question."""
    ann, bob, carl = Person(team), Person(team), Person(team)
    busy = ('XBUSY', ['limit_client_attempts', str(ATTEMPTS)])
    team.set(limit_client_attempts=ATTEMPTS)
    try:
        answers = questions(clients(2), ann.token, ATTEMPTS + 3)
        assert set(answers[:ATTEMPTS]) == {200} and busy in answers[ATTEMPTS:], answers
        assert verdict(clients(2).op('team', 'whois', {'name': bob.name}, key=bob.token)) == busy, 'the address of another account'
        assert verdict(clients(3).op('team', 'whois', {'name': bob.name}, key=ann.token)) == busy, 'the account at another address'
        assert verdict(clients(2).op('team', 'login', {'name': bob.name, 'password': PASSWORD})) == busy
        assert verdict(clients(4).op('team', 'whois', {'name': bob.name}, key=carl.token)) == 200
    finally:
        team.set(limit_client_attempts=1000)


def test_the_package_for_python_asks(team):
    ann, bob = Person(team), Person(team, confirmed=True)
    with stampd.Client(f'{team.url}/team', ann.token, context=ssl.create_default_context(cafile=str(team.path / 'etc/certificate.pem'))) as client:
        assert client.whois(bob.name) == bob.id and client.whois('nobody-at-all') is None
        with pytest.raises(stampd.Fault) as fault:
            client.whois(address=bob.address)
        assert fault.value.code == 'SCLOSED'

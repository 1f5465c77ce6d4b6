"""What modules know of their caller: account and roles of a session, what the rules allow it, and rates of their own."""
import json
import shutil

import pytest

from kit import Kit
from stack import Problem, refused
from test_accounts import OPEN, Made, bearer

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'team': 'closed', 'lab': 'open', 'demo': 'read'}, 'settings': {'get_writes': 'off'}}
RULES = {
    'Note': {'owner': 'Main.owner', 'members': 'Member', 'team': {'class': 'Team', 'id': 'Main.team', 'members': 'Member'},
             'read': ['owner', 'members', 'team', 'role:editor'], 'list': ['owner', 'team'], 'create': ['owner'], 'update': ['owner', 'role:editor'],
             'delete': ['owner'], 'items': {'Secret': {'see': ['owner']}}},
    'Team': {'members': 'Member', 'read': ['members']}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = str(kit.build('rights.c'))
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


class People:
    """An owner, a member of the note, a member of its team, an editor, and a stranger with an account."""

    def __init__(self, stack):
        self.stack = stack
        stack.op('z', 'ns', {'set': {'ns': 'team', 'access': 'rules', 'accounts': OPEN}}, admin=True)
        stack.put('z', {'c': 'Namespace', 'id': 'team', 'items': [{'c': 'Rules', 'j': RULES}]}, admin=True)
        self.all = {name: Made(stack) for name in ('owner', 'member', 'team', 'editor', 'stranger')}
        self.all['editor'].set({'c': 'Roles', 'j': {'roles': ['writer', 'editor']}})
        stack.put('team', {'c': 'Team', 'id': 't', 'items': [{'c': 'Member', 'k': self.id('team'), 'j': {}}]},
                  {'c': 'Note', 'id': 'n', 'items': [
                      {'c': 'Main', 'j': self.main}, {'c': 'Member', 'k': self.id('member'), 'j': {}}, {'c': 'Secret', 'j': 'words'}]}, admin=True)

    @property
    def main(self):
        return {'owner': self.id('owner'), 'team': 't'}

    def id(self, name):
        return self.all[name].id

    def ask(self, name, operation, param=None, ns='team'):
        """`name` None: without a key; admin: with the administrator's."""
        headers = {} if name is None else {'Authorization': f'Bearer {self.stack.key}'} if name == 'admin' else bearer(self.all[name].token)
        answer = self.stack.http.post(f'{self.stack.url}/{ns}/op/{operation}', json={'param': param or {}}, headers=headers, timeout=60)
        if answer.status_code != 200:
            raise Problem(answer)
        return answer.json()['out']


@pytest.fixture(scope='module')
def people(stack):
    return People(stack)


WHO = ['owner', 'member', 'team', 'editor', 'stranger', None, 'admin']


@pytest.mark.parametrize('name', WHO)
def test_the_caller(people, name):
    known = name not in (None, 'admin')
    roles = ['editor', 'writer'] if name == 'editor' else []
    assert people.ask(name, 'Who') == {'caller': people.id(name) if known else None, 'roles': roles, 'is_editor': name == 'editor'}


def test_an_argument_is_no_caller(stack, people):
    """Anybody can send the argument `account`; the server takes it only beside the token of that account."""
    refused('SKEY', stack.op, 'team', 'Who', account=people.id('owner'))
    assert stack.op('lab', 'Who', account='ann', key='x')['out']['caller'] is None


READERS, LISTERS, OWNERS = {'owner', 'member', 'team', 'editor', 'admin'}, {'owner', 'team', 'admin'}, {'owner', 'admin'}


@pytest.mark.parametrize('age', [None, 5])
@pytest.mark.parametrize('name', WHO)
def test_what_the_rules_allow(people, name, age):
    out = people.ask(name, 'May', {'id': 'n', **({'age': age} if age else {})})
    assert out == {'read': name in READERS, 'list': name in LISTERS, 'see Main': name in READERS, 'see Secret': name in OWNERS, 'change': True}, \
        'nothing is changed, so everybody may'


def tried(people, name, id_, set_):
    return json.loads(refused('ATRIED', people.ask, name, 'May', {'id': id_, 'set': set_}).body['args'][0])['change']


@pytest.mark.parametrize('name', WHO)
def test_what_may_be_changed(people, name):
    assert tried(people, name, 'n', {**people.main, 'x': 1}) == (name in ('owner', 'editor', 'admin'))
    assert tried(people, name, 'n', False) == (name in OWNERS)
    assert tried(people, name, 'new', people.main) == (name in OWNERS)
    assert people.ask(name, 'May', {'id': 'absent'}) == dict.fromkeys(('read', 'list', 'see Main', 'see Secret'), False) | {'change': True}


def test_a_role_that_is_taken_away_holds_at_once(people):
    people.all['editor'].set({'c': 'Roles', 'j': {'roles': ['writer']}})
    try:
        assert people.ask('editor', 'Who')['roles'] == ['writer']
        assert not people.ask('editor', 'May', {'id': 'n'})['read']
    finally:
        people.all['editor'].set({'c': 'Roles', 'j': {'roles': ['writer', 'editor']}})


def test_without_rules_the_access_decides(stack, people):
    for ns, may_change in (('lab', True), ('demo', False)):
        stack.put(ns, {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]}, admin=True)
        out = stack.op(ns, 'May', {'id': 'n'})['out']
        problem = refused('ATRIED', stack.op, ns, 'May', {'id': 'n', 'set': {'x': 1}})
        assert json.loads(problem.body['args'][0])['change'] == may_change
        assert out == {'read': True, 'list': True, 'see Main': True, 'see Secret': True, 'change': True}


def test_rates_of_a_module(people):
    for name in ('owner', 'member'):
        for _ in range(3):
            people.ask(name, 'Invite')
        problem = refused('XBUSY', people.ask, name, 'Invite', status=429)
        assert problem.body['args'] == ['invite', '9/d, burst 3']
        assert 1 <= int(problem.response.headers['Retry-After']) <= 9600
    people.ask('stranger', 'Invite')

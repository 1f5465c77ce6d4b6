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
    STACK['settings']['modules'] = f"{kit.build('rights.c')} {kit.build_example()}"
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
        return answer.json().get('out')


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
            people.ask(name, 'Ration')
        problem = refused('XBUSY', people.ask, name, 'Ration', status=429)
        assert problem.body['args'] == ['invite', '9/d, burst 3']
        assert 1 <= int(problem.response.headers['Retry-After']) <= 9600
    people.ask('stranger', 'Ration')


# --- the example ---

@pytest.fixture(scope='module')
def chess(stack, people):
    """The one who may invite."""
    stack.op('team', 'FoundAsso', {'asso': 'chess', 'title': 'Chess'}, admin=True)
    secretary = people.all['secretary'] = Made(stack)
    secretary.set({'c': 'Roles', 'j': {'roles': ['secretary']}})
    return people


def invitation(chess, number):
    return chess.ask('secretary', 'Invite', {'asso': 'chess', 'member': number, 'name': 'Ann'})['token']


def test_only_a_secretary_invites(chess):
    for name in ('owner', 'editor', None, 'admin'):
        refused('SSECRETARY', chess.ask, name, 'Invite', {'asso': 'chess', 'member': '1', 'name': 'Ann'}, status=403)


def test_an_invitation_makes_one_account_a_member(stack, chess):
    token = invitation(chess, '7')
    assert token not in json.dumps(stack.get('team', ('Asso', 'chess'), admin=True))
    refused('SACCOUNT', chess.ask, None, 'AcceptInvitation', {'asso': 'chess', 'token': token}, status=403)
    for wrong in (token[:-1], token[:-1] + ('A' if token[-1] != 'A' else 'B'), token.swapcase(), 'x'):
        refused('NINVITATION', chess.ask, 'owner', 'AcceptInvitation', {'asso': 'chess', 'token': wrong}, status=404)
    chess.ask('owner', 'AcceptInvitation', {'asso': 'chess', 'token': token})
    refused('NINVITATION', chess.ask, 'member', 'AcceptInvitation', {'asso': 'chess', 'token': token})
    items = {(item['c'], item.get('k')): item.get('j') for item in stack.get('team', ('Asso', 'chess'), admin=True)['items']}
    assert items['Adh', '7']['account'] == chess.id('owner') and items['Adh', '7']['name'] == 'Ann'
    assert not any(class_ == 'Inv' for class_, _ in items)


def test_invitations_of_one_secretary_are_limited(chess):
    sent = 0
    with pytest.raises(Problem) as caught:
        while sent < 1000:
            invitation(chess, str(100 + sent))
            sent += 1
    assert (caught.value.code, caught.value.status, caught.value.body['args']) == ('XBUSY', 429, ['invite', '20/h'])
    assert sent >= 19  # one was sent above

"""stampctl account: an administrator finds people by name, makes accounts, sets passwords; a disabled account is out on every path at once."""
import json
import os
import pty
import subprocess

import pytest

from listener import Listener
from stack import BUILD, Problem, refused, stampctl, wait_until

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'lab': 'open'}, 'settings': {'limit_client_attempts': 200, 'argon2_share': 100}}
PASSWORD = 'correct horse battery staple'
RULES = {'Note': {'read': ['account'], 'create': ['account'], 'update': ['account']}}


@pytest.fixture(scope='module')
def team(stack):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'access': 'rules', 'accounts': {'registration': 'open', 'anonymous': True}, 'rules': RULES}}, admin=True)
    return stack


@pytest.fixture
def run(team):
    def call(command, *words, ns='team', **more):
        return stampctl('account', command, '--ns', ns, '--ca', team.path / 'etc/certificate.pem', '--key-file', team.key_file, team.url, *words, **more)
    return call


def log_in(team, name, password=PASSWORD, **more):
    return team.op('team', 'login', {'name': name, 'password': password, **more})['out']


def test_the_life_of_an_account(team, run):
    assert 'Anna' in run('create', 'Anna', '--role', 'editor', '--role', 'staff', '--address', 'anna@example.org', text=f'{PASSWORD}\n').out
    token = log_in(team, 'anna', device='a phone')['token']
    shown = json.loads(run('show', 'ANNA', '--json').out)
    assert (shown['name'], shown['roles'], shown['address'], shown['sessions'][0]['device']) == ('Anna', ['editor', 'staff'], 'anna@example.org', 'a phone')
    assert run('show', '--id', '--', shown['account']).out == run('show', 'anna').out
    assert 'a phone' in run('sessions', 'anna').out and [json.loads(line)['device'] for line in run('sessions', 'anna', '--json').out.splitlines()] == ['a phone']
    run('password', 'anna', text='another password')
    refused('SKEY', log_in, team, 'anna', status=401)
    refused('SKEY', team.op, 'team', 'account', {}, key=token, status=401)
    again = log_in(team, 'anna', 'another password')['token']
    assert run('sessions', 'anna', '--end').out == 'anna: 1 ended\n'
    refused('SKEY', team.op, 'team', 'account', {}, key=again, status=401)


def test_the_id_of_a_name(team, run):
    id = json.loads(run('create', 'Whom', '--address', 'whom@example.org', '--json', text=f'{PASSWORD}\n').out)['account']
    assert run('whois', 'WHOM').out == f'{id}\n'
    assert 'nobody is found by this address' in run('whois', '--address', 'whom@example.org', status=1).error, 'it is not confirmed'
    team.op('team', 'accounts', {'set': {'account': id, 'confirmed': True}}, admin=True)
    assert run('whois', '--address', 'Whom@example.org').out == f'{id}\n'
    run('disable', 'whom')
    assert 'nobody is found by this name' in run('whois', 'whom', status=1).error


def test_people_are_found_by_the_beginning_of_their_names(team, run):
    names = [f'many-{number:03}' for number in range(230)]
    for name in names:  # as they are stored, since each digest of a password takes a while
        team.put('team', {'c': 'Account', 'id': f'{name}-----------------', 'items': [{'c': 'Self', 'j': {'created': 1, 'name': name}}]}, admin=True)
        team.put('team', {'c': 'Login', 'id': name, 'items': [{'c': 'Acc', 'j': {'account': f'{name}-----------------'}}]}, admin=True)
    team.put('team', {'c': 'Login', 'id': 'many-000 x', 'items': [{'c': 'Acc', 'j': {'account': 'of-an-address'}}]}, admin=True)
    anonymous = team.op('team', 'register', {})['out']['account']

    def listed(*words):
        return [json.loads(line) for line in run('list', '--json', *words).out.splitlines()]
    assert [one['name'] for one in listed('--name', 'MANY-')] == names
    assert [one['name'] for one in listed('--name', 'many-22')] == names[220:230] and listed('--name', 'nobody') == []
    everybody = listed()
    assert set(names) <= {one.get('name') for one in everybody} and {'account': anonymous, 'anonymous': True} in [
        {name: one[name] for name in ('account', 'anonymous') if name in one} for one in everybody]
    assert [one['account'] for one in everybody] == sorted(one['account'] for one in everybody)
    by_name = [one['name'] for one in listed('--name', '')]
    assert by_name == sorted(by_name, key=str.lower) and set(names) <= set(by_name) and 'many-229' in run('list', '--name', 'many-22').out


def test_an_account_that_cannot_be_read_is_listed(team, run):
    team.put('team', {'c': 'Account', 'id': 'broken', 'items': [{'c': 'Self', 'j': 7}]}, admin=True)
    assert any(json.loads(line)['account'] == 'broken' for line in run('list', '--json').out.splitlines())
    team.put('team', {'c': 'Account', 'id': 'broken', 'delete': True}, admin=True)


def test_a_disabled_account_is_out_on_every_path_at_once(team, run):
    run('create', 'gone', text=PASSWORD)
    token, other = log_in(team, 'gone')['token'], log_in(team, 'gone')['token']
    account = json.loads(run('show', 'gone', '--json').out)['account']
    bearer = {'Authorization': f'Bearer {token}'}
    cookie = {'Cookie': f'__Host-stampd-team={other}'}
    team.op('team', 'put', {'docs': [{'c': 'Note', 'id': 'a', 'items': [{'c': 'Main', 'j': 1}]}]}, key=token)
    listener = Listener(team, 'Note/a', ns='team', headers=bearer)
    wait_until(lambda: listener.events, what='the first event')

    def paths():
        for headers in (bearer, cookie):
            for _ in range(4):  # every worker
                yield team.http.get(f'{team.url}/team/doc/Note/a', headers=headers)
        yield team.http.put(f'{team.url}/team/doc/Note/a', json={'items': []}, headers=bearer)
        yield team.http.get(f'{team.url}/team/live?def=Note/a', headers=bearer)
        yield team.http.post(f'{team.url}/team/op/get', json={'key': token, 'param': {'docs': [{'c': 'Note', 'id': 'a'}]}})
        yield team.http.post(f'{team.url}/team/op/sessions', json={'param': {}}, headers=bearer)
        yield team.http.post(f'{team.url}/team/op/put', json={'param': {'docs': [{'c': 'Note', 'id': 'b', 'items': [{'c': 'Main', 's': 'x' * 200000}]}]}}, headers=bearer)
    assert run('disable', 'gone').out == 'gone: disabled\n'
    assert [answer.json()['code'] for answer in paths()] == ['SKEY'] * 13
    wait_until(lambda: not listener.is_open, what='the end of the live connection')
    refused('SKEY', log_in, team, 'gone', status=401)
    assert 'disabled' in run('show', 'gone').out
    run('enable', '--id', '--', account)  # one of 64 ids begins with -
    assert team.op('team', 'account', {}, key=token)['out']['account'] == account
    run('disable', 'gone')
    run('sessions', 'gone', '--end')
    run('enable', 'gone')
    refused('SKEY', team.op, 'team', 'account', {}, key=token, status=401)


def test_what_goes_wrong_is_said(team, run):
    assert 'NDOCUMENT' in run('show', 'nobody', status=1).error
    assert 'password of 8 to 1024 bytes' in run('create', 'short', text='seven77', status=1).error
    assert 'password of 8 to 1024 bytes' in run('create', 'long', text='x' * 1025, status=1).error
    assert 'SCLOSED' in run('list', ns='lab', status=1).error
    assert '--ns CODE is needed' in stampctl('account', 'list', team.url, status=2).error


def test_a_terminal_does_not_show_the_password(team):
    ours, theirs = pty.openpty()
    words = [BUILD / 'src/stampctl', 'account', 'create', team.url, 'typed', '--ns', 'team', '--ca', team.path / 'etc/certificate.pem', '--key-file', team.key_file]
    with subprocess.Popen([str(word) for word in words], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as typing:
        assert typing.stderr.read(len('Password: ')) == 'Password: '
        os.write(ours, f'{PASSWORD}\n'.encode())
        assert 'typed' in typing.stdout.read() and typing.wait(60) == 0
    os.close(theirs)
    with pytest.raises(OSError):  # the terminal was closed, and had shown nothing
        os.read(ours, 1000)
    os.close(ours)
    assert log_in(team, 'typed')
    with pytest.raises(Problem):
        log_in(team, 'typed', 'wrong password')

"""The operation `explain`: what it says of a caller and a document is what the server does, and what `stampctl rules explain` says."""
import itertools
import json
import secrets

import pytest

import test_rules_paths
from stack import refused, stampctl
from test_rules_paths import ACCOUNTS, IDS, RULES, document, kit, session, worlds  # noqa: F401

pytestmark = pytest.mark.plain

STACK = {**test_rules_paths.STACK, 'namespaces': {**test_rules_paths.STACK['namespaces'], 'lab': 'open'}}
JUDGED = [name for name in RULES if name not in ('Veil', 'Cut', 'Pick', 'Mask')]  # no filter comes behind the rules
CALLERS = ('anybody', *ACCOUNTS, 'eve', 'tim', 'off')


def explain(stack, name, ident, ns='full', **more):
    return stack.op(ns, 'explain', {'c': name, 'id': ident, **more}, admin=True)['out']


def of_caller(caller):
    return {} if caller == 'anybody' else {'account': IDS[caller]}


def present(stack):
    """Documents of each class that rules judge."""
    return [(name, one['id']) for name in JUDGED for one in stack.op('full', 'list', {'c': name}, admin=True)['out']['docs'][:4]]


@pytest.mark.parametrize('caller', CALLERS)
def test_it_says_what_the_server_does(worlds, caller):
    if caller == 'off':
        for name, ident in present(worlds):
            found = explain(worlds, name, ident, **of_caller(caller))
            assert not found['served'] and not any(right['may'] for right in found['rights'].values())
        return
    asked = 0
    for name, ident in present(worlds):
        found, before = explain(worlds, name, ident, **of_caller(caller)), worlds.get('full', (name, ident), admin=True)
        def call(operation, param):
            return worlds.request('POST', f'/full/op/{operation}', json={'param': param}, headers=session(caller)).json()
        shown = call('get', {'docs': [{'c': name, 'id': ident}]})['out']['docs'][0]
        listed = [one['id'] for one in call('list', {'c': name, 'prefix': ident})['out']['docs']]
        change = {'c': name, 'id': ident, 'items': [{'c': 'Line', 'k': '1', 'j': secrets.token_hex(4)}]}
        written, deleted = (call('put', {'docs': [one]}) for one in (change, {'c': name, 'id': ident, 'delete': True}))
        assert found['exists'] and found['served'] and found['access'] == 'rules'
        assert found['rights']['read']['may'] == (shown['v'] != 0), (name, ident, found)
        assert found['rights']['list']['may'] == (ident in listed), (name, ident, found)
        assert found['rights']['update']['may'] == ('out' in written), (name, ident, found, written)
        is_gone = worlds.get('full', (name, ident), admin=True)['v'] == 0
        assert found['rights']['delete']['may'] == is_gone, (name, ident, found, deleted)
        seen = {item['c'] for item in shown['items']}
        assert {one['c'] for one in found['items'] if one['see']['may']} == seen, (name, ident, found)
        if is_gone:
            worlds.put('full', {'c': name, 'id': ident, 'items': [{member: item[member] for member in 'ckj' if member in item} for item in before['items']]}, admin=True)
        asked += found['rights']['read']['may']
    assert asked


def test_it_says_what_the_command_says(worlds):
    """One document of each class, for one caller after the other: each question is a command."""
    firsts = {name: ident for name, ident in reversed(present(worlds))}
    for (name, ident), caller in zip(firsts.items(), itertools.cycle(['anybody', 'ann', 'eve'])):
        who = [] if caller == 'anybody' else ['--account', IDS[caller]]
        found = explain(worlds, name, ident, **of_caller(caller))
        for right, decided in found['rights'].items():
            said = json.loads(worlds.admin('rules', 'explain', 'full', f'{name}/{ident}', right, '--json', *who).out)
            assert (said['allowed'], said['rule']) == (decided['may'], decided['rule']), (name, ident, right, caller)
        for one in found['items']:
            for deed in ('see', 'write'):
                said = json.loads(worlds.admin('rules', 'explain', 'full', f'{name}/{ident}', deed, '--item', one['c'], '--json', *who).out)
                assert (said['allowed'], said['rule']) == (one[deed]['may'], one[deed]['rule']), (name, ident, one, deed, caller)


def test_roles_can_be_tried(worlds):
    ann = {'account': IDS['ann']}
    assert not explain(worlds, 'Staff', 'b', **ann)['rights']['read']['may']
    found = explain(worlds, 'Staff', 'b', **ann, roles=['staff', 'editor'])
    assert found['rights']['read'] == {'may': True, 'rule': 'Staff.read[0]'} and found['roles'] == ['editor', 'staff']
    assert explain(worlds, 'Staff', 'b', account=IDS['eve'])['roles'] == ['staff'], 'those that the account has'
    assert not explain(worlds, 'Staff', 'b', account=IDS['eve'], roles=[])['rights']['read']['may']


def test_a_document_that_does_not_exist_can_be_created(worlds):
    found = explain(worlds, 'Open', 'none')
    assert not found['exists'] and found['rights'] == {'create': {'may': True, 'rule': 'Open.create[0]'}} and found['items'] == []
    assert explain(worlds, 'Shut', 'none')['rights']['create'] == {'may': False, 'rule': 'Shut.create'}


def test_without_rules_the_access_decides(worlds):
    worlds.put('lab', document('Shut', 'seen'), admin=True)
    try:
        for access, reads, writes in (('read', True, False), ('open', True, True), ('closed', False, False)):
            worlds.op('z', 'ns', {'set': {'ns': 'lab', 'access': access}}, admin=True)
            found = explain(worlds, 'Shut', 'seen', ns='lab')
            assert found['access'] == access
            assert [found['rights'][right] for right in ('read', 'list')] == [{'may': reads, 'rule': ''}] * 2
            assert [found['rights'][right] for right in ('update', 'delete')] == [{'may': writes, 'rule': ''}] * 2
            assert found['items'] == [{'c': 'Main', 'see': {'may': reads, 'rule': ''}, 'write': {'may': writes, 'rule': ''}}]
    finally:
        worlds.op('z', 'ns', {'set': {'ns': 'lab', 'access': 'open'}}, admin=True)


@pytest.mark.parametrize('param, at', [({}, 'c'), ({'c': 'Open'}, 'id'), ({'c': 'Open', 'id': 'b', 'roles': ['staff']}, 'account'), ({'c': 'Open', 'id': 'b', 'account': ''}, 'account'),
                                       ({'c': 'Open', 'id': 'b', 'account': 'x', 'roles': 'staff'}, 'roles'), ({'c': 'Open', 'id': 'b', 'account': 'x', 'roles': ['a b']}, 'roles'),
                                       ({'c': 'Open', 'id': 'b', 'account': 'x', 'roles': ['a'] * 33}, 'roles'), ({'c': 'Open', 'id': 'b', 'who': 1}, 'who')])
def test_what_is_malformed_is_refused(worlds, param, at):
    assert refused('AARG', worlds.op, 'full', 'explain', param, admin=True).body['args'][0] == at


TABLE = {'documents': [{'c': 'Note', 'id': '1', 'items': [{'c': 'Main', 'j': {'owner': 'ann'}}]}, {'c': 'Team', 'id': 't', 'items': [{'c': 'Who', 'k': 'bob', 'j': {}}]}],
         'rules': {'Note': {'owner': 'Main.owner', 'read': ['owner', 'role:reader'], 'update': ['owner'], 'items': {'Secret': {'see': []}}}},
         'cases': [{'may': 'read', 'document': 'Note/1', 'expected': False},
                   {'name': 'the owner', 'caller': {'account': 'ann'}, 'may': 'update', 'document': 'Note/1', 'after': {'c': 'Note', 'id': '1', 'items': []}, 'expected': True},
                   {'caller': {'account': 'bob', 'roles': ['reader']}, 'may': 'read', 'document': 'Note/1', 'expected': False},
                   {'caller': {'account': 'ann'}, 'may': 'see', 'item': 'Secret', 'document': 'Note/1', 'expected': True},
                   {'may': 'create', 'document': {'c': 'Other', 'id': 'x'}, 'expected': False}]}


def test_a_table_of_cases_is_decided_as_the_command_does(worlds, tmp_path):
    file = tmp_path / 'cases.json'
    file.write_text(json.dumps(TABLE))
    found = worlds.op('full', 'explain', TABLE, admin=True)['out']
    said = [json.loads(line) for line in stampctl('rules', 'test', file, '--all', '--json', status=1).out.splitlines()]
    assert [(one['may'], one['rule'], one['good']) for one in found['cases']] == [(one['allowed'], one['rule'], one['allowed'] == one['expected']) for one in said]
    assert found['failed'] == 2 and [one['good'] for one in found['cases']] == [True, True, False, False, True]


def test_without_rules_of_its_own_a_table_is_judged_by_those_of_the_namespace(worlds):
    cases = [{'caller': {'account': 'ann', 'roles': ['staff']}, 'may': 'read', 'document': {'c': 'Staff', 'id': 'b'}, 'expected': True}]
    assert worlds.op('full', 'explain', {'cases': cases}, admin=True)['out'] == {'cases': [{'may': True, 'rule': 'Staff.read[0]', 'good': True}], 'failed': 0}
    assert worlds.op('full', 'explain', {'cases': cases, 'rules': {}}, admin=True)['out']['cases'][0] == {'may': False, 'rule': '', 'good': False}


@pytest.mark.parametrize('change, at', [
    ({'cases': [*TABLE['cases'], {'may': 'fly', 'document': 'Note/1', 'expected': True}]}, '/param/cases/5/may'),
    ({'cases': [{'may': 'read', 'document': 'Note/2', 'expected': True}]}, '/param/cases/0/document'),
    ({'cases': TABLE['cases'] * 101}, '/param/cases'),
    ({'cases': {}}, '/param/cases'),
    ({'documents': [{'c': 'Note', 'id': '1', 'items': [{'c': 'Main', 'j': 1}] * 2}]}, '/param/documents/0'),
    ({'documents': [{'c': 'Note', 'id': str(n)} for n in range(501)]}, '/param/documents'),
    ({'rules': {'Note': {'read': ['whoever']}}}, '/param/rules/Note/read/0'),
    ({'c': 'Note'}, '/param/c')])
def test_a_table_that_is_wrong_is_refused_at_its_place(worlds, change, at):
    assert refused('AARG', worlds.op, 'full', 'explain', {**TABLE, **change}, admin=True).body['at'] == at


def test_a_namespace_without_rules_needs_those_of_the_table(worlds):
    assert refused('AARG', worlds.op, 'lab', 'explain', {'cases': []}, admin=True).body['at'] == '/param/rules'

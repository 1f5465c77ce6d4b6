"""A namespace reads documents of another where both configurations agree; otherwise the other does not exist for it."""
import itertools
import shutil

import pytest

from kit import Kit
from stack import refused, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'reader': 'open', 'other': 'closed', 'third': 'open', 'shut': 'closed'}}
SECRET = 'a secret of the other namespace'
NAME = {'c': 'Secret', 'id': 'one'}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': str(kit.build('neighbour.c'))}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(autouse=True)
def filled(stack):
    for ns in ('other', 'third'):
        stack.put(ns, {**NAME, 'items': [{'c': 'Main', 'j': f'{SECRET}, {ns}'}]}, admin=True)
    yield
    for ns in ('reader', 'other', 'third', 'shut', 'z'):
        configure(stack, ns, reads=None, readers=None, state=None, message=None)
    configure(stack, 'other', access='closed')
    configure(stack, 'reader', access='open')


def configure(stack, ns, **members):
    stack.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)


def agree(stack):
    configure(stack, 'reader', reads=['other'])
    configure(stack, 'other', readers=['reader'])


def read(stack, ns='other', age=1, by='reader', name=NAME, **more):
    return stack.op(by, 'get', {'docs': [{**name, 'age': age, 'ns': ns}]}, **more)['out']['docs'][0]


def by_module(stack, ns='other', by='reader', **more):
    return stack.op(by, 'Neighbour', {'ns': ns, 'class': 'Secret', 'id': 'one', **more})['out']


def test_both_agree(stack):
    agree(stack)
    for _ in range(6):  # by every worker
        document = read(stack)
        assert (document['ns'], document['c'], document['id'], document['items'][0]['j']) == ('other', 'Secret', 'one', f'{SECRET}, other')
    assert read(stack, name={'c': 'Secret', 'id': 'none'}) == {'ns': 'other', 'c': 'Secret', 'id': 'none', 'v': 0, 'ct': 0, 'dt': 0, 'items': []}
    both = stack.op('reader', 'get', {'docs': [{**NAME, 'age': 5, 'ns': 'other'}, NAME]})['out']['docs']
    assert both[0]['v'] and both[1]['v'] == 0 and 'ns' not in both[1], 'a document of the same name is another'
    assert by_module(stack) == {'exists': True, 'v': document['v']}


def test_the_tolerance_is_kept(stack):
    agree(stack)
    read(stack)
    version = stack.put('other', {**NAME, 'items': [{'c': 'Main', 'j': 'new'}]}, admin=True)
    wait_until(lambda: read(stack)['v'] == version, what='the new version')
    refused('AARG', lambda: read(stack, age=0))
    refused('AARG', lambda: stack.op('reader', 'get', {'docs': [{**NAME, 'ns': 'other'}]}))
    refused('AARG', lambda: stack.op('reader', 'get', {'docs': [{**NAME, 'age': 1, 'ns': 7}]}))


def is_hidden(stack, ns, by='reader', name=NAME, admin=None):
    """The very answer of a namespace that does not exist, but for its code."""
    seen = []
    for code in (ns, 'nothere'):
        problem = refused('NNAMESPACE', lambda code=code: read(stack, code, by=by, name=name, admin=admin))
        body = dict(problem.body)
        assert body.pop('args') == [code]
        seen.append((problem.status, body))
    assert seen[0] == seen[1] and SECRET not in str(seen)


@pytest.mark.parametrize('reads, readers', itertools.product((None, [], ['third'], ['other']), (None, [], ['third'], ['reader'])))
def test_without_both_nothing_is_disclosed(stack, reads, readers):
    configure(stack, 'reader', reads=reads)
    configure(stack, 'other', readers=readers)
    agreed = reads == ['other'] and readers == ['reader']
    for admin, name in itertools.product((None, True), (NAME, {'c': 'Secret', 'id': 'none'})):
        if agreed:
            read(stack, name=name, admin=admin)
        else:
            is_hidden(stack, 'other', name=name, admin=admin)
    if not agreed:
        refused('NNAMESPACE', lambda: by_module(stack))


def test_an_agreement_is_of_two_and_of_one_direction(stack):
    agree(stack)
    read(stack)
    is_hidden(stack, 'reader', by='other', admin=True)
    is_hidden(stack, 'third')
    is_hidden(stack, 'other', by='third')
    is_hidden(stack, 'z', admin=True)
    configure(stack, 'reader', reads=['other', 'z', 'third'])
    configure(stack, 'z', readers=['reader'])
    is_hidden(stack, 'z', name={'c': 'Namespace', 'id': 'other'}, admin=True)
    is_hidden(stack, 'third')
    for code in ('', 'Other', 'other ', '../other', 'x' * 300, 'stampd_other', "other'", 'é'):
        refused('NNAMESPACE', lambda: read(stack, code))


def test_it_ends_at_once(stack):
    agree(stack)
    for change, back in ((('reader', {'reads': None}), {'reads': ['other']}), (('other', {'readers': None}), {'readers': ['reader']}),
                         (('other', {'access': 'rules'}), {'access': 'closed'})):
        for _ in range(4):
            read(stack, age=3600)
        configure(stack, change[0], **change[1])
        for _ in range(6):
            refused('NNAMESPACE', lambda: read(stack, age=3600))
        configure(stack, change[0], **back)
        read(stack, age=3600)


def test_who_may_not_read_its_own_namespace_reads_no_other(stack):
    agree(stack)
    for access in ('closed', 'rules'):
        configure(stack, 'reader', access=access)
        refused('SCLOSED', lambda: read(stack))
        assert read(stack, admin=True)['v']
    configure(stack, 'reader', access='read')
    assert read(stack)['v']


@pytest.mark.parametrize('state', [0, 1, 2, 3])
def test_states_of_the_other_hold(stack, state):
    agree(stack)
    configure(stack, 'other', state=state, message='words of the other')
    if state < 2:
        assert read(stack)['v'] and by_module(stack)['exists']
        return
    code = {2: 'OOFF', 3: 'OGONE'}[state]
    problem = refused(code, lambda: read(stack))
    assert problem.body['args'] == ['other'] and problem.body['detail'] == 'words of the other'
    refused(code, lambda: by_module(stack))
    if state == 2:
        assert read(stack, admin=True)['v'], 'for the administrator'
    configure(stack, 'reader', reads=None)
    is_hidden(stack, 'other')


def test_a_state_is_not_disclosed_without_agreement(stack):
    configure(stack, 'other', state=3, message='words')
    is_hidden(stack, 'other')


def test_nothing_can_be_changed_there(stack):
    agree(stack)
    before = stack.get('other', ('Secret', 'one'), admin=True)
    refused('BREADONLY', lambda: stack.op('reader', 'Intruder', {'ns': 'other'}))
    refused('BMODULE', lambda: by_module(stack, age=0))
    refused('AARG', lambda: stack.op('reader', 'put', {'docs': [{**NAME, 'ns': 'other', 'items': []}]}))
    assert stack.get('other', ('Secret', 'one'), admin=True) == before


@pytest.mark.parametrize('class_', ['Account', 'Login', 'Ticket'])
def test_documents_of_accounts_are_not_read(stack, class_):
    agree(stack)
    is_hidden(stack, 'other', name={'c': class_, 'id': 'x'})


def test_a_namespace_with_accounts_is_not_read(stack):
    configure(stack, 'reader', reads=['shut'])
    configure(stack, 'shut', readers=['reader'])
    read(stack, 'shut')
    configure(stack, 'shut', accounts={'registration': 'closed'})
    is_hidden(stack, 'shut')


@pytest.mark.parametrize('value', [1, 'other', {}, [1], ['Other'], [''], ['x' * 17], ['a'] * 33])
def test_configurations_are_validated(stack, value):
    for member in ('reads', 'readers'):
        problem = refused('AARG', lambda: configure(stack, 'reader', **{member: value}))
        assert problem.body['args'] == [member]


def test_the_administrator_sees_them(stack):
    agree(stack)
    assert stack.op('z', 'ns', {'get': 'reader'}, admin=True)['out']['reads'] == ['other']
    assert stack.op('z', 'ns', {'get': 'other'}, admin=True)['out']['readers'] == ['reader']
    assert 'reads' not in stack.ping('reader').json() and 'readers' not in stack.ping('other').json()


def test_stampctl_sets_and_lists_both(stack):
    stack.admin('ns', 'reads', 'reader', 'other', 'third')
    stack.admin('ns', 'readers', 'other', 'reader')
    assert stack.admin('ns', 'reads', 'reader').out.split() == ['other', 'third']
    assert stack.admin('ns', 'readers', 'other').out.split() == ['reader']
    assert stack.op('z', 'ns', {'get': 'reader'}, admin=True)['out']['reads'] == ['other', 'third']
    read = stack.op('reader', 'get', {'docs': [{**NAME, 'ns': 'other', 'age': 60}]})['out']['docs']
    assert SECRET in str(read)
    assert 'expected' in stack.admin('ns', 'reads', 'reader', 'no such code', status=1).error
    stack.admin('ns', 'reads', 'reader', '--none', 'other', status=2)
    stack.admin('ns', 'reads', 'reader', '--none')
    assert stack.admin('ns', 'reads', 'reader').out == ''
    assert 'reads' not in stack.op('z', 'ns', {'get': 'reader'}, admin=True)['out']

"""Configurations and access rules of namespaces are checked on every path that writes them; what SQL wrote past the check allows nothing."""
import json

import pytest

from stack import refused

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'demo': 'open', 'lab': 'open'}}
RULES = {'Note': {grant: ['anybody'] for grant in ('read', 'create', 'update')}}
NOTE = {'c': 'Note', 'id': 'a'}
WRONG_QUOTAS = [7, 'few', {'address': {'requests': 'few'}}, {'namespace': {'bytes': -1}}, {'namespace': {'byte': 5}}]


def ns(stack, param):
    return stack.op('z', 'ns', param, admin=True)['out']


def conf(stack, code='demo'):
    return next(item['j'] for item in stack.get('z', ('Namespace', code), admin=True)['items'] if item['c'] == 'Conf')


def put(stack, *items, code='demo'):
    return stack.put('z', {'c': 'Namespace', 'id': code, 'items': list(items)}, admin=True)


def answers(stack, operation, code='demo', docs=(NOTE,)):
    """The codes of a request that every worker gets."""
    sent = [stack.request('POST', f'/{code}/op/{operation}', json={'param': {'docs': list(docs)}}) for _ in range(6)]
    return {answer.json()['code'] if answer.status_code >= 400 else None for answer in sent}


@pytest.fixture(autouse=True)
def as_it_was(stack):
    before = {code: conf(stack, code) for code in ('demo', 'z')}
    yield
    for code, content in before.items():
        put(stack, {'c': 'Conf', 'j': content}, {'c': 'Rules', 'del': True}, code=code)


# --- what a server is asked to write ---

@pytest.mark.parametrize('member, value, words', [
    ('state', 'off', '0 on, 1 read-only'), ('access', 'all', 'closed, read, open, rules'), ('quotas', {'address': {'requests': 'few'}}, 'address, account'),
    ('workers', 7, 'expected'), ('records', 7, 'expected'), ('database', 'a b', 'stampctl'), ('encrypted', 'yes', 'stampctl'),
    ('accounts', {'registration': 'all'}, 'registration'), ('accounts', {'registration': 'open'}, 'rules or closed')])
def test_a_put_of_a_malformed_member_is_refused(stack, member, value, words):
    before = conf(stack)
    problem = refused('AARG', put, stack, {'c': 'Conf', 'j': {**before, 'label': 'new', member: value}})
    assert problem.body['args'] == ['items'] and f'Conf of Namespace/demo: {member}: ' in problem.body['detail'] and words in problem.body['detail']
    assert conf(stack) == before and answers(stack, 'put') == {None}


@pytest.mark.parametrize('content', ['text', 7, []])
def test_a_put_of_no_object_is_refused(stack, content):
    before = conf(stack)
    assert 'An object' in refused('AARG', put, stack, {'c': 'Conf', 'j': content}).body['detail']
    assert conf(stack) == before


@pytest.mark.parametrize('rules, words', [({'Note': {'read': ['anyone']}}, 'Note.read[0]: '), ('text', 'Rules of Namespace/demo: '), ([1], 'expected')])
def test_a_put_of_malformed_rules_is_refused_on_every_road(stack, rules, words):
    put(stack, {'c': 'Rules', 'j': RULES})
    assert words in refused('AARG', put, stack, {'c': 'Rules', 'j': rules}).body['detail']
    body = {'items': [{'c': 'Rules', 'j': rules}, {'c': 'Conf', 'j': conf(stack)}]}
    answer = stack.request('PUT', '/z/doc/Namespace/demo', json=body, headers={'Authorization': f'Bearer {stack.key}'})
    assert (answer.status_code, answer.json()['code']) == (400, 'AARG') and words in answer.json()['detail'], answer.text
    assert ns(stack, {'get': 'demo'})['rules'] == RULES


def test_other_documents_and_namespaces_are_not_checked(stack):
    stack.put('demo', {'c': 'Namespace', 'id': 'demo', 'items': [{'c': 'Rules', 'j': 'text'}, {'c': 'Conf', 'j': {'state': 'off'}}]})
    stack.put('z', {'c': 'Note', 'id': 'demo', 'items': [{'c': 'Rules', 'j': 'text'}]}, admin=True)


def test_what_was_malformed_before_may_stay(stack):
    stack.write_configuration('demo', 'Conf', json.dumps({**conf(stack), 'theme': 1}))
    put(stack, {'c': 'Conf', 'j': {**conf(stack), 'label': 'new'}})
    assert ns(stack, {'get': 'demo'})['malformed'] == 'theme'
    ns(stack, {'set': {'ns': 'demo', 'theme': 'dark'}})
    assert 'malformed' not in ns(stack, {'get': 'demo'})


# --- what SQL wrote past the check ---

@pytest.mark.parametrize('wrong', [{'Note': {'read': ['anyone']}}, 'text', [1]])
def test_malformed_rules_allow_nothing(stack, wrong):
    ns(stack, {'set': {'ns': 'demo', 'rules': RULES, 'access': 'rules'}})
    assert answers(stack, 'put') == {None}
    stack.write_configuration('demo', 'Rules', json.dumps(wrong))
    assert answers(stack, 'put') <= {'SRULE', 'SCLOSED'}
    assert stack.request('GET', '/demo/doc/Note/a').status_code in (401, 403, 404)
    assert f'document Namespace/demo: its item Rules is malformed at=' in stack.log()
    ns(stack, {'set': {'ns': 'demo', 'rules': RULES}})
    assert answers(stack, 'put') == {None}


@pytest.mark.parametrize('wrong', WRONG_QUOTAS, ids=json.dumps)
def test_malformed_quotas_refuse_what_they_would_bound(stack, wrong):
    stack.put('demo', NOTE)
    stack.write_configuration('demo', 'Conf', json.dumps({**conf(stack), 'quotas': wrong}))
    assert answers(stack, 'put') == {'OREADONLY'}
    problem = stack.request('POST', '/demo/op/put', json={'param': {'docs': [NOTE]}}).json()
    assert problem['detail'] == 'The quotas in its configuration are malformed.'
    assert answers(stack, 'get') == {None} and answers(stack, 'put', 'lab') == {None}
    assert ns(stack, {'get': 'demo'})['malformed'] == 'quotas' and stack.ping('demo').json()['state'] == 1
    assert 'document Namespace/demo: its item Conf is malformed member=quotas' in stack.log()
    ns(stack, {'set': {'ns': 'demo', 'quotas': {'namespace': {'bytes': 1000000}}}})
    assert answers(stack, 'put') == {None} and 'malformed' not in ns(stack, {'get': 'demo'})


def test_malformed_quotas_open_nothing_that_is_off(stack):
    stack.write_configuration('demo', 'Conf', json.dumps({**conf(stack), 'quotas': 7, 'state': 2, 'message': 'closed'}))
    problem = stack.request('POST', '/demo/op/get', json={'param': {'docs': []}}).json()
    assert (problem['code'], problem['detail']) == ('OOFF', 'closed')


def test_malformed_quotas_of_z_bound_all(stack):
    stack.write_configuration('z', 'Conf', json.dumps({**conf(stack, 'z'), 'quotas': 7}))
    assert answers(stack, 'put') == answers(stack, 'put', 'lab') == {'OREADONLY'} and answers(stack, 'get') == {None}
    ns(stack, {'set': {'ns': 'z', 'quotas': None}})
    assert answers(stack, 'put') == answers(stack, 'put', 'lab') == {None}


# --- archives ---

@pytest.mark.parametrize('item, content, words', [('Rules', {'Note': {'read': ['anyone']}}, 'Rules: Note.read[0]: '),
                                                  ('Conf', {'quotas': {'address': 5}}, 'Conf: quotas: '), ('Conf', {'access': 'all'}, 'Conf: access: ')])
def test_an_archive_with_a_malformed_configuration_is_refused(stack, tmp_path, item, content, words):
    number = len(stack.psql('z', "select id from doc where class = 'Namespace'"))
    target, archive = f'target{number}', tmp_path / 'demo.tar.zst'
    stack.put('demo', NOTE)
    whole = {**conf(stack), **content} if item == 'Conf' else content
    stack.write_configuration('demo', item, json.dumps(whole))
    stack.admin('export', 'demo', archive)
    stack.admin('ns', 'create', target)
    before = stack.psql('z', 'select iclass, content from item where id = %s', (target,))
    error = stack.admin('import', target, archive, status=1).error
    assert words in error and '--no-configuration' in error
    kept = stack.psql('z', 'select iclass, content from item where id = %s', (target,))
    assert [row[0] for row in kept] == [row[0] for row in before] and not any('anyone' in row[1] or '"all"' in row[1] or 'quotas' in row[1] for row in kept)

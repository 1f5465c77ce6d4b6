"""Documents through the front entry: HTTPS, nginx, a worker, PostgreSQL, and back."""
import itertools
import json
import time

import pytest

from holder import Copy, items_of
from stack import refused, wait_until

numbers = itertools.count(1)


@pytest.fixture
def name():
    """(class, id) of a document that no other test has."""
    return 'Note', f'n{next(numbers)}'


def doc(name, *items, **more):
    return {'c': name[0], 'id': name[1], 'items': list(items), **more}


def item(class_, key=None, content=None):
    return {'c': class_, 'k': key, 'j': content} if key is not None else {'c': class_, 'j': content}


def removal(class_, key=None):
    return {'c': class_, 'k': key, 'del': True} if key is not None else {'c': class_, 'del': True}


def now_stamp():
    """The stamp of this moment, as the server counts: yymmddhhmmssmmm, UTC."""
    now = time.time()
    return int(time.strftime('%y%m%d%H%M%S', time.gmtime(now)) + f'{int(now * 1000) % 1000:03d}')


# --- writing and reading ---

def test_what_was_never_written_has_version_0(stack, name):
    document = stack.get('lab', name)
    assert document['v'] == document['ct'] == 0
    assert not document.get('items')


def test_a_document_is_born(stack, name):
    before = now_stamp()
    version = stack.put('lab', doc(name, item('Head', None, {'title': 'One'}), item('Line', 'a', [1, 2])))
    assert before <= version <= now_stamp()
    document = stack.get('lab', name)
    assert (document['c'], document['id']) == name
    assert document['v'] == document['ct'] == version
    assert items_of(document) == {('Head', None): {'title': 'One'}, ('Line', 'a'): [1, 2]}
    assert {entry['v'] for entry in document['items']} == {version}


def test_items_named_are_set_or_removed_and_others_stay(stack, name):
    first = stack.put('lab', doc(name, item('Head', None, 1), item('Line', 'a', 'a1'), item('Line', 'b', 'b1')))
    second = stack.put('lab', doc(name, item('Line', 'a', 'a2'), removal('Line', 'b'), item('Line', 'c', 'c1')))
    assert second > first
    document = stack.get('lab', name)
    assert items_of(document) == {('Head', None): 1, ('Line', 'a'): 'a2', ('Line', 'c'): 'c1'}
    versions = {(entry['c'], entry.get('k')): entry['v'] for entry in document['items']}
    assert versions == {('Head', None): first, ('Line', 'a'): second, ('Line', 'c'): second}
    assert (document['v'], document['ct']) == (second, first)


def test_null_removes_an_item(stack, name):
    stack.put('lab', doc(name, item('Line', 'a', 1), item('Line', 'b', 2)))
    stack.put('lab', doc(name, item('Line', 'a', None)))
    assert items_of(stack.get('lab', name)) == {('Line', 'b'): 2}


def test_writing_the_same_again_changes_nothing(stack, name):
    order = doc(name, item('Head', None, {'a': 1}), item('Line', 'a', 'x'))
    version = stack.put('lab', order)
    assert stack.put('lab', order) == version
    assert stack.get('lab', name)['v'] == version


def test_json_comes_back_as_it_went_in(stack, name):
    texts = ['{"b":1,"a":1.10}', '1e400', '0.1000', '"\\u00e9\\n"', '{"a":{"a":[[],{}]}}', '12345678901234567890123']
    for text in texts:
        body = '{"param":{"docs":[{"c":"%s","id":"%s","items":[{"c":"Head","j":%s}]}]}}' % (*name, text)
        answer = stack.request('POST', '/lab/op/put', headers={'Content-Type': 'application/json'}, form=body)
        assert answer.status_code == 200, answer.text
        answer = stack.request('POST', '/lab/op/get', json={'param': {'docs': [{'c': name[0], 'id': name[1]}]}})
        assert f'"j":{text}}}' in answer.text


def test_raw_items_are_text(stack, name):
    text = 'no json { "\\ é \u4e2d \U0001f600\n'
    stack.put('lab', doc(name, {'c': 'Raw', 'k': 'a', 's': text}, {'c': 'Raw', 's': ''}, item('Raw', 'b', text)))
    assert items_of(stack.get('lab', name)) == {('Raw', None): ('s', ''), ('Raw', 'a'): ('s', text), ('Raw', 'b'): text}


def test_names_may_be_any_text(stack):
    for id_, key in (('a/b?c=d&e', '%00 "x"'), ('é\u4e2d', '.'), ('x' * 255, 'y' * 255), ("o'k; --", '{}')):
        stack.put('lab', doc(('Note', id_), item('Line', key, id_)))
        assert items_of(stack.get('lab', ('Note', id_))) == {('Line', key): id_}


def test_several_documents_are_one_commit(stack, name):
    others = [(name[0], f'{name[1]}.{i}') for i in range(5)]
    version = stack.put('lab', *(doc(other, item('Head', None, other[1])) for other in others))
    assert [found['v'] for found in stack.get('lab', *others)] == [version] * 5
    refused('AVERSION', stack.put, 'lab', doc(others[0], item('Head', None, 'new')), doc(others[1], **{'if': 1}), status=409)
    assert items_of(stack.get('lab', others[0])) == {('Head', None): others[0][1]}


# --- expected versions ---

def test_if_refuses_another_version(stack, name):
    refused('AVERSION', stack.put, 'lab', doc(name, item('Head', None, 1), **{'if': 5}), status=409)
    version = stack.put('lab', doc(name, item('Head', None, 1), **{'if': 0}))
    refused('AVERSION', stack.put, 'lab', doc(name, item('Head', None, 2), **{'if': 0}), status=409)
    refused('AVERSION', stack.put, 'lab', doc(name, item('Head', None, 2), **{'if': version - 1}), status=409)
    assert items_of(stack.get('lab', name)) == {('Head', None): 1}
    assert stack.put('lab', doc(name, item('Head', None, 2), **{'if': version})) > version


# --- deletion ---

def test_a_deleted_document_does_not_exist(stack, name):
    first = stack.put('lab', doc(name, item('Head', None, 1), item('Line', 'a', 1)))
    deleted = stack.put('lab', doc(name, delete=True))
    assert deleted > first
    document = stack.get('lab', name)
    assert document['v'] == document['ct'] == 0 and not document.get('items')
    refused('AVERSION', stack.put, 'lab', doc(name, **{'if': first}), status=409)


def test_a_new_life_has_another_birth(stack, name):
    first = stack.put('lab', doc(name, item('Head', None, 1), item('Line', 'a', 1)))
    deleted = stack.put('lab', doc(name, delete=True))
    again = stack.put('lab', doc(name, item('Line', 'b', 2), **{'if': 0}))
    assert first < deleted < again
    document = stack.get('lab', name)
    assert document['v'] == document['ct'] == again
    assert items_of(document) == {('Line', 'b'): 2}


# --- synchronisation ---

def sync(stack, *copies, ns='lab'):
    answers = stack.op(ns, 'sync', syncs=[copy.request() for copy in copies])['syncs']
    assert len(answers) == len(copies)
    later = [copy for copy, answer in zip(copies, answers) if not copy.apply(answer)]
    if later:  # one document is answered once, whoever holds it
        sync(stack, *later, ns=ns)
    return answers[0] if len(copies) == 1 else answers


def holds_the_source(stack, copy):
    document = stack.get('lab', copy.name)
    return (copy.version, copy.items) == (document['v'], items_of(document) if document['v'] else {})


def test_sync_of_nothing_held_is_a_complete_copy_without_tombstones(stack, name):
    stack.put('lab', doc(name, item('Head', None, 1), item('Line', 'a', 1), item('Line', 'b', 1)))
    stack.put('lab', doc(name, removal('Line', 'a')))
    copy = Copy(*name)
    answer = sync(stack, copy)
    assert answer['dels'] == [] and 'clkeys' not in answer
    assert holds_the_source(stack, copy)


def test_sync_of_an_unchanged_document_is_empty(stack, name):
    stack.put('lab', doc(name, item('Head', None, 1)))
    copy = Copy(*name)
    sync(stack, copy)
    answer = sync(stack, copy)
    assert answer['items'] == answer['dels'] == [] and 'clkeys' not in answer
    assert holds_the_source(stack, copy)


def test_sync_brings_what_changed_since(stack, name):
    stack.put('lab', doc(name, item('Head', None, 1), item('Line', 'a', 1), item('Line', 'b', 1)))
    copy = Copy(*name)
    sync(stack, copy)
    stack.put('lab', doc(name, item('Line', 'a', 2), removal('Line', 'b')))
    stack.put('lab', doc(name, item('Line', 'c', 3)))
    answer = sync(stack, copy)
    assert [(entry['c'], entry['k']) for entry in answer['items']] == [('Line', 'a'), ('Line', 'c')]
    assert [(entry['c'], entry['k']) for entry in answer['dels']] == [('Line', 'b')]
    assert 'clkeys' not in answer
    assert holds_the_source(stack, copy)


def test_sync_of_a_copy_older_than_the_memory_of_removals(stack, name):
    stack.put('lab', doc(name, item('Head', None, 1), *(item('Line', f'k{i}', i) for i in range(4))))
    copy = Copy(*name)
    sync(stack, copy)
    stack.put('lab', doc(name, removal('Line', 'k0'), removal('Line', 'k1')))
    forget_removals(stack, name)
    stack.put('lab', doc(name, item('Line', 'k2', 'new')))
    answer = sync(stack, copy)
    assert sorted(answer['clkeys']) == ['Head', 'Line.k3']
    assert [entry['k'] for entry in answer['items']] == ['k2']
    assert holds_the_source(stack, copy)


def forget_removals(stack, name):
    """As if the removals known had become older than tombstone_s: purged, and `dtime` says so, by a change of the document."""
    [(dtime,)] = stack.psql('lab', '''
        with purged as (delete from item where class = %s and id = %s and content is null returning version)
        update doc set dtime = (select max(version) from purged), version = version + 1 where class = %s and id = %s returning dtime''', (*name, *name))
    wait_until(lambda: stack.get('lab', name)['dt'] == dtime, what='the news of what psql did')


def test_sync_after_another_life_starts_over(stack, name):
    stack.put('lab', doc(name, item('Head', None, 1), item('Line', 'a', 1)))
    copy = Copy(*name)
    sync(stack, copy)
    stack.put('lab', doc(name, delete=True))
    stack.put('lab', doc(name, item('Line', 'b', 2)))
    sync(stack, copy)
    assert copy.items == {('Line', 'b'): 2}
    assert holds_the_source(stack, copy)


def test_sync_of_a_deleted_document(stack, name):
    stack.put('lab', doc(name, item('Head', None, 1)))
    copy = Copy(*name)
    sync(stack, copy)
    stack.put('lab', doc(name, delete=True))
    answer = sync(stack, copy)
    assert answer['v'] == 0
    assert holds_the_source(stack, copy)


def test_syncs_ride_on_an_operation(stack, name):
    stack.put('lab', doc(name, item('Head', None, 1)))
    copy = Copy(*name)
    sync(stack, copy)
    answer = stack.op('lab', 'put', {'docs': [doc(name, item('Line', 'a', 1))]}, syncs=[copy.request()])
    copy.apply(answer['syncs'][0])
    assert copy.version == answer['out']['v']
    assert holds_the_source(stack, copy)


def test_random_history_leaves_every_holder_equal_to_the_source(stack, name):
    """Holders that come by at different times, while items come, change and go and the document dies and is born again."""
    import random
    chance = random.Random(1)
    copies = [Copy(*name) for _ in range(6)]
    for step in range(120):
        orders = [item('Line', f'k{chance.randrange(8)}', step) if chance.random() < 0.6 else removal('Line', f'k{chance.randrange(8)}')
                  for _ in range(chance.randrange(1, 4))]
        orders = list({order['k']: order for order in orders}.values())
        stack.put('lab', doc(name, *orders) if chance.random() > 0.05 else doc(name, delete=True))
        for copy in chance.sample(copies, chance.randrange(0, 3)):
            sync(stack, copy)
            assert holds_the_source(stack, copy)
    sync(stack, *copies)
    assert all(holds_the_source(stack, copy) for copy in copies)


# --- list ---

def test_list_by_pages(stack):
    ids = [f'p{i:02d}' for i in range(12)]
    stack.put('lab', *(doc(('Page', id_), item('Head', None, 1)) for id_ in ids))
    stack.put('lab', doc(('Page', ids[3]), delete=True))
    found, cursor, pages = [], None, 0
    while True:
        out = stack.op('lab', 'list', {'c': 'Page', 'limit': 5, **({'cursor': cursor} if cursor else {})})['out']
        found += [header['id'] for header in out['docs']]
        cursor, pages = out.get('cursor'), pages + 1
        if not cursor:
            break
    assert found == ids[:3] + ids[4:]
    assert pages >= 3
    out = stack.op('lab', 'list', {'c': 'Page', 'prefix': 'p1'})['out']
    assert [header['id'] for header in out['docs']] == ['p10', 'p11']


def test_list_after_a_version(stack):
    version = stack.put('lab', doc(('After', 'a'), item('Head', None, 1)))
    later = stack.put('lab', doc(('After', 'b'), item('Head', None, 1)))
    out = stack.op('lab', 'list', {'c': 'After', 'after': version})['out']
    assert [(header['id'], header['v']) for header in out['docs']] == [('b', later)]


# --- who may ---

READS = (('get', {'docs': [{'c': 'Note', 'id': 'x'}]}), ('sync', None), ('list', {'c': 'Note'}))
WRITE = ('put', {'docs': [{'c': 'Note', 'id': 'access', 'items': [{'c': 'Head', 'j': 1}]}]})


@pytest.mark.parametrize('ns, reads, writes', [('z', False, False), ('demo', True, False), ('lab', True, True)])
def test_access_without_a_key(stack, ns, reads, writes):
    for (operation, param), allowed in [(read, reads) for read in READS] + [(WRITE, writes)]:
        if allowed:
            stack.op(ns, operation, param, syncs=[])
        else:
            refused('SCLOSED', stack.op, ns, operation, param, syncs=[], status=401)


@pytest.mark.parametrize('ns', ['z', 'demo', 'lab'])
def test_the_administrator_may_everything(stack, ns):
    for operation, param in (*READS, WRITE):
        stack.op(ns, operation, param, syncs=[], admin=True)


@pytest.mark.parametrize('ns', ['z', 'demo', 'lab'])
def test_a_wrong_key_opens_nothing(stack, ns):
    for wrong in ('wrong', stack.key + ' ', stack.key[:-1], 'é'):
        refused('SKEY', stack.op, ns, 'get', READS[0][1], admin=wrong, status=403)


def test_namespaces_are_apart(stack, name):
    stack.put('lab', doc(name, item('Head', None, 'lab')))
    assert stack.get('demo', name)['v'] == 0
    stack.put('demo', doc(name, item('Head', None, 'demo')), admin=True)
    assert items_of(stack.get('lab', name)) == {('Head', None): 'lab'}
    assert items_of(stack.get('demo', name)) == {('Head', None): 'demo'}


# --- addresses and bodies ---

@pytest.mark.parametrize('path, code', [('/nowhere/op/get', 'NNAMESPACE'), ('/lab/op/nothing', 'NOPERATION'), ('/lab/other', 'NPATH')])
def test_unknown_addresses(stack, path, code):
    answer = stack.request('POST', path, json={'param': {}})
    assert answer.status_code == 404
    assert answer.headers['Content-Type'].startswith('application/problem+json')
    assert answer.json()['code'] == code


def test_unknown_class_of_names(stack):
    for class_ in ('', 'note', 'Note-', 'N' * 17, '1Note', 'Nöte'):
        refused('AARG', stack.get, 'lab', (class_, 'x'), status=400)


def test_arguments_in_query_form_multipart_and_json(stack, name):
    stack.put('lab', doc(name, item('Head', None, 'é')))
    param = json.dumps({'docs': [{'c': name[0], 'id': name[1]}]})
    answers = [
        stack.request('GET', '/lab/op/get', query={'param': param}),
        stack.request('POST', '/lab/op/get', form={'param': param}),
        stack.request('POST', '/lab/op/get', json={'param': json.loads(param)}),
        stack.request('POST', '/lab/op/get', files={'param': (None, param)}),
        stack.request('POST', '/lab/op/get', query={'param': param}),
    ]
    assert [answer.status_code for answer in answers] == [200] * 5, [answer.text for answer in answers]
    assert len({answer.text for answer in answers}) == 1
    assert items_of(answers[0].json()['out']['docs'][0]) == {('Head', None): 'é'}
    assert all(answer.headers['Content-Type'].startswith('application/json') for answer in answers)


@pytest.mark.parametrize('body, code', [
    ('{"param":{"docs":[', 'AJSON'), ('', 'AARG'), ('[]', 'AARG'), ('{"param":[]}', 'AARG'), ('{"param":{"docs":1}}', 'AARG'),
    ('{"param":{"docs":[{"c":"Note"}]}}', 'AARG'), ('{"param":{"docs":[]},"syncs":{}}', 'AARG'),
    ('{"param":' + '[' * 100 + ']' * 100 + '}', 'ALIMIT'), ('{"param":{"docs":[{"c":"Note","id":"' + 'x' * 256 + '"}]}}', 'ALIMIT')])
def test_malformed_bodies_are_refused(stack, body, code):
    answer = stack.request('POST', '/lab/op/get', form=body, headers={'Content-Type': 'application/json'})
    assert (answer.status_code, answer.json()['code']) == (400, code)


def test_text_that_is_not_utf8_is_refused(stack):
    body = b'{"param":{"docs":[{"c":"Note","id":"\xff"}]}}'
    answer = stack.request('POST', '/lab/op/get', form=body, headers={'Content-Type': 'application/json'})
    assert (answer.status_code, answer.json()['code']) == (400, 'AUTF8')


def test_without_a_build_none_is_compared(stack):
    """Where the setting `build` is empty, there is nothing to compare with; test_nginx_faults.py sets it."""
    answer = stack.request('POST', '/lab/op/sync', json={'syncs': []}, headers={'X-Stampd-Build': 'another'})
    assert answer.status_code == 200


def test_a_problem_says_what_where_and_why(stack):
    answer = stack.request('POST', '/lab/op/nothing', json={})
    assert answer.headers['Content-Type'].startswith('application/problem+json')
    problem = answer.json()
    assert (problem['status'], problem['code'], problem['major'], problem['phase']) == (404, 'NOPERATION', 1, 0)
    assert problem['args'] == ['nothing'] and problem['title'] and problem['message']


def test_a_problem_is_text_for_a_browser(stack):
    answer = stack.request('GET', '/lab/op/nothing', headers={'Accept': 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8'})
    assert answer.status_code == 404
    assert answer.headers['Content-Type'] == 'text/plain; charset=utf-8'
    assert answer.text.startswith('NOPERATION: ')


@pytest.mark.parametrize('method, status, code', [('PUT', 405, 'AMETHOD'), ('DELETE', 405, 'AMETHOD')])
def test_other_methods(stack, method, status, code):
    answer = stack.request(method, '/lab/op/get')
    assert (answer.status_code, answer.json()['code']) == (status, code)


def test_other_kinds_of_body(stack):
    answer = stack.request('POST', '/lab/op/get', form='x', headers={'Content-Type': 'text/plain'})
    assert (answer.status_code, answer.json()['code']) == (415, 'ATYPE')


def test_ping(stack):
    before = now_stamp()
    answer = stack.ping().json()
    assert before <= answer['t'] <= now_stamp()
    assert answer['b'] == ''
    assert stack.ping('lab').json()['db'] == 'ok'


def test_32_documents_at_tolerance_0_and_no_more(stack):
    names = [('Note', f'm{i}') for i in range(33)]
    assert len(stack.get('lab', *names[:32])) == 32
    refused('ALIMIT', stack.get, 'lab', *names, status=400)

"""Documents and their files in one request: a multipart form whose files the items P of `put` name."""
import hashlib
import json
import os

import pytest

from stack import PATIENCE_S, Problem, refused, wait_until

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'shut': 'closed', 'demo': 'read', 'lab': 'open', 'team': 'rules'},
         'settings': {'keep_interval_s': 1, 'limit_blob_bytes': 2 << 20, 'limit_body_bytes': 4 << 20, 'limit_anonymous_body_bytes': 4 << 20}}
PNG = b'\x89PNG\r\n\x1a\n' + bytes(range(256)) * 8


def form(stack, docs, files, ns='lab', admin=False, operation='put', **more):
    """`files`: triples of name, content and type, or the parts as requests takes them."""
    parts = [(name, (f'../../{name}', content, type_)) for name, content, type_ in files]
    headers = {'Authorization': f'Bearer {stack.key}'} if admin else {}
    param = docs if operation != 'put' else {'docs': docs}
    return stack.http.post(f'{stack.url}/{ns}/op/{operation}', data={'param': json.dumps(param)}, files=parts, headers={**headers, **more},
                           timeout=PATIENCE_S)


def sent(*args, **more):
    answer = form(*args, **more)
    if answer.status_code != 200:
        raise Problem(answer)
    return answer.json()['out']


def attached(key, file, **more):
    return {'c': 'P', 'k': key, 'file': file, **more}


def note(ident, *items):
    return {'c': 'Note', 'id': ident, 'items': list(items)}


def stored(stack):
    return sorted(str(path) for path in (stack.path / 'files').rglob('*') if path.is_file())


def fetch(stack, path, ns='lab'):
    return stack.http.get(f'{stack.url}/{ns}/doc/{path}', timeout=PATIENCE_S)


def test_documents_and_files_are_one_commit(stack):
    large, before = os.urandom(1500 * 1024), stored(stack)
    out = sent(stack, [note('trip', {'c': 'Text', 'j': 'Rome'}, attached('photo', 'one'), attached('film', 'two', mime='video/mp4')),
                       note('copy', attached('photo', 'one'))],
               [('one', PNG, 'image/png'), ('two', large, 'application/octet-stream')])
    assert len(out['docs']) == 2 and len({one['v'] for one in out['docs']}) == 1
    items = {item.get('k', item['c']): item['j'] for item in stack.get('lab', ('Note', 'trip'))['items']}
    assert items == {'Text': 'Rome', 'photo': {'mime': 'image/png', 'size': len(PNG), 'sha': hashlib.sha256(PNG).hexdigest()},
                     'film': {'mime': 'video/mp4', 'size': len(large), 'sha': hashlib.sha256(large).hexdigest()}}
    for path, content in (('Note/trip/file/photo', PNG), ('Note/copy/file/photo', PNG), ('Note/trip/file/film', large)):
        answer = fetch(stack, path)
        assert answer.status_code == 200 and answer.content == content
    (volume,), = stack.psql('lab', "select v2 from doc where class = 'Note' and id = 'trip'")
    assert volume == len(PNG) + len(large)
    assert len(stored(stack)) == len(before) + 2


def test_an_empty_file_and_a_strange_type(stack):
    sent(stack, [note('empty', attached('e', 'e'), attached('s', 's'))], [('e', b'', 'text/plain'), ('s', b'x', 'strange')])
    items = {item['k']: item['j'] for item in stack.get('lab', ('Note', 'empty'))['items']}
    assert (items['e']['size'], items['e']['mime']) == (0, 'text/plain') and items['s']['mime'] == 'application/octet-stream'
    assert fetch(stack, 'Note/empty/file/e').content == b''


def test_a_repeated_request_is_answered_once(stack):
    docs, key = [note('again', attached('a', 'a'))], {'Idempotency-Key': 'again-1'}
    first = form(stack, docs, [('a', b'same', 'text/plain')], **key)
    again = form(stack, docs, [('a', b'same', 'text/plain')], **key)
    assert first.status_code == 200 and again.headers['Idempotency-Replayed'] == 'true'
    assert again.json()['out'] == first.json()['out']
    assert form(stack, docs, [('a', b'other', 'text/plain')], **key).status_code in (409, 422)
    assert fetch(stack, 'Note/again/file/a').content == b'same'


WRONG = {
    'no such file': ([note('w', attached('a', 'a'), attached('b', 'b'))], [('a', b'1', 'text/plain')], 'AARG'),
    'two of a name': ([note('w', attached('a', 'a'))], [('a', b'1', 'text/plain'), ('a', b'2', 'text/plain')], 'AARG'),
    'with a digest': ([note('w', attached('a', 'a', sha='0' * 64))], [('a', b'1', 'text/plain')], 'AARG'),
    'with a source': ([note('w', attached('a', 'a', **{'from': {'c': 'Note', 'id': 'trip', 'k': 'photo'}}))], [('a', b'1', 'text/plain')], 'AARG'),
    'with a content': ([note('w', attached('a', 'a', j=1))], [('a', b'1', 'text/plain')], 'AARG'),
    'with a removal': ([note('w', attached('a', 'a', **{'del': True}))], [('a', b'1', 'text/plain')], 'AARG'),
    'of another class': ([note('w', {'c': 'Text', 'k': 'a', 'file': 'a'})], [('a', b'1', 'text/plain')], 'AMEMBER'),
    'without a key': ([note('w', {'c': 'P', 'file': 'a'})], [('a', b'1', 'text/plain')], 'AARG'),
    'a number': ([note('w', {'c': 'P', 'k': 'a', 'file': 1})], [('a', b'1', 'text/plain')], 'AARG'),
    'too large': ([note('w', attached('a', 'a'))], [('a', bytes((2 << 20) + 1), 'text/plain')], 'ALIMIT'),
    'of another version': ([{**note('w', attached('a', 'a')), 'if': 261101000000000}], [('a', b'of another version', 'text/plain')], 'AVERSION'),
}


@pytest.mark.parametrize('what', WRONG)
def test_what_is_wrong_is_refused_and_nothing_is_stored(stack, what):
    docs, files, code = WRONG[what]
    before = stored(stack)
    answer = form(stack, docs, files)
    assert answer.json()['code'] in (code, 'AARG'), answer.text
    assert code == 'AMEMBER' or answer.json()['code'] == code, answer.text
    assert stored(stack) == before and not stack.get('lab', ('Note', 'w')).get('items')


def test_a_file_that_no_item_names_is_not_stored(stack):
    before = stored(stack)
    sent(stack, [note('some', {'c': 'Text', 'j': 1})], [('a', os.urandom(100), 'text/plain')])
    assert stored(stack) == before
    sent(stack, [note('some', attached('b', 'b'))], [('a', os.urandom(100), 'text/plain'), ('b', os.urandom(100), 'text/plain')])
    assert len(stored(stack)) == len(before) + 1


def test_without_a_form_there_are_no_files(stack):
    assert refused('AARG', stack.put, 'lab', note('w', attached('a', 'a'))).body['at'].endswith('/file')
    answer = stack.request('PUT', '/lab/doc/Note/w', json={'items': [attached('a', 'a')]})
    assert answer.json()['code'] == 'AARG', answer.text


def test_a_task_keeps_no_files(stack):
    before = stored(stack)
    answer = form(stack, {'op': 'put', 'param': {'docs': [note('w', attached('a', 'a'))]}}, [('a', b'1', 'text/plain')], operation='task')
    assert answer.json()['code'] == 'AARG' and 'A task keeps no files' in answer.text, answer.text
    assert stored(stack) == before


@pytest.mark.parametrize('ns, code', [('shut', 'SCLOSED'), ('demo', 'SCLOSED'), ('team', 'SRULE'), ('z', 'SKEY')])
def test_strangers_store_nothing(stack, ns, code):
    before = stored(stack)
    answer = form(stack, [note('stranger', attached('a', 'a'))], [('a', os.urandom(100), 'text/plain')], ns=ns)
    assert answer.status_code in (401, 403) and answer.json()['code'] in (code, 'SCLOSED'), answer.text
    assert stored(stack) == before


def test_the_quota_of_bytes_holds(stack):
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'quotas': {'namespace': {'bytes': 1}}}}, admin=True)
    try:
        def is_refused():
            answer = form(stack, [note(os.urandom(8).hex(), attached('a', 'a'))], [('a', os.urandom(1 << 10), 'text/plain')])
            return answer.status_code == 400 and answer.json()['code'] == 'ALIMIT' and answer.json()['args'][0] == 'quotas.namespace.bytes'
        wait_until(is_refused, what='the measurement by the keeper')
        before = stored(stack)
        assert is_refused() and stored(stack) == before
    finally:
        stack.op('z', 'ns', {'set': {'ns': 'lab', 'quotas': {}}}, admin=True)


@pytest.mark.parametrize('method', ['PUT', 'PATCH'])
def test_a_resource_takes_a_form_too(stack, method):
    parts = [('a', ('a.txt', method.encode(), 'text/plain'))]
    stack.put('lab', note(f'form-{method}'))
    items = json.dumps([{'c': 'Text', 'j': method}, attached('a', 'a')])
    answer = stack.http.request(method, f'{stack.url}/lab/doc/Note/form-{method}', data={'items': items}, files=parts, timeout=PATIENCE_S)
    assert answer.status_code in (200, 201), answer.text
    assert fetch(stack, f'Note/form-{method}/file/a').content == method.encode()

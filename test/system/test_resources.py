"""Documents as resources: /{ns}/doc/{Class}/{id}, through nginx, with their conditions."""
import itertools
import json
import threading
from urllib.parse import quote

import pytest

from holder import items_of
from stack import wait_until

STACK = {'workers': 3, 'settings': {'build': 'of-today'}}
numbers = itertools.count(1)


@pytest.fixture
def name():
    return f'r{next(numbers)}'


def item(class_, key=None, content=None):
    return {'c': class_, 'k': key, 'j': content} if key is not None else {'c': class_, 'j': content}


class Resource:
    """One document, asked for in all the ways."""

    def __init__(self, stack, id_, ns='lab', class_='Note'):
        self.stack, self.path = stack, f'/{ns}/doc/{class_}/{quote(id_, safe="")}'
        self.name = (class_, id_)

    def ask(self, method, status, items=None, match=None, none_match=None, query=None, headers=None, **more):
        headers = dict(headers or {})
        if match is not None:
            headers['If-Match'] = match
        if none_match is not None:
            headers['If-None-Match'] = none_match
        if items is not None:
            more['json'] = {'items': items}
        answer = self.stack.request(method, self.path, query=query, headers=headers, **more)
        assert answer.status_code == status, (method, self.path, headers, answer.status_code, answer.text)
        assert answer.headers['X-Request-Id']
        return answer

    def refuse(self, method, status, code, *arguments, **more):
        answer = self.ask(method, status, *arguments, **more)
        assert answer.headers['Content-Type'] == 'application/problem+json'
        assert 'ETag' not in answer.headers
        problem = answer.json()
        assert (problem['code'], problem['status']) == (code, status)
        return problem

    def read(self):
        return self.ask('GET', 200).json()


@pytest.fixture
def note(stack, name):
    return Resource(stack, name)


def tag(version):
    return f'"{version}"'


# --- the four of them ---

def test_a_document_is_created_read_replaced_changed_and_deleted(stack, note):
    note.refuse('GET', 404, 'NDOCUMENT')
    created = note.ask('PUT', 201, [item('Head', None, 1), item('Line', 'a', [1.10]), {'c': 'Raw', 's': 'text'}])
    first = created.json()['v']
    assert created.json() == {'v': first}
    assert created.headers['ETag'] == tag(first) and created.headers['Location'] == note.path
    answer = note.ask('GET', 200)
    assert answer.headers['ETag'] == tag(first)
    assert answer.headers['Cache-Control'] == 'private, no-cache'
    assert answer.json() == stack.get('lab', note.name), 'the same as the operation gives'
    assert '"j":[1.1]' in answer.text and answer.json()['ct'] == first

    replaced = note.ask('PUT', 200, [item('Line', 'a', [1.10]), item('Line', 'b', 2)])
    second = replaced.json()['v']
    assert second > first and replaced.headers['ETag'] == tag(second) and 'Location' not in replaced.headers
    document = note.read()
    assert items_of(document) == {('Line', 'a'): [1.1], ('Line', 'b'): 2}
    assert {entry['k']: entry['v'] for entry in document['items']} == {'a': first, 'b': second}, 'what stays is no change'
    assert document['ct'] == first

    changed = note.ask('PATCH', 200, [{'c': 'Line', 'k': 'a', 'del': True}, item('Line', 'c', 3)])
    third = changed.json()['v']
    assert changed.headers['ETag'] == tag(third)
    assert items_of(note.read()) == {('Line', 'b'): 2, ('Line', 'c'): 3}

    deleted = note.ask('DELETE', 200)
    assert deleted.json()['v'] > third and 'ETag' not in deleted.headers
    note.refuse('GET', 404, 'NDOCUMENT')
    assert stack.get('lab', note.name)['v'] == 0
    assert note.ask('PUT', 201, []).json()['v'] > deleted.json()['v']
    assert note.read()['items'] == []


def test_what_was_read_can_be_put_back(note):
    note.ask('PUT', 201, [item('Head', None, {'a': 1}), {'c': 'Raw', 'k': 'x', 's': 'é'}])
    document = note.ask('GET', 200).json()
    again = note.ask('PUT', 200, json=document)
    assert again.json()['v'] == document['v'] and again.headers['ETag'] == tag(document['v'])
    assert note.read() == document


def test_head_is_get_without_its_body(note):
    note.ask('HEAD', 404)
    note.ask('PUT', 201, [item('Head', None, 'x' * 5000)])
    whole, head = note.ask('GET', 200), note.ask('HEAD', 200)
    assert head.content == b'' and head.headers['ETag'] == whole.headers['ETag']
    assert int(head.headers['Content-Length']) == len(whole.content)


def test_patch_and_delete_create_nothing(stack, note):
    problem = note.refuse('PATCH', 404, 'NDOCUMENT', [item('Head', None, 1)])
    assert problem['args'] == list(note.name)
    note.refuse('DELETE', 404, 'NDOCUMENT')
    assert stack.get('lab', note.name)['v'] == 0


def test_an_age_may_be_tolerated(note):
    version = note.ask('PUT', 201, [item('Head', None, 1)]).json()['v']
    assert note.ask('GET', 200, query={'age': 60}).headers['ETag'] == tag(version)
    note.refuse('GET', 400, 'AARG', query={'age': 'old'})


@pytest.mark.parametrize('id_', ['a/b?c=d&e#f', '%00 "x"', 'é\u4e2d', ' ', '{}\\', '\n\r', 'x' * 255, '...'])
def test_ids_may_be_any_text(stack, id_):
    resource = Resource(stack, id_)
    answer = resource.ask('PUT', 201, [item('Head', None, id_)])
    assert stack.request('GET', answer.headers['Location']).json()['id'] == id_
    assert stack.get('lab', ('Note', id_))['v'] == answer.json()['v']
    resource.ask('DELETE', 200)


# --- conditions ---

def test_what_is_known_is_not_sent_again(note):
    first = note.ask('PUT', 201, [item('Head', None, 'x' * 3000)]).json()['v']
    for method in ('GET', 'HEAD'):
        for known in (tag(first), f'W/{tag(first)}', '*', f'"x", {tag(7)},{tag(first)}'):
            answer = note.ask(method, 304, none_match=known)
            assert answer.content == b'' and answer.headers['ETag'] == tag(first)
        note.ask(method, 200, none_match=tag(first - 1))
    second = note.ask('PUT', 200, [item('Head', None, 'y')]).json()['v']
    assert note.ask('GET', 200, none_match=tag(first)).headers['ETag'] == tag(second)


# resource_is_at compares the versions.
def test_if_match_guards_against_lost_updates(note):
    first = note.ask('PUT', 201, [item('Head', None, 1)]).json()['v']
    second = note.ask('PUT', 200, [item('Head', None, 2)], match=f'"other", {tag(first)}').json()['v']
    for method, items in (('PUT', [item('Head', None, 3)]), ('PATCH', [item('Head', None, 3)]), ('DELETE', None)):
        for wrong in (tag(first), f'W/{tag(second)}', '"0"', f'"{second}x"'):
            problem = note.refuse(method, 412, 'AVERSION', items, match=wrong)
            assert problem['args'] == [*note.name, str(second)]
    note.refuse('GET', 412, 'AVERSION', match=tag(first))
    note.ask('GET', 200, match=tag(second))
    third = note.ask('PATCH', 200, [item('Head', None, 3)], match=tag(second)).json()['v']
    note.ask('DELETE', 200, match=tag(third))
    note.refuse('DELETE', 404, 'NDOCUMENT', match=tag(third))


def test_put_may_only_create_or_only_replace(note):
    note.refuse('PUT', 412, 'AVERSION', [], match='*')
    note.refuse('PUT', 412, 'AVERSION', [], match=tag(261121103000123))
    version = note.ask('PUT', 201, [], none_match='*').json()['v']
    problem = note.refuse('PUT', 412, 'AVERSION', [item('Head', None, 1)], none_match='*')
    assert problem['args'] == [*note.name, str(version)]
    note.refuse('PUT', 412, 'AVERSION', [], none_match=tag(version))
    note.ask('PUT', 200, [item('Head', None, 1)], match='*')
    note.ask('PUT', 200, [item('Head', None, 2)], none_match=tag(version))


def test_malformed_conditions_are_refused(note):
    note.ask('PUT', 201, [])
    for wrong in ('261121103000123', '"1', '*,"1"', ','):
        assert note.refuse('GET', 400, 'AARG', none_match=wrong)['args'] == ['If-None-Match']
        assert note.refuse('PUT', 400, 'AARG', [], match=wrong)['args'] == ['If-Match']


def test_of_many_who_saw_one_version_one_wins(stack, note):
    version = note.ask('PUT', 201, [item('Count', None, 0)]).json()['v']
    answers = []

    def write(number):
        answers.append(stack.request('PUT', note.path, json={'items': [item('Count', None, number)]},
                                     headers={'If-Match': tag(version)}).status_code)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(1, 7)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert answers.count(200) == 1 and set(answers) <= {200, 412, 409}


def test_an_etag_survives_compression_of_other_answers(stack, note):
    note.ask('PUT', 201, [item('Head', None, 'x' * 20000)])
    answer = note.ask('GET', 200, headers={'Accept-Encoding': 'gzip'})
    assert not answer.headers['ETag'].startswith('W/')
    note.ask('PATCH', 200, [item('Head', None, 'y')], match=answer.headers['ETag'])


def test_a_request_that_is_sent_again_is_not_done_again(note):
    key = {'Idempotency-Key': f'key-of-{note.name[1]}'}
    created = note.ask('PUT', 201, [item('Head', None, 1)], none_match='*', headers=key)
    version = created.json()['v']
    note.ask('PATCH', 200, [item('Head', None, 2)])
    again = note.ask('PUT', 201, [item('Head', None, 1)], none_match='*', headers=key)
    assert again.headers['Idempotency-Replayed'] == 'true'
    assert again.json()['v'] == version and again.headers['ETag'] == tag(version)
    assert items_of(note.read()) == {('Head', None): 2}
    note.refuse('PUT', 422, 'AKEYREUSED', [item('Head', None, 3)], headers=key)
    note.refuse('DELETE', 422, 'AKEYREUSED', headers=key)


# --- what is refused ---

def test_bodies_are_checked(stack, note):
    note.ask('PUT', 201, [item('Head', None, 1)])
    for method in ('PUT', 'PATCH'):
        assert note.refuse(method, 400, 'AARG', json={})['args'] == ['items']
        assert note.refuse(method, 400, 'AARG', json={'items': {}})['args'] == ['items']
        assert note.refuse(method, 400, 'AARG', [7])['args'] == ['items']
        assert note.refuse(method, 400, 'AARG', [{'c': 'Head'}])['args'] == ['items']
        assert note.refuse(method, 400, 'AARG', [{'c': 'head', 'j': 1}])['args'] == ['c']
        note.refuse(method, 400, 'AJSON', form='{"items":[', headers={'Content-Type': 'application/json'})
        note.refuse(method, 415, 'ATYPE', form='x', headers={'Content-Type': 'text/plain'})
        assert note.refuse(method, 400, 'ALIMIT', [item('Head', None, 'x' * 1100000)])['args'][0] == 'limit_content_bytes'
    assert note.refuse('PUT', 400, 'AARG', [{'c': 'Head', 'del': True}])['args'] == ['del']
    assert items_of(note.read()) == {('Head', None): 1}


def test_forms_serve_as_well(note):
    note.ask('PUT', 201, form={'items': json.dumps([item('Head', None, 'form')])})
    assert items_of(note.read()) == {('Head', None): 'form'}


def test_addresses_are_checked(stack):
    for path, code, status in (('/lab/doc/note/x', 'AARG', 400), ('/lab/doc/Note/' + 'x' * 256, 'ALIMIT', 400),
                               ('/lab/doc/Note', 'NPATH', 404), ('/lab/doc/Note/', 'NPATH', 404),
                               ('/lab/doc/Note/a/b', 'NPATH', 404), ('/lab/doc/Note/%2e', 'NPATH', 404),
                               ('/none/doc/Note/a', 'NNAMESPACE', 404), ('/lab/op/GET', 'NOPERATION', 404)):
        answer = stack.request('GET', path)
        assert (answer.json()['code'], answer.status_code) == (code, status), path


def test_methods_are_told(stack, note):
    answer = note.ask('POST', 405, [])
    assert answer.json()['code'] == 'AMETHOD'
    assert answer.headers['Allow'] == 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS'
    answer = note.ask('OPTIONS', 204)
    assert answer.headers['Allow'] == 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS'
    assert answer.headers['Accept-Patch'] == 'application/json' and answer.content == b''
    assert 'Access-Control-Allow-Origin' not in answer.headers
    assert stack.request('OPTIONS', '/lab/op/get').headers['Allow'] == 'GET, HEAD, POST, OPTIONS'


def test_rights_are_those_of_the_operations(stack, name):
    reader = Resource(stack, name, ns='demo')
    reader.refuse('GET', 404, 'NDOCUMENT')
    assert reader.refuse('PUT', 401, 'SCLOSED', [])['args'] == ['PUT']
    reader.refuse('DELETE', 401, 'SCLOSED')
    reader.refuse('PUT', 403, 'SKEY', json={'items': []}, admin='wrong')
    reader.ask('PUT', 201, json={'items': []}, admin=True)
    reader.ask('GET', 200)
    reader.ask('DELETE', 200, admin=True)
    closed = Resource(stack, name, ns='z')
    closed.refuse('GET', 401, 'SCLOSED')


def test_an_older_client_is_told(note):
    note.refuse('GET', 400, 'DBUILD', headers={'X-Stampd-Build': 'other'})


def test_a_database_that_is_away_is_503(stack, note):
    version = note.ask('PUT', 201, [item('Head', None, 1)]).json()['v']
    stack.stop_postgres()
    try:
        answer = note.ask('PUT', 503, [item('Head', None, 2)])
        assert answer.json()['code'] == 'XAWAY' and answer.headers['Retry-After']
    finally:
        stack.step('postgres', 'start')
    wait_until(lambda: stack.request('GET', note.path).status_code == 200, what='the database')
    assert note.read()['v'] == version

"""The versions that answers give: sent back as a condition they hold while nobody else writes."""
import itertools
import random
import uuid

import pytest

from kit import Kit
from schema import Schemas
from stack import Problem

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'settings': {'limit_kept_bytes': 4096}}
RELEASE = {'Person': {'release': 2, 'open': True, 'items': {'Main': {'singleton': True, 'fields': {'team': 'string'}}},
                      'mutations': [{'to': 2, 'item': 'Main', 'rename': {'group': 'team'}}]}}
numbers = itertools.count(1)


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = str(kit.build_example())
    yield kit


@pytest.fixture(scope='module')
def lab(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', RELEASE)
    return stack


def put(stack, docs, key=None):
    answer = stack.request('POST', '/lab/op/put', json={'param': {'docs': docs}}, headers={'Idempotency-Key': key} if key else {})
    assert answer.status_code == 200, answer.text
    return answer.json()['out'], answer.headers.get('Idempotency-Replayed') == 'true'


def content(rng):
    return [{'c': 'Main', 'j': {rng.choice(['team', 'group']): rng.choice('ab')}}]  # the older form may be no change at all


def order(rng, id_):
    document = {'c': 'Person', 'id': id_}
    how = rng.random()
    if how < 0.25:
        document['delete'] = True
    if how > 0.15:
        document['items'] = content(rng)
    return document


def test_any_version_that_put_returns_is_a_condition_that_holds(lab):
    rng = random.Random(4711)
    ids = [f'v{number}' for number in range(7)]
    unchanged = deleted = both = 0
    for _ in range(150):
        docs = [order(rng, rng.choice(ids)) for _ in range(rng.randint(1, 5))]
        key = str(uuid.uuid4()) if rng.random() < 0.5 else None
        out, _ = put(lab, docs, key)
        if key:
            again, is_replayed = put(lab, docs, key)
            assert is_replayed and again == out
        assert [(doc['c'], doc['id']) for doc in out['docs']] == [(doc['c'], doc['id']) for doc in docs]
        there = {doc['id']: doc['v'] for doc in lab.get('lab', *[('Person', id_) for id_ in ids])}
        assert {doc['id']: doc['v'] for doc in out['docs']}.items() <= there.items()
        put(lab, [{'c': doc['c'], 'id': doc['id'], 'if': doc['v'], 'items': [{'c': 'Note', 'j': next(numbers)}]} for doc in out['docs']])
        versions = {doc['v'] for doc in out['docs']}
        deleted += 0 in versions
        unchanged += any(0 < version < out['v'] for version in versions)
        both += len(versions - {0}) > 1
    assert unchanged > 10 and deleted > 10 and both > 10, (unchanged, deleted, both)


def test_what_an_old_client_wrote_again_is_unchanged(lab):
    first, _ = put(lab, [{'c': 'Person', 'id': 'same', 'items': [{'c': 'Main', 'j': {'group': 'g'}}]}])  # kept as team
    docs = [{'c': 'Person', 'id': 'same', 'items': [{'c': 'Main', 'j': {'group': 'g'}}]},
            {'c': 'Person', 'id': 'other', 'items': [{'c': 'Main', 'j': {'group': 'g'}}]}]
    for key in (None, 'old-client', 'old-client'):
        out, _ = put(lab, docs, key)
        assert out['docs'][0]['v'] == first['v'] < out['docs'][1]['v']
    put(lab, [{'c': 'Person', 'id': 'same', 'if': first['v'], 'items': []}])


@pytest.mark.parametrize('method', ['PUT', 'PATCH'])
def test_the_tag_of_a_resource_is_a_condition_that_holds(lab, method):
    path, tag = f'/lab/doc/Person/resource-{method}', None
    lab.request('PUT', path, json={'items': []})
    for team in ('group', 'team', 'group', 'group'):
        for key in (None, f'{method}-{next(numbers)}'):
            headers = {name: value for name, value in (('If-Match', tag), ('Idempotency-Key', key)) if value}
            answers = [lab.request(method, path, json={'items': [{'c': 'Main', 'j': {team: 'x'}}]}, headers=headers) for _ in range(1 + bool(key))]
            assert [answer.status_code for answer in answers] == [200] * len(answers), answers[-1].text
            tag = answers[-1].headers['ETag']
            assert {answer.headers['ETag'] for answer in answers} == {tag} == {f'"{answers[-1].json()["v"]}"'}
            assert lab.request('GET', path).headers['ETag'] == tag


def test_a_module_returns_the_version_of_what_it_left_unchanged(lab):
    def enrol(**more):
        answer = lab.request('POST', '/lab/op/Enrol', json={'param': {'asso': 'chess', 'member': '7', 'name': 'Ann', 'since': 2019}}, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()['out']['v']

    lab.op('lab', 'FoundAsso', {'asso': 'chess', 'title': 'Chess'}, admin=True)
    version = enrol()
    assert enrol() == version > 0
    for _ in range(2):
        assert enrol(headers={'Idempotency-Key': 'enrol'}) == version
    lab.put('lab', {'c': 'Asso', 'id': 'chess', 'if': version, 'items': [{'c': 'Adh', 'k': '8', 'j': {}}]})
    with pytest.raises(Problem, match='AVERSION'):
        lab.put('lab', {'c': 'Asso', 'id': 'chess', 'if': version, 'items': []})

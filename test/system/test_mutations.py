"""Releases of classes: contents are mutated as they are read, and rewritten while others write."""
import json
import random
import signal
import subprocess

import pytest

from halting import halted
from schema import Schemas, check_side
from stack import Problem, process_state, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3}

OLD = {'Person': {'items': {'Main': {'singleton': True, 'fields': {'group': 'string'}}, 'Adr': {}, 'Note': {'raw': True}}}}
NEW = {'Person': {
    'release': 3, 'items': {'Main': {'singleton': True, 'fields': {'team': 'string', 'kept': 'int'}}, 'Adr': {}, 'Note': {'raw': True}},
    'mutations': [
        {'to': 2, 'item': 'Main', 'rename': {'group': 'supervisor', 'with"quote': 'plain'}, 'default': {'skills': [1.50, {'a': None}], 'kept': 7}, 'drop': ['fax']},
        {'to': 2, 'item': 'Adr', 'drop': ['zip']},
        {'to': 3, 'item': 'Main', 'rename': {'supervisor': 'team'}, 'drop': ['é']}]}}


def mutate(item_class, content):
    """What the rules above say."""
    if not isinstance(content, dict):
        return content
    members = list(content.items())

    def has(name):
        return any(member == name for member, _ in members)

    for rule in NEW['Person']['mutations']:
        if rule['item'] != item_class:
            continue
        for old, new in rule.get('rename', {}).items():
            members = [(new, value) if name == old and not has(new) else (name, value) for name, value in members if name != old or not has(new)]
        members += [(name, value) for name, value in rule.get('default', {}).items() if not has(name)]
        members = [(name, value) for name, value in members if name not in rule.get('drop', [])]
    return dict(members)


def some_content(chance):
    names = ['group', 'supervisor', 'team', 'with"quote', 'plain', 'skills', 'kept', 'fax', 'é', 'zip', 'other', '']
    made = {name: chance.choice([1, 'x', None, [], {'group': 1}]) for name in chance.sample(names, chance.randint(0, 6))}
    return made if chance.random() < 0.9 else chance.choice([5, 'text', [1], True])


def contents(document):
    return {(item['c'], item.get('k', '')): item.get('j', item.get('s')) for item in document['items']}


@pytest.fixture
def schemas(stack, home):
    return Schemas(stack, home)


def read_all(stack, ids):
    return {id: contents(document) for first in range(0, len(ids), 32)
            for id, document in zip(ids[first:first + 32], stack.get('lab', *(('Person', id) for id in [*ids, 'none'][first:first + 32])))}


def test_contents_are_of_the_newest_release(stack, schemas):
    chance = random.Random(9)
    schemas.apply('lab', OLD)
    ids, wanted = [f'p{number:03}' for number in range(60)], {}
    for id in ids:
        items = {('Main', ''): some_content(chance), ('Adr', 'a'): some_content(chance), ('Note', 'n'): '{"group": "raw"}'}
        stack.put('lab', {'c': 'Person', 'id': id, 'items': [
            {'c': c, **({'k': k} if k else {}), 's' if c == 'Note' else 'j': value} for (c, k), value in items.items()]})
        wanted[id] = {(c, k): value if c == 'Note' else mutate(c, value) for (c, k), value in items.items()}
    for _ in range(6):
        read_all(stack, ids)  # all workers hold copies
    before = {document['id']: document for document in stack.op('lab', 'list', {'c': 'Person'})['out']['docs']}

    schemas.set('lab', NEW)
    with halted(stack, 'lab', 'schema_fill', "new.iclass = '~' and new.after >= 'p030'") as halt:
        apply = subprocess.Popen(schemas.command('apply', 'lab', '--batch', 1), stdout=subprocess.PIPE, text=True, bufsize=1)
        halt.wait()
        apply.send_signal(signal.SIGSTOP)
        wait_until(lambda: process_state(apply.pid)[0] == 'T', what='it to stand still')
        try:
            halt.release()
            wait_until(lambda: read_all(stack, ids) == wanted, what='every content in its newest release')
            for _ in range(12):
                assert read_all(stack, ids) == wanted
            assert 'building' in schemas.run('show', 'lab')
            with pytest.raises(Problem) as refused:
                stack.op('lab', 'find', {'c': 'Person', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': 'x'}]})
            assert refused.value.code == 'OBUILDING'
            wanted['p059'][('Adr', 'a')] = {'new': 1}
            stack.put('lab', {'c': 'Person', 'id': 'p059', 'items': [{'c': 'Adr', 'k': 'a', 'j': {'new': 1}}]})
        finally:
            apply.send_signal(signal.SIGCONT)
        rest = apply.stdout.read()
        assert apply.wait() == 0, rest

    assert read_all(stack, ids) == wanted
    stored = {}
    for id, c, k, raw, content in stack.psql('lab', "select id, iclass, key, raw, content from item where class = 'Person'"):
        stored.setdefault(id, {})[(c, k)] = content if raw else json.loads(content)
    assert stored == wanted
    assert check_side(stack, 'lab', 'Person', 'Main', NEW['Person']['items']['Main']['fields']) == 60
    found = stack.op('lab', 'find', {'c': 'Person', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': 'x'}]})['out']['ids']
    assert found == [id for id in ids if isinstance(wanted[id][('Main', '')], dict) and wanted[id][('Main', '')].get('team') == 'x'] and found

    # Who held a copy is told of what was rewritten.
    held = [{name: before[id][name] for name in ('c', 'id', 'v', 'ct', 'dt')} for id in ids]
    for id, answer in zip(ids, stack.op('lab', 'sync', {}, syncs=held)['syncs']):
        assert {(item['c'], item.get('k', '')): item['j'] for item in answer['items']}.items() <= wanted[id].items()


def test_volumes_and_a_second_apply(stack, schemas):
    assert 'the declaration is applied' in schemas.run('plan', 'lab')
    assert stack.psql('lab', """select d.id from doc d where ctime <> 0 and v1 <> (select coalesce(sum(octet_length(key) + octet_length(content)), 0)
                                from item i where i.class = d.class and i.id = d.id)""") == []


def test_a_rewriting_that_is_killed_goes_on(stack, schemas):
    again = {'Person': {**NEW['Person'], 'release': 4, 'mutations': [*NEW['Person']['mutations'], {'to': 4, 'item': 'Adr', 'default': {'last': True}}]}}
    schemas.set('lab', again)
    while 'the declaration is applied' not in schemas.run('plan', 'lab'):
        apply = subprocess.Popen(schemas.command('apply', 'lab', '--batch', 1), stdout=subprocess.PIPE, text=True)
        for line in apply.stdout:
            if 'rewriting' in line and random.random() < 0.7:
                apply.kill()
                break
        apply.stdout.close()
        apply.wait()
    rows = stack.psql('lab', "select content::json ->> 'last' from item where class = 'Person' and iclass = 'Adr' and content like '{%%'")
    assert rows and set(rows) == {('true',)}

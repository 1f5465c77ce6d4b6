"""Releases are obeyed on every read and write for as long as their rules are declared; a rewriting goes on by itself."""
import json
import random
import subprocess
import threading

import pytest

from halting import halted
from schema import Schemas, check_side
from stack import PATIENCE_S, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'settings': {'keep_interval_s': 1}}

FIELDS = {'team': 'string', 'n': 'int'}
ITEMS = {'Main': {'singleton': True, 'fields': FIELDS}, 'Adr': {'fields': {'zip': 'string'}}}
OLD = {'Person': {'items': {'Main': {'singleton': True, 'fields': {'group': 'string'}}, 'Adr': {}},
                  'collections': {'group': {'key': ['Main.group'], 'mutable': True}}}}
NEW = {'Person': {'release': 2, 'items': ITEMS, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}, 'unique': {'badge': {'key': ['Main.badge']}},
                  'mutations': [{'to': 2, 'item': 'Main', 'rename': {'group': 'team', 'card': 'badge'}, 'default': {'n': 7}, 'drop': ['fax']},
                                {'to': 2, 'item': 'Adr', 'rename': {'code': 'zip'}}]}}


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    return Schemas(stack, tmp_path_factory.mktemp('schemas'))


@pytest.fixture
def lab(stack, schemas):
    schemas.apply('lab', NEW)
    return stack


def put(stack, id_, content, **more):
    return stack.put('lab', {'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': content}], **more})


def main(stack, id_):
    return next(item['j'] for item in stack.get('lab', ('Person', id_))['items'] if item['c'] == 'Main')


def stored(stack, id_, item='Main'):
    return [json.loads(text) for text, in stack.psql('lab', "select content from item where class = 'Person' and id = %s and iclass = %s", (id_, item))]


def members(stack, team):
    return {id_ for id_, _ in stack.op('lab', 'collection', {'c': 'Person', 'collection': 'team', 'value': team, 'want': 'ids', 'limit': 1000})['out']['ids']}


def found(stack, team):
    return set(stack.op('lab', 'find', {'c': 'Person', 'i': 'Main', 'where': [{'f': 'team', 't': 'eq', 'v1': team}], 'limit': 1000})['out']['ids'])


def write_by_operation(stack, id_, content):
    put(stack, id_, content)


def write_by_resource(stack, id_, content):
    answer = stack.request('PUT', f'/lab/doc/Person/{id_}', json={'items': [{'c': 'Main', 'j': content}]})
    assert answer.status_code in (200, 201), answer.text


def write_by_sql(stack, id_, content):
    stack.psql('lab', "select put_item('Person', %s, 'Main', '', %s)", (id_, json.dumps(content)))


@pytest.mark.parametrize('write', [write_by_operation, write_by_resource, write_by_sql])
def test_what_an_old_client_writes_is_of_the_newest_release(lab, write):
    id_ = write.__name__
    for content, wanted in (({'group': 'g1', 'fax': 9}, {'team': 'g1', 'n': 7}), ({'gr\u006fup': 'g2', 'n': 1}, {'team': 'g2', 'n': 1}),
                            ({'team': 'g3', 'n': 2}, {'team': 'g3', 'n': 2}), ({'group': 'old', 'team': 'g4', 'n': 2}, {'team': 'g4', 'n': 2})):
        write(lab, id_, content)
        wait_until(lambda wanted=wanted: main(lab, id_) == wanted)
        assert stored(lab, id_) == [wanted]
        assert id_ in members(lab, wanted['team']) and id_ in found(lab, wanted['team'])
    check_side(lab, 'lab', 'Person', 'Main', FIELDS)
    document = lab.get('lab', ('Person', id_))
    assert document['v'] == lab.psql('lab', "select version from doc where class = 'Person' and id = %s", (id_,))[0][0]
    volume = lab.psql('lab', "select v1, (select sum(octet_length(key) + octet_length(content)) from item i where i.class = d.class and i.id = d.id)"
                             " from doc d where class = 'Person' and id = %s", (id_,))
    assert volume[0][0] == volume[0][1]


def test_escapes_hide_no_name(lab):
    text = '{"param":{"docs":[{"c":"Person","id":"escaped","items":[{"c":"Main","j":{"gr\\u006fup":"g","f\\u0061x":1}}]}]}}'
    assert lab.http.post(f'{lab.url}/lab/op/put', data=text, headers={'Content-Type': 'application/json'}, timeout=PATIENCE_S).status_code == 200
    assert main(lab, 'escaped') == {'team': 'g', 'n': 7} == stored(lab, 'escaped')[0]


def test_what_stands_there_in_an_old_form_is_read_in_the_newest(lab):
    """Written by hand, past all functions."""
    put(lab, 'hand', {'team': 'h', 'n': 1})
    lab.psql('lab', """update item set content = '{"group":"h2","fax":1}' where class = 'Person' and id = 'hand' and iclass = 'Main'""")
    lab.psql('lab', "select pg_notify('stampd', 'all')")
    wait_until(lambda: main(lab, 'hand') == {'team': 'h2', 'n': 7})
    lab.put('lab', {'c': 'Person', 'id': 'hand', 'items': [{'c': 'Adr', 'k': 'a', 'j': {'code': '75'}}]})
    assert main(lab, 'hand') == {'team': 'h2', 'n': 7} and stored(lab, 'hand', 'Adr') == [{'zip': '75'}]
    put(lab, 'hand', {'team': 'h3', 'n': 1})
    assert stored(lab, 'hand') == [{'team': 'h3', 'n': 1}] and 'hand' in found(lab, 'h3')


def test_unique_values_of_old_contents(lab):
    put(lab, 'card1', {'card': 'x'})
    answer = lab.request('POST', '/lab/op/put', json={'param': {'docs': [{'c': 'Person', 'id': 'card2', 'items': [{'c': 'Main', 'j': {'badge': 'x'}}]}]}})
    assert answer.json()['code'] == 'AUNIQUE' and answer.json()['args'] == ['badge', 'Person', 'card2']


def test_a_release_does_not_go_back(lab, schemas):
    schemas.set('lab', {'Person': {**NEW['Person'], 'release': 1, 'mutations': []}})
    for command in ('plan', 'apply'):
        told = schemas.run(command, 'lab', status=1)
        assert 'classes.Person.release' in told and 'release 2 is applied, 1 is declared' in told
    put(lab, 'back', {'group': 'b'})
    assert main(lab, 'back') == {'team': 'b', 'n': 7}


def test_a_rewriting_whose_apply_was_killed_goes_on_by_itself(lab, schemas):
    """While others write, in both forms."""
    schemas.apply('lab', {})  # release 1 again, of another class as far as anybody knows
    schemas.apply('lab', OLD)
    ids = [f'w{number:04}' for number in range(600)]
    for first in range(0, 600, 30):
        lab.put('lab', *({'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': {'group': 'all', 'fax': id_}}]} for id_ in ids[first:first + 30]))
    schemas.set('lab', NEW)
    is_over = threading.Event()

    def write(seed):
        dice = random.Random(seed)
        while not is_over.is_set():
            put(lab, dice.choice(ids), {dice.choice(('group', 'team')): 'all', 'fax': dice.random(), 'n': 7})
    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    try:
        with halted(lab, 'lab', 'schema_fill', "new.iclass = '~' and new.after >= 'w0100'") as halt:
            with subprocess.Popen(schemas.command('apply', 'lab', '--batch', 1), stdout=subprocess.DEVNULL) as apply:
                halt.wait()
                apply.kill()
            assert 'rewriting' in schemas.run('show', 'lab')
        wait_until(lambda: 'rewriting' not in schemas.run('show', 'lab'), what='the end of the rewriting')
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    rows = [json.loads(text) for text, in lab.psql('lab', "select content from item where class = 'Person' and iclass = 'Main' and id like 'w0%%'")]
    assert len(rows) == 600 and all(set(row) == {'team', 'n'} for row in rows)
    wait_until(lambda: 'has rewritten the documents of a class' in lab.log(), what='the line of the log, which the keeper writes afterwards')
    schemas.run('apply', 'lab')
    assert members(lab, 'all') >= set(ids) and check_side(lab, 'lab', 'Person', 'Main', FIELDS) >= 600

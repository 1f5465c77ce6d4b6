"""The outbox in Python (doc/examples/client), which stands on the package stampd: it keeps its promises with a real server and a bad network."""
import json
import random
import re
import ssl
import sys
import threading
import time

import pytest

from bad_network import PACKAGE, spoiled
from schema import Schemas
from stack import SOURCE, run_program

pytestmark = pytest.mark.plain

FOLDER = SOURCE / 'doc/examples/client'
sys.dont_write_bytecode = True  # not beside the example
sys.path.insert(0, str(FOLDER))
from stampd_client import Fault, Outbox, stamp_of  # noqa: E402

STACK = {'workers': 3}
PERSON = {'items': {'Main': {'singleton': True}, 'More': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}


def test_it_has_at_most_220_lines():
    assert sum(1 for line in (FOLDER / 'stampd_client.py').read_text().splitlines() if line.strip()) <= 220


@pytest.fixture(scope='module')
def world(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Person': PERSON})
    return stack, ssl.create_default_context(cafile=str(stack.path / 'etc/certificate.pem'))


@pytest.fixture
def client_of(world):
    stack, context = world
    opened = []

    def make(*words, harm=lambda: None, **more):
        opened.append(Outbox(f'{stack.url}/lab', *words, context=context, **more))
        spoiled(opened[-1].client, harm)
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def id():
    return f'py-{random.SystemRandom().getrandbits(64):x}'


def note(id, **lines):
    return {'c': 'Note', 'id': id, 'items': [{'c': 'Line', 'k': k, 'j': j} for k, j in lines.items()]}


def contents(stack, id, c='Note'):
    return {f"{item['c']}.{item['k']}" if 'k' in item else item['c']: item['j'] for item in stack.get('lab', (c, id))['items']}


def test_copies_follow_the_server(world, client_of, id):
    stack, _ = world
    client = client_of()
    client.read(('Note', id))
    assert client.show('Note', id) is None
    stack.put('lab', note(id, a=1, b={'x': [1.5, None]}))
    client.read(('Note', id))
    stack.put('lab', note(id, a=None, c=3))
    client.read(('Note', id))
    assert client.show('Note', id) == contents(stack, id) == {'Line.b': {'x': [1.5, None]}, 'Line.c': 3}
    stack.put('lab', {'c': 'Note', 'id': id, 'delete': True, 'items': [{'c': 'Title', 'j': 'new'}]})
    client.read(('Note', id))
    assert client.show('Note', id) == {'Title': 'new'}
    stack.put('lab', {'c': 'Note', 'id': id, 'delete': True})
    client.read(('Note', id))
    assert client.show('Note', id) is None


def test_changes_are_shown_at_once_and_survive_the_end_of_the_program(world, client_of, id, tmp_path):
    stack, _ = world
    first = client_of(tmp_path / 'kept.db', harm=lambda: 'before')
    first.write(note(id, a=1))
    first.write(note(id, a=2, b=2))
    assert first.show('Note', id) == {'Line.a': 2, 'Line.b': 2}
    with pytest.raises(Fault, match='harm'):
        first.flush()
    first.close()
    again = client_of(tmp_path / 'kept.db')
    assert again.show('Note', id) == {'Line.a': 2, 'Line.b': 2} and contents(stack, id) == {}
    again.flush()
    assert not again.waiting() and again.show('Note', id) == contents(stack, id) == {'Line.a': 2, 'Line.b': 2}


def test_a_lost_answer_is_asked_for_again_with_the_same_bytes(world, client_of, id, tmp_path):
    stack, _ = world
    harms = iter([None, 'after'])  # the copy is read; the answer to the put is lost
    first = client_of(tmp_path / 'kept.db', harm=lambda: next(harms))
    first.write(note(id, a=1))
    with pytest.raises(Fault, match='harm'):
        first.flush()
    stack.put('lab', note(id, a='theirs'))
    again = client_of(tmp_path / 'kept.db')
    again.flush()
    (key, sent), = [one for one in first.client.connections.sent if one[0]]
    (key_again, sent_again), = [one for one in again.client.connections.sent if one[0]]
    assert key == key_again and json.loads(sent)['param'] == json.loads(sent_again)['param']
    assert again.show('Note', id) == contents(stack, id) == {'Line.a': 'theirs'}, 'done once, before theirs'


def test_conflicts_are_decided_by_item(world, client_of, id):
    stack, _ = world
    stack.put('lab', note(id, a=1, b=1, c=1))
    asked = []

    def conflict(*words):
        asked.append(words)
        return words[-1]

    client = client_of(conflict=conflict)
    client.read(('Note', id))
    client.write(note(id, a=2, b=2))
    stack.put('lab', note(id, b=3, c=3))
    client.flush()
    assert asked == [('Note', id, 'Line.b', 1, 2, 3)]
    assert client.show('Note', id) == contents(stack, id) == {'Line.a': 2, 'Line.b': 3, 'Line.c': 3}


def test_what_is_refused_is_rolled_back_and_the_next_change_is_sent(world, client_of, id):
    stack, _ = world
    refusals = []
    client = client_of(refused=lambda change, fault: refusals.append(fault.code))
    client.write(note(id, **{'k' * 300: 1}))
    client.write(note(id, a=2))
    client.flush()
    assert refusals == ['ALIMIT'] and client.show('Note', id) == contents(stack, id) == {'Line.a': 2}


@pytest.mark.parametrize('hours', [-200 * 24, -50, 3])
def test_a_wrong_clock_is_corrected(world, client_of, id, hours, monkeypatch):
    stack, _ = world
    right = time.time
    monkeypatch.setattr(time, 'time', lambda: right() + hours * 3600)
    client = client_of()
    client.write(note(id, a=1))
    client.flush()
    assert abs(client.client.ahead_s + hours * 3600) < 600
    assert contents(stack, id) == {'Line.a': 1}
    assert all(b'"dhop"' in body for key, body in client.client.connections.sent if key)


def test_a_change_of_weeks_ago_keeps_its_date(world, client_of, id, monkeypatch):
    stack, _ = world
    client = client_of()
    right = time.time
    with monkeypatch.context() as past:
        past.setattr(time, 'time', lambda: right() - 30 * 86400)
        client.write(note(id, a=1))
    client.flush()
    (_, body), = [one for one in client.client.connections.sent if one[0]]
    assert json.loads(body)['dhop'] < stamp_of(right() - 29 * 86400) and contents(stack, id) == {'Line.a': 1}


def test_a_collection_follows_the_server(world, client_of, id, monkeypatch):
    stack, _ = world
    monkeypatch.setattr('stampd_client.PAGE', 3)
    people = [f'{id}-{n}' for n in range(8)]

    def join(person, team):
        stack.put('lab', {'c': 'Person', 'id': person, 'items': [{'c': 'Main', 'j': {'team': team}}]})

    for person in people:
        join(person, id)
    client = client_of()
    assert sorted(client.collection('Person', 'team', id)) == people
    assert all(client.show('Person', person) == {'Main': {'team': id}} for person in people)
    join(people[0], f'{id}-other')
    stack.put('lab', {'c': 'Person', 'id': people[1], 'delete': True}, {'c': 'Person', 'id': people[2], 'items': [{'c': 'More', 'j': 1}]})
    assert sorted(client.collection('Person', 'team', id)) == people[2:]
    assert client.show('Person', people[2]) == {'Main': {'team': id}, 'More': 1}
    name, = [name for (name,) in client.db.execute("select name from kept where kind = 'collection'")]
    client.store(('collection', name, {'members': people, 'token': 'altered'}))
    assert sorted(client.collection('Person', 'team', id)) == people[2:], 'read anew'


def test_each_change_takes_effect_once_in_a_bad_network(world, id, tmp_path):
    """Three clients add to the same counters, lose requests and answers, and are ended at any time."""
    stack, context = world
    seed = random.SystemRandom().getrandbits(32)
    steps, failures = 25, []

    def add(c, id, name, base, mine, theirs):
        return (theirs or 0) + mine - (base or 0)

    def play(number):
        dice = random.Random(seed + number)

        def harm():
            return dice.choice(['before', 'after', 'cut', 'twice']) if dice.random() < 0.3 else None

        def opened():
            client = Outbox(f'{stack.url}/lab', tmp_path / f'{number}.db', conflict=add, context=context)
            spoiled(client.client, harm)
            return client

        client = opened()
        try:
            for _ in range(steps):
                shown = client.show('Note', id) or {}
                client.write(note(id, a=shown.get('Line.a', 0) + 1, **{f'of-{number}': shown.get(f'Line.of-{number}', 0) + 1}))
                if dice.random() < 0.5:
                    flushed(client)
                if dice.random() < 0.2:
                    client.close()
                    client = opened()
            while not flushed(client):
                pass
            client.close()
        except BaseException as error:  # of a thread: raised below
            failures.append(error)

    threads = [threading.Thread(target=play, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, (seed, failures)
    assert contents(stack, id) == {'Line.a': 3 * steps, **{f'Line.of-{number}': steps for number in range(3)}}, seed


def flushed(client):
    """Has all been sent?"""
    try:
        client.flush()
    except Fault as fault:
        assert fault.kind == 'again', fault
    return not client.waiting()


def test_the_example_of_the_page_runs(world, tmp_path):
    stack, _ = world
    example = re.search(r'```python\n(.*?)```', (SOURCE / 'doc/how-to/write-a-client.md').read_text(), re.S)[1]
    assert 'https://localhost:8443' in example
    trust = {'PYTHONPATH': f'{FOLDER}:{PACKAGE}', 'SSL_CERT_FILE': str(stack.path / 'etc/certificate.pem'), 'PYTHONDONTWRITEBYTECODE': '1'}
    done = run_program(sys.executable, '-c', example.replace('https://localhost:8443', stack.url), environment=trust, cwd=tmp_path)
    assert done.out == "{'Title': 'Shopping'}\n"

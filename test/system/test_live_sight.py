"""Live events where callers lose and gain sight of documents: a departure and an arrival are events, and nobody else learns of them."""
import json
import random

import pytest

from test_accounts import bearer
from test_live_rules import CLASSES, IDS, PEOPLE, STACK, Heard, World  # noqa: F401: the settings of the server

DOCUMENTS = [(class_, id_) for class_ in CLASSES for id_ in IDS]


@pytest.fixture(scope='module')
def world(stack):
    return World(stack)


def take(world, listener, mark=None):
    return [one for one in listener.take(mark or world.mark()) if one != ('Mark', 0)]


def come_again(world, name, listener, *definitions, between):
    """Its events after `between`, and whether it was resumed."""
    world.mark()
    last = listener.wait_for_id()
    listener.close()
    between()
    listener = return_with(world, name, *definitions, last=last)
    return listener.opened(), listener


def return_with(world, name, *definitions, last):
    return Heard(world.stack, *definitions, headers=bearer(world.accounts[name].token) if name else {}, last=last)


def test_a_new_owner_takes_sight_from_the_old_one(world):
    world.put('Draft', 'a', main={'owner': world.id_of('ann')})
    heard = {name: world.listen(name, 'Draft', 'Draft/a') for name in (None, 'ann', 'bob', 'cem')}
    moved = world.put('Draft', 'a', main={'owner': world.id_of('bob')})
    mark = world.mark()
    for name, listener in heard.items():
        wanted = [('Draft', moved), ('Draft/a', moved)] if name in ('ann', 'bob') else []
        assert sorted(take(world, listener, mark)) == wanted, name
    later = world.put('Draft', 'a', main={'owner': world.id_of('bob')})  # of which the old owner learns nothing
    mark = world.mark()
    for name, listener in heard.items():
        wanted = [('Draft', later), ('Draft/a', later)] if name == 'bob' else []
        assert sorted(take(world, listener, mark)) == wanted, name
    gone = world.remove('Draft', 'a')
    mark = world.mark()
    for name, listener in heard.items():
        wanted = [('Draft', gone), ('Draft/a', gone)] if name == 'bob' else []
        assert sorted(take(world, listener, mark)) == wanted, name
        listener.close()


def test_a_team_takes_sight_and_gives_it(world):
    world.put('Team', 'a', members=['ann'])
    world.put('Plan', 'a', main={'team': 'a'})
    heard = {name: world.listen(name, 'Plan', 'Plan/a') for name in (None, 'ann', 'bob', 'cem')}
    for members in (['bob'], ['ann', 'bob'], []):
        before = world.documents['Team', 'a'].get('members', [])
        world.put('Team', 'a', members=members)
        mark = world.mark()
        for name, listener in heard.items():
            wanted = [('Plan', 0), ('Plan/a', 0)] if (name in members) != (name in before) else []
            assert sorted(take(world, listener, mark)) == wanted, (name, members)
    world.put('Team', 'b', members=['ann'])
    mark = world.mark()
    for name, listener in heard.items():
        assert sorted(take(world, listener, mark)) == ([('Plan', 0), ('Plan/a', 0)] if name == 'ann' else []), name
    moves = [world.put('Plan', 'a', main={'team': team}) for team in 'ba']  # to a team of ann, and away from it
    mark = world.mark()
    came = take(world, heard['ann'], mark)
    assert {name for name, _ in came} == {'Plan', 'Plan/a'} and came[-1][1] == moves[1] and set(dict(came).values()) <= set(moves)
    for name in (None, 'bob', 'cem'):
        assert take(world, heard[name], mark) == [], name
    for listener in heard.values():
        listener.close()


def test_what_was_lost_while_it_was_away(world):
    """It comes again with its id: the departure is sent; nothing of it to others; and after other roles, or other teams, everything is
    read again."""
    definitions = ['Note/a', 'Plan/a']
    moved = []
    world.put('Note', 'a', members=['ann', 'bob'])
    for name, wanted in (('ann', True), ('cem', False)):
        world.put('Note', 'a', members=['ann', 'bob'])
        resumed, listener = come_again(world, name, world.listen(name, *definitions), *definitions,
                                       between=lambda: moved.append(world.put('Note', 'a', members=['bob'])))
        assert resumed and take(world, listener) == ([('Note/a', moved[-1])] if wanted else []), name
        listener.close()
    world.put('Team', 'a', members=['bob'])
    for between in (lambda: world.set_roles('ann', 'editor'), lambda: world.put('Team', 'a', members=['ann'])):
        resumed, listener = come_again(world, 'ann', world.listen('ann', *definitions), *definitions, between=between)
        assert not resumed
        listener.close()
    world.set_roles('ann')
    resumed, listener = come_again(world, 'ann', world.listen('ann', *definitions), *definitions,
                                   between=lambda: world.put('Team', 'a', members=['ann', 'cem']))  # others alone
    assert resumed
    world.mark()
    last = listener.wait_for_id()
    listener.close()
    other = return_with(world, 'bob', *definitions, last=last)  # an id of another account
    assert not other.opened()
    other.close()


class Client:
    """A listener that reads what is named to it, and nothing else: its copies are right if no event was missing."""

    def __init__(self, world, name, definitions):
        self.world, self.name, self.definitions = world, name, definitions
        self.listener, self.copies = world.listen(name, *definitions), {}
        self.read()

    def sees(self, document):
        return self.world.may_read(self.name, *document) and self.world.documents[document]['n']

    def read(self, *definitions):
        for document in DOCUMENTS:
            names = {document[0], '/'.join(document)}
            if names & set(definitions or self.definitions):
                self.copies[document] = self.sees(document)

    def hear(self, events, known):
        """`known`: documents that the caller could see since it was last asked."""
        for event in events:
            if isinstance(event, str):
                assert event == 'reset', event
                self.read()
                continue
            definition, version = event
            if '/' in definition and version:
                assert tuple(definition.split('/')) in known, (self.name, event)
            self.read(definition)

    def check(self):
        for document, copy in self.copies.items():
            assert copy == self.sees(document), (self.name, self.definitions, document, copy, self.listener.events[-5:])


def change(world, chance, clients):
    """One change, by a request or in the database; adds to what each caller could see."""
    class_, id_ = chance.choice([one for one in DOCUMENTS if one[0] != 'Closed'])
    kind = chance.random()
    main = {'owner': world.id_of(chance.choice(PEOPLE)), 'team': chance.choice(IDS)}
    if kind < 0.1:
        world.set_roles(chance.choice(PEOPLE), *chance.choice([[], ['editor']]))
    elif kind < 0.2 and (class_, id_) in world.documents:
        world.remove(class_, id_)
    elif kind < 0.4 and (class_, id_) in world.documents:
        world.puts += 1
        content = {**main, 'put': world.puts}
        world.stack.psql('team', 'select stampd.put_item(%s, %s, %s, %s, %s)', (class_, id_, 'Main', '', json.dumps(content)))
        world.documents[class_, id_] = {**world.documents[class_, id_], 'main': main, 'n': world.puts}
    else:
        world.put(class_, id_, main=main, members=chance.sample(PEOPLE, chance.randrange(3)))
        world.documents[class_, id_]['n'] = world.puts
    for client in clients:
        client.known |= {document for document in DOCUMENTS if world.may_read(client.name, *document)}


def test_who_reads_what_is_named_holds_what_it_may_read(world):
    chance = random.Random(48)
    for class_, id_ in DOCUMENTS:
        world.put(class_, id_, main={'owner': world.id_of('ann'), 'team': 'a'}, members=['bob'])
        world.documents[class_, id_]['n'] = world.puts
    names = [*CLASSES, *('/'.join(document) for document in DOCUMENTS)]
    clients = [Client(world, name, sorted(chance.sample(names, 8))) for name in [None, *PEOPLE] for _ in range(2)]
    for turn in range(60):
        for client in clients:
            client.known = {document for document in DOCUMENTS if world.may_read(client.name, *document)}
        away = [client for client in clients if turn % 6 == 5 and chance.random() < 0.4]
        if away:
            world.mark()
        for client in away:
            client.last = client.listener.wait_for_id()
            client.listener.close()
        for _ in range(chance.randrange(1, 4)):
            change(world, chance, clients)
        for client in away:
            client.listener = return_with(world, client.name, *client.definitions, last=client.last)
            if not client.listener.opened():
                client.read()
        for write_mark in (world.mark, world.mark_in_the_database):  # the second once all have the first, which could show its version
            mark = write_mark()
            for client in clients:
                client.hear(take(world, client.listener, mark), client.known)
        for client in clients:
            client.check()
    for client in clients:
        client.listener.close()

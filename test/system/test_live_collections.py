"""Live events of collections under access rules: a client that reads a collection again when its definition is named, and only then, holds what
it may list; no event is sent because of documents that the caller may not know of."""
import json
import random

import pytest

from listener import Listener
from schema import Schemas
from stack import Problem, wait_until
from test_accounts import Made, bearer, configure

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed'},
         'settings': {'live_keepalive_s': 1, 'limit_client_live': 1000, 'limit_client_connections': 0, 'limit_client_requests': 0}}
CREW = {'class': 'Crew', 'id': 'Main.crew', 'members': 'Mem'}
RULES = {
    'Mark': {'read': ['anybody']},
    'Open': {'read': ['anybody'], 'list': ['anybody'], 'items': {'Secret': {'see': ['role:editor']}}},
    'Own': {'owner': 'Main.owner', 'read': ['owner', 'role:editor'], 'list': ['owner', 'role:editor']},
    'Club': {'members': 'Mem', 'read': ['members'], 'list': ['members:writer'], 'items': {'Secret': {'see': ['members:writer']}}},
    'Both': {'owner': 'Main.owner', 'members': 'Mem', 'read': ['members'], 'list': ['owner']},  # to be listed takes both
    'Duty': {'team': CREW, 'read': ['team'], 'list': ['team:chief']},
    'Read': {'read': ['anybody'], 'list': []},
    'Crew': {'members': 'Mem', 'read': ['members']},
}
LISTED = ['Open', 'Own', 'Club', 'Both', 'Duty', 'Read', 'Closed']  # the last without any rules
IDS, PEOPLE, CALLERS, WORDS = ['a', 'b'], ['ann', 'bob'], [None, 'ann', 'bob'], ['red', 'blue']
ROLES = {'Club': ['writer', 'reader'], 'Crew': ['chief', 'hand'], 'Both': ['any']}
SCHEMA = {'open': True, 'items': {'Main': {'singleton': True}, 'Secret': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}, 'secret': {'key': ['Secret.word'], 'mutable': True},
                                                     'two': {'key': ['Main.team', 'Secret.word'], 'mutable': True}}}
DEFINITIONS = [f'{class_}/{collection}@{value}' for class_ in LISTED for collection, value in
               [*((collection, word) for collection in ('team', 'secret') for word in WORDS), ('two', 'red@red')]]


class World:
    """Documents: {"owner", "crew", "members": {name: role}, "team", "secret", "n"}; what each caller may do with them."""

    def __init__(self, stack, path):
        self.stack, self.documents, self.count, self.moved = stack, {}, 0, set()
        Schemas(stack, path).apply('team', {class_: SCHEMA for class_ in LISTED})
        configure(stack, 'team', access='rules', accounts={'registration': 'closed'}, rules=RULES)
        self.accounts = {name: Made(stack) for name in PEOPLE}
        self.roles = {name: [] for name in PEOPLE}

    def content(self, document):
        main = {'team': document['team'], 'crew': document['crew'], 'owner': self.accounts[document['owner']].id, 'n': document['n']}
        items = {('Main', ''): main, **{('Mem', self.accounts[name].id): {'role': role} for name, role in document['members'].items()}}
        return {**items, **({('Secret', ''): {'word': document['secret']}} if document['secret'] else {})}

    def put(self, class_, id_, by_database=False, **changed):
        self.count += 1
        before = self.documents.get((class_, id_))
        usual = {'owner': 'ann', 'crew': 'a', 'members': {}, 'team': 'red', 'secret': None}
        self.documents[class_, id_] = after = {**(before or usual), **changed, 'n': self.count}
        old, new = (self.content(one) if one else {} for one in (before, after))
        items = [(c, k, new.get((c, k))) for c, k in {**old, **new}]
        if by_database:
            calls = ', '.join(['stampd.put_item(%s, %s, %s, %s, %s)'] * len(items))
            values = [value for c, k, j in items for value in (class_, id_, c, k, None if j is None else json.dumps(j))]
            return self.stack.psql('team', f'select {calls}', values)[0][0]
        wanted = [{'c': c, **({'k': k} if k else {}), **({'del': True} if j is None else {'j': j})} for c, k, j in items]
        return self.stack.put('team', {'c': class_, 'id': id_, 'items': wanted}, admin=True)

    def remove(self, class_, id_):
        self.documents.pop((class_, id_), None)
        return self.stack.put('team', {'c': class_, 'id': id_, 'delete': True}, admin=True)

    def set_roles(self, name, *roles):
        self.roles[name] = list(roles)
        self.accounts[name].set({'c': 'Roles', 'j': {'roles': list(roles)}})

    def has(self, name, grants, class_, document):
        crew = self.documents.get(('Crew', document['crew']), {'members': {}})

        def holds(grant):
            kind, _, role = grant.partition(':')
            if kind in ('anybody', 'role'):
                return kind == 'anybody' or name is not None and role in self.roles[name]
            if kind == 'owner':
                return name is not None and document['owner'] == name
            members = document['members'] if kind == 'members' else crew['members']
            return name in members and role in ('', members[name])
        return any(holds(grant) for grant in grants)

    def may(self, name, class_, id_, right='list'):
        document, rules = self.documents.get((class_, id_)), RULES.get(class_, {})
        return document is not None and self.has(name, rules.get('read', []), class_, document) and (
            right == 'read' or self.has(name, rules.get(right, []), class_, document))

    def sees_secret(self, name, class_, id_):
        see = RULES[class_].get('items', {}).get('Secret')
        return see is None or self.has(name, see['see'], class_, self.documents[class_, id_])

    def members(self, name, definition):
        """What the caller is shown of a collection: {id: number of the content}."""
        class_, _, rest = definition.partition('/')
        collection, _, value = rest.partition('@')
        found = {}
        for id_ in IDS:
            if not self.may(name, class_, id_):
                continue
            document = self.documents[class_, id_]
            values = {'team': document['team'], 'secret': document['secret'], 'two': f'{document["team"]}@{document["secret"]}'}
            if values[collection] == value and (collection == 'team' or self.sees_secret(name, class_, id_)):
                found[id_] = document['n']
        return found

    def relation(self, name, class_, id_):
        """By what the caller may have a right to the document."""
        document, rules = self.documents.get((class_, id_)), RULES.get(class_, {})
        if document is None or name is None:
            return None
        crew = self.documents.get(('Crew', document['crew']), {'members': {}})['members']
        return ('owner' in rules and document['owner'] == name, 'members' in rules and document['members'].get(name), 'team' in rules and crew.get(name) and (document['crew'], crew[name]))

    def known(self, name):
        """What the caller may know: {(class, id): (its relation, may it read, the definitions that have it)}."""
        return {(class_, id_): (self.relation(name, class_, id_), self.may(name, class_, id_, 'read'),
                                {one for one in DEFINITIONS if one.startswith(f'{class_}/') and id_ in self.members(name, one)})
                for class_ in LISTED for id_ in IDS}

    def named(self, name, before, after, by_database):
        """The definitions that a change may name: those that had the document, or have it; all of the class if the caller has gained or lost
        a relation to a document that it could or can read; earlier, too, if the document was changed by psql, of which the version is unknown."""
        found = set()
        for (class_, id_), (relation, may, had) in before.items():
            now_relation, may_now, has = after[class_, id_]
            found |= had | has
            if relation != now_relation:
                self.moved.add((name, class_, id_))
            if (may or may_now) and (relation != now_relation or by_database == (class_, id_) and (name, class_, id_) in self.moved):
                found |= {one for one in DEFINITIONS if one.startswith(f'{class_}/')}
        return found

    def crews(self, name):
        return [self.documents.get(('Crew', id_), {'members': {}})['members'].get(name) for id_ in IDS]

    def mark(self, by_database=False):
        self.count += 1
        content = {'n': self.count}
        if by_database:
            return self.stack.psql('team', 'select stampd.put_item(%s, %s, %s, %s, %s)', ('Mark', 'mark', 'Main', '', json.dumps(content)))[0][0]
        return self.stack.put('team', {'c': 'Mark', 'id': 'mark', 'items': [{'c': 'Main', 'j': content}]}, admin=True)

    def listen(self, name, *definitions, **more):
        headers = bearer(self.accounts[name].token) if name else {}
        return Listener(self.stack, 'Mark', *definitions, ns='team', headers=headers, **more)


@pytest.fixture(scope='module')
def world(stack, tmp_path_factory):
    return World(stack, tmp_path_factory.mktemp('schemas'))


class Client:
    """Reads a collection when it is named, and never else."""

    def __init__(self, world, name, definitions):
        self.world, self.name, self.definitions, self.taken = world, name, definitions, 0
        self.listener = world.listen(name, *definitions)
        assert self.listener.opened() is False
        self.read()

    def read(self):
        self.copies = {definition: self.world.members(self.name, definition) for definition in self.definitions}

    def take(self, mark):
        """Events before the mark, without it."""
        def find():
            for place, (name, data) in enumerate(self.listener.events[self.taken:], self.taken):
                if name == 'change' and ['Mark', mark] in data['changed']:
                    return place + 1
            return not self.listener.is_open and -1
        end = wait_until(find, what='the mark')
        assert end > 0, (self.listener.events, 'it was closed')
        events, self.taken = self.listener.events[self.taken:end], end
        return events

    def hear(self, mark, named):
        for event, data in self.take(mark):
            if event in ('reset', 'ready'):
                self.read()
            for definition, _ in data.get('changed', ()):
                if definition != 'Mark':
                    assert definition in named, (self.name, definition, named)
                    self.copies[definition] = self.world.members(self.name, definition)

    def check(self):
        for definition, copy in self.copies.items():
            assert copy == self.world.members(self.name, definition), (self.name, definition, copy, self.world.documents, self.listener.events[-6:])

    def leave(self):
        last = self.listener.wait_for_id()
        self.listener.close()
        return last

    def come_again(self, last):
        self.listener, self.taken = self.world.listen(self.name, *self.definitions, last=last), 0
        if not self.listener.opened():
            self.read()


def change(world, chance):
    """Returns what was changed by psql."""
    class_, id_ = chance.choice([*LISTED, 'Crew', 'Club', 'Both', 'Duty']), chance.choice(IDS)
    kind = chance.random()
    if kind < 0.08:
        world.set_roles(chance.choice(PEOPLE), *chance.choice([[], ['editor']]))
        return None
    if kind < 0.2 and (class_, id_) in world.documents:
        world.remove(class_, id_)
        return None
    members = {name: chance.choice(ROLES.get(class_, ['any'])) for name in chance.sample(PEOPLE, chance.randrange(3))}
    some = {'team': chance.choice(WORDS), 'secret': chance.choice([None, *WORDS]), 'owner': chance.choice(PEOPLE), 'crew': chance.choice(IDS), 'members': members}
    named = chance.sample(list(some), chance.randrange(1, 4))
    world.put(class_, id_, by_database=kind < 0.35, **{name: some[name] for name in named})
    return (class_, id_) if kind < 0.35 else None


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_who_reads_a_collection_when_it_is_named_holds_what_it_may_list(world, seed):
    chance = random.Random(seed)
    for class_ in [*LISTED, 'Crew']:
        for id_ in IDS:
            world.put(class_, id_, members={'bob': ROLES.get(class_, ['any'])[0]})
    clients = [Client(world, name, sorted(chance.sample(DEFINITIONS, 12))) for name in CALLERS for _ in range(2)]
    try:
        for turn in range(60):
            named = {name: set() for name in CALLERS}
            away = {client: client.leave() for client in clients if turn % 6 == 5 and chance.random() < 0.4} if world.mark() else {}
            before = {name: [(world.known(name), world.crews(name))] for name in CALLERS}
            for _ in range(chance.randrange(1, 4)):
                by_database = change(world, chance)
                for name, states in before.items():
                    states.append((world.known(name), world.crews(name)))
                    for known, crews in states[:-1]:  # several changes may come as one event
                        named[name] |= world.named(name, known, states[-1][0], by_database)
                        if crews != states[-1][1]:
                            named[name] |= {one for one in DEFINITIONS if one.startswith('Duty/')}
            for client, last in away.items():
                client.come_again(last)
            for by_database in (False, True):
                mark = world.mark(by_database)
                for client in clients:
                    client.hear(mark, DEFINITIONS if client in away else named[client.name])  # all are named after a reconnection
            for client in clients:
                client.check()
    finally:
        for client in clients:
            client.listener.close()


def heard(client, mark):
    return [tuple(one) for event, data in client.take(mark) if event == 'change' for one in data['changed'] if one != ['Mark', mark]]


def test_what_the_caller_does_not_list_names_no_collection(world):
    """It may read the document, or its other items, and hears of it by its id; the collections in which it is, it does not learn."""
    world.set_roles('bob')
    for definitions, name, write in [
            (['Read/team@red', 'Read/team@blue'], 'ann', lambda: world.put('Read', 'a', team='blue')),
            (['Club/team@red', 'Club/team@blue'], 'bob', lambda: world.put('Club', 'a', members={'bob': 'reader'}, team='blue')),
            (['Open/secret@red', 'Open/two@red@red'], 'ann', lambda: world.put('Open', 'a', secret='red', team='red')),
            (['Own/team@red', 'Own/team@blue'], 'bob', lambda: world.put('Own', 'a', owner='ann', team='blue'))]:
        class_ = definitions[0].partition('/')[0]
        world.set_roles('ann')
        world.put(class_, 'a', owner='ann', members={'bob': 'reader'}, team='red', secret=None)
        client = Client(world, name, definitions)
        write()
        assert heard(client, world.mark()) == [], class_
        client.listener.close()


def test_a_member_that_joins_changes_and_leaves(world):
    """The versions are those of the document; others hear nothing."""
    for name in PEOPLE:
        world.set_roles(name)
    world.put('Own', 'a', owner='ann', team='blue')
    clients = {name: Client(world, name, ['Own/team@red']) for name in CALLERS}
    for made in (lambda: world.put('Own', 'a', team='red'), lambda: world.put('Own', 'a'), lambda: world.put('Own', 'a', team='blue')):
        version = made()
        mark = world.mark()
        for name, client in clients.items():
            assert heard(client, mark) == ([('Own/team@red', version)] if name == 'ann' else []), name
    world.put('Own', 'a')  # it is in another collection
    mark = world.mark()
    assert all(heard(client, mark) == [] for client in clients.values())
    for client in clients.values():
        client.listener.close()


def test_a_collection_that_is_not_declared_is_refused(world):
    for definition, code, status in (('Own/none@x', 'NCOLLECTION', 404), ('Own/two@x', 'AARG', 400)):
        with pytest.raises(Problem) as problem:
            world.listen('ann', definition)
        assert (problem.value.code, problem.value.status) == (code, status)

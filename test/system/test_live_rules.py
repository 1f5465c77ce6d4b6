"""Live events under access rules: a caller is sent events of what it may read, judged on the newest document, and nothing of
anything else.  What does not arrive is shown by a mark: a document that everybody may read, written afterwards."""
import itertools
import json
import os
import random
import signal
import threading

import psycopg2
import pytest

from clock import Clock
from listener import Listener
from schema import Schemas
from stack import Problem, wait_until
from test_accounts import Made, bearer, configure, cookie, forged

CLOCK = Clock()
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'lab': 'open'},
         'settings': {**CLOCK.settings, 'live_keepalive_s': 1, 'limit_client_live': 1000, 'limit_client_connections': 0,
                      'limit_documents': 100}}
ACCOUNTS = {'registration': 'closed'}
RULES = {
    'Mark': {'read': ['anybody']},
    'Page': {'read': ['anybody'], 'items': {'Secret': {'see': ['role:editor']}}},
    'Note': {'owner': 'Main.owner', 'members': 'Mem', 'read': ['owner', 'members']},
    'Memo': {'read': ['role:editor']},
    'Plan': {'team': {'class': 'Team', 'id': 'Main.team', 'members': 'Mem'}, 'read': ['team']},
    'Team': {'members': 'Mem', 'read': ['members']},
    'Draft': {'owner': 'Main.owner', 'read': ['owner', 'role:editor']},
}
CLASSES = [name for name in RULES if name != 'Mark'] + ['Closed']  # one without any rules
IDS = ['a', 'b']
PEOPLE = ['ann', 'bob', 'cem']
MARKS = itertools.count(1)


class Heard(Listener):
    """A listener that has marks, and knows what came since the last one."""

    def __init__(self, stack, *definitions, **more):
        self.taken = 0
        super().__init__(stack, 'Mark', *definitions, ns='team', **more)

    def take(self, mark):
        """What came before the mark, [(definition, version)…] and names of other events, without marks.  A reset stands for all that
        waited to be sent or judged, the mark too: then another mark is put."""
        resets = 0

        def find():
            nonlocal resets
            came = self.events[self.taken:]
            for place, (name, data) in enumerate(came, self.taken + 1):
                if name == 'change' and any(one == 'Mark' and version >= mark for one, version in data['changed']):
                    return place
            if (seen := sum(name == 'reset' for name, _ in came)) > resets:
                resets = seen
                put_mark(self.stack)
            return not self.is_open and -1
        end = wait_until(find, what='the mark')
        assert end > 0, (self.events, 'it was closed')
        events, self.taken = self.events[self.taken:end], end
        return [tuple(one) for name, data in events if name == 'change' for one in data['changed'] if one[0] != 'Mark'] + \
               [name for name, _ in events if name not in ('change', 'ready')]


def put_mark(stack):
    return stack.put('team', {'c': 'Mark', 'id': 'mark', 'items': [{'c': 'Main', 'j': {'n': next(MARKS)}}]}, admin=True)


class World:
    """The documents and accounts of the namespace, and what each caller may read."""

    def __init__(self, stack):
        self.stack, self.documents, self.puts = stack, {}, 0
        self.saw, self.had = {}, {}
        self.rules = dict(RULES)
        configure(stack, 'team', access='rules', accounts=ACCOUNTS, rules=self.rules)
        self.accounts = {name: Made(stack) for name in PEOPLE}
        self.roles = {name: [] for name in PEOPLE}

    def id_of(self, name):
        return self.accounts[name].id

    def put(self, class_, id_, **content):
        """main: content of the singleton, made unlike any before; members: names; secret: a hidden item.  Replaces the document."""
        before = self.documents.get((class_, id_), {})
        self.remember(class_, id_)
        members = content.get('members', [])
        self.puts += 1
        items = [{'c': 'Main', 'j': {**content.get('main', {}), 'put': self.puts}}]
        items += [{'c': 'Mem', 'k': self.id_of(name), 'j': {}} for name in members]
        items += [{'c': 'Mem', 'k': self.id_of(name), 'del': True} for name in before.get('members', []) if name not in members]
        items += [{'c': 'Secret', 'j': {'n': random.random()}}] if content.get('secret') else []
        self.documents[class_, id_] = content
        return self.stack.put('team', {'c': class_, 'id': id_, 'items': items}, admin=True)

    def remember(self, class_, id_):
        """Who could read it, and who was in it, before its last change."""
        self.saw[class_, id_] = {name for name in [None, *PEOPLE] if self.may_read(name, class_, id_)}
        self.had[class_, id_] = set(self.documents.get((class_, id_), {}).get('members', []))

    def has_other_team(self, name, class_, id_):
        """Did its last change take a team from the caller, or give it one?"""
        return class_ == 'Team' and (name in self.had[class_, id_]) != (name in self.documents.get((class_, id_), {}).get('members', []))

    def put_secret(self, id_, **secret):
        """Changes of a page what editors alone see."""
        self.puts += 1
        item = {'c': 'Secret', **(secret or {'j': {'put': self.puts}})}
        return self.stack.put('team', {'c': 'Page', 'id': id_, 'items': [item]}, admin=True)

    def remove(self, class_, id_):
        self.remember(class_, id_)
        self.documents.pop((class_, id_), None)
        return self.stack.op('team', 'put', {'docs': [{'c': class_, 'id': id_, 'delete': True}]}, admin=True)['out']['v']

    def set_roles(self, name, *roles):
        self.roles[name] = list(roles)
        self.accounts[name].set({'c': 'Roles', 'j': {'roles': list(roles)}})

    def set_rules(self, **rules):
        self.rules = {**self.rules, **rules}
        configure(self.stack, 'team', rules=self.rules)

    def may_read(self, name, class_, id_):
        document = self.documents.get((class_, id_))
        grants = self.rules.get(class_, {}).get('read', []) if document is not None else []
        main = document.get('main', {}) if document else {}
        team = self.documents.get(('Team', main.get('team')), {})
        return 'anybody' in grants or name is not None and (
            'owner' in grants and main.get('owner') == self.id_of(name) or
            'members' in grants and name in document.get('members', []) or
            'team' in grants and name in team.get('members', []) or
            'role:editor' in grants and 'editor' in self.roles[name])

    def mark(self):
        return put_mark(self.stack)

    def mark_in_the_database(self):
        """Notifications of the database come in their order, but may come after events of workers."""
        return self.stack.psql('team', 'select stampd.put_item(%s, %s, %s, %s, %s)',
                               ('Mark', 'mark', 'Main', '', json.dumps({'n': next(MARKS)})))[0][0]

    def listen(self, name, *definitions, **more):
        headers = bearer(self.accounts[name].token) if name else {}
        listener = Heard(self.stack, *definitions, headers=headers, **more)
        assert listener.opened() is bool(more.get('last'))
        return listener


@pytest.fixture(scope='module')
def world(stack):
    return World(stack)


@pytest.fixture
def listeners(world):
    """One that names classes, and one that names documents, for each caller."""
    accounts = [f'Account/{account.id}' for account in world.accounts.values()]  # of which nobody hears anything
    definitions = {'classes': [*CLASSES, 'Account'], 'documents': [*(f'{class_}/{id_}' for class_ in CLASSES for id_ in IDS), *accounts]}
    made = {(name, kind): world.listen(name, *definitions[kind]) for name in [None, *PEOPLE] for kind in definitions}
    yield made
    for listener in made.values():
        listener.close()


def expected(world, name, kind, changes):
    """The events of changes [(class, id, version)…] of which the documents are as the world has them: what the caller can read, what
    it has lost by the change, and what may have become of documents of a team that it has joined or left."""
    events = []
    for class_, id_, version in changes:
        if world.may_read(name, class_, id_) or name in world.saw[class_, id_]:
            events.append((class_ if kind == 'classes' else f'{class_}/{id_}', version))
        if world.has_other_team(name, class_, id_):
            events += [('Plan', 0)] if kind == 'classes' else [(f'Plan/{one}', 0) for one in IDS]
    return events


def check(world, listeners, changes, others=(), mark=None):
    mark = mark or world.mark()
    for (name, kind), listener in listeners.items():
        came = listener.take(mark)
        assert came == expected(world, name, kind, changes) + list(others), (name, kind, changes, came)


def contents(world):
    """Readable by all, by some, by nobody: for each class."""
    main = [{}, *({'owner': world.id_of(name)} for name in PEOPLE), {'team': 'a'}, {'team': 'b'}, {'team': 'none'}, {'owner': 7}]
    return [dict(main=one, members=members) for one in main for members in ([], ['ann'], ['bob', 'cem'])]


def test_each_kind_of_change_reaches_whom_it_may(world, listeners):
    """Callers × documents × definitions × changes: creation, change, gain and loss of sight, deletion, of a class with and without
    rules.  A team is one of the documents."""
    chance = random.Random(12)
    cases = contents(world)
    counts = {True: 0, False: 0}
    for turn in range(90):
        class_, id_ = chance.choice(CLASSES), chance.choice(IDS)
        if chance.random() < 0.2 and (class_, id_) in world.documents:
            version = world.remove(class_, id_)
        else:
            version = world.put(class_, id_, secret=chance.random() < 0.3, **chance.choice(cases))
        for name in [None, *PEOPLE]:
            counts[world.may_read(name, class_, id_)] += 1
        check(world, listeners, [(class_, id_, version)])
    assert min(counts.values()) > 30, counts


def check_hidden(world, listeners, version, definition='Page/a'):
    """The editor alone has heard of it."""
    mark = world.mark()
    for (name, kind), listener in listeners.items():
        wanted = [(definition if kind == 'documents' else 'Page', version)] if 'editor' in world.roles.get(name, ()) else []
        assert listener.take(mark) == wanted, (name, kind)


@pytest.fixture
def editor(world):
    """cem, who sees what is hidden from the others."""
    world.set_roles('cem', 'editor')
    yield 'cem'
    world.set_roles('cem')


def test_a_change_of_what_is_hidden_in_a_document_is_none(world, editor, listeners):
    for _ in range(3):
        version = world.put('Page', 'a', secret=True)
        check(world, listeners, [('Page', 'a', version)])
        check_hidden(world, listeners, world.put_secret('a'))
        check_hidden(world, listeners, world.put_secret('a', **{'del': True}))


def test_a_change_behind_a_hidden_one_has_the_version_that_is_seen(world, editor, listeners):
    """Also when both are judged at once: the version of the hidden one is heard of by the editor alone."""
    for _ in range(20):
        seen, hidden = world.put('Page', 'b'), world.put_secret('b')
        mark = world.mark()
        for (name, kind), listener in listeners.items():
            came = listener.take(mark)
            versions = [version for _, version in came]
            if name == editor:
                assert versions[-1] == hidden and set(versions) <= {seen, hidden}, came
            else:
                assert versions == [seen], (name, came)


def test_changes_in_the_database_that_are_hidden(world, editor, listeners):
    """Of these the version is not known before the document is loaded: the one that the caller knows may come once more."""
    seen = world.put('Page', 'a', secret=True)
    mark = world.mark()
    for listener in listeners.values():
        listener.take(mark)
    hidden, = world.stack.psql('team', "select stampd.put_item('Page', 'a', 'Secret', '', '{\"n\":\"psql\"}')")[0]
    mark = world.mark_in_the_database()
    for (name, _), listener in listeners.items():
        versions = {version for _, version in listener.take(mark)}
        assert versions == {hidden} if name == editor else versions <= {seen}, name
    version, = world.stack.psql('team', "select stampd.put_item('Page', 'a', 'Main', '', '{\"n\":\"psql\"}')")[0]
    check(world, listeners, [('Page', 'a', version)], mark=world.mark_in_the_database())


def test_who_comes_again_is_not_sent_a_change_that_is_hidden(world, editor):
    for name in (None, 'ann', editor):
        world.put('Page', 'a', secret=True)
        world.put('Page', 'b', secret=True)
        listener = world.listen(name, 'Page/a', 'Page/b')
        world.mark()
        last = listener.wait_for_id()
        listener.close()
        hidden, seen = world.put_secret('a'), world.put('Page', 'b')
        listener = world.listen(name, 'Page/a', 'Page/b', last=last)
        came = [one for one in listener.take(world.mark()) if one != ('Mark', 0)]
        assert sorted(came) == ([('Page/a', hidden)] if name == editor else []) + [('Page/b', seen)], (name, came)
        listener.close()


def test_roles_decide_from_their_change_on(world, listeners):
    """Who gains or loses a role reads everything; nobody else learns of it."""
    for roles in (['editor'], ['other'], ['editor', 'other'], []):
        world.set_roles('bob', *roles)
        version = world.put('Memo', 'a', main={'n': len(roles)})
        mark = world.mark()
        for (name, kind), listener in listeners.items():
            came = listener.take(mark)
            if name == 'bob':
                assert 'reset' in came and came.count('reset') == 1, came
                came.remove('reset')
                assert set(came) <= set(expected(world, name, kind, [('Memo', 'a', version)])), came
            else:
                assert came == expected(world, name, kind, [('Memo', 'a', version)]), (name, came)


def test_other_rules_decide_from_their_change_on(world, listeners):
    for grants in (['anybody'], [], ['account'], ['role:editor']):
        world.set_rules(Memo={'read': grants})
        world.rules['Memo'] = {'read': grants}
        version = world.put('Memo', 'a', main={'n': str(grants)})
        mark = world.mark()
        for (name, kind), listener in listeners.items():
            came = listener.take(mark)
            assert came.count('reset') == 1, came
            came.remove('reset')
            may = 'anybody' in grants or 'account' in grants and name is not None
            definition = 'Memo' if kind == 'classes' else 'Memo/a'
            assert set(came) <= ({(definition, version)} if may else set()), (name, grants, came)
    version = world.put('Memo', 'b')
    check(world, listeners, [('Memo', 'b', version)])


def why(listener):
    """The code in its last event."""
    name, data = listener.events[-1]
    return name == 'closed' and data['code']


def test_an_ended_session_ends_the_connection(world):
    """Nothing written after the answer to the revocation is heard of."""
    for end in ('session', 'disabled', 'account'):
        made = Made(world.stack)
        listener = Heard(world.stack, 'Page', headers=bearer(made.token))
        listener.opened()
        version = world.put('Page', 'a', main={'n': end})
        assert listener.take(world.mark()) == [('Page', version)]
        if end == 'session':
            made.set({'c': 'Sess', 'k': made.session, 'del': True})
        elif end == 'disabled':
            made.set({'c': 'Self', 'j': {'created': 1, 'disabled': True}})
        else:
            world.stack.op('team', 'put', {'docs': [{'c': 'Account', 'id': made.id, 'delete': True}]}, admin=True)
        later = world.put('Page', 'a', main={'n': 'later'})
        wait_until(lambda: not listener.is_open, what='the end of the connection')
        assert why(listener) == 'SKEY'
        assert ('Page', later) not in listener.told().items() and 'reset' not in [name for name, _ in listener.events]


def test_a_session_that_expires_ends_the_connection(world):
    made = Made(world.stack)
    soon = world.stack.psql('team', "select to_char(now() at time zone 'utc' + interval '10 minutes', 'YYMMDDHH24MI00000')::bigint")[0][0]
    made.set({'c': 'Sess', 'k': made.session, 'j': {'created': 1, 'expires': soon}})
    listener = Heard(world.stack, 'Page', headers=bearer(made.token))
    listener.opened()
    CLOCK.set(20)
    try:
        wait_until(lambda: not listener.is_open, what='the end of the connection')
        assert why(listener) == 'SKEY'
    finally:
        CLOCK.set(0)


def revoke_session(world, made):
    made.set({'c': 'Sess', 'k': made.session, 'del': True})


def revoke_role(world, made):
    made.set({'c': 'Roles', 'j': {'roles': ['other']}})


def revoke_grant(world, made):
    world.set_rules(Memo={'read': ['role:none']})


@pytest.mark.parametrize('revoke', [revoke_session, revoke_role, revoke_grant])
def test_revocations_hold_for_all_that_is_written_after_their_answer(world, revoke):
    """Others write all the while."""
    for turn in range(4):
        made = Made(world.stack)
        made.set({'c': 'Roles', 'j': {'roles': ['editor']}})
        world.set_rules(Memo={'read': ['role:editor']})
        listeners = [Listener(world.stack, definition, ns='team', headers=bearer(made.token)) for definition in ('Memo', 'Memo/a')]
        for listener in listeners:
            listener.opened()
        is_over, revoked, before, after = threading.Event(), threading.Event(), [], []

        def write():
            while not is_over.is_set():
                versions = after if revoked.is_set() else before
                versions.append(world.put('Memo', 'a'))
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for listener in listeners:
                wait_until(lambda: listener.told(), what='an event before')
            revoke(world, made)
            revoked.set()
            wait_until(lambda: len(after) > 20, what='changes after')
        finally:
            is_over.set()
            writer.join()
        for listener in listeners:
            def is_settled():
                return not listener.is_open or any(name == 'reset' for name, _ in listener.events)
            wait_until(is_settled, what='the end, or a reset')
            versions = {version for name, data in listener.events if name == 'change' for _, version in data['changed']}
            assert versions and not versions & set(after), (revoke.__name__, turn)
            listener.close()


def test_a_document_that_has_expired_is_none(world, tmp_path):
    """Its schema is another than the one that was applied when the listeners began."""
    world.set_rules(Visit={'read': ['anybody']})
    listener = world.listen('ann', 'Visit', 'Page')
    version = world.put('Page', 'a')
    assert listener.take(world.mark()) == [('Page', version)]
    Schemas(world.stack, tmp_path).apply('team', {'Visit': {'items': {'Main': {'singleton': True}}, 'maxLife': 'Main.until'}})
    for until, is_there in ((CLOCK.real() + 100, True), (CLOCK.real() - 100, False), (CLOCK.real() + 100, True)):
        came = ['reset']
        while 'reset' in came:  # another schema may be a gap, whose reset stands for what waited
            version = world.put('Visit', f'v{until}', main={'until': until})
            came = listener.take(world.mark())
        assert came == ([('Visit', version)] if is_there else []), until
    listener.close()


def test_contents_of_an_older_release_are_judged_as_they_are_read(world, tmp_path):
    """While a class is rewritten: the owner has another name in the rules than in the contents."""
    schemas, ann, bob = Schemas(world.stack, tmp_path), world.listen('ann', 'Chore'), world.listen('bob', 'Chore')
    world.set_rules(Chore={'owner': 'Main.owner', 'read': ['owner']})
    chore = {'items': {'Main': {'singleton': True}}}
    rename = {'release': 2, 'mutations': [{'to': 2, 'item': 'Main', 'rename': {'holder': 'owner'}}]}
    schemas.apply('team', {'Chore': chore})
    world.put('Chore', 'a', main={'holder': world.id_of('ann')})
    schemas.apply('team', {'Chore': {**chore, **rename}})
    mark = world.mark_in_the_database()  # behind the notification of the other schema
    for listener in (ann, bob):
        listener.take(mark)
    old = json.dumps({'holder': world.id_of('ann')})
    world.stack.psql('team', "update stampd.schema set building = '~Chore' where one")
    world.stack.psql('team', "update stampd.item set content = %s where class = 'Chore' and iclass = 'Main'", (old,))
    world.stack.psql('team', "select stampd.put_item('Chore', 'a', 'Other', 'x', '{}')")
    mark = world.mark_in_the_database()  # a worker's might overtake it
    came = {listener: [one for one in listener.take(mark) if one[0] == 'Chore'] for listener in (ann, bob)}
    assert len(came[ann]) == 1 and not came[bob], (came, ann.events, bob.events)
    world.stack.psql('team', "update stampd.schema set building = '' where one")
    for listener in (ann, bob):
        listener.close()


def test_credentials(world):
    """As for operations: a wrong one is never an anonymous caller."""
    made, other = world.accounts['ann'], Made(world.stack, 'lab')
    version = world.put('Note', 'a', main={'owner': made.id})
    for headers in (bearer(made.token), cookie('team', made.token)):
        listener = Heard(world.stack, 'Note', headers=headers)
        listener.opened()
        version = world.put('Note', 'a', main={'owner': made.id})
        assert listener.take(world.mark()) == [('Note', version)]
        listener.close()
    for token in (forged(made.token), other.token, 'st_', made.token[:-1], f'{made.token[:26]}{other.token[26:]}', made.token.replace('st_', 'sk_')):
        for headers in (bearer(token), cookie('team', token)):
            with pytest.raises(Problem) as problem:
                Heard(world.stack, 'Note', headers=headers)
            assert (problem.value.code, problem.value.status) == ('SKEY', 401), headers
    listener = Heard(world.stack, 'Note', headers=cookie('lab', made.token))  # of another namespace: no credential
    listener.opened()
    world.put('Note', 'a', main={'owner': made.id})
    assert listener.take(world.mark()) == []
    listener.close()
    with pytest.raises(Problem) as problem:
        Listener(world.stack, 'Note', headers=bearer(made.token))  # no accounts there
    assert problem.value.code == 'SKEY'
    listener = Listener(world.stack, 'Note', headers=cookie('lab', made.token))
    assert listener.opened() is False
    listener.close()


def test_collections_that_are_not_declared_are_refused(world):
    """Of a class that the caller may read; of another one nobody learns what is declared: test_schema_names.py."""
    for name, definition in (('ann', 'Note/owned@x'), (None, 'Mark/owned@x')):
        with pytest.raises(Problem) as problem:
            world.listen(name, definition)
        assert (problem.value.code, problem.value.status) == ('NCOLLECTION', 404)


def test_the_administrator_hears_everything(world):
    listener = Heard(world.stack, 'Closed', 'Note/a', admin=True)
    listener.opened()
    versions = [('Closed', world.put('Closed', 'a')), ('Note/a', world.put('Note', 'a'))]
    gone = world.remove('Closed', 'a')
    told = listener.take(world.mark())
    assert ('Note/a', versions[1][1]) in told and ('Closed', gone) in told
    listener.close()


def resumes(world, name):
    """Is an id of now good for the caller?  Not while its horizon is before the last change of the rules, or of a team of the caller."""
    listener = world.listen(name, 'Note')
    world.mark()
    last = listener.wait_for_id()
    listener.close()
    again = Heard(world.stack, 'Note', headers=bearer(world.accounts[name].token) if name else {}, last=last)
    is_resumed = again.opened()
    again.close()
    return is_resumed


def test_who_comes_again_is_sent_what_it_may_read(world):
    """Changes while it was away are judged as they are now; classes are named without any, as for everybody."""
    definitions = [f'{class_}/{id_}' for class_ in CLASSES for id_ in IDS]
    for name in [None, *PEOPLE]:
        wait_until(lambda name=name: resumes(world, name), what='ids behind what other tests have changed')
        world.put('Note', 'a', members=[])
        listener = world.listen(name, *definitions, 'Note')
        world.mark()
        last = listener.wait_for_id()
        listener.close()
        changes = []
        for class_, main, members in (('Note', {}, ['ann', 'cem']), ('Memo', {}, []), ('Page', {}, []), ('Closed', {}, []),
                                      ('Plan', {'team': 'a'}, []), ('Draft', {'owner': world.id_of('bob')}, [])):
            changes.append((class_, 'a', world.put(class_, 'a', main={**main, 'n': str(name)}, members=members)))
        world.put('Page', 'b')
        changes.append(('Page', 'b', world.remove('Page', 'b')))
        listener = world.listen(name, *definitions, 'Note', last=last)
        came = listener.take(world.mark())
        wanted = expected(world, name, 'documents', changes) + [('Note', 0)]
        came = [one for one in came if one != ('Mark', 0)]
        assert sorted(came) == sorted(wanted), (name, came)
        listener.wait_for_id()
        listener.close()


def test_ids_follow_what_was_judged(world):
    """Whoever comes again after any event misses nothing of what it may read."""
    chance = random.Random(3)
    last, told, sent = None, {}, {}
    for turn in range(25):
        listener = world.listen('ann', 'Note/a', 'Note/b', 'Plan/a', **({'last': last} if last else {}))
        for _ in range(chance.randrange(4)):
            id_ = chance.choice(IDS)
            sent[f'Note/{id_}'] = world.put('Note', id_, members=['ann'], main={'n': turn})
        mark = world.mark()
        if last is None or chance.random() < 0.7:
            listener.take(mark)
        if chance.random() < 0.5 or last is None:
            last = listener.wait_for_id()
        for definition, version in listener.told().items():
            told[definition] = max(told.get(definition, 0), version)
        last = listener.last or last
        listener.close()
        for definition, version in listener.told().items():
            told[definition] = max(told.get(definition, 0), version)
    listener = world.listen('ann', 'Note/a', 'Note/b', 'Plan/a', last=last)
    listener.take(world.mark())
    for definition, version in sent.items():
        assert max(told.get(definition, 0), listener.told().get(definition, 0)) == version, definition
    listener.close()


def test_more_than_can_be_held_is_read_by_the_clients(world, listeners):
    """While no document can be loaded, more changes arrive than are held: each listener is sent a reset, and then events as before.
    Workers publish these changes with their versions, so nothing else is lost on the way: the reset is of the full queue alone."""
    stack, metric = world.stack, 'stampd_live_held_overflows_total'
    before, size = stack.metrics()[metric], len(stack.log())
    look = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query like '%since_crash%'"
    (link,), = wait_until(lambda: stack.psql('team', look), what='the session of the process for live events')
    os.kill(link, signal.SIGSTOP)
    try:
        for turn in range(25):
            docs = [{'c': 'Page', 'id': f'many{turn}.{n}', 'items': [{'c': 'Main', 'j': {}}]} for n in range(90)]
            stack.op('team', 'put', {'docs': docs}, admin=True)
        wait_until(lambda: stack.metrics()[metric] > before, what='the overflow')
    finally:
        os.kill(link, signal.SIGCONT)
    closed = world.put('Closed', 'a')
    mark = world.mark()
    for (name, kind), listener in listeners.items():
        wait_until(lambda listener=listener: listener.told().get('Mark') == mark, what='the mark')
        assert [event for event, _ in listener.events].count('reset') == 1, (name, kind)
        assert closed not in listener.told().values()
    wait_until(lambda: not stack.metrics()['stampd_live_held_changes'], what='the end of the judgements')
    assert stack.metrics()[metric] == before + 1
    assert not [words for words in ('changes unknown', 'loading documents', 'what has changed') if words in stack.log()[size:]]


def test_other_access_ends_the_connections(world):
    """They begin anew under what holds then."""
    listener = world.listen('ann', 'Page')
    nobody = world.listen(None, 'Page')
    configure(world.stack, 'team', access='closed')
    for one in (listener, nobody):
        wait_until(lambda: not one.is_open, what='the end of the connection')
        assert why(one) == 'SCLOSED'
    configure(world.stack, 'team', access='rules')
    listener = world.listen('ann', 'Page')
    version = world.put('Page', 'a')
    assert listener.take(world.mark()) == [('Page', version)]
    listener.close()


def test_contents_do_not_stand_in_events(world, listeners):
    world.put('Page', 'a', main={'word': 'xyzzy'}, secret=True)
    mark = world.mark()
    for listener in listeners.values():
        listener.take(mark)
        assert 'xyzzy' not in json.dumps(listener.events)

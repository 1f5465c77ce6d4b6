"""Sight under rules: collections synchronised by tokens, by callers that lose and gain sight of documents.  Everything is judged again in
Python, and no answer may have an id that its client could not have known."""
import hashlib
import json
import random

import psycopg2
import pytest

from collected import Collected
from schema import Schemas
from stack import Problem, wait_until

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'rules'}}

SEEN = ('read', 'list')
CREW = {'class': 'Crew', 'id': 'Info.crew', 'members': 'Member'}
RULES = {
    'Own': {'owner': 'Info.owner', **{right: ['owner', 'role:staff'] for right in SEEN}},
    'Club': {'members': 'Member', **{right: ['members:chief', 'members:clerk'] for right in SEEN}},
    'Duty': {'owner': 'Info.owner', 'team': CREW, **{right: ['team', 'owner'] for right in SEEN}},
    'Part': {'owner': 'Info.owner', **{right: ['account'] for right in SEEN}, 'items': {'Secret': {'see': ['owner']}, 'Info': {'see': ['account']}}},
    'Both': {'owner': 'Info.owner', 'members': 'Member', 'read': ['members'], 'list': ['owner']},  # it takes two relations at once
    'Crew': {},
}
CLASSES = tuple(name for name in RULES if name != 'Crew')
ITEMS = {'Info': {'singleton': True}, 'Main': {'singleton': True}, 'Secret': {'singleton': True}, 'Member': {}}
SCHEMA = {name: {'open': True, 'items': ITEMS, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}} for name in RULES}
ACCOUNTS = {name: name.ljust(22, 'A') for name in ('ann', 'bob', 'cid')}
NAMES = {ident: name for name, ident in ACCOUNTS.items()}
TEAMS, CREWS, ROLES = ('red', 'blue'), ('x', 'y'), ('chief', 'clerk', 'guest')


def session(caller):
    return {'Authorization': f'Bearer st_{ACCOUNTS[caller]}.{caller.ljust(43, "A")}'} if caller in ACCOUNTS else {}


def account(caller, roles=()):
    digest = hashlib.sha256(caller.ljust(43, 'A').encode()).hexdigest()
    return {'c': 'Account', 'id': ACCOUNTS[caller], 'items': [
        {'c': 'Self', 'j': {'name': caller, 'created': 200101000000000}}, {'c': 'Roles', 'j': {'roles': list(roles)}},
        {'c': 'Sess', 'k': digest, 'j': {'created': 200101000000000, 'expires': 991231000000000}}]}


def declare(stack, rules=RULES):
    stack.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Rules', 'j': rules}]}, admin=True)


@pytest.fixture(scope='module')
def lab(stack, tmp_path_factory):
    conf = stack.get('z', ('Namespace', 'lab'), admin=True)['items'][0]['j']
    stack.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Conf', 'j': {**conf, 'accounts': {}}}]}, admin=True)
    declare(stack)
    stack.put('lab', *map(account, ACCOUNTS), admin=True)
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', SCHEMA)
    return stack


def put(stack, name, ident, admin=True, **items):
    """Items: a content, a dict {key: content}, or None: removed."""
    rows = []
    for item, content in items.items():
        for key, one in content.items() if item == 'Member' else [(None, content)]:
            rows.append({'c': item, **({'k': key} if key else {}), **({'del': True} if one is None else {'j': one})})
    return stack.put('lab', {'c': name, 'id': ident, 'items': rows}, admin=admin)


def delete(stack, name, ident):
    return stack.put('lab', {'c': name, 'id': ident, 'delete': True}, admin=True)


class Holder(Collected):
    """A client of a caller, with the token of one collection; it records every id that it was sent."""

    def __init__(self, caller, name, value='red', limit=100, want='ids'):
        super().__init__('team', value)
        self.caller, self.name, self.limit, self.want = caller, name, limit, want
        self.answers = []

    def synchronise(self, stack):
        self.answers = []
        while True:
            body = {'param': {'c': self.name, 'collection': 'team', 'value': self.value, 'want': self.want, 'limit': self.limit, **self.place()}}
            answer = stack.request('POST', '/lab/op/collection', json=body, headers=session(self.caller))
            if answer.status_code != 200:
                raise Problem(answer)
            out = answer.json()['out']
            self.answers.append(out)
            self.apply(out)
            if not self.cursor:
                return self

    @property
    def ids(self):
        return {one['id'] if isinstance(one, dict) else one[0] for out in self.answers for one in (*out.get('ids', ()), *out.get('docs', ()))}

    @property
    def left(self):
        return {one[0] for out in self.answers for one in out['left']}


def incremental(holder, stack):
    """The next answer has changes only."""
    holder.synchronise(stack)
    assert not holder.was_complete, holder.answers
    return holder


# --- one by one ---

def test_what_was_lost_leaves_and_what_was_not_known_does_not(lab):
    put(lab, 'Own', 'one', Info={'owner': ACCOUNTS['ann']}, Main={'team': 'red'})
    put(lab, 'Own', 'other', Info={'owner': ACCOUNTS['bob']}, Main={'team': 'red'})
    ann, bob = (Holder(caller, 'Own').synchronise(lab) for caller in ('ann', 'bob'))
    assert set(ann.members) == {'one'} and set(bob.members) == {'other'}
    version = put(lab, 'Own', 'one', Info={'owner': ACCOUNTS['bob']})
    put(lab, 'Own', 'one', Main={'team': 'red', 'more': 1})
    put(lab, 'Own', 'other', Main={'team': 'blue'})
    assert incremental(ann, lab).answers[0]['left'] == [['one', version]] and not ann.members, 'with the version by which it was lost'
    assert incremental(bob, lab).left == {'other'} and set(bob.members) == {'one'}
    delete(lab, 'Own', 'other')
    delete(lab, 'Own', 'one')
    assert incremental(ann, lab).answers[0] == {**ann.answers[0], 'ids': [], 'left': []}, 'nobody learns when it is deleted'
    assert incremental(bob, lab).left == {'one', 'other'} and not bob.members


def test_where_a_document_was_is_known_to_those_who_saw_it_there(lab):
    put(lab, 'Own', 'moved', Info={'owner': ACCOUNTS['bob']}, Main={'team': 'red'})
    ann = Holder('ann', 'Own').synchronise(lab)
    put(lab, 'Own', 'moved', Main={'team': 'blue'})
    put(lab, 'Own', 'moved', Info={'owner': ACCOUNTS['ann']})
    assert not incremental(ann, lab).left and not ann.members, 'it was red before ann saw it'
    put(lab, 'Own', 'moved', Main={'team': 'red'})
    assert set(incremental(ann, lab).members) == {'moved'}
    put(lab, 'Own', 'moved', Main={'team': 'blue'})
    assert incremental(ann, lab).left == {'moved'}
    delete(lab, 'Own', 'moved')


def test_a_member_whose_role_does_not_see_learns_nothing(lab):
    put(lab, 'Club', 'club', Main={'team': 'red'}, Member={ACCOUNTS['ann']: {'role': 'guest'}, ACCOUNTS['bob']: {'role': 'chief'}})
    ann, bob = (Holder(caller, 'Club').synchronise(lab) for caller in ('ann', 'bob'))
    put(lab, 'Club', 'club', Member={ACCOUNTS['ann']: None, ACCOUNTS['bob']: {'role': 'guest'}})
    assert not incremental(ann, lab).left and incremental(bob, lab).left == {'club'}
    put(lab, 'Club', 'club', Member={ACCOUNTS['ann']: {'role': 'clerk'}, ACCOUNTS['bob']: {'role': 'clerk'}})
    assert set(incremental(ann, lab).members) == set(incremental(bob, lab).members) == {'club'}
    delete(lab, 'Club', 'club')
    assert incremental(ann, lab).left == {'club'}


def test_the_hand_of_the_administrator_is_followed_too(lab):
    put(lab, 'Own', 'by-hand', Info={'owner': ACCOUNTS['ann']}, Main={'team': 'red'})
    ann = Holder('ann', 'Own').synchronise(lab)
    lab.psql('lab', "select stampd.put_item('Own', 'by-hand', 'Info', '', %s)", (json.dumps({'owner': ACCOUNTS['cid']}),))
    assert incremental(ann, lab).left == {'by-hand'}
    cid = Holder('cid', 'Own').synchronise(lab)
    lab.psql('lab', "select stampd.delete_document('Own', 'by-hand')")
    assert incremental(cid, lab).left == {'by-hand'} and not incremental(ann, lab).left


def test_a_copy_that_is_older_than_a_change_by_hand_decides_nothing(lab):
    """Workers learn of such a change a moment later; the client comes at once."""
    put(lab, 'Own', 'often', Info={'owner': ACCOUNTS['ann']}, Main={'team': 'red'})
    holders = {caller: Holder(caller, 'Own').synchronise(lab) for caller in ('ann', 'bob')}
    for number in range(60):
        owner = ('bob', 'ann')[number % 2]
        lab.psql('lab', "select stampd.put_item('Own', 'often', 'Info', '', %s)", (json.dumps({'owner': ACCOUNTS[owner]}),))
        for caller, holder in holders.items():
            assert set(incremental(holder, lab).members) == ({'often'} if caller == owner else set()), (number, caller)
    delete(lab, 'Own', 'often')


def by_pages(holder, stack):
    return holder.synchronise(stack)


def by_stream(holder, stack):
    """A new client, which begins with a stream."""
    body = {'param': {'c': holder.name, 'collection': 'team', 'value': holder.value, 'want': 'ids', 'stream': True}}
    answer = stack.request('POST', '/lab/op/collection', json=body, headers=session(holder.caller))
    *members, end = map(json.loads, answer.text.splitlines())
    holder.members, holder.token = dict(members), end['token']
    return holder


@pytest.mark.parametrize('begin', [by_pages, by_stream])
def test_a_copy_of_a_team_that_is_older_than_a_change_by_hand_decides_nothing(lab, begin):
    """Such an answer would stay with the client: its token says that it knows of the change."""
    ident = begin.__name__
    put(lab, 'Crew', ident, Member={ACCOUNTS['bob']: {}})
    put(lab, 'Duty', ident, Info={'crew': ident}, Main={'team': 'red'})
    held = {}
    for _ in range(12):  # each worker has a copy
        held['ann'], held['bob'] = (Holder(caller, 'Duty').synchronise(lab) for caller in ('ann', 'bob'))
    assert not held['ann'].members and set(held['bob'].members) == {ident}
    with lab.relay_stopped():
        for change in (lambda: lab.psql('lab', "select stampd.put_item('Crew', %s, 'Member', %s, '{}')", (ident, ACCOUNTS['ann'])),
                       lambda: lab.psql('lab', "select stampd.put_item('Crew', %s, 'Member', %s, null)", (ident, ACCOUNTS['bob'])),
                       lambda: lab.psql('lab', "select stampd.delete_document('Crew', %s)", (ident,))):
            change()
            truth = {row[0] for row in lab.psql('lab', "select key from stampd.item where class = 'Crew' and id = %s and content is not null", (ident,))}
            for _ in range(4):  # more often than there are workers
                for caller, holder in held.items():
                    expected = {ident} if ACCOUNTS[caller] in truth else set()
                    assert set(begin(holder, lab).members) == expected, caller
                    assert set(incremental(holder, lab).members) == expected, caller
    delete(lab, 'Duty', ident)


@pytest.mark.parametrize('how', ['owner', 'team'])
def test_a_commit_that_becomes_visible_late(lab, how):
    """It began to write before the token was given, and ends behind others."""
    put(lab, 'Crew', 'late', Member={ACCOUNTS['ann']: {}})
    put(lab, 'Duty', 'late', Info={'owner': ACCOUNTS['ann'] if how == 'owner' else '', 'crew': 'late' if how == 'team' else 'none'}, Main={'team': 'red'})
    ann = Holder('ann', 'Duty').synchronise(lab)
    with psycopg2.connect(lab.conninfo('lab')) as connection, connection.cursor() as cursor:
        if how == 'owner':
            cursor.execute("select stampd.put_item('Duty', 'late', 'Info', '', '{}')")
        else:
            cursor.execute("select stampd.put_item('Crew', 'late', 'Member', %s, null)", (ACCOUNTS['ann'],))
        put(lab, 'Own', 'between', Info={'owner': ACCOUNTS['ann']}, Main={'team': 'red'})
        assert set(incremental(ann, lab).members) == {'late'}
    connection.close()
    if how == 'team':  # whose changes by hand are known a moment later
        wait_until(lambda: not lab.get('lab', ('Crew', 'late'), admin=True).get('items'), what='the team as it is')
    assert not ann.synchronise(lab).members and ann.was_complete == (how == 'team')
    for name, ident in (('Own', 'between'), ('Duty', 'late'), ('Crew', 'late')):
        delete(lab, name, ident)


def test_a_team_that_is_joined_or_left(lab):
    for caller in ('ann', 'bob'):
        put(lab, 'Duty', f'duty-{caller}', Info={'crew': f'of-{caller}'}, Main={'team': 'red'})
        put(lab, 'Crew', f'of-{caller}', Member={ACCOUNTS[caller]: {}})
    ann, bob, cid = (Holder(caller, 'Duty').synchronise(lab) for caller in ('ann', 'bob', 'cid'))
    assert set(ann.members) == {'duty-ann'} and set(bob.members) == {'duty-bob'} and not cid.members
    put(lab, 'Crew', 'of-bob', Member={ACCOUNTS['ann']: {}})
    assert set(ann.synchronise(lab).members) == {'duty-ann', 'duty-bob'} and ann.was_complete
    assert not incremental(bob, lab).ids and not incremental(cid, lab).ids, 'for them nothing has changed'
    put(lab, 'Crew', 'of-bob', Member={ACCOUNTS['bob']: None})
    put(lab, 'Duty', 'duty-ann', Info={'crew': 'of-bob'})
    assert not bob.synchronise(lab).members and set(incremental(ann, lab).members) == {'duty-ann', 'duty-bob'}
    put(lab, 'Crew', 'late', Member={ACCOUNTS['cid']: {}})
    put(lab, 'Duty', 'duty-ann', Info={'crew': 'late'})
    assert incremental(ann, lab).left == {'duty-ann'} and set(cid.synchronise(lab).members) == {'duty-ann'}
    for caller in ('ann', 'bob'):
        delete(lab, 'Duty', f'duty-{caller}')
    delete(lab, 'Crew', 'late')


def test_what_is_hidden_in_a_document_is_no_change(lab):
    put(lab, 'Part', 'part', Info={'owner': ACCOUNTS['bob']}, Main={'team': 'red'}, Secret={'pin': 1})
    ann, bob = (Holder(caller, 'Part').synchronise(lab) for caller in ('ann', 'bob'))
    before = dict(ann.members)
    put(lab, 'Part', 'part', Secret={'pin': 2})
    assert not incremental(ann, lab).ids and ann.members == before and incremental(bob, lab).ids == {'part'}
    put(lab, 'Part', 'part', Main={'team': 'red', 'more': 1})
    assert incremental(ann, lab).ids == incremental(bob, lab).ids == {'part'} and ann.members != before
    put(lab, 'Part', 'part', Info={'owner': ACCOUNTS['ann']})
    assert incremental(ann, lab).ids == {'part'}, 'it sees more of it now'
    delete(lab, 'Part', 'part')
    assert incremental(ann, lab).left == incremental(bob, lab).left == {'part'}
    assert 'part' not in Holder(None, 'Part').synchronise(lab).members


@pytest.mark.parametrize('change', ['roles', 'roles there and back', 'rules', 'schema', 'another account', 'nobody'])
def test_another_sight_is_answered_completely(lab, tmp_path, change):
    put(lab, 'Own', 'one', Info={'owner': ACCOUNTS['ann']}, Main={'team': 'red'})
    put(lab, 'Own', 'other', Info={'owner': ACCOUNTS['bob']}, Main={'team': 'red'})
    ann = Holder('ann', 'Own').synchronise(lab)
    assert set(incremental(ann, lab).members) == {'one'}
    if change.startswith('roles'):
        lab.put('lab', {'c': 'Account', 'id': ACCOUNTS['ann'], 'items': [{'c': 'Roles', 'j': {'roles': ['staff']}}]}, admin=True)
        assert change != 'roles' or set(ann.synchronise(lab).members) == {'one', 'other'} and ann.was_complete
        lab.put('lab', {'c': 'Account', 'id': ACCOUNTS['ann'], 'items': [{'c': 'Roles', 'j': {'roles': []}}]}, admin=True)
    elif change == 'rules':
        declare(lab, {**RULES, 'Own': {**RULES['Own'], 'list': ['account'], 'read': ['account']}})
        assert set(ann.synchronise(lab).members) == {'one', 'other'} and ann.was_complete
        declare(lab)
    elif change == 'schema':
        Schemas(lab, tmp_path).apply('lab', {**SCHEMA, 'New': {'open': True, 'items': {}}})
    else:
        ann.caller = {'another account': 'bob'}.get(change)
    expected = {'another account': {'other'}, 'nobody': set()}.get(change, {'one'})
    assert set(ann.synchronise(lab).members) == expected and ann.was_complete, change
    assert set(incremental(ann, lab).members) == expected
    for ident in ('one', 'other'):
        delete(lab, 'Own', ident)


def test_a_token_of_the_administrator_or_for_it(lab):
    put(lab, 'Own', 'one', Info={'owner': ACCOUNTS['ann']}, Main={'team': 'red'})
    param = {'c': 'Own', 'collection': 'team', 'value': 'red', 'want': 'ids'}
    token = lab.op('lab', 'collection', param, admin=True)['out']['token']
    bob = Holder('bob', 'Own')
    bob.token = token
    assert not bob.synchronise(lab).members and bob.was_complete
    assert lab.op('lab', 'collection', {**param, 'token': bob.token}, admin=True)['out']['complete']
    delete(lab, 'Own', 'one')


def test_a_stream_ends_with_a_token(lab):
    for ident in ('a', 'b', 'c'):
        put(lab, 'Own', ident, Info={'owner': ACCOUNTS['bob' if ident == 'b' else 'ann']}, Main={'team': 'red'})
    body = {'param': {'c': 'Own', 'collection': 'team', 'value': 'red', 'want': 'ids', 'stream': True}}
    *members, end = map(json.loads, lab.request('POST', '/lab/op/collection', json=body, headers=session('ann')).text.splitlines())
    assert [one[0] for one in members] == ['a', 'c'] and end['members'] == 2
    ann = Holder('ann', 'Own')
    ann.members, ann.token = dict(members), end['token']
    put(lab, 'Own', 'c', Info={'owner': ACCOUNTS['bob']})
    put(lab, 'Own', 'b', Info={'owner': ACCOUNTS['ann']})
    assert set(incremental(ann, lab).members) == {'a', 'b'} and ann.left == {'c'}
    for ident in ('a', 'b', 'c'):
        delete(lab, 'Own', ident)


def test_departures_that_are_purged(lab):
    """A token from before is answered completely; one from after it is not."""
    put(lab, 'Own', 'one', Info={'owner': ACCOUNTS['ann']}, Main={'team': 'red'})
    ann = Holder('ann', 'Own').synchronise(lab)
    put(lab, 'Own', 'one', Info={'owner': ACCOUNTS['bob']})
    late = Holder('ann', 'Own').synchronise(lab)
    lab.psql('lab', 'select stampd.purge_departures(stampd.stamp_now())')
    assert lab.psql('lab', 'select count(*) from stampd.sight') == [(0,)]
    assert not ann.synchronise(lab).members and ann.was_complete
    assert not incremental(late, lab).left
    delete(lab, 'Own', 'one')


# --- everything, judged again ---

class World:
    """What the documents are, and who sees them."""

    def __init__(self, stack, dice):
        self.stack, self.dice = stack, dice
        self.documents = {}  # (class, id): {item: content}
        self.roles = {caller: [] for caller in ACCOUNTS}
        self.known = {}      # (caller, class): ids that it could see at some time

    def crews_of(self, caller):
        return {ident for (name, ident), one in self.documents.items() if name == 'Crew' and ACCOUNTS[caller] in one['Member']}

    def sees(self, caller, name, ident):
        one = self.documents.get((name, ident))
        if one is None or caller is None:
            return False
        is_owner = one['Info'].get('owner') == ACCOUNTS[caller]
        member = one['Member'].get(ACCOUNTS[caller])
        return {'Own': is_owner or 'staff' in self.roles[caller],
                'Club': member is not None and member.get('role') in ('chief', 'clerk'),
                'Duty': is_owner or one['Info'].get('crew') in self.crews_of(caller),
                'Part': True,
                'Both': is_owner and member is not None}[name]

    def truth(self, caller, name, value):
        return {ident for (class_, ident), one in self.documents.items()
                if class_ == name and one['Main']['team'] == value and self.sees(caller, name, ident)}

    def note(self):
        for caller in ACCOUNTS:
            for name, ident in self.documents:
                if name != 'Crew' and self.sees(caller, name, ident):
                    self.known.setdefault((caller, name), set()).add(ident)

    def write(self, name, ident, **items):
        if self.dice.random() < 0.2 and name != 'Crew':
            for item, content in items.items():
                for key, one in content.items() if item == 'Member' else [('', content)]:
                    self.stack.psql('lab', 'select stampd.put_item(%s, %s, %s, %s, %s)', (name, ident, item, key, None if one is None else json.dumps(one)))
        else:
            put(self.stack, name, ident, **items)
        held = self.documents.setdefault((name, ident), {'Info': {}, 'Main': {'team': ''}, 'Member': {}})
        for item, content in items.items():
            if item == 'Member':
                held['Member'].update(content)
                held['Member'] = {key: one for key, one in held['Member'].items() if one is not None}
            else:
                held[item] = content

    def end(self, name, ident):
        if self.dice.random() < 0.3 and name != 'Crew':
            self.stack.psql('lab', 'select stampd.delete_document(%s, %s)', (name, ident))
        else:
            delete(self.stack, name, ident)
        self.documents.pop((name, ident), None)

    def someone(self):
        return self.dice.choice((*ACCOUNTS.values(), 'Z' * 22))

    def step(self):
        dice = self.dice
        name, ident = dice.choice(CLASSES), f'd{dice.randrange(6)}'
        is_there = (name, ident) in self.documents
        what = dice.random()
        if what < 0.06:
            caller = dice.choice(tuple(ACCOUNTS))
            self.roles[caller] = dice.choice(([], ['staff'], ['other']))
            self.stack.put('lab', {'c': 'Account', 'id': ACCOUNTS[caller], 'items': [{'c': 'Roles', 'j': {'roles': self.roles[caller]}}]}, admin=True)
        elif what < 0.2:
            crew = dice.choice(CREWS)
            if dice.random() < 0.15 and ('Crew', crew) in self.documents:
                self.end('Crew', crew)
            else:
                self.write('Crew', crew, Member={self.someone(): dice.choice(({}, {'role': 'chief'}, None))} if ('Crew', crew) in self.documents
                           else {self.someone(): {}})
        elif not is_there or what < 0.3:
            self.write(name, ident, Info={'owner': self.someone(), 'crew': dice.choice(CREWS)}, Main={'team': dice.choice(TEAMS)},
                       Member={self.someone(): {'role': dice.choice(ROLES)}})
        elif what < 0.42:
            self.end(name, ident)
        elif what < 0.56:
            self.write(name, ident, Main={'team': dice.choice(TEAMS), 'n': dice.random()})
        elif what < 0.72:
            self.write(name, ident, Info={'owner': self.someone(), 'crew': dice.choice(CREWS)})
        elif what < 0.86:
            self.write(name, ident, Member={self.someone(): dice.choice(({'role': dice.choice(ROLES)}, None))})
        else:
            self.write(name, ident, Secret={'pin': dice.random()})
        self.note()


@pytest.mark.parametrize('seed', range(3))
def test_every_copy_is_what_its_caller_sees(lab, seed):
    dice = random.Random(seed)
    for name, ident in [(row[0], row[1]) for row in lab.psql('lab', "select class, id from stampd.doc where ctime <> 0 and class <> 'Account'")]:
        delete(lab, name, ident)
    for caller in ACCOUNTS:
        lab.put('lab', account(caller), admin=True)
    world = World(lab, dice)
    holders = [Holder(caller, name, value, limit=dice.choice((1, 2, 100)), want=dice.choice(('ids', 'docs')))
               for caller in ACCOUNTS for name in CLASSES for value in TEAMS]
    partial = 0
    for turn in range(120):
        world.step()
        for holder in dice.sample(holders, 6):
            holder.synchronise(lab)
            assert set(holder.members) == world.truth(holder.caller, holder.name, holder.value), (seed, turn, holder.caller, holder.name, holder.answers)
            known = world.known.get((holder.caller, holder.name), set())
            assert holder.ids | holder.left <= known, (seed, turn, holder.caller, holder.name, holder.answers)
            partial += not holder.was_complete
    assert partial > 300, 'most answers have changes only'

"""Collections: members of a value synchronised by tokens, whatever changes and in whatever order commits become visible."""
import json
import random
import re
import threading

import psycopg2
import pytest

from collected import Collected
from holder import Copy
from schema import Schemas
from signed_texts import read_signed, sign
from stack import SOURCE, Problem, refused, stampctl, wait_until

STACK = {'workers': 3, 'postgres': {'wal_writer_delay': '10s'}}

PERSON = {'items': {'Main': {'singleton': True}, 'Note': {}},
          'collections': {'team': {'key': ['Main.team'], 'mutable': True},
                          'skill': {'key': ['Main.skills'], 'list': True, 'mutable': True},
                          'place': {'key': ['Main.town', 'Main.street'], 'mutable': True}},
          'unique': {'mail': {'key': ['Main.mail']}}}


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', {'Person': PERSON})
    return schemas


@pytest.fixture
def lab(stack, schemas):
    return stack


def put(stack, id_, content, **more):
    return stack.put('lab', {'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': content}], **more})


def ask(stack, collection, value, **more):
    return stack.op('lab', 'collection', {'c': 'Person', 'collection': collection, 'value': value, **more})['out']


class Holder(Collected):
    """What a client does: asks until there are no more pages."""

    def __init__(self, collection, value, limit=100, want='ids', copies=None):
        super().__init__(collection, value, copies)
        self.limit, self.want = limit, want

    def synchronise(self, stack):
        while True:
            self.apply(ask(stack, self.collection, self.value, want=self.want, limit=self.limit, **self.place()))
            if not self.cursor:
                return self

    def fetch(self, stack):
        """Brings the documents up to date, as far as is known that they are not."""
        older = self.older('Person')
        for first in range(0, len(older), 32):
            some = older[first:first + 32]
            for copy, answer in zip(some, stack.op('lab', 'sync', {}, syncs=[copy.request() for copy in some])['syncs']):
                copy.apply(answer)
        return self


def text_of(value):
    return ('true' if value else 'false') if isinstance(value, bool) else str(value)


def truth(stack, collection, value):
    """The members by the contents themselves."""
    found = {}
    for id_, version, content in stack.psql('lab', "select d.id, d.version, i.content::json from doc d join item i using (class, id)"
                                            " where class = 'Person' and ctime <> 0 and iclass = 'Main' and content is not null"):
        keys = PERSON['collections'][collection]['key']
        members = content if isinstance(content, dict) else {}
        values = [members.get(key.partition('.')[2]) for key in keys]
        if PERSON['collections'][collection].get('list'):
            is_in = isinstance(values[0], list) and value in values[0]
        else:
            is_in = values == (value if isinstance(value, list) else [value])
        if is_in:
            found[id_] = version
    return found


def test_members_arrive_change_and_leave(lab):
    holder = Holder('team', 'red').synchronise(lab)
    assert holder.was_complete and not holder.members
    put(lab, 'arrives', {'team': 'red'})
    put(lab, 'other', {'team': 'blue'})
    holder.synchronise(lab)
    assert not holder.was_complete and set(holder.members) == {'arrives'}
    version = put(lab, 'arrives', {'team': 'red', 'age': 3})
    assert holder.synchronise(lab).members == {'arrives': version}
    blue = Holder('team', 'blue').synchronise(lab)
    assert set(blue.members) == {'other'}
    put(lab, 'arrives', {'team': 'blue'})
    assert holder.synchronise(lab).members == {}
    assert set(blue.synchronise(lab).members) == {'other', 'arrives'}
    lab.put('lab', {'c': 'Person', 'id': 'other', 'delete': True})
    assert set(blue.synchronise(lab).members) == {'arrives'}


def test_all_of_a_class_is_followed_with_its_deletions(stack, schemas):
    """The declaration of keep-a-collection.md; `list` does not show what was deleted."""
    page = (SOURCE / 'doc/how-to/keep-a-collection.md').read_text()
    declaration, = (json.loads(block)['classes'] for block in re.findall(r'^```json\n(.*?)^```$', page, re.M | re.S) if '"Article"' in block)
    schemas.apply('lab', {'Person': PERSON, **declaration})

    def ask(**more):
        out = stack.op('lab', 'collection', {'c': 'Article', 'collection': 'all', 'value': 1, 'want': 'ids', **more})['out']
        return dict(out['ids']), {name for name, _ in out['left']}, out['token']

    def article(name, **more):
        return stack.put('lab', {'c': 'Article', 'id': name, 'items': [{'c': 'Main', 'j': {'all': 1, **more}}]})
    versions = {name: article(name) for name in 'abc'}
    found, _, token = ask()
    assert found == versions
    changed = article('a', title='new')
    assert stack.put('lab', {'c': 'Article', 'id': 'b', 'delete': True})
    after = stack.op('lab', 'list', {'c': 'Article', 'after': max(versions.values())})['out']['docs']
    assert [one['id'] for one in after] == ['a'], 'and not that b was deleted'
    found, left, _ = ask(token=token)
    assert found['a'] == changed and 'b' not in found and left == {'b'}
    for wrong, code in (({'c': 'Main', 'j': {'all': 2}}, 'ACONTENT'), ({'c': 'Main', 'j': {}}, 'ACONTENT'), ({'c': 'Main', 'del': True}, 'AFIXED')):
        assert refused(code, stack.put, 'lab', {'c': 'Article', 'id': 'a', 'items': [wrong]})
    assert refused('ACONTENT', stack.put, 'lab', {'c': 'Article', 'id': 'd', 'items': [{'c': 'Main', 'j': {'title': 'alone'}}]})
    schemas.apply('lab', {'Person': PERSON})


@pytest.fixture
def teams(stack, schemas):
    """Documents of before the declaration are in it too."""
    stack.put('lab', {'c': 'Team', 'id': 'old', 'items': [{'c': 'Member', 'k': 'ann', 'j': {}}, {'c': 'Other', 'k': 'eve', 'j': {}}]})
    team = {'items': {'Member': {}, 'Other': {}, 'Raw': {'raw': True}, 'Main': {'singleton': True}}, 'collections': {'of': {'keys': 'Member', 'mutable': True}, 'kept': {'keys': 'Other'}}}
    schemas.apply('lab', {'Person': PERSON, 'Team': team})
    yield lambda account, **more: stack.op('lab', 'collection', {'c': 'Team', 'collection': more.pop('collection', 'of'), 'value': account, 'want': 'ids', **more})['out']
    schemas.apply('lab', {'Person': PERSON})


def test_the_keys_of_items_are_a_collection(stack, schemas, teams):
    """What is shared with me, without a second list."""
    def team(name, *items, **more):
        return stack.put('lab', {'c': 'Team', 'id': name, 'items': list(items), **more})

    def member(key, **content):
        return {'c': 'Member', 'k': key, 'j': content}

    def ids(account, **more):
        return [id_ for id_, _ in teams(account, **more)['ids']]
    assert ids('ann') == ['old'] and ids('eve') == [] and ids('eve', collection='kept') == ['old']
    token = teams('bob')['token']
    version = team('red', member('ann', role='chief'), member('bob'), {'c': 'Raw', 'k': 'eve', 's': 'x'}, {'c': 'Main', 'j': {'Member': 'eve'}})
    assert ids('ann') == ['old', 'red'] and ids('eve') == [] and teams('bob', token=token)['ids'] == [['red', version]]
    team('red', {'c': 'Member', 'k': 'ann', 'del': True})
    gone = teams('bob', token=token)
    assert ids('ann') == ['old'] and [id_ for id_, _ in gone['ids']] == ['red'] and gone['left'] == []
    version = team('red', {'c': 'Member', 'k': 'bob', 'j': None})
    assert teams('bob', token=gone['token'])['left'] == [['red', version]]
    refused('AFIXED', team, 'old', {'c': 'Other', 'k': 'eve', 'del': True})
    for key in ('é' * 100, 'Member.x', "it's", '1'):
        team('odd', member(key))
        assert ids(key) == ['odd']
    assert ids(1) == ['odd'], 'as a number is written'
    team('odd', delete=True)
    assert ids('1') == []
    assert 'collection of Member, list, mutable' in stack.admin('schema', 'show', 'lab').out


@pytest.mark.parametrize('collection', [{'keys': 'Main'}, {'keys': 'Raw'}, {'keys': 'None'}, {'keys': ''}, {'keys': 1}, {'keys': ['Member']}, {'keys': None}, {'keys': 'Member.x'},
                                        {'keys': 'Member', 'key': ['Main.x']}, {'keys': 'Member', 'list': True}, {}])
def test_a_declaration_of_keys_that_cannot_be(tmp_path, collection):
    path = tmp_path / 'schema.json'
    items = {'Main': {'singleton': True}, 'Member': {}, 'Raw': {'raw': True}}
    path.write_text(json.dumps({'classes': {'Team': {'items': items, 'collections': {'of': collection}}}}))
    assert 'classes.Team.collections.of' in stampctl('schema', 'check', path, status=1).error


def test_another_item_of_the_document_is_a_change_too(lab):
    put(lab, 'noted', {'team': 'notes'})
    holder = Holder('team', 'notes').synchronise(lab)
    version = lab.put('lab', {'c': 'Person', 'id': 'noted', 'items': [{'c': 'Note', 'k': 'a', 'j': 1}]})
    assert holder.synchronise(lab).members == {'noted': version}


def test_documents_come_with_their_contents(lab):
    put(lab, 'whole', {'team': 'whole', 'é': '\U0001f600'})
    out = ask(lab, 'team', 'whole')
    assert [document['id'] for document in out['docs']] == ['whole']
    assert out['docs'][0] == lab.get('lab', ('Person', 'whole'))
    lab.put('lab', {'c': 'Person', 'id': 'whole', 'delete': True})
    out = ask(lab, 'team', 'whole', token=out['token'])
    assert out['docs'] == [] and [id_ for id_, _ in out['left']] == ['whole']


@pytest.mark.parametrize('content, collection, value', [
    ({'team': 7}, 'team', 7), ({'team': True}, 'team', True), ({'team': ''}, 'team', ''), ({'team': '7:x'}, 'team', '7:x'),
    ({'town': 'a', 'street': 'b'}, 'place', ['a', 'b']), ({'town': '1:a', 'street': ''}, 'place', ['1:a', '']),
    ({'skills': ['c', 'c', 'sql']}, 'skill', 'c'), ({'team': '\u00e9' * 127}, 'team', '\u00e9' * 127), ({'team': 'x' * 256}, 'team', 'x' * 256)])
def test_kinds_of_values(lab, content, collection, value):
    id_ = f'kind {content}'[:60]
    put(lab, id_, content)
    assert id_ in Holder(collection, value).synchronise(lab).members


@pytest.mark.parametrize('content', [{'team': None}, {'team': ['kinds']}, {'team': {}}, {'team': [['x']]}, {'town': 'kinds'}, 'kinds', ['kinds'], {}])
def test_documents_without_a_value_are_in_no_collection(lab, content):
    id_ = f'none {content}'[:60]
    put(lab, id_, content)
    assert lab.psql('lab', 'select value from member where id = %s and not has_left', (id_,)) == []


def test_pages(lab):
    for first in range(0, 60, 20):
        lab.put('lab', *({'c': 'Person', 'id': f'page{first + number}', 'items': [{'c': 'Main', 'j': {'team': 'pages'}}]} for number in range(20)))
    holder = Holder('team', 'pages', limit=7).synchronise(lab)
    assert holder.members == truth(lab, 'team', 'pages') and len(holder.members) == 60


def test_changes_between_pages_are_told_by_the_next_synchronisation(lab):
    for number in range(10):
        put(lab, f'moving{number}', {'team': 'moving'})
    out = ask(lab, 'team', 'moving', limit=5, want='ids')
    put(lab, out['ids'][0][0], {'team': 'moved'})
    put(lab, 'moving9', {'team': 'moved'})
    seen = {id_ for id_, _ in out['ids']}
    while 'cursor' in out:
        out = ask(lab, 'team', 'moving', limit=5, want='ids', cursor=out['cursor'])
        seen |= {id_ for id_, _ in out['ids']}
    left = ask(lab, 'team', 'moving', want='ids', token=out['token'])['left']
    assert seen - {id_ for id_, _ in left} == set(truth(lab, 'team', 'moving'))


def test_a_commit_that_becomes_visible_late_is_not_missed(lab):
    """Its version and its transaction are older than what the holder has seen meanwhile."""
    put(lab, 'late', {'team': 'before'})
    late = psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd')
    with late.cursor() as cursor:
        cursor.execute("select put_item('Person', 'late', 'Main', '', '{\"team\": \"late\"}')")
        put(lab, 'early', {'team': 'late'})
        holder = Holder('team', 'late').synchronise(lab)
        before = Holder('team', 'before').synchronise(lab)
        assert set(holder.members) == {'early'} and 'late' in before.members
        late.commit()
    late.close()
    assert set(holder.synchronise(lab).members) == {'early', 'late'}
    assert 'late' not in before.synchronise(lab).members


def test_histories(lab):
    """Random changes, some in transactions that stay open, and holders of tokens of any age."""
    seed = random.randrange(1 << 30)
    print(f'seed {seed}')
    dice = random.Random(seed)
    teams, skills = ['t1', 't2'], ['s1', 's2', 's3']
    holders = [Holder(collection, value, limit=dice.choice((2, 100))) for collection, values in (('team', teams), ('skill', skills)) for value in values
               for _ in range(3)]
    open_ones = {}
    for _ in range(150):
        id_ = f'h{dice.randrange(8)}'
        content = {'team': dice.choice(teams), 'skills': dice.sample(skills, dice.randrange(4))}
        chance = dice.random()
        if id_ in open_ones:
            open_ones.pop(id_).close_with(dice.random() < 0.7)
        elif chance < 0.2:
            open_ones[id_] = Open(lab, id_, content)
        elif chance < 0.35:
            lab.put('lab', {'c': 'Person', 'id': id_, 'delete': True})
        else:
            put(lab, id_, content)
        if dice.random() < 0.3:
            dice.choice(holders).synchronise(lab)
        if dice.random() < 0.05:
            lab.psql('lab', 'select purge_members(stamp_now(), %s)', (dice.choice((1, 100)),))
    for one in open_ones.values():
        one.close_with(True)
    for holder in holders:
        wanted = {id_: version for id_, version in truth(lab, holder.collection, holder.value).items() if id_.startswith('h')}
        holder.synchronise(lab)
        assert {id_: version for id_, version in holder.members.items() if id_.startswith('h')} == wanted


def test_a_departure_is_told_whatever_version_is_held_meanwhile(lab):
    """The document changes once more after it has left, and the holder hears of that first."""
    put(lab, 'leaver', {'team': 'left'})
    for want in ('ids', 'docs'):
        holder = Holder('team', 'left', want=want).synchronise(lab).fetch(lab)
        assert set(holder.members) == {'leaver'}
        put(lab, 'leaver', {'team': 'elsewhere'})
        newer = lab.put('lab', {'c': 'Person', 'id': 'leaver', 'items': [{'c': 'Note', 'k': want, 'j': 1}]})
        copy = holder.copies['leaver']
        copy.apply(lab.op('lab', 'sync', {}, syncs=[copy.request()])['syncs'][0])
        assert copy.version == newer
        out = ask(lab, 'team', 'left', want=want, token=holder.token)
        assert [id_ for id_, _ in out['left']] == ['leaver'] and out['left'][0][1] < newer
        assert holder.synchronise(lab).members == {}
        put(lab, 'leaver', {'team': 'left'})


def test_one_that_is_gone_when_its_page_is_written_has_left(lab):
    """Documents are the newest, so one may be gone that the page has as a member."""
    put(lab, 'gone', {'team': 'goes'})
    holder = Holder('team', 'goes', want='docs').synchronise(lab)
    # The row of the member stays as it was; the document is deleted behind its back.
    lab.psql('lab', "update doc set version = version_above(version), ctime = 0, dtime = 0, v1 = 0 where class = 'Person' and id = 'gone'")
    lab.psql('lab', "update member set xid = pg_current_xact_id() where id = 'gone'")
    lab.psql('lab', "select pg_notify('stampd', 'all')")
    wait_until(lambda: lab.get('lab', ('Person', 'gone'))['v'] == 0 or lab.get('lab', ('Person', 'gone')).get('items') == [])
    out = ask(lab, 'team', 'goes', token=holder.token)
    assert out['docs'] == [] and [id_ for id_, _ in out['left']] == ['gone']
    lab.psql('lab', "delete from item where class = 'Person' and id = 'gone'")
    lab.psql('lab', "select export_wipe('Person', 'gone')")


def test_holders_who_combine_all_answers(lab):
    """Collections with documents or without, tokens of any age, and synchronisations of single documents, all in one store of copies."""
    seed = random.randrange(1 << 30)
    print(f'seed {seed}')
    dice = random.Random(seed)
    teams, ids = ['c1', 'c2', 'c3'], [f'c{number}' for number in range(12)]
    clients = [{} for _ in range(20)]
    holders = [Holder('team', team, limit=dice.choice((1, 3, 100)), want=want, copies=copies)
               for copies in clients for team in dice.sample(teams, 2) for want in ('ids', 'docs')]
    is_over = threading.Event()

    def write(own):
        while not is_over.is_set():
            id_ = own.choice(ids)
            if own.random() < 0.15:
                lab.put('lab', {'c': 'Person', 'id': id_, 'delete': True})
            elif own.random() < 0.2:
                late = Open(lab, id_, {'team': own.choice(teams), 'late': own.random()})
                is_over.wait(0.02)
                late.close_with(own.random() < 0.7)
            else:
                put(lab, id_, {'team': own.choice(teams), 'n': own.random()})

    def hold(own, mine):
        while not is_over.is_set():
            holder = own.choice(mine)
            if own.random() < 0.3:  # some documents, whoever holds them
                copies = [holder.copies.setdefault(id_, Copy('Person', id_)) for id_ in own.sample(ids, 4)]
                for copy, answer in zip(copies, lab.op('lab', 'sync', {}, syncs=[copy.request() for copy in copies])['syncs']):
                    copy.apply(answer)
            elif own.random() < 0.2 and holder.token and not holder.cursor:  # a page, and no more: the rest when it comes again
                holder.apply(ask(lab, holder.collection, holder.value, want=holder.want, limit=1, token=holder.token))
            else:
                holder.synchronise(lab)
                if own.random() < 0.5:
                    holder.fetch(lab)

    threads = [threading.Thread(target=write, args=(random.Random(dice.random()),)) for _ in range(2)]
    threads += [threading.Thread(target=hold, args=(random.Random(dice.random()), holders[part::4])) for part in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        is_over.wait(1)
        lab.psql('lab', 'select purge_members(stamp_now(), %s)', (dice.choice((1, 100)),))
    is_over.set()
    for thread in threads:
        thread.join()
    stored = {id_: content for id_, content in lab.psql('lab', "select id, content from item where class = 'Person' and iclass = 'Main' and content is not null")}
    for holder in holders:
        if holder.cursor:  # the pages that it began with are as old as the first of them
            holder.synchronise(lab)
        holder.synchronise(lab).fetch(lab)
        assert holder.members == truth(lab, 'team', holder.value)
        for id_, version in holder.members.items():
            assert holder.copies[id_].version == version and holder.copies[id_].items['Main', None] == json.loads(stored[id_])


class Open:
    """A change that is not committed yet."""

    def __init__(self, stack, id_, content):
        self.connection = psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd')
        with self.connection.cursor() as cursor:
            cursor.execute("select put_item('Person', %s, 'Main', '', %s)", (id_, json.dumps(content)))

    def close_with(self, is_committed):
        if is_committed:
            self.connection.commit()
        self.connection.close()


def test_departures_that_were_forgotten_make_it_complete(lab):
    put(lab, 'forgotten', {'team': 'purged'})
    put(lab, 'stays', {'team': 'purged'})
    holder = Holder('team', 'purged').synchronise(lab)
    put(lab, 'forgotten', {'team': 'elsewhere'})
    lab.older_transactions_end()
    new = Holder('team', 'purged').synchronise(lab)
    lab.psql('lab', 'select purge_members(stamp_now())')
    assert holder.synchronise(lab).was_complete and set(holder.members) == {'stays'}
    assert not new.synchronise(lab).was_complete and set(new.members) == {'stays'}


def test_after_a_restore_tokens_are_of_no_use(lab):
    put(lab, 'restored', {'team': 'restored'})
    holder = Holder('team', 'restored').synchronise(lab)
    lab.psql('lab', 'select after_restore()')
    assert holder.synchronise(lab).was_complete
    assert holder.members == truth(lab, 'team', 'restored')
    assert not holder.synchronise(lab).was_complete


def test_another_declaration_under_the_same_name(lab, schemas):
    put(lab, 'declared', {'team': 'one', 'group': 'two'})
    holder = Holder('team', 'two').synchronise(lab)
    assert not holder.members
    other = {**PERSON, 'collections': {**PERSON['collections'], 'team': {'key': ['Main.group'], 'mutable': True}}}
    schemas.apply('lab', {'Person': other})
    assert set(holder.synchronise(lab).members) == {'declared'} and holder.was_complete
    schemas.apply('lab', {'Person': PERSON})
    assert holder.synchronise(lab).members == {} and holder.was_complete


def test_a_collection_declared_while_others_write(lab, schemas):
    for number in range(50):
        put(lab, f'older{number}', {'late': 'x'})
    is_over = threading.Event()

    def write():
        number = 0
        while not is_over.is_set():
            put(lab, f'older{number % 60}', {'late': 'x' if number % 3 else 'y', 'n': number})
            number += 1
    writer = threading.Thread(target=write)
    writer.start()
    try:
        schemas.apply('lab', {'Person': {**PERSON, 'collections': {**PERSON['collections'], 'late': {'key': ['Main.late'], 'mutable': True}}}})
    finally:
        is_over.set()
        writer.join()
    rows = lab.psql('lab', "select i.id, i.content::json ->> 'late' from item i where class = 'Person' and iclass = 'Main' and content::json ->> 'late' is not null")
    members = lab.psql('lab', "select m.id, m.value from member m join collection c on c.number = m.collection where c.name = 'late' and not has_left")
    assert sorted(members) == sorted(rows)
    schemas.apply('lab', {'Person': PERSON})


def test_truncation_is_told(lab):
    put(lab, 'truncated', {'team': 'truncated', 'mail': 'truncated@example.org'})
    holder = Holder('team', 'truncated').synchronise(lab)
    lab.psql('lab', 'truncate doc, item')
    assert holder.synchronise(lab).was_complete and not holder.members
    wait_until(lambda: lab.get('lab', ('Person', 'truncated'))['v'] == 0)
    put(lab, 'another', {'mail': 'truncated@example.org'})


# --- unique properties ---

def test_a_value_is_taken_once(lab):
    put(lab, 'first', {'mail': 'a@example.org'})
    with pytest.raises(Problem) as refused:
        put(lab, 'second', {'mail': 'a@example.org'})
    assert refused.value.code == 'AUNIQUE'
    assert lab.get('lab', ('Person', 'second'))['v'] == 0
    put(lab, 'first', {'mail': 'a@example.org', 'age': 1})
    put(lab, 'first', {'mail': 'b@example.org'})
    put(lab, 'second', {'mail': 'a@example.org'})
    lab.put('lab', {'c': 'Person', 'id': 'first', 'items': [{'c': 'Main', 'j': {'mail': 'c@example.org'}}]},
            {'c': 'Person', 'id': 'third', 'items': [{'c': 'Main', 'j': {'mail': 'b@example.org'}}]})
    lab.put('lab', {'c': 'Person', 'id': 'second', 'delete': True})
    put(lab, 'fourth', {'mail': 'a@example.org'})
    for id_ in ('no1', 'no2'):
        put(lab, id_, {'team': 'x'})  # without a value there is nothing to be unique


def test_one_of_many_who_want_a_value_gets_it(lab):
    codes = []

    def want(number):
        try:
            put(lab, f'race{number}', {'mail': 'race@example.org'})
            codes.append('done')
        except Problem as problem:
            codes.append(problem.code)
    threads = [threading.Thread(target=want, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == ['AUNIQUE'] * 5 + ['done']
    assert lab.psql('lab', "select count(*) from unique_value where value = 'race@example.org'") == [(1,)]


def test_what_is_there_twice_cannot_be_declared_unique(lab, schemas):
    for id_ in ('twice1', 'twice2'):
        put(lab, id_, {'badge': '7'})
    schemas.set('lab', {'Person': {**PERSON, 'unique': {**PERSON['unique'], 'badge': {'key': ['Main.badge']}}}})
    assert 'unique property badge' in schemas.run('apply', 'lab', status=1)
    put(lab, 'twice3', {'badge': '7'})
    schemas.apply('lab', {'Person': PERSON})
    put(lab, 'twice3', {'badge': '7', 'n': 1})


# --- what is wrong ---

@pytest.mark.parametrize('param, code', [
    ({}, 'AARG'), ({'c': 'Person'}, 'AARG'), ({'c': 'Person', 'collection': 'team'}, 'AARG'), ({'c': 'Person', 'collection': 'none', 'value': 'x'}, 'NCOLLECTION'),
    ({'c': 'Nobody', 'collection': 'team', 'value': 'x'}, 'NCOLLECTION'), ({'c': 'Person', 'collection': 'team', 'value': None}, 'AARG'),
    ({'c': 'Person', 'collection': 'team', 'value': {}}, 'AARG'), ({'c': 'Person', 'collection': 'team', 'value': []}, 'AARG'),
    ({'c': 'Person', 'collection': 'team', 'value': ['x'] * 5}, 'AARG'), ({'c': 'Person', 'collection': 'team', 'value': [['x']]}, 'AARG'),
    ({'c': 'Person', 'collection': 'team', 'value': 'x', 'limit': 0}, 'AARG'), ({'c': 'Person', 'collection': 'team', 'value': 'x', 'limit': 1001}, 'AARG'),
    ({'c': 'Person', 'collection': 'team', 'value': 'x', 'want': 'all'}, 'AARG'), ({'c': 'Person', 'collection': 'team', 'value': 'x', 'token': 'x'}, 'AARG'),
    ({'c': 'Person', 'collection': 'team', 'value': 'x', 'token': ''}, 'AARG'), ({'c': 'Person', 'collection': 'team', 'value': 'x', 'cursor': '1'}, 'AARG'),
    ({'c': "Person'; drop", 'collection': 'team', 'value': 'x'}, 'AARG'), ({'c': 'Person', 'collection': 'x' * 256, 'value': 'x'}, 'ALIMIT')])
def test_wrong_questions(lab, param, code):
    with pytest.raises(Problem) as refused:
        lab.op('lab', 'collection', param)
    assert refused.value.code == code


def test_tokens_and_cursors_belong_to_their_question(lab):
    for number in range(4):
        put(lab, f'token{number}', {'team': 'token', 'skills': ['token']})
    out = ask(lab, 'team', 'token', limit=2, want='ids')
    token = ask(lab, 'team', 'token')['token']
    altered = token[:-2] + ('7' if token[-2] != '7' else '8') + token[-1]
    for collection, value, place in (('team', 'tokem', {'token': token}), ('skill', 'token', {'token': token}), ('team', 'token', {'token': altered}),
                                     ('team', 'token', {'token': out['cursor']}), ('team', 'token', {'cursor': token}),
                                     ('skill', 'token', {'cursor': out['cursor']}), ('team', 'token', {'cursor': out['cursor'] + '0'})):
        with pytest.raises(Problem) as refused:
            ask(lab, collection, value, **place)
        assert refused.value.code == 'AARG'


@pytest.mark.parametrize('want', ['docs', 'ids'])
def test_a_cursor_and_a_token_together_are_refused(lab, want):
    """A client that lays a new position over an old one would get the end of its first load again and again."""
    for number in range(4):
        put(lab, f'both{number}', {'team': 'both'})
    cursor = ask(lab, 'team', 'both', limit=2, want=want)['cursor']
    token = ask(lab, 'team', 'both', want=want)['token']
    problem = refused('AARG', ask, lab, 'team', 'both', want=want, limit=2, cursor=cursor, token=token)
    assert 'without a token' in str(problem)
    assert len(ask(lab, 'team', 'both', want=want, cursor=cursor)[want]) == 2 and not ask(lab, 'team', 'both', want=want, token=token)[want]


def test_forged_tokens_and_cursors_are_refused_or_harm_nobody(lab):
    put(lab, 'forged', {'team': 'forged'})
    true = ask(lab, 'team', 'forged')['token']
    question = ('lab', 'Person', 'team', 'forged')
    life, number, horizon, minute = map(int, read_signed(lab, 'lab', true, *question).split())

    def answer(what, *numbers, behind='', of=question):
        return ask(lab, 'team', 'forged', **{what: sign(lab, 'lab', ' '.join(map(str, numbers)) + ' ' + behind, *of)})

    assert answer('token', life, number, horizon, minute)['complete'] is False
    wrong = [('token', (life, number, horizon + 10**9, minute)), ('token', (life, number, -1, minute)), ('token', (life, number, horizon, -1)),
             ('token', (life, number, horizon)), ('token', (life, number, horizon, minute, 1)), ('token', ('x', number, horizon, minute)),
             ('token', (10**30, number, horizon, minute)), ('token', (life, number, f'{horizon}.5', minute)),
             ('cursor', (0, life, number, horizon, horizon, minute)), ('cursor', (0, life, number, -horizon, horizon, minute, 1)),
             ('cursor', (0, life, number, horizon + 10**9, horizon, minute, 1))]
    for what, numbers in wrong:
        with pytest.raises(Problem) as refused:
            answer(what, *numbers)
        assert refused.value.code == 'AARG', (what, numbers)
    with pytest.raises(Problem, match='AARG'):  # of another namespace
        answer('token', life, number, horizon, minute, of=('demo', *question[1:]))
    for elsewhere in ((life + 1, number, horizon, minute), (life, number + 10**6, horizon, minute)):  # of before a restore, of another declaration
        assert answer('token', *elsewhere)['complete']
    assert [document['id'] for document in answer('cursor', 1, life, number, 0, horizon, minute, 0, behind="'; drop table member; --")['docs']] == ['forged']
    answer('token', life, number, 0, 2**62)  # from the future: its ends are not told to who claims to know them
    assert ask(lab, 'team', 'forged', token=true)['complete'] is False


def test_numbers_of_transactions_given_twice_after_a_crash(lab):
    """PostgreSQL forgets the numbers of those that were undone just before it crashed, and gives them again."""
    holder = Holder('team', 'crash').synchronise(lab)
    undone = psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd')
    for _ in range(30):
        with undone.cursor() as cursor:
            cursor.execute('select pg_current_xact_id()')
        undone.rollback()
    holder.synchronise(lab)
    undone.close()
    lab.restart_postgres('kill')
    wait_until(lambda: lab.ping('lab').json()['db'] == 'ok')
    put(lab, 'crash', {'team': 'crash'})
    assert set(holder.synchronise(lab).members) == {'crash'}
    put(lab, 'crash too', {'team': 'crash'})
    assert set(holder.synchronise(lab).members) == {'crash', 'crash too'} and not holder.was_complete


# --- values ---

def test_a_value_has_one_part_for_each_property(lab):
    """A shorter or longer value is that of nothing: an empty answer would look like a collection without members."""
    def refused(at, ask, count):
        with pytest.raises(Problem) as caught:
            ask()
        body = caught.value.body
        assert (caught.value.code, body.get('at')) == ('AARG', at) and f'expected: {count}.' in body['message'], body

    put(lab, 'counted', {'team': 'red', 'town': 'x', 'street': 'y'})
    for collection, right, count in (('team', ['red'], 1), ('place', ['x', 'y'], 2)):
        assert ask(lab, collection, right, want='ids')['ids']
        for wrong in (['x'], 'x', ['x', 'y'], ['x', 'y', 'z'], 7, True):
            if (len(wrong) if isinstance(wrong, list) else 1) == count:
                continue
            for more in ({}, {'want': 'ids'}, {'stream': True}, {'limit': 1}):
                refused('/param/value', lambda collection=collection, wrong=wrong, more=more: ask(lab, collection, wrong, **more), count)
            text = f'Person/{collection}@' + '@'.join(map(str, wrong if isinstance(wrong, list) else [wrong]))
            refused('/param/defs/0', lambda text=text: lab.op('lab', 'subs', {'defs': [text], 'life': 60}, session='session-of-counts-1'), count)
            answer = lab.request('POST', '/lab/live', json={'defs': ['Person', text]})
            assert answer.status_code == 400 and answer.json()['code'] == 'AARG' and text in answer.json()['args'], answer.text

"""Subscriptions: what a session declares, what the answers to it tell, who is woken; a touched one is never missed."""
import base64
import json
import random
import secrets
import threading
import time
import urllib.parse

import psycopg2
import pytest
import requests

from clock import Clock, in_one_minute
from schema import Schemas
from stack import Problem, refused, wait_until

CLOCK = Clock()
MOST, MOST_WOKEN = 12000, 10000
# More workers than those who write at once: when all others are at commits for two seconds, the last one begins none.
STACK = {'workers': 8, 'settings': {**CLOCK.settings, 'limit_definitions': 1000, 'limit_subscriptions': MOST, 'subscription_trial_min': 0}}
PERSON = {'items': {'Main': {'singleton': True}, 'Note': {}},
          'collections': {'team': {'key': ['Main.team'], 'mutable': True},
                          'skill': {'key': ['Main.skills'], 'list': True, 'mutable': True},
                          'place': {'key': ['Main.town', 'Main.street'], 'mutable': True}}}
DAY = 24 * 60
POINT = 'BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU'  # of the curve P-256


@pytest.fixture(scope='module')
def lab(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Person': PERSON})
    return stack


@pytest.fixture
def session():
    return secrets.token_urlsafe(24)


def clear(lab):
    for table in 'taskqueue', 'subscription', 'subscription_definition', 'subscription_matched':
        lab.psql('lab', f'delete from {table}')


@pytest.fixture
def waking(lab):
    clear(lab)
    lab.psql('lab', 'select wake_sessions(true)')
    yield lab
    lab.psql('lab', 'select wake_sessions(false)')
    clear(lab)


def client(lab):
    """A connection of its own, for a thread."""
    http = requests.Session()
    http.trust_env, http.verify = False, lab.http.verify
    return http


def b64(size, first=4):
    return base64.urlsafe_b64encode(bytes([first]) + bytes(size - 1)).rstrip(b'=').decode()


# A point of the curve: that of the example in RFC 8291.
POINT = 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'


def address(name='one'):
    return {'endpoint': f'https://push.example/{name}', 'p256dh': POINT, 'auth': b64(16)}


def subs(stack, session, param=None, **more):
    return stack.op('lab', 'subs', param, session=session, **more).get('out')


def part(text):
    return urllib.parse.quote(text, safe='')


def person(id_, delete=False, **content):
    document = {'c': 'Person', 'id': id_}
    return {**document, 'delete': True} if delete else {**document, 'items': [{'c': 'Main', 'j': content}]}


def write(stack, session, *documents, **more):
    """The member `subs` of the answer, definitions only; checks the versions."""
    answer = stack.op('lab', 'put', {'docs': list(documents)}, session=session, **more)
    touched = answer.get('subs', 'absent')
    if isinstance(touched, list):
        assert all(version == answer['out']['v'] for _, version in touched)
        return [text for text, _ in touched]
    return touched


def noted(stack, session):
    """What is to be told to the session."""
    return sorted(text for text, in stack.psql('lab', 'select f.def from subscription_matched t join subscription_definition f using (session, key)'
                                               ' where session = %s and taken = 0', (session,)))


def tasks(stack):
    return sorted(row for row, in stack.psql('lab', "select resource from taskqueue where opname = 'push' and starttime is null"))


# --- a subscription ---

def test_it_is_declared_changed_and_ended(lab, session):
    refused('NSUBSCRIPTION', subs, lab, session)
    for change in {'life': 5}, {'drop': ['Note']}:
        refused('NSUBSCRIPTION', subs, lab, session, change)
    minute = int(time.time()) // 60
    # A later minute has a later end.
    out, *again = in_one_minute(lambda: [subs(lab, session, param) for param in ({'defs': ['Person', 'Note/a%20b', 'Person/team@red', 'Person']}, None, {})])
    assert out['defs'] == ['Note/a%20b', 'Person', 'Person/team@red'] and out['push'] is False and 'context' not in out
    assert minute + DAY <= out['until'] <= int(time.time()) // 60 + DAY
    assert again == [out] * 2
    second = subs(lab, session, {'add': ['Note/a b', 'Other/x'], 'drop': ['Person', 'Nobody/has@it'], 'context': '{"url":"/é"}', 'life': 10 * DAY})
    assert second['defs'] == ['Note/a b', 'Other/x', 'Person/team@red'], 'one definition, as it was written last'
    assert second['context'] == '{"url":"/é"}' and second['v'] > out['v'] and second['until'] >= out['until'] + 9 * DAY
    third = subs(lab, session, {'defs': [], 'push': address()})
    assert third['defs'] == [] and third['push'] is True and third['context'] and third['until'] == second['until']
    assert subs(lab, session, {'life': 1})['until'] < third['until'], 'what is told counts'
    assert 'push.example' not in json.dumps(subs(lab, session)), 'the address is told to nobody'
    assert subs(lab, session, {'push': None, 'context': None}).items() >= {'push': False, 'defs': []}.items()
    assert subs(lab, session, {'delete': True}) is None and subs(lab, session, {'delete': True}) is None
    refused('NSUBSCRIPTION', subs, lab, session)
    assert subs(lab, session, {'add': ['Note']})['defs'] == ['Note'], 'nothing of the one before'


def test_the_form_of_browsers(lab, session):
    one = address()
    form = {'endpoint': one['endpoint'], 'expirationTime': None, 'keys': {'p256dh': one['p256dh'] + '=', 'auth': one['auth'] + '=='}}
    assert subs(lab, session, {'defs': [], 'push': form})['push'] is True


def test_it_survives_a_restart_and_every_worker_knows_it(lab, session):
    out = subs(lab, session, {'defs': ['Note', 'Person/skill@c']})
    lab.restart_stampd()
    assert all(subs(lab, session) == out for _ in range(6))
    assert write(lab, session, person('restart', skills=['c'])) == ['Person/skill@c']


def test_life_ends_and_what_has_ended_is_purged(lab, session):
    def note():
        return {'c': 'Note', 'id': 'life', 'items': [{'c': 'T', 'j': secrets.token_hex()}]}

    def told_in_its_last_minute():
        CLOCK.set(0)
        subs(lab, session, {'defs': ['Note'], 'life': 5, 'push': address(), 'context': 'x'})
        CLOCK.set(4)
        return write(lab, session, note())
    assert in_one_minute(told_in_its_last_minute) == ['Note']
    CLOCK.set(6)
    refused('NSUBSCRIPTION', subs, lab, session)
    refused('NSUBSCRIPTION', subs, lab, session, {'life': 9})  # nothing brings it back
    assert write(lab, session, note()) is None
    assert subs(lab, session, {'add': ['Other']}).items() >= {'defs': ['Other'], 'push': False}.items()
    CLOCK.set(0)
    lab.psql('lab', 'update subscription set until = present_minute() where session = %s', (session,))
    lab.psql('lab', "insert into subscription_matched (session, key, version) values (%s, 'cOther/@', 1)", (session,))
    while lab.psql('lab', 'select purge_subscriptions(1)')[0][0]:
        pass
    for table in 'subscription', 'subscription_definition', 'subscription_matched':
        assert lab.psql('lab', f'select count(*) from {table} where session = %s', (session,)) == [(0,)]


# --- the answer ---

def test_what_a_commit_touches_is_told_exactly(lab, session):
    definitions = ['Person', 'Person/ann', 'Person/bob', 'Person/team@red', 'Person/team@blue', 'Person/skill@c', 'Person/skill@sql',
                   'Person/place@Paris@rue%20X', 'Person/place@Paris@', 'Note', 'Note/ann', 'Person/team@7', 'Person/team@true']
    subs(lab, session, {'defs': definitions})

    def told(*documents):
        return set(write(lab, session, *documents))

    base = {'Person', 'Person/ann'}
    assert told(person('ann', team='red', skills=['c', 'sql', 'c'])) == base | {'Person/team@red', 'Person/skill@c', 'Person/skill@sql'}
    assert told(person('ann', team='red', skills=['c'])) == base | {'Person/team@red', 'Person/skill@c', 'Person/skill@sql'}, 'one is left'
    assert told({'c': 'Person', 'id': 'ann', 'items': [{'c': 'Note', 'k': 'k', 'j': 1}]}) == base | {'Person/team@red', 'Person/skill@c'}
    assert told(person('ann', team='blue')) == base | {'Person/team@red', 'Person/team@blue', 'Person/skill@c'}
    assert told(person('ann', team='green', town='Paris', street='rue X')) == base | {'Person/team@blue', 'Person/place@Paris@rue%20X'}
    assert told(person('ann', team=7, town='Paris', street='')) == base | {'Person/team@7', 'Person/place@Paris@rue%20X', 'Person/place@Paris@'}
    assert told(person('ann', team=True)) == base | {'Person/team@7', 'Person/team@true', 'Person/place@Paris@'}
    assert told(person('ann', team='red'), person('bob', team='blue')) == base | {
        'Person/bob', 'Person/team@true', 'Person/team@red', 'Person/team@blue'}
    assert told(person('ann', delete=True)) == base | {'Person/team@red'}
    assert told(person('zoe', team='none')) == {'Person'}
    assert told({'c': 'Other', 'id': 'ann', 'items': []}) == set()
    assert told({'c': 'Note', 'id': 'ann', 'items': []}) == {'Note', 'Note/ann'}
    assert told({'c': 'Note', 'id': 'ann', 'delete': True, 'items': [{'c': 'T', 'j': 1}]}) == {'Note', 'Note/ann'}


def test_when_there_is_nothing_to_tell(lab, session):
    note = {'c': 'Note', 'id': session, 'items': [{'c': 'T', 'j': 1}]}
    assert write(lab, session, note) is None, 'it has no subscription'
    subs(lab, session, {'defs': ['Note']})
    assert write(lab, session, note) == 'absent', 'nothing was changed'
    assert write(lab, None, {**note, 'items': [{'c': 'T', 'j': 2}]}) == 'absent', 'no session is named'
    assert 'subs' not in lab.op('lab', 'get', {'docs': [{'c': 'Note', 'id': session}]}, session=session)
    answer = lab.op('lab', 'put', {'docs': [{**note, 'items': [{'c': 'T', 'j': 3}]}]}, [{'c': 'Note', 'id': session}], session=session)
    assert list(answer) == ['out', 'syncs', 'subs'] and answer['subs'] == [['Note', answer['out']['v']]]
    body = {'param': {'docs': [{**note, 'items': [{'c': 'T', 'j': 4}]}]}, 'session': session}
    first, again = (lab.request('POST', '/lab/op/put', json=body, headers={'Idempotency-Key': session}).json() for _ in range(2))
    assert [text for text, _ in first['subs']] == ['Note'] and 'subs' not in again and first['out'] == again['out']


def test_a_commit_that_is_refused_tells_nothing(lab, session):
    subs(lab, session, {'defs': ['Note']})
    with pytest.raises(Problem) as caught:
        write(lab, session, {'c': 'Note', 'id': 'refused', 'if': 1, 'items': []})
    assert caught.value.code == 'AVERSION' and 'subs' not in caught.value.body


def test_it_comes_with_forms_and_addresses_too(lab, session):
    subs(lab, session, {'defs': ['Note']})
    param = json.dumps({'docs': [{'c': 'Note', 'id': 'forms', 'items': [{'c': 'T', 'j': session}]}]})
    assert lab.request('POST', '/lab/op/put', form={'param': param, 'session': session}).json()['subs'][0][0] == 'Note'
    param = json.dumps({'docs': [{'c': 'Note', 'id': 'forms', 'delete': True}]})
    assert lab.request('POST', '/lab/op/put', form={'param': param, 'session': session}).json()['subs'][0][0] == 'Note'
    resource = lab.request('PUT', '/lab/doc/Note/forms', json={'items': [], 'session': session})
    assert resource.status_code == 201 and list(resource.json()) == ['v']


class Model:
    """Who is a member of what, by the contents."""

    def __init__(self):
        self.contents = {}

    @staticmethod
    def definitions(id_, content):
        if content is None:
            return set()
        found = set()
        if 'team' in content:
            found.add(f'Person/team@{part(str(content["team"]))}')
        found |= {f'Person/skill@{part(skill)}' for skill in content.get('skills', [])}
        if 'town' in content and 'street' in content:
            found.add(f'Person/place@{part(content["town"])}@{part(content["street"])}')
        return found

    def write(self, id_, content):
        before = self.definitions(id_, self.contents.get(id_))
        self.contents[id_] = content
        return {'Person', f'Person/{part(id_)}'} | before | self.definitions(id_, content)


def test_random_commits_touch_what_a_model_says(lab):
    """Exactly, for several sessions in turn; and nothing is missed for those that are to be woken."""
    dice = random.Random(20261121)
    clear(lab)
    lab.psql('lab', 'select wake_sessions(true)')
    words = ['red', 'a@b', 'x/y', '100%', 'é', ' ', '']
    ids = ['rose', 'r@se', 'r/o', 'r%41', 'né']
    every = [f'Person/{part(id_)}' for id_ in ids] + [f'Person/team@{part(w)}' for w in words] + ['Person', 'Note']
    every += [f'Person/skill@{part(w)}' for w in words] + [f'Person/place@{part(a)}@{part(b)}' for a in words[:4] for b in words[:4]]
    sessions = {secrets.token_urlsafe(18): set(dice.sample(every, dice.randrange(len(every)))) for _ in range(4)}
    expected = {session: set() for session in sessions}
    for session, definitions in sessions.items():
        subs(lab, session, {'defs': sorted(definitions), 'push': address(session)})
    model = Model()
    for step in range(120):
        session = dice.choice([None, *sessions])
        touched, documents = set(), []
        for id_ in dice.sample(ids, dice.randrange(1, 4)):
            content = dice.choice([None, {}, {'team': dice.choice(words)}, {'skills': dice.choices(words, k=dice.randrange(3))},
                                   {'town': dice.choice(words[:4]), 'street': dice.choice(words[:4]), 'team': dice.choice(words)}])
            if content is None and model.contents.get(id_) is None:
                continue
            touched |= model.write(id_, content)
            n = {'n': step} if content is not None else None
            documents.append(person(id_, delete=True) if content is None else person(id_, **content, **n))
        if not documents:
            continue
        told = write(lab, session, *documents)
        if session:
            assert set(told) == touched & sessions[session], (step, documents)
        for other in sessions:
            if other != session:
                expected[other] |= touched & sessions[other]
    lab.psql('lab', 'select wake_sessions(false)')
    for session, definitions in expected.items():
        assert set(noted(lab, session)) == definitions
    clear(lab)


# --- waking ---

def test_with_the_switch_off_nobody_is_woken(lab, session):
    subs(lab, session, {'defs': ['Note'], 'push': address()})
    write(lab, None, {'c': 'Note', 'id': 'off', 'items': [{'c': 'T', 'j': session}]})
    lab.psql('lab', "select put_item('Note', 'off', 'T', '', %s)", (json.dumps(session * 2),))
    assert tasks(lab) == [] and noted(lab, session) == []


def test_others_are_woken_once(waking, session):
    lab = waking
    other, silent, elsewhere = (secrets.token_urlsafe(24) for _ in range(3))
    for one in session, other:
        subs(lab, one, {'defs': ['Note', 'Note/x'], 'push': address(one)})
    subs(lab, silent, {'defs': ['Note']})
    subs(lab, elsewhere, {'defs': ['Other', 'Note/y'], 'push': address()})
    for turn in range(3):
        assert write(lab, session, {'c': 'Note', 'id': 'x', 'items': [{'c': 'T', 'j': session + str(turn)}]}) == ['Note', 'Note/x']
        assert tasks(lab) == [other], 'not who wrote it, not who has no address, and each once'
    assert noted(lab, other) == ['Note', 'Note/x'] and noted(lab, session) == noted(lab, silent) == noted(lab, elsewhere) == []
    (param, queue), = lab.psql('lab', 'select param, qn from taskqueue')
    assert json.loads(param) == {'session': other} and queue == 3
    write(lab, None, {'c': 'Note', 'id': 'x', 'delete': True})
    assert tasks(lab) == sorted([session, other])
    subs(lab, other, {'push': None})
    write(lab, session, {'c': 'Note', 'id': 'y', 'items': []})
    assert tasks(lab) == sorted([session, other, elsewhere]) and noted(lab, elsewhere) == ['Note/y']


def test_who_has_ended_is_not_woken(waking, session):
    lab = waking
    other = secrets.token_urlsafe(24)
    for one in session, other:
        subs(lab, one, {'defs': ['Note'], 'push': address(one)})
    lab.psql('lab', 'update subscription set until = present_minute() where session = %s', (session,))
    write(lab, None, {'c': 'Note', 'id': 'ended', 'items': [{'c': 'T', 'j': session}]})
    assert tasks(lab) == [other] and noted(lab, session) == []


def test_who_writes_with_sql_wakes_too(waking, session):
    lab = waking
    subs(lab, session, {'defs': ['Person', 'Person/sql', 'Person/team@red', 'Person/team@blue'], 'push': address()})
    lab.psql('lab', """select put_item('Person', 'sql', 'Main', '', '{"team":"red"}')""")
    assert noted(lab, session) == ['Person', 'Person/sql', 'Person/team@red'] and tasks(lab) == [session]
    lab.psql('lab', 'delete from subscription_matched')
    with psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd') as connection:
        connection.cursor().execute("""select put_item('Person', 'sql', 'Main', '', '{"team":"blue"}')""")
        connection.cursor().execute("select delete_document('Person', 'sql')")
    assert noted(lab, session) == ['Person', 'Person/sql', 'Person/team@blue', 'Person/team@red']


def test_workers_whose_changes_are_notified_to_other_hosts_wake_once(waking, session):
    """With many hosts the triggers of others fire for workers too."""
    lab = waking
    subs(lab, session, {'defs': ['Note', 'Note/many'], 'push': address()})
    with psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd') as commit:
        cursor = commit.cursor()
        cursor.execute("insert into doc values ('Note', 'many', 7, 7, 7, 0, 0) on conflict (class, id) do update set version = 7")
        cursor.execute("select kind from subscription_match(array['Note'], array['many'], %s, true, 0, 1, 0)", (session,))
        assert [kind for kind, in cursor.fetchall()] == ['own', 'def', 'def']
    assert tasks(lab) == [] and noted(lab, session) == [], 'who wrote it is not woken by a trigger either'


def test_a_task_that_was_parked_is_tried_again(waking, session):
    lab = waking
    subs(lab, session, {'defs': ['Note'], 'push': address()})
    note = {'c': 'Note', 'id': 'parked'}
    write(lab, None, {**note, 'items': [{'c': 'T', 'j': session}]})
    lab.psql('lab', "update taskqueue set startat = 991231235959999, retry = 4, exc = 'XGONE'")
    write(lab, None, {**note, 'items': [{'c': 'T', 'j': 2}]})
    assert lab.psql('lab', 'select startat < 991231235959999, retry, exc from taskqueue') == [(True, 0, None)]
    lab.psql('lab', "update taskqueue set startat = 991231235959999, exc = 'HELD'")
    write(lab, None, {**note, 'items': [{'c': 'T', 'j': 3}]})
    assert lab.psql('lab', 'select startat, exc from taskqueue') == [(991231235959999, 'HELD')], 'what an administrator holds stays'


def test_a_task_that_is_being_parked_is_tried_again(waking, session):
    """It ends in failure at the moment in which a commit notes what it did not tell."""
    lab = waking
    subs(lab, session, {'defs': ['Note'], 'push': address()})
    note = {'c': 'Note', 'id': 'parking'}
    write(lab, None, {**note, 'items': [{'c': 'T', 'j': session}]})
    lab.psql('lab', "update taskqueue set starttime = 1, holder = 'test'")
    with psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd') as task:
        task.cursor().execute("update taskqueue set starttime = null, holder = null, startat = 991231235959999, retry = 4, exc = 'XGONE'")
        writer = threading.Thread(target=write, args=(lab, None, {**note, 'items': [{'c': 'T', 'j': 2}]}))
        writer.start()
        wait_until(lambda: lab.psql('lab', "select 1 from pg_locks where locktype = 'transactionid' and not granted"))
        task.commit()
        writer.join()
    assert lab.psql('lab', 'select startat < 991231235959999, retry, exc from taskqueue') == [(True, 0, None)]


class Teller(threading.Thread):
    """What the task `push` does, said in SQL, as the role of the workers."""

    def __init__(self, stack, sessions, stop):
        super().__init__()
        self.connection = psycopg2.connect(stack.conninfo('lab', 'stampd'), options='-c search_path=stampd')
        self.connection.autocommit = True
        self.sessions, self.stop = sessions, stop
        self.seen = {session: 0 for session in sessions}
        self.failure = None

    def ask(self, sql, *parameters):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else None

    def tell(self, session):
        claimed = self.ask("update taskqueue set starttime = 1, holder = 'test' where opname = 'push' and resource = %s"
                           ' and starttime is null returning taskid', session)
        if not claimed:
            return
        taken = self.ask('select taken, def, version from subscription_take(%s)', session)
        (self.seen[session],), = self.ask("select version from doc where class = 'Note' and id = 'hot'")
        if taken:
            self.ask('select subscription_sent(%s, %s)', session, taken[0][0])
        self.ask('delete from taskqueue where taskid = %s', claimed[0][0])

    def run(self):
        try:
            while not self.stop.is_set():
                self.tell(random.choice(self.sessions))
        except Exception as failure:  # told by the test
            self.failure = failure


def test_none_is_missed_however_commits_and_changes_of_subscriptions_meet(waking):
    """Sessions subscribe and look while others write, and tasks run: whatever is committed behind a session's look is noted or
    told, from the first commit on."""
    lab = waking
    stop = threading.Event()
    versions, failures, subscribed = set(), [], {}

    def write_all(number):
        try:
            with client(lab) as http:
                for turn in range(60):
                    body = {'param': {'docs': [{'c': 'Note', 'id': 'hot', 'items': [{'c': 'T', 'k': str(number), 'j': turn}]}]}}
                    answer = http.post(lab.url + '/lab/op/put', json=body, timeout=60).json()
                    if 'out' in answer:
                        versions.add(answer['out']['v'])
                    elif answer['code'] != 'CONTENTION':
                        failures.append(answer)
        except Exception as failure:
            failures.append(failure)

    def subscribe_all():
        try:
            with client(lab) as http:
                while not stop.is_set():
                    session = secrets.token_urlsafe(24)
                    body = {'param': {'defs': ['Note/hot'], 'push': address(session)}, 'session': session}
                    assert 'out' in http.post(lab.url + '/lab/op/subs', json=body, timeout=60).json()
                    found = http.post(lab.url + '/lab/op/get', json={'param': {'docs': [{'c': 'Note', 'id': 'hot'}]}}, timeout=60).json()
                    subscribed[session] = found['out']['docs'][0]['v']
        except Exception as failure:
            failures.append(failure)

    write(lab, None, {'c': 'Note', 'id': 'hot', 'items': []})
    told = [secrets.token_urlsafe(24) for _ in range(3)]
    for session in told:
        subs(lab, session, {'defs': ['Note/hot', 'Note'], 'push': address()})
    tellers = [Teller(lab, told, stop) for _ in range(2)]
    writers = [threading.Thread(target=write_all, args=(number,)) for number in range(3)]
    subscriber = threading.Thread(target=subscribe_all)
    for thread in (*tellers, subscriber, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in (*tellers, subscriber):
        thread.join()
    assert not failures and not [teller.failure for teller in tellers if teller.failure]
    assert subscribed
    first = dict(lab.psql('lab', 'select session, min(version) from subscription_matched where taken = 0 group by session'))
    for session, seen in subscribed.items():
        later = [version for version in versions if version > seen]
        assert not later or first[session] <= min(later)
    newest = max(versions)
    for session in told:
        assert session in tasks(lab) or max(teller.seen[session] for teller in tellers) >= newest


def test_taken_and_not_told_is_taken_again(waking, session):
    lab = waking
    subs(lab, session, {'defs': ['Note', 'Other'], 'push': address()})
    write(lab, None, {'c': 'Note', 'id': 'taken', 'items': [{'c': 'T', 'j': session}]})
    first = lab.psql('lab', 'select taken, def from subscription_take(%s)', (session,))
    write(lab, None, {'c': 'Other', 'id': 'taken', 'items': [{'c': 'T', 'j': session}]})
    lab.psql('lab', 'select subscription_sent(%s, 0)', (session,))
    second = lab.psql('lab', 'select taken, def from subscription_take(%s)', (session,))
    assert [text for _, text in first] == ['Note'] and [text for _, text in second] == ['Note', 'Other']
    lab.psql('lab', 'select subscription_sent(%s, %s)', (session, first[0][0]))
    assert [text for _, text in lab.psql('lab', 'select taken, def from subscription_take(%s)', (session,))] == ['Other']
    subs(lab, session, {'drop': ['Other']})
    assert lab.psql('lab', 'select * from subscription_take(%s)', (session,)) == [], 'what it wants to hear no more'
    assert lab.psql('lab', 'select * from subscription_matched') == []


@pytest.mark.parametrize('what', ['change', 'task'])
def test_who_changes_or_tells_waits_for_commits_that_have_looked(waking, session, what):
    """A commit that has looked for subscriptions and is not visible yet, held open by hand: the answer comes behind it."""
    lab = waking
    lab.psql('lab', "delete from subscription_matched")
    subs(lab, session, {'defs': ['Note/held'], 'push': address()})
    with psycopg2.connect(lab.conninfo('lab', 'stampd'), options='-c search_path=stampd -c stampd.worker=on') as commit:
        cursor = commit.cursor()
        cursor.execute("insert into doc values ('Note', 'held', 101000000000001 + (select version from subscription limit 1) % 1000, 1, 1, 0, 0)"
                       " on conflict (class, id) do update set version = doc.version + 1 returning version")
        (version,), = cursor.fetchall()
        cursor.execute("select * from subscription_match(array['Note'], array['held'], null, true, 0, 1, 0)")
        other = secrets.token_urlsafe(24)
        found = []

        def wait_and_look():
            if what == 'change':
                with client(lab) as http:
                    body = {'param': {'defs': ['Note/held'], 'push': address()}, 'session': other}
                    found.append(http.post(lab.url + '/lab/op/subs', json=body, timeout=60).json())
            else:
                with psycopg2.connect(lab.conninfo('lab', 'stampd'), options='-c search_path=stampd') as task:
                    take = task.cursor()
                    take.execute('select def, version from subscription_take(%s)', (session,))
                    found.append(take.fetchall())
        thread = threading.Thread(target=wait_and_look)
        thread.start()
        wait_until(lambda: lab.psql('lab', "select 1 from pg_locks where locktype = 'advisory' and not granted"))
        assert not found
        commit.commit()
        thread.join()
    assert found == [[('Note/held', version)]] if what == 'task' else found[0]['out']['defs'] == ['Note/held']


def test_who_waits_to_be_alone_lets_commits_pass(waking, session):
    """A commit takes long; a task waits for its end; other commits do not stand behind the task."""
    lab = waking
    done = threading.Event()
    connections = [psycopg2.connect(lab.conninfo('lab', 'stampd'), options=f'-c search_path=stampd -c lock_timeout={ms}')
                   for ms in (0, 60000, 0)]
    long, other, task = (connection.cursor() for connection in connections)
    long.execute('select subscription_lock(false)')

    def take():
        task.execute('select * from subscription_take(%s)', (session,))
        done.set()
    thread = threading.Thread(target=take)
    thread.start()
    wait_until(lambda: lab.psql('lab', "select 1 from pg_locks where locktype = 'advisory' and not granted"))
    other.execute('select subscription_lock(false)')
    assert not done.is_set()
    for connection in connections[:2]:
        connection.commit()
    thread.join()
    task.execute('show lock_timeout')
    assert done.is_set() and task.fetchall() == [('0',)]
    for connection in connections:
        connection.close()


def test_after_a_restore_what_was_taken_is_taken_again(waking, session):
    """The number by which it was taken is a transaction's of another cluster, and may be larger than any here."""
    lab = waking
    subs(lab, session, {'defs': ['Note', 'Other'], 'push': address()})
    lab.psql('lab', "insert into subscription_matched values (%s, 9000000000000000, 'cNote/@', 5), (%s, 9000000000000001, 'cNote/@', 7),"
             " (%s, 0, 'cNote/@', 9), (%s, 9000000000000000, 'cOther/@', 6)", (session,) * 4)
    lab.psql('lab', 'select after_restore()')
    assert lab.psql('lab', 'select taken, key, version from subscription_matched order by key') == [(0, 'cNote/@', 5), (0, 'cOther/@', 6)]
    (taken, *_), other = lab.psql('lab', 'select * from subscription_take(%s)', (session,))
    assert other[1:4] == ('Other', 6, '')
    lab.psql('lab', 'select subscription_sent(%s, %s)', (session, taken))
    assert lab.psql('lab', 'select * from subscription_matched') == []


def test_the_switch_is_the_administrators(lab, session):
    clear(lab)
    lab.admin('ns', 'push', 'lab', 'perhaps', status=2)
    lab.admin('ns', 'push', 'nowhere', 'on', status=1)
    subs(lab, session, {'defs': ['Note'], 'push': address()})
    for word, woken in (('on', [session]), ('on', [session]), ('off', [])):
        lab.admin('ns', 'push', 'lab', word)
        lab.psql('lab', 'delete from taskqueue')
        write(lab, None, {'c': 'Note', 'id': 'switch', 'items': [{'c': 'T', 'j': secrets.token_hex()}]})
        assert tasks(lab) == woken
    clear(lab)


# --- two at once ---

def test_two_windows_of_one_session_add_at_the_same_time(lab, session):
    failures = []

    def add(number):
        try:
            with client(lab) as http:
                for turn in range(15):
                    body = {'param': {'add': [f'Note/{number}-{turn}'], 'drop': [f'Note/{number}-{turn - 2}']}, 'session': session}
                    answer = http.post(lab.url + '/lab/op/subs', json=body, timeout=60).json()
                    if 'out' not in answer:
                        failures.append(answer)
        except Exception as failure:
            failures.append(failure)
    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert subs(lab, session)['defs'] == sorted(f'Note/{number}-{turn}' for number in range(4) for turn in (13, 14))


# --- what is wrong ---

def test_bad_definitions_are_refused_whole(lab, session):
    before = subs(lab, session, {'defs': ['Note']})
    for wrong in ('', 'note', 'Note/', 'Note/%', 'Note/%4', 'Note/%00', 'Note/%ff', '/a', 'Person/@x', 'Person/te-am@x', 'x' * 2000,
                  'Note/' + 'i' * 256, 'Person/team@a@b@c@d@e', None, 7, ['Note'], {'c': 'Note'}, "Note'; drop table subs; --/x@y"):
        for member in 'defs', 'add', 'drop':
            assert refused('AARG', subs, lab, session, {member: ['Other', wrong]}).body['args'] == [member], wrong
    for wrong in ('Nothing/team@x', 'Person/nothing@x', 'Note/team@x'):
        refused('NCOLLECTION', subs, lab, session, {'add': [wrong]})
    for wrong in ('Person/team@a@b', 'Person/place@a', 'Person/skill@a@b'):
        refused('AARG', subs, lab, session, {'add': [wrong]})  # another number of values
    assert subs(lab, session) == before
    assert subs(lab, session, {'add': ['Undeclared', 'Undeclared/x']})['defs'] == ['Note', 'Undeclared', 'Undeclared/x']


def test_too_many_are_refused(lab, session):
    thousand = [f'Note/{number}' for number in range(1000)]
    assert len(subs(lab, session, {'defs': thousand})['defs']) == 1000
    for change in {'defs': [f'Note/{number}' for number in range(10000)]}, {'add': ['Other']}, {'add': thousand[:500] + ['Other'], 'drop': []}:
        assert refused('ALIMIT', subs, lab, session, change).body['args'][:2] == ['limit_definitions', '1000']
    assert len(subs(lab, session, {'add': ['Other'], 'drop': ['Note/0']})['defs']) == 1000
    assert write(lab, session, {'c': 'Note', 'id': '999', 'items': [{'c': 'T', 'j': session}]}) == ['Note/999']
    assert refused('ALIMIT', subs, lab, session, {'life': 91 * DAY}).body['args'] == ['limit_subscription_days', '90', '91']
    for life in 0, -1, 1.5, 'a', 2**40:
        refused('AARG', subs, lab, session, {'life': life})


def invent(lab, count, endpoint, until):
    """Subscriptions of sessions that nobody has."""
    lab.psql('lab', "insert into subscription (session, version, until, endpoint, p256dh, auth) select 'invented-' || lpad(n::text, 20, '0') || %s,"
             " 1, present_minute() + %s, %s, %s, %s from generate_series(1, %s) n", (secrets.token_hex(4), until, *[endpoint] * 3, count))


def counted(lab):
    (held, woken, *real), = lab.psql('lab', 'select c.held, c.woken, (select count(*) from subscription), (select count(endpoint) from subscription)'
                                     ' from subscription_count c')
    assert [held, woken] == real
    return held, woken


def test_a_namespace_has_so_many_subscriptions_and_no_more(lab, session):
    """Whoever may read can invent sessions; a commit may have to note all that have an address."""
    clear(lab)
    assert counted(lab) == (0, 0)
    member, other = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    subs(lab, member, {'defs': ['Note'], 'push': address()})
    invent(lab, MOST_WOKEN - 1, 'https://push.example/x', DAY)
    assert subs(lab, session, {'defs': ['Note']})['push'] is False, 'without an address there is room'
    for one, param in (session, {'push': address()}), (other, {'defs': ['Note'], 'push': address()}):
        assert refused('ALIMIT', subs, lab, one, param).body['args'] == ['limit_push_subscriptions', str(MOST_WOKEN), str(MOST_WOKEN + 1)]
    assert subs(lab, session)['push'] is False and refused('NSUBSCRIPTION', subs, lab, other)
    assert subs(lab, member, {'push': address('other'), 'add': ['Other']})['push'] is True, 'who has one changes it'
    subs(lab, member, {'push': None})
    assert subs(lab, session, {'push': address()})['push'] is True, 'there is room again'
    invent(lab, MOST - counted(lab)[0], None, DAY)
    assert refused('ALIMIT', subs, lab, other, {'defs': []}).body['args'] == ['limit_subscriptions', str(MOST), str(MOST + 1)]
    assert subs(lab, session, {'add': ['Other']})['defs'] == ['Note', 'Other']
    lab.psql('lab', "update subscription set until = present_minute() where session in (select session from subscription where session like 'invented-%%'"
             ' and endpoint is not null limit 5)')
    assert subs(lab, other, {'defs': [], 'push': address()})['push'] is True, 'what has ended is purged for it'
    assert counted(lab) == (MOST - 4, MOST_WOKEN - 4)
    subs(lab, other, {'delete': True})
    assert counted(lab) == (MOST - 5, MOST_WOKEN - 5)
    lab.psql('lab', 'truncate subscription')
    assert counted(lab) == (0, 0)
    clear(lab)


def test_bad_sessions_are_refused_by_every_operation(lab):
    for wrong in ('', 'a' * 15, 'a' * 65, 'a' * 15 + '/', 'a' * 15 + 'é', "a' or 'a'='a' --", 'a' * 15 + '\n'):
        refused('AARG', subs, lab, wrong)
        refused('AARG', write, lab, wrong, {'c': 'Note', 'id': 'bad', 'items': []})
    refused('AARG', subs, lab, None, {'defs': []})
    assert not lab.get('lab', ('Note', 'bad'))['v']


def test_bad_members_are_refused(lab, session):
    one = address()
    for wrong in ({'def': ['Note']}, {'defs': ['Note'], 'add': ['Other']}, {'defs': ['Note'], 'drop': []}, {'defs': None}, {'defs': 'Note'},
                  {'delete': True, 'defs': []}, {'delete': 1}, {'add': {}}, {'defs': [], 'push': 'https://x/'}, {'defs': [], 'push': []},
                  {'defs': [], 'push': {}}, {'defs': [], 'context': 'x' * 2049}, {'defs': [], 'context': {}},
                  *({'defs': [], 'push': {**one, 'endpoint': endpoint}} for endpoint in
                    ('http://push.example/', 'https://', 'https:///x', 'https://a b', 'https://é', 'file:///etc/passwd', 'https://x/' + 'y' * 2048, None)),
                  *({'defs': [], 'push': {**one, 'p256dh': key}} for key in (b64(64), b64(66), b64(65), POINT[:-1] + '5', '!' * 87, None, 5)),
                  *({'defs': [], 'push': {**one, 'auth': key}} for key in (b64(15), b64(17), '+' * 22, ''))):
        refused('AARG', subs, lab, session, wrong)
    refused('NSUBSCRIPTION', subs, lab, session)  # nothing was kept


def test_who_may(lab, session):
    """Sessions of namespaces have nothing to do with each other; a closed one is the administrator's."""
    subs(lab, session, {'defs': ['Note']})
    with pytest.raises(Problem) as caught:
        lab.op('demo', 'subs', session=session, admin=True)
    assert caught.value.code == 'NSUBSCRIPTION'
    lab.psql('z', """select put_item('Namespace', 'lab', 'Conf', '', '{"database":"stampd_lab","access":"read"}')""")
    try:
        while True:  # until all workers have heard of it
            try:
                write(lab, None, {'c': 'Note', 'id': 'may', 'items': [{'c': 'T', 'j': secrets.token_hex()}]})
            except Problem as problem:
                assert problem.code == 'SCLOSED'
                break
        assert subs(lab, session)['defs'] == ['Note'], 'who may read may subscribe'
        lab.psql('z', """select put_item('Namespace', 'lab', 'Conf', '', '{"database":"stampd_lab","access":"closed"}')""")
        while True:
            try:
                subs(lab, session)
            except Problem as problem:
                assert problem.code == 'SCLOSED'
                break
        assert subs(lab, session, admin=True)['defs'] == ['Note']
    finally:
        lab.psql('z', """select put_item('Namespace', 'lab', 'Conf', '', '{"database":"stampd_lab","access":"open"}')""")

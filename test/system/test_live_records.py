"""Definitions of records as live events: whoever follows keys gets an event when they have, or may have, changed, while it may read
them, and nothing else.  What does not arrive is shown by a mark: a record that everybody may read, changed afterwards."""
import contextlib
import os
import random
import signal
import threading
from urllib.parse import quote

import pytest
import requests

from listener import Listener
from stack import PATIENCE_S, Problem, refused, wait_until
from test_accounts import OPEN, Made, bearer, configure, cookie, forged
from test_live import live_pid
from test_record_listen import run

MOST = 12
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'open', 'team': 'closed', 'shut': 'closed', 'off': 'open'},
         'settings': {'restart_young_ms': 0, 'records_mb': 4, 'limit_namespace_records_mb': 1, 'live_keepalive_s': 1, 'live_records': MOST, 'limit_definition_bytes': 8192,
                      'limit_client_live': 1000, 'limit_client_connections': 0, 'limit_client_requests': 0}}
EVERYBODY = [{'prefix': '', 'read': 'anyone', 'write': 'anyone'}]


class Follower(Listener):
    """A listener that has marks of its own, and gives what came since the last one."""
    count = 0

    def __init__(self, stack, *definitions, ns='lab', **more):
        Follower.count += 1
        self.taken, self.ns, self.mark = 0, ns, f'mark.{Follower.count}'
        super().__init__(stack, f'record:{self.mark}', *definitions, ns=ns, **more)
        self.opened()

    def take(self):
        """The definitions of records that changed, and the names of other events."""
        change(self.stack, self.mark, ns=self.ns)
        found = self.wait()
        return sorted({one for name, data in found if name == 'change' for one, _ in data['changed'] if one.startswith('record') and one != f'record:{self.mark}'} |
                      {name for name, _ in found if name not in ('change', 'ready')})

    def wait(self):
        """The events until the next mark."""
        def find():
            for place, (name, data) in enumerate(self.events[self.taken:], self.taken):
                if name == 'change' and [f'record:{self.mark}', 0] in data['changed']:
                    return place + 1
            return not self.is_open and -1
        end = wait_until(find, what='the mark')
        assert end > 0, (self.events, 'it was closed')
        events, self.taken = self.events[self.taken:end], end
        return events

    def closed(self):
        wait_until(lambda: not self.is_open, what='the end')
        return self.events[-1][1]['code'] if self.events[-1][0] == 'closed' else None


@pytest.fixture(scope='module')
def lab(stack):
    for ns in ('lab', 'demo'):
        configure(stack, ns, records=EVERYBODY)
    return stack


@contextlib.contextmanager
def following(stack, *definitions, **more):
    follower = Follower(stack, *definitions, **more)
    try:
        yield follower
    finally:
        follower.close()


def change(stack, *keys, ns='lab'):
    assert {one['state'] for one in run(stack, *[{'do': 'set', 'key': key, 'value': 1, 'overwrite': True} for key in keys], ns=ns)} == {'OK'}


# --- what is an event ---

def test_each_command_is_an_event_of_the_keys_that_it_changes(lab):
    cases = [({'do': 'set', 'key': 'one', 'value': 'text'}, ['one']), ({'do': 'set', 'key': 'one', 'value': 'text'}, []),
             ({'do': 'truncate', 'key': 'one', 'size': 2}, ['one']), ({'do': 'get', 'key': 'one', 'work_ms': 1000}, []), ({'do': 'get', 'key': 'one'}, []),
             ({'do': 'lock', 'key': 'one', 'owner': 'me', 'lock_ms': 60000}, []), ({'do': 'unlock', 'key': 'one', 'owner': 'me'}, []),
             ({'do': 'rename', 'key': 'one', 'to': 'two'}, ['one', 'two']), ({'do': 'link', 'key': 'two', 'to': 'three'}, ['three']),
             ({'do': 'delete', 'key': 'two'}, ['three', 'two']), ({'do': 'delete', 'key': 'two'}, []),
             ({'do': 'add', 'key': 'n', 'by': 1, 'create': True}, ['n']), ({'do': 'add', 'key': 'n', 'by': 1}, ['n']),
             ({'do': 'set', 'key': 'b', 'value': True}, ['b']), ({'do': 'not', 'key': 'b'}, ['b']), ({'do': 'not', 'key': 'n'}, []),
             ({'do': 'set', 'key': 'other', 'value': 1}, [])]
    keys = ['one', 'two', 'three', 'n', 'b', 'never']
    with following(lab, *[f'record:{key}' for key in keys], *[f'records:{key}' for key in keys[:4]]) as follower:
        for command, changed in cases:
            run(lab, command)
            assert follower.take() == sorted([f'record:{key}' for key in changed] + [f'records:{key}' for key in changed if key in keys[:4]]), command


def test_keys_and_prefixes_of_one_namespace(lab):
    with following(lab, 'record:a.1', 'records:a.', 'records:', 'records:a.1.', 'record:a.', 'Note', 'Note/first') as follower:
        change(lab, 'a.1')
        assert follower.take() == ['record:a.1', 'records:', 'records:a.']
        change(lab, 'a.1.2')
        assert follower.take() == ['records:', 'records:a.', 'records:a.1.']
        change(lab, 'a', 'b')
        assert follower.take() == ['records:']
        change(lab, 'a.1', ns='demo')
        assert follower.take() == ['records:']  # the mark
        version = lab.put('lab', {'c': 'Note', 'id': 'first', 'items': []})
        follower.wait_for('Note', version)
        follower.wait_for('Note/first', version)
        assert follower.take() == ['records:']


@pytest.mark.parametrize('key', ['100 %', 'a/b@c', 'é' * 200, 'record:x', '?&=#+', 'x' * 1024])
def test_any_key_can_be_named(lab, key):
    name, before = quote(key, safe=''), quote(key[:-1], safe='')
    definitions = [f'record:{name}', f'records:{before}', f'records:{before}/{name}']
    with following(lab, *definitions, 'record:none') as follower:
        change(lab, key)
        assert follower.take() == definitions
        run(lab, {'do': 'delete', 'key': key, 'immediate': True})
        assert follower.take() == definitions


def test_a_range_has_both_its_ends(lab):
    with following(lab, 'records:b/d', 'records:c/', 'records:/b.', 'records:b/b', 'records:a%2F1/a%2F9') as follower:
        for key, seen in {'a/0': ['records:/b.'], 'a/1': ['records:/b.', 'records:a%2F1/a%2F9'], 'a/9': ['records:/b.', 'records:a%2F1/a%2F9'],
                          'b': ['records:/b.', 'records:b/b', 'records:b/d'], 'b.': ['records:/b.', 'records:b/d'], 'c': ['records:b/d', 'records:c/'],
                          'd': ['records:b/d', 'records:c/'], 'd0': ['records:c/'], 'é': ['records:c/']}.items():
            for command in ({'do': 'set', 'key': key, 'value': 1, 'overwrite': True}, {'do': 'delete', 'key': key, 'immediate': True}):
                run(lab, command)
                assert follower.take() == [*seen, *(['records:c/'] if 'records:c/' not in seen else [])], (command, seen)  # the mark is behind c
        change(lab, 'b', ns='demo')
        assert follower.take() == ['records:c/']


def test_of_two_spellings_the_first_counts(lab):
    with following(lab, 'record:d.%31', 'record:d.1', 'records:d.1/d.1', 'records:d.', 'records:%64.', 'records:d/%65', 'records:d/e') as follower:
        change(lab, 'd.1')
        assert follower.take() == ['record:d.%31', 'records:d.', 'records:d/%65']


def test_an_end_is_an_event_though_nobody_does_anything(lab):
    """Whoever reads after each event has the truth in the end."""
    with following(lab, 'record:short', 'records:shor', 'records:short/shos') as follower:
        run(lab, {'do': 'set', 'key': 'short', 'value': 1, 'ttl_ms': 700})
        seen, state = 0, 'OK'
        while state == 'OK':
            wait_until(lambda: len(follower.events) > seen and follower.told().keys() == {'record:short', 'records:shor', 'records:short/shos'}, what='an event')
            seen = len(follower.events)
            state = run(lab, {'do': 'get', 'key': 'short'})[0]['state']
        assert state == 'NOT_FOUND' and follower.take() == ['record:short', 'records:shor', 'records:short/shos']


# --- the request ---

@pytest.mark.parametrize('wrong', ['record:', 'record', 'records', 'record:a/b', 'records:a@b', 'records:/', 'records:b/a', 'records:a/b/c', 'records:a/%00', 'records:a/' + 'x' * 1025, 'record:%', 'record:%zz', 'record:a%00', 'record:%ff', 'Record:a',
                                   'record:' + 'x' * 1025, 'recordss:a', ' record:a', 'Note:a'])
def test_what_is_malformed_is_refused_by_its_number(lab, wrong):
    problem = refused('AARG', Listener, lab, 'record:right', wrong)
    assert problem.status == 400 and problem.body['args'] == ['def'] and 'as element 2' in problem.body['detail'] and 'record:key' in problem.body['detail']


def test_their_number_is_limited(lab):
    keys = [f'record:{number}' for number in range(MOST)]
    with following(lab, *keys[1:], 'Note', 'Note/a'):  # with that of the marks
        pass
    assert refused('ALIMIT', Listener, lab, *keys, 'records:a', 'record:b').body['args'] == ['live_records', str(MOST), str(MOST + 2)]
    most = 1000
    assert refused('ALIMIT', Listener, lab, 'record:a', *['Note'] * most, admin=True).body['args'] == ['live_definitions', str(most), str(most + 1)]


def test_subscriptions_have_no_records(lab):
    for member in ('add', 'drop'):
        problem = refused('AARG', lab.op, 'lab', 'subs', {member: ['Note', 'record:a']}, session='s' * 20)
        assert problem.body['at'] == f'/param/{member}/1' and 'live events' in problem.body['detail']


# --- losses ---

def write_much(stack, ns='lab'):
    """More than the ring has room for."""
    for _ in range(2):
        run(stack, *[{'do': 'set', 'key': f'{number}'.ljust(1000, '.'), 'value': 1, 'overwrite': True} for number in range(100)], ns=ns)
    run(stack, *[{'do': 'delete', 'key': f'{number}'.ljust(1000, '.'), 'immediate': True} for number in range(100)], ns=ns)


def stop_live(stack):
    """Stops the process for live events, not while it holds the lock of the records."""
    pid = live_pid(stack)

    def is_stopped():
        os.kill(pid, signal.SIGSTOP)
        is_free = run(stack, {'do': 'get', 'key': 'none'})[0]['state'] != 'BUSY'
        if not is_free:
            os.kill(pid, signal.SIGCONT)
        return is_free
    wait_until(is_stopped, what='the process to stand still without the lock')
    return pid


def test_an_overrun_is_an_event_of_all_definitions(lab):
    with following(lab, 'record:quiet', 'records:quiet.', 'records:quiet/quiet.') as follower, following(lab, 'record:still', ns='demo') as other:
        pid = stop_live(lab)
        try:
            write_much(lab)
        finally:
            os.kill(pid, signal.SIGCONT)
        for one, keys in ((follower, ['record:quiet', 'records:quiet.', 'records:quiet/quiet.']), (other, ['record:still'])):
            wait_until(lambda one=one, keys=keys: set(keys) <= set(one.told()), what='all definitions of records')
        follower.taken = other.taken = 0
        follower.wait(), other.wait()
        change(lab, 'quiet')
        assert follower.take() == ['record:quiet', 'records:quiet/quiet.'] and other.take() == []


def test_after_a_reconnection_all_may_have_changed(lab):
    lab.put('lab', {'c': 'Note', 'id': 'kept', 'items': []})
    with following(lab, 'record:a', 'records:b.', 'records:c/d', 'Note/kept') as follower:
        last = follower.wait_for_id()
    with following(lab, 'record:a', 'records:b.', 'records:c/d', 'Note/kept', last=last) as follower:
        assert follower.opened() is True
        follower.wait()
        assert follower.told() == {'record:a': 0, 'records:b.': 0, 'records:c/d': 0, f'record:{follower.mark}': 0}
    with following(lab, 'record:a', 'records:b.') as follower:
        assert follower.opened() is False and follower.take() == []


@pytest.mark.parametrize('how', ['killed', 'reloaded', 'restarted'])
def test_a_stream_that_ends_is_gone_on_with(lab, how):
    with following(lab, 'record:a') as follower:
        follower.take()
        last, pid = follower.wait_for_id(), live_pid(lab)
        if how == 'killed':
            os.kill(pid, signal.SIGKILL)
        elif how == 'reloaded':
            lab.reload()
        else:
            lab.restart_stampd()
        assert follower.closed() is None
        change(lab, 'a')
    wait_until(lambda: live_pid(lab) != pid, what='the successor')
    with following(lab, 'record:a', last=last) as follower:
        follower.wait()
        assert follower.told()['record:a'] == 0


def test_nothing_is_missed_whatever_is_killed(lab):
    """Each copy that is read after each event is right in the end: workers and the process for live events are killed."""
    keys, over = [f'copied.{number}' for number in range(MOST - 1)], threading.Event()

    def write(number):
        chance = random.Random(number)
        with contextlib.closing(requests.Session()) as own:
            own.verify, own.trust_env = lab.http.verify, False
            while not over.wait(0.01):
                key, to = chance.choice(keys), chance.choice(keys)
                command = chance.choice([{'do': 'set', 'value': chance.random(), 'overwrite': True}, {'do': 'delete'}, {'do': 'rename', 'to': to, 'overwrite': True},
                                         {'do': 'set', 'value': chance.random(), 'overwrite': True, 'ttl_ms': 30}])
                with contextlib.suppress(requests.RequestException):
                    own.post(f'{lab.url}/lab/op/record', json={'param': {'commands': [{'key': key, **command}]}}, timeout=PATIENCE_S, headers=bearer(lab.key))

    copy, last, events = {}, [None], [0]

    def fetch(wanted):
        for key in wanted:
            def get(key=key):
                response = lab.request('POST', '/lab/op/record', json={'param': {'commands': [{'do': 'get', 'key': key}]}})
                return response.status_code == 200 and response.json()['out']['results']
            copy[key] = wait_until(get, what='an answer')[0].get('value')

    def follow():
        while not over.is_set() or copy.get('copied.last') is None:
            try:
                one = Listener(lab, 'record:copied.last', *[f'record:{key}' for key in keys], last=last[0])
            except (Problem, requests.RequestException):
                continue
            seen = 0
            while (one.is_open or seen < len(one.events)) and copy.get('copied.last') is None:
                if seen == len(one.events):
                    over.wait(0.01)
                    continue
                name, data = one.events[seen]
                seen += 1
                events[0] += 1
                if name == 'reset' or (name == 'ready' and not data['resumed']):
                    fetch(['copied.last'] + keys)  # behind it nothing changes
                elif name == 'change':
                    fetch([definition.partition(':')[2] for definition, _ in data['changed']])
            last[0] = one.last
            one.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    follower = threading.Thread(target=follow)
    for thread in (*threads, follower):
        thread.start()
    try:
        for number in range(6):
            seen = events[0]
            wait_until(lambda: events[0] > seen + 5, what='some events')
            with contextlib.suppress(ProcessLookupError):
                workers = wait_until(lab.worker_pids, what='a worker')
                os.kill(live_pid(lab) if number % 2 else workers[number % len(workers)], signal.SIGKILL)
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    wait_until(lambda: all('expires_ms' not in run(lab, {'do': 'get', 'key': key})[0] for key in keys), what='the ends')
    change(lab, 'copied.last')
    follower.join(PATIENCE_S)
    assert not follower.is_alive()
    assert {key: copy.get(key) for key in keys} == {key: run(lab, {'do': 'get', 'key': key})[0].get('value') for key in keys}


# --- rights ---

RULES = [{'prefix': 'mark.', 'read': 'anyone'}, {'prefix': 'mine.{account}.', 'read': 'account', 'write': 'account'},
         {'prefix': 'news.', 'read': 'anyone', 'write': 'role:editor'}, {'prefix': 'desk.', 'read': 'role:editor'}, {'prefix': 'drop.', 'write': 'anyone'},
         {'prefix': 'mine.public.', 'read': 'anyone'}, {'prefix': 'desk.public.', 'read': 'anyone'}]


@pytest.fixture
def team(stack):
    """A namespace with accounts."""
    configure(stack, 'team', access='rules', accounts=OPEN, records=RULES)
    return stack


def make(stack):
    ann, eve = Made(stack), Made(stack)
    eve.set({'c': 'Roles', 'j': {'roles': ['editor']}})
    return ann, eve, {'nobody': {}, 'ann': bearer(ann.token), 'ann by cookie': cookie('team', ann.token), 'eve': bearer(eve.token)}


@pytest.mark.parametrize('seed', range(3))
def test_the_rights_are_those_of_the_operation(team, seed):
    """What it refuses is refused; what it returns is an event, and nothing else."""
    chance = random.Random(seed)
    ann, eve, callers = make(team)
    rights = ['anyone', 'account', 'role:editor', 'role:other']
    rules = [{'prefix': chance.choice(['', 'a', 'a.', 'a.b', 'b.', '{account}.', 'a.{account}.']), **{right: chance.choice(rights) for right in ('read', 'write') if chance.random() < 0.7}}
             for _ in range(chance.randrange(1, 5))]
    configure(team, 'team', records=[RULES[0], *rules])
    keys = ['a', 'a.', 'a.b', 'a.bc', 'b.', 'b.1', *[f'{head}{one.id}.{tail}' for head in ('', 'a.') for one in (ann, eve) for tail in ('', '1')]]
    prefixes = ['a', 'a.', 'b', 'c', f'{ann.id}.', f'a.{eve.id}.1']
    ranges = [('a', 'a.a'), ('', 'a'), ('n', ''), ('a.b', 'b.'), (f'a.{ann.id}.', f'a.{ann.id}.2'), ('c', 'd')]
    several = [(f'records:{quote(prefix)}', [key for key in keys if key.startswith(prefix)]) for prefix in prefixes]
    several += [(f'records:{quote(first)}/{quote(last)}', [key for key in keys if first <= key and (not last or key <= last)]) for first, last in ranges]

    def can(headers, key):
        """As the operation says."""
        try:
            return bool(run(team, {'do': 'listen', 'keys': [key]}, ns='team', headers=headers))
        except Problem as problem:
            assert problem.code == 'SCLOSED'
            return False
    for name, headers in callers.items():
        asked = bearer(ann.token) if 'cookie' in name else headers  # an operation wants an origin beside it
        for key in keys:
            definition = f'record:{quote(key)}'
            if can(asked, key):
                with following(team, definition, ns='team', headers=headers) as follower:
                    run(team, {'do': 'set', 'key': key, 'value': 1, 'overwrite': True}, ns='team')
                    assert follower.take() == [definition], (name, key, rules)
            else:
                assert refused('SCLOSED', Listener, team, definition, ns='team', headers=headers).body['args'] == [definition], (name, key, rules)
        for definition, named in several:
            seen = [key for key in named if can(asked, key)]
            try:
                with following(team, definition, ns='team', headers=headers) as follower:
                    for key in chance.sample(keys, 6):
                        run(team, {'do': 'set', 'key': key, 'value': 1, 'overwrite': True}, ns='team')
                        assert follower.take() == ([definition] if key in seen else []), (name, definition, key, rules)
            except Problem as problem:
                assert problem.code == 'SCLOSED' and not seen, (name, definition, rules)


def test_the_administrator_follows_everything(team):
    with following(team, 'record:hidden', 'records:', 'records:h/i', ns='team', admin=True) as follower:
        change(team, 'hidden', ns='team')
        assert follower.take() == ['record:hidden', 'records:', 'records:h/i']


def test_a_wrong_credential_is_not_taken_for_nobody(team):
    ann, _, _ = make(team)
    refused('SKEY', Listener, team, 'record:news.1', ns='team', headers=bearer(forged(ann.token)), status=401)


def test_without_rules_for_records_there_are_none(team):
    configure(team, 'team', records=[])
    _, _, callers = make(team)
    for headers in callers.values():
        refused('SCLOSED', Listener, team, 'records:', ns='team', headers=headers)
        refused('SCLOSED', Listener, team, 'Note', 'record:a', ns='team', headers=headers)


def test_a_namespace_that_is_closed_has_no_listeners(stack):
    configure(stack, 'shut', access='closed', records=EVERYBODY)
    refused('SCLOSED', Listener, stack, 'record:a', ns='shut')
    with following(stack, 'record:a', ns='shut', admin=True) as follower:
        change(stack, 'a', ns='shut')
        assert follower.take() == ['record:a']
    refused('SCLOSED', Listener, stack, 'record:a', ns='z')


def test_a_rule_that_is_taken(team):
    ann, eve, _ = make(team)
    mine = f'mine.{ann.id}.1'
    with following(team, f'record:{mine}', ns='team', headers=bearer(ann.token)) as named, \
            following(team, 'records:mine.', ns='team', headers=bearer(ann.token)) as several, following(team, 'record:news.1', ns='team') as nobody:
        change(team, mine, ns='team')
        assert named.take() == [f'record:{mine}'] and several.take() == ['records:mine.'] and nobody.take() == []
        configure(team, 'team', records=[RULES[0], *RULES[2:]])
        assert named.closed() == 'SCLOSED'
        for one in (several, nobody):  # the configuration is another one: other records may be visible now
            one.wait()
        change(team, mine, ns='team')
        assert (several.take(), nobody.take()) == ([], []), (several.events, nobody.events)
        change(team, 'news.1', 'mine.public.1', ns='team')
        assert several.take() == ['records:mine.'] and nobody.take() == ['record:news.1']
    refused('SCLOSED', Listener, team, f'record:{mine}', ns='team', headers=bearer(ann.token))


def test_a_role_that_is_given_and_taken(team):
    _, eve, _ = make(team)
    with following(team, 'record:desk.1', ns='team', headers=bearer(eve.token)) as named, following(team, 'records:desk.', ns='team', headers=bearer(eve.token)) as several:
        change(team, 'desk.1', ns='team')
        assert named.take() == ['record:desk.1'] and several.take() == ['records:desk.']
        eve.set({'c': 'Roles', 'j': {'roles': []}})
        assert named.closed() == 'SCLOSED'
        wait_until(lambda: several.events[-1][0] == 'reset', what='the reset')
        assert several.take() == ['reset'], several.events
        change(team, 'desk.1', ns='team')
        assert several.take() == []
        change(team, 'desk.public.1', ns='team')
        assert several.take() == ['records:desk.']
    refused('SCLOSED', Listener, team, 'record:desk.1', ns='team', headers=bearer(eve.token))


def test_a_session_that_is_taken(team):
    ann, _, _ = make(team)
    with following(team, 'record:news.1', ns='team', headers=bearer(ann.token)) as follower:
        ann.set({'c': 'Sess', 'k': ann.session, 'del': True})
        assert follower.closed() == 'SKEY'


def test_a_namespace_that_is_off_ends_them(stack):
    configure(stack, 'off', records=EVERYBODY)
    with following(stack, 'record:a', ns='off') as follower:
        configure(stack, 'off', state=1)  # read-only: it may be followed
        follower.wait_for('record:a', 0)
        configure(stack, 'off', state=2)
        assert follower.closed() == 'OOFF'
    configure(stack, 'off', state=0)


# --- settings ---

def test_a_server_without_records_and_one_that_allows_none(lab):
    for settings, code in (({'live_records': 0}, 'ALIMIT'), ({'records_mb': 0, 'live_records': MOST}, 'ORECORDS')):
        lab.set(**settings)
        try:
            refused(code, Listener, lab, 'record:a')
            listener = Listener(lab, 'Note')
            listener.opened()
            listener.close()
        finally:
            lab.set(records_mb=4, live_records=MOST)

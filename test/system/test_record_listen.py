"""The command `listen` of the operation `record`: what has changed since a position, waiting, rights, bounds, restarts and kills."""
import contextlib
import random
import threading

import pytest
import requests

from stack import PATIENCE_S, Problem, refused, wait_until
from test_accounts import OPEN, Made, bearer, configure

STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'open', 'team': 'closed', 'off': 'open'},
         'settings': {'restart_young_ms': 0, 'records_mb': 4, 'limit_namespace_records_mb': 1, 'record_waiters': 4, 'record_wait_s': 5,
                      'limit_client_connections': 0, 'limit_client_requests': 0}}


def run(stack, *commands, ns='lab', headers=None):
    """The results; `headers`: of another caller than the administrator."""
    response = stack.request('POST', f'/{ns}/op/record', json={'param': {'commands': list(commands)}}, headers=headers, admin=headers is None)
    if response.status_code != 200:
        raise Problem(response)
    return response.json()['out']['results']


def listen(stack, ns='lab', headers=None, **more):
    return run(stack, {'do': 'listen', **more}, ns=ns, headers=headers)[0]


def change(stack, *keys, ns='lab', value=1):
    assert {one['state'] for one in run(stack, *[{'do': 'set', 'key': key, 'value': value, 'overwrite': True} for key in keys], ns=ns)} == {'OK'}


def changed(stack, since, **more):
    """The keys that have changed since; nothing was lost."""
    result = listen(stack, since=since, **more)
    assert result['state'] == 'OK' and 'lost' not in result
    return result['keys']


def now(stack, **more):
    result = listen(stack, **more)
    assert result['state'] == 'OK' and result['keys'] == [] and 'lost' not in result and 'pause' not in result
    return result['position']


# --- what has changed ---

def test_each_command_is_seen(stack):
    cases = [({'do': 'set', 'key': 'one', 'value': 'text'}, ['one']), ({'do': 'set', 'key': 'one', 'value': 'text'}, []),
             ({'do': 'truncate', 'key': 'one', 'size': 2}, ['one']), ({'do': 'get', 'key': 'one', 'work_ms': 1000}, []),
             ({'do': 'lock', 'key': 'one', 'owner': 'me', 'lock_ms': 60000}, []), ({'do': 'unlock', 'key': 'one', 'owner': 'me'}, []),
             ({'do': 'rename', 'key': 'one', 'to': 'two'}, ['one', 'two']), ({'do': 'link', 'key': 'two', 'to': 'three'}, ['three']),
             ({'do': 'delete', 'key': 'two'}, ['three', 'two']), ({'do': 'delete', 'key': 'two'}, []),
             ({'do': 'add', 'key': 'n', 'by': 1, 'create': True}, ['n']), ({'do': 'add', 'key': 'n', 'by': 1}, ['n']),
             ({'do': 'set', 'key': 'b', 'value': True}, ['b']), ({'do': 'not', 'key': 'b'}, ['b']), ({'do': 'not', 'key': 'n'}, [])]
    for command, keys in cases:
        position = now(stack)
        run(stack, command)
        assert sorted(changed(stack, position)) == keys, command


def test_a_key_is_there_once_and_others_of_the_namespace_only(stack):
    position = now(stack)
    change(stack, 'a', 'b', 'a', 'c', 'b')
    change(stack, 'd', ns='demo')
    result = listen(stack, since=position)
    assert result['keys'] == ['a', 'b', 'c']
    assert changed(stack, result['position']) == []
    assert changed(stack, position) == ['a', 'b', 'c']  # a position does not end
    assert listen(stack, ns='demo', since=position)['lost']  # and is of a namespace


@pytest.mark.parametrize('listened, keys', [
    ({'keys': ['b.1', 'none']}, ['b.1']), ({'prefixes': ['a.', 'c']}, ['a.1', 'a.2', 'c']), ({'from': 'a.2', 'to': 'b.1'}, ['a.2', 'b.1']),
    ({'from': 'b.2'}, ['b.2', 'c']), ({'to': 'a.1'}, ['a.1']), ({'keys': ['c'], 'prefixes': ['b.2'], 'to': 'a.1'}, ['a.1', 'b.2', 'c']), ({}, ['a.1', 'a.2', 'b.1', 'b.2', 'c'])],
    ids=str)
def test_keys_prefixes_and_a_range(stack, listened, keys):
    position = now(stack, **listened)
    change(stack, 'a.1', 'a.2', 'b.1', 'b.2', 'c')
    assert changed(stack, position, **listened) == keys


def test_a_record_that_ends_has_changed(stack):
    """Nobody else does anything; the record is there when the listener begins, however slow the machine is."""
    ttl_ms, result = 100, None
    while result is None:
        ttl_ms *= 3
        run(stack, {'do': 'set', 'key': 'short', 'value': 1, 'overwrite': True, 'ttl_ms': ttl_ms})
        position = now(stack, keys=['short'])
        if run(stack, {'do': 'get', 'key': 'short'})[0]['state'] == 'OK':
            result = listen(stack, keys=['short'], since=position, wait=60)
    while not result['keys']:
        result = listen(stack, keys=['short'], since=result['position'], wait=60)
    assert result['keys'] == ['short'] and run(stack, {'do': 'get', 'key': 'short'})[0]['state'] == 'NOT_FOUND'


def test_an_answer_has_a_thousand_keys_and_the_next_one_the_others(stack):
    position, keys = now(stack), [f'many.{number}' for number in range(1500)]
    for start in range(0, 1500, 100):
        change(stack, *keys[start:start + 100])
    first = listen(stack, since=position)
    second = listen(stack, since=first['position'])
    assert first['keys'] == keys[:1000] and second['keys'] == keys[1000:] and changed(stack, second['position']) == []
    for start in range(0, 1500, 100):
        run(stack, *[{'do': 'delete', 'key': key, 'immediate': True} for key in keys[start:start + 100]])


# --- positions that mean nothing ---

def test_whoever_was_overtaken_looks_at_everything(stack):
    position = now(stack)
    for _ in range(2):
        run(stack, *[{'do': 'set', 'key': f'{number}'.ljust(1000, '.'), 'value': 1, 'overwrite': True} for number in range(100)])
    result = listen(stack, since=position, wait=60)  # it does not wait
    assert result['lost'] is True and result['keys'] == []
    change(stack, 'after')
    assert changed(stack, result['position']) == ['after']
    run(stack, *[{'do': 'delete', 'key': f'{number}'.ljust(1000, '.'), 'immediate': True} for number in range(100)])


@pytest.mark.parametrize('text', ['', 'x', 'A' * 60])
def test_no_position_is_as_one_that_was_overtaken(stack, text):
    result = listen(stack, since=text)
    assert result['lost'] is True and changed(stack, result['position']) == []


def test_after_a_restart_everything_is_looked_at(stack):
    change(stack, 'before')
    position = now(stack)
    stack.restart_stampd()
    result = listen(stack, since=position)
    kept = run(stack, {'do': 'get', 'key': 'before'})[0]['state'] == 'OK'
    assert result.get('lost', False) is not kept  # a process of the old one may have overlapped with the new one
    change(stack, 'after')
    assert changed(stack, result['position']) == ['after']


# --- waiting ---

class Follower:
    """Listens all the time, as clients do, in a thread; `keys` has what it was sent, None where something was lost."""

    def __init__(self, stack, headers=None, ns='lab', **listened):
        self.stack, self.headers, self.ns, self.listened = stack, headers, ns, listened
        self.position = listen(stack, ns=ns, headers=headers, **listened)['position']
        self.keys, self.over, self.ends, self.error = [], threading.Event(), [], None
        self.thread = threading.Thread(target=self.follow)

    def follow(self):
        with contextlib.closing(requests.Session()) as own:
            own.verify, own.trust_env = self.stack.http.verify, False
            headers = self.headers if self.headers is not None else bearer(self.stack.key)
            while not self.over.is_set():
                command = {'do': 'listen', **self.listened, 'since': self.position, 'wait': 60}
                with contextlib.suppress(requests.RequestException):
                    answer = own.post(f'{self.stack.url}/{self.ns}/op/record', json={'param': {'commands': [command]}}, timeout=PATIENCE_S, headers=headers)
                    self.ends.append(answer.status_code)
                    if answer.status_code in (401, 403):
                        self.error = answer.json()
                        return
                    if answer.status_code == 200:
                        self.take(answer.json()['out']['results'][0])

    def take(self, result):
        self.keys += [None] if 'lost' in result else []
        self.keys += result['keys']
        self.position = result['position']
        self.over.wait(result['pause'] / 1000)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        while self.thread.is_alive():  # each of them gives way
            for _ in range(self.stack.workers):
                self.stack.ping(self.ns)
            self.thread.join(0.1)


def test_whoever_waits_gets_the_change_when_it_comes(stack):
    with Follower(stack, prefixes=['waited.']) as follower:
        for number in range(5):
            change(stack, 'other', f'waited.{number}')
            wait_until(lambda: follower.keys == [f'waited.{one}' for one in range(number + 1)], what='the change')
    assert set(follower.ends) == {200}


def test_a_wait_ends_with_its_time(stack):
    stack.set(record_wait_s=1)
    position = now(stack)

    def ends_with_its_time():
        result = listen(stack, since=position, wait=3600)
        assert result['keys'] == [] and 'lost' not in result
        return result['pause'] == 0

    wait_until(ends_with_its_time, what='a wait that has not given way')
    stack.set(record_wait_s=0)
    assert 250 <= listen(stack, since=now(stack), wait=60)['pause'] <= 1000
    stack.set(record_wait_s=5)


def test_waiting_occupies_no_process_of_the_server(stack):
    with contextlib.ExitStack() as followers:
        all_of_them = [followers.enter_context(Follower(stack, keys=['crowd'])) for _ in range(8)]
        for number in range(40):
            stack.put('lab', {'c': 'Note', 'id': f'n{number}', 'items': []})
        change(stack, 'crowd')
        wait_until(lambda: all(follower.keys == ['crowd'] for follower in all_of_them), what='the change, at all')
    assert all(set(follower.ends) == {200} for follower in all_of_them)


def test_a_wait_holds_no_transaction(stack):
    with Follower(stack, keys=['quiet']):
        seen = [stack.psql('lab', "select count(*) from pg_stat_activity where state like 'idle in transaction%%' and pid <> pg_backend_pid()") for _ in range(20)]
    assert [(0,)] in seen


# --- rights ---

RULES = [{'prefix': 'mine.{account}.', 'read': 'account', 'write': 'account'}, {'prefix': 'news.', 'read': 'anyone', 'write': 'role:editor'},
         {'prefix': 'drop.', 'write': 'anyone'}]


@pytest.fixture
def team(stack):
    configure(stack, 'team', access='rules', accounts=OPEN, records=RULES)
    return stack


def test_what_may_not_be_read_is_not_there(team):
    ann, eve = Made(team), Made(team)
    keys = [f'mine.{ann.id}.1', f'mine.{eve.id}.1', 'news.1', 'drop.1', 'hidden']
    position = now(team, ns='team')
    change(team, *keys, ns='team')
    assert changed(team, position, ns='team') == keys
    assert changed(team, position, ns='team', headers=bearer(ann.token)) == [keys[0], 'news.1']
    assert changed(team, position, ns='team', headers={}, prefixes=['mine.', 'news.', 'drop.']) == ['news.1']
    assert changed(team, position, ns='team', headers=bearer(eve.token), **{'from': 'mine.', 'to': 'mine/'}) == [keys[1]]


def test_a_key_that_may_not_be_read_is_refused(team):
    ann = Made(team)
    for key in ('drop.1', 'hidden', 'mine.other.1'):
        refused('SCLOSED', listen, team, ns='team', headers=bearer(ann.token), keys=['news.1', key])
    assert now(team, ns='team', headers=bearer(ann.token), keys=['news.1', f'mine.{ann.id}.1'])


def test_where_nothing_may_be_read_nobody_waits(team):
    configure(team, 'team', records=[{'prefix': 'drop.', 'write': 'anyone'}])
    refused('SCLOSED', listen, team, ns='team', headers={}, since='x', wait=60)
    configure(team, 'team', records=[])
    refused('SCLOSED', listen, team, ns='team', headers=bearer(Made(team).token), prefixes=['a'], since='x', wait=60)


@pytest.mark.parametrize('taken', ['rule', 'session'])
def test_a_right_that_is_taken_ends_the_wait(team, taken):
    ann = Made(team)
    with Follower(team, ns='team', headers=bearer(ann.token), keys=[f'mine.{ann.id}.1']) as follower:
        change(team, f'mine.{ann.id}.1', ns='team')
        wait_until(lambda: follower.keys, what='a change')
        if taken == 'rule':
            configure(team, 'team', records=RULES[1:])
        else:
            ann.set({'c': 'Sess', 'k': ann.session, 'del': True})
        change(team, f'mine.{ann.id}.1', ns='team')
        wait_until(lambda: follower.error, what='the refusal')
    assert follower.keys == [f'mine.{ann.id}.1']


def test_a_namespace_that_is_off_is_not_listened_to(stack):
    configure(stack, 'off', state=1, records=[{'prefix': '', 'read': 'anyone'}])
    position = now(stack, ns='off', headers={})  # it is read-only: a listen changes nothing
    configure(stack, 'off', state=2)
    refused('OOFF', listen, stack, ns='off', headers={}, since=position)
    configure(stack, 'off', state=0)


# --- bounds ---

@pytest.mark.parametrize('more', [
    {'keys': 'a'}, {'keys': ['']}, {'keys': [1]}, {'prefixes': ['a'] * 101}, {'from': ''}, {'since': 7}, {'wait': 1}, {'wait': -1, 'since': 'x'},
    {'wait': 3601, 'since': 'x'}, {'key': 'a'}, {'pattern': 'a'}, {'probe': True}], ids=str)
def test_what_is_malformed_is_refused(stack, more):
    refused('AARG', listen, stack, **more)


def test_a_request_listens_once_and_waits_for_nothing_else(stack):
    command = {'do': 'listen', 'since': now(stack)}
    refused('AARG', run, stack, command, command)
    refused('AARG', run, stack, {'do': 'set', 'key': 'refused', 'value': 1}, {**command, 'wait': 1})
    assert run(stack, {'do': 'get', 'key': 'refused'})[0]['state'] == 'NOT_FOUND'
    first, second = run(stack, {'do': 'listen'}, {'do': 'get', 'key': 'none'})
    assert first['position'] and second['state'] == 'NOT_FOUND'


# --- kills ---

def test_nothing_is_missed_while_workers_are_killed(stack):
    """Copies that follow the changes are right in the end."""
    keys, over = [f'copied.{number}' for number in range(20)], threading.Event()

    def write(number):
        chance = random.Random(number)
        with contextlib.closing(requests.Session()) as own:
            own.verify, own.trust_env = stack.http.verify, False
            while not over.is_set():
                key, to = chance.choice(keys), chance.choice(keys)
                command = chance.choice([{'do': 'set', 'value': chance.random(), 'overwrite': True}, {'do': 'delete'}, {'do': 'rename', 'to': to, 'overwrite': True}])
                with contextlib.suppress(requests.RequestException):
                    own.post(f'{stack.url}/lab/op/record', json={'param': {'commands': [{'key': key, **command}]}}, timeout=PATIENCE_S, headers=bearer(stack.key))

    class Copy(Follower):
        def fetch(self, wanted):
            for key in wanted:
                response = self.stack.request('POST', '/lab/op/record', json={'param': {'commands': [{'do': 'get', 'key': key}]}}, admin=True)
                if response.status_code != 200:
                    return False
                self.copy[key] = response.json()['out']['results'][0].get('value')
            return True

        def take(self, result):
            if self.fetch(keys if 'lost' in result else result['keys']):
                super().take(result)
    Copy.copy = {}
    with Copy(stack, prefixes=['copied.']) as follower:
        writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
        for thread in writers:
            thread.start()
        try:
            for _ in range(8):
                seen = len(follower.keys)
                wait_until(lambda: len(follower.keys) > seen + 5, what='some changes')
                stack.kill_worker()
        finally:
            over.set()
            for thread in writers:
                thread.join(PATIENCE_S)
        change(stack, 'copied.last')
        wait_until(lambda: 'copied.last' in follower.keys, what='the last change')
    present = {key: run(stack, {'do': 'get', 'key': key})[0].get('value') for key in keys}
    assert {key: Copy.copy.get(key) for key in keys} == present

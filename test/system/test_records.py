"""Records over HTTP: commands, types, expiry, locks, pages, rights, limits, and workers that are killed meanwhile."""
import base64
import concurrent.futures
import json
import time

import pytest

from stack import refused, wait_until
from test_accounts import OPEN, Made, bearer, configure

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'open', 'team': 'closed', 'off': 'open'},
         'settings': {'restart_young_ms': 0, 'records_mb': 4, 'limit_namespace_records_mb': 1, 'limit_content_bytes': 100000,
                      'limit_answer_bytes': 4 << 20, 'limit_document_bytes': 1 << 20, 'limit_client_connections': 0, 'limit_client_requests': 0}}


def run(stack, *commands, ns='lab', admin=True, **more):
    return stack.op(ns, 'record', {'commands': list(commands)}, admin=admin, **more)['out']['results']


def one(stack, do, key=None, ns='lab', **more):
    command = {'do': do, **({'key': key} if key else {}), **more}
    return run(stack, command, ns=ns)[0]


def state(*words, **more):
    return one(*words, **more)['state']


VALUES = [(None, 'void', 0), (True, 'boolean', 1), (False, 'boolean', 1), (42, 'integer', 8), (-2**63, 'integer', 8), (0.1, 'float', 8),
          ('h\u00e9\U0001f600', 'string', 7), ('', 'string', 0), ({'buffer': base64.urlsafe_b64encode(bytes(range(256))).decode().rstrip('=')}, 'buffer', 256)]


@pytest.mark.parametrize('value, kind, size', VALUES, ids=str)
def test_each_type_comes_back_as_it_was(stack, value, kind, size):
    assert one(stack, 'set', 'typed', value=value, overwrite=True)['state'] == 'OK'
    found = one(stack, 'get', 'typed')
    assert (found['value'], found['type'], found['size']) == (value, kind, size)
    assert type(found['value']) is type(value)


def test_all_workers_see_the_same(stack):
    assert state(stack, 'set', 'shared', value=0, overwrite=True) == 'OK'
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        sums = [result['value'] for result in pool.map(lambda _: one(stack, 'add', 'shared', by=1), range(200))]
    assert sorted(sums) == list(range(1, 201))


def test_what_is_wrong_is_refused_and_nothing_is_run(stack):
    first = {'do': 'set', 'key': 'not-run', 'value': 1}
    for wrong, where in (({'do': 'sot', 'key': 'a'}, 'do'), ({'do': 'set', 'key': 'a', 'valu': 1}, 'valu'), ({'do': 'set', 'key': 'a'}, 'value'),
                         ({'do': 'set', 'key': '', 'value': 1}, 'key'), ({'do': 'set', 'key': 'x' * 1025, 'value': 1}, 'key'),
                         ({'do': 'set', 'key': 'a', 'value': [1]}, 'value'), ({'do': 'set', 'key': 'a', 'value': 2**63}, 'value'),
                         ({'do': 'set', 'key': 'a', 'value': {'buffer': 'a'}}, 'value'), ({'do': 'lock', 'key': 'a', 'lock_ms': 5}, 'owner'),
                         ({'do': 'lock', 'key': 'a', 'owner': 'me'}, 'lock_ms'), ({'do': 'set', 'key': 'a', 'value': 1, 'at': 10**17}, 'at'),
                         ({'do': 'get', 'key': 'a', 'limit': 5}, 'limit'), ({'do': 'get', 'pattern': '('}, 'pattern'),
                         ({'do': 'add', 'key': 'a', 'by': 'x'}, 'by'), ({'do': 'rename', 'key': 'a'}, 'to')):
        problem = refused('AARG', run, stack, first, wrong, status=400)
        assert problem.body['at'] in (f'/param/commands/1/{where}', '/param/commands/1'), (wrong, problem.body)
    refused('ALIMIT', run, stack, {'do': 'set', 'key': 'a', 'value': 'x' * 100001})
    refused('ALIMIT', run, stack, *[{'do': 'get', 'key': 'a'}] * 101)
    assert state(stack, 'get', 'not-run') == 'NOT_FOUND'


def test_what_a_namespace_has_is_shown(stack):
    def listed():
        return {one['code']: one for one in map(json.loads, stack.admin('ns', 'list', '--json').out.splitlines())}

    before = listed()['team']
    assert (before['records'], before['records_bytes']) == (0, 0)
    for i in range(3):
        assert state(stack, 'set', f'shown.{i}', ns='team', value='x' * 1000) == 'OK'
    assert state(stack, 'set', 'shown', ns='team', value='x' * 100000) == 'OK'
    shown, metrics = listed()['team'], stack.metrics()
    assert shown['records'] == 4 and 103000 < shown['records_bytes'] < 106000
    assert metrics['stampd_records{ns="team"}'] == 4 and metrics['stampd_records_bytes{ns="team"}'] == shown['records_bytes']
    assert metrics['stampd_records_capacity_bytes'] == 4 << 20
    refused_before = metrics['stampd_records_refused_total']
    for i in range(20):
        if state(stack, 'set', f'full.{i}', ns='team', value='x' * 100000) == 'OUT_OF_MEMORY':
            break
    assert stack.metrics()['stampd_records_refused_total'] == refused_before + 1
    row, = [line for line in stack.admin('ns', 'list').out.splitlines() if line.startswith('team ')]
    assert row.split()[5] == str(listed()['team']['records'])
    for one in run(stack, {'do': 'get', 'probe': True}, ns='team')[0]['records']:
        assert state(stack, 'delete', one['key'], ns='team', immediate=True) == 'OK'


def test_an_end_is_kept(stack):
    def end_of_one_that_lives():  # on a busy machine it may have ended before it is read
        assert state(stack, 'set', 'short', value=1, ttl_ms=300) == 'OK'
        return one(stack, 'get', 'short').get('expires_ms')

    end = wait_until(end_of_one_that_lives) / 1000
    asked = time.time()
    while state(stack, 'get', 'short') != 'NOT_FOUND':
        assert asked < end + 5
        asked = time.time()
    assert time.time() >= end
    assert state(stack, 'set', 'short', value=2) == 'OK'


def test_locks_marks_and_keys(stack):
    assert state(stack, 'lock', 'door', owner='me', lock_ms=60000, create=True) == 'OK'
    assert state(stack, 'lock', 'door', owner='you', lock_ms=60000, create=True) == 'LOCKED'
    assert state(stack, 'delete', 'door') == 'LOCKED'
    assert state(stack, 'unlock', 'door', owner='me') == 'OK'
    assert state(stack, 'get', 'door') == 'NOT_FOUND'
    assert state(stack, 'set', 'job:1', value='x', keys=['url:1']) == 'OK'
    assert one(stack, 'get', 'url:1', work_ms=60000)['worked_until_ms'] > time.time() * 1000
    assert state(stack, 'get', 'job:1', idle=True) == 'WORKED_ON'
    assert state(stack, 'rename', 'job:1', to='job:2') == 'OK'
    assert [record['key'] for record in one(stack, 'get', prefix='job:')['records']] == ['job:2']
    assert [record['key'] for record in one(stack, 'get', prefix='', pattern='^job:')['records']] == ['job:2'], 'as in a rule: all keys'
    assert state(stack, 'delete', 'url:1') == 'OK'
    assert state(stack, 'get', 'job:2') == 'NOT_FOUND'


def test_the_latest_timestamp_wins(stack):
    now = int(time.time() * 1e6)
    assert state(stack, 'set', 'late', value='new', at=now) == 'OK'
    assert state(stack, 'set', 'late', value='old', at=now - 1, overwrite=True) == 'OLDER'
    assert state(stack, 'delete', 'late', at=now + 1) == 'OK'
    assert state(stack, 'set', 'late', value='old', at=now, overwrite=True) == 'OLDER'
    assert state(stack, 'set', 'late', value='newer', at=now + 2) == 'OK'


def test_pages_have_every_record_once(stack):
    names = [f'page/{number:04}' for number in range(1200)]
    for start in range(0, 1200, 100):
        run(stack, *[{'do': 'set', 'key': name, 'value': name, 'overwrite': True} for name in names[start:start + 100]])
    for conditions, wanted in (({'prefix': 'page/'}, names), ({'from': 'page/0100', 'to': 'page/0199'}, names[100:200]),
                               ({'prefix': 'page/', 'pattern': '7$'}, names[7::10])):
        found, after = [], None
        while True:
            page = one(stack, 'get', limit=90, **conditions, **({'after': after} if after else {}))
            found += [record['value'] for record in page['records']]
            after = page.get('after')
            if not after:
                break
        assert found == wanted


def test_no_match_is_lost_where_the_steps_end(stack):
    """A page also ends after a number of the matcher's steps.  A key has steps of its own, so it does not matter how many were left for it."""
    names = [f'steps/{"a" * 30}{number:04}' for number in range(600)]
    for start in range(0, 600, 100):
        run(stack, *[{'do': 'set', 'key': name, 'value': 1, 'overwrite': True} for name in names[start:start + 100]])
    found, after, pages = [], None, 0
    while after or not pages:
        page = one(stack, 'get', limit=1000, prefix='steps/', pattern='^.*.*#|[0-9]$', **({'after': after} if after else {}))
        found += [record['key'] for record in page['records']]
        after, pages = page.get('after'), pages + 1
    assert found == names and pages > 1


def test_no_page_ends_early_in_silence(stack):
    """A request may pass 5,000 keys: what comes then is not run, and is no page without records, which would mean that there are none."""
    run(stack, *[{'do': 'set', 'key': f'passed/{number:04}', 'value': 1, 'overwrite': True} for number in range(100)])
    found = run(stack, *[{'do': 'get', 'prefix': 'passed/', 'pattern': '99$'}] * 60)
    assert all([record['key'] for record in page['records']] == ['passed/0099'] for page in found[:45])
    assert all('after' in page or page['records'] for page in found if 'records' in page)
    assert found[-1] == {'state': 'NO_ROOM'} and run(stack, {'do': 'get', 'prefix': 'passed/', 'pattern': '99$'})[0]['records']


def test_an_answer_has_a_limit(stack):
    """A content of control characters takes six times its size; without the limit the answer to 100 commands would have 40 MB."""
    try:
        assert state(stack, 'set', 'wide', value='\x01' * 70000, overwrite=True) == 'OK'
        results = run(stack, *[{'do': 'get', 'key': 'wide'}] * 96, {'do': 'get', 'prefix': 'wide'}, {'do': 'get', 'key': 'wide', 'probe': True},
                      {'do': 'add', 'key': 'narrow', 'by': 1, 'create': True}, {'do': 'get', 'key': 'narrow', 'work_ms': 60000})
        states = [result['state'] for result in results]
        assert states == ['OK'] * 5 + ['NO_ROOM'] * 92 + ['OK', 'OK', 'NO_ROOM'] and results[5] == {'state': 'NO_ROOM'}
        assert (results[97]['size'], results[98]['value']) == (70000, 1)
        assert state(stack, 'get', 'narrow', idle=True) == 'OK'  # it was not marked
    finally:
        run(stack, {'do': 'delete', 'key': 'wide'}, {'do': 'delete', 'key': 'narrow'})


def test_the_quota_of_a_namespace_refuses(stack):
    result = [state(stack, 'set', f'large{number}', ns='demo', value='x' * 90000) for number in range(14)]
    assert result[:9] == ['OK'] * 9 and result[-1] == 'OUT_OF_MEMORY'
    assert state(stack, 'set', 'small', value=1, overwrite=True) == 'OK'
    assert state(stack, 'delete', 'large0', ns='demo') == 'OK'
    assert state(stack, 'set', 'large99', ns='demo', value='x' * 80000) == 'OK'


def test_a_worker_may_be_killed(stack):
    """Sums of what was answered; what was sent and not answered may count or not."""
    assert state(stack, 'set', 'killed', value=0, overwrite=True) == 'OK'
    answered, sent = 0, 0
    for number in range(40):
        if number % 8 == 0:
            stack.kill_worker()
        sent += 1
        response = stack.request('POST', '/lab/op/record', json={'param': {'commands': [{'do': 'add', 'key': 'killed', 'by': 1}]}}, admin=True)
        if response.status_code == 200:
            answered += 1
    assert answered > 20
    assert answered <= one(stack, 'get', 'killed')['value'] <= sent


# --- rights ---

RULES = [{'prefix': 'mine.{account}.', 'read': 'account', 'write': 'account'}, {'prefix': 'news.', 'read': 'anyone', 'write': 'role:editor'},
         {'prefix': 'drop.', 'write': 'anyone'}]


@pytest.fixture(scope='module')
def team(stack):
    configure(stack, 'team', access='rules', accounts=OPEN, records=RULES)
    return stack


def states(team, headers, *commands):
    response = team.request('POST', '/team/op/record', json={'param': {'commands': list(commands)}}, headers=headers)
    if response.status_code != 200:
        return response.json()['code']
    return [result['state'] for result in response.json()['out']['results']]


def test_nobody_may_without_a_rule(stack):
    for ns in ('lab', 'demo'):
        response = stack.request('POST', f'/{ns}/op/record', json={'param': {'commands': [{'do': 'get', 'key': 'a'}]}})
        assert response.json()['code'] == 'SCLOSED'
        response = stack.request('POST', f'/{ns}/op/record', json={'param': {'commands': [{'do': 'get', 'prefix': 'a'}]}})
        assert response.json()['out']['results'] == [{'state': 'OK', 'records': []}]


def test_rules_decide_for_each_key(team):
    ann, eve = Made(team), Made(team)
    ann.set({'c': 'Roles', 'j': {'roles': ['editor']}})
    own, other = f'mine.{ann.id}.x', f'mine.{eve.id}.x'
    for headers, command, wanted in (
            (bearer(ann.token), {'do': 'set', 'key': own, 'value': 1}, ['OK']),
            (bearer(ann.token), {'do': 'set', 'key': other, 'value': 1}, 'SCLOSED'),
            (bearer(ann.token), {'do': 'rename', 'key': own, 'to': other}, 'SCLOSED'),
            (bearer(ann.token), {'do': 'link', 'key': own, 'to': other}, 'SCLOSED'),
            (bearer(ann.token), {'do': 'set', 'key': own, 'value': 1, 'keys': [other]}, 'SCLOSED'),
            (bearer(eve.token), {'do': 'get', 'key': own}, 'SCLOSED'),
            ({}, {'do': 'get', 'key': own}, 'SCLOSED'),
            (bearer(ann.token), {'do': 'set', 'key': 'news.1', 'value': 'hello'}, ['OK']),
            (bearer(eve.token), {'do': 'set', 'key': 'news.2', 'value': 'hello'}, 'SCLOSED'),
            ({}, {'do': 'get', 'key': 'news.1'}, ['OK']),
            ({}, {'do': 'get', 'key': 'news.1', 'work_ms': 5}, 'SCLOSED'),
            ({}, {'do': 'set', 'key': 'drop.1', 'value': 5}, ['OK']),
            ({}, {'do': 'get', 'key': 'drop.1'}, 'SCLOSED')):
        assert states(team, headers, command) == wanted, command


def test_what_may_not_be_read_is_not_in_a_page(team):
    ann, eve = Made(team), Made(team)
    for maker in (ann, eve):
        run(team, *[{'do': 'set', 'key': f'mine.{maker.id}.{number}', 'value': 1} for number in range(5)], ns='team')
    run(team, {'do': 'set', 'key': 'drop.secret', 'value': 1, 'overwrite': True}, {'do': 'set', 'key': 'a', 'value': 1, 'overwrite': True}, ns='team')
    seen, after = [], None
    while True:
        command = {'do': 'get', 'limit': 2, 'probe': True, **({'after': after} if after else {})}
        answer = team.request('POST', '/team/op/record', json={'param': {'commands': [command]}}, headers=bearer(ann.token)).json()
        seen += [record['key'] for record in answer['out']['results'][0]['records']]
        after = answer['out']['results'][0].get('after')
        if not after:
            break
        assert after.startswith((f'mine.{ann.id}.', 'news.'))
    assert [key for key in seen if key.startswith('mine.')] == [f'mine.{ann.id}.{number}' for number in range(5)]
    assert not [key for key in seen if key.startswith('drop.') or key == 'a']


def test_a_writer_who_may_not_read_learns_nothing(team):
    answer = team.request('POST', '/team/op/record', json={'param': {'commands': [{'do': 'set', 'key': 'drop.2', 'value': 5}, {'do': 'add', 'key': 'drop.2', 'by': 1}]}})
    assert answer.json()['out']['results'] == [{'state': 'OK'}, {'state': 'OK'}]


def test_the_state_of_the_namespace_counts(stack):
    configure(stack, 'off', records=[{'prefix': 'k', 'read': 'anyone', 'write': 'anyone'}])
    reads, writes = {'do': 'get', 'key': 'k'}, {'do': 'set', 'key': 'k', 'value': 1, 'overwrite': True}

    def codes():
        return [stack.request('POST', '/off/op/record', json={'param': {'commands': [command]}}).json().get('code') for command in (reads, writes)]
    assert codes() == [None, None]
    configure(stack, 'off', state=1)
    assert codes() == [None, 'OREADONLY']
    configure(stack, 'off', state=2)
    assert codes() == ['OOFF', 'OOFF']
    configure(stack, 'off', state=0)
    assert codes() == [None, None]


@pytest.mark.parametrize('rules', [5, {}, [5], [{}], [{'prefix': 5}], [{'prefix': 'a', 'read': 'everybody'}], [{'prefix': 'a', 'more': 1}],
                                   [{'prefix': '{account}', 'read': 'account'}], [{'prefix': '{account}x', 'read': 'account'}], [{'prefix': 'a', 'read': 'role:'}],
                                   [{'prefix': 'a'}] * 33], ids=str)
@pytest.mark.plain
def test_malformed_rules_are_refused(stack, rules):
    refused('AARG', configure, stack, 'lab', records=rules)


@pytest.mark.plain
def test_no_key_of_idempotency(stack):
    response = stack.request('POST', '/lab/op/record', json={'param': {'commands': []}}, admin=True, headers={'Idempotency-Key': 'a'})
    assert response.status_code == 400

"""Records that strangers write: ends and shares by the rules, changes of what is there, what is in the way, and a database that is away."""
import concurrent.futures
import time

import pytest

from door_client import Client
from stack import refused, wait_until
from test_accounts import OPEN, Made, bearer, configure
from test_records import run, states

MB = 1 << 20
STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'lab': 'open', 'team': 'closed'},
         'settings': {'restart_young_ms': 0, 'records_mb': 4, 'limit_namespace_records_mb': 1, 'limit_content_bytes': 100000}}
RULES = [{'prefix': 'p.', 'read': 'anyone', 'write': 'anyone'},
         {'prefix': 'short.', 'read': 'anyone', 'write': 'anyone', 'ttl_ms': 5000, 'ttl_most_ms': 60000},
         {'prefix': 'few.', 'write': 'anyone', 'records': 5, 'caller_records': 3},
         {'prefix': 'small.', 'read': 'account', 'write': 'account', 'bytes': 5000, 'caller_bytes': 3000},
         {'prefix': 'blind.', 'write': 'anyone'},
         {'prefix': 'role.', 'read': 'anyone', 'write': 'role:editor'}]


@pytest.fixture(scope='module')
def team(stack):
    configure(stack, 'team', access='rules', accounts=OPEN, records=RULES)
    return stack


@pytest.fixture(autouse=True)
def empty(stack):
    """Each test begins without records in the namespace."""
    yield
    while True:
        page = run(stack, {'do': 'get', 'limit': 100, 'probe': True}, ns='team')[0]
        if page['records']:
            run(stack, *[{'do': 'delete', 'key': record['key'], 'immediate': True} for record in page['records']], ns='team')
        if 'after' not in page:
            break


def put(key, value=1, **more):
    return {'do': 'set', 'key': key, 'value': value, 'overwrite': True, **more}


class Door:
    def __init__(self, stack, number):
        self.client = Client(stack, f'127.0.0.{number}')

    def run(self, *commands, **headers):
        body = self.client.ask('POST', '/team/op/record', {'param': {'commands': list(commands)}}, **headers).json
        return body['out']['results'] if 'out' in body else body['code']

    def state(self, command):
        found = self.run(command)
        return found if isinstance(found, str) else found[0]['state']


def fill(door, prefix, size=20000):
    """As much as the caller gets; how many bytes of values."""
    stored = 0
    for part in (size, 1000, 100, 1):
        for number in range(400):
            if door.state(put(f'{prefix}{door.client.address}.{part}.{number}', 'x' * part)) != 'OK':
                break
            stored += part
    return stored


def test_a_stranger_gets_a_share_and_others_are_not_refused(team):
    """The attack of a review: values of any sizes without an end, until nothing more is stored."""
    before = team.metrics()['stampd_records_share_refused_total']
    strangers = [Door(team, 10 + number) for number in range(9)]
    stored = [fill(stranger, 'p.') for stranger in strangers]
    assert stored[0] > MB / 16 * 0.8 and max(stored) <= MB / 16
    assert MB / 2 * 0.8 < sum(stored) <= MB / 2  # all strangers together
    assert stored[-1] == 0
    assert team.metrics()['stampd_records_share_refused_total'] > before
    assert 0 < team.metrics()['stampd_records_shares_bytes'] <= MB * 3 / 4
    # another rule, an account, and the administrator's lock
    assert Door(team, 30).state(put('short.1')) == 'OK'
    ann = Made(team)
    assert states(team, bearer(ann.token), put('small.1')) == ['OK']
    assert run(team, {'do': 'lock', 'key': 'p.lock', 'owner': 'me', 'lock_ms': 5000, 'create': True}, put('admin', 'x' * 90000), put('admin2', 'x' * 90000),
               ns='team')[-1]['state'] == 'OK'
    # what makes a share smaller is always possible, and then there is room
    key = f'p.{strangers[0].client.address}.20000.0'
    assert strangers[0].run({'do': 'delete', 'key': key})[0]['state'] == 'OK'
    assert strangers[0].state(put('p.again', 'y' * 15000)) == 'OK'


def test_all_rules_together_leave_something_for_the_administrator(team):
    configure(team, 'team', records=[{'prefix': f'{number}.', 'write': 'anyone', 'caller_bytes': MB, 'bytes': MB} for number in range(4)])
    try:
        assert MB * 0.6 < sum(fill(Door(team, 40 + number), f'{number}.', 90000) for number in range(4)) <= MB * 3 / 4
        for number in range(2):
            assert run(team, put(f'own{number}', 'x' * 90000), ns='team')[0]['state'] == 'OK'
    finally:
        while run(team, {'do': 'get', 'limit': 1, 'probe': True}, ns='team')[0]['records']:
            keys = [record['key'] for record in run(team, {'do': 'get', 'limit': 100, 'probe': True}, ns='team')[0]['records']]
            run(team, *[{'do': 'delete', 'key': key, 'immediate': True} for key in keys], ns='team')
        configure(team, 'team', records=RULES)


def test_records_of_a_share_are_counted(team):
    one, other = Door(team, 50), Door(team, 51)
    assert [one.state(put(f'few.{number}')) for number in range(4)] == ['OK', 'OK', 'OK', 'OUT_OF_SHARE']
    assert [other.state(put(f'few.1{number}')) for number in range(3)] == ['OK', 'OK', 'OUT_OF_SHARE']
    assert other.state({'do': 'delete', 'key': 'few.0', 'immediate': True}) == 'OK'  # anybody may; it was of the other's share
    assert one.state(put('few.4')) == 'OK'
    # renamed, it counts by the rule of its new key; what was of the administrator alone counts for nobody
    assert run(team, {'do': 'rename', 'key': 'few.4', 'to': 'elsewhere', 'immediate': True}, ns='team')[0]['state'] == 'OK'
    assert run(team, put('elsewhere'), ns='team')[0]['state'] == 'OK'
    assert one.state(put('few.5')) == 'OK'


def test_an_account_has_one_share_wherever_it_is(team):
    ann, eve = Made(team), Made(team)

    def state(maker, address, key, size):
        return Door(team, address).run(put(key, 'x' * size), **bearer(maker.token))[0]['state']
    assert state(ann, 60, 'small.1', 2500) == 'OK'
    assert state(ann, 61, 'small.2', 1000) == 'OUT_OF_SHARE'
    assert state(eve, 60, 'small.3', 1500) == 'OK'
    assert state(eve, 60, 'small.4', 1000) == 'OUT_OF_SHARE'  # of the rule
    assert state(eve, 60, 'small.1', 100) == 'OK'  # it counts for the one who stored it last
    assert state(ann, 61, 'small.2', 1000) == 'OK'


def test_a_rule_gives_an_end(team):
    door, now = Door(team, 70), time.time() * 1000
    default, given, of_anyone = door.run(put('short.1'), put('short.2', ttl_ms=60000), put('p.1'))
    then = time.time() * 1000
    assert now < default['expires_ms'] < then + 30000 and now + 50000 < given['expires_ms'] < then + 65000
    assert now + 86000000 < of_anyone['expires_ms'] < then + 86500000  # `anyone` without a number: a day
    for command, member in ((put('short.3', ttl_ms=60001), 'ttl_ms'), (put('short.3', touch_s=61), 'touch_s'), (put('p.3', ttl_ms=86400001), 'ttl_ms'),
                            ({'do': 'lock', 'key': 'short.3', 'owner': 'me', 'lock_ms': 60001, 'create': True}, 'lock_ms'),
                            ({'do': 'get', 'key': 'short.1', 'ttl_ms': 60001}, 'ttl_ms'), ({'do': 'get', 'key': 'short.1', 'work_ms': 60001}, 'work_ms')):
        assert door.run(command) == 'ALIMIT', command
        problem = refused('ALIMIT', run, team, command, ns='team', admin=False)
        assert problem.body['at'] == f'/param/commands/0/{member}' and problem.body['args'][:2] == ['ttl_most_ms', '60000' if 'short' in command['key'] else '86400000']
    now = time.time() * 1000
    page = door.run(put('short.1'), put('short.2'), {'do': 'get', 'prefix': 'short.', 'ttl_ms': 300000})[-1]['records']  # of many, it is cut
    assert [record['key'] for record in page] == ['short.1', 'short.2']
    assert all(now + 50000 < record['expires_ms'] < time.time() * 1000 + 65000 for record in page)
    assert 'expires_ms' not in run(team, put('short.4'), ns='team')[0]  # the administrator decides himself
    assert 'expires_ms' not in door.run({'do': 'add', 'key': 'short.4', 'by': 1})[0]  # and what others add leaves it
    assert door.run({'do': 'add', 'key': 'short.5', 'by': 1, 'create': True})[0]['expires_ms'] < time.time() * 1000 + 30000
    assert door.run({'do': 'rename', 'key': 'p.1', 'to': 'short.6'})[0]['expires_ms'] < time.time() * 1000 + 65000


def test_a_mark_of_many_records_is_cut(team):
    """One record that is worked on for longer than its rule allows is refused; of many the mark is as long as that."""
    assert states(team, {}, put('short.mine'), {'do': 'get', 'key': 'short.mine', 'work_ms': 70000}) == 'ALIMIT'
    assert run(team, put('short.own'), put('long'), ns='team')[0]['state'] == 'OK'  # of the administrator, without an end
    for record in Door(team, 60).run({'do': 'get', 'prefix': 'short.', 'work_ms': 7 * 86400000})[0]['records']:
        assert time.time() * 1000 < record['worked_until_ms'] < time.time() * 1000 + 65000


def test_a_record_that_cannot_be_marked_is_not_passed(team):
    """A page of marks ends before it; a page that would begin with it is refused."""
    assert [one['state'] for one in run(team, *[put(f'read.{number}', 'x' * 300) for number in range(5)], ns='team')] == ['OK'] * 5
    configure(team, 'team', records=[{'prefix': 'read.', 'read': 'anyone', 'write': 'anyone', 'caller_records': 2}])
    try:
        door, marks = Door(team, 61), {'do': 'get', 'prefix': 'read.', 'work_ms': 60000, 'idle': True}
        page = door.run(marks)[0]
        assert [record['key'] for record in page['records']] == ['read.0', 'read.1'] and page['after'] == 'read.1'
        assert door.run({**marks, 'after': 'read.1'}) == [{'state': 'OUT_OF_SHARE'}]
        assert [record['key'] for record in Door(team, 62).run(marks)[0]['records']] == ['read.2', 'read.3']
    finally:
        configure(team, 'team', records=RULES)


def test_what_others_change_of_it_leaves_a_record_without_an_end(team):
    door = Door(team, 63)
    run(team, put('short.free', {'buffer': 'AAAA'}), ns='team')
    for command in ({'do': 'lock', 'owner': 'me', 'lock_ms': 1000}, {'do': 'truncate', 'size': 3000, 'owner': 'me'}, {'do': 'get', 'work_ms': 1000}):
        assert 'expires_ms' not in door.run({**command, 'key': 'short.free'})[0], command
    assert 'expires_ms' in door.run({'do': 'link', 'key': 'short.free', 'to': 'short.link', 'owner': 'me'})[0]


def test_a_role_has_no_limits_of_its_own(team):
    ann = Made(team)
    ann.set({'c': 'Roles', 'j': {'roles': ['editor']}})
    results = [Door(team, 65).run(put(f'role.{number}', 'x' * 50000), **bearer(ann.token))[0] for number in range(12)]
    assert [result['state'] for result in results] == ['OK'] * 12 and 'expires_ms' not in results[0]


@pytest.mark.plain
@pytest.mark.parametrize('more', [{'ttl_ms': 0}, {'ttl_ms': 'x'}, {'ttl_ms': 2, 'ttl_most_ms': 1}, {'bytes': -1}, {'records': 1.5}, {'caller_bytes': True}, {'callers': 5}], ids=str)
def test_malformed_terms_are_refused(stack, more):
    refused('AARG', configure, stack, 'lab', records=[{'prefix': 'a', 'write': 'anyone', **more}])


# --- stamps ---


def test_only_what_is_there(stack):
    for only, there, wanted in (('present', False, 'NOT_FOUND'), ('absent', False, 'OK'), ('absent', True, 'NOT_FREE'), ('present', True, 'OK')):
        result = run(stack, {'do': 'set', 'key': 'only', 'value': only, 'only': only}, ns='team')[0]
        assert result['state'] == wanted, (only, there)
    assert run(stack, {'do': 'get', 'key': 'only'}, ns='team')[0]['value'] == 'present'
    for wrong, at in (({'only': 'present', 'overwrite': True}, 'only'), ({'only': 'x'}, 'only'), ({'if': 'x'}, 'if'), ({'if': '0' * 16}, 'if'),
                      ({'if': '0' * 15 + '1', 'overwrite': True}, 'if'), ({'if': '0' * 15 + '1', 'only': 'present'}, 'if')):
        assert refused('AARG', run, stack, {'do': 'set', 'key': 'a', 'value': 1, **wrong}, ns='team').body['at'] == f'/param/commands/0/{at}'
    refused('AARG', run, stack, {'do': 'add', 'key': 'a', 'by': 1, 'create': True, 'if': '0' * 15 + '1'}, ns='team')


def test_of_eight_one_wins(stack):
    """Each reads, and changes what it has read, until it has done so 25 times: no change is lost."""
    run(stack, put('n', 0), ns='team')

    def change(_):
        won = 0
        while won < 25:
            found = run(stack, {'do': 'get', 'key': 'n'}, ns='team')[0]
            result = run(stack, {'do': 'set', 'key': 'n', 'value': found['value'] + 1, 'if': found['stamp']}, ns='team')[0]
            assert result['state'] in ('OK', 'OTHER_STAMP')
            if result['state'] == 'OK':
                assert result['stamp'] != found['stamp']
                won += 1
            else:
                assert result['value'] > found['value'] and result['stamp'] != found['stamp']  # no second get is needed
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(8)))
    assert run(stack, {'do': 'get', 'key': 'n'}, ns='team')[0]['value'] == 200


def test_every_change_may_be_of_a_stamp(stack):
    for do, more in (('delete', {}), ('add', {'by': 1}), ('truncate', {'size': 0}), ('rename', {'to': 'z'}), ('link', {'to': 'z'}), ('unlink', {}), ('not', {})):
        value = {'truncate': 'text', 'not': True}.get(do, 1)
        stamp = run(stack, put('a', value), ns='team')[0]['stamp']
        other = f'{int(stamp, 16) + 1:016x}'
        assert run(stack, {'do': do, 'key': 'a', 'if': other, **more}, ns='team')[0]['state'] == 'OTHER_STAMP', do
        assert run(stack, {'do': do, 'key': 'a', 'if': stamp, **more}, ns='team')[0]['state'] == 'OK', do
        run(stack, *[{'do': 'delete', 'key': key, 'immediate': True} for key in 'az'], ns='team')


def test_what_is_in_the_way_is_shown_to_who_may_read_it(team):
    door = Door(team, 80)
    run(team, put('p.1', 'there', ttl_ms=50000), put('blind.1', 'secret'), ns='team')
    found = door.run({'do': 'set', 'key': 'p.1', 'value': 1})[0]
    assert (found['state'], found['key'], found['value']) == ('NOT_FREE', 'p.1', 'there') and found['stamp'] and found['expires_ms'] > time.time() * 1000
    assert door.run({'do': 'set', 'key': 'blind.1', 'value': 1}) == [{'state': 'NOT_FREE'}]
    assert door.run({'do': 'set', 'key': 'p.2', 'value': 1, 'keys': ['blind.1']}) == [{'state': 'NOT_FREE'}]
    found = door.run({'do': 'set', 'key': 'blind.2', 'value': 1, 'keys': ['p.1']})[0]
    assert (found['state'], found['key'], found['value']) == ('NOT_FREE', 'p.1', 'there')
    assert door.run({'do': 'set', 'key': 'blind.1', 'value': 1, 'if': '0' * 15 + '1'}) == [{'state': 'OTHER_STAMP'}]


def test_a_probe_moves_the_end(stack):
    now = time.time() * 1000
    _, left, moved = run(stack, put('a', 'x', ttl_ms=5000, touch_s=600), {'do': 'get', 'key': 'a', 'probe': True},
                         {'do': 'get', 'key': 'a', 'probe': True, 'ttl_ms': 100000}, ns='team')
    assert left['expires_ms'] < time.time() * 1000 + 60000
    assert now + 90000 < moved['expires_ms'] < time.time() * 1000 + 101000 and 'value' not in moved


# --- without the database ---


def test_records_go_on_without_the_database(team):
    """What needs no document: keys of the administrator, rules, and accounts that the process knows."""
    door, ann = Door(team, 90), Made(team)
    for _ in range(40):  # each worker knows the namespace and the account
        states(team, bearer(ann.token), put('small.1'))
        door.run(put('p.1', 0))
    team.stop_postgres('immediate')
    try:
        for number in range(40):
            assert run(team, put('a', number), {'do': 'get', 'key': 'a'}, ns='team')[1]['value'] == number
            assert door.run(put('p.1', number), {'do': 'get', 'key': 'p.1'})[1]['value'] == number
            assert states(team, bearer(ann.token), put('small.1', number)) == ['OK']
            assert door.run(put('small.1')) == 'SCLOSED'
    finally:
        team.step('postgres', 'start')
    wait_until(lambda: team.request('GET', '/team/ping').json()['db'] == 'ok')
    assert run(team, {'do': 'get', 'key': 'a'}, ns='team')[0]['value'] == 39

"""Quotas: each kind, for each subject, on each path that it counts: so many as the burst are served, the next is refused with the name
of the quota and the time to wait; another address, another namespace, another kind and the administrator are not affected."""
import hashlib
import itertools
import json
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from door_client import Client
from kit import Kit
from manager import Manager
from schema import Schemas
from stack import Problem, refused, wait_until
from test_accounts import OPEN, TOMORROW, Made, bearer, random_text

pytestmark = pytest.mark.plain

# More workers than a crowd: when all others are at commits for two seconds, the last one begins none.
STACK = {'workers': 10, 'namespaces': {'z': 'closed', 'demo': 'open', 'lab': 'open', 'team': 'closed'},
         'settings': {'limit_client_connections': 0, 'limit_client_requests': 0, 'segment_slots': 1024, 'restart_young_ms': 0, 'keep_interval_s': 1}}
BURST = 5
SCHEMA = {'Note': {'open': True, 'items': {'Main': {'singleton': True, 'fields': {'team': 'string'}}},
                   'collections': {'all': {'key': ['Main.team'], 'mutable': True}}}}
NOTE = {'c': 'Note', 'id': 'one', 'items': [{'c': 'Main', 'j': {'team': 'red'}}]}
NAMED, SESSION = {'c': 'Note', 'id': 'one'}, 'a-session-of-somebody'
NUMBERS = itertools.count(2)


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = str(kit.build('tasks.c'))
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def demo(stack, tmp_path_factory):
    for ns in ('demo', 'lab'):
        Schemas(stack, tmp_path_factory.mktemp(ns)).apply(ns, SCHEMA)
        stack.put(ns, NOTE)
    return stack


@pytest.fixture
def client(demo):
    """Each time another address."""
    made = []

    def client():
        number = next(NUMBERS)
        made.append(Client(demo, f'127.0.{number // 250}.{number % 250 + 1}'))
        return made[-1]
    yield client
    for one in made:
        one.close()
    set_quotas(demo, None)


def set_quotas(stack, quotas, ns='demo'):
    return stack.op('z', 'ns', {'set': {'ns': ns, 'quotas': quotas}}, admin=True)


def forget(stack):
    """The counters are gone with the segment."""
    stack.restart_stampd()


# --- what is counted ---

def op(name, param=None, **more):
    return lambda client, ns: client.op(ns, name, param, **more)


def resource(method, id_, body=None):
    return lambda client, ns: client.ask(method, f'/{ns}/doc/Note/{id_}', body)


class Opened:
    """Of an answer that does not end: its status; of a refusal, all of it."""

    def __init__(self, client, ns, path):
        connection = client.connect()
        client.send(connection, 'POST', f'/{ns}/{path}', {'defs': ['Note']})
        response = connection.getresponse()
        self.status, self.code, self.args = response.status, '', []
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        if self.status != 200:
            problem = json.loads(response.read())
            self.code, self.args = problem['code'], problem['args']
        else:
            connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()


ALL = {'c': 'Note', 'collection': 'all', 'value': 'red', 'want': 'docs'}
# kind: the requests that it counts
COUNTED = {
    'requests': {
        'get': op('get', {'docs': [NAMED]}), 'get by GET': lambda client, ns: client.ask('GET', f'/{ns}/op/get?param={{"docs":[]}}'),
        'sync': op('sync', syncs=[NAMED]), 'list': op('list', {}), 'put': op('put', {'docs': [NOTE]}), 'GET': resource('GET', 'one'),
        'PUT': resource('PUT', 'two', {'items': NOTE['items']}), 'collection': op('collection', ALL), 'public': op('Quiet', {'id': 'x'}),
        'find': op('find', {'c': 'Note', 'i': 'Main', 'want': 'ids', 'id': {'t': 'eq', 'v1': 'one'}}), 'task': op('task', {'op': 'Count', 'param': {'id': 'x'}}),
        'search': op('search', {'name': 'none'}), 'subs': op('subs', {'defs': ['Note']}, session=SESSION)},
    'writes': {
        'put': op('put', {'docs': [NOTE]}), 'PUT': resource('PUT', 'two', {'items': NOTE['items']}),
        'PATCH': resource('PATCH', 'one', {'items': NOTE['items']}), 'DELETE': resource('DELETE', 'three'),
        'public': op('Quiet', {'id': 'x'}), 'task': op('task', {'op': 'Count', 'param': {'id': 'x'}}),
        'subs': op('subs', {'defs': ['Note']}, session=SESSION)},
    'tasks': {'task': op('task', {'op': 'Count', 'param': {'id': 'x'}})},
    'subscriptions': {'subs': op('subs', {'defs': ['Note']}, session=SESSION)},
    'live': {'live': lambda client, ns: Opened(client, ns, 'live')},
    'streams': {'stream': op('collection', {**ALL, 'stream': True})},
}
# Requests that only the kind `requests` counts.
READS = [op('get', {'docs': [NAMED]}), op('sync', syncs=[NAMED]), resource('GET', 'one'), op('collection', ALL), op('subs', session=SESSION)]
MATRIX = [(kind, path) for kind, paths in COUNTED.items() for path in paths]
SERVED = (200, 201, 204, 404)  # 404: DELETE of what is not there


def rate(count=BURST):
    return f'{count}/d'


def is_served(reply):
    return reply.status in SERVED and reply.code != 'XBUSY'


def assert_refused(reply, name, text):
    assert (reply.status, reply.code, reply.args) == (429, 'XBUSY', [f'quotas.{name}', text]), reply
    assert 1 <= int(reply.headers['retry-after']) <= 86400 // BURST + 1


@pytest.mark.parametrize('kind, path', MATRIX)
def test_an_address_may_do_so_much(demo, client, kind, path):
    send, greedy, other = COUNTED[kind][path], client(), client()
    set_quotas(demo, {'address': {kind: rate()}})
    assert [is_served(send(greedy, 'demo')) for _ in range(BURST)] == [True] * BURST
    for _ in range(3):  # by several workers
        assert_refused(send(greedy, 'demo'), f'address.{kind}', rate())
    assert is_served(send(other, 'demo')), 'another address'
    assert is_served(send(greedy, 'lab')), 'another namespace'
    if kind != 'requests':
        assert all(is_served(read(greedy, 'demo')) for read in READS), 'another kind'
    demo.put('demo', NOTE, admin=True)
    assert demo.metrics()[f'stampd_quota_refused_total{{ns="demo",quota="address.{kind}"}}'] >= 3


@pytest.mark.parametrize('kind', COUNTED)
def test_a_namespace_may_be_asked_for_so_much(demo, client, kind):
    forget(demo)
    set_quotas(demo, {'namespace': {kind: rate()}, 'address': {kind: rate(BURST - 2)}})
    path, send = next(iter(COUNTED[kind].items()))
    one, two, three = client(), client(), client()
    assert [is_served(send(one, 'demo')) for _ in range(BURST + 3)] == [True] * (BURST - 2) + [False] * 5
    assert [is_served(send(two, 'demo')) for _ in range(2)] == [True] * 2, 'what an address was refused does not count for the namespace'
    assert_refused(send(two, 'demo'), f'namespace.{kind}', rate())
    assert_refused(send(three, 'demo'), f'namespace.{kind}', rate())
    assert is_served(send(three, 'lab')), path
    demo.op('demo', 'get', {'docs': []}, admin=True)


def test_the_administrator_is_not_limited(demo, client):
    set_quotas(demo, {subject: {kind: rate(1) for kind in COUNTED} for subject in ('address', 'namespace', 'account')})
    one = client()
    key = {'Authorization': f'Bearer {demo.key}'}
    for _ in range(3 * BURST):
        assert one.ask('POST', '/demo/op/put', {'param': {'docs': [NOTE]}}, **key).status == 200
        assert one.ask('POST', '/demo/op/task', {'param': {'op': 'Count', 'param': {'id': 'x'}}}, **key).status == 200
    assert demo.op('demo', 'get', {'docs': []})['out'] is not None  # it has used nothing
    refused('XBUSY', demo.op, 'demo', 'get', {'docs': []}, status=429)


def test_an_exempt_client_has_no_quota_of_an_address(demo, client):
    set_quotas(demo, {'address': {'requests': rate(1)}})
    for _ in range(10):  # 127.0.0.1
        demo.op('demo', 'get', {'docs': []})


def test_rates_fill_up_again(demo, client):
    one = client()
    set_quotas(demo, {'address': {'requests': '20/s, burst 1'}})
    served = 0

    def is_enough():
        nonlocal served
        served += one.op('demo', 'get', {'docs': []}).status == 200
        return served >= 5
    wait_until(is_enough)


def test_a_change_holds_at_the_next_request(demo, client):
    one = client()
    set_quotas(demo, {'address': {'requests': rate(1)}})
    assert is_served(one.op('demo', 'get', {'docs': []}))
    assert not is_served(one.op('demo', 'get', {'docs': []}))
    set_quotas(demo, {'address': {'writes': rate(1)}})
    assert [is_served(one.op('demo', 'get', {'docs': []})) for _ in range(9)] == [True] * 9


def test_a_namespace_without_quotas_has_those_of_z(demo, client):
    one = client()
    set_quotas(demo, {'address': {'requests': rate()}}, 'z')
    try:
        assert [is_served(one.op('demo', 'get', {'docs': []})) for _ in range(BURST + 1)] == [True] * BURST + [False]
        assert is_served(one.op('lab', 'get', {'docs': []})), 'each namespace is counted by itself'
        set_quotas(demo, {})
        assert is_served(one.op('demo', 'get', {'docs': []})), 'its own, though empty, come first'
    finally:
        set_quotas(demo, None, 'z')


def test_counters_outlive_workers(demo, client):
    one = client()
    set_quotas(demo, {'address': {'requests': rate()}})
    for _ in range(BURST):
        assert is_served(one.op('demo', 'get', {'docs': []}))
    before = set(demo.worker_pids())
    for pid in before:
        demo.kill_worker(pid)
    wait_until(lambda: len(now := set(demo.worker_pids())) >= len(before) and not now & before, what='new workers')
    assert_refused(one.op('demo', 'get', {'docs': []}), 'address.requests', rate())
    forget(demo)
    assert is_served(one.op('demo', 'get', {'docs': []})), 'not the segment'


# --- configuration ---

GOOD = [{}, {'classes': {}}, {'classes': {'Note': {'bytes': 5, 'file_bytes': 7}, 'Other': {}}}, {'namespace': {'file_bytes': 1}}, {'address': {}}, {'account': {'requests': '1/s', 'bytes': 7}}, {'namespace': {'bytes': 1, 'live': '3/d, burst 1000000000'}},
        {subject: {kind: '100/h, burst 7' for kind in COUNTED} for subject in ('address', 'account', 'namespace')},
        {'address': {'requests': '8000/s', 'writes': '480000/min'}},
        {subject: {number: 9223372036854775807 for number in ('live_open', 'streams_open', 'tasks_waiting', 'subscriptions_held')} for subject in ('address', 'account', 'namespace')}]
WRONG = [{'classes': []}, {'classes': {'note': {}}}, {'classes': {'Note': {'bytes': 0}}}, {'classes': {'Note': {'requests': '1/s'}}}, {'classes': {'Note': 5}},
         {'classes': {f'C{number}': {} for number in range(17)}}, {'account': {'file_bytes': 5}}, {'address': {'file_bytes': 5}}, [], 'x', 7, True, {'adress': {}}, {'address': []}, {'address': {'reads': '1/s'}}, {'address': {'requests': 5}},
         {'address': {'bytes': 5}}, {'address': {'live_open': '5/s'}}, {'address': {'open': 5}},
         *({subject: {'live_open': number}} for number in (0, -1, '5', 1.5, True, [], None, 9223372036854775808)
           for subject in ('address', 'account', 'namespace')),
         *({subject: {'bytes': bytes_}} for bytes_ in (0, -1, '5', 1.5, [], None) for subject in ('account', 'namespace')),
         *({'address': {'requests': text}} for text in (
             '', '5', '/s', '5/', '0/s', '-1/s', '+1/s', '5 /s', '5/ s', '5/sec', '5/ms', '5/w', '5/min ', ' 5/min', '5/min,burst 3', '5/min, burst',
             '5/min, burst 0', '5/min, burst 3 ', '5/min, burst -1', '1e3/s', '5.0/s', '0x5/s', '1000000001/d', '5/min, burst 1000000001',
             '8001/s', '480001/min', '99999999999999999999/s', '5/s\u0000', '５/s', '5/s; drop'))]


@pytest.mark.parametrize('quotas', GOOD)
def test_good_ones(demo, client, quotas):
    set_quotas(demo, quotas)
    assert demo.op('z', 'ns', {'get': 'demo'}, admin=True)['out']['quotas'] == quotas


@pytest.mark.parametrize('quotas', WRONG, ids=lambda quotas: json.dumps(quotas)[:60])
def test_wrong_ones_are_refused(demo, client, quotas):
    problem = refused(('AJSON' if '\\u0000' in json.dumps(quotas) else 'AARG'), set_quotas, demo, quotas)
    assert problem.code == 'AJSON' or problem.body['at'].startswith('/param/set/quotas')
    assert 'quotas' not in demo.op('z', 'ns', {'get': 'demo'}, admin=True)['out']


def test_stampctl_sets_and_prints_them(demo, client):
    wanted = {'address': {'requests': '600/min, burst 50'}, 'namespace': {'writes': '5/s'}}
    demo.admin('ns', 'quotas', 'demo', json.dumps(wanted))
    assert json.loads(demo.admin('ns', 'quotas', 'demo').out) == wanted
    assert demo.op('z', 'ns', {'get': 'demo'}, admin=True)['out']['quotas'] == wanted
    assert 'expected' in demo.admin('ns', 'quotas', 'demo', '{"address":{"requests":1}}', status=1).error
    assert json.loads(demo.admin('ns', 'quotas', 'demo').out) == wanted
    demo.admin('ns', 'quotas', 'demo', '--none', '{}', status=2)
    demo.admin('ns', 'quotas', 'demo', '--none')
    assert demo.admin('ns', 'quotas', 'demo').out == ''
    demo.admin('ns', 'quotas', 'nowhere', '{}', status=1)


# --- hostile ---

def test_nobody_chooses_another_address(demo, client):
    one = client()
    set_quotas(demo, {'address': {'requests': rate()}})
    headers = [{}, {'X_Forwarded_For': '198.51.100.1'}, {'X_Stampd_Client': '198.51.100.2'}, {'STAMPD_CLIENT': '198.51.100.3'},
               {'Forwarded': 'for=198.51.100.4'}, {'X_Real_IP': '198.51.100.5'}]
    replies = [one.ask('GET', '/demo/op/get?param={"docs":[]}', **headers[i % len(headers)]) for i in range(4 * BURST)]
    assert sum(reply.status == 200 for reply in replies) == BURST


def test_what_is_refused_for_another_reason_counts_too(demo, client):
    """Who sends nonsense uses the server as well."""
    one = client()
    set_quotas(demo, {'address': {'requests': rate()}})
    nonsense = [op('nowhere', {}), op('get', {'docs': 7}), resource('GET', 'no-such-one'), op('ns', {'list': {}}), op('get', {'docs': [{'c': '?'}]})]
    assert all(reply.code != 'XBUSY' for reply in (send(one, 'demo') for send in nonsense))
    assert_refused(one.op('demo', 'get', {'docs': []}), 'address.requests', rate())


def test_names_that_are_no_namespace_use_no_counter(demo, client):
    one = client()
    set_quotas(demo, {'address': {'requests': rate()}})
    for number in range(50):
        assert one.ask('GET', f'/no{number}/op/get?param={{"docs":[]}}').code == 'NNAMESPACE'
    assert is_served(one.op('demo', 'get', {'docs': []}))


def test_a_crowd_fills_the_table(demo, client):
    """More addresses than there are counters: nobody new is refused for it, and who owes most stays refused."""
    forget(demo)
    set_quotas(demo, {'address': {'requests': rate()}})
    greedy = client()
    for _ in range(BURST):
        assert is_served(greedy.op('demo', 'get', {'docs': []}))
    assert_refused(greedy.op('demo', 'get', {'docs': []}), 'address.requests', rate())
    most = int(demo.metrics()['stampd_rate_counters_most'])
    for number in range(most + most // 2):  # half as many more, since what fills each line is drawn by a hash
        with Client(demo, f'127.{1 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}') as stranger:
            assert stranger.op('demo', 'get', {'docs': []}).status == 200
    metrics = demo.metrics()
    assert metrics['stampd_rate_counters_evicted_total'] > 0
    assert metrics['stampd_rate_counters'] > 0.9 * most
    assert_refused(greedy.op('demo', 'get', {'docs': []}), 'address.requests', rate())


# --- accounts ---

@pytest.fixture(scope='module')
def team(demo):
    demo.op('z', 'ns', {'set': {'ns': 'team', 'access': 'closed', 'accounts': OPEN}}, admin=True)
    return demo


def as_account(client, made, operation='Quiet', ns='team'):
    return client.ask('POST', f'/{ns}/op/{operation}', {'param': {'id': 'x'}}, **bearer(made.token))


@pytest.mark.parametrize('kind', ['requests', 'writes'])
def test_an_account_may_do_so_much_wherever_it_is(team, client, kind):
    forget(team)
    set_quotas(team, {'account': {kind: rate()}}, 'team')
    ann, bob = Made(team), Made(team)
    here = [client() for _ in range(BURST)]
    assert [is_served(as_account(one, ann)) for one in here] == [True] * BURST
    again = Made.__new__(Made)  # another session of hers
    again.__dict__.update(ann.__dict__)
    secret = random_text(32)
    again.token = f'st_{ann.id}.{secret}'
    ann.set({'c': 'Sess', 'k': hashlib.sha256(secret.encode()).hexdigest(), 'j': {'created': 1, 'expires': TOMORROW}})
    for made in (ann, again):
        assert_refused(as_account(client(), made), f'account.{kind}', rate())
    assert is_served(as_account(here[0], bob)), 'another account at the same address'
    assert is_served(here[0].op('team', 'Quiet', {'id': 'x'})), 'nobody has signed in'
    reply = here[0].ask('POST', '/team/op/Quiet', {'param': {'id': 'x'}}, **bearer(f'st_{ann.id}.{random_text(32)}'))
    assert (reply.status, reply.code) == (401, 'SKEY'), 'whoever has not her token does not use her quota'
    set_quotas(team, None, 'team')


WRONG_CREDENTIALS = {
    'session': {'Authorization': f'Bearer st_{"A" * 22}.{"B" * 43}'}, 'cookie': {'Cookie': f'__Host-stampd-team=st_{"A" * 22}.{"B" * 43}'},
    'key': {'Authorization': 'Bearer wrong'}, 'argument': {}}


@pytest.mark.parametrize('kind', WRONG_CREDENTIALS)
def test_wrong_credentials_are_not_tried_without_end(team, client, kind):
    one = client()
    body = {'param': {'id': 'x'}, **({'key': f'sk_{"A" * 22}.{"B" * 43}'} if kind == 'argument' else {})}
    set_quotas(team, {'address': {'requests': rate()}}, 'team')

    def send():
        return one.ask('POST', '/team/op/Quiet', body, **WRONG_CREDENTIALS[kind])
    try:
        assert {(reply.code, reply.status) for reply in (send() for _ in range(BURST))} <= {('SKEY', 401), ('SKEY', 403)}
        assert_refused(send(), 'address.requests', rate())
        assert_refused(one.op('team', 'Quiet', {'id': 'x'}), 'address.requests', rate())
        assert is_served(client().op('team', 'Quiet', {'id': 'x'})), 'another address'
    finally:
        set_quotas(team, None, 'team')


def test_wrong_credentials_of_large_bodies_count_too(team, client):
    """nginx asks before it takes the body, and answers by itself."""
    one, body = client(), {'param': {'id': 'x' * 600000}}
    set_quotas(team, {'address': {'requests': rate()}}, 'team')
    try:
        replies = [one.ask('POST', '/team/op/Quiet', body, **WRONG_CREDENTIALS['session']) for _ in range(BURST + 1)]
        assert [reply.code for reply in replies] == ['SKEY'] * BURST + ['XBUSY']
        assert replies[-1].status == 429 and int(replies[-1].headers['retry-after']) >= 1
    finally:
        set_quotas(team, None, 'team')


def test_wrong_credentials_open_no_live_connections_without_end(team, client):
    one, token = client(), WRONG_CREDENTIALS['session']
    set_quotas(team, {'address': {'live': rate()}}, 'team')
    team.op('z', 'ns', {'set': {'ns': 'team', 'access': 'rules', 'rules': {'Note': {'read': ['anybody']}}}}, admin=True)

    def send():
        return one.ask('POST', '/team/live', {'defs': ['Note']}, **token)
    try:
        wait_until(lambda: send().code == 'SKEY', what='the process for live events has read the configuration')
        assert 'XBUSY' in [send().code for _ in range(BURST)]
        assert_refused(send(), 'address.live', rate())
    finally:
        team.op('z', 'ns', {'set': {'ns': 'team', 'access': 'closed', 'rules': None, 'quotas': None}}, admin=True)


# --- tasks that wait ---

DAY = {'op': 'Count', 'param': {'id': 'x'}, 'delay': 86400}
CALLERS = ('nobody', 'named', 'anonymous', 'service')


def signed_in(stack, kind):
    """Headers of a caller of this kind in the namespace team."""
    if kind == 'nobody':
        return {}
    if kind == 'service':
        return bearer(stack.op('team', 'accounts', {'key': {'label': 'script', 'roles': []}}, admin=True)['out']['key'])
    return bearer(stack.op('team', 'register', {'name': f'name{next(NUMBERS)}', 'password': 'correct horse battery'} if kind == 'named' else {})['out']['token'])


def request_task(client, headers):
    return client.ask('POST', '/team/op/task', {'param': DAY}, **headers)


def assert_waits(reply, subject):
    assert (reply.status, reply.code, reply.args) == (429, 'XBUSY', [f'quotas.{subject}.tasks_waiting', str(BURST)]), reply
    assert int(reply.headers['retry-after']) >= 1


@pytest.fixture
def waiting(team):
    """No task waits."""
    team.psql('team', 'delete from taskqueue')
    yield lambda quotas: set_quotas(team, quotas, 'team')
    team.psql('team', 'delete from taskqueue')
    set_quotas(team, None, 'team')


@pytest.mark.parametrize('caller', CALLERS)
@pytest.mark.parametrize('subject', ('address', 'account', 'namespace'))
def test_so_many_tasks_wait(team, client, waiting, subject, caller):
    waiting({subject: {'tasks_waiting': BURST}})
    one, other, home = signed_in(team, caller), signed_in(team, caller), client()

    def place():
        return home if subject == 'address' else client()
    first = [request_task(place(), one) for _ in range(BURST)]
    assert [reply.status for reply in first] == [200] * BURST
    if subject == 'account' and caller == 'nobody':
        assert request_task(client(), one).status == 200, 'who has not signed in is not counted for an account'
        return
    name = f'stampd_quota_refused_total{{ns="team",quota="{subject}.tasks_waiting"}}'
    before = team.metrics().get(name, 0)
    assert_waits(request_task(place(), one), subject)
    assert team.metrics()[name] == before + 1
    another = request_task(client(), other)
    if subject == 'namespace':
        assert_waits(another, subject)
    else:
        assert another.status == 200, 'another subject'
    assert team.op('team', 'task', DAY, admin=True)['out']['id'], 'the administrator is not limited'
    team.psql('team', 'delete from taskqueue where taskid = %s', (first[0].json['out']['id'],))
    assert request_task(place(), one).status == 200, 'one is done'
    assert_waits(request_task(place(), one), subject)


def declare(client, headers, session, **param):
    return client.ask('POST', '/team/op/subs', {'session': session, 'param': {'defs': ['Open'], 'life': 1000, **param}}, **headers)


@pytest.mark.parametrize('caller', ('named', 'nobody'))
@pytest.mark.parametrize('subject', ('address', 'account', 'namespace'))
def test_so_many_subscriptions_are_held(team, client, subject, caller):
    """Of those that have not ended; what is there may be changed, and another takes the place of one that is dropped."""
    names = (f'session-{subject}-{caller}-{number}' for number in range(100))
    team.psql('team', 'delete from subscription')
    team.op('z', 'ns', {'set': {'ns': 'team', 'access': 'rules'}}, admin=True)
    set_quotas(team, {subject: {'subscriptions_held': BURST}}, 'team')
    one, other, home = signed_in(team, caller), signed_in(team, caller), client()

    def place():
        return home if subject == 'address' else client()
    first = [next(names) for _ in range(BURST)]
    assert [declare(place(), one, name).status for name in first] == [200] * BURST
    more = declare(place(), one, next(names))
    if subject == 'account' and caller == 'nobody':
        assert more.status == 200, 'who has not signed in is not counted for an account'
    else:
        assert (more.status, more.code, more.args) == (429, 'XBUSY', [f'quotas.{subject}.subscriptions_held', str(BURST)]), more
        assert team.metrics()[f'stampd_quota_refused_total{{ns="team",quota="{subject}.subscriptions_held"}}'] >= 1
        assert declare(client(), other, next(names)).status == (429 if subject == 'namespace' else 200), 'another subject'
        assert declare(place(), one, first[0], defs=['Open', 'Own']).status == 200, 'it is there'
        team.psql('team', 'update subscription set until = 1 where session = %s', (first[1],))
        assert declare(place(), one, next(names)).status == 200, 'one has ended'
        assert declare(place(), one, first[1]).status == 429, 'and is a new one then'
        assert team.op('team', 'subs', {'defs': ['Open'], 'life': 1000}, session=next(names), admin=True)['out'], 'the administrator is not limited'
    team.psql('team', 'delete from subscription')
    set_quotas(team, None, 'team')
    team.op('z', 'ns', {'set': {'ns': 'team', 'access': 'closed'}}, admin=True)


@pytest.mark.parametrize('subject', ('address', 'account', 'namespace'))
def test_a_crowd_that_requests_tasks(team, client, waiting, subject):
    waiting({subject: {'tasks_waiting': BURST}})
    headers, address = signed_in(team, 'named'), f'127.3.{next(NUMBERS) % 250}.1'

    def request(_):
        with Client(team, address) as one:
            return request_task(one, headers).status
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(request, range(16))) == [200] * BURST + [429] * (16 - BURST)


# --- bytes ---

def sum_of(stack, ns):
    return int(stack.psql(ns, 'select coalesce(sum(v1), 0) from doc')[0][0])


def stored(stack, ns):
    return stack.metrics().get(f'stampd_stored_bytes{{ns="{ns}"}}')


def large(id_, size):
    return {'c': 'Large', 'id': id_, 'items': [{'c': 'Text', 'j': 'x' * (size - 2)}]}


@pytest.fixture
def measured(demo, client):
    """Limited to 1,000 bytes more than it has.  The keeper stands still, since what commits while it measures may count twice."""
    forget(demo)
    set_quotas(demo, {'namespace': {'bytes': 1000000000}})
    demo.op('demo', 'put', {'docs': [large('first', 10)]})  # from now on the keeper measures it
    wait_until(lambda: stored(demo, 'demo') is not None, what='the first measurement')
    wait_until(lambda: stored(demo, 'demo') == sum_of(demo, 'demo'))
    limit = sum_of(demo, 'demo') + 1000
    set_quotas(demo, {'namespace': {'bytes': limit}})
    with demo.keeper_stopped() as go_on:
        yield limit, go_on
    demo.put('demo', *({'c': 'Large', 'id': id_, 'delete': True} for id_ in ('first', 'a', 'b', 'c')), admin=True)


def assert_full(action, *arguments, limit, more):
    problem = refused('ALIMIT', action, *arguments, status=400)
    assert problem.body['args'] == ['quotas.namespace.bytes', str(limit), str(limit + more)]


def test_a_namespace_may_store_so_much(demo, client, measured):
    measured, _ = measured
    demo.put('demo', large('a', 600))
    assert stored(demo, 'demo') == sum_of(demo, 'demo') == measured - 400
    assert_full(demo.put, 'demo', large('b', 600), limit=measured, more=200)
    assert_full(demo.put, 'demo', large('b', 200), large('c', 201), limit=measured, more=1)
    demo.put('demo', large('b', 400))
    assert stored(demo, 'demo') == measured
    reply = client().ask('PUT', '/demo/doc/Large/c', {'items': large('c', 10)['items']})
    assert (reply.code, reply.args[0]) == ('ALIMIT', 'quotas.namespace.bytes')
    assert client().op('demo', 'Count', {'id': 'grows'}).code == 'ALIMIT', 'an operation of a module'
    taskid = demo.op('demo', 'task', {'op': 'put', 'param': {'docs': [large('c', 10)]}})['out']['id']
    assert Manager(demo, 'demo').run(taskid, 500)['code'] == 'ALIMIT', 'a task of a client'
    demo.psql('demo', 'delete from taskqueue')
    demo.op('demo', 'get', {'docs': [NAMED]})
    demo.put('demo', {**large('a', 600), 'items': [{'c': 'Text', 'j': 'y' * 598}]})  # as large as before
    demo.put('demo', large('a', 100))  # smaller
    demo.put('demo', large('c', 500))
    assert_full(demo.put, 'demo', large('first', 11), limit=measured, more=1)
    demo.put('demo', {'c': 'Large', 'id': 'c', 'delete': True})
    demo.put('lab', large('a', 5000))
    demo.put('lab', {'c': 'Large', 'id': 'a', 'delete': True})
    demo.put('demo', large('b', 5000), admin=True)
    assert stored(demo, 'demo') == sum_of(demo, 'demo') > measured, 'the administrator may, and it counts'
    demo.put('demo', large('b', 4000))  # too large still, and smaller
    assert stored(demo, 'demo') == sum_of(demo, 'demo') > measured
    assert_full(demo.put, 'demo', large('c', 10), limit=measured, more=int(stored(demo, 'demo')) - measured + 10)
    assert demo.metrics()['stampd_quota_refused_total{ns="demo",quota="namespace.bytes"}'] >= 5


def test_what_others_write_is_measured(demo, client, measured):
    measured, resume = measured
    resume()
    demo.psql('demo', "select put_item('Large', 'a', 'Text', '', %s)", ('"' + 'x' * 998 + '"',))
    wait_until(lambda: stored(demo, 'demo') == measured)
    refused('ALIMIT', demo.put, 'demo', large('b', 10))
    demo.restart_stampd()

    def is_full():
        """Until it is measured again nothing is refused."""
        try:
            demo.put('demo', large('b', 10))
            demo.put('demo', {'c': 'Large', 'id': 'b', 'delete': True})
        except Problem as problem:
            return problem.code == 'ALIMIT'
        return False
    wait_until(is_full, what='a refusal')

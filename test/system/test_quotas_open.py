"""Quotas of what is open at the same time: connections for live events and streamed collections, of each address, account and
namespace: as many as the number are served, the next is refused by name; what ends, or dies with its process, makes room."""
import contextlib
import itertools
import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from door_client import Client
from fastcgi import STDOUT, Connection
from schema import Schemas
from stack import children, wait_until
from test_accounts import OPEN, PASSWORD, bearer
from test_live import live_pid

WORKERS = 6
STACK = {'workers': WORKERS, 'namespaces': {'z': 'closed', 'team': 'closed', 'other': 'open'},
         'settings': {'limit_client_connections': 0, 'limit_client_requests': 0, 'segment_slots': 1024, 'restart_young_ms': 0, 'limit_stream_ms': 600000,
                      'limit_operation_s': 600, 'kept_streams_mb': 0}}
MOST = 2
SUBJECTS, CALLERS = ('address', 'account', 'namespace'), ('nobody', 'named', 'anonymous', 'service')
SCHEMA = {'Note': {'open': True, 'items': {'Main': {'singleton': True, 'fields': {'team': 'string'}}},
                   'collections': {'all': {'key': ['Main.team'], 'mutable': True}}}}
ANYBODY = {'Note': {'read': ['anybody'], 'list': ['anybody']}}
ALL = {'c': 'Note', 'collection': 'all', 'value': 'red', 'want': 'docs', 'stream': True}
NUMBERS = itertools.count(2)


@pytest.fixture(scope='module')
def team(stack, tmp_path_factory):
    """More in one collection than a socket holds, so that a stream that nobody reads stays open."""
    for ns in ('team', 'other'):
        Schemas(stack, tmp_path_factory.mktemp(ns)).apply(ns, SCHEMA)
    configure(stack, access='rules', accounts=OPEN, rules=ANYBODY)
    for ns in ('team', 'other'):
        for first in range(0, 90, 9):
            stack.put(ns, *({'c': 'Note', 'id': f'n{first + i}', 'items': [{'c': 'Main', 'j': {'team': 'red', 'text': 'x' * 50000}}]} for i in range(9)),
                      admin=True)
    return stack


def configure(stack, ns='team', **members):
    stack.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)


def set_quotas(stack, quotas):
    configure(stack, quotas=quotas)


def address():
    number = next(NUMBERS)
    return f'127.0.{number // 250}.{number % 250 + 1}'


class Caller:
    """One who comes from as many addresses as it likes."""

    def __init__(self, stack, kind):
        self.headers = {}
        if kind == 'named':
            self.headers = bearer(stack.op('team', 'register', {'name': f'name{next(NUMBERS)}', 'password': PASSWORD})['out']['token'])
        elif kind == 'anonymous':
            self.headers = bearer(stack.op('team', 'register', {})['out']['token'])
        elif kind == 'service':
            self.headers = bearer(stack.op('team', 'accounts', {'key': {'label': 'script', 'roles': []}}, admin=True)['out']['key'])


class Live:
    """A connection for live events; `code` of the refusal, '' when it is open."""

    def __init__(self, stack, headers, where, _place=0, ns='team'):
        self.connection = Client(stack, where).connect()
        self.connection.connect()
        self.socket = self.connection.sock
        self.connection.request('POST', f'/{ns}/live', json.dumps({'defs': ['Note']}), {'Content-Type': 'application/json', **headers})
        self.response = self.connection.getresponse()
        problem = {} if self.response.status == 200 else json.loads(self.response.read())
        self.code, self.args, self.status = problem.get('code', ''), problem.get('args'), self.response.status
        self.retry_after = self.response.headers.get('Retry-After')

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class Stream:
    """A stream that nobody reads, of the worker at this place."""

    def __init__(self, stack, headers, where, place=0, ns='team'):
        path = sorted((stack.path / 'run/stampd').glob('worker-*.sock'))[place]
        self.connection = Connection(path)
        more = {'HTTP_AUTHORIZATION': headers['Authorization']} if headers else {}
        self.connection.send(f'/{ns}/op/collection', json.dumps({'param': ALL}).encode(), method='POST', CONTENT_TYPE='application/json',
                             STAMPD_NS=ns, STAMPD_DATABASE=f'stampd_{ns}', STAMPD_CLIENT=where, **more)
        begin = self.connection.read(8)
        assert begin[1] == STDOUT
        self.connection.rest = begin + self.connection.rest
        head = self.connection.read(8 + 16)[8:]
        self.connection.rest = begin + head + self.connection.rest
        self.code, self.args, self.status, self.retry_after = '', None, 200, None
        if not head.startswith(b'Status: 200'):
            answer = self.connection.receive()
            problem = json.loads(answer.body)
            self.code, self.args, self.status, self.retry_after = problem['code'], problem['args'], answer.status, answer.headers['Retry-After']

    def close(self):
        self.connection.close()


KINDS = {'live_open': Live, 'streams_open': Stream}


@pytest.fixture
def openings(team):
    """Opens, and closes at the end.  Nothing is asked through nginx meanwhile, which does not know the workers that send streams."""
    opened = []

    def open_one(kind, headers, where, place=0, ns='team'):
        opened.append(KINDS[kind](team, headers, where, place, ns))
        return opened[-1]
    open_one.opened = opened
    yield open_one
    close_all(team, opened)
    set_quotas(team, None)


def close_all(team, opened):
    for one in opened:
        one.close()
    wait_until(lambda: team.metrics()['stampd_streams_open'] == 0 and team.metrics()['stampd_live_listeners'] == 0, what='the end of all')


def assert_refused(one, subject, kind, most=MOST):
    assert (one.status, one.code, one.args) == (429, 'XBUSY', [f'quotas.{subject}.{kind}', str(most)])
    assert int(one.retry_after) >= 1


def refused_count(team, subject, kind):
    return team.metrics().get(f'stampd_quota_refused_total{{ns="team",quota="{subject}.{kind}"}}', 0)


@pytest.mark.parametrize('caller', CALLERS)
@pytest.mark.parametrize('subject', SUBJECTS)
@pytest.mark.parametrize('kind', KINDS)
def test_so_many_at_the_same_time(team, openings, kind, subject, caller):
    set_quotas(team, {subject: {kind: MOST}})
    one, other, home = Caller(team, caller), Caller(team, caller), address()
    before = refused_count(team, subject, kind)
    first = [openings(kind, one.headers, home if subject == 'address' else address(), place) for place in range(MOST)]
    assert [one.code for one in first] == [''] * MOST
    third = openings(kind, one.headers, home if subject == 'address' else address(), MOST)
    if subject == 'account' and caller == 'nobody':
        assert third.code == '', 'who has not signed in is not counted for an account'
        return
    assert_refused(third, subject, kind)
    another = openings(kind, other.headers, address(), MOST + 1)
    if subject == 'namespace':
        assert_refused(another, subject, kind)
    else:
        assert another.code == '', 'another subject'
    assert openings(kind, {}, home, MOST + 2, ns='other').code == '', 'another namespace'
    first[0].close()

    def has_room():
        """It is noticed soon that the client is gone."""
        again = openings(kind, one.headers, home if subject == 'address' else address(), MOST)
        assert again.code in ('', 'XBUSY')
        return not again.code
    if subject == 'namespace':
        another.close()
    wait_until(has_room, what='the room of the first')
    close_all(team, openings.opened)
    assert refused_count(team, subject, kind) > before


@pytest.mark.parametrize('subject', SUBJECTS)
@pytest.mark.parametrize('kind', KINDS)
def test_a_crowd_that_comes_together(team, openings, kind, subject):
    set_quotas(team, {subject: {kind: MOST}})
    headers, home = Caller(team, 'named').headers, address()
    with ThreadPoolExecutor(WORKERS) as pool:
        answers = list(pool.map(lambda place: openings(kind, headers, home, place), range(WORKERS)))
    assert sorted(answer.code for answer in answers) == [''] * MOST + ['XBUSY'] * (WORKERS - MOST)


@pytest.mark.parametrize('kind', KINDS)
def test_what_dies_with_its_process_makes_room(team, openings, kind):
    set_quotas(team, {subject: {kind: MOST} for subject in SUBJECTS})
    headers, home = Caller(team, 'named').headers, address()
    for place in range(MOST):
        assert openings(kind, headers, home, place).code == ''
    assert_refused(openings(kind, headers, home, MOST), 'address', kind)
    pids = [live_pid(team)] if kind == 'live_open' else team.worker_pids()
    for pid in pids:
        team.kill_worker(pid)
    wait_until(lambda: not set(pids) & set(children(team.pid())), what='the end of the processes')

    def opens(place):
        """While another process begins there may be nobody to serve it."""
        with contextlib.suppress(OSError, EOFError, ValueError):
            one = openings(kind, headers, home, place)
            assert one.code in ('', 'XAWAY'), 'what is dead does not count'
            return not one.code
        return False
    for place in range(MOST):
        wait_until(lambda place=place: opens(place), what='a new process')
    assert_refused(openings(kind, headers, home, MOST), 'address', kind)


@pytest.mark.parametrize('kind', KINDS)
def test_the_administrator_is_not_counted(team, openings, kind):
    set_quotas(team, {subject: {kind: 1} for subject in SUBJECTS})
    home = address()
    for place in range(3):
        assert openings(kind, bearer(team.key), home, place).code == ''
    assert openings(kind, {}, home, 3).code == ''
    assert_refused(openings(kind, {}, home, 4), 'address', kind, 1)


def test_what_a_number_refuses_uses_no_rate(team, openings):
    set_quotas(team, {'address': {'live_open': 1, 'live': '2/d'}})
    home = address()
    first = openings('live_open', {}, home)
    for _ in range(5):
        assert_refused(openings('live_open', {}, home), 'address', 'live_open', 1)
    first.close()
    wait_until(lambda: not openings('live_open', {}, home).code, what='the second of two in a day')

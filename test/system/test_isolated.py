"""A host that does not reach PostgreSQL, which answers nothing, as behind a link that drops packets: it refuses at once what it cannot
prove, serves from memory what may be so old, and no worker hangs."""
import contextlib
import json
import os
import signal
import statistics
import threading
import time
from pathlib import Path

import pytest

from fastcgi import Connection
from provider import Provider
from stack import PATIENCE_S, Stack, children, process_state, wait_until
from test_accounts import Made, bearer, configure, cookie, forged, random_text
from test_external_tokens import fetch_keys, id_of

pytestmark = pytest.mark.plain

WORKERS = 3
NAME = ('Note', 'a')
AGE_S = 600
CONNECT_S, STATEMENT_S = 5, 30  # the latter is the default
PLAN, ORDER = ('Plan', 'p'), ('Order', 'o')
RULES = {'Plan': {'team': {'class': 'Team', 'id': 'Info.team', 'members': 'Member'}, 'read': ['team']},
         'Order': {'owner': 'Info.owner', 'read': ['owner']}}


def server_of_postgres(stack):
    return int(next(Path(stack.data or stack.path).rglob('postmaster.pid')).read_text().split()[0])


def halt_postgres(stack):
    """The server first, which may be about to begin another process; then all of these."""
    server = server_of_postgres(stack)
    os.kill(server, signal.SIGSTOP)
    wait_until(lambda: process_state(server)[0] == 'T', what='the server to stand still')
    for pid in children(server):
        os.kill(pid, signal.SIGSTOP)


@contextlib.contextmanager
def isolated(stack):
    """Connections are accepted, and nothing is answered, on old ones neither."""
    try:
        halt_postgres(stack)
        yield
    finally:
        server = server_of_postgres(stack)
        for pid in (*children(server), server):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def ask(stack, operation='get', timeout=PATIENCE_S, **param):
    begun = time.monotonic()
    answer = stack.http.post(f'{stack.url}/lab/op/{operation}', json={'param': param}, timeout=timeout)
    return answer, time.monotonic() - begun


def get(stack, **more):
    return ask(stack, docs=[{'c': NAME[0], 'id': NAME[1], **more}])


def get_by_each(stack, ns, name, headers=None, **body):
    """The document by each worker, at its own socket, since nginx prefers some of them: each has a copy then."""
    body = json.dumps({'param': {'docs': [{'c': name[0], 'id': name[1]}]}, **body}).encode()
    given = {f'HTTP_{header.upper()}': value for header, value in (headers or {}).items()}
    for number in range(WORKERS):
        with Connection(stack.path / f'run/stampd/worker-{number}.sock', PATIENCE_S) as worker:
            for _ in range(2):
                answer = worker.ask(f'/{ns}/op/get', method='POST', body=body, CONTENT_TYPE='application/json', STAMPD_NS=ns, STAMPD_DATABASE=f'stampd_{ns}', **given)
                assert answer.status == 200, answer.body


def listens(stack, *namespaces):
    """From now on copies are kept: whatever was read before the relay listens to a namespace may be old."""
    for ns in namespaces:
        wait_until(lambda ns=ns: f'relay listens database=stampd_{ns}' in stack.log(), what='the relay')


def first_answer(stack):
    """The text of the document.  Each worker opens its own session again, so that one may still be refused behind another's commit."""
    answers = []
    wait_until(lambda: answers.append(get(stack)[0]) or answers[-1].ok, what='a worker with a session')
    assert all(is_refused(answer) for answer in answers[:-1])
    return answers[-1].json()['out']['docs'][0]['items'][0]['j']


@contextlib.contextmanager
def cut_off(hosts, prepare=lambda stack: None, **more):
    """A stack with a copy of the document, whose PostgreSQL falls silent."""
    settings = {'hosts': hosts, 'connect_timeout_s': CONNECT_S, 'restart_young_ms': 0, **more}
    with Stack('isolated', workers=WORKERS, settings=settings, namespaces={'z': 'closed', 'lab': 'open', 'team': 'closed', 'shut': 'open'}) as stack:
        stack.put('lab', {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'Text', 'j': 'kept'}]})
        listens(stack, 'lab')
        get_by_each(stack, 'lab', NAME)
        prepare(stack)
        with isolated(stack):
            yield stack
        new = {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'Text', 'j': 'new'}]}
        wait_until(lambda: ask(stack, 'put', docs=[new])[0].ok, what='a commit, when PostgreSQL answers again')
        for _ in range(4 * WORKERS):
            assert first_answer(stack) == 'new', 'a worker that was cut off has no old copy'


def is_refused(answer):
    """XTIME: a session that was open when PostgreSQL fell silent was given up."""
    return answer.status_code == 503 and answer.json()['code'] in ('XAWAY', 'XTIME')


def is_refused_or(status, answer):
    """The worker that has made the change knows it, the others know that there is one."""
    return answer.status_code == status or is_refused(answer)


def are_quick(took):
    """None of these requests has tried to reach PostgreSQL, which lasts CONNECT_S; a machine that is busy may stand still in some of them."""
    assert max(took) < CONNECT_S and statistics.median(took) < CONNECT_S / 10, took


def until_silent(stack):
    wait_until(lambda: halt_postgres(stack) or 'postgresql is silent' in stack.log(), what='the silence')


@pytest.mark.parametrize('hosts', ['many', 'one'])
def test_nothing_hangs_and_what_needs_the_database_is_refused_at_once(hosts):
    with cut_off(hosts) as stack:
        first = []
        threads = [threading.Thread(target=lambda: first.append(ask(stack, 'list', c='Note'))) for _ in range(WORKERS)]
        for thread in threads:
            thread.start()
        until_silent(stack)
        for thread in threads:
            thread.join()
        for answer, took in first:  # 429: the share of what is long is taken by another of them
            assert answer.status_code in (429, 503) and took < STATEMENT_S, 'before the time of a statement is over'
        assert any(answer.status_code == 503 for answer, _ in first)
        took = []
        for _ in range(4 * WORKERS):
            answer, lasted = ask(stack, 'list', c='Note')
            assert is_refused(answer) and answer.headers['Retry-After']
            took.append(lasted)
        are_quick(took)
        answer, _ = get(stack)
        assert answer.status_code == (200 if hosts == 'one' else 503), 'memory can prove it, or not'


def test_what_may_be_old_is_served_within_its_age():
    with cut_off('many', configuration_age_s=AGE_S) as stack:
        until_silent(stack)
        took = []
        for _ in range(4 * WORKERS):
            answer, lasted = get(stack, age=AGE_S)
            assert answer.status_code == 200 and answer.json()['out']['docs'][0]['items'][0]['j'] == 'kept'
            refusal, lasted_too = get(stack)
            assert is_refused(refusal)
            took += [lasted, lasted_too]
        are_quick(took)
        both = [{'c': NAME[0], 'id': NAME[1], 'age': AGE_S}, {'c': NAME[0], 'id': NAME[1]}]
        assert is_refused(ask(stack, docs=both)[0]), 'one of them must be the newest'
        assert is_refused(ask(stack, docs=[{'c': 'Note', 'id': 'never read', 'age': AGE_S}])[0])
        wait_until(lambda: is_refused(get(stack, age=1)[0]), what='the end of an age')


def test_an_old_configuration_decides_nothing():
    with cut_off('many', configuration_age_s=1) as stack:
        until_silent(stack)
        wait_until(lambda: is_refused(get(stack, age=AGE_S)[0]), what='the end of its age')


# --- callers ---

class Callers:
    """A namespace with rules: an order of each caller, and a plan of the team that they are in; each way of each has been used."""

    def __init__(self, provider):
        self.provider, self.took = provider, []

    def __call__(self, stack):
        issuer = {'issuer': self.provider.url, 'audiences': ['app', 'api']}
        configure(stack, 'team', access='rules', rules=RULES, accounts={'registration': 'open', 'issuers': [issuer]})
        self.stack, token = stack, self.provider.token()
        self.session, self.service, self.other, self.gone = (Made(stack, prefix=prefix) for prefix in ('st', 'sk', 'st', 'st'))
        ids = {'session': self.session.id, 'service': self.service.id, 'token': id_of(self.provider.url, 'ann')}
        stack.put('team', {'c': 'Team', 'id': 't', 'items': [{'c': 'Member', 'k': one, 'j': {}} for one in ids.values()]}, admin=True)
        stack.put('team', {'c': PLAN[0], 'id': PLAN[1], 'items': [{'c': 'Info', 'j': {'team': 't'}}]}, admin=True)
        for one in ids.values():
            stack.put('team', {'c': ORDER[0], 'id': ORDER[1] + one, 'items': [{'c': 'Info', 'j': {'owner': one}}]}, admin=True)
        assert self.ask(PLAN, headers=bearer(token)).status_code == 429
        assert fetch_keys(stack) == 1
        self.ways = [(ids['session'], {'headers': bearer(self.session.token)}), (ids['session'], {'key': self.session.token}),
                     (ids['session'], {'headers': {**cookie('team', self.session.token), 'Origin': stack.url}}),
                     (ids['service'], {'headers': bearer(self.service.token)}), (ids['token'], {'headers': bearer(token)})]
        assert self.ask(PLAN, ns='shut').status_code == 200
        listens(stack, 'team', 'shut')
        for account, way in self.ways:
            for name in (PLAN, (ORDER[0], ORDER[1] + account)):
                assert self.ask(name, **way).status_code == 200
                if 'Cookie' not in way.get('headers', {}):  # it is that of the same session
                    get_by_each(stack, 'team', name, **way)
        for made in (self.other, self.gone):
            assert self.shows(self.ask(PLAN, headers=bearer(made.token))) is False
            get_by_each(stack, 'team', PLAN, bearer(made.token))
        get_by_each(stack, 'shut', PLAN)
        configure(stack, 'shut', access='closed')
        self.gone.set({'c': 'Sess', 'k': self.gone.session, 'del': True})

    def ask(self, name, age=None, headers=None, ns='team', **body):
        doc = {'c': name[0], 'id': name[1], **({'age': age} if age else {})}
        return self.timed('POST', f'{ns}/op/get', headers, json={'param': {'docs': [doc]}, **body})

    def visit(self, name, age=None, headers=None):
        query = f'?age={age}' if age else ''
        return self.timed('GET', f'team/doc/{name[0]}/{name[1]}{query}', headers)

    def timed(self, method, path, headers, **more):
        begun = time.monotonic()
        answer = self.stack.http.request(method, f'{self.stack.url}/{path}', headers=headers or {}, timeout=PATIENCE_S, **more)
        self.took.append(time.monotonic() - begun)
        return answer

    @staticmethod
    def shows(answer):
        assert answer.status_code == 200, answer.text
        return bool(answer.json()['out']['docs'][0].get('items'))


def test_callers_with_accounts_get_what_may_be_old():
    callers = Callers(Provider())
    with cut_off('many', callers, configuration_age_s=AGE_S, **callers.provider.settings) as stack:
        until_silent(stack)
        callers.took.clear()
        for account, way in callers.ways:
            order = (ORDER[0], ORDER[1] + account)
            for _ in range(2 * WORKERS):
                assert callers.shows(callers.ask(PLAN, AGE_S, **way)) and callers.shows(callers.ask(order, AGE_S, **way))
            assert is_refused(callers.ask(PLAN, **way))
            if 'key' not in way:
                for name in (PLAN, order):
                    assert callers.visit(name, AGE_S, **way).status_code == 200
                assert is_refused(callers.visit(PLAN, **way))
        are_quick(callers.took)
        other = bearer(callers.other.token)
        assert callers.shows(callers.ask(PLAN, AGE_S, other)) is False and callers.visit(PLAN, AGE_S, other).status_code == 404
        assert callers.ask(PLAN, AGE_S, bearer(forged(callers.session.token))).status_code == 401
        assert is_refused(callers.ask(PLAN, AGE_S, bearer(f'st_{random_text(16)}.{random_text(32)}'))), 'an account that no worker has read'
        for _ in range(2 * WORKERS):
            assert is_refused_or(401, callers.ask(PLAN, AGE_S, bearer(callers.gone.token))), 'it is known here that the session has ended'
            assert is_refused_or(401, callers.ask(PLAN, AGE_S, ns='shut')), 'and that the namespace is closed'


def test_an_old_account_decides_nothing():
    """A session that was ended elsewhere meanwhile has no longer than that."""
    callers = Callers(Provider())
    with cut_off('many', callers, configuration_age_s=2, **callers.provider.settings) as stack:
        until_silent(stack)
        for _, way in callers.ways:
            wait_until(lambda: is_refused(callers.ask(PLAN, AGE_S, **way)), what='the end of its age')


def test_a_resource_is_served_within_its_age():
    with cut_off('many', configuration_age_s=AGE_S) as stack:
        until_silent(stack)
        address = f'{stack.url}/lab/doc/{NAME[0]}/{NAME[1]}'
        for _ in range(2 * WORKERS):
            answer = stack.http.get(f'{address}?age={AGE_S}', timeout=PATIENCE_S)
            assert answer.status_code == 200 and answer.json()['items'][0]['j'] == 'kept'
            assert stack.http.get(f'{address}?age={AGE_S}', headers={'If-None-Match': answer.headers['ETag']}, timeout=PATIENCE_S).status_code == 304
            assert is_refused(stack.http.get(address, timeout=PATIENCE_S))


def test_everything_else_says_why():
    """What claims to be the newest: synchronisations, collections, lists, changes, files; and a new stream of live events."""
    with cut_off('many', configuration_age_s=AGE_S, live='on') as stack:
        until_silent(stack)
        aged = {'docs': [{'c': NAME[0], 'id': NAME[1], 'age': AGE_S}]}
        for operation, body in {'sync': {'syncs': [{'c': NAME[0], 'id': NAME[1], 'v': 0}]}, 'get': {'param': aged, 'syncs': [{'c': NAME[0], 'id': NAME[1], 'v': 0}]},
                                'list': {'param': {'c': 'Note'}}, 'put': {'param': aged}}.items():
            answer = stack.http.post(f'{stack.url}/lab/op/{operation}', json=body, timeout=PATIENCE_S)
            assert is_refused(answer) and answer.headers['Retry-After'], operation
        assert is_refused(stack.http.get(f'{stack.url}/lab/doc/{NAME[0]}/{NAME[1]}/file/none?age={AGE_S}', timeout=PATIENCE_S))
        for _ in range(2 * WORKERS):
            with stack.http.get(f'{stack.url}/lab/live', params={'def': '/'.join(NAME)}, stream=True, timeout=PATIENCE_S) as answer:
                assert answer.status_code == 503 and b'"XAWAY"' in next(answer.iter_lines())


# --- an age ---

def test_an_age_holds_while_no_notification_arrives():
    """What another host has changed is seen when the age is over, also by a worker whose relay stands still."""
    with Stack('isolated', workers=WORKERS, settings={'hosts': 'many'}, namespaces={'z': 'closed', 'lab': 'open'}) as stack:
        stack.put('lab', {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'Text', 'j': 'kept'}]})
        listens(stack, 'lab')
        for _ in range(4 * WORKERS):
            assert first_answer(stack) == 'kept'
        with stack.relay_stopped():
            stack.psql('lab', 'select put_item(%s, %s, %s, %s, %s)', (*NAME, 'Text', '', '"new"'))
            changed = time.monotonic()
            wait_until(lambda: time.monotonic() - changed > 2, what='the end of the age')
            for _ in range(4 * WORKERS):
                assert get(stack, age=1)[0].json()['out']['docs'][0]['items'][0]['j'] == 'new'


# --- one of several databases ---

def relay_backends(stack):
    rows = stack.psql('z', "select datname, pid from pg_stat_activity where application_name = 'stampd relay'")
    return dict(rows)


def test_one_database_that_hangs_is_no_silence_of_the_server():
    """The session of the relay with each database in turn stands still; what is asked of the others is answered all the time, in a quarter
    of connect_timeout_s: three seconds, for a machine that is busy."""
    with Stack('isolated', workers=WORKERS, settings={'connect_timeout_s': 12}, namespaces={'z': 'closed', 'lab': 'open', 'team': 'open'}) as stack:
        everyone = {'stampd_z', 'stampd_lab', 'stampd_team'}
        for ns in ('lab', 'team'):
            stack.put(ns, {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'Text', 'j': 'kept'}]})
        wait_until(lambda: everyone <= set(relay_backends(stack)), what='the relay')
        for database in sorted(everyone):
            pid = relay_backends(stack)[database]
            os.kill(pid, signal.SIGSTOP)
            try:
                wait_until(lambda: f'relay lost database={database}' in stack.log(), what=f'a session that is given up: {database}')
            finally:
                os.kill(pid, signal.SIGCONT)
            wait_until(lambda: relay_backends(stack).get(database, pid) != pid, what='a new one')
        assert 'postgresql is silent' not in stack.log()

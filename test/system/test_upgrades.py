"""Upgrades of each kind beside clients that read and write all the time through nginx, over connections that they keep and new ones: no request
fails, and what was written is there.  `STAMPD_UPGRADES` is how many of each kind."""
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest
import requests

from kit import Kit
from schema import Schemas
from cluster import ROOM
from stack import BUILD, PATIENCE_S, Stack, give, is_alive, wait_until
from succession import note

pytestmark = [pytest.mark.plain, pytest.mark.timeout(600)]

TIMES = int(os.environ.get('STAMPD_UPGRADES', '3'))
STACK = {'workers': 6, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open'},
         'settings': {'limit_client_requests': 0, 'limit_client_connections': 0, 'restart_young_ms': 0}}
MODULE = '''#include <stampd.h>
static enum stampd_outcome version(struct stampd_call *call)
{
    return stampd_result_json(call, (struct stampd_bytes){"%d", sizeof "%d" - 1});
}
static const struct stampd_operation operations[] = {{.name = "Version", .access = STAMPD_PUBLIC, .is_read_only = true, .work = version}, {.name = NULL}};
const struct stampd_module stampd_module = {.abi = STAMPD_ABI, .name = "versions", .operations = operations};
'''


class Traffic:
    """Clients, each with a document of its own that it counts up and reads.  One that finds the connection closed that it has kept opens another, as
    HTTP has it; whatever else happens to a request is a failure."""

    def __init__(self, stack, clients=4, refusal=None, again=(), name='u'):
        """`refusal`: the code of refusals after which a client comes again; `again`: those after which it sends the same request once more, as
        each request then has an Idempotency-Key: what was done is not done twice.  `name`: what the ids of its documents begin with."""
        self.stack, self.refusal, self.again, self.answers, self.failures, self.over = stack, refusal, again, 0, [], threading.Event()
        self.refused, self.keys, self.name = 0, itertools.count(), name
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def wait(self, count=60):
        """Until so many more answers have come."""
        wanted = self.answers + count
        wait_until(lambda: self.failures or self.answers >= wanted, what='answers')

    def ask(self, own, method, path, body=None):
        """By the kept connection, or, once that was closed, by a new one; the requests may be sent twice."""
        headers = {'Idempotency-Key': f'upgrade-{self.name}-{next(self.keys)}'} if self.again and method == 'POST' else {}

        def send(http):
            return http.request(method, self.stack.url + path, json=body, headers=headers, timeout=PATIENCE_S, verify=self.stack.http.verify)
        while True:
            try:
                answer = send(own)
            except requests.ConnectionError:  # a kept one
                answer = send(requests)
            if answer.status_code == 409 and answer.json()['code'] == 'CONTENTION':  # beside twenty changes of the schema; clients send again
                time.sleep(0.05)
                continue
            if answer.status_code >= 500 and answer.json()['code'] in self.again:
                self.refused += 1
                time.sleep(0.05)
                continue
            if answer.status_code != 503 or answer.json()['code'] != self.refusal or answer.json()['phase'] != 0 or 'Retry-After' not in answer.headers:
                break
            self.refused += 1
            time.sleep(0.05)
        if answer.status_code != 200:
            self.failures.append(f'{method} {path}: {answer.status_code} {answer.text[:200]}')
        with self.lock:
            self.answers += 1
        return answer

    def run(self, number):
        count = 0
        try:
            with requests.Session() as own:
                own.verify, own.trust_env = self.stack.http.verify, False
                while not self.over.is_set():
                    count += 1
                    http = own if count % 3 else requests
                    self.ask(http, 'POST', '/lab/op/put', {'param': {'docs': [{'c': 'Up', 'id': f'{self.name}{number}', 'items': [{'c': 'Main', 'j': {'count': count}}]}]}})
                    found = self.ask(http, 'GET', f'/lab/doc/Up/{self.name}{number}').json()['items'][0]['j']['count']
                    if found != count:
                        self.failures.append(f'{self.name}{number} has {found}, {count} was written')
        except Exception as error:  # noqa: BLE001 whatever it is, a request was lost
            self.failures.append(repr(error))


def configure(stack, **settings):
    text = stack.config.read_text()
    for name, value in settings.items():
        text = re.sub(rf'(?m)^{name} = .*\n', '', text) + f'{name} = {value}\n'
    stack.config.write_text(text)


def succeed(stack, formers):
    """The next server serves; the former one ends when it has answered what it has."""
    before, size = stack.pid(), len(stack.log())
    os.kill(before, signal.SIGUSR2)
    wait_until(lambda: 'the successor serves' in stack.log()[size:], what='the successor')
    note(stack, int(re.findall(r'starting a successor .*pid=(\d+)', stack.log()[size:])[-1]))
    formers.append(before)


@pytest.fixture
def upgrade(stack, tmp_path):
    """Returns functions, each for the upgrade with a number."""
    formers, kit, schemas = [], Kit(), Schemas(stack, tmp_path)
    first = stack.config.read_text(), (stack.path / 'etc/nginx.conf').read_text()

    def module(number):
        source = kit.path / 'versions.c'
        source.write_text(MODULE % (number, number))
        built = kit.path / f'versions{number}.so'
        subprocess.run(['cc', '-std=c11', *kit.flags, '-o', built, source], check=True)
        configure(stack, modules=built)
        succeed(stack, formers)
        wait_until(lambda: (answer := stack.request('POST', '/lab/op/Version', json={})).status_code == 200 and answer.json()['out'] == number, what='the new module')

    def settings(number):
        configure(stack, build=f'build{number}')
        stack.reload()
        wait_until(lambda: stack.request('GET', '/lab/ping').headers.get('X-Stampd-Build') == f'build{number}', what='the new settings')

    def schema(number):
        schemas.apply('lab', {'Up': {'open': True, 'items': {'Main': {'singleton': True, 'fields': {'count': 'long', f'field{number}': 'string'}}}}})
        assert stack.op('lab', 'find', {'c': 'Up', 'i': 'Main', 'where': [{'f': f'field{number}', 't': 'eq', 'v1': 'x'}]})['out'] == {'ids': []}

    def migrate(_):
        stack.admin('ns', 'migrate', '--all')

    def nginx(number):
        (stack.path / 'etc/nginx.conf').write_text(first[1] + f'# {number}\n')
        stack.reload_nginx()

    yield {'binary': lambda _: succeed(stack, formers), 'module': module, 'settings': settings, 'schema': schema, 'migrate': migrate, 'nginx': nginx}
    wait_until(lambda: not [pid for pid in formers if is_alive(pid)], what='the ends of the former servers')
    stack.config.write_text(first[0])
    (stack.path / 'etc/nginx.conf').write_text(first[1])
    succeed(stack, formers)
    stack.reload_nginx()


@pytest.mark.parametrize('kind', ['binary', 'module', 'settings', 'schema', 'migrate', 'nginx'])
def test_no_request_fails(stack, upgrade, kind):
    with Traffic(stack) as traffic:
        for number in range(TIMES):
            upgrade[kind](number)
            traffic.wait()
    assert traffic.failures == [] and traffic.answers > 60 * TIMES


def test_a_restart_refuses_before_anything_is_done(stack):
    """Without systemd, which keeps the sockets: what no process can be asked for is refused with the same words each time, and nothing of it is done."""
    with Traffic(stack, refusal='OSTOPPING') as traffic:
        for _ in range(TIMES):
            refused = traffic.refused
            stack.step('stampd', 'stop')
            wait_until(lambda: traffic.refused > refused, what='a refusal')
            stack.step('stampd', 'start')
            traffic.wait()
    assert traffic.failures == []


def test_postgresql_is_replaced_under_load(stack):
    """Its next minor version is other programs on the same folder of data: the server is stopped and started.  What a client cannot know it sends again."""
    with Traffic(stack, again=('XAWAY', 'XUNKNOWN')) as traffic:
        for _ in range(TIMES):
            refused = traffic.refused
            stack.stop_postgres()
            wait_until(lambda: traffic.failures or traffic.refused > refused, what='a refusal')
            stack.step('postgres', 'start')
            traffic.wait()
    assert traffic.failures == []


# --- two releases ---

NOW = re.search(r'(?m)^AC_INIT\(\[stampd\], \[([^]]+)\]', (Path(__file__).resolve().parents[2] / 'configure.ac').read_text()).group(1)
BEFORE = '9' * len(NOW)  # a number of the same length, which no release has


class Releases:
    """A folder of programs whose stampd is a link: to this build, or to one that is the same but for its number."""

    def __init__(self):
        self.path = give(Path(tempfile.mkdtemp(prefix='releases-', dir=ROOM)))
        self.path.chmod(0o755)
        (self.path / 'src').mkdir()
        for program in (BUILD / 'src').iterdir():
            if os.access(program, os.X_OK) and program.is_file() and program.name != 'stampd':
                (self.path / 'src' / program.name).symlink_to(program)
        program = (BUILD / 'src/stampd').read_bytes()
        assert program.count(f'{NOW}\0'.encode()) >= 1
        (self.path / f'stampd-{NOW}').symlink_to(BUILD / 'src/stampd')
        (self.path / f'stampd-{BEFORE}').write_bytes(program.replace(f'{NOW}\0'.encode(), f'{BEFORE}\0'.encode()).replace(f'stampd {NOW}\n'.encode(), f'stampd {BEFORE}\n'.encode()))
        (self.path / f'stampd-{BEFORE}').chmod(0o755)
        self.link(BEFORE)

    def link(self, number):
        link = self.path / 'src/next'
        link.symlink_to(self.path / f'stampd-{number}')
        link.rename(self.path / 'src/stampd')


@pytest.fixture
def releases():
    releases = Releases()
    yield releases
    shutil.rmtree(releases.path, ignore_errors=True)


def versions(stack):
    return re.findall(r'ready version=(\S+)', stack.log())


def test_a_release_and_back_again(releases):
    """Each takes over from the other, without a failed request."""
    formers = []
    with Stack('releases', build=releases.path, **STACK) as stack:
        with Traffic(stack) as traffic:
            for number in range(TIMES):
                for release in (NOW, BEFORE):
                    releases.link(release)
                    succeed(stack, formers)
                    assert versions(stack)[-1] == release
                    traffic.wait()
        wait_until(lambda: not [pid for pid in formers if is_alive(pid)], what='the ends of the former servers')
    assert traffic.failures == []


def test_two_releases_side_by_side(stack, releases):
    """Two instances of one host on the same databases and segment, each with clients that write what the other reads."""
    segment = stack.settings.get('segment') or str(stack.path / 'run/stampd/segment')
    with Stack('before', workers=4, beside=stack, build=releases.path, settings={**STACK['settings'], 'segment': segment}) as other:
        assert versions(other)[-1] == BEFORE and versions(stack)[-1] == NOW
        with Traffic(stack, name='here') as here, Traffic(other, name='there') as there:
            for number in range(TIMES):
                for one, another in ((stack, other), (other, stack)):
                    one.put('lab', {'c': 'Side', 'id': 'a', 'items': [{'c': 'Main', 'j': number}]})
                    assert another.get('lab', ('Side', 'a'))['items'][0]['j'] == number
                here.wait()
                there.wait()
    assert here.failures == [] and there.failures == []


def test_a_database_of_a_later_release_is_a_clear_no(stack):
    """Nothing is served by sessions that begin after the migration; the way back is the row, as the migration did nothing else."""
    latest = stack.psql('lab', 'select max(number) from migration')[0][0]
    stack.psql('lab', "insert into migration (number, name, applied) values (%s, 'later', now())", (latest + 1,))
    try:
        stack.restart_stampd()
        answer = stack.request('GET', '/lab/doc/Note/none')
        assert answer.status_code == 503 and answer.json()['code'] == 'ODATABASE'
        assert f'database=stampd_lab is at migration {latest + 1}, this program needs {latest}' in stack.log()
    finally:
        stack.psql('lab', 'delete from migration where number = %s', (latest + 1,))
    stack.restart_stampd()
    wait_until(lambda: stack.request('GET', '/lab/doc/Note/none').status_code == 404, what='the database')

"""Upgrades of each kind beside clients that read and write all the time through nginx, over connections that they keep and new ones: no request
fails, and what was written is there.  `STAMPD_UPGRADES` is how many of each kind."""
import os
import re
import signal
import subprocess
import threading
import time

import pytest
import requests

from kit import Kit
from schema import Schemas
from stack import PATIENCE_S, is_alive, wait_until
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

    def __init__(self, stack, clients=4, refusal=None):
        """`refusal`: the code of refusals after which a client comes again."""
        self.stack, self.refusal, self.answers, self.failures, self.over = stack, refusal, 0, [], threading.Event()
        self.refused = 0
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
        def send(http):
            return http.request(method, self.stack.url + path, json=body, timeout=PATIENCE_S, verify=self.stack.http.verify)
        while True:
            try:
                answer = send(own)
            except requests.ConnectionError:  # a kept one
                answer = send(requests)
            if answer.status_code == 409 and answer.json()['code'] == 'CONTENTION':  # beside twenty changes of the schema; clients send again
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
                    self.ask(http, 'POST', '/lab/op/put', {'param': {'docs': [{'c': 'Up', 'id': f'u{number}', 'items': [{'c': 'Main', 'j': {'count': count}}]}]}})
                    found = self.ask(http, 'GET', f'/lab/doc/Up/u{number}').json()['items'][0]['j']['count']
                    if found != count:
                        self.failures.append(f'u{number} has {found}, {count} was written')
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

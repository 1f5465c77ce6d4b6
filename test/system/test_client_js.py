"""The client library for JavaScript (src/web/client): its tests, run by Node against a real server."""
import gzip
import json
import os
import re
import shutil
import subprocess

import pytest

from schema import Schemas
from stack import PATIENCE_S, SOURCE
from test_accounts import configure
from web import build_web

pytestmark = [pytest.mark.plain, pytest.mark.skipif(not shutil.which('node'), reason='there is no Node (Debian: nodejs)')]

STACK = {'workers': 3, 'settings': {'records_mb': 4, 'live_records': 6}}
CLIENT = SOURCE / 'src/web/client'
TESTS = SOURCE / 'test/system/client'
PERSON = {'items': {'Main': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}


@pytest.fixture(scope='module')
def server(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Person': PERSON})
    configure(stack, 'lab', records=[{'prefix': 'open.', 'read': 'anyone', 'write': 'anyone'}])
    return {**os.environ, 'STAMPD_URL': stack.url, 'NODE_EXTRA_CA_CERTS': str(stack.path / 'etc/certificate.pem')}


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=2 * PATIENCE_S, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


def run_in_node(server, name):
    report = run('node', '--test', '--test-reporter=tap', TESTS / f'{name}.test.js', env=server)
    assert '\n# fail 0\n' in report and '# SKIP' not in report and '\n# pass 0\n' not in report, report[-4000:]


def test_pure(server):
    run_in_node(server, 'pure')


def test_session(server):
    run_in_node(server, 'session')


def test_old(server):
    run_in_node(server, 'old')


def test_storm(server):
    run_in_node(server, 'storm')


def test_files(server):
    run_in_node(server, 'files')


def test_records(server):
    run_in_node(server, 'records')


def test_each_file_is_run():
    assert {path.name for path in TESTS.glob('*.test.js')} == {f'{name}.test.js' for name in ('files', 'old', 'pure', 'records', 'session', 'storm')}


def test_the_example_of_the_readme_runs(server, tmp_path):
    example = re.search(r'```js\n(.*?)```', (CLIENT / 'README.md').read_text(), re.S)[1]
    assert 'https://localhost:8443' in example and "'stampd-client'" in example
    program = tmp_path / 'example.mjs'
    program.write_text(example.replace("'stampd-client'", f"'{CLIENT}/node.js'").replace('https://localhost:8443', server['STAMPD_URL'])
                       .replace("list.change(", 'await list.change(') + 'await session.close()\n')
    assert run('node', program, env=server).split('\n')[-2:] == ['milk: Milk', '']


def test_one_file_for_browsers_is_built_and_small(tmp_path):
    build_web('client', tmp_path / 'client')
    built = (tmp_path / 'client/dist/stampd-client.js').read_bytes()
    assert len(gzip.compress(built)) < 15 * 1024
    assert b'node:' not in built and (tmp_path / 'client/types/index.d.ts').exists()


def test_the_lock_file_names_no_registry():
    lock = json.loads((CLIENT / 'package-lock.json').read_text())
    assert not [name for name, package in lock['packages'].items() if 'resolved' in package]

"""The client library for JavaScript (src/web/client): its tests, run by Node against a real server.

They are run by each Node that there is: the one in PATH (where `scripts/check` has installed it: Debian's, version 18 in Debian 12),
and those that STAMPD_TEST_NODES names, paths of programs with a colon between them."""
import contextlib
import functools
import gzip
import json
import os
import queue
import re
import shutil
import subprocess
import threading
import time

import pytest

from schema import Schemas
from stack import NAMESPACES, PATIENCE_S, SOURCE, strain
from test_accounts import OPEN, configure
from web import FETCHES, build_web

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not shutil.which('node'), reason='there is no Node (Debian: nodejs)')]

STACK = {'workers': 3, 'namespaces': {**NAMESPACES, 'club': 'closed'}, 'settings': {'records_mb': 4, 'live_records': 6, 'limit_client_partial_uploads': 1000}}
CLIENT = SOURCE / 'src/web/client'
TESTS = SOURCE / 'test/system/client'
POST = {'items': {'Main': {'singleton': True, 'fields': {'room': 'string', 'at': 'long'}, 'indexes': [['room', '-at']]}, 'State': {'singleton': True, 'fields': {'open': 'hash'}}}, 'collections': {'byRoom': {'key': ['Main.room'], 'mutable': True}}}
PERSON = {'items': {'Main': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}
FIELDS = {'s': 'string', 'w': 'string', 'f': 'folded', 'l': 'long', 'i': 'int', 'd': 'double', 'h': 'hash', 'ss': 'string[]', 'ff': 'folded[]', 'll': 'long[]',
          'ii': 'int[]', 'dd': 'double[]', 'hh': 'hash[]', 'p': {'type': 'long', 'at': ['deep', 'a.b']}, 'pp': {'type': 'string[]', 'at': ['rows', 'cells', 'text']}}
RAND = {'open': True, 'items': {'Main': {'singleton': True, 'fields': FIELDS}, 'Row': {'fields': FIELDS}}}
CLASSES = {'Person': PERSON, 'Post': POST, 'Rand': RAND}
TALK = {'open': True, 'items': {'Main': {'singleton': True, 'fields': {'room': 'string', 'at': 'long'}, 'indexes': [['room', '-at']]}},
        'collections': {'byRoom': {'key': ['Main.room'], 'mutable': True}}}
TEAM = {'items': {'Member': {'fields': {'account': 'string'}}}}  # doc/how-to/model-data.md, "What is shared with me"
RULES = {'Note': dict.fromkeys(('read', 'list', 'create', 'update', 'delete'), ['anybody']),
         'Talk': {'owner': 'Main.owner', 'members': 'Mem', 'read': ['owner', 'members'], 'list': ['owner', 'members']},
         'Team': {'members': 'Member', 'read': ['members'], 'list': ['members'], 'create': ['members:chief'], 'update': ['members:chief']}}
SILENCE_S = 180  # between the ends of two tests; the longest takes 20 s


@functools.cache
def nodes():
    """The programs by their version."""
    paths = [shutil.which('node'), *os.environ.get('STAMPD_TEST_NODES', '').split(':')]
    return {subprocess.run([path, '--version'], capture_output=True, text=True, check=True).stdout.strip(): path for path in paths if path}


def pytest_generate_tests(metafunc):
    if 'node' in metafunc.fixturenames:
        metafunc.parametrize('node', nodes().values(), ids=list(nodes()))


@pytest.fixture(scope='module', autouse=True)
def nodes_are_named(request):
    with request.config.pluginmanager.getplugin('capturemanager').global_and_fixture_disabled():
        print('\nNode:', *(f'{path} ({version})' for version, path in nodes().items()))


@pytest.fixture(scope='module')
def server(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', CLASSES)
    schemas.apply('club', {'Talk': TALK, 'Team': TEAM})
    configure(stack, 'club', access='rules', accounts=OPEN)
    rules = tmp_path_factory.mktemp('rules') / 'rules.json'
    rules.write_text(json.dumps(RULES))
    stack.admin('rules', 'set', 'club', rules)
    configure(stack, 'lab', records=[{'prefix': 'open.', 'read': 'anyone', 'write': 'anyone'}])
    return {**os.environ, 'STAMPD_URL': stack.url, 'NODE_EXTRA_CA_CERTS': str(stack.path / 'etc/certificate.pem'),
            'STAMPD_KEY': stack.key, 'STAMPD_SCHEMA': json.dumps({'classes': CLASSES}), 'STAMPD_SCHEMA_OF_CLUB': json.dumps({'classes': {'Talk': TALK}})}


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=2 * PATIENCE_S, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


def lines_of(process):
    """As they come; None: nothing came for SILENCE_S, or longer while the machine is busy."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put('')
    threading.Thread(target=read, daemon=True).start()
    heard = time.monotonic()
    while heard + SILENCE_S * strain() > time.monotonic():
        with contextlib.suppress(queue.Empty):
            line = lines.get(timeout=SILENCE_S)
            if not line:
                return
            heard = time.monotonic()
            yield line
    yield None


def run_in_node(server, node, name):
    """A test that hangs is named, and ended.  Not by --test, which prints a file's results when it has ended (Node 18)."""
    path = TESTS / f'{name}.test.js'
    process = subprocess.Popen([node, '--test-reporter=tap', path], env=server, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    report = ''
    for line in lines_of(process):
        if line is None:
            process.kill()
            process.wait()
            ended = re.findall(r'^(?:not )?ok \d+ - (.*?)(?: # .*)?$', report, re.M)
            pytest.fail(f'{node} {path}: no test has ended for {SILENCE_S} s or more; {len(ended)} have, the last one is {ended[-1:]}; the next one hangs.\n{report[-8000:]}')
        report += line
    assert process.wait() == 0, report[-8000:]
    assert '\n# fail 0\n' in report and '# SKIP' not in report and '\n# pass 0\n' not in report, report[-4000:]


def test_pure(server, node):
    run_in_node(server, node, 'pure')


def test_session(server, node):
    run_in_node(server, node, 'session')


def test_old(server, node):
    run_in_node(server, node, 'old')


def test_storm(server, node):
    run_in_node(server, node, 'storm')


def test_files(server, node):
    run_in_node(server, node, 'files')


def test_find(server, node):
    run_in_node(server, node, 'find')


def test_copies(server, node):
    run_in_node(server, node, 'copies')


def test_follow(server, node):
    run_in_node(server, node, 'follow')


def test_records(server, node):
    run_in_node(server, node, 'records')


def test_store(server, node):
    run_in_node(server, node, 'store')


def test_network(server, node):
    run_in_node(server, node, 'network')


def test_live(server, node):
    run_in_node(server, node, 'live')


def test_accounts(server, node):
    run_in_node(server, node, 'accounts')


def test_each_file_is_run():
    assert {path.name for path in TESTS.glob('*.test.js')} == {f'{name}.test.js' for name in ('accounts', 'copies', 'files', 'find', 'follow', 'live', 'network', 'old', 'pure', 'records', 'session', 'store', 'storm')}


def run_example(node, server, tmp_path, library):
    example = re.search(r'```js\n(.*?)```', (CLIENT / 'README.md').read_text(), re.S)[1]
    assert 'https://localhost:8443' in example and "'stampd-client'" in example
    program = tmp_path / 'example.mjs'
    program.write_text(example.replace("'stampd-client'", f"'{library}'").replace('https://localhost:8443', server['STAMPD_URL'])
                       .replace("list.change(", 'await list.change(') + 'await session.close()\n')
    assert run(node, program, env=server).split('\n')[-2:] == ['milk: Milk', '']


def test_the_example_of_the_readme_runs(server, node, tmp_path):
    run_example(node, server, tmp_path, CLIENT / 'node.js')


def test_one_file_for_browsers_is_built_and_small(server, node, tmp_path):
    """The names of the library's own members are shortened in it: it does the same."""
    build_web('client', tmp_path / 'client')
    run_example(node, server, tmp_path, tmp_path / 'client/dist/stampd-client.js')
    built = (tmp_path / 'client/dist/stampd-client.js').read_bytes()
    assert len(gzip.compress(built)) < 16.5 * 1024
    assert len(gzip.compress((tmp_path / 'client/dist/stampd-find.js').read_bytes())) < 5.5 * 1024
    assert len(gzip.compress((tmp_path / 'client/dist/stampd-sign-in.js').read_bytes())) < 4 * 1024
    assert b'node:' not in built and (tmp_path / 'client/types/index.d.ts').exists()


USER_OF_THE_PACKAGE = """
import { memoryStore, open } from 'stampd-client'
const session = await open({ url: process.env.STAMPD_URL, ns: 'lab', store: memoryStore() })
session.doc('Packed', 'a').change((note) => note.set('Main', { text: 'from the package' }))
while (session.status.get().pending) await new Promise((resolve) => setTimeout(resolve, 50))
console.log((await session.call('get', { docs: [{ c: 'Packed', id: 'a' }] })).docs[0].items[0].j.text)
process.exit()
"""


def test_the_package_is_packed_installed_and_used(server, tmp_path):
    """As it would be published: nothing of the tests is in it, its types are, and a program imports it by its name."""
    build_web('client', tmp_path / 'client')
    packed = json.loads(run('npm', 'pack', '--json', '--offline', '--pack-destination', tmp_path, cwd=tmp_path / 'client'))[0]
    names = {one['path'] for one in packed['files']}
    assert {'package.json', 'README.md', 'index.js', 'node.js', 'types/index.d.ts', 'dist/stampd-client.js', 'find.js', 'types/find.d.ts', 'dist/stampd-find.js',
            'sign_in.js', 'types/sign_in.d.ts', 'dist/stampd-sign-in.js'} <= names
    assert not [name for name in names if 'node_modules' in name or 'test' in name or name.startswith('.')]
    user = tmp_path / 'user'
    user.mkdir()
    (user / 'package.json').write_text('{"name":"user","private":true,"type":"module"}')
    run('npm', 'install', '--offline', '--no-audit', '--no-fund', tmp_path / packed['filename'], cwd=user)
    (user / 'main.js').write_text(USER_OF_THE_PACKAGE)
    assert run('node', 'main.js', cwd=user, env=server) == 'from the package\n'


def test_the_lock_file_names_no_registry():
    lock = json.loads((CLIENT / 'package-lock.json').read_text())
    assert not [name for name, package in lock['packages'].items() if 'resolved' in package]

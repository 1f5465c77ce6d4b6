"""The example adapter for RxDB (doc/examples/rxdb): two clients in Node that replicate with the server, with conflicts and deletions."""
import os
import shutil
import subprocess

import pytest

from schema import Schemas
from stack import PATIENCE_S, SOURCE
from web import FETCHES, install_packages

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not shutil.which('node'), reason='there is no Node (Debian: nodejs)')]

STACK = {'workers': 3, 'settings': {'limit_document_bytes': 2 << 20, 'limit_answer_bytes': 4 << 20}}
TODO = {'items': {'Main': {'singleton': True}}, 'collections': {'list': {'key': ['Main.list'], 'mutable': True}}}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    version = subprocess.run(['node', '--version'], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip('v').partition('.')[0]) < 20:
        pytest.skip(f'RxDB 17 needs Node 20 (there is {version.strip()})')
    folder = tmp_path_factory.mktemp('rxdb') / 'rxdb'
    shutil.copytree(SOURCE / 'doc/examples/rxdb', folder)
    install_packages(folder)
    for script in ('rxdb_kit.mjs', 'rxdb_clients.mjs', 'rxdb_pages.mjs'):
        shutil.copy(SOURCE / 'test/system' / script, folder)
    return folder


@pytest.fixture(scope='module')
def lab(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Todo': TODO})
    return stack


def run(stack, script, end):
    done = subprocess.run(['node', script], capture_output=True, text=True, timeout=2 * PATIENCE_S, stdin=subprocess.DEVNULL,
                          env={**os.environ, 'STAMPD_URL': stack.url, 'NODE_EXTRA_CA_CERTS': str(stack.path / 'etc/certificate.pem')})
    assert done.returncode == 0 and done.stdout.endswith(end), done.stdout[-4000:] + done.stderr[-4000:]


def test_two_clients_converge(lab, folder):
    lab.put('lab', {'c': 'Todo', 'id': 'a', 'items': [{'c': 'Main', 'j': {'list': 'home', 'text': 'from the server'}}]})
    run(lab, folder / 'rxdb_clients.mjs', 'converged\n')


def test_collections_of_several_pages(lab, folder):
    """Pages of a full, a partial and no further page, pages cut by bytes, a stream cut anywhere, and none."""
    run(lab, folder / 'rxdb_pages.mjs', 'all pages\n')

"""The example adapter for RxDB (doc/examples/rxdb): two clients in Node that replicate with the server, with conflicts and deletions."""
import os
import shutil
import subprocess

import pytest

from schema import Schemas
from stack import PATIENCE_S, SOURCE
from web import install_packages

pytestmark = [pytest.mark.plain, pytest.mark.skipif(not shutil.which('node'), reason='there is no Node (Debian: nodejs)')]

STACK = {'workers': 3}
TODO = {'items': {'Main': {'singleton': True}}, 'collections': {'list': {'key': ['Main.list'], 'mutable': True}}}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('rxdb') / 'rxdb'
    shutil.copytree(SOURCE / 'doc/examples/rxdb', folder)
    install_packages(folder)
    shutil.copy(SOURCE / 'test/system/rxdb_clients.mjs', folder)
    return folder


def test_two_clients_converge(stack, folder, tmp_path):
    Schemas(stack, tmp_path).apply('lab', {'Todo': TODO})
    stack.put('lab', {'c': 'Todo', 'id': 'a', 'items': [{'c': 'Main', 'j': {'list': 'home', 'text': 'from the server'}}]})
    done = subprocess.run(['node', folder / 'rxdb_clients.mjs'], capture_output=True, text=True, timeout=2 * PATIENCE_S, stdin=subprocess.DEVNULL,
                          env={**os.environ, 'STAMPD_URL': stack.url, 'NODE_EXTRA_CA_CERTS': str(stack.path / 'etc/certificate.pem')})
    assert done.returncode == 0 and done.stdout.endswith('converged\n'), done.stdout[-4000:] + done.stderr[-4000:]

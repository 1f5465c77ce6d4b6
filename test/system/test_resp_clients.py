"""RESP of stamp-journal with clients of the npm registry, of pinned versions: node-redis and ioredis."""
import os
import shutil
import subprocess

from journal_world import ALL, STACK, journal
from stack import PATIENCE_S, SOURCE
from web import FETCHES, install_packages


@FETCHES
def test_node_redis_and_ioredis(journal, tmp_path):
    for name in ('package.json', 'package-lock.json', '.npmrc', 'clients.mjs'):
        shutil.copy(SOURCE / 'test/system/redis_clients' / name, tmp_path)
    install_packages(tmp_path)
    done = subprocess.run(['node', 'clients.mjs', journal.socket, 'lab', ALL, f'localhost:{journal.port}'], cwd=tmp_path, capture_output=True, text=True,
                          timeout=PATIENCE_S, env=dict(os.environ, NODE_EXTRA_CA_CERTS=str(journal.certificate)))
    assert done.returncode == 0, done.stdout + done.stderr

"""The client of tus that attachments.md names, tus-js-client: many files at once, files of unknown type, files that go on."""
import os
import shutil
import subprocess

import pytest

from stack import PATIENCE_S, SOURCE
from web import FETCHES, install_packages

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not shutil.which('node'), reason='there is no Node (Debian: nodejs)')]

STACK = {'workers': 4}


def test_uploads_of_the_real_client(stack, tmp_path):
    folder = tmp_path / 'tus'
    shutil.copytree(SOURCE / 'test/system/tus', folder)
    install_packages(folder)
    script = shutil.copy(SOURCE / 'test/system/tus_uploads.mjs', folder)
    done = subprocess.run(['node', script], capture_output=True, text=True, timeout=2 * PATIENCE_S, stdin=subprocess.DEVNULL,
                          env={**os.environ, 'STAMPD_URL': stack.url, 'NODE_EXTRA_CA_CERTS': str(stack.path / 'etc/certificate.pem')})
    assert done.returncode == 0 and done.stdout.endswith('all arrived\n'), done.stdout[-4000:] + done.stderr[-4000:]

"""Packages of npm that tests build or use; the tests are skipped where there is no npm, or no registry."""
import re
import shutil
import subprocess

import pytest

from stack import PATIENCE_S, SOURCE

NO_NETWORK = re.compile('ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network')


def build_web(package, folder):
    """Builds src/web/PACKAGE in a folder."""
    done = subprocess.run([SOURCE / 'scripts/build-web', package, folder], capture_output=True, text=True, timeout=2 * PATIENCE_S)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def install_packages(folder):
    """What the lock file in the folder names."""
    if not shutil.which('npm'):
        pytest.skip('there is no npm (Debian: npm)')
    done = subprocess.run(['npm', 'ci', '--no-audit', '--no-fund', '--ignore-scripts'], cwd=folder, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    if done.returncode != 0 and NO_NETWORK.search(done.stderr):
        pytest.skip('the registry of npm cannot be reached')
    assert done.returncode == 0, done.stderr

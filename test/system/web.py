"""Packages of npm that tests build or use; the tests are skipped where there is no npm, or no registry."""
import subprocess

import pytest

from stack import PATIENCE_S, SOURCE


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def build_web(package, folder):
    """Builds src/web/PACKAGE in a folder."""
    run(SOURCE / 'scripts/build-web', package, folder)


def install_packages(folder):
    """What the lock file in the folder names."""
    run(SOURCE / 'scripts/npm-install', folder)

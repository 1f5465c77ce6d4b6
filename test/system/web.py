"""Packages of npm that tests build or use; the tests are skipped where there is no npm, or no registry."""
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cluster import CLUSTER_ROOM
from stack import PATIENCE_S, SOURCE, wait_until

# Of tests with packages of a registry, which sends them when it likes.
FETCHES = pytest.mark.timeout(300)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * PATIENCE_S)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def build_web(package, folder):
    """Builds src/web/PACKAGE in a folder: once in a run, since a build fetches packages and takes some ten seconds; the others copy it."""
    built = Path(os.environ[CLUSTER_ROOM]) / f'web-{package}'
    with open(f'{built}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            run(SOURCE / 'scripts/build-web', package, f'{built}.new')
            Path(f'{built}.new').rename(built)
    shutil.copytree(built, folder, symlinks=True, dirs_exist_ok=True)


def install_packages(folder):
    """What the lock file in the folder names."""
    run(SOURCE / 'scripts/npm-install', folder)


def built_page(package, tmp_path_factory):
    """The folder with what is served."""
    folder = tmp_path_factory.mktemp(package)
    build_web(package, folder)
    return folder / 'dist'


def serve_page(stack, built, place, path):
    """As scripts/demo does it; returns the address."""
    shutil.copytree(built, stack.path / place)
    with stack.nginx_renewed():  # a browser asks once
        stack.step('nginx', 'refresh')
    wait_until(lambda: stack.http.get(f'{stack.url}{path}', timeout=PATIENCE_S).status_code == 200, what='the page')
    return f'{stack.url}{path}'

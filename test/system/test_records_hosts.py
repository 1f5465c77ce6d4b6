"""A short campaign of test/history/records-hosts: hosts in network namespaces, and a judge of all answers."""
import os
import subprocess

import pytest

from stack import BUILD, SOURCE

pytestmark = [pytest.mark.plain, pytest.mark.timeout(600)]
CANNOT_RUN = 77


def test_nothing_false_is_answered():
    done = subprocess.run([SOURCE / 'test/history/records-hosts', '--seconds', '10', '--hosts', '4', '--seed', os.environ.get('STAMPD_CHECK_SEED', '1')], capture_output=True, text=True,
                          env={**os.environ, 'STAMPD_BUILD': str(BUILD)}, timeout=500)
    if done.returncode == CANNOT_RUN:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0 and '0 violations' in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]

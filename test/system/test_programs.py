"""The test programs in C that need a real PostgreSQL: sessions and recovery processes, the store, freshness, torture."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from stack import BUILD

HERE = Path(__file__).parent
# They see to it that the sessions of stampd have none, which is off for all else in stacks.
STACK = {'postgres': {'jit': 'on'}}
HELPERS = {'cron_lines'}  # answer questions of other tests
PROGRAMS = sorted({path.stem for path in HERE.glob('*.c') if '\nint main(' in path.read_text()} - HELPERS)


@pytest.mark.parametrize('program', PROGRAMS)
def test_program(stack, program):
    done = subprocess.run([BUILD / 'test/system' / program], cwd=stack.path, stdin=subprocess.DEVNULL,
                          env={**os.environ, 'STAMPD_TEST_CONNINFO': stack.conninfo_of_server()},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace', timeout=300)
    if done.returncode != 0:
        failures = re.findall(r'\[  ERROR   \].*\n.*', done.stdout)  # a failed test leaks, and reports of leaks are long
        pytest.fail('\n'.join([f'{program} ended with {done.returncode}:', *failures, done.stdout[-8000:]]), pytrace=False)

"""The runner of the system tests in scripts/check, scripts/lib/system.py, with a file of tests of its own."""
import subprocess
import sys
from pathlib import Path

import pytest

from stack import BUILD, SOURCE, is_alive, run_program

pytestmark = pytest.mark.plain

# A server such as a step starts: with a session of its own, which nothing ends; its child has lost its parent already.
LEAVES = '''
import subprocess

def test_it_fails():
    shell = subprocess.Popen(['setsid', 'sh', '-c', 'sleep 600 & echo $! $$ >{pids}; exec sleep 600'])
    while not __import__('os').path.exists('{pids}') or len(open('{pids}').read().split()) < 2:
        pass
    assert False, 'in the middle of a step'
'''
RUN = '''
import sys
from pathlib import Path
sys.path.insert(0, '{lib}')
import system
system.prepare()
print(*system.run([system.File(Path('{folder}'), '{build}', '', Path('{tests}'))], 1, 60))
'''


def test_what_a_failed_test_leaves_running_ends_with_its_file(tmp_path):
    pids, tests = tmp_path / 'pids', tmp_path / 'test_leaves.py'
    tests.write_text(LEAVES.format(pids=pids))
    done = run_program(sys.executable, '-c', RUN.format(lib=SOURCE / 'scripts/lib', folder=tmp_path, build=BUILD, tests=tests))
    assert done.out.split() == ['0', '1', '0'], done.text
    left = [int(pid) for pid in pids.read_text().split()]
    assert len(left) == 2 and not any(map(is_alive, left))
    assert all(f'left running, and killed: {pid} sleep 600' in (tmp_path / f'{Path(BUILD).name}-leaves.log').read_text() for pid in left)

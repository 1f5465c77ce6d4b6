"""How scripts/check counts: no failure may hide."""
import subprocess

import pytest

from stack import SOURCE

pytestmark = pytest.mark.plain

GOOD = '[==========] Running 3 test(s).\n[==========] 3 test(s) run.\n[  PASSED  ] 3 test(s).\n'
BAD = '[==========] 3 test(s) run.\n[  PASSED  ] 1 test(s).\n[  FAILED  ] 2 test(s), listed below:\n'


def count(kind, path, status):
    done = subprocess.run(['/usr/bin/python3', SOURCE / 'scripts/lib/count.py', kind, path, str(status)], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return tuple(map(int, done.stdout.split()))


def record(folder, name, result, log):
    (folder / f'{name}.trs').write_text(f':test-result: {result}\n')
    (folder / f'{name}.log').write_text(log)


def test_cases_of_cmocka_and_other_programs(tmp_path):
    record(tmp_path, 'test_one', 'PASS', GOOD + GOOD.replace('] 3', '] documents: 3'))
    record(tmp_path, 'check-style', 'PASS', 'all well\n')
    assert count('automake', tmp_path, 0) == (7, 0, 0)
    record(tmp_path, 'test_two', 'FAIL', BAD)
    assert count('automake', tmp_path, 1) == (8, 2, 0)


def test_a_crash_is_a_failure_whatever_was_printed_before(tmp_path):
    record(tmp_path, 'test_one', 'FAIL', GOOD)
    assert count('automake', tmp_path, 1) == (3, 1, 0)
    record(tmp_path, 'test_one', 'FAIL', '')
    assert count('automake', tmp_path, 1) == (0, 1, 0)


@pytest.mark.parametrize('result', ['SKIP', 'ERROR', 'XFAIL'])
def test_what_did_not_pass_has_failed(tmp_path, result):
    record(tmp_path, 'test_one', result, '')
    assert count('automake', tmp_path, 0) == (0, 1, 0)


def test_make_that_fails_without_a_failed_test(tmp_path):
    record(tmp_path, 'test_one', 'PASS', GOOD)
    (tmp_path / 'check.log').write_text('make: *** [test_two.o] Error 1\n')
    assert count('automake', tmp_path, 2) == (3, 1, 0)


def test_system_tests(tmp_path):
    path = tmp_path / 'system.xml'
    assert count('junit', path, 2) == (0, 1, 0)
    path.write_text('<testsuites><testsuite tests="9" failures="2" errors="1" skipped="1"/></testsuites>')
    assert count('junit', path, 1) == (5, 3, 1)
    path.write_text('<testsuites><testsuite tests="9" failures="0" errors="0" skipped="0"/></testsuites>')
    assert count('junit', path, 0) == (9, 0, 0)
    assert count('junit', path, 3) == (9, 1, 0)

#!/usr/bin/python3
"""Counts test cases for scripts/check: prints "passed failed" on standard output, the logs of failures on standard error.
A program that make check skipped lacks what should be installed: it counts as failed.  A system test that was skipped does
not concern this user: it is not counted.

usage: count.py automake BUILD_FOLDER EXIT_STATUS | count.py junit FILE EXIT_STATUS
"""
import re
import sys
import xml.etree.ElementTree
from pathlib import Path

CMOCKA_PASSED = re.compile(r'^\[  PASSED  \] (?:\S+: )?(\d+) test', re.MULTILINE)
CMOCKA_FAILED = re.compile(r'^\[  FAILED  \] (?:\S+: )?(\d+) test', re.MULTILINE)
LOG_LINES = 40


def automake(folder, status):
    """One .trs a program of TESTS.  A cmocka program counts case by case, but a crash is a failure whatever it printed."""
    passed = failed = 0
    for record in sorted(Path(folder).rglob('*.trs')):
        good = ':test-result: PASS' in record.read_text()
        log = record.with_suffix('.log').read_text(errors='replace')
        cases = sum(map(int, CMOCKA_PASSED.findall(log)))
        bad = sum(map(int, CMOCKA_FAILED.findall(log)))
        passed += cases or (1 if good else 0)
        failed += bad or (0 if good else 1)
        if not good or bad:
            print(f'--- {record.stem}:', *log.splitlines()[-LOG_LINES:], sep='\n', file=sys.stderr)
    if status and not failed:
        log = (Path(folder) / 'check.log').read_text(errors='replace')
        print('--- make check:', *log.splitlines()[-LOG_LINES:], sep='\n', file=sys.stderr)
        failed = 1
    return passed, failed


def junit(path, status):
    passed = failed = 0
    if Path(path).exists():
        for suite in xml.etree.ElementTree.parse(path).getroot().iter('testsuite'):
            bad = int(suite.get('failures')) + int(suite.get('errors'))
            failed += bad
            passed += max(0, int(suite.get('tests')) - bad - int(suite.get('skipped')))
    return passed, max(failed, 1 if status or not passed else 0)


if __name__ == '__main__':
    print(*{'automake': automake, 'junit': junit}[sys.argv[1]](sys.argv[2], int(sys.argv[3])))

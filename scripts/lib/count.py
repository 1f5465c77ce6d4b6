#!/usr/bin/python3
"""Counts test cases for scripts/check: prints "passed failed skipped" on standard output, the names and logs of failures and why tests
were skipped on standard error.  A program that make check skipped lacks what should be installed: it counts as failed.

usage: count.py automake BUILD_FOLDER EXIT_STATUS | count.py junit FILE EXIT_STATUS   (system.py calls junit itself)
"""
import re
import sys
import xml.etree.ElementTree
from pathlib import Path

CMOCKA_PASSED = re.compile(r'^\[  PASSED  \] (?:\S+: )?(\d+) test', re.MULTILINE)
CMOCKA_FAILED = re.compile(r'^\[  FAILED  \] (?:\S+: )?(\d+) test', re.MULTILINE)
LOG_LINES = 40
MESSAGE_MOST = 600


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
            print(f'failed: {record.stem}', f'--- {record.stem}:', *log.splitlines()[-LOG_LINES:], sep='\n', file=sys.stderr)
    if status and not failed:
        log = (Path(folder) / 'check.log').read_text(errors='replace')
        print('--- make check:', *log.splitlines()[-LOG_LINES:], sep='\n', file=sys.stderr)
        failed = 1
    return passed, failed, 0


def summary(failure):
    """What failed, in one line."""
    return ' '.join((failure.get('message') or '').split())[:MESSAGE_MOST]


def junit(path, status, where=''):
    """Of one pytest; `where` is said behind the names of those that failed.  One without results has failed."""
    passed = failed = skipped = 0
    if Path(path).exists():
        root = xml.etree.ElementTree.parse(path).getroot()
        for suite in root.iter('testsuite'):
            bad = int(suite.get('failures')) + int(suite.get('errors'))
            failed += bad
            skipped += int(suite.get('skipped'))
            passed += max(0, int(suite.get('tests')) - bad - int(suite.get('skipped')))
        for case in root.iter('testcase'):
            for wrong in [*case.iter('failure'), *case.iter('error')][:1]:
                print(f'failed: {case.get("classname")}.{case.get("name")}{where}: {summary(wrong)}', file=sys.stderr)
            for one in case.iter('skipped'):
                print(f'skipped: {case.get("classname")}.{case.get("name")}: {one.get("message")}', file=sys.stderr)
    else:
        print(f'failed: {Path(path).stem}: it ended with {status}, without results', file=sys.stderr)
    return passed, max(failed, 1 if status or not passed + skipped else 0), skipped


if __name__ == '__main__':
    print(*{'automake': automake, 'junit': junit}[sys.argv[1]](sys.argv[2], int(sys.argv[3])))

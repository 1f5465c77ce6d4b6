#!/usr/bin/python3
"""Runs the system tests, for scripts/check: the files of all suites side by side, those that take longest first.

usage: system.py FOLDER BESIDE TEST_MOST_S BUILD=MARKS...

Each suite is a build and the pytest expression that picks its tests.  A file of one suite is a pytest of its own, forked from this process,
which has imported what all of them import; BESIDE of them run at once, each at a place (STAMPD_TEST_PLACE) from 0 on.  What they print, and
their results, are in FOLDER: BUILD-FILE.log and .xml.  Prints "passed failed skipped" on standard output, a line a file on standard error,
with its seconds and those of the processors (as a program, and in the kernel) of all that it started, and of those that failed all that they said.
"""
import atexit
import ctypes
import gc
import importlib
import os
import re
import resource
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
TESTS = SOURCE / 'test/system'
sys.dont_write_bytecode = not sys.pycache_prefix  # scripts/check has a folder for it
sys.path[:0] = [str(HERE), str(TESTS)]

import _pytest.config  # noqa: E402
import psycopg2  # noqa: F401, E402
import pytest  # noqa: E402
import pytest_timeout  # noqa: E402
import requests  # noqa: F401, E402

import cluster  # noqa: E402
import count  # noqa: E402
import order  # noqa: E402

ALL_PLAIN = re.compile(r'^pytestmark = \[?pytest\.mark\.plain\b', re.M)
NONE_PICKED = 5  # the status of a pytest without tests
PR_SET_CHILD_SUBREAPER = 36
ENDS = (signal.SIGTERM, signal.SIGINT)
LEFT_MOST_S = 5  # so long processes may take to end that have been asked to
WRONG = []  # what the files with failures said


def is_picked(path, marks):
    """False where its text shows that the expression picks none of its tests; a pytest would find that out later."""
    kind = marks.removesuffix(' and not again')
    if kind == 'quick':
        return order.name_of(path) in order.QUICK
    text = path.read_text()
    if kind == 'plain':
        return 'mark.plain' in text
    return kind != 'not plain' or not ALL_PLAIN.search(text)


class File:
    def __init__(self, folder, build, marks, path):
        self.build, self.marks, self.path = build, marks, path
        self.build_name = Path(build).name
        self.is_interrupted = False
        self.name = f'{self.build_name}-{order.name_of(path)}'
        self.log, self.results = folder / f'{self.name}.log', folder / f'{self.name}.xml'

    def begin(self, place, most_s):
        self.place, self.begun = place, time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            self.attend(most_s)

    def attend(self, most_s):
        """In a process of its own, which ends here.  It waits for the tests and ends all processes that they leave, so that the system adds
        up what these have taken.  A terminal interrupts the runner alone, which passes it on, once: a second signal would end the tests
        while they remove what they have started."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        os.setpgid(0, 0)
        tests = os.fork()
        if tests == 0:
            self.test(most_s)
        signal.signal(signal.SIGTERM, lambda *_: os.kill(tests, signal.SIGTERM))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
        pid, status = os.wait()
        while pid != tests:
            pid, status = os.wait()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.end_what_is_left()
        os._exit(os.waitstatus_to_exitcode(status) & 255)

    def end_what_is_left(self):
        """A test whose time is over in the middle of a step may have started a server that it knows nothing of.  All that the tests have
        started are children of this process, as soon as their own parents have ended."""
        import stack  # not before: in the processes of the tests it looks which build they are of
        end = time.monotonic() + LEFT_MOST_S
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                for child in stack.children(os.getpid()) if time.monotonic() > end else []:
                    with open(self.log, 'a') as log:
                        print(f'left running, and killed: {child} {stack.command_line(child)}', file=log)
                    os.kill(child, signal.SIGKILL)
                time.sleep(0.02)

    def test(self, most_s):
        """In a process of its own, which ends here."""
        status = 3
        try:
            for number in ENDS:
                signal.signal(number, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
            output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ.update(STAMPD_BUILD=self.build, STAMPD_TEST_PLACE=str(self.place))
            sys.argv = ['pytest']
            status = int(pytest.main(['-q', '-p', 'no:cacheprovider', '--strict-markers', '--tb=short', '--durations=5', f'--rootdir={SOURCE}',
                                      f'--timeout={most_s}', f'--junitxml={self.results}', '-m', self.marks, str(self.path)], plugins=[pytest_timeout]))
        finally:
            atexit._run_exitfuncs()  # what has begun in it removes its files by these
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(status)

    def interrupt(self):
        if not self.is_interrupted:
            self.is_interrupted = True
            os.kill(self.pid, signal.SIGTERM)

    def end(self, status, usage):
        """Its counts; what is wrong is said."""
        took = time.monotonic() - self.begun
        if status == NONE_PICKED:
            return 0, 0, 0
        counts = count.junit(self.results, status, f' [{self.build_name}]')
        print(f'{took:6.0f} s {usage.ru_utime:7.1f} + {usage.ru_stime:.1f} s of processors  {counts[0]:4} passed, {counts[1]} failed, {counts[2]} skipped  {self.name}',
              file=sys.stderr, flush=True)
        if counts[1]:
            WRONG.append(f'--- {self.name} ended with {status}:\n{self.log.read_text(errors="replace") if self.log.exists() else ""}')
        return counts


def prepare():
    """Has this process import what each pytest would; what it holds then is left alone by the collectors of all that are forked from it."""
    os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'
    for plugin in _pytest.config.default_plugins:
        importlib.import_module(f'_pytest.{plugin}')
    gc.collect()
    gc.freeze()


def run(files, beside, most_s):
    """The sums of their counts."""
    waiting, running, places, sums = list(reversed(files)), {}, set(range(beside)), (0, 0, 0)

    def interrupt(*_):
        waiting.clear()
        for file in running.values():
            file.interrupt()

    for number in ENDS:
        signal.signal(number, interrupt)
    while waiting or running:
        while waiting and places:
            file = waiting.pop()
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # until each process has handlers of its own, and it is known here
            file.begin(places.pop(), most_s)
            running[file.pid] = file
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
        pid, status, usage = os.wait4(-1, 0)
        file = running.pop(pid, None)
        if file:
            places.add(file.place)
            sums = tuple(map(sum, zip(sums, file.end(os.waitstatus_to_exitcode(status), usage))))
    return sums


def main(folder, beside, most_s, *suites):
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    files = [File(folder, *suite.split('=', 1), path) for suite in suites for path in TESTS.glob('test_*.py') if is_picked(path, suite.partition('=')[2])]
    files.sort(key=lambda file: order.place_of(file.path))
    prepare()
    with cluster.shared_room():
        sums = run(files, int(beside), int(most_s))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f'{usage.ru_utime:.0f} + {usage.ru_stime:.0f} s of processors', *WRONG, sep='\n', file=sys.stderr)
    print(*sums)


if __name__ == '__main__':
    main(*sys.argv[1:])

"""Fixtures of the system tests.  A test file that takes `stack` has one of its own; its variable STACK may hold
arguments of stack.Stack.  The folder is removed at the end, unless a test failed: then the ends of the logs are shown."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import pytest_timeout

sys.dont_write_bytecode = not sys.pycache_prefix  # scripts/check has a folder for it
sys.path.insert(0, os.path.dirname(__file__))

import order  # noqa: E402
from cluster import CLUSTER_ROOM, ROOM, make_cluster_room  # noqa: E402
from stack import BUILD, SERVER_USER, SOURCE, Stack, StackError, children, command_line, name_of, process_state, remove_folder, strain  # noqa: E402

LOG_LINES = 40


def interrupt(*_):
    signal.signal(signal.SIGTERM, lambda *_: None)  # what is being removed is not interrupted again
    INTERRUPTED.append(True)
    raise KeyboardInterrupt


INTERRUPTED = []


def pytest_configure(config):
    config.addinivalue_line('markers', 'plain: run with the plain build, not with the sanitizers: its time goes into processes, commands and waits')
    config.addinivalue_line('markers', 'again: another test shows the same with other values; run by hand, and by scripts/check all')
    config.addinivalue_line('markers', 'quick: of those files that scripts/check quick runs')
    signal.signal(signal.SIGTERM, interrupt)  # else what the fixtures have started would be left running
    if not (BUILD / 'src/stampd').exists():
        pytest.exit(f'there is no {BUILD}/src/stampd: set STAMPD_BUILD to the folder of a build', returncode=2)
    for path in (BUILD / 'src/stampd', SOURCE / 'sql/README.md') if SERVER_USER else ():
        if subprocess.run(['test', '-r', path], cwd='/', **SERVER_USER).returncode != 0:
            pytest.exit(f'the user {SERVER_USER["user"]}, as whom the servers run, may not read {path}: take a checkout and a build '
                        'that all may read, or scripts/check, which makes a copy', returncode=2)
    if CLUSTER_ROOM not in os.environ:  # the runners inherit it
        os.environ[CLUSTER_ROOM] = config.cluster_room = make_cluster_room()


def pytest_unconfigure(config):
    if hasattr(config, 'cluster_room'):
        remove_folder(Path(config.cluster_room))
        del os.environ[CLUSTER_ROOM]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    features = (BUILD / 'config.h').read_text().splitlines()
    for item in items:
        if order.name_of(item.path) in order.QUICK:
            item.add_marker(pytest.mark.quick)
        if hasattr(item, 'callspec') and item.callspec.indices.get('seed', 0) > 0:
            item.add_marker(pytest.mark.again)
        for feature, files in order.NEEDS.items():
            if order.name_of(item.path) in files and f'#define HAVE_{feature} 1' not in features:
                item.add_marker(pytest.mark.skip(reason=f'this build is without HAVE_{feature}, see configure --help'))
    items.sort(key=lambda item: order.place_of(item.path)[0])


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item, settings):
    """In place of the plugin's: what is slow because the machine is busy does not hang.  The limit grows with the load."""
    begun = time.monotonic()

    def judge(*_):
        __tracebackhide__ = True
        left = begun + settings.timeout * strain() - time.monotonic()
        if left <= 0:
            signal.setitimer(signal.ITIMER_REAL, settings.timeout)  # what ends the test may hang too
            pytest_timeout.timeout_sigalrm(item, settings.timeout)
        signal.setitimer(signal.ITIMER_REAL, max(1, left))

    def cancel():
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel
    signal.signal(signal.SIGALRM, judge)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


@pytest.fixture(scope='module')
def spares(request):
    """The codes in SPARE of the test file: namespaces that tests take, one after the other, each for itself."""
    return iter(request.module.SPARE)


def ends_of_logs(stack):
    for part in ('stampd', 'queue', 'nginx', 'postgres'):
        lines = stack.log(part).splitlines()[-LOG_LINES:]
        if lines:
            yield f'end of the log of {part}', '\n'.join(lines)


def processes(stack):
    for part in ('stampd', 'queue', 'nginx'):
        try:
            master = stack.pid(part)
        except StackError:
            continue
        yield from (master, *children(master))


def where_processes_are(stack):
    """What each process of the stack waits for in the kernel: one that hangs is found by it."""
    for pid in processes(stack):
        try:
            place = ' < '.join(line.split()[-1].partition('+')[0] for line in Path(f'/proc/{pid}/stack').read_text().splitlines()[:4])
        except OSError:  # only root may read it
            place = ''
        yield f'{pid} {"".join(process_state(pid)[:1])} {command_line(pid)[:80]}  {place}'


def functions_of_processes(stack):
    """The functions that each process of stampd is in, where there is a gdb."""
    for pid in processes(stack) if shutil.which('gdb') else ():
        if 'stamp' in command_line(pid):
            with contextlib.suppress(subprocess.TimeoutExpired):
                done = subprocess.run(['gdb', '-batch', '-nx', '-p', str(pid), '-ex', 'thread apply all backtrace 12'], capture_output=True, text=True, timeout=20)
                yield '\n'.join([f'{pid} {name_of(pid)}', *(line for line in done.stdout.splitlines() if line.startswith(('#', 'Thread')))])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if INTERRUPTED:  # also where the end of a fixture has failed then
        item.session.shouldstop = 'interrupted'
    if report.failed:
        item.getparent(pytest.Module).has_failed = True
        stack = getattr(item, 'funcargs', {}).get('stack')
        if stack:
            report.sections += [*ends_of_logs(stack), ('processes', '\n'.join(where_processes_are(stack)))]
            if 'Timeout >' in str(report.longrepr):
                report.sections.append(('functions that the processes are in', '\n'.join(functions_of_processes(stack))))


@pytest.fixture(scope='module')
def stack(request):
    name = request.module.__name__.replace('test_', '')
    stack = Stack(name, **getattr(request.module, 'STACK', {}))
    try:
        stack.start()
    except StackError as error:
        stack.stop()
        pytest.fail('\n'.join([str(error), f'kept: {stack.path}', *(f'{head}:\n{text}' for head, text in ends_of_logs(stack))]),
                    pytrace=False)
    except BaseException:  # a limit of time, an interrupt: nothing of it is left running
        stack.stop()
        raise
    yield stack
    if getattr(request.node, 'has_failed', False):
        stack.stop()
        stack.keep()
        assert not stack.reports(), stack.reports()
    else:
        stack.remove()


@pytest.fixture(autouse=True)
def no_minutes_added(request):
    clock = getattr(request.module, 'CLOCK', None)
    if clock:
        clock.set(0)


@pytest.fixture
def tmp_path():
    """In place of pytest's own, which lies in a folder closed to the users that the programs become."""
    path = Path(tempfile.mkdtemp(prefix='stampd-test-', dir=ROOM))
    path.chmod(0o711)
    yield path
    remove_folder(path)


@pytest.fixture
def home(tmp_path):
    """A folder that only its owner may enter."""
    path = tmp_path / 'home'
    path.mkdir(mode=0o700)
    yield path
    remove_folder(path)

"""Fixtures of the system tests.  A test file that takes `stack` has one of its own; its variable STACK may hold
arguments of stack.Stack.  The folder is removed at the end, unless a test failed: then the ends of the logs are shown."""
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(__file__))

from stack import BUILD, CLUSTER_ROOM, ROOM, Stack, StackError, make_cluster_room  # noqa: E402

LOG_LINES = 40
# The files that take longest begin first: --dist=loadfile hands them out in this order, and no runner is left with one at the end.
LONGEST = ['object_places', 'plans', 'demo', 'backup_objects', 'states', 'move', 'explain', 'access', 'hostile', 'altered', 'encryption', 'rules_paths', 'quotas',
           'task_death', 'crash_points', 'bare', 'tutorials', 'tasks', 'once', 'protocol', 'export', 'attachment_files', 'import_couchdb', 'console',
           'sample', 'operate', 'restore', 'ends', 'dump', 'modules', 'stampctl', 'death', 'push', 'live', 'long_values', 'processes', 'task_losses']


def interrupt(*_):
    raise KeyboardInterrupt


def pytest_configure(config):
    config.addinivalue_line('markers', 'plain: run with the plain build, not with the sanitizers: its time goes into processes, commands and waits')
    signal.signal(signal.SIGTERM, interrupt)  # else what the fixtures have started would be left running
    if not (BUILD / 'src/stampd').exists():
        pytest.exit(f'there is no {BUILD}/src/stampd: set STAMPD_BUILD to the folder of a build', returncode=2)
    if CLUSTER_ROOM not in os.environ:  # the runners inherit it
        os.environ[CLUSTER_ROOM] = config.cluster_room = make_cluster_room()


def pytest_unconfigure(config):
    if hasattr(config, 'cluster_room'):
        shutil.rmtree(config.cluster_room, ignore_errors=True)
        del os.environ[CLUSTER_ROOM]


def pytest_collection_modifyitems(items):
    places = {f'test_{name}': place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(scope='module')
def spares(request):
    """The codes in SPARE of the test file: namespaces that tests take, one after the other, each for itself."""
    return iter(request.module.SPARE)


def ends_of_logs(stack):
    for part in ('stampd', 'queue', 'nginx', 'postgres'):
        lines = stack.log(part).splitlines()[-LOG_LINES:]
        if lines:
            yield f'end of the log of {part}', '\n'.join(lines)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.getparent(pytest.Module).has_failed = True
        stack = getattr(item, 'funcargs', {}).get('stack')
        if stack:
            report.sections += ends_of_logs(stack)


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
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def home(tmp_path):
    """A folder that only its owner may enter."""
    path = tmp_path / 'home'
    path.mkdir(mode=0o700)
    yield path
    shutil.rmtree(path, ignore_errors=True)

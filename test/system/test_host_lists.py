"""A list of hosts in `database`: servers that are dead, do not answer, are standbys, or lag are no obstacle to the primary behind them."""
import contextlib
import socket

import pytest

from listener import Listener
from replica import SOCKET, Replica
from stack import Stack, run_program, wait_until
from test_once import send

pytestmark = pytest.mark.plain

NAME = ('Failover', 'a')


@contextlib.contextmanager
def silent_host(path):
    """A folder with a socket that takes connections, and never answers."""
    folder = path / 'run/silent'
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))
        for one in (folder, folder / SOCKET):
            one.chmod(0o777)
        listener.listen(1000)
        yield folder


def hosts(stack, *before):
    """The setting: these, then PostgreSQL."""
    return 'host=' + ','.join(map(str, (*before, stack.database))) + ' user=stampd'


@pytest.mark.parametrize('kind', ['silent', 'dead', 'standby'])
def test_live_events_come_from_the_primary_behind_others(kind):
    with Stack('hosts', workers=2, settings={'connect_timeout_s': 1}, namespaces={'z': 'closed', 'lab': 'open'}) as stack, contextlib.ExitStack() as stop:
        first = {'silent': lambda: stop.enter_context(silent_host(stack.path)), 'dead': lambda: stack.path / 'run/none',
                 'standby': lambda: stop.enter_context(Replica(stack)).sockets}[kind]()
        stack.set(database=hosts(stack, first))
        listener = Listener(stack, '/'.join(NAME))
        version = stack.put('lab', {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'N', 'j': 1}]})
        listener.wait_for('/'.join(NAME), version)
        listener.close()


def test_a_standby_that_lags_hides_no_database():
    """What it does not have yet, the primary has: a namespace that has just been made is served."""
    with Stack('hosts', workers=2, settings={'connect_timeout_s': 5}, namespaces={'z': 'closed', 'lab': 'open'}) as stack, Replica(stack) as replica:
        replica.psql(None, 'select pg_wal_replay_pause()')
        wait_until(lambda: replica.psql(None, 'select pg_get_wal_replay_pause_state()') == [('paused',)], what='the pause')
        before = hosts(stack, replica.sockets)
        stack.set(database=before)
        words = stack.admin_words('ns', 'create', 'late', '--access', 'open')
        words[words.index('--admin-conninfo') + 1] = before.replace('user=stampd', 'user=postgres')
        run_program(*words)
        stack.reload_nginx()
        assert stack.get('late', NAME)['v'] == 0
        stack.put('late', {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'N', 'j': 1}]})


def test_a_database_that_the_primary_does_not_have_is_missing():
    """Whatever the others have."""
    with Stack('hosts', workers=2, namespaces={'z': 'closed', 'lab': 'open'}) as stack, Replica(stack) as replica:
        stack.put('lab', {'c': NAME[0], 'id': NAME[1], 'items': [{'c': 'N', 'j': 1}]})
        replica.catch_up()
        replica.psql(None, 'select pg_wal_replay_pause()')
        wait_until(lambda: replica.psql(None, 'select pg_get_wal_replay_pause_state()') == [('paused',)], what='the pause')
        stack.set(database=hosts(stack, replica.sockets))
        stack.psql(None, 'drop database stampd_lab with (force)')
        wait_until(lambda: send(stack, None, {'c': NAME[0], 'id': NAME[1]}, operation='get').json().get('code') == 'ODATABASE', what='the refusal')
        stack.psql(None, 'create database stampd_lab')

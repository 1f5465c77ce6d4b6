"""hosts = many: the end of a document by maxLife is told once, with one version, to the listeners and readers of each host and by push,
whichever host deletes it, and while one of them is away."""
import os
import signal

import pytest

from clock import Clock
from collected import Collected
from expiring import Session, changes, is_purged, prepare, put, team, version
from listener import Listener
from push_key import CONTACT, PushKey
from push_service import PushService
from stack import Stack, wait_until

# It says nothing new with another build.
pytestmark = pytest.mark.plain

CLOCK = Clock()
STACK = {'workers': 2, 'settings': {}}
DEFINITIONS = ['Note/short', 'Note/gone', 'Note/team@red', 'Note']


@pytest.fixture(scope='module', autouse=True)
def key():
    with PushKey() as key:
        STACK['settings'] = {**key.settings, **CLOCK.settings, 'task_wakeup_s': 3600, 'queue_namespaces': 'lab', 'hosts': 'many'}
        yield key


@pytest.fixture(scope='module')
def service():
    service = PushService(CONTACT)
    yield service
    service.close()


@pytest.fixture(scope='module')
def hosts(stack, service, key, tmp_path_factory):
    """Two installations, each with nginx and a segment of its own; the first has the queue manager."""
    with Stack('twin', workers=2, beside=stack, settings=STACK['settings']) as twin:
        prepare(stack, service, key, tmp_path_factory.mktemp('schemas'), CLOCK, stack, twin)
        stack.step('queue', 'start')
        wait_until(lambda: 'namespace=lab' in stack.log('queue'), what='the first scan')
        yield stack, twin
        stack.step('queue', 'stop', 'now')


def test_both_hosts_tell_of_one_end(hosts, service):
    """The keepers of both begin at once: one commit ends the document."""
    one, other = hosts
    minute = CLOCK.present() + 10
    put(one, 'short', until=minute, team='red', name='short')
    put(other, 'gone', until=minute, team='red', name='gone')
    born = {id_: version(one, id_)[0] for id_ in ('short', 'gone')}
    held = [team(host, Collected('team', 'red')) for host in hosts]
    for host in hosts:  # in the caches of both
        assert host.get('lab', ('Note', 'short'))['v'] == born['short'] and host.get('lab', ('Note', 'gone'))['v'] == born['gone']
    session = Session(other, service, *DEFINITIONS)
    listeners = [Listener(host, *DEFINITIONS) for host in hosts]
    assert not any([listener.opened() for listener in listeners])
    CLOCK.set(5)
    CLOCK.let_them_look()
    assert not any(listener.told() for listener in listeners), 'no end before its minute'
    CLOCK.set(11)
    for listener in listeners:
        wait_until(lambda: {'Note/short', 'Note/gone'} <= set(listener.told()), what='the ends')
    assert is_purged(one, 'short') and is_purged(one, 'gone')
    ended = {f'Note/{id_}': version(one, id_)[0] for id_ in born}
    assert all(ended[f'Note/{id_}'] > born[id_] for id_ in born)
    for host in hosts:
        assert host.get('lab', ('Note', 'short'))['v'] == 0 == host.get('lab', ('Note', 'gone'))['v']
    for listener in listeners:
        wait_until(lambda: {'Note/team@red', 'Note'} <= set(listener.told()), what='the class and the collection')
        told = changes(listener)
        assert {pair for pair in told if pair[0] in ended} == set(ended.items()) and all(told.count(pair) == 1 for pair in ended.items())
        listener.close()
    for host, one_held in zip(hosts, held):
        assert set(team(host, one_held).members) == set()

    def pushed():
        return [(definition, at) for message in session.told() for definition, at in message.items() if definition in ended]
    wait_until(lambda: {name for name, _ in pushed()} == set(ended), what='the messages')
    assert sorted(pushed()) == sorted(ended.items()), 'each once'


@pytest.mark.parametrize('away', [0, 1])
def test_one_host_tells_while_the_other_is_away(hosts, service, away):
    """A stopped keeper and one that is killed again and again do not hold the other back."""
    host, gone = hosts[1 - away], hosts[away]
    session = Session(host, service, 'Note/alone')
    listeners = [Listener(one, 'Note/alone', 'Note/team@red') for one in hosts]
    assert not any([listener.opened() for listener in listeners])
    keeper = gone.keeper()
    os.kill(keeper, signal.SIGSTOP)
    try:
        # The other has no queue_remotes: its commits wake no manager.
        born = put(hosts[0], 'alone', until=CLOCK.present() + 10, team='red')
        CLOCK.set(11)
        for listener in listeners:
            wait_until(lambda: listener.told().get('Note/alone', 0) > born, what='the end')
    finally:
        os.kill(keeper, signal.SIGKILL)
    ended = version(host, 'alone')[0]
    assert is_purged(host, 'alone')
    for listener, one in zip(listeners, hosts):
        assert changes(listener).count(('Note/alone', ended)) == 1 and one.get('lab', ('Note', 'alone'))['v'] == 0
        listener.close()
    wait_until(lambda: {'Note/alone': ended} in session.told(), what='the message')
    assert session.told().count({'Note/alone': ended}) == 1

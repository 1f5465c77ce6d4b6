"""The end of a document by maxLife, and a change by psql, are told at once: to those who listen, to those who come again, and by push,
although the manager scans once an hour and the server purges every ten minutes.

The minutes pass when a test says so, but for one that waits for a real one."""
import os
import signal
import time

import psycopg2
import pytest

from clock import Clock
from collected import Collected
from expiring import NOTE, Session, changes, is_purged, prepare, put, team, use, version
from listener import Listener
from push_key import CONTACT, PushKey
from push_service import PushService
from schema import Schemas
from stack import wait_until

pytestmark = pytest.mark.plain

CLOCK = Clock()
STACK = {'workers': 3, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def key():
    with PushKey() as key:
        STACK['settings'] = {**key.settings, **CLOCK.settings, 'task_wakeup_s': 3600, 'queue_namespaces': 'lab'}
        yield key


@pytest.fixture(scope='module')
def service():
    service = PushService(CONTACT)
    yield service
    service.close()


@pytest.fixture(scope='module')
def lab(stack, service, key, tmp_path_factory):
    prepare(stack, service, key, tmp_path_factory.mktemp('schemas'), CLOCK)
    stack.step('queue', 'start')
    wait_until(lambda: 'namespace=lab' in stack.log('queue'), what='the first scan')
    yield stack
    stack.step('queue', 'stop', 'now')


# --- changes by psql ---

def test_a_change_by_psql_is_pushed_without_a_scan(lab, service):
    session = Session(lab, service, 'Note/by psql', 'Note')
    for number in range(3):
        lab.psql('lab', "select put_item('Note', 'by psql', 'Main', '', %s)", (f'{{"word":"w{number}"}}',))
        wait_until(lambda: len(session.told()) > number, what='the message')
        changed = version(lab, 'by psql')[0]
        assert session.told()[number] == {'Note/by psql': changed, 'Note': changed}
    assert len(session.told()) == 3


def test_a_message_that_was_delivered_is_no_return_of_the_session(lab, service):
    """It proves that the push service took it, not that the client is there: the trial goes on, and ends."""
    session = Session(lab, service, 'Note/trial')
    lab.psql('lab', "update subscription set trial_from = trial_from - 2 where session = %s", (session.name,))  # some minutes later

    def life():
        return lab.psql('lab', 'select trial_from, until, requested from subscription where session = %s', (session.name,))[0]
    before = life()
    assert before[0] is not None and before[1] < before[2]
    put(lab, 'trial', word='w')
    wait_until(session.told, what='the message')
    wait_until(lambda: not lab.psql('lab', "select 1 from taskqueue where resource = %s", (session.name,)), what='the end of the task')
    assert life() == before
    assert 'trial' not in lab.op('lab', 'subs', {}, session=session.name)['out'] and life()[0] is None  # but this is one


def test_tasks_of_a_change_by_psql_are_of_the_queue_of_push(lab, service):
    lab.psql('lab', "update task_operation set qn = 1 where opname = 'push'")
    session = Session(lab, service, 'Note/queue')
    lab.psql('lab', "begin; select put_item('Note', 'queue', 'Main', '', '{}'); set constraints all immediate;"
                    " do $$ begin assert (select qn from taskqueue where resource = '" + session.name + "') = 1; end $$; commit")
    wait_until(session.told, what='the message')


# --- ends ---

# ends_run deletes what expires, and with that the end is told.
def test_an_end_is_told_once_to_everybody(lab, service):
    definitions = ['Note/short', 'Note/team@red', 'Note/locked', 'Note/longer', 'Note/never', 'Note']
    minute = CLOCK.present() + 10
    for id_ in ('short', 'locked'):
        put(lab, id_, until=minute, team='red', name=id_)
    put(lab, 'longer', until=minute, team='blue')
    put(lab, 'never', team='blue')
    put(lab, 'longer', until=minute + 100, team='blue')  # put off
    born = {id_: version(lab, id_)[0] for id_ in ('short', 'locked', 'longer')}
    held = team(lab, Collected('team', 'red'))
    session, other = Session(lab, service, *definitions), Session(lab, service, 'Note/longer', 'Note/never')
    listener, away = Listener(lab, *definitions), Listener(lab, *definitions)
    assert not listener.opened() and not away.opened()
    last = away.wait_for_id()
    away.close()
    locker = psycopg2.connect(lab.conninfo('lab'))
    try:
        locker.cursor().execute("select from stampd.doc where class = 'Note' and id = 'locked' for update")
        CLOCK.set(5)
        CLOCK.let_them_look()
        assert listener.told() == {} and version(lab, 'short')[0] == born['short'], 'no end before its minute'
        CLOCK.set(11)
        wait_until(lambda: 'Note/short' in listener.told(), what='the end of the first')
        assert is_purged(lab, 'short') and not is_purged(lab, 'locked')
        assert lab.get('lab', ('Note', 'short'))['v'] == 0
    finally:
        locker.close()
    wait_until(lambda: 'Note/locked' in listener.told(), what='the end of the one that was locked')
    ended = {id_: version(lab, id_)[0] for id_ in ('short', 'locked')}
    assert all(ended[id_] > born[id_] for id_ in ended)
    heard = changes(listener)
    for id_ in ('short', 'locked'):
        assert heard.count((f'Note/{id_}', ended[id_])) == 1
    assert {definition for definition, _ in heard} == {'Note/short', 'Note/locked', 'Note/team@red', 'Note'}
    assert len([1 for definition, _ in heard if definition == 'Note/team@red']) == 2
    assert set(team(lab, held).members) == set()

    again = Listener(lab, *definitions, last=last)
    assert again.opened()
    wait_until(lambda: {'Note/short', 'Note/locked', 'Note/team@red'} <= set(again.told()), what='what was missed')
    assert {pair for pair in changes(again) if pair[0] in ('Note/short', 'Note/locked')} == {(f'Note/{id_}', ended[id_]) for id_ in ended}
    again.close()
    listener.close()

    def pushed():
        return {definition: at for message in session.told() for definition, at in message.items()}
    wait_until(lambda: {'Note/short', 'Note/locked'} <= set(pushed()), what='the messages')
    assert set(pushed()) == {'Note/short', 'Note/locked', 'Note/team@red', 'Note'} and other.told() == []
    assert [pushed()[f'Note/{id_}'] for id_ in ended] == list(ended.values())
    assert not is_purged(lab, 'longer') and version(lab, 'longer')[0] == born['longer']


@pytest.mark.timeout(180)  # it waits for a real minute
def test_ends_that_came_while_no_keeper_lived_are_told(lab):
    """Many, and by a keeper that dies and is replaced; psql writes them.  The minute is a real one."""
    count = 450
    CLOCK.release('lab')
    listener = Listener(lab, 'Note/p1', 'Note/team@p')
    assert not listener.opened()
    keeper = lab.keeper()
    ((born,),) = lab.psql('lab', f"""do $$ begin for n in 1..{count} loop
        perform stampd.put_item('Note', 'p' || n, 'Main', '', '{{"team":"p","until":' || stampd.present_minute() + 1 || '}}'); end loop; end $$;
        select version from doc where class = 'Note' and id = 'p1'""")
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: listener.told().get('Note/p1', 0) > born, what='the end')
    wait_until(lambda: not lab.psql('lab', "select 1 from doc where class = 'Note' and id ~ '^p[0-9]' and ctime <> 0"), what='all ends')
    listener.wait_for('Note/team@p', lab.psql('lab', "select max(version) from doc where class = 'Note' and id ~ '^p[0-9]'")[0][0])
    listener.close()
    CLOCK.follow(lab, 'lab')
    use(lab)


def test_a_declaration_of_later_is_heard(lab, tmp_path_factory):
    """A class that had no ends when the keeper looked."""
    schemas = Schemas(lab, tmp_path_factory.mktemp('schemas'))
    other = {'items': {'Main': {'singleton': True}}}
    schemas.apply('lab', {'Note': {**NOTE, 'maxLife': 'Main.other'}, 'Later': other})
    listener = Listener(lab, 'Later/l')
    assert not listener.opened()
    lab.put('lab', {'c': 'Later', 'id': 'l', 'items': [{'c': 'Main', 'j': {'until': CLOCK.present() + 10}}]})
    schemas.apply('lab', {'Note': {**NOTE, 'maxLife': 'Main.other'}, 'Later': {**other, 'maxLife': 'Main.until'}})
    CLOCK.set(11)
    wait_until(lambda: lab.psql('lab', "select 1 from doc where class = 'Later' and ctime = 0"), what='the end')
    listener.wait_for('Later/l', lab.psql('lab', "select version from doc where class = 'Later'")[0][0])
    listener.close()


def test_the_commands_that_end_documents_do_each_other_no_harm(lab):
    """stampctl ns purge while the keeper is at it."""
    lab.psql('lab', "do $$ begin for n in 1..300 loop perform stampd.put_item('Later', 'b' || n, 'Main', '', '{\"until\":1}'); end loop; end $$")
    while lab.psql('lab', "select 1 from doc where class = 'Later' and ctime <> 0"):
        lab.admin('ns', 'purge', 'lab')
        time.sleep(0.1)
    assert 'deadlock' not in lab.log('postgres')


def test_ends_are_told_without_purges(lab):
    """keep_interval_s = 0: what is too old waits for `stampctl ns purge`, but a document that ends is gone for everybody at once."""
    lab.set(keep_interval_s=0)
    try:
        listener = Listener(lab, 'Later/unpurged')
        assert not listener.opened()
        use(lab)
        lab.psql('lab', "insert into subscription (session, version, until) values ('session-that-has-ended', 1, 1)")
        ((born,),) = lab.psql('lab', "select stampd.put_item('Later', 'unpurged', 'Main', '', '{\"until\":' || stampd.present_minute() + 10 || '}')")
        CLOCK.set(11)
        wait_until(lambda: listener.told().get('Later/unpurged', 0) > born, what='the end')
        assert lab.psql('lab', "select ctime from doc where class = 'Later' and id = 'unpurged'") == [(0,)]
        assert lab.psql('lab', "select 1 from subscription where session = 'session-that-has-ended'")
        listener.close()
    finally:
        lab.set(keep_interval_s=600)

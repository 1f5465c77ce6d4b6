"""Push: a session that is closed is told what was touched, by a push service on the loopback that verifies and decrypts."""
import json
import re
import secrets
import socket
from types import SimpleNamespace

import pytest

from manager import PARKED, Manager
from push_key import CONTACT, PushKey
from push_service import Browser, PushService
from stack import Problem, give, stampctl, wait_until

CONF = {'database': 'stampd_lab', 'access': 'open'}
STACK = {'workers': 3, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def key():
    with PushKey() as key:
        STACK['settings'] = {**key.settings, 'push_ttl_s': 600}
        yield key


@pytest.fixture
def key_file(key):
    return key.file


@pytest.fixture(scope='module')
def service():
    service = PushService(CONTACT)
    yield service
    service.close()


@pytest.fixture(scope='module')
def lab(stack, service, key):
    key.enable(stack, service)
    return stack


@pytest.fixture
def manager(lab):
    lab.psql('lab', 'truncate taskqueue, task_history, subscription, subscription_definition, subscription_matched')
    return Manager(lab, 'lab')


class Session:
    """A client's session, and the browser that is to be woken for it."""

    def __init__(self, lab, service, *definitions):
        self.lab, self.name, self.browser = lab, secrets.token_urlsafe(24), Browser(service)
        self.say(defs=list(definitions), push=self.browser.subscription)

    def say(self, **param):
        return self.lab.op('lab', 'subs', param, session=self.name)['out']

    def has_push(self):
        return self.say()['push']

    def task(self):
        """The one task that waits for it; None: none does."""
        found = self.lab.psql('lab', "select taskid from taskqueue where opname = 'push' and resource = %s and starttime is null",
                              (self.name,))
        assert len(found) <= 1
        return found[0][0] if found else None

    def told(self, *changed):
        return {'ns': 'lab', 'session': self.name, 'changed': [list(pair) for pair in changed]}

    def check(self, *messages):
        """Exactly these were sent, and taken for what they are."""
        assert not self.browser.wrong and self.browser.messages == list(messages)


@pytest.fixture
def subscribe(lab, service, manager):
    return lambda *definitions: Session(lab, service, *definitions)


def write(lab, *names):
    return lab.put('lab', *({'c': 'Note', 'id': name, 'items': [{'c': 'Line', 'k': secrets.token_hex(4), 'j': 1}]} for name in names))


def row(lab, taskid, columns):
    return lab.psql('lab', f'select {columns} from taskqueue where taskid = %s', (taskid,))[0]


# --- the key ---

def test_pages_are_given_the_public_key(lab, service, key_file):
    assert lab.request('GET', '/lab/op/pushkey').json() == {'out': {'key': service.key}}
    assert lab.request('GET', '/demo/op/pushkey').json() == {'out': {'key': service.key}}
    assert key_file.stat().st_mode & 0o777 == 0o600 and re.fullmatch(r'[\w-]{43}\n', key_file.read_text())


def test_a_key_is_never_overwritten(key_file):
    before = key_file.read_text()
    outcome = stampctl('push', 'key', key_file, status=1)
    assert 'File exists' in outcome.error and key_file.read_text() == before


def test_check_config_looks_at_the_key(lab, tmp_path):
    def check(key_file):
        settings = tmp_path / 'stampd.conf'
        lines = (lab.path / 'etc/stampd.conf').read_text()
        settings.write_text(re.sub(r'^(push_key_file) = .*$', fr'\1 = {key_file}', lines, flags=re.M))
        return stampctl('check-config', '--config', settings, status=None).out

    assert f"OK    push_key_file = {STACK['settings']['push_key_file']}\n" in check(STACK['settings']['push_key_file'])
    for content, mode in ('short\n', 0o600), ('A' * 43 + '\n', 0o600), (secrets.token_urlsafe(32) + '\n', 0o604):
        file = tmp_path / 'other.key'
        file.write_text(content)
        file.chmod(mode)
        give(file)
        assert f'FAIL  push_key_file = {file}: ' in check(file) and content.strip() not in check(file)


# --- what is told ---

def test_the_message_has_the_context_of_the_subscription(lab, manager, subscribe):
    session = subscribe('Note')
    session.say(context='inbox "of" ann')
    version = write(lab, 'a')
    assert manager.run(session.task())['result'] == 'done'
    session.check({**session.told(('Note', version)), 'context': 'inbox "of" ann'})
    session.say(context=None)
    version = write(lab, 'a')
    assert manager.run(session.task())['result'] == 'done'
    assert session.browser.messages[1:] == [session.told(('Note', version))]


def test_a_commit_wakes_who_wants_to_hear_of_it(lab, manager, subscribe):
    one, other = subscribe('Note', 'Note/a'), subscribe('Note/b')
    version = write(lab, 'a')
    assert manager.run(one.task())['result'] == 'done' and not other.task()
    one.check(one.told(('Note', version), ('Note/a', version)))
    other.check()
    assert row(lab, manager_task(lab, manager, one), 'qn') == (3,)
    ((headers, _),) = one.browser.seen
    assert headers['TTL'] == '600' and headers['Urgency'] == 'normal' and re.fullmatch(r'[\w-]{1,32}', headers['Topic'])
    assert headers['Content-Type'] == 'application/octet-stream'


def manager_task(lab, manager, session):
    """The task of another change."""
    write(lab, 'a')
    return session.task()


def test_what_happens_meanwhile_is_told_together_and_once(lab, manager, subscribe):
    session = subscribe('Note/a', 'Note/b')
    first = write(lab, 'a')
    task = session.task()
    second = write(lab, 'b')
    write(lab, 'a')
    assert session.task() == task and manager.run(task)['result'] == 'done'
    session.check(session.told(('Note/a', first), ('Note/b', second)))
    assert manager.is_empty()
    third = write(lab, 'b')
    manager.run(session.task())
    assert session.browser.messages[1:] == [session.told(('Note/b', third))]
    topics = [headers['Topic'] for headers, _ in session.browser.seen]
    assert topics[0] != topics[1]


def test_messages_about_the_same_replace_each_other(lab, manager, subscribe):
    session = subscribe('Note/a')
    for _ in range(2):
        write(lab, 'a')
        manager.run(session.task())
    topics = {headers['Topic'] for headers, _ in session.browser.seen}
    assert len(session.browser.seen) == 2 and len(topics) == 1


def test_of_too_much_only_is_told_that_it_is_much(lab, manager, subscribe):
    names = [f'{number:03}' + 'x' * 200 for number in range(20)]
    session = subscribe(*(f'Note/{name}' for name in names))
    write(lab, *names)
    manager.run(session.task())
    session.check(session.told())


def test_who_has_left_or_wants_no_push_any_more_is_left_alone(lab, manager, subscribe):
    gone, silent = subscribe('Note'), subscribe('Note')
    write(lab, 'a')
    tasks = gone.task(), silent.task()
    lab.op('lab', 'subs', {'delete': True}, session=gone.name)
    silent.say(push=None)
    assert [manager.run(task)['result'] for task in tasks] == ['done', 'done']
    gone.check()
    silent.check()


# --- who listens ---

class Listener:
    """The session listens to live events, until it is closed; then the server has noticed."""

    def __init__(self, lab, session):
        self.lab, before = lab, self.count(lab)
        self.response = lab.http.get(f'{lab.url}/lab/live', params={'def': 'Note', 'session': session.name}, stream=True, timeout=60)
        assert self.response.status_code == 200
        self.before = before

    @staticmethod
    def count(lab):
        return lab.metrics()['stampd_live_listeners']

    def close(self):
        self.response.close()
        wait_until(lambda: self.count(self.lab) == self.before, what='the end of the listener')


def test_who_listens_is_told_a_minute_later(lab, manager, subscribe):
    """The connection of a phone that vanished lives on for many minutes: that it is there proves nothing."""
    session = subscribe('Note/a', 'Note/b')
    listener = Listener(lab, session)
    first = write(lab, 'a')
    task = session.task()
    assert manager.run(task)['result'] == 'done'
    again = session.task()
    assert again and again != task
    assert lab.psql('lab', 'select startat > created from taskqueue') == [(True,)]
    session.check()
    second = write(lab, 'b')
    assert session.task() == again, 'what is touched meanwhile joins it'
    manager.hurry()
    assert manager.run(again)['result'] == 'done'
    session.check(session.told(('Note/a', first), ('Note/b', second)))
    assert not session.task() and lab.psql('lab', 'select count(*) from subscription_matched') == [(0,)]
    listener.close()


def test_no_run_beside_the_first_forgets_what_nobody_was_told(lab, manager, subscribe):
    """A worker dies behind its look, or two tasks look, while a connection lives: the next one takes the same, and tells it."""
    session = subscribe('Note/a')
    listener = Listener(lab, session)
    version = write(lab, 'a')
    lab.psql('lab', 'select * from subscription_take(%s)', (session.name,))
    assert manager.run(session.task())['result'] == 'done'
    beside = secrets.token_hex(16)
    lab.psql('lab', "insert into taskqueue (taskid, opname, param, startat, qn, created) values (%s, 'push', %s, 1, 3, 1)",
             (beside, f'{{"session":"{session.name}"}}'))
    assert manager.run(beside)['result'] == 'done'
    session.check()
    manager.hurry()
    assert manager.run(session.task())['result'] == 'done' and not session.task()
    session.check(session.told(('Note/a', version)))
    listener.close()


# --- what the service answers ---

@pytest.mark.parametrize('status', [404, 410])
def test_an_address_that_is_gone_is_forgotten(lab, manager, subscribe, status):
    session = subscribe('Note')
    session.browser.answers = [status]
    write(lab, 'a')
    assert manager.run(session.task())['result'] == 'done'
    assert not session.has_push()
    write(lab, 'a')
    assert not session.task() and lab.psql('lab', 'select count(*) from subscription_matched') == [(0,)]


def test_an_address_that_has_changed_meanwhile_is_told(lab, service, manager, subscribe):
    """The old one is gone, and the page has declared another while the service said so."""
    session = subscribe('Note')
    old, session.browser = session.browser, Browser(service)

    def gone():
        session.say(push=session.browser.subscription)
        return 410

    old.answers = [gone]
    version = write(lab, 'a')
    task = session.task()
    assert manager.run(task)['result'] == 'done' and len(old.seen) == 1 and not session.browser.seen
    assert manager.run(session.task())['result'] == 'done' and not session.task()
    session.check(session.told(('Note', version)))
    assert session.has_push() and len(old.seen) == 1


@pytest.mark.parametrize('status', [200, 202])
def test_other_ways_to_say_yes(lab, manager, subscribe, status):
    session = subscribe('Note')
    session.browser.answers = [status]
    write(lab, 'a')
    assert manager.run(session.task())['result'] == 'done' and len(session.browser.seen) == 1


def test_what_is_too_large_is_sent_again_without_the_list(lab, manager, subscribe):
    session = subscribe('Note')
    session.browser.answers = [413]
    version = write(lab, 'a')
    assert manager.run(session.task())['result'] == 'done'
    session.check(session.told(('Note', version)), session.told())


def test_a_busy_service_is_asked_again_and_told_the_same(lab, manager, subscribe):
    session = subscribe('Note')
    session.browser.answers = [(429, {'Retry-After': '7200'}), 503, 500]
    version = write(lab, 'a')
    task = session.task()
    outcome = manager.run(task, status=500)
    assert outcome['result'] == 'failed' and outcome['code'] == 'XPUSH' and outcome['retry'] == 1
    # an hour is 10^7 in the digits of stamps, and more from one day to the next
    assert lab.psql('lab', 'select t.startat - h.stoptime > 10000000 from taskqueue t join task_history h using (taskid)') == [(True,)]
    assert row(lab, task, 'report')[0].endswith('The push service answers 429.')
    for failures in 2, 3:
        manager.hurry()
        assert manager.run(task, status=500)['retry'] == failures
    manager.hurry()
    assert manager.run(task)['result'] == 'done'
    session.check(*[session.told(('Note', version))] * 4)


def test_a_service_that_is_away_is_asked_again(lab, manager, subscribe):
    session = subscribe('Note')
    with socket.socket() as held:
        held.bind(('127.0.0.1', 0))  # nobody listens there, nor will a test beside this one
        session.browser = Browser(SimpleNamespace(url=f'http://127.0.0.1:{held.getsockname()[1]}', browsers={}))
        session.say(push=session.browser.subscription)
        write(lab, 'a')
        outcome = manager.run(session.task(), status=500)
    assert outcome['code'] == 'XPUSH' and outcome['startat'] < PARKED


@pytest.mark.parametrize('status', [400, 403])
def test_what_is_refused_is_recorded_and_not_tried_again_before_the_next_change(lab, manager, subscribe, status):
    session = subscribe('Note')
    session.browser.answers = [status]
    version = write(lab, 'a')
    task = session.task()
    assert manager.run(task, status=500)['startat'] == PARKED
    exc, report = row(lab, task, 'exc, report')
    assert exc == 'XPUSH' and report.endswith(f'The push service answers {status}.')
    write(lab, 'a')
    assert row(lab, task, 'exc, retry') == (None, 0) and manager.run(task)['result'] == 'done'
    session.check(*[session.told(('Note', version))] * 2)


# --- what cannot be ---

@pytest.mark.parametrize('member, value', [
    ('endpoint', 'http://192.0.2.1/x'), ('endpoint', 'https://user@example.net/x'), ('endpoint', 'https://example.net\\x'),
    ('endpoint', 'ftp://example.net/x'), ('p256dh', 'BA' + 'A' * 85), ('p256dh', 'AAAA'), ('auth', 'AAAA'),
])
def test_addresses_that_are_none_are_refused_at_the_door(lab, subscribe, member, value):
    session = subscribe('Note')
    push = session.browser.subscription
    push = {'endpoint': push['endpoint'], **push['keys'], member: value}
    with pytest.raises(Problem) as caught:
        session.say(push=push)
    assert caught.value.code == 'AARG' and caught.value.body['args'][0] == 'push'


@pytest.mark.parametrize('endpoint', ['https://10.0.0.1/x', 'https://169.254.169.254/latest/meta-data', 'https://[fd00::1]/x'])
def test_no_message_goes_into_networks_of_ours(lab, manager, subscribe, endpoint):
    session = subscribe('Note')
    push = session.browser.subscription
    session.say(push={**push, 'endpoint': endpoint})
    write(lab, 'a')
    task = session.task()
    assert manager.run(task, status=500)['startat'] == PARKED
    assert 'not a public one' in row(lab, task, 'report')[0]


@pytest.mark.parametrize('ends, mode', [('closed', {'access': 'closed'}), ('z has no such namespace', {'access': 'ajar'})])
def test_nothing_is_told_to_strangers_of_what_is_closed(lab, manager, subscribe, ends, mode):
    """Who subscribed while anybody could read is told nothing once nobody may; the administrator's own sessions are told."""
    stranger, late, own = subscribe('Note'), subscribe('Note'), subscribe('Note')
    lab.op('lab', 'subs', {'defs': ['Note', 'Note/x']}, session=own.name, admin=True)
    write(lab, 'a')
    lab.write_configuration('lab', 'Conf', json.dumps({**CONF, **mode}))
    try:
        wait_until(lambda: lab.request('GET', '/lab/op/list').status_code in (401, 403), what=ends)
        assert manager.run(stranger.task())['result'] == 'done'
        stranger.check()
        assert manager.run(own.task())['result'] == 'done'
        assert len(own.browser.messages) == 1
        lab.put('lab', {'c': 'Note', 'id': 'b', 'items': [{'c': 'Line', 'k': secrets.token_hex(4), 'j': 1}]}, admin=True)
        for session in (stranger, late):
            assert manager.run(session.task())['result'] == 'done'
            session.check()
    finally:
        lab.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Conf', 'j': CONF}]}, admin=True)
        wait_until(lambda: lab.request('GET', '/lab/op/list').status_code == 200, what='the right to read')
    version = write(lab, 'c')
    for session in (stranger, late):
        assert manager.run(session.task())['result'] == 'done'
        session.check(session.told(('Note', version)))


def test_the_task_needs_a_session(lab, manager):
    for param in {}, {'session': 1}, {'session': 'short'}:
        with pytest.raises(Problem) as caught:
            lab.op('lab', 'push', param, admin=True)
        assert caught.value.code == 'AARG'
    with pytest.raises(Problem) as caught:
        lab.op('lab', 'push', {'session': 'x' * 20})
    assert caught.value.code == 'SCLOSED'


def test_nothing_secret_is_in_the_logs(lab, manager, subscribe, key_file):
    session = subscribe('Note')
    session.browser.answers = [403]
    write(lab, 'a')
    manager.run(session.task(), status=500)
    log = lab.log() + lab.log('nginx')
    assert 'code=XPUSH' in log
    for secret in key_file.read_text().strip(), session.browser.path, session.name, session.browser.subscription['keys']['auth']:
        assert secret not in log

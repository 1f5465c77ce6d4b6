"""Mails about tasks that fail, to a real SMTP server: when, to whom, what; STARTTLS and a password."""
import ssl
import subprocess

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from played_server import PARKED, stamp
from stack import PATIENCE_S, free_port
from test_queue_manager import server, start, wait  # noqa: F401

pytestmark = pytest.mark.plain

FAILURES = 3


class Office:
    """Takes mails and keeps them."""

    def __init__(self):
        self.mails, self.logins = [], []

    async def handle_DATA(self, server, session, envelope):
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, envelope.content.decode(), session.ssl is not None))
        return '250 OK'

    def log_in(self, server, session, envelope, mechanism, data):
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b'secret')


@pytest.fixture
def open_office():
    controllers = []

    def open_office(**more):
        office = Office()
        controller = Controller(office, hostname='127.0.0.1', port=more.pop('port', None) or free_port(), ready_timeout=PATIENCE_S,
                                **{**more, **({'authenticator': office.log_in} if more else {})})
        controller.start()
        controllers.append(controller)
        office.url = f'smtp://127.0.0.1:{controller.port}'
        return office
    yield open_office
    for controller in controllers:
        controller.stop()


def settings(office, **more):
    return {'mail_to': 'one@example.org two@example.org', 'mail_from': 'stampd@example.org', 'mail_server': office.url,
            'mail_failures': FAILURES, **more}


def failing(task):
    return {'result': 'failed', 'code': 'XBROKEN', 'startat': PARKED if task['retry'] >= FAILURES + 1 else stamp(0.5)}


def test_the_third_failure_and_the_end_are_told(server, start, open_office):  # noqa: F811
    office = open_office()
    server.works['Fail'] = failing
    task = server.add(1, op='Fail')
    start(mail_interval_s=0, **settings(office))
    wait(lambda: len(office.mails) == 2, 'two mails')
    assert server.runs == [task['id']] * (FAILURES + 2)
    sender, receivers, text, _ = office.mails[0]
    assert (sender, receivers) == ('stampd@example.org', ['one@example.org', 'two@example.org'])
    assert 'Subject: stampd lab: Fail failed with XBROKEN' in text and 'It is broken.' in text
    assert f'stampctl task run lab {task["id"]}' in text
    assert 'is parked after XBROKEN' in office.mails[1][2]


def test_one_mail_an_operation_and_interval(server, start, open_office):  # noqa: F811
    office = open_office()
    server.works['Fail'] = server.works['Other'] = failing
    for number in range(10):
        server.add(number, op='Fail')
    server.add(20, op='Other')
    manager = start(**settings(office))
    wait(lambda: len(server.runs) == 11 * (FAILURES + 2) and manager.log.count('failed namespace') == 11 * (FAILURES + 2), 'all failures')
    wait(lambda: len(office.mails) == 2, 'two mails')
    assert manager.stop() == 0
    assert sorted(text.split('Subject: ')[1].split()[2] for _, _, text, _ in office.mails) == ['Fail', 'Other']


def test_a_lost_attempt_is_told(server, start, open_office):  # noqa: F811
    office = open_office()
    task = server.add(1, op='Gone', delay_s=600)
    server.lost = [{'id': task['id'], 'op': 'Gone', 'startat': task['startat'], 'retry': FAILURES, 'why': 'crash',
                    'report': 'Its worker crashed. Signal 6 (Aborted).'}]
    start(**settings(office))
    wait(lambda: office.mails, 'the mail')
    assert 'Gone failed with LOST' in office.mails[0][2] and f'A task has failed {FAILURES} times.' in office.mails[0][2]
    assert 'Signal 6' in office.mails[0][2]


def subjects(office):
    return [text.split('Subject: ')[1].splitlines()[0] for _, _, text, _ in office.mails]


def test_losses_of_two_operations_are_two_mails(server, start, open_office):  # noqa: F811
    office = open_office()
    server.lost = [{'id': f'lost{n}abcd', 'op': f'Crash{n}', 'startat': PARKED, 'retry': 5, 'why': 'crash', 'report': 'Gone.'} for n in (1, 2)]
    start(**settings(office))
    wait(lambda: len(office.mails) == 2, 'two mails')
    assert sorted(subjects(office)) == ['stampd lab: Crash1 is parked after LOST', 'stampd lab: Crash2 is parked after LOST']


def test_a_mail_that_is_not_taken_is_sent_again(server, start, open_office):  # noqa: F811
    port = free_port()
    server.works['Fail'] = lambda task: {'result': 'failed', 'code': 'XBROKEN', 'startat': PARKED}
    for number in (1, 2):
        server.add(number, op='Fail')
    manager = start(**{**settings(type('No', (), {'url': f'smtp://127.0.0.1:{port}'})())})
    wait(lambda: 'cannot send mail' in manager.log and manager.log.count('failed namespace=lab') == 2, 'the failures of the mail and of both')
    office = open_office(port=port)
    wait(lambda: office.mails, 'the mail')
    (text,) = [mail[2] for mail in office.mails]
    assert 'task000001' in text and 'task000002' in text, 'one mail about both'
    wait(lambda: server.reported == {('task000001', 1), ('task000002', 1)}, 'the server to know')
    assert manager.out('list')['mails_failed'] >= 1 and manager.out('list')['mails_sent'] == 1


def test_what_nobody_was_told_of_is_told_by_the_next_manager(server, start, open_office):  # noqa: F811
    office = open_office()
    server.add(1, op='Old', retry=5)['startat'] = PARKED
    server.add(2, op='Old', retry=5)['startat'] = PARKED
    server.reported.add(('task000002', 5))
    manager = start(**settings(office))
    wait(lambda: ('task000001', 5) in server.reported, 'the server to know')
    manager.out('scan')
    wait(lambda: len(server.scans) > 1, 'another scan')
    assert subjects(office) == ['stampd lab: Old is parked after XBROKEN'] and 'task000002' not in office.mails[0][2]


def test_the_second_of_an_interval_is_told_when_it_ends(server, start, open_office):  # noqa: F811
    """The others fail before it ends, however slow the machine is."""
    office, interval_s, is_in_time = open_office(), 1, False
    server.works['Fail'] = lambda task: {'result': 'failed', 'code': 'XBROKEN', 'startat': PARKED}
    while not is_in_time:
        interval_s *= 3
        office.mails.clear()
        server.add(1, op='Fail')
        manager = start(mail_interval_s=interval_s, **settings(office))
        wait(lambda: len(office.mails) == 1, 'the first mail')
        failures = manager.log.count('failed namespace')
        for number in (2, 3):
            manager.wakeup(server.add(number, op='Fail'))
        wait(lambda: manager.log.count('failed namespace') == failures + 2, 'the other failures')
        is_in_time = len(office.mails) == 1
        wait(lambda: all(any(f'task00000{number}' in text for _, _, text, _ in office.mails[1:]) for number in (2, 3)), 'a mail about each failure')
        manager.stop()
    assert len(office.mails) == 2


def test_a_failure_that_could_not_be_recorded_is_no_parking(server, start, open_office):  # noqa: F811
    """The database was away: the answer has no start; a scan finds the attempt lost, and it is made again."""
    office = open_office()
    server.works['Fail'] = lambda task: {'result': 'failed', 'code': 'XBROKEN'}
    server.add(1, op='Fail')
    manager = start(**settings(office))
    wait(lambda: 'failed namespace=lab' in manager.log, 'the failure')
    server.lost = [{'id': 'task000001', 'op': 'Fail', 'startat': stamp(600), 'retry': 1, 'why': 'unrecorded', 'report': 'Not recorded.'}]
    manager.out('scan')
    wait(lambda: 'lost namespace=lab' in manager.log, 'the loss')
    assert not office.mails and not manager.out('list')['failures_unreported']


def certificate(home):
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj',
                    '/CN=mail', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', home / 'mail.key', '-out', home / 'mail.pem'],
                   check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / 'mail.pem', home / 'mail.key')
    return context


def test_encrypted_and_with_a_password(server, start, open_office, tmp_path):  # noqa: F811
    office = open_office(tls_context=certificate(tmp_path), auth_required=True, require_starttls=True)
    server.works['Fail'] = failing
    server.add(1, op='Fail')
    password = tmp_path / 'password'
    password.write_text('secret\n')
    password.chmod(0o600)
    manager = start(mail_tls='on', mail_ca_file=tmp_path / 'mail.pem', mail_user='stampd', mail_password_file=password,
                    **settings(office))
    wait(lambda: office.mails, 'the mail')
    assert office.logins[0] == (b'stampd', b'secret') and office.mails[0][3]
    assert 'secret' not in manager.log


def test_nothing_goes_in_clear_where_it_must_not(server, start, open_office):  # noqa: F811
    office = open_office()  # knows no STARTTLS
    server.works['Fail'] = failing
    server.add(1, op='Fail')
    manager = start(mail_tls='on', mail_interval_s=0, **settings(office))
    wait(lambda: manager.log.count('cannot send mail') >= 2, 'two words of it in the log')
    assert not office.mails

"""The element <stampd-sign-in> in Chromium, with mails of a real mail server: sign-in, registration, new passwords, links, invitations, passkeys."""
import contextlib
import itertools
import shutil

import pytest

import browser as browsers
from browser import Browser, Pages
from hands import WATCH, Hands
from manager import PARKED, Manager
from post_office import Office
from stack import SOURCE, wait_until

pytestmark = [pytest.mark.plain, pytest.mark.skipif(not browsers.PROGRAM, reason='there is no Chromium (Debian: chromium)')]

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'team': 'closed', 'club': 'closed'}, 'settings': {}}
LIMITS = {'limit_client_attempts': 10000, 'limit_name_attempts': 1000, 'limit_client_mails': 10000, 'limit_namespace_mails': 100000, 'mail_timeout_s': 30, 'argon2_share': 100}
KINDS = ('login', 'reset', 'register', 'confirm')
PASSWORD, OTHER = 'correct horse battery', ' another battery '
NUMBERS = itertools.count(1)
POLICY = "default-src 'none'; script-src 'self'; connect-src %s; base-uri 'none'; form-action 'none'"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">
<meta http-equiv="Content-Security-Policy" content="%s; img-src data:"><title>in</title><script src="page.js"></script>
<script type="module" src="sign_in.js"></script><main><stampd-sign-in ns="%s" url="%s" %s></stampd-sign-in></main></html>"""
SCRIPT = "window.sessions = []; addEventListener('sign-in', ({ detail }) => sessions.push(detail))"
OFFERS = 'offers="register reset mail passkey"'


@pytest.fixture(scope='module', autouse=True)
def office():
    office = Office()
    STACK['settings'] = {**LIMITS, 'mail_from': 'accounts@example.org', 'mail_server': office.url}
    yield office
    office.stop()


def accounts_of(pages, page, **members):
    mail = {kind: {'link': f'{pages.address}/{page}.html#{kind}={{token}}'} for kind in KINDS}
    return {'registration': 'open', 'mail': mail, 'passkeys': {'rp': 'localhost', 'origins': [pages.address]}, **members}


@pytest.fixture(scope='module')
def pages(stack, office, tmp_path_factory):
    folder = tmp_path_factory.mktemp('pages')
    shutil.copy(SOURCE / 'src/web/client/sign_in.js', folder)
    (folder / 'page.js').write_text(SCRIPT)
    with contextlib.closing(Pages(folder)) as pages:
        pages.address = pages.origin.replace('127.0.0.1', 'localhost')  # a name, as passkeys need it
        for name, ns, more in (('in', 'team', OFFERS), ('cookie', 'team', f'{OFFERS} cookie'), ('bare', 'team', ''), ('club', 'club', 'offers="register passkey" confirm')):
            (folder / f'{name}.html').write_text(PAGE % (POLICY % stack.url, ns, stack.url, more))
        for ns, page, members in (('team', 'in', {'mail_login': True}), ('club', 'club', {'confirm': 'required'})):
            stack.op('z', 'ns', {'set': {'ns': ns, 'access': 'rules', 'origins': [pages.address], 'accounts': accounts_of(pages, page, **members)}}, admin=True)
        yield pages


@pytest.fixture
def browser():
    with contextlib.closing(Browser()) as browser:
        yield browser


class Guest(Hands):
    def __init__(self, stack, pages, browser):
        super().__init__(browser.open('about:blank', is_ready='true'))
        self.stack, self.pages, self.name = stack, pages, f'Guest{next(NUMBERS)}'
        self.address = f'{self.name}@example.org'
        self.tab.call('Page.addScriptToEvaluateOnNewDocument', source=WATCH)
        self.visit(f'{pages.address}/in.html')

    def visit(self, address):
        self.tab.call('Page.navigate', url='about:blank')
        self.tab.until('location.href === "about:blank"')
        self.tab.go(address, is_ready='document.querySelector("stampd-sign-in form")')

    def session(self):
        """Of the event, once it has come."""
        found = self.tab.until('sessions.at(-1)')
        self.shows('You are signed in.')
        return found

    def sign_in(self, password):
        self.fill('Name', self.name)
        self.fill('Password', password)
        self.click('Sign in')

    def ask_for_a_mail(self, how, whom):
        self.click(how)
        self.fill('Name or mail address', whom)
        self.click('Send a mail')
        self.shows('a mail is on its way')

    def make(self):
        """By the administrator."""
        self.stack.op('team', 'accounts', {'create': {'name': self.name, 'password': PASSWORD, 'address': self.address, 'confirmed': True}}, admin=True)

    def account(self, session, ns='team'):
        return self.stack.op(ns, 'account', {}, key=session['token'])['out']

    def focused(self):
        return self.tab.run('document.activeElement.name || document.activeElement.textContent')


@pytest.fixture
def guest(stack, pages, browser, office):
    office.mails.clear()
    for ns in ('team', 'club'):
        stack.psql(ns, 'truncate taskqueue, task_history')
    guest = Guest(stack, pages, browser)
    yield guest
    assert guest.tab.run('prevented') == []


def link(stack, office, ns='team'):
    """Of the mail that was requested."""
    (taskid,), = stack.psql(ns, "select taskid from taskqueue where opname = 'accountmail' and startat < %s", (PARKED,))
    assert Manager(stack, ns).run(taskid)['result'] == 'done'
    found, = (word for word in office.take().text.split() if word.startswith('http'))
    return found


def test_a_person_registers_and_signs_in(guest):
    guest.click('Create an account')
    guest.fill('Name', guest.name)
    guest.fill('New password', PASSWORD)
    guest.click('Create an account')
    assert guest.account(guest.session())['name'] == guest.name
    guest.visit(f'{guest.pages.address}/in.html')
    guest.sign_in('wrong horse battery')
    guest.shows('The name or the password is wrong.')
    guest.sign_in(PASSWORD)
    assert guest.account(guest.session())['name'] == guest.name


def test_a_refusal_is_told_to_everybody(guest):
    """To those who see it, and to those who hear it: where the mistake is, and what it was; what was typed is kept."""
    guest.make()
    guest.sign_in('wrong horse battery')
    guest.shows('The name or the password is wrong.', '[role=alert]')
    assert guest.focused() == 'name' and guest.tab.run('document.activeElement.ariaInvalid') == 'true'
    assert guest.tab.run('document.getElementById(document.activeElement.getAttribute("aria-describedby")).textContent') == 'The name or the password is wrong.'
    guest.click('Create an account')
    assert guest.focused() == 'name' and guest.tab.run('document.activeElement.value') == guest.name
    assert guest.tab.run('document.querySelector("[role=alert]").textContent') == ''
    guest.click('Back')
    assert guest.focused() == 'name'


def test_it_is_used_by_the_keyboard_alone(guest):
    guest.make()
    guest.tab.run('document.querySelector("stampd-sign-in input").focus()')

    def press(key, code):
        for kind in ('keyDown', 'keyUp'):
            text = {'text': '\r'} if key == 'Enter' and kind == 'keyDown' else {}
            guest.tab.call('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)
    guest.tab.call('Input.insertText', text=guest.name)
    press('Tab', 9)
    guest.tab.call('Input.insertText', text=PASSWORD)
    press('Enter', 13)
    guest.session()
    assert guest.focused() == 'You are signed in.'


def test_every_field_has_a_label_and_a_purpose(guest):
    views = guest.tab.run("""(() => { const element = document.querySelector('stampd-sign-in'), seen = {}
        for (const view of ['login', 'register', 'address', 'forgot', 'mail', '#login', '#reset', '#register', '#confirm', '#join']) {
            element.show(view, false)
            seen[view] = [...element.querySelectorAll('input')].map((one) => [one.labels[0].textContent, one.autocomplete])
        }
        return seen })()""")
    assert views == {'login': [['Name', 'username'], ['Password', 'current-password']], 'register': [['Name', 'username'], ['New password', 'new-password']],
                     'address': [['Mail address', 'email']], 'forgot': [['Name or mail address', 'username']], 'mail': [['Name or mail address', 'username']], '#login': [],
                     '#reset': [['New password', 'new-password']], '#register': [['New password', 'new-password']], '#confirm': [], '#join': []}


@pytest.mark.parametrize('by', ['name', 'address'])
def test_a_new_password_by_mail(stack, office, guest, by):
    guest.make()
    guest.ask_for_a_mail('Set a new password', getattr(guest, by))
    guest.visit(link(stack, office))
    assert guest.tab.run('location.hash') == '', 'the ticket does not stay in the address'
    guest.fill('New password', OTHER)
    guest.click('Save and sign in')
    assert guest.account(guest.session())['name'] == guest.name
    guest.visit(f'{guest.pages.address}/in.html')
    guest.sign_in(OTHER)
    guest.session()


def test_a_link_signs_in_when_its_button_is_pressed(stack, office, guest):
    """To open it does nothing: scanners of mails do that, too."""
    guest.make()
    guest.ask_for_a_mail('Sign in by a mail', guest.name)
    address = link(stack, office)
    guest.visit(address)
    assert guest.tab.run('sessions') == []
    guest.visit(address)
    guest.click('Sign in')
    assert guest.account(guest.session())['name'] == guest.name
    guest.visit(address)
    guest.click('Sign in')
    guest.shows('The ticket is wrong, used or expired.', '[role=alert]')


def test_a_link_that_is_opened_in_the_same_page_is_taken(guest):
    guest.tab.run('location.hash = "#elsewhere"')
    guest.shows('Password')
    assert guest.tab.run('location.hash') == '#elsewhere', 'it is of the page'
    guest.tab.run(f'location.hash = "#reset={"A" * 43}"')
    guest.shows('Set a new password', 'h2')
    assert guest.focused() == 'password' and guest.tab.run('location.hash') == ''


def test_an_invitation_is_a_link(stack, guest):
    def configure(**members):
        stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': accounts_of(guest.pages, 'in', mail_login=True, **members)}}, admin=True)
    configure(registration='invitation')
    try:
        invitation = stack.op('team', 'accounts', {'invite': {'roles': ['staff']}}, admin=True)['out']['invitation']
        guest.visit(f'{guest.pages.address}/bare.html#invitation={invitation}')
        guest.fill('Name', guest.name)
        guest.fill('New password', PASSWORD)
        guest.click('Create an account')
        assert guest.account(guest.session())['roles'] == ['staff']
    finally:
        configure()


@pytest.fixture
def invited(stack, pages):
    """Makes an invitation to a team that exists; the link of it."""
    rules = {'Team': {'members': 'Member', 'read': ['members'], 'create': ['members'], 'update': ['members']}}
    stack.op('z', 'ns', {'set': {'ns': 'team', 'rules': rules}}, admin=True)

    def invite(page='in', **more):
        name = {'c': 'Team', 'id': f'{next(NUMBERS)}'}
        stack.put('team', {**name, 'items': [{'c': 'Member', 'k': 'nobody', 'j': {}}]}, admin=True)
        sent = stack.op('team', 'membership', {'invite': {**name, 'label': 'The red team', **more}}, admin=True)['out']['invitation']
        return name, f'{pages.address}/{page}.html#join={sent}'
    return invite


def members(stack, name):
    found, = stack.op('team', 'get', {'docs': [name]}, admin=True)['out']['docs']
    return {one['k'] for one in found['items']} - {'nobody'}


def test_who_registers_by_an_invitation_to_a_document_is_its_member(stack, guest, invited):
    name, link = invited()
    guest.visit(link)
    guest.shows('You are invited: The red team')
    assert guest.tab.run('location.hash') == ''
    guest.click('Create an account')
    guest.shows('The red team')
    guest.fill('Name', guest.name)
    guest.fill('New password', PASSWORD)
    guest.click('Create an account')
    guest.shows('You are a member now.')
    session = guest.tab.until('sessions.at(-1)')
    assert members(stack, name) == {session['account']} and session['joined'] == {**name, 'joined': True}


def test_who_is_signed_in_joins_by_a_button(stack, guest, invited):
    """With the token that the page has; without a session, one begins first."""
    guest.make()
    name, link = invited('cookie')
    guest.visit(link)
    guest.click('Join')
    guest.shows('Password')
    guest.sign_in(PASSWORD)
    account = guest.tab.until('sessions.at(-1)')['account']
    token = stack.op('team', 'login', {'name': guest.name, 'password': PASSWORD})['out']['token']
    name, link = invited()
    guest.visit(link)
    guest.tab.run(f'document.querySelector("stampd-sign-in").token = "{token}"')
    guest.click('Join')
    guest.shows('You are a member now.')
    assert members(stack, name) == {account} and guest.tab.run('sessions') == []


def test_an_invitation_that_has_ended_is_told(stack, guest, invited):
    guest.make()
    name, link = invited()
    stack.op('team', 'membership', {'revoke': name}, admin=True)
    guest.visit(link)
    guest.shows('The invitation is wrong, used or expired.')
    guest.sign_in(PASSWORD)
    guest.shows('You are signed in.')
    assert members(stack, name) == set() and 'joined' not in guest.tab.until('sessions.at(-1)')


def test_registration_by_mail(stack, office, guest):
    guest.visit(f'{guest.pages.address}/club.html')
    guest.click('Create an account')
    guest.fill('Mail address', guest.address)
    guest.click('Send a mail')
    guest.shows('a mail is on its way')
    guest.visit(link(stack, office, 'club'))
    guest.fill('New password', PASSWORD)
    guest.click('Save and sign in')
    assert guest.account(guest.session(), 'club')['name'] == guest.address


def test_passkeys(guest):
    guest.tab.call('WebAuthn.enable')
    guest.tab.call('WebAuthn.addVirtualAuthenticator', options={'protocol': 'ctap2', 'transport': 'internal', 'hasResidentKey': True, 'hasUserVerification': True,
                                                                'isUserVerified': True, 'automaticPresenceSimulation': True})
    guest.click('Create an account')
    guest.fill('Name', guest.name)
    guest.click('Create it with a passkey')
    made = guest.session()
    guest.visit(f'{guest.pages.address}/in.html')
    guest.click('Sign in with a passkey')
    assert guest.session()['account'] == made['account']


def test_the_session_may_be_a_cookie(guest):
    guest.make()
    guest.visit(f'{guest.pages.address}/cookie.html')
    guest.sign_in(PASSWORD)
    session = guest.session()
    assert 'token' not in session and session['account']


def test_it_offers_what_it_was_told_to(guest):
    words = '[...document.querySelectorAll("button")].map((one) => one.textContent)'
    assert guest.tab.run(words) == ['Sign in', 'Sign in with a passkey', 'Create an account', 'Sign in by a mail', 'Set a new password']
    guest.visit(f'{guest.pages.address}/bare.html')
    assert guest.tab.run(words) == ['Sign in']


def test_the_page_decides_how_it_looks(guest):
    """By properties, by its own styles, which always win, and by its scheme of colours; and what it says."""
    def colour(what, of='button.main'):
        return guest.tab.run(f'getComputedStyle(document.querySelector("stampd-sign-in {of}")).{what}')
    fields = set()
    for scheme in ('light', 'dark'):
        guest.tab.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        fields.add((colour('backgroundColor', 'input'), colour('color', 'input')))
    assert len(fields) == 2
    guest.tab.run("document.querySelector('stampd-sign-in').style.setProperty('--stampd-accent', 'rgb(1, 2, 3)')")
    assert colour('backgroundColor') == 'rgb(1, 2, 3)'
    guest.tab.run("(() => { const sheet = new CSSStyleSheet(); sheet.replaceSync('button { background: rgb(4, 5, 6) }'); document.adoptedStyleSheets.unshift(sheet) })()")
    assert colour('backgroundColor') == 'rgb(4, 5, 6)'
    guest.tab.run("(() => { const one = document.querySelector('stampd-sign-in'); Object.assign(one.texts, { login: 'Anmelden', SKEY: 'Falsch.' }); one.show('login', false) })()")
    guest.fill('Name', 'nobody')
    guest.fill('Password', PASSWORD)
    guest.click('Anmelden')
    guest.shows('Falsch.', '[role=alert]')


def test_a_server_that_cannot_be_reached(guest):
    guest.make()
    guest.tab.network(False)
    guest.sign_in(PASSWORD)
    guest.shows('The server cannot be reached.', '[role=alert]')
    guest.tab.network(True)
    guest.fill('Password', PASSWORD)
    guest.click('Sign in')
    guest.session()

"""The sample application in Chromium: packages, and lists that accounts share; what the page may do."""
import contextlib
import gzip
import json

import pytest

import browser as browsers
from browser import Browser
from hands import WATCH, Hands
from stack import SOURCE, wait_until
from web import FETCHES, built_page, serve_page

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not browsers.PROGRAM, reason='there is no Chromium (Debian: chromium-headless-shell)')]

STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'demo': 'read', 'team': 'rules'}}
LIBRARY = SOURCE / 'scripts/lib'
LINES_MOST = 300
PAGE_MOST = 24 * 1024  # bytes of all files, compressed
PASSWORD = 'correct horse battery'


def package(name, *depends):
    words = sorted({*name.split('-'), 'about', 'shell' if 'sh' in name else 'other'})
    about = {'archive': 'debian', 'words': words, 'version': '1.0', 'section': 'utils', 'description': f'About {name}', 'size': 2048, **({'depends': list(depends)} if depends else {})}
    return {'c': 'Package', 'id': name, 'items': [{'c': 'Sta', 'j': about}, *({'c': 'Dep', 'k': one, 'j': {}} for one in depends)]}


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    return built_page('catalogue', tmp_path_factory)


@pytest.fixture(scope='module')
def address(stack, built):
    """As scripts/demo does it, with few packages."""
    stack.admin('schema', 'set', 'demo', str(LIBRARY / 'catalogue-schema.json'))
    stack.admin('schema', 'apply', 'demo')
    stack.admin('ns', 'accounts', 'team', '{"registration":"open","anonymous":true}')
    stack.admin('schema', 'set', 'team', str(LIBRARY / 'team-schema.json'))
    stack.admin('schema', 'apply', 'team')
    stack.admin('rules', 'set', 'team', str(LIBRARY / 'team-rules.json'))
    put(stack, package('libc6'), package('bash', 'libc6'), package('bash-doc'), package('abash'), package('zsh', 'libc6'))
    return serve_page(stack, built, 'www', '/')


def put(stack, *documents):
    stack.op('demo', 'put', {'docs': list(documents)}, admin=True)


class Guest(Hands):
    def __init__(self, browser, address):
        super().__init__(browser.open('about:blank', is_ready='true'))
        self.address = address
        self.tab.call('Page.addScriptToEvaluateOnNewDocument', source=WATCH)
        self.visit()

    def visit(self):
        self.tab.go(self.address, is_ready='document.querySelector("#found li")')

    def go(self, place):
        self.tab.run(f'location.hash = {json.dumps(place)}')

    def search(self, words):
        self.tab.run(f'''(() => {{ const one = document.getElementById('search'); one.value = {json.dumps(words)}
            one.dispatchEvent(new Event('input', {{ bubbles: true }})) }})()''')

    def found(self):
        return self.tab.run("[...document.querySelectorAll('#found li a')].map((one) => one.textContent)")

    def until_found(self, *names):
        wait_until(lambda: self.found() == list(names), what=f'{names}')

    def register(self, name):
        self.go('lists')
        self.fill('Name', name)
        self.fill('Password', PASSWORD)
        self.click('Create an account')
        self.shows('Your account')
        return self.tab.run("document.getElementById('account').textContent")

    def entries(self):
        return self.tab.run("[...document.querySelectorAll('#entries li a')].map((one) => one.textContent)")

    def until_entries(self, *names):
        wait_until(lambda: self.entries() == list(names), what=f'{names}')


@pytest.fixture
def meet(address):
    """Guests, each with a browser of its own; the policy of the page has prevented nothing."""
    guests = []
    with contextlib.ExitStack() as ends:
        def come():
            guests.append(Guest(ends.enter_context(contextlib.closing(Browser())), address))
            return guests[-1]
        yield come
        for guest in guests:
            assert guest.tab.run('prevented') == []


def test_the_application_is_small(built):
    sources = SOURCE / 'src/web/catalogue'
    assert sum(len(path.read_text().splitlines()) for path in sources.glob('*.js')) <= LINES_MOST
    assert {path.name for path in built.iterdir()} == {'index.html', 'catalogue.js', 'catalogue.css', 'sw.js'}
    assert sum(len(gzip.compress(path.read_bytes())) for path in built.iterdir()) < PAGE_MOST


def test_the_page_runs_no_scripts_of_others(meet):
    guest = meet()
    guest.tab.run("void document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.isIn = true' }))")
    guest.tab.until('prevented.length === 1')
    assert not guest.tab.run('Boolean(window.isIn)')
    guest.tab.run('prevented.length = 0')


def test_packages_are_found_while_one_types(stack, meet):
    guest = meet()
    guest.until_found('abash', 'bash', 'bash-doc', 'libc6', 'zsh')
    guest.search('bash')
    guest.until_found('bash', 'bash-doc', 'abash')
    guest.shows('About bash-doc', '#found')
    guest.search('nothing of this name')
    guest.shows('Nothing is found.', '#found')


def test_packages_are_found_by_the_words_of_their_descriptions(meet):
    guest = meet()
    guest.search('she')  # the last word is still being typed
    guest.until_found('abash', 'bash', 'bash-doc', 'zsh')
    guest.shows('About zsh', '#found')
    guest.search('shell doc')
    guest.until_found('bash-doc')
    guest.search('Oth')
    guest.until_found('libc6')
    guest.search('sh')  # those whose names have it come first, and none comes twice
    guest.until_found('abash', 'bash', 'bash-doc', 'zsh')
    guest.tab.network(False)
    guest.search('shell')
    guest.shows('Nothing is found.', '#found')
    guest.search('bash')
    guest.until_found('bash', 'bash-doc', 'abash')


def test_a_package_has_its_dependents_and_follows_the_server(stack, meet):
    guest = meet()
    guest.go('package/libc6')
    guest.shows('bash')
    guest.shows('zsh')
    guest.go('package/bash')
    guest.shows('About bash')
    later = package('bash', 'libc6')
    later['items'][0]['j']['description'] = 'Another text'
    put(stack, later)
    guest.shows('Another text')


def test_a_visit_asks_once_for_all_names(meet):
    guest = meet()
    asked = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/op/collection')).length"
    for _ in range(2):
        guest.tab.until(f"localStorage.getItem('names') !== null && {asked} > 0")
        guest.until_found('abash', 'bash', 'bash-doc', 'libc6', 'zsh')
        assert guest.tab.run(asked) == 1
        guest.visit()


def test_another_visit_brings_what_has_changed(stack, meet):
    guest = meet()
    guest.tab.until("localStorage.getItem('names') !== null")
    put(stack, package('yash'))
    stack.op('demo', 'put', {'docs': [{'c': 'Package', 'id': 'abash', 'delete': True}]}, admin=True)
    guest.visit()
    guest.until_found('bash', 'bash-doc', 'libc6', 'yash', 'zsh')
    put(stack, package('abash'))
    stack.op('demo', 'put', {'docs': [{'c': 'Package', 'id': 'yash', 'delete': True}]}, admin=True)


def test_a_list_is_shared_and_edited_without_a_network(meet):
    ann, bob = meet(), meet()
    ann.register('ann')
    account = bob.register('bob')
    ann.fill('New list', 'Shells')
    ann.click('Create')
    ann.shows('Invite account')
    place = ann.tab.run('location.hash')
    bob.go(place)
    bob.shows('This list is not shared with you')
    ann.fill('Invite account', account)
    ann.click('Invite')
    bob.shows('Shells')
    bob.go('lists')
    bob.shows('Shells')
    bob.go('package/zsh')
    bob.click('Add to Shells')
    ann.until_entries('zsh')

    bob.tab.network(False)
    bob.go('package/bash')
    bob.click('Add to Shells')
    bob.shows('Offline. 1 change of yours will be sent when the network is back.', '#state')
    ann.click('Remove zsh')
    bob.tab.network(True)
    ann.until_entries('bash')
    bob.go(place)
    bob.until_entries('bash')
    bob.go('lists')
    bob.shows('Shells')


def test_lists_of_an_account_are_in_each_of_its_browsers(meet):
    home, office, eve = meet(), meet(), meet()
    account = home.register('carl')
    eve.register('eve')
    home.fill('New list', 'At home')
    home.click('Create')
    home.shows('Invite account')
    office.go('lists')
    office.fill('Name', 'carl')
    office.fill('Password', PASSWORD)
    office.click('Sign in')
    office.shows('At home')
    eve.fill('New list', 'Of Eve')
    eve.click('Create')
    eve.fill('Invite account', account)
    eve.click('Invite')
    office.shows('Of Eve')  # without its address
    office.go('package/zsh')
    office.click('Add to Of Eve')
    eve.until_entries('zsh')
    home.go('lists')
    home.click('Of Eve')
    home.until_entries('zsh')
    assert not home.tab.run("Boolean(document.querySelector('#invite:not([hidden])'))")


def test_the_page_opens_without_a_network(stack, meet):
    guest = meet()
    guest.register('dora')
    guest.fill('New list', 'On the train')
    guest.click('Create')
    guest.shows('Invite account')
    guest.tab.until("localStorage.getItem('names') !== null")
    guest.tab.run('navigator.serviceWorker.ready.then(() => true)')
    guest.tab.until('document.querySelector("#state").textContent === ""')
    stack.step('nginx', 'stop')
    try:
        guest.visit()
        guest.until_found('abash', 'bash', 'bash-doc', 'libc6', 'zsh')
        guest.go('lists')
        guest.click('On the train')
        guest.shows('Invite account')
        guest.go('package/zsh')
        guest.click('Add to On the train')
        guest.shows('Offline. 1 change of yours will be sent when the network is back.', '#state')
        guest.visit()
        guest.shows('Offline. 1 change of yours will be sent when the network is back.', '#state')
    finally:
        stack.step('nginx', 'start')
    guest.misses('Offline', '#state')  # nothing is followed on this page
    guest.go('lists')
    guest.click('On the train')
    guest.until_entries('zsh')


def test_what_waits_for_whom_is_said(stack, meet):
    """A change that was made without a network, by an account that has signed out, waits for that account; others are told so."""
    guest = meet()
    account = guest.register('fritz')
    guest.fill('New list', 'Left behind')
    guest.click('Create')
    guest.shows('Invite account')
    guest.tab.until("localStorage.getItem('names') !== null")
    guest.tab.run('navigator.serviceWorker.ready.then(() => true)')
    guest.tab.until('document.querySelector("#state").textContent === ""')
    waiting = f'1 change of account {account} will be sent when it signs in here again.'
    stack.step('nginx', 'stop')
    try:
        guest.go('package/zsh')
        guest.click('Add to Left behind')
        guest.shows('Offline. 1 change of yours will be sent when the network is back.', '#state')
        guest.go('lists')
        guest.click('Sign out')
        guest.shows(waiting, '#state')
    finally:
        stack.step('nginx', 'start')
    guest.register('gerda')
    guest.shows(waiting, '#state')
    guest.click('Sign out')
    guest.shows('Create an account')
    guest.fill('Name', 'fritz')
    guest.fill('Password', PASSWORD)
    guest.click('Sign in')
    guest.click('Left behind')
    guest.until_entries('zsh')
    guest.misses('will be sent', '#state')


def test_a_package_that_is_not_there(meet):
    guest = meet()
    guest.go('package/none')
    guest.shows('There is no such package.')

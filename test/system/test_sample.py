"""The sample application in Chromium: packages, and lists that accounts share; what the page may do."""
import contextlib
import gzip
import json

import pytest

import browser as browsers
from browser import Browser
from hands import WATCH, Hands, Keyboard
from sample_world import NAMESPACES, PASSWORD, create_account, declare, sign_in
from stack import SOURCE, refused, wait_until
from web import FETCHES, built_page, serve_page

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not browsers.PROGRAM, reason='there is no Chromium (Debian: chromium-headless-shell)')]

STACK = {'workers': 4, 'namespaces': NAMESPACES}
LINES_MOST = 450
PAGE_MOST = 36 * 1024  # bytes of all files, compressed


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
    declare(stack)
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
        create_account(self, name)
        return self.tab.run("JSON.parse(localStorage.getItem('me')).account")

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
    bob.register('bob')
    ann.fill('New list', 'Shells')
    ann.click('Create')
    ann.shows('Invite by name')
    place = ann.tab.run('location.hash')
    bob.go(place)
    bob.shows('This list is not shared with you')
    ann.fill('Invite by name', 'nobody')
    ann.click('Invite')
    ann.shows('There is no account with the name nobody.')
    invited = "document.querySelector('#invite input').value"
    assert ann.tab.run(invited) == 'nobody', 'it can be corrected'
    ann.fill('Invite by name', 'bob')
    ann.click('Invite')
    ann.shows('Shared by you, bob.')
    ann.misses('There is no account')
    ann.tab.until(f"{invited} === ''")
    ann.shows('bob is looking at this, too.')
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
    home.register('carl')
    eve.register('eve')
    home.fill('New list', 'At home')
    home.click('Create')
    home.shows('Invite by name')
    office.go('lists')
    sign_in(office, 'carl')
    office.shows('At home')
    eve.fill('New list', 'Of Eve')
    eve.click('Create')
    eve.fill('Invite by name', 'carl')
    eve.click('Invite')
    office.shows('Of Eve')  # without its address
    office.go('package/zsh')
    office.click('Add to Of Eve')
    eve.until_entries('zsh')
    home.go('lists')
    home.click('Of Eve')
    home.until_entries('zsh')
    assert not home.tab.run("Boolean(document.querySelector('#invite:not([hidden])'))")


def test_a_list_is_shared_by_a_link(meet):
    """With somebody who registers by it, and with somebody who is signed in."""
    jan, kim, lea = meet(), meet(), meet()
    jan.register('jan')
    jan.go('lists')
    jan.shows('You have no list yet.')
    jan.shows('Nobody shares a list with you yet.')
    jan.fill('New list', 'By a link')
    jan.click('Create')
    jan.click('Make an invitation link')
    link = jan.tab.until('document.querySelector("#link input")?.value').partition('#')[2]
    lea.register('lea')
    kim.go(link)
    kim.shows('You are invited: By a link')
    kim.click('Create an account')
    kim.fill('Name', 'kim')
    kim.fill('New password', PASSWORD)
    kim.click('Create an account', 'button.main')
    kim.shows('By a link', '#title')
    jan.shows('Shared by you, kim.')
    lea.go(link)
    lea.click('Join')
    lea.shows('By a link', '#title')
    lea.shows('kim', '#people')
    assert not lea.tab.run("Boolean(document.querySelector('#invite:not([hidden])'))"), 'who has joined invites nobody'
    lea.go('lists')
    lea.click('By a link', '.names a')
    lea.shows('By a link', '#title')


def test_of_two_who_invite_at_the_same_time_none_is_lost(stack, meet):
    accounts = {name: stack.op('team', 'register', {'name': name, 'password': PASSWORD})['out']['account'] for name in ('gus', 'hal')}
    home, office = meet(), meet()
    ivy = home.register('ivy')
    office.go('lists')
    sign_in(office, 'ivy')
    home.fill('New list', 'Shells')
    home.click('Create')
    home.shows('Invite by name')
    team = home.tab.run('location.hash').split('/')[1]
    office.go(f'list/{team}')
    office.shows('Invite by name')
    office.tab.call('Network.setBlockedURLs', urls=['*/op/put'])
    for guest, name in ((office, 'gus'), (home, 'hal')):
        guest.fill('Invite by name', name)
        guest.click('Invite')
        guest.shows(f'Shared by you, {name}.')

    def listed():
        items = stack.op('team', 'get', {'docs': [{'c': 'Team', 'id': team}]}, admin=True)['out']['docs'][0]['items']
        return {item['k'] for item in items if item['c'] == 'Member'}
    wait_until(lambda: listed() == {ivy, accounts['hal']}, what='the one invitation')
    office.tab.call('Network.setBlockedURLs', urls=[])
    wait_until(lambda: listed() == {ivy, *accounts.values()}, what='both invitations')


def test_the_page_opens_without_a_network(stack, meet):
    guest = meet()
    guest.register('dora')
    guest.fill('New list', 'On the train')
    guest.click('Create')
    guest.shows('Invite by name')
    guest.tab.until("localStorage.getItem('names') !== null")
    guest.tab.run('navigator.serviceWorker.ready.then(() => true)')
    guest.tab.until('document.querySelector("#state").textContent === ""')
    stack.step('nginx', 'stop')
    try:
        guest.visit()
        guest.until_found('abash', 'bash', 'bash-doc', 'libc6', 'zsh')
        guest.go('lists')
        guest.click('On the train')
        guest.shows('Invite by name')
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
    guest.shows('Invite by name')
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
    sign_in(guest, 'fritz')
    guest.click('Left behind')
    guest.until_entries('zsh')
    guest.misses('will be sent', '#state')


def test_an_address_that_is_typed_by_hand(meet):
    guest = meet()
    guest.go('package/100%')
    guest.shows('There is no such package.')
    guest.tab.call('Page.reload')
    guest.shows('There is no such package.')


def test_a_package_that_is_not_there(meet):
    guest = meet()
    guest.go('package/none')
    guest.shows('There is no such package.')


# --- the two phones of the start page ---

ANN, BOB = 'Ann’s phone', 'Bob’s phone'


class Phones:
    def __init__(self, guest):
        self.guest, self.tab = guest, guest.tab

    def lines(self, phone):
        return self.tab.run(f"""[...document.querySelectorAll('[aria-label="{phone}"] li')].map((one) => (one.querySelector('input').checked ? '✓' : '') + one.querySelector('span').textContent)""")

    def until(self, phone, *lines):
        wait_until(lambda: self.lines(phone) == list(lines), what=f'{lines} on {phone}')

    def act(self, phone, selector, deed='one.click()'):
        self.tab.until(f"""(() => {{ const one = document.querySelector('[aria-label="{phone}"] {selector}'); if (!one) return false; {deed}; return true }})()""")

    def tick(self, phone, line):
        self.act(phone, f'li:nth-child({line}) input')

    def add(self, phone, text):
        self.act(phone, 'form', f"one.querySelector('input').value = {json.dumps(text)}; one.requestSubmit()")

    def notes(self, phone, text):
        self.guest.shows(text, f'[aria-label="{phone}"] p')


def test_two_phones_follow_each_other(meet):
    guest = meet()
    phones = Phones(guest)
    phones.until(BOB, 'Bread', 'Apples', 'Coffee')
    phones.tick(ANN, 1)
    phones.until(BOB, '✓Bread', 'Apples', 'Coffee')
    phones.notes(ANN, 'Also here: Bob’s phone')
    phones.add(BOB, 'Tea')
    phones.until(ANN, '✓Bread', 'Apples', 'Coffee', 'Tea')
    guest.tab.until("/^[0-9]+ ms$/.test(document.getElementById('between').textContent)")
    phones.act(ANN, 'li:nth-child(2) button')
    phones.until(BOB, '✓Bread', 'Coffee', 'Tea')


def test_a_phone_without_its_network_goes_on_and_nothing_is_lost(meet):
    guest = meet()
    phones = Phones(guest)
    phones.tick(ANN, 1)
    phones.until(BOB, '✓Bread', 'Apples', 'Coffee')
    phones.act(BOB, '.switch input')
    phones.notes(BOB, 'Offline')
    phones.add(BOB, 'Tea')
    phones.tick(BOB, 2)
    phones.notes(BOB, '2 changes will be sent later')
    phones.tick(ANN, 3)
    phones.until(ANN, '✓Bread', 'Apples', '✓Coffee')
    phones.until(BOB, '✓Bread', '✓Apples', 'Coffee', 'Tea')
    phones.act(BOB, '.switch input')
    for phone in (ANN, BOB):
        phones.until(phone, '✓Bread', '✓Apples', '✓Coffee', 'Tea')
    phones.notes(BOB, 'Also here: Ann’s phone')


def test_the_list_of_the_phones_opens_in_another_window(meet):
    guest, other = meet(), meet()
    phones = Phones(guest)
    phones.tick(ANN, 1)
    phones.until(BOB, '✓Bread', 'Apples', 'Coffee')
    other.go(guest.tab.run("document.getElementById('another').hash.slice(1)"))
    window = Phones(other)
    window.until('This window', '✓Bread', 'Apples', 'Coffee')
    phones.notes(ANN, 'This window')
    window.tick('This window', 3)
    phones.until(BOB, '✓Bread', 'Apples', '✓Coffee')
    other.go('lists')  # nobody is there any more
    guest.misses('This window', f'[aria-label="{ANN}"] p')


def test_the_first_screen_takes_three_requests(meet):
    """Besides the files of the page, which its service worker keeps: the names, the descriptions of those in the list, and nothing for the phones."""
    guest = meet()
    guest.tab.until("localStorage.getItem('names') !== null")
    guest.shows('About zsh', '#found')
    asked = guest.tab.run("performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname).filter((one) => /^[/][a-z]+[/](op|live|ping)/.test(one))")
    assert len(asked) <= 3, asked


def test_a_narrow_window_begins_with_the_start_page(meet):
    guest = meet()
    guest.tab.call('Emulation.setDeviceMetricsOverride', width=390, height=800, deviceScaleFactor=1, mobile=True)
    guest.shows('A document database at work')
    seen = lambda id_: guest.tab.run(f"document.getElementById('{id_}').offsetParent !== null")  # noqa: E731
    assert seen('page') and not seen('found')
    guest.search('bash')
    guest.until_found('bash', 'bash-doc', 'abash')
    assert seen('found') and not seen('page')
    guest.go('package/zsh')
    guest.shows('About zsh')
    assert seen('page') and not seen('found')
    assert guest.tab.run('document.documentElement.scrollWidth') <= 390


def test_a_wide_window_has_the_phones_side_by_side(meet):
    guest = meet()
    for width in (900, 1000, 1200, 1280, 1920):
        guest.tab.call('Emulation.setDeviceMetricsOverride', width=width, height=800, deviceScaleFactor=1, mobile=False)
        tops = "[...document.querySelectorAll('.device')].map((one) => one.getBoundingClientRect().top)"
        guest.tab.until(f'innerWidth === {width} && {tops}.length === 2')
        assert len(set(guest.tab.run(tops))) == 1, width


def test_what_is_said_of_the_state_moves_nothing(meet):
    guest = meet()
    top = "document.getElementById('panes').getBoundingClientRect().top"
    before = guest.tab.run(top)
    guest.tab.run("document.getElementById('state').textContent = 'Saving…'")
    assert guest.tab.run(top) == before


def test_the_focus_stays_in_a_list_from_which_one_removes(meet):
    guest = meet()
    guest.register('fay')
    guest.fill('New list', 'Shells')
    guest.click('Create')
    guest.shows('Invite by name')
    place = guest.tab.run('location.hash')
    for name in ('bash', 'zsh'):
        guest.go(f'package/{name}')
        guest.click('Add to Shells')
        guest.shows('Remove from Shells')
    guest.go(place)
    guest.until_entries('bash', 'zsh')
    guest.act(guest.element('Remove bash'), 'one.focus(); one.click()')
    guest.until_entries('zsh')
    guest.tab.until("document.activeElement.ariaLabel === 'Remove zsh'")
    guest.act(guest.element('Remove zsh'), 'one.focus(); one.click()')
    guest.until_entries()
    guest.tab.until("document.activeElement.id === 'page'")


def test_all_is_done_by_keyboard(meet):
    guest = meet()
    keys = Keyboard(guest.tab)
    keys.press('/', 191, '/')
    guest.tab.until("document.activeElement.id === 'search'")
    keys.type('zsh')
    guest.until_found('zsh')
    keys.reach('zsh')
    keys.enter()
    guest.shows('About zsh')
    guest.tab.until("document.activeElement.id === 'page'")
    keys.reach('Sign in to make lists')
    keys.enter()
    guest.shows('Lists of packages')
    keys.reach('Create an account')
    keys.enter()
    guest.tab.until("document.activeElement.name === 'name'")
    keys.type('kay')
    keys.reach('New password')
    keys.type('correct horse battery')
    keys.enter()
    guest.shows('My lists', 'h1')
    keys.reach('New list')
    keys.type('Shells')
    keys.enter()
    guest.shows('Invite by name')


def test_a_small_board_is_for_whoever_knows_its_id(stack):
    """Strangers may read and change a board whose id they know, and list none."""
    item = {'c': 'Entry', 'k': '1', 'j': {'text': 'x'}}
    stack.op('team', 'put', {'docs': [{'c': 'Board', 'id': 'of-a-test', 'items': [item]}]})
    assert stack.op('team', 'get', {'docs': [{'c': 'Board', 'id': 'of-a-test'}]})['out']['docs'][0]['items'][0]['j'] == {'text': 'x'}
    assert stack.op('team', 'list', {'c': 'Board'})['out']['docs'] == []
    refused('SRULE', stack.op, 'team', 'put', {'docs': [{'c': 'Board', 'id': 'of-a-test', 'delete': True}]})

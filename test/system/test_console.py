"""The console in Chromium: what an administrator does there; what the page may not do; accessibility."""
import contextlib
import gzip
import json
import re
import shutil

import pytest

import browser as browsers
from browser import Browser
from hands import BY_LABEL, WATCH, Hands
from stack import PATIENCE_S, SOURCE, wait_until
from web import built_page, install_packages, serve_page

pytestmark = [pytest.mark.once, pytest.mark.skipif(not browsers.PROGRAM, reason='there is no Chromium (Debian: chromium)')]

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'team': 'rules'}}
PAGE_MOST = 100 * 1024  # bytes of all files of the page, compressed


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    return built_page('console', tmp_path_factory)


@pytest.fixture(scope='module')
def address(stack, built):
    assert stack.http.get(f'{stack.url}/console/', timeout=PATIENCE_S).status_code == 404  # without the option there is no page
    return serve_page(stack, built, 'console', '/console/')


@pytest.fixture(scope='module')
def browser():
    with contextlib.closing(Browser()) as browser:
        yield browser


class Desk(Hands):
    """What an administrator does with a tab."""

    def __init__(self, browser, address):
        self.address = address
        super().__init__(browser.open('about:blank', is_ready='true'))
        self.tab.call('Page.addScriptToEvaluateOnNewDocument', source=WATCH)
        self.tab.go(address, is_ready='document.querySelector("h1")')

    def sign_in(self, key):
        self.fill("Administrator's key", key)
        self.click('Sign in')

    def go(self, *parts):
        self.tab.run(f'location.hash = {json.dumps("#/" + "/".join(parts))}')

    def value(self, label):
        return self.tab.run(BY_LABEL.format(text=json.dumps(label)) + '?.value')


@pytest.fixture
def desk(stack, browser, address):
    desk = Desk(browser, address)
    desk.sign_in(stack.key)
    desk.shows('team')
    yield desk
    assert desk.tab.run('prevented') == []
    desk.tab.close()


# --- the page ---

def test_the_page_is_small(built):
    assert {path.name for path in built.iterdir()} == {'index.html', 'console.js', 'console.css'}
    assert sum(len(gzip.compress(path.read_bytes())) for path in built.iterdir()) < PAGE_MOST


def test_the_page_may_use_its_own_origin_only(stack, address):
    for path in ('', 'console.js', 'console.css'):
        answer = stack.http.get(address + path, timeout=PATIENCE_S)
        policy = dict(part.strip().split(' ', 1) for part in answer.headers['Content-Security-Policy'].split(';'))
        assert answer.status_code == 200 and policy['default-src'] == policy['base-uri'] == policy['form-action'] == policy['frame-ancestors'] == "'none'"
        assert policy['script-src'] == policy['style-src'] == policy['connect-src'] == "'self'"
        assert (answer.headers['X-Content-Type-Options'], answer.headers['Referrer-Policy']) == ('nosniff', 'no-referrer')
    moved = stack.http.get(address.rstrip('/'), timeout=PATIENCE_S, allow_redirects=False)
    assert (moved.status_code, moved.headers['Location'].endswith('/console/')) == (308, True)
    for path in ('other', '../etc/passwd', '%2e%2e/etc/admin.key', '../console.js'):
        assert stack.http.get(address + path, timeout=PATIENCE_S).status_code == 404
    assert stack.http.post(address, timeout=PATIENCE_S).status_code == 405


# --- signing in ---

def test_a_wrong_key_is_refused_and_the_right_one_is_kept_nowhere(stack, browser, address):
    desk = Desk(browser, address)
    desk.sign_in('not the key of this server, but as long as one')
    desk.shows('SKEY')
    assert not desk.tab.run("Boolean(document.querySelector('table'))")
    desk.sign_in(stack.key)
    desk.shows('team')
    desk.go('ns', 'lab', 'tasks')
    desk.shows('Queues')
    kept = desk.tab.run('''(async () => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state,
        await indexedDB.databases(), await caches.keys(), performance.getEntries().map((one) => one.name)]))()''')
    assert stack.key not in kept and kept.startswith('[{},{},""')
    desk.tab.go(address, is_ready='document.querySelector("h1")')  # a reload forgets the key
    desk.shows("Administrator's key")
    desk.tab.close()


def test_a_key_that_has_been_changed_ends_the_session(desk):
    """As after stampctl key and a reload: the server refuses, and the page asks again."""
    desk.tab.run('''{
        const usual = window.fetch
        window.fetch = (path, init) => usual(path, { ...init, headers: { ...init?.headers, Authorization: 'Bearer another key' } })
    }''')
    desk.go('ns', 'lab', 'tasks')
    desk.shows("Administrator's key")


# --- namespaces ---

def test_states_and_messages_of_a_namespace_are_changed(stack, desk):
    desk.go('ns', 'lab', 'settings')
    desk.fill('State', '1')
    desk.fill('Message', 'Moving to another host.')
    desk.click('Save')
    desk.shows('Saved.')
    assert stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out']['message'] == 'Moving to another host.'
    desk.go()
    desk.shows('read-only')
    desk.go('ns', 'lab', 'settings')
    desk.fill('State', '0')
    desk.fill('Message', '')
    desk.click('Save')
    wait_until(lambda: 'message' not in stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out'], what='the state')


def test_rules_that_are_wrong_are_refused_at_their_place(stack, desk):
    desk.go('ns', 'team', 'settings')
    desk.fill('Access rules (JSON)', '{"Note": {"read": ["everyone"]}}')
    desk.click('Save')
    desk.shows('/param/set/rules/Note/read/0')
    desk.fill('Access rules (JSON)', '{"Note": ')
    desk.click('Save')
    desk.shows('Access rules (JSON): ')
    desk.fill('Access rules (JSON)', '{"Note": {"read": ["account"]}}')
    desk.click('Save')
    desk.shows('Saved.')
    assert stack.op('z', 'ns', {'get': 'team'}, admin=True)['out']['rules'] == {'Note': {'read': ['account']}}


def test_a_change_meanwhile_is_not_overwritten(stack, desk):
    desk.go('ns', 'lab', 'settings')
    desk.tab.until("document.querySelector('textarea') !== null")
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'label': 'Laboratory'}}, admin=True)
    desk.fill('Label', 'Mine')
    desk.click('Save')
    desk.shows('AVERSION')
    assert stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out']['label'] == 'Laboratory'


def test_documents_are_counted_on_request(stack, desk):
    stack.put('lab', {'c': 'Count', 'id': 'one', 'items': []})
    desk.tab.until("document.querySelector('[aria-label=\"Count the documents of lab\"]') !== null")
    desk.tab.run("document.querySelector('[aria-label=\"Count the documents of lab\"]').click()")
    desk.shows(' documents, ')


# --- documents ---

def test_a_document_is_created_changed_and_deleted(stack, desk):
    desk.go('ns', 'lab', 'documents', 'Note', 'a%2Fb%20%C3%A9')
    desk.shows('does not exist yet')
    desk.fill('Class of the item', 'Main')
    desk.click('Add an item')
    desk.fill('Main new', '{"a": 1}')
    desk.click('Create')
    desk.shows('created')
    read = lambda: stack.get('lab', ('Note', 'a/b é'))  # noqa: E731
    assert [(item['c'], item['j']) for item in read()['items']] == [('Main', {'a': 1})]
    desk.fill('Main', '{"a": ')
    desk.click('Save')
    desk.shows('Main/: ')
    desk.fill('Main', '{"a": 2}')
    desk.click('Save')
    wait_until(lambda: read()['items'][0]['j'] == {'a': 2}, what='the change')
    wait_until(lambda: desk.value('Main') == '{\n  "a": 2\n}', what='the new version')
    desk.click('Delete')
    desk.click('Delete', 'dialog[open] button')
    wait_until(lambda: read()['v'] == 0, what='the deletion')


def test_an_item_is_removed_and_raw_text_stays_raw(stack, desk):
    stack.put('lab', {'c': 'Note', 'id': 'raw', 'items': [{'c': 'Text', 's': 'as it is'}, {'c': 'Line', 'k': '1', 'j': {'a': 1}}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'raw')
    desk.fill('Text raw text', 'not {JSON')
    desk.tab.run("[...document.querySelectorAll('.item')].find((one) => one.innerText.includes('Line / 1')).querySelector('button').click()")
    desk.shows('will be removed')
    desk.click('Save')
    wait_until(lambda: [(item['c'], item.get('s')) for item in stack.get('lab', ('Note', 'raw'))['items']] == [('Text', 'not {JSON')], what='the change')


def test_another_writer_is_not_overwritten(stack, desk):
    stack.put('lab', {'c': 'Note', 'id': 'shared', 'items': [{'c': 'Main', 'j': 1}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'shared')
    desk.fill('Main', '2')
    stack.put('lab', {'c': 'Note', 'id': 'shared', 'items': [{'c': 'Main', 'j': 3}]})
    desk.click('Save')
    desk.shows('AVERSION')
    assert stack.get('lab', ('Note', 'shared'))['items'][0]['j'] == 3
    desk.click('Discard and read again')
    wait_until(lambda: desk.value('Main') == '3', what='the content of the other')


def test_documents_are_listed_in_pages(stack, desk):
    for start in range(0, 120, 30):
        stack.put('lab', *({'c': 'Page', 'id': f'p{n:03}', 'items': []} for n in range(start, start + 30)))
    desk.go('ns', 'lab', 'documents')
    desk.shows('Page')
    desk.go('ns', 'lab', 'documents', 'Page')
    desk.shows('p099')
    assert not desk.tab.run("document.querySelector('main').innerText.includes('p100')")
    desk.click('More')
    desk.shows('p119')
    desk.fill('Beginning of the id', 'p05')
    wait_until(lambda: desk.tab.run("document.querySelectorAll('tbody tr').length") == 10, what='the documents with this beginning')


def test_what_is_not_declared_cannot_be_searched(desk):
    desk.go('ns', 'lab', 'documents', 'Note')
    desk.click('Search by content')
    desk.fill('Field', 'text')
    desk.click('Search')
    desk.shows('NFIELD')


# --- tasks ---

def request_task(stack, info):
    return stack.op('lab', 'task', {'op': 'put', 'param': {'docs': [{'c': 'Done', 'id': info}]}, 'delay': 36000, 'info': info})['out']['id']


def test_a_task_is_held_moved_and_dropped(stack, desk):
    id_ = request_task(stack, 'from the console')
    desk.go('ns', 'lab', 'tasks')
    desk.fill('Beginning of the information', 'from the con')
    desk.shows('waiting')
    desk.click(id_)
    desk.click('Hold')
    desk.shows('held')
    task = lambda: stack.op('lab', 'tasks', {'show': id_}, admin=True)['out'].get('task')  # noqa: E731
    assert task()['state'] == 'held'
    desk.fill('Start at', '2031-05-06T07:08:09')
    desk.click('Move')
    desk.shows('moved')
    assert re.match(r'31050\d{4}', str(task()['startat'])), 'in the time zone of the browser'
    desk.click('Drop')
    desk.click('Drop', 'dialog[open] button')
    desk.shows('This task is done or was dropped.')
    assert task() is None


# --- accounts ---

def test_an_account_is_created_and_its_sessions_end(stack, desk):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': {}}}, admin=True)
    desk.go('ns', 'team', 'accounts')
    desk.click('New account, invitation or service key')
    desk.fill('Name or label', 'ann')
    desk.fill('Password', 'correct horse battery')
    desk.fill('Roles', 'editor reader')
    desk.click('Create the account')
    desk.shows('Sessions and service keys')
    account = stack.op('team', 'accounts', {'find': 'ann'}, admin=True)['out']
    assert sorted(account['roles']) == ['editor', 'reader']
    token = stack.op('team', 'login', {'name': 'ann', 'password': 'correct horse battery', 'device': 'laptop'})['out']['token']
    desk.go('ns', 'team', 'accounts')
    desk.shows('Find')
    desk.fill('Name', 'ann')
    desk.click('Find')
    desk.shows('laptop')
    desk.click('Revoke')
    desk.shows('Nobody is signed in.')
    assert stack.http.post(f'{stack.url}/team/op/account', json={}, headers={'Authorization': f'Bearer {token}'}, timeout=PATIENCE_S).status_code == 401


def test_an_invitation_and_a_service_key_are_shown_once(stack, desk):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': {'registration': 'invitation'}}}, admin=True)
    desk.go('ns', 'team', 'accounts')
    desk.click('New account, invitation or service key')
    desk.fill('Name or label', 'nightly')
    desk.fill('Roles', 'report')
    desk.click('Make a service key')
    desk.shows('The service key was made. It is shown only once.')
    key = desk.tab.run("document.querySelector('.secret code').textContent")
    send = lambda key: stack.http.post(f'{stack.url}/team/op/sync', json={}, headers={'Authorization': f'Bearer {key}'}, timeout=PATIENCE_S)  # noqa: E731
    assert (send(key).status_code, send(key[:-1]).status_code) == (200, 401)
    desk.click('Make an invitation')
    desk.shows('The invitation was made.')
    invitation = desk.tab.run("document.querySelector('.secret code').textContent")
    made = stack.op('team', 'register', {'name': 'invited', 'password': 'correct horse battery', 'invitation': invitation})
    assert stack.op('team', 'accounts', {'get': made['out']['account']}, admin=True)['out']['roles'] == ['report']


# --- charts ---

def test_charts_show_what_happens(stack, desk):
    desk.go('server')
    desk.tab.until("document.querySelectorAll('canvas').length === 6")
    desk.tab.until("Number([...document.querySelectorAll('.legend li')].find((one) => one.textContent.trim().startsWith('all'))?.querySelector('b').textContent) === 3")


# --- accessibility ---

@pytest.fixture(scope='module')
def axe(tmp_path_factory):
    folder = tmp_path_factory.mktemp('axe')
    shutil.copytree(SOURCE / 'test/system/axe', folder, dirs_exist_ok=True)
    install_packages(folder)
    return (folder / 'node_modules/axe-core/axe.min.js').read_text()


PAGES = [((), 'team'), (('server',), 'Latency'), (('ns', 'lab', 'documents'), 'Another class'), (('ns', 'lab', 'documents', 'Note'), 'Beginning of the id'),
         (('ns', 'lab', 'documents', 'Note', 'axe'), 'Read again'), (('ns', 'lab', 'tasks'), 'History'), (('ns', 'team', 'accounts'), 'Find'),
         (('ns', 'lab', 'settings'), 'Quotas')]


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_no_page_has_a_known_obstacle(stack, desk, axe, scheme):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': {}}}, admin=True)
    stack.put('lab', {'c': 'Note', 'id': 'axe', 'items': [{'c': 'Main', 'j': {}}]})
    request_task(stack, 'axe')
    desk.tab.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])
    desk.tab.run(axe)
    for parts, words in PAGES:
        desk.go(*parts)
        desk.shows(words)
        found = desk.tab.run("(async () => (await axe.run()).violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(' ')}`))()")
        assert found == [], parts


def test_the_page_is_usable_on_a_phone_and_by_keyboard(desk):
    desk.tab.call('Emulation.setDeviceMetricsOverride', width=360, height=640, deviceScaleFactor=1, mobile=True)
    for parts, words in PAGES:
        desk.go(*parts)
        desk.shows(words)
        assert desk.tab.run('document.documentElement.scrollWidth') <= 360, parts
    desk.go()
    desk.shows('team')
    desk.tab.call('Input.dispatchKeyEvent', type='keyDown', key='Tab', code='Tab', windowsVirtualKeyCode=9)
    assert desk.tab.run('document.activeElement.tagName') in ('A', 'BUTTON', 'DIV')

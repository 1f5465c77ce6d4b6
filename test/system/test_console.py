"""The console in Chromium: what an administrator does there; what the page may not do; accessibility."""
import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import browser as browsers
from browser import Browser
from hands import BY_LABEL, WATCH, Hands, Keyboard
from manager import Manager
from schema import Schemas
from stack import PATIENCE_S, SOURCE, wait_until
from web import FETCHES, built_page, install_packages, serve_page

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not browsers.PROGRAM, reason='there is no Chromium (Debian: chromium-headless-shell)')]

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'team': 'rules', 'bare': 'rules'}}
PAGE_MOST = 70 * 1024  # bytes of all files of the page, compressed


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

    def rows(self, caption):
        """The texts of the cells of a table; none, while it is drawn again."""
        return self.tab.run(f'''[...document.querySelectorAll("table")].find((one) => one.caption?.textContent === {json.dumps(caption)})
            ?.tBodies[0].innerText.trim().split("\\n").map((row) => row.split("\\t").map((cell) => cell.trim())) ?? []''')

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


def test_the_session_of_an_account_survives_a_reload_and_no_other_tab_has_it(stack, browser, address):
    stack.op('z', 'ns', {'set': {'ns': 'z', 'accounts': {'session_days': 1}}}, admin=True)
    stack.op('z', 'accounts', {'create': {'name': 'dora', 'password': 'correct horse battery', 'roles': ['administrator']}}, admin=True)
    desk = Desk(browser, address)
    sign_in_by_account(desk, 'dora', 'correct horse battery')
    desk.shows('team')
    for _ in range(2):
        desk.tab.go('about:blank', is_ready='true')
        desk.tab.go(address, is_ready='document.querySelector("h1")')
        desk.shows('team')
    other = Desk(browser, address)
    other.shows("Administrator's key")
    other.tab.close()
    desk.click('Sign out')
    desk.shows("Administrator's key")
    desk.tab.go('about:blank', is_ready='true')
    desk.tab.go(address, is_ready='document.querySelector("h1")')
    desk.shows("Administrator's key")
    desk.tab.close()


def sign_in_by_account(desk, name, password):
    desk.click('Use an account')
    desk.fill('Name', name)
    desk.fill('Password', password)
    desk.click('Sign in')


def test_an_administrator_signs_in_with_an_account(stack, browser, address):
    stack.op('z', 'ns', {'set': {'ns': 'z', 'accounts': {'session_days': 1}}}, admin=True)
    create = lambda name, roles: stack.op('z', 'accounts', {'create': {'name': name, 'password': 'correct horse battery', 'roles': roles}}, admin=True)['out']['account']  # noqa: E731
    ann = create('ann', ['administrator'])
    create('bob', ['reader'])
    desk = Desk(browser, address)
    sign_in_by_account(desk, 'ann', 'not her password')
    desk.shows('The name or the password is wrong.')
    desk.fill('Name', 'bob')
    desk.fill('Password', 'correct horse battery')
    desk.click('Sign in')
    desk.shows("This is not the administrator's key.")
    desk.fill('Name', 'ann')
    desk.fill('Password', 'correct horse battery')
    desk.click('Sign in')
    desk.shows('team')
    sessions = lambda: stack.op('z', 'accounts', {'get': ann}, admin=True)['out']['sessions']  # noqa: E731
    assert [one['device'] for one in sessions()] == ['console']
    desk.click('Sign out')
    wait_until(lambda: sessions() == [], what='the end of the session')
    sign_in_by_account(desk, 'ann', 'correct horse battery')
    desk.shows('team')
    stack.op('z', 'accounts', {'set': {'account': ann, 'disabled': True}}, admin=True)
    desk.go('warnings')
    desk.shows("Administrator's key")
    desk.tab.close()


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


def test_a_queue_of_workers_gets_a_key_and_records_get_rules(stack, desk):
    desk.go('ns', 'lab', 'settings')
    desk.fill('Operations of a new queue', 'resize crop')
    desk.click('Add a queue')
    desk.shows('The key of the workers of queue 16')
    key = desk.tab.run("document.querySelector('.secret code').textContent")
    desk.fill('Rules of records (JSON)', '[{"prefix": "here.", "read": "anyone", "write": "anyone", "ttl_ms": 30000}]')
    desk.click('Save')
    desk.shows('Saved.')
    configuration = stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out']
    (queue,) = configuration['workers']
    assert (queue['qn'], queue['ops'], queue['key']) == (16, ['resize', 'crop'], hashlib.sha256(key.encode()).hexdigest())
    assert [rule['prefix'] for rule in configuration['records']] == ['here.']
    assert stack.request('POST', '/lab/op/take', json={'param': {'qn': 16}}, headers={'Authorization': f'Bearer {key}'}).json()['out']['tasks'] == []
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'workers': None, 'records': None}}, admin=True)


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


def test_a_document_of_many_items_is_drawn_in_parts(stack, desk):
    """Each item is an editor, and the page must not freeze: 50 are drawn, others are found by class and key."""
    for start in range(0, 20000, 1000):
        stack.put('lab', {'c': 'Note', 'id': 'many', 'items': [{'c': 'Row', 'k': f'{number:05}', 'j': number} for number in range(start, start + 1000)]})
    stack.put('lab', {'c': 'Note', 'id': 'some', 'items': [{'c': 'Row', 'k': f'{number:05}', 'j': number} for number in range(60)]})
    drawn, elements = "document.querySelectorAll('textarea').length", "document.querySelectorAll('*').length"
    desk.go('ns', 'lab', 'documents', 'Note', 'some')
    desk.shows('60 of 60 items')
    few = desk.tab.run(elements)
    desk.go('ns', 'lab', 'documents', 'Note', 'many')
    desk.shows('20,000 of 20,000 items')
    assert (desk.tab.run(drawn), desk.tab.run(elements)) == (50, few)
    save = desk.element('Save')
    assert desk.tab.run(f'(() => {{ const {{ top, bottom }} = {save}.getBoundingClientRect(); return 0 <= top && bottom <= innerHeight }})()'), 'it is in sight above 50 editors'
    desk.click('Show 50 more of 19,950')
    desk.tab.until(f'{drawn} === 100')
    desk.fill('Row / 00001', '"edited"')
    desk.fill('Items', '/19999')
    desk.tab.until(f'{drawn} === 1')
    desk.fill('Row / 19999', '"too"')
    desk.click('Save')
    rows = lambda: {item['k']: item['j'] for item in stack.get('lab', ('Note', 'many'))['items']}  # noqa: E731
    wait_until(lambda: [rows()[key] for key in ('00000', '00001', '19998', '19999')] == [0, 'edited', 19998, 'too'], what='both changes')


def test_an_item_is_removed_and_raw_text_stays_raw(stack, desk):
    stack.put('lab', {'c': 'Note', 'id': 'raw', 'items': [{'c': 'Text', 's': 'as it is'}, {'c': 'Line', 'k': '1', 'j': {'a': 1}}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'raw')
    desk.fill('Text raw text', 'not {JSON')
    desk.tab.run("[...document.querySelectorAll('.item')].find((one) => one.innerText.includes('Line / 1')).querySelector('button').click()")
    desk.shows('will be removed')
    desk.click('Save')
    wait_until(lambda: [(item['c'], item.get('s')) for item in stack.get('lab', ('Note', 'raw'))['items']] == [('Text', 'not {JSON')], what='the change')
    desk.misses('will be removed')
    desk.click('Show removed items')
    desk.shows('Those before')
    desk.tab.until("document.querySelector('table caption') !== null")
    assert [row[0] for row in desk.rows('Removed items')] == ['Line / 1']


JSON_TEXT = '{"name": "a \\"b\\"", "n": [-1.5e3, 2], "yes": true, "no": null}'
# What has each colour; and whether each text stands over its colours.
COLOURED = """Object.fromEntries(['name', 'text', 'number', 'word'].map((kind) => [kind, [...CSS.highlights.get(`json-${kind}`)]
    .map((one) => one.startContainer.data.slice(one.startOffset, one.endOffset))]))"""


def test_json_is_edited_in_colours(stack, desk):
    """The colours are of the letters beneath those that are typed; both have the same lines."""
    stack.put('lab', {'c': 'Note', 'id': 'coloured', 'items': [{'c': 'Main', 'j': json.loads(JSON_TEXT)}, {'c': 'Raw', 's': '{"raw": 1}'}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'coloured')
    desk.tab.until("document.querySelectorAll('textarea').length === 2")
    wanted = {'name': ['"name"', '"n"', '"yes"', '"no"'], 'text': ['"a \\"b\\""'], 'number': ['-1500', '2'], 'word': ['true', 'null']}
    assert desk.tab.run(COLOURED) == wanted
    assert desk.tab.run('''(() => { const [pre, area] = document.querySelector('.code').children, [a, b] = [pre, area].map((one) => one.getBoundingClientRect())
        return [a.x === b.x, a.y === b.y, a.width === b.width, a.height === b.height, area.scrollHeight <= area.clientHeight, getComputedStyle(area).webkitTextFillColor] })()''') == [True] * 5 + ['rgba(0, 0, 0, 0)']
    desk.fill('Main', '{"half": tru')  # it need not be valid
    wait_until(lambda: desk.tab.run(COLOURED) == {'name': ['"half"'], 'text': [], 'number': [], 'word': []}, what='the colours of what is typed')
    desk.fill('Main', json.dumps([f'line {n}' for n in range(100)], indent=1))
    wait_until(lambda: len(desk.tab.run(COLOURED)['text']) == 100, what='the colours of what is longer than before')
    assert desk.tab.run("(() => { const area = document.querySelector('.code textarea'); return area.scrollHeight <= area.clientHeight && document.querySelector('.code').scrollHeight > document.querySelector('.code').clientHeight })()")
    desk.fill('Main', json.dumps('x' * 200000))  # too long for colours
    wait_until(lambda: desk.tab.run(COLOURED)['text'] == [], what='the end of the colours')
    assert desk.tab.run("getComputedStyle(document.querySelector('.code textarea')).webkitTextFillColor") != 'rgba(0, 0, 0, 0)'
    desk.click('Discard and refresh')
    wait_until(lambda: desk.tab.run(COLOURED) == wanted, what='the document as it is stored')
    desk.go('queues')
    desk.shows('Queue manager')
    wait_until(lambda: not any(desk.tab.run(COLOURED).values()), what='no colours of what is not shown')


def test_what_was_read_before_is_not_shown_while_it_is_read_again(stack, desk):
    """A press on it would be lost when the answer comes."""
    stack.put('lab', {'c': 'Note', 'id': 'twice', 'items': [{'c': 'Main', 'j': 1}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'twice')
    desk.shows('Show removed items')
    shown = desk.tab.run('''(async () => {
        [...document.querySelectorAll('button')].find((one) => one.textContent === 'Refresh').click()
        for (let i = 0; i < 20; i++) await null  // it is drawn again in a microtask
        return document.querySelector('main').innerText
    })()''')
    assert 'Loading' in shown and 'Show removed items' not in shown
    desk.shows('Show removed items')


def test_another_writer_is_not_overwritten(stack, desk):
    stack.put('lab', {'c': 'Note', 'id': 'shared', 'items': [{'c': 'Main', 'j': 1}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'shared')
    desk.fill('Main', '2')
    stack.put('lab', {'c': 'Note', 'id': 'shared', 'items': [{'c': 'Main', 'j': 3}]})
    desk.click('Save')
    desk.shows('AVERSION')
    assert stack.get('lab', ('Note', 'shared'))['items'][0]['j'] == 3
    desk.click('Discard and refresh')
    wait_until(lambda: desk.value('Main') == '3', what='the content of the other')


def test_what_another_writer_has_stored_is_shown_beside_mine(stack, desk):
    item = lambda text, size: {'c': 'Main', 'j': {'text': text, 'size': size}}  # noqa: E731
    stack.put('lab', {'c': 'Note', 'id': 'both', 'items': [item('first', 1), {'c': 'Side', 'j': 1}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'both')
    desk.fill('Main', '{"text": "mine", "size": 1}')
    stack.put('lab', {'c': 'Note', 'id': 'both', 'items': [item('theirs', 1), {'c': 'Side', 'j': 2}]})
    desk.click('Save')
    desk.shows('Another client was faster')
    desk.shows('stay as they are: Side')  # changed by the other, and not edited here
    marked = lambda: desk.tab.run("[...document.querySelectorAll('.differences mark')].map((one) => one.textContent.trim())")  # noqa: E731
    wait_until(lambda: marked() == ['"text": "theirs",', '"text": "mine",'], what='the lines that differ')
    desk.click('Save mine over theirs')
    desk.misses('Another client was faster')
    wait_until(lambda: [one['j'] for one in stack.get('lab', ('Note', 'both'))['items']] == [{'text': 'mine', 'size': 1}, 2], what='mine, and the other item as it was')


def test_edits_are_kept_when_one_looks_at_something_else(stack, desk):
    stack.put('lab', {'c': 'Note', 'id': 'left', 'items': [{'c': 'Main', 'j': 1}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'left')
    desk.fill('Main', '"half a thought"')
    desk.go('warnings')
    desk.shows('Refresh')
    desk.go('ns', 'lab', 'documents', 'Note', 'left')
    desk.shows('Your edits are still here, and not saved.')
    assert desk.value('Main') == '"half a thought"'
    desk.tab.until("!dispatchEvent(new Event('beforeunload', { cancelable: true }))")  # the browser asks
    desk.click('Save')
    desk.misses('Your edits are still here')
    wait_until(lambda: stack.get('lab', ('Note', 'left'))['items'][0]['j'] == 'half a thought', what='the change')
    desk.tab.until("dispatchEvent(new Event('beforeunload', { cancelable: true }))")


def test_edits_of_a_document_that_others_have_changed_say_so(stack, desk):
    stack.put('lab', {'c': 'Note', 'id': 'moved', 'items': [{'c': 'Main', 'j': 1}, {'c': 'Line', 'k': 'a', 'j': 1}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'moved')
    desk.fill('Line / a', '"kept"')
    desk.go('warnings')
    desk.shows('Refresh')
    stack.put('lab', {'c': 'Note', 'id': 'moved', 'items': [{'c': 'Main', 'j': 2}, {'c': 'Line', 'k': 'a', 'del': True}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'moved')
    desk.shows('Others have changed the document since you began')
    assert desk.value('Main') == '2'
    desk.click('Discard and refresh')
    desk.misses('Your edits are still here')


def test_without_a_network_nothing_is_lost(stack, desk):
    stack.put('lab', {'c': 'Note', 'id': 'away', 'items': [{'c': 'Main', 'j': {'a': 1}}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'away')
    desk.fill('Main', '{"a": 2}')
    desk.tab.network(False)
    desk.click('Save')
    desk.shows('The server cannot be reached.')
    assert desk.value('Main') == '{"a": 2}'
    desk.go('ns', 'lab', 'schema')
    desk.shows('The server cannot be reached.')
    desk.tab.network(True)
    desk.go('ns', 'lab', 'documents', 'Note', 'away')
    wait_until(lambda: desk.value('Main') == '{"a": 2}', what='the edit')
    desk.click('Save')
    wait_until(lambda: stack.get('lab', ('Note', 'away'))['items'][0]['j'] == {'a': 2}, what='the change')


def test_a_request_is_copied_as_a_program(stack, desk):
    """Each of them runs as it stands, with the key in a variable."""
    stack.put('lab', {'c': 'Note', 'id': "it's", 'items': [{'c': 'Main', 'j': {'text': 'a "quoted" text', 'is': None}}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'it%27s')
    environment = {**os.environ, 'KEY': stack.key, 'SSL_CERT_FILE': str(stack.path / 'etc/certificate.pem'), 'CURL_CA_BUNDLE': str(stack.path / 'etc/certificate.pem'),
                   'PYTHONPATH': str(SOURCE / 'src/python')}
    for kind, *command in (('curl', 'bash', '-c'), ('Python', '/usr/bin/python3', '-c')):
        desk.click(kind)
        desk.shows('Copied.')
        program = desk.tab.run("document.querySelector('.copy pre').textContent")
        assert stack.key not in program
        done = subprocess.run([*command, program], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        assert "it's" in done.stdout and 'quoted' in done.stdout
    desk.click('JavaScript')
    desk.shows('import { open } from \'stampd-client\'')


# --- columns ---

@pytest.fixture(scope='module')
def shelf(stack):
    fields = {'title': 'string', 'pages': 'int', 'tags': 'string[]'}
    content = {'type': 'object', 'required': ['title'], 'properties': {
        'title': {'type': 'string'}, 'pages': {'type': 'integer'}, 'kind': {'type': 'string', 'enum': ['novel', 'poem']}, 'is': {'type': 'boolean'}, 'tags': {'type': 'array'}}}
    classes = {'Book': {'open': True, 'items': {'Main': {'singleton': True, 'fields': fields}}}, 'Leaf': {'open': True, 'items': {'Main': {'singleton': True, 'content': content}}}}
    stack.op('z', 'schema', {'set': {'ns': 'team', 'schema': {'classes': classes}}}, admin=True)
    stack.admin('schema', 'apply', 'team')
    for id_, title, pages, tags in (('b1', 'Ulysses', 730, ['long']), ('b2', 'Emma', 474, []), ('b3', 'Ulalume', 4, ['poem', 'short'])):
        stack.put('team', book(id_, title, pages, tags), admin=True)
    return classes


def book(id_, title, pages, tags=()):
    return {'c': 'Book', 'id': id_, 'items': [{'c': 'Main', 'j': {'title': title, 'pages': pages, 'tags': list(tags)}}]}


BOOKS = 'Documents of Book by Main'


def test_documents_are_a_table_of_their_fields_sorted_and_filtered_by_the_server(stack, desk, shelf):
    desk.go('ns', 'team', 'documents', 'Book')
    titles = lambda *wanted: wait_until(lambda: [row[3] for row in desk.rows(BOOKS) if len(row) > 3] == list(wanted), what=f'{wanted}')  # noqa: E731
    titles('Ulysses', 'Emma', 'Ulalume')
    assert [row[:4] for row in desk.rows(BOOKS)][2] == ['b3', '4', 'poem, short', 'Ulalume']
    desk.click('pages')
    titles('Ulalume', 'Emma', 'Ulysses')
    desk.click('pages')
    titles('Ulysses', 'Emma', 'Ulalume')

    def filter_(name, text):
        desk.act(f'document.querySelector(\'[aria-label="{name}"]\')', f"one.value = {json.dumps(text)}; one.dispatchEvent(new Event('input', {{ bubbles: true }}))")
    filter_('Filter title', 'Ul')
    titles('Ulysses', 'Ulalume')
    filter_('Filter pages', '< 100')
    titles('Ulalume')
    filter_('Filter title', '=Emma')
    desk.shows('Nothing matches these filters.')
    filter_('Filter title', '')
    filter_('Filter pages', '')
    filter_('Filter tags', 'sho')
    titles('Ulalume')
    filter_('Filter tags', '')
    filter_('Filter by the beginning of the id', 'b2')
    titles('Emma')
    desk.click('All documents by their ids')
    desk.shows('Id begins with')


def test_rows_that_change_are_marked(stack, desk, shelf):
    desk.go('ns', 'team', 'documents', 'Book')
    wait_until(lambda: len(desk.rows(BOOKS)) == 3, what='the books')
    desk.tab.run("window.seen = []; new MutationObserver(() => { for (const one of document.querySelectorAll('tr.fresh th a')) seen.push(one.textContent) }).observe(document.body, { childList: true, subtree: true })")

    def changes():  # until the page follows the class
        stack.put('team', book('b2', 'Emma', 475), admin=True)
        return 'b2' in desk.tab.run('seen')
    wait_until(changes, what='the mark')
    wait_until(lambda: ['b2', '475', '', 'Emma'] in [row[:4] for row in desk.rows(BOOKS)], what='the change')
    assert set(desk.tab.run('seen')) == {'b2'}
    stack.put('team', book('b2', 'Emma', 474), admin=True)


def test_an_item_has_a_form_of_its_declared_members_beside_the_json(stack, desk, shelf):
    """Here of a JSON Schema; without one, of the fields that can be searched.  Members that are not declared stay as they are."""
    stack.put('team', {'c': 'Leaf', 'id': 'l', 'items': [{'c': 'Main', 'j': {'title': 'Emma', 'more': {'x': 1}}}]}, admin=True)
    desk.go('ns', 'team', 'documents', 'Leaf', 'l')
    desk.fill('title *', 'Emma, again')
    desk.fill('kind', 'novel')
    desk.fill('is', 'true')
    desk.act(BY_LABEL.format(text=json.dumps('pages')), "one.value = '474'; one.dispatchEvent(new Event('change', { bubbles: true }))")
    wait_until(lambda: json.loads(desk.value('Main')) == {'title': 'Emma, again', 'more': {'x': 1}, 'kind': 'novel', 'is': True, 'pages': 474}, what='the JSON')
    desk.fill('Main', '{"title": "by hand"')
    desk.shows('The fields are back when the JSON is an object.')
    desk.fill('Main', '{"title": "by hand", "pages": 3}')
    wait_until(lambda: (desk.value('title *'), desk.value('pages')) == ('by hand', '3'), what='the fields')
    desk.click('Save')
    read = lambda: stack.op('team', 'get', {'docs': [{'c': 'Leaf', 'id': 'l'}]}, admin=True)['out']['docs'][0]['items'][0]['j']  # noqa: E731
    wait_until(lambda: read() == {'title': 'by hand', 'pages': 3}, what='the change')


def test_the_fields_of_a_search_are_a_form_where_no_content_is_declared(stack, desk, shelf):
    stack.put('team', book('form', 'Emma', 474, ['long']), admin=True)
    desk.go('ns', 'team', 'documents', 'Book', 'form')
    desk.fill('title', 'Emma, again')
    wait_until(lambda: json.loads(desk.value('Main')) == {'title': 'Emma, again', 'pages': 474, 'tags': ['long']}, what='the JSON')
    assert desk.value('pages') == '474'
    desk.click('Discard and refresh')
    stack.op('team', 'put', {'docs': [{'c': 'Book', 'id': 'form', 'delete': True}]}, admin=True)


def test_an_address_that_is_typed_by_hand(desk):
    desk.go('ns', 'lab', 'documents', '100%')
    desk.shows('Classes › 100%')


def test_places_are_found_by_some_letters(stack, desk, shelf):
    desk.go('ns', 'team', 'documents')
    desk.shows('Another class')
    keys = Keyboard(desk.tab)
    desk.tab.call('Input.dispatchKeyEvent', type='keyDown', modifiers=2, key='k', code='KeyK', windowsVirtualKeyCode=75)
    desk.tab.until("document.activeElement.placeholder === 'A page, a namespace, a class'")
    keys.type('tmbk')
    desk.shows('team › Book', '#places')
    keys.enter()
    desk.shows('Documents of Book', 'caption')
    assert desk.tab.run('location.hash') == '#/ns/team/documents/Book'


def test_files_are_attached_downloaded_and_removed(stack, desk):
    stack.put('lab', {'c': 'Note', 'id': 'files', 'items': [{'c': 'Line', 'k': '1', 'j': 1}]})
    desk.go('ns', 'lab', 'documents', 'Note', 'files')
    desk.shows('Attach')
    desk.tab.run('''(() => {
        const input = document.querySelector('input[type=file]'), picked = new DataTransfer()
        picked.items.add(new File(['the content'], 'a b.txt', { type: 'text/plain' }))
        input.files = picked.files
        input.dispatchEvent(new Event('change', { bubbles: true }))
    })()''')
    wait_until(lambda: desk.value('Key of the attachment') == 'a b.txt', what='the key')
    desk.click('Attach')
    desk.shows('File of 11 B, text/plain')
    assert stack.http.get(f'{stack.url}/lab/doc/Note/files/file/a%20b.txt', timeout=PATIENCE_S).content == b'the content'
    desk.tab.run("URL.createObjectURL = (file) => { window.saved = file; return 'blob:none' }; HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download }")
    desk.click('Download a b.txt')
    desk.tab.until("window.savedAs === 'a b.txt'")
    assert desk.tab.run('saved.text()') == 'the content'
    desk.tab.run("[...document.querySelectorAll('.item')].find((one) => one.innerText.includes('a b.txt')).querySelector('.hint button').click()")
    desk.shows('will be removed')
    desk.click('Save')
    desk.misses('File of 11 B')
    wait_until(lambda: stack.http.get(f'{stack.url}/lab/doc/Note/files/file/a%20b.txt', timeout=PATIENCE_S).status_code == 404, what='the removal')


def test_rights_are_explained(stack, desk):
    rules = {'Memo': {'owner': 'Main.owner', 'read': ['role:reader', 'owner'], 'update': ['owner'], 'items': {'Secret': {'see': []}}}}
    stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': {}, 'rules': rules}}, admin=True)
    eve = stack.op('team', 'accounts', {'create': {'name': 'eve', 'password': 'correct horse battery'}}, admin=True)['out']['account']
    stack.put('team', {'c': 'Memo', 'id': 'm', 'items': [{'c': 'Main', 'j': {'owner': eve}}, {'c': 'Secret', 'j': 1}]}, admin=True)
    desk.go('ns', 'team', 'documents', 'Memo', 'm')
    desk.shows('Rights of a caller')
    desk.click('Rights of a caller')
    desk.click('Explain')
    desk.shows('Nobody signed in')
    assert desk.rows('Rights') == [['read', 'refused', 'Memo.read'], ['list', 'refused', 'Memo.list'], ['update', 'refused', 'Memo.read'], ['delete', 'refused', 'Memo.read'],
                                   ['see items Main', 'refused', 'Memo.read'], ['write items Main', 'refused', 'Memo.read'],
                                   ['see items Secret', 'refused', 'Memo.read'], ['write items Secret', 'refused', 'Memo.read']]
    for who in ('eve', eve):
        desk.fill('Account', who)
        desk.click('Explain')
        desk.shows(f'{who}.')
        assert [row[1:] for row in desk.rows('Rights')][:4] == [['allowed', 'Memo.read[1]'], ['refused', 'Memo.list'], ['allowed', 'Memo.update[0]'], ['refused', 'Memo.delete']]
        assert desk.rows('Rights')[6] == ['see items Secret', 'refused', 'Memo.items.Secret.see']
    desk.fill('Account', 'whoever')
    desk.click('Explain')
    desk.shows('This account is not served')
    desk.fill('Roles to try', 'reader')
    desk.click('Explain')
    desk.shows('roles reader')
    assert desk.rows('Rights')[0] == ['read', 'allowed', 'Memo.read[0]']


def test_a_request_is_explained_and_a_table_of_cases_is_run(stack, desk):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': {}, 'rules': {'Memo': {'owner': 'Main.owner', 'read': ['role:reader', 'owner'], 'create': ['account']}}}}, admin=True)
    desk.go('ns', 'team', 'rules')
    desk.fill('Class', 'Memo')
    desk.fill('Document', 'not there')
    desk.fill('Account', 'whoever')
    desk.fill('Roles to try', 'reader')
    desk.click('Explain')
    desk.shows('whoever, roles reader.')
    assert desk.rows('Rights') == [['create', 'allowed', 'Memo.create[0]']]

    case = {'caller': {'account': 'ann', 'roles': ['reader']}, 'may': 'read', 'document': {'c': 'Memo', 'id': 'x'}}
    table = {'cases': [{**case, 'name': 'a reader', 'expected': True}, {**case, 'caller': {'account': 'bob'}, 'expected': True}], 'rules': {'Memo': {'read': ['account']}}}
    desk.fill('Table of cases (JSON)', json.dumps(table))
    desk.click('Test')
    desk.shows('2 cases, 1 failed.')
    assert desk.rows('Cases') == [['a reader', 'ann (reader)', 'read Memo/x', 'allowed', 'Memo.read[0]', 'as expected'],
                                  ['cases[1]', 'bob', 'read Memo/x', 'refused', 'Memo.read', 'expected: allowed']]
    desk.act(BY_LABEL.format(text=json.dumps('By the rules of the namespace')), 'one.click()')
    desk.click('Test')
    desk.shows('2 cases, 0 failed.')
    table['cases'][1]['may'] = 'fly'
    desk.fill('Table of cases (JSON)', json.dumps(table))
    desk.click('Test')
    desk.shows('/param/cases/1/may')
    desk.fill('Table of cases (JSON)', '{')
    desk.click('Test')
    desk.shows('Table: ')


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
    desk.fill('Id begins with', 'p05')
    wait_until(lambda: desk.tab.run("document.querySelectorAll('tbody tr').length") == 10, what='the documents with this beginning')


def test_a_query_has_its_pages_and_the_index_that_it_needs(stack, desk, shelf, tmp_path):
    main = {'singleton': True, 'fields': {'room': 'string', 'at': 'long', 'size': 'int'}, 'indexes': [['room', '-at']]}
    Schemas(stack, tmp_path).apply('team', {**shelf, 'Post': {'items': {'Main': main}}})
    for start in range(0, 120, 30):
        stack.put('team', *({'c': 'Post', 'id': f'q{n:03}', 'items': [{'c': 'Main', 'j': {'room': 'hall', 'at': n, 'size': n % 7}}]} for n in range(start, start + 30)), admin=True)
    desk.go('ns', 'team', 'documents', 'Post')
    desk.click('Query')
    desk.fill('Conditions', '{"f":"room","t":"eq","v1":"hall"}')
    desk.fill('Order', '-at')
    desk.click('Run the query')
    desk.shows('An index that is declared serves this order')
    ids = [row[0] for row in desk.rows('Results of the query')]
    assert ids == [f'q{n:03}' for n in range(119, 19, -1)]
    desk.click('More results')
    wait_until(lambda: [row[0] for row in desk.rows('Results of the query')] == [f'q{n:03}' for n in range(119, -1, -1)], what='the second page')
    desk.fill('Order', 'size, at')
    desk.click('Run the query')
    desk.shows('["room","size","at"]')
    desk.fill('Conditions', '{"f":')
    desk.click('Run the query')
    wait_until(lambda: desk.tab.run("document.querySelector('.refusal')?.innerText"), what='the refusal')
    desk.fill('Conditions', '{"f":"text","t":"eq","v1":"hall"}')
    desk.click('Run the query')
    desk.shows('NFIELD')


# --- tasks ---

def request_task(stack, info):
    return stack.op('lab', 'task', {'op': 'put', 'param': {'docs': [{'c': 'Done', 'id': info}]}, 'delay': 36000, 'info': info})['out']['id']


def test_a_task_is_held_moved_and_dropped(stack, desk):
    id_ = request_task(stack, 'from the console')
    desk.go('ns', 'lab', 'tasks')
    desk.fill('Information begins with', 'from the con')
    desk.shows('waiting')
    desk.click(id_)
    desk.click('Hold')
    desk.shows('held')
    desk.go('ns', 'lab', 'tasks')
    desk.fill('State', 'parked')
    desk.shows('There are no such tasks.')
    desk.fill('State', 'held')
    desk.tab.until("[...document.querySelectorAll('caption')].some((one) => one.textContent === 'Tasks')")
    assert [(row[0], row[2]) for row in desk.rows('Tasks')] == [(id_, 'held')]
    desk.click(id_)
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


def test_tasks_of_all_namespaces_are_on_one_page(stack, desk):
    here = request_task(stack, 'later')
    there = stack.psql('team', "select task_create('put', startat => 200101000000000)")[0][0]
    stack.psql('lab', 'update taskqueue set startat = 200101000000000 where taskid = %s', (here,))
    desk.click('Tasks')
    desk.shows(there)
    assert [(row[0], row[1], row[3]) for row in desk.rows('Tasks of all namespaces')] == [(here, 'lab', 'waiting'), (there, 'team', 'waiting')]
    stack.psql('team', 'select task_hold(%s)', (there,))
    desk.fill('Show', 'parked')
    desk.shows('There are no such tasks.')
    stack.admin('ns', 'state', 'team', 'gone')
    wait_until(lambda: stack.ping('team').json()['state'] == 3, what='the state, which the page reads once')
    desk.fill('Show', 'due')
    desk.shows('The tasks of team could not be read: OGONE')
    stack.admin('ns', 'state', 'team', 'on')
    desk.click(here)
    desk.shows('Hold')
    for ns, one in (('lab', here), ('team', there)):
        stack.psql(ns, 'select task_drop(%s)', (one,))


def test_the_progress_and_the_trace_of_a_task_are_shown(stack, desk):
    """Of a task that an external worker has taken, and of its attempt."""
    trace, worker = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'key-of-the-queue'
    queue = {'qn': 16, 'ops': ['resize'], 'key': hashlib.sha256(worker.encode()).hexdigest(), 'request': 'anybody'}
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'workers': [queue]}}, admin=True)

    def call(name, **param):
        return stack.request('POST', f'/lab/op/{name}', json={'param': param}, headers={'Authorization': f'Bearer {worker}'}).json()['out']
    id_ = stack.request('POST', '/lab/op/task', json={'param': {'op': 'resize', 'info': 'with a trace'}},
                        headers={'traceparent': trace, 'tracestate': 'shop=t61rcWkgMzE'}).json()['out']['id']
    (task,) = call('take', qn=16)['tasks']
    claim = {name: task[name] for name in ('id', 'starttime', 'retry')}
    call('keep', **claim, claim=3600, progress='half of <it>')
    desk.go('ns', 'lab', 'tasks')
    desk.fill('Information begins with', 'with a trace')
    desk.shows('half of <it>')
    wait_until(lambda: [(row[0], row[2], row[7]) for row in desk.rows('Tasks')] == [(id_, 'running', 'half of <it>')], what='the row')
    desk.click(id_)
    desk.shows(f'{trace} shop=t61rcWkgMzE')
    call('done', **claim)
    desk.go('ns', 'lab', 'tasks')
    desk.shows('No tasks wait or run.')
    wait_until(lambda: [row[2] for row in desk.rows('Queues') if row[:2] == ['16', 'resize']] not in ([], ['0']), what='the queue, with its operation and how many a minute')
    desk.go('ns', 'lab', 'tasks', id_)
    desk.shows('This task is done or was dropped.')
    desk.shows(trace[3:35])


def test_periodic_tasks_have_their_next_times(stack, desk):
    stack.admin('cron', 'add', 'lab', 'Nightly', 'D0315', 'put', '--param', '{"docs":[]}')
    desk.go('ns', 'lab', 'tasks')
    desk.shows('Periodic tasks')
    desk.shows('Nightly')
    assert desk.rows('Periodic tasks')[0][:4] == ['Nightly', 'put', 'D0315', 'unplanned']
    Manager(stack, 'lab').scan()
    desk.go('ns', 'lab', 'settings')
    desk.shows('Quotas')
    desk.go('ns', 'lab', 'tasks')
    desk.shows('planned')
    row = desk.rows('Periodic tasks')[0]
    assert row[3] == 'planned' and ':15:00' in row[4]
    desk.click('Nightly')
    desk.shows('Run now')
    stack.admin('cron', 'drop', 'lab', 'Nightly')


# --- queues ---

def test_tasks_are_paused_and_resumed(stack, desk):
    paused = lambda: [one.get('op', one.get('qn')) for one in stack.op('lab', 'tasks', {'backlog': True}, admin=True)['out']['paused']]  # noqa: E731
    stack.psql('lab', "select task_create('put', startat => 400101000000000)")
    desk.go('ns', 'lab', 'tasks')
    desk.fill('Pause an operation', 'put')
    desk.click('Pause it')
    desk.shows('Operation put')
    desk.click('Pause')
    desk.shows('Queue 0')
    assert paused() == ['put', 0]
    desk.click('Resume')
    desk.misses('Operation put')
    desk.click('Resume')
    desk.misses('Queue 0')
    assert paused() == []


def is_paused(stack):
    return stack.request('POST', '/qm/op', json={'op': 'list', 'key': stack.queue_key}).json()['out']['suspended']


def test_a_queue_manager_is_paused_and_resumed(stack, desk):
    stack.step('queue', 'start')
    try:
        desk.go('queues')
        desk.shows('running')
        desk.click('Pause')
        desk.shows('paused')
        wait_until(lambda: is_paused(stack), what='the pause')
        desk.click('Resume')
        desk.shows('places used')
        wait_until(lambda: not is_paused(stack), what='the end of the pause')
        desk.misses('paused')
        desk.fill('Queue manager', 'qmnone')
        desk.click('Show')
        desk.tab.until("document.querySelector('.refusal') !== null")
        assert desk.tab.run("Boolean(document.querySelector('header nav'))"), 'a refusal of a manager does not sign out'
    finally:
        stack.step('queue', 'stop')


# --- schema ---

def test_a_schema_is_declared_and_its_progress_shown(stack, desk):
    desk.go('ns', 'lab', 'schema')
    desk.shows('The declaration is applied.')
    desk.fill('Declaration (JSON)', '{"classes": {"Shop": {"zombieDays": -1}}}')
    desk.click('Check')
    desk.shows('/param/check/classes/Shop/zombieDays')
    desk.fill('Declaration (JSON)', '{"classes": {"Shop": {"items": {"Main": {"singleton": true, "fields": {"town": "string"}}}}}}')
    desk.click('Check')
    desk.shows('The declaration is valid: 1 classes.')
    desk.click('Declare')
    desk.shows('Declared.')
    desk.shows('create')
    assert desk.rows('Plan') == [['Shop', 'create']]
    assert [*stack.op('z', 'schema', {'get': 'lab'}, admin=True)['out']['schema']['classes']] == ['Shop']
    desk.click('Show the steps')
    desk.shows('It waits for')
    watch = subprocess.Popen(stack.admin_words('schema', 'watch'), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        desk.shows('x_Shop_Main')
        desk.click('Apply')
        desk.click('Apply', 'dialog[open] button')
        desk.shows('lab: the declaration is applied')  # what the command has printed
        desk.shows('The declaration is applied.')  # without being asked again
    finally:
        watch.terminate()
        watch.wait()
    stack.psql('lab', "insert into schema_fill values ('Shop', 'Main', '', 42)")
    desk.shows('in progress')
    assert desk.rows('Being filled') == [['Shop', 'fields of Main', '42']]
    stack.psql('lab', 'delete from schema_fill')
    desk.shows('All that is applied can be used.')


# --- warnings ---

def test_recent_warnings_are_shown(stack, desk):
    pid = stack.kill_worker()
    wait_until(lambda: f'pid={pid}' in stack.log(), what='the end of the worker')  # it may have accepted what comes before
    found = lambda: [one for one in stack.op('z', 'warnings', {'limit': 256}, admin=True)['out']['warnings'] if f'pid={pid}' in one['text']]  # noqa: E731
    wait_until(found, what='the line of the log')
    (line,) = found()
    assert line['level'] == 'error' and line['pid'] != pid and line['at'] > 260101000000000
    wait_until(lambda: line['text'] in stack.log(), what='the same line in the log')
    assert stack.key not in json.dumps(stack.op('z', 'warnings', {'limit': 256}, admin=True))
    desk.go('warnings')
    desk.shows(line['text'])
    read = lambda limit: stack.op('z', 'warnings', {'limit': limit}, admin=True)['out']['warnings']  # noqa: E731
    wait_until(lambda: read(1) == read(256)[:1], what='two answers without a new line between them')
    for param, ns in (({'limit': 0}, 'z'), ({'limit': 257}, 'z'), ({}, 'lab')):
        assert stack.request('POST', f'/{ns}/op/warnings', json={'param': param}, admin=True).json()['code'] == 'AARG'
    assert stack.request('POST', '/z/op/warnings', json={}).json()['code'] == 'SCLOSED'


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
    stack.op('team', 'accounts', {'create': {'name': 'bob', 'password': 'correct horse battery'}}, admin=True)
    desk.go('ns', 'team', 'accounts')
    desk.shows('bob')
    desk.shows('editor reader')
    desk.fill('Name', 'A')
    desk.misses('bob')
    desk.click('ann')
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

def test_charts_begin_with_the_last_hour(stack, desk):
    """Samples that the server has kept are drawn at once, without a second answer of it; that it has begun within the hour is said."""
    desk.tab.run(HOUR)
    desk.tab.run('''{
        const usual = CanvasRenderingContext2D.prototype.fillText
        window.drawn = []
        CanvasRenderingContext2D.prototype.fillText = function (text, ...more) { drawn.push(text); usual.call(this, text, ...more) }
    }''')
    desk.go('server')
    desk.shows('The charts begin with the start of the server')
    assert desk.tab.run('window.asked[0]') == 0
    shown = desk.tab.run("Object.fromEntries([...document.querySelectorAll('.legend li')].map((one) => [one.textContent.trim().split(' ')[0], one.querySelector('b').textContent]))")
    assert (shown['requests'], shown['commits'], shown['median'], shown['due']) == ('20', '10', '0.75', '7')
    second = "new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })"
    desk.tab.until(f"(() => {{ const times = drawn.filter((one) => one.includes(':')); return times.length > 0 && times.every((one) => one.length === {second}.format(0).length) }})()")


# The first answer has samples of a minute, each of 400 requests more than the one before; no other is answered.
HOUR = """{
    const usual = window.fetch
    window.asked = []
    window.fetch = async (path, init) => {
        if (!path.endsWith('/z/op/metrics')) return usual(path, init)
        const { after } = JSON.parse(init.body).param
        asked.push(after)
        if (asked.length > 1) return new Promise(() => {})
        const names = ['number', 'at', 'ms', 'requests', 'faults', 'commits', 'conflicts', 'hits', 'misses', 'due', 'running', 'parked', 'busy', 'workers', 'doubt', 'listeners', 'le_0.0005', 'le_0.001', 'le_+Inf']
        const stamp = (ms) => Number(new Date(Date.now() - ms).toISOString().slice(2, 23).replace(/\\D/g, ''))
        const row = (number, ago, n) => [number, stamp(ago), 1e6 - ago, 400 * n, 0, 200 * n, 0, 9 * n, n, 7, 0, 0, 1, 4, 0, 2, 0, 400 * n, 0]
        const out = { every_s: 20, generation: 1, names, samples: [row(1, 60000, 1), row(2, 40000, 2), row(3, 20000, 3)], now: row(0, 0, 4) }
        return new Response(JSON.stringify({ out }), { headers: { 'Content-Type': 'application/json' } })
    }
}"""


def test_charts_show_what_happens(stack, desk):
    desk.go('server')  # three workers, and the process of the thumbnails
    desk.tab.until("document.querySelectorAll('canvas').length === 6")
    desk.tab.until("Number([...document.querySelectorAll('.legend li')].find((one) => one.textContent.trim().startsWith('all'))?.querySelector('b').textContent) === 4")


# --- lists that are empty ---

EMPTY = [(('ns', 'bare', 'documents'), 'There are no documents yet. Name a class below to write the first one'), (('ns', 'bare', 'documents', 'Note'), 'There are no documents of Note. Write the first one'),
         (('ns', 'bare', 'tasks'), 'No tasks wait, run or have failed. Requests create them'), (('ns', 'bare', 'tasks'), 'There are no periodic tasks. Declare them on the server: stampctl cron'),
         (('ns', 'bare', 'tasks'), 'No tasks wait or run.'), (('ns', 'bare', 'tasks'), 'No attempt has failed. Clear “failures only”'), (('ns', 'bare', 'accounts'), 'There are no accounts. Create one below'),
         (('ns', 'bare', 'schema'), 'No class is declared'), (('ns', 'bare', 'documents', 'Note', 'none'), 'There are no items. Add the first one below.')]


def test_an_empty_list_says_what_to_do(stack, desk):
    stack.op('z', 'ns', {'set': {'ns': 'bare', 'accounts': {}}}, admin=True)
    for parts, words in EMPTY:
        desk.go(*parts)
        desk.shows(words)
    desk.go('ns', 'bare', 'documents', 'Note')
    desk.fill('Id begins with', 'zebra')
    desk.shows('No id of Note begins with “zebra”. Try fewer letters.')
    desk.go('ns', 'bare', 'accounts')
    desk.fill('Name', 'zoe')
    desk.shows('No name begins with “zoe”. Try fewer letters.')
    desk.click('Go to… Ctrl K')
    desk.tab.run('''{
        const one = document.querySelector('.palette input')  // it has a name, and no label that is seen
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(one, 'zzzzzz')
        one.dispatchEvent(new Event('input', { bubbles: true }))
    }''')
    desk.shows('No place has these letters in this order.', 'dialog')


# --- accessibility ---

@pytest.fixture(scope='module')
def axe(tmp_path_factory):
    folder = tmp_path_factory.mktemp('axe')
    shutil.copytree(SOURCE / 'test/system/axe', folder, dirs_exist_ok=True)
    install_packages(folder)
    return (folder / 'node_modules/axe-core/axe.min.js').read_text()


PAGES = [((), 'team'), (('server',), 'Latency'), (('ns', 'lab', 'documents'), 'Another class'), (('ns', 'lab', 'documents', 'Note'), 'Id begins with'),
         (('ns', 'lab', 'documents', 'Note', 'axe'), 'Refresh'), (('ns', 'lab', 'tasks'), 'Oldest due'), (('ns', 'team', 'accounts'), 'Or its beginning'),
         (('ns', 'lab', 'settings'), 'Quotas'), (('ns', 'lab', 'schema'), 'Declaration (JSON)'), (('ns', 'team', 'rules'), 'Table of cases (JSON)'),
         (('ns', 'team', 'documents', 'Book'), 'Text finds what begins with it'), (('tasks',), 'Show'), (('queues',), 'Queue manager'), (('warnings',), 'Refresh')]


# What the server refuses, and what goes to the console's log, from here on.
TROUBLES = """{
    window.troubles = []
    const usual = window.fetch
    window.fetch = async (path, init) => {
        const response = await usual(path, init)
        if (!response.ok) troubles.push(`${response.status} ${path} ${init?.body ?? ''}`)
        return response
    }
    for (const name of ['error', 'warn']) console[name] = (...words) => troubles.push(words.join(' '))
    for (const name of ['error', 'unhandledrejection']) addEventListener(name, (event) => troubles.push(`${name} ${event.message ?? event.reason}`))
}"""


def test_a_walk_through_all_pages_meets_no_refusal_and_no_error(stack, desk, shelf):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': {}}}, admin=True)
    stack.put('lab', {'c': 'Note', 'id': 'axe', 'items': [{'c': 'Main', 'j': {}}]})
    request_task(stack, 'a walk')
    stack.psql('lab', "select task_create('put', startat => 400101000000000)")
    stack.step('queue', 'start')
    try:
        wait_until(lambda: stack.request('POST', '/qm/op', json={}).status_code != 404, what='the manager')
        desk.tab.run(TROUBLES)
        for parts, words in PAGES:
            desk.go(*parts)
            desk.shows(words)
        assert desk.tab.run('troubles') == []
    finally:
        stack.step('queue', 'stop')


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_no_page_has_a_known_obstacle(stack, desk, axe, shelf, scheme):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': {}}}, admin=True)
    stack.put('lab', {'c': 'Note', 'id': 'axe', 'items': [{'c': 'Main', 'j': {}}]})
    request_task(stack, 'axe')
    stack.psql('lab', "select task_create('put', startat => 400101000000000)")
    desk.tab.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])
    desk.tab.run(axe)
    for parts, words in PAGES:
        desk.go(*parts)
        desk.shows(words)
        found = desk.tab.run("(async () => (await axe.run()).violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(' ')}`))()")
        assert found == [], parts


def test_all_is_done_by_keyboard(stack, browser, address):
    desk = Desk(browser, address)
    keys = Keyboard(desk.tab)
    desk.tab.until('document.activeElement.tagName === "INPUT"')  # the key is asked for at once
    keys.type(stack.key)
    keys.enter()
    desk.shows('team')
    keys.reach('Skip to the page')
    keys.enter()
    assert desk.tab.run('document.activeElement.id') == 'main'
    keys.reach('lab')
    keys.enter()
    desk.shows('Another class')
    desk.tab.until('document.activeElement.id === "main"')  # a new page is read from its beginning
    keys.reach('Another class')
    keys.type('Typed')
    keys.enter()
    desk.shows('Id begins with')
    keys.reach('New document')
    keys.enter()
    keys.reach('Id')
    keys.type('one')
    keys.enter()
    desk.shows('does not exist yet')
    keys.reach('Class of the item')
    keys.type('Main')
    keys.reach('Add an item')
    keys.enter()
    desk.shows('Not stored yet')
    keys.reach('Main new', back=True)
    desk.fill('Main new', '{"a": 1}')
    keys.reach('Create')
    keys.enter()
    wait_until(lambda: stack.get('lab', ('Typed', 'one')).get('items'), what='the document')
    desk.shows('Changed')
    keys.reach('Delete')
    keys.enter()
    desk.tab.until('document.querySelector("dialog[open]") !== null')
    keys.press('Escape', 27)
    desk.tab.until('document.querySelector("dialog[open]") === null')
    assert stack.get('lab', ('Typed', 'one'))['v'], 'Escape deletes nothing'
    desk.tab.close()


# Of all elements with a text of their own.
SIZES = """[...document.querySelectorAll('body *')].filter((one) => one.offsetParent && [...one.childNodes].some((part) => part.nodeType === 3 && part.data.trim()))
    .map((one) => parseFloat(getComputedStyle(one).fontSize))"""


def test_the_page_is_usable_on_a_phone(stack, desk, shelf):
    stack.put('lab', {'c': 'Note', 'id': 'axe', 'items': [{'c': 'Main', 'j': {}}]})
    request_task(stack, 'axe')
    desk.tab.call('Emulation.setDeviceMetricsOverride', width=360, height=640, deviceScaleFactor=1, mobile=True)
    for parts, words in PAGES:
        desk.go(*parts)
        desk.shows(words)
        assert desk.tab.run('document.documentElement.scrollWidth') <= 360, parts
        assert set(desk.tab.run(SIZES)) <= {12, 14, 16, 18, 24}, parts  # one scale of type


# --- pictures for the pages ---

PICTURES = os.environ.get('STAMPD_PICTURES')  # a folder
PICTURE_REQUESTS = 600
BOOKS_SHOWN = [('Middlemarch', 904, 'long'), ('Dubliners', 207, 'stories'), ('Orlando', 333), ('Villette', 657), ('Cranford', 257, 'short'), ('Persuasion', 249)]
SHOP = {'items': {'Main': {'singleton': True, 'fields': {'town': 'string', 'sales': 'long'}}, 'Order': {'fields': {'day': 'string'}}}}
MEMO_RULES = {'Memo': {'owner': 'Main.owner', 'read': ['owner', 'role:reader'], 'list': ['owner'], 'create': ['account'], 'update': ['owner'], 'delete': ['owner']}}
MEMO = {'c': 'Memo', 'id': 'plan', 'items': [{'c': 'Main', 'j': {'owner': 'ann'}}]}
MEMO_CASES = [('the owner changes it', {'account': 'ann'}, 'update', True), ('a reader reads it', {'account': 'bob', 'roles': ['reader']}, 'read', True),
              ('a reader finds it in a list', {'account': 'bob', 'roles': ['reader']}, 'list', True), ('nobody reads it without signing in', None, 'read', False)]


@pytest.mark.skipif(not PICTURES, reason='pictures are made on request: STAMPD_PICTURES=FOLDER')
def test_pictures(stack, desk, shelf):
    def take(name, *parts, words):
        desk.go(*parts)
        desk.shows(words)
        return Path(PICTURES) / f'console-{name}.png'

    save = desk.tab.picture
    desk.tab.look(1200, 800)
    for ns, label in (('z', 'administrators'), ('lab', 'experiments'), ('team', 'the library'), ('bare', 'empty')):
        stack.op('z', 'ns', {'set': {'ns': ns, 'label': label}}, admin=True)
    desk.go('server')
    desk.shows('Latency')
    save(take('namespaces', words='experiments'))
    for number, (title, pages, *tags) in enumerate(BOOKS_SHOWN, 4):
        stack.put('team', book(f'b{number}', title, pages, tags), admin=True)
    path = take('documents', 'ns', 'team', 'documents', 'Book', words='Middlemarch')
    desk.click('pages')
    wait_until(lambda: [row[0] for row in desk.rows(BOOKS)[:2]] == ['b3', 'b5'], what='the order')
    save(path)
    desk.tab.look(390, 800, 'dark', is_mobile=True)
    save(take('document', 'ns', 'team', 'documents', 'Book', 'b4', words='Changed'))
    desk.tab.look(1200, 800)
    path = take('server', 'server', words='Latency')
    for number in range(PICTURE_REQUESTS):  # some of each kind, until the charts have a line
        stack.put('lab', {'c': 'Note', 'id': f'chart{number % 50}', 'items': [{'c': 'Main', 'j': number}]})
        for _ in range(4):
            stack.get('lab', ('Note', f'chart{number % 7}'))
    save(path)
    stack.op('z', 'ns', {'set': {'ns': 'team', 'accounts': {}, 'rules': MEMO_RULES}}, admin=True)
    stack.op('z', 'schema', {'set': {'ns': 'lab', 'schema': {'classes': {'Shop': SHOP, 'Town': {'items': {'Main': {'singleton': True}}}}}}}, admin=True)
    stack.op('z', 'schema', {'plan': {'ns': 'lab'}}, admin=True)
    stack.admin('schema', 'watch', '--once')
    path = take('schema', 'ns', 'lab', 'schema', words='Apply will')
    desk.shows('create table')
    save(path)
    path = take('rules', 'ns', 'team', 'rules', words='Table of cases')
    table = {'documents': [MEMO], 'cases': [{'name': name, **({'caller': caller} if caller else {}), 'may': may, 'document': 'Memo/plan', 'expected': expected}
                                            for name, caller, may, expected in MEMO_CASES]}
    desk.fill('Table of cases (JSON)', json.dumps(table, indent=1))
    desk.click('Test')
    desk.shows('4 cases, 1 failed.')
    desk.tab.run('document.querySelectorAll("h2")[1].scrollIntoView({ block: "start" })')
    save(path)
    stack.step('queue', 'start')
    try:
        for name in ('mail', 'index', 'report'):
            stack.op('lab', 'task', {'op': 'put', 'param': {'docs': [{'c': 'Done', 'id': name}]}, 'delay': 20, 'info': name})
        path = take('queues', 'queues', words='Queue manager')
        desk.click('Scan now')
        desk.click('Pause')
        desk.shows('paused')
        save(path)
    finally:
        stack.step('queue', 'stop')

"""The sample application in Chromium with Debian's own catalogue, as the demonstration loads it: no request is refused, and the console has no error."""
import contextlib
import subprocess

import pytest

import browser as browsers
from browser import Browser
from hands import Hands
from stack import SOURCE, run_program, wait_until
from web import FETCHES, built_page, serve_page

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not browsers.PROGRAM, reason='there is no Chromium (Debian: chromium-headless-shell)')]

STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'demo': 'read', 'team': 'rules'}}
LIBRARY = SOURCE / 'scripts/lib'
PACKAGES = 3000
PASSWORD = 'correct horse battery'


@pytest.fixture(scope='module')
def address(stack, tmp_path_factory):
    known = subprocess.run(['apt-cache', 'dumpavail'], capture_output=True, text=True, check=False).stdout
    if not known:
        pytest.skip('apt knows no packages')
    file = tmp_path_factory.mktemp('catalogue') / 'catalogue.json'
    file.write_text(run_program('/usr/bin/python3', LIBRARY / 'catalogue.py', '--limit', PACKAGES, text=known).out)
    for ns, what in (('demo', 'catalogue'), ('team', 'team')):
        if ns == 'team':
            stack.admin('ns', 'accounts', 'team', '{"registration":"open","anonymous":true}')
        stack.admin('schema', 'set', ns, str(LIBRARY / f'{what}-schema.json'))
        stack.admin('schema', 'apply', ns)
    stack.admin('rules', 'set', 'team', str(LIBRARY / 'team-rules.json'))
    run_program(*stack.copy_words('load', file, '--key-file', stack.key_file, ns='demo'))
    return serve_page(stack, built_page('catalogue', tmp_path_factory), 'www', '/')


def trouble(event):
    """What a person sees in red: a refused or failed request, an error of a script, a line of the console."""
    what, more = event['method'], event['params']
    if what == 'Network.responseReceived' and more['response']['status'] >= 400:
        return f"{more['response']['status']} {more['response']['url']}"
    if what == 'Network.loadingFailed' and not more.get('canceled'):
        return more['errorText']
    if what == 'Runtime.consoleAPICalled' and more['type'] in ('error', 'warning', 'assert'):
        return str(more['args'])
    if what == 'Runtime.exceptionThrown':
        return str(more['exceptionDetails'])
    if what == 'Log.entryAdded' and more['entry']['level'] in ('error', 'warning'):
        return f"{more['entry']['text']} {more['entry'].get('url')}"
    return None


class Visitor(Hands):
    def __init__(self, browser, address):
        browser.events = []
        self.browser = browser
        super().__init__(browser.open('about:blank', is_ready='true'))
        self.tab.call('Runtime.enable')
        self.tab.call('Log.enable')
        self.tab.go(address, is_ready='document.querySelector("#found li")')

    def search(self, words):
        self.tab.run(f'''(() => {{ const one = document.getElementById('search'); one.value = {words!r}
            one.dispatchEvent(new Event('input', {{ bubbles: true }})) }})()''')

    def until_described(self):
        """Every row has its second line, and no more than fit into one request."""
        self.tab.until("(() => { const rows = [...document.querySelectorAll('#found li')]; return rows.length && rows.every((one) => one.lastChild.textContent) })()")

    def trouble(self):
        return [one for one in map(trouble, list(self.browser.events)) if one]


@pytest.fixture
def visitor(address):
    with contextlib.closing(Browser()) as browser:
        yield Visitor(browser, address)


def test_no_request_is_refused_and_no_error_is_in_the_console(visitor):
    visitor.until_described()
    visitor.tab.until(f"document.getElementById('count').textContent === '{PACKAGES:,}'")
    for words in ('a', 'li', 'libc', 'python 3', 'the', 'zz zz'):
        visitor.search(words)
        if words != 'zz zz':
            visitor.until_described()
    visitor.shows('Nothing is found.', '#found')
    visitor.search('lib')
    visitor.until_described()
    visitor.tab.run("document.querySelector('#found li a').click()")
    visitor.shows('Needed by')
    visitor.click('Sign in to make lists')
    visitor.fill('Name', 'visitor')
    visitor.fill('Password', PASSWORD)
    visitor.click('Create an account')
    visitor.shows('Your account')
    visitor.fill('New list', 'Mine')
    visitor.click('Create')
    visitor.shows('Invite account')
    visitor.click('My lists', 'nav a')
    visitor.click('Mine')
    visitor.shows('Invite account')
    visitor.tab.run('void (window.isFormer = true); location.reload()')
    visitor.tab.until('!window.isFormer')
    visitor.shows('Invite account')
    visitor.click('Debian packages', 'a')
    visitor.shows('A document database at work')
    assert visitor.trouble() == []


def test_trouble_would_be_noticed(visitor):
    visitor.tab.run("fetch('/demo/op/none', { method: 'POST', body: '{}' })")
    visitor.tab.run("void setTimeout(() => { console.error('as a test'); throw new Error('thrown') })")
    wait_until(lambda: len(visitor.trouble()) >= 3, what='all kinds of trouble')

"""The sample application in Chromium with Debian's own catalogue, as the demonstration loads it: no request is refused, and the console has no error."""
import contextlib
import os
import subprocess
from pathlib import Path

import pytest

import browser as browsers
from browser import Browser
from hands import Hands
from sample_world import LIBRARY, NAMESPACES, create_account, declare
from stack import free_port, run_program, wait_until
from web import built_page, serve_page

pytestmark = [pytest.mark.plain, pytest.mark.timeout(1200), pytest.mark.skipif(not browsers.PROGRAM, reason='there is no Chromium (Debian: chromium-headless-shell)')]

STACK = {'workers': 4, 'namespaces': NAMESPACES}
PACKAGES = os.environ.get('STAMPD_TEST_PACKAGES', 'all')  # or a number, to be done sooner


@pytest.fixture(scope='module')
def address(stack, tmp_path_factory):
    known = subprocess.run(['apt-cache', 'dumpavail'], capture_output=True, text=True, check=False).stdout
    if not known:
        pytest.skip('apt knows no packages')
    file = tmp_path_factory.mktemp('catalogue') / 'catalogue.json'
    file.write_text(run_program('/usr/bin/python3', LIBRARY / 'catalogue.py', *(() if PACKAGES == 'all' else ('--limit', PACKAGES)), text=known).out)
    stack.packages = len(file.read_text().splitlines())
    declare(stack)
    run_program(*stack.copy_words('load', file, '--key-file', stack.key_file, ns='demo'))
    stack.local_port = free_port()
    serve_page(stack, built_page('catalogue', tmp_path_factory), 'www', '/')
    return f'http://localhost:{stack.local_port}/'


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


def test_no_request_is_refused_and_no_error_is_in_the_console(stack, visitor):
    visitor.until_described()
    visitor.tab.until(f"document.getElementById('count').textContent === '{stack.packages:,}'")
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
    create_account(visitor, 'visitor')
    visitor.fill('New list', 'Mine')
    visitor.click('Create')
    visitor.shows('Invite by name')
    visitor.click('My lists', 'nav a')
    visitor.click('Mine')
    visitor.shows('Invite by name')
    visitor.tab.run('void (window.isFormer = true); location.reload()')
    visitor.tab.until('!window.isFormer')
    visitor.shows('Invite by name')
    visitor.click('Make an invitation link')
    link = visitor.tab.until('document.querySelector("#link input")?.value')
    visitor.tab.run(f"location.hash = '{link.partition('#')[2]}'")
    visitor.click('Join')
    visitor.shows('Invite by name')
    visitor.click('Debian packages', 'a')
    visitor.shows('A document database at work')
    visitor.tab.run("document.querySelector('.device li input').click()")
    visitor.shows('Also here', '.device p')
    visitor.tab.until("[...document.querySelectorAll('.device')].every((one) => one.querySelector('li input').checked)")
    visitor.tab.run('document.querySelector(".switch input").click()')
    visitor.shows('Offline', '.device p')
    visitor.tab.run("document.querySelector('.device li:nth-child(2) input').click()")
    visitor.tab.run('document.querySelector(".switch input").click()')
    visitor.tab.until("[...document.querySelectorAll('.device')].every((one) => one.querySelector('li:nth-child(2) input').checked)")
    visitor.tab.run('navigator.serviceWorker.ready.then(() => true)')
    assert visitor.trouble() == []


PICTURES = os.environ.get('STAMPD_PICTURES')  # a folder


@pytest.mark.skipif(not PICTURES, reason='pictures are made on request: STAMPD_PICTURES=FOLDER')
@pytest.mark.parametrize('name, width, height, scheme', [('sample', 1200, 800, 'light'), ('sample-phone', 390, 800, 'dark')])
def test_pictures(visitor, name, width, height, scheme):
    visitor.tab.look(width, height, scheme, is_mobile=width < 600)
    visitor.until_described()
    visitor.tab.run("document.querySelector('.device li input').click()")
    visitor.shows('Also here', '.device p')
    visitor.tab.until("[...document.querySelectorAll('.device')].every((one) => one.querySelector('li input').checked)")
    visitor.tab.picture(Path(PICTURES) / f'{name}.png')


def test_trouble_would_be_noticed(visitor):
    visitor.tab.run("fetch('/demo/op/none', { method: 'POST', body: '{}' })")
    visitor.tab.run("void setTimeout(() => { console.error('as a test'); throw new Error('thrown') })")
    wait_until(lambda: len(visitor.trouble()) >= 3, what='all kinds of trouble')

"""The client library in React and Svelte (doc/examples/frameworks): two pages in Chromium that follow the server and each other."""
import contextlib
import shutil

import pytest

import browser as browsers
from browser import Browser
from hands import Hands
from stack import SOURCE
from web import FETCHES, install_packages, run, serve_page

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not browsers.PROGRAM, reason='there is no Chromium (Debian: chromium-headless-shell)')]

STACK = {'workers': 3}
PAGES = ('react', 'svelte')


@pytest.fixture(scope='module')
def address(stack, tmp_path_factory):
    folder = tmp_path_factory.mktemp('frameworks') / 'pages'
    shutil.copytree(SOURCE / 'doc/examples/frameworks', folder)
    shutil.copytree(SOURCE / 'src/web/client', folder / 'stampd-client')
    install_packages(folder)
    run('npm', '--prefix', folder, '--silent', 'run', 'build')
    return serve_page(stack, folder / 'dist', 'www', '/react.html')


def lines(hands):
    return hands.tab.run("[...document.querySelectorAll('li')].map((one) => one.textContent)")


def test_both_follow_the_server_and_each_other(stack, address):
    stack.put('lab', {'c': 'List', 'id': 'first', 'items': [{'c': 'Line', 'k': 'a', 'j': {'text': 'from the server'}}]})
    with contextlib.ExitStack() as ends:
        hands = {}
        for page in PAGES:
            browser = ends.enter_context(contextlib.closing(Browser()))
            hands[page] = Hands(browser.open(address.replace('react', page) + '#first', is_ready="document.querySelector('main')"))
            hands[page].shows('from the server')
        for page in PAGES:
            hands[page].fill('New line', f'from {page}')
            hands[page].click('Add')
            for other in PAGES:
                hands[other].shows(f'from {page}')
                hands[other].shows('All is sent.')
        assert sorted(lines(hands['react'])) == sorted(lines(hands['svelte'])) == ['from react', 'from svelte', 'from the server']
        hands['react'].tab.network(False)
        hands['react'].fill('New line', 'without a network')
        hands['react'].click('Add')
        hands['react'].shows('without a network')
        hands['react'].shows('Being sent.')
        hands['react'].tab.network(True)
        hands['svelte'].shows('without a network')
        stack.put('lab', {'c': 'List', 'id': 'first', 'items': [{'c': 'Line', 'k': 'a', 'del': True}]})
        for page in PAGES:
            hands[page].misses('from the server')

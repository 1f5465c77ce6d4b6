"""The documentation as a site: links, search, what it loads; and as nginx serves it at /doc/."""
import contextlib
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import browser as browsers
from browser import Browser
from stack import PATIENCE_S, SOURCE
from web import run, serve_page

pytestmark = [pytest.mark.plain, pytest.mark.timeout(180)]  # Sphinx reads all pages, which takes a quarter of a minute of a processor

STACK = {'workers': 2}
LOADS = {'src', 'srcset', 'poster', 'data'}


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    """Sphinx warns of nothing: each page has a place in the navigation, each link of the sources leads to a page and a heading."""
    folder = tmp_path_factory.mktemp('site')
    run(SOURCE / 'scripts/build-site', folder)
    return folder / 'dist'


class Page(HTMLParser):
    """What a page has links to, what it loads, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors, self.inline = set(), set(), set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.anchors.add(named.get('id'))
        if tag == 'a' and 'href' in named:
            self.links.add(named['href'])
        if tag == 'link' and named['rel'] in ('stylesheet', 'icon', 'shortcut icon', 'preload'):
            self.loads.add(named['href'])
        self.loads |= {named[name] for name in LOADS & set(named)} | ({named['action']} if 'action' in named else set())
        if tag == 'style' or (tag == 'script' and 'src' not in named) or any(name == 'style' or name.startswith('on') for name in named):
            self.inline.append(self.get_starttag_text())


@pytest.fixture(scope='module')
def pages(built):
    return {path: Page(path) for path in built.rglob('*.html') if '_downloads' not in path.parts}


def is_elsewhere(link):
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def test_every_link_leads_somewhere(built, pages):
    lost = []
    for path, page in pages.items():
        for link in page.links | page.loads:
            if not is_elsewhere(link):
                name, anchor = unquote(urlsplit(link).path), unquote(urlsplit(link).fragment)
                target = Path(os.path.normpath(path.parent / name)) if name else path
                if not target.is_file() or not target.is_relative_to(built) or (anchor and anchor not in pages[target].anchors):
                    lost.append((str(path.relative_to(built)), link))
    assert lost == []
    assert len(pages) > 80 and pages[built / 'how-to/operating.html'].links


def test_nothing_is_loaded_from_another_host_and_nothing_is_in_line(built, pages):
    assert {(path.name, load) for path, page in pages.items() for load in page.loads if is_elsewhere(load)} == set()
    for path in built.rglob('*.css'):
        assert re.findall(r'url\([\'"]?(?:[a-z]+:)?//|@import', path.read_text()) == [], path
    assert {path.name: page.inline for path, page in pages.items() if page.inline} == {}


def test_the_index_of_the_search_has_every_page(built, pages):
    index = json.loads((built / 'searchindex.js').read_text().removeprefix('Search.setIndex(').removesuffix(')'))
    assert {str(path.relative_to(built)) for path in pages} - {'search.html'} == {f'{name}.html' for name in index['docnames']}
    found = {index['docnames'][place] for place in index['terms']['limit_body_byt']}
    assert 'man/stampd.conf.5' in found
    assert {'tutorial/todo', 'how-to/operating', 'reference/protocol', 'explanation/freshness', 'src/web/client/README'} < set(index['docnames'])


@pytest.fixture(scope='module')
def address(stack, built):
    assert stack.http.get(f'{stack.url}/doc/', timeout=PATIENCE_S).status_code == 404  # without the option there is none
    return serve_page(stack, built, 'doc', '/doc/')


def test_the_site_may_use_its_own_origin_only(stack, address):
    for path in ('', 'how-to/operating.html', '_static/site.js', '_static/styles/furo.css'):
        answer = stack.http.get(address + path, timeout=PATIENCE_S)
        policy = dict(part.strip().split(' ', 1) for part in answer.headers['Content-Security-Policy'].split(';'))
        assert answer.status_code == 200 and policy['default-src'] == policy['base-uri'] == policy['frame-ancestors'] == "'none'"
        assert policy['script-src'] == policy['style-src'] == policy['connect-src'] == policy['form-action'] == "'self'"
        assert answer.headers['X-Content-Type-Options'] == 'nosniff'
    moved = stack.http.get(address.rstrip('/'), timeout=PATIENCE_S, allow_redirects=False)
    assert (moved.status_code, moved.headers['Location'].endswith('/doc/')) == (308, True)
    for path in ('other', '../etc/passwd', '%2e%2e/etc/admin.key', 'how-to', 'op/get', 'doc/Note/1'):
        assert stack.http.get(address + path, timeout=PATIENCE_S).status_code in (301, 403, 404), path
    assert [stack.http.post(address + path, timeout=PATIENCE_S).status_code for path in ('', 'op/get')] == [405, 404]


def test_no_namespace_has_the_address_of_the_site(stack):
    assert 'doc: the code is reserved' in stack.admin('ns', 'create', 'doc', status=2).text


@pytest.fixture(scope='module')
def browser():
    if not browsers.PROGRAM:
        pytest.skip('there is no Chromium (Debian: chromium-headless-shell)')
    with contextlib.closing(Browser()) as browser:
        yield browser


# A search without a network: from the file, and served under the policy, which would stop what is in line.
@pytest.mark.parametrize('is_file', [True, False], ids=['file', 'served'])
def test_a_reader_searches_and_chooses_dark(browser, built, address, is_file):
    root = f'file://{built}/' if is_file else address
    tab = browser.open(f'{root}search.html?q=limit_body_bytes', is_ready='true')
    tab.until('[...document.querySelectorAll("#search-results li a")].some((one) => one.href.includes("man/stampd.conf.5"))')
    tab.go(f'{root}how-to/operating.html', is_ready='document.readyState === "complete"')
    assert tab.run('[...document.querySelectorAll(".related-pages a")].map((one) => one.className)') == ['next-page', 'prev-page']
    assert len(set(tab.run('[...document.querySelectorAll(".sidebar-tree .caption-text")].map((one) => one.innerText)'))) == 6
    ground = 'getComputedStyle(document.body).backgroundColor'
    tab.run('localStorage.setItem("theme", "light")')
    tab.go(f'{root}index.html', is_ready='document.readyState === "complete"')
    light = tab.run(ground)
    chosen = [tab.run('document.querySelector(".theme-toggle").click() ?? document.body.dataset.theme') for _ in range(2)]
    assert chosen == ['auto', 'dark'] and tab.run(ground) != light
    tab.go(f'{root}reference/rules.html', is_ready='document.readyState === "complete"')
    assert (tab.run('document.body.dataset.theme'), tab.run(ground) != light) == ('dark', True)
    tab.close()

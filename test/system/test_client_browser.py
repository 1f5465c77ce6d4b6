"""The client library in Chromium: what lasts in the browser, several tabs, a tab that is killed at each step of a change."""
import contextlib
import itertools
import json
import shutil

import pytest

import browser as browsers
from browser import Browser, Pages
from dumps import back_up, restore
from stack import SOURCE, wait_until

pytestmark = [pytest.mark.plain, pytest.mark.skipif(not browsers.PROGRAM, reason='there is no Chromium (Debian: chromium-headless-shell)')]

STACK = {'workers': 3}
EMPTY = '<!doctype html><title>no session</title><script>window.isReady = true</script>'
PAGE = """<!doctype html><title>test</title><script type=module>
import * as client from './client/index.js'
const words = new URLSearchParams(location.search)
const step = words.get('step')
const ahead = Number(words.get('ahead')), present = Date, now = Date.now
if (ahead) window.Date = class extends present {
  constructor(...words) { super(...words.length ? words : [now() + ahead]) }
  static now() { return now() + ahead }
}
const [open, transaction, put] = [IDBFactory.prototype.open, IDBDatabase.prototype.transaction, IDBObjectStore.prototype.put]
window.opened = []
IDBFactory.prototype.open = function (...words) {
  const opening = open.apply(this, words)
  opening.addEventListener('success', () => opened.push(opening.result))
  return opening
}
// what the database refuses: 'connection', once, as when the browser has ended it; 'always'; 'second': the second row of each batch
let puts = 0
IDBDatabase.prototype.transaction = function (...words) {
  puts = 0
  const what = window.refuses
  if (what === 'connection') window.refuses = ''
  if (what === 'connection') throw new DOMException('lost', 'UnknownError')
  if (what === 'always') throw new DOMException('full', 'QuotaExceededError')
  return transaction.apply(this, words)
}
IDBObjectStore.prototype.put = function (...words) {
  if (window.refuses === 'second' && ++puts === 2) throw new DOMException('full', 'QuotaExceededError')
  return put.apply(this, words)
}
const never = () => { window.reached = step; return new Promise(() => {}) }
window.client = client
window.start = async (more = {}) => {
  window.db = await client.open({ url: words.get('url'), ns: 'lab', name: words.get('name'), backoff: { least: 1, most: 50 }, ...more })
  window.note = db.doc('Note', words.get('id'))
  note.subscribe(() => {})
}
async function stopping(address, init) {
  if (!address.endsWith('/op/put')) return fetch(address, init)
  if (step === 'before it is sent') return never()
  const response = await fetch(address, init)
  if (step === 'before its answer is read') return never()
  if (step === 'before its answer is stored') IDBDatabase.prototype.transaction = () => never() && { objectStore: () => { throw 0 } }
  return response
}
await start(step ? { fetch: stopping } : {})
window.isReady = true
</script>"""


@pytest.fixture(scope='module')
def pages(stack, tmp_path_factory):
    folder = tmp_path_factory.mktemp('pages')
    shutil.copytree(SOURCE / 'src/web/client', folder / 'client')
    (folder / 'page.html').write_text(PAGE)
    (folder / 'empty.html').write_text(EMPTY)
    with contextlib.closing(Pages(folder)) as pages:
        stack.admin('ns', 'origins', 'lab', pages.origin)
        yield pages


@pytest.fixture(scope='module')
def browser(pages):
    with contextlib.closing(Browser()) as browser:
        yield browser


NUMBERS = itertools.count()


class Desk:
    """One note, under a name of its own in the browser."""

    def __init__(self, stack, pages, browser):
        self.stack, self.pages, self.browser = stack, pages, browser
        self.id = f'note-{next(NUMBERS)}'

    def open(self, step='', ahead_ms=0):
        """`ahead_ms`: by so much the clock of the browser is ahead."""
        words = {'url': self.stack.url, 'name': self.id, 'id': self.id, **({'step': step} if step else {}), **({'ahead': str(ahead_ms)} if ahead_ms else {})}
        query = '&'.join(f'{name}={requote(value)}' for name, value in words.items())
        return self.browser.open(f'{self.pages.origin}/page.html?{query}')

    def lines(self):
        return {item['k']: item['j'] for item in self.stack.get('lab', ('Note', self.id))['items']}

    def wait_for(self, lines):
        wait_until(lambda: self.lines() == lines, what=f'{lines} at the server')


def requote(text):
    return text.replace('/', '%2F').replace(':', '%3A').replace(' ', '%20')


@pytest.fixture
def desk(stack, pages, browser):
    return Desk(stack, pages, browser)


def write(tab, key, value, wait='.saved'):
    return tab.run(f'note.change(note => note.set("Line", {json.dumps(key)}, {json.dumps(value)})){wait}.then(() => true)')


def send_no_token(tab):
    """The server knows none of these tokens; whose they are, the client reads from them."""
    tab.run("""db.transport.fetch = (address, { headers: { Authorization, ...headers }, ...init }) => fetch(address, { ...init, headers })""")


def shown(tab):
    return dict(tab.run('note.get().items("Line")'))


def until_shown(tab, lines):
    tab.until(f'JSON.stringify(note.get().items("Line")) === {json.dumps(json.dumps(sorted(map(list, lines.items())), separators=(",", ":")))}')


def test_a_page_shows_changes_of_others_and_its_own(desk):
    tab = desk.open()
    write(tab, '1', 'bread', wait='')
    assert desk.lines() == {'1': 'bread'}
    desk.stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': '2', 'j': 'milk'}]})
    until_shown(tab, {'1': 'bread', '2': 'milk'})
    assert tab.run('db.status.get().lasting && db.status.get().leader')
    tab.close()


AWAY = 'fetch: () => Promise.reject(new TypeError("away"))'
SCHEMA = {'classes': {'Note': {'items': {'Line': {'fields': {'text': 'folded', 'at': 'long'}}}}}}


def test_without_a_network_the_copies_answer_a_search_after_the_session_was_closed(desk):
    tab = desk.open()
    write(tab, '1', {'text': 'Brötchen', 'at': 1}, wait='')
    write(tab, '2', {'text': 'milk', 'at': 2}, wait='')
    tab.run(f'db.close().then(() => start({{ {AWAY} }})).then(() => true)')
    search = {'where': [{'f': 'text', 't': 'sw', 'v1': 'bro'}], 'order': '-at', 'want': ['at']}
    tab.run(f"""import('./client/find.js').then(({{ finder }}) => {{
      window.found = finder(db, {json.dumps(SCHEMA)})('Note', 'Line', {json.dumps(search)})
      found.subscribe(value => {{ window.last = value }})
    }}).then(() => true)""")
    tab.until('last.here && JSON.stringify(last.items.map(item => item.k)) === \'["1"]\'')
    write(tab, '3', {'text': 'BROT', 'at': 3})
    tab.until('JSON.stringify(last.items.map(item => [item.k, item.j])) === \'[["3",{"at":3}],["1",{"at":1}]]\'')
    tab.close()


def test_changes_without_a_network_outlive_a_reload_and_the_browser(desk, browser):
    tab = desk.open()
    write(tab, '1', 'bread', wait='')
    tab.run('void (db.transport.fetch = () => Promise.reject(new TypeError("away")))')
    write(tab, '2', 'milk')
    write(tab, '1', 'rye')
    tab.close()
    assert desk.lines() == {'1': 'bread'}

    tab = desk.open('before it is sent')
    assert shown(tab) == {'1': 'rye', '2': 'milk'}
    assert tab.run('db.status.get().pending') == 2
    browser.kill()
    browser.start()
    assert desk.lines() == {'1': 'bread'}

    tab = desk.open()
    desk.wait_for({'1': 'rye', '2': 'milk'})
    tab.until('db.status.get().pending === 0')
    tab.close()


def test_a_page_without_a_network_goes_on_when_it_is_back(desk):
    tab = desk.open()
    write(tab, '1', 'bread', wait='')
    tab.network(False)
    write(tab, '2', 'milk')
    tab.until('db.status.get().online === false')
    assert shown(tab) == {'1': 'bread', '2': 'milk'}
    tab.network(True)
    desk.wait_for({'1': 'bread', '2': 'milk'})
    tab.close()


def test_tabs_of_two_accounts_send_nothing_as_the_other_one(desk):
    one, other = desk.open(), desk.open()
    one.run("db.setToken(undefined, 'ann')")
    other.run("db.setToken(undefined, 'ben')")
    other.until("db.status.get().fault?.code === 'CACCOUNT' && !db.status.get().leader")
    write(other, '1', 'of Ben')
    one.until('db.status.get().others === 1')
    write(one, '2', 'of Ann', wait='')
    assert desk.lines() == {'2': 'of Ann'}
    assert shown(one) == {'2': 'of Ann'}
    one.run("db.setToken(undefined, 'ben')")
    other.until('db.status.get().pending === 0 && db.status.get().fault === null')
    assert desk.lines() == {'1': 'of Ben', '2': 'of Ann'}
    one.close()
    other.close()


def test_tabs_with_a_function_follow_the_account_that_signs_in(desk):
    one, other = desk.open(), desk.open()
    for tab in (one, other):
        send_no_token(tab)
        tab.run("localStorage.setItem('token', 'st_ann.secret'); db.setToken(() => localStorage.getItem('token'))")
    write(one, '1', 'of Ann', wait='')
    other.run("localStorage.setItem('token', 'st_ben.secret'); db.setToken(() => localStorage.getItem('token'))")
    write(other, '2', 'of Ben', wait='')
    assert [tab.run('db.cache.account') for tab in (one, other)] == ['ben', 'ben']
    one.close()
    other.close()


def test_a_function_that_returns_the_new_token_later_is_asked_again(desk):
    """What one tab writes to `localStorage` may reach another one behind its message."""
    one, other = desk.open(), desk.open()
    for tab in (one, other):
        send_no_token(tab)
    one.run("void (window.asked = 0); db.setToken(() => ++asked > 5 ? 'st_ben.secret' : 'st_ann.secret')")
    other.run("db.setToken('st_ben.secret')")
    write(other, '1', 'of Ben', wait='')
    assert desk.lines() == {'1': 'of Ben'}
    assert one.run('[asked, db.cache.account]') == [6, 'ben']
    one.close()
    other.close()


@pytest.mark.parametrize('step', ['before it is sent', 'before its answer is read', 'before its answer is stored'])
def test_a_tab_that_is_killed_at_a_step_of_a_change(desk, step):
    tab = desk.open(step)
    write(tab, '1', 'mine')
    tab.until(f'window.reached === {json.dumps(step)}')
    is_done = step != 'before it is sent'
    assert desk.lines() == ({'1': 'mine'} if is_done else {})
    tab.close()
    if is_done:  # a second effect would overwrite this
        desk.stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': '1', 'j': 'other'}]})
    tab = desk.open()
    tab.until('db.status.get().pending === 0')
    expected = {'1': 'other' if is_done else 'mine'}
    assert desk.lines() == expected
    until_shown(tab, expected)
    tab.close()


def test_two_tabs_have_one_leader_and_the_same_documents(desk):
    first, second = desk.open(), desk.open()
    first.until('db.status.get().leader')
    assert second.run('db.status.get().leader') is False
    write(second, '1', 'of the second', wait='')
    assert desk.lines() == {'1': 'of the second'}
    until_shown(first, {'1': 'of the second'})
    write(first, '2', 'of the first', wait='')
    until_shown(second, {'1': 'of the second', '2': 'of the first'})
    desk.stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': '1', 'del': True}]})
    for tab in (first, second):
        until_shown(tab, {'2': 'of the first'})
    assert second.run('db.write(draft => draft.doc("Note", "x").set("Line", "k".repeat(300), 1)).catch(fault => fault.code)') == 'ALIMIT'
    assert second.run('db.sync().then(() => true)')
    first.close()
    second.close()


def test_when_the_leading_tab_is_closed_another_sends_what_waits(desk):
    first = desk.open('before it is sent')
    second = desk.open()
    write(first, '1', 'of the first')
    first.until('window.reached')
    write(second, '2', 'of the second')
    until_shown(second, {'1': 'of the first', '2': 'of the second'})
    assert desk.lines() == {}
    first.close()
    desk.wait_for({'1': 'of the first', '2': 'of the second'})
    second.until('db.status.get().leader && db.status.get().pending === 0')
    second.close()


def test_without_room_and_without_a_database_the_page_goes_on(desk):
    tab = desk.open()
    tab.call('Storage.overrideQuotaForOrigin', origin=desk.pages.origin, quotaSize=1)
    tab.run('void (window.put = IDBObjectStore.prototype.put); IDBObjectStore.prototype.put = () => { throw new DOMException("full", "QuotaExceededError") }')
    write(tab, '1', 'bread', wait='')
    assert desk.lines() == {'1': 'bread'}
    assert tab.run('db.status.get().lasting') is False
    tab.call('Storage.overrideQuotaForOrigin', origin=desk.pages.origin)
    tab.run('db.close().then(() => { Object.defineProperty(window, "indexedDB", { value: undefined }); return start() }).then(() => true)')
    write(tab, '2', 'milk', wait='')
    assert desk.lines() == {'1': 'bread', '2': 'milk'}
    assert tab.run('db.status.get().lasting') is False
    tab.close()


def away(tab):
    tab.run('void (db.transport.fetch = () => Promise.reject(new TypeError("away")))')


def stored(tab):
    """The changes that the database has, as a new visit would read them."""
    return tab.run("""(async () => {
      const store = await client.idbStore(new URLSearchParams(location.search).get('name'))
      const { outbox } = await store.load()
      await store.close()
      return outbox.map(entry => Object.keys(entry.edits[0].items)).flat().sort()
    })()""")


# Batches of all sizes, some of which the database refuses, beside a Map; two stores write in turns, each from when it has loaded, and one that has not forgets all.
ROWS = """(async (name, seed) => {
  const dice = (most) => (seed = (seed * 1103515245 + 12345) % 2147483648) % most
  const model = new Map(), open = () => client.idbStore(name), key = (n) => `Note/${n}`
  const raw = async () => {
    const database = await new Promise((resolve) => { const opening = indexedDB.open(`stampd:${name}`); opening.onsuccess = () => resolve(opening.result) })
    const rows = await new Promise((resolve) => { const all = database.transaction('copies').objectStore('copies').getAll(); all.onsuccess = () => resolve(all.result) })
    database.close()
    return rows
  }
  const texts = (copies) => JSON.stringify(copies.map((one) => `${one.id} ${one.v}`).sort())
  const stores = [await open(), await open()]
  let leads = 0, packs = 0
  await stores[0].load()
  for (let round = 0; round < 60; round++) {
    if (dice(5) === 0) {
      leads = 1 - leads
      const { copies } = await stores[leads].load()
      if (texts(copies) !== texts([...model.values()])) return `round ${round}: another one loads something else`
    }
    const count = dice(3) ? dice(8) : 100 + dice(250), next = new Map(model), isAll = dice(12) === 0, removed = dice(3)
    let copies = Array.from({ length: count }, (_, n) => { const id = String(dice(500)); return [key(id), removed && dice(3) === 0 ? null : { c: 'Note', id, v: round * 1000 + n, ct: 1, dt: 0, items: {} }] })
    if (isAll) copies = [...model.keys()].map((one) => [one, null])
    copies = [...new Map(copies)]
    for (const [one, copy] of copies) copy ? next.set(one, copy) : next.delete(one)
    window.refuses = count > 2 && dice(6) === 0 ? 'second' : ''
    const writer = stores[isAll ? dice(2) : leads]
    const isStored = await writer.commit({ copies, collections: [['@', isAll ? null : { def: '@' }]] }).then(() => true, () => false)
    window.refuses = ''
    if (isStored) for (const [one, copy] of [...next, ...[...model.keys()].map((one) => [one, next.get(one)])]) copy ? model.set(one, copy) : model.delete(one)
    const rows = await raw()
    packs += rows.some(Array.isArray)
    if (texts(rows.flat()) !== texts([...model.values()])) return `round ${round}: ${rows.flat().length} copies are stored, ${model.size} are there`
  }
  for (const store of stores) await store.close()
  return packs > 5 ? 'equal' : 'no packs'
})"""


@pytest.mark.parametrize('seed', range(6))
def test_each_copy_is_in_one_row_whatever_was_refused(desk, seed):
    """Nothing of a copy that has changed or gone is left in the browser."""
    tab = desk.open()
    assert tab.run(f'{ROWS}("rows-{seed}", {seed + 1})') == 'equal'
    tab.close()


@pytest.mark.parametrize('how', ['void opened[0].close()', 'void (window.refuses = "connection")'])
def test_a_connection_to_the_database_that_the_browser_has_ended_is_opened_again(desk, how):
    tab = desk.open()
    write(tab, '1', 'bread', wait='')
    away(tab)
    tab.run(how)
    write(tab, '2', 'milk')
    assert tab.run('db.status.get().lasting') is True
    tab.close()
    tab = desk.open()
    desk.wait_for({'1': 'bread', '2': 'milk'})
    tab.close()


def test_a_database_that_the_browser_has_emptied_has_all_again(desk):
    tab = desk.open()
    write(tab, '1', 'bread', wait='')
    away(tab)
    write(tab, '2', 'milk')
    tab.call('Storage.clearDataForOrigin', origin=desk.pages.origin, storageTypes='indexeddb')
    write(tab, '3', 'salt')
    assert stored(tab) == ['Line.2', 'Line.3']
    tab.close()
    tab = desk.open('before it is sent')
    assert shown(tab) == {'1': 'bread', '2': 'milk', '3': 'salt'}
    tab.close()
    tab = desk.open()
    desk.wait_for({'1': 'bread', '2': 'milk', '3': 'salt'})
    tab.close()


def test_a_batch_of_which_the_database_takes_a_part_is_refused_as_a_whole(desk):
    tab = desk.open()
    write(tab, '1', 'bread', wait='')
    away(tab)
    tab.run('void (window.refuses = "second")')
    change = '{ c: "Note", id, items: { [id]: { c: id, j: 1 } }, base: { v: 0, ct: 0 }, was: { [id]: { v: 0, item: null } } }'
    refused = f'db.tabs.save({{ outbox: ["x", "y"].map(id => [id, {{ id, op: "put", at: 0, edits: [{change}] }}]) }}).catch(error => error.name)'
    assert tab.run(refused) == 'QuotaExceededError'
    assert tab.run('db.status.get().lasting') is False and stored(tab) == []
    tab.run('void (window.refuses = "")')
    tab.until('db.status.get().lasting')
    assert stored(tab) == ['x', 'y']
    tab.close()


def test_what_a_tab_cannot_store_the_leading_tab_stores(desk):
    first, second = desk.open(), desk.open()
    for tab in (first, second):
        away(tab)
    second.run('void (window.refuses = "always")')
    write(second, '1', 'of the second')
    write(second, '2', 'of the second')
    assert stored(first) == ['Line.1', 'Line.2']
    first.run('void (window.refuses = "always")')
    assert second.run('note.change(note => note.set("Line", "3", "of the second")).saved.catch(error => error.name)') == 'QuotaExceededError'
    second.until('db.status.get().lasting === false')
    first.run('void (window.refuses = "")')
    second.until('db.status.get().lasting')
    assert stored(first) == ['Line.1', 'Line.2', 'Line.3']
    # what the leading tab could not store until it was closed, the next one has and stores
    first.run('void (window.refuses = "always")')
    second.run('note.change(note => note.set("Line", "4", "of the second")).saved.catch(error => error.name)')
    second.until('db.status.get().lasting === false')
    second.run('void (window.refuses = "")')
    first.close()
    second.until('db.status.get().leader && db.status.get().lasting')
    assert stored(second) == ['Line.1', 'Line.2', 'Line.3', 'Line.4']
    second.close()
    tab = desk.open()
    desk.wait_for({key: 'of the second' for key in '1234'})
    tab.close()


# --- what browsers do with pages and with what they store ---

def pairs(lines):
    return json.dumps(sorted(map(list, lines.items())), separators=(',', ':'))


def until_equal(desk, tab):
    """Nothing waits, and the page shows what the server has."""
    tab.until('db.status.get().pending === 0')
    until_shown(tab, desk.lines())


@pytest.mark.parametrize('waits', [False, True], ids=['sent', 'waiting'])
def test_storage_that_the_browser_has_removed_beneath_open_tabs(desk, waits):
    """All of the origin, as when the disk is full; two tabs, one of which has changes that were not sent."""
    first, second = desk.open(), desk.open()
    write(first, '1', 'bread', wait='')
    until_shown(second, {'1': 'bread'})
    if waits:
        for tab in (first, second):
            away(tab)
    write(second, '2', 'milk')
    first.call('Storage.clearDataForOrigin', origin=desk.pages.origin, storageTypes='all')
    write(first, '3', 'salt')
    write(second, '4', 'rice')
    expected = {'1': 'bread', '2': 'milk', '3': 'salt', '4': 'rice'}
    until_shown(first, expected)
    until_shown(second, expected)
    if waits:
        assert stored(first) == ['Line.2', 'Line.3', 'Line.4']
    for tab in (second, first):
        tab.close()
    tab = desk.open()
    desk.wait_for(expected)
    until_equal(desk, tab)
    tab.close()


def test_what_is_saved_under_a_quota_lasts_and_the_rest_says_so(stack, pages):
    """The browser itself refuses, in the middle of a session.  What was promised is there at the next visit, and is sent."""
    with contextlib.closing(Browser()) as browser:  # another one knows for half a minute how much room there was
        desk = Desk(stack, pages, browser)
        guard = browser.open(f'{pages.origin}/empty.html')
        guard.call('Storage.overrideQuotaForOrigin', origin=pages.origin, quotaSize=2_000_000)
        tab = desk.open('before it is sent')
        results = tab.run("""(async () => {
          const results = []
          for (let i = 0; i < 12; i++) {
            const text = Array.from({ length: 10000 }, () => crypto.randomUUID()).join('') // it is compressed
            results.push(await note.change(note => note.set('Line', `k${i}`, text)).saved.then(() => 'saved', error => error.name))
          }
          return results
        })()""")
        assert 'saved' in results and 'QuotaExceededError' in results, results
        assert tab.run('db.status.get().lasting') is False and len(shown(tab)) == len(results)
        tab.close()
        saved = {f'k{i}' for i, result in enumerate(results) if result == 'saved'}
        guard.call('Storage.overrideQuotaForOrigin', origin=pages.origin)
        tab = desk.open()
        assert saved <= set(shown(tab))
        tab.until('db.status.get().pending === 0')
        assert saved <= set(desk.lines()) and desk.lines() == shown(tab)
        tab.close()


def state(tab, name):
    tab.call('Page.setWebLifecycleState', state=name)


def test_a_frozen_tab_that_leads_is_not_waited_for(desk):
    first, second = desk.open(), desk.open()
    write(first, '1', 'bread', wait='')
    state(first, 'frozen')
    write(second, '2', 'milk', wait='')
    assert desk.lines() == {'1': 'bread', '2': 'milk'}
    desk.stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': '1', 'j': 'rye'}]})
    until_shown(second, {'1': 'rye', '2': 'milk'})
    state(first, 'active')
    until_shown(first, {'1': 'rye', '2': 'milk'})
    write(first, '3', 'salt', wait='')
    until_shown(second, desk.lines())
    second.close()
    first.until('db.status.get().leader')
    write(first, '4', 'rice', wait='')
    first.close()
    tab = desk.open()
    until_equal(desk, tab)
    assert shown(tab) == {'1': 'rye', '2': 'milk', '3': 'salt', '4': 'rice'}
    tab.close()


@pytest.mark.parametrize('other', [False, True], ids=['alone', 'beside another'])
def test_a_tab_that_is_frozen_while_a_change_is_under_way(desk, other):
    """The change has one effect, whichever tab sends it, and the tab that was frozen follows again."""
    first = desk.open('before its answer is read')
    write(first, '1', 'mine')
    first.until('window.reached')
    second = desk.open() if other else None
    state(first, 'frozen')
    if other:
        second.until('db.status.get().pending === 0')
    desk.stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': '1', 'j': 'other'}]})
    state(first, 'active')
    if other:
        write(second, '2', 'of the second', wait='')
        until_shown(first, {'1': 'other', '2': 'of the second'})
        second.close()
    first.close()
    tab = desk.open()
    until_equal(desk, tab)
    assert shown(tab)['1'] == 'other'
    tab.close()


def test_a_page_that_one_comes_back_to(desk):
    """The browser has kept the page as it was, or loads it again: both show what the server has, and send what waits."""
    tab = desk.open()
    write(tab, '1', 'bread', wait='')
    tab.run('void (window.isKept = true)')  # the event that says so may come behind the first look
    away(tab)
    write(tab, '2', 'milk')
    tab.go(f'{desk.pages.origin}/empty.html')
    desk.stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': '1', 'j': 'rye'}]})
    history = tab.call('Page.getNavigationHistory')
    tab.call('Page.navigateToHistoryEntry', entryId=history['entries'][history['currentIndex'] - 1]['id'])
    tab.until('window.isReady === true && Boolean(window.note)')
    is_back = tab.run('window.isKept === true')
    if is_back:
        tab.run('delete db.transport.fetch; void (db.transport.fetch = (...words) => fetch(...words))')
    write(tab, '3', 'salt')
    desk.wait_for({'1': 'rye', '2': 'milk', '3': 'salt'})
    until_equal(desk, tab)
    tab.close()
    print('back', is_back)


HOUR_MS = 3600_000
YEAR_MS = 365 * 24 * HOUR_MS
# All copies as they were a year ago: older versions, another text.  Stamps begin with the year.
AGE = """(async () => {
  const opening = indexedDB.open(%s)
  await new Promise(resolve => { opening.onsuccess = resolve })
  const copies = opening.result.transaction('copies', 'readwrite').objectStore('copies')
  const keys = await new Promise(resolve => { copies.getAllKeys().onsuccess = event => resolve(event.target.result) })
  const values = await new Promise(resolve => { copies.getAll().onsuccess = event => resolve(event.target.result) })
  const older = stamp => stamp > 1e13 ? stamp - 1e13 : stamp
  values.forEach((copy, i) => {
    for (const item of Object.values(copy.items)) Object.assign(item, { v: older(item.v), j: 'of last year' })
    copies.put({ ...copy, v: older(copy.v), ct: older(copy.ct), dt: older(copy.dt) }, keys[i])
  })
  await new Promise(resolve => { copies.transaction.oncomplete = resolve })
  opening.result.close()
  return values.length
})()"""


def test_a_cache_of_a_year_ago_is_brought_up_to_date(desk):
    """What was changed then, without a network, takes effect now, once."""
    desk.stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': key, 'j': 'old'} for key in ('kept', 'gone')]})
    tab = desk.open(ahead_ms=-YEAR_MS)
    until_shown(tab, {'kept': 'old', 'gone': 'old'})
    tab.run('void (db.transport.fetch = () => Promise.reject(new TypeError("away")))')
    write(tab, 'mine', 'of then')
    tab.close()
    desk.stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': 'kept', 'j': 'new'}, {'c': 'Line', 'k': 'gone', 'del': True}]})
    blank = desk.browser.open(f'{desk.pages.origin}/empty.html')
    assert blank.run(AGE % json.dumps(f'stampd:{desk.id}')) == 1
    blank.close()

    tab = desk.open('before it is sent')
    assert shown(tab)['mine'] == 'of then' and tab.run('db.status.get().pending') == 1
    tab.close()
    tab = desk.open()
    desk.wait_for({'kept': 'new', 'mine': 'of then'})
    tab.until('db.status.get().pending === 0')
    until_shown(tab, {'kept': 'new', 'mine': 'of then'})
    tab.close()


@pytest.mark.parametrize('ahead_ms', [3 * HOUR_MS, -50 * HOUR_MS, -YEAR_MS])
def test_a_browser_whose_clock_is_wrong_changes_and_follows(desk, ahead_ms):
    tab = desk.open(ahead_ms=ahead_ms)
    write(tab, '1', 'mine', wait='')
    assert desk.lines() == {'1': 'mine'}
    desk.stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': '1', 'j': 'other'}]})
    until_shown(tab, {'1': 'other'})
    write(tab, '1', 'mine again', wait='')
    assert desk.lines() == {'1': 'mine again'}
    assert tab.run('db.status.get().pending') == 0
    tab.close()


def test_a_server_that_is_restored_beneath_an_open_page(desk, tmp_path):
    """The page shows what the backup has, and what was changed meanwhile is sent to the restored server."""
    stack = desk.stack
    stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': '1', 'j': 'of the backup'}]})
    tab = desk.open()
    until_shown(tab, {'1': 'of the backup'})
    back_up(stack, tmp_path / 'backup')
    write(tab, '1', 'lost', wait='')
    write(tab, '2', 'lost', wait='')
    assert desk.lines() == {'1': 'lost', '2': 'lost'}

    restore(stack, tmp_path / 'backup')
    write(tab, '3', 'meanwhile')
    assert shown(tab) == {'1': 'lost', '2': 'lost', '3': 'meanwhile'}
    stack.admin('ns', 'restored', 'lab')
    stack.step('stampd', 'start')
    desk.wait_for({'1': 'of the backup', '3': 'meanwhile'})
    until_shown(tab, {'1': 'of the backup', '3': 'meanwhile'})
    stack.put('lab', {'c': 'Note', 'id': desk.id, 'items': [{'c': 'Line', 'k': '1', 'j': 'after it'}]})
    until_shown(tab, {'1': 'after it', '3': 'meanwhile'})
    tab.close()

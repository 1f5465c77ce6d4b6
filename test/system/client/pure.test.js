/* pure.test.js: what needs no server: copies, changes, stamps, the stream of events. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { readFileSync } from 'node:fs'
import { accountOf } from '../../../src/web/client/account.js'
import { Cache } from '../../../src/web/client/cache.js'
import { applySync, compare, headerOf } from '../../../src/web/client/copy.js'
import { Draft, follow, rebase, show } from '../../../src/web/client/edit.js'
import { Fault } from '../../../src/web/client/fault.js'
import { eventsOf } from '../../../src/web/client/live.js'
import { delayOf } from '../../../src/web/client/loop.js'
import { keyOfTime, stampOf, timeOf } from '../../../src/web/client/stamp.js'
import { memoryStore, open } from '../../../src/web/client/node.js'
import { until } from './server.js'

const casesOf = name => JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), 'utf8')).cases

for (const { name, copy, answer, holds, sends, again } of casesOf('sync')) {
  test(`vector: ${name}`, () => {
    const before = JSON.stringify(copy)
    const next = applySync(copy, answer)
    assert.equal(next === undefined, again === true)
    if (next) assert.deepEqual({ ...next, items: sorted(next.items) }, { ...holds, items: sorted(holds.items) })
    assert.deepEqual(headerOf(next ?? copy), sends)
    assert.equal(JSON.stringify(copy), before, 'a copy is replaced, never changed')
  })
}

const sorted = items => Object.fromEntries(Object.entries(items).sort())
const item = (k, v, j = k) => ({ c: 'Line', k, v, j })
const copyOf = (v, ...items) => ({ c: 'Note', id: 'a', v, ct: 5, dt: 5, items: Object.fromEntries(items.map(one => [`Line.${one.k}`, one])) })
const none = { c: 'Note', id: 'a', v: 0, ct: 0, dt: 0, items: {} }

function editOf(copy, build, waiting = []) {
  const draft = new Draft(() => ({ copy, shown: show(copy, waiting) }))
  build(draft.doc('Note', 'a'))
  return [...draft.edits.values()][0]
}

test('a stamp is read and written back', () => {
  const ms = Date.UTC(2026, 10, 21, 10, 30, 0, 123)
  assert.equal(stampOf(ms), 261121103000123)
  assert.equal(timeOf(261121103000123), ms)
  assert.equal(timeOf(stampOf(Date.UTC(2001, 0, 1, 0, 0, 0, 7))), Date.UTC(2001, 0, 1, 0, 0, 0, 7))
})

test('a key is a UUID of version 7 with its time, and no two are the same', () => {
  const keys = Array.from({ length: 100 }, () => keyOfTime(1790000000123))
  for (const key of keys) assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.equal(new Set(keys).size, 100)
  assert.equal(parseInt(keys[0].replaceAll('-', '').slice(0, 12), 16), 1790000000123)
})

for (const vector of casesOf('collection')) {
  test(`vector of a collection: ${vector.name}`, () => assert.equal(compare(vector.copy ?? undefined, vector.document), vector.do))
}

for (const { name, token, account } of casesOf('tokens')) {
  test(`vector of a token: ${name}`, () => assert.equal(accountOf(token), account))
}

test('local changes are shown over the copy, in their order', () => {
  const copy = copyOf(10, item('1', 10), item('2', 10))
  const first = editOf(copy, doc => doc.set('Line', '1', 'new').remove('Line', '2').set('Title', 'T'))
  const second = editOf(copy, doc => doc.set('Line', '1', null), [{ entry: { id: 'e1' }, edit: first }])
  const shown = show(copy, [{ entry: { id: 'e1' }, edit: first }, { entry: { id: 'e2' }, edit: second }])
  assert.deepEqual(Object.keys(shown.items), ['Title'])
  assert.equal(second.was['Line.1'].item, 'new')
  assert.equal(shown.ct, 5)
  assert.equal(show(copy, [{ entry: { id: 'e3' }, edit: editOf(copy, doc => doc.delete()) }]).ct, 0)
  assert.deepEqual(copy, copyOf(10, item('1', 10), item('2', 10)))
})

test('a change is brought onto a newer copy; the hook sees only what both sides have changed', async () => {
  const copy = copyOf(10, item('1', 10), item('2', 10))
  const edit = editOf(copy, doc => doc.set('Line', '1', 'mine').set('Line', '2', 'mine too').set('Line', '3', 'other'))
  const newer = copyOf(20, item('1', 20, 'theirs'), item('2', 10), item('4', 20))
  const seen = []
  const next = await rebase(edit, newer, conflict => { seen.push(conflict); return 'merged' })
  assert.deepEqual(seen, [{ c: 'Note', id: 'a', item: 'Line', key: '1', base: '1', mine: 'mine', theirs: 'theirs' }])
  assert.deepEqual(Object.values(next.items).map(one => one.j), ['merged', 'mine too', 'other'])
  assert.equal(next.base.v, 20)
  const again = await rebase(next, newer, () => assert.fail('it was asked once'))
  assert.deepEqual(again.items, next.items)
})

test('who writes without having read starts from nothing: the hook sees what is there', async () => {
  const edit = editOf(undefined, doc => doc.set('Line', '1', 'mine'))
  const seen = []
  await rebase(edit, copyOf(10, item('1', 10, 'theirs')), ({ base, theirs }) => { seen.push(base, theirs); return 'merged' })
  assert.deepEqual(seen, [null, 'theirs'])
})

test('the hook may keep theirs, or remove; without one mine is written', async () => {
  const copy = copyOf(10, item('1', 10))
  const newer = copyOf(20, item('1', 20, 'theirs'))
  const edit = editOf(copy, doc => doc.set('Line', '1', 'mine'))
  assert.equal(await rebase(edit, newer, () => undefined), null)
  assert.deepEqual((await rebase(edit, newer, () => null)).items['Line.1'], { c: 'Line', k: '1', del: true })
  assert.equal((await rebase(edit, newer, undefined)).items['Line.1'].j, 'mine')
})

test('what others have removed is a conflict too', async () => {
  const edit = editOf(copyOf(10, item('1', 10)), doc => doc.set('Line', '1', 'mine'))
  const seen = []
  await rebase(edit, copyOf(20), conflict => { seen.push(conflict.theirs); return undefined })
  assert.deepEqual(seen, [null])
})

test('a change of a document that was deleted is refused, unless the hook wants it', async () => {
  const edit = editOf(copyOf(10, item('1', 10)), doc => doc.set('Line', '1', 'mine'))
  await assert.rejects(rebase(edit, none, undefined), { code: 'DELETED' })
  assert.equal((await rebase(edit, none, ({ mine }) => mine)).items['Line.1'].j, 'mine')
  assert.equal(await rebase(editOf(copyOf(10), doc => doc.delete()), none, undefined), null)
})

test('after a restore of the server a change finds the document in a new incarnation', async () => {
  const edit = editOf(copyOf(10, item('1', 10), item('2', 8)), doc => doc.set('Line', '2', 'mine'))
  const restored = { ...copyOf(30, item('1', 8), item('2', 8)), ct: 30 }
  const next = await rebase(edit, restored, () => assert.fail('nobody has changed it'))
  assert.deepEqual([next.base.v, next.items['Line.2'].j], [30, 'mine'])
})

test('a change that rests on one that was done is no conflict with it', async () => {
  const copy = copyOf(10, item('1', 10))
  const first = editOf(copy, doc => doc.set('Line', '1', 'one'))
  const second = editOf(copy, doc => doc.set('Line', '1', 'two'), [{ entry: { id: 'e1' }, edit: first }])
  const mine = copyOf(20, item('1', 20, 'one'))
  await rebase(follow(second, 'e1', first, 20, mine), mine, () => assert.fail('it was the change before'))
  const seen = []
  const theirs = copyOf(30, item('1', 30, 'other'))
  await rebase(follow(second, 'e1', first, 20, theirs), theirs, conflict => { seen.push(conflict.base) })
  assert.deepEqual(seen, ['one'])
})

test('a value that is not JSON is refused where it is written, and what is written cannot be changed afterwards', () => {
  assert.throws(() => editOf(copyOf(10), doc => doc.set('Line', '1', undefined)), TypeError)
  const value = { list: [1] }
  const edit = editOf(copyOf(10), doc => doc.set('Line', '1', value))
  value.list.push(2)
  assert.deepEqual(edit.items['Line.1'].j, { list: [1] })
})

test('each fault has its consequence', () => {
  const kind = (code, status = 400) => new Fault({ code, status }).kind
  assert.deepEqual(['XAWAY', 'CONTENTION', 'OREADONLY', 'NETWORK', 'BSTATE'].map(code => kind(code, 503)), Array(5).fill('again'))
  assert.deepEqual(['BINTERNAL', 'OSTOPPING', 'OOFF', 'OBUILDING'].map(code => kind(code, 503)), Array(4).fill('again'))
  assert.deepEqual(['AOTHER', 'NPATH', 'NOPERATION', 'ORECORDS', 'OMAIL', 'SORIGIN', 'DOTHER', '?'].map(code => kind(code)), Array(8).fill('refused'))
  assert.deepEqual([kind('SKEY', 401), kind('SCLOSED', 401), kind('SRULE', 403)], ['sign', 'sign', 'refused'])
  assert.deepEqual([kind('OGONE', 410), kind('DBUILD'), kind('AVERSION', 409), kind('OENCRYPTED')], ['over', 'over', 'refused', 'refused'])
})

test('pauses grow, have an end, and are never shorter than the server asks', () => {
  const backoff = { least: 100, most: 1000 }
  for (let i = 0; i < 200; i++) {
    assert.ok(delayOf(backoff, 0, 0) >= 50 && delayOf(backoff, 0, 0) <= 100)
    assert.ok(delayOf(backoff, 60, 0) <= 1000)
    assert.ok(delayOf(backoff, 0, 700) >= 700)
  }
})

/* A store that is slow to write; what is read is what was written when the reading began, as in IndexedDB. */
function slowStore(rows = new Map()) {
  const later = () => new Promise(resolve => { setTimeout(resolve, 2) })
  return {
    isShared: true,
    isLasting: true,
    async load() {
      const outbox = [...rows.values()]
      await later()
      return { copies: [], collections: [], outbox }
    },
    async commit(batch) {
      await later()
      for (const [id, entry] of batch.outbox ?? []) entry ? rows.set(id, entry) : rows.delete(id)
    },
    async close() {}
  }
}

test('a change that is made while the store is read is not lost', async () => {
  for (let delay = 0; delay < 8; delay++) {
    const cache = new Cache(slowStore())
    const ids = []
    const change = () => {
      const id = cache.nextId()
      ids.push(id)
      return cache.commit({ outbox: [[id, { id, op: 'put', at: 0, edits: [] }]] })
    }
    void change()
    const loaded = cache.load()
    for (let i = 0; i < delay; i++) await new Promise(resolve => { setTimeout(resolve, 1) })
    void change()
    const gone = ids[0]
    void cache.commit({ outbox: [[gone, null]] })
    await loaded
    assert.deepEqual([...cache.outbox.keys()], ids.slice(1), `${delay} ms behind the beginning`)
    await cache.saving
    await cache.load()
    assert.deepEqual([...cache.outbox.keys()], ids.slice(1))
  }
})

test('events are read however their bytes are cut', async () => {
  const text = ': hello\n\nretry: 1200\nevent: ready\ndata: {"resumed":false}\n\nid: 7:9\n\nevent: change\ndata: {"changed":[["Note/é",5]]}\nid: 8\n\n'
  const bytes = new TextEncoder().encode(text)
  for (const size of [1, 2, 7, bytes.length]) {
    const body = new ReadableStream({
      start(stream) {
        for (let i = 0; i < bytes.length; i += size) stream.enqueue(bytes.slice(i, i + size))
        stream.close()
      }
    })
    const events = []
    for await (const event of eventsOf(body, 60_000)) events.push(event)
    assert.deepEqual(events, [
      { event: '', data: '' }, { event: 'ready', data: '{"resumed":false}', retry: 1200 }, { event: '', data: '', id: '7:9' },
      { event: 'change', data: '{"changed":[["Note/é",5]]}', id: '8' }])
  }
})

/* A server that is away at first.  It stores what it is sent, and its live events end when it goes away. */
function playedServer() {
  const net = { isOn: false, ends: new Set(), go: () => { net.isOn = false; for (const end of net.ends) end() } }
  net.fetch = async (address, init) => {
    if (!net.isOn) throw new TypeError('no network')
    if (!address.endsWith('/live')) {
      const syncs = (JSON.parse(init.body).syncs ?? []).map(({ c, id }) => ({ c, id, v: 7, ct: 7, dt: 7, items: [] }))
      return new Response(JSON.stringify({ out: { v: 7 }, syncs }), { headers: { 'Content-Type': 'application/json' } })
    }
    return new Response(new ReadableStream({
      start(stream) {
        stream.enqueue(new TextEncoder().encode('event: ready\ndata: {"resumed":true}\n\n'))
        net.say = data => stream.enqueue(new TextEncoder().encode(`event: state\ndata: ${JSON.stringify(data)}\n\n`))
        if (net.state) net.say(net.state)
        const end = () => { if (net.ends.delete(end)) stream.close() }
        net.ends.add(end)
        init.signal.addEventListener('abort', end)
      }
    }), { headers: { 'Content-Type': 'text/event-stream' } })
  }
  return net
}

/** Until a session has live events. */
async function untilLive(net) {
  while (!net.ends.size) await new Promise(resolve => { setTimeout(resolve, 1) })
}

async function openedAt(test, net, options = {}) {
  const session = await open({ url: 'http://played', ns: 'lab', backoff: { least: 1, most: 5 }, fetch: net.fetch, ...options })
  test.after(() => session.close())
  return session
}

test('a session that only has changes to send is online again when they were sent', async test => {
  const net = playedServer()
  const session = await openedAt(test, net)
  const sent = session.doc('Note', 'a').change(note => note.set('Line', '1', 'bread'))
  await until(session.status, ({ fault }) => fault?.code === 'NETWORK')
  net.isOn = true
  await sent
  await until(session.status, ({ online, pending, fault }) => online && pending === 0 && fault === null)
})

test('a session that follows nothing any more finds out when the network is back', async test => {
  const net = playedServer()
  net.isOn = true
  const session = await openedAt(test, net)
  const end = session.doc('Note', 'a').subscribe(() => {})
  await untilLive(net)
  await session.sync()
  net.go() // only live events notice
  await until(session.status, ({ fault }) => fault?.code === 'NETWORK')
  end()
  await new Promise(resolve => { setTimeout(resolve, 20) })
  assert.equal(session.status.get().online, false)
  net.isOn = true
  await until(session.status, ({ online, fault }) => online && fault === null)
})

test('the status has what the administrator says about the namespace', async test => {
  const net = Object.assign(playedServer(), { isOn: true, state: { state: 1, message: 'Moving.' } }), seen = []
  const session = await openedAt(test, net)
  assert.deepEqual(session.status.get().namespace, { state: 0 })
  test.after(session.doc('Note', 'a').subscribe(() => {}))
  await until(session.status, ({ namespace }) => namespace.state === 1)
  assert.deepEqual(session.status.get().namespace, net.state)
  net.say({ state: 0, label: 'Notes', options: { colour: 'red' } })
  await until(session.status, ({ namespace }) => namespace.label === 'Notes')
  test.after(session.status.subscribe(({ namespace }) => { if (seen.at(-1) !== namespace) seen.push(namespace) }))
  net.state = null // nothing follows the next `ready`: all is as usual
  net.go()
  net.isOn = true
  await until(session.status, ({ namespace }) => !namespace.label)
  assert.deepEqual(seen, [{ state: 0, label: 'Notes', options: { colour: 'red' } }, { state: 0 }])
})

test('a tab that another one leads knows whether there is a network', async test => {
  const net = playedServer()
  let begins
  Object.defineProperty(globalThis.navigator ??= {}, 'locks', { configurable: true, value: {
    async request(name, { signal }, hold) {
      if (begins) await new Promise((_, reject) => { signal.addEventListener('abort', () => reject(new Error('given up'))) })
      begins = hold
      return hold()
    }
  } })
  test.after(() => { delete globalThis.navigator.locks })
  const shared = () => ({ ...memoryStore(), isShared: true })
  const leader = await openedAt(test, net, { name: 'two tabs', store: shared() })
  leader.doc('Note', 'a').subscribe(() => {})
  await until(leader.status, ({ fault }) => fault?.code === 'NETWORK')
  const second = await openedAt(test, net, { name: 'two tabs', store: shared() })
  await until(second.status, ({ fault, leader }) => !leader && fault?.code === 'NETWORK')
  net.isOn = true
  await until(second.status, ({ online, fault, live }) => online && fault === null && live)
  assert.equal(second.status.get().liveSince, leader.status.get().liveSince)
  net.say({ state: 1, message: 'Moving.' })
  await until(second.status, ({ namespace }) => namespace.message === 'Moving.')
  net.go()
  await until(second.status, ({ fault }) => fault?.code === 'NETWORK')
  net.isOn = true
  await until(second.status, ({ online }) => online)
})

test('a change that is refused for its time again and again is sent less and less often', async test => {
  let requests = 0
  const refusal = () => { requests++; return Promise.resolve(new Response('{"code":"AKEYAHEAD","args":[]}', { status: 422, headers: { 'Content-Type': 'application/problem+json' } })) }
  const session = await openedAt(test, { fetch: refusal }, { backoff: { least: 60_000, most: 60_000 } })
  session.write(draft => draft.doc('Note', 'a').set('Line', '1', 'bread'))
  await until(session.status, ({ fault }) => fault?.code === 'AKEYAHEAD')
  assert.ok(requests > 1 && requests < 50, `${requests} requests`)
})

test('an answer that goes on for ever is asked for less and less often', async test => {
  const answers = {
    sync: body => ({ syncs: body.syncs.map(({ c, id }) => ({ c, id, later: true })) }),
    collection: () => ({ out: { docs: [] } })
  }
  let requests = 0
  const fetch = (address, init) => {
    requests++
    const answer = answers[address.split('/').at(-1)](JSON.parse(init.body))
    return Promise.resolve(new Response(JSON.stringify(answer), { headers: { 'Content-Type': 'application/json' } }))
  }
  const session = await openedAt(test, { fetch }, { live: false, backoff: { least: 60_000, most: 60_000 } })
  for (const store of [session.doc('Note', 'a'), session.collection('Person', 'team', 'x')]) {
    const end = store.subscribe(() => {})
    requests = 0
    await assert.rejects(session.sync(), { code: 'NETWORK' })
    assert.ok(requests > 0 && requests < 5, `${requests} requests`)
    end()
    session.syncer.documents.clear()
    session.syncer.collections.clear()
  }
})

test('a listener or a hook that throws stops nothing', async test => {
  const net = playedServer()
  net.isOn = true
  const told = test.mock.method(console, 'error', () => {})
  const store = { ...slowStore(), isShared: false }
  const rows = []
  const session = await openedAt(test, net, { store: { ...store, commit: async batch => { rows.push(batch) } } })
  session.cache.listen('*', () => { throw new Error('of the application') })
  await session.doc('Note', 'a').change(note => note.set('Line', '1', 'bread'))
  await session.cache.saving
  assert.ok(rows.some(batch => batch.outbox?.some(([, entry]) => entry)))
  assert.ok(told.mock.callCount() > 0)
})

test('a leader whose store cannot be read again goes on with what it has', async test => {
  const net = playedServer()
  net.isOn = true
  let loads = 0
  const load = async () => {
    if (loads++) throw new Error('closed')
    return { copies: [], collections: [], outbox: [] }
  }
  const session = await openedAt(test, net, { name: 'unread', store: { ...memoryStore(), isShared: true, isLasting: true, load } })
  await session.doc('Note', 'a').change(note => note.set('Line', '1', 'bread'))
  assert.deepEqual([loads, session.cache.meanwhile], [2, null])
})

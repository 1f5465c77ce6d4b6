/* store.test.js: stores that refuse, delay or lose what is to be stored: whatever they refused, a new visit equals the server. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from '../../../src/web/client/node.js'
import { keyOfTime } from '../../../src/web/client/stamp.js'
import { lastingStore } from './lasting.js'
import { contents, fresh, get, network, opened, put, refused, shown, skip, until } from './server.js'

const MEMBERS = 600 // two batches
const line = (k, j) => ({ c: 'Line', k, j })
const full = () => new DOMException('full', 'QuotaExceededError')
const merge = ({ item, base, mine, theirs }) => item === 'Count' ? (theirs ?? 0) + (mine - (base ?? 0)) : mine
const rejected = promise => promise.then(() => null, error => error)

/** A collection that all tests share. */
let shared
const crowd = () => shared ??= crowded()
async function crowded() {
  const team = fresh('team'), ids = Array.from({ length: MEMBERS }, (_, i) => `${team}-${String(i).padStart(4, '0')}`)
  for (let i = 0; i < ids.length; i += 25) await put(...ids.slice(i, i + 25).map(id => person(id, team)))
  return { team, ids }
}
const person = (id, team, more = {}) => ({ c: 'Person', id, items: [{ c: 'Main', j: { team, ...more } }] })

/** Ways to harm a batch: what `lastingStore` awaits; `end` ends the visit as when the page is killed. */
const HARMS = {
  refused: () => { throw full() },
  late: () => new Promise(resolve => { setTimeout(resolve, 30) }),
  'stored, and said to be refused': ({ store }) => { store(); throw full() },
  'refused, and the page is killed': ({ kill, end }) => { kill(); end(); throw full() },
  'stored, and the page is killed': ({ store, kill, end }) => { store(); kill(); end() }
}
const refusedFrom = () => { throw full() } // this one and all later ones

/** A visit that reads a collection and changes a document, with a network and without.  Returns what must be true afterwards. */
async function visit(test, { team, ids }, harm) {
  const id = fresh('note'), net = network(), facts = { id, stored: 0, batches: 0, marks: {} }
  await put({ c: 'Note', id, items: [{ c: 'Count', j: 0 }] })
  facts.end = () => { facts.isKilled = true; net.isOn = false }
  const store = lastingStore(undefined, async more => { facts.batches = more.number; await harm({ ...more, end: facts.end }) })
  const session = await opened(test, { store, fetch: net.fetch, live: false, conflict: merge })
  const document = session.doc('Note', id), members = session.collection('Person', 'team', team)
  const ends = [document.subscribe(() => {}), members.subscribe(() => {})]
  const change = async () => {
    const count = (facts.changes = (facts.changes ?? 0) + 1)
    const done = document.change(note => note.set('Count', (document.get().item('Count') ?? 0) + 1).set('Line', String(count), count))
    done.then(() => { facts.marks[count] = true }, () => {})
    if (!await rejected(done.saved) && !facts.isKilled) facts.marks[count] = true
  }
  const play = async () => {
    await session.sync().catch(() => session.sync()).catch(() => {})
    await change()
    await session.sync().catch(() => {})
    net.isOn = false
    await change()
    const made = session.write(draft => draft.doc('Note', `${id}-new`).set('Line', '1', 1))
    const rests = session.write(draft => draft.doc('Note', `${id}-new`).set('Line', '2', 2))
    const isSaved = await Promise.all([made.saved, rests.saved].map(rejected))
    facts.rests = isSaved.every(error => !error) && !facts.isKilled
    await put(person(ids[facts.changes], team, { of: id }), person(ids.at(-1), 'nobody'))
    net.isOn = !facts.isKilled
    await session.sync().catch(() => {})
    await put(person(ids.at(-1), team))
    await session.sync().catch(() => {})
  }
  await play() // once the page is killed, nothing that it does has an effect
  for (const end of ends) end()
  if (facts.isKilled) void session.close()
  else await session.close()
  return { ...facts, store: facts.isKilled ? store.kill() : lastingStore(store.kept) }
}

/** A new visit, with the store that the first one has left. */
async function compare(test, { team, ids }, { store, id, changes, marks, rests, isKilled }, what) {
  const refusals = []
  const session = await opened(test, { store, live: false, conflict: merge, refused: fault => refusals.push(String(fault)) })
  const document = session.doc('Note', id), members = session.collection('Person', 'team', team)
  const ends = [document.subscribe(() => {}), members.subscribe(() => {})]
  await session.sync()
  const server = contents(await get('Note', id)), made = contents(await get('Note', `${id}-new`))
  assert.deepEqual(shown(document.get()), server, what)
  assert.deepEqual(members.get().map(one => one.id), ids, `${what}: the members`)
  for (const one of members.get()) assert.equal(one.item('Main').team, team, what)
  const lines = Object.keys(server).filter(name => name.startsWith('Line.')).map(name => name.slice(5))
  assert.equal(server.Count, lines.length, `${what}: each change once`)
  for (const mark of Object.keys(marks)) assert.ok(lines.includes(mark), `${what}: the stored change ${mark}`)
  if (!isKilled) assert.equal(lines.length, changes, `${what}: all changes`)
  if (rests || !isKilled) assert.deepEqual(made, { 'Line.1': 1, 'Line.2': 2 }, what)
  else assert.ok(!('Line.2' in made) || 'Line.1' in made, `${what}: ${JSON.stringify(made)}`)
  assert.deepEqual(refusals, [], what)
  for (const end of ends) end()
  await session.close()
}

for (const [name, harm] of Object.entries({ ...HARMS, 'refused, as all later ones': refusedFrom })) {
  test(`whichever batch is harmed, a new visit equals the server: ${name}`, { skip }, async test => {
    const all = await crowd()
    let batches = 1
    for (let number = 0; number <= batches; number++) { // 0: none
      const facts = await visit(test, all, async more => { if (more.number === number || (number && harm === refusedFrom && more.number > number)) await harm(more) })
      await put(person(all.ids.at(-1), all.team))
      if (!facts.isKilled) batches = Math.max(batches, facts.batches)
      await compare(test, all, facts, `batch ${number}, ${name}`)
    }
    assert.ok(batches > 8, `${batches} batches`)
  })
}

test('a change that the store refuses is not said to be stored; it is stored when the store takes again', { skip }, async test => {
  let isFull = true
  const id = fresh(), net = network(), store = lastingStore(undefined, async () => { if (isFull) throw full() })
  net.isOn = false
  const session = await opened(test, { store, fetch: net.fetch })
  const changes = ['1', '2'].map(k => session.doc('Note', id).change(note => note.set('Line', k, k)))
  for (const { saved } of changes) assert.equal((await rejected(saved)).name, 'QuotaExceededError')
  assert.equal(session.status.get().lasting, false)
  assert.equal((await rejected(session.forget())).name, 'QuotaExceededError', 'what is not forgotten in the store is said, too')
  const again = session.doc('Note', id).change(note => note.set('Line', '3', '3'))
  await rejected(again.saved)
  isFull = false
  await until(session.status, ({ lasting }) => lasting)
  assert.deepEqual([...store.kept.outbox.values()].map(entry => Object.keys(entry.edits[0].items)), [['Line.3']])
  await session.close()
  net.isOn = true
  const next = await opened(test, { store: lastingStore(store.kept) })
  await next.sync()
  assert.deepEqual(contents(await get('Note', id)), { 'Line.3': '3' })
})

test('changes are stored though a collection does not fit', { skip }, async test => {
  const all = await crowd(), id = fresh(), net = network()
  const store = lastingStore(undefined, async ({ batch }) => { if (batch.copies?.length > 100) throw full() })
  const session = await opened(test, { store, fetch: net.fetch, live: false })
  test.after(session.doc('Note', id).subscribe(() => {}))
  await session.sync() // it is stored that there is no such document
  const members = session.collection('Person', 'team', all.team)
  test.after(members.subscribe(() => {}))
  await session.sync()
  assert.equal(members.get().length, MEMBERS)
  assert.equal(store.kept.copies.get(`Note/${id}`).v, 0)
  assert.equal(session.status.get().lasting, false)
  await session.doc('Note', id).change(note => note.set('Line', '1', 1)) // its copy is not stored
  net.isOn = false
  await session.doc('Note', `${id}-other`).change(note => note.set('Line', '1', 1)).saved // has its argument; the next one has none
  await session.doc('Note', id).change(note => note.set('Line', '2', 2)).saved
  await session.close()
  const refusals = []
  const next = await opened(test, { store: lastingStore(store.kept), live: false, refused: fault => refusals.push(String(fault)) })
  const later = next.collection('Person', 'team', all.team)
  test.after(later.subscribe(() => {}))
  await next.sync()
  assert.deepEqual(refusals, [])
  assert.deepEqual(later.get().map(one => one.id), all.ids)
  assert.deepEqual(contents(await get('Note', id)), { 'Line.1': 1, 'Line.2': 2 })
})

test('a change whose key the store refuses takes effect once', { skip }, async test => {
  for (const isOld of [false, true]) { // made so long ago that it gets another key
    let isFull = false
    const id = fresh(), net = network(), store = lastingStore(undefined, async () => { if (isFull) throw full() })
    const first = await opened(test, { store, fetch: net.fetch, live: false, conflict: merge })
    net.isOn = false
    const made = [first.doc('Note', id).change(note => note.set('Count', 1)), first.send('put', { docs: [{ c: 'Note', id: `${id}-sent`, items: [line('1', 1)] }] })]
    for (const { saved } of made) await saved
    if (isOld) for (const [key, entry] of first.cache.outbox) first.cache.outbox.set(key, { ...entry, key: keyOfTime(Date.now() - 13 * 3600_000) })
    isFull = true
    net.isOn = true
    if (isOld) {
      await refused('CSTORE', first.sync())
      assert.equal((await get('Note', id)).v, 0, 'it is not sent under a key that is not stored')
      isFull = false
    }
    await Promise.all(made)
    const refusals = []
    const next = await opened(test, { store: store.kill(), live: false, conflict: merge, refused: fault => refusals.push(String(fault)) })
    assert.equal(next.status.get().pending, isOld ? 0 : 2)
    await put({ c: 'Note', id, items: [{ c: 'Count', j: 5 }] }, { c: 'Note', id: `${id}-sent`, items: [line('1', 'of another')] })
    await next.sync()
    assert.deepEqual([next.status.get().pending, refusals], [0, []])
    assert.deepEqual(contents(await get('Note', id)), { Count: 5 })
    assert.deepEqual(contents(await get('Note', `${id}-sent`)), { 'Line.1': 'of another' })
  }
})

test('a collection with a member whose copy was never stored is read anew', { skip }, async test => {
  const team = fresh('team'), ids = ['a', 'b', 'c'].map(name => `${team}-${name}`)
  await put(...ids.map(id => person(id, team)))
  const store = lastingStore()
  const ask = async () => {
    const session = await opened(test, { store: lastingStore(store.kept), live: false })
    const members = session.collection('Person', 'team', team)
    test.after(members.subscribe(() => {}))
    await session.sync()
    assert.deepEqual(members.get().map(one => one.id), ids)
    await session.close()
  }
  await ask()
  store.kept.copies.delete(`Person/${ids[1]}`)
  await ask()
  assert.equal(store.kept.copies.size, 3)
})

test('a copy that another collection is just reading is kept when its document leaves this one', { skip }, async test => {
  const [one, other] = [fresh('team'), fresh('team')], id = `${one}-x`
  const copy = (id, team) => [`Person/${id}`, { c: 'Person', id, v: 1, ct: 1, dt: 1, items: { Main: { c: 'Main', v: 1, j: { team } } } }]
  const of = (team, more) => [`@Person/team@${team}`, { def: `@Person/team@${team}`, c: 'Person', collection: 'team', value: team, members: [], ...more }]
  const store = lastingStore()
  store.kept.copies = new Map([copy(id, other)])
  store.kept.collections = new Map([of(one, { members: [id], token: 'of before' }), of(other, { incoming: [id], cursor: 'of before' })])
  const session = await opened(test, { store, live: false })
  const members = session.collection('Person', 'team', one)
  test.after(members.subscribe(() => {}))
  await session.sync()
  assert.deepEqual(members.get(), [])
  assert.ok(session.cache.copies.has(`Person/${id}`))
})

test('a file of which the disk took a part of a batch is read as if it had refused the batch', async test => {
  const folder = await mkdtemp(join(tmpdir(), 'stampd-client-'))
  test.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'store'), store = await fileStore(path)
  const entry = id => ({ outbox: [[id, { id, op: 'put', at: 0, edits: [] }]] })
  await store.commit(entry('1'))
  const probe = await open(path)
  const taking = test.mock.method(Object.getPrototypeOf(probe), 'appendFile', async function (bytes) {
    await this.write(Buffer.from(bytes).subarray(0, 9))
    throw new Error('ENOSPC')
  })
  await probe.close()
  await assert.rejects(store.commit(entry('2')))
  taking.mock.restore()
  await store.commit(entry('3'))
  await store.close()
  const again = await fileStore(path)
  assert.deepEqual((await again.load()).outbox.map(({ id }) => id), ['1', '3'])
  await again.close()
})

/* session.test.js: sessions against the real server: reads, changes, refusals, conflicts, collections, live events. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore, Session } from '../../../src/web/client/node.js'
import { contents, fresh, get, network, op, opened, put, refused, shown, skip, until } from './server.js'

const line = (k, j) => ({ c: 'Line', k, j })
const note = (id, ...items) => ({ c: 'Note', id, items })

test('a document is read, and follows the changes of others', { skip }, async test => {
  const id = fresh('with space/and slash')
  const session = await opened(test)
  const document = session.doc('Note', id)
  assert.deepEqual([document.get().known, document.get().exists], [false, false])
  assert.equal((await until(document, one => one.known)).exists, false)
  await put(note(id, line('1', { text: 'bread' }), line('2', 'milk'), { c: 'Title', j: 'Shopping' }))
  const first = await until(document, one => one.exists)
  assert.deepEqual(first.items('Line'), [['1', { text: 'bread' }], ['2', 'milk']])
  assert.equal(first.item('Title'), 'Shopping')
  assert.equal(document.get(), first, 'the same object until it changes')
  await put(note(id, { c: 'Line', k: '1', del: true }, line('3', 'salt')))
  await until(document, one => one.item('Line', '3') && !one.item('Line', '1'))
  assert.deepEqual(shown(document.get()), contents(await get('Note', id)))
  await put({ c: 'Note', id, delete: true })
  await until(document, one => !one.exists)
})

test('a change is visible at once, and reaches the server and other sessions', { skip }, async test => {
  const id = fresh()
  const [one, other] = [await opened(test), await opened(test)]
  const there = other.doc('Note', id)
  const seen = until(there, document => document.item('Line', '1') === 'bread')
  const done = one.doc('Note', id).change(note => note.set('Line', '1', 'bread').set('Title', 'T'))
  const at_once = one.doc('Note', id).get()
  assert.deepEqual([at_once.item('Line', '1'), at_once.pending, at_once.exists], ['bread', true, true])
  const out = await done
  assert.equal(out.docs[0].v, one.doc('Note', id).get().version)
  assert.equal(one.doc('Note', id).get().pending, false)
  await seen
  assert.deepEqual(contents(await get('Note', id)), { 'Line.1': 'bread', Title: 'T' })
})

test('several documents change together or not at all, and what is refused is rolled back', { skip }, async test => {
  const [a, b] = [fresh(), fresh()]
  const refusals = []
  const session = await opened(test, { refused: fault => refusals.push(fault.code) })
  await session.write(draft => { draft.doc('Note', a).set('Line', '1', 1); draft.doc('Note', b).set('Line', '1', 1) })
  const document = session.doc('Note', a)
  const values = []
  test.after(document.subscribe(one => values.push(one.item('Line', '1'))))
  await refused('ALIMIT', session.write(draft => {
    draft.doc('Note', a).set('Line', '1', 2)
    draft.doc('Note', b).set('Line', 'k'.repeat(300), 2)
  }))
  assert.deepEqual(values, [1, 2, 1])
  assert.deepEqual(refusals, ['ALIMIT'])
  assert.deepEqual(contents(await get('Note', a)), { 'Line.1': 1 })
})

test('what was written without a network arrives in its order, after the program was ended', { skip }, async test => {
  const folder = await mkdtemp(join(tmpdir(), 'stampd-client-'))
  test.after(() => rm(folder, { recursive: true }))
  const [id, path] = [fresh(), join(folder, 'store')]
  const net = network()
  const first = await opened(test, { store: await fileStore(path), fetch: net.fetch })
  await first.doc('Note', id).change(note => note.set('Line', '0', 'before'))
  net.isOn = false
  for (const k of ['1', '2', '3']) await first.doc('Note', id).change(note => note.set('Line', k, k).set('Last', k)).saved
  await first.doc('Note', id).change(note => note.remove('Line', '0')).saved
  assert.equal(first.status.get().pending, 4)
  await first.close()

  const second = await opened(test, { store: await fileStore(path), fetch: net.fetch })
  assert.deepEqual(shown(second.doc('Note', id).get()), { 'Line.1': '1', 'Line.2': '2', 'Line.3': '3', Last: '3' })
  await refused('NETWORK', second.sync())
  net.isOn = true
  await second.sync()
  assert.equal(second.status.get().pending, 0)
  assert.deepEqual(contents(await get('Note', id)), { 'Line.1': '1', 'Line.2': '2', 'Line.3': '3', Last: '3' })
  assert.deepEqual(shown(second.doc('Note', id).get()), contents(await get('Note', id)))
})

test('a change whose answer was lost takes effect once', { skip }, async test => {
  const id = fresh()
  let losses = 3
  const session = await opened(test, {
    live: false,
    async fetch(address, init) {
      const response = await fetch(address, init)
      if (address.endsWith('/op/put') && losses-- > 0) {
        await response.text()
        await put(note(id, line('1', `other ${losses}`))) // a second effect of the change would overwrite this
        throw new TypeError('lost')
      }
      return response
    }
  })
  await session.doc('Note', id).change(note => note.set('Line', '1', 'mine'))
  assert.equal((await get('Note', id)).items[0].j, 'other 0')
  assert.equal(session.doc('Note', id).get().item('Line', '1'), 'other 0')
})

test('two sessions that change the same item: the hook merges, and nothing is lost', { skip }, async test => {
  const id = fresh()
  const conflict = ({ base, mine, theirs }) => theirs === null ? mine : theirs + (mine - (base ?? 0))
  const sessions = [await opened(test, { conflict }), await opened(test, { conflict })]
  await sessions[0].doc('Note', id).change(note => note.set('Count', 0))
  await until(sessions[1].doc('Note', id), one => one.exists)
  const add = session => session.doc('Note', id).change(note => note.set('Count', session.doc('Note', id).get().item('Count') + 1))
  await Promise.all(sessions.flatMap(session => Array.from({ length: 10 }, () => add(session))))
  assert.equal((await get('Note', id)).items[0].j, 20)
})

test('a change of a document that others have deleted is refused, and what rests on a refused change too', { skip }, async test => {
  const id = fresh()
  const net = network()
  const session = await opened(test, { fetch: net.fetch, live: false })
  await session.doc('Note', id).change(note => note.set('Line', '1', 1))
  net.isOn = false
  const late = session.doc('Note', id).change(note => note.set('Line', '2', 2))
  const created = session.write(draft => draft.doc('Note', `${id}-new`).set('Line', 'k'.repeat(300), 1))
  const rests = session.write(draft => draft.doc('Note', `${id}-new`).set('Line', '1', 1))
  const apart = session.write(draft => draft.doc('Note', `${id}-apart`).set('Line', '1', 1))
  await put({ c: 'Note', id, delete: true })
  net.isOn = true
  await refused('DELETED', late)
  await refused('ALIMIT', created)
  await refused('DELETED', rests)
  await apart
  assert.equal(session.doc('Note', id).get().exists, false)
  assert.equal((await get('Note', `${id}-new`)).v, 0)
})

test('an item that others have removed does not come back by itself', { skip }, async test => {
  const id = fresh()
  const net = network()
  const session = await opened(test, { fetch: net.fetch, live: false, conflict: ({ theirs }) => theirs === null ? undefined : null })
  await session.doc('Note', id).change(note => note.set('Line', '1', 1).set('Line', '2', 1))
  net.isOn = false
  const change = session.doc('Note', id).change(note => note.set('Line', '1', 2))
  await put(note(id, { c: 'Line', k: '1', del: true }))
  net.isOn = true
  assert.equal(await change, undefined, 'nothing was left to be done')
  assert.deepEqual(shown(session.doc('Note', id).get()), { 'Line.2': 1 })
})

test('a collection follows arrivals, changes and departures', { skip }, async test => {
  const team = fresh('team')
  const person = (id, of, more = {}) => ({ c: 'Person', id: `${team}-${id}`, items: [{ c: 'Main', j: { team: of, ...more } }] })
  await put(person('anna', team), person('bert', team), person('carl', 'none'))
  const session = await opened(test)
  const members = session.collection('Person', 'team', team, { match: one => one.item('Main')?.team === team })
  const names = list => list.map(one => one.id.slice(team.length + 1)).join()
  const sizes = []
  test.after(members.subscribe(list => sizes.push(names(list))))
  await until(members, list => names(list) === 'anna,bert')
  await put(person('bert', 'none'), person('carl', team, { age: 5 }))
  const list = await until(members, list => names(list) === 'anna,carl')
  assert.equal(list[1].item('Main').age, 5)
  await put(person('carl', team, { age: 6 }))
  await until(members, list => list[1]?.item('Main').age === 6)

  const arrival = session.write(draft => draft.doc('Person', `${team}-dora`).set('Main', { team }))
  assert.equal(names(members.get()), 'anna,carl,dora', 'visible at once')
  const departure = session.write(draft => draft.doc('Person', `${team}-anna`).set('Main', { team: 'none' }))
  assert.equal(names(members.get()), 'carl,dora')
  await Promise.all([arrival, departure])
  await session.sync()
  assert.equal(names(members.get()), 'carl,dora')
  assert.ok(!sizes.slice(sizes.indexOf('carl,dora')).includes('anna,carl'), 'nothing comes back for a moment')
  await put({ c: 'Person', id: `${team}-carl`, delete: true })
  await until(members, list => names(list) === 'dora')
})

test('a document that is held already and joins a collection is shown in it', { skip }, async test => {
  const team = fresh('team'), id = `${team}-held`
  const session = await opened(test, { live: false })
  const document = session.doc('Person', id), members = session.collection('Person', 'team', team)
  const seen = []
  test.after(document.subscribe(() => {}))
  const leave = members.subscribe(() => {})
  await session.sync()
  leave()
  await put({ c: 'Person', id, items: [{ c: 'Main', j: { team } }] })
  await session.sync()
  assert.ok(document.get().exists)
  test.after(members.subscribe(list => seen.push(list.length)))
  await session.sync()
  assert.deepEqual([seen.at(-1), members.get().map(one => one.id)], [1, [id]])
})

async function large(team) {
  const ids = Array.from({ length: 1100 }, (_, i) => `${team}-${String(i).padStart(4, '0')}`)
  for (let i = 0; i < ids.length; i += 25) {
    await put(...ids.slice(i, i + 25).map(id => ({ c: 'Person', id, items: [{ c: 'Main', j: { team } }] })))
  }
  return ids
}

test('the first load of a collection is one request, shown while it comes, and the next one asks for changes', { skip }, async test => {
  const team = fresh('team'), ids = await large(team), asked = []
  const session = await opened(test, {
    live: false,
    fetch(address, init) {
      if (address.endsWith('/op/collection')) asked.push(JSON.parse(init.body).param)
      return fetch(address, init)
    }
  })
  const members = session.collection('Person', 'team', team), sizes = []
  let received = 0
  test.after(members.subscribe(list => sizes.push(list.length)))
  test.after(session.status.subscribe(({ progress }) => { received = Math.max(received, progress?.received ?? 0) }))
  await until(members, list => list.length === ids.length)
  await session.sync()
  assert.deepEqual(members.get().map(one => one.id), ids)
  assert.ok(sizes.some(size => size >= 500 && size < ids.length), 'what has come is shown while others come')
  assert.ok(received >= ids.length)
  assert.deepEqual(asked.map(one => Boolean(one.stream)), [true, ...asked.slice(1).map(() => false)])
  assert.ok(asked.length > 1 && asked.slice(1).every(one => one.token))
})

test('a first load that breaks off goes on in pages', { skip }, async test => {
  const team = fresh('team'), ids = await large(team)
  let streams = 0
  const session = await opened(test, {
    live: false,
    async fetch(address, init) {
      const response = await fetch(address, init)
      if (!address.endsWith('/op/collection') || !JSON.parse(init.body).param.stream) return response
      streams++
      return new Response((await response.text()).slice(0, -100), { headers: { 'Content-Type': 'application/x-ndjson' } })
    }
  })
  const members = session.collection('Person', 'team', team)
  test.after(members.subscribe(() => {}))
  await until(members, list => list.length === ids.length)
  await session.sync()
  assert.deepEqual(members.get().map(one => one.id), ids)
  assert.equal(streams, 1)
})

test('a collection of more than a page that cannot be streamed is read in pages, and a page that was lost again', { skip }, async test => {
  const team = fresh('team'), ids = await large(team)
  let pages = 0
  const session = await opened(test, {
    live: false,
    async fetch(address, init) {
      const isOfCollection = address.endsWith('/op/collection')
      if (isOfCollection && JSON.parse(init.body).param.stream) return new Response('{"code":"XBUSY","phase":1}', { status: 429, headers: { 'Content-Type': 'application/problem+json' } })
      if (isOfCollection && pages++ === 1) throw new TypeError('lost')
      return fetch(address, init)
    }
  })
  const members = session.collection('Person', 'team', team)
  const sizes = []
  test.after(members.subscribe(list => sizes.push(list.length)))
  await until(members, list => list.length === ids.length)
  await session.sync()
  assert.deepEqual(members.get().map(one => one.id), ids)
  assert.ok(sizes.includes(500), 'the first page is shown while others come')
  assert.ok(pages < 8)
})

test('what has changed before the connection for live events began is not missed', { skip }, async test => {
  const id = fresh()
  let isFirst = true
  const session = await opened(test, {
    async fetch(address, init) {
      if (address.endsWith('/live') && isFirst) {
        isFirst = false
        await until(session.doc('Note', id), one => one.known)
        await session.sync()
        await put(note(id, line('1', 'meanwhile')))
      }
      return fetch(address, init)
    }
  })
  await until(session.doc('Note', id), one => one.exists)
})

test('a collection that is not declared is refused, and all else goes on', { skip }, async test => {
  const id = fresh()
  const session = await opened(test)
  const unsubscribe = session.collection('Person', 'none', 1).subscribe(() => {})
  await until(session.status, status => status.fault?.code === 'NCOLLECTION')
  unsubscribe()
  await session.doc('Note', id).change(note => note.set('Line', '1', 1))
})

test('an operation runs once, now; a faulty one is a Fault', { skip }, async test => {
  const id = fresh()
  const session = await opened(test)
  await put(note(id, line('1', 1)))
  const { docs } = await session.call('get', { docs: [{ c: 'Note', id }] })
  assert.equal(docs[0].items[0].j, 1)
  const fault = await refused('AARG', session.call('get', { dogs: [] }))
  assert.deepEqual([fault.status, fault.phase, fault.args], [400, 1, ['dogs', 'docs']])
})

test('an operation of the application waits in the outbox, with what it will change', { skip }, async test => {
  const id = fresh()
  const net = network()
  const session = await opened(test, { fetch: net.fetch })
  net.isOn = false
  const done = session.send('put', { docs: [note(id, line('1', 'from the server'))] }, draft => draft.doc('Note', id).set('Line', '1', 'expected'))
  assert.equal(session.doc('Note', id).get().item('Line', '1'), 'expected')
  net.isOn = true
  await session.sync().catch(() => session.sync())
  await done
})

test('a put of the caller is sent as it is', { skip }, async test => {
  const id = fresh()
  const session = await opened(test)
  const out = await session.send('put', { docs: [note(id, line('1', 'sent'))] })
  assert.equal(out.docs[0].id, id)
  assert.deepEqual(contents(await get('Note', id)), { 'Line.1': 'sent' })
  await refused('AVERSION', session.send('put', { docs: [{ ...note(id, line('1', 'late')), if: 0 }] }))
})

test('a key that the server refuses for its time is made anew, by its clock', { skip }, async test => {
  const id = fresh()
  const session = await opened(test)
  const now = Date.now
  test.after(() => { Date.now = now })
  Date.now = () => now() + 3 * 3600_000
  await session.doc('Note', id).change(note => note.set('Line', '1', 'ahead'))
  Date.now = () => now() - 50 * 3600_000
  await session.doc('Note', id).change(note => note.set('Line', '2', 'behind'))
  await session.send('put', { docs: [note(id, line('3', 'not judged by its copies'))] })
  Date.now = () => now() - 200 * 86400_000
  await session.send('put', { docs: [note(id, line('4', 'dated anew'))] })
  Date.now = now
  assert.deepEqual(contents(await get('Note', id)), { 'Line.1': 'ahead', 'Line.2': 'behind', 'Line.3': 'not judged by its copies', 'Line.4': 'dated anew' })
})

test('a token that is refused is renewed once, and the change takes effect once', { skip }, async test => {
  const id = fresh(), asked = [], sent = []
  const refusal = () => new Response(JSON.stringify({ code: 'SKEY', major: 2, message: 'refused' }), { status: 403, headers: { 'Content-Type': 'application/problem+json' } })
  const session = await opened(test, {
    live: false,
    token: renew => { asked.push(renew); return renew ? 'second' : 'first' },
    fetch: (address, { headers: { Authorization, ...headers }, ...init }) => {
      sent.push(Authorization)
      return Authorization === 'Bearer second' ? fetch(address, { ...init, headers }) : Promise.resolve(refusal())
    }
  })
  await session.doc('Note', id).change(note => note.set('Line', '1', 'mine'))
  assert.deepEqual(contents(await get('Note', id)), { 'Line.1': 'mine' })
  assert.deepEqual([asked[0], asked[1], sent[0], sent[1]], [false, true, 'Bearer first', 'Bearer second'])
  await session.doc('Note', id).change(note => note.set('Line', '2', 'mine too'))
  assert.equal(asked.length, 2, 'a token that is taken is not asked for again')
  const renewals = []
  const stubborn = await opened(test, { live: false, token: renew => { renewals.push(renew); return 'wrong' }, fetch: () => Promise.resolve(refusal()) })
  await refused('SKEY', stubborn.call('get', { docs: [{ c: 'Note', id }] }))
  assert.deepEqual(renewals, [false, true])
})

test('a subscription to the same document twice is followed until the last one ends', { skip }, async test => {
  const id = fresh()
  const session = await opened(test)
  const calls = []
  const ends = [1, 2].map(n => session.doc('Note', id).subscribe(() => calls.push(n)))
  assert.deepEqual(calls, [1, 2], 'it calls at once')
  ends[0]()
  ends[0]()
  assert.ok(session.followed().has(`Note/${id}`))
  ends[1]()
  assert.ok(!session.followed().has(`Note/${id}`))
})

test('forget drops everything, here and in the store', { skip }, async test => {
  const folder = await mkdtemp(join(tmpdir(), 'stampd-client-'))
  test.after(() => rm(folder, { recursive: true }))
  const id = fresh()
  const store = await fileStore(join(folder, 'store'))
  const session = await opened(test, { store })
  await session.doc('Note', id).change(note => note.set('Line', '1', 1))
  await session.forget()
  assert.equal(session.doc('Note', id).get().known, false)
  assert.deepEqual(await store.load(), { copies: [], collections: [], outbox: [] })
})

test('a store that refuses to store: the session goes on, and says so', { skip }, async test => {
  const id = fresh()
  const full = {
    isShared: false, isLasting: true, load: async () => ({ copies: [], collections: [], outbox: [] }),
    commit: async () => { throw new DOMException('full', 'QuotaExceededError') }, close: async () => {}
  }
  const session = await opened(test, { store: full })
  await session.doc('Note', id).change(note => note.set('Line', '1', 1))
  assert.equal(session.status.get().lasting, false)
  assert.deepEqual(contents(await get('Note', id)), { 'Line.1': 1 })
  assert.ok(session instanceof Session)
})

/* find.test.js: searches that sessions follow, through changes of others, losses and refusals. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { keyOfSearch, pauseOf } from '../../../src/web/client/records.js'
import { fresh, network, op, opened, put, refused, skip, until } from './server.js'

const post = (id, room, at, more = {}) => put({ c: 'Post', id, items: [{ c: 'Main', j: { room, at, ...more } }] })
const inRoom = room => [{ f: 'room', t: 'eq', v1: room }]
const idsAre = (...ids) => value => value.known && JSON.stringify(value.items?.map(one => one.id)) === JSON.stringify(ids)

test('searches that say the same have the same key', () => {
  assert.equal(keyOfSearch('A', 'B', {}), 'find:{"c":"A","i":"B","want":"items"}')
  assert.equal(keyOfSearch('A', 'B', { want: 'ids', limit: 3 }), 'find:{"c":"A","i":"B","want":"ids","limit":3}')
})

test('many clients that follow the same change do not search at the same moment', () => {
  assert.deepEqual([pauseOf(0, 0), pauseOf(0, 0.5), pauseOf(5, 0.5)], [100, 150, 175])
  assert.deepEqual([pauseOf(300, 0), pauseOf(300, 0.5), pauseOf(60_000, 0.5)], [100, 1650, 5100], 'the longer it takes the further apart')
  assert.ok(new Set(Array.from({ length: 100 }, () => Math.round(pauseOf(100)))).size > 10)
})

test('the newest of a room, its number and its total follow the changes of others', { skip }, async test => {
  const room = fresh('room'), [a, b, c] = [fresh(), fresh(), fresh()]
  const session = await opened(test)
  const newest = session.find('Post', 'Main', { where: inRoom(room), order: '-at', limit: 2 })
  const count = session.find('Post', 'Main', { where: inRoom(room), want: 'count' })
  const total = session.find('Post', 'Main', { where: inRoom(room), want: { sum: 'at', by: 'room' } })
  assert.deepEqual(newest.get(), { known: false, fault: null })
  for (const store of [newest, count, total]) test.after(store.subscribe(() => {}))
  await until(newest, idsAre())
  await post(a, room, 1)
  await post(b, room, 2)
  await post(c, room, 3)
  const before = await until(newest, idsAre(c, b))
  assert.equal(newest.get(), before, 'the same object until it changes')
  await until(count, value => value.count === 3)
  await until(total, value => value.groups?.[0]?.sum.at === 6)
  await post(a, room, 9)
  await until(newest, idsAre(a, c))
  await put({ c: 'Post', id: c, delete: true })
  await post(a, fresh('other'), 9)
  await until(newest, idsAre(b))
  await until(count, value => value.count === 1)
  await until(total, value => value.groups?.[0]?.sum.at === 2)
})

test('a search is read once, page by page', { skip }, async test => {
  const room = fresh('room'), ids = [fresh('p1'), fresh('p2'), fresh('p3')]
  const session = await opened(test, { live: false })
  for (const [at, id] of ids.entries()) await post(id, room, at)
  const store = session.find('Post', 'Main', { where: inRoom(room), order: 'at', limit: 2, want: 'ids' })
  const first = await store.read()
  assert.deepEqual(first.ids, ids.slice(0, 2))
  assert.deepEqual(await store.read(first.cursor), { known: true, fault: null, ids: ids.slice(2) })
  assert.equal(store.get().known, false)
})

test('what is refused says so, and all else goes on', { skip }, async test => {
  const session = await opened(test), id = fresh()
  const wrong = session.find('Post', 'Main', { order: ['at', 'room'] }), none = session.find('Post', 'None')
  const document = session.doc('Post', id)
  for (const store of [wrong, none, document]) test.after(store.subscribe(() => {}))
  assert.equal((await until(wrong, value => value.known)).fault.code, 'AINDEX')
  assert.equal((await until(none, value => value.known)).fault.code, 'NFIELD')
  await post(id, 'r', 1)
  await until(document, one => one.exists)
  await refused('AINDEX', wrong.read())
})

test('what has changed while there was no connection is not missed', { skip }, async test => {
  const room = fresh('room'), id = fresh(), net = network()
  const session = await opened(test, { fetch: net.fetch })
  const store = session.find('Post', 'Main', { where: inRoom(room) })
  test.after(store.subscribe(() => {}))
  await until(store, idsAre())
  net.isOn = false
  session.live.renew() // the connection has broken
  await until(session.status, status => !status.online)
  await post(id, room, 1)
  assert.deepEqual(store.get().items, [])
  net.isOn = true
  await until(store, idsAre(id))
})

test('many changes make few requests', { skip }, async test => {
  const room = fresh('room')
  let requests = 0
  const session = await opened(test, { fetch: (address, init) => { requests += String(address).endsWith('/op/find'); return fetch(address, init) } })
  const store = session.find('Post', 'Main', { where: inRoom(room), want: 'count' })
  test.after(store.subscribe(() => {}))
  await until(store, value => value.known)
  for (let from = 0; from < 240; from += 24) {
    await op('put', { docs: Array.from({ length: 24 }, (_, i) => ({ c: 'Post', id: `${room}-${from + i}`, items: [{ c: 'Main', j: { room, at: i } }] })) })
  }
  await until(store, value => value.count === 240)
  assert.ok(requests < 120, `${requests} requests`)
})

/* records.test.js: records that sessions follow: by key, prefix and range, through losses, ends and refusals. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { Session } from '../../../src/web/client/node.js'
import { memoryStore } from '../../../src/web/client/store_memory.js'
import { definitionOfRecords } from '../../../src/web/client/records.js'
import { fresh, network, op, opened, put, skip, until, url } from './server.js'

const record = (...commands) => op('record', { commands })
const set = (key, value, more = {}) => record({ do: 'set', key, value, overwrite: true, ...more })
const valuesOf = ({ records }) => Object.fromEntries(records.map(one => [one.key, one.value]))
const has = wanted => value => value.known && JSON.stringify(valuesOf(value)) === JSON.stringify(wanted)

test('definitions are those of live events', () => {
  assert.equal(definitionOfRecords({ key: 'a/b@c %é' }), 'record:a%2Fb%40c%20%25%C3%A9')
  assert.equal(definitionOfRecords({ prefix: 'a.' }), 'records:a.')
  assert.equal(definitionOfRecords({ prefix: '' }), 'records:')
  assert.equal(definitionOfRecords({}), 'records:')
  assert.equal(definitionOfRecords({ from: 'a/', to: 'b' }), 'records:a%2F/b')
  assert.equal(definitionOfRecords({ from: 'a' }), 'records:a/')
  assert.equal(definitionOfRecords({ to: 'b' }), 'records:/b')
})

test('records of a key, a prefix and a range follow the changes of others', { skip }, async test => {
  const head = fresh('open.a/b@')
  const session = await opened(test)
  const one = session.records({ key: `${head}2` }), all = session.records({ prefix: head })
  const some = session.records({ from: `${head}2`, to: `${head}3` })
  assert.deepEqual(one.get(), { known: false, fault: null, records: [], more: false })
  const seen = []
  for (const store of [one, all, some]) test.after(store.subscribe(value => seen.push(value)))
  await Promise.all([one, all, some].map(store => until(store, has({}))))
  for (const number of [1, 2, 3, 4]) await set(`${head}${number}`, number)
  await until(all, has({ [`${head}1`]: 1, [`${head}2`]: 2, [`${head}3`]: 3, [`${head}4`]: 4 }))
  await until(some, has({ [`${head}2`]: 2, [`${head}3`]: 3 }))
  const before = await until(one, has({ [`${head}2`]: 2 }))
  assert.equal(one.get(), before, 'the same object until it changes')
  assert.deepEqual([before.records[0].type, before.records[0].size, before.records[0].state], ['integer', 8, undefined])
  await record({ do: 'rename', key: `${head}2`, to: `${head}3`, overwrite: true }, { do: 'delete', key: `${head}1` })
  await until(one, has({}))
  await until(some, has({ [`${head}3`]: 2 }))
  await until(all, has({ [`${head}3`]: 2, [`${head}4`]: 4 }))
  await set(`${head}2`, 'short', { ttl_ms: 3600_000 })
  await until(one, has({ [`${head}2`]: 'short' }))
  await set(`${head}2`, 'short', { ttl_ms: 300 }) // not before: it may end before it is read
  await until(one, has({})) // its end
  assert.ok(seen.every(value => value.fault === null))
})

test('a range of many records is read in pages, up to a limit', { skip }, async test => {
  const head = fresh('open.many.')
  const session = await opened(test)
  const commands = from => Array.from({ length: 100 }, (_, i) => ({ do: 'set', key: `${head}${String(from + i).padStart(5, '0')}`, value: from + i }))
  for (let from = 0; from < 1100; from += 100) await record(...commands(from))
  const { records } = await until(session.records({ prefix: head }), value => value.known && value.more)
  assert.deepEqual(records.map(one => one.value), Array.from({ length: 1000 }, (_, i) => i))
  const last = await until(session.records({ from: `${head}01000`, to: `${head}01098` }), value => value.known)
  assert.deepEqual([last.records.length, last.more], [99, false])
})

test('what has changed while there was no connection is not missed', { skip }, async test => {
  const key = fresh('open.'), net = network()
  const session = await opened(test, { fetch: net.fetch })
  const store = session.records({ key })
  await set(key, 'before')
  const end = store.subscribe(() => {})
  test.after(end)
  await until(store, has({ [key]: 'before' }))
  net.isOn = false
  session.live.renew() // the connection has broken
  await until(session.status, status => !status.online)
  await set(key, 'meanwhile')
  net.isOn = true
  await until(store, has({ [key]: 'meanwhile' }))
  await set(key, 'after')
  await until(store, has({ [key]: 'after' }))
})

test('records that may not be read are refused, and all else is followed', { skip }, async test => {
  const key = fresh('open.'), id = fresh()
  const session = await opened(test)
  const shut = session.records({ key: fresh('shut.') }), own = session.records({ key }), note = session.doc('Note', id)
  for (const store of [shut, own, note]) test.after(store.subscribe(() => {}))
  const refused = await until(shut, value => value.fault)
  assert.deepEqual([refused.fault.code, refused.records], ['SCLOSED', []])
  for (const value of [1, 2]) {
    await put({ c: 'Note', id, items: [{ c: 'Count', j: value }] })
    await until(note, document => document.item('Count') === value)
    await set(key, value)
    await until(own, has({ [key]: value }))
  }
  await session.sync() // asks again, with the same end
  await until(shut, value => value.fault?.code === 'SCLOSED')
  await set(key, 3)
  await until(own, has({ [key]: 3 }))
})

test('more records than the server allows: they are read, their store says so, and documents are followed', { skip }, async test => {
  const id = fresh(), keys = Array.from({ length: 8 }, () => fresh('open.'))
  const session = await opened(test)
  const note = session.doc('Note', id), stores = keys.map(key => session.records({ key }))
  await set(keys[0], 'one')
  for (const store of [note, ...stores]) test.after(store.subscribe(() => {}))
  await until(stores[0], value => value.fault?.code === 'ALIMIT' && value.records[0]?.value === 'one')
  await put({ c: 'Note', id, items: [{ c: 'Count', j: 1 }] })
  await until(note, document => document.item('Count') === 1)
})

test('nothing is read for what is followed no more, and a new subscription begins again', { skip }, async test => {
  const key = fresh('open.')
  const session = await opened(test)
  const store = session.records({ key })
  await set(key, 1)
  await until(store, has({ [key]: 1 })) // which ends its subscription
  await until(session.records({ key: fresh('open.') }), value => value.known)
  assert.equal(store.get().known, false)
  assert.equal(session.recorder.values.size, 0)
  await until(store, has({ [key]: 1 }))
})

test('of several tabs one reads, and the others have what it has read', async test => {
  const wires = []
  const tab = () => {
    const session = new Session({ url: url || 'https://localhost', ns: 'lab', live: false }, memoryStore())
    session.tabs.wire = { post: message => { for (const other of wires) if (other !== session) other.tabs.receive(structuredClone(message)) }, close() {} }
    wires.push(session)
    return session
  }
  const [leader, other] = [tab(), tab()]
  test.after(() => Promise.all([leader.close(), other.close()]))
  leader.status.set({ leader: true })
  const store = other.records({ key: 'a' }), values = []
  const end = store.subscribe(value => values.push(value.records))
  assert.deepEqual([...leader.recorder.due], ['record:a'])
  leader.recorder.set('record:a', { known: true, fault: null, records: [{ key: 'a', value: 1 }], more: false })
  leader.recorder.set('record:b', { known: true, fault: null, records: [], more: false })
  assert.deepEqual(values, [[], [{ key: 'a', value: 1 }]])
  assert.deepEqual([...other.recorder.values.keys()], ['record:a'])
  end()
  assert.deepEqual([[...leader.recorder.values.keys()], [...leader.recorder.due]], [[], []])
})

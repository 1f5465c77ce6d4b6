/* rxdb_pages.mjs: more documents than a page has, with the example's adapter; the test beside this file starts it in a folder with the packages. */
import assert from 'node:assert'
import { client, server, until } from './rxdb_kit.mjs'

const LOOK_MS = 2000 // RETRY_MS of the adapter

async function write(value, count, text = () => '') {
  const docs = Array.from({ length: count }, (_, number) => ({ c: 'Todo', id: `${value}${number}`, items: [{ c: 'Main', j: { list: value, text: text(number) } }] }))
  while (docs.length) await server('put', { docs: docs.splice(0, 25) })
}

const held = async ({ todos }) => new Map((await todos.find().exec()).map(({ id, text }) => [id, text]))
const put = (value, number, text) => server('put', { docs: [{ c: 'Todo', id: `${value}${number}`, items: [{ c: 'Main', j: { list: value, text } }] }] })
const remove = (value, number) => server('put', { docs: [{ c: 'Todo', id: `${value}${number}`, delete: true }] })

/** After the first load changes and deletions arrive, each by one small answer. */
async function follows(one, value, count) {
  await one.replication.awaitInitialReplication()
  assert.equal((await held(one)).size, count, `${value}: the first load has all`)
  await put(value, 0, 'changed')
  await until('a change', async () => (await held(one)).get(`${value}0`) === 'changed')
  await remove(value, 1)
  await until('a deletion', async () => !(await held(one)).has(`${value}1`))
  one.network.asked.length = 0
  const begun = performance.now()
  await remove(value, 2)
  await until('another deletion', async () => (await held(one)).size === count - 2)
  const looks = (performance.now() - begun) / LOOK_MS // those of a client without a stream, while the server takes its time
  assert.ok(one.network.asked.length <= 3 + looks && one.network.asked.every(({ token, cursor }) => token && !cursor), JSON.stringify(one.network.asked))
  assert.deepEqual(one.failures, [])
}

// 400 are two full pages, behind which an empty one may come.
for (const count of [450, 400, 200]) {
  const value = `of${count}.`
  await write(value, count)
  const one = await client(`pages${count}`, { value })
  await follows(one, value, count)

  // While it was away: what it held and what an answer of several pages does not have is gone.
  await one.replication.pause()
  await remove(value, 3)
  await put(value, 4, 'while away')
  await one.replication.start()
  await until('what happened meanwhile', async () => (await held(one)).size === count - 3 && (await held(one)).get(`${value}4`) === 'while away')
  await one.database.close()
}

// Pages that the server cuts by bytes: still the whole collection is there when the first load has ended.
await write('large.', 90, () => 'x'.repeat(120_000))
const large = await client('large', { value: 'large.' })
await follows(large, 'large.', 90)
await large.database.close()

// The words of an event in several pieces of the network; and a cancelled replication holds no connection.
await write('cut.', 5)
const slow = await client('slow', { value: 'cut.', piece: 9 })
await until('the stream', () => slow.network.open === 1)
await follows(slow, 'cut.', 5)
await slow.replication.cancel()
assert.equal(slow.network.open, 0)
await slow.database.close()

// Without any stream it looks again each time that it tries for one.
await write('blind.', 5)
const blind = await client('blind', { value: 'blind.', isLive: false })
await follows(blind, 'blind.', 5)
await blind.database.close()
console.log('all pages')

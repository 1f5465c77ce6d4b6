/* rxdb_kit.mjs: a client of RxDB with the example's adapter, whose network a test can end, cut and count. */
import { createRxDatabase } from 'rxdb'
import { getRxStorageMemory } from 'rxdb/plugins/storage-memory'
import { replicateStampd } from './replication.js'

const url = process.env.STAMPD_URL
const schema = {
  version: 0, primaryKey: 'id', type: 'object',
  properties: { id: { type: 'string', maxLength: 100 }, list: { type: 'string' }, text: { type: 'string' }, done: { type: 'boolean' } }
}

/** The body in pieces of so many bytes. */
function cut(response, size) {
  const pieces = new TransformStream({
    transform(chunk, controller) {
      for (let at = 0; at < chunk.length; at += size) controller.enqueue(chunk.slice(at, at + size))
    }
  })
  return new Response(response.body.pipeThrough(pieces), response)
}

export async function client(name, { value = 'home', isLive = true, piece = 0 } = {}) {
  const database = await createRxDatabase({ name, storage: getRxStorageMemory(), multiInstance: false })
  const { todos } = await database.addCollections({ todos: { schema } })
  const network = { isOn: true, open: 0, asked: [] }
  async function fetchOr(address, init) {
    const isStream = address.includes('/live?')
    if (!network.isOn || (isStream && !isLive)) throw new TypeError('offline')
    if (!isStream) network.asked.push(JSON.parse(init.body).param)
    const response = await fetch(address, init)
    if (!isStream) return response
    network.open++
    init.signal.addEventListener('abort', () => network.open--, { once: true })
    return piece ? cut(response, piece) : response
  }
  const replication = replicateStampd(todos, { url, ns: 'lab', c: 'Todo', name: 'list', value, fetch: fetchOr })
  const failures = []
  replication.error$.subscribe((error) => failures.push(error))
  return { database, todos, network, replication, failures }
}

export async function until(what, look) {
  const end = Date.now() + 120_000
  for (;;) {
    const value = await look()
    if (value) return value
    if (Date.now() > end) throw new Error(`${what}: not in time`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

export async function server(operation, param) {
  const response = await fetch(`${url}/lab/op/${operation}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ param }) })
  const answer = await response.json()
  if (!response.ok) throw new Error(JSON.stringify(answer))
  return answer.out
}

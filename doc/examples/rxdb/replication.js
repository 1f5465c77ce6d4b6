/* replication.js: replicates a collection of RxDB with a collection of stampd, in both directions.
 *
 * A document of RxDB is a document of stampd of one class: its primary key is the id, its other members are the content of the item Main,
 * and one of these, with the same value in all documents, is the property of the collection (collections.md). */
import { replicateRxCollection } from 'rxdb/plugins/replication'
import { Subject } from 'rxjs'

const LIMIT = 200
const RETRY_MS = 2000

class Refusal extends Error {
  constructor({ code, detail }, status) {
    super(`${code}: ${detail ?? ''}`)
    this.code = code
    this.status = status
  }
}

/** @param {{url: string, ns: string, c: string, name: string, value: string, property?: string, token?: () => string, fetch?: typeof fetch}} place
 *  of the documents: server, namespace, class, collection, its value and the member that has it */
export function replicateStampd(collection, { url, ns, c, name, value, property = name, token, fetch = globalThis.fetch }) {
  const primary = collection.schema.primaryPath
  const headers = () => ({ 'Content-Type': 'application/json', ...(token ? { Authorization: `Bearer ${token()}` } : {}) })

  async function call(operation, param) {
    const response = await fetch(`${url}/${ns}/op/${operation}`, { method: 'POST', headers: headers(), body: JSON.stringify({ param }) })
    const answer = await response.json()
    if (!response.ok) throw new Refusal(answer, response.status)
    return answer.out
  }

  // --- what has changed there ---

  const toRx = ({ id, items }) => ({ ...items.find((item) => item.c === 'Main')?.j, [primary]: id, _deleted: false })
  const removed = (id) => ({ [primary]: id, [property]: value, _deleted: true })

  /** A page.  The checkpoint is the token or cursor of the answer, and of a complete answer the ids so far. */
  async function pull(checkpoint) {
    const { ids, ...from } = checkpoint ?? {}
    let out
    try {
      out = await call('collection', { c, collection: name, value, limit: LIMIT, ...from })
    } catch (refusal) {
      if (refusal.code !== 'AARG' || !checkpoint) throw refusal
      return pull(undefined) // the token is of another time
    }
    const documents = [...out.docs.map(toRx), ...out.left.map(([id]) => removed(id))]
    const seen = out.complete ? [...(out.first ? [] : ids ?? []), ...out.docs.map(({ id }) => id)] : undefined
    if (out.cursor) return { documents, checkpoint: { cursor: out.cursor, ...(seen ? { ids: seen } : {}) } }
    if (seen) { // what is not in a complete answer is gone
      const held = await collection.find().exec()
      for (const one of held) if (!seen.includes(one.primary)) documents.push(removed(one.primary))
    }
    return { documents, checkpoint: { token: out.token } }
  }

  // --- what has changed here ---

  const content = ({ [primary]: _id, _deleted, _meta, _rev, _attachments, ...members }) => members
  const text = (state) => state && !state._deleted ? JSON.stringify(Object.entries(content(state)).sort()) : 'none'

  async function read(id) {
    const { docs: [document] } = await call('get', { docs: [{ c, id }] })
    return { v: document.v, state: document.items?.length ? toRx(document) : undefined }
  }

  /** Writes one document if the server has what the change was made of; returns what it has instead. */
  async function push({ assumedMasterState, newDocumentState }) {
    const id = newDocumentState[primary]
    for (;;) {
      const { v, state } = await read(id)
      if (text(state) === text(newDocumentState)) return undefined // it arrived before, and its answer was lost
      if (text(state) !== text(assumedMasterState)) return state ?? removed(id)
      const change = newDocumentState._deleted ? { delete: true } : { items: [{ c: 'Main', j: content(newDocumentState) }] }
      try {
        await call('put', { docs: [{ c, id, if: v, ...change }] })
        return undefined
      } catch (refusal) {
        if (refusal.code !== 'AVERSION') throw refusal // somebody was faster: look again
      }
    }
  }

  // --- when to look ---

  const changes = new Subject()
  const ends = new AbortController()

  async function listen() {
    const definition = `${c}/${name}@${encodeURIComponent(value)}`
    const response = await fetch(`${url}/${ns}/live?def=${encodeURIComponent(definition)}`, { headers: headers(), signal: ends.signal })
    if (!response.ok) throw new Refusal(await response.json(), response.status)
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      if (/^event: (change|ready|reset)/m.test(piece)) changes.next('RESYNC')
    }
  }

  async function follow() {
    while (!ends.signal.aborted) {
      await listen().catch(() => {})
      if (!ends.signal.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }

  const replication = replicateRxCollection({
    collection,
    replicationIdentifier: `stampd ${url}/${ns}/${c}/${name}@${value}`,
    live: true,
    retryTime: RETRY_MS,
    pull: { handler: pull, batchSize: LIMIT, stream$: changes.asObservable() },
    push: { handler: async (rows) => (await Promise.all(rows.map(push))).filter(Boolean), batchSize: 10 }
  })
  collection.onClose.push(() => ends.abort())
  void follow()
  return replication
}

/* replication.js: replicates a collection of RxDB with a collection of stampd, in both directions.
 *
 * A document of RxDB is a document of stampd of one class: its primary key is the id, its other members are the content of the item Main,
 * and one of these, with the same value in all documents, is the property of the collection (collections.md). */
import { replicateRxCollection } from 'rxdb/plugins/replication'
import { Subject } from 'rxjs'

const LIMIT = 200
const RETRY_MS = 2000
const SILENCE_MS = 60_000

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

  /**
   * What RxDB does not have yet.  It takes fewer than LIMIT documents for the end, and stores no checkpoint that comes without documents; the
   * server ends a page where it likes.  So pages are put together.  RxDB lays checkpoints over each other member by member: this one has
   * a single member, with a cursor or a token, and the ids of the complete answer whose pages have begun.
   */
  async function pull(checkpoint) {
    let { ids = [], ...from } = checkpoint?.at ?? {}
    const documents = []
    while (documents.length < LIMIT) {
      const out = await page(from)
      if (!out) return pull(undefined) // the place is of another time
      documents.push(...out.docs.map(toRx), ...out.left.map(([id]) => removed(id)))
      if (out.complete) ids = [...(out.first ? [] : ids), ...out.docs.map(({ id }) => id)]
      if (out.complete && !out.cursor) documents.push(...await gone(new Set(ids)))
      const isEnd = out.token && (documents.length || from.token)
      from = out.cursor ? { cursor: out.cursor, ids } : { token: out.token }
      if (isEnd) break
    }
    return { documents, checkpoint: { at: from } }
  }

  /** Undefined: the server does not know the place. */
  async function page({ ids, ...place }) {
    try {
      return await call('collection', { c, collection: name, value, limit: LIMIT, ...place })
    } catch (refusal) {
      if (refusal.code !== 'AARG' || !(place.cursor || place.token)) throw refusal
    }
  }

  /** What is held here and not in a complete answer.  RxDB keeps those that it has not sent yet. */
  const gone = async (ids) => (await collection.find().exec()).filter((one) => !ids.has(one.primary)).map((one) => removed(one.primary))

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

  /** Until the stream ends, or is silent for longer than the server's `live_keepalive_s`. */
  async function listen() {
    const request = new AbortController()
    const end = () => request.abort()
    ends.signal.addEventListener('abort', end, { once: true })
    let timer = setTimeout(end, SILENCE_MS)
    try {
      const definition = `${c}/${name}@${encodeURIComponent(value)}`
      const response = await fetch(`${url}/${ns}/live?def=${encodeURIComponent(definition)}`, { headers: headers(), signal: request.signal })
      if (!response.ok) throw new Refusal(await response.json(), response.status)
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (let rest = ''; ;) { // a piece of the network may end in the middle of a line
        const { done, value: piece } = await reader.read()
        if (done) return
        clearTimeout(timer)
        timer = setTimeout(end, SILENCE_MS)
        const lines = (rest + piece).split('\n')
        rest = lines.pop()
        if (lines.some((line) => /^event: (change|ready|reset)$/.test(line))) changes.next('RESYNC')
      }
    } finally {
      clearTimeout(timer)
      ends.signal.removeEventListener('abort', end)
    }
  }

  async function follow() {
    while (!ends.signal.aborted) {
      await listen().catch(() => {})
      if (ends.signal.aborted) return
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      changes.next('RESYNC') // behind a proxy that holds streams back this is all that comes
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
  replication.canceled$.subscribe((isCanceled) => isCanceled && ends.abort()) // also when the collection is closed
  void follow()
  return replication
}

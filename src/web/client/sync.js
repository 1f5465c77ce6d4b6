/* sync.js: brings the cache up to date with the server: documents by their stamps, collections by their tokens. */
import { absent, applySync, compare, headerOf, keyOf, wholeCopy } from './copy.js'
import { Fault } from './fault.js'
import { lost } from './transport.js'

/** @typedef {import('./types.js').Copy} Copy @typedef {import('./types.js').Kept} Kept @typedef {import('./types.js').SyncAnswer} SyncAnswer */

const DOCUMENTS_MOST = 200
const PAGE = 500

/** @param {string} key @returns {[string, string]} */
export function partsOf(key) {
  const slash = key.indexOf('/')
  return [key.slice(0, slash), key.slice(slash + 1)]
}

export class Syncer {
  /** @param {import('./cache.js').Cache} cache @param {import('./transport.js').Transport} transport
   * @param {(batch: import('./types.js').Batch) => Promise<void>} commit @param {(received: number) => void} progress */
  constructor(cache, transport, commit, progress) {
    this.cache = cache
    this.transport = transport
    this.commit = commit
    this.progress = progress
    /** Keys of documents to be read. @type {Set<string>} */ this.documents = new Set()
    /** Definitions of collections to be read. @type {Set<string>} */ this.collections = new Set()
    /** Collections that are not streamed. @type {Set<string>} */ this.paged = new Set()
    /** Is the document wanted by the application itself? */
    this.isFollowed = (/** @type {string} */ _key) => false
  }

  get isDue() {
    return this.documents.size > 0 || this.collections.size > 0
  }

  /** One request, or the pages of one collection.  What fails stays due. */
  async step() {
    const [def] = this.collections
    if (def !== undefined) {
      this.collections.delete(def)
      await this.readCollection(def).catch(error => {
        if (!(error instanceof Fault) || error.kind !== 'refused') this.collections.add(def)
        throw error
      })
      return
    }
    const keys = [...this.documents].slice(0, DOCUMENTS_MOST)
    for (const key of keys) this.documents.delete(key)
    await this.readDocuments(keys).catch(error => {
      for (const key of keys) this.documents.add(key)
      throw error
    })
  }

  /** @param {string[]} keys */
  held(keys) {
    return keys.map(key => this.cache.copies.get(key) ?? absent(...partsOf(key)))
  }

  /** The copies are the newest afterwards. @param {string[]} keys */
  async readDocuments(keys) {
    let wanted = keys
    while (wanted.length) {
      const held = this.held(wanted)
      const { syncs } = await this.transport.read('sync', JSON.stringify({ syncs: held.map(headerOf) }))
      const { copies, later } = this.take(held, syncs)
      if (later.length === wanted.length) throw lost('it has room for nothing')
      if (copies.length) await this.commit({ copies })
      this.progress(copies.length)
      wanted = later
    }
  }

  /** Fails while there is no network; any answer will do. */
  async probe() {
    await this.transport.operate('sync', '{"syncs":[]}').catch(fault => { if (fault.code === 'NETWORK') throw fault })
  }

  /** What the answer makes of these copies, and the keys for which it had no room.
   * @param {Copy[]} held @param {SyncAnswer[]} syncs @returns {{copies: [string, Copy][], later: string[]}} */
  take(held, syncs) {
    if (!Array.isArray(syncs) || syncs.length !== held.length) throw lost('it lacks synchronisations')
    /** @type {[string, Copy][]} */ const copies = []
    /** @type {string[]} */ const later = []
    held.forEach((copy, i) => {
      const key = keyOf(copy.c, copy.id)
      const next = applySync(copy, syncs[i])
      if (!next) later.push(key)
      else if (!this.cache.copies.has(key) || next.v !== copy.v || next.ct !== copy.ct || next.dt !== copy.dt || next.w !== copy.w) {
        copies.push([key, next])
      }
    })
    return { copies, later }
  }

  /** The first load: one answer, taken while it comes.  @param {Kept} kept */
  async streamCollection({ def, c, collection, value }) {
    const param = { c, collection, value, stream: true }
    /** @type {any[]} */ let docs = []
    let first = true
    for await (const lines of this.transport.lines('collection', JSON.stringify({ param }))) {
      const token = lines.at(-1).token
      docs.push(...(token ? lines.slice(0, -1) : lines))
      if (!token && docs.length < PAGE) continue
      const kept = this.cache.collections.get(def)
      if (kept) await this.takePage(kept, { complete: true, first, docs, token })
      if (token || !kept) return
      first = false
      docs = []
    }
  }

  /** False: it is to be read in pages.  @param {Kept} kept */
  async tryStream(kept) {
    if (kept.token || kept.cursor || this.paged.has(kept.def)) return false
    this.paged.add(kept.def) // if this breaks off, the next attempt has pages, which go on where they were
    try {
      await this.streamCollection(kept)
      this.paged.delete(kept.def)
      return true
    } catch (error) {
      if (error instanceof Fault && error.code !== 'NETWORK') return false
      throw error
    }
  }

  /** @param {string} def */
  async readCollection(def) {
    const first = this.cache.collections.get(def)
    if (first && await this.tryStream(first)) return
    let isAnew = false
    for (;;) {
      const kept = this.cache.collections.get(def)
      if (!kept) return
      const from = isAnew ? {} : kept.cursor ? { cursor: kept.cursor } : { token: kept.token }
      const param = { c: kept.c, collection: kept.collection, value: kept.value, limit: PAGE, ...from }
      try {
        const { out } = await this.transport.read('collection', JSON.stringify({ param }))
        if (!Array.isArray(out?.docs) || !(out.token || out.cursor)) throw lost('it lacks documents')
        await this.takePage(kept, out)
        isAnew = false
        if (out.token) return
      } catch (error) {
        const isTokenRefused = error instanceof Fault && error.code === 'AARG' && (kept.cursor || kept.token) && !isAnew
        if (!isTokenRefused) throw error
        isAnew = true
      }
    }
  }

  /** The last answer decides who is a member; of each document the newest version is kept.  @param {Kept} kept @param {any} out */
  async takePage(kept, out) {
    const restarts = out.complete && out.first
    const members = new Set(out.complete ? (restarts ? [] : kept.incoming ?? []) : kept.members)
    /** @type {[string, Copy | null][]} */ const copies = []
    for (const document of out.docs) {
      const key = keyOf(kept.c, document.id)
      members.add(document.id)
      const choice = compare(this.cache.copies.get(key), document)
      if (choice === 'take') copies.push([key, wholeCopy(document)])
      else if (choice === 'ask') this.documents.add(key)
    }
    /** @type {Set<string>} */ const left = new Set()
    for (const [id] of out.left ?? []) {
      if (members.delete(id)) left.add(id)
    }
    const isWhole = out.complete && out.token
    if (isWhole) for (const id of kept.members) if (!members.has(id)) left.add(id)
    for (const key of this.unused(kept, left)) copies.push([key, null])
    const { incoming, cursor, token, extra, ...rest } = kept
    /** @type {Kept} */
    const next = { ...rest, members: out.complete && !isWhole ? kept.members : [...members] }
    if (out.complete && !isWhole) next.incoming = [...members]
    if (extra && !out.token) next.extra = extra
    if (out.cursor) next.cursor = out.cursor
    if (out.token ?? token) next.token = out.token ?? token
    await this.commit({ copies, collections: [[kept.def, next]] })
    this.progress(out.docs.length)
  }

  /** Copies that nothing wants any more: of documents that have left the collection. @param {Kept} kept @param {Set<string>} left */
  unused(kept, left) {
    if (!left.size) return []
    const used = new Set()
    for (const other of this.cache.collections.values()) {
      if (other.def !== kept.def && other.c === kept.c) for (const id of [...other.members, ...other.incoming ?? []]) used.add(id)
    }
    return [...left].filter(id => !used.has(id)).map(id => keyOf(kept.c, id))
      .filter(key => this.cache.copies.has(key) && !this.isFollowed(key) && !this.cache.waiting(key).length)
  }
}

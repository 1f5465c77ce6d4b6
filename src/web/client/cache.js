/* cache.js: the volatile cache: copies, collections and waiting changes, over a store that may last, and their subscribers. */
import { keyOf } from './copy.js'
import { isEqual, show } from './edit.js'
import { Log } from './log.js'
import { Snapshot } from './snapshot.js'

/** @typedef {import('./types.js').Batch} Batch @typedef {import('./types.js').Copy} Copy @typedef {import('./types.js').Entry} Entry
 * @typedef {import('./types.js').Kept} Kept */

export class Cache {
  /** @param {import('./types.js').Store} store */
  constructor(store) {
    this.store = store
    this.log = new Log(store, () => this.whole())
    /** @type {Map<string, Copy>} */ this.copies = new Map()
    /** @type {Map<string, Kept>} */ this.collections = new Map()
    /** @type {Map<string, Entry>} in the order of their ids */ this.outbox = new Map()
    /** Entries that have ended: a message about their beginning may still come from another tab. @type {Set<string>} */
    this.ended = new Set()
    /** @type {Map<string, Snapshot>} */ this.snapshots = new Map()
    /** Keys whose snapshot may be old. @type {Set<string>} */ this.stale = new Set()
    /** @type {Map<string, Set<() => void>>} */ this.listeners = new Map()
    this.lastId = ''
    /** Whose changes are shown; empty: those that were made while nobody was signed in. */ this.account = ''
    /** What was applied since a load began. @type {Batch[] | null} */
    this.meanwhile = null
  }

  /** Kept when all that was committed was stored, or refused. */
  get saving() {
    return this.log.saving
  }

  /** Takes what the store has, and what it lacks, in place of all that is here. */
  async load() {
    const meanwhile = this.meanwhile = /** @type {Batch[]} */ ([]) // from here on: what comes behind `saving` may not be read
    await this.saving
    const kept = await this.store.load().catch(error => { this.meanwhile = null; throw error })
    this.meanwhile = null
    if (!kept) return this.keep()
    this.copies = new Map(kept.copies.map(copy => [keyOf(copy.c, copy.id), copy]))
    this.collections = new Map(kept.collections.map(collection => [collection.def, collection]))
    this.outbox = new Map(kept.outbox.sort((one, other) => one.id < other.id ? -1 : 1).map(entry => [entry.id, entry]))
    this.log.changes = new Set(this.outbox.keys())
    for (const batch of [this.log.batch, ...meanwhile]) this.apply(batch)
    this.check()
    for (const key of this.snapshots.keys()) this.stale.add(key)
    this.notify(this.listeners.keys())
  }

  /** What is here is more than what the store has: it is stored anew. */
  keep() {
    this.check()
    this.log.add(this.whole()).catch(() => {})
  }

  /** A collection with members whose copies were never stored is read anew, as a whole: its token stands for all of them. */
  check() {
    for (const [def, { token, cursor, incoming, ...kept }] of this.collections) {
      const isWhole = [...kept.members, ...incoming ?? []].every(id => this.copies.has(keyOf(kept.c, id)))
      if (!isWhole) this.collections.set(def, kept)
    }
  }

  /** @returns {Batch} */
  whole() {
    return { copies: [...this.copies], collections: [...this.collections], outbox: [...this.outbox] }
  }

  /** An id that is behind all others, also those of other tabs as far as the clock goes. */
  nextId() {
    const last = [...this.outbox.keys()].at(-1) ?? ''
    const now = Date.now().toString(36).padStart(9, '0')
    const after = [this.lastId, last].reduce((one, other) => one > other ? one : other).slice(0, 13)
    const count = after.slice(0, 9) >= now ? parseInt(after.slice(9, 13), 36) + 1 : 0
    const time = after.slice(0, 9) > now ? after.slice(0, 9) : now
    this.lastId = `${time}${count.toString(36).padStart(4, '0')}-${Math.random().toString(36).slice(2, 8)}`
    return this.lastId
  }

  /** Visible at once; the promise is kept when the store has it, and broken when the store has refused it and will be asked again.
   * @param {Batch} batch */
  commit(batch) {
    this.apply(batch)
    return this.log.add(batch)
  }

  /** Visible at once; another tab stores it. @param {Batch} batch */
  apply(batch) {
    this.meanwhile?.push(batch)
    const touched = /** @type {Set<string>} */ (new Set())
    for (const [key, copy] of batch.copies ?? []) {
      if (copy) this.copies.set(key, copy)
      else this.copies.delete(key)
      touched.add(key)
    }
    for (const [def, kept] of batch.collections ?? []) {
      const c = (kept ?? this.collections.get(def))?.c
      if (kept) this.collections.set(def, kept)
      else this.collections.delete(def)
      touched.add(def)
      if (c) touched.add(c) // members may have come and gone whose documents are as they were
    }
    for (const [id, entry] of batch.outbox ?? []) {
      for (const edit of (this.outbox.get(id) ?? entry)?.edits ?? []) touched.add(keyOf(edit.c, edit.id))
      for (const edit of entry?.edits ?? []) touched.add(keyOf(edit.c, edit.id))
      if (!entry) this.ended.add(id)
      this.place(id, entry)
    }
    for (const key of [...touched]) {
      this.stale.add(key)
      touched.add(key.split('/')[0])
    }
    this.notify(touched)
  }

  /** @param {string} id @param {Entry | null} entry */
  place(id, entry) {
    if (!entry) this.outbox.delete(id)
    else if (!this.ended.has(id)) {
      const isLast = this.outbox.has(id) || id > ([...this.outbox.keys()].at(-1) ?? '')
      this.outbox.set(id, entry)
      if (!isLast) this.outbox = new Map([...this.outbox].sort(([one], [other]) => one < other ? -1 : 1))
    }
  }

  /** Was it made by the account that is signed in? @param {Entry} entry */
  isOwn({ by = '' }) {
    return by === this.account
  }

  /** The account whose copies these are; it is kept as a collection without a name. */
  get reader() {
    return /** @type {string} */ (this.collections.get('')?.value ?? '')
  }

  /** Everything is shown as this account has it. @param {string} account */
  turn(account) {
    this.account = account
    for (const key of this.snapshots.keys()) this.stale.add(key)
    this.notify(this.listeners.keys())
  }

  /** The changes of this account that wait for a document. @param {string} key */
  waiting(key) {
    const found = []
    for (const entry of this.outbox.values()) {
      if (!this.isOwn(entry)) continue
      for (const edit of entry.edits) if (keyOf(edit.c, edit.id) === key) found.push({ entry, edit })
    }
    return found
  }

  /** @param {string} c @param {string} id */
  look(c, id) {
    const key = keyOf(c, id)
    const copy = this.copies.get(key)
    return { copy, shown: show(copy, this.waiting(key)) }
  }

  /** The same object until the document changes. @param {string} c @param {string} id @returns {Snapshot} */
  snapshot(c, id) {
    const key = keyOf(c, id)
    const last = this.snapshots.get(key)
    if (last && !this.stale.delete(key)) return last
    const { copy, shown } = this.look(c, id)
    const snapshot = new Snapshot(c, id, shown, copy !== undefined || shown.pending)
    if (last && isEqual({ ...last }, { ...snapshot })) return last
    this.snapshots.set(key, snapshot)
    return snapshot
  }

  /** @param {Iterable<string>} keys */
  notify(keys) {
    const all = new Set()
    for (const key of [...keys, '*']) for (const listener of this.listeners.get(key) ?? []) all.add(listener)
    for (const listener of all) {
      try {
        listener()
      } catch (error) { // it is the application's; what is done here goes on
        console.error(error)
      }
    }
  }

  /** Calls `listener` after a change of this document, collection, or class; `*`: of anything. @param {string} key @param {() => void} listener */
  listen(key, listener) {
    const all = this.listeners.get(key) ?? new Set()
    this.listeners.set(key, all.add(listener))
    return () => { all.delete(listener) }
  }
}

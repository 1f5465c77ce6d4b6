/* log.js: what the store lacks, and how it gets it.
 *
 * Each batch presumes those before it: a token the members of its collection, a change the changes that it rests on.  So what the store
 * refuses is kept, and everything later is stored together with it, in one step.  Changes that wait, alone, may go ahead of copies: they
 * name the versions that they rest on, and an older copy is read again before they are sent. */
import { delayOf } from './loop.js'

/** @typedef {import('./types.js').Batch} Batch */
/** @typedef {Record<'copies' | 'collections' | 'outbox', Map<string, any>>} Rows the newest of each key; null: to be removed */

const TABLES = /** @type {const} */ (['copies', 'collections', 'outbox'])

/** @returns {Rows} */
const none = () => ({ copies: new Map(), collections: new Map(), outbox: new Map() })

/** @param {Rows} rows */
const isAny = rows => TABLES.some(table => rows[table].size)

/** @param {Rows} rows @param {readonly (keyof Rows)[]} [tables] @returns {Batch} */
const batchOf = (rows, tables = TABLES) => Object.fromEntries(tables.filter(table => rows[table].size).map(table => [table, [...rows[table]]]))

export class Log {
  /** @param {import('./types.js').Store} store @param {() => Batch} whole all that memory holds: for a store that has lost what it had */
  constructor(store, whole) {
    this.store = store
    this.whole = whole
    this.rows = none()
    /** What is being stored. */ this.taken = none()
    /** @type {{resolve: () => void, reject: (error: unknown) => void, isOfChanges: boolean}[]} */ this.waiting = []
    /** Ids of the changes that the store has, perhaps as they were. @type {Set<string>} */ this.changes = new Set()
    this.backoff = { least: 500, most: 60_000 }
    this.failures = 0
    /** Why the store lacks something. @type {unknown} */ this.refusal = null
    /** Is called when the store refuses, and when it has everything again. */ this.told = () => {}
    /** @type {ReturnType<typeof setTimeout> | undefined} the next attempt */ this.timer = undefined
    this.saving = Promise.resolve()
    this.isClosed = false
  }

  /** Kept when the store has it, broken when the store has refused it; it is tried again all the same. @param {Batch} batch @returns {Promise<void>} */
  add(batch) {
    for (const table of TABLES) for (const [key, row] of batch[table] ?? []) this.rows[table].set(key, row)
    const isOfChanges = Boolean(batch.outbox?.length)
    if (this.timer !== undefined && !isOfChanges) return Promise.reject(this.refusal)
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject, isOfChanges })
      this.flush()
    })
  }

  /** What the store lacks. */
  get batch() {
    return batchOf(this.rows)
  }

  /** Another tab has stored these. @param {Batch} batch */
  know({ outbox = [] }) {
    for (const [id, entry] of outbox) entry ? this.changes.add(id) : this.changes.delete(id)
  }

  /** The tab that leads stores these. @param {Batch} batch */
  drop(batch) {
    for (const table of TABLES) for (const [key, row] of batch[table] ?? []) if (this.rows[table].get(key) === row) this.rows[table].delete(key)
    if (!isAny(this.rows) && !isAny(this.taken)) this.recover()
  }

  /** Does the store have an older state of this change? @param {string} id */
  isBehind(id) {
    return this.changes.has(id) && (this.rows.outbox.has(id) || this.taken.outbox.has(id))
  }

  flush() {
    this.saving = this.saving.then(() => this.attempt())
  }

  /** Stores all that is lacking; while there is a pause after a refusal, changes alone. */
  async attempt() {
    const rows = this.taken = this.rows, waiting = this.waiting.splice(0), isWhole = this.timer === undefined
    this.rows = none()
    let error = isWhole ? await this.put(rows, TABLES) : this.refusal
    const hasOthers = rows.copies.size + rows.collections.size > 0
    if (error && rows.outbox.size && (hasOthers || !isWhole)) error = await this.put(rows, ['outbox']) ?? error
    for (const table of TABLES) for (const [key, row] of rows[table]) if (!this.rows[table].has(key)) this.rows[table].set(key, row)
    this.taken = none()
    const isLeft = isAny(rows)
    if (!isLeft) this.recover()
    else this.refuse(error)
    for (const { resolve, reject, isOfChanges } of waiting) (isOfChanges ? rows.outbox.size : isLeft) ? reject(error) : resolve()
  }

  /** In one step; returns the error. @param {Rows} rows afterwards those that were not stored @param {readonly (keyof Rows)[]} tables @returns {Promise<unknown>} */
  async put(rows, tables) {
    try {
      await this.store.commit(batchOf(rows, tables), this.whole)
    } catch (error) {
      return error ?? new Error('The store refuses.')
    }
    this.know({ outbox: [...rows.outbox] })
    for (const table of tables) rows[table].clear()
  }

  /** @param {unknown} error */
  refuse(error) {
    this.refusal = error
    if (this.timer === undefined && !this.isClosed) {
      this.timer = setTimeout(() => { this.timer = undefined; this.flush() }, delayOf(this.backoff, this.failures++, 0))
    }
    this.told()
  }

  recover() {
    clearTimeout(this.timer)
    this.timer = undefined
    this.failures = 0
    if (this.refusal === null) return
    this.refusal = null
    this.told()
  }

  /** After a last attempt. */
  async close() {
    this.isClosed = true
    clearTimeout(this.timer)
    this.timer = undefined
    if (isAny(this.rows)) this.flush()
    await this.saving
  }
}

/* find.js: a part of its own, stampd-client/find: searches that are answered from the copies while there is no network. */
import { keyOf, nameOf } from './copy.js'
import { contentOf, isEqual } from './edit.js'
import { Fault } from './fault.js'
import { Matcher } from './match.js'

export { compareTexts, fold, Matcher } from './match.js'

/** @typedef {import('./types.js').Found} Found @typedef {import('./types.js').Search} Search @typedef {import('./types.js').Schema} Schema
 * @typedef {import('./session.js').Session} Session @typedef {import('./snapshot.js').Snapshot} Snapshot */

/** A change that waits has no version yet: it will be above all that there are. */
const COMING = Infinity

/** A document as the matcher takes it. @param {Session} session @param {Snapshot} snapshot @returns {import('./match.js').Given} */
function givenOf(session, { c, id, contents, pending }) {
  const { copy, shown } = session.cache.look(c, id)
  const { v = 0, ct = 0, dt = 0 } = copy ?? {}
  const items = Object.values(contents).map(item => {
    const { c, k, v = 0 } = /** @type {any} */ (item)
    return { c, ...k === undefined ? {} : { k }, v, j: contentOf(item) }
  })
  return {
    id, v: pending ? COMING : v, ct: typeof shown.ct === 'string' ? COMING : shown.ct,
    items: Object.fromEntries(items.map(item => [nameOf(item), item])), shown: { c, id, v, ct, dt, items }
  }
}

/** The copies of a class with the changes that wait, as far as they exist. @param {Session} session @param {string} c */
function snapshotsOf({ cache }, c) {
  const keys = new Set([...cache.copies.keys()].filter(key => key.startsWith(`${c}/`)))
  for (const entry of cache.outbox.values()) if (cache.isOwn(entry)) for (const edit of entry.edits) if (edit.c === c) keys.add(keyOf(c, edit.id))
  return [...keys].map(key => cache.snapshot(c, key.slice(c.length + 1))).filter(one => one.exists)
}

/** A search, as a store: the server's answer, or, while the server does not answer, that of the copies, with `here`. */
export class CopiesStore {
  /** @param {Session} session @param {Schema} schema @param {string} c @param {string} i @param {Search} search */
  constructor(session, schema, c, i, search) {
    this.session = session
    this.c = c
    this.ask = () => new Matcher(schema, c, i, search)
    this.answered = session.find(c, i, search)
    /** What the server has answered before it was lost: it is read again. @type {Found | null} */
    this.old = null
    /** @type {Matcher | undefined} */ this.matcher = undefined
    /** @type {Snapshot[]} */ this.snapshots = []
    /** @type {Found | null} */ this.value = null
  }

  /** What the copies answer, now, whatever the server does; the same object until that changes. @returns {Found} */
  here() {
    const snapshots = snapshotsOf(this.session, this.c)
    const isOld = snapshots.length !== this.snapshots.length || snapshots.some((one, i) => one !== this.snapshots[i])
    this.snapshots = snapshots
    try {
      this.matcher ??= this.ask()
      if (this.value && !isOld && !this.matcher.life.length) return this.value
      const answer = this.matcher.find(snapshots.map(one => givenOf(this.session, one)))
      const value = /** @type {Found} */ ({ known: true, here: true, fault: null, ...answer })
      if (!isEqual(this.value, value)) this.value = value
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      this.value ??= { known: false, here: true, fault: error }
    }
    return /** @type {Found} */ (this.value)
  }

  /** @returns {Found} */
  get() {
    const answer = this.answered.get(), { online } = this.session.status.get()
    if (!online) this.old = answer
    return online && answer.known && answer !== this.old ? answer : this.here()
  }

  /** @param {(value: Found) => void} callback */
  subscribe(callback) {
    const { cache, status } = this.session
    let last = this.get(), wasOnline = status.get().online
    const look = () => {
      const value = this.get(), { online } = status.get()
      if (online && !wasOnline && this.answered.get() === this.old) this.session.sync().catch(() => {})
      wasOnline = online
      if (value !== last) callback(last = value)
    }
    const ends = [this.answered.subscribe(() => {}), ...[this.answered.key, this.c, '*'].map(key => cache.listen(key, look))]
    callback(last)
    return () => { for (const end of ends) end() }
  }
}

/** Returns `find(c, i, search)` as that of the session, whose stores answer from the copies while the server does not.
 * @param {Session} session @param {Schema} schema as it is declared: the classes that are searched, with their items and fields */
export function finder(session, schema) {
  /** @param {string} c @param {string} i @param {Search} [search] */
  return (c, i, search = {}) => new CopiesStore(session, schema, c, i, search)
}

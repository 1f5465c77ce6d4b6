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

const VALUE_BYTES_MOST = 255, FOLLOWED_MOST = 32

/** The collections with values, one of which has whatever satisfies these conditions together; undefined: there are none.
 * @param {Schema} schema @param {string} c @param {string} i @param {import('./match.js').Condition[]} branch */
function collectionsFor(schema, c, i, branch) {
  for (const { item, field, test, isNegated, values } of branch) {
    const isOf = (test === 'eq' || test === 'in') && !isNegated && field && !field.isList && !field.at && field.type === 'string'
    if (!isOf || values.some(one => !one || new TextEncoder().encode(one).length > VALUE_BYTES_MOST)) continue
    for (const [name, { key, list }] of Object.entries(schema.classes[c].collections ?? {})) {
      if (!list && key.length === 1 && key[0] === `${item || i}.${field.name}`) return values.map(one => `${c}/${name}@${encodeURIComponent(one)}`)
    }
  }
}

/** What is to be followed for a search, since it changes whatever the search finds, with blanks between: collections with the values that
 * it asks for in each of its alternatives; empty: the class.
 * @param {Schema} schema @param {string} c @param {string} i @param {Matcher} matcher */
function followedFor(schema, c, i, { branches }) {
  const found = branches.map(branch => collectionsFor(schema, c, i, branch))
  const all = new Set(found.flatMap(one => one ?? []))
  return found.every(one => one) && all.size <= FOLLOWED_MOST ? [...all].join(' ') : ''
}

/** @param {Found | null} found @returns {[string, unknown][]} */
function rowsOf(found) {
  const rows = found?.items ?? found?.docs ?? found?.ids ?? []
  return rows.map((/** @type {any} */ row) => typeof row === 'string' ? [JSON.stringify([row]), row] : [JSON.stringify(row.k === undefined ? [row.id] : [row.id, row.k]), row])
}

/** The places of the longest sequence that rises. @param {number[]} numbers */
function rising(numbers) {
  /** @type {number[]} */ const ends = [], /** @type {(number | undefined)[]} */ before = []
  for (const [place, number] of numbers.entries()) {
    let low = 0
    for (let high = ends.length; low < high;) {
      const middle = (low + high) >> 1
      if (numbers[ends[middle]] < number) low = middle + 1
      else high = middle
    }
    before.push(ends[low - 1])
    ends[low] = place
  }
  const kept = /** @type {Set<number>} */ (new Set())
  for (let place = ends.at(-1); place !== undefined; place = before[place]) kept.add(place)
  return kept
}

/** What has changed between two answers to a search: rows that entered and left, those of both that have another content, and the fewest
 * that were moved so that all others keep their order.  A row is `[id]` or `[id, key]`.  @param {Found | null} old @param {Found} now */
export function changesBetween(old, now) {
  const [before, after] = [new Map(rowsOf(old)), new Map(rowsOf(now))]
  const places = new Map([...before.keys()].map((key, place) => [key, place]))
  const stayed = [...after.keys()].filter(key => before.has(key)), kept = rising(stayed.map(key => /** @type {number} */ (places.get(key))))
  const read = (/** @type {string[]} */ keys) => keys.map(key => /** @type {[string, string?]} */ (JSON.parse(key)))
  return {
    entered: read([...after.keys()].filter(key => !before.has(key))),
    left: read([...before.keys()].filter(key => !after.has(key))),
    changed: read(stayed.filter(key => !isEqual(before.get(key), after.get(key)))),
    moved: read(stayed.filter((_, place) => !kept.has(place)))
  }
}

/** @param {Schema} schema @param {string} c @param {string} i @param {Search} search */
function read(schema, c, i, search) {
  try {
    return new Matcher(schema, c, i, search)
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
}

/** A search, as a store: the server's answer, or, while the server does not answer, that of the copies, with `here`. */
export class CopiesStore {
  /** @param {Session} session @param {Schema} schema @param {string} c @param {string} i @param {Search} search */
  constructor(session, schema, c, i, search) {
    this.session = session
    this.c = c
    /** @type {Matcher | Fault} */ this.matcher = read(schema, c, i, search)
    this.answered = session.find(c, i, search, this.matcher instanceof Matcher ? followedFor(schema, c, i, this.matcher) : '')
    /** What the server has answered before it was lost: it is read again. @type {Found | null} */
    this.old = null
    /** @type {Snapshot[]} */ this.snapshots = []
    /** @type {Found | null} */ this.value = null
  }

  /** What the copies answer, now, whatever the server does; the same object until that changes. @returns {Found} */
  here() {
    const { matcher } = this
    if (!(matcher instanceof Matcher)) return this.value ??= { known: false, here: true, fault: matcher }
    const snapshots = snapshotsOf(this.session, this.c)
    const isOld = snapshots.length !== this.snapshots.length || snapshots.some((one, i) => one !== this.snapshots[i])
    if (this.value && !isOld && !matcher.life.length) return this.value
    this.snapshots = snapshots
    const answer = matcher.find(snapshots.map(one => givenOf(this.session, one)))
    const value = /** @type {Found} */ ({ known: true, here: true, fault: null, ...answer })
    if (!isEqual(this.value, value)) this.value = value
    return /** @type {Found} */ (this.value)
  }

  /** @returns {Found} */
  get() {
    const answer = this.answered.get(), { online } = this.session.status.get()
    if (!online) this.old = answer
    return online && answer.known && answer !== this.old ? answer : this.here()
  }

  /** `changes`: since the last call.
   * @param {(value: Found, changes: ReturnType<typeof changesBetween>) => void} callback */
  subscribe(callback) {
    const { cache, status } = this.session
    let last = this.get(), wasOnline = status.get().online
    const look = () => {
      const value = this.get(), { online } = status.get()
      if (online && !wasOnline && this.answered.get() === this.old) this.session.sync().catch(() => {})
      wasOnline = online
      if (value === last) return
      const changes = changesBetween(last, value)
      callback(last = value, changes)
    }
    const ends = [this.answered.subscribe(() => {}), ...[this.answered.key, this.c, '*'].map(key => cache.listen(key, look))]
    callback(last, changesBetween(null, last))
    return () => { for (const end of ends) end() }
  }
}

/** Returns `find(c, i, search)` as that of the session, whose stores answer from the copies while the server does not.
 * @param {Session} session @param {Schema} schema as it is declared: the classes that are searched, with their items and fields */
export function finder(session, schema) {
  /** @param {string} c @param {string} i @param {Search} [search] */
  return (c, i, search = {}) => new CopiesStore(session, schema, c, i, search)
}

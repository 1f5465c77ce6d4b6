/* handles.js: what an application subscribes to: a document, a collection, records, the status.  Each is a store: subscribe(callback)
 * calls at once and after each change and returns what ends it; get() returns the present value, the same until it changes. */
import { keyOf } from './copy.js'
import { ON } from './live.js'
import { searchOf } from './records.js'

/** @template T */
class Readable {
  /** @param {import('./cache.js').Cache} cache @param {string} key */
  constructor(cache, key) {
    this.cache = cache
    this.key = key
  }

  /** Each kind of store has its own. @returns {T} */
  get() {
    return /** @type {any} */ (null)
  }

  /** @param {(value: T) => void} callback @returns {() => void} */
  subscribe(callback) {
    let last = this.get()
    const end = this.cache.listen(this.key, () => {
      const value = this.get()
      if (value !== last) callback(last = value)
    })
    callback(last)
    return end
  }
}

/** What is followed as long as somebody subscribes to it. @template T @extends {Readable<T>} */
class Followed extends Readable {
  /** @param {import('./session.js').Session} session @param {string} key @param {import('./types.js').Kept} [kept] a collection */
  constructor(session, key, kept) {
    super(session.cache, key)
    this.session = session
    this.kept = kept
  }

  /** @param {(value: T) => void} callback */
  subscribe(callback) {
    const unfollow = this.session.follow(this.kept?.def ?? this.key, this.kept), end = super.subscribe(callback)
    return () => { end(); unfollow() }
  }
}

/** @extends {Followed<import('./snapshot.js').Snapshot>} */
export class DocumentStore extends Followed {
  /** @param {import('./session.js').Session} session @param {string} c @param {string} id */
  constructor(session, c, id) {
    super(session, keyOf(c, id))
    this.c = c
    this.id = id
  }

  get() {
    return this.cache.snapshot(this.c, this.id)
  }

  /** Changes the document: `change(doc => doc.set('Line', '1', 'bread'))`.
   * @param {(doc: ReturnType<import('./edit.js').Draft['doc']>) => void} how */
  change(how) {
    return this.session.write(draft => how(draft.doc(this.c, this.id)))
  }
}

/** @extends {Followed<import('./snapshot.js').Snapshot[]>} */
export class CollectionStore extends Followed {
  /** @param {import('./session.js').Session} session @param {import('./types.js').Kept} kept
   * @param {((document: import('./snapshot.js').Snapshot) => boolean) | undefined} match */
  constructor(session, kept, match) {
    super(session, kept.c, kept) // and so also after each change of its members
    this.match = match
    this.value = /** @type {import('./snapshot.js').Snapshot[]} */ ([])
  }

  /** The members in the order of their ids; with `match`, local changes are counted in and out at once. */
  get() {
    const { c, def } = /** @type {import('./types.js').Kept} */ (this.kept)
    const kept = this.cache.collections.get(def)
    const ids = new Set(kept?.token ? kept.members : kept?.incoming ?? kept?.members ?? [])
    if (this.match) {
      for (const id of kept?.extra ?? []) ids.add(id)
      for (const entry of this.cache.outbox.values()) if (this.cache.isOwn(entry)) for (const edit of entry.edits) if (edit.c === c) ids.add(edit.id)
    }
    const now = [...ids].sort().map(id => this.cache.snapshot(c, id))
      .filter(one => one.exists && (!this.match || this.match(one)))
    const isSame = now.length === this.value.length && now.every((one, i) => one === this.value[i])
    if (!isSame) this.value = now
    return this.value
  }
}

/** @extends {Followed<import('./types.js').Records>} */
export class RecordsStore extends Followed {
  get() {
    return this.session.recorder.get(this.key)
  }
}

/** @extends {Followed<import('./types.js').Found>} */
export class FindStore extends Followed {
  get() {
    return /** @type {any} */ (this.session.recorder.get(this.key))
  }

  /** Once, now, without following; broken when that fails.  `cursor`: of what was found before, for the next page.
   * @param {string} [cursor] @returns {Promise<import('./types.js').Found>} */
  async read(cursor) {
    const param = JSON.parse(searchOf(this.key))
    return { known: true, fault: null, ...await this.session.call('find', cursor === undefined ? param : { ...param, cursor }) }
  }
}

/** @extends {Readable<import('./types.js').Status>} */
export class StatusStore extends Readable {
  /** @param {import('./cache.js').Cache} cache */
  constructor(cache) {
    super(cache, '*')
    /** @type {import('./types.js').Status} */
    this.value = { online: false, pending: 0, others: 0, leader: false, lasting: cache.store.isLasting, live: false, liveSince: 0, namespace: ON, fault: null, progress: null }
  }

  get() {
    const { outbox } = this.cache
    let pending = 0
    for (const entry of outbox.values()) if (this.cache.isOwn(entry)) pending++
    const others = outbox.size - pending
    if (this.value.pending !== pending || this.value.others !== others) this.value = { ...this.value, pending, others }
    return this.value
  }

  /** @param {Partial<import('./types.js').Status>} part */
  set(part) {
    const value = /** @type {any} */ (this.value)
    if (Object.entries(part).every(([name, one]) => value[name] === one)) return
    this.value = { ...this.value, ...part }
    this.cache.notify([])
  }
}

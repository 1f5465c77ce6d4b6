/* session.js: what an application opens: documents and collections that follow the server, and changes that reach it. */
import { Cache } from './cache.js'
import { Draft } from './edit.js'
import { Fault } from './fault.js'
import { Files } from './files.js'
import { CollectionStore, DocumentStore, FindStore, RecordsStore, StatusStore } from './handles.js'
import { lead } from './leader.js'
import { Lifecycle } from './lifecycle.js'
import { Live } from './live.js'
import { delayOf, Loop } from './loop.js'
import { Outbox } from './outbox.js'
import { Owners } from './owners.js'
import { definitionOfRecords, definitionsOf, isRead, keyOfSearch, Recorder } from './records.js'
import { keyOfTime } from './stamp.js'
import { Syncer } from './sync.js'
import { Tabs } from './tabs.js'
import { Transport } from './transport.js'

/** @typedef {import('./types.js').Batch} Batch @typedef {import('./types.js').Entry} Entry @typedef {import('./types.js').Kept} Kept
 * @typedef {import('./types.js').Options} Options */

export class Session {
  /** @param {Options} options @param {import('./types.js').Store} store whose contents are loaded by `open` */
  constructor(options, store) {
    this.options = options
    this.backoff = options.backoff ?? { least: 500, most: 60_000 }
    this.cache = new Cache(store)
    this.cache.log.backoff = this.backoff
    this.cache.log.told = () => this.stored()
    this.transport = new Transport(options)
    this.files = new Files(this.transport, this.backoff)
    this.status = new StatusStore(this.cache)
    const commit = (/** @type {Batch} */ batch) => this.commit(batch)
    this.syncer = new Syncer(this.cache, this.transport, commit, count => this.progress(count))
    this.syncer.isFollowed = key => this.followed().has(key)
    this.recorder = new Recorder(this.transport, (key, value) => this.tellRecords(key, value))
    this.outbox = new Outbox(this.cache, this.transport, this.syncer, commit, (id, fault, out) => this.settle(id, fault, out), options.conflict)
    this.outbox.isOfThisVisit = id => this.promises.has(id)
    this.loop = new Loop(() => this.work(), error => this.failed(error))
    /** @type {Live} */ this.live = new Live(this.transport, this.backoff, {
      definitions: /** @returns {string[]} */ () => [...this.followed()].filter(key => !this.recorder.dropped.has(key)).flatMap(key => definitionsOf(key, this.live.isPlain)),
      changed: (definition, version) => this.changed(definition, version),
      lost: () => { this.markAll(); this.loop.wake() },
      heard: fault => this.hear(fault),
      flows: live => this.setLive(live),
      shows: namespace => this.tellStatus({ namespace }),
      drop: (fault, definitions) => this.recorder.drop(fault, definitions)
    })
    /** How often the application follows each key. @type {Map<string, number>} */ this.follows = new Map()
    /** @type {Map<string, {resolve: (out: any) => void, reject: (fault: Fault) => void}>} */ this.promises = new Map()
    /** @type {{resolve: (nothing?: any) => void, reject: (fault: unknown) => void}[]} */ this.waiting = []
    /** Of `waiting`, those that came before the attempt that is under way. @type {Session['waiting']} */ this.current = []
    this.failures = 0
    this.isClosed = false
    this.isRenewing = false
    this.owners = new Owners(this)
    this.tabs = new Tabs(this, store.isShared ? options.name : undefined)
    this.resign = () => {}
    /** Of those times that this tab leads. */ this.turn = 0
    this.lifecycle = new Lifecycle(this)
  }

  /** Begins to work, as soon as no other tab does. */
  begin() {
    this.lifecycle.listen('addEventListener')
    this.tabs.postWants([])
    this.owners.identify()
    this.transport.authorize(false).catch(() => {}) // it is known whose changes these are
    this.compete()
  }

  compete() {
    const turn = ++this.turn, begins = () => this.begins(turn)
    if (this.cache.store.isShared) this.resign = lead(this.options.name ?? '', begins)
    else void begins()
  }

  /** As the tab that leads. @param {number} turn */
  async begins(turn) {
    this.tabs.takeBack()
    // without it, what was read when the session was opened and what other tabs have sent is there
    if (this.cache.store.isShared && this.tabs.isLasting) await this.cache.load().catch(() => {})
    else if (!this.tabs.isLasting) this.cache.keep()
    if (this.isClosed || turn !== this.turn) return
    this.tabs.isLasting = true
    this.status.set({ leader: true })
    this.owners.identify()
    this.setLive(false)
    this.stored()
    this.tabs.post({ what: 'who' })
    this.markAll()
    this.loop.start()
    if (this.options.live !== false) this.live.start()
  }

  // --- what applications call ---

  /** A document, as a store. @param {string} c @param {string} id */
  doc(c, id) {
    return new DocumentStore(this, c, id)
  }

  /** The members of a collection, as a store.  `match` says of a document with local changes whether it is a member.
   * @param {string} c @param {string} collection @param {unknown} value
   * @param {{match?: (document: import('./snapshot.js').Snapshot) => boolean}} [more] */
  collection(c, collection, value, { match } = {}) {
    const values = (Array.isArray(value) ? value : [value]).map(one => encodeURIComponent(String(one))).join('@')
    return new CollectionStore(this, { def: `@${c}/${collection}@${values}`, c, collection, value, members: [] }, match)
  }

  /** Records of the server's host, as a store: `{ key }`, `{ prefix }`, or `{ from, to }`, one of which may be absent.
   * @param {import('./types.js').RecordsRange} range */
  records(range) {
    return new RecordsStore(this, definitionOfRecords(range))
  }

  /** What a search finds, as a store: documents of the class `c` by what their items of the class `i` contain.
   * @param {string} c @param {string} i @param {import('./types.js').Search} [search] @param {string} [by] as of keyOfSearch */
  find(c, i, search = {}, by) {
    return new FindStore(this, keyOfSearch(c, i, search, by))
  }

  /** Changes documents, together or not at all.  Visible at once.  The promise is kept when the server has done it and broken with a
   * Fault when it was refused; without a network that takes long.  Its member `saved` is kept when the change lasts here.
   * @param {(draft: Draft) => void} build */
  write(build) {
    return this.queue('put', undefined, build)
  }

  /** The same for an operation of the application; `build` says what it will change, to be shown meanwhile.
   * @param {string} op @param {unknown} param @param {(draft: Draft) => void} [build] */
  send(op, param, build = () => {}) {
    return this.queue(op, JSON.stringify(param ?? {}), build)
  }

  /** Runs an operation once, now; returns its `out`. @param {string} op @param {unknown} [param] */
  async call(op, param = {}) {
    return (await this.transport.operate(op, JSON.stringify({ param }))).out
  }

  /** The lines of an operation that streams its answer, as `collection` with `stream`, some at a time while they come: `for await (const
   * lines of session.stream(…))`.  Stop at the last line; an answer that breaks off throws.  @param {string} op @param {unknown} [param] */
  stream(op, param = {}) {
    return this.transport.lines(op, JSON.stringify({ param }))
  }

  /** Sends what waits and brings all that is followed up to date; broken when that fails. @returns {Promise<void>} */
  sync() {
    const done = new Promise((resolve, reject) => { this.waiting.push({ resolve, reject }) })
    if (this.status.get().leader) this.syncNow()
    else this.tabs.post({ what: 'sync' })
    return /** @type {Promise<void>} */ (done)
  }

  /** Another token, after signing in or out.  What another account has made waits until that is signed in again.
   * @param {Options['token']} token @param {string} [account] where the token does not name it */
  setToken(token, account) {
    this.transport.setToken(token, account)
    this.transport.authorize(false).finally(() => this.tabs.post({ what: 'token', account: this.transport.account })).catch(() => {})
    this.recorder.dropped.clear()
    this.markAll()
    this.loop.wake()
    this.live.renew()
  }

  /** What waits for the server, in the order in which it was made, of all accounts. @returns {import('./types.js').Change[]} */
  changes() {
    return this.owners.changes()
  }

  /** What was made while nobody was signed in is from now on of the account that is, but for what was sent already. */
  async adopt() {
    await this.owners.adopt()
    this.loop.wake()
  }

  /** Forgets all copies and all changes that wait, also those of other accounts, here and in the store; broken when the store refuses. */
  async forget() {
    const { copies, collections, outbox } = this.cache
    /** @template T @param {Map<string, T>} rows @returns {[string, null][]} */
    const none = rows => [...rows.keys()].map(key => [key, null])
    await this.tabs.save({ copies: none(copies), collections: none(collections), outbox: none(outbox) })
  }

  /** What waits stays in the store. */
  async close() {
    this.isClosed = true
    this.lifecycle.listen('removeEventListener')
    this.tabs.postWants([])
    this.transport.close()
    await Promise.all([this.loop.stop(), this.live.stop()])
    await this.cache.log.close()
    this.current.push(...this.waiting.splice(0))
    this.finish(new Fault({ code: 'CLOSED', message: 'The session is closed.' }))
    this.resign()
    this.tabs.close()
    await this.cache.store.close()
  }

  // --- what the rest of the library calls ---

  /** @param {string} op @param {string | undefined} param @param {(draft: Draft) => void} build */
  queue(op, param, build) {
    const draft = new Draft((c, id) => this.cache.look(c, id))
    build(draft)
    const edits = [...draft.edits.values()]
    /** @type {Entry} */
    const entry = { id: this.cache.nextId(), by: this.cache.account, op, at: Date.now(), key: keyOfTime(this.transport.now()), edits }
    if (param !== undefined) entry.param = param
    this.owners.note(entry.id)
    /** @type {Promise<any> & {saved?: Promise<void>}} */
    const done = new Promise((resolve, reject) => { this.promises.set(entry.id, { resolve, reject }) })
    done.catch(() => {}) // whoever is interested has it; `refused` is called in any case
    const saved = this.tabs.save({ outbox: [[entry.id, entry]] })
    saved.catch(() => {})
    this.loop.wake()
    return Object.assign(done, { saved })
  }

  /** What the store refuses is tried again, and the status says so. @param {Batch} batch */
  commit(batch) {
    return this.tabs.save(batch).catch(() => {})
  }

  /** The store has refused something, or has everything again, here or in the tab that leads. */
  stored() {
    const before = this.status.get()
    this.status.set({ lasting: this.cache.store.isLasting && this.cache.log.refusal === null && this.tabs.isLasting })
    if (this.status.get() === before || !before.leader) return
    this.tabs.postStatus()
    this.loop.wake()
  }

  followed() {
    const keys = new Set(this.follows.keys())
    for (const other of this.tabs.others.values()) for (const key of other) keys.add(key)
    return keys
  }

  /** @param {string} key @param {Kept} [kept] a collection; @returns what ends it */
  follow(key, kept) {
    const count = this.follows.get(key) ?? 0
    this.follows.set(key, count + 1)
    if (count === 0) {
      if (kept && !this.cache.collections.has(key)) void this.commit({ collections: [[key, kept]] })
      this.followsChanged([key])
    }
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const left = (this.follows.get(key) ?? 1) - 1
      if (left) this.follows.set(key, left)
      else {
        this.follows.delete(key)
        this.followsChanged([])
      }
    }
  }

  /** @param {string[]} added */
  followsChanged(added) {
    for (const key of added) this.mark(key)
    this.recorder.keep(this.followed())
    this.tabs.postWants([...this.follows.keys()])
    if (!this.status.get().leader || this.isRenewing) return
    this.isRenewing = true
    queueMicrotask(() => {
      this.isRenewing = false
      this.loop.wake()
      this.live.renew()
    })
  }

  /** @param {string} key */
  mark(key) {
    if (isRead(key)) this.recorder.note(key, () => this.loop.wake())
    else if (key[0] === '@') this.syncer.collections.add(key)
    else this.syncer.documents.add(key)
  }

  markAll() {
    for (const key of this.followed()) this.mark(key)
  }

  /** As the leader: all that is followed, also what was refused. */
  syncNow() {
    const wasRefused = this.recorder.dropped.size > 0
    this.recorder.dropped.clear()
    this.markAll()
    this.loop.wake()
    if (wasRefused) this.live.renew()
    else this.live.loop.wake()
  }

  /** One thing that is due. */
  async work() {
    this.current.push(...this.waiting.splice(0))
    let trouble = /** @type {any} */ (undefined)
    await this.transport.authorize(false)
    const isSending = this.outbox.first !== undefined
    if (isSending) await this.outbox.step().catch(error => { trouble = error })
    if (this.syncer.isDue && (trouble || !this.outbox.first)) await this.syncer.step().catch(error => { trouble ??= error })
    else if (this.recorder.isDue && !trouble) await this.recorder.step().catch(error => { trouble = error })
    else if (!isSending && !this.isUnsure) return this.rest()
    else if (!isSending) await this.syncer.probe()
    if (trouble && trouble.code !== 'CACCOUNT') throw trouble
    this.failures = 0
    this.setFault(null)
    return true
  }

  /** There was no network, and nothing is followed any more that would find out when it is back. */
  get isUnsure() {
    return this.status.get().fault?.code === 'NETWORK' && !this.followed().size
  }

  rest() {
    this.status.set({ progress: null })
    this.finish(null)
    this.tabs.postSynced(null)
    return false
  }

  /** @param {unknown} fault */
  finish(fault) {
    for (const { resolve, reject } of this.current.splice(0)) fault ? reject(fault) : resolve()
  }

  /** @param {unknown} error */
  failed(error) {
    if (this.lifecycle.isAsleep) return null
    const fault = error instanceof Fault ? error : new Fault({ code: 'CLIENT', message: String(error) })
    if (!(error instanceof Fault)) console.error(error)
    if (fault.code === 'SKEY') this.transport.forgetToken()
    this.setFault(fault)
    this.finish(fault)
    this.tabs.postSynced(fault)
    return fault.kind === 'over' ? null : delayOf(this.backoff, this.failures++, Math.min(fault.retryAfter, this.backoff.most))
  }

  /** From live events. @param {Fault | null} fault */
  hear(fault) {
    if (this.lifecycle.isAsleep) return
    this.setFault(fault)
    if (!fault) this.loop.wake()
  }

  /** What the last request has found. @param {Fault | null} fault */
  setFault(fault) {
    this.tellStatus({ online: fault?.code !== 'NETWORK', fault })
  }

  /** Do live events come? @param {boolean} live */
  setLive(live) {
    if (live !== this.status.get().live) this.tellStatus({ live, liveSince: Date.now() })
  }

  /** Here and in the other tabs. @param {Partial<import('./types.js').Status>} part */
  tellStatus(part) {
    const before = this.status.get()
    this.status.set(part)
    if (this.status.get() !== before) this.tabs.postStatus()
  }

  /** What was read, to this tab and the others. @param {string} key @param {import('./types.js').Records} value */
  tellRecords(key, value) {
    this.tabs.postRecords(key, value)
    this.cache.notify([key])
  }

  /** @param {number} count */
  progress(count) {
    this.status.set({ progress: { received: (this.status.get().progress?.received ?? 0) + count } })
  }

  /** By a live event. @param {string} definition @param {number} version */
  changed(definition, version) {
    for (const key of this.followed()) {
      const isOf = definitionsOf(key, this.live.isPlain).some(own => own === definition || (own.split('/')[0] === definition && !this.live.defs.includes(own)))
      if (!isOf) continue
      const isKnown = key[0] !== '@' && version > 0 && (this.cache.copies.get(key)?.v ?? 0) >= version
      if (!isKnown) this.mark(key)
    }
    this.loop.wake()
  }

  /** @param {string} id @param {Fault | null} fault @param {any} [out] */
  settle(id, fault, out) {
    const promise = this.promises.get(id)
    this.promises.delete(id)
    if (fault) promise?.reject(fault)
    else promise?.resolve(out)
    if (this.status.get().leader) {
      this.tabs.postSettled(id, fault, out)
      if (fault) this.options.refused?.(fault, id)
    }
  }
}

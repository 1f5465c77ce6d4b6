/* tabs.js: what the tabs that share a store tell each other: one leads, and talks to the server.
 *
 * A tab stores its own changes, and tells the others.  While its store or that of the tab that leads refuses, it hands its changes to the
 * one that leads: nothing is stored behind what is missing there. */
import { Fault } from './fault.js'
import { channel } from './leader.js'
import { ON } from './live.js'
import { delayOf } from './loop.js'
import { stranger } from './transport.js'

/** @typedef {import('./types.js').Batch} Batch */

/** A fault for another tab, with its message: Error keeps that where a copy has nothing. @param {Fault | null} fault */
const factsOf = fault => fault && { ...fault, message: fault.message }

const ASKED_MOST = 8               // times, in growing pauses, for the token of an account of which nothing waits

const STRANGER = stranger()

/** @param {any} facts */
const faultOf = facts => facts && new Fault(facts)

export class Tabs {
  /** @param {import('./session.js').Session} session @param {string | undefined} name absent: there are no others */
  constructor(session, name) {
    this.session = session
    this.own = Math.random().toString(36).slice(2)
    /** What other tabs follow. @type {Map<string, string[]>} */ this.others = new Map()
    /** Can the tab that leads store what it has? */ this.isLasting = true
    /** What the leader is to store, and has not confirmed. @type {Map<number, {batch: Batch, resolve: () => void, reject: (error: unknown) => void}>} */
    this.handed = new Map()
    this.count = 0
    /** Who is signed in there, and what has failed there. @type {string | undefined} */ this.account = undefined
    /** @type {Fault | null} */ this.fault = null
    /** Whose token is asked for, in the tab that leads. @type {Set<string>} */ this.sought = new Set()
    this.wire = channel(name, message => this.receive(message))
  }

  get leads() {
    return this.session.status.get().leader
  }

  /** @param {any} message */
  post(message) {
    this.wire.post(message)
  }

  close() {
    this.sought.clear()
    this.wire.close()
  }

  // --- to the others ---

  /** @param {string[]} keys that this tab follows */
  postWants(keys) {
    this.post({ what: 'wants', tab: this.own, keys })
  }

  postStatus() {
    const status = this.session.status.get()
    this.post({ ...status, what: 'status', account: this.session.cache.account, fault: factsOf(status.fault) })
  }

  /** @param {Fault | null} fault */
  postSynced(fault) {
    this.post({ what: 'synced', fault: factsOf(fault) })
  }

  /** @param {string} id @param {Fault | null} fault @param {any} out */
  postSettled(id, fault, out) {
    this.post({ what: 'settled', id, fault: factsOf(fault), out })
  }

  /** @param {string} key @param {import('./types.js').Records} value */
  postRecords(key, value) {
    this.post({ what: 'records', key, value: { ...value, fault: factsOf(value.fault) } })
  }

  // --- what is stored ---

  /** Visible at once, in the other tabs when it is stored or refused.  Broken when it was refused. @param {Batch} batch @returns {Promise<void>} */
  async save(batch) {
    const { cache } = this.session
    const mayHand = !this.leads && cache.store.isShared
    if (mayHand && (this.handed.size || !this.isLasting)) cache.apply(batch)
    else {
      const error = await cache.commit(batch).then(() => null, error => error)
      if (!error || !mayHand) {
        this.post({ what: 'batch', batch, isStored: !error })
        if (error) throw error
        return
      }
      cache.log.drop(batch)
    }
    return new Promise((resolve, reject) => {
      this.handed.set(++this.count, { batch, resolve, reject })
      this.hand(this.count, batch)
    })
  }

  /** @param {number} number @param {Batch} batch */
  hand(number, batch) {
    this.post({ what: 'hand', tab: this.own, number, batch })
  }

  /** This tab leads from now on, and stores what it has handed over itself. */
  takeBack() {
    const { cache } = this.session
    for (const { batch, resolve, reject } of this.handed.values()) {
      /** @type {Batch['outbox']} */
      const outbox = batch.outbox?.filter(([id]) => !cache.ended.has(id)).map(([id, entry]) => [id, entry && (cache.outbox.get(id) ?? entry)])
      cache.log.add({ ...batch, outbox }).then(resolve, reject)
    }
    this.handed.clear()
  }

  /** As the leader, of another tab: what is known here already is newer. @param {{tab: string, number: number, batch: Batch}} message */
  takeOver({ tab, number, batch }) {
    const { cache, loop } = this.session
    const outbox = batch.outbox?.filter(([id, entry]) => !entry || !(cache.ended.has(id) || cache.outbox.has(id)))
    this.save({ ...batch, outbox }).then(() => null, error => ({ name: error?.name, message: String(error?.message ?? error) }))
      .then(error => this.post({ what: 'handed', tab, number, error }))
    loop.wake()
  }

  /** Another account has signed in, in another tab: as the leader, asks the function for the token, which may return its token here as well.
   * It may do so later: what that tab has written to `localStorage` can come behind its message.  So it is asked again, as long as a change
   * of the account waits. @param {string} [account] absent: it is not known */
  async seek(account = '') {
    const { session: { transport, cache, loop, backoff }, sought } = this
    if (sought.has(account)) return
    sought.add(account)
    for (let failures = 0; sought.has(account); failures++) {
      transport.forgetToken()
      await transport.authorize(false).catch(() => {})
      loop.wake() // with nothing to send of the former account
      const isWaited = failures < ASKED_MOST || [...cache.outbox.values()].some(({ by }) => by === account)
      if (account && account !== transport.account && isWaited) await new Promise(resolve => setTimeout(resolve, delayOf(backoff, failures, 0)))
      else sought.delete(account)
    }
  }

  // --- from the others ---

  /** @param {any} message */
  receive({ what, ...more }) {
    const { session } = this
    if (what === 'batch') {
      session.cache.apply(more.batch)
      if (more.isStored) session.cache.log.know(more.batch)
      if (!this.leads) return
      session.loop.wake()
      for (const [, entry] of more.batch.outbox ?? []) if (entry && !session.cache.isOwn(entry)) void this.seek(entry.by)
    } else if (what === 'settled') session.settle(more.id, faultOf(more.fault), more.out)
    else if (what === 'wants') {
      this.others.set(more.tab, more.keys)
      if (this.leads) {
        for (const key of more.keys) session.mark(key)
        session.followsChanged([])
        this.postStatus()
      }
    } else if (what === 'who') {
      this.postWants([...session.follows.keys()])
      for (const [number, { batch }] of this.handed) this.hand(number, batch)
    } else if (what === 'handed' && more.tab === this.own) {
      const { resolve, reject } = this.handed.get(more.number) ?? {}
      this.handed.delete(more.number)
      if (more.error) reject?.(Object.assign(new Error(more.error.message), { name: more.error.name }))
      else resolve?.()
    } else if (this.leads) {
      if (what === 'hand') this.takeOver(/** @type {any} */ (more))
      else if (what === 'sync') session.syncNow()
      else if (what === 'token') void this.seek(more.account)
    } else this.follow(what, more)
  }

  /** From the tab that leads. @param {string} what @param {any} more */
  follow(what, more) {
    const { session } = this
    if (what === 'records' && session.follows.has(more.key)) {
      session.recorder.values.set(more.key, { ...more.value, fault: faultOf(more.value.fault) })
      session.cache.notify([more.key])
    } else if (what === 'synced') {
      session.current.push(...session.waiting.splice(0))
      session.finish(faultOf(more.fault))
    } else if (what === 'status') {
      this.isLasting = more.lasting
      this.account = more.account
      this.fault = faultOf(more.fault)
      const { online, live, liveSince, namespace = ON } = more
      session.status.set({ online, live, liveSince, namespace })
      this.tellFault()
      session.stored()
    }
  }

  /** That of the tab that leads; or that nothing of this one is sent, since another account is signed in there. */
  tellFault() {
    const isStranger = this.account !== undefined && this.account !== this.session.cache.account
    this.session.status.set({ fault: isStranger ? STRANGER : this.fault })
  }
}

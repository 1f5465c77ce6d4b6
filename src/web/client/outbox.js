/* outbox.js: sends waiting changes, the oldest first, so that each takes effect once.
 *
 * Key and argument are stored before the first request, and the same is sent until there is an answer.  The copies of the
 * changed documents come with the answer, and replace the local changes in one step. */
import { headerOf, keyOf } from './copy.js'
import { follow, isDone, putOf, rebase } from './edit.js'
import { Fault } from './fault.js'
import { keyOfTime, stampOf, timeOfKey } from './stamp.js'

/** @typedef {import('./types.js').Entry} Entry @typedef {import('./types.js').Edit} Edit */

const DHOPS_MOST = 2               // refused stamps of one change: by this clock, by the server's
const RECOVERIES_MOST = 20         // of one change, without a pause
const TRIES_MOST = 8               // of what may be the cause of the crash that is its answer
const OWN_KEY_MS = 12 * 3600_000
const OF_CLOCKS = new Set(['ADHOP', 'AKEYAHEAD', 'AKEYOLD']) // their last argument is the server's time

/** Of `write`: its argument is made of its edits; that of `send` is the caller's. @param {Entry} entry */
const isWrite = entry => entry.param === undefined

export class Outbox {
  /** @param {import('./cache.js').Cache} cache @param {import('./transport.js').Transport} transport @param {import('./sync.js').Syncer} syncer
   * @param {(batch: import('./types.js').Batch) => Promise<void>} commit
   * @param {(id: string, fault: Fault | null, out: any) => void} settled @param {import('./types.js').Options['conflict']} conflict */
  constructor(cache, transport, syncer, commit, settled, conflict) {
    this.cache = cache
    this.transport = transport
    this.syncer = syncer
    this.commit = commit
    this.settled = settled
    this.conflict = conflict
    /** Was the change made by this page? Then nothing was done under its key before. */
    this.isOfThisVisit = (/** @type {string} */ _id) => false
    /** @type {Map<string, number>} how often the server has refused the stamp of the user's action, by entry */
    this.undated = new Map()
    /** @type {string | undefined} the last key that was made, until it was sent: nothing was done under it */
    this.freshKey = undefined
    /** Requests since a change has ended. */ this.recoveries = 0
  }

  /** @returns {Entry | undefined} */
  get first() {
    for (const entry of this.cache.outbox.values()) if (this.cache.isOwn(entry)) return entry
  }

  /** Sends the first entry.  Throws what asks for a later attempt. */
  async step() {
    const entry = this.first
    if (!entry) return
    try {
      const ready = entry.sent ? entry : await this.prepare(entry)
      if (ready && ready.sent?.key !== entry.key && this.cache.log.isBehind(entry.id)) throw new Fault({ code: 'CSTORE', message: 'The key of a change cannot be stored.' })
      if (ready) await this.send(ready)
      else await this.end(entry, null, 0)
    } catch (error) {
      if (!(error instanceof Fault) || error.code === 'CACCOUNT' || !this.cache.isOwn(entry)) throw error
      const current = this.cache.outbox.get(entry.id) ?? entry
      if (!await this.recover(current, error) || this.recoveries++ > RECOVERIES_MOST) throw error
    }
  }

  /** The entry with its key and argument, stored; null: nothing is left to be done. @param {Entry} entry @returns {Promise<Entry | null>} */
  async prepare(entry) {
    let param = entry.param
    let edits = entry.edits
    if (isWrite(entry)) {
      // older than what the edit was made of: the copy was not stored, the change was
      const unknown = edits.filter(edit => edit.base.v > (this.cache.copies.get(keyOf(edit.c, edit.id))?.v ?? -1))
      await this.syncer.readDocuments(unknown.map(edit => keyOf(edit.c, edit.id)))
      const rebased = []
      for (const edit of edits) rebased.push(await rebase(edit, this.copyOf(edit), this.conflict))
      edits = /** @type {Edit[]} */ (rebased.filter(Boolean))
      if (!edits.length) return null
      param = JSON.stringify({ docs: edits.map(edit => putOf(edit, this.copyOf(edit).v)) })
    }
    return this.store({ ...entry, edits, sent: { key: this.keyFor(entry), param: param ?? '{}', tries: 0 } })
  }

  /** The key that the entry was made with: under it, it may be sent although the store refuses to note that, since the next visit sends it
   * under the same, even if with other bytes.  After half a day, the server may know it no more. @param {Entry} entry */
  keyFor({ id, key }) {
    if (!key || this.transport.now() - timeOfKey(key) > OWN_KEY_MS) return this.newKey()
    if (this.isOfThisVisit(id)) this.freshKey = key
    return key
  }

  newKey() {
    this.freshKey = keyOfTime(this.transport.now())
    return this.freshKey
  }

  /** @param {Entry} entry @param {NonNullable<Entry['sent']>} sent */
  async renewKey(entry, sent) {
    await this.store({ ...entry, sent: { ...sent, key: this.newKey() } })
    return true
  }

  /** @param {Entry} entry */
  async store(entry) {
    await this.commit({ outbox: [[entry.id, entry]] })
    return entry
  }

  /** @param {Edit} edit */
  copyOf(edit) {
    return this.syncer.held([keyOf(edit.c, edit.id)])[0]
  }

  /** @param {Entry} entry */
  keysOf(entry) {
    return entry.edits.map(edit => keyOf(edit.c, edit.id))
  }

  /** @param {Entry} entry */
  undatedOf(entry) {
    return this.undated.get(entry.id) ?? 0
  }

  /** @param {Entry} entry */
  async send(entry) {
    const { key, param } = /** @type {NonNullable<Entry['sent']>} */ (entry.sent)
    const held = this.syncer.held(this.keysOf(entry))
    const at = entry.at + this.transport.ahead
    const isDated = this.undatedOf(entry) < DHOPS_MOST
    const dhop = isDated ? `,"dhop":${stampOf(at)}` : ''
    const syncs = held.length ? `,"syncs":${JSON.stringify(held.map(headerOf))}` : ''
    const isFresh = this.freshKey === key
    this.freshKey = undefined
    const answer = await this.transport.operate(entry.op, `{"param":${param}${dhop}${syncs}}`, key, { account: entry.by ?? '' }).catch(fault => {
      if (isFresh && OF_CLOCKS.has(fault.code)) this.freshKey = key
      throw fault
    })
    if (!this.cache.isOwn(entry)) return this.end(entry, null, answer.out?.v ?? 0, [], answer.out) // another account is signed in: not its copies
    const { copies, later } = held.length ? this.syncer.take(held, answer.syncs) : { copies: [], later: [] }
    if (later.length) { // until then the entry stays: it shows what the copies lack
      await this.commit({ copies })
      await this.syncer.readDocuments(later)
      copies.length = 0
    }
    const version = answer.out?.v ?? Math.max(0, ...copies.map(([, copy]) => copy.v))
    await this.end(entry, null, version, copies, answer.out)
  }

  /** The entry has ended: its changes are in the copies, or are rolled back.
   * @param {Entry} entry @param {Fault | null} fault @param {number} version @param {[string, import('./types.js').Copy][]} copies @param {any} [out] */
  async end(entry, fault, version, copies = [], out) {
    const fresh = new Map(copies)
    /** @type {[string, Entry | null][]} */ const outbox = [[entry.id, null]]
    for (const later of this.cache.outbox.values()) {
      if (fault || later.id <= entry.id || later.by !== entry.by) continue
      const edits = later.edits.map(edit => {
        const done = entry.edits.find(one => one.c === edit.c && one.id === edit.id)
        return done ? follow(edit, entry.id, done, version, fresh.get(keyOf(edit.c, edit.id)) ?? this.copyOf(edit)) : edit
      })
      if (edits.some((edit, i) => edit !== later.edits[i])) outbox.push([later.id, { ...later, edits }])
    }
    await this.commit({ copies, outbox, collections: fault ? [] : this.touched(entry) })
    this.undated.delete(entry.id)
    this.recoveries = 0
    this.settled(entry.id, fault, out)
  }

  /** The collections that a document may have joined or left: they are to be read. @param {Entry} entry */
  touched(entry) {
    /** @type {[string, import('./types.js').Kept][]} */ const found = []
    for (const kept of this.cache.collections.values()) {
      const ids = entry.edits.filter(edit => edit.c === kept.c).map(edit => edit.id)
      if (!ids.length) continue
      found.push([kept.def, { ...kept, extra: [...new Set([...kept.extra ?? [], ...ids])] }])
      if (this.syncer.isFollowed(kept.def)) this.syncer.collections.add(kept.def)
    }
    return found
  }

  /** After a fault: true if something was done about it, so that the loop goes on. @param {Entry} entry @param {Fault} fault */
  async recover(entry, fault) {
    const { sent, ...unsent } = entry
    if (OF_CLOCKS.has(fault.code)) this.transport.setClock(Number(fault.args.at(-1)))
    if (sent && isWrite(entry) && fault.code === 'AVERSION') {
      await this.syncer.readDocuments(this.keysOf(entry))
      await this.store(unsent)
      return true
    }
    const isOwn = sent !== undefined && sent.key === entry.key
    if (isOwn && fault.code === 'AKEYREUSED') { // done, though the store does not know it
      await this.syncer.readDocuments(this.keysOf(entry))
      await this.end(entry, null, Math.max(0, ...entry.edits.map(edit => this.copyOf(edit).v)))
      return true
    }
    const isOfWrongClock = fault.code === 'AKEYAHEAD' || (fault.code === 'AKEYOLD' && (sent?.key === this.freshKey || (isOwn && !isWrite(entry))))
    if (sent && isOfWrongClock) return this.renewKey(entry, sent)
    if (sent && isWrite(entry) && fault.code === 'AKEYOLD') {
      await this.syncer.readDocuments(this.keysOf(entry))
      const copies = entry.edits.map(edit => this.copyOf(edit))
      if (entry.edits.every((edit, i) => isDone(edit, copies[i]))) await this.end(entry, null, Math.max(...copies.map(copy => copy.v)))
      else await this.renewKey(entry, sent)
      return true
    }
    if (fault.code === 'ADHOP' && this.undatedOf(entry) < DHOPS_MOST) {
      this.undated.set(entry.id, this.undatedOf(entry) + 1)
      return true
    }
    if (fault.kind === 'refused') {
      await this.rollBack(entry, fault)
      return true
    }
    if (fault.isSuspect && sent) {
      if (fault.phase !== undefined && fault.phase < 3 && sent.tries >= TRIES_MOST) {
        await this.rollBack(entry, fault)
        return true
      }
      await this.store({ ...entry, sent: { ...sent, tries: sent.tries + 1 } })
    }
    return false
  }

  /** @param {Entry} entry @param {Fault} fault */
  async rollBack(entry, fault) {
    for (const key of this.keysOf(entry)) this.syncer.documents.add(key)
    await this.end(entry, fault, 0)
  }
}

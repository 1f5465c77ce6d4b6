/* lifecycle.js: the network comes back, and the browser puts the page aside or has it back: as a frozen tab, or for the way back to it. */

/** Live events that flow bring something more often than this. */
const QUIET_MS = 20_000

export class Lifecycle {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session
    this.isAsleep = false
    /** The network is back, or the page: what has begun before may hang. */
    this.back = (/** @type {Event} */ { type }) => {
      const { loop, live } = session
      if (this.isAsleep || (type !== 'online' && (globalThis.document.hidden || Date.now() - live.heardAt < QUIET_MS))) return
      loop.wake()
      live.renew()
    }
    this.move = (/** @type {any} */ { type, persisted }) => {
      if (type === 'freeze' || (type === 'pagehide' && persisted)) this.sleep()
      else if (type === 'resume' || (type === 'pageshow' && persisted)) void this.wakeUp()
    }
  }

  /** @param {'addEventListener' | 'removeEventListener'} how */
  listen(how) {
    globalThis[how]?.('online', this.back)
    globalThis.document?.[how]('visibilitychange', this.back)
    if (!globalThis.document || !this.session.cache.store.isShared) return
    for (const type of ['pagehide', 'pageshow']) globalThis[how](type, this.move)
    for (const type of ['freeze', 'resume']) globalThis.document[how](type, this.move)
  }

  /** A page that stands still must not lead: the others would wait for it.  What was under way is given up, since its answer would
   * come when others have gone on. */
  sleep() {
    const { session } = this
    if (this.isAsleep || session.isClosed) return
    this.isAsleep = true
    session.turn++
    session.transport.close()
    void session.loop.stop()
    void session.live.stop()
    session.status.set({ leader: false })
    session.resign()
  }

  /** What other tabs have told meanwhile may be lost: it is in the store. */
  async wakeUp() {
    const { session } = this, { turn } = session
    if (!this.isAsleep || session.isClosed) return
    await Promise.all([session.loop.stop(), session.live.stop()])
    await session.cache.load().catch(() => {})
    if (session.isClosed || turn !== session.turn || !this.isAsleep) return
    this.isAsleep = false
    session.transport.reopen()
    session.tabs.postWants([...session.follows.keys()])
    session.compete()
  }
}

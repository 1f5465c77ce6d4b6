/* loop.js: a loop that works while there is something to do, and waits longer after each failure. */

/** Milliseconds to wait after so many failures, at random so that clients do not return together.
 * @param {{least: number, most: number}} backoff @param {number} failures @param {number} asked by the server */
export function delayOf(backoff, failures, asked) {
  const longest = Math.min(backoff.most, backoff.least * 2 ** Math.min(failures, 16))
  return Math.max(asked, longest / 2) + Math.random() * longest / 2
}

export class Loop {
  /** @param {() => Promise<boolean>} work does one thing; false: there is nothing to do
   * @param {(error: unknown) => number | null} failed the milliseconds to wait; null: until it is woken */
  constructor(work, failed) {
    this.work = work
    this.failed = failed
    this.isStopped = false
    this.isWoken = false
    this.wait = (/** @type {void} */ _) => {}
    /** Kept when the loop has ended. */
    this.ended = Promise.resolve()
  }

  /** Again, too, after it was stopped. */
  start() {
    this.isStopped = false
    this.ended = this.ended.then(() => this.run())
  }

  async run() {
    while (!this.isStopped) {
      this.isWoken = false
      /** @type {number | null} */ let pause = null
      try {
        if (await this.work()) continue
      } catch (error) {
        pause = this.failed(error)
      }
      if (this.isWoken || this.isStopped) continue
      await new Promise(resolve => {
        const timer = pause === null ? undefined : setTimeout(resolve, pause)
        this.wait = () => { clearTimeout(timer); resolve(undefined) }
      })
    }
  }

  /** Goes on at once, also while it waits after a failure. */
  wake() {
    this.isWoken = true
    this.wait()
  }

  stop() {
    this.isStopped = true
    this.wait()
    return this.ended
  }
}

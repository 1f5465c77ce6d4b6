/* fault.js: refusals, and what a client does after each. */

import { OF_CLASS, OF_CODE } from './remedies.js'

const CRASHES = new Set(['XCRASH', 'XINTERNAL'])

/** A request that failed: by an answer of the server, or (code NETWORK) without one. */
export class Fault extends Error {
  /** @param {{code: string, message?: string, status?: number, phase?: number, args?: unknown[], at?: string, detail?: string,
   *   retryAfter?: number}} facts */
  constructor(facts) {
    super(facts.message ?? facts.code)
    this.name = 'Fault'
    this.code = facts.code
    this.status = facts.status ?? 0
    this.phase = facts.phase
    this.args = facts.args ?? []
    this.at = facts.at
    this.detail = facts.detail
    /** Milliseconds to wait, by the server. */
    this.retryAfter = facts.retryAfter ?? 0
  }

  /** again: send the same later; sign: the caller must sign in; over: this client cannot go on; refused: give it up.
   * @returns {'again' | 'sign' | 'over' | 'refused'} */
  get kind() {
    const remedy = OF_CODE[this.code] ?? OF_CLASS[this.code[0]]
    if (remedy === 'over') return 'over'
    if (this.status === 401) return 'sign'
    return this.code === 'NETWORK' || remedy === 'again' || remedy === 'held' ? 'again' : 'refused'
  }

  /** Perhaps the request itself is the cause: it is not repeated without end. */
  get isSuspect() {
    return CRASHES.has(this.code) || this.code[0] === 'B'
  }
}

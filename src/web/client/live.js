/* live.js: live events: which documents and collections have changed, resumed after each interruption. */
import { Fault } from './fault.js'
import { delayOf, Loop } from './loop.js'
import { isOfRecords } from './records.js'
import { lost } from './transport.js'

const OPENING_MS = 20_000 // at most, until the server is ready, which it says at once

/** The events of a stream, one by one, until it ends, nothing came for so many milliseconds, or the signal ends.
 * @param {ReadableStream<Uint8Array>} body @param {number} patience @param {AbortSignal} [signal] */
export async function* eventsOf(body, patience, signal) {
  const reader = body.getReader()
  const end = () => { reader.cancel().catch(() => {}) } // of its own: `fetch` of Node 18 may have forgotten the signal
  signal?.addEventListener('abort', end)
  const decoder = new TextDecoder()
  let rest = ''
  /** @type {{event: string, data: string, id?: string, retry?: number}} */
  let event = { event: '', data: '' }
  try {
    for (;;) {
      const timer = setTimeout(end, patience)
      const { value, done } = await reader.read().finally(() => clearTimeout(timer))
      if (done) return
      rest += decoder.decode(value, { stream: true })
      const lines = rest.split('\n')
      rest = /** @type {string} */ (lines.pop())
      for (const line of lines) {
        const [, name, text] = /^([^:]*):? ?(.*?)\r?$/.exec(line) ?? []
        if (line === '' || line === '\r') {
          yield event
          event = { event: '', data: '' }
        } else if (name === 'event') event.event = text
        else if (name === 'data') event.data += text
        else if (name === 'id') event.id = text
        else if (name === 'retry') event.retry = Number(text)
      }
    }
  } finally {
    signal?.removeEventListener('abort', end)
    end()
  }
}

/** The state of a namespace of which nothing else is said. */
export const ON = { state: 0 }

export class Live {
  /** @param {import('./transport.js').Transport} transport @param {{least: number, most: number}} backoff
   * @param {{definitions: () => string[], changed: (definition: string, version: number) => void, lost: () => void,
   *   heard: (fault: Fault | null) => void, flows: (flows: boolean) => void, shows: (namespace: import('./types.js').Namespace) => void, drop: (fault: Fault, definitions: string[]) => boolean}} session */
  constructor(transport, backoff, session) {
    this.transport = transport
    this.backoff = backoff
    this.session = session
    this.last = ''
    this.failures = 0
    this.retry = 0
    /** Searches are followed by what may change them: the server has no others, or refuses one. */
    this.isPlain = false
    /** Whole classes instead of collections and single documents: fewer definitions, and allowed under access rules. */
    this.isCoarse = false
    /** Of the present connection. @type {string[]} */ this.defs = []
    this.connection = new AbortController()
    /** When it was ready; Infinity: it was not. */ this.readyAt = Infinity
    /** When something came last. */ this.heardAt = 0
    this.loop = new Loop(() => this.connect(), error => this.pause(error))
  }

  /** The definitions of the next connection. */
  wanted() {
    const definitions = this.session.definitions()
    return this.isCoarse ? [...new Set(definitions.map(one => isOfRecords(one) ? one : one.split('/')[0]))] : definitions
  }

  start() {
    this.loop.start()
  }

  /** Connects anew, with the definitions of now; what changes in between is not missed. */
  renew() {
    this.connection.abort()
    this.loop.wake()
  }

  stop() {
    this.connection.abort()
    return this.loop.stop()
  }

  /** One connection. */
  async connect() {
    const defs = this.defs = this.wanted()
    if (!defs.length || this.loop.isStopped) {
      this.session.flows(false)
      return false
    }
    const connection = this.connection = new AbortController()
    let isLate = false
    this.readyAt = Infinity
    const timer = setTimeout(() => {
      isLate = this.readyAt === Infinity
      if (isLate) connection.abort()
    }, Math.min(this.transport.patience, OPENING_MS))
    try {
      const body = JSON.stringify(this.last ? { defs, last: this.last } : { defs })
      const headers = { 'Content-Type': 'application/json', Accept: 'text/event-stream' }
      const response = await this.transport.request('/live', { method: 'POST', headers, body, signal: connection.signal, cache: 'no-store' })
      if (!response.body) throw lost('it is no stream')
      for await (const event of eventsOf(response.body, this.transport.patience, connection.signal)) this.take(event)
      throw lost('it has ended')
    } catch (error) {
      if (connection.signal.aborted && !isLate) return true
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** @param {{event: string, data: string, id?: string, retry?: number}} event */
  take(event) {
    this.heardAt = Date.now()
    if (event.retry) this.retry = event.retry
    const data = event.data ? JSON.parse(event.data) : {}
    if (event.event === 'ready') {
      this.readyAt = this.heardAt
      this.session.flows(true)
      this.session.heard(null)
      this.session.shows(ON)
      if (!data.resumed) this.session.lost()
    } else if (event.event === 'reset') this.session.lost()
    else if (event.event === 'state') this.session.shows(data)
    else if (event.event === 'change') for (const [definition, version] of data.changed) this.session.changed(definition, version)
    else if (event.event === 'find') this.session.changed(this.defs[data.def], 0)
    else if (event.event === 'closed') throw new Fault({ ...data, status: data.code === 'SKEY' ? 401 : 0, retryAfter: this.retry })
    if (event.id !== undefined) this.last = event.id
  }

  /** @param {unknown} error */
  pause(error) {
    const fault = lost(error)
    if (Date.now() - this.readyAt > this.backoff.most) this.failures = 0 // one that ends at once is no success
    this.failures++
    this.heardAt = 0
    this.session.flows(false)
    if (this.session.drop(fault, this.defs)) return 0
    if (['AARG', 'ALIMIT', 'NCOLLECTION'].includes(fault.code) && (this.last || !this.isCoarse)) {
      if (this.last) this.last = ''
      else if (this.isPlain) this.isCoarse = true
      else this.isPlain = true
      return 0
    }
    this.session.heard(fault)
    if (fault.kind === 'over') return null
    if (fault.code === 'SKEY') this.transport.forgetToken()
    if (this.failures > 1) this.session.lost() // what is followed is read all the same
    const asked = Math.min(fault.retryAfter, this.backoff.most)
    return delayOf(this.backoff, this.failures, asked)
  }
}

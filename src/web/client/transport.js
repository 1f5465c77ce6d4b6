/* transport.js: requests to one namespace: the token, lost answers, faults, the server's clock. */
import { accountOf } from './account.js'
import { Fault } from './fault.js'
import { keyOfTime, timeOf } from './stamp.js'

/** @typedef {{account?: string}} Whose for whom a request is made: the account that its first attempt had, if none is named */

const MEMBERS = ['out', 'syncs', 'subs']

/** @param {Response} response @returns {Promise<Fault>} */
export async function faultOf(response) {
  const seconds = Number(response.headers.get('retry-after') ?? 0)
  const retryAfter = Number.isFinite(seconds) ? seconds * 1000 : 0
  const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json')
  const problem = await response.json().catch(() => null)
  if (!isProblem || typeof problem?.code !== 'string') return lost(`status ${response.status}`)
  return new Fault({ ...problem, status: response.status, retryAfter })
}

/** Does the answer come from the server? A page in its place, with status 200 too, has none of these. A proxy may have put another id in
 * place of ours. @param {Headers} headers @param {string} id of the request */
const isOurs = (headers, id) => headers.get('x-request-id') === id || headers.has('tus-resumable') || headers.has('repr-digest') ||
  /^(application\/(x-nd)?json|text\/event-stream)/.test(headers.get('content-type') ?? '')

/** @param {unknown} cause a Fault stays what it is */
export const lost = cause => cause instanceof Fault ? cause : new Fault({ code: 'NETWORK', message: `No answer: ${cause instanceof Error ? cause.message : cause}` })

export const stranger = () => new Fault({ code: 'CACCOUNT', message: 'Another account is signed in.' })

/** What the promise gives; broken as soon as the signal ends.  `fetch` of Node 18 forgets its signal when garbage is collected.
 * @template T @param {AbortSignal | null | undefined} signal @param {Promise<T>} promise @returns {Promise<T>} */
function unless(signal, promise) {
  return signal ? new Promise((resolve, reject) => {
    const end = () => reject(lost('it was given up'))
    if (signal.aborted) end()
    signal.addEventListener('abort', end)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  }) : promise
}

/** The answer, which is JSON. @param {Response} response @param {AbortSignal | null} [signal] @returns {Promise<any>} */
const jsonOf = (response, signal) => unless(signal, response.json().catch(error => { throw lost(error) }))

export class Transport {
  /** @param {import('./types.js').Options} options */
  constructor(options) {
    const { url = globalThis.location?.origin ?? '', ns, build } = options
    this.root = `${url.replace(/\/$/, '')}/${ns}`
    this.build = build
    this.credentials = options.credentials ?? 'same-origin'
    this.fetch = options.fetch ?? ((...words) => globalThis.fetch(...words))
    this.patience = options.patience ?? 90_000
    this.closing = new AbortController()
    /** Milliseconds by which the server's clock is ahead of ours, as far as known. */
    this.ahead = 0
    this.bearer = /** @type {string | null | undefined} */ (undefined)
    this.hasToken = false
    /** @type {Promise<void> | undefined} */ this.asking = undefined
    /** Whose token it is; empty: nobody's; undefined: not known yet. @type {string | undefined} */ this.account = undefined
    /** Is called when that has changed. */ this.told = () => {}
    this.setToken(options.token, options.account)
  }

  /** @param {import('./types.js').Options['token']} token @param {string} [account] absent: the token tells it */
  setToken(token, account) {
    this.token = token
    this.named = account
    this.hasToken = false
    this.tell(account ?? (typeof token === 'function' ? undefined : accountOf(token)))
  }

  /** @param {string | undefined} account */
  tell(account) {
    if (account === this.account) return
    this.account = account
    this.told()
  }

  now() {
    return Date.now() + this.ahead
  }

  /** From here on, the account is known. @param {boolean} renew @returns {Promise<Record<string, string>>} */
  async authorize(renew) {
    if (renew) await this.askToken(true)
    else if (!this.hasToken) await (this.asking ??= this.askToken(false).finally(() => { this.asking = undefined }))
    return this.bearer ? { Authorization: `Bearer ${this.bearer}` } : {}
  }

  /** At once, if the function returns no promise. @param {boolean} renew @returns {Promise<void>} */
  async askToken(renew) {
    const { token } = this
    const answer = typeof token === 'function' ? token(renew) : token
    const bearer = answer instanceof Promise ? await answer : answer
    if (token !== this.token) return this.askToken(false)
    this.bearer = bearer
    this.hasToken = true
    this.tell(this.named ?? accountOf(bearer))
  }

  /** The token may be another one from now on. */
  forgetToken() {
    this.hasToken = false
  }

  /** A response of the server's with status 200; a token that is refused is renewed once.
   * @param {string} path @param {RequestInit & {headers?: Record<string, string>}} init @param {Whose} [whose] @returns {Promise<Response>} */
  async request(path, init, whose = {}) {
    for (let renew = false; ; renew = true) {
      const authorization = await this.authorize(renew)
      whose.account ??= this.account
      if (whose.account !== this.account) throw stranger()
      /** @type {Record<string, string>} */ const headers = { ...init.headers, ...authorization }
      const id = headers['X-Request-Id'] = keyOfTime(this.now())
      if (this.build) headers['X-Stampd-Build'] = this.build
      const answering = this.fetch(this.root + path, { credentials: this.credentials, ...init, headers }).catch(error => { throw lost(error) })
      const response = await unless(init.signal, answering).catch(error => {
        answering.then(late => late.body?.cancel()).catch(() => {})
        throw error
      })
      if (response.ok) {
        if (isOurs(response.headers, id)) return response
        response.body?.cancel().catch(() => {})
        throw lost('it is not of the server')
      }
      const fault = await unless(init.signal, faultOf(response))
      const mayRenew = fault.code === 'SKEY' && typeof this.token === 'function' && !renew
      if (!mayRenew) throw fault
    }
  }

  /** An answer that is JSON. @param {string} path @param {RequestInit & {headers?: Record<string, string>}} init @param {Whose} [whose] */
  async ask(path, init, whose) {
    return jsonOf(await this.request(path, init, whose), init.signal)
  }

  /** As `operate`, for what is kept here; lost when another account was signed in meanwhile. @param {string} op @param {string} body */
  async read(op, body) {
    /** @type {Whose} */ const whose = {}
    const answer = await this.operate(op, body, undefined, whose)
    if (whose.account !== this.account) throw stranger()
    return answer
  }

  /** Runs an operation; returns its answer.  `body` is JSON already: what is repeated under a key must be the same bytes.
   * @param {string} op @param {string} body @param {string} [key] @param {Whose} [whose] @returns {Promise<any>} */
  async operate(op, body, key, whose) {
    const patience = new AbortController(), closing = this.closing.signal
    const end = () => patience.abort()
    if (closing.aborted) throw lost('it is given up')
    const timer = setTimeout(end, this.patience)
    closing.addEventListener('abort', end)
    try {
      const headers = { 'Content-Type': 'application/json', ...(key ? { 'Idempotency-Key': key } : {}) }
      const response = await this.request(`/op/${op}`, { method: 'POST', body, headers, signal: patience.signal }, whose)
      const isJson = response.headers.get('content-type')?.startsWith('application/json')
      if (!isJson) return { out: response }
      const answer = await jsonOf(response, patience.signal)
      if (answer?.constructor === Object && Object.keys(answer).every(name => MEMBERS.includes(name))) return answer
      throw lost('it is not of the operation')
    } finally {
      clearTimeout(timer)
      closing.removeEventListener('abort', end)
    }
  }

  /** The lines of an answer that is streamed, some at a time.  Whoever reads stops at the last line: an answer that ends otherwise has
   * broken off.  @param {string} op @param {string} body @returns {AsyncGenerator<any[], void>} */
  async *lines(op, body) {
    /** @type {Whose} */ const whose = {}
    const { out } = await this.operate(op, body, undefined, whose)
    if (!out?.body) throw lost('it is no stream')
    const reader = out.body.getReader(), decoder = new TextDecoder()
    const end = () => { reader.cancel().catch(() => {}) }
    this.closing.signal.addEventListener('abort', end)
    try {
      for (let rest = ''; ;) {
        const timer = setTimeout(end, this.patience)
        const { done, value } = await reader.read().finally(() => clearTimeout(timer))
        if (done) throw lost('it broke off')
        if (whose.account !== this.account) throw stranger()
        const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
        rest = lines.pop() ?? ''
        if (lines.length) yield lines.map(line => JSON.parse(line))
      }
    } catch (error) {
      throw lost(error)
    } finally {
      this.closing.signal.removeEventListener('abort', end)
      end()
    }
  }

  /** The server's time is this stamp now. @param {number} stamp */
  setClock(stamp) {
    const ahead = timeOf(stamp) - Date.now()
    if (Number.isFinite(ahead)) this.ahead = ahead
  }

  /** Ends what is under way, and refuses more. */
  close() {
    this.closing.abort()
  }

  reopen() {
    if (this.closing.signal.aborted) this.closing = new AbortController()
  }
}

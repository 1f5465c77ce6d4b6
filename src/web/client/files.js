/* files.js: attachments of documents.  Larger ones are sent in parts by the tus protocol, so that they go on where they broke off. */
import { Fault } from './fault.js'
import { delayOf } from './loop.js'
import { hexOf } from './stamp.js'
import { lost } from './transport.js'

const PART = 8 << 20
const TUS = { 'Tus-Resumable': '1.0.0' }

/** @typedef {{signal: AbortSignal, whose: import('./transport.js').Whose}} Run what sends a file, and for which account */

/** Words of Upload-Metadata: the values in base64. @param {Record<string, string>} facts */
const metadata = facts => Object.entries(facts)
  .map(([name, value]) => `${name} ${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}`).join(',')

/** How much the server has, which is in these limits. @param {Response} response @param {number} least @param {number} most */
function offsetOf(response, least, most) {
  const offset = parseInt(response.headers.get('upload-offset') ?? '')
  if (offset >= least && offset <= most) return offset
  throw lost(`the offset is ${offset}`)
}

/** Its SHA-256; nothing in pages without TLS, which cannot compute it. @param {Blob} file */
async function digestOf(file) {
  const digest = await globalThis.crypto.subtle?.digest('SHA-256', await file.arrayBuffer())
  return digest && hexOf(new Uint8Array(digest))
}

export class Files {
  /** @param {import('./transport.js').Transport} transport @param {{least: number, most: number}} backoff */
  constructor(transport, backoff) {
    this.transport = transport
    this.backoff = backoff
  }

  /** @param {string} c @param {string} id @param {string} key */
  path(c, id, key) {
    return `/doc/${c}/${encodeURIComponent(id)}/file/${encodeURIComponent(key)}`
  }

  /** Where the file is: for a link or an image, where the namespace is readable without a token or the session is a cookie.
   * @param {string} c @param {string} id @param {string} key */
  address(c, id, key) {
    return this.transport.root + this.path(c, id, key)
  }

  /** The file, as a response: `await (await files.read('Note', 'n1', 'photo')).blob()`.
   * @param {string} c @param {string} id @param {string} key @param {{signal?: AbortSignal}} [more] */
  async read(c, id, key, { signal } = {}) {
    const response = await this.transport.request(this.path(c, id, key), { method: 'GET', signal: this.ends(signal) })
    if (response.headers.has('repr-digest')) return response
    throw lost('it names no digest')
  }

  /** @param {string} c @param {string} id @param {string} key */
  async remove(c, id, key) {
    const answer = await this.transport.ask(this.path(c, id, key), { method: 'DELETE', signal: this.ends() })
    if (typeof answer?.v !== 'number') throw lost('it names no version')
  }

  /** Sends a file to a document that exists.  Goes on after a lost connection, and again later with the `upload` that `progress` named;
   * broken with a Fault when the server refuses it, or when the signal or the end of the session ends it; waits while another account is signed in.
   * @param {string} c @param {string} id @param {string} key @param {Blob} file
   * @param {import('./types.js').SendOptions} [more] */
  async send(c, id, key, file, { type = file.type || 'application/octet-stream', part = PART, upload, progress = () => {}, signal } = {}) {
    const ends = this.ends(signal)
    /** @type {Run} */ const run = { signal: ends, whose: { account: this.transport.account } }
    if (file.size <= part && !upload) {
      await this.again(ends, () => this.put(this.path(c, id, key), file, type, run))
      return progress({ sent: file.size, size: file.size })
    }
    upload ??= await this.again(ends, () => this.create({ class: c, id, key, filetype: type }, file.size, run))
    let sent = -1 // unknown
    while (sent < file.size) {
      sent = await this.again(ends, async () => {
        const at = sent < 0 ? await this.look(upload ?? '', file.size, run) : sent
        sent = -1
        return at < file.size ? this.append(upload ?? '', at, file.slice(at, at + part), run) : at
      })
      progress({ sent, size: file.size, upload })
    }
  }

  /** The server has it if it names what it has. @param {string} path @param {Blob} file @param {string} type @param {Run} run */
  async put(path, file, type, { signal, whose }) {
    const answer = await this.transport.ask(path, { method: 'PUT', headers: { 'Content-Type': type }, body: file, signal }, whose)
    const sha = await digestOf(file)
    if (answer?.size !== file.size || (sha && answer.sha !== sha)) throw lost('it names another file')
  }

  /** @param {Record<string, string>} facts @param {number} size @param {Run} run */
  async create(facts, size, { signal, whose }) {
    const headers = { ...TUS, 'Upload-Length': String(size), 'Upload-Metadata': metadata(facts) }
    const response = await this.transport.request('/upload', { method: 'POST', headers, signal }, whose)
    const upload = response.headers.get('location')?.split('/').at(-1)
    if (!upload) throw lost('it names no upload')
    return upload
  }

  /** How much the server has. @param {string} upload @param {number} size @param {Run} run */
  async look(upload, size, { signal, whose }) {
    return offsetOf(await this.transport.request(`/upload/${upload}`, { method: 'HEAD', headers: TUS, signal }, whose), 0, size)
  }

  /** @param {string} upload @param {number} at @param {Blob} body @param {Run} run */
  async append(upload, at, body, { signal, whose }) {
    const headers = { ...TUS, 'Upload-Offset': String(at), 'Content-Type': 'application/offset+octet-stream' }
    return offsetOf(await this.transport.request(`/upload/${upload}`, { method: 'PATCH', headers, body, signal }, whose), at + 1, at + body.size)
  }

  /** Until it is done or refused; a wrong offset is no refusal, since it is read again. @template T @param {AbortSignal} ends @param {() => Promise<T>} act */
  async again(ends, act) {
    for (let failures = 0; ; failures++) {
      try {
        return await act()
      } catch (error) {
        const mayGoOn = error instanceof Fault && (error.kind === 'again' || error.code === 'AOFFSET' || error.code === 'XLOCKED')
        if (ends.aborted || !mayGoOn) throw error
        await new Promise(resolve => {
          const timer = setTimeout(resolve, delayOf(this.backoff, failures, error.retryAfter))
          ends.addEventListener('abort', () => { clearTimeout(timer); resolve(undefined) }, { once: true })
        })
        if (ends.aborted) throw error
      }
    }
  }

  /** Ends with the session, too. @param {AbortSignal} [signal] */
  ends(signal) {
    const ends = new AbortController(), closing = this.transport.closing.signal
    for (const one of [signal, closing]) {
      if (one?.aborted) ends.abort()
      one?.addEventListener('abort', () => ends.abort(), { once: true })
    }
    return ends.signal
  }
}

/* server.js: requests with the administrator's key, which is in the memory of this page and nowhere else, or with the session of an
 * administrator's account, which this tab keeps until it is closed. */

const LIVE_AGAIN_MS = 5000
const ACCOUNT = 'z_' // begins what takes the place of the key

const KEPT = 'stampd-session'

const kept = sessionStorage.getItem(KEPT)
let key = kept && ACCOUNT + kept
let ended = () => {}

/* A refusal of the server, or an answer that did not come (code ""). */
export class Refusal extends Error {
  constructor(status, fault) {
    super(fault.message ?? 'The server sent no answer.')
    Object.assign(this, { status, code: fault.code ?? '', at: fault.at ?? '', args: fault.args ?? [] })
  }
}

async function send(path, init) {
  let response
  try {
    response = await fetch(path, { cache: 'no-store', credentials: 'omit', redirect: 'error', ...init })
  } catch {
    throw new Refusal(0, { message: 'The server cannot be reached.' })
  }
  if (response.ok) return response
  const fault = await response.json().catch(() => ({ message: `The server answered with the status ${response.status}.` }))
  throw new Refusal(response.status, fault)
}

async function sendWithKey(path, init) {
  try {
    return await send(path, { ...init, headers: { ...init?.headers, Authorization: `Bearer ${key}` } })
  } catch (refusal) {
    if (refusal.status === 401 || refusal.code === 'SKEY') signOut()
    throw refusal
  }
}

/* Runs an operation of a namespace; returns its `out`. */
export async function call(ns, operation, param = {}, { idempotencyKey } = {}) {
  const headers = { 'Content-Type': 'application/json', ...(idempotencyKey && { 'Idempotency-Key': idempotencyKey }) }
  const response = await sendWithKey(`/${encodeURIComponent(ns)}/op/${operation}`, { method: 'POST', headers, body: JSON.stringify({ param }) })
  return (await response.json()).out
}

/* What a copy lacks: the answer of a synchronisation. */
export async function sync(ns, copy) {
  const response = await sendWithKey(`/${encodeURIComponent(ns)}/op/sync`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ syncs: [copy] }) })
  return (await response.json()).syncs[0]
}

/* Calls `changed` when one of these has changed, as live events tell; returns what ends it. */
export function follow(ns, defs, changed) {
  const end = new AbortController()
  const read = async () => {
    const headers = { 'Content-Type': 'application/json', Accept: 'text/event-stream', Authorization: `Bearer ${key}` }
    const { body } = await send(`/${encodeURIComponent(ns)}/live`, { method: 'POST', headers, body: JSON.stringify({ defs }), signal: end.signal })
    const lines = body.pipeThrough(new TextDecoderStream()).getReader()
    for (let rest = '', part; !(part = await lines.read()).done;) {
      const whole = (rest + part.value).split('\n')
      rest = whole.pop()
      if (whole.some((line) => /^event: (change|reset)/.test(line))) changed()
    }
  }
  const go = async () => {
    while (!end.signal.aborted) {
      const refusal = await read().catch((fault) => fault)
      if (refusal?.status >= 400 && refusal.status < 500) return
      await new Promise((resolve) => setTimeout(resolve, LIVE_AGAIN_MS))
      if (!end.signal.aborted) changed() // what came in between
    }
  }
  void go()
  return () => end.abort()
}

/* Calls a queue manager, which takes the key too; a refusal does not sign out. */
export async function callManager(code, op) {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` }
  return (await (await send(`/${encodeURIComponent(code)}/op`, { method: 'POST', headers, body: JSON.stringify({ op }) })).json()).out
}

const fileOf = (ns, class_, id, key) => `/${[ns, 'doc', class_, id, 'file', key].map(encodeURIComponent).join('/')}`

/* The file of an attachment. */
export async function readFile(ns, class_, id, key) {
  return (await sendWithKey(fileOf(ns, class_, id, key))).blob()
}

export async function sendFile(ns, class_, id, key, file) {
  await sendWithKey(fileOf(ns, class_, id, key), { method: 'PUT', headers: { 'Content-Type': file.type || 'application/octet-stream' }, body: file })
}

export const ping = async (ns) => (await sendWithKey(`/${encodeURIComponent(ns)}/ping`)).json()

/* All pages of a list: `read(cursor)` returns one, with `cursor` unless it is the last. */
export async function collect(read, member, most = 1000) {
  const found = []
  let cursor
  do {
    const page = await read(cursor)
    found.push(...page[member])
    cursor = page.cursor
  } while (cursor && found.length < most)
  return found
}

/* Keeps the key if the server takes it. */
export async function signIn(candidate) {
  key = candidate
  try {
    await call('z', 'ns', { list: { limit: 1 } })
  } catch (refusal) {
    key = null
    throw refusal
  }
}

const postToZ = (operation, param, headers) => send(`/z/op/${operation}`, {
  method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify({ param }),
})

/* With an account of z; the server ends the session when nobody signs out. */
export async function signInByAccount(name, password) {
  const { token } = (await (await postToZ('login', { name, password, device: 'console' })).json()).out
  try {
    await signIn(ACCOUNT + token)
    sessionStorage.setItem(KEPT, token)
  } catch (refusal) {
    endSession(token)
    throw refusal
  }
}

/* Nobody waits for it: the page forgets the session in any case. */
const endSession = (token) => void postToZ('logout', {}, { Authorization: `Bearer ${token}` }).catch(() => {})

export const isByAccount = () => key?.startsWith(ACCOUNT) ?? false

export const isSignedIn = () => key !== null

export function signOut() {
  if (isByAccount()) endSession(key.slice(ACCOUNT.length))
  sessionStorage.removeItem(KEPT)
  key = null
  ended()
}

export const whenSignedOut = (handler) => { ended = handler }

/* server.js: requests with the administrator's key, which is in the memory of this page and nowhere else. */

let key = null
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

/* What an operation returns that is not JSON. */
export async function callText(ns, operation) {
  return (await sendWithKey(`/${encodeURIComponent(ns)}/op/${operation}`)).text()
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

export const isSignedIn = () => key !== null

export function signOut() {
  key = null
  ended()
}

export const whenSignedOut = (handler) => { ended = handler }

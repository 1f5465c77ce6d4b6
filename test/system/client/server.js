/* server.js: what the tests of the client library share: the server that test_client_js.py has started, and waiting. */
import assert from 'node:assert/strict'
import { Fault, open } from '../../../src/web/client/node.js'

export const url = process.env.STAMPD_URL ?? ''
export const ns = 'lab'
export const skip = url ? false : 'needs a server (STAMPD_URL)'
const BOUND_MS = 240_000 // what never comes true fails; the machine may be busy

let count = 0
/** An id that no other test has. */
export const fresh = (name = 'doc') => `${name}-${process.pid}-${Date.now()}-${count++}`

/** Opens a session that is closed with the test. */
export async function opened(test, options = {}) {
  const session = await open({ url, ns, backoff: { least: 1, most: 50 }, ...options })
  test.after(() => session.close())
  return session
}

/** A request of another client, without the library. */
export async function op(name, param, more = {}) {
  const { headers, ns: space = ns, ...rest } = more
  const response = await fetch(`${url}/${space}/op/${name}`, {
    method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify({ param, ...rest })
  })
  const answer = await response.json()
  if (!response.ok) throw new Fault({ ...answer, status: response.status })
  return answer.out
}

export const put = (...docs) => op('put', { docs })
export async function get(c, id) {
  const { docs: [document] } = await op('get', { docs: [{ c, id }] })
  return document
}

/** The content of a document as {name: content}. */
export const contents = document => Object.fromEntries(document.items.map(item => [item.k === undefined ? item.c : `${item.c}.${item.k}`, item.j ?? item.s]))
export const shown = snapshot => Object.fromEntries(Object.entries(snapshot.contents).map(([name, item]) => [name, item.j ?? item.s]))

/** Waits until the store has a value of which `look` is true, which is returned. */
export function until(store, look) {
  return new Promise((resolve, reject) => {
    let end = () => {}
    let isOver = false
    const timer = setTimeout(() => { end(); reject(new assert.AssertionError({ message: `did not come true: ${look}; last: ${JSON.stringify(store.get())}` })) }, BOUND_MS)
    end = store.subscribe(value => {
      if (isOver || !look(value)) return
      isOver = true
      clearTimeout(timer)
      queueMicrotask(() => end())
      resolve(value)
    })
  })
}

/** The Fault with this code by which the promise is broken. */
export async function refused(code, promise) {
  const fault = await promise.then(() => undefined, error => error)
  assert.equal(fault?.code, code, `refused with ${code}, not: ${fault?.stack}`)
  return fault
}

/** A network that the test switches; what was sent while it was off is lost. */
export function network() {
  const net = {
    isOn: true,
    requests: [],
    async fetch(address, init) {
      net.requests.push(String(address))
      if (!net.isOn) throw new TypeError('no network')
      const response = await fetch(address, init)
      if (!net.isOn) throw new TypeError('no network')
      return response
    }
  }
  return net
}

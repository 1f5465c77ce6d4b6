/* leader.js: of the tabs that share a store one talks to the server; another follows it when it is closed or killed. */

/** Calls `begins` once this tab is the leader. Returns what gives it up.
 * @param {string} name @param {() => Promise<void>} begins @param {LockManager | undefined} locks */
export function lead(name, begins, locks = globalThis.navigator?.locks) {
  if (!locks) {
    void begins()
    return () => {}
  }
  const waiting = new AbortController()
  let leave = (/** @type {void} */ _) => {}
  const held = new Promise(resolve => { leave = resolve })
  locks.request(`stampd:${name}`, { signal: waiting.signal }, () => {
    void begins()
    return held
  }).catch(() => {}) // given up before it began
  return () => { leave(); waiting.abort() }
}

/** What tabs tell each other; nothing where a store is not shared. @param {string | undefined} name @param {(message: any) => void} receive */
export function channel(name, receive) {
  if (!name || !globalThis.BroadcastChannel) return { post: (/** @type {any} */ _) => {}, close() {} }
  const wire = new BroadcastChannel(`stampd:${name}`)
  wire.onmessage = event => receive(event.data)
  const node = /** @type {any} */ (wire)
  node.unref?.()
  return { post: (/** @type {any} */ message) => wire.postMessage(message), close: () => wire.close() }
}

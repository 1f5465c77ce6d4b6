/* index.js: the client library of stampd. */
import { Session } from './session.js'
import { idbStore } from './store_idb.js'
import { memoryStore } from './store_memory.js'

export { Fault } from './fault.js'
export { Session } from './session.js'
export { Snapshot } from './snapshot.js'
export { idbStore } from './store_idb.js'
export { memoryStore } from './store_memory.js'

/** Opens a session on a namespace.  With a name, copies and changes that wait last in IndexedDB; where the browser refuses that,
 * as in some private windows, they end with the page, and the status has `lasting: false`.
 * @param {import('./types.js').Options} options @returns {Promise<Session>} */
export async function open(options) {
  const store = options.store ?? (options.name ? await idbStore(options.name).catch(memoryStore) : memoryStore())
  const session = new Session(options, store)
  await session.cache.load()
  session.begin()
  return session
}

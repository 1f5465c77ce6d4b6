/* store_idb.js: a store in IndexedDB, which the tabs of an origin share. */

/** @typedef {import('./types.js').Store} Store */

const TABLES = /** @type {const} */ (['copies', 'collections', 'outbox'])

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const done = request => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result)
  request.onerror = () => reject(request.error)
})

/** @param {IDBTransaction} transaction */
const committed = transaction => new Promise((resolve, reject) => {
  transaction.oncomplete = () => resolve(undefined)
  transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error('The transaction was aborted.'))
})

/** Fails where the browser offers no database, as some do in private windows.
 * @param {string} name @param {IDBFactory} [factory] @returns {Promise<Store>} */
export async function idbStore(name, factory = globalThis.indexedDB) {
  const opening = factory.open(`stampd:${name}`, 1)
  opening.onupgradeneeded = () => { for (const table of TABLES) opening.result.createObjectStore(table) }
  const database = await done(opening)
  database.onversionchange = () => database.close()
  return {
    isShared: true,
    isLasting: true,
    async load() {
      const transaction = database.transaction(TABLES, 'readonly')
      const [copies, collections, outbox] = await Promise.all(TABLES.map(table => done(transaction.objectStore(table).getAll())))
      return { copies, collections, outbox }
    },
    async commit(batch) {
      const tables = TABLES.filter(table => batch[table]?.length)
      if (!tables.length) return
      const transaction = database.transaction(tables, 'readwrite', { durability: 'strict' })
      const end = committed(transaction)
      for (const table of tables) {
        const objects = transaction.objectStore(table)
        for (const [key, value] of batch[table] ?? []) value ? objects.put(value, key) : objects.delete(key)
      }
      await end
    },
    async close() { database.close() }
  }
}

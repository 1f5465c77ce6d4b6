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
  transaction.onabort = () => reject(transaction.error ?? new DOMException('The transaction was aborted.', 'AbortError'))
})

/** After these the database may answer on another connection: browsers end those of pages in the background (iOS), or with the data. */
const LOST = new Set(['InvalidStateError', 'UnknownError', 'AbortError', 'TimeoutError'])
const PATIENCE_MS = 20_000

/** @template T @param {Promise<T>} promise @returns {Promise<T>} */
function bounded(promise) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new DOMException('The database does not answer.', 'TimeoutError')), PATIENCE_MS)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Fails where the browser offers no database, as some do in private windows.
 * @param {string} name @param {IDBFactory} [factory] @returns {Promise<Store>} */
export async function idbStore(name, factory = globalThis.indexedDB) {
  /** @type {Promise<IDBDatabase> | undefined} */ let connection
  /** A connection has ended: what the database had may have been removed. */ let mayBeEmptied = false
  let isClosed = false

  function connect() {
    const opening = factory.open(`stampd:${name}`, 1)
    opening.onupgradeneeded = () => { for (const table of TABLES) opening.result.createObjectStore(table) }
    const own = done(opening)
    own.then(database => { database.onversionchange = database.onclose = () => lose(own) }, () => {})
    return own
  }

  /** @param {Promise<IDBDatabase> | undefined} lost */
  function lose(lost) {
    lost?.then(database => database.close(), () => {})
    if (connection !== lost) return
    connection = undefined
    mayBeEmptied = true
  }

  /** On a connection that is opened again once when it has ended. @template T @param {(database: IDBDatabase) => Promise<T>} work @returns {Promise<T>} */
  async function act(work) {
    for (let isAgain = false; ; isAgain = true) {
      if (isClosed) throw new DOMException('The store is closed.', 'InvalidStateError')
      const own = connection ??= connect()
      try {
        return await bounded(own.then(work))
      } catch (error) {
        if (!LOST.has(/** @type {any} */ (error)?.name)) throw error
        lose(own)
        if (isAgain) throw error
      }
    }
  }

  /** @param {IDBTransaction} transaction of all tables */
  async function isEmpty(transaction) {
    const counts = await Promise.all(TABLES.map(table => done(transaction.objectStore(table).count())))
    return counts.every(count => count === 0)
  }

  await act(async () => {})
  return {
    isShared: true,
    isLasting: true,
    load() {
      return act(async database => {
        const transaction = database.transaction(TABLES, 'readonly')
        if (mayBeEmptied && await isEmpty(transaction)) return null
        const [copies, collections, outbox] = await Promise.all(TABLES.map(table => done(transaction.objectStore(table).getAll())))
        return { copies, collections, outbox }
      })
    },
    commit(batch, whole) {
      return act(async database => {
        const isDoubtful = mayBeEmptied
        const tables = TABLES.filter(table => isDoubtful || batch[table]?.length)
        if (!tables.length) return
        const transaction = database.transaction(tables, 'readwrite', { durability: 'strict' })
        const end = committed(transaction)
        try {
          const rows = isDoubtful && whole && await isEmpty(transaction) ? whole() : batch
          for (const table of tables) {
            const objects = transaction.objectStore(table)
            for (const [key, value] of rows[table] ?? []) value ? objects.put(value, key) : objects.delete(key)
          }
        } catch (error) { // without this the part before it would be stored
          end.catch(() => {})
          transaction.abort()
          throw error
        }
        await end
        if (isDoubtful) mayBeEmptied = false
      })
    },
    async close() {
      isClosed = true
      await connection?.then(database => database.close(), () => {})
    }
  }
}

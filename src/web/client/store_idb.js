/* store_idb.js: a store in IndexedDB, which the tabs of an origin share.
 *
 * A row costs more than what is in it, so copies that come together, as those of a first load, are stored in packs: rows of up to PACK copies, under
 * numbers, drawn at random.  Others have a row under their own key.  A copy is in one row: it leaves its pack when it changes or goes.  Only the tab that leads
 * writes copies, so it knows where each is from the time when it began to lead. */
import { keyOf } from './copy.js'

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
const PACK = 100

/** @typedef {Map<string, number>} Places the number of the pack of each copy; 0: it has a row of its own */

/** All copies, and where they are. @param {IDBObjectStore} objects @returns {Promise<[any[], Places]>} */
async function look(objects) {
  const [keys, rows] = await Promise.all([done(objects.getAllKeys()), done(objects.getAll())])
  return [rows.flat(), new Map(rows.flatMap((row, i) => [row].flat().map(({ c, id }) => [keyOf(c, id), row.id ? 0 : Number(keys[i])])))]
}

/** @param {IDBObjectStore} objects @param {[string, any][]} given @param {Places} places as they are, and will be */
async function putCopies(objects, given, places) {
  const isMany = given.length >= PACK && globalThis.navigator?.locks
  /** @type {Set<number>} */ const left = new Set()
  /** @type {any[]} */ const fresh = []
  for (const [key, copy] of given) {
    const place = places.get(key)
    places.delete(key)
    if (place) left.add(place)
    if (copy && !isMany) {
      objects.put(copy, key)
      places.set(key, 0)
    } else {
      if (copy) fresh.push([key, copy])
      if (place === 0) objects.delete(key)
    }
  }
  for (const number of left) {
    const rest = ((await done(objects.get(number))) ?? []).filter((/** @type {any} */ { c, id }) => places.get(keyOf(c, id)) === number)
    rest.length ? objects.put(rest, number) : objects.delete(number)
  }
  for (let at = 0; at < fresh.length; at += PACK) {
    const pack = fresh.slice(at, at + PACK), number = 1 + Math.random()
    objects.put(pack.map(([, copy]) => copy), number)
    for (const [key] of pack) places.set(key, number)
  }
}

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
  /** undefined: not known. @type {Places | undefined} */ let places

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
    connection = places = undefined
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
      places = undefined
      return act(async database => {
        const transaction = database.transaction(TABLES, 'readonly')
        if (mayBeEmptied && await isEmpty(transaction)) return null
        const [[copies, found], collections, outbox] = await Promise.all(TABLES.map((table, i) => i ? done(transaction.objectStore(table).getAll()) : look(transaction.objectStore(table))))
        places = found
        return { copies, collections, outbox }
      })
    },
    commit(batch, whole) {
      return act(async database => {
        const isDoubtful = mayBeEmptied
        /** @type {Places | undefined} */ let after
        const tables = TABLES.filter(table => isDoubtful || batch[table]?.length)
        if (!tables.length) return
        const transaction = database.transaction(tables, 'readwrite', { durability: 'strict' })
        const end = committed(transaction)
        try {
          const rows = isDoubtful && whole && await isEmpty(transaction) ? whole() : batch
          for (const table of tables) {
            const objects = transaction.objectStore(table), given = rows[table] ?? []
            if (table !== 'copies') for (const [key, value] of given) value ? objects.put(value, key) : objects.delete(key)
            else {
              // who forgets all need not lead
              after = places && !batch.collections?.some(([, kept]) => !kept) ? places : (await look(objects))[1]
              places = undefined
              await putCopies(objects, given, after)
            }
          }
        } catch (error) { // without this the part before it would be stored
          end.catch(() => {})
          transaction.abort()
          throw error
        }
        await end
        places = after ?? places
        if (isDoubtful) mayBeEmptied = false
      })
    },
    async close() {
      isClosed = true
      await connection?.then(database => database.close(), () => {})
    }
  }
}

/* lasting.js: a store in memory that outlives its session, and refuses what a test wants it to refuse. */

/** What was committed when the session was killed is there for the next one.  `harm` is awaited before each batch is stored, with its
 * number and `store`, which stores it; what it throws refuses the batch, and true says that it was stored already. */
export function lastingStore(kept = { copies: new Map(), collections: new Map(), outbox: new Map() }, harm = async () => {}) {
  let isDead = false, number = 0
  return {
    isShared: false,
    isLasting: true,
    kept,
    async load() { return structuredClone(Object.fromEntries(Object.entries(kept).map(([table, rows]) => [table, [...rows.values()]]))) },
    async commit(batch) {
      const store = () => {
        if (isDead) return
        for (const [table, all] of Object.entries(structuredClone(batch))) for (const [key, value] of all) value ? kept[table].set(key, value) : kept[table].delete(key)
      }
      await null
      await harm({ number: ++number, batch, store, kill: () => { isDead = true } })
      store()
    },
    async close() {},
    /** Nothing is stored any more: the same as a process that is killed now. */
    kill() {
      isDead = true
      return lastingStore(kept)
    }
  }
}

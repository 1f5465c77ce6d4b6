/* store_memory.js: a store that ends with the session. */

/** @returns {import('./types.js').Store} */
export function memoryStore() {
  return {
    isShared: false,
    isLasting: false,
    async load() { return { copies: [], collections: [], outbox: [] } },
    async commit() {},
    async close() {}
  }
}

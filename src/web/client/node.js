/* node.js: the client library in Node: the same, and a store in a file. */
import { webcrypto } from 'node:crypto'

if (!globalThis.crypto) Object.defineProperty(globalThis, 'crypto', { value: webcrypto }) // Node 18

export * from './index.js'
export { fileStore } from './store_file.js'

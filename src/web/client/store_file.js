/* store_file.js: a store in a file, for programs in Node: a log of batches, which is compacted when it is opened. */
import { open, readFile, rename } from 'node:fs/promises'

/** @typedef {import('./types.js').Store} Store */

/** @param {string} text */
function* batches(text) {
  for (const line of text.split('\n')) {
    try {
      if (line) yield JSON.parse(line)
    } catch {
      return // the last line, of a program that was ended while it wrote
    }
  }
}

/** One program at a time may have the file open. @param {string} path @returns {Promise<Store>} */
export async function fileStore(path) {
  const tables = /** @type {Record<string, Map<string, any>>} */ ({ copies: new Map(), collections: new Map(), outbox: new Map() })
  const keep = (/** @type {any} */ batch) => {
    for (const [table, rows] of Object.entries(tables)) {
      for (const [key, value] of batch[table] ?? []) value ? rows.set(key, value) : rows.delete(key)
    }
  }
  const text = await readFile(path, 'utf8').catch(error => { if (error.code === 'ENOENT') return ''; throw error })
  for (const batch of batches(text)) keep(batch)

  const whole = JSON.stringify(Object.fromEntries(Object.entries(tables).map(([table, rows]) => [table, [...rows]])))
  const fresh = await open(`${path}.new`, 'w')
  await fresh.writeFile(whole + '\n')
  await fresh.sync()
  await fresh.close()
  await rename(`${path}.new`, path)
  const file = await open(path, 'a')
  let { size } = await file.stat()
  let isTorn = false // behind `size` there may be a part of a batch: what follows it would not be read
  return {
    isShared: false,
    isLasting: true,
    async load() {
      return { copies: [...tables.copies.values()], collections: [...tables.collections.values()], outbox: [...tables.outbox.values()] }
    },
    async commit(batch) {
      if (isTorn) await file.truncate(size)
      isTorn = true
      const bytes = Buffer.from(JSON.stringify(batch) + '\n')
      await file.appendFile(bytes)
      await file.datasync()
      isTorn = false
      size += bytes.length
      keep(batch)
    },
    async close() { await file.close() }
  }
}

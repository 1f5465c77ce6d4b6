/* copy.js: a client's copy of a document, brought up to date by an element of `syncs`.  Pure. */

/** @typedef {import('./types.js').Copy} Copy @typedef {import('./types.js').Item} Item @typedef {import('./types.js').SyncAnswer} SyncAnswer */

/** @param {string} c @param {string} id */
export const keyOf = (c, id) => `${c}/${id}`

/** The name of an item in a copy, and in `clkeys`. @param {{c: string, k?: string}} item */
export const nameOf = item => item.k === undefined ? item.c : `${item.c}.${item.k}`

/** A document that does not exist. @param {string} c @param {string} id @returns {Copy} */
export const absent = (c, id) => ({ c, id, v: 0, ct: 0, dt: 0, items: {} })

/** @param {Item[]} items */
const byName = items => Object.fromEntries(items.map(item => [nameOf(item), item]))

/** What is sent in `syncs` for this copy. @param {Copy} copy */
export function headerOf({ c, id, v, ct, dt, w }) {
  return v === 0 ? { c, id } : w === undefined ? { c, id, v, ct, dt } : { c, id, v, ct, dt, w }
}

/** A copy of a whole document, as `get` and `collection` return it. @param {Copy & {items: Item[]}} document @returns {Copy} */
export function wholeCopy(document) {
  return copyWith(document, byName(document.items))
}

/** @param {{c: string, id: string, v: number, ct: number, dt: number, w?: string}} header @param {Record<string, Item>} items
 * @returns {Copy} */
function copyWith({ c, id, v, ct, dt, w }, items) {
  return w === undefined ? { c, id, v, ct, dt, items } : { c, id, v, ct, dt, w, items }
}

/** The copy after the answer; undefined: the answer had no room, send the same header again.
 * @param {Copy} copy @param {SyncAnswer} answer @returns {Copy | undefined} */
export function applySync(copy, answer) {
  if (answer.later) return undefined
  if (answer.closed || answer.v === 0) return absent(copy.c, copy.id)
  const changed = byName(answer.items ?? [])
  if (answer.ct !== copy.ct) return copyWith(answer, changed)
  let kept = copy.items
  if (answer.clkeys) {
    const names = new Set(answer.clkeys)
    kept = Object.fromEntries(Object.entries(kept).filter(([name]) => names.has(name)))
  }
  const items = { ...kept, ...changed }
  for (const tombstone of answer.dels ?? []) {
    if (!(nameOf(tombstone) in changed)) delete items[nameOf(tombstone)]
  }
  return copyWith(answer, items)
}

/** Should a document of a collection's answer replace the copy?  'ask': it is older, or seen otherwise; only `syncs` can tell.
 * @param {Copy | undefined} copy @param {Copy} document @returns {'take' | 'keep' | 'ask'} */
export function compare(copy, document) {
  if (!copy || document.v > copy.v) return 'take'
  return document.v === copy.v && document.ct === copy.ct && document.w === copy.w ? 'keep' : 'ask'
}

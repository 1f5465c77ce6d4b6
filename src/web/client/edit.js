/* edit.js: local changes of documents: written down, shown over a copy, brought onto a newer copy.  Pure. */
import { Fault } from './fault.js'
import { nameOf } from './copy.js'

/** @typedef {import('./types.js').Copy} Copy @typedef {import('./types.js').Edit} Edit @typedef {import('./types.js').Entry} Entry
 * @typedef {import('./types.js').Item} Item @typedef {import('./types.js').ItemEdit} ItemEdit @typedef {import('./types.js').Conflict} Conflict */
/** @typedef {{ct: number | string, v: number, items: Record<string, any>, pending: boolean}} Shown */

/** The content of an item; null: there is none. @param {any} item */
export function contentOf(item) {
  if (!item || item.del) return null
  return item.s === undefined ? item.j : item.s
}

/** @param {any} one @param {any} other @returns {boolean} */
export function isEqual(one, other) {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other || Array.isArray(one) !== Array.isArray(other)) return false
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every(name => Object.hasOwn(other, name) && isEqual(one[name], other[name]))
}

/** The document as the edits of these entries, in their order, leave it.
 * @param {Copy | undefined} copy @param {{entry: Entry, edit: Edit}[]} waiting @returns {Shown} */
export function show(copy, waiting) {
  /** @type {Shown} */
  const shown = { ct: copy?.ct ?? 0, v: copy?.v ?? 0, items: copy?.items ?? {}, pending: waiting.length > 0 }
  for (const { entry, edit } of waiting) {
    const lives = !edit.delete || Object.keys(edit.items).length > 0
    if (edit.delete) shown.items = {}
    if (!lives) shown.ct = 0
    else if (edit.delete || shown.ct === 0) shown.ct = entry.id
    shown.items = { ...shown.items }
    for (const [name, item] of Object.entries(edit.items)) {
      if (item.del) delete shown.items[name]
      else shown.items[name] = item
    }
  }
  return shown
}

/** Collects the changes of one operation. */
export class Draft {
  /** @param {(c: string, id: string) => {copy: Copy | undefined, shown: Shown}} look */
  constructor(look) {
    this.look = look
    /** @type {Map<string, Edit>} */
    this.edits = new Map()
  }

  /** @param {string} c @param {string} id @returns {Edit} */
  edit(c, id) {
    const key = `${c}/${id}`
    let edit = this.edits.get(key)
    if (!edit) {
      const { copy, shown } = this.look(c, id)
      edit = { c, id, items: {}, base: { v: copy?.v ?? 0, ct: shown.ct }, was: {} }
      this.edits.set(key, edit)
    }
    return edit
  }

  /** The changes of a document: `draft.doc('List', 'mine').set('Entry', '1', {…})`. @param {string} c @param {string} id */
  doc(c, id) {
    const edit = this.edit(c, id)
    const put = (/** @type {ItemEdit} */ item) => {
      const name = nameOf(item)
      edit.was[name] ??= { v: edit.base.v, item: contentOf(this.look(c, id).shown.items[name]) }
      edit.items[name] = item
      return changes
    }
    const changes = {
      /** Sets an item, `set(class, key, value)`, or a singleton, `set(class, value)`; null removes it.
       * @param {string} item @param {...any} rest */
      set(item, ...rest) {
        const value = rest.at(-1)
        if (value === undefined) throw new TypeError('A value is expected; null removes the item.')
        const named = rest.length > 1 ? { c: item, k: String(rest[0]) } : { c: item }
        return put(value === null ? { ...named, del: true } : { ...named, j: JSON.parse(JSON.stringify(value)) })
      },
      /** @param {string} item @param {string} [k] */
      remove(item, k) {
        return put(k === undefined ? { c: item, del: true } : { c: item, k, del: true })
      },
      /** Deletes the document; items that are set afterwards begin a new one. */
      delete() {
        edit.delete = true
        edit.items = {}
        return changes
      }
    }
    return changes
  }
}

/** The edit as an element of `docs` in the argument of `put`. @param {Edit} edit @param {number} version */
export function putOf(edit, version) {
  return { c: edit.c, id: edit.id, if: version, ...(edit.delete && version ? { delete: true } : {}), items: Object.values(edit.items) }
}

/** Does the copy have what the edit wants? @param {Edit} edit @param {Copy} copy */
export function isDone(edit, copy) {
  const items = Object.entries(edit.items)
  if (edit.delete && !items.length) return copy.v === 0
  return items.every(([name, item]) => isEqual(contentOf(item), contentOf(copy.items[name])))
}

/** The edit as it is to be sent now that the document is as in `copy`; the hook decides where both sides have changed the same.
 * @param {Edit} edit @param {Copy} copy @param {((conflict: Conflict) => unknown) | undefined} hook @returns {Promise<Edit | null>} */
export async function rebase(edit, copy, hook) {
  const { c, id } = edit
  const base = { v: copy.v, ct: copy.ct }
  const isDeletion = edit.delete && !Object.keys(edit.items).length
  if (isDeletion && copy.v === 0) return null
  const isGone = !edit.delete && edit.base.ct !== 0 && copy.v === 0
  if (isGone || (edit.delete && copy.v > edit.base.v)) {
    const theirs = isGone ? null : Object.values(copy.items).map(item => ({ c: item.c, k: item.k, j: contentOf(item) }))
    const mine = isDeletion ? null : Object.values(edit.items)
    const choice = hook ? await hook({ c, id, base: null, mine, theirs }) : isGone ? undefined : mine
    if (choice === undefined && !isGone) return null
    if (choice === undefined) {
      throw new Fault({ code: 'DELETED', message: `The document ${c}/${id} was deleted before this change arrived.` })
    }
  }
  /** @type {Edit} */
  const next = { ...edit, base, items: {}, was: {} }
  for (const [name, item] of Object.entries(edit.items)) {
    const held = copy.items[name]
    const was = edit.was[name]
    const [mine, theirs] = [contentOf(item), contentOf(held)]
    next.was[name] = { v: copy.v, item: theirs }
    const isChanged = !edit.delete && (held ? held.v > was.v : was.item !== null)
    if (!isChanged || !hook) {
      next.items[name] = item
      continue
    }
    const value = await hook({ c, id, item: item.c, key: item.k, base: was.item, mine, theirs })
    const named = item.k === undefined ? { c: item.c } : { c: item.c, k: item.k }
    if (value === null) next.items[name] = { ...named, del: true }
    else if (value !== undefined) next.items[name] = { ...named, j: value }
  }
  return next.delete || Object.keys(next.items).length || !Object.keys(edit.items).length ? next : null
}

/** A later edit of the document, after `done` was done at `version` and the copy was brought up to date.
 * @param {Edit} later @param {string} doneId @param {Edit} done @param {number} version @param {Copy} copy @returns {Edit} */
export function follow(later, doneId, done, version, copy) {
  const was = { ...later.was }
  for (const [name, item] of Object.entries(done.items)) {
    // what was merged before it was done is another value than this edit was based on: a conflict, which the hook sees
    if (was[name] && isEqual(was[name].item, contentOf(item))) was[name] = { ...was[name], v: Math.max(version, was[name].v) }
  }
  let base = later.base
  if (base.ct === doneId) base = { v: version, ct: copy.ct > version ? version : copy.ct }
  return { ...later, was, base }
}

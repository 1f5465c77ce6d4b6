/* snapshot.js: a document as an application sees it: the copy with the changes that wait.  It never changes. */
import { contentOf } from './edit.js'

export class Snapshot {
  /** @param {string} c @param {string} id @param {import('./edit.js').Shown} shown @param {boolean} isKnown */
  constructor(c, id, shown, isKnown) {
    this.c = c
    this.id = id
    /** Is anything known of the document: was it read from the server, ever, or written here? */
    this.known = isKnown
    this.exists = shown.ct !== 0
    /** The version of the copy; 0: there is none. */
    this.version = shown.v
    /** Are there changes that the server has not confirmed? */
    this.pending = shown.pending
    this.contents = shown.items
    Object.freeze(this)
  }

  /** The content of an item, `item('Line', '1')`, or of a singleton, `item('Title')`; undefined: there is none.
   * @param {string} c @param {string} [k] @returns {any} */
  item(c, k) {
    return contentOf(this.contents[k === undefined ? c : `${c}.${k}`]) ?? undefined
  }

  /** The items of a class as pairs of key and content, in the order of their keys. @param {string} c @returns {[string, any][]} */
  items(c) {
    return Object.values(this.contents).filter(item => item.c === c && item.k !== undefined)
      .map(item => /** @type {[string, any]} */ ([item.k, contentOf(item)]))
      .sort(([one], [other]) => one < other ? -1 : one > other ? 1 : 0)
  }
}

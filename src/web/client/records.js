/* records.js: what is read whole: records, by key, prefix or range, and searches: each is read again after an event of its definition. */
import { Fault } from './fault.js'
import { partsOf } from './sync.js'

/** @typedef {import('./types.js').Records} Records @typedef {import('./types.js').RecordsRange} RecordsRange */

/** Records of one store, and of one request. */
const MOST = 1000

/** @type {Records} */
const UNKNOWN = { known: false, fault: null, records: [], more: false }

/** A search is read again so many milliseconds after a change of what it follows, whatever else changes meanwhile; by so many later at most. */
const PAUSE_MS = 100, SPREAD_MS = 10_000

/** The pause of a search where the last reading took so long: up to ten times that and another 100 ms more, at random.  Many clients that
 * follow the same change do not search at the same moment, and the slower the server answers them the further apart they are.
 * @param {number} lastMs @param {number} [random] below 1 */
export const pauseOf = (lastMs, random = Math.random()) => PAUSE_MS + random * Math.min(SPREAD_MS, PAUSE_MS + 10 * lastMs)

/** @type {any} */
const UNREAD = { known: false, fault: null }

/** Is it a definition of records?  @param {string} key */
export const isOfRecords = key => /^records?:/.test(key)

/** Is it a search?  @param {string} key */
const isOfSearch = key => key.startsWith('find:')

/** All other keys are of documents and collections.  @param {string} key */
export const isRead = key => isOfRecords(key) || isOfSearch(key)

/** The key of a search.  `by`: what is followed for it, with blanks between; empty: its class.
 * @param {string} c @param {string} i @param {import('./types.js').Search} search @param {string} [by] has no brace */
export const keyOfSearch = (c, i, search, by = '') => `find:${by}${JSON.stringify({ c, i, want: 'items', ...search })}`

/** The search of such a key, as JSON.  @param {string} key */
export const searchOf = key => key.slice(key.indexOf('{'))

/** As live events name it: a document, a collection, whose key begins with `@`, records, or a search, or what is followed in its place.
 * @param {string} key @param {boolean} [isPlain] searches are not followed themselves @returns {string[]} */
export function definitionsOf(key, isPlain) {
  if (isOfRecords(key) || (!isPlain && isOfSearch(key))) return [key]
  if (isOfSearch(key)) return (key.slice(5, key.indexOf('{')) || JSON.parse(searchOf(key)).c).split(' ')
  if (key[0] === '@') return [key.slice(1)]
  const [c, id] = partsOf(key)
  return [`${c}/${encodeURIComponent(id)}`]
}

/** As live events name them.  @param {RecordsRange} range */
export function definitionOfRecords(range) {
  const { key, prefix, from = '', to = '' } = range
  if (key !== undefined) return `record:${encodeURIComponent(key)}`
  if (prefix !== undefined || !(from || to)) return `records:${encodeURIComponent(prefix ?? '')}`
  return `records:${encodeURIComponent(from)}/${encodeURIComponent(to)}`
}

/** The command of the operation `record` that reads them.  @param {string} definition */
function commandOf(definition) {
  const text = definition.slice(definition.indexOf(':') + 1)
  if (definition.startsWith('record:')) return { do: 'get', key: decodeURIComponent(text) }
  const [first, to] = text.split('/').map(decodeURIComponent)
  const name = to === undefined ? 'prefix' : 'from'
  return { do: 'get', limit: MOST, ...(first ? { [name]: first } : {}), ...(to ? { to } : {}) }
}

/** Of the followed records: what is due, and what was read.  The copies of documents, which last, have nothing to do with them. */
export class Recorder {
  /** @param {import('./transport.js').Transport} transport @param {(definition: string, value: Records) => void} changed */
  constructor(transport, changed) {
    this.transport = transport
    this.changed = changed
    /** @type {Set<string>} */ this.due = new Set()
    /** @type {Map<string, Records>} */ this.values = new Map()
    /** Searches that will be due. @type {Set<string>} */ this.later = new Set()
    /** Milliseconds that the last reading took. */ this.took = 0
    /** Definitions that live events have refused. @type {Map<string, Fault>} */ this.dropped = new Map()
  }

  get isDue() {
    return this.due.size > 0
  }

  /** The same object until they change. @param {string} definition */
  get(definition) {
    return this.values.get(definition) ?? (isOfSearch(definition) ? UNREAD : UNKNOWN)
  }

  /** @param {string} definition @param {Records} value */
  set(definition, value) {
    this.values.set(definition, value)
    this.changed(definition, value)
  }

  /** A search is due in a moment, others at once.  @param {string} definition @param {() => void} wake */
  note(definition, wake) {
    if (!isOfSearch(definition) || !this.values.has(definition)) {
      this.due.add(definition)
      return
    }
    if (this.later.has(definition)) return
    this.later.add(definition)
    setTimeout(() => {
      if (!this.later.delete(definition)) return
      this.due.add(definition)
      wake()
    }, pauseOf(this.took))
  }

  /** Forgets what nobody follows any more. @param {Set<string>} followed */
  keep(followed) {
    for (const map of [this.due, this.later, this.values, this.dropped]) {
      for (const definition of [...map.keys()]) if (!followed.has(definition)) map.delete(definition)
    }
  }

  /** Reads one; what fails stays due, unless it is refused. */
  async step() {
    const [definition] = this.due
    this.due.delete(definition)
    const began = Date.now()
    try {
      const read = isOfSearch(definition) ? await this.find(searchOf(definition)) : await this.read(commandOf(definition))
      this.took = Date.now() - began
      this.set(definition, { known: true, fault: this.dropped.get(definition) ?? null, ...read })
    } catch (error) {
      const isRefused = error instanceof Fault && (error.kind === 'refused' || ['SCLOSED', 'ORECORDS', 'NFIELD'].includes(error.code))
      if (!isRefused) {
        this.due.add(definition)
        throw error
      }
      this.set(definition, { ...isOfSearch(definition) ? UNREAD : UNKNOWN, known: true, fault: error })
    }
  }

  /** @param {string} search as JSON @returns {Promise<any>} */
  async find(search) {
    return (await this.transport.read('find', `{"param":${search}}`)).out
  }

  /** @param {Record<string, unknown>} command */
  async read(command) {
    /** @type {Records['records']} */ const records = []
    for (;;) {
      const { out } = await this.transport.read('record', JSON.stringify({ param: { commands: [command] } }))
      const { state, records: page, after, ...one } = out.results[0]
      if (state === 'BUSY') throw new Fault({ code: state })
      if (page) records.push(...page)
      else if (state !== 'NOT_FOUND') records.push(state === 'OK' ? one : { ...one, state })
      if (after === undefined || records.length >= MOST) return { records, more: after !== undefined }
      command = { ...command, after, limit: MOST - records.length }
    }
  }

  /** Live events were refused because of records: from now on without these, since all else is to be followed.  False: it was not that.
   * @param {Fault} fault @param {string[]} definitions those that were sent */
  drop(fault, definitions) {
    const isOfAll = fault.code === 'ORECORDS' ||
      (fault.code === 'ALIMIT' && ['live_records', 'limit_definition_bytes'].includes(String(fault.args[0])))
    const refused = definitions.filter(one => isOfRecords(one) && (isOfAll || (fault.code === 'SCLOSED' && fault.args.includes(one))))
    for (const definition of refused) {
      this.dropped.set(definition, fault)
      this.set(definition, { ...this.get(definition), fault })
    }
    return refused.length > 0
  }
}

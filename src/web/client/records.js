/* records.js: records that are followed, by key, prefix or range: each is read again after an event of its definition. */
import { Fault } from './fault.js'

/** @typedef {import('./types.js').Records} Records @typedef {import('./types.js').RecordsRange} RecordsRange */

/** Records of one store, and of one request. */
const MOST = 1000

/** @type {Records} */
const UNKNOWN = { known: false, fault: null, records: [], more: false }

/** Is it a definition of records? All other keys are of documents and collections.  @param {string} key */
export const isOfRecords = key => /^records?:/.test(key)

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
    /** Definitions that live events have refused. @type {Map<string, Fault>} */ this.dropped = new Map()
  }

  get isDue() {
    return this.due.size > 0
  }

  /** The same object until they change. @param {string} definition */
  get(definition) {
    return this.values.get(definition) ?? UNKNOWN
  }

  /** @param {string} definition @param {Records} value */
  set(definition, value) {
    this.values.set(definition, value)
    this.changed(definition, value)
  }

  /** Forgets what nobody follows any more. @param {Set<string>} followed */
  keep(followed) {
    for (const map of [this.due, this.values, this.dropped]) {
      for (const definition of [...map.keys()]) if (!followed.has(definition)) map.delete(definition)
    }
  }

  /** Reads one; what fails stays due, unless it is refused. */
  async step() {
    const [definition] = this.due
    this.due.delete(definition)
    try {
      const { records, more } = await this.read(commandOf(definition))
      this.set(definition, { known: true, fault: this.dropped.get(definition) ?? null, records, more })
    } catch (error) {
      const isRefused = error instanceof Fault && (error.kind === 'refused' || ['SCLOSED', 'ORECORDS'].includes(error.code))
      if (!isRefused) {
        this.due.add(definition)
        throw error
      }
      this.set(definition, { known: true, fault: error, records: [], more: false })
    }
  }

  /** @param {Record<string, unknown>} command */
  async read(command) {
    /** @type {Records['records']} */ const records = []
    for (;;) {
      const { out } = await this.transport.read('record', JSON.stringify({ param: { commands: [command] } }))
      const { state, records: page, after, ...one } = out.results[0]
      if (state === 'BUSY') throw new Fault({ code: state, message: 'The records are busy.' })
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

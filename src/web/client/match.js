/* match.js: what `find` finds in documents that are given: fields, conditions, order, page, as the server has them.  Pure. */
import { Fault } from './fault.js'

/** @typedef {import('./types.js').Search} Search @typedef {import('./types.js').Schema} Schema
 * @typedef {{c: string, k?: string, v?: number, j?: any}} Held
 * @typedef {{id: string, v: number, ct: number, items: Record<string, Held>, shown: any}} Given `v`, `ct`: as conditions see them; `shown`: as
 *   an element of `docs`
 * @typedef {{name: string, type: string, isList: boolean, at: string[] | null}} Field `at`: the members that lead to it; null: that of its name
 * @typedef {{item: string, field: Field | null, header: '' | 'id' | 'v' | 'ct', test: string, values: any[], isNegated: boolean}} Condition
 *   `field` null: of the document; `item`: a class of items, one of which satisfies it; empty: the one that is found does
 * @typedef {{id: string, k?: string, v: number, j: any, order: any[], given: Given}} Row */

const DEPTH_MOST = 4, BRANCHES_MOST = 8, CONDITIONS_MOST = 7, LIST_MOST = 100, ORDERS_MOST = 4
const TEXT_BYTES_MOST = 1024, ELEMENTS_MOST = 1000, FOLDED_GROWTH = 11, MEMBERS_MOST = 32, PATH_MOST = 8
const LIMIT_STANDARD = 100, LIMIT_MOST = 1000, COUNT_MOST = 100_000
const TESTS = new Set(['eq', 'sw', 'lt', 'le', 'ge', 'gt', 'gele', 'gelt', 'gtle', 'gtlt', 'ne', 'in', 'nin', 'exists'])
const WHOLE = new Set(['eq', 'ne', 'in', 'nin'])

/** @param {string} at @param {string} detail */
const wrong = (at, detail) => new Fault({ code: 'AARG', message: `An argument is missing or is not of the expected kind. ${detail}`, args: [at], detail })

/** @param {string} what */
const unanswered = what => new Fault({ code: 'ACOPIES', message: `Only the server answers this: ${what}.`, args: [what] })

// --- values --------------------------------------------------------------------------------------

/** In the order of code points, which is that of the bytes of UTF-8: surrogates are above all other units.
 * @param {string} one @param {string} other */
export function compareTexts(one, other) {
  const most = Math.min(one.length, other.length)
  for (let i = 0; i < most; i++) {
    const [a, b] = [one.charCodeAt(i), other.charCodeAt(i)]
    if (a === b) continue
    const isSurrogate = [a, b].map(unit => unit >= 0xD800 && unit < 0xE000)
    return isSurrogate[0] === isSurrogate[1] ? a - b : isSurrogate[0] ? 1 : -1
  }
  return one.length - other.length
}

/** @param {any} one @param {any} other */
const compare = (one, other) => typeof one === 'string' ? compareTexts(one, other) : one < other ? -1 : one > other ? 1 : 0

const MARKS = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/g
/** @type {Record<string, string>} */
const LETTERS = { ß: 'ss', æ: 'ae', œ: 'oe', þ: 'th', ł: 'l', ø: 'o', đ: 'd', ð: 'd', ħ: 'h', ŧ: 't', ı: 'i', ς: 'σ', '\u{10FFFF}': '' }

/** As stampd.field_folded() of the database. @param {string} text */
export function fold(text) {
  return text.normalize('NFKD').replace(MARKS, '').toLowerCase().normalize('NFKC').replace(/[ßæœþłøđðħŧıς\u{10FFFF}]/gu, one => LETTERS[one])
}

/** @param {any} value @param {number} most */
const isInteger = (value, most) => Number.isInteger(value) && value < most && value >= -most

/** The value of a field of this type; undefined: it counts as absent. @type {Record<string, (value: any) => any>} */
const EXPORTS = {
  string: value => typeof value === 'string' ? value : undefined,
  folded: value => typeof value === 'string' ? fold(value) : undefined,
  long: value => isInteger(value, 2 ** 63) && value !== -(2 ** 63) ? value : undefined, // JavaScript writes that rounded, beyond the type
  int: value => isInteger(value, 2 ** 31) ? value : undefined,
  double: value => Number.isFinite(value) ? value : undefined,
  hash: value => typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value) ? String(value) : undefined
}

/** @param {any} value */
const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)

/** What the members lead to; for a list all of it, where a list on the way stands for its elements that are objects.
 * @param {string[]} at @param {any} content @param {boolean} isList */
function follow(at, content, isList) {
  let values = [content], hasList = false
  for (const name of at) {
    hasList ||= isList && values.some(Array.isArray)
    values = (isList ? values.flatMap(one => one) : values).filter(one => isObject(one) && Object.hasOwn(one, name)).map(one => one[name])
  }
  if (!isList) return values[0]
  return hasList || values.some(Array.isArray) ? values.flatMap(one => one) : undefined
}

/** @param {Field} field @param {any} content */
function valueOf({ name, type, isList, at }, content) {
  if (!isObject(content)) return undefined
  const list = follow(at ?? [name], content, isList && at !== null)
  if (!isList) return list === undefined ? undefined : EXPORTS[type](list)
  return Array.isArray(list) && list.length <= ELEMENTS_MOST ? list.map(EXPORTS[type]).filter(one => one !== undefined) : undefined
}

// --- conditions ----------------------------------------------------------------------------------

/** Does a value that is there satisfy the test? @param {string} test @param {any[]} values @param {any} value */
function satisfies(test, values, value) {
  if (WHOLE.has(test)) return values.some(one => compare(value, one) === 0) === (test === 'eq' || test === 'in')
  if (test === 'sw') return value.startsWith(values[0])
  const low = compare(value, values[0]), high = compare(value, values.at(-1))
  const isOver = test.startsWith('gt') ? low > 0 : low >= 0
  const isUnder = test.endsWith('lt') ? high < 0 : high <= 0
  return (isOver || test === 'lt' || test === 'le') && (isUnder || test === 'gt' || test === 'ge')
}

/** @param {Condition} condition @param {Given} given @param {any} content @returns {boolean} */
function isTrue({ item, ...condition }, given, content) {
  if (item) return Object.values(given.items).some(one => one.c === item && isTrue({ item: '', ...condition }, given, one.j))
  const { field, header, test, values } = condition
  const value = field ? valueOf(field, content) : /** @type {any} */ (given)[header]
  if (test === 'exists') return (value !== undefined) === values[0]
  if (value === undefined) return false
  if (!field?.isList) return satisfies(test, values, value)
  const ofElements = (/** @type {any} */ one) => satisfies(test, values, one)
  return test === 'ne' || test === 'nin' ? value.every(ofElements) : value.some(ofElements)
}

/** A value of a condition, as it is compared. @param {string} type @param {string} test @param {boolean} isOfField @param {any} value
 * @param {string} at */
function readValue(type, test, isOfField, value, at) {
  const isText = type === 'string' || type === 'folded'
  const read = isText || type === 'hash' || value !== undefined ? EXPORTS[type](value) : undefined
  if (read === undefined) throw wrong(at, `A value of the type ${type} is expected.`)
  const grown = [.../** @type {string} */ (isText ? value : '')].reduce((sum, one) => sum + (one < '\x80' ? 1 : new TextEncoder().encode(one).length * (type === 'folded' ? FOLDED_GROWTH : 1)), 0)
  if (isText && grown > TEXT_BYTES_MOST && !(isOfField && WHOLE.has(test))) throw wrong(at, 'A string of up to 1,024 bytes is expected.')
  return read
}

/** @param {any} element @param {string[]} members @param {string} at */
function checkMembers(element, members, at) {
  if (typeof element !== 'object' || !element || Array.isArray(element)) throw wrong(at, 'An object is expected.')
  const other = Object.keys(element).find(name => !members.includes(name))
  if (other !== undefined) throw wrong(other, 'It has no such member.')
}

/** @param {any} element @param {Field | null} field @param {Condition['header']} header @param {boolean} isNegated @returns {Condition} */
function readCondition(element, field, header, isNegated) {
  const item = element.i ?? '', part = { item, field, header, test: element.t, isNegated }
  const type = field?.type ?? (header === 'id' ? 'string' : 'long'), test = element.t
  if (type === 'text' || test === 'match' || test === 'like') throw unanswered(type === 'text' ? 'match' : test)
  if (!TESTS.has(test)) throw wrong('t', 'The name of a test is expected.')
  if (type === 'hash' && !WHOLE.has(test) && test !== 'exists') throw wrong('t', 'One of eq, ne, in, nin, exists is expected: a hash has no order.')
  if (test === 'sw' && type !== 'string' && type !== 'folded') throw wrong('t', 'Only strings can start with something.')
  const value = (/** @type {any} */ one, /** @type {string} */ at) => readValue(type, test, field !== null, one, at)
  const hasTwo = /^g[et]l[et]$/.test(test)
  if (!hasTwo && element.v2 !== undefined) throw wrong('v2', 'This test has one value, v1.')
  if (test === 'exists') {
    if (!field || typeof element.v1 !== 'boolean') throw wrong('v1', 'True or false is expected, of a field.')
    return item && !element.v1 ? { ...part, values: [true], isNegated: !isNegated } : { ...part, values: [element.v1] } // no item has it
  }
  if (test === 'in' || test === 'nin') {
    const list = element.v1
    if (!Array.isArray(list) || !list.length || list.length > LIST_MOST) throw wrong('v1', 'A list of 1 to 100 values is expected.')
    return { ...part, values: list.map(one => value(one, 'v1')) }
  }
  const values = hasTwo ? [value(element.v1, 'v1'), value(element.v2, 'v2')] : [value(element.v1, 'v1')]
  if (hasTwo && type !== 'folded' && compare(values[0], values[1]) > 0) throw wrong('v2', 'A value that is not below v1 is expected.')
  return { ...part, values }
}

/** Alternatives of conditions that hold together, of elements that all hold, or one of which does.
 * @param {any[]} list @param {(name: string, item?: any) => Field} fieldOf @param {boolean} areAll @param {boolean} isNegated @param {number} depth
 * @returns {Condition[][]} */
function readGroup(list, fieldOf, areAll, isNegated, depth) {
  let all = areAll ? [/** @type {Condition[]} */ ([])] : []
  for (const one of list) {
    const part = readElement(one, fieldOf, isNegated, depth)
    all = areAll ? all.flatMap(left => part.map(right => [...left, ...right])) : [...all, ...part]
    if (all.length > BRANCHES_MOST || all.some(branch => branch.length > CONDITIONS_MOST)) {
      throw wrong('where', 'At most 7 conditions are expected, in each of up to 8 alternatives that these multiply out to.')
    }
  }
  return all
}

/** @param {any} element @param {(name: string, item?: any) => Field} fieldOf @param {boolean} isNegated @param {number} depth @returns {Condition[][]} */
function readElement(element, fieldOf, isNegated, depth) {
  const group = ['or', 'and', 'not'].find(name => typeof element === 'object' && element && Object.hasOwn(element, name))
  if (!group) {
    checkMembers(element, ['i', 'f', 't', 'v1', 'v2'], 'where')
    return [[readCondition(element, fieldOf(element.f, element.i), '', isNegated)]]
  }
  checkMembers(element, [group], 'where')
  if (depth === DEPTH_MOST) throw wrong('where', 'Groups nested up to 4 deep are expected.')
  if (group === 'not') return readElement(element.not, fieldOf, !isNegated, depth + 1)
  const list = element[group]
  if (!Array.isArray(list) || !list.length) throw wrong(group, 'A list of conditions is expected.')
  return readGroup(list, fieldOf, (group === 'and') !== isNegated, isNegated, depth + 1)
}

// --- the search ----------------------------------------------------------------------------------

/** @param {Search} search @param {(name: string, item?: any) => Field} fieldOf @returns {Condition[][]} */
function readBranches(search, fieldOf) {
  if (search.where !== undefined && !Array.isArray(search.where)) throw wrong('where', 'An array is expected.')
  const branches = readGroup(search.where ?? [], fieldOf, true, false, 0)
  for (const header of /** @type {const} */ (['id', 'v', 'ct'])) {
    const element = search[header]
    if (element === undefined) continue
    checkMembers(element, ['t', 'v1', 'v2'], header)
    for (const branch of branches) branch.push(readCondition(element, null, header, false))
  }
  return branches
}

/** A field that the only alternative fixes orders nothing.
 * @param {Search} search @param {(name: string, item?: any) => Field} fieldOf @param {Condition[][]} branches */
function readOrder({ order }, fieldOf, branches) {
  const names = typeof order === 'string' ? [order] : order ?? []
  if (!Array.isArray(names) || (order !== undefined && !names.length) || names.length > ORDERS_MOST) throw wrong('order', 'A field, or a list of 1 to 4, is expected.')
  /** @type {{field: Field, isDescending: boolean}[]} */ const orders = []
  for (const name of names) {
    if (typeof name !== 'string' || !name) throw wrong('order', 'The name of a field is expected, with a - before it if it descends.')
    const field = fieldOf(name.slice(Number(name[0] === '-')))
    if (field.type === 'text') throw unanswered('the rank of words')
    if (field.isList || field.type === 'hash') throw wrong('order', 'A list and a hash have no order.')
    if (orders.some(one => one.field === field)) throw wrong('order', 'Each field is named once.')
    const isFixed = branches.length === 1 && branches[0].some(one => one.field === field && !one.item && one.test === 'eq' && !one.isNegated)
    if (!isFixed) orders.push({ field, isDescending: name[0] === '-' })
  }
  return orders
}

/** @param {any} limit @param {number} most @param {number} standard */
function readLimit(limit, most, standard) {
  if (limit === undefined) return standard
  if (!isInteger(limit, most + 1) || limit < 1) throw wrong('limit', `An integer from 1 to ${most} is expected.`)
  return limit
}

/** @param {any} want @param {boolean} isSingleton @param {any} order */
function checkWanted(want, isSingleton, order) {
  if (typeof want === 'object' && want && !Array.isArray(want)) throw unanswered('totals')
  const isList = Array.isArray(want)
  const isPath = (/** @type {any[]} */ names) => names[0] !== undefined && names.length <= PATH_MOST && names.every(one => typeof one === 'string')
  if (isList ? !want.length || want.length > MEMBERS_MOST || !want.every(one => isPath([one].flat())) : !['ids', 'items', 'docs', 'count'].includes(want)) {
    throw wrong('want', '"ids", "items", "docs", "count", or a list of 1 to 32 names of members is expected.')
  }
  if (order === undefined) return
  if (want === 'count') throw wrong('order', 'A count has no order.')
  if (!isList && want !== 'items' && !isSingleton) throw wrong('order', 'Ids have an order if the item is a singleton; of others want items.')
}

/** @param {Row[]} rows @param {{isDescending: boolean}[]} orders */
function sort(rows, orders) {
  const last = orders.at(-1)?.isDescending ? -1 : 1
  return rows.sort((one, other) => {
    for (const [i, { isDescending }] of orders.entries()) {
      const difference = compare(one.order[i], other.order[i])
      if (difference) return isDescending ? -difference : difference
    }
    return last * (compareTexts(one.id, other.id) || compareTexts(one.k ?? '', other.k ?? ''))
  })
}

/** The members that these paths lead to, from object to object. @param {any} value @param {string[][]} paths @returns {Record<string, any>} */
function pick(value, paths) {
  return Object.fromEntries(Object.entries(typeof value === 'object' && !Array.isArray(value) && value || {}).flatMap(([name, one]) => {
    const within = paths.filter(path => path[0] === name).map(path => path.slice(1)), isWhole = within.some(path => !path.length)
    const part = isWhole ? one : within[0] ? pick(one, within) : {}
    return isWhole || Object.keys(part).length ? [[name, part]] : []
  }))
}

/** @param {Row} row @param {(string | string[])[] | undefined} members */
function itemOf({ id, k, v, j }, members) {
  const content = members ? pick(j, members.map(one => [one].flat())) : j
  return k === undefined ? { id, v, j: content } : { id, k, v, j: content }
}

/** @param {any} item as it is declared @returns {Map<string, Field>} */
function fieldsOf(item) {
  return new Map(Object.entries(item?.fields ?? {}).map(([name, type]) => {
    const at = Array.isArray(type?.at) && !type.collate ? type.at : null, word = at ? type.type : type
    const isText = typeof word !== 'string', isList = !isText && word.endsWith('[]')
    return [name, { name, type: isText ? 'text' : word.replace('[]', ''), isList, at }]
  }))
}

/** A search that is read once and then asked of documents; broken with the Fault that the server would answer, or with ACOPIES: only the
 * server answers it.  `schema`: as it is declared. */
export class Matcher {
  /** @param {Schema} schema @param {string} c @param {string} i @param {Search} search */
  constructor(schema, c, i, search) {
    const { want = 'items', ...rest } = /** @type {Search} */ (JSON.parse(JSON.stringify(search)))
    const declared = schema.classes?.[c], item = declared?.items?.[i], fields = fieldsOf(item)
    if (!item || !fields.size) throw new Fault({ code: 'NFIELD', args: [c, i] })
    const fieldOf = (/** @type {any} */ name, /** @type {any} */ other = undefined) => {
      if (other !== undefined && typeof other !== 'string') throw wrong('i', 'The name of a class of items is expected.')
      const all = other === undefined ? fields : fieldsOf(declared?.items?.[other]), field = all.get(name)
      if (!all.size) throw new Fault({ code: 'NFIELD', args: [c, other] })
      if (!field) throw typeof name === 'string' ? new Fault({ code: 'NFIELD', args: [c, other ?? i, name] }) : wrong('where', 'Objects with f, t, v1 and v2 are expected.')
      return field
    }
    checkMembers(rest, ['where', 'id', 'v', 'ct', 'order', 'limit'], 'param')
    checkWanted(want, item.singleton === true, rest.order)
    this.i = i
    this.want = want
    this.life = /** @type {string[]} */ (declared?.maxLife?.split('.') ?? [])
    this.limit = want === 'count' ? readLimit(rest.limit, COUNT_MOST, COUNT_MOST) : readLimit(rest.limit, LIMIT_MOST, LIMIT_STANDARD)
    this.branches = readBranches(rest, fieldOf)
    this.orders = readOrder(rest, fieldOf, this.branches)
  }

  /** @param {Given} given @param {number} minute */
  isExpired({ items }, minute) {
    const [item, member] = this.life
    const until = item === undefined ? undefined : items[item]?.j?.[member]
    return EXPORTS.long(until) !== undefined && until <= minute
  }

  /** The rows of a document. @param {Given} given @returns {Row[]} */
  rowsOf(given) {
    const rows = []
    for (const { c, k, v = 0, j } of Object.values(given.items)) {
      if (c !== this.i) continue
      const isFound = this.branches.some(branch => branch.every(one => isTrue(one, given, j) !== one.isNegated))
      const order = this.orders.map(({ field }) => valueOf(field, j))
      if (isFound && !order.includes(undefined)) rows.push({ id: given.id, k, v, j, order, given })
    }
    return rows
  }

  /** The answer of the server to this search, if it had these documents; a page with `more` has no cursor.
   * @param {Iterable<Given>} documents @param {number} [now] milliseconds since 1970 */
  find(documents, now = Date.now()) {
    const minute = Math.floor(now / 60_000), { want, limit } = this
    let rows = /** @type {Row[]} */ ([])
    for (const given of documents) if (!this.isExpired(given, minute)) rows.push(...this.rowsOf(given))
    const isOfItems = want === 'items' || Array.isArray(want)
    if (!isOfItems) rows = [...new Map(rows.map(row => [row.id, row])).values()]
    const more = rows.length > limit ? { more: true } : {}
    if (want === 'count') return { count: Math.min(rows.length, limit), ...more }
    const page = sort(rows, this.orders).slice(0, limit)
    if (isOfItems) return { items: page.map(row => itemOf(row, Array.isArray(want) ? want : undefined)), ...more }
    return want === 'ids' ? { ids: page.map(row => row.id), ...more } : { docs: page.map(row => row.given.shown), ...more }
  }
}


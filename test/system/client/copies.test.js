/* copies.test.js: searches that the copies answer, compared with the server's answers over documents, searches and changes drawn at random. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { changesBetween, compareTexts, finder, fold, Matcher } from '../../../src/web/client/find.js'
import { definitionsOf } from '../../../src/web/client/records.js'
import { drawing } from './drawing.js'
import { fresh, network, op, opened, put, skip, until } from './server.js'

const schema = JSON.parse(process.env.STAMPD_SCHEMA ?? '{"classes":{}}')
const headers = { Authorization: `Bearer ${process.env.STAMPD_KEY}` } // any order, without an index
const SEEDS = [1, 2, 3, 5, 8, 13]
const DOCUMENTS = 24, ROUNDS = 3, SEARCHES = 60

// --- what is drawn -------------------------------------------------------------------------------

const LETTERS = ['a', 'A', 'b', 'z', 'Z', '0', ' ', 'ä', 'a\u0308', 'É', 'e', 'ß', 'ss', 'ﬁ', 'fi', 'Ł', 'l', 'İ', 'ı', 'Σ', 'ς', 'Æ', '\uFF5E', '\uD7FF', '\u{1F600}', '\u{10FFFF}', '%', '"']
const LONG = ['x'.repeat(1024), 'x'.repeat(1025), `${'x'.repeat(1023)}ä`, `${'x'.repeat(1024)}y`, 'Ä'.repeat(700)]
const INTEGERS = [0, 1, 2, 3, -1, -3, 2147483647, -2147483648, 2147483648, 9007199254740991, 1152921504606846976]
const NUMBERS = [...INTEGERS, 0.5, -0.5, 1.5, 1e300, -1e-300, 1e21]
const KEYS = ['a', 'B', 'é', '\uFF5E', '\u{1F600}']
const TYPES = { s: 'string', w: 'string', f: 'folded', l: 'long', i: 'int', d: 'double', h: 'hash', ss: 'string', ff: 'folded', ll: 'long', ii: 'int', dd: 'double', hh: 'hash', p: 'long', pp: 'string' }
const TESTS = ['eq', 'eq', 'ne', 'in', 'nin', 'exists', 'sw', 'lt', 'le', 'ge', 'gt', 'gele', 'gelt', 'gtle', 'gtlt']

const text = (draw, isLong = false) => isLong && draw.is(0.3) ? draw.one(LONG) : draw.some(3, () => draw.one(LETTERS)).join('')
const scalar = (draw, name) => {
  const type = draw.is(0.1) ? draw.one(Object.values(TYPES)) : TYPES[name]
  if (type === 'hash') return draw.one([text(draw), draw.one(NUMBERS), true, false])
  return type === 'string' || type === 'folded' ? text(draw, name === 'w') : draw.one(type === 'double' ? NUMBERS : INTEGERS)
}
const value = (draw, name) => name.length === 1 || draw.is(0.05) ? scalar(draw, name) : draw.some(3, () => draw.is(0.1) ? null : scalar(draw, name))
const cells = draw => draw.is(0.1) ? draw.one([null, 'a', { text: 'a' }, { text: ['b', 'z'] }]) : draw.some(2, () => draw.is(0.1) ? 'a' : { text: value(draw, draw.one(['s', 's', 'ss'])) })
const row = draw => draw.is(0.1) ? draw.one([null, 'a', ['a'], [{ cells: [] }]]) : { cells: cells(draw) }
const within = draw => ({ deep: draw.is(0.1) ? draw.one([null, 1, [{ 'a.b': 1 }]]) : { 'a.b': value(draw, 'p') }, rows: draw.is(0.1) ? row(draw) : draw.some(2, () => row(draw)) })
const content = draw => draw.is(0.03) ? draw.one([null, 'text', [1], 7])
  : { ...Object.fromEntries(Object.keys(TYPES).filter(() => draw.is(0.8)).map(name => [name, draw.is(0.04) ? null : value(draw, name)])), ...draw.is(0.8) ? within(draw) : {} }

function document(draw, id) {
  const keys = KEYS.filter(() => draw.is(0.5))
  return { c: 'Rand', id, delete: true, items: [...draw.is(0.9) ? [{ c: 'Main', j: content(draw) }] : [{ c: 'Other', j: 1 }], ...keys.map(k => ({ c: 'Row', k, j: content(draw) }))] }
}

function leaf(draw) {
  const f = draw.one(Object.keys(TYPES)), t = draw.one(TESTS), other = draw.is(0.2) ? { i: draw.one(['Main', 'Row', 'Row']) } : {}
  if (t === 'exists') return { ...other, f, t, v1: draw.is(0.5) }
  if (t === 'in' || t === 'nin') return { ...other, f, t, v1: [scalar(draw, f), ...draw.some(2, () => scalar(draw, f))] }
  return { ...other, f, t, v1: scalar(draw, f), ...t.length === 4 ? { v2: scalar(draw, f) } : {} }
}

function condition(draw, depth) {
  const kind = depth < 3 && draw.is(0.3) ? draw.one(['or', 'and', 'not']) : ''
  return !kind ? leaf(draw) : { [kind]: kind === 'not' ? condition(draw, depth + 1) : [condition(draw, depth + 1), ...draw.some(2, () => condition(draw, depth + 1))] }
}

function search(draw, ids, versions) {
  const { one, is } = draw
  const header = (test, values) => ({ t: test, v1: one(values), ...test.length === 4 ? { v2: one(values) } : {} })
  const all = { where: draw.some(2, () => condition(draw, 0)), want: one(['ids', 'items', 'items', 'docs', 'count', ['s', 'l', 'none'], ['s', ['deep', 'a.b'], ['rows', 'cells']], [['deep'], ['deep', 'a.b'], ['none', 's']]]) }
  if (is(0.3)) all.id = header(one(['ge', 'lt', 'gele', 'sw']), ids)
  if (is(0.2)) all.v = header(one(['gt', 'le', 'gtle', 'eq', 'ne']), versions)
  if (is(0.1)) all.ct = header(one(['ge', 'lt']), versions)
  if (is(0.5)) all.limit = 1 + draw.below(8)
  if (is(0.5)) all.order = draw.some(2, () => one(['s', '-s', 'f', '-f', 'l', '-l', 'i', '-i', 'd', '-d', 'p', '-p', 'ss', 'h'])).concat('-l')
  return [one(['Main', 'Main', 'Row']), all]
}

// --- both answers --------------------------------------------------------------------------------

const outcome = async answer => {
  try {
    return await answer()
  } catch (fault) {
    if (fault.code === undefined) throw fault
    return { fault: fault.code }
  }
}
const asked = (i, param) => outcome(async () => {
  const { cursor, ...out } = await op('find', { c: 'Rand', i, ...param }, { headers })
  return { ...out, ...cursor === undefined ? {} : { more: true } }
})

/** In the order that matters: items of a document are in none. */
const ordered = answer => answer.docs ? { ...answer, docs: answer.docs.map(one => ({ ...one, items: [...one.items].sort((a, b) => a.c + (a.k ?? '') < b.c + (b.k ?? '') ? -1 : 1) })) } : answer
const sameHere = (session, i, param) => outcome(() => {
  const { known, here, fault, ...answer } = finder(session, schema)('Rand', i, param).here()
  if (fault) throw fault
  assert.ok(known && here)
  return answer
})

for (const seed of SEEDS) {
  test(`the server and the copies answer alike, seed ${seed}`, { skip }, async test => {
    const draw = drawing(seed), prefix = fresh('r')
    const ids = Array.from({ length: DOCUMENTS }, (_, i) => `${prefix}${LETTERS[i]}${i}`.replace('/', ''))
    const session = await opened(test, { live: false })
    for (const id of ids) test.after(session.doc('Rand', id).subscribe(() => {}))
    const faults = new Set(), versions = []
    let found = 0
    for (let round = 0; round < ROUNDS; round++) {
      for (const id of ids.filter(() => round === 0 || draw.is(0.4))) {
        const { v } = await put(draw.is(0.1) ? { c: 'Rand', id, delete: true } : document(draw, id))
        versions.push(v)
      }
      await session.sync()
      for (let n = 0; n < SEARCHES; n++) {
        const [i, param] = search(draw, ids, versions)
        if (!param.id || param.id.t === 'lt') param.id = { t: 'sw', v1: prefix } // of this test
        const [theirs, mine] = [await asked(i, param), await sameHere(session, i, param)]
        assert.deepEqual(ordered(mine), ordered(theirs), JSON.stringify({ seed, round, n, i, param }))
        if (theirs.fault) faults.add(theirs.fault)
        else found += Object.values(theirs)[0].length ?? theirs.count
      }
    }
    assert.deepEqual([...faults], ['AARG'])
    assert.ok(found > SEARCHES, `${found} found`)
  })
}

test('texts are folded as by the database', { skip }, async () => {
  const texts = ['Straße', 'ŒUVRE', 'Þór', 'ﬀ Ⅷ ①', 'Ω\u0301ΣΑΣ', 'ǅ', 'İIıi', 'Ħŧđð', '가나', 'Ａｂｃ', '\u{1D400}', 'ﷺ', 'a\u{10FFFF}b', '\u0301', 'ẞ', 'Ǆ', 'K', 'ﬄ', '½']
  const prefix = fresh('fold')
  for (const [n, f] of texts.entries()) await put({ c: 'Rand', id: `${prefix}-${n}`, items: [{ c: 'Main', j: { f } }] })
  for (const one of texts) {
    const { items } = await op('find', { c: 'Rand', i: 'Main', want: 'items', id: { t: 'sw', v1: prefix }, where: [{ f: 'f', t: 'eq', v1: one }] }, { headers })
    assert.deepEqual(items.map(item => item.j.f).sort(), texts.filter(other => fold(other) === fold(one)).sort(), one)
  }
})

// --- without a server ----------------------------------------------------------------------------

const note = (id, j) => ({ id, v: 1, ct: 1, items: { Main: { c: 'Main', v: 1, j } }, shown: { id } })
const small = { classes: { Note: { maxLife: 'Main.until', items: { Main: { singleton: true, fields: { at: 'long', title: 'string', words: { text: ['body'] } } } } } } }

test('what only the server answers is refused', () => {
  const code = search => { try { return new Matcher(small, 'Note', 'Main', search).find([]) } catch (fault) { return `${fault.code} ${fault.kind} ${fault.args}` } }
  assert.equal(code({ where: [{ f: 'words', t: 'match', v1: 'bread' }] }), 'ACOPIES refused match')
  assert.equal(code({ where: [{ f: 'title', t: 'like', v1: 'bread' }], order: '~title' }), 'ACOPIES refused like')
  assert.equal(code({ order: '-words' }), 'ACOPIES refused the rank of words')
  assert.equal(code({ want: { sum: 'at' } }), 'ACOPIES refused totals')
  assert.equal(code({ where: [{ f: 'none', t: 'eq', v1: 1 }] }), 'NFIELD refused Note,Main,none')
  assert.equal(code({ cursor: 'x' }), 'AARG refused cursor')
})

test('documents that have expired are left out', () => {
  const matcher = new Matcher(small, 'Note', 'Main', { want: 'ids' })
  const documents = [note('a', { until: 10 }), note('b', { until: 11 }), note('c', { until: '1' }), note('d', {})]
  assert.deepEqual(matcher.find(documents, 10 * 60_000), { ids: ['b', 'c', 'd'] })
})

test('texts are in the order of code points', () => {
  assert.deepEqual(['\u{1F600}', '\uFF5E', 'a', '', 'ab', '\u{1F601}'].sort(compareTexts), ['', 'a', 'ab', '\uFF5E', '\u{1F600}', '\u{1F601}'])
})

// --- with and without a network ------------------------------------------------------------------

test('without a network the copies answer, with the changes that wait, and then the server again', { skip }, async test => {
  const room = fresh('room'), [a, b, c] = [fresh('a'), fresh('b'), fresh('c')], net = network()
  const session = await opened(test, { fetch: net.fetch })
  await put({ c: 'Post', id: a, items: [{ c: 'Main', j: { room, at: 1 } }] }, { c: 'Post', id: b, items: [{ c: 'Main', j: { room, at: 2 } }] })
  const store = finder(session, schema)('Post', 'Main', { where: [{ f: 'room', t: 'eq', v1: room }], order: '-at', want: 'ids' })
  const idsAre = (here, ...ids) => value => value.known && Boolean(value.here) === here && JSON.stringify(value.ids) === JSON.stringify(ids)
  test.after(session.doc('Post', a).subscribe(() => {})) // the only copy
  test.after(store.subscribe(() => {}))
  await until(session.doc('Post', a), one => one.exists)
  await until(store, idsAre(false, b, a))
  net.isOn = false
  session.live.renew() // the connection has broken
  await until(store, idsAre(true, a))
  assert.equal(store.get(), store.get(), 'the same object until it changes')
  session.write(draft => {
    draft.doc('Post', a).set('Main', { room, at: 5 })
    draft.doc('Post', c).set('Main', { room, at: 4 })
  })
  await until(store, idsAre(true, a, c))
  net.isOn = true
  await until(store, idsAre(false, a, c, b))
})

// --- what is followed, and what has changed ------------------------------------------------------

test('what has changed between two answers is named', () => {
  const answer = (...ids) => ({ items: ids.map(id => typeof id === 'string' ? { id, k: '1', v: 1, j: {} } : { id: id[0], k: '1', v: id[1], j: {} }) })
  const nothing = { entered: [], left: [], changed: [], moved: [] }
  assert.deepEqual(changesBetween(null, answer('a')), { ...nothing, entered: [['a', '1']] })
  assert.deepEqual(changesBetween(answer('a', 'b', 'c', 'd'), answer('d', 'a', ['b', 2], 'e')), { entered: [['e', '1']], left: [['c', '1']], changed: [['b', '1']], moved: [['d', '1']] })
  assert.deepEqual(changesBetween({ ids: ['a', 'b', 'c'] }, { ids: ['b', 'c', 'a'] }), { ...nothing, moved: [['a']] })
  assert.deepEqual(changesBetween({ count: 1 }, { count: 2 }), nothing)
})

const inRoom = room => [{ f: 'room', t: 'eq', v1: room }]
const ofPost = (id, room, at) => ({ c: 'Post', id, items: [{ c: 'Main', j: { room, at } }] })

test('a search for the value of a collection follows that, and names what enters, leaves, changes and moves', { skip }, async test => {
  const [room, other] = [`${fresh('room')} {1}`, fresh('room')], [a, b, c] = [fresh('a'), fresh('b'), fresh('c')]
  const session = await opened(test)
  const newest = finder(session, schema)('Post', 'Main', { where: inRoom(room), order: '-at' })
  const rows = new Map(), heard = []
  test.after(newest.subscribe((value, changes) => {
    if (value.here) return
    heard.push(changes)
    for (const [id] of changes.left) assert.ok(rows.delete(id))
    for (const [id] of [...changes.entered, ...changes.changed]) rows.set(id, value.items.find(item => item.id === id).j.at)
  }))
  const idsAre = (...ids) => until(newest, value => !value.here && value.known && JSON.stringify(value.items.map(item => item.id)) === JSON.stringify(ids))
  await until(session.status, status => status.live)
  assert.deepEqual(session.live.wanted(), [newest.answered.key])
  assert.deepEqual(definitionsOf(newest.answered.key, true), [`Post/byRoom@${encodeURIComponent(room)}`])
  await put(ofPost(a, room, 1), ofPost(b, room, 2))
  await idsAre(b, a)
  await put(ofPost(c, room, 3))
  await idsAre(c, b, a)
  await put(ofPost(a, room, 9))
  await idsAre(a, c, b)
  assert.deepEqual(heard.filter(one => one.moved.length), [{ entered: [], left: [], changed: [[a]], moved: [[a]] }])
  await put({ c: 'Post', id: c, delete: true })
  await idsAre(a, b)
  await put(ofPost(b, other, 2))
  await idsAre(a)
  assert.deepEqual([...rows], [[a, 9]])
})

test('an event of the class is none of a search that has its own', { skip }, async test => {
  const session = await opened(test, { live: false }), { recorder } = session
  const own = finder(session, schema)('Post', 'Main', { where: inRoom(fresh('room')) }), others = session.find('Post', 'Main', { limit: 1 })
  for (const store of [own, others]) test.after(store.subscribe(() => {}))
  for (const store of [own.answered, others]) await until(store, value => value.known)
  const [definition] = definitionsOf(own.answered.key, true), marked = () => [own.answered, others].map(({ key }) => recorder.later.has(key))
  recorder.later.clear() // by the beginning
  session.live.isPlain = true // as with a server that follows no searches
  session.live.defs = ['Post', definition]
  session.changed('Post', 1)
  assert.deepEqual(marked(), [false, true])
  session.changed(definition, 1)
  assert.deepEqual(marked(), [true, true])
  recorder.later.clear()
  session.live.defs = ['Post'] // where only classes are followed
  session.changed('Post', 1)
  assert.deepEqual(marked(), [true, true])
})

test('a search follows the collections of all its alternatives, or the class', { skip }, async test => {
  const session = await opened(test, { live: false }), find = finder(session, schema)
  const followed = where => definitionsOf(find('Post', 'Main', { where }).answered.key, true)
  const [one] = inRoom('hall'), at = { f: 'at', t: 'ge', v1: 1 }, many = count => [{ f: 'room', t: 'in', v1: Array.from({ length: count }, (_, n) => `r${n}`) }]
  assert.deepEqual(followed([one, at]), ['Post/byRoom@hall'])
  assert.deepEqual(followed([{ or: [{ and: [at, one] }, { f: 'room', t: 'in', v1: ['a b', 'hall'] }] }]), ['Post/byRoom@hall', 'Post/byRoom@a%20b'])
  assert.equal(followed(many(32)).length, 32)
  for (const where of [[], [at], [{ not: one }], [{ or: [one, at] }], [{ f: 'room', t: 'sw', v1: 'h' }], inRoom(''), inRoom('x'.repeat(256)), many(33), [{ f: 'none', t: 'eq', v1: 1 }]]) {
    assert.deepEqual(followed(where), ['Post'], JSON.stringify(where))
  }
})

test('a search follows what its conditions on other items are about', { skip }, async test => {
  const room = fresh('room'), id = fresh(), session = await opened(test)
  const store = finder(session, schema)('Post', 'Main', { where: [...inRoom(room), { i: 'State', f: 'open', t: 'eq', v1: true }], want: 'ids' })
  assert.deepEqual(definitionsOf(store.answered.key, true), [`Post/byRoom@${room}`])
  test.after(store.subscribe(() => {}))
  await until(store, value => value.known && !value.ids.length)
  await put({ c: 'Post', id, items: [{ c: 'Main', j: { room, at: 1 } }] })
  await put({ c: 'Post', id, items: [{ c: 'State', j: { open: true } }] })
  await until(store, value => value.ids.length === 1)
  await put({ c: 'Post', id, items: [{ c: 'State', del: true }] })
  await until(store, value => !value.ids.length)
})

test('a collection that the server does not know is replaced by the class', { skip }, async test => {
  const room = fresh('room'), id = fresh(), session = await opened(test)
  const { Main } = schema.classes.Post.items
  const store = finder(session, { classes: { Post: { items: { Main }, collections: { none: { key: ['Main.room'] } } } } })('Post', 'Main', { where: inRoom(room), want: 'ids' })
  test.after(store.subscribe(() => {}))
  await until(session.status, status => status.live)
  assert.deepEqual(session.live.wanted(), ['Post'])
  await put(ofPost(id, room, 1))
  await until(store, value => !value.here && value.ids?.includes(id))
})

test('what has changed without a connection is found by a search that follows a collection', { skip }, async test => {
  const room = fresh('room'), [a, b] = [fresh('a'), fresh('b')], net = network()
  const session = await opened(test, { fetch: net.fetch })
  await put(ofPost(a, room, 1))
  const store = finder(session, schema)('Post', 'Main', { where: inRoom(room), want: 'ids' })
  const idsAre = id => until(store, value => !value.here && JSON.stringify(value.ids) === JSON.stringify([id]))
  test.after(store.subscribe(() => {}))
  await idsAre(a)
  net.isOn = false
  session.live.renew() // the connection has broken
  await until(session.status, status => !status.online)
  await put(ofPost(a, fresh('room'), 1), ofPost(b, room, 1))
  net.isOn = true
  await idsAre(b)
})

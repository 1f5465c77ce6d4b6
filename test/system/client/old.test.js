/* old.test.js: sessions that begin with what a store has had for a year, or from before the server was restored. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { putOf } from '../../../src/web/client/edit.js'
import { keyOfTime, stampOf } from '../../../src/web/client/stamp.js'
import { contents, fresh, get, opened, put, shown, skip } from './server.js'

const line = (k, j) => ({ c: 'Line', k, j })
const note = (id, ...items) => ({ c: 'Note', id, items })

/* A store that has these rows. */
const storeOf = rows => ({ isShared: false, isLasting: true, load: async () => structuredClone({ copies: [], collections: [], outbox: [], ...rows }), commit: async () => {}, close: async () => {} })
const copyAt = (v, id, ...items) => ({ c: 'Note', id, v, ct: v, dt: v, items: Object.fromEntries(items.map(one => [`${one.c}.${one.k}`, { ...one, v }])) })

test('a cache of a year ago is brought up to date, and its changes take effect once', { skip }, async test => {
  const then = Date.now() - 365 * 86400_000, v = stampOf(then)
  const [changed, gone, done, lost, red, team] = [fresh(), fresh('gone'), fresh('done'), fresh('lost'), fresh('red'), fresh('team')]
  await put(note(changed, line('1', 'new'), line('2', 'kept')), note(done, line('1', 'mine')), note(lost, line('1', 'other')),
    { c: 'Person', id: red, items: [{ c: 'Main', j: { team } }] })
  const edit = (id, j) => ({ c: 'Note', id, items: { 'Line.9': line('9', j) }, base: { v, ct: v }, was: { 'Line.9': { v, item: null } } })
  const entry = (number, one, sent) => ({ id: `${then.toString(36).padStart(9, '0')}000${number}-aaaaaa`, op: 'put', at: then, edits: [one], ...sent })
  const sentAs = one => ({ sent: { key: keyOfTime(then), param: JSON.stringify({ docs: [putOf(one, v)] }), tries: 0 } })
  await put(note(done, line('9', 'done then')))
  const { v: before } = await get('Note', done)
  const def = `@Person/team@${team}`
  const session = await opened(test, { store: storeOf({
    copies: [copyAt(v, changed, line('1', 'old'), line('3', 'removed since')), copyAt(v, gone, line('1', 'old')), copyAt(v, done), copyAt(v, lost), { ...copyAt(v, 'nobody'), c: 'Person' }],
    collections: [{ def, c: 'Person', collection: 'team', value: team, members: ['nobody'], token: 'of then' }],
    outbox: [entry(1, edit(changed, 'of then')), entry(2, edit(done, 'done then'), sentAs(edit(done, 'done then'))), entry(3, edit(lost, 'never came'), sentAs(edit(lost, 'never came')))]
  }) })
  assert.equal(session.status.get().pending, 3)
  for (const id of [changed, gone, done, lost]) session.doc('Note', id).subscribe(() => {})
  const members = session.collection('Person', 'team', team)
  members.subscribe(() => {})
  await session.sync()
  assert.equal(session.status.get().pending, 0)
  assert.deepEqual(shown(session.doc('Note', changed).get()), { 'Line.1': 'new', 'Line.2': 'kept', 'Line.9': 'of then' })
  assert.deepEqual(contents(await get('Note', lost)), { 'Line.1': 'other', 'Line.9': 'never came' })
  for (const id of [changed, done, lost]) assert.deepEqual(shown(session.doc('Note', id).get()), contents(await get('Note', id)))
  assert.equal((await get('Note', done)).v, before, 'what was done is not done again')
  assert.equal(session.doc('Note', gone).get().exists, false)
  assert.deepEqual(members.get().map(one => one.id), [red])
})

test('copies that are newer than those of a server that was restored become those of the server', { skip }, async test => {
  const [kept, gone] = [fresh(), fresh('gone')]
  await put(note(kept, line('1', 'of the backup')))
  const later = stampOf(Date.now() + 86400_000)
  const session = await opened(test, { store: storeOf({ copies: [copyAt(later, kept, line('1', 'lost'), line('2', 'lost')), copyAt(later, gone, line('1', 'lost'))] }) })
  await session.doc('Note', kept).change(note => note.set('Line', '3', 'after it'))
  for (const id of [kept, gone]) session.doc('Note', id).subscribe(() => {})
  await session.sync()
  assert.deepEqual(contents(await get('Note', kept)), { 'Line.1': 'of the backup', 'Line.3': 'after it' })
  assert.deepEqual(shown(session.doc('Note', kept).get()), contents(await get('Note', kept)))
  assert.equal(session.doc('Note', gone).get().exists, false)
})

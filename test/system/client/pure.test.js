/* pure.test.js: what needs no server: copies, changes, stamps, the stream of events. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { readFileSync } from 'node:fs'
import { applySync, compare, headerOf } from '../../../src/web/client/copy.js'
import { Draft, follow, rebase, show } from '../../../src/web/client/edit.js'
import { Fault } from '../../../src/web/client/fault.js'
import { eventsOf } from '../../../src/web/client/live.js'
import { delayOf } from '../../../src/web/client/loop.js'
import { keyOfTime, stampOf, timeOf } from '../../../src/web/client/stamp.js'
import '../../../src/web/client/node.js'

const casesOf = name => JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), 'utf8')).cases

for (const { name, copy, answer, holds, sends, again } of casesOf('sync')) {
  test(`vector: ${name}`, () => {
    const before = JSON.stringify(copy)
    const next = applySync(copy, answer)
    assert.equal(next === undefined, again === true)
    if (next) assert.deepEqual({ ...next, items: sorted(next.items) }, { ...holds, items: sorted(holds.items) })
    assert.deepEqual(headerOf(next ?? copy), sends)
    assert.equal(JSON.stringify(copy), before, 'a copy is replaced, never changed')
  })
}

const sorted = items => Object.fromEntries(Object.entries(items).sort())
const item = (k, v, j = k) => ({ c: 'Line', k, v, j })
const copyOf = (v, ...items) => ({ c: 'Note', id: 'a', v, ct: 5, dt: 5, items: Object.fromEntries(items.map(one => [`Line.${one.k}`, one])) })
const none = { c: 'Note', id: 'a', v: 0, ct: 0, dt: 0, items: {} }

function editOf(copy, build, waiting = []) {
  const draft = new Draft(() => ({ copy, shown: show(copy, waiting) }))
  build(draft.doc('Note', 'a'))
  return [...draft.edits.values()][0]
}

test('a stamp is read and written back', () => {
  const ms = Date.UTC(2026, 10, 21, 10, 30, 0, 123)
  assert.equal(stampOf(ms), 261121103000123)
  assert.equal(timeOf(261121103000123), ms)
  assert.equal(timeOf(stampOf(Date.UTC(2001, 0, 1, 0, 0, 0, 7))), Date.UTC(2001, 0, 1, 0, 0, 0, 7))
})

test('a key is a UUID of version 7 with its time, and no two are the same', () => {
  const keys = Array.from({ length: 100 }, () => keyOfTime(1790000000123))
  for (const key of keys) assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.equal(new Set(keys).size, 100)
  assert.equal(parseInt(keys[0].replaceAll('-', '').slice(0, 12), 16), 1790000000123)
})

for (const vector of casesOf('collection')) {
  test(`vector of a collection: ${vector.name}`, () => assert.equal(compare(vector.copy ?? undefined, vector.document), vector.do))
}

test('local changes are shown over the copy, in their order', () => {
  const copy = copyOf(10, item('1', 10), item('2', 10))
  const first = editOf(copy, doc => doc.set('Line', '1', 'new').remove('Line', '2').set('Title', 'T'))
  const second = editOf(copy, doc => doc.set('Line', '1', null), [{ entry: { id: 'e1' }, edit: first }])
  const shown = show(copy, [{ entry: { id: 'e1' }, edit: first }, { entry: { id: 'e2' }, edit: second }])
  assert.deepEqual(Object.keys(shown.items), ['Title'])
  assert.equal(second.was['Line.1'].item, 'new')
  assert.equal(shown.ct, 5)
  assert.equal(show(copy, [{ entry: { id: 'e3' }, edit: editOf(copy, doc => doc.delete()) }]).ct, 0)
  assert.deepEqual(copy, copyOf(10, item('1', 10), item('2', 10)))
})

test('a change is brought onto a newer copy; the hook sees only what both sides have changed', async () => {
  const copy = copyOf(10, item('1', 10), item('2', 10))
  const edit = editOf(copy, doc => doc.set('Line', '1', 'mine').set('Line', '2', 'mine too').set('Line', '3', 'other'))
  const newer = copyOf(20, item('1', 20, 'theirs'), item('2', 10), item('4', 20))
  const seen = []
  const next = await rebase(edit, newer, conflict => { seen.push(conflict); return 'merged' })
  assert.deepEqual(seen, [{ c: 'Note', id: 'a', item: 'Line', key: '1', base: '1', mine: 'mine', theirs: 'theirs' }])
  assert.deepEqual(Object.values(next.items).map(one => one.j), ['merged', 'mine too', 'other'])
  assert.equal(next.base.v, 20)
  const again = await rebase(next, newer, () => assert.fail('it was asked once'))
  assert.deepEqual(again.items, next.items)
})

test('who writes without having read starts from nothing: the hook sees what is there', async () => {
  const edit = editOf(undefined, doc => doc.set('Line', '1', 'mine'))
  const seen = []
  await rebase(edit, copyOf(10, item('1', 10, 'theirs')), ({ base, theirs }) => { seen.push(base, theirs); return 'merged' })
  assert.deepEqual(seen, [null, 'theirs'])
})

test('the hook may keep theirs, or remove; without one mine is written', async () => {
  const copy = copyOf(10, item('1', 10))
  const newer = copyOf(20, item('1', 20, 'theirs'))
  const edit = editOf(copy, doc => doc.set('Line', '1', 'mine'))
  assert.equal(await rebase(edit, newer, () => undefined), null)
  assert.deepEqual((await rebase(edit, newer, () => null)).items['Line.1'], { c: 'Line', k: '1', del: true })
  assert.equal((await rebase(edit, newer, undefined)).items['Line.1'].j, 'mine')
})

test('what others have removed is a conflict too', async () => {
  const edit = editOf(copyOf(10, item('1', 10)), doc => doc.set('Line', '1', 'mine'))
  const seen = []
  await rebase(edit, copyOf(20), conflict => { seen.push(conflict.theirs); return undefined })
  assert.deepEqual(seen, [null])
})

test('a change of a document that was deleted is refused, unless the hook wants it', async () => {
  const edit = editOf(copyOf(10, item('1', 10)), doc => doc.set('Line', '1', 'mine'))
  await assert.rejects(rebase(edit, none, undefined), { code: 'DELETED' })
  assert.equal((await rebase(edit, none, ({ mine }) => mine)).items['Line.1'].j, 'mine')
  assert.equal(await rebase(editOf(copyOf(10), doc => doc.delete()), none, undefined), null)
})

test('after a restore of the server a change finds the document in a new incarnation', async () => {
  const edit = editOf(copyOf(10, item('1', 10), item('2', 8)), doc => doc.set('Line', '2', 'mine'))
  const restored = { ...copyOf(30, item('1', 8), item('2', 8)), ct: 30 }
  const next = await rebase(edit, restored, () => assert.fail('nobody has changed it'))
  assert.deepEqual([next.base.v, next.items['Line.2'].j], [30, 'mine'])
})

test('a change that rests on one that was done is no conflict with it', async () => {
  const copy = copyOf(10, item('1', 10))
  const first = editOf(copy, doc => doc.set('Line', '1', 'one'))
  const second = editOf(copy, doc => doc.set('Line', '1', 'two'), [{ entry: { id: 'e1' }, edit: first }])
  const mine = copyOf(20, item('1', 20, 'one'))
  await rebase(follow(second, 'e1', first, 20, mine), mine, () => assert.fail('it was the change before'))
  const seen = []
  const theirs = copyOf(30, item('1', 30, 'other'))
  await rebase(follow(second, 'e1', first, 20, theirs), theirs, conflict => { seen.push(conflict.base) })
  assert.deepEqual(seen, ['one'])
})

test('a value that is not JSON is refused where it is written, and what is written cannot be changed afterwards', () => {
  assert.throws(() => editOf(copyOf(10), doc => doc.set('Line', '1', undefined)), TypeError)
  const value = { list: [1] }
  const edit = editOf(copyOf(10), doc => doc.set('Line', '1', value))
  value.list.push(2)
  assert.deepEqual(edit.items['Line.1'].j, { list: [1] })
})

test('each fault has its consequence', () => {
  const kind = (code, status = 400) => new Fault({ code, status }).kind
  assert.deepEqual(['XAWAY', 'CONTENTION', 'OREADONLY', 'NETWORK', 'BSTATE'].map(code => kind(code, 503)), Array(5).fill('again'))
  assert.deepEqual([kind('SKEY', 401), kind('SCLOSED', 401), kind('SRULE', 403)], ['sign', 'sign', 'refused'])
  assert.deepEqual([kind('OGONE', 410), kind('DBUILD'), kind('AVERSION', 409), kind('OENCRYPTED')], ['over', 'over', 'refused', 'refused'])
})

test('pauses grow, have an end, and are never shorter than the server asks', () => {
  const backoff = { least: 100, most: 1000 }
  for (let i = 0; i < 200; i++) {
    assert.ok(delayOf(backoff, 0, 0) >= 50 && delayOf(backoff, 0, 0) <= 100)
    assert.ok(delayOf(backoff, 60, 0) <= 1000)
    assert.ok(delayOf(backoff, 0, 700) >= 700)
  }
})

test('events are read however their bytes are cut', async () => {
  const text = ': hello\n\nretry: 1200\nevent: ready\ndata: {"resumed":false}\n\nid: 7:9\n\nevent: change\ndata: {"changed":[["Note/é",5]]}\nid: 8\n\n'
  const bytes = new TextEncoder().encode(text)
  for (const size of [1, 2, 7, bytes.length]) {
    const body = new ReadableStream({
      start(stream) {
        for (let i = 0; i < bytes.length; i += size) stream.enqueue(bytes.slice(i, i + size))
        stream.close()
      }
    })
    const events = []
    for await (const event of eventsOf(body, 60_000)) events.push(event)
    assert.deepEqual(events, [
      { event: '', data: '' }, { event: 'ready', data: '{"resumed":false}', retry: 1200 }, { event: '', data: '', id: '7:9' },
      { event: 'change', data: '{"changed":[["Note/é",5]]}', id: '8' }])
  }
})

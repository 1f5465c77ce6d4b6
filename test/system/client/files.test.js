/* files.test.js: attachments by the client library: in one request, in parts, interrupted, refused. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { randomBytes } from 'node:crypto'
import { fresh, get, opened, put, refused, skip, until } from './server.js'

const PART = 64 << 10
const blob = (bytes, type = 'video/mp4') => new Blob([bytes], { type })
const bytesOf = async response => Buffer.from(await response.arrayBuffer())

async function written(test, options) {
  const id = fresh('file/with slash')
  await put({ c: 'Note', id, items: [{ c: 'Title', j: 'T' }] })
  return { id, session: await opened(test, options) }
}

test('a small file is sent in one request, read, and removed', { skip }, async test => {
  const sent = []
  const { id, session } = await written(test, { fetch: (address, init) => { sent.push(`${init.method} ${address.split('/').at(-1)}`); return fetch(address, init) } })
  const document = session.doc('Note', id), bytes = randomBytes(1000), seen = []
  const described = until(document, one => one.item('P', 'ä/b'))
  await session.files.send('Note', id, 'ä/b', blob(bytes), { progress: one => seen.push(one) })
  assert.deepEqual(seen, [{ sent: 1000, size: 1000 }])
  const value = await described
  assert.equal(value.item('P', 'ä/b').size, 1000)
  assert.equal(value.item('P', 'ä/b').mime, 'video/mp4')
  assert.deepEqual(await bytesOf(await session.files.read('Note', id, 'ä/b')), bytes)
  assert.deepEqual(await bytesOf(await fetch(session.files.address('Note', id, 'ä/b'))), bytes)
  await session.files.send('Note', id, 'empty', blob(''))
  assert.equal((await bytesOf(await session.files.read('Note', id, 'empty'))).length, 0)
  await session.files.remove('Note', id, 'ä/b')
  await refused('NATTACHMENT', session.files.read('Note', id, 'ä/b'))
  assert.ok(!sent.some(one => one.startsWith('PATCH')))
})

test('a large file is sent in parts, whatever is lost', { skip }, async test => {
  let count = 0
  const broken = async (address, init) => { // many requests, or their answers, are lost
    const number = init.method === 'PATCH' || init.method === 'HEAD' ? count++ : -1
    if (number % 5 === 1) throw new TypeError('no network')
    const response = await fetch(address, init)
    if (number % 5 === 3) throw new TypeError('the answer is lost')
    return response
  }
  const { id, session } = await written(test, { fetch: broken })
  const bytes = randomBytes(5 * PART + 17), seen = []
  await session.files.send('Note', id, 'film', blob(bytes), { part: PART, progress: one => seen.push(one) })
  assert.deepEqual(await bytesOf(await fetch(session.files.address('Note', id, 'film'))), bytes)
  assert.equal(seen.at(-1).sent, bytes.length)
  assert.ok(seen.every((one, i) => !i || one.sent >= seen[i - 1].sent) && seen.every(one => one.upload === seen[0].upload))
})

test('another session goes on with an upload', { skip }, async test => {
  const { id, session } = await written(test)
  const bytes = randomBytes(4 * PART), ends = new AbortController()
  let upload, sent
  await assert.rejects(session.files.send('Note', id, 'film', blob(bytes), {
    part: PART, signal: ends.signal, progress: one => { ({ upload, sent } = one); ends.abort() }
  }))
  assert.equal(sent, PART)
  const other = await opened(test), seen = []
  await other.files.send('Note', id, 'film', blob(bytes), { part: PART, upload, progress: one => seen.push(one.sent) })
  assert.deepEqual(seen, [2 * PART, 3 * PART, 4 * PART])
  assert.deepEqual(await bytesOf(await other.files.read('Note', id, 'film')), bytes)
})

const changed = (response, headers) => {
  const all = new Headers(response.headers)
  for (const [name, value] of Object.entries(headers)) value === null ? all.delete(name) : all.set(name, value)
  return new Response(response.body, { status: response.status, headers: all })
}
const json = value => new Response(JSON.stringify(value), { status: 201, headers: { 'Content-Type': 'application/json' } })
const sha = '0'.repeat(64)

/** Answers that do not say that something was done; `ask` has it done. */
const WRONG = {
  'a part whose answer has no offset': ['PATCH', async ask => changed(await ask(), { 'Upload-Offset': null })],
  'a part whose answer has an offset that falls': ['PATCH', async ask => changed(await ask(), { 'Upload-Offset': '0' })],
  'a part whose answer has an offset behind its end': ['PATCH', async ask => changed(await ask(), { 'Upload-Offset': '999999999' })],
  'a part that went nowhere': ['PATCH', async () => new Response(null, { status: 204, headers: { 'Tus-Resumable': '1.0.0' } })],
  'a question whose answer has no offset': ['HEAD', async ask => changed(await ask(), { 'Upload-Offset': null })],
  'a question whose answer has an empty offset': ['HEAD', async ask => changed(await ask(), { 'Upload-Offset': '' })],
  'an upload without an address': ['POST', async ask => changed(await ask(), { Location: null })],
  'a file of another size': ['PUT', async () => json({ v: 1, sha, size: 9 })],
  'a file of another digest': ['PUT', async () => json({ v: 1, sha, size: PART + 9 })],
  'a file of which nothing is said': ['PUT', async () => json({})]
}

for (const [name, [method, harm]] of Object.entries(WRONG)) {
  test(`it is no success, and is asked less and less often: ${name}`, { skip }, async test => {
    const least = 16, times = []
    const { id, session } = await written(test, { live: false, backoff: { least, most: 10_000 }, fetch: async (address, init) => {
      if (init.method !== method || address.includes('/op/') || times.length >= 5) return fetch(address, init)
      times.push(Date.now())
      return harm(() => fetch(address, init))
    } })
    const bytes = randomBytes(PART + 9), isWhole = method === 'PUT'
    await session.files.send('Note', id, 'film', blob(bytes), { part: isWhole ? 2 * PART : PART / 8 })
    times.push(Date.now())
    assert.deepEqual(await bytesOf(await session.files.read('Note', id, 'film')), bytes)
    assert.equal((await get('Note', id)).items.find(one => one.c === 'P').j.size, bytes.length)
    if (method !== 'HEAD') assert.equal(times.length, 6)
    times.slice(1).forEach((time, i) => assert.ok(time - times[i] >= least * 2 ** i / 2 - 1, `${name}: ${times.map(one => one - times[0])}`))
  })
}

test('what is refused is broken with its fault, and an end of the session ends it', { skip }, async test => {
  const { id, session } = await written(test)
  for (const part of [PART, 8 << 20]) {
    await refused('NDOCUMENT', session.files.send('Note', fresh('nothing'), 'film', blob(randomBytes(PART + 1)), { part }))
  }
  const never = await opened(test, { fetch: () => Promise.reject(new TypeError('no network')) })
  const sending = never.files.send('Note', id, 'film', blob(randomBytes(10)))
  setTimeout(() => never.close(), 20)
  await refused('NETWORK', sending)
})

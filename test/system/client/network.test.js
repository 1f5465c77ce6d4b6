/* network.test.js: requests that are never answered, and answers that are not the server's. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { randomBytes } from 'node:crypto'
import { contents, fresh, get, opened, put, refused, skip, until } from './server.js'

/* `fetch` of Node 18 forgets its signal when garbage is collected: then nobody hears of its end. */
const withoutSignal = (address, { signal, ...init }) => fetch(address, init)

test('a session ends, and follows what is added, though a request forgets its signal', { skip }, async test => {
  const [first, second] = [fresh(), fresh()]
  const session = await opened(test, { fetch: withoutSignal })
  await until(session.doc('Note', first), one => one.known)
  test.after(session.doc('Note', first).subscribe(() => {}))
  test.after(session.doc('Note', second).subscribe(() => {})) // renews the connection for live events
  await until(session.doc('Note', second), one => one.known)
  await put({ c: 'Note', id: second, items: [{ c: 'Line', k: '1', j: 'of another' }] })
  await until(session.doc('Note', second), one => one.exists)
  await session.close()
})

test('a request that is never answered is lost after the patience, though it forgets its signal', { skip }, async test => {
  const never = { head: () => new Promise(() => {}), body: () => Promise.resolve(new Response(new ReadableStream(), { headers: { 'Content-Type': 'application/json' } })),
    fault: () => Promise.resolve(new Response(new ReadableStream(), { status: 503 })) }
  for (const fetch of Object.values(never)) {
    const session = await opened(test, { fetch, live: false, patience: 20 })
    await refused('NETWORK', session.call('get', { docs: [] }))
    await session.close()
    const patient = await opened(test, { fetch })
    test.after(patient.doc('Note', 'x').subscribe(() => {}))
    await patient.close()
  }
})

const answer = (body, type, status = 200) => new Response(body, { status, headers: type ? { 'Content-Type': type } : {} })
const page = () => answer('<!doctype html>\n<title>Sign in</title>\n<p>data: {"changed":[]}\n\n</p>', 'text/html')

/** What comes in place of an answer; `ask` has the request done, and returns its answer. */
const FALSE = {
  'a page': page,
  'a page, though it was done': async ask => { await (await ask()).body?.cancel(); return page() },
  'nothing': () => answer(null),
  'nothing, with status 204': () => answer(null, undefined, 204),
  'nothing, as JSON': () => answer('', 'application/json'),
  'half of it': async ask => {
    const response = await ask(), type = response.headers.get('content-type') ?? ''
    if (type.startsWith('text/event-stream') || !response.body) return response
    const bytes = await response.arrayBuffer()
    return new Response(bytes.slice(0, bytes.byteLength / 2), { status: response.status, headers: { 'Content-Type': type } })
  },
  'JSON of another': () => answer('{"state":"sign in"}', 'application/json'),
  'a list': () => answer('[]', 'application/json'),
  'a refusal by another': () => answer('{"code":"NOT_FOUND","message":"no such route"}', 'application/json', 404)
}

const PART = 16 << 10
const film = randomBytes(2 * PART + 5), photo = randomBytes(700)
const bytesOf = async response => Buffer.from(await response.arrayBuffer())

/** What a caller does who gets no answer. */
async function again(act, isDone = () => false) {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (isDone(error)) return
      assert.equal(error.code, 'NETWORK', error.stack)
    }
  }
}

/** All that a session does; each of it is true in the end.  Returns how many requests that were. */
async function visit(test, harm) {
  const id = fresh('note'), team = fresh('team'), net = { requests: 0 }
  await put({ c: 'Note', id, items: [{ c: 'Count', j: 0 }] }, { c: 'Person', id: team, items: [{ c: 'Main', j: { team } }] })
  net.fetch = async (address, init) => harm(++net.requests, () => fetch(address, init))
  const refusals = [], told = test.mock.method(console, 'error', () => {})
  const session = await opened(test, { fetch: net.fetch, refused: fault => refusals.push(String(fault)) })
  const document = session.doc('Note', id), members = session.collection('Person', 'team', team)
  const ends = [document.subscribe(() => {}), members.subscribe(() => {})]
  await again(() => session.sync())
  assert.deepEqual(members.get().map(one => one.id), [team])

  const changed = document.change(note => note.set('Count', 1))
  const sent = await session.send('put', { docs: [{ c: 'Note', id: `${id}-sent`, items: [{ c: 'Line', k: '1', j: 1 }] }] })
  assert.equal(sent.docs[0].id, `${id}-sent`)
  assert.deepEqual(contents(await get('Note', `${id}-sent`)), { 'Line.1': 1 })
  await changed
  assert.deepEqual(contents(await get('Note', id)), { Count: 1 })
  const { docs } = await again(() => session.call('get', { docs: [{ c: 'Note', id }] }))
  assert.equal(docs[0].id, id)

  await session.files.send('Note', id, 'photo', new Blob([photo]))
  await session.files.send('Note', id, 'film', new Blob([film]), { part: PART })
  for (const [key, bytes] of [['photo', photo], ['film', film]]) assert.deepEqual(await bytesOf(await fetch(session.files.address('Note', id, key))), bytes)
  const response = await again(() => session.files.read('Note', id, 'photo'))
  assert.ok(photo.subarray(0, 350).equals((await bytesOf(response)).subarray(0, 350)))
  await again(() => session.files.remove('Note', id, 'photo'), error => error.code === 'NATTACHMENT')
  assert.equal((await fetch(session.files.address('Note', id, 'photo'))).status, 404)

  await put({ c: 'Note', id, items: [{ c: 'Count', j: 5 }] })
  await until(document, one => one.item('Count') === 5)
  for (const end of ends) end()
  assert.deepEqual([refusals, session.status.get().pending], [[], 0])
  await session.close()
  assert.equal(told.mock.callCount(), 0, 'no surprise')
  told.mock.restore()
  return net.requests
}

for (const [name, harm] of Object.entries(FALSE)) {
  test(`whichever request is answered by something else, all is done in the end: ${name}`, { skip }, async test => {
    const requests = await visit(test, (_, ask) => ask())
    assert.ok(requests > 10, `${requests} requests`)
    for (let number = 1; number <= requests; number++) await visit(test, (now, ask) => now === number ? harm(ask) : ask())
  })
}

test('behind a page that asks to sign in, everything waits, and nothing is lost', { skip }, async test => {
  for (const [name, harm] of Object.entries(FALSE)) {
    const id = fresh(), ends = []
    let isAway = true
    await put({ c: 'Note', id, items: [{ c: 'Count', j: 0 }] })
    const session = await opened(test, { fetch: (address, init) => Promise.resolve(isAway ? harm(() => fetch(address, init)) : fetch(address, init)) })
    const done = { change: session.doc('Note', id).change(note => note.set('Count', 1)), send: session.send('put', { docs: [{ c: 'Note', id: `${id}-sent`, items: [{ c: 'Line', j: 1 }] }] }),
      photo: session.files.send('Note', id, 'photo', new Blob([photo])), film: session.files.send('Note', id, 'film', new Blob([film]), { part: PART }) }
    for (const [what, promise] of Object.entries(done)) promise.then(() => ends.push(what), error => ends.push(`${what}: ${error}`))
    for (let i = 0; i < 3; i++) await refused('NETWORK', session.sync())
    if (name !== 'half of it') assert.deepEqual(ends, [], name)
    assert.deepEqual([session.status.get().pending, session.status.get().online], [2, false], name)
    isAway = false
    await Promise.all(Object.values(done))
    assert.deepEqual(contents(await get('Note', id)).Count, 1)
    assert.equal((await get('Note', `${id}-sent`)).items.length, 1)
    for (const [key, bytes] of [['photo', photo], ['film', film]]) assert.deepEqual(await bytesOf(await session.files.read('Note', id, key)), bytes)
    await session.close()
  }
})

test('a proxy may put another id in place of that of the request', { skip }, async test => {
  const harm = async (_, ask) => {
    const { status, headers, body } = await ask(), other = new Headers(headers)
    if (other.has('x-request-id')) other.set('X-Request-Id', 'of-the-proxy')
    return new Response(body, { status, headers: other })
  }
  await visit(test, harm)
})

test('an answer that is no JSON is known by the id of its request', async test => {
  const replies = { own: init => init.headers['X-Request-Id'], other: () => 'other' }
  for (const [name, idOf] of Object.entries(replies)) {
    const fetch = async (_, init) => new Response('a;b\n', { headers: { 'Content-Type': 'text/csv', 'X-Request-Id': idOf(init) } })
    const session = await opened(test, { url: 'http://played', fetch, live: false })
    if (name === 'own') assert.equal(await (await session.call('export')).text(), 'a;b\n')
    else await refused('NETWORK', session.call('export'))
  }
})

test('a stream whose lines are not JSON has broken off', async test => {
  const fetch = async () => answer('{"id":"a"}\n<p>\n', 'application/x-ndjson')
  const session = await opened(test, { url: 'http://played', fetch, live: false })
  await refused('NETWORK', session.stream('collection').next())
})

/* live.test.js: live events that do not come: attempts that hang, streams that are held back; the status says so, and what is followed is read. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { fresh, opened, put, skip, until } from './server.js'

const line = (id, j) => ({ c: 'Note', id, items: [{ c: 'Line', k: '1', j }] })
const shows = j => one => one.item('Line', '1') === j

/** `fetch` whose requests for live events have another answer; `times` are theirs. */
function without(answer) {
  const net = { times: [] }
  net.fetch = (address, init) => {
    if (!address.endsWith('/live')) return fetch(address, init)
    net.times.push(Date.now())
    return answer(net.times.length, () => fetch(address, init))
  }
  return net
}

const never = () => new Promise(() => {})
const silent = text => Promise.resolve(new Response(new ReadableStream({
  start(stream) { if (text) stream.enqueue(new TextEncoder().encode(text)) }
}), { headers: { 'Content-Type': 'text/event-stream' } }))

const HELD_BACK = {
  'no answer': never,
  'a head alone': () => silent(''),
  'all but the first event': () => silent(': hello\n\nretry: 1200\n\n'),
  'a page': () => Promise.resolve(new Response('<p>', { headers: { 'Content-Type': 'text/html' } })),
  'an end': () => Promise.resolve(new Response(null, { headers: { 'Content-Type': 'text/event-stream' } })),
  'an end after the first event': () => Promise.resolve(new Response('event: ready\ndata: {"resumed":true}\n\n', { headers: { 'Content-Type': 'text/event-stream' } }))
}

for (const [name, answer] of Object.entries(HELD_BACK)) {
  test(`without live events, changes of others are read now and then: ${name}`, { skip }, async test => {
    const id = fresh(), least = 8, net = without(answer), began = Date.now()
    await put(line(id, 'first'))
    const session = await opened(test, { fetch: net.fetch, patience: 1500, backoff: { least, most: 2000 } })
    const document = session.doc('Note', id)
    test.after(document.subscribe(() => {}))
    await until(document, shows('first'))
    while (net.times.length < 5) await new Promise(resolve => { setTimeout(resolve, 5) })
    const pauses = net.times.slice(1, 5).map((time, i) => time - net.times[i])
    pauses.forEach((pause, i) => assert.ok(pause >= least * 2 ** (i + 1) / 2 - 1, `${name}: ${pauses}`))
    await put(line(id, 'second'))
    await until(document, shows('second'))
    const status = await until(session.status, ({ online, fault, live }) => online && fault === null && !live) // the server answers, though without live events
    assert.ok(status.liveSince === 0 || status.liveSince >= began)
    await session.close()
  })
}

test('the status says whether live events come, and since when', { skip }, async test => {
  const id = fresh(), seen = [], before = Date.now()
  let end = () => {}
  const net = without((number, ask) => number === 1 ? ask().then(response => {
    const reader = response.body.getReader()
    return new Response(new ReadableStream({
      start(stream) { end = () => { stream.close(); void reader.cancel() } },
      async pull(stream) { const { value, done } = await reader.read(); if (!done) stream.enqueue(value) }
    }), { headers: response.headers })
  }) : number < 4 ? Promise.reject(new TypeError('no network')) : ask())
  const session = await opened(test, { fetch: net.fetch })
  assert.deepEqual([session.status.get().live, session.status.get().liveSince], [false, 0])
  test.after(session.status.subscribe(({ live, liveSince }) => { if (seen.at(-1)?.live !== live) seen.push({ live, liveSince }) }))
  const unfollow = session.doc('Note', id).subscribe(() => {})
  await until(session.status, ({ live }) => live)
  end()
  await until(session.status, ({ live }) => !live)
  await until(session.status, ({ live }) => live)
  assert.deepEqual(seen.map(one => one.live), [false, true, false, true])
  assert.ok(seen.slice(1).every((one, i) => one.liveSince >= before && one.liveSince >= seen[i].liveSince))
  unfollow() // nothing is left that could come
  await until(session.status, ({ live }) => !live)
})

for (const type of ['online', 'visibilitychange']) {
  test(`an attempt that hangs is given up by the event ${type}`, { skip }, async test => {
    const id = fresh(), page = new EventTarget(), net = without((number, ask) => number === 1 ? never() : ask())
    const names = ['addEventListener', 'removeEventListener']
    for (const name of names) globalThis[name] = page[name].bind(page)
    globalThis.document = Object.assign(page, { hidden: true })
    test.after(() => { for (const name of [...names, 'document']) delete globalThis[name] })
    const session = await opened(test, { fetch: net.fetch, backoff: { least: 600_000, most: 600_000 } })
    const document = session.doc('Note', id)
    const end = document.subscribe(() => {})
    await until(document, one => one.known)
    assert.deepEqual([net.times.length, session.status.get().live], [1, false])
    if (type === 'visibilitychange') {
      page.dispatchEvent(new Event(type))
      assert.equal(session.live.connection.signal.aborted, false, 'a page that is hidden waits')
      page.hidden = false
    }
    page.dispatchEvent(new Event(type))
    await until(session.status, ({ live }) => live)
    const { connection } = session.live
    page.dispatchEvent(new Event('visibilitychange'))
    assert.equal(connection.signal.aborted, false, 'what flows is left alone')
    await put(line(id, 'of another'))
    await until(document, shows('of another'))
    end()
    await session.close()
    page.dispatchEvent(new Event(type))
    assert.equal(net.times.length, 2, 'a session that is closed does nothing')
  })
}

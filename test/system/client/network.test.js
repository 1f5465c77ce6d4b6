/* network.test.js: requests that are never answered, and answers that are not the server's. */
import test from 'node:test'
import { fresh, opened, put, refused, skip, until } from './server.js'

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

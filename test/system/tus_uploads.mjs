/* tus_uploads.mjs: uploads by tus-js-client, as attachments.md shows them; the test beside this file starts it in a folder with the package. */
import assert from 'node:assert'
import { createHash, randomBytes } from 'node:crypto'
import * as tus from 'tus-js-client'

const root = `${process.env.STAMPD_URL}/lab`
const statuses = new Set()
const PART = 8 << 20
const options = {
  endpoint: `${root}/upload`, chunkSize: PART, retryDelays: [0, 1000, 3000, 5000, 10_000, 20_000, 40_000],
  onAfterResponse: (request, response) => { statuses.add(response.getStatus()) }
}

const put = (id) => fetch(`${root}/op/put`, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ param: { docs: [{ c: 'Note', id, items: [] }] } })
})

const send = (id, key, content, more = {}, names = {}) => new Promise((resolve, reject) => {
  const upload = new tus.Upload(content, {
    ...options, metadata: { class: 'Note', id, key, filetype: 'image/png', ...names }, onSuccess: () => resolve(upload), onError: reject, ...more
  })
  upload.start()
})

async function check(id, key, content, type) {
  const response = await fetch(`${root}/doc/Note/${id}/file/${encodeURIComponent(key)}`)
  assert.equal(response.status, 200, `${id} ${key}`)
  const digest = (bytes) => createHash('sha256').update(bytes).digest('hex')
  assert.equal(digest(Buffer.from(await response.arrayBuffer())), digest(content), `${id} ${key}`)
  assert.equal(response.headers.get('content-type'), type)
}

// A person picks eight photographs: more than the server receives at once.
await put('photos')
const photos = Array.from({ length: 8 }, () => randomBytes(12 << 20))
await Promise.all(photos.map((photo, number) => send('photos', `p${number}`, photo)))
for (const [number, photo] of photos.entries()) await check('photos', `p${number}`, photo, 'image/png')
assert.ok(!statuses.has(429), [...statuses].join(' '))

// The browser does not know the type of a file and says so by an empty one.
await put('forms')
const small = randomBytes(1000)
await send('forms', 'a.yaml', small, {}, { filetype: '', note: '' })
await check('forms', 'a.yaml', small, 'application/octet-stream')
await send('forms', '', small, {}, { filename: 'ä b.txt', filetype: 'text/plain' })
await check('forms', 'ä b.txt', small, 'text/plain')

// Nothing, and bytes with the creation.
await send('forms', 'empty', Buffer.alloc(0))
await check('forms', 'empty', Buffer.alloc(0), 'image/png')
await send('forms', 'at-once', photos[0], { uploadDataDuringCreation: true })
await check('forms', 'at-once', photos[0], 'image/png')

// Broken off behind a part, it goes on there; dropped, it is gone.
async function begin(key) {
  let upload
  await new Promise((resolve, reject) => {
    upload = new tus.Upload(photos[1], { ...options, metadata: { class: 'Note', id: 'forms', key }, onChunkComplete: resolve, onError: reject })
    upload.start()
  })
  await upload.abort()
  return upload.url
}
await send('forms', 'continued', photos[1], { uploadUrl: await begin('continued') })
await check('forms', 'continued', photos[1], 'application/octet-stream')
const dropped = await begin('dropped')
await tus.Upload.terminate(dropped, options)
assert.equal((await fetch(dropped, { method: 'HEAD', headers: { 'Tus-Resumable': '1.0.0' } })).status, 404)

// What is wrong is an error at once, with the server's words.
await assert.rejects(send('nobody', 'a', small), (error) => error.originalResponse.getStatus() === 404 && /NDOC/.test(error.message))
console.log('all arrived')

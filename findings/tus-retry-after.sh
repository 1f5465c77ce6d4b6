#!/bin/sh
# Guess:  a client for resumable uploads waits after 429 Too Many Requests, for as long as Retry-After says, and goes on.
# Seen:   429 ends the upload at once, as every status from 400 to 499 does but 409 and 423. Retry-After is never
#         read, after 503 neither: the pauses are those of retryDelays. The same upload goes on after 423 Locked.
# With:   tus-js-client 4.3.1, its default options.
# Source: shouldRetry and defaultOnShouldRetry in tus-js-client/lib/upload.js.
# So:     a server says 423 where it means "wait"; or a page gives onShouldRetry.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >npm.log 2>&1
npm install --no-audit --no-fund --ignore-scripts tus-js-client@4.3.1 >>npm.log 2>&1 || { cat npm.log; exit 1; }
cat >send.mjs <<'END'
import http from 'node:http'
import * as tus from 'tus-js-client'

async function send(status) {
  let refused = 0
  const times = []
  const server = http.createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.setHeader('Tus-Resumable', '1.0.0')
      if (request.method === 'POST') return response.writeHead(201, { Location: '/files/1' }).end()
      if (request.method === 'HEAD') return response.writeHead(200, { 'Upload-Offset': '0', 'Upload-Length': '3' }).end()
      times.push(Date.now())
      if (!refused++) return response.writeHead(status, { 'Retry-After': '3' }).end()
      response.writeHead(204, { 'Upload-Offset': '3' }).end()
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const end = await new Promise((resolve) => {
    new tus.Upload(Buffer.from('abc'), {
      endpoint: `http://127.0.0.1:${server.address().port}/files`, onSuccess: () => resolve('sent'), onError: () => resolve('given up')
    }).start()
  })
  server.closeAllConnections()
  server.close()
  const early = times.length > 1 && times[1] - times[0] < 3000 ? ', before Retry-After' : ''
  console.log(`${status}: ${end} after ${times.length} PATCH${early}`)
}

for (const status of [429, 423, 503]) await send(status)
END
node send.mjs | tee seen
cat >expected <<'END'
429: given up after 1 PATCH
423: sent after 2 PATCH, before Retry-After
503: sent after 2 PATCH, before Retry-After
END
cmp seen expected

#!/bin/sh
# Guess:  in tests with fake-indexeddb a transaction ends where it ends in browsers: as soon as its last request is answered
#         and the code returns to the event loop, so awaiting anything else in the middle is an error.
# Seen:   it lives on while a message of a MessageChannel is awaited, which libraries use to give way to others: a put behind it
#         is stored. Browsers throw there, as the standard wants, so code that passes such tests fails in them. Behind a
#         timer of 20 ms the fake throws, too.
# With:   fake-indexeddb 6.2.8 in Node 20; Chromium 156 throws InvalidStateError in both.
# Source: _start in build/esm/FDBTransaction.js and lib/scheduling.js: the next step is a task of its own (setImmediate).
# So:     run what awaits within a transaction in a browser, too.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >npm.log 2>&1
npm install --no-audit --no-fund --ignore-scripts fake-indexeddb@6.2.8 >>npm.log 2>&1 || { cat npm.log; exit 1; }
cat >await.mjs <<'END'
import { indexedDB } from 'fake-indexeddb'

const answer = (request) => new Promise((resolve) => { request.onsuccess = () => resolve(request.result) })
const request = indexedDB.open('test')
request.onupgradeneeded = () => request.result.createObjectStore('store')
const database = await answer(request)

async function attempt(name, wait) {
  const transaction = database.transaction('store', 'readwrite')
  const end = new Promise((resolve) => { transaction.oncomplete = resolve })
  await answer(transaction.objectStore('store').put(1, 'first'))
  await wait()
  let seen = 'stored'
  try { transaction.objectStore('store').put(2, name) } catch (error) { seen = error.name }
  await end
  console.log(`put after ${name}: ${seen}`)
}

await attempt('a message', () => new Promise((resolve) => {
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = () => { port1.close(); resolve() }
  port2.postMessage(0)
}))
await attempt('a timer of 20 ms', () => new Promise((resolve) => { setTimeout(resolve, 20) }))
END
timeout 60 node await.mjs | tee seen
cat >expected <<'END'
put after a message: stored
put after a timer of 20 ms: InvalidStateError
END
cmp seen expected

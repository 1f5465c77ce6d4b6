#!/bin/sh
# Guess:  an EventSource for Node remembers the last id as browsers do: a line "id:" counts also when no data follow it,
#         an event without an id has the one before it, and Last-Event-ID is the newest of all.
# Seen:   an id without data is forgotten: the next request asks from the one before it. The event behind it, which
#         brings no id, has an empty lastEventId. The HTML standard sets the id before it looks whether there are data.
# With:   eventsource 4.1.1 (the newest for Node 20) with eventsource-parser 3.1.1. Version 5, for Node 22, does it right.
# Source: dispatchEvent in eventsource-parser/dist/index.js; onEvent in eventsource/dist/index.js.
# So:     a server whose ids mark how far a client has read repeats the id with the next event that has data.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >npm.log 2>&1
npm install --no-audit --no-fund --ignore-scripts eventsource@4.1.1 eventsource-parser@3.1.1 >>npm.log 2>&1 || { cat npm.log; exit 1; }
cat >read.mjs <<'END'
import http from 'node:http'
import { EventSource } from 'eventsource'

let requests = 0
const server = http.createServer((request, response) => {
  console.log(`request from ${request.headers['last-event-id'] ?? 'the beginning'}`)
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  response.end(requests++ ? 'data: again\n\n' : 'retry: 10\nid: 5\ndata: with an id\n\ndata: without\n\nid: 7\n\n')
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const source = new EventSource(`http://127.0.0.1:${server.address().port}/`)
source.onmessage = (event) => {
  console.log(`${event.data}: ${event.lastEventId || 'none'}`)
  if (event.data === 'again') process.exit()
}
END
timeout 60 node read.mjs | tee seen
cat >expected <<'END'
request from the beginning
with an id: 5
without: none
request from 5
again: none
END
cmp seen expected

#!/bin/sh
# Guess:  a comment that keeps a stream of events open is invisible, as it is for EventSource, and so is an id without data.
# Seen:   each blank line calls onmessage. Behind a comment or a lone id the message is empty, so a handler that begins
#         with JSON.parse(message.data) throws, which ends the stream; an empty first line of data is left out, too.
# With:   @microsoft/fetch-event-source 2.0.1.
# Source: getMessages in lib/esm/parse.js.
# So:     a handler returns at once when message.data is empty; a server puts no blank line behind its comments.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >npm.log 2>&1
npm install --no-audit --no-fund --ignore-scripts @microsoft/fetch-event-source@2.0.1 >>npm.log 2>&1 || { cat npm.log; exit 1; }
cat >read.cjs <<'END'
const http = require('node:http')
const { fetchEventSource } = require('@microsoft/fetch-event-source')

globalThis.window = globalThis
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }
const text = ': still here\n\nid: 7\n\ndata: {"n":1}\n\ndata:\ndata: second line\n\n'
const server = http.createServer((request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  response.end(text)
})
server.listen(0, '127.0.0.1', async () => {
  await fetchEventSource(`http://127.0.0.1:${server.address().port}/`, {
    openWhenHidden: true, onmessage: (message) => console.log(`message: ${JSON.stringify(message.data)}`)
  })
  process.exit()
})
END
timeout 60 node read.cjs | tee seen
cat >expected <<'END'
message: ""
message: ""
message: "{\"n\":1}"
message: "second line"
END
cmp seen expected

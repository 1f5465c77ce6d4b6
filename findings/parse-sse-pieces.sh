#!/bin/sh
# Guess:  a reader of a stream of events gives the same events however the network cuts the text, and drops what has no
#         blank line behind it when the stream ends, as the HTML standard says.
# Seen:   a piece that ends between CR and LF counts as two ends of lines, so one event of two lines becomes two events.
#         The unfinished rest of a stream that breaks off is given as an event like any other.
# With:   parse-sse 0.1.0.
# Source: transform and flush of ServerSentEventTransformStream in parse-sse/index.js.
# So:     a server ends its lines by LF alone; what ends a stream is an event of its own.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >npm.log 2>&1
npm install --no-audit --no-fund --ignore-scripts parse-sse@0.1.0 >>npm.log 2>&1 || { cat npm.log; exit 1; }
cat >read.mjs <<'END'
import { parseServerSentEvents } from 'parse-sse'

async function show(name, pieces) {
  const body = new ReadableStream({
    start(stream) {
      for (const piece of pieces) stream.enqueue(new TextEncoder().encode(piece))
      stream.close()
    }
  })
  const seen = []
  const response = new Response(body, { headers: { 'Content-Type': 'text/event-stream' } })
  for await (const event of parseServerSentEvents(response)) seen.push(JSON.stringify(event.data))
  console.log(`${name}: ${seen.join(' ')}`)
}

await show('in one piece', ['data: one\r\ndata: two\r\n\r\n'])
await show('cut between CR and LF', ['data: one\r', '\ndata: two\r\n\r\n'])
await show('broken off', ['data: 100\n\ndata: 2'])
END
timeout 60 node read.mjs | tee seen
cat >expected <<'END'
in one piece: "one\ntwo"
cut between CR and LF: "one" "two"
broken off: "100" "2"
END
cmp seen expected

#!/bin/sh
# Guess:  a tab that writes to localStorage and then posts a message to the other tabs finds its value read by whoever
#         gets the message: both calls return at once, one behind the other, and the write can be read back by its tab.
# Seen:   in the other tab the message is sometimes there first, and localStorage still has the value before. It has the
#         new one some milliseconds later. This headless build shows it once in some hundred times, Debian's Chromium 156
#         in more than half of them. A frame of the same page, which is of the same process, never sees it.
# With:   Chromium 131 (@sparticuz/chromium 131.0.1), driven by puppeteer-core 23.11.1.
# Source: storage of the HTML standard, "Web storage" says of several agents that no lock is taken; in Chromium,
#         CachedStorageArea has a copy for each process, which the browser process tells of changes on a pipe of its own.
# So:     the message brings the value; or whoever gets it looks again, a moment later.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >npm.log 2>&1
npm install --no-audit --no-fund --ignore-scripts @sparticuz/chromium@131.0.1 puppeteer-core@23.11.1 >>npm.log 2>&1 || { cat npm.log; exit 1; }
cat >tabs.mjs <<'END'
import http from 'node:http'
import chromium from '@sparticuz/chromium'
import puppeteer from 'puppeteer-core'

const TIMES = 400, ROUNDS = 60
const server = http.createServer((request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html>'))
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
const browser = await puppeteer.launch({ executablePath: await chromium.executablePath(), args: ['--no-sandbox', '--disable-gpu'], headless: 'shell' })

/** How often the message was first, and whether the value came after all. */
async function count(writer, reader) {
  await reader.evaluate(() => {
    window.seen = { messages: 0, early: 0, later: 0 }
    window.wire = new BroadcastChannel('tabs')
    wire.onmessage = ({ data }) => {
      seen.messages++
      if (Number(localStorage.getItem('number')) >= data) return
      seen.early++
      const look = () => Number(localStorage.getItem('number')) >= data ? seen.later++ : setTimeout(look, 1)
      look()
    }
  })
  await writer.evaluate(async times => {
    const wire = new BroadcastChannel('tabs')
    for (let number = 1; number <= times; number++) {
      localStorage.setItem('number', number)
      wire.postMessage(number)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    wire.close()
  }, TIMES)
  await reader.waitForFunction(times => seen.messages === times && seen.later === seen.early, {}, TIMES)
  const { early } = await reader.evaluate(() => { wire.close(); localStorage.clear(); return seen })
  return early
}

const [one, other] = [await browser.newPage(), await browser.newPage()]
for (const page of [one, other]) await page.goto(`http://127.0.0.1:${server.address().port}/`)
const frames = await one.evaluateHandle(() => {
  const frame = document.createElement('iframe')
  frame.src = '/'
  return new Promise(resolve => { frame.onload = () => resolve(frame); document.body.append(frame) })
})
const frame = await frames.contentFrame()
let tabs = 0, inside = 0
for (let round = 0; round < ROUNDS && !tabs; round++) {
  tabs += await count(other, one)
  inside += await count(one, frame)
}
console.log(`another tab: the message was first ${tabs ? 'sometimes' : 'never'}, and the value came later`)
console.log(`a frame of the same page: the message was first ${inside ? 'sometimes' : 'never'}`)
await browser.close()
server.close()
END
node tabs.mjs | tee seen
cat >expected <<'END'
another tab: the message was first sometimes, and the value came later
a frame of the same page: the message was first never
END
cmp seen expected

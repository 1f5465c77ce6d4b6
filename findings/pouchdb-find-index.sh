#!/bin/sh
# Guess:  an index makes a query faster and does not change its answer.
# Seen:   {n: null} finds the documents in which n is null; once n has an index, it finds those without n, too. So does
#         {n: {$gte: null}}. {n: {$exists: false}} says that they have no such field all the same.
# With:   pouchdb-find 9.0.0, adapter "memory".
# Source: the emitted keys (createShallowSingleMapper) and planQuery in pouchdb-find/lib/index.js: the key of a missing
#         field becomes null, and a condition that the index serves is not tested again on the document.
# So:     ask for $exists beside null; test queries with the indexes that the application has.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >npm.log 2>&1
npm install --no-audit --no-fund --ignore-scripts pouchdb-core@9.0.0 pouchdb-adapter-memory@9.0.0 pouchdb-find@9.0.0 \
    >>npm.log 2>&1 || { cat npm.log; exit 1; }
cat >ask.mjs <<'END'
import PouchDB from 'pouchdb-core'
import memory from 'pouchdb-adapter-memory'
import find from 'pouchdb-find'

PouchDB.plugin(memory).plugin(find)
const db = new PouchDB('few', { adapter: 'memory' })
await db.bulkDocs([{ _id: 'number', n: 1 }, { _id: 'null', n: null }, { _id: 'missing' }])

async function ask(selector) {
  const { docs } = await db.find({ selector: structuredClone(selector) })
  return docs.map((doc) => doc._id).sort().join(' ')
}

const selectors = [{ n: null }, { n: { $gte: null } }, { n: { $exists: false } }]
const before = []
for (const selector of selectors) before.push(await ask(selector))
await db.createIndex({ index: { fields: ['n'] } })
for (const [at, selector] of selectors.entries()) {
  console.log(`${JSON.stringify(selector)}: ${before[at]}; with an index: ${await ask(selector)}`)
}
END
timeout 60 node ask.mjs | tee seen
cat >expected <<'END'
{"n":null}: null; with an index: missing null
{"n":{"$gte":null}}: null number; with an index: missing null number
{"n":{"$exists":false}}: missing; with an index: missing
END
cmp seen expected

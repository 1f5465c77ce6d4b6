#!/bin/sh
# Guess:  in a Mango query {n: {$nin: [1]}} and {n: {$ne: 1}} mean the same.
# Seen:   $ne also finds documents in which n is null, is missing, or is an array that holds 1. $nin finds none of the three.
# With:   pouchdb-find 9.0.0, adapter "memory", without an index.
# Source: the matchers "$ne" and "$nin" in pouchdb-selector-core/lib/index.js; only the second begins with fieldExists.
# So:     say {$or: [{n: {$nin: […]}}, {n: {$exists: false}}, {n: null}]} where the others are wanted, too.
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
await db.bulkDocs([{ _id: 'one', n: 1 }, { _id: 'two', n: 2 }, { _id: 'null', n: null }, { _id: 'array', n: [1] }, { _id: 'missing' }])
for (const condition of ['{"$ne":1}', '{"$nin":[1]}']) {
  const { docs } = await db.find({ selector: { n: JSON.parse(condition) } })
  console.log(`${condition}: ${docs.map((doc) => doc._id).sort().join(' ')}`)
}
END
timeout 60 node ask.mjs | tee seen
cat >expected <<'END'
{"$ne":1}: array missing null two
{"$nin":[1]}: two
END
cmp seen expected

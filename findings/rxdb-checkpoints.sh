#!/bin/sh
# Guess:  a checkpoint that a pull handler of RxDB returns replaces the one before.
# Seen:   the two are laid over each other, member by member. A handler that returns {cursor} for pages and {token}
#         behind the last one is asked with both from then on. And a page without documents stores no checkpoint at all.
# With:   rxdb 17.6.0 (16.21.1 does the same).
# Source: stackCheckpoints in rxdb/src/rx-storage-helper.ts (Object.assign), used by replication-protocol/downstream.ts.
# So:     return a checkpoint with one member that holds everything: {"at": {…}}.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >npm.log 2>&1
npm install --no-audit --no-fund --ignore-scripts rxdb@17.6.0 rxjs@7.8.2 >>npm.log 2>&1 || { cat npm.log; exit 1; }
cat >ask.mjs <<'END'
import { createRxDatabase } from 'rxdb'
import { getRxStorageMemory } from 'rxdb/plugins/storage-memory'
import { replicateRxCollection } from 'rxdb/plugins/replication'

const database = await createRxDatabase({ name: 'one', storage: getRxStorageMemory(), multiInstance: false })
const { notes } = await database.addCollections({ notes: { schema: {
  version: 0, primaryKey: 'id', type: 'object', properties: { id: { type: 'string', maxLength: 20 } } } } })
const pages = [
  { documents: [{ id: 'a', _deleted: false }, { id: 'b', _deleted: false }], checkpoint: { cursor: 'page 2' } },
  { documents: [{ id: 'c', _deleted: false }], checkpoint: { token: 'all' } },
  { documents: [], checkpoint: { token: 'later' } },
  { documents: [], checkpoint: { token: 'later still' } }
]
const asked = []
const replication = replicateRxCollection({
  collection: notes, replicationIdentifier: 'x', live: true,
  pull: { batchSize: 2, handler: async (checkpoint) => { asked.push(JSON.stringify(checkpoint ?? null)); return pages.shift() } }
})
await replication.awaitInitialReplication()
for (let i = 0; i < 2; i++) { replication.reSync(); await replication.awaitInSync() }
await database.close()
console.log(asked.join('\n'))
END
node ask.mjs | tee seen
cat >expected <<'END'
null
{"cursor":"page 2"}
{"cursor":"page 2","token":"all"}
{"cursor":"page 2","token":"all"}
END
cmp seen expected

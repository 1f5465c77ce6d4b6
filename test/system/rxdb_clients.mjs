/* rxdb_clients.mjs: two clients with the example's adapter; the test beside this file starts it in a folder with the packages. */
import assert from 'node:assert'
import { client, server, until } from './rxdb_kit.mjs'

const texts = async ({ todos }) => (await todos.find().exec()).map(({ id, text }) => `${id}: ${text}`).sort().join(', ')

const one = await client('one'), other = await client('other')
await one.replication.awaitInitialReplication()
await other.replication.awaitInitialReplication()
assert.equal(await texts(one), 'a: from the server')

await one.todos.insert({ id: 'b', list: 'home', text: 'from one', done: false })
await until('it arrives', async () => await texts(other) === 'a: from the server, b: from one')

// Both change the same document while one has no network: the first that arrives stays.
one.network.isOn = false
await (await one.todos.findOne('b').exec()).patch({ text: 'changed by one' })
await (await other.todos.findOne('b').exec()).patch({ text: 'changed by the other' })
await until('the server has it', async () => (await server('get', { docs: [{ c: 'Todo', id: 'b' }] })).docs[0].items[0].j.text === 'changed by the other')
one.network.isOn = true
await until('the conflict is decided', async () => (await texts(one)).includes('b: changed by the other'))
assert.ok((await texts(other)).includes('b: changed by the other'))

// Changes one after the other need not wait for their way back.
for (const text of ['1', '2', '3']) await (await one.todos.findOne('b').exec()).incrementalPatch({ text })
await until('the last one arrives', async () => (await texts(other)).includes('b: 3') && (await texts(one)).includes('b: 3'))

await (await other.todos.findOne('a').exec()).remove()
await until('the deletion arrives', async () => await texts(one) === 'b: 3')
assert.equal((await server('get', { docs: [{ c: 'Todo', id: 'a' }] })).docs[0].items?.length ?? 0, 0)
await server('put', { docs: [{ c: 'Todo', id: 'b', delete: true }, { c: 'Todo', id: 'c', items: [{ c: 'Main', j: { list: 'home', text: 'at last' } }] }] })
await until('what another client of the server did', async () => await texts(one) === 'c: at last' && await texts(other) === 'c: at last')

await one.database.close()
await other.database.close()
console.log('converged')

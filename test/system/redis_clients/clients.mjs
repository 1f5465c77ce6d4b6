// What programs do with node-redis and ioredis: node clients.mjs SOCKET NAMESPACE KEY ADDRESS, where ADDRESS is that of TLS, and
// NODE_EXTRA_CA_CERTS names its certificate.
import assert from 'node:assert/strict'
import { createClient } from 'redis'
import Redis from 'ioredis'

const [path, username, password, address] = process.argv.slice(2)

async function useNodeRedis(options) {
  const client = createClient({ username, password, name: 'node-redis', ...options })
  client.on('error', error => { throw error })
  await client.connect()
  assert.equal(await client.set('a', '1', { EX: 100 }), 'OK')
  assert.equal(await client.incrBy('a', 41), 42)
  assert.equal(await client.set('a', 'x', { NX: true }), null)
  assert.deepEqual(await client.mGet(['a', 'no']), ['42', null])
  assert.equal(await client.expire('a', 1000, 'GT'), 1)
  assert.ok(await client.ttl('a') > 900)
  assert.deepEqual(await Promise.all(Array.from({ length: 100 }, (_, i) => client.set(`k${i}`, 'x'))), Array(100).fill('OK'))
  let count = 0
  for await (const keys of client.scanIterator({ MATCH: 'k*', COUNT: 9 })) count += [keys].flat().length
  assert.equal(count, 100)
  assert.equal(await client.clientGetName(), 'node-redis')
  await assert.rejects(client.flushAll(), /unknown command 'FLUSHALL'/)
  const listener = client.duplicate()
  await listener.connect()
  const heard = new Promise(resolve => listener.pSubscribe('__keyspace@0__:a', (message, channel) => resolve([channel, message])))
  await listener.ping()
  await client.del('a')
  assert.deepEqual(await heard, ['__keyspace@0__:a', 'del'])
  listener.destroy()
  await client.close()
}

async function useIoredis(options) {
  const client = new Redis({ username, password, connectionName: 'ioredis', ...options })
  assert.equal(await client.set('b', '1', 'EX', 100), 'OK')
  assert.equal(await client.incr('b'), 2)
  assert.deepEqual(await client.pipeline().set('c', 1).incrbyfloat('c', 0.5).get('c').exec(), [[null, 'OK'], [null, '1.5'], [null, '1.5']])
  let count = 0
  for await (const keys of client.scanStream({ match: 'k*', count: 9 })) count += keys.length
  assert.equal(count, 100)
  await assert.rejects(client.flushall(), /unknown command/)
  const listener = client.duplicate()
  await listener.psubscribe('__keyevent@0__:*')
  const heard = new Promise(resolve => listener.on('pmessage', (pattern, channel, key) => resolve([channel, key])))
  await client.del('b')
  assert.deepEqual(await heard, ['__keyevent@0__:del', 'b'])
  listener.disconnect()
  assert.equal(await client.quit(), 'OK')
}

const [host, port] = address.split(':')
await useNodeRedis({ socket: { path } })
await useNodeRedis({ socket: { path }, RESP: 3 })
await useNodeRedis({ socket: { host, port: Number(port), tls: true } })
await useIoredis({ path })
await useIoredis({ host, port: Number(port), tls: {} })

/* storm.test.js: sessions that change the same documents over a bad network, are killed and opened again: each accepted change has
 * taken effect exactly once, and all hold what the server has.  SEED repeats a run. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { contents, fresh, get, op, opened, put, shown, skip } from './server.js'
import { lastingStore } from './lasting.js'
import { dice, sabotaged } from './saboteur.js'

const SESSIONS = 3
const STEPS = 60
const DOCUMENTS = 3

/** Counters are merged, so that each accepted step counts; marks are set by one session each. */
const merge = ({ item, base, mine, theirs }) => item === 'Count' ? (theirs ?? 0) + (mine - (base ?? 0)) : mine

class Player {
  constructor(test, number, ids, random) {
    Object.assign(this, { test, number, ids, random, steps: 0, net: sabotaged(random), store: lastingStore() })
    this.expected = new Map(ids.map(id => [id, { count: 0, marks: {} }]))
    this.stored = []
  }

  async open() {
    this.session = await opened(this.test, { store: this.store, fetch: this.net.fetch, conflict: merge })
    for (const id of this.ids) this.session.doc('Storm', id).subscribe(() => {})
  }

  /** Its changes are stored before it is killed, or it is not known whether they were. */
  async kill() {
    await Promise.all(this.stored)
    this.store = this.store.kill()
    this.net.isOn = false
    void this.session.close()
    this.net = sabotaged(this.random)
    await this.open()
  }

  pick() {
    return this.ids[Math.floor(this.random() * this.ids.length)]
  }

  count(draft, id) {
    const now = draft.look('Storm', id).shown.items.Count?.j ?? 0
    draft.doc('Storm', id).set('Count', now + 1)
    this.expected.get(id).count++
  }

  mark(draft, id) {
    const k = `${this.number}-${Math.floor(this.random() * 4)}`
    const value = this.random() < 0.3 ? null : ++this.steps
    draft.doc('Storm', id).set('Mark', k, value)
    if (value === null) delete this.expected.get(id).marks[`Mark.${k}`]
    else this.expected.get(id).marks[`Mark.${k}`] = value
  }

  async step() {
    const what = this.random()
    if (what < 0.05) await this.kill()
    else if (what < 0.15) this.net.isOn = !this.net.isOn
    else {
      const ids = new Set([this.pick(), this.random() < 0.3 ? this.pick() : this.pick()])
      const done = this.session.write(draft => {
        for (const id of ids) this.random() < 0.5 ? this.count(draft, id) : this.mark(draft, id)
      })
      this.stored.push(done.saved)
    }
    if (this.random() < 0.5) await new Promise(resolve => setTimeout(resolve, this.random() * 5))
  }
}

for (const round of [1, 2]) {
  test(`a storm, round ${round}`, { skip }, async test => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000) + round
    test.diagnostic(`SEED=${seed - round}`)
    const ids = Array.from({ length: DOCUMENTS }, () => fresh('storm'))
    await put(...ids.map(id => ({ c: 'Storm', id, items: [{ c: 'Count', j: 0 }] })))
    const players = Array.from({ length: SESSIONS }, (_, number) => new Player(test, number, ids, dice(seed * 10 + number)))
    for (const player of players) await player.open()
    await Promise.all(players.map(async player => {
      for (let i = 0; i < STEPS; i++) await player.step()
    }))
    const known = await op('get', { docs: ids.map(id => ({ c: 'Storm', id })) })
    assert.equal(known.docs.length, ids.length)

    for (const player of players) Object.assign(player.net, { isOn: true, rate: 0 })
    for (const { session } of players) {
      while (session.status.get().pending) await session.sync().catch(() => {})
    }
    for (const { session } of players) await session.sync().catch(() => session.sync())
    assert.ok(players.some(player => player.net.harms > 0) || players.length === 0)
    for (const id of ids) {
      const server = contents(await get('Storm', id))
      const marks = Object.assign({}, ...players.map(player => player.expected.get(id).marks))
      const count = players.reduce((sum, player) => sum + player.expected.get(id).count, 0)
      assert.deepEqual(server, { Count: count, ...marks }, `the server has each change once: SEED=${seed - round}`)
      for (const { session } of players) {
        const held = session.doc('Storm', id).get()
        assert.deepEqual([shown(held), held.pending], [server, false], `a session holds what the server has: SEED=${seed - round}`)
      }
    }
  })
}

/* follow.test.js: searches that are followed where rules decide: whatever others change, they come to what the caller may list, and the
 * caller hears nothing of anything else.  Drawn at random, from fixed seeds. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { finder } from '../../../src/web/client/find.js'
import { definitionsOf } from '../../../src/web/client/records.js'
import { drawing } from './drawing.js'
import { fresh, op, opened, skip, until, url } from './server.js'

const ns = 'club', schema = JSON.parse(process.env.STAMPD_SCHEMA_OF_CLUB ?? '{"classes":{}}')
const headers = { Authorization: `Bearer ${process.env.STAMPD_KEY}` }
const SEEDS = [1, 2, 3, 5], ROUNDS = 12, DOCUMENTS = 6

/** An account, by an operation without the library. */
async function person() {
  const response = await fetch(`${url}/${ns}/op/register`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ param: { name: fresh('person'), password: 'correct horse battery' } })
  })
  return (await response.json()).out
}

/** What is in the namespace, and what the account may list of it. */
class World {
  constructor(draw, rooms, people) {
    Object.assign(this, { draw, rooms, people })
    this.ids = Array.from({ length: DOCUMENTS }, () => fresh('talk'))
    this.talks = new Map()
    this.hidden = new Set() // versions of changes of what the first of the people sees neither before nor after
  }

  mayList(talk) {
    const [{ account }] = this.people
    return talk !== undefined && (talk.owner === account || talk.members.includes(account))
  }

  /** One change of one document, by the administrator. */
  async change() {
    const { draw, talks } = this, id = draw.one(this.ids), before = talks.get(id)
    if (before && draw.is(0.2)) talks.delete(id)
    else talks.set(id, { at: draw.below(5), room: draw.one(this.rooms), owner: draw.one(this.people).account, members: this.people.filter(() => draw.is(0.3)).map(one => one.account) })
    const after = talks.get(id)
    const { members = [], ...main } = after ?? {}
    const gone = (before?.members ?? []).filter(one => !members.includes(one))
    const items = [{ c: 'Main', j: { ...main, nonce: draw.below(1e9) } }, ...members.map(k => ({ c: 'Mem', k, j: {} })), ...gone.map(k => ({ c: 'Mem', k, del: true }))]
    const { v } = await op('put', { docs: [after ? { c: 'Talk', id, items } : { c: 'Talk', id, delete: true }] }, { ns, headers })
    if (!this.mayList(before) && !this.mayList(after)) this.hidden.add(v)
  }

  /** The ids that are found in these rooms, the newest first. */
  found(...rooms) {
    const found = [...this.talks].filter(([, talk]) => rooms.includes(talk.room) && this.mayList(talk))
    return found.sort(([a, { at: one }], [b, { at: other }]) => other - one || (a < b ? 1 : -1)).map(([id]) => id)
  }
}

for (const [seed, isPlain] of SEEDS.flatMap(seed => [[seed, false], [seed, true]])) { // searches are followed; or, as by servers before that, what may change them
  test(`what is followed comes to what may be listed, seed ${seed}, ${isPlain ? 'by what may change it' : 'by searches'}`, { skip }, async test => {
    const people = [await person(), await person()], rooms = [fresh('room'), fresh('room'), fresh('room')], draw = drawing(seed)
    const world = new World(draw, rooms, people), session = await opened(test, { ns, token: people[0].token }), heard = []
    const { changed } = session
    session.live.isPlain = isPlain
    session.changed = (definition, version) => { heard.push(version); changed.call(session, definition, version) }
    const [room, other] = rooms, find = finder(session, schema), search = where => ({ where: [where], order: '-at', want: 'ids' })
    const byRoom = find('Talk', 'Main', search({ f: 'room', t: 'eq', v1: room })), byClass = session.find('Talk', 'Main', search({ f: 'room', t: 'eq', v1: room }))
    const byTwo = find('Talk', 'Main', { where: [{ f: 'room', t: 'in', v1: [room, other] }], want: 'ids' })
    assert.deepEqual([byRoom.answered, byClass, byTwo.answered].map(store => definitionsOf(store.key, true)), [[`Talk/byRoom@${room}`], ['Talk'], [`Talk/byRoom@${room}`, `Talk/byRoom@${other}`]])
    const shown = new Set()
    test.after(byRoom.subscribe((value, { entered, left }) => {
      for (const [id] of left) assert.ok(shown.delete(id))
      for (const [id] of entered) assert.ok(!shown.has(id) && shown.add(id))
    }))
    for (const store of [byClass, byTwo]) test.after(store.subscribe(() => {}))
    for (let round = 0; round < ROUNDS; round++) {
      if (draw.is(0.2)) session.live.renew() // the connection has broken
      for (let n = draw.below(3); n >= 0; n--) await world.change()
      const ids = world.found(room), both = world.found(room, other).sort()
      for (const [store, found] of [[byRoom, ids], [byClass, ids], [byTwo, both]]) {
        await until(store, value => value.known && !value.here && JSON.stringify(value.ids) === JSON.stringify(found))
      }
      assert.deepEqual([...shown].sort(), [...ids].sort(), JSON.stringify({ seed, round }))
    }
    assert.ok(heard.length && world.hidden.size)
    assert.ok(isPlain || heard.every(version => !version), 'events of searches alone')
    assert.equal(session.live.isPlain, isPlain)
    assert.deepEqual(heard.filter(version => world.hidden.has(version)), [], JSON.stringify({ seed }))
  })
}

test('what is shared with an account is a search, and those who invite at the same time lose nothing', { skip }, async test => {
  const [ann, bob, eve] = [await person(), await person(), await person()], ids = [fresh('team'), fresh('team')]
  const of = one => opened(test, { ns, token: one.token }), mine = session => session.find('Team', 'Member', { where: [{ f: 'account', t: 'eq', v1: session.cache.account }], want: 'ids' })
  const member = (one, role) => draft => draft.set('Member', one.account, { account: one.account, role })
  const has = (...ids) => value => value.known && JSON.stringify(value.ids) === JSON.stringify(ids.sort())
  const [home, office, bobs, eves] = [await of(ann), await of(ann), await of(bob), await of(eve)]
  await Promise.all(ids.map(id => home.doc('Team', id).change(member(ann, 'chief'))))
  const [bobsTeams, evesTeams] = [mine(bobs), mine(eves)]
  for (const store of [bobsTeams, evesTeams]) test.after(store.subscribe(() => {}))
  for (const store of [bobsTeams, evesTeams]) await until(store, has())
  const [here, there] = [home.doc('Team', ids[0]), office.doc('Team', ids[0])]
  test.after(there.subscribe(() => {}))
  await until(there, value => value.exists)
  await Promise.all([here.change(member(bob)), there.change(member(eve)), home.doc('Team', ids[1]).change(member(bob))])
  await until(bobsTeams, has(...ids))
  await until(evesTeams, has(ids[0]))
  await here.change(draft => draft.remove('Member', bob.account))
  await until(bobsTeams, has(ids[1]))
})

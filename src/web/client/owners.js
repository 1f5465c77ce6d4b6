/* owners.js: whose changes wait, and whose copies there are: of the account that has made them, or has read them. */

/** @typedef {import('./types.js').Batch} Batch @typedef {import('./types.js').Entry} Entry */

export class Owners {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session
    /** Changes that were made while it was not known who is signed in. @type {Set<string>} */ this.unsigned = new Set()
    session.transport.told = () => this.identify()
  }

  /** A change that was made now. @param {string} id */
  note(id) {
    if (this.session.transport.account === undefined) this.unsigned.add(id)
  }

  /** Who is signed in is known, or is another one.  Until the function for the token has returned, it is who was it last. */
  identify() {
    const { cache, transport, tabs, status } = this.session, { account } = transport, before = cache.account
    if (account !== undefined) {
      const made = [...this.unsigned].map(id => cache.outbox.get(id))
      this.unsigned.clear()
      this.sign(made, account).catch(() => {})
    }
    cache.turn(account ?? cache.reader)
    if (!status.get().leader) return tabs.tellFault()
    if (account && account !== cache.reader) this.claim(account)
    if (cache.account !== before) tabs.postStatus()
  }

  /** Copies are what one account may read: another one begins without any. @param {string} account */
  claim(account) {
    const { session } = this, { reader, copies, collections } = session.cache
    /** @type {Batch} */ const batch = { collections: [['', { def: '', c: '', collection: '', value: account, members: [] }]] }
    if (reader) {
      batch.copies = [...copies.keys()].map(key => [key, null])
      for (const [def, { c, collection, value }] of collections) if (def) batch.collections?.push([def, { def, c, collection, value, members: [] }])
      session.markAll()
    }
    void session.commit(batch)
  }

  /** They are of this account, but for what was sent already. @param {(Entry | undefined)[]} entries @param {string} by */
  async sign(entries, by) {
    /** @type {[string, Entry][]} */ const outbox = []
    for (const entry of entries) if (entry && !entry.sent && entry.by !== by) outbox.push([entry.id, { ...entry, by }])
    if (outbox.length) await this.session.tabs.save({ outbox })
  }

  async adopt() {
    const { account, outbox } = this.session.cache
    await this.sign([...outbox.values()].filter(entry => !entry.by), account)
  }

  /** @returns {import('./types.js').Change[]} */
  changes() {
    const { cache } = this.session
    return [...cache.outbox.values()].map(entry => ({
      id: entry.id, account: entry.by ?? '', isOwn: cache.isOwn(entry), op: entry.op, at: entry.at, documents: entry.edits.map(({ c, id }) => [c, id])
    }))
  }
}

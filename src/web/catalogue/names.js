/* names.js: the names of all packages: streamed at the first visit, kept, and brought up to date at the next ones. */

const KEPT = 'names'
const QUERY = { c: 'Package', collection: 'archive', value: 'debian', want: 'ids' }

/** Calls `show(names, isAll)` whenever there is more to show. */
export async function loadNames(session, show) {
  const kept = JSON.parse(localStorage.getItem(KEPT))
  if (kept) show(kept.names, true)
  const now = kept ? await renew(session, kept) : await stream(session, show)
  show(now.names, true)
  localStorage.setItem(KEPT, JSON.stringify(now))
}

/** One request; the names are shown while they come. */
async function stream(session, show) {
  const names = []
  for await (const rows of session.stream('collection', { ...QUERY, stream: true })) {
    const { token } = rows.at(-1)
    for (const [id] of token ? rows.slice(0, -1) : rows) names.push(id)
    if (token) return { names: names.sort(), token }
    show(names, false)
  }
}

/** What has changed since; without changes, the server answers from its memory. */
async function renew(session, { names, token }) {
  for (let from = { token }, known = new Set(names); ;) {
    const out = await session.call('collection', { ...QUERY, ...from, limit: 1000 })
    if (out.complete && out.first) known.clear()
    for (const [id] of out.ids) known.add(id)
    for (const [id] of out.left) known.delete(id)
    if (!out.cursor) return { names: [...known].sort(), token: out.token }
    from = { cursor: out.cursor }
  }
}

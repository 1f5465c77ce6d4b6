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
  const response = await session.call('collection', { ...QUERY, stream: true })
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  const names = []
  for (let rest = ''; ;) {
    const { done, value } = await reader.read()
    if (done) throw new Error('The list of packages broke off. Reload the page.')
    const lines = (rest + value).split('\n')
    rest = lines.pop()
    for (const row of lines.map((line) => JSON.parse(line))) {
      if (row.token) return { names, token: row.token }
      names.push(row[0])
    }
    show(names, false)
  }
}

/** What has changed since; without changes, the server answers from its memory. */
async function renew(session, { names, token }) {
  const known = new Set(names)
  for (let from = { token }; ;) {
    const out = await session.call('collection', { ...QUERY, ...from, limit: 1000 })
    if (out.complete && out.first) known.clear()
    for (const [id] of out.ids) known.add(id)
    for (const [id] of out.left) known.delete(id)
    if (!out.cursor) return { names: [...known].sort(), token: out.token }
    from = { cursor: out.cursor }
  }
}

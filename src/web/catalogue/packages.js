/* packages.js: the search, and the page of a package. */
import { $, h, link } from './page.js'

const ROWS = 32, WORDS = 7, PAUSE_MS = 150
const about = new Map() // what was read of those in the list: one request reads at most 32 documents
let present // what is on the screen

/** Not every package comes with a description. */
const summary = (facts) => facts?.description ?? (facts ? `${facts.section}, ${facts.version}` : '')
const note = (id, facts) => about.set(id, { text: summary(facts), size: facts?.size ? size(facts.size) : '' })
const row = (id) => h('li', {}, link(id), h('small', {}, about.get(id)?.size ?? ''), h('span', { className: 'about' }, about.get(id)?.text ?? ''))

/** Those that begin with the text, then those that contain it. */
function search(names, text) {
  const first = names.filter((name) => name.startsWith(text))
  return [...first, ...first.length > ROWS ? [] : names.filter((name) => name.indexOf(text) > 0)].slice(0, ROWS + 1)
}

/** Packages with these words in their names and descriptions; the last one is still being typed. Without a network, none. */
function findWords(session, words) {
  const where = words.map((word, i) => ({ f: 'words', t: i + 1 < words.length ? 'eq' : 'sw', v1: word }))
  return session.call('find', { c: 'Package', i: 'Sta', where, want: 'items', limit: ROWS + 1 }).then(({ items }) => items, () => [])
}

/** Names that contain the text, at once; then those of the packages that have its words. */
export async function showFound(session, names) {
  const text = $('search').value.trim().toLowerCase(), found = search(names, text), mine = `${text}:${found}`
  if (present === mine) return
  present = mine
  const list = h('ul', {}, found.slice(0, ROWS).map(row)), end = h('p', { className: 'quiet' })
  $('found').replaceChildren(list, end)
  const words = text.match(/[\p{L}\p{N}]+/gu)?.slice(0, WORDS)
  if (words && found.length <= ROWS) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    for (const { id, j } of present === mine ? await findWords(session, words) : []) {
      note(id, j)
      if (!found.includes(id) && found.push(id) <= ROWS) list.append(row(id))
    }
  }
  if (present !== mine) return
  end.textContent = found.length > ROWS ? 'And more: type on to narrow them down.' : found.length ? '' : 'Nothing is found.'
  const missing = found.slice(0, ROWS).filter((id) => !about.has(id))
  const { docs } = missing.length ? await session.call('get', { docs: missing.map((id) => ({ c: 'Package', id })) }) : { docs: [] }
  for (const { id, items } of docs) note(id, items?.find((item) => item.c === 'Sta')?.j)
  list.replaceChildren(...[...list.children].map((li) => row(li.firstChild.textContent)))
}

const FACTS = { version: 'Version', section: 'Section', priority: 'Priority', architecture: 'Architecture', maintainer: 'Maintainer', size: 'Download' }
const size = (bytes) => bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / 2 ** 20).toLocaleString('en', { maximumSignificantDigits: bytes < 1000 * 2 ** 20 ? 3 : 4 })} MB`
const shown = (name, value) => name === 'size' ? size(value) : value

/** Follows the package; returns what ends that. */
export function showPackage(session, id, addTo) {
  const needed = h('div')
  void showNeeding(session, id, needed).catch((fault) => needed.replaceChildren(fault.message))
  return session.doc('Package', id).subscribe((document) => {
    const facts = document.item('Sta')
    if (!facts) return $('page').replaceChildren(h('h1', {}, id), ...document.known ? [h('p', {}, 'There is no such package.')] : [h('p', {}, 'Reading…'), addTo])
    const depends = document.items('Dep')
    $('page').replaceChildren(
      h('h1', {}, id), h('p', { className: 'lead' }, facts.description ?? ''), addTo,
      h('dl', {}, Object.entries(FACTS).filter(([name]) => facts[name]).map(([name, label]) => h('div', {}, h('dt', {}, label), h('dd', {}, shown(name, facts[name]))))),
      h('h2', {}, `Depends on ${depends.length || 'nothing'}`),
      h('ul', { className: 'names' }, depends.map(([name, more]) => h('li', {}, link(name), ' ', h('small', {}, more.version ?? '')))),
      h('h2', {}, 'Needed by'), needed)
  })
}

/** The packages that depend on it, in pages. */
async function showNeeding(session, id, place) {
  const list = h('ul', { className: 'names' }), more = h('button', { onclick: () => next() }, 'More')
  place.replaceChildren(list, more)
  let cursor
  const next = async () => {
    const out = await session.call('find', { c: 'Package', i: 'Sta', where: [{ f: 'depends', t: 'eq', v1: id }], limit: 60, ...(cursor ? { cursor } : {}) })
    cursor = out.cursor
    list.append(...out.ids.map((id) => h('li', {}, link(id))))
    more.hidden = !cursor
    if (!list.childElementCount) place.replaceChildren(h('p', { className: 'quiet' }, 'No package.'))
  }
  await next()
}

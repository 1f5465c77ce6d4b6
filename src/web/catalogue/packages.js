/* packages.js: the search, and the page of a package. */
import { $, h, link } from './page.js'

const ROWS = 40
/** What was read of those in the list. @type {Map<string, string>} */
const about = new Map()
let present = '' // what is on the screen

/** Not every package comes with a description. */
const summary = (facts) => facts?.description ?? (facts ? `${facts.section}, ${facts.version}` : '')

/** Those that begin with the words, then those that contain them. */
function search(names, words) {
  const first = [], others = []
  for (const name of names) {
    const at = name.indexOf(words)
    if (at === 0) first.push(name)
    else if (at > 0) others.push(name)
    if (first.length > ROWS) break
  }
  return [...first, ...others].slice(0, ROWS + 1)
}

export async function showFound(session, names) {
  const found = search(names, $('search').value.trim().toLowerCase()), rows = found.slice(0, ROWS)
  if (present === found.join()) return
  present = found.join()
  $('found').replaceChildren(
    h('ul', {}, rows.map((id) => h('li', {}, link(id), h('span', { className: 'about' }, about.get(id) ?? '')))),
    h('p', { className: 'quiet' }, found.length > ROWS ? 'There are more: type more of the name.' : found.length ? '' : 'No package has this name.'))
  const missing = rows.filter((id) => !about.has(id))
  if (!missing.length) return
  const { docs } = await session.call('get', { docs: missing.map((id) => ({ c: 'Package', id })) })
  for (const { id, items } of docs) about.set(id, summary(items?.find((item) => item.c === 'Sta')?.j))
  for (const li of $('found').querySelectorAll('li')) li.lastChild.textContent = about.get(li.firstChild.textContent) ?? ''
}

const FACTS = { version: 'Version', section: 'Section', priority: 'Priority', architecture: 'Architecture', maintainer: 'Maintainer', size: 'Download' }
const shown = (name, value) => name === 'size' ? `${Math.ceil(value / 1024).toLocaleString('en')} KB` : value

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

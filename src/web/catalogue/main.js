/* main.js: the sample application: Debian's packages, and lists of them that accounts share. */
import { open } from './stampd-client/index.js'
import { showBoard, showPhones } from './board.js'
import { addButtons, openTeam, showDoor, showList, showLists } from './lists.js'
import { loadNames } from './names.js'
import { showFound, showPackage } from './packages.js'
import { $ } from './page.js'

const session = await open({ ns: 'demo', name: 'catalogue' })
const team = await openTeam((fault) => say(`This was not saved: ${fault.message}`))
const say = (text) => { $('state').textContent = text }
let names = [], loading = '', end
const numbers = () => {
  const all = performance.getEntriesByType('resource'), kb = all.reduce((sum, one) => sum + one.transferSize, 0) / 1024
  if ($('count')) $('count').textContent = names.length.toLocaleString('en')
  for (const [id, value] of [['requests', all.length], ['kilobytes', `${Math.round(kb).toLocaleString('en')} KB`], ['last', `${Math.ceil(all.at(-1)?.duration ?? 0)} ms`]]) if ($(id)) $(id).textContent = value
}
new PerformanceObserver(numbers).observe({ type: 'resource' })

const find = () => showFound(session, names).catch(() => {}) // without a network there are no descriptions

loadNames(session, (now, isAll) => {
  names = now
  loading = isAll ? '' : `${now.length.toLocaleString('en')} packages loaded…`
  $('search').placeholder = isAll ? `Search ${now.length.toLocaleString('en')} packages` : 'Search packages'
  tell()
  find()
}).catch((fault) => { if (!names.length) say(fault.message) })

function tell() {
  const { pending, others, fault } = team.status.get(), whose = [...new Set(team.changes().filter((one) => !one.isOwn).map((one) => one.account))]
  const [away, when] = { SKEY: ['Your session has ended. Sign out, and in again.', 'then'], NETWORK: ['Offline.', 'when the network is back'] }[fault?.code] ?? []
  const waits = (count, whose, when) => count ? `${count} change${count > 1 ? 's' : ''} of ${whose} will be sent ${when}.` : ''
  say([away, away ? waits(pending, 'yours', when) : pending ? 'Saving…' : '', waits(others, `account ${whose.join(' and ')}`, 'when it signs in here again')].filter(Boolean).join(' ') || loading)
}

/** An address may have been typed by hand. */
function decoded(part) {
  try { return decodeURIComponent(part) } catch { return part }
}

function show() {
  end?.()
  const [what, id] = location.hash.slice(1).split('/').map(decoded)
  document.body.dataset.page = what || 'search'
  if (what === 'package') {
    const [row, endRow] = addButtons(team, id), endPackage = showPackage(session, id, row)
    end = () => { endRow(); endPackage() }
  } else if (what === 'lists') end = showLists(team)
  else if (what === 'list') end = showList(team, id)
  else if (what === 'board') end = showBoard(id)
  else if (what.startsWith('join=')) end = showDoor(team)
  else {
    $('page').replaceChildren($('start').content.cloneNode(true))
    end = showPhones($('phones'))
    numbers()
  }
  if (what) $('page').focus()
}

$('search').oninput = () => {
  if (location.hash && matchMedia('(max-width: 48rem)').matches) history.pushState(null, '', '#'), show()
  document.body.toggleAttribute('data-typing', $('search').value !== '')
  find()
}
$('search').form.onsubmit = (event) => event.preventDefault()
addEventListener('keydown', (event) => {
  if (event.key === '/' && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) event.preventDefault(), $('search').focus()
})
addEventListener('hashchange', show)
team.status.subscribe(tell)
show()
navigator.serviceWorker?.register('sw.js').catch(() => {}) // where the browser does not trust the certificate there is none

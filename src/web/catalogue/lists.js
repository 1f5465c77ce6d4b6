/* lists.js: lists of packages that accounts share: a document List, and a document Team with the accounts that may see and change it. */
import { open } from './stampd-client/index.js'
import { $, form, h, link } from './page.js'

export const me = JSON.parse(localStorage.getItem('me'))
const kept = `lists of ${me?.account}`
const ids = () => JSON.parse(localStorage.getItem(kept)) ?? []
const keep = (id) => localStorage.setItem(kept, JSON.stringify([...new Set([...ids(), id])]))

function enter(account) {
  localStorage.setItem('me', JSON.stringify(account))
  location.reload()
}

/** Copies of another account are in another database. */
export const openTeam = (refused) => open({ ns: 'team', name: me ? `team ${me.account}` : undefined, token: me?.token, live: Boolean(me), refused })

function showDoor(session) {
  $('page').replaceChildren(
    h('h1', {}, 'Lists of packages'),
    h('p', { className: 'lead' }, 'Make lists, share them with others, and edit them together, also without a network.'),
    form(async (values, operation) => enter(await session.call(operation, values)),
      h('label', {}, 'Name ', h('input', { name: 'name', required: true, autocomplete: 'username' })),
      h('label', {}, 'Password ', h('input', { name: 'password', type: 'password', minLength: 8, required: true, autocomplete: 'current-password' })),
      h('p', { className: 'row' }, h('button', { className: 'main', value: 'login' }, 'Sign in'), h('button', { value: 'register' }, 'Create an account'))))
}

/** Begins a list: its team first, since a team counts from the next change on. */
function create(session, title) {
  const id = crypto.randomUUID()
  session.doc('Team', id).change((team) => team.set('Member', me.account, { role: 'admin' }))
  session.doc('List', id).change((list) => list.set('Info', { team: id, title }))
  keep(id)
  return id
}

export function showLists(session) {
  if (!me) return showDoor(session)
  const names = h('ul', { className: 'names' })
  $('page').replaceChildren(
    h('h1', {}, 'My lists'), names,
    form(async ({ title }) => { location.hash = `list/${create(session, title)}` },
      h('label', {}, 'New list ', h('input', { name: 'title', required: true, maxLength: 80 })), h('button', {}, 'Create')),
    h('p', {}, 'Your account: ', h('code', { id: 'account' }, me.account), '. Others can share their lists with it.'),
    h('button', { onclick: () => session.call('logout').finally(() => enter(null)) }, `Sign out`))
  const ends = ids().map((id) => {
    const a = h('a', { href: `#list/${id}` })
    names.append(h('li', {}, a))
    return session.doc('List', id).subscribe((list) => { a.textContent = list.item('Info')?.title ?? '…' })
  })
  return () => ends.forEach((end) => end())
}

export function showList(session, id) {
  if (!me) return showDoor(session)
  const list = session.doc('List', id), team = session.doc('Team', id)
  const draw = () => {
    const { known, exists } = list.get(), people = team.get().items('Member')
    if (!exists) return $('page').replaceChildren(h('h1', {}, known ? 'This list is not shared with you' : 'Reading…'), h('p', {}, `Your account: ${me.account}`))
    keep(id)
    const remove = (name) => h('button', { ariaLabel: `Remove ${name}`, onclick: () => list.change((list) => list.remove('Package', name)) }, 'Remove')
    const packages = list.get().items('Package')
    $('entries').replaceChildren(...packages.map(([name]) => h('li', {}, link(name), remove(name))))
    $('title').textContent = list.get().item('Info').title
    $('people').textContent = packages.length ? `Shared by ${people.length === 1 ? 'you alone' : `${people.length} accounts`}.` : 'Open a package and press its button to add it.'
    $('invite').hidden = team.get().item('Member', me.account)?.role !== 'admin'
  }
  const place = () => {
    if (!$('entries') && list.get().exists) {
      $('page').replaceChildren(
        h('h1', { id: 'title' }), h('p', { id: 'people', className: 'lead' }), h('ul', { id: 'entries' }),
        h('div', { id: 'invite' }, form(async ({ account }) => { team.change((team) => team.set('Member', account.trim(), {})) },
          h('label', {}, 'Invite account ', h('input', { name: 'account', required: true, pattern: '\\s*\\S{22}\\s*' })), h('button', {}, 'Invite')),
        h('p', { className: 'quiet' }, 'Send the address of this page to the person whom you have invited.')))
    }
    draw()
  }
  const ends = [list.subscribe(place), team.subscribe(place)]
  return () => ends.forEach((end) => end())
}

/** Buttons that add a package to the lists, and remove it. */
export function addButtons(session, name) {
  const row = h('p', { className: 'row' })
  if (!me || !ids().length) row.append(h('a', { href: '#lists' }, me ? 'Make a list to add it to' : 'Sign in to make lists'))
  const ends = ids().map((id) => {
    const button = h('button')
    row.append(button)
    const list = session.doc('List', id)
    return list.subscribe((value) => {
      const isIn = value.item('Package', name) !== undefined
      button.hidden = !value.exists
      button.textContent = `${isIn ? 'Remove from' : 'Add to'} ${value.item('Info')?.title}`
      button.onclick = () => list.change((list) => isIn ? list.remove('Package', name) : list.set('Package', name, {}))
    })
  })
  return [row, () => ends.forEach((end) => end())]
}

/* lists.js: lists of packages that accounts share: a document List, and a document Team with the accounts that may see and change it. */
import { open } from './stampd-client/index.js'
import { $, form, h, link } from './page.js'
import { presence } from './presence.js'
import './stampd-client/sign_in.js'

export const me = JSON.parse(localStorage.getItem('me'))

/** An account joins a team: as a member, by whom the rules decide, and in the list by which each browser of the account finds the team. */
const join = (team, { account, name }, role) => (draft) =>
  draft.set('Member', account, { role, name }).set('All', { accounts: [...team.items('Member').map(([one]) => one), account] })

/** Calls `make(id)` for each list of the account, and again when the account has joined another; it returns what draws the list. */
function follow(session, place, make) {
  let ends = []
  const end = session.collection('Team', 'of', me.account, { match: (team) => team.item('Member', me.account) !== undefined }).subscribe((teams) => {
    ends.forEach((end) => end())
    place.replaceChildren()
    ends = teams.map(({ id }) => session.doc('List', id).subscribe(make(id)))
  })
  return () => [end, ...ends].forEach((end) => end())
}

const enter = (account) => { localStorage.setItem('me', JSON.stringify(account)); location.reload() }

/** Of those who invite at the same time, each has written all accounts: all of theirs are kept. */
const conflict = ({ item, mine, theirs }) => item === 'All' && mine && theirs ? { accounts: [...new Set([...theirs.accounts, ...mine.accounts])] } : item && mine

export const openTeam = (refused) => open({ ns: 'team', name: 'team', token: me?.token, live: Boolean(me), refused, conflict })

function showDoor(session) {
  $('page').replaceChildren($('door').content.cloneNode(true))
  $('page').querySelector('stampd-sign-in').addEventListener('sign-in', async ({ detail: { account, token } }) => {
    session.setToken(token, account)
    enter({ account, token, name: (await session.call('account')).name })
  })
}

/** Begins a list: its team first, since a team counts from the next change on. */
function create(session, title) {
  const id = crypto.randomUUID(), team = session.doc('Team', id)
  team.change(join(team.get(), me, 'admin'))
  session.doc('List', id).change((list) => list.set('Info', { team: id, title }))
  return id
}

export function showLists(session) {
  if (!me) return showDoor(session)
  const names = h('ul', { className: 'names' })
  $('page').replaceChildren(
    h('h1', {}, 'My lists'), names,
    form(async ({ title }) => { location.hash = `list/${create(session, title)}` },
      h('label', {}, 'New list ', h('input', { name: 'title', required: true, maxLength: 80 })), h('button', {}, 'Create')),
    h('p', {}, 'You are ', h('b', { id: 'name' }, me.name ?? me.account), '. Others share their lists with you by this name.'),
    h('button', { onclick: () => session.call('logout').finally(() => enter(null)) }, `Sign out`))
  return follow(session, names, (id) => {
    const a = names.appendChild(h('li')).appendChild(h('a', { href: `#list/${id}` }))
    return (list) => { a.textContent = list.item('Info')?.title ?? '…' }
  })
}

export function showList(session, id) {
  if (!me) return showDoor(session)
  const list = session.doc('List', id), team = session.doc('Team', id)
  const invite = async ({ name }) => {
    const { account } = await session.call('whois', { name })
    if (!account) throw new Error(`There is no account with the name ${name}.`)
    if (!team.get().item('Member', account)) team.change(join(team.get(), { account, name }))
  }
  const draw = () => {
    const { known, exists } = list.get(), people = team.get().items('Member'), packages = list.get().items('Package')
    if (!exists) return $('page').replaceChildren(h('h1', {}, known ? 'This list is not shared with you' : 'Reading…'), h('p', {}, `You are ${me.name}.`))
    if (!$('entries')) {
      $('page').replaceChildren(
        h('h1', { id: 'title' }), h('p', { id: 'people', className: 'lead' }), h('p', { id: 'here', className: 'here', role: 'status' }), h('ul', { id: 'entries' }),
        h('div', { id: 'invite' }, form(invite, h('label', {}, 'Invite by name ', h('input', { name: 'name', required: true, maxLength: 128, autocomplete: 'off' })), h('button', {}, 'Invite')),
          h('p', { className: 'quiet' }, 'The list is then among the lists of this person, in each browser.')))
    }
    const at = [...$('entries').children].findIndex((one) => one.contains(document.activeElement))
    $('entries').replaceChildren(...packages.map(([name]) => h('li', {}, link(name),
      h('button', { ariaLabel: `Remove ${name}`, onclick: () => list.change((list) => list.remove('Package', name)) }, 'Remove'))))
    if (at >= 0) ($('entries').querySelectorAll('button')[Math.min(at, packages.length - 1)] ?? $('page')).focus()
    $('title').textContent = list.get().item('Info').title
    $('people').textContent = [people.length === 1 ? 'Yours alone.' : `Shared by ${['you', ...people.filter(([one]) => one !== me.account).map(([, { name }]) => name ?? 'somebody')].join(', ')}.`, packages.length ? '' : 'Open a package and press its button to add it.'].join(' ')
    $('invite').hidden = team.get().item('Member', me.account)?.role !== 'admin'
  }
  const here = (names) => { if ($('here')) $('here').textContent = names.length ? `${[...new Set(names)].join(' and ')} ${names.length > 1 ? 'are' : 'is'} looking at this, too.` : '' }
  const ends = [...[list, team].map((one) => one.subscribe(draw)), presence(session, id, me.name ?? 'somebody', here)]
  return () => ends.forEach((end) => end())
}

/** Buttons that add a package to the lists, and remove it. */
export function addButtons(session, name) {
  const buttons = h('span', { className: 'row' }), toLists = (words) => h('a', { href: '#lists' }, words), row = h('p', { className: 'row' }, buttons, toLists('My lists'))
  if (!me) return [h('p', {}, toLists('Sign in to make lists')), () => {}]
  return [row, follow(session, buttons, (id) => {
    const button = buttons.appendChild(h('button'))
    return (list) => {
      const isIn = list.item('Package', name) !== undefined
      const onclick = () => session.doc('List', id).change((list) => isIn ? list.remove('Package', name) : list.set('Package', name, {}))
      Object.assign(button, { hidden: !list.exists, textContent: `${isIn ? 'Remove from' : 'Add to'} ${list.item('Info')?.title}`, onclick })
    }
  })]
}

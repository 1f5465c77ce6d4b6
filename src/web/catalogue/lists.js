/* lists.js: lists of packages that accounts share: a document List, and a document Team with the accounts that may see and change it. */
import { open } from './stampd-client/index.js'
import { $, form, h, link } from './page.js'
import { presence } from './presence.js'
import './stampd-client/sign_in.js'

export const me = JSON.parse(localStorage.getItem('me'))

/** An account joins a team: the rules decide by this item, and by its key each browser of the account finds the team. */
const join = ({ account, name }, role) => (draft) => draft.set('Member', account, { role, name })

/** Calls `make(id, isOwn)` for each list of the account, and again when the account has joined another; it returns what draws the list. */
function follow(session, places, make) {
  let ends = []
  const end = session.collection('Team', 'of', me.account, { match: (team) => team.item('Member', me.account) !== undefined }).subscribe((teams) => {
    ends.forEach((end) => end())
    places.forEach((place) => place.replaceChildren())
    ends = teams.map((team) => session.doc('List', team.id).subscribe(make(team.id, team.item('Member', me.account)?.role === 'admin')))
  })
  return () => [end, ...ends].forEach((end) => end())
}

const enter = (account) => { localStorage.setItem('me', JSON.stringify(account)); location.reload() }

export const openTeam = (refused) => open({ ns: 'team', name: 'team', token: me?.token, live: Boolean(me), refused })

/** Also where the link of an invitation leads: who is signed in has to accept it, everybody else signs in first. */
export function showDoor(session) {
  $('page').replaceChildren($('door').content.cloneNode(true))
  const door = $('page').querySelector('stampd-sign-in')
  if (me) door.token = me.token
  door.addEventListener('join', ({ detail: { id } }) => { if (me) location.hash = `list/${id}` })
  door.addEventListener('sign-in', async ({ detail: { account, token, joined } }) => {
    session.setToken(token, account)
    const { name } = await session.call('account')
    if (joined) location.hash = `list/${joined.id}`
    enter({ account, token, name })
  })
}

/** Begins a list: its team first, since a team counts from the next change on. */
function create(session, title) {
  const id = crypto.randomUUID(), team = session.doc('Team', id)
  team.change(join(me, 'admin'))
  session.doc('List', id).change((list) => list.set('Info', { team: id, title }))
  return id
}

export function showLists(session) {
  if (!me) return showDoor(session)
  const [own, shared] = [0, 1].map(() => h('ul', { className: 'names' }))
  $('page').replaceChildren(
    h('h1', {}, 'My lists'), own, h('p', { className: 'quiet none' }, 'You have no list yet. Create one here, then add packages to it.'),
    form(async ({ title }) => { location.hash = `list/${create(session, title)}` },
      h('label', {}, 'New list ', h('input', { name: 'title', required: true, maxLength: 80 })), h('button', {}, 'Create')),
    h('h2', {}, 'Shared with me'), shared, h('p', { className: 'quiet none' }, 'Nobody shares a list with you yet. Open the link of an invitation, or tell somebody your name.'),
    h('p', {}, 'You are ', h('b', { id: 'name' }, me.name ?? me.account), '. Others share their lists with you by this name.'),
    h('button', { onclick: () => session.call('logout').finally(() => enter(null)) }, `Sign out`))
  return follow(session, [own, shared], (id, isOwn) => {
    const a = (isOwn ? own : shared).appendChild(h('li')).appendChild(h('a', { href: `#list/${id}` }))
    return (list) => { a.textContent = list.item('Info')?.title ?? '…' }
  })
}

export function showList(session, id) {
  if (!me) return showDoor(session)
  const list = session.doc('List', id), team = session.doc('Team', id)
  const invite = async ({ name }) => {
    const { account } = await session.call('whois', { name })
    if (!account) throw new Error(`There is no account with the name ${name}.`)
    if (!team.get().item('Member', account)) team.change(join({ account, name }))
  }
  const share = async () => {
    await session.sync() // the list may be so new that the server does not have it yet
    const label = list.get().item('Info').title, { invitation } = await session.call('membership', { invite: { c: 'Team', id, name_as: 'name', label, uses: 10 } })
    const value = `${location.origin}${location.pathname}#join=${invitation}`
    $('link').replaceChildren('Send this link to ten people at most. It ends in a week. ', h('input', { readOnly: true, value, ariaLabel: 'Invitation link', onfocus: ({ target }) => target.select() }))
  }
  const draw = () => {
    const { known, exists } = list.get(), people = team.get().items('Member'), packages = list.get().items('Package')
    if (!exists) return $('page').replaceChildren(h('h1', {}, known ? 'This list is not shared with you' : 'Reading…'), h('p', {}, `You are ${me.name}.`))
    if (!$('entries')) {
      $('page').replaceChildren(
        h('h1', { id: 'title' }), h('p', { id: 'people', className: 'lead' }), h('p', { id: 'here', className: 'here', role: 'status' }), h('ul', { id: 'entries' }),
        h('div', { id: 'invite' }, form(invite, h('label', {}, 'Invite by name ', h('input', { name: 'name', required: true, maxLength: 128, autocomplete: 'off' })), h('button', {}, 'Invite')),
          h('p', { className: 'quiet' }, 'The list is then among the lists of this person, in each browser.'),
          form(share, h('button', {}, 'Make an invitation link')), h('p', { id: 'link' })))
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
  return [row, follow(session, [buttons], (id) => {
    const button = buttons.appendChild(h('button'))
    return (list) => {
      const isIn = list.item('Package', name) !== undefined
      const onclick = () => session.doc('List', id).change((list) => isIn ? list.remove('Package', name) : list.set('Package', name, {}))
      Object.assign(button, { hidden: !list.exists, textContent: `${isIn ? 'Remove from' : 'Add to'} ${list.item('Info')?.title}`, onclick })
    }
  })]
}

/* todo: a list that several accounts share.  The address of the page names the list: todo.html#id. */
import { open } from './stampd-client.js'

const $ = (id) => document.getElementById(id)
const me = JSON.parse(localStorage.getItem('me'))
const tell = (text) => { $('state').textContent = text }

// The copies of each account are kept apart.  Nobody follows a list before signing in.
const session = await open({
  ns: 'todo', name: me?.account, token: me?.token, live: Boolean(me),
  refused: (fault) => tell(`This was not saved: ${fault.message}`)
})

$('door').onsubmit = async (event) => {
  event.preventDefault()
  const { name, password } = event.target.elements
  try {
    enter(await session.call(event.submitter.value, { name: name.value, password: password.value })) // login or register
  } catch (fault) {
    tell(fault.message)
  }
}

function enter(account) {
  localStorage.setItem('me', JSON.stringify(account))
  location.reload()
}

function show(list) {
  list.subscribe((document) => {
    $('entries').replaceChildren(...document.items('Entry').map(([key, entry]) => row(list, key, entry)))
    $('add').hidden = !document.exists
    $('share').hidden = document.item('Info')?.owner !== me.account
    $('absent').hidden = !document.known || document.exists
  })
  session.status.subscribe(({ online, pending, fault }) => {
    tell(fault?.code === 'SKEY' ? 'Your session has ended. Sign out, and in again.' : online ? '' : `Offline, changes to be sent: ${pending}`)
  })
  $('add').onsubmit = (event) => {
    event.preventDefault()
    const key = `${Date.now().toString(36)}-${crypto.randomUUID()}` // in the order of their creation
    list.change((list) => list.set('Entry', key, { text: event.target.elements.text.value, done: false }))
    event.target.reset()
  }
  $('share').onsubmit = (event) => {
    event.preventDefault()
    list.change((list) => list.set('Share', event.target.elements.account.value, { role: 'writer' }))
    event.target.reset()
  }
}

function row(list, key, entry) {
  const li = document.createElement('li'), label = document.createElement('label')
  const box = Object.assign(document.createElement('input'), { type: 'checkbox', checked: entry.done })
  const remove = Object.assign(document.createElement('button'), { textContent: 'Remove', ariaLabel: `Remove ${entry.text}` })
  box.onchange = () => list.change((list) => list.set('Entry', key, { ...entry, done: box.checked }))
  remove.onclick = () => list.change((list) => list.remove('Entry', key))
  label.append(box, ' ', entry.text)
  li.append(label, remove)
  return li
}

if (me) {
  const id = location.hash.slice(1) || crypto.randomUUID(), list = session.doc('List', id)
  if (!location.hash) list.change((list) => list.set('Info', { owner: me.account }))
  history.replaceState(null, '', `#${id}`)
  addEventListener('hashchange', () => location.reload())
  $('account').textContent = me.account
  $('leave').onclick = () => session.call('logout').finally(() => enter(null))
  show(list)
}
$(me ? 'page' : 'door').hidden = false

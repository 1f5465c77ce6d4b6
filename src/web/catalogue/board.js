/* board.js: a shopping list on two phones: each is a session of its own, with its own copy, connection and network switch. */
import { open } from './stampd-client/index.js'
import { $, h } from './page.js'
import { presence } from './presence.js'

const FIRST = ['Bread', 'Apples', 'Coffee']

/** One phone with the document Board of this id.  `begin` opens the sessions; until then it shows what is to be stored. */
function device(id, name, { begin, changed, shown }) {
  let session, doc, isOver = false, cut = new AbortController(), refusal = '', others = []
  const ends = []
  const list = h('ul'), note = h('p', { role: 'status' }), field = h('input', { ariaLabel: `Add on ${name}`, placeholder: 'Add something', maxLength: 80, autocomplete: 'off' })
  const isOn = h('input', { type: 'checkbox', checked: true, onchange: () => { cut.abort(); cut = new AbortController(); tell() } })
  const fetchIfOn = (address, init) => isOn.checked
    ? fetch(address, { ...init, signal: AbortSignal.any([cut.signal, ...init?.signal ? [init.signal] : []]) })
    : Promise.reject(new TypeError('The network of this phone is off.'))
  const change = async (how) => { await begin(); changed(one); doc.change(how).catch((fault) => { refusal = fault.message; tell() }) }
  const row = ([key, { text, done }]) => h('li', { id: `${name} ${key}` },
    h('label', {}, h('input', { type: 'checkbox', checked: Boolean(done), onchange: ({ target }) => change((list) => list.set('Entry', key, { text, done: target.checked })) }), h('span', {}, text)),
    h('button', { ariaLabel: `Remove ${text}`, onclick: () => change((list) => list.remove('Entry', key)) }, '×'))
  const draw = (entries) => {
    const held = list.contains(document.activeElement) && document.activeElement.closest('li').id
    list.replaceChildren(...entries.map(row))
    if (held) (document.getElementById(held) ?? list).querySelector('input')?.focus()
  }
  const tell = () => {
    const { pending = 0 } = session?.status.get() ?? {}, waits = pending ? `${pending} change${pending > 1 ? 's' : ''} ${isOn.checked ? 'on the way' : 'will be sent later'}` : ''
    note.textContent = refusal || [isOn.checked ? others.length ? `Also here: ${[...new Set(others)].join(', ')}` : '' : 'Offline', waits].filter(Boolean).join(' · ') || 'Nobody else is here'
  }
  const one = {
    isOn, name, draw,
    async open() {
      session = await open({ ns: 'team', fetch: fetchIfOn, backoff: { least: 200, most: 1000 } })
      doc = session.doc('Board', id)
    },
    follow() {
      if (!isOver) ends.push(doc.subscribe((board) => { if (board.known) { draw(board.items('Entry')); shown(one) } }), session.status.subscribe(tell), presence(session, id, name, (names) => { others = names; tell() }))
    },
    fill: () => doc.change((list) => FIRST.forEach((text, i) => list.set('Entry', `0${i}`, { text }))),
    read: () => session.sync(),
    end() { isOver = true; ends.forEach((end) => end()); void session?.close() },
    element: h('section', { className: 'device', ariaLabel: name },
      h('header', {}, h('b', {}, name), h('label', { className: 'switch' }, isOn, 'Network')), list,
      h('form', { onsubmit: (event) => {
        event.preventDefault()
        const text = field.value.trim()
        field.value = ''
        if (text) void change((list) => list.set('Entry', `${Date.now()}`, { text }))
      } }, field, h('button', {}, 'Add')), note)
  }
  draw(FIRST.map((text, i) => [`0${i}`, { text }]))
  note.textContent = 'Press a line to begin.'
  return one
}

/** Two phones in a page; nothing is sent until somebody uses one.  Returns what ends them. */
export function showPhones(place) {
  const id = crypto.randomUUID()
  let begun, sent
  const begin = () => begun ??= Promise.all(phones.map((one) => one.open())).then(() => phones[0].fill()).then(() => phones[1].read()).then(() => phones.forEach((one) => one.follow()))
  const changed = (by) => { sent = phones.every((one) => one.isOn.checked) ? { by, at: performance.now() } : undefined }
  const shown = (one) => {
    if (!sent || sent.by === one || !$('between')) return
    $('between').textContent = `${Math.ceil(performance.now() - sent.at)} ms`
    sent = undefined
  }
  const phones = ['Ann’s phone', 'Bob’s phone'].map((name) => device(id, name, { begin, changed, shown }))
  place.replaceChildren(...phones.map((one) => one.element))
  $('another').href = `#board/${id}`
  $('another').onclick = () => void begin()
  return () => phones.forEach((one) => one.end())
}

/** The same list in a window of its own. */
export function showBoard(id) {
  const one = device(id, 'This window', { begin: async () => {}, changed() {}, shown() {} })
  one.draw([])
  $('page').replaceChildren(h('h1', {}, 'The list of the two phones'), h('p', { className: 'lead' }, 'Change it here, and watch the phones; or change it there.'), h('div', { className: 'phones' }, one.element))
  const opened = one.open().then(() => one.follow())
  return () => opened.then(() => one.end())
}

/* palette.jsx: places of the console by some letters of their names: Ctrl+K. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Icon } from './icons.jsx'
import { call, collect } from './server.js'
import { place } from './words.js'

const MOST = 12

/* All letters are there, in their order. */
function isLike(text, typed) {
  let at = 0
  for (const letter of typed.toLowerCase().replace(/\s+/g, '')) {
    at = text.indexOf(letter, at) + 1
    if (!at) return false
  }
  return true
}

async function readPlaces(pages, tabs, ns) {
  const list = await collect((cursor) => call('z', 'ns', { list: { cursor } }), 'namespaces').catch(() => [])
  const { classes = [] } = ns ? await call(ns, 'list').catch(() => ({})) : {}
  return [
    ...(ns ? tabs.map(([tab, words]) => [`${ns} › ${words}`, place('ns', ns, tab)]) : []), ...classes.map((one) => [`${ns} › ${one}`, place('ns', ns, 'documents', one)]),
    ['Namespaces', place()], ...Object.entries(pages).map(([name, [words]]) => [words, place(name)]),
    ...list.filter((one) => one.ns !== ns).flatMap((one) => tabs.map(([tab, words]) => [`${one.ns} › ${words}`, place('ns', one.ns, tab)])),
  ]
}

export function Palette({ pages, tabs, ns }) {
  const dialog = useRef(null)
  const [typed, setTyped] = useState('')
  const [places, setPlaces] = useState([])
  const [at, setAt] = useState(0)
  const open = async () => {
    setTyped('')
    setAt(0)
    if (!dialog.current.open) dialog.current.showModal()
    setPlaces(await readPlaces(pages, tabs, ns))
  }
  const latest = useRef(open) // an effect that depends on `ns` would run after the page is drawn, and a press before would mean the former one
  latest.current = open
  useEffect(() => {
    const press = (event) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      void latest.current()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  const found = places.filter(([words]) => isLike(words.toLowerCase(), typed)).slice(0, MOST)
  const go = (address) => {
    dialog.current.close()
    if (address) location.hash = address
  }
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step && found.length) setAt((at + step + found.length) % found.length)
    if (event.key === 'Enter') go(found[at]?.[1])
    if (step || event.key === 'Enter') event.preventDefault()
  }
  return (
    <>
      <button type="button" class="small" onClick={open} aria-keyshortcuts="Control+K"><Icon name="search" />Go to… <kbd>Ctrl K</kbd></button>
      <dialog ref={dialog} class="palette" aria-label="Go to">
        <input role="combobox" aria-label="Go to" aria-expanded="true" aria-controls="places" aria-activedescendant={found[at] && `place-${at}`} value={typed} placeholder="A page, a namespace, a class"
          autocomplete="off" spellcheck={false} onInput={(event) => { setTyped(event.currentTarget.value); setAt(0) }} onKeyDown={press} />
        <ul id="places" role="listbox" aria-label="Places">
          {found.map(([words, address], i) => <li key={address} id={`place-${i}`} role="option" aria-selected={i === at} onClick={() => go(address)}>{words}</li>)}
        </ul>
        {places.length > 0 && !found.length && <p class="empty" role="status">No place has these letters in this order. Try fewer.</p>}
      </dialog>
    </>
  )
}

/* document.jsx: one document: its versions and items, which can be edited.  A change is refused when another client was faster. */
import { useEffect, useState } from 'preact/hooks'
import { Attachment, isAttachment, NewAttachment } from './attachments.jsx'
import { JsonArea } from './code.jsx'
import { Conflict } from './conflict.jsx'
import { Members, membersOf } from './form.jsx'
import { Icon } from './icons.jsx'
import { Badge, Confirmed, Field, Form, Read, Refused, Table, TextField, Time, useAction, useRead } from './parts.jsx'
import { Rights } from './rights.jsx'
import { call, sync } from './server.js'
import { CopyAs } from './snippets.jsx'
import { place } from './words.js'

const ITEMS = 50 // drawn at a time: each is an editor

const nameOf = ({ c, k = '' }) => `${c}/${k}`

/* An item as text: JSON, or raw. */
function textOf(item) {
  return 's' in item ? item.s : JSON.stringify(item.j, null, 2)
}

function Item({ ns, class_, id, item, members, draft, set }) {
  const isRaw = 's' in item
  const text = draft === undefined ? textOf(item) : draft
  const rows = Math.min(20, Math.max(2, (text ?? '').split('\n').length))
  const label = (
    <>
      {item.c}{item.k !== undefined && <> / {item.k}</>} {isRaw && <Badge kind="quiet">raw text</Badge>} {item.isNew && <Badge kind="quiet">new</Badge>}
    </>
  )
  if (draft === null) {
    return (
      <div class="item">
        <p><s>{label}</s> will be removed. <button type="button" onClick={() => set(undefined)}>Keep</button></p>
      </div>
    )
  }
  return (
    <div class="item">
      {isAttachment(item) ? (
        <>
          <h3>{label}</h3>
          <Attachment ns={ns} class_={class_} id={id} item={item} />
        </>
      ) : (
        <>
          {!isRaw && <Members members={members} text={text} set={set} />}
          <Field label={label}>
            {(field) => (isRaw
              ? <textarea id={field} rows={rows} spellcheck={false} value={text} onInput={(event) => set(event.currentTarget.value)} />
              : <JsonArea id={field} rows={rows} value={text} set={set} />)}
          </Field>
        </>
      )}
      <p class="hint">{item.v ? <>Changed <Time stamp={item.v} /></> : 'Not stored yet'} <button type="button" onClick={() => set(null)}><Icon name="remove" />Remove</button></p>
    </div>
  )
}

/* Edits that are not saved, of each document that was left with some: {v, added, drafts}.  They end with the page. */
const unsaved = new Map()
addEventListener('beforeunload', (event) => { if (unsaved.size) event.preventDefault() })

/* The items of `put` for what was edited; throws when a text is not JSON. */
function changesOf(items, drafts) {
  return Object.entries(drafts).filter(([, draft]) => draft !== undefined).flatMap(([name, draft]) => {
    const item = items.find((one) => nameOf(one) === name)
    const address = { c: item.c, ...(item.k !== undefined && { k: item.k }) }
    if (draft === null) return item.isNew ? [] : [{ ...address, del: true }]
    if ('s' in item) return [{ ...address, s: draft }]
    try {
      return [{ ...address, j: JSON.parse(draft) }]
    } catch (error) {
      throw new Error(`${name}: ${error.message}`)
    }
  })
}

function NewItem({ add }) {
  const [form, setForm] = useState({ c: '', k: '', isRaw: false })
  return (
    <Form class="row" action={() => { add(form); setForm({ ...form, k: '' }) }}>
      <TextField label="Class of the item" value={form.c} set={(c) => setForm({ ...form, c })} required />
      <TextField label="Key" hint="Empty: the only one of its class." value={form.k} set={(k) => setForm({ ...form, k })} />
      <label class="check"><input type="checkbox" checked={form.isRaw} onChange={(event) => setForm({ ...form, isRaw: event.currentTarget.checked })} /> raw text</label>
      <button><Icon name="add" />Add an item</button>
    </Form>
  )
}

function Editor({ ns, class_, id, document, declared, saved }) {
  const address = JSON.stringify([ns, class_, id])
  const [kept] = useState(unsaved.get(address))
  const [added, setAdded] = useState(kept?.added ?? [])
  const [drafts, setDrafts] = useState(kept?.drafts ?? {})
  const [lost, setLost] = useState(null)
  const [filter, setFilter] = useState('')
  const [most, setMost] = useState(ITEMS)
  const { run, refusal, isBusy } = useAction()
  // those of an item that others have removed meanwhile
  const gone = (kept?.former ?? []).filter((item) => drafts[nameOf(item)] && !document.items.some((one) => nameOf(one) === nameOf(item))).map((item) => ({ ...item, isNew: true }))
  const news = [...added.filter((item) => !document.items.some((one) => nameOf(one) === nameOf(item))), ...gone]
  const items = [...document.items, ...news]
  const found = filter ? document.items.filter((item) => nameOf(item).includes(filter)) : document.items
  const rest = Math.max(0, found.length - most)
  const isChanged = Object.values(drafts).some((draft) => draft !== undefined)
  const add = ({ c, k, isRaw }) => {
    const item = { c, ...(k && { k }), ...(isRaw ? { s: '' } : { j: {} }), isNew: true }
    if (items.some((one) => nameOf(one) === nameOf(item))) return
    setAdded([...added, item])
    setDrafts({ ...drafts, [nameOf(item)]: textOf(item) })
  }
  useEffect(() => {
    if (isChanged) unsaved.set(address, { v: kept?.v ?? document.v, former: kept?.former ?? document.items, added, drafts })
    else unsaved.delete(address)
  }, [added, drafts])
  const end = () => {
    unsaved.delete(address)
    saved()
  }
  const put = (change, version = document.v) => run(async () => {
    const more = change()
    setLost(null)
    try {
      await call(ns, 'put', { docs: [{ c: class_, id, if: version, ...more }] })
    } catch (fault) {
      if (fault.code === 'AVERSION' && more.items) setLost(more.items)
      throw fault
    }
    end()
  })
  return (
    <>
      {kept && isChanged && (
        <p class="warning" role="status">
          Your edits are still here, and not saved. {kept.v !== document.v && 'Others have changed the document since you began: what you save replaces the items that you have edited.'}
        </p>
      )}
      <p>
        {document.v === 0 ? 'This document does not exist yet.' : <>Changed <Time stamp={document.v} />, created <Time stamp={document.ct} />.</>}
        {document.w && <> <Badge kind="warn">partly hidden</Badge></>}
      </p>
      {document.items.length > ITEMS && (
        <div class="row">
          <TextField label="Items" hint={`A part of Class/key. ${found.length.toLocaleString('en')} of ${document.items.length.toLocaleString('en')} items.`} value={filter} set={setFilter} />
        </div>
      )}
      <Form action={() => put(() => ({ items: changesOf(items, drafts) }))}>
        {[...found.slice(0, most), ...news].map((item) => (
          <Item key={nameOf(item)} ns={ns} class_={class_} id={id} item={item} members={membersOf(declared[item.c])} draft={drafts[nameOf(item)]} set={(draft) => setDrafts({ ...drafts, [nameOf(item)]: draft })} />
        ))}
        {!found.length && !news.length && <p class="empty">{filter ? `No item has “${filter}” in its class or key. Try fewer letters.` : 'There are no items. Add the first one below.'}</p>}
        {rest > 0 && <p><button type="button" onClick={() => setMost(most + ITEMS)}>Show {Math.min(rest, ITEMS)} more of {rest.toLocaleString('en')}</button></p>}
        <Refused refusal={refusal} />
        {lost && <Conflict ns={ns} class_={class_} id={id} mine={lost} former={document.items} save={(version) => put(() => ({ items: lost }), version)} />}
        <div class="row bar">
          <button class="main" disabled={isBusy || (document.v !== 0 && !isChanged)}><Icon name="save" />{document.v === 0 ? 'Create' : 'Save'}</button>
          <button type="button" onClick={end}><Icon name="refresh" />{isChanged ? 'Discard and refresh' : 'Refresh'}</button>
          {document.v !== 0 && (
            <Confirmed label="Delete" question={`Delete the document ${class_} ${id} with all its items?`} action={() => put(() => ({ delete: true }))} disabled={isBusy} />
          )}
        </div>
      </Form>
      <NewItem add={add} />
      {document.v !== 0 && <NewAttachment ns={ns} class_={class_} id={id} saved={saved} />}
      {document.v !== 0 && <Removed ns={ns} document={document} />}
      <CopyAs ns={ns} operation="get" param={{ docs: [{ c: class_, id }] }} />
      <Rights ns={ns} class_={class_} id={id} />
    </>
  )
}

/* The tombstones: a copy of the time from which the server remembers removals would lack all of them. */
function RemovedItems({ ns, document: { c, id, ct, dt } }) {
  const read = useRead(() => sync(ns, { c, id, v: dt, ct, dt }), [ns, c, id])
  const row = (one) => (
    <tr key={nameOf(one)}>
      <th scope="row">{one.c}{one.k !== undefined && <> / {one.k}</>}</th>
      <td><Time stamp={one.v} /></td>
    </tr>
  )
  return (
    <>
      <h2>Removed items</h2>
      <p class="hint">Clients with copies learn of these removals. Those before <Time stamp={dt} /> are forgotten.</p>
      <Read of={read}>{({ dels = [] }) => <Table caption="Removed items" heads={['Item', 'Removed']} rows={dels.map(row)} empty="No item was removed since then." />}</Read>
    </>
  )
}

function Removed(of) {
  const [isShown, setShown] = useState(false)
  return isShown ? <RemovedItems {...of} /> : <p><button type="button" onClick={() => setShown(true)}>Show removed items</button></p>
}

export function Document({ ns, class_, id }) {
  const [edition, setEdition] = useState(0)
  const document = useRead(async () => {
    const [{ docs }, applied] = await Promise.all([call(ns, 'get', { docs: [{ c: class_, id }] }), call(ns, 'schema')])
    return { ...docs[0], declared: applied.schema.classes[class_]?.items ?? {} }
  }, [ns, class_, id, edition])
  return (
    <>
      <p class="trail">
        <a href={place('ns', ns, 'documents')}>Classes</a> › <a href={place('ns', ns, 'documents', class_)}>{class_}</a> › {id}
      </p>
      <Read of={document}>
        {(value) => <Editor key={`${edition} ${value.v}`} ns={ns} class_={class_} id={id} document={value} declared={value.declared} saved={() => setEdition(edition + 1)} />}
      </Read>
    </>
  )
}

/* documents.jsx: the classes of a namespace, and the documents of one: by the beginning of their id, or by what their items contain. */
import { useState } from 'preact/hooks'
import { Columns, searchable } from './columns.jsx'
import { Form, Read, Refused, Table, TextField, Time, useAction, useRead } from './parts.jsx'
import { Query } from './query.jsx'
import { call } from './server.js'
import { CopyAs } from './snippets.jsx'
import { place } from './words.js'

const PAGE = 100

function Classes({ ns }) {
  const [name, setName] = useState('')
  const classes = useRead(() => call(ns, 'list'), [ns])
  const go = () => { location.hash = place('ns', ns, 'documents', name.trim()) }
  return (
    <>
      <Read of={classes}>
        {({ classes: names }) => (names.length
          ? <ul class="names">{names.map((one) => <li key={one}><a href={place('ns', ns, 'documents', one)}>{one}</a></li>)}</ul>
          : <p class="empty">There are no documents yet. Name a class below to write the first one, or load a file: <code>stampctl load</code>.</p>)}
      </Read>
      <Form action={go} class="row">
        <TextField label="Another class" value={name} set={setName} required />
        <button>Show</button>
      </Form>
    </>
  )
}

/* Pages of a list or of a search; `read(cursor)` returns {rows, cursor}. */
function Pages({ read, inputs, row, heads, caption, empty }) {
  const [more, setMore] = useState({ rows: [], cursor: null })
  const { run, refusal, isBusy } = useAction()
  const first = useRead(async () => {
    const page = await read()
    setMore({ rows: [], cursor: page.cursor })
    return page
  }, inputs)
  const next = () => run(async () => {
    const page = await read(more.cursor)
    setMore({ rows: [...more.rows, ...page.rows], cursor: page.cursor })
  })
  return (
    <Read of={first}>
      {(page) => (
        <>
          <Table caption={caption} heads={heads} rows={[...page.rows, ...more.rows].map(row)} empty={empty} />
          <Refused refusal={refusal} />
          {more.cursor && <button type="button" disabled={isBusy} onClick={next}>More</button>}
        </>
      )}
    </Read>
  )
}

function List({ ns, class_ }) {
  const [prefix, setPrefix] = useState('')
  const read = async (cursor) => {
    const page = await call(ns, 'list', { c: class_, limit: PAGE, ...(prefix && { prefix }), ...(cursor && { cursor }) })
    return { rows: page.docs, cursor: page.cursor }
  }
  const row = (one) => (
    <tr key={one.id}>
      <th scope="row"><a href={place('ns', ns, 'documents', class_, one.id)}>{one.id}</a></th>
      <td><Time stamp={one.v} /></td>
      <td><Time stamp={one.ct} /></td>
    </tr>
  )
  return (
    <>
      <TextField label="Id begins with" value={prefix} set={setPrefix} />
      <Pages read={read} inputs={[ns, class_, prefix]} row={row} heads={['Id', 'Changed', 'Created']} caption={`Documents of ${class_}`}
        empty={prefix ? `No id of ${class_} begins with “${prefix}”. Try fewer letters.` : `There are no documents of ${class_}. Write the first one: “New document” below.`} />
      <CopyAs ns={ns} operation="list" param={{ c: class_, limit: PAGE, ...(prefix && { prefix }) }} />
    </>
  )
}

/* By the columns that are declared, or else by ids. */
function Content({ ns, class_ }) {
  const schema = useRead(() => call(ns, 'schema'), [ns])
  const byId = <List ns={ns} class_={class_} />
  return (
    <Read of={schema}>
      {(applied) => {
        const items = searchable(applied.schema.classes[class_])
        if (!items.length) return byId
        return (
          <>
            <Columns ns={ns} class_={class_} items={items} />
            <Later summary="All documents by their ids">{byId}</Later>
          </>
        )
      }}
    </Read>
  )
}

/* What is read when it is opened. */
function Later({ summary, children }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children}
    </details>
  )
}

function Class({ ns, class_ }) {
  const [id, setId] = useState('')
  return (
    <>
      <p class="trail"><a href={place('ns', ns, 'documents')}>Classes</a> › {class_}</p>
      <Content ns={ns} class_={class_} />
      <details>
        <summary>Query</summary>
        <Query ns={ns} class_={class_} />
      </details>
      <details>
        <summary>New document</summary>
        <Form action={() => { location.hash = place('ns', ns, 'documents', class_, id) }} class="row">
          <TextField label="Id" value={id} set={setId} required />
          <button>Edit</button>
        </Form>
      </details>
    </>
  )
}

export const Documents = ({ ns, class_ }) => (class_ ? <Class ns={ns} class_={class_} /> : <Classes ns={ns} />)

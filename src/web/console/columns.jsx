/* columns.jsx: the documents of a class as a table with a column for each declared field, which the server sorts and filters.  It follows the class. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Icon } from './icons.jsx'
import { ChoiceField, Refused, Time, useAction, useRead } from './parts.jsx'
import { call, follow } from './server.js'
import { CopyAs } from './snippets.jsx'
import { place } from './words.js'

const PAGE = 50, COLUMNS = 8, PAUSE_MS = 250, FRESH_MS = 5000
const TESTS = { '=': 'eq', '!': 'ne', '<': 'lt', '<=': 'le', '>': 'gt', '>=': 'ge' }

/* The items of a class that have fields: [[name, fields, isSingleton]…]. */
export const searchable = (declared) => Object.entries(declared?.items ?? {}).filter(([, { fields }]) => fields && Object.keys(fields).length)
  .map(([name, { fields, singleton }]) => [name, fields, Boolean(singleton)])

/* What was typed over a column as a condition: of a string its beginning, of others the value, unless a sign says otherwise. */
export function conditionOf(field, type, text) {
  const [, sign, value] = /^\s*(<=|>=|[=!<>])?\s*(.*?)\s*$/.exec(text)
  if (!value) return null
  if (typeof type !== 'string') return { f: field, t: 'match', v1: value }
  if (/^(int|long|double)/.test(type)) return { f: field, t: TESTS[sign] ?? 'eq', v1: Number(value) }
  return { f: field, t: TESTS[sign] ?? (type.startsWith('hash') ? 'eq' : 'sw'), v1: value }
}

const shown = (value) => (value === undefined || value === null ? '' : Array.isArray(value) ? value.join(', ') : typeof value === 'object' ? JSON.stringify(value) : String(value))

/* A value that follows another one when that has stood still for a moment. */
function useStill(value) {
  const [still, set] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => set(value), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [value])
  return still
}

const keyOf = ({ id, k = '' }) => `${id} ${k}`

/* Pages of a search, read again when the class changes; `fresh` are the rows that have come or changed since. */
function usePages(ns, param) {
  const [more, setMore] = useState({ rows: [], cursor: null, of: null })
  const [fresh, setFresh] = useState(new Set())
  const { run, refusal, isBusy } = useAction()
  const former = useRef(null)
  const text = JSON.stringify(param)
  const first = useRead(async () => {
    const page = await call(ns, 'find', param)
    const versions = new Map(page.items.map((one) => [keyOf(one), one.v]))
    if (former.current?.text === text) setFresh(new Set([...versions].filter(([key, v]) => former.current.versions.get(key) !== v).map(([key]) => key)))
    former.current = { text, versions }
    return page
  }, [ns, text])
  useEffect(() => {
    let timer
    const end = follow(ns, [param.c], () => {
      clearTimeout(timer)
      timer = setTimeout(first.again, PAUSE_MS)
    })
    return () => { clearTimeout(timer); end() }
  }, [first.again])
  useEffect(() => {
    const timer = setTimeout(() => setFresh(new Set()), FRESH_MS)
    return () => clearTimeout(timer)
  }, [fresh])
  const added = more.of === text ? more : { rows: [], cursor: first.value?.cursor }
  const next = () => run(async () => {
    const page = await call(ns, 'find', { ...param, cursor: added.cursor })
    setMore({ rows: [...added.rows, ...page.items], cursor: page.cursor, of: text })
  })
  return { first, rows: [...first.value?.items ?? [], ...added.rows], cursor: added.cursor, fresh, next, refusal, isBusy }
}

const isNumber = (type) => /^(int|long|double)$/.test(type)

function Sorted({ name, order, set, kind }) {
  const way = order === name ? 'ascending' : order === `-${name}` ? 'descending' : 'none'
  const next = { none: name, ascending: `-${name}`, descending: '' }[way]
  return (
    <th scope="col" aria-sort={way} class={kind}>
      <button type="button" class="sort" onClick={() => set(next)}>{name} <Icon name={way} /></button>
    </th>
  )
}

function Grid({ ns, class_, item, fields, isSingleton }) {
  const [order, setOrder] = useState('')
  const [texts, setTexts] = useState({})
  const still = useStill(texts)
  const names = Object.keys(fields).slice(0, COLUMNS)
  const where = names.map((name) => conditionOf(name, fields[name], still[name] ?? '')).filter(Boolean)
  const prefix = (still[''] ?? '').trim()
  const param = { c: class_, i: item, where, want: names, limit: PAGE, ...(order && { order }), ...(prefix && { id: { t: 'sw', v1: prefix } }) }
  const { first, rows, cursor, fresh, next, refusal, isBusy } = usePages(ns, param)
  const kind = (name) => (isNumber(fields[name]) ? 'number' : '')
  const filter = (name, label) => (
    <td key={name} class={kind(name)}>
      <input aria-label={label} value={texts[name] ?? ''} placeholder="filter" autocomplete="off" spellcheck={false} onInput={({ currentTarget: { value } }) => setTexts({ ...texts, [name]: value })} />
    </td>
  )
  const row = (one) => (
    <tr key={keyOf(one)} class={fresh.has(keyOf(one)) ? 'fresh' : ''}>
      <th scope="row">
        <a href={place('ns', ns, 'documents', class_, one.id)}>{one.id}</a>
        {fresh.has(keyOf(one)) && <span class="dot" role="img" aria-label="changed just now" title="changed just now" />}
      </th>
      {!isSingleton && <td>{one.k}</td>}
      {names.map((name) => <td key={name} class={kind(name) || 'cell'}>{shown(one.j?.[name])}</td>)}
      <td><Time stamp={one.v} /></td>
    </tr>
  )
  const sortable = (name) => typeof fields[name] === 'string' && !/\[\]$|^hash/.test(fields[name])
  const caption = `Documents of ${class_} by ${item}`
  const isFiltered = where.length > 0 || prefix
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table class="grid">
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr>
              <th scope="col">Id</th>
              {!isSingleton && <th scope="col">Key</th>}
              {names.map((name) => (sortable(name) ? <Sorted key={name} name={name} order={order} set={setOrder} kind={kind(name)} /> : <th key={name} scope="col" class={kind(name)}>{name}</th>))}
              <th scope="col">Changed</th>
            </tr>
            <tr class="filters">
              {filter('', 'Filter by the beginning of the id')}
              {!isSingleton && <td />}
              {names.map((name) => filter(name, `Filter ${name}`))}
              <td />
            </tr>
          </thead>
          <tbody>{rows.map(row)}</tbody>
        </table>
        {first.value && !rows.length && <p class="empty">{isFiltered ? 'Nothing matches these filters. Remove one of them.' : `No document of ${class_} has an item ${item}.`}</p>}
      </div>
      <Refused refusal={first.refusal ?? refusal} />
      <p class="hint">
        Text finds what begins with it. Put = ! &lt; &lt;= &gt; or &gt;= before a value to compare it. {order && <>What has no value of {order.replace('-', '')} is not shown.</>}
      </p>
      <div class="row">
        {cursor && <button type="button" disabled={isBusy} onClick={next}>More</button>}
        <CopyAs ns={ns} operation="find" param={param} />
      </div>
    </>
  )
}

export function Columns({ ns, class_, items }) {
  const [name, setName] = useState(items[0][0])
  const [item, fields, isSingleton] = items.find(([one]) => one === name) ?? items[0]
  return (
    <>
      {items.length > 1 && <div class="row"><ChoiceField label="Items" value={item} set={setName} choices={items.map(([one]) => [one, one])} /></div>}
      <Grid key={item} ns={ns} class_={class_} item={item} fields={fields} isSingleton={isSingleton} />
    </>
  )
}

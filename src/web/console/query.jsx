/* query.jsx: a search as the operation find takes it, the index that it needs, and its pages. */
import { useState } from 'preact/hooks'
import { Json, JsonArea } from './code.jsx'
import { ChoiceField, Field, Form, Read, Refused, Table, TextField, useAction, useRead } from './parts.jsx'
import { call } from './server.js'
import { place } from './words.js'

const PAGE = 100
const WANTED = [['items', 'items'], ['ids', 'ids'], ['docs', 'whole documents'], ['count', 'their number']]

const nameOf = (term) => term.replace(/^-/, '')
const reversed = (term) => (term.startsWith('-') ? term.slice(1) : `-${term}`)
const isSame = (one, other) => one.length === other.length && one.every((term, i) => term === other[i])

/* The index that callers without the key need for this order: the fields of eq, then those of the order.  Null: its own fields' serve it, or the
 * conditions are in groups. */
export function neededIndex({ fields = {}, indexes = [] }, where, order) {
  const fixed = [...new Set(where.filter(({ i, t, f }) => !i && t === 'eq' && typeof fields[f] === 'string' && !fields[f].endsWith('[]')).map(({ f }) => f))]
  const rest = order.filter((term) => !fixed.includes(nameOf(term)))
  if (fixed.length + rest.length < 2 || !order.length || where.some((one) => !one.f)) return null
  const serves = (index) => {
    const [first, last] = [index.slice(0, fixed.length), index.slice(fixed.length)]
    return index.length === fixed.length + rest.length && fixed.every((name) => first.map(nameOf).includes(name)) && (isSame(last, rest) || isSame(last, rest.map(reversed)))
  }
  return { index: [...fixed, ...rest], isDeclared: indexes.some(serves) }
}

function Plan({ item, where, order }) {
  const needed = item && neededIndex(item, where, order)
  if (!item) return <p class="hint">The schema declares no fields of these items.</p>
  if (!needed) return null
  return (
    <p class="hint">
      {needed.isDeclared ? 'An index that is declared serves this order: ' : 'With the key it is sorted each time; without it this order is refused until the schema declares the index '}
      <Json value={needed.index} />.
    </p>
  )
}

/* What is typed, as the operation takes it; throws if it is not JSON. */
const read = ({ where, order }) => ({
  where: where.trim() ? [JSON.parse(where)].flat() : [],
  order: order.split(',').map((one) => one.trim()).filter(Boolean),
})

export function Query({ ns, class_ }) {
  const [form, setForm] = useState({ item: 'Main', where: '', order: '', want: 'items' })
  const [found, setFound] = useState(null)
  const { run, refusal, isBusy } = useAction()
  const schema = useRead(() => call(ns, 'schema'), [ns])
  const set = (name) => (value) => setForm({ ...form, [name]: value })
  const ask = async (param, rows = [], cursor = undefined) => {
    const page = await call(ns, 'find', { ...param, ...(cursor && { cursor }) })
    setFound({ param, count: page.count, rows: [...rows, ...page.items ?? page.docs ?? page.ids ?? []], cursor: page.cursor })
  }
  const start = () => run(async () => {
    const { where, order } = read(form)
    await ask({ c: class_, i: form.item.trim(), where, want: form.want, ...(form.want !== 'count' && { limit: PAGE }), ...(order.length && { order }) })
  })
  const row = (one, number) => (
    <tr key={number}>
      <th scope="row"><a href={place('ns', ns, 'documents', class_, one.id ?? one)}>{one.id ?? one}</a></th>
      <td class="wide">{typeof one === 'string' ? '' : <Json value={one.j ?? one.items} />}</td>
    </tr>
  )
  return (
    <>
      <Form action={start}>
        <TextField label="Items of the query" value={form.item} set={set('item')} required />
        <Field label="Conditions" hint={'JSON: {"f":"room","t":"eq","v1":"hall"}, or a list; with "i" about other items.'}>
          {(id) => <JsonArea id={id} rows={3} value={form.where} set={set('where')} />}
        </Field>
        <TextField label="Order" hint="Fields with commas between them, - before those that descend." value={form.order} set={set('order')} />
        <ChoiceField label="Wanted" value={form.want} set={set('want')} choices={WANTED} />
        <button disabled={isBusy}>Run the query</button>
      </Form>
      <Refused refusal={refusal} />
      {found && (
        <>
          <Read of={schema}>
            {({ schema: applied }) => <Plan item={applied.classes[class_]?.items?.[found.param.i]} where={found.param.where} order={found.param.order ?? []} />}
          </Read>
          {found.count === undefined
            ? <Table caption="Results of the query" heads={['Id', 'Content']} rows={found.rows.map(row)} empty={`No item ${found.param.i} of ${class_} meets these conditions. Remove one, or try an item of another name.`} />
            : <p>{found.count} documents were found.</p>}
          {found.cursor && <button type="button" disabled={isBusy} onClick={() => run(() => ask(found.param, found.rows, found.cursor))}>More results</button>}
        </>
      )}
    </>
  )
}

/* schema.jsx: the schema of a namespace: its declaration, how it differs from what is applied, how far that is; asking for an apply. */
import { useEffect, useState } from 'preact/hooks'
import { JsonArea } from './code.jsx'
import { Badge, Confirmed, Field, Form, Read, Refused, Table, Time, useAction, useRead } from './parts.jsx'
import { call } from './server.js'
import { number } from './words.js'

const EVERY_MS = 2000

/* The same text for the same value, whatever the order of its members. */
const canonical = (value) => JSON.stringify(value, (_, part) => (
  part && typeof part === 'object' && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part))

/* What an apply would do with each class: [name, deed], without those that are as they are declared. */
export function differences(declared, applied) {
  const names = [...new Set([...Object.keys(declared), ...Object.keys(applied)])].sort()
  const deed = (name) => {
    if (!(name in applied)) return 'create'
    if (!(name in declared)) return 'remove'
    return canonical(declared[name]) === canonical(applied[name]) ? '' : 'change'
  }
  return names.map((name) => [name, deed(name)]).filter(([, what]) => what)
}

/* The text of the editor as a value; throws when it is not JSON. */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`Declaration: ${error.message}`)
  }
}

const FILLS = { '': 'collections, unique properties and maxLife', '~': 'contents, to the new release' }

function Progress({ applied: { building, filling } }) {
  if (!building.length && !filling.length) return <p><Badge kind="good">ready</Badge> All that is applied can be used.</p>
  const row = ({ c, i, done }) => (
    <tr key={`${c} ${i}`}>
      <th scope="row">{c}</th>
      <td>{FILLS[i] ?? `fields of ${i}`}</td>
      <td class="number">{number(done)}</td>
    </tr>
  )
  return (
    <div role="status">
      <p><Badge kind="warn">in progress</Badge> {building.length > 0 && <>Cannot be searched yet: {building.join(', ')}.</>}</p>
      <Table caption="Being filled" heads={['Class', 'What', ['Documents done']]} rows={filling.map(row)} empty="" />
    </div>
  )
}

function Plan({ deeds, isEmpty }) {
  if (!deeds.length) {
    return (
      <>
        <p><Badge kind="good">applied</Badge> The declaration is applied.</p>
        {isEmpty && <p class="empty">No class is declared, so documents are found by their ids alone. Declare fields and collections below.</p>}
      </>
    )
  }
  const row = ([name, deed]) => (
    <tr key={name}>
      <th scope="row">{name}</th>
      <td><Badge kind={deed === 'remove' ? 'bad' : 'warn'}>{deed}</Badge></td>
    </tr>
  )
  return <Table caption="Plan" heads={['Class', 'Apply will']} rows={deeds.map(row)} empty="" />
}

const KINDS = { asked: 'warn', running: 'warn', done: 'good', failed: 'bad' }

/* What was asked for last, and what it has printed. */
function Run({ of: { v, run, printed } }) {
  if (!run) return null
  return (
    <div role="status">
      <p><Badge kind={KINDS[run.state] ?? 'bad'}>{run.state}</Badge> {run.do === 'plan' ? 'Plan' : 'Apply'} of the declaration of <Time stamp={run.of} />. Last change: <Time stamp={v} />.</p>
      {run.state === 'asked' && <p class="hint">It waits for <code>stampctl schema watch</code>, which somebody must run who may create tables.</p>}
      {printed?.text && <pre class="printed" tabIndex={0} role="region" aria-label="What was printed">{printed.text}</pre>}
    </div>
  )
}

function Deeds({ ns, version, removed, asked }) {
  const { run, refusal, isBusy } = useAction()
  const ask = (deed) => run(async () => {
    await call('z', 'schema', { [deed]: { ns, if: version } })
    asked()
  })
  const loss = removed.length ? ` What can be found by the schema of ${removed.join(', ')} is removed; the documents stay.` : ''
  return (
    <>
      <div class="row">
        <button type="button" disabled={isBusy} onClick={() => ask('plan')}>Show the steps</button>
        <Confirmed label="Apply" icon="run" question={`Apply the declaration to ${ns}?${loss}`} action={() => ask('apply')} disabled={isBusy} />
      </div>
      <Refused refusal={refusal} />
    </>
  )
}

function Editor({ ns, declaration, saved }) {
  const [text, setText] = useState(JSON.stringify(declaration.schema ?? { classes: {} }, null, 2))
  const [result, setResult] = useState('')
  const { run, refusal, isBusy } = useAction()
  const check = () => run(async () => {
    const { classes } = await call('z', 'schema', { check: parse(text) })
    setResult(`The declaration is valid: ${classes} classes.`)
  })
  const save = () => run(async () => {
    const out = await call('z', 'schema', { set: { ns, if: declaration.v, schema: parse(text) } })
    saved(out.warnings ?? [])
  })
  return (
    <Form action={save} class="sheet">
      <Field label="Declaration (JSON)">
        {(id) => <JsonArea id={id} rows={12} value={text} set={(typed) => { setText(typed); setResult('') }} />}
      </Field>
      {declaration.malformed && <p class="warning">What is stored is not valid: {declaration.malformed}</p>}
      <Refused refusal={refusal} />
      {result && !refusal && <p role="status">{result}</p>}
      <div class="row">
        <button type="button" disabled={isBusy} onClick={check}>Check</button>
        <button class="main" disabled={isBusy}>Declare</button>
      </div>
    </Form>
  )
}

export function Schema({ ns }) {
  const declaration = useRead(() => call('z', 'schema', { get: ns }), [ns])
  const applied = useRead(() => call(ns, 'schema'), [ns])
  const last = useRead(() => call('z', 'schema', { run: ns }), [ns])
  const [warnings, setWarnings] = useState(null)
  useEffect(() => {
    const again = () => { applied.again(); last.again() }
    const timer = setInterval(() => document.hidden || again(), EVERY_MS)
    return () => clearInterval(timer)
  }, [applied.again, last.again])
  const saved = (found) => {
    setWarnings(found)
    declaration.again()
  }
  const plan = (value) => {
    const deeds = differences(value.schema?.classes ?? {}, applied.value.schema.classes)
    return (
      <>
        <Plan deeds={deeds} isEmpty={!deeds.length && !Object.keys(value.schema?.classes ?? {}).length} />
        <Deeds ns={ns} version={value.v} removed={deeds.filter(([, deed]) => deed === 'remove').map(([name]) => name)} asked={last.again} />
      </>
    )
  }
  return (
    <>
      <h2>Applied</h2>
      <Read of={applied}>{(value) => <Progress applied={value} />}</Read>
      <h2>Plan</h2>
      <Read of={declaration}>
        {(value) => (value.malformed || !applied.value ? null : plan(value))}
      </Read>
      <Read of={last}>{(value) => <Run of={value} />}</Read>
      <h2>Declaration</h2>
      {warnings && (
        <div role="status">
          <p>Declared.</p>
          {warnings.map((warning) => <p key={warning} class="warning">{warning}</p>)}
        </div>
      )}
      <Read of={declaration}>{(value) => <Editor key={value.v} ns={ns} declaration={value} saved={saved} />}</Read>
    </>
  )
}

/* rules.jsx: what the rules of a namespace decide: of one request, and of a table of cases. */
import { useState } from 'preact/hooks'
import { JsonArea } from './code.jsx'
import { Badge, Field, Form, Refused, Table, useAction } from './parts.jsx'
import { Explain } from './rights.jsx'
import { call } from './server.js'
import { place } from './words.js'

const EXAMPLE = {
  documents: [{ c: 'Note', id: '1', items: [{ c: 'Main', j: { owner: 'ann' } }] }],
  cases: [{ name: 'a stranger reads', caller: { account: 'bob' }, may: 'read', document: 'Note/1', expected: false }],
}

/* The table of the text, with the rules that it is to be judged by. */
function parse(text, isOfNamespace) {
  let table
  try {
    table = JSON.parse(text)
  } catch (error) {
    throw new Error(`Table: ${error.message}`)
  }
  if (!isOfNamespace) return table
  const { rules, ...rest } = table
  return rest
}

const nameOf = (document) => (typeof document === 'string' ? document : `${document?.c}/${document?.id}`)
const decision = (isAllowed) => (isAllowed ? 'allowed' : 'refused')

function Results({ table, out }) {
  const row = ({ may, rule, good }, i) => {
    const one = table.cases[i]
    return (
      <tr key={i}>
        <th scope="row">{one.name ?? `cases[${i}]`}</th>
        <td>{one.caller?.account ?? 'nobody'}{one.caller?.roles?.length > 0 && ` (${one.caller.roles.join(', ')})`}</td>
        <td>{one.may} {one.item && `${one.item} of `}{nameOf(one.document ?? one.after)}</td>
        <td>{decision(may)}</td>
        <td>{rule ? <code>{rule}</code> : 'no rule'}</td>
        <td><Badge kind={good ? 'good' : 'bad'}>{good ? 'as expected' : `expected: ${decision(one.expected)}`}</Badge></td>
      </tr>
    )
  }
  return (
    <div role="status">
      <p>{out.cases.length} cases, {out.failed} failed.</p>
      <Table caption="Cases" heads={['Case', 'Caller', 'Request', 'Decision', 'Rule', 'Result']} rows={out.cases.map(row)} empty="The table has no cases: add one to “cases”." />
    </div>
  )
}

function Cases({ ns }) {
  const [text, setText] = useState(JSON.stringify(EXAMPLE, null, 2))
  const [isOfNamespace, setOfNamespace] = useState(true)
  const [found, setFound] = useState(null)
  const { run, refusal, isBusy } = useAction()
  const test = () => run(async () => {
    setFound(null)
    const table = parse(text, isOfNamespace)
    setFound({ table, out: await call(ns, 'explain', { cases: [], ...table }) })
  })
  return (
    <>
      <Form action={test} class="sheet">
        <Field label="Table of cases (JSON)" hint="As in the file of stampctl rules test: documents, cases, and rules if a draft of them is to be tested.">
          {(id) => <JsonArea id={id} rows={12} value={text} set={setText} />}
        </Field>
        <Refused refusal={refusal} />
        <div class="row">
          <label class="check">
            <input type="checkbox" checked={isOfNamespace} onChange={(event) => setOfNamespace(event.currentTarget.checked)} /> By the rules of the namespace
          </label>
          <button class="main" disabled={isBusy}>Test</button>
        </div>
      </Form>
      {found && <Results {...found} />}
    </>
  )
}

export const Rules = ({ ns }) => (
  <>
    <h2>A request</h2>
    <p class="hint">What a caller may do with a document, and the rule that decides. The rules are changed in the <a href={place('ns', ns, 'settings')}>settings</a>.</p>
    <Explain ns={ns} />
    <h2>A table of cases</h2>
    <Cases ns={ns} />
  </>
)

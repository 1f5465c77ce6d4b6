/* rights.jsx: what a caller may do with a document, and by which rule. */
import { useState } from 'preact/hooks'
import { Badge, Form, Refused, Table, TextField, useAction } from './parts.jsx'
import { call } from './server.js'

/* The id of the account with this name or id; undefined: nobody. */
async function accountOf(ns, text) {
  if (!text) return undefined
  try {
    return (await call(ns, 'accounts', { find: text })).account
  } catch (refusal) {
    if (!refusal.code) throw refusal
    return text
  }
}

const Row = ({ name, decided }) => (
  <tr>
    <th scope="row">{name}</th>
    <td><Badge kind={decided.may ? 'good' : 'quiet'}>{decided.may ? 'allowed' : 'refused'}</Badge></td>
    <td>{decided.rule ? <code>{decided.rule}</code> : 'no rule'}</td>
  </tr>
)

function Answer({ found: { who, served, access, roles, rights, items } }) {
  return (
    <div role="status">
      <p>
        {who || 'Nobody signed in'}{roles.length > 0 && <>, roles {roles.join(', ')}</>}.
        {!served && ' This account is not served: it does not exist, it is disabled, or its roles are in a token of its provider.'}
        {access !== 'rules' && <> No rules apply: the access of the namespace is <code>{access}</code>.</>}
      </p>
      <Table caption="Rights" heads={['Right', 'Decision', 'Rule']} empty="" rows={[
        ...Object.entries(rights).map(([name, decided]) => <Row key={name} name={name} decided={decided} />),
        ...items.flatMap(({ c, see, write }) => [<Row key={`see ${c}`} name={`see items ${c}`} decided={see} />, <Row key={`write ${c}`} name={`write items ${c}`} decided={write} />]),
      ]} />
    </div>
  )
}

/* A caller is asked for, and where no document is given, a document too. */
export function Explain({ ns, class_, id }) {
  const [form, setForm] = useState({ who: '', roles: '', class_: '', id: '' })
  const [found, setFound] = useState(null)
  const { run, refusal, isBusy } = useAction()
  const set = (name) => (value) => setForm({ ...form, [name]: value })
  const explain = () => run(async () => {
    setFound(null)
    const who = form.who.trim()
    const account = await accountOf(ns, who)
    const roles = form.roles.split(/[\s,]+/).filter(Boolean)
    const document = { c: class_ ?? form.class_.trim(), id: id ?? form.id }
    setFound({ who, ...await call(ns, 'explain', { ...document, ...(account && { account }), ...(account && roles.length > 0 && { roles }) }) })
  })
  return (
    <>
      <Form class="row" action={explain}>
        {!class_ && <TextField label="Class" value={form.class_} set={set('class_')} required />}
        {!class_ && <TextField label="Document" hint="Its id. It need not exist." value={form.id} set={set('id')} required />}
        <TextField label="Account" hint="Its name or id. Empty: nobody signed in." value={form.who} set={set('who')} />
        <TextField label="Roles to try" hint="Empty: those of the account." value={form.roles} set={set('roles')} />
        <button disabled={isBusy}>Explain</button>
      </Form>
      <Refused refusal={refusal} />
      {found && <Answer found={found} />}
    </>
  )
}

export const Rights = (document) => (
  <details>
    <summary>Rights of a caller</summary>
    <Explain {...document} />
  </details>
)

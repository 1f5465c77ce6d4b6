/* accounts.jsx: the accounts of a namespace: roles, sessions, invitations and service keys.  A secret is shown once. */
import { useState } from 'preact/hooks'
import { Icon } from './icons.jsx'
import { Badge, Confirmed, Form, Read, Refused, Table, TextField, Time, useAction, useRead } from './parts.jsx'
import { call } from './server.js'
import { place } from './words.js'

const PAGE = 100

const rolesOf = (text) => text.split(/[\s,]+/).filter(Boolean)

const administer = (ns, param) => call(ns, 'accounts', param)

/* A token or key that the server does not return again. */
function Secret({ what, value }) {
  if (!value) return null
  return (
    <div role="status" class="secret">
      <p>{what} It is shown only once.</p>
      <code>{value}</code>
    </div>
  )
}

function Sessions({ ns, account, changed }) {
  const { run, refusal, isBusy } = useAction()
  const revoke = (more) => run(async () => {
    await administer(ns, { revoke: { account: account.account, ...more } })
    changed()
  })
  const row = (one) => (
    <tr key={one.session}>
      <th scope="row">{one.device ?? one.session}</th>
      <td>{one.service ? 'service key' : 'session'}</td>
      <td><Time stamp={one.created} /></td>
      <td><Time stamp={one.expires} /></td>
      <td><button type="button" disabled={isBusy} onClick={() => revoke({ session: one.session })}><Icon name="remove" />Revoke</button></td>
    </tr>
  )
  return (
    <>
      <h2>Sessions and service keys</h2>
      <Table caption="Sessions" heads={['Device', 'Kind', 'Begun', 'Ends', 'Action']} rows={(account.sessions ?? []).map(row)} empty="Nobody is signed in. A session begins when this person signs in." />
      {account.sessions?.length > 0 && <Confirmed label="Revoke all" question="End all sessions and service keys of this account?" action={() => revoke({})} disabled={isBusy} />}
      <Refused refusal={refusal} />
    </>
  )
}

function Editor({ ns, account, changed }) {
  const [roles, setRoles] = useState((account.roles ?? []).join(' '))
  const { run, refusal, isBusy } = useAction()
  const set = (members) => run(async () => {
    await administer(ns, { set: { account: account.account, ...members } })
    changed()
  })
  const remove = () => run(async () => {
    await administer(ns, { delete: account.account })
    location.hash = place('ns', ns, 'accounts')
  })
  return (
    <>
      <p>
        {account.disabled && <Badge kind="bad">disabled</Badge>} {account.name ?? 'without a name'}
        {account.address && <>, {account.address}{account.confirmed ? '' : ' (not confirmed)'}</>}, created <Time stamp={account.created} />
      </p>
      <Form class="row" action={() => set({ roles: rolesOf(roles) })}>
        <TextField label="Roles" hint="Separated by blanks." value={roles} set={setRoles} />
        <button disabled={isBusy}>Save the roles</button>
      </Form>
      <div class="row">
        <button type="button" disabled={isBusy} onClick={() => set({ disabled: !account.disabled })}>{account.disabled ? 'Enable' : 'Disable'}</button>
        <Confirmed label="Delete" question="Delete this account with what the rules declare as belonging to it?" action={remove} disabled={isBusy} />
      </div>
      <Refused refusal={refusal} />
    </>
  )
}

function Account({ ns, id }) {
  const found = useRead(() => administer(ns, { get: id }), [ns, id])
  return (
    <>
      <p class="trail"><a href={place('ns', ns, 'accounts')}>Accounts</a> › <code>{id}</code></p>
      <Read of={found}>
        {(account) => (
          <>
            <Editor ns={ns} account={account} changed={found.again} />
            <Sessions ns={ns} account={account} changed={found.again} />
          </>
        )}
      </Read>
    </>
  )
}

function Make({ ns, changed }) {
  const [form, setForm] = useState({ name: '', password: '', roles: '' })
  const [secret, setSecret] = useState({})
  const { run, refusal, isBusy } = useAction()
  const set = (name) => (value) => setForm({ ...form, [name]: value })
  const create = () => run(async () => {
    const account = await administer(ns, { create: { name: form.name, password: form.password, roles: rolesOf(form.roles) } })
    changed()
    location.hash = place('ns', ns, 'accounts', account.account)
  })
  const invite = () => run(async () => {
    const { invitation } = await administer(ns, { invite: { roles: rolesOf(form.roles) } })
    setSecret({ what: 'The invitation was made.', value: invitation })
  })
  const makeKey = () => run(async () => {
    const { key } = await administer(ns, { key: { label: form.name, roles: rolesOf(form.roles) } })
    setSecret({ what: 'The service key was made.', value: key })
    changed()
  })
  return (
    <details>
      <summary>New account, invitation or service key</summary>
      <Form class="sheet" action={create}>
        <TextField label="Name or label" hint="The name of the account, or the label of the service key." value={form.name} set={set('name')} required />
        <TextField label="Password" type="password" autocomplete="new-password" value={form.password} set={set('password')} required minLength={8} />
        <TextField label="Roles" hint="Separated by blanks." value={form.roles} set={set('roles')} />
        <div class="row">
          <button class="main" disabled={isBusy}><Icon name="add" />Create the account</button>
          <button type="button" disabled={isBusy} onClick={invite}>Make an invitation</button>
          <button type="button" disabled={isBusy || !form.name} onClick={makeKey}>Make a service key</button>
        </div>
        <Secret {...secret} />
        <Refused refusal={refusal} />
      </Form>
    </details>
  )
}

/** Those whose name begins so, in the order of names; without a name all, in the order of ids. */
function List({ ns }) {
  const [name, setName] = useState('')
  const [cursors, setCursors] = useState([undefined]) // of the pages up to the one that is shown
  const begin = name.trim()
  const accounts = useRead(() => administer(ns, { list: { ...(begin ? { name: begin } : {}), cursor: cursors.at(-1), limit: PAGE } }), [ns, begin, cursors])
  const row = (one) => (
    <tr key={one.account}>
      <th scope="row"><a href={place('ns', ns, 'accounts', one.account)}>{one.name ?? <code>{one.account}</code>}</a> {one.disabled && <Badge kind="bad">disabled</Badge>}</th>
      <td>{one.address}{one.address && !one.confirmed && ' (not confirmed)'}</td>
      <td>{one.roles.join(' ')}</td>
      <td><Time stamp={one.created} /></td>
    </tr>
  )
  return (
    <>
      <div class="row">
        <TextField label="Name" hint="Or its beginning." value={name} set={(text) => { setName(text); setCursors([undefined]) }} />
      </div>
      <Read of={accounts}>
        {(page) => (
          <>
            <Table caption="Accounts" heads={['Account', 'Address', 'Roles', 'Created']} rows={page.accounts.map(row)} empty={begin ? `No name begins with “${begin}”. Try fewer letters.` : 'There are no accounts. Create one below, or make an invitation with which somebody registers.'} />
            <div class="row">
              {cursors.length > 1 && <button type="button" onClick={() => setCursors(cursors.slice(0, -1))}><Icon name="previous" />Previous</button>}
              {page.cursor && <button type="button" onClick={() => setCursors([...cursors, page.cursor])}>Next<Icon name="next" isBehind /></button>}
            </div>
          </>
        )}
      </Read>
      <Make ns={ns} changed={accounts.again} />
    </>
  )
}

export function Accounts({ ns, id }) {
  return id ? <Account key={id} ns={ns} id={id} /> : <List ns={ns} />
}

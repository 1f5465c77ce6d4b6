/* main.jsx: the console: signing in, the way from an address to a page, and what surrounds every page. */
import { render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Accounts } from './accounts.jsx'
import { Document } from './document.jsx'
import { Documents } from './documents.jsx'
import { Icon, Sprite } from './icons.jsx'
import { Namespaces } from './namespaces.jsx'
import { Form, Refused, TextField, useAction } from './parts.jsx'
import { isSignedIn, signIn, signInByAccount, signOut, whenSignedOut } from './server.js'
import { Palette } from './palette.jsx'
import { Queues } from './queues.jsx'
import { Rules } from './rules.jsx'
import { Schema } from './schema.jsx'
import { Server } from './charts.jsx'
import { Settings } from './settings.jsx'
import { AllTasks, Tasks } from './tasks.jsx'
import { Warnings } from './warnings.jsx'
import { parts, place } from './words.js'

const TABS = [['documents', 'Documents'], ['tasks', 'Tasks'], ['accounts', 'Accounts'], ['schema', 'Schema'], ['rules', 'Rules'], ['settings', 'Settings']]
const PAGES = { server: ['Server', Server], tasks: ['Tasks', AllTasks], queues: ['Queues', Queues], warnings: ['Warnings', Warnings] }

function SignIn({ done }) {
  const [isByName, setByName] = useState(false)
  const [form, setForm] = useState({ key: '', name: '', password: '' })
  const { run, refusal, isBusy } = useAction()
  const set = (name) => (value) => setForm({ ...form, [name]: value })
  const submit = () => run(async () => {
    await (isByName ? signInByAccount(form.name.trim(), form.password) : signIn(form.key.trim()))
    done()
  })
  return (
    <main class="signin">
      <h1>stampd console</h1>
      <Form key={isByName} action={submit}>
        {isByName ? (
          <>
            <TextField label="Name" value={form.name} set={set('name')} required autofocus autocomplete="username" />
            <TextField label="Password" type="password" value={form.password} set={set('password')} required autocomplete="current-password" />
          </>
        ) : <TextField label="Administrator's key" type="password" value={form.key} set={set('key')} required autofocus />}
        <p class="hint">{isByName ? 'The session survives a reload, and ends with this tab or when you sign out.' : 'The key stays in the memory of this page. After a reload you are asked again.'}</p>
        <Refused refusal={refusal} />
        <div class="row">
          <button class="main" disabled={isBusy}>Sign in</button>
          <button type="button" class="link" onClick={() => setByName(!isByName)}>{isByName ? 'Use the key' : 'Use an account'}</button>
        </div>
      </Form>
    </main>
  )
}

function Namespace({ code, tab, rest }) {
  const pages = {
    documents: () => (rest.length > 1
      ? <Document key={rest.join('/')} ns={code} class_={rest[0]} id={rest[1]} />
      : <Documents key={rest[0]} ns={code} class_={rest[0]} />),
    tasks: () => <Tasks ns={code} id={rest[0]} />,
    accounts: () => <Accounts ns={code} id={rest[0]} />,
    schema: () => <Schema ns={code} />,
    rules: () => <Rules ns={code} />,
    settings: () => <Settings ns={code} />,
  }
  const page = pages[tab]
  return (
    <>
      <nav class="tabs" aria-label={`Namespace ${code}`}>
        {TABS.map(([name, words]) => (
          <a key={name} href={place('ns', code, name)} aria-current={name === tab ? 'page' : undefined}><Icon name={name} />{words}</a>
        ))}
      </nav>
      {page ? page() : <p>There is no such page.</p>}
    </>
  )
}

function Page({ path }) {
  const [kind, code, tab = 'documents', ...rest] = path
  if (!kind) return <Namespaces />
  const One = PAGES[kind]?.[1]
  if (One) return <One />
  if (kind === 'ns' && code) return <Namespace key={code} code={code} tab={tab} rest={rest} />
  return <p>There is no such page.</p>
}

function title(path) {
  if (path[0] === 'ns') return path[1]
  return PAGES[path[0]]?.[0] ?? 'Namespaces'
}

function App() {
  const [path, setPath] = useState(parts(location.hash))
  const [isIn, setIn] = useState(isSignedIn())
  const main = useRef(null)
  useEffect(() => {
    whenSignedOut(() => setIn(false))
    const move = () => {
      setPath(parts(location.hash))
      main.current?.focus()
    }
    addEventListener('hashchange', move)
    return () => removeEventListener('hashchange', move)
  }, [])
  useEffect(() => { document.title = isIn ? `${title(path)} · stampd` : 'stampd console' })
  if (!isIn) return <SignIn done={() => setIn(true)} />
  return (
    <>
      <Sprite />
      <header>
        <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current.focus() }}>Skip to the page</a>
        <a class="brand" href={place()}>stampd</a>
        <nav aria-label="Console">
          <a href={place()} aria-current={path[0] ? undefined : 'page'}><Icon name="namespaces" />Namespaces</a>
          {Object.entries(PAGES).map(([name, [words]]) => <a key={name} href={place(name)} aria-current={path[0] === name ? 'page' : undefined}><Icon name={name} />{words}</a>)}
        </nav>
        <Palette pages={PAGES} tabs={TABS} ns={path[0] === 'ns' ? path[1] : undefined} />
        <button type="button" onClick={signOut}><Icon name="out" />Sign out</button>
      </header>
      <main ref={main} id="main" tabIndex={-1}>
        <h1>{title(path)}</h1>
        <Page path={path} />
      </main>
    </>
  )
}

render(<App />, document.getElementById('console'))

/* main.jsx: the console: signing in, the way from an address to a page, and what surrounds every page. */
import { render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Accounts } from './accounts.jsx'
import { Document } from './document.jsx'
import { Documents } from './documents.jsx'
import { Namespaces } from './namespaces.jsx'
import { Form, Refused, useAction } from './parts.jsx'
import { isSignedIn, signIn, signOut, whenSignedOut } from './server.js'
import { Server } from './charts.jsx'
import { Settings } from './settings.jsx'
import { Tasks } from './tasks.jsx'
import { parts, place } from './words.js'

const TABS = [['documents', 'Documents'], ['tasks', 'Tasks'], ['accounts', 'Accounts'], ['settings', 'Settings']]

function SignIn({ done }) {
  const [key, set] = useState('')
  const { run, refusal, isBusy } = useAction()
  const submit = () => run(async () => {
    await signIn(key.trim())
    done()
  })
  return (
    <main class="signin">
      <h1>stampd console</h1>
      <Form action={submit}>
        <label for="key">Administrator's key</label>
        <input id="key" type="password" autocomplete="off" required value={key} onInput={(event) => set(event.currentTarget.value)} autofocus />
        <p class="hint">The key stays in the memory of this page. After a reload you sign in again.</p>
        <Refused refusal={refusal} />
        <button class="main" disabled={isBusy || !key.trim()}>Sign in</button>
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
    settings: () => <Settings ns={code} />,
  }
  const page = pages[tab]
  return (
    <>
      <nav class="tabs" aria-label={`Namespace ${code}`}>
        {TABS.map(([name, words]) => (
          <a key={name} href={place('ns', code, name)} aria-current={name === tab ? 'page' : undefined}>{words}</a>
        ))}
      </nav>
      {page ? page() : <p>There is no such page.</p>}
    </>
  )
}

function Page({ path }) {
  const [kind, code, tab = 'documents', ...rest] = path
  if (!kind) return <Namespaces />
  if (kind === 'server') return <Server />
  if (kind === 'ns' && code) return <Namespace key={code} code={code} tab={tab} rest={rest} />
  return <p>There is no such page.</p>
}

function title(path) {
  if (path[0] === 'ns') return path[1]
  return path[0] === 'server' ? 'Server' : 'Namespaces'
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
      <header>
        <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current.focus() }}>Skip to the page</a>
        <a class="brand" href={place()}>stampd</a>
        <nav aria-label="Console">
          <a href={place()} aria-current={path[0] ? undefined : 'page'}>Namespaces</a>
          <a href={place('server')} aria-current={path[0] === 'server' ? 'page' : undefined}>Server</a>
        </nav>
        <button type="button" onClick={signOut}>Sign out</button>
      </header>
      <main ref={main} id="main" tabIndex={-1}>
        <h1>{title(path)}</h1>
        <Page path={path} />
      </main>
    </>
  )
}

render(<App />, document.getElementById('console'))

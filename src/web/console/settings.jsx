/* settings.jsx: the configuration of a namespace: state, message, label, access, origins, rules, quotas, records, workers. */
import { useState } from 'preact/hooks'
import { JsonArea } from './code.jsx'
import { Icon } from './icons.jsx'
import { ChoiceField, Field, Form, Read, Refused, TextField, useAction, useRead } from './parts.jsx'
import { call } from './server.js'
import { STATES } from './words.js'

const ACCESS = ['closed', 'read', 'open', 'rules']
const TEXTS = {
  rules: 'Access rules (JSON)', quotas: 'Quotas (JSON)', records: 'Rules of records (JSON)', workers: 'Queues of workers (JSON)', options: 'Options for clients (JSON)',
}
const HINTS = {
  records: 'Who may read and write which records: [{"prefix": "presence.", "read": "anyone", "write": "account", "ttl_ms": 30000}].',
  workers: 'The queues 16 to 31, whose tasks programs take and do. Add one below: that makes its key, too.',
}
const [QUEUE_FIRST, QUEUE_LAST] = [16, 31]

const write = (value) => (value === undefined ? '' : JSON.stringify(value, null, 2))

function draftOf(configuration) {
  const { state = 0, message = '', label = '', access = 'closed', origins = [] } = configuration
  const texts = Object.fromEntries(Object.keys(TEXTS).map((name) => [name, write(configuration[name])]))
  return { state: String(state), message, label, access, origins: origins.join(' '), ...texts }
}

/* The members of `set` that differ; throws when a text is not JSON. */
function changesOf(draft, configuration) {
  const former = draftOf(configuration)
  const changes = {}
  const values = {
    state: Number, message: (text) => text || null, label: (text) => text || null, access: (text) => text,
    origins: (text) => (text.trim() ? text.trim().split(/\s+/) : null),
  }
  for (const name of Object.keys(draft)) {
    if (draft[name] === former[name]) continue
    if (values[name]) changes[name] = values[name](draft[name])
    else if (!draft[name].trim()) changes[name] = null
    else {
      try {
        changes[name] = JSON.parse(draft[name])
      } catch (error) {
        throw new Error(`${TEXTS[name]}: ${error.message}`)
      }
    }
  }
  return changes
}

/* A key of 256 random bits, and its digest as the configuration has it. */
async function makeKey() {
  const key = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key)))
  return { key, digest: [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('') }
}

/* Adds a queue to the JSON, with a key that is shown once. */
function NewQueue({ text, set }) {
  const [ops, setOps] = useState('')
  const [made, setMade] = useState(null)
  const { run, refusal, isBusy } = useAction()
  const add = () => run(async () => {
    const queues = text.trim() ? JSON.parse(text) : []
    const taken = new Set(queues.map((one) => one.qn))
    const qn = Array.from({ length: QUEUE_LAST - QUEUE_FIRST + 1 }, (_, i) => QUEUE_FIRST + i).find((one) => !taken.has(one))
    if (qn === undefined) throw new Error('All queues from 16 to 31 are declared.')
    const { key, digest } = await makeKey()
    set(JSON.stringify([...queues, { qn, ops: ops.trim().split(/\s+/), key: digest, request: 'accounts' }], null, 2))
    setMade({ qn, key })
    setOps('')
  })
  return (
    <>
      <div class="row">
        <TextField label="Operations of a new queue" hint="Names, separated by blanks." value={ops} set={setOps} />
        <button type="button" disabled={isBusy || !ops.trim()} onClick={add}><Icon name="add" />Add a queue</button>
      </div>
      <Refused refusal={refusal} />
      {made && <p class="secret" role="status">The key of the workers of queue {made.qn}, which is shown only now: <code>{made.key}</code>. It is valid when you have saved.</p>}
    </>
  )
}

function Editor({ ns, configuration, saved }) {
  const [draft, setDraft] = useState(draftOf(configuration))
  const { run, refusal, isBusy } = useAction()
  const set = (name) => (value) => setDraft((former) => ({ ...former, [name]: value }))
  const save = () => run(async () => {
    const changes = changesOf(draft, configuration)
    if (!Object.keys(changes).length) return
    const out = await call('z', 'ns', { set: { ns, if: configuration.v, ...changes } })
    saved(out.warnings ?? [])
  })
  return (
    <Form action={save} class="sheet">
      <ChoiceField label="State" value={draft.state} set={set('state')} choices={STATES.map((words, state) => [String(state), words])} />
      <TextField label="Message" hint="What clients are told while the namespace is not on." value={draft.message} set={set('message')} />
      <TextField label="Label" value={draft.label} set={set('label')} />
      <ChoiceField label="Access" value={draft.access} set={set('access')} choices={ACCESS.map((word) => [word, word])} />
      <TextField label="Origins" hint="Of pages that may use the namespace, separated by blanks." value={draft.origins} set={set('origins')} />
      {Object.entries(TEXTS).map(([name, label]) => (
        <div key={name}>
          <Field label={label} hint={HINTS[name]}>
            {(id) => <JsonArea id={id} rows={draft[name] ? 6 : 2} value={draft[name]} set={set(name)} />}
          </Field>
          {name === 'workers' && <NewQueue text={draft.workers} set={set('workers')} />}
        </div>
      ))}
      <Refused refusal={refusal} />
      <button class="main" disabled={isBusy}><Icon name="save" />Save</button>
    </Form>
  )
}

export function Settings({ ns }) {
  const configuration = useRead(() => call('z', 'ns', { get: ns }), [ns])
  const [warnings, setWarnings] = useState(null)
  const saved = (found) => {
    setWarnings(found)
    configuration.again()
  }
  return (
    <>
      {warnings && (
        <div role="status">
          <p>Saved.</p>
          {warnings.map((warning) => <p key={warning} class="warning">{warning}</p>)}
        </div>
      )}
      <Read of={configuration}>{(value) => <Editor key={value.v} ns={ns} configuration={value} saved={saved} />}</Read>
    </>
  )
}

/* tasks.jsx: the tasks of a namespace: what waits, what failed, and what an administrator does about it; the tasks of all namespaces. */
import { useState } from 'preact/hooks'
import { Json } from './code.jsx'
import { Icon } from './icons.jsx'
import { Badge, ChoiceField, Confirmed, Form, Read, Refused, Table, TextField, Time, useAction, useRead } from './parts.jsx'
import { call } from './server.js'
import { dateOf, number, place, stampOf } from './words.js'

const PAGE = 100, HOUR_MS = 3600_000
const KINDS = { waiting: 'quiet', running: 'good', parked: 'bad', held: 'warn' }

const State = ({ task }) => <Badge kind={KINDS[task.state] ?? 'quiet'}>{task.state}</Badge>

const Outcome = ({ attempt }) => (attempt.exc ? <Badge kind="bad">{attempt.exc}</Badge> : <Badge kind="good">done</Badge>)

function Operation({ act, isBusy }) {
  const [op, setOp] = useState('')
  return (
    <Form class="row" action={() => act({ pause: { op: op.trim() } })}>
      <TextField label="Pause an operation" value={op} set={setOp} required pattern="\s*[A-Za-z][A-Za-z0-9_.\-]{0,31}\s*" />
      <button disabled={isBusy}><Icon name="pause" />Pause it</button>
    </Form>
  )
}

/* Of each queue in these attempts, the newest ones first: its operations, and how many attempts a minute there were in the last hour, or since the oldest of a page
 * that has no room for the hour. */
function paces(attempts, now) {
  const ends = attempts.map((one) => dateOf(one.stoptime).getTime()), since = now - HOUR_MS
  const span = attempts.length < PAGE || ends.at(-1) < since ? HOUR_MS : Math.max(now - ends.at(-1), 1000)
  const found = new Map()
  attempts.forEach((one, i) => {
    const { ops, count } = found.get(one.qn) ?? { ops: new Set(), count: 0 }
    found.set(one.qn, { ops: ops.add(one.opname ?? one.op), count: count + (ends[i] >= since) })
  })
  return new Map([...found].map(([qn, { ops, count }]) => [qn, { ops: [...ops].sort(), pace: count * 60_000 / span }]))
}

async function readBacklog(ns) {
  const [{ queues, paused }, { attempts }] = await Promise.all([call(ns, 'tasks', { backlog: true }), call(ns, 'tasks', { history: { limit: PAGE } })])
  const known = paces(attempts, Date.now()), waiting = new Map(queues.map((one) => [one.qn, one]))
  const all = [...new Set([...waiting.keys(), ...known.keys()])].sort((one, other) => one - other)
  return { paused, queues: all.map((qn) => ({ due: 0, later: 0, running: 0, parked: 0, failing: 0, ...waiting.get(qn), qn, ops: [], pace: 0, ...known.get(qn) })) }
}

function Backlog({ ns }) {
  const backlog = useRead(() => readBacklog(ns), [ns])
  const { run, refusal, isBusy } = useAction()
  const act = (param) => run(async () => {
    await call(ns, 'tasks', param)
    backlog.again()
  })
  const pause = (one) => (
    <tr key={one.op ?? one.qn}>
      <th scope="row">{one.op ? `Operation ${one.op}` : `Queue ${one.qn}`}</th>
      <td><Time stamp={one.since} /></td>
      <td class="wide">{one.reason}</td>
      <td><button type="button" disabled={isBusy} onClick={() => act({ resume: one.op ? { op: one.op } : { qn: one.qn } })}><Icon name="run" />Resume</button></td>
    </tr>
  )
  const row = (one) => (
    <tr key={one.qn}>
      <th scope="row">{one.qn}</th>
      <td class="wide">{one.ops.join(', ') || '–'}</td>
      <td class="number">{number(one.pace)}</td>
      {['due', 'later', 'running', 'parked', 'failing'].map((name) => <td key={name} class="number">{number(one[name])}</td>)}
      <td><Time stamp={one.oldest} /></td>
      <td><button type="button" disabled={isBusy} onClick={() => act({ pause: { qn: one.qn } })}><Icon name="pause" />Pause</button></td>
    </tr>
  )
  return (
    <Read of={backlog}>
      {({ queues, paused }) => (
        <>
          <Table caption="Queues" heads={['Queue', 'Operations lately', ['A minute'], ['Due'], ['Later'], ['Running'], ['Parked'], ['Failing'], 'Oldest due', 'Actions']} rows={queues.map(row)} empty={<>No tasks wait, run or have failed. Requests create them with the operation <code>task</code>.</>} />
          <Operation act={act} isBusy={isBusy} />
          <Refused refusal={refusal} />
          {paused.length > 0 && <Table caption="Paused" heads={['What', 'Since', 'Reason', 'Actions']} rows={paused.map(pause)} empty="Nothing is paused." />}
        </>
      )}
    </Read>
  )
}

const RULES = { planned: 'quiet', running: 'good', parked: 'bad', unplanned: 'warn', dropped: 'warn' }

function Rules({ ns }) {
  const rules = useRead(() => call(ns, 'tasks', { rules: true }), [ns])
  const row = (one) => (
    <tr key={one.name}>
      <th scope="row">{one.id ? <a href={place('ns', ns, 'tasks', one.id)}>{one.name}</a> : one.name}</th>
      <td>{one.op}</td>
      <td><code>{one.period}</code></td>
      <td><Badge kind={RULES[one.state]}>{one.state}</Badge></td>
      <td>{one.state === 'planned' && <Time stamp={one.startat} />}</td>
      <td>{one.exc && <>{one.exc}, {number(one.retry)} failures</>}</td>
      <td>{one.module}</td>
    </tr>
  )
  return (
    <Read of={rules}>
      {(value) => <Table caption="Periodic tasks" heads={['Name', 'Operation', 'Period', 'State', 'Next time', 'Last fault', 'Module']} rows={value.rules.map(row)} empty={<>There are no periodic tasks. Declare them on the server: <code>stampctl cron</code>.</>} />}
    </Read>
  )
}

function Actions({ ns, task, done }) {
  const [start, setStart] = useState('')
  const [result, setResult] = useState('')
  const { run, refusal, isBusy } = useAction()
  const act = (param) => run(async () => {
    const out = await call(ns, 'tasks', param)
    setResult(out.result)
    done()
  })
  return (
    <>
      <div class="row">
        <button type="button" disabled={isBusy} onClick={() => act({ run: task.id })}><Icon name="run" />Run now</button>
        <button type="button" disabled={isBusy} onClick={() => act({ hold: task.id })}><Icon name="pause" />Hold</button>
        <Confirmed label="Drop" question={`Delete the task ${task.id}?`} action={() => act({ drop: task.id })} disabled={isBusy} />
      </div>
      <Form class="row" action={() => act({ move: { id: task.id, startat: stampOf(new Date(start)) } })}>
        <TextField label="Start at" type="datetime-local" step="1" value={start} set={setStart} required />
        <button disabled={isBusy}>Move</button>
      </Form>
      {result && <p role="status">{result}</p>}
      <Refused refusal={refusal} />
    </>
  )
}

/* Of the request that created the task: what a collector of traces is searched for. */
const Trace = ({ of }) => of.trace ? <code title={of.trace}>{of.trace.slice(3, 35)}</code> : null

function Attempts({ attempts, empty }) {
  const row = (one, index) => (
    <tr key={index}>
      <td><Time stamp={one.stoptime} /></td>
      <td>{one.opname ?? one.op}</td>
      <td class="number">{one.retry}</td>
      <td><Outcome attempt={one} /></td>
      <td class="wide">{one.report}</td>
      <td class="wide"><Trace of={one} /></td>
    </tr>
  )
  return <Table caption="Attempts" heads={['End', 'Operation', ['Attempt'], 'Result', 'Report', 'Trace']} rows={attempts.map(row)} empty={empty} />
}

function Task({ ns, id }) {
  const found = useRead(() => call(ns, 'tasks', { show: id }), [ns, id])
  return (
    <>
      <p class="trail"><a href={place('ns', ns, 'tasks')}>Tasks</a> › {id}</p>
      <Read of={found}>
        {({ task, attempts }) => (
          <>
            {task ? (
              <>
                <p><State task={task} /> {task.op}</p>
                <dl>
                  {Object.entries(task).map(([name, value]) => (
                    <div key={name}>
                      <dt>{name}</dt>
                      <dd>{['startat', 'starttime', 'created', 'parked', 'latest'].includes(name) ? <Time stamp={value} /> : <Json value={value} />}</dd>
                    </div>
                  ))}
                </dl>
                <Actions ns={ns} task={task} done={found.again} />
              </>
            ) : <p>This task is done or was dropped.</p>}
            <h2>Attempts</h2>
            <Attempts attempts={attempts} empty="The task was not tried yet. It starts at its time, or when you press “Run now”." />
          </>
        )}
      </Read>
    </>
  )
}

function Waiting({ ns }) {
  const [filter, setFilter] = useState({ op: '', info: '', retry: '', state: '' })
  const set = (name) => (value) => setFilter({ ...filter, [name]: value })
  const tasks = useRead(() => call(ns, 'tasks', { list: {
    limit: PAGE, ...(filter.op && { op: filter.op }), ...(filter.info && { info: filter.info }), ...(filter.retry && { retry: Number(filter.retry) }), ...(filter.state && { state: filter.state }),
  } }), [ns, filter])
  const row = (task) => (
    <tr key={task.id}>
      <th scope="row"><a href={place('ns', ns, 'tasks', task.id)}>{task.id}</a></th>
      <td>{task.op}</td>
      <td><State task={task} /></td>
      <td><Time stamp={task.startat} /></td>
      <td class="number">{task.retry}</td>
      <td>{task.exc}</td>
      <td class="wide">{task.info}</td>
      <td class="wide">{task.progress}</td>
    </tr>
  )
  return (
    <>
      <div class="row">
        <TextField label="Operation" value={filter.op} set={set('op')} />
        <TextField label="Information begins with" value={filter.info} set={set('info')} />
        <TextField label="Failures, at least" type="number" min="0" value={filter.retry} set={set('retry')} />
        <ChoiceField label="State" value={filter.state} set={set('state')} choices={[['', 'all'], ...Object.keys(KINDS).map((name) => [name, name])]} />
        <button type="button" onClick={tasks.again}><Icon name="refresh" />Refresh</button>
      </div>
      <Read of={tasks}>
        {(page) => (
          <>
            <Table caption="Tasks" heads={['Id', 'Operation', 'State', 'Start', ['Failures'], 'Last fault', 'Information', 'Progress']} rows={page.tasks.map(row)}
              empty={Object.values(filter).some(Boolean) ? 'There are no such tasks. Change a filter above.' : 'No tasks wait or run. Those that are done are in the history below.'} />
            {page.cursor && <p class="hint">The first {PAGE} are shown.</p>}
          </>
        )}
      </Read>
    </>
  )
}

function History({ ns }) {
  const [onlyFailures, setOnly] = useState(true)
  const history = useRead(() => call(ns, 'tasks', { history: { limit: PAGE, ...(onlyFailures && { failures: true }) } }), [ns, onlyFailures])
  return (
    <>
      <label class="check"><input type="checkbox" checked={onlyFailures} onChange={(event) => setOnly(event.currentTarget.checked)} /> failures only</label>
      <Read of={history}>{({ attempts }) => <Attempts attempts={attempts} empty={onlyFailures ? 'No attempt has failed. Clear “failures only” to see the others.' : 'No task was tried yet.'} />}</Read>
    </>
  )
}

export function Tasks({ ns, id }) {
  if (id) return <Task ns={ns} id={id} />
  return (
    <>
      <h2>Queues</h2>
      <Backlog ns={ns} />
      <h2>Periodic tasks</h2>
      <Rules ns={ns} />
      <h2>Tasks</h2>
      <Waiting ns={ns} />
      <h2>History</h2>
      <History ns={ns} />
    </>
  )
}

/* What to look for in all namespaces. */
const LOOKS = {
  due: ['Due', () => ({ state: 'waiting', to: stampOf(new Date()) })],
  failing: ['Failing', () => ({ retry: 1 })],
  parked: ['Parked', () => ({ state: 'parked' })],
  running: ['Running', () => ({ state: 'running' })],
}
const EVERYWHERE_MOST = 1000

async function readEverywhere(filter) {
  const found = { tasks: [], more: [], faults: [] }
  let cursor
  do {
    const page = await call('z', 'tasks', { everywhere: { ...filter, ...(cursor && { cursor }) } })
    for (const name of Object.keys(found)) found[name].push(...page[name])
    cursor = page.cursor
  } while (cursor && found.tasks.length < EVERYWHERE_MOST)
  return { ...found, cursor }
}

export function AllTasks() {
  const [look, setLook] = useState('due')
  const read = useRead(() => readEverywhere(LOOKS[look][1]()), [look])
  const row = ({ ns, task }) => (
    <tr key={`${ns} ${task.id}`}>
      <th scope="row"><a href={place('ns', ns, 'tasks', task.id)}>{task.id}</a></th>
      <td><a href={place('ns', ns, 'tasks')}>{ns}</a></td>
      <td>{task.op}</td>
      <td><State task={task} /></td>
      <td><Time stamp={task.startat} /></td>
      <td class="number">{task.retry}</td>
      <td>{task.exc}</td>
      <td class="wide">{task.info}</td>
    </tr>
  )
  return (
    <>
      <div class="row">
        <ChoiceField label="Show" value={look} set={setLook} choices={Object.entries(LOOKS).map(([name, [words]]) => [name, words])} />
        <button type="button" onClick={read.again}><Icon name="refresh" />Refresh</button>
      </div>
      <Read of={read}>
        {({ tasks, more, faults, cursor }) => (
          <>
            <Table caption="Tasks of all namespaces" heads={['Id', 'Namespace', 'Operation', 'State', 'Start', ['Failures'], 'Last fault', 'Information']} rows={tasks.map(row)}
              empty={`There are no such tasks. Choose another state than “${LOOKS[look][0].toLowerCase()}” above.`} />
            {more.length > 0 && <p class="hint">These namespaces have more: {more.join(', ')}.</p>}
            {cursor && <p class="hint">Namespaces behind {cursor} are not shown.</p>}
            {faults.map((one) => <p key={one.ns} class="warning">The tasks of {one.ns} could not be read: <code>{one.code}</code></p>)}
          </>
        )}
      </Read>
    </>
  )
}

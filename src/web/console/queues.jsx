/* queues.jsx: what a queue manager does: pause and resume it, scan, what it knows. */
import { useState } from 'preact/hooks'
import { Icon } from './icons.jsx'
import { Badge, Form, Read, Refused, Table, TextField, Time, useAction, useRead } from './parts.jsx'
import { callManager, isByAccount } from './server.js'
import { number, place } from './words.js'

const STANDARD = 'qm'

function State({ code, state, changed }) {
  const { run, refusal, isBusy } = useAction()
  const act = (deed) => run(async () => {
    await callManager(code, deed)
    changed()
  })
  const namespace = (one) => (
    <tr key={one.ns}>
      <th scope="row"><a href={place('ns', one.ns, 'tasks')}>{one.ns}</a></th>
      <td class="number">{number(one.waiting)}</td>
      <td class="number">{one.failures ? <Badge kind="bad">{number(one.failures)}</Badge> : 0}</td>
    </tr>
  )
  const task = (one) => (
    <tr key={`${one.ns} ${one.id}`}>
      <th scope="row"><a href={place('ns', one.ns, 'tasks', one.id)}>{one.id}</a></th>
      <td>{one.ns}</td>
      <td>{one.op}</td>
      <td class="number">{one.qn}</td>
      <td><Time stamp={one.startat} /></td>
      <td>{one.running ? <Badge kind="good">running</Badge> : <Badge kind="quiet">waiting</Badge>}</td>
    </tr>
  )
  return (
    <>
      <p role="status">
        {state.suspended ? <Badge kind="warn">paused</Badge> : <Badge kind="good">running</Badge>} {number(state.due)} due, {number(state.later)} later, {number(state.running)} running;
        {' '}{number(state.places_used)} of {number(state.places)} places used.
      </p>
      <div class="row">
        {state.suspended
          ? <button type="button" disabled={isBusy} onClick={() => act('restart')}><Icon name="run" />Resume</button>
          : <button type="button" disabled={isBusy} onClick={() => act('suspend')}><Icon name="pause" />Pause</button>}
        <button type="button" disabled={isBusy} onClick={() => act('scan')}>Scan now</button>
        <button type="button" disabled={isBusy} onClick={changed}><Icon name="refresh" />Refresh</button>
      </div>
      <Refused refusal={refusal} />
      {state.suspended && <p class="hint">No new tasks are started; running ones continue. A pause does not outlast the program.</p>}
      <h2>Namespaces</h2>
      <Table caption="Namespaces" heads={['Code', ['Waiting'], ['Failed scans']]} rows={state.namespaces.map(namespace)} empty={<>It serves no namespaces. The setting <code>queue_namespaces</code> names them, or the configuration of each names this manager.</>} />
      <h2>Tasks that are near</h2>
      <Table caption="Tasks that are near" heads={['Id', 'Namespace', 'Operation', ['Queue'], 'Start', 'State']} rows={state.tasks.map(task)} empty="No task starts soon. “Scan now” looks for tasks that other programs have created." />
    </>
  )
}

export function Queues() {
  const [code, setCode] = useState(STANDARD)
  const [shown, setShown] = useState(STANDARD)
  const state = useRead(() => callManager(shown, 'list'), [shown])
  return (
    <>
      <Form class="row" action={() => setShown(code.trim())}>
        <TextField label="Queue manager" value={code} set={setCode} required pattern="\s*qm[a-z0-9]*\s*" />
        <button>Show</button>
      </Form>
      {isByAccount() && <p class="warning">Queue managers take the administrator's key only: sign in with it to use this page.</p>}
      <Read of={state}>{(value) => <State code={shown} state={value} changed={state.again} />}</Read>
    </>
  )
}

/* namespaces.jsx: all namespaces with their states, access and volumes. */
import { useState } from 'preact/hooks'
import { Badge, Read, Refused, Table, useAction, useRead } from './parts.jsx'
import { call, collect } from './server.js'
import { STATES, bytes, number, place } from './words.js'

export const State = ({ state = 0 }) => <Badge kind={['good', 'warn', 'bad', 'bad'][state] ?? 'bad'}>{STATES[state] ?? '?'}</Badge>

/* Counting reads the headers of all documents, so it is done on request. */
function Volumes({ ns }) {
  const [volumes, set] = useState(null)
  const { run, refusal, isBusy } = useAction()
  if (volumes) return <>{number(volumes.docs)} documents, {bytes(volumes.v1)}{volumes.v2 > 0 && <> and files of {bytes(volumes.v2)}</>}</>
  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => run(async () => set(await call(ns, 'volumes')))} aria-label={`Count the documents of ${ns}`}>
        Count
      </button>
      <Refused refusal={refusal} />
    </>
  )
}

export function Namespaces() {
  const namespaces = useRead(() => collect((cursor) => call('z', 'ns', { list: { cursor } }), 'namespaces'), [])
  const row = (one) => (
    <tr key={one.ns}>
      <th scope="row"><a href={place('ns', one.ns, 'documents')}>{one.ns}</a></th>
      <td>{one.label}</td>
      <td><State state={one.state} /> {one.message}</td>
      <td>{one.malformed ? <Badge kind="bad">malformed: {one.malformed}</Badge> : one.access}</td>
      <td><code>{one.database}</code></td>
      <td><Volumes ns={one.ns} /></td>
    </tr>
  )
  return (
    <Read of={namespaces}>
      {(list) => <Table caption="Namespaces" heads={['Code', 'Label', 'State', 'Access', 'Database', 'Volume']} rows={list.map(row)} empty={<>There are no namespaces. Make one on the server: <code>stampctl ns create</code>.</>} />}
    </Read>
  )
}

/* warnings.jsx: the last warnings and errors of the server. */
import { Icon } from './icons.jsx'
import { Badge, Read, Table, Time, useRead } from './parts.jsx'
import { call } from './server.js'

export function Warnings() {
  const read = useRead(() => call('z', 'warnings', { limit: 256 }), [])
  const row = (one, index) => (
    <tr key={index}>
      <td><Time stamp={one.at} /></td>
      <td><Badge kind={one.level === 'error' ? 'bad' : 'warn'}>{one.level}</Badge></td>
      <td class="number">{one.pid}</td>
      <td class="wide">{one.text}</td>
    </tr>
  )
  return (
    <>
      <p class="row"><button type="button" onClick={read.again}><Icon name="refresh" />Refresh</button></p>
      <Read of={read}>{({ warnings }) => <Table caption="Warnings" heads={['Time', 'Level', ['Process'], 'Line']} rows={warnings.map(row)} empty="There were no warnings since the server started. There is nothing to do." />}</Read>
    </>
  )
}

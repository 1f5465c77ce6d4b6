/* charts.jsx: what the server has done in the last hour, and does at this moment. */
import uPlot from 'uplot'
import { useEffect, useRef, useState } from 'preact/hooks'
import { pointOf, sampleOf } from './metrics.js'
import { Refused, Table, Time } from './parts.jsx'
import { call } from './server.js'
import { clock, dateOf, number, stampOf } from './words.js'

const EVERY_MS = 2000
const LEAST_MS = 1000 // between two samples of which a rate is computed
const HOUR_S = 3600
const HEIGHT = 160, PERCENT = '% of documents'
const CHARTS = [
  ['Requests', 'in a second', [['requests', 'requests'], ['commits', 'commits'], ['faults', 'faults'], ['conflicts', 'conflicts']]],
  ['Latency', 'ms', [['median', 'median'], ['slow', '99 %']]],
  ['Cache hits', PERCENT, [['hits', 'hits']]],
  ['Tasks', 'number', [['due', 'due'], ['running', 'running'], ['parked', 'parked']]],
  ['Workers', 'number', [['busy', 'busy'], ['workers', 'all'], ['doubt', 'in doubt']]],
  ['Live connections', 'number', [['listeners', 'connections']]],
]

const shown = (value) => (value === undefined || value === null ? '–' : number(value))

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

function optionsOf(unit, series, width) {
  const axis = { stroke: () => style('--quiet'), grid: { stroke: () => style('--line'), width: 1 }, ticks: { stroke: () => style('--line'), width: 1 } }
  return {
    width, height: HEIGHT, cursor: { drag: { x: false } }, legend: { show: false },
    scales: { y: { range: (_, low, high) => [0, unit === PERCENT ? 100 : Math.max(1, high * 1.1)] } },
    axes: [{ ...axis, size: 32, space: 90, values: (_, times, __, ___, step) => times.map((at) => clock(at, step < 60)) }, { ...axis, size: 60 }],
    series: [{}, ...series.map(([, label], index) => ({ label, stroke: () => style(`--series-${index + 1}`), width: 1.5, points: { show: false } }))],
  }
}

function Chart({ title, unit, series, points }) {
  const place = useRef(null)
  const chart = useRef(null)
  useEffect(() => {
    const plot = new uPlot(optionsOf(unit, series, place.current.clientWidth), [[], ...series.map(() => [])], place.current)
    chart.current = plot
    const observer = new ResizeObserver(() => plot.setSize({ width: place.current.clientWidth, height: HEIGHT }))
    observer.observe(place.current)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [])
  useEffect(() => {
    chart.current.setData([points.map((one) => one.at), ...series.map(([name]) => points.map((one) => one[name]))])
  }, [points])
  const last = points.at(-1)
  return (
    <section class="chart" aria-label={title}>
      <h2>{title} <small>{unit}</small></h2>
      <ul class="legend">
        {series.map(([name, label], index) => <li key={name}><i class={`mark series-${index + 1}`} /> {label} <b>{shown(last?.[name])}</b></li>)}
      </ul>
      <div ref={place} aria-hidden="true" />
    </section>
  )
}

/* The last hour, as the server has kept it, and what has come since: {points, began}.  Of a pause there is no point.  `began`: the
 * server has started then, within this hour. */
function useHour() {
  const [hour, setHour] = useState({ points: [] })
  const [refusal, setRefusal] = useState(null)
  useEffect(() => {
    let last = 0, former = null, generation = null, timer = 0, isOver = false
    const read = async () => {
      if (!document.hidden) {
        try {
          const out = await call('z', 'metrics', { after: last })
          if (isOver) return
          if (generation !== out.generation && generation !== null) {
            [last, former, generation] = [0, null, null] // what was read is of a server that has ended
            return void read()
          }
          generation = out.generation
          const rows = [...out.samples, out.now].map((row) => sampleOf(out.names, row))
          const first = rows[0].number === 1 ? dateOf(rows[0].at) : null
          const fresh = []
          for (const row of rows) {
            last = row.number || last
            if (former && row.ms - former.ms < LEAST_MS) continue
            if (former) fresh.push(pointOf(former, row, dateOf(row.at) / 1000))
            former = row
          }
          const least = dateOf(former.at) / 1000 - HOUR_S
          setHour(({ points, began }) => ({ points: [...points, ...fresh].filter((one) => one.at > least), began: first ?? began, hosts: out.hosts }))
          setRefusal(null)
        } catch (fault) {
          setRefusal(fault)
        }
      }
      if (!isOver) timer = setTimeout(read, EVERY_MS)
    }
    read()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [])
  return { ...hour, refusal }
}

const knows = ({ exhaustive, unsure_ms: ms }) => (exhaustive ? 'all' : ms > 0 ? `in ${number(Math.ceil(ms / 1000))} s` : 'not all')
const HOST_COLUMNS = [['Records', 'records'], ['Not exhaustive', 'not_exhaustive_keys'], ['Not found', 'not_found_keys'], ['Copies missing', 'missing_copies'], ['Sent', 'sent'], ['Received', 'received']]

/* Those that hold the records of spread namespaces together, as z knows them. */
function Hosts({ hosts }) {
  const rowOf = (host) => (
    <tr key={host.address}>
      <td>{host.address}{host.self && ' (this one)'}</td><td>{host.state}</td><td>{host.state === 'away' ? '–' : knows(host)}</td>
      {HOST_COLUMNS.map(([title, name]) => <td key={title} class="number">{number(host[name])}</td>)}
    </tr>
  )
  return (
    <section aria-label="Hosts">
      <h2>Hosts <small>that hold records together</small></h2>
      <Table caption="Hosts" heads={['Host', 'State', 'Knows', ...HOST_COLUMNS.map(([title]) => title)]} rows={hosts.map(rowOf)} empty="No host takes part." />
    </section>
  )
}

export function Server() {
  const { points, began, hosts, refusal } = useHour()
  const last = points.at(-1)
  return (
    <>
      <Refused refusal={refusal} />
      {!last && !refusal && <p class="quiet" role="status">The first values come after {EVERY_MS / 1000} seconds.</p>}
      {last && began && last.at - began / 1000 < HOUR_S && <p class="quiet" role="status">The charts begin with the start of the server, <Time stamp={stampOf(began)} />. The server keeps the last hour, in memory.</p>}
      <div class="charts">
        {CHARTS.map(([title, unit, series]) => <Chart key={title} title={title} unit={unit} series={series} points={points} />)}
      </div>
      {hosts && <Hosts hosts={hosts} />}
    </>
  )
}

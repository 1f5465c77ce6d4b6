/* charts.jsx: what the server does at this moment. */
import uPlot from 'uplot'
import { useEffect, useRef, useState } from 'preact/hooks'
import { pointOf, readMetrics } from './metrics.js'
import { Refused } from './parts.jsx'
import { callText } from './server.js'
import { number } from './words.js'

const EVERY_MS = 2000
const KEPT = 300 // points of a chart
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
    axes: [axis, { ...axis, size: 60 }],
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

/* Reads while the page is visible; a pause is a gap between two points. */
function usePoints() {
  const [points, setPoints] = useState([])
  const [refusal, setRefusal] = useState(null)
  useEffect(() => {
    let former = null, formerAt = 0, timer = 0, isOver = false
    const read = async () => {
      if (!document.hidden) {
        try {
          const present = readMetrics(await callText('z', 'metrics'))
          const at = performance.now()
          if (isOver) return
          if (former) {
            const point = { at: Date.now() / 1000, ...pointOf(former, present, (at - formerAt) / 1000) }
            setPoints((list) => [...list.slice(1 - KEPT), point])
          }
          former = present
          formerAt = at
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
  return { points, refusal }
}

export function Server() {
  const { points, refusal } = usePoints()
  const last = points.at(-1)
  return (
    <>
      <Refused refusal={refusal} />
      {!last && !refusal && <p class="quiet" role="status">The first values come after {EVERY_MS / 1000} seconds.</p>}
      <div class="charts">
        {CHARTS.map(([title, unit, series]) => <Chart key={title} title={title} unit={unit} series={series} points={points} />)}
      </div>
    </>
  )
}

/* metrics.js: samples of the server's counters, and what happened between two of them. */

/* {name: number} of a row of the answer. */
export const sampleOf = (names, row) => Object.fromEntries(names.map((name, i) => [name, row[i]]))

const LATENCY = 'le_'

/* The value below which a share of the durations between two samples lie, in seconds; null: there were none. */
export function quantile(former, present, share) {
  const buckets = Object.keys(present).filter((name) => name.startsWith(LATENCY)).map((name) => [Number(name.slice(LATENCY.length).replace('+Inf', 'Infinity')), present[name] - former[name]])
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  if (total <= 0) return null
  const wanted = share * total
  let [low, passed] = [0, 0]
  for (const [bound, count] of buckets) {
    if (passed + count >= wanted) return bound === Infinity ? low : low + (bound - low) * (wanted - passed) / count
    low = bound
    passed += count
  }
  return low
}

/* One point of every chart, at the seconds `at`; null where nothing is known. */
export function pointOf(former, present, at) {
  const seconds = (present.ms - former.ms) / 1000
  const rate = (name) => (seconds > 0 ? Math.max(0, (present[name] - former[name]) / seconds) : 0)
  const hits = rate('hits'), misses = rate('misses')
  const ms = (share) => {
    const value = quantile(former, present, share)
    return value === null ? null : value * 1000
  }
  const { due, running, parked, busy, workers, doubt, listeners } = present
  return {
    at, requests: rate('requests'), faults: rate('faults'), commits: rate('commits'), conflicts: rate('conflicts'),
    median: ms(0.5), slow: ms(0.99), hits: hits + misses ? 100 * hits / (hits + misses) : null, due, running, parked, busy, workers, doubt, listeners,
  }
}

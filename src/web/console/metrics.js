/* metrics.js: reads the text of the server's metrics, and computes what happened between two readings. */

const LINE = /^stampd_([a-z_]+)(?:\{(.*)\})? (\S+)$/

/* {name: [{labels, value}…]} */
export function readMetrics(text) {
  const found = {}
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = line.match(LINE) ?? []
    if (name) (found[name] ??= []).push({ labels: Object.fromEntries([...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key, word]) => [key, word])), value: Number(value) })
  }
  return found
}

/* The sum of a metric, over all of its lines or those with these labels. */
export function sum(metrics, name, labels = {}) {
  const wanted = Object.entries(labels)
  return (metrics[name] ?? []).filter((one) => wanted.every(([key, word]) => one.labels[key] === word)).reduce((total, one) => total + one.value, 0)
}

/* The value below which a share of the durations between two readings lie, in seconds; null: there were none. */
export function quantile(former, present, share) {
  const before = new Map((former.request_seconds_bucket ?? []).map((one) => [one.labels.le, one.value]))
  const buckets = (present.request_seconds_bucket ?? []).map((one) => [one.labels.le === '+Inf' ? Infinity : Number(one.labels.le), one.value - (before.get(one.labels.le) ?? 0)])
  const total = buckets.at(-1)?.[1] ?? 0
  if (total <= 0) return null
  const wanted = share * total
  let [low, lowCount] = [0, 0]
  for (const [bound, count] of buckets) {
    if (count >= wanted) {
      if (bound === Infinity) return low
      return low + (bound - low) * (wanted - lowCount) / (count - lowCount)
    }
    [low, lowCount] = [bound, count]
  }
  return low
}

/* One point of every chart; null where nothing is known. */
export function pointOf(former, present, seconds) {
  const rate = (name) => Math.max(0, (sum(present, name) - sum(former, name)) / seconds)
  const hits = rate('cache_hits_total'), misses = rate('cache_misses_total')
  const ms = (share) => {
    const value = quantile(former, present, share)
    return value === null ? null : value * 1000
  }
  return {
    requests: rate('requests_total'), faults: rate('faults_total'), commits: rate('commits_total'), conflicts: rate('conflicts_total'),
    median: ms(0.5), slow: ms(0.99), hits: hits + misses ? 100 * hits / (hits + misses) : null,
    due: sum(present, 'tasks', { state: 'due' }), running: sum(present, 'tasks', { state: 'running' }), parked: sum(present, 'tasks', { state: 'parked' }),
    busy: sum(present, 'workers_busy'), workers: sum(present, 'workers'), doubt: sum(present, 'entries_in_doubt'), listeners: sum(present, 'live_listeners'),
  }
}

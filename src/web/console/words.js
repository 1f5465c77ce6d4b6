/* words.js: numbers, stamps and places as people read them. */

export const STATES = ['on', 'read-only', 'off', 'gone']
export const NEVER = 991231235959999

const numbers = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 })
const times = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const clocks = [{}, { second: '2-digit' }].map((more) => new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', ...more }))
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

export const number = (value) => numbers.format(value)

export function bytes(value) {
  let unit = 0
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  return `${numbers.format(unit ? Number(value.toPrecision(3)) : value)} ${UNITS[unit]}`
}

/* A stamp is yymmddhhmmssmmm in UTC. */
export function dateOf(stamp) {
  const digits = String(stamp).padStart(15, '0')
  const [, ...parts] = digits.match(/^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{3})$/) ?? []
  const [year, month, day, hour, minute, second, ms] = parts.map(Number)
  return new Date(Date.UTC(2000 + year, month - 1, day, hour, minute, second, ms))
}

export function stampOf(date) {
  return Number(date.toISOString().slice(2, 23).replace(/\D/g, ''))
}

export function time(stamp) {
  if (!stamp) return '–'
  return stamp >= NEVER ? 'never' : times.format(dateOf(stamp))
}

/* The time of day, as the browser's language writes it. */
export const clock = (seconds, hasSeconds) => clocks[Number(hasSeconds)].format(seconds * 1000)

/* The address of a place within the console. */
export const place = (...parts) => '#/' + parts.map(encodeURIComponent).join('/')

/* An address may have been typed by hand. */
function decoded(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export const parts = (hash) => hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decoded)

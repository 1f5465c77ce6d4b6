/* stamp.js: stamps (yymmddhhmmssmmm, UTC) and keys that carry their time. */

/** The stamp of a time in milliseconds since 1970.
 * @param {number} ms @returns {number} */
export function stampOf(ms) {
  const digits = new Date(ms).toISOString().replace(/\D/g, '')
  return Number(digits.slice(2))
}

/** The time of a stamp, in milliseconds since 1970.
 * @param {number} stamp @returns {number} */
export function timeOf(stamp) {
  const [yy, mo, dd, hh, mi, ss] = String(stamp).padStart(15, '0').match(/../g)?.map(Number) ?? []
  return Date.UTC(2000 + yy, mo - 1, dd, hh, mi, ss, stamp % 1000)
}

/** @param {Uint8Array} bytes */
export const hexOf = bytes => Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')

/** A UUID of version 7 (RFC 9562), as the server expects of an Idempotency-Key.
 * @param {number} ms @returns {string} */
export function keyOfTime(ms) {
  const random = hexOf(globalThis.crypto.getRandomValues(new Uint8Array(10)))
  const time = Math.floor(ms).toString(16).padStart(12, '0')
  const variant = '89ab'[parseInt(random[3], 16) % 4]
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(8, 20)}`
}

/** The time of such a key, in milliseconds since 1970.
 * @param {string} key @returns {number} */
export function timeOfKey(key) {
  return parseInt(key.replace('-', '').slice(0, 12), 16)
}

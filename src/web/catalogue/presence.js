/* presence.js: who else looks at the same: a record of each, which ends by itself when its page is gone. */

const LASTS_MS = 15_000, AGAIN_MS = 5_000

/** Calls `show(names)` now and after each change; returns what ends it. */
export function presence(session, place, name, show) {
  const prefix = `presence.${place}.`, key = prefix + crypto.randomUUID()
  const run = (command) => session.call('record', { commands: [{ key, ...command }] }).catch(() => {}) // without a network the others see it end
  const here = () => { if (!document.hidden) void run({ do: 'set', value: name, ttl_ms: LASTS_MS, overwrite: true }) }
  const timer = setInterval(here, AGAIN_MS)
  const end = session.records({ prefix }).subscribe(({ records }) => show(records.filter((one) => one.key !== key).map((one) => one.value)))
  here()
  return () => { clearInterval(timer); end(); void run({ do: 'delete' }) }
}

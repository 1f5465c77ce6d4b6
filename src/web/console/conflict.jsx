/* conflict.jsx: what others have written while a document was edited, beside what was to be written. */
import { Read, useRead } from './parts.jsx'
import { call } from './server.js'

const nameOf = ({ c, k = '' }) => `${c}/${k}`
const shown = (name) => name.replace(/\/$/, '').replace('/', ' / ')
const linesOf = (item) => (!item ? [] : ('s' in item ? item.s : JSON.stringify(item.j, null, 2) ?? '').split('\n'))

/* The lines of a text; those that the other one does not have are marked. */
function Marked({ lines, others, empty }) {
  if (!lines.length) return <em>{empty}</em>
  const known = new Set(others)
  return <pre>{lines.map((line, i) => <span key={i}>{known.has(line) ? line : <mark>{line}</mark>}{'\n'}</span>)}</pre>
}

/* `mine` are the items of the `put` that was refused, `former` those that were read before. */
function Differences({ mine, former, theirs }) {
  const find = (items, name) => items.find((one) => nameOf(one) === name)
  const own = new Set(mine.map(nameOf))
  const names = [...own].filter((name) => linesOf(find(theirs.items, name)).join('\n') !== linesOf(find(former, name)).join('\n'))
  const others = [...new Set([...theirs.items, ...former].map(nameOf))].filter((name) => !own.has(name) && linesOf(find(theirs.items, name)).join('\n') !== linesOf(find(former, name)).join('\n'))
  return (
    <>
      {!names.length && <p>Nobody else has changed the items that you have edited.</p>}
      {names.map((name) => {
        const [theirLines, myLines] = [linesOf(find(theirs.items, name)), linesOf(mine.find((one) => nameOf(one) === name && !one.del))]
        return (
          <section key={name} class="differences" aria-label={`Versions of ${shown(name)}`}>
            <div><h3>{shown(name)}, stored</h3><Marked lines={theirLines} others={myLines} empty="removed" /></div>
            <div><h3>{shown(name)}, yours</h3><Marked lines={myLines} others={theirLines} empty="removed" /></div>
          </section>
        )
      })}
      {others.length > 0 && <p class="hint">Others have changed these items, which you have not edited; they stay as they are: {others.slice(0, 20).map(shown).join(', ')}{others.length > 20 && ' …'}</p>}
    </>
  )
}

export function Conflict({ ns, class_, id, mine, former, save }) {
  const theirs = useRead(async () => (await call(ns, 'get', { docs: [{ c: class_, id }] })).docs[0], [ns, class_, id, mine])
  return (
    <div class="conflict" role="group" aria-label="Another client was faster">
      <h2>Another client was faster</h2>
      <Read of={theirs}>
        {(document) => (
          <>
            <Differences mine={mine} former={former} theirs={document} />
            <button type="button" onClick={() => save(document.v)}>Save mine over theirs</button>
          </>
        )}
      </Read>
    </div>
  )
}

/* snippets.jsx: a request of this page as a command or a program, without its key. */
import { useState } from 'preact/hooks'
import { Icon } from './icons.jsx'

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`

/* JSON as Python reads it. */
const python = (value) => JSON.stringify(value).replace(/"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g, (word) => ({ true: 'True', false: 'False', null: 'None' })[word] ?? word)

export const KINDS = {
  curl: (origin, ns, operation, param) => `curl -s ${quoted(`${origin}/${ns}/op/${operation}`)} -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\\n  -d ${quoted(JSON.stringify({ param }))}`,
  JavaScript: (origin, ns, operation, param) => `import { open } from 'stampd-client'\n\nconst session = await open({ url: '${origin}', ns: '${ns}', token: process.env.KEY })\nconsole.log(await session.call('${operation}', ${JSON.stringify(param)}))\nawait session.close()`,
  Python: (origin, ns, operation, param) => `import os\nfrom stampd import Client\n\nclient = Client('${origin}/${ns}', token=os.environ['KEY'])\nprint(client.operate('${operation}', ${python(param)})['out'])`,
}

/* Buttons that copy it, and show what was copied. */
export function CopyAs({ ns, operation, param }) {
  const [shown, setShown] = useState(null)
  const text = shown && KINDS[shown](location.origin, ns, operation, param)
  const copy = (kind) => {
    setShown(kind)
    navigator.clipboard?.writeText(KINDS[kind](location.origin, ns, operation, param)).catch(() => {}) // it is shown, too
  }
  return (
    <div class="copy">
      <span class="quiet">Copy as</span>
      {Object.keys(KINDS).map((kind) => <button key={kind} type="button" class="small" aria-pressed={kind === shown} onClick={() => copy(kind)}><Icon name="copy" />{kind}</button>)}
      {text && <pre class="printed" tabIndex={0} role="region" aria-label={`As ${shown}`}>{text}</pre>}
      {text && <p class="hint" role="status">Copied. <code>KEY</code> is a variable with your key. <button type="button" class="small" onClick={() => setShown(null)}>Hide</button></p>}
    </div>
  )
}

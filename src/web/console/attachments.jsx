/* attachments.jsx: the files of a document: shown, downloaded, attached.  They are removed with their items, in document.jsx. */
import { useState } from 'preact/hooks'
import { Icon } from './icons.jsx'
import { Field, Form, Refused, TextField, useAction } from './parts.jsx'
import { readFile, sendFile } from './server.js'
import { bytes } from './words.js'

export const isAttachment = (item) => item.c === 'P' && Boolean(item.j?.sha)

/* A browser saves what a link with this attribute names; the key of the administrator stands in no address. */
function save(file, name) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60000)
}

export function Attachment({ ns, class_, id, item }) {
  const { run, refusal, isBusy } = useAction()
  const { mime, size, sha } = item.j
  return (
    <>
      <p>File of {bytes(size)}, {mime}. SHA-256 <code class="digest">{sha}</code></p>
      <Refused refusal={refusal} />
      <button type="button" disabled={isBusy} onClick={() => run(async () => save(await readFile(ns, class_, id, item.k), item.k))}><Icon name="download" />Download {item.k}</button>
    </>
  )
}

export function NewAttachment({ ns, class_, id, saved }) {
  const [key, setKey] = useState('')
  const [file, setFile] = useState(null)
  const { run, refusal, isBusy } = useAction()
  const pick = (picked) => {
    setFile(picked)
    if (picked && !key) setKey(picked.name)
  }
  return (
    <Form class="row" action={() => run(async () => { await sendFile(ns, class_, id, key, file); saved() })}>
      <Field label="File">{(field) => <input id={field} type="file" required onChange={(event) => pick(event.currentTarget.files[0] ?? null)} />}</Field>
      <TextField label="Key of the attachment" value={key} set={setKey} required />
      <button disabled={isBusy}><Icon name="attach" />Attach</button>
      <Refused refusal={refusal} />
    </Form>
  )
}

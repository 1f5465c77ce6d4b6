/* parts.jsx: what several pages show: loading, refusals, dialogs, tables that grow, forms. */
import { useCallback, useEffect, useId, useRef, useState } from 'preact/hooks'
import { Icon } from './icons.jsx'
import { time } from './words.js'

/* Reads when the page is shown, and again when `inputs` change or `again` is called.  Of two reads the later one counts;
 * what was read for other inputs is not shown for these. */
export function useRead(read, inputs) {
  const [state, set] = useState({})
  const number = useRef(0)
  const again = useCallback(async function self() {
    const own = ++number.current
    set((former) => ({ ...(former.reader === self && former), reader: self, isLoading: true }))
    try {
      const value = await read()
      if (own === number.current) set({ reader: self, value })
    } catch (refusal) {
      if (own === number.current) set({ reader: self, refusal })
    }
  }, inputs)
  useEffect(() => {
    again()
    return () => { number.current++ }
  }, [again])
  return { ...(state.reader === again ? state : { isLoading: true }), again }
}

/* Runs one action at a time; `refusal` is that of the last one. */
export function useAction() {
  const [state, set] = useState({})
  const run = async (action) => {
    set({ isBusy: true })
    try {
      const value = await action()
      set({})
      return value
    } catch (refusal) {
      set({ refusal })
      return undefined
    }
  }
  return { ...state, run }
}

export function Refused({ refusal }) {
  if (!refusal) return null
  return (
    <p class="refusal" role="alert">
      {refusal.message}
      {refusal.code && <> <code>{refusal.code}</code></>}
      {refusal.at && <> at <code>{refusal.at}</code></>}
    </p>
  )
}

/* What has been read, or why not. */
export function Read({ of, children }) {
  if (of.value !== undefined) {
    return (
      <div aria-busy={Boolean(of.isLoading)}>
        <Refused refusal={of.refusal} />
        {children(of.value)}
      </div>
    )
  }
  if (of.refusal) return <Refused refusal={of.refusal} />
  return <p class="quiet" role="status">Loading…</p>
}

export const Time = ({ stamp }) => <time title={String(stamp ?? '')}>{time(stamp)}</time>

export const Badge = ({ kind, children }) => <span class={`badge ${kind}`}>{children}</span>

/* `empty`: what to do when there are no rows.  A head in a list is that of a column of numbers. */
export function Table({ caption, heads, rows, empty }) {
  if (!rows.length) return <p class="empty">{empty}</p>
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead><tr>{heads.map((head) => <th key={head} scope="col" class={Array.isArray(head) ? 'number' : undefined}>{head}</th>)}</tr></thead>
        <tbody>{rows}</tbody>
      </table>
    </div>
  )
}

export function Field({ label, hint, children }) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint && <p class="hint">{hint}</p>}
    </div>
  )
}

export function TextField({ label, hint, value, set, ...more }) {
  return (
    <Field label={label} hint={hint}>
      {(id) => <input id={id} value={value} onInput={(event) => set(event.currentTarget.value)} autocomplete="off" spellcheck={false} {...more} />}
    </Field>
  )
}

export function ChoiceField({ label, value, set, choices }) {
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => set(event.currentTarget.value)}>
          {choices.map(([name, words]) => <option key={name} value={name}>{words}</option>)}
        </select>
      )}
    </Field>
  )
}

/* A form that is sent by Enter too. */
export function Form({ action, children, ...more }) {
  return <form onSubmit={(event) => { event.preventDefault(); action() }} {...more}>{children}</form>
}

/* A button that asks before it does what cannot be undone. */
export function Confirmed({ label, question, action, icon = 'remove', ...more }) {
  const dialog = useRef(null)
  const id = useId()
  return (
    <>
      <button type="button" class="danger" onClick={() => dialog.current.showModal()} {...more}><Icon name={icon} />{label}</button>
      <dialog ref={dialog} aria-labelledby={id}>
        <p id={id}>{question}</p>
        <div class="row">
          <button type="button" onClick={() => dialog.current.close()}>Cancel</button>
          <button type="button" class="danger" onClick={() => { dialog.current.close(); action() }}>{label}</button>
        </div>
      </dialog>
    </>
  )
}

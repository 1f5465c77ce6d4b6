/* form.jsx: the members of an item that the schema declares, as fields over its JSON. */
import { ChoiceField, TextField } from './parts.jsx'

const MOST = 24
const KINDS = { string: 'text', folded: 'text', hash: 'text', int: 'whole', long: 'whole', double: 'number', integer: 'whole', number: 'number', boolean: 'boolean' }

/* Of an item as it is declared: [[member, kind, choices, isRequired]…]; of lists and objects there is none, which the JSON has. */
export function membersOf(declared) {
  const { properties, required = [] } = declared?.content ?? {}
  const found = properties
    ? Object.entries(properties).map(([name, { type, enum: choices }]) => [name, KINDS[type], type === 'string' ? choices : undefined, required.includes(name)])
    : Object.entries(declared?.fields ?? {}).filter(([, type]) => typeof type === 'string' || !type.at).map(([name, type]) => [name, typeof type === 'string' ? KINDS[type] : 'text', undefined, false])
  return found.filter(([, kind]) => kind).slice(0, MOST)
}

/* The content as an object; null: the JSON is not valid, or is something else. */
function read(text) {
  try {
    const value = JSON.parse(text)
    return value && typeof value === 'object' && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

/* A value is written as it was typed where the type allows no such value: the server's refusal says so. */
const valueOf = (kind, text) => (text === '' ? undefined : kind === 'boolean' ? text === 'true' : kind !== 'text' && Number.isFinite(Number(text)) ? Number(text) : text)

export function Members({ members, text, set }) {
  const content = read(text)
  if (!members.length) return null
  if (!content) return <p class="hint">The fields are back when the JSON is an object.</p>
  const put = (name, kind) => (typed) => set(JSON.stringify({ ...content, [name]: valueOf(kind, typed) }, null, 2))
  return (
    <div class="members">
      {members.map(([name, kind, choices, isRequired]) => {
        const label = isRequired ? `${name} *` : name, value = content[name] === undefined ? '' : typeof content[name] === 'object' ? JSON.stringify(content[name]) : String(content[name])
        const words = kind === 'boolean' ? ['true', 'false'] : choices
        if (words) return <ChoiceField key={name} label={label} value={value} set={put(name, kind)} choices={['', ...words].map((one) => [String(one), String(one)])} />
        if (kind === 'text') return <TextField key={name} label={label} value={value} set={put(name, kind)} required={isRequired} />
        // when it is left: half a number is none
        return <TextField key={name} label={label} value={value} set={() => {}} onInput={undefined} onChange={({ currentTarget }) => put(name, kind)(currentTarget.value)} inputmode="decimal" required={isRequired} />
      })}
    </div>
  )
}

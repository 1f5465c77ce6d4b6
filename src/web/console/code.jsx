/* code.jsx: JSON in colours, shown and edited.  The colours are ranges of a text (CSS Custom Highlight API), so that they cost no
 * elements; a browser that lacks them shows the text. */
import { useLayoutEffect, useRef } from 'preact/hooks'

const MOST = 100000 // characters that get colours
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b/g
const KINDS = ['name', 'text', 'number', 'word']

const kindOf = ([whole, quoted, colon]) => (quoted ? (colon ? 'name' : 'text') : /\d/.test(whole) ? 'number' : 'word')

/* The parts that have a colour: [[kind, start, end]…].  JSON that is not valid yet has them too. */
export const tokensOf = (text) => [...text.matchAll(TOKEN)].map((found) => [kindOf(found), found.index, found.index + (found[1] ?? found[0]).length])

const highlights = globalThis.Highlight && CSS.highlights && Object.fromEntries(KINDS.map((kind) => {
  const highlight = new Highlight()
  CSS.highlights.set(`json-${kind}`, highlight)
  return [kind, highlight]
}))

/* Of the element whose only child is this text. */
function useColours(text) {
  const place = useRef(null)
  useLayoutEffect(() => {
    const node = place.current?.firstChild
    if (!highlights || !node || text.length > MOST) return undefined
    const ranges = tokensOf(text).map(([kind, startOffset, endOffset]) => [highlights[kind], new StaticRange({ startContainer: node, startOffset, endContainer: node, endOffset })])
    for (const [highlight, range] of ranges) highlight.add(range)
    return () => { for (const [highlight, range] of ranges) highlight.delete(range) }
  }, [text])
  return place
}

export function Json({ value }) {
  const text = JSON.stringify(value) ?? ''
  return <code ref={useColours(text)}>{text}</code>
}

/* A text area with the same text in colours beneath it, whose own letters are not seen.  What is too long has none. */
export function JsonArea({ id, rows, value, set }) {
  const isLong = value.length > MOST
  const shown = isLong ? '' : value
  const place = useColours(shown)
  return (
    <div class={isLong ? 'code long' : 'code'}>
      <pre aria-hidden="true"><span ref={place}>{shown}</span>{'\n'}</pre>
      <textarea id={id} rows={isLong ? 20 : rows} spellcheck={false} autocapitalize="off" autocomplete="off" value={value} onInput={(event) => set(event.currentTarget.value)} />
    </div>
  )
}

/* icons.jsx: small drawings of one line, once in the page, and shown where they are needed.  They are beside words, or in a button that has a name. */

const DRAWN = {
  namespaces: 'M8 2 14 5 8 8 2 5ZM2 8l6 3 6-3M2 11l6 3 6-3',
  server: 'M2.5 2.5h11v4.5h-11zM2.5 9h11v4.5h-11zM5 4.75h.01M5 11.25h.01',
  tasks: 'M2 4.5 3.5 6 6 3M8.5 4.5H14M2 11.5 3.5 13 6 10M8.5 11.5H14',
  queues: 'M2 3.5h12M2 8h9M2 12.5h6',
  warnings: 'M8 2 14.5 13.5h-13ZM8 6.5v3M8 11.5h.01',
  documents: 'M3.5 1.5H9L12.5 5v9.5h-9ZM9 1.5V5h3.5M6 8.5h4M6 11.5h4',
  accounts: 'M8 7.5a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5ZM2.5 14c.5-2.75 2.5-4 5.5-4s5 1.25 5.5 4',
  schema: 'M2 2.5h12v11H2ZM2 6h12M6.5 6v7.5',
  rules: 'M8 1.5 13.5 3.5V8c0 3.25-2.25 5.5-5.5 6.5C4.75 13.5 2.5 11.25 2.5 8V3.5ZM5.5 8l2 2 3-4',
  settings: 'M2 4.5h7M13 4.5h1M11 2.5v4M2 11.5h1M7 11.5h7M5 9.5v4',
  out: 'M6 2.5H2.5v11H6M10 4.5 13.5 8 10 11.5M13.5 8H6',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.75 10.75 14 14',
  refresh: 'M13.5 8A5.5 5.5 0 1 1 11.5 3.75M13.5 1.5V5H10',
  add: 'M8 3v10M3 8h10',
  remove: 'M2.5 4h11M6 4V2h4v2M4 4l.75 10h6.5L12 4M6.75 7v4.5M9.25 7v4.5',
  save: 'M3 8.5 6.5 12 13 4.5',
  download: 'M8 2v8.5M4.5 7 8 10.5 11.5 7M3 13.5h10',
  attach: 'M12.5 7.5 7.75 12.25a2.75 2.75 0 0 1-4-4L9 3a1.9 1.9 0 0 1 2.75 2.75L6.5 11',
  pause: 'M5.5 3v10M10.5 3v10',
  run: 'M4.5 2.5 12.5 8l-8 5.5Z',
  copy: 'M5.5 5.5h8v8h-8ZM10.5 5.5v-3h-8v8h3',
  none: 'M5 6l3-3 3 3M5 10l3 3 3-3',
  ascending: 'M8 13V3M4.5 6.5 8 3l3.5 3.5',
  descending: 'M8 3v10M4.5 9.5 8 13l3.5-3.5',
  previous: 'M10 3 5 8l5 5',
  next: 'M6 3l5 5-5 5',
}

export const Sprite = () => (
  <svg class="hidden" aria-hidden="true">
    {Object.entries(DRAWN).map(([name, path]) => <symbol key={name} id={`icon-${name}`} viewBox="0 0 16 16"><path d={path} /></symbol>)}
  </svg>
)

export const Icon = ({ name, isBehind }) => <svg class={isBehind ? 'icon behind' : 'icon'} aria-hidden="true"><use href={`#icon-${name}`} /></svg>

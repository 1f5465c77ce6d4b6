/* list.jsx: a list of lines in React. */
import { createRoot } from 'react-dom/client'
import { open } from './stampd-client/index.js'
import { useDocument, useStore } from './stores.js'

const session = await open({ ns: 'lab', name: 'react' })

function List({ id }) {
  const list = useDocument(session, 'List', id)
  const { pending } = useStore(session.status)
  const add = (event) => {
    event.preventDefault()
    const text = new FormData(event.target).get('text')
    session.doc('List', id).change((list) => list.set('Line', crypto.randomUUID(), { text }))
    event.target.reset()
  }
  return (
    <main>
      <ul>{list.items('Line').map(([key, line]) => <li key={key}>{line.text}</li>)}</ul>
      <form onSubmit={add}><label>New line <input name="text" required /></label><button>Add</button></form>
      <p>{pending ? 'Being sent.' : 'All is sent.'}</p>
    </main>
  )
}

createRoot(document.body).render(<List id={location.hash.slice(1) || 'first'} />)

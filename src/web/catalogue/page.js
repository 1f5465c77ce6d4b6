/* page.js: elements, and what the parts of the page have in common. */

export const $ = (/** @type {string} */ id) => document.getElementById(id)

/** An element: `h('a', { href: '#' }, 'text', …)`; members that begin with `on` are listeners. */
export function h(name, more = {}, ...inside) {
  const element = Object.assign(document.createElement(name), more)
  element.append(...inside.flat())
  return element
}

/** A form that calls `done`, which is asynchronous, with its values and the name of the pressed button, and shows why that failed. */
export function form(done, ...inside) {
  const fault = h('p', { className: 'refusal', hidden: true, role: 'alert' })
  const onsubmit = async (event) => {
    event.preventDefault()
    const values = Object.fromEntries(new FormData(event.target))
    event.target.reset()
    await done(values, event.submitter?.value).catch((error) => Object.assign(fault, { textContent: error.message, hidden: false }))
  }
  return h('form', { onsubmit }, ...inside, fault)
}

export const link = (id) => h('a', { href: `#package/${encodeURIComponent(id)}` }, id)

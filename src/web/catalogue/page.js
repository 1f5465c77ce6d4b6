/* page.js: elements, and what the parts of the page have in common. */

export const $ = (/** @type {string} */ id) => document.getElementById(id)

/** An element: `h('a', { href: '#' }, 'text', …)`; members that begin with `on` are listeners. */
export function h(name, more = {}, ...inside) {
  const element = Object.assign(document.createElement(name), more)
  element.append(...inside.flat())
  return element
}

/** A form that calls `done`, which is asynchronous, with its values; it shows why that failed, and keeps what was typed until it is done. */
export function form(done, ...inside) {
  const fault = h('p', { className: 'refusal', hidden: true, role: 'alert' })
  const onsubmit = async (event) => {
    event.preventDefault()
    const form = event.target, error = await done(Object.fromEntries(new FormData(form))).then(() => form.reset(), (error) => error)
    Object.assign(fault, { textContent: error?.message ?? '', hidden: !error })
  }
  return h('form', { onsubmit }, ...inside, fault)
}

export const link = (id) => h('a', { href: `#package/${encodeURIComponent(id)}` }, id)

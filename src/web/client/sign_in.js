/* sign_in.js: the element <stampd-sign-in>: signs in, registers, asks for a new password, uses the links of mails and follows invitations.  A page needs nothing else of the
 * library for it.  It stands in the page's own tree, so that its styles and password managers reach it; its own have no weight against the page's. */

const TEXTS = {
  name: 'Name', address: 'Mail address', either: 'Name or mail address', password: 'Password', fresh: 'New password', invitation: 'Invitation',
  login: 'Sign in', register: 'Create an account', forgot: 'Set a new password', mail: 'Sign in by a mail', confirm: 'Confirm your address',
  send: 'Send a mail', save: 'Save and sign in', passkey: 'Sign in with a passkey', create: 'Create it with a passkey', back: 'Back',
  sent: 'If that is possible, a mail is on its way. Open its link.', done: 'You are signed in.', confirmed: 'The address is confirmed.',
  join: 'You are invited', accept: 'Join', joined: 'You are a member now.', again: 'Then open the invitation again.',
  XBUSY: 'There were too many attempts. Wait a while, and try again.', NETWORK: 'The server cannot be reached.'
}

/** What is shown, and sent.  `begins`: its answer is a session; `offers`: a passkey may take the place of the password.
 * @typedef {{operation: string, title: string, button: string, fields: string[], begins?: boolean, passkey?: string}} View */
/** @type {Record<string, View>} */
const VIEWS = {
  login: { operation: 'login', title: 'login', button: 'login', fields: ['name', 'password'], begins: true, passkey: 'passkey' },
  register: { operation: 'register', title: 'register', button: 'register', fields: ['name', 'fresh', 'invitation'], begins: true, passkey: 'create' },
  address: { operation: 'register', title: 'register', button: 'send', fields: ['address', 'invitation'] },
  forgot: { operation: 'reset', title: 'forgot', button: 'send', fields: ['either'] },
  mail: { operation: 'maillogin', title: 'mail', button: 'send', fields: ['either'] },
  '#login': { operation: 'maillogin', title: 'login', button: 'login', fields: [], begins: true },
  '#reset': { operation: 'reset', title: 'forgot', button: 'save', fields: ['fresh'], begins: true },
  '#register': { operation: 'register', title: 'register', button: 'save', fields: ['fresh', 'invitation'], begins: true, passkey: 'create' },
  '#join': { operation: 'membership', title: 'join', button: 'accept', fields: [] },
  '#confirm': { operation: 'confirm', title: 'confirm', button: 'confirm', fields: [] }
}

/** @type {Record<string, object>} */
const FIELDS = {
  name: { name: 'name', required: true, maxLength: 128, autocomplete: 'username', autocapitalize: 'none', spellcheck: false },
  address: { name: 'address', type: 'email', required: true, maxLength: 128, autocomplete: 'email' },
  either: { name: 'either', required: true, maxLength: 128, autocomplete: 'username', autocapitalize: 'none', spellcheck: false },
  password: { name: 'password', type: 'password', required: true, autocomplete: 'current-password' },
  fresh: { name: 'password', type: 'password', required: true, minLength: 8, autocomplete: 'new-password' },
  invitation: { name: 'invitation', autocomplete: 'off' }
}

const STYLE = `:where(stampd-sign-in) { display: block; max-width: var(--stampd-width, 22rem); color: var(--stampd-text, inherit) }
:where(stampd-sign-in h2) { margin: 0 0 0.75rem }
:where(stampd-sign-in label) { display: grid; gap: 0.25rem; margin: 0.75rem 0 }
:where(stampd-sign-in input, stampd-sign-in button) { font: inherit; padding: 0.5rem 0.75rem; border: 1px solid var(--stampd-line, GrayText); border-radius: var(--stampd-radius, 6px);
  background: var(--stampd-field, Field); color: var(--stampd-field-text, FieldText) }
:where(stampd-sign-in input[aria-invalid]) { border-color: var(--stampd-refusal, #c62828) }
:where(stampd-sign-in .row) { display: flex; flex-wrap: wrap; gap: 0.5rem; margin: 0.75rem 0 }
:where(stampd-sign-in button) { cursor: pointer }
:where(stampd-sign-in button.main) { background: var(--stampd-accent, LinkText); color: var(--stampd-accent-text, Canvas); border-color: transparent }
:where(stampd-sign-in button.quiet) { border-color: transparent; background: none; color: var(--stampd-accent, LinkText); text-decoration: underline }
:where(stampd-sign-in :focus-visible) { outline: 2px solid var(--stampd-accent, LinkText); outline-offset: 2px }
:where(stampd-sign-in [role=alert]:not(:empty)) { border-left: 3px solid var(--stampd-refusal, #c62828); padding-left: 0.75rem }`

/** A constructed sheet: a policy of the page that allows no inline styles allows it. */
function adoptStyle() {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(STYLE)
  document.adoptedStyleSheets = [sheet, ...document.adoptedStyleSheets]
}

/** @param {string} name @param {object} [more] @param {(Node | string)[]} inside */
const h = (name, more = {}, ...inside) => {
  const element = Object.assign(document.createElement(name), more)
  element.append(...inside)
  return element
}

/** A refusal of the server, with its code. */
class Refusal extends Error {
  /** @param {{code: string, message: string, detail?: string, status?: number}} problem */
  constructor({ code, message, detail, status }) {
    super(detail ?? message)
    this.code = code
    this.status = status
  }
}

let isStyled = false

/** Its attributes: `ns`, `url` of the server (the page's origin, if absent), `cookie` (the session is a cookie), `confirm` (accounts are made by mail), and `offers`, words of
 * register, mail, reset, passkey and invitation.  `texts` has what it says.  The event `sign-in` has as its detail what the operation has returned; `join`, and the
 * member `joined` of that detail, what became of an invitation to a document.  `token` is that of a visitor who is signed in already. */
export class SignIn extends HTMLElement {
  constructor() {
    super()
    /** @type {Record<string, string>} */
    this.texts = { ...TEXTS }
    this.view = 'login'
    this.ticket = this.invitation = this.given = this.joins = this.own = this.label = ''
    this.takes = () => { if (this.takeFragment()) this.show(this.view, true) }
  }

  connectedCallback() {
    if (!isStyled) adoptStyle()
    isStyled = true
    this.takeFragment()
    addEventListener('hashchange', this.takes)
    this.show(this.view, false)
  }

  set token(/** @type {string} */ token) {
    this.own = token
    if (this.joins) this.show('#join', false)
  }

  disconnectedCallback() {
    removeEventListener('hashchange', this.takes)
  }

  /** The ticket of a mail, or an invitation, of the address of the page: it does not stay there, nor in the history. */
  takeFragment() {
    const found = /^#(login|reset|register|confirm|invitation|join)=([\w-]+)$/.exec(location.hash)
    if (!found) return false
    history.replaceState(history.state, '', location.pathname + location.search)
    const [, what, secret] = found
    if (what === 'invitation') this.invitation = secret
    else if (what === 'join') this.joins = secret
    else this.ticket = secret
    this.view = what === 'invitation' ? this.nameOfRegistration() : what === 'join' && !this.own && !this.hasAttribute('cookie') ? 'login' : `#${what}`
    if (what === 'join') void this.look()
    return true
  }

  /** What the invitation is for. */
  async look() {
    const label = await this.call('membership', { look: this.joins }).then(out => out.label ?? '', error => {
      this.joins = ''
      return error.message
    })
    this.label = this.joins ? `${this.texts.join}: ${label}` : label
    if (this.note) this.note.textContent = this.label
  }

  /** @param {string} word */
  hasOffer(word) {
    return (this.getAttribute('offers') ?? '').split(/\s+/).includes(word)
  }

  nameOfRegistration() {
    return this.hasAttribute('confirm') ? 'address' : 'register'
  }

  /** Another view, which gets the focus if its visitor has asked for it. @param {string} name @param {boolean} hasFocus */
  show(name, hasFocus) {
    this.view = name
    const view = VIEWS[name], texts = this.texts, other = (/** @type {string} */ word, /** @type {string} */ to) =>
      h('button', { type: 'button', className: 'quiet', textContent: texts[word], onclick: () => this.show(to, true) })
    const fields = view.fields.filter(field => field !== 'invitation' || this.invitation || this.hasOffer('invitation')).map(field =>
      h('label', {}, texts[field], h('input', { ...FIELDS[field], value: field === 'invitation' ? this.invitation : field === 'name' || field === 'either' ? this.given : '' })))
    const buttons = [h('button', { className: 'main', textContent: texts[view.button] })]
    if (view.passkey && this.hasOffer('passkey')) buttons.push(h('button', { value: 'passkey', formNoValidate: true, textContent: texts[view.passkey] }))
    const others = name !== 'login' ? [other('back', 'login')] : [
      ...this.hasOffer('register') ? [other('register', this.nameOfRegistration())] : [], ...this.hasOffer('mail') ? [other('mail', 'mail')] : [],
      ...this.hasOffer('reset') ? [other('forgot', 'forgot')] : []]
    const title = h('h2', { tabIndex: -1, textContent: texts[view.title] })
    this.refusal = h('p', { id: 'stampd-refusal', role: 'alert' })
    this.form = h('form', { onsubmit: (/** @type {SubmitEvent} */ event) => this.submits(event) }, title, ...fields, h('p', { className: 'row' }, ...buttons), this.refusal)
    this.replaceChildren(this.form, h('p', { className: 'row' }, ...others))
    this.note = h('p', { role: 'status', textContent: this.label })
    title.after(this.note)
    if (hasFocus) (this.querySelector('input') ?? title).focus()
  }

  /** What was done; nothing is left to fill in. @param {string} word @param {string} [more] */
  tell(word, more = '') {
    const told = h('p', { role: 'status', tabIndex: -1, textContent: `${this.texts[word]} ${more}`.trim() }), back = h('button', { type: 'button', className: 'quiet', textContent: this.texts.back })
    back.onclick = () => this.show('login', true)
    this.replaceChildren(told, ...word === 'done' ? [] : [back])
    told.focus()
  }

  /** @param {SubmitEvent} event */
  async submits(event) {
    event.preventDefault()
    const form = /** @type {HTMLFormElement} */ (event.currentTarget), byPasskey = /** @type {HTMLButtonElement | null} */ (event.submitter)?.value === 'passkey'
    /** @type {Record<string, string>} */
    const values = {}
    for (const [name, value] of new FormData(form)) {
      const text = name === 'password' ? String(value) : String(value).trim()
      if (text && !(byPasskey && name === 'password')) values[name] = text
    }
    const name = form.querySelector('input[name=name]')
    if (byPasskey && this.view === 'register' && name instanceof HTMLInputElement && !name.reportValidity()) return
    this.given = values.name ?? values.either ?? this.given
    if (form.ariaBusy === 'true') return
    form.ariaBusy = 'true'
    if (this.refusal) this.refusal.textContent = ''
    try {
      await this.run(values, byPasskey)
    } catch (error) {
      this.refuse(/** @type {Error} */ (error))
    } finally {
      form.ariaBusy = 'false'
    }
  }

  /** @param {Error & {code?: string}} error */
  refuse(error) {
    const first = this.querySelector('input')
    if (this.view === '#join' && /** @type {Refusal} */ (error).status === 401) return this.show('login', true)
    if (this.refusal) this.refusal.textContent = this.texts[error.code ?? ''] ?? error.message
    first?.setAttribute('aria-invalid', 'true')
    first?.setAttribute('aria-describedby', 'stampd-refusal')
    first?.focus()
  }

  /** @param {Record<string, string>} values @param {boolean} byPasskey */
  async run({ either, ...values }, byPasskey) {
    const view = VIEWS[this.view]
    if (this.view === '#join') {
      await this.join(this.own)
      return this.tell('joined')
    }
    /** @type {Record<string, unknown>} */
    const param = { ...values, ...either && { [either.includes('@') ? 'address' : 'name']: either }, ...this.view[0] === '#' && { ticket: this.ticket } }
    if (view.begins) Object.assign(param, { device: navigator.platform.slice(0, 200), ...this.hasAttribute('cookie') && { cookie: true } })
    let operation = view.operation
    if (byPasskey && operation === 'login') {
      operation = 'passkey'
      delete param.name
      param.login = await this.getPasskey()
    } else if (byPasskey) param.passkey = await this.makePasskey(values.name)
    const out = await this.call(operation, param)
    this.ticket = this.invitation = ''
    let more = out.sent && this.joins ? this.texts.again : ''
    if (out.account && this.joins) out.joined = await this.join(out.token).catch(error => { more = error.message })
    this.tell(out.sent ? 'sent' : out.confirmed ? 'confirmed' : out.joined ? 'joined' : 'done', more)
    if (out.account) this.dispatchEvent(new CustomEvent('sign-in', { bubbles: true, detail: out }))
  }

  /** @param {string | undefined} token */
  async join(token) {
    const joined = await this.call('membership', { join: this.joins }, token)
    this.joins = this.label = ''
    this.dispatchEvent(new CustomEvent('join', { bubbles: true, detail: joined }))
    return joined
  }

  async getPasskey() {
    const { options } = await this.call('passkey', { begin: 'login' })
    const found = await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
    return /** @type {PublicKeyCredential} */ (found).toJSON()
  }

  /** @param {string | undefined} name */
  async makePasskey(name) {
    const { options } = await this.call('passkey', { begin: 'register', ...name && { name } })
    const made = await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
    return /** @type {PublicKeyCredential} */ (made).toJSON()
  }

  /** @param {string} operation @param {object} param @param {string} [token] @returns {Promise<any>} */
  async call(operation, param, token) {
    const address = `${this.getAttribute('url') ?? ''}/${this.getAttribute('ns') ?? ''}/op/${operation}`
    const lost = () => { throw new Refusal({ code: 'NETWORK', message: TEXTS.NETWORK }) }
    const response = await fetch(address, {
      method: 'POST', credentials: this.hasAttribute('cookie') ? 'include' : 'omit', headers: { 'Content-Type': 'application/json', ...token && { Authorization: `Bearer ${token}` } }, body: JSON.stringify({ param })
    }).catch(lost)
    const answer = await response.json().catch(lost)
    if (!response.ok && answer.code) throw new Refusal(answer)
    return response.ok && answer.out ? answer.out : lost()
  }
}

customElements.define('stampd-sign-in', SignIn)

/* account.js: whose token it is.  Pure. */

/** Base64 for addresses, as text. @param {string} text */
const decoded = text => new TextDecoder().decode(Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), one => one.charCodeAt(0)))

/** The account: of a session or a service key its id, of a provider's token issuer and subject; empty: nobody's, or the token does not tell.
 * @param {string | null | undefined} token */
export function accountOf(token) {
  const own = /^s[tk]_([^.]+)\./.exec(token ?? '')
  if (own) return own[1]
  try {
    const { iss, sub } = JSON.parse(decoded((token ?? '').split('.')[1]))
    return iss && sub ? `${iss} ${sub}` : ''
  } catch {
    return ''
  }
}

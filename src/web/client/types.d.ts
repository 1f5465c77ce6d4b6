/* types.d.ts: the shapes of what is stored, sent and shown. */

/** An item as the server sends it; `j` a JSON value or `s` a raw text. */
export interface Item { c: string, k?: string, v: number, j?: unknown, s?: string }

/** A copy of a document; `v` 0: it does not exist.  Never changed, only replaced. */
export interface Copy { c: string, id: string, v: number, ct: number, dt: number, w?: string, items: Record<string, Item> }

/** An element of `syncs` in an answer. */
export interface SyncAnswer {
  c: string, id: string, v: number, ct: number, dt: number, w?: string, later?: boolean, closed?: boolean
  items?: Item[], dels?: { c: string, k?: string, v: number }[], clkeys?: string[]
}

/** What a local change does to an item: the content it gets, or `del`. */
export interface ItemEdit { c: string, k?: string, j?: unknown, del?: true }

/** What a local change does to a document, and what it was based on.
 * `base.ct`: the incarnation; text: it begins with the entry of this id. */
export interface Edit {
  c: string, id: string, delete?: true, items: Record<string, ItemEdit>
  base: { v: number, ct: number | string }
  was: Record<string, { v: number, item: unknown }>
}

/** An operation that waits for the server.  `by`: the account that has made it; absent or empty: nobody was signed in.  `key`: made with
 * it.  `sent`: it may have been done; it is repeated exactly so. */
export interface Entry {
  id: string, by?: string, op: string, at: number, key?: string, edits: Edit[], param?: string
  sent?: { key: string, param: string, tries: number }
}

/** A change that waits, as an application sees it.  `account`: empty, nobody was signed in; `isOwn`: it is that of the session.  `at`: when it
 * was made, by this clock.  `documents`: class and id of what it changes, as far as it was said. */
export interface Change {
  id: string, account: string, isOwn: boolean, op: string, at: number, documents: [string, string][]
}

/** A collection as it is kept.  One with an empty `def` has as its value the account whose copies there are. */
export interface Kept {
  def: string, c: string, collection: string, value: unknown, members: string[], incoming?: string[]
  token?: string, cursor?: string
  /** Documents that were changed here since the last answer: they may be members. */
  extra?: string[]
}

/** What changes together: null removes. */
export interface Batch {
  copies?: [string, Copy | null][], collections?: [string, Kept | null][], outbox?: [string, Entry | null][]
}

/** Where a session keeps its state. */
export interface Store {
  isShared: boolean
  isLasting: boolean
  /** null: it has lost all that it had, and is given it again by `commit`. */
  load(): Promise<{ copies: Copy[], collections: Kept[], outbox: Entry[] } | null>
  /** In one step.  Rejected: nothing of it is stored; it comes again, together with what follows it.  `whole`: everything, in place of
   * the batch, for a store that has lost what it had. */
  commit(batch: Batch, whole?: () => Batch): Promise<void>
  close(): Promise<void>
}

/** A conflict about an item, or (without `item`) about a whole document.  null: absent. */
export interface Conflict {
  c: string, id: string, item?: string, key?: string, base: unknown, mine: unknown, theirs: unknown
}

/** Which records: of one key, of all keys that begin with a prefix, or of those between two keys, both included. */
export type RecordsRange =
  { key: string, prefix?: undefined, from?: undefined, to?: undefined } |
  { key?: undefined, prefix: string, from?: undefined, to?: undefined } |
  { key?: undefined, prefix?: undefined, from?: string, to?: string }

/** A record as the server sends it.  `state`, NOT_READ: its disk does not give the value. */
export interface ReadRecord {
  key: string, type: 'void' | 'boolean' | 'integer' | 'float' | 'string' | 'buffer'
  value?: null | boolean | number | string | { buffer: string }
  size: number, at: number, created_s: number, modified_s: number, accessed_s: number
  persist?: true, expires_ms?: number, touch_s?: number, locked_until_ms?: number, worked_until_ms?: number, state?: string
}

/** The value of a store of records, in the order of their keys.  `known`: they were read.  `more`: there are more than these 1,000. */
export interface Records {
  known: boolean, records: ReadRecord[], more: boolean
  /** Why they cannot be read, or are not followed. */
  fault: import('./fault.js').Fault | null
}

/** A condition of a search, or a group of them. */
export type Where = { i?: string, f: string, t: string, v1: unknown, v2?: unknown } | { or: Where[] } | { and: Where[] } | { not: Where }

/** A search, as the operation `find` takes it; `want`, if absent: items. */
export interface Search {
  where?: Where[], order?: string | string[], limit?: number
  /** A field with words: items have excerpts. */
  marks?: string
  id?: { t: string, v1: unknown, v2?: unknown }, v?: { t: string, v1: unknown, v2?: unknown }, ct?: { t: string, v1: unknown, v2?: unknown }
  want?: 'ids' | 'items' | 'docs' | 'count' | (string | string[])[] | { sum?: string | string[], min?: string | string[], max?: string | string[], avg?: string | string[], by?: string | string[] }
}

/** What `stampd-client/find` must know of the schema of the namespace, written as it is declared there. */
export interface Schema {
  classes: Record<string, {
    maxLife?: string
    items?: Record<string, { singleton?: boolean, fields?: Record<string, string | { type: string, at?: string[], collate?: string } | { text: string[], language?: string }>, [member: string]: unknown }>
    collections?: Record<string, { key: string[], list?: boolean, [member: string]: unknown }>
    [member: string]: unknown
  }>
}

/** The value of a store of a search: its answer, one page.  `known`: it was read. */
export interface Found {
  known: boolean
  /** It is of the copies, not of the server; `more` without a cursor: there is more than this page. */
  here?: true
  /** Why it cannot be read, or is not followed. */
  fault: import('./fault.js').Fault | null
  ids?: string[], items?: { id: string, k?: string, v: number, j: any, marks?: Record<string, string[][]> }[], docs?: any[], cursor?: string
  count?: number, more?: boolean, groups?: any[], sum?: any, min?: any, max?: any, avg?: any
}

export interface SendOptions {
  /** The media type; absent: that of the blob. */
  type?: string
  /** Bytes of a part; a file that is no larger is sent in one request. */
  part?: number
  /** What `progress` named: goes on with that upload, also in another session. */
  upload?: string
  /** After each part; `upload` of a file that is sent in parts. */
  progress?: (progress: { sent: number, size: number, upload?: string }) => void
  signal?: AbortSignal
}

/** What the administrator has set: 0 on, 1 read-only, and words, names and options for pages. */
export interface Namespace {
  state: number, message?: string, label?: string, theme?: string, options?: any
}

export interface Status {
  /** `pending`: changes of this account that wait; `others`: those that wait for other accounts. */
  online: boolean, pending: number, others: number, leader: boolean, lasting: boolean
  /** Do live events come? And since when that is so, by this clock; 0: they have never come. */
  live: boolean, liveSince: number
  /** As the last live event said. */
  namespace: Namespace
  fault: import('./fault.js').Fault | null
  progress: { received: number } | null
}

export interface Options {
  /** The address of the server, `https://example.org`; absent: where the page comes from. */
  url?: string
  ns: string
  /** The name under which copies and waiting changes are kept; absent: in memory only. */
  name?: string
  store?: Store
  /** A session's token, or a function that returns it; it is called with true when the last one was refused. */
  token?: string | ((renew: boolean) => string | null | undefined | Promise<string | null | undefined>)
  /** The account, where the token does not name it: the session is a cookie. */
  account?: string
  /** Returns what to write: a value, null to remove, undefined to keep theirs. Without it, mine is written. */
  conflict?: (conflict: Conflict) => unknown
  /** Is called for each change that the server has refused and that was rolled back. */
  refused?: (fault: import('./fault.js').Fault, id: string) => void
  live?: boolean
  /** 'include': send the cookie of the session to another origin. */
  credentials?: RequestCredentials
  build?: string
  fetch?: typeof fetch
  backoff?: { least: number, most: number }
  /** After so many milliseconds an unanswered request counts as lost. */
  patience?: number
}

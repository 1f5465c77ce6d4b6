/* list.js: starts List.svelte. */
import { mount } from 'svelte'
import List from './List.svelte'
import { open } from './stampd-client/index.js'

const session = await open({ ns: 'lab', name: 'svelte' })
mount(List, { target: document.body, props: { session, id: location.hash.slice(1) || 'first' } })

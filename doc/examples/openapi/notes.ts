/* notes: writes and reads documents of the namespace `lab` by the types that openapi-typescript makes of its description. */
import createClient from 'openapi-fetch'
import type { components, paths } from './lab.ts'

type Title = components['schemas']['Note.Title']

const server = createClient<paths>({ baseUrl: `${process.env.STAMPD_URL}/lab` })
const title: Title = { text: 'Shopping' }
const written = await server.POST('/op/put', {
  body: { param: { docs: [{ c: 'Note', id: 'first', items: [{ c: 'Title', j: title }] }] } },
})
if (written.error)
  throw new Error(written.error.message)
const read = await server.GET('/doc/{class}/{id}', { params: { path: { class: 'Note', id: 'first' } } })
const found = read.data?.items[0]?.j as Title
console.log(read.data?.v === written.data.out?.v, found.text)
const refused = await server.GET('/doc/{class}/{id}', { params: { path: { class: 'Note', id: 'none' } } })
console.log(refused.error?.code)

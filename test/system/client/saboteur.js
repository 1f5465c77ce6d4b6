/* saboteur.js: a network that loses requests and answers, cuts answers, delays them, sends requests twice, and is away at times. */
import { setTimeout as pause } from 'node:timers/promises'

/** A generator of numbers in [0, 1) that a seed repeats. */
export function dice(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const HARMS = ['before', 'after', 'cut', 'twice', 'late', 'busy']

/** `fetch` for a session. `net.rate` is how often harm is done; `net.isOn` false: the network is away. */
export function sabotaged(random, rate = 0.3) {
  const net = { rate, isOn: true, harms: 0 }
  const lost = () => { throw new TypeError('lost') }
  net.fetch = async (address, init) => {
    if (!net.isOn) lost()
    const harm = random() < net.rate ? HARMS[Math.floor(random() * HARMS.length)] : ''
    if (harm) net.harms++
    if (harm === 'before') lost()
    if (harm === 'late') await pause(random() * 20)
    if (harm === 'busy') return new Response('{"code":"XBUSY","phase":1}', { status: 429, headers: { 'Content-Type': 'application/problem+json', 'Retry-After': '0' } })
    if (address.endsWith('/live')) return fetch(address, init)
    if (harm === 'twice') await fetch(address, init).then(response => response.arrayBuffer())
    const response = await fetch(address, init)
    const body = await response.text()
    if (harm === 'after' || !net.isOn) lost()
    const headers = { 'Content-Type': response.headers.get('content-type') ?? '' }
    return new Response(harm === 'cut' ? body.slice(0, Math.floor(random() * body.length)) : body, { status: response.status, headers })
  }
  return net
}

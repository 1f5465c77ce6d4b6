/* drawing.js: numbers that seem random, the same for the same seed. */

/** By mulberry32: numbers below one, elements of lists, lists of up to so many, and what is true with a share. */
export function drawing(seed) {
  const next = () => {
    seed = seed + 0x6D2B79F5 | 0
    let t = Math.imul(seed ^ seed >>> 15, 1 | seed)
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t
    return ((t ^ t >>> 14) >>> 0) / 4294967296
  }
  const below = most => Math.floor(next() * most)
  return { below, one: list => list[below(list.length)], some: (most, draw) => Array.from({ length: below(most + 1) }, draw), is: share => next() < share }
}

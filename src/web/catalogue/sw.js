/* sw.js: keeps the page, so that it opens without a network too. */
const PAGE = ['./', 'catalogue.js', 'catalogue.css'].map((name) => new URL(name, registration.scope).href)
const kept = caches.open('page')

addEventListener('install', (event) => event.waitUntil(kept.then((cache) => cache.addAll(PAGE))))

/** The server's, else the one that was kept. */
const answer = (request) => fetch(request).then(async (response) => {
  if (response.ok) await (await kept).put(request, response.clone())
  return response
}, async () => (await kept).match(request))

addEventListener('fetch', (event) => PAGE.includes(event.request.url.split('#')[0]) && event.respondWith(answer(event.request)))

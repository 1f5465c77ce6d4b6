/* build.js: bundles both pages into dist; the client library is in the folder stampd-client. */
import { writeFile } from 'node:fs/promises'
import { build } from 'esbuild'
import svelte from 'esbuild-svelte'

const pages = { react: 'list.jsx', svelte: 'list.js' }
await build({
  entryPoints: Object.entries(pages).map(([out, file]) => ({ in: file, out })),
  outdir: 'dist',
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  mainFields: ['svelte', 'browser', 'module', 'main'],
  conditions: ['svelte', 'browser'],
  define: { 'process.env.NODE_ENV': '"production"' },
  logLevel: 'warning',
  plugins: [svelte()]
})
for (const page of Object.keys(pages)) {
  await writeFile(`dist/${page}.html`, `<!doctype html><meta charset=utf-8><title>${page}</title><body><script type=module src=${page}.js></script>\n`)
}

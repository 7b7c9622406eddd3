// Fails if the script that the first page loads is above its budget. Counted is app.js and whatever it imports at once.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const FIRST_LOAD_BYTES_MAX = 120 * 1024 // Of gzip; what a phone on a slow line has in about a second.
const dist = join(dirname(fileURLToPath(import.meta.url)), '..', 'dist')

function withImports(name, seen = new Set()) {
  if (seen.has(name)) return seen
  seen.add(name)
  const text = readFileSync(join(dist, name), 'utf8')
  for (const [, path] of text.matchAll(/(?:^|[;}\s])(?:import|export)\s*(?:[\w*{}\s,$]+from\s*)?["']\.\/([^"']+)["']/g)) withImports(path, seen)
  return seen
}

const sizes = [...withImports('app.js')].map((name) => [name, gzipSync(readFileSync(join(dist, name)), { level: 9 }).length])
for (const [name, bytes] of sizes) console.log(`${name} ${bytes} B`)
const total = sizes.reduce((sum, [, bytes]) => sum + bytes, 0)
console.log(`first load: ${total} B of ${FIRST_LOAD_BYTES_MAX} B, gzip`)
if (total > FIRST_LOAD_BYTES_MAX) {
  console.error('the script of the first load is above its budget: load more of it lazily')
  process.exit(1)
}

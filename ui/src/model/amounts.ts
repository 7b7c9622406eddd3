// Amounts and moments where a page says them in a sentence.
import { ago, size } from './says'

/** How long ago: a moment's age, or its day if that is long past. */
export function since(at: string, now: number): string {
  const age = ago(at, now)
  if (age === 'now') return 'just now'
  return / (min|h|d)$/.test(age) ? `${age} ago` : `on ${age}`
}

const GIB = 1024 ** 3

/** Room on a disk, which may be large. */
export const room = (bytes: number): string => (bytes < GIB ? size(bytes) : `${(bytes / GIB).toFixed(bytes < 10 * GIB ? 1 : 0)} GiB`)

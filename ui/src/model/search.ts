// What was found of what was said: the words around a place, its session, and the row of the timeline that it is in.
import type { Hit, Session } from '../api/types'
import type { Row } from './rows'

/** Words with the place that fits apart. */
export interface Snippet {
  before: string
  match: string
  after: string
}

/** The server counts bytes of UTF-8. A place outside the words is none. */
export function snippetOf({ words, from, to }: Pick<Hit, 'words' | 'from' | 'to'>): Snippet {
  const bytes = new TextEncoder().encode(words)
  const [start, end] = from <= to && to <= bytes.length ? [from, to] : [0, 0]
  const text = (a: number, b: number) => new TextDecoder().decode(bytes.subarray(a, b))
  return { before: text(0, start), match: text(start, end), after: text(end, bytes.length) }
}

export interface HitGroup {
  session: string
  hits: Hit[]
}

/** Hits by session, each where its newest is. */
export function bySession(hits: readonly Hit[]): HitGroup[] {
  const groups = new Map<string, HitGroup>()
  for (const hit of hits) {
    const group = groups.get(hit.session) ?? { session: hit.session, hits: [] }
    group.hits.push(hit)
    groups.set(hit.session, group)
  }
  return [...groups.values()]
}

/** The address of a place in a session. */
export const placePath = (hit: Pick<Hit, 'session' | 'number'>): string => `/s/${encodeURIComponent(hit.session)}?at=${hit.number}`

/** The sessions of these hits that are not known yet. */
export function unknownSessions(hits: readonly Hit[], known: ReadonlyMap<string, Session>): string[] {
  return [...new Set(hits.map((hit) => hit.session))].filter((id) => !known.has(id))
}

/** The key of the row that a fact is in: the last one that begins with it or before it; of several, words that were said. */
export function rowAt(slots: readonly { key: string; row: Row }[], number: number): string | null {
  let best: { key: string; number: number; isSaid: boolean } | null = null
  for (const { key, row } of slots) {
    if (row.number === null || row.number > number) continue
    const isSaid = row.kind === 'message' || row.kind === 'words'
    if (!best || row.number > best.number || (row.number === best.number && isSaid && !best.isSaid)) best = { key, number: row.number, isSaid }
  }
  return best?.key ?? null
}

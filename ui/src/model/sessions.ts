// The list of sessions: what needs somebody first, groups, what is looked for. Rows come from the server and are never changed here.
import type { Session } from '../api/types'

/** Why a session needs somebody, most urgent first. */
export type Need = 'question' | 'held' | 'failed' | 'unread'

const NEEDS: Need[] = ['question', 'held', 'failed', 'unread']
const FAILURES = new Set(['failed', 'time_limit'])

/** True if a turn has ended that one has not seen the end of. */
export function isUnread(row: Session): boolean {
  return row.seen != null && row.last != null && (row.last.number ?? row.number) > row.seen
}

export function needOf(row: Session): Need | null {
  if ((row.questions ?? 0) > 0) return 'question'
  if ((row.held ?? 0) > 0) return 'held'
  if (!isUnread(row)) return null
  return FAILURES.has(row.last?.outcome ?? '') ? 'failed' : 'unread'
}

export type GroupBy = 'time' | 'directory' | 'agent'

export interface Group {
  key: string
  title: string
  rows: Session[]
}

export interface Look {
  by: GroupBy
  /** Words that have to be in the title, the directory, the branch, the agent or the last words. */
  words: string
  now: Date
}

/** The rows in groups: what needs you, what is pinned, what works, and the others by what was asked for. */
export function grouped(rows: Iterable<Session>, { by, words, now }: Look): Group[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
  const shown = [...rows].filter((row) => matches(row, wanted)).sort(newestFirst)
  const groups = new Map<string, Group>()
  const put = (key: string, title: string, row: Session) => {
    const group = groups.get(key)
    if (group) group.rows.push(row)
    else groups.set(key, { key, title, rows: [row] })
  }
  for (const row of shown) {
    if (needOf(row)) put('!needs', 'Needs you', row)
    else if (row.pinned) put('!pinned', 'Pinned', row)
    else if (row.awake) put('!works', 'At work', row)
    else put(...groupOf(row, by, now), row)
  }
  const needs = groups.get('!needs')
  needs?.rows.sort((a, b) => NEEDS.indexOf(needOf(a)!) - NEEDS.indexOf(needOf(b)!) || newestFirst(a, b))
  const first = ['!needs', '!pinned', '!works'].flatMap((key) => groups.get(key) ?? [])
  const rest = [...groups.values()].filter((group) => !group.key.startsWith('!'))
  return [...first, ...rest]
}

const newestFirst = (a: Session, b: Session) =>
  a.touched_at < b.touched_at ? 1 : a.touched_at > b.touched_at ? -1 : a.id < b.id ? 1 : a.id > b.id ? -1 : 0

function matches(row: Session, wanted: string[]): boolean {
  if (wanted.length === 0) return true
  const text = [row.title, row.directory, row.branch, row.worktree?.name, row.agent, row.last?.words, row.owned_by?.handle, row.id]
    .join('\n')
    .toLowerCase()
  return wanted.every((word) => text.includes(word))
}

function groupOf(row: Session, by: GroupBy, now: Date): [string, string] {
  if (by === 'agent') return [`agent ${row.agent}`, row.agent]
  if (by === 'directory') return [`directory ${row.directory}`, row.directory]
  return dayOf(new Date(row.touched_at), now)
}

function dayOf(at: Date, now: Date): [string, string] {
  const days = Math.round((midnight(now) - midnight(at)) / 86_400_000)
  if (days <= 0) return ['day 0', 'Today']
  if (days === 1) return ['day 1', 'Yesterday']
  if (days < 7) return ['day 7', 'This week']
  if (days < 31) return ['day 31', 'This month']
  return ['day older', 'Earlier']
}

const midnight = (at: Date) => new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime()

/** How many sessions need somebody. */
export function countNeeds(rows: Iterable<Session>): number {
  let count = 0
  for (const row of rows) if (needOf(row) && !row.archived) count += 1
  return count
}

/** What the browser's tab is called. */
export function pageTitle(page: string, needs: number): string {
  const name = page ? `${page} · Homing` : 'Homing'
  return needs > 0 ? `(${needs > 99 ? '99+' : needs}) ${name}` : name
}

/** What a session is called where it has no title. */
export function nameOf(row: Pick<Session, 'id' | 'title'>): string {
  return row.title?.trim() || `Session ${row.id.slice(-6)}`
}

/** The last piece of a directory, and what is before it. */
export function pieces(directory: string): { dir: string; name: string } {
  const clean = directory.replace(/\/+$/, '') || '/'
  const at = clean.lastIndexOf('/')
  return { dir: clean.slice(0, at + 1), name: clean.slice(at + 1) || '/' }
}

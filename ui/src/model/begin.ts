// Beginning a session: which directories are offered first, and what the server is asked for.
import type { NewSession } from '../api/house'
import type { Session } from '../api/types'

/** As many directories as fit on a screen without looking for one. */
const RECENT_MAX = 8

export interface Recent {
  directory: string
  sessions: number
  touchedAt: string
}

/** Where one was last, the newest first: of a session in a worktree, where that was entered from. A session's own directory is nobody else's. */
export function recentDirectories(rows: Iterable<Session>, me: string): Recent[] {
  const found = new Map<string, Recent & { isMine: boolean }>()
  for (const row of rows) {
    const directory = row.worktree?.home ?? row.directory
    if (directory.endsWith(`/${row.id}`)) continue
    const before = found.get(directory)
    const isMine = row.owner === me || (before?.isMine ?? false)
    const touchedAt = before && before.touchedAt > row.touched_at ? before.touchedAt : row.touched_at
    found.set(directory, { directory, sessions: (before?.sessions ?? 0) + 1, touchedAt, isMine })
  }
  return [...found.values()]
    .filter((one) => one.isMine)
    .sort((a, b) => (a.touchedAt < b.touchedAt ? 1 : a.touchedAt > b.touchedAt ? -1 : a.directory < b.directory ? -1 : 1))
    .slice(0, RECENT_MAX)
    .map(({ directory, sessions, touchedAt }) => ({ directory, sessions, touchedAt }))
}

export interface BeginForm {
  /** Nothing is a directory of its own. */
  directory: string
  agent: string
  model: string
  mode: string
  title: string
  worktree: boolean
  name: string
  base: string
  branch: string
}

/** The wish, without what was left open. */
export function sessionOf(form: BeginForm): NewSession {
  const said = (words: string) => words.trim() || undefined
  const tree = { name: said(form.name), base: said(form.base), branch: said(form.branch) }
  const wish = {
    directory: said(form.directory), agent: said(form.agent), model: said(form.model), mode: said(form.mode), title: said(form.title),
    worktree: form.worktree ? without(tree) : undefined,
  }
  return without(wish)
}

const without = <T extends object>(parts: T): T =>
  Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as T

// What is said of a worktree, and what may be done with it as it stands.
import type { Progress, Worktree } from '../api/types'
import { many, size } from './says'

/** Its state in few words, the worst first. */
export function standing(tree: Worktree): string[] {
  if (tree.missing) return ['its directory is gone']
  const words = []
  if (tree.dirty) words.push(`${many(tree.dirty, 'file')} not committed`)
  if (tree.ahead) words.push(`${many(tree.ahead, 'commit')} ahead`)
  if (tree.behind) words.push(`${tree.behind.toLocaleString()} behind`)
  if (words.length === 0) words.push('nothing to bring back')
  return words
}

/** Why it cannot be removed now, if so. */
export const whyKept = (tree: Worktree): string => (tree.in_use ? 'Its session is in it: leave it there first.' : '')

export function progressWords(progress: Progress): string {
  const files = progress.files ? `${progress.files.toLocaleString()}${progress.files_total ? ` of ${progress.files_total.toLocaleString()}` : ''} files` : ''
  return [`${progress.verb} ${progress.subject}: ${progress.phase}`, files, progress.bytes ? size(progress.bytes) : ''].filter(Boolean).join(', ')
}

/** All rows of a list by their repository, in the order in which these first come. */
export function byRepository<T extends { repository: string }>(rows: readonly T[]): { repository: string; rows: T[] }[] {
  const groups = new Map<string, T[]>()
  for (const row of rows) {
    const group = groups.get(row.repository)
    if (group) group.push(row)
    else groups.set(row.repository, [row])
  }
  return [...groups].map(([repository, those]) => ({ repository, rows: those }))
}

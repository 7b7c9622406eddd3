// Whether a session of one's own can be made from what another one has said: what the server asks for it, as far as a page can tell.
import type { Agent, Me, Session } from '../api/types'
import { canBegin } from './people'

/** True if the directory is the root, or below it. */
export function isBelow(directory: string, root: string): boolean {
  const top = root.replace(/\/+$/, '')
  return directory === top || directory.startsWith(`${top}/`)
}

/**
 * True if a fork would be made: whoever may say something there, also after its end, and may begin sessions with that agent where it
 * acts. That is theirs if they own the session; of somebody else's it has to be below a root of theirs.
 */
export function canFork(row: Session, me: Pick<Me, 'person' | 'role' | 'rights' | 'roots'>, agents: readonly Pick<Agent, 'name'>[]): boolean {
  if (!canBegin(me) || (row.may ?? 'view') === 'view') return false
  if (!agents.some((one) => one.name === row.agent)) return false
  const home = row.worktree?.home ?? row.directory
  return row.owner === me.person || me.roots.some((root) => isBelow(home, root))
}

// Which sessions a list shows: what the server is asked for, and whether a row that has changed since is still among them.
import type { SessionFilter } from '../api/calls'
import type { Session, SessionCounts } from '../api/types'
import { isBelow } from './fork'

/** The lists: those that are open and at hand, those that were put away, those that are over. */
export type Which = 'open' | 'archived' | 'ended'

/** What a session does, or what it needs somebody for. */
export type Stands = '' | 'questions' | 'held' | 'failed' | 'unread' | 'running' | 'waiting' | 'dormant'

export interface Look {
  which: Which
  stands: Stands
  agent: string
  /** A person's id; nothing is everybody. */
  owner: string
  /** It, and whatever is below it. */
  directory: string
  /** Only the forks of this session. */
  origin: string
}

export const ANY: Look = { which: 'open', stands: '', agent: '', owner: '', directory: '', origin: '' }

const NEEDS = ['questions', 'held', 'failed', 'unread'] as const
const DOING = ['running', 'waiting', 'dormant'] as const
const FAILURES = new Set(['failed', 'interrupted', 'time_limit'])

/** The names of the states, and how many open sessions the server counts in each, where it counts them. */
export function standsOf(counts: SessionCounts | null): { value: Stands; label: string }[] {
  const count = (number: number | undefined) => (counts && number !== undefined ? ` (${number.toLocaleString()})` : '')
  return [
    { value: '', label: `in every state${count(counts?.open)}` },
    { value: 'questions', label: `asking something${count(counts?.questions)}` },
    { value: 'held', label: `holding a message${count(counts?.held)}` },
    { value: 'failed', label: `failed last${count(counts?.failed)}` },
    { value: 'unread', label: `with something new${count(counts?.unread)}` },
    { value: 'running', label: `at work${count(counts?.running)}` },
    { value: 'waiting', label: 'waiting for something' },
    { value: 'dormant', label: 'asleep' },
  ]
}

/** True if a list is more than the open sessions as they are. */
export const narrows = (look: Look): boolean => (Object.keys(ANY) as (keyof Look)[]).some((part) => look[part] !== ANY[part])

const isNeed = (stands: Stands): stands is (typeof NEEDS)[number] => (NEEDS as readonly string[]).includes(stands)
const isDoing = (stands: Stands): stands is (typeof DOING)[number] => (DOING as readonly string[]).includes(stands)

/** What the server is asked for. Its archived list has open and ended ones. A directory that is none yet narrows nothing. */
export function queryOf(look: Look, words: string): SessionFilter {
  return {
    which: look.which === 'archived' ? 'all' : look.which,
    archived: look.which === 'archived' ? true : look.which === 'open' ? false : undefined,
    needs: isNeed(look.stands) ? look.stands : undefined,
    doing: isDoing(look.stands) ? look.stands : undefined,
    agent: look.agent || undefined,
    owner: look.owner || undefined,
    directory: look.directory.startsWith('/') ? look.directory : undefined,
    origin: look.origin || undefined,
    text: words.trim().slice(0, 200) || undefined,
  }
}

/** True if the server would list this row now. */
export function fits(row: Session, look: Look): boolean {
  const isHere = look.which === 'archived' ? row.archived : look.which === 'ended' ? row.state === 'ended' : row.state === 'open' && !row.archived
  return (
    isHere &&
    stands(row, look.stands) &&
    (!look.agent || row.agent === look.agent) &&
    (!look.owner || row.owner === look.owner) &&
    (!look.directory.startsWith('/') || isBelow(row.directory, look.directory)) &&
    (!look.origin || row.origin?.session === look.origin)
  )
}

function stands(row: Session, wanted: Stands): boolean {
  switch (wanted) {
    case '':
      return true
    case 'questions':
      return (row.questions ?? 0) > 0
    case 'held':
      return (row.held ?? 0) > 0
    case 'failed':
      return FAILURES.has(row.last?.outcome ?? '')
    case 'unread':
      return row.last?.number !== undefined && row.last.number > (row.seen ?? 0)
    case 'running':
      return row.awake
    case 'waiting':
      return !row.awake && row.pending > 0
    case 'dormant':
      return !row.awake && row.pending === 0
  }
}

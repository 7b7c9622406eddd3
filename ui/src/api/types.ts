// The names under which the app uses the server's types. They are generated from docs/openapi.json; what a server may not tell
// yet is added here as something that can be missing.
import type { components } from './schema'

type Schemas = components['schemas']

/** How a turn ended and how its last words begin. */
export interface LastWords {
  outcome: string
  at: string
  words: string
  /** The number of the fact that ended it. */
  number?: number
}

export type May = 'view' | 'prompt' | 'manage'

/** What rows say of a session besides what the document has had from the beginning. */
interface RowMarks {
  may?: May | null
  questions?: number | null
  held?: number | null
  last?: LastWords | null
  branch?: string | null
  seen?: number | null
  pinned?: boolean | null
}

export type Session = Omit<Schemas['Session'], keyof RowMarks> & RowMarks
export type Fact = Schemas['Fact']
export type FactType = Fact['type']
export type FactOf<T extends FactType> = Extract<Fact, { type: T }>
export type Live = Schemas['Live']
export type Progress = Schemas['Progress']
export type Readiness = Schemas['Readiness']
export type ReadyPart = Schemas['ReadyPart']
export type Receipt = Schemas['Receipt']
export type Queued = Schemas['Queued']
export type Delivery = Schemas['Delivery']
export type Part = Schemas['Part']
export type NewMessage = Schemas['NewMessage']
export type Attached = Schemas['Attached']
export type Approval = Schemas['Approval']
export type Answer = Schemas['Answer']
export type Choice = Schemas['Choice']
export type Changes = Schemas['Changes']
export type FileChange = Schemas['FileChange']
export type UndoPreview = Schemas['UndoPreview']
export type Usage = Schemas['Usage']
export type UsageOfDays = Schemas['UsageOfDays']
export type UsageOfDay = Schemas['UsageOfDay']
export type Me = Schemas['Me']
export type Agent = Schemas['Agent']
export type Problem = Schemas['Problem']
export type Hit = Schemas['Hit']
export type FilePatch = Schemas['FilePatch']
export type WorktreeChanges = Schemas['WorktreeChanges']
export type SessionCounts = Schemas['SessionCounts']
export type Code = Schemas['Code']
export type Waiting = Schemas['Waiting']
export type Who = Schemas['Who']
export type Worktree = Schemas['Worktree']
export type ScopeRequest = Schemas['ScopeRequest']

/** The words of a message, as they stand beside a page of facts. */
export interface MessageWords {
  text: string
  by?: Who | string | null
  at?: string | null
  attachments?: Attached[]
  /** There are more of them than are here. */
  cut?: boolean
  /** The door by which it came in, where that is known. */
  door?: string | null
  /** Why they are not here, if they could not be had. */
  problem?: string
}

/** A page of facts, in ascending order. */
export interface FactsPage {
  items: Fact[]
  next?: number | null
  messages?: Record<string, MessageWords>
}

/** A turn, in the list of a session's turns. */
export interface TurnLine {
  turn: number
  message: string
  by?: Who | string | null
  at: string
  ended_at?: string | null
  outcome?: string | null
  first: number
  last?: number | null
  words?: string | null
}

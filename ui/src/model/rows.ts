// The rows of a session's timeline: what one sees of the facts. A row never changes; another one takes its place.
import type { Answer, Attached, Choice, FactOf, FileChange, Usage } from '../api/types'
import type { Run } from './bytes'

interface Base {
  /** The same for as long as the row is there, whatever becomes of it. */
  key: string
  /** The first fact of it that is here; none while there are only live words. */
  number: number | null
  turn: number | null
  at: string | null
}

/** What somebody said: when its turn started, or when it was said into one. */
export interface MessageRow extends Base {
  kind: 'message'
  message: string
  isSteered: boolean
  /** It was to be said into a turn, and did not get there. */
  isMissed: boolean
}

/** A run of the agent's words. */
export interface WordsRow extends Base {
  kind: 'words'
  voice: 'text' | 'reasoning'
  part: number
  /** As the log has them. */
  said: Run
  /** Live words behind those, which the log has not yet. */
  ahead: string
  aheadBytes: number
  isOpen: boolean
  ended: string | null
}

export type ToolState = 'running' | 'done' | 'failed' | 'stopped'

export interface ToolRow extends Base {
  kind: 'tool'
  call: string
  tool: string
  input: string
  output: Run
  hasResult: boolean
  /** The output is what the result says, not only what was printed on the way. */
  isWhole: boolean
  state: ToolState
  ended: string | null
}

export interface PlanRow extends Base {
  kind: 'plan'
  steps: FactOf<'plan'>['steps']
  /** The fact that these steps are of: a later one has the word. */
  stepsOf: number
}

export interface QuestionRow extends Base {
  kind: 'question'
  approval: string
  tool: string
  detail: string
  form: 'permission' | 'choice' | 'words'
  options: Choice[]
  until: string | null
  state: 'open' | 'answered' | 'lapsed'
  answer: Answer | null
  by: string | null
  settledAt: string | null
}

export interface ScopeRow extends Base {
  kind: 'scope'
  epoch: number
  agent: string
  directory: string
  model: string | null
  mode: string | null
  worktree: string | null
}

export interface ChangesRow extends Base {
  kind: 'changes'
  files: FileChange[]
  patch: string
  isCut: boolean
  moves: { command: string; words: string }[]
  unseen: string[]
  isUndone: boolean
}

export interface EndRow extends Base {
  kind: 'end'
  outcome: string
  failure: string | null
  began: string | null
  usage: Usage | null
  reason: string | null
}

/** Output of a worktree's script. */
export interface ScriptRow extends Base {
  kind: 'script'
  stage: string
  output: Run
}

export type Tone = 'quiet' | 'good' | 'warn' | 'bad'

/** A line about something that happened. `word` says which; `names` are people, messages or things in it. */
export interface NoticeRow extends Base {
  kind: 'notice'
  word: string
  tone: Tone
  text: string
  message: string | null
  by: string | null
  more: string | null
}

/** A fact that this page does not know, or an agent's own that nobody does. */
export interface OtherRow extends Base {
  kind: 'other'
  type: string
  raw: string
}

export type Row =
  | MessageRow
  | WordsRow
  | ToolRow
  | PlanRow
  | QuestionRow
  | ScopeRow
  | ChangesRow
  | EndRow
  | ScriptRow
  | NoticeRow
  | OtherRow

export type RowKind = Row['kind']

/** The words that one searches or copies of a row. */
export function wordsOfRow(row: Row, message: (id: string) => string | undefined): string {
  switch (row.kind) {
    case 'message':
      return message(row.message) ?? ''
    case 'words':
      return row.said.text + row.ahead
    case 'tool':
      return `${row.tool} ${row.input}\n${row.output.text}`
    case 'plan':
      return row.steps.map((step) => step.text).join('\n')
    case 'question':
      return `${row.tool} ${row.detail}`
    case 'scope':
      return [row.agent, row.directory, row.model, row.mode, row.worktree].filter(Boolean).join(' ')
    case 'changes':
      return row.files.map((file) => file.path).join('\n')
    case 'end':
      return row.outcome
    case 'script':
      return row.output.text
    case 'notice':
      return row.more ? `${row.text}\n${row.more}` : row.text
    case 'other':
      return row.raw
  }
}

export type { Attached }

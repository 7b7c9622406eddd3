// Why a session cannot go on at once, in words, and which button helps.
import type { Readiness, ReadyPart } from '../api/types'

/** What a page can do about it, in the server's words. */
export type Remedy =
  | 'relink' | 'mend_agent' | 'sign_in' | 'read_failure' | 'choose_model' | 'release' | 'place' | 'answer' | 'keep_scope' | 'make_room'
  | 'mend_server' | 'begin_anew' | 'wait'

export interface Hindrance {
  part: string
  words: string
  isBlocking: boolean
  since: string | null
  until: string | null
  remedy: Remedy
  label: string | null
  session: string | null
  /** What the server says can be done, where no button does it. */
  hint: string | null
}

const LABELS: Record<Remedy, string | null> = {
  relink: 'Choose a directory', mend_agent: 'Look at the agent', sign_in: 'Sign in to the agent', read_failure: 'Read why',
  choose_model: 'Choose a model', release: 'Show what is held', place: 'Show what is held', answer: 'Show the question',
  keep_scope: 'Give the change up', make_room: null, mend_server: null, begin_anew: 'Begin a new session', wait: null,
}

const WORDS: Record<string, string> = {
  'directory missing': 'The directory of this session is not there.',
  'directory elsewhere': 'The directory of this session leads somewhere else by now.',
  'directory crowded': 'Another session works in this directory.',
  'agent missing': 'This server has no such agent.',
  'agent broken': "The agent's program cannot be found or does not work.",
  'agent signed_out': 'Nobody is signed in to the agent.',
  'agent failing': 'The agent has failed several times with the same words.',
  'agent unknown': 'The agent is being looked at.',
  'commands unknown': 'The list of commands has not come yet.',
  'commands timed_out': 'The list of commands did not come in time.',
  'model missing': 'The agent does not have this model.',
  'model unknown': 'The models of the agent have not been listed yet.',
  'queue held_asked': 'Everything that waits is held.',
  'queue held_after_failure': 'What waits is held, because the turn before it failed.',
  'queue held_other_scope': 'What waits was written for another scope.',
  'approvals asked': 'The agent asks something.',
  changing: 'The scope is about to change.',
  errand: 'Something is being done that no turn may run beside.',
  crowded: 'As many turns run as may.',
  ended: 'This session is over.',
  full: 'There is no room.',
  taken: 'Somebody else has it.',
  not_allowed: 'It may not be used.',
}

/** The server's word for what can be done; of one that this page does not know, the server's sentence is shown. */
const remedyOf = (part: ReadyPart): Remedy => (Object.hasOwn(LABELS, part.remedy_code ?? '') ? (part.remedy_code as Remedy) : 'wait')

/**
 * What stands in the way, what blocks first. Advice says nothing, but for a list of commands that a command waits for; `isCommand` if
 * that is what runs: then it is said, too, that the list did not come in time.
 */
export function hindrances(readiness: Readiness | null, isCommand = false): Hindrance[] {
  if (!readiness) return []
  const isLate = (part: ReadyPart) => isCommand && part.name === 'commands' && part.state === 'overlooked' && part.why === 'timed_out'
  const isInTheWay = (part: ReadyPart) => part.state === 'blocked' || (part.state === 'waiting' && (!part.advisory || part.name === 'commands'))
  return readiness.parts
    .filter((part) => (readiness.state !== 'ready' && isInTheWay(part)) || isLate(part))
    .map(hindrance)
    .sort((a, b) => Number(b.isBlocking) - Number(a.isBlocking))
}

function hindrance(part: ReadyPart): Hindrance {
  const why = part.why ?? 'unknown'
  const key = `${part.name} ${why}`
  const remedy = remedyOf(part)
  const label = part.session ? 'Go to that session' : LABELS[remedy]
  return {
    part: part.name,
    words: WORDS[key] ?? WORDS[why] ?? `${part.name}: ${why.replaceAll('_', ' ')}`,
    isBlocking: part.state === 'blocked' && !part.advisory,
    since: part.since ?? null,
    until: part.until ?? null,
    remedy,
    label,
    session: part.session ?? null,
    hint: label ? null : (part.remedy ?? null),
  }
}

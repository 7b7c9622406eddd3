// What is said of an agent in few words.
import type { Agent } from '../api/types'

export interface Standing {
  tone: 'good' | 'warn' | 'bad' | 'quiet'
  words: string
}

/** How its version stands beside those that were tried. */
export function versionOf(agent: Pick<Agent, 'version' | 'tried'>): Standing | null {
  const tried = agent.tried
  if (!tried || !agent.version) return null
  switch (tried.age) {
    case 'tried':
      return { tone: 'good', words: 'a version that was tried' }
    case 'older':
      return { tone: 'warn', words: `older than ${tried.oldest}, the oldest that was tried` }
    case 'newer':
      return { tone: 'warn', words: `newer than ${tried.newest}, the newest that was tried` }
    case 'unknown':
      return { tone: 'quiet', words: `${tried.oldest} to ${tried.newest} were tried` }
    default:
      tried.age satisfies never
      return null
  }
}

export function signInOf(agent: Pick<Agent, 'sign_in'>): Standing {
  const { sign_in } = agent
  if (sign_in.state === 'here') return { tone: 'good', words: `signed in, by ${sign_in.by}` }
  if (sign_in.state === 'missing') return { tone: 'warn', words: `not signed in, as far as can be seen: ${sign_in.how}` }
  return { tone: 'quiet', words: 'its sign-in shows in a turn, or it needs none' }
}

const CAN: [keyof Agent['abilities'], string][] = [
  ['steer', 'listens while it works'],
  ['asks', 'asks before it acts'],
  ['resume', 'goes on with a conversation'],
  ['fork', 'forks'],
  ['images', 'takes images'],
  ['models', 'lets one choose a model'],
  ['modes', 'has modes'],
  ['commands', 'has slash commands'],
  ['usage', 'says what a turn cost'],
]

export const abilitiesOf = (agent: Pick<Agent, 'abilities'>): string[] => CAN.filter(([name]) => agent.abilities[name] === true).map(([, words]) => words)

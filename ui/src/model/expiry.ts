// Until when a credential is good, as it is chosen and as it is said.
import type { Token } from '../api/house'

export const LIVES = [
  { days: 1, label: 'a day' },
  { days: 7, label: 'a week' },
  { days: 30, label: '30 days' },
  { days: 90, label: '90 days' },
  { days: 365, label: 'a year' },
  { days: 0, label: 'without an end' },
] as const

const DAY_MS = 86_400_000

/** What the server is told: a moment, or `never` for 0 days. */
export const expiryIn = (days: number, now: Date): string => (days === 0 ? 'never' : new Date(now.getTime() + days * DAY_MS).toISOString())

export type Life = 'good' | 'soon' | 'over'

/** Where a credential stands: `soon` is in the last week of a life. */
export function lifeOf(token: Pick<Token, 'expires'>, now: Date): Life {
  if (!token.expires) return 'good'
  const left = Date.parse(token.expires) - now.getTime()
  if (left <= 0) return 'over'
  return left < 7 * DAY_MS ? 'soon' : 'good'
}

const PURPOSES: Record<Token['purpose'], string> = { machine: 'the machine’s own', browser: 'a browser', cli: 'a command line', api: 'a program', turn: 'a turn' }

export const purposeWords = (purpose: Token['purpose']): string => PURPOSES[purpose]

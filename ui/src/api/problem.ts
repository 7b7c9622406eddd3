// What can go wrong with a call, told apart by what its reader can do.
import type { Code, Problem } from './types'

/** The server said no, and why. */
export class Refused extends Error {
  readonly problem: Problem
  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'Refused'
    this.problem = problem
  }
  get code(): Code {
    return this.problem.code
  }
  get status(): number {
    return this.problem.status
  }
}

/** Nobody answered: it is not known whether the server has heard it. The same key makes trying again harmless. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('The server cannot be reached.', { cause })
    this.name = 'Unreachable'
  }
}

export const isRefused = (error: unknown, ...codes: Code[]): error is Refused =>
  error instanceof Refused && (codes.length === 0 || codes.includes(error.code))

/** True if the same request may well be answered differently in a moment. */
export function isPassing(error: unknown): boolean {
  if (error instanceof Unreachable) return true
  return error instanceof Refused && (error.status === 429 || error.status >= 500)
}

/** The problem's own words and what to do, for people. */
export function wordsOf(error: unknown): { what: string; hint: string } {
  if (error instanceof Refused) {
    const { detail, hint, retry_after } = error.problem
    const wait = retry_after ? `Try again in ${retry_after} s. ` : ''
    return { what: sentence(detail), hint: wait + sentence(hint) }
  }
  if (error instanceof Unreachable) return { what: error.message, hint: 'What you wrote is kept. Try again when you are connected.' }
  return { what: 'Something went wrong in this page.', hint: error instanceof Error ? error.message : String(error) }
}

function sentence(words: string): string {
  if (!words) return ''
  const first = words.charAt(0).toUpperCase() + words.slice(1)
  return /[.!?…]$/.test(first) ? first : `${first}.`
}

/** The problem in an answer that is none of 2xx, whoever made it: a proxy's page has no problem in it. */
export async function problemOf(response: Response): Promise<Problem> {
  const told = await response.json().catch(() => null)
  if (told && typeof told === 'object' && typeof told.code === 'string') return told as Problem
  const code: Code = response.status === 401 ? 'unauthenticated' : response.status === 404 ? 'no_such_path' : 'unavailable'
  const detail = `the server answered ${response.status}`
  return { type: 'about:blank', title: detail, status: response.status, detail, code, hint: 'try again in a moment' }
}

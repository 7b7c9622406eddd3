// The list of questions as one stands before it: what was open stays in its place when it is settled, with who did that.
import type { NewRule, Rule } from '../api/house'
import type { Approval } from '../api/types'

/** The settled ones that stay in sight. */
const SETTLED_MAX = 50

/** The list after it was read again: `open` is what the server has now. What is missing there was settled by somebody. */
export function readAgain(before: readonly Approval[], open: readonly Approval[]): { list: Approval[]; gone: string[] } {
  const now = new Map(open.map((one) => [one.id, one]))
  const known = new Set(before.map((one) => one.id))
  const gone = before.filter((one) => one.state === 'open' && !now.has(one.id)).map((one) => one.id)
  const kept = before.map((one) => now.get(one.id) ?? one)
  const fresh = open.filter((one) => !known.has(one.id)).sort(oldestFirst)
  const settled = kept.filter((one) => one.state !== 'open')
  const dropped = new Set(settled.slice(0, Math.max(0, settled.length - SETTLED_MAX)).map((one) => one.id))
  return { list: [...kept.filter((one) => !dropped.has(one.id)), ...fresh], gone }
}

const oldestFirst = (a: Approval, b: Approval) => (a.asked_at < b.asked_at ? -1 : a.asked_at > b.asked_at ? 1 : 0)

/** What a question is to the part that shows it. */
export function shownOf(one: Approval) {
  return {
    tool: one.tool ?? '',
    detail: one.detail ?? '',
    form: one.form ?? ('permission' as const),
    options: one.options ?? [],
    until: one.until,
    state: one.state,
    answer: one.answer ?? null,
    settledAt: one.settled_at ?? null,
    at: one.asked_at,
  }
}

/** How a question was settled, in words; nothing while it is open. */
export function answerWords(row: Pick<ReturnType<typeof shownOf>, 'state' | 'answer' | 'options'>): string {
  if (row.state === 'lapsed') return 'No longer asked'
  if (row.answer === 'yes') return 'Yes'
  if (row.answer === 'no') return 'No'
  if (row.answer && 'chose' in row.answer) return row.options[row.answer.chose]?.name ?? `Choice ${row.answer.chose + 1}`
  if (row.answer && 'said' in row.answer) return row.answer.said
  return ''
}

/** More of a list, each once: what was settled in between has moved it. */
export function withMore(before: readonly Approval[], more: readonly Approval[]): Approval[] {
  const known = new Set(before.map((one) => one.id))
  return [...before, ...more.filter((one) => !known.has(one.id))]
}

/** A rule in a sentence, without its names: those are shown as what they are. */
export const effectWords: Record<Rule['effect'], string> = { allow: 'Yes', deny: 'No', ask: 'Ask' }

export interface RuleForm {
  effect: Rule['effect']
  agent: string
  tool: string
  directory: string
  session: string
  /** Hours; 0 is without an end. */
  hours: number
  who: NewRule['who'] | null
}

/** What the server is asked for, or why it makes no sense to ask. */
export function ruleOf(form: RuleForm, now: Date): NewRule | string {
  const words = { agent: form.agent.trim(), tool: form.tool.trim(), directory: form.directory.trim(), session: form.session.trim() }
  const named = Object.fromEntries(Object.entries(words).filter(([, value]) => value !== ''))
  if (form.effect === 'allow' && Object.keys(named).length === 0) return 'A yes has to name an agent, a tool, a directory or a session.'
  if (form.effect === 'ask' && !form.who) return 'Say who is to be asked.'
  const until = form.hours > 0 ? { until: new Date(now.getTime() + form.hours * 3_600_000).toISOString() } : {}
  return { effect: form.effect, ...named, ...until, ...(form.effect === 'ask' && form.who ? { who: form.who } : {}) }
}

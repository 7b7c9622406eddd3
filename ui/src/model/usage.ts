// What sessions have used, added up by day, agent and person. It adds what agents themselves have said: who says nothing costs nothing
// here, which `silent` counts.
import type { Session, Usage } from '../api/types'

export interface Sum {
  key: string
  sessions: number
  input: number
  output: number
  cached: number
  /** Millionths of a dollar, of those who say what they cost. */
  cost: number
  /** How many of the sessions have said a cost. */
  priced: number
}

export interface Used {
  all: Sum
  days: Sum[]
  agents: Sum[]
  people: Sum[]
  /** Sessions whose agents have said nothing of what they used. */
  silent: number
}

export type Counted = Pick<Session, 'agent' | 'owner' | 'owned_by' | 'touched_at' | 'own_word'>

export function usedBy(sessions: Iterable<Counted>): Used {
  const all = nothing('all')
  const days = new Map<string, Sum>()
  const agents = new Map<string, Sum>()
  const people = new Map<string, Sum>()
  let silent = 0
  for (const row of sessions) {
    const usage = row.own_word?.usage
    if (!usage) {
      silent += 1
      continue
    }
    add(all, usage)
    add(at(days, dayOf(row.touched_at)), usage)
    add(at(agents, row.agent), usage)
    add(at(people, row.owned_by?.handle ?? row.owner), usage)
  }
  return {
    all,
    days: [...days.values()].sort((a, b) => (a.key < b.key ? -1 : 1)),
    agents: [...agents.values()].sort(mostFirst),
    people: [...people.values()].sort(mostFirst),
    silent,
  }
}

/** All tokens of a sum. Those that came from a cache are among what was read. */
export const tokens = (sum: Sum): number => sum.input + sum.output

const nothing = (key: string): Sum => ({ key, sessions: 0, input: 0, output: 0, cached: 0, cost: 0, priced: 0 })

function at(sums: Map<string, Sum>, key: string): Sum {
  const sum = sums.get(key) ?? nothing(key)
  sums.set(key, sum)
  return sum
}

function add(sum: Sum, usage: Usage): void {
  sum.sessions += 1
  sum.input += usage.input_tokens
  sum.output += usage.output_tokens
  sum.cached += usage.cached_tokens ?? 0
  if (usage.cost_micros == null) return
  sum.cost += usage.cost_micros
  sum.priced += 1
}

const mostFirst = (a: Sum, b: Sum) => tokens(b) - tokens(a) || (a.key < b.key ? -1 : 1)

/** The day where one is, as a date that sorts. */
function dayOf(moment: string): string {
  const at = new Date(moment)
  const two = (number: number) => String(number).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
}

export interface Bar {
  key: string
  value: number
  /** Of a picture 100 wide and 100 high. */
  x: number
  width: number
  height: number
}

/** The last days up to that of `now`, those on which nothing was used, too: a picture of time has no gaps. */
export function lastDays(days: readonly Sum[], count: number, now: Date): Sum[] {
  const known = new Map(days.map((day) => [day.key, day]))
  return Array.from({ length: count }, (_, at) => {
    const key = dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - (count - 1 - at), 12).toISOString())
    return known.get(key) ?? nothing(key)
  })
}

/** Columns side by side, the highest as high as the picture. What is not nothing can be seen. */
export function bars(sums: readonly Sum[]): Bar[] {
  const highest = Math.max(1, ...sums.map(tokens))
  const step = 100 / Math.max(1, sums.length)
  return sums.map((sum, index) => {
    const value = tokens(sum)
    return { key: sum.key, value, x: index * step + step * 0.1, width: step * 0.8, height: value === 0 ? 0 : Math.max(1, (value / highest) * 100) }
  })
}

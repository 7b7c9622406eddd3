// What was used, added up by day, agent and person from what the server has added up by all three. It is what agents themselves have
// said: who says nothing costs nothing here.
import type { UsageOfDay } from '../api/types'

export interface Sum {
  key: string
  input: number
  output: number
  cached: number
  /** Millionths of a dollar, of what has a price. */
  cost: number
  /** True if some of it has a price, and true if some has none. */
  isPriced: boolean
  isUnpriced: boolean
}

export interface Used {
  all: Sum
  days: Sum[]
  agents: Sum[]
  people: Sum[]
}

/** Whose it is if nobody knows. */
export const NOBODY = 'somebody'

export function usedBy(items: Iterable<UsageOfDay>): Used {
  const all = nothing('all')
  const days = new Map<string, Sum>()
  const agents = new Map<string, Sum>()
  const people = new Map<string, Sum>()
  for (const item of items) {
    add(all, item)
    add(at(days, item.day), item)
    add(at(agents, item.agent), item)
    add(at(people, item.by?.handle ?? item.by?.id ?? NOBODY), item)
  }
  return {
    all,
    days: [...days.values()].sort((a, b) => (a.key < b.key ? -1 : 1)),
    agents: [...agents.values()].sort(mostFirst),
    people: [...people.values()].sort(mostFirst),
  }
}

/** All tokens of a sum. Those that came from a cache are among what was read. */
export const tokens = (sum: Sum): number => sum.input + sum.output

const nothing = (key: string): Sum => ({ key, input: 0, output: 0, cached: 0, cost: 0, isPriced: false, isUnpriced: false })

function at(sums: Map<string, Sum>, key: string): Sum {
  const sum = sums.get(key) ?? nothing(key)
  sums.set(key, sum)
  return sum
}

function add(sum: Sum, item: UsageOfDay): void {
  sum.input += item.input_tokens
  sum.output += item.output_tokens
  sum.cached += item.cached_tokens
  if (item.cost_micros == null) sum.isUnpriced = true
  else {
    sum.cost += item.cost_micros
    sum.isPriced = true
  }
}

const mostFirst = (a: Sum, b: Sum) => tokens(b) - tokens(a) || (a.key < b.key ? -1 : 1)

export interface Bar {
  key: string
  value: number
  /** Of a picture 100 wide and 100 high. */
  x: number
  width: number
  height: number
}

const DAY_MS = 86_400_000

/** Every day from the first to the last, those on which nothing was used, too: a picture of time has no gaps. */
export function everyDay(days: readonly Sum[], from: string, to: string): Sum[] {
  const known = new Map(days.map((day) => [day.key, day]))
  const first = Date.parse(`${from}T00:00:00Z`)
  const count = Math.max(0, Math.round((Date.parse(`${to}T00:00:00Z`) - first) / DAY_MS) + 1)
  return Array.from({ length: count }, (_, at) => {
    const key = new Date(first + at * DAY_MS).toISOString().slice(0, 10)
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

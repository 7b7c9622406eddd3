import { describe, expect, it } from 'vitest'
import type { UsageOfDay } from '../api/types'
import { bars, everyDay, NOBODY, tokens, usedBy } from './usage'

const used = (agent: string, handle: string | null, day: string, input: number, cost: number | null = null): UsageOfDay => ({
  day, agent, by: handle === null ? null : { id: `usr_${handle}`, handle }, input_tokens: input, output_tokens: 1, cached_tokens: 0, cost_micros: cost,
})

describe('what was used', () => {
  const sum = usedBy([
    used('codex', 'anna', '2026-11-01', 10),
    used('claude', 'anna', '2026-11-02', 100, 5),
    used('claude', 'ben', '2026-11-02', 20, 2),
    used('claude', null, '2026-11-02', 1, 0),
  ])

  it('is added up by day, agent and person', () => {
    expect(sum.days.map((day) => [day.key, tokens(day)])).toEqual([['2026-11-01', 11], ['2026-11-02', 124]])
    expect(sum.agents.map((agent) => [agent.key, agent.cost])).toEqual([['claude', 7], ['codex', 0]])
    expect(sum.people.map((person) => [person.key, tokens(person)])).toEqual([['anna', 112], ['ben', 21], [NOBODY, 2]])
    expect(tokens(sum.all)).toBe(135)
  })

  it('says whether it has a price, and whether all of it has one', () => {
    expect(sum.agents.map((agent) => [agent.isPriced, agent.isUnpriced])).toEqual([[true, false], [false, true]])
    expect([sum.all.isPriced, sum.all.isUnpriced]).toEqual([true, true])
  })
})

it('leaves no day out of a picture', () => {
  const days = everyDay(usedBy([used('a', 'x', '2026-10-31', 5)]).days, '2026-10-30', '2026-11-01')
  expect(days.map((day) => [day.key, tokens(day)])).toEqual([['2026-10-30', 0], ['2026-10-31', 6], ['2026-11-01', 0]])
  expect(everyDay([], '2026-11-02', '2026-11-01')).toEqual([])
})

it('draws the highest column as high as the picture, and every one so that it is seen', () => {
  const drawn = bars(usedBy([used('a', 'x', '2026-11-01', 99_999), used('a', 'x', '2026-11-02', 1)]).days)
  expect(drawn.map((bar) => bar.height)).toEqual([100, 1])
  expect(drawn[1]!.x + drawn[1]!.width).toBeLessThanOrEqual(100)
  expect(bars([])).toEqual([])
})

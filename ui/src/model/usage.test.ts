import { describe, expect, it } from 'vitest'
import { bars, lastDays, tokens, usedBy, type Counted } from './usage'

const used = (agent: string, handle: string, day: string, input: number, cost: number | null = null): Counted =>
  ({ agent, owner: `usr_${handle}`, owned_by: { id: `usr_${handle}`, handle }, touched_at: `${day}T12:00:00`, own_word: { usage: { input_tokens: input, output_tokens: 1, cost_micros: cost } } }) as Counted

describe('what was used', () => {
  const sum = usedBy([
    used('claude', 'anna', '2026-11-02', 100, 5),
    used('codex', 'anna', '2026-11-01', 10),
    used('claude', 'ben', '2026-11-02', 20, 2),
    { agent: 'scripted', owner: 'usr_ben', touched_at: '2026-11-02T12:00:00', own_word: null } as Counted,
  ])

  it('is added up by day, agent and person', () => {
    expect(sum.days.map((day) => [day.key, tokens(day), day.sessions])).toEqual([['2026-11-01', 11, 1], ['2026-11-02', 122, 2]])
    expect(sum.agents.map((agent) => [agent.key, agent.cost])).toEqual([['claude', 7], ['codex', 0]])
    expect(sum.people.map((person) => [person.key, tokens(person)])).toEqual([['anna', 112], ['ben', 21]])
    expect(tokens(sum.all)).toBe(133)
  })

  it('says how many have told nothing, and how many a price', () => {
    expect(sum.silent).toBe(1)
    expect(sum.all.priced).toBe(2)
  })
})

it('leaves no day out of a picture', () => {
  const days = lastDays(usedBy([used('a', 'x', '2026-10-31', 5)]).days, 3, new Date(2026, 10, 1))
  expect(days.map((day) => [day.key, tokens(day)])).toEqual([['2026-10-30', 0], ['2026-10-31', 6], ['2026-11-01', 0]])
})

it('draws the highest column as high as the picture, and every one so that it is seen', () => {
  const drawn = bars(usedBy([used('a', 'x', '2026-11-01', 99_999), used('a', 'x', '2026-11-02', 1)]).days)
  expect(drawn.map((bar) => bar.height)).toEqual([100, 1])
  expect(drawn[1]!.x + drawn[1]!.width).toBeLessThanOrEqual(100)
  expect(bars([])).toEqual([])
})

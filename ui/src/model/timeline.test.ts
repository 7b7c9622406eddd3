import { describe, expect, it } from 'vitest'
import type { Fact, Live } from '../api/types'
import { byteLength } from './bytes'
import { Log, seeded, someLog } from './fact_samples'
import type { QuestionRow, ToolRow, WordsRow } from './rows'
import { Timeline } from './timeline'

const folded = (facts: Fact[]) => {
  const timeline = new Timeline()
  for (const fact of facts) timeline.append(fact)
  return timeline
}
const rowsOf = (timeline: Timeline) => timeline.slots.map((slot) => slot.row)
const known = (timeline: Timeline) => ({
  rows: rowsOf(timeline),
  turns: [...timeline.turns.values()].sort((a, b) => a.turn - b.turn),
  running: timeline.running,
  scope: timeline.scope,
  open: [...timeline.open.keys()].sort(),
})

describe('a timeline', () => {
  it('is the same whether its pages come forwards, backwards, or from the middle on', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const { facts } = someLog(12, seed)
      const pick = seeded(seed * 7919)
      const whole = known(folded(facts))
      const middle = pick(facts.length)
      const timeline = folded(facts.slice(middle))
      for (let until = middle; until > 0; ) {
        const from = Math.max(0, until - 1 - pick(40))
        timeline.prepend(facts.slice(from, until))
        until = from
      }
      expect(known(timeline)).toEqual(whole)
    }
  })

  it('passes over what it has, before and behind', () => {
    const { facts } = someLog(3, 5)
    const timeline = folded(facts)
    const before = known(timeline)
    expect(facts.map((fact) => timeline.append(fact))).not.toContain(true)
    expect(timeline.prepend(facts)).toBe(false)
    expect(known(timeline)).toEqual(before)
  })

  it('shows live words and the facts that repeat them once, byte for byte', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const { facts } = someLog(6, seed)
      const pick = seeded(seed)
      const timeline = new Timeline()
      for (const [at, fact] of facts.entries()) {
        // Words run ahead of the log by some facts, come twice, and sometimes not at all.
        for (const coming of facts.slice(at, at + pick(4))) if (pick(5)) timeline.live(liveOf(coming) ?? NO_WORDS)
        timeline.append(fact)
      }
      expect(rowsOf(timeline)).toEqual(rowsOf(folded(facts)))
    }
  })

  it('takes live words in pieces that do not fit the facts', () => {
    const log = new Log()
    log.add({ type: 'turn_started', turn: 1, message: 'msg_1' })
    const timeline = folded(log.facts)
    timeline.live({ turn: 1, kind: 'text', part: 0, offset: 0, text: 'grüß ' })
    timeline.live({ turn: 1, kind: 'text', part: 0, offset: 4, text: 'ß Gott' })
    expect(shown(timeline)).toBe('grüß Gott')
    timeline.append(log.add({ type: 'text', turn: 1, v: 1, part: 0, offset: 0, text: 'grü' }))
    expect(shown(timeline)).toBe('grüß Gott')
    timeline.live({ turn: 1, kind: 'text', part: 0, offset: 99, text: 'from nowhere' })
    expect(shown(timeline)).toBe('grüß Gott')
    timeline.append(log.add({ type: 'text', turn: 1, v: 1, part: 0, offset: 4, text: 'ß Gott, Welt' }))
    expect(shown(timeline)).toBe('grüß Gott, Welt')
    expect(timeline.slots.filter((slot) => slot.row.kind === 'words')).toHaveLength(1)
  })

  it('believes the log where live words say something else', () => {
    const log = new Log()
    const timeline = folded([log.add({ type: 'turn_started', turn: 1, message: 'msg_1' })])
    timeline.live({ turn: 1, kind: 'text', part: 0, offset: 0, text: 'never said' })
    timeline.append(log.add({ type: 'text', turn: 1, v: 1, part: 0, offset: 0, text: 'said' }))
    expect(shown(timeline)).toBe('said')
  })

  it('keeps facts before live words, and drops words that no fact has brought by the end of the turn', () => {
    const log = new Log()
    const timeline = folded([log.add({ type: 'turn_started', turn: 1, message: 'msg_1' })])
    timeline.live({ turn: 1, kind: 'text', part: 1, offset: 0, text: 'ahead' })
    timeline.append(log.add({ type: 'tool_call', turn: 1, v: 1, call: 'a', tool: 'shell', input: '' }))
    expect(timeline.slots.map((slot) => slot.row.kind)).toEqual(['message', 'tool', 'words'])
    timeline.append(log.add({ type: 'turn_ended', turn: 1, outcome: 'failed' }))
    expect(timeline.slots.map((slot) => slot.row.kind)).toEqual(['message', 'tool', 'end'])
    expect((rowsOf(timeline)[1] as ToolRow).state).toBe('stopped')
    timeline.live({ turn: 1, kind: 'text', part: 1, offset: 0, text: 'too late' })
    expect(timeline.slots).toHaveLength(3)
  })

  it('replaces only the rows that change', () => {
    const log = new Log()
    const timeline = folded([
      log.add({ type: 'turn_started', turn: 1, message: 'msg_1' }),
      log.add({ type: 'text', turn: 1, v: 1, part: 0, offset: 0, text: 'a' }),
    ])
    const [message, words] = rowsOf(timeline)
    timeline.append(log.add({ type: 'text', turn: 1, v: 1, part: 0, offset: 1, text: 'b' }))
    expect(rowsOf(timeline)[0]).toBe(message)
    expect(rowsOf(timeline)[1]).not.toBe(words)
    expect(rowsOf(timeline)[1]!.number).toBe(2)
  })

  it('has a row for each call, also where an agent calls all of them alike', () => {
    const log = new Log()
    const timeline = new Timeline()
    for (const input of ['one', 'two']) {
      timeline.append(log.add({ type: 'tool_call', turn: 1, v: 1, call: 'run', tool: 'shell', input }))
      timeline.append(log.add({ type: 'tool_result', turn: 1, v: 1, call: 'run', output: input, failed: false }))
    }
    expect(rowsOf(timeline)).toMatchObject([{ input: 'one', output: { text: 'one' } }, { input: 'two', output: { text: 'two' } }])
  })

  it('counts the questions that are open, until somebody answers or they lapse', () => {
    const log = new Log()
    const timeline = folded([
      log.add({ type: 'asked', approval: 'apr_1', turn: 1, until: '2030-01-01T00:00:00Z' }),
      log.add({ type: 'question', turn: 1, v: 1, approval: 'apr_1', tool: 'shell', detail: 'rm', form: 'choice', options: [{ name: 'x' }] }),
      log.add({ type: 'asked', approval: 'apr_2', turn: 1, until: '2030-01-01T00:00:00Z' }),
    ])
    expect([...timeline.open.keys()]).toEqual(['apr_1', 'apr_2'])
    timeline.append(log.add({ type: 'answered', approval: 'apr_1', answer: { chose: 0 }, by: 'usr_b' }))
    timeline.append(log.add({ type: 'lapsed', approval: 'apr_2' }))
    expect(timeline.open.size).toBe(0)
    const row = rowsOf(timeline)[0] as QuestionRow
    expect([row.state, row.by, row.answer]).toEqual(['answered', 'usr_b', { chose: 0 }])
  })

  it('keeps a message that did not get into a turn where it was said, and shows it again where it runs', () => {
    const log = new Log()
    const timeline = folded([
      log.add({ type: 'turn_started', turn: 1, message: 'msg_1' }),
      log.add({ type: 'steered', turn: 1, message: 'msg_2' }),
      log.add({ type: 'missed', message: 'msg_2' }),
      log.add({ type: 'turn_ended', turn: 1, outcome: 'answered' }),
      log.add({ type: 'turn_started', turn: 2, message: 'msg_2' }),
    ])
    const told = rowsOf(timeline).flatMap((row) => (row.kind === 'message' ? [[row.message, row.isSteered, row.isMissed]] : []))
    expect(told).toEqual([['msg_1', false, false], ['msg_2', true, true], ['msg_2', false, false]])
  })

  it('shows a fact that it does not know as other, and keeps its place', () => {
    const timeline = folded([new Log().add({ type: 'from_the_future', anything: [1] })])
    expect(rowsOf(timeline)).toMatchObject([{ kind: 'other', type: 'from_the_future', number: 1 }])
    expect(timeline.last).toBe(1)
  })

  it('folds 50,000 facts, and 50,000 more before them page by page, in a moment', () => {
    const { facts } = someLog(4_300, 3)
    expect(facts.length).toBeGreaterThan(100_000)
    const timeline = new Timeline()
    const began = performance.now()
    const middle = facts.length >> 1
    for (const fact of facts.slice(middle)) timeline.append(fact)
    for (let until = middle; until > 0; until -= 500) timeline.prepend(facts.slice(Math.max(0, until - 500), until))
    // A fold that looked through all rows for each fact would take minutes.
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(timeline.first).toBe(1)
  }, 30_000)
})

const NO_WORDS: Live = { turn: 0, kind: 'text', part: 0, offset: 9, text: '' }

function liveOf(fact: Fact): Live | null {
  if (fact.type !== 'text' && fact.type !== 'reasoning') return null
  return { turn: fact.turn, kind: fact.type, part: fact.part, offset: fact.offset, text: fact.text }
}

function shown(timeline: Timeline): string {
  const row = timeline.slots.find((slot) => slot.row.kind === 'words')!.row as WordsRow
  expect(byteLength(row.ahead)).toBe(row.aheadBytes)
  expect(byteLength(row.said.text)).toBe(row.said.bytes)
  return row.said.text + row.ahead
}

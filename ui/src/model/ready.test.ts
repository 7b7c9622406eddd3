import { describe, expect, it } from 'vitest'
import type { Readiness, ReadyPart } from '../api/types'
import { hindrances } from './ready'

const part = (name: string, state: string, more: Partial<ReadyPart> = {}): ReadyPart => ({ name, state, advisory: false, ...more })
const ready = (state: Readiness['state'], ...parts: ReadyPart[]): Readiness => ({ state, parts })

describe('what stands in the way', () => {
  it('is nothing when a session is ready', () => {
    expect(hindrances(ready('ready', part('agent', 'fine')))).toEqual([])
    expect(hindrances(null)).toEqual([])
  })

  it('says why, until when, and which button helps, what blocks first', () => {
    const told = hindrances(
      ready('blocked', part('approvals', 'waiting', { why: 'asked', remedy_code: 'answer', until: '2026-01-01T00:00:00Z' }), part('agent', 'blocked', { why: 'signed_out', remedy_code: 'sign_in' })),
    )
    expect(told.map((one) => [one.part, one.isBlocking, one.remedy, one.until])).toEqual([
      ['agent', true, 'sign_in', null],
      ['approvals', false, 'answer', '2026-01-01T00:00:00Z'],
    ])
  })

  it('never blocks for advice', () => {
    const told = hindrances(ready('waiting', part('model', 'waiting', { why: 'unknown', advisory: true })))
    expect(told).toEqual([])
  })

  it('says that a command waits for the list, until when, and that it did not come in time', () => {
    const [told] = hindrances(ready('waiting', part('commands', 'waiting', { why: 'unknown', advisory: true, until: '2026-01-01T00:00:00Z' })))
    expect([told!.words, told!.isBlocking, told!.until]).toEqual(['The list of commands has not come yet.', false, '2026-01-01T00:00:00Z'])
    const late = ready('ready', part('commands', 'overlooked', { why: 'timed_out', advisory: true, until: '2026-01-01T00:00:00Z' }))
    expect(hindrances(late, true).map((one) => one.words)).toEqual(['The list of commands did not come in time.'])
    expect(hindrances(late)).toEqual([])
  })

  it('leads to the session that works in the same directory', () => {
    const [told] = hindrances(ready('waiting', part('directory', 'waiting', { why: 'crowded', session: 'ses_b' })))
    expect([told!.session, told!.label]).toEqual(['ses_b', 'Go to that session'])
  })

  it('offers what the server says can be done, whatever the reason', () => {
    const told = hindrances(ready('blocked', part('moon', 'blocked', { why: 'too_far', remedy_code: 'choose_model' }), part('agent', 'blocked', { why: 'broken' })))
    expect(told.map((one) => [one.remedy, one.label])).toEqual([['choose_model', 'Choose a model'], ['wait', null]])
  })

  it("has the server's own words for what it does not know", () => {
    const [told] = hindrances(ready('blocked', part('moon', 'blocked', { why: 'too_far', remedy: 'wait for the tide', remedy_code: 'wait_for_tide' })))
    expect([told!.words, told!.remedy, told!.label, told!.hint]).toEqual(['moon: too far', 'wait', null, 'wait for the tide'])
  })
})

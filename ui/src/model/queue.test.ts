import { describe, expect, it } from 'vitest'
import type { Queued } from '../api/types'
import { type Sending, hastened, moved, pendingOf, placed, waitingOf } from './queue'

const item = (id: string, state: Queued['state']): Queued => ({ id, state, by: 'usr_a', accepted_at: '', delivery: 'queue', revision: 0, text: id })
const sending = (key: string, message: string | null): Sending => ({
  key, to: { session: 'ses_a' }, session: 'ses_a', parts: [], delivery: 'queue', under: null, at: '', state: message ? 'taken' : 'sending', message, problem: null,
})

describe('the queue', () => {
  it('is what waits and what is held, not what runs', () => {
    const items = [item('a', 'running'), item('b', 'waiting'), item('c', 'held')]
    expect(waitingOf(items).map((one) => one.id)).toEqual(['b', 'c'])
  })

  it('shows what was sent here until the list or the timeline has it, and never twice', () => {
    const sent = [sending('k1', null), sending('k2', 'b'), sending('k3', 'started'), sending('k4', 'nowhere yet')]
    const pending = pendingOf(sent, [item('b', 'waiting')], (message) => message === 'started')
    expect(pending.map((one) => one.key)).toEqual(['k1', 'k4'])
  })

  it('is hastened only while a turn runs, and into it only where the agent takes that', () => {
    const ways = (delivery: Queued['delivery'], running: boolean, canSteer: boolean) => hastened({ delivery }, running, canSteer).map((one) => one.how)
    expect(ways('queue', true, true)).toEqual(['steer', 'interrupt'])
    expect(ways('queue', true, false)).toEqual(['interrupt'])
    expect(ways('interrupt', true, false)).toEqual([])
    expect(ways('queue', false, true)).toEqual([])
  })

  it('moves one up, down, and not past the ends', () => {
    expect(moved(['a', 'b', 'c'], 'b', -1)).toEqual(['b', 'a', 'c'])
    expect(moved(['a', 'b', 'c'], 'b', 1)).toEqual(['a', 'c', 'b'])
    expect(moved(['a', 'b', 'c'], 'c', 1)).toBeNull()
    expect(moved(['a', 'b', 'c'], 'gone', 1)).toBeNull()
    expect(placed(['a', 'b', 'c'], 'c', 0)).toEqual(['c', 'a', 'b'])
  })
})

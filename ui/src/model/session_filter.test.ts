import { describe, expect, it } from 'vitest'
import type { Session } from '../api/types'
import { ANY, fits, type Look, narrows, queryOf, standsOf } from './session_filter'

const row = (more: Partial<Session> = {}) =>
  ({ id: 'ses_a', owner: 'usr_a', state: 'open', archived: false, awake: false, pending: 0, number: 9, agent: 'scripted', directory: '/srv/shop/api', seen: 9, ...more }) as Session
const look = (more: Partial<Look> = {}): Look => ({ ...ANY, ...more })

describe('which sessions are listed', () => {
  it('is what the server is asked for', () => {
    expect(queryOf(ANY, ' ')).toEqual({ which: 'open', archived: false })
    expect(queryOf(look({ which: 'archived', stands: 'failed', owner: 'usr_b' }), ' apples ')).toEqual({ which: 'all', archived: true, needs: 'failed', owner: 'usr_b', text: 'apples' })
    expect(queryOf(look({ which: 'ended', stands: 'waiting', directory: 'not yet', origin: 'ses_o' }), '')).toEqual({ which: 'ended', doing: 'waiting', origin: 'ses_o' })
    expect(narrows(ANY)).toBe(false)
    expect(narrows(look({ agent: 'x' }))).toBe(true)
  })

  it('changes with a row as the server’s answer would', () => {
    expect(fits(row(), ANY)).toBe(true)
    expect(fits(row({ archived: true }), ANY)).toBe(false)
    expect(fits(row({ archived: true }), look({ which: 'archived' }))).toBe(true)
    expect(fits(row({ state: 'ended' }), look({ which: 'ended' }))).toBe(true)
    expect(fits(row(), look({ directory: '/srv/shop' }))).toBe(true)
    expect(fits(row(), look({ directory: '/srv/sho' }))).toBe(false)
    expect(fits(row(), look({ owner: 'usr_b' }))).toBe(false)
    expect(fits(row({ origin: { session: 'ses_o', turn: 2 } }), look({ origin: 'ses_o' }))).toBe(true)
  })

  it('knows each state by what the server goes by', () => {
    const last = (outcome: string, number: number) => ({ last: { outcome, number, at: '', words: '' } })
    const states = (of: Session) => standsOf(null).map((one) => one.value).filter((one) => one && fits(of, look({ stands: one })))
    expect(states(row())).toEqual(['dormant'])
    expect(states(row({ pending: 1 }))).toEqual(['waiting'])
    expect(states(row({ awake: true, pending: 1, questions: 1 }))).toEqual(['questions', 'running'])
    expect(states(row({ ...last('time_limit', 8), held: 1, pending: 1 }))).toEqual(['held', 'failed', 'waiting'])
    expect(states(row({ ...last('answered', 12) }))).toEqual(['unread', 'dormant'])
  })

  it('says how many there are where the server counts them', () => {
    const labels = standsOf({ open: 1200, running: 3, questions: 2, held: 0, failed: 1, unread: 5 }).map((one) => one.label)
    expect(labels[0]).toBe(`in every state (${(1200).toLocaleString()})`)
    expect(labels).toContain('asking something (2)')
    expect(labels).toContain('asleep')
  })
})

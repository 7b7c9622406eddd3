import { describe, expect, it } from 'vitest'
import type { Me, Session } from '../api/types'
import { canFork, isBelow } from './fork'

const me = (more: Partial<Me> = {}) => ({ person: 'usr_me', role: 'member', rights: ['read', 'prompt'], roots: ['/srv/code'], ...more }) as Me
const row = (more: Partial<Session> = {}) => ({ id: 'ses_a', owner: 'usr_me', may: 'manage', agent: 'scripted', directory: '/home/x', state: 'open', ...more }) as Session
const agents = [{ name: 'scripted' }]

describe('a fork', () => {
  it('is for whoever owns the session, wherever it acts, also once it has ended', () => {
    expect(canFork(row(), me(), agents)).toBe(true)
    expect(canFork(row({ state: 'ended' }), me(), agents)).toBe(true)
  })

  it('of somebody else’s session is for those who may choose its directory', () => {
    const theirs = { owner: 'usr_other', may: 'prompt' as const }
    expect(canFork(row({ ...theirs, directory: '/srv/code/shop' }), me(), agents)).toBe(true)
    expect(canFork(row({ ...theirs, directory: '/srv/codex' }), me(), agents)).toBe(false)
    expect(canFork(row({ ...theirs, directory: '/data/trees/1', worktree: { name: 'a', home: '/srv/code' } as Session['worktree'] }), me(), agents)).toBe(true)
    expect(canFork(row({ ...theirs, may: 'view', directory: '/srv/code' }), me(), agents)).toBe(false)
  })

  it('is for nobody who begins no sessions, and with no agent that is not theirs', () => {
    expect(canFork(row(), me({ role: 'viewer' }), agents)).toBe(false)
    expect(canFork(row(), me({ rights: ['read'] }), agents)).toBe(false)
    expect(canFork(row(), me(), [{ name: 'another' }])).toBe(false)
  })

  it('takes a root with everything below it, and nothing beside it', () => {
    expect(['/srv/code', '/srv/code/a/b', '/srv/codes', '/srv'].map((one) => isBelow(one, '/srv/code/'))).toEqual([true, true, false, false])
    expect(isBelow('/anything', '/')).toBe(true)
  })
})

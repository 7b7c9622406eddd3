import { describe, expect, it } from 'vitest'
import { recentDirectories, sessionOf, type BeginForm } from './begin'
import type { Session } from '../api/types'

const row = (directory: string, touched_at: string, more: Partial<Session> = {}) => ({ directory, touched_at, owner: 'me', ...more }) as Session

describe('recent directories', () => {
  it('are those where one was last, each once', () => {
    const rows = [row('/a', '1'), row('/b', '3'), row('/a', '2')]
    expect(recentDirectories(rows, 'me')).toEqual([
      { directory: '/b', sessions: 1, touchedAt: '3' },
      { directory: '/a', sessions: 2, touchedAt: '2' },
    ])
  })

  it('are where a worktree was entered from, not the worktree', () => {
    const rows = [row('/trees/x', '1', { worktree: { name: 'x', home: '/a' } as Session['worktree'] })]
    expect(recentDirectories(rows, 'me').map((one) => one.directory)).toEqual(['/a'])
  })

  it('leave out the directory that a session has of its own', () => {
    expect(recentDirectories([row('/data/work/ses_a', '1', { id: 'ses_a' }), row('/a', '1', { id: 'ses_b' })], 'me').map((one) => one.directory)).toEqual(['/a'])
  })

  it('leave out where only others work, and end somewhere', () => {
    expect(recentDirectories([row('/theirs', '1', { owner: 'you' })], 'me')).toEqual([])
    expect(recentDirectories(Array.from({ length: 20 }, (_, at) => row(`/${at}`, String(at + 10))), 'me').length).toBe(8)
  })
})

describe('what the server is asked for', () => {
  const form: BeginForm = { directory: '', agent: '', model: '', mode: '', title: '', worktree: false, name: 'x', base: '', branch: '' }

  it('has nothing that was left open', () => {
    expect(sessionOf(form)).toEqual({})
    expect(sessionOf({ ...form, directory: ' /a ', title: ' ' })).toEqual({ directory: '/a' })
  })

  it('has a worktree only if one is wanted', () => {
    expect(sessionOf({ ...form, worktree: true })).toEqual({ worktree: { name: 'x' } })
    expect(sessionOf({ ...form, worktree: true, name: '' })).toEqual({ worktree: {} })
  })
})

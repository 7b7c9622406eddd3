import { describe, expect, it } from 'vitest'
import type { Session } from '../api/types'
import { countNeeds, grouped, needOf, pageTitle, pieces } from './sessions'

const row = (id: string, more: Partial<Session> = {}): Session => ({
  id, owner: 'usr_a', state: 'open', archived: false, awake: false, pending: 0, number: 10, agent: 'claude', directory: '/w/apples',
  epoch: 0, made_at: '2026-01-01T00:00:00Z', touched_at: '2026-03-10T10:00:00Z', links: { self: '', session: '', facts: '' }, ...more,
})
const now = new Date('2026-03-10T12:00:00Z')

describe('the list of sessions', () => {
  it('has what needs somebody first: questions, held, failed, unread', () => {
    const rows = [
      row('calm', { touched_at: '2026-03-10T11:59:00Z', seen: 10 }),
      row('unread', { seen: 3, last: { outcome: 'answered', at: '', words: '', number: 9 } }),
      row('failed', { seen: 3, last: { outcome: 'failed', at: '', words: '' } }),
      row('held', { held: 1 }),
      row('asked', { questions: 2 }),
      row('pinned', { pinned: true }),
      row('works', { awake: true, seen: 3 }),
    ]
    const groups = grouped(rows, { by: 'time', words: '', now })
    expect(groups.map((group) => [group.title, ...group.rows.map((one) => one.id)])).toEqual([
      ['Needs you', 'asked', 'held', 'failed', 'unread'],
      ['Pinned', 'pinned'],
      ['At work', 'works'],
      ['Today', 'calm'],
    ])
    expect(countNeeds(rows)).toBe(4)
  })

  it('calls unread a turn whose end one has not seen, as the server does: not what has only begun, nor what nobody counts', () => {
    const last = { outcome: 'answered', at: '', words: '', number: 5 }
    expect(needOf(row('a', { seen: 4, last }))).toBe('unread')
    expect(needOf(row('a', { seen: 5, last, awake: true }))).toBeNull()
    expect(needOf(row('a', { seen: 1, awake: true }))).toBeNull()
    expect(needOf(row('a', { last }))).toBeNull()
  })

  it('finds words in any order, in title, directory, branch and last words', () => {
    const rows = [row('a', { title: 'Mend the login', branch: 'fix/login' }), row('b', { last: { outcome: 'answered', at: '', words: 'Login works' } })]
    const found = (words: string) => grouped(rows, { by: 'time', words, now }).flatMap((group) => group.rows.map((one) => one.id))
    expect(found('LOGIN')).toEqual(['b', 'a'])
    expect(found('login mend')).toEqual(['a'])
    expect(found('nothing')).toEqual([])
  })

  it('groups by days, directories and agents', () => {
    const rows = [row('new'), row('old', { touched_at: '2026-01-10T10:00:00Z', agent: 'codex', directory: '/w/pears' })]
    expect(grouped(rows, { by: 'time', words: '', now }).map((group) => group.title)).toEqual(['Today', 'Earlier'])
    expect(grouped(rows, { by: 'agent', words: '', now }).map((group) => group.title)).toEqual(['claude', 'codex'])
    expect(grouped(rows, { by: 'directory', words: '', now }).map((group) => group.title)).toEqual(['/w/apples', '/w/pears'])
  })

  it('counts what needs somebody in the title of the page', () => {
    expect(pageTitle('Sessions', 0)).toBe('Sessions · Homing')
    expect(pageTitle('Sessions', 3)).toBe('(3) Sessions · Homing')
    expect(pageTitle('', 120)).toBe('(99+) Homing')
  })

  it('takes a directory apart', () => {
    expect(pieces('/w/apples/')).toEqual({ dir: '/w/', name: 'apples' })
    expect(pieces('/')).toEqual({ dir: '/', name: '/' })
  })
})

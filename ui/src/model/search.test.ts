import { describe, expect, it } from 'vitest'
import type { Hit, Session } from '../api/types'
import type { Row } from './rows'
import { bySession, placePath, rowAt, snippetOf, unknownSessions } from './search'

const hit = (session: string, number: number): Hit => ({ session, turn: 1, number, at: '', kind: 'text', words: 'w', from: 0, to: 1 })
const slot = (key: string, number: number | null, kind: Row['kind'] = 'tool') => ({ key, row: { key, number, kind } as Row })

describe('what was found', () => {
  it('has the place that fits apart, which the server counts in bytes', () => {
    expect(snippetOf({ words: 'größe der Äpfel', from: 12, to: 18 })).toEqual({ before: 'größe der ', match: 'Äpfel', after: '' })
    expect(snippetOf({ words: '🍎 apple pie', from: 5, to: 10 })).toEqual({ before: '🍎 ', match: 'apple', after: ' pie' })
    expect(snippetOf({ words: 'short', from: 3, to: 99 })).toEqual({ before: '', match: '', after: 'short' })
  })

  it('stands together by session, each where its newest is', () => {
    const groups = bySession([hit('b', 9), hit('a', 5), hit('b', 2)])
    expect(groups.map((one) => [one.session, one.hits.map((each) => each.number)])).toEqual([['b', [9, 2]], ['a', [5]]])
    expect(unknownSessions([hit('b', 9), hit('a', 5), hit('b', 2)], new Map([['a', {} as Session]]))).toEqual(['b'])
    expect(placePath(hit('ses_a', 5))).toBe('/s/ses_a?at=5')
  })

  it('is in the row that begins with its fact or before it', () => {
    const slots = [slot('start', 3), slot('m:1', 3, 'message'), slot('w', 5, 'words'), slot('live', null, 'words'), slot('t', 9)]
    expect(rowAt(slots, 3)).toBe('m:1')
    expect(rowAt(slots, 8)).toBe('w')
    expect(rowAt(slots, 99)).toBe('t')
    expect(rowAt(slots, 2)).toBeNull()
  })
})

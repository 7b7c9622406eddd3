import { describe, expect, test } from 'vitest'
import { noticeOf } from './notice'

const asks = { version: 1, kind: 'asks', session: 'ses_01abc', title: null, agent: 'claude', tool: 'Bash', open: 1 }

describe('a notification', () => {
  test('names the session, the agent and the tool of a question', () => {
    expect(noticeOf(asks)).toEqual({ session: 'ses_01abc', title: 'A session with claude', body: 'claude asks about Bash.', isQuiet: false })
    expect(noticeOf({ ...asks, title: 'Mend the roof', tool: undefined, open: 2 })?.title).toBe('Mend the roof')
    expect(noticeOf({ ...asks, tool: undefined, open: 2 })?.body).toBe('claude asks something. 2 questions are open.')
  })

  test('is replaced, without a sound, by who answered', () => {
    const settled = { ...asks, kind: 'settled', tool: undefined, open: 0 }
    expect(noticeOf({ ...settled, by: 'eve' })).toMatchObject({ body: 'eve answered.', isQuiet: true })
    expect(noticeOf({ ...settled, by: 'you', open: 1 })?.body).toBe('You answered. Another question is open.')
    expect(noticeOf(settled)?.body).toBe('The question is no longer open.')
  })

  test('says how a turn ended', () => {
    const ended = { ...asks, kind: 'ended', tool: undefined, open: 0 }
    expect(noticeOf({ ...ended, outcome: 'answered' })?.body).toBe('claude: Finished.')
    expect(noticeOf({ ...ended, outcome: 'answered', by: 'eve' })?.body).toBe('claude: Finished. eve answered its question.')
    expect(noticeOf({ ...ended, outcome: 'failed:refused' })?.body).toBe('claude: Failed.')
  })

  test('has no marks and no end without end', () => {
    const hostile = noticeOf({ ...asks, title: `a\u202eb\u0007\n c${'x'.repeat(500)}` })!
    expect(hostile.title).toMatch(/^a b cx/)
    expect([...hostile.title].length).toBe(120)
  })

  test('is none of what we do not know', () => {
    const unknown = [null, 'x', 7, [], {}, { ...asks, version: 2 }, { ...asks, kind: 'new' }]
    const elsewhere = ['../evil', 'ses_', 'SES_1', 'ses_1/../..', '//evil.example'].map((session) => ({ ...asks, session }))
    for (const pushed of [...unknown, ...elsewhere]) expect(noticeOf(pushed)).toBeNull()
  })
})

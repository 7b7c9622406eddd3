import { describe, expect, it } from 'vitest'
import { answerWords, readAgain, ruleOf, withMore, type RuleForm } from './approvals'
import type { Approval } from '../api/types'

const asked = (id: string, at: string, state: Approval['state'] = 'open') =>
  ({ id, session: 'ses_1', turn: 1, state, asked_at: at, until: at }) as Approval

describe('the list of questions', () => {
  it('keeps its order, and puts what is new at its end, the oldest first', () => {
    const { list, gone } = readAgain([asked('b', '2'), asked('a', '1')], [asked('a', '1'), asked('d', '4'), asked('c', '3'), asked('b', '2')])
    expect(list.map((one) => one.id)).toEqual(['b', 'a', 'c', 'd'])
    expect(gone).toEqual([])
  })

  it('names what somebody else has settled, and leaves it in its place', () => {
    const { list, gone } = readAgain([asked('a', '1'), asked('b', '2')], [asked('b', '2')])
    expect(list.map((one) => one.id)).toEqual(['a', 'b'])
    expect(gone).toEqual(['a'])
  })

  it('does not ask again for what is settled, and drops the oldest of them', () => {
    const settled = Array.from({ length: 60 }, (_, at) => asked(`s${at}`, String(at), 'answered'))
    const { list, gone } = readAgain(settled, [])
    expect(gone).toEqual([])
    expect(list.length).toBe(50)
    expect(list[0]!.id).toBe('s10')
  })
})

describe('a rule', () => {
  const form: RuleForm = { effect: 'allow', agent: '', tool: '', directory: '', session: '', hours: 0, who: null }
  const now = new Date('2026-11-18T12:00:00.000Z')

  it('that says yes names something', () => {
    expect(ruleOf(form, now)).toBeTypeOf('string')
    expect(ruleOf({ ...form, tool: ' Bash ' }, now)).toEqual({ effect: 'allow', tool: 'Bash' })
    expect(ruleOf({ ...form, effect: 'deny' }, now)).toEqual({ effect: 'deny' })
  })

  it('that asks says whom, and no other does', () => {
    expect(ruleOf({ ...form, effect: 'ask' }, now)).toBeTypeOf('string')
    expect(ruleOf({ ...form, effect: 'ask', who: { user: 'usr_1' } }, now)).toEqual({ effect: 'ask', who: { user: 'usr_1' } })
    expect(ruleOf({ ...form, effect: 'deny', who: { user: 'usr_1' } }, now)).toEqual({ effect: 'deny' })
  })

  it('may have an end', () => expect(ruleOf({ ...form, tool: 'Bash', hours: 8 }, now)).toEqual({ effect: 'allow', tool: 'Bash', until: '2026-11-18T20:00:00.000Z' }))
})

describe('what was settled', () => {
  it('says how, whatever the form of the question', () => {
    const row = { state: 'answered' as const, options: [{ name: 'red' }], answer: 'yes' as const }
    expect(answerWords(row)).toBe('Yes')
    expect(answerWords({ ...row, answer: { chose: 0 } })).toBe('red')
    expect(answerWords({ ...row, answer: { chose: 4 } })).toBe('Choice 5')
    expect(answerWords({ ...row, answer: { said: 'so' } })).toBe('so')
    expect(answerWords({ ...row, state: 'lapsed', answer: null })).toBe('No longer asked')
  })

  it('has each question once, however the pages overlap', () => {
    const more = withMore([asked('c', '3', 'answered'), asked('b', '2', 'lapsed')], [asked('b', '2', 'lapsed'), asked('a', '1', 'answered')])
    expect(more.map((one) => one.id)).toEqual(['c', 'b', 'a'])
  })
})

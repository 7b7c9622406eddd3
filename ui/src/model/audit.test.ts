import { expect, it } from 'vitest'
import { auditQuery, verbs, whatWords } from './audit'
import type { Entry } from '../api/house'

const empty = { from: '', to: '', who: '', what: '', subject: '' }

it('asks for nothing that was left open', () => {
  expect(auditQuery(empty)).toEqual({})
  expect(auditQuery({ ...empty, what: ' say ', subject: ' ' })).toEqual({ what: 'say' })
})

it('means both days whole, where one is', () => {
  const query = auditQuery({ ...empty, from: '2026-11-01', to: '2026-11-01' })
  expect(new Date(query.since!).toString()).toBe(new Date(2026, 10, 1).toString())
  expect(Date.parse(query.until!) - Date.parse(query.since!)).toBe(86_400_000)
})

it('has words for people', () => {
  expect(whatWords('make_group')).toBe('make group')
  expect(verbs([{ what: 'say' }, { what: 'read' }, { what: 'say' }] as Entry[])).toEqual(['read', 'say'])
})

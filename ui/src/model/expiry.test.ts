import { expect, it } from 'vitest'
import { expiryIn, lifeOf } from './expiry'

const now = new Date('2026-11-18T12:00:00.000Z')

it('says a moment, or that there is no end', () => {
  expect(expiryIn(30, now)).toBe('2026-12-18T12:00:00.000Z')
  expect(expiryIn(0, now)).toBe('never')
})

it('warns in the last week', () => {
  expect(lifeOf({ expires: null }, now)).toBe('good')
  expect(lifeOf({ expires: '2026-11-26T12:00:00.000Z' }, now)).toBe('good')
  expect(lifeOf({ expires: '2026-11-24T12:00:00.000Z' }, now)).toBe('soon')
  expect(lifeOf({ expires: '2026-11-18T12:00:00.000Z' }, now)).toBe('over')
})

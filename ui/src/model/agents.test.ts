import { expect, it } from 'vitest'
import { abilitiesOf, signInOf, versionOf } from './agents'
import type { Agent } from '../api/types'

const tried = (age: 'older' | 'tried' | 'newer' | 'unknown') => ({ age, oldest: '1.0', newest: '2.0', update: 'npm install' })

it('says how a version stands beside those that were tried', () => {
  expect(versionOf({ version: '0.9', tried: tried('older') })).toEqual({ tone: 'warn', words: 'older than 1.0, the oldest that was tried' })
  expect(versionOf({ version: '1.5', tried: tried('tried') })?.tone).toBe('good')
  expect(versionOf({ version: '3.0', tried: tried('newer') })?.words).toContain('2.0')
  expect(versionOf({ version: null, tried: tried('unknown') })).toBe(null)
  expect(versionOf({ version: '1.0', tried: null })).toBe(null)
})

it('says what to do about a sign-in that is missing', () => {
  expect(signInOf({ sign_in: { state: 'missing', how: 'run it once' } })).toEqual({ tone: 'warn', words: 'not signed in, as far as can be seen: run it once' })
  expect(signInOf({ sign_in: { state: 'here', by: 'KEY' } }).tone).toBe('good')
})

it('lists what an agent can do, and nothing that it cannot', () => {
  expect(abilitiesOf({ abilities: { steer: true, images: false, files: 'any', usage: true } as Agent['abilities'] })).toEqual(['listens while it works', 'says what a turn cost'])
})

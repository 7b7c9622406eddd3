import { expect, it } from 'vitest'
import { room, since } from './amounts'

it('says how long ago something was', () => {
  const now = Date.parse('2026-11-18T12:00:00Z')
  expect(since('2026-11-18T11:59:50Z', now)).toBe('just now')
  expect(since('2026-11-18T11:40:00Z', now)).toBe('20 min ago')
  expect(since('2026-11-17T12:00:00Z', now)).toBe('1 d ago')
  expect(since('2026-10-01T12:00:00Z', now)).toMatch(/^on .*1/)
})

it('says much room in large units', () => {
  expect(room(4096 * 1024 * 1024)).toBe('4.0 GiB')
  expect(room(10240 * 1024 * 1024)).toBe('10 GiB')
  expect(room(2048)).toBe('2.0 KiB')
})

import { describe, expect, it } from 'vitest'
import { seeded } from './fact_samples'
import { Heights } from './heights'

describe('heights', () => {
  it('have the sums that adding them up would have, whatever is pushed, set and forgotten', () => {
    const pick = seeded(9)
    const heights = new Heights()
    let plain: number[] = []
    for (let step = 0; step < 3_000; step++) {
      const what = pick(10)
      if (what < 6) {
        const height = 1 + pick(90)
        heights.push(`k${plain.length}`, height)
        plain.push(height)
      } else if (what < 9 && plain.length) {
        const at = pick(plain.length)
        plain[at] = 1 + pick(90)
        heights.set(at, plain[at]!)
      } else if (pick(20) === 0) {
        const to = plain.length - pick(Math.min(plain.length + 1, 200))
        plain = plain.slice(0, to)
        heights.truncate(to)
      }
      const at = pick(plain.length + 1)
      const sum = plain.slice(0, at).reduce((all, one) => all + one, 0)
      expect(heights.offsetOf(at)).toBe(sum)
      if (at < plain.length) expect(heights.indexAt(sum)).toBe(at)
    }
    expect(heights.total).toBe(plain.reduce((all, one) => all + one, 0))
    expect(heights.indexAt(-5)).toBe(0)
    expect(heights.indexAt(1e9)).toBe(plain.length - 1)
  })
})

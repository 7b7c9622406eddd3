import { describe, expect, it } from 'vitest'
import { joined } from './patches'

describe('the patch of one file', () => {
  it('is joined of its pieces until there is no next one', () => {
    const first = joined(null, { known: true, patch: 'diff --git a/a b/a\n', next: 19 })
    expect(first).toEqual({ patch: 'diff --git a/a b/a\n', isKnown: true, next: 19 })
    expect(joined(first, { known: true, patch: '--- a/a\n' })).toEqual({ patch: 'diff --git a/a b/a\n--- a/a\n', isKnown: true, next: null })
  })

  it('never asks for the same piece again', () => {
    const first = joined(null, { known: true, patch: 'x', next: 5 })
    expect(joined(first, { known: true, patch: 'y', next: 5 }).next).toBeNull()
  })

  it('may be something that nobody can tell any more', () => {
    expect(joined(null, { known: false, patch: '' })).toEqual({ patch: '', isKnown: false, next: null })
  })
})

import { describe, expect, it } from 'vitest'
import { Run, WAITING_PIECES_MAX, joined, utf8Bytes } from './bytes'
import { chance } from './chance'

const TEXT = 'plain, ünïcödé, 漢字かな, 😀👩‍👩‍👧🏴󠁧󠁢󠁥󠁮󠁧󠁿 and 𝄞.\n'.repeat(20)

/** The length in UTF-8, by another way. */
function lengthOf(text: string): number {
  return new TextEncoder().encode(text).length
}

/** Pieces of a text at its characters, with the bytes before each. */
function cut(text: string, random: (below: number) => number): { offset: number; text: string }[] {
  const characters = [...text]
  const out = []
  for (let at = 0; at < characters.length; ) {
    const count = 1 + random(7)
    out.push({ offset: lengthOf(characters.slice(0, at).join('')), text: characters.slice(at, at + count).join('') })
    at += count
  }
  return out
}

describe('bytes', () => {
  it('counts as the server does', () => {
    for (const text of ['', 'a', 'ü', '漢', '😀', TEXT, 'a\ud800b', '\udc00']) expect(utf8Bytes(text)).toBe(lengthOf(text))
  })

  it('takes words in order once, and says what is new', () => {
    const run = new Run()
    expect(run.add(0, 'grüß')).toBe('grüß')
    expect(run.bytes).toBe(6)
    expect(run.add(6, ' 😀')).toBe(' 😀')
    expect(run.text).toBe('grüß 😀')
  })

  it('takes live words and the facts that repeat them once', () => {
    const run = new Run()
    run.add(0, 'one 😀 ')
    run.add(9, 'two ')
    expect(run.add(0, 'one 😀 two three')).toBe('three')
    expect(run.add(4, '😀 two')).toBe('')
    expect(run.text).toBe('one 😀 two three')
  })

  it('joins overlapping pieces of whatever cut, in whatever order', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = chance(seed)
      const pieces = [...cut(TEXT, random), ...cut(TEXT, random), ...cut(TEXT, random)].sort((one, other) => one.offset - other.offset)
      const run = new Run()
      let said = ''
      for (const { offset, text } of pieces) said += run.add(offset, text)
      expect([seed, run.text, said, run.bytes]).toEqual([seed, TEXT, TEXT, lengthOf(TEXT)])
      expect(joined(pieces.toSorted(() => random(3) - 1))).toBe(TEXT)
    }
  })

  it('waits for what is missing', () => {
    const run = new Run()
    run.add(0, 'a')
    expect(run.add(3, 'd')).toBe('')
    expect(run.hasGap).toBe(true)
    run.add(2, 'c')
    expect(run.text).toBe('a')
    expect(run.add(1, 'b')).toBe('bcd')
    expect(run.hasGap).toBe(false)
  })

  it('lets only so many wait', () => {
    const run = new Run()
    for (let at = 1; at <= WAITING_PIECES_MAX + 10; at++) run.add(at, 'x')
    expect(run.add(0, 'x')).toHaveLength(WAITING_PIECES_MAX + 1)
  })

  it('never shows half a character where pieces contradict each other', () => {
    const run = new Run()
    run.add(0, 'ab')
    expect(run.add(1, '😀')).toBe('')
    expect(run.bytes).toBe(5)
    expect(run.add(5, 'c')).toBe('c')
    expect(run.text).toBe('abc')
  })

  it('joins a megabyte of small pieces', () => {
    const run = new Run()
    for (let at = 0; at < 1 << 20; at += 8) run.add(at, 'abcdefg ')
    expect(run.bytes).toBe(1 << 20)
    expect(run.text).toBe('abcdefg '.repeat(1 << 17))
  })
})

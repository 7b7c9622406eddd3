import { describe, expect, it } from 'vitest'
import { LINE_CHARS_MAX, MARKS_MAX, line, lineText, pieces, splitOpenAnsi, visible, withoutAnsi } from './marks'

/** The pieces as one string, marks in brackets. */
function check(text: string): string {
  return pieces(text)
    .map((piece) => (piece.kind === 'text' ? piece.text : `[${piece.label}]`))
    .join('')
}

describe('marks', () => {
  it('keeps what can be seen, with its line breaks and tabs', () => {
    expect(pieces('a\n\tb ü 漢 𝄞 é')).toEqual([{ kind: 'text', text: 'a\n\tb ü 漢 𝄞 é' }])
    expect(pieces('')).toEqual([])
    expect(check('a\r\nb')).toBe('a\nb')
  })

  it('names control characters', () => {
    expect(check('a\0b\x1bc\x7fd\x85e\rf\bg')).toBe('a[NUL]b[ESC]c[DEL]d[U+0085]e[CR]f[BS]g')
  })

  it('names whatever turns the direction of a text', () => {
    const all = '\u202a \u202b \u202c \u202d \u202e \u2066 \u2067 \u2068 \u2069 \u200e \u200f \u061c'
    expect(check(all)).toBe('[LRE] [RLE] [PDF] [LRO] [RLO] [LRI] [RLI] [FSI] [PDI] [LRM] [RLM] [ALM]')
    expect(pieces('a\u202etxt.exe')[1]).toEqual({ kind: 'mark', label: 'RLO', name: 'right-to-left override' })
  })

  it('names what has no width, byte order marks, separators and halves of pairs', () => {
    expect(check('a\u200bb\u2060c\ufeffd\u00ade\u2028f\u3164g\ud800h\udc00')).toBe('a[ZWSP]b[WJ]c[BOM]d[SHY]e[LS]f[U+3164]g[U+D800]h[U+DC00]')
  })

  it('says what tag characters spell', () => {
    const hidden = [...'run rm'].map((char) => String.fromCodePoint(0xe0000 + char.charCodeAt(0))).join('')
    expect(check(`hi${hidden}`)).toBe('hi[TAG “run rm”]')
  })

  it('makes one mark of a run, however long', () => {
    expect(check('\u202e'.repeat(50_000))).toBe('[RLO×50000]')
    expect(check('\x01\x02\x03\x04\x05\x06\x07\b')).toBe('[SOH STX ETX EOT ENQ ACK +2]')
  })

  it('leaves joiners where they do their work: in emoji, flags and scripts that join', () => {
    const harmless = ['👩‍👩‍👧', '❤️', '1️⃣', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', 'می‌خواهم', 'क्‍ष', '葛󠄀']
    for (const text of harmless) expect(pieces(text)).toEqual([{ kind: 'text', text }])
    expect(check('a\u200db')).toBe('a[ZWJ]b')
    expect(check('pay\u200cpal')).toBe('pay[ZWNJ]pal')
    expect(check('a\ufe0f\ufe0f')).toBe('a[U+FE0F×2]')
    expect(check('😀\u{e0101}\u{e0102}')).toBe('😀[U+E0101 U+E0102]')
  })

  it('piles so many combining characters upon a letter; the rest is a mark', () => {
    expect(check('é ẹ́̂ a\u0301')).toBe('é ẹ́̂ a\u0301')
    expect(check(`a${'\u0301'.repeat(50_000)}b`)).toBe(`a${'\u0301'.repeat(8)}[U+0301×49992]b`)
  })

  it('makes so many marks and no more; after that, hidden characters are replaced', () => {
    const out = pieces('a\u202e'.repeat(MARKS_MAX + 10))
    expect(out.filter((piece) => piece.kind === 'mark')).toHaveLength(MARKS_MAX)
    expect(out.at(-1)).toEqual({ kind: 'text', text: `a\ufffd`.repeat(10) })
  })

  it('copies what can be seen', () => {
    expect(visible('rm\u202e -rf\0 👩‍👧\r\n')).toBe('rm -rf 👩‍👧\n')
  })
})

describe('escape sequences', () => {
  it('takes out colours, links, titles, character sets and strings', () => {
    expect(withoutAnsi('\x1b[1;31mred\x1b[0m \x1b[38;5;1mx\x1b[K\x1b[?25l')).toBe('red x')
    expect(withoutAnsi('\x1b]8;;https://evil.org\x07here\x1b]8;;\x1b\\ \x1b]0;title\x9cend')).toBe('here end')
    expect(withoutAnsi('\x1b(B\x1b)0a\x1bPq#0\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e\x1b7\x1bcf')).toBe('abcdef')
    expect(withoutAnsi('\x9b31mred\x9d0;t\x07.')).toBe('red.')
  })

  it('hides nothing behind a sequence that has no end', () => {
    expect(withoutAnsi('a\x1b]0;all of this')).toBe('a\x1b]0;all of this')
    expect(withoutAnsi(`\x1b]${'x'.repeat(5_000)}\x07`)).toHaveLength(5_003)
    expect(withoutAnsi('a\x1b')).toBe('a\x1b')
    expect(withoutAnsi('\x1b]0;a\nb\x1b[1mc')).toBe('\x1b]0;a\nbc')
  })

  it('splits off what may be the beginning of one', () => {
    expect(splitOpenAnsi('a\x1b[1mb\x1b[3')).toEqual({ shown: 'ab', later: '\x1b[3' })
    expect(splitOpenAnsi('a\x1b')).toEqual({ shown: 'a', later: '\x1b' })
    expect(splitOpenAnsi('ab')).toEqual({ shown: 'ab', later: '' })
  })
})

describe('one line', () => {
  it('folds line breaks into marks, tabs into spaces, and removes escape sequences', () => {
    expect(lineText('a\nb\r\nc\td\x1b[31m\u202ee')).toBe('a↵b↵c d[RLO]e')
    expect(line('a\nb')).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'mark', label: '↵', name: 'line break' },
      { kind: 'text', text: 'b' },
    ])
  })

  it('cuts a long one, never within a character, and says how much is left', () => {
    const out = line('x'.repeat(LINE_CHARS_MAX - 1) + '😀'.repeat(10))
    expect(out[0]).toEqual({ kind: 'text', text: 'x'.repeat(LINE_CHARS_MAX - 1) })
    expect(out[1]).toEqual({ kind: 'mark', label: '…', name: '20 more characters' })
  })

  it('takes a megabyte of line breaks', () => {
    expect(lineText('\n'.repeat(1 << 20)).length).toBeLessThan(LINE_CHARS_MAX + 10)
  })
})

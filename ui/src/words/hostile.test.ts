// Words by chance, made of what has broken other readers: whatever they are, nothing throws, nothing is lost, and no link leads
// anywhere but to http, https or mailto.

import { describe, expect, it } from 'vitest'
import { chance } from './chance'
import { diff } from './diff'
import { Markdown, markdown } from './markdown'
import { lineText, pieces, withoutAnsi } from './marks'
import { chunked } from './plain'
import type { Block, Inline, Link, Piece } from './tree'

const PARTS = [
  ...['*', '**', '***', '_', '__', '~~', '`', '``', '```', '~~~', '\n```\n', '[', ']', '(', ')', '![', '](', '](<', '>)', '](https://a.org/x "t")'],
  ...['](javascript:alert(1))', '](data:text/html,x)', '](java\nscript:x)', '](https://u:p@b.org)', '](mailto:a@b.org)', '](//c.org)', '<https://d.org>'],
  ...['<javascript:alert(1)>', 'https://e.org/?q=', '<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '<svg onload=x>', '&lt;', '&#0;', '&#x202e;', '&'],
  ...['\n', '\n\n', '\r\n', '\r', '  \n', '\\\n', '\t', ' ', '    ', '- ', '\n- ', '\n  - ', '\n1. ', '> ', '\n> ', '>>>>', '# ', '\n---\n', '\n===\n', '| a | b |\n|-|-|\n| c |'],
  ...['|', '\\|', '\\', '\\*', '- [ ] ', '- [x] ', '\u202e', '\u2066', '\u200b', '\ufeff', '\u{e0041}', '\ud800', '\udc00', '\0', '\x1b[31m', '\x1b]8;;https://f.org\x07', '\x1b]0;'],
  ...['\x1b', '\x9b1m', '\x07', '👩‍👩‍👧', 'é', '漢字', 'שלום', 'a', 'word', 'b c', '1', '_'.repeat(40), '>'.repeat(40), '- '.repeat(20), '['.repeat(30), '`'.repeat(30)],
]

function words(seed: number): string {
  const random = chance(seed)
  return Array.from({ length: 1 + random(40) }, () => (PARTS[random(PARTS.length)] ?? '').repeat(random(8) === 0 ? 1 + random(30) : 1)).join('')
}

/** What is read of a tree, in order: marks as the replacement character, nothing between blocks. */
function seen(blocks: readonly Block[]): string {
  return blocks
    .map((block) => {
      switch (block.kind) {
        case 'code':
          return said(pieces(block.about, { left: Infinity })) + said(pieces(block.text, { left: Infinity }))
        case 'plain':
          return said(pieces(block.text, { left: Infinity }))
        case 'quote':
          return seen(block.blocks)
        case 'list':
          return block.items.map((item) => seen(item.blocks)).join('')
        case 'table':
          return [block.head, ...block.rows].flat().map(seenSpans).join('')
        case 'rule':
          return ''
        default:
          return seenSpans(block.inlines)
      }
    })
    .join('')
}

function seenSpans(spans: readonly Inline[]): string {
  return spans
    .map((span) => {
      if (span.kind === 'code') return said(span.pieces)
      if (span.kind === 'plain') return said(pieces(span.text, { left: Infinity }))
      if (span.kind === 'unlinked') return seenSpans(span.inlines) + said(span.address)
      return 'inlines' in span ? seenSpans(span.inlines) : span.kind === 'break' ? '' : said([span])
    })
    .join('')
}

function said(list: readonly Piece[]): string {
  return list.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('')
}

/** Letters and figures, which no markup is made of. */
function letters(text: string): string {
  return text.replace(/[^\p{L}]/gu, '')
}

/** What of the words may be missing from the tree: addresses and titles of links, entities, the boxes of tasks. */
const MARKUP = /\]\(.*?\)|&#?\w+;|\[x\]/gs

function links(blocks: readonly Block[]): Link[] {
  const out: Link[] = []
  const walk = (value: unknown): void => {
    if (value === null || typeof value !== 'object') return
    if ('href' in value && 'leads' in value) out.push(value as Link)
    for (const each of Object.values(value)) walk(each)
  }
  walk(blocks)
  return out
}

/** True if all of `part` is in `whole`, in order. */
function isWithin(part: string, whole: string): boolean {
  let at = 0
  for (const character of part) {
    at = whole.indexOf(character, at)
    if (at < 0) return false
    at += character.length
  }
  return true
}

/** Time for the whole of a story by chance, on a machine that does much else. */
const CHANCE_MS_MAX = 120_000

describe('hostile words by chance', () => {
  it('2,000 texts: nothing throws, nothing is invented, nothing is lost, no link leads elsewhere', () => {
    for (let seed = 1; seed <= 2_000; seed++) {
      const text = words(seed)
      const tree = markdown(text, () => 0)
      const what = { seed, text: JSON.stringify(text) }
      const shown = letters(seen(tree))
      // What is shown was said. An entity is a character that was said otherwise.
      const plain = withoutAnsi(text)
      expect({ ...what, shown: isWithin(shown, letters(plain.replace(/&#?\w+;/g, ''))) || isWithin(shown, letters(plain)) }).toEqual({ ...what, shown: true })
      // What was said, apart from markup, is shown.
      const kept = letters(plain.replace(MARKUP, ''))
      expect({ ...what, kept: isWithin(kept, shown) || kept }).toEqual({ ...what, kept: true })
      for (const { href } of links(tree)) expect({ ...what, href }).toEqual({ ...what, href: expect.stringMatching(/^(?:https?:\/\/[^@\\]+|mailto:[^?]+)$/) })
    }
  }, CHANCE_MS_MAX)

  it('300 texts in pieces: the tree is that of the whole', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const text = words(seed)
      const random = chance(seed + 1_000_000)
      const reader = new Markdown(() => 0)
      for (let at = 0; at < text.length; ) {
        const size = 1 + random(9)
        reader.append(text.slice(at, at + size))
        if (random(3) === 0) reader.blocks()
        at += size
      }
      reader.end()
      const [pieced, whole] = [reader.blocks(), markdown(text, () => 0)]
      if (JSON.stringify(pieced) !== JSON.stringify(whole)) expect({ seed, text, tree: pieced }).toEqual({ seed, text, tree: whole })
    }
  }, CHANCE_MS_MAX)

  it('2,000 texts as lines, plain text and patches', () => {
    for (let seed = 1; seed <= 2_000; seed++) {
      const text = words(seed)
      const hidden = /(?!\n)[\p{Cc}\p{Cs}\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/u
      expect({ seed, isHidden: hidden.test(lineText(text)) || /\n/.test(lineText(text)) }).toEqual({ seed, isHidden: false })
      expect(chunked(text).map((chunk) => chunk.text).join('')).toBe(text)
      for (const piece of pieces(text)) if (piece.kind === 'text') expect({ seed, is: hidden.test(piece.text.replaceAll('\t', '')) }).toEqual({ seed, is: false })
      expect(() => diff(`diff --git a/x b/x\n@@ -1,99 +1,99 @@\n${text}`)).not.toThrow()
    }
  }, CHANCE_MS_MAX)
})

/** What has stopped other readers, about a megabyte each where its kind can be. */
const BOMBS: Record<string, string> = {
  '50,000 underscores': '_'.repeat(50_000),
  '50,000 underscores with words': '_a '.repeat(50_000),
  '50,000 stars that open and close': 'a**b*'.repeat(20_000),
  'stars within stars': `${'*a '.repeat(20_000)}${' b*'.repeat(20_000)}`,
  '20,000 quotes': '>'.repeat(20_000),
  '20,000 quotes with spaces, 20 times': `${'> '.repeat(20_000)}\n`.repeat(20),
  'lists 1,000 deep': Array.from({ length: 1_000 }, (_, at) => `${'  '.repeat(at)}- x`).join('\n'),
  'lists 1,000 deep on a line': `${'- '.repeat(1_000)}x`,
  'a line of 1 MB': 'a'.repeat(1 << 20),
  'a line of 1 MB of stars': '*a* '.repeat(1 << 18),
  '1 MB of empty lines': '\n'.repeat(1 << 20),
  '1 MB of spaces': ' '.repeat(1 << 20),
  '1 MB of short lines': 'a\n'.repeat(1 << 19),
  '1 MB of items': '- a\n'.repeat(1 << 18),
  '1 MB of rows': `|a|b|\n|-|-|\n${'|1|2|\n'.repeat(170_000)}`,
  '1 MB in a fence': `\`\`\`\n${'x\n'.repeat(1 << 19)}`,
  '100,000 backticks': '`'.repeat(100_000),
  'backticks of every length': Array.from({ length: 400 }, (_, at) => '`'.repeat(at + 1)).join(' '),
  '50,000 brackets': '['.repeat(50_000),
  'brackets within brackets': `${'['.repeat(20_000)}a${'](https://x.org)'.repeat(20_000)}`,
  '50,000 links that do not end': '[a](<b'.repeat(50_000),
  '50,000 titles that do not end': '[a](b "'.repeat(50_000),
  '50,000 addresses': 'https://'.repeat(50_000),
  'a delimiter row that is none': `a|b\n${'-    '.repeat(3_000)}x`,
  '1 MB of right-to-left overrides': 'a\u202e'.repeat(1 << 19),
  '1 MB of escapes': '\x1b'.repeat(1 << 20),
  '1 MB of strings that do not end': '\x1b]'.repeat(1 << 19),
  '1 MB of C1 strings that do not end': '\x9d'.repeat(1 << 20),
  '1 MB of backslashes': '\\'.repeat(1 << 20),
  '1 MB of ampersands': '&#1'.repeat(350_000),
}

/** Generous, for a machine that does much else: what is not linear takes minutes. */
const BOMB_MS_MAX = 20_000

describe('bombs', () => {
  for (const [name, text] of Object.entries(BOMBS)) {
    it(name, () => {
      const began = performance.now()
      const tree = markdown(text)
      lineText(text)
      const reader = new Markdown()
      for (let at = 0; at < text.length; at += 8_192) {
        reader.append(text.slice(at, at + 8_192))
        reader.blocks()
      }
      expect(performance.now() - began).toBeLessThan(BOMB_MS_MAX)
      expect(tree.length).toBeGreaterThanOrEqual(text.trim() === '' ? 0 : 1)
    }, CHANCE_MS_MAX)
  }
})

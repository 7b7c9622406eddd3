import { describe, expect, it } from 'vitest'
import { COLUMNS_MAX, DEPTH_MAX, NODES_MAX } from './blocks'
import { chance } from './chance'
import { INLINES_MAX, INLINE_CHARS_MAX, INLINE_DEPTH_MAX } from './inlines'
import { LINE_CHARS_MAX, Markdown, SLICE_NODES, TEXT_CHARS_MAX, TIME_MS_MAX, markdown } from './markdown'
import type { Block, Inline, PlainWhy } from './tree'

/** A clock that stands, so that nothing depends on how fast this machine is. */
const still = () => 0

const ANSWER = [
  'I looked at **three** files, and *one* of them is wrong:\n\n',
  '1. `src/a.rs` has `let x = 1`\n2. [the docs](https://docs.example.org/x) say otherwise\n   - nested *item*\n   - [x] done\n\n',
  '> A quote\n> of two lines\n\n```rust\nfn main() {\n\n    println!("😀");\n}\n```\n\n',
  '| a | b |\n|---|--:|\n| 1 | **2** |\n| 3 | 4 |\n\nTitle\n=====\n\nline one  \nline two\\\nline three ~~gone~~ https://bare.example.org/p.\n\n---\n\nend',
].join('')

/** Everything plain in a tree, with the bound that made it so. */
function plainsOf(blocks: readonly Block[]): { why: PlainWhy; length: number }[] {
  return blocks.flatMap((block) => {
    switch (block.kind) {
      case 'plain':
        return [{ why: block.why, length: block.text.length }]
      case 'paragraph':
      case 'heading':
        return plainSpans(block.inlines)
      case 'quote':
        return plainsOf(block.blocks)
      case 'list':
        return block.items.flatMap((item) => plainsOf(item.blocks))
      case 'table':
        return [...block.head, ...block.rows.flat()].flatMap(plainSpans)
      default:
        return []
    }
  })
}

function plainSpans(spans: readonly Inline[]): { why: PlainWhy; length: number }[] {
  return spans.flatMap((span) => (span.kind === 'plain' ? [{ why: span.why, length: span.text.length }] : 'inlines' in span ? plainSpans(span.inlines) : []))
}

function blockDepth(blocks: readonly Block[]): number {
  return Math.max(
    0,
    ...blocks.map((block) => {
      if (block.kind === 'quote') return 1 + blockDepth(block.blocks)
      return block.kind === 'list' ? 1 + Math.max(...block.items.map((item) => blockDepth(item.blocks))) : 0
    }),
  )
}

function spanDepth(spans: readonly Inline[]): number {
  return Math.max(0, ...spans.map((span) => ('inlines' in span ? 1 + spanDepth(span.inlines) : 0)))
}

function spansOf(block: Block | undefined): readonly Inline[] {
  return block && 'inlines' in block ? block.inlines : []
}

describe('a text that grows', () => {
  it('is read alike, whatever the pieces in which it comes', () => {
    const whole = markdown(ANSWER, still)
    for (let seed = 1; seed <= 60; seed++) {
      const random = chance(seed)
      const reader = new Markdown(still)
      for (let at = 0; at < ANSWER.length; ) {
        const size = 1 + random(12)
        reader.append(ANSWER.slice(at, at + size))
        // Looking ahead leaves nothing behind.
        if (random(2) === 0) reader.blocks()
        at += size
      }
      reader.end()
      expect([seed, reader.blocks()]).toEqual([seed, whole])
    }
  })

  it('keeps each finished block as the same object', () => {
    const reader = new Markdown(still)
    let before: Block[] = []
    for (const piece of ANSWER.match(/.{1,5}/gs) ?? []) {
      reader.append(piece)
      const now = reader.blocks()
      const changed = before.findIndex((block, at) => block !== now[at])
      if (changed >= 0) expect(changed).toBeGreaterThanOrEqual(before.length - 2)
      before = now
    }
    const long = new Markdown(still)
    long.append('- first\n- second\n- thi')
    const list = long.blocks()[0]
    long.append('rd')
    const grown = long.blocks()[0]
    if (list?.kind !== 'list' || grown?.kind !== 'list') throw new Error('a list was expected')
    expect(grown.items[0]).toBe(list.items[0])
    expect(grown.items[1]).toBe(list.items[1])
    expect(grown.items[2]).not.toBe(list.items[2])
  })

  it('shows a line before it is over', () => {
    const reader = new Markdown(still)
    reader.append('# Ti')
    expect(reader.blocks()).toEqual([{ kind: 'heading', level: 1, inlines: [{ kind: 'text', text: 'Ti' }] }])
    reader.append('tle\n\nwords and `co')
    expect(reader.blocks()[1]).toEqual({ kind: 'paragraph', inlines: [{ kind: 'text', text: 'words and `co' }] })
    reader.append('de`\n```js\nlet a')
    expect(reader.blocks()[2]).toEqual({ kind: 'code', language: 'js', about: 'js', text: 'let a', closed: false })
  })

  it('does not take the beginning of a list for the underline of a heading', () => {
    const reader = new Markdown(still)
    reader.append('words\n-')
    expect(reader.blocks()).toMatchObject([{ kind: 'paragraph' }])
    reader.append(' item\n')
    expect(reader.blocks()).toMatchObject([{ kind: 'paragraph' }, { kind: 'list' }])
    reader.append('\nTitle\n---')
    expect(reader.blocks()).toMatchObject([{ kind: 'paragraph' }, { kind: 'list' }, { kind: 'paragraph' }])
    reader.append('\n')
    expect(reader.blocks()).toMatchObject([{ kind: 'paragraph' }, { kind: 'list' }, { kind: 'heading', level: 2 }])
  })

  it('takes out escape sequences that come in two pieces, and shows one that never ends', () => {
    const reader = new Markdown(still)
    reader.append('a\x1b[3')
    expect(reader.blocks()).toEqual([{ kind: 'paragraph', inlines: [{ kind: 'text', text: 'a' }] }])
    reader.append('1mb\x1b]8;;https://e')
    reader.append('vil.org\x07c')
    expect(reader.blocks()).toEqual([{ kind: 'paragraph', inlines: [{ kind: 'text', text: 'abc' }] }])
    reader.append('\x1b]0;hidden')
    reader.end()
    expect(spansOf(reader.blocks()[0]).map((span) => span.kind)).toEqual(['text', 'mark', 'text'])
    expect(spansOf(reader.blocks()[0]).at(-1)).toEqual({ kind: 'text', text: ']0;hidden' })
  })

  it('shows hidden characters as marks, in words, code and names', () => {
    const [paragraph] = markdown('a\u202eb `c\u200bd` **e\0f**', still)
    expect(spansOf(paragraph)[1]).toMatchObject({ kind: 'mark', label: 'RLO' })
    expect(spansOf(paragraph)[3]).toMatchObject({ kind: 'code', pieces: [{ text: 'c' }, { label: 'ZWSP' }, { text: 'd' }] })
    expect(spansOf(paragraph)[5]).toMatchObject({ kind: 'strong', inlines: [{ text: 'e' }, { label: 'NUL' }, { text: 'f' }] })
  })
})

describe('links and images', () => {
  it('makes links of images, and of nothing with another scheme', () => {
    const [paragraph] = markdown('![alt](https://a.org/i.png) [x](javascript:alert) [y](src/a.rs) <script>', still)
    const kinds = spansOf(paragraph)
    expect(kinds[0]).toMatchObject({ kind: 'link', of: 'image', link: { href: 'https://a.org/i.png' }, shows: 'a.org' })
    expect(kinds[2]).toMatchObject({ kind: 'unlinked', address: [{ text: 'javascript:alert' }] })
    expect(kinds[4]).toMatchObject({ kind: 'unlinked', address: [{ text: 'src/a.rs' }] })
    expect(kinds[5]).toEqual({ kind: 'text', text: ' <script>' })
  })

  it('shows where a link leads if its text says something else', () => {
    const shows = (text: string) => spansOf(markdown(text, still)[0]).map((span) => (span.kind === 'link' ? span.shows : null))
    expect(shows('[a.org](https://evil.org)')).toEqual(['evil.org'])
    expect(shows('[a.org](https://a.org/path)')).toEqual([''])
    expect(shows('https://a.org/path')).toEqual([''])
    expect(shows('[**a.org**](https://a.org)')).toEqual([''])
    expect(shows('[a.\u200borg](https://a.org)')).toEqual(['a.org'])
  })

  it('puts no link into a link', () => {
    const [paragraph] = markdown('[https://a.org ![i](https://i.org/x.png)](https://b.org)', still)
    expect(spansOf(paragraph)).toMatchObject([{ kind: 'link', link: { href: 'https://b.org/' }, inlines: [{ text: 'https://a.org ' }, { kind: 'unlinked', of: 'image' }] }])
  })

  it('ends a bare address before the punctuation of its sentence', () => {
    const hrefs = (spans: readonly Inline[]): string[] =>
      spans.flatMap((span) => (span.kind === 'link' ? [span.link.href] : 'inlines' in span ? hrefs(span.inlines) : []))
    const href = (text: string) => hrefs(spansOf(markdown(text, still)[0]))
    expect(href('see https://a.org/x.')).toEqual(['https://a.org/x'])
    expect(href('(https://a.org/x_(y)), **https://b.org/z**')).toEqual(['https://a.org/x_(y)', 'https://b.org/z'])
    expect(href('xhttps://a.org')).toEqual([])
  })
})

describe('bounds', () => {
  it('nests so many quotes and lists; the rest is plain', () => {
    for (const text of ['>'.repeat(20_000), '> '.repeat(20_000), `${'- '.repeat(5_000)}x`, Array.from({ length: 1_000 }, (_, at) => `${'  '.repeat(at)}- x`).join('\n')]) {
      const tree = markdown(text, still)
      expect(blockDepth(tree)).toBe(DEPTH_MAX)
      expect(plainsOf(tree).map(({ why }) => why)).toEqual(['depth'])
    }
  })

  it('goes on after what was too deep', () => {
    const tree = markdown(`${'>'.repeat(50)} deep\n\n# after`, still)
    expect(tree).toMatchObject([{ kind: 'quote' }, { kind: 'heading' }])
  })

  it('nests so many spans; the marks of the rest are text', () => {
    const [paragraph] = markdown(`${'*'.repeat(200)}a${'*'.repeat(200)}`, still)
    expect(spanDepth(spansOf(paragraph))).toBe(INLINE_DEPTH_MAX)
  })

  it('reads so much of a paragraph', () => {
    const words = markdown('a *b* '.repeat(100).repeat(100), still)
    expect(plainsOf(words)).toEqual([{ why: 'nodes', length: expect.any(Number) }, { why: 'size', length: 60_000 - 1 - INLINE_CHARS_MAX }])
    expect(spansOf(words[0]).length).toBeLessThan(INLINES_MAX + 10)
  })

  it('reads so much of a line, and puts the rest of it where it belongs', () => {
    const rest = 5_000
    expect(plainsOf(markdown(`${'a'.repeat(LINE_CHARS_MAX + rest)}\n\n*b*`, still))).toEqual([{ why: 'size', length: LINE_CHARS_MAX - INLINE_CHARS_MAX + rest }])
    expect(markdown(`# ${'a'.repeat(LINE_CHARS_MAX - 2 + rest)}\n*b*`, still)).toMatchObject([{ kind: 'heading' }, { kind: 'plain', why: 'size' }, { kind: 'paragraph' }])
    const code = markdown(`\`\`\`\n${'a'.repeat(LINE_CHARS_MAX + rest)}\nb\n\`\`\`\n`, still)
    expect(code).toEqual([{ kind: 'code', language: '', about: '', text: `${'a'.repeat(LINE_CHARS_MAX + rest)}\nb`, closed: true }])
  })

  it('reads so much of a text', () => {
    const tree = markdown(`${'word '.repeat(12_000)}\n\n`.repeat(30), still)
    const last = tree.at(-1)
    expect(last).toMatchObject({ kind: 'plain', why: 'size' })
    expect(30 * 60_002 - TEXT_CHARS_MAX - (last?.kind === 'plain' ? last.text.length : 0)).toBeLessThan(60_002)
  })

  it('makes so many elements', () => {
    const text = '- a\n'.repeat(NODES_MAX)
    const tree = markdown(text, still)
    expect(tree.at(-1)).toMatchObject({ kind: 'plain', why: 'nodes' })
    const list = tree[0]
    expect(list?.kind === 'list' && list.items.length).toBeLessThan(NODES_MAX)
    expect(list?.kind === 'list' && list.items.length).toBeGreaterThan(NODES_MAX / 4)
  })

  it('takes no table that is too wide, and leaves no cell out of one that is not', () => {
    const row = (cells: number, cell: string) => `|${`${cell}|`.repeat(cells)}\n`
    expect(markdown(row(COLUMNS_MAX, 'a') + row(COLUMNS_MAX, '-'), still)).toMatchObject([{ kind: 'table' }])
    expect(markdown(row(COLUMNS_MAX + 1, 'a') + row(COLUMNS_MAX + 1, '-'), still)).toMatchObject([{ kind: 'paragraph' }])
    expect(markdown('|a|b|\n|-|-|\n|1|2|3|\n', still)).toMatchObject([{ rows: [[[{ text: '1' }], [{ text: '2|3' }]]] }])
  })

  it('reads in stretches of time', () => {
    let now = 0
    const reader = new Markdown(() => (now += 5))
    reader.append('*a*\n\n'.repeat(100))
    expect(reader.isBehind).toBe(true)
    expect(reader.blocks()[0]).toMatchObject({ kind: 'paragraph', inlines: [{ kind: 'emphasis' }] })
    expect(reader.blocks().length).toBeLessThan(100)
    for (let stretch = 0; reader.isBehind && stretch < 100; stretch++) reader.read()
    expect(reader.blocks()).toHaveLength(100)
    expect(plainsOf(reader.blocks())).toEqual([])
  })

  it('makes so many elements at a stretch', () => {
    const reader = new Markdown(still)
    reader.append('- a\n'.repeat(NODES_MAX))
    const stretches = []
    for (; reader.isBehind; reader.read()) stretches.push(reader.blocks()[0])
    expect(stretches.length).toBeGreaterThan(NODES_MAX / SLICE_NODES - 2)
    const items = stretches.map((list) => (list?.kind === 'list' ? list.items.length : 0))
    items.forEach((count, at) => expect(count - (items[at - 1] ?? 0)).toBeLessThanOrEqual(SLICE_NODES))
  })

  it('gives up on a text that took too long', () => {
    let now = 0
    const reader = new Markdown(() => (now += TIME_MS_MAX + 1))
    reader.append('*a*\n\n*b*\n\n')
    reader.append('*c*\n\n')
    expect(reader.blocks().at(-1)).toEqual({ kind: 'plain', why: 'time', text: '*c*\n\n' })
  })
})

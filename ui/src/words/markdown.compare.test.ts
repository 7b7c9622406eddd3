// Ordinary texts mean here what they mean to another parser of Markdown. Both trees are brought to one plain form.

import MarkdownIt from 'markdown-it'
import { describe, expect, it } from 'vitest'
import { chance } from './chance'
import { markdown } from './markdown'
import type { Block, Inline, Piece } from './tree'

/** A tree as nested lists, with neighbouring texts joined. */
type Shape = string | [string, ...Shape[]]

interface Token {
  type: string
  tag: string
  content: string
  info: string
  children: Token[] | null
  attrGet(name: string): string | null
}

const other = new MarkdownIt({ html: false, linkify: true })
other.linkify.set({ fuzzyLink: false, fuzzyEmail: false })

function theirs(text: string): Shape[] {
  const out: Shape[] = []
  walk(other.parse(text, {}) as unknown as Token[], out, { at: 0 })
  return joined(out)
}

function walk(tokens: Token[], out: Shape[], place: { at: number }): void {
  while (place.at < tokens.length) {
    const token = tokens[place.at++] as Token
    if (token.type.endsWith('_close')) return
    if (token.type.endsWith('_open')) {
      const inside: Shape[] = []
      walk(tokens, inside, place)
      out.push(...wrapped(token, joined(inside)))
    } else out.push(...leaf(token))
  }
}

function wrapped(token: Token, inside: Shape[]): Shape[] {
  const kinds: Record<string, string> = { em: 'emphasis', s: 'strike', blockquote: 'quote' }
  switch (token.tag) {
    case 'p':
      // A paragraph of a tight list has its tags hidden.
      return [['paragraph', ...inside]]
    case 'a':
      return [['link', token.attrGet('href') ?? '', ...inside]]
    case 'ol':
      return [['list', String(token.attrGet('start') ?? 1), ...inside]]
    case 'ul':
      return [['list', '-', ...inside]]
    case 'thead':
    case 'tbody':
      return inside
    default:
      return [[/^h\d$/.test(token.tag) ? 'heading' : (kinds[token.tag] ?? token.tag), ...(/^h\d$/.test(token.tag) ? [token.tag.slice(1)] : []), ...inside]]
  }
}

function leaf(token: Token): Shape[] {
  switch (token.type) {
    case 'inline': {
      const out: Shape[] = []
      walk(token.children ?? [], out, { at: 0 })
      return joined(out)
    }
    case 'fence':
    case 'code_block':
      return [['code', token.info.trim().split(/\s/)[0] ?? '', token.content.replace(/\n$/, '')]]
    case 'code_inline':
      return [['ticks', token.content]]
    case 'hr':
      return [['rule']]
    case 'hardbreak':
      return [['break']]
    case 'softbreak':
      return ['\n']
    case 'image':
      return [['image', token.attrGet('src') ?? '', token.content]]
    default:
      return [token.content]
  }
}

function ours(text: string): Shape[] {
  return markdown(text).map(blockShape)
}

function blockShape(block: Block): Shape {
  switch (block.kind) {
    case 'heading':
      return ['heading', String(block.level), ...spans(block.inlines)]
    case 'paragraph':
      return ['paragraph', ...spans(block.inlines)]
    case 'code':
      return ['code', block.language, block.text]
    case 'quote':
      return ['quote', ...block.blocks.map(blockShape)]
    case 'list':
      return ['list', block.start === null ? '-' : String(block.start), ...block.items.map((item): Shape => ['li', ...item.blocks.map(blockShape)])]
    case 'table': {
      const row = (cells: readonly (readonly Inline[])[], tag: string): Shape => ['tr', ...cells.map((cell): Shape => [tag, ...spans(cell)])]
      return ['table', row(block.head, 'th'), ...block.rows.map((cells) => row(cells, 'td'))]
    }
    case 'rule':
      return ['rule']
    case 'plain':
      return ['plain', block.text]
  }
}

function spans(inlines: readonly Inline[]): Shape[] {
  return joined(inlines.map(spanShape))
}

function spanShape(span: Inline): Shape {
  switch (span.kind) {
    case 'text':
    case 'plain':
      return span.text
    case 'mark':
      return `[${span.label}]`
    case 'break':
      return ['break']
    case 'code':
      return ['ticks', words(span.pieces)]
    case 'link':
      return span.of === 'image' ? ['image', span.link.href, ...spans(span.inlines)] : ['link', span.link.href, ...spans(span.inlines)]
    case 'unlinked':
      return ['unlinked', ...spans(span.inlines)]
    default:
      return [span.kind, ...spans(span.inlines)]
  }
}

function words(pieces: readonly Piece[]): string {
  return pieces.map((piece) => (piece.kind === 'text' ? piece.text : `[${piece.label}]`)).join('')
}

function joined(shapes: Shape[]): Shape[] {
  const out: Shape[] = []
  for (const shape of shapes) {
    const last = out.at(-1)
    if (shape === '') continue
    if (typeof shape === 'string' && typeof last === 'string') out[out.length - 1] = last + shape
    else out.push(shape)
  }
  return out
}

const TEXTS: Record<string, string> = {
  'headings and paragraphs': '# One\n\nTwo\nthree\n\n## Four ##\n\nFive\n====\n\nSix\nseven\n---\n\n####### no\n\n#no\n\n#',
  emphasis: '*a* **b** ***c*** _d_ __e__ a*b*c a_b_c **a *b* c** *a **b** c* **a*b** *a\nb* ** a ** *(*a*)* __a_b__ **a**b **“a”**b',
  'emphasis by threes': '*foo**bar**baz* foo***bar***baz **foo*bar*baz** *foo**bar* ****a**** *a**b***c* ***a** b* ***a* b**',
  strike: '~~gone~~ here a~~b~~c',
  'code spans': '`a` ``b`c`` ` `` ` `a  b` `` ` `` `a\nb` `unclosed *a* \\`x`',
  escapes: '\\*a\\* \\# \\a \\\\ \\[x](y) a\\\nb',
  breaks: 'one  \ntwo\nthree   \nfour',
  entities: '&lt;a&gt; &amp;amp; &quot; &#65; &#x42; &nope; &nbsp;.',
  'raw HTML is text': '<b>bold</b> <script>alert(1)</script>\n\n<div>\n\n*a*\n\n</div>',
  links: '[a](http://x.org/) [*b*](https://y.org/p "t") [c](<http://z.org/a>) ![d](https://i.org/i.png) <https://auto.org/> <me@here.org> [a [b](http://x.org/) c](http://y.org/)',
  'links that are none': '[a] [b][c] [d]( [e](f g) ] [ [](\n',
  'lists of lines': '- a\n- b\n  - c\n  - d\n    - e\n- f\n\n1. a\n2. b\n   more\n3. c\n\n* x\n+ y',
  'lists of paragraphs': '- a\n\n- b\n\n  more\n\n      code\n- c\n\n1) a\n\n   b\n2) c',
  'lists and what follows': '- a\n- b\n\nend\n\n- c\nlazy\n\n    code\n- d\n> q\n\n7. seven\n8. eight',
  'lists that are none': 'a\n2. b\n-\nc\n\n-x\n1.x\n\nb\n- c',
  'items that begin empty': '-\n  a\n- b\n-\n\n  c\n',
  'code in items': '- a\n  ```rust\n  fn main() {}\n    x\n\n  y\n  ```\n- b\n\n      indented\n1.  two\n\n    para',
  quotes: '> a\n> b\nlazy\n\n> # h\n> - x\n> - y\n>\n> z\n\n> a\n\n> b\n>> c\n> d',
  'quotes in lists': '- > a\n  > b\n- > c\n\n  d\n> - e\n>   f\n> - g',
  rules: '---\n\n***\n\n_ _ _\n\na\n***\nb\n\n- - -\n\n--',
  fences: '```js\nlet a = 1\n\n  b\n```\n\n~~~~\n```\n~~~\n~~~~\n\n```a`b\n\n````\nx\n```\n````\n\n  ```\n  a\n b\n  ```',
  'a fence without an end': 'a\n\n```py\nx = 1\n\n',
  'indented code': 'a\n\n    b\n\n\n    c\n  \nd\n    e\n\n\ttab\n\t\ttwo',
  tables: '| a | b |\n|---|:-:|\n| 1 | *2* |\n| 3 |\n\nx | y\n-: | ---\n`p` | q \\| r\nno\n\nend',
  'tables that are none': '| a | b |\n|---|\n\na | b\n- | -\n\n| a |\n| b |',
  'a table below words': 'words\n\n| a |\n| --- |\n| 1 |\n> q',
  tabs: '-\ta\n\n\tb\n- c\n\n>\tq\n\n1.\tx',
  'an answer': [
    'I changed **two** files:\n\n1. `src/a.rs`: the bound is now `32`\n2. `src/b.rs`\n\n```rust\nfn a() -> u32 { 32 }\n```\n',
    'Then ran:\n\n- `cargo test` (ok)\n- `cargo clippy`:\n  - no warnings\n\n> Note: *nothing* else.\n\n| step | ms |\n|---|---:|\n| a | 1 |\n',
  ].join('\n'),
}

describe('compared with markdown-it', () => {
  for (const [name, text] of Object.entries(TEXTS)) {
    it(name, () => expect(ours(text)).toEqual(theirs(text)))
  }
})

// Nothing that is indented by four columns or a tab: there markdown-it lets a quote go on, or end, where CommonMark does not.
const BEGINNINGS = ['', '', '', '  ', '- ', '  - ', '1. ', '2. ', '> ', '> - ', '- > ', '## ', '   ', '* ', '- - ', '>']
const WORDS = ['a', 'b *c* d', '**e**', '`f`', '[g](http://h.org/)', '*i', 'j**', '---', '```', '| k | l |', '|---|---|', '', '', '===', '_m_n', '***o*p**', '\\*q', 'r  ']

/** Lines that are put together by chance, the same in each run. */
function soup(seed: number): string {
  const random = chance(seed)
  const lines = 1 + random(9)
  const pick = (from: readonly string[]): string => from[random(from.length)] ?? ''
  const line = (): string => {
    const first = pick(BEGINNINGS)
    return first + (random(4) === 0 && !first.startsWith(' ') ? pick(BEGINNINGS.filter((each) => !each.startsWith(' '))) : '') + pick(WORDS)
  }
  return Array.from({ length: lines }, () => `${line()}\n`).join('')
}

/** Time for all of them, on a machine that does much else. */
const CHANCE_MS_MAX = 120_000

describe('compared with markdown-it, by chance', () => {
  it('reads 3,000 soups of lines alike', () => {
    for (let seed = 1; seed <= 3_000; seed++) {
      const text = soup(seed)
      const [our, their] = [ours(text), theirs(text)]
      // A difference is looked for quickly, and then told well.
      if (JSON.stringify(our) !== JSON.stringify(their)) expect({ seed, text, tree: our }).toEqual({ seed, text, tree: their })
    }
  }, CHANCE_MS_MAX)
})

// Blocks, line by line: which line belongs to which list, quote, table or fence.
//
// `Blocks` takes whole lines and keeps what is open: a path of containers and one leaf at its end. A line costs what it is long,
// plus the depth of the path. `save` and `restore` let a line that is not over yet be read ahead and taken back. `view` hands out
// the tree; what is closed keeps its identity, so that nobody looks at it twice.
//
// CommonMark with GitHub's tables, tasks and strikes, except that raw HTML and references are text.

import { INLINE_CHARS_MAX, countInlines, inlines, withPlain } from './inlines'
import { Line } from './line'
import { cutAt } from './marks'
import type { Align, Block, Cell, Inline, Item, PlainWhy } from './tree'

/** Quotes and lists within each other. Wider than any screen; the tree is walked by recursion. */
export const DEPTH_MAX = 12
/** Elements and texts of one text, about: a book's chapter. A page with many more of them is slow, whatever they are. */
export const NODES_MAX = 16_000
/** Columns of a table. */
export const COLUMNS_MAX = 64
/** Characters of the word for a fence's language. */
const LANGUAGE_CHARS_MAX = 40

interface Node {
  kind: 'root' | 'quote' | 'list' | 'item' | 'paragraph' | 'heading' | 'code' | 'table' | 'rule' | 'plain'
  children: Node[]
  /** Of paragraphs, headings, code and what is plain. */
  text: string
  /** Of a paragraph: where its last line begins. */
  lastLine: number
  /** Of a heading. */
  level: number
  /** Of a list: its number or bullet, as it decides which items belong to it. */
  marker: string
  start: number | null
  isLoose: boolean
  /** Of an item: the columns that its lines are indented. */
  indent: number
  /** Of code: its fence, or nothing if it is indented. */
  fence: { char: string; length: number; indent: number } | null
  language: string
  /** Everything its fence says. */
  about: string
  isClosed: boolean
  /** Of fenced code: its lines so far. */
  lines: number
  /** Of indented code: empty lines that are part of it if more follows. */
  blanks: string
  /** Of a paragraph: true if it is the first block of an item, where the box of a task is. */
  isFirst: boolean
  why: PlainWhy
  align: Align[]
  head: Cell[]
  rows: Cell[][]
  /** The spans of `text` as far as `spansOf`. */
  spans: Inline[] | null
  spansOf: string
  view: Block | null
  /** Of an item, in place of `view`. */
  item: Item | null
  /** True if the view may not be as the node is any more. It is handed out again if it is. */
  isTouched: boolean
}

const FRESH: Omit<Node, 'kind' | 'children' | 'align' | 'head' | 'rows'> = {
  ...{ text: '', lastLine: 0, level: 0, marker: '', start: null, isLoose: false, indent: 0 },
  ...{ fence: null, language: '', about: '', isClosed: false, lines: 0, blanks: '', isFirst: false },
  ...{ why: 'size', spans: null, spansOf: '', view: null, item: null, isTouched: true },
}

function node(kind: Node['kind'], about: Partial<Node> = {}): Node {
  return { ...FRESH, kind, children: [], align: [], head: [], rows: [], ...about }
}

/** The open path, so that a line can be taken back. */
export interface Saved {
  path: { node: Node; was: Node; children: number; last: Node | undefined; rows: number }[]
  leaf: Node | null
  nodes: number
  isBlank: boolean
}

const RULE = /^(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/
const HEADING = /^(#{1,6})(?:[ \t]+|$)/
const FENCE = /^(`{3,}|~{3,})/
const SETEXT = /^(?:=+|-+)[ \t]*$/
const BULLET = /^[-+*](?=[ \t]|$)/
const NUMBER = /^(\d{1,9})([.)])(?=[ \t]|$)/
const DELIMITER_ROW = /^[-:| \t]+$/
const DELIMITER = /^:?-+:?$/
const TASK = /^\[([ xX])\][ \t\n]/

export class Blocks {
  readonly #root = node('root')
  /** The open containers, the root first. */
  #path: Node[] = [this.#root]
  #leaf: Node | null = null
  #nodes = 0
  /** True if the last line was empty, and of no quote. */
  #isBlank = false
  #isPreview = false

  /** Elements so far, about. */
  get nodes(): number {
    return this.#nodes
  }

  /** Takes a line, without its line break. */
  take(text: string): void {
    this.#touch()
    const line = new Line(text)
    const matched = this.#match(line)
    if (matched === this.#path.length && this.#leaf && this.#goesOn(this.#leaf, line)) return
    this.#isBlank = this.#begin(line, matched)
  }

  /** Takes a line that is still growing; `restore` takes it back. An underline of a heading cannot be told from a list yet. */
  preview(text: string): void {
    this.#isPreview = true
    this.take(text)
    this.#isPreview = false
  }

  /** Takes the end of a line whose beginning was taken: it is too long to be markup. */
  takeMore(text: string): void {
    this.#touch()
    if (this.#leaf?.kind !== 'code' && this.#leaf?.kind !== 'paragraph' && this.#leaf?.kind !== 'plain') {
      this.#closeLeaf()
      this.#open(node('plain', { why: 'size' }))
    }
    if (this.#leaf) this.#leaf.text += text
  }

  /** Ends the blocks and leaves the rest as it is. */
  takePlain(text: string, why: PlainWhy): void {
    this.#touch()
    if (this.#path.length > 1 || this.#leaf?.kind !== 'plain' || this.#leaf.why !== why) {
      this.#closeTo(1)
      this.#open(node('plain', { why }))
    }
    if (this.#leaf) this.#leaf.text += text
  }

  /** Nothing follows. */
  end(): void {
    this.#touch()
    this.#closeTo(1)
  }

  save(): Saved {
    const nodes = this.#leaf ? [...this.#path, this.#leaf] : this.#path
    return {
      path: nodes.map((each) => ({
        ...{ node: each, was: { ...each }, children: each.children.length },
        ...{ last: each.children.at(-1), rows: each.rows.length },
      })),
      ...{ leaf: this.#leaf, nodes: this.#nodes, isBlank: this.#isBlank },
    }
  }

  restore(saved: Saved): void {
    for (const { node: each, was, children, last, rows } of saved.path) {
      Object.assign(each, was)
      each.children.length = children
      if (last) each.children[children - 1] = last
      each.rows.length = rows
    }
    const containers = saved.leaf ? saved.path.slice(0, -1) : saved.path
    this.#path = containers.map(({ node: each }) => each)
    this.#leaf = saved.leaf
    this.#nodes = saved.nodes
    this.#isBlank = saved.isBlank
  }

  /** The tree. What has not been touched since the last time is the same object. */
  view(): Block[] {
    return this.#root.children.map(viewOf)
  }

  get #innermost(): Node {
    return this.#path[this.#path.length - 1] as Node
  }

  /** What is open may change with the next line. */
  #touch(): void {
    for (const each of this.#path) each.isTouched = true
    if (this.#leaf) this.#leaf.isTouched = true
  }

  /** How many of the open containers the line continues; the line is then past their marks. */
  #match(line: Line): number {
    for (let depth = 1; depth < this.#path.length; depth++) {
      const container = this.#path[depth] as Node
      if (container.kind === 'quote') {
        if (line.indent > 3 || line.first !== '>') return depth
        line.skipQuote()
      } else if (container.kind === 'item') {
        if (line.isBlank) {
          // An item that begins with an empty line ends at the second.
          if (container.children.length === 0) return depth
          line.take(container.indent)
        } else if (line.indent >= container.indent) line.take(container.indent)
        else return depth
      }
    }
    return this.#path.length
  }

  /** True if the line is inside of the leaf, whatever it looks like. */
  #goesOn(leaf: Node, line: Line): boolean {
    if (leaf.kind === 'plain' && leaf.why === 'depth') leaf.text += `\n${line.rest()}`
    else if (leaf.kind !== 'code') return false
    else if (!leaf.fence) return this.#goesOnIndented(leaf, line)
    else if (line.indent <= 3 && closesFence(line.words(), leaf.fence)) this.#closeLeaf()
    else {
      line.take(Math.min(line.indent, leaf.fence.indent))
      leaf.text += leaf.lines++ === 0 ? line.rest() : `\n${line.rest()}`
    }
    this.#isBlank = false
    return true
  }

  #goesOnIndented(leaf: Node, line: Line): boolean {
    if (line.isBlank) {
      line.take(4)
      leaf.blanks += `\n${line.rest()}`
      this.#isBlank = true
      return true
    }
    if (line.indent < 4) return false
    line.take(4)
    leaf.text += `${leaf.blanks}\n${line.rest()}`
    leaf.blanks = ''
    this.#isBlank = false
    return true
  }

  /** Opens what the line opens, and puts its words where they belong. True if the line was empty, and of no quote. */
  #begin(line: Line, matched: number): boolean {
    let depth = matched
    const paragraph = this.#leaf?.kind === 'paragraph' ? this.#leaf : null
    // The leaf may go on only where no container was left; in a container that has just begun there is none.
    let mayContinue = depth === this.#path.length
    let isNew = false
    while (!line.isBlank) {
      const open = this.#container(line, depth, mayContinue && paragraph !== null)
      if (open === 'none') break
      mayContinue = false
      isNew = true
      if (open === 'plain') return false
      depth = this.#path.length
    }
    if (line.isBlank) return this.#blank(line, depth, isNew)
    const mayBeLazy = !isNew && paragraph !== null
    if (this.#leafBlock(line, depth, mayContinue ? paragraph : null, mayBeLazy)) return false
    if (mayBeLazy && paragraph) return this.#addTo(paragraph, line)
    this.#closeTo(depth)
    if (mayContinue && this.#leaf?.kind === 'table') this.#addRow(this.#leaf, line)
    else {
      this.#closeLeaf()
      this.#open(node('paragraph', { text: line.words() }))
    }
    return false
  }

  #addTo(paragraph: Node, line: Line): false {
    const text = line.words()
    paragraph.lastLine = paragraph.text.length + 1
    paragraph.text += `\n${text}`
    return false
  }

  #blank(line: Line, depth: number, isNew: boolean): boolean {
    this.#closeTo(depth)
    this.#closeLeaf()
    const container = this.#innermost
    // The line that an empty item begins with separates nothing, nor does one inside a quote.
    return container.kind !== 'quote' && !(container.kind === 'item' && isNew && line.isBlank && container.children.length === 0)
  }

  /** Opens a quote or an item if the line has its mark here. */
  #container(line: Line, depth: number, interrupts: boolean): 'opened' | 'plain' | 'none' {
    if (line.indent > 3) return 'none'
    if (line.first === '>') {
      if (this.#isTooDeep(line, depth)) return 'plain'
      this.#closeTo(depth)
      line.skipQuote()
      this.#open(node('quote'))
      return 'opened'
    }
    const words = line.words()
    const bullet = BULLET.exec(words)
    const number = bullet ? null : NUMBER.exec(words)
    const found = bullet?.[0] ?? number?.[0]
    if (found === undefined || (bullet && RULE.test(words))) return 'none'
    const isEmpty = /^[ \t]*$/.test(words.slice(found.length))
    // A number in a sentence may come to stand at the beginning of a line; and a lone `-` may underline a heading.
    if (interrupts && (isEmpty || (number && Number(number[1]) !== 1))) return 'none'
    if (this.#isTooDeep(line, depth)) return 'plain'
    this.#openItem(line, depth, found, number, isEmpty)
    return 'opened'
  }

  #openItem(line: Line, depth: number, found: string, number: RegExpExecArray | null, isEmpty: boolean): void {
    const before = line.indent
    line.take(before)
    line.skip(found.length)
    const gap = line.indent
    // Code in an item is indented once more; otherwise its words begin where its first word does.
    const taken = isEmpty || gap > 4 ? 1 : gap
    line.take(taken)
    const marker = number ? (number[2] ?? '') : found
    const list = this.#path[depth - 1]
    if (list?.kind === 'list' && list.marker === marker) {
      this.#closeTo(depth)
      if (this.#isBlank) list.isLoose = true
    } else {
      this.#closeTo(list?.kind === 'list' ? depth - 1 : depth)
      this.#open(node('list', { marker, start: number ? Number(number[1]) : null }))
    }
    this.#open(node('item', { indent: before + found.length + taken }))
  }

  /** True if a container more would be too many: the rest is then plain. */
  #isTooDeep(line: Line, depth: number): boolean {
    const levels = this.#path.slice(0, depth).filter(({ kind }) => kind === 'quote' || kind === 'item').length
    if (levels < DEPTH_MAX) return false
    this.#closeTo(depth)
    this.#closeLeaf()
    this.#open(node('plain', { why: 'depth', text: line.rest() }))
    return true
  }

  /** True if the line is a heading, a rule, a fence, indented code, or makes the paragraph above it a heading or a table. */
  #leafBlock(line: Line, depth: number, paragraph: Node | null, mayBeLazy: boolean): boolean {
    if (line.indent > 3) {
      if (mayBeLazy) return false
      this.#closeTo(depth)
      this.#closeLeaf()
      line.take(4)
      this.#open(node('code', { text: line.rest() }))
      return true
    }
    const words = line.words()
    const heading = HEADING.exec(words)
    if (heading) {
      this.#lone(depth, node('heading', { level: (heading[1] ?? '').length, text: headingText(words, heading[0].length) }))
      return true
    }
    if (this.#fence(words, line.indent, depth)) return true
    if (paragraph && SETEXT.test(words)) return !this.#isPreview && this.#underline(paragraph, words)
    if (RULE.test(words)) {
      this.#lone(depth, node('rule'))
      return true
    }
    return paragraph !== null && this.#table(paragraph, words)
  }

  #lone(depth: number, leaf: Node): void {
    this.#closeTo(depth)
    this.#closeLeaf()
    this.#open(leaf)
    this.#closeLeaf()
  }

  #fence(words: string, indent: number, depth: number): boolean {
    const fence = FENCE.exec(words)?.[1]
    if (fence === undefined) return false
    const about = trimmed(words.slice(fence.length))
    const char = fence.charAt(0)
    if (char === '`' && about.includes('`')) return false
    this.#closeTo(depth)
    this.#closeLeaf()
    const language = /^\S*/.exec(about)?.[0].slice(0, LANGUAGE_CHARS_MAX) ?? ''
    this.#open(node('code', { fence: { char, length: fence.length, indent }, language, about }))
    return true
  }

  /** A line of `=` or `-` makes the paragraph above it a heading. */
  #underline(paragraph: Node, words: string): true {
    this.#replaceLeaf(node('heading', { level: words.startsWith('=') ? 1 : 2, text: paragraph.text }))
    this.#closeLeaf()
    return true
  }

  /** A row of dashes makes the paragraph's last line the head of a table. */
  #table(paragraph: Node, words: string): boolean {
    if (!/[|:]/.test(words) || !DELIMITER_ROW.test(words)) return false
    const delimiters = cellsOf(words, COLUMNS_MAX + 1)
    if (!delimiters.every((cell) => DELIMITER.test(cell))) return false
    const align = delimiters.map(alignOf)
    const last = paragraph.text.slice(paragraph.lastLine)
    const head = cellsOf(last, COLUMNS_MAX + 1)
    if (align.length !== head.length || align.length > COLUMNS_MAX) return false
    const table = node('table', { align, head: head.map(inlines) })
    if (paragraph.lastLine === 0) this.#replaceLeaf(table)
    else {
      paragraph.text = paragraph.text.slice(0, paragraph.lastLine - 1)
      this.#closeLeaf()
      this.#open(table)
    }
    return true
  }

  #addRow(table: Node, line: Line): void {
    const cells = cellsOf(line.words(), table.align.length)
    const row = table.align.map((_, column) => inlines(cells[column] ?? ''))
    table.rows.push(row)
    for (const cell of row) this.#nodes += 1 + countInlines(cell)
  }

  #replaceLeaf(leaf: Node): void {
    const parent = this.#innermost
    parent.children.pop()
    this.#leaf = null
    this.#isBlank = false
    this.#open(leaf)
  }

  /** Puts a block at the end of the innermost container; a container becomes the innermost. */
  #open(block: Node): void {
    this.#closeLeaf()
    // A list takes items only: whatever else comes is after it.
    if (this.#innermost.kind === 'list' && block.kind !== 'item') this.#path.pop()
    const parent = this.#innermost
    block.isFirst = parent.kind === 'item' && parent.children.length === 0
    if (parent.kind === 'item' && parent.children.length > 0 && this.#isBlank) {
      const list = this.#path[this.#path.length - 2]
      if (list) list.isLoose = true
    }
    parent.children.push(block)
    this.#nodes++
    if (block.kind === 'quote' || block.kind === 'list' || block.kind === 'item') this.#path.push(block)
    else this.#leaf = block
    this.#isBlank = false
  }

  #closeTo(depth: number): void {
    if (depth >= this.#path.length) return
    this.#closeLeaf()
    this.#path.length = depth
  }

  #closeLeaf(): void {
    const leaf = this.#leaf
    if (!leaf) return
    this.#leaf = null
    leaf.isClosed = true
    leaf.isTouched = true
    // What is only looked at ahead is counted when it is read in earnest.
    if (!this.#isPreview) this.#nodes += costOf(leaf)
  }
}

function closesFence(words: string, fence: { char: string; length: number }): boolean {
  let end = 0
  while (words.charAt(end) === fence.char) end++
  return end >= fence.length && /^[ \t]*$/.test(words.slice(end))
}

/** A heading's words, without the `#` that may close it. */
function headingText(words: string, from: number): string {
  const text = trimmed(words.slice(from))
  let end = text.length
  while (end > 0 && text.charAt(end - 1) === '#') end--
  return end === 0 || ' \t'.includes(text.charAt(end - 1)) ? trimmed(text.slice(0, end)) : text
}

/** Without spaces and tabs at its ends. Other white space may be a hidden character, which is shown. */
function trimmed(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && ' \t'.includes(text.charAt(from))) from++
  while (to > from && ' \t'.includes(text.charAt(to - 1))) to--
  return text.slice(from, to)
}

/** The cells of a row. What is beyond the last column stays in it: nothing that was said is left out. */
function cellsOf(row: string, columnsMax: number): string[] {
  const text = trimmed(row)
  const cells: string[] = []
  let from = text.startsWith('|') ? 1 : 0
  for (let at = from; at < text.length && cells.length < columnsMax - 1; at++) {
    if (text.charAt(at) === '\\') at++
    else if (text.charAt(at) === '|') {
      cells.push(cellText(text.slice(from, at)))
      from = at + 1
    }
  }
  const last = text.slice(from)
  const isClosed = last.endsWith('|') && !last.endsWith('\\|')
  if (from < text.length) cells.push(cellText(isClosed ? last.slice(0, -1) : last))
  return cells
}

function cellText(text: string): string {
  return trimmed(text).replaceAll('\\|', '|')
}

function alignOf(delimiter: string): Align {
  const isStart = delimiter.startsWith(':')
  const isEnd = delimiter.endsWith(':')
  return isStart && isEnd ? 'center' : isStart ? 'start' : isEnd ? 'end' : null
}

/** Elements that a leaf becomes, about. */
function costOf(leaf: Node): number {
  if (leaf.kind === 'paragraph' || leaf.kind === 'heading') return countInlines(spansOf(leaf))
  if (leaf.kind === 'table') return leaf.head.reduce((sum, cell) => sum + 1 + countInlines(cell), 0)
  return 0
}

/** The spans of a leaf's words. The beginning of a long paragraph is not parsed again when its end grows. */
function spansOf(leaf: Node): Inline[] {
  const box = leaf.isFirst && leaf.kind === 'paragraph' ? TASK.exec(leaf.text) : null
  const text = trimmed(box ? leaf.text.slice(box[0].length) : leaf.text)
  const cut = cutAt(text, INLINE_CHARS_MAX)
  const head = text.slice(0, cut)
  if (!leaf.spans || leaf.spansOf !== head) {
    leaf.spans = inlines(head)
    leaf.spansOf = head
  }
  return cut < text.length ? withPlain(leaf.spans, text.slice(cut)) : leaf.spans
}

function viewOf(each: Node): Block {
  if (each.isTouched || !each.view) {
    const view = makeView(each)
    if (!each.view || !isSame(each.view, view)) each.view = view
    each.isTouched = false
  }
  return each.view
}

/** True if two views are made of the same objects. */
function isSame(one: Block | Item, other: Block | Item): boolean {
  const fields = Object.entries(one) as [keyof typeof other, unknown][]
  return fields.every(([name, value]) => isSameField(value, other[name]))
}

function isSameField(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other
  return one === other || (one.length === other.length && one.every((each, at) => each === other[at]))
}

function makeView(each: Node): Block {
  switch (each.kind) {
    case 'heading':
      return { kind: 'heading', level: each.level, inlines: spansOf(each) }
    case 'code':
      return { kind: 'code', language: each.language, about: each.about, text: each.text, closed: each.isClosed }
    case 'quote':
      return { kind: 'quote', blocks: each.children.map(viewOf) }
    case 'list':
      return { kind: 'list', start: each.start, tight: !each.isLoose, items: each.children.map(itemOf) }
    case 'table':
      return { kind: 'table', align: [...each.align], head: [...each.head], rows: [...each.rows] }
    case 'rule':
      return { kind: 'rule' }
    case 'plain':
      return { kind: 'plain', why: each.why, text: each.text }
    default:
      return { kind: 'paragraph', inlines: spansOf(each) }
  }
}

function itemOf(each: Node): Item {
  if (each.isTouched || !each.item) {
    const first = each.children[0]
    const box = first?.kind === 'paragraph' ? TASK.exec(first.text) : null
    const item = { task: box ? box[1] !== ' ' : null, blocks: each.children.map(viewOf) }
    if (!each.item || !isSame(each.item, item)) each.item = item
    each.isTouched = false
  }
  return each.item
}

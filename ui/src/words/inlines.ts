// The inside of a paragraph, a heading or a cell: from text to spans.
//
// Three passes, each linear. `Reader` cuts the text into tokens; emphasis and links are found as pairs of places among them (the
// algorithm of CommonMark's appendix, without its lists of nodes); `Builder` makes the tree in one go, and gives up on what is
// too deep or too much. Raw HTML is text. A reference (`[words][name]`) is text, because what it means could come later
// and would change what has been read.

import { ADDRESS_CHARS_MAX, link, shownBeside } from './links'
import { MARKS_MAX, countMarks, cutAt, pieces, visible, type MarksLeft } from './marks'
import type { Inline, Link, Piece } from './tree'

/** Characters of one paragraph that are parsed. It is parsed again whenever it grows, and so many take about a millisecond. */
export const INLINE_CHARS_MAX = 8_192
/** Spans within spans. People stop reading at three; the tree is walked by recursion. */
export const INLINE_DEPTH_MAX = 12
/** Spans of one paragraph. Each becomes an element or two. */
export const INLINES_MAX = 1_000
/** Characters of a link's title. */
export const TITLE_CHARS_MAX = 500
/** Parentheses within parentheses of an address, as in CommonMark. */
const ADDRESS_PARENTHESES_MAX = 32

/** The spans of a text. */
export function inlines(text: string): Inline[] {
  const cut = cutAt(text, INLINE_CHARS_MAX)
  const head = text.slice(0, cut)
  const out = new Builder(head, new Reader(head).read()).build()
  return cut < text.length ? withPlain(out, text.slice(cut)) : out
}

/** The same spans with more plain text at their end, where the text had been cut. */
export function withPlain(spans: readonly Inline[], rest: string): Inline[] {
  return [...spans, { kind: 'plain', why: 'size', text: rest }]
}

/** Elements that the spans become, about. */
export function countInlines(spans: readonly Inline[]): number {
  let count = spans.length
  for (const span of spans) {
    if ('inlines' in span) count += countInlines(span.inlines)
    else if (span.kind === 'code') count += span.pieces.length
  }
  return count
}

/** What the reader of the spans sees, as one string. Marks are left out. */
export function wordsOf(spans: readonly Inline[]): string {
  let out = ''
  for (const span of spans) {
    if (span.kind === 'text' || span.kind === 'plain') out += span.text
    else if (span.kind === 'break') out += '\n'
    else if (span.kind === 'code') out += piecesText(span.pieces)
    else if (span.kind !== 'mark') out += wordsOf(span.inlines)
  }
  return out
}

function piecesText(list: readonly Piece[]): string {
  return list.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('')
}

/** Two places of which one opens what the other closes. */
interface Pair {
  kind: 'emphasis' | 'strong' | 'strike' | 'link' | 'image'
  /** The markup itself, for where the pair turns out to be too deep. */
  open: string
  close: string
  address: string
  title: string
}

/** A run of `*`, `_` or `~`, which may open and close pairs from its middle outwards. */
class Delimiters {
  readonly kind = 'run'
  readonly at: number
  readonly char: string
  /** How many there were. */
  readonly length: number
  readonly canOpen: boolean
  readonly canClose: boolean
  /** How many are not used yet. */
  count: number
  closes: Pair[] = []
  opens: Pair[] = []
  /** Its neighbours among the runs that may still be used. */
  before: Delimiters | null
  after: Delimiters | null = null

  constructor(at: number, char: string, length: number, flanks: Flanks, before: Delimiters | null) {
    this.at = at
    this.char = char
    this.length = this.count = length
    this.canOpen = flanks.canOpen
    this.canClose = flanks.canClose
    this.before = before
  }
}

interface Flanks {
  canOpen: boolean
  canClose: boolean
}

type Token =
  | { kind: 'text'; at: number; text: string }
  | { kind: 'span'; at: number; span: Inline }
  | { kind: 'address'; at: number; text: string; link: Link }
  | { kind: 'open'; at: number; text: string; pair: Pair | null }
  | { kind: 'close'; at: number; text: string; pair: Pair | null }
  | Delimiters

/** A `[` or `![` that waits for its `]`. */
interface Bracket {
  token: Extract<Token, { kind: 'open' }>
  isImage: boolean
  /** The last run before it. */
  below: Delimiters | null
}

const STOPS = /[\\`*_~[\]<&\n]|!\[|https?:\/\//gi
const ESCAPED = /[!-/:-@[-`{-~]/
const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos|nbsp|copy|hellip|mdash|ndash|larr|rarr|times));/y
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  larr: '←',
  rarr: '→',
  times: '×',
}
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2048})>/iy
const AUTOMAIL = /<([\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-z0-9.-]{1,255})>/iy
// A bare address ends before whatever is more likely the sentence's: brackets, quotes of code, East Asian punctuation.
const BARE = /https?:\/\/[^\s<>[\]`|"\p{Cc}\p{Cf}\u3000-\u303f\uff00-\uffef]{1,2048}/iuy
const BARE_END_NEVER = '?!.,:*_~\'";'

class Reader {
  readonly #text: string
  readonly #tokens: Token[] = []
  readonly #brackets: Bracket[] = []
  /** Brackets below this one are within reach of no link any more: links hold no links. */
  #linkFloor = 0
  #last: Delimiters | null = null
  #ticks: Map<number, number[]> | null = null
  #words = ''
  #wordsAt = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): Token[] {
    const stops = new RegExp(STOPS)
    let at = 0
    while (at < this.#text.length) {
      stops.lastIndex = at
      const stop = stops.exec(this.#text)
      if (!stop) break
      this.#say(this.#text.slice(at, stop.index), at)
      at = this.#stop(stop.index, stop[0])
    }
    this.#say(this.#text.slice(at), at)
    this.#flush()
    this.#pairRuns(null)
    return this.#tokens
  }

  /** Reads what begins here and gives back where it is over. */
  #stop(at: number, stop: string): number {
    switch (stop) {
      case '\\':
        return this.#escape(at)
      case '`':
        return this.#code(at)
      case '*':
      case '_':
      case '~':
        return this.#run(at, stop)
      case '[':
      case '![':
        return this.#open(at, stop)
      case ']':
        return this.#close(at)
      case '<':
        return this.#angle(at)
      case '&':
        return this.#entity(at)
      case '\n':
        return this.#newline(at)
      default:
        return this.#bare(at, stop)
    }
  }

  #say(text: string, at: number): void {
    if (this.#words === '') this.#wordsAt = at
    this.#words += text
  }

  #flush(): void {
    if (this.#words !== '') this.#tokens.push({ kind: 'text', at: this.#wordsAt, text: this.#words })
    this.#words = ''
  }

  #push(token: Token): void {
    this.#flush()
    this.#tokens.push(token)
  }

  #literal(at: number, text: string): number {
    this.#say(text, at)
    return at + text.length
  }

  #escape(at: number): number {
    const next = this.#text.charAt(at + 1)
    if (next === '\n') {
      this.#push({ kind: 'span', at, span: { kind: 'break' } })
      return at + 2
    }
    if (!ESCAPED.test(next)) return this.#literal(at, '\\')
    this.#say(next, at)
    return at + 2
  }

  #newline(at: number): number {
    let end = this.#words.length
    while (end > 0 && this.#words.charAt(end - 1) === ' ') end--
    const spaces = this.#words.length - end
    this.#words = this.#words.slice(0, end)
    if (spaces < 2) return this.#literal(at, '\n')
    this.#push({ kind: 'span', at, span: { kind: 'break' } })
    return at + 1
  }

  #code(at: number): number {
    const length = runLength(this.#text, at, '`')
    this.#ticks ??= tickRuns(this.#text)
    const end = firstAtOrAfter(this.#ticks.get(length) ?? [], at + length)
    if (end === undefined) return this.#literal(at, '`'.repeat(length))
    let inside = this.#text.slice(at + length, end).replaceAll('\n', ' ')
    if (inside.length > 2 && inside.startsWith(' ') && inside.endsWith(' ') && inside.trim() !== '') inside = inside.slice(1, -1)
    this.#push({ kind: 'span', at, span: { kind: 'code', pieces: pieces(inside) } })
    return end + length
  }

  #run(at: number, char: string): number {
    const count = runLength(this.#text, at, char)
    const sides = flanks(this.#text, at, count, char)
    // One tilde is an approximation more often than markup.
    if ((char === '~' && count !== 2) || (!sides.canOpen && !sides.canClose)) return this.#literal(at, char.repeat(count))
    const run = new Delimiters(at, char, count, sides, this.#last)
    if (this.#last) this.#last.after = run
    this.#last = run
    this.#push(run)
    return at + count
  }

  #open(at: number, text: string): number {
    const token = { kind: 'open' as const, at, text, pair: null }
    this.#push(token)
    this.#brackets.push({ token, isImage: text === '![', below: this.#last })
    return at + text.length
  }

  #close(at: number): number {
    const bracket = this.#brackets.pop()
    if (!bracket) return this.#literal(at, ']')
    const isDead = !bracket.isImage && this.#brackets.length < this.#linkFloor
    const tail = isDead ? null : linkTail(this.#text, at + 1)
    this.#linkFloor = Math.min(this.#linkFloor, this.#brackets.length)
    if (!tail) return this.#literal(at, ']')
    const close = this.#text.slice(at, tail.end)
    const kind = bracket.isImage ? 'image' : 'link'
    const pair: Pair = { kind, open: bracket.token.text, close, address: tail.address, title: tail.title }
    bracket.token.pair = pair
    this.#push({ kind: 'close', at, text: close, pair })
    this.#pairRuns(bracket.below)
    if (!bracket.isImage) this.#linkFloor = this.#brackets.length
    return tail.end
  }

  #angle(at: number): number {
    const web = matchAt(AUTOLINK, this.#text, at)
    const mail = web ? null : matchAt(AUTOMAIL, this.#text, at)
    const inside = (web ?? mail)?.[1]
    const to = inside === undefined ? null : link(mail ? `mailto:${inside}` : inside)
    if (inside === undefined || !to) return this.#literal(at, '<')
    this.#push({ kind: 'address', at, text: inside, link: to })
    return at + inside.length + 2
  }

  #bare(at: number, stop: string): number {
    const found = /[\p{L}\p{N}_]/u.test(this.#text.charAt(at - 1)) ? null : matchAt(BARE, this.#text, at)
    const text = found ? withoutSentence(found[0]) : ''
    const to = text.length > stop.length ? link(text) : null
    if (!to) return this.#literal(at, this.#text.slice(at, at + stop.length))
    this.#push({ kind: 'address', at, text, link: to })
    return at + text.length
  }

  #entity(at: number): number {
    const found = matchAt(ENTITY, this.#text, at)
    if (!found) return this.#literal(at, '&')
    const [whole, decimal, hex, name] = found
    const code = decimal ? Number.parseInt(decimal, 10) : Number.parseInt(hex ?? '', 16)
    const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
    this.#say(name ? (ENTITIES[name] ?? whole) : isCharacter ? String.fromCodePoint(code) : '\ufffd', at)
    return at + whole.length
  }

  /** Finds the pairs among the runs above `below`, which are then used up. */
  #pairRuns(below: Delimiters | null): void {
    // Where a search for an opener ended in vain, the next one of the same kind need not look again.
    const floors = new Map<string, number>()
    let closer = below ? below.after : firstOf(this.#last)
    while (closer) {
      if (!closer.canClose || closer.count === 0) {
        closer = closer.after
        continue
      }
      const kind = `${closer.char}${closer.canOpen}${closer.length % 3}`
      const floor = floors.get(kind) ?? below?.at ?? -1
      const opener = openerFor(closer, floor)
      if (opener) {
        for (let between = closer.before; between && between !== opener; between = between.before) this.#drop(between)
        pairUp(opener, closer)
        if (opener.count === 0) this.#drop(opener)
        if (closer.count > 0) continue
      } else {
        floors.set(kind, closer.before?.at ?? -1)
      }
      const next: Delimiters | null = closer.after
      if (closer.count === 0 || (!opener && !closer.canOpen)) this.#drop(closer)
      closer = next
    }
    this.#last = below
    if (below) below.after = null
  }

  #drop(run: Delimiters): void {
    if (run.before) run.before.after = run.after
    if (run.after) run.after.before = run.before
    if (this.#last === run) this.#last = run.before
  }
}

function firstOf(last: Delimiters | null): Delimiters | null {
  let first = last
  while (first?.before) first = first.before
  return first
}

function openerFor(closer: Delimiters, floor: number): Delimiters | null {
  for (let opener = closer.before; opener && opener.at > floor; opener = opener.before) {
    if (opener.char === closer.char && opener.canOpen && opener.count > 0 && mayPair(opener, closer)) return opener
  }
  return null
}

/** CommonMark's rule of three, which keeps `**a*b**` from pairing a half. */
function mayPair(opener: Delimiters, closer: Delimiters): boolean {
  if (closer.char === '~') return opener.count === closer.count
  const isBoth = opener.canClose || closer.canOpen
  const isThree = (opener.length + closer.length) % 3 === 0 && !(opener.length % 3 === 0 && closer.length % 3 === 0)
  return !(isBoth && isThree)
}

function pairUp(opener: Delimiters, closer: Delimiters): void {
  const used = opener.count >= 2 && closer.count >= 2 ? 2 : 1
  const markup = closer.char.repeat(used)
  const kind = closer.char === '~' ? 'strike' : used === 2 ? 'strong' : 'emphasis'
  const pair: Pair = { kind, open: markup, close: markup, address: '', title: '' }
  opener.opens.push(pair)
  closer.closes.push(pair)
  opener.count -= used
  closer.count -= used
}

function runLength(text: string, at: number, char: string): number {
  let end = at
  while (text.charAt(end) === char) end++
  return end - at
}

/** Where runs of backticks of each length begin. */
function tickRuns(text: string): Map<number, number[]> {
  const runs = new Map<number, number[]>()
  for (const found of text.matchAll(/`+/g)) {
    const places = runs.get(found[0].length)
    if (places) places.push(found.index)
    else runs.set(found[0].length, [found.index])
  }
  return runs
}

function firstAtOrAfter(places: number[], at: number): number | undefined {
  let low = 0
  let high = places.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((places[middle] ?? 0) < at) low = middle + 1
    else high = middle
  }
  return places[low]
}

function flanks(text: string, at: number, count: number, char: string): Flanks {
  const before = kindOf(at === 0 ? '' : lastCharacter(text, at))
  const after = kindOf(String.fromCodePoint(text.codePointAt(at + count) ?? 0x0a))
  const isLeft = after !== 'space' && (after !== 'punctuation' || before !== 'letter')
  const isRight = before !== 'space' && (before !== 'punctuation' || after !== 'letter')
  if (char !== '_') return { canOpen: isLeft, canClose: isRight }
  return {
    canOpen: isLeft && (!isRight || before === 'punctuation'),
    canClose: isRight && (!isLeft || after === 'punctuation'),
  }
}

function lastCharacter(text: string, end: number): string {
  const low = text.charCodeAt(end - 1)
  return low >= 0xdc00 && low <= 0xdfff ? text.slice(Math.max(0, end - 2), end) : text.charAt(end - 1)
}

const SPACE = /^\s/
const PUNCTUATION = /^[\p{P}\p{S}]/u

function kindOf(character: string): 'space' | 'punctuation' | 'letter' {
  if (character === '' || SPACE.test(character)) return 'space'
  return PUNCTUATION.test(character) ? 'punctuation' : 'letter'
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

/** A bare address without the sentence's own punctuation at its end. */
function withoutSentence(found: string): string {
  let end = found.length
  let open = 0
  for (const char of found) open += char === '(' ? 1 : char === ')' ? -1 : 0
  for (; end > 0; end--) {
    const last = found.charAt(end - 1)
    if (last === ')' && open < 0) open++
    else if (!BARE_END_NEVER.includes(last)) break
  }
  return found.slice(0, end)
}

/** What follows the `]` of a link: `(address "title")`. */
function linkTail(text: string, from: number): { address: string; title: string; end: number } | null {
  if (text.charAt(from) !== '(') return null
  const place = addressAt(text, afterSpace(text, from + 1))
  if (!place) return null
  let end = afterSpace(text, place.end)
  let title = ''
  if (end > place.end && `"'(`.includes(text.charAt(end))) {
    const found = titleAt(text, end)
    if (!found) return null
    title = found.title
    end = afterSpace(text, found.end)
  }
  return text.charAt(end) === ')' ? { address: place.address, title, end: end + 1 } : null
}

/** At most as many spaces as a title may have: more is no link. */
function afterSpace(text: string, from: number): number {
  let at = from
  while (at - from < TITLE_CHARS_MAX && ' \n\t'.includes(text.charAt(at)) && at < text.length) at++
  return at
}

function addressAt(text: string, from: number): { address: string; end: number } | null {
  const isAngled = text.charAt(from) === '<'
  const last = Math.min(text.length, from + ADDRESS_CHARS_MAX)
  let address = ''
  let open = 0
  for (let at = isAngled ? from + 1 : from; at < last; at++) {
    const char = text.charAt(at)
    if (char === '\\' && ESCAPED.test(text.charAt(at + 1))) {
      address += text.charAt(++at)
      continue
    }
    if (isAngled) {
      if (char === '>') return { address, end: at + 1 }
      if (char === '<' || char === '\n') return null
    } else {
      if (char === '(') open++
      if (open > ADDRESS_PARENTHESES_MAX) return null
      if (char === ')' && open-- === 0) return { address, end: at }
      if (char <= ' ' || char === '\x7f') return open === 0 ? { address, end: at } : null
    }
    address += char
  }
  return null
}

function titleAt(text: string, from: number): { title: string; end: number } | null {
  const end = text.charAt(from) === '(' ? ')' : text.charAt(from)
  const last = Math.min(text.length, from + TITLE_CHARS_MAX)
  let title = ''
  for (let at = from + 1; at < last; at++) {
    const char = text.charAt(at)
    if (char === end) return { title, end: at + 1 }
    if (char === '\\' && ESCAPED.test(text.charAt(at + 1))) title += text.charAt(++at)
    else title += char
  }
  return null
}

/** A pair that has been opened, and what is inside it so far. */
interface Frame {
  pair: Pair | null
  spans: Inline[]
  /** Text at its end that is not a span yet. */
  words: string
}

class Builder {
  readonly #source: string
  readonly #tokens: Token[]
  readonly #frames: Frame[] = [{ pair: null, spans: [], words: '' }]
  /** Pairs that were left as text because they were too deep. */
  readonly #literal = new Set<Pair>()
  readonly #marks: MarksLeft = { left: MARKS_MAX }
  #count = 0
  #links = 0

  constructor(source: string, tokens: Token[]) {
    this.#source = source
    this.#tokens = tokens
  }

  build(): Inline[] {
    for (const token of this.#tokens) {
      if (this.#count >= INLINES_MAX) {
        while (this.#frames.length > 1) this.#leave()
        this.#top.spans.push(...this.#flushed(), { kind: 'plain', why: 'nodes', text: this.#source.slice(token.at) })
        return this.#top.spans
      }
      this.#take(token)
    }
    this.#flush()
    return this.#top.spans
  }

  get #top(): Frame {
    return this.#frames[this.#frames.length - 1] as Frame
  }

  #take(token: Token): void {
    switch (token.kind) {
      case 'text':
        this.#top.words += token.text
        break
      case 'span':
        this.#add(token.span)
        break
      case 'address':
        if (this.#links > 0) this.#top.words += token.text
        else this.#add(this.#link('words', token.link, '', pieces(token.text, this.#marks), token.text))
        break
      case 'open':
        if (token.pair) this.#enter(token.pair)
        else this.#top.words += token.text
        break
      case 'close':
        if (token.pair) this.#exit(token.pair)
        break
      case 'run':
        for (const pair of token.closes) this.#exit(pair)
        this.#top.words += token.char.repeat(token.count)
        // The one that was paired last is the outermost.
        for (const pair of token.opens.toReversed()) this.#enter(pair)
    }
  }

  #add(span: Inline): void {
    this.#flush()
    this.#top.spans.push(span)
    this.#count++
  }

  #flush(): void {
    this.#top.spans.push(...this.#flushed())
  }

  #flushed(): Piece[] {
    const words = this.#top.words
    this.#top.words = ''
    const made = pieces(words, this.#marks)
    this.#count += made.length
    return made
  }

  #enter(pair: Pair): void {
    if (this.#frames.length > INLINE_DEPTH_MAX) {
      this.#literal.add(pair)
      this.#top.words += pair.open
      return
    }
    this.#flush()
    if (pair.kind === 'link') this.#links++
    this.#frames.push({ pair, spans: [], words: '' })
  }

  #exit(pair: Pair): void {
    if (this.#literal.has(pair)) this.#top.words += pair.close
    else this.#leave()
  }

  #leave(): void {
    this.#flush()
    const { pair, spans } = this.#frames.pop() as Frame
    if (!pair) return
    if (pair.kind === 'link' || pair.kind === 'image') this.#add(this.#linkOf(pair, spans))
    else this.#add({ kind: pair.kind, inlines: spans })
    if (pair.kind === 'link') this.#links--
  }

  #linkOf(pair: Pair, spans: Inline[]): Inline {
    const of = pair.kind === 'image' ? 'image' : 'words'
    const to = link(pair.address)
    // An image's address may be anywhere within a link; there, its words stand for it.
    if (to && !(of === 'image' && this.#links > 0)) return this.#link(of, to, pair.title, spans, wordsOf(spans))
    return { kind: 'unlinked', of, inlines: spans, address: pieces(pair.address, this.#marks) }
  }

  #link(of: 'words' | 'image', to: Link, title: string, spans: Inline[], said: string): Inline {
    // Marks in the text are something that it does not say.
    const shows = countMarks(said) > 0 || spans.some((span) => span.kind === 'mark') ? to.leads : shownBeside(to, said)
    return { kind: 'link', of, link: to, title: visible(title), shows, inlines: spans }
  }
}

// Characters that a reader cannot see become marks that can be read, and a terminal's escape sequences are taken out.
//
// Read `withoutAnsi`, then `pieces`, then `line`. Text is given in any state, half a surrogate pair included. Nothing here
// reads markup; a mark is data, and whoever shows it makes a text node of its label.

import type { Piece } from './tree'

/** Marks in one text. Each becomes an element; after so many, hidden characters become U+FFFD in the text around them. */
export const MARKS_MAX = 200
/** Combining characters upon one letter. No script needs as many; more of them are written across the lines above and below. */
export const COMBINING_MAX = 8
/** Kinds of hidden characters that the label of one mark lists. A run of them is one mark, however long. */
export const MARK_KINDS_MAX = 6
/** Characters of the message that a run of tag characters spells, as far as its mark quotes it. */
export const TAGS_CHARS_MAX = 80
/** Characters of a text that is shown on one line: a title, a file's name, a branch. */
export const LINE_CHARS_MAX = 500
/** Characters of an escape sequence that carries a text, up to its end. A longer one is no sequence: its text is shown. */
export const ANSI_CHARS_MAX = 4_096

/** How many marks may still be made. Shared by the texts that are shown together. */
export interface MarksLeft {
  left: number
}

const ESCAPES = /[\x1b\x90\x98\x9b\x9d-\x9f]/g
const ONLY_PLAIN = /^[\t\n\x20-\x7e]*$/
/** Whatever has no width, turns the direction of what follows, or is a control character; and combining ones, if they pile up. */
const HIDDEN = new RegExp(
  `(?![\\t\\n])[\\p{Cc}\\p{Cs}\\p{Default_Ignorable_Code_Point}\\u2028\\u2029\\ufff9-\\ufffb]|\\p{M}(?<=\\p{M}{${COMBINING_MAX + 1}})`,
  'gu',
)
const HIDDEN_RUNS = new RegExp(`(?:${HIDDEN.source})+`, 'gu')

/** The text as a terminal would keep it: no colours, no links, no titles. A sequence without an end stays, with its ESC. */
export function withoutAnsi(text: string): string {
  return split(text).shown
}

/** Splits off a sequence that has begun and may end in what is still to come. `later` belongs before that. */
export function splitOpenAnsi(text: string): { shown: string; later: string } {
  const { shown, open } = split(text)
  return open < 0 ? { shown, later: '' } : { shown: shown.slice(0, shown.length - (text.length - open)), later: text.slice(open) }
}

function split(text: string): { shown: string; open: number } {
  let shown = ''
  let kept = 0
  let open = -1
  ESCAPES.lastIndex = 0
  for (let found = ESCAPES.exec(text); found; found = ESCAPES.exec(text)) {
    const end = sequenceEnd(text, found.index)
    if (end === 'none') continue
    if (end === 'open') {
      open = found.index
      break
    }
    shown += text.slice(kept, found.index)
    kept = end
    ESCAPES.lastIndex = end
  }
  return { shown: kept === 0 ? text : shown + text.slice(kept), open }
}

/** Where the sequence that begins here is over; `open` if the text ends first, `none` if this is no sequence. */
function sequenceEnd(text: string, at: number): number | 'open' | 'none' {
  const first = text.charCodeAt(at)
  if (first !== 0x1b) return first === 0x9b ? controlEnd(text, at + 1) : stringEnd(text, at + 1)
  if (at + 1 >= text.length) return 'open'
  const second = text.charCodeAt(at + 1)
  if (second === 0x5b) return controlEnd(text, at + 2)
  if ('PX]^_'.includes(text.charAt(at + 1))) return stringEnd(text, at + 2)
  // Character sets and other short ones: bytes between, then one that ends it.
  return endAfter(text, at + 1, 0x20, 0x2f, 0x30, 0x7e)
}

/** CSI: parameters, bytes between, and the letter that says what it does. */
function controlEnd(text: string, from: number): number | 'open' | 'none' {
  let at = from
  while (within(text.charCodeAt(at), 0x30, 0x3f) && at - from < ANSI_CHARS_MAX) at++
  return endAfter(text, at, 0x20, 0x2f, 0x40, 0x7e)
}

function endAfter(text: string, from: number, low: number, high: number, lowEnd: number, highEnd: number) {
  let at = from
  while (within(text.charCodeAt(at), low, high) && at - from < ANSI_CHARS_MAX) at++
  if (at >= text.length) return 'open'
  return within(text.charCodeAt(at), lowEnd, highEnd) ? at + 1 : 'none'
}

/** OSC, DCS, APC, PM, SOS: a text up to BEL or ST. */
function stringEnd(text: string, from: number): number | 'open' | 'none' {
  const last = Math.min(text.length, from + ANSI_CHARS_MAX)
  for (let at = from; at < last; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x07 || code === 0x9c) return at + 1
    // Another one begins, so this one never ends: nothing is read twice.
    if (code === 0x90 || code === 0x98 || code === 0x9b || within(code, 0x9d, 0x9f)) return 'none'
    if (code !== 0x1b) continue
    if (at + 1 >= text.length) return 'open'
    return text.charCodeAt(at + 1) === 0x5c ? at + 2 : 'none'
  }
  return last === text.length ? 'open' : 'none'
}

function within(code: number, low: number, high: number): boolean {
  return code >= low && code <= high
}

/** The text as runs that can be shown as they are, and marks for what cannot be seen. */
export function pieces(text: string, marks: MarksLeft = { left: MARKS_MAX }): Piece[] {
  if (text === '') return []
  if (ONLY_PLAIN.test(text)) return [{ kind: 'text', text }]
  const out: Piece[] = []
  let kept = 0
  const flush = (to: number) => {
    if (to > kept) out.push({ kind: 'text', text: text.slice(kept, to).replaceAll('\r\n', '\n') })
  }
  for (const run of hiddenRuns(text)) {
    if (marks.left-- <= 0) {
      marks.left = 0
      out.push({ kind: 'text', text: text.slice(kept).replaceAll('\r\n', '\n').replace(HIDDEN_RUNS, '\ufffd') })
      return out
    }
    flush(run.from)
    out.push(mark(run.codes))
    kept = run.to
  }
  flush(text.length)
  return out
}

/** How many marks the text would get. */
export function countMarks(text: string): number {
  if (ONLY_PLAIN.test(text)) return 0
  let count = 0
  for (const _ of hiddenRuns(text)) count++
  return count
}

/** The text without anything that cannot be seen: what is copied is what was read. */
export function visible(text: string): string {
  if (ONLY_PLAIN.test(text)) return text
  let out = ''
  let kept = 0
  for (const run of hiddenRuns(text)) {
    out += text.slice(kept, run.from)
    kept = run.to
  }
  return (out + text.slice(kept)).replaceAll('\r\n', '\n')
}

/** A text for one line: without escape sequences, its line breaks as marks, and cut. */
export function line(text: string, charsMax: number = LINE_CHARS_MAX): Piece[] {
  const whole = withoutAnsi(text.length > charsMax * 8 ? wholeCharacters(text, charsMax * 8) : text)
  const head = wholeCharacters(whole, charsMax)
  const out: Piece[] = []
  const marks = { left: MARKS_MAX }
  head.split(/\r?\n/).forEach((part, index) => {
    if (index > 0 && marks.left-- > 0) out.push({ kind: 'mark', label: '↵', name: 'line break' })
    out.push(...pieces(part.replaceAll('\t', ' '), marks))
  })
  const left = text.length - head.length
  if (head.length < whole.length) out.push({ kind: 'mark', label: '…', name: `${left} more characters` })
  return out
}

/** The same as a plain string, for what takes nothing else: the window's title, a notification, an attribute. */
export function lineText(text: string, charsMax: number = LINE_CHARS_MAX): string {
  return line(text, charsMax)
    .map((piece) => (piece.kind === 'text' ? piece.text : piece.label === '…' || piece.label === '↵' ? piece.label : `[${piece.label}]`))
    .join('')
}

/** The beginning of a text, without half a surrogate pair at its end. */
export function wholeCharacters(text: string, charsMax: number): string {
  return text.slice(0, cutAt(text, charsMax))
}

/** The last place at or before `at` that is not within a surrogate pair. */
export function cutAt(text: string, at: number): number {
  if (at >= text.length) return text.length
  const splits = within(text.charCodeAt(at - 1), 0xd800, 0xdbff) && within(text.charCodeAt(at), 0xdc00, 0xdfff)
  return splits ? at - 1 : at
}

interface HiddenRun {
  from: number
  to: number
  codes: number[]
}

/** Neighbouring hidden characters, as far as they are not harmless where they stand. */
function* hiddenRuns(text: string): Generator<HiddenRun> {
  let run = null as HiddenRun | null
  const hidden = new RegExp(HIDDEN)
  for (let found = hidden.exec(text); found; found = hidden.exec(text)) {
    const at = found.index
    const next = hidden.lastIndex
    const flag = flagEnd(text, at)
    if (flag > 0) {
      hidden.lastIndex = flag
      continue
    }
    const code = text.codePointAt(at) ?? 0
    if (isHarmless(text, at, code)) continue
    if (run?.to === at) {
      run.to = next
      run.codes.push(code)
      continue
    }
    if (run) yield run
    run = { from: at, to: next, codes: [code] }
  }
  if (run) yield run
}

const JOINING_SCRIPTS =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}]/u
const PICTURE = /\p{Extended_Pictographic}/u
const PICTURE_PART = /[\p{Extended_Pictographic}\u{1f3fb}-\u{1f3ff}\ufe0f]/u

/** True if the character does at this place what it is for: joining an emoji, shaping a script, choosing a glyph. */
function isHarmless(text: string, at: number, code: number): boolean {
  if (code === 0x0d) return text.charCodeAt(at + 1) === 0x0a
  const before = characterBefore(text, at)
  if (code === 0x200d || code === 0x200c) {
    const after = characterAt(text, at + 1)
    if (JOINING_SCRIPTS.test(before) && (JOINING_SCRIPTS.test(after) || code === 0x200d)) return true
    return code === 0x200d && PICTURE_PART.test(before) && PICTURE.test(after)
  }
  if (code === 0xfe0e || code === 0xfe0f) return /\p{Emoji}/u.test(before)
  if (within(code, 0xfe00, 0xfe02) || within(code, 0xe0100, 0xe01ef)) return /\p{Ideographic}/u.test(before)
  return within(code, 0x180b, 0x180e) && /\p{Script=Mongolian}/u.test(before)
}

/** The flags of England, Scotland and Wales are the only words that tag characters spell in print. */
function flagEnd(text: string, at: number): number {
  if (text.charCodeAt(at) !== 0xdb40 || characterBefore(text, at) !== '\u{1f3f4}') return 0
  const tags = /^\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/u
  const found = tags.exec(text.slice(at, at + 12))
  return found ? at + found[0].length : 0
}

function characterAt(text: string, at: number): string {
  const code = text.codePointAt(at)
  return code === undefined ? '' : String.fromCodePoint(code)
}

function characterBefore(text: string, at: number): string {
  if (at === 0) return ''
  const isPair = at > 1 && within(text.charCodeAt(at - 1), 0xdc00, 0xdfff) && within(text.charCodeAt(at - 2), 0xd800, 0xdbff)
  return text.slice(isPair ? at - 2 : at - 1, at)
}

function mark(codes: number[]): Piece {
  const labels: string[] = []
  const names: string[] = []
  let kinds = 0
  for (let at = 0; at < codes.length && kinds < MARK_KINDS_MAX; kinds++) {
    const code = codes[at] ?? 0
    const to = isTag(code) ? endOf(codes, at, isTag) : endOf(codes, at, (other) => other === code)
    const [label, name] = isTag(code) ? tagNames(codes.slice(at, to)) : nameOf(code)
    const times = isTag(code) || to - at === 1 ? '' : `×${to - at}`
    labels.push(label + times)
    names.push(name + times)
    at = to
    if (kinds === MARK_KINDS_MAX - 1 && at < codes.length) {
      labels.push(`+${codes.length - at}`)
      names.push(`${codes.length - at} more hidden characters`)
    }
  }
  return { kind: 'mark', label: labels.join(' '), name: names.join(', ') }
}

function endOf(codes: number[], from: number, same: (code: number) => boolean): number {
  let at = from
  while (at < codes.length && same(codes[at] ?? 0)) at++
  return at
}

function isTag(code: number): boolean {
  return within(code, 0xe0000, 0xe007f)
}

/** Tag characters repeat ASCII where nobody sees it: the mark says what they spell. */
function tagNames(codes: number[]): [label: string, name: string] {
  let said = ''
  for (const code of codes.slice(0, TAGS_CHARS_MAX)) said += within(code, 0xe0020, 0xe007e) ? String.fromCodePoint(code - 0xe0000) : ''
  const more = codes.length > TAGS_CHARS_MAX ? '…' : ''
  return [`TAG “${said}${more}”`, `hidden tag characters that spell “${said}${more}”`]
}

const C0 = 'NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US'.split(' ')

const NAMES: Readonly<Record<number, readonly [label: string, name: string]>> = {
  0x7f: ['DEL', 'delete'],
  0xad: ['SHY', 'soft hyphen'],
  0x34f: ['CGJ', 'combining grapheme joiner'],
  0x61c: ['ALM', 'Arabic letter mark'],
  0x200b: ['ZWSP', 'zero width space'],
  0x200c: ['ZWNJ', 'zero width non-joiner'],
  0x200d: ['ZWJ', 'zero width joiner'],
  0x200e: ['LRM', 'left-to-right mark'],
  0x200f: ['RLM', 'right-to-left mark'],
  0x2028: ['LS', 'line separator'],
  0x2029: ['PS', 'paragraph separator'],
  0x202a: ['LRE', 'left-to-right embedding'],
  0x202b: ['RLE', 'right-to-left embedding'],
  0x202c: ['PDF', 'pop directional formatting'],
  0x202d: ['LRO', 'left-to-right override'],
  0x202e: ['RLO', 'right-to-left override'],
  0x2060: ['WJ', 'word joiner'],
  0x2066: ['LRI', 'left-to-right isolate'],
  0x2067: ['RLI', 'right-to-left isolate'],
  0x2068: ['FSI', 'first strong isolate'],
  0x2069: ['PDI', 'pop directional isolate'],
  0xfeff: ['BOM', 'byte order mark'],
}

function nameOf(code: number): readonly [label: string, name: string] {
  const named = NAMES[code]
  if (named) return named
  const number = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
  const control = C0[code]
  if (control) return [control, `control character ${control}`]
  if (within(code, 0x80, 0x9f)) return [number, `control character ${number}`]
  if (/\p{M}/u.test(String.fromCodePoint(code))) return [number, `combining character ${number}`]
  if (within(code, 0xd800, 0xdfff)) return [number, `half of a surrogate pair, ${number}`]
  return [number, `hidden character ${number}`]
}

// Markdown that is read while it grows.
//
// `Markdown` takes text at its end and hands out a tree of blocks. A line is read once, when it is over; the line that is still
// growing is read ahead and taken back. So the cost of a text does not depend on the pieces in which it came, and whatever is
// finished is the same object in each tree. Beyond each bound the rest is plain text and says why. It never throws, never makes
// a string of HTML, and has no clock but the one it is given.

import { Blocks, NODES_MAX } from './blocks'
import { cutAt, splitOpenAnsi } from './marks'
import type { Block, PlainWhy } from './tree'

/** Characters that are read as Markdown. Longer than anything people read; what follows is shown as it is. */
export const TEXT_CHARS_MAX = 1 << 20
/** Characters of one line. The rest of it belongs to the same block, without being looked at. */
export const LINE_CHARS_MAX = 16_384
/** Time for reading at a stretch, in ms: half of a frame. What is left is read at the next. */
export const SLICE_MS = 8
/** Elements and texts that are made at a stretch, about: as many as a browser puts on the page without being felt. */
export const SLICE_NODES = 1_500
/** Time for one text, in ms, all of its stretches together. */
export const TIME_MS_MAX = 2_000
/** Lines between two looks at the clock. */
const LINES_A_LOOK = 16
/** Characters of an escape sequence that is not over. A longer one is shown. */
const OPEN_CHARS_MAX = 4_096

/** The time now, in ms. */
export type Clock = () => number

export class Markdown {
  readonly #clock: Clock
  readonly #blocks = new Blocks()
  /** What may be the beginning of an escape sequence. */
  #open = ''
  /** What has not been read. Its first characters up to `#at` have been. */
  #text = ''
  #at = 0
  /** Characters read as Markdown. */
  #read = 0
  #spentMs = 0
  /** True if the line that is being read was too long, and its beginning was taken. */
  #isMidLine = false
  #plain: PlainWhy | null = null
  #isEnded = false

  constructor(clock: Clock = () => performance.now()) {
    this.#clock = clock
  }

  /** True if there is text that `read` has had no time for. It is not in the tree until then. */
  get isBehind(): boolean {
    return this.#at < this.#text.length && (this.#isEnded || this.#hasLine())
  }

  /** Adds text, and reads for a stretch. */
  append(text: string): void {
    const { shown, later } = splitOpenAnsi(this.#open + text)
    const isTooLong = later.length > OPEN_CHARS_MAX
    this.#open = isTooLong ? '' : later
    this.#hold(isTooLong ? shown + later : shown)
    this.read()
  }

  /** Nothing follows. */
  end(): void {
    if (this.#isEnded) return
    this.#hold(this.#open)
    this.#open = ''
    this.#isEnded = true
    this.read()
  }

  /** Reads on for a stretch. */
  read(): void {
    const began = this.#clock()
    const nodesMax = this.#blocks.nodes + SLICE_NODES
    let lines = 0
    while (this.#at < this.#text.length && this.#blocks.nodes < nodesMax) {
      if (++lines % LINES_A_LOOK === 0 && this.#clock() - began > SLICE_MS) break
      if (!this.#step()) break
    }
    this.#spentMs += this.#clock() - began
    if (this.#spentMs > TIME_MS_MAX) this.#plain ??= 'time'
    if (this.#isEnded && this.#at >= this.#text.length) this.#blocks.end()
  }

  /** The tree of everything so far. */
  blocks(): Block[] {
    const rest = this.#text.slice(this.#at)
    // A line may end with two characters, of which one has come.
    const ahead = rest.endsWith('\r') ? rest.slice(0, -1) : rest
    // Looked at before and after: what the line that is read ahead does not change stays the same object.
    const before = this.#blocks.view()
    if (ahead === '' || this.isBehind) return before
    const saved = this.#blocks.save()
    if (this.#isMidLine) this.#blocks.takeMore(ahead)
    else this.#blocks.preview(ahead)
    const tree = this.#blocks.view()
    this.#blocks.restore(saved)
    return tree
  }

  #hold(text: string): void {
    this.#text = this.#text.slice(this.#at) + text
    this.#at = 0
  }

  #hasLine(): boolean {
    return this.#plain !== null || this.#text.length - this.#at > LINE_CHARS_MAX || this.#text.indexOf('\n', this.#at) >= 0
  }

  /** Reads a line, or what is plain. False if the line is still growing. */
  #step(): boolean {
    if (this.#read >= TEXT_CHARS_MAX) this.#plain ??= 'size'
    if (this.#blocks.nodes >= NODES_MAX) this.#plain ??= 'nodes'
    if (this.#plain && !this.#isMidLine) {
      this.#blocks.takePlain(this.#text.slice(this.#at), this.#plain)
      this.#at = this.#text.length
      return true
    }
    const end = this.#text.indexOf('\n', this.#at)
    const isOver = end >= 0 || this.#isEnded
    const to = end >= 0 ? end : this.#text.length
    if (to - this.#at > LINE_CHARS_MAX || this.#isMidLine) return this.#long(to, end >= 0)
    if (!isOver) return false
    const line = this.#text.slice(this.#at, to)
    this.#blocks.take(line.endsWith('\r') ? line.slice(0, -1) : line)
    this.#pass(end >= 0 ? to + 1 : to)
    return true
  }

  /** Reads a piece of a line that is too long. */
  #long(to: number, isOver: boolean): true {
    const isFirst = !this.#isMidLine
    const cut = isFirst ? this.#at + cutAt(this.#text.slice(this.#at, this.#at + LINE_CHARS_MAX + 1), LINE_CHARS_MAX) : to
    const piece = this.#text.slice(this.#at, cut)
    if (isFirst) this.#blocks.take(piece)
    else this.#blocks.takeMore(piece)
    this.#isMidLine = isFirst || !isOver
    this.#pass(isFirst || !isOver ? cut : to + 1)
    return true
  }

  #pass(at: number): void {
    this.#read += at - this.#at
    this.#at = at
  }
}

/** The tree of a whole text. */
export function markdown(text: string, clock?: Clock): Block[] {
  const reader = new Markdown(clock)
  reader.append(text)
  reader.end()
  while (reader.isBehind) reader.read()
  return reader.blocks()
}

// Plain text in chunks, so that a long one is laid out where it is looked at, and one that grows keeps what it had.

import type { CodeRange } from './code_classes'
import { MARKS_MAX, cutAt, pieces } from './marks'
import type { Piece, PlainWhy } from './tree'

/** Characters of a chunk. A browser lays out one at a time; more of them at once would be felt. */
export const CHUNK_CHARS_MAX = 8_192
/** Characters shown at first. The rest of what nobody reads to its end is a button away. */
export const SHOWN_CHARS_MAX = 4 << 20

export interface Chunk {
  readonly text: string
  readonly pieces: readonly Piece[]
  /** Marks that were left for it. */
  readonly marksLeft: number
}

/** The chunks of a text. Those that are as before are the same objects. */
export function chunked(text: string, before: readonly Chunk[] = []): Chunk[] {
  const out: Chunk[] = []
  const marks = { left: MARKS_MAX }
  for (let at = 0; at < text.length; ) {
    const end = chunkEnd(text, at)
    const part = text.slice(at, end)
    const old = before[out.length]
    const marksLeft = marks.left
    if (old && old.marksLeft === marksLeft && old.text === part) {
      marks.left -= marksOf(old.pieces)
      out.push(old)
    } else out.push({ text: part, pieces: pieces(part, marks), marksLeft })
    at = end
  }
  return out
}

function marksOf(list: readonly Piece[]): number {
  let count = 0
  for (const piece of list) if (piece.kind === 'mark') count++
  return count
}

/** After the last line break of a chunk, or where it is full. */
function chunkEnd(text: string, from: number): number {
  if (text.length - from <= CHUNK_CHARS_MAX) return text.length
  const lineEnd = text.lastIndexOf('\n', from + CHUNK_CHARS_MAX - 1)
  return lineEnd >= from ? lineEnd + 1 : cutAt(text, from + CHUNK_CHARS_MAX)
}

/** A run of code of one colour, or of none. */
export interface ColouredRun {
  readonly as: CodeRange['as'] | null
  /** Where it ends. */
  readonly to: number
  readonly pieces: readonly Piece[]
}

/** Code cut at its colours. Ranges that do not fit the text are left out. */
export function coloured(text: string, ranges: readonly CodeRange[]): ColouredRun[] {
  const out: ColouredRun[] = []
  const marks = { left: MARKS_MAX }
  let at = 0
  const plain = (to: number) => {
    if (to > at) out.push({ as: null, to, pieces: pieces(text.slice(at, to), marks) })
  }
  for (const { from, to, as } of ranges) {
    if (from < at || to <= from || to > text.length) continue
    plain(from)
    out.push({ as, to, pieces: pieces(text.slice(from, to), marks) })
    at = to
  }
  plain(text.length)
  return out
}

/** Why something is plain, for whoever wonders. */
export const PLAIN_WHY: Readonly<Record<PlainWhy, string>> = {
  size: 'Shown as it is: too long to format.',
  depth: 'Shown as it is: nested too deep to format.',
  time: 'Shown as it is: it takes too long to format.',
  nodes: 'Shown as it is: too many parts to format.',
}

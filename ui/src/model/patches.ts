// The patch of one file, joined of the pieces in which the server tells it.
import type { FilePatch } from '../api/types'

export interface WholeFile {
  patch: string
  /** False if nobody can tell what changed. */
  isKnown: boolean
  /** The byte at which the next piece begins; none if all of it is here. */
  next: number | null
}

/** What there was and the piece that comes after it. A piece that leads nowhere further is the last one. */
export function joined(before: WholeFile | null, piece: FilePatch): WholeFile {
  const next = piece.next != null && piece.next > (before?.next ?? 0) ? piece.next : null
  return { patch: (before?.patch ?? '') + piece.patch, isKnown: piece.known, next }
}

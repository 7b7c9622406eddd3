// Words that arrive in pieces, some of them twice, joined by the byte at which each begins.
//
// The server counts bytes of UTF-8; a page has strings. Live words run ahead of the log and come again as facts, so pieces
// overlap. Each byte is taken once. Nothing is encoded again: a piece's bytes are counted when it arrives.

/** Pieces that wait for words before them. A stream has none; a page of facts read out of order has a few. */
export const WAITING_PIECES_MAX = 256
/** Characters that wait for words before them. Beyond, the piece is dropped: it comes again when the gap is read. */
export const WAITING_CHARS_MAX = 1 << 20

/** A piece of a text and the number of bytes before it. */
export interface Piece {
  offset: number
  text: string
}

/** One run of words: what has arrived without a gap, from its first byte. */
export class Run {
  #text = ''
  #bytes = 0
  #waiting: Piece[] = []
  #waitingChars = 0

  /** Everything up to the first gap. */
  get text(): string {
    return this.#text
  }

  /** Its length in bytes, which is the offset of what comes next. */
  get bytes(): number {
    return this.#bytes
  }

  /** True if words have arrived that come after some that have not. */
  get hasGap(): boolean {
    return this.#waiting.length > 0
  }

  /** Takes a piece, and gives back what it adds to the end of `text`: nothing, if all of it was there or it has to wait. */
  add(offset: number, text: string): string {
    if (offset > this.#bytes) {
      this.#wait({ offset, text })
      return ''
    }
    let added = this.#join(offset, text)
    for (let next = this.#waiting[0]; next && next.offset <= this.#bytes; next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#waitingChars -= next.text.length
      added += this.#join(next.offset, next.text)
    }
    return added
  }

  #join(offset: number, text: string): string {
    const known = this.#bytes - offset
    const { at, bytes } = known === 0 ? { at: 0, bytes: 0 } : skip(text, known)
    const added = at === 0 ? text : text.slice(at)
    this.#bytes = Math.max(this.#bytes, offset + bytes + utf8Bytes(added))
    this.#text += added
    return added
  }

  #wait(piece: Piece): void {
    if (this.#waiting.length >= WAITING_PIECES_MAX || this.#waitingChars + piece.text.length > WAITING_CHARS_MAX) return
    let at = this.#waiting.length
    while (at > 0 && (this.#waiting[at - 1]?.offset ?? 0) > piece.offset) at--
    this.#waiting.splice(at, 0, piece)
    this.#waitingChars += piece.text.length
  }
}

/** The pieces' text from its first byte to the first gap, whatever their order and however they overlap. */
export function joined(pieces: readonly Piece[]): string {
  const run = new Run()
  for (const piece of pieces.toSorted((one, other) => one.offset - other.offset)) run.add(piece.offset, piece.text)
  return run.text
}

/** The length of a text in UTF-8. Half a surrogate pair counts as the replacement character that it is sent as. */
export function utf8Bytes(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    bytes += code < 0x800 ? 1 : 2
    // A pair is two units and four bytes.
    if (isPair(text, at)) at++
  }
  return bytes
}

/** The place in a text after so many bytes of it, or after the character that they end within. */
function skip(text: string, bytesToSkip: number): { at: number; bytes: number } {
  let at = 0
  let bytes = 0
  while (at < text.length && bytes < bytesToSkip) {
    const code = text.charCodeAt(at)
    const pair = isPair(text, at)
    bytes += pair ? 4 : code < 0x80 ? 1 : code < 0x800 ? 2 : 3
    at += pair ? 2 : 1
  }
  return { at, bytes }
}

function isPair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
}

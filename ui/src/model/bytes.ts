// Offsets of words count bytes of UTF-8, strings of this language count halves of UTF-16. What goes between the two is here.

/** The bytes of a text in UTF-8, without making them. */
export function byteLength(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    if (code < 0x800) bytes += 1
    else if (code >= 0xd800 && code < 0xdc00 && isLow(text.charCodeAt(at + 1))) {
      // A pair: two halves here, four bytes there.
      bytes += 2
      at += 1
    } else bytes += 2
  }
  return bytes
}

const isLow = (code: number) => code >= 0xdc00 && code < 0xe000

/** A text without its first bytes. Half a letter goes with them: an offset lies between letters. */
export function dropBytes(text: string, bytes: number): string {
  if (bytes <= 0) return text
  let at = 0
  let dropped = 0
  while (at < text.length && dropped < bytes) {
    const code = text.codePointAt(at) ?? 0
    dropped += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
    at += code < 0x10000 ? 1 : 2
  }
  return text.slice(at)
}

/** Words with a known place: the bytes from `from` on, as far as they are there. */
export interface Run {
  from: number
  bytes: number
  text: string
}

export const NO_RUN: Run = { from: 0, bytes: 0, text: '' }

/** A run with what comes at an offset. What it has already is not taken twice; what leaves a gap begins a run of its own. */
export function extend(run: Run, offset: number, text: string): Run {
  const bytes = byteLength(text)
  const end = run.from + run.bytes
  if (run.bytes === 0) return { from: offset, bytes, text }
  if (offset === end) return { from: run.from, bytes: run.bytes + bytes, text: run.text + text }
  if (offset >= run.from && offset + bytes <= end) return run
  if (offset > run.from && offset < end) {
    return { from: run.from, bytes: offset + bytes - run.from, text: run.text + dropBytes(text, end - offset) }
  }
  return offset > end ? { from: offset, bytes, text } : run
}

/** A later run behind an earlier one, where nothing is between them; else the later one. */
export function join(earlier: Run, later: Run): Run {
  if (later.bytes === 0) return earlier
  if (earlier.bytes === 0 || earlier.from + earlier.bytes !== later.from) return later
  return { from: earlier.from, bytes: earlier.bytes + later.bytes, text: earlier.text + later.text }
}

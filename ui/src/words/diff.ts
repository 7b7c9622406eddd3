// A patch, as rows that can be shown: files, hunks, and lines with their numbers before and after.
//
// It reads what git writes for the `changes` of a turn: unified hunks with `a/` and `b/` before the paths, renames, modes, files
// that are not text. What is in a hunk is counted by its head, so a line that looks like a head is a line. Beyond its bounds it
// stops and says so; it never throws. Words that differ within a line are looked for in pairs of lines, when they are shown.

/** Characters of a patch that are read. */
export const PATCH_CHARS_MAX = 4 << 20
/** Files of a patch. */
export const FILES_MAX = 2_000
/** Rows of a patch, of all files together. */
export const ROWS_MAX = 50_000
/** Characters of a row that are shown. The rest of a longer line is counted. */
export const ROW_CHARS_MAX = 2_000
/** Words of a line that are compared with those of another: the comparison takes the product of both. */
export const COMPARED_WORDS_MAX = 120

export type FileKind = 'added' | 'removed' | 'edited' | 'renamed' | 'copied'

export interface DiffFile {
  readonly path: string
  /** The path before, if that was another one. */
  readonly from: string | null
  readonly kind: FileKind
  /** Its modes before and after, if they differ. */
  readonly modes: readonly [before: string, after: string] | null
  readonly isBinary: boolean
  readonly hunks: readonly Hunk[]
  readonly plus: number
  readonly minus: number
}

export interface Hunk {
  /** The first line before and after. */
  readonly old: number
  readonly new: number
  /** What git found above it: a function's head, as a rule. */
  readonly heading: string
  readonly rows: readonly Row[]
}

export interface Row {
  readonly kind: 'same' | 'minus' | 'plus'
  /** Its number before and after. */
  readonly old: number | null
  readonly new: number | null
  readonly text: string
  /** Characters of the line that are not in `text`. */
  readonly more: number
  /** True if the file ends here without a line break. */
  readonly isUnended: boolean
}

export interface Diff {
  readonly files: readonly DiffFile[]
  /** True if some of the patch was not read. */
  readonly isCut: boolean
}

/** One line of a view side by side. */
export interface Beside {
  readonly left: Row | null
  readonly right: Row | null
}

/** Characters of a row from one place to another that its partner does not have. */
export interface Changed {
  readonly from: number
  readonly to: number
}

/** Reads a patch. */
export function diff(patch: string): Diff {
  return new Reader(patch.length > PATCH_CHARS_MAX ? patch.slice(0, patch.lastIndexOf('\n', PATCH_CHARS_MAX) + 1) : patch).read(
    patch.length > PATCH_CHARS_MAX,
  )
}

interface OpenFile {
  path: string
  from: string | null
  kind: FileKind
  modes: [string, string] | null
  isBinary: boolean
  hunks: Hunk[]
  plus: number
  minus: number
}

const HUNK = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)/s

class Reader {
  readonly #text: string
  #at = 0
  #rows = 0
  readonly #files: OpenFile[] = []

  constructor(text: string) {
    this.#text = text
  }

  read(isCut: boolean): Diff {
    let isFull = false
    for (let line = this.#next(); line !== null && !isFull; line = this.#next()) {
      if (line.startsWith('diff --git ')) {
        if (this.#files.length >= FILES_MAX) isFull = true
        else this.#files.push(fileOf(line.slice('diff --git '.length)))
      } else if (line.startsWith('--- ') && !this.#isInFile()) {
        // A patch that no git wrote has no line before these.
        if (this.#files.length >= FILES_MAX) isFull = true
        else this.#files.push(fileOf(''))
        this.#head(line)
      } else if (line.startsWith('@@ ')) isFull = !this.#hunk(line)
      else this.#head(line)
    }
    return { files: this.#files, isCut: isCut || isFull }
  }

  #isInFile(): boolean {
    const file = this.#files.at(-1)
    return file !== undefined && file.hunks.length === 0
  }

  #next(): string | null {
    if (this.#at >= this.#text.length) return null
    const end = this.#text.indexOf('\n', this.#at)
    const line = this.#text.slice(this.#at, end < 0 ? this.#text.length : end)
    this.#at = end < 0 ? this.#text.length : end + 1
    return line
  }

  /** A line between a file's first and its hunks. */
  #head(line: string): void {
    const file = this.#files.at(-1)
    if (!file) return
    const after = (start: string) => (line.startsWith(start) ? line.slice(start.length) : null)
    const old = after('--- ')
    const now = after('+++ ')
    const mode = after('old mode ')
    const newMode = after('new mode ')
    const before = after('rename from ') ?? after('copy from ')
    const to = after('rename to ') ?? after('copy to ')
    if (line.startsWith('new file mode ')) file.kind = 'added'
    else if (line.startsWith('deleted file mode ')) file.kind = 'removed'
    else if (before !== null) {
      file.kind = line.startsWith('copy') ? 'copied' : 'renamed'
      file.from = unquoted(before)
    } else if (to !== null) file.path = unquoted(to)
    else if (mode !== null) file.modes = [mode, '']
    else if (newMode !== null && file.modes) file.modes[1] = newMode
    else if (line.startsWith('Binary files ') || line === 'GIT binary patch') file.isBinary = true
    else if (old !== null) this.#side(file, old, 'removed')
    else if (now !== null) this.#side(file, now, 'added')
  }

  /** `---` or `+++`: the path on that side, or that there is no file. */
  #side(file: OpenFile, side: string, without: 'added' | 'removed'): void {
    const path = unquoted(side.split('\t', 1)[0] ?? '')
    if (path === '/dev/null') {
      if (file.kind === 'edited') file.kind = without === 'removed' ? 'added' : 'removed'
    } else if (file.kind !== 'renamed' && file.kind !== 'copied') file.path = path.replace(/^[ab]\//, '')
  }

  /** Reads a hunk. False if there is room for no more rows. */
  #hunk(head: string): boolean {
    const file = this.#files.at(-1)
    const found = HUNK.exec(head)
    if (!file || !found) return true
    let old = Number(found[1])
    let now = Number(found[3])
    let oldLeft = Number(found[2] ?? 1)
    let newLeft = Number(found[4] ?? 1)
    const rows: Row[] = []
    file.hunks.push({ old, new: now, heading: found[5] ?? '', rows })
    while (oldLeft > 0 || newLeft > 0) {
      if (this.#rows >= ROWS_MAX) return false
      const before = this.#at
      const line = this.#next()
      if (line === null) break
      if (!/^(?:[ +\\-]|$)/.test(line)) {
        this.#at = before
        break
      }
      if (line.startsWith('\\')) {
        unend(rows)
        continue
      }
      const kind = line.startsWith('+') ? 'plus' : line.startsWith('-') ? 'minus' : 'same'
      rows.push(row(kind, kind === 'plus' ? null : old, kind === 'minus' ? null : now, line.slice(1)))
      this.#rows++
      if (kind !== 'plus') {
        old++
        oldLeft--
      }
      if (kind !== 'minus') {
        now++
        newLeft--
      }
      if (kind === 'plus') file.plus++
      if (kind === 'minus') file.minus++
    }
    if (this.#text.startsWith('\\', this.#at)) {
      this.#next()
      unend(rows)
    }
    return true
  }
}

function row(kind: Row['kind'], old: number | null, now: number | null, line: string): Row {
  const text = line.slice(0, ROW_CHARS_MAX)
  return { kind, old, new: now, text, more: line.length - text.length, isUnended: false }
}

function unend(rows: Row[]): void {
  const last = rows.pop()
  if (last) rows.push({ ...last, isUnended: true })
}

/** The file of a `diff --git` line. Where both paths are the same, its middle parts them; other lines say better otherwise. */
function fileOf(names: string): OpenFile {
  const quoted = /^"(?:[^"\\]|\\.)*" (.*)$/s.exec(names)
  const second = quoted?.[1] ?? names.slice((names.length + 1) >> 1)
  const path = unquoted(second).replace(/^b\//, '')
  return { path, from: null, kind: 'edited', modes: null, isBinary: false, hunks: [], plus: 0, minus: 0 }
}

const ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 }

/** A path that git has put into quotes: bytes in octal, of UTF-8 as a rule. */
function unquoted(path: string): string {
  if (path.length < 2 || !path.startsWith('"') || !path.endsWith('"')) return path
  const bytes: number[] = []
  const inside = path.slice(1, -1)
  for (const [whole, octal, letter] of inside.matchAll(/\\([0-3][0-7]{2})|\\(.)|[^\\]+|\\/gsu)) {
    if (octal) bytes.push(Number.parseInt(octal, 8))
    else if (letter && letter in ESCAPES) bytes.push(ESCAPES[letter] ?? 0)
    else bytes.push(...new TextEncoder().encode(whole))
  }
  return new TextDecoder().decode(new Uint8Array(bytes))
}

/** The rows of a hunk side by side: what was removed stands beside what was added in its place. */
export function beside(hunk: Hunk): Beside[] {
  const out: Beside[] = []
  for (let at = 0; at < hunk.rows.length; ) {
    const first = hunk.rows[at] as Row
    if (first.kind === 'same') {
      out.push({ left: first, right: first })
      at++
      continue
    }
    const block = changedBlock(hunk.rows, at)
    for (let line = 0; line < Math.max(block.minus.length, block.plus.length); line++) {
      out.push({ left: block.minus[line] ?? null, right: block.plus[line] ?? null })
    }
    at = block.end
  }
  return out
}

/** For each changed row that has a partner, the row it took the place of, or that took its place. */
export function partners(hunk: Hunk): Map<Row, Row> {
  const out = new Map<Row, Row>()
  for (const { left, right } of beside(hunk)) {
    if (!left || !right || left === right) continue
    out.set(left, right)
    out.set(right, left)
  }
  return out
}

/** Removed lines and the added ones that follow them. */
function changedBlock(rows: readonly Row[], from: number): { minus: Row[]; plus: Row[]; end: number } {
  const minus: Row[] = []
  const plus: Row[] = []
  let at = from
  for (let each = rows[at]; each?.kind === 'minus'; each = rows[++at]) minus.push(each)
  for (let each = rows[at]; each?.kind === 'plus'; each = rows[++at]) plus.push(each)
  return { minus, plus, end: at }
}

/** What of a line another line does not have, in words. Nothing if they have too little in common to be the same line. */
export function changedWords(text: string, other: string): Changed[] {
  const mine = words(text)
  const theirs = words(other)
  let start = 0
  while (start < mine.length && start < theirs.length && mine[start] === theirs[start]) start++
  let end = 0
  while (end < mine.length - start && end < theirs.length - start && mine[mine.length - 1 - end] === theirs[theirs.length - 1 - end]) end++
  const middle = mine.slice(start, mine.length - end)
  const isKept = commonWords(middle, theirs.slice(start, theirs.length - end))
  const kept = (at: number) => at < start || at >= mine.length - end || isKept[at - start] === true
  const isAlike = mine.some((word, at) => kept(at) && /[\p{L}\p{N}_]/u.test(word))
  return isAlike ? runsOf(mine, kept) : []
}

/** Names, numbers, space and single signs. */
function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? []
}

/** For each word, whether it is in the longest common sequence. Long ones are not compared: none of their words is. */
function commonWords(mine: string[], theirs: string[]): boolean[] {
  const kept: boolean[] = mine.map(() => false)
  if (mine.length > COMPARED_WORDS_MAX || theirs.length > COMPARED_WORDS_MAX) return kept
  const width = theirs.length + 1
  const lengths = new Uint8Array((mine.length + 1) * width)
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0
  for (let row = mine.length - 1; row >= 0; row--) {
    for (let column = theirs.length - 1; column >= 0; column--) {
      const isSame = mine[row] === theirs[column]
      lengths[row * width + column] = isSame ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
    }
  }
  for (let row = 0, column = 0; row < mine.length && column < theirs.length; ) {
    if (mine[row] === theirs[column]) {
      kept[row++] = true
      column++
    } else if (at(row + 1, column) >= at(row, column + 1)) row++
    else column++
  }
  return kept
}

function runsOf(list: string[], isKept: (at: number) => boolean): Changed[] {
  const out: { from: number; to: number }[] = []
  let place = 0
  list.forEach((word, at) => {
    const last = out.at(-1)
    if (!isKept(at)) {
      if (last?.to === place) last.to += word.length
      else out.push({ from: place, to: place + word.length })
    }
    place += word.length
  })
  return out
}

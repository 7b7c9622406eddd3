import { describe, expect, it } from 'vitest'
import { FILES_MAX, ROWS_MAX, ROW_CHARS_MAX, beside, changedWords, diff, partners, type Hunk } from './diff'

/** As `git diff-tree --patch --full-index -M` writes it. */
const PATCH = `diff --git a/src/a.rs b/src/a.rs
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,4 +1,5 @@ fn main() {
 one
-two
+zwei
+and a half
 three
--- not a head
+++ nor this
@@ -20,0 +22,2 @@
+x
+y
\\ No newline at end of file
diff --git a/old name.txt b/new name.txt
similarity index 90%
rename from old name.txt
rename to new name.txt
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222
--- a/old name.txt
+++ b/new name.txt
@@ -1 +1 @@
-a
\\ No newline at end of file
+b
diff --git a/new b/new
new file mode 100755
index 0000000000000000000000000000000000000000..3333333333333333333333333333333333333333
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+#!/bin/sh
diff --git a/gone b/gone
deleted file mode 100644
index 3333333333333333333333333333333333333333..0000000000000000000000000000000000000000
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git a/pic.png b/pic.png
index 3333333333333333333333333333333333333333..4444444444444444444444444444444444444444 100644
Binary files a/pic.png and b/pic.png differ
diff --git "a/\\303\\274 \\"q\\".txt" "b/\\303\\274 \\"q\\".txt"
index 3333333333333333333333333333333333333333..4444444444444444444444444444444444444444 100644
--- "a/\\303\\274 \\"q\\".txt"
+++ "b/\\303\\274 \\"q\\".txt"
@@ -1 +1 @@
-1
+2
`

/** A hunk as lines: its numbers, its sign, its text. */
function told(hunk: Hunk | undefined): string[] {
  const signs = { same: ' ', minus: '-', plus: '+' }
  return hunk?.rows.map((row) => `${row.old ?? '.'} ${row.new ?? '.'} ${signs[row.kind]}${row.text}${row.isUnended ? '|' : ''}`) ?? []
}

describe('patches', () => {
  it('has the files with what became of them', () => {
    const read = diff(PATCH)
    expect(read.isCut).toBe(false)
    expect(read.files.map(({ path, from, kind, plus, minus, isBinary, modes }) => [path, from, kind, plus, minus, isBinary, modes])).toEqual([
      ['src/a.rs', null, 'edited', 5, 2, false, null],
      ['new name.txt', 'old name.txt', 'renamed', 1, 1, false, null],
      ['new', null, 'added', 1, 0, false, null],
      ['gone', null, 'removed', 0, 1, false, null],
      ['run.sh', null, 'edited', 0, 0, false, ['100644', '100755']],
      ['pic.png', null, 'edited', 0, 0, true, null],
      ['ü "q".txt', null, 'edited', 1, 1, false, null],
    ])
  })

  it('numbers the rows before and after, and takes a line that looks like a head for a line', () => {
    const [first, second] = diff(PATCH).files[0]?.hunks ?? []
    expect(first?.heading).toBe('fn main() {')
    expect(told(first)).toEqual(['1 1  one', '2 . -two', '. 2 +zwei', '. 3 +and a half', '3 4  three', '4 . --- not a head', '. 5 +++ nor this'])
    expect(told(second)).toEqual(['. 22 +x', '. 23 +y|'])
    expect(told(diff(PATCH).files[1]?.hunks[0])).toEqual(['1 . -a|', '. 1 +b'])
  })

  it('puts what was added beside what it took the place of', () => {
    const hunk = diff(PATCH).files[0]?.hunks[0]
    if (!hunk) throw new Error('a hunk was expected')
    expect(beside(hunk).map(({ left, right }) => [left?.text ?? null, right?.text ?? null])).toEqual([
      ['one', 'one'],
      ['two', 'zwei'],
      [null, 'and a half'],
      ['three', 'three'],
      ['-- not a head', '++ nor this'],
    ])
    expect(partners(hunk).size).toBe(4)
  })

  it('stops at its bounds and says so', () => {
    const rows = `diff --git a/a b/a\n@@ -0,0 +1,${ROWS_MAX + 5} @@\n${'+x\n'.repeat(ROWS_MAX + 5)}`
    expect([diff(rows).isCut, diff(rows).files[0]?.plus]).toEqual([true, ROWS_MAX])
    const files = 'diff --git a/a b/a\n'.repeat(FILES_MAX + 1)
    expect([diff(files).isCut, diff(files).files.length]).toEqual([true, FILES_MAX])
    const long = diff(`diff --git a/a b/a\n@@ -0,0 +1 @@\n+${'x'.repeat(1 << 20)}\n`).files[0]?.hunks[0]?.rows[0]
    expect([long?.text.length, long?.more]).toEqual([ROW_CHARS_MAX, (1 << 20) - ROW_CHARS_MAX])
  })

  it('ends a hunk that is shorter than its head says where something else begins', () => {
    const read = diff('diff --git a/a b/a\n@@ -1,9 +1,9 @@\n same\n-old\ndiff --git a/b b/b\n@@ -1 +1 @@\n-x\n+y\n')
    expect(read.files.map(({ path, plus, minus }) => [path, plus, minus])).toEqual([
      ['a', 0, 1],
      ['b', 1, 1],
    ])
  })

  it('takes whatever else comes', () => {
    for (const text of ['', '\n', '@@ -1 +1 @@\n-a\n+b\n', 'diff --git ', 'diff --git a/x b/x\n@@ -1,9 +1,9 @@\n a', '--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n--- c\n+++ d\n@@ -1 +1 @@\n-e\n+f\n']) {
      expect(() => diff(text)).not.toThrow()
    }
    expect(diff('--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n--- c\n+++ d\n@@ -1 +1 @@\n-e\n+f\n').files.map(({ path }) => path)).toEqual(['b', 'd'])
  })
})

describe('words within a line', () => {
  const check = (text: string, other: string) => {
    const marked = [...changedWords(text, other)].reverse().reduce((line, { from, to }) => `${line.slice(0, from)}[${line.slice(from, to)}]${line.slice(to)}`, text)
    return marked
  }

  it('finds what the other line does not have', () => {
    expect(check('let x = old(a, b)', 'let x = new(a, b, c)')).toBe('let x = [old](a, b)')
    expect(check('let x = new(a, b, c)', 'let x = old(a, b)')).toBe('let x = [new](a, b[, c])')
    expect(check('a b c d e', 'a x c y e')).toBe('a [b] c [d] e')
    expect(check('same', 'same')).toBe('same')
  })

  it('finds nothing in lines that have no word in common', () => {
    expect(check('one two', 'three (four)')).toBe('one two')
  })

  it('compares only the ends of long lines', () => {
    const long = Array.from({ length: 2_000 }, (_, at) => `w${at}`).join(' ')
    expect(changedWords(`a ${long} z`, `a x ${long.toUpperCase()} y z`)).toEqual([{ from: 2, to: 2 + long.length }])
  })
})

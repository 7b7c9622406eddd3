// What is at the caret of the composer, and which choices fit it.
import type { Choice } from '../api/types'

export interface Asked {
  kind: 'command' | 'file'
  /** What was typed of it, and where that begins and ends. */
  words: string
  from: number
  to: number
}

/** What the caret is in: a command at the very beginning, or a file after an `@`. */
export function askedAt(text: string, caret: number): Asked | null {
  const before = text.slice(0, caret)
  const command = /^\/(\S*)$/.exec(before)
  if (command) return { kind: 'command', words: command[1]!, from: 0, to: caret }
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before)
  return file ? { kind: 'file', words: file[1]!, from: caret - file[1]!.length - 1, to: caret } : null
}

/** The text with something in place of what was asked for, and where the caret goes. */
export function filled(text: string, asked: Asked, words: string): { text: string; caret: number } {
  const rest = text.slice(asked.to)
  const gap = rest.startsWith(' ') || rest.startsWith('\n') ? '' : ' '
  const before = text.slice(0, asked.from) + words + gap
  return { text: before + rest, caret: before.length + (gap ? 0 : 1) }
}

/** The files that fit, best first: by name, by the beginning of a piece, by letters in order. */
export function fitting(files: string[], words: string, most: number): string[] {
  const wanted = words.toLowerCase()
  if (!wanted) return files.slice(0, most)
  const ranked: { file: string; rank: number }[] = []
  for (const file of files) {
    const rank = rankOf(file.toLowerCase(), wanted)
    if (rank < 9) ranked.push({ file, rank })
  }
  return ranked
    .sort((a, b) => a.rank - b.rank || a.file.length - b.file.length || (a.file < b.file ? -1 : 1))
    .slice(0, most)
    .map((one) => one.file)
}

function rankOf(file: string, wanted: string): number {
  const name = file.slice(file.lastIndexOf('/') + 1)
  if (name === wanted) return 0
  if (name.startsWith(wanted)) return 1
  if (name.includes(wanted)) return 2
  if (file.includes(wanted)) return 3
  let at = -1
  for (const letter of wanted) {
    at = file.indexOf(letter, at + 1)
    if (at < 0) return 9
  }
  return 4
}

export function fittingCommands<T extends Choice>(commands: T[], words: string): T[] {
  const wanted = words.toLowerCase()
  const starts = commands.filter((command) => command.name.toLowerCase().startsWith(wanted))
  const has = commands.filter((command) => !starts.includes(command) && command.name.toLowerCase().includes(wanted))
  return [...starts, ...has]
}

// What the rows of a timeline share with the page around them, so that it need not be handed through every part.
import { getContext, setContext } from 'svelte'
import type { Answer, FilePatch, MessageWords, UndoPreview } from '../api/types'

export interface Reading {
  /** True if a row's fold is open. */
  isOpen(key: string): boolean
  /** Folds or unfolds; `button` stays where it is. */
  toggle(key: string, button: Element): void
  words(message: string): MessageWords | undefined
  /** Asks for all words of a message of which only the beginning is here. */
  wantWhole(message: string): void
  nameOf(person: string | null | undefined): string | null
  isMine(by: MessageWords['by']): boolean
  /** What the person may do here. */
  may: { prompt: boolean; manage: boolean; approve: boolean; fork: boolean }
  agent: string
  answer(approval: string, given: Answer, remember?: 'session' | 'always'): Promise<void>
  previewUndo(turn: number): Promise<UndoPreview>
  undo(turn: number, which: { all?: boolean; only?: string[] }): Promise<void>
  redo(turn: number): Promise<void>
  fork(turn: number): Promise<void>
  /** The patch of one file of a turn's changes, from a byte of it on: nothing of it is cut. */
  filePatch(turn: number, path: string, from: number): Promise<FilePatch>
  copyAnswer(turn: number): Promise<boolean>
  /** Words that one is looking for, to be shown. */
  isFound(key: string): boolean
}

const KEY = Symbol('reading')

export const setReading = (reading: Reading) => setContext(KEY, reading)
export const getReading = () => getContext<Reading>(KEY)

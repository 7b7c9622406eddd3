// The few classes that code is coloured by, and ranges of a text that have one.

/** Each has a colour in Code.svelte. */
export type CodeClass = 'keyword' | 'name' | 'string' | 'number' | 'comment' | 'meta' | 'plus' | 'minus'

/** Characters from one place to another. Ranges are in order and do not overlap. */
export interface CodeRange {
  readonly from: number
  readonly to: number
  readonly as: CodeClass
}

/** What the worker is asked. */
export interface CodeAsked {
  readonly text: string
  readonly language: string
}

/** What it answers: nothing if it does not know the language, or there is too much to colour. */
export type CodeAnswered = readonly CodeRange[] | null

// A text that is shown while it grows: it is read on where it was read before, and anew if it became another text.

import { Markdown, type Clock } from './markdown'
import type { Block } from './tree'

export class Growing {
  #reader: Markdown
  #text = ''
  #isDone = false
  readonly #clock: Clock | undefined

  constructor(clock?: Clock) {
    this.#clock = clock
    this.#reader = new Markdown(clock)
  }

  /** True if some of the text was not read for want of time: `read` goes on. */
  get isBehind(): boolean {
    return this.#reader.isBehind
  }

  /** The tree of the text, which is `done` when nothing will be added to it. */
  show(text: string, done: boolean): Block[] {
    const goesOn = !(this.#isDone && text.length > this.#text.length) && text.startsWith(this.#text)
    if (!goesOn) {
      this.#reader = new Markdown(this.#clock)
      this.#text = ''
      this.#isDone = false
    }
    if (text.length > this.#text.length) this.#reader.append(text.slice(this.#text.length))
    this.#text = text
    if (done && !this.#isDone) this.#reader.end()
    this.#isDone ||= done
    return this.#reader.blocks()
  }

  /** Reads for another stretch, and gives back the tree. */
  read(): Block[] {
    this.#reader.read()
    return this.#reader.blocks()
  }
}

// One line of Markdown and how far it has been read. Columns count a tab up to the next multiple of four, as editors show it.

const TAB = 4

export class Line {
  readonly #text: string
  #at = 0
  #column = 0
  /** Columns left of a tab that was taken in part. */
  #owed = 0
  #wordAt = -1
  #wordColumn = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Columns of white space before the next word. */
  get indent(): number {
    this.#look()
    return this.#wordColumn - this.#column
  }

  get isBlank(): boolean {
    this.#look()
    return this.#wordAt >= this.#text.length
  }

  /** The first character of the next word. */
  get first(): string {
    this.#look()
    return this.#text.charAt(this.#wordAt)
  }

  /** From the next word to the end. */
  words(): string {
    this.#look()
    return this.#text.slice(this.#wordAt)
  }

  /** Everything that has not been taken. */
  rest(): string {
    return ' '.repeat(this.#owed) + this.#text.slice(this.#at + (this.#owed > 0 ? 1 : 0))
  }

  /** Takes so many columns of white space, or what there is of it. */
  take(columns: number): void {
    let left = columns
    while (left > 0) {
      const char = this.#text.charAt(this.#at)
      if (char !== ' ' && char !== '\t') return
      const width = this.#owed || (char === '\t' ? TAB - (this.#column % TAB) : 1)
      const taken = Math.min(width, left)
      left -= taken
      this.#column += taken
      this.#owed = width - taken
      if (this.#owed === 0) this.#at++
    }
  }

  /** Takes so many characters that are no white space. */
  skip(characters: number): void {
    this.#at += characters
    this.#column += characters
  }

  /** Takes the mark of a quote and the space after it. */
  skipQuote(): void {
    this.take(this.indent)
    this.skip(1)
    this.take(1)
  }

  /** White space is looked at once, however often it is asked for: a line of nothing else is not read again and again. */
  #look(): void {
    if (this.#wordAt >= this.#at) return
    let at = this.#at
    let column = this.#column
    for (let char = this.#text.charAt(at); char === ' ' || char === '\t'; char = this.#text.charAt(++at)) {
      column += char === '\t' ? TAB - (column % TAB) : 1
    }
    this.#wordAt = at
    this.#wordColumn = column
  }
}

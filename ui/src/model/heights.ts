// The heights of many rows, with sums: where a row begins, and which one is at a place. A change costs one block, not all rows.
const BLOCK = 128

export class Heights {
  readonly keys: string[] = []
  #heights: number[] = []
  #sums: number[] = []

  get length(): number {
    return this.keys.length
  }

  get total(): number {
    return this.#sums.reduce((sum, block) => sum + block, 0)
  }

  push(key: string, height: number): void {
    const at = this.keys.push(key) - 1
    this.#heights.push(height)
    const block = Math.floor(at / BLOCK)
    this.#sums[block] = (this.#sums[block] ?? 0) + height
  }

  /** Forgets all rows from this one on. */
  truncate(to: number): void {
    if (to >= this.keys.length) return
    this.keys.length = to
    this.#heights.length = to
    const block = Math.floor(to / BLOCK)
    this.#sums.length = Math.ceil(to / BLOCK)
    if (to % BLOCK) this.#sums[block] = this.#sumOf(block * BLOCK, to)
  }

  at(index: number): number {
    return this.#heights[index] ?? 0
  }

  set(index: number, height: number): void {
    const known = this.#heights[index]
    if (known === undefined || known === height) return
    this.#heights[index] = height
    const block = Math.floor(index / BLOCK)
    this.#sums[block] = (this.#sums[block] ?? 0) + height - known
  }

  /** Where a row begins. */
  offsetOf(index: number): number {
    const to = Math.min(index, this.keys.length)
    const block = Math.floor(to / BLOCK)
    let sum = 0
    for (let before = 0; before < block; before++) sum += this.#sums[before]!
    return sum + this.#sumOf(block * BLOCK, to)
  }

  /** The row at a place; the first or the last if it is beyond them. */
  indexAt(offset: number): number {
    let block = 0
    let left = offset
    while (block < this.#sums.length - 1 && left >= this.#sums[block]!) left -= this.#sums[block++]!
    let index = block * BLOCK
    const end = Math.min(this.keys.length, index + BLOCK) - 1
    while (index < end && left >= this.#heights[index]!) left -= this.#heights[index++]!
    return Math.max(0, Math.min(index, this.keys.length - 1))
  }

  #sumOf(from: number, to: number): number {
    let sum = 0
    for (let at = from; at < to; at++) sum += this.#heights[at]!
    return sum
  }
}

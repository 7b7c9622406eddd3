// What a page asks of the server: whether it is under way, what came of it, and what went wrong, so that each page says it alike.
//
// Whoever is refused for what they are may have become something else meanwhile: they are asked after again, and the page offers what
// is theirs now.
import { isRefused } from '../api/problem'
import { person } from './person.svelte'

function heed(error: unknown): void {
  if (isRefused(error, 'role_too_low', 'right_missing', 'not_allowed')) void person.look()
}

/** Something that a person does: one at a time. */
export class Act {
  isBusy = $state(false)
  problem = $state.raw<unknown>(null)
  told = $state('')

  /** What `work` came to; nothing if it went wrong, which `problem` then says. */
  async run<T>(work: () => Promise<T>, told: string | ((done: T) => string) = ''): Promise<T | undefined> {
    if (this.isBusy) return undefined
    this.isBusy = true
    this.problem = null
    this.told = ''
    try {
      const done = await work()
      this.told = typeof told === 'string' ? told : told(done)
      return done
    } catch (error) {
      this.problem = error
      heed(error)
      return undefined
    } finally {
      this.isBusy = false
    }
  }
}

/** Something that is read from the server. What was read before stays until the next is there. */
export class Loaded<T> {
  value = $state.raw<T | null>(null)
  problem = $state.raw<unknown>(null)
  isLoading = $state(false)
  #asked = 0
  readonly #read: () => Promise<T>

  constructor(read: () => Promise<T>) {
    this.#read = read
  }

  async load(): Promise<void> {
    const asked = ++this.#asked
    this.isLoading = true
    try {
      const value = await this.#read()
      if (asked !== this.#asked) return
      this.value = value
      this.problem = null
    } catch (error) {
      if (asked === this.#asked) this.problem = error
      heed(error)
    } finally {
      if (asked === this.#asked) this.isLoading = false
    }
  }
}

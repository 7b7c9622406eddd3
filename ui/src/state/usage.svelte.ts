// What was used on the last days in every session that one sees: one question, which the server has the sums for.
import * as calls from '../api/calls'
import type { UsageOfDays } from '../api/types'

export class UsageOf {
  told = $state.raw<UsageOfDays | null>(null)
  state = $state<'loading' | 'ready'>('loading')
  problem = $state.raw<unknown>(null)
  #load = 0

  async load(): Promise<void> {
    const load = ++this.#load
    this.state = 'loading'
    this.problem = null
    try {
      const told = await calls.usage()
      if (load === this.#load) this.told = told
    } catch (error) {
      if (load === this.#load) this.problem = error
    } finally {
      if (load === this.#load) this.state = 'ready'
    }
  }

  end(): void {
    this.#load += 1
  }
}

// What the newest sessions have used. The server has no sums yet: each session is asked for what its agent has said.
import * as calls from '../api/calls'
import type { Session } from '../api/types'

/** As many sessions as are asked for, so that the page is there in a moment and the server has other things to do. */
export const SESSIONS_MAX = 100
/** Questions under way: fewer than the connections that a browser opens to one server. */
const AT_ONCE = 3

export class UsageOf {
  sessions = $state.raw<Session[]>([])
  state = $state<'loading' | 'ready'>('loading')
  asked = $state(0)
  total = $state(0)
  isCut = $state(false)
  problem = $state.raw<unknown>(null)
  #load = 0

  async load(): Promise<void> {
    const load = ++this.#load
    this.state = 'loading'
    this.problem = null
    this.asked = 0
    try {
      const page = await calls.sessions({ which: 'all', limit: SESSIONS_MAX })
      if (load !== this.#load) return
      this.total = page.items.length
      this.isCut = Boolean(page.next)
      const found: Session[] = []
      const waiting = [...page.items]
      const one = async () => {
        for (let row = waiting.pop(); row && load === this.#load; row = waiting.pop()) {
          const told = await calls.session(row.id).catch(() => null)
          if (told) found.push(told)
          this.asked += 1
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, one))
      if (load !== this.#load) return
      this.sessions = found
      this.state = 'ready'
    } catch (error) {
      if (load !== this.#load) return
      this.problem = error
      this.state = 'ready'
    }
  }

  end(): void {
    this.#load += 1
  }
}

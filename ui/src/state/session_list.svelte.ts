// The rows of all sessions that one may see, kept up by the stream. Pages read `rows` and are told by `version`.
import * as calls from '../api/calls'
import type { Session } from '../api/types'
import { countNeeds } from '../model/sessions'
import { atMost } from './frame'
import { live } from './live.svelte'

/** The most rows a browser holds: what is older is found by asking the server. */
const ROWS_MAX = 10_000
const FIRST_PAGE = 60
const PAGE = 500
const NEEDS = ['questions', 'held', 'unread'] as const
/** Ten thousand rows are put in order anew with every look; nobody reads faster than that. */
const LOOK_MS = 150

class SessionList {
  readonly rows = new Map<string, Session>()
  version = $state(0)
  state = $state<'loading' | 'ready' | 'failed'>('loading')
  problem = $state.raw<unknown>(null)
  /** There are more on the server than are here. */
  isCut = $state(false)
  needs = $derived.by(() => {
    void this.version
    return countNeeds(this.rows.values())
  })
  #changed = atMost(LOOK_MS, () => (this.version += 1))
  #hasBegun = false
  #load = 0
  /** The rows that the stream has told of since the list was asked for. */
  #told = new Set<string>()

  begin(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    let isFirst = true
    live.hear((told) => {
      if (told.event === 'session') this.put(told.data.session)
      else if (told.event === 'gone' && this.rows.delete(told.data.session)) this.#changed()
      else if (told.event === 'began' && told.data.fresh) {
        // The stream begins at the present: what changed between the list and it is in a list that is read after it began.
        if (!isFirst || this.state === 'ready') void this.load()
        isFirst = false
      }
    })
    void this.load()
  }

  async load(): Promise<void> {
    const load = ++this.#load
    this.#told.clear()
    const seen = new Set<string>()
    try {
      let page = await calls.sessions({ limit: FIRST_PAGE })
      for (;;) {
        if (load !== this.#load) return
        for (const row of page.items) {
          seen.add(row.id)
          this.#take(row)
        }
        this.state = 'ready'
        this.problem = null
        this.#changed()
        if (!page.next || this.rows.size >= ROWS_MAX) break
        if (page.items.length === FIRST_PAGE) void this.#loadNeedy(load)
        page = await calls.sessions({ limit: PAGE, cursor: page.next })
      }
      this.isCut = Boolean(page.next)
      // What the server did not list any more is not to be seen any more.
      if (!this.isCut) for (const id of this.rows.keys()) if (!seen.has(id) && !this.#told.has(id)) this.rows.delete(id)
      this.#changed()
    } catch (error) {
      if (load !== this.#load) return
      this.problem = error
      if (this.state === 'loading') this.state = 'failed'
    }
  }

  /** The sessions that need somebody come before all others, wherever they are in the list: the title counts them. */
  async #loadNeedy(load: number): Promise<void> {
    await Promise.all(
      NEEDS.map(async (needs) => {
        const page = await calls.sessions({ needs, archived: false, limit: PAGE }).catch(() => null)
        if (!page || load !== this.#load) return
        for (const row of page.items) this.#take(row)
        this.#changed()
      }),
    )
  }

  put(row: Session): void {
    this.#told.add(row.id)
    this.#take(row)
    this.#changed()
  }

  /** A row with something of it changed here, before the server says so. */
  change(id: string, change: Partial<Session>): void {
    const row = this.rows.get(id)
    if (row) this.put({ ...row, ...change })
  }

  #take(row: Session): void {
    const known = this.rows.get(row.id)
    // A list that was asked for before an event must not put back what the event said.
    if (known && known.number > row.number) return
    this.rows.set(row.id, row)
  }
}

export const sessionList = new SessionList()

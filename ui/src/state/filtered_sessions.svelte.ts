// Sessions of a list that is narrowed: as the server narrows it, a page at a time, kept up by the stream. The list of all open
// sessions is in session_list.svelte.ts.
import * as calls from '../api/calls'
import type { Session, SessionCounts } from '../api/types'
import { fits, type Look, queryOf } from '../model/session_filter'
import { live } from './live.svelte'

const PAGE = 100
/** Changes come in bursts: the server counts anew once they are over. */
const COUNT_MS = 600

export class FilteredSessions {
  rows = $state.raw<ReadonlyMap<string, Session>>(new Map())
  state = $state<'none' | 'loading' | 'ready' | 'failed'>('none')
  problem = $state.raw<unknown>(null)
  next = $state.raw<string | null>(null)
  #look: Look | null = null
  #words = ''
  #asked = 0

  /** Asks for another list; none if there is nothing to narrow. */
  show(look: Look | null, words: string): void {
    this.#look = look
    this.#words = words
    this.#asked += 1
    this.rows = new Map()
    this.next = null
    this.state = look ? 'loading' : 'none'
    if (look) void this.#page(this.#asked, null)
  }

  more(): void {
    if (this.state !== 'ready' || !this.next) return
    this.state = 'loading'
    void this.#page(this.#asked, this.next)
  }

  again(): void {
    if (this.#look) this.show(this.#look, this.#words)
  }

  /** Keeps the rows up for as long as somebody looks at them. */
  listen(): () => void {
    return live.hear((told) => {
      if (told.event === 'session') this.put(told.data.session)
      else if (told.event === 'gone') this.#drop(told.data.session)
      // What changed while there was no line is in no event.
      else if (told.event === 'began' && told.data.fresh && this.state === 'ready') this.again()
    })
  }

  /** A row as it is now. It comes into the list or leaves it; words are looked for by the server alone. */
  put(row: Session): void {
    if (!this.#look) return
    const known = this.rows.get(row.id)
    if (known && known.number > row.number) return
    if (!fits(row, this.#look)) return this.#drop(row.id)
    if (!known && this.#words.trim()) return
    this.rows = new Map(this.rows).set(row.id, row)
  }

  #drop(id: string): void {
    if (!this.rows.has(id)) return
    const rest = new Map(this.rows)
    rest.delete(id)
    this.rows = rest
  }

  async #page(asked: number, cursor: string | null): Promise<void> {
    try {
      const page = await calls.sessions({ ...queryOf(this.#look!, this.#words), limit: PAGE, cursor })
      if (asked !== this.#asked) return
      const rows = new Map(this.rows)
      for (const row of page.items) if ((rows.get(row.id)?.number ?? -1) <= row.number) rows.set(row.id, row)
      this.rows = rows
      this.next = page.next ?? null
      this.problem = null
      this.state = 'ready'
    } catch (error) {
      if (asked !== this.#asked) return
      this.problem = error
      this.state = 'failed'
    }
  }
}

/** How many sessions there are and need one, as the server counts them. */
export class Counts {
  value = $state.raw<SessionCounts | null>(null)
  #timer: ReturnType<typeof setTimeout> | null = null

  listen(): () => void {
    void this.#count()
    const stop = live.hear((told) => {
      if (told.event !== 'session' && told.event !== 'gone' && told.event !== 'began') return
      this.#timer ??= setTimeout(() => {
        this.#timer = null
        void this.#count()
      }, COUNT_MS)
    })
    return () => {
      stop()
      if (this.#timer) clearTimeout(this.#timer)
    }
  }

  async #count(): Promise<void> {
    // Without an answer the list goes without numbers.
    this.value = await calls.sessionCounts().catch(() => this.value)
  }
}

// What was said, looked for in every session that one may see, or in one: a page at a time, the last asked for alone.
import { SvelteMap } from 'svelte/reactivity'
import * as calls from '../api/calls'
import type { Hit, Session } from '../api/types'
import { unknownSessions } from '../model/search'
import { sessionList } from './session_list.svelte'

/** Time to go on typing before the server is asked. */
const TYPING_MS = 250
/** Sessions that are asked for by themselves, because they are in no list here: no more than a page of hits can have. */
const SESSIONS_MAX = 50
export const WORDS_CHARS_MAX = 200

export class Search {
  hits = $state.raw<Hit[]>([])
  state = $state<'none' | 'looking' | 'ready' | 'failed'>('none')
  problem = $state.raw<unknown>(null)
  next = $state.raw<string | null>(null)
  /** Sessions that are in no list here: ended ones, and those of long ago. */
  readonly others = new SvelteMap<string, Session>()
  #words = ''
  #session: string | undefined
  #asked = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Looks for these words once nobody goes on typing. What was found before stays until then. */
  look(words: string, session?: string): void {
    clearTimeout(this.#timer)
    const asked = ++this.#asked
    this.#words = words.trim().slice(0, WORDS_CHARS_MAX)
    this.#session = session
    if (!this.#words) {
      this.hits = []
      this.next = null
      this.state = 'none'
      return
    }
    this.state = 'looking'
    this.#timer = setTimeout(() => void this.#page(asked, null), TYPING_MS)
  }

  more(): void {
    if (this.state !== 'ready' || !this.next) return
    this.state = 'looking'
    void this.#page(++this.#asked, this.next)
  }

  again(): void {
    this.state = 'looking'
    void this.#page(++this.#asked, null)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#asked += 1
  }

  async #page(asked: number, cursor: string | null): Promise<void> {
    try {
      const page = await calls.search(this.#words, { session: this.#session, limit: this.#limit, cursor })
      if (asked !== this.#asked) return
      this.hits = cursor ? [...this.hits, ...page.items] : page.items
      this.next = page.next ?? null
      this.problem = null
      this.state = 'ready'
      for (const id of unknownSessions(page.items, sessionList.rows).filter((one) => !this.others.has(one)).slice(0, SESSIONS_MAX)) {
        // A session that has gone meanwhile is called by its id.
        calls.session(id).then((row) => this.others.set(id, row), () => {})
      }
    } catch (error) {
      if (asked !== this.#asked) return
      this.problem = error
      this.state = 'failed'
    }
  }
}

/** The rows of the sessions of hits, whoever has them. */
export function rowsFor(hits: readonly Hit[], others: ReadonlyMap<string, Session>): Map<string, Session> {
  void sessionList.version
  const rows = new Map<string, Session>()
  for (const { session } of hits) {
    const row = sessionList.rows.get(session) ?? others.get(session)
    if (row) rows.set(session, row)
  }
  return rows
}

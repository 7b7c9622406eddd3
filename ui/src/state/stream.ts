// The one stream of a browser: opened with a cursor and the numbers of what is watched, and again with what is known when it ends.
//
// Nothing is lost by that: the cursor and the numbers say where to go on, and what was told already is not told twice. When what is
// watched changes, a new stream is opened first and the old one dropped once the new one has begun.
import type { StreamEvent } from '../api/event_stream'
import { Refused } from '../api/problem'
import type { Fact, Live, Progress, Readiness, Session } from '../api/types'

export type Told =
  | { event: 'began'; data: { cursor: string; fresh: boolean } }
  | { event: 'session'; data: { cursor: string; session: Session } }
  | { event: 'gone'; data: { session: string; cursor?: string } }
  | { event: 'fact'; data: { session: string; fact: Fact } }
  | { event: 'live'; data: { session: string; live: Live } }
  | { event: 'progress'; data: { session: string; progress: Progress | null } }
  | { event: 'readiness'; data: { session: string; readiness: Readiness } }

const NAMES: ReadonlySet<string> = new Set(['began', 'session', 'gone', 'fact', 'live', 'progress', 'readiness'])

export interface Connection {
  state: 'connecting' | 'live' | 'lost' | 'signed-out'
  /** Since when nothing comes, and when it is tried again, by this machine's clock. */
  since: number | null
  again: number | null
}

/** What the stream needs of the world, so that a test can be one. */
export interface World {
  read(address: string, signal: AbortSignal, tell: (event: StreamEvent) => void, alive: () => void): Promise<void>
  now(): number
  after(ms: number, then: () => void): () => void
  random(): number
}

/** The most sessions that a stream may watch: the server's bound. */
export const WATCHES_MAX = 32
/** So that some sessions asked for at once make one new stream. */
const GATHER_MS = 20
/** What is not watched any more may stay that long in the stream: opening another one costs more than some facts. */
const LEAVE_MS = 5_000
const RETRY_MS = 1_000
const RETRY_MS_MAX = 15_000
/** A stream that has not begun by then is given up: a line that swallows everything says nothing either. */
const BEGIN_MS_MAX = 15_000
/** A stream says something at least this often, were it a comment; longer, and the line is dead without having said so. */
const SILENCE_MS = 45_000

interface Reading {
  abort: AbortController
  hasBegun: boolean
  heardAt: number
}

export class BrowserStream {
  cursor: string | null = null
  connection: Connection = { state: 'connecting', since: null, again: null }
  #watched = new Map<string, number>()
  #current: Reading | null = null
  #coming: Reading | null = null
  #retries = 0
  #cancel: (() => void) | null = null
  #cancelSilence: (() => void) | null = null
  #isStopped = true
  readonly #world: World
  readonly #tell: (told: Told) => void
  readonly #connected: (connection: Connection) => void

  constructor(world: World, tell: (told: Told) => void, connected: (connection: Connection) => void) {
    this.#world = world
    this.#tell = tell
    this.#connected = connected
  }

  start(cursor: string | null): void {
    this.cursor = cursor
    this.#isStopped = false
    this.#open()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel?.()
    this.#cancelSilence?.()
    this.#coming?.abort.abort()
    this.#current?.abort.abort()
    this.#coming = this.#current = null
  }

  /** Asks for the facts of a session after a number. One that is watched already goes on where it is. */
  watch(session: string, after: number): void {
    const known = this.#watched.get(session)
    if (known !== undefined) return
    this.#watched.set(session, after)
    // The oldest goes: somebody who looks at it asks for what is missing, and for it again.
    for (const oldest of this.#watched.keys()) if (this.#watched.size > WATCHES_MAX) this.#watched.delete(oldest)
    if (!this.#isStopped) this.#later(GATHER_MS)
  }

  unwatch(session: string): void {
    if (this.#watched.delete(session) && !this.#isStopped) this.#later(LEAVE_MS)
  }

  /** The number that the last fact told of a session had, if it is watched. */
  numberOf(session: string): number | undefined {
    return this.#watched.get(session)
  }

  /** Tries again at once, because something says that it may work now. */
  nudge(): void {
    if (this.#isStopped || this.connection.state === 'live') return
    this.#retries = 0
    this.#open()
  }

  address(): string {
    const query = new URLSearchParams()
    if (this.cursor) query.set('cursor', this.cursor)
    for (const [session, number] of this.#watched) query.append('watch', `${session}:${number}`)
    return `/api/v1/stream?${query}`
  }

  #later(ms: number): void {
    this.#cancel?.()
    this.#cancel = this.#world.after(ms, () => this.#open())
  }

  #open(): void {
    this.#cancel?.()
    this.#cancel = null
    if (this.#isStopped) return
    this.#coming?.abort.abort()
    const reading: Reading = { abort: new AbortController(), hasBegun: false, heardAt: this.#world.now() }
    this.#coming = reading
    const fresh = this.cursor === null
    const giveUp = this.#world.after(BEGIN_MS_MAX, () => {
      if (this.#coming !== reading) return
      reading.abort.abort()
      this.#ended(reading, null)
    })
    const alive = () => (reading.heardAt = this.#world.now())
    this.#world
      .read(this.address(), reading.abort.signal, (event) => this.#hear(reading, event, fresh), alive)
      .then(() => this.#ended(reading, null))
      .catch((error: unknown) => this.#ended(reading, error))
      .finally(giveUp)
  }

  #hear(reading: Reading, event: StreamEvent, fresh: boolean): void {
    if (reading.abort.signal.aborted || !NAMES.has(event.event)) return
    const told = { event: event.event, data: JSON.parse(event.data) } as Told
    if (told.event === 'began') {
      told.data.fresh = fresh
      this.#begun(reading)
    }
    if ('cursor' in told.data && told.data.cursor) this.cursor = told.data.cursor
    if (told.event === 'fact') {
      const { session, fact } = told.data
      const known = this.#watched.get(session)
      // Of a session that is not watched any more, or from two streams at once.
      if (known === undefined || fact.number <= known) return
      this.#watched.set(session, fact.number)
    }
    if (told.event === 'gone') this.#watched.delete(told.data.session)
    this.#tell(told)
  }

  #begun(reading: Reading): void {
    reading.hasBegun = true
    if (this.#coming === reading) {
      this.#current?.abort.abort()
      this.#current = reading
      this.#coming = null
    }
    this.#retries = 0
    this.#connect({ state: 'live', since: null, again: null })
    this.#watchSilence()
  }

  #ended(reading: Reading, error: unknown): void {
    if (reading !== this.#current && reading !== this.#coming) return
    if (this.#coming === reading) this.#coming = null
    if (this.#current === reading) this.#current = null
    if (this.#isStopped || this.#coming) return
    if (error instanceof Refused && error.status === 401) return this.#connect({ state: 'signed-out', since: this.#world.now(), again: null })
    // A cursor that the server does not know any more: begin at the present, and say so by `fresh`.
    if (error instanceof Refused && (error.code === 'bad_cursor' || error.code === 'bad_address')) this.cursor = null
    const told = error instanceof Refused ? (error.problem.retry_after ?? 0) * 1_000 : 0
    const wait = Math.max(told, Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** this.#retries) * (0.75 + this.#world.random() / 2))
    this.#retries += 1
    if (!this.#current) {
      const since = this.connection.since ?? this.#world.now()
      this.#connect({ state: 'lost', since, again: this.#world.now() + wait })
    }
    this.#later(wait)
  }

  #watchSilence(): void {
    this.#cancelSilence?.()
    this.#cancelSilence = this.#world.after(SILENCE_MS, () => {
      const reading = this.#current
      if (!reading || this.#isStopped) return
      if (this.#world.now() - reading.heardAt < SILENCE_MS) return this.#watchSilence()
      reading.abort.abort()
      this.#current = null
      this.#connect({ state: 'lost', since: this.#world.now(), again: this.#world.now() })
      this.#open()
    })
  }

  #connect(connection: Connection): void {
    this.connection = connection
    this.#connected(connection)
  }
}

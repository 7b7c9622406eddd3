// The tabs of one browser and person, with one stream among them. One tab leads: it holds the lock, reads the stream and tells the
// others over a channel. When it goes, the lock goes to another, which resumes where it had heard the last word.
//
// A tab is told apart by a lock of its own, which it holds for as long as it lives: so a leader learns that nobody there watches any
// more. A leader that is frozen holds its lock and says nothing: who looks at a page asks for a sign of life, and without one takes
// the lock from it. Facts that a tab has missed all the same it sees by their numbers, and asks the server for them.
import type { Connection, Told } from './stream'

/** What goes between tabs. */
type Word =
  | { kind: 'told'; told: Told }
  | { kind: 'connection'; connection: Connection; cursor: string | null }
  | { kind: 'leads'; tab: string }
  | { kind: 'hello'; tab: string }
  | { kind: 'watch'; tab: string; session: string; after: number }
  | { kind: 'unwatch'; tab: string; session: string }
  | { kind: 'ask' }
  | { kind: 'here' }

export interface Channel {
  postMessage(word: unknown): void
  onmessage: ((event: MessageEvent) => void) | null
  close(): void
}

export interface Locks {
  request(name: string, options: LockOptions, then: () => Promise<void> | void): Promise<unknown>
}

/** The stream as the leader drives it. */
export interface Stream {
  cursor: string | null
  connection: Connection
  start(cursor: string | null): void
  stop(): void
  watch(session: string, after: number): void
  unwatch(session: string): void
  nudge(): void
}

export interface HubWorld {
  tab: string
  person: string
  channel: Channel
  locks: Locks
  stream(tell: (told: Told) => void, connected: (connection: Connection) => void): Stream
  after(ms: number, then: () => void): () => void
}

/** How long a leader may take to say that it is there. */
const ANSWER_MS = 4_000

export class Hub {
  connection: Connection = { state: 'connecting', since: null, again: null }
  isLeader = false
  readonly #world: HubWorld
  readonly #tell: (told: Told) => void
  readonly #connected: (connection: Connection) => void
  #stream: Stream | null = null
  #cursor: string | null = null
  #mine = new Map<string, { after: () => number; count: number }>()
  #tabs = new Map<string, Set<string>>()
  #release: (() => void) | null = null
  #queued = new AbortController()
  #isClosed = false
  #isAsking = false
  #cancelAsking: (() => void) | null = null
  /** True once the lock of this tab is held. A leader that finds it free takes this tab for gone: nothing is wished for before. */
  #lives = false
  #letGo!: () => void

  constructor(world: HubWorld, tell: (told: Told) => void, connected: (connection: Connection) => void) {
    this.#world = world
    this.#tell = tell
    this.#connected = connected
    world.channel.onmessage = (event: { data: unknown }) => this.#hear(event.data as Word)
    // For as long as this tab lives.
    void world.locks.request(`homing tab ${world.tab}`, {}, () => this.#live())
    this.#say({ kind: 'hello', tab: world.tab })
    this.#queue()
  }

  /** Watches a session after the number that is there at the moment of asking. Ends with what it returns. */
  watch(session: string, after: () => number): () => void {
    const known = this.#mine.get(session)
    this.#mine.set(session, { after, count: (known?.count ?? 0) + 1 })
    if (!known) this.#wish(session)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const mine = this.#mine.get(session)
      if (mine && mine.count > 1) return void (mine.count -= 1)
      this.#mine.delete(session)
      this.#say({ kind: 'unwatch', tab: this.#world.tab, session })
      this.#forget(this.#world.tab, session)
    }
  }

  /** Somebody looks at this tab, or the machine is connected again: now is a good moment to try. */
  nudge(): void {
    if (this.#stream) return this.#stream.nudge()
    if (this.#isAsking || this.#isClosed) return
    this.#isAsking = true
    this.#cancelAsking = this.#world.after(ANSWER_MS, () => {
      this.#isAsking = false
      if (!this.#stream && !this.#isClosed) this.#take()
    })
    this.#say({ kind: 'ask' })
  }

  /** Gives the lead away, if it is here: the browser is about to freeze this tab. */
  rest(): void {
    if (!this.#stream) return
    this.#stopLeading()
    if (!this.#isClosed) this.#queue()
  }

  close(): void {
    this.#isClosed = true
    this.#cancelAsking?.()
    this.#queued.abort()
    this.#stopLeading()
    this.#letGo?.()
    this.#world.channel.onmessage = null
    this.#world.channel.close()
  }

  #live(): Promise<void> | void {
    if (this.#isClosed) return
    this.#lives = true
    if (!this.#stream) for (const session of this.#mine.keys()) this.#wish(session)
    return new Promise<void>((resolve) => (this.#letGo = resolve))
  }

  #queue(): void {
    this.#queued = new AbortController()
    const options = { signal: this.#queued.signal }
    this.#lead(options)
  }

  #take(): void {
    this.#queued.abort()
    this.#lead({ steal: true })
  }

  #lead(options: LockOptions): void {
    let mine = false
    this.#world.locks
      .request(`homing stream ${this.#world.person}`, options, () => {
        if (this.#isClosed) return
        mine = true
        return new Promise<void>((resolve) => this.#startLeading(resolve))
      })
      .catch(() => {
        // Given up in the queue, or taken away by a tab that thought this one dead: then wait for one's turn again.
        if (!mine || this.#isClosed) return
        this.#stopLeading()
        this.#queue()
      })
  }

  #startLeading(release: () => void): void {
    this.#release = release
    this.isLeader = true
    this.#tabs.clear()
    const stream = this.#world.stream(
      (told) => {
        this.#say({ kind: 'told', told })
        this.#takeIn(told)
      },
      (connection) => {
        this.#say({ kind: 'connection', connection, cursor: stream.cursor })
        this.#connect(connection)
      },
    )
    this.#stream = stream
    for (const [session, { after }] of this.#mine) {
      this.#remember(this.#world.tab, session)
      stream.watch(session, after())
    }
    stream.start(this.#cursor)
    this.#say({ kind: 'leads', tab: this.#world.tab })
  }

  #stopLeading(): void {
    this.#stream?.stop()
    this.#stream = null
    this.isLeader = false
    this.#release?.()
    this.#release = null
  }

  #wish(session: string): void {
    const after = this.#mine.get(session)?.after() ?? 0
    if (this.#stream) {
      this.#remember(this.#world.tab, session)
      this.#stream.watch(session, after)
    } else if (this.#lives) this.#say({ kind: 'watch', tab: this.#world.tab, session, after })
  }

  #hear(word: Word): void {
    switch (word.kind) {
      case 'told':
        this.#isHere()
        return this.#stream ? undefined : this.#takeIn(word.told)
      case 'connection':
        this.#isHere()
        this.#cursor = word.cursor ?? this.#cursor
        return this.#stream ? undefined : this.#connect(word.connection)
      case 'leads':
        this.#isHere()
        for (const session of this.#mine.keys()) this.#wish(session)
        return
      case 'hello':
      case 'ask':
        if (!this.#stream) return
        this.#say({ kind: 'here' })
        return this.#say({ kind: 'connection', connection: this.#stream.connection, cursor: this.#stream.cursor })
      case 'here':
        return this.#isHere()
      case 'watch':
        if (!this.#stream) return
        this.#remember(word.tab, word.session)
        return this.#stream.watch(word.session, word.after)
      case 'unwatch':
        return this.#forget(word.tab, word.session)
    }
  }

  /** The leader is alive. */
  #isHere(): void {
    this.#isAsking = false
    this.#cancelAsking?.()
  }

  #remember(tab: string, session: string): void {
    const watched = this.#tabs.get(tab)
    if (watched) return void watched.add(session)
    this.#tabs.set(tab, new Set([session]))
    if (tab === this.#world.tab) return
    // Granted when that tab is gone.
    void this.#world.locks.request(`homing tab ${tab}`, {}, () => {
      const left = this.#tabs.get(tab) ?? new Set()
      for (const session of [...left]) this.#forget(tab, session)
    })
  }

  #forget(tab: string, session: string): void {
    const watched = this.#tabs.get(tab)
    if (!watched?.delete(session)) return
    if (watched.size === 0) this.#tabs.delete(tab)
    for (const others of this.#tabs.values()) if (others.has(session)) return
    this.#stream?.unwatch(session)
  }

  #takeIn(told: Told): void {
    if ('cursor' in told.data && told.data.cursor) this.#cursor = told.data.cursor
    this.#tell(told)
  }

  #connect(connection: Connection): void {
    this.connection = connection
    this.#connected(connection)
  }

  #say(word: Word): void {
    if (!this.#isClosed) this.#world.channel.postMessage(word)
  }
}

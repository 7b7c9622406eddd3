// One session as a page shows it: its timeline, kept up by the stream; its row, queue and readiness; the words of its messages.
//
// It lives as long as somebody looks at it and a while longer, so that coming back costs nothing. Pages read its fields and are told
// of changes of the timeline by `version`, once a frame.
import * as calls from '../api/calls'
import { isPassing, isRefused, wordsOf } from '../api/problem'
import type { Fact, FactsPage, MessageWords, Progress, Queued, Readiness, ScopeRequest, Session, TurnLine } from '../api/types'
import { QUEUE_FACTS, pendingOf, textOf } from '../model/queue'
import { Timeline } from '../model/timeline'
import { eachFrame } from './frame'
import { live } from './live.svelte'
import { outgoing } from './outgoing.svelte'
import { person } from './person.svelte'
import { sessionList } from './session_list.svelte'
import type { Told } from './stream'

/** How much of the log is asked for at first: enough for a tall screen of short rows, little enough to be there at once. */
const FIRST_FACTS = 120
const EARLIER_FACTS = 300
/** While older pages are fetched on the way to a turn far back. */
const JUMP_FACTS = 500
/** Facts that wait for those before them; beyond that they are asked for again. */
const AHEAD_MAX = 2_000
const WORDS_AT_ONCE = 4
const QUEUE_MS = 60
const SEEN_MS = 800
/** So long is waited for a change of scope before what was said meanwhile goes; longer, and a person says where it belongs. */
const CHANGE_MS_MAX = 20_000
/** What nobody has answered is asked for again when the stream begins anew, and after that long where it goes on. */
const AGAIN_MS = 3_000

export class SessionState {
  readonly id: string
  readonly timeline = new Timeline()
  readonly messages = new Map<string, MessageWords>()
  version = $state(0)
  state = $state<'loading' | 'ready' | 'gone' | 'failed'>('loading')
  problem = $state.raw<unknown>(null)
  row = $state.raw<Session | null>(null)
  queue = $state.raw<Queued[]>([])
  readiness = $state.raw<Readiness | null>(null)
  progress = $state.raw<Progress | null>(null)
  isFetching = $state(false)
  earlierProblem = $state.raw<unknown>(null)
  /** What was sent from here and is neither in the queue nor in the timeline yet. */
  sending = $derived.by(() => {
    void this.version
    const mine = outgoing.all.filter((one) => one.session === this.id)
    return pendingOf(mine, this.queue, (message) => this.#hasStarted(message)) as typeof mine
  })
  /** Where the reader was, for coming back. */
  place: { key: string; offset: number } | null = null

  #bump = eachFrame(() => (this.version += 1))
  #stops: (() => void)[] = []
  #ahead: Fact[] = []
  #isFilling = false
  #wanted: string[] = []
  /** The messages whose words could not be asked for. */
  #lacking = new Set<string>()
  #isQueueLacking = false
  #againTimer: ReturnType<typeof setTimeout> | null = null
  #asking = new Set<string>()
  #queueTimer: ReturnType<typeof setTimeout> | null = null
  #seenTimer: ReturnType<typeof setTimeout> | null = null
  #seen = 0
  #hasMarks = true
  #openUsers = 0
  #first: Promise<FactsPage> | null = null
  #earlier: Promise<boolean> | null = null
  #change: { isOver: () => boolean; end: () => void; over: Promise<void> } | null = null

  constructor(id: string, row: Session | null) {
    this.id = id
    this.row = row
  }

  /** Asks for the end of the log already, before it is known who is there: most often somebody is. */
  prefetch(): void {
    if (this.#first) return
    const first = calls.factsBefore(this.id, null, FIRST_FACTS)
    this.#first = first
    // Nobody was there, as it turned out: whoever comes asks again.
    first.catch(() => {
      if (this.#first === first) this.#first = null
    })
  }

  get hasAll(): boolean {
    void this.version
    return this.timeline.first === 1
  }

  open(): void {
    this.#openUsers += 1
    if (this.#openUsers > 1) return
    this.#stops = [
      live.hear((told) => this.#hear(told)),
      outgoing.whenTaken((one, receipt) => {
        if (receipt.session !== this.id) return
        // The first receipt names no door, and it was said here.
        const door = receipt.door ?? 'browser'
        this.messages.set(receipt.id, { text: textOf(one.parts), by: receipt.by ?? null, at: receipt.accepted_at, attachments: receipt.attachments, door })
        // The receipt of a send does not say what went along.
        if (one.parts.some((part) => part.type !== 'text')) this.wantWhole(receipt.id)
        this.#bump()
        this.refreshQueue()
      }),
    ]
    if (this.timeline.last === 0) void this.#load()
    else void this.#resume()
  }

  close(): void {
    this.#openUsers -= 1
    if (this.#openUsers > 0) return
    for (const stop of this.#stops) stop()
    this.#stops = []
  }

  /** Fetches the page before what is here. Whoever asks while one is on its way waits for that one. */
  earlier(limit = EARLIER_FACTS): Promise<boolean> {
    if (this.hasAll || this.timeline.first === 0) return Promise.resolve(false)
    this.#earlier ??= this.#fetchEarlier(limit).finally(() => (this.#earlier = null))
    return this.#earlier
  }

  async #fetchEarlier(limit: number): Promise<boolean> {
    this.isFetching = true
    this.earlierProblem = null
    try {
      const page = await calls.factsBefore(this.id, this.timeline.first, limit)
      this.#words(page)
      this.timeline.prepend(page.items)
      this.version += 1
      return page.items.length > 0
    } catch (error) {
      this.earlierProblem = error
      this.#againLater(error)
      return false
    } finally {
      this.isFetching = false
    }
  }

  /** Fetches back to a fact. False if that did not work out. */
  async reach(number: number): Promise<boolean> {
    while (this.timeline.first > number) if (!(await this.earlier(JUMP_FACTS))) return false
    return true
  }

  turns(before?: number): Promise<{ items: TurnLine[]; next?: number | string | null }> {
    return calls.turns(this.id, before)
  }

  /** The words of a message; asked for if they are not here. */
  wordsFor(message: string): MessageWords | undefined {
    const known = this.messages.get(message)
    if (!known) this.wantWhole(message)
    return known
  }

  /** Asks for all words of a message: pages of facts have the beginning of long ones. */
  wantWhole(message: string): void {
    if (this.#asking.has(message)) return
    this.#asking.add(message)
    this.#wanted.push(message)
    this.#askWords()
  }

  refreshQueue(): void {
    this.#queueTimer ??= setTimeout(async () => {
      this.#queueTimer = null
      try {
        this.takeQueue((await calls.queue(this.id)).items)
        this.#isQueueLacking = false
      } catch (error) {
        this.#isQueueLacking = true
        this.#againLater(error)
      }
    }, QUEUE_MS)
  }

  takeQueue(items: Queued[]): void {
    this.queue = items
    // What the server lists is not kept here any more.
    const listed = new Set(items.map((item) => item.id))
    for (const one of outgoing.all) {
      if (one.session === this.id && one.message && (listed.has(one.message) || this.#hasStarted(one.message))) outgoing.sends.drop(one.key)
    }
  }

  /**
   * Takes what the server says of the session. What is not in it is not so any more: a worktree that was left is not said. Only what is said
   * where one session is read stays, for streams and lists never say it.
   */
  takeRow(row: Session): void {
    const known = this.row
    if (known && known.number > row.number) return
    this.row = { background: known?.background, own_word: known?.own_word, ...row }
  }

  /** Asks for another scope. */
  async changeScope(wanted: ScopeRequest): Promise<void> {
    let resolve!: () => void
    const over = new Promise<void>((then) => (resolve = then))
    const end = () => {
      // Whoever writes on has seen the change: pages must not take what they say for something said before it, until the next frame.
      this.version += 1
      resolve()
    }
    const change = { isOver: () => false, end, over }
    this.#change = change
    setTimeout(end, CHANGE_MS_MAX)
    void over.then(() => this.#change === change && (this.#change = null))
    try {
      const { row, isDecided } = await calls.changeScope(this.id, wanted)
      const { timeline } = this
      // One that is not decided yet is not among the facts up to the row's number: its end is after it.
      const isHere = isDecided ? () => timeline.last >= row.number : () => timeline.decided > row.number
      change.isOver = () => isHere() && timeline.changing === null
      if (change.isOver()) end()
    } catch (error) {
      end()
      throw error
    }
  }

  /** The epoch of the scope that was asked for here and is not there yet: what is said now is meant for that one. */
  epochToBe(): Promise<number | null> | null {
    return this.#change && this.#change.over.then(() => this.timeline.scope?.epoch ?? null)
  }

  async refreshReadiness(): Promise<void> {
    const told = await calls.readiness(this.id).catch(() => null)
    if (told) this.readiness = told
  }

  /** The reader has seen everything up to here. */
  markSeen(): void {
    const number = this.timeline.last
    if (!this.#hasMarks || number <= Math.max(this.#seen, this.row?.seen ?? 0) || document.hidden) return
    this.#seenTimer ??= setTimeout(() => {
      this.#seenTimer = null
      const seen = this.timeline.last
      this.#seen = seen
      calls
        .markSession(this.id, { seen })
        .then(() => sessionList.change(this.id, { seen }))
        .catch((error: unknown) => {
          if (isRefused(error, 'no_such_path', 'method_not_allowed')) this.#hasMarks = false
          else this.#seen = 0
        })
    }, SEEN_MS)
  }

  async #load(): Promise<void> {
    this.state = 'loading'
    const row = calls.session(this.id).then((told) => this.takeRow(told))
    const queue = calls.queue(this.id).then((told) => this.takeQueue(told.items))
    // Whichever fails first is the problem; the others fail alike, and nobody has to hear of it twice.
    row.catch(() => {})
    queue.catch(() => {})
    try {
      this.prefetch()
      const page = await this.#first!
      this.#first = null
      this.#words(page)
      for (const fact of page.items) this.timeline.append(fact)
      this.state = 'ready'
      this.version += 1
      performance.mark('homing:facts')
      this.#watch()
      await Promise.all([row, queue, this.refreshReadiness()])
      this.progress = this.row?.progress ?? null
    } catch (error) {
      this.#first = null
      this.problem = error
      this.state = isRefused(error, 'not_found', 'no_such_path', 'invalid') ? 'gone' : 'failed'
      this.#againLater(error)
    }
  }

  /** Asks again for what could not be had. */
  #again(): void {
    if (this.#openUsers === 0) return
    for (const message of this.#lacking) this.wantWhole(message)
    if (this.#isQueueLacking) this.refreshQueue()
    if (isOverSoon(this.earlierProblem)) void this.earlier()
    if (this.state === 'failed' && isOverSoon(this.problem)) this.retry()
    else if (this.problem || this.#ahead.length > 0) void this.#fill()
  }

  #againLater(error: unknown): void {
    if (!isPassing(error)) return
    this.#againTimer ??= setTimeout(() => {
      this.#againTimer = null
      this.#again()
    }, AGAIN_MS)
  }

  retry(): void {
    this.problem = null
    if (this.timeline.last === 0) return void this.#load()
    this.state = 'ready'
    void this.#resume()
  }

  async #resume(): Promise<void> {
    this.#watch()
    if (!this.row) void calls.session(this.id).then((told) => this.takeRow(told)).catch((error: unknown) => this.#againLater(error))
    await this.#fill()
    this.refreshQueue()
    void this.refreshReadiness()
  }

  #watch(): void {
    if (this.#openUsers > 0) this.#stops.push(live.watch(this.id, () => this.timeline.last))
  }

  #hear(told: Told): void {
    if (told.event === 'session') {
      if (told.data.session.id === this.id) this.takeRow(told.data.session)
      return
    }
    if (told.event === 'began') return this.#again()
    if (told.data.session !== this.id) return
    switch (told.event) {
      case 'fact':
        return this.#fact(told.data.fact)
      case 'live':
        if (this.timeline.live(told.data.live)) this.#bump()
        return
      case 'progress':
        this.progress = told.data.progress
        return
      case 'readiness':
        this.readiness = told.data.readiness
        return
      case 'gone':
        this.state = 'gone'
    }
  }

  #fact(fact: Fact): void {
    if (this.state === 'loading' || this.#isFilling || fact.number > this.timeline.last + 1) {
      if (fact.number <= this.timeline.last) return
      if (this.#ahead.length < AHEAD_MAX) this.#ahead.push(fact)
      if (this.state === 'ready') void this.#fill()
      return
    }
    this.#take(fact)
  }

  #take(fact: Fact): void {
    if (!this.timeline.append(fact)) return
    this.#bump()
    if (this.#change?.isOver()) this.#change.end()
    if (QUEUE_FACTS.has(fact.type)) this.refreshQueue()
    if (fact.type === 'edited') this.messages.delete(fact.message)
    if (fact.type === 'turn_started' || fact.type === 'steered') this.wordsFor(fact.message)
  }

  /** Asks for the facts between what is here and what has come, until there is no gap. */
  async #fill(): Promise<void> {
    if (this.#isFilling || this.timeline.last === 0) return
    this.#isFilling = true
    try {
      for (;;) {
        const page = await calls.factsAfter(this.id, this.timeline.last, JUMP_FACTS)
        this.#words(page)
        for (const fact of page.items) this.#take(fact)
        const next = this.#ahead.find((fact) => fact.number > this.timeline.last)
        if (page.items.length < JUMP_FACTS && (!next || next.number === this.timeline.last + 1)) break
        if (page.items.length === 0) break
      }
      this.problem = null
    } catch (error) {
      if (isRefused(error, 'not_found')) this.state = 'gone'
      this.problem = error
      // What is ahead waits, too: it would only ask at once for the same.
      return this.#againLater(error)
    } finally {
      this.#isFilling = false
    }
    const ahead = this.#ahead
    this.#ahead = []
    for (const fact of ahead) this.#fact(fact)
  }

  #words(page: FactsPage): void {
    for (const [id, words] of Object.entries(page.messages ?? {})) {
      if (!words.cut || !this.messages.has(id)) this.messages.set(id, words)
    }
  }

  #askWords(): void {
    while (this.#wanted.length > 0 && this.#asking.size - this.#wanted.length < WORDS_AT_ONCE) {
      // The last asked for is the one that is being looked at.
      const message = this.#wanted.pop()!
      calls
        .wordsOfMessage(message)
        .then((words) => {
          this.messages.set(message, words)
          this.#lacking.delete(message)
        })
        .catch((error: unknown) => this.#wordless(message, error))
        .finally(() => {
          this.#asking.delete(message)
          this.#bump()
          this.#askWords()
        })
    }
  }

  /** Words that could not be had: a row says so, unless it has their beginning, until they can. */
  #wordless(message: string, error: unknown): void {
    if (isOverSoon(error)) this.#lacking.add(message)
    else this.#lacking.delete(message)
    this.#againLater(error)
    if (isOverSoon(error) && this.messages.get(message)?.text) return
    this.messages.set(message, { text: '', by: this.timeline.senders.get(message) ?? null, problem: wordsOf(error).what })
  }

  #hasStarted(message: string): boolean {
    return this.timeline.slot(`m:${message}`) !== undefined || this.timeline.hasSteered(message)
  }
}

/** True of what may go well once there is a line, or somebody is signed in again. */
const isOverSoon = (error: unknown): boolean => isPassing(error) || isRefused(error, 'unauthenticated')

/** How many sessions are kept besides the one that is looked at. */
const KEPT_MAX = 6
const kept = new Map<string, SessionState>()

export function sessionState(id: string, row: Session | null): SessionState {
  const known = kept.get(id)
  if (known && known.state !== 'gone' && known.state !== 'failed') {
    kept.delete(id)
    kept.set(id, known)
    return known
  }
  const fresh = new SessionState(id, row)
  kept.set(id, fresh)
  for (const oldest of kept.keys()) if (kept.size > KEPT_MAX) kept.delete(oldest)
  return fresh
}

/** True if this person said a message. */
export const isMine = (by: MessageWords['by']): boolean => (typeof by === 'string' ? by : by?.id) === person.me?.person

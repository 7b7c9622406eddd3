// What was said here and has no receipt yet. It is kept, words and key, until the server has it or somebody takes it back: also over
// a reload. The key makes sending again harmless, so what was cut off is sent again by itself once there is a line, and by whichever
// tab is left. What was refused waits for a person.
import { Refused, isPassing, isRefused, wordsOf } from '../api/problem'
import type { NewMessage, Receipt } from '../api/types'
import { type Sending, textOf } from '../model/queue'

export type Outgoing = Sending

export interface SendsWorld {
  say(message: NewMessage, key: string): Promise<Receipt>
  read(name: string): string | null
  write(name: string, value: string | null): boolean
  names(prefix: string): string[]
  newKey(): string
  now(): string
  /** Runs for as long as nobody else has this key in hand; not at all if somebody has. */
  alone(key: string, then: () => Promise<void>): Promise<void>
  after(ms: number, then: () => void): void
}

/** What is larger is kept in this tab only: a browser's storage has some megabytes for everything. */
const KEPT_CHARS_MAX = 512 * 1024
const AGAIN_MS = 2_000
const AGAIN_MS_MAX = 30_000
/** What is said after something else waits no longer for its answer than this: a line that hangs holds up nobody for good. */
const IN_ORDER_MS_MAX = 5_000

export class Sends {
  all: Outgoing[] = []
  readonly #world: SendsWorld
  readonly #changed: () => void
  readonly #taken: (one: Outgoing, receipt: Receipt) => void
  #person: string | null = null
  #open = new Map<string, () => void>()
  #busy = new Set<string>()
  /** The last try of each session. */
  #last = new Map<string, Promise<void>>()

  constructor(world: SendsWorld, changed: () => void, taken: (one: Outgoing, receipt: Receipt) => void) {
    this.#world = world
    this.#changed = changed
    this.#taken = taken
  }

  /** Begins for a person, with what a tab that is gone has left on its way. */
  begin(person: string): void {
    this.#person = person
    for (const name of this.#world.names(this.#name(''))) {
      const one = this.#parse(this.#world.read(name))
      if (one && !this.all.some((known) => known.key === one.key)) void this.#own(one)
    }
  }

  /**
   * Says something. It is shown at once; a key that is given is that of an earlier try with the same words. If it is meant for a scope
   * that is still to come, it goes once that is there, under its epoch; a page that is gone by then has said it under that of now.
   */
  say(what: Pick<Outgoing, 'to' | 'session' | 'parts' | 'delivery' | 'under'>, key = this.#world.newKey(), under: Promise<number | null> | null = null): Outgoing {
    const one: Outgoing = { ...what, key, at: this.#world.now(), state: 'sending', message: null, problem: null }
    this.#keep(one)
    void this.#own(one, under)
    return one
  }

  /** Tries again what failed, with the same words and the same key. */
  again(key: string): void {
    const one = this.#find(key)
    if (one?.state === 'failed') void this.#try(this.#set(key, { state: 'sending', problem: null })!, 0)
  }

  /** There is a line again: what was cut off goes now. */
  line(): void {
    this.#againWith(null)
  }

  /** The same person is signed in again: what nobody could say goes now. */
  back(): void {
    this.#againWith('unauthenticated')
  }

  #againWith(code: string | null): void {
    for (const one of this.all) if (one.state === 'failed' && one.problem?.code === code) this.again(one.key)
  }

  /** Takes back what has no receipt. What is returned goes into the composer again. */
  takeBack(key: string): Outgoing | null {
    const one = this.#find(key)
    if (!one || one.state !== 'failed') return null
    this.drop(key)
    return one
  }

  /** It is in the timeline or in the queue: nobody has to keep it here. */
  drop(key: string): void {
    this.all = this.all.filter((one) => one.key !== key)
    this.#world.write(this.#name(key), null)
    this.#open.get(key)?.()
    this.#open.delete(key)
    this.#changed()
  }

  async #own(one: Outgoing, under: Promise<number | null> | null = null): Promise<void> {
    await this.#world.alone(one.key, () => {
      this.all = [...this.all, one]
      this.#changed()
      const over = new Promise<void>((resolve) => this.#open.set(one.key, resolve))
      if (under) void under.then((epoch) => this.#meant(one.key, epoch))
      else void this.#inOrder(one)
      return over
    })
  }

  /** The scope that it is meant for is there. */
  #meant(key: string, under: number | null): void {
    const one = this.#set(key, { under })
    if (!one) return
    this.#keep(one)
    void this.#inOrder(one)
  }

  /** What is said to a session goes in the order in which it was said: two requests at once may overtake each other. */
  #inOrder(one: Outgoing): Promise<void> {
    const { session } = one
    if (!session) return this.#try(one, 0)
    const before = this.#last.get(session)
    const tried = (before ? Promise.race([before, this.#enough()]).then(() => this.#try(one, 0)) : this.#try(one, 0)).finally(() => {
      if (this.#last.get(session) === tried) this.#last.delete(session)
    })
    this.#last.set(session, tried)
    return tried
  }

  #enough(): Promise<void> {
    return new Promise((resolve) => this.#world.after(IN_ORDER_MS_MAX, resolve))
  }

  async #try(one: Outgoing, tries: number): Promise<void> {
    if (this.#busy.has(one.key)) return
    this.#busy.add(one.key)
    try {
      const receipt = await this.#world.say(messageOf(one), one.key)
      this.#world.write(this.#name(one.key), null)
      const taken = this.#set(one.key, { state: 'taken', message: receipt.id, session: receipt.session })
      if (taken) this.#taken(taken, receipt)
    } catch (error) {
      this.#failed(one, error, tries)
    } finally {
      this.#busy.delete(one.key)
    }
  }

  #failed(one: Outgoing, error: unknown, tries: number): void {
    const code = error instanceof Refused ? error.code : null
    // A full disk is not over in a moment.
    const isAgain = isPassing(error) && !isRefused(error, 'disk_full')
    const words = wordsOf(error)
    const hint = isAgain ? 'What you wrote is kept, and is sent again by itself.' : words.hint
    this.#set(one.key, { state: 'failed', problem: { what: words.what, hint, code: isAgain ? null : code } })
    if (!isAgain) return
    const told = error instanceof Refused ? (error.problem.retry_after ?? 0) * 1_000 : 0
    const wait = Math.max(told, Math.min(AGAIN_MS_MAX, AGAIN_MS * 2 ** tries))
    this.#world.after(wait, () => {
      const still = this.#find(one.key)
      if (still?.state !== 'failed' || still.problem?.code !== null) return
      void this.#try(this.#set(one.key, { state: 'sending' })!, tries + 1)
    })
  }

  #find(key: string): Outgoing | undefined {
    return this.all.find((one) => one.key === key)
  }

  #set(key: string, change: Partial<Outgoing>): Outgoing | null {
    let changed: Outgoing | null = null
    this.all = this.all.map((one) => (one.key === key ? (changed = { ...one, ...change }) : one))
    this.#changed()
    return changed
  }

  #keep(one: Outgoing): void {
    const text = JSON.stringify(one)
    if (text.length <= KEPT_CHARS_MAX) this.#world.write(this.#name(one.key), text)
  }

  #name = (key: string) => `homing sending ${this.#person} ${key}`

  #parse(value: string | null): Outgoing | null {
    try {
      const one = value ? (JSON.parse(value) as Outgoing) : null
      return one && typeof one.key === 'string' && Array.isArray(one.parts) ? { ...one, state: 'sending', problem: null } : null
    } catch {
      return null
    }
  }
}

function messageOf(one: Outgoing): NewMessage {
  const common = { to: one.to, delivery: one.delivery, ...(one.under === null ? {} : { under: one.under }) }
  const isPlain = one.parts.every((part) => part.type === 'text')
  return isPlain ? { ...common, text: textOf(one.parts) } : { ...common, parts: one.parts }
}

import { beforeEach, describe, expect, it } from 'vitest'
import { type Channel, Hub, type Locks, type Stream } from './hub'
import type { Connection, Told } from './stream'

/** The channel of a browser: everybody hears what the others say, in order. */
class Air {
  ends = new Set<AirEnd>()
  deaf = new Set<AirEnd>()
}
class AirEnd implements Channel {
  onmessage: ((event: MessageEvent) => void) | null = null
  readonly #air: Air
  constructor(air: Air) {
    this.#air = air
    air.ends.add(this)
  }
  postMessage(word: unknown): void {
    if (this.#air.deaf.has(this)) return
    for (const end of this.#air.ends) if (end !== this && !this.#air.deaf.has(end)) end.onmessage?.(new MessageEvent('message', { data: structuredClone(word) }))
  }
  close(): void {
    this.#air.ends.delete(this)
  }
}

/** The locks of a browser, with queues, stealing and giving up. */
class FakeLocks implements Locks {
  held = new Map<string, { reject(error: unknown): void; release(): void }>()
  queues = new Map<string, (() => void)[]>()
  /** Who asks for this one first gets it late: what a tab says may be heard before its lock is known of. */
  late: { name: string; grant: (() => void) | null } | null = null
  request(name: string, options: LockOptions, then: () => Promise<void> | void): Promise<unknown> {
    if (this.late?.name === name && !this.late.grant) {
      const late = this.late
      return new Promise((resolve) => (late.grant = () => resolve(((this.late = null), this.request(name, options, then)))))
    }
    return new Promise((resolve, reject) => {
      const grant = () => {
        let isMine = true
        const release = () => {
          if (!isMine) return
          isMine = false
          this.held.delete(name)
          this.queues.get(name)?.shift()?.()
        }
        this.held.set(name, {
          reject: (error) => {
            isMine = false
            reject(error)
          },
          release,
        })
        void Promise.resolve(then()).then(() => {
          release()
          resolve(undefined)
        })
      }
      if (options.steal) this.held.get(name)?.reject(new DOMException('taken', 'AbortError'))
      else if (this.held.has(name)) {
        const queue = this.queues.get(name) ?? []
        this.queues.set(name, queue)
        queue.push(grant)
        options.signal?.addEventListener('abort', () => {
          this.queues.set(name, (this.queues.get(name) ?? []).filter((one) => one !== grant))
          reject(new DOMException('given up', 'AbortError'))
        })
        return
      }
      grant()
    })
  }
}

class FakeStream implements Stream {
  cursor: string | null = null
  connection: Connection = { state: 'connecting', since: null, again: null }
  watched = new Map<string, number>()
  isOpen = false
  readonly tell: (told: Told) => void
  readonly connected: (connection: Connection) => void
  constructor(tell: (told: Told) => void, connected: (connection: Connection) => void) {
    this.tell = tell
    this.connected = connected
  }
  start(cursor: string | null): void {
    this.isOpen = true
    this.cursor = cursor
    this.connection = { state: 'live', since: null, again: null }
    this.connected(this.connection)
  }
  stop(): void {
    this.isOpen = false
  }
  watch(session: string, after: number): void {
    if (!this.watched.has(session)) this.watched.set(session, after)
  }
  unwatch(session: string): void {
    this.watched.delete(session)
  }
  nudge(): void {}
}

let air: Air
let locks: FakeLocks
let streams: FakeStream[]
let timers: { then: () => void }[]

class Tab {
  told: Told[] = []
  states: Connection[] = []
  end = new AirEnd(air)
  hub: Hub
  constructor(name: string) {
    this.hub = new Hub(
      {
        tab: name,
        person: 'usr_a',
        channel: this.end,
        locks,
        stream: (tell, connected) => {
          const stream = new FakeStream(tell, connected)
          streams.push(stream)
          return stream
        },
        after: (_, then) => {
          const timer = { then }
          timers.push(timer)
          return () => (timers = timers.filter((one) => one !== timer))
        },
      },
      (told) => this.told.push(told),
      (state) => this.states.push(state),
    )
  }
  get numbers() {
    return this.told.flatMap((one) => (one.event === 'fact' ? [one.data.fact.number] : []))
  }
}

const settle = async () => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}
const open = () => streams.filter((stream) => stream.isOpen)
const fact = (session: string, number: number) => ({ event: 'fact', data: { session, fact: { number } } }) as unknown as Told
const row = (cursor: string) => ({ event: 'session', data: { cursor, session: { id: 'ses_a' } } }) as unknown as Told

describe('the tabs of a browser', () => {
  beforeEach(() => {
    air = new Air()
    locks = new FakeLocks()
    streams = []
    timers = []
  })

  it('have one stream among eight, and all of them hear it', async () => {
    const tabs = Array.from({ length: 8 }, (_, at) => new Tab(`t${at}`))
    await settle()
    tabs.forEach((tab, at) => tab.hub.watch(`ses_${at}`, () => at))
    expect(open()).toHaveLength(1)
    expect([...open()[0]!.watched.keys()]).toHaveLength(8)
    open()[0]!.tell(fact('ses_3', 4))
    expect(tabs.map((tab) => tab.numbers)).toEqual(tabs.map(() => [4]))
    expect(tabs[7]!.hub.connection.state).toBe('live')
  })

  it('go on without the one that led, at its cursor and at what each has', async () => {
    const [first, second, third] = [new Tab('a'), new Tab('b'), new Tab('c')]
    await settle()
    let have = 5
    second.hub.watch('ses_b', () => have)
    third.hub.watch('ses_c', () => 9)
    open()[0]!.tell(row('c7'))
    have = 6
    first.hub.close()
    await settle()
    expect(open()).toHaveLength(1)
    expect(second.hub.isLeader).toBe(true)
    expect(open()[0]!.cursor).toBe('c7')
    expect([...open()[0]!.watched]).toEqual([['ses_b', 6], ['ses_c', 9]])
  })

  it('stop watching for a tab that is gone, and not while another one looks at the same', async () => {
    const [, second, third] = [new Tab('a'), new Tab('b'), new Tab('c')]
    await settle()
    second.hub.watch('ses_x', () => 0)
    third.hub.watch('ses_x', () => 0)
    third.hub.watch('ses_y', () => 0)
    third.hub.close()
    await settle()
    expect([...open()[0]!.watched.keys()]).toEqual(['ses_x'])
    second.hub.close()
    await settle()
    expect([...open()[0]!.watched.keys()]).toEqual([])
  })

  it('are not taken for gone before their lock is held', async () => {
    new Tab('a')
    locks.late = { name: 'homing tab b', grant: null }
    const late = new Tab('b')
    await settle()
    late.hub.watch('ses_b', () => 3)
    await settle()
    locks.late!.grant!()
    await settle()
    expect([...open()[0]!.watched]).toEqual([['ses_b', 3]])
    late.hub.close()
    await settle()
    expect([...open()[0]!.watched]).toEqual([])
  })

  it('watch what several parts of one page want once, and until the last of them ends', async () => {
    const tab = new Tab('a')
    await settle()
    const stops = [tab.hub.watch('ses_a', () => 0), tab.hub.watch('ses_a', () => 0)]
    stops[0]!()
    stops[0]!()
    expect([...open()[0]!.watched.keys()]).toEqual(['ses_a'])
    stops[1]!()
    expect([...open()[0]!.watched.keys()]).toEqual([])
  })

  it('take the lead from one that is frozen, which goes back into the queue when it wakes', async () => {
    const [frozen, awake] = [new Tab('a'), new Tab('b')]
    await settle()
    awake.hub.watch('ses_b', () => 3)
    air.deaf.add(frozen.end)
    awake.hub.nudge()
    expect(timers).toHaveLength(1)
    timers[0]!.then()
    await settle()
    expect(awake.hub.isLeader).toBe(true)
    air.deaf.delete(frozen.end)
    await settle()
    expect(frozen.hub.isLeader).toBe(false)
    expect(open()).toHaveLength(1)
    awake.hub.close()
    await settle()
    expect(frozen.hub.isLeader).toBe(true)
    expect(open()).toHaveLength(1)
  })

  it('leave a leader alone that answers', async () => {
    const [first, second] = [new Tab('a'), new Tab('b')]
    await settle()
    second.hub.nudge()
    expect(timers).toHaveLength(0)
    expect(first.hub.isLeader).toBe(true)
  })

  it('hand the lead over before they are frozen', async () => {
    const [first, second] = [new Tab('a'), new Tab('b')]
    await settle()
    first.hub.rest()
    await settle()
    expect([first.hub.isLeader, second.hub.isLeader]).toEqual([false, true])
    expect(open()).toHaveLength(1)
  })

  it('tell a new one how things stand', async () => {
    new Tab('a')
    await settle()
    open()[0]!.tell(row('c3'))
    const late = new Tab('b')
    expect(late.hub.connection.state).toBe('live')
  })
})

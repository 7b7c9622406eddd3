import { beforeEach, describe, expect, it } from 'vitest'
import { EventParser, type StreamEvent } from '../api/event_stream'
import { Refused, Unreachable } from '../api/problem'
import type { Code } from '../api/types'
import { BrowserStream, type Connection, type Told, WATCHES_MAX, type World } from './stream'

/** A stream that was opened, as the server has it in hand. */
class Opened {
  readonly #parser = new EventParser()
  readonly address: URL
  readonly signal: AbortSignal
  readonly #tell: (event: StreamEvent) => void
  readonly #alive: () => void
  end!: (error?: unknown) => void
  constructor(address: string, signal: AbortSignal, tell: (event: StreamEvent) => void, alive: () => void) {
    this.address = new URL(address, 'http://x')
    this.signal = signal
    this.#tell = tell
    this.#alive = alive
  }
  /** Says words of a stream, as they stand in a recording. */
  say(words: string): void {
    this.#alive()
    for (const event of this.#parser.push(words)) this.#tell(event)
  }
  fact(session: string, number: number): void {
    this.say(`event: fact\ndata: ${JSON.stringify({ session, fact: { number, type: 'about' } })}\n\n`)
  }
  get watches() {
    return this.address.searchParams.getAll('watch')
  }
}

let opened: Opened[]
let timers: { at: number; then: () => void }[]
let time: number

const world: World = {
  read: (address, signal, tell, alive) =>
    new Promise((resolve, reject) => {
      const stream = new Opened(address, signal, tell, alive)
      stream.end = (error) => (error ? reject(error) : resolve())
      signal.addEventListener('abort', () => reject(new DOMException('given up', 'AbortError')))
      opened.push(stream)
    }),
  now: () => time,
  after: (ms, then) => {
    const timer = { at: time + ms, then }
    timers.push(timer)
    return () => (timers = timers.filter((one) => one !== timer))
  },
  random: () => 0.5,
}

async function pass(ms: number): Promise<void> {
  const until = time + ms
  for (;;) {
    await Promise.resolve()
    await Promise.resolve()
    const next = timers.filter((one) => one.at <= until).sort((a, b) => a.at - b.at)[0]
    if (!next) break
    timers = timers.filter((one) => one !== next)
    time = next.at
    next.then()
  }
  time = until
}

const refusal = (status: number, code: Code) =>
  new Refused({ type: '', title: '', status, detail: '', code, hint: '' })

const BEGAN = 'event: began\ndata: {"cursor":"c1"}\n\n'

describe('the stream of a browser', () => {
  let told: Told[]
  let states: Connection[]
  let stream: BrowserStream
  const numbers = () => told.flatMap((one) => (one.event === 'fact' ? [one.data.fact.number] : []))

  beforeEach(() => {
    opened = []
    timers = []
    time = 1_000_000
    told = []
    states = []
    stream = new BrowserStream(world, (one) => told.push(one), (state) => states.push(state))
    stream.start(null)
  })

  it('begins at the present and says so', () => {
    expect(opened[0]!.address.search).toBe('')
    opened[0]!.say(BEGAN)
    expect(told).toEqual([{ event: 'began', data: { cursor: 'c1', fresh: true } }])
    expect(stream.connection.state).toBe('live')
  })

  it('opens a new stream for a new watch, and drops the old one only once the new one has begun', async () => {
    opened[0]!.say(BEGAN)
    stream.watch('ses_a', 12)
    stream.watch('ses_b', 0)
    await pass(50)
    expect(opened).toHaveLength(2)
    expect(opened[1]!.watches).toEqual(['ses_a:12', 'ses_b:0'])
    expect(opened[1]!.address.searchParams.get('cursor')).toBe('c1')
    expect(opened[0]!.signal.aborted).toBe(false)
    opened[1]!.say(BEGAN)
    expect(opened[0]!.signal.aborted).toBe(true)
  })

  it('tells no fact twice while two streams overlap', async () => {
    opened[0]!.say(BEGAN)
    stream.watch('ses_a', 0)
    await pass(50)
    opened[1]!.say(BEGAN)
    opened[1]!.fact('ses_a', 1)
    stream.watch('ses_b', 0)
    await pass(50)
    opened[1]!.fact('ses_a', 2)
    opened[2]!.say(BEGAN)
    opened[2]!.fact('ses_a', 1)
    opened[2]!.fact('ses_a', 2)
    opened[2]!.fact('ses_a', 3)
    expect(numbers()).toEqual([1, 2, 3])
  })

  it('goes on by cursor and number after it was cut, later and later, and says since when', async () => {
    stream.watch('ses_a', 5)
    await pass(50)
    opened[1]!.say(BEGAN)
    opened[1]!.fact('ses_a', 6)
    opened[1]!.say('event: session\ndata: {"cursor":"c2","session":{"id":"ses_a"}}\n\n')
    const lostAt = time
    opened[1]!.end(new Unreachable('cut'))
    await pass(0)
    expect(stream.connection).toEqual({ state: 'lost', since: lostAt, again: lostAt + 1_000 })
    await pass(1_000)
    expect(opened[2]!.address.searchParams.get('cursor')).toBe('c2')
    expect(opened[2]!.watches).toEqual(['ses_a:6'])
    for (let tries = 0; tries < 8; tries++) {
      opened.at(-1)!.end(new Unreachable('still'))
      await pass(16_000)
    }
    const waits = states.flatMap((state) => (state.again ? [state.again] : []))
    const longest = Math.max(...waits.slice(1).map((at, index) => at - waits[index]!))
    expect(longest).toBeLessThanOrEqual(31_000)
    expect(stream.connection.since).toBe(lostAt)
    opened.at(-1)!.say(BEGAN)
    expect(stream.connection.state).toBe('live')
  })

  it('tries at once when something says that it may work', async () => {
    opened[0]!.end(new Unreachable('cut'))
    await pass(0)
    stream.nudge()
    expect(opened).toHaveLength(2)
  })

  it('takes a long silence for a cut', async () => {
    opened[0]!.say(BEGAN)
    await pass(30_000)
    opened[0]!.say(': still here\n\n')
    await pass(30_000)
    expect(opened).toHaveLength(1)
    await pass(35_000)
    expect(opened).toHaveLength(2)
    expect(opened[0]!.signal.aborted).toBe(true)
  })

  it('gives up a stream that does not begin', async () => {
    await pass(20_000)
    expect(opened.length).toBeGreaterThan(1)
    expect(opened[0]!.signal.aborted).toBe(true)
    expect(stream.connection.state).toBe('lost')
  })

  it('leaves a stream alone that is coming while the one before it ends', async () => {
    opened[0]!.say(BEGAN)
    stream.watch('ses_a', 0)
    await pass(50)
    opened[0]!.end()
    await pass(2_000)
    expect(opened).toHaveLength(2)
    opened[1]!.say(BEGAN)
    expect(stream.connection.state).toBe('live')
  })

  it('begins anew, and says so, when the server does not know the cursor any more', async () => {
    opened[0]!.say(BEGAN)
    opened[0]!.end()
    await pass(1_000)
    opened[1]!.end(refusal(400, 'bad_cursor'))
    await pass(3_000)
    expect(opened[2]!.address.searchParams.get('cursor')).toBeNull()
    opened[2]!.say(BEGAN)
    expect(told.at(-1)).toEqual({ event: 'began', data: { cursor: 'c1', fresh: true } })
  })

  it('does not knock at a door that it has been shown', async () => {
    opened[0]!.end(refusal(401, 'unauthenticated'))
    await pass(60_000)
    expect(stream.connection.state).toBe('signed-out')
    expect(opened).toHaveLength(1)
  })

  it('watches no more than it may, the newest', async () => {
    for (let at = 0; at < WATCHES_MAX + 3; at++) stream.watch(`ses_${at}`, 0)
    await pass(50)
    expect(opened.at(-1)!.watches).toHaveLength(WATCHES_MAX)
    expect(opened.at(-1)!.watches.at(-1)).toBe(`ses_${WATCHES_MAX + 2}:0`)
  })

  it('passes over an event that it does not know', () => {
    opened[0]!.say('event: later\ndata: {}\n\n')
    expect(told).toEqual([])
  })

  it('opens nothing after it was stopped', async () => {
    opened[0]!.say(BEGAN)
    stream.stop()
    await pass(60_000)
    expect(opened).toHaveLength(1)
    expect(opened[0]!.signal.aborted).toBe(true)
  })
})

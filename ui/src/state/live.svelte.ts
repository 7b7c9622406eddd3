// What comes from the server by itself: the hub of this tab, the connection as pages show it, and who hears what.
import { readEvents } from '../api/event_stream'
import { Hub } from './hub'
import { person } from './person.svelte'
import { BrowserStream, type Connection, type Told, type World } from './stream'

const world: World = {
  read: readEvents,
  now: () => Date.now(),
  after: (ms, then) => {
    const timer = setTimeout(then, ms)
    return () => clearTimeout(timer)
  },
  random: Math.random,
}

/** A follower asks for a sign of life this often while somebody looks at it. */
const LOOK_MS = 20_000

class LiveWords {
  connection = $state.raw<Connection>({ state: 'connecting', since: null, again: null })
  #hub: Hub | null = null
  #hearers = new Set<(told: Told) => void>()

  /** Begins for the person who is signed in. */
  begin(of: string): void {
    if (this.#hub) return
    this.#hub = new Hub(
      {
        tab: crypto.randomUUID(),
        person: of,
        channel: new BroadcastChannel(`homing stream ${of}`),
        locks: navigator.locks,
        stream: (tell, connected) => new BrowserStream(world, tell, connected),
        after: world.after,
      },
      (told) => {
        for (const hear of this.#hearers) hear(told)
      },
      (connection) => {
        this.connection = connection
        if (connection.state === 'signed-out') void person.look()
      },
    )
    this.#listen(this.#hub)
  }

  hear(then: (told: Told) => void): () => void {
    this.#hearers.add(then)
    return () => void this.#hearers.delete(then)
  }

  watch(session: string, after: () => number): () => void {
    return this.#hub?.watch(session, after) ?? (() => {})
  }

  nudge(): void {
    this.#hub?.nudge()
  }

  #listen(hub: Hub): void {
    const look = () => document.hidden || hub.nudge()
    document.addEventListener('visibilitychange', look)
    window.addEventListener('online', look)
    window.addEventListener('focus', look)
    document.addEventListener('freeze', () => hub.rest())
    document.addEventListener('resume', look)
    setInterval(look, LOOK_MS)
    person.whenBack(() => hub.nudge())
  }
}

export const live = new LiveWords()

// The sends of this tab, as pages see them.
import * as calls from '../api/calls'
import { newKey } from '../api/client'
import type { Receipt } from '../api/types'
import { live } from './live.svelte'
import { person as whose } from './person.svelte'
import { type Outgoing, Sends } from './sends'
import * as storage from './storage'

class OutgoingWords {
  all = $state.raw<Outgoing[]>([])
  #hasBegun = false
  #hearers = new Set<(one: Outgoing, receipt: Receipt) => void>()
  readonly sends = new Sends(
    {
      say: calls.say,
      ...storage,
      newKey,
      now: () => new Date().toISOString(),
      alone: async (key, then) => {
        await navigator.locks.request(`homing send ${key}`, { ifAvailable: true }, async (lock) => {
          if (lock) await then()
        })
      },
      after: (ms, then) => void setTimeout(then, ms),
    },
    () => (this.all = this.sends.all),
    (one, receipt) => {
      for (const hear of this.#hearers) hear(one, receipt)
    },
  )

  /** Begins for the person who is signed in. When they come back to a page that was theirs, it has begun. */
  begin(person: string): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.sends.begin(person)
    live.hear((told) => {
      if (told.event === 'began') this.sends.line()
    })
    whose.whenBack(() => this.sends.back())
  }

  /** Hears of receipts. */
  whenTaken(then: (one: Outgoing, receipt: Receipt) => void): () => void {
    this.#hearers.add(then)
    return () => void this.#hearers.delete(then)
  }
}

export const outgoing = new OutgoingWords()

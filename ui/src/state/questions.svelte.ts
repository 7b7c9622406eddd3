// The open questions of all sessions, kept up by the stream: whenever a session changes, they are read again, at most twice a second.
import * as calls from '../api/calls'
import * as house from '../api/house'
import type { Answer, Approval } from '../api/types'
import { readAgain } from '../model/approvals'
import { live } from './live.svelte'

const AGAIN_MS = 500

export class Questions {
  list = $state.raw<Approval[]>([])
  state = $state<'loading' | 'ready'>('loading')
  isCut = $state(false)
  problem = $state.raw<unknown>(null)
  #timer: ReturnType<typeof setTimeout> | null = null
  #asked = 0

  /** Reads, and goes on reading until the function that it gives back is called. */
  begin(): () => void {
    void this.read()
    const deaf = live.hear((told) => {
      if (told.event === 'session' || told.event === 'gone' || told.event === 'began') this.#soon()
    })
    return () => {
      deaf()
      if (this.#timer) clearTimeout(this.#timer)
      this.#asked += 1
    }
  }

  async read(): Promise<void> {
    const asked = ++this.#asked
    try {
      const open = await house.openApprovals()
      if (asked !== this.#asked) return
      const { list, gone } = readAgain(this.list, open.items)
      this.list = list
      this.isCut = open.isCut
      this.state = 'ready'
      this.problem = null
      for (const id of gone) void this.#settled(id)
    } catch (error) {
      if (asked === this.#asked) this.problem = error
    }
  }

  async answer(id: string, given: Answer, remember: 'session' | 'always' | undefined, key: string): Promise<void> {
    try {
      this.#put(await calls.answer(id, given, remember, key))
    } catch (error) {
      void this.#settled(id)
      throw error
    }
  }

  /** What became of a question that somebody else, a rule or its time has settled. */
  async #settled(id: string): Promise<void> {
    try {
      this.#put(await calls.approval(id))
    } catch {
      // It may not be seen any more.
      this.list = this.list.filter((one) => one.id !== id)
    }
  }

  #put(one: Approval): void {
    this.list = this.list.map((before) => (before.id === one.id ? one : before))
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      void this.read()
    }, AGAIN_MS)
  }
}

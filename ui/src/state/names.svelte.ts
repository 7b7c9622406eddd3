// What people are called: those that rows and messages have named. Who was never named is asked for once.
import { get } from '../api/client'
import type { MessageWords } from '../api/types'
import { person } from './person.svelte'

class Names {
  #known = new Map<string, string | null>()
  version = $state(0)

  /** The handle of a person, once it is known. */
  of(id: string | null | undefined): string | null {
    if (!id) return null
    if (id === person.me?.person) return person.me.handle
    void this.version
    const known = this.#known.get(id)
    if (known === undefined && id.startsWith('usr_')) this.#ask(id)
    return known ?? null
  }

  learn(by: MessageWords['by']): void {
    if (by && typeof by === 'object' && by.handle && this.#known.get(by.id) !== by.handle) this.#known.set(by.id, by.handle)
  }

  #ask(id: string): void {
    this.#known.set(id, null)
    get<{ handle: string }>(`/users/${id}`)
      .then((told) => {
        this.#known.set(id, told.handle)
        this.version += 1
      })
      .catch(() => {
        // Whoever may not look people up sees nobody's name.
      })
  }
}

export const names = new Names()

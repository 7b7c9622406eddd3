// Who is signed in. Signing in, signing out, and hearing of either from other tabs.
//
// When a sign-in is over, the page stays: `isOver` puts a dialog above it. If the same person signs in again, everything goes on;
// if it is somebody else, the page is loaded anew, and nothing of the one before is shown to them.
import * as calls from '../api/calls'
import { whenSignedOut } from '../api/client'
import { isRefused } from '../api/problem'
import type { Me } from '../api/types'

type News = { kind: 'in'; person: string } | { kind: 'out' }

const channel = new BroadcastChannel('homing people')

class Person {
  me = $state.raw<Me | null>(null)
  /** Nobody knows yet, nobody is there, somebody is, or their sign-in is over while they are at work. */
  state = $state<'unknown' | 'out' | 'in' | 'over' | 'unreachable'>('unknown')
  #then: (() => void)[] = []

  constructor() {
    whenSignedOut(() => this.#over())
    channel.onmessage = (event: MessageEvent<News>) => this.#hear(event.data)
  }

  async look(): Promise<void> {
    try {
      this.#isIn(await calls.me())
    } catch (error) {
      if (isRefused(error)) this.state = this.me ? 'over' : 'out'
      else if (!this.me) this.state = 'unreachable'
    }
  }

  async signIn(login: string, password: string): Promise<void> {
    await calls.signIn(login, password)
    await this.#welcome()
  }

  async signInByLink(link: string): Promise<void> {
    await calls.signInByLink(link)
    await this.#welcome()
  }

  async signOut(): Promise<void> {
    await calls.signOut().catch((error: unknown) => {
      if (!isRefused(error, 'unauthenticated')) throw error
    })
    channel.postMessage({ kind: 'out' } satisfies News)
    this.#leave()
  }

  /** Hears of a sign-in that goes on after it was over. */
  whenBack(then: () => void): void {
    this.#then.push(then)
  }

  may(right: Me['rights'][number]): boolean {
    return this.me?.rights.includes(right) ?? false
  }

  async #welcome(): Promise<void> {
    const me = await calls.me()
    channel.postMessage({ kind: 'in', person: me.person } satisfies News)
    this.#isIn(me)
  }

  #isIn(me: Me): void {
    if (this.me && this.me.person !== me.person) return location.assign('/')
    const wasOver = this.state === 'over'
    this.me = me
    this.state = 'in'
    if (wasOver) for (const then of this.#then) then()
  }

  #over(): void {
    if (this.state === 'in') this.state = 'over'
  }

  #hear(news: News): void {
    if (news.kind === 'out') return this.#leave()
    if (this.state !== 'in') void this.look()
    else if (this.me?.person !== news.person) location.assign('/')
  }

  /** The page of somebody who has gone keeps nothing of theirs. */
  #leave(): void {
    if (this.state !== 'out') location.assign('/sign-in')
  }
}

export const person = new Person()

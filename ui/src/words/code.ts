// Colours for code, asked of a worker.
//
// The worker begins with the first code that is shown, has one question at a time, and is ended if an answer takes too long: a
// grammar is a set of regular expressions, and some text makes some of them slow. Whatever goes wrong, the code stays plain.

import workerAddress from './code.worker?worker&url'
import type { CodeAnswered, CodeAsked, CodeRange } from './code_classes'

export type { CodeClass, CodeRange } from './code_classes'

/** Characters of code that are coloured. */
export const CODE_CHARS_MAX = 100_000
/** Time for an answer, in ms; the first one includes loading the grammars. */
export const ANSWER_MS_MAX = 3_000
/** Codes that wait for colours. What was asked longest ago is the farthest from what is read now: it stays plain. */
export const WAITING_MAX = 64
/** Answers that are kept, for code that comes into sight again, and the characters they may be of. */
export const KEPT_MAX = 100
export const KEPT_CHARS_MAX = 1 << 20
/** The name of the policy of Trusted Types that lets the worker's own address, and no other, be run. */
export const WORKER_POLICY = 'homing-worker'

/** What this needs of a worker. */
export interface CodeWorker {
  onmessage: ((event: { data: CodeAnswered }) => void) | null
  onerror: ((event: unknown) => void) | null
  postMessage(asked: CodeAsked): void
  terminate(): void
}

/** Runs something later, and gives back how to call that off. */
export type Later = (run: () => void, ms: number) => () => void

interface Waiting {
  asked: CodeAsked
  answer: (ranges: readonly CodeRange[] | null) => void
}

export class Colours {
  readonly #begin: () => CodeWorker
  readonly #later: Later
  #worker: CodeWorker | null = null
  #waiting: Waiting[] = []
  #asked: Waiting | null = null
  #callOff: () => void = () => {}
  readonly #kept = new Map<string, readonly CodeRange[] | null>()
  #keptChars = 0
  /** True once no worker can be begun here. */
  #isRefused = false

  constructor(begin: () => CodeWorker, later: Later) {
    this.#begin = begin
    this.#later = later
  }

  /** The colours of a code, or nothing: then it stays plain. */
  of(text: string, language: string): Promise<readonly CodeRange[] | null> {
    if (language === '' || text === '' || text.length > CODE_CHARS_MAX || this.#isRefused) return Promise.resolve(null)
    const kept = this.#kept.get(keyOf({ text, language }))
    if (kept !== undefined) return Promise.resolve(kept)
    return new Promise((answer) => {
      this.#waiting.push({ asked: { text, language }, answer })
      if (this.#waiting.length > WAITING_MAX) this.#waiting.shift()?.answer(null)
      this.#next()
    })
  }

  #next(): void {
    if (this.#asked) return
    const next = this.#waiting.pop()
    if (!next) return
    this.#asked = next
    try {
      this.#worker ??= this.#started()
      this.#callOff = this.#later(() => this.#end(), ANSWER_MS_MAX)
      this.#worker.postMessage(next.asked)
    } catch {
      // The policy does not let a worker begin, or there are none.
      this.#isRefused = true
      this.#end()
    }
  }

  #started(): CodeWorker {
    const worker = this.#begin()
    worker.onmessage = ({ data }) => this.#settle(data)
    worker.onerror = () => this.#end()
    return worker
  }

  /** Ends the worker and leaves what it was asked plain. */
  #end(): void {
    this.#worker?.terminate()
    this.#worker = null
    this.#settle(null)
  }

  #settle(ranges: CodeAnswered): void {
    const done = this.#asked
    if (!done) return
    this.#callOff()
    this.#asked = null
    this.#keep(done.asked, ranges)
    done.answer(ranges)
    this.#next()
  }

  #keep(asked: CodeAsked, ranges: CodeAnswered): void {
    const key = keyOf(asked)
    if (this.#kept.has(key)) return
    this.#kept.set(key, ranges)
    this.#keptChars += key.length
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_MAX && this.#keptChars <= KEPT_CHARS_MAX) break
      this.#kept.delete(oldest)
      this.#keptChars -= oldest.length
    }
  }
}

function keyOf({ text, language }: CodeAsked): string {
  return `${language}\n${text}`
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (address: string) => string }): { createScriptURL(address: string): unknown }
}

/** The worker's address as the page's policy wants it: made by a policy that lets no other one through. */
function trusted(address: string): string {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes
  if (!types) return address
  policy ??= types.createPolicy(WORKER_POLICY, {
    createScriptURL: (asked) => {
      if (asked !== workerAddress) throw new TypeError('no address but that of the worker for code')
      return asked
    },
  })
  return policy.createScriptURL(address) as string
}
let policy: ReturnType<TrustedTypes['createPolicy']> | null = null

function beginWorker(): CodeWorker {
  return new Worker(trusted(workerAddress), { type: 'module', name: 'code' }) as CodeWorker
}

function later(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** The colours of this page. */
export const colours = new Colours(beginWorker, later)

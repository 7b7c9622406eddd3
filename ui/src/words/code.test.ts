import { afterEach, describe, expect, it, vi } from 'vitest'
import { ANSWER_MS_MAX, CODE_CHARS_MAX, Colours, KEPT_MAX, WAITING_MAX, WORKER_POLICY, colours as ofThisPage, type CodeWorker } from './code'
import type { CodeAsked, CodeRange } from './code_classes'
import { RANGES_MAX, codeRanges } from './code_ranges'
import { coloured } from './plain'

/** A page with workers that answer when they are told to, and a timer that runs when it is told to. */
function page() {
  const workers: { asked: CodeAsked[]; isEnded: boolean; answer(ranges: readonly CodeRange[] | null): void; fail(): void }[] = []
  const timers: { run: () => void; ms: number; isOff: boolean }[] = []
  let isRefused = false
  const begin = (): CodeWorker => {
    if (isRefused) throw new TypeError('This document requires a TrustedScriptURL.')
    const worker: CodeWorker = {
      onmessage: null,
      onerror: null,
      postMessage: (asked) => told.asked.push(asked),
      terminate: () => (told.isEnded = true),
    }
    const told = {
      asked: [] as CodeAsked[],
      isEnded: false,
      answer: (data: readonly CodeRange[] | null) => worker.onmessage?.({ data }),
      fail: () => worker.onerror?.(new Event('error')),
    }
    workers.push(told)
    return worker
  }
  const later = (run: () => void, ms: number) => {
    const timer = { run, ms, isOff: false }
    timers.push(timer)
    return () => {
      timer.isOff = true
    }
  }
  return { colours: new Colours(begin, later), workers, timers, refuse: () => (isRefused = true) }
}

const RANGES: readonly CodeRange[] = [{ from: 0, to: 2, as: 'keyword' }]

describe('colours', () => {
  it('begins no worker before there is code, and asks it one thing at a time', async () => {
    const { colours, workers, timers } = page()
    expect(workers).toHaveLength(0)
    const first = colours.of('fn a', 'rust')
    const second = colours.of('fn b', 'rust')
    expect(workers[0]?.asked).toEqual([{ text: 'fn a', language: 'rust' }])
    workers[0]?.answer(RANGES)
    expect(await first).toEqual(RANGES)
    expect(workers[0]?.asked).toHaveLength(2)
    workers[0]?.answer(null)
    expect(await second).toBe(null)
    expect([workers.length, timers.every((timer) => timer.isOff)]).toEqual([1, true])
  })

  it('ends a worker that takes too long, leaves that code plain, and goes on with another', async () => {
    const { colours, workers, timers } = page()
    const slow = colours.of('(((', 'perl-like')
    const next = colours.of('fn b', 'rust')
    expect(timers[0]?.ms).toBe(ANSWER_MS_MAX)
    timers[0]?.run()
    expect(await slow).toBe(null)
    expect(workers[0]?.isEnded).toBe(true)
    workers[1]?.answer(RANGES)
    expect(await next).toEqual(RANGES)
    // It is not tried again: it would take as long.
    expect(await colours.of('(((', 'perl-like')).toBe(null)
    expect(workers).toHaveLength(2)
  })

  it('leaves code plain if its worker fails or may not begin', async () => {
    const failing = page()
    const plain = failing.colours.of('a', 'rust')
    failing.workers[0]?.fail()
    expect(await plain).toBe(null)
    const refusing = page()
    refusing.refuse()
    expect(await Promise.all([refusing.colours.of('a', 'rust'), refusing.colours.of('b', 'rust')])).toEqual([null, null])
    expect(await refusing.colours.of('c', 'rust')).toBe(null)
  })

  it('asks nothing of what is too long or has no language', async () => {
    const { colours, workers } = page()
    expect(await colours.of('x'.repeat(CODE_CHARS_MAX + 1), 'rust')).toBe(null)
    expect(await colours.of('x', '')).toBe(null)
    expect(workers).toHaveLength(0)
  })

  it('lets so many wait: what was asked longest ago stays plain', async () => {
    const { colours } = page()
    const all = Array.from({ length: WAITING_MAX + 2 }, (_, at) => colours.of(`${at}`, 'rust'))
    // The first is with the worker; the second gave way.
    expect(await all[1]).toBe(null)
  })

  it('keeps answers for code that comes into sight again, and only so many', async () => {
    const { colours, workers } = page()
    const ask = async (text: string) => {
      const answer = colours.of(text, 'rust')
      workers[0]?.answer(RANGES)
      return answer
    }
    for (let at = 0; at <= KEPT_MAX; at++) await ask(`${at}`)
    const asked = () => workers[0]?.asked.length
    expect(asked()).toBe(KEPT_MAX + 1)
    await colours.of(`${KEPT_MAX}`, 'rust')
    expect(asked()).toBe(KEPT_MAX + 1)
    await ask('0')
    expect(asked()).toBe(KEPT_MAX + 2)
  })
})

describe('the worker of this page', () => {
  afterEach(() => vi.unstubAllGlobals())

  it('begins at an address that only its own policy makes, and the policy makes no other', async () => {
    const policies: { name: string; make: (address: string) => string }[] = []
    vi.stubGlobal('trustedTypes', {
      createPolicy: (name: string, { createScriptURL }: { createScriptURL: (address: string) => string }) => {
        policies.push({ name, make: createScriptURL })
        return { createScriptURL: (address: string) => ({ trusted: createScriptURL(address) }) }
      },
    })
    const begun: unknown[] = []
    vi.stubGlobal(
      'Worker',
      class {
        onmessage: CodeWorker['onmessage'] = null
        constructor(address: unknown) {
          begun.push(address)
        }
        postMessage() {
          this.onmessage?.({ data: RANGES })
        }
      },
    )
    expect(await ofThisPage.of('fn a', 'rust')).toEqual(RANGES)
    expect(begun).toEqual([{ trusted: expect.stringContaining('code.worker') }])
    expect(policies.map(({ name }) => name)).toEqual([WORKER_POLICY])
    expect(() => policies[0]?.make('https://evil.org/x.js')).toThrow(TypeError)
  })
})

describe('ranges', () => {
  const check = (text: string, language: string) => codeRanges({ text, language })?.map(({ from, to, as }) => `${as}:${text.slice(from, to)}`)

  it('colours languages by their names and other names', () => {
    expect(check('fn main() { let x = "a"; } // c', 'rust')).toEqual(['keyword:fn', 'name:main', 'keyword:let', 'string:"a"', 'comment:// c'])
    expect(check('fn x', 'RS')).toEqual(['keyword:fn', 'name:x'])
    expect(check('+a\n-b\n c', 'diff')).toEqual(['plus:+a', 'minus:-b'])
  })

  it('knows no other language, and colours nothing twice', () => {
    expect(check('x', 'nope')).toBeUndefined()
    expect(check('x', '__proto__')).toBeUndefined()
    const ranges = codeRanges({ text: '<script>let a = `x${1 + "b"}`</script>', language: 'html' }) ?? []
    ranges.forEach((range, at) => expect(range.from).toBeGreaterThanOrEqual(ranges[at - 1]?.to ?? 0))
  })

  it('makes so many ranges and no more', () => {
    expect(codeRanges({ text: '"a" 1 '.repeat(RANGES_MAX), language: 'rust' })).toBe(null)
  })

  it('cuts code at its colours without losing a character, whatever the ranges say', () => {
    const text = 'fn \u202emain'
    const wrong: CodeRange[] = [...RANGES, { from: 1, to: 3, as: 'name' }, { from: 4, to: 99, as: 'name' }, { from: 4, to: 8, as: 'name' }]
    const words = coloured(text, wrong).flatMap((run) => run.pieces.map((piece) => (piece.kind === 'text' ? piece.text : `[${piece.label}]`)))
    expect(words.join('')).toBe('fn [RLO]main')
    expect(coloured(text, wrong).map((run) => run.as)).toEqual(['keyword', null, 'name'])
  })
})

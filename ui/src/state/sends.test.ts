import { beforeEach, describe, expect, it } from 'vitest'
import { Refused, Unreachable } from '../api/problem'
import type { Code, NewMessage, Receipt } from '../api/types'
import { type Outgoing, Sends, type SendsWorld } from './sends'

let asked: { message: NewMessage; key: string; answer(receipt: Receipt): void; fail(error: unknown): void }[]
let kept: Map<string, string>
let inHand: Set<string>
let timers: (() => void)[]
let keys: number

const world: SendsWorld = {
  say: (message, key) => new Promise((answer, fail) => asked.push({ message, key, answer, fail })),
  read: (name) => kept.get(name) ?? null,
  write: (name, value) => {
    if (value === null) kept.delete(name)
    else kept.set(name, value)
    return true
  },
  names: (prefix) => [...kept.keys()].filter((name) => name.startsWith(prefix)),
  newKey: () => `key${++keys}`,
  now: () => '2026-01-01T00:00:00Z',
  alone: async (key, then) => {
    if (inHand.has(key)) return
    inHand.add(key)
    await then()
    inHand.delete(key)
  },
  after: (_, then) => timers.push(then),
}

const receipt = (id: string) => ({ id, session: 'ses_a', state: 'waiting' }) as Receipt
const refusal = (status: number, code: Code) => new Refused({ type: '', title: '', status, detail: 'no', code, hint: '' })
const settle = async () => {
  for (let turn = 0; turn < 8; turn++) await Promise.resolve()
}
const words = { to: { session: 'ses_a' }, session: 'ses_a', parts: [{ type: 'text' as const, text: 'hello' }], delivery: 'queue' as const, under: 3 }

describe('what was sent here', () => {
  let sends: Sends
  let taken: Outgoing[]
  const begin = () => {
    taken = []
    const fresh = new Sends(world, () => {}, (one) => taken.push(one))
    fresh.begin('usr_a')
    return fresh
  }

  beforeEach(() => {
    asked = []
    kept = new Map()
    inHand = new Set()
    timers = []
    keys = 0
    sends = begin()
  })

  it('goes in the order in which it was said, whatever became of the one before', async () => {
    sends.say(words)
    sends.say({ ...words, parts: [{ type: 'text', text: 'again' }] })
    sends.say({ ...words, parts: [{ type: 'text', text: 'elsewhere' }], session: 'ses_b', to: { session: 'ses_b' } })
    await settle()
    expect(asked.map(({ message }) => ('text' in message ? message.text : ''))).toEqual(['hello', 'elsewhere'])
    asked[0]!.fail(refusal(409, 'too_late'))
    await settle()
    await settle()
    expect(asked.map(({ message }) => ('text' in message ? message.text : ''))).toEqual(['hello', 'elsewhere', 'again'])
  })

  it('is there at once, and kept until there is a receipt', async () => {
    sends.say(words)
    expect(sends.all.map((one) => one.state)).toEqual(['sending'])
    expect(kept.size).toBe(1)
    expect(asked[0]!.message).toEqual({ to: { session: 'ses_a' }, text: 'hello', delivery: 'queue', under: 3 })
    asked[0]!.answer(receipt('msg_1'))
    await settle()
    expect(taken.map((one) => [one.state, one.message])).toEqual([['taken', 'msg_1']])
    expect(kept.size).toBe(0)
  })

  it('goes again by itself under the same key when it was cut off', async () => {
    sends.say(words)
    asked[0]!.fail(new Unreachable('cut'))
    await settle()
    expect(sends.all[0]!.state).toBe('failed')
    expect(kept.size).toBe(1)
    timers.shift()!()
    expect(asked.map((one) => one.key)).toEqual(['key1', 'key1'])
    asked[1]!.fail(new Unreachable('cut'))
    await settle()
    sends.line()
    expect(asked).toHaveLength(3)
    asked[2]!.answer(receipt('msg_1'))
    await settle()
    timers.forEach((then) => then())
    expect(asked).toHaveLength(3)
    expect(taken).toHaveLength(1)
  })

  it('waits for a person when it was refused, who sends it again under the same key or takes it back', async () => {
    sends.say(words)
    asked[0]!.fail(refusal(409, 'queue_full'))
    await settle()
    expect(timers).toHaveLength(0)
    sends.line()
    expect(asked).toHaveLength(1)
    sends.again('key1')
    expect(asked[1]!.key).toBe('key1')
    asked[1]!.fail(refusal(422, 'invalid'))
    await settle()
    expect(sends.takeBack('key1')?.parts).toEqual(words.parts)
    expect(sends.all).toEqual([])
    expect(kept.size).toBe(0)
  })

  it('waits for the scope that it is meant for, and goes under its epoch', async () => {
    let there!: (epoch: number) => void
    sends.say(words, 'key1', new Promise((resolve) => (there = resolve)))
    await settle()
    expect(sends.all.map((one) => one.state)).toEqual(['sending'])
    expect(asked).toHaveLength(0)
    there(4)
    await settle()
    expect(asked.map((one) => one.message.under)).toEqual([4])
    expect(JSON.parse([...kept.values()][0]!).under).toBe(4)
  })

  it('goes again when somebody is signed in again, if that was what was missing', async () => {
    sends.say(words)
    sends.say(words)
    asked[0]!.fail(refusal(401, 'unauthenticated'))
    await settle()
    asked[1]!.fail(refusal(409, 'queue_full'))
    await settle()
    sends.back()
    expect(asked.map((one) => one.key)).toEqual(['key1', 'key2', 'key1'])
  })

  it('cannot be taken back while nobody knows whether it arrived', () => {
    sends.say(words)
    expect(sends.takeBack('key1')).toBeNull()
  })

  it('is sent by the next page, under its key, if this one is gone', async () => {
    sends.say(words)
    inHand.clear()
    const next = begin()
    await settle()
    expect(asked.map((one) => [one.key, (one.message as { text: string }).text])).toEqual([['key1', 'hello'], ['key1', 'hello']])
    asked[1]!.answer(receipt('msg_1'))
    await settle()
    expect(next.all.map((one) => one.state)).toEqual(['taken'])
  })

  it('is left alone by other tabs while this one is there', async () => {
    sends.say(words)
    begin()
    await settle()
    expect(asked).toHaveLength(1)
  })

  it('has its images and files as parts', () => {
    const parts = [{ type: 'text' as const, text: 'look' }, { type: 'image' as const, media_type: 'image/png' as const, data: 'AA==' }]
    sends.say({ ...words, parts, under: null })
    expect(asked[0]!.message).toEqual({ to: { session: 'ses_a' }, delivery: 'queue', parts })
  })
})

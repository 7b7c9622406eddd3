// Logs for tests: as a server would tell them, made of a seed.
import type { Fact } from '../api/types'

/** A small generator of numbers that are the same for the same seed. */
export function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

export class Log {
  facts: Fact[] = []
  add(what: Record<string, unknown>): Fact {
    const number = this.facts.length + 1
    const at = new Date(1_760_000_000_000 + number * 250).toISOString()
    const fact = { number, at, cause: 'keeper', ...what } as unknown as Fact
    this.facts.push(fact)
    return fact
  }
}

const PIECES = ['plain words ', 'zwei Wörter ', 'と日本語 ', '🧭🪺 ', '\n\n- a list\n', '`code` ']
const bytes = (text: string) => new TextEncoder().encode(text).length

/** A log of so many turns, in which all sorts of things happen. */
export function someLog(turns: number, seed: number): Log {
  const pick = seeded(seed)
  const log = new Log()
  log.add({ type: 'opened', directory: '/w', agent: 'scripted' })
  for (let turn = 1; turn <= turns; turn++) aTurn(log, turn, pick)
  return log
}

function aTurn(log: Log, turn: number, pick: (below: number) => number): void {
  const message = `msg_${turn}`
  log.add({ type: 'queued', message, by: 'usr_a', delivery: 'queue', epoch: 0 })
  if (pick(8) === 0) log.add({ type: 'held', message, why: 'asked', expires: '2030-01-01T00:00:00Z' })
  log.add({ type: 'turn_started', turn, message })
  log.add({ type: 'launch', turn, v: 1, agent: 'scripted', kind: 'scripted', program: 'p', home: 'h', directory: '/w', bypasses: false, account: 'house' })
  let part = 0
  for (let step = 0, steps = 1 + pick(5); step < steps; step++) {
    words(log, turn, part++, pick(4) === 0 ? 'reasoning' : 'text', pick)
    const what = pick(6)
    if (what <= 2) tool(log, turn, `call${step % 2}`, pick)
    if (what === 3) log.add({ type: 'plan', turn, v: 1, steps: [{ text: `step ${step}`, progress: 'active' }] })
    if (what === 4) question(log, turn, `apr_${turn}_${step}`, pick)
    if (what === 5) log.add({ type: 'something_new', turn, v: 9, what: step })
  }
  if (pick(3) === 0) log.add({ type: 'usage', turn, v: 1, input_tokens: turn, output_tokens: 2 })
  if (pick(3) === 0) log.add({ type: 'changes', turn, v: 1, files: [{ path: 'a', kind: 'edited' }], patch: '', cut: false })
  log.add({ type: 'turn_ended', turn, outcome: pick(5) === 0 ? 'failed' : 'answered' })
  if (pick(6) === 0) log.add({ type: 'undone', turn: 1 + pick(turn) })
  if (pick(6) === 0) log.add({ type: 'redone', turn: 1 + pick(turn) })
  if (pick(9) === 0) log.add({ type: 'scope_changed', epoch: turn, directory: `/w${turn}`, agent: 'scripted' })
}

function words(log: Log, turn: number, part: number, type: string, pick: (below: number) => number): void {
  let offset = 0
  for (let piece = 0, pieces = 1 + pick(5); piece < pieces; piece++) {
    const text = PIECES[pick(PIECES.length)]!
    log.add({ type, turn, v: 1, part, offset, text })
    offset += bytes(text)
  }
  if (type === 'text') log.add({ type: 'said', turn, v: 1, part, length: offset, sha256: '' })
}

function tool(log: Log, turn: number, call: string, pick: (below: number) => number): void {
  log.add({ type: 'tool_call', turn, v: 1, call, tool: 'shell', input: 'make' })
  let offset = 0
  for (let piece = 0, pieces = pick(4); piece < pieces; piece++) {
    const output = `lïne ${piece}\n`
    log.add({ type: 'tool_progress', turn, v: 1, call, offset, output })
    offset += bytes(output)
  }
  // Some never come back: their turn is stopped.
  if (pick(4) > 0) log.add({ type: 'tool_result', turn, v: 1, call, output: pick(2) ? 'all of it' : '', failed: pick(3) === 0 })
}

function question(log: Log, turn: number, approval: string, pick: (below: number) => number): void {
  log.add({ type: 'asked', approval, turn, until: '2030-01-01T00:00:00Z' })
  log.add({ type: 'question', turn, v: 1, approval, tool: 'shell', detail: 'may I?', form: 'permission' })
  const how = pick(3)
  if (how === 0) log.add({ type: 'answered', approval, answer: 'yes', by: 'usr_a' })
  if (how === 1) log.add({ type: 'lapsed', approval })
}

// Conversations that have been, as files for `POST /sessions/import`: as many facts as a test wants, in a moment.
import { createHash, randomUUID } from 'node:crypto'
import type { Homing } from './homing'

const AT = '2026-11-18T12:00:00.000Z'

/** A story of a turn: what is to be seen of it. */
export type Story = { type: string } & Record<string, unknown>

export interface PastTurn {
  said: string
  story: Story[]
}

const bytes = (text: string) => Buffer.byteLength(text)

/** Words of the agent, as one part. */
export function words(part: number, text: string, type: 'text' | 'reasoning' = 'text'): Story[] {
  const said = { type: 'said', part, length: bytes(text), sha256: createHash('sha256').update(text).digest('hex') }
  return [{ type, part, offset: 0, text }, ...(type === 'text' ? [said] : [])]
}

/** A tool that was called and has answered. */
export function tool(call: string, input: string, output: string, name = 'shell'): Story[] {
  return [
    { type: 'tool_call', call, tool: name, input },
    { type: 'tool_result', call, output, failed: false },
  ]
}

/** A session with that conversation, in a directory of its own or in that one. */
export async function imported(homing: Homing, turns: PastTurn[], where: { title?: string; directory?: string } = {}): Promise<string> {
  const lines = [
    { type: 'header', format: 'homing-session', version: 1, session: newId(), org: 'elsewhere', title: 'before', agent: 'scripted', by: 'ana', at: AT, left_out: { turns: 0, messages: 0, questions: 0, changes: 0 } },
    ...turns.map(({ said, story }, at) => ({
      type: 'turn', turn: at + 1, agent: 'scripted', began_at: AT, ended_at: AT, outcome: 'answered',
      said: [{ by: 'ana', at: AT, parts: [{ type: 'text', text: said }] }],
      story: story.map((one) => ({ at: AT, ...one })),
    })),
    { type: 'end', turns: turns.length },
  ]
  const query = new URLSearchParams({ title: 'before', ...where })
  const file = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`
  return (await homing.ask<{ id: string }>('POST', `/sessions/import?${query}`, file, 'application/jsonl')).id
}

/** An id of a session that was elsewhere: a UUID of version 7, in the letters of ids. */
function newId(): string {
  const random = BigInt(`0x${randomUUID().replaceAll('-', '')}`)
  const low = random & ((1n << 80n) - 1n)
  let rest = (BigInt(Date.now()) << 80n) | (low & ~(0xfn << 76n) & ~(0x3n << 62n)) | (0x7n << 76n) | (0x2n << 62n)
  let text = ''
  for (let at = 0; at < 26; at++, rest >>= 5n) text = '0123456789abcdefghjkmnpqrstvwxyz'[Number(rest & 31n)]! + text
  return `ses_${text}`
}

/** A conversation of about so many facts: words, reasoning, tools, plans, in paragraphs of changing lengths. */
export function longPast(facts: number): PastTurn[] {
  const turns: PastTurn[] = []
  for (let made = 0; made < facts; ) {
    const turn = turns.length + 1
    const story: Story[] = [...words(0, `Thinking about ${turn}.`, 'reasoning')]
    for (let step = 0; step < 3; step++) {
      story.push(...words(step * 2 + 1, paragraph(turn, step)), ...tool(`call ${step}`, `make part-${turn}-${step}`, `line\n`.repeat(1 + ((turn + step) % 9))))
    }
    if (turn % 5 === 0) story.push({ type: 'plan', steps: [{ text: 'look', progress: 'done' }, { text: 'do', progress: 'active' }] })
    story.push(...words(9, `${paragraph(turn, 3)}\n\n- one\n- two\n\n\`\`\`ts\nconst turn = ${turn}\n\`\`\`\n`))
    turns.push({ said: `Message ${turn}`, story })
    // Of the turn itself there are some, too.
    made += story.length + 4
  }
  return turns
}

function paragraph(turn: number, step: number): string {
  return Array.from({ length: 1 + ((turn * 7 + step * 3) % 5) }, (_, at) => `Sentence ${at + 1} of step ${step + 1} in turn ${turn} goes on for a while. `).join('')
}

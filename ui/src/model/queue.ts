// What waits in a session: the server's list, with what this browser has said and nobody has confirmed yet.
import type { Delivery, FactType, NewMessage, Part, Queued } from '../api/types'

/** The facts after which the list of what waits is another one. */
export const QUEUE_FACTS: ReadonlySet<FactType> = new Set<FactType>([
  'queued', 'edited', 'withdrawn', 'held', 'released', 'steered', 'missed', 'reordered', 'message_refused', 'turn_started', 'turn_ended',
  'scope_changed', 'ended', 'crowded',
])

/** Something said here, as long as it has no receipt. The key stays the same however often it is sent. */
export interface Sending {
  key: string
  to: NewMessage['to']
  /** Its session; none as long as it is to be a new one. */
  session: string | null
  parts: Part[]
  delivery: Delivery
  under: number | null
  at: string
  /** Being sent, refused or cut off; or taken, with its message. */
  state: 'sending' | 'failed' | 'taken'
  message: string | null
  problem: { what: string; hint: string; code: string | null } | null
}

/** The words of what is being sent. */
export function textOf(parts: Part[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** What waits, without what runs: the list of it is what one can still change. */
export function waitingOf(items: Queued[]): Queued[] {
  return items.filter((item) => item.state === 'waiting' || item.state === 'held')
}

/** What was sent here and is not yet in the server's list nor in the timeline. */
export function pendingOf(sent: Sending[], items: Queued[], started: (message: string) => boolean): Sending[] {
  const listed = new Set(items.map((item) => item.id))
  return sent.filter((one) => one.message === null || (!listed.has(one.message) && !started(one.message)))
}

/** A way to have a waiting message heard sooner than its turn comes. */
export interface Hastened {
  how: 'steer' | 'interrupt'
  label: string
  title: string
}

/** The ways that there are while a turn is under way: into it, if the agent takes that, or instead of it. */
export function hastened(item: Pick<Queued, 'delivery'>, running: boolean, canSteer: boolean): Hastened[] {
  if (!running) return []
  const ways: Hastened[] = []
  if (canSteer) ways.push({ how: 'steer', label: 'Steer now', title: 'Say it into the turn under way' })
  if (item.delivery !== 'interrupt') ways.push({ how: 'interrupt', label: 'Interrupt', title: 'Stop the turn under way, then run this first' })
  return ways
}

/** The order with one moved up or down by so many places, or null if it is there already. */
export function moved(order: string[], id: string, by: number): string[] | null {
  const from = order.indexOf(id)
  if (from < 0) return null
  const to = Math.max(0, Math.min(order.length - 1, from + by))
  return to === from ? null : placed(order, id, to)
}

/** The order with one at that place. */
export function placed(order: string[], id: string, to: number): string[] {
  const rest = order.filter((one) => one !== id)
  rest.splice(to, 0, id)
  return rest
}

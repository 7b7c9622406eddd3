// What somebody has begun to write, for each person and session. It outlives a reload, and other tabs have the same.
import { names, onWrite, read, write } from './storage'

export interface Draft {
  text: string
  /** The key under which exactly these words were sent without an answer, so that sending them again says them once. */
  key?: string
  of?: string
  at: number
}

/** How many drafts are kept: beyond them the oldest go. */
const DRAFTS_MAX = 200

const nameOf = (person: string, session: string) => `homing draft ${person} ${session}`

export function readDraft(person: string, session: string): Draft | null {
  return parse(read(nameOf(person, session)))
}

/** True if it will be there after a reload. */
export function writeDraft(person: string, session: string, draft: Draft | null): boolean {
  const isEmpty = !draft || (draft.text === '' && !draft.key)
  const isKept = write(nameOf(person, session), isEmpty ? null : JSON.stringify(draft))
  if (!isEmpty) forgetOldest(person)
  return isKept || isEmpty
}

export function onDraft(person: string, session: string, then: (draft: Draft | null) => void): () => void {
  return onWrite(nameOf(person, session), (value) => then(parse(value)))
}

function forgetOldest(person: string): void {
  const all = names(`homing draft ${person} `)
  if (all.length <= DRAFTS_MAX) return
  const aged = all.map((name) => ({ name, at: parse(read(name))?.at ?? 0 })).sort((a, b) => a.at - b.at)
  for (const { name } of aged.slice(0, all.length - DRAFTS_MAX)) write(name, null)
}

function parse(value: string | null): Draft | null {
  if (!value) return null
  try {
    const draft = JSON.parse(value) as Draft
    return typeof draft.text === 'string' ? draft : null
  } catch {
    return null
  }
}

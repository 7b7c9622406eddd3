// Whether a reload would take words away: what was typed into a field and is not kept anywhere. A field that is filled but untouched
// is none, nor is one whose words are a draft that outlives the reload; whoever keeps a draft is asked for it.
const SEEN = new Set(['textarea', 'text', 'email', 'url', 'tel', 'number', 'password', 'date', 'datetime-local'])

/** As a field stands now, and as it stood before anybody typed into it. */
export interface Written {
  value: string
  before: string
  /** Its words are kept by somebody who is asked. */
  isKept: boolean
}

/** True if any of them has words that nobody keeps. */
export function isUnsaved(fields: Iterable<Written>): boolean {
  for (const { value, before, isKept } of fields) if (!isKept && value !== '' && value !== before) return true
  return false
}

type Field = HTMLInputElement | HTMLTextAreaElement

const before = new WeakMap<Field, string>()
const touched = new Set<Field>()
const keepers = new Set<() => boolean>()

/** Listens to what is typed, in every field that there will be. */
export function listenForWriting(): void {
  document.addEventListener('focusin', ({ target }) => {
    if (isField(target) && !before.has(target)) before.set(target, target.value)
  })
  document.addEventListener('input', ({ target }) => {
    if (isField(target)) touched.add(target)
  })
}

/** Whoever keeps what is written in a `data-kept` field is asked whether all of it is kept; it may keep it then. */
export function keepsWriting(isAllKept: () => boolean): () => void {
  keepers.add(isAllKept)
  return () => void keepers.delete(isAllKept)
}

/** True if a reload now would take something away that somebody has written. */
export function isWriting(): boolean {
  for (const field of touched) if (!field.isConnected) touched.delete(field)
  const fields = [...touched].map((field) => ({ value: field.value, before: before.get(field) ?? '', isKept: 'kept' in field.dataset }))
  return isUnsaved(fields) || [...keepers].some((isAllKept) => !isAllKept())
}

function isField(target: EventTarget | null): target is Field {
  return target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && SEEN.has(target.type))
}

// The files that go along with a draft. Like its words they outlive a reload, and other tabs have the same: in the browser's own
// database, because they are too large for where the words are. A browser that keeps none is told of at once, not when they are lost.
import type { Part } from '../api/types'

export interface AttachedFile {
  name: string
  bytes: number
  part: Part
}

interface Row {
  /** Whose, and of which session. */
  of: string
  files: AttachedFile[]
  at: number
}

/** Drafts with files that are kept: beyond them the oldest lose theirs. Each has at most some 6 MiB, the server's own bound. */
const KEPT_MAX = 12
const DATABASE = 'homing attached'
const ROWS = 'drafts'
const CHANNEL = 'homing attached'

const nameOf = (person: string, session: string) => `${person} ${session}`

let opened: Promise<IDBDatabase> | null = null

function database(): Promise<IDBDatabase> {
  opened ??= new Promise<IDBDatabase>((resolve, reject) => {
    const asking = indexedDB.open(DATABASE, 1)
    asking.onupgradeneeded = () => asking.result.createObjectStore(ROWS, { keyPath: 'of' })
    asking.onsuccess = () => resolve(asking.result)
    asking.onerror = () => reject(asking.error ?? new Error('the browser keeps no files'))
    asking.onblocked = () => reject(new Error('the browser keeps no files now'))
  })
  // Whoever comes later may have more luck.
  opened.catch(() => (opened = null))
  return opened
}

const done = <T>(asking: IDBRequest<T>) =>
  new Promise<T>((resolve, reject) => {
    asking.onsuccess = () => resolve(asking.result)
    asking.onerror = () => reject(asking.error ?? new Error('the browser keeps no files'))
  })

/** The files of a draft; none where a browser keeps none. */
export async function readAttached(person: string, session: string): Promise<AttachedFile[]> {
  try {
    const rows = (await database()).transaction(ROWS).objectStore(ROWS)
    return ((await done(rows.get(nameOf(person, session)))) as Row | undefined)?.files ?? []
  } catch {
    return []
  }
}

let channel: BroadcastChannel | null = null
const hearers = new Map<string, Set<() => void>>()

function air(): BroadcastChannel {
  if (channel) return channel
  channel = new BroadcastChannel(CHANNEL)
  channel.onmessage = ({ data }: MessageEvent<string>) => {
    for (const then of hearers.get(data) ?? []) then()
  }
  return channel
}

/** Keeps the files of a draft, in place of those before. True if they will be there after a reload. */
export async function writeAttached(person: string, session: string, files: AttachedFile[]): Promise<boolean> {
  const of = nameOf(person, session)
  try {
    const change = (await database()).transaction(ROWS, 'readwrite')
    const rows = change.objectStore(ROWS)
    const over = new Promise<void>((resolve, reject) => {
      change.oncomplete = () => resolve()
      change.onerror = change.onabort = () => reject(change.error ?? new Error('the browser has no room'))
    })
    if (files.length === 0) rows.delete(of)
    else {
      rows.put({ of, files, at: Date.now() } satisfies Row)
      const all = (await done(rows.getAll())) as Row[]
      for (const old of oldest(all, KEPT_MAX)) rows.delete(old.of)
    }
    await over
    air().postMessage(of)
    return true
  } catch {
    return false
  }
}

/** What is beyond so many, the newest kept. */
export function oldest<T extends { at: number }>(rows: readonly T[], most: number): T[] {
  return [...rows].sort((a, b) => b.at - a.at).slice(most)
}

/** Hears that another tab has other files for a draft. */
export function onAttached(person: string, session: string, then: () => void): () => void {
  const of = nameOf(person, session)
  const those = hearers.get(of) ?? new Set()
  hearers.set(of, those.add(then))
  air()
  return () => void those.delete(then)
}

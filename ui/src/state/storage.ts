// What outlives a reload, in this browser alone: drafts, what is on its way, and choices of how things look. Other tabs see it at
// once. A browser that keeps nothing, or has no room, is no reason to fail: then it is kept for as long as the page lives.
const kept = new Map<string, string>()
const listeners = new Map<string, Set<(value: string | null) => void>>()

export function read(name: string): string | null {
  try {
    return localStorage.getItem(name) ?? kept.get(name) ?? null
  } catch {
    return kept.get(name) ?? null
  }
}

/** True if it will be there after a reload. */
export function write(name: string, value: string | null): boolean {
  if (value === null) kept.delete(name)
  else kept.set(name, value)
  try {
    if (value === null) localStorage.removeItem(name)
    else localStorage.setItem(name, value)
    return true
  } catch {
    return false
  }
}

export function names(prefix: string): string[] {
  const found = new Set([...kept.keys()].filter((name) => name.startsWith(prefix)))
  try {
    for (let at = 0; at < localStorage.length; at++) {
      const name = localStorage.key(at)
      if (name?.startsWith(prefix)) found.add(name)
    }
  } catch {
    // Then there is only what is kept here.
  }
  return [...found]
}

/** Hears what other tabs write. */
export function onWrite(name: string, then: (value: string | null) => void): () => void {
  const those = listeners.get(name) ?? new Set()
  listeners.set(name, those.add(then))
  return () => void those.delete(then)
}

export function listen(): void {
  window.addEventListener('storage', (event) => {
    if (event.key === null) return
    if (event.newValue === null) kept.delete(event.key)
    else kept.set(event.key, event.newValue)
    for (const then of listeners.get(event.key) ?? []) then(event.newValue)
  })
}

// Small words about numbers and times, the same on every page.

export function duration(ms: number): string {
  if (ms < 0 || !Number.isFinite(ms)) return ''
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export const between = (from: string | null, to: string | null): string =>
  from && to ? duration(Date.parse(to) - Date.parse(from)) : ''

export function ago(at: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000)
  if (seconds < 45) return 'now'
  if (seconds < 3_570) return `${Math.max(1, Math.round(seconds / 60))} min`
  if (seconds < 86_400) return `${Math.round(seconds / 3_600)} h`
  if (seconds < 7 * 86_400) return `${Math.round(seconds / 86_400)} d`
  return new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })
}

export function clock(at: string): string {
  return new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })
}

export const fullTime = (at: string): string => new Date(at).toLocaleString()

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(bytes < 10_240 ? 1 : 0)} KiB`
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}

export function count(number: number): string {
  if (number < 10_000) return number.toLocaleString()
  if (number < 1_000_000) return `${(number / 1000).toFixed(number < 100_000 ? 1 : 0)}k`
  return `${(number / 1_000_000).toFixed(1)}M`
}

export const money = (micros: number): string => `$${(micros / 1_000_000).toFixed(micros < 100_000 ? 4 : 2)}`

export const many = (number: number, one: string, more = `${one}s`): string => `${number.toLocaleString()} ${number === 1 ? one : more}`

/** The door by which something came, in words. */
export const doorWords = (door: string): string => ({ browser: 'from a browser', cli: 'from a terminal', http: 'from a program' })[door] ?? `by ${door}`

/** Words on one line: where they only stand for themselves, a line's end is a space. */
export const onOneLine = (text: string): string => text.slice(0, 2_000).replace(/\s+/g, ' ').trim()

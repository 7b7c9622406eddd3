// Choosing a directory: what is offered for what was typed so far. Where one was before comes first, then what the server lists.

export interface Offered {
  directory: string
  /** One was there before. */
  isRecent: boolean
}

/** Everything of a path up to its last slash, without that: what is listed for a path that is being typed. Null if it is none yet. */
export function parentOf(typed: string): string | null {
  if (!typed.startsWith('/')) return null
  return typed.slice(0, typed.lastIndexOf('/')) || '/'
}

/**
 * The directories that fit. Words that are no path fit anywhere in a directory where one was; a path fits where directories begin
 * with it. What was typed already is no offer.
 */
export function offersFor(typed: string, recent: readonly string[], listed: readonly string[], most: number): Offered[] {
  const words = typed.trim().toLowerCase()
  const isPath = words.startsWith('/')
  const isTyped = (directory: string) => directory.toLowerCase() === words.replace(/(.)\/+$/, '$1')
  const begins = (directory: string) => directory.toLowerCase().startsWith(words)
  const known = recent.filter((directory) => (isPath ? begins(directory) : directory.toLowerCase().includes(words)) && !isTyped(directory))
  const others = listed.filter((directory) => !known.includes(directory) && (isPath ? begins(directory) : words === '') && !isTyped(directory))
  return [...known.map((directory) => ({ directory, isRecent: true })), ...others.map((directory) => ({ directory, isRecent: false }))].slice(0, most)
}

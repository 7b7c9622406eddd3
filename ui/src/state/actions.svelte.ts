// What one can do on the page that is open, for the palette and the help. A page offers it while it is there.
export interface Action {
  name: string
  keys?: string
  /** Not offered if this is false. */
  when?: boolean
  run: () => unknown
}

const offers = new Set<() => Action[]>()

export function offer(list: () => Action[]): () => void {
  offers.add(list)
  return () => void offers.delete(list)
}

export function actions(): Action[] {
  return [...offers].flatMap((list) => list()).filter((action) => action.when !== false)
}

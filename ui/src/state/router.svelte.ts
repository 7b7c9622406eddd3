// Where one is: the address as page and parameter, and going elsewhere without loading anything anew. No address has a directory.
export interface Place {
  page: string
  id: string | null
  query: URLSearchParams
  hash: string
}

export function placeOf(address: URL): Place {
  const [page = '', id = null] = address.pathname.split('/').filter(Boolean)
  const of = { query: address.searchParams, hash: address.hash.slice(1) }
  if (!page) return { page: 'sessions', id: null, ...of }
  if (page === 's') return id ? { page: 'session', id: decodeURIComponent(id), ...of } : { page: 'sessions', id: null, ...of }
  return { page, id: id === null ? null : decodeURIComponent(id), ...of }
}

export const sessionPath = (id: string) => `/s/${encodeURIComponent(id)}`

/** What was done in a session's worktree since it was made. */
export const treePath = (session: string, tree: string) => `/changes?${new URLSearchParams({ session, tree })}`

class Router {
  place = $state.raw<Place>(placeOf(new URL(location.href)))

  constructor() {
    window.addEventListener('popstate', () => this.#read())
    document.addEventListener('click', (event) => this.#click(event))
    // A notification was clicked, and this tab is the one that shows what it is about.
    navigator.serviceWorker?.addEventListener('message', (event) => this.#open(event.data))
  }

  go(path: string, how: 'push' | 'replace' = 'push'): void {
    const to = new URL(path, location.origin)
    if (to.href === location.href) return
    history[how === 'push' ? 'pushState' : 'replaceState'](null, '', to)
    this.#read()
  }

  #open(asked: { open?: unknown } | null): void {
    const path = asked?.open
    if (typeof path === 'string' && /^\/s\/ses_\w+$/.test(path)) this.go(path)
  }

  #read(): void {
    this.place = placeOf(new URL(location.href))
  }

  /** A plain click on a link to a page of ours goes there without the server. */
  #click(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return
    if (/^\/(api|in|ui|healthz|readyz|metrics)(\/|$)/.test(link.pathname)) return
    event.preventDefault()
    this.go(link.href)
  }
}

export const router = new Router()

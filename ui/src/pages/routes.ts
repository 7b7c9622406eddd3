// The pages besides sign-in, sessions and session: each is fetched when somebody goes there. A page is a line here and a file.
import type { Component } from 'svelte'
import type { Me } from '../api/types'

export interface Route {
  /** The first piece of its address. */
  page: string
  title: string
  /** True if it stands in the bar above, where there is room for few. */
  inBar?: boolean
  /** True if the menu and the palette lead there, for whom it is of use. */
  offered: (me: Me) => boolean
  load: () => Promise<{ default: Component }>
}

export const routes: Route[] = []

export const routeOf = (page: string): Route | undefined => routes.find((route) => route.page === page)

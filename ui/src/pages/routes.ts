// The pages besides sign-in, sessions and session: each is fetched when somebody goes there. A page is a line here and a file.
import type { Component } from 'svelte'
import type { Me } from '../api/types'
import { canBegin, isAdmin } from '../model/people'

export interface Route {
  /** The first piece of its address. */
  page: string
  title: string
  /** True if it stands in the bar above, where there is room for few. */
  inBar?: boolean
  /** True if it is of something, which leads there: neither the menu nor the palette does. */
  isApart?: boolean
  /** True if it is for them: the menu and the palette lead there, and it is shown. */
  offered: (me: Me) => boolean
  load: () => Promise<{ default: Component }>
}

const everybody = () => true

export const routes: Route[] = [
  { page: 'new', title: 'New session', offered: canBegin, load: () => import('./new/New.svelte') },
  { page: 'search', title: 'Search', offered: everybody, load: () => import('./search/Search.svelte') },
  { page: 'changes', title: 'Changes', isApart: true, offered: everybody, load: () => import('./changes/Changes.svelte') },
  { page: 'approvals', title: 'Approvals', inBar: true, offered: everybody, load: () => import('./approvals/Approvals.svelte') },
  { page: 'worktrees', title: 'Worktrees', inBar: true, offered: everybody, load: () => import('./worktrees/Worktrees.svelte') },
  { page: 'agents', title: 'Agents', inBar: true, offered: everybody, load: () => import('./agents/Agents.svelte') },
  { page: 'usage', title: 'Usage', inBar: true, offered: everybody, load: () => import('./usage/Usage.svelte') },
  { page: 'people', title: 'People', inBar: true, offered: everybody, load: () => import('./people/People.svelte') },
  { page: 'groups', title: 'Groups', offered: everybody, load: () => import('./people/Groups.svelte') },
  { page: 'roots', title: 'Directories', offered: isAdmin, load: () => import('./people/Roots.svelte') },
  { page: 'offers', title: 'Offers', offered: everybody, load: () => import('./offers/Offers.svelte') },
  { page: 'audit', title: 'Audit', inBar: true, offered: isAdmin, load: () => import('./audit/Audit.svelte') },
  { page: 'tokens', title: 'Tokens and browsers', offered: everybody, load: () => import('./tokens/Tokens.svelte') },
  { page: 'route', title: 'Where a message goes', offered: everybody, load: () => import('./route/Explain.svelte') },
  { page: 'settings', title: 'Settings', inBar: true, offered: everybody, load: () => import('./settings/Settings.svelte') },
]

export const routeOf = (page: string): Route | undefined => routes.find((route) => route.page === page)

// The calls of the pages besides sessions, by name: people, groups, directories, agents, credentials, rules, worktrees, the audit.
// They are apart from calls.ts, because the first load needs none of them.
import { get, newKey, send } from './client'
import type { Page } from './calls'
import type { components } from './schema'
import type { Agent, Approval, FilePatch, Session, Worktree, WorktreeChanges } from './types'

type Schemas = components['schemas']

export type Person = Schemas['Person']
export type Role = Schemas['Role']
export type Right = Schemas['Right']
export type Grant = Schemas['Grant']
export type Granted = Schemas['Granted']
export type Grantee = Schemas['Grantee']
export type Group = Schemas['Group']
export type Root = Schemas['Root']
export type Token = Schemas['Token']
export type Rule = Schemas['Rule']
export type NewRule = Schemas['NewRule']
export type Offer = Schemas['Offer']
export type Entry = Schemas['Entry']
export type Verified = Schemas['Verified']
export type Explained = Schemas['Explained']
export type Account = Schemas['Account']
export type Link = Schemas['Link']
export type Org = Schemas['Org']
export type OrgChange = Schemas['OrgChange']
export type Wall = Schemas['Wall']
export type DoctorFinding = Schemas['DoctorFinding']
export type DoctorFindings = Schemas['DoctorFindings']
export type RunningProgram = Schemas['RunningProgram']
export type RemovedWorktree = Schemas['RemovedWorktree']
export type MergedWorktree = Schemas['MergedWorktree']
export type CollectedWorktree = Schemas['CollectedWorktree']
export type NewSession = Schemas['NewSession']
export type AddedPerson = Schemas['AddedPerson']
export type MadeToken = Schemas['MadeToken']
export type PushPlaces = Schemas['Pushes']
export type NewPush = Schemas['NewPush']

/** The most pages of one list that a page of ours asks for: beyond that it says that there are more. */
const PAGES_MAX = 10
/** As many rows as one page of a list has at most: the server's own bound. */
const PAGE = 500

/** All rows of a list, as far as `PAGES_MAX` pages go. */
async function all<T>(path: string, query: Record<string, string> = {}): Promise<{ items: T[]; isCut: boolean }> {
  const items: T[] = []
  let cursor: string | null | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const told: Page<T> = await get(path, { ...query, limit: PAGE, cursor })
    items.push(...told.items)
    cursor = told.next
    if (!cursor) return { items, isCut: false }
  }
  return { items, isCut: true }
}

/** The three names of a grantee, as a query has them. */
const queryOf = (to: Grantee): Record<string, string | boolean> => ('user' in to ? { user: to.user } : 'group' in to ? { group: to.group } : { org: true })
const change = <T>(method: string, path: string, body?: unknown, query: Record<string, string | boolean> = {}): Promise<T> => {
  const words = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString()
  return send<T>(method, words ? `${path}?${words}` : path, body, newKey())
}
const at = (id: string) => encodeURIComponent(id)

// People.
export const people = () => all<Person>('/users')
export const addPerson = (body: Schemas['NewPerson']) => change<AddedPerson>('POST', '/users', body)
export const changePerson = (id: string, body: Schemas['PersonChange']) => change<Person>('PATCH', `/users/${at(id)}`, body)
export const disable = (id: string) => change<unknown>('POST', `/users/${at(id)}/disable`)
export const enable = (id: string) => change<unknown>('POST', `/users/${at(id)}/enable`)
export const linkFor = (id: string) => change<Link>('POST', `/users/${at(id)}/link`)
export const dropPassword = (id: string) => change<unknown>('DELETE', `/users/${at(id)}/password`)
export const handOverAll = (id: string, to: string) => change<unknown>('POST', `/users/${at(id)}/hand-over`, { to })

// Groups and directories.
export const groups = () => get<Page<Group>>('/groups')
export const addGroup = (name: string) => change<Group>('POST', '/groups', { name })
export const removeGroup = (id: string) => change<unknown>('DELETE', `/groups/${at(id)}`)
export const intoGroup = (id: string, person: string) => change<unknown>('PUT', `/groups/${at(id)}/people/${at(person)}`)
export const outOfGroup = (id: string, person: string) => change<unknown>('DELETE', `/groups/${at(id)}/people/${at(person)}`)
/** The directories in one that one may choose; without one, those that one may choose with everything under them. */
export const directories = (directory?: string) => get<{ items: string[]; more: boolean }>('/directories', { directory })
export const roots = () => get<Page<Root>>('/roots')
export const addRoot = (root: Root) => change<Root>('PUT', '/roots', root)
export const removeRoot = (root: Root) => change<Root>('DELETE', '/roots', undefined, { directory: root.directory, ...queryOf(root.to) })

// Grants: of a session, of an agent. `of` is the beginning of the path.
export const ofSession = (id: string) => `/sessions/${at(id)}`
export const ofAgent = (name: string) => `/agents/${at(name)}`
export const grants = (of: string) => get<Page<Granted>>(`${of}/grants`)
export const give = (of: string, to: Grantee, grant: Grant) => change<unknown>('PUT', `${of}/grants`, { to, grant })
export const takeBack = (of: string, to: Grantee) => change<unknown>('DELETE', `${of}/grants`, undefined, queryOf(to))

// Hand-over.
export const offers = () => get<Page<Offer>>('/offers')
export const offerSession = (id: string, to: string) => change<unknown>('POST', `/sessions/${at(id)}/hand-over`, { to })
export const takeOfferBack = (id: string) => change<unknown>('DELETE', `/sessions/${at(id)}/hand-over`)
export const acceptOffer = (id: string) => change<unknown>('POST', `/sessions/${at(id)}/hand-over/accept`)
export const declineOffer = (id: string) => change<unknown>('POST', `/sessions/${at(id)}/hand-over/decline`)

// Credentials and oneself.
export const tokens = (user?: string) => get<Page<Token>>('/tokens', { user })
export const makeToken = (body: Schemas['NewToken']) => change<MadeToken>('POST', '/tokens', body)
export const revoke = (id: string) => change<unknown>('DELETE', `/tokens/${at(id)}`)
export const changeMe = (name: string) => change<Person>('PATCH', '/me', { name })
export const changePassword = (body: Schemas['NewPassword']) => change<unknown>('PUT', '/me/password', body)

// Agents and the machine.
export const agents = () => get<Page<Agent>>('/agents')
export const account = (agent: string) => get<Account>(`/agents/${at(agent)}/account`)
export const giveAccount = (agent: string, secrets: Record<string, string>) => change<Account>('PUT', `/agents/${at(agent)}/account`, { secrets })
export const dropAccount = (agent: string) => change<Account>('DELETE', `/agents/${at(agent)}/account`)
export const program = () => get<RunningProgram>('/program')
export const doctor = () => get<DoctorFindings>('/doctor')
export const wall = () => get<Wall>('/wall')
export const org = () => get<Org>('/org')
export const changeOrg = (body: OrgChange) => change<Org>('PATCH', '/org', body)

// Rules for questions.
export const rules = () => get<Page<Rule>>('/approvals/rules')
export const addRule = (body: NewRule) => change<Rule>('POST', '/approvals/rules', body)
export const removeRule = (id: string) => change<unknown>('DELETE', `/approvals/rules/${at(id)}`)

// Worktrees.
export interface Worktrees {
  items: Worktree[]
  removed: RemovedWorktree[]
  more: boolean
}
export const worktrees = (session?: string) => get<Worktrees>('/worktrees', { session })
export const treeChanges = (session: string, name: string) => get<WorktreeChanges>(`/sessions/${at(session)}/worktrees/${at(name)}/changes`)
export const treeFileChanges = (session: string, name: string, path: string, from: number) =>
  get<FilePatch>(`/sessions/${at(session)}/worktrees/${at(name)}/changes/file`, { path, from })
export const collect = (dryRun: boolean) => change<{ items: CollectedWorktree[] }>('POST', '/worktrees/collect', { dry_run: dryRun })

/** Time between two questions whether work on a worktree is over: short enough that nobody waits for it, long enough for a phone. */
const VERDICT_MS = 1_000

/**
 * Work that may take long. The server answers with the session while it goes on; the same key asks for the same work again, until
 * the answer is its verdict. `signal` ends the asking, not the work.
 */
async function untilVerdict<T extends object>(
  method: string, path: string, body: unknown, seen: (session: Session) => void, signal: AbortSignal,
): Promise<T> {
  const key = newKey()
  for (;;) {
    const told = await send<T | Session>(method, path, body, key)
    if (!('links' in told)) return told
    seen(told)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, VERDICT_MS)
      signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
    })
    signal.throwIfAborted()
  }
}

export type TreeWork = 'remove' | 'restore' | 'merge' | 'apply'

/** What is done with a worktree, and what it comes to. */
export function workOn(
  tree: { session: string; name: string },
  work: { do: 'remove'; teardown: boolean } | { do: 'restore'; reference?: string } | { do: 'merge' | 'apply'; dryRun: boolean },
  seen: (session: Session) => void,
  signal: AbortSignal,
): Promise<RemovedWorktree | Worktree | MergedWorktree> {
  const path = `/sessions/${at(tree.session)}/worktrees/${at(tree.name)}`
  if (work.do === 'remove') return untilVerdict('DELETE', work.teardown ? path : `${path}?teardown=false`, undefined, seen, signal)
  if (work.do === 'restore') return untilVerdict('POST', `${path}/restore`, work.reference ? { reference: work.reference } : {}, seen, signal)
  return untilVerdict('POST', `${path}/${work.do}`, work.dryRun ? { dry_run: true } : {}, seen, signal)
}

// The audit.
export type AuditQuery = { since?: string; until?: string; who?: string; what?: string; subject?: string }
export const audit = (query: AuditQuery, cursor?: string | null) => get<Page<Entry>>('/audit', { ...query, limit: 100, cursor })
export const verify = () => get<Verified>('/audit/verify')

// Where a message would go.
export type RouteQuery = { session?: string; conversation?: string; new?: boolean; directory?: string }
export const route = (query: RouteQuery) => get<Explained>('/route', query)

// Open questions, all of them.
export const openApprovals = () => all<Approval>('/approvals')

// Being told in a browser.
export const pushes = () => get<PushPlaces>('/me/pushes')
export const setPush = (place: NewPush) => send<unknown>('PUT', '/me/pushes', place, newKey())
export const removePush = (id: string) => send<unknown>('DELETE', `/me/pushes/${id}`, undefined, newKey())

// The calls of the app by name, so that no page knows an address of the interface.
import { call, client, get, keyed, newKey, send } from './client'
import type {
  Agent, Answer, Approval, Changes, Choice, Fact, FactsPage, FilePatch, Hit, Me, MessageWords, NewMessage, Queued, Readiness,
  Receipt, ScopeRequest, Session, SessionCounts, TurnLine, UndoPreview, UsageOfDays, Worktree,
} from './types'

export interface Page<T> {
  items: T[]
  next?: string | null
}

/** As many facts as one page has at most: the server's own bound. */
export const FACTS_PAGE = 200
/** Higher than any number of a fact: the page before it is the last one. */
const AFTER_ALL = Number.MAX_SAFE_INTEGER

// Who is there.
export const me = () => get<Me>('/me')
export const ways = () => call(client.GET('/api/v1/sign-in'))
export const signIn = (login: string, password: string) =>
  call(client.POST('/api/v1/sign-in', { body: { login, password, for: 'browser' } }))
export const signInByLink = (link: string) => call(client.POST('/api/v1/sign-in', { body: { link, for: 'browser' } }))
export const signOut = () => call(client.POST('/api/v1/sign-out'))

// Sessions.
export interface SessionFilter {
  which?: 'open' | 'ended' | 'all'
  agent?: string
  directory?: string
  doing?: 'running' | 'waiting' | 'dormant'
  text?: string
  owner?: string
  archived?: boolean
  origin?: string
  needs?: 'questions' | 'held' | 'failed' | 'unread'
  limit?: number
  cursor?: string | null
}
export const sessions = (filter: SessionFilter = {}, signal?: AbortSignal) =>
  get<Page<Session>>('/sessions', { ...filter }, signal)
export const search = (q: string, where: { session?: string; limit?: number; cursor?: string | null } = {}) =>
  get<Page<Hit>>('/search', { q, ...where })
export const sessionCounts = () => get<SessionCounts>('/sessions/counts')
export const session = (id: string) => get<Session>(`/sessions/${id}`)
export const newSession = (body: Record<string, unknown>, key = newKey()) =>
  send<{ id: string }>('POST', '/sessions', body, key)
export const changeSession = (id: string, change: { title?: string; archived?: boolean }) =>
  send<Session>('PATCH', `/sessions/${id}`, change, newKey())
export const markSession = (id: string, marks: { seen?: number; pinned?: boolean }) =>
  send<unknown>('PUT', `/sessions/${id}/marks`, marks, newKey())
export const endSession = (id: string) => send<Session>('POST', `/sessions/${id}/end`, undefined, newKey())
export const forkSession = (id: string, at?: number) =>
  send<{ id: string }>('POST', `/sessions/${id}/fork`, at === undefined ? {} : { at }, newKey())
export const stopBackground = (id: string) => send<unknown>('POST', `/sessions/${id}/stop-background`, undefined, newKey())

// Facts, turns, readiness.
export const factsBefore = (id: string, before: number | null, limit = FACTS_PAGE, signal?: AbortSignal) =>
  get<FactsPage>(`/sessions/${id}/facts`, { before: before ?? AFTER_ALL, limit, words: true }, signal)
export const factsAfter = (id: string, after: number, limit = FACTS_PAGE, signal?: AbortSignal) =>
  get<FactsPage>(`/sessions/${id}/facts`, { after, limit, words: true }, signal)
export const turns = (id: string, before?: number, limit = 100) =>
  get<{ items: TurnLine[]; next?: number | string | null }>(`/sessions/${id}/turns`, { before, limit })
export const readiness = (id: string) => get<Readiness>(`/sessions/${id}/readiness`)
export const commands = (id: string, signal?: AbortSignal) =>
  get<{ items: Choice[]; known: boolean }>(`/sessions/${id}/commands`, {}, signal)
export const models = (id: string) => get<{ items: Choice[]; known: boolean }>(`/sessions/${id}/models`)
export const files = (id: string) => get<{ items: string[]; more: boolean }>(`/sessions/${id}/files`)
export const agents = () => get<Page<Agent>>('/agents')

// Messages and the queue.
export const say = (message: NewMessage, key: string) =>
  call(client.POST('/api/v1/messages', { params: keyed(key), body: message }))
export const receipt = (id: string) => get<Receipt>(`/messages/${id}`, { words: true })
export async function wordsOfMessage(id: string): Promise<MessageWords> {
  const told = await receipt(id)
  return { text: told.text ?? '', by: told.by ?? null, at: told.accepted_at, attachments: told.attachments, door: told.door }
}
export const changeMessage = (id: string, change: Record<string, unknown>) =>
  send<Receipt>('PATCH', `/messages/${id}`, change, newKey())
export const withdraw = (id: string) => send<Receipt>('DELETE', `/messages/${id}`, undefined, newKey())
export const stop = (id: string) => send<Receipt>('POST', `/messages/${id}/stop`, undefined, newKey())
export const queue = (id: string) => get<{ items: Queued[] }>(`/sessions/${id}/queue`)
export const reorder = (id: string, order: string[]) =>
  send<{ items: Queued[] }>('PUT', `/sessions/${id}/queue`, { order }, newKey())

// Questions.
/** Questions that were answered or have lapsed, of one session or of all, the newest first. */
export const pastQuestions = (session?: string, cursor?: string | null, limit = 25) =>
  get<Page<Approval>>('/approvals', { state: 'settled', session, cursor, limit })
export const usage = (from?: string, to?: string) => get<UsageOfDays>('/usage', { from, to })
export const approval = (id: string) => get<Approval>(`/approvals/${id}`)
export const answer = (id: string, given: Answer, remember: 'session' | 'always' | undefined, key: string) =>
  send<Approval>('POST', `/approvals/${id}`, remember ? { answer: given, remember } : { answer: given }, key)

// Scope, changes, undo.
/** Asks for another scope. What is not decided yet is safe, and the session is as it was. */
export async function changeScope(id: string, change: ScopeRequest): Promise<{ row: Session; isDecided: boolean }> {
  const key = keyed(newKey())
  const { data, response } = await client.POST('/api/v1/sessions/{id}/scope', { params: { path: { id }, ...key }, body: change })
  return { row: data as Session, isDecided: response.status === 200 }
}
export const keepScope = (id: string) => send<Session>('DELETE', `/sessions/${id}/scope`, undefined, newKey())
export const changes = (id: string, turn: number, since?: number) => get<Changes>(`/sessions/${id}/changes`, { turn, since })
export const fileChanges = (id: string, turn: number, path: string, from: number, since?: number) =>
  get<FilePatch>(`/sessions/${id}/changes/file`, { turn, since, path, from })
export const undoPreview = (id: string, turn: number) => get<UndoPreview>(`/sessions/${id}/undo`, { turn })
export const undo = (id: string, turn: number, which: { all?: boolean; only?: string[] } = {}) =>
  send<Session>('POST', `/sessions/${id}/undo`, { turn, ...which }, newKey())
export const redo = (id: string, turn: number) => send<Session>('POST', `/sessions/${id}/redo`, { turn }, newKey())
export const worktrees = (session?: string) => get<{ items: Worktree[]; more: boolean }>('/worktrees', { session })

export type { Fact }

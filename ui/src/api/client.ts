// Calls of the server: same origin, with the browser's cookie, typed by the document. `call` is all that the rest of the app needs
// for what the document has; `get` and `send` are for what it does not have yet.
//
// Every answer that is not 2xx becomes a `Refused`, every silence an `Unreachable`. Whoever is told 401 tells `whenSignedOut`.
import createClient from 'openapi-fetch'
import { Refused, Unreachable, problemOf } from './problem'
import type { paths } from './schema'

const BASE = '/api/v1'

let signedOut: () => void = () => {}

/** Says what is to happen when an answer is that nobody is signed in. */
export function whenSignedOut(then: () => void): void {
  signedOut = then
}

async function asked(request: Request): Promise<Response> {
  request.headers.set('X-Homing-Door', 'browser')
  let response: Response
  try {
    response = await fetch(request)
  } catch (error) {
    if (request.signal.aborted) throw error
    throw new Unreachable(error)
  }
  if (response.ok) return response
  const problem = await problemOf(response)
  if (problem.code === 'unauthenticated') signedOut()
  throw new Refused(problem)
}

const origin = typeof location === 'undefined' ? 'http://localhost' : location.origin

export const client = createClient<paths>({ baseUrl: origin, fetch: asked, credentials: 'same-origin' })

/** What an answer says; `asked` has thrown already if it was no. */
export async function call<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T
}

type Query = Record<string, string | number | boolean | null | undefined>

export function addressOf(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '')
  const words = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return `${BASE}${path}${words ? `?${words}` : ''}`
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await asked(new Request(new URL(addressOf(path, query), origin), { credentials: 'same-origin', signal }))
  return (await response.json()) as T
}

export async function send<T>(method: string, path: string, body: unknown, key?: string): Promise<T> {
  const headers: Record<string, string> = {}
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (key) headers['Idempotency-Key'] = key
  const asking = new Request(new URL(addressOf(path), origin), {
    method,
    headers,
    credentials: 'same-origin',
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const response = await asked(asking)
  return (response.status === 204 ? undefined : await response.json()) as T
}

/** A key for one send. It stays with what is sent until a receipt is there, so that trying again cannot say it twice. */
export function newKey(): string {
  return crypto.randomUUID()
}

export const keyed = (key: string) => ({ header: { 'Idempotency-Key': key } })

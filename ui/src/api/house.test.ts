import { afterEach, expect, it, vi } from 'vitest'
import { workOn } from './house'

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const answers = (told: object[]) => {
  const keys: (string | null)[] = []
  vi.stubGlobal('fetch', (request: Request) => {
    keys.push(request.headers.get('Idempotency-Key'))
    return Promise.resolve(Response.json(told.shift()))
  })
  return keys
}

const atWork = (phase: string) => ({ id: 'ses_1', links: {}, progress: { phase } })

it('asks for the same work under the same key until its verdict, and tells how far it is', async () => {
  vi.useFakeTimers()
  const keys = answers([atWork('snapshot'), atWork('removing'), { name: 'red', reference: 'r' }])
  const phases: (string | undefined)[] = []
  const done = workOn({ session: 'ses_1', name: 'red' }, { do: 'remove', teardown: true }, (session) => phases.push(session.progress?.phase), new AbortController().signal)
  await vi.runAllTimersAsync()
  expect(await done).toEqual({ name: 'red', reference: 'r' })
  expect(phases).toEqual(['snapshot', 'removing'])
  expect(keys).toEqual([keys[0], keys[0], keys[0]])
  expect(keys[0]).toBeTruthy()
})

it('asks no more once nobody looks', async () => {
  vi.useFakeTimers()
  const keys = answers([atWork('merging'), atWork('merging')])
  const over = new AbortController()
  const done = workOn({ session: 'ses_1', name: 'red' }, { do: 'merge', dryRun: false }, () => over.abort(), over.signal)
  const gone = expect(done).rejects.toThrow()
  await vi.runAllTimersAsync()
  await gone
  expect(keys.length).toBe(1)
})

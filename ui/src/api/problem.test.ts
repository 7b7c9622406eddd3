import { describe, expect, it } from 'vitest'
import { Refused, Unreachable, isPassing, problemOf, wordsOf } from './problem'

const refusal = (status: number, body: unknown) => new Response(JSON.stringify(body), { status })

describe('a problem', () => {
  it('keeps its stable code, its words and what to do', async () => {
    const told = { type: 'urn:x', title: 'too late', status: 409, detail: 'somebody was first', code: 'too_late', hint: 'look who' }
    const error = new Refused(await problemOf(refusal(409, told)))
    expect(error.code).toBe('too_late')
    expect(wordsOf(error)).toEqual({ what: 'Somebody was first.', hint: 'Look who.' })
  })

  it("is made of a status alone where a proxy's page came instead", async () => {
    const problem = await problemOf(new Response('<html>bad gateway</html>', { status: 502 }))
    expect([problem.code, problem.status]).toEqual(['unavailable', 502])
  })

  it('passes by itself where the server is busy or away, and not where it said no', async () => {
    const of = async (status: number) => new Refused(await problemOf(refusal(status, {})))
    expect(isPassing(new Unreachable('cut'))).toBe(true)
    expect(isPassing(await of(429))).toBe(true)
    expect(isPassing(await of(503))).toBe(true)
    expect(isPassing(await of(409))).toBe(false)
  })
})

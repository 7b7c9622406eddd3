import { describe, expect, it } from 'vitest'
import { oldest, readAttached, writeAttached } from './attached'

describe('files of a draft', () => {
  it('are bounded: the oldest drafts lose theirs', () => {
    const rows = [3, 1, 2].map((at) => ({ at }))
    expect(oldest(rows, 2)).toEqual([{ at: 1 }])
    expect(oldest(rows, 3)).toEqual([])
  })

  it('are said not to be kept where a browser keeps none', async () => {
    // There is no database of a browser here.
    expect(await writeAttached('usr_a', 'ses_a', [])).toBe(false)
    expect(await readAttached('usr_a', 'ses_a')).toEqual([])
  })
})

import { describe, expect, it } from 'vitest'
import { offersFor, parentOf } from './directories'

const names = (typed: string, recent: string[], listed: string[]) => offersFor(typed, recent, listed, 9).map((one) => `${one.isRecent ? '*' : ''}${one.directory}`)

describe('directories to choose from', () => {
  it('are those in what was typed up to the last slash', () => {
    expect(['/srv/co', '/srv/', '/srv', '/', '', 'shop'].map(parentOf)).toEqual(['/srv', '/srv', '/', '/', null, null])
  })

  it('have those first where one was before', () => {
    expect(names('', ['/srv/code/shop'], ['/srv/code', '/srv/code/shop'])).toEqual(['*/srv/code/shop', '/srv/code'])
    expect(names('/srv/co', ['/home/x', '/srv/code/shop'], ['/srv/code', '/srv/data'])).toEqual(['*/srv/code/shop', '/srv/code'])
  })

  it('are found by any part of the name only where one was', () => {
    expect(names('shop', ['/srv/code/Shop', '/srv/code'], ['/srv/shop'])).toEqual(['*/srv/code/Shop'])
  })

  it('are not what is typed already, and not too many', () => {
    expect(names('/srv/code/', ['/srv/code'], ['/srv/code', '/srv/code/api'])).toEqual(['/srv/code/api'])
    expect(offersFor('', ['/a', '/b', '/c'], ['/d'], 2)).toHaveLength(2)
  })
})

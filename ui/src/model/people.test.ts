import { describe, expect, it } from 'vitest'
import { canBegin, givable, granteeName, granteeOf, isAdmin, keyOf, looksAfter, wayIn } from './people'
import type { Me } from '../api/types'

const me = (role: Me['role'], rights: Me['rights'] = ['read', 'prompt', 'approve', 'manage', 'admin']) => ({ role, rights })

describe('who may see to whom', () => {
  it('takes the role and the right', () => {
    expect(isAdmin(me('admin'))).toBe(true)
    expect(isAdmin(me('member'))).toBe(false)
    expect(isAdmin(me('owner', ['read', 'prompt']))).toBe(false)
    expect(canBegin(me('viewer'))).toBe(false)
    expect(canBegin(me('member', ['read']))).toBe(false)
    expect(canBegin(me('member'))).toBe(true)
  })

  it('stops at whoever is above', () => {
    expect(looksAfter(me('admin'), { role: 'owner' })).toBe(false)
    expect(looksAfter(me('admin'), { role: 'admin' })).toBe(true)
    expect(looksAfter(me('member'), { role: 'viewer' })).toBe(false)
    expect(givable(me('admin'))).toEqual(['viewer', 'member', 'admin'])
    expect(givable(me('member'))).toEqual([])
  })
})

describe('grantees', () => {
  it('go into a field of choices and come back', () => {
    for (const to of [{ user: 'usr_1' }, { group: 'grp_1' }, { org: true as const }]) expect(granteeOf(keyOf(to))).toEqual(to)
    expect(granteeOf('')).toBe(null)
    expect(granteeOf('user ')).toBe(null)
  })

  it('are called by their names, and by their ids once they have gone', () => {
    const people = [{ id: 'usr_1', handle: 'anna' }]
    expect(granteeName({ user: 'usr_1' }, people, [])).toBe('anna')
    expect(granteeName({ user: 'usr_2' }, people, [])).toBe('usr_2')
    expect(granteeName({ group: 'grp_1' }, [], [{ id: 'grp_1', name: 'shop' }])).toBe('everybody in shop')
    expect(granteeName({ org: true }, [], [])).toBe('everybody here')
  })

  it('come in by a whole address', () => expect(wayIn('/in/abc', 'https://homing.example')).toBe('https://homing.example/in/abc'))
})

import { expect, it } from 'vitest'
import { byRepository, progressWords, standing, whyKept } from './worktrees'
import type { Worktree } from '../api/types'

const tree = (parts: Partial<Worktree>) => ({ dirty: 0, ahead: 0, behind: 0, missing: false, in_use: false, ...parts }) as Worktree

it('says how a worktree stands', () => {
  expect(standing(tree({}))).toEqual(['nothing to bring back'])
  expect(standing(tree({ dirty: 1, ahead: 2, behind: 3 }))).toEqual(['1 file not committed', '2 commits ahead', '3 behind'])
  expect(standing(tree({ missing: true, dirty: 4 }))).toEqual(['its directory is gone'])
  expect(whyKept(tree({ in_use: true }))).not.toBe('')
  expect(whyKept(tree({}))).toBe('')
})

it('says how far work on one is', () => {
  const progress = { verb: 'remove', subject: 'red', phase: 'snapshot', files: 12, files_total: 1200, bytes: 2048, since: '' }
  expect(progressWords(progress)).toBe(`remove red: snapshot, 12 of ${(1200).toLocaleString()} files, 2.0 KiB`)
  expect(progressWords({ ...progress, files: null, bytes: 0 })).toBe('remove red: snapshot')
})

it('puts those of one repository together', () => {
  const rows = [{ repository: '/a', n: 1 }, { repository: '/b', n: 2 }, { repository: '/a', n: 3 }]
  expect(byRepository(rows).map((group) => [group.repository, group.rows.map((row) => row.n)])).toEqual([['/a', [1, 3]], ['/b', [2]]])
})

// Changes as they are, whole: of a turn's file whose patch was cut, and of a worktree since it was made, which is then brought back.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, openScope, rows, test } from './house'

/** More than the log has of a turn's changes. */
const LINES = 40_000

test('a file of a turn is shown whole where the log has its patch cut', async ({ homing, page }) => {
  homing.repository()
  const { id } = await homing.newSession({ directory: homing.place })
  const { id: message } = await homing.say({ session: id }, `!run seq 1 ${LINES} > big.txt`)
  await homing.settled(message)
  expect((await homing.ask<{ cut: boolean }>('GET', `/sessions/${id}/changes?turn=1`)).cut, 'the log has it cut').toBe(true)
  await page.goto(`/s/${id}`)
  await rows(page, 'changes').getByRole('button', { name: 'big.txt' }).click()
  await expect(rows(page, 'changes').getByRole('button', { name: /Show more \(/ })).toContainText(`${(LINES - 400).toLocaleString('en-GB')} lines`)
  await expect(rows(page, 'changes')).not.toContainText('not here')
})

test('the changes of a worktree are seen from its session, side by side, and brought back after a look', async ({ homing, page }) => {
  homing.repository()
  const { id } = await homing.newSession({ directory: homing.place, worktree: { name: 'aside' } })
  await homing.settled((await homing.say({ session: id }, `!run seq 1 ${LINES} > big.txt; echo pear > pears.txt`)).id)
  await page.goto(`/s/${id}`)
  const scope = await openScope(page)
  await scope.getByRole('link', { name: 'Changes of aside' }).click()
  // Its address is one of its own: loaded anew, it is there again.
  await page.reload()
  await expect(page.getByRole('heading', { name: '2 files changed' })).toBeVisible()
  await page.getByRole('button', { name: 'pears.txt' }).click()
  await expect(page.locator('td.text.plus')).toHaveText(['pear'])
  await page.getByRole('button', { name: 'Side by side' }).click()
  await expect(page.locator('table.beside td.text.plus')).toHaveText(['pear'])
  await page.getByRole('button', { name: 'big.txt' }).click()
  await expect(page.getByRole('button', { name: /Show more \(/ })).toContainText('lines')

  const back = page.getByRole('region', { name: 'Bring it back' })
  await back.getByRole('button', { name: 'Apply aside …' }).click()
  await expect(back).toContainText('These files change:')
  expect(existsSync(join(homing.place, 'pears.txt')), 'a look changes nothing').toBe(false)
  await back.getByRole('button', { name: 'Apply', exact: true }).click()
  await expect(back).toContainText('Its work is in')
  expect(existsSync(join(homing.place, 'pears.txt'))).toBe(true)
  expect(execFileSync('git', ['status', '--porcelain'], { cwd: homing.place, encoding: 'utf8' })).toContain('pears.txt')
})

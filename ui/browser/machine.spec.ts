// What the machine has: directories are offered where one chooses one, and its person reads what the doctor found.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, openScope, test } from './house'

test('directories are offered, where one was before first, and chosen by keys', async ({ homing, page }) => {
  for (const name of ['shop', 'shed']) mkdirSync(join(homing.place, name))
  await homing.ask('PUT', '/roots', { directory: homing.place, to: { org: true } })
  await homing.newSession({ directory: join(homing.place, 'shed') })
  await page.goto('/new')
  await page.getByText('Another directory').click()
  const directory = page.getByRole('combobox', { name: 'Directory, absolute' })
  await directory.fill(`${homing.place}/sh`)
  const offers = page.getByRole('listbox', { name: 'Directories' }).getByRole('option')
  await expect(offers).toHaveText([/shed\s*recent/, /shop/])
  await directory.press('ArrowDown')
  await directory.press('ArrowDown')
  await directory.press('Enter')
  await expect(directory).toHaveValue(join(homing.place, 'shop'))
  await page.getByRole('button', { name: 'Begin', exact: true }).click()
  await expect(page).toHaveURL(/\/s\/ses_/)
  const id = new URL(page.url()).pathname.split('/').pop()!
  expect((await homing.ask<{ directory: string }>('GET', `/sessions/${id}`)).directory).toBe(join(homing.place, 'shop'))

  // Where a session goes on elsewhere, too.
  const scope = await openScope(page)
  await scope.getByRole('combobox', { name: 'Directory' }).click()
  await expect(scope.getByRole('listbox', { name: 'Directories' }).getByRole('option').first()).toContainText('shed')
  await page.goto('/roots')
  await page.getByRole('combobox', { name: 'Directory, absolute' }).click()
  await expect(page.getByRole('listbox', { name: 'Directories' }).getByRole('option').first()).toContainText(homing.place)
})

test('the person of the machine reads what the doctor found, and nobody else is offered it', async ({ homing, page, people }) => {
  await page.goto('/agents')
  const doctor = page.getByRole('region', { name: 'The doctor' })
  await doctor.getByRole('button', { name: 'Look' }).click()
  await expect(doctor.getByRole('status').filter({ hasText: /to see to|All is well/ })).toBeVisible({ timeout: 30_000 })
  const told = await homing.ask<{ checks: { state: string; check: string }[] }>('GET', '/doctor')
  const wrong = told.checks.filter((one) => one.state !== 'ok')
  await expect(doctor.locator('ul.found > li').filter({ visible: true })).toHaveCount(wrong.length)
  for (const one of wrong) await expect(doctor).toContainText(one.check)

  const { user } = await homing.ask<{ user: { id: string } }>('POST', '/users', { handle: 'bob', name: 'Bob', role: 'admin' })
  const theirs = await (await people.signedIn({}, user.id)).newPage()
  await theirs.goto('/agents')
  await expect(theirs.getByRole('region', { name: 'The wall' })).toBeVisible()
  await expect(theirs.getByRole('region', { name: 'The doctor' })).toHaveCount(0)
})

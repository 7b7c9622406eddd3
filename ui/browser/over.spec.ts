// A sign-in that is over while somebody is at work: a dialog above the page; what they were writing and where they were stays.
import { expect, field, type Page, rows, send, test } from './house'
import type { Homing } from './homing'

test.use({ setup: { line: true } })

async function atWork(homing: Homing, page: Page): Promise<string> {
  const { id } = await homing.newSession()
  await page.goto(`/s/${id}`)
  await send(page, 'before')
  await expect(rows(page, 'words').last()).toContainText('#1 before')
  await field(page).fill('half a thought')
  return id
}

/** Everything that signed this browser in is taken away, elsewhere. */
async function endSignIns(homing: Homing): Promise<void> {
  const tokens = await homing.ask<{ items: { id: string; for?: string; purpose?: string }[] }>('GET', '/tokens')
  for (const token of tokens.items.filter((one) => JSON.stringify(one).includes('"browser"'))) await homing.ask('DELETE', `/tokens/${token.id}`)
}

test('when a sign-in is over, the draft and the place stay', async ({ homing, page }) => {
  const id = await atWork(homing, page)
  await endSignIns(homing)
  const dialog = page.getByRole('dialog', { name: 'Sign in again' })
  // The stream hears of it.
  await expect(dialog).toBeVisible()
  await expect(rows(page, 'words').last()).toContainText('#1 before')
  await dialog.getByRole('button', { name: 'With a link' }).click()
  await dialog.getByLabel('Link').fill(`${homing.url}${await homing.newLink()}`)
  await dialog.getByLabel('Link').press('Enter')
  await expect(dialog).toBeHidden()
  await expect(field(page)).toHaveValue('half a thought')
  await field(page).press('Enter')
  await expect(rows(page, 'words').last()).toContainText('#2 half a thought', { timeout: 20_000 })
  expect(await page.evaluate(() => window.noted)).toMatchObject({ mounts: [id], unmounts: [] })
})

test('what is said as the first thing after a sign-in is over goes when it is back', async ({ homing, page }) => {
  const id = await atWork(homing, page)
  // The stream is cut, and does not come back: else it hears first that the sign-in is over, and nobody writes behind the dialog.
  const isStream = /\/api\/v1\/stream\?/
  await page.route(isStream, () => {})
  const again = page.waitForRequest(isStream)
  homing.line!.cut()
  homing.line!.mend()
  await again
  await endSignIns(homing)
  const dialog = page.getByRole('dialog', { name: 'Sign in again' })
  // Whatever is asked next hears of it: here, that a message is sent.
  await field(page).press('Enter')
  await expect(dialog).toBeVisible()
  await expect(page.getByText('half a thought')).toBeVisible()
  await expect(rows(page, 'words').last()).toContainText('#1 before')
  // Nobody gets behind it without a sign-in.
  await page.keyboard.press('Escape')
  await expect(dialog).toBeVisible()

  await page.unroute(isStream)
  await dialog.getByRole('button', { name: 'With a link' }).click()
  await dialog.getByLabel('Link').fill(`${homing.url}${await homing.newLink()}`)
  await dialog.getByLabel('Link').press('Enter')
  await expect(dialog).toBeHidden()
  await expect(rows(page, 'words').last()).toContainText('#2 half a thought', { timeout: 20_000 })
  expect(await page.evaluate(() => window.noted)).toMatchObject({ mounts: [id], unmounts: [] })
  const said = (await homing.facts(id)).filter((fact) => fact.type === 'queued')
  expect(said, 'said once').toHaveLength(2)
})

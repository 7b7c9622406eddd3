// Files that go along with a draft: they outlive a reload, are in every tab, and go with the message, once.
import { expect, field, rows, test } from './house'

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')

test('files of a draft outlive a reload, are in another tab, and go with the message once', async ({ homing, page }) => {
  const { id } = await homing.newSession()
  await page.goto(`/s/${id}`)
  const along = (of: typeof page) => of.getByRole('list', { name: 'Goes along' })
  await page.locator('input[type=file]').setInputFiles([
    { name: 'dot.png', mimeType: 'image/png', buffer: PNG },
    { name: 'notes.md', mimeType: 'text/markdown', buffer: Buffer.from('# notes') },
  ])
  await field(page).fill('look at these')
  await expect(along(page).getByRole('listitem')).toHaveCount(2)

  await page.reload()
  await expect(along(page).getByRole('listitem')).toHaveText([/dot\.png/, /notes\.md/])
  await expect(along(page).locator('img')).toBeVisible()
  await expect(field(page)).toHaveValue('look at these')
  const other = await page.context().newPage()
  await other.goto(`/s/${id}`)
  await expect(along(other).getByRole('listitem')).toHaveCount(2)

  await page.getByRole('button', { name: 'Leave dot.png out' }).click()
  await expect(along(other).getByRole('listitem')).toHaveText([/notes\.md/])
  await field(page).press('Enter')
  await expect(rows(page, 'message')).toContainText('notes.md')
  await expect(along(other)).toHaveCount(0)
  await page.reload()
  await expect(rows(page, 'message')).toHaveCount(1)
  await expect(along(page)).toHaveCount(0)
})

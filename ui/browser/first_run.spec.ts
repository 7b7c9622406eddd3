// From the link that the program prints to the first answer, without leaving the page.
import { expect, field, rows, test } from './house'

test('a link and a few words lead to an answer, on one page', async ({ homing, people }) => {
  const page = await (await people.stranger()).newPage()
  await page.goto(homing.link)
  // Whoever only looks at a link has done nothing.
  await page.getByRole('button').click()
  await expect(page).toHaveTitle(/Sessions/)
  // From here on nothing is loaded anew: what a page notes of itself is lost with it.
  await page.evaluate(() => (window.noted.mounts = ['came in']))
  await expect(page.getByRole('heading', { name: 'No sessions yet' })).toBeVisible()
  await page.getByRole('link', { name: 'Begin one' }).click()
  await page.getByLabel('First message').fill('hello')
  await page.getByRole('button', { name: 'Begin' }).click()
  await expect(rows(page, 'words')).toHaveText(/#1 hello/)
  await expect(field(page)).toBeFocused()
  expect((await page.evaluate(() => window.noted.mounts))[0]).toBe('came in')
})

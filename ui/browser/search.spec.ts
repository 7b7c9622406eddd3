// What was said is found wherever it was said, and leads to its place; lists are narrowed and counted as the server does it.
import { expect, rows, test } from './house'
import { imported, longPast, words } from './past'

test('words that were said are found, shown with what is around them, and lead to their place', async ({ homing, page }) => {
  const past = [...longPast(300), { said: 'Which fruit is it?', story: words(0, 'It is a pomegranate, as far as I can see.') }, ...longPast(600)]
  const id = await imported(homing, past, { title: 'Fruit' })
  await homing.newSession({ title: 'Something else' })
  await homing.until('it is found', async () => (await homing.ask<{ items: unknown[] }>('GET', '/search?q=pomegranate')).items.length > 0)
  await page.goto('/')
  await page.getByRole('searchbox', { name: 'Search sessions' }).fill('pomegran')
  const places = page.getByRole('region', { name: 'In what was said' })
  await expect(places.locator('mark')).toHaveText('pomegranate')
  await expect(places).toContainText('It is a pomegranate, as far as I can see.')
  await page.getByRole('searchbox', { name: 'Search sessions' }).press('Enter')
  await expect(page).toHaveURL(/\/search\?q=pomegran/)
  await page.reload()
  const hit = page.getByRole('list', { name: 'What was said' }).getByRole('link')
  await expect(hit).toContainText('pomegran')
  await hit.click()
  await expect(page).toHaveURL(new RegExp(`/s/${id}\\?at=`))
  await expect(rows(page).getByText('It is a pomegranate')).toBeInViewport()

  // The palette knows it, too, and sessions by their titles.
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Do or go to' }).fill('pomegranate')
  await page.getByRole('option', { name: 'What was said: pomegranate' }).click()
  await expect(page.getByRole('list', { name: 'What was said' }).getByRole('link')).toBeVisible()
})

test('lists are narrowed by state, owner and origin, counted, and live', async ({ homing, page }) => {
  const asking = await homing.say({ new: { title: 'Asks' } }, '!ask Shell')
  const failed = await homing.say({ new: { title: 'Fails' } }, '!fail after')
  await homing.settled(failed.id)
  const { id: calm } = await homing.newSession({ title: 'Calm' })
  await homing.until('it asks', async () => (await homing.ask<{ questions: number }>('GET', '/sessions/counts')).questions === 1)
  const listed = page.getByRole('list', { name: 'Sessions' }).locator('a[data-session] .title')
  await page.goto('/')
  await expect(listed).toHaveCount(3)
  const state = page.getByRole('combobox', { name: 'State' })
  await expect(state.locator('option', { hasText: 'asking something (1)' })).toHaveCount(1)
  await state.selectOption('questions')
  await expect(listed).toHaveText(['Asks'])
  await state.selectOption('failed')
  await expect(listed).toHaveText(['Fails'])
  await state.selectOption('dormant')
  await expect(listed).toHaveCount(2)
  await homing.ask('PATCH', `/sessions/${calm}`, { archived: true })
  await expect(listed.filter({ hasText: 'Calm' })).toHaveCount(0)
  await page.getByRole('button', { name: 'Archived' }).click()
  await expect(listed).toHaveText(['Calm'])
  // What is put away meanwhile comes into the list by itself.
  await homing.ask('PATCH', `/sessions/${failed.session}`, { archived: true })
  await expect(listed).toHaveCount(2)

  await page.goto(`/s/${asking.session}`)
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('link', { name: 'Forks of this session' }).click()
  await expect(page.getByText('No session fits.')).toBeVisible()
  const fork = await homing.ask<{ id: string }>('POST', `/sessions/${failed.session}/fork`, {})
  await page.goto(`/?origin=${failed.session}`)
  await expect(page.locator(`a[data-session="${fork.id}"]`)).toBeVisible()
  await expect(listed).toHaveCount(1)
})

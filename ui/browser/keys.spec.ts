// All by keyboard: sign in, begin, send, approve, put in another order, look at a change, undo it, sign out. On a laptop and on a phone.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator } from '@playwright/test'
import { expect, field, type Page, rows, test } from './house'

/** So many presses lead to anything on a page, or nothing does. */
const STEPS_MAX = 80

/** Goes to something as somebody does who has no mouse. */
async function tabTo(page: Page, to: Locator, key = 'Tab'): Promise<void> {
  await expect(to).toBeVisible()
  for (let step = 0; step < STEPS_MAX; step++) {
    if (await to.evaluate((element) => element === document.activeElement)) return expectSeen(to)
    await page.keyboard.press(key)
  }
  throw new Error(`${key} does not lead to ${to}`)
}

/** Whoever is somewhere sees that, and sees the place: it is in view, and marked. */
async function expectSeen(at: Locator): Promise<void> {
  await expect(at).toBeInViewport()
  const isMarked = await at.evaluate((element) => {
    const marked = (one: Element) => {
      const style = getComputedStyle(one)
      return (style.outlineStyle !== 'none' && style.outlineWidth !== '0px') || style.boxShadow !== 'none'
    }
    // A field may be marked by the frame around it.
    return marked(element) || (element.parentElement !== null && marked(element.parentElement))
  })
  expect(isMarked, `the focus on ${at} can be seen`).toBe(true)
}

async function press(page: Page, what: Locator, key?: string): Promise<void> {
  await tabTo(page, what, key)
  await page.keyboard.press('Enter')
}

for (const [device, viewport] of Object.entries({ 'a laptop': { width: 1280, height: 800 }, 'a phone': { width: 360, height: 740 } })) {
  test(`a day's work by keyboard alone, on ${device}`, async ({ homing, people }) => {
    homing.repository()
    writeFileSync(join(homing.place, 'apples.txt'), 'one\n')
    const page = await (await people.stranger({ viewport })).newPage()

    await page.goto('/tokens')
    await press(page, page.getByRole('button', { name: 'With a link' }))
    await tabTo(page, page.getByLabel('Link'), 'Shift+Tab')
    await page.keyboard.type(`${homing.url}${await homing.newLink()}`)
    await page.keyboard.press('Enter')
    await expect(page.getByRole('heading', { name: /Tokens/ }), 'one arrives where one wanted to go').toBeVisible()

    // Another session, in a directory.
    await page.keyboard.press('n')
    const other = page.getByRole('radio', { name: 'Another directory' })
    await expect(other).toBeVisible()
    await tabTo(page, page.getByRole('radio', { checked: true }))
    while (!(await other.isChecked())) await page.keyboard.press('ArrowUp')
    await tabTo(page, page.getByLabel('Directory, absolute'))
    await page.keyboard.type(homing.place)
    await tabTo(page, page.getByLabel(/^First message/))
    await page.keyboard.type('!ask Shell')
    await page.keyboard.press('Control+Enter')

    // It asks; two more wait, and the second of them goes first.
    const question = page.getByRole('region', { name: 'Question' })
    await expect(question).toBeVisible()
    await tabTo(page, field(page))
    for (const words of ['first', 'second']) {
      await page.keyboard.type(words)
      await page.keyboard.press('Enter')
      await expect(page.getByRole('region', { name: 'What waits' })).toContainText(words)
    }
    const waits = page.getByRole('region', { name: 'What waits' }).getByRole('listitem')
    await expect(waits).toHaveCount(2)
    await tabTo(page, waits.filter({ hasText: 'second' }).getByRole('button', { name: 'Edit' }), 'Shift+Tab')
    await page.keyboard.press('Alt+ArrowUp')
    await expect(waits.first()).toContainText('second')
    await press(page, question.getByRole('button', { name: 'Yes' }), 'Shift+Tab')
    await expect(rows(page, 'words').last()).toContainText('#3 first')
    await expect(rows(page, 'words').nth(-2)).toContainText('#2 second')

    // A change is looked at, and taken back after its dry run.
    await tabTo(page, field(page))
    await page.keyboard.type('!run echo two >> apples.txt; echo new > pears.txt')
    await page.keyboard.press('Enter')
    const changes = page.getByRole('region', { name: 'Changed files' })
    await expect(changes).toContainText('pears.txt')
    await press(page, changes.getByRole('button', { name: /apples.txt/ }), 'Shift+Tab')
    await expect(changes).toContainText('two')
    await press(page, changes.getByRole('button', { name: 'Undo …' }), 'Shift+Tab')
    const preview = changes.getByRole('group', { name: 'What an undo would do' })
    await expect(preview).toBeVisible()
    for (const box of await preview.getByRole('checkbox').all()) {
      await tabTo(page, box)
      if (!(await box.isChecked())) await page.keyboard.press('Space')
    }
    await press(page, preview.getByRole('button', { name: 'Undo', exact: true }))
    await expect(changes).toContainText('undone')
    expect(existsSync(join(homing.place, 'pears.txt'))).toBe(false)

    await page.keyboard.press('Control+k')
    await page.keyboard.type('sign out')
    await page.keyboard.press('Enter')
    await expect(page.getByLabel('Name or e-mail')).toBeFocused()
  })
}

// Nothing that is read moves: one mount of the timeline, and the row at the top of the view stays where it is in every frame, while the
// session goes into a worktree and out again, older pages arrive, words stream, and the window changes its size.
import { count, counted } from './counts'
import { expect, field, openScope, type Page, rows, test } from './house'
import type { Homing } from './homing'
import { imported, longPast } from './past'

const FACTS = count('HOMING_BROWSER_FACTS', 2_000)
/** To read back takes longer the more there is. */
const TEST_MS_MAX = 60_000 + FACTS * 10
/** What is read may not move by so much in any frame. */
const STILL_PX = 1

declare global {
  interface Window {
    /** The row that is read, and how far it has been from where it was, in each frame as it was painted. */
    still: { key: string; worst: number; frames: number; gone: number }
    scrolled: Promise<unknown>
    isBusy?: boolean
  }
}

/**
 * Watches the first row that begins in view, in every frame as it is painted. Positions of what is newly observed are taken at a frame's
 * very end, when everything that answers to its layout has done so. Whoever measures between two frames makes a layout that nobody is
 * ever shown: of a window that has another size already, before the page has been told of it.
 */
async function watchAnchor(page: Page): Promise<void> {
  await page.evaluate(() => {
    const scroller = document.querySelector<HTMLElement>('.timeline')!
    const at = () => scroller.getBoundingClientRect().top
    const row = [...scroller.querySelectorAll<HTMLElement>('[data-key]')].find((one) => one.getBoundingClientRect().top >= at())!
    const top = row.getBoundingClientRect().top - at()
    const still = (window.still = { key: row.dataset.key!, worst: 0, frames: 0, gone: 0 })
    const painted = new IntersectionObserver(
      (entries) => {
        for (const { boundingClientRect, rootBounds } of entries) {
          still.frames += 1
          if (row.isConnected) still.worst = Math.max(still.worst, Math.abs(boundingClientRect.top - rootBounds!.top - top))
        }
      },
      { root: scroller },
    )
    const frame = () => {
      // It is the very element that it was: a row that is made anew loses what is selected or unfolded in it.
      if (!row.isConnected) still.gone += 1
      painted.disconnect()
      painted.observe(row)
      requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
  })
}

async function settle(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
}

/** What came of watching. */
async function still(page: Page): Promise<void> {
  await settle(page)
  const seen = await page.evaluate(() => window.still)
  expect(seen.frames).toBeGreaterThan(3)
  expect({ gone: seen.gone, moved: seen.worst < STILL_PX ? 'not' : `${seen.worst} px` }, `${seen.key} over ${seen.frames} frames`).toEqual({ gone: 0, moved: 'not' })
}

/** Turns the wheel, and waits until what it moves has come to rest. At the very top it moves nothing: an older page is on its way then. */
async function wheel(page: Page, by: number): Promise<void> {
  const isToMove = await page.evaluate(() => {
    const scroller = document.querySelector('.timeline')!
    window.scrolled = new Promise((resolve) => scroller.addEventListener('scrollend', resolve, { once: true }))
    return scroller.scrollTop > 0
  })
  if (!isToMove) return
  await page.mouse.wheel(0, by)
  await page.evaluate(() => window.scrolled)
}

/** Scrolls up, as a reader does, until a fact comes into view. */
async function readBackTo(page: Page, fact: number): Promise<void> {
  await page.locator('.timeline').hover()
  await expect(async () => {
    const first = await page.evaluate(() => {
      const scroller = document.querySelector('.timeline')!
      const top = scroller.getBoundingClientRect().top
      const row = [...scroller.querySelectorAll<HTMLElement>('[data-number]')].find((one) => one.getBoundingClientRect().top >= top)
      return Number(row?.dataset.number)
    })
    if (first > fact) await wheel(page, first - fact > 150 ? -6_000 : -900)
    expect(first).toBeLessThanOrEqual(fact)
  }).toPass({ intervals: [30], timeout: TEST_MS_MAX })
  await settle(page)
}

/** A reader in the middle of a long past, in a repository. */
async function reader(homing: Homing, page: Page): Promise<{ id: string; last: number }> {
  homing.repository()
  const id = await imported(homing, longPast(FACTS), { directory: homing.place })
  await page.goto(`/s/${id}`)
  await expect(rows(page).last()).toBeVisible()
  const last = (await homing.facts(id)).at(-1)!.number
  await readBackTo(page, Math.floor(last / 2))
  return { id, last }
}

/** The page of before is there, and nothing waits that was meant to run. */
async function nothingElse(homing: Homing, page: Page, id: string, last: number): Promise<void> {
  expect(await page.evaluate(() => window.noted)).toMatchObject({ mounts: [id], unmounts: [] })
  const types = (await homing.facts(id, last)).map((fact) => fact.type)
  expect(types).not.toContain('held')
  expect(types.filter((type) => type === 'scope_changed'), 'in and out').toHaveLength(2)
}

/** What the last turn has answered, once it is over. */
function lastAnswer(homing: Homing, id: string, after: number, turns: number): Promise<string> {
  return homing.until('the follow-up is answered', async () => {
    const facts = await homing.facts(id, after)
    if (facts.filter((fact) => fact.type === 'turn_ended').length < turns) return null
    const started = facts.filter((fact) => fact.type === 'turn_started').at(-1)!
    return (await homing.ask<{ answer: string }>('GET', `/messages/${started.message}?words=true`)).answer
  })
}

test('enter a worktree, leave it, go on: nothing is mounted again, and nothing that is read moves', async ({ homing, page }) => {
  test.setTimeout(TEST_MS_MAX)
  const { id, last } = await reader(homing, page)
  await watchAnchor(page)

  const scope = await openScope(page)
  await scope.getByLabel('Name of a worktree').fill('aside')
  await scope.getByLabel('Name of a worktree').press('Enter')
  await expect(scope.getByText('aside of')).toBeVisible()
  await scope.getByRole('button', { name: 'Leave aside' }).click()
  // At once: whoever has asked for a change means the scope that comes of it.
  await field(page).fill('!pwd')
  await field(page).press('Enter')
  await expect(page.getByRole('button', { name: /To the end|New below/ })).toBeVisible()
  expect(await lastAnswer(homing, id, last, 1), 'it ran where it was meant to').toContain(`\n${homing.place}`)
  await still(page)

  // Where it is, is on the page, without having been asked for again.
  await page.getByRole('button', { name: /To the end|New below/ }).click()
  await expect(rows(page, 'words').last()).toContainText(homing.place)
  await nothingElse(homing, page, id, last)
  counted(`a reader in the midst of ${last} facts: 1 mount, 0 unmounts, moved by less than ${STILL_PX} px`)
})

test('the same while older pages arrive, words stream and the window changes its size', async ({ homing, page }) => {
  test.setTimeout(TEST_MS_MAX)
  // Older pages wait until they are let go, so that each arrives while everything else goes on.
  const late: (() => void)[] = []
  let isLate = false
  await page.route(/\/facts\?before=/, async (route) => {
    if (isLate) await new Promise<void>((resolve) => late.push(resolve))
    await route.continue()
  })
  const { id, last } = await reader(homing, page)
  const scope = await openScope(page)
  await page.getByRole('button', { name: 'Find', exact: true }).click()
  isLate = true
  await page.getByRole('button', { name: 'Look in all of it' }).click()
  await settle(page)
  await watchAnchor(page)

  let arrived = 0
  /** The window changes its size; at each, words come, and at every other an older page. */
  const resize = async () => {
    for (const [at, [width, height]] of ([[900, 800], [700, 700], [1280, 640], [1100, 900], [1280, 800]] as const).entries()) {
      await page.setViewportSize({ width, height })
      const go = at % 2 ? late.shift() : undefined
      go?.()
      arrived += go ? 1 : 0
      await settle(page)
    }
  }
  await homing.say({ session: id }, '!say 300 200')
  await scope.getByLabel('Name of a worktree').fill('aside')
  await scope.getByLabel('Name of a worktree').press('Enter')
  await resize()
  await expect(scope.getByText('aside of')).toBeVisible()
  await homing.say({ session: id }, '!say 300 200')
  await scope.getByRole('button', { name: 'Leave aside' }).click()
  await resize()
  await expect(scope.getByText('aside of')).toBeHidden()
  await field(page).fill('!pwd\n!say 300 200')
  await field(page).press('Enter')
  await resize()
  expect(await lastAnswer(homing, id, last, 3), 'it ran where it was meant to').toContain(`\n${homing.place}`)
  isLate = false
  arrived += late.length
  for (const go of late) go()
  await expect(page.getByText('Begun '), 'everything older is here').toBeAttached()
  await still(page)
  expect(arrived, 'older pages have arrived').toBeGreaterThan(1)
  await nothingElse(homing, page, id, last)
})

test('what is said before the page has drawn the scope that was asked for goes to that scope', async ({ homing, page }) => {
  homing.repository()
  // Frames that come late, as on a machine that is busy.
  await page.addInitScript(() => {
    const soon = window.requestAnimationFrame.bind(window)
    window.requestAnimationFrame = (then) => (window.isBusy ? Number(setTimeout(() => soon(then), 1_500)) : soon(then))
  })
  const { id } = await homing.newSession({ directory: homing.place })
  await page.goto(`/s/${id}`)
  const scope = await openScope(page)
  await scope.getByLabel('Name of a worktree').fill('aside')
  await scope.getByLabel('Name of a worktree').press('Enter')
  await expect(scope.getByText('aside of')).toBeVisible()
  await page.evaluate(() => (window.isBusy = true))
  await scope.getByRole('button', { name: 'Leave aside' }).click()
  await expect(scope.getByText('aside of')).toBeHidden()
  await field(page).fill('!pwd')
  await field(page).press('Enter')
  expect(await lastAnswer(homing, id, 0, 1), 'it ran where it was meant to').toContain(`\n${homing.place}`)
  expect((await homing.facts(id)).map((fact) => fact.type)).not.toContain('held')
})

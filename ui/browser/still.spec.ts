// Nothing that is read moves: one mount of the timeline, and the row at the top of the view stays where it is in every frame, while the
// session goes into a worktree and out again, older pages arrive, words stream, and the window changes its size.
import { count, counted } from './counts'
import { expect, field, openScope, type Page, rows, test } from './house'
import type { Homing } from './homing'
import { imported, longPast } from './past'

const FACTS = count('HOMING_BROWSER_FACTS', 2_000)
/** What is read may not move by so much in any frame. */
const STILL_PX = 1

declare global {
  interface Window {
    /** The row that is read, and how far it has been from where it was, in each frame. */
    still: { key: string; top: number; worst: number; frames: number; gone: number; stop: boolean }
  }
}

/** Watches the first row that begins in view, in every frame and after it has been painted. */
async function watchAnchor(page: Page): Promise<void> {
  await page.evaluate(() => {
    const scroller = document.querySelector<HTMLElement>('.timeline')!
    const at = () => scroller.getBoundingClientRect().top
    const first = [...scroller.querySelectorAll<HTMLElement>('[data-key]')].find((row) => row.getBoundingClientRect().top >= at())!
    const still = (window.still = { key: first.dataset.key!, top: first.getBoundingClientRect().top - at(), worst: 0, frames: 0, gone: 0, stop: false })
    const look = () => {
      const row = scroller.querySelector(`[data-key="${CSS.escape(still.key)}"]`)
      if (!row || !scroller.isConnected) still.gone += 1
      else still.worst = Math.max(still.worst, Math.abs(row.getBoundingClientRect().top - at() - still.top))
    }
    const painted = new MessageChannel()
    painted.port1.onmessage = look
    const frame = () => {
      if (still.stop) return
      look()
      still.frames += 1
      painted.port2.postMessage(null)
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
    if (first > fact) await page.mouse.wheel(0, first - fact > 150 ? -6_000 : -900)
    expect(first).toBeLessThanOrEqual(fact)
  }).toPass({ intervals: [30], timeout: 60_000 })
  await settle(page)
}

test('enter a worktree, leave it, go on: nothing is mounted again, and nothing that is read moves', { tag: '@nightly' }, async ({ homing, page }) => {
  homing.repository()
  const id = await imported(homing, longPast(FACTS), { directory: homing.place })
  await page.goto(`/s/${id}`)
  await expect(rows(page).last()).toBeVisible()
  const last = (await homing.facts(id)).at(-1)!.number
  await readBackTo(page, Math.floor(last / 2))
  await watchAnchor(page)

  const scope = await openScope(page)
  await scope.getByLabel('Name of a worktree').fill('aside')
  await scope.getByLabel('Name of a worktree').press('Enter')
  await expect(scope.getByText('aside of')).toBeVisible()
  await scope.getByRole('button', { name: 'Leave aside' }).click()
  await field(page).fill('!pwd')
  await field(page).press('Enter')
  await expect(page.getByRole('button', { name: /To the end|New below/ })).toBeVisible()
  const answer = await homing.until('the follow-up is answered', async () => {
    const end = (await homing.facts(id, last)).find((fact) => fact.type === 'turn_ended')
    return end && (await homing.ask<{ answer: string }>('GET', `/messages/${await messageOf(homing, id, last)}?words=true`)).answer
  })
  expect(answer, 'it ran where it was meant to').toContain(`\n${homing.place}`)
  await still(page)

  // Where it is, is on the page, without having been asked for again.
  await page.getByRole('button', { name: /To the end|New below/ }).click()
  await expect(rows(page, 'words').last()).toContainText(homing.place)
  expect(await page.evaluate(() => window.noted)).toMatchObject({ mounts: [id], unmounts: [] })
  counted(`a reader in the midst of ${last} facts: 1 mount, 0 unmounts, moved by less than ${STILL_PX} px`)
})

async function messageOf(homing: Homing, id: string, after: number): Promise<string> {
  const started = (await homing.facts(id, after)).find((fact) => fact.type === 'turn_started')
  return (started as { message: string }).message
}

test('older pages arrive, words stream and the window changes its size: nothing that is read moves', { tag: '@nightly' }, async ({ homing, page }) => {
  const id = await imported(homing, longPast(FACTS))
  // Older pages take their time, so that one arrives while everything else goes on.
  const late: (() => void)[] = []
  let isLate = false
  await page.route(/\/facts\?before=/, async (route) => {
    if (isLate) await new Promise<void>((resolve) => late.push(resolve))
    await route.continue()
  })
  await page.goto(`/s/${id}`)
  await expect(rows(page).last()).toBeVisible()
  const last = (await homing.facts(id)).at(-1)!.number
  await readBackTo(page, last - 200)
  isLate = true
  await homing.say({ session: id }, '!say 600 200')
  await page.mouse.wheel(0, -300)
  await settle(page)
  await watchAnchor(page)
  for (const [width, height] of [[900, 800], [700, 700], [1280, 640], [1100, 900], [1280, 800]] as const) {
    await page.setViewportSize({ width, height })
    late.shift()?.()
    await settle(page)
  }
  isLate = false
  for (const go of late) go()
  await homing.until('the words have been said', async () => (await homing.facts(id, last)).some((fact) => fact.type === 'turn_ended'))
  await still(page)
  expect(await page.evaluate(() => window.noted)).toMatchObject({ mounts: [id], unmounts: [] })
})

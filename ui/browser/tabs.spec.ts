// The tabs of one browser: all of them live, with one stream among them, the same drafts, and one sign-in.
import { expect, field, type Page, rows, send, test } from './house'
import type { Homing } from './homing'

const TABS = 8
/** One, and another while the first is being replaced. */
const STREAMS_MAX = 2

/** Streams that the server has open. */
async function streams(homing: Homing): Promise<number> {
  const told = await fetch(`${homing.url}/metrics`, { headers: { authorization: `Bearer ${homing.token}` } })
  return Number(/^homing_http_streams (\d+)$/m.exec(await told.text())![1])
}

async function open(homing: Homing, pages: Page[]): Promise<string[]> {
  const ids: string[] = []
  for (const page of pages) {
    const { id } = await homing.newSession()
    await page.goto(`/s/${id}`)
    await expect(field(page)).toBeVisible()
    ids.push(id)
  }
  return ids
}

test('eight tabs are all live, with at most two streams', async ({ homing, people }) => {
  const context = await people.signedIn()
  const pages = await Promise.all(Array.from({ length: TABS }, () => context.newPage()))
  const ids = await open(homing, pages)
  let most = 0
  let isOver = false
  const counting = (async () => {
    while (!isOver) most = Math.max(most, await streams(homing))
  })()
  // A seventh connection would hang: what is sent in each tab, and what comes from elsewhere, is there.
  for (const [at, page] of pages.entries()) {
    await page.bringToFront()
    await send(page, `from tab ${at}`)
    await expect(rows(page, 'words').last()).toContainText(`#1 from tab ${at}`)
  }
  await Promise.all(ids.map((id, at) => homing.say({ session: id }, `from elsewhere ${at}`)))
  for (const [at, page] of pages.entries()) await expect(rows(page, 'words').last()).toContainText(`#2 from elsewhere ${at}`)
  // The tab that leads goes, and another one takes over; the others miss nothing.
  for (const leaving of [0, 1, 2]) {
    await pages[leaving]!.close()
    await Promise.all(ids.slice(leaving + 1).map((id) => homing.say({ session: id }, `after ${leaving}`)))
    for (const page of pages.slice(leaving + 1)) await expect(rows(page, 'words').last()).toContainText(`after ${leaving}`)
  }
  isOver = true
  await counting
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(STREAMS_MAX)
})

test('tabs have the same draft, and signing out in one reaches all', async ({ homing, people }) => {
  const context = await people.signedIn()
  const pages = await Promise.all([1, 2].map(() => context.newPage()))
  const { id } = await homing.newSession()
  for (const page of pages) await page.goto(`/s/${id}`)
  const [one, other] = pages as [Page, Page]
  await field(one).pressSequentially('half a thought')
  await expect(field(other)).toHaveValue('half a thought')
  await one.reload()
  await expect(field(one)).toHaveValue('half a thought')
  await one.keyboard.press('Control+k')
  await one.getByRole('dialog').getByRole('combobox').or(one.getByRole('dialog').getByRole('textbox')).first().fill('sign out')
  await one.keyboard.press('Enter')
  for (const page of pages) {
    await expect(page.getByLabel('Name or e-mail')).toBeVisible()
    await expect(page.getByText('half a thought')).toHaveCount(0)
  }
})

// Every screen as people see it: light and dark, on a laptop and on a phone. Nothing serious for axe, nothing to scroll sideways, and a
// picture of each for somebody to look at, in `target/browser/screens`.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type AxeBuilder from 'axe-core'
import { count } from './counts'
import { expect, openScope, type Page, rows, test } from './house'
import type { Homing } from './homing'
import { imported, longPast, tool, words } from './past'

const LEFT = process.env.HOMING_BROWSER_LEFT ?? fileURLToPath(new URL('../../target/browser', import.meta.url))
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Look {
  name: string
  viewport: { width: number; height: number }
  colorScheme: 'light' | 'dark'
  hasTouch: boolean
}
const LAPTOP = { viewport: { width: 1280, height: 800 }, hasTouch: false }
const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true }
const LOOKS: Look[] = [
  { name: 'laptop-light', colorScheme: 'light', ...LAPTOP },
  { name: 'phone-dark', colorScheme: 'dark', ...PHONE },
  { name: 'laptop-dark', colorScheme: 'dark', ...LAPTOP },
  { name: 'phone-light', colorScheme: 'light', ...PHONE },
]
const looks = LOOKS.slice(0, count('HOMING_BROWSER_LOOKS', 2))

/** A house in which something is going on. */
async function lively(homing: Homing): Promise<Record<string, string>> {
  homing.repository()
  writeFileSync(join(homing.place, 'apples.txt'), 'one\n')
  const story = [
    ...words(0, 'First I look at what is there.', 'reasoning'),
    ...words(1, 'Here is what I found:\n\n| what | how many |\n|---|--:|\n| apples | 3 |\n\n1. look\n2. count\n\n```rust\nfn main() {\n    println!("three");\n}\n```\n\nSee [the book](https://doc.rust-lang.org/book/), and **mind** the `gap`.'),
    ...tool('one', 'cargo test', 'running 3 tests\ntest result: ok\n'),
    { type: 'plan', steps: [{ text: 'look', progress: 'done' }, { text: 'count', progress: 'active' }, { text: 'tell', progress: 'waiting' }] },
    { type: 'notice', text: 'the disk is nearly full' },
    { type: 'usage', input_tokens: 12_000, output_tokens: 900, cached_tokens: 8_000, cost_micros: 41_000 },
  ]
  const long = await imported(homing, [...longPast(60), { said: 'How many apples are there?', story }], { title: 'Counting apples' })
  const { id: changed } = await homing.newSession({ directory: homing.place, title: 'A change, and what waits' })
  await homing.settled((await homing.say({ session: changed }, '!run echo two >> apples.txt; echo new > pears.txt')).id)
  const asking = await homing.say({ session: changed }, '!ask Shell')
  await homing.say({ session: changed }, 'and then this')
  const { id: tree } = await homing.newSession({ directory: homing.place, worktree: { name: 'aside' }, title: 'Beside' })
  await homing.settled((await homing.say({ session: tree }, '!run echo plum > plums.txt')).id)
  const choosing = await homing.say({ new: {} }, '!choose Paint | red | blue')
  const failed = await homing.say({ new: {} }, '!fail after')
  await homing.settled(failed.id)
  for (const waiting of [asking, choosing]) await homing.until('it asks', async () => (await homing.ask<{ items: { session: string }[] }>('GET', '/approvals')).items.some((one) => one.session === waiting.session))
  await homing.ask('POST', '/users', { handle: 'bob', name: 'Bob Baker' })
  await homing.ask('POST', '/groups', { name: 'bakers' })
  return {
    sessions: '/', session: `/s/${long}`, 'session-changes': `/s/${changed}`, 'session-choice': `/s/${choosing.session}`, 'session-failed': `/s/${failed.session}`,
    search: '/search?q=apples', changes: `/changes?${new URLSearchParams({ session: tree, tree: 'aside' })}`,
    new: '/new', approvals: '/approvals', worktrees: '/worktrees', agents: '/agents', people: '/people', groups: '/groups', roots: '/roots',
    offers: '/offers', usage: '/usage', audit: '/audit', tokens: '/tokens', route: '/route', settings: '/settings', nowhere: '/s/ses_01m7s08eqpe3p87sfyr1t3b274',
  }
}

/** Everything that was asked for is there. */
async function settled(page: Page): Promise<void> {
  await expect(page.locator('h1').first()).toBeVisible()
  await expect(page.getByText('Loading …')).toHaveCount(0)
  await page.evaluate(() => document.fonts.ready.then(() => new Promise((resolve) => requestIdleCallback(resolve, { timeout: 500 }))))
}

async function serious(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  const found = await page.evaluate(async () => {
    const axe = (window as unknown as { axe: typeof AxeBuilder }).axe
    const { violations } = await axe.run(document, { resultTypes: ['violations'] })
    return violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, where: nodes.slice(0, 3).map((node) => `${node.target.join(' ')}: ${node.failureSummary ?? ''}`) }))
  })
  return found.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, help, where }) => `${id} (${help})\n  ${where.join('\n  ')}`)
}

/** Looks at a screen, and keeps a picture of it. */
async function look(page: Page, name: string, of: Look): Promise<void> {
  await settled(page)
  await page.screenshot({ path: join(LEFT, 'screens', `${name}.${of.name}.png`), animations: 'disabled' })
  expect.soft(await serious(page), `${name}, ${of.name}: serious for axe`).toEqual([])
  const wide = await page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll('main, aside, dialog, .timeline')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => `${one.tagName} ${one.className}`),
  )
  expect.soft(wide, `${name}, ${of.name}: nothing is to be scrolled sideways`).toEqual([])
}

test.describe('screens', () => {
  test.beforeAll(() => mkdirSync(join(LEFT, 'screens'), { recursive: true }))

  for (const of of looks) {
    test(`every screen, ${of.name}`, async ({ homing, people }) => {
      test.setTimeout(120_000)
      const { viewport, colorScheme, hasTouch } = of
      const options = { viewport, colorScheme, hasTouch, isMobile: hasTouch, reducedMotion: 'reduce' as const }
      const empty = await (await people.signedIn(options)).newPage()
      await empty.goto('/')
      await look(empty, 'empty', of)
      const stranger = await (await people.stranger(options)).newPage()
      await stranger.goto('/s/ses_01m7s08eqpe3p87sfyr1t3b274')
      await look(stranger, 'sign-in', of)

      const screens = await lively(homing)
      const page = await (await people.signedIn(options)).newPage()
      for (const [name, path] of Object.entries(screens)) {
        await page.goto(path)
        if (path.startsWith('/s/') && name !== 'nowhere') await expect(rows(page).last()).toBeVisible()
        await look(page, name, of)
      }
      // What opens above and beside them.
      await page.goto(screens['session-changes']!)
      await expect(rows(page, 'question')).toBeVisible()
      await openScope(page)
      await look(page, 'scope', of)
      await page.getByRole('button', { name: 'Turns' }).click()
      await look(page, 'turns', of)
      await page.keyboard.press('Control+k')
      await look(page, 'palette', of)
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('button', { name: 'Share …' }).click()
      await expect(page.getByRole('dialog')).toBeVisible()
      await look(page, 'share', of)
    })
  }
})

// Hostile words, wherever words can stand: they are shown and nothing else. Nothing is executed or fetched, our own code breaks no
// policy (the guards see to that), and no task of the main thread is felt.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Receipt } from '../src/api/types'
import { counted } from './counts'
import { expect, field, openScope, type Page, rows, send, test } from './house'
import { imported, type PastTurn, tool, words } from './past'

const TASK_MS_MAX = 200
/** More than any row of these has. */
const FOLDS_MAX = 40

const SCRIPTS = [
  '<script>window.executed = 1</script>',
  '<img src=x onerror="window.executed = 2">',
  '<svg onload="window.executed = 3"><script>window.executed = 4</script></svg>',
  '<iframe srcdoc="<script>parent.executed = 5</script>"></iframe>',
  '[press](javascript:window.executed=6)',
  '[press](data:text/html,<script>window.executed=7</script>)',
  '![look](https://elsewhere.invalid/pixel.png)',
  '<link rel=stylesheet href=https://elsewhere.invalid/x.css><style>@import "https://elsewhere.invalid/y.css"; body { display: none }</style>',
  '<meta http-equiv=refresh content="0; url=https://elsewhere.invalid/">',
  '<base href=https://elsewhere.invalid/><form action=https://elsewhere.invalid/><button autofocus onfocus="window.executed=8">x</button></form>',
  '[fine](https://elsewhere.invalid/page "title\\" onmouseover=window.executed=9")',
  '${window.executed = 10}{{constructor.constructor("window.executed = 11")()}}{@html "<script>window.executed = 12</script>"}',
].join('\n\n')
const CONTROL = 'before \u001b[31mred\u001b[0m \u001b]8;;https://elsewhere.invalid\u0007link\u001b]8;;\u0007 \u202Egnp.exe\u202C \u2066hidden\u2069 \u0007\u0000\u009b1m after'

/** Words that take other readers minutes, by what they are. */
const BOMBS: Record<string, string> = {
  'a line of a megabyte': 'x'.repeat(1_000_000),
  'a megabyte of words': 'words and more of them '.repeat(43_000),
  '50,000 underscores': '_'.repeat(50_000),
  '20,000 quotes': '>'.repeat(20_000),
  'lists 1,000 deep': Array.from({ length: 1_000 }, (_, at) => `${' '.repeat(at * 2)}- ${at}`).join('\n'),
  '50,000 brackets': '['.repeat(50_000),
  'a table of 2,000 columns': `${'|a'.repeat(2_000)}|\n${'|-'.repeat(2_000)}|\n${`${'|b'.repeat(2_000)}|\n`.repeat(20)}`,
  '20,000 links': '[a](https://a.invalid/) '.repeat(20_000),
}

/** The page has not been had, and is not slow. */
async function unharmed(page: Page, where: string): Promise<number> {
  // Everything in view has been read by then: words are read in slices of time.
  await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)))
  const seen = await page.evaluate(() => ({
    executed: window.executed,
    links: [...document.querySelectorAll<HTMLAnchorElement>('a[href]')].map((link) => link.protocol),
    pictures: [...document.querySelectorAll('img')].map((image) => image.src),
    strange: document.querySelectorAll('main script, main style, main iframe, main object, main embed, main link, main meta, main base').length,
    worst: Math.max(0, ...window.noted.longTasks),
  }))
  expect.soft(seen, where).toMatchObject({ executed: undefined, strange: 0, pictures: [] })
  expect.soft(seen.links.filter((protocol) => !['http:', 'https:', 'mailto:'].includes(protocol)), where).toEqual([])
  expect.soft(seen.worst, `${where}: the longest task, in ms`).toBeLessThanOrEqual(TASK_MS_MAX)
  return seen.worst
}

/** Unfolds whatever is there to unfold, one after the other: rows change places under it. */
async function unfoldAll(page: Page): Promise<void> {
  // Found and clicked in one go: a row that is drawn anew in between is not waited for.
  const unfoldOne = () => {
    const fold = document.querySelector<HTMLButtonElement>('.timeline button.fold[aria-expanded="false"]')
    fold?.click()
    return fold !== null
  }
  for (let at = 0; at < FOLDS_MAX && (await page.evaluate(unfoldOne)); at++);
}

const everywhere = (text: string): PastTurn => ({
  said: text,
  story: [
    ...words(0, text, 'reasoning'),
    ...words(1, text),
    ...tool('one', text, text),
    { type: 'plan', steps: [{ text: text.slice(0, 20_000), progress: 'active' }] },
    { type: 'notice', text: text.slice(0, 20_000) },
    { type: 'changes', files: [{ path: `${text.slice(0, 200)}`, kind: 'edited' }], patch: `--- a/x\n+++ b/x\n@@ -1 +1 @@\n-${text.slice(0, 5_000)}\n+${text.slice(0, 5_000)}\n`, cut: false },
  ],
})

test('as message, answer, thought, tool, plan, notice and change: shown, and nothing else', async ({ homing, page }) => {
  const id = await imported(homing, [everywhere(SCRIPTS), everywhere(CONTROL)], { title: SCRIPTS.replaceAll('\n', ' ').slice(0, 200) })
  await page.goto(`/s/${id}`)
  await expect(rows(page).last()).toBeVisible()
  await unfoldAll(page)
  await unharmed(page, 'the end')
  await page.locator('.timeline').focus()
  await page.keyboard.press('Home')
  await unfoldAll(page)
  await expect(rows(page, 'words').first()).toContainText('<script>window.executed = 1</script>')
  await unharmed(page, 'the beginning')
  // What cannot be seen is shown as a mark, and what a terminal would do is not there.
  const text = await page.evaluate(() => document.querySelector('.timeline')!.textContent!)
  expect(text).not.toMatch(/[\u001b\u202e\u2066\u0007\u0000\u009b]/)
  expect(text).not.toContain('[31m')
  // The list has the title, the palette, too.
  await page.goto('/')
  await expect(page.getByRole('link', { name: /script/ }).first()).toBeVisible()
  await page.keyboard.press('Control+k')
  await unharmed(page, 'list and palette')
})

test('as words that are said live, and as questions', async ({ homing, page }) => {
  const { id } = await homing.newSession()
  await page.goto(`/s/${id}`)
  await send(page, SCRIPTS)
  await expect(rows(page, 'words').last()).toContainText('window.executed = 12')
  await send(page, CONTROL)
  await expect(rows(page, 'words').last()).toContainText('after')
  await send(page, `!choose <img/src=x/onerror=executed=1> | ${SCRIPTS.replaceAll('\n', ' ').replaceAll('|', ' ').slice(0, 500)} | \u202Egnp.exe`)
  const question = page.getByRole('region', { name: 'Question' })
  await expect(question).toContainText('<img/src=x/onerror=executed=1>')
  await unharmed(page, 'a question')
  await page.goto('/approvals')
  await expect(page.getByText('<img/src=x/onerror=executed=1>').first()).toBeVisible()
  await unharmed(page, 'the page of questions')
})

test('as a file, a directory and a branch', async ({ homing, page }) => {
  const dir = join(homing.place, '"><img src=x onerror=executed=1>\u202E')
  mkdirSync(dir)
  homing.repository(dir)
  execFileSync('git', ['branch', '-m', '"><svg/onload=executed=2>'], { cwd: dir })
  for (const name of ['<img src=x onerror=executed=3>', 'a\u202Egnp.exe', 'b\u001b[31m.txt', 'new\nline']) writeFileSync(join(dir, name), 'one\n')
  const { id } = await homing.newSession({ directory: dir })
  await page.goto(`/s/${id}`)
  await send(page, '!run echo two >> "<img src=x onerror=executed=3>"; echo three > "<svg onload=executed=4>"')
  await expect(rows(page, 'end')).toBeVisible()
  await unfoldAll(page)
  await expect(rows(page, 'changes').last()).toContainText('<svg onload=executed=4>')
  await field(page).pressSequentially('look at @img')
  await expect(page.getByRole('listbox')).toContainText('<img src=x onerror=executed=3>')
  await unharmed(page, 'files')
  const scope = await openScope(page)
  await scope.getByLabel('Name of a worktree').fill('aside')
  await scope.getByLabel('From which commit or branch').fill('"><svg/onload=executed=2>')
  await scope.getByLabel('Name of a worktree').press('Enter')
  await expect(scope.getByRole('alert')).toBeVisible()
  await scope.getByLabel('From which commit or branch').fill('')
  await scope.getByLabel('Name of a worktree').press('Enter')
  await expect(scope.getByText('aside of')).toBeVisible()
  await unharmed(page, 'a branch')
  await page.goto('/worktrees')
  await expect(page.getByText('aside').first()).toBeVisible()
  await unharmed(page, 'worktrees')
})

for (const [what, text] of Object.entries(BOMBS)) {
  test(`${what}: no task above ${TASK_MS_MAX} ms`, async ({ homing, page }) => {
    const id = await imported(homing, [everywhere(text)], { title: text.replaceAll('\n', ' ').slice(0, 200) })
    await page.goto(`/s/${id}`)
    await expect(rows(page).last()).toBeVisible()
    await unfoldAll(page)
    const worst = [await unharmed(page, `${what}, as it was said before`)]
    // And as words that come, while somebody is at the end.
    await page.locator('.timeline').focus()
    await page.keyboard.press('e')
    await homing.say({ session: id }, text).then((receipt: Receipt) => homing.settled(receipt.id))
    await expect(rows(page, 'end').last()).toBeVisible()
    worst.push(await unharmed(page, `${what}, as it comes`))
    counted(`${what}: the longest task took ${Math.round(Math.max(...worst))} ms`)
  })
}

// Whatever happens to the server, the line and the tabs, at whatever moment: nothing that was said is lost, doubled or sent twice, and
// what two tabs show in the end is what the log has, and what a page shows that is opened only then.
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrowserContext, CDPSession } from '@playwright/test'
import type { Receipt } from '../src/api/types'
import { count, counted } from './counts'
import { expect, field, type Page, rows, send, test } from './house'
import type { Homing } from './homing'

const CUTS = count('HOMING_BROWSER_CUTS', 12)
/** So few that everything said between them fits into one tall window, in which all rows are elements. */
const CUTS_OF_A_SESSION = 6
const WINDOW = { width: 1000, height: 9_000 }
const SEED = Number(process.env.HOMING_BROWSER_SEED ?? Math.floor(Math.random() * 1_000_000))

/** Numbers that are the same for the same seed. */
function chance(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

interface Scene {
  homing: Homing
  context: BrowserContext
  pages: [Page, Page]
  tabs: [CDPSession, CDPSession]
  session: string
  /** What was said, with the last word of its answer. */
  said: { words: string; last: string }[]
  /** How often the server was killed: so many turns may have been interrupted. */
  kills: number
  pick: (below: number) => number
}

/** Says something in a tab: a word of its own, and words that take a while to come. */
async function say(scene: Scene, tab: 0 | 1): Promise<void> {
  const words = `word ${scene.said.length}.`
  const count = 10 + scene.pick(60)
  scene.said.push({ words, last: `word${count}` })
  await send(scene.pages[tab], `${words}\n!say ${count} ${100 + scene.pick(400)}`)
}

const CUT: Record<string, (scene: Scene) => Promise<void>> = {
  async 'the server is killed'(scene) {
    scene.kills += 1
    await scene.homing.kill()
    await say(scene, 1)
    await sleep(scene.pick(600))
    await scene.homing.begin()
  },
  async 'the line is cut'(scene) {
    scene.homing.line!.cut()
    await say(scene, 1)
    await sleep(scene.pick(1_500))
    scene.homing.line!.mend()
  },
  async 'the machine is offline, and knows it'(scene) {
    await scene.context.setOffline(true)
    scene.homing.line!.cut()
    await say(scene, 1)
    await sleep(scene.pick(1_500))
    scene.homing.line!.mend()
    await scene.context.setOffline(false)
  },
  async 'the server is silent'(scene) {
    scene.homing.freeze()
    await say(scene, 1)
    await sleep(scene.pick(1_000))
    scene.homing.wake()
  },
  async 'a tab is frozen'(scene) {
    const tab = scene.pick(2)
    await scene.tabs[tab]!.send('Page.setWebLifecycleState', { state: 'frozen' })
    await say(scene, tab ? 0 : 1)
    await sleep(scene.pick(1_500))
    await scene.tabs[tab]!.send('Page.setWebLifecycleState', { state: 'active' })
  },
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

/** Every row as it is read, by its key. */
function shown(page: Page): Promise<Record<string, string>> {
  return page.evaluate(() => {
    const all = [...document.querySelectorAll<HTMLElement>('.timeline [data-key]')]
    return Object.fromEntries(all.map((row) => [row.dataset.key!, row.innerText.trim()]))
  })
}

/** What became of everything said, once nothing is under way. Nobody lets anything go: nothing is held after a cut. */
function calm(scene: Scene): Promise<Receipt[]> {
  const { homing, session, said } = scene
  return homing.until(`all ${said.length} messages are over`, async () => {
    const queued = (await homing.facts(session)).flatMap((fact) => (fact.type === 'queued' ? [fact.message] : []))
    const receipts = await Promise.all(queued.map((message) => homing.ask<Receipt>('GET', `/messages/${message}?words=true`)))
    return receipts.length >= said.length && receipts.every((one) => !['waiting', 'running'].includes(one.state)) && receipts
  }, 60_000)
}

/** The log has all of it once, in whole: only what ran when the server was killed may have been cut short. */
async function whole({ homing, session, said, kills }: Scene, receipts: Receipt[]): Promise<void> {
  expect(receipts.map((one) => one.text!.split('\n')[0]).sort(), 'said once each').toEqual(said.map((one) => one.words).sort())
  const facts = await homing.facts(session)
  expect(facts.map((fact) => fact.number), 'no fact is missing').toEqual(facts.map((_, at) => at + 1))
  const ran = facts.flatMap((fact) => (fact.type === 'turn_started' ? [fact.message] : []))
  expect(ran.sort(), 'each ran once').toEqual(receipts.map((one) => one.id).sort())
  expect(facts.filter((fact) => fact.type === 'held'), 'only a turn that fails holds what waits').toEqual([])
  const cutShort = receipts.filter((one) => one.state !== 'answered')
  expect(cutShort.map((one) => `${one.state} ${one.why}`)).toEqual(cutShort.map(() => 'failed interrupted'))
  expect(cutShort.length, 'cut short at most once for each time the server was killed').toBeLessThanOrEqual(kills)
  for (const one of receipts) if (one.state === 'answered') expect(one.answer).toMatch(new RegExp(`\\b${said.find(({ words }) => one.text!.startsWith(words))!.last}$`))
}

async function begin(homing: Homing, context: BrowserContext, pick: Scene['pick']): Promise<Scene> {
  const { id: session } = await homing.newSession()
  const pages = (await Promise.all([1, 2].map(() => context.newPage()))) as [Page, Page]
  for (const page of pages) await page.goto(`/s/${session}`)
  const tabs = (await Promise.all(pages.map((page) => context.newCDPSession(page)))) as [CDPSession, CDPSession]
  return { homing, context, pages, tabs, session, said: [], kills: 0, pick }
}

test.use({ setup: { line: true } })

test('cut off at random moments, nothing is lost, doubled or sent twice', async ({ homing, people }) => {
  test.setTimeout(60_000 + CUTS * 20_000)
  test.info().annotations.push({ type: 'HOMING_BROWSER_SEED', description: String(SEED) })
  const pick = chance(SEED)
  const kinds = Object.keys(CUT)
  const context = await people.signedIn({ viewport: WINDOW })
  for (let made = 0; made < CUTS; ) {
    const scene = await begin(homing, context, pick)
    for (let at = 0; at < CUTS_OF_A_SESSION && made < CUTS; at++, made++) {
      // Each kind comes, whatever the seed.
      const kind = kinds[made < kinds.length ? made : pick(kinds.length)]!
      await test.step(kind, async () => {
        await say(scene, 0)
        await sleep(pick(250))
        await CUT[kind]!(scene)
      })
    }
    // What could not be sent is sent by the pages themselves.
    for (const page of scene.pages) await expect(page.locator('[data-sending]')).toHaveCount(0, { timeout: 45_000 })
    const receipts = await calm(scene)
    await whole(scene, receipts)
    const fresh = await context.newPage()
    await fresh.goto(`/s/${scene.session}`)
    await expect(fresh.locator('[data-kind="message"]')).toHaveCount(scene.said.length)
    const rows = await shown(fresh)
    for (const { words } of scene.said) expect(Object.values(rows).filter((row) => row.includes(words) && row.includes('!say'))).toHaveLength(1)
    // The words of each answer are on the page as the log has them, but for how lines are broken.
    const all = Object.values(rows).map(oneLine)
    for (const { answer } of receipts) if (answer) expect(all).toContain(oneLine(answer))
    for (const page of scene.pages) await expect.poll(() => shown(page), { message: 'as in a page that was opened only now', timeout: 30_000 }).toEqual(rows)
    for (const page of [...scene.pages, fresh]) await page.close()
  }
  counted(`${CUTS} cuts at random moments: nothing lost, doubled or sent twice`)
})

test('a row whose words could not be had has them once somebody answers', async ({ homing, page }) => {
  const { id } = await homing.newSession()
  await page.goto(`/s/${id}`)
  await expect(field(page)).toBeVisible()
  await page.route(/\/messages\/msg_/, (route) => route.abort())
  await homing.say({ session: id }, 'from elsewhere')
  const row = rows(page, 'message').last()
  await expect(row).toContainText('The server cannot be reached.')
  await page.unroute(/\/messages\/msg_/)
  await expect(row).toContainText('from elsewhere')
})

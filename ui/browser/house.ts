// What every test begins with: a server of its own, browsers that are signed in, and guards over everything that pages do.
//
// The guards fail a test in which a page breaks the server's policy, asks anything of anybody else, has an error that nobody caught,
// or opens a dialog of the browser. They look at every page of every browser that `people` has opened.
import { type Browser, type BrowserContext, type BrowserContextOptions, type Locator, type Page, expect, test as base } from '@playwright/test'
import { join } from 'node:path'
import { Homing, type Setup } from './homing'

export { expect }
export type { Page }

/** While one writes: the app's files from this directory (`npm run build`), so that the program need not be built for each look. */
const BUILT = process.env.HOMING_BROWSER_BUILT

/** What a page notes of itself, from before its first script on. */
export interface Noted {
  violations: string[]
  /** Tasks of the main thread that took longer than a twentieth of a second, in milliseconds. */
  longTasks: number[]
  mounts: string[]
  unmounts: string[]
}

declare global {
  interface Window {
    noted: Noted
    /** What hostile words would set, if they were executed. */
    executed?: unknown
  }
}

function note(): void {
  const noted: Noted = { violations: [], longTasks: [], mounts: [], unmounts: [] }
  window.noted = noted
  document.addEventListener('securitypolicyviolation', (event) =>
    noted.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample} (${event.sourceFile}:${event.lineNumber})`),
  )
  new PerformanceObserver((list) => noted.longTasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask' })
  window.addEventListener('homing:mount', (event) => noted.mounts.push((event as CustomEvent<{ name: string }>).detail.name))
  window.addEventListener('homing:unmount', (event) => noted.unmounts.push((event as CustomEvent<{ name: string }>).detail.name))
}

export class People {
  readonly #browser: Browser
  readonly #homing: Homing
  readonly #contexts: BrowserContext[] = []
  /** What the guards have against this test. */
  readonly wrong: string[] = []
  /** Errors that the pages may have: a line that is cut says so. */
  allowed: RegExp[] = []

  constructor(browser: Browser, homing: Homing) {
    this.#browser = browser
    this.#homing = homing
  }

  /** A browser that nobody has signed in with. */
  async stranger(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.#browser.newContext({ baseURL: this.#homing.front, ...options })
    this.#contexts.push(context)
    await context.addInitScript(note)
    if (BUILT) await context.route('**/ui/*/*', (route) => route.fulfill({ path: join(BUILT, new URL(route.request().url()).pathname.split('/').pop()!) }))
    context.on('request', (request) => {
      const to = new URL(request.url())
      if (to.origin !== this.#homing.front && !['blob:', 'data:'].includes(to.protocol)) this.wrong.push(`asked elsewhere: ${request.url()}`)
    })
    context.on('weberror', (error) => this.#note(`uncaught: ${error.error().stack ?? error.error().message}`))
    context.on('dialog', (dialog) => {
      this.wrong.push(`a dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    // That an answer was a no is part of how it works, and the browser's console has no use for it.
    context.on('console', (message) => message.type() === 'error' && !message.text().startsWith('Failed to load resource') && this.#note(`console: ${message.text()}`))
    context.on('response', (response) => response.status() >= 500 && this.#note(`${response.status()} of ${response.url()}`))
    return context
  }

  /** A browser in which somebody is signed in: the machine's person, unless it is somebody else. */
  async signedIn(options: BrowserContextOptions = {}, person?: string): Promise<BrowserContext> {
    const context = await this.stranger(options)
    const link = (await this.#homing.newLink(person)).split('/').pop()!
    const answer = await context.request.post('/api/v1/sign-in', { data: { link, for: 'browser' }, headers: { origin: this.#homing.front } })
    expect(answer.status(), await answer.text()).toBe(200)
    return context
  }

  #note(what: string): void {
    if (!this.allowed.some((pattern) => pattern.test(what))) this.wrong.push(what)
  }

  /** Closes every browser, and tells what was wrong with what they did. */
  async leave(): Promise<string[]> {
    for (const context of this.#contexts) {
      for (const page of context.pages()) {
        const violations = await page.evaluate(() => window.noted?.violations ?? []).catch(() => [])
        this.wrong.push(...violations.map((one) => `against the policy: ${one}`))
      }
      await context.close()
    }
    return this.wrong
  }
}

interface Fixtures {
  /** What the server is started with; a file of tests says it by `test.use`. */
  setup: Setup
  homing: Homing
  people: People
  /** A page of the machine's person, who is signed in; nothing is open on it yet. */
  page: Page
}

export const test = base.extend<Fixtures>({
  setup: [{}, { option: true }],
  homing: async ({ setup }, use) => {
    const homing = await Homing.start(setup)
    await use(homing)
    await homing.stop()
  },
  people: async ({ browser, homing }, use) => {
    const people = new People(browser, homing)
    await use(people)
    expect(await people.leave(), 'what pages did that they must not').toEqual([])
  },
  page: async ({ people }, use) => {
    await use(await (await people.signedIn()).newPage())
  },
})

/** The field in which one writes. */
export const field = (page: Page) => page.getByRole('textbox', { name: 'Message' })

/** Writes something and sends it. */
export async function send(page: Page, words: string): Promise<void> {
  await field(page).fill(words)
  await field(page).press('Enter')
}

/** Opens what says where and how the session acts, beside its rows. */
export async function openScope(page: Page): Promise<Locator> {
  // On a phone it says the directory and not the agent.
  await page.getByRole('main').locator('header button[title^="/"]').click()
  return page.getByRole('region', { name: 'Scope' })
}

/** The rows of a timeline, of one kind or of all. */
export const rows = (page: Page, kind?: string) => page.locator(kind ? `[data-key][data-kind="${kind}"]` : '[data-key]')

// What a phone has of it: the page can be installed, and tells while nobody looks at it. The push service is played: what it would have
// delivered is delivered by DevTools, and what a browser asks it for is made here. What goes there is tried in crates/server/tests/it/pushes.rs.
import type { BrowserContext, CDPSession, Worker } from '@playwright/test'
import { expect, test } from './house'
import type { Homing } from './homing'

/** Stands in for the push service: a subscription with real keys, remembered as a browser does. */
function playPushService(): void {
  const base64url = (bytes: ArrayBuffer) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')
  let kept: PushSubscription | null = null
  PushManager.prototype.getSubscription = () => Promise.resolve(kept)
  PushManager.prototype.subscribe = async (options) => {
    const pair = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits'])
    const keys = {
      p256dh: base64url(await crypto.subtle.exportKey('raw', pair.publicKey)),
      auth: base64url(crypto.getRandomValues(new Uint8Array(16)).buffer),
    }
    const key = options?.applicationServerKey as Uint8Array<ArrayBuffer>
    kept = {
      options: { applicationServerKey: key.buffer, userVisibleOnly: true },
      toJSON: () => ({ endpoint: 'https://push.example/to/1', keys }),
      unsubscribe: () => Promise.resolve((kept = null) === null),
    } as unknown as PushSubscription
    return kept
  }
}

/** What of a service worker's own scope is used here: the types of the whole one clash with a page's. */
interface WorkerScope {
  registration: { getNotifications(): Promise<Notification[]> }
  dispatchEvent(event: Event): void
}
declare const NotificationEvent: new (type: string, init: { notification: Notification }) => Event

interface Told {
  title: string
  body: string
  tag: string
  silent: boolean | null
}

const told = (worker: Worker): Promise<Told[]> =>
  worker.evaluate(async () => {
    const standing = await (self as unknown as WorkerScope).registration.getNotifications()
    return standing.map(({ title, body, tag, silent }) => ({ title, body, tag, silent }))
  })

/** As a push service would deliver it. */
async function deliverer(context: BrowserContext, homing: Homing): Promise<(words: Record<string, unknown>) => Promise<void>> {
  const line: CDPSession = await context.newCDPSession(await context.newPage())
  const registered = new Promise<string>((resolve) =>
    line.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const ours = registrations.find((one) => one.scopeURL === `${homing.url}/` && !one.isDeleted)
      if (ours) resolve(ours.registrationId)
    }),
  )
  await line.send('ServiceWorker.enable')
  const registrationId = await registered
  return async (words) => {
    await line.send('ServiceWorker.deliverPushMessage', { origin: homing.url, registrationId, data: JSON.stringify(words) })
  }
}

const asks = { version: 1, kind: 'asks', title: 'Mend the roof', agent: 'claude', tool: 'Bash', open: 1 }

test('the page can be installed', async ({ page }) => {
  await page.goto('/')
  const line = await page.context().newCDPSession(page)
  const manifest = await line.send('Page.getAppManifest')
  expect(manifest.errors).toEqual([])
  const words = JSON.parse(manifest.data ?? '{}')
  expect(words).toMatchObject({ id: '/', start_url: '/', scope: '/', display: 'standalone' })
  for (const icon of words.icons) {
    const answer = await page.request.get(new URL(icon.src, manifest.url).href)
    expect([icon.src, answer.status(), answer.headers()['content-type']]).toEqual([icon.src, 200, icon.type])
  }
  const { installabilityErrors } = await line.send('Page.getInstallabilityErrors')
  // A browser of a test is a private one, in which nothing is ever installed.
  expect(installabilityErrors.map((error) => error.errorId).filter((id) => id !== 'in-incognito')).toEqual([])
})

test('notifications are off until asked for, replace each other, and open their session', async ({ homing, page }) => {
  const context = page.context()
  const { id } = await homing.newSession()
  await context.grantPermissions(['notifications'], { origin: homing.url })
  await context.addInitScript(playPushService)
  await page.goto('/settings')
  await expect(page.getByText('Off. If you ask for it, this browser tells you')).toBeVisible()
  expect(context.serviceWorkers(), 'nothing runs that nobody asked for').toEqual([])
  expect(await homing.ask('GET', '/me/pushes')).toMatchObject({ items: [] })

  const started = context.waitForEvent('serviceworker')
  await page.getByRole('button', { name: 'Tell me in this browser' }).click()
  const worker = await started
  await expect(page.getByText('On. This browser tells you')).toBeVisible()
  expect(await homing.ask('GET', '/me/pushes')).toMatchObject({ items: [{ service: 'push.example' }] })

  const deliver = await deliverer(context, homing)
  await page.goto('about:blank')
  await deliver({ ...asks, session: id })
  await expect.poll(() => told(worker)).toEqual([{ title: 'Mend the roof', body: 'claude asks about Bash.', tag: id, silent: false }])
  await deliver({ ...asks, kind: 'settled', by: 'eve', open: 0, session: id })
  await expect.poll(() => told(worker)).toEqual([{ title: 'Mend the roof', body: 'eve answered.', tag: id, silent: true }])
  await deliver({ ...asks, kind: 'unheard of', session: 'ses_0other' })

  // A click goes where it leads in the tab that is there, and nothing is loaded anew for it.
  await page.goto('/')
  await page.evaluate(() => Object.assign(window, { wasHere: true }))
  await worker.evaluate(async () => {
    const worker = self as unknown as WorkerScope
    const [notification] = await worker.registration.getNotifications()
    worker.dispatchEvent(new NotificationEvent('notificationclick', { notification: notification! }))
  })
  await expect(page).toHaveURL(`/s/${id}`)
  expect(await page.evaluate(() => 'wasHere' in window)).toBe(true)
  await expect.poll(() => told(worker), 'what was clicked is gone').toEqual([])

  // While a page is in sight, nothing is shown: it stands there.
  await page.bringToFront()
  await deliver({ ...asks, session: id })
  await deliver({ ...asks, kind: 'ended', outcome: 'answered', session: id })
  expect(await told(worker)).toEqual([])

  // The played service has forgotten this browser by now, so it is off here, whatever the server says; then on, and off for good.
  await page.goto('/settings')
  await page.getByRole('button', { name: 'Tell me in this browser' }).click()
  await page.getByRole('button', { name: 'Tell me nothing here any more' }).click()
  await expect(page.getByText('Off. If you ask for it, this browser tells you')).toBeVisible()
  expect(await homing.ask('GET', '/me/pushes')).toMatchObject({ items: [] })
})

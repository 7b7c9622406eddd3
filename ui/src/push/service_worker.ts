// What runs without a page: shows what the server has pushed, and opens the session of what is clicked.
//
// It has no part in loading pages (nothing is fetched through it, nothing is kept for later), knows no secret, and is one file without
// imports when it is built. While a page of ours is in sight in this browser nothing is shown: what happens stands there.
import { noticeOf, pathOf } from './notice'

declare const self: ServiceWorkerGlobalScope

/** Where the server puts the build's hash in place of the @. */
const ICON = '/ui/@/icon-192.png'

self.addEventListener('install', () => void self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
self.addEventListener('push', (event) => event.waitUntil(show(event.data)))
self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(open(event.notification.tag))
})
self.addEventListener('pushsubscriptionchange', (event) => (event as ExtendableEvent).waitUntil(subscribeAgain(event as SubscriptionChange)))

interface SubscriptionChange extends ExtendableEvent {
  readonly newSubscription: PushSubscription | null
  readonly oldSubscription: PushSubscription | null
}

const windows = () => self.clients.matchAll({ type: 'window', includeUncontrolled: true })

async function show(pushed: PushMessageData | null): Promise<void> {
  const notice = noticeOf(read(pushed))
  if (!notice) return
  const standing = await self.registration.getNotifications({ tag: notice.session })
  if ((await windows()).some((page) => page.visibilityState === 'visible')) {
    for (const one of standing) one.close()
    return
  }
  const { title, body, isQuiet, session } = notice
  // What has the same tag is replaced. Browsers know `renotify`; TypeScript's library does not.
  const options: NotificationOptions & { renotify: boolean } = { body, tag: session, silent: isQuiet, renotify: !isQuiet, icon: ICON, badge: ICON }
  await self.registration.showNotification(title, options)
}

function read(pushed: PushMessageData | null): unknown {
  try {
    return pushed?.json()
  } catch {
    return null
  }
}

/** In the tab that shows it, else in any tab of ours, else in a new one. */
async function open(session: string): Promise<void> {
  const path = pathOf(session)
  const pages = await windows()
  const there = pages.find((page) => new URL(page.url).pathname === path)
  const page = there ?? pages[0]
  if (!page) {
    await self.clients.openWindow(path)
    return
  }
  await page.focus().catch(() => undefined)
  // The page goes there itself: what is being written in it stays.
  if (page !== there) page.postMessage({ open: path })
}

/** The push service has another address for this browser. If the sign-in is over, it is asked for again in the settings. */
async function subscribeAgain(change: SubscriptionChange): Promise<void> {
  const options = change.oldSubscription?.options
  const now = change.newSubscription ?? (options && (await self.registration.pushManager.subscribe(options)))
  if (!now) return
  const { endpoint, keys } = now.toJSON()
  await fetch('/api/v1/me/pushes', { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ endpoint, keys }) })
}

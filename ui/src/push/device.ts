// Whether this browser tells its person what happens while they look elsewhere: off until they ask for it.
//
// Loaded with the settings alone. The browser's word, the push service's and the server's are three: it is on when all say so.
import * as house from '../api/house'
import type { PushPlaces } from '../api/house'

/** The name of the policy of Trusted Types that lets the service worker's own address, and no other, be run. */
const POLICY = 'homing-push'
const ADDRESS = '/service_worker.js'

export type DeviceState = 'off' | 'on' | 'denied' | 'unable' | 'server_off'

/** How it is in this browser. */
export async function deviceState(places: PushPlaces): Promise<DeviceState> {
  if (!places.public_key) return 'server_off'
  if (!('serviceWorker' in navigator) || !('PushManager' in window) || !('Notification' in window)) return 'unable'
  if (Notification.permission === 'denied') return 'denied'
  const registration = await navigator.serviceWorker.getRegistration('/')
  const subscription = await registration?.pushManager.getSubscription()
  return subscription && places.items.some((place) => place.here) ? 'on' : 'off'
}

/** Asks the browser, the push service and the server. Has to begin with a click. */
export async function turnOn(places: PushPlaces): Promise<void> {
  if ((await Notification.requestPermission()) !== 'granted') throw new Error('The browser does not allow it.')
  const key = bytesOf(places.public_key ?? '')
  await navigator.serviceWorker.register(ownAddress(), { scope: '/', updateViaCache: 'none' })
  const registration = await navigator.serviceWorker.ready
  // One that was made for another key would reach nobody.
  const before = await registration.pushManager.getSubscription()
  if (before && !isSame(before.options.applicationServerKey, key)) await before.unsubscribe()
  const subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
  const { endpoint, keys } = subscription.toJSON()
  await house.setPush({ endpoint: endpoint ?? '', keys: { p256dh: keys?.p256dh ?? '', auth: keys?.auth ?? '' } })
}

/** The server first: what is not told to it would be tried in vain. */
export async function turnOff(places: PushPlaces): Promise<void> {
  for (const place of places.items) if (place.here) await house.removePush(place.id)
  const registration = await navigator.serviceWorker.getRegistration('/')
  const subscription = await registration?.pushManager.getSubscription()
  await subscription?.unsubscribe()
}

function isSame(one: ArrayBuffer | null, other: Uint8Array): boolean {
  const bytes = one && new Uint8Array(one)
  return bytes !== null && bytes.length === other.length && bytes.every((byte, index) => byte === other[index])
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64url.replace(/-/g, '+').replace(/_/g, '/')), (char) => char.charCodeAt(0))
}

let own: string | undefined

function ownAddress(): string {
  const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): unknown } } }).trustedTypes
  if (!types) return ADDRESS
  const createScriptURL = (url: string) => {
    if (url !== ADDRESS) throw new TypeError('not our worker')
    return url
  }
  // A policy's name is used once.
  own ??= types.createPolicy(POLICY, { createScriptURL }).createScriptURL(ADDRESS) as string
  return own
}

// Which addresses may be followed, and where they lead.
//
// Only http, https and mailto. Whatever else an address could do (another scheme, a name and password, control characters, a
// backslash that browsers read as a slash) makes it text. Nothing here fetches anything.

import type { Link } from './tree'

/** Characters of an address. Longer ones are data rather than places. */
export const ADDRESS_CHARS_MAX = 2_048

/** What each link has: nobody learns where it was followed from, and what it opens cannot reach back. */
export const LINK_REL = 'noopener noreferrer nofollow'

const FOLLOWED = /^(?:https?:\/\/[^/\\]|mailto:[^/\\])/i
// Spaces, controls, backslashes, and whatever in an address is not what it looks like: code points that are shown as marks.
const REFUSED = /[\s\\"<>`\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u
const MAIL = /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,253}[a-z0-9])?$/i

/** The link for an address, or nothing: then it is text. */
export function link(address: string): Link | null {
  if (address.length > ADDRESS_CHARS_MAX || !FOLLOWED.test(address) || REFUSED.test(address)) return null
  return /^mailto:/i.test(address) ? mailLink(address) : webLink(address)
}

function webLink(address: string): Link | null {
  if (!URL.canParse(address)) return null
  const url = new URL(address)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null
  if (url.username !== '' || url.password !== '' || url.host === '') return null
  return { href: url.href, leads: url.host }
}

/** A mail to one address. What a link would write into it (subject, copies, words) is left out. */
function mailLink(address: string): Link | null {
  const to = address.slice('mailto:'.length).split('?', 1)[0] ?? ''
  return MAIL.test(to) ? { href: `mailto:${to}`, leads: to } : null
}

/** What has to be shown beside the text of a link: where it leads, or nothing if the text says that and nothing else. */
export function shownBeside(to: Link, text: string): string {
  const said = text.trim()
  // A text of other letters than ASCII may look like any host.
  if (!/^[\x21-\x7e]+$/.test(said)) return to.leads
  const bare = said.replace(/^(?:https?:\/\/|mailto:)/i, '').toLowerCase()
  const leads = to.leads.toLowerCase()
  if (bare === leads) return ''
  return bare.startsWith(leads) && '/?#'.includes(bare.charAt(leads.length)) ? '' : to.leads
}

// The pages about who is here and what they may use, for whoever they are offered to.
import type { Me } from '../../api/types'
import { isAdmin } from '../../model/people'

export function peopleTabs(me: Me): { href: string; label: string }[] {
  const tabs = [
    { href: '/people', label: 'People' },
    { href: '/groups', label: 'Groups' },
  ]
  return isAdmin(me) ? [...tabs, { href: '/roots', label: 'Directories' }] : tabs
}

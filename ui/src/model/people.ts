// Who may see to whom, and what a grantee is called. The server decides; this only says what is worth offering.
import type { Group, Grantee, Person, Role } from '../api/house'
import type { Me } from '../api/types'

export const ROLES: Role[] = ['viewer', 'member', 'admin', 'owner']

/** What each role is, in words for whoever chooses one. */
export const ROLE_WORDS: Record<Role, string> = {
  viewer: 'sees what is shared with them',
  member: 'begins sessions and works in them',
  admin: 'sees to people, agents and directories',
  owner: 'everything, and other admins and owners',
}

const rank = (role: Role) => ROLES.indexOf(role)

export const isAdmin = (me: Pick<Me, 'role' | 'rights'>): boolean => rank(me.role) >= rank('admin') && me.rights.includes('admin')

/** True if sessions of one's own can be begun. */
export const canBegin = (me: Pick<Me, 'role' | 'rights'>): boolean => rank(me.role) >= rank('member') && me.rights.includes('prompt')

/** True if one looks after somebody: an admin, and nobody above them. */
export const looksAfter = (me: Pick<Me, 'role' | 'rights'>, them: Pick<Person, 'role'>): boolean =>
  isAdmin(me) && rank(them.role) <= rank(me.role)

/** The roles that one may give: none above one's own. */
export const givable = (me: Pick<Me, 'role' | 'rights'>): Role[] => (isAdmin(me) ? ROLES.slice(0, rank(me.role) + 1) : [])

/** One text for a grantee, to compare and to put into a field of choices. */
export function keyOf(to: Grantee): string {
  if ('user' in to) return `user ${to.user}`
  return 'group' in to ? `group ${to.group}` : 'org'
}

export function granteeOf(key: string): Grantee | null {
  const [kind, id] = key.split(' ')
  if (kind === 'user' && id) return { user: id }
  if (kind === 'group' && id) return { group: id }
  return kind === 'org' ? { org: true } : null
}

/** What people call a grantee; its id if it has gone meanwhile. */
export function granteeName(to: Grantee, people: readonly Pick<Person, 'id' | 'handle'>[], groups: readonly Pick<Group, 'id' | 'name'>[]): string {
  if ('user' in to) return people.find((one) => one.id === to.user)?.handle ?? to.user
  if ('group' in to) return `everybody in ${groups.find((one) => one.id === to.group)?.name ?? to.group}`
  return 'everybody here'
}

/** A way in as a whole address, as it is given to somebody. */
export const wayIn = (path: string, origin: string): string => new URL(path, origin).href

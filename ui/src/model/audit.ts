// The audit, as it is looked for: fields of a form become what the server is asked for.
import type { AuditQuery, Entry } from '../api/house'

export interface AuditForm {
  /** Days as the browser's date fields have them; nothing is open. */
  from: string
  to: string
  who: string
  what: string
  subject: string
}

/** Both days are meant whole, in the time zone of whoever asks. */
export function auditQuery(form: AuditForm): AuditQuery {
  const query: AuditQuery = {}
  const since = day(form.from, 0)
  const until = day(form.to, 1)
  if (since) query.since = since
  if (until) query.until = until
  if (form.who) query.who = form.who
  if (form.what.trim()) query.what = form.what.trim()
  if (form.subject.trim()) query.subject = form.subject.trim()
  return query
}

function day(date: string, after: number): string | undefined {
  const [year, month, of] = date.split('-').map(Number)
  if (!year || !month || !of) return undefined
  return new Date(year, month - 1, of + after).toISOString()
}

/** A stable word as people read it. */
export const whatWords = (what: string): string => what.replaceAll('_', ' ')

/** The verbs that have come so far, for whoever looks for one. */
export const verbs = (entries: readonly Entry[]): string[] => [...new Set(entries.map((entry) => entry.what))].sort()

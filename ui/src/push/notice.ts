// What a notification says, of what a server has pushed. Whatever is in it becomes a few plain words, or none.
//
// Only the service worker imports this: it has to be one file without imports, so nothing else may.

/** A notification as it is shown. */
export interface Notice {
  session: string
  title: string
  body: string
  /** True if it only replaces what stood there: it makes no sound. */
  isQuiet: boolean
}

const TEXT_CHARS_MAX = 120
const SESSION = /^ses_[0-9a-z]{1,40}$/
/** Controls, what turns the direction of a line, and what has no width. */
// eslint-disable-next-line no-control-regex
const MARKS = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g

const OUTCOMES: Record<string, string> = {
  answered: 'Finished.',
  stopped: 'Stopped.',
  interrupted: 'Interrupted: the server lost the turn.',
  time_limit: 'Ended: it took longer than a turn may.',
}

/** The address of a session's page. */
export const pathOf = (session: string): string => `/s/${session}`

/** The notification for what was pushed; nothing if it is nothing that we know. */
export function noticeOf(pushed: unknown): Notice | null {
  if (typeof pushed !== 'object' || pushed === null) return null
  const words = pushed as Record<string, unknown>
  const session = words.session
  if (words.version !== 1 || typeof session !== 'string' || !SESSION.test(session)) return null
  const agent = plain(words.agent) ?? 'an agent'
  const title = plain(words.title) ?? `A session with ${agent}`
  const open = typeof words.open === 'number' ? words.open : 0
  const by = plain(words.by)
  const told = { session, title }
  switch (words.kind) {
    case 'asks': {
      const tool = plain(words.tool)
      const others = open > 1 ? ` ${open} questions are open.` : ''
      return { ...told, body: `${agent} asks${tool ? ` about ${tool}` : ' something'}.${others}`, isQuiet: false }
    }
    case 'settled': {
      const who = by === 'you' ? 'You answered.' : by ? `${by} answered.` : 'The question is no longer open.'
      const left = open === 1 ? ' Another question is open.' : open > 1 ? ` ${open} questions are open.` : ''
      return { ...told, body: who + left, isQuiet: true }
    }
    case 'ended': {
      const outcome = typeof words.outcome === 'string' ? (OUTCOMES[words.outcome] ?? 'Failed.') : 'Finished.'
      const who = by ? ` ${by === 'you' ? 'You' : by} answered its question.` : ''
      return { ...told, body: `${agent}: ${outcome}${who}`, isQuiet: false }
    }
    default:
      return null
  }
}

function plain(text: unknown): string | null {
  if (typeof text !== 'string') return null
  const clean = text.replace(MARKS, ' ').replace(/\s+/g, ' ').trim()
  if (!clean) return null
  const chars = [...clean]
  return chars.length > TEXT_CHARS_MAX ? `${chars.slice(0, TEXT_CHARS_MAX - 1).join('')}…` : clean
}

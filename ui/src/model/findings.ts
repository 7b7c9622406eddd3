// What the doctor found of the machine: what is wrong first, what is well at the end.
import type { DoctorFinding } from '../api/house'

const RANK: Record<DoctorFinding['state'], number> = { fail: 0, warn: 1, ok: 2 }

export const WORDS: Record<DoctorFinding['state'], string> = { fail: 'does not work', warn: 'might be better', ok: 'is well' }

/** The findings by their state, each state in the order in which it was looked at; and how many are well. */
export function findings(all: readonly DoctorFinding[]): { wrong: DoctorFinding[]; well: DoctorFinding[] } {
  const wrong = all.filter((one) => one.state !== 'ok').sort((a, b) => RANK[a.state] - RANK[b.state])
  return { wrong, well: all.filter((one) => one.state === 'ok') }
}

import { describe, expect, it } from 'vitest'
import type { DoctorFinding } from '../api/house'
import { findings } from './findings'

const found = (check: string, state: DoctorFinding['state']): DoctorFinding => ({ check, state, detail: '' })

describe('what the doctor found', () => {
  it('has what does not work first, and keeps what is well apart', () => {
    const { wrong, well } = findings([found('disk', 'ok'), found('wall', 'warn'), found('data', 'fail'), found('clock', 'warn')])
    expect(wrong.map((one) => one.check)).toEqual(['data', 'wall', 'clock'])
    expect(well.map((one) => one.check)).toEqual(['disk'])
  })
})

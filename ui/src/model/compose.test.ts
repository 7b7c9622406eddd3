import { describe, expect, it } from 'vitest'
import { askedAt, filled, fitting, fittingCommands } from './compose'

describe('the composer', () => {
  it('sees a command only at the very beginning', () => {
    expect(askedAt('/sh', 3)).toEqual({ kind: 'command', words: 'sh', from: 0, to: 3 })
    expect(askedAt('say /sh', 7)).toBeNull()
    expect(askedAt('/shout loud', 11)).toBeNull()
  })

  it('sees a file after an @ that stands alone', () => {
    expect(askedAt('look at @src/ma', 15)).toEqual({ kind: 'file', words: 'src/ma', from: 8, to: 15 })
    expect(askedAt('mail me@home', 12)).toBeNull()
    expect(askedAt('@a b', 4)).toBeNull()
  })

  it('puts what was chosen in its place, and the caret behind it', () => {
    expect(filled('look @ma now', { kind: 'file', words: 'ma', from: 5, to: 8 }, '@src/main.rs')).toEqual({ text: 'look @src/main.rs now', caret: 18 })
    expect(filled('/sh', { kind: 'command', words: 'sh', from: 0, to: 3 }, '/shout')).toEqual({ text: '/shout ', caret: 7 })
  })

  it('finds files by name first, and by letters in order last', () => {
    const files = ['docs/main.md', 'src/domain.rs', 'src/main.rs', 'my/aisle/inn']
    expect(fitting(files, 'main', 9)).toEqual(['src/main.rs', 'docs/main.md', 'src/domain.rs', 'my/aisle/inn'])
    expect(fitting(files, 'zz', 9)).toEqual([])
    expect(fitting(files, '', 2)).toHaveLength(2)
  })

  it('has commands that begin so before those that have it inside', () => {
    const commands = [{ name: 'whisper' }, { name: 'shout' }, { name: 'show' }]
    expect(fittingCommands(commands, 'sh').map((one) => one.name)).toEqual(['shout', 'show'])
    expect(fittingCommands(commands, 'is').map((one) => one.name)).toEqual(['whisper'])
  })
})

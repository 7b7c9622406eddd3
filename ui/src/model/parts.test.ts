import { describe, expect, it } from 'vitest'
import { type Attachment, partOf, partsOf, previewOf, tooMuch } from './parts'

const bytes = (text: string) => new TextEncoder().encode(text)
const attachment = (size: number, part = partOf({ name: 'a.bin', type: '', content: new Uint8Array(3) })): Attachment => ({ name: 'a', bytes: size, part, preview: null })

describe('what goes along', () => {
  it('is an image, a text, or a file of bytes', () => {
    expect(partOf({ name: 'a.png', type: 'image/png', content: new Uint8Array([1, 2, 3]) })).toEqual({ type: 'image', name: 'a.png', media_type: 'image/png', data: 'AQID' })
    expect(partOf({ name: 'n.md', type: '', content: bytes('# é') })).toEqual({ type: 'file', name: 'n.md', media_type: 'text/plain', text: '# é' })
    expect(partOf({ name: 'r.pdf', type: 'application/pdf', content: bytes('%PDF') })).toEqual({ type: 'file', name: 'r.pdf', media_type: 'application/pdf', data: 'JVBERg==' })
  })

  it('is not called text if it is none', () => {
    expect(partOf({ name: 'x.txt', type: 'text/plain', content: new Uint8Array([0xff, 0xfe]) })).toMatchObject({ type: 'file', data: '//4=' })
  })

  it('comes after the words, and can stand alone', () => {
    const one = attachment(3)
    expect(partsOf('look', [one])).toEqual([{ type: 'text', text: 'look' }, one.part])
    expect(partsOf('  ', [one])).toEqual([one.part])
  })

  it('is shown small again if it is an image that was kept', async () => {
    const preview = previewOf(partOf({ name: 'a.png', type: 'image/png', content: new Uint8Array([1, 2, 255]) }))
    expect(preview?.type).toBe('image/png')
    expect([...new Uint8Array(await preview!.arrayBuffer())]).toEqual([1, 2, 255])
    expect(previewOf(partOf({ name: 'n.md', type: '', content: bytes('words') }))).toBeNull()
  })

  it('has the bounds of the server', () => {
    expect(tooMuch([], '', 31)).toBeNull()
    expect(tooMuch([], '', 32)).toMatch(/31 files/)
    expect(tooMuch([attachment(6 << 20)], '', 0)).toMatch(/5 MiB/)
    expect(tooMuch([], 'x'.repeat(1024 * 1024 + 1), 0)).toMatch(/1 MiB/)
  })
})

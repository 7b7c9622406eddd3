import { describe, expect, it } from 'vitest'
import { EVENT_CHARS_MAX, EventParser, EventTooLong } from './event_stream'

const RECORDED = [
  'event: began\ndata: {"cursor":"c1"}\n\n',
  ': still here\n\n',
  'event: fact\r\nid: 7\r\ndata: {"session":"ses_a",\r\ndata: "fact":{"number":7}}\r\n\r\n',
  'data: plain\n\n',
].join('')

describe('the parser of a stream', () => {
  it('tells the same events, wherever the stream is cut into pieces', () => {
    const whole = [...new EventParser().push(RECORDED)]
    expect(whole.map((event) => event.event)).toEqual(['began', 'fact', 'message'])
    expect(JSON.parse(whole[1]!.data)).toEqual({ session: 'ses_a', fact: { number: 7 } })
    for (let size = 1; size < RECORDED.length; size++) {
      const parser = new EventParser()
      const told = []
      for (let at = 0; at < RECORDED.length; at += size) told.push(...parser.push(RECORDED.slice(at, at + size)))
      expect(told).toEqual(whole)
    }
  })

  it('tells nothing of an event that was not ended', () => {
    expect([...new EventParser().push('data: half')]).toEqual([])
  })

  it('gives up an event that has no end', () => {
    const parser = new EventParser()
    const piece = 'x'.repeat(1024 * 1024)
    expect(() => {
      for (let told = 0; told <= EVENT_CHARS_MAX; told += piece.length) for (const _ of parser.push(piece)) void _
    }).toThrow(EventTooLong)
  })
})

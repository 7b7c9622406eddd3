// The reader of a text/event-stream: an incremental parser, and a reading of a response with it. EventSource is not used because
// it hides the status of a refusal and goes on by itself with the address that it was given first.
import { Refused, Unreachable, problemOf } from './problem'

export interface StreamEvent {
  event: string
  data: string
  id: string
}

/** The most characters of one event: a fact of the largest words there are, escaped, with room to spare. */
export const EVENT_CHARS_MAX = 16 * 1024 * 1024

export class EventTooLong extends Error {
  constructor() {
    super(`an event of the stream has more than ${EVENT_CHARS_MAX} characters`)
  }
}

/** Takes pieces of a stream as they come, gives whole events. */
export class EventParser {
  #rest = ''
  #data: string[] = []
  #event = ''
  #id = ''
  #chars = 0;

  *push(piece: string): Generator<StreamEvent> {
    // A piece without an end of line is only kept: looking through everything again for each piece would cost its square.
    const from = this.#rest.length
    this.#rest += piece
    let begin = 0
    let end = this.#rest.indexOf('\n', from)
    while (end >= 0) {
      const until = end > begin && this.#rest.charCodeAt(end - 1) === 13 ? end - 1 : end
      const told = this.#line(this.#rest.slice(begin, until))
      if (told) yield told
      begin = end + 1
      end = this.#rest.indexOf('\n', begin)
    }
    this.#rest = this.#rest.slice(begin)
    if (this.#rest.length + this.#chars > EVENT_CHARS_MAX) throw new EventTooLong()
  }

  #line(line: string): StreamEvent | null {
    if (line === '') return this.#close()
    if (line.startsWith(':')) return null
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    let value = colon < 0 ? '' : line.slice(colon + 1)
    if (value.startsWith(' ')) value = value.slice(1)
    if (name === 'data') {
      this.#data.push(value)
      this.#chars += value.length
    } else if (name === 'event') this.#event = value
    else if (name === 'id') this.#id = value
    return null
  }

  #close(): StreamEvent | null {
    const told = this.#data.length ? { event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id } : null
    this.#data = []
    this.#event = ''
    this.#chars = 0
    return told
  }
}

/** Reads a stream until it ends or is given up. Tells whatever comes, a mere sign of life too. */
export async function readEvents(
  address: string,
  signal: AbortSignal,
  tell: (event: StreamEvent) => void,
  alive: () => void = () => {},
): Promise<void> {
  let response: Response
  try {
    response = await fetch(address, {
      headers: { Accept: 'text/event-stream' },
      credentials: 'same-origin',
      cache: 'no-store',
      signal,
    })
  } catch (error) {
    throw signal.aborted ? error : new Unreachable(error)
  }
  if (!response.ok) throw new Refused(await problemOf(response))
  if (!response.body) throw new Unreachable('the answer has no body')
  const parser = new EventParser()
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      alive()
      for (const event of parser.push(value)) tell(event)
    }
  } catch (error) {
    if (signal.aborted || error instanceof EventTooLong) throw error
    throw new Unreachable(error)
  } finally {
    reader.cancel().catch(() => {})
  }
}

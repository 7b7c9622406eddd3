// What is read aloud by those who do not see the page: answers and questions, nothing else. The shell has the place for it.
class Said {
  words = $state('')
  count = $state(0)
}

/** The most characters that are read aloud of an answer: the page has the rest. */
const CHARS_MAX = 600

export const said = new Said()

export function announce(words: string): void {
  said.words = words.length > CHARS_MAX ? `${words.slice(0, CHARS_MAX)} …` : words
  said.count += 1
}

// @vitest-environment happy-dom
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { isWriting, keepsWriting, listenForWriting } from './writing'

function field(type: 'textarea' | 'input', value = '', kept = false): HTMLInputElement | HTMLTextAreaElement {
  const made = document.createElement(type) as HTMLInputElement
  made.value = value
  if (kept) made.dataset.kept = ''
  document.body.append(made)
  return made
}

function type(into: HTMLInputElement | HTMLTextAreaElement, words: string): void {
  into.dispatchEvent(new FocusEvent('focusin', { bubbles: true }))
  into.value = words
  into.dispatchEvent(new Event('input', { bubbles: true }))
}

describe('what a reload would take away', () => {
  beforeAll(() => listenForWriting())
  afterEach(() => document.body.replaceChildren())

  it('is not what a page has filled in by itself', () => {
    field('input', 'from the server')
    field('textarea', 'a draft of yesterday', true)
    expect(isWriting()).toBe(false)
  })

  it('is what somebody has typed, until it is as before, empty or gone', () => {
    const name = field('input', 'Ana')
    type(name, 'Anna')
    expect(isWriting()).toBe(true)
    type(name, 'Ana')
    expect(isWriting()).toBe(false)
    type(name, 'Anna')
    name.remove()
    expect(isWriting()).toBe(false)
  })

  it('is not a draft that is kept, but one that could not be', () => {
    type(field('textarea', '', true), 'a draft')
    let isKept = true
    const stop = keepsWriting(() => isKept)
    expect(isWriting()).toBe(false)
    isKept = false
    expect(isWriting()).toBe(true)
    stop()
    expect(isWriting()).toBe(false)
  })

  it('is not what one looks for', () => {
    const search = field('input') as HTMLInputElement
    search.type = 'search'
    type(search, 'apples')
    expect(isWriting()).toBe(false)
  })
})

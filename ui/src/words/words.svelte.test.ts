// @vitest-environment happy-dom
import { flushSync, mount, unmount, type Component } from 'svelte'
import { afterEach, describe, expect, it } from 'vitest'
import Code from './Code.svelte'
import type { CodeRange } from './code'
import Diff from './Diff.svelte'
import Line from './Line.svelte'
import { LINE_CHARS_MAX, MARKS_MAX } from './marks'
import Plain from './Plain.svelte'
import { CHUNK_CHARS_MAX } from './plain'
import Words from './Words.svelte'

/** Right-to-left override. Written so, because the compiler warns of the character itself. */
const RLO = String.fromCodePoint(0x202e)

let shown: Record<string, unknown>[] = []

afterEach(() => {
  for (const each of shown) void unmount(each)
  shown = []
  document.body.replaceChildren()
})

/** Shows a component; what is assigned to its props afterwards is shown, too. */
function show<Props extends Record<string, unknown>>(component: Component<Props>, about: Props): Props {
  const props = $state(about)
  shown.push(mount(component, { target: document.body, props }) as Record<string, unknown>)
  flushSync()
  return props
}

function all(selector: string): Element[] {
  return [...document.body.querySelectorAll(selector)]
}

const HOSTILE = [
  '<script>alert(1)</script> <img src=x onerror=alert(1)> <svg onload=alert(1)> <style>*{}</style> <iframe src=//x.org></iframe>',
  '![i](https://x.org/i.png) [j](javascript:alert(1)) [k](data:text/html,x) <a href="javascript:alert(1)">l</a> ' + RLO + '\x1b[31mred',
  '```html\n<script>alert(1)</script>\n```',
  '| <b>a</b> |\n|---|\n| <script>x</script> |',
].join('\n\n')

/** Time for one story, on a machine that does much else: this document is slower than a browser's. */
const STORY_MS_MAX = 60_000

describe('words on a page', { timeout: STORY_MS_MAX }, () => {
  it('makes nothing that runs, loads or is styled by what was said', () => {
    show(Words, { text: HOSTILE })
    show(Plain, { text: HOSTILE })
    show(Line, { text: HOSTILE })
    show(Code, { text: HOSTILE, language: '"><script>' })
    show(Diff, { patch: `diff --git a/<script>x</script> b/<img src=x>\n@@ -1 +1,9 @@ <svg onload=x>\n-a\n+${HOSTILE.replaceAll('\n', '\n+')}` })
    expect(all('script, img, svg, style, iframe, object, embed, form, link, [style], [onerror], [onload]')).toEqual([])
    expect(all('a').map((link) => link.getAttribute('href'))).toEqual(['https://x.org/i.png'])
    expect(document.body.textContent).toContain('<script>alert(1)</script>')
    expect(document.body.textContent).not.toContain(RLO)
    expect(document.body.textContent).not.toContain('\x1b')
  })

  it('has links that open elsewhere, tell nobody from where, and show where they lead', () => {
    show(Words, { text: '[bank.org](https://evil.org/x "go")' })
    const [link] = all('a')
    expect(link?.getAttribute('rel')).toBe('noopener noreferrer nofollow')
    expect(link?.getAttribute('target')).toBe('_blank')
    expect(link?.getAttribute('title')).toBe('go (https://evil.org/x)')
    expect(link?.textContent).toBe('bank.org (evil.org)')
  })

  it('has a mark with a name for whatever cannot be seen', () => {
    show(Line, { text: `invoice${RLO}fdp.exe\n` })
    expect(document.body.textContent).toBe('invoiceRLOfdp.exe↵')
    expect(all('[role=img]').map((mark) => [mark.getAttribute('aria-label'), mark.getAttribute('title')])).toEqual([
      ['right-to-left override', 'right-to-left override'],
      ['line break', 'line break'],
    ])
  })

  it('has all the structure that was meant', () => {
    show(Words, { text: '# a\n\n**b** *c* ~~d~~ `e`  \nf\n\n1. g\n2. h\n\n- [x] i\n\n> j\n\n| k | l |\n|:-:|--:|\n| 1 | 2 |\n\n---\n\n    m' })
    const counts = ['h3', 'strong', 'em', 'del', 'p code', 'br', 'ol > li', 'ul > li > input:checked', 'blockquote > p', 'th.center', 'td.end', 'hr', 'pre']
    expect(counts.map((selector) => [selector, all(selector).length])).toEqual(counts.map((selector) => [selector, selector === 'ol > li' ? 2 : 1]))
  })

  it('keeps the elements of whatever is finished while words are added', () => {
    const first = '# Title\n\nOne **two** three.\n\n- a\n- b\n\n```js\nlet a\n```\n\n'
    const props = show(Words, { text: first, done: false })
    const before = all('h3, p, strong, li, pre, pre code')
    const mutations: MutationRecord[] = []
    const watcher = new MutationObserver((records) => mutations.push(...records))
    for (const element of before) watcher.observe(element, { childList: true, characterData: true, subtree: true })
    const rest = 'More words, and *more* of them.\n\n- another\n- list\n\n| t |\n|---|\n| 1 |\n'
    for (let at = 3; at <= rest.length; at += 3) {
      props.text = first + rest.slice(0, at)
      flushSync()
    }
    props.text = first + rest
    props.done = true
    flushSync()
    expect(all('h3, p, strong, li, pre, pre code').slice(0, before.length).every((element, at) => element === before[at])).toBe(true)
    expect([...mutations, ...watcher.takeRecords()]).toEqual([])
    expect(all('p, li, td').map((element) => element.textContent.trim())).toEqual(['One two three.', 'a', 'b', 'More words, and more of them.', 'another', 'list', '1'])
  })

  it('grows a paragraph and a code in place', () => {
    const props = show(Words, { text: 'one', done: false })
    const [paragraph] = all('p')
    props.text = 'one two\n\n```\na'
    flushSync()
    const [code] = all('pre')
    props.text = 'one two\n\n```\na\nb'
    flushSync()
    expect(all('p')[0]).toBe(paragraph)
    expect(all('pre')[0]).toBe(code)
    expect(code?.textContent).toBe('a\nb')
  })

  it('begins anew when the text became another', () => {
    const props = show(Words, { text: 'one *two*', done: true })
    props.text = 'three'
    flushSync()
    expect(document.body.textContent.trim()).toBe('three')
  })

  it('shows a megabyte in chunks, with the same bytes', () => {
    const text = 'x'.repeat(1 << 20)
    show(Plain, { text, why: 'size' as const })
    expect(all('.words-plain .chunk')).toHaveLength((1 << 20) / CHUNK_CHARS_MAX)
    expect(all('.words-plain')[0]?.textContent).toBe(text)
    expect(document.body.textContent).toContain('too long to format')
    expect(all('.words-plain')[0]?.getAttribute('tabindex')).toBe('0')
  })

  it('has so many marks and no more, whatever the text', () => {
    show(Plain, { text: `a${RLO}`.repeat(1 << 17) })
    expect(all('[role=img]')).toHaveLength(MARKS_MAX)
    show(Line, { text: `a${RLO}`.repeat(1 << 17) })
    expect(all('.words-line [role=img]').length).toBeLessThanOrEqual(LINE_CHARS_MAX / 2 + 1)
  })

  it('colours code when colours come, without changing a character', async () => {
    const text = 'fn main() {\n\t\u200b}\n'
    const ranges: readonly CodeRange[] = [{ from: 0, to: 2, as: 'keyword' }]
    const asked: string[] = []
    const props = show(Code, { text, language: 'rust', closed: false, from: { of: async (code: string) => (asked.push(code), ranges) } })
    expect(asked).toEqual([])
    const before = all('pre code')[0]?.textContent
    props.closed = true
    flushSync()
    await Promise.resolve()
    flushSync()
    expect(asked).toEqual([text])
    expect(all('pre .keyword').map((element) => element.textContent)).toEqual(['fn'])
    expect(all('pre code')[0]?.textContent).toBe(before)
  })

  it('copies code without what cannot be seen', async () => {
    const copied: string[] = []
    Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText: async (text: string) => void copied.push(text) } })
    show(Code, { text: `rm${RLO} -rf\x1b[8m hidden\x1b[0m\0`, language: 'sh' })
    const [button] = all('button')
    button?.dispatchEvent(new MouseEvent('click', { bubbles: true }))
    await Promise.resolve()
    flushSync()
    expect(copied).toEqual(['rm -rf hidden'])
    expect(button?.textContent).toBe('Copied')
  })

  it('shows where a renamed file came from', () => {
    show(Diff, { patch: 'diff --git a/old b/new\nrename from old\nrename to new\n', cut: true })
    expect(all('h4').map((head) => head.textContent.replaceAll(/\s+/g, ' ').trim())).toEqual(['old → new renamed +0 −0'])
    expect(document.body.textContent).toContain('too many of them')
  })

  it('shows a patch both ways, and more of it when asked', () => {
    const patch = 'diff --git a/x.rs b/x.rs\n@@ -1,2 +1,2 @@\n one\n-let a = old()\n+let a = new()\n'
    const props = show(Diff, { patch, view: 'unified' as 'unified' | 'beside' })
    expect(all('tr').map((row) => row.textContent.replaceAll(/\s+/g, ' ').trim())).toEqual(['11 one', '2 − let a = old()', '2 + let a = new()'])
    expect(all('mark').map((mark) => mark.textContent)).toEqual(['old', 'new'])
    props.view = 'beside'
    flushSync()
    expect(all('tr')).toHaveLength(2)
    props.patch = `diff --git a/x b/x\n@@ -0,0 +1,3000 @@\n${'+x\n'.repeat(3_000)}`
    flushSync()
    const rows = all('tr').length
    all('button')[0]?.dispatchEvent(new MouseEvent('click', { bubbles: true }))
    flushSync()
    expect([rows, all('tr').length]).toEqual([400, 800])
  })
})

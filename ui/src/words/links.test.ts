import { describe, expect, it } from 'vitest'
import { link, shownBeside } from './links'

const leads = (address: string) => link(address)?.leads ?? 'no link'

describe('links', () => {
  it('follows http, https and mailto', () => {
    expect(link('https://example.org/a?b#c')).toEqual({ href: 'https://example.org/a?b#c', leads: 'example.org' })
    expect(leads('HTTP://Example.org:8080')).toBe('example.org:8080')
    expect(link('mailto:me@example.org?subject=x&bcc=all@evil.org')).toEqual({ href: 'mailto:me@example.org', leads: 'me@example.org' })
  })

  it('follows nothing else', () => {
    const refused = [
      ...['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'java\nscript:alert(1)', '\x01javascript:alert(1)', 'data:text/html,<script>', 'vbscript:x'],
      ...['file:///etc/passwd', 'ftp://a.org', 'blob:https://a.org/x', 'about:blank', 'ws://a.org', 'tel:1', 'src/a.rs', '/a', '//a.org', '#x', ''],
      ...['http:a.org', 'https:/a.org', 'http:\\\\a.org', 'http:///a.org', 'http://a.org\\@b.org', 'https://a b.org', 'mailto:', 'mailto:a', 'mailto:a@b\n@c'],
      ...['https://a.org/\u202egpj.exe', 'https://a\u200b.org', 'https://a.org/\ttab', `https://a.org/${'x'.repeat(2_048)}`, 'https://[', 'http://%'],
    ]
    for (const address of refused) expect([address, leads(address)]).toEqual([address, 'no link'])
  })

  it('refuses names and passwords, which look like hosts', () => {
    expect(leads('https://bank.org@evil.org')).toBe('no link')
    expect(leads('https://bank.org:pass@evil.org/')).toBe('no link')
  })

  it('shows hosts of other letters in ASCII', () => {
    expect(leads('https://аpple.com')).toBe('xn--pple-43d.com')
    expect(leads('https://xn--pple-43d.com/')).toBe('xn--pple-43d.com')
  })

  it('shows where a link leads unless its text says so', () => {
    const beside = (address: string, text: string) => {
      const to = link(address)
      return to ? shownBeside(to, text) : 'no link'
    }
    expect(beside('https://a.org/x', 'https://a.org/x')).toBe('')
    expect(beside('https://a.org/x', 'a.org')).toBe('')
    expect(beside('https://a.org/x', ' A.org/other ')).toBe('')
    expect(beside('mailto:me@a.org', 'me@a.org')).toBe('')
    expect(beside('https://a.org/x', 'here')).toBe('a.org')
    expect(beside('https://evil.org/', 'https://a.org')).toBe('evil.org')
    expect(beside('https://a.org.evil.org/', 'a.org')).toBe('a.org.evil.org')
    expect(beside('https://a.org/', 'a.org.evil.org')).toBe('a.org')
    expect(beside('https://a.org/', 'a.org @ b.org')).toBe('a.org')
    expect(beside('https://аpple.com/', 'https://аpple.com/')).toBe('xn--pple-43d.com')
  })
})

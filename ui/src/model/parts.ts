// What goes along with a message: files that were pasted, dropped or chosen, as the parts that the server takes.
import type { Part } from '../api/types'
import { byteLength } from './bytes'

export interface Attachment {
  name: string
  bytes: number
  part: Part
  /** A small picture of an image, for the composer. */
  preview: string | null
}

/** The server's own bounds. */
export const PARTS_MAX = 32
export const ATTACHED_BYTES_MAX = 5 * 1024 * 1024
export const WORDS_BYTES_MAX = 1024 * 1024

const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const TEXT = /^text\/|^application\/(json|xml|javascript|toml|x-yaml|yaml|x-sh|sql)$/
const TEXT_NAME = /\.(md|txt|log|rs|ts|tsx|js|jsx|py|go|c|h|cc|cpp|java|kt|rb|sh|toml|ya?ml|json|jsonl|csv|sql|html?|css|svelte|diff|patch|ini|cfg|conf|lock)$/i

export interface Given {
  name: string
  type: string
  content: Uint8Array
}

/** A file as a part. */
export function partOf({ name, type, content }: Given): Part {
  if (IMAGES.has(type)) return { type: 'image', name, media_type: type as 'image/png', data: base64(content) }
  const text = TEXT.test(type) || TEXT_NAME.test(name) ? decoded(content) : null
  if (text !== null) return { type: 'file', name, media_type: TEXT.test(type) ? type.split(';')[0]! : 'text/plain', text }
  return { type: 'file', name, media_type: type || 'application/octet-stream', data: base64(content) }
}

/** Why some more cannot go along, or null if it can. */
export function tooMuch(there: Attachment[], text: string, more: number): string | null {
  if (there.length + more + 1 > PARTS_MAX) return `At most ${PARTS_MAX - 1} files go along with a message.`
  const isText = (one: Attachment) => 'text' in one.part
  const binary = there.filter((one) => !isText(one)).reduce((sum, one) => sum + one.bytes, 0)
  if (binary > ATTACHED_BYTES_MAX) return 'Images and files of a message are at most 5 MiB together.'
  const words = there.filter(isText).reduce((sum, one) => sum + one.bytes, byteLength(text))
  return words > WORDS_BYTES_MAX ? 'Words and text files of a message are at most 1 MiB together.' : null
}

export function partsOf(text: string, attached: Attachment[]): Part[] {
  const words: Part[] = text.trim() ? [{ type: 'text', text }] : []
  return [...words, ...attached.map((one) => one.part)]
}

/** The bytes of an image that goes along, to be shown small. */
export function previewOf(part: Part): Blob | null {
  if (part.type !== 'image' || !('data' in part)) return null
  return new Blob([Uint8Array.from(atob(part.data), (letter) => letter.charCodeAt(0))], { type: part.media_type })
}

function decoded(content: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(content)
    return text.includes('\0') ? null : text
  } catch {
    return null
  }
}

function base64(content: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < content.length; at += 0x8000) binary += String.fromCharCode(...content.subarray(at, at + 0x8000))
  return btoa(binary)
}

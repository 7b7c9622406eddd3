// What hostile words become: trees of plain data, from which components make elements and text nodes.
//
// Nothing in a tree is markup any more, and no string in it is ever parsed again. A tree that has been handed out is never
// changed: what is equal by identity is equal.

/** Text that can be shown as it is, or a mark in place of what cannot be seen. */
export type Piece = { readonly kind: 'text'; readonly text: string } | Mark

/** A mark for hidden characters: a short label to read, and a name for whoever asks or listens. */
export interface Mark {
  readonly kind: 'mark'
  readonly label: string
  readonly name: string
}

/** The bound beyond which something was left as plain text. */
export type PlainWhy = 'size' | 'depth' | 'time' | 'nodes'

/** Text that was left as it came, because a bound was reached. */
export interface Plain {
  readonly kind: 'plain'
  readonly why: PlainWhy
  readonly text: string
}

/** An address that may be followed, and where it leads in ASCII: a host, or whom a mail goes to. */
export interface Link {
  readonly href: string
  readonly leads: string
}

/** A span of marked-up text. */
export type Inline =
  | Piece
  | Plain
  | { readonly kind: 'break' }
  | { readonly kind: 'emphasis' | 'strong' | 'strike'; readonly inlines: readonly Inline[] }
  | { readonly kind: 'code'; readonly pieces: readonly Piece[] }
  /** `shows` is where it leads, unless its own text says exactly that. An image is a link to it. */
  | {
      readonly kind: 'link'
      readonly of: 'words' | 'image'
      readonly link: Link
      readonly title: string
      readonly shows: string
      readonly inlines: readonly Inline[]
    }
  /** Written as a link, but to somewhere no link may lead: its words, and the address as text. */
  | {
      readonly kind: 'unlinked'
      readonly of: 'words' | 'image'
      readonly inlines: readonly Inline[]
      readonly address: readonly Piece[]
    }

/** How a column of a table is set. */
export type Align = 'start' | 'center' | 'end' | null

export type Cell = readonly Inline[]

export interface Item {
  /** Of a task, whether it is done; of any other item, null. */
  readonly task: boolean | null
  readonly blocks: readonly Block[]
}

/** A block of marked-up text. */
export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly inlines: readonly Inline[] }
  | { readonly kind: 'paragraph'; readonly inlines: readonly Inline[] }
  /** `about` is everything that its fence says, the language first; `closed` once nothing can be added to it. */
  | { readonly kind: 'code'; readonly language: string; readonly about: string; readonly text: string; readonly closed: boolean }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | {
      readonly kind: 'list'
      /** The number of the first item; of a list without numbers, null. */
      readonly start: number | null
      /** True if its items are lines rather than paragraphs. */
      readonly tight: boolean
      readonly items: readonly Item[]
    }
  | {
      readonly kind: 'table'
      readonly align: readonly Align[]
      readonly head: readonly Cell[]
      readonly rows: readonly (readonly Cell[])[]
    }
  | { readonly kind: 'rule' }
  | Plain

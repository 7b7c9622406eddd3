// Hostile words: what agents, files and people say, made into text nodes.
//
// Pages and parts use what is here. `Words` formats, `Plain` keeps lines as they are, `Line` is for one line, `Code` for a file's
// text. `Run` joins words that arrive by their bytes. `Diff.svelte` is loaded by the pages that show changes, and by no other.
// Nothing here ever makes a string of HTML.

export { default as Code } from './Code.svelte'
export { WORKER_POLICY, colours } from './code'
export { default as Line } from './Line.svelte'
export { default as Markdown } from './Markdown.svelte'
export { default as Plain } from './Plain.svelte'
export { default as Words } from './Words.svelte'
export { Run, joined, utf8Bytes } from './bytes'
export { LINK_REL, link, shownBeside } from './links'
export { line, lineText, pieces, visible, withoutAnsi } from './marks'
export { markdown, Markdown as MarkdownReader } from './markdown'
export type { Block, Inline, Item, Link, Mark, Piece, Plain as PlainText } from './tree'

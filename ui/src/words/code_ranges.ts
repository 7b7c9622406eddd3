// From code to coloured ranges, by highlight.js. Loaded by the worker alone: it is larger than the rest of the app.

import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cpp from 'highlight.js/lib/languages/cpp'
import csharp from 'highlight.js/lib/languages/csharp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import dockerfile from 'highlight.js/lib/languages/dockerfile'
import go from 'highlight.js/lib/languages/go'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import kotlin from 'highlight.js/lib/languages/kotlin'
import lua from 'highlight.js/lib/languages/lua'
import makefile from 'highlight.js/lib/languages/makefile'
import markdown from 'highlight.js/lib/languages/markdown'
import php from 'highlight.js/lib/languages/php'
import python from 'highlight.js/lib/languages/python'
import ruby from 'highlight.js/lib/languages/ruby'
import rust from 'highlight.js/lib/languages/rust'
import shell from 'highlight.js/lib/languages/shell'
import sql from 'highlight.js/lib/languages/sql'
import swift from 'highlight.js/lib/languages/swift'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { createLowlight } from 'lowlight'
import type { CodeAnswered, CodeAsked, CodeClass, CodeRange } from './code_classes'

/** Ranges of one text. Each becomes an element. */
export const RANGES_MAX = 10_000
/** Grammars within grammars that a tree may be deep. */
const NESTED_MAX = 64

const grammars = createLowlight({
  ...{ bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, lua, makefile, markdown, php },
  ...{ python, ruby, rust, shell, sql, swift, typescript, xml, yaml },
})

const CLASSES: Readonly<Record<string, CodeClass>> = {
  keyword: 'keyword',
  literal: 'keyword',
  selector: 'keyword',
  'selector-tag': 'keyword',
  tag: 'keyword',
  name: 'keyword',
  title: 'name',
  section: 'name',
  type: 'name',
  built_in: 'name',
  class: 'name',
  attr: 'name',
  attribute: 'name',
  property: 'name',
  'selector-class': 'name',
  'selector-id': 'name',
  string: 'string',
  regexp: 'string',
  link: 'string',
  code: 'string',
  number: 'number',
  symbol: 'number',
  bullet: 'number',
  comment: 'comment',
  quote: 'comment',
  meta: 'meta',
  doctag: 'meta',
  addition: 'plus',
  deletion: 'minus',
}

/** The ranges of a code, or nothing. */
export function codeRanges({ text, language }: CodeAsked): CodeAnswered {
  const known = language.toLowerCase()
  if (!grammars.registered(known)) return null
  const out: CodeRange[] = []
  const end = walk(grammars.highlight(known, text).children, 0, null, 0, out)
  // A tree that does not have the text's own characters colours the wrong ones.
  return end === text.length && out.length <= RANGES_MAX ? out : null
}

type Nodes = ReturnType<typeof grammars.highlight>['children'][number][]

/** Adds the ranges of the nodes, of which the first begins at `from`, and gives back where the last one ends. */
function walk(nodes: readonly Nodes[number][], from: number, within: CodeClass | null, depth: number, out: CodeRange[]): number {
  let at = from
  for (const each of nodes) {
    if (out.length > RANGES_MAX) return -1
    if (each.type === 'text') {
      if (within && each.value !== '') add(out, { from: at, to: at + each.value.length, as: within })
      at += each.value.length
    } else if (each.type === 'element' && depth < NESTED_MAX) at = walk(each.children, at, classOf(each.properties['className']) ?? within, depth + 1, out)
  }
  return at
}

function add(out: CodeRange[], range: CodeRange): void {
  const last = out.at(-1)
  if (last && last.to === range.from && last.as === range.as) out[out.length - 1] = { ...last, to: range.to }
  else out.push(range)
}

function classOf(names: unknown): CodeClass | null {
  const first: unknown = Array.isArray(names) ? names[0] : null
  return typeof first === 'string' ? (CLASSES[first.replace(/^hljs-/, '')] ?? null) : null
}

// Colours code off the main thread: one question, one answer, in order. Whoever asks ends it if it takes too long.

import type { CodeAsked } from './code_classes'
import { codeRanges } from './code_ranges'

self.onmessage = ({ data }: MessageEvent<CodeAsked>) => self.postMessage(codeRanges(data))

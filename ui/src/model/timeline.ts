// A session's facts, folded into the rows that one reads. Read `append` first, then `prepend`, then `#fold`.
//
// What one sees is the same however it came: page after page, backwards, one by one, with live words before their facts or without.
// Nothing is folded twice: a fact that is here already is passed over. The order of rows is that of the first fact of each; rows of
// live words alone come after all of them.
//
// It is plain and changes in place, because a log may have 100,000 facts: each costs one look into a map. `version` grows with every
// change, and a slot gets a new row, never a changed one, so a page compares rows by identity.
import type { Fact, FactOf, Live, Usage } from '../api/types'
import { NO_RUN, byteLength, dropBytes, extend, join, type Run } from './bytes'
import type { NoticeRow, QuestionRow, Row, Tone, ToolRow, WordsRow } from './rows'

/** A place in the timeline; its row is replaced, it stays. */
export interface Slot {
  readonly key: string
  row: Row
}

/** What is known of a turn besides its rows. */
export interface Turn {
  turn: number
  message: string | null
  began: string | null
  ended: string | null
  outcome: string | null
  first: number | null
  usage: Usage | null
  reason: string | null
  isUndone: boolean
}

/** The most characters of live words that are held ahead of the log: beyond them one waits for the facts. */
const AHEAD_CHARS_MAX = 1024 * 1024
/** How many rows back a message is looked for that did not get into its turn: it was said into the turn that runs. */
const MISSED_LOOK_MAX = 2_000

export class Timeline {
  slots: Slot[] = []
  version = 0
  /** The numbers of the first and the last fact that are here; none at all if `last` is 0. */
  first = 0
  last = 0
  /** The turn that runs, as far as the facts tell. */
  running: number | null = null
  /** Why the turn that runs was asked to stop, and whether it was. */
  isStopping = false
  isEnded = false
  scope: { epoch: number; agent: string; directory: string; model: string | null; mode: string | null; worktree: string | null } | null = null
  /** A change of scope that was asked for and has not happened yet. */
  changing: FactOf<'change_asked'> | null = null
  /** The number of the last fact that says what came of such a change; 0 if none that is here does. */
  decided = 0
  readonly turns = new Map<number, Turn>()
  /** Who said a message, as its fact has it. */
  readonly senders = new Map<string, string>()
  /** The questions that are open, in the order they came. */
  readonly open = new Map<string, QuestionRow>()

  #byKey = new Map<string, Slot>()
  #liveSlots = 0
  // The number of the fact that had the last word on something, by its name: facts come backwards, too.
  #lastWord = new Map<string, number>()
  #steered = new Set<string>()
  #missed = new Set<string>()
  // While earlier facts are folded in: the slots before those that are there, and which of these have moved there.
  #earlier: Slot[] | null = null
  #claimed = new Set<Slot>()
  #earlierRuns = new Map<string, Run>()
  // The row of the last call of a name, and of what came without a beginning; those of earlier facts apart until they are joined.
  #calls = new Map<string, string>()
  #orphans = new Map<string, string>()
  #earlierCalls = new Map<string, string>()
  #earlierOrphans = new Map<string, string>()

  /** Takes the next fact. True if it was new; one with a gap before it is taken, too: who asks for facts sees to gaps. */
  append(fact: Fact): boolean {
    if (fact.number <= this.last) return false
    if (this.first === 0) this.first = fact.number
    this.last = fact.number
    this.#fold(fact)
    this.version += 1
    return true
  }

  /** Takes facts that are before all that are here, in ascending order. */
  prepend(facts: Fact[]): boolean {
    const before = this.first === 0 ? facts : facts.filter((fact) => fact.number < this.first)
    if (before.length === 0) return false
    if (this.first === 0) {
      for (const fact of before) this.append(fact)
      return true
    }
    this.#earlier = []
    for (const fact of before) this.#fold(fact)
    this.first = before[0]!.number
    this.#joinRuns()
    this.#joinCalls()
    const rest = this.#claimed.size ? this.slots.filter((slot) => !this.#claimed.has(slot)) : this.slots
    this.slots = this.#earlier.concat(rest)
    this.#earlier = null
    this.#claimed.clear()
    this.version += 1
    return true
  }

  /** Takes words ahead of the log. */
  live({ turn, kind, part, offset, text }: Live): boolean {
    const key = wordsKey(turn, kind, part)
    const slot = this.#byKey.get(key)
    if (this.turns.get(turn)?.ended) return false
    const row = slot?.row as WordsRow | undefined
    if (row && !row.isOpen) return false
    const have = row ? row.said.from + row.said.bytes + row.aheadBytes : 0
    const bytes = byteLength(text)
    // Words after a gap cannot be placed; their facts will bring them.
    if (offset > have || offset + bytes <= have || (row && row.ahead.length > AHEAD_CHARS_MAX)) return false
    const fresh = dropBytes(text, have - offset)
    const added = offset + bytes - have
    if (row && slot) slot.row = { ...row, ahead: row.ahead + fresh, aheadBytes: row.aheadBytes + added }
    else this.#addLive({ ...this.#words(turn, kind, part), ahead: fresh, aheadBytes: added })
    this.version += 1
    return true
  }

  /** The slot of a row. */
  slot(key: string): Slot | undefined {
    return this.#byKey.get(key)
  }

  /** True if a message was said into a turn. */
  hasSteered(message: string): boolean {
    return this.#steered.has(message)
  }

  /** What the agent has answered in a turn, as far as it is here. */
  answerOf(turn: number): string {
    const words: string[] = []
    for (const { row } of this.slots) {
      if (row.kind === 'words' && row.voice === 'text' && row.turn === turn) words.push(row.said.text + row.ahead)
    }
    return words.join('').trim()
  }

  #fold(fact: Fact): void {
    switch (fact.type) {
      case 'opened':
        this.#scope(fact, 0)
        return
      case 'scope_changed':
        if (this.#hasWord('changing', fact)) this.changing = null
        this.decided = Math.max(this.decided, fact.number)
        this.#scope(fact, fact.epoch)
        return
      case 'queued':
        this.senders.set(fact.message, fact.by)
        return
      case 'turn_started':
        this.#turnStarted(fact)
        return
      case 'steered':
        this.#steered.add(fact.message)
        this.#put(`m:${fact.message}:${fact.number}`, fact, () => ({
          kind: 'message', message: fact.message, isSteered: true, isMissed: this.#missed.has(fact.message), ...at(fact, fact.turn),
        }))
        return
      case 'text':
      case 'reasoning':
        this.#said(fact)
        return
      case 'said':
        this.#partEnded(fact)
        return
      case 'tool_call':
      case 'tool_progress':
      case 'tool_result':
        this.#tool(fact)
        return
      case 'plan':
        this.#put(`p:${fact.turn}`, fact, (old) => {
          const later = old?.kind === 'plan' && old.stepsOf > fact.number ? old : null
          return { kind: 'plan', steps: later?.steps ?? fact.steps, stepsOf: later?.stepsOf ?? fact.number, ...at(fact, fact.turn) }
        })
        return
      case 'asked':
      case 'question':
      case 'answered':
      case 'lapsed':
        this.#question(fact)
        return
      case 'changes':
        this.#changes(fact)
        return
      case 'undone':
      case 'redone':
        this.#undone(fact)
        return
      case 'usage':
        if (this.#hasWord(`usage:${fact.turn}`, fact)) this.#learn(fact.turn, { usage: fact })
        return
      case 'finished':
        if (this.#hasWord(`reason:${fact.turn}`, fact)) this.#learn(fact.turn, { reason: fact.reason })
        return
      case 'turn_ended':
        this.#turnEnded(fact)
        return
      case 'script':
        this.#put(`x:${fact.turn}:${fact.stage}`, fact, (old) => {
          const output = this.#run(`x:${fact.turn}:${fact.stage}`, old?.kind === 'script' ? old.output : NO_RUN, fact.offset, fact.output)
          return { kind: 'script', stage: fact.stage, output, ...at(fact, fact.turn) }
        })
        return
      default:
        this.#rest(fact)
    }
  }

  /** The facts that are one line each, those that only change what is known, and those that nobody has to read. */
  #rest(fact: Fact): void {
    switch (fact.type) {
      case 'withdrawn':
        return this.#notice(fact, 'quiet', 'A waiting message was withdrawn.', { message: fact.message, by: fact.by })
      case 'held':
        return this.#notice(fact, 'warn', heldWords(fact.why), { message: fact.message })
      case 'missed':
        this.#miss(fact.message)
        return this.#notice(fact, 'warn', 'The message did not get into the turn, and waits for the next one.', { message: fact.message })
      case 'message_refused':
        return this.#notice(fact, 'bad', `A waiting message was refused: ${plain(fact.why)}.`, { message: fact.message })
      case 'attempt_failed':
        return this.#notice(fact, 'warn', `The agent could not be started (${plain(fact.failure)}); it is tried again.`, {})
      case 'stop_asked':
        if (this.#hasWord('stopping', fact)) this.isStopping = true
        return this.#notice(fact, 'quiet', fact.by ? 'Asked to stop.' : `Asked to stop: ${plain(fact.why)}.`, { by: fact.by ?? null })
      case 'change_asked':
        if (this.#hasWord('changing', fact)) this.changing = fact
        return this.#notice(fact, 'quiet', changeWords(fact), { by: fact.by })
      case 'scope_kept':
        if (this.#hasWord('changing', fact)) this.changing = null
        this.decided = Math.max(this.decided, fact.number)
        return this.#notice(fact, 'quiet', `The scope stays as it was: ${plain(fact.why)}.`, { by: fact.by ?? null })
      case 'errand_failed':
        return this.#notice(fact, 'bad', 'What was asked for could not be done.', {})
      case 'stale_errand':
        return this.#notice(fact, 'quiet', `An answer (${plain(fact.kind)}) came after the scope had changed, and was not used.`, {})
      case 'end_asked':
        return this.#notice(fact, 'quiet', 'Asked to end this session.', { by: fact.by })
      case 'ended':
        this.isEnded = true
        if (this.#hasWord('running', fact)) this.running = null
        return this.#notice(fact, 'warn', fact.why === 'gone' ? 'This session has ended: its agent has lost the conversation.' : 'This session has ended.', {})
      case 'file_changed':
        return this.#notice(fact, 'quiet', `${plain(fact.change)} ${fact.path}`, {})
      case 'notice':
        return this.#notice(fact, 'warn', fact.text, {})
      case 'memory':
        return this.#notice(fact, 'quiet', memoryWords(fact), { more: fact.text || null })
      case 'worktree':
        return this.#notice(fact, 'quiet', `Worktree ${fact.name}: ${plain(fact.change)}.`, { more: fact.reference || null })
      case 'stopped':
        return this.#notice(fact, fact.gone ? 'quiet' : 'bad', stoppedWords(fact), {})
      case 'imported':
        return this.#notice(fact, 'quiet', `This turn ran elsewhere, with ${fact.agent}.`, { more: fact.text })
      case 'launch':
        return this.#notice(fact, 'quiet', launchWords(fact), { more: [fact.program, fact.directory].filter(Boolean).join('\n') })
      case 'forgotten':
        return this.#notice(fact, 'quiet', `Words that were here (${plain(fact.kind)}) have been forgotten.`, {})
      case 'edited':
      case 'released':
      case 'reordered':
      case 'crowded':
      case 'attempt_started':
      case 'confirmed':
      case 'handed':
      case 'stale':
      case 'errand_started':
      case 'learned':
      case 'about':
      case 'title':
        return
      case 'other':
        return this.#other(fact, 'other', fact.raw)
      default:
        // Newer than this page, or one of those that have rows of their own: only the first can come here.
        return this.#other(fact, (fact as { type: string }).type, JSON.stringify(fact, null, 2))
    }
  }

  #scope(fact: FactOf<'opened'> | FactOf<'scope_changed'>, epoch: number): void {
    const scope = {
      epoch,
      agent: fact.agent,
      directory: fact.directory,
      model: fact.model ?? null,
      mode: fact.mode ?? null,
      worktree: fact.worktree?.name ?? null,
    }
    if (this.#hasWord('scope', fact)) this.scope = scope
    this.#put(`s:${fact.number}`, fact, () => ({ kind: 'scope', ...scope, ...at(fact, null) }))
  }

  #turnStarted(fact: FactOf<'turn_started'>): void {
    if (this.#hasWord('running', fact)) this.running = fact.turn
    if (this.#hasWord('stopping', fact)) this.isStopping = false
    this.#learn(fact.turn, { message: fact.message, began: fact.at, first: fact.number })
    this.#put(`m:${fact.message}`, fact, () => ({
      kind: 'message', message: fact.message, isSteered: false, isMissed: false, ...at(fact, fact.turn),
    }))
  }

  /** A message that was to be said into a turn did not get there. */
  #miss(message: string): void {
    this.#missed.add(message)
    const prefix = `m:${message}:`
    for (let at = this.slots.length - 1, seen = 0; at >= 0 && seen < MISSED_LOOK_MAX; at--, seen++) {
      const slot = this.slots[at]!
      if (slot.key.startsWith(prefix) && slot.row.kind === 'message') slot.row = { ...slot.row, isMissed: true }
    }
  }

  /** What the agent does says which turn runs, where the fact that began it is not here yet. */
  #works(fact: Fact & { turn: number }): void {
    if (!this.turns.get(fact.turn)?.ended && !this.isEnded && this.#hasWord('running', fact)) this.running = fact.turn
  }

  #said(fact: FactOf<'text'> | FactOf<'reasoning'>): void {
    const key = wordsKey(fact.turn, fact.type, fact.part)
    this.#works(fact)
    const isLast = !this.#earlier || this.#isOnlyEarlier(key)
    this.#put(key, fact, (old) => {
      const row = old?.kind === 'words' ? old : this.#words(fact.turn, fact.type, fact.part)
      const said = this.#run(key, row.said, fact.offset, fact.text)
      const isOpen = row.isOpen && !this.turns.get(fact.turn)?.ended
      return { ...row, said, ...this.#aheadOf(row, said), isOpen, ended: isLast ? fact.at : row.ended, ...at(fact, fact.turn) }
    })
  }

  /** The live words that are still ahead of the log. The log has the word where the two differ. */
  #aheadOf(row: WordsRow, said: Run): { ahead: string; aheadBytes: number } {
    if (!row.aheadBytes || said === row.said) return { ahead: row.ahead, aheadBytes: row.aheadBytes }
    const fresh = said.text.slice(row.said.text.length)
    const caught = byteLength(fresh)
    if (caught >= row.aheadBytes || !row.ahead.startsWith(fresh)) return { ahead: '', aheadBytes: 0 }
    return { ahead: row.ahead.slice(fresh.length), aheadBytes: row.aheadBytes - caught }
  }

  #words(turn: number, kind: string, part: number): WordsRow {
    const voice = kind === 'reasoning' ? 'reasoning' : 'text'
    const key = wordsKey(turn, kind, part)
    return { kind: 'words', key, number: null, turn, at: null, voice, part, said: NO_RUN, ahead: '', aheadBytes: 0, isOpen: true, ended: null }
  }

  #partEnded(fact: FactOf<'said'>): void {
    for (const kind of ['text', 'reasoning']) {
      const slot = this.#byKey.get(wordsKey(fact.turn, kind, fact.part))
      if (slot?.row.kind === 'words' && slot.row.number !== null) {
        slot.row = { ...slot.row, isOpen: false, ahead: '', aheadBytes: 0 }
      }
    }
  }

  /** A call is its own row, also where an agent calls two of them by one name. What belongs to a call that is not here is a row, too. */
  #tool(fact: FactOf<'tool_call'> | FactOf<'tool_progress'> | FactOf<'tool_result'>): void {
    const id = `${fact.turn}:${fact.call}`
    this.#works(fact)
    const calls = this.#earlier ? this.#earlierCalls : this.#calls
    if (fact.type === 'tool_call' || !calls.has(id)) {
      const key = `t:${fact.number}`
      calls.set(id, key)
      if (fact.type !== 'tool_call') (this.#earlier ? this.#earlierOrphans : this.#orphans).set(id, key)
    }
    this.#put(calls.get(id)!, fact, (old): DistributiveOmit<ToolRow, 'key'> => {
      const row = old?.kind === 'tool' ? old : toolRow(fact)
      const placed = { ...row, ...at(fact, fact.turn), state: this.#toolState(row, fact.turn) }
      if (fact.type === 'tool_call') return { ...placed, tool: fact.tool, input: fact.input }
      if (fact.type === 'tool_progress') return row.isWhole ? placed : { ...placed, output: extend(row.output, fact.offset, fact.output) }
      // A result without words does not take away what was printed before.
      const output = fact.output ? extend(NO_RUN, 0, fact.output) : row.output
      return { ...placed, output, hasResult: true, isWhole: fact.output !== '', state: fact.failed ? 'failed' : 'done', ended: fact.at }
    })
  }

  /** What later facts told of a call whose beginning was not here belongs to the last call of that name in the earlier ones. */
  #joinCalls(): void {
    for (const [id, key] of this.#earlierCalls) {
      const [to, from] = [this.#byKey.get(key), this.#byKey.get(this.#orphans.get(id) ?? '')]
      if (to?.row.kind === 'tool' && from?.row.kind === 'tool' && !to.row.hasResult) {
        const { output, hasResult, isWhole, ended, turn } = from.row
        const whole = isWhole ? output : join(to.row.output, output)
        to.row = { ...to.row, output: whole, hasResult, isWhole, ended, state: this.#toolState(from.row, turn ?? 0) }
        this.#claimed.add(from)
        this.#byKey.delete(from.key)
        this.#orphans.delete(id)
        if (this.#calls.get(id) === from.key) this.#calls.set(id, key)
      } else if (!this.#calls.has(id)) this.#calls.set(id, key)
    }
    for (const [id, key] of this.#earlierOrphans) this.#orphans.set(id, key)
    this.#earlierOrphans.clear()
    this.#earlierCalls.clear()
  }

  #toolState(row: ToolRow, turn: number): ToolRow['state'] {
    if (row.hasResult) return row.state
    return this.turns.get(turn)?.ended ? 'stopped' : 'running'
  }

  #question(fact: FactOf<'asked'> | FactOf<'question'> | FactOf<'answered'> | FactOf<'lapsed'>): void {
    const key = `q:${fact.approval}`
    this.#put(key, fact, (old): QuestionRow => {
      const row: QuestionRow =
        old?.kind === 'question'
          ? old
          : {
              kind: 'question', key, number: null, turn: null, at: null, approval: fact.approval, tool: '', detail: '', form: 'permission',
              options: [], until: null, state: 'open', answer: null, by: null, settledAt: null,
            }
      const turn = 'turn' in fact ? fact.turn : row.turn
      const placed = { ...row, ...at(fact, turn) }
      if (fact.type === 'asked') return { ...placed, until: fact.until }
      if (fact.type === 'question') {
        return { ...placed, tool: fact.tool, detail: fact.detail, form: fact.form ?? 'permission', options: fact.options ?? [] }
      }
      if (row.state === 'answered') return placed
      if (fact.type === 'lapsed') return { ...placed, state: 'lapsed', settledAt: fact.at }
      return { ...placed, state: 'answered', answer: fact.answer, by: fact.by ?? null, settledAt: fact.at }
    })
    const row = this.#byKey.get(key)?.row as QuestionRow
    if (row.state === 'open') this.open.set(fact.approval, row)
    else this.open.delete(fact.approval)
  }

  #changes(fact: FactOf<'changes'>): void {
    this.#put(`c:${fact.turn}`, fact, () => ({
      kind: 'changes',
      files: fact.files,
      patch: fact.patch,
      isCut: fact.cut,
      moves: fact.moves ?? [],
      unseen: fact.unseen ?? [],
      isUndone: this.#turnOf(fact.turn).isUndone,
      ...at(fact, fact.turn),
    }))
  }

  #undone(fact: FactOf<'undone'> | FactOf<'redone'>): void {
    const isUndone = fact.type === 'undone'
    const turn = this.#turnOf(fact.turn)
    if (this.#hasWord(`undone:${fact.turn}`, fact)) turn.isUndone = isUndone
    const slot = this.#byKey.get(`c:${fact.turn}`)
    if (slot?.row.kind === 'changes') slot.row = { ...slot.row, isUndone: turn.isUndone }
    this.#notice(fact, 'quiet', isUndone ? `What turn ${fact.turn} changed was undone.` : `What turn ${fact.turn} changed is back.`, {})
  }

  #turnEnded(fact: FactOf<'turn_ended'>): void {
    this.#learn(fact.turn, { ended: fact.at, outcome: fact.outcome })
    if (!this.#earlier) this.#dropLive(fact.turn)
    this.#closeTurn(fact.turn)
    if (this.#hasWord('running', fact)) this.running = null
    if (this.#hasWord('stopping', fact)) this.isStopping = false
    const { began, usage, reason } = this.#turnOf(fact.turn)
    this.#put(`e:${fact.turn}`, fact, () => ({
      kind: 'end', outcome: fact.outcome, failure: fact.failure ?? null, began, usage, reason, ...at(fact, fact.turn),
    }))
  }

  /** Live words that no fact has brought by the end of their turn are not in the log: they go. */
  #dropLive(turn: number): void {
    const kept = this.slots.length - this.#liveSlots
    const gone = this.slots.slice(kept).filter((slot) => slot.row.turn === turn)
    for (const slot of gone) this.#byKey.delete(slot.key)
    if (gone.length) this.slots = this.slots.filter((slot) => !gone.includes(slot))
    this.#liveSlots -= gone.length
  }

  /** Nothing of a turn goes on once it is over. Turns do not overlap: one stops looking where another begins. */
  #closeTurn(turn: number): void {
    const slots = this.#earlier ?? this.slots
    for (let at = slots.length - 1; at >= 0; at--) {
      const slot = slots[at]!
      const row = slot.row
      if (row.turn !== null && row.turn < turn) return
      if (row.turn !== turn) continue
      if (row.kind === 'words' && row.isOpen) slot.row = { ...row, ahead: '', aheadBytes: 0, isOpen: false }
      if (row.kind === 'tool' && row.state === 'running') slot.row = { ...row, state: 'stopped' }
    }
  }

  #turnOf(turn: number): Turn {
    const known = this.turns.get(turn)
    if (known) return known
    const fresh: Turn = { turn, message: null, began: null, ended: null, outcome: null, first: null, usage: null, reason: null, isUndone: false }
    this.turns.set(turn, fresh)
    return fresh
  }

  #learn(number: number, what: Partial<Turn>): void {
    const turn = Object.assign(this.#turnOf(number), what)
    const slot = this.#byKey.get(`e:${number}`)
    if (slot?.row.kind === 'end') slot.row = { ...slot.row, began: turn.began, usage: turn.usage, reason: turn.reason }
  }

  /** True if no later fact has said anything about this. */
  #hasWord(about: string, fact: Fact): boolean {
    if ((this.#lastWord.get(about) ?? 0) > fact.number) return false
    this.#lastWord.set(about, fact.number)
    return true
  }

  #notice(fact: Fact, tone: Tone, text: string, names: Partial<Pick<NoticeRow, 'message' | 'by' | 'more'>>): void {
    const turn = 'turn' in fact && typeof fact.turn === 'number' ? fact.turn : null
    this.#put(`n:${fact.number}`, fact, () => ({
      kind: 'notice', word: fact.type, tone, text, message: null, by: null, more: null, ...names, ...at(fact, turn),
    }))
  }

  #other(fact: Fact, type: string, raw: string): void {
    const turn = (fact as { turn?: unknown }).turn
    this.#put(`o:${fact.number}`, fact, () => ({ kind: 'other', type, raw, ...at(fact, typeof turn === 'number' ? turn : null) }))
  }

  /** Puts a row at its place: where it is, or at the end, or, folding backwards, where its earliest fact is. */
  #put(key: string, fact: Fact, make: (old: Row | undefined) => DistributiveOmit<Row, 'key'> & { key?: string }): void {
    const slot = this.#byKey.get(key)
    const made = { ...make(slot?.row), key } as Row
    if (this.#earlier) {
      if (slot) this.#claim(slot, made, fact)
      else this.#earlier.push(this.#fresh(key, made))
      return
    }
    if (!slot) {
      this.slots.splice(this.slots.length - this.#liveSlots, 0, this.#fresh(key, made))
      return
    }
    if (slot.row.number === null) this.#land(slot)
    // Its place is that of its first fact.
    else {
      made.number = slot.row.number
      made.at = slot.row.at
    }
    slot.row = made
  }

  #fresh(key: string, row: Row): Slot {
    const slot = { key, row }
    this.#byKey.set(key, slot)
    return slot
  }

  /** A row of later facts turns out to have begun earlier. */
  #claim(slot: Slot, made: Row, fact: Fact): void {
    const isHere = slot.row.number !== null && slot.row.number < this.first && slot.row.number <= fact.number
    if (isHere) {
      made.number = slot.row.number
      made.at = slot.row.at
    } else if (!this.#claimed.has(slot)) {
      this.#claimed.add(slot)
      this.#earlier?.push(slot)
    }
    slot.row = made
  }

  #addLive(row: WordsRow): void {
    this.slots.push(this.#fresh(row.key, row))
    this.#liveSlots += 1
  }

  /** The first fact of live words has come: they take their place behind what has facts. */
  #land(slot: Slot): void {
    const to = this.slots.length - this.#liveSlots
    const from = this.slots.indexOf(slot, to)
    if (from > to) {
      this.slots.splice(from, 1)
      this.slots.splice(to, 0, slot)
    }
    this.#liveSlots -= 1
  }

  /** A run with what a fact adds. Folding backwards the earlier pieces are gathered apart, and joined at the end. */
  #run(key: string, run: Run, offset: number, text: string): Run {
    if (!this.#earlier || this.#isOnlyEarlier(key)) return extend(run, offset, text)
    this.#earlierRuns.set(key, extend(this.#earlierRuns.get(key) ?? NO_RUN, offset, text))
    return run
  }

  #isOnlyEarlier(key: string): boolean {
    const slot = this.#byKey.get(key)
    return !slot || (!this.#claimed.has(slot) && slot.row.number !== null && slot.row.number < this.first)
  }

  #joinRuns(): void {
    for (const [key, run] of this.#earlierRuns) {
      const slot = this.#byKey.get(key)
      if (slot?.row.kind === 'words') slot.row = { ...slot.row, said: join(run, slot.row.said) }
      else if (slot?.row.kind === 'script') slot.row = { ...slot.row, output: join(run, slot.row.output) }
    }
    this.#earlierRuns.clear()
  }
}

function toolRow(fact: { turn: number; call: string; at: string }): ToolRow {
  const { turn, call, at: when } = fact
  const nothing = { input: '', tool: '', output: NO_RUN, hasResult: false, isWhole: false, ended: null }
  return { kind: 'tool', key: '', number: null, turn, at: when, call, state: 'running', ...nothing }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

const wordsKey = (turn: number, kind: string, part: number) => `w:${turn}:${kind}:${part}`

const at = (fact: Fact, turn: number | null) => ({ number: fact.number, at: fact.at, turn })

const plain = (word: string) => word.replaceAll('_', ' ')

function heldWords(why: string): string {
  if (why === 'after_failure') return 'A message is held, because the turn before it failed.'
  if (why === 'other_scope') return 'A message is held: it was written for another scope.'
  return 'A message is held.'
}

function changeWords(fact: FactOf<'change_asked'>): string {
  const change = fact.change
  if ('enter' in change) return `Asked to enter the worktree ${change.enter.name}.`
  if ('exit' in change) return 'Asked to leave the worktree.'
  if ('relink' in change) return `Asked to go on in ${change.relink}.`
  if ('set' in change) {
    const wanted = Object.entries(change.set).filter(([, value]) => value)
    return `Asked for another ${wanted.map(([name, value]) => `${name}, ${value}`).join('; ')}.`
  }
  return 'Asked to go back to an earlier scope.'
}

function memoryWords(fact: FactOf<'memory'>): string {
  const turns = fact.turns === 1 ? 'one turn' : `${fact.turns} turns`
  return fact.way === 'resume' ? 'The agent goes on with its own memory.' : `The agent was told what was said before (${turns}).`
}

function stoppedWords(fact: FactOf<'stopped'>): string {
  const ended = fact.killed === 1 ? 'one process ended' : `${fact.killed} processes ended`
  return fact.gone ? `Stopped: ${ended}, none is left.` : `Stopped: ${ended}, but some may be left.`
}

function launchWords(fact: FactOf<'launch'>): string {
  const what = [fact.agent, fact.version, fact.model, fact.mode].filter(Boolean).join(' · ')
  return fact.bypasses ? `${what} · acts without asking` : what
}

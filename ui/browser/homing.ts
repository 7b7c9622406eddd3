// The program under test: the real one, with the scripted agent, in a directory of its own, on a port that the system chooses.
//
// `start` answers once it can be asked. `stop` ends it as a service manager would, sees that it goes in order, and removes
// everything. In between it can be killed and started again, in the same directory and on the same port.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Fact, Receipt, Session } from '../src/api/types'
import { Line } from './line'

const PROGRAM = process.env.HOMING_PROGRAM ?? fileURLToPath(new URL('../../target/debug/homing', import.meta.url))
/** Told to go, a server that does not is broken: nothing of a test takes that long to be handed over. */
const GO_MS_MAX = 15_000
/** The end of the log that is shown when something went wrong. */
const LOG_LINES_SHOWN = 30

export interface Setup {
  /** `homing.toml`. */
  config?: string
  /** Browsers reach it over a line that can be cut. */
  line?: boolean
  /** Variables of its environment, made of its own temporary directory. */
  variables?: (root: string) => Record<string, string>
}

/** A command's output, and its end. */
export interface Ran {
  code: number | null
  out: string
  err: string
}

export class Homing {
  url = ''
  /** A link that signs a browser in once. */
  link = ''
  token = ''
  log = ''
  /** What browsers reach it over, if it was asked for. */
  line: Line | null = null
  readonly root: string
  readonly #setup: Setup
  #child: ChildProcess | null = null

  private constructor(root: string, setup: Setup) {
    this.root = root
    this.#setup = setup
  }

  static async start(setup: Setup = {}): Promise<Homing> {
    const homing = new Homing(await mkdtemp(join(tmpdir(), 'homing-browser-')), setup)
    for (const dir of [homing.place, homing.home]) await mkdir(dir)
    await mkdir(homing.data, { mode: 0o700 })
    homing.line = setup.line ? await Line.open() : null
    const names = homing.line ? `allowed_hosts = ["${new URL(homing.line.url).host}"]\n` : ''
    if (names || setup.config) await writeFile(join(homing.data, 'homing.toml'), names + (setup.config ?? ''))
    await homing.begin()
    homing.line?.lead(homing.url)
    return homing
  }

  /** Where browsers find it. */
  get front(): string {
    return this.line?.url ?? this.url
  }

  get data(): string {
    return join(this.root, 'data')
  }

  get home(): string {
    return join(this.root, 'home')
  }

  /** A directory for sessions to work in. */
  get place(): string {
    return join(this.root, 'place')
  }

  /** Makes `place` a git repository with one commit, or a directory of it. */
  repository(dir = this.place): void {
    const who = ['-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'commit.gpgsign=false']
    const git = (...words: string[]) => execFileSync('git', [...who, ...words], { cwd: dir, env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' } })
    git('init', '--quiet', '--initial-branch=main')
    git('commit', '--quiet', '--allow-empty', '--message=first')
  }

  /** Starts it, always in the same directory and on the same port. */
  async begin(): Promise<void> {
    const listen = this.url ? new URL(this.url).host : '127.0.0.1:0'
    const child = this.#spawn(['up', '--no-browser', '--listen', listen, '--data', this.data])
    this.#child = child
    child.stderr!.setEncoding('utf8').on('data', (words: string) => (this.log += words))
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
    const next = async () => {
      const line = await lines.next()
      if (line.done) throw new Error(`the server has ended before it could be asked:\n${this.#lastOfLog()}`)
      return line.value
    }
    this.url = await next()
    this.link = await next()
    child.stdout!.resume()
    this.token = (await readFile(join(this.data, 'token'), 'utf8')).trim()
  }

  /** Ends it as a power cut would. */
  async kill(): Promise<void> {
    const child = this.#child
    this.#child = null
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  async restart(): Promise<void> {
    await this.kill()
    await this.begin()
  }

  /** Stops everything that it does, as a machine does that sleeps; `wake` lets it go on. */
  freeze(): void {
    this.#child?.kill('SIGSTOP')
  }

  wake(): void {
    this.#child?.kill('SIGCONT')
  }

  /** Ends it in order, and leaves nothing behind. */
  async stop(): Promise<void> {
    const child = this.#child
    this.#child = null
    this.line?.close()
    try {
      if (child && child.exitCode === null && child.signalCode === null) await this.#goes(child)
    } finally {
      await rm(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    }
  }

  async #goes(child: ChildProcess): Promise<void> {
    const gone = once(child, 'exit') as Promise<[number | null, string | null]>
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), GO_MS_MAX)
    const [code, signal] = await gone
    clearTimeout(timer)
    if (code !== 0) throw new Error(`told to go, the server ended with ${code ?? signal}:\n${this.#lastOfLog()}`)
    if (this.log.includes('panicked')) throw new Error(`the server has panicked:\n${this.#lastOfLog()}`)
  }

  /** Runs a command of it, as somebody at a terminal does. */
  async run(...words: string[]): Promise<Ran> {
    const child = this.#spawn([...words, '--data', this.data])
    const ran: Ran = { code: null, out: '', err: '' }
    child.stdout!.setEncoding('utf8').on('data', (part: string) => (ran.out += part))
    child.stderr!.setEncoding('utf8').on('data', (part: string) => (ran.err += part))
    ;[ran.code] = (await once(child, 'close')) as [number | null]
    return ran
  }

  #spawn(words: string[]): ChildProcess {
    const kept = Object.entries(process.env).filter(([name]) => !/^(HOMING_|XDG_|RUST_LOG$|DISPLAY$|WAYLAND_)/.test(name))
    const variables = { ...Object.fromEntries(kept), HOME: this.home, HOMING_DEFAULT_AGENT: 'scripted', ...this.#setup.variables?.(this.root) }
    return spawn(PROGRAM, words, { cwd: this.place, env: variables, stdio: ['ignore', 'pipe', 'pipe'] })
  }

  #lastOfLog(): string {
    return this.log.split('\n').slice(-LOG_LINES_SHOWN).join('\n')
  }

  /** Asks the interface something as the machine's person; anything but a yes fails the test. */
  async ask<T>(method: string, path: string, body?: unknown, kind = 'application/json'): Promise<T> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.token}` }
    if (body !== undefined) headers['content-type'] = kind
    const words = body === undefined || typeof body === 'string' ? (body as string | undefined) : JSON.stringify(body)
    const answer = await fetch(`${this.url}/api/v1${path}`, { method, headers, body: words })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return (text ? JSON.parse(text) : undefined) as T
  }

  /** Another link that signs a browser in, as the machine's person or as somebody else. */
  async newLink(person?: string): Promise<string> {
    const id = person ?? (await this.ask<{ person: string }>('GET', '/me')).person
    return (await this.ask<{ path: string }>('POST', `/users/${id}/link`)).path
  }

  /** Says something, and answers the receipt. */
  say(to: Record<string, unknown>, text: string): Promise<Receipt> {
    return this.ask('POST', '/messages', { to, text })
  }

  newSession(body: Record<string, unknown> = {}): Promise<Session> {
    return this.ask('POST', '/sessions', body)
  }

  /** Every fact of a session from the first, or from after one. */
  async facts(session: string, after = 0): Promise<Fact[]> {
    const all: Fact[] = []
    for (;;) {
      const page = await this.ask<{ items: Fact[] }>('GET', `/sessions/${session}/facts?after=${all.at(-1)?.number ?? after}&limit=500`)
      if (page.items.length === 0) return all
      all.push(...page.items)
    }
  }

  /** Waits until something holds, which the server is asked for again and again. */
  async until<T>(what: string, look: () => Promise<T | null | undefined | false>, ms = 20_000): Promise<T> {
    const end = Date.now() + ms
    for (;;) {
      const seen = await look()
      if (seen) return seen
      if (Date.now() > end) throw new Error(`it never came about that ${what}:\n${this.#lastOfLog()}`)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }

  /** The receipt of a message once it is final. */
  settled(message: string): Promise<Receipt> {
    const open = new Set(['waiting', 'held', 'running'])
    return this.until(`${message} is over`, async () => {
      const receipt = await this.ask<Receipt>('GET', `/messages/${message}?words=true`)
      return open.has(receipt.state) ? null : receipt
    })
  }
}

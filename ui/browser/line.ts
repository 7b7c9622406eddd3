// The line between browsers and a server, which a test can cut: what goes over it ends, and nothing gets through until it is mended.
//
// What a browser calls offline is less: it begins nothing new then, and a stream that is open goes on.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export class Line {
  /** Where browsers find the server. */
  readonly url: string
  readonly #server: Server
  readonly #open = new Set<Socket>()
  #isCut = false
  #to: URL | null = null

  private constructor(server: Server) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** A line on a port that the system chooses, which leads nowhere yet. */
  static async open(): Promise<Line> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const line = new Line(server)
    server.on('connection', (near) => line.#join(near))
    return line
  }

  /** It leads to the server at this address from now on. */
  lead(to: string): void {
    this.#to = new URL(to)
  }

  cut(): void {
    this.#isCut = true
    for (const socket of this.#open) socket.resetAndDestroy()
  }

  mend(): void {
    this.#isCut = false
  }

  close(): void {
    this.cut()
    this.#server.close()
  }

  #join(near: Socket): void {
    if (this.#isCut || !this.#to) return void near.resetAndDestroy()
    const far = connect(Number(this.#to.port), this.#to.hostname)
    for (const [one, other] of [[near, far], [far, near]] as const) {
      this.#open.add(one)
      // An end that is gone takes the other one along; why it went is not for this to say.
      one.on('error', () => {})
      one.on('close', () => {
        this.#open.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  }
}

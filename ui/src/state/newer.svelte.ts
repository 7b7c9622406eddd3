// Whether the server has another build of this page by now: looked up after every new connection, because a server that was
// replaced has cut the old one.
const BUILD = /\/ui\/([^/"']+)\/app\.js/

class Build {
  isNewer = $state(false)
  readonly #mine = BUILD.exec(import.meta.url)?.[1] ?? null

  async look(): Promise<void> {
    if (!this.#mine || this.isNewer) return
    const page = await fetch('/', { cache: 'no-store' }).then((answer) => (answer.ok ? answer.text() : ''), () => '')
    const theirs = BUILD.exec(page)?.[1]
    this.isNewer = theirs !== undefined && theirs !== this.#mine
  }
}

export const build = new Build()
